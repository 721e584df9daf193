"""One decision about many comments: each is decided by itself, so one that cannot be decided leaves the others alone.

With an idempotency key each decision has a receipt of its own, besides that of the whole. So a repeat after an
interruption decides only what was left.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from datastore.changes.occurrences import Ground
from datastore.changes.unit_of_work import AlreadyAnswered
from datastore.comments.changes import Decision, Decisions, RefusedDecision
from datastore.comments.records import Status
from datastore.dynamo import gather_or_cancel
from datastore.refusals import InvalidInput, Refusal
from resolvers.comments.writing import decide, validate_note
from resolvers.requests.context import AnyId, Context, Role
from resolvers.values.node_ids import parse_node_key

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
) -> Decisions:
    """A moderator's decision about each of these comments."""
    ctx.with_role(Role.MODERATOR)
    ids = list(dict.fromkeys(comments))
    if not 1 <= len(ids) <= MOST_DECIDED:
        raise InvalidInput(f"Name 1 to {MOST_DECIDED} comments.", path=("input", "comments"))
    decision = Decision(ground, validate_note(note))
    outcomes = await gather_or_cancel((_decide_one(ctx, id_, status, decision) for id_ in ids), _AT_ONCE)
    decided = tuple(outcome for outcome in outcomes if isinstance(outcome, str))
    refused = tuple(outcome for outcome in outcomes if isinstance(outcome, RefusedDecision))
    decisions = Decisions(decided, refused)
    await ctx.unit.store_receipt(ctx.table, decisions)
    return decisions


async def _decide_one(ctx: Context, id_: str, status: Status, decision: Decision) -> str | RefusedDecision:
    """The comment's key, or why it was not decided."""
    try:
        key = parse_node_key("Comment", id_)
        await decide(_with_own_receipt(ctx, key), key, status, decision)
    except AlreadyAnswered:  # a request that was interrupted decided it
        return key
    except Refusal as refusal:
        return RefusedDecision(id_, refusal.code, refusal.message)
    return key


def _with_own_receipt(ctx: Context, key: str) -> Context:
    """The request for one of its comments."""
    if ctx.unit.key is None:
        return ctx
    own = copy(ctx)
    own.unit = replace(ctx.unit, key=f"{ctx.unit.key} {key.rpartition('#')[2]}")
    return own
