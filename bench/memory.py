"""Memory over a million requests with ten thousand different documents: `make bench BENCH=memory`.

The service runs in its own process, its engine in another. Most requests use one of two hundred popular documents.
Every fortieth uses the next of all documents, so each is compiled two or three times, because the cache holds a few
hundred. Visitors send cookies or none, operations have different names, and some documents are invalid. The benchmark
samples the resident memory of the service's process. A full run writes bench/results/memory.md.
"""

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

from bench.services import seeded_table
from bench.services.attackers import Connection
from bench.services.measurement import Server, repository_root
from datastore.values.seal import Seal
from server.engine import run_engine

CLIENTS = 16
POPULAR = 200
RARE = 40
"""One request in this many is not for a popular document."""
VISITORS = 20_000
SAMPLES = 40
RESULTS = repository_root() / "bench" / "results"
CONTENDER_FIELDS = (
    "rank",
    "wins",
    "losses",
    "ties",
    "score",
    "contender { id name }",
    "contender { createdAt retired }",
)
COMMENT_FIELDS = ("id", "rating", "title", "body", "language", "createdAt", "editedAt", "author { id name }", "status")
EVENT_FIELDS = (
    "id",
    "name",
    "state",
    "startsAt",
    "season",
    "slug",
    "matches { name points }",
    "matches { teams { members } }",
)


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
    return list(dict.fromkeys(_document(chance, number) for number in range(2 * number)))[:number]


def _document(chance: random.Random, number: int) -> str:
    name = f"Page{number % 3000}"
    if number % 100 == 99:
        return f"query {name} {{ board {{ nothing{number} }} }}"
    parts = [_field(chance, f"part{chance.randrange(1000)}x{number}") for number in range(chance.randint(1, 2))]
    return f"query {name} {{ {' '.join(parts)} }}"


def _field(chance: random.Random, alias: str) -> str:
    product, first = chance.choice(seeded_table.PRODUCTS), chance.randint(1, 9)
    kinds = (
        (f'leaderboard(board: "main", first: {first})', CONTENDER_FIELDS),
        (f'comments(product: "{product}", first: {first})', COMMENT_FIELDS),
        (f"events(first: {first % 3 + 1})", EVENT_FIELDS),
    )
    field, inside = chance.choice(kinds)
    return f"{alias}: {field} {{ nodes {{ {_some(chance, inside)} }} }}"


def _some(chance: random.Random, fields: Sequence[str]) -> str:
    return " ".join(chance.sample(fields, chance.randint(1, len(fields))))


def requests(number: int, texts: Sequence[str], port: int) -> Iterator[bytes]:
    """Yield all requests of a run, as bytes."""
    bodies = [orjson.dumps({"query": text}) for text in texts]
    seal, chance = Seal([seeded_table.SECRET]), random.Random(11)
    cookies = [f"ringside_visitor={seal.sign_text('visitor', random.randbytes(16))}" for _ in range(VISITORS)]
    head = f"POST /graphql HTTP/1.1\r\nhost: 127.0.0.1:{port}"
    head += "\r\ncontent-type: application/json\r\naccept: application/json"
    for index in range(number):
        body = bodies[chance.randrange(POPULAR) if index % RARE else index // RARE % len(bodies)]
        cookie = f"\r\ncookie: {cookies[int(VISITORS * chance.random() ** 3)]}" if index % 50 else ""
        yield f"{head}{cookie}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


async def send_requests(server: Server, number: int, texts: Sequence[str]) -> Run:
    assert server.process is not None
    process, run = psutil.Process(server.process.pid), Run()
    run.sample(process)
    remaining = requests(number, texts, server.port)

    async def client() -> None:
        connection = Connection(server.port, "127.0.0.1")
        for request in remaining:
            status, head, answer = await connection.ask(request)
            run.answered += 1
            run.refused += b'"errors"' in answer
            if status not in (200, 400):
                raise RuntimeError(head)
            if run.answered % max(1, number // SAMPLES) == 0:
                run.sample(process)
        connection.close()

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return run


def slope(run: Run) -> float:
    """Return the megabytes gained per million requests over the second half, by least squares."""
    half = len(run.requests) // 2
    millions, megabytes = [number / 1e6 for number in run.requests[half:]], run.megabytes[half:]
    mean_x, mean_y = mean(millions), mean(megabytes)
    covariance = sum((x - mean_x) * (y - mean_y) for x, y in zip(millions, megabytes, strict=True))
    return covariance / sum((x - mean_x) ** 2 for x in millions)


def report(run: Run, texts: Sequence[str]) -> str:
    half = run.megabytes[len(run.megabytes) // 2 :]
    sampled = list(zip(run.requests, run.megabytes, strict=True))
    rows = [f"| {number:,} | {megabytes:.1f} |" for index, (number, megabytes) in enumerate(sampled) if index % 4 == 0]
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--documents", type=int, default=10_000)
    options = parser.parse_args()
    texts = documents(options.documents)
    assert len(texts) == options.documents
    with tempfile.TemporaryDirectory() as folder, run_engine(Path(folder)) as engine:
        asyncio.run(seeded_table.seed(engine.url))
        server = Server("Ringside", [sys.executable, "-m", "server", "serve", "--port", "PORT"])
        server.start({**seeded_table.environment(engine.url), "PYTHONPATH": str(repository_root())})
        try:
            run = asyncio.run(send_requests(server, options.requests, texts))
        finally:
            server.stop()
    text = report(run, texts)
    print(text, f"\n{run.answered / (time.perf_counter() - run.began):.0f} requests a second, {os.cpu_count()} cores")
    if options.requests >= 1_000_000:
        (RESULTS / "memory.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
