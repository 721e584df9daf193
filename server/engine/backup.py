"""Backups of the embedded engine's table: taken while the service writes, checked before they get their name, restored.

A copy of the file made by `cp` is torn: SQLite changes pages meanwhile, and the newest are in its log. A backup reads
everything within one read transaction, through SQLite's backup interface. It is the table of one moment: no
transaction is half in it, and writers do not wait. Meanwhile SQLite's log keeps growing.

A backup is an SQLite file followed by a line with its SHA-256, because SQLite's own check finds no changed letter.
SQLite ignores the line: it reads as many pages as its first one says. A file of which a bit has changed is not
restored; nor is one with triggers or views, which the engine never makes and which would change what it writes.

Scheduled backups go into `backups/` in the data folder, made by a thread of the process that runs the engine. The
newest `KEPT` are kept. Their names tell when each was made, so a restart of the service neither repeats nor skips one.
Those with a moment yet to come, from a clock that was ahead, count as the oldest; files with other names stay.
"""

import hashlib
import os
import re
import secrets
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from glob import escape
from pathlib import Path
from typing import BinaryIO, Final

import structlog

from server import Failed
from server.engine.folder import (
    Stopped,
    find_damage,
    has_table,
    is_alive,
    never,
    open_to_read,
    refuse_own_file,
    sync,
    table_file,
)

# ── backups ──

log = structlog.get_logger("ringside.backup")

KEPT: Final = 7
RETRY_SECONDS: Final = 600.0
_NAME: Final = "ringside-%Y%m%dT%H%M%SZ.db"
_PAGES_A_STEP: Final = 2_000
"""8 MB: some milliseconds, after which the progress is told."""
_SQLITE: Final = b"SQLite format 3\0"
_CHECKSUM: Final = b"\nRingside backup, SHA-256 of what precedes this line: %s\n"
_CHECKSUM_SIZE: Final = len(_CHECKSUM % (64 * b"0"))
_CHECKSUM_LINE: Final = re.compile(_CHECKSUM.replace(b"%s", b"[0-9a-f]{64}"))
_BLOCK: Final = 1 << 20

Advance = Callable[[int, int], None]
"""Told how many pages are left, of how many; an exception ends the copying."""


class BackupFailed(Failed):
    """A backup cannot be made or restored; the message says why and what to do."""


def back_up(
    data: Path, file: Path, advance: Advance = lambda _left, _pages: None, stops: Callable[[], bool] = never
) -> int:
    """Write a backup of a data folder's table, and return its size. An existing backup is replaced by a whole one.

    Once it `stops`, it is given up, with Stopped.
    """
    source = table_file(data)
    if not has_table(data):
        raise BackupFailed(
            f"There is no table in {data}: the embedded engine dynoxide keeps it in {source.relative_to(data)}. Set "
            "RINGSIDE_DATA to the service's data folder."
        )
    refuse_own_file(file)
    if file.exists() and not is_backup(file):
        raise BackupFailed(f"{file} exists and is not a backup. Choose another file.")
    try:
        with _part_of(file) as part:
            copy_file(source, part, advance)
            check_backup(part, stops=stops)
            _append_checksum(part)
            part.replace(file)
        sync(file.parent)
        return file.stat().st_size
    except sqlite3.Error as error:
        raise BackupFailed(f"{source} cannot be backed up to {file}: {error}.") from error
    except OSError as error:
        raise BackupFailed(f"{file} cannot be written: {error.strerror}.") from error


@contextmanager
def _part_of(file: Path) -> Iterator[Path]:
    """A new file that only its owner may read, removed unless it gets another name; so are those of killed processes.

    Also those of this process's number: in a container each process has it, also the one after a killed one.
    """
    prefix = f".{file.name}.part-"
    for leftover in file.parent.glob(f"{escape(prefix)}*"):
        pid = leftover.name.removeprefix(prefix).partition("-")[0]
        if pid.isdecimal() and (int(pid) == os.getpid() or not is_alive(int(pid))):
            leftover.unlink(missing_ok=True)
    part = file.with_name(f"{prefix}{os.getpid()}-{secrets.token_hex(4)}")
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        yield part
    finally:
        for leftover in part.parent.glob(f"{escape(part.name)}*"):
            leftover.unlink()


