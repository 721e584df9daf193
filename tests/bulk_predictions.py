"""A locked event with any number of predictions, and the check of their scoring; for tests and benchmarks."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

from datastore.dynamo import Table
from datastore.pickem.events import Event, EventState, Match, MatchOutcome, Result, Team
from datastore.pickem.predictions import Prediction
from datastore.pickem.standings import all_predictions, listed_standings
from resolvers.pickem import scoring
from resolvers.pickem.season_files import derived_id

START = datetime(2026, 11, 1, 20, tzinfo=UTC)
MATCHES = 10


def locked_event(season: str, name: str = "Crowded") -> tuple[Event, tuple[Match, ...]]:
    """A locked event of ten decided matches."""
    event_id = derived_id(START, season, name)
    matches = tuple(
        Match(event_id, derived_id(START, event_id, str(index)), f"M{index}", 5 + index, (Team(("A",)), Team(("B",))))
        for index in range(MATCHES)
    )
    card = tuple(match.id for match in matches)
    event = Event(event_id, name, season, START, START, EventState.LOCKED, version=MATCHES, card=card)
    results = {match.id: Result(MatchOutcome.WON, index % 2) for index, match in enumerate(matches)}
    return replace(event, results=results, generation=1 + MATCHES, locked_at=START), matches


def corrected(event: Event) -> Event:
    """The same event with the opposite result of its first match."""
    first = event.card[0]
    opposite = Result(MatchOutcome.WON, 1 - (event.results[first].winner or 0))
    return event.changed(results={**event.results, first: opposite}, generation=event.generation + 1)


def generate_predictions(event: Event, number: int) -> Iterator[Prediction]:
    """Random picks, the same ones for the same event; the members joined at intervals of a second."""
    random = Random(event.id)
    for member in range(number):
        yield Prediction(
            event=event.id,
            user=f"fan-{member:07d}",
            picks={match: random.randrange(2) for match in event.card if random.random() < 0.9},
            submitted_at=START - timedelta(hours=2),
            joined_at=START - timedelta(days=100) + timedelta(seconds=member),
            starts_at=event.starts_at,
            token=str(member),
        )


async def count_scored(table: Table, event: Event) -> int:
    """The number of predictions that are scored for the event's generation."""
    predictions = [prediction async for prediction in all_predictions(table, event.id)]
    return sum(one.share is not None and one.share.generation >= event.generation for one in predictions)


async def count_wrong_scores(table: Table, event: Event, matches: Sequence[Match]) -> int:
    """The number of predictions whose points differ from a fresh scoring."""
    winners = scoring.winners(event, {match.id: match for match in matches})
    wrong = 0
    async for prediction in all_predictions(table, event.id):
        stored = scoring.Score(prediction.points or 0, prediction.correct or 0)
        wrong += stored != scoring.worth(prediction.picks, winners)
    return wrong


async def count_wrong_standings(table: Table, event: Event, matches: Sequence[Match], number: int) -> int:
    """The number of standings in the season of this one event that are missing or differ from a fresh scoring."""
    winners = scoring.winners(event, {match.id: match for match in matches})
    predictions = generate_predictions(event, number)
    fresh = {prediction.user: scoring.worth(prediction.picks, winners) for prediction in predictions}
    right = 0
    async for _, standing in listed_standings(table, event.season):
        right += fresh.get(standing.user) == scoring.Score(standing.points, standing.correct)
    return number - right
