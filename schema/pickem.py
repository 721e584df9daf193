"""Pick'em: events and their matches, predictions and standings; leagues; scoring."""

from __future__ import annotations

from datetime import datetime

import strawberry

from datastore.pickem import events as event_store
from datastore.pickem import leagues as league_store
from resolvers.pickem import events as event_resolvers
from resolvers.pickem import leagues as league_resolvers  # the class of a query with a field `league` would hide it
from resolvers.pickem import predictions as prediction_resolvers
from resolvers.pickem import rules, scoring, visibility
from resolvers.pickem import standings as standing_resolvers
from resolvers.whole.mutations import Terms
from schema.framework.arguments import input_type
from schema.framework.declarations import (
    COUNTED,
    READ,
    Node,
    connection,
    described,
    enum,
    field,
    mutation,
    object_type,
    record_type,
    subscription,
)
from schema.framework.lazy import LazyUser
from schema.jobs import Job

# ── events ──

PREDICTIONS_COMPLEXITY = 8 * READ
"""Before it is scored, an event's predictions are read from 16 partitions, by small calls."""

EventState = event_store.EventState
MatchOutcome = event_store.MatchOutcome

enum(
    EventState,
    "The state of an event.",
    UPCOMING="Predictions are accepted.",
    LOCKED="It has begun or was locked early: predictions can no longer be submitted or changed.",
    SCORED="Its predictions have been scored.",
    CANCELLED="It will not take place.",
)
enum(
    MatchOutcome,
    "How a match ended.",
    WON="A team won; picks of that team earn the match's points.",
    DRAWN="Nobody won.",
    NO_CONTEST="It was stopped without a result.",
    CANCELLED="It did not take place.",
)


@record_type(event_store.Team, "One side of a match.")
class Team:
    name: str | None = described("The team's name.")
    members: list[str] = described("The team's members, at least one.")
    champion: bool = described("Whether the team defends a championship.")


@record_type(event_store.Result, "How a match ended.")
class MatchResult:
    outcome: MatchOutcome = described("The kind of ending.")
    winner: int | None = described("The position of the winning team, from 0; null unless a team won.")


@record_type(event_store.TieBreak, "A number that an event asks for; the nearest guess is listed first among equals.")
class TieBreak:
    question: str = described("The question.")
    unit: str | None = described("What the number counts.")
    answer: float | None = described("The answer; null until it is recorded.")


@record_type(visibility.MatchView, "A match on an event's card.")
class Match(Node):
    name: str = described("The kind of match.")
    order: int = described("Its position on the card, from 1; the pre-show comes first.")
    preshow: bool = described("Whether it belongs to the pre-show.")
    championships: list[str] = described("The titles at stake.")
    points: int = described("The points for a correct pick: 1 to 1,000.")
    teams: list[Team] = described("Two or more sides. Picks and results refer to a team by its position, from 0.")
    result: MatchResult | None = described("The result; null until it is recorded.")
    revision: int = described("Another number after each change of the match or its result.")
    pick_counts: list[int] | None = field(
        visibility.pick_counts, "Picks per team, in team order; null until the event is locked."
    )


@record_type(visibility.Pick, "A member's choice in one match.")
class Pick:
    match: strawberry.ID = field(prediction_resolvers.pick_match, "The match's id.")
    team: int = described("The position of the picked team, from 0.")
    correct: bool | None = described("Whether that team won; null until there is a result.")


@record_type(visibility.PredictionView, "A member's picks for one event.")
class Prediction(Node):
    event: Event = field(prediction_resolvers.prediction_event, "The event it is for.")
    user: LazyUser = field(prediction_resolvers.prediction_users, "Whose prediction it is.")
    submitted_at: datetime = described("When these picks were accepted.")
    picks: list[Pick] | None = field(
        visibility.picks, "The picks, in the card's order. Other members' are null until the event is locked."
    )
    guess: float | None = field(
        visibility.prediction_guess,
        "The guess for the event's tie-break; null if it was for an earlier question. Other members' are null until "
        "the event is locked.",
    )
    points: int | None = described("The points it earned; null until the event is scored.")
    correct: int | None = described("The number of correct picks; null until the event is scored.")
    rank: int | None = field(
        visibility.prediction_rank,
        "The rank among the event's predictions, shared by equal points; null until the event is scored.",
    )


PredictionConnection = connection(Prediction, "A page of predictions.", edge="A prediction in a list.")


