"""Pick'em's upgrade from the first round's layout: killed anywhere, beside first-round processes, and run again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from datastore.dynamo import ConditionFailed, Table
from datastore.dynamo.conditions import absent, less, where
from datastore.pickem import (
    EVENT,
    MATCH,
    PREDICTION,
    Event,
    EventState,
    Gate,
    GateState,
    read_events,
    read_pick_counts,
    read_prediction,
    read_standing,
)
from datastore.pickem.gates import gate_number
from datastore.pickem.removal import remove_prediction
from datastore.pickem.upgrade import OLD_EVENT, OLD_GATE, OLD_STANDING, OldStanding, upgrade
from datastore.receipts import Once
from resolvers.context import Services, utc_now
from resolvers.node_ids import node_id
from resolvers.pickem.scoring import ScoringProgress, score
from server.audit import pickem as audit
from server.settings import Settings
from tests import bulk_predictions
from tests.client import Client, pages
from tests.first_round import ITEMS, items_of
from tests.killed import Killed, killed_at
from tests.season import EventEditor, in_hours, submit

PICKEM_ITEMS = [
    item
    for item in ITEMS
    if item["pk"]["S"].startswith(("EVENT#", "STANDINGS#", "HISTOGRAM#")) or item["sk"]["S"].startswith("STANDING#")
]
MOVED_FROM = (OLD_GATE, OLD_STANDING)
OWN_PREDICTIONS = """query ($first: Int, $after: String) { viewer { predictions(first: $first, after: $after) {
  nodes { event { id } } pageInfo { hasNextPage endCursor } } } }"""


async def write_old(table: Table) -> None:
    for start in range(0, len(PICKEM_ITEMS), 25):
        batch = [{"PutRequest": {"Item": item}} for item in PICKEM_ITEMS[start : start + 25]]
        await table.client.batch_write_item(RequestItems={table.name: batch})


async def empty(table: Table) -> None:
    keys = [{name: item[name] for name in ("pk", "sk")} for item in await items_of(table)]
    for start in range(0, len(keys), 25):
        batch = [{"DeleteRequest": {"Key": key}} for key in keys[start : start + 25]]
        await table.client.batch_write_item(RequestItems={table.name: batch})


async def upgraded(table: Table) -> None:
    await upgrade(table, lambda _: None)


async def breaches(table: Table, settings: Settings) -> list[str]:
    return [breach async for breach in audit.breaches(Services(table, settings.seal()))]


def comparable(items: list[Any]) -> list[Any]:
    """Without the numbers of histograms, of which a repeated count has more."""
    kept = [item for item in items if not item["pk"]["S"].startswith("HISTOGRAM#STANDINGS")]
    return [{name: value for name, value in item.items() if name not in ("tickets", "published")} for item in kept]


async def test_an_upgrade_may_be_killed_at_every_write(one_table: Table, settings: Settings) -> None:
    """And begun again: the table is then the same as after one upgrade, and nothing of layout 1 is left."""
    await empty(one_table)
    await write_old(one_table)
    with killed_at(one_table, 10_000) as writes:
        await upgraded(one_table)
    assert await breaches(one_table, settings) == []
    whole = comparable(await items_of(one_table))
    for item in whole:
        assert not any(entity.recognises(item["pk"]["S"], item["sk"]["S"]) for entity in MOVED_FROM)
    last = writes[0]
    await upgraded(one_table)
    assert comparable(await items_of(one_table)) == whole
    killed = 0
    for write in sorted({*range(0, last, max(1, last // 6)), last - 1}):
        await empty(one_table)
        await write_old(one_table)
        try:
            with killed_at(one_table, write):
                await upgraded(one_table)
        except Killed:
            killed += 1
        await upgraded(one_table)
        assert comparable(await items_of(one_table)) == whole, write
    # Writes that conflict are repeated, so a run may have fewer writes than the counted one and end before its kill.
    assert killed >= 5
    assert await breaches(one_table, settings) == []


def old_event(state: EventState = EventState.UPCOMING, **more: Any) -> tuple[Event, Any]:
    event, matches = bulk_predictions.locked_event("2026")
    starts_at = datetime.now(UTC) + timedelta(hours=1)
    return replace(event, state=state, starts_at=starts_at, locked_at=None, results={}, generation=1, **more), matches


async def write_old_event(table: Table, event: Event, matches: Any) -> None:
    state = GateState.OPEN if event.state is EventState.UPCOMING else GateState.CLOSED
    await table.write_many([OLD_EVENT.put(event), *map(MATCH.put, matches)])
    await table.write_many(OLD_GATE.put(Gate(event.id, number, state, event.starts_at)) for number in range(16))


def old_submission(event: Event, prediction: Any) -> list[Any]:
    """What the first round sends for a new prediction."""
    picked = {f"picked_{match}_{team}": 1 for match, team in prediction.picks.items()}
    is_open = where(state=GateState.OPEN) & less("card", event.version + 1)
    key = OLD_GATE.at(event=event.id, number=prediction.shard)
    return [
        PREDICTION.put(prediction, when=absent()),
        OLD_GATE.change(key, add={"predictions": 1, **picked}, when=is_open),
    ]


async def test_a_first_round_process_neither_submits_nor_changes_an_event_that_was_moved(one_table: Table) -> None:
    """Submissions are counted on both sides of the move, and refused once the event has begun to move."""
    event, matches = old_event()
    await write_old_event(one_table, event, matches)
    before, after = list(bulk_predictions.generate_predictions(event, 2))
    await one_table.transact(*old_submission(event, before))
    with killed_at(one_table, 16), pytest.raises(Killed):
        await upgraded(one_table)
    with pytest.raises(ConditionFailed):
        await one_table.transact(*old_submission(event, after))
    await upgraded(one_table)
    for writes in (
        old_submission(event, after),
        [OLD_EVENT.put(event.changed(name="Renamed"), when=where(version=event.version))],
        [OLD_EVENT.put(event, when=absent())],
    ):
        with pytest.raises(ConditionFailed):
            await one_table.transact(*writes)
    counts = await read_pick_counts(one_table, event.id)
    assert counts.predictions == 1
    for number, match in enumerate(matches, 1):
        assert [counts.count(number, team) for team in range(2)] == [
            int(before.picks.get(match.id) == team) for team in range(2)
        ]


async def test_a_change_during_the_move_is_kept(one_table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first-round process opens the gates again between their closing and the move: the move begins anew."""
    event, matches = old_event()
    await write_old_event(one_table, event, matches)
    renamed = event.changed(name="Renamed")
    prediction = next(bulk_predictions.generate_predictions(event, 1))
    transact, interfered = one_table.transact, False

    async def interfere(*writes: Any) -> None:
        nonlocal interfered
        if not interfered:
            interfered = True
            await one_table.write(OLD_EVENT.put(renamed, when=where(version=event.version)))
            for number in range(16):
                gate = OLD_GATE.at(event=event.id, number=number)
                await one_table.write(OLD_GATE.change(gate, values={"state": GateState.OPEN}))
            await transact(*old_submission(renamed, prediction))
        await transact(*writes)

    monkeypatch.setattr(one_table, "transact", interfere)
    await upgraded(one_table)
    assert (await read_events(one_table, [event.id]))[event.id].name == "Renamed"
    assert (await read_pick_counts(one_table, event.id)).predictions == 1


