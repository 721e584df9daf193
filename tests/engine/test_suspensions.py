"""Suspensions: writes are refused with the reason, reading works, and every process and open socket notices."""

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any

import httpx
import orjson
import pytest

from datastore.dynamo import StorageFailed, iso
from datastore.members.sessions import read_sessions_of
from datastore.members.suspensions import SUSPENSION
from datastore.people.identities import IDENTITY
from resolvers.members.suspensions import Suspensions
from resolvers.requests.context import Role, utc_now
from resolvers.values.node_ids import node_id
from tests.attack.serving import serving_on_a_socket
from tests.client import Client, serving
from tests.comments import post
from tests.erasing import ERASE, EXPORT
from tests.intercepted import beforehand, intercepted
from tests.jobs import ended
from tests.queries import POST_COMMENT, REINSTATE, SUSPEND, UPDATE_PROFILE, mutation
from tests.sign_in import in_session, with_session
from tests.waiting import until
from tests.websockets import open_socket, receive, send

ADA = node_id("User", "ada")
SET_ROLES = mutation("setRoles", "RolesSet", "user { roles }")
COMMENT = {"product": "42", "language": "en", "rating": 5, "body": "Well made."}


def moderator(client: Client) -> Client:
    return client.member("mia", Role.MODERATOR)


async def refusal(client: Client) -> dict[str, Any] | None:
    """Why the member may not post; None if they may."""
    answer = await client.ask(POST_COMMENT, input=COMMENT)
    return None if "comment" in answer else dict(answer)


async def test_a_suspended_member_reads_and_does_not_write(client: Client) -> None:
    """They learn the reason and how long it lasts; reinstated, they write again."""
    ada, until = client.member("ada"), utc_now() + timedelta(hours=2)
    comment = await post(ada)
    wanted = {"user": ADA, "until": iso(until), "reason": "Spam in  ten threads"}
    suspended = await moderator(client).ask(SUSPEND, input=wanted)
    assert suspended["user"]["suspension"]["until"] == iso(until)
    refused = await refusal(ada)
    assert refused is not None
    assert (refused["code"], refused["path"]) == ("NOT_ALLOWED", ["viewer", "suspension"])
    assert "Spam in ten threads" in refused["message"]
    assert 7100 < refused["retryAfterSeconds"] <= 7200
    assert await ada.ask("query ($id: ID!) { comment(id: $id) { body } }", id=comment["id"]) == {"body": "Well made."}
    assert (await ada.ask("{ viewer { suspension { reason } } }"))["suspension"] == {"reason": "Spam in ten threads"}
    assert await client.ask(f'{{ user(id: "{ADA}") {{ suspension {{ reason }} }} }}') == {"suspension": None}
    reinstated = await moderator(client).ask(REINSTATE, input={"user": ADA})
    assert reinstated["user"]["suspension"] is None
    assert await refusal(ada) is None


async def test_a_suspension_ends_by_itself_or_lasts(one_client: Client) -> None:
    """Also while the engine has not removed its item; without an end a repeat may not help."""
    ada, services, now = one_client.member("ada"), one_client.services, utc_now()
    await post(ada)
    wanted = {"user": ADA, "until": iso(now + timedelta(minutes=1)), "reason": "Spam"}
    await moderator(one_client).ask(SUSPEND, input=wanted)
    assert await refusal(ada)
    services.clock = lambda: now + timedelta(minutes=2)
    assert await moderator(one_client).code(REINSTATE, input={"user": ADA}) == "CONFLICT"
    assert await refusal(ada) is None
    assert (await ada.ask("{ viewer { suspension { reason } } }"))["suspension"] is None
    await moderator(one_client).ask(SUSPEND, input={"user": ADA, "reason": "Spam again"})
    refused = await refusal(ada)
    assert refused is not None
    assert refused["retryAfterSeconds"] is None
    assert [item.until async for item in services.table.scan(SUSPENSION)] == [None]


async def test_a_changed_suspension_began_when_the_member_was_suspended(one_client: Client) -> None:
    """Another reason or end does not begin it anew. A suspension after one that has ended is another one."""
    await one_client.member("ada").ask("{ viewer { id } }")
    start, mia = utc_now(), moderator(one_client)
    now = start
    one_client.services.clock = lambda: now
    for hours, last, began in ((0, 3, 0), (2, 4, 0), (5, None, 5), (6, 9, 5)):
        now = start + timedelta(hours=hours)
        end = None if last is None else iso(start + timedelta(hours=last))
        answer = await mia.ask(SUSPEND, input={"user": ADA, "reason": f"After {hours} hours", "until": end})
        expected = {"until": end, "reason": f"After {hours} hours", "at": iso(start + timedelta(hours=began))}
        assert answer["user"]["suspension"] == expected


