"""All known attacks at once on one process, with honest load beside them.

    python -m bench.attacks [--seconds 600] [--rate 60] [--connections 50] [--waves 10] [--write]

The service runs in one process as in production (own secrets, introspection by role, a log in JSON), but on the
embedded engine with its demo data. One honest client asks for pages of comments, the leaderboard and events, draws
pairs and votes. First it is alone; then 50 connections, each from a network address of its own, attack in all the ways
of `bench.services.attackers`, and some hundred others stay idle or send a byte now and then; then it is alone again.
Before that, each attack runs by itself for two seconds. A probe asks for /livez every 10 ms throughout: its slowest
answer bounds the longest time for which anything blocked the service's event loop. (On a busy machine it also contains
the time for which the processes did not run.) The attackers' process has a lower priority than the service.

Then, on a service of its own with introspection for everyone, forty of the dearest documents at once come from one
address in ten waves, with new ids each time, and once more beside 200 connections that pipeline ten introspections each
(`bench.services.dearest`). Before, other operations take all rows of the metrics, as they have on a service that has
run for a while.
"""

import argparse
import asyncio
import json
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any
from urllib.parse import urlsplit

import jwt
import psutil
import uvloop

from bench.services.attackers import DRAW, VOTE, Attackers, Connection, http
from server.telemetry.metrics import MAX_NAMES
from tests.service import Service, running_service

RESULTS = Path(__file__).parent / "results" / "attacks.md"
AT_ONCE = 40
PIPELINES = 200
HONEST_PAUSE = 0.02
PROBE_PAUSE = 0.01
PAGES = (
    ('{ comments(product: "ringside-tee", first: 20) { totalCount edges { cursor node { rating title body '
    "author { name } createdAt } } pageInfo { hasNextPage endCursor } } }"),
    "{ leaderboard(first: 20) { nodes { rank score contender { id name } } } }",
    "{ events(first: 5) { nodes { id name startsAt matches { order name teams { members } } } } }",
    '{ comments(product: "ringside-tee", languages: ["en"], ratings: [4, 5], first: 20) { nodes { body } } }',
)  # fmt: skip


@dataclass
class Phase:
    """What the honest client, the probe and the operating system saw in one part of the run."""

    honest: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    votes: int = 0
    probes: list[float] = field(default_factory=list)
    weighed: list[tuple[float, float]] = field(default_factory=list)
    """The resident memory in MB, and when."""
    cpu: float = 0.0
    waited: float = 0.0
    """Seconds for which the service could have run, but other processes had all cores."""
    seconds: float = 0.0

    @property
    def resident(self) -> list[float]:
        return [mb for _, mb in self.weighed]

    def percentile(self, number: int) -> float:
        return quantiles(self.honest, n=100)[number - 1] * 1000


