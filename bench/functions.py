"""Counts the functions and modules of ours that a page of comments, a vote and a scoring take, from socket to socket.

    python -m bench.functions [--write] [--list page|vote|scoring]

The service runs in this process on the embedded engine, as `ringside serve` starts it. A client asks over HTTP for
`comments(product, ratings: [5, 4], first: 10)` with authors, casts a vote on a matchup that it has just drawn, and
scores an event of 150 predictions after a corrected result. Each is asked five times, with other variables each time.
Of the last three the one with the fewest calls is counted, so what runs now and then beside requests is left out.

- A function is a `def`, a `lambda`, the body of a property, or a function that the compiler or a decoder generates.
- A coroutine counts when it is called, not when it resumes.
- A comprehension or generator expression belongs to the function around it, as in Python 3.12.
- Constructors that the standard library generates for dataclasses and named tuples are counted separately.
- Modules are those of the four layers, the protocol and the transport to the engine included.
"""

import argparse
import asyncio
import dis
import json
import os
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from resolvers.requests.context import Role
from server.app import application
from server.auth.tokens import mint
from server.commands.serve import uvicorn_config
from server.engine import run_engine
from server.engine.table import open_unchecked_table
from server.settings import Settings

PACKAGES = ("server", "schema", "resolvers", "datastore")
GENERATED = "generated"
CONSTRUCTOR = "constructor"
PAGE = """query Comments($product: ID!, $ratings: [Int!]) {
  comments(product: $product, ratings: $ratings, first: 10) {
    nodes { rating body author { name } }
    pageInfo { hasNextPage endCursor }
  }
}"""
DRAW = "mutation { drawMatchup(input: {}) { ... on Ballot { token } } }"
VOTE = """mutation ($token: ID!) { castVote(input: { token: $token, verdict: LEFT }) { ... on VoteCast {
  winner { id name } progress { seen remaining } matchup { leftWins rightWins ties votes } } } }"""
MATCHES = "query ($event: ID!) { event(id: $event) { matches { id } } }"
RESULT = """mutation ($match: ID!, $winner: Int!) {
  recordResult(input: { match: $match, outcome: WON, winner: $winner }) { ... on ResultRecorded { match { id } } } }"""
SCORE = """mutation ($event: ID!) { scoreEvent(input: { event: $event }) { ... on EventScored {
  predictionsScored event { name state } } ... on Refused { code message } } }"""
RESULTS = Path(__file__).parent / "results" / "functions.md"
HEAD = """# Functions of a page, a vote and a scoring

    python -m bench.functions --write

The modules and functions of ours that one request runs through, from socket to socket, in a service that is in use: a
page of ten comments with authors, a vote, and a scoring of 150 predictions after a corrected result.
`bench/functions.py` says what is counted; `--list page` prints every function. Constructors are those that the standard
library generates for dataclasses and named tuples.
"""
RATINGS = ([4, 5], [5, 3], [3, 4], [4, 3], [5, 4])
COUNTED = 3
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

    @property
    def modules(self) -> set[str]:
        return {module for module, _, _ in self.recorded} - {GENERATED, CONSTRUCTOR}


def _is_entered(frame: FrameType) -> bool:
    """Whether the function is entered here, and not a coroutine or generator that goes on."""
    code, at = frame.f_code.co_code, frame.f_lasti
    return at < 0 or (code[at] == _RESUME and code[at + 1] & 3 == 0)


@dataclass
class Client:
    """A connection to the service, and the headers that say who asks."""

    connection: socket.socket
    headers: Sequence[str]
    event: str
    """The id of the scored event."""

    def request(self, query: str, **variables: Any) -> bytes:
        body = orjson.dumps({"query": query, "variables": variables})
        lines = (
            "POST /graphql HTTP/1.1",
            "host: 127.0.0.1",
            "content-type: application/json",
            "accept: application/json",
            f"content-length: {len(body)}",
            *self.headers,
        )
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    def send(self, request: bytes) -> Any:
        """The answer's data, of which nothing may have failed or been refused."""
        self.connection.sendall(request)
        received = b""
        while b"\r\n\r\n" not in received:
            received += self.connection.recv(65_536)
        head, _, body = received.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        while len(body) < length:
            body += self.connection.recv(65_536)
        answer = json.loads(body)
        if "errors" in answer or next(iter(answer["data"].values())).keys() <= {"code", "message"}:
            raise RuntimeError(answer)
        return next(iter(answer["data"].values()))

    def ask(self, query: str, **variables: Any) -> Any:
        return self.send(self.request(query, **variables))


