"""Dirty marks: each says that a process may have votes on a board that are not settled yet.

A process has one mark per board, whatever fails. Marks are stored next to their board, so one query reads both.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from datastore.dynamo import ConditionFailed
from datastore.dynamo.conditions import where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key

if TYPE_CHECKING:
    from datastore.dynamo import Table

_KEPT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class DirtyMark:
    """A process has counted votes on the board since `since`, may count more until `until`, and has unsettled ones."""

    board: str
    process: str
    until: datetime
    since: datetime

    @property
    def expires_at(self) -> datetime:
        return self.until + _KEPT


DIRTY_MARK = Entity(DirtyMark, Key("BOARD#{board}", "BOARD#DIRTY#{process}"), ttl="expires_at")


async def write_mark(table: Table, mark: DirtyMark) -> None:
    await table.write(DIRTY_MARK.put(mark))


async def delete_mark(table: Table, mark: DirtyMark) -> None:
    """Every vote of a mark is settled. It stays if its process has written it again."""
    with suppress(ConditionFailed):
        await table.write(DIRTY_MARK.delete(DIRTY_MARK.item_key(mark), when=where(until=mark.until)))
