"""A receiver of webhooks on a free port of 127.0.0.1."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from tests.waiting import LONGEST


@dataclass(frozen=True, slots=True)
class Message:
    """One request as it arrived."""

    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def content(self) -> dict[str, Any]:
        content: dict[str, Any] = orjson.loads(self.body)
        return content

    @property
    def data(self) -> dict[str, Any]:
        data: dict[str, Any] = self.content["data"]
        return data


@dataclass
class Receiver:
    """The messages that arrived, and those that it accepted. `answer` chooses the status of each response."""

    url: str = ""
    answer: Callable[[Message], int | web.StreamResponse] = lambda _: 204
    received: list[Message] = field(default_factory=list)
    accepted: list[Message] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        message = Message({name.lower(): value for name, value in request.headers.items()}, await request.read())
        self.received.append(message)
        self.changed.set()
        answer = self.answer(message)
        if isinstance(answer, web.StreamResponse):
            return answer
        if 200 <= answer < 300:
            self.accepted.append(message)
        return web.Response(status=answer)

    async def until(self, holds: Callable[[], bool], seconds: float = LONGEST) -> None:
        """Wait until something holds that arriving messages make true."""
        async with asyncio.timeout(seconds):
            while not holds():
                self.changed.clear()
                await self.changed.wait()

    def kinds(self) -> list[str]:
        return [message.data["kind"] for message in self.accepted]

    def without_repeats(self) -> list[Message]:
        """The messages that it accepted, each as it came first: it may come again, under the same id."""
        return list({message.id: message for message in reversed(self.accepted)}.values())[::-1]


@asynccontextmanager
async def receiving(answer: Callable[[Message], int | web.StreamResponse] | None = None) -> AsyncIterator[Receiver]:
    receiver = Receiver()
    if answer is not None:
        receiver.answer = answer
    app = web.Application()
    app.router.add_post("/{path:.*}", receiver.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    receiver.url = f"http://127.0.0.1:{port}/hook"
    try:
        yield receiver
    finally:
        await runner.cleanup()
