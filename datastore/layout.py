"""The layout of the table's items: its version, named by one item, and the upgrade from the layout before.

| wanted                             | read or write                                                    | requests |
|------------------------------------|------------------------------------------------------------------|----------|
| the table's layout                 | GetItem LAYOUT LAYOUT, consistent                                | 1        |
| the same, if no item names it      | also Scan of 1 item, if empty PutItem, and the GetItem again     | 3 or 4   |
| begin or complete an upgrade       | PutItem LAYOUT LAYOUT                                            | 1 each   |
| upgrade                            | the reads and writes of each part's `upgrade`                    |          |

Layout 1 is the first release's, which wrote no LAYOUT item. Layout 3 has pointers to each member's comments. An empty
table is new and gets the current layout.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from datastore.comments.upgrade import upgrade as upgrade_comments
from datastore.dynamo import ConditionFailed, Table
from datastore.dynamo.conditions import absent, less
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.pickem.upgrade import upgrade as upgrade_pickem
from datastore.voting.upgrade import upgrade as upgrade_voting

if TYPE_CHECKING:
    from datastore.receipts import Once

CURRENT_LAYOUT = 3

Upgrade: TypeAlias = Callable[[Table, Callable[[int], None]], Awaitable[None]]


def _upgrades(once: Once | None) -> Mapping[str, Upgrade]:
    """The parts whose layout changed, in the order in which they are upgraded."""
    return {"voting": upgrade_voting, "pickem": upgrade_pickem, "comments": partial(upgrade_comments, once=once)}


@dataclass(frozen=True, slots=True)
class Layout:
    """The version that all items have; while they are moved to another one, also that version.

    `imported` is the checksum of the export that filled the table; `imported_items` is how many of its items are
    written, until the import is complete.
    """

    version: int
    upgrading_to: int | None = None
    imported: str | None = None
    imported_items: int | None = None


LAYOUT = Entity(Layout, Key("LAYOUT", "LAYOUT"))


async def ensure_layout(table: Table) -> Layout:
    """The table's layout. An empty table gets the current one."""
    if (layout := await table.get(LAYOUT.at(), consistent=True)) is not None:
        return layout
    if await _is_empty(table):
        with suppress(ConditionFailed):  # another process was faster
            await table.write(LAYOUT.put(Layout(CURRENT_LAYOUT), when=absent()))
    # What made the table not empty may be the layout that another process has named since.
    return await table.get(LAYOUT.at(), consistent=True) or Layout(1)


async def _is_empty(table: Table) -> bool:
    async with aclosing(table.scan_items(at_once=1, consistent=True)) as items:
        return await anext(items, None) is None


async def upgrade(table: Table, advance: Callable[[str, int], None], once: Once | None = None) -> None:
    """Move every part's items to the current layout; `advance` is told the part and the number of items just done.

    `once` records in the journal what processes of earlier releases have deleted without recording it.

    Resumable and repeatable: parts move only what still has the old layout. On a table that was upgraded before, this
    moves what processes of earlier releases have written since.
    """
    layout = await ensure_layout(table)
    if layout.version < CURRENT_LAYOUT:
        await _write_layout(table, Layout(layout.version, CURRENT_LAYOUT))
    for part, upgrade_part in _upgrades(once).items():
        await upgrade_part(table, partial(advance, part))
    await _write_layout(table, Layout(CURRENT_LAYOUT))


async def _write_layout(table: Table, layout: Layout) -> None:
    """Write the item unless another process has completed an upgrade."""
    with suppress(ConditionFailed):
        await table.write(LAYOUT.put(layout, when=absent() | less("version", CURRENT_LAYOUT)))
