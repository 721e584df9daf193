"""What pick'em keeps of a member: predictions, points, and places in leagues; and taking the member out of them.

| wanted                          | read or write                                                | requests         |
|---------------------------------|--------------------------------------------------------------|------------------|
| predictions and standings       | BatchGetItem for every event and season, consistent          | 1 for 100        |
| places in leagues               | GetItem LEAGUES#<id>; BatchGetItem of the leagues            | 2                |
| a member's predictions, exactly | BatchGetItem EVENT#<id>#<shard> USER#<user>, consistent      | 1 for 100 events |
| remove one                      | GetItem; the card; GetItem of the standing; a transaction:   | 4                |
|                                 | prediction, gate, standing                                   |                  |

A member is taken out of predictions as if they had never submitted them. The index of a member's predictions is behind,
so every event is asked instead. A removal also uncounts the picks at the gate and takes the points out of the standing.
What is counted from predictions, the histograms of the event and of the season, is for another scoring to count again.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from datastore.changes.occurrences import Kind
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Stale, Table, chunks, optimistic, optimistic_from
from datastore.dynamo.writes import Write
from datastore.people.member_items import RESULT, MemberItems, Records, in_file, of_nobody
from datastore.pickem import leagues
from datastore.pickem.events import (
    EVENT,
    GATE,
    MATCH,
    SEASON_ENTRY,
    Event,
    every_event,
    gate_number,
    read_matches,
)
from datastore.pickem.predictions import (
    PREDICTION,
    REMINDER,
    Prediction,
    Share,
    as_read,
    pick_counters,
    prediction_key,
    read_prediction,
)
from datastore.pickem.standings import (
    HISTOGRAM_PART,
    SEASON,
    STANDING,
    read_standing,
    read_standings_of,
    standing_write,
)
from datastore.refusals import Conflict, NotFound

# ── standings ──


async def clear_standing(table: Table, user: str, season: str) -> None:
    """Delete a standing to which no prediction adds any more."""
    standing = await read_standing(table, user, season)
    if standing is not None:
        await table.try_write(standing_write(standing, replace(standing, events_played=0)))


# ── leagues ──


async def leave_every_league(table: Table, user: str, unit: UnitOfWork) -> None:
    """Take a member out of every league. Safe to repeat.

    Where they are the last captain, the longest member becomes one; a league without another member is deleted.
    """

    async def leave_one(own: leagues.MemberLeagues) -> None:
        if not own.leagues:
            await leagues.delete_member_leagues(table, own)
            return
        league_id = min(own.leagues)
        found = await leagues.read_whole_league(table, league_id)
        place = await leagues.read_place(table, league_id, user)
        if found is None or place is None:  # deleted, or being deleted
            await leagues.end_deletion(table, league_id, unit)
            await leagues.drop_leagues(table, own, {league_id})
            return
        league, members = found
        others = [member for member in members if member.membership is leagues.Membership.MEMBER]
        is_last_captain = place.membership is leagues.Membership.CAPTAIN and league.captains == 1
        try:
            if is_last_captain and not others:
                await leagues.delete_league(table, place, league, unit, None)
            else:
                first = min(others, key=lambda one: (one.since, one.user)).user if is_last_captain else None
                await leagues.leave(table, place, first, own, unit, None)
        except (Conflict, NotFound):
            raise Stale from None

    while (own := await leagues.read_member_leagues(table, user)).version:
        await optimistic_from(own, lambda: leagues.read_member_leagues(table, user), leave_one)


# ── removal ──

_EVENTS_AT_ONCE = 100


async def predictions_in(table: Table, user: str, events: Sequence[Event]) -> AsyncIterator[tuple[Event, Prediction]]:
    """A member's predictions for these events, each with its event."""
    for some in chunks(events, _EVENTS_AT_ONCE):
        keys = [prediction_key(event.id, user) for event in some]
        for event, prediction in zip(some, await table.get_many(keys, consistent=True), strict=True):
            if prediction is not None:
                yield event, prediction


async def take_out(table: Table, user: str, event: Event, unit: UnitOfWork) -> bool:
    """Remove a member's prediction for an event; whether this call did it."""

    async def take(prediction: Prediction | None) -> bool:
        if prediction is None:
            return False
        writes = [*await _removal(table, prediction, unit), *await _points(table, event.season, prediction)]
        await unit.apply(table, *writes)
        return True

    return await optimistic(lambda: read_prediction(table, event.id, user), take, idempotent=True)


async def _removal(table: Table, prediction: Prediction, unit: UnitOfWork) -> list[Write]:
    # The card is read after the prediction, which may pick a match that was just added.
    counters = pick_counters(prediction, await read_matches(table, prediction.event))
    uncounted = {"predictions": -1, **{name: -counters.count(name) for name in counters}}
    gate = GATE.at(event=prediction.event, number=gate_number(prediction.user))
    return [
        PREDICTION.delete(PREDICTION.item_key(prediction), when=as_read(prediction)),
        GATE.update(gate, add=uncounted),
        *unit.occurred(Kind.PREDICTION_VOIDED, f"Prediction:{prediction.node_key}"),
    ]


async def _points(table: Table, season: str, prediction: Prediction) -> list[Write]:
    """The write that takes the prediction's share out of the standing, if it is in there."""
    before = await read_standing(table, prediction.user, season)  # after the prediction; see `standings`
    share = prediction.share
    if before is None or share is None or not share.counts:
        return []
    return [standing_write(before, before.credited(share, Share.taken_back(share.generation)))]


# ── member items ──


async def _read(table: Table, user: str) -> Records:
    events = await every_event(table)
    async for _, prediction in predictions_in(table, user, events):
        yield PREDICTION, prediction
    for standing in await read_standings_of(table, user, sorted({event.season for event in events})):
        yield STANDING, standing
    own = await leagues.read_member_leagues(table, user)
    if own.version:
        yield leagues.MEMBER_LEAGUES, own
    places = [leagues.LEAGUE_MEMBER.at(league=league, user=user) for league in own.leagues]
    for place in await table.find_many(places, consistent=True):
        yield leagues.LEAGUE_MEMBER, place


MEMBER_ITEMS = MemberItems(
    {
        PREDICTION: in_file("prediction", "Your picks for one event: the number of a team for each match.", RESULT),
        STANDING: in_file("standing", "Your points in one season.", RESULT),
        REMINDER: in_file("reminder", "That an email reminded you of an event."),
        leagues.MEMBER_LEAGUES: in_file("leagues", "The leagues that you are in, or wait for, with their seasons."),
        leagues.LEAGUE_MEMBER: in_file("leagueMembership", "Your place in one league."),
        **of_nobody(EVENT, GATE, HISTOGRAM_PART, leagues.LEAGUE, leagues.LEAGUE_CODE, MATCH, SEASON, SEASON_ENTRY),
    },
    _read,
)
