"""Reading and changing events, the matches on their cards, and the gates that predictions pass.

Every change of an event raises its `version` and requires the version that the change was decided from.

A prediction's transaction checks one of the event's gates. What the gates allow is never more than what the event says:

- A change that allows less (a lock, a cancellation, an earlier start, a smaller card) is announced in the event as its
  `narrowing`, then carried out at the gates one by one, then in the event. Anyone may finish it after a kill. If a
  later step is refused, it is given up.
- A change that allows more is written to the event first. A gate that is behind refuses until it has been changed too;
  a submission that meets it does that.

Picks are shown only after the last write of a lock. So clocks need not agree: no prediction is accepted after any pick
was shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from datastore.changes.created import note_created, read_created
from datastore.changes.kinds import Kind
from datastore.changes.tombstones import MemberErased
from datastore.changes.unit_of_work import AlreadyAnswered, UnitOfWork
from datastore.dynamo import ConditionFailed, Page, Stale, Table, Window, key_text
from datastore.dynamo.conditions import ALWAYS, Condition, absent, present, where
from datastore.dynamo.entity import Partition
from datastore.dynamo.keys import HIGHEST
from datastore.dynamo.writes import Write
from datastore.pickem.event_records import EVENT, MATCH, Event, EventState, Match, Narrowing
from datastore.pickem.gates import GateChange, GateState, change_gates, new_gates, none_picked
from datastore.refusals import Conflict, Refusal

Clock = Callable[[], datetime]

CREATED_EVENT = "EVENT"
MOST_UNSCORED = 500

NARROWING_LASTS = timedelta(seconds=20)
"""Longer than a request may carry a change out. After that, a process that finds a smaller card gives it up.

So it does if that began as far ahead, by a clock that was wrong.
"""


class Locked(Refusal):
    """The event has begun or was locked, so neither its predictions nor its card can change any more."""

    code = "LOCKED"
    explanation = "This event is locked: predictions and its card can no longer be changed."


class VersionConflict(Conflict, Stale):
    """The event has changed since the change was decided."""


def in_future(name: str, clock: Clock) -> Condition:
    """A moment is still ahead, by this process's clock at the time of each attempt."""
    return Condition(lambda into: f"{into.field(name)} > {into.value(name, clock())}")


# ── reading ──


async def read_events(table: Table, ids: Sequence[str]) -> Mapping[str, Event]:
    """The events that exist, by id; a consistent read."""
    events = await table.get_many([EVENT.at(id=id_) for id_ in ids], consistent=True)
    return {event.id: event for event in events if event is not None}


async def read_events_page(table: Table, state: EventState | None, window: Window, now: datetime) -> Page[Event]:
    """Newest first."""
    request = window.open(f"events:{state.value if state else ''}")
    partitions = [EVENT.on("gsi1")] if state is None else _partitions(state, now)
    return await table.page([partition.newest_first() for partition in partitions], request)


def _partitions(state: EventState, now: datetime) -> list[Partition[Event]]:
    """An upcoming event becomes a locked one at its start, so the stored state alone does not tell them apart."""
    stored, begun = EVENT.on("gsi2", state=state), f"{key_text(now)}#{HIGHEST}"
    if state is EventState.UPCOMING:
        return [stored.between(begun, None)]
    if state is EventState.LOCKED:
        return [stored, EVENT.on("gsi2", state=EventState.UPCOMING).between(None, begun)]
    return [stored]


def all_events(table: Table) -> AsyncIterator[Event]:
    """Oldest first, as the index shows them."""
    return table.iterate(EVENT.on("gsi1"))


async def read_unscored_seasons(table: Table) -> frozenset[str]:
    """The seasons of the events that are not scored, as the index shows them: of the last `MOST_UNSCORED` each state.

    A season with a scored event has a record of its own.
    """
    states = [EVENT.on("gsi2", state=state).newest_first() for state in EventState if state is not EventState.SCORED]
    slices = await asyncio.gather(*(table.query(state, limit=MOST_UNSCORED) for state in states))
    return frozenset(event.season for part in slices for event in part.records)


async def every_event(table: Table) -> list[Event]:
    """In the order of their ids; consistent, those of a moment ago included."""
    noted = await read_created(table, CREATED_EVENT)
    events = await read_events(table, sorted({*noted, *[event.id async for event in all_events(table)]}))
    return list(events.values())


