"""Events and the matches on their cards; and how a change of them meets the predictions that are submitted meanwhile.

Invariant: every change of an event raises its `version` and requires the version that the change was decided from. A
prediction's transaction checks one of the event's gates, each for one shard of members, which refuses what was decided
from too old a version and counts the picks of what it accepts:

- A change is one write of the event. If predictions that were decided before it must not follow it (a lock, a
  cancellation, an earlier start, a removed match), the gates are raised to its version before it is answered.
- A lock has one write more, after the gates: the event says that it is LOCKED from the first one on, and shows picks
  after the last. Whoever reads it in between raises the gates and makes the last write.
- Teams that disappear must be picked by nobody, so this change of a card and its gates is one transaction. Where
  submissions are so many that it finds the gates busy all the time, every team is picked anyway.

So clocks need not agree: no prediction is accepted after any pick was shown. A gate's version only rises, so raising
the gates one by one may be interrupted, repeated and done by several processes at once. Every gate has a partition key
of its own, so an event takes as many submissions as its gates together.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

from datastore.changes.occurrences import Kind
from datastore.changes.unit_of_work import UnitOfWork, note_created, read_created
from datastore.dynamo import ConditionFailed, Page, Stale, Table, Window, gather_or_cancel, key_text
from datastore.dynamo.attributes import Attribute, Item
from datastore.dynamo.entity import HIGHEST, Entity, Key, Partition, shard_of
from datastore.dynamo.writes import ALWAYS, Condition, Expression, Put, Update, Write, absent, less, where
from datastore.refusals import Conflict, Refusal
from datastore.values.folding import in_form

# ── records ──


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


@dataclass(frozen=True, slots=True)
class Result:
    """How a match ended. Only a match that was won has a winner: the index of a team."""

    outcome: MatchOutcome
    winner: int | None = None
    version: int = 0
    """The event's version that recorded it; 0 if it came with the event."""


THOUSAND = 1000
"""Answers and guesses are whole thousandths, so that sums of distances are exact."""


@dataclass(frozen=True, slots=True)
class TieBreak:
    """A number that an event asks for. `thousandths` is the answer, once it is known."""

    question: str
    unit: str | None = None
    thousandths: int | None = None
    number: int = 0
    """The event's version when the question replaced another one; 0 if it was the first. Guesses have it too.

    It cannot be a hash of the question: that would bring back guesses for an earlier one that is asked again.
    """

    @property
    def answer(self) -> float | None:
        return None if self.thousandths is None else self.thousandths / THOUSAND


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
    """Counts all changes: a change requires the version that it was decided from."""
    card: tuple[str, ...] = ()
    results: dict[str, Result] = field(default_factory=dict)
    generation: int = 1
    """Counts what changes points. It cannot be the version: a renamed event need not be scored again."""
    scored: int | None = None
    """The generation of the points that are shown; 0 after they were taken back, None if there never were any.

    The state does not tell it: points may be behind `generation`, and nobody sees them while they are taken back.
    """
    job: str | None = None
    """The job that gives points or takes them back, or that failed to. No other begins while it runs."""
    locked_at: datetime | None = None
    """When all gates refused predictions. The state does not tell it: picks are shown only after that."""
    description: str | None = None
    place: str | None = None
    image_url: str | None = None
    tie_break: TieBreak | None = None

    @property
    def node_key(self) -> str:
        return self.id

    @property
    def revision(self) -> int:
        return self.version

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

    @property
    def missing_results(self) -> list[str]:
        """The matches of its card without a result, in order."""
        return [match for match in self.card if match not in self.results]

    @property
    def is_locking(self) -> bool:
        """Whether it is locked and its gates may accept what was decided before. Somebody will finish that."""
        return self.state is EventState.LOCKED and not self.revealed

    def changed(self, **changes: Any) -> Event:
        return replace(self, version=self.version + 1, **changes)

    def locked(self) -> Event:
        return self.changed(state=EventState.LOCKED)

    def reveal(self, now: datetime) -> Event:
        """The event once no gate accepts predictions any more."""
        return self.changed(locked_at=now)

    @property
    def may_have_points(self) -> bool:
        """Whether predictions may have points, seen or not. Then it cannot be cancelled."""
        return bool(self.scored) or self.job is not None

    def unscoring(self, job: str) -> Event:
        """While points are being taken back: in a generation of its own, the one before that of the next scoring."""
        return self.changed(generation=self.generation + 2, scored=0, job=job)

    @property
    def taken_back(self) -> int:
        """The generation in which points are taken back while its job does that."""
        return self.generation - 1


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
    number: int = 0
    """The event's version that added it, so it is never given again: the gates count picks under it."""
    version: int = 0
    """The event's version that last changed it; 0 if it came with the event."""

    @property
    def node_key(self) -> str:
        return f"{self.event}:{self.id}"


