"""Leagues: pick'em among friends."""

from __future__ import annotations

from datetime import datetime

import strawberry

from datastore.pickem import leagues as league_store
from resolvers.pickem import leagues as league_resolvers  # the class of a query with a field `league` would hide it
from resolvers.pickem import standings as standing_resolvers
from resolvers.pickem import visibility
from schema.framework.declarations import (
    READ,
    LazyUser,
    Node,
    connection,
    described,
    enum,
    field,
    mutation,
    object_type,
    record_type,
)
from schema.pickem.events import Event, PredictionConnection, StandingConnection

# ── types and queries ──

STANDINGS_COMPLEXITY = 250
EVENT_COMPLEXITY = 500
"""Both read something of each member, 1,000 at most, unless the process has read it in the last minute."""

Entry = league_store.Entry
Membership = league_store.Membership

enum(
    Entry,
    "How members enter a league.",
    OPEN="Everybody may see and join it.",
    CODE="Members who have its code may join; others see its name only.",
    APPROVAL="A captain admits members; others see its name only.",
)
enum(
    Membership,
    "How somebody belongs to a league.",
    CAPTAIN="A member who admits and removes others, changes its code and may delete it.",
    MEMBER="A member.",
    WAITING="They have asked to join, and a captain decides.",
)


@record_type(league_store.LeagueMember, "Somebody's place in a league.")
class LeagueMember:
    user: LazyUser = field(league_resolvers.league_member_users, "Who it is.")
    membership: Membership = described("Whether they are a captain, a member or waiting.")
    since: datetime = described("When they joined, or asked to.")


LeagueMemberConnection = connection(LeagueMember, "A page of a league's members.", edge="A member in a list.")


@record_type(visibility.LeagueEvent, "An event for the members of a league.")
class LeagueEvent:
    event: Event = described("The event.")
    submitted: int = described("How many members have submitted a prediction; up to five seconds old until the lock.")
    missing: int = described("How many have not.")
    predictions: PredictionConnection = field(
        standing_resolvers.league_predictions,
        "The members' predictions, best first once the event is scored; none until picks are public.",
    )


@record_type(
    league_store.League,
    "Members of a season who are ranked among themselves. Those who are not members of a private league (CODE, "
    "APPROVAL) see its id, name, season and entry; the rest is null for them.",
)
class League(Node):
    name: str = described("Its name.")
    season: str = described("The season whose points count.")
    entry: Entry = described("How members enter it. A league with CODE or APPROVAL is private.")
    code: str | None = field(visibility.code, "The code to join it with; for its captains.")
    member_count: int | None = field(
        visibility.member_count, "The number of its members, without those who are waiting; at most 1,000."
    )
    viewer_membership: Membership | None = field(
        visibility.viewer_membership, "The viewer's membership; null if they have none."
    )
    standings: StandingConnection | None = field(
        standing_resolvers.league_standings,
        "The season's standings of its members, ranked among them. Those without a scored prediction are not listed. "
        f"Counts as {STANDINGS_COMPLEXITY} fields in the complexity.",
        complexity=STANDINGS_COMPLEXITY,
    )
    event: LeagueEvent | None = field(
        standing_resolvers.league_event,
        "An event of the season, for the league's members; null for one of another season. "
        f"Counts as {EVENT_COMPLEXITY} fields in the complexity.",
        complexity=EVENT_COMPLEXITY,
        event="The event's id.",
    )
    members: LeagueMemberConnection | None = field(
        visibility.members, "Its members, by their ids. Its captains also see who is waiting.", complexity=READ
    )


LeagueConnection = connection(League, "A page of leagues.", edge="A league in a list.")


@strawberry.type
class LeaguesOfUser:
    """What leagues add to a member."""

    leagues: LeagueConnection = field(
        league_resolvers.user_leagues,
        "The leagues that the member is in or waits for, newest first. Visible to the member only.",
        complexity=READ,
        season="Only those of this season.",
    )


