"""What is done in pick'em: editors run events, members predict."""

from __future__ import annotations

from datetime import datetime

import strawberry

from resolvers.pickem import events, predictions, scoring
from schema.pickem import Event, Match, MatchOutcome, Prediction
from schema.shapes import IDEMPOTENCY_KEY, answers, described, mutation, unset


def given(text: str, default: object) -> object:
    """A field of an input with a default that the schema shows."""
    if isinstance(default, list):
        return strawberry.field(description=text, default_factory=list)
    return strawberry.field(description=text, default=default)


@strawberry.input(description="One side of a match.")
class TeamInput:
    name: str | None = unset("What the team calls itself, up to 200 characters.")
    members: list[str] = described("Who is in it: 1 to 40 names.")
    champion: bool = given("Whether the team defends a championship.", default=False)  # type: ignore[assignment]


# ── events ──


@strawberry.input(description="A new event, with an empty card.")
class CreateEventInput:
    name: str = described("What it is called: 1 to 200 characters.")
    season: str = described("The season it counts for: 1 to 40 characters, no '#'.")
    starts_at: datetime = described("When it begins, and locks by itself.")
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.type(description="The event was created.")
class EventCreated:
    event: Event = described("The new event.")


@strawberry.input(description="Changes to an event. What is left out stays.")
class UpdateEventInput:
    event: strawberry.ID = described("The event.")
    name: str | None = unset("Another name, at any time.")
    starts_at: datetime | None = unset("Another start, as long as the event is not locked. The lock moves with it.")
    cancelled: bool | None = unset(
        "True cancels, as long as scoring has not begun; false takes it back, to what it was before."
    )
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.type(description="The event was changed.")
class EventUpdated:
    event: Event = described("The event as it is now.")


@strawberry.input(description="An event to lock before it starts.")
class LockEventInput:
    event: strawberry.ID = described("The event.")
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.type(description="The event is locked.")
class EventLocked:
    event: Event = described("The event as it is now.")


# ── cards ──


@strawberry.input(description="A match to put at the end of an upcoming event's card, or of its pre-show.")
class AddMatchInput:
    event: strawberry.ID = described("The event.")
    name: str = described("What kind of match it is: 1 to 200 characters.")
    points: int = described("What a right pick earns: 1 to 1,000.")
    teams: list[TeamInput] = described("2 to 40 teams. Picks and results name them by their place, from 0.")
    championships: list[str] = given("The titles at stake, at most 10.", default=[])  # type: ignore[assignment]
    preshow: bool = given("Whether it belongs to the pre-show.", default=False)  # type: ignore[assignment]
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.type(description="The match is on the card.")
class MatchAdded:
    match: Match = described("The new match.")
    event: Event = described("Its event.")


@strawberry.input(description="Changes to a match of an upcoming event. What is left out stays.")
class UpdateMatchInput:
    match: strawberry.ID = described("The match.")
    name: str | None = unset("What kind of match it is.")
    points: int | None = unset("What a right pick earns: 1 to 1,000.")
    teams: list[TeamInput] | None = unset(
        "All teams anew. Picks stay with a team's place; a place that somebody picked cannot be left out."
    )
    championships: list[str] | None = unset("The titles at stake, all of them anew.")
    preshow: bool | None = unset("Whether it belongs to the pre-show.")
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.type(description="The match was changed.")
class MatchUpdated:
    match: Match = described("The match as it is now.")


@strawberry.input(description="A match to take off an upcoming event's card. Picks of it count for nothing any more.")
class RemoveMatchInput:
    match: strawberry.ID = described("The match.")
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.type(description="The match is off the card.")
class MatchRemoved:
    event: Event = described("The event as it is now.")


@strawberry.input(description="An upcoming event's card in another order.")
class ReorderMatchesInput:
    event: strawberry.ID = described("The event.")
    matches: list[strawberry.ID] = described("Each match of the card, once. The pre-show stays in front.")
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.type(description="The card is in its new order.")
class MatchesReordered:
    event: Event = described("The event as it is now.")


# ── predictions ──


@strawberry.input(description="A choice in one match.")
class PickInput:
    match: strawberry.ID = described("A match on the event's card.")
    team: int = described("The place of the team, from 0.")


