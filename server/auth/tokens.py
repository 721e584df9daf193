"""Bearer tokens: which are good, who they speak of, and how those for development are made.

Two kinds, never both at once. Without RINGSIDE_JWKS_URL a token is signed with HS256 by one of RINGSIDE_SECRETS, as it
stands there, so that any JWT library can mint one. With RINGSIDE_JWKS_URL only the provider's tokens are taken, signed
with RS256, ES256 or EdDSA: whoever has the service's secret can then still not become somebody.

| claim            | rule                                                                                       |
|------------------|--------------------------------------------------------------------------------------------|
| `sub`            | required; the user's id, fit for a key, 1 to 128 characters, not beginning with `visitor-` |
| `exp`            | required, in the future                                                                    |
| `nbf`            | half a minute ahead is forgiven, clocks differ                                             |
| `aud`, `iss`     | checked when RINGSIDE_JWT_AUDIENCE, RINGSIDE_JWT_ISSUER are set                            |
| `name`, `email`  | text; an address with `email_verified: false` is not taken over                            |
| `roles`          | a list; roles that are not known here are left out                                         |
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from datetime import timedelta
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import structlog

from datastore.dynamo import BadKey, key_text
from resolvers.viewer import Kind, Role, Viewer
from server.settings import Settings

if TYPE_CHECKING:
    from server.auth.jwt_verification import Proof

LONGEST_TOKEN = 8192
LONGEST_ID = 128
LONGEST_NAME = 100
LONGEST_EMAIL = 254
VISITOR = "visitor-"
CLOCKS_DIFFER = 30.0

KEPT = 2048
KEPT_FOR = 60.0
"""A verified token is believed for a minute without looking again: 2 µs instead of 30 for HS256, 50 for RS256. It
bounds how long a key that the provider has withdrawn still counts."""

_SPOILING = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")
"""Control characters, line ends, reversals of direction, lone surrogates. Joiners stay: Persian and emoji need them."""

log = structlog.get_logger("ringside.tokens")


class Unauthenticated(Exception):
    """What was shown as proof of an identity proves nothing; the reason is fit for the answer and holds none of it."""

    def __init__(self, reason: str, *, clear_cookie: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.clear_cookie = clear_cookie

    @property
    def headers(self) -> list[tuple[str, str]]:
        """What goes with the 401: the challenge, and for a bad cookie its removal."""
        challenge = f'Bearer error="invalid_token", error_description="{self.reason}"'
        return [("WWW-Authenticate", challenge), *([("Set-Cookie", self.clear_cookie)] if self.clear_cookie else [])]


class KeysUnavailable(Exception):
    """The provider has not answered yet, so no token can be judged: the service's trouble, not the caller's."""

    retry_after = 10.0
    """Seconds between two fetches of keys at the least."""

    def __init__(self) -> None:
        super().__init__("Tokens cannot be checked right now, since the provider of their keys does not answer.")


class Tokens:
    """Judges tokens, and remembers its judgement of good ones for a minute."""

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._proof: Proof | None = None
        if settings.jwks_url and not settings.jwt_audience:
            log.warning("RINGSIDE_JWT_AUDIENCE is not set: the provider's tokens for other services are taken too")
        self._clock = clock
        self._kept: OrderedDict[bytes, tuple[Viewer, float]] = OrderedDict()

    async def viewer(self, token: str) -> Viewer:
        """Return the member a token speaks of, or raise Unauthenticated."""
        if len(token) > LONGEST_TOKEN:
            raise Unauthenticated(f"The token has more than {LONGEST_TOKEN} characters.")
        digest = sha256(token.encode("utf-8", "surrogatepass")).digest()
        now = self._clock()
        kept, until = self._kept.get(digest, (None, 0.0))
        if kept and now < until:
            return kept
        claims = await self._proven(token)
        viewer = member(claims)
        self._keep(digest, viewer, min(_expiry(claims, now), now + KEPT_FOR))
        return viewer

    async def close(self) -> None:
        """Let go of the provider's connection."""
        if self._proof:
            await self._proof.close()

    def _keep(self, digest: bytes, viewer: Viewer, until: float) -> None:
        self._kept[digest] = viewer, until
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    async def _proven(self, token: str) -> dict[str, Any]:
        if self._proof is None:
            # 9 MB and 60 ms of cryptography, which a service that nobody has signed in to yet does without.
            proofs = await asyncio.to_thread(import_module, "server.auth.jwt_verification")
            self._proof = self._proof or proofs.Proof(self._settings)
        return await self._proof.claims(token)