def copy_file(source: Path, target: Path, advance: Advance = lambda _left, _pages: None) -> None:
    """Copy a table's file as it is at one moment, to a file that needs no log next to it, and sync it to disk."""
    target.parent.mkdir(mode=0o700, exist_ok=True)
    with closing(open_to_read(source)) as old, closing(sqlite3.connect(target, isolation_level=None)) as new:
        old.execute("BEGIN")
        old.execute("SELECT count(*) FROM sqlite_master").fetchall()  # from here on it sees one moment
        old.backup(new, pages=_PAGES_A_STEP, progress=lambda _, left, pages: advance(left, pages))
        new.execute("PRAGMA journal_mode = DELETE")
    sync(target)


def check_backup(file: Path, backup: Path | None = None, stops: Callable[[], bool] = never) -> None:
    """Refuse a file that is not a whole table's, with the reason; it may be a copy of `backup`. All of it is read."""
    backup = backup or file
    if problem := find_damage(file, stops=stops):
        raise BackupFailed(f"{backup} is damaged: {problem}. Use another backup.")
    with closing(open_to_read(file)) as connection:
        parts = connection.execute("SELECT type, name, rootpage FROM sqlite_master").fetchall()
    for kind, name, page in parts:
        if kind not in {"table", "index"} or not page:  # a virtual table has no page
            raise BackupFailed(
                f"{backup} has a {kind} {name!r} that the engine did not make: somebody has changed it. Use another "
                "backup."
            )
    if "_tables" not in (name for _, name, _ in parts):
        raise BackupFailed(f"{backup} is an SQLite file, but not a backup by `ringside backup`.")


def _append_checksum(file: Path) -> None:
    with file.open("r+b") as opened:
        digest = hashlib.file_digest(opened, "sha256")  # which leaves the position at the end
        opened.write(_CHECKSUM % digest.hexdigest().encode())
    sync(file)


def is_backup(file: Path) -> bool:
    """Whether a file may be a backup, by its beginning and its end. A pipe is not opened: it may never have one."""
    try:
        if not file.is_file():
            return False
        with file.open("rb") as opened:
            return opened.read(len(_SQLITE)) == _SQLITE and _CHECKSUM_LINE.fullmatch(_last_bytes(opened)) is not None
    except OSError:
        return False


def _last_bytes(opened: BinaryIO) -> bytes:
    """As many as the line with the checksum has."""
    size = opened.seek(0, os.SEEK_END)
    opened.seek(max(size - _CHECKSUM_SIZE, 0))
    return opened.read()


# ── restoring ──


@contextmanager
def staged_copy(data: Path, backup: Path) -> Iterator[Path]:
    """A data folder with a checked copy of a backup, on the disk of `data`, whose lock the caller holds; removed later.

    `folder.install` has the further steps.
    """
    if not is_backup(backup):
        raise BackupFailed(
            f"{backup} is not a whole backup by `ringside backup`, which begins as an SQLite file and ends with a "
            "checksum. Use another one. To restore the table of another data folder, back it up first: "
            "`RINGSIDE_DATA=FOLDER ringside backup FILE`."
        )
    folder = data / "restoring"
    try:
        shutil.rmtree(folder, ignore_errors=True)
        table_file(folder).parent.mkdir(mode=0o700, parents=True)
        _copy_backup(backup, table_file(folder))
        check_backup(table_file(folder), backup)
        yield folder
    except sqlite3.Error as error:
        raise BackupFailed(f"{backup} cannot be restored: {error}.") from error
    except OSError as error:
        raise BackupFailed(f"{backup} cannot be restored to {data}: {error.strerror}.") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copy_backup(backup: Path, target: Path) -> None:
    """Copy the SQLite file that is in a backup, and refuse it unless its checksum is that of what was copied."""
    digest = hashlib.sha256()
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as copy, backup.open("rb") as source:
        stored = _last_bytes(source)
        left = max(source.tell() - len(stored), 0)
        source.seek(0)
        while left and (block := source.read(min(left, _BLOCK))):
            digest.update(block)
            copy.write(block)
            left -= len(block)
    if stored != _CHECKSUM % digest.hexdigest().encode():
        raise BackupFailed(
            f"{backup} is damaged, or somebody has changed it: its checksum is of another content. Use another backup."
        )


