"""Which engine is chosen for a data folder, and what is said when there is none."""

import importlib.util
import platform
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from server.engine import process, table_file
from server.engine.folder import EngineRefused
from server.engine.process import choose_program, find_binary


def _installed_on(monkeypatch: pytest.MonkeyPatch, system: str, machine: str) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)


@pytest.fixture(autouse=True)
def _bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is installed but what a test puts there."""
    _installed_on(monkeypatch, "linux", "x86_64")
    for place, name, folder in ((process, "CHECKOUT", tmp_path / "checkout"), (sys, "prefix", str(tmp_path / "venv"))):
        monkeypatch.setattr(place, name, folder)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """An empty data folder."""
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def _program(place: Path) -> Path:
    place.parent.mkdir(parents=True)
    place.touch(mode=0o755)
    return place


def _without_moto(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)


def test_the_program_that_is_given_comes_first(tmp_path: Path, data: Path) -> None:
    """RINGSIDE_ENGINE_BINARY outdoes what npm installed."""
    _program(data / "node_modules/@dynoxide/linux-x64/dynoxide")
    given = _program(tmp_path / "elsewhere/dynoxide")
    assert find_binary(data, given) == given


def test_the_npm_package_of_the_checkout_comes_before_the_data_folder_s(tmp_path: Path, data: Path) -> None:
    """A checkout installs the version of its lock file."""
    _program(data / "node_modules/@dynoxide/linux-x64/dynoxide")
    locked = _program(tmp_path / "checkout/node_modules/@dynoxide/linux-x64/dynoxide")
    assert find_binary(data) == locked


def test_the_npm_package_is_found_below_its_parent_package(data: Path) -> None:
    """npm may put a platform's package inside the one that wants it."""
    nested = _program(data / "node_modules/dynoxide/node_modules/@dynoxide/linux-x64/dynoxide")
    assert find_binary(data) == nested


def test_the_package_depends_on_the_machine(monkeypatch: pytest.MonkeyPatch, data: Path) -> None:
    """A Mac's program is in npm's darwin-arm64."""
    _installed_on(monkeypatch, "darwin", "arm64")
    _program(data / "node_modules/@dynoxide/linux-x64/dynoxide")
    assert find_binary(data) is None
    fitting = _program(data / "node_modules/@dynoxide/darwin-arm64/dynoxide")
    assert find_binary(data) == fitting


def test_the_path_is_searched_last(tmp_path: Path, data: Path) -> None:
    """A program that the system installed serves where npm did not run."""
    on_path = _program(tmp_path / "path/dynoxide")
    assert find_binary(data) == on_path
    nearer = _program(tmp_path / "venv/bin/dynoxide")
    assert find_binary(data) == nearer


def test_the_program_is_found_beside_the_interpreter(tmp_path: Path, data: Path) -> None:
    """The guide's installation on one machine puts it beside `ringside`, whose folder need not be on PATH."""
    beside = _program(tmp_path / "venv/bin/dynoxide")
    assert find_binary(data) == beside
    nearer = _program(data / "node_modules/@dynoxide/linux-x64/dynoxide")
    assert find_binary(data) == nearer


def test_a_given_program_that_cannot_be_run_is_refused(tmp_path: Path, data: Path) -> None:
    """A typing error must not start another engine on the sly."""
    with pytest.raises(EngineRefused, match=r"RINGSIDE_ENGINE_BINARY is .*, which cannot be run"):
        find_binary(data, tmp_path / "dynoxid")


def test_without_a_program_moto_is_used_with_a_warning(data: Path) -> None:
    """The warning says what it costs and how to get the real one."""
    with capture_logs() as logs:
        assert choose_program(data).name == "moto"
    (warning,) = logs
    assert warning["log_level"] == "warning"
    assert "all data is lost" in warning["event"]
    assert "`make engine` in a checkout" in warning["remedy"]


def test_without_a_program_an_existing_table_is_not_replaced_by_an_empty_one(data: Path) -> None:
    """What moto was told would be lost, and yesterday's data seem so."""
    table_file(data).parent.mkdir()
    table_file(data).touch()
    with pytest.raises(EngineRefused, match="was written by dynoxide, which was not found"):
        choose_program(data)


def test_without_an_engine_the_error_says_how_to_install_one(monkeypatch: pytest.MonkeyPatch, data: Path) -> None:
    """make, npm, a setting, pip, or an engine elsewhere."""
    _without_moto(monkeypatch)
    with pytest.raises(EngineRefused) as refused:
        choose_program(data)
    for way in ("make engine", "npm install", "RINGSIDE_ENGINE_BINARY", "moto[server]", "RINGSIDE_DYNAMODB_URL"):
        assert way in str(refused.value)
