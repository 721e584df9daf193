"""Sessions on WebSockets and event streams: where a cookie counts, and what ends with a session."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from datastore.dynamo import Table
from datastore.people.identities import SignInMethod
from datastore.people.profiles import read_profile
from resolvers.members.signing_in import begin_for_page
from resolvers.requests.context import Role
from resolvers.values.node_ids import node_id
from server.settings import Settings
from tests.attack.serving import Served, serving_on_a_socket
from tests.client import Client, serving
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.members import introduce
from tests.queries import SUSPEND
from tests.sign_in import SIGN_OUT, in_session, with_session
from tests.websockets import PROTOCOL, closing, receive, send

pytestmark = pytest.mark.usefixtures("quick_checks")

SHOP = "https://shop.example.com"
WATCH = 'subscription { commentPosted(product: "p") { id } }'
VIEWER = "{ viewer { name } }"
ERASE = """mutation ($user: ID!) { eraseMember(input: { user: $user, contributions: ANONYMISE }) {
  ... on MemberErasure { job { id } } ... on Refused { code message } } }"""


@pytest.fixture
def hasty(default_engine: RunningEngine, one_table: Table) -> Settings:
    """Settings of a service that checks sessions and sockets several times a second."""
    return settings_for(default_engine, one_table.name, cors_origins=(SHOP,))


@pytest.fixture
async def visitor(hasty: Settings) -> AsyncIterator[Client]:
    async with serving(hasty) as visitor:
        yield visitor


@pytest.fixture
async def served(hasty: Settings) -> AsyncIterator[Served]:
    """Another process of the same service."""
    async with serving_on_a_socket(hasty) as served:
        yield served


async def a_session(client: Client, name: str) -> str:
    """The token of a session of the service's own pages."""
    user, services = with_session(name), client.services
    await introduce(services.table, user, name=name.title())
    member = await read_profile(services.table, user)
    assert member is not None
    return (await begin_for_page(services, member, SignInMethod.EMAIL))[1]


def socket_of(served: Served, **headers: str) -> Any:
    url = served.url.replace("http", "ws") + "/graphql"
    return connect(url, subprotocols=[PROTOCOL], additional_headers=headers)


async def test_a_cookie_counts_on_sockets_of_the_service_s_own_pages_alone(visitor: Client, served: Served) -> None:
    """A listed site's page, and whoever names no origin, is a visitor; on every other page there is no socket."""
    cookie = f"ringside_session={await a_session(visitor, 'ada')}"
    for headers, viewer in (
        ({"origin": served.url}, {"name": "Ada"}),
        ({"origin": SHOP}, None),
        ({}, None),
        ({"sec-fetch-site": "same-origin"}, None),
    ):
        async with socket_of(served, cookie=cookie, **headers) as connection:
            await send(connection, {"type": "connection_init"})
            assert (await receive(connection))["type"] == "connection_ack"
            await send(connection, {"id": "1", "type": "subscribe", "payload": {"query": VIEWER}})
            assert (await receive(connection))["payload"]["data"] == {"viewer": viewer}, headers


@pytest.mark.parametrize("ending", ["signed out", "suspended", "erased"])
async def test_sockets_and_streams_end_with_the_session(visitor: Client, served: Served, ending: str) -> None:
    """On every process, by a cookie and by a token; another session of the member's goes on if one alone was ended."""
    token, other = [await a_session(visitor, "ada") for _ in range(2)]
    user = node_id("User", with_session("ada"))
    moderator = visitor.member("mia", Role.MODERATOR, Role.ADMIN)
    ada = Client(visitor.served, visitor.settings, token)
    bearer, own = {"authorization": f"Bearer {token}"}, {"cookie": f"ringside_session={token}", "origin": served.url}
    async with (
        socket_of(served, **own) as by_cookie,
        socket_of(served, **bearer) as by_token,
        socket_of(served, authorization=f"Bearer {other}") as of_another,
        httpx.AsyncClient(base_url=served.url, timeout=60) as http,
    ):
        for connection in (by_cookie, by_token, of_another):
            await send(connection, {"type": "connection_init"})
            assert (await receive(connection))["type"] == "connection_ack"
            await send(connection, {"id": "1", "type": "subscribe", "payload": {"query": WATCH}})
        stream = http.stream(
            "POST", "/graphql", json={"query": WATCH}, headers={"accept": "text/event-stream", **bearer}
        )
        async with stream as response:
            lines = response.aiter_lines()
            assert await anext(lines) == ":"
            match ending:
                case "signed out":
                    assert await ada.ask(SIGN_OUT, input={}) == {"signedOut": True}
                case "suspended":
                    await moderator.ask(SUSPEND, input={"user": user, "reason": "Insults"})
                case _:
                    assert "job" in await ada.ask(ERASE, user=user)
            [event] = [line async for line in lines if line.startswith("data: ")]
        for connection in (by_cookie, by_token):
            closed = await closing(connection)
            assert (closed.code, "has ended" in closed.reason) == (4403, True)
        if ending == "signed out":
            await send(of_another, {"id": "2", "type": "subscribe", "payload": {"query": VIEWER}})
            assert (await receive(of_another))["payload"]["data"] == {"viewer": {"name": "Ada"}}
    [error] = json.loads(event.removeprefix("data: "))["errors"]
    assert error["extensions"]["code"] == "NOT_SIGNED_IN"
    assert error["message"].endswith(". Ask again with a new token.")


async def test_a_stream_of_a_member_whose_rights_change_asks_for_no_other_token(
    visitor: Client, served: Served
) -> None:
    """The one that it began with still signs them in."""
    ada = await in_session(visitor, "ada")
    bearer = {"authorization": ada.http.headers["authorization"]}
    async with httpx.AsyncClient(base_url=served.url, timeout=60, headers=bearer) as http:
        stream = http.stream("POST", "/graphql", json={"query": WATCH}, headers={"accept": "text/event-stream"})
        async with stream as response:
            lines = response.aiter_lines()
            assert await anext(lines) == ":"
            await in_session(visitor, "ada", Role.MODERATOR)
            [event] = [line async for line in lines if line.startswith("data: ")]
        assert (await http.post("/graphql", json={"query": VIEWER})).json() == {"data": {"viewer": {"name": "Ada"}}}
    [error] = json.loads(event.removeprefix("data: "))["errors"]
    assert error["message"] == "The stream ended: the token's rights have changed. Ask again."
