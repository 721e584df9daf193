"""What a document costs: calls and read units as the engine's client saw them, and CPU of the process."""

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any
from unittest.mock import patch

import orjson
from starlette.types import Message

from datastore.dynamo.transport.connections import Connections, Response
from tests.client import Client
from tests.dearest.documents import Document

_UNITS = re.compile(rb'"CapacityUnits":([\d.]+)')
_READ = re.compile(rb"DynamoDB_20120810\.(GetItem|BatchGetItem|Query|Scan)\b")
_HEAD = 500
_TURNS = 20
"""So many turns of the event loop without a call under way: nothing is left to be called."""
_addresses = count()


@dataclass(slots=True)
class Cost:
    """Of one request, what it left running included."""

    calls: int
    read_units: float
    cpu: float
    """Seconds of this process."""
    status: int
    codes: Counter[str]
    messages: set[str]
    has_data: bool

    @property
    def is_refused(self) -> bool:
        """Whether nothing was read, because of an argument: what reads too much is answered with another error."""
        return bool(self.codes) and not self.has_data and not any("reads too much" in text for text in self.messages)


@dataclass
class Counting:
    """Counts the requests that are sent to the engine, whatever the service itself counts."""

    client: Client
    calls: int = 0
    read_units: float = 0.0
    under_way: int = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        send = Connections.send

        async def counting(connections: Connections, request: bytes) -> Response:
            self.calls += 1
            self.under_way += 1
            try:
                response = await send(connections, request)
            finally:
                self.under_way -= 1
            if _READ.search(request[:_HEAD]):
                self.read_units += sum(map(float, _UNITS.findall(response.body)))
            return response

        with patch.object(Connections, "send", counting):
            yield

    async def cost(self, document: Document) -> Cost:
        """Run a document in a process that has just started: nothing is cached."""
        for kind in self.client.services.cache.kinds:
            kind.forget_all()
        body = json.dumps({"query": document.text, "variables": document.variables}).encode()
        calls, units, began = self.calls, self.read_units, time.process_time()
        status, answer = await post(self.client, body)
        await self._quiet()
        cpu = time.process_time() - began
        errors = answer.get("errors") or []
        codes = Counter(error.get("extensions", {}).get("code", "") for error in errors)
        messages = {error["message"] for error in errors}
        has_data = any(value is not None for value in (answer.get("data") or {}).values())
        return Cost(self.calls - calls, self.read_units - units, cpu, status, codes, messages, has_data)

    async def _quiet(self) -> None:
        """Wait until the calls that the request has begun have ended."""
        turns = 0
        while self.under_way or turns < _TURNS:
            turns = 0 if self.under_way else turns + 1
            await asyncio.sleep(0)


async def post(client: Client, body: bytes) -> tuple[int, Mapping[str, Any]]:
    """The status and the answer of a POST, without an HTTP client, whose work would be counted too."""
    number = next(_addresses)
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/graphql",
        "raw_path": b"/graphql",
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"ringside.test"), (b"content-type", b"application/json")],
        "client": (f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}", 1),
        "server": ("ringside.test", 80),
    }
    pieces: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        pieces.append(message)

    await client.served(scope, receive, send)
    sent = b"".join(piece.get("body", b"") for piece in pieces)
    return pieces[0]["status"], orjson.loads(sent)
