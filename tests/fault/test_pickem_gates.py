"""Gates under load: what a submission costs each key, locks that find gates busy, and changes that were interrupted."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from datastore.dynamo import EngineUnavailable, Stale
from datastore.pickem.events import Event, read_events, read_gates, read_matches
from datastore.pickem.predictions import Prediction, Submission, read_prediction, submit_prediction
from datastore.whole.layout import ensure_layout
from resolvers.requests.context import Role
from resolvers.values.node_ids import node_id, parse_node_key
from server.audit import find_suspects
from server.settings import Settings
from tests.client import Client, serving
from tests.engines import EnginePair
from tests.intercepted import Send, intercepted
from tests.killed import Killed, killed_at
from tests.lagging import Lag
from tests.lagging.tables import lagging, lagging_table
from tests.queries import EVENT_BY_ID, LOCK_EVENT, REMOVE_MATCH, SUBMIT_PREDICTION, UPDATE_EVENT, UPDATE_MATCH
from tests.season import EventEditor, in_hours, prediction_input, submit, teams

PROMISED_RATE = 2000
SUBMISSIONS = 200
LAST_GATE = 48
"""The number of the write that raises it: the first one is the event's."""


@pytest.mark.parametrize(("matches", "team_count"), [(2, 2), pytest.param(20, 4, marks=pytest.mark.soak)])
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
            assert await find_suspects(client.services, "pickem") == []


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
async def test_a_change_may_be_interrupted_at_any_gate(
    one_client: Client, change: Callable[[EventEditor, str, str], Awaitable[Any]], write: int
) -> None:
    """After the event's own write, among the gates, before the end: it is made, and the next submission sees that."""
    editor, ada, bob = EventEditor(one_client), one_client.member("ada"), one_client.member("bob")
    event = (await editor.event())["id"]
    match, other = (await editor.match(event, "A", "B", "C"))["id"], (await editor.match(event))["id"]
    await submit(ada, event, [(match, 0)])
    with suppress(Killed), killed_at(one_client.services.table, write):
        await change(editor, event, match)
    answers = [
        await member.ask(SUBMIT_PREDICTION, input=prediction_input(event, [(other, 1)])) for member in (ada, bob)
    ]
    closed = change in (_lock, _cancel)
    state = "UPCOMING" if not closed else "LOCKED" if change is _lock else "CANCELLED"
    assert (await stored_event(one_client, event)).state == state
    assert ["prediction" in answer for answer in answers] == [not closed] * 2
    assert await find_suspects(one_client.services, "pickem") == []
    if change is not _remove_match:
        assert "code" not in await change(editor, event, match)
    if change is not _cancel:
        await editor.lock(event)
        stored = await stored_event(one_client, event)
        assert stored.revealed
        assert {gate.version for gate in await read_gates(one_client.services.table, stored.id)} == {stored.version - 1}
    assert await find_suspects(one_client.services, "pickem") == []
    assert (await one_client.ask(EVENT_BY_ID, id=event))["state"] in ("LOCKED", "CANCELLED")


async def stored_event(client: Client, event: str) -> Event:
    key = parse_node_key("Event", event)
    return (await read_events(client.services.table, [key]))[key]


@pytest.mark.parametrize("change", [_lock, _cancel, _start_earlier, _remove_match, _remove_team])
async def test_what_was_decided_before_a_change_is_not_accepted_after_it(
    one_client: Client, change: Callable[[EventEditor, str, str], Awaitable[Any]]
) -> None:
    """A submission has read the event, and is stored only once somebody has changed it."""
    editor, services = EventEditor(one_client), one_client.services
    event = (await editor.event())["id"]
    match = (await editor.match(event, "A", "B", "C"))["id"]
    before, key = await stored_event(one_client, event), parse_node_key("Match", match).partition(":")[2]
    assert "code" not in await change(editor, event, match)
    now = services.clock()
    late = Prediction(before.id, "ada", {key: 2}, now, now, before.starts_at, "token")
    submission = Submission(late, None, before, await read_matches(services.table, before.id))
    with pytest.raises(Stale):
        await submit_prediction(services.table, submission, services.clock, services.unit(), None)
    assert await read_prediction(services.table, before.id, "ada") is None


