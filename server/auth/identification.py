"""Identifies the viewer of a request: a member by a token, a machine by an API key, a visitor by a cookie or a visit.

Invalid credentials are refused, never ignored: a client whose token has expired must learn of it, and not be served as
a visitor. A request without credentials gets a new visitor, whose cookie comes with the response and lasts a year.
A WebSocket sets no cookie and deletes none: there one that was altered counts as none, and the visitor ends with it.

A new visitor's page may send several requests at once. Each answer names another visitor, and a cookie replaces the one
before it, so answers to mutations set a cookie of their own, which takes precedence: the ballot of a draw stays valid,
whatever is read at the same time.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from base64 import b32encode
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import structlog

from datastore.changes.unit_of_work import VISITOR_PREFIX
from datastore.dynamo import BoundedDict, DynamoError, Rejected, deadline
from datastore.members.api_keys import SECRET_PREFIX
from datastore.members.sessions import TOKEN_PREFIX
from datastore.people.identities import MemberErased
from datastore.refusals import Overloaded, RateLimited
from datastore.values.seal import Forged
from resolvers.members.api_keys import ApiKeys, KeyRefused
from resolvers.members.sessions import SessionRefused, Sessions
from resolvers.members.suspensions import Suspensions
from resolvers.people.identities import Members
from resolvers.requests.context import Kind, Services, Viewer, addressed_origin
from resolvers.voting.visits import open_visit
from server.auth.cookies import (
    A_YEAR,
    COOKIE,
    READER_COOKIE,
    SESSION_COOKIE,
    bound_to_host,
    cookie_values,
    set_bound_cookie,
    set_cookie,
)
from server.auth.tokens import Tokens
from server.auth.verification import Faulty, Unauthenticated, Unverifiable
from server.settings import Settings

# ── credentials ──

CHECK_SECONDS = 30.0
"""The time between two checks: with what checks may remember, an API key is revoked everywhere within a minute."""

EXPIRED = "token expired"
CHANGED = "the token's rights have changed"


class Credentials:
    """What a client was identified by when it connected; `identify` does so again."""

    def __init__(self, identified: Identified, identify: Callable[[], Awaitable[Identified]]) -> None:
        self._identified = identified
        self._identify = identify

    async def lapse(self) -> str:
        """Wait until the credentials are no longer valid, and say why. A visitor's stay valid."""
        if self._identified.expires_at is None:
            await asyncio.Event().wait()
        while (left := (self._identified.expires_at or 0) - time.time()) > 0:
            await asyncio.sleep(min(left, CHECK_SECONDS))
            if reason := await self._refused():
                return reason
        return EXPIRED

    async def _refused(self) -> str | None:
        try:
            identified = await self._identify()
        except (Unverifiable, Faulty):
            return None  # the next check may tell
        except Unauthenticated as error:
            expired = time.time() >= (self._identified.expires_at or 0)
            return EXPIRED if expired else error.detail
        before, now = self._identified.viewer, identified.viewer
        if before.proven is not None:  # they may have become a member since
            before = replace(before, id=now.id, proven=now.proven, identity=now.identity)
        if now != before:
            return CHANGED
        self._identified = self._identified._replace(expires_at=identified.expires_at)  # use makes a session last
        return None

    async def viewer(self) -> Viewer:
        """Who the client is now: a member, if they were nobody yet when they connected."""
        if self._identified.viewer.proven is not None:
            with suppress(Unverifiable, Faulty, Unauthenticated):  # the next check ends the connection
                self._identified = await self._identify()
        return self._identified.viewer


# ── identification ──

RawHeaders: TypeAlias = Iterable[tuple[bytes, bytes]]
"""Headers as ASGI has them: lower-case names, repetitions included."""

ID_SIZE = 16
MAX_CACHED_VISITORS = 4_000
MAX_CACHED_HEADER = 1_000
"""Bytes of a Cookie header that is cached, so that the cache takes some megabytes at most."""
_PURPOSE = "visitor"
_log = structlog.get_logger("ringside.auth")
_FORMS = "Bearer, a space and the token, or Visitor, a space and the token of a visit."


