"""Every prediction passed its gate in time and is counted there; points and standings equal a fresh scoring.

While an event is being scored its points are incomplete, so run the audit when scoring is done.
"""

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from datastore.pickem import leagues, standings
from datastore.pickem.events import (
    GATES,
    Event,
    Gate,
    Match,
    SeasonEntry,
    all_events,
    pick_counter,
    read_entries,
    read_gates,
    read_matches,
)
from datastore.pickem.predictions import Prediction, Share
from datastore.values.ids import CLOCK_SKEW
from resolvers.pickem.scoring import current_share, winners, worst_distance
from resolvers.requests.context import Services

Sums: TypeAlias = dict[tuple[str, str], Counter[str]]
"""By season and member: points, correct picks and events."""


async def breaches(services: Services) -> AsyncIterator[str]:
    sums: Sums = {}
    entries = {entry.event: entry for entry in await read_entries(services.table)}
    async for event in all_events(services.table):
        if entries.pop(event.id, None) != SeasonEntry(event.season, event.id, event.starts_at):
            yield f"pickem: {event.name} ({event.id}): its season lists it otherwise, or not at all"
        async for breach in _event_breaches(services, event, sums):
            yield f"pickem: {event.name} ({event.id}): {breach}"
    for entry in entries.values():
        yield f"pickem: {entry.season} lists an event {entry.event}, which does not exist"
    async for breach in _standing_breaches(services, sums):
        yield f"pickem: {breach}"


async def _event_breaches(services: Services, event: Event, sums: Sums) -> AsyncIterator[str]:
    """Also adds up the shares of each member in `sums`."""
    gates = await read_gates(services.table, event.id)
    matches = await read_matches(services.table, event.id)
    for breach in _gate_breaches(event, gates):
        yield breach
    if missing := set(event.card) ^ set(matches):
        yield f"the card and its matches differ: {', '.join(sorted(missing))}"
    counted: Counter[str] = Counter()
    worst = await worst_distance(services.table, event)
    points: Counter[int] = Counter()
    async for prediction in standings.all_predictions(services.table, event.id):
        points[prediction.points or 0] += 1
        counted.update(_counts(prediction, matches))
        _add_share(sums.setdefault((event.season, prediction.user), Counter()), prediction.share)
        for breach in _prediction_breaches(event, prediction, matches, worst):
            yield f"{prediction.user}: {breach}"
    if difference := _difference(gates, counted, matches):
        yield f"the gates and the predictions differ: {difference}"
    if event.scored == event.generation:
        histogram = await standings.read_histogram(services.table, standings.event_scope(event.id), event.generation)
        for breach in _histogram_breaches(histogram, points, "predictions"):
            yield breach


def _gate_breaches(event: Event, gates: Sequence[Gate]) -> Iterator[str]:
    """A gate may be behind: it is raised before anything is shown that depends on it."""
    if len(gates) != GATES:
        yield f"it has {len(gates)} gates, and {GATES} belong to it: members of the others cannot predict"
    for gate in gates:
        if gate.version > event.version:
            yield f"gate {gate.number} asks for version {gate.version}; the event has {event.version}"


def _counts(prediction: Prediction, matches: Mapping[str, Match]) -> Iterator[str]:
    yield "predictions"
    for match, team in prediction.picks.items():
        if match in matches:
            yield pick_counter(matches[match].number, team)


def _difference(gates: Sequence[Gate], counted: Counter[str], matches: Mapping[str, Match]) -> str:
    """All gates together."""
    stored: Counter[str] = Counter()
    for gate in gates:
        stored.update({**gate.picked, "predictions": gate.predictions})
    current = {pick_counter(match.number, team) for match in matches.values() for team in range(len(match.teams))}
    return ", ".join(
        f"{name} {stored[name]} instead of {counted[name]}"
        for name in sorted({"predictions", *current, *counted})
        if stored[name] != counted[name]
    )


def _add_share(sums: Counter[str], share: Share | None) -> None:
    if share is not None and share.counts:
        sums.update(points=share.points, correct=share.correct, events=1, closeness=share.closeness)


def _prediction_breaches(
    event: Event, prediction: Prediction, matches: Mapping[str, Match], worst: int
) -> Iterator[str]:
    # The clocks of two servers may differ by as much.
    if event.locked_at is not None and prediction.submitted_at > event.locked_at + CLOCK_SKEW:
        yield f"submitted at {prediction.submitted_at}, after the lock at {event.locked_at}"
    if not event.may_have_points and prediction.share is not None and prediction.share.counts:
        yield f"{prediction.share.points} points; the event is not scored"
    if event.scored == event.generation:
        expected = current_share(event, winners(event, matches), worst, prediction)
        if prediction.share != expected:
            yield f"{prediction.share}; a fresh scoring gives {expected}"


