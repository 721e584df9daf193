"""From results to points: scoring an event, taking its points back, and the jobs that do either.

Scoring reads all predictions of an event, consistently and in turns between their shards, and gives each the points of
the current generation of results. The points and the member's standing change in one transaction, and repeating it
changes nothing. So a process that was taken for dead may go on at the same time as the next one, and either may be
killed. Correcting a result begins another generation, and a scoring under way starts again with that.

No prediction is accepted after the lock, so one pass sees all of them. The same pass counts the points of all, for the
ranks within the event. Then the season is counted, and finally the event becomes SCORED. Until then it has the state
that it had. Scoring a scored event checks every prediction, and counts the season again.

An event has one job at a time. It names its job from the write that begins it, in one transaction with the job, to the
write that ends it. Both change the event's version. So whoever asks meanwhile finds the same job, and one that is found
includes every change of the event that was made before: what a job has read is void if the event has changed at its
last write.

A job gives every prediction a share, counts the season, and ends in the event, if the event still has the generation
that the shares are of; otherwise it does all of that again. It may be stopped at any of its writes, and then makes its
pass over the predictions again: those that have their share are read and not written. It leaves no place to go on from,
since the same pass counts all of them. One that ended early stays in its event, and the next one takes its place.

Ranks are shared by equal points. Among equals, tie-breaks decide who is listed first: an event asks for a number,
predictions guess it, and the nearest guess comes first. Within an event the order is: points, nearest guess (over or
under alike), correct picks, who joined first. Within a season: points, correct picks, sum of distances, who joined
first. A missing guess counts as the worst distance given in that event, so not guessing never pays; an event without an
answer counts for nobody. What is stored is the closeness: the worst distance less one's own, which orders in the same
way and is 0 for a missing guess.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from datastore.changes.occurrences import Kind
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Stale, Table, optimistic, optimistic_from
from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import Job, JobState
from datastore.pickem import standings
from datastore.pickem.events import Event, EventState, Match, change_event, read_matches, read_pick_counts
from datastore.pickem.predictions import Prediction, Share, predictions_to_score
from datastore.pickem.standings import Credit, Histogram
from datastore.refusals import Conflict, NotFound
from resolvers.jobs.running import JobRun, JobRunner, job_soon, refuse_failed, shown_job, starter_of
from resolvers.pickem.cache import PickemCache, load_locked_if_due
from resolvers.pickem.events import EventId
from resolvers.pickem.visibility import ShownEvent, load_event, show_changed
from resolvers.requests.context import Context, Role, Services

# ── what a prediction is worth ──


@dataclass(frozen=True, slots=True)
class Score:
    """What a prediction is worth."""

    points: int
    correct: int


def winners(event: Event, matches: Mapping[str, Match]) -> Mapping[str, tuple[int, int]]:
    """By match: the winning team and the points. Only matches that a team won are worth points."""
    return {
        match: (result.winner, matches[match].points)
        for match, result in event.results.items()
        if match in event.card and match in matches and result.winner is not None
    }


def worth(picks: Mapping[str, int], winners: Mapping[str, tuple[int, int]]) -> Score:
    earned = [points for match, (winner, points) in winners.items() if picks.get(match) == winner]
    return Score(sum(earned), len(earned))


def distance(event: Event, prediction: Prediction) -> int | None:
    """The distance between guess and answer; None if one of them is missing."""
    answer, guess = event.tie_break.thousandths if event.tie_break else None, prediction.guess_for(event)
    return None if answer is None or guess is None else abs(guess - answer)


def current_share(event: Event, winners: Mapping[str, tuple[int, int]], worst: int, prediction: Prediction) -> Share:
    """What a prediction gets by the event's current results."""
    score, own = worth(prediction.picks, winners), distance(event, prediction)
    return Share(event.generation, score.points, score.correct, closeness=0 if own is None else worst - own)


# ── crediting ──

PREDICTIONS_AT_ONCE = 100
"""Enough to keep an engine busy, few enough to use little memory."""