@record_type(event_store.Event, "An evening of matches to predict.")
class Event(Node):
    slug: str = described("Day in UTC and name, in a form for URLs. It changes with them; only the id is permanent.")
    name: str = described("Its name.")
    season: str = described("The season it counts for.")
    starts_at: datetime = described("When it begins. It locks automatically at this time.")
    state: EventState = described("Its current state.")
    description: str | None = described("What it is about; lines of plain text.")
    place: str | None = described("Where it takes place.")
    image_url: str | None = described("The address of a picture, on a host that the operator allows.")
    tie_break: TieBreak | None = described("The number that it asks for.")
    revision: int = described("Another number after each change of the event, its card and its results.")
    matches: list[Match] = field(event_resolvers.event_matches, "The card, pre-show first.", complexity=READ)
    viewer_prediction: Prediction | None = field(
        prediction_resolvers.viewer_prediction, "The viewer's own prediction, always visible.", complexity=READ
    )
    predictions: PredictionConnection = field(
        prediction_resolvers.event_predictions,
        "All predictions: best first once the event is scored, by member until then. Other members' picks are hidden "
        "until the event is locked.",
        complexity=PREDICTIONS_COMPLEXITY,
    )


EventConnection = connection(Event, "A page of events.", edge="An event in a list.")


@record_type(visibility.StandingView, "A member's totals for one season, and their rank.")
class Standing:
    user: LazyUser = field(standing_resolvers.standing_users, "Whose standing it is.")
    season: str = described("The season.")
    rank: int = described("One more than the number of members with more points; equal points share a rank: 1, 1, 3.")
    points: int = described("Points from all scored events.")
    correct: int = described("The number of correct picks.")
    events_played: int = described("The number of scored events with a prediction by the member.")


StandingConnection = connection(Standing, "A page of standings.", edge="A standing in a list.", total_count=COUNTED)


@record_type(visibility.SeasonView, "The events that count together in standings.")
class Season:
    name: str = described("Its name, as in its events.")
    events: int = described("The number of its events in any state.")
    latest_event_at: datetime = described("When its latest event begins.")
    standings: StandingConnection = field(
        standing_resolvers.season_standings, "As `Query.standings` of its name.", complexity=2 * READ
    )


SeasonConnection = connection(
    Season, "A page of seasons, the one with the latest event first.", edge="A season in its list."
)


# ── leagues ──

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


# ── queries and subscriptions ──


@strawberry.type
class PickemOfUser:
    """What pick'em adds to a member."""

    standings: list[Standing] = field(
        standing_resolvers.user_standings,
        "The member's standings in all seasons, in descending order of the season's name.",
        complexity=READ,
        most_objects=20,  # of its cost: a member may have more seasons, and sees all
    )
    standing: Standing | None = field(
        standing_resolvers.user_standing,
        "The member's standing in one season; null if they have none.",
        complexity=READ,
        season="The season.",
    )
    predictions: PredictionConnection = field(
        prediction_resolvers.user_predictions,
        "The member's predictions, newest event first: by the start that an event had when the picks were submitted, "
        "or when they were scored.",
        complexity=2 * READ,
    )
    leagues: LeagueConnection = field(
        league_resolvers.user_leagues,
        "The leagues that the member is in or waits for, newest first. Visible to the member only.",
        complexity=READ,
        season="Only those of this season.",
    )


@strawberry.type
class PickemQuery:
    event: Event | None = field(event_resolvers.event, "An event.", id="The event's id.")
    events: EventConnection = field(
        event_resolvers.events,
        "Events, newest first. Can be paged in both directions.",
        state="Only events in this state.",
    )
    next_event: Event | None = field(
        event_resolvers.next_event,
        "The next event to lock: the upcoming one that begins first. Null if there is none.",
        season="Only an event of this season.",
    )
    seasons: SeasonConnection = field(
        event_resolvers.seasons, "The seasons, the one with the latest event first. Can be paged in both directions."
    )
    standings: StandingConnection = field(
        standing_resolvers.standings,
        "A season's members by points, then by correct picks, then by nearer guesses, then by joining order.",
        season="The season's name, as in its events.",
    )
    predictions: PredictionConnection = field(
        prediction_resolvers.predictions,
        "An event's predictions, in the order of `Event.predictions`.",
        complexity=PREDICTIONS_COMPLEXITY,
        event="The event's id.",
    )
    league: League | None = field(
        league_resolvers.league,
        "A league by its id or by its code. A member may use codes 30 times in each hour of the clock.",
        id="The league's id.",
        code="The code that a captain has shared; for members who are signed in.",
    )


