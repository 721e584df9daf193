"""Comments: one function per field."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any

from datastore import comments as comments_store
from datastore.comments import Comment, CommentChange, CommentPage, Reports, Status, VersionConflict
from datastore.comments.planner import Filter
from datastore.dynamo import Page, Window, metered
from datastore.ids import is_ulid
from datastore.people import Profile
from datastore.refusals import Conflict, InvalidInput, NotAllowed, NotFound
from resolvers import people
from resolvers.comments.counts import Counts
from resolvers.comments.languages import language_tag
from resolvers.comments.rules import (
    LONGEST_REASON,
    parse_filter,
    product_id,
    validate_body,
    validate_rating,
    validate_text,
    validate_title,
)
from resolvers.context import UNSET, AnyId, BothWaysWindow, Context, NodeOf, Services, Unset
from resolvers.live.feed import Arrival
from resolvers.loading.batched import batched
from resolvers.loading.loader import Loader
from resolvers.node_ids import node_id, parse_node_key
from resolvers.viewer import Role, Viewer

CommentId = Annotated[str, NodeOf("Comment")]

ARRIVALS_AT_ONCE = 100
_ATTEMPTS = 100


# ── reading ──


async def comment(ctx: Context, /, *, id: CommentId) -> Comment | None:  # noqa: A002 - the argument's public name
    """A comment; one that is held is there for its author and for moderators only."""
    found = await _found(ctx, id, held=ctx.viewer.is_member)
    return found if found is not None and _may_see(ctx.viewer, found) else None


async def comments_page(
    ctx: Context,
    /,
    *,
    product: AnyId,
    window: BothWaysWindow,
    languages: list[str] | None = None,
    ratings: list[int] | None = None,
) -> CommentPage:
    """The page, and on request how it was read. A cursor of another filter is refused before anything is read."""
    wanted = parse_filter(product, languages, ratings)
    request = comments_store.page_request(wanted, window)
    census = await ctx.services.get(Counts).recent(wanted)
    if not ctx.explain:
        return await comments_store.page(ctx.table, wanted, census, request)
    began = time.perf_counter()
    with metered() as spent:
        page = await comments_store.page(ctx.table, wanted, census, request)
    milliseconds = round((time.perf_counter() - began) * 1000, 2)
    plan = _explained(wanted, page.report, units=spent.read_units, milliseconds=milliseconds)
    ctx.notes.setdefault("plan", []).append(plan)
    return page


def _explained(
    wanted: Filter, report: comments_store.ReadReport, *, units: float, milliseconds: float
) -> dict[str, Any]:
    return {
        "product": wanted.product,
        "languages": wanted.languages,
        "ratings": wanted.ratings,
        "considered": [
            {"path": plan.path, "queries": len(plan.readings), "cost": round(plan.cost, 2), "exact": plan.exact}
            for plan in report.considered
        ],
        "chosen": report.chosen.path,
        "queries": report.queries,
        "rounds": report.rounds,
        "itemsRead": report.read,
        "readUnits": units,
        "engineMilliseconds": milliseconds,
    }


@batched
async def authors(ctx: Context, shown: Sequence[Comment], /) -> list[Profile]:
    return await people.authors(ctx, [one.author for one in shown])


def viewer_can_edit(ctx: Context, one: Comment, /) -> bool:
    return _may_change(ctx.viewer, one)


def note(ctx: Context, one: Comment, /) -> str | None:
    """What a moderator noted; for the author and for moderators."""
    return one.note if _may_change(ctx.viewer, one) else None


async def report_reasons(ctx: Context, one: Comment, /) -> list[str] | None:
    """What members objected to; for moderators."""
    if not ctx.viewer.may(Role.MODERATOR):
        return None
    found = await ctx.services.get(reports_loader).load((one.product, one.ulid))
    return list(found.reasons.values()) if found is not None else []


def reports_loader(services: Services) -> Loader[tuple[str, str], Reports]:
    """What was reported about the comments of a page."""

    async def read(keys: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], Reports]:
        return await comments_store.reports(services.table, keys)

    loader: Loader[tuple[str, str], Reports] = Loader(read, fresh=True)
    return services.loaders.add("reports", loader)


async def moderation_queue(ctx: Context, /, *, window: Window, status: Status = Status.PENDING) -> Page[Comment]:
    """What waits for a moderator."""
    ctx.with_role(Role.MODERATOR)
    return await comments_store.queue(ctx.table, status, window)


async def comment_posted(ctx: Context, /, *, product: AnyId, after: str | None = None) -> AsyncGenerator[Comment]:
    """Comments as they become visible, from now on or from the event that the client saw last."""
    product = product_id(product, ("product",))
    start = await _event_mark(ctx, after or ctx.last_event, product) or ctx.new_id()

    async def look(past: str, up_to: str) -> tuple[list[Arrival[Comment]], str]:
        found, reached = await comments_store.arrivals(ctx.services.table, product, past, up_to, ARRIVALS_AT_ONCE)
        return [Arrival(position, one) for position, one in found], reached

    topic = ctx.services.live.arrivals(("comments", product), look, start, ctx.services.clock)
    async with aclosing(topic) as arrivals:
        async for arrival in arrivals:
            ctx.mark = arrival.mark
            yield arrival.record


async def _event_mark(ctx: Context, text: str | None, product: str) -> str | None:
    """The position in an event's id, or that of the comment which it brought."""
    if not text or is_ulid(text):
        return text or None
    try:
        key = parse_node_key("Comment", text)
    except InvalidInput:
        key = ""
    of, _, ulid = key.rpartition("#")
    if of != product or not is_ulid(ulid):
        message = "`after` is the id of an event of this stream, or of a comment that it brought."
        raise InvalidInput(message, path=("after",))
    brought = await _found(ctx, key)
    return brought.arrived or ulid if brought is not None else ulid


