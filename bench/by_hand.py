"""`make bench BENCH=by_hand`: the service beside the same work by hand, without GraphQL, and beside Mercurius with JIT.

All three read one table in one embedded engine, which is a separate process. The figures are the CPU time of the
service's processes per request, in one run with many different requests. They are written to bench/results/by_hand.md.
"""

import asyncio
import os
import platform
import sys
from dataclasses import replace
from statistics import median
from textwrap import fill
from typing import Any

from bench.execution import RINGSIDE, chosen
from bench.services import variants
from bench.services.measurement import Server, fetch_json, measure, repository_root
from bench.whole import BASELINE, check_same_data, engine_calls, on_one_engine
from bench.whole import servers as whole_servers
from server.engine.process import DYNOXIDE

RESULTS = repository_root() / "bench" / "results"
BY_HAND = "by hand"
KEEPING_NOTHING = "by hand, keeping nothing"
CLIENTS = 8
SECOND_PAGE = "second page, 300 B"
GOALS = {
    "filtered page, 300 B": 0.6,
    "filtered page, 3 KB": 0.6,
    SECOND_PAGE: 0.6,
    "varied wordings": 0.7,
    "unfiltered page": 0.7,
    "leaderboard of 100": 0.6,
    "event screen": 0.6,
    "everyone asks for one page": 0.25,
}


def servers() -> list[Server]:
    paths = dict.fromkeys(GOALS, "/comments") | {"leaderboard of 100": "/leaderboard", "event screen": "/event"}
    command = [sys.executable, "-m", "bench.services.by_hand", "PORT"]
    by_hand = Server(BY_HAND, command, paths=paths)
    keeping_nothing = Server(KEEPING_NOTHING, [*command, "--keep-nothing"], paths=paths)
    others = [server for server in whole_servers() if server.name in (RINGSIDE, BASELINE)]
    return [replace(server, connections=CLIENTS) for server in (*others, by_hand, keeping_nothing)]


def second_pages(server: Server) -> list[bytes]:
    """Return the bodies of second pages, with the cursors that this server gave for the first ones."""
    second = []
    for values in variants.filtered(variants.SHORT):
        first = fetch_json(server, SECOND_PAGE, variants.comments_body(values))
        after = first["data"]["comments"]["pageInfo"]["endCursor"]
        second.append(variants.comments_body({**values, "after": after}))
    return second


def check_answers(server: Server, expected: dict[str, Any]) -> None:
    """Check some variants of each page: every service must return the same data."""
    for page, bodies in server.variants.items():
        for number in range(0, len(bodies), max(1, len(bodies) // 16)):
            named = {f"{page} {number}": bodies[number]}
            check_same_data(
                replace(server, paths={name: server.paths.get(page, "/graphql") for name in named}), named, expected
            )


def run(selected: list[Server], rounds: int, seconds: float) -> dict[str, dict[str, float]]:
    """Measure all services and return the engine calls of each."""
    with on_one_engine(selected) as (url, environment):
        bodies = variants.bodies(asyncio.run(variants.seed(url)))
        expected: dict[str, Any] = {}
        for server in selected:
            server.start(environment)
            own = {**bodies, SECOND_PAGE: second_pages(server)}
            server.variants = {page: own[page] for page in GOALS}
            check_answers(server, expected)
        pages = dict.fromkeys(GOALS, b"")
        measure(selected, pages, rounds=rounds, seconds=seconds)
        return {server.name: engine_calls(server, pages) for server in selected}


def ratio(ringside: Server, other: Server, page: str) -> float:
    """Return the median of the ratios within each round: what disturbs a round disturbs both."""
    return median(own / theirs for own, theirs in zip(ringside.rounds[page], other.rounds[page], strict=True))


def table(measured: list[Server], calls: dict[str, dict[str, float]]) -> str:
    ringside, *others = measured
    rounds = len(ringside.rounds[SECOND_PAGE])
    arguments = f' ARGS="{" ".join(sys.argv[1:])}"' if sys.argv[1:] else ""
    names = [server.name for server in measured]
    columns = [f"{name}, ms" for name in names]
    lines = [
        "# End to end, beside the same work by hand",
        "",
        f"    make bench BENCH=by_hand{arguments}",
        "",
        fill(_MEASURED.strip(), 118),
        "",
        f"| page | {' | '.join([*columns, *(f'of {server.name}' for server in others)])} | goal, of {BY_HAND} |",
        f"|---|{'---:|' * (len(names) + len(others) + 1)}",
    ]
    for page, goal in GOALS.items():
        times = " | ".join(f"{server.milliseconds(page):.2f}" for server in measured)
        ratios = " | ".join(f"{ratio(ringside, server, page):.2f}" for server in others)
        lines.append(f"| {page} | {times} | {ratios} | {goal} |")
    lines += [
        "",
        "Engine calls per request at the same load:",
        "",
        f"| page | {' | '.join(names)} |",
        f"|---|{'---:|' * len(names)}",
        *(f"| {page} | {' | '.join(f'{calls[name][page]:.2f}' for name in names)} |" for page in GOALS),
        "",
        fill(_BY_HAND.strip(), 118),
        "",
        f"This run: Python {platform.python_version()}, dynoxide {DYNOXIDE}, {os.cpu_count()} cores, {rounds} rounds.",
    ]
    return "\n".join(lines) + "\n"


_MEASURED = f"""
CPU time of the service per request over HTTP, as the operating system counts it for its processes (the engine is a
separate process): medians of interleaved rounds, all in one run on one table, {CLIENTS} clients. Ratios are medians of
the ratios within each round. The clients send different requests in turn: 32 for each page, 992 for the varied wordings
(31 sets of ratings in 32 wordings), and one where everyone asks for one page. Smaller is better; a goal is Ringside's
share of what the work by hand costs.
"""
_BY_HAND = """
By hand (bench/services/by_hand.py): a plain ASGI application under uvicorn and uvloop, aiohttp, signed requests,
orjson, answers shaped by hand. It reads the same partitions by the same plans and keeps profiles, counts, boards and
cards as long as Ringside does, or, in the last column, keeps nothing. It does not join equal reads under way, nor give
the same answer again for a quarter of a second, as Ringside does where the same is read more than four times a second.
It does none of what surrounds a request: no visitors, limits, deadlines, retries, metrics or signed cursors. Mercurius
reads through the AWS SDK and caches nothing. The engine calls are counted over 240 requests, which read each time.
"""


def main() -> None:
    options, selected = chosen(__doc__, servers())
    calls = run(selected, options.rounds, options.seconds)
    text = table(selected, calls)
    print(text)
    if not options.only:
        (RESULTS / "by_hand.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
