"""Measuring servers: CPU per request as the operating system counts it, for the server's processes alone.

The machines are shared and noisy, so no time by the clock is used: each server is asked in short turns, all servers
take turns in every round, and of the rounds the median counts. The asking side costs the servers nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import uvloop

CONNECTIONS = 4
WARM_UP = 1.5
"""Seconds of CPU before anything counts: Node compiles what it meets often, Python's interpreter specialises."""


@dataclass
class Server:
    """A server under measurement: how it is started, what of its CPU each page took in each round."""

    name: str
    command: Sequence[str]
    paths: Mapping[str, str] = field(default_factory=dict)
    """Where each page is asked for, if not at /graphql."""
    headers: Mapping[str, str] = field(default_factory=dict)
    connections: int = CONNECTIONS
    """How many ask at once."""
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
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
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        message = f"{self.name} did not start."
        raise RuntimeError(message)

    def stop(self) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        # `node` may be a small program that starts the real one.
        for child in psutil.Process(self.process.pid).children(recursive=True):
            child.terminate()
        self.process.terminate()
        self.process.wait(10)

    def cpu(self) -> float:
        """Seconds of CPU so far, of all its processes."""
        assert self.process is not None
        first = psutil.Process(self.process.pid)
        times = [one.cpu_times() for one in (first, *first.children(recursive=True))]
        return sum(one.user + one.system for one in times)

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

    def figure(self, page: str) -> float:
        """Milliseconds of CPU per request: the median of the rounds."""
        return median(self.rounds[page]) * 1000


async def ask(server: Server, request: bytes, times: int) -> bytes:
    """Asks so many times over a few connections that stay open; returns the last answer's body."""
    share = times // server.connections
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda: _Asker(request, share), "127.0.0.1", server.port)
        for _ in range(server.connections)
    ]
    bodies = await asyncio.gather(*(asker.done for _, asker in made))
    for transport, _ in made:
        transport.close()
    return bodies[-1]


class _Asker(asyncio.Protocol):
    """One connection that asks again as soon as it is answered.

    It does next to nothing, so that the server and not the asking side decides how fast they go: a server that waits
    for its clients wakes up for each request, which costs it more than small answers do.
    """

    def __init__(self, request: bytes, times: int) -> None:
        self._request, self._left, self._got = request, times, b""
        self._transport: asyncio.Transport
        self.done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._got = got = self._got + data if self._got else data
        end = got.find(b"\r\n\r\n") + 4
        body = None if end < 4 else _whole_body(got, end)
        if body is None:
            return
        if not got.startswith(b"HTTP/1.1 200"):
            self.done.set_exception(RuntimeError(got[:300].decode("latin-1")))
            return
        self._got = b""
        self._left -= 1
        if self._left > 0:
            self._transport.write(self._request)
        elif not self.done.done():
            self.done.set_result(body)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(ConnectionError(f"The server closed the connection ({exc})."))


_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


def _whole_body(got: bytes, end: int) -> bytes | None:
    """The body behind the head, once all of it is there; its chunks, if it comes in chunks."""
    length = _LENGTH.search(got, 0, end)
    if length is not None:
        return got[end:] if len(got) - end >= int(length[1]) else None
    if not got.endswith(b"\r\n0\r\n\r\n"):
        return None
    parts = []
    while size := int(got[end : got.index(b"\r\n", end)], 16):
        end = got.index(b"\r\n", end) + 2
        parts.append(got[end : end + size])
        end += size + 2
    return b"".join(parts)


async def body_of(reader: asyncio.StreamReader, head: str) -> bytes:
    if "content-length: " in head:
        return await reader.readexactly(int(head.split("content-length: ")[1].split("\r\n", maxsplit=1)[0]))
    parts = []
    while size := int(await reader.readline(), 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readexactly(2)
    return b"".join(parts)


def _run(ctx: Coroutine[Any, Any, bytes]) -> bytes:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(ctx)


def measure(servers: Sequence[Server], pages: Mapping[str, bytes], *, rounds: int, seconds: float) -> None:
    """Turns of about so many seconds of CPU each, all servers and pages in every round."""
    times = {(s.name, page): _calibrated(s, page, body, seconds) for s in servers for page, body in pages.items()}
    for number in range(rounds):
        # Every other round backwards, so that none is always the one after the same other.
        for server in servers if number % 2 else list(reversed(servers)):
            for page, body in pages.items():
                count = times[server.name, page]
                before = server.cpu()
                _run(ask(server, server.request(page, body), count))
                asked = count // server.connections * server.connections
                server.rounds.setdefault(page, []).append((server.cpu() - before) / asked)


def _calibrated(server: Server, page: str, body: bytes, seconds: float) -> int:
    """How many requests take about so many seconds of CPU, asked after the server has warmed up."""
    request = server.request(page, body)
    began = before = server.cpu()
    each, asked = 0.0, 0
    while asked < 3000 and (server.cpu() - began < WARM_UP or asked < 400):
        before = server.cpu()
        _run(ask(server, request, 200))
        each, asked = (server.cpu() - before) / 200, asked + 200
    return max(100, int(seconds / max(each, 2e-5)))


def answer(server: Server, page: str, body: bytes) -> Any:
    return json.loads(_run(ask(server, server.request(page, body), server.connections)))


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def here() -> Path:
    return Path(__file__).parents[2]