class Identified(NamedTuple):
    """The viewer; the Set-Cookie of the response to a new visitor; when the token or key expires, which may be never.

    Only a visitor's cookie has no `expires_at`: everything else may be withdrawn and is checked again.
    """

    viewer: Viewer
    expires_at: float | None = None
    reader_cookie: str | None = None
    """Set by every answer but those to mutations."""
    mutation_cookie: str | None = None


class Identification:
    """Identifies the viewers of one deployment."""

    def __init__(self, settings: Settings, services: Services) -> None:
        self._tokens = Tokens(settings)
        self._keys, self._sessions, self._members = services.get(ApiKeys), services.get(Sessions), services.get(Members)
        self._rights, self._seconds = services.get(Suspensions), settings.request_timeout
        self._services = services
        self._seal = services.seal
        self.clock: Callable[[], float] = time.time
        self._visitors: BoundedDict[tuple[bytes, bool], Identified] = BoundedDict(MAX_CACHED_VISITORS)
        """By the Cookie header, and whether it came over TLS."""

    async def identify(
        self,
        headers: RawHeaders,
        *,
        secure: bool,
        address: str = "",
        authorizations: Sequence[str] = (),
        sets_cookies: bool = True,
    ) -> Identified:
        """The viewer of a request, or Unauthenticated; Unverifiable if that cannot be told now, Faulty if it never can.

        `secure` says whether the scheme is https or wss. `address` is the client's. `authorizations` are those of
        a WebSocket's connection_init, which take precedence over that of the headers. `sets_cookies` says whether the
        answer can set and delete cookies.
        """
        sent = _Sent.by(headers)
        authorizations = authorizations or sent.authorizations
        if len(authorizations) > 1:
            raise Unauthenticated("There is more than one Authorization header: send one.")
        if authorizations:
            return await self._open_authorization(authorizations[0], address, sent.origin)
        header = b"; ".join(sent.cookies)
        if SESSION_COOKIE.encode() in header and self._counts_session(sent, secure=secure, is_socket=not sets_cookies):
            session = await self._open_session_cookie(header, sent, address, secure=secure)
            if session is not None:
                return session
        return (
            self._visitors.get((header, secure))
            or self._open_cookie(header, secure=secure, deletable=sets_cookies)
            or self._new_visitor(secure=secure)
        )

    async def _open_authorization(self, authorization: str, address: str, origin: str | None) -> Identified:
        scheme, token = _parse_authorization(authorization)
        if scheme == "visitor":
            return self._open_visit(token, origin)
        if token.startswith(TOKEN_PREFIX):  # no JSON Web Token begins so
            return await self._session(token, address, origin)
        if token.startswith(SECRET_PREFIX):
            viewer, expires_at = await self._machine(token, address)
        else:
            bearer, expires_at = await self._tokens.member(token)
            viewer = await self._member(bearer)
        return Identified(viewer, expires_at=expires_at)

    async def _member(self, bearer: Viewer) -> Viewer:
        """The member whom a token's bearer is; the bearer, if they are nobody yet."""
        assert bearer.proven is not None  # noqa: S101 - what a token says
        try:
            with self._looking_up("members"):
                identity = await self._members.find(bearer.proven)
        except MemberErased:
            raise Unauthenticated("This account was erased.") from None
        if identity is None:
            return bearer
        user = identity.user or ""
        roles = bearer.roles | self._rights.roles_of(user)
        return replace(bearer, id=user, proven=None, identity=identity.key, roles=roles)

    async def _machine(self, key: str, address: str) -> tuple[Viewer, float]:
        """The machine with this API key, and when the key expires."""
        try:
            with self._looking_up("API keys"):
                viewer, expires_at = await self._keys.sign_in(key, address)
        except KeyRefused as refused:
            raise Unauthenticated(str(refused)) from None
        return viewer, math.inf if expires_at is None else expires_at.timestamp()

    @contextmanager
    def _looking_up(self, what: str) -> Iterator[None]:
        """Look credentials up within a request's time; Unverifiable if that cannot be done, Faulty if it never can."""
        try:
            with deadline(self._seconds):
                yield
        except RateLimited as limited:
            raise Unverifiable(
                f"Too many {what} that are not in use here came from this address. Try again later.",
                limited.retry_after or 1.0,
                code=Overloaded.code,
            ) from None
        except Rejected as error:
            _log.error("the table rejects a look-up of credentials", exc_info=error)
            raise Faulty(f"By a fault of ours {what} cannot be checked. The log has the details.") from None
        except DynamoError:
            raise Unverifiable(f"The table does not answer, so {what} cannot be checked right now.") from None

    # ── sessions ──

    async def _open_session_cookie(
        self, header: bytes, sent: _Sent, address: str, *, secure: bool
    ) -> Identified | None:
        """The member whose session is in our cookie, or None if there is none in it; an ended one is deleted."""
        name = bound_to_host(SESSION_COOKIE, sent.host, secure=secure)
        token = cookie_values(header).get(name)
        if token is None:
            return None
        try:
            return await self._session(token, address, None)
        except Unauthenticated as refused:
            raise Unauthenticated(
                f"{refused.detail} This answer deletes its cookie.",
                clear_cookies=[set_bound_cookie(SESSION_COOKIE, "", 0, sent.host, secure=secure)],
            ) from None

    async def session_in_cookie(self, headers: RawHeaders, *, secure: bool, address: str) -> Viewer | None:
        """The member of a session's cookie, wherever the request comes from: only for what another proof secures."""
        sent = _Sent.by(headers)
        with suppress(Unauthenticated):
            found = await self._open_session_cookie(b"; ".join(sent.cookies), sent, address, secure=secure)
            return None if found is None else found.viewer
        return None

    def visitor_in_cookie(self, headers: RawHeaders) -> str | None:
        """The visitor of a cookie, wherever the request comes from: only for what another proof secures."""
        header = b"; ".join(value for name, value in headers if name == b"cookie")
        found = self._open_cookie(header, secure=True, deletable=False)
        return None if found is None else found.viewer.id

    def _counts_session(self, sent: _Sent, *, secure: bool, is_socket: bool) -> bool:
        """Whether a session's cookie counts: browsers send it with requests of other sites' pages too."""
        if sent.origin is not None:
            own = addressed_origin("https" if secure else "http", sent.host)
            return self._services.policy.is_own(sent.origin, own)
        return not is_socket and sent.fetch_site in ("same-origin", "none")

    async def _session(self, token: str, address: str, origin: str | None) -> Identified:
        """The member whose session's token comes from a page of this origin, or Unauthenticated."""
        try:
            with self._looking_up("sessions"):
                session, viewer = await self._sessions.find(token, address)
        except SessionRefused as refused:
            raise Unauthenticated(str(refused)) from None
        if session.origin is not None and session.origin != (origin or "").lower():
            raise Unauthenticated("This session was begun for pages of another origin, and counts only there.")
        return Identified(viewer, expires_at=session.expires.timestamp())

    def _open_visit(self, token: str, origin: str | None) -> Identified:
        """The visitor of a page on another site, where the token must come from."""
        try:
            visit = open_visit(self._seal, token)
        except Forged:
            raise Unauthenticated(
                "The visit's token was altered, or signed with a secret no longer used: start a new visit.",
                scheme="Visitor",
            ) from None
        if origin is None or not visit.is_of(origin):
            raise Unauthenticated(
                "A visit's token is valid only on pages of the origin that it was issued to, and this request "
                + ("names none." if origin is None else "comes from another."),
                scheme="Visitor",
            )
        if visit.expires_at <= self.clock():
            raise Unauthenticated("The visit has expired: start a new one.", scheme="Visitor")
        return Identified(Viewer(id=visit.visitor, kind=Kind.VISITOR), expires_at=visit.expires_at)

    async def close(self) -> None:
        """Close the connection to the identity provider."""
        await self._tokens.close()

    def _new_visitor(self, *, secure: bool) -> Identified:
        id_ = os.urandom(ID_SIZE)
        value = self._seal.sign_text(_PURPOSE, id_)
        of_reader, of_mutation = (set_cookie(name, value, A_YEAR, secure=secure) for name in (READER_COOKIE, COOKIE))
        return Identified(_visitor(id_), reader_cookie=of_reader, mutation_cookie=of_mutation)

    def _open_cookie(self, header: bytes, *, secure: bool, deletable: bool) -> Identified | None:
        """The visitor of a Cookie header, if our cookie is in it. Where it would stay, one that was altered is none."""
        values = cookie_values(header)
        ids = {name: self._visitor_in(values[name]) for name in (COOKIE, READER_COOKIE) if name in values}
        if not ids:
            return None
        name, id_ = next(iter(ids.items()))
        if id_ is None:
            if not deletable:
                return None
            raise Unauthenticated(
                f"The cookie {name} was altered, or signed with a secret no longer used. "
                "This answer deletes it: ask again to get a new one.",
                # Both together, if both are: pages ask again once.
                clear_cookies=[set_cookie(each, "", 0, secure=secure) for each in ids if ids[each] is None],
            )
        kept = set_cookie(COOKIE, values[name], A_YEAR, secure=secure) if name == READER_COOKIE else None
        visitor = Identified(_visitor(id_), mutation_cookie=kept)
        # A cookie that was valid once stays valid as long as this process has its secret.
        if len(header) <= MAX_CACHED_HEADER:
            self._visitors[header, secure] = visitor
        return visitor

    def _visitor_in(self, value: str) -> bytes | None:
        """The id in a visitor's cookie; None if it was altered, or signed with a secret no longer used."""
        try:
            return self._seal.open_text(_PURPOSE, value)
        except Forged:
            return None


