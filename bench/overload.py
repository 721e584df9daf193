"""Ten times the service's capacity for ten seconds: how much of the capacity it still delivers.

    python -m bench.overload [--times 10] [--seconds 10] [--write]

The page is 20 comments with their authors, starting at one of 500 positions in a product, so each request needs the
engine. There are two services: one has a slow engine (each call takes up to 0.2 s longer) and accepts 32 concurrent
requests; the other has a fast engine and the default limit, and is bound by its own CPU. A closed loop measures each
service's capacity. Then an open loop in another process sends ten times as many requests without waiting for responses.
Afterwards one client sends a request every 50 ms until ten responses in a row are as fast as without load (at most
twice the median). The CPU-bound service is also tested with less load. Finally the engine is down for ten seconds while
a client sends five requests a second, and then silent for thirty: it accepts requests and answers none.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import psutil

from bench.comments_pages import generate_comments
from datastore.changes.unit_of_work import UnitOfWork
from datastore.comments.changes import CommentChange, change_comment
from datastore.dynamo import Table, gather_or_cancel
from resolvers.requests.context import utc_now
from tests.conftest import create_table
from tests.engines import running_engine
from tests.fault.faults import Fault
from tests.fault.proxy import Proxy
from tests.service import Service, start_service

RESULTS = Path(__file__).parent / "results" / "overload.md"
SECRET = "a secret that is long enough for a benchmark"
TABLE = "ringside-overload"
COMMENTS = 600
MAX_DELAY = 0.2
MAX_IN_FLIGHT = 32
OK = 200
GOOD_RESPONSES = 10
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
    overloaded: int
    others: dict[str, int]
    p50: float
    p99: float
    unloaded: float
    normal_after: float
    cpu_page: float

    @property
    def goodput(self) -> float:
        return self.answered / self.capacity


async def seed(table: Table) -> None:
    changes = (
        change_comment(table, UnitOfWork(comment.author, None, "", utc_now()), comment, CommentChange(None, comment))
        for comment in generate_comments("p", COMMENTS, 300)
    )
    await gather_or_cancel(changes, 20)


@dataclass(frozen=True, slots=True)
class Target:
    """A service, and the request bodies for it, in memory and in a file."""

    service: Service
    bodies: list[str]
    file: Path

    @property
    def cpu(self) -> float:
        return float(sum(psutil.Process(self.service.process.pid).cpu_times()[:2]))

    async def load(self, rate: float, seconds: float, clients: int = MAX_IN_FLIGHT) -> dict[str, Any]:
        port = self.service.url.rpartition(":")[2]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.services.load_generator", port, str(self.file), str(rate), str(seconds),
            str(clients), stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        output, _ = await process.communicate()
        results: dict[str, Any] = json.loads(output)
        return results

    async def request(self, http: httpx.AsyncClient, number: int) -> tuple[float, bool, str]:
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

    async def unloaded_seconds(self) -> float:
        """Return the median seconds for a page without other load."""
        async with self.client() as http:
            return median([(await self.request(http, number))[0] for number in range(30)])

    async def normal_after(self, ended: float, longest: float) -> float:
        """Return the seconds from the end of the load to the first of ten good responses in a row."""
        good_in_a_row, first = 0, 0.0
        async with self.client() as http:
            for number in range(600):
                began = time.perf_counter()
                seconds, good, _ = await self.request(http, number)
                good = good and seconds <= longest
                first = began if good and good_in_a_row == 0 else first
                good_in_a_row = good_in_a_row + 1 if good else 0
                if good_in_a_row == GOOD_RESPONSES:
                    return max(0.0, first - ended)
                await asyncio.sleep(0.05)
        return float("inf")


def create_target(service: Service, file: Path) -> Target:
    """Return a target with requests for the page at every position but the last ones."""
    cursors: list[str] = []
    with httpx.Client(base_url=service.url, timeout=30) as http:
        while len(cursors) < COMMENTS - 100:
            request = {"query": PAGE, "variables": {"after": cursors[-1] if cursors else None}}
            page = http.post("/graphql", json=request).json()["data"]["comments"]
            cursors += [edge["cursor"] for edge in page["edges"]]
    bodies = [json.dumps({"query": PAGE, "variables": {"after": cursor}}) for cursor in cursors]
    file.write_text("\n".join(bodies), encoding="utf-8")
    return Target(service, bodies, file)


async def measure_overload(name: str, target: Target, times: float, seconds: float) -> Overload:
    await target.load(0, 2)
    unloaded, before = await target.unloaded_seconds(), target.cpu
    closed = await target.load(0, seconds / 2)
    cpu_page = (target.cpu - before) / closed["sent"]
    capacity = closed["answers"]["data"] / (seconds / 2)
    loading = asyncio.create_task(target.load(capacity * times, seconds))
    ends = time.perf_counter() + seconds
    await asyncio.sleep(seconds)
    recovery = asyncio.create_task(target.normal_after(ends, unloaded * 2 + 0.05))
    results, normal_after = await loading, await recovery
    answers = results["answers"]
    return Overload(
        name=name,
        capacity=capacity,
        offered=(results["sent"] + results["unsent"]) / seconds,
        answered=answers.pop("data", 0) / seconds,
        overloaded=answers.pop("overloaded", 0),
        others={**answers, "unsent": results["unsent"]},
        p50=results["p50"],
        p99=results["p99"],
        unloaded=unloaded,
        normal_after=normal_after,
        cpu_page=cpu_page,
    )


async def cpu_per_refusal(target: Target) -> float:
    """Return the seconds of CPU per 503 response, with a limit of one concurrent request and 16 clients."""
    before = target.cpu
    results = await target.load(0, 4, clients=16)
    refusals: int = max(1, results["answers"].get("overloaded", 0))
    return (target.cpu - before) / refusals


async def describe_outage(what: str, target: Target, outage: AbstractAsyncContextManager[None], seconds: float) -> str:
    """A sentence about an outage: the responses, the slowest, memory, and the seconds until service is normal."""
    memory = psutil.Process(target.service.process.pid).memory_info
    unloaded, before = await target.unloaded_seconds(), memory().rss
    async with target.client() as http, outage:
        requests = []
        for number in range(int(seconds * 5)):
            requests.append(asyncio.create_task(target.request(http, number)))
            await asyncio.sleep(0.2)
        answers = await asyncio.gather(*requests)
    normal = await target.normal_after(time.perf_counter(), unloaded * 2 + 0.05)
    codes = {"UNAVAILABLE" if "UNAVAILABLE" in text else text[:100] for _, _, text in answers}
    return (
        f"\nEngine {what} for {seconds:g} s, RINGSIDE_REQUEST_TIMEOUT={TIMEOUT:g}: {len(answers)} responses, all"
        f" of them {', '.join(sorted(codes))}, the slowest after {max(took for took, _, _ in answers):.2f} s; memory"
        f" {before / 1e6:.0f} MB before, {memory().rss / 1e6:.0f} MB after; normal {normal:.1f} s after its return.\n"
    )


HEAD = """# Overload, and an engine that is down

    python -m bench.overload --write

