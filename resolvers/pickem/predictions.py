"""Predictions: submitting them, and who may see what of them.

What a prediction says is its owner's secret until the event's gates are closed; that somebody predicted is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from datastore import people as people_store
from datastore import pickem as pickem_store
from datastore.dynamo import Page, Window
from datastore.people import Profile
from datastore.pickem import Event, EventState, Locked, Prediction
from datastore.refusals import Conflict, InvalidInput, NotFound
from resolvers.context import AnyId, Context, NodeOf
from resolvers.loading.batched import batched
from resolvers.node_ids import node_id, parse_node_key
from resolvers.people import authors, newcomer
from resolvers.pickem import rules
from resolvers.pickem.cache import load_event, pickem_cache
from resolvers.pickem.views import Pick, PredictionView

EventId = Annotated[str, NodeOf("Event")]
ATTEMPTS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class PickGiven:
    """A pick as a client gives it: a match's id and a team's place."""

    match: AnyId
    team: int


# ── reading ──


async def viewer_prediction(ctx: Context, event: Event, /) -> PredictionView | None:
    """The viewer's own, at any time."""
    if not ctx.viewer.is_member:
        return None
    found = await pickem_store.read_prediction(ctx.table, event.id, ctx.viewer.id)
    return PredictionView(found, event) if found else None


async def event_predictions(ctx: Context, event: Event, /, *, window: Window) -> Page[PredictionView]:
    """Best first once the event is scored; in the order of the members' ids until then."""
    page = await pickem_store.read_event_predictions(ctx.table, event, window)
    return page.map([PredictionView(found, event) for found in page.nodes])


async def predictions(ctx: Context, /, *, event: EventId, window: Window) -> Page[PredictionView]:
    found = await load_event(ctx, event)
    if found is None:
        message = "There is no event with this id."
        raise InvalidInput(message, path=("event",))
    return await event_predictions(ctx, found, window=window)


async def user_predictions(ctx: Context, profile: Profile, /, *, window: Window) -> Page[PredictionView]:
    """A member's predictions, newest event first; the first page shares its read with the member's standings."""
    request = pickem_store.member_predictions_request(profile.user, window)
    if request.forward and request.position is None:
        loaded = await pickem_cache(ctx).members.load((profile.user, request.wanted))
        page = Page.cut(loaded.predictions if loaded else (), request)
    else:
        page = await pickem_store.read_member_predictions(ctx.table, profile.user, request)
    return page.map(await _entries(ctx, page.nodes))


async def _entries(ctx: Context, found: Sequence[Prediction]) -> list[PredictionView]:
    ids = list({one.event for one in found})
    events = dict(zip(ids, await pickem_cache(ctx).events.load_many(ids), strict=True))
    return [PredictionView(one, _present(events[one.event])) for one in found]


def _present(event: Event | None) -> Event:
    assert event is not None  # noqa: S101 - events are never removed
    return event


async def prediction_by_key(ctx: Context, key: str) -> PredictionView | None:
    event_id, _, user = key.partition(":")
    event = await load_event(ctx, event_id)
    if event is None:
        return None
    found = await pickem_store.read_prediction(ctx.table, event.id, user)
    return PredictionView(found, event) if found else None


def prediction_event(_: Context, entry: PredictionView, /) -> Event:
    return entry.event


@batched
async def prediction_users(ctx: Context, entries: Sequence[PredictionView], /) -> list[Profile]:
    return await authors(ctx, [entry.prediction.user for entry in entries])


def picks(ctx: Context, entry: PredictionView, /) -> list[Pick] | None:
    """In the card's order; hidden from others until the lock."""
    event, given = entry.event, entry.prediction
    if not event.revealed and not (ctx.viewer.is_member and ctx.viewer.id == given.user):
        return None
    return [
        Pick(event.id, match, given.picks[match], rules.is_correct(event, match, given.picks[match]))
        for match in event.card
        if match in given.picks
    ]


async def prediction_rank(ctx: Context, entry: PredictionView, /) -> int | None:
    """The place among the event's predictions by points; those with the same points share it."""
    points = entry.prediction.points
    if points is None:
        return None
    histogram = await pickem_cache(ctx).event_ranks(entry.event)
    return histogram.rank(points) if histogram else None


def pick_match(_: Context, pick: Pick, /) -> str:
    return node_id("Match", f"{pick.event}:{pick.match}")


# ── submitting ──


async def submit_prediction(ctx: Context, /, *, event: EventId, picks: list[PickGiven]) -> PredictionView:
    """Replaces the viewer's earlier picks. Accepted by the gate in the transaction that stores it, or not at all."""
    member = ctx.member()
    if len(picks) > rules.MOST_MATCHES:
        message = f"A card has at most {rules.MOST_MATCHES} matches."
        raise InvalidInput(message, path=("input", "picks"))
    given = [(_parse_match(event, pick, place), pick.team) for place, pick in enumerate(picks)]
    token = ctx.new_id()
    for _ in range(ATTEMPTS):
        # The event first: if its time has come its gates are closed now, and no lost attempt of ours can pass later.
        found = await _required(ctx, event)
        before = await pickem_store.read_prediction(ctx.table, event, member.id)
        if before is not None and before.token == token:
            return PredictionView(before, found)
        _require_open(found)
        new = Prediction(
            event=event,
            user=member.id,
            picks=rules.parse_picks(given, found.card, await pickem_cache(ctx).card(found)),
            submitted_at=ctx.now(),
            joined_at=before.joined_at if before else await _joined_at(ctx),
            starts_at=found.starts_at,
            token=token,
            version=before.version + 1 if before else 1,
        )
        answer = PredictionView(new, found)
        if await pickem_store.submit_prediction(ctx.table, new, before, found, ctx.services.clock, ctx.once, answer):
            return answer
    raise Conflict


async def _joined_at(ctx: Context) -> datetime:
    """When the member joined, which their first write has just settled if nothing before did."""
    member = ctx.viewer.id
    profile = await ctx.services.profiles.load(member) or await people_store.profile(ctx.table, member, consistent=True)
    return (profile or newcomer(ctx)).joined_at


async def _required(ctx: Context, event_id: str) -> Event:
    event = await load_event(ctx, event_id)
    if event is None:
        raise NotFound(path=("input", "event"))
    return event


def _require_open(event: Event) -> None:
    if event.state is EventState.UPCOMING:
        return
    how = "cancelled; it takes no predictions" if event.state is EventState.CANCELLED else "locked; it is too late"
    message = f"This event is {how}."
    raise Locked(message, path=("input", "event"))


def _parse_match(event: str, pick: PickGiven, place: int) -> str:
    path = ("input", "picks", str(place), "match")
    try:
        of, _, match = parse_node_key("Match", pick.match).partition(":")
    except InvalidInput as refused:
        raise InvalidInput(refused.message, path=path) from None
    if of != event:
        message = "This match is not on the event's card."
        raise InvalidInput(message, path=path)
    return match
