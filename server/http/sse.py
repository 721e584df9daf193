"""Server-Sent Events: the "distinct connections mode" of the GraphQL over SSE protocol.

Each answer is an event `next`, the end of the operation an event `complete`. A comment every fifteen seconds keeps
proxies from closing a stream without events. When the token of the request ends, the stream ends with an error
NOT_SIGNED_IN. When the service closes, it ends without `complete`, so that clients connect again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from graphql import GraphQLError
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from datastore.refusals import NotSignedIn, Overloaded
from server.auth.identification import Credentials
from server.compiler import encode_json
from server.execution.answers import Answer
from server.http.messages import STREAM, error_response, overloaded

QUIET_SECONDS = 15.0
_QUIET = b":\n\n"
_COMPLETE = b"event: complete\ndata:\n\n"


def ended_stream(answer: Answer, set_cookie: str | None) -> Response:
    """The stream of an answer that no other follows.

    It counts towards no limit and does not end with the service: otherwise something carried out might go unanswered.
    """
    return StreamingResponse(_only(answer), headers=_headers(set_cookie))


def _headers(set_cookie: str | None) -> dict[str, str]:
    headers = {"cache-control": "no-store", "x-accel-buffering": "no", "content-type": STREAM}
    return {**headers, "set-cookie": set_cookie} if set_cookie else headers


async def _only(answer: Answer) -> AsyncIterator[bytes]:
    yield _QUIET + _event(answer) + _COMPLETE


class EventStream(StreamingResponse):
    """The answers as a stream that ends with them, with the client, the credentials or the service.

    It counts towards the limit of its kind, and is refused above it.
    """

    def __init__(
        self,
        answers: AsyncIterator[Answer],
        closing: asyncio.Event,
        set_cookie: str | None,
        credentials: Credentials,
        place: AbstractContextManager[None],
    ) -> None:
        super().__init__(_events(answers, closing, credentials), headers=_headers(set_cookie))
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with ExitStack() as stack:
            try:
                stack.enter_context(self._place)
            except Overloaded:
                await error_response(overloaded())(scope, receive, send)
            else:
                await super().__call__(scope, receive, send)


async def _events(
    answers: AsyncIterator[Answer], closing: asyncio.Event, credentials: Credentials
) -> AsyncIterator[bytes]:
    yield _QUIET
    lapse = asyncio.ensure_future(credentials.lapse())
    try:
        async for answer in until_closing(closing, answers, QUIET_SECONDS, lapse):
            yield _QUIET if answer is None else _event(answer)
        if lapse.done():
            yield _event(_signed_out(lapse.result()))
    finally:
        lapse.cancel()
    if not closing.is_set():
        yield _COMPLETE


def _signed_out(reason: str) -> Answer:
    refused = NotSignedIn(f"The stream ended: {reason.removesuffix('.')}. Ask again with a new token.")
    return Answer.not_executed(GraphQLError(refused.message, original_error=refused))


def _event(answer: Answer) -> bytes:
    """An event. A client that reconnects sends its id back as Last-Event-ID."""
    event_id = f"id: {answer.event_id}\n".encode() if answer.event_id else b""
    return b"event: next\n" + event_id + b"data: " + encode_json(answer.body()) + b"\n\n"


async def until_closing(
    closing: asyncio.Event,
    answers: AsyncIterator[Answer],
    quiet_seconds: float | None = None,
    lapse: asyncio.Future[str] | None = None,
) -> AsyncIterator[Answer | None]:
    """The answers until they or the credentials end or the service closes; None after `quiet_seconds` without one."""
    closed: asyncio.Future[Any] = asyncio.ensure_future(closing.wait())
    following: asyncio.Future[Any] = asyncio.ensure_future(anext(answers))
    try:
        while True:
            futures = {closed, following, *((lapse,) if lapse else ())}
            done, _ = await asyncio.wait(futures, timeout=quiet_seconds, return_when=asyncio.FIRST_COMPLETED)
            if closed in done or lapse in done:
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
