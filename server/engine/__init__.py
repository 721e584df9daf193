"""The embedded DynamoDB engine: found, started, kept alive, stopped with the service.

| guarantee                                          | mechanism                                                       |
|----------------------------------------------------|-----------------------------------------------------------------|
| one service per data folder                        | a lock the engine inherits, released only when the engine exits |
| the engine stops with its service, even on kill -9 | a pipe that only the service holds open: `LIFELINE`             |
| a dead engine restarts at the same address         | `Engine._keep_alive`, on a port that stays reserved             |
| an acknowledged write is on disk                   | dynoxide syncs SQLite's log before it acknowledges a write      |

docs/decisions/embedded-engine.md has the alternatives and measurements.
"""

from server.engine.folder import EngineInUse
from server.engine.process import Engine
from server.engine.programs import (
    DYNOXIDE,
    EngineRefused,
    Program,
    choose_program,
    dynoxide,
    find_binary,
    moto,
    table_file,
)
from server.engine.running import run_engine, run_engine_async

__all__ = [
    "DYNOXIDE",
    "Engine",
    "EngineInUse",
    "EngineRefused",
    "Program",
    "choose_program",
    "dynoxide",
    "find_binary",
    "moto",
    "run_engine",
    "run_engine_async",
    "table_file",
]
