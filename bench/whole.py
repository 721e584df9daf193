"""`make bench BENCH=whole`: requests end to end, from the socket to the table and back, compared with Node servers.

Each service answers the same queries from the same table in one embedded engine, which is a separate process. The
figures are the CPU time of the service's process and its engine calls, both per request. They are written to
bench/results/whole.md and whole.svg.
"""

import asyncio
import json
import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from textwrap import fill
from typing import Any

import httpx
import orjson

from bench.execution import NODE, PEERS, RINGSIDE, chosen, node
from bench.services import seeded_table
from bench.services.charts import bar_chart
from bench.services.measurement import CONNECTIONS, Server, fetch_json, measure, repository_root, send_requests
from server.engine import run_engine
from server.engine.process import DYNOXIDE

RESULTS = repository_root() / "bench" / "results"
BASELINE = "Mercurius with JIT"
SINGLE_CLIENT = "Ringside, one client"
UNCACHED = "Ringside, no caches"
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
TARGETS = {"filtered comments": 0.5, "comments": 0.5, "leaderboard": 0.5, "event screen": 0.8}
OPAQUE = {"id", "cursor", "endCursor"}
"""Each service generates its own."""
COUNTED_REQUESTS = 240


def pages(event: str) -> dict[str, bytes]:
    filtered = {"product": seeded_table.PRODUCT, "languages": ["en", "de"], "ratings": [4, 5]}
    texts: dict[str, tuple[str, dict[str, Any]]] = {
        "filtered comments": (COMMENTS % "", filtered),
        "comments": (COMMENTS % "", {"product": seeded_table.PRODUCT}),
        "leaderboard": (LEADERBOARD, {}),
        "event screen": (EVENT % "", {"event": event}),
        "filtered comments, with their total": (COMMENTS % " totalCount", filtered),
        "event screen, with everybody's picks": (EVENT % " pickCounts", {"event": event}),
    }
    return {page: orjson.dumps({"query": text, "variables": values}) for page, (text, values) in texts.items()}


def servers() -> list[Server]:
    cookie = {"cookie": seeded_table.cookie()}
    serve = ["serve", "--port", "PORT"]
    return [
        Server(RINGSIDE, [sys.executable, "-m", "server", *serve], headers=cookie),
        Server(SINGLE_CLIENT, [sys.executable, "-m", "server", *serve], headers=cookie, connections=1),
        Server(UNCACHED, [sys.executable, "-m", "bench.services.uncached", *serve], headers=cookie, connections=1),
        Server(BASELINE, [NODE, str(PEERS / "mercurius_aws.mjs"), "PORT", "jit"]),
        Server("Mercurius", [NODE, str(PEERS / "mercurius_aws.mjs"), "PORT"]),
        Server("Apollo Server", [NODE, str(PEERS / "apollo_aws.mjs"), "PORT"]),
    ]


def check_same_data(server: Server, bodies: dict[str, bytes], expected: dict[str, Any]) -> None:
    """Check that every service returns the same data, apart from opaque values."""
    for page, body in bodies.items():
        answer: Any = fetch_json(server, page, body)
        if answer.get("errors") or without_opaque(answer["data"]) != expected.setdefault(
            page, without_opaque(answer["data"])
        ):
            raise RuntimeError(f"{server.name} returns other data for the page {page}: {json.dumps(answer)[:600]}")


def without_opaque(value: Any) -> Any:
    """Return a response without the opaque values."""
    if isinstance(value, dict):
        return {name: without_opaque(inner) for name, inner in value.items() if name not in OPAQUE}
    return [without_opaque(inner) for inner in value] if isinstance(value, list) else value


def engine_calls(server: Server, bodies: dict[str, bytes]) -> dict[str, float]:
    """Return the engine calls per request, at full load."""
    per_request = {}
    for page, body in bodies.items():
        before = _count_calls(server)
        asyncio.run(send_requests(server, server.requests(page, body), COUNTED_REQUESTS))
        per_request[page] = (_count_calls(server) - before) / COUNTED_REQUESTS
    return per_request


def _count_calls(server: Server) -> float:
    url = f"http://127.0.0.1:{server.port}"
    if server.headers:
        figures = httpx.get(f"{url}/metrics").text
        return sum(map(float, re.findall(r"^ringside_engine_calls_total\{.*\} (\S+)$", figures, re.MULTILINE)))
    return float(httpx.post(f"{url}/graphql", json={"query": "{ calls }"}).json()["data"]["calls"])


