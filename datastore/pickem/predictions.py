"""Predictions: the transaction that stores one checks a gate.

The prediction is stored if its gate accepts the version of the event that it was decided from, and if the start in that
version is ahead by this process's clock at each attempt. The same write counts the picks at the gate, so the counts per
team are exact as soon as the event is locked.

After the lock no prediction is in flight: each was stored before its gate was raised, or never will be. So scoring
reads them all, consistently, from the table.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import sample
from typing import Any, TypeVar

from datastore.changes.occurrences import Kind
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import ConditionFailed, Page, PageRequest, Stale, Table, Window, check_before_each_attempt, iso
from datastore.dynamo.entity import Entity, ItemKey, Key, best_first
from datastore.dynamo.paging import shard_limit
from datastore.dynamo.retries import BATCH_READ, chunks
from datastore.dynamo.writes import Condition, Put, absent, less, where
from datastore.people.confirmations import SentEmails
from datastore.people.profiles import SHARDS, OfMember, member_shard
from datastore.pickem.events import (
    EVENT,
    GATE,
    GATES,
    MATCH,
    Clock,
    Event,
    EventState,
    Gate,
    Match,
    gate_number,
    number_matches,
    pick_counter,
    season_entry,
)

# ── predictions ──

R = TypeVar("R")
RANKING_SHARDS = 4
"""Partitions of a ranking. Every page reads all of them, so there are few. On DynamoDB, four take 2,000 changed rows a
second; a million in 20 minutes are 833."""

_SHARDS_AT_ONCE = 4
"""Scoring takes turns between the shards: one alone would take more than a partition key's write units."""


@dataclass(frozen=True, slots=True)
class Share:
    """What a member's standing has for one event: the points of a generation of its results."""

    generation: int
    points: int
    correct: int
    counts: bool = True
    """False: the event was unscored in this generation, and no scorer of an older one may add its share again."""
    closeness: int = 0
    """In thousandths: how much nearer the guess was than the worst one. 0 without a guess or an answer."""

    @classmethod
    def taken_back(cls, generation: int) -> Share:
        """What is left of a share once its points are taken back."""
        return cls(generation, 0, 0, counts=False)


@dataclass(frozen=True, slots=True)
class Prediction(OfMember):
    """One member's picks for one event: the index of a team by match.

    `token` names the request that wrote it. It tells a prediction from the one that replaced it, and a request whose
    answer was lost from others; a version would be the same again after a removal.
    """

    event: str
    user: str
    picks: dict[str, int]
    submitted_at: datetime
    joined_at: datetime
    starts_at: datetime
    token: str
    share: Share | None = None
    """Its part of the member's standing; both are written in one transaction."""
    guess: int | None = None
    """In thousandths. Only `guess_for` says whether it is for the question that the event asks now."""
    question: int = 0
    """The number of the question that the event asked when the picks were submitted."""

    @property
    def node_key(self) -> str:
        return f"{self.event}:{self.user}"

    @property
    def ranking_shard(self) -> int:
        return self.shard % RANKING_SHARDS

    @property
    def nearness(self) -> str:
        """After the points in the ranking: the nearest guess first, then correct picks."""
        return f"{closeness_key(self.share.closeness if self.share else 0)}{best_first(self.correct or 0)}"

    @property
    def is_scored(self) -> bool:
        return self.share is not None and self.share.counts

    @property
    def points(self) -> int | None:
        return self.share.points if self.share and self.share.counts else None

    @property
    def correct(self) -> int | None:
        return self.share.correct if self.share and self.share.counts else None

    def guess_for(self, event: Event) -> int | None:
        """The guess for the question that the event asks, in thousandths; a guess for an earlier question is none."""
        is_asked = event.tie_break is not None and event.tie_break.number == self.question
        return self.guess if is_asked else None


_FARTHEST = 10**15 - 1


def closeness_key(closeness: int) -> str:
    """Sort the greatest closeness first, and all before keys without one."""
    return f"0{_FARTHEST - closeness:015d}~" if closeness else ""


