"""Events and their cards."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, TypeVar

from datastore.changes.occurrences import Kind
from datastore.dynamo import Page, chunks, optimistic, page_of
from datastore.pickem import events as event_store
from datastore.pickem.events import Event, EventState, Locked, Match, MatchOutcome
from datastore.refusals import Conflict, InvalidInput, NotFound, require_revision
from resolvers.people.identities import look_again
from resolvers.pickem import rules, visibility
from resolvers.pickem.cache import load_locked_if_due, pickem_cache
from resolvers.pickem.rules import TeamInput, TieBreakInput, parse_number, parse_tie_break, with_question
from resolvers.requests.context import UNSET, BothWaysWindow, Context, NodeOf, Role, Unset

# ── records ──

A = TypeVar("A")
_LOOKED_AT_ONCE = 10
"""How many of a season's coming events are read at once, to find one that is neither locked early nor cancelled."""
EventId = Annotated[str, NodeOf("Event")]
MatchId = Annotated[str, NodeOf("Match")]


@dataclass(frozen=True, slots=True)
class MatchAndEvent:
    """The answer to adding a match."""

    match: visibility.MatchView
    event: visibility.ShownEvent


# ── reading ──


async def event(ctx: Context, /, *, id: EventId) -> visibility.ShownEvent | None:  # noqa: A002 - the argument's public name
    return await visibility.load_event(ctx, id)


async def events(
    ctx: Context, /, *, state: EventState | None = None, window: BothWaysWindow
) -> Page[visibility.ShownEvent]:
    """Newest first."""
    page = await event_store.read_events_page(ctx.table, state, window, ctx.now())
    return page.map(await asyncio.gather(*(visibility.show_event(ctx, event) for event in page.nodes)))


async def next_event(ctx: Context, /, *, season: str | None = None) -> visibility.ShownEvent | None:
    """The next one to lock."""
    now = ctx.now()
    if season is None:
        found = await event_store.read_next_event(ctx.table, now)
        return None if found is None else await visibility.show_event(ctx, found)
    cache, name = pickem_cache(ctx), rules.validate_season(season, "season")
    entries = await cache.season_entries.load(name) or ()
    coming = sorted((entry.starts_at, entry.event) for entry in entries if entry.starts_at > now)
    for some in chunks([id_ for _, id_ in coming], _LOOKED_AT_ONCE):
        for found in await cache.events.load_many(some):
            if found is not None and found.state is EventState.UPCOMING:
                return await visibility.show_event(ctx, found)
    return None


async def seasons(ctx: Context, /, *, window: BothWaysWindow) -> Page[visibility.SeasonView]:
    """The one with the latest event first."""
    request = window.open("seasons")
    return page_of(*visibility.show_seasons(await pickem_cache(ctx).season_entries.load(None) or ()), request)


async def event_matches(ctx: Context, event: visibility.ShownEvent, /) -> list[visibility.MatchView]:
    """The card, pre-show first."""
    card = await pickem_cache(ctx).card(event)
    return [visibility.show_match(event, card[match]) for match in event.card if match in card]


async def match_by_key(ctx: Context, key: str) -> visibility.MatchView | None:
    event_id, _, match_id = key.partition(":")
    event = await visibility.load_event(ctx, event_id)
    if event is None:
        return None
    match = (await pickem_cache(ctx).card(event)).get(match_id)
    return visibility.show_match(event, match) if match is not None and match_id in event.card else None


async def event_changed(ctx: Context, /, *, event: EventId) -> AsyncGenerator[visibility.ShownEvent]:
    """The event immediately, then again after each change."""

    async def load_current() -> tuple[visibility.ShownEvent, Mapping[str, Match]]:
        """With its card, which may be another one when it is read again."""
        current = await visibility.load_event(ctx, event)
        if current is None:
            raise NotFound("There is no event with this id.", path=("event",))
        return current, await pickem_cache(ctx).card(current)

    await load_current()  # an unknown event is refused before the stream begins
    async for changed, _ in ctx.services.live.changes(("event", event), load_current, ctx.address):
        look_again(ctx)
        yield changed