async def test_a_suspended_member_fetches_and_erases_their_own_data(client: Client) -> None:
    """Theirs alone, and nothing else is written for them, before and after."""
    ada, bob = client.member("ada"), node_id("User", "bob")
    await post(ada)
    await client.member("bob").ask(UPDATE_PROFILE, input={"name": "Bob"})
    await moderator(client).ask(SUSPEND, input={"user": ADA, "reason": "Spam"})
    exported = await ada.ask(EXPORT, input={"user": ADA, "idempotencyKey": "export"})
    assert (await ended(ada, exported["job"]["id"]))["state"] == "DONE"
    lines = [orjson.loads(line) for line in (await client.http.get(exported["url"])).text.splitlines()]
    assert {"comment", "suspension"} <= {line["kind"] for line in lines}
    assert await ada.code(EXPORT, input={"user": bob}) == "NOT_ALLOWED"
    assert await ada.code(ERASE, input={"user": bob, "contributions": "REMOVE"}) == "NOT_ALLOWED"
    assert await ada.code(UPDATE_PROFILE, input={"name": "Eda"}) == "NOT_ALLOWED"
    assert await refusal(ada)
    erased = await ada.ask(ERASE, input={"user": ADA, "contributions": "REMOVE"})
    job = await ended(client.member("root", Role.ADMIN), erased["job"]["id"])
    assert (job["state"], job["message"]) == ("DONE", "The member is erased; contributions removed: 1.")
    assert (await ada.post("{ viewer { id } }")).status_code == 401


@pytest.mark.parametrize(("suspended", "refused"), [(1, 30), (100, 100), (None, 3653)])
async def test_an_erasure_does_not_end_a_suspension(one_client: Client, suspended: int | None, refused: int) -> None:
    """Its record is deleted; they are refused until it would have ended, or for ten years."""
    ada, services, now = one_client.member("ada"), one_client.services, utc_now()
    await post(ada)
    until = {} if suspended is None else {"until": iso(now + timedelta(days=suspended))}
    await moderator(one_client).ask(SUSPEND, input={"user": ADA, "reason": "Spam", **until})
    admin = one_client.member("root", Role.ADMIN)
    erased = await admin.ask(ERASE, input={"user": ADA, "contributions": "REMOVE"})
    assert (await ended(admin, erased["job"]["id"]))["state"] == "DONE"
    assert [item async for item in services.table.scan(SUSPENSION, consistent=True)] == []
    [identity] = [one async for one in services.table.scan(IDENTITY, consistent=True) if one.user is None]
    assert identity.expires is not None
    assert abs(identity.expires - now - timedelta(days=refused)) < timedelta(minutes=1)


async def test_every_process_notices(one_client: Client) -> None:
    """Another process refuses after it has read them next, and goes on with what it knows when the table is silent."""
    async with serving(one_client.settings) as elsewhere:
        ada = elsewhere.member("ada")
        assert await refusal(ada) is None
        await moderator(one_client).ask(SUSPEND, input={"user": ADA, "reason": "Spam"})
        await until(partial(refusal, ada), "the other process has read the suspension", pause=0.5)
        await moderator(one_client).ask(REINSTATE, input={"user": ADA})
        await elsewhere.services.get(Suspensions).refresh()
        assert await refusal(ada) is None


async def test_a_process_that_has_just_started_knows_who_is_suspended(one_client: Client) -> None:
    """However long it takes to read them: until then nobody is let in."""
    await post(one_client.member("ada"))
    await moderator(one_client).ask(SUSPEND, input={"user": ADA, "reason": "Spam"})

    async def slowly(_: str, send: Any) -> Any:
        if "RIGHTS" in str(send.keywords):
            await asyncio.sleep(1)
        return await send()

    with intercepted(one_client.services.table, ("query",), slowly):
        async with serving(one_client.settings, one_client.services.table) as started:
            assert await refusal(started.member("ada")) is not None


async def test_a_look_that_overlaps_a_change_forgets_nothing(one_client: Client) -> None:
    """What the process has just written is known at once, and stays known when a read ends that began before it."""
    known, ada = one_client.services.get(Suspensions), one_client.member("ada")
    await post(ada)
    begun, changed = asyncio.Event(), asyncio.Event()

    async def read_before_the_change(_: str, send: Any) -> Any:
        found = await send()
        if "RIGHTS" in str(send.keywords):
            begun.set()
            await changed.wait()
        return found

    for query, given, is_refused in ((SUSPEND, {"reason": "Spam"}, True), (REINSTATE, {}, False)):
        begun.clear()
        changed.clear()
        with intercepted(one_client.services.table, ("query",), read_before_the_change):
            looking = asyncio.create_task(known.refresh())
            await begun.wait()
        assert "user" in await moderator(one_client).ask(query, input={"user": ADA, **given})
        assert (await refusal(ada) is not None) is is_refused
        changed.set()
        await looking
        assert (await refusal(ada) is not None) is is_refused