class Watch:
    """The honest client and the probe, which go on from phase to phase."""

    def __init__(self, service: Service) -> None:
        self.port = urlsplit(service.url).port or 0
        self.process = psutil.Process(service.process.pid)
        self.phase = Phase()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(work()) for work in (self._behave, self._probe, self._weigh)]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @asynccontextmanager
    async def during(self) -> AsyncIterator[Phase]:
        phase = self.phase = Phase()
        began, before, waited = time.time(), sum(self.process.cpu_times()[:2]), self._waited()
        yield phase
        phase.seconds, phase.cpu = time.time() - began, sum(self.process.cpu_times()[:2]) - before
        phase.waited = self._waited() - waited
        self.phase = Phase()

    def _waited(self) -> float:
        return int(Path(f"/proc/{self.process.pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9

    def peak(self) -> float:
        """The most memory so far, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        found = re.search(r"VmHWM:\s+(\d+)", status)
        return int(found[1]) * 1024 / 1e6 if found else 0.0

    async def _behave(self) -> None:
        connection, cookie = Connection(self.port, "127.0.0.1"), ""
        while True:
            for page in (*PAGES, *PAGES[:3]):
                await self._ask(connection, http(page, *([cookie] if cookie else [])))
            head, body = await self._ask(connection, http(DRAW, *([cookie] if cookie else [])))
            if given := re.search(rb"set-cookie: ([^;]+)", head, re.IGNORECASE):
                cookie = f"cookie: {given[1].decode()}"
            if token := re.search(rb'"token":"([^"]+)"', body):
                _, body = await self._ask(connection, http(VOTE, cookie, token=token[1].decode()))
                self.phase.votes += b'"winner"' in body

    async def _ask(self, connection: Connection, request: bytes) -> tuple[bytes, bytes]:
        phase, began = self.phase, time.perf_counter()
        status, head, body = await connection.ask(request)
        phase.honest.append(time.perf_counter() - began)
        phase.statuses[f"{status} with errors" if b'"errors":' in body else str(status)] += 1
        await asyncio.sleep(HONEST_PAUSE)
        return head, body

    async def _probe(self) -> None:
        connection = Connection(self.port, "127.0.0.1")
        while True:
            phase, began = self.phase, time.perf_counter()
            await connection.ask(b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            phase.probes.append((time.perf_counter() - began) * 1000)
            await asyncio.sleep(PROBE_PAUSE)

    async def _weigh(self) -> None:
        while True:
            self.phase.weighed.append((time.time(), self.process.memory_info().rss / 1e6))
            await asyncio.sleep(0.25)


def refused_tokens(secret: str) -> list[str]:
    claims = {"sub": "mallory", "exp": int(time.time()) + 3600, "roles": ["admin"]}
    return [
        jwt.encode(claims | {"exp": int(time.time()) - 60}, secret, algorithm="HS256"),
        jwt.encode(claims, "", algorithm="none"),
        jwt.encode(claims, "a made-up secret of more than thirty-two letters", algorithm="HS256"),
        jwt.encode(claims, secret, algorithm="HS256", headers={"crit": ["b64"], "b64": False}),
        "x" * 8000,
    ]


async def attack(watch: Watch, secret: str, options: Any, kind: str | None = None) -> tuple[Phase, dict[str, Any]]:
    seconds, rate, connections = (options.alone, 5, 1) if kind else (options.seconds, options.rate, options.connections)
    process = await asyncio.create_subprocess_exec(
        "nice", "-n", "5", sys.executable, "-m", "bench.services.attackers", str(watch.port), str(seconds), str(rate),
        str(connections), json.dumps(refused_tokens(secret)), *([kind] if kind else []), stdout=subprocess.PIPE,
    )  # fmt: skip
    async with watch.during() as phase:
        output, _ = await process.communicate()
    return phase, json.loads(output)


async def run(service: Service, secret: str, options: Any) -> tuple[dict[str, Phase], dict[str, Phase], dict[str, Any]]:
    watch = Watch(service)
    async with watch.running():
        await asyncio.sleep(5)
        async with watch.during() as before:
            await asyncio.sleep(min(60, max(10, options.seconds / 4)))
        kinds = Attackers(0, 0, 1, 1).kinds if options.alone else ()
        alone = {kind: (await attack(watch, secret, options, kind))[0] for kind in kinds}
        attacked, counts = await attack(watch, secret, options)
        async with watch.during() as after:
            await asyncio.sleep(min(60, max(10, options.seconds / 4)))
    return {"before": before, "with attacks": attacked, "after": after}, alone, counts


EXISTING = """{ boards(first: 100) { nodes { id } } events { nodes { id } } wordLists { nodes { id } }
  contenders(first: 100) { nodes { id } } standings(season: "2026", first: 100) { nodes { user { id } } }
  comments(product: "ringside-tee", first: 100) { nodes { id } } }"""


@dataclass
class Waves:
    """What came of waves of the dearest documents."""

    phase: Phase
    answers: dict[str, int]
    slowest: list[float]
    resident: list[float]
    """The most memory in each wave."""
    peak: float


async def waves(watch: Watch, number: int, pipelines: int) -> Waves:
    _, _, body = await Connection(watch.port, "127.0.0.1").ask(http(EXISTING))
    process = await asyncio.create_subprocess_exec(
        "nice", "-n", "5", sys.executable, "-m", "bench.services.dearest", str(watch.port), str(number), str(AT_ONCE),
        str(pipelines), body.decode(), stdout=subprocess.PIPE,
    )  # fmt: skip
    async with watch.during() as phase:
        output, _ = await process.communicate()
    came = json.loads(output)
    began, resident = 0.0, []
    for end in came["ends"]:
        resident.append(max((mb for at, mb in phase.weighed if began < at <= end), default=phase.resident[-1]))
        began = end
    return Waves(phase, came["answers"], came["slowest"], resident, watch.peak())


async def run_waves(service: Service, number: int) -> dict[str, Waves]:
    watch = Watch(service)
    async with watch.running():
        await asyncio.sleep(5)
        connection = Connection(watch.port, "127.0.0.1")
        for named in range(MAX_NAMES):
            await connection.ask(http(f"query Name{named} {{ __typename }}"))
        alone = await waves(watch, number, 0)
        return {"forty at once": alone, f"beside {PIPELINES} pipelines": await waves(watch, number, PIPELINES)}


def report_waves(found: dict[str, Waves], options: Any) -> list[str]:
    rows: dict[str, Callable[[Waves], object]] = {
        "honest requests": lambda w: len(w.phase.honest),
        "honest p50, ms": lambda w: f"{w.phase.percentile(50):.1f}",
        "honest p99, ms": lambda w: f"{w.phase.percentile(99):.0f}",
        "honest answers": lambda w: ", ".join(f"{k}: {v}" for k, v in sorted(w.phase.statuses.items())),
        "/livez p99, ms": lambda w: f"{sorted(w.phase.probes)[len(w.phase.probes) * 99 // 100]:.0f}",
        "/livez slowest, ms": lambda w: f"{max(w.phase.probes):.0f}",
        "slowest answer to an attacker, s": lambda w: f"{max(w.slowest):.1f}",
        "answers to the attackers": lambda w: ", ".join(f"{k}: {v}" for k, v in sorted(w.answers.items())),
        "most memory in each wave, MB": lambda w: ", ".join(f"{mb:.0f}" for mb in w.resident),
        "the most of all later waves, above the most of the first two": lambda w: (
            f"{max(w.resident[2:], default=0.0) / max(w.resident[:2]) - 1:+.1%}"
        ),
        "peak memory so far (VmHWM), MB": lambda w: f"{w.peak:.0f}",
        "CPU of the service": lambda w: f"{w.phase.cpu / w.phase.seconds:.0%}",
        "service waited for a core, of the time in which it had work": lambda w: (
            f"{w.phase.waited / (w.phase.cpu + w.phase.waited):.0%}"
        ),
    }
    lines = [
        "## The dearest documents at once",
        "",
        f"    python -m bench.attacks --seconds 0 --waves {options.waves}",
        "",
        f"{AT_ONCE} at once from one address, {options.waves} waves.",
        "",
        "| | " + " | ".join(found) + " |",
        "|---|" + "---|" * len(found),
    ]
    return [
        *lines,
        *(f"| {name} | " + " | ".join(str(of(w)) for w in found.values()) + " |" for name, of in rows.items()),
        "",
    ]


def table(phases: dict[str, Phase]) -> list[str]:
    rows: dict[str, Callable[[Phase], object]] = {
        "honest requests": lambda p: len(p.honest),
        "honest votes counted": lambda p: p.votes,
        "honest p50, ms": lambda p: f"{p.percentile(50):.1f}",
        "honest p99, ms": lambda p: f"{p.percentile(99):.1f}",
        "/livez p50, ms": lambda p: f"{sorted(p.probes)[len(p.probes) // 2]:.1f}",
        "/livez p99, ms": lambda p: f"{sorted(p.probes)[len(p.probes) * 99 // 100]:.1f}",
        "/livez slowest, ms": lambda p: f"{max(p.probes):.0f}",
        "memory at start, largest, at end, MB": lambda p: (
            f"{p.resident[0]:.0f}, {max(p.resident):.0f}, {p.resident[-1]:.0f}"
        ),
        "CPU of the service": lambda p: f"{p.cpu / p.seconds:.0%}",
        "service waited for a core, of the time in which it had work": lambda p: f"{p.waited / (p.cpu + p.waited):.0%}",
        "honest answers": lambda p: ", ".join(f"{k}: {v}" for k, v in sorted(p.statuses.items())),
    }
    lines = ["| | " + " | ".join(phases) + " |", "|---|" + "---|" * len(phases)]
    return lines + [
        f"| {name} | " + " | ".join(str(of(p)) for p in phases.values()) + " |" for name, of in rows.items()
    ]


def report(phases: dict[str, Phase], alone: dict[str, Phase], counts: dict[str, Any], options: Any) -> list[str]:
    attacked = phases["with attacks"]
    sent = sum(counts["sent"].values())
    ratio = attacked.percentile(99) / phases["before"].percentile(99)
    lines = [
        "# Attacks",
        "",
        f"    python -m bench.attacks --seconds {options.seconds:g} --rate {options.rate:g} --write",
        "",
        (
            f"{sent:,} attacks in {attacked.seconds:.0f} s ({sent / attacked.seconds:.0f} a second) from "
            f"{options.connections} connections; one process; client, service and engine on {psutil.cpu_count()} cores."
        ),
        f"Honest p99 with attacks is {ratio:.1f} times its own without.",
        "",
        *table(phases),
        "",
        "Answers to the attacks: " + ", ".join(f"{k}: {v:,}" for k, v in sorted(counts["counts"].items())) + ".",
        "",
    ]
    return lines + (table_of_each(alone, counts["sent"]) if alone else [])


def table_of_each(alone: dict[str, Phase], sent: dict[str, int]) -> list[str]:
    lines = [
        "Each attack alone, five times a second from one connection:",
        "",
        "| attack | /livez p99, ms | /livez slowest, ms | CPU of the service | sent later, with all |",
        "|---|---|---|---|---|",
    ]
    for kind, p in alone.items():
        slow = f"{sorted(p.probes)[len(p.probes) * 99 // 100]:.0f} | {max(p.probes):.0f}"
        lines.append(f"| {kind} | {slow} | {p.cpu / p.seconds:.0%} | {sent.get(kind, 0):,} |")
    return [*lines, ""]


@contextmanager
def _started(variables: dict[str, str]) -> Iterator[tuple[Service, asyncio.Runner]]:
    with (
        tempfile.TemporaryDirectory() as data,
        running_service({"RINGSIDE_DATA": data, **variables}, ["--demo"]) as service,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        yield service, runner


def _logged(service: Service) -> list[str]:
    tracebacks = sum("Traceback" in line or '"exception"' in line for line in service.lines)
    return [f"The log has {len(service.lines):,} lines, {tracebacks} of them with a traceback.", ""]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=600, help="0 for none but the waves")
    parser.add_argument("--waves", type=int, default=10, help="of the dearest documents; 0 for none")
    parser.add_argument("--rate", type=float, default=60, help="attacks per second, all connections together")
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--alone", type=float, default=2, help="seconds of each attack alone; 0 for none")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    secret, lines = secrets.token_hex(32), list[str]()
    variables = {"RINGSIDE_SECRETS": secret, "RINGSIDE_INTROSPECTION": "role", "RINGSIDE_LOG": "info,json"}
    if options.seconds:
        with _started(variables) as (service, runner):
            lines = report(*runner.run(run(service, secret, options)), options)
            lines += _logged(service)
    if options.waves:
        with _started({**variables, "RINGSIDE_INTROSPECTION": "on"}) as (service, runner):
            lines += report_waves(runner.run(run_waves(service, options.waves)), options)
            lines += _logged(service)
    print("\n".join(lines))
    if options.write:
        RESULTS.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