# ── events ──


async def create_event(
    ctx: Context,
    /,
    *,
    name: str,
    season: str,
    starts_at: datetime,
    description: str | None = None,
    place: str | None = None,
    image_url: str | None = None,
    tie_break: TieBreakInput | None = None,
) -> Event:
    """A new event with an empty card. It is locked at once if its start has passed."""
    ctx.with_role(Role.EDITOR)
    now = ctx.now()
    created = Event(
        id=ctx.new_id(),
        name=rules.validate_name(name, "input", "name"),
        season=rules.validate_season(season, "input", "season"),
        starts_at=rules.validate_start(starts_at),
        created_at=now,
        tie_break=None if tie_break is None else parse_tie_break(tie_break),
        **rules.parse_details(ctx.services.policy.image_hosts, description, place, image_url),
    )
    event = created.locked().reveal(now) if created.is_due(now) else created
    await event_store.create_event(ctx.table, event, (), ctx.unit)
    return event


async def update_event(  # noqa: PLR0913 - the arguments of the mutation
    ctx: Context,
    /,
    *,
    event: EventId,
    name: str | None = None,
    starts_at: datetime | None = None,
    cancelled: bool | None = None,
    description: str | Unset | None = UNSET,
    place: str | Unset | None = UNSET,
    image_url: str | Unset | None = UNSET,
    tie_break: TieBreakInput | Unset | None = UNSET,
    revision: int | None = None,
) -> Event:
    """The start can change until the lock, an event can be cancelled until scoring begins; the rest at any time."""
    ctx.with_role(Role.EDITOR)
    details = rules.parse_details(ctx.services.policy.image_hosts, description, place, image_url)
    asked = parse_tie_break(tie_break) if isinstance(tie_break, TieBreakInput) else tie_break

    async def change(before: Event) -> Event:
        require_revision(before.revision, revision)
        after = before.changed(
            name=before.name if name is None else rules.validate_name(name, "input", "name"),
            starts_at=before.starts_at
            if starts_at is None
            else _validate_new_start(before, rules.validate_start(starts_at)),
            state=before.state if cancelled is None else _state_after_update(before, cancelled=cancelled),
            **details,
        )
        if not isinstance(asked, Unset):
            after = with_question(after, asked)
        if after.tie_break != before.tie_break:
            _validate_upcoming(before)
        if after.is_due(ctx.now()):
            after = replace(after, state=EventState.LOCKED)
        if replace(after, version=before.version) == before:  # somebody else has finished this change
            await ctx.unit.store_receipt(ctx.table, before)
            return before
        moves = before.state is EventState.UPCOMING and after.starts_at != before.starts_at
        clock = ctx.services.clock if moves or after.tie_break != before.tie_break else None
        locked = ctx.unit.occurred(Kind.EVENT_LOCKED, event_store.name_of(after)) if after.is_locking else ()
        return await event_store.change_event(
            ctx.table, before, after, ctx.unit, after, *locked, kind=Kind.EVENT_CHANGED, clock=clock
        )

    return await change_event(ctx, event, change)


def _validate_new_start(event: Event, moment: datetime) -> datetime:
    if moment != event.starts_at and event.revealed:
        raise Locked("This event is locked: its start can no longer be moved.", path=("input", "startsAt"))
    return moment


def _state_after_update(event: Event, *, cancelled: bool) -> EventState:
    if not cancelled:
        if event.state is not EventState.CANCELLED:
            return event.state
        return EventState.LOCKED if event.revealed else EventState.UPCOMING
    if event.may_have_points:
        raise Conflict(
            "This event has been scored. Record its matches as CANCELLED and score it again instead.",
            path=("input", "cancelled"),
        )
    return EventState.CANCELLED


