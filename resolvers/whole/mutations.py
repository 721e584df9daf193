"""Carrying out mutations: once for each idempotency key, and by members, whom the first one makes."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar, get_type_hints

import orjson

from datastore.changes.unit_of_work import LONGEST_KEY, AlreadyAnswered, UnitOfWork
from datastore.dynamo import BadKey, DynamoError, Rejected, StorageFailed, TooManyWaiting, key_text, unlimited
from datastore.refusals import InvalidInput, NotAllowed, Refusal, Unavailable
from resolvers.members.sessions import Sessions
from resolvers.members.suspensions import Suspensions
from resolvers.people.identities import Members, make_viewer
from resolvers.requests.context import Context

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Terms:
    """Who may send a mutation, and whose its receipt is."""

    while_suspended: bool = False
    """Whether suspended members may."""
    guests: bool | str = False
    """Whether guests may: always, or where the operator allows them this part."""
    receipt_of: Callable[[Context, Mapping[str, Any]], str] | None = None
    """Whose the receipt is, from the values; the viewer's without."""
    contributes: bool = True
    """Whether it may write something of a guest's, who then stays. What suspended members may do never does."""
    recent: bool = False
    """Whether a session must be of a sign-in of the last minutes, and not ended a moment ago by another process."""


FOR_MEMBERS = Terms()


async def run_mutation(
    ctx: Context,
    resolver: Callable[..., Awaitable[A]],
    values: Mapping[str, Any],
    given: Mapping[str, Any],
    key: str | None,
    terms: Terms,
) -> A:
    """The resolver's answer, or the stored one if a request with this idempotency key was carried out before.

    `given` is the input as the client sent it, `terms` those of the mutation. All failures of the table except
    faults of this program are refusals.
    """
    try:
        with unlimited():
            if ctx.viewer.proven is not None:
                await make_viewer(ctx)
                roles = ctx.services.get(Suspensions).roles_of(ctx.viewer.id)
                ctx.viewer = replace(ctx.viewer, roles=ctx.viewer.roles | roles)
            owner = ctx.viewer.id if terms.receipt_of is None else terms.receipt_of(ctx, values)
            ctx.unit = _begin_unit(ctx, owner, key, resolver.__name__, given)
            if ctx.viewer.is_member:
                await ctx.services.get(Suspensions).check(ctx, while_suspended=terms.while_suspended)
            if terms.recent:
                await ctx.services.get(Sessions).confirm(ctx.viewer)
                await ctx.services.get(Members).confirm(ctx.viewer)
            if ctx.viewer.is_guest and terms.contributes and not terms.while_suspended:
                await ctx.services.get(Members).keep_guest(ctx.viewer.id)
            return await _run_once(ctx, resolver, values)
    except BadKey as error:
        raise InvalidInput(str(error), path=("input",)) from error
    except Rejected:
        raise  # the engine takes no request of this form, so this program is at fault and a repeat would not help
    except DynamoError as error:
        ctx.table_failure = "OVERLOADED" if isinstance(error, TooManyWaiting) else "UNAVAILABLE"
        message = f"The table cannot be used: {error}." if isinstance(error, StorageFailed) else None
        raise Unavailable(message, retry_after=1.0) from error


def check_terms(ctx: Context, terms: Terms) -> None:
    """NotAllowed for a guest who may not do this, NotSignedIn for a session that is too old for it."""
    if terms.recent:
        ctx.require_recent_sign_in()
    if not ctx.viewer.is_guest or terms.guests is True or terms.guests in ctx.services.policy.guests:
        return
    raise NotAllowed("Sign in with an address to do this: guests may not.")


async def _run_once(ctx: Context, resolver: Callable[..., Awaitable[A]], values: Mapping[str, Any]) -> A:
    journal = ctx.services.journal
    learning = () if journal.is_current else (journal.learn(ctx.table),)
    if ctx.unit.key is not None or learning:
        stored: A | None
        stored, *_ = await asyncio.gather(_stored_answer(ctx, resolver), *learning)
        if stored is not None:
            return stored
    try:
        return await resolver(ctx, **values)
    except (AlreadyAnswered, Refusal) as refused:
        # An earlier attempt may have been applied since the first look for its receipt, and be why this one is refused.
        stored = await _stored_answer(ctx, resolver)
        if stored is not None:
            return stored
        if isinstance(refused, Refusal):
            raise
        raise Unavailable(retry_after=1.0) from None


async def _stored_answer(ctx: Context, resolver: Callable[..., Awaitable[A]]) -> A | None:
    stored: A | None = await ctx.unit.answer(ctx.table, _answer_type(resolver))
    return stored


@cache
def _answer_type(resolver: Callable[..., Any]) -> Any:
    return get_type_hints(resolver)["return"]


def _begin_unit(ctx: Context, owner: str, key: str | None, name: str, given: Mapping[str, Any]) -> UnitOfWork:
    services = ctx.services
    if key is None:
        return UnitOfWork(owner, None, "", ctx.now(), services.journal, ctx.viewer.node)
    try:
        key_text(key)
    except BadKey:
        key = ""
    if not 1 <= len(key) <= LONGEST_KEY:
        raise InvalidInput(
            f"An idempotencyKey has 1 to {LONGEST_KEY} characters, none of them '#' or a control character.",
            path=("input", "idempotencyKey"),
        )
    # Receipts hold this hash for days: a change of the names or of their order refuses their repeats.
    text = orjson.dumps([name, dict(sorted(given.items()))])
    digest = hashlib.sha256(text).hexdigest()
    return UnitOfWork(owner, key, digest, ctx.now(), services.journal, ctx.viewer.node)
