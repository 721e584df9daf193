"""The embedded DynamoDB engine: found, started, kept alive, stopped with the service.

| guarantee                                          | mechanism                                                       |
|----------------------------------------------------|-----------------------------------------------------------------|
| one service per data folder                        | a lock the engine inherits, released only when the engine exits |
| the engine stops with its service, even on kill -9 | a pipe that only the service holds open: `LIFELINE`             |
| a dead engine restarts at the same address         | `Engine._keep_alive`, on a port that stays reserved             |
| no web page reaches the engine                     | `addresses.BAD_PORTS`, to which browsers refuse to connect      |
| a damaged or emptied table is not served           | `integrity.check_file`                                          |
| an acknowledged write is on disk                   | dynoxide syncs SQLite's log before it acknowledges a write      |
| a backup is the table of one moment                | `backup`: SQLite's backup interface, within one transaction     |

docs/decisions/embedded-engine.md has the alternatives and measurements.
"""

from server.engine.addresses import is_embedded
from server.engine.backup import BackupFailed, back_up, copy_file, install, staged_copy
from server.engine.folder import EngineInUse, locked_folder
from server.engine.process import Engine
from server.engine.programs import (
    DYNOXIDE,
    EngineRefused,
    Program,
    choose_program,
    dynoxide,
    find_binary,
    moto,
    required_binary,
    table_file,
)
from server.engine.running import run_engine, run_engine_async
from server.engine.schedule import BackupSchedule, backup_figures

__all__ = [
    "DYNOXIDE",
    "BackupFailed",
    "BackupSchedule",
    "Engine",
    "EngineInUse",
    "EngineRefused",
    "Program",
    "back_up",
    "backup_figures",
    "choose_program",
    "copy_file",
    "dynoxide",
    "find_binary",
    "install",
    "is_embedded",
    "locked_folder",
    "moto",
    "required_binary",
    "run_engine",
    "run_engine_async",
    "staged_copy",
    "table_file",
]