EVENT = Entity(
    Event,
    Key("EVENT#{id}", "STATE"),
    gsi1=Key("SCHEDULE", "{starts_at}#{id}"),
    gsi2=Key("SCHEDULE#{state}", "{starts_at}#{id}"),
)
MATCH = Entity(Match, Key("EVENT#{event}", "MATCH#{id}"))


@dataclass(frozen=True, slots=True)
class SeasonEntry:
    """An event of a season, listed apart from the events, so that reading seasons reads no cards.

    Invariant: each event has one entry, with its season and its start. The event's own transactions write it.
    """

    season: str
    event: str
    starts_at: datetime


SEASON_ENTRY = Entity(SeasonEntry, Key("SEASONS", "{season}#{event}"))

_ACCENTS = re.compile("[\u0300-\u036f\u200d\ufe00-\ufe0f]")
"""Left out, like what joins characters or chooses how they look."""
_MARKS = ("Mn", "Mc")
"""Vowels, and other parts of words, in scripts such as Devanagari and Thai."""


def slugify(name: str) -> str:
    """A name for URLs: letters with their marks and digits of any script, hyphens for the rest."""
    plain = _ACCENTS.sub("", in_form("NFKD", name))
    folded = in_form("NFC", plain).casefold()
    words = "".join(each if each.isalnum() or unicodedata.category(each) in _MARKS else " " for each in folded)
    return "-".join(words.split()) or "event"


# ── gates ──

GATES = 48
"""A gate takes one transaction of some 10 ms at a time. At 2,000 submissions a second it is busy less than half of the
time, and uses 83 of its key's 1,000 write units. All gates and a match fit into one transaction with their event."""
_FIRST_VERSION = 1

_COUNTER = "m"
"""What the names of the attributes that count picks begin with."""


def gate_number(user: str) -> int:
    """The gate that accepts a member's predictions; never changes."""
    return shard_of(user, GATES)


@dataclass(frozen=True, slots=True)
class Gate:
    """Accepts or refuses the predictions of one shard of members.

    `version` cannot be the event's own: a transaction that checked the event would conflict with all other submissions.
    `picked` counts the accepted picks of each team, under the names that `pick_counter` gives.
    """

    event: str
    number: int
    version: int
    predictions: int = 0
    picked: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PickCounts:
    """The predictions that an event's gates accepted, and their picks of each team."""

    predictions: int = 0
    picked: Mapping[str, int] = field(default_factory=dict)

    def count(self, match: int, team: int) -> int:
        return self.picked.get(pick_counter(match, team), 0)


class GateEntity(Entity[Gate]):
    """Stores every count of `Gate.picked` as an attribute of its own: DynamoDB can only add to top-level attributes."""

    def item(self, record: Gate) -> dict[str, Attribute]:
        item = super().item(replace(record, picked={}))
        item.pop("picked", None)
        return {**item, **{name: {"N": str(number)} for name, number in record.picked.items()}}

    @cached_property
    def read(self) -> Callable[[Item], Gate]:
        read = super().read

        def with_picks(item: Item) -> Gate:
            picked = {name: int(stored["N"]) for name, stored in item.items() if name.startswith(_COUNTER)}
            return replace(read(item), picked=picked)

        return with_picks

    def has(self, name: str) -> bool:
        return name.startswith(_COUNTER) or super().has(name)


GATE = GateEntity(Gate, Key("EVENT#{event}#GATE#{number:02d}", "GATE"))


def pick_counter(match: int, team: int) -> str:
    """The attribute of a gate that counts the picks of one team, by the match's number.

    It is short, so that a gate for 100 teams still fits into the 1 KB of one write unit.
    """
    return f"{_COUNTER}{match}_{team}"