async def test_who_cannot_be_suspended(client: Client) -> None:
    """Admins, oneself, and nobody; and nothing is half done."""
    admin, mia = client.member("root", Role.ADMIN), moderator(client)
    await admin.ask(UPDATE_PROFILE, input={"name": "Root"})
    await mia.ask(UPDATE_PROFILE, input={"name": "Mia"})
    await post(client.member("ada"))
    root = node_id("User", "root")
    assert await mia.code(SUSPEND, input={"user": root, "reason": "Coup"}) == "NOT_ALLOWED"
    assert await mia.code(SUSPEND, input={"user": node_id("User", "mia"), "reason": "x"}) == "NOT_ALLOWED"
    assert await mia.code(REINSTATE, input={"user": node_id("User", "mia")}) == "NOT_ALLOWED"
    assert await mia.code(SUSPEND, input={"user": node_id("User", "nobody"), "reason": "x"}) == "NOT_FOUND"
    assert await mia.code(SUSPEND, input={"user": node_id("Board", "main"), "reason": "x"}) == "INVALID_INPUT"
    assert await mia.code(REINSTATE, input={"user": ADA}) == "CONFLICT"
    for reason in (" ", "x" * 501, "a\u202eb", "\u200b", "a" + "\u0301" * 499):
        assert await mia.code(SUSPEND, input={"user": ADA, "reason": reason}) == "INVALID_INPUT"
    for end in (utc_now() - timedelta(minutes=1), utc_now() + timedelta(days=5000)):
        assert await mia.code(SUSPEND, input={"user": ADA, "reason": "x", "until": iso(end)}) == "INVALID_INPUT"
    assert await client.member("bob").code(SUSPEND, input={"user": ADA, "reason": "x"}) == "NOT_ALLOWED"
    assert await client.code(SUSPEND, input={"user": ADA, "reason": "x"}) == "NOT_SIGNED_IN"
    assert [item async for item in client.services.table.scan(SUSPENSION, consistent=True)] == []


async def test_a_suspension_may_end_on_this_day_in_ten_years(one_client: Client) -> None:
    """Two or three of them are leap years."""
    await post(one_client.member("ada"))
    end = iso(utc_now() + timedelta(days=10 * 365 + 2))
    suspended = await moderator(one_client).ask(SUSPEND, input={"user": ADA, "reason": "Spam", "until": end})
    assert suspended["user"]["suspension"]["until"] == end


async def test_who_is_an_admin_no_more_can_be_suspended_and_erased(one_client: Client) -> None:
    """Although they have just written as one: the table gave them the role, and it was taken away there."""
    root, eve = [await in_session(one_client, name, Role.ADMIN) for name in ("root", "eve")]
    user = node_id("User", with_session("eve"))
    await eve.ask(UPDATE_PROFILE, input={"name": "Eve"})
    assert await root.code(SUSPEND, input={"user": user, "reason": "Coup"}) == "NOT_ALLOWED"
    await root.ask(SET_ROLES, input={"user": user, "roles": []})
    assert (await root.ask(SUSPEND, input={"user": user, "reason": "Coup"}))["user"]["suspension"]
    assert "job" in await root.ask(ERASE, input={"user": user, "contributions": "REMOVE"})


@pytest.mark.parametrize("by_token", [False, True], ids=["session", "token"])
async def test_an_open_socket_makes_nobody_an_admin_who_is_one_no_more(one_client: Client, *, by_token: bool) -> None:
    """It keeps the roles that it began with until its next check, and who is noted as an admin is for months."""
    root, eve = [await in_session(one_client, name, Role.ADMIN) for name in ("root", "eve")]
    user, bearer = with_session("eve"), one_client.member(with_session("eve")) if by_token else eve
    headers = {"authorization": bearer.http.headers["authorization"]}
    async with (
        serving_on_a_socket(one_client.settings) as served,
        httpx.AsyncClient(base_url=served.url, headers=root.http.headers, timeout=120) as root.http,
        open_socket(served, additional_headers=headers) as connection,
    ):
        await send(connection, {"type": "connection_init"})
        assert (await receive(connection))["type"] == "connection_ack"
        await root.ask(SET_ROLES, input={"user": node_id("User", user), "roles": []})
        payload = {"query": UPDATE_PROFILE, "variables": {"input": {"name": "Eve the second"}}}
        await send(connection, {"id": "1", "type": "subscribe", "payload": payload})
        assert "user" in (await receive(connection))["payload"]["data"]["updateProfile"]
        wanted = {"user": node_id("User", user), "reason": "Coup"}
        assert (await root.ask(SUSPEND, input=wanted))["user"]["suspension"]


async def test_a_suspension_that_failed_half_way_ends_the_sessions_when_it_is_repeated(one_client: Client) -> None:
    """With the same key, as its refusal asks."""
    await in_session(one_client, "eve")
    wanted = {"user": node_id("User", with_session("eve")), "reason": "Spam", "idempotencyKey": "k"}

    async def fail() -> None:
        raise StorageFailed("the disk is full")

    with beforehand(one_client.services.table, fail, "batch_write_item", about="SESSION#") as failed:
        assert await moderator(one_client).code(SUSPEND, input=wanted) == "UNAVAILABLE"
    assert failed
    assert "user" in await moderator(one_client).ask(SUSPEND, input=wanted)
    assert await read_sessions_of(one_client.services.table, with_session("eve")) == []
