"""Backups of the embedded engine's file: taken while the service writes, checked before they get their name, restored.

A copy of the file made by `cp` is torn: SQLite changes pages meanwhile, and the newest are in its log. A backup reads
everything within one read transaction, through SQLite's backup interface. It is the table of one moment: no
transaction is half in it, and writers do not wait. Meanwhile SQLite's log keeps growing.

A backup is an SQLite file followed by a line with its SHA-256, because SQLite's own check finds no changed letter.
SQLite ignores the line: it reads as many pages as its first one says. A file of which a bit has changed is not
restored; nor is one with triggers or views, which the engine never makes and which would change what it writes.

| step of a restore                                     | killed after it                                            |
|-------------------------------------------------------|------------------------------------------------------------|
| copy the backup to `restoring/table.db` and check it  | nothing has changed; a leftover is removed by the next one |
| name the copy `table.db.restored`                     | the engine's next start goes on with the next step         |
| move the table's present files to `replacing/`        | the same                                                   |
| name the copy `table.db`                              | the same                                                   |
| name `replaced/` `removing/`, and remove it           | the same                                                   |
| name `replacing/` `replaced/`                         | done                                                       |

A restore that is run again after it was killed goes on with `replacing/`, and deletes nothing of it. The table that it
restores may be the one in `replaced/`, which is there until its copy is `table.db`.
"""

import hashlib
import os
import re
import secrets
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import BinaryIO, Final

from server.engine.folder import TABLE_PARTS, is_alive, refuse_own_file
from server.engine.integrity import open_to_read
from server.engine.programs import table_file
from server.failures import Failed

REPLACED: Final = "replaced"
"""The folder, in the data folder, of the files that the last restore has replaced."""
_REPLACING: Final = "replacing"
_RESTORING: Final = "restoring"
_RESTORED: Final = "table.db.restored"
_REMOVING: Final = "removing"
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


def back_up(data: Path, file: Path, advance: Advance | None = None) -> int:
    """Write a backup of a data folder's table, and return its size. An existing backup is replaced by a whole one."""
    source = table_file(data)
    if not source.exists():
        raise BackupFailed(
            f"There is no table in {data}: the embedded engine dynoxide keeps it in {source.name}. Set RINGSIDE_DATA "
            "to the service's data folder."
        )
    refuse_own_file(file)
    if file.exists() and file.samefile(source):
        raise BackupFailed(f"{file} is the table itself, by another name. Choose another file.")
    if file.exists() and not is_backup(file):
        raise BackupFailed(f"{file} exists and is not a backup. Choose another file.")
    part = file.with_name(f".{file.name}.part-{os.getpid()}-{secrets.token_hex(4)}")
    _remove_leftovers(file)
    try:
        with _private(part):
            copy_file(source, part, advance)
            check_backup(part)
            _append_checksum(part)
            part.replace(file)
        sync(file.parent)
        return file.stat().st_size
    except sqlite3.Error as error:
        raise BackupFailed(f"{source} cannot be backed up to {file}: {error}.") from error
    except OSError as error:
        raise BackupFailed(f"{file} cannot be written: {error.strerror}.") from error


def _remove_leftovers(file: Path) -> None:
    """Remove the parts of backups to this file by processes that were killed.

    Also those of this process's number: in a container each process has it, also the one after a killed one.
    """
    prefix = f".{file.name}.part-"
    for leftover in file.parent.glob(f"{escape(prefix)}*"):
        pid = leftover.name.removeprefix(prefix).partition("-")[0]
        if pid.isdecimal() and (int(pid) == os.getpid() or not is_alive(int(pid))):
            leftover.unlink(missing_ok=True)


@contextmanager
def _private(part: Path) -> Iterator[None]:
    """A new file that only its owner may read; removed unless it has got another name."""
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        yield
    finally:
        for suffix in TABLE_PARTS:
            part.with_name(part.name + suffix).unlink(missing_ok=True)


