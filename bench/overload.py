"""Ten times what the service can do, for ten seconds: how much of its capacity is left to those it serves.

    python -m bench.overload [--times 10] [--seconds 10] [--write]

The page is 20 comments with their authors at one of 500 places of a product, so each needs the engine. Two services:
one waits for a slow engine (each call takes up to 0.2 s longer) with room for 32 requests at once, the other has a
quick engine, the room it has by default, and is held up by its own processor alone. Capacity is what a closed loop
gets out of each; then an open loop, in a process of its own, asks ten times as often and waits for nobody; then one
client asks every 50 ms until ten answers in a row took no longer than before (twice the median of quiet times).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import psutil

from bench.comments_pages import drawn
from datastore.comments import Rewrite, rewrite
from datastore.dynamo import Table, open_table
from datastore.dynamo.declaration import create
from datastore.receipts import Once
from resolvers.context import utc_now
from tests.engines import running
from tests.fault.faults import Fault
from tests.fault.proxy import Proxy
from tests.service import Service, started

RESULTS = Path(__file__).parent / "results" / "overload.md"
SECRET = "a secret that is long enough for a benchmark"
TABLE = "ringside-overload"
COMMENTS = 600
SLOWNESS = 0.2
ROOM = 32
CLIENTS = 64
PAGE = """query ($after: String) { comments(product: "p", first: 20, after: $after) {
  edges { cursor node { id body rating language createdAt author { name } } } pageInfo { hasNextPage endCursor } } }"""


@dataclass(frozen=True, slots=True)
class Overload:
    """What one service made of it."""

    name: str
    capacity: float
    offered: float
    answered: float
    told: int
    others: dict[str, int]
    p50: float
    p99: float
    quiet: float
    normal_after: float
    cpu_page: float

    @property
    def goodput(self) -> float:
        return self.answered / self.capacity


async def plant(table: Table) -> None:
    comments = list(drawn("p", COMMENTS, 300))
    for start in range(0, COMMENTS, 20):
        await asyncio.gather(
            *(
                rewrite(table, Once(one.author, None, "", utc_now()), one, Rewrite(None, one))
                for one in comments[start : start + 20]
            )
        )


async def requests(service: Service, file: Path) -> None:
    """The page at every place but the last ones, as bodies in a file."""
    places: list[str] = []
    async with httpx.AsyncClient(base_url=service.url, timeout=30) as http:
        while len(places) < COMMENTS - 100:
            asked = {"query": PAGE, "variables": {"after": places[-1] if places else None}}
            page = (await http.post("/graphql", json=asked)).json()["data"]["comments"]
            places += [edge["cursor"] for edge in page["edges"]]
    lines = [json.dumps({"query": PAGE, "variables": {"after": place}}) for place in places]
    file.write_text("\n".join(lines), encoding="utf-8")


async def press(service: Service, file: Path, rate: float, seconds: float) -> dict[str, Any]:
    port = service.url.rpartition(":")[2]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.services.pressing", port, str(file), str(rate), str(seconds), str(CLIENTS),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    said, _ = await process.communicate()
    found: dict[str, Any] = json.loads(said)
    return found


async def quiet_median(service: Service, file: Path) -> float:
    """Seconds that a page takes when nobody else asks."""
    async with httpx.AsyncClient(base_url=service.url, timeout=30) as http:
        return median([await asked(http, body) for body in file.read_text(encoding="utf-8").splitlines()[:30]])


async def asked(http: httpx.AsyncClient, body: str) -> float:
    """Seconds until there were data; endless if there were none."""
    began = time.perf_counter()
    try:
        answer = await http.post("/graphql", content=body, headers={"content-type": "application/json"})
    except httpx.HTTPError:
        return float("inf")
    return time.perf_counter() - began if answer.status_code == 200 and "errors" not in answer.json() else float("inf")


async def normal_after(service: Service, file: Path, ended: float, longest: float) -> float:
    """Seconds from the end of the overload to the first of ten good answers in a row."""
    bodies, row, first = file.read_text(encoding="utf-8").splitlines(), 0, 0.0
    async with httpx.AsyncClient(base_url=service.url, timeout=30) as http:
        for number in range(600):
            began = time.perf_counter()
            good = await asked(http, bodies[number % len(bodies)]) <= longest
            first = began if good and row == 0 else first
            row = row + 1 if good else 0
            if row == 10:  # noqa: PLR2004
                return max(0.0, first - ended)
            await asyncio.sleep(0.05)
    return float("inf")


async def overloaded(name: str, service: Service, file: Path, times: float, seconds: float) -> Overload:
    process = psutil.Process(service.process.pid)
    await press(service, file, 0, 2)
    quiet = await quiet_median(service, file)
    before = sum(process.cpu_times()[:2])
    closed = await press(service, file, 0, seconds / 2)
    cpu_page = (sum(process.cpu_times()[:2]) - before) / closed["sent"]
    capacity = closed["answers"]["data"] / (seconds / 2)
    pressing = asyncio.create_task(press(service, file, capacity * times, seconds))
    began = time.perf_counter()
    await asyncio.sleep(seconds)
    recovery = asyncio.create_task(normal_after(service, file, began + seconds, quiet * 2 + 0.05))
    found, normal = await pressing, await recovery
    answers = found["answers"]
    return Overload(
        name, capacity, (found["sent"] + found["unsent"]) / seconds, answers.pop("data", 0) / seconds,
        answers.pop("come back", 0), {**answers, "unsent": found["unsent"]}, found["p50"], found["p99"], quiet, normal,
        cpu_page,
    )  # fmt: skip


def told(runs: list[Overload], times: float, seconds: float) -> str:
    lines = [
        "# Overload",
        "",
        "    python -m bench.overload --write",
        "",
        f"{times:g} times the capacity, for {seconds:g} s; bench/overload.py says how. To reach: goodput 80 % of capacity,",
        "the rest told to come back (503 and Retry-After), normal within 5 s.",
        "",
        "| service | capacity, pages/s | CPU ms/page | offered/s | goodput/s | of capacity | told to come back "
        "| other answers | p50, p99 of pages, s | quiet, s | normal after, s |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for run in runs:
        others = ", ".join(f"{number:,} {name}" for name, number in run.others.items() if number) or "none"
        lines.append(
            f"| {run.name} | {run.capacity:.0f} | {run.cpu_page * 1000:.2f} | {run.offered:,.0f} | {run.answered:.0f} "
            f"| {run.goodput:.0%} | {run.told:,} | {others} | {run.p50:.2f}, {run.p99:.2f} | {run.quiet:.3f} "
            f"| {run.normal_after:.1f} |"
        )
    return "\n".join([*lines, ""])


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=float, default=10)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    runs: list[Overload] = []
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        engine = stack.enter_context(running("dynoxide", folder))
        async with open_table(TABLE, url=engine.url) as table:
            await create(table)
            await plant(table)
        slow = await stack.enter_async_context(
            Proxy(engine.url, share=1.0, kinds=[Fault.SLOW], slowness=SLOWNESS, seed=1)
        )
        variables = {"RINGSIDE_TABLE": TABLE, "RINGSIDE_SECRETS": SECRET, "RINGSIDE_INTROSPECTION": "off"}
        for name, more in (
            ("waits for its engine", {"RINGSIDE_DYNAMODB_URL": slow.url, "RINGSIDE_MAX_IN_FLIGHT": f"{ROOM}"}),
            ("waits for its processor", {"RINGSIDE_DYNAMODB_URL": engine.url}),
        ):
            with ExitStack() as processes:
                service = await started({**variables, **more}, processes)
                file = folder / "requests"
                await requests(service, file)
                runs.append(await overloaded(name, service, file, given.times, given.seconds))
            print(runs[-1], flush=True)
    text = told(runs, given.times, given.seconds)
    print(text)
    if given.write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
