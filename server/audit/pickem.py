"""Every prediction passed its gate in time and is counted there; points and standings equal a fresh scoring.

While an event is being scored its points are incomplete, so run the audit when scoring is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import timedelta

from datastore import pickem as pickem_store
from datastore.pickem import (
    Event,
    Gate,
    Histogram,
    Match,
    Prediction,
    Share,
    Standing,
    all_events,
    gate_state,
    pick_counter,
    read_gates,
    read_matches,
)
from datastore.pickem.auditing import GATE_NUMBERS, all_predictions, all_standings, listed_standings
from resolvers.context import Services
from resolvers.pickem import rules

CLOCK_SKEW = timedelta(seconds=5)
"""How far the clocks of two servers may differ before a submission after the lock counts as a breach."""


async def breaches(services: Services) -> AsyncIterator[str]:
    shares: Counter[str] = Counter()
    async for event in all_events(services.table):
        async for breach in _event_breaches(services, event, shares):
            yield f"pickem: {event.name} ({event.id}): {breach}"
    async for breach in _standing_breaches(services, shares):
        yield f"pickem: {breach}"


async def _event_breaches(services: Services, event: Event, shares: Counter[str]) -> AsyncIterator[str]:
    """Also counts the scored predictions of each season in `shares`."""
    gates = {gate.number: gate for gate in await read_gates(services.table, event.id)}
    matches = await read_matches(services.table, event.id)
    for breach in _gate_breaches(event, gates):
        yield breach
    if missing := set(event.card) ^ set(matches):
        yield f"the card and its matches differ: {', '.join(sorted(missing))}"
    counted: dict[int, Counter[str]] = {shard: Counter() for shard in gates}
    async for prediction in all_predictions(services.table, event.id):
        shares[event.season] += prediction.is_scored
        counted.setdefault(prediction.shard, Counter()).update(_counts(prediction))
        for breach in _prediction_breaches(event, prediction, matches):
            yield f"{prediction.user}: {breach}"
        if share_breach := await _share_breach(services, event, prediction):
            yield f"{prediction.user}: {share_breach}"
    for shard, gate in gates.items():
        if difference := _difference(gate, counted[shard]):
            yield f"gate {shard} and its predictions differ: {difference}"


def _gate_breaches(event: Event, gates: Mapping[int, Gate]) -> Iterator[str]:
    if set(gates) != set(GATE_NUMBERS):
        yield f"{len(gates)} gates instead of {len(GATE_NUMBERS)}"
    for gate in gates.values():
        if gate.state is not gate_state(event) or gate.lock_at != event.starts_at:
            yield f"gate {gate.number} is {gate.state.value} until {gate.lock_at}; the event is {event.state.value}"


def _counts(prediction: Prediction) -> Iterator[str]:
    yield "predictions"
    for match, team in prediction.picks.items():
        yield pick_counter(match, team)


def _difference(gate: Gate, counted: Counter[str]) -> str:
    stored = Counter({**gate.picked, "predictions": gate.predictions})
    return ", ".join(
        f"{name} {stored[name]} instead of {counted[name]}"
        for name in sorted({*stored, *counted})
        if stored[name] != counted[name]
    )


def _prediction_breaches(event: Event, prediction: Prediction, matches: Mapping[str, Match]) -> Iterator[str]:
    if event.locked_at is not None and prediction.submitted_at > event.locked_at + CLOCK_SKEW:
        yield f"submitted at {prediction.submitted_at}, after the lock at {event.locked_at}"
    if event.scored == event.generation:
        fresh = rules.score(prediction.picks, rules.winners(event, matches))
        expected = (event.generation, fresh.points, fresh.correct)
        if (prediction.generation, prediction.points, prediction.correct) != expected:
            points, generation = prediction.points, prediction.generation
            yield f"{points} points of generation {generation}; a fresh scoring gives {fresh.points}"


async def _share_breach(services: Services, event: Event, prediction: Prediction) -> str | None:
    if not prediction.is_scored:
        return None
    standing = await pickem_store.read_standing(services.table, prediction.user, event.season)
    share = standing.shares.get(event.id) if standing else None
    if share != Share(prediction.generation, prediction.points or 0, prediction.correct or 0):
        return f"the standing has {share} for {prediction.points} points of generation {prediction.generation}"
    return None


async def _standing_breaches(services: Services, shares: Counter[str]) -> AsyncIterator[str]:
    points: dict[str, Counter[int]] = {}
    shares_in_standings: Counter[str] = Counter()
    async for standing in all_standings(services.table):
        shares_in_standings[standing.season] += len(standing.shares)
        points.setdefault(standing.season, Counter())[standing.points] += 1
        if breach := _sum_breach(standing):
            yield f"{standing.user} in {standing.season}: {breach}"
    for season, counts in points.items():
        if shares_in_standings[season] != shares[season]:
            yield f"{season}: {shares_in_standings[season]} shares in standings, {shares[season]} scored predictions"
        async for breach in _season_breaches(services, season, counts):
            yield f"{season}: {breach}"


def _sum_breach(standing: Standing) -> str | None:
    points = sum(share.points for share in standing.shares.values())
    correct = sum(share.correct for share in standing.shares.values())
    if (standing.points, standing.correct) != (points, correct):
        return f"{standing.points} points, {standing.correct} correct; its events add up to {points} and {correct}"
    return None


async def _season_breaches(services: Services, season: str, counts: Counter[int]) -> AsyncIterator[str]:
    listed = 0
    async for shard, standing in listed_standings(services.table, season):
        listed += 1
        if standing.ranking_shard != shard:
            yield f"{standing.user} is listed in shard {shard} of the ranking instead of {standing.ranking_shard}"
    if listed != counts.total():
        yield f"{counts.total()} standings, {listed} listed"
    histogram = await _published_histogram(services, season)
    if histogram is None:
        yield "no histogram was published"
        return
    for score in counts:
        rank = 1 + sum(number for other, number in counts.items() if other > score)
        if histogram.rank(score) != rank:
            yield f"{score} points have the rank {histogram.rank(score)} instead of {rank}"


async def _published_histogram(services: Services, season: str) -> Histogram | None:
    seasons = await pickem_store.read_seasons(services.table, [season])
    if season not in seasons:
        return None
    return await pickem_store.read_season_histogram(services.table, season, seasons[season].published)
