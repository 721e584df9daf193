"""What the fast path saves: `python -m bench.fast_path [--turns N]`.

The service answers pages from the table in this process, without sockets, with the fast path and without it. The
figures are the CPU of the service per request, calls to the embedded engine included: medians of alternating turns.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TypeAlias
from unittest.mock import patch

import uvloop
from starlette.types import ASGIApp, Message, Scope

from bench.services import seeded_table
from bench.whole import pages
from server.app import application
from server.engine import run_engine
from server.settings import Settings
from tests.client import Served, lifespan

PAGES = ("comments", "filtered comments", "leaderboard")
REQUESTS = 100
"""In a turn."""


async def ask(served: Served, body: bytes) -> None:
    """Ask for a page some times, one request after the other."""
    scope: Scope = {
        "type": "http",
        "method": "POST",
        "path": "/graphql",
        "scheme": "http",
        "query_string": b"",
        "headers": [
            (b"host", b"127.0.0.1"),
            (b"content-type", b"application/json"),
            (b"accept", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"cookie", seeded_table.cookie().encode()),
        ],
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": body}

    async def send(message: Message) -> None:
        if message.get("status", 200) != 200:
            raise RuntimeError(message)

    for _ in range(REQUESTS):
        await served(dict(scope), receive, send)


def without_fast_path(app: ASGIApp, _path: str, _endpoint: ASGIApp) -> ASGIApp:
    return app


Figures: TypeAlias = tuple[list[float], list[float]]
"""Microseconds of CPU per request in each turn: with the fast path, and without it."""


async def measure(settings: Settings, bodies: dict[str, bytes], turns: int) -> dict[str, Figures]:
    with_it = application(settings)
    with patch("server.app.FastPath", without_fast_path):
        without = application(settings)
    took: dict[str, Figures] = {page: ([], []) for page in bodies}
    async with lifespan(with_it) as fast, lifespan(without) as plain:
        for turn in range(-1, turns):  # the first warms up
            for page, body in bodies.items():
                for served, figures in zip((fast, plain), took[page], strict=True):
                    began = time.process_time()
                    await ask(served, body)
                    if turn >= 0:
                        figures.append((time.process_time() - began) / REQUESTS * 1e6)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=25)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, run_engine(Path(folder)) as engine:
        bodies = pages(asyncio.run(seeded_table.seed(engine.url)))
        os.environ.update(seeded_table.environment(engine.url))
        chosen = {page: bodies[page] for page in PAGES}
        took = uvloop.run(measure(Settings.load(), chosen, options.turns))
    print(f"{'µs of CPU per request':24}{'with':>8}{'without':>9}{'saved':>8}{'share':>7}")
    for page, (with_it, without) in took.items():
        saved = statistics.median(slow - fast for fast, slow in zip(with_it, without, strict=True))
        share = saved / statistics.median(without)
        print(f"{page:24}{statistics.median(with_it):8.0f}{statistics.median(without):9.0f}{saved:8.0f}{share:7.1%}")


if __name__ == "__main__":
    main()