async def lock_event(ctx: Context, /, *, event: EventId) -> Event:
    """Accept no predictions from now on. Locking a locked event changes nothing."""
    ctx.with_role(Role.EDITOR)

    async def change(before: Event) -> Event:
        if before.state in (EventState.LOCKED, EventState.SCORED):
            await ctx.unit.store_receipt(ctx.table, before)
            return before
        if before.state is EventState.CANCELLED:
            raise Conflict("This event is cancelled.", path=("input", "event"))
        return await event_store.lock_event(ctx.table, before, ctx.unit, ctx.services.clock)

    return await change_event(ctx, event, change)


async def change_event(ctx: Context, event_id: str, change: Callable[[Event], Awaitable[A]], field: str = "event") -> A:
    """Change the current event, and again from the newer one whenever another change came first.

    `field` of the input names the event.
    """

    async def read() -> Event:
        event = await load_locked_if_due(ctx.services, event_id)
        if event is None:
            raise NotFound(path=("input", field))
        return event

    return await optimistic(read, change)


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
            return MatchAndEvent(visibility.show_match(before, match), visibility.show_changed(before))
        _validate_upcoming(before)
        if len(before.card) >= rules.MOST_MATCHES:
            raise InvalidInput(f"A card has at most {rules.MOST_MATCHES} matches.", path=("input", "event"))
        new = replace(match, number=before.version + 1, version=before.version + 1)
        matches = {**await pickem_cache(ctx).card(before), new.id: new}
        after = before.changed(card=_preshow_first((*before.card, new.id), matches))
        answer = MatchAndEvent(visibility.show_match(after, new), visibility.show_changed(after))
        await event_store.change_card(ctx.table, before, after, ctx.unit, answer, ctx.services.clock, new=new)
        return answer

    return await change_event(ctx, event, change)


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
    revision: int | None = None,
) -> visibility.MatchView:
    """Picks refer to a team's position, so a picked team can be changed but not removed."""
    ctx.with_role(Role.EDITOR)
    event_id, _, match_id = match.partition(":")

    async def change(before: Event) -> visibility.MatchView:
        matches = await pickem_cache(ctx).card(before)
        old = validate_match(before, matches, match_id)
        _validate_upcoming(before)
        require_revision(visibility.show_match(before, old).revision, revision)
        new = replace(
            old,
            version=before.version + 1,
            name=old.name if name is None else rules.validate_name(name, "input", "name"),
            points=old.points if points is None else rules.validate_points(points),
            teams=old.teams if teams is None else rules.parse_teams(teams),
            championships=old.championships if championships is None else rules.validate_championships(championships),
            preshow=old.preshow if preshow is None else preshow,
        )
        after = before.changed(card=_preshow_first(before.card, {**matches, match_id: new}))
        answer = visibility.show_match(after, new)
        await event_store.change_card(ctx.table, before, after, ctx.unit, answer, ctx.services.clock, old, new)
        return answer

    return await change_event(ctx, event_id, change, "match")


async def remove_match(ctx: Context, /, *, match: MatchId) -> Event:
    """Take a match off the card. Picks of it no longer count."""
    ctx.with_role(Role.EDITOR)
    event_id, _, match_id = match.partition(":")

    async def change(before: Event) -> Event:
        matches = await pickem_cache(ctx).card(before)
        old = validate_match(before, matches, match_id)
        _validate_upcoming(before)
        after = before.changed(card=tuple(other for other in before.card if other != match_id))
        await event_store.change_card(ctx.table, before, after, ctx.unit, after, ctx.services.clock, old)
        return after

    return await change_event(ctx, event_id, change, "match")