async def credit_every_prediction(
    table: Table, event: Event, share_of: Callable[[Prediction], Share], run: JobRun
) -> Histogram:
    """Credit all predictions, counting them in the job. Returns how many predictions have how many points.

    One that is removed meanwhile begins another generation (`count_again`), for which all are credited again.
    """
    run.total, run.done = (await read_pick_counts(table, event.id)).predictions, 0
    counts = Counter[int]()
    async for predictions in predictions_to_score(table, event.id, PREDICTIONS_AT_ONCE):
        credits_ = [Credit(prediction, share_of(prediction), event.starts_at) for prediction in predictions]
        await standings.credit(table, event.season, credits_)
        # If another scorer gave points of a later generation, these counts are not used.
        counts.update(credit.share.points for credit in credits_)
        run.done += len(predictions)
    return Histogram.of(counts)


async def worst_distance(table: Table, event: Event) -> int:
    """The distance of the worst guess of a locked event: one pass over its predictions if there is an answer."""
    worst = 0
    if event.tie_break is not None and event.tie_break.thousandths is not None:
        async for predictions in predictions_to_score(table, event.id, PREDICTIONS_AT_ONCE):
            worst = max(worst, *(distance(event, prediction) or 0 for prediction in predictions))
    return worst


# ── event jobs ──

SCORE_EVENT = "SCORE_EVENT"
UNSCORE_EVENT = "UNSCORE_EVENT"
_AT_WORK = {
    SCORE_EVENT: "This event is being scored. Unscore it when that is done.",
    UNSCORE_EVENT: "The points of this event are being taken back. Score it when that is done.",
}


def event_job(services: Services, kind: str, event: str, actor: str | None, starter: str = "") -> Job:
    """A job that is not stored yet. The journal will name its actor. It has a starter only if a request begins it."""
    now, wanted = services.clock(), {"event": event, "actor": actor or ""}
    return Job(services.ids.next(now), kind, starter, now, input=wanted, role=Role.EDITOR)


async def begin_event_job(
    services: Services,
    new: Job,
    change: Callable[[Event], Awaitable[Event | None]],
    unit: UnitOfWork | None = None,
) -> Job:
    """Begin a job, or find the one of its kind that is not finished. Conflict if one of the other kind is not.

    `change` refuses an event, or returns it with the job; None if nothing is to be done, so that the job is done.
    `unit` is that of a request. Its receipt has the answer that is true while the job goes on.
    """
    table, unit = services.table, unit or services.unit(new.input["actor"] or None)

    async def begin(event: Event | None) -> Job:
        if event is None:
            raise NotFound(path=("input", "event"))
        begun, earlier = await change(event), await last_job(services, event)
        if begun is None:
            return replace(new, state=JobState.DONE)
        if earlier is not None and earlier.is_running:
            if earlier.kind != new.kind:
                raise Conflict(_AT_WORK[earlier.kind], path=("input", "event"))
            await unit.store_receipt(table, _so_far(event, earlier))
            return earlier
        await change_event(table, event, begun, unit, _so_far(begun, new), job_store.job_put(new))
        return new

    return await optimistic(lambda: load_locked_if_due(services, new.input["event"]), begin)


def _so_far(event: Event, job: Job) -> "Scored | Unscored":
    """The answer to a request while its job goes on."""
    shown = show_changed(event), shown_job(job)
    return Unscored(*shown) if job.kind == UNSCORE_EVENT else Scored(shown[0], job.done, shown[1])


async def last_job(services: Services, event: Event) -> Job | None:
    """The job that an event names: one that is not finished, or that ended early."""
    return None if event.job is None else await job_store.read_job(services.table, event.job)