PREDICTION = Entity(
    Prediction,
    Key("EVENT#{event}#{shard:02d}", "USER#{user}"),
    gsi1=Key("USER#{user}", "PREDICTION#{starts_at}#{event}"),
    gsi2=Key(
        "EVENT#{event}#RANKED#{ranking_shard}",
        "{points:best_first}#{nearness}#{joined_at}#{user}",
        when="is_scored",
    ),
)


def prediction_key(event: str, user: str) -> ItemKey[Prediction]:
    return PREDICTION.at(event=event, shard=member_shard(user), user=user)


async def read_prediction(table: Table, event: str, user: str) -> Prediction | None:
    return await table.get(prediction_key(event, user), consistent=True)


async def read_predictions(table: Table, event: str, users: Sequence[str]) -> list[Prediction]:
    """Those that exist, in the order of the users."""
    return await read_at_once(table, [prediction_key(event, user) for user in users])


async def read_at_once(table: Table, keys: Sequence[ItemKey[R]]) -> list[R]:
    """The records that exist, of up to 1,000 members: all batches at the same time, consistent."""
    batches = await asyncio.gather(*(table.find_many(part, consistent=True) for part in chunks(keys, BATCH_READ)))
    return [record for batch in batches for record in batch]


def prediction_position(prediction: Prediction, *, is_scored: bool) -> str:
    """A prediction's place in the order of an event's predictions (see `read_event_predictions`)."""
    return PREDICTION.sort_key(prediction, "gsi2") if is_scored and prediction.is_scored else f"~{prediction.user}"


@dataclass(frozen=True, slots=True)
class Submission:
    """A prediction in place of an earlier one, for the card of an event as it was read."""

    new: Prediction
    before: Prediction | None
    event: Event
    card: Mapping[str, Match]

    def counter_changes(self) -> dict[str, int]:
        """By counter of the gate. Picks of matches that were removed are counted no more."""
        changes: Counter[str] = Counter(pick_counters(self.new, self.card))
        if self.before is None:
            changes["predictions"] = 1
        else:
            changes.subtract(pick_counters(self.before, self.card))
        return {name: number for name, number in changes.items() if number}


def pick_counters(prediction: Prediction, card: Mapping[str, Match]) -> list[str]:
    """The counters of the gate that a prediction adds one to, besides the number of predictions."""
    picked = ((card.get(match), team) for match, team in prediction.picks.items())
    return [pick_counter(match.number, team) for match, team in picked if match is not None]


def as_read(prediction: Prediction | None) -> Condition:
    """The condition that a prediction is as it was read: what the member submitted, and its share."""
    return absent() if prediction is None else where(token=prediction.token, share=prediction.share)


async def submit_prediction(table: Table, submission: Submission, clock: Clock, unit: UnitOfWork, answer: Any) -> None:
    """Store a prediction. Stale if the gate was raised, the start has passed, or the earlier prediction has changed.

    An attempt whose answer was lost may have stored it: the prediction is read back before that.
    """
    new, before, event = submission.new, submission.before, submission.event

    def in_time() -> None:
        if clock() >= event.starts_at:
            raise Stale

    key, changes = GATE.at(event=event.id, number=gate_number(new.user)), submission.counter_changes()
    accepted = less("version", event.version + 1)
    gate = GATE.update(key, add=changes, when=accepted) if changes else GATE.check(key, accepted)
    unchanged = as_read(before)
    try:
        occurrence = unit.occurred(Kind.PREDICTION_SUBMITTED, f"Prediction:{new.node_key}")
        with check_before_each_attempt(in_time):
            await unit.transact(table, answer, PREDICTION.put(new, when=unchanged), gate, *occurrence)
    except ConditionFailed:
        stored = await read_prediction(table, new.event, new.user)
        if stored is None or stored.token != new.token:
            raise Stale from None


