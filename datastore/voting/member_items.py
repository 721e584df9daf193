"""What voting keeps of a member: their votes, and for a week where those came from; and erasing a voter.

| wanted                         | read or write                                                | requests    |
|--------------------------------|--------------------------------------------------------------|-------------|
| votes and where they came from | Query VOTER#<id>#<board> of every board, consistent          | boards      |
| delete what is left of votes   | Query VOTER#<voter>#<board>, BatchWriteItem                  | 1 for 25    |
| move votes to another name     | a transaction of both items of each                          | 1 for 5     |
| forget a voter's addresses     | the origins of the voter, and the voter among each address's | 1 for 12    |

An erased voter's votes are deleted, or go on counting under a name that is nobody's. Deleting changes no count: the
votes must already be void.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from datastore.dynamo import ConditionFailed, Slice, Table, optimistic
from datastore.dynamo.bulk import clear_partition
from datastore.dynamo.entity import Partition
from datastore.dynamo.writes import Write, present, where
from datastore.people.member_items import (
    PERSONAL,
    TRACE,
    ErasurePolicy,
    MemberItems,
    Policies,
    Records,
    in_file,
    left_out,
    of_nobody,
)
from datastore.values.ids import shard_of
from datastore.voting.boards import BOARD, DIRTY_MARK, every_slug
from datastore.voting.contenders import CONTENDER, DETAILS, IMPORTED_NAME, NAME, PICTURE, RESULTS
from datastore.voting.voiding import ADDRESS_SHARDS, ADDRESS_VOTER, ORIGIN, VOIDING
from datastore.voting.votes import PAIR, TALLY, VOTE, Vote

# ── erasing ──

_AT_ONCE = 5
"""Few, because the embedded engine lets others wait for a transaction."""


async def clear_voter(table: Table, voter: str, board: str) -> None:
    """Delete everything that names a voter of a board. Safe to repeat."""
    shard = shard_of(voter, ADDRESS_SHARDS)
    async for origin in table.iterate(ORIGIN.on(voter=voter, board=board), consistent=True):
        key = ADDRESS_VOTER.at(address=origin.address, board=board, shard=shard, voter=voter)
        await table.write(ADDRESS_VOTER.delete(key))
    await clear_partition(table, Partition(VOTE, None, VOTE.on(voter=voter, board=board).pk))
    async for voiding in table.iterate(VOIDING.on(), consistent=True):
        if voiding.board == board and voter in voiding.voters:
            others = tuple(each for each in voiding.voters if each != voter)
            with suppress(ConditionFailed):  # it has expired
                left = VOIDING.item_key(voiding)
                await table.write(VOIDING.update(left, values={"voters": others}, add={"version": 1}, when=present()))


async def move_votes(table: Table, voter: str, board: str, alias: str) -> int:
    """Let the votes of a voter be those of another name; return their number. Safe to repeat."""

    async def move(found: Slice[Vote]) -> int:
        if found.records:
            await table.transact(*(write for vote in found.records for write in _move(vote, alias)))
        return len(found.records)

    moved, of_voter = 0, VOTE.on(voter=voter, board=board)
    while some := await optimistic(
        lambda: table.query(of_voter, limit=_AT_ONCE, consistent=True), move, idempotent=True
    ):
        moved += some
    return moved


def _move(vote: Vote, alias: str) -> Iterator[Write]:
    unchanged = where(void=vote.void)
    yield VOTE.delete(VOTE.item_key(vote), when=present() & unchanged)
    yield VOTE.put(replace(vote, voter=alias, origin=None))


# ── member items ──


async def _read(table: Table, user: str) -> Records:
    for board in await every_slug(table):
        collection: Partition[Any] = VOTE.on(voter=user, board=board)
        async for vote in table.iterate(collection, consistent=True):
            yield VOTE, vote
        async for origin in table.iterate(ORIGIN.on(voter=user, board=board), consistent=True):
            yield ORIGIN, origin


MEMBER_ITEMS = MemberItems(
    {
        VOTE: in_file(
            "vote",
            "One of your verdicts: the pair by the numbers of both contenders, and which of them won.",
            Policies(ErasurePolicy.DELETED, ErasurePolicy.MOVED, ErasurePolicy.REJECTED),
            without={
                "origin": "A random tag, which for a week leads to the network address that the vote came from.",
            },
        ),
        ORIGIN: in_file(
            "voteOrigin",
            "For a week: that some votes on a board came from one network address.",
            without={
                "tag": "The tag that `vote.origin` names.",
                "address": "A keyed hash of the address: two files would show that their members share one.",
            },
        ),
        VOIDING: left_out("For a day: it lists voters whose votes an editor has voided together.", TRACE),
        ADDRESS_VOTER: left_out("For a week: it lists the voters of an address by its keyed hash.", PERSONAL),
        **of_nobody(BOARD, CONTENDER, DETAILS, DIRTY_MARK, IMPORTED_NAME, NAME, PAIR, PICTURE, RESULTS, TALLY),
    },
    _read,
)
