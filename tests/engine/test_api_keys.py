"""API keys: how machines sign in, over HTTP, WebSockets and streams, until a key is revoked or expires."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from functools import partial
from time import monotonic
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from websockets.asyncio.client import connect

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Rates, Rejected, Table
from datastore.members.api_keys import id_in, new_secret, revoke_api_key, store_api_key
from datastore.members.suspensions import MemberRoles, set_roles
from resolvers.members import sessions as sessions_module
from resolvers.members.api_keys import issue
from resolvers.requests.context import Role
from server.auth import identification as credentials_module
from server.auth.tokens import mint
from server.settings import Settings
from server.telemetry import Outcome
from tests.api_keys import CREATE_API_KEY, create_api_key
from tests.attack.serving import serving_on_a_socket
from tests.client import Client, pages, serving
from tests.command import ringside
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.erasing import bury
from tests.intercepted import intercepted
from tests.queries import ADD_CONTENDER, CREATE_BOARD, UPDATE_PROFILE, mutation
from tests.service import Service
from tests.sign_in import in_session, with_session
from tests.waiting import LONGEST, until
from tests.websockets import PROTOCOL, closing, receive, send

REVOKE = mutation("revokeApiKey", "ApiKeyRevoked", "apiKey { id name prefix }")
LIST = """
query ($first: Int, $after: String) { apiKeys(first: $first, after: $after) {
  nodes { id name lastUsedAt } pageInfo { hasNextPage endCursor } } }
"""
READ = "{ boards { nodes { slug } } }"
WATCH = 'subscription { commentPosted(product: "p") { id } }'


async def machine(client: Client, *roles: Role, **more: Any) -> Client:
    return Client(client.served, client.settings, (await create_api_key(client, *roles, **more))["secret"])


@contextmanager
def clock_at(client: Client, now: datetime) -> Iterator[None]:
    before, client.services.clock = client.services.clock, lambda: now
    try:
        yield
    finally:
        client.services.clock = before


@asynccontextmanager
async def calls_of(client: Client) -> AsyncIterator[list[str]]:
    """The reads and writes of API keys meanwhile."""
    calls: list[str] = []

    async def call(name: str, send: Any) -> Any:
        calls.extend([name] if "APIKEY" in str(send.keywords) else [])
        return await send()

    with intercepted(client.services.table, ("get_item", "batch_get_item", "query", "update_item"), call):
        yield calls


# ── what a key may do ──


async def test_a_machine_acts_by_the_roles_of_its_key(client: Client) -> None:
    """And is nobody's account: it has no profile, and what needs a member is refused."""
    robot = await machine(client, Role.EDITOR)
    assert await robot.ask("{ viewer { id } }") is None
    board = await robot.ask(CREATE_BOARD, input={"slug": "robots", "title": "Robots"})
    assert board["board"]["slug"] == "robots"
    refused = await robot.ask(UPDATE_PROFILE, input={"name": "Robot"})
    assert (refused["code"], refused["message"]) == (
        "NOT_SIGNED_IN",
        "This needs a signed-in member, which an API key is not.",
    )
    assert await robot.code("{ moderationQueue { nodes { id } } }") == "NOT_ALLOWED"
    assert await robot.code(CREATE_API_KEY, input={"name": "Another", "roles": ["admin"]}) == "NOT_ALLOWED"


async def test_the_idempotency_keys_of_a_machine_are_its_own(client: Client) -> None:
    """A repeat gets the first answer; another machine with the same idempotency key is another caller."""
    first, second = [await machine(client, Role.EDITOR) for _ in range(2)]
    given = {"name": "Zed", "idempotencyKey": "1"}
    added = await first.ask(ADD_CONTENDER, input=given)
    assert await first.ask(ADD_CONTENDER, input=given) == added
    assert await second.code(ADD_CONTENDER, input=given) == "CONFLICT"


async def test_a_key_outlives_the_secrets_that_sign_cookies(one_client: Client, settings: Settings) -> None:
    """It is not signed, so it stays valid when all of RINGSIDE_SECRETS are replaced."""
    secret = (await create_api_key(one_client, Role.ADMIN))["secret"]
    rotated = settings.model_copy(update={"secrets": (SecretStr("another secret that is long enough"),)})
    async with serving(rotated) as visitor:
        assert (await Client(visitor.served, rotated, secret).ask(LIST))["nodes"]


