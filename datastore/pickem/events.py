"""Events, the matches on their cards, and the gates that predictions pass.

An event's state, its card's order, its results and their generation are one item, so one read shows which results a
generation has. Every change raises `version` and requires the version that the change was decided from.

Each shard of members has a gate item of its own. A prediction's transaction checks one gate, so submissions do not
queue for one item. The transaction that locks the event closes all gates, and picks are shown only after it. So clocks
need not agree: no prediction is accepted after any pick was shown.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from datastore.dynamo import ConditionFailed, Page, Table, Window, key_text
from datastore.dynamo.conditions import Condition, absent, where
from datastore.dynamo.entity import Entity, Partition
from datastore.dynamo.keys import HIGHEST, Key
from datastore.dynamo.writes import Write
from datastore.people import SHARDS
from datastore.pickem.gates import GATE, Gate, GateState, PickCounts, none_picked
from datastore.receipts import Once
from datastore.refusals import Conflict, Refusal

Clock = Callable[[], datetime]


class EventState(StrEnum):
    UPCOMING = "UPCOMING"
    LOCKED = "LOCKED"
    SCORED = "SCORED"
    CANCELLED = "CANCELLED"


class MatchOutcome(StrEnum):
    WON = "WON"
    DRAWN = "DRAWN"
    NO_CONTEST = "NO_CONTEST"
    CANCELLED = "CANCELLED"


class Locked(Refusal):
    """The event has begun or was locked, so neither its predictions nor its card can change any more."""

    code = "LOCKED"
    explanation = "This event is locked: predictions and its card can no longer be changed."


class VersionConflict(Conflict):
    """The event has changed since the change was decided."""


@dataclass(frozen=True, slots=True)
class Result:
    """How a match ended. Only a match that was won has a winner: the index of a team."""

    outcome: MatchOutcome
    winner: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One evening of matches. `card` is the order of its matches; `generation` counts the changes of its results."""

    id: str
    name: str
    season: str
    starts_at: datetime
    created_at: datetime
    state: EventState = EventState.UPCOMING
    version: int = 1
    card: tuple[str, ...] = ()
    results: dict[str, Result] = field(default_factory=dict)
    generation: int = 1
    begun: int | None = None
    """The generation whose scoring has begun. After that the event cannot be cancelled."""
    scored: int | None = None
    """The generation of the predictions' points."""
    predictions: int | None = None
    """How many predictions were scored."""
    locked_at: datetime | None = None
    """When the gates were closed. After that, picks are public."""

    @property
    def node_key(self) -> str:
        return self.id

    @property
    def slug(self) -> str:
        """Derived from the name and the day."""
        return f"{self.starts_at:%Y-%m-%d}-{slugify(self.name)}"

    @property
    def revealed(self) -> bool:
        return self.locked_at is not None

    def is_due(self, now: datetime) -> bool:
        """Whether its start has passed and it is not locked yet."""
        return self.state is EventState.UPCOMING and self.starts_at <= now

    def changed(self, **changes: Any) -> Event:
        return replace(self, version=self.version + 1, **changes)

    def locked(self, now: datetime) -> Event:
        return self.changed(state=EventState.LOCKED, locked_at=now)


@dataclass(frozen=True, slots=True)
class Team:
    """One side of a match."""

    members: tuple[str, ...]
    name: str | None = None
    champion: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    """Teams against each other, for points. The event has its place on the card and its result."""

    event: str
    id: str
    name: str
    points: int
    teams: tuple[Team, ...]
    championships: tuple[str, ...] = ()
    preshow: bool = False

    @property
    def node_key(self) -> str:
        return f"{self.event}:{self.id}"


EVENT = Entity(
    Event,
    Key("EVENT#{id}", "EVENT"),
    gsi1=Key("EVENTS", "{starts_at}#{id}"),
    gsi2=Key("EVENTS#{state}", "{starts_at}#{id}"),
)
MATCH = Entity(Match, Key("EVENT#{event}", "MATCH#{id}"))


def in_future(name: str, clock: Clock) -> Condition:
    """A moment is still ahead, by this process's clock at the time of each attempt."""
    return Condition(lambda into: f"{into.field(name)} > {into.value(name, clock())}")


_ACCENTS = re.compile("[\u0300-\u036f]")


def slugify(name: str) -> str:
    """A name for URLs: letters and digits of any script, hyphens for the rest."""
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", name))
    return re.sub(r"[\W_]+", "-", unicodedata.normalize("NFC", plain).casefold()).strip("-") or "event"


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
    """Oldest first."""
    return table.iterate(EVENT.on("gsi1"))