def page(client: Client, number: int) -> bytes:
    return client.request(PAGE, product=seeded_table.PRODUCT, ratings=RATINGS[number])


def vote(client: Client, _: int) -> bytes:
    return client.request(VOTE, token=client.ask(DRAW)["token"])


def scoring(client: Client, number: int) -> bytes:
    match = client.ask(MATCHES, event=client.event)["matches"][0]["id"]
    client.ask(RESULT, match=match, winner=number % 2)
    return client.request(SCORE, event=client.event)


PREPARED: Mapping[str, Callable[[Client, int], bytes]] = {"page": page, "vote": vote, "scoring": scoring}
"""What makes everything ready for a request of each kind, and gives it."""


async def record(settings: Settings, event: str, kind: str, headers: Sequence[str] = ()) -> Calls:
    """Serve in this event loop, ask from another thread, and record what the requests of a kind call."""
    editor = f"authorization: Bearer {mint(settings, 'editor', roles=[Role.EDITOR])}"
    who = editor if kind == "scoring" else f"cookie: {seeded_table.cookie()}"
    recordings: list[Calls] = []
    async with open_unchecked_table(settings) as table:
        server = uvicorn.Server(uvicorn_config(settings, application(settings, table), 1))
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            serving = asyncio.create_task(server.serve(sockets=[listening]))
            while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
                await asyncio.sleep(0.01)
            with socket.create_connection(listening.getsockname()) as connection:
                client = Client(connection, (who, *headers), event)
                for number in range(len(RATINGS)):
                    request = await asyncio.to_thread(PREPARED[kind], client, number)
                    recordings.append(calls := Calls(repository_root()))
                    answer = asyncio.get_running_loop().run_in_executor(None, client.send, request)
                    with calls.recording():
                        await answer
            server.should_exit = True
            await serving
    return min(recordings[-COUNTED:], key=lambda calls: len(calls.recorded))


def record_all(headers: Sequence[str] = ()) -> dict[str, Calls]:
    """What each kind of request calls, in a service and a table of its own."""
    recorded: dict[str, Calls] = {}
    for kind in PREPARED:
        with tempfile.TemporaryDirectory() as folder, run_engine(Path(folder)) as engine:
            event = asyncio.run(seeded_table.seed(engine.url))
            os.environ.update(seeded_table.environment(engine.url))
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                recorded[kind] = runner.run(record(Settings.load(), event, kind, headers))
    return recorded


def report(calls: Calls) -> str:
    """Modules, functions and calls, for each package and together."""
    written = [call for call in calls.recorded if call[0] != CONSTRUCTOR]
    rows = [
        *((package, [call for call in written if call[0].split("/")[0] == package]) for package in PACKAGES),
        (GENERATED, [call for call in written if call[0] == GENERATED]),
        ("together", written),
        ("and constructors", [call for call in calls.recorded if call[0] == CONSTRUCTOR]),
    ]
    lines = ["| | modules | functions | calls |", "|---|---:|---:|---:|"]
    for name, listed in rows:
        modules = {module for module, _, _ in listed} & calls.modules
        functions = {code for _, _, code in listed}
        lines.append(f"| {name} | {len(modules)} | {len(functions)} | {len(listed)} |")
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
    parser.add_argument("--list", choices=PREPARED, help="print the functions of one in the order of their first calls")
    parser.add_argument("--header", action="append", default=[], help="send this header, too: 'origin: https://…'")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    recorded = record_all(options.header)
    if options.list:
        print(listing(recorded[options.list]), end="\n\n")
    text = "\n".join([HEAD, *(f"## {kind.title()}\n\n{report(calls)}\n" for kind, calls in recorded.items())])
    print(text)
    if options.write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
