"""Pick'em: events and their matches, predictions, standings."""

from __future__ import annotations

from datetime import datetime

import strawberry

from datastore.pickem import events as event_store
from resolvers.pickem import events as event_resolvers  # a class with a field `events` does not see a module `events`
from resolvers.pickem import predictions as prediction_resolvers
from resolvers.pickem import rules, scoring, views
from resolvers.pickem import standings as standing_resolvers
from schema.arguments import input_type
from schema.connections import connection, counted
from schema.fields import described, field
from schema.lazy import LazyUser
from schema.mutations import mutation
from schema.subscriptions import subscription
from schema.types import Node, enum, record_type

EventState = event_store.EventState
MatchOutcome = event_store.MatchOutcome

enum(
    EventState,
    "Where an event stands.",
    UPCOMING="Predictions are accepted.",
    LOCKED="It has begun, or was locked: no prediction is accepted or changed any more.",
    SCORED="Its results have been turned into points.",
    CANCELLED="It does not take place.",
)
enum(
    MatchOutcome,
    "How a match ended.",
    WON="A team won; picks of it earn the match's points.",
    DRAWN="Nobody won.",
    NO_CONTEST="It was broken off without a result.",
    CANCELLED="It did not take place.",
)


@record_type(event_store.Team, "One side of a match.")
class Team:
    name: str | None = described("What the team calls itself.")
    members: list[str] = described("Who is in it; at least one.")
    champion: bool = described("Whether the team defends a championship.")


@record_type(event_store.Result, "How a match ended.")
class MatchResult:
    outcome: MatchOutcome = described("The kind of ending.")
    winner: int | None = described("The place of the winning team, 0 for the first; null unless somebody won.")


@record_type(views.MatchView, "A match on an event's card.")
class Match(Node):
    name: str = described("What kind of match it is.")
    order: int = described("Its place on the card, from 1; the pre-show comes first.")
    preshow: bool = described("Whether it belongs to the pre-show.")
    championships: list[str] = described("The titles at stake.")
    points: int = described("What a right pick earns: 1 to 1,000.")
    teams: list[Team] = described("Two or more sides; picks and results name them by their place, from 0.")
    result: MatchResult | None = described("Null until it is recorded.")
    pick_counts: list[int] | None = field(
        event_resolvers.pick_counts, "Picks per team, in team order; null until the event is locked."
    )


@record_type(views.Pick, "A member's choice in one match.")
class Pick:
    match: strawberry.ID = field(prediction_resolvers.pick_match, "The match's id.")
    team: int = described("The place of the team that was picked, from 0.")
    correct: bool | None = described("Whether that team won; null until there is a result.")


@record_type(views.PredictionView, "A member's picks for one event.")
class Prediction(Node):
    event: Event = field(prediction_resolvers.prediction_event, "What is predicted.")
    user: LazyUser = field(prediction_resolvers.prediction_users, "Whose prediction it is.")
    submitted_at: datetime = described("When these picks were accepted.")
    picks: list[Pick] | None = field(
        prediction_resolvers.picks, "In the card's order. Others' are null until the event is locked."
    )
    points: int | None = described("What it earned; null until the event is scored.")
    correct: int | None = described("How many picks were right; null until the event is scored.")
    rank: int | None = field(
        prediction_resolvers.prediction_rank,
        "The place among the event's predictions by points, shared by those with as many; null until it is scored.",
    )


PredictionConnection = connection(Prediction, "A page of predictions.", edge="A prediction in a list.")


@record_type(event_store.Event, "An evening of matches to predict.")
class Event(Node):
    slug: str = described("Day and name in a form for addresses. It follows both; the id is what lasts.")
    name: str = described("What it is called.")
    season: str = described("The season whose standings it counts for.")
    starts_at: datetime = described("When it begins, and locks by itself.")
    state: EventState = described("Where it stands.")
    matches: list[Match] = field(event_resolvers.event_matches, "The card, pre-show first.")
    viewer_prediction: Prediction | None = field(
        prediction_resolvers.viewer_prediction, "The viewer's own prediction, at any time."
    )
    predictions: PredictionConnection = field(
        prediction_resolvers.event_predictions,
        "Everybody's: best first once the event is scored, by member until then. Picks of others are hidden until the "
        "lock.",
    )


