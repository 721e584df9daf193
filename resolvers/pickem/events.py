"""Events and their cards."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, TypeVar

from datastore import pickem as pickem_store
from datastore.dynamo import Page
from datastore.pickem import Event, EventState, Locked, Match, MatchOutcome, VersionConflict
from datastore.refusals import Conflict, InvalidInput, NotFound
from resolvers.context import BothWaysWindow, Context, NodeOf
from resolvers.pickem import rules
from resolvers.pickem.cache import load_event, pickem_cache
from resolvers.pickem.rules import TeamGiven
from resolvers.pickem.views import MatchAndEvent, MatchView, match_view
from resolvers.viewer import Role

A = TypeVar("A")
EventId = Annotated[str, NodeOf("Event")]
MatchId = Annotated[str, NodeOf("Match")]

ATTEMPTS = 16
"""How often a change is decided anew because another editor's came first."""


# ── reading ──


async def event(ctx: Context, /, *, id: EventId) -> Event | None:  # noqa: A002 - the argument's public name
    return await load_event(ctx, id)


async def events(ctx: Context, /, *, state: EventState | None = None, window: BothWaysWindow) -> Page[Event]:
    """Newest first."""
    scope = f"events:{state.value if state else ''}"
    page = await pickem_store.read_events_page(ctx.table, state, window, ctx.now(), scope)
    locked = await pickem_cache(ctx).locked({event.id: event for event in page.nodes})
    return page.map([_event_or_error(locked[event.id]) for event in page.nodes])


def _event_or_error(event: Event | Exception) -> Event:
    if isinstance(event, Exception):
        raise event
    return event


async def event_matches(ctx: Context, event: Event, /) -> list[MatchView]:
    """The card, pre-show first."""
    card = await pickem_cache(ctx).card(event)
    return [match_view(event, card[match]) for match in event.card if match in card]


async def match_by_key(ctx: Context, key: str) -> MatchView | None:
    event_id, _, match_id = key.partition(":")
    event = await load_event(ctx, event_id)
    if event is None:
        return None
    match = (await pickem_cache(ctx).card(event)).get(match_id)
    return match_view(event, match) if match is not None and match_id in event.card else None


async def pick_counts(ctx: Context, match_view: MatchView, /) -> list[int] | None:
    """Picks per team; nobody's business until the lock."""
    if not match_view.revealed:
        return None
    picked = await pickem_cache(ctx).picked.load(match_view.event) or {}
    return [picked.get(pickem_store.pick_counter(match_view.id, team), 0) for team in range(len(match_view.teams))]


async def event_changed(ctx: Context, /, *, event: EventId) -> AsyncIterator[Event]:
    """The event now, and again after each change."""
    kept = pickem_cache(ctx)

    async def look() -> Event:
        found = await kept.events.load(event)
        if found is None:
            message = "There is no event with this id."
            raise InvalidInput(message, path=("event",))
        return found

    await look()
    async for value in ctx.services.live.changes(("event", event), look):
        yield value


# ── events ──


async def create_event(ctx: Context, /, *, name: str, season: str, starts_at: datetime) -> Event:
    """A new event with an empty card. One that should have begun already is locked from its beginning."""
    ctx.with_role(Role.EDITOR)
    now = ctx.now()
    made = Event(
        id=ctx.new_id(),
        name=rules.validate_name(name, "input", "name"),
        season=rules.validate_season(season),
        starts_at=rules.validate_start(starts_at),
        created_at=now,
    )
    event = made.locked(now) if made.is_due(now) else made
    await pickem_store.create_event(ctx.table, event, (), ctx.once)
    return event


async def update_event(
    ctx: Context,
    /,
    *,
    event: EventId,
    name: str | None = None,
    starts_at: datetime | None = None,
    cancelled: bool | None = None,
) -> Event:
    """A name may change at any time; the start until the lock; cancelling until scoring begins."""
    ctx.with_role(Role.EDITOR)

    async def change(before: Event) -> Event:
        after = before.changed(
            name=before.name if name is None else rules.validate_name(name, "input", "name"),
            starts_at=before.starts_at if starts_at is None else _movable(before, rules.validate_start(starts_at)),
            state=before.state if cancelled is None else _cancelled(before, cancelled=cancelled),
        )
        if after.is_due(now := ctx.now()):
            after = replace(after, state=EventState.LOCKED, locked_at=now)
        moves = before.state is EventState.UPCOMING and after.starts_at != before.starts_at
        clock = ctx.services.clock if moves else None
        await pickem_store.change_event(ctx.table, before, after, ctx.once, after, clock=clock)
        return after

    return await _decided(ctx, event, change)


