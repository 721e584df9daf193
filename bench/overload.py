"""Ten times the service's capacity for ten seconds: how much of the capacity it still delivers.

    python -m bench.overload [--times 10] [--seconds 10] [--write]

The page is 20 comments with their authors, starting at one of 500 positions in a product, so each request needs the
engine. There are two services: one has a slow engine (each call takes up to 0.2 s longer) and accepts 32 concurrent
requests; the other has a fast engine and the default limit, and is bound by its own CPU. A closed loop measures each
service's capacity. Then an open loop in another process sends ten times as many requests without waiting for responses.
Afterwards one client sends a request every 50 ms until ten responses in a row are as fast as without load (at most
twice the median). The CPU-bound service is also tested with less load. Finally the engine is down for ten seconds while
a client sends five requests a second.
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
from datastore.comments import CommentChange, change_comment
from datastore.dynamo import Table, open_table
from datastore.dynamo.declaration import create
from datastore.receipts import Once
from resolvers.context import utc_now
from tests.engines import running_engine
from tests.fault.faults import Fault
from tests.fault.proxy import Proxy
from tests.service import Service, start_service

RESULTS = Path(__file__).parent / "results" / "overload.md"
SECRET = "a secret that is long enough for a benchmark"
TABLE = "ringside-overload"
COMMENTS = 600
SLOWNESS = 0.2
ROOM = 32
OK = 200
IN_A_ROW = 10
TIMEOUT = 2.0
PAGE = """query ($after: String) { comments(product: "p", first: 20, after: $after) {
  edges { cursor node { id body rating language createdAt author { name } } } pageInfo { hasNextPage endCursor } } }"""


@dataclass(frozen=True, slots=True)
class Overload:
    """The figures of one service."""

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
                change_comment(table, Once(one.author, None, "", utc_now()), one, CommentChange(None, one))
                for one in comments[start : start + 20]
            )
        )


@dataclass(frozen=True, slots=True)
class Target:
    """A service, and the request bodies for it, in memory and in a file."""

    service: Service
    bodies: list[str]
    file: Path

    @property
    def cpu(self) -> float:
        return sum(psutil.Process(self.service.process.pid).cpu_times()[:2])

    async def pressed(self, rate: float, seconds: float, clients: int = ROOM) -> dict[str, Any]:
        port = self.service.url.rpartition(":")[2]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.services.pressing", port, str(self.file), str(rate), str(seconds),
            str(clients), stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        said, _ = await process.communicate()
        found: dict[str, Any] = json.loads(said)
        return found

    async def asked(self, http: httpx.AsyncClient, number: int) -> tuple[float, bool, str]:
        """Send one request; return the seconds it took, whether it returned data, and the response."""
        began = time.perf_counter()
        try:
            body = self.bodies[number % len(self.bodies)]
            answer = await http.post("/graphql", content=body, headers={"content-type": "application/json"})
        except httpx.HTTPError as error:
            return time.perf_counter() - began, False, type(error).__name__
        return time.perf_counter() - began, answer.status_code == OK and "errors" not in answer.json(), answer.text

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.service.url, timeout=30)

    async def quiet(self) -> float:
        """Return the median seconds for a page without other load."""
        async with self.client() as http:
            return median([(await self.asked(http, number))[0] for number in range(30)])

    async def normal_after(self, ended: float, longest: float) -> float:
        """Return the seconds from the end of the load to the first of ten good responses in a row."""
        row, first = 0, 0.0
        async with self.client() as http:
            for number in range(600):
                began = time.perf_counter()
                seconds, good, _ = await self.asked(http, number)
                good = good and seconds <= longest
                first = began if good and row == 0 else first
                row = row + 1 if good else 0
                if row == IN_A_ROW:
                    return max(0.0, first - ended)
                await asyncio.sleep(0.05)
        return float("inf")


def target(service: Service, file: Path) -> Target:
    """Return a target with requests for the page at every position but the last ones."""
    places: list[str] = []
    with httpx.Client(base_url=service.url, timeout=30) as http:
        while len(places) < COMMENTS - 100:
            asked = {"query": PAGE, "variables": {"after": places[-1] if places else None}}
            page = http.post("/graphql", json=asked).json()["data"]["comments"]
            places += [edge["cursor"] for edge in page["edges"]]
    bodies = [json.dumps({"query": PAGE, "variables": {"after": place}}) for place in places]
    file.write_text("\n".join(bodies), encoding="utf-8")
    return Target(service, bodies, file)


async def overloaded(name: str, one: Target, times: float, seconds: float) -> Overload:
    await one.pressed(0, 2)
    quiet, before = await one.quiet(), one.cpu
    closed = await one.pressed(0, seconds / 2)
    cpu_page = (one.cpu - before) / closed["sent"]
    capacity = closed["answers"]["data"] / (seconds / 2)
    pressing = asyncio.create_task(one.pressed(capacity * times, seconds))
    ends = time.perf_counter() + seconds
    await asyncio.sleep(seconds)
    recovery = asyncio.create_task(one.normal_after(ends, quiet * 2 + 0.05))
    found, normal = await pressing, await recovery
    answers = found["answers"]
    return Overload(
        name, capacity, (found["sent"] + found["unsent"]) / seconds, answers.pop("data", 0) / seconds,
        answers.pop("come back", 0), {**answers, "unsent": found["unsent"]}, found["p50"], found["p99"], quiet, normal,
        cpu_page,
    )  # fmt: skip


async def refusal(one: Target) -> float:
    """Return the seconds of CPU per 503 response, with a limit of one concurrent request and 16 clients."""
    before = one.cpu
    found = await one.pressed(0, 4, clients=16)
    return (one.cpu - before) / max(1, found["answers"].get("come back", 0))


async def bereft(one: Target, proxy: Proxy, seconds: float) -> tuple[int, float, str, float]:
    """Stop the engine; return the responses, the slowest, their codes, and the seconds until service is normal."""
    quiet = await one.quiet()
    async with one.client() as http, proxy.disconnected():
        requests = []
        for number in range(int(seconds * 5)):
            requests.append(asyncio.create_task(one.asked(http, number)))
            await asyncio.sleep(0.2)
        answers = await asyncio.gather(*requests)
    normal = await one.normal_after(time.perf_counter(), quiet * 2 + 0.05)
    said = {"UNAVAILABLE" if "UNAVAILABLE" in text else text[:100] for _, _, text in answers}
    return len(answers), max(took for took, _, _ in answers), ", ".join(sorted(said)), normal


HEAD = """# Overload, and an engine that is down

    python -m bench.overload --write

