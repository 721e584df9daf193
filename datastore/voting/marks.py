"""Dirty marks: each says that a process may have votes on a board that are not settled yet.

A process has one mark per board, whatever fails. It is a lease of the process's, so that others know when it is dead.
Marks are stored next to their board, so one query reads both.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datastore.dynamo import ConditionFailed
from datastore.dynamo.conditions import where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key

if TYPE_CHECKING:
    from datastore.dynamo import Table
    from datastore.jobs.leases import Held, Leases


@dataclass(frozen=True, slots=True)
class DirtyMark:
    """The process has counted votes on the board, and may have unsettled ones."""

    board: str
    holder: str
    term: int
    beat: int = 0


DIRTY_MARK = Entity(DirtyMark, Key("BOARD#{board}", "BOARD#DIRTY#{holder}"))


async def put_mark(leases: Leases, mark: DirtyMark) -> Held[DirtyMark]:
    """This process's mark on a board, in a term that none of its marks had before."""
    return await leases.begin(DIRTY_MARK, mark)


def is_dead(leases: Leases, mark: DirtyMark) -> bool:
    """Whether the process of a mark is gone, now that it was seen like this."""
    return leases.is_free(DIRTY_MARK, mark)


async def delete_mark(table: Table, mark: DirtyMark) -> None:
    """Every vote of a mark is settled. It stays if its process has written it since it was seen like this."""
    unchanged = where(term=mark.term, beat=mark.beat)
    with suppress(ConditionFailed):
        await table.write(DIRTY_MARK.delete(DIRTY_MARK.item_key(mark), when=unchanged))