async def work_on_event(
    services: Services,
    run: JobRun,
    kind: Kind,
    give_shares: Callable[[Event], Awaitable[None]],
    end: Callable[[Event], Event],
) -> None:
    """Give shares for the event's generation, and again for a newer one, until it has not changed meanwhile."""

    async def read() -> Event | None:
        """None once the event no longer names the job: then the job's last write was made."""
        event = await load_locked_if_due(services, run.input["event"])
        return event if event is not None and event.job == run.job.id else None

    async def work(event: Event | None) -> None:
        if event is None:
            return
        await give_shares(event)
        await standings.recount_season(services.table, event.season)
        await run.report()  # the number is stored before the event no longer names the job
        known: Event | None = event
        if not await optimistic_from(known, read, partial(end_generation, event.generation)):
            raise Stale
        await standings.delete_older_histograms(services.table, standings.event_scope(event.id), event.generation)

    async def end_generation(generation: int, event: Event | None) -> bool:
        """If the event was renamed, for instance, the next attempt needs no other shares."""
        if event is not None and event.generation != generation:
            return False
        if event is not None:
            unit, after = services.unit(run.input["actor"] or None), replace(end(event), job=None)
            is_new = event.scored != event.generation
            await change_event(services.table, event, after, unit, after, kind=kind if is_new else None)
        return True

    await optimistic(read, work, idempotent=True)


# ── scoring ──

_NAMED = 5
"""How many matches without a result a refusal names."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The answer to scoring an event: how many predictions are scored so far, and the job while it goes on."""

    event: ShownEvent
    predictions_scored: int
    job: Job | None


async def score_event(ctx: Context, /, *, event: EventId, confirm_missing: bool = False) -> Scored:
    """Score an event. What is left when the request has to answer goes on as a job."""
    ctx.with_role(Role.EDITOR)
    new = event_job(ctx.services, SCORE_EVENT, event, ctx.unit.actor, starter_of(ctx))
    begun = await begin_scoring(ctx.services, new, confirm_missing=confirm_missing, unit=ctx.unit)
    job = await job_soon(ctx, begun, score_event_job)
    answer = Scored(await _current_event(ctx, event), job.done, job if job.is_running else None)
    await ctx.unit.replace_receipt(ctx.table, answer)
    return answer


async def _current_event(ctx: Context, event: str) -> ShownEvent:
    """The event for an answer, once its job has begun."""
    found = await load_event(ctx, event)
    if found is None:
        raise NotFound(path=("input", "event"))
    return found


async def begin_scoring(services: Services, new: Job, *, confirm_missing: bool, unit: UnitOfWork | None = None) -> Job:
    """Begin to score an event, or find the scoring that is not finished."""

    async def change(event: Event) -> Event:
        if event.state not in (EventState.LOCKED, EventState.SCORED):
            raise Conflict(
                f"This event is {event.state.value.lower()}. Only a locked event can be scored.",
                path=("input", "event"),
            )
        if not confirm_missing:
            await _refuse_missing_results(services, event)
        return event.changed(job=new.id)

    return await begin_event_job(services, new, change, unit)


async def score(services: Services, event: str) -> Job:
    """Score an event outside of a request, and wait for the job's end. Matches may be without a result."""
    job = await begin_scoring(services, event_job(services, SCORE_EVENT, event, None), confirm_missing=True)
    return refuse_failed(await services.get(JobRunner).ended(job, score_event_job))


async def _refuse_missing_results(services: Services, event: Event) -> None:
    """Conflict if matches have no result: scoring the event would give nobody their points."""
    if not event.missing_results:
        return
    card = await services.get(PickemCache).card(event)
    missing = [(event.card.index(match) + 1, card[match].name) for match in event.missing_results if match in card]
    named = ", ".join(f"{order}. {name}" for order, name in missing[:_NAMED]) + (", …" if len(missing) > _NAMED else "")
    raise Conflict(
        f"Matches without a result: {len(missing)} of {len(event.card)} ({named}). "
        "Record them, or confirm that they are missing to score without them.",
        path=("input", "confirmMissing"),
    )


# ── the job that scores ──