async def reorder_matches(
    ctx: Context, /, *, event: EventId, matches: list[MatchId], revision: int | None = None
) -> Event:
    """Reorder a card. The new order names each match once; the pre-show stays first."""
    ctx.with_role(Role.EDITOR)
    keys = [key.partition(":") for key in matches]

    async def change(before: Event) -> Event:
        _validate_upcoming(before)
        require_revision(before.revision, revision)
        ids = [match for event_id, _, match in keys if event_id == before.id]
        if len(ids) != len(keys) or sorted(ids) != sorted(before.card):
            raise InvalidInput(
                f"Name each of the card's {len(before.card)} matches exactly once.", path=("input", "matches")
            )
        card = _preshow_first(tuple(ids), await pickem_cache(ctx).card(before))
        if card == before.card:
            await ctx.unit.store_receipt(ctx.table, before)
            return before
        after = before.changed(card=card)
        await event_store.change_card(ctx.table, before, after, ctx.unit, after, ctx.services.clock)
        return after

    return await change_event(ctx, event, change)


def _validate_upcoming(event: Event) -> None:
    if event.state is EventState.CANCELLED:
        raise Conflict("This event is cancelled; its card stays as it is.")
    if event.state is not EventState.UPCOMING:
        raise Locked


def validate_match(event: Event, matches: Mapping[str, Match], match: str) -> Match:
    if match not in event.card or match not in matches:
        raise NotFound(path=("input", "match"))
    return matches[match]


def _preshow_first(card: tuple[str, ...], matches: Mapping[str, Match]) -> tuple[str, ...]:
    return rules.preshow_first(card, (match.id for match in matches.values() if match.preshow))


# ── results ──
# How an event ended: the results of its matches, and the answer to its tie-break.


async def record_result(
    ctx: Context,
    /,
    *,
    match: MatchId,
    outcome: MatchOutcome,
    winner: int | None = None,
    revision: int | None = None,
) -> visibility.MatchView:
    """Record how a match ended. A later result corrects an earlier one; points follow when the event is scored."""
    ctx.with_role(Role.EDITOR)
    event_id, _, match_id = match.partition(":")

    async def change(before: Event) -> visibility.MatchView:
        ended = validate_match(before, await pickem_cache(ctx).card(before), match_id)
        _validate_locked(before, "Results are", "match")
        require_revision(visibility.show_match(before, ended).revision, revision)
        result = replace(rules.parse_result(ended, outcome, winner), version=before.version + 1)
        known = before.results.get(match_id)
        if known is not None and (known.outcome, known.winner) == (outcome, winner):
            answer = visibility.show_match(before, ended)
            await ctx.unit.store_receipt(ctx.table, answer)
            return answer
        results = {**before.results, match_id: result}
        after = before.changed(results=results, generation=before.generation + 1)
        answer = visibility.show_match(after, ended)
        kind = Kind.RESULT_RECORDED
        await event_store.change_event(ctx.table, before, after, ctx.unit, answer, kind=kind, about=ended)
        return answer

    return await change_event(ctx, event_id, change, "match")


async def record_tie_break(ctx: Context, /, *, event: EventId, answer: float) -> Event:
    """Record the answer. A later one corrects it; the order follows when the event is scored."""
    ctx.with_role(Role.EDITOR)
    thousandths = parse_number(answer, "answer")

    async def change(before: Event) -> Event:
        if before.tie_break is None:
            raise Conflict("This event asks for no number.", path=("input", "event"))
        _validate_locked(before, "The answer is", "event")
        if before.tie_break.thousandths == thousandths:
            await ctx.unit.store_receipt(ctx.table, before)
            return before
        answered = replace(before.tie_break, thousandths=thousandths)
        after = before.changed(tie_break=answered, generation=before.generation + 1)
        kind = Kind.TIE_BREAK_RECORDED
        return await event_store.change_event(ctx.table, before, after, ctx.unit, after, kind=kind)

    return await change_event(ctx, event, change)


def _validate_locked(event: Event, what: str, field: str) -> None:
    if event.state not in (EventState.LOCKED, EventState.SCORED):
        raise Conflict(
            f"This event is {event.state.value.lower()}. {what} recorded once it is locked.", path=("input", field)
        )
