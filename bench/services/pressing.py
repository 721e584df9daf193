"""An HTTP load generator with an open loop, which does not wait for responses, and a closed loop.

    python -m bench.services.pressing PORT REQUESTS RATE SECONDS [CLIENTS]

REQUESTS is a file of request bodies, one per line, sent in turn. RATE is requests per second; with 0, CLIENTS
connections each send a request as soon as they have a response. The result is printed as one line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from statistics import quantiles

MOST_CONNECTIONS = 4000
TICK = 0.005
PATIENCE = 15.0
"""Seconds after the last request in which responses still count."""


@dataclass
class Tally:
    """Counts of responses by kind, and the seconds each data response took."""

    sent: int = 0
    unsent: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def note(self, head: bytes, body: bytes, took: float) -> None:
        status = head[9:12].decode()
        if status == "200" and b'"errors"' not in body:
            self.answers["data"] += 1
            self.seconds.append(took)
        elif status == "503" and b"\r\nretry-after:" in head.lower():
            self.answers["come back"] += 1
        else:
            self.answers["UNAVAILABLE" if b"UNAVAILABLE" in body else status] += 1


class Connection(asyncio.Protocol):
    """A connection with one request at a time."""

    def __init__(self, idle: list[Connection], tally: Tally) -> None:
        self._idle = idle
        self._tally = tally
        self._received = b""
        self._began = 0.0
        self.answered: asyncio.Future[None] | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def ask(self, request: bytes) -> None:
        assert self.transport is not None
        self._began = time.perf_counter()
        self._tally.sent += 1
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, ended, body = self._received.partition(b"\r\n\r\n")
        if not ended or len(body) < _length(head):
            return
        self._received = b""
        self._tally.note(head, body, time.perf_counter() - self._began)
        self._began = 0.0
        self._idle.append(self)
        if self.answered is not None and not self.answered.done():
            self.answered.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self._began:
            self._tally.answers["cut off"] += 1
        self.transport = None


def _length(head: bytes) -> int:
    return int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])


async def closed_loop(port: int, requests: list[bytes], clients: int, seconds: float) -> Tally:
    """Send one request at a time per client, each after the previous response."""
    tally, todo, until = Tally(), cycle(requests), time.perf_counter() + seconds
    loop = asyncio.get_running_loop()

    async def client() -> None:
        _, connection = await loop.create_connection(lambda: Connection([], tally), "127.0.0.1", port)
        while time.perf_counter() < until:
            connection.answered = loop.create_future()
            connection.ask(next(todo))
            await connection.answered

    await asyncio.gather(*(client() for _ in range(clients)))
    return tally


async def open_loop(port: int, requests: list[bytes], rate: float, seconds: float) -> Tally:
    """Send requests at this rate without waiting for responses, over as many connections as needed."""
    tally, todo, idle = Tally(), cycle(requests), list[Connection]()
    loop, began, asked, opened = asyncio.get_running_loop(), time.perf_counter(), 0, 0
    opening = set[asyncio.Task[None]]()

    async def newcomer(request: bytes) -> None:
        try:
            _, connection = await loop.create_connection(lambda: Connection(idle, tally), "127.0.0.1", port)
            connection.ask(request)
        except OSError:
            tally.answers["not connected"] += 1

    while (passed := time.perf_counter() - began) < seconds:
        while asked < passed * rate:
            asked += 1
            while idle and idle[-1].transport is None:
                idle.pop()
            if idle:
                idle.pop().ask(next(todo))
            elif opened < MOST_CONNECTIONS:
                opened += 1
                task = asyncio.create_task(newcomer(next(todo)))
                opening.add(task)
                task.add_done_callback(opening.discard)
            else:
                tally.unsent += 1
        await asyncio.sleep(TICK)
    late = time.perf_counter() + PATIENCE
    while tally.answers.total() < tally.sent and time.perf_counter() < late:  # noqa: ASYNC110 - counts, not events
        await asyncio.sleep(0.05)
    tally.answers["no answer"] += max(0, tally.sent - tally.answers.total())
    return tally


def written(port: int, body: str) -> bytes:
    lines = ("POST /graphql HTTP/1.1", f"host: 127.0.0.1:{port}", "content-type: application/json",
             "accept: application/json", f"content-length: {len(body.encode())}")  # fmt: skip
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body.encode()


def main() -> None:
    port, rate, seconds = int(sys.argv[1]), float(sys.argv[3]), float(sys.argv[4])
    requests = [written(port, line) for line in Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()]
    if rate:
        tally = asyncio.run(open_loop(port, requests, rate, seconds))
    else:
        tally = asyncio.run(closed_loop(port, requests, int(sys.argv[5]), seconds))
    percentiles = quantiles(tally.seconds, n=100) if len(tally.seconds) > 1 else [0.0] * 99
    print(
        json.dumps(
            {
                "sent": tally.sent,
                "unsent": tally.unsent,
                "answers": {name: number for name, number in tally.answers.items() if number},
                "p50": percentiles[49],
                "p99": percentiles[98],
            }
        )
    )


if __name__ == "__main__":
    main()
