"""From results to points.

Scoring an event walks its predictions, shard by shard, and takes two steps for each that is not of the present
generation yet: the member's standing, then the prediction itself, which marks both as done. Each step is harmless when
repeated, so any number of scorers may work at once and any of them may be killed; who comes after takes up what is not
marked. A result that is corrected meanwhile makes another generation, and the scoring goes on with that.

No prediction can join after the lock, so one walk sees all of them. It also counts the points of all, for the ranks
within the event. The season is counted after that, and the event called SCORED last: a scoring that is cut off anywhere
shows by its event.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated

from datastore import pickem as pickem_store
from datastore.dynamo import SingleFlight, Table, remaining, shared_context
from datastore.pickem import Event, EventState, Histogram, Prediction, VersionConflict, predictions_to_score
from datastore.refusals import Conflict, NotFound, Unavailable
from resolvers.context import Context, NodeOf, Services
from resolvers.pickem import rules
from resolvers.pickem.cache import Pickem, event_scope, unasked
from resolvers.pickem.views import Scored
from resolvers.viewer import Role

EventId = Annotated[str, NodeOf("Event")]
AT_ONCE = 50
"""Predictions under way at a time: enough to keep an engine busy, few enough for flat memory."""


async def score_event(ctx: Context, /, *, event: EventId) -> Scored:
    """Scores what is not scored yet. What takes longer than a request goes on without it."""
    ctx.with_role(Role.EDITOR)
    scoring = ctx.services.get(Scorings).begin(event)
    try:
        # The request may end before the scoring; a second keeps time for the answer.
        async with asyncio.timeout(max(0.1, remaining() - 1.0)):
            answer = await scoring.result
    except TimeoutError:
        message = (
            f"Scoring goes on: {scoring.progress.done} of {scoring.progress.total} predictions so far. "
            "Ask again for the result."
        )
        raise Unavailable(message, retry_after=5.0) from None
    if ctx.once.key is not None:
        await ctx.once.transact(ctx.table, answer)
    return answer


@dataclass(slots=True)
class Progress:
    """How far a scoring is. Mutable: whoever watches looks at it now and then."""

    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class Scoring:
    """One scoring under way in this process."""

    result: asyncio.Future[Scored]
    progress: Progress


class Scorings:
    """The scorings of a process: one at a time for each event."""

    def __init__(self, services: Services) -> None:
        self._house = services
        self._scorings: SingleFlight[str, Scored] = SingleFlight(shared_context)
        self._progress: dict[str, Progress] = {}

    def begin(self, event: str) -> Scoring:
        """The scoring under way, or a new one. It goes on when nobody waits for it any more."""
        progress = self._progress.setdefault(event, Progress())
        return Scoring(self._scorings.run(event, partial(self._score, event, progress)), progress)

    async def _score(self, event: str, progress: Progress) -> Scored:
        try:
            return await score(self._house, event, progress)
        finally:
            del self._progress[event]

    async def close(self) -> None:
        """What is cut off here is taken up by the next scoring."""
        await self._scorings.close()


async def score(services: Services, event_id: str, progress: Progress) -> Scored:
    """Scores an event until all of its predictions are of its present generation."""
    while True:
        event = await services.get(Pickem).events.load(event_id)
        if event is None:
            raise NotFound(path=("input", "event"))
        if event.state not in (EventState.LOCKED, EventState.SCORED):
            message = f"This event is {event.state.value}. Only a locked event can be scored."
            raise Conflict(message, path=("input", "event"))
        if event.scored == event.generation:
            return Scored(event, event.predictions or 0)
        try:
            return await _score_generation(services, event, progress)
        except VersionConflict:
            continue


async def _score_generation(services: Services, event: Event, progress: Progress) -> Scored:
    table = services.table
    if event.begun is None:
        begun = event.changed(begun=event.generation)
        await pickem_store.change_event(table, event, begun, unasked(services.clock()), begun)
        event = begun
    gates = await pickem_store.read_gates(table, event.id)
    progress.done, progress.total = 0, sum(gate.predictions for gate in gates)
    walk = _Walk(table, event, rules.winners(event, await pickem_store.read_matches(table, event.id)), progress)
    async for some in predictions_to_score(table, event.id, AT_ONCE):
        await walk.score(some)
    histogram = Histogram.of(walk.counts)
    await pickem_store.store_histogram(table, event_scope(event.id), event.generation, histogram)
    await pickem_store.recount_season(table, event.season)
    return await _finished(services, event, histogram.total)


async def _finished(services: Services, scored: Event, predictions: int) -> Scored:
    """Calls the event SCORED, unless it has other results by now."""
    event: Event | None = scored
    while event is not None and event.generation == scored.generation:
        if event.scored == event.generation:
            return Scored(event, predictions)
        after = event.changed(state=EventState.SCORED, scored=event.generation, predictions=predictions)
        try:
            await pickem_store.change_event(services.table, event, after, unasked(services.clock()), after)
        except VersionConflict:  # renamed, or finished by another scorer
            event = await services.get(Pickem).events.load(event.id)
        else:
            await pickem_store.delete_older_histograms(services.table, event_scope(event.id), after.generation)
            return Scored(after, predictions)
    raise VersionConflict


@dataclass(slots=True)
class _Walk:
    """One scorer's way through the predictions of a generation."""

    table: Table
    event: Event
    won: Mapping[str, tuple[int, int]]
    progress: Progress
    counts: Counter[int] = field(default_factory=Counter)

    async def score(self, some: Sequence[Prediction]) -> None:
        todo = [self._scored(one) for one in some if one.generation < self.event.generation]
        await self._credit(todo)
        # What another scorer did has the same points, or those of a later generation; then this count is not used.
        self.counts.update(one.points or 0 for one in some if one.generation >= self.event.generation)
        self.counts.update(one.points or 0 for one in todo)
        self.progress.done += len(some)

    def _scored(self, one: Prediction) -> Prediction:
        worth = rules.score(one.picks, self.won)
        return replace(
            one,
            points=worth.points,
            correct=worth.correct,
            generation=self.event.generation,
            starts_at=self.event.starts_at,
        )

    async def _credit(self, todo: Sequence[Prediction]) -> None:
        if not todo:
            return
        known = await pickem_store.read_standings(self.table, self.event.season, [one.user for one in todo])

        async def both_steps(one: Prediction) -> None:
            await pickem_store.credit_standing(self.table, known.get(one.user), one, self.event.season)
            await pickem_store.finish_prediction(self.table, one)

        await asyncio.gather(*(both_steps(one) for one in todo))
