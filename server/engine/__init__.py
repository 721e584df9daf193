"""The embedded DynamoDB engine: found, started, kept alive, stopped with the service, backed up.

| guarantee                                          | mechanism                                                   |
|----------------------------------------------------|-------------------------------------------------------------|
| one service per data folder                        | a lock that the engine inherits, free once nobody can write |
| the engine stops with its service, even on kill -9 | a pipe that only the service holds open: `ENDS_WITH_US`     |
| a dead engine restarts at the same address         | `Engine._keep_alive`, on a port that stays reserved         |
| no web page reaches the engine                     | `BAD_PORTS`, to which browsers refuse to connect            |
| a damaged or emptied table is not served           | `folder.check_file`                                         |
| an acknowledged write is on disk                   | dynoxide syncs SQLite's log before it acknowledges a write  |
| a backup is the table of one moment                | `backup`: SQLite's backup interface, within one transaction |
| a restore is done or not                           | `folder.complete_restore`: folders get other names          |

docs/decisions/embedded-engine.md has the alternatives and measurements.
"""

from server.engine.backup import back_up, backup_figures, copy_file, scheduled_backups
from server.engine.folder import EngineInUse, locked_folder, table_file
from server.engine.process import required_binary, run_engine, run_engine_async

__all__ = [
    "EngineInUse", "back_up", "backup_figures", "copy_file", "locked_folder", "required_binary", "run_engine",
    "run_engine_async", "scheduled_backups", "table_file",
]  # fmt: skip
