"""From results to points.

Scoring reads all predictions of an event, consistently and in turns between their shards, and gives each the points of
the current generation of results. The points and the member's standing change in one transaction. Repeating it changes
nothing. So any number of scorers may work at once and any of them may be killed: the next scoring continues with the
predictions that are left. Correcting a result begins another generation, and the scoring starts again with that.

No prediction is accepted after the lock, so one pass sees all of them. The same pass counts the points of all, for the
ranks within the event. Then the season is counted, and finally the event becomes SCORED: an interrupted scoring can be
seen in its event. Scoring a scored event checks every prediction, and counts the season again.

Points are taken back in the same way (`unscoring`). A scoring that is under way then ends with CONFLICT.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from datastore import pickem as pickem_store
from datastore.dynamo import SingleFlight, remaining, shared_context
from datastore.journal import Kind
from datastore.pickem import Event, EventState, Prediction, Share, VersionConflict
from datastore.refusals import Conflict, NotFound, Unavailable
from resolvers.context import Context, Services
from resolvers.pickem import rules
from resolvers.pickem.cache import PickemCache, load_settled_event
from resolvers.pickem.crediting import PREDICTIONS_AT_ONCE, Progress, credit_every_prediction
from resolvers.pickem.events import EventId
from resolvers.pickem.tie_breaks import closeness, with_guesses
from resolvers.pickem.visibility import ShownEvent, show_changed
from resolvers.viewer import Role

_NAMED = 5
"""How many matches without a result a refusal names."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The answer to scoring an event."""

    event: ShownEvent
    predictions_scored: int


async def score_event(ctx: Context, /, *, event: EventId, confirm_missing: bool = False) -> Scored:
    """Score the predictions that are left. A scoring that takes longer than the request continues without it."""
    ctx.with_role(Role.EDITOR)
    current = await load_settled_event(ctx.services, event)
    if current is not None and not confirm_missing:
        await refuse_missing_results(ctx.services, current)
    scorings, wanted = ctx.services.get(Scorings), current.generation if current else 0
    scoring = scorings.begin(event, ctx.once.actor)
    try:
        # Ends a second before the request does, to leave time for the answer.
        async with asyncio.timeout(max(0.1, remaining() - 1.0)):
            while (answer := await scoring.result).event.generation < wanted:
                scoring = scorings.begin(event, ctx.once.actor)  # that one had begun before a correction
    except TimeoutError:
        scoring.keep_result()
        raise Unavailable(
            f"Scoring continues: {scoring.progress.done} of {scoring.progress.total} predictions so far. "
            "Ask again for the result.",
            retry_after=5.0,
        ) from None
    await ctx.once.store_receipt(ctx.table, answer)
    return answer


async def refuse_missing_results(services: Services, event: Event) -> None:
    """Conflict if matches of a locked event have no result: scoring it would give nobody their points."""
    if event.state not in (EventState.LOCKED, EventState.SCORED) or not event.missing_results:
        return  # `score` refuses what cannot be scored
    card = await services.get(PickemCache).card(event)
    missing = [(event.card.index(match) + 1, card[match].name) for match in event.missing_results if match in card]
    named = ", ".join(f"{order}. {name}" for order, name in missing[:_NAMED]) + (", …" if len(missing) > _NAMED else "")
    raise Conflict(
        f"Matches without a result: {len(missing)} of {len(event.card)} ({named}). "
        "Record them, or confirm that they are missing to score without them.",
        path=("input", "confirmMissing"),
    )


