"""From results to points.

Scoring reads all predictions of an event, consistently and in turns between their shards, and gives each the points of
the current generation of results. The points and the member's standing change in one transaction, and repeating it
changes nothing. So a process that was taken for dead may go on beside the next one, and either may be killed.
Correcting a result begins another generation, and a scoring under way starts again with that.

No prediction is accepted after the lock, so one pass sees all of them. The same pass counts the points of all, for the
ranks within the event. Then the season is counted, and finally the event becomes SCORED. Until then it has the state
that it had. Scoring a scored event checks every prediction, and counts the season again.

Points are taken back in the same way (`unscoring`); `event_jobs` keeps the two apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from datastore import pickem as pickem_store
from datastore.changes.kinds import Kind
from datastore.jobs.jobs import Job
from datastore.pickem import Event, EventState, Prediction, Share
from datastore.refusals import Conflict
from resolvers.jobs.running import JobRun, JobRunner, job_soon, refuse_failed, starter_of
from resolvers.pickem import rules
from resolvers.pickem.cache import PickemCache
from resolvers.pickem.crediting import PREDICTIONS_AT_ONCE, credit_every_prediction
from resolvers.pickem.event_jobs import SCORE_EVENT, begin_event_job, event_job, work_on_event
from resolvers.pickem.events import EventId, existing_event
from resolvers.pickem.tie_breaks import closeness, worst_distance
from resolvers.pickem.visibility import ShownEvent
from resolvers.requests.context import Context, Services
from resolvers.requests.viewer import Role

_NAMED = 5
"""How many matches without a result a refusal names."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The answer to scoring an event: how many predictions are scored so far, and the job while it goes on."""

    event: ShownEvent
    predictions_scored: int
    job: Job | None


async def score_event(ctx: Context, /, *, event: EventId, confirm_missing: bool = False) -> Scored:
    """Score an event. What takes longer than the answer goes on as a job."""
    ctx.with_role(Role.EDITOR)
    new = event_job(ctx.services, SCORE_EVENT, event, ctx.unit.actor, starter_of(ctx))
    begun = await begin_scoring(ctx.services, new, confirm_missing=confirm_missing)
    job = await job_soon(ctx, begun, score_event_job)
    answer = Scored(await existing_event(ctx, event), job.done, job if job.is_running else None)
    await ctx.unit.store_receipt(ctx.table, answer)
    return answer


async def begin_scoring(services: Services, new: Job, *, confirm_missing: bool) -> Job:
    """Begin to score an event, or find the scoring that is not finished."""

    async def change(event: Event) -> Event:
        if event.state not in (EventState.LOCKED, EventState.SCORED):
            raise Conflict(
                f"This event is {event.state.value}. Only a locked event can be scored.", path=("input", "event")
            )
        if not confirm_missing:
            await _refuse_missing_results(services, event)
        return event.changed(job=new.id)

    return await begin_event_job(services, new, change)


async def score(services: Services, event: str, actor: str | None = None) -> Job:
    """The job of scoring an event, once it has ended; for who has no request. Matches may be without a result."""
    job = await begin_scoring(services, event_job(services, SCORE_EVENT, event, actor), confirm_missing=True)
    return refuse_failed(await services.get(JobRunner).ended(job, score_event_job))


async def _refuse_missing_results(services: Services, event: Event) -> None:
    """Conflict if matches have no result: scoring the event would give nobody their points."""
    if not event.missing_results:
        return
    card = await services.get(PickemCache).card(event)
    missing = [(event.card.index(match) + 1, card[match].name) for match in event.missing_results if match in card]
    named = ", ".join(f"{order}. {name}" for order, name in missing[:_NAMED]) + (", …" if len(missing) > _NAMED else "")
    raise Conflict(
        f"Matches without a result: {len(missing)} of {len(event.card)} ({named}). "
        "Record them, or confirm that they are missing to score without them.",
        path=("input", "confirmMissing"),
    )


# ── the job ──


async def score_event_job(services: Services, run: JobRun) -> str:
    """Score an event until all of its predictions have its current generation; repair what differs from that."""
    table = services.table

    async def give_points(event: Event) -> None:
        worst = await worst_distance(table, event, PREDICTIONS_AT_ONCE)
        winners = rules.winners(event, await pickem_store.read_matches(table, event.id))
        histogram = await credit_every_prediction(table, event, partial(_share, event, winners, worst), run)
        await pickem_store.store_histogram(table, pickem_store.event_scope(event.id), event.generation, histogram)

    await work_on_event(services, run, Kind.EVENT_SCORED, give_points, _scored)
    return f"Predictions scored: {run.done:,}."


def _scored(event: Event) -> Event:
    return event.changed(state=EventState.SCORED, scored=event.generation)


def _share(event: Event, winners: Mapping[str, tuple[int, int]], worst: int, prediction: Prediction) -> Share:
    """What a prediction gets by the event's current results."""
    score = rules.score(prediction.picks, winners)
    return Share(event.generation, score.points, score.correct, closeness=closeness(event, worst, prediction))
