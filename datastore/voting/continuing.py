"""Going on with a visitor's walk as a member.

Invariant: a person draws each pair of a board once, before and after signing in. The place of the visitor's next vote
is taken by an item that says who goes on. So no vote of theirs can be counted any more, no matter when its pair was
drawn, and it is the latest that a draw reads. A member who has not voted on the board goes on in the visitor's order
of pairs; one who has keeps their own walk, and both stay counted. Neither item is a verdict. Beyond `MOST_CONTINUED`
visitors of a board the next ones go on by themselves: voiding looks at the votes of each.

| wanted                           | read or write                                                     | requests |
|----------------------------------|-------------------------------------------------------------------|----------|
| continue a walk                  | both voters' latest; the next, if both have any; 2 or 3 items     | 3 or 4   |
| whose walks a member has continued | Query VOTER#<member>#<board> CONTINUES#, consistent             | 1        |
| whether a vote of theirs counts  | the latest; if it does not, those, and the votes of each          | 1; 3 and more |
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime

from datastore.dynamo import Table, optimistic
from datastore.dynamo.entity import Entity, Key
from datastore.dynamo.retries import gather_or_cancel
from datastore.dynamo.writes import absent
from datastore.voting.votes import VOTE, PairVerdict, Vote, any_counts, read_latest_vote

MOST_CONTINUED = 200
_AT_ONCE = 16
"""Voters whose votes are looked at together."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """That a member goes on with a visitor's walk over a board."""

    voter: str
    board: str
    visitor: str


CONTINUATION = Entity(Continuation, Key("VOTER#{voter}#{board}", "CONTINUES#{visitor}"))


async def continue_walk(table: Table, visitor: str, member: str, board: str, now: datetime) -> bool:
    """Whether the member goes on with the visitor's walk now."""

    async def read() -> list[Vote | None]:
        return await gather_or_cancel(read_latest_vote(table, voter, board) for voter in (visitor, member))

    async def change(latest: list[Vote | None]) -> bool:
        last, own = latest
        if last is None:
            return False
        if last.continued_by is not None:
            return last.continued_by == member and last.at == now  # by an attempt whose answer was lost
        if own is not None and len(await voters_of(table, member, board)) > MOST_CONTINUED:
            return False
        end = Vote(visitor, board, last.number + 1, 0, 0, PairVerdict.SKIP, at=now, walk=last.walk, continued_by=member)
        begin = replace(end, voter=member, number=1, continued_by=None, order=visitor)
        await table.transact(
            VOTE.put(end, when=absent()),
            CONTINUATION.put(Continuation(member, board, visitor)),
            *([] if own else [VOTE.put(begin, when=absent())]),
        )
        return True

    return await optimistic(read, change, idempotent=True)


async def voters_of(table: Table, voter: str, board: str) -> list[str]:
    """A voter, and the visitors whose walks over the board they have continued."""
    continued = table.iterate(CONTINUATION.on(voter=voter, board=board), consistent=True)
    return [voter, *[one.visitor async for one in continued]]


async def any_has_counted_vote(table: Table, voters: Collection[str], board: str) -> bool:
    """Whether one of several voters has."""
    return any(await gather_or_cancel((has_counted_vote(table, voter, board) for voter in voters), _AT_ONCE))


async def has_counted_vote(table: Table, voter: str, board: str) -> bool:
    """Whether one of a voter's latest votes counts, or of a visitor's whose walk they have continued.

    Most voters' latest does, so that one is read first. Who has none has continued nothing.
    """
    latest = await read_latest_vote(table, voter, board)
    if latest is None or latest.counts:
        return latest is not None
    looks = (any_counts(table, each, board) for each in await voters_of(table, voter, board))
    return any(await gather_or_cancel(looks, _AT_ONCE))
