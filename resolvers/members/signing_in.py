"""Signing in: what proves who somebody is, and the session that begins then.

| proof                                    | who it is                                                              |
|------------------------------------------|------------------------------------------------------------------------|
| `request` and `code`, or an email's link | the member with this address; they are made if there is none           |
| a name                                   | a new guest                                                            |
| the code in `/sign-in/done`'s fragment   | the member who pressed the button there, on pages of that origin alone |

Each proof counts once: it is used up in the transaction that begins the session. A session is new at every sign-in, so
nobody can prepare one for somebody else. Where it lives depends on who asks: a page of the service's own origin gets a
cookie and no token; a page of another origin gets a token that counts there alone; a program gets one without an
origin. Receipts hold no token, so a repeat answers the member alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from datastore.members import sessions as session_store
from datastore.members import sign_in_codes as code_store
from datastore.members.sessions import Session
from datastore.members.sign_in_codes import CodeExpired, CodeSpent, CodeUnknown, ProofWrite
from datastore.people.identities import SignInMethod
from datastore.people.profiles import Profile
from datastore.refusals import InvalidInput, NotAllowed
from datastore.values.seal import Forged, Seal
from resolvers.members.sessions import Sessions
from resolvers.members.sign_in_codes import SignInCodes, count_try
from resolvers.people.confirmations import email_hash
from resolvers.people.visibility import ShownProfile, show_changed
from resolvers.requests.context import Context, Services, Viewer

HANDED_OVER_SECONDS: Final = 60
_HANDED_OVER = "sign-in handed over"


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session that began; without its token where a cookie holds it, and in a receipt."""

    user: ShownProfile
    expires_at: datetime
    token: str | None = None


@dataclass(frozen=True, slots=True)
class Proof:
    """What shows who somebody is."""

    method: SignInMethod
    writes: tuple[ProofWrite, ...] = ()
    email: str | None = None
    """The address that was proven."""
    user: str | None = None
    """The member, if the proof names one."""
    signed_in_at: datetime | None = None
    """When they signed in, if that was before."""


# ── handing over ──
# A page of another origin whose window is gone is led back to with a code in the fragment of its address. It names the
# member, their session and the origin, lasts a minute and counts once, unless that session was ended. Nothing is stored
# before it is used.


@dataclass(frozen=True, slots=True)
class HandedOver:
    """What such a code says."""

    id: str
    user: str
    session: str
    """The hash of its token."""
    method: str
    origin: str
    signed_in_at: datetime
    expires: datetime

    def sealed(self, seal: Seal) -> str:
        named = [self.id, self.user, self.session, self.method, self.origin]
        times = [int(moment.timestamp()) for moment in (self.signed_in_at, self.expires)]
        return seal.sign_text(_HANDED_OVER, orjson.dumps([*named, *times]))

    @classmethod
    def open(cls, seal: Seal, text: str) -> HandedOver:
        """Forged unless this service sealed it. It may have expired."""
        *named, signed_in, expires = orjson.loads(seal.open_text(_HANDED_OVER, text))
        return cls(*named, *(datetime.fromtimestamp(each, UTC) for each in (signed_in, expires)))


def code_for_page(services: Services, viewer: Viewer, origin: str) -> str:
    """The code with which a page of this origin signs in the viewer, who has a session."""
    assert viewer.session is not None  # noqa: S101 - the caller's condition
    expires = services.clock() + timedelta(seconds=HANDED_OVER_SECONDS)
    by = viewer.session
    return HandedOver(secrets.token_hex(16), *by.key, by.method, origin, by.at, expires).sealed(services.seal)


async def session_for_page(services: Services, viewer: Viewer, origin: str) -> tuple[str, datetime]:
    """A token for the viewer, who has a session, on pages of this origin alone; and when it ends.

    CodeSpent if their session was ended, of which this process has yet to hear.
    """
    assert viewer.session is not None  # noqa: S101 - the caller's condition
    by, sessions = viewer.session, services.get(Sessions)
    session, token = session_store.new_session(viewer.id, by.method, origin, services.clock(), signed_in_at=by.at)
    try:
        await session_store.begin_session(
            services.table, services.unit(), None, session, session_store.going_on(by.key)
        )
    except CodeSpent:
        sessions.ended([by.key])
        raise
    sessions.began(session, is_guest=viewer.is_guest)
    return token, session.expires