EventConnection = connection(Event, "A page of events.", edge="An event in a list.")


@record_type(views.StandingView, "A member's sums of one season, and their place among all.")
class Standing:
    user: LazyUser = field(standing_resolvers.standing_users, "Whose standing it is.")
    season: str = described("The season.")
    rank: int = described("One more than have more points; the same points share it: 1, 1, 3.")
    points: int = described("The points of all scored events.")
    correct: int = described("How many picks were right.")
    events_played: int = described("For how many scored events the member submitted a prediction.")


StandingConnection = connection(Standing, "A page of standings.", edge="A standing in a list.", total_count=counted())


@strawberry.type
class PickemOfUser:
    """What pick'em adds to a member."""

    standings: list[Standing] = field(
        standing_resolvers.user_standings, "The member's seasons, the last by name first."
    )
    standing: Standing | None = field(
        standing_resolvers.user_standing,
        "The member's standing in one season; null if they have none.",
        season="The season.",
    )
    predictions: PredictionConnection = field(
        prediction_resolvers.user_predictions, "The member's predictions, newest event first."
    )


@strawberry.type
class PickemQuery:
    event: Event | None = field(event_resolvers.event, "An event.", id="The event's id.")
    events: EventConnection = field(
        event_resolvers.events, "Events, newest first, in both directions.", state="Only events that stand there."
    )
    standings: StandingConnection = field(
        standing_resolvers.standings,
        "A season's members by points, then by correct picks, then who joined first.",
        season="The season, as its events name it.",
    )
    predictions: PredictionConnection = field(
        prediction_resolvers.predictions, "An event's predictions, as `Event.predictions`.", event="The event's id."
    )


@strawberry.type
class PickemSubscription:
    standings_changed: list[Standing] = subscription(
        standing_resolvers.standings_changed,
        "A season's first rows at once, then again after each change, at most every other second.",
        season="The season.",
        first="How many rows: 1 to 100, 20 unless given.",
    )
    event_changed: Event = subscription(
        event_resolvers.event_changed,
        "The event at once, then again after each change of its card, state or results.",
        event="The event's id.",
    )


# ── mutations ──

input_type(
    rules.TeamGiven,
    "TeamInput",
    "One side of a match.",
    name="What the team calls itself, up to 200 characters.",
    members="Who is in it: 1 to 40 names.",
    champion="Whether the team defends a championship.",
)
input_type(
    prediction_resolvers.PickGiven,
    "PickInput",
    "A choice in one match.",
    match="A match on the event's card.",
    team="The place of the team, from 0.",
)


@strawberry.type(description="The event was created.")
class EventCreated:
    event: Event = described("The new event.")


@strawberry.type(description="The event was changed.")
class EventUpdated:
    event: Event = described("The event as it is now.")


@strawberry.type(description="The event is locked.")
class EventLocked:
    event: Event = described("The event as it is now.")


@strawberry.type(description="The match is on the card.")
class MatchAdded:
    match: Match = described("The new match.")
    event: Event = described("Its event.")


@strawberry.type(description="The match was changed.")
class MatchUpdated:
    match: Match = described("The match as it is now.")


@strawberry.type(description="The match is off the card.")
class MatchRemoved:
    event: Event = described("The event as it is now.")


@strawberry.type(description="The card is in its new order.")
class MatchesReordered:
    event: Event = described("The event as it is now.")


@strawberry.type(description="The prediction was accepted in time.")
class PredictionSubmitted:
    prediction: Prediction = described("The viewer's prediction as it counts.")


@strawberry.type(description="The result is recorded; points follow when the event is scored.")
class ResultRecorded:
    match: Match = described("The match with its result.")


@strawberry.type(description="All predictions of the event show the points of its present results.")
class EventScored:
    event: Event = described("The event as it is now.")
    predictions_scored: int = described("How many predictions the event has, all of them scored.")


