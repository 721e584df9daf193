"""Bytes over a socket, as no HTTP library would send them, and what the service answers."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from hypothesis import strategies as some

QUIET_SECONDS = 0.2
"""A connection that says nothing for so long after the answers that are due is waiting for us."""

QUERY = b'{"query":"{ __typename }"}'


@dataclass(frozen=True)
class Exchange:
    """The bytes that came back, and whether the service then closed the connection."""

    received: bytes
    closed: bool

    @property
    def statuses(self) -> list[int]:
        """Of all answers, in order."""
        return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", self.received)]


@asynccontextmanager
async def connect(url: str, limit: int = 65_536) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port, limit=limit)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def exchange(
    url: str, pieces: Iterable[bytes], *, answers: int | None = 1, pause: float = 0.0, quiet: float = QUIET_SECONDS
) -> Exchange:
    """Sends the pieces; reads until the service closes, or has given so many answers and is then quiet for so long."""
    async with connect(url) as (reader, writer):
        reading = asyncio.create_task(_read(reader, answers, quiet))
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(pause)  # at least a turn, so that a refusal is read before it is too late to send
                if reading.done():
                    break
        except ConnectionError:
            pass
        return await reading


async def _read(reader: asyncio.StreamReader, answers: int | None, quiet: float) -> Exchange:
    received = Exchange(b"", closed=False)
    while True:
        may_end = answers is not None and len(received.statuses) >= answers
        try:
            async with asyncio.timeout(quiet if may_end else None):
                piece = await reader.read(65_536)
        except TimeoutError:
            return received
        except ConnectionError:
            piece = b""
        if not piece:
            return replace(received, closed=True)
        received = Exchange(received.received + piece, closed=False)


def head(method: str = "POST", path: str = "/graphql", *lines: str | bytes) -> bytes:
    """A request's line and headers."""
    written = [line if isinstance(line, bytes) else line.encode("latin-1") for line in lines]
    return b"\r\n".join([f"{method} {path} HTTP/1.1".encode(), b"host: 127.0.0.1", *written, b"", b""])


def post(*lines: str | bytes, body: bytes = QUERY) -> bytes:
    """A complete request."""
    return head("POST", "/graphql", "content-type: application/json", f"content-length: {len(body)}", *lines) + body


CHUNKED = head("POST", "/graphql", "content-type: application/json", "transfer-encoding: chunked")
LIVEZ = head("GET", "/livez")


def resident_bytes(process: int) -> int:
    """The memory of a process, from the operating system."""
    return int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]) * 4096


# ── what a hostile or broken client may send ──

_METHODS = some.sampled_from(["GET", "POST", "HEAD", "PUT", "OPTIONS", "CONNECT", "TRACE", "PRI", "get", "G\x00T", ""])
_PATHS = some.sampled_from(
    ["/graphql", "/livez", "/", "*", "//graphql", "/graphql?query={__typename}", "http://evil.example/graphql",
     "/%00", "/%ff%fe", "/graphql#x", "/" + "a" * 5000, "/explorer/../../etc/passwd", "\xff", "evil.example:443"]
)  # fmt: skip
_VERSIONS = some.sampled_from(["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "", "HTTP/1.1 "])
_HEADERS = some.sampled_from(
    ["Host: 127.0.0.1", "Host: a\r\nHost: b", "Content-Type: application/json", "Content-Length: 26",
     "Content-Length: 0", "Content-Length: -1", "Content-Length: 26, 26", "Content-Length: 99999999999999999999",
     "Content-Length: 0x1a", "Content-Length : 5", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked, identity",
     "Transfer-Encoding: xchunked", "Transfer-Encoding:\x0bchunked", "Transfer-Encoding: identity", "TE: trailers",
     "Connection: close", "Connection: keep-alive", "Connection: Upgrade\r\nUpgrade: websocket",
     "Connection: Upgrade\r\nUpgrade: h2c", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13",
     "Expect: 100-continue", "Expect: nothing", " folded: yes", "no colon", ": no name", "a\x00b: c", "X: \r\n\tfolded",
     "Accept: text/event-stream", "Accept: */*;q=nan", "Authorization: Bearer x", "Cookie: ringside_visitor=x",
     "X-Request-ID: \xff\xfe", "Accept: " + "a," * 3000, "Origin: null"]
)  # fmt: skip
_BODIES = some.sampled_from(
    [QUERY, b"", b"1a\r\n" + QUERY + b"\r\n0\r\n\r\n", b"1a;x=" + b"y" * 300 + b"\r\n" + QUERY + b"\r\n0\r\n\r\n",
     b"0\r\n\r\n", b"0\r\nX: trailer\r\n\r\n", b"ffffffffffffffff1\r\n", b"-1\r\n", b"1a\n" + QUERY + b"\n0\n\n",
     b"5\r\nabc", b"\r\n\r\n\r\n", b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", b"\x00" * 200, b"[" * 3000]
)  # fmt: skip


@some.composite
def messages(draw: some.DrawFn) -> bytes:
    """One request: whole, broken, or with two opinions of where it ends."""
    line = " ".join([draw(_METHODS), draw(_PATHS), draw(_VERSIONS)])
    headers = draw(some.lists(_HEADERS, max_size=6))
    end = draw(some.sampled_from(["\r\n", "\r\n", "\r\n", "\n"]))
    return (end.join([line, *headers, "", ""])).encode("latin-1") + draw(_BODIES)


@some.composite
def streams(draw: some.DrawFn) -> Sequence[bytes]:
    """What a client sends on one connection, in the pieces in which it arrives."""
    sent = b"".join(draw(some.lists(messages() | some.just(post()) | some.binary(max_size=60), min_size=1, max_size=5)))
    cuts = sorted(draw(some.sets(some.integers(0, len(sent)), max_size=4)))
    return [sent[start:end] for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True)]
