"""What voting keeps of a member: their votes, and for a week where those came from.

| wanted                             | read                                                | requests |
|------------------------------------|-----------------------------------------------------|----------|
| votes and where they came from     | Query VOTER#<id>#<board> of every board, consistent | boards   |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datastore.people.member_items import (
    PERSONAL,
    ErasurePolicy,
    MemberItems,
    Policies,
    Records,
    in_file,
    left_out,
    of_nobody,
)
from datastore.voting.addresses import ADDRESS_VOTER, ORIGIN
from datastore.voting.boards import BOARD, every_slug
from datastore.voting.contenders import CONTENDER, DETAILS, IMPORTED_NAME, NAME, PICTURE
from datastore.voting.marks import DIRTY_MARK
from datastore.voting.results import RESULTS
from datastore.voting.tallies import PAIR, TALLY
from datastore.voting.votes import VOTE

if TYPE_CHECKING:
    from datastore.dynamo import Table
    from datastore.dynamo.entity import Partition


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
        ADDRESS_VOTER: left_out("For a week: it lists the voters of an address by its keyed hash.", PERSONAL),
        **of_nobody(BOARD, CONTENDER, DETAILS, DIRTY_MARK, IMPORTED_NAME, NAME, PAIR, PICTURE, RESULTS, TALLY),
    },
    _read,
)
