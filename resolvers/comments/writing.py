"""Posting, editing, deleting and answering comments, and moderating them: the queue, members' reports, and decisions.

Each change is stored together with the counts that it moves.
"""

from collections.abc import Awaitable, Callable
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Final

from datastore.changes.occurrences import Ground
from datastore.changes.unit_of_work import AlreadyAnswered, UnitOfWork
from datastore.comments import changes as comment_store
from datastore.comments.changes import CommentChange, Decision, Decisions, RefusedDecision
from datastore.comments.hold_rules import has_published
from datastore.comments.pages import read_comment
from datastore.comments.records import Answer, ChangedComment, Comment, Pointer, Status
from datastore.comments.reviews import find_review, is_review
from datastore.comments.verified import ShownProof
from datastore.dynamo import Window, gather_or_cancel, optimistic
from datastore.refusals import Conflict, InvalidInput, NotAllowed, NotFound, Refusal, require_revision
from resolvers.comments import rules, visibility
from resolvers.comments.counts import CountsCache, LeaderSettler
from resolvers.comments.holding import hold_for, turn_of_author
from resolvers.comments.notices import notice_of
from resolvers.comments.proofs import examine, refused, require_unused
from resolvers.people.challenges import Challenge, new_challenge, require_solution
from resolvers.requests.context import UNSET, AnyId, Context, Role, Services, Unset, parse_given
from resolvers.values.languages import parse_language
from resolvers.values.node_ids import node_id, parse_node_key

# ── posting, editing, deleting ──


async def post_comment(  # noqa: PLR0913 - the fields of its input
    ctx: Context,
    /,
    *,
    product: AnyId,
    language: str,
    rating: int | None = None,
    title: str | None = None,
    body: str,
    in_reply_to: visibility.CommentId | None = None,
    solution: str | None = None,
    proof: str | None = None,
) -> ChangedComment:
    """A new comment, or a reply. With premoderation it waits for a moderator, unless a moderator wrote it."""
    member = ctx.member()
    ctx.services.profiles.prefetch(member.id)  # the answer shows the author
    posted = Comment(
        product=rules.validate_product(product, ("input", "product")),
        ulid=ctx.new_id(),
        language=parse_language(language, ("input", "language")),
        rating=None if rating is None else rules.validate_rating(rating, _RATING),
        body=rules.validate_body(body),
        author=member.id,
        title=rules.validate_title(title),
        held=Status.PENDING if _needs_moderation(ctx) else None,
    )
    if in_reply_to is not None:
        _refuse_rated_reply(rating)
    await check_rate(ctx, "post")
    posted, shown = await _with_proof(ctx, posted, proof, is_reply=in_reply_to is not None)
    await require_challenge(ctx, solution)
    async with await turn_of_author(ctx):
        posted = await _held_if_asked(ctx, posted)
        if in_reply_to is not None:
            posted = await _post_reply(ctx, posted, in_reply_to)
        else:
            await _post(ctx, posted, shown)
    ctx.services.activity["comments"] += 1
    return ChangedComment.to(posted)


async def _with_proof(
    ctx: Context, posted: Comment, proof: str | None, *, is_reply: bool
) -> tuple[Comment, ShownProof | None]:
    if proof is None:
        return posted, None
    if is_reply:
        raise refused("A reply needs no proof: leave `proof` out.")
    shown = await examine(ctx, proof, posted.product, posted.ulid)
    return replace(posted, verified_at=ctx.now(), proof=shown.digest), shown


async def _post(ctx: Context, posted: Comment, proof: ShownProof | None) -> None:
    """Another attempt, if it needs the place of a review or a proof, looks again who has it."""

    async def post(_: None) -> None:
        if proof is not None:
            await require_unused(ctx, proof)
        await store_change(ctx.services, ctx.unit, CommentChange(None, posted, proof=proof))

    await optimistic(_nothing, post, idempotent=True)


async def _nothing() -> None:
    """A new comment has nothing to be read first."""


async def _held_if_asked(ctx: Context, comment: Comment) -> Comment:
    """The comment, held by the rule that asks for it, if there is one."""
    rule = None if comment.held else await hold_for(ctx, comment)
    return comment if rule is None else replace(comment, held=Status.PENDING, held_by=rule)


async def _post_reply(ctx: Context, posted: Comment, key: str) -> Comment:
    """A reply in the thread of the comment that it answers, or in which that stands itself."""

    async def post(answered: Comment) -> Comment:
        if answered.product != posted.product:
            raise InvalidInput("The answered comment is on another product.", path=_ANSWERED)
        if answered.held is not None:
            raise Conflict("The comment is not public, so it cannot be answered.", path=_ANSWERED)
        reply = replace(posted, reply_to=answered.ulid, root=answered.root or answered.ulid)
        await store_change(ctx.services, ctx.unit, CommentChange(None, reply), answered)
        return reply

    return await optimistic(lambda: visibility.load_visible_comment(ctx, key, "inReplyTo"), post)


