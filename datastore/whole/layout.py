"""The items about the table itself: the number of its layout, and which parts of the demo data are complete.

| wanted                             | read or write                                                    | requests |
|------------------------------------|------------------------------------------------------------------|----------|
| the table's layout                 | GetItem LAYOUT LAYOUT, consistent                                | 1        |
| the same, if no item names it      | also Scan of 1 item; if empty PutItem, else the GetItem again    | 3        |
| whether a part of the demo is there | GetItem DEMO#<part> DEMO                                        | 1        |
| mark a part as complete            | PutItem DEMO#<part> DEMO                                         | 1        |

An empty table is new and gets the current layout.
"""

from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime

from datastore.dynamo import Table
from datastore.dynamo.entity import Entity, Key
from datastore.people.member_items import MemberItems, of_nobody

# ── layout ──

CURRENT_LAYOUT = 1


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout that all items have.

    `imported` is the checksum of the export that filled the table; `imported_items` is how many of its items are
    written, until the import is complete.
    """

    version: int
    imported: str | None = None
    imported_items: int | None = None


LAYOUT = Entity(Layout, Key("LAYOUT", "LAYOUT"))


async def read_layout(table: Table) -> Layout | None:
    return await table.get(LAYOUT.at(), consistent=True)


async def ensure_layout(table: Table) -> Layout | None:
    """The table's layout. An empty table gets the current one; None if the table has items and none names a layout."""
    if (layout := await read_layout(table)) is not None:
        return layout
    async with aclosing(table.scan_items(at_once=1, consistent=True)) as items:
        is_empty = await anext(items, None) is None
    if is_empty:
        return await table.put_once(LAYOUT, Layout(CURRENT_LAYOUT))
    # What made the table not empty may be the layout that another process has named since.
    return await read_layout(table)


# ── demo ──
# The parts of the demo data that are complete.


@dataclass(frozen=True, slots=True)
class DemoPart:
    """A part whose demo data is complete."""

    part: str
    at: datetime


DEMO_PART = Entity(DemoPart, Key("DEMO#{part}", "DEMO"))


async def is_seeded(table: Table, part: str) -> bool:
    return await table.get(DEMO_PART.at(part=part), consistent=True) is not None


async def mark_seeded(table: Table, part: str, now: datetime) -> None:
    await table.write(DEMO_PART.put(DemoPart(part, now)))


# ── member items ──
# The items about the table itself keep nothing of a member.

MEMBER_ITEMS = MemberItems(of_nobody(DEMO_PART, LAYOUT))
