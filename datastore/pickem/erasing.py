"""Erasing a member from Pick'Em: no standing, and no place in a league. Their predictions are in `removal`.

| wanted                                 | read or write                                              | requests     |
|----------------------------------------|------------------------------------------------------------|--------------|
| delete what is left of standings       | DeleteItem for every season                                | seasons      |
| leave every league                     | Query of the league; see `leagues`                         | 2 for each   |
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from datastore.dynamo import ConditionFailed, Stale, optimistic_from
from datastore.pickem.league_records import LEAGUE_MEMBER, League, LeagueMember, MemberLeagues, Membership
from datastore.pickem.leagues import (
    delete_league,
    drop_leagues,
    leave,
    read_member_leagues,
    read_place,
    read_whole_league,
)
from datastore.pickem.standings import read_standing, standing_write
from datastore.refusals import Conflict, NotFound

if TYPE_CHECKING:
    from datastore.changes.unit_of_work import UnitOfWork
    from datastore.dynamo import Table


async def clear_standing(table: Table, user: str, season: str) -> None:
    """Delete a standing to which no prediction adds any more."""
    standing = await read_standing(table, user, season)
    if standing is not None:
        with suppress(ConditionFailed):
            await table.write(standing_write(standing, replace(standing, events_played=0)))


# ── leagues ──


async def leave_every_league(table: Table, user: str, unit: UnitOfWork) -> None:
    """Take a member out of every league. Safe to repeat.

    Where they are the last captain, the longest member becomes one; a league without another member is deleted.
    """

    async def leave_one(own: MemberLeagues) -> None:
        if not own.leagues:
            return
        league_id = min(own.leagues)
        found = await read_whole_league(table, league_id)
        place = await read_place(table, league_id, user)
        if found is None or place is None:  # deleted, or being deleted
            if place is not None:
                await table.write(LEAGUE_MEMBER.delete(LEAGUE_MEMBER.item_key(place)))
            await drop_leagues(table, own, {league_id})
            return
        try:
            if _is_last(*found, place):
                await delete_league(table, place, found[0], unit, None)
            else:
                await leave(table, place, _successor(*found, place), own, unit, None)
        except (Conflict, NotFound):
            raise Stale from None

    while (own := await read_member_leagues(table, user)).leagues:
        await optimistic_from(own, lambda: read_member_leagues(table, user), leave_one)


def _members(members: Sequence[LeagueMember]) -> list[LeagueMember]:
    return [member for member in members if member.membership is Membership.MEMBER]


def _is_last_captain(league: League, place: LeagueMember) -> bool:
    return place.membership is Membership.CAPTAIN and league.captains == 1


def _is_last(league: League, members: Sequence[LeagueMember], place: LeagueMember) -> bool:
    return _is_last_captain(league, place) and not _members(members)


def _successor(league: League, members: Sequence[LeagueMember], place: LeagueMember) -> str | None:
    if not _is_last_captain(league, place):
        return None
    return min(_members(members), key=lambda member: (member.since, member.user)).user
