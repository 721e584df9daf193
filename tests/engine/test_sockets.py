"""Subscriptions' sockets: graphql-transport-ws against the running service."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from server.http.websocket import MOST_BEFORE_INIT
from tests.service import Service, ringside, running_service
from tests.websockets import open_socket, receive, send, wait_until_closed

PROTOCOL = "graphql-transport-ws"


async def test_a_query_is_answered_over_a_websocket(service: Service) -> None:
    """Acknowledged, answered, completed; a ping is answered with a pong."""
    async with open_socket(service) as connection:
        await send(connection, {"type": "connection_init"}, {"type": "ping"})
        assert [(await receive(connection))["type"] for _ in range(2)] == ["connection_ack", "pong"]
        await send(connection, {"id": "1", "type": "subscribe", "payload": {"query": "{ __typename }"}})
        answers = [await receive(connection) for _ in range(2)]
        assert answers == [
            {"id": "1", "type": "next", "payload": {"data": {"__typename": "Query"}}},
            {"id": "1", "type": "complete"},
        ]


async def test_a_ping_is_answered_before_the_connection_is_initialised(service: Service) -> None:
    """Pings and pongs may come at any time, by the protocol."""
    async with open_socket(service) as connection:
        await send(connection, {"type": "ping"}, {"type": "pong"}, {"type": "connection_init"})
        assert [(await receive(connection))["type"] for _ in range(2)] == ["pong", "connection_ack"]


async def test_a_faulty_operation_is_an_error_and_the_socket_stays(service: Service) -> None:
    """The error names the operation; the next one is answered."""
    async with open_socket(service) as connection:
        await send(connection, {"type": "connection_init"})
        await receive(connection)
        await send(connection, {"id": "1", "type": "subscribe", "payload": {"query": "{ nothing }"}})
        error = await receive(connection)
        assert (error["type"], error["id"]) == ("error", "1")
        await send(connection, {"id": "1", "type": "subscribe", "payload": {"query": "{ __typename }"}})
        assert (await receive(connection))["type"] == "next"


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([{"id": "1", "type": "subscribe", "payload": {"query": "{ __typename }"}}], 4401),
        ([{"type": "complete", "id": "1"}], 4401),
        ([{"type": "ping"}] * MOST_BEFORE_INIT, 4401),
        ([{"type": "unheard-of"}], 4400),
        ([{"type": []}], 4400),
        ([{"type": "connection_init"}, {"type": "connection_init"}], 4429),
        ([{"type": "connection_init"}, {"type": "unheard-of"}], 4400),
        (["[]"], 4400),
        (["no json"], 4400),
        ([{"type": "connection_init", "payload": {"a": [{}] * 20_000}}], 4400),
        ([{"type": "connection_init", "payload": {"Authorization": "Bearer forged"}}], 4403),
        ([{"type": "connection_init"}, {"id": "", "type": "subscribe", "payload": {}}], 4400),
    ],
)
async def test_a_broken_protocol_closes_the_socket_with_its_code(
    service: Service, messages: list[Any], code: int
) -> None:
    """The codes of the protocol, each with a reason."""
    async with open_socket(service) as connection:
        await send(connection, *messages)
        with pytest.raises(ConnectionClosed) as closed:
            await wait_until_closed(connection)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == code
        assert closed.value.rcvd.reason


async def test_open_subscriptions_are_counted_in_the_metrics(service: Service) -> None:
    """While it is open; `complete` ends it."""
    subscription = "subscription { leaderboardChanged { rank } }"
    async with open_socket(service) as connection, httpx.AsyncClient(base_url=service.url) as http:

        async def open_subscriptions() -> str:
            return next(
                line for line in (await http.get("/metrics")).text.splitlines() if line.startswith("ringside_subscr")
            )

        await send(connection, {"type": "connection_init"})
        await receive(connection)
        assert await open_subscriptions() == "ringside_subscriptions 0.0"
        await send(connection, {"id": "1", "type": "subscribe", "payload": {"query": subscription}})
        assert (await receive(connection))["type"] == "next"
        assert await open_subscriptions() == "ringside_subscriptions 1.0"
        await send(connection, {"id": "1", "type": "complete"}, {"type": "ping"})
        while (await receive(connection))["type"] != "pong":
            pass
        assert await open_subscriptions() == "ringside_subscriptions 0.0"


async def test_a_page_of_another_origin_may_not_connect(service: Service) -> None:
    """Its cookies would travel along."""
    with pytest.raises(InvalidStatus):
        async with open_socket(service, origin="https://evil.example"):
            pass


async def test_the_services_own_page_may_connect(service: Service) -> None:
    async with open_socket(service, origin=service.url) as connection:
        await send(connection, {"type": "connection_init"})
        assert (await receive(connection))["type"] == "connection_ack"


async def test_an_altered_cookie_does_not_shut_a_page_out(service: Service) -> None:
    """A socket cannot delete it, so its page is served like one without a cookie; a wrong token is refused as ever."""
    altered = {"cookie": "ringside_visitor=altered"}
    async with open_socket(service, origin=service.url, additional_headers=altered) as connection:
        query = {"query": "{ viewer { __typename } }"}
        await send(connection, {"type": "connection_init"}, {"id": "1", "type": "subscribe", "payload": query})
        assert (await receive(connection))["type"] == "connection_ack"
        assert (await receive(connection))["payload"] == {"data": {"viewer": None}}
    async with open_socket(service, origin=service.url, additional_headers=altered) as connection:
        await send(connection, {"type": "connection_init", "payload": {"Authorization": "Bearer forged"}})
        with pytest.raises(ConnectionClosed):
            await receive(connection)


async def test_the_token_of_connection_init_signs_a_member_in(tmp_path: Path) -> None:
    """And when the service closes, the socket is told so: with 1001 and a reason, unless uvicorn is faster."""
    data = {"RINGSIDE_DATA": str(tmp_path)}
    with running_service(data) as own:
        token = ringside("token", "--user", "ada", "--name", "Ada", **data).stdout.strip()
        async with open_socket(own) as connection:
            await send(connection, {"type": "connection_init", "payload": {"Authorization": f"Bearer {token}"}})
            await send(connection, {"id": "1", "type": "subscribe", "payload": {"query": "{ viewer { name } }"}})
            await receive(connection)
            assert (await receive(connection))["payload"]["data"]["viewer"]["name"] == "Ada"
            await receive(connection)
            own.process.terminate()
            with pytest.raises(ConnectionClosed) as closed:
                await connection.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code in (1001, 1012)
            assert "closes" in closed.value.rcvd.reason or closed.value.rcvd.code == 1012
        assert own.stop() == 0
