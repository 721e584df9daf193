"""A season of three events: one scored, one under way, one to predict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

from datastore import people
from datastore.people import SHARDS, Profile, shard_of
from datastore.pickem.events import (
    EVENT,
    GATE,
    MATCH,
    Event,
    EventState,
    Gate,
    GateState,
    Match,
    MatchOutcome,
    Result,
    Team,
    picked,
)
from datastore.pickem.predictions import PREDICTION, Prediction
from resolvers.context import Services
from resolvers.pickem.rules import in_order
from resolvers.pickem.scoring import Progress, score
from resolvers.pickem.season_files import id_made_of
from server.demo.people import MEMBERS

SEASON = "2026"
PLAYERS = 150
_PRESHOW = 2
_LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
_WRESTLERS = (
    "Vega", "Okafor", "Lindqvist", "Moreau", "Tanaka", "Castellan", "Brandt", "Ferro", "Quill", "Ashdown", "Petrova",
    "Mbeki", "Hollis", "Ruiz", "Novak", "Sinclair",
)  # fmt: skip
_KINDS = ("Singles", "Tag Team", "Triple Threat", "Ladder Match", "Championship")


async def plant(services: Services) -> str:
    now = services.clock()
    shows = (
        ("Autumn Conflict", now - timedelta(days=9), 7),
        ("Night of Thunder", now - timedelta(hours=1), 4),
        ("Winter Crown", now + timedelta(days=6), 0),
    )
    for place, (name, starts_at, results) in enumerate(shows):
        await _plant_event(services, Random(place), _event(name, starts_at, now), results)
    await score(services, _id("Autumn Conflict"), Progress())
    return f"{len(shows)} events with predictions of {PLAYERS} members"


def _id(name: str) -> str:
    """The same at every planting, so that an interrupted one leaves nothing twice."""
    return id_made_of(_LONG_AGO, "demo", name)


def _event(name: str, starts_at: datetime, now: datetime) -> Event:
    event = Event(_id(name), name, SEASON, starts_at.replace(minute=0, second=0, microsecond=0), now)
    return event if event.starts_at > now else replace(event, state=EventState.LOCKED, locked_at=event.starts_at)


async def _plant_event(services: Services, random: Random, bare: Event, results: int) -> None:
    matches = tuple(_matches(random, bare))
    card = in_order([match.id for match in matches], (match.id for match in matches if match.preshow))
    by_id = {match.id: match for match in matches}
    decided = {id_: _result(random, by_id[id_]) for id_ in card[:results]}
    event = replace(bare, card=card, results=decided, generation=1 + len(decided))
    table = services.table
    profiles = await people.profiles(table, [user for user, _ in MEMBERS[:PLAYERS]])
    predictions = [_prediction(random, event, matches, profile) for profile in profiles.values()]
    await table.write_many([EVENT.put(event), *(MATCH.put(match) for match in matches)])
    await table.write_many(PREDICTION.put(one) for one in predictions)
    await table.write_many(GATE.put(gate) for gate in _gates(event, predictions))


def _matches(random: Random, event: Event) -> Iterator[Match]:
    names = random.sample(_WRESTLERS, len(_WRESTLERS))
    for place in range(7):
        kind = _KINDS[place % len(_KINDS)]
        sizes = {"Tag Team": (2, 2), "Triple Threat": (1, 1, 1)}.get(kind, (1, 1))
        teams = tuple(
            Team(tuple(names.pop() if names else f"Challenger {place}" for _ in range(size)), champion=number == 0)
            for number, size in enumerate(sizes)
        )
        titles = (f"{event.name} Title",) if kind == "Championship" else ()
        yield Match(
            event.id,
            id_made_of(_LONG_AGO, event.id, str(place)),
            kind,
            5 * (place + 1),
            teams,
            titles,
            place < _PRESHOW,
        )


def _result(random: Random, match: Match) -> Result:
    if random.random() < 0.1:  # noqa: PLR2004 - one in ten is a draw
        return Result(MatchOutcome.DRAWN)
    return Result(MatchOutcome.WON, random.randrange(len(match.teams)))


def _prediction(random: Random, event: Event, matches: Sequence[Match], profile: Profile) -> Prediction:
    at = min(event.starts_at, event.created_at) - timedelta(minutes=random.randrange(60, 6000))
    return Prediction(
        event=event.id,
        user=profile.user,
        picks={match.id: random.randrange(len(match.teams)) for match in matches if random.random() < 0.9},  # noqa: PLR2004
        submitted_at=at,
        joined_at=profile.joined_at,
        starts_at=event.starts_at,
        token=id_made_of(at, event.id, profile.user),
    )


def _gates(event: Event, predictions: Sequence[Prediction]) -> Iterator[Gate]:
    state = GateState.OPEN if event.state is EventState.UPCOMING else GateState.CLOSED
    for number in range(SHARDS):
        passed = [one for one in predictions if shard_of(one.user) == number]
        counts = Counter(picked(match, team) for one in passed for match, team in one.picks.items())
        yield Gate(event.id, number, state, event.starts_at, 0, len(passed), dict(counts))