def _visitor(id_: bytes) -> Viewer:
    return Viewer(id=VISITOR_PREFIX + b32encode(id_).decode().rstrip("=").lower(), kind=Kind.VISITOR)


@dataclass(slots=True)
class _Sent:
    """The headers of a request that say who sends it."""

    cookies: list[bytes] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)
    origin: str | None = None
    host: str = ""
    fetch_site: str = ""

    @classmethod
    def by(cls, headers: RawHeaders) -> _Sent:
        sent = cls()
        for name, value in headers:
            match name:
                case b"cookie":
                    sent.cookies.append(value)
                case b"authorization":
                    sent.authorizations.append(value.decode("latin-1"))
                case b"origin":
                    sent.origin = value.decode("latin-1")
                case b"host":
                    sent.host = sent.host or value.decode("latin-1").lower()
                case b"sec-fetch-site":
                    sent.fetch_site = value.decode("latin-1")
        return sent


def parse_authorizations(params: Mapping[str, object]) -> list[str]:
    """Those of a connection_init's payload, or of its `headers`, which some clients send as they would over HTTP."""
    headers = next((value for name, value in params.items() if name.lower() == "headers"), None)
    fields = [*params.items(), *(headers.items() if isinstance(headers, dict) else ())]
    values = [value for name, value in fields if name.lower() == "authorization" and value is not None]
    if not all(isinstance(value, str) for value in values):
        raise Unauthenticated(f"Authorization must be text: {_FORMS}")
    return [str(value) for value in values]


def _parse_authorization(authorization: str) -> tuple[str, str]:
    """The scheme in lower case, and the token."""
    scheme, _, token = authorization.strip().partition(" ")
    if scheme.lower() not in ("bearer", "visitor") or not token.strip():
        raise Unauthenticated(f"Authorization must be {_FORMS}")
    return scheme.lower(), token.strip()
