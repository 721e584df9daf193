"""Measures servers: CPU time per request as the operating system counts it, for the server's processes alone.

The machines are shared and noisy, so elapsed time is not used. Servers are measured in short turns; every round has a
turn of each server, and the result is the median of the rounds. The client's CPU time does not count.
"""

import asyncio
import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import uvloop

CONNECTIONS = 4
WARM_UP = 1.5
"""Seconds of CPU before measuring: Node compiles hot code, Python's interpreter specialises."""


@dataclass
class Server:
    """A server under measurement: how it is started, and the CPU time of each page in each round."""

    name: str
    command: Sequence[str]
    paths: Mapping[str, str] = field(default_factory=dict)
    """The path of each page, if it is not /graphql."""
    headers: Mapping[str, str] = field(default_factory=dict)
    connections: int = CONNECTIONS
    """Concurrent clients."""
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    variants: dict[str, Sequence[bytes]] = field(default_factory=dict)
    """Bodies of a page that are sent in turn, instead of always the same one."""
    rounds: dict[str, list[float]] = field(default_factory=dict)

    def start(self, environment: Mapping[str, str]) -> None:
        self.port = _free_port()
        self.process = subprocess.Popen(
            [*self.command[:1], *(part.replace("PORT", str(self.port)) for part in self.command[1:])],
            env={**os.environ, "NODE_ENV": "production", **environment},
            stdout=subprocess.DEVNULL,
        )
        until = time.monotonic() + 30
        while time.monotonic() < until:
            with socket.socket() as connection:
                if connection.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(f"{self.name} did not start.")

    def stop(self) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        # `node` may be a launcher that starts the real process.
        for child in psutil.Process(self.process.pid).children(recursive=True):
            child.terminate()
        self.process.terminate()
        self.process.wait(10)

    def cpu(self) -> float:
        """Return the seconds of CPU used so far by all its processes."""
        assert self.process is not None
        first = psutil.Process(self.process.pid)
        processes = (first, *first.children(recursive=True))
        return sum(sum(process.cpu_times()[:2]) for process in processes)

    def requests(self, page: str, body: bytes) -> list[bytes]:
        """Return the page's requests: one for each of its variants, or else one with this body."""
        return [self.request(page, variant) for variant in self.variants.get(page, (body,))]

    def request(self, page: str, body: bytes) -> bytes:
        headers = {
            "host": "127.0.0.1",
            "content-type": "application/json",
            "accept": "application/json",
            "content-length": str(len(body)),
            **self.headers,
        }
        lines = [f"POST {self.paths.get(page, '/graphql')} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    def milliseconds(self, page: str) -> float:
        """Return the milliseconds of CPU per request: the median of the rounds."""
        return median(self.rounds[page]) * 1000


async def send_requests(server: Server, requests: Sequence[bytes], times: int) -> bytes:
    """Send so many requests, these in turn, over a few open connections; return the last response's body."""
    each = times // server.connections
    loop = asyncio.get_running_loop()
    in_turn = cycle(requests)
    connections = [
        await loop.create_connection(lambda: _ClientProtocol(in_turn, each), "127.0.0.1", server.port)
        for _ in range(server.connections)
    ]
    bodies = await asyncio.gather(*(protocol.done for _, protocol in connections))
    for transport, _ in connections:
        transport.close()
    return bodies[-1]


class _ClientProtocol(asyncio.Protocol):
    """One connection that sends its next request as soon as it has a response.

    It does as little as possible, so that the server and not the client limits the rate: a server that waits for its
    clients is woken for each request, which costs more than a small response does.
    """

    def __init__(self, requests: Iterator[bytes], times: int) -> None:
        self._requests, self._left, self._received = requests, times, b""
        self._transport: asyncio.Transport
        self.done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # of a TCP connection
        self._transport.write(next(self._requests))

    def data_received(self, data: bytes) -> None:
        self._received = received = self._received + data if self._received else data
        end = received.find(b"\r\n\r\n") + 4
        body = None if end < 4 else _complete_body(received, end)
        if body is None:
            return
        if not received.startswith(b"HTTP/1.1 200"):
            self.done.set_exception(RuntimeError(received[:300].decode("latin-1")))
            return
        self._received = b""
        self._left -= 1
        if self._left > 0:
            self._transport.write(next(self._requests))
        elif not self.done.done():
            self.done.set_result(body)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(ConnectionError(f"The server closed the connection ({exc})."))


_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


def _complete_body(received: bytes, end: int) -> bytes | None:
    """Return the body after the head, decoding chunks, or None while it is incomplete."""
    length = _LENGTH.search(received, 0, end)
    if length is not None:
        return received[end:] if len(received) - end >= int(length[1]) else None
    if not received.endswith(b"\r\n0\r\n\r\n"):
        return None
    parts = []
    while size := int(received[end : received.index(b"\r\n", end)], 16):
        end = received.index(b"\r\n", end) + 2
        parts.append(received[end : end + size])
        end += size + 2
    return b"".join(parts)


def _run(coroutine: Coroutine[Any, Any, bytes]) -> bytes:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(coroutine)


def measure(servers: Sequence[Server], pages: Mapping[str, bytes], *, rounds: int, seconds: float) -> None:
    """Measure in turns of about this many seconds of CPU each; every round has all servers and pages."""
    times = {(s.name, page): _calibrate(s, page, body, seconds) for s in servers for page, body in pages.items()}
    for number in range(rounds):
        # Every other round runs backwards, so that no server always follows the same one.
        for server in servers if number % 2 else list(reversed(servers)):
            for page, body in pages.items():
                count = times[server.name, page]
                before = server.cpu()
                _run(send_requests(server, server.requests(page, body), count))
                sent = count // server.connections * server.connections
                server.rounds.setdefault(page, []).append((server.cpu() - before) / sent)


def _calibrate(server: Server, page: str, body: bytes, seconds: float) -> int:
    """Warm the server up and return how many requests take about this many seconds of CPU."""
    requests = server.requests(page, body)
    began = before = server.cpu()
    per_request, sent = 0.0, 0
    while sent < 3000 and (server.cpu() - began < WARM_UP or sent < 400):
        before = server.cpu()
        _run(send_requests(server, requests, 200))
        per_request, sent = (server.cpu() - before) / 200, sent + 200
    return max(100, int(seconds / max(per_request, 2e-5)))


def fetch_json(server: Server, page: str, body: bytes) -> Any:
    return json.loads(_run(send_requests(server, [server.request(page, body)], server.connections)))


def _free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def repository_root() -> Path:
    return Path(__file__).parents[2]
