"""What `make` prints."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.generated import ROOT

UP_TO_DATE = (
    "requirements-installers.lock", "requirements-local.lock", "pyproject.toml", "deploy/engine/package-lock.json",
    "explorer/package-lock.json", "explorer/vite.config.js", "explorer/index.html", "schema/schema.graphql",
    ".venv/bin/pip", ".venv/.installed-installers", ".venv/.installed-local", "deploy/engine/node_modules/.installed",
    "deploy/engine/node_modules/@dynoxide/linux-x64/dynoxide", "server/http/pages/elements/documents.json",
)  # fmt: skip
"""What `make run` depends on, and what it has made of it."""


def test_a_later_run_begins_with_the_service(tmp_path: Path) -> None:
    """Make's own lines about the steps that have nothing to do tell nobody anything. What fails is said."""
    assert make(_installed(tmp_path), "run") == "Starting Ringside. Ctrl-C stops it; its data stays in .ringside/\n"
    (tmp_path / ".venv" / "bin" / "pip").unlink()
    refused = make(tmp_path, "run", "PYTHON=python-that-is-missing")
    assert "python-that-is-missing was not found. Install Python 3.11 or later" in refused
    assert "Starting Ringside" not in refused


@pytest.mark.parametrize("source", ["server/http/pages/sign-in/challenge.js", "elements/previous.json"])
def test_the_pages_are_built_again_when_a_file_outside_of_the_elements_folders_changes(
    tmp_path: Path, source: str
) -> None:
    """The solver of challenges is a part of the elements, and the release before one of what they are asked for."""
    changed = _installed(tmp_path) / source
    changed.parent.mkdir(parents=True, exist_ok=True)
    changed.touch()
    assert "Building the explorer and the elements" in make(tmp_path, "-n", "server/http/pages/elements/documents.json")


def test_newer_versions_are_taken_of_the_packages_from_npm_too(tmp_path: Path) -> None:
    """`npm install` keeps what its lock has, also of packages that no package.json names."""
    folder = _installed(tmp_path)
    (folder / "requirements-dev.lock").touch()
    for arguments, command in ((), "install"), (("ARGS=--upgrade",), "update"):
        assert f" {command} --prefix $folder " in make(folder, "-n", "lock", *arguments)


def _installed(folder: Path) -> Path:
    shutil.copy(ROOT / "Makefile", folder)
    for name in UP_TO_DATE:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
        os.utime(folder / name, (1_000_000_000, 1_000_000_000))
    (folder / ".venv" / "bin" / "ringside").symlink_to(shutil.which("true") or "/bin/true")
    return folder


def make(folder: Path, *arguments: str) -> str:
    """All that it prints, without the flags of a `make test` that runs this."""
    variables = {name: value for name, value in os.environ.items() if "MAKE" not in name and name != "AT_ONCE_BEGAN"}
    done = subprocess.run(
        ["make", *arguments], cwd=folder, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False,
    )  # fmt: skip
    return done.stdout