@strawberry.type
class LeaguesQuery:
    league: League | None = field(
        league_resolvers.league,
        "A league by its id or by its code. A member may use codes 30 times an hour.",
        id="The league's id.",
        code="The code that a captain has shared; for members who are signed in.",
    )


# ── mutations ──


@strawberry.type
class LeaguesMutation:
    create_league = mutation(
        league_resolvers.create_league,
        "Creates a league, with the viewer as its captain. A member is in at most 50 leagues.",
        object_type(
            "LeagueCreated", "The league was created.", league=(League, "The new league. The viewer is its captain.")
        ),
        input_description="A new league.",
        result_description="The new league, or why there is none.",
        name="The name: 1 to 80 characters.",
        season="The season whose points count: 1 to 40 characters, no '#'.",
        entry="How members enter it; this never changes.",
    )
    join_league = mutation(
        league_resolvers.join_league,
        "Joins a league: by its id if it is OPEN or has APPROVAL, by its code if it has CODE.",
        object_type(
            "LeagueJoined",
            "The viewer has joined the league, or waits for a captain to admit them.",
            league=(League, "The league."),
            membership=(Membership, "MEMBER or WAITING."),
        ),
        input_description="A league to join; give either its id or its code.",
        result_description="The league with the viewer's membership, or why they did not join.",
        league="The league, if it is OPEN or has APPROVAL.",
        code="The code of the league. Upper and lower case, spaces and hyphens make no difference.",
    )
    admit_to_league = mutation(
        league_resolvers.admit_to_league,
        "Admits somebody who is waiting, or makes a member a captain. For the league's captains.",
        object_type(
            "LeagueAdmitted",
            "The member is admitted.",
            league=(League, "The league."),
            member=(LeagueMember, "The member as they are now."),
        ),
        input_description="Somebody to admit to a league.",
        result_description="The member, or why they were not admitted.",
        league="The league.",
        user="Somebody who is waiting for the league, or a member of it.",
        captain="Whether they become a captain; a league has at most 20. False does not make a captain a member again.",
    )
    remove_from_league = mutation(
        league_resolvers.remove_from_league,
        "Turns away somebody who is waiting, or removes a member. For the league's captains. A removed member may "
        "join again like anybody else: to keep them out of a league with a code, rotate the code first.",
        object_type(
            "LeagueMemberRemoved",
            "They are no longer in the league, nor waiting for it.",
            league=(League, "The league."),
        ),
        input_description="Somebody to remove from a league.",
        result_description="The league, or why they are still in it.",
        league="The league.",
        user="Somebody who is waiting for the league, or a member of it. Captains leave by themselves.",
    )
    leave_league = mutation(
        league_resolvers.leave_league,
        "Leaves a league, or stops waiting for it. Its last captain names a successor.",
        object_type("LeagueLeft", "The viewer has left the league.", league=(League, "The league.")),
        input_description="A league to leave.",
        result_description="The league, or why the viewer is still in it.",
        league="The league.",
        successor="The member who becomes captain. Required of the last captain.",
    )
    rotate_league_code = mutation(
        league_resolvers.rotate_league_code,
        "Gives a league another code. For the league's captains.",
        object_type(
            "LeagueCodeRotated",
            "The league has another code, and the old one admits nobody any more.",
            league=(League, "The league with its new code."),
        ),
        input_description="A league whose code changes at once.",
        result_description="The league with its new code, or why it keeps the old one.",
        league="The league.",
    )
    delete_league = mutation(
        league_resolvers.delete_league,
        "Deletes a league; its members keep their points in the season. For the league's captains. Safe to repeat.",
        object_type(
            "LeagueDeleted", "The league was deleted.", deleted_id=(strawberry.ID, "The id of the league that is gone.")
        ),
        input_description="A league to delete.",
        result_description="The id of the league that is gone, or why it is still there.",
        league="The league.",
    )
