"""Removing a member's predictions, and scoring the events again that had given them points."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

from datastore import pickem as pickem_store
from datastore.dynamo import Stale, optimistic
from datastore.pickem import Event
from datastore.pickem.removal import predictions_in, remove_prediction
from datastore.receipts import Once
from datastore.refusals import Conflict
from resolvers.context import Services
from resolvers.pickem.cache import load_settled_event
from resolvers.pickem.scoring import ScoringProgress, score


async def remove_predictions(
    services: Services,
    user: str,
    since: datetime | None,
    once: Once,
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
        await remove_prediction(services.table, event, user, once)
    return len(found)


async def count_again(services: Services, event_id: str, once: Once) -> None:
    """Make an event's counts what its predictions give, after some were removed.

    If its scoring has begun it takes another generation, as after a corrected result: a scorer that read a prediction
    before it was removed, in any process, then publishes nothing. The guesses are read again, since a removed one may
    have been the worst. Otherwise the event's new version has processes read the picks again.
    """

    async def count(event: Event | None) -> None:
        if event is None:
            return
        is_scored = event.begun is not None and event.unscoring is None
        generation = event.generation + 1 if is_scored else event.generation
        after = event.changed(generation=generation, guesses=None)
        try:
            await pickem_store.change_event(services.table, event, after, Once.unkeyed(services.clock()), after)
            if is_scored:
                await score(services, event_id, ScoringProgress(), once.actor)
        except Conflict:  # its points were taken back
            raise Stale from None

    await optimistic(lambda: load_settled_event(services, event_id), count)
