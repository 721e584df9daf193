"""Events and their cards."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, TypeVar

from datastore import pickem as pickem_store
from datastore.dynamo import Page
from datastore.pickem import Event, EventState, Locked, Match, MatchOutcome, PickCounts, VersionConflict
from datastore.refusals import Conflict, InvalidInput, NotFound
from resolvers.context import BothWaysWindow, Context, NodeOf
from resolvers.pickem import rules
from resolvers.pickem.cache import load_event, pickem_cache
from resolvers.pickem.rules import TeamInput
from resolvers.pickem.views import MatchAndEvent, MatchView, match_view
from resolvers.viewer import Role

A = TypeVar("A")
EventId = Annotated[str, NodeOf("Event")]
MatchId = Annotated[str, NodeOf("Match")]

ATTEMPTS = 16
"""How often a change is tried again when another editor's change comes first."""


# ── reading ──


async def event(ctx: Context, /, *, id: EventId) -> Event | None:  # noqa: A002 - the argument's public name
    return await load_event(ctx, id)


async def events(ctx: Context, /, *, state: EventState | None = None, window: BothWaysWindow) -> Page[Event]:
    """Newest first."""
    page = await pickem_store.read_events_page(ctx.table, state, window, ctx.now())
    locked = await pickem_cache(ctx).lock_due({event.id: event for event in page.nodes})
    current: list[Event] = []
    for event in page.nodes:
        event_or_error = locked[event.id]
        if isinstance(event_or_error, Exception):
            raise event_or_error
        current.append(event_or_error)
    return page.map(current)


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


async def pick_counts(ctx: Context, match: MatchView, /) -> list[int] | None:
    """Picks per team; None until the lock."""
    if not match.revealed:
        return None
    counts = await pickem_cache(ctx).pick_counts.load(match.event) or PickCounts()
    return [counts.count(match.id, team) for team in range(len(match.teams))]


async def event_changed(ctx: Context, /, *, event: EventId) -> AsyncIterator[Event]:
    """The event immediately, then again after each change."""
    events = pickem_cache(ctx).events

    async def load_current() -> Event:
        current = await events.load(event)
        if current is None:
            raise InvalidInput("There is no event with this id.", path=("event",))
        return current

    await load_current()  # an unknown event is refused before the stream begins
    async for changed in ctx.services.live.changes(("event", event), load_current):
        yield changed


# ── events ──


async def create_event(ctx: Context, /, *, name: str, season: str, starts_at: datetime) -> Event:
    """A new event with an empty card. It is locked at once if its start has passed."""
    ctx.with_role(Role.EDITOR)
    now = ctx.now()
    created = Event(
        id=ctx.new_id(),
        name=rules.validate_name(name, "input", "name"),
        season=rules.validate_season(season),
        starts_at=rules.validate_start(starts_at),
        created_at=now,
    )
    event = created.locked(now) if created.is_due(now) else created
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
    """The name can change at any time, the start until the lock; an event can be cancelled until scoring begins."""
    ctx.with_role(Role.EDITOR)

    async def change(before: Event) -> Event:
        after = before.changed(
            name=before.name if name is None else rules.validate_name(name, "input", "name"),
            starts_at=before.starts_at
            if starts_at is None
            else _validate_new_start(before, rules.validate_start(starts_at)),
            state=before.state if cancelled is None else _state_after_update(before, cancelled=cancelled),
        )
        if after.is_due(now := ctx.now()):
            after = replace(after, state=EventState.LOCKED, locked_at=now)
        moves = before.state is EventState.UPCOMING and after.starts_at != before.starts_at
        clock = ctx.services.clock if moves else None
        await pickem_store.change_event(ctx.table, before, after, ctx.once, after, clock=clock)
        return after

    return await _retry_on_conflict(ctx, event, change)


def _validate_new_start(event: Event, moment: datetime) -> datetime:
    if moment != event.starts_at and event.revealed:
        raise Locked("This event is locked: its start can no longer be moved.", path=("input", "startsAt"))
    return moment


def _state_after_update(event: Event, *, cancelled: bool) -> EventState:
    if not cancelled:
        if event.state is not EventState.CANCELLED:
            return event.state
        return EventState.LOCKED if event.revealed else EventState.UPCOMING
    if event.begun is not None:
        raise Conflict(
            "This event has been scored. Record its matches as CANCELLED and score it again instead.",
            path=("input", "cancelled"),
        )
    return EventState.CANCELLED


async def lock_event(ctx: Context, /, *, event: EventId) -> Event:
    """From now on no prediction is accepted. Locking a locked event changes nothing."""
    ctx.with_role(Role.EDITOR)

    async def change(before: Event) -> Event:
        if before.state in (EventState.LOCKED, EventState.SCORED):
            return await _with_receipt(ctx, before)
        if before.state is EventState.CANCELLED:
            raise Conflict("This event is cancelled.", path=("input", "event"))
        after = before.locked(ctx.now())
        await pickem_store.change_event(ctx.table, before, after, ctx.once, after)
        return after

    return await _retry_on_conflict(ctx, event, change)


async def _with_receipt(ctx: Context, answer: A) -> A:
    """Stores a receipt for an answer that changes nothing."""
    if ctx.once.key is not None:
        await ctx.once.transact(ctx.table, answer)
    return answer


