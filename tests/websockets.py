"""A graphql-transport-ws client for the running service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tests.service import Service

PROTOCOL = Subprotocol("graphql-transport-ws")


@asynccontextmanager
async def open_socket(service: Service, **more: Any) -> AsyncIterator[ClientConnection]:
    address = service.url.replace("http", "ws") + "/graphql"
    async with connect(address, subprotocols=[PROTOCOL], **more) as connection:
        yield connection


async def send(connection: ClientConnection, *messages: Any) -> None:
    for message in messages:
        await connection.send(message if isinstance(message, str) else json.dumps(message))


async def receive(connection: ClientConnection) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(await connection.recv())
    return message


async def wait_until_closed(connection: ClientConnection) -> None:
    """Ends with the library's ConnectionClosed; if that does not come, the test fails instead of waiting for ever."""
    async with asyncio.timeout(60):
        while True:
            await connection.recv()
