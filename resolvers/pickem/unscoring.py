"""Taking back all points of an event: it is LOCKED again, and standings and ranks are as if it had never been scored.

The event first says so and takes two generations: in the first, each prediction loses its points and its member's
standing loses the share, in one transaction; the second is for the next scoring. A scorer that is still under way, in
any process, has an older generation than the predictions, so it adds nothing after a prediction lost its points.
Finally the season is counted. An interrupted unscoring can be seen in its event: unscoring or scoring it again
completes it.
"""

from __future__ import annotations

import asyncio
from functools import partial

from datastore import pickem as pickem_store
from datastore.dynamo import SingleFlight, remaining, shared_context
from datastore.journal import Kind
from datastore.pickem import Event, EventState, Share, VersionConflict
from datastore.refusals import Conflict, NotFound, Unavailable
from resolvers.context import Context, Services
from resolvers.pickem.cache import load_settled_event
from resolvers.pickem.crediting import Progress, credit_every_prediction
from resolvers.pickem.events import EventId
from resolvers.viewer import Role


async def unscore_event(ctx: Context, /, *, event: EventId) -> Event:
    """Take the points back. What takes longer than the request continues without it."""
    ctx.with_role(Role.EDITOR)
    try:
        # Ends a second before the request does, to leave time for the answer.
        async with asyncio.timeout(max(0.1, remaining() - 1.0)):
            answer = await ctx.services.get(Unscorings).begin(event, ctx.once.actor)
    except TimeoutError:
        raise Unavailable("The points are still being taken back. Ask again for the result.", retry_after=5.0) from None
    await ctx.once.store_receipt(ctx.table, answer)
    return answer


class Unscorings:
    """The unscorings under way in this process, at most one for each event."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._unscorings: SingleFlight[str, Event] = SingleFlight(shared_context)

    def begin(self, event: str, actor: str | None) -> asyncio.Future[Event]:
        """The unscoring under way, or a new one. It continues when no request waits for it any more."""
        return self._unscorings.run(event, partial(unscore, self._services, event, actor))

    async def close(self) -> None:
        await self._unscorings.close()


async def unscore(services: Services, event_id: str, actor: str | None = None) -> Event:
    """Take back the points of an event until nothing of them is left."""
    first: Event | None = None
    while True:
        event = await load_settled_event(services, event_id)
        if event is None:
            raise NotFound(path=("input", "event"))
        if event.begun is None and event.scored is None:
            return _validate_unscored(event)
        if first is not None and event.unscoring is None and (first.unscoring or event.unscored != first.unscored):
            raise Conflict("The event was scored again meanwhile.", path=("input", "event"))
        first = first or event
        try:
            return await _take_back(services, event, actor)
        except VersionConflict:
            continue


def _validate_unscored(event: Event) -> Event:
    """An event without points, if it once had some: a repeat changes nothing."""
    if event.state is EventState.LOCKED and event.unscored is not None:
        return event
    raise Conflict(f"This event is {event.state.value} and has not been scored.", path=("input", "event"))


async def _take_back(services: Services, event: Event, actor: str | None) -> Event:
    table, once = services.table, services.once(actor)
    if event.unscoring is None:
        begun = event.begin_unscoring()
        await pickem_store.change_event(table, event, begun, once, begun)
        event = begun
    else:
        await once.refuse_erased(table)
    taken_back = event.unscored or 0
    nothing = Share.taken_back(taken_back)
    await credit_every_prediction(table, event, lambda _: nothing, Progress())
    await pickem_store.delete_older_event_histograms(table, event.id, taken_back)
    await pickem_store.recount_season(table, event.season)
    after = event.changed(begun=None, unscoring=None)
    once = services.once(actor)
    occurrence = once.occurred(Kind.EVENT_UNSCORED, pickem_store.name_of(after))
    await pickem_store.change_event(table, event, after, once, after, *occurrence)
    return after
