"""Pick'em: events with their cards, the gates that accept predictions, standings.

| wanted                                 | read or write                                              | requests    |
|----------------------------------------|------------------------------------------------------------|-------------|
| events, newest first                   | gsi1 EVENTS                                                | 1 a page    |
| events of one state                    | gsi2 EVENTS#<state>; for LOCKED also due UPCOMING ones     | 1-2 a page  |
| one event, the events of a page        | BatchGetItem, consistent                                   | 1 a hundred |
| an event's card                        | EVENT#<id> MATCH#…, consistent; cached for the version     | 1 a version |
| picks per team                         | EVENT#<id> GATE#…, once it is locked; final, so cached     | 1 an event  |
| a new event                            | transaction: event, 16 gates                               | 1           |
| a change of the card                   | transaction: event (version, not begun), match; gates      | 1           |
| another start, a lock, a cancellation  | transaction: event (version), 16 gates                     | 1           |
| a result                               | Put of the event (version)                                 | 1           |
| one prediction                         | GetItem EVENT#<id>#<shard> USER#<user>, consistent         | 1           |
| a submission                           | transaction: gate (open, in time, card), prediction (version) | 1           |
| predictions before scoring             | EVENT#<id>#<shard>, 16 shards merged                       | 16 a page   |
| ranked predictions                     | gsi2 EVENT#<id>#RANKED#<shard>, 4 shards merged            | 4 a page    |
| predictions to score                   | EVENT#<id>#<shard>, consistent                             | 1 a hundred |
| a scored prediction                    | standing (version), then prediction (generation)           | 2           |
| standings of a season                  | gsi2 STANDINGS#<season>#<shard>, 4 shards merged           | 4 a page    |
| a rank among all                       | STANDINGS#<season> SEASON; its histogram, cached           | 1, then 1   |
| a member's standings and predictions   | gsi1 USER#<user>                                           | 1 a page    |

Items that many members write at the same time are spread over 16 shards (`people.shard`). Rankings are spread over 4,
because every page reads each shard once.
"""

from datastore.pickem.events import (
    EVENT,
    MATCH,
    CardChange,
    Clock,
    Event,
    EventState,
    Locked,
    Match,
    MatchOutcome,
    Result,
    Team,
    VersionConflict,
    all_events,
    change_event,
    create_event,
    gate_state,
    put_match,
    put_match_with_fewer_teams,
    read_events,
    read_events_page,
    read_gates,
    read_matches,
    read_pick_counts,
    remove_match,
    reorder_card,
    slugify,
)
from datastore.pickem.gates import GATE, Gate, GateState, PickCounts, pick_counter
from datastore.pickem.histograms import (
    HISTOGRAM_PART,
    Histogram,
    delete_older_event_histograms,
    read_event_histogram,
    store_event_histogram,
)
from datastore.pickem.predictions import (
    PREDICTION,
    RANKING_SHARDS,
    Prediction,
    member_predictions_request,
    predictions_to_score,
    read_event_predictions,
    read_member_predictions,
    read_prediction,
    submit_prediction,
)
from datastore.pickem.standings import (
    SEASON,
    STANDING,
    MemberPage,
    Season,
    Share,
    Standing,
    credit_standing,
    finish_prediction,
    read_member_page,
    read_member_standings,
    read_season_histogram,
    read_seasons,
    read_standing,
    read_standings,
    read_standings_page,
    recount_season,
)

__all__ = [
    "EVENT",
    "GATE",
    "HISTOGRAM_PART",
    "MATCH",
    "PREDICTION",
    "RANKING_SHARDS",
    "SEASON",
    "STANDING",
    "CardChange",
    "Clock",
    "Event",
    "EventState",
    "Gate",
    "GateState",
    "Histogram",
    "Locked",
    "Match",
    "MatchOutcome",
    "MemberPage",
    "PickCounts",
    "Prediction",
    "Result",
    "Season",
    "Share",
    "Standing",
    "Team",
    "VersionConflict",
    "all_events",
    "change_event",
    "create_event",
    "credit_standing",
    "delete_older_event_histograms",
    "finish_prediction",
    "gate_state",
    "member_predictions_request",
    "pick_counter",
    "predictions_to_score",
    "put_match",
    "put_match_with_fewer_teams",
    "read_event_histogram",
    "read_event_predictions",
    "read_events",
    "read_events_page",
    "read_gates",
    "read_matches",
    "read_member_page",
    "read_member_predictions",
    "read_member_standings",
    "read_pick_counts",
    "read_prediction",
    "read_season_histogram",
    "read_seasons",
    "read_standing",
    "read_standings",
    "read_standings_page",
    "recount_season",
    "remove_match",
    "reorder_card",
    "slugify",
    "store_event_histogram",
    "submit_prediction",
]
