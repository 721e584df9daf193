"""Server-Sent Events: the "distinct connections mode" of the GraphQL over SSE protocol.

Each answer is an event `next`, the end of the stream an event `complete`. A comment every fifteen seconds keeps proxies
from closing a stream without events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response, StreamingResponse

from server.compiler import encode_json
from server.execution.answers import Answer
from server.http.request import STREAM

QUIET_SECONDS = 15.0
_COMPLETE = b"event: complete\ndata:\n\n"


def stream_response(answers: AsyncIterator[Answer], closing: asyncio.Event, set_cookie: str | None) -> Response:
    """The answers as a stream that ends when they do, when the client leaves, or when the service closes."""
    headers = {"cache-control": "no-store", "x-accel-buffering": "no", "content-type": STREAM}
    if set_cookie:
        headers["set-cookie"] = set_cookie
    return StreamingResponse(_events(answers, closing), headers=headers)


async def _events(answers: AsyncIterator[Answer], closing: asyncio.Event) -> AsyncIterator[bytes]:
    yield b":\n\n"
    async for answer in until_closing(closing, answers, QUIET_SECONDS):
        yield b":\n\n" if answer is None else _event(answer)
    yield _COMPLETE


def _event(answer: Answer) -> bytes:
    """An event. A browser that reconnects sends its id back as Last-Event-ID."""
    event_id = f"id: {answer.event_id}\n".encode() if answer.event_id else b""
    return b"event: next\n" + event_id + b"data: " + encode_json(answer.body()) + b"\n\n"


async def until_closing(
    closing: asyncio.Event, answers: AsyncIterator[Answer], quiet_seconds: float | None = None
) -> AsyncIterator[Answer | None]:
    """The answers until they end or the service closes; None after each `quiet_seconds` without one."""
    closed: asyncio.Future[Any] = asyncio.ensure_future(closing.wait())
    following: asyncio.Future[Any] = asyncio.ensure_future(anext(answers))
    try:
        while True:
            futures = {closed, following}
            done, _ = await asyncio.wait(futures, timeout=quiet_seconds, return_when=asyncio.FIRST_COMPLETED)
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