async def score_event_job(services: Services, run: JobRun) -> str:
    """Score an event until all of its predictions have its current generation; repair what differs from that."""
    table = services.table

    async def give_points(event: Event) -> None:
        worst = await worst_distance(table, event)
        won = winners(event, await read_matches(table, event.id))
        histogram = await credit_every_prediction(table, event, partial(current_share, event, won, worst), run)
        await standings.store_histogram(table, standings.event_scope(event.id), event.generation, histogram)

    await work_on_event(services, run, Kind.EVENT_SCORED, give_points, _scored)
    return f"Predictions scored: {run.done:,}."


def _scored(event: Event) -> Event:
    return event.changed(state=EventState.SCORED, scored=event.generation)


# ── unscoring ──
# Taking back all points of an event: it is LOCKED again, and standings and ranks are as if it had never been scored.
#
# The event first takes two generations: in the first, each prediction loses its points and its member's standing loses
# the share, in one transaction; the second is for the next scoring. A scorer that was taken for dead has an older
# generation than the predictions, so it adds nothing after a prediction lost its points. Finally the season is counted.
# From the first write on nobody sees the event's points; it is LOCKED after the last one.


@dataclass(frozen=True, slots=True)
class Unscored:
    """The answer to unscoring an event, and the job while it goes on."""

    event: ShownEvent
    job: Job | None


async def unscore_event(ctx: Context, /, *, event: EventId) -> Unscored:
    """Take the points back. What is left when the request has to answer goes on as a job."""
    ctx.with_role(Role.EDITOR)
    new = event_job(ctx.services, UNSCORE_EVENT, event, ctx.unit.actor, starter_of(ctx))
    job = await job_soon(ctx, await begin_unscoring(ctx.services, new, ctx.unit), unscore_event_job)
    answer = Unscored(await _current_event(ctx, event), job if job.is_running else None)
    await ctx.unit.replace_receipt(ctx.table, answer)
    return answer


async def begin_unscoring(services: Services, new: Job, unit: UnitOfWork | None = None) -> Job:
    """Begin to take points back, or find the job that does."""

    async def change(event: Event) -> Event | None:
        if event.may_have_points:
            return event.unscoring(new.id)
        if event.state is EventState.LOCKED and event.scored == 0:
            return None
        raise Conflict(f"This event is {event.state.value.lower()} and has not been scored.", path=("input", "event"))

    return await begin_event_job(services, new, change, unit)


# ── the job that takes points back ──


async def unscore_event_job(services: Services, run: JobRun) -> str:
    """Take back the points of an event until nothing of them is left."""

    async def take_back(event: Event) -> None:
        nothing = Share.taken_back(event.taken_back)
        await credit_every_prediction(services.table, event, lambda _: nothing, run)

    await work_on_event(services, run, Kind.EVENT_UNSCORED, take_back, Event.locked)
    return f"Predictions without points: {run.done:,}."


# ── counting again ──


async def count_again(services: Services, event_id: str, unit: UnitOfWork) -> None:
    """Make an event's counts what its predictions give, after some were removed.

    The event takes another generation, as after a corrected result, so a job that read a prediction before it was
    removed starts again. An event without points gets a new version, with which processes read the picks again. It is
    scored only if its points are shown or a job is giving them: not if an editor takes them back, perhaps meanwhile,
    nor if the job failed.
    """
    new = event_job(services, SCORE_EVENT, event_id, unit.actor)

    async def change(event: Event | None) -> Event | None:
        if event is None:
            return None
        after = event.changed(generation=event.generation + event.may_have_points)
        return await change_event(services.table, event, after, services.unit(unit.actor), after)

    async def again(event: Event) -> Event | None:
        last = await last_job(services, event)
        is_scoring = last is not None and last.is_running and last.kind == SCORE_EVENT
        return event.changed(job=new.id) if event.scored or is_scoring else None

    if await optimistic(lambda: load_locked_if_due(services, event_id), change) is not None:
        job = await begin_event_job(services, new, again)
        refuse_failed(await services.get(JobRunner).ended(job, score_event_job))
