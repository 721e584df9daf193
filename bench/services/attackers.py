"""Attacks on a running service, all at once: a process of its own, because what it does must not slow the service down.

    nice python -m bench.services.attackers PORT SECONDS RATE CONNECTIONS TOKENS [KIND]

TOKENS is a JSON list of tokens that must be refused. RATE is attacks per second over all connections; each connection
has a network address of its own (127.0.1.1 and following) and one attack under way at a time. The bytes are prepared
where they do not have to be new. The counts are printed as one line of JSON.
"""

import asyncio
import json
import re
import struct
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from itertools import count, cycle
from typing import Any

import uvloop

from tests.query_bombs import LARGEST_DOCUMENTS, QUERY_BOMBS

ANSWER_TIMEOUT = 15.0
IDLE_PER_CONNECTION = 8
"""So many silent connections beside each attacking one."""
CODE = re.compile(rb'"code":"([A-Z_]+)"')
MESSAGE = re.compile(rb'"type":"(next|error|complete)"')
DRAW = "mutation { drawMatchup(input: {}) { ... on Ballot { token } ... on Refused { code } } }"
VOTE = """mutation ($token: ID!) { castVote(input: { token: $token, verdict: LEFT }) {
  ... on VoteCast { winner { id } } ... on Refused { code } } }"""


class Connection:
    """One keep-alive connection from one network address; opened again when the service closes it."""

    def __init__(self, port: int, address: str) -> None:
        self._port, self._address = port, address
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._port, local_addr=(self._address, 0))

    async def ask(self, request: bytes) -> tuple[int, bytes, bytes]:
        """Status, head and body; status 0 if the connection ended without an answer."""
        self._streams = self._streams or await self.open()
        reader, writer = self._streams
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
                body = await reader.readexactly(int(length[1])) if length else b""
        except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
            self.close()
            return (-1 if isinstance(error, TimeoutError) else 0), b"", b""
        if not length or b"connection: close" in head.lower():
            self.close()
        return int(head[9:12]), head, body

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
        self._streams = None


def http(query: str = "", *lines: str, path: str = "/graphql", body: bytes | None = None, **variables: Any) -> bytes:
    """A complete POST request."""
    body = json.dumps({"query": query, "variables": variables}).encode() if body is None else body
    head = [f"POST {path} HTTP/1.1", *([] if any(line.startswith("host:") for line in lines) else ["host: 127.0.0.1"])]
    head += ["content-type: application/json", f"content-length: {len(body)}", *lines]
    return "\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body


def frame(message: dict[str, Any]) -> bytes:
    """A text frame of a client whose mask is zero, which changes nothing."""
    text = json.dumps(message).encode()
    size = bytes([0x80 | len(text)]) if len(text) < 126 else b"\xfe" + struct.pack(">H", len(text))
    return b"\x81" + size + bytes(4) + text


def _cycle(*requests: bytes) -> Iterator[bytes]:
    return cycle(requests)


def _new_documents() -> Iterator[bytes]:
    """Legal, expensive, and different every time."""
    fields = "id name score rank wins losses ties svg"
    for number in count(time.time_ns()):
        yield http("{" + " ".join(f'a{number}_{n}: contender(id: "1") {{ {fields} }}' for n in range(40)) + "}")


def _bypasses() -> Iterator[bytes]:
    def levels(outer: str, inner: str = "") -> str:
        inside = f"contenders{inner or outer} {{ nodes {{ id }} }}"
        middle = f"contenders{outer} {{ nodes {{ board {{ {inside} }} }} }}"
        return f"contenders{outer} {{ nodes {{ id board {{ {middle} }} }} }}"

    page = "{ matchups { nodes { contender { matchups { nodes { contender { id } } } } } } }"
    spread = "contenders { ...{ nodes { board { %s } } } }"
    ids = json.dumps(["1"] * 100)
    return _cycle(
        http("{" + spread.replace("%s", spread.replace("%s", spread.replace("%s", "id"))) + "}"),
        http(f"query ($n: Int = 100) {{ {levels('(first: $n)')} }}"),
        http(f"query ($n: Int) {{ {levels('(first: $n)')} }}", n=100.0),
        http(f"query ($ids: [ID!]! = {ids}) {{ nodes(ids: $ids) {{ id ... on Contender {page} }} }}"),
        http(f"{{ {levels('(first: null, last: 100)', '(last: 100)')} }}"),
    )