_RATING = ("input", "rating")
_ANSWERED = ("input", "inReplyTo")


def _refuse_rated_reply(rating: int | None) -> None:
    if rating is not None:
        raise InvalidInput("A reply has no rating: leave `rating` out.", path=_RATING)


async def edit_comment(
    ctx: Context,
    /,
    *,
    comment: visibility.CommentId,
    language: str | None = None,
    rating: int | Unset | None = UNSET,
    title: str | Unset | None = UNSET,
    body: str | None = None,
) -> ChangedComment:
    """Change the given fields. A rejected comment waits for a moderator again."""
    viewer = ctx.signed_in()
    if viewer.is_member:
        ctx.services.profiles.prefetch(viewer.id)
    changes = _parse_changes(language, rating, title, body)
    await check_rate(ctx, "edit")

    async def edited(old: Comment) -> Comment:
        if not visibility.may_change(viewer, old):
            raise NotAllowed("Only its author or a moderator may edit a comment.", path=("input", "comment"))
        new = replace(old, **changes)
        if old.root is not None:
            _refuse_rated_reply(new.rating)
        if new == old:
            return old
        if not viewer.may(Role.MODERATOR):
            new = replace(new, held=Status.PENDING if _needs_moderation(ctx) or old.held else None)
            new = await _held_if_asked(ctx, new)
        return revised(new, edited_at=ctx.now(), note=note_after(old, new.held))

    return await change_comment(ctx, comment, edited)


def _parse_changes(
    language: str | None, rating: int | Unset | None, title: str | Unset | None, body: str | None
) -> dict[str, Any]:
    return parse_given(
        language=(UNSET if language is None else language, lambda tag: parse_language(tag, ("input", "language"))),
        rating=(rating, lambda number: rules.validate_rating(number, _RATING)),
        title=(title, rules.validate_title),
        body=(UNSET if body is None else body, rules.validate_body),
    )


async def delete_comment(ctx: Context, /, *, comment: visibility.CommentId) -> str:
    """The id of the deleted comment, even if it was deleted before."""
    viewer = ctx.signed_in()
    ctx.count_change("deletions of comments")
    deleted_id = node_id("Comment", comment)

    async def delete(old: Comment | None) -> str:
        if old is not None and not visibility.may_see(viewer, old):
            raise NotFound(visibility.NO_SUCH_COMMENT, path=("input", "comment"))
        if old is None or old.removed:
            await ctx.unit.store_receipt(ctx.table, deleted_id)
            return deleted_id
        if not visibility.may_change(viewer, old):
            raise NotAllowed("Only its author or a moderator may delete a comment.", path=("input", "comment"))
        await store_change(ctx.services, ctx.unit, CommentChange(old, None))
        return deleted_id

    return await optimistic(lambda: visibility.load_comment(ctx, comment), delete, idempotent=True)


async def change_comment(
    ctx: Context, key: str, change: Callable[[Comment], Awaitable[Comment]], *, decision: Decision | None = None
) -> ChangedComment:
    """The comment after a change, which is made again from the current comment when another change comes first."""

    async def store(old: Comment) -> ChangedComment:
        new = await change(old)
        if new is old:
            await ctx.unit.store_receipt(ctx.table, ChangedComment.as_stored(old))
        else:
            await store_change(ctx.services, ctx.unit, CommentChange(old, new, decision))
        return ChangedComment.to(new)

    return await optimistic(lambda: visibility.load_visible_comment(ctx, key), store)


def note_after(old: Comment, held: Status | None) -> str | None:
    """The note of an earlier decision, which goes when a held comment is published or a published one held."""
    return old.note if bool(old.held) is bool(held) else None


def revised(comment: Comment, **changes: Any) -> Comment:
    return replace(comment, revision=(comment.revision or 0) + 1, **changes)


async def store_change(
    services: Services, unit: UnitOfWork, change: CommentChange, answered: Comment | None = None
) -> None:
    """Store a change of a comment, and tell what this process remembers of its product.

    It may raise ConditionFailed or Stale. What a new reply answers is given by whoever has read it.
    """
    change = await with_place(services, change)
    change = replace(change, notice=await notice_of(services, change, answered))
    await comment_store.change_comment(services.table, unit, _receipt_of(change), change)
    services.get(CountsCache).comment_changed(change)
    services.get(LeaderSettler).comment_changed(change)