# ── creating ──


async def test_a_key_is_shown_once_and_stored_as_a_hash(client: Client) -> None:
    """Neither its item nor the receipt of its request has the secret; a repeat answers with the key alone."""
    admin = client.member("root", Role.ADMIN)
    given = {
        "name": "  Nightly   import ",
        "roles": ["editor", "moderator", "editor"],
        "days": 30,
        "idempotencyKey": "1",
    }
    answer = await admin.ask(CREATE_API_KEY, input=given)
    key, secret = answer["apiKey"], answer["secret"]
    assert (key["name"], key["roles"], key["lastUsedAt"]) == ("Nightly import", ["moderator", "editor"], None)
    assert secret.startswith(key["prefix"])
    lifetime = datetime.fromisoformat(key["expiresAt"]) - datetime.fromisoformat(key["createdAt"])
    assert lifetime == timedelta(days=30)
    assert await admin.ask(CREATE_API_KEY, input=given) == {"apiKey": key, "secret": None}
    await client.caught_up("every item is scanned")
    items = [item async for item in client.services.table.scan_items(consistent=True)]
    assert sum("APIKEY" in item["pk"]["S"] for item in items) == 1
    assert secret.removeprefix(key["prefix"]) not in json.dumps(items, default=str)


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"roles": []}, "roles"),
        ({"roles": ["root"]}, "roles"),
        ({"roles": ["Editor"]}, "roles"),
        ({"roles": ["editor", ""]}, "roles"),
        ({"name": ""}, "name"),
        ({"name": " \t"}, "name"),
        ({"name": "x" * 81}, "name"),
        ({"name": "a\u202eb"}, "name"),
        ({"days": 0}, "days"),
        ({"days": -1}, "days"),
        ({"days": 3651}, "days"),
        ({"days": 2**31 - 1}, "days"),
    ],
)
async def test_a_key_with_bad_values_is_refused(one_client: Client, wrong: dict[str, Any], path: str) -> None:
    """With the place and the reason, and nothing is stored."""
    admin = one_client.member("root", Role.ADMIN)
    refused = await admin.ask(CREATE_API_KEY, input={"name": "Robot", "roles": ["editor"], **wrong})
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", path])
    assert (await admin.ask(LIST))["nodes"] == []


async def test_a_key_whose_first_attempt_was_stored_is_not_lost(one_table: Table) -> None:
    """If the engine's answer is lost, the repeat finds the key of its own request, and nobody else's."""
    now = datetime.fromisoformat("2026-11-22T04:00:00Z")
    unit, issued = UnitOfWork("root", "1", "hash", now), issue("Robot", ["editor"], None, now)
    await store_api_key(one_table, issued, unit)
    await store_api_key(one_table, issued, unit)
    await store_api_key(one_table, issued, UnitOfWork.unkeyed(now))
    assert len([item async for item in one_table.scan_items(consistent=True) if "APIKEY" in item["pk"]["S"]]) == 1


async def test_who_is_an_admin_no_more_makes_no_key_where_that_is_not_known_yet(client: Client) -> None:
    """By a role or a key that was taken away a moment ago: what they make would be an admin for ever."""
    client.keep_what_it_read()
    eve, services = await in_session(client, "eve", Role.ADMIN), client.services
    secret = (await create_api_key(client, Role.ADMIN))["secret"]
    robot, given = Client(client.served, client.settings, secret), {"name": "Another", "roles": ["admin"]}
    for admin in (eve, robot):
        assert "secret" in await admin.ask(CREATE_API_KEY, input=given)
    await set_roles(services.table, services.unit(), None, MemberRoles(with_session("eve"), ()))
    await revoke_api_key(services.table, id_in(secret) or "", services.unit())
    for admin in (eve, robot):
        assert await admin.code(CREATE_API_KEY, input=given) == "NOT_ALLOWED"


# ── listing ──