@contextmanager
def on_one_engine(selected: list[Server]) -> Iterator[tuple[str, dict[str, str]]]:
    """A new engine's address, and the environment of servers on it, which are stopped at the end."""
    with tempfile.TemporaryDirectory() as folder, run_engine(Path(folder)) as engine:
        own = {"BENCH_ENGINE": engine.url, "BENCH_TABLE": seeded_table.TABLE, "PYTHONPATH": str(repository_root())}
        try:
            yield engine.url, {**seeded_table.environment(engine.url), **own}
        finally:
            for server in selected:
                server.stop()


def run(selected: list[Server], rounds: int, seconds: float) -> dict[str, dict[str, float]]:
    """Measure all services and return the engine calls of each."""
    with on_one_engine(selected) as (url, environment):
        bodies = pages(asyncio.run(seeded_table.seed(url)))
        expected: dict[str, Any] = {}
        for server in selected:
            server.start(environment)
            check_same_data(server, bodies, expected)
        measure(selected, bodies, rounds=rounds, seconds=seconds)
        return {server.name: engine_calls(server, bodies) for server in selected}


def table(measured: list[Server], calls: dict[str, dict[str, float]]) -> str:
    baseline = next((server for server in measured if server.name == BASELINE), measured[0])
    sdk = json.loads((PEERS / "node_modules/@aws-sdk/client-dynamodb/package.json").read_text(encoding="utf-8"))
    arguments = f' ARGS="{" ".join(sys.argv[1:])}"' if sys.argv[1:] else ""
    lines = [
        "# End to end over the embedded engine",
        "",
        f"    make bench BENCH=whole{arguments}",
        "",
        "CPU time of the service per request over HTTP, in milliseconds, as the operating system counts it for its",
        "process (the engine is a separate process): medians of interleaved rounds, all in one run, all services on",
        f"one table in one embedded engine. In parentheses: relative to {BASELINE}. The target is Ringside's ratio.",
        "",
        f"| | {' | '.join(server.name for server in measured)} | target |",
        f"|---|{'---:|' * (len(measured) + 1)}",
    ]
    rounds = len(baseline.rounds["comments"])
    for page in baseline.rounds:
        cells = [
            f"{server.milliseconds(page):.2f} ({server.milliseconds(page) / baseline.milliseconds(page):.2f})"
            for server in measured
        ]
        limit = f"{TARGETS[page]}" if page in TARGETS else ""
        lines.append(f"| {page} | {' | '.join(cells)} | {limit} |")
    lines += [
        "",
        "Engine calls per request at the same load:",
        "",
        f"| | {' | '.join(server.name for server in measured)} |",
        f"|---|{'---:|' * len(measured)}",
    ]
    for page in baseline.rounds:
        lines.append(f"| {page} | {' | '.join(f'{calls[server.name][page]:.2f}' for server in measured)} |")
    lines += [
        "",
        fill(_QUERIES.strip(), 118),
        "",
        fill(_CACHES.strip(), 118),
        "",
        f"This run: Python {platform.python_version()}, Node {node()}, @aws-sdk/client-dynamodb {sdk['version']},",
        f"dynoxide {DYNOXIDE}, uvloop {version('uvloop')}, {os.cpu_count()} cores, {rounds} rounds.",
    ]
    return "\n".join(lines) + "\n"


_QUERIES = """
The queries: 20 comments in English and German with four or five stars, or the newest 20, with their authors; a
leaderboard of 100 rows; an event with its card, its results and the ten best predictions; and two of these with the
fields of the guide's examples, the exact total and the picks per team. All services return the same data; each has its
own ids and cursors.
"""
_CACHES = f"""
Ringside's caches are part of its design: members' profiles are cached for 10 seconds, a board and its rows for a
quarter of a second (votes show within two seconds), the counts that plan a filtered page for 45 seconds, and immutable
data, such as an event's card at one version or the picks of a locked event, without a time limit. Concurrent requests
for the same data share one read. Each service has {CONNECTIONS} concurrent clients; “{SINGLE_CLIENT}” has one, so
that nothing is shared; “{UNCACHED}” has one as well, with all caches disabled: the cost of an occasional request. The
Node services cache nothing. They use the AWS SDK's document client as documented, which keeps connections open, query
all partitions of a page at once, and read authors in one batch. They are in bench/peers.
"""


def chart(measured: list[Server]) -> str:
    rows = [(server.name, {page: server.milliseconds(page) for page in TARGETS}) for server in measured]
    return bar_chart("CPU of the service per request, milliseconds (shorter is better)", rows, RINGSIDE)


def main() -> None:
    options, selected = chosen(__doc__, servers())
    calls = run(selected, options.rounds, options.seconds)
    text = table(selected, calls)
    print(text)
    if not options.only:
        (RESULTS / "whole.md").write_text(text, encoding="utf-8")
        (RESULTS / "whole.svg").write_text(chart(selected), encoding="utf-8")


if __name__ == "__main__":
    main()
