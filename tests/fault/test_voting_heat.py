"""The units that voting asks of the hottest partition keys, as DynamoDB counts them."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Table, deadline, open_table
from datastore.dynamo.declaration import create
from datastore.dynamo.entity import shard_of
from datastore.jobs.leases import Leases
from datastore.voting import boards
from datastore.voting import votes as vote_store
from datastore.voting.boards import BOARD, Board, shard_count
from datastore.voting.contenders import CONTENDER, Contender
from datastore.voting.settling import settle
from datastore.voting.votes import PairVerdict, Vote
from resolvers.requests.context import utc_now
from tests.engines import running_engine
from tests.lagging import Lag, LaggingEngine
from tests.lagging.capacity import PartitionKey
from tests.waiting import LONGEST

VOTES_PER_SECOND = boards.DEFAULT_RATE
MOST_UNITS = 700
"""Of the 1,000 write units that a partition key takes in a second."""


def units(engine: LaggingEngine) -> Mapping[PartitionKey, float]:
    """The write units of each key, of all seconds together."""
    sums: dict[PartitionKey, float] = defaultdict(float)
    for (key, _), number in engine.ledger.writes.items():
        sums[key] += number
    return sums


async def plant(table: Table, contenders: int) -> None:
    now = utc_now()
    rows = [Contender("main", ordinal, f"contender {ordinal}", now) for ordinal in range(contenders)]
    shards = shard_count(contenders, VOTES_PER_SECOND)
    board = Board("main", "Main", now, contenders, contender_changes=contenders, read_shards=shards)
    await table.write_many(CONTENDER.put(row) for row in rows)
    await table.write(BOARD.put(board))


def votes(contenders: int, number: int) -> list[Vote]:
    """As many votes of as many voters, on neighbours all over the board."""
    shards = shard_count(contenders, VOTES_PER_SECOND)
    return [
        Vote(voter, "main", 1, low, low + 1, PairVerdict.LOW_WINS, utc_now(), b"", shard_of(voter, shards))
        for voter, low in ((f"voter {one}", 2 * one % (contenders - 1)) for one in range(number))
    ]


@pytest.mark.parametrize(("contenders", "cast"), [(2, 200), (100, 200), pytest.param(600, 300, marks=pytest.mark.soak)])
async def test_no_key_takes_more_than_its_share(tmp_path: Path, contenders: int, cast: int) -> None:
    """A third of a second's votes at the promised rate, then a settling of a board where most scores have changed."""
    with running_engine("dynoxide", tmp_path) as leader:
        async with (
            LaggingEngine(leader.url, leader.url, lag=Lag(mean=0.0, stale=0.0)) as engine,
            open_table("ringside", url=leader.url) as direct,
            open_table("ringside", url=engine.url) as table,
        ):
            await create(direct)
            await plant(direct, contenders)
            with deadline(LONGEST):
                await asyncio.gather(
                    *(vote_store.cast(table, vote, UnitOfWork.unkeyed(vote.at)) for vote in votes(contenders, cast))
                )
            hottest, number = max(units(engine).items(), key=lambda entry: entry[1])
            assert hottest.value.startswith("TALLY#main#")
            assert number * VOTES_PER_SECOND / cast <= MOST_UNITS

            engine.ledger.writes.clear()
            current = await boards.read_board_with_marks(table, "main")
            assert current is not None
            lease = await Leases(table).acquire(current.board)
            assert lease is not None
            await settle(table, lease, utc_now())
            settling = units(engine)
            assert max(settling.values()) <= MOST_UNITS
            beside_draws = {key: number for key, number in settling.items() if key.value == "BOARD#main"}
            assert sum(beside_draws.values()) <= 3, "more than its beginning and its end"
