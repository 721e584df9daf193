"""What voting keeps of a member: their votes, and for a week where those came from; and erasing a voter.

| wanted                         | read or write                                                | requests    |
|--------------------------------|--------------------------------------------------------------|-------------|
| votes and where they came from | Query VOTER#<id>#<board> of every board, consistent; also of | 2 a board,  |
|                                | the visitors whose walks the member has continued            | 1 a visitor |
| delete what is left of votes   | Query VOTER#<voter>#<board>, BatchWriteItem                  | 1 for 25    |
| forget a voter's addresses     | the voter among those of each address, then the origins      | 2 for 25    |
| and what was suspected of them | Query VOTER#<voter>#<board> SUSPECT#, BatchWriteItem         | 1 or 2      |

Deleting votes changes no count: one that counts, or that a job can let count again, stays until it is voided for good.
"""

from datastore.dynamo import Table
from datastore.dynamo.entity import shard_of
from datastore.dynamo.retries import batches
from datastore.dynamo.table import BATCH_WRITE
from datastore.people.member_items import COUNTED, KEPT, PERSONAL, MemberItems, Records, in_file, left_out, of_nobody
from datastore.voting.boards import BOARD, DIRTY_MARK, every_slug
from datastore.voting.contenders import CONTENDER, DETAILS, IMPORTED_NAME, NAME, PICTURE, RESULTS
from datastore.voting.continuing import CONTINUATION, voters_of
from datastore.voting.suspects import SEARCH, SUSPECT
from datastore.voting.voiding import ADDRESS_SHARDS, ADDRESS_VOTER, ORIGIN, VOIDING
from datastore.voting.votes import PAIR, TALLY, VOTE

# ── erasing ──


async def clear_voter(table: Table, voter: str, board: str) -> None:
    """Delete everything that names a voter of a board, but for votes that can count and what leads to them. Repeatable.

    Another process may have accepted such a vote since the others were voided.
    """
    await clear_addresses(table, voter, board)
    for each in reversed(await voters_of(table, voter, board)):
        if await _clear_votes(table, each, board) and each != voter:
            await table.write(CONTINUATION.delete(CONTINUATION.at(voter=voter, board=board, visitor=each)))


async def _clear_votes(table: Table, voter: str, board: str) -> bool:
    """Delete a voter's votes that cannot count any more; whether these were all."""
    were_all = True
    async for votes in batches(table.iterate(VOTE.on(voter=voter, board=board), consistent=True), BATCH_WRITE):
        gone = [vote for vote in votes if not vote.can_count]
        were_all = were_all and len(gone) == len(votes)
        await table.write_many(VOTE.delete(VOTE.item_key(vote)) for vote in gone)
    return were_all


async def clear_addresses(table: Table, voter: str, board: str) -> None:
    """Forget from which addresses a voter voted on a board, and what was suspected of them. Safe to repeat."""
    for each in await voters_of(table, voter, board):
        shard = shard_of(each, ADDRESS_SHARDS)
        async for some in batches(table.iterate(ORIGIN.on(voter=each, board=board), consistent=True), BATCH_WRITE):
            addresses = {origin.address for origin in some}
            places = (ADDRESS_VOTER.at(address=one, board=board, shard=shard, voter=each) for one in addresses)
            await table.write_many(map(ADDRESS_VOTER.delete, places))
            # Not together: the engine may leave any part of a batch, and nothing but its origin leads to an address.
            await table.write_many(ORIGIN.delete(ORIGIN.item_key(origin)) for origin in some)
        await table.clear(SUSPECT.on(voter=each, board=board))


# ── member items ──


_OF_VOTER = (CONTINUATION, ORIGIN, VOTE)


async def _records(table: Table, user: str) -> Records:
    for board in await every_slug(table):
        for voter in await voters_of(table, user, board):
            async for record in table.iterate(VOTE.collection(voter=voter, board=board), *_OF_VOTER, consistent=True):
                yield next(entity for entity in _OF_VOTER if isinstance(record, entity.record)), record


MEMBER_ITEMS = MemberItems(
    {
        VOTE: in_file(
            "vote",
            "One of your verdicts: the pair by the numbers of both contenders, and which of them won.",
            COUNTED,
            without={"origin": "A random tag, which for a week leads to the network address that the vote came from."},
        ),
        ORIGIN: in_file(
            "voteOrigin",
            "For a week: that some votes on a board came from one network address.",
            without={
                "tag": "The tag that `vote.origin` names.",
                "address": "A keyed hash of the address: two files would show that their members share one.",
            },
        ),
        CONTINUATION: in_file(
            "continuedWalk",
            "That you went on with what a visitor of a board had begun, who was you before you signed in.",
            COUNTED,
        ),
        VOIDING: left_out("For a day: it lists voters whose votes an editor has voided together.", KEPT),
        SUSPECT: left_out("For a month: that an editor should look at a voter's votes, under a pseudonym.", PERSONAL),
        ADDRESS_VOTER: left_out("For a week: it lists the voters of an address by its keyed hash.", PERSONAL),
        **of_nobody(BOARD, CONTENDER, DETAILS, DIRTY_MARK, IMPORTED_NAME, NAME, PAIR, PICTURE, RESULTS, SEARCH, TALLY),
    },
    _records,
)
