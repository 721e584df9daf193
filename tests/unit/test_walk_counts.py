"""Walks are counted again without holding up other requests, and once for all who ask."""

import asyncio

from datastore.values.seal import Seal
from datastore.voting.pair_walk import RECOUNT_SLICE, EligibleContenders, PairRange, PairWalk
from datastore.voting.votes import PairVerdict, Vote
from resolvers.requests.context import Services, utc_now
from resolvers.voting.ballots import WalkCounts, voter_seed

WALK = PairWalk(seen=20_000, covered=400, ranges=(PairRange(0, 400, 20_000, 20_000),))
HALF_RETIRED = EligibleContenders(400, sum(1 << ordinal for ordinal in range(0, 400, 2)))


NOW = utc_now()


def last_vote(voter: str) -> Vote:
    return Vote(voter, "main", 20_000, 1, 2, PairVerdict.TIE, NOW, WALK.packed())


def services() -> Services:
    return Services(None, Seal(["x" * 32]))  # type: ignore[arg-type]  # counting reads nothing


async def test_a_long_count_leaves_a_turn_to_others_after_each_slice() -> None:
    """Two voters with 20,000 pairs each: between any two slices the event loop passes once through everybody else."""
    counts, turns, done = WalkCounts(services()), 0, asyncio.Event()

    async def others() -> None:
        nonlocal turns
        while not done.is_set():
            await asyncio.sleep(0)
            turns += 1

    watching = asyncio.ensure_future(others())
    counted = await asyncio.gather(*(counts.counted(last_vote(voter), HALF_RETIRED) for voter in ("ada", "bob")))
    done.set()
    await watching
    cost = WALK.recount_cost(HALF_RETIRED)
    assert cost == 19_900
    assert turns >= 2 * (cost // RECOUNT_SLICE)
    assert counted == [WALK.recounted(voter_seed(voter, "main"), HALF_RETIRED) for voter in ("ada", "bob")]


async def test_forty_requests_for_one_walk_count_it_once() -> None:
    """At the same time, and again later."""
    of_process = services()
    counts = of_process.get(WalkCounts)
    answers = await asyncio.gather(*(counts.counted(last_vote("ada"), HALF_RETIRED) for _ in range(40)))
    answers.append(await counts.counted(last_vote("ada"), HALF_RETIRED))
    assert len(set(answers)) == 1
    loads = of_process.cache.loads()
    assert (loads["walk_counts", "miss"], loads["walk_counts", "wait"], loads["walk_counts", "hit"]) == (1, 39, 1)
    await of_process.close()
