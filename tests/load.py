"""A crowd that has predicted: an event, its gates and any number of predictions, written straight into the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

from datastore.dynamo import Table
from datastore.dynamo.writes import Put
from datastore.people import SHARDS, shard_of
from datastore.pickem import (
    EVENT,
    GATE,
    MATCH,
    PREDICTION,
    RANKING_SHARDS,
    STANDING,
    Event,
    EventState,
    Gate,
    GateState,
    Match,
    MatchOutcome,
    Prediction,
    Result,
    Team,
    pick_counter,
)
from resolvers.pickem import rules
from resolvers.pickem.season_files import derived_id

START = datetime(2026, 11, 1, 20, tzinfo=UTC)
MATCHES = 10


def locked_event(season: str, name: str = "Crowded") -> tuple[Event, tuple[Match, ...]]:
    """A locked event of ten decided matches."""
    id_ = derived_id(START, season, name)
    matches = tuple(
        Match(id_, derived_id(START, id_, str(place)), f"M{place}", 5 + place, (Team(("A",)), Team(("B",))))
        for place in range(MATCHES)
    )
    event = Event(id_, name, season, START, START, EventState.LOCKED, card=tuple(match.id for match in matches))
    results = {match.id: Result(MatchOutcome.WON, place % 2) for place, match in enumerate(matches)}
    return replace(event, results=results, generation=1 + MATCHES, locked_at=START), matches


def corrected(event: Event) -> Event:
    """The same event after the first match was decided the other way."""
    first = event.card[0]
    other = Result(MatchOutcome.WON, 1 - (event.results[first].winner or 0))
    return event.changed(results={**event.results, first: other}, generation=event.generation + 1)


def predictions(event: Event, size: int) -> Iterator[Prediction]:
    """Random picks, the same ones for the same event; members joined one second after another."""
    random = Random(event.id)
    for number in range(size):
        at = START - timedelta(hours=2)
        yield Prediction(
            event=event.id,
            user=f"fan-{number:07d}",
            picks={match: random.randrange(2) for match in event.card if random.random() < 0.9},
            submitted_at=at,
            joined_at=START - timedelta(days=100) + timedelta(seconds=number),
            starts_at=event.starts_at,
            token=str(number),
        )


def puts(event: Event, matches: Sequence[Match], size: int) -> Iterator[Put]:
    """All of it as writes; the gates count what would have passed them."""
    counts: list[Counter[str]] = [Counter() for _ in range(SHARDS)]
    for one in predictions(event, size):
        counted = counts[shard_of(one.user)]
        counted["predictions"] += 1
        counted.update(pick_counter(match, team) for match, team in one.picks.items())
        yield PREDICTION.put(one)
    for shard, counted in enumerate(counts):
        passed = counted.pop("predictions", 0)
        yield GATE.put(Gate(event.id, shard, GateState.CLOSED, event.starts_at, 0, passed, dict(counted)))
    yield EVENT.put(event)
    yield from map(MATCH.put, matches)


async def plant(table: Table, event: Event, matches: Sequence[Match], size: int) -> None:
    await table.write_many(puts(event, matches, size))


async def stored(table: Table, event: Event) -> AsyncIterator[Prediction]:
    for shard in range(SHARDS):
        async for one in table.iterate(PREDICTION.on(event=event.id, shard=shard), consistent=True, at_once=500):
            yield one


async def marked(table: Table, event: Event) -> int:
    """How many are scored for the event's generation."""
    return sum([one.generation >= event.generation async for one in stored(table, event)])


async def wrong(table: Table, event: Event, matches: Sequence[Match]) -> int:
    """How many differ from a fresh scoring."""
    won = rules.winners(event, {match.id: match for match in matches})
    return sum(
        [
            rules.score(one.picks, won) != rules.Score(one.points or 0, one.correct or 0)
            async for one in stored(table, event)
        ]
    )


async def wrong_standings(table: Table, event: Event, matches: Sequence[Match], size: int) -> int:
    """How many standings of the season differ from a fresh scoring of its one event, or are missing."""
    won = rules.winners(event, {match.id: match for match in matches})
    fresh = {one.user: rules.score(one.picks, won) for one in predictions(event, size)}
    right = 0
    for shard in range(RANKING_SHARDS):
        async for one in table.iterate(STANDING.on("gsi2", season=event.season, ranking_shard=shard), at_once=500):
            right += fresh.get(one.user) == rules.Score(one.points, one.correct)
    return size - right
