"""Tombstones: nothing is written for or about an erased member, in the transaction that would write it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import date, timedelta
from functools import partial
from typing import Any

import orjson
import pytest

from datastore.changes.unit_of_work import AlreadyAnswered, MemberErased, Tombstones, UnitOfWork, delete_receipts
from datastore.members import suspensions as suspension_store
from datastore.people import profiles as profile_store
from datastore.people.profiles import Profile
from datastore.values.seal import Seal
from datastore.vocabulary.subscriptions import DAILY_EMAILS, Mail
from datastore.voting import voiding
from resolvers.jobs.running import JobRunner
from resolvers.pickem.scoring import SCORE_EVENT as SCORING
from resolvers.pickem.scoring import UNSCORE_EVENT as UNSCORING
from resolvers.pickem.scoring import begin_scoring, begin_unscoring, event_job
from resolvers.requests.context import Role, Services, utc_now
from resolvers.values.node_ids import node_id, parse_node_key
from tests.client import Client
from tests.erasing import bury
from tests.queries import (
    CAST_VOTE,
    DRAW_MATCHUP,
    LOCK_EVENT,
    POST_COMMENT,
    RECORD_QUIZ,
    REMOVE_MATCH,
    SCORE_EVENT,
    SUBMIT_PREDICTION,
    UNSCORE_EVENT,
    UPDATE_EVENT,
    UPDATE_MATCH,
    UPDATE_PROFILE,
    WRITE_SENTENCE,
)
from tests.season import EventEditor, in_hours, submit, teams
from tests.two_worlds import Site

SUSPEND = """mutation ($input: SuspendMemberInput!) { suspendMember(input: $input) {
  ... on MemberSuspended { user { id } } ... on Refused { code message } } }"""
EVE = node_id("User", "eve")
MESSAGE = "This account is erased: nothing can be written for it or about it any more."


async def test_nothing_is_written_for_an_erased_member(client: Client) -> None:
    """Each kind of contribution, by a token that is still valid; a visitor and another member go on."""
    site, eve = Site(client), client.member("eve")
    await site.prepare()
    await site.contribute("eve", 1)
    ballot = await eve.ask(DRAW_MATCHUP)
    await bury(client.services, "eve")
    before = await _items(client.services)
    picks = [{"match": match, "team": 1} for match in site.matches[site.open]]
    refused = [
        await eve.ask(UPDATE_PROFILE, input={"name": "Eva"}),
        await eve.ask(CAST_VOTE, token=ballot["token"], verdict="LEFT"),
        await eve.ask(SUBMIT_PREDICTION, input={"event": site.open, "picks": picks}),
        await eve.ask(POST_COMMENT, input={"product": "mug", "language": "en", "rating": 1, "body": "No."}),
        await eve.ask(RECORD_QUIZ, input={"list": site.list, "correct": 1, "total": 1, "idempotencyKey": "quiz"}),
        await eve.ask(WRITE_SENTENCE, input={"text": "No."}),
    ]
    assert [(answer.get("code"), answer.get("message")) for answer in refused] == [("NOT_ALLOWED", MESSAGE)] * 6
    assert await _items(client.services) == before
    for other in (client, client.member("bob")):
        ballot = await other.ask(DRAW_MATCHUP)
        assert "code" not in await other.ask(CAST_VOTE, token=ballot["token"], verdict="LEFT")


async def _items(services: Services) -> list[str]:
    """Every item that names eve."""
    return [item for item in await _every_item(services) if "eve" in item]


async def _every_item(services: Services) -> list[str]:
    every = [item async for item in services.table.scan_items(consistent=True)]
    return sorted(orjson.dumps(item, option=orjson.OPT_SORT_KEYS, default=repr).decode() for item in every)


async def test_nothing_is_written_about_an_erased_member(one_client: Client) -> None:
    """A moderator who has read their profile suspends nobody."""
    await one_client.member("eve").ask(UPDATE_PROFILE, input={"name": "Eve"})
    await bury(one_client.services, "eve")
    moderator = one_client.member("mia", Role.MODERATOR)
    answer = await moderator.ask(SUSPEND, input={"user": EVE, "reason": "Spam", "idempotencyKey": "1"})
    assert answer == {"code": "NOT_ALLOWED", "message": MESSAGE}
    assert await suspension_store.read_every_suspension(one_client.services.table) == {}


async def test_an_erased_editor_changes_no_event(client: Client) -> None:
    """Not even the first of several steps is done, after which anyone would finish the change."""
    editor = EventEditor(client)
    event, [match] = await editor.card(10)
    three = (await editor.match(event, "A", "B", "C"))["id"]
    await bury(client.services, "editor")
    before = await _every_item(client.services)
    refused = [
        await editor.client.ask(LOCK_EVENT, input={"event": event}),
        await editor.client.ask(UPDATE_EVENT, input={"event": event, "cancelled": True}),
        await editor.client.ask(UPDATE_EVENT, input={"event": event, "startsAt": in_hours(1)}),
        await editor.client.ask(REMOVE_MATCH, input={"match": match}),
        await editor.client.ask(UPDATE_MATCH, input={"match": three, "teams": teams("A", "B")}),
    ]
    assert [(answer.get("code"), answer.get("message")) for answer in refused] == [("NOT_ALLOWED", MESSAGE)] * 5
    assert await _every_item(client.services) == before
    await submit(client.member("ada"), event, [(match, 0), (three, 2)])


@pytest.mark.parametrize("is_begun", [False, True])
async def test_an_erased_editor_neither_gives_points_nor_takes_them_back(client: Client, *, is_begun: bool) -> None:
    """Nor do they go on with what another editor has begun; other editors do."""
    editor, services = EventEditor(client), client.services
    events = [await _decided_event(editor) for _ in range(2)]
    await editor.score(events[1])
    if is_begun:
        services.get(JobRunner)._kinds = {}  # this process goes on with none by itself
        for kind, event, begin in (
            (SCORING, events[0], partial(begin_scoring, confirm_missing=False)),
            (UNSCORING, events[1], begin_unscoring),
        ):
            await begin(services, event_job(services, kind, parse_node_key("Event", event), actor=None))
    await bury(services, "editor")
    before = await _every_item(services)
    refused = [
        await editor.client.ask(SCORE_EVENT, input={"event": events[0]}),
        await editor.client.ask(UNSCORE_EVENT, input={"event": events[1]}),
    ]
    assert [answer.get("code") for answer in refused] == ["NOT_ALLOWED"] * 2
    assert await _every_item(services) == before
    other = client.member("other", Role.EDITOR)
    assert (await other.ask(SCORE_EVENT, input={"event": events[0]}))["predictionsScored"] == 1
    assert (await other.ask(UNSCORE_EVENT, input={"event": events[1]}))["event"]["state"] == "LOCKED"


async def _decided_event(editor: EventEditor) -> str:
    event, [match] = await editor.card(10)
    await submit(editor.visitor.member("ada"), event, [(match, 0)])
    await editor.lock(event)
    await editor.result(match, 0)
    return event


Write = Callable[[Services, UnitOfWork], Awaitable[Any]]
BESIDE_MUTATIONS: dict[str, Write] = {
    "profile": lambda services, unit: profile_store.create_profile(
        services.table, Profile("eve", "Eve", services.clock()), unit
    ),
    "admin": lambda services, unit: suspension_store.note_admin(services.table, "eve", unit),
    "origin": lambda services, unit: voiding.remember_origin(
        services.table, "eve", "main", "feed", date(2026, 1, 1), unit
    ),
    "mail": lambda services, unit: DAILY_EMAILS.begin(
        services.table, Mail("eve", date(2026, 1, 1), services.clock()), unit
    ),
}


@pytest.mark.parametrize("kind", BESIDE_MUTATIONS)
async def test_what_is_written_beside_a_mutation_is_refused_too(one_client: Client, kind: str) -> None:
    """By a request of the member's and by the daily run alike."""
    services = one_client.services
    await bury(services, "eve")
    for actor in (None, "User:eve"):
        with pytest.raises(MemberErased):
            await BESIDE_MUTATIONS[kind](services, services.unit(actor))
    assert [item async for item in services.table.scan_items(consistent=True) if "eve" in str(item)] == []
    await BESIDE_MUTATIONS[kind](services, UnitOfWork.unkeyed(utc_now()))
    assert [item async for item in services.table.scan_items(consistent=True) if "eve" in str(item)]