@dataclass(slots=True)
class ScoringProgress(Progress):
    """How many predictions are scored."""

    wanted_later: bool = False
    """Whether a request will ask again for the result."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """A scoring under way in this process."""

    result: asyncio.Future[Scored]
    progress: ScoringProgress

    def keep_result(self) -> None:
        """Answer the next request with the result instead of scoring again."""
        self.progress.wanted_later = True


class Scorings:
    """The scorings under way in this process, at most one for each event."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._scorings: SingleFlight[str, Scored] = SingleFlight(shared_context)
        self._progress: dict[str, ScoringProgress] = {}
        self._kept: dict[str, Scored] = {}
        """Results that were not ready in time for their request; one for each event at most."""

    def begin(self, event: str, actor: str | None = None) -> Scoring:
        """The scoring under way, or a new one of this actor. It continues when no request waits for it any more."""
        progress = self._progress.setdefault(event, ScoringProgress())
        return Scoring(self._scorings.run(event, partial(self._score, event, progress, actor)), progress)

    async def _score(self, event: str, progress: ScoringProgress, actor: str | None) -> Scored:
        kept = self._kept.pop(event, None)
        try:
            if kept is not None:
                current = await load_settled_event(self._services, event)
                if current is not None and current.version == kept.event.version:
                    return kept
            scored = await score(self._services, event, progress, actor)
            if progress.wanted_later:
                self._kept[event] = scored
            return scored
        finally:
            del self._progress[event]

    async def close(self) -> None:
        """Interrupt scorings; the next scoring of the event completes each of them."""
        await self._scorings.close()


async def score(services: Services, event_id: str, progress: ScoringProgress, actor: str | None = None) -> Scored:
    """Score an event until all of its predictions have its current generation; repair what differs from that."""
    first: Event | None = None
    while True:
        event = await load_settled_event(services, event_id)
        if event is None:
            raise NotFound(path=("input", "event"))
        if event.state not in (EventState.LOCKED, EventState.SCORED):
            raise Conflict(
                f"This event is {event.state.value}. Only a locked event can be scored.", path=("input", "event")
            )
        first = first or event
        if event.unscored != first.unscored:
            raise Conflict("The event was unscored meanwhile. Score it again if you want to.", path=("input", "event"))
        try:
            return await _score_generation(services, event, progress, actor)
        except VersionConflict:
            continue


async def _score_generation(services: Services, event: Event, progress: ScoringProgress, actor: str | None) -> Scored:
    table, once = services.table, services.once(actor)
    if event.begun is None or event.unscoring is not None:
        begun = event.changed(begun=event.generation, unscoring=None)
        await pickem_store.change_event(table, event, begun, once, begun)
        event = begun
    else:
        await once.refuse_erased(table)
    event = await with_guesses(services, event, PREDICTIONS_AT_ONCE, once)
    winners = rules.winners(event, await pickem_store.read_matches(table, event.id))
    histogram = await credit_every_prediction(table, event, partial(_share, event, winners), progress)
    await pickem_store.store_event_histogram(table, event.id, event.generation, histogram)
    await pickem_store.recount_season(table, event.season)
    return await _finish(services, event, histogram.total, actor)


async def _finish(services: Services, scored: Event, predictions: int, actor: str | None) -> Scored:
    """Make the event SCORED; VersionConflict if its results have changed."""
    event: Event | None = scored
    while event is not None and event.generation == scored.generation:
        if event.scored == event.generation:
            return Scored(show_changed(event), predictions)
        after = event.changed(state=EventState.SCORED, scored=event.generation, predictions=predictions)
        try:
            once = services.once(actor)
            occurrence = once.occurred(Kind.EVENT_SCORED, pickem_store.name_of(after))
            await pickem_store.change_event(services.table, event, after, once, after, *occurrence)
        except VersionConflict:  # renamed, or finished by another scorer
            event = await load_settled_event(services, event.id)
        else:
            await pickem_store.delete_older_event_histograms(services.table, event.id, after.generation)
            return Scored(show_changed(after), predictions)
    raise VersionConflict


def _share(event: Event, winners: Mapping[str, tuple[int, int]], prediction: Prediction) -> Share:
    """What a prediction gets by the event's current results."""
    score = rules.score(prediction.picks, winners)
    return Share(event.generation, score.points, score.correct, closeness=closeness(event, prediction))