def _movable(event: Event, moment: datetime) -> datetime:
    if moment != event.starts_at and event.revealed:
        message = "This event is locked: its start can no longer be moved."
        raise Locked(message, path=("input", "startsAt"))
    return moment


def _cancelled(event: Event, *, cancelled: bool) -> EventState:
    if not cancelled:
        if event.state is not EventState.CANCELLED:
            return event.state
        return EventState.LOCKED if event.revealed else EventState.UPCOMING
    if event.begun is not None:
        message = "This event has been scored. Record its matches as CANCELLED and score it again instead."
        raise Conflict(message, path=("input", "cancelled"))
    return EventState.CANCELLED


async def lock_event(ctx: Context, /, *, event: EventId) -> Event:
    """From now on no prediction is accepted. Locking what is locked changes nothing."""
    ctx.with_role(Role.EDITOR)

    async def change(before: Event) -> Event:
        if before.state in (EventState.LOCKED, EventState.SCORED):
            return await _receipted(ctx, before)
        if before.state is EventState.CANCELLED:
            message = "This event is cancelled."
            raise Conflict(message, path=("input", "event"))
        after = before.locked(ctx.now())
        await pickem_store.change_event(ctx.table, before, after, ctx.once, after)
        return after

    return await _decided(ctx, event, change)


async def _receipted(ctx: Context, answer: A) -> A:
    """An answer that took no change leaves its receipt all the same, if a key was given."""
    if ctx.once.key is not None:
        await ctx.once.transact(ctx.table, answer)
    return answer


async def _decided(ctx: Context, event_id: str, change: Callable[[Event], Awaitable[A]], *path: str) -> A:
    """A change decided from the event as it is, and decided anew when another one came first."""
    for _ in range(ATTEMPTS):
        event = await load_event(ctx, event_id)
        if event is None:
            raise NotFound(path=("input", *(path or ("event",))))
        try:
            return await change(event)
        except VersionConflict:
            continue
    raise VersionConflict


# ── cards ──


async def add_match(
    ctx: Context,
    /,
    *,
    event: EventId,
    name: str,
    points: int,
    teams: list[TeamGiven],
    championships: Sequence[str] = (),
    preshow: bool = False,
) -> MatchAndEvent:
    """A match at the end of the card, or of its pre-show."""
    ctx.with_role(Role.EDITOR)
    match = Match(
        event=event,
        id=ctx.new_id(),
        name=rules.validate_name(name, "input", "name"),
        points=rules.validate_points(points),
        teams=rules.parse_teams(teams),
        championships=rules.validate_championships(championships),
        preshow=preshow,
    )

    async def change(before: Event) -> MatchAndEvent:
        if match.id in before.card:  # applied, and its answer lost
            return MatchAndEvent(match_view(before, match), before)
        _require_upcoming(before)
        if len(before.card) >= rules.MOST_MATCHES:
            message = f"A card has at most {rules.MOST_MATCHES} matches."
            raise InvalidInput(message, path=("input", "event"))
        matches = {**await pickem_cache(ctx).card(before), match.id: match}
        after = before.changed(card=_ordered((*before.card, match.id), matches))
        answer = MatchAndEvent(match_view(after, match), after)
        await pickem_store.put_match(ctx.table, _card_change(ctx, before, after, answer), match)
        return answer

    return await _decided(ctx, event, change)


