"""Two leagues of the demo's season: one that everybody may join, one by its code."""

from __future__ import annotations

from collections.abc import Sequence

from datastore.changes.unit_of_work import UnitOfWork
from datastore.pickem import leagues
from datastore.pickem.leagues import Entry, League, LeagueMember, Membership
from resolvers.pickem.cache import league_id
from resolvers.pickem.rules import new_code
from resolvers.requests.context import Services
from server.demo.people import MEMBERS
from server.demo.pickem import SEASON, demo_id

LEAGUES = (("Ringside Regulars", Entry.OPEN, 40), ("Front Row", Entry.CODE, 12))
"""Name, entry and the number of members, of whom the first is the captain."""


async def seed(services: Services) -> str:
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