async def _standing_breaches(services: Services, sums: Sums) -> AsyncIterator[str]:
    points: dict[str, Counter[int]] = {}
    async for standing in standings.all_standings(services.table):
        points.setdefault(standing.season, Counter())[standing.points] += 1
        if breach := _sum_breach(standing, sums.pop((standing.season, standing.user), Counter())):
            yield f"{standing.user} in {standing.season}: {breach}"
    for (season, user), left in sums.items():
        if left["events"]:
            yield f"{user} in {season}: {left['points']} points but no standing"
    for season, counts in points.items():
        async for breach in _season_breaches(services, season, counts):
            yield f"{season}: {breach}"


def _sum_breach(standing: standings.Standing, sums: Counter[str]) -> str | None:
    stored = (standing.points, standing.correct, standing.events_played, standing.closeness)
    expected = (sums["points"], sums["correct"], sums["events"], sums["closeness"])
    if stored != expected:
        return f"points, correct picks, events and closeness are {stored}; the predictions add up to {expected}"
    return None


async def _season_breaches(services: Services, season: str, counts: Counter[int]) -> AsyncIterator[str]:
    listed = 0
    async for shard, standing in standings.listed_standings(services.table, season):
        listed += 1
        if standing.ranking_shard != shard:
            yield f"{standing.user} is listed in shard {shard} of the ranking instead of {standing.ranking_shard}"
    if listed != counts.total():
        yield f"{counts.total()} standings, {listed} listed"
    stored = (await standings.read_seasons(services.table, [season])).get(season)
    scope = standings.season_scope(season)
    histogram = await standings.read_histogram(services.table, scope, stored.published) if stored else None
    for breach in _histogram_breaches(histogram, counts, "standings"):
        yield breach


def _histogram_breaches(histogram: standings.Histogram | None, counts: Counter[int], counted: str) -> Iterator[str]:
    if histogram is None:
        yield "no histogram was published"
        return
    if histogram.total != counts.total():
        yield f"{counts.total()} {counted}, {histogram.total} counted"
    for score in counts:
        rank = 1 + sum(number for other, number in counts.items() if other > score)
        if histogram.rank(score) != rank:
            yield f"{score} points have the rank {histogram.rank(score)} instead of {rank}"


# ── leagues ──
# A league has the members that it counts, a captain and the code that finds it; its members list it as theirs.


@dataclass(slots=True)
class _Seen:
    """All leagues, who is in them, and the leagues that members list: both as pairs of a member and a league."""

    by_id: dict[str, leagues.League] = field(default_factory=dict)
    members: defaultdict[str, Counter[leagues.Membership]] = field(default_factory=lambda: defaultdict(Counter))
    places: set[tuple[str, str]] = field(default_factory=set)
    listed: set[tuple[str, str]] = field(default_factory=set)
    codes: dict[str, str] = field(default_factory=dict)

    def add(self, record: leagues.League | leagues.LeagueMember | leagues.LeagueCode | leagues.MemberLeagues) -> None:
        if isinstance(record, leagues.League):
            self.by_id[record.id] = record
        elif isinstance(record, leagues.LeagueMember):
            self.members[record.league][record.membership] += 1
            self.places.add((record.user, record.league))
        elif isinstance(record, leagues.LeagueCode):
            self.codes[record.code] = record.league
        else:
            self.listed.update((record.user, league) for league in record.leagues)


async def league_breaches(services: Services) -> AsyncIterator[str]:
    seen = _Seen()
    async for record in leagues.all_leagues(services.table):
        seen.add(record)
    existing = {league.id: league for league in seen.by_id.values() if league.deleted_at is None}
    for league in existing.values():
        for breach in _breaches_of(league, seen.members[league.id]):
            yield f"leagues: {league.name} ({league.id}): {breach}"
    stored_codes = {league.code: league.id for league in existing.values() if league.code is not None}
    for league_id in sorted({league_id for _, league_id in stored_codes.items() ^ seen.codes.items()}):
        yield f"leagues: {league_id}: the league and its code differ"
    for user, league_id in sorted(seen.places ^ seen.listed):
        if league_id in existing:  # the lists may keep deleted ones
            yield f"leagues: {league_id}: the league and the list of {user} differ"
    for league_id in sorted(seen.members.keys() - seen.by_id.keys()):
        yield f"leagues: {league_id} has members but does not exist"
    for user, number in Counter(user for user, league in seen.listed if league in existing).items():
        if number > leagues.MOST_LEAGUES:
            yield f"leagues: {user} is in {number} leagues"


def _breaches_of(league: leagues.League, places: Counter[leagues.Membership]) -> list[str]:
    captains = places[leagues.Membership.CAPTAIN]
    stored = (league.members, league.captains, league.waiting)
    counted = (captains + places[leagues.Membership.MEMBER], captains, places[leagues.Membership.WAITING])
    found = []
    if stored != counted:
        found.append(f"members, captains and waiting are {stored}; there are {counted}")
    if not captains:
        found.append("it has no captain")
    if league.members > leagues.MOST_MEMBERS:
        found.append(f"it has {league.members} members")
    return found