def _receipt_of(change: CommentChange) -> ChangedComment | str | None:
    """What a mutation that makes this change answers."""
    if change.new is not None:
        return ChangedComment.as_stored(change.new)
    return None if change.old is None else node_id("Comment", change.old.node_key)


async def change_at(
    services: Services, pointer: Pointer, unit: UnitOfWork, change: Callable[[Comment], CommentChange | None]
) -> bool:
    """Change the comment that a pointer leads to, if it is there and `change` makes one; whether this call did it."""

    async def store(old: Comment | None) -> bool:
        wanted = None if old is None or old.removed else change(old)
        if wanted is not None:
            await store_change(services, unit, wanted)
        return wanted is not None

    read = partial(read_comment, services.table, pointer.product, pointer.ulid)
    return await optimistic(read, store, idempotent=True)


RATE_OF_GUESTS: Final = "10/minute"


async def check_rate(ctx: Context, action: str) -> None:
    """RateLimited if the viewer did this too often."""
    if ctx.viewer.is_guest:
        ctx.services.rates.hit(RATE_OF_GUESTS, f"guests:{action}", ctx.viewer.id)
    if (limit := ctx.services.policy.comment_rate) is not None:
        ctx.services.rates.hit(limit, f"comments:{action}", ctx.viewer.id)


def _needs_moderation(ctx: Context) -> bool:
    return ctx.services.policy.premoderation and not ctx.viewer.may(Role.MODERATOR)


# ── the site's answer ──


async def answer_comment(
    ctx: Context, /, *, comment: visibility.CommentId, body: str, revision: int | None = None
) -> ChangedComment:
    """Answer a comment in the site's name. A second answer replaces the first, an empty one removes it."""
    editor = ctx.with_role(Role.EDITOR)
    author = editor.id if editor.is_member else None
    answer = Answer(rules.validate_body(body), ctx.now(), author) if body else None

    async def answered(old: Comment) -> Comment:
        require_revision(old.revision or 0, revision)
        return old if answer is old.answer else revised(old, answer=answer)

    return await change_comment(ctx, comment, answered)


# ── the moderators' queue ──


async def moderation_queue(
    ctx: Context, /, *, window: Window, status: Status = Status.PENDING
) -> visibility.ModerationPage:
    """Comments that need a decision, oldest first."""
    return await visibility.read_for_moderators(
        ctx, status, lambda: comment_store.read_queue(ctx.table, status, window)
    )


# ── reports and decisions ──


async def report_comment(ctx: Context, /, *, comment: visibility.CommentId, reason: str) -> ChangedComment:
    """Report a comment to the moderators. It stays visible until they decide: no report hides a comment by itself."""
    member = ctx.member()
    reason = rules.validate_text(reason, "reason", rules.LONGEST_REASON)
    await check_rate(ctx, "report")

    async def report(reported: Comment) -> ChangedComment:
        if reported.held is None:
            await comment_store.report_comment(ctx.table, ctx.unit, reported, member.id, reason)
        else:  # it needs a moderator's decision already
            await ctx.unit.store_receipt(ctx.table, ChangedComment.as_stored(reported))
        return ChangedComment.to(reported)

    return await optimistic(lambda: visibility.load_visible_comment(ctx, comment), report)


async def moderate_comment(
    ctx: Context,
    /,
    *,
    comment: visibility.CommentId,
    status: Status,
    note: str | None = None,
    ground: Ground | None = None,
    revision: int | None = None,
) -> ChangedComment:
    """A moderator's decision. It clears the comment's reports; a held comment that is published arrives now."""
    ctx.with_role(Role.MODERATOR)
    return await decide(ctx, comment, status, Decision(ground, validate_note(note)), revision)


def validate_note(note: str | None) -> str | None:
    return None if note is None else rules.validate_text(note, "note", rules.LONGEST_REASON)


async def decide(ctx: Context, key: str, status: Status, decision: Decision, seen: int | None) -> ChangedComment:
    """The comment of a key after a decision about it, as it was seen."""

    async def decided(old: Comment) -> Comment:
        require_revision(old.revision or 0, seen)
        held = None if status is Status.PUBLISHED else status
        arrived = ctx.new_id() if old.held and not held else old.arrived
        taken_back = old.held is Status.REJECTED and held is Status.PENDING
        note = decision.note or (None if taken_back else note_after(old, held))
        held_by = old.held_by if held else None
        return revised(old, held=held, arrived=arrived, note=note, held_by=held_by)

    return await change_comment(ctx, key, decided, decision=decision)


