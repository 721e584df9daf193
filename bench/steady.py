"""Engine reads under load: `make bench BENCH=steady` writes bench/results/steady.md.

Read units: pages of comments with and without their authors, requested at a steady rate, drawn from all products and
sets of ratings. The figures are those the service reports at /metrics. Concurrent reads: two hundred clients request
one page repeatedly, while a proxy in front of the engine delays each read by 20 ms and counts them.
"""

import argparse
import asyncio
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import httpx
import orjson

from bench.services import seeded_table
from bench.services.attackers import Connection
from bench.services.measurement import Server, repository_root, send_requests
from datastore.comments.planner import RATINGS
from server.engine import run_engine
from tests.fault.monitoring_proxy import MonitoringProxy

RESULTS = repository_root() / "bench" / "results"
RATES = (10, 30, 100)
MAX_CONCURRENT = 100
"""Concurrent requests at most, if the machine cannot keep up with a rate."""
CLIENTS = 200
READ_DELAY = 0.02
WARM_UP = 6.0
"""Seconds of warm-up before each measurement."""
WITHOUT_AUTHORS = "nodes { rating title body language createdAt }"
WITH_AUTHORS = "nodes { rating title body language createdAt author { name avatarUrl } }"
FILTER = 'languages: ["en", "de"], ratings: [4, 5]'
PAGES = {
    "leaderboard of 100": '{ leaderboard(board: "main", first: 100) { nodes { rank score contender { name } } } }',
    "comments, filtered": f'{{ comments(product: "{seeded_table.PRODUCT}", {FILTER}) {{ {WITH_AUTHORS} }} }}',
    "comments with their total": f'{{ comments(product: "{seeded_table.PRODUCT}") {{ totalCount {WITH_AUTHORS} }} }}',
    "event screen": "query ($event: ID!) { event(id: $event) { name matches { name pickCounts } "
    "predictions(first: 10) { nodes { rank user { name } } } } }",
    "standings": '{ standings(season: "2026", first: 20) { totalCount nodes { rank points user { name } } } }',
}
PAGE = "query Page($product: ID!, $ratings: [Int!]) { comments(product: $product, ratings: $ratings) { FIELDS } }"


def page_requests(fields: str) -> Iterator[bytes]:
    """Yield typical page requests: popular products more often, half of the pages filtered."""
    random = Random(3)
    popularity = [1 / (index + 1) for index in range(len(seeded_table.PRODUCTS))]
    query = PAGE.replace("FIELDS", fields)
    while True:
        (product,) = random.choices(seeded_table.PRODUCTS, popularity)
        ratings = random.sample(RATINGS, random.randint(1, 4)) if random.random() < 0.5 else None
        yield orjson.dumps({"query": query, "variables": {"product": product, "ratings": ratings}})


def read_units(server: Server) -> float:
    metrics = httpx.get(f"http://127.0.0.1:{server.port}/metrics").text
    samples = re.findall(r'^ringside_capacity_units_total\{kind="read".*\} (\S+)$', metrics, re.MULTILINE)
    return sum(map(float, samples))


async def send_at_rate(server: Server, requests: Iterator[bytes], rate: int, seconds: float) -> int:
    """Send requests at a steady rate; return how many were sent."""
    began, sent, semaphore = time.perf_counter(), 0, asyncio.Semaphore(MAX_CONCURRENT)

    async def send(body: bytes) -> None:
        async with semaphore:
            await send_requests(server, [server.request("", body)], server.connections)

    async with asyncio.TaskGroup() as group:
        while (passed := time.perf_counter() - began) < seconds:
            while sent < passed * rate:
                sent += 1
                group.create_task(send(next(requests)))
            await asyncio.sleep(1 / rate)
    return sent


