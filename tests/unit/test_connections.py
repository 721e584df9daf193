"""Connections to an engine: used again, and never trusted after anything went wrong; on both event loops."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress

import pytest
import uvloop

from datastore.dynamo.transport.connections import Connections
from tests.waiting import LONGEST

REQUEST = b"POST / HTTP/1.1\r\nhost: engine\r\ncontent-length: 2\r\n\r\n{}"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nx-amzn-requestid: one\r\n\r\ntrue"
Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"], autouse=True)
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    """Run with each kind of loop: their transports differ."""
    with asyncio.Runner(loop_factory=request.param) as one:
        yield one


class Engine:
    """Answers request after request with what a test hands it, and counts connections."""

    def __init__(self, *answers: bytes | Answer) -> None:
        self.answers = list(answers)
        self.opened = self.closed = 0
        self.busy = self.busiest = 0
        self.serving: set[asyncio.Task[None]] = set()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        self.serving.add(asyncio.create_task(self._serve(reader, writer)))

    async def end(self) -> None:
        """Close what is open, and wait until it is: a loop that ends before leaves sockets behind."""
        for task in self.serving:
            task.cancel()
        await asyncio.gather(*self.serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"{}"):
                self.busy += 1
                self.busiest = max(self.busiest, self.busy)
                await asyncio.sleep(0.01)
                self.busy -= 1
                answer = self.answers.pop(0) if self.answers else OK
                if callable(answer):
                    await answer(writer)
                else:
                    writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.closed += 1
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


@asynccontextmanager
async def answering(*answers: bytes | Answer) -> AsyncIterator[tuple[Engine, Connections]]:
    engine = Engine(*answers)
    server = await asyncio.start_server(engine.accept, "127.0.0.1", 0)
    kept = Connections("127.0.0.1", server.sockets[0].getsockname()[1])
    kept.answer_seconds = kept.idle_seconds = LONGEST
    try:
        yield engine, kept
    finally:
        kept.close()
        server.close()
        await engine.end()


def test_a_connection_is_used_again(runner: asyncio.Runner) -> None:
    """Ten requests one after the other, one connection; status, headers and body are what was sent."""

    async def body() -> None:
        async with answering() as (engine, kept):
            for _ in range(10):
                answered = await kept.send(REQUEST)
            assert (answered.status, answered.body) == (200, b"true")
            assert (b"x-amzn-requestid", b"one") in answered.headers
            assert engine.opened == 1

    runner.run(body())


def test_a_request_under_way_when_they_are_closed_leaves_no_connection(runner: asyncio.Runner) -> None:
    """It is answered; nobody would close the connection that it gives back."""

    async def body() -> None:
        async with answering() as (engine, kept):
            sending = asyncio.ensure_future(kept.send(REQUEST))
            while not engine.busy:
                await asyncio.sleep(0)
            kept.close()
            assert (await sending).body == b"true"
            async with asyncio.timeout(120):
                while not engine.closed:
                    await asyncio.sleep(0)

    runner.run(body())


async def in_pieces(writer: asyncio.StreamWriter) -> None:
    for place in range(len(OK)):
        writer.write(OK[place : place + 1])
        await asyncio.sleep(0)


async def in_chunks(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\ntr\r\n2\r\nue\r\n0\r\n\r\n")


@pytest.mark.parametrize("answer", [in_pieces, in_chunks])
def test_an_answer_may_come_in_pieces(runner: asyncio.Runner, answer: Answer) -> None:
    """Byte by byte, or in chunks; the connection is as good as before."""

    async def body() -> None:
        async with answering(answer) as (engine, kept):
            assert (await kept.send(REQUEST)).body == b"true"
            assert (await kept.send(REQUEST)).body == b"true"
            assert engine.opened == 1

    runner.run(body())


async def cut_short(writer: asyncio.StreamWriter) -> None:
    writer.write(OK[:-2])
    writer.close()


async def cut(writer: asyncio.StreamWriter) -> None:
    writer.close()


async def reset(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


GARBAGE = b"220 engine ESMTP\r\n"
DAMAGED = OK.replace(b"x-amzn-requestid: one", f"x-amz-crc32: {zlib.crc32(b'null')}".encode())


@pytest.mark.parametrize(
    "answer", [cut_short, cut, reset, GARBAGE, DAMAGED], ids=["cut_short", "cut", "reset", "garbage", "damaged"]
)
def test_every_failure_is_a_lost_connection(runner: asyncio.Runner, answer: bytes | Answer) -> None:
    """Which the service calls EngineUnavailable; the next request has a good connection."""

    async def body() -> None:
        async with answering(answer) as (_, kept):
            with pytest.raises(ConnectionError):
                await kept.send(REQUEST)
            assert (await kept.send(REQUEST)).body == b"true"

    runner.run(body())


def test_a_correct_checksum_is_accepted(runner: asyncio.Runner) -> None:
    """As every answer of DynamoDB has it."""

    async def body() -> None:
        async with answering(OK.replace(b"x-amzn-requestid: one", f"x-amz-crc32: {zlib.crc32(b'true')}".encode())) as (
            _,
            kept,
        ):
            assert (await kept.send(REQUEST)).body == b"true"

    runner.run(body())


def test_an_unreachable_engine_is_a_refused_connection(runner: asyncio.Runner) -> None:
    """And waiting lines are not left hanging."""

    async def body() -> None:
        async with answering() as (engine, kept):
            gone = Connections("127.0.0.1", 1)
            for _ in range(3):
                with pytest.raises(OSError, match=r"refused|Connect call failed"):
                    await gone.send(REQUEST)
            assert (await kept.send(REQUEST)).status == 200
            assert engine.opened == 1

    runner.run(body())


@pytest.mark.parametrize(
    "parting",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 4\r\n\r\ntrue",
        b"HTTP/1.0 200 OK\r\ncontent-length: 4\r\n\r\ntrue",
    ],
)
def test_a_connection_that_the_engine_closes_is_replaced(runner: asyncio.Runner, parting: bytes) -> None:
    """`connection: close`, or HTTP/1.0 without a word."""

    async def body() -> None:
        async with answering(parting) as (engine, kept):
            assert (await kept.send(REQUEST)).body == b"true"
            assert (await kept.send(REQUEST)).body == b"true"
            assert engine.opened == 2

    runner.run(body())


async def silence(_: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


def test_a_missing_answer_ends_with_a_timeout(runner: asyncio.Runner) -> None:
    """However long the deadline of the request is; the silent connection is given up."""

    async def body() -> None:
        async with answering(silence) as (engine, kept):
            kept.answer_seconds, usual = 0.05, kept.answer_seconds
            with pytest.raises(TimeoutError):
                await kept.send(REQUEST)
            kept.answer_seconds = usual
            assert (await kept.send(REQUEST)).body == b"true"
            assert engine.opened == 2

    runner.run(body())


def test_a_cancelled_request_closes_its_connection(runner: asyncio.Runner) -> None:
    """Its answer would otherwise be the answer to the next one."""

    async def body() -> None:
        asked, cancelled = asyncio.Event(), asyncio.Event()

        async def late(writer: asyncio.StreamWriter) -> None:
            asked.set()
            await cancelled.wait()
            writer.write(OK.replace(b"true", b"null"))

        async with answering(late) as (engine, kept):
            asking = asyncio.create_task(kept.send(REQUEST))
            await asked.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            cancelled.set()
            assert (await kept.send(REQUEST)).body == b"true"
            assert engine.opened == 2

    runner.run(body())


def test_unexpected_data_closes_a_connection(runner: asyncio.Runner) -> None:
    """Whatever they are, they would be taken for the answer to the next request."""

    async def body() -> None:
        async with answering(OK + OK.replace(b"true", b"null")) as (engine, kept):
            assert (await kept.send(REQUEST)).body == b"true"
            assert (await kept.send(REQUEST)).body == b"true"
            assert engine.opened == 2

    runner.run(body())


def test_a_connection_that_was_idle_for_long_is_replaced(runner: asyncio.Runner) -> None:
    """The other side may be about to close it."""

    async def body() -> None:
        async with answering() as (engine, kept):
            await asyncio.gather(*(kept.send(REQUEST) for _ in range(3)))
            assert engine.opened == 3
            kept.idle_seconds = 0.02
            await asyncio.sleep(0.03)
            await kept.send(REQUEST)
            assert engine.opened == 4
            assert len(kept._idle) == 1

    runner.run(body())
