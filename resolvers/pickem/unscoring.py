"""Taking back all points of an event: it is LOCKED again, and standings and ranks are as if it had never been scored.

The event first takes two generations: in the first, each prediction loses its points and its member's standing loses
the share, in one transaction; the second is for the next scoring. A scorer that was taken for dead has an older
generation than the predictions, so it adds nothing after a prediction lost its points. Finally the season is counted.
From the first write on nobody sees the event's points; it is LOCKED after the last one.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from datastore import pickem as pickem_store
from datastore.changes.kinds import Kind
from datastore.jobs.jobs import Job
from datastore.pickem import Event, EventState, Share, VersionConflict
from datastore.refusals import Conflict
from resolvers.jobs.running import JobRun, job_soon, starter_of
from resolvers.pickem.crediting import credit_every_prediction
from resolvers.pickem.event_jobs import UNSCORE_EVENT, begin_event_job, event_job, event_of
from resolvers.pickem.events import EventId, existing_event
from resolvers.pickem.visibility import ShownEvent
from resolvers.requests.context import Context, Services
from resolvers.requests.viewer import Role


@dataclass(frozen=True, slots=True)
class Unscored:
    """The answer to unscoring an event, and the job while it goes on."""

    event: ShownEvent
    job: Job | None


async def unscore_event(ctx: Context, /, *, event: EventId) -> Unscored:
    """Take the points back. What takes longer than the answer goes on as a job."""
    ctx.with_role(Role.EDITOR)
    new = event_job(ctx.services, UNSCORE_EVENT, event, ctx.unit.actor, starter_of(ctx))
    job = await job_soon(ctx, await begin_unscoring(ctx.services, new), unscore_event_job)
    answer = Unscored(await existing_event(ctx, event), job if job.is_running else None)
    await ctx.unit.store_receipt(ctx.table, answer)
    return answer


async def begin_unscoring(services: Services, new: Job) -> Job:
    """Begin to take points back, or find the job that does. A repeat finds that all were taken back."""

    async def change(event: Event) -> Event | None:
        if event.may_have_points:
            return event.unscoring(new.id)
        if event.state is EventState.LOCKED and event.unscored is not None:
            return None
        raise Conflict(f"This event is {event.state.value} and has not been scored.", path=("input", "event"))

    return await begin_event_job(services, new, change)


# ── the job ──


async def unscore_event_job(services: Services, run: JobRun) -> str:
    """Take back the points of an event until nothing of them is left."""
    while (event := await event_of(services, run)) is not None:
        with suppress(VersionConflict):
            await _take_back(services, run, event)
    return f"Predictions without points: {run.done:,}."


async def _take_back(services: Services, run: JobRun, event: Event) -> None:
    table, taken_back = services.table, event.unscored or 0
    nothing = Share.taken_back(taken_back)
    await credit_every_prediction(table, event, lambda _: nothing, run)
    await pickem_store.delete_older_event_histograms(table, event.id, taken_back)
    await pickem_store.recount_season(table, event.season)
    await run.report()  # the number is stored before the event no longer names the job
    unit = services.unit(run.input["actor"] or None)
    after = event.changed(state=EventState.LOCKED, job=None)
    occurrence = unit.occurred(Kind.EVENT_UNSCORED, pickem_store.name_of(after))
    await pickem_store.change_event(table, event, after, unit, after, *occurrence)
