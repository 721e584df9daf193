"""Events, the matches on their cards, and the gates that predictions pass.

An event's state, its card's order, its results and the generation they belong to are one item: whoever reads it knows
which results a generation has. Every change raises `version` and requires the version it was decided from.

A gate is open or closed for good measure beside the event, one for each shard of members: a prediction's transaction
asks one gate, so submissions do not queue for one item. The gates are closed in the transaction that locks the event,
and what is hidden until the lock is shown only when that transaction is done. So it does not matter whose clock is
right: nobody gets in after anybody has looked.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

from datastore.dynamo import ConditionFailed, Page, Table, Window, key_text
from datastore.dynamo.attributes import Attribute, Item
from datastore.dynamo.conditions import Condition, absent, where
from datastore.dynamo.entity import Entity, Partition
from datastore.dynamo.keys import HIGHEST, Key
from datastore.dynamo.writes import Write
from datastore.people import SHARDS
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


class GateState(StrEnum):
    OPEN = "open"
    CLOSED = "closed"


class Locked(Refusal):
    """The event has begun, or was locked: neither predictions nor its card can change any more."""

    code = "LOCKED"
    explanation = "This event is locked: predictions and its card can no longer be changed."


class VersionConflict(Conflict):
    """The event is not what the change was decided from."""


@dataclass(frozen=True, slots=True)
class Result:
    """How a match ended. Only a match that was won has a winner, the place of a team."""

    outcome: MatchOutcome
    winner: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One evening of matches. `card` is the order of its matches; `generation` counts its results."""

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
    """The generation whose scoring has begun; from then on the event cannot be cancelled."""
    scored: int | None = None
    """The generation that the predictions' points are of."""
    predictions: int | None = None
    """How many predictions were scored."""
    locked_at: datetime | None = None
    """When the gates were closed, after which picks are no secret."""

    @property
    def node_key(self) -> str:
        return self.id

    @property
    def slug(self) -> str:
        """Follows the name and the day."""
        return f"{self.starts_at:%Y-%m-%d}-{slug_of(self.name)}"

    @property
    def revealed(self) -> bool:
        return self.locked_at is not None

    def is_due(self, now: datetime) -> bool:
        """Whether it should be locked by now and is not yet."""
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
    """Somebody against somebody, for points. Its place on the card and its result are the event's."""

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


@dataclass(frozen=True, slots=True)
class Gate:
    """What the predictions of one shard of members pass.

    `card` is the event's version when its card last lost something: predictions made for an older card do not pass.
    `picked` counts the picks of each team that passed.
    """

    event: str
    number: int
    state: GateState
    lock_at: datetime
    card: int = 0
    predictions: int = 0
    picked: dict[str, int] = field(default_factory=dict)


EVENT = Entity(
    Event,
    Key("EVENT#{id}", "EVENT"),
    gsi1=Key("EVENTS", "{starts_at}#{id}"),
    gsi2=Key("EVENTS#{state}", "{starts_at}#{id}"),
)
MATCH = Entity(Match, Key("EVENT#{event}", "MATCH#{id}"))


class _Gates(Entity[Gate]):
    """Gates, whose counts of picks are an attribute each: only those of the top level can be added to."""

    def item(self, record: Gate) -> dict[str, Attribute]:
        item = super().item(replace(record, picked={}))
        item.pop("picked", None)
        return {**item, **{name: {"N": str(number)} for name, number in record.picked.items()}}

    @cached_property
    def read(self) -> Callable[[Item], Gate]:
        read = super().read

        def with_picks(item: Item) -> Gate:
            picked = {name: int(stored["N"]) for name, stored in item.items() if name.startswith(PICKED)}
            return replace(read(item), picked=picked)

        return with_picks

    def stored_name(self, name: str) -> str:
        return name if name.startswith(PICKED) else super().stored_name(name)


PICKED = "picked_"
GATE = _Gates(Gate, Key("EVENT#{event}", "GATE#{number:02d}"))


def picked(match: str, team: int) -> str:
    """The name under which a gate counts the picks of one team."""
    return f"{PICKED}{match}_{team}"


def unpicked(match: str, teams: Sequence[int]) -> Condition:
    """Nobody's pick is for one of these teams any more."""

    def spell(into: Any) -> str:
        if not teams:
            return ""
        zero = into.attribute({"N": "0"})
        # Short: forty teams must fit into the 4 kB that an expression may have.
        return f"NOT ({' OR '.join(f'{into.name(picked(match, team))} > {zero}' for team in teams)})"

    return Condition(spell)


def later(name: str, clock: Clock) -> Condition:
    """A moment lies ahead, by this process's clock at the time of each attempt."""
    return Condition(lambda into: f"{into.field(name)} > {into.value(name, clock())}")


_ACCENTS = re.compile("[\u0300-\u036f]")


def slug_of(name: str) -> str:
    """A name for addresses: letters and digits of any script, the rest hyphens."""
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", name))
    return re.sub(r"[\W_]+", "-", unicodedata.normalize("NFC", plain).casefold()).strip("-") or "event"


# ── reading ──


