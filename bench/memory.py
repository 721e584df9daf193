"""Memory over a million requests with ten thousand different documents: `make bench BENCH=memory`.

The service runs in its own process, its engine in another. Most requests use one of two hundred popular documents.
Every fortieth uses the next of all documents, so each is compiled two or three times, because the cache holds a few
hundred. Visitors send cookies or none, operations have different names, and some documents are invalid. The benchmark
samples the resident memory of the service's process. A full run writes bench/results/memory.md.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean

import orjson
import psutil

from bench.services import planted
from bench.services.measuring import Server, here, validate_body
from datastore.seal import Seal
from server.engine import beside

CLIENTS = 16
POPULAR = 200
RARE = 40
"""One request in this many is not for a popular document."""
VISITORS = 20_000
SAMPLES = 40
RESULTS = here() / "bench" / "results"
ROWS = ("rank", "wins", "losses", "ties", "score", "contender { id name }", "contender { createdAt retired }")
TEXTS = ("id", "rating", "title", "body", "language", "createdAt", "editedAt", "author { id name }", "status")
DAYS = ("id", "name", "state", "startsAt", "season", "slug", "matches { name points }", "matches { teams { members } }")


@dataclass
class Run:
    """Requests answered and memory used, sampled at even intervals."""

    requests: list[int] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)
    answered: int = 0
    refused: int = 0

    def sample(self, process: psutil.Process) -> None:
        self.requests.append(self.answered)
        self.megabytes.append(process.memory_info().rss / 1e6)


def documents(number: int) -> list[str]:
    """Return different documents that a site might send, some of them invalid."""
    chance = random.Random(7)
    return list(dict.fromkeys(_document(chance, place) for place in range(2 * number)))[:number]


def _document(chance: random.Random, place: int) -> str:
    name = f"Page{place % 3000}"
    if place % 100 == 99:
        return f"query {name} {{ board {{ nothing{place} }} }}"
    parts = [_field(chance, f"part{chance.randrange(1000)}x{number}") for number in range(chance.randint(1, 2))]
    return f"query {name} {{ {' '.join(parts)} }}"


def _field(chance: random.Random, alias: str) -> str:
    product, first = chance.choice(planted.PRODUCTS), chance.randint(1, 9)
    kinds = (
        (f'leaderboard(board: "main", first: {first})', ROWS),
        (f'comments(product: "{product}", first: {first})', TEXTS),
        (f"events(first: {first % 3 + 1})", DAYS),
    )
    field, inside = chance.choice(kinds)
    return f"{alias}: {field} {{ nodes {{ {_some(chance, inside)} }} }}"


def _some(chance: random.Random, fields: Sequence[str]) -> str:
    return " ".join(chance.sample(fields, chance.randint(1, len(fields))))


def requests(number: int, texts: Sequence[str], port: int) -> Iterator[bytes]:
    """Yield all requests of a run, as bytes."""
    bodies = [orjson.dumps({"query": text}) for text in texts]
    seal, chance = Seal([planted.SECRET]), random.Random(11)
    cookies = [f"ringside_visitor={seal.sign_text('visitor', random.randbytes(16))}" for _ in range(VISITORS)]
    host = f"POST /graphql HTTP/1.1\r\nhost: 127.0.0.1:{port}"
    host += "\r\ncontent-type: application/json\r\naccept: application/json"
    for place in range(number):
        body = bodies[chance.randrange(POPULAR) if place % RARE else place // RARE % len(bodies)]
        who = f"\r\ncookie: {cookies[int(VISITORS * chance.random() ** 3)]}" if place % 50 else ""
        yield f"{host}{who}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


async def asked(server: Server, number: int, texts: Sequence[str]) -> Run:
    assert server.process is not None
    process, run = psutil.Process(server.process.pid), Run()
    run.sample(process)
    left = requests(number, texts, server.port)

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=2**20)
        for request in left:
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            answer = await validate_body(reader, head)
            run.answered += 1
            run.refused += b'"errors"' in answer
            if not head.startswith(("http/1.1 200", "http/1.1 400")):
                raise RuntimeError(head)
            if run.answered % max(1, number // SAMPLES) == 0:
                run.sample(process)
        writer.close()

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return run


def slope(run: Run) -> float:
    """Return the megabytes gained per million requests over the second half, by least squares."""
    half = len(run.requests) // 2
    xs, ys = [one / 1e6 for one in run.requests[half:]], run.megabytes[half:]
    middle, level = mean(xs), mean(ys)
    return sum((x - middle) * (y - level) for x, y in zip(xs, ys, strict=True)) / sum((x - middle) ** 2 for x in xs)


def report(run: Run, texts: Sequence[str]) -> str:
    half = run.megabytes[len(run.megabytes) // 2 :]
    sampled = list(zip(run.requests, run.megabytes, strict=True))
    rows = [f"| {number:,} | {held:.1f} |" for number, held in sampled if sampled.index((number, held)) % 4 == 0]
    answered, number = f"{run.answered:,} requests", f"{len(texts):,} different documents"
    popular = f"Most requests send one of {POPULAR} documents, every {RARE}th the next of all."
    minutes = (time.perf_counter() - run.began) / 60
    return "\n".join([
        "# Memory over a long run",
        "",
        "    make bench BENCH=memory",
        "",
        f"{answered} with {number} from {CLIENTS} clients in {minutes:.0f} minutes.",
        f"{run.refused:,} were refused as invalid. {popular}",
        f"Visitors send one of {VISITORS:,} cookies or none. Resident memory of the service's process:",
        "",
        "| requests | MB |",
        "|---:|---:|",
        *rows,
        "",
        f"In the second half it stayed between {min(half):.1f} and {max(half):.1f} MB and changed by",
        f"{slope(run):+.1f} MB per million requests (least squares).",
        "",
    ])  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--requests", type=int, default=1_000_000)
    options.add_argument("--documents", type=int, default=10_000)
    given = options.parse_args()
    texts = documents(given.documents)
    assert len(texts) == given.documents
    with tempfile.TemporaryDirectory() as folder, beside(Path(folder)) as engine:
        asyncio.run(planted.plant(engine.url))
        server = Server("Ringside", [sys.executable, "-m", "server", "serve", "--port", "PORT"])
        server.start({**planted.environment(engine.url), "PYTHONPATH": str(here())})
        try:
            run = asyncio.run(asked(server, given.requests, texts))
        finally:
            server.stop()
    text = report(run, texts)
    print(text, f"\n{run.answered / (time.perf_counter() - run.began):.0f} requests a second, {os.cpu_count()} cores")
    if given.requests >= 1_000_000:
        (RESULTS / "memory.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
