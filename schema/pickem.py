"""Pick'em: types, queries, subscriptions. What editors and members do is in `pickem_mutations`."""

from __future__ import annotations

from datetime import datetime

import strawberry

from datastore.pickem import events as records
from resolvers.pickem import events as of_events
from resolvers.pickem import predictions as of_predictions
from resolvers.pickem import standings as of_standings
from resolvers.pickem import views as shown
from schema.lazy import LazyUser
from schema.shapes import Connection, CountedConnection, Edge, Node, described, enum, field, shape, subscription

EventState = records.EventState
MatchOutcome = records.MatchOutcome

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


@shape(records.Team, "One side of a match.")
class Team:
    name: str | None = described("What the team calls itself.")
    members: list[str] = described("Who is in it; at least one.")
    champion: bool = described("Whether the team defends a championship.")


@shape(records.Result, "How a match ended.")
class MatchResult:
    outcome: MatchOutcome = described("The kind of ending.")
    winner: int | None = described("The place of the winning team, 0 for the first; null unless somebody won.")


@shape(shown.MatchView, "A match on an event's card.")
class Match(Node):
    name: str = described("What kind of match it is.")
    order: int = described("Its place on the card, from 1; the pre-show comes first.")
    preshow: bool = described("Whether it belongs to the pre-show.")
    championships: list[str] = described("The titles at stake.")
    points: int = described("What a right pick earns: 1 to 1,000.")
    teams: list[Team] = described("Two or more sides; picks and results name them by their place, from 0.")
    result: MatchResult | None = described("Null until it is recorded.")
    pick_counts: list[int] | None = field(
        of_events.pick_counts, "Picks per team, in team order; null until the event is locked."
    )


@shape(shown.Pick, "A member's choice in one match.")
class Pick:
    match: strawberry.ID = field(of_predictions.pick_match, "The match's id.")
    team: int = described("The place of the team that was picked, from 0.")
    correct: bool | None = described("Whether that team won; null until there is a result.")


@shape(shown.PredictionView, "A member's picks for one event.")
class Prediction(Node):
    event: Event = field(of_predictions.prediction_event, "What is predicted.")
    user: LazyUser = field(of_predictions.prediction_users, "Whose prediction it is.")
    submitted_at: datetime = described("When these picks were accepted.")
    picks: list[Pick] | None = field(
        of_predictions.picks, "In the card's order. Others' are null until the event is locked."
    )
    points: int | None = described("What it earned; null until the event is scored.")
    correct: int | None = described("How many picks were right; null until the event is scored.")
    rank: int | None = field(
        of_predictions.prediction_rank,
        "The place among the event's predictions by points, shared by those with as many; null until it is scored.",
    )


@strawberry.type(description="A prediction in a list.")
class PredictionEdge(Edge[Prediction]):
    pass


@strawberry.type(description="A page of predictions.")
class PredictionConnection(Connection[PredictionEdge, Prediction]):
    pass


@shape(records.Event, "An evening of matches to predict.")
class Event(Node):
    slug: str = described("Day and name in a form for addresses. It follows both; the id is what lasts.")
    name: str = described("What it is called.")
    season: str = described("The season whose standings it counts for.")
    starts_at: datetime = described("When it begins, and locks by itself.")
    state: EventState = described("Where it stands.")
    matches: list[Match] = field(of_events.event_matches, "The card, pre-show first.")
    viewer_prediction: Prediction | None = field(
        of_predictions.viewer_prediction, "The viewer's own prediction, at any time."
    )
    predictions: PredictionConnection = field(
        of_predictions.event_predictions,
        "Everybody's: best first once the event is scored, by member until then. Picks of others are hidden until the "
        "lock.",
    )


@strawberry.type(description="An event in a list.")
class EventEdge(Edge[Event]):
    pass


@strawberry.type(description="A page of events.")
class EventConnection(Connection[EventEdge, Event]):
    pass


@shape(shown.StandingView, "A member's sums of one season, and their place among all.")
class Standing:
    user: LazyUser = field(of_standings.standing_users, "Whose standing it is.")
    season: str = described("The season.")
    rank: int = described("One more than have more points; the same points share it: 1, 1, 3.")
    points: int = described("The points of all scored events.")
    correct: int = described("How many picks were right.")
    events_played: int = described("For how many scored events the member submitted a prediction.")


@strawberry.type(description="A standing in a list.")
class StandingEdge(Edge[Standing]):
    pass


@strawberry.type(description="A page of standings.")
class StandingConnection(CountedConnection[StandingEdge, Standing]):
    pass


@strawberry.type
class PickemOfUser:
    """What pick'em adds to a member."""

    standings: list[Standing] = field(of_standings.user_standings, "The member's seasons, the last by name first.")
    standing: Standing | None = field(
        of_standings.user_standing, "The member's standing in one season; null if they have none.", season="The season."
    )
    predictions: PredictionConnection = field(
        of_predictions.user_predictions, "The member's predictions, newest event first."
    )


@strawberry.type
class PickemQuery:
    event: Event | None = field(of_events.event, "An event.", id="The event's id.")
    events: EventConnection = field(
        of_events.events, "Events, newest first, in both directions.", state="Only events that stand there."
    )
    standings: StandingConnection = field(
        of_standings.standings,
        "A season's members by points, then by correct picks, then who joined first.",
        season="The season, as its events name it.",
    )
    predictions: PredictionConnection = field(
        of_predictions.predictions, "An event's predictions, as `Event.predictions`.", event="The event's id."
    )


@strawberry.type
class PickemSubscription:
    standings_changed: list[Standing] = subscription(
        of_standings.standings_changed,
        "A season's first rows at once, then again after each change, at most every other second.",
        season="The season.",
        first="How many rows: 1 to 100, 20 unless given.",
    )
    event_changed: Event = subscription(
        of_events.event_changed,
        "The event at once, then again after each change of its card, state or results.",
        event="The event's id.",
    )