# ── writing ──


async def post_comment(
    ctx: Context, /, *, product: AnyId, language: str, rating: int, title: str | None = None, body: str
) -> Comment:
    """A new comment; with premoderation it waits for a moderator, unless one wrote it."""
    member = ctx.member()
    new = Comment(
        product=product_id(product, ("input", "product")),
        ulid=ctx.new_id(),
        language=language_tag(language, ("input", "language")),
        rating=validate_rating(rating, ("input", "rating")),
        body=validate_body(body),
        author=member.id,
        title=validate_title(title),
        held=Status.PENDING if _must_wait(ctx) else None,
    )
    await _bounded(ctx, "post")
    await comments_store.rewrite(ctx.table, ctx.once, new, CommentChange(None, new))
    ctx.services.get(Counts).written(None, new)
    return new


async def edit_comment(
    ctx: Context,
    /,
    *,
    comment: CommentId,
    language: str | None = None,
    rating: int | None = None,
    title: str | Unset | None = UNSET,
    body: str | None = None,
) -> Comment:
    """Changes what is given, and moves the counts with it. What was turned down waits for a moderator again."""
    member = ctx.member()
    changes: dict[str, Any] = {}
    if language is not None:
        changes["language"] = language_tag(language, ("input", "language"))
    if rating is not None:
        changes["rating"] = validate_rating(rating, ("input", "rating"))
    if title is not UNSET:
        changes["title"] = validate_title(title)
    if body is not None:
        changes["body"] = validate_body(body)
    await _bounded(ctx, "edit")

    def edited(old: Comment) -> Comment:
        if not _may_change(member, old):
            message = "Only its author or a moderator may edit a comment."
            raise NotAllowed(message, path=("input", "comment"))
        new = replace(old, **changes)
        if new == old:
            return old
        held = Status.PENDING if _must_wait(ctx) or old.held else None
        return _revised(new, edited_at=ctx.now(), held=old.held if member.may(Role.MODERATOR) else held)

    return await _changed(ctx, comment, edited)


