"""Erasing a member from Pick'Em: predictions and points under a name that is nobody's, and no place in a league.

| wanted                                 | read or write                                              | requests     |
|----------------------------------------|------------------------------------------------------------|--------------|
| move a season's predictions and points | a transaction: both items of 40 predictions, both standings | 1 for 40    |
| delete what is left of standings       | DeleteItem for every season                                | seasons      |
| leave every league                     | Query of the league; see `leagues`                         | 2 for each   |

The other name has the member's shards, so every counter stays where it is. A season of up to 40 predictions moves at
once: nobody sees half of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from datastore.dynamo import ConditionFailed, Stale, optimistic, optimistic_from
from datastore.dynamo.conditions import absent, where
from datastore.pickem.league_records import LEAGUE_MEMBER, League, LeagueMember, MemberLeagues, Membership
from datastore.pickem.leagues import (
    delete_league,
    drop_leagues,
    leave,
    read_member_leagues,
    read_place,
    read_whole_league,
)
from datastore.pickem.predictions import PREDICTION, Prediction, Share
from datastore.pickem.removal import predictions_in
from datastore.pickem.standings import STANDING, Standing, read_standing, standing_write
from datastore.refusals import Conflict, NotFound

if TYPE_CHECKING:
    from datastore.changes.unit_of_work import UnitOfWork
    from datastore.dynamo import Table
    from datastore.dynamo.writes import Write
    from datastore.pickem.event_records import Event

_AT_ONCE = 40


# ── predictions and points ──


async def move_predictions(table: Table, user: str, season: str, events: Sequence[Event], alias: str) -> int:
    """Let a member's predictions for events of a season be those of another name; return their number."""

    async def read() -> list[Prediction]:
        return [prediction async for _, prediction in predictions_in(table, user, events)]

    async def move(predictions: Sequence[Prediction]) -> int:
        if not predictions:
            return 0
        some = predictions[:_AT_ONCE]
        before, beside = await asyncio.gather(read_standing(table, user, season), read_standing(table, alias, season))
        writes = [write for one in some for write in _move(one, alias)]
        await table.transact(*writes, *_move_points(some, before, beside, alias))
        return len(some)

    moved = 0
    while some := await optimistic(read, move, idempotent=True):
        moved += some
    return moved


def _move(prediction: Prediction, alias: str) -> tuple[Write, Write]:
    unchanged = where(version=prediction.version)
    return (
        PREDICTION.delete(PREDICTION.item_key(prediction), when=unchanged),
        PREDICTION.put(replace(prediction, user=alias), when=absent()),
    )


def _move_points(
    predictions: Sequence[Prediction], before: Standing | None, beside: Standing | None, alias: str
) -> list[Write]:
    """The writes that take the predictions' shares out of one standing and into another."""
    shares = [one.share for one in predictions if one.share is not None and one.share.counts]
    if before is None or not shares:
        return []
    left = reduce(lambda standing, share: standing.credited(share, Share.taken_back(share.generation)), shares, before)
    own = beside or replace(before, user=alias, points=0, correct=0, events_played=0, closeness=0)
    after = reduce(lambda standing, share: standing.credited(None, share), shares, own)
    unchanged, free = where(version=before.version), absent() if beside is None else where(version=beside.version)
    return [standing_write(left, unchanged), STANDING.put(after, when=free)]


async def clear_standing(table: Table, user: str, season: str) -> None:
    """Delete a standing to which no prediction adds any more."""
    standing = await read_standing(table, user, season)
    if standing is not None:
        with suppress(ConditionFailed):
            await table.write(STANDING.delete(STANDING.item_key(standing), when=where(version=standing.version)))


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
