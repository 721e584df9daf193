"""Gates under load: what a submission costs each key, locks that find gates busy, and changes that were interrupted."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from datastore.pickem import GateState, read_events, read_gates
from datastore.whole.layout import ensure_layout
from resolvers.requests.viewer import Role
from resolvers.values.node_ids import node_id, parse_node_key
from server.audit import pickem as audit
from server.settings import Settings
from tests.client import Client, serving
from tests.engines import EnginePair
from tests.killed import Killed, killed_at
from tests.lagging import Lag
from tests.lagging.tables import lagging, lagging_table
from tests.queries import EVENT_BY_ID, LOCK_EVENT, REMOVE_MATCH, SUBMIT_PREDICTION, UPDATE_EVENT, UPDATE_MATCH
from tests.season import EventEditor, in_hours, prediction_input, submit, teams

PROMISED_RATE = 2000
SUBMISSIONS = 200
LAST_GATE = 48
"""The number of the write that changes it: the first announces the change."""


@pytest.mark.parametrize(("matches", "team_count"), [(2, 2), (20, 4)])
async def test_no_key_is_hot_when_many_submit(
    tmp_path: Path, settings: Settings, matches: int, team_count: int
) -> None:
    """Units of the fullest key, at 2,000 submissions a second: 700 of 1,000 at most, whatever the card's size."""
    async with lagging(tmp_path, lag=Lag(mean=0.0)) as (engine, table):
        await ensure_layout(table)
        served = settings.model_copy(update={"dynamodb_url": engine.url, "table": table.name})
        async with serving(served) as client:
            editor = EventEditor(client)
            event = (await editor.event())["id"]
            names = [str(team) for team in range(team_count)]
            card = [(await editor.match(event, *names))["id"] for _ in range(matches)]
            engine.ledger.writes.clear()
            await asyncio.gather(
                *(
                    submit(client.member(f"m{member}"), event, [(match, member % team_count) for match in card])
                    for member in range(SUBMISSIONS)
                )
            )
    units: dict[str, float] = defaultdict(float)
    for (key, _), spent in engine.ledger.writes.items():
        units[key.value] += spent
    gates = [spent for key, spent in units.items() if "#GATE#" in key]
    assert sum(gates) == 2 * SUBMISSIONS
    assert max(units.values()) / SUBMISSIONS * PROMISED_RATE <= 700


async def test_a_lock_succeeds_while_submissions_keep_the_gates_busy(
    engine_pair: EnginePair, settings: Settings, table_name: str
) -> None:
    """Each gate is held by some submission 4 of 10 times: the lock is acknowledged, and nothing is accepted later."""
    async with lagging_table(engine_pair, table_name, conflict_seconds=0.1) as (proxy, _, _):
        served = settings.model_copy(update={"dynamodb_url": proxy.url})
        async with serving(served) as client:
            editor = EventEditor(client)
            event, [match] = await editor.card(10)
            locked, accepted = asyncio.Event(), Counter[str]()

            async def member(number: int) -> None:
                asker = client.member(f"m{number}")
                for turn in count():
                    began_late = locked.is_set()
                    given = prediction_input(event, [(match, turn % 2)])
                    answer = await asker.ask(SUBMIT_PREDICTION, input=given)
                    if "prediction" in answer:
                        accepted["late" if began_late else "in time"] += 1
                    elif answer["code"] == "LOCKED":
                        return

            members = [asyncio.create_task(member(number)) for number in range(40)]
            while accepted["in time"] < 60:
                await asyncio.sleep(0.01)
            assert (await editor.lock(event))["state"] == "LOCKED"
            locked.set()
            await asyncio.gather(*members)
            assert proxy.conflicts > 0
            assert accepted["late"] == 0
            await proxy.catch_up()
            assert [breach async for breach in audit.breaches(client.services)] == []


async def _lock(editor: EventEditor, event: str, _: str) -> Any:
    return await editor.client.ask(LOCK_EVENT, input={"event": event})


async def _cancel(editor: EventEditor, event: str, _: str) -> Any:
    return await editor.client.ask(UPDATE_EVENT, input={"event": event, "cancelled": True})


async def _start_earlier(editor: EventEditor, event: str, _: str) -> Any:
    return await editor.client.ask(UPDATE_EVENT, input={"event": event, "startsAt": in_hours(1)})


