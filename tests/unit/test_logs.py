"""The log says what happened, in one line each, and never what was asked with which values."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import structlog
import uvicorn
from starlette.types import Receive, Scope, Send
from websockets.asyncio.client import connect

from server.http.endpoint import with_request_ids
from server.settings import Format, Level, Log
from server.telemetry import configure_logging


class Stream(io.StringIO):
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.getvalue().splitlines()]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    structlog.reset_defaults()
    root.handlers = handlers
    root.setLevel(level)


def logging_to(stream: io.StringIO, level: Level = Level.INFO, shape: Format | None = Format.JSON) -> None:
    configure_logging(Log(level, shape), stream)


def test_lines_of_ringside_and_of_libraries_have_one_format() -> None:
    """JSON, with time, level and what was said; a library's with its name."""
    logging_to(stream := Stream())
    structlog.get_logger().info("operation", operation="Leaderboard", milliseconds=1.5)
    logging.getLogger("some.library").warning("%d things went wrong", 3)
    ours, theirs = stream.lines()
    assert ours.pop("timestamp").endswith("Z")
    assert theirs.pop("timestamp").endswith("Z")
    assert ours == {"event": "operation", "level": "info", "operation": "Leaderboard", "milliseconds": 1.5}
    assert theirs == {"event": "3 things went wrong", "level": "warning", "logger": "some.library"}


def test_less_than_the_level_is_not_logged() -> None:
    """Neither ours nor theirs."""
    logging_to(stream := Stream(), Level.WARNING)
    structlog.get_logger().info("no")
    logging.getLogger("some.library").info("no")
    structlog.get_logger().error("yes")
    assert [line["event"] for line in stream.lines()] == ["yes"]


def test_a_second_configuration_replaces_the_first() -> None:
    """One line stays one line."""
    logging_to(first := Stream())
    logging_to(second := Stream())
    logging.getLogger("some.library").warning("once")
    structlog.get_logger().warning("once")
    assert (len(first.lines()), len(second.lines())) == (0, 2)


HOSTILE = "x\r\n\x1b[2J\x1b]0;title\x07 level=error \x9b31m \u202eabc\u2066 \u2028 \x00"


@pytest.mark.parametrize("shape", [Format.JSON, Format.CONSOLE])
def test_a_text_from_outside_cannot_begin_a_line_or_control_the_terminal(shape: Format) -> None:
    """Line ends, ANSI escapes and marks of direction, in a value, in an event and in a library's line."""
    logging_to(stream := Stream(), shape=shape)
    structlog.get_logger().info("email", to=HOSTILE)
    structlog.get_logger().info(HOSTILE)
    logging.getLogger("some.library").warning("said %s", HOSTILE)
    written = stream.getvalue()
    assert written.count("\n") == len(written.splitlines()) == 3
    assert written.replace("\n", "").isprintable()
    if shape is Format.JSON:
        assert [line["event"] for line in stream.lines()] == ["email", HOSTILE, f"said {HOSTILE}"]
        assert stream.lines()[0]["to"] == HOSTILE


def test_a_traceback_cannot_control_the_terminal() -> None:
    """It has several lines, but no escapes of its own."""
    logging_to(stream := Stream(), shape=Format.CONSOLE)
    structlog.get_logger().error("failed", exc_info=RuntimeError(HOSTILE))
    written = stream.getvalue()
    assert "RuntimeError: x" in written
    assert written.replace("\n", "").isprintable()


@pytest.mark.parametrize("value", ["a\ud800b", 10**30, object(), {1, 2}, b"\xff", "line\nbreak"])
def test_every_value_can_be_logged(value: object) -> None:
    """A line that cannot be written must not become an error of the request."""
    logging_to(stream := Stream())
    structlog.get_logger().info("odd", value=value)
    assert stream.lines()[0]["event"] == "odd"