{times:g} times the capacity for {seconds:g} s; bench/overload.py describes the method. Target: goodput of at least 80 %
of capacity, 503 with Retry-After for the rest, normal within 5 s.

| service | load | capacity, pages/s | CPU ms/page | offered/s | goodput/s | of capacity | 503 | others \
| p50, p99 of pages, s | page without load, s | normal after, s |
|---|---|---|---|---|---|---|---|---|---|---|---|
"""


def table_row(run: Overload, times: float) -> str:
    others = ", ".join(f"{number:,} {name}" for name, number in run.others.items() if number) or "none"
    return (
        f"| {run.name} | {times:g} | {run.capacity:.0f} | {run.cpu_page * 1000:.2f} | {run.offered:,.0f} "
        f"| {run.answered:.0f} | {run.goodput:.0%} | {run.overloaded:,} | {others} | {run.p50:.2f}, {run.p99:.2f} "
        f"| {run.unloaded:.3f} | {run.normal_after:.1f} |\n"
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=float, default=10)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    text = HEAD.format(times=options.times, seconds=options.seconds)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        engine = stack.enter_context(running_engine("dynoxide", folder))
        table = await stack.enter_async_context(create_table(TABLE, engine.url))
        await seed(table)
        slow = await stack.enter_async_context(
            Proxy(engine.url, fault_rate=1.0, kinds=[Fault.SLOW], max_delay=MAX_DELAY, seed=1)
        )
        common = {"RINGSIDE_TABLE": TABLE, "RINGSIDE_SECRETS": SECRET, "RINGSIDE_LOG": "info"}
        slow_engine = {**common, "RINGSIDE_DYNAMODB_URL": slow.url}
        fast_engine = {**common, "RINGSIDE_DYNAMODB_URL": engine.url}
        file = folder / "requests"
        most = {"RINGSIDE_MAX_IN_FLIGHT": f"{2 * MAX_IN_FLIGHT}"}  # all clients have one address, whose share is half
        for name, variables, loads in (
            ("bound by its engine", {**slow_engine, **most}, (options.times,)),
            ("bound by its CPU", fast_engine, (2.0, options.times)),
        ):
            for times in loads:
                with ExitStack() as processes:
                    target = await asyncio.to_thread(create_target, await start_service(variables, processes), file)
                    row = table_row(await measure_overload(name, target, times, options.seconds), times)
                    print(row, end="", flush=True)
                    text += row
        with ExitStack() as processes:
            service = await start_service({**slow_engine, "RINGSIDE_MAX_IN_FLIGHT": "1"}, processes)
            target = await asyncio.to_thread(create_target, service, file)
            text += f"\nA 503 response takes {await cpu_per_refusal(target) * 1000:.2f} ms of CPU.\n"
        with ExitStack() as processes:
            slow.fault_rate = 0.0
            service = await start_service({**slow_engine, "RINGSIDE_REQUEST_TIMEOUT": f"{TIMEOUT}"}, processes)
            target = await asyncio.to_thread(create_target, service, file)
            text += await describe_outage("down", target, slow.disconnected(), options.seconds)
            text += await describe_outage("silent", target, slow.silent(), 3 * options.seconds)
    print(text)
    if options.write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
