"""Subscriptions' sockets: graphql-transport-ws against the running service."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from itertools import count, islice
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus

from server.http.websocket import MOST_BEFORE_INIT
from tests.service import Service, running_service
from tests.waiting import until
from tests.websockets import closing, open_socket, receive, send

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
        closed = await closing(connection)
        assert closed.code == code
        assert closed.reason


async def test_open_subscriptions_are_counted_in_the_metrics(service: Service) -> None:
    """While it is open; `complete` ends it."""
    subscription = "subscription { leaderboardChanged { rank } }"
    async with open_socket(service) as connection, httpx.AsyncClient(base_url=service.url, timeout=60) as http:

        async def counted(number: int) -> None:
            async def is_told() -> bool:
                return f"ringside_subscriptions {number}.0" in (await http.get("/metrics")).text.splitlines()

            await until(is_told, f"{number} are open, when those of other tests have ended")

        await send(connection, {"type": "connection_init"})
        await receive(connection)
        await counted(0)
        await send(connection, {"id": "1", "type": "subscribe", "payload": {"query": subscription}})
        assert (await receive(connection))["type"] == "next"
        await counted(1)
        await send(connection, {"id": "1", "type": "complete"}, {"type": "ping"})
        while (await receive(connection))["type"] != "pong":
            pass
        await counted(0)


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
    """And when the service closes, the socket is told so, with 1001 and a reason."""
    data = {"RINGSIDE_DATA": str(tmp_path)}
    with running_service(data) as own:
        token = own.token("ada", "--name", "Ada")
        async with open_socket(own) as connection:
            await sign_in(connection, token)
            await send(connection, {"id": "1", "type": "subscribe", "payload": {"query": "{ viewer { name } }"}})
            assert (await receive(connection))["payload"]["data"]["viewer"]["name"] == "Ada"
            await receive(connection)
            own.process.terminate()
            with pytest.raises(ConnectionClosed) as closed:
                await connection.recv()
            assert_going_away(closed.value)
        assert own.stop() == 0


async def sign_in(connection: ClientConnection, token: str) -> None:
    await send(connection, {"type": "connection_init", "payload": {"Authorization": f"Bearer {token}"}})
    assert (await receive(connection))["type"] == "connection_ack"


def assert_going_away(closed: ConnectionClosed) -> None:
    assert closed.rcvd is not None
    assert (closed.rcvd.code, "closes" in closed.rcvd.reason) == (1001, True)


POST = """
mutation ($number: String!) {
  postComment(input: {product: "42", body: $number, language: "en", rating: 5}) { __typename }
}
"""


async def test_a_socket_is_answered_what_it_has_begun_when_the_service_stops(tmp_path: Path) -> None:
    """Every comment that is there was acknowledged, and what came too late was not carried out."""
    data = {"RINGSIDE_DATA": str(tmp_path), "RINGSIDE_COMMENT_RATE": "1000/second"}
    acknowledged = set[str]()
    async with AsyncExitStack() as stack:
        own = stack.enter_context(running_service(data))
        token = own.token("ada")  # before a socket is opened, whose time to be initialised is short
        sockets = [await stack.enter_async_context(open_socket(own)) for _ in range(4)]
        for connection in sockets:
            await sign_in(connection, token)

        async def post(name: int, connection: ClientConnection) -> None:
            """Ten at once, and another one after each answer, until the socket is closed."""
            numbers = count()
            for number in islice(numbers, 10):
                await post_one(connection, f"{name}-{number}")
            while True:
                message = await receive(connection)
                if message["type"] == "next":
                    assert message["payload"]["data"]["postComment"]["__typename"] == "CommentPosted"
                    acknowledged.add(message["id"])
                    with suppress(ConnectionClosed):  # answers that came before may still be unread
                        await post_one(connection, f"{name}-{next(numbers)}")

        async def post_until_closed(name: int, connection: ClientConnection) -> None:
            with pytest.raises(ConnectionClosed) as closed:
                await post(name, connection)
            assert_going_away(closed.value)

        async def stop() -> None:
            await until(lambda: len(acknowledged) >= 100, "a hundred posts are acknowledged", pause=0.001)
            own.process.terminate()

        await asyncio.gather(stop(), *(post_until_closed(name, connection) for name, connection in enumerate(sockets)))
        assert own.stop() == 0
    with running_service(data) as again, httpx.Client(base_url=again.url, timeout=60) as http:
        assert set(posted(http)) == acknowledged


async def post_one(connection: ClientConnection, number: str) -> None:
    payload = {"query": POST, "variables": {"number": number}}
    await send(connection, {"id": number, "type": "subscribe", "payload": payload})


def posted(http: httpx.Client) -> Iterator[str]:
    """The bodies of all comments."""
    query = """query ($after: String) { comments(product: "42", first: 100, after: $after) {
        nodes { body } pageInfo { hasNextPage endCursor } } }"""
    after, more = None, True
    while more:
        answer = http.post("/graphql", json={"query": query, "variables": {"after": after}}).json()
        page = answer["data"]["comments"]
        yield from (node["body"] for node in page["nodes"])
        after, more = page["pageInfo"]["endCursor"], page["pageInfo"]["hasNextPage"]


async def test_a_subscription_over_a_socket_is_not_complete_when_the_service_stops(tmp_path: Path) -> None:
    """A client would take `complete` for the end of its subscription, and not subscribe again."""
    with running_service({"RINGSIDE_DATA": str(tmp_path)}) as own:
        async with open_socket(own) as connection:
            await send(connection, {"type": "connection_init"})
            assert (await receive(connection))["type"] == "connection_ack"
            watch = {"query": "subscription { commentPosted(product: 1) { id } }"}
            await send(connection, {"id": "1", "type": "subscribe", "payload": watch}, {"type": "ping"})
            assert (await receive(connection))["type"] == "pong"
            own.process.terminate()
            with pytest.raises(ConnectionClosed) as closed:
                await receive(connection)
            assert_going_away(closed.value)
        assert own.stop() == 0
