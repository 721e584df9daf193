"""What Pick'Em keeps of a member: predictions, points, and places in leagues.

| wanted                    | read                                                | requests  |
|---------------------------|-----------------------------------------------------|-----------|
| predictions and standings | BatchGetItem for every event and season, consistent | 1 for 100 |
| places in leagues         | GetItem USER#<id>; BatchGetItem of the leagues      | 2         |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from datastore.people.member_items import (
    RESULT,
    MemberItems,
    Records,
    in_file,
    of_nobody,
)
from datastore.pickem.event_records import EVENT, MATCH
from datastore.pickem.events import every_event
from datastore.pickem.gates import GATE
from datastore.pickem.histograms import HISTOGRAM_PART
from datastore.pickem.league_records import LEAGUE, LEAGUE_CODE, LEAGUE_MEMBER, MEMBER_LEAGUES
from datastore.pickem.predictions import PREDICTION
from datastore.pickem.reminders import REMINDER
from datastore.pickem.removal import predictions_in
from datastore.pickem.standings import SEASON, STANDING, read_standing

if TYPE_CHECKING:
    from datastore.dynamo import Table


async def _read(table: Table, user: str) -> Records:
    events = await every_event(table)
    async for _, prediction in predictions_in(table, user, events):
        yield PREDICTION, prediction
    for season in sorted({event.season for event in events}):
        standing = await read_standing(table, user, season)
        if standing is not None:
            yield STANDING, standing
    own = await table.get(MEMBER_LEAGUES.at(user=user), consistent=True)
    places = [LEAGUE_MEMBER.at(league=league, user=user) for league in (own.leagues if own else ())]
    for place in await table.get_many(places, consistent=True):
        if place is not None:
            yield LEAGUE_MEMBER, place


MEMBER_ITEMS = MemberItems(
    {
        PREDICTION: in_file("prediction", "Your picks for one event: the number of a team for each match.", RESULT),
        STANDING: in_file("standing", "Your points in one season.", RESULT),
        REMINDER: in_file("reminder", "That an email reminded you of an event."),
        MEMBER_LEAGUES: in_file("leagues", "The leagues that you are in, or wait for, with their seasons."),
        LEAGUE_MEMBER: in_file("leagueMembership", "Your place in one league."),
        **of_nobody(EVENT, GATE, HISTOGRAM_PART, LEAGUE, LEAGUE_CODE, MATCH, SEASON),
    },
    _read,
)
