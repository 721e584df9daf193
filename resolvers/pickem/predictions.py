"""Predictions: a member's, an event's, and submitting one."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from datastore.dynamo import Page, Window, optimistic_from
from datastore.people import profiles as profile_store
from datastore.people.profiles import Profile
from datastore.pickem import predictions as prediction_store
from datastore.pickem.events import Event, EventState, Locked, read_matches
from datastore.pickem.predictions import Prediction, Submission
from datastore.refusals import InvalidInput, NotFound
from resolvers.loading import batched
from resolvers.people.visibility import ShownProfile, authors
from resolvers.pickem import rules
from resolvers.pickem.cache import load_locked_if_due, pickem_cache
from resolvers.pickem.events import EventId
from resolvers.pickem.rules import parse_guess
from resolvers.pickem.visibility import Pick, PredictionView, ShownEvent, load_event, show_event, show_prediction
from resolvers.requests.context import AnyId, Context
from resolvers.values.node_ids import node_id, parse_node_key

# ── input ──


@dataclass(frozen=True, slots=True, kw_only=True)
class PickInput:
    """A pick as a client sends it: a match's id and a team's position."""

    match: AnyId
    team: int


# ── reading ──


async def viewer_prediction(ctx: Context, event: ShownEvent, /) -> PredictionView | None:
    """The viewer's own prediction, which they may always see."""
    if not ctx.viewer.is_member:
        return None
    prediction = await prediction_store.read_prediction(ctx.table, event.id, ctx.viewer.id)
    return show_prediction(event, prediction) if prediction else None


async def event_predictions(ctx: Context, event: ShownEvent, /, *, window: Window) -> Page[PredictionView]:
    """Best first once the event is scored; in the order of the members' ids until then."""
    reading = prediction_store.read_event_predictions(ctx.table, event, window)
    if window.cursor is None:
        reading = pickem_cache(ctx).with_prefetched_profiles(f"predictions of {event.id}", reading)
    page = await reading
    return page.map([show_prediction(event, prediction) for prediction in page.nodes])


async def predictions(ctx: Context, /, *, event: EventId, window: Window) -> Page[PredictionView]:
    predicted_event = await load_event(ctx, event)
    if predicted_event is None:
        raise NotFound("There is no event with this id.", path=("event",))
    return await event_predictions(ctx, predicted_event, window=window)


async def user_predictions(ctx: Context, profile: Profile, /, *, window: Window) -> Page[PredictionView]:
    """A member's predictions, newest event first; the first page shares its read with the member's standings."""
    request = window.open(f"predictions of:{profile.user}")
    if request.forward and request.position is None:
        member = await pickem_cache(ctx).members.load((profile.user, request.wanted))
        page = Page.cut(member.predictions if member else (), request)
    else:
        page = await prediction_store.read_member_predictions(ctx.table, profile.user, request)
    return page.map(await _with_events(ctx, page.nodes))


async def _with_events(ctx: Context, predictions: Sequence[Prediction]) -> list[PredictionView]:
    ids = list({prediction.event for prediction in predictions})
    cache = pickem_cache(ctx)
    events = [event for event in await cache.events.load_many(ids) if event is not None]
    by_id = {event.id: event for event in await asyncio.gather(*(show_event(ctx, event) for event in events))}
    return [show_prediction(by_id[one.event], one) for one in predictions]


async def prediction_by_key(ctx: Context, key: str) -> PredictionView | None:
    event_id, _, user = key.partition(":")
    event = await load_event(ctx, event_id)
    if event is None:
        return None
    prediction = await prediction_store.read_prediction(ctx.table, event.id, user)
    return show_prediction(event, prediction) if prediction else None


def prediction_event(_: Context, prediction: PredictionView, /) -> ShownEvent:
    return prediction.event


@batched
async def prediction_users(ctx: Context, predictions: Sequence[PredictionView], /) -> list[ShownProfile]:
    return await authors(ctx, [view.prediction.user for view in predictions])


