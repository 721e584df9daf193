"""Every prediction passed its gate in time and is counted there; every point stands where a fresh scoring would put it.

While an event is being scored its points are on their way: run it after a drain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import timedelta

from datastore.people import SHARDS, shard_of
from datastore.pickem import standings as stored
from datastore.pickem.events import Event, EventState, Gate, GateState, Match, all_events, gates_of, matches_of, picked
from datastore.pickem.predictions import PREDICTION, RANKING_SHARDS, Prediction
from datastore.pickem.standings import SEASON, STANDING, Share, Standing
from resolvers.context import Services
from resolvers.pickem import rules

SKEW = timedelta(seconds=5)
"""How far the clocks of two servers may be apart before a submission after the lock counts as one."""


async def breaches(services: Services) -> AsyncIterator[str]:
    shares: Counter[str] = Counter()
    async for event in all_events(services.table):
        async for breach in _of_event(services, event, shares):
            yield f"pickem: {event.name} ({event.id}): {breach}"
    async for breach in _of_standings(services, shares):
        yield f"pickem: {breach}"


async def _of_event(services: Services, event: Event, shares: Counter[str]) -> AsyncIterator[str]:
    gates = {gate.number: gate for gate in await gates_of(services.table, event.id)}
    matches = await matches_of(services.table, event.id)
    for breach in _of_gates(event, gates):
        yield breach
    if missing := set(event.card) ^ set(matches):
        yield f"the card and its matches differ: {', '.join(sorted(missing))}"
    for shard in range(SHARDS):
        counted: Counter[str] = Counter()
        async for one in services.table.iterate(PREDICTION.on(event=event.id, shard=shard), consistent=True):
            counted["predictions"] += 1
            counted.update(picked(match, team) for match, team in one.picks.items())
            shares[event.season] += one.is_scored
            for breach in _of_prediction(event, one, matches):
                yield f"{one.user}: {breach}"
            if breach_of_share := await _of_share(services, event, one):
                yield f"{one.user}: {breach_of_share}"
        if shard in gates and (difference := _difference(gates[shard], counted)):
            yield f"gate {shard} counts otherwise than its predictions: {difference}"


def _of_gates(event: Event, gates: Mapping[int, Gate]) -> Iterator[str]:
    if set(gates) != set(range(SHARDS)):
        yield f"{len(gates)} gates instead of {SHARDS}"
    wanted = GateState.OPEN if event.state is EventState.UPCOMING else GateState.CLOSED
    for gate in gates.values():
        if gate.state is not wanted or gate.lock_at != event.starts_at:
            yield f"gate {gate.number} is {gate.state.value} until {gate.lock_at}; the event is {event.state.value}"


def _difference(gate: Gate, counted: Counter[str]) -> str:
    kept = Counter({**gate.picked, "predictions": gate.predictions})
    return ", ".join(
        f"{name} {kept[name]} instead of {counted[name]}"
        for name in sorted({*kept, *counted})
        if kept[name] != counted[name]
    )


def _of_prediction(event: Event, one: Prediction, matches: Mapping[str, Match]) -> Iterator[str]:
    if event.locked_at is not None and one.submitted_at > event.locked_at + SKEW:
        yield f"submitted at {one.submitted_at}, after the lock at {event.locked_at}"
    if event.scored == event.generation:
        worth = rules.score(one.picks, rules.winners(event, matches))
        if (one.generation, one.points, one.correct) != (event.generation, worth.points, worth.correct):
            yield f"{one.points} points of generation {one.generation}; a fresh scoring gives {worth.points}"


async def _of_share(services: Services, event: Event, one: Prediction) -> str | None:
    if not one.is_scored:
        return None
    standing = await stored.standing(services.table, one.user, event.season)
    share = standing.shares.get(event.id) if standing else None
    if share != Share(one.generation, one.points or 0, one.correct or 0):
        return f"the standing has {share} for {one.points} points of generation {one.generation}"
    return None


async def _of_standings(services: Services, shares: Counter[str]) -> AsyncIterator[str]:
    points: dict[str, Counter[int]] = {}
    found: Counter[str] = Counter()
    async for one in services.table.scan(STANDING):
        found[one.season] += len(one.shares)
        points.setdefault(one.season, Counter())[one.points] += 1
        if breach := _of_sums(one):
            yield f"{one.user} in {one.season}: {breach}"
    for season, counts in points.items():
        if found[season] != shares[season]:
            yield f"{season}: {found[season]} shares in standings, {shares[season]} scored predictions"
        async for breach in _of_season(services, season, counts):
            yield f"{season}: {breach}"


def _of_sums(one: Standing) -> str | None:
    sums = sum(share.points for share in one.shares.values()), sum(share.correct for share in one.shares.values())
    if (one.points, one.correct) != sums:
        return f"{one.points} points, {one.correct} correct; its events make {sums[0]} and {sums[1]}"
    return None


async def _of_season(services: Services, season: str, counts: Counter[int]) -> AsyncIterator[str]:
    listed = 0
    for lane in range(RANKING_SHARDS):
        async for one in services.table.iterate(STANDING.on("gsi2", season=season, lane=lane)):
            listed += 1
            if shard_of(one.user) % RANKING_SHARDS != lane:
                yield f"{one.user} is listed in lane {lane}"
    if listed != counts.total():
        yield f"{counts.total()} standings, {listed} listed"
    about = await services.table.get(SEASON.at(season=season), consistent=True)
    histogram = await stored.histogram_of_season(services.table, season, about.published) if about else None
    if histogram is None:
        yield "no histogram was published"
        return
    for score in counts:
        above = sum(number for other, number in counts.items() if other > score)
        if histogram.rank(score) != 1 + above:
            yield f"{score} points have the rank {histogram.rank(score)} instead of {1 + above}"
