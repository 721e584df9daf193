"""Signing in: the member whom a proof names, who may have been a guest or a visitor.

An address that nobody has signed in by makes a member. From a guest's session it is added to the guest, who keeps what
they wrote, and whose earlier sessions end; if it is another member's, it signs in as that member, and what the guest
wrote stays the guest's.
"""

import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import structlog

from datastore.changes.unit_of_work import UnitOfWork
from datastore.members import sessions as session_store
from datastore.members import sign_in_codes as code_store
from datastore.members.sessions import LONGEST, Session, SessionKey
from datastore.members.sign_in_codes import ProofWrite
from datastore.people import identities as identity_store
from datastore.people import profiles as profile_store
from datastore.people.identities import Identity, IdentityKey, MemberErased, Proven, SignInMethod, of_address
from datastore.people.profiles import Profile
from datastore.refusals import InvalidInput, NotAllowed, Refusal
from resolvers.live.background import unless_failed
from resolvers.members import signing_in
from resolvers.members.sessions import Sessions
from resolvers.members.sign_in_codes import SignInCodes
from resolvers.members.signing_in import Proof, SignedIn
from resolvers.members.suspensions import Suspensions
from resolvers.people.challenges import require_solution
from resolvers.people.confirmations import has_bounced
from resolvers.people.identities import Members
from resolvers.people.profile import parse_display_name
from resolvers.requests.address_limits import AddressLimits
from resolvers.requests.context import AnyId, Context, Kind, Services, Viewer
from resolvers.vocabulary.subscriptions import claim_address
from resolvers.voting.continuing import continue_walks, visitor_of

_log = structlog.get_logger("ringside.sign_in")
# What follows a sign-in may fail without it: the session has begun, and its proof is used up.
_NOT_CLAIMED: Final = "an address's subscriptions were not claimed"
GUEST_KEY_LENGTH: Final = 22
"""Letters of an idempotency key of a guest's sign-in: 128 random bits. Whoever knows it gets what its receipt holds."""


# ── mutations ──


async def sign_in(
    ctx: Context,
    /,
    *,
    request: AnyId | None = None,
    code: str | None = None,
    token: str | None = None,
    visit: str | None = None,
) -> SignedIn:
    """Begin a session for whoever has a code, a link, or the code of a page."""
    signing_in.session_origin(ctx)  # refused before anything is used up
    visitor = _visitor(ctx, visit)
    proof = await signing_in.prove(ctx, request, code, token)
    try:
        member = await _member(ctx, proof)
    except MemberErased:
        raise MemberErased(path=("input",)) from None  # the other reason to be NOT_ALLOWED is the page, not the input
    signed_in = await signing_in.begin(ctx, member, proof)
    await go_on(ctx.services, visitor, signed_in.user.user)
    if proof.email is not None:
        await unless_failed(claim_address(ctx.services, signed_in.user.user, proof.email), _NOT_CLAIMED, _log, Refusal)
    return signed_in


async def sign_in_as_guest(
    ctx: Context, /, *, name: str, visit: str | None = None, solution: str | None = None
) -> SignedIn:
    """Begin a session of a new guest."""
    if SignInMethod.GUEST.value not in ctx.services.policy.sign_in_methods:
        raise NotAllowed("Nobody signs in as a guest here.")
    if ctx.viewer.is_signed_in:
        raise NotAllowed("You are signed in already: sign out first.")
    if ctx.unit.key is not None and len(ctx.unit.key) < GUEST_KEY_LENGTH:
        raise InvalidInput(
            f"The idempotencyKey of a guest has {GUEST_KEY_LENGTH} random letters or more, since nothing else keeps "
            "others from its answer.",
            path=("input", "idempotencyKey"),
        )
    signing_in.session_origin(ctx)
    visitor = _visitor(ctx, visit)
    user = ctx.new_id()
    guest = Profile(user, parse_display_name(name, user), ctx.now(), expires=ctx.now() + LONGEST)
    if "guests" in ctx.services.policy.challenge:
        await require_solution(ctx, solution)
    await ctx.services.get(AddressLimits).admit_guest(ctx)
    shown = Proven(SignInMethod.GUEST, "", secrets.token_hex(16), "Guest")
    await identity_store.make_member(ctx.table, shown, guest, ctx.services.unit(), used=True)
    ctx.services.activity["new_members"] += 1
    signed_in = await signing_in.begin(ctx, await _read(ctx.services, user), Proof(SignInMethod.GUEST))
    await go_on(ctx.services, visitor, user)
    return signed_in


async def add_identity(ctx: Context, /, *, request: AnyId, code: str) -> Profile:
    """Let the viewer sign in by the address that a code was sent to, too."""
    member = ctx.member()
    require_may_add(ctx)
    asked = await ctx.services.get(SignInCodes).check(ctx, request, code)
    used_up = code_store.use_code(asked.id, ctx.now())
    added = await _add(ctx.services, member, of_address(asked.email), ctx.unit, used_up)
    if member.is_guest and member.session is not None:
        await _end_sessions(ctx.services, member.id, but=member.session.key)
    return added


async def remove_identity(ctx: Context, /, *, method: SignInMethod, label: str) -> Profile:
    """Remove an identity, by which the viewer signs in no more; never the only one by which they can, as things are."""
    member, table, services = ctx.member(), ctx.table, ctx.services

    def signs_in(identity: Identity) -> bool:
        if identity.method is SignInMethod.EMAIL:
            return services.get(SignInCodes).can_send
        return (identity.method.value, identity.issuer) in services.policy.token_issuers

    profile = await profile_store.read_profile(table, member.id)
    changed = await identity_store.remove_identity(table, member.id, method, label, ctx.unit, signs_in)
    services.get(Members).forget(map(IdentityKey.parse, () if profile is None else profile.identities))
    services.profiles.forget(member.id)
    return services.with_name(changed)