async def test_a_first_round_scorer_that_goes_on_is_superseded(one_table: Table, settings: Settings) -> None:
    """Its scoring had begun: whatever it stores after the move is replaced when the event is scored again."""
    event, matches = bulk_predictions.locked_event("2026")
    event = replace(event, begun=event.generation)
    first, second, third = bulk_predictions.generate_predictions(event, 3)
    await write_old_event(one_table, event, matches)
    picked = [f"picked_{match}_{team}" for one in (first, second, third) for match, team in one.picks.items()]
    add = {"predictions": 3, **{name: picked.count(name) for name in picked}}
    await one_table.write(OLD_GATE.change(OLD_GATE.at(event=event.id, number=0), add=add))
    wrong: dict[str, Any] = {"points": 1, "correct": 1, "generation": event.generation}
    await one_table.write_many([PREDICTION.put(replace(first, **wrong)), PREDICTION.put(second), PREDICTION.put(third)])
    await upgraded(one_table)
    names = ("points", "correct", "generation", "starts_at")
    late = replace(second, **wrong)
    await one_table.write(PREDICTION.shift(late, *names, when=less("generation", event.generation)))
    await one_table.write(OLD_STANDING.put(OldStanding(second.user, "2026", second.joined_at, points=1), when=absent()))
    standing = await read_standing(one_table, first.user, "2026")
    assert standing is not None
    assert (standing.points, standing.events_played) == (1, 1)
    await score(Services(one_table, settings.seal()), event.id, ScoringProgress())
    assert await bulk_predictions.count_wrong_scores(one_table, event, matches) == 0
    with pytest.raises(ConditionFailed):
        await one_table.write(
            PREDICTION.shift(replace(third, **wrong), *names, when=less("generation", event.generation))
        )
    await upgraded(one_table)
    assert await breaches(one_table, settings) == []
    assert (await read_prediction(one_table, event.id, second.user)) is not None