{times:g} times the capacity for {seconds:g} s; bench/overload.py describes the method. Target: goodput of at least 80 %
of capacity, 503 with Retry-After for the rest, normal within 5 s.

| service | load | capacity, pages/s | CPU ms/page | offered/s | goodput/s | of capacity | 503 | others \
| p50, p99 of pages, s | page without load, s | normal after, s |
|---|---|---|---|---|---|---|---|---|---|---|---|
"""


def told(run: Overload, times: float) -> str:
    others = ", ".join(f"{number:,} {name}" for name, number in run.others.items() if number) or "none"
    return (
        f"| {run.name} | {times:g} | {run.capacity:.0f} | {run.cpu_page * 1000:.2f} | {run.offered:,.0f} "
        f"| {run.answered:.0f} | {run.goodput:.0%} | {run.told:,} | {others} | {run.p50:.2f}, {run.p99:.2f} "
        f"| {run.quiet:.3f} | {run.normal_after:.1f} |\n"
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=float, default=10)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    text = HEAD.format(times=given.times, seconds=given.seconds)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        engine = stack.enter_context(running_engine("dynoxide", folder))
        async with open_table(TABLE, url=engine.url) as table:
            await create(table)
            await plant(table)
        slow = await stack.enter_async_context(
            Proxy(engine.url, fault_rate=1.0, kinds=[Fault.SLOW], max_delay=SLOWNESS, seed=1)
        )
        common = {"RINGSIDE_TABLE": TABLE, "RINGSIDE_SECRETS": SECRET, "RINGSIDE_LOG": "info"}
        late = {**common, "RINGSIDE_DYNAMODB_URL": slow.url}
        quick = {**common, "RINGSIDE_DYNAMODB_URL": engine.url}
        file = folder / "requests"
        for name, variables, presses in (
            ("bound by its engine", {**late, "RINGSIDE_MAX_IN_FLIGHT": f"{ROOM}"}, (given.times,)),
            ("bound by its CPU", quick, (2.0, given.times)),
        ):
            for times in presses:
                with ExitStack() as processes:
                    one = await asyncio.to_thread(target, await start_service(variables, processes), file)
                    row = told(await overloaded(name, one, times, given.seconds), times)
                    print(row, end="", flush=True)
                    text += row
        with ExitStack() as processes:
            service = await start_service({**late, "RINGSIDE_MAX_IN_FLIGHT": "1"}, processes)
            one = await asyncio.to_thread(target, service, file)
            text += f"\nA 503 response takes {await refusal(one) * 1000:.2f} ms of CPU.\n"
        with ExitStack() as processes:
            slow.share = 0.0
            service = await start_service({**late, "RINGSIDE_REQUEST_TIMEOUT": f"{TIMEOUT}"}, processes)
            one = await asyncio.to_thread(target, service, file)
            number, slowest, said, normal = await bereft(one, slow, given.seconds)
            text += (
                f"\nEngine down for {given.seconds:g} s, RINGSIDE_REQUEST_TIMEOUT={TIMEOUT:g}: {number} responses,"
                f" all of them {said}, the slowest after {slowest:.2f} s; normal {normal:.1f} s after its return.\n"
            )
    print(text)
    if given.write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
