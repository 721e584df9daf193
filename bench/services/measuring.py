"""Measuring servers: CPU per request as the operating system counts it, for the server's processes alone.

The machines are shared and noisy, so no time by the clock is used: each server is asked in short turns, all servers
take turns in every round, and of the rounds the median counts. The asking side costs the servers nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import psutil

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
    bodies = await asyncio.gather(*(_ask(server.port, request, share) for _ in range(server.connections)))
    return bodies[-1]


async def _ask(port: int, request: bytes, times: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    body = b""
    for _ in range(times):
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        if not head.startswith("http/1.1 200"):
            raise RuntimeError(head)
        body = await body_of(reader, head)
    writer.close()
    return body


async def body_of(reader: asyncio.StreamReader, head: str) -> bytes:
    if "content-length: " in head:
        return await reader.readexactly(int(head.split("content-length: ")[1].split("\r\n", maxsplit=1)[0]))
    parts = []
    while size := int(await reader.readline(), 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readexactly(2)
    return b"".join(parts)


def measure(servers: Sequence[Server], pages: Mapping[str, bytes], *, rounds: int, seconds: float) -> None:
    """Turns of about so many seconds of CPU each, all servers and pages in every round."""
    times = {(s.name, page): _calibrated(s, page, body, seconds) for s in servers for page, body in pages.items()}
    for number in range(rounds):
        # Every other round backwards, so that none is always the one after the same other.
        for server in servers if number % 2 else list(reversed(servers)):
            for page, body in pages.items():
                count = times[server.name, page]
                before = server.cpu()
                asyncio.run(ask(server, server.request(page, body), count))
                asked = count // server.connections * server.connections
                server.rounds.setdefault(page, []).append((server.cpu() - before) / asked)


def _calibrated(server: Server, page: str, body: bytes, seconds: float) -> int:
    """How many requests take about so many seconds of CPU, asked after the server has warmed up."""
    request = server.request(page, body)
    began = before = server.cpu()
    each, asked = 0.0, 0
    while asked < 3000 and (server.cpu() - began < WARM_UP or asked < 400):
        before = server.cpu()
        asyncio.run(ask(server, request, 200))
        each, asked = (server.cpu() - before) / 200, asked + 200
    return max(100, int(seconds / max(each, 2e-5)))


def answer(server: Server, page: str, body: bytes) -> Any:
    return json.loads(asyncio.run(ask(server, server.request(page, body), server.connections)))


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def here() -> Path:
    return Path(__file__).parents[2]
