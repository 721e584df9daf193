"""Counts the functions of ours that one page of comments takes from socket to socket: `python -m bench.functions`.

The service runs in this process on the embedded engine, as `ringside serve` starts it. A client asks over HTTP for
`comments(product, ratings: [5, 4], first: 10)` with authors. The document, the visitor, the authors and the planner's
counts are cached from earlier requests; the variables are new.

- A function is a `def`, a `lambda`, the body of a property, or a function that the compiler or a decoder generates.
- A coroutine counts when it is called, not when it resumes.
- A comprehension or generator expression belongs to the function around it, as in Python 3.12.
- Constructors that the standard library generates for dataclasses and named tuples are counted separately.
- The code below `client.query`, which signs and sends one request to the engine, is counted separately.

Commit e795371, the last one before the code was restructured, takes 158 functions in 38 modules, called 343 times.
"""

from __future__ import annotations

import argparse
import asyncio
import dis
import json
import os
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import orjson
import uvicorn
import uvloop

from bench.services import seeded_table
from bench.services.measurement import repository_root
from server.app import application
from server.commands.serve import uvicorn_config
from server.engine import run_engine
from server.settings import Settings
from server.table import open_engine

PACKAGES = ("server", "schema", "resolvers", "datastore")
TRANSPORT = (
    *(f"datastore/dynamo/transport/{name}.py" for name in ("direct_client", "connections", "signing")),
    "server/http/protocol.py",
)
GENERATED = "generated"
CONSTRUCTOR = "constructor"
QUERY = """query Comments($product: ID!, $ratings: [Int!]) {
  comments(product: $product, ratings: $ratings, first: 10) {
    nodes { rating body author { name } }
    pageInfo { hasNextPage endCursor }
  }
}"""
WARM_UP = ([4, 5], [5, 3], [4, 5])
RATINGS = [5, 4]
_RESUME = dis.opmap["RESUME"]


@dataclass
class Calls:
    """Every call of a function of ours, in order: where its code is, and its name."""

    root: Path
    recorded: list[tuple[str, str, CodeType]] = field(default_factory=list)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Records what the current thread calls."""
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not _is_entered(frame) or (code.co_name.startswith("<") and code.co_name != "<lambda>"):
            return
        if module := self._module(frame):
            self.recorded.append((module, code.co_qualname, code))

    def _module(self, frame: FrameType) -> str | None:
        """The file with the function, if it is ours."""
        file, names = frame.f_code.co_filename, frame.f_globals
        if not file.startswith("<"):
            path = Path(file)
            ours = path.is_relative_to(self.root) and path.relative_to(self.root).parts[0] in PACKAGES
            return str(path.relative_to(self.root)) if ours else None
        if "__name__" not in names:
            return GENERATED  # our generators give their code a namespace of its own
        if names["__name__"].partition(".")[0] in PACKAGES or names["__name__"].startswith("namedtuple_"):
            return CONSTRUCTOR
        return None

    def without_transport(self) -> list[tuple[str, str, CodeType]]:
        return [call for call in self.recorded if call[0] not in TRANSPORT]


def _is_entered(frame: FrameType) -> bool:
    """Whether the function is entered here, and not a coroutine or generator that goes on."""
    code, at = frame.f_code.co_code, frame.f_lasti
    return at < 0 or (code[at] == _RESUME and code[at + 1] & 3 == 0)


def page_request(ratings: list[int], *headers: str) -> bytes:
    """A POST of the page with these ratings."""
    body = orjson.dumps({"query": QUERY, "variables": {"product": seeded_table.PRODUCT, "ratings": ratings}})
    lines = (
        "POST /graphql HTTP/1.1",
        "host: 127.0.0.1",
        "content-type: application/json",
        "accept: application/json",
        f"cookie: {seeded_table.cookie()}",
        f"content-length: {len(body)}",
        *headers,
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def ask(connection: socket.socket, request: bytes) -> Any:
    """The answer's body, of which nothing may have failed."""
    connection.sendall(request)
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65_536)
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65_536)
    answer = json.loads(body)
    if len(answer["data"]["comments"]["nodes"]) != 10:
        raise RuntimeError(answer)
    return answer


async def record(settings: Settings, *headers: str) -> Calls:
    """Serve in this event loop, ask from another thread, and record the last request."""
    calls = Calls(repository_root())
    async with open_engine(settings) as table:
        server = uvicorn.Server(uvicorn_config(settings, application(settings, table), 1))
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            serving = asyncio.create_task(server.serve(sockets=[listening]))
            while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
                await asyncio.sleep(0.01)
            with socket.create_connection(listening.getsockname()) as connection:
                for ratings in WARM_UP:
                    await asyncio.to_thread(ask, connection, page_request(ratings, *headers))
                answer = asyncio.get_running_loop().run_in_executor(
                    None, ask, connection, page_request(RATINGS, *headers)
                )
                with calls.recording():
                    await answer
            server.should_exit = True
            await serving
    return calls


def report(calls: Calls) -> str:
    """Modules, functions and calls, for each package and together."""
    counted = calls.without_transport()
    written = [call for call in counted if call[0] != CONSTRUCTOR]
    rows = [
        *((package, [call for call in written if call[0].split("/")[0] == package]) for package in PACKAGES),
        (GENERATED, [call for call in written if call[0] == GENERATED]),
        ("together", written),
        ("and constructors", [call for call in counted if call[0] == CONSTRUCTOR]),
        ("and the transport", [call for call in calls.recorded if call[0] in TRANSPORT]),
    ]
    lines = [f"{'':20}{'modules':>9}{'functions':>11}{'calls':>8}"]
    for name, listed in rows:
        modules, functions = {module for module, _, _ in listed}, {code for _, _, code in listed}
        lines.append(f"{name:20}{len(modules):9}{len(functions):11}{len(listed):8}")
    return "\n".join(lines)


def listing(calls: Calls) -> str:
    """Each function where it is first called, with how often it is called in all."""
    times = Counter(code for _, _, code in calls.recorded)
    first: dict[CodeType, str] = {}
    for module, name, code in calls.recorded:
        first.setdefault(code, f"{module:44} {name}")
    return "\n".join(f"{times[code]:4} {text}" for code, text in first.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--list", action="store_true", help="print the functions in the order of their first calls")
    parser.add_argument("--header", action="append", default=[], help="send this header, too: 'origin: https://…'")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, run_engine(Path(folder)) as engine:
        asyncio.run(seeded_table.seed(engine.url))
        os.environ.update(seeded_table.environment(engine.url))
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            calls = runner.run(record(Settings.load(), *options.header))
    if options.list:
        print(listing(calls), end="\n\n")
    print(report(calls))


if __name__ == "__main__":
    main()