def _conditions() -> Iterator[bytes]:
    """A document that needs other code for each combination of its variables."""
    names = [f"v{n}" for n in range(12)]
    fields = " ".join(f"a{n}: contender(id: \"1\") @{'skip' if n % 2 else 'include'}(if: ${name}) {{ id name rank }}"
                      for n, name in enumerate(names))  # fmt: skip
    query = f"query ({' '.join(f'${name}: Boolean!' for name in names)}) {{ {fields} }}"
    for number in count():
        variables: dict[str, Any] = {name: bool(number >> n & 1) for n, name in enumerate(names)}
        yield http(query, **variables)


def _names() -> Iterator[bytes]:
    for number in count(time.time_ns()):
        yield http(f"query Fill{number} {{ __typename }}")


def _large_bodies() -> Iterator[bytes]:
    return _cycle(
        http(body=b'{"query":"{ __typename }","variables":{"a":"' + b"x" * 900_000 + b'"}}'),
        http("", "x: y", body=b"[" * 200_000),
        http(body=b'{"query":"{ __typename }","variables":' + b'{"a":' * 2000 + b"1" + b"}" * 2000 + b"}"),
        b"POST /graphql HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        b"content-length: 99999999\r\n\r\n",
    )


def _headers() -> Iterator[bytes]:
    start = b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    return _cycle(start + b"x: " + b"y" * 200_000, start + b"a: b\r\n" * 5_000, b"GET /" + b"z" * 100_000)


def _malformed() -> Iterator[bytes]:
    return _cycle(
        http("{ __typename }", "transfer-encoding: chunked"),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        http("{ __typename }", "connection: upgrade", "upgrade: websocket"),
        b"GET /graphql?query=mutation{drawMatchup(input:{}){__typename}} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
        http(body=b"\xff\xfe\x00"),
        http(body=json.dumps([{"query": "{ __typename }"}] * 100).encode()),
    )


def _hosts() -> Iterator[bytes]:
    return _cycle(*(http("{ __typename }", f"host: {host}") for host in ("evil.example", "[::2]", "a" * 300, "\xff")))


def _numbers() -> Iterator[bytes]:
    digits = b"9" * 5_000
    return _cycle(
        http(f"{{ contenders(first: {digits.decode()}) {{ totalCount }} }}"),
        http(body=b'{"query":"query($n:Int){contenders(first:$n){totalCount}}","variables":{"n":' + digits + b"}}"),
        http("query ($n: Int) { contenders(first: $n) { totalCount } }", n=1e300),
    )


def _largest() -> Iterator[bytes]:
    return _cycle(*(http(text) for name, text in LARGEST_DOCUMENTS.items() if name != "operations"))


def _tokens() -> Iterator[bytes]:
    tokens = json.loads(sys.argv[5])
    yield from cycle([http("{ viewer { id } }", f"authorization: Bearer {token}") for token in tokens])


REQUESTS: dict[str, Callable[[], Iterator[bytes]]] = {
    "query bombs": lambda: _cycle(*map(http, QUERY_BOMBS.values())),
    "new documents": _new_documents,
    "the largest legal documents": _largest,
    "complexity bypasses": _bypasses,
    "combinations of @skip and @include": _conditions,
    "operation names": _names,
    "large bodies": _large_bodies,
    "large headers": _headers,
    "malformed requests": _malformed,
    "hostile hosts": _hosts,
    "huge numbers": _numbers,
    "expired and forged tokens": _tokens,
}