async def test_a_tombstone_holds_until_it_expires(one_client: Client) -> None:
    """The engine removes it late; it counts no longer by then."""
    services = one_client.services
    await bury(services, "eve", lasts=timedelta(seconds=60))
    assert await services.tombstones.read(services.table, "eve", services.clock())
    services.clock = lambda: utc_now() + timedelta(seconds=61)
    assert not await services.tombstones.read(services.table, "eve", services.clock())
    answer = await one_client.member("eve").ask(UPDATE_PROFILE, input={"name": "Eve again"})
    assert answer["user"]["name"] == "Eve again"


async def test_a_tombstone_holds_through_a_rotation_of_secrets(one_client: Client) -> None:
    """Processes with the old secret, with both, and then with the new one know it; none contains the id."""
    table, now = one_client.services.table, utc_now()
    old, both, new = (Tombstones(Seal(secrets)) for secrets in (["old"], ["new", "old"], ["new"]))
    await table.transact(*old.puts("eve", now + timedelta(days=1), "job", now))
    assert await both.read(table, "eve", now)
    await table.transact(*both.puts("bob", now + timedelta(days=1), "job", now))
    assert await old.read(table, "bob", now)
    assert await new.read(table, "bob", now)
    for tombstones in (old, both, new):
        assert not await tombstones.read(table, "ada", now)
    assert not [item async for item in table.scan_items(consistent=True) if "eve" in str(item) or "bob" in str(item)]


async def test_a_repeated_request_finds_its_receipt(one_client: Client) -> None:
    """The checks come after the receipt, whose place in the transaction tells a repeat."""
    services = one_client.services
    profile = Profile("ada", "Ada", services.clock())
    unit = UnitOfWork("ada", "key", "hash", services.clock(), services.journal, "User:ada", services.tombstones)
    await profile_store.create_profile(services.table, profile, unit)
    await profile_store.update_profile(services.table, profile, ("name",), unit)
    with pytest.raises(AlreadyAnswered):
        await profile_store.update_profile(services.table, profile, ("name",), unit)


async def test_a_receipt_about_a_member_is_found_after_the_old_secret_was_removed(one_client: Client) -> None:
    """It names them by the newest of the secrets there were, whichever hash is smaller."""
    table, now = one_client.services.table, utc_now()
    both, new = Tombstones(Seal(["new", "old"])), Tombstones(Seal(["new"]))
    members = [f"member-{number}" for number in range(10)]
    for member in members:
        unit = UnitOfWork("moderator", member, "hash", now, actor="User:moderator", tombstones=both)
        await unit.store_receipt(table, Profile(member, "Their name", now), about=member)
    await one_client.caught_up("the index has the receipts")
    assert [await delete_receipts(table, member, new.hashes(member)) for member in members] == [1] * 10
