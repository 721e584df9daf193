"""Taking back all points of an event: it is LOCKED again, and standings and ranks are as if it had never been scored.

The event first takes two generations: in the first, each prediction loses its points and its member's standing loses
the share, in one transaction; the second is for the next scoring. A scorer that was taken for dead has an older
generation than the predictions, so it adds nothing after a prediction lost its points. Finally the season is counted.
From the first write on nobody sees the event's points; it is LOCKED after the last one.
"""

from __future__ import annotations

from dataclasses import dataclass

from datastore.changes.kinds import Kind
from datastore.jobs.jobs import Job
from datastore.pickem import Event, EventState, Share
from datastore.refusals import Conflict
from resolvers.jobs.running import JobRun, job_soon, starter_of
from resolvers.pickem.crediting import credit_every_prediction
from resolvers.pickem.event_jobs import UNSCORE_EVENT, begin_event_job, event_job, work_on_event
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
        if event.state is EventState.LOCKED and event.scored == 0:
            return None
        raise Conflict(f"This event is {event.state.value} and has not been scored.", path=("input", "event"))

    return await begin_event_job(services, new, change)


# ── the job ──


async def unscore_event_job(services: Services, run: JobRun) -> str:
    """Take back the points of an event until nothing of them is left."""

    async def take_back(event: Event) -> None:
        nothing = Share.taken_back(event.taken_back)
        await credit_every_prediction(services.table, event, lambda _: nothing, run)

    await work_on_event(services, run, Kind.EVENT_UNSCORED, take_back, _unscored)
    return f"Predictions without points: {run.done:,}."


def _unscored(event: Event) -> Event:
    return event.changed(state=EventState.LOCKED)