def mint(
    settings: Settings,
    user: str,
    *,
    name: str | None = None,
    email: str | None = None,
    roles: Iterable[Role] = (),
    lifetime: timedelta = timedelta(days=7),
) -> str:
    """Return a token for development, signed with the newest secret, or raise ValueError with what is wrong."""
    if settings.jwks_url:
        raise ValueError("RINGSIDE_JWKS_URL is set: get a token from that provider, others are refused.")
    now = int(time.time())
    claims = {
        "iss": settings.jwt_issuer or "ringside",
        "aud": settings.jwt_audience,
        "sub": user,
        "name": name,
        "email": email,
        "roles": sorted(roles),
        "iat": now,
        "exp": now + int(lifetime.total_seconds()),
    }
    claims = {claim: value for claim, value in claims.items() if value is not None}
    try:
        member(claims)
    except Unauthenticated as refused:
        raise ValueError(refused.reason) from None
    import jwt  # noqa: PLC0415 - see Tokens

    return jwt.encode(claims, settings.secrets[0].get_secret_value().encode(), algorithm="HS256")


def member(claims: dict[str, Any]) -> Viewer:
    """Return the member that verified claims speak of, or raise Unauthenticated."""
    name, email, roles = claims.get("name"), claims.get("email"), claims.get("roles")
    if not isinstance(name, str | None) or not isinstance(email, str | None):
        raise Unauthenticated("The token's name and email must be text.")
    if not isinstance(roles, list | None):
        raise Unauthenticated("The token's roles must be a list.")
    return Viewer(
        id=_user_id(claims["sub"]),
        kind=Kind.MEMBER,
        name=_plain(name or "")[:LONGEST_NAME] or None,
        email=email if email and _mailable(email) and claims.get("email_verified") is not False else None,
        roles=frozenset(role for role in Role if role in (roles or ())) | {Role.MEMBER},
    )


def _user_id(sub: str) -> str:
    try:
        key_text(sub)
    except BadKey:
        raise Unauthenticated("The token's sub is empty, or holds a # or a control character.") from None
    if len(sub) > LONGEST_ID:
        raise Unauthenticated(f"The token's sub has more than {LONGEST_ID} characters.")
    if sub.lower().startswith(VISITOR):
        raise Unauthenticated(f"The token's sub must not begin with {VISITOR}, which names visitors.")
    return sub


def _plain(name: str) -> str:
    """Leave out what spoils a line of text; refused, nobody could mend what their provider says of them."""
    return _SPOILING.sub(" ", name).strip()


def _mailable(email: str) -> bool:
    return len(email) <= LONGEST_EMAIL and email.isprintable() and "@" in email and " " not in email


def _expiry(claims: dict[str, Any], now: float) -> float:
    exp, nbf = _moment(claims, "exp"), _moment(claims, "nbf")
    if exp <= now:
        raise Unauthenticated("The token has expired: get a new one.")
    if nbf > now + CLOCKS_DIFFER:
        raise Unauthenticated("The token is not valid yet.")
    return exp


def _moment(claims: dict[str, Any], claim: str) -> float:
    moment: Any = claims.get(claim, 0)
    if type(moment) not in (int, float) or not -math.inf < moment < math.inf:
        raise Unauthenticated(f"The token's {claim} must be a number of seconds.")
    return cast("float", moment)