def pick_match(_: Context, pick: Pick, /) -> str:
    return node_id("Match", f"{pick.event}:{pick.match}")


# ── submitting ──


async def submit_prediction(
    ctx: Context,
    /,
    *,
    event: EventId,
    picks: list[PickInput],
    guess: float | None = None,
) -> PredictionView:
    """Replace the viewer's earlier picks. The gate accepts the prediction in the transaction that stores it."""
    member = ctx.member()
    if len(picks) > rules.MOST_MATCHES:
        raise InvalidInput(f"A card has at most {rules.MOST_MATCHES} matches.", path=("input", "picks"))
    given = [(_parse_match(event, pick, index), pick.team) for index, pick in enumerate(picks)]
    token = ctx.new_id()

    async def submit(found: tuple[Event, Prediction | None, datetime]) -> PredictionView:
        current, before, joined_at = found
        if before is not None and before.token == token:
            return show_prediction(current, before)
        _validate_open(current, ctx.now())
        card = await pickem_cache(ctx).card(current)
        new = Prediction(
            event=event,
            user=member.id,
            picks=rules.parse_picks(given, current.card, card),
            submitted_at=ctx.now(),
            joined_at=joined_at,
            starts_at=current.starts_at,
            token=token,
            guess=parse_guess(current, guess),
            question=current.tie_break.number if current.tie_break else 0,
        )
        if before is not None and not before.picks.keys() <= card.keys():
            # A later request of this member's may have picked a match that was added since the event was read.
            card = await read_matches(ctx.table, event)
        submission, answer = Submission(new, before, current, card), show_prediction(current, new)
        await prediction_store.submit_prediction(ctx.table, submission, ctx.services.clock, ctx.unit, answer)
        ctx.services.activity["predictions"] += 1
        return answer

    known = await _load_for_submission(ctx, event)
    return await optimistic_from(known, partial(_load_again, ctx, event), submit)


async def _load_for_submission(
    ctx: Context, event_id: str, event: Event | None = None
) -> tuple[Event, Prediction | None, datetime]:
    """The event, the member's earlier prediction, and when they joined."""
    found, before, joined_at = await asyncio.gather(
        pickem_cache(ctx).events.load(event_id),
        prediction_store.read_prediction(ctx.table, event_id, ctx.viewer.id),
        _load_joined_at(ctx),
    )
    if (event := event or found) is None:
        raise NotFound(path=("input", "event"))
    return event, before, joined_at


async def _load_again(ctx: Context, event_id: str) -> tuple[Event, Prediction | None, datetime]:
    """The same, after an attempt has failed.

    The event comes first: if it has begun, this raises its gates, so no attempt that may still be in flight passes
    after the prediction was read.
    """
    return await _load_for_submission(ctx, event_id, await load_locked_if_due(ctx.services, event_id))


async def _load_joined_at(ctx: Context) -> datetime:
    """When the member joined, which changes once for an imported author or a guest.

    Without a profile they are being erased.
    """
    member = ctx.viewer.id
    profile = await ctx.services.profiles.load(member)
    profile = profile or await profile_store.read_profile(ctx.table, member)
    return ctx.now() if profile is None else profile.joined_at


def _validate_open(event: Event, now: datetime) -> None:
    if event.state is EventState.UPCOMING and not event.is_due(now):
        return
    how = "cancelled; it takes no predictions" if event.state is EventState.CANCELLED else "locked; it is too late"
    raise Locked(f"This event is {how}.", path=("input", "event"))


def _parse_match(event: str, pick: PickInput, index: int) -> str:
    path = ("input", "picks", str(index), "match")
    try:
        match_event, _, match = parse_node_key("Match", pick.match).partition(":")
    except InvalidInput as refused:
        raise InvalidInput(refused.message, path=path) from None
    if match_event != event:
        raise InvalidInput("This match is not on the event's card.", path=path)
    return match
