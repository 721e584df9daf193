"""A search for suspects on a board with a million votes: CPU, memory, and what draws wait meanwhile.

    python -m bench.suspects_size [--votes 1000000] [--attackers eager]

The votes are those of `bench/services/voters.py`. `ringside export votes`, the reading alone, the search's process
(which reads and computes) and the draws run on the same engine. Draws come at a constant rate, each measured from when
it was due: before the search, beside it, and after it.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import aiohttp
import orjson
import psutil

from bench.bulk import load
from bench.services.voters import ATTACKERS, CONTENDERS, Simulation, simulate
from bench.voting_votes import DRAW, SECRET
from datastore.dynamo import TableAddress, open_table
from datastore.dynamo.writes import Put
from datastore.voting.boards import BOARD, Board
from datastore.voting.contenders import CONTENDER, RESULTS, Contender, Counts, ResultsBlock
from datastore.voting.pair_walk import PairWalk
from datastore.voting.voiding import ORIGIN, Origin
from datastore.voting.votes import PAIR, TALLY, VOTE, PairTally, PairVerdict, Tally, Vote
from resolvers.voting.suspect_search import by_voter
from tests.command import ROOT, environment
from tests.engines import running_engine
from tests.service import running_service

TABLE = "suspects"
RATE = 20
SECONDS = 30
_VERDICTS = {1.0: PairVerdict.LOW_WINS, 0.0: PairVerdict.HIGH_WINS, 0.5: PairVerdict.TIE, -1.0: PairVerdict.SKIP}


# ── a board with these votes ──


def _writes(simulation: Simulation) -> Iterator[Put]:
    began = datetime.now(UTC) - timedelta(days=8)
    for ordinal in range(CONTENDERS):
        yield CONTENDER.put(Contender("main", ordinal, f"c{ordinal}", began))
    yield BOARD.put(Board("main", "Main", began, size=CONTENDERS, contender_changes=CONTENDERS))
    walks = [PairWalk(seen=seen).packed() for seen in range(10_000)]
    numbers: Counter[int] = Counter()
    pairs: dict[tuple[int, int], Counter[PairVerdict]] = {}
    for vote in simulation.votes:
        numbers[vote.voter] += 1
        number, verdict = numbers[vote.voter], _VERDICTS[vote.won]
        voter, at = f"visitor-{vote.voter:010d}", began + timedelta(seconds=vote.at)
        if number == 1:
            yield ORIGIN.put(Origin(voter, "main", "a", f"{vote.network:032x}", at + timedelta(days=30)))
        yield VOTE.put(Vote(voter, "main", number, vote.low, vote.high, verdict, at, walks[number], origin="a"))
        pairs.setdefault((vote.low, vote.high), Counter())[verdict] += 1
    yield from _tallies(pairs)


def _tallies(pairs: Mapping[tuple[int, int], Counter[PairVerdict]]) -> Iterator[Put]:
    sums: dict[int, list[int]] = {ordinal: [0, 0, 0] for ordinal in range(CONTENDERS)}
    for (low, high), found in pairs.items():
        won, lost, tied = (found[each] for each in (PairVerdict.LOW_WINS, PairVerdict.HIGH_WINS, PairVerdict.TIE))
        yield PAIR.put(PairTally("main", 0, low, high, won, lost, tied))
        for ordinal, change in ((low, (won, lost, tied)), (high, (lost, won, tied))):
            sums[ordinal] = [one + more for one, more in zip(sums[ordinal], change, strict=True)]
    for ordinal, (won, lost, tied) in sums.items():
        yield TALLY.put(Tally("main", 0, ordinal, won, lost, tied))
    yield RESULTS.put(ResultsBlock.of("main", 0, {one: Counts(*each) for one, each in sums.items()}))


# ── what is measured ──


class Spent(NamedTuple):
    """By a process that has ended."""

    cpu: float
    seconds: float
    megabytes: float


def _run(arguments: Sequence[str], variables: Mapping[str, str], given: bytes = b"") -> Spent:
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments],
        env=environment(**variables),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    process.stdin.write(given)
    process.stdin.flush()
    most, ended = 0, 0
    while not ended:  # the system's own peak would count this process's memory, of which the other is a copy at first
        time.sleep(0.1)
        most = max(most, _memory(process.pid))
        ended, code, used = os.wait4(process.pid, os.WNOHANG)
    process.stdin.close()
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode:
        raise RuntimeError(f"{arguments} ended with {process.returncode}")
    return Spent(used.ru_utime + used.ru_stime, time.perf_counter() - began, most / 2**20)


def _memory(process: int) -> int:
    status = psutil.Process(process)
    return 0 if status.status() == psutil.STATUS_ZOMBIE else status.memory_info().rss


async def _read(url: str) -> None:
    """What a search reads, and nothing else."""
    async with open_table(TABLE, url=url) as table:
        async for _ in by_voter(table, "main", datetime.now(UTC)):
            pass


async def _draws(url: str, stop: asyncio.Event) -> list[float]:
    """The seconds from when each draw was due."""
    waited: list[float] = []
    began = time.perf_counter()

    async def draw(due: float) -> None:
        async with aiohttp.ClientSession() as visitor, visitor.post(f"{url}/graphql", json={"query": DRAW}) as answer:
            if "token" not in await answer.text():
                raise RuntimeError(await answer.text())
        waited.append(time.perf_counter() - due)

    async with asyncio.TaskGroup() as group:
        number = 0
        while not stop.is_set():
            due = began + number / RATE
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            group.create_task(draw(due))
            number += 1
    return waited


async def _beside(url: str, seconds: float) -> list[float]:
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, stop.set)
    return await _draws(url, stop)


def _p99(waited: Sequence[float]) -> float:
    return sorted(waited)[int(len(waited) * 0.99)] * 1000


async def measure(engine: str) -> None:
    variables = {"RINGSIDE_DYNAMODB_URL": engine, "RINGSIDE_TABLE": TABLE, "RINGSIDE_SECRETS": SECRET}
    variables |= {"RINGSIDE_NEW_VISITORS_PER_ADDRESS": "0"}
    export = await asyncio.to_thread(_run, ["-m", "server", "export", "votes", "-"], variables)
    reading = await asyncio.to_thread(_run, ["-m", "bench.suspects_size", "--read", engine], variables)
    wanted = orjson.dumps({"board": "main", "address": TableAddress(TABLE, engine)}) + b"\n"
    with running_service(variables) as service:
        await asyncio.sleep(1)
        await _beside(service.url, 5)
        before = await _beside(service.url, SECONDS)
        stop = asyncio.Event()
        drawing = asyncio.create_task(_draws(service.url, stop))
        search = await asyncio.to_thread(_run, ["-m", "resolvers.voting.suspect_search"], variables, wanted)
        stop.set()
        beside = await drawing
        after = await _beside(service.url, SECONDS)
    print("| what | CPU s | s | MB |\n|---|---|---|---|")
    for name, spent in (("export votes", export), ("reading", reading), ("the search", search)):
        print(f"| {name} | {spent.cpu:.1f} | {spent.seconds:.1f} | {spent.megabytes:.0f} |")
    print(f"| the search without the reading | {search.cpu - reading.cpu:.1f} | | |")
    print(f"\n| {RATE} draws a second | number | p99, ms |\n|---|---|---|")
    for name, waited in (("before", before), ("beside the search", beside), ("after", after)):
        print(f"| {name} | {len(waited)} | {_p99(waited):.1f} |")


async def main(votes: int, attackers: str) -> None:
    with TemporaryDirectory() as folder:
        simulation = simulate(0, 0.2, attackers, votes=votes)
        print(f"{len(simulation.votes):,} verdicts, {votes:,} counted, {len(simulation.kinds):,} voters\n", flush=True)
        load(Path(folder), TABLE, _writes(simulation))
        del simulation
        with running_engine("dynoxide", Path(folder)) as engine:
            await measure(engine.url)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--votes", type=int, default=1_000_000)
    parser.add_argument("--attackers", choices=ATTACKERS, default="eager")
    parser.add_argument("--read", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    asyncio.run(_read(arguments.read) if arguments.read else main(arguments.votes, arguments.attackers))