@strawberry.type
class PickemMutation:
    create_event = mutation(
        event_resolvers.create_event,
        "Creates an event. For editors.",
        EventCreated,
        input_description="A new event, with an empty card.",
        result_description="The new event, or why there is none.",
        name="What it is called: 1 to 200 characters.",
        season="The season it counts for: 1 to 40 characters, no '#'.",
        starts_at="When it begins, and locks by itself.",
    )
    update_event = mutation(
        event_resolvers.update_event,
        "Renames, moves or cancels an event. For editors.",
        EventUpdated,
        input_description="Changes to an event. What is left out stays.",
        result_description="The changed event, or why it was not changed.",
        event="The event.",
        name="Another name, at any time.",
        starts_at="Another start, as long as the event is not locked. The lock moves with it.",
        cancelled="True cancels, as long as scoring has not begun; false takes it back, to what it was before.",
    )
    add_match = mutation(
        event_resolvers.add_match,
        "Adds a match to an upcoming event's card. For editors.",
        MatchAdded,
        input_description="A match to put at the end of an upcoming event's card, or of its pre-show.",
        result_description="The new match, or why it was not added.",
        event="The event.",
        name="What kind of match it is: 1 to 200 characters.",
        points="What a right pick earns: 1 to 1,000.",
        teams="2 to 40 teams. Picks and results name them by their place, from 0.",
        championships="The titles at stake, at most 10.",
        preshow="Whether it belongs to the pre-show.",
    )
    update_match = mutation(
        event_resolvers.update_match,
        "Changes a match of an upcoming event. For editors.",
        MatchUpdated,
        input_description="Changes to a match of an upcoming event. What is left out stays.",
        result_description="The changed match, or why it was not changed.",
        match="The match.",
        name="What kind of match it is.",
        points="What a right pick earns: 1 to 1,000.",
        teams="All teams anew. Picks stay with a team's place; a place that somebody picked cannot be left out.",
        championships="The titles at stake, all of them anew.",
        preshow="Whether it belongs to the pre-show.",
    )
    remove_match = mutation(
        event_resolvers.remove_match,
        "Takes a match off an upcoming event's card. For editors.",
        MatchRemoved,
        input_description="A match to take off an upcoming event's card. Picks of it count for nothing any more.",
        result_description="The event without the match, or why it stays.",
        match="The match.",
    )
    reorder_matches = mutation(
        event_resolvers.reorder_matches,
        "Puts a card into another order. For editors.",
        MatchesReordered,
        input_description="An upcoming event's card in another order.",
        result_description="The event, or why its card stays as it was.",
        event="The event.",
        matches="Each match of the card, once. The pre-show stays in front.",
    )
    submit_prediction = mutation(
        prediction_resolvers.submit_prediction,
        "Submits the viewer's picks, or amends them, until the event locks.",
        PredictionSubmitted,
        input_description="The viewer's picks for an event, in place of all earlier ones.",
        result_description="The prediction, or why it is none.",
        event="The event.",
        picks="One team a match; a match that is left out is unpicked.",
    )
    lock_event = mutation(
        event_resolvers.lock_event,
        "Locks an event before it starts. For editors.",
        EventLocked,
        input_description="An event to lock before it starts.",
        result_description="The locked event, or why it is not locked.",
        event="The event.",
    )
    record_result = mutation(
        event_resolvers.record_result,
        "Records or corrects how a match ended. For editors.",
        ResultRecorded,
        input_description="How a match of a locked event ended. A later result corrects an earlier one.",
        result_description="The match, or why its result was not recorded.",
        match="The match.",
        outcome="The kind of ending.",
        winner="The place of the winning team, from 0. With WON, and only there.",
    )
    score_event = mutation(
        scoring.score_event,
        "Turns results into points. May be asked again at any time: it takes up what is left, and changes nothing "
        "where nothing is. For editors.",
        EventScored,
        input_description="A locked event to score, or to score again after a correction.",
        result_description="The scored event, or why it is not scored.",
        event="The event.",
    )