async def _retry_on_conflict(ctx: Context, event_id: str, change: Callable[[Event], Awaitable[A]], *path: str) -> A:
    """Make a change from the current event, again each time another change comes first."""
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
    teams: list[TeamInput],
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
        if match.id in before.card:  # an earlier attempt was applied, but its answer was lost
            return MatchAndEvent(match_view(before, match), before)
        _validate_upcoming(before)
        if len(before.card) >= rules.MOST_MATCHES:
            raise InvalidInput(f"A card has at most {rules.MOST_MATCHES} matches.", path=("input", "event"))
        matches = {**await pickem_cache(ctx).card(before), match.id: match}
        after = before.changed(card=_preshow_first((*before.card, match.id), matches))
        answer = MatchAndEvent(match_view(after, match), after)
        await pickem_store.put_match(ctx.table, _card_change(ctx, before, after, answer), match)
        return answer

    return await _retry_on_conflict(ctx, event, change)


async def update_match(
    ctx: Context,
    /,
    *,
    match: MatchId,
    name: str | None = None,
    points: int | None = None,
    teams: list[TeamInput] | None = None,
    championships: list[str] | None = None,
    preshow: bool | None = None,
) -> MatchView:
    """Picks refer to a team's position, so a picked team can be changed but not removed."""
    ctx.with_role(Role.EDITOR)
    event_id, _, match_id = match.partition(":")

    async def change(before: Event) -> MatchView:
        matches = await pickem_cache(ctx).card(before)
        old = _validate_match(before, matches, match_id)
        _validate_upcoming(before)
        new = replace(
            old,
            name=old.name if name is None else rules.validate_name(name, "input", "name"),
            points=old.points if points is None else rules.validate_points(points),
            teams=old.teams if teams is None else rules.parse_teams(teams),
            championships=old.championships if championships is None else rules.validate_championships(championships),
            preshow=old.preshow if preshow is None else preshow,
        )
        after = before.changed(card=_preshow_first(before.card, {**matches, match_id: new}))
        answer = match_view(after, new)
        card_change = _card_change(ctx, before, after, answer)
        if gone := range(len(new.teams), len(old.teams)):
            await pickem_store.put_match_with_fewer_teams(ctx.table, card_change, new, gone)
        else:
            await pickem_store.put_match(ctx.table, card_change, new)
        return answer

    return await _retry_on_conflict(ctx, event_id, change, "match")


async def remove_match(ctx: Context, /, *, match: MatchId) -> Event:
    """Take a match off the card. Picks of it no longer count."""
    ctx.with_role(Role.EDITOR)
    event_id, _, match_id = match.partition(":")

    async def change(before: Event) -> Event:
        matches = await pickem_cache(ctx).card(before)
        old = _validate_match(before, matches, match_id)
        _validate_upcoming(before)
        after = before.changed(card=tuple(other for other in before.card if other != match_id))
        await pickem_store.remove_match(ctx.table, _card_change(ctx, before, after, after), old)
        return after

    return await _retry_on_conflict(ctx, event_id, change, "match")


async def reorder_matches(ctx: Context, /, *, event: EventId, matches: list[MatchId]) -> Event:
    """Reorder a card. The new order names each match once; the pre-show stays first."""
    ctx.with_role(Role.EDITOR)
    keys = [key.partition(":") for key in matches]

    async def change(before: Event) -> Event:
        _validate_upcoming(before)
        ids = [match for event_id, _, match in keys if event_id == before.id]
        if len(ids) != len(keys) or sorted(ids) != sorted(before.card):
            raise InvalidInput(
                f"Name each of the card's {len(before.card)} matches exactly once.", path=("input", "matches")
            )
        after = before.changed(card=_preshow_first(tuple(ids), await pickem_cache(ctx).card(before)))
        await pickem_store.reorder_card(ctx.table, _card_change(ctx, before, after, after))
        return after

    return await _retry_on_conflict(ctx, event, change)


async def record_result(
    ctx: Context, /, *, match: MatchId, outcome: MatchOutcome, winner: int | None = None
) -> MatchView:
    """Record how a match ended. A later result corrects an earlier one; points follow when the event is scored."""
    ctx.with_role(Role.EDITOR)
    event_id, _, match_id = match.partition(":")

    async def change(before: Event) -> MatchView:
        ended = _validate_match(before, await pickem_cache(ctx).card(before), match_id)
        if before.state not in (EventState.LOCKED, EventState.SCORED):
            raise Conflict(
                f"This event is {before.state.value}. Results are recorded once it is locked.", path=("input", "match")
            )
        result = rules.parse_result(ended, outcome, winner)
        if before.results.get(match_id) == result:
            return await _with_receipt(ctx, match_view(before, ended))
        results = {**before.results, match_id: result}
        after = before.changed(results=results, generation=before.generation + 1)
        answer = match_view(after, ended)
        await pickem_store.change_event(ctx.table, before, after, ctx.once, answer)
        return answer

    return await _retry_on_conflict(ctx, event_id, change, "match")


def _validate_upcoming(event: Event) -> None:
    if event.state is EventState.CANCELLED:
        raise Conflict("This event is cancelled; its card stays as it is.")
    if event.state is not EventState.UPCOMING:
        raise Locked


def _validate_match(event: Event, matches: Mapping[str, Match], match: str) -> Match:
    if match not in event.card or match not in matches:
        raise NotFound(path=("input", "match"))
    return matches[match]


def _preshow_first(card: tuple[str, ...], matches: Mapping[str, Match]) -> tuple[str, ...]:
    return rules.preshow_first(card, (match.id for match in matches.values() if match.preshow))


def _card_change(ctx: Context, before: Event, after: Event, answer: object) -> pickem_store.CardChange:
    return pickem_store.CardChange(before, after, ctx.once, answer, ctx.services.clock)
