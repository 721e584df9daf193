"""A league has the members that it counts, a captain and the code that finds it; its members list it as theirs."""

from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from datastore.pickem.leagues import (
    MOST_LEAGUES,
    MOST_MEMBERS,
    League,
    LeagueCode,
    LeagueMember,
    MemberLeagues,
    Membership,
    all_leagues,
)
from resolvers.requests.context import Services


@dataclass(slots=True)
class _Seen:
    """All leagues, who is in them, and the leagues that members list: both as pairs of a member and a league."""

    leagues: dict[str, League] = field(default_factory=dict)
    members: defaultdict[str, Counter[Membership]] = field(default_factory=lambda: defaultdict(Counter))
    places: set[tuple[str, str]] = field(default_factory=set)
    listed: set[tuple[str, str]] = field(default_factory=set)
    codes: dict[str, str] = field(default_factory=dict)

    def add(self, record: League | LeagueMember | LeagueCode | MemberLeagues) -> None:
        if isinstance(record, League):
            self.leagues[record.id] = record
        elif isinstance(record, LeagueMember):
            self.members[record.league][record.membership] += 1
            self.places.add((record.user, record.league))
        elif isinstance(record, LeagueCode):
            self.codes[record.code] = record.league
        else:
            self.listed.update((record.user, league) for league in record.leagues)


async def breaches(services: Services) -> AsyncIterator[str]:
    seen = _Seen()
    async for record in all_leagues(services.table):
        seen.add(record)
    existing = {league.id: league for league in seen.leagues.values() if league.deleted_at is None}
    for league in existing.values():
        for breach in _league_breaches(league, seen.members[league.id]):
            yield f"leagues: {league.name} ({league.id}): {breach}"
    stored_codes = {league.code: league.id for league in existing.values() if league.code is not None}
    for league_id in sorted({league_id for _, league_id in stored_codes.items() ^ seen.codes.items()}):
        yield f"leagues: {league_id}: the league and its code differ"
    for user, league_id in sorted(seen.places ^ seen.listed):
        if league_id in existing:  # the lists may keep deleted ones
            yield f"leagues: {league_id}: the league and the list of {user} differ"
    for league_id in sorted(seen.members.keys() - seen.leagues.keys()):
        yield f"leagues: {league_id} has members but does not exist"
    for user, number in Counter(user for user, league in seen.listed if league in existing).items():
        if number > MOST_LEAGUES:
            yield f"leagues: {user} is in {number} leagues"


def _league_breaches(league: League, places: Counter[Membership]) -> list[str]:
    captains = places[Membership.CAPTAIN]
    stored = (league.members, league.captains, league.waiting)
    counted = (captains + places[Membership.MEMBER], captains, places[Membership.WAITING])
    found = []
    if stored != counted:
        found.append(f"members, captains and waiting are {stored}; there are {counted}")
    if not captains:
        found.append("it has no captain")
    if league.members > MOST_MEMBERS:
        found.append(f"it has {league.members} members")
    return found