async def read_matches(table: Table, event: str) -> Mapping[str, Match]:
    return {match.id: match async for match in table.iterate(MATCH.on(event=event), consistent=True)}


# ── writing ──


@dataclass(frozen=True, slots=True)
class CardChange:
    """An event before and after a change of its card, which fails once the event has begun; its kind in the journal."""

    before: Event
    after: Event
    unit: UnitOfWork
    answer: Any
    clock: Clock
    kind: Kind


async def create_event(table: Table, event: Event, matches: Sequence[Match], unit: UnitOfWork) -> None:
    """Create an event, the first matches of its card and its gates. VersionConflict if the event exists already."""
    event, numbered = number_matches(event, matches)
    await note_created(table, CREATED_EVENT, event.id, unit.now)
    writes = [*map(MATCH.put, numbered), *new_gates(gates_of(event))]
    occurrence = unit.occurred(Kind.EVENT_CREATED, name_of(event))
    await _replace(table, event, unit, event, *writes, *occurrence, when=absent())


def name_of(thing: Event | Match) -> str:
    """The name of an event or a match in the journal."""
    return f"{type(thing).__name__}:{thing.node_key}"


def number_matches(event: Event, matches: Sequence[Match]) -> tuple[Event, list[Match]]:
    """A new event and its matches with their numbers."""
    numbered = [replace(match, number=number) for number, match in enumerate(matches, 1)]
    return replace(event, numbered=len(numbered)), numbered


def gates_of(event: Event) -> GateChange:
    """What the event's gates are when no change is under way."""
    return GateChange(event.id, event.version, gate_state(event), event.starts_at)


def gate_state(event: Event) -> GateState:
    return GateState.OPEN if event.state is EventState.UPCOMING else GateState.CLOSED


async def change_event(
    table: Table, before: Event, after: Event, unit: UnitOfWork, answer: Any, *writes: Write, clock: Clock | None = None
) -> None:
    """Write an event and what changes with it; VersionConflict if it has changed. `clock`: only before its start."""
    if _allows_less(before, after):
        narrowing = Narrowing(after.state, after.starts_at, unit.now, actor=unit.actor)
        async with _announced(table, before, narrowing, unit, clock):
            await change_gates(table, gates_of(after))
            await _end_narrowing(table, after, unit, answer, *writes, before=before, clock=clock)
        return
    when = where(version=before.version) & absent("narrowing") & _before_start(clock)
    await _replace(table, after, unit, answer, *writes, when=when)
    if _allows_more(before, after):
        await change_gates(table, gates_of(after))


def _allows_less(before: Event, after: Event) -> bool:
    if before.state is not EventState.UPCOMING:
        return False
    return after.state is not EventState.UPCOMING or after.starts_at < before.starts_at


def _allows_more(before: Event, after: Event) -> bool:
    if after.state is not EventState.UPCOMING:
        return False
    return before.state is not EventState.UPCOMING or after.starts_at > before.starts_at


def _before_start(clock: Clock | None) -> Condition:
    return ALWAYS if clock is None else in_future("starts_at", clock)


@asynccontextmanager
async def _announced(
    table: Table, before: Event, narrowing: Narrowing, unit: UnitOfWork, clock: Clock | None
) -> AsyncIterator[None]:
    """The first step of a change that allows less. The change is given up if a later step is refused.

    Others finish what is announced: so this step is refused to an erased actor too, and if there is a receipt already.
    """
    announced, when = replace(before, narrowing=narrowing), where(version=before.version) & absent("narrowing")
    first = replace(unit, key=None)
    try:
        await _replace(table, announced, first, announced, *unit.unanswered(), when=when & _before_start(clock))
    except ConditionFailed:
        raise AlreadyAnswered from None
    try:
        yield
    except (ConditionFailed, AlreadyAnswered, MemberErased):
        with suppress(VersionConflict):  # somebody else has finished it
            await _give_up_narrowing(table, announced, unit.now)
        raise


