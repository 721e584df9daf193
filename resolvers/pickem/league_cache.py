"""What a process remembers of leagues.

A league and the viewer's place in it are read for every request, with the season's revision beside them: a league's id
holds its season, so that need not be looked up first. What depends on them is remembered for a revision of the league
and of the season: the members, and their standings, which are the season's own. So a change is seen at the next
request; what was read while members came and went is read again after `_AGE` at the latest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias
from weakref import WeakValueDictionary

from datastore import pickem as pickem_store
from datastore.dynamo import BadKey, key_text
from datastore.pickem import League, LeagueMember, Membership, Season
from datastore.values.ids import is_ulid
from resolvers.loading.bounded_dict import BoundedDict
from resolvers.requests.context import Context, Services

_AGE = 60.0
_LEAGUES = 64
"""How many leagues' members are remembered: at most 100 kB each."""
_KNOWN = 10_000
"""How many leagues this process remembers to have read with their members."""


LeagueKey: TypeAlias = tuple[str, str | None]
"""A league's id, and the member who looks at it."""


class RosterKey(NamedTuple):
    """A league and the revision of its members."""

    league: str
    revision: int


class LeagueRecords(NamedTuple):
    """A league, a viewer's place in it, and its season as it was read beside it."""

    league: League
    place: LeagueMember | None
    season: Season


class LeagueCache:
    """The leagues' reads."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._known: BoundedDict[str, None] = BoundedDict(_KNOWN)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.leagues = services.cache.batches("leagues", self._read_leagues)
        self.rosters = services.cache.each("league_members", self._read_roster, age=_AGE, most=_LEAGUES)

    async def _read_leagues(self, keys: Sequence[LeagueKey]) -> Mapping[LeagueKey, LeagueRecords]:
        valid = [key for key in keys if is_league_id(key[0])]
        leagues = {league for league, _ in valid}
        if len(leagues) == 1 and not leagues & self._known.keys():
            return await self._read_new(valid)
        return await self._read_many(valid) if valid else {}

    async def _read_many(self, keys: Sequence[LeagueKey]) -> Mapping[LeagueKey, LeagueRecords]:
        """In one batch: the leagues, the viewers' places in them, and the seasons."""
        seasons = sorted({season_of(league) for league, _ in keys})
        records, revisions = await pickem_store.read_leagues(self._services.table, keys, seasons)
        return {
            key: LeagueRecords(record[0], record[1], revisions.get(record[0].season, Season(record[0].season)))
            for key, record in zip(keys, records, strict=True)
            if record is not None
        }

    async def _read_new(self, keys: Sequence[LeagueKey]) -> Mapping[LeagueKey, LeagueRecords]:
        """A league that is new to this process, with its members, which saves its first page a round trip."""
        league, season = keys[0][0], season_of(keys[0][0])
        found, seasons = await asyncio.gather(
            self._read_whole(league), pickem_store.read_seasons(self._services.table, [season])
        )
        if found is None:
            return {}
        record, members = found
        return {
            key: LeagueRecords(record, members.get(key[1] or ""), seasons.get(season, Season(season))) for key in keys
        }

    async def _read_whole(self, league_id: str) -> tuple[League, Mapping[str, LeagueMember]] | None:
        found = await pickem_store.read_whole_league(self._services.table, league_id)
        if found is None:
            return None
        league, members = found
        self._known[league.id] = None
        roster = _roster(members)
        if len(roster) == league.members:  # else somebody joined or left during the read
            self.rosters.put(RosterKey(league.id, league.revision), roster)
        return league, {member.user: member for member in members}

    def turn(self, league: str) -> asyncio.Lock:
        """Held while a member is added: transactions on one league's item would only make each other fail."""
        return self._turns.setdefault(league, asyncio.Lock())

    async def _read_roster(self, key: RosterKey) -> Sequence[str]:
        found = await pickem_store.read_whole_league(self._services.table, key.league)
        return _roster(found[1]) if found else ()


def league_id(ulid: str, season: str) -> str:
    """The id of a league, which never changes its season."""
    return f"{ulid}:{season}"


def season_of(league: str) -> str:
    return league.partition(":")[2]


def is_league_id(text: str) -> bool:
    try:
        key_text(season_of(text))
    except BadKey:
        return False
    return is_ulid(text.partition(":")[0])


def _roster(members: Sequence[LeagueMember]) -> tuple[str, ...]:
    """The ids of those who are members, not of those who are waiting."""
    return tuple(member.user for member in members if member.membership is not Membership.WAITING)


def league_cache(ctx: Context) -> LeagueCache:
    return ctx.services.get(LeagueCache)
