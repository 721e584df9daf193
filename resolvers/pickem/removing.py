"""Removing a member's predictions, and scoring the events again that had given them points."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime

from datastore import pickem as pickem_store
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import optimistic
from datastore.jobs.jobs import Job, JobState, job_put
from datastore.pickem import Event
from datastore.pickem.removal import predictions_in, remove_prediction
from datastore.refusals import Conflict
from resolvers.jobs.running import JobRunner
from resolvers.pickem.cache import load_settled_event
from resolvers.pickem.event_jobs import SCORE_EVENT, event_job, last_job
from resolvers.pickem.scoring import score_event_job
from resolvers.requests.context import Services

_SCORINGS = 3


async def remove_predictions(
    services: Services,
    user: str,
    since: datetime | None,
    unit: UnitOfWork,
    announce: Callable[[list[str]], Awaitable[None]],
) -> int:
    """Remove a member's predictions that were submitted since a time; return their number.

    `announce` must remember the events for `count_again` before the first of their predictions is removed.
    """
    events = await pickem_store.every_event(services.table)
    found = [
        event
        async for event, prediction in predictions_in(services.table, user, events)
        if since is None or prediction.submitted_at >= since
    ]
    await announce([event.id for event in found])
    for event in found:
        await remove_prediction(services.table, event, user, unit)
    return len(found)


async def count_again(services: Services, event_id: str, unit: UnitOfWork) -> None:
    """Make an event's counts what its predictions give, after some were removed.

    A scoring that fails meanwhile, because who began it is erased, is followed by another.
    """
    for _ in range(_SCORINGS):
        job = await _begin_counting(services, event_id, unit.actor)
        if job is None:
            return
        job = await services.get(JobRunner).ended(job, score_event_job)
        if job.state is not JobState.FAILED:
            return
    raise Conflict("An event was not scored again after predictions were removed. Score it.")


async def _begin_counting(services: Services, event_id: str, actor: str | None) -> Job | None:
    """The scoring that counts an event again, if it may have points.

    It takes another generation, as after a corrected result, so one that read a prediction before it was removed starts
    again. The guesses are read again, since a removed one may have been the worst. Other events get a new version, with
    which processes read the picks again, and a job that takes points back starts again.
    """

    async def begin(event: Event | None) -> Job | None:
        if event is None:
            return None
        last = await last_job(services, event)
        is_scored = event.may_have_points and (last is None or last.kind == SCORE_EVENT)
        after = event.changed(guesses=None, generation=event.generation + is_scored)
        new = event_job(services, SCORE_EVENT, event_id, actor)
        is_new = is_scored and (last is None or not last.is_running)
        begun = replace(after, job=new.id) if is_new else after
        begins, unit = [job_put(new)] if is_new else [], services.unit(actor)
        await pickem_store.change_event(services.table, event, begun, unit, begun, *begins)
        return new if is_new else last if is_scored else None

    return await optimistic(lambda: load_settled_event(services, event_id), begin)
