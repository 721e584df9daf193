"""The data folder of an embedded engine: its lock, its table's file, and what a restore puts in the table's place.

| in the folder    | what it is                                                                                       |
|------------------|--------------------------------------------------------------------------------------------------|
| `lock`           | locked while anybody can write to the table; the holder's PID and its engine's address           |
| `secret`         | signs what clients keep; made by the settings                                                    |
| `engine.log`     | what the engine has printed since its start                                                      |
| `table/`         | the table's SQLite file, `table.db`, and SQLite's own files                                      |
| `backups/`       | scheduled backups, and other people's files                                                      |
| `restoring/`     | a data folder in which a restore checks the copy of a backup                                     |
| `restored/`      | the checked copy, which the process that holds the lock puts in the place of `table/`            |
| `replaced/TIME/` | a data folder with the table that a restore has replaced                                         |
"""

import asyncio
import fcntl
import math
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import structlog

from server import Failed

# ── names in the folder ──

log = structlog.get_logger("ringside.engine")

POLL_SECONDS: Final = 0.01
LOCK_TIMEOUT: Final = 6.0
"""Longer than an engine may take to stop."""
CHECK_SECONDS: Final = 5.0
_STEPS: Final = 10_000
"""Instructions of SQLite between two looks at the clock: less than a millisecond."""
_OF_CONTENT: Final = {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
"""SQLite's codes for what is wrong in a file. The others are about what the system refuses, such as room on a disk."""
_RECORD_BYTES: Final = 200
"""Of the lock's record, always as many: to write it again needs no room, which a full disk does not have."""
_OWN: Final = {"lock", "secret", "engine.log", "table", "backups", "restoring", "restored", "replaced"}


class EngineRefused(Failed):
    """No engine can be started for this data folder; the message says why and what to do."""


class EngineInUse(EngineRefused):
    """Another process runs the engine of this data folder, at `url`."""

    def __init__(self, data: Path, pid: int, url: str) -> None:
        super().__init__(
            f"The data folder {data} is in use by process {pid}. Stop that process, set RINGSIDE_DATA to another "
            f"folder, or set RINGSIDE_DYNAMODB_URL={url} to share its engine."
        )
        self.url = url
        self.pid = pid


def table_file(data: Path) -> Path:
    return data / "table" / "table.db"


def is_data_folder(folder: Path) -> bool:
    """Whether a service or a command has used it as one: a data folder is known by its lock."""
    return _exists(folder / "lock")


def has_table(data: Path) -> bool:
    return _exists(table_file(data))


def _exists(file: Path) -> bool:
    """Whether a data folder has this file; Failed if it cannot be looked for, as by another user than the service's."""
    try:
        return file.exists()
    except OSError as error:
        raise Failed(
            f"{file} cannot be read: {error.strerror}. Set RINGSIDE_DATA to the service's data folder, and run the "
            "command as the service's user."
        ) from None


def refuse_own_file(file: Path) -> None:
    """Failed if a path leads to what a data folder, this one or another, consists of: no result is written there.

    Other files in it, and in `backups/`, are anybody's.
    """
    try:
        with suppress(FileNotFoundError):
            file.stat()
    except OSError as error:  # a name that is too long, or links that lead to each other
        raise Failed(f"{file} cannot be written: {error.strerror}.") from None
    target = file.resolve()
    for data in target.parents:
        first, *inner = target.relative_to(data).parts
        if first in _OWN and not (first == "backups" and inner) and is_data_folder(data):
            raise Failed(
                f"{file} belongs to the data folder {data}, whose files only the engine and `ringside restore` "
                f"replace. Choose another name, such as {data / 'backups' / 'by-hand'}, or another folder."
            )


# ── the lock ──


@asynccontextmanager
async def locked_folder(data: Path) -> AsyncIterator[int]:
    """Create the data folder and take its lock, which is free again when every process that has it open is gone."""
    lock = _lock_file(data)
    try:
        await _acquire(lock, data)
        try:
            record_holder(lock, "")
        except OSError as failure:
            raise _unusable(data, failure) from failure
        complete_restore(data)
        yield lock
    finally:
        os.close(lock)


def _lock_file(data: Path) -> int:
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(data / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as failure:
        raise _unusable(data, failure) from failure


def _unusable(data: Path, failure: OSError) -> EngineRefused:
    return EngineRefused(
        f"The data folder {data} cannot be used: {failure.strerror}. Set RINGSIDE_DATA to a writable folder."
    )


async def _acquire(lock: int, data: Path) -> None:
    """Take the lock, or report its holder. A holder that is starting, stopping or was killed is waited for."""
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        holder, _, url = os.pread(lock, _RECORD_BYTES, 0).decode(errors="replace").rstrip().partition(" ")
        if holder.isdecimal() and is_alive(int(holder)):
            raise EngineInUse(data, int(holder), url)
        if time.monotonic() > deadline:
            raise EngineRefused(
                f"The data folder {data} is locked by a process that does not respond; `fuser {data}/lock` shows its "
                "PID. Stop it, or set RINGSIDE_DATA to another folder."
            )
        await asyncio.sleep(POLL_SECONDS)


def record_holder(lock: int, holder: str) -> None:
    """Record the lock's holder and its engine's address, for processes that find the lock taken."""
    os.pwrite(lock, holder.encode().ljust(_RECORD_BYTES), 0)


def is_alive(pid: int) -> bool:
    """Whether there is a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid > 0


# ── the table's file ──


def check_file(file: Path) -> None:
    """Refuse a file in which the table cannot be, with the reason, before an engine opens it. There may be none yet.

    SQLite notices damage only when it reads the damaged page: the engine would serve the rest, and take an empty file
    for a new table. The check reads some 400 MB a second, and of a large file only the beginning.
    """
    if not file.exists():
        return
    if file.stat().st_size == 0:
        raise EngineRefused(
            f"{file} is empty, and a table's file never is: what it held is lost. Restore a copy of it, or delete the "
            "file to begin with an empty table."
        )
    try:
        problem = find_damage(file, "quick_check", CHECK_SECONDS)
    except sqlite3.Error as error:
        raise EngineRefused(
            f"{file} cannot be read: {error}. Look whether its disk is full, whether this user may write to all that "
            "is in RINGSIDE_DATA, and at the system's log. Nothing says that the table is damaged."
        ) from error
    if problem:
        raise EngineRefused(
            f"{file} is damaged: {problem}. Restore a copy of it, or move it away to begin with an empty table; "
            "`sqlite3 FILE .recover` may save a part of it."
        )


class Stopped(Exception):
    """What was under way is not wanted any more."""


def never() -> bool:
    return False


def find_damage(
    file: Path, check: str = "integrity_check", seconds: float = math.inf, stops: Callable[[], bool] = never
) -> str | None:
    """What SQLite's check finds wrong with a file, in so many seconds; Stopped once it `stops`.

    Where the system keeps it from reading the file, its error is raised.
    """
    ends = time.monotonic() + seconds
    try:
        with closing(open_to_read(file)) as connection:
            connection.set_progress_handler(lambda: stops() or time.monotonic() > ends, _STEPS)
            ((result,),) = connection.execute(f"PRAGMA {check}(1)")
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF in _OF_CONTENT:
            return str(error)
        if str(error) != "interrupted":
            raise
        if stops():
            raise Stopped from None
        if time.monotonic() <= ends:  # by Ctrl-C, whose exception SQLite keeps to itself
            raise KeyboardInterrupt from None
        log.info("the table's file is large: only a part of it was checked", file=str(file), seconds=seconds)
        return None
    return None if result == "ok" else " ".join(str(result).split())


def open_to_read(file: Path) -> sqlite3.Connection:
    """A connection that changes nothing, but for what a killed writer began: that is undone by its journal first."""
    mode = "rw" if file.with_name(f"{file.name}-journal").exists() else "ro"
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None)


# ── the last steps of a restore ──


def install(data: Path, checked: Path) -> Path | None:
    """Put the table of a checked data folder in the place of another one's. The caller holds the latter's lock.

    Returns the data folder to which a table went that was there.
    """
    table = table_file(checked).parent
    for path in (*table.iterdir(), table):
        sync(path)
    table.rename(data / "restored")
    return complete_restore(data)


def complete_restore(data: Path) -> Path | None:
    """Put `restored/` in the place of `table/`, if a restore has come so far. The caller holds the folder's lock.

    Wherever it is killed, the next process that takes the lock goes on. Nothing is ever deleted.
    """
    restored, table, aside = data / "restored", table_file(data).parent, None
    if not restored.exists():
        return None
    sync(data)
    if table.exists():
        aside = data / "replaced" / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
        aside.mkdir(mode=0o700, parents=True)
        table.rename(aside / "table")
        sync(aside)
        sync(aside.parent)
    restored.rename(table)
    sync(data)
    return aside


def sync(path: Path) -> None:
    """Wait until a file, or a folder's names, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
