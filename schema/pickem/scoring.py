"""Results, answers and points of events."""

from __future__ import annotations

import strawberry

from resolvers.pickem import results, scoring, unscoring, visibility
from schema.framework.mutations import mutation
from schema.framework.types import object_type
from schema.jobs import Job
from schema.pickem.events import Event, Match


@strawberry.type
class ScoringMutation:
    record_result = mutation(
        results.record_result,
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
        unscoring.unscore_event,
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
        results.record_tie_break,
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