async def test_what_gates_accept_while_a_lock_takes_long_is_no_breach(one_client: Client) -> None:
    """It was decided before the lock, whose first gate is raised a minute later."""
    editor, services = EventEditor(one_client), one_client.services
    event, [match] = await editor.card(10)
    before, key = await stored_event(one_client, event), parse_node_key("Match", match).partition(":")[2]
    one_at_a_time, times = asyncio.Lock(), [services.clock()]
    services.clock = lambda: times[-1]

    async def raise_late(_: str, send: Send) -> Any:
        async with one_at_a_time:
            if len(times) == 1:
                times.append(later := times[0] + timedelta(minutes=1))
                given = Prediction(before.id, "ada", {key: 0}, later, later, before.starts_at, "token")
                submission = Submission(given, None, before, await read_matches(services.table, before.id))
                await submit_prediction(services.table, submission, services.clock, services.unit(), None)
            return await send()

    with intercepted(services.table, ("update_item",), raise_late):
        await editor.lock(event)
    assert await read_prediction(services.table, before.id, "ada") is not None
    assert await find_suspects(services, "pickem") == []


async def test_a_lock_raises_each_gate_once(one_client: Client) -> None:
    """The answer waits for it, and a write whose condition fails costs a unit too."""
    editor, raised = EventEditor(one_client), list[str]()
    event, _ = await editor.card(10)

    async def count_gates(name: str, send: Any) -> Any:
        raised.extend([name] * ("#GATE#" in str(send.keywords)))
        return await send()

    with intercepted(one_client.services.table, ("update_item",), count_gates):
        await editor.lock(event)
    assert len(raised) == LAST_GATE


async def test_picks_are_hidden_until_every_gate_of_a_locked_event_refuses_more(one_client: Client) -> None:
    """The lock was interrupted; its receipt is of the first write. Whoever reads the event next completes it."""
    editor, ada = EventEditor(one_client), one_client.member("ada")
    event, [match] = await editor.card(10)
    await submit(ada, event, [(match, 0)])
    given = {"event": event, "idempotencyKey": "lock"}
    with killed_at(one_client.services.table, 3), pytest.raises(Killed):
        await editor.client.ask(LOCK_EVENT, input=given)
    assert not (await stored_event(one_client, event)).revealed
    with intercepted(one_client.services.table, ("update_item",), refuse):
        shown = await one_client.ask(EVENT_BY_ID, id=event)
        assert (shown["state"], shown["matches"][0]["pickCounts"]) == ("LOCKED", None)
        assert [node["picks"] for node in shown["predictions"]["nodes"]] == [None]
    repeated = await editor.client.ask(LOCK_EVENT, input=given)
    assert repeated["event"]["state"] == "LOCKED"
    while (shown := await one_client.ask(EVENT_BY_ID, id=event))["matches"][0]["pickCounts"] is None:
        await asyncio.sleep(0.1)  # requests are tried again
    assert shown["matches"][0]["pickCounts"] == [1, 0]
    assert len(shown["predictions"]["nodes"][0]["picks"]) == 1


async def refuse(_: str, __: Send) -> Any:
    raise EngineUnavailable


@pytest.mark.parametrize("change", [_lock, _start_earlier])
@pytest.mark.parametrize("write", [0, LAST_GATE])
async def test_a_change_that_was_interrupted_is_recorded_once_as_its_editor_s(
    one_client: Client, change: Callable[[EventEditor, str, str], Awaitable[Any]], write: int
) -> None:
    """Whoever reads the event next completes a lock, and is not named."""
    editor = EventEditor(one_client)
    event = (await editor.event())["id"]
    with killed_at(one_client.services.table, write), pytest.raises(Killed):
        await change(editor, event, "")
    await one_client.member("ada").ask(SUBMIT_PREDICTION, input=prediction_input(event, []))
    seen = await one_client.member("max", Role.MODERATOR).ask("{ journal(first: 9) { nodes { kind actor } } }")
    kinds = ["event.locked" if change is _lock else "event.changed", "event.created"]
    told = [node for node in seen["nodes"] if node["kind"].startswith("event.")]
    assert told == [{"kind": kind, "actor": node_id("User", "editor")} for kind in kinds]
