"""A million standings: the cost of the top page and of one member's rank.

python -m bench.pickem_standings [--size 1000000]
"""

import argparse
import asyncio
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from bench.bulk import load
from datastore.dynamo import metered
from datastore.dynamo.writes import Put
from datastore.people.profiles import PROFILE, Profile
from datastore.pickem.standings import STANDING, Standing, recount_season
from resolvers.values.node_ids import node_id
from server.engine import run_engine
from server.settings import Settings
from tests.client import Client, serving

TABLE = "ringside-bench"
SEASON = "2026"
MEAN, DEVIATION = 2400, 600
AMONG_THE_BEST = MEAN + 3.5 * DEVIATION
"""Two of 10,000 have more points."""
JOINED = datetime(2025, 1, 1, tzinfo=UTC)
SCREEN = """
query ($season: String!, $user: ID!) {
  standings(season: $season) { totalCount nodes { rank points correct user { name } } pageInfo { endCursor } }
  user(id: $user) { name standing(season: $season) { rank points } }
}
"""
PAGE = """
query ($season: String!, $after: String) {
  standings(season: $season, after: $after) { nodes { rank points } pageInfo { endCursor } }
}
"""


def standings(size: int, points: Counter[int]) -> Iterator[Standing]:
    """Yield standings with points as after twelve events: a normal distribution over some thousand totals."""
    random = Random(2026)
    for number in range(size):
        worth = max(0, int(random.gauss(MEAN, DEVIATION)))
        points[worth] += 1
        joined_at = JOINED + timedelta(seconds=number)
        yield Standing(f"fan-{number:07d}", SEASON, joined_at, worth, worth // 20, events_played=12)


def puts(size: int, points: Counter[int], chosen: list[Standing]) -> Iterator[Put]:
    """Yield all standings, and the profiles of those who are read: the best, and 50 members chosen at random."""
    random = Random(1)
    for standing in standings(size, points):
        if is_chosen := random.random() < 50 / size:
            chosen.append(standing)
        if is_chosen or standing.points > AMONG_THE_BEST:
            yield PROFILE.put(Profile(standing.user, standing.user, standing.joined_at))
        yield STANDING.put(standing)


async def ask(client: Client, points: Counter[int], chosen: list[Standing]) -> None:
    for turn in ("the first time", "from then on"):
        for standing in chosen[:5]:
            client.services.profiles.forget(standing.user)
        with metered() as spent:
            answer = await client.ask(SCREEN, season=SEASON, user=node_id("User", chosen[0].user))
        print(f"top page and one rank, {turn}: {spent.calls} engine calls, {spent.read_units:.1f} read units")
    above = sum(number for worth, number in points.items() if worth > chosen[0].points)
    print(
        f"rank {answer['user']['standing']['rank']}, counted {1 + above}; {answer['standings']['totalCount']} members"
    )
    wrong = 0
    for standing in chosen:
        answer = await client.ask(SCREEN, season=SEASON, user=node_id("User", standing.user))
        above = sum(number for worth, number in points.items() if worth > standing.points)
        wrong += answer["user"]["standing"]["rank"] != 1 + above
    print(f"{len(chosen)} ranks asked for, {wrong} wrong")
    after, rows = None, 0
    for _ in range(20):
        page = await client.ask(PAGE, season=SEASON, after=after)
        rows, after = rows + len(page["nodes"]), page["pageInfo"]["endCursor"]
        for row in page["nodes"]:
            above = sum(number for worth, number in points.items() if worth > row["points"])
            wrong += row["rank"] != 1 + above
    print(f"{rows} rows of pages, {wrong} wrong ranks")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1_000_000)
    size = parser.parse_args().size
    points: Counter[int] = Counter()
    chosen: list[Standing] = []
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        load(Path(folder), TABLE, puts(size, points, chosen))
        print(f"{size} standings loaded in {time.monotonic() - began:.0f} s, {len(points)} different sums", flush=True)
        with run_engine(Path(folder)) as engine:
            settings = Settings(dynamodb_url=engine.url, table=TABLE, secrets=("b" * 48,), log="warning")
            async with serving(settings) as client:
                began, cpu = time.monotonic(), time.process_time()
                with metered() as spent:
                    histogram = await recount_season(client.services.table, SEASON)
                print(
                    f"counted {histogram.total} in {time.monotonic() - began:.0f} s, "
                    f"{time.process_time() - cpu:.0f} s CPU, {spent.calls} calls; "
                    f"the histogram takes {len(histogram.pack()) / 1000:.1f} kB",
                    flush=True,
                )
                await ask(client, points, chosen)
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000:.0f} MB at most, with the loading")


if __name__ == "__main__":
    asyncio.run(main())