async def events_by_id(table: Table, ids: Sequence[str]) -> Mapping[str, Event]:
    """The events there are, as they are now."""
    found = await table.get_many([EVENT.at(id=id_) for id_ in ids], consistent=True)
    return {event.id: event for event in found if event is not None}


async def event_page(table: Table, state: EventState | None, window: Window, now: datetime, scope: str) -> Page[Event]:
    """Newest first."""
    partitions = [EVENT.on("gsi1")] if state is None else _partitions_of(state, now)
    return await table.page([partition.newest_first() for partition in partitions], window.open(scope))


def _partitions_of(state: EventState, now: datetime) -> list[Partition[Event]]:
    """Time alone makes an upcoming event a locked one, so both are read by their start."""
    stored, begun = EVENT.on("gsi2", state=state), f"{key_text(now)}#{HIGHEST}"
    if state is EventState.UPCOMING:
        return [stored.between(begun, None)]
    if state is EventState.LOCKED:
        return [stored, EVENT.on("gsi2", state=EventState.UPCOMING).between(None, begun)]
    return [stored]


def all_events(table: Table) -> AsyncIterator[Event]:
    """Oldest first."""
    return table.iterate(EVENT.on("gsi1"))


async def matches_of(table: Table, event: str) -> Mapping[str, Match]:
    return {match.id: match async for match in table.iterate(MATCH.on(event=event), consistent=True)}


async def gates_of(table: Table, event: str) -> Sequence[Gate]:
    return [gate async for gate in table.iterate(GATE.on(event=event), consistent=True)]


# ── writing ──


@dataclass(frozen=True, slots=True)
class CardChange:
    """An event before and after a change of its card, which is made only before the event begins."""

    before: Event
    after: Event
    once: Once
    answer: Any
    clock: Clock


async def create_event(table: Table, event: Event, matches: Sequence[Match], once: Once, *, new: bool = True) -> None:
    """An event, its gates and the first matches of its card. Conflict if the event is there already."""
    gates = (Gate(event.id, number, gate_state(event), event.starts_at) for number in range(SHARDS))
    writes: list[Write] = [GATE.put(gate) for gate in gates]
    writes += [MATCH.put(match) for match in matches]
    when = absent() if new else where(version=event.version)
    await _replace(table, event, once, event, *writes, when=when)


async def change_event(
    table: Table, before: Event, after: Event, once: Once, answer: Any, *writes: Write, clock: Clock | None = None
) -> None:
    """The event with what changes together with it, or VersionConflict. With a clock: only before the event begins."""
    when = where(version=before.version)
    if clock is not None:
        when &= later("starts_at", clock)
    if (before.state, before.starts_at) != (after.state, after.starts_at):
        writes = (*_gates_as(after), *writes)
    await _replace(table, after, once, answer, *writes, when=when)


async def _replace(table: Table, after: Event, once: Once, answer: Any, *writes: Write, when: Condition) -> None:
    try:
        await once.transact(table, answer, EVENT.put(after, when=when), *writes)
    except ConditionFailed as failed:
        found = failed.failures.get(0)
        if failed.doubtful and found and EVENT.read(found) == after:
            return  # an earlier attempt of ours was applied, and only its answer was lost
        if not failed.at(0):
            raise
        raise VersionConflict from None


def gate_state(event: Event) -> GateState:
    return GateState.OPEN if event.state is EventState.UPCOMING else GateState.CLOSED


def _gates_as(event: Event) -> list[Write]:
    """All gates as the event's state and start want them."""
    values = {"state": gate_state(event), "lock_at": event.starts_at}
    return [GATE.change(GATE.at(event=event.id, number=number), values=values) for number in range(SHARDS)]


async def put_match(table: Table, change: CardChange, match: Match) -> None:
    """A match that is new on the card, or that keeps its teams' places."""
    await _change_card(table, change, MATCH.put(match))


async def put_match_with_fewer_teams(table: Table, change: CardChange, match: Match, gone: Sequence[int]) -> None:
    """A match without some of its teams; Conflict if somebody picked one of them."""
    try:
        await _change_card(table, change, MATCH.put(match), *_gates_for_less(change.after, match.id, gone))
    except ConditionFailed:
        raise Conflict(
            "Somebody has picked a team that would be gone. Keep its place, or remove the match.",
            path=("input", "teams"),
        ) from None


async def remove_match(table: Table, change: CardChange, match: Match) -> None:
    gates = _gates_for_less(change.after, match.id)
    await _change_card(table, change, MATCH.delete(MATCH.place_of(match)), *gates)


async def reorder_card(table: Table, change: CardChange) -> None:
    await _change_card(table, change)


async def _change_card(table: Table, change: CardChange, *writes: Write) -> None:
    await change_event(table, change.before, change.after, change.once, change.answer, *writes, clock=change.clock)


def _gates_for_less(event: Event, match: str, teams: Sequence[int] = ()) -> list[Write]:
    """Lets no prediction pass that was made for more than the card now has, unless these teams were picked."""
    gone = unpicked(match, teams)
    return [
        GATE.change(GATE.at(event=event.id, number=number), values={"card": event.version}, when=gone)
        for number in range(SHARDS)
    ]
