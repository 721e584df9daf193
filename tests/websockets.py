"""A graphql-transport-ws client for the running service."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.frames import Close
from websockets.typing import Subprotocol

from tests.attack.serving import Served
from tests.service import Service
from tests.waiting import LONGEST

PROTOCOL = Subprotocol("graphql-transport-ws")


@asynccontextmanager
async def open_socket(service: Service | Served, **more: Any) -> AsyncIterator[ClientConnection]:
    address = service.url.replace("http", "ws") + "/graphql"
    async with connect(address, subprotocols=[PROTOCOL], **more) as connection:
        yield connection


async def send(connection: ClientConnection, *messages: Any) -> None:
    for message in messages:
        await connection.send(message if isinstance(message, str) else json.dumps(message))


async def receive(connection: ClientConnection) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(await connection.recv())
    return message


async def closing(connection: ClientConnection) -> Close:
    """How the service closes the connection; if it never does, the test fails instead of waiting for ever."""
    with pytest.raises(ConnectionClosed) as closed:
        await asyncio.wait_for(_receive_all(connection), LONGEST)
    assert closed.value.rcvd is not None
    return closed.value.rcvd


async def _receive_all(connection: ClientConnection) -> None:
    while True:
        await connection.recv()