async def begin_for_page(
    services: Services, member: Profile, method: SignInMethod, at: datetime | None = None
) -> tuple[Session, str]:
    """A session on the service's own pages, and its token; of a sign-in at a time that a provider says, or now.

    A sign-in of more than a day ago counts as one of yesterday: it is not recent, and the session still lasts.
    """
    now = services.clock()
    signed_in_at = None if at is None else min(now, max(at, now - timedelta(days=1)))
    session, token = session_store.new_session(member.user, method.value, None, now, signed_in_at=signed_in_at)
    await session_store.begin_session(services.table, services.unit(), None, session)
    services.get(Sessions).began(session, is_guest=member.is_guest)
    return session, token


# ── proofs ──


async def prove(ctx: Context, request: str | None, code: str | None, token: str | None) -> Proof:
    """Who somebody is, by what they give; a refusal if it is not right."""
    if token is not None and request is None and code is None:
        return await _open_token(ctx, token)
    if token is None and request is not None and code is not None:
        asked = await ctx.services.get(SignInCodes).check(ctx, request, code)
        return Proof(SignInMethod.EMAIL, (code_store.use_code(asked.id, ctx.now()),), email=asked.email)
    raise InvalidInput("Give a request and its code, or a token alone.", path=("input",))


async def _open_token(ctx: Context, token: str) -> Proof:
    """What the link of an email says, or the code of a page that was led back to."""
    asked = ctx.services.get(SignInCodes).open_link(token)
    if asked is not None:
        asked.refuse_expired(ctx.now())
        count_try(ctx)
        await code_store.refuse_used(ctx.table, asked.id)  # before a member is looked for, or made
        return Proof(SignInMethod.EMAIL, (code_store.use_code(asked.id, ctx.now()),), email=asked.email)
    try:
        handed = HandedOver.open(ctx.services.seal, token)
    except Forged:
        raise CodeUnknown("This link or code is not complete, or was altered.", path=("input", "token")) from None
    if handed.origin != ctx.page_origin.lower():
        raise CodeUnknown("This code counts only on pages of the origin that it was made for.", path=("input", "token"))
    if handed.expires <= ctx.now():
        raise CodeExpired(path=("input", "token"))
    count_try(ctx)
    writes = (code_store.use_once(handed.id, ctx.now()), session_store.going_on((handed.user, handed.session)))
    return Proof(SignInMethod(handed.method), writes, user=handed.user, signed_in_at=handed.signed_in_at)


def receipt_owner(ctx: Context, values: Mapping[str, Any]) -> str:
    """Whose the receipt of a sign-in is: the address's, since the visitor who asks becomes a member."""
    codes, request, token = ctx.services.get(SignInCodes), values.get("request"), values.get("token")
    asked = codes.open_request(request) if request else codes.open_link(token) if token else None
    return ctx.viewer.id if asked is None else f"signin-{email_hash(ctx.services.seal, asked.email)}"


# ── beginning ──


async def begin(ctx: Context, member: Profile, proof: Proof) -> SignedIn:
    """Begin a session of a member, where the page or program that asks keeps it."""
    origin = session_origin(ctx)
    session, token = session_store.new_session(
        member.user, proof.method.value, origin, ctx.now(), signed_in_at=proof.signed_in_at
    )
    answer = SignedIn(await show_changed(ctx, member), session.expires)
    await session_store.begin_session(ctx.table, ctx.unit, answer, session, *proof.writes)
    sessions = ctx.services.get(Sessions)
    sessions.began(session, is_guest=member.is_guest)
    ctx.viewer = sessions.viewer(session, is_guest=member.is_guest)  # what is left of the document is theirs
    if ctx.is_own_page:
        ctx.cookie_session = (token, session_store.latest_end(session))
        return answer
    return replace(answer, token=token)


def session_origin(ctx: Context) -> str | None:
    """The origin on whose pages alone a new session counts; None for our own and for programs; or a refusal."""
    if ctx.is_own_page:
        if not ctx.sets_cookies:
            raise NotAllowed("Sign in over HTTP: a WebSocket can set no cookie, which keeps the session of this page.")
        return None
    if not ctx.page_origin:
        return None
    if ctx.page_origin.lower() not in ctx.services.policy.page_origins:
        raise NotAllowed("This page may not sign anybody in.")
    return ctx.page_origin.lower()