async def test_admins_list_keys_newest_first(client: Client) -> None:
    """Page by page, and one by its id; to others a key does not exist."""
    ids = [(await create_api_key(client, Role.EDITOR, name=f"Key {number}"))["apiKey"]["id"] for number in range(5)]
    await client.caught_up("the index lists all keys")
    admin = client.member("root", Role.ADMIN)
    assert {key["id"] for key in await pages(admin, LIST)} == set(ids)
    assert [key["name"] for key in await pages(admin, LIST)] == [f"Key {number}" for number in (4, 3, 2, 1, 0)]
    node = "query ($id: ID!) { node(id: $id) { ... on ApiKey { name } } }"
    assert await admin.ask(node, id=ids[2]) == {"name": "Key 2"}
    editor = client.member("ed", Role.EDITOR)
    assert await editor.ask(node, id=ids[2]) is None
    assert await editor.code(LIST) == "NOT_ALLOWED"
    assert await client.code(LIST) == "NOT_SIGNED_IN"


def _has_written(operations: list[str], times: int) -> bool:
    return operations.count("update_item") == times


async def test_the_last_use_is_stored_once_a_minute_for_all_processes(one_client: Client, settings: Settings) -> None:
    """A hundred uses in two processes are one write; an expired key is not used."""
    answer = await create_api_key(one_client, Role.ADMIN, days=1)
    began = one_client.services.clock()
    async with serving(settings) as other, calls_of(one_client) as mine, calls_of(other) as theirs:
        robots = [Client(client.served, settings, answer["secret"]) for client in (one_client, other)]
        for minutes, expected in ((0, 1), (0.9, 1), (1.1, 2)):
            with clock_at(one_client, began + timedelta(minutes=minutes)), clock_at(other, began):
                for _ in range(20):
                    await robots[0].ask(READ)
                    await asyncio.sleep(0)
                await robots[1].ask(READ)
            await until(partial(_has_written, mine, expected), "the use is written, once")
            assert theirs.count("update_item") <= 1

        async def is_shown() -> bool:
            used = (await robots[0].ask(LIST))["nodes"][0]["lastUsedAt"]
            return used is not None and datetime.fromisoformat(used) == began + timedelta(minutes=1.1)

        await until(is_shown, "the use that was sent to the engine is stored")
        with clock_at(one_client, began + timedelta(days=2)):
            assert (await robots[0].post(READ)).status_code == 401
        await asyncio.sleep(0.2)
        assert mine.count("update_item") == 2


# ── keys that sign nobody in ──


@pytest.mark.usefixtures("quick_checks")
async def test_a_revoked_key_stops_at_once_here_and_soon_elsewhere(one_client: Client, settings: Settings) -> None:
    """With the reason. A second revocation finds nothing, unless it repeats the first."""
    answer = await create_api_key(one_client, Role.EDITOR)
    admin = one_client.member("root", Role.ADMIN)
    async with serving(settings) as other:
        here, there = [Client(client.served, settings, answer["secret"]) for client in (one_client, other)]
        await asyncio.gather(here.ask(READ), there.ask(READ))
        given = {"key": answer["apiKey"]["id"], "idempotencyKey": "1"}
        revoked = await admin.ask(REVOKE, input=given)
        assert revoked["apiKey"]["prefix"] == answer["apiKey"]["prefix"]
        assert await admin.ask(REVOKE, input=given) == revoked
        again = await admin.ask(REVOKE, input={"key": answer["apiKey"]["id"]})
        assert (again["code"], again["path"]) == ("NOT_FOUND", ["input", "key"])
        refused = await here.post(READ)
        assert (refused.status_code, refused.json()["errors"][0]["extensions"]["code"]) == (401, "UNAUTHENTICATED")
        assert "revoked" in refused.json()["errors"][0]["message"]
        await asyncio.sleep(0.4)
        assert (await there.post(READ)).status_code == 401
    assert (await admin.ask(LIST))["nodes"] == []


def test_processes_forget_keys_soon_enough() -> None:
    """What a process remembers and the pause between checks of open sockets are less than a minute together."""
    assert sessions_module.KNOWN_SECONDS + credentials_module.CHECK_SECONDS < 60


