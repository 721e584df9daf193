"""Scores an event with many predictions, killed three times, and prints the cost.

python -m bench.pickem_scoring [--size 100000]
"""

import argparse
import asyncio
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.bulk import load
from datastore.dynamo import Table, open_table
from datastore.pickem.events import Event, Match
from datastore.pickem.predictions import event_items
from resolvers.requests.context import Services
from resolvers.values.node_ids import node_id
from server.audit import pickem as audit
from server.engine import run_engine
from server.settings import Settings
from tests import bulk_predictions
from tests.command import ROOT, environment

TABLE = "ringside-bench"
SECRET = "b" * 48
AUDITED = 20_000
"""For larger sizes the audit's own reads would take longer than the scoring."""


@dataclass
class Cost:
    """Resources used by one `ringside score` process."""

    seconds: float = 0.0
    cpu: float = 0.0
    memory: float = 0.0


async def score(url: str, event: str, *, kill_after: float | None) -> Cost:
    """Run the command to its end, or kill it after this many seconds of CPU."""
    variables = environment(RINGSIDE_DYNAMODB_URL=url, RINGSIDE_TABLE=TABLE, RINGSIDE_SECRETS=SECRET)
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "server", "score", node_id("Event", event), env=variables, cwd=ROOT
    )
    watched, cost = psutil.Process(process.pid), Cost()
    while process.returncode is None:
        try:
            times = watched.cpu_times()
            cost.cpu = times.user + times.system
            cost.memory = max(cost.memory, watched.memory_info().rss / 1e6)
        except psutil.NoSuchProcess:
            break
        if kill_after is not None and cost.cpu > kill_after:
            process.send_signal(signal.SIGKILL)
            kill_after = None
        try:
            await asyncio.wait_for(asyncio.shield(process.wait()), 0.5)
        except TimeoutError:
            continue
    await process.wait()
    cost.seconds = time.monotonic() - began
    print(f"  exit {process.returncode}: {cost.seconds:.0f} s, {cost.cpu:.0f} s CPU, {cost.memory:.0f} MB", flush=True)
    return cost


async def run(table: Table, url: str, event: Event, matches: Sequence[Match], size: int) -> None:
    costs = [await score(url, event.id, kill_after=size * 0.0006) for _ in range(3)]
    print(f"killed three times; {await bulk_predictions.count_scored(table, event)} scored so far", flush=True)
    costs.append(await score(url, event.id, kill_after=None))
    scored, wrong = (
        await bulk_predictions.count_scored(table, event),
        await bulk_predictions.count_wrong_scores(table, event, matches),
    )
    standings = await bulk_predictions.count_wrong_standings(table, event, matches, size)
    print(f"{scored} scored; different from a fresh scoring: {wrong} predictions, {standings} standings", flush=True)
    print(
        f"{sum(cost.seconds for cost in costs) / 60:.1f} minutes, "
        f"{sum(cost.cpu for cost in costs) / size * 1000:.2f} ms CPU per prediction, "
        f"at most {max(cost.memory for cost in costs):.0f} MB"
    )
    if size <= AUDITED:
        breaches = [breach async for breach in audit.breaches(Services(table, Settings(secrets=(SECRET,)).seal()))]
        print(f"audit: {len(breaches)} breaches {breaches[:3]}")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000)
    size = parser.parse_args().size
    event, matches = bulk_predictions.locked_event("2026")
    with tempfile.TemporaryDirectory() as folder:
        load(Path(folder), TABLE, event_items(event, matches, bulk_predictions.generate_predictions(event, size)))
        with run_engine(Path(folder)) as engine:
            async with open_table(TABLE, url=engine.url) as table:
                await run(table, engine.url, event, matches, size)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"load {os.getloadavg()[0]:.1f}; engine and scorers {children.ru_utime + children.ru_stime:.0f} s CPU")


if __name__ == "__main__":
    asyncio.run(main())
