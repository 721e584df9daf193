"""The jobs that give an event's predictions their points, or take them back: one at a time for each event.

An event names its job from the write that begins it, in one transaction with the job, to the write that ends it. Both
change the event's version. So whoever asks meanwhile finds the same job, and one that is found includes every change
of the event that was made before: what a job has read is void if the event has changed at its last write.

A job gives every prediction a share, counts the season, and ends in the event, if the event still has the generation
that the shares are of; otherwise it does all of that again. It may be stopped at any of its writes, and then makes its
pass over the predictions again: those that have their share are read and not written. It leaves no place to go on from,
since the same pass counts all of them. One that ended early stays in its event, and the next one takes its place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from datastore import pickem as pickem_store
from datastore.changes.kinds import Kind
from datastore.dynamo import Stale, optimistic, optimistic_from
from datastore.jobs import jobs as jobs_store
from datastore.jobs.jobs import Job, JobState
from datastore.pickem import Event
from datastore.refusals import Conflict, NotFound
from resolvers.jobs.running import JobRun
from resolvers.pickem.cache import load_locked_if_due
from resolvers.requests.context import Services
from resolvers.requests.viewer import Role

SCORE_EVENT = "SCORE_EVENT"
UNSCORE_EVENT = "UNSCORE_EVENT"
_AT_WORK = {
    SCORE_EVENT: "This event is being scored. Unscore it when that is done.",
    UNSCORE_EVENT: "The points of this event are being taken back. Score it when that is done.",
}


def event_job(services: Services, kind: str, event: str, actor: str | None, starter: str = "") -> Job:
    """A job that is not stored yet. The journal will name the actor; without a request that begins it, no starter."""
    now, wanted = services.clock(), {"event": event, "actor": actor or ""}
    return jobs_store.new_job(services.ids.next(now), kind, starter, now, wanted, role=Role.EDITOR)


async def begin_event_job(services: Services, new: Job, change: Callable[[Event], Awaitable[Event | None]]) -> Job:
    """Begin a job, or find the one of its kind that is not finished. Conflict if one of the other kind is not.

    `change` refuses an event, or returns it with the job; None if nothing is to be done, so that the job is done.
    """
    table, unit = services.table, services.unit(new.input["actor"] or None)

    async def begin(event: Event | None) -> Job:
        if event is None:
            raise NotFound(path=("input", "event"))
        begun, earlier = await change(event), await last_job(services, event)
        if earlier is not None and earlier.is_running:
            if earlier.kind != new.kind:
                raise Conflict(_AT_WORK[earlier.kind], path=("input", "event"))
            await unit.refuse_erased(table)
            return earlier
        if begun is None:
            return replace(new, state=JobState.DONE)
        await pickem_store.change_event(table, event, begun, unit, begun, jobs_store.job_put(new))
        return new

    return await optimistic(lambda: load_locked_if_due(services, new.input["event"]), begin)


async def last_job(services: Services, event: Event) -> Job | None:
    """The job that an event names: one that is not finished, or that ended early."""
    return None if event.job is None else await jobs_store.read_job(services.table, event.job)


async def work_on_event(
    services: Services,
    run: JobRun,
    kind: Kind,
    give_shares: Callable[[Event], Awaitable[None]],
    end: Callable[[Event], Event],
) -> None:
    """Give shares for the event's generation until that is still the same at the end."""

    async def read() -> Event | None:
        """None once the event no longer names the job, whose last write of it is made then."""
        event = await load_locked_if_due(services, run.input["event"])
        return event if event is not None and event.job == run.job.id else None

    async def work(event: Event | None) -> None:
        if event is None:
            return
        await give_shares(event)
        await pickem_store.recount_season(services.table, event.season)
        await run.report()  # the number is stored before the event no longer names the job
        known: Event | None = event
        if not await optimistic_from(known, read, partial(end_generation, event.generation)):
            raise Stale
        await pickem_store.delete_older_histograms(services.table, pickem_store.event_scope(event.id), event.generation)

    async def end_generation(generation: int, event: Event | None) -> bool:
        """Another attempt, if the event was renamed or so, needs no other shares."""
        if event is not None and event.generation != generation:
            return False
        if event is not None:
            unit, after = services.unit(run.input["actor"] or None), replace(end(event), job=None)
            is_new = event.scored != event.generation
            await pickem_store.change_event(services.table, event, after, unit, after, kind=kind if is_new else None)
        return True

    await optimistic(read, work, idempotent=True)