async def unit_costs(server: Server, seconds: float) -> list[tuple[int, float, float]]:
    """Return the read units of a page at each rate, without its authors and with them."""
    costs = []
    for rate in RATES:
        bare, whole = [
            await _unit_cost(server, page_requests(fields), rate, seconds) for fields in (WITHOUT_AUTHORS, WITH_AUTHORS)
        ]
        costs.append((rate, bare, whole))
    return costs


async def _unit_cost(server: Server, requests: Iterator[bytes], rate: int, seconds: float) -> float:
    await send_at_rate(server, requests, rate, WARM_UP)
    before = read_units(server)
    sent = await send_at_rate(server, requests, rate, seconds)
    return (read_units(server) - before) / sent


@dataclass(frozen=True, slots=True)
class PageReads:
    """The reads that the engine saw for one page."""

    page: str
    requests: int
    reads: int
    max_identical: int
    max_any: int


async def concurrent_reads(server: Server, engine: MonitoringProxy, event: str, seconds: float) -> list[PageReads]:
    measured = []
    engine.max_delay = READ_DELAY
    for page, query in PAGES.items():
        body = orjson.dumps({"query": query, "variables": {"event": event} if "$event" in query else {}})
        request = server.request(page, body)
        engine.reset_counts()
        until = time.perf_counter() + seconds
        sent = await asyncio.gather(*(_send_until(until, server.port, request) for _ in range(CLIENTS)))
        measured.append(PageReads(page, sum(sent), engine.reads, engine.max_identical_reads, engine.max_reads))
    return measured


async def _send_until(moment: float, port: int, request: bytes) -> int:
    connection, sent = Connection(port, "127.0.0.1"), 0
    while time.perf_counter() < moment:
        status, head, answer = await connection.ask(request)
        if status != 200 or b'"errors"' in answer:
            raise RuntimeError(head, answer[:300])
        sent += 1
    connection.close()
    return sent


def report(costs: list[tuple[int, float, float]], reads: list[PageReads]) -> str:
    return "\n".join([
        "# Engine reads under load",
        "",
        "    make bench BENCH=steady",
        "",
        "Read units of a page of 20 comments, drawn from twelve products and all sets of ratings, half of the pages",
        "filtered; 200 members wrote them. Profiles are cached for ten seconds, so their share falls with the load.",
        "",
        "| pages per second | comments alone | with their authors | ratio (target: at most 1.5) |",
        "|---:|---:|---:|---:|",
        *(f"| {rate} | {bare:.2f} | {whole:.2f} | {whole / bare:.2f} |" for rate, bare, whole in costs),
        "",
        f"Reads counted by a proxy in front of the engine while {CLIENTS} clients request one page, each again as",
        f"soon as it has its response; the proxy delays reads by {READ_DELAY * 1000:.0f} ms. Target: 1 read per key.",
        "",
        "| page | requests | reads | concurrent reads of one key | concurrent reads of all keys |",
        "|---|---:|---:|---:|---:|",
        *(f"| {row.page} | {row.requests:,} | {row.reads:,} | {row.max_identical} | {row.max_any} |" for row in reads),
        "",
    ])  # fmt: skip


async def measure(engine_url: str, event: str, seconds: float) -> str:
    async with MonitoringProxy(engine_url, max_delay=0) as engine:
        server = Server("Ringside", [sys.executable, "-m", "server", "serve", "--port", "PORT"], connections=1)
        environment = {**seeded_table.environment(engine.url), "PYTHONPATH": str(repository_root())}
        await asyncio.to_thread(server.start, environment)
        try:
            costs = await unit_costs(server, seconds)
            return report(costs, await concurrent_reads(server, engine, event, seconds / 2))
        finally:
            await asyncio.to_thread(server.stop)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0, help="for each rate")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, run_engine(Path(folder)) as engine:
        event = asyncio.run(seeded_table.seed(engine.url))
        text = asyncio.run(measure(engine.url, event, options.seconds))
    print(text)
    if options.seconds >= 15:
        (RESULTS / "steady.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
