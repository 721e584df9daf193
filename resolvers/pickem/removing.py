"""Removing a member's predictions, and scoring the events again that had given them points."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

from datastore import pickem as pickem_store
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import optimistic
from datastore.jobs.jobs import JobState
from datastore.pickem import Event
from datastore.pickem.removal import predictions_in, take_out
from datastore.refusals import Conflict
from resolvers.jobs.running import JobRunner
from resolvers.pickem.cache import load_locked_if_due
from resolvers.pickem.event_jobs import SCORE_EVENT, event_job, last_job
from resolvers.pickem.scoring import begin_scoring, score_event_job
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
        await take_out(services.table, user, [event], unit)
    return len(found)


async def count_again(services: Services, event_id: str, unit: UnitOfWork) -> None:
    """Make an event's counts what its predictions give, after some were removed.

    The event takes another generation, as after a corrected result, so a job that read a prediction before it was
    removed starts again. An event without points gets a new version, with which processes read the picks again.

    A scoring that fails meanwhile, because who began it is erased, is followed by another.
    """

    async def change(event: Event | None) -> Event | None:
        if event is None:
            return None
        after = event.changed(generation=event.generation + event.may_have_points)
        return await pickem_store.change_event(services.table, event, after, services.unit(unit.actor), after)

    async def read() -> Event | None:
        return await load_locked_if_due(services, event_id)

    event = await optimistic(read, change)
    for _ in range(_SCORINGS):
        last = None if event is None else await last_job(services, event)
        if event is None or not event.may_have_points or (last is not None and last.kind != SCORE_EVENT):
            return
        new = event_job(services, SCORE_EVENT, event_id, unit.actor)
        job = await begin_scoring(services, new, confirm_missing=True)
        if (await services.get(JobRunner).ended(job, score_event_job)).state is not JobState.FAILED:
            return
        event = await read()
    raise Conflict("An event was not scored again after predictions were removed. Score it.")
