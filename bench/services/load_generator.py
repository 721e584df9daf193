"""An HTTP load generator with an open loop, which does not wait for responses, and a closed loop.

    python -m bench.services.load_generator PORT REQUESTS RATE SECONDS [CLIENTS]

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

MAX_CONNECTIONS = 4000
TICK = 0.005
ANSWER_TIMEOUT = 15.0
"""Seconds after the last request in which responses still count."""


@dataclass
class Results:
    """Counts of responses by kind, and the seconds each data response took."""

    sent: int = 0
    unsent: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def add(self, head: bytes, body: bytes, took: float) -> None:
        status = head[9:12].decode()
        if status == "200" and b'"errors"' not in body:
            self.answers["data"] += 1
            self.seconds.append(took)
        elif status == "503" and b"\r\nretry-after:" in head.lower():
            self.answers["overloaded"] += 1
        else:
            self.answers["UNAVAILABLE" if b"UNAVAILABLE" in body else status] += 1


class Connection(asyncio.Protocol):
    """A connection with one request at a time."""

    def __init__(self, idle: list[Connection], results: Results) -> None:
        self._idle = idle
        self._results = results
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
        self._results.sent += 1
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, ended, body = self._received.partition(b"\r\n\r\n")
        if not ended or len(body) < _length(head):
            return
        self._received = b""
        self._results.add(head, body, time.perf_counter() - self._began)
        self._began = 0.0
        self._idle.append(self)
        if self.answered is not None and not self.answered.done():
            self.answered.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self._began:
            self._results.answers["cut off"] += 1
        self.transport = None


def _length(head: bytes) -> int:
    return int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])


async def closed_loop(port: int, requests: list[bytes], clients: int, seconds: float) -> Results:
    """Send one request at a time per client, each after the previous response."""
    results, remaining, until = Results(), cycle(requests), time.perf_counter() + seconds
    loop = asyncio.get_running_loop()

    async def client() -> None:
        _, connection = await loop.create_connection(lambda: Connection([], results), "127.0.0.1", port)
        while time.perf_counter() < until:
            connection.answered = loop.create_future()
            connection.ask(next(remaining))
            await connection.answered

    await asyncio.gather(*(client() for _ in range(clients)))
    return results


async def open_loop(port: int, requests: list[bytes], rate: float, seconds: float) -> Results:
    """Send requests at this rate without waiting for responses, over as many connections as needed."""
    results, remaining, idle = Results(), cycle(requests), list[Connection]()
    loop, began, sent, opened = asyncio.get_running_loop(), time.perf_counter(), 0, 0
    opening = set[asyncio.Task[None]]()

    async def open_connection(request: bytes) -> None:
        try:
            _, connection = await loop.create_connection(lambda: Connection(idle, results), "127.0.0.1", port)
            connection.ask(request)
        except OSError:
            results.answers["not connected"] += 1

    while (passed := time.perf_counter() - began) < seconds:
        while sent < passed * rate:
            sent += 1
            while idle and idle[-1].transport is None:
                idle.pop()
            if idle:
                idle.pop().ask(next(remaining))
            elif opened < MAX_CONNECTIONS:
                opened += 1
                task = asyncio.create_task(open_connection(next(remaining)))
                opening.add(task)
                task.add_done_callback(opening.discard)
            else:
                results.unsent += 1
        await asyncio.sleep(TICK)
    deadline = time.perf_counter() + ANSWER_TIMEOUT
    while results.answers.total() < results.sent and time.perf_counter() < deadline:  # noqa: ASYNC110 - counts, not events
        await asyncio.sleep(0.05)
    results.answers["no answer"] += max(0, results.sent - results.answers.total())
    return results


def http_request(port: int, body: str) -> bytes:
    lines = ("POST /graphql HTTP/1.1", f"host: 127.0.0.1:{port}", "content-type: application/json",
             "accept: application/json", f"content-length: {len(body.encode())}")  # fmt: skip
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body.encode()


def main() -> None:
    port, rate, seconds = int(sys.argv[1]), float(sys.argv[3]), float(sys.argv[4])
    requests = [http_request(port, line) for line in Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()]
    if rate:
        results = asyncio.run(open_loop(port, requests, rate, seconds))
    else:
        results = asyncio.run(closed_loop(port, requests, int(sys.argv[5]), seconds))
    percentiles = quantiles(results.seconds, n=100) if len(results.seconds) > 1 else [0.0] * 99
    print(
        json.dumps(
            {
                "sent": results.sent,
                "unsent": results.unsent,
                "answers": {name: number for name, number in results.answers.items() if number},
                "p50": percentiles[49],
                "p99": percentiles[98],
            }
        )
    )


if __name__ == "__main__":
    main()