@strawberry.input(description="The viewer's picks for an event, in place of all earlier ones.")
class SubmitPredictionInput:
    event: strawberry.ID = described("The event.")
    picks: list[PickInput] = described("One team a match; a match that is left out is unpicked.")
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.type(description="The prediction was accepted in time.")
class PredictionSubmitted:
    prediction: Prediction = described("The viewer's prediction as it counts.")


# ── results ──


@strawberry.input(description="How a match of a locked event ended. A later result corrects an earlier one.")
class RecordResultInput:
    match: strawberry.ID = described("The match.")
    outcome: MatchOutcome = described("The kind of ending.")
    winner: int | None = unset("The place of the winning team, from 0. With WON, and only there.")
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.type(description="The result is recorded; points follow when the event is scored.")
class ResultRecorded:
    match: Match = described("The match with its result.")


@strawberry.input(description="A locked event to score, or to score again after a correction.")
class ScoreEventInput:
    event: strawberry.ID = described("The event.")
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.type(description="All predictions of the event show the points of its present results.")
class EventScored:
    event: Event = described("The event as it is now.")
    predictions_scored: int = described("How many predictions the event has, all of them scored.")


CreateEventResult = answers("CreateEventResult", EventCreated, "The new event, or why there is none.")
UpdateEventResult = answers("UpdateEventResult", EventUpdated, "The changed event, or why it was not changed.")
AddMatchResult = answers("AddMatchResult", MatchAdded, "The new match, or why it was not added.")
UpdateMatchResult = answers("UpdateMatchResult", MatchUpdated, "The changed match, or why it was not changed.")
RemoveMatchResult = answers("RemoveMatchResult", MatchRemoved, "The event without the match, or why it stays.")
ReorderMatchesResult = answers("ReorderMatchesResult", MatchesReordered, "The event, or why its card stays as it was.")
SubmitPredictionResult = answers("SubmitPredictionResult", PredictionSubmitted, "The prediction, or why it is none.")
LockEventResult = answers("LockEventResult", EventLocked, "The locked event, or why it is not locked.")
RecordResultResult = answers("RecordResultResult", ResultRecorded, "The match, or why its result was not recorded.")
ScoreEventResult = answers("ScoreEventResult", EventScored, "The scored event, or why it is not scored.")


@strawberry.type
class PickemMutation:
    create_event: CreateEventResult = mutation(
        events.create_event, CreateEventInput, EventCreated, "Creates an event. For editors."
    )
    update_event: UpdateEventResult = mutation(
        events.update_event, UpdateEventInput, EventUpdated, "Renames, moves or cancels an event. For editors."
    )
    add_match: AddMatchResult = mutation(
        events.add_match, AddMatchInput, MatchAdded, "Adds a match to an upcoming event's card. For editors."
    )
    update_match: UpdateMatchResult = mutation(
        events.update_match, UpdateMatchInput, MatchUpdated, "Changes a match of an upcoming event. For editors."
    )
    remove_match: RemoveMatchResult = mutation(
        events.remove_match, RemoveMatchInput, MatchRemoved, "Takes a match off an upcoming event's card. For editors."
    )
    reorder_matches: ReorderMatchesResult = mutation(
        events.reorder_matches, ReorderMatchesInput, MatchesReordered, "Puts a card into another order. For editors."
    )
    submit_prediction: SubmitPredictionResult = mutation(
        predictions.submit_prediction,
        SubmitPredictionInput,
        PredictionSubmitted,
        "Submits the viewer's picks, or amends them, until the event locks.",
    )
    lock_event: LockEventResult = mutation(
        events.lock_event, LockEventInput, EventLocked, "Locks an event before it starts. For editors."
    )
    record_result: RecordResultResult = mutation(
        events.record_result, RecordResultInput, ResultRecorded, "Records or corrects how a match ended. For editors."
    )
    score_event: ScoreEventResult = mutation(
        scoring.score_event,
        ScoreEventInput,
        EventScored,
        "Turns results into points. May be asked again at any time: it takes up what is left, and changes nothing "
        "where nothing is. For editors.",
    )