def none_picked(match: int, teams: Sequence[int]) -> Condition:
    """The condition that no prediction accepted by the gate picks one of these teams."""

    def render(expression: Expression) -> str:
        zero = expression.attribute({"N": "0"})
        # Kept short: forty teams must fit into the 4 kB of an expression.
        return f"NOT ({' OR '.join(f'{expression.name(pick_counter(match, team))} > {zero}' for team in teams)})"

    return Condition(render)


def raised_gates(event: str, version: int, when: Condition) -> Iterator[Update]:
    """The writes after which every gate refuses predictions from before a version."""
    for number in range(GATES):
        yield GATE.update(GATE.at(event=event, number=number), values={"version": version}, when=when)


async def place_gates(table: Table, event: str) -> None:
    """All gates of an event that is about to be created; those of an event that exists stay as they are.

    They cannot be placed with the event: with forty matches and ten webhooks a transaction would have 101 writes.
    Nobody has decided anything from an earlier version, so they need not know which one the event begins with.
    """
    gates = [GATE.put(Gate(event, number, _FIRST_VERSION), when=absent()) for number in range(GATES)]
    with suppress(ConditionFailed):
        await table.transact(*gates)


async def raise_gates(table: Table, event: str, version: int) -> None:
    """The same, one by one; gates that were raised further stay as they are."""
    await gather_or_cancel(map(table.try_write, raised_gates(event, version, less("version", version))))


async def read_gates(table: Table, event: str) -> Sequence[Gate]:
    """All gates of an event; none if it does not exist."""
    return await table.find_many([GATE.at(event=event, number=number) for number in range(GATES)], consistent=True)


async def read_pick_counts(table: Table, event: str) -> PickCounts:
    """The sums over all gates; final once the event is locked."""
    gates = await read_gates(table, event)
    picked: Counter[str] = Counter()
    for gate in gates:
        picked.update(gate.picked)
    return PickCounts(sum(gate.predictions for gate in gates), picked)


# ── events ──

Clock = Callable[[], datetime]

CREATED_EVENT = "EVENT"


class Locked(Refusal):
    """The event has begun or was locked, so neither its predictions nor its card can change any more."""

    code = "LOCKED"
    explanation = "This event is locked: predictions and its card can no longer be changed."


class EventChanged(Stale):
    """The event has changed since the change was decided."""


def starts_later(clock: Clock) -> Condition:
    """The condition that an event has not begun, by this process's clock at each attempt."""
    return Condition(lambda into: f"{into.field('starts_at')} > {into.value('starts_at', clock())}")


# ── reading ──


async def read_events(table: Table, ids: Sequence[str]) -> Mapping[str, Event]:
    """The events that exist, by id; a consistent read."""
    return {event.id: event for event in await table.find_many([EVENT.at(id=id_) for id_ in ids], consistent=True)}


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


async def read_next_event(table: Table, now: datetime) -> Event | None:
    """The upcoming event that begins first, as the index shows it."""
    [upcoming] = _partitions(EventState.UPCOMING, now)
    return next(iter((await table.query(upcoming, limit=1)).records), None)


async def every_event(table: Table) -> list[Event]:
    """All events in the order of their ids, the newest included; consistent."""
    noted = await read_created(table, CREATED_EVENT)
    events = await read_events(table, sorted({*noted, *[event.id async for event in all_events(table)]}))
    return list(events.values())


async def read_entries(table: Table, season: str | None = None) -> list[SeasonEntry]:
    """The events of one season or of all, in the order of the seasons' names; consistent."""
    partition = SEASON_ENTRY.on() if season is None else SEASON_ENTRY.on(season=season)
    return [entry async for entry in table.iterate(partition, consistent=True, at_once=1000)]


async def read_matches(table: Table, event: str) -> Mapping[str, Match]:
    return {match.id: match async for match in table.iterate(MATCH.on(event=event), consistent=True)}


# ── writing ──


async def create_event(table: Table, event: Event, matches: Sequence[Match], unit: UnitOfWork) -> None:
    """Create an event, the first matches of its card and its gates. EventChanged if the event exists already."""
    event, numbered = number_matches(event, matches)
    await gather_or_cancel((note_created(table, CREATED_EVENT, event.id, unit.now), place_gates(table, event.id)))
    more = (season_entry(event), *unit.occurred(Kind.EVENT_CREATED, name_of(event)))
    await _replace(table, event, unit, event, *map(MATCH.put, numbered), *more, when=absent())


