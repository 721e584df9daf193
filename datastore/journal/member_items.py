"""What the journal keeps of a member: what they did.

| wanted           | read                                       | requests |
|------------------|--------------------------------------------|----------|
| what they did    | gsi1 ACTOR#User:<id>#<shard>, 4 shards     | 4        |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from datastore.changes.occurrences import (
    ACTOR_SHARDS,
    DELIVERY,
    OCCURRENCE,
    WEBHOOK,
    WEBHOOK_ADDITIONS,
)
from datastore.people.member_items import (
    TRACE,
    MemberItems,
    Records,
    in_file,
    left_out,
    of_nobody,
)

if TYPE_CHECKING:
    from datastore.dynamo import Table


async def _read(table: Table, user: str) -> Records:
    for shard in range(ACTOR_SHARDS):
        done_by = OCCURRENCE.on("gsi1", actor=f"User:{user}", actor_shard=shard)
        async for occurrence in table.iterate(done_by):
            yield OCCURRENCE, occurrence


MEMBER_ITEMS = MemberItems(
    {
        OCCURRENCE: in_file(
            "occurrence", "Something that you did, with its time and object.", TRACE, times_in_id=("at",)
        ),
        DELIVERY: left_out("Says nothing about a member.", TRACE),
        **of_nobody(WEBHOOK, WEBHOOK_ADDITIONS),
    },
    _read,
)
