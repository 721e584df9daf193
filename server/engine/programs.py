"""The programs that can serve as the engine, where they are searched for, and which one is chosen."""

import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from server.engine.folder import EngineRefused, table_file

log = structlog.get_logger("ringside.engine")

DYNOXIDE: Final = "1.2.1"
CHECKOUT: Final = Path(__file__).resolve().parents[2] / "deploy" / "engine"
MOTO_SERVER: Final = Path(__file__).resolve().with_name("moto_server.py")


@dataclass(frozen=True, slots=True)
class Program:
    """How to start an engine on a host's port, and how many seconds it may take to answer."""

    name: str
    command: Callable[[str, int], Sequence[str]]
    startup_timeout: float = 10.0


def choose_program(data: Path, binary: Path | None = None) -> Program:
    """Return dynoxide if its binary is found, otherwise moto's server, which is slow and keeps no data."""
    path = required_binary(data, binary) if table_file(data).exists() else find_binary(data, binary)
    if path:
        return dynoxide(path, table_file(data))
    remedy = _remedy(data)
    if not all(map(importlib.util.find_spec, ("moto", "flask", "flask_cors"))):
        raise EngineRefused(
            f"The engine dynoxide was not found. {remedy} Or run `pip install 'moto[server]'` for an engine that is "
            "slow and keeps no data, or set RINGSIDE_DYNAMODB_URL to the address of another engine."
        )
    log.warning("dynoxide not found, using moto: slow, and all data is lost when it stops", remedy=remedy)
    return moto()


def required_binary(data: Path, given: Path | None = None) -> Path:
    """Return dynoxide's binary, without which nothing can read its tables, nor the copies of the data folder's."""
    if path := find_binary(data, given):
        return path
    raise EngineRefused(f"The table was written by dynoxide, which was not found. {_remedy(data)}")


def _remedy(data: Path) -> str:
    return (
        "To install it, run `npm ci --prefix deploy/engine` in a checkout or "
        f"`npm install --prefix {data} dynoxide@{DYNOXIDE}` elsewhere, or set RINGSIDE_ENGINE_BINARY to its path."
    )


def find_binary(data: Path, given: Path | None = None) -> Path | None:
    """Return dynoxide's binary: the given one, npm's in the checkout or data folder, beside `ringside`, or on PATH."""
    if given:
        if not (given.is_file() and os.access(given, os.X_OK)):
            raise EngineRefused(f"RINGSIDE_ENGINE_BINARY is {given}, which cannot be run. Set it to dynoxide's path.")
        return given
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine())
    package = Path("node_modules", "@dynoxide", f"{sys.platform}-{machine}", "dynoxide")
    below_its_parent = Path("node_modules", "dynoxide") / package
    candidates = [folder / file for folder in (CHECKOUT, data) for file in (package, below_its_parent)]
    # The interpreter's bin folder is not on PATH if its environment is not activated.
    candidates.append(Path(sys.prefix, "bin", "dynoxide"))
    candidates.append(Path(shutil.which("dynoxide") or "nowhere"))
    return next((file for file in candidates if os.access(file, os.X_OK)), None)


def dynoxide(binary: Path, file: Path) -> Program:
    """Return DynamoDB on SQLite. It answers some 20 ms after its start; kill -9 loses no acknowledged write."""

    def command(host: str, port: int) -> Sequence[str]:
        return str(binary), "serve", "--host", host, "--port", str(port), "--db-path", str(file)

    return Program("dynoxide", command)


def moto() -> Program:
    """Return the fallback engine."""
    # Without -P its folder would come first on sys.path, where its modules could shadow packages of the same name.
    return Program(
        "moto", lambda host, port: (sys.executable, "-P", str(MOTO_SERVER), host, str(port)), startup_timeout=60.0
    )
