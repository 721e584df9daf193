"""The release: its workflow is linted and pins what it uses, and its notes are the changelog's."""

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.generated import ROOT

GITHUB = ROOT / ".github"
WORKFLOW = GITHUB / "workflows" / "release.yml"
TEXT = WORKFLOW.read_text(encoding="utf-8")
JOBS: dict[str, Any] = yaml.safe_load(TEXT)["jobs"]
NOTES = runpy.run_path(str(ROOT / ".ci" / "release_notes.py"))
CHANGELOG = """# Changelog

## [Unreleased]

- Nothing yet.

## [1.2.0] - 2026-12-01

### Added

- A thing.

## [1.1.0] - 2026-11-01

- Another.

## [1.0.0] - 2026-10-01
"""


def tool(*command: str) -> subprocess.CompletedProcess[str]:
    path = Path(sys.executable).with_name(command[0])
    return subprocess.run([str(path), *command[1:]], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("schema", "file"), [("vendor.github-workflows", WORKFLOW), ("vendor.renovate", GITHUB / "renovate.json")]
)
def test_a_file_for_the_forge_fits_its_schema(schema: str, file: Path) -> None:
    """With the schemas that check-jsonschema brings."""
    checked = tool("check-jsonschema", "--builtin-schema", schema, str(file))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_zizmor_finds_nothing_in_the_workflow() -> None:
    """No action without a commit, no permission that is too wide, no text of strangers in a command."""
    checked = tool("zizmor", "--offline", "--pedantic", "--no-progress", str(WORKFLOW))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_zizmor_finds_an_action_that_is_not_pinned(tmp_path: Path) -> None:
    """The control of the test above."""
    worse = tmp_path / "release.yml"
    worse.write_text(re.sub(r"@[0-9a-f]{40} # (v[\d.]+)", r"@\1", TEXT))
    checked = tool("zizmor", "--offline", "--pedantic", "--no-progress", str(worse))
    assert checked.returncode != 0
    assert "unpinned-uses" in checked.stdout


def test_every_action_is_pinned_by_its_commit_and_says_its_version() -> None:
    used = re.findall(r"uses: (.+)", TEXT)
    assert len(used) >= 7
    assert [use for use in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use)] == []


def test_nothing_is_published_before_every_check_has_passed() -> None:
    """The checks are CI's own; each job has the rights that it needs, and the workflow has none."""
    assert yaml.safe_load(TEXT)["permissions"] == {}
    assert [step["run"] for step in JOBS["check"]["steps"] if "run" in step][-1] == ".ci/run"
    assert JOBS["check"]["permissions"] == {"contents": "read"}
    assert (JOBS["image"]["needs"], JOBS["release"]["needs"]) == ("check", "image")


def test_the_image_is_built_for_two_architectures_with_provenance() -> None:
    (build,) = (step for step in JOBS["image"]["steps"] if step.get("id") == "build")
    assert build["with"]["platforms"].split(",") == ["linux/amd64", "linux/arm64"]
    assert build["with"]["provenance"] == "mode=max"
    assert build["with"]["sbom"] is True
    labels = re.findall(r"image\.(\w+)=", build["with"]["labels"])
    assert labels == ["version", "revision", "source"]


def test_the_notes_of_a_release_are_its_section_of_the_changelog() -> None:
    assert NOTES["release_notes"]("v1.2.0", "1.2.0", CHANGELOG) == "### Added\n\n- A thing."
    assert NOTES["release_notes"]("v1.1.0", "1.1.0", CHANGELOG) == "- Another."


@pytest.mark.parametrize(
    ("tag", "version", "reason"),
    [
        ("v1.2.1", "1.2.0", "The tag must be v1.2.0"),
        ("v1.3.0", "1.3.0", r"no section `## \[1.3.0\] - YYYY-MM-DD`"),
        ("v1.0.0", "1.0.0", "is empty"),
    ],
)
def test_a_release_that_is_not_ready_is_refused_with_the_reason(tag: str, version: str, reason: str) -> None:
    with pytest.raises(NOTES["NotReady"], match=reason):
        NOTES["release_notes"](tag, version, CHANGELOG)
