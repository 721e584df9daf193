"""`make bench BENCH=whole`: requests end to end, from the socket to the table and back, compared with Node servers.

Each service answers the same queries from the same table in one embedded engine, which is a separate process. The
figures are the CPU time of the service's process and its engine calls, both per request. They are written to
bench/results/whole.md and whole.svg.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from textwrap import fill
from typing import Any

import httpx
import orjson

from bench.execution import NODE, OURS, PEERS, install
from bench.services import planted
from bench.services.drawing import bars
from bench.services.measuring import CONNECTIONS, Server, answer, ask, here, measure
from server.engine import DYNOXIDE, beside

RESULTS = here() / "bench" / "results"
RIVAL = "Mercurius with JIT"
ALONE = "Ringside, one client"
FORGETFUL = "Ringside, no caches"
COMMENTS = """query Comments($product: ID!, $languages: [String!], $ratings: [Int!]) {
  comments(product: $product, languages: $languages, ratings: $ratings, first: 20) {%s
    edges { cursor node { id rating title body language createdAt editedAt author { id name avatarUrl } } }
    pageInfo { hasNextPage endCursor }
  }
}"""
LEADERBOARD = """query Leaderboard {
  leaderboard(board: "main", first: 100) { nodes { rank score wins losses ties contender { id name retired } } }
}"""
EVENT = """query Screen($event: ID!) {
  event(id: $event) {
    id name season state startsAt
    matches { id name points preshow championships teams { name members champion } result { outcome winner }%s }
    predictions(first: 10) { nodes { rank points correct user { id name avatarUrl } } }
  }
}"""
TO_REACH = {"filtered comments": 0.5, "comments": 0.5, "leaderboard": 0.5, "event screen": 0.8}
OPAQUE = {"id", "cursor", "endCursor"}
"""Each service generates its own."""
COUNTED = 240


def pages(event: str) -> dict[str, bytes]:
    chosen = {"product": planted.PRODUCT, "languages": ["en", "de"], "ratings": [4, 5]}
    texts: dict[str, tuple[str, dict[str, Any]]] = {
        "filtered comments": (COMMENTS % "", chosen),
        "comments": (COMMENTS % "", {"product": planted.PRODUCT}),
        "leaderboard": (LEADERBOARD, {}),
        "event screen": (EVENT % "", {"event": event}),
        "filtered comments, with their total": (COMMENTS % " totalCount", chosen),
        "event screen, with everybody's picks": (EVENT % " pickCounts", {"event": event}),
    }
    return {page: orjson.dumps({"query": text, "variables": values}) for page, (text, values) in texts.items()}


def servers() -> list[Server]:
    cookie = {"cookie": planted.cookie()}
    serve = ["serve", "--port", "PORT"]
    return [
        Server(OURS, [sys.executable, "-m", "server", *serve], headers=cookie),
        Server(ALONE, [sys.executable, "-m", "server", *serve], headers=cookie, connections=1),
        Server(FORGETFUL, [sys.executable, "-m", "bench.services.forgetful", *serve], headers=cookie, connections=1),
        Server(RIVAL, [NODE, str(PEERS / "mercurius_aws.mjs"), "PORT", "jit"]),
        Server("Mercurius", [NODE, str(PEERS / "mercurius_aws.mjs"), "PORT"]),
        Server("Apollo Server", [NODE, str(PEERS / "apollo_aws.mjs"), "PORT"]),
    ]


def same(server: Server, bodies: dict[str, bytes], expected: dict[str, Any]) -> None:
    """Check that every service returns the same data, apart from opaque values."""
    for page, body in bodies.items():
        found: Any = answer(server, page, body)
        if found.get("errors") or bare(found["data"]) != expected.setdefault(page, bare(found["data"])):
            message = f"{server.name} answers the page {page} with something else: {json.dumps(found)[:600]}"
            raise RuntimeError(message)


def bare(value: Any) -> Any:
    """Return a response without the opaque values."""
    if isinstance(value, dict):
        return {name: bare(inner) for name, inner in value.items() if name not in OPAQUE}
    return [bare(inner) for inner in value] if isinstance(value, list) else value


def calls(server: Server, bodies: dict[str, bytes]) -> dict[str, float]:
    """Return the engine calls per request, at full load."""
    found = {}
    for page, body in bodies.items():
        before = _calls(server)
        asyncio.run(ask(server, server.request(page, body), COUNTED))
        found[page] = (_calls(server) - before) / COUNTED
    return found


def _calls(server: Server) -> float:
    url = f"http://127.0.0.1:{server.port}"
    if server.headers:
        figures = httpx.get(f"{url}/metrics").text
        return sum(map(float, re.findall(r"^ringside_engine_calls_total\{.*\} (\S+)$", figures, re.MULTILINE)))
    return float(httpx.post(f"{url}/graphql", json={"query": "{ calls }"}).json()["data"]["calls"])


def run(chosen: list[Server], rounds: int, seconds: float) -> dict[str, dict[str, float]]:
    """Measure all services and return the engine calls of each."""
    with tempfile.TemporaryDirectory() as folder, beside(Path(folder)) as engine:
        bodies = pages(asyncio.run(planted.plant(engine.url)))
        environment = {
            **planted.environment(engine.url),
            "BENCH_ENGINE": engine.url,
            "BENCH_TABLE": planted.TABLE,
            "PYTHONPATH": str(here()),
        }
        expected: dict[str, Any] = {}
        try:
            for server in chosen:
                server.start(environment)
                same(server, bodies, expected)
            measure(chosen, bodies, rounds=rounds, seconds=seconds)
            return {server.name: calls(server, bodies) for server in chosen}
        finally:
            for server in chosen:
                server.stop()


def table(measured: list[Server], asked: dict[str, dict[str, float]]) -> str:
    rival = next((one for one in measured if one.name == RIVAL), measured[0])
    sdk = json.loads((PEERS / "node_modules/@aws-sdk/client-dynamodb/package.json").read_text(encoding="utf-8"))
    given = f' ARGS="{" ".join(sys.argv[1:])}"' if sys.argv[1:] else ""
    lines = [
        "# End to end over the embedded engine",
        "",
        f"    make bench BENCH=whole{given}",
        "",
        "CPU time of the service per request over HTTP, in milliseconds, as the operating system counts it for its",
        "process (the engine is a separate process): medians of interleaved rounds, all in one run, all services on",
        f"one table in one embedded engine. In parentheses: relative to {RIVAL}. The target is Ringside's ratio.",
        "",
        f"| | {' | '.join(server.name for server in measured)} | target |",
        f"|---|{'---:|' * (len(measured) + 1)}",
    ]
    rounds = len(rival.rounds["comments"])
    for page in rival.rounds:
        cells = [f"{one.figure(page):.2f} ({one.figure(page) / rival.figure(page):.2f})" for one in measured]
        limit = f"{TO_REACH[page]}" if page in TO_REACH else ""
        lines.append(f"| {page} | {' | '.join(cells)} | {limit} |")
    lines += [
        "",
        "Engine calls per request at the same load:",
        "",
        f"| | {' | '.join(server.name for server in measured)} |",
        f"|---|{'---:|' * len(measured)}",
    ]
    for page in rival.rounds:
        lines.append(f"| {page} | {' | '.join(f'{asked[one.name][page]:.2f}' for one in measured)} |")
    lines += [
        "",
        fill(_QUERIES.strip(), 118),
        "",
        fill(_KEPT.strip(), 118),
        "",
        f"This run: Python {platform.python_version()}, Node {_node()}, @aws-sdk/client-dynamodb {sdk['version']},",
        f"dynoxide {DYNOXIDE}, uvloop {version('uvloop')}, {os.cpu_count()} cores, {rounds} rounds.",
    ]
    return "\n".join(lines) + "\n"


_QUERIES = """
The queries: 20 comments in English and German with four or five stars, or the newest 20, with their authors; a
leaderboard of 100 rows; an event with its card, its results and the ten best predictions; and two of these with the
fields of the README's examples, the exact total and the picks per team. All services return the same data; each has its
own ids and cursors.
"""
_KEPT = f"""
Ringside's caches are part of its design: members' profiles are cached for 10 seconds, a board and its rows for a
quarter of a second (votes show within two seconds), the counts that plan a filtered page for 45 seconds, and immutable
data, such as an event's card at one version or the picks of a locked event, without a time limit. Concurrent requests
for the same data share one read. Each service has {CONNECTIONS} concurrent clients; “{ALONE}” has one, so that nothing
is shared; “{FORGETFUL}” has one as well, with all caches disabled: the cost of an occasional request. The Node services
cache nothing. They use the AWS SDK's document client as documented, which keeps connections open, query all partitions
of a page at once, and read authors in one batch. They are in bench/peers.
"""


def picture(measured: list[Server]) -> str:
    rows = [(server.name, {page: server.figure(page) for page in TO_REACH}) for server in measured]
    return bars("CPU of the service per request, milliseconds (shorter is better)", rows, OURS)


def _node() -> str:
    return subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True).stdout.strip().lstrip("v")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=9)
    arguments.add_argument("--seconds", type=float, default=1.0, help="CPU seconds per service, page and round")
    arguments.add_argument("--only", help="measure only services whose names contain this, and write no files")
    given = arguments.parse_args()
    install()
    chosen = [one for one in servers() if not given.only or given.only.lower() in one.name.lower()]
    asked = run(chosen, given.rounds, given.seconds)
    text = table(chosen, asked)
    print(text)
    if not given.only:
        (RESULTS / "whole.md").write_text(text, encoding="utf-8")
        (RESULTS / "whole.svg").write_text(picture(chosen), encoding="utf-8")


if __name__ == "__main__":
    main()
