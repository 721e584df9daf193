"""Engine reads under load: `make bench BENCH=steady` writes bench/results/steady.md.

Read units: pages of comments with and without their authors, requested at a steady rate, drawn from all products and
sets of ratings. The figures are those the service reports at /metrics. Concurrent reads: two hundred clients request
one page repeatedly, while a proxy in front of the engine delays each read by 20 ms and counts them.
"""

from __future__ import annotations

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

from bench.services import planted
from bench.services.measuring import Server, ask, here, validate_body
from datastore.comments.planner import RATINGS
from server.engine import beside
from tests.fault.monitoring_proxy import MonitoringProxy

RESULTS = here() / "bench" / "results"
RATES = (10, 30, 100)
MOST = 100
"""Concurrent requests at most, if the machine cannot keep up with a rate."""
CLIENTS = 200
HELD = 0.02
SETTLING = 6.0
"""Seconds of warm-up before each measurement."""
WITHOUT = "nodes { rating title body language createdAt }"
WITH = "nodes { rating title body language createdAt author { name avatarUrl } }"
FILTER = 'languages: ["en", "de"], ratings: [4, 5]'
CROWDED = {
    "leaderboard of 100": '{ leaderboard(board: "main", first: 100) { nodes { rank score contender { name } } } }',
    "comments, filtered": f'{{ comments(product: "{planted.PRODUCT}", {FILTER}) {{ {WITH} }} }}',
    "comments with their total": f'{{ comments(product: "{planted.PRODUCT}") {{ totalCount {WITH} }} }}',
    "event screen": "query ($event: ID!) { event(id: $event) { name matches { name pickCounts } "
    "predictions(first: 10) { nodes { rank user { name } } } } }",
    "standings": '{ standings(season: "2026", first: 20) { totalCount nodes { rank points user { name } } } }',
}
PAGE = "query Page($product: ID!, $ratings: [Int!]) { comments(product: $product, ratings: $ratings) { INSIDE } }"


def bodies(inside: str) -> Iterator[bytes]:
    """Yield typical page requests: popular products more often, half of the pages filtered."""
    chance = Random(3)
    popularity = [1 / (place + 1) for place in range(len(planted.PRODUCTS))]
    query = PAGE.replace("INSIDE", inside)
    while True:
        (product,) = chance.choices(planted.PRODUCTS, popularity)
        ratings = chance.sample(RATINGS, chance.randint(1, 4)) if chance.random() < 0.5 else None
        yield orjson.dumps({"query": query, "variables": {"product": product, "ratings": ratings}})


def units(server: Server) -> float:
    figures = httpx.get(f"http://127.0.0.1:{server.port}/metrics").text
    found = re.findall(r'^ringside_capacity_units_total\{kind="read".*\} (\S+)$', figures, re.MULTILINE)
    return sum(map(float, found))


async def paced(server: Server, wanted: Iterator[bytes], rate: int, seconds: float) -> int:
    """Send requests at a steady rate; return how many were sent."""
    began, asked, room = time.perf_counter(), 0, asyncio.Semaphore(MOST)

    async def one(body: bytes) -> None:
        async with room:
            await ask(server, server.request("", body), server.connections)

    async with asyncio.TaskGroup() as group:
        while (now := time.perf_counter() - began) < seconds:
            while asked < now * rate:
                asked += 1
                group.create_task(one(next(wanted)))
            await asyncio.sleep(1 / rate)
    return asked


async def unit_costs(server: Server, seconds: float) -> list[tuple[int, float, float]]:
    """Return the read units of a page at each rate, without its authors and with them."""
    found = []
    for rate in RATES:
        bare, whole = [await _unit_cost(server, bodies(inside), rate, seconds) for inside in (WITHOUT, WITH)]
        found.append((rate, bare, whole))
    return found


async def _unit_cost(server: Server, wanted: Iterator[bytes], rate: int, seconds: float) -> float:
    await paced(server, wanted, rate, SETTLING)
    before = units(server)
    asked = await paced(server, wanted, rate, seconds)
    return (units(server) - before) / asked


@dataclass(frozen=True, slots=True)
class Crowded:
    """The reads that the engine saw for one page."""

    page: str
    requests: int
    reads: int
    same: int
    all: int


async def crowds(server: Server, engine: MonitoringProxy, event: str, seconds: float) -> list[Crowded]:
    found = []
    engine.max_delay = HELD
    for page, query in CROWDED.items():
        body = orjson.dumps({"query": query, "variables": {"event": event} if "$event" in query else {}})
        request = server.request(page, body)
        engine.reset_counts()
        until = time.perf_counter() + seconds
        asked = await asyncio.gather(*(_until(until, server.port, request) for _ in range(CLIENTS)))
        found.append(Crowded(page, sum(asked), engine.reads, engine.max_identical_reads, engine.max_reads))
    return found


async def _until(moment: float, port: int, request: bytes) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    asked = 0
    while time.perf_counter() < moment:
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        answer = await validate_body(reader, head)
        if not head.startswith("http/1.1 200") or b'"errors"' in answer:
            raise RuntimeError(head, answer[:300])
        asked += 1
    writer.close()
    return asked


def report(costs: list[tuple[int, float, float]], seen: list[Crowded]) -> str:
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
        f"soon as it has its response; the proxy delays reads by {HELD * 1000:.0f} ms. Target: 1 read per key.",
        "",
        "| page | requests | reads | concurrent reads of one key | concurrent reads of all keys |",
        "|---|---:|---:|---:|---:|",
        *(f"| {one.page} | {one.requests:,} | {one.reads:,} | {one.same} | {one.all} |" for one in seen),
        "",
    ])  # fmt: skip


async def measured(engine_url: str, event: str, seconds: float) -> str:
    async with MonitoringProxy(engine_url, max_delay=0) as engine:
        server = Server("Ringside", [sys.executable, "-m", "server", "serve", "--port", "PORT"], connections=1)
        environment = {**planted.environment(engine.url), "PYTHONPATH": str(here())}
        await asyncio.to_thread(server.start, environment)
        try:
            costs = await unit_costs(server, seconds)
            return report(costs, await crowds(server, engine, event, seconds / 2))
        finally:
            await asyncio.to_thread(server.stop)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=15.0, help="for each rate")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, beside(Path(folder)) as engine:
        event = asyncio.run(planted.plant(engine.url))
        text = asyncio.run(measured(engine.url, event, given.seconds))
    print(text)
    if given.seconds >= 15:
        (RESULTS / "steady.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