async def delete_comment(ctx: Context, /, *, comment: CommentId) -> str:
    """The id of what is gone; what was gone before counts as deleted."""
    member = ctx.member()
    deleted = node_id("Comment", comment)
    for _ in range(_ATTEMPTS):
        old = await _found(ctx, comment)
        if old is None or not _may_see(member, old):
            await comments_store.remember(ctx.table, ctx.once, deleted)
            return deleted
        if not _may_change(member, old):
            message = "Only its author or a moderator may delete a comment."
            raise NotAllowed(message, path=("input", "comment"))
        try:
            await _carried_out(ctx, deleted, CommentChange(old, None))
        except VersionConflict:
            continue
        return deleted
    raise Conflict


async def report_comment(ctx: Context, /, *, comment: CommentId, reason: str) -> Comment:
    """Puts a comment before the moderators. It stays visible until they decide: reports alone silence nobody."""
    member = ctx.member()
    reason = validate_text(reason, "reason", LONGEST_REASON)
    await _bounded(ctx, "report")
    for _ in range(_ATTEMPTS):
        found = await _seen(ctx, comment)
        if found.held is not None:  # it is before the moderators already
            await comments_store.remember(ctx.table, ctx.once, found)
            return found
        try:
            await comments_store.report(ctx.table, ctx.once, found, member.id, reason)
        except VersionConflict:
            continue
        return found
    raise Conflict


async def moderate_comment(ctx: Context, /, *, comment: CommentId, status: Status, note: str | None = None) -> Comment:
    """A moderator's decision. It settles what was reported; what is published after waiting arrives at once."""
    ctx.with_role(Role.MODERATOR)
    if note is not None:
        note = validate_text(note, "note", LONGEST_REASON)

    def decided(old: Comment) -> Comment:
        held = None if status is Status.PUBLISHED else status
        arrived = ctx.new_id() if old.held and not held else old.arrived
        return _revised(old, held=held, arrived=arrived, note=old.note if note is None else note)

    return await _changed(ctx, comment, decided, settled=True)


async def _changed(ctx: Context, key: str, change: Callable[[Comment], Comment], *, settled: bool = False) -> Comment:
    """The comment after a change, made anew for as long as others change it in between."""
    for _ in range(_ATTEMPTS):
        old = await _seen(ctx, key)
        new = change(old)
        if new is old:
            await comments_store.remember(ctx.table, ctx.once, old)
            return old
        try:
            await _carried_out(ctx, new, CommentChange(old, new, settled))
        except VersionConflict:
            continue
        return new
    raise Conflict


async def _carried_out(ctx: Context, answer: Any, change: CommentChange) -> None:
    await comments_store.rewrite(ctx.table, ctx.once, answer, change)
    ctx.services.get(Counts).written(change.old, change.new)


def _revised(one: Comment, **changes: Any) -> Comment:
    return replace(one, revision=(one.revision or 0) + 1, **changes)


# ── who may what ──


def _may_change(viewer: Viewer, one: Comment) -> bool:
    return viewer.is_member and (viewer.id == one.author or viewer.may(Role.MODERATOR))


def _may_see(viewer: Viewer, one: Comment) -> bool:
    return one.held is None or _may_change(viewer, one)


def _must_wait(ctx: Context) -> bool:
    return ctx.services.policy.premoderation and not ctx.viewer.may(Role.MODERATOR)


async def _bounded(ctx: Context, what: str) -> None:
    if (limit := ctx.services.policy.comment_rate) is not None:
        await ctx.services.rates.hit(limit, f"comments:{what}", ctx.viewer.id)


async def _found(ctx: Context, key: str, *, held: bool = True) -> Comment | None:
    product, _, ulid = key.rpartition("#")
    if not is_ulid(ulid) or not product or "#" in product:
        return None
    return await comments_store.comment(ctx.table, product, ulid, held=held)


async def _seen(ctx: Context, key: str) -> Comment:
    found = await _found(ctx, key)
    if found is None or not _may_see(ctx.viewer, found):
        message = "There is no such comment, or it was deleted."
        raise NotFound(message, path=("input", "comment"))
    return found