def require_may_add(ctx: Context) -> None:
    """NotSignedIn if the session is old; of somebody with roles, NotAllowed unless they might give roles (`set_roles`).

    Who adds an address signs in by it: an old session would become a recent one, which may erase the member. A token
    for another site's pages acts as a member's: with it, its finder would have all their roles for good.
    """
    ctx.require_recent_sign_in()
    member = ctx.viewer
    if not ctx.services.get(Suspensions).roles_of(member.id):
        return
    if member.session is None or member.session.origin is not None:
        raise NotAllowed("Who has roles here adds an address only signed in on this service's own page, /sign-in.")


def guest_receipt_owner(_: Context, __: Mapping[str, Any]) -> str:
    """Nobody's: a guest is nobody before they have signed in."""
    return "signin-guest"


# ── visitors ──


def _visitor(ctx: Context, visit: str | None) -> str | None:
    """The visitor whom the person was until now: of a visit that the page gives, or the one who asks."""
    if visit is not None:
        return visitor_of(ctx, visit)
    return ctx.viewer.id if ctx.viewer.kind is Kind.VISITOR else None


async def go_on(services: Services, visitor: str | None, member: str) -> None:
    """Let the member go on with what they began as a visitor."""
    if visitor is not None:
        walks = continue_walks(services, visitor, member)
        await unless_failed(walks, "a visitor's walk was not continued", _log, Refusal)


# ── by the provider ──


async def sign_in_by_provider(
    services: Services, named: Viewer, visitor: str | None, at: datetime | None
) -> tuple[Session, str]:
    """A session on the service's own pages for the member who signed in at the provider, and its token.

    An address that the provider has verified is the member's, unless they have given another one, or it has bounced.
    """
    assert named.proven is not None  # noqa: S101 - what the ID token says
    user = await services.get(Members).make(named.proven, name=named.name, email=named.email)
    member, verified = await _read(services, user), named.verified_email
    if verified is not None and member.email in (None, verified) and not has_bounced(services.seal, member, verified):
        member = await _with_address(services, member, verified)
    begun = await signing_in.begin_for_page(services, member, SignInMethod.PROVIDER, at)
    await go_on(services, visitor, member.user)
    if verified is not None:
        claiming = claim_address(services, member.user, verified)
        await unless_failed(claiming, _NOT_CLAIMED, _log, Refusal)
    return begun


async def add_provider(
    services: Services, named: Viewer, member: Viewer, at: datetime | None
) -> tuple[Session, str] | None:
    """Let a member sign in as whom the provider names, too; Conflict if that is another member.

    A guest gets a session of their sign-in: processes know for some time that the present one is a guest's.
    """
    assert named.proven is not None  # noqa: S101 - what the ID token says
    unit = services.unit(f"User:{member.id}")
    added = await _add(services, member, named.proven, unit)
    if not member.is_guest:
        return None
    await _end_sessions(services, member.id)
    return await signing_in.begin_for_page(services, added, SignInMethod.PROVIDER, at)


# ── members ──


async def _member(ctx: Context, proof: Proof) -> Profile:
    """The member whom a proof names. MemberErased if they were erased."""
    services = ctx.services
    if proof.email is None:
        return await _read(services, proof.user or "")
    shown = of_address(proof.email)
    members = services.get(Members)
    if ctx.viewer.is_guest and await members.known(shown, 0) is None:
        added = await _add(services, ctx.viewer, shown, services.unit(f"User:{ctx.viewer.id}"))
        await _end_sessions(services, added.user)
        return added
    return await _with_address(services, await _read(services, await members.make(shown)), proof.email)


async def _add(services: Services, member: Viewer, shown: Proven, unit: UnitOfWork, *proofs: ProofWrite) -> Profile:
    """The member, who signs in by one thing more and is no guest any longer.

    A guest's other sessions end with that, so that nobody who kept one is the member, even if something fails later.
    NotSignedIn if their session was ended, or their token's identity removed, of which this process has yet to hear.
    """
    table, key = services.table, None if member.session is None else member.session.key
    by = None if key is None else session_store.going_on(key).write
    earlier, ends = await session_store.ending(table, member.id, but=key) if member.is_guest else ([], [])
    writes = [each.write for each in (*proofs, *ends)]
    try:
        changed = await identity_store.add_identity(
            table, member.id, shown, unit, *writes, by=by, bearer=member.identity
        )
    finally:
        services.get(Sessions).ended(earlier if key is None else [key, *earlier])  # read anew
    services.get(Members).forget(map(IdentityKey.parse, changed.identities))
    services.profiles.put(changed.user, services.with_name(changed))
    return services.with_name(changed)


async def _end_sessions(services: Services, user: str, *, but: SessionKey | None = None) -> None:
    """End what is left of the sessions that a member had as a guest: one that has begun meanwhile, say."""
    ended = await session_store.end_sessions(services.table, user, but=but)
    services.get(Sessions).ended(ended)


async def _with_address(services: Services, member: Profile, email: str) -> Profile:
    """The member, whose address is the one that was just confirmed, unless they have confirmed another one."""
    if member.proven_email is not None:
        return member
    changed = await profile_store.set_email(services.table, member.user, email, services.unit(f"User:{member.user}"))
    if changed is None:
        raise MemberErased
    services.profiles.put(member.user, services.with_name(changed))
    return services.with_name(changed)


async def _read(services: Services, user: str) -> Profile:
    profile = await profile_store.read_profile(services.table, user)
    if profile is None:
        raise MemberErased
    named = services.with_name(profile)
    services.profiles.put(user, named)  # plain reads may be behind, and show no such member
    return named