async def predictions_to_score(table: Table, event: str, at_once: int) -> AsyncIterator[list[Prediction]]:
    """All predictions of an event, up to `at_once` at a time; consistent reads.

    The first shards are random, so that several scorers seldom work on the same ones.
    """
    rest = [PREDICTION.on(event=event, shard=shard) for shard in sample(range(SHARDS), SHARDS)]
    while rest:
        now, later = rest[:_SHARDS_AT_ONCE], rest[_SHARDS_AT_ONCE:]
        limit = at_once // _SHARDS_AT_ONCE
        batches = await asyncio.gather(*(table.query(part, limit=limit, consistent=True) for part in now))
        rest = later + [part.past(batch.last) for part, batch in zip(now, batches, strict=True) if batch.last]
        if predictions := [prediction for batch in batches for prediction in batch.records]:
            yield predictions


async def read_event_predictions(table: Table, event: Event, window: Window) -> Page[Prediction]:
    """Best first once they are scored; until then in the order of the members' ids."""
    if event.scored:
        ranked = [PREDICTION.on("gsi2", event=event.id, ranking_shard=shard) for shard in range(RANKING_SHARDS)]
        request = window.open(f"predictions:{event.id}:ranked")
        return await table.page(ranked, request, limit=shard_limit(request.wanted, RANKING_SHARDS))
    shards = [PREDICTION.on(event=event.id, shard=shard) for shard in range(SHARDS)]
    request = window.open(f"predictions:{event.id}")
    return await table.page(shards, request, limit=shard_limit(request.wanted, SHARDS), consistent=True)


async def read_member_predictions(table: Table, user: str, request: PageRequest) -> Page[Prediction]:
    """Newest event first, by the start it had when the prediction was submitted or scored."""
    return await table.page([PREDICTION.on("gsi1", user=user).newest_first()], request)


# ── seeding ──
# Seeding: writes an event with its matches and predictions in bulk, counted as if each had been submitted.


async def seed_event(table: Table, event: Event, matches: Sequence[Match], predictions: Iterable[Prediction]) -> None:
    """Write an event with its matches and predictions. Seeding it again writes the same records."""
    await table.write_many(event_items(event, matches, predictions))


def event_items(event: Event, matches: Sequence[Match], predictions: Iterable[Prediction]) -> Iterator[Put]:
    """The event, its season's entry, its matches, its predictions, and its gates with what the predictions count."""
    event, numbered = number_matches(event, matches)
    yield EVENT.put(event)
    yield season_entry(event)
    yield from map(MATCH.put, numbered)
    numbers = {match.id: match.number for match in numbered}
    counts: list[Counter[str]] = [Counter() for _ in range(GATES)]
    predicted = [0] * GATES
    for prediction in predictions:
        gate = gate_number(prediction.user)
        predicted[gate] += 1
        counts[gate].update(pick_counter(numbers[match], team) for match, team in prediction.picks.items())
        yield PREDICTION.put(prediction)
    for number, counted in enumerate(counts):
        yield GATE.put(Gate(event.id, number, event.version, predicted[number], dict(counted)))


# ── reminders ──
# Reminders before the lock: a record for each member and event, so that nobody gets a second one.
#
# The event is in the key, so an event that is postponed reminds nobody again.

RECORD_LIFETIME = timedelta(days=400)
"""Longer than an event is likely to be postponed."""


@dataclass(frozen=True, slots=True)
class Reminder:
    """A member's reminder of an event, which a run has begun to send, and then sent."""

    user: str
    event: str
    expires: datetime
    sent: datetime | None = None


REMINDER = Entity(Reminder, Key("USER#{user}", "LOCKREMINDER#{event}"), ttl="expires")
REMINDERS = SentEmails(REMINDER)


def events_to_lock(table: Table, now: datetime, until: datetime) -> AsyncIterator[Event]:
    """The upcoming events that start between these moments, as the index shows them."""
    partition = EVENT.on("gsi2", state=EventState.UPCOMING)
    return table.iterate(partition.between(iso(now), iso(until)))


async def read_reminded_or_predicted(table: Table, event: str, users: Sequence[str]) -> Collection[str]:
    """Those of the members who need no reminder of the event: they have a prediction, or were reminded before."""
    reminders = await table.find_many([REMINDER.at(user=user, event=event) for user in users], consistent=True)
    predictions = await table.find_many([prediction_key(event, user) for user in users], consistent=True)
    sent = {reminder.user for reminder in reminders if reminder.sent is not None}
    return sent | {prediction.user for prediction in predictions}