async def _end_narrowing(
    table: Table, after: Event, unit: UnitOfWork, answer: Any, *writes: Write, before: Event, clock: Clock | None = None
) -> None:
    """The last step. An event has one narrowing at most in each version."""
    when = where(version=before.version) & present("narrowing") & _before_start(clock)
    await _replace(table, after, unit, answer, *writes, when=when)


async def finish_narrowing(table: Table, event: Event, unit: UnitOfWork) -> Event:
    """The event after a change that somebody else began: it is carried out, or given up if that takes too long.

    `unit` has no actor: the change is recorded as that of who began it, unless they are erased.
    VersionConflict if somebody else finished it, or is still at it.
    """
    if (narrowing := event.narrowing) is None:
        return event
    now = unit.now
    if narrowing.smaller_card:
        if abs(now - narrowing.begun_at) < NARROWING_LASTS and event.starts_at > now:
            raise VersionConflict
        return await _give_up_narrowing(table, event, now)
    locked_at = now if narrowing.state is EventState.LOCKED else event.locked_at
    after = event.changed(narrowing=None, state=narrowing.state, starts_at=narrowing.starts_at, locked_at=locked_at)
    await change_gates(table, gates_of(after))
    try:
        await _end_recorded(table, event, after, replace(unit, actor=narrowing.actor))
    except MemberErased:
        await _end_recorded(table, event, after, unit)
    return after


async def _end_recorded(table: Table, event: Event, after: Event, unit: UnitOfWork) -> None:
    kind = Kind.EVENT_LOCKED if after.state is EventState.LOCKED else Kind.EVENT_CHANGED
    await _end_narrowing(table, after, unit, after, *unit.occurred(kind, name_of(after)), before=event)


async def _give_up_narrowing(table: Table, event: Event, now: datetime) -> Event:
    """Back to what the event was. Two versions later: the gates may already be changed for the next one."""
    restored = replace(event, version=event.version + 2, narrowing=None)
    await _end_narrowing(table, restored, UnitOfWork.unkeyed(now), restored, before=event)
    await change_gates(table, gates_of(restored))
    return restored


async def _replace(table: Table, after: Event, unit: UnitOfWork, answer: Any, *writes: Write, when: Condition) -> None:
    try:
        await unit.transact(table, answer, EVENT.put(after, when=when), *writes)
    except ConditionFailed as failed:
        if failed.was_written(EVENT, after):
            return
        if not failed.at(0):
            raise
        raise VersionConflict from None


async def put_match(table: Table, change: CardChange, match: Match) -> None:
    """Write a match that is new on the card, or whose teams keep their places."""
    await _change_card(table, change, match, MATCH.put(match))


async def put_match_with_fewer_teams(table: Table, change: CardChange, match: Match, gone: Sequence[int]) -> None:
    """Write a match without some of its teams; Conflict if somebody picked one of them."""
    await _reduce_card(table, change, match, MATCH.put(match), unpicked=none_picked(match.number, gone))


async def remove_match(table: Table, change: CardChange, match: Match) -> None:
    await _reduce_card(table, change, match, MATCH.delete(MATCH.item_key(match)))


async def reorder_card(table: Table, change: CardChange) -> None:
    await _change_card(table, change, change.after)


async def _change_card(table: Table, change: CardChange, changed: Event | Match, *writes: Write) -> None:
    writes = (*writes, *change.unit.occurred(change.kind, name_of(changed)))
    await change_event(table, change.before, change.after, change.unit, change.answer, *writes, clock=change.clock)


async def _reduce_card(
    table: Table, change: CardChange, match: Match, *writes: Write, unpicked: Condition = ALWAYS
) -> None:
    """Until the last step no prediction is accepted, since each gate asks for the version that comes then."""
    before, after = change.before, change.after
    narrowing = Narrowing(before.state, before.starts_at, change.clock(), smaller_card=True)
    gates = replace(gates_of(after), card=after.version, when=unpicked)
    writes = (*writes, *change.unit.occurred(change.kind, name_of(match)))
    try:
        async with _announced(table, before, narrowing, change.unit, change.clock):
            await change_gates(table, gates)
            await _end_narrowing(table, after, change.unit, change.answer, *writes, before=before, clock=change.clock)
    except ConditionFailed:
        raise Conflict(
            "Somebody has picked a team that would be gone. Keep its place, or remove the match.",
            path=("input", "teams"),
        ) from None
