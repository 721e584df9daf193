"""Server-Sent Events: the "distinct connections mode" of the GraphQL over SSE protocol.

Each answer is an event called `next`, the end an event called `complete`. A comment every fifteen seconds keeps
proxies from taking a quiet stream for a dead one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.responses import Response, StreamingResponse

from server.compiler import encode_json
from server.execution.answers import Answer
from server.http.request import STREAM

QUIET_SECONDS = 15.0
_COMPLETE = b"event: complete\ndata:\n\n"


def stream(answers: AsyncIterator[Answer], closing: asyncio.Event, headers: Mapping[str, str]) -> Response:
    """The answers as a stream that ends when they do, when the client leaves, or when the service closes."""
    return StreamingResponse(
        _lines(answers, closing),
        headers={**headers, "cache-control": "no-store", "x-accel-buffering": "no", "content-type": STREAM},
    )


async def _lines(answers: AsyncIterator[Answer], closing: asyncio.Event) -> AsyncIterator[bytes]:
    yield b":\n\n"
    async for answer in until(closing, answers, QUIET_SECONDS):
        yield b":\n\n" if answer is None else _event(answer)
    yield _COMPLETE


def _event(answer: Answer) -> bytes:
    """An event, with the mark that a browser sends back as Last-Event-ID where the stream has one."""
    mark = f"id: {answer.mark}\n".encode() if answer.mark else b""
    return b"event: next\n" + mark + b"data: " + encode_json(answer.body()) + b"\n\n"


async def until(
    closing: asyncio.Event, answers: AsyncIterator[Answer], quiet: float | None = None
) -> AsyncIterator[Answer | None]:
    """The answers until they end or the service closes; None after each `quiet` seconds without one."""
    closed: asyncio.Future[Any] = asyncio.ensure_future(closing.wait())
    following: asyncio.Future[Any] = asyncio.ensure_future(anext(answers))
    try:
        while True:
            done, _ = await asyncio.wait({closed, following}, timeout=quiet, return_when=asyncio.FIRST_COMPLETED)
            if closed in done:
                return
            if not done:
                yield None
                continue
            try:
                yield following.result()
            except StopAsyncIteration:
                return
            following = asyncio.ensure_future(anext(answers))
    finally:
        closed.cancel()
        following.cancel()
        await asyncio.gather(closed, following, return_exceptions=True)
        close = getattr(answers, "aclose", None)
        if close is not None:
            await close()
