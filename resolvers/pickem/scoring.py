"""From results to points.

Scoring reads the predictions of an event, shard by shard, and takes two steps for each one that does not have the
current generation of results yet: it credits the member's standing, then it gives the prediction its points and its
generation, which shows that both steps are done. Repeating a step changes nothing. So any number of scorers may work
at once and any of them may be killed: the next scoring continues with the predictions that are left. Correcting a
result begins another generation, and the scoring starts again with that.

No prediction is accepted after the lock, so one pass sees all of them. The same pass counts the points of all, for the
ranks within the event. Then the season is counted, and last the event becomes SCORED: an interrupted scoring can be
seen by its event.
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
from datastore.receipts import Once
from datastore.refusals import Conflict, NotFound, Unavailable
from resolvers.context import Context, NodeOf, Services
from resolvers.pickem import rules
from resolvers.pickem.cache import PickemCache
from resolvers.pickem.views import Scored
from resolvers.viewer import Role

EventId = Annotated[str, NodeOf("Event")]
PREDICTIONS_AT_ONCE = 50
"""Enough to keep an engine busy, few enough to use little memory."""


async def score_event(ctx: Context, /, *, event: EventId) -> Scored:
    """Score the predictions that are left. A scoring that takes longer than the request continues without it."""
    ctx.with_role(Role.EDITOR)
    scoring = ctx.services.get(Scorings).begin(event)
    try:
        # Ends a second before the request does, to leave time for the answer.
        async with asyncio.timeout(max(0.1, remaining() - 1.0)):
            answer = await scoring.result
    except TimeoutError:
        raise Unavailable(
            f"Scoring goes on: {scoring.progress.done} of {scoring.progress.total} predictions so far. "
            "Ask again for the result.",
            retry_after=5.0,
        ) from None
    if ctx.once.key is not None:
        await ctx.once.transact(ctx.table, answer)
    return answer


@dataclass(slots=True)
class ScoringProgress:
    """How many predictions are scored. The scorer updates it while others read it."""

    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class Scoring:
    """A scoring under way in this process."""

    result: asyncio.Future[Scored]
    progress: ScoringProgress


class Scorings:
    """The scorings under way in this process, at most one for each event."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._scorings: SingleFlight[str, Scored] = SingleFlight(shared_context)
        self._progress: dict[str, ScoringProgress] = {}

    def begin(self, event: str) -> Scoring:
        """The scoring under way, or a new one. It continues when no request waits for it any more."""
        progress = self._progress.setdefault(event, ScoringProgress())
        return Scoring(self._scorings.run(event, partial(self._score, event, progress)), progress)

    async def _score(self, event: str, progress: ScoringProgress) -> Scored:
        try:
            return await score(self._services, event, progress)
        finally:
            del self._progress[event]

    async def close(self) -> None:
        """Interrupts scorings; the next scoring of the event completes each of them."""
        await self._scorings.close()


async def score(services: Services, event_id: str, progress: ScoringProgress) -> Scored:
    """Score an event until all of its predictions have its current generation."""
    while True:
        event = await services.get(PickemCache).events.load(event_id)
        if event is None:
            raise NotFound(path=("input", "event"))
        if event.state not in (EventState.LOCKED, EventState.SCORED):
            raise Conflict(
                f"This event is {event.state.value}. Only a locked event can be scored.", path=("input", "event")
            )
        if event.scored == event.generation:
            return Scored(event, event.predictions or 0)
        try:
            return await _score_generation(services, event, progress)
        except VersionConflict:
            continue


async def _score_generation(services: Services, event: Event, progress: ScoringProgress) -> Scored:
    table = services.table
    if event.begun is None:
        begun = event.changed(begun=event.generation)
        await pickem_store.change_event(table, event, begun, Once.unkeyed(services.clock()), begun)
        event = begun
    progress.done, progress.total = 0, (await pickem_store.read_pick_counts(table, event.id)).predictions
    winners = rules.winners(event, await pickem_store.read_matches(table, event.id))
    scorer = _Scorer(table, event, winners, progress)
    async for predictions in predictions_to_score(table, event.id, PREDICTIONS_AT_ONCE):
        await scorer.score(predictions)
    histogram = Histogram.of(scorer.counts)
    await pickem_store.store_event_histogram(table, event.id, event.generation, histogram)
    await pickem_store.recount_season(table, event.season)
    return await _finish(services, event, histogram.total)


async def _finish(services: Services, scored: Event, predictions: int) -> Scored:
    """Make the event SCORED; VersionConflict if its results have changed."""
    event: Event | None = scored
    while event is not None and event.generation == scored.generation:
        if event.scored == event.generation:
            return Scored(event, predictions)
        after = event.changed(state=EventState.SCORED, scored=event.generation, predictions=predictions)
        try:
            await pickem_store.change_event(services.table, event, after, Once.unkeyed(services.clock()), after)
        except VersionConflict:  # renamed, or finished by another scorer
            event = await services.get(PickemCache).events.load(event.id)
        else:
            await pickem_store.delete_older_event_histograms(services.table, event.id, after.generation)
            return Scored(after, predictions)
    raise VersionConflict


@dataclass(slots=True)
class _Scorer:
    """Scores the predictions of an event for one generation of results, and counts their points."""

    table: Table
    event: Event
    winners: Mapping[str, tuple[int, int]]
    progress: ScoringProgress
    counts: Counter[int] = field(default_factory=Counter)

    async def score(self, predictions: Sequence[Prediction]) -> None:
        left = [prediction for prediction in predictions if prediction.generation < self.event.generation]
        newly_scored = [self._scored(prediction) for prediction in left]
        await self._store(newly_scored)
        # Another scorer gave the others the same points, or points of a later generation: then these counts are unused.
        already_scored = (prediction for prediction in predictions if prediction.generation >= self.event.generation)
        self.counts.update(prediction.points or 0 for prediction in (*newly_scored, *already_scored))
        self.progress.done += len(predictions)

    def _scored(self, prediction: Prediction) -> Prediction:
        score = rules.score(prediction.picks, self.winners)
        return replace(
            prediction,
            points=score.points,
            correct=score.correct,
            generation=self.event.generation,
            starts_at=self.event.starts_at,
        )

    async def _store(self, predictions: Sequence[Prediction]) -> None:
        if not predictions:
            return
        season = self.event.season
        standings = await pickem_store.read_standings(
            self.table, season, [prediction.user for prediction in predictions]
        )

        async def take_both_steps(prediction: Prediction) -> None:
            await pickem_store.credit_standing(self.table, standings.get(prediction.user), prediction, season)
            await pickem_store.finish_prediction(self.table, prediction)

        await asyncio.gather(*map(take_both_steps, predictions))