async def read_matches(table: Table, event: str) -> Mapping[str, Match]:
    return {match.id: match async for match in table.iterate(MATCH.on(event=event), consistent=True)}


async def read_gates(table: Table, event: str) -> Sequence[Gate]:
    return [gate async for gate in table.iterate(GATE.on(event=event), consistent=True)]


async def read_pick_counts(table: Table, event: str) -> PickCounts:
    """The sums over all gates; final once the event is locked."""
    gates = await read_gates(table, event)
    picked: Counter[str] = Counter()
    for gate in gates:
        picked.update(gate.picked)
    return PickCounts(sum(gate.predictions for gate in gates), picked)


# ── writing ──


@dataclass(frozen=True, slots=True)
class CardChange:
    """An event before and after a change of its card. The change fails once the event has begun."""

    before: Event
    after: Event
    once: Once
    answer: Any
    clock: Clock


async def create_event(table: Table, event: Event, matches: Sequence[Match], once: Once, *, new: bool = True) -> None:
    """Create an event, its gates and the first matches of its card. VersionConflict if the event exists already."""
    gates = (Gate(event.id, number, gate_state(event), event.starts_at) for number in range(SHARDS))
    writes: list[Write] = [GATE.put(gate) for gate in gates]
    writes += [MATCH.put(match) for match in matches]
    when = absent() if new else where(version=event.version)
    await _replace(table, event, once, event, *writes, when=when)


async def change_event(
    table: Table, before: Event, after: Event, once: Once, answer: Any, *writes: Write, clock: Clock | None = None
) -> None:
    """Write an event and what changes with it; VersionConflict if it has changed. `clock`: only before its start."""
    when = where(version=before.version)
    if clock is not None:
        when &= in_future("starts_at", clock)
    if (before.state, before.starts_at) != (after.state, after.starts_at):
        writes = (*_gate_updates(after), *writes)
    await _replace(table, after, once, answer, *writes, when=when)


async def _replace(table: Table, after: Event, once: Once, answer: Any, *writes: Write, when: Condition) -> None:
    try:
        await once.transact(table, answer, EVENT.put(after, when=when), *writes)
    except ConditionFailed as failed:
        stored_item = failed.failures.get(0)
        if failed.doubtful and stored_item and EVENT.read(stored_item) == after:
            return  # applied by an earlier attempt whose answer was lost
        if not failed.at(0):
            raise
        raise VersionConflict from None


def gate_state(event: Event) -> GateState:
    return GateState.OPEN if event.state is EventState.UPCOMING else GateState.CLOSED


def _gate_updates(event: Event) -> list[Write]:
    """Updates of all gates to the event's state and start."""
    values = {"state": gate_state(event), "lock_at": event.starts_at}
    return [GATE.change(GATE.at(event=event.id, number=number), values=values) for number in range(SHARDS)]


async def put_match(table: Table, change: CardChange, match: Match) -> None:
    """Write a match that is new on the card, or whose teams keep their places."""
    await _change_card(table, change, MATCH.put(match))


async def put_match_with_fewer_teams(table: Table, change: CardChange, match: Match, gone: Sequence[int]) -> None:
    """Write a match without some of its teams; Conflict if somebody picked one of them."""
    try:
        await _change_card(table, change, MATCH.put(match), *_gates_for_smaller_card(change.after, match.id, gone))
    except ConditionFailed:
        raise Conflict(
            "Somebody has picked a team that would be gone. Keep its place, or remove the match.",
            path=("input", "teams"),
        ) from None


async def remove_match(table: Table, change: CardChange, match: Match) -> None:
    gates = _gates_for_smaller_card(change.after, match.id)
    await _change_card(table, change, MATCH.delete(MATCH.item_key(match)), *gates)


async def reorder_card(table: Table, change: CardChange) -> None:
    await _change_card(table, change)


async def _change_card(table: Table, change: CardChange, *writes: Write) -> None:
    await change_event(table, change.before, change.after, change.once, change.answer, *writes, clock=change.clock)


def _gates_for_smaller_card(event: Event, match: str, teams: Sequence[int] = ()) -> list[Write]:
    """Gate updates that refuse predictions for the larger card. They fail if one of these teams was picked."""
    unpicked = none_picked(match, teams)
    return [
        GATE.change(GATE.at(event=event.id, number=number), values={"card": event.version}, when=unpicked)
        for number in range(SHARDS)
    ]
