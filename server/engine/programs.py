"""The programs that can be the engine, where they are looked for, and which one is taken."""

import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

log = structlog.get_logger("ringside.engine")

DYNOXIDE: Final = "1.2.1"
CHECKOUT: Final = Path(__file__).resolve().parents[2] / "deploy" / "engine"
LAST_RESORT: Final = Path(__file__).resolve().with_name("last_resort.py")


class EngineRefused(Exception):
    """There is no engine for this data folder: the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Program:
    """How to start an engine on a port, and how long it may take until it answers."""

    name: str
    command: Callable[[int], Sequence[str]]
    patience: float = 10.0


def choose(data: Path, binary: Path | None = None) -> Program:
    """Return dynoxide if its program is here, or else moto's server, which is slow and forgets."""
    if found := find_binary(data, binary):
        return dynoxide(found, table_file(data))
    remedy = (
        "To have it, run `npm ci --prefix deploy/engine` in a checkout or "
        f"`npm install --prefix {data} dynoxide@{DYNOXIDE}` elsewhere, or let RINGSIDE_ENGINE_BINARY name its program."
    )
    if table_file(data).exists():
        raise EngineRefused(f"{table_file(data)} was written by dynoxide, whose program is not found. {remedy}")
    if not all(map(importlib.util.find_spec, ("moto", "flask", "flask_cors"))):
        raise EngineRefused(
            f"The engine dynoxide is not found. {remedy} Or `pip install 'ringside[moto]'` for an engine that is slow "
            "and forgets, or set RINGSIDE_DYNAMODB_URL to the address of any other."
        )
    log.warning("moto stands in for dynoxide, which is not found: slow, and all is forgotten at the end", remedy=remedy)
    return moto()


def find_binary(data: Path, given: Path | None = None) -> Path | None:
    """Return dynoxide's program: the one given, npm's in the checkout or in the data folder, or the one on PATH."""
    if given:
        if not (given.is_file() and os.access(given, os.X_OK)):
            raise EngineRefused(f"RINGSIDE_ENGINE_BINARY is {given}, which cannot be run. Name dynoxide's program.")
        return given
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine())
    package = Path("node_modules", "@dynoxide", f"{sys.platform}-{machine}", "dynoxide")
    below_its_parent = Path("node_modules", "dynoxide") / package
    places = [folder / place for folder in (CHECKOUT, data) for place in (package, below_its_parent)]
    return next((place for place in (*places, *_on_path()) if os.access(place, os.X_OK)), None)


def _on_path() -> Iterator[Path]:
    if found := shutil.which("dynoxide"):
        yield Path(found)


def table_file(data: Path) -> Path:
    """Return the file that holds the table."""
    return data / "table.db"


def dynoxide(binary: Path, file: Path) -> Program:
    """Return DynamoDB on SQLite: it answers some 20 ms after its start, and a kill -9 loses nothing acknowledged."""

    def command(port: int) -> Sequence[str]:
        return str(binary), "serve", "--host", "127.0.0.1", "--port", str(port), "--db-path", str(file)

    return Program("dynoxide", command)


def moto() -> Program:
    """Return the last resort."""
    # Without -P its folder would come first on the path, and its neighbours hide packages of the same names.
    return Program("moto", lambda port: (sys.executable, "-P", str(LAST_RESORT), str(port)), patience=60.0)