@strawberry.type
class PickemSubscription:
    standings_changed: list[Standing] = subscription(
        standing_resolvers.standings_changed,
        "A season's first rows immediately, then again after each change, at most every two seconds.",
        season="The season.",
        league="Only the members of this league of the season, ranked among themselves.",
        first="The number of rows: 1 to 100, default 20.",
    )
    event_changed: Event = subscription(
        event_resolvers.event_changed,
        "The event immediately, then again after each change of its card, state or results.",
        event="The event's id.",
    )


# ── mutations ──

input_type(
    rules.TeamInput,
    "TeamInput",
    "One side of a match.",
    name="The team's name, up to 200 characters.",
    members="The team's members: 1 to 40 names.",
    champion="Whether the team defends a championship.",
)
input_type(
    rules.TieBreakInput,
    "TieBreakInput",
    "A number that an event asks for.",
    question="The question, 1 to 200 characters: minutes of the main event.",
    unit="What the number counts, 1 to 40 characters: minutes.",
)
input_type(
    prediction_resolvers.PickInput,
    "PickInput",
    "A choice in one match.",
    match="A match on the event's card.",
    team="The position of the picked team, from 0.",
)


@strawberry.type
class PickemMutation:
    create_event = mutation(
        event_resolvers.create_event,
        "Creates an event. For editors.",
        object_type("EventCreated", "The event was created.", event=(Event, "The new event.")),
        show=visibility.show_answer,
        input_description="A new event, with an empty card.",
        result_description="The new event, or why there is none.",
        name="The name: 1 to 200 characters.",
        season="The season it counts for: 1 to 40 characters, no '#'.",
        starts_at="When it begins, from 1900 to 2999. It locks automatically at this time.",
        description="What it is about: 1 to 2,000 characters of plain text.",
        place="Where it takes place: 1 to 200 characters.",
        image_url="The https address of a picture, on a host that the operator allows (RINGSIDE_IMAGE_HOSTS).",
        tie_break="A number that predictions may guess.",
    )
    update_event = mutation(
        event_resolvers.update_event,
        "Renames, moves or cancels an event. For editors.",
        object_type("EventUpdated", "The event was changed.", event=(Event, "The event as it is now.")),
        show=visibility.show_answer,
        input_description="Changes to an event. Omitted fields stay as they are.",
        result_description="The changed event, or why it was not changed.",
        event="The event.",
        name="A new name; can be changed at any time.",
        starts_at="A new start, if the event is not locked. The deadline moves with it.",
        cancelled="True cancels the event if scoring has not begun; false restores its previous state.",
        description="A new description; null for none.",
        place="A new place; null for none.",
        image_url="The address of a new picture; null for none.",
        tie_break="Another number to guess, or null for none, until the event is locked. Guesses for an earlier "
        "question or unit then count as missing; the same question again keeps them.",
        revision="The revision that the editor saw: with another one, nothing is changed (CONFLICT).",
    )
    add_match = mutation(
        event_resolvers.add_match,
        "Adds a match to an upcoming event's card. For editors.",
        object_type(
            "MatchAdded",
            "The match was added to the card.",
            match=(Match, "The new match."),
            event=(Event, "Its event."),
        ),
        input_description="A match to append to an upcoming event's card or pre-show.",
        result_description="The new match, or why it was not added.",
        event="The event.",
        name="The kind of match: 1 to 200 characters.",
        points="The points for a correct pick: 1 to 1,000.",
        teams="2 to 40 teams. Picks and results refer to a team by its position, from 0.",
        championships="The titles at stake, at most 10.",
        preshow="Whether it belongs to the pre-show.",
    )
    update_match = mutation(
        event_resolvers.update_match,
        "Changes a match of an upcoming event. For editors.",
        object_type("MatchUpdated", "The match was changed.", match=(Match, "The match as it is now.")),
        input_description="Changes to a match of an upcoming event. Omitted fields stay as they are.",
        result_description="The changed match, or why it was not changed.",
        match="The match.",
        name="The kind of match.",
        points="The points for a correct pick: 1 to 1,000.",
        teams="The new list of teams. Picks refer to a team's position; a position that someone picked cannot be "
        "removed.",
        championships="The new list of titles at stake.",
        preshow="Whether it belongs to the pre-show.",
        revision="The revision that the editor saw: with another one, nothing is changed (CONFLICT).",
    )
    remove_match = mutation(
        event_resolvers.remove_match,
        "Removes a match from an upcoming event's card. For editors.",
        object_type("MatchRemoved", "The match was removed from the card.", event=(Event, "The event as it is now.")),
        show=visibility.show_answer,
        input_description="A match to remove from an upcoming event's card. Picks of it no longer count.",
        result_description="The event without the match, or why it was not removed.",
        match="The match.",
    )
    reorder_matches = mutation(
        event_resolvers.reorder_matches,
        "Reorders a card. For editors.",
        object_type("MatchesReordered", "The card was reordered.", event=(Event, "The event as it is now.")),
        show=visibility.show_answer,
        input_description="A new order for an upcoming event's card.",
        result_description="The event with the new order, or why it was not changed.",
        event="The event.",
        matches="Each match of the card, once. The pre-show stays first.",
        revision="The event's revision as the editor saw it: with another one, nothing is changed (CONFLICT).",
    )
    submit_prediction = mutation(
        prediction_resolvers.submit_prediction,
        "Submits or changes the viewer's picks until the event locks.",
        object_type(
            "PredictionSubmitted",
            "The prediction was accepted in time.",
            prediction=(Prediction, "The viewer's current prediction."),
        ),
        terms=Terms(guests="predictions"),
        input_description="The viewer's picks for an event. They replace all earlier ones.",
        result_description="The prediction, or why it was not accepted.",
        event="The event.",
        picks="One team per match. An omitted match is left unpicked.",
        guess="The number that the event asks for, rounded to thousandths; at most a million either way.",
    )
    lock_event = mutation(
        event_resolvers.lock_event,
        "Locks an event before it starts. For editors.",
        object_type("EventLocked", "The event is locked.", event=(Event, "The event as it is now.")),
        show=visibility.show_answer,
        input_description="An event to lock before it starts.",
        result_description="The locked event, or why it was not locked.",
        event="The event.",
    )
    record_result = mutation(
        event_resolvers.record_result,
        "Records or corrects how a match ended. For editors.",
        object_type(
            "ResultRecorded",
            "The result is recorded; points follow when the event is scored.",
            match=(Match, "The match with its result."),
        ),
        input_description="How a match of a locked event ended. A later result corrects an earlier one.",
        result_description="The match, or why its result was not recorded.",
        match="The match.",
        outcome="The kind of ending.",
        winner="The position of the winning team, from 0. Required with WON, not allowed otherwise.",
        revision="The match's revision as the editor saw it: with another one, nothing is changed (CONFLICT).",
    )
    score_event = mutation(
        scoring.score_event,
        "Scores an event's predictions. Safe to repeat at any time: it scores only the predictions that are left, and "
        "while a job does that, it answers with the same job. For editors.",
        object_type(
            "EventScored",
            "The event's predictions are scored with its current results, or a job goes on with that.",
            event=(Event, "The event as it is now. It keeps its state until the job is done."),
            predictions_scored=(int, "The number of predictions that are scored; all of them without a job."),
            job=(Job | None, "What scores the rest, if that takes longer than 5 s; null when all is done."),
        ),
        input_description="A locked event to score, or to score again after a correction.",
        result_description="The scored event, or why it was not scored.",
        event="The event.",
        confirm_missing="Whether to score it even if matches have no result; their picks give no points. Otherwise it "
        "is refused with CONFLICT.",
    )
    unscore_event = mutation(
        scoring.unscore_event,
        "Takes back all points of an event, as if it had never been scored. Results stay. For editors.",
        object_type(
            "EventUnscored",
            "The event's points are taken back, or a job goes on with that.",
            event=(Event, "The event as it is now: LOCKED again, or in the state that it had until the job is done."),
            job=(Job | None, "What takes the rest back, if that takes longer than 5 s; null when all is done."),
        ),
        input_description="An event whose points are taken back. It is LOCKED again, and can be scored again.",
        result_description="The event without points, or why it still has them.",
        event="The event.",
    )
    record_tie_break = mutation(
        event_resolvers.record_tie_break,
        "Records or corrects the answer to an event's tie-break. For editors.",
        object_type(
            "TieBreakRecorded",
            "The answer is recorded; the order follows when the event is scored.",
            event=(Event, "The event with the answer."),
        ),
        show=visibility.show_answer,
        input_description="The answer to the tie-break of a locked event. A later answer corrects an earlier one.",
        result_description="The event, or why its answer was not recorded.",
        event="The event.",
        answer="The number, rounded to thousandths; at most a million either way.",
    )
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