# ── the schedule ──


@contextmanager
def scheduled_backups(data: Path, seconds: float) -> Iterator[None]:
    """Make a backup every `seconds` during the block; at its end, one that is being made is given up."""
    stopping = threading.Event()
    thread = threading.Thread(target=back_up_repeatedly, args=(data, seconds, stopping), name="backups", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def back_up_repeatedly(data: Path, seconds: float, stopping: threading.Event) -> None:
    """Until the service stops; a backup that fails is tried again after `RETRY_SECONDS`."""
    wait = seconds_until_due(data, seconds)
    while not stopping.wait(wait):
        wait = seconds  # whatever becomes of the file: it may be moved away
        try:
            back_up_by_schedule(data, stopping.is_set)
        except Stopped:
            return
        except Exception as error:  # noqa: BLE001 - no failure may end the schedule
            wait = min(RETRY_SECONDS, seconds)
            _record_failure(data, error, wait)


def seconds_until_due(data: Path, seconds: float) -> float:
    age = datetime.now(UTC).timestamp() - backup_figures(data)["newest"]
    return min(max(seconds - age, 0.0), seconds)


def back_up_by_schedule(data: Path, stops: Callable[[], bool]) -> None:
    def advance(_left: int, _pages: int) -> None:
        if stops():
            raise Stopped

    folder = data / "backups"
    folder.mkdir(mode=0o700, exist_ok=True)
    whole = folder / "new"  # always the same, so that the next one removes what was left of a killed one
    size = back_up(data, whole, advance, stops)
    older = _oldest_first(folder)[: 1 - KEPT]
    file = whole.rename(folder / datetime.now(UTC).strftime(_NAME))
    for _, _, other in older:
        other.unlink(missing_ok=True)
    (folder / "failures").unlink(missing_ok=True)
    log.info("backup made", file=str(file), bytes=size, kept=KEPT)


def _record_failure(data: Path, error: Exception, wait: float) -> None:
    expected = isinstance(error, BackupFailed | OSError)
    log.error("backup failed", reason=str(error), retry_seconds=wait, exc_info=None if expected else error)
    with suppress(OSError):  # without this file the metrics still show that there is no new backup
        (data / "backups" / "failures").write_text(f"{backup_figures(data)['failures'] + 1:.0f}")


def backup_figures(data: Path) -> Mapping[str, float]:
    """For the metrics of any process: when the newest backup was made, 0 if there is none, and the failures since."""
    folder, failures = data / "backups", 0.0
    with suppress(OSError, ValueError):
        failures = float((folder / "failures").read_text())
    come = (moment.timestamp() for has_come, moment, _ in _oldest_first(folder) if has_come)
    return {"newest": max(come, default=0.0), "failures": failures}


def _oldest_first(folder: Path) -> Sequence[tuple[bool, datetime, Path]]:
    """The kept backups: whether the moment in its name has come, that moment, and the file."""
    now, found = datetime.now(UTC), []
    for file in folder.glob("ringside-*Z.db"):
        with suppress(ValueError):  # a file that somebody named in a similar way
            moment = datetime.strptime(file.name, _NAME).replace(tzinfo=UTC)
            found.append((moment <= now, moment, file))
    return sorted(found)
