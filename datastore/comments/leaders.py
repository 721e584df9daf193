"""The products with the most five-star comments, kept in step with the counts.

| wanted                    | read or write                                             | requests           |
|---------------------------|-----------------------------------------------------------|--------------------|
| products by five stars    | gsi1 LEADERS#<shard>, 8 shards merged                      | 8 at once a page   |
| products not settled yet  | gsi1 UNSETTLED#<shard>                                    | 8 at once          |
| settle one product        | LEADER, counts, LEADER, and at once each unsettled shard  | 4 in a row         |

A change of five-star comments marks its shard of the counts in the same write. So the index lists every product whose
LEADER item may be out of date, also after a crash. The mark is removed once LEADER includes that shard's number. An
entry that the index shows late is settled late; one that it shows after it was settled costs two reads.

2,000 products settled in a second move 2,000 entries of the ranking, 500 write units for each of its keys.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace

from datastore.comments.counts import MARK_SHARDS, TALLY, Tally, read_tallies
from datastore.dynamo import ConditionFailed, Page, PageRequest, Table, Window, optimistic
from datastore.dynamo.conditions import absent, present, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.dynamo.merge import shard_limit
from datastore.values.shards import shard_of

LEADER_SHARDS = 8
_MARKS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Leader:
    """A product's number of five-star comments, at most two seconds old. The index lists products that have any."""

    product: str
    five_stars: int = 0
    revision: int = 1

    @property
    def shard(self) -> int:
        return shard_of(self.product, LEADER_SHARDS)


LEADER = Entity(
    Leader,
    Key("STATISTICS#{product}", "LEADER"),
    gsi1=Key("LEADERS#{shard}", "{five_stars:best_first}#{product}", when="five_stars"),
)


def leaders_request(window: Window) -> PageRequest:
    return window.open("topProducts")


async def read_leaders_page(table: Table, request: PageRequest) -> Page[Leader]:
    """Products by five-star comments, best first; equal ones in the order of their ids."""
    partitions = [LEADER.on("gsi1", shard=shard) for shard in range(LEADER_SHARDS)]
    return await table.page(partitions, request, limit=shard_limit(request.wanted, LEADER_SHARDS))


async def read_unsettled_products(table: Table) -> list[str]:
    """Products whose LEADER item may be out of date; of a large number a part, and after settling them the rest."""
    marks = await asyncio.gather(
        *(table.query(TALLY.on("gsi1", mark_shard=shard), limit=_MARKS_AT_ONCE) for shard in range(MARK_SHARDS))
    )
    return list(dict.fromkeys(tally.product for part in marks for tally in part.records))


async def settle_product(table: Table, product: str) -> None:
    """Bring LEADER up to date with the counts. Several processes may do so at once and end with the right sum.

    LEADER is read before the counts. It is written only if its revision has not changed since, and always if a shard is
    marked. So a process with older counts cannot write after one that read newer counts and removed the mark. A shard
    that changed meanwhile keeps its mark.
    """
    key = LEADER.at(product=product)

    async def settle(leader: Leader | None) -> None:
        tallies = await read_tallies(table, product)
        marked = [tally for tally in tallies if tally.unsettled]
        five_stars = max(0, sum(tally.r5 for tally in tallies))
        if not marked and five_stars == (leader.five_stars if leader else 0):
            return
        await _write_leader(table, product, leader, five_stars)
        await asyncio.gather(*(_unmark(table, tally) for tally in marked))

    await optimistic(lambda: table.get(key, consistent=True), settle, idempotent=True)


async def _write_leader(table: Table, product: str, current: Leader | None, five_stars: int) -> None:
    if current is None:
        await table.write(LEADER.put(Leader(product, five_stars), when=absent()))
    else:
        raised = Leader(product, five_stars, current.revision + 1)
        await table.write(LEADER.put(raised, when=present() & where(revision=current.revision)))


async def _unmark(table: Table, tally: Tally) -> None:
    """Remove a mark unless the shard was marked again: then its writer, or a sweep, settles the product again."""
    unmarked = replace(tally, unsettled=None)
    with suppress(ConditionFailed):
        await table.write(TALLY.update_with_indexes(unmarked, "unsettled", when=present() & where(marks=tally.marks)))