async def _start_later(editor: EventEditor, event: str, _: str) -> Any:
    return await editor.client.ask(UPDATE_EVENT, input={"event": event, "startsAt": in_hours(99)})


async def _remove_match(editor: EventEditor, _: str, match: str) -> Any:
    return await editor.client.ask(REMOVE_MATCH, input={"match": match})


async def _remove_team(editor: EventEditor, _: str, match: str) -> Any:
    return await editor.client.ask(UPDATE_MATCH, input={"match": match, "teams": teams("A", "B")})


CHANGES = (_lock, _cancel, _start_earlier, _start_later, _remove_match, _remove_team)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("write", [0, 3, LAST_GATE])
async def test_a_change_of_the_gates_may_be_interrupted(
    one_client: Client,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[EventEditor, str, str], Awaitable[Any]],
    write: int,
) -> None:
    """After the announcement, among the gates, before the end: the next submission ends it, and all agree again."""
    editor, ada, bob = EventEditor(one_client), one_client.member("ada"), one_client.member("bob")
    event = (await editor.event())["id"]
    match, other = (await editor.match(event, "A", "B", "C"))["id"], (await editor.match(event))["id"]
    await submit(ada, event, [(match, 0)])
    monkeypatch.setattr("datastore.pickem.events.NARROWING_LASTS", timedelta())
    with killed_at(one_client.services.table, write), pytest.raises(Killed):
        await change(editor, event, match)
    answers = [
        await member.ask(SUBMIT_PREDICTION, input=prediction_input(event, [(other, 1)])) for member in (ada, bob)
    ]
    event_key = parse_node_key("Event", event)
    stored = (await read_events(one_client.services.table, [event_key]))[event_key]
    closed = stored.state != "UPCOMING"
    assert closed is (change in (_lock, _cancel))
    assert ["prediction" in answer for answer in answers] == [not closed] * 2
    assert [breach async for breach in audit.breaches(one_client.services)] == []
    assert "code" not in await change(editor, event, match)
    if change is not _cancel:
        await editor.lock(event)
    gates = await read_gates(one_client.services.table, event_key)
    assert {gate.state for gate in gates} == {GateState.CLOSED}
    assert [breach async for breach in audit.breaches(one_client.services)] == []
    assert (await one_client.ask(EVENT_BY_ID, id=event))["state"] in ("LOCKED", "CANCELLED")


async def test_a_smaller_card_that_was_interrupted_does_not_delay_the_lock(one_client: Client) -> None:
    """At the start it is given up, however short a time ago it was announced: it can no longer be completed."""
    editor, services = EventEditor(one_client), one_client.services
    event, [match] = await editor.card(10, starts=in_hours(1))
    event_key = parse_node_key("Event", event)
    starts_at = (await read_events(services.table, [event_key]))[event_key].starts_at
    services.clock = lambda: starts_at - timedelta(seconds=2)
    with killed_at(services.table, 0), pytest.raises(Killed):
        await _remove_match(editor, event, match)
    services.clock = lambda: starts_at
    async with asyncio.timeout(30):
        given = prediction_input(event, [(match, 0)])
        assert await one_client.member("ada").code(SUBMIT_PREDICTION, input=given) == "LOCKED"
    stored = (await read_events(services.table, [event_key]))[event_key]
    assert (stored.state, stored.narrowing, len(stored.card)) == ("LOCKED", None, 1)


@pytest.mark.parametrize("change", [_lock, _start_earlier])
@pytest.mark.parametrize("write", [0, LAST_GATE])
async def test_a_change_that_others_finish_is_recorded_as_its_editor_s(
    one_client: Client, change: Callable[[EventEditor, str, str], Awaitable[Any]], write: int
) -> None:
    """Whoever reads the event next finishes it, and is not named."""
    editor = EventEditor(one_client)
    event = (await editor.event())["id"]
    with killed_at(one_client.services.table, write), pytest.raises(Killed):
        await change(editor, event, "")
    await one_client.member("ada").ask(SUBMIT_PREDICTION, input=prediction_input(event, []))
    [last] = (await one_client.member("max", Role.MODERATOR).ask("{ journal(first: 1) { nodes { kind actor } } }"))[
        "nodes"
    ]
    kind = "event.locked" if change is _lock else "event.changed"
    assert last == {"kind": kind, "actor": node_id("User", "editor")}
