"""The locks: what is asked for is in them, they agree, and they name hashes and no addresses."""

import json
import tomllib
from collections.abc import Mapping
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from server.engine.process import DYNOXIDE
from tests.generated import ROOT
from tests.lock_files import locked

LOCKS = ("requirements.lock", "requirements-local.lock", "requirements-dev.lock")
APART = {f"requirements-{group}.lock": group for group in ("installers", "docs", "image")}
"""They are resolved for one group each."""
PACKAGES = ("deploy/engine", "explorer", "tests/node", "bench/peers")


def wanted(project: Mapping[str, Any], group: str) -> list[str]:
    """What a dependency group asks for, with the groups that it includes."""
    entries = project["dependency-groups"][group]
    return [
        requirement
        for entry in entries
        for requirement in ([entry] if isinstance(entry, str) else wanted(project, entry["include-group"]))
    ]


@pytest.mark.parametrize("name", [*LOCKS, *APART, "bench/peers/requirements.lock", "tests/ariadne/requirements.lock"])
def test_every_package_is_pinned_with_hashes_and_without_an_address(name: str) -> None:
    """Any registry will do, and none can slip in another file."""
    assert locked(name)
    assert "://" not in (ROOT / name).read_text(encoding="utf-8")


def test_the_locks_hold_what_the_project_asks_for() -> None:
    """Otherwise `make lock` resolves them anew."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    runtime = project["project"]["dependencies"]
    moto = project["project"]["optional-dependencies"]["moto"]
    asked = {
        "requirements.lock": runtime,
        "requirements-local.lock": [*runtime, *wanted(project, "build")],
        "requirements-dev.lock": [*runtime, *moto, *wanted(project, "dev")],
        **{name: wanted(project, group) for name, group in APART.items()},
    }
    for name, requirements in asked.items():
        pins = locked(name)
        for text in requirements:
            requirement = Requirement(text)
            versions = [Requirement(pin).specifier for pin in pins.get(canonicalize_name(requirement.name), ())]
            assert versions, f"{text} is not in {name}"
            for version in versions:
                assert requirement.specifier.contains(str(version).removeprefix("==")), f"{name}: {text}, {version}"


def test_the_locks_agree() -> None:
    """What runs in the container is what is tested: each lock has all of the one before, at the same versions."""
    runtime, local, dev = map(locked, LOCKS)
    assert runtime.items() <= local.items()
    assert local.items() <= dev.items()
    for lock in APART:
        for name, pins in locked(lock).items():  # fewer packages ask for some of them, so their conditions differ
            versions = {pin.partition(";")[0].strip() for pin in dev[name]}
            assert {pin.partition(";")[0].strip() for pin in pins} <= versions


@pytest.mark.parametrize("folder", PACKAGES)
def test_a_package_lock_names_hashes_and_no_address(folder: str) -> None:
    """What package.json asks for is what its lock holds, each package with its hash."""
    asked = json.loads((ROOT / folder / "package.json").read_text(encoding="utf-8"))
    packages = json.loads((ROOT / folder / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    top = packages.pop("")
    for kind in ("dependencies", "devDependencies", "optionalDependencies"):
        assert top.get(kind, {}) == asked.get(kind, {})
    assert all("integrity" in package and "resolved" not in package for package in packages.values())


def test_one_version_of_the_engine_is_meant_everywhere() -> None:
    """The lock's, the one that refusals tell people to install, and the one for other machines."""
    package = json.loads((ROOT / "deploy/engine/package.json").read_text(encoding="utf-8"))
    assert set(package["optionalDependencies"].values()) == {DYNOXIDE}
    assert f" dynoxide@{DYNOXIDE} " in (ROOT / "Makefile").read_text(encoding="utf-8")