async def test_an_expired_key_is_refused(one_client: Client) -> None:
    """From the moment on at which it expires, also if the process knows it."""
    robot = await machine(one_client, Role.EDITOR, days=1)
    await robot.ask(READ)
    with clock_at(one_client, one_client.services.clock() + timedelta(days=1)):
        refused = await robot.post(READ)
    assert refused.status_code == 401
    assert "expired" in refused.json()["errors"][0]["message"]
    assert refused.headers["www-authenticate"].startswith('Bearer error="invalid_token"')


async def test_an_altered_key_costs_no_read(one_client: Client) -> None:
    """A letter changed anywhere, cut, prolonged, in capitals."""
    secret = (await create_api_key(one_client, Role.ADMIN))["secret"]
    changed = [secret[:place] + ("a" if secret[place] != "a" else "b") + secret[place + 1 :] for place in range(4, 53)]
    wrong = [*changed, secret[:-1], secret + "a", "rsk_", "rsk_" + "a" * 4000, secret.upper().replace("RSK", "rsk")]
    async with calls_of(one_client) as calls:
        for altered in wrong:
            assert id_in(altered) is None
            answer = await Client(one_client.served, one_client.settings, altered).post(READ)
            assert answer.status_code == 401
            assert altered not in answer.text or len(altered) < 8
    assert calls == []


async def test_keys_that_were_never_issued_cost_a_bounded_number_of_reads(one_client: Client) -> None:
    """Each is read once; after sixty a minute from one address nothing is read, and keys in use go on."""
    robot = await machine(one_client, Role.EDITOR)
    await robot.ask(READ)
    http, now = one_client.http, monotonic()
    one_client.services.rates = Rates(lambda: now)
    headers = [{"authorization": f"Bearer {new_secret()}"} for _ in range(100)]
    async with calls_of(one_client) as calls:
        for _ in range(3):
            assert (await http.post("/graphql", json={"query": READ}, headers=headers[0])).status_code == 401
        assert calls == ["batch_get_item"]
        answers = [await http.post("/graphql", json={"query": READ}, headers=header) for header in headers]
        assert {answer.status_code for answer in answers} == {401, 503}
        assert answers[-1].status_code == 503
        assert answers[-1].json()["errors"][0]["extensions"]["code"] == "OVERLOADED"
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert calls.count("batch_get_item") <= 60
    one_client.services.cache.clock = lambda: now + 3600.0  # the key in use is looked up again
    await robot.ask(READ)


async def test_a_machine_may_begin_with_many_requests_at_once(one_client: Client) -> None:
    """Also in a process that has just started: only keys that do not exist are limited."""
    secret = (await create_api_key(one_client, Role.EDITOR))["secret"]
    async with serving(one_client.settings) as started:
        robot = Client(started.served, started.settings, secret)
        answers = await asyncio.gather(*(robot.post(READ) for _ in range(100)))
    assert {answer.status_code for answer in answers} == {200}


async def test_a_key_that_cannot_be_looked_up_is_not_called_wrong(one_client: Client) -> None:
    """503, so that the machine tries again, when the table does not answer; the metrics say that, and no overload."""
    secret = (await create_api_key(one_client, Role.EDITOR))["secret"]
    settings = one_client.settings.model_copy(update={"request_timeout": 0.3})
    async with serving(settings) as visitor:
        visitor.services.table.client.batch_get_item = _never
        refused = await Client(visitor.served, settings, secret).post(READ)
        assert await visitor.counted(Outcome.UNAVAILABLE) == 1
    assert (refused.status_code, refused.json()["errors"][0]["extensions"]["code"]) == (503, "UNAVAILABLE")
    assert "cannot be checked right now" in refused.text