def copy_file(source: Path, target: Path, advance: Advance | None = None) -> None:
    """Copy a table's file as it is at one moment, to a file that needs no log beside it, and sync it to disk."""

    def told(_: int, left: int, pages: int) -> None:
        if advance is not None:
            advance(left, pages)

    with closing(open_to_read(source)) as old, closing(sqlite3.connect(target, isolation_level=None)) as new:
        old.execute("BEGIN")
        old.execute("SELECT count(*) FROM sqlite_master").fetchall()  # from here on it sees one moment
        old.backup(new, pages=_PAGES_A_STEP, progress=told)
        new.execute("PRAGMA journal_mode = DELETE")
    sync(target)


def check_backup(file: Path, backup: Path | None = None) -> None:
    """Refuse a file that is not a whole table's, with the reason; it may be a copy of `backup`. All of it is read."""
    backup = backup or file
    try:
        with closing(open_to_read(file)) as connection:
            ((result,),) = connection.execute("PRAGMA integrity_check(1)")
            parts = connection.execute("SELECT type, name, rootpage FROM sqlite_master").fetchall()
    except sqlite3.Error as error:
        raise BackupFailed(f"{backup} is damaged: {error}. Use another backup.") from error
    if result != "ok":
        raise BackupFailed(f"{backup} is damaged: {' '.join(str(result).split())}. Use another backup.")
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
    """A folder with a checked copy of a backup, on the disk of the data folder; removed afterwards.

    The caller holds the folder's lock.
    """
    if not is_backup(backup):
        raise BackupFailed(
            f"{backup} is not a whole backup by `ringside backup`, which begins as an SQLite file and ends with a "
            "checksum. Use another one. To restore the table of another data folder, back it up first: "
            "`RINGSIDE_DATA=FOLDER ringside backup FILE`."
        )
    folder = data / _RESTORING
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        copy_backup(backup, table_file(folder))
        check_backup(table_file(folder), backup)
        yield folder
    except sqlite3.Error as error:
        raise BackupFailed(f"{backup} cannot be restored: {error}.") from error
    except OSError as error:
        raise BackupFailed(f"{backup} cannot be restored to {data}: {error.strerror}.") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def copy_backup(backup: Path, target: Path) -> None:
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
    sync(target)


def install(data: Path, folder: Path) -> None:
    """Put a staged copy in the place of the table, whose files move to `replaced/`."""
    with closing(sqlite3.connect(table_file(folder), isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")  # what an engine has written since is in its log
    sync(table_file(folder))
    table_file(folder).rename(data / _RESTORED)
    sync(data)
    complete_restore(data)


def complete_restore(data: Path) -> None:
    """Finish a restore that was killed after its copy was complete. The caller holds the folder's lock."""
    shutil.rmtree(data / _REMOVING, ignore_errors=True)
    restored, present, aside = data / _RESTORED, table_file(data), data / _REPLACING
    if restored.exists():
        aside.mkdir(mode=0o700, exist_ok=True)
        for part in (f"{present.name}{part}" for part in TABLE_PARTS):
            # What is there already was moved by a killed restore, whose own copy nothing has served.
            if not (aside / part).exists():
                with suppress(FileNotFoundError):
                    (data / part).rename(aside / part)
        sync(aside)
        restored.rename(present)
        sync(data)
    if not aside.exists():
        return
    if any(aside.iterdir()):
        _remove_replaced(data)
        aside.rename(data / REPLACED)
    else:
        aside.rmdir()  # there was no table to replace
    sync(data)


def _remove_replaced(data: Path) -> None:
    """All of it, under another name: nobody restores a table whose log has been removed already."""
    with suppress(FileNotFoundError):
        (data / REPLACED).rename(data / _REMOVING)
        sync(data)
        shutil.rmtree(data / _REMOVING, ignore_errors=True)


def sync(path: Path) -> None:
    """Wait until a file, or a folder's names, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