@pytest.mark.parametrize("shape", [Format.JSON, Format.CONSOLE])
def test_tracebacks_are_logged_without_local_variables(shape: Format) -> None:
    """One of them may be a token."""
    logging_to(stream := Stream(), shape=shape)
    token = "eyJhbGciOi"
    try:
        raise RuntimeError(len(token))  # noqa: TRY301 - there is nothing between
    except RuntimeError:
        structlog.get_logger().exception("ours")
        logging.getLogger("some.library").exception("theirs")
    text = stream.getvalue()
    assert text.count("RuntimeError: 10") == 2
    assert "test_tracebacks" in text
    assert "eyJ" not in text.replace('token = "eyJhbGciOi"', "")


def test_a_terminal_gets_plain_text_and_a_file_json() -> None:
    """Unless they ask for the other."""
    logging_to(terminal := Terminal(), shape=None)
    structlog.get_logger().info("hello")
    logging_to(file := Stream(), shape=None)
    structlog.get_logger().info("hello")
    assert "\x1b[" in terminal.getvalue()
    assert file.lines()[0]["event"] == "hello"


@pytest.mark.parametrize("name", ["botocore.endpoint", "aiobotocore.hooks", "httpx", "urllib3.connectionpool"])
def test_libraries_that_log_what_they_send_log_warnings_only(name: str) -> None:
    """Items, addresses with their queries, headers."""
    logging_to(stream := Stream(), Level.DEBUG)
    logging.getLogger(name).debug("Sending %s", {"Item": "secret"})
    logging.getLogger(name).info("GET http://x/?token=secret")
    assert stream.lines() == []


def test_queries_are_not_quoted_by_strawberry() -> None:
    """Its error log shows the source around a mistake, literals included."""
    logging_to(stream := Stream())
    logging.getLogger("strawberry.execution").error('{ user(id: "secret") }')
    assert stream.lines() == []


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        structlog.get_logger().info("ours")
        logging.getLogger("some.library").warning("theirs")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})
    elif scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close", "code": 1000})


async def answered(headers: dict[str, str] | None = None) -> str:
    transport = httpx.ASGITransport(with_request_ids(application))
    async with httpx.AsyncClient(transport=transport, base_url="http://ringside") as client:
        return (await client.get("/", headers=headers)).headers["x-request-id"]


async def test_a_request_has_one_id_on_every_line_and_in_the_answer() -> None:
    """So that a complaint finds its lines."""
    logging_to(stream := Stream())
    first, second = await asyncio.gather(answered(), answered())
    assert first != second
    for request in (first, second):
        lines = [line["event"] for line in stream.lines() if line.get("request") == request]
        assert sorted(lines) == ["ours", "theirs"]


@pytest.mark.parametrize("given", ["0f8fad5b-d9cb-469f-a165-70867728950e", "a", "Root=1-5759e988".replace("=", "_")])
async def test_a_plain_request_id_of_the_caller_is_used(given: str) -> None:
    """A trace through several services keeps its name."""
    assert await answered({"X-Request-ID": given}) == given


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a\tb", '"', "<script>"])
async def test_an_id_that_is_long_or_odd_is_replaced_silently(given: str) -> None:
    """It goes into logs and headers, and a warning each time would let strangers fill the disk."""
    logging_to(stream := Stream(), Level.DEBUG)
    answer = await answered({"X-Request-ID": given})
    assert answer != given
    assert len(answer) == 32
    assert {line["event"] for line in stream.lines()} == {"ours", "theirs"}


async def test_uvicorn_logs_neither_accesses_nor_query_strings_nor_headers() -> None:
    """A real server, asked over HTTP and WebSocket with secrets wherever there is room for one."""
    logging_to(stream := Stream(), Level.DEBUG)
    secrets = {"Authorization": "Bearer secret", "Cookie": "ringside_visitor=secret"}
    config = uvicorn.Config(application, port=0, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    async with httpx.AsyncClient(timeout=60) as client:
        await client.get(f"http://127.0.0.1:{port}/graphql?token=secret", headers=secrets)
    async with connect(f"ws://127.0.0.1:{port}/graphql?token=secret", additional_headers=secrets) as socket:
        await socket.wait_closed()
    server.should_exit = True
    await serving
    text = stream.getvalue()
    assert "Uvicorn running" in text
    assert "WebSocket" not in text  # uvicorn would say from which address
    assert "secret" not in text
    assert "uvicorn.access" not in text
