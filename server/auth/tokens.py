"""Bearer tokens: which are valid, which member they name, and how development tokens are minted.

There are two kinds, never both at once. Without RINGSIDE_JWKS_URL a token is signed with HS256 by one of
RINGSIDE_SECRETS, used as it is, so any JWT library can mint one. With RINGSIDE_JWKS_URL only the provider's tokens are
accepted, signed with RS256, ES256 or EdDSA: the service's own secret no longer signs anyone in.

| claim            | rule                                                                                       |
|------------------|--------------------------------------------------------------------------------------------|
| `sub`            | required; the user's id, fit for a key, 1 to 128 characters, not beginning with `visitor-` |
| `exp`            | required, in the future                                                                    |
| `nbf`            | not more than half a minute ahead, because clocks differ                                   |
| `aud`, `iss`     | checked if RINGSIDE_JWT_AUDIENCE, RINGSIDE_JWT_ISSUER are set                              |
| `name`, `email`  | text; an address with `email_verified: false` is ignored                                   |
| `roles`          | a list; unknown roles are ignored                                                          |
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
from server.auth.errors import Unauthenticated
from server.settings import Settings

if TYPE_CHECKING:
    from server.auth.jwt_verification import JWTVerifier

MAX_TOKEN_LENGTH = 8192
MAX_ID_LENGTH = 128
MAX_NAME_LENGTH = 100
MAX_EMAIL_LENGTH = 254
VISITOR = "visitor-"
CLOCK_SKEW_SECONDS = 30.0

MAX_CACHED = 2048
CACHED_SECONDS = 60.0
"""A valid token is cached for a minute: 2 µs instead of 30 for HS256 or 50 for RS256. A key that the provider has
withdrawn stays valid that long."""

_CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")
"""Control characters, line ends, direction marks, lone surrogates. Joiners stay: Persian and emoji need them."""

log = structlog.get_logger("ringside.tokens")


class Tokens:
    """Authenticates the bearer of a token, and caches valid tokens for a minute."""

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._verifier: JWTVerifier | None = None
        if settings.jwks_url and not settings.jwt_audience:
            log.warning("RINGSIDE_JWT_AUDIENCE is not set: the provider's tokens for other services are taken too")
        self._clock = clock
        self._cached: OrderedDict[bytes, tuple[Viewer, float]] = OrderedDict()

    async def viewer(self, token: str) -> Viewer:
        """The member who a token names, or Unauthenticated, or KeysUnavailable."""
        if len(token) > MAX_TOKEN_LENGTH:
            raise Unauthenticated(f"The token has more than {MAX_TOKEN_LENGTH} characters.")
        digest = sha256(token.encode("utf-8", "surrogatepass")).digest()
        now = self._clock()
        viewer, until = self._cached.get(digest, (None, 0.0))
        if viewer and now < until:
            return viewer
        claims = await self._verified_claims(token)
        viewer = parse_member(claims)
        self._cache(digest, viewer, min(_parse_expiry(claims, now), now + CACHED_SECONDS))
        return viewer

    async def close(self) -> None:
        """Closes the connection to the identity provider."""
        if self._verifier:
            await self._verifier.close()

    def _cache(self, digest: bytes, viewer: Viewer, until: float) -> None:
        self._cached[digest] = viewer, until
        if len(self._cached) > MAX_CACHED:
            self._cached.popitem(last=False)

    async def _verified_claims(self, token: str) -> dict[str, Any]:
        if self._verifier is None:
            # Importing cryptography takes 9 MB and 60 ms, which a service without members does not need.
            module = await asyncio.to_thread(import_module, "server.auth.jwt_verification")
            self._verifier = self._verifier or module.JWTVerifier(self._settings)
        return await self._verifier.claims(token)


def mint(
    settings: Settings,
    user: str,
    *,
    name: str | None = None,
    email: str | None = None,
    roles: Iterable[Role] = (),
    lifetime: timedelta = timedelta(days=7),
) -> str:
    """A development token, signed with the newest secret. ValueError if it would be refused, with the reason."""
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
        parse_member(claims)
    except Unauthenticated as error:
        raise ValueError(error.detail) from None
    import jwt  # noqa: PLC0415 - see Tokens

    return jwt.encode(claims, settings.secrets[0].get_secret_value().encode(), algorithm="HS256")


def parse_member(claims: dict[str, Any]) -> Viewer:
    """The member who verified claims name, or Unauthenticated."""
    name, email, roles = claims.get("name"), claims.get("email"), claims.get("roles")
    if not isinstance(name, str | None) or not isinstance(email, str | None):
        raise Unauthenticated("The token's name and email must be text.")
    if not isinstance(roles, list | None):
        raise Unauthenticated("The token's roles must be a list.")
    return Viewer(
        id=_parse_user_id(claims["sub"]),
        kind=Kind.MEMBER,
        # Replaced, not refused: members cannot change what their provider says of them.
        name=_CONTROL_CHARACTERS.sub(" ", name or "").strip()[:MAX_NAME_LENGTH] or None,
        email=email if email and _is_mailable(email) and claims.get("email_verified") is not False else None,
        roles=frozenset(role for role in Role if role in (roles or ())) | {Role.MEMBER},
    )


def _parse_user_id(sub: str) -> str:
    try:
        key_text(sub)
    except BadKey:
        raise Unauthenticated("The token's sub is empty, or holds a # or a control character.") from None
    if len(sub) > MAX_ID_LENGTH:
        raise Unauthenticated(f"The token's sub has more than {MAX_ID_LENGTH} characters.")
    if sub.lower().startswith(VISITOR):
        raise Unauthenticated(f"The token's sub must not begin with {VISITOR}, which names visitors.")
    return sub


def _is_mailable(email: str) -> bool:
    return len(email) <= MAX_EMAIL_LENGTH and email.isprintable() and "@" in email and " " not in email


def _parse_expiry(claims: dict[str, Any], now: float) -> float:
    exp, nbf = _parse_time(claims, "exp"), _parse_time(claims, "nbf")
    if exp <= now:
        raise Unauthenticated("The token has expired: get a new one.")
    if nbf > now + CLOCK_SKEW_SECONDS:
        raise Unauthenticated("The token is not valid yet.")
    return exp


def _parse_time(claims: dict[str, Any], claim: str) -> float:
    seconds: Any = claims.get(claim, 0)
    if type(seconds) not in (int, float) or not -math.inf < seconds < math.inf:
        raise Unauthenticated(f"The token's {claim} must be a number of seconds.")
    return cast("float", seconds)
