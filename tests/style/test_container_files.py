"""Dockerfile, .dockerignore and compose.yaml, read; .ci/container.py goes through the steps."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from server.http.process import GRACE_SECONDS
from server.settings import BadSettings, Settings
from tests.generated import ROOT

LINES = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)).splitlines()
STAGES = [place for place, line in enumerate(LINES) if line.startswith("FROM ")]
BASES = [line.split()[1] for line in LINES if line.startswith("FROM ")]
FINAL = LINES[STAGES[1] : STAGES[2]]


def said(instruction: str) -> str:
    """The last of an instruction in the final stage."""
    return next(line for line in reversed(FINAL) if line.startswith(f"{instruction} ")).partition(" ")[2]


def test_the_final_stage_runs_nothing_and_takes_only_what_was_installed() -> None:
    """So no compiler, node or package manager of the build is in the image."""
    assert not [line for line in FINAL if line.startswith(("RUN ", "ADD "))]
    assert [line for line in FINAL if line.startswith("COPY ")] == ["COPY --from=build /opt/ringside /opt/ringside"]


def test_both_stages_have_the_same_python() -> None:
    """What is installed for one version does not run on another."""
    assert len({base for base in BASES if base not in {"build", "service"}}) == 1


def test_the_base_image_is_pinned_by_its_digest() -> None:
    """A tag may name another image tomorrow; the label says which tag it was."""
    assert re.fullmatch(r"python:3\.13-slim@sha256:[0-9a-f]{64}", BASES[0])
    (label,) = re.findall(r'image\.base\.name="docker\.io/library/(.+?)"', said("LABEL"))
    assert label == BASES[0].partition("@")[0]


def test_the_image_says_what_it_is() -> None:
    """In the labels of the Open Container Initiative."""
    labels = dict(re.findall(r'org\.opencontainers\.image\.([\w.]+)="(.+?)"', said("LABEL")))
    assert labels.keys() == {"title", "description", "licenses", "base.name"}
    assert labels["licenses"] == "MIT"


def test_what_is_built_without_a_target_is_the_service_alone() -> None:
    """The embedded engine is in the target that is named after it."""
    assert LINES[STAGES[-1] :] == ["FROM service"]
    assert [line for line in FINAL if "engine" in line] == []


def test_the_container_does_not_run_as_root() -> None:
    """By number, so that an orchestrator can tell without looking into the image."""
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", said("USER"))


def test_packages_are_installed_by_their_hashes() -> None:
    """Each install names a lock with hashes, or installs the wheel alone and asks no registry."""
    installs = [command for line in LINES for command in line.split("&&") if re.search(r"pip .*\binstall\b", command)]
    assert len(installs) == 3
    assert all("--require-hashes -r" in command or "--no-deps --no-index" in command for command in installs)


def test_the_bill_of_materials_is_compared_with_every_package_that_the_image_needs() -> None:
    """Packages for other platforms are left out of the comparison, and no others."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([\w.-]+)==\S+ (.*)\\$", lock, re.MULTILINE))
    compared = runpy.run_path(str(ROOT / ".ci" / "container.py"))["always_installed"](lock)
    assert {"uvicorn", "aioboto3", "strawberry-graphql"} <= set(compared)
    assert sorted(compared) == sorted(name for name, condition in pinned.items() if ";" not in condition)


def test_the_container_says_whether_it_is_healthy() -> None:
    """By the address that asks for nothing but the process; a table that is away is no reason to kill it."""
    command = json.loads(said("HEALTHCHECK").partition("CMD ")[2])
    assert command[:2] == ["python", "-c"]
    assert "http://127.0.0.1:8000/livez" in command[2]


def test_a_container_that_is_told_no_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not started on an engine of its own, whose data would go with it."""
    environment = dict(pair.split("=", 1) for line in FINAL if line.startswith("ENV ") for pair in line.split()[1:])
    monkeypatch.setenv("RINGSIDE_DYNAMODB_URL", environment["RINGSIDE_DYNAMODB_URL"])
    with pytest.raises(BadSettings, match="RINGSIDE_DYNAMODB_URL is invalid: it is not set"):
        Settings.load()


def test_what_is_copied_is_not_ignored() -> None:
    """.dockerignore takes everything away but what it names."""
    kept = {
        line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")
    }
    copied = {
        source
        for line in LINES
        if line.startswith("COPY ") and not line.startswith("COPY --from")
        for source in line.split()[1:-1]
    }
    within = {source for source in copied if any(source.startswith(f"{folder}/") for folder in kept)}
    assert copied - within == kept


def test_compose_starts_the_service_after_its_table() -> None:
    """Read-only, without capabilities, on loopback; the engine, which takes any credentials, has no port outside.

    After a reboot Docker starts what has a policy, in any order: the service needs the engine, and the table is there.
    """
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    service, table, engine = services["ringside"], services["table"], services["dynamodb"]
    for container in (service, table):
        assert container["read_only"] is True
        assert container["cap_drop"] == ["ALL"]
        assert set(container["environment"]) <= {f"RINGSIDE_{name.upper()}" for name in Settings.model_fields}
    assert service["depends_on"]["table"]["condition"] == "service_completed_successfully"
    assert table["depends_on"]["dynamodb"]["condition"] == "service_healthy"
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert "ports" not in engine
    assert [each.get("restart") for each in (service, table, engine)] == ["unless-stopped", None, "unless-stopped"]
    assert int(service["stop_grace_period"].removesuffix("s")) > GRACE_SECONDS


def test_compose_runs_the_embedded_engine_with_a_volume_and_scheduled_backups() -> None:
    """The target that has the engine; read-only but for the volume, on loopback, with time to stop the engine."""
    composed = yaml.safe_load((ROOT / "compose.embedded.yaml").read_text(encoding="utf-8"))
    (service,) = composed["services"].values()
    assert service["build"]["target"] in {line.rpartition(" AS ")[2] for line in LINES if line.startswith("FROM ")}
    assert service["volumes"] == [f"{volume}:/data" for volume in composed["volumes"]]
    assert any("RINGSIDE_DATA=/data" in line.split() for line in FINAL)
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert float(service["environment"]["RINGSIDE_BACKUP_HOURS"]) == 24
    # What an owner sets, such as the mail server's address, would be overridden by the same setting here.
    assert set(service["environment"]) == {"RINGSIDE_BACKUP_HOURS"}
    assert service["env_file"] == [{"path": "ringside.env", "required": False}]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert int(service["stop_grace_period"].removesuffix("s")) > GRACE_SECONDS


def test_what_the_guide_copies_out_of_the_volume_is_not_committed() -> None:
    """And the second copy of a folder is put where the first one is, not into it."""
    guide = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    copies = dict(re.findall(r"compose\.embedded\.yaml cp ringside:(\S+) \./(\S+)", guide))
    assert copies == {"/data/backups/.": "backups", "/data/secret": "secret"}
    assert {"/backups/", "/secret"} <= set((ROOT / ".gitignore").read_text(encoding="utf-8").split())


@pytest.mark.parametrize("name", ["compose.yaml", "compose.embedded.yaml"])
def test_a_compose_file_fits_the_specification(name: str) -> None:
    """With the schema that check-jsonschema brings."""
    tool = Path(sys.executable).with_name("check-jsonschema")
    command = [str(tool), "--builtin-schema", "vendor.compose-spec", str(ROOT / name)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
