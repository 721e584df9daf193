"""Votes: attempts under conflicts, votes per second and CPU time per vote, compared with two simpler designs.

    python -m bench.voting_votes [--votes 1500]

It prints two kinds of table. The first measures the whole service in a separate process, with 16 clients over HTTP and
a new voter for each vote; a proxy in front of the engine locks a transaction's items for 8 ms and refuses other
requests for them, as DynamoDB does. The second measures the data path alone, 16 votes at a time, in this process: our
transaction with the calculated number of shards, the same transaction with one shard, and separate updates without a
transaction.
"""

import argparse
import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from uuid import uuid4

import aiohttp
import psutil

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Table
from datastore.dynamo.entity import shard_of
from datastore.values.seal import Seal
from datastore.voting import boards
from datastore.voting import votes as vote_store
from datastore.voting.boards import BOARD, Board, shard_count
from datastore.voting.contenders import CONTENDER, NAME, Contender, Name
from datastore.voting.pair_walk import PairWalk
from datastore.voting.votes import VOTE, PairVerdict, Vote, counter_updates
from resolvers.requests.context import Services, utc_now
from server.audit.voting import breaches
from tests.conftest import create_table
from tests.engines import running_engine
from tests.fault.proxy import Proxy
from tests.service import start_service

CLIENTS = 16
CONFLICT_SECONDS = 0.008
SECRET = "a secret that is long enough for a benchmark"
DRAW = 'mutation { drawMatchup(input: {board: "main"}) { ... on Ballot { token } ... on Refused { code } } }'
CAST = """mutation ($token: ID!) { castVote(input: {token: $token, verdict: LEFT}) {
  ... on VoteCast { winner { name } } ... on Refused { code } } }"""


async def create_board(table: Table, contenders: int) -> None:
    now = utc_now()
    rows = [Contender("main", ordinal, f"c{ordinal}", now) for ordinal in range(contenders)]
    await table.write_many(CONTENDER.put(row) for row in rows)
    await table.write_many(NAME.put(Name("main", row.sort_name, row.ordinal, "")) for row in rows)
    await table.write(BOARD.put(Board("main", "Main", now, size=contenders, contender_changes=contenders)))


async def run_concurrently(votes: int, vote: Callable[[int], Awaitable[None]]) -> float:
    """Return the seconds for this many votes, 16 at a time."""
    remaining = iter(range(votes))

    async def client() -> None:
        for number in remaining:
            await vote(number)

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return time.perf_counter() - began


# ── the whole service, with conflicts ──


async def measure_service(engine: str, contenders: int, votes: int) -> None:
    name = f"bench-{uuid4().hex[:8]}"
    async with create_table(name, engine) as table, Proxy(engine, conflict_seconds=CONFLICT_SECONDS) as proxy:
        await create_board(table, contenders)
        variables = {"RINGSIDE_DYNAMODB_URL": proxy.url, "RINGSIDE_TABLE": name, "RINGSIDE_SECRETS": SECRET}
        variables |= {"RINGSIDE_VOTES_PER_ADDRESS": "0", "RINGSIDE_NEW_VISITORS_PER_ADDRESS": "0"}
        with ExitStack() as stack:
            service = await start_service(variables, stack)
            answered: Counter[str] = Counter()

            async def vote(_: int) -> None:
                async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as voter:
                    ballot = await ask(voter, service.url, DRAW)
                    answer = await ask(voter, service.url, CAST, token=ballot["drawMatchup"]["token"])
                    answered[answer["castVote"].get("code", "counted")] += 1

            await asyncio.sleep(0.5)  # it reports ready a moment before it listens
            await vote(0)
            await asyncio.sleep(3)  # the board's shards are raised and the board is settled
            proxy.reset_counts()
            process = psutil.Process(service.process.pid)
            before = process.cpu_times()
            seconds = await run_concurrently(votes, vote)
            after = process.cpu_times()
            cpu = (after.user + after.system - before.user - before.system) / votes
            attempts, conflicts = proxy.requests["TransactWriteItems"] / votes, proxy.conflicts
            await asyncio.to_thread(service.stop)
        services = Services(table, Seal([SECRET]))
        found = [breach async for breach in breaches(services)]
        await services.close()
        print(
            f"| {contenders} | {shard_count(contenders, boards.DEFAULT_RATE)} | {attempts:.3f} | {conflicts} "
            f"| {dict(answered)} | {votes / seconds:.0f} | {cpu * 1000:.2f} | {len(found)} |",
            *found[:3],
            flush=True,
        )