def season_entry(event: Event) -> Put:
    return SEASON_ENTRY.put(SeasonEntry(event.season, event.id, event.starts_at))


def name_of(thing: Event | Match) -> str:
    """The name of an event or a match in the journal."""
    return f"{type(thing).__name__}:{thing.node_key}"


def number_matches(event: Event, matches: Sequence[Match]) -> tuple[Event, list[Match]]:
    """A new event and its matches with their numbers; a match that is added later gets the event's next version."""
    numbered = [replace(match, number=number) for number, match in enumerate(matches, 1)]
    return replace(event, version=max(event.version, len(numbered))), numbered


async def change_event(
    table: Table,
    before: Event,
    after: Event,
    unit: UnitOfWork,
    answer: Any,
    *writes: Write,
    kind: Kind | None = None,
    about: Event | Match | None = None,
    clock: Clock | None = None,
) -> Event:
    """Write an event and what changes with it; EventChanged if it has changed. `clock`: only before its start.

    The journal gets a change of this kind, of the event or of what it is `about`. Returns the event as it is then.
    """
    when = where(version=before.version) & (ALWAYS if clock is None else starts_later(clock))
    occurrence = () if kind is None else unit.occurred(kind, name_of(about or after))
    moved = () if after.starts_at == before.starts_at else (season_entry(after),)
    await _replace(table, after, unit, answer, *writes, *moved, *occurrence, when=when)
    if _allows_less(before, after):
        await raise_gates(table, after.id, after.version)
    return after


def _allows_less(before: Event, after: Event) -> bool:
    if before.state is not EventState.UPCOMING:
        return False
    if after.state is not EventState.UPCOMING or after.starts_at < before.starts_at:
        return True
    return not set(before.card) <= set(after.card)


async def lock_event(table: Table, before: Event, unit: UnitOfWork, clock: Clock) -> Event:
    """Lock an event and show its picks. A repeat may find the answer before the gates are raised: it shows no picks."""
    after = before.locked()
    occurrence = unit.occurred(Kind.EVENT_LOCKED, name_of(after))
    await _replace(table, after, unit, after, *occurrence, when=where(version=before.version))
    return await finish_lock(table, after, clock)


async def finish_lock(table: Table, event: Event, clock: Clock) -> Event:
    """Raise the gates of a locked event, and then show its picks. Several processes may do it."""
    await raise_gates(table, event.id, event.version)
    now = clock()  # until here a gate may have let somebody in
    shown, unit = event.reveal(now), UnitOfWork.unkeyed(now)
    with suppress(EventChanged):  # an event changes only after another process has shown them
        await _replace(table, shown, unit, shown, when=where(version=event.version))
    return shown


async def _replace(table: Table, after: Event, unit: UnitOfWork, answer: Any, *writes: Write, when: Condition) -> None:
    try:
        await unit.transact(table, answer, EVENT.put(after, when=when), *writes)
    except ConditionFailed as failed:
        if failed.was_written(EVENT, after):
            return
        if not failed.at(0):
            raise
        raise EventChanged from None


async def change_card(
    table: Table,
    before: Event,
    after: Event,
    unit: UnitOfWork,
    answer: Any,
    clock: Clock,
    old: Match | None = None,
    new: Match | None = None,
) -> None:
    """Write an event with another card, before its start, and a match as it becomes: added, changed or removed.

    Conflict if somebody picked one of the teams that the match loses.
    """
    writes: list[Write] = []
    if new is not None:
        kind = Kind.MATCH_ADDED if old is None else Kind.MATCH_CHANGED
        writes.append(MATCH.put(new))
        if old is not None and (gone := range(len(new.teams), len(old.teams))):
            writes += raised_gates(after.id, after.version, none_picked(new.number, gone))
    elif old is not None:
        kind = Kind.MATCH_REMOVED
        writes.append(MATCH.delete(MATCH.item_key(old)))
    else:
        kind = Kind.MATCHES_REORDERED
    try:
        await change_event(table, before, after, unit, answer, *writes, kind=kind, about=new or old, clock=clock)
    except ConditionFailed:
        raise Conflict(
            "Somebody has picked a team that would be gone. Keep its place, or remove the match.",
            path=("input", "teams"),
        ) from None
