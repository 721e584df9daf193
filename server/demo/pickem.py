"""A season of three events: one scored, one under way, one to predict. Each asks for the main event's minutes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

from datastore.changes.unit_of_work import UnitOfWork
from datastore.people import profiles as profile_store
from datastore.people.profiles import Profile
from datastore.pickem import events as event_store
from datastore.pickem import leagues
from datastore.pickem.events import Event, EventState, Match, MatchOutcome, Result, Team, TieBreak
from datastore.pickem.leagues import Entry, League, LeagueMember, Membership
from datastore.pickem.predictions import Prediction, seed_event
from resolvers.pickem.cache import league_id
from resolvers.pickem.rules import new_code, preshow_first
from resolvers.pickem.scoring import score
from resolvers.pickem.season_files import derived_id
from resolvers.requests.context import Services
from server.demo.people import MEMBERS, read_json

SEASON = "2026"
SCORED_EVENT = "Autumn Clash"
PLAYERS = 150
_MATCHES = 7
_PRESHOW = 2
_DRAWN = 0.1
_PICKED = 0.9
_GUESSED = 0.8
_MINUTES = 21_500
"""How long the scored event's main event took, in thousandths of a minute."""
_SIZES = {"Tag Team": (2, 2), "Triple Threat": (1, 1, 1)}
_ID_TIME = datetime(2026, 1, 1, tzinfo=UTC)
_TEXTS = read_json("pickem.json")


async def seed(services: Services) -> str:
    now = services.clock()
    events = (
        (SCORED_EVENT, now - timedelta(days=9), _MATCHES),
        ("Night of Thunder", now - timedelta(hours=1), 4),
        ("Winter Crown", now + timedelta(days=6), 0),
    )
    for index, (name, starts_at, results) in enumerate(events):
        await _seed_event(services, Random(index), _event(name, starts_at, now), results)
    return f"{len(events)} events with predictions of {PLAYERS} members"


async def seed_points(services: Services) -> str:
    """A part of its own: predictions that are written again once they were scored would count twice."""
    event = demo_id(SCORED_EVENT)
    found = await event_store.read_events(services.table, [event])
    if found[event].state is EventState.CANCELLED:  # meanwhile
        return f"no points: {SCORED_EVENT} was cancelled"
    await score(services, event)
    return f"the points of {SCORED_EVENT}"


def demo_id(*words: str) -> str:
    """The same id at every seeding, so that an interrupted one leaves nothing twice."""
    return derived_id(_ID_TIME, "demo", *words)


def _event(name: str, starts_at: datetime, now: datetime) -> Event:
    asked = TieBreak("How long will the main event take?", "minutes", _MINUTES if name == SCORED_EVENT else None)
    starts_at = starts_at.replace(minute=0, second=0, microsecond=0)
    event = Event(demo_id(name), name, SEASON, starts_at, now, tie_break=asked)
    return event if event.starts_at > now else replace(event, state=EventState.LOCKED, locked_at=event.starts_at)


async def _seed_event(services: Services, random: Random, empty: Event, results: int) -> None:
    matches = {match.id: match for match in _matches(random, empty)}
    card = preshow_first(list(matches), (match.id for match in matches.values() if match.preshow))
    decided = {match: _result(random, matches[match]) for match in card[:results]}
    event = replace(empty, card=card, results=decided, generation=1 + len(decided))
    profiles = await profile_store.read_profiles(services.table, [user for user, _ in MEMBERS[:PLAYERS]])
    predictions = [_prediction(random, event, list(matches.values()), profile) for profile in profiles.values()]
    await seed_event(services.table, event, list(matches.values()), predictions)


def _matches(random: Random, event: Event) -> Iterator[Match]:
    wrestlers: Sequence[str] = _TEXTS["wrestlers"]
    kinds: Sequence[str] = _TEXTS["match_kinds"]
    names = random.sample(wrestlers, len(wrestlers))
    for index in range(_MATCHES):
        kind = kinds[index % len(kinds)]
        teams = tuple(
            Team(tuple(names.pop() for _ in range(size)), champion=team == 0)
            for team, size in enumerate(_SIZES.get(kind, (1, 1)))
        )
        yield Match(
            event=event.id,
            id=derived_id(_ID_TIME, event.id, str(index)),
            name=kind,
            points=5 * (index + 1),
            teams=teams,
            championships=(f"{event.name} Title",) if kind == "Championship" else (),
            preshow=index < _PRESHOW,
        )


def _result(random: Random, match: Match) -> Result:
    if random.random() < _DRAWN:
        return Result(MatchOutcome.DRAWN)
    return Result(MatchOutcome.WON, random.randrange(len(match.teams)))


def _prediction(random: Random, event: Event, matches: Sequence[Match], profile: Profile) -> Prediction:
    submitted_at = min(event.starts_at, event.created_at) - timedelta(minutes=random.randrange(60, 6000))
    return Prediction(
        event=event.id,
        user=profile.user,
        picks={match.id: random.randrange(len(match.teams)) for match in matches if random.random() < _PICKED},
        submitted_at=submitted_at,
        joined_at=profile.joined_at,
        starts_at=event.starts_at,
        token=derived_id(submitted_at, event.id, profile.user),
        guess=random.randrange(8_000, 40_000, 500) if random.random() < _GUESSED else None,
    )


# ── leagues ──
# Two leagues of the demo's season: one that everybody may join, one by its code.

LEAGUES = (("Ringside Regulars", Entry.OPEN, 40), ("Front Row", Entry.CODE, 12))
"""Name, entry and the number of members, of whom the first is the captain."""


async def seed_leagues(services: Services) -> str:
    for name, entry, members in LEAGUES:
        await _seed_league(services, name, entry, [user for user, _ in MEMBERS[:members]])
    return f"{len(LEAGUES)} leagues"


async def _seed_league(services: Services, name: str, entry: Entry, users: Sequence[str]) -> None:
    """The same league at every seeding: an interrupted one goes on with it."""
    key, now = league_id(demo_id("league", name), SEASON), services.clock()
    code = new_code() if entry is Entry.CODE else None
    new = League(key, name, SEASON, entry, now, code, members=1, captains=1)
    unit = UnitOfWork.unkeyed(now)
    captain, *others = (LeagueMember(key, user, Membership.MEMBER, now, f"demo:{key}") for user in users)
    first = LeagueMember(key, captain.user, Membership.CAPTAIN, now, captain.token)
    own = await leagues.read_member_leagues(services.table, captain.user)
    await leagues.create_league(services.table, new, first, own, unit, None)
    league = await leagues.read_league(services.table, key)
    if league is None or league.deleted_at is not None:
        return
    for member in others:
        own = await leagues.read_member_leagues(services.table, member.user)
        await leagues.join_league(services.table, league, member, own, unit, None)
