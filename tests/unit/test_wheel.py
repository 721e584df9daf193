"""The wheel: it contains the explorer and the elements or is not built, and says what it is for."""

import email
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from tests.generated import ROOT

PAGES = Path("server/http/pages")
FILES = (
    "explorer/index.html",
    "explorer/assets/index.js",
    "elements/documents.json",
    "elements/elements.1.js",
    "admin/admin.1.js",
)
COPIED = ("pyproject.toml", "LICENSE", "deploy/wheel.md", "deploy/wheel_build.py")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
BUILD = PROJECT["tool"]["hatch"]["build"]
VERSION = PROJECT["project"]["version"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files of which the wheel is made, without a built explorer."""
    for name in COPIED:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for package in BUILD["targets"]["wheel"]["packages"]:
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    return tmp_path


def build(checkout: Path, target: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("target", ["wheel", "sdist"])
def test_a_build_without_its_pages_fails_and_says_what_to_do(checkout: Path, target: str) -> None:
    """It would serve an empty page, which nobody would notice before it is deployed."""
    failed = build(checkout, target)
    assert failed.returncode != 0
    said = failed.stdout + failed.stderr
    assert f"{PAGES}/explorer/index.html is missing: the pages are part of every build. Run `make pages` first." in said
    assert "Traceback" not in said
    assert not list(checkout.glob("dist/*"))


def test_the_wheel_contains_the_pages_and_says_that_it_is_for_the_container(checkout: Path) -> None:
    """The description says that it is not a library, and which names can collide."""
    for name in FILES:
        (checkout / PAGES / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / PAGES / name).write_text("1")
    done = build(checkout, "wheel")
    assert done.returncode == 0, done.stderr
    (wheel,) = (checkout / "dist").iterdir()
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
        (metadata,) = (name for name in names if name.endswith("/METADATA"))
        described = email.message_from_bytes(content.read(metadata))
    assert {f"{PAGES}/{name}" for name in FILES} <= set(names)
    tops = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == set(BUILD["targets"]["wheel"]["packages"])
    assert "container image" in described["Summary"]
    text = str(described.get_payload())
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == tops
    assert "not a library" in text


def test_the_guide_s_commands_for_one_machine_install_what_was_built_last(checkout: Path) -> None:
    """Of two wheels pip installs none, and one of the version that is installed only if it is forced to."""
    for name in FILES:
        (checkout / PAGES / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / PAGES / name).write_text("new")
    (checkout / "dist").mkdir()
    (checkout / "dist/ringside-0.0.1-py3-none-any.whl").touch()
    venv.create(checkout / "machine")
    guide = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    (making,) = re.findall(r"^make pages && (.+)$", guide, re.MULTILINE)
    (installing,) = re.findall(r"^sudo /opt/ringside/bin/(pip install .+ dist/.+)$", guide, re.MULTILINE)
    pip = f"{sys.executable} -m pip --disable-pip-version-check -q"
    subprocess.run(["sh", "-ec", making.replace(".venv/bin/pip", pip)], cwd=checkout, check=True)
    assert [wheel.name for wheel in (checkout / "dist").iterdir()] == [f"ringside-{VERSION}-py3-none-any.whl"]
    for _ in range(2):
        install = installing.replace("pip", f"{pip} --python {checkout / 'machine'}", 1)
        subprocess.run(["sh", "-ec", install], cwd=checkout, check=True)
        (installed,) = checkout.glob(f"machine/lib/*/site-packages/{PAGES / FILES[0]}")
        assert installed.read_text() == "new"
        installed.write_text("old")


def test_an_installation_for_development_needs_no_built_explorer(checkout: Path) -> None:
    """`make` installs the checkout before it builds the pages."""
    done = build(checkout, "wheel:editable")
    assert done.returncode == 0, done.stderr
    assert list(checkout.glob("dist/*.whl"))