async def test_events_that_the_first_round_creates_later_are_moved_by_another_upgrade(
    one_table: Table, settings: Settings
) -> None:
    """With their points, if it has scored them."""
    await upgraded(one_table)
    event, matches = bulk_predictions.locked_event("2026")
    event = replace(event, state=EventState.SCORED, begun=event.generation, scored=event.generation)
    await write_old_event(one_table, event, matches)
    predictions = list(bulk_predictions.generate_predictions(event, 5))
    scored = [replace(one, points=10, correct=1, generation=event.generation) for one in predictions]
    await one_table.write_many(map(PREDICTION.put, scored))
    await upgraded(one_table)
    standings = [await read_standing(one_table, one.user, "2026") for one in scored]
    assert [one.points for one in standings if one] == [10] * 5
    assert (await one_table.get(EVENT.at(id=event.id), consistent=True)) is not None
    assert not [one for one in await breaches(one_table, settings) if "standing" in one]


async def test_a_prediction_is_left_out_until_the_event_that_the_first_round_created_later_is_moved(
    one_client: Client,
) -> None:
    """The member's other predictions are shown meanwhile, also page by page."""
    table, fan = one_client.services.table, one_client.member("fan-0000000")
    known, [match] = await EventEditor(one_client).card(10, starts=in_hours(0.5))
    await submit(fan, known, [(match, 0)])
    event, matches = old_event()
    await write_old_event(table, event, matches)
    await table.transact(*old_submission(event, next(bulk_predictions.generate_predictions(event, 1))))
    assert await pages(fan, OWN_PREDICTIONS, size=1) == [{"event": {"id": known}}]
    await upgraded(table)
    newest_first = [{"event": {"id": node_id("Event", event.id)}}, {"event": {"id": known}}]
    assert await pages(fan, OWN_PREDICTIONS, size=1) == newest_first


async def test_predictions_from_before_the_upgrade_are_removed_from_the_counts(one_table: Table) -> None:
    """Layout 1 had 16 gates, so most members' gates do not exist: removing a prediction must not make half of one."""
    event, matches = bulk_predictions.locked_event("2026")
    await write_old_event(one_table, event, matches)
    predictions = list(bulk_predictions.generate_predictions(event, 5))
    assert {gate_number(one.user) < 16 for one in predictions} == {True, False}
    for one in predictions:
        await one_table.transact(*old_submission(event, one)[:1])
        picked = {f"picked_{match}_{team}": 1 for match, team in one.picks.items()}
        gate = OLD_GATE.at(event=event.id, number=one.shard)
        await one_table.write(OLD_GATE.change(gate, add={"predictions": 1, **picked}))
    await upgraded(one_table)
    moved = (await read_events(one_table, [event.id]))[event.id]
    assert (await read_pick_counts(one_table, event.id)).predictions == 5
    for one in predictions:
        await remove_prediction(one_table, moved, one.user, Once.unkeyed(utc_now()))
    counts = await read_pick_counts(one_table, event.id)
    assert counts.predictions == 0
    assert set(counts.picked.values()) == {0}