# ── many decisions ──
# One decision about many comments: each is decided by itself, so one that cannot be decided leaves the others alone.
#
# With an idempotency key each decision has a receipt of its own, besides that of the whole. So a repeat after an
# interruption decides only what was left. They are named by the input too: if another input comes with the key of a
# request that was interrupted, what that one decided is not taken for decided so.

MOST_DECIDED = 100
_AT_ONCE = 8
"""They may be of one product or one thread, whose changes wait for each other."""


async def moderate_comments(
    ctx: Context,
    /,
    *,
    comments: list[AnyId],
    status: Status,
    note: str | None = None,
    ground: Ground | None = None,
    revisions: list[int] | None = None,
) -> Decisions:
    """A moderator's decision about each of these comments."""
    ctx.with_role(Role.MODERATOR)
    ids = list(dict.fromkeys(comments))
    if not 1 <= len(ids) <= MOST_DECIDED:
        raise InvalidInput(f"Name 1 to {MOST_DECIDED} comments.", path=("input", "comments"))
    if revisions is not None and len(revisions) != len(comments):
        raise InvalidInput("Name a revision of each comment, or none.", path=("input", "revisions"))
    seen, decision = dict(zip(comments, revisions or (), strict=False)), Decision(ground, validate_note(note))
    outcomes = await gather_or_cancel((_decide_one(ctx, id_, status, decision, seen.get(id_)) for id_ in ids), _AT_ONCE)
    decided = tuple(outcome for outcome in outcomes if isinstance(outcome, str))
    refused = tuple(outcome for outcome in outcomes if isinstance(outcome, RefusedDecision))
    decisions = Decisions(decided, refused)
    await ctx.unit.store_receipt(ctx.table, decisions)
    return decisions


async def _decide_one(
    ctx: Context, id_: str, status: Status, decision: Decision, seen: int | None
) -> str | RefusedDecision:
    """The comment's key, or why it was not decided."""
    own, key = ctx, ""
    try:
        key = parse_node_key("Comment", id_)
        own = _with_own_receipt(ctx, key)
        await decide(own, key, status, decision, seen)
    except AlreadyAnswered:  # a request that was interrupted decided it
        return key
    except Refusal as refusal:
        if own is ctx or await own.unit.answer(ctx.table, ChangedComment) is None:
            return RefusedDecision(id_, refusal.code, refusal.message)
    return key


def _with_own_receipt(ctx: Context, key: str) -> Context:
    """The request for one of its comments."""
    if ctx.unit.key is None:
        return ctx
    own = copy(ctx)
    own.unit = replace(ctx.unit, key=f"{ctx.unit.key} {ctx.unit.input_hash} {key.rpartition('#')[2]}")
    return own


# ── challenges ──
# Who has to solve a challenge before they comment: guests, and members until one of their comments is published.


async def challenge(ctx: Context, /) -> Challenge | None:
    """A new challenge for what the viewer may want to do; None if nothing is asked of them."""
    return new_challenge(ctx) if await _is_asked(ctx) else None


async def require_challenge(ctx: Context, solution: str | None) -> None:
    """ChallengeNeeded if a comment of the viewer needs a solution and this is none."""
    if await _is_asked(ctx):
        await require_solution(ctx, solution)


async def _is_asked(ctx: Context) -> bool:
    asked, viewer = ctx.services.policy.challenge, ctx.viewer
    if not asked or viewer.may(Role.MODERATOR) or viewer.may(Role.EDITOR):
        return False
    if "guests" in asked and (viewer.is_guest or not viewer.is_signed_in):
        return True
    if "first" not in asked or not viewer.is_member:
        return False
    return viewer.proven is not None or not await has_published(ctx.table, viewer.id)


# ── reviews ──
# One rated comment of each member on a product, where RINGSIDE_ONE_REVIEW_PER_PRODUCT asks for it.


async def with_place(services: Services, change: CommentChange) -> CommentChange:
    """The change, by which the comment takes or frees its author's place; Conflict if another comment has it.

    A comment that becomes another member's, who has one already, comes without its rating instead.
    """
    old, new = change.old, change.new
    if new is None:
        return change
    taken_over = old is not None and old.author != new.author
    if old is not None and old.placed and is_review(new) and not taken_over:
        return change
    takes = services.policy.one_review and is_review(new) and (taken_over or not is_review(old))
    if takes and (existing := await find_review(services.table, new)) is not None:
        if taken_over:
            return replace(change, new=replace(new, rating=None, placed=None))
        message = "There is a rated comment of the same member on this product already. Edit that one instead."
        path = ("input", "product" if old is None else "comment")
        raise Conflict(message, path=path, existing=node_id("Comment", existing.node_key))
    placed = True if takes else None
    return change if new.placed is placed else replace(change, new=replace(new, placed=placed))