class Attackers:
    """The attacks under way, and what came of them."""

    def __init__(self, port: int, until: float, rate: float, connections: int) -> None:
        self.port, self.until, self.pause = port, until, connections / rate
        self.counts: Counter[str] = Counter()
        self.sent: Counter[str] = Counter()
        self._numbers = count()
        self.kinds: dict[str, Callable[[Connection], Awaitable[None]]] = {
            **{name: self._requests(name, make) for name, make in REQUESTS.items()},
            "votes with dropped cookies": self._vote,
            "floods of sockets": self._flood_sockets,
            "abandoned event streams": self._abandon_stream,
        }

    def _requests(self, name: str, make: Callable[[], Iterator[bytes]]) -> Callable[[Connection], Awaitable[None]]:
        prepared = make()

        async def attack(connection: Connection) -> None:
            await self._ask(connection, next(prepared))
            self.sent[name] += 1

        return attack

    async def _ask(self, connection: Connection, request: bytes) -> tuple[bytes, bytes]:
        status, head, body = await connection.ask(request)
        code = CODE.search(body[:20_000]) if status == 200 else None
        named = {0: "closed", -1: "no answer"}.get(status, str(status))
        self.counts[f"{named} {code[1].decode()}" if code else named] += 1
        return head, body

    async def _vote(self, connection: Connection) -> None:
        head, body = await self._ask(connection, http(DRAW))
        self.sent["votes with dropped cookies"] += 1
        cookie = re.search(rb"set-cookie: ([^;]+)", head, re.IGNORECASE)
        token = re.search(rb'"token":"([^"]+)"', body)
        if cookie and token:
            await self._ask(connection, http(VOTE, f"cookie: {cookie[1].decode()}", token=token[1].decode()))

    async def _flood_sockets(self, connection: Connection) -> None:
        """Open a socket with thirty operations, then drop it."""
        reader, writer = await connection.open()
        handshake = ("GET /graphql HTTP/1.1", "host: 127.0.0.1", "connection: upgrade", "upgrade: websocket",
                     "sec-websocket-version: 13", "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
                     "sec-websocket-protocol: graphql-transport-ws", "", "")  # fmt: skip
        writer.write("\r\n".join(handshake).encode())
        received = await self._read(reader, 2.0, until=b"\r\n\r\n")
        writer.write(frame({"type": "connection_init"}))
        received += await self._read(reader, 2.0, until=b"connection_ack")
        for number in range(30):
            topic = f'standingsChanged(season: "x{next(self._numbers)}") {{ season }}'
            query = "{ contenders(first: 100) { nodes { id name } } }" if number % 3 else f"subscription {{ {topic} }}"
            writer.write(frame({"id": str(number), "type": "subscribe", "payload": {"query": query}}))
        received += await self._read(reader, 0.5)
        writer.transport.abort()
        self.counts[received[9:12].decode() or "closed"] += 1
        self.counts.update("message " + kind.decode() for kind in MESSAGE.findall(received))
        self.sent["floods of sockets"] += 1

    async def _abandon_stream(self, connection: Connection) -> None:
        reader, writer = await connection.open()
        query = f'subscription {{ commentPosted(product: "invented{next(self._numbers)}") {{ id }} }}'
        writer.write(http(query, "accept: text/event-stream"))
        self.counts[(await self._read(reader, 1.0, until=b"\r\n\r\n"))[9:12].decode() or "closed"] += 1
        writer.transport.abort()
        self.sent["abandoned event streams"] += 1

    @staticmethod
    async def _read(reader: asyncio.StreamReader, seconds: float, until: bytes | None = None) -> bytes:
        """What arrives within these seconds, or until this does."""
        received = b""
        try:
            async with asyncio.timeout(seconds):
                while piece := await reader.read(262_144):
                    received += piece
                    if until and until in received:
                        break
        except (TimeoutError, OSError):
            pass
        return received

    async def attack(self, number: int, kind: str) -> None:
        connection = Connection(self.port, f"127.0.1.{number % 250 + 1}")
        await asyncio.sleep(self.pause * (number % 50) / 50)
        while time.time() < self.until:
            began = time.time()
            try:
                await self.kinds[kind](connection)
            except OSError:
                self.counts["not connected"] += 1
            await asyncio.sleep(max(0.0, began + self.pause - time.time()))
        connection.close()

    async def stay(self, number: int) -> None:
        """Connect and say nothing, or a byte now and then."""
        while time.time() < self.until:
            try:
                reader, writer = await Connection(self.port, f"127.0.2.{number % 250 + 1}").open()
                writer.write(b"POST /graphql HTTP/1.1\r\nhost: 127.0.0.1\r\nx: " if number % 2 else b"")
                while time.time() < self.until and not reader.at_eof():
                    await self._read(reader, 4.0, until=b"HTTP/1.1")
                    writer.write(b"y" if number % 2 else b"")
                writer.transport.abort()
                self.counts["idle or slow connections"] += 1
            except OSError:
                await asyncio.sleep(1)


async def run(port: int, seconds: float, rate: float, connections: int, only: str | None) -> dict[str, Any]:
    attackers = Attackers(port, time.time() + seconds, rate, connections)
    kinds = [only] if only else list(attackers.kinds)
    idle = 0 if only else connections * IDLE_PER_CONNECTION
    await asyncio.gather(
        *(attackers.attack(number, kinds[number % len(kinds)]) for number in range(connections)),
        *(attackers.stay(number) for number in range(idle)),
    )
    return {"counts": dict(attackers.counts), "sent": dict(attackers.sent)}


def main() -> None:
    port, seconds, rate, connections = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    only = sys.argv[6] if len(sys.argv) > 6 else None
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(run(port, seconds, rate, connections, only))))


if __name__ == "__main__":
    main()
