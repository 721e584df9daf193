"""The data folder and its lock: one service at a time.

The engine inherits the lock, so it is released only when no process is left that could write to the table.
"""

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from server.engine.programs import EngineRefused
from server.failures import Failed

POLL_SECONDS: Final = 0.01
# Longer than an engine may take to stop after its service.
LOCK_TIMEOUT: Final = 6.0

OWN_FILES: Final = (
    "lock", "secret", ".secret-", "table.db", "engine.log", "node_modules", "package", "backups", "replaced",
    "replacing", "removing", "restoring", "copy-",
)  # fmt: skip


TABLE_PARTS: Final = ("", "-wal", "-shm", "-journal")
"""What SQLite adds to a file's name for the files that belong to it."""
_SERVED: Final = ("lock", "secret", "engine.log", "table.db.restored", *(f"table.db{part}" for part in TABLE_PARTS))
_REMOVED: Final = ("replaced", "replacing", "removing", "restoring")
"""Folders of the data folder that a restore removes with all that is in them."""


def refuse_own_file(file: Path) -> None:
    """Failed if a path leads to what a data folder, this one or another, consists of: no result is written there.

    A data folder is known by its lock. Other files in it, as those in `backups/`, are anybody's.
    """
    try:
        with suppress(FileNotFoundError):
            file.stat()
    except OSError as error:  # a name that is too long, or links that lead to each other
        raise Failed(f"{file} cannot be written: {error.strerror}.") from None
    target = file.resolve()
    folder = target.parent
    served = target.name in (*_SERVED, *_REMOVED, "backups") and (folder / "lock").exists()
    if served or (folder.name in _REMOVED and (folder.parent / "lock").exists()):
        data = folder if served else folder.parent
        raise Failed(
            f"{file} belongs to the data folder {data}, whose files only the engine and `ringside restore` replace. "
            f"Choose another name, such as {data / 'backups' / 'by-hand'}, or another folder."
        )


class EngineInUse(EngineRefused):
    """Another process runs the engine of this data folder, at `url`."""

    def __init__(self, data: Path, pid: int, url: str) -> None:
        super().__init__(
            f"The data folder {data} is in use by process {pid}. Stop that process, set RINGSIDE_DATA to another "
            f"folder, or set RINGSIDE_DYNAMODB_URL={url} to share its engine."
        )
        self.url = url
        self.pid = pid


@asynccontextmanager
async def locked_folder(data: Path) -> AsyncIterator[int]:
    """Create the data folder and take its lock, which is released when every process that has the file open is gone."""
    lock = _lock_file(data)
    try:
        await _acquire(lock, data)
        record_holder(lock, "")
        yield lock
    finally:
        os.close(lock)


def _lock_file(data: Path) -> int:
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_private(data)
        return os.open(data / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as failure:
        raise EngineRefused(
            f"The data folder {data} cannot be used: {failure.strerror}. Set RINGSIDE_DATA to a writable folder."
        ) from failure


def _make_private(data: Path) -> None:
    """Make a folder private that was created readable by others, unless it also holds other files."""
    if all(file.name.startswith(OWN_FILES) for file in data.iterdir()):
        with suppress(PermissionError):  # it belongs to another user
            data.chmod(0o700)


async def _acquire(lock: int, data: Path) -> None:
    """Take the lock, or report its holder. A holder that is starting, stopping or was killed is waited for."""
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid, url = _holder(lock)
            if is_alive(pid):
                raise EngineInUse(data, pid, url) from None
            if time.monotonic() > deadline:
                raise EngineRefused(
                    f"The data folder {data} is locked by a process that does not respond; `fuser {data}/lock` shows "
                    "its PID. Stop it, or set RINGSIDE_DATA to another folder."
                ) from None
            await asyncio.sleep(POLL_SECONDS)
        else:
            return


def record_holder(lock: int, holder: str) -> None:
    """Record the lock's holder and its engine's address, for processes that find the lock taken."""
    os.ftruncate(lock, 0)
    os.pwrite(lock, holder.encode(), 0)


def _holder(lock: int) -> tuple[int, str]:
    pid, _, url = os.pread(lock, 200, 0).decode(errors="replace").partition(" ")
    return int(pid) if pid.isdecimal() else 0, url


def is_alive(pid: int) -> bool:
    """Whether there is a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid > 0
