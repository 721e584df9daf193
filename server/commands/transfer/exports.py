"""Exports a whole table.

A Scan shows each item at another moment, so beside writers it may hold a transaction in half. The embedded engine's
table is therefore read from a copy of one moment. Other tables are read again, consistently, until two passes agree:
each item then had, at the end of the first of both, the value that both have seen, so the export is the table of that
moment. (Unless a value changed and changed back in between, which no count of the service does without a trace.) If
writers do not pause for that long, `PASSES` passes end it; the export then holds each item as it was at some time of
the last pass, and says how many changed meanwhile.

What was read is kept beside the file, in FILE.part, until the export is complete; an interrupted export goes on with
it. A table that is not a copy may change in between, so each pass after the first is read by one process, from its
beginning to its end. With a new copy the export starts over: rows of two copies are never mixed.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from datastore.dynamo import Table
from datastore.whole.table import SEGMENTS, read_rows
from server.commands.files import STANDARD, open_output, owner_only
from server.commands.transfer.file import End, is_export, write_export
from server.commands.transfer.sources import identity, table_to_read
from server.commands.transfer.spool import Spool, SpoolInUse, open_spool
from server.engine.backup import sync
from server.engine.folder import refuse_own_file
from server.failures import Failed
from server.settings import Settings

PASSES: Final = 4
Advance = Callable[[str, int], None]
"""Told what is being done, and with how many items it is."""


def export_table(settings: Settings, file: Path, advance: Advance) -> End:
    """Export the table of these settings to a file, which appears once it is complete."""
    if file != STANDARD:
        return _export_to_file(settings, file, advance)
    with tempfile.TemporaryDirectory(prefix="ringside-") as folder:
        whole = Path(folder, "export")
        end = _export_to_file(settings, whole, advance)
        with whole.open("rb") as source, open_output(file) as target:
            shutil.copyfileobj(source, target)
    return end


def _export_to_file(settings: Settings, file: Path, advance: Advance) -> End:
    refuse_own_file(file)
    if file.exists() and not _may_be_replaced(file):
        raise Failed(f"{file} exists and is not an export. Choose another file.")
    part = file.with_name(f"{file.name}.part")
    whole = part / "whole"
    try:
        part.mkdir(mode=0o700, exist_ok=True)
        with open_spool(part / "rows") as spool:
            changed = asyncio.run(_read(settings, spool, part / "copy", advance))
            with open(whole, "wb", opener=owner_only) as target:
                end = write_export(target, spool.rows(), changed, partial(advance, "writing"))
                target.flush()
                os.fsync(target.fileno())
        whole.rename(file)
        sync(file.parent)
        shutil.rmtree(part)
    except SpoolInUse:
        raise Failed(f"Another export is writing {file}. Wait for it, or choose another file.") from None
    except sqlite3.Error as error:
        raise Failed(f"What was read cannot be kept in {part}: {error}.") from None
    except OSError as error:
        raise Failed(f"{file} cannot be written: {error.strerror}.") from None
    return end


def _may_be_replaced(file: Path) -> bool:
    if not file.is_file():
        return False
    with file.open("rb") as source:
        return is_export(source)


async def _read(settings: Settings, spool: Spool, copy: Path, advance: Advance) -> int:
    """Read the table until two passes agree; returns how many items differ between the last two.

    An earlier run may have ended in any pass. Even so a whole pass follows, in this process: what was kept may be days
    old.
    """
    changed = 0
    async with table_to_read(settings, copy) as (table, copied_at):
        spool.begin(f"{identity(settings)} {copied_at}")
        for _ in range(PASSES):
            again = spool.number > 1
            progress = partial(advance, "reading again" if again else "reading")
            await asyncio.gather(*(_read_segment(table, spool, segment, progress) for segment in range(SEGMENTS)))
            differing = spool.end_pass()
            changed = differing if again and not copied_at else 0
            if copied_at or (again and not changed):
                break
    return changed


async def _read_segment(table: Table, spool: Spool, segment: int, advance: Callable[[int], None]) -> None:
    start, done = spool.position(segment)
    if done:
        return
    async for rows, position in read_rows(table, segment, start):
        spool.add(segment, rows, position)
        advance(spool.seen)