async def update_match(
    ctx: Context,
    /,
    *,
    match: MatchId,
    name: str | None = None,
    points: int | None = None,
    teams: list[TeamGiven] | None = None,
    championships: list[str] | None = None,
    preshow: bool | None = None,
) -> MatchView:
    """Picks stay with a team's place, so a team that was picked may be changed but not left out."""
    ctx.with_role(Role.EDITOR)
    event_id, _, match_id = match.partition(":")

    async def change(before: Event) -> MatchView:
        matches = await pickem_cache(ctx).card(before)
        old = _on_card(before, matches, match_id)
        _require_upcoming(before)
        new = replace(
            old,
            name=old.name if name is None else rules.validate_name(name, "input", "name"),
            points=old.points if points is None else rules.validate_points(points),
            teams=old.teams if teams is None else rules.parse_teams(teams),
            championships=old.championships if championships is None else rules.validate_championships(championships),
            preshow=old.preshow if preshow is None else preshow,
        )
        after = before.changed(card=_ordered(before.card, {**matches, match_id: new}))
        answer = match_view(after, new)
        card_change = _card_change(ctx, before, after, answer)
        if gone := range(len(new.teams), len(old.teams)):
            await pickem_store.put_match_with_fewer_teams(ctx.table, card_change, new, gone)
        else:
            await pickem_store.put_match(ctx.table, card_change, new)
        return answer

    return await _decided(ctx, event_id, change, "match")


async def remove_match(ctx: Context, /, *, match: MatchId) -> Event:
    """Takes a match off the card; picks of it count for nothing any more."""
    ctx.with_role(Role.EDITOR)
    event_id, _, match_id = match.partition(":")

    async def change(before: Event) -> Event:
        matches = await pickem_cache(ctx).card(before)
        old = _on_card(before, matches, match_id)
        _require_upcoming(before)
        after = before.changed(card=tuple(other for other in before.card if other != match_id))
        await pickem_store.remove_match(ctx.table, _card_change(ctx, before, after, after), old)
        return after

    return await _decided(ctx, event_id, change, "match")


async def reorder_matches(ctx: Context, /, *, event: EventId, matches: list[MatchId]) -> Event:
    """The card in another order, which names each of its matches once. The pre-show stays in front."""
    ctx.with_role(Role.EDITOR)
    wanted = [key.partition(":") for key in matches]

    async def change(before: Event) -> Event:
        _require_upcoming(before)
        ids = [match for event_id, _, match in wanted if event_id == before.id]
        if len(ids) != len(wanted) or sorted(ids) != sorted(before.card):
            message = f"Name each of the card's {len(before.card)} matches exactly once."
            raise InvalidInput(message, path=("input", "matches"))
        after = before.changed(card=_ordered(tuple(ids), await pickem_cache(ctx).card(before)))
        await pickem_store.reorder_card(ctx.table, _card_change(ctx, before, after, after))
        return after

    return await _decided(ctx, event, change)


async def record_result(
    ctx: Context, /, *, match: MatchId, outcome: MatchOutcome, winner: int | None = None
) -> MatchView:
    """How a match ended; a later result corrects an earlier one. Points follow when the event is scored."""
    ctx.with_role(Role.EDITOR)
    event_id, _, match_id = match.partition(":")

    async def change(before: Event) -> MatchView:
        found = _on_card(before, await pickem_cache(ctx).card(before), match_id)
        if before.state not in (EventState.LOCKED, EventState.SCORED):
            message = f"This event is {before.state.value}. Results are recorded once it is locked."
            raise Conflict(message, path=("input", "match"))
        result = rules.parse_result(found, outcome, winner)
        if before.results.get(match_id) == result:
            return await _receipted(ctx, match_view(before, found))
        results = {**before.results, match_id: result}
        after = before.changed(results=results, generation=before.generation + 1)
        answer = match_view(after, found)
        await pickem_store.change_event(ctx.table, before, after, ctx.once, answer)
        return answer

    return await _decided(ctx, event_id, change, "match")


def _require_upcoming(event: Event) -> None:
    if event.state is EventState.CANCELLED:
        message = "This event is cancelled; its card stays as it is."
        raise Conflict(message)
    if event.state is not EventState.UPCOMING:
        raise Locked


def _on_card(event: Event, matches: Mapping[str, Match], match: str) -> Match:
    if match not in event.card or match not in matches:
        raise NotFound(path=("input", "match"))
    return matches[match]


def _ordered(card: tuple[str, ...], matches: Mapping[str, Match]) -> tuple[str, ...]:
    return rules.in_order(card, (match.id for match in matches.values() if match.preshow))


def _card_change(ctx: Context, before: Event, after: Event, answer: object) -> pickem_store.CardChange:
    return pickem_store.CardChange(before, after, ctx.once, answer, ctx.services.clock)