async def test_a_rejected_look_up_of_credentials_is_a_fault_that_no_repeat_mends(hasty: Settings) -> None:
    """500, and sockets are closed with 1011, after which clients do not connect again."""
    headers = {"authorization": f"Bearer {new_secret()}"}

    async def reject(*_: Any) -> Any:
        raise Rejected("no such index")

    async with (
        serving_on_a_socket(hasty) as served,
        httpx.AsyncClient(base_url=served.url, headers=headers, timeout=120) as http,
    ):
        table = served.server.lifespan.state["pipeline"].services.table
        with intercepted(table, ("batch_get_item",), reject):
            refused = await http.post("/graphql", json={"query": READ})
            url = served.url.replace("http", "ws") + "/graphql"
            async with connect(url, subprotocols=[PROTOCOL], additional_headers=headers) as connection:
                await send(connection, {"type": "connection_init"})
                closed = await closing(connection)
    assert (refused.status_code, refused.json()["errors"][0]["extensions"]["code"]) == (500, "INTERNAL")
    assert (closed.code, closed.reason[:15]) == (1011, "Internal error:")


async def _never(**_: Any) -> Any:
    await asyncio.Event().wait()


# ── sockets and streams ──


@pytest.fixture
def hasty(default_engine: RunningEngine, one_table: Table) -> Settings:
    """Settings of a service that checks keys and sockets several times a second."""
    return settings_for(default_engine, one_table.name)


@pytest.mark.usefixtures("quick_checks")
async def test_a_revoked_key_ends_its_sockets_and_streams(hasty: Settings) -> None:
    """A key without an expiry too, sent in either form of connectionParams or as a header."""
    async with serving(hasty) as visitor, serving_on_a_socket(hasty) as served:
        answer = await create_api_key(visitor, Role.EDITOR)
        bearer = f"Bearer {answer['secret']}"
        url = served.url.replace("http", "ws") + "/graphql"
        params = ({"Authorization": bearer}, {"headers": {"Authorization": bearer}})
        header = {"accept": "text/event-stream", "authorization": bearer}
        async with (
            connect(url, subprotocols=[PROTOCOL]) as one,
            connect(url, subprotocols=[PROTOCOL]) as two,
            httpx.AsyncClient(base_url=served.url, timeout=120) as http,
        ):
            for connection, payload in zip((one, two), params, strict=True):
                await send(connection, {"type": "connection_init", "payload": payload})
                assert (await receive(connection))["type"] == "connection_ack"
                await send(connection, {"id": "1", "type": "subscribe", "payload": {"query": WATCH}})
            async with http.stream("POST", "/graphql", json={"query": WATCH}, headers=header) as response:
                lines = response.aiter_lines()
                assert await anext(lines) == ":"
                await visitor.member("root", Role.ADMIN).ask(REVOKE, input={"key": answer["apiKey"]["id"]})
                rest = [line async for line in lines]
            for connection in (one, two):
                closed = await closing(connection)
                assert closed.code == 4403
                assert "revoked" in closed.reason
        [event] = [line for line in rest if line.startswith("data: ")]
        [error] = json.loads(event.removeprefix("data: "))["errors"]
        assert error["extensions"]["code"] == "NOT_SIGNED_IN"
        assert error["message"].endswith("It may have been revoked. Ask again with a new token.")


@pytest.mark.usefixtures("quick_checks")
async def test_an_erased_member_s_sockets_and_streams_end(hasty: Settings) -> None:
    """At the next check, though the token is still valid; another member's go on."""
    async with serving(hasty) as visitor, serving_on_a_socket(hasty) as served:
        url = served.url.replace("http", "ws") + "/graphql"
        tokens = [f"Bearer {mint(hasty, user)}" for user in ("eve", "bob")]
        header = {"accept": "text/event-stream", "authorization": tokens[0]}
        async with (
            connect(url, subprotocols=[PROTOCOL]) as one,
            connect(url, subprotocols=[PROTOCOL]) as other,
            httpx.AsyncClient(base_url=served.url, timeout=120) as http,
        ):
            for connection, token in zip((one, other), tokens, strict=True):
                await send(connection, {"type": "connection_init", "payload": {"Authorization": token}})
                assert (await receive(connection))["type"] == "connection_ack"
                await send(connection, {"id": "1", "type": "subscribe", "payload": {"query": WATCH}})
            async with http.stream("POST", "/graphql", json={"query": WATCH}, headers=header) as response:
                lines = response.aiter_lines()
                assert await anext(lines) == ":"
                await bury(visitor.services, "eve")
                rest = [line async for line in lines]
            closed = await closing(one)
            assert (closed.code, closed.reason) == (4403, "Forbidden: This account was erased.")
            await send(other, {"type": "ping"})
            assert (await receive(other))["type"] == "pong"
        assert any("This account was erased." in line for line in rest)


