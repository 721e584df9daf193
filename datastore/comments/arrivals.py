"""Arrivals: the comments of a product in the order in which they could first be seen, for feeds."""

from __future__ import annotations

import asyncio

from datastore.comments.pages import ULID_LENGTH
from datastore.comments.records import COMMENT, LATE_ARRIVAL, Comment
from datastore.dynamo import Table

_AT_ONCE = 100


async def read_arrivals(table: Table, product: str, past: str, up_to: str) -> tuple[list[tuple[str, Comment]], str]:
    """The comments that arrived between two positions, oldest first, and the position up to which they are complete.

    The reads are consistent. At most a hundred posted comments and as many late arrivals are read, so that position may
    be before `up_to`.
    """
    posts, late_arrivals = COMMENT.on(product=product), LATE_ARRIVAL.on(product=product)
    posted, late = await asyncio.gather(
        table.query(posts.past(f"COMMENT#{past}").between(None, f"COMMENT#{up_to}"), limit=_AT_ONCE, consistent=True),
        table.query(
            late_arrivals.past(f"ARRIVAL#{past}").between(None, f"ARRIVAL#{up_to}"),
            limit=_AT_ONCE,
            consistent=True,
        ),
    )
    late_keys = [COMMENT.at(product=product, ulid=one.comment) for one in late.records]
    late_comments = await table.get_many(late_keys, consistent=True)
    arrivals = [(comment.ulid, comment) for comment in posted.records if comment.arrived is None]
    arrivals += [
        (arrival.position, comment)
        for arrival, comment in zip(late.records, late_comments, strict=True)
        if comment is not None and comment.arrived == arrival.position
    ]
    complete_to = min((part.last[-ULID_LENGTH:] for part in (posted, late) if part.last), default=up_to)
    in_reach = [(position, comment) for position, comment in arrivals if position <= complete_to]
    return sorted(in_reach, key=lambda arrival: arrival[0]), complete_to
