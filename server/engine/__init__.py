"""The embedded DynamoDB engine: found, started, kept alive, ended with the service.

| promise                                     | kept by                                                             |
|---------------------------------------------|---------------------------------------------------------------------|
| one service per data folder                 | a lock that the engine inherits: it is free when the engine is gone |
| no engine outlives its service, kill -9 too | a pipe that nobody but the service holds open: `LIFELINE`           |
| an engine that dies is back, same address   | `Engine._keep_alive`, on a port that stays reserved                 |
| an acknowledged write is on the disk        | dynoxide syncs SQLite's log before it answers a write               |

docs/decisions/embedded-engine.md has what was weighed and measured.
"""

from server.engine.folder import EngineInUse
from server.engine.process import Engine
from server.engine.programs import DYNOXIDE, EngineRefused, Program, choose, dynoxide, find_binary, moto, table_file
from server.engine.running import beside, embedded

__all__ = [
    "DYNOXIDE",
    "Engine",
    "EngineInUse",
    "EngineRefused",
    "Program",
    "beside",
    "choose",
    "dynoxide",
    "embedded",
    "find_binary",
    "moto",
    "table_file",
]