async def ask(voter: aiohttp.ClientSession, url: str, query: str, **variables: str) -> dict[str, dict[str, str]]:
    async with voter.post(f"{url}/graphql", json={"query": query, "variables": variables}) as response:
        answer: dict[str, dict[str, str]] = (await response.json())["data"]
        return answer


# ── the data path alone ──


async def cast_with_separate_updates(table: Table, vote: Vote) -> None:
    """Write the vote, then each counter by itself: a crash in between loses the rest."""
    await table.write(VOTE.put(vote))
    for update in counter_updates(replace(vote, shard=0)):
        await table.write(update)


async def cast_in_one_shard(table: Table, vote: Vote) -> None:
    await vote_store.cast(table, replace(vote, shard=0), UnitOfWork.unkeyed(vote.at))


async def cast_in_shards(table: Table, vote: Vote) -> None:
    await vote_store.cast(table, vote, UnitOfWork.unkeyed(vote.at))


DESIGNS = {
    "separate updates": cast_with_separate_updates,
    "one shard": cast_in_one_shard,
    "calculated shards": cast_in_shards,
}


async def measure_data_path(engine: str, contenders: int, votes: int, hold: float | None, label: str) -> None:
    name = f"bench-{uuid4().hex[:8]}"
    # Without emulated conflicts no proxy is needed, and its own cost would be measured too.
    async with (
        Proxy(engine, conflict_seconds=hold) as proxy,
        create_table(name, proxy.url if hold else engine) as table,
    ):
        proxy.reset_counts()
        shards = shard_count(contenders, boards.DEFAULT_RATE)
        chance = Random(3)

        async def cast(number: int) -> None:
            low, high = sorted(chance.sample(range(contenders), 2))
            voter = f"voter-{number}"
            shard = shard_of(voter, shards)
            vote = Vote(voter, "main", 1, low, high, PairVerdict.LOW_WINS, utc_now(), PairWalk().packed(), shard)
            await DESIGNS[label](table, vote)

        before = time.process_time()
        seconds = await run_concurrently(votes, cast)
        cpu = (time.process_time() - before) / votes
        requests = f"{sum(proxy.requests.values()) / votes:.2f} | {proxy.conflicts}" if hold else "– | –"
        print(
            f"| {contenders} | {label} | {votes / seconds:.0f} | {'–' if hold else f'{cpu * 1000:.2f}'} | {requests} |",
            flush=True,
        )


async def main(votes: int, only: str) -> None:
    with TemporaryDirectory() as folder, running_engine("dynoxide", Path(folder)) as engine:
        print(f"{votes} votes, {CLIENTS} clients; {os.cpu_count()} CPUs, Python {sys.version.split()[0]}\n")
        if only in ("", "service"):
            print(
                "| contenders | shards | attempts per vote | conflicts | answers | votes/s | CPU ms/vote | breaches |"
            )
            print("|---|---|---|---|---|---|---|---|")
            for contenders in (2, 10, 100):
                await measure_service(engine.url, contenders, votes)
        if only in ("", "path"):
            for hold in (None, CONFLICT_SECONDS):
                print(f"\n{'Without' if hold is None else 'With emulated'} conflicts:\n")
                print("| contenders | design | votes/s | CPU ms/vote | requests per vote | conflicts |")
                print("|---|---|---|---|---|---|")
                for contenders in (2, 10, 100):
                    for label in DESIGNS:
                        await measure_data_path(engine.url, contenders, votes, hold, label)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Votes: attempts, rate and cost.")
    parser.add_argument("--votes", type=int, default=1500)
    parser.add_argument("--only", choices=("service", "path"), default="")
    arguments = parser.parse_args()
    asyncio.run(main(arguments.votes, arguments.only))
