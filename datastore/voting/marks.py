"""Dirty marks: each says that a process may have votes on a board that are not settled yet.

A process has one mark per board, whatever fails. Marks are stored next to their board, so one query reads both.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from datastore.dynamo import ConditionFailed
from datastore.dynamo.conditions import where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datastore.dynamo import Table

_KEPT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class DirtyMark:
    """A process has counted votes on the board since `since`, may count more before `until`, and has not settled all.

    A `clean` mark says that all of them are settled. It is left for processes of the first release: they settle rows of
    their own, once after `until`.
    """

    board: str
    process: str
    until: datetime
    since: datetime | None = None
    clean: bool = False

    @property
    def expires_at(self) -> datetime:
        return self.until + _KEPT


DIRTY_MARK = Entity(DirtyMark, Key("BOARD#{board}", "BOARD#STIRRED#{process}"), ttl="expires_at")


async def write_mark(table: Table, mark: DirtyMark) -> None:
    await table.write(DIRTY_MARK.put(mark))


async def clean_mark(table: Table, mark: DirtyMark, until: datetime) -> None:
    """Announce that every vote of a mark is settled, unless its process has written the mark again."""
    with suppress(ConditionFailed):
        await table.write(DIRTY_MARK.put(replace(mark, until=until, clean=True), when=where(until=mark.until)))


async def delete_marks(table: Table, marks: Iterable[DirtyMark]) -> None:
    await table.write_many(DIRTY_MARK.delete(DIRTY_MARK.item_key(mark)) for mark in marks)