async def test_a_revoked_key_is_refused_though_its_address_asks_for_unknown_ones(one_client: Client) -> None:
    """In the process that revoked it: what keeps unknown keys out must not keep the look for this one out."""
    secret = await create_api_key(one_client, Role.EDITOR)
    robot = Client(one_client.served, one_client.settings, secret["secret"])
    assert (await robot.post(READ)).status_code == 200
    one_client.services.rates = Rates(lambda: 0.0)
    statuses = []
    while 503 not in statuses:
        unknown = Client(one_client.served, one_client.settings, new_secret())
        statuses.append((await unknown.post(READ)).status_code)
    await one_client.member("root", Role.ADMIN).ask(REVOKE, input={"key": secret["apiKey"]["id"]})
    assert (await robot.post(READ)).status_code == 401


async def test_a_wrong_key_opens_no_socket(hasty: Settings) -> None:
    """4403 with the reason."""
    async with (
        serving_on_a_socket(hasty) as served,
        connect(served.url.replace("http", "ws") + "/graphql", subprotocols=[PROTOCOL]) as connection,
    ):
        await send(connection, {"type": "connection_init", "payload": {"Authorization": f"Bearer {new_secret()}"}})
        closed = await closing(connection)
        assert (closed.code, closed.reason[:10]) == (4403, "Forbidden:")


# ── the command line ──


def test_the_first_key_comes_from_the_command_line(service: Service) -> None:
    """Created, listed, used, recorded and revoked while the service runs, although only a provider's tokens count."""
    variables = {**service.variables, "RINGSIDE_JWKS_URL": "http://127.0.0.1:9/jwks", "RINGSIDE_JWT_ISSUER": "x"}
    made = ringside(
        "apikey",
        "create",
        "First",
        "--role",
        "editor",
        "--role",
        "moderator",
        "--role",
        "admin",
        "--days",
        "7",
        **variables,
    )
    secret = made.stdout.strip()
    assert id_in(secret), made.stderr
    asked = httpx.post(
        f"{service.url}/graphql", json={"query": LIST}, headers={"authorization": f"Bearer {secret}"}, timeout=LONGEST
    )
    assert "First" in [key["name"] for key in asked.json()["data"]["apiKeys"]["nodes"]]
    recorded = httpx.post(
        f"{service.url}/graphql",
        json={"query": "{ journal { nodes { kind actor } } }"},
        headers={"authorization": f"Bearer {secret}"},
        timeout=LONGEST,
    )
    assert {"kind": "apiKey.created", "actor": None} in recorded.json()["data"]["journal"]["nodes"]
    listed = ringside("apikey", "list", **variables).stdout
    assert f"{secret[:14]}  First  moderator, editor, admin" in listed
    assert secret not in listed
    assert ringside("apikey", "revoke", secret[:14], **variables).returncode == 0
    again = ringside("apikey", "revoke", secret[:14], **variables)
    assert (again.returncode, "No key begins with" in again.stderr) == (1, True)
    assert secret[:14] not in ringside("apikey", "list", **variables).stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["Robot", "--role", "root"], "'root' is not a role. The roles are member, moderator, editor, admin."),
        (["Robot", "--role", "editor,admin"], "'editor,admin' is not a role."),
        (["", "--role", "editor"], "A key's name has 1 to 80 characters"),
        (["\u200b", "--role", "editor"], "A key's name has 1 to 80 characters"),
        (["Robot", "--role", "editor", "--days", "0"], "A key is valid for 1 to 3650 days."),
        (["Robot"], "Missing option '--role'"),
    ],
)
def test_a_command_with_bad_values_is_refused(service: Service, arguments: list[str], reason: str) -> None:
    """In one sentence, and without a traceback."""
    refused = ringside("apikey", "create", *arguments, **service.variables, COLUMNS="200", NO_COLOR="1")
    assert refused.returncode != 0
    assert reason in refused.stderr
    assert "Traceback" not in refused.stderr
    assert refused.stdout == ""
