"""Bearer tokens: which are valid, which member they name, and how development tokens are minted.

There are two kinds, never both at once. Without an OIDC provider a token is signed with HS256 by one of
RINGSIDE_SECRETS, used as it is, so any JWT library can mint one. With RINGSIDE_OIDC_ISSUER or RINGSIDE_JWKS_URL only
the provider's tokens are accepted, signed with RS256, ES256 or EdDSA: the service's own secret no longer signs anyone
in.

| claim            | rule                                                                                       |
|------------------|--------------------------------------------------------------------------------------------|
| `sub`            | required; the user's id, fit for a key, of 1 to 128 characters, not beginning with         |
|                  | `visitor-`, `apikey-` or `former-`                                                         |
| `exp`            | required, in the future, before the year 10000                                             |
| `nbf`            | not more than half a minute ahead, because clocks differ                                   |
| `iss`            | checked if RINGSIDE_OIDC_ISSUER or RINGSIDE_JWT_ISSUER is set                              |
| `aud`            | checked if RINGSIDE_JWT_AUDIENCE or RINGSIDE_JWT_CLIENT_IDS is set                         |
| `name`, `email`  | text, ignored if it lies elsewhere; an address with `email_verified: false` is ignored     |
| `roles`          | a list, or text split at spaces and commas; unknown roles and other values are ignored     |

RINGSIDE_JWT_NAME_CLAIM, RINGSIDE_JWT_EMAIL_CLAIM and RINGSIDE_JWT_ROLES_CLAIM name other claims for the last three.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from hashlib import sha256
from importlib import import_module
from typing import Any, NamedTuple, cast

import structlog

from datastore.changes.unit_of_work import VISITOR_PREFIX
from datastore.dynamo import BadKey, key_text
from datastore.members.api_keys import ID_PREFIX
from datastore.people.profiles import FORMER_PREFIX
from resolvers.loading.bounded_dict import BoundedDict
from resolvers.requests.context import Kind, Role, Viewer
from resolvers.values.texts import CONTROL_CHARACTERS, is_email_address
from server.auth.errors import Unauthenticated
from server.auth.jwt_verification import JWTVerifier
from server.settings import Settings

# ── claims ──

MAX_ID_LENGTH = 128
MAX_NAME_LENGTH = 100
RESERVED = {FORMER_PREFIX: "former members", VISITOR_PREFIX: "visitors", ID_PREFIX: "API keys"}
"""What the ids of others than members begin with."""
_SEPARATORS = re.compile(r"[\s,]+")


class MemberClaims:
    """Reads and writes the claims about members."""

    def __init__(self, settings: Settings) -> None:
        self._name, self._email = settings.jwt_name_claim, settings.jwt_email_claim
        self._has_issuer = settings.token_issuer is not None
        self._roles, self._groups = settings.jwt_roles_claim, settings.jwt_roles

    def parse_member(self, claims: dict[str, Any]) -> Viewer:
        """The member who verified claims name, or Unauthenticated."""
        user = _parse_user_id(claims["sub"])
        name, email = _claim(claims, self._name), _claim(claims, self._email)
        if not isinstance(name, str | None) or not isinstance(email, str | None):
            raise Unauthenticated("The token's name and email must be text.")
        verified = self._verified(claims)
        if not email or not is_email_address(email) or any(value in (False, "false") for value in verified):
            email = None
        return Viewer(
            id=user,
            kind=Kind.MEMBER,
            name=_name(name, user),
            email=email,
            roles=self._parse_roles(_claim(claims, self._roles)) | {Role.MEMBER},
            verified_email=email if self._has_issuer and any(value in (True, "true") for value in verified) else None,
        )

    def write(self, claims: dict[str, Any], name: str | None, email: str | None, roles: Iterable[Role]) -> None:
        """Add the claims that `parse_member` reads. ValueError for a role that no group has."""
        for path, value in ((self._name, name), (self._email, email), (self._roles, self._group_names(roles))):
            if value is not None:
                inner = claims
                for key in path[:-1]:
                    inner = inner.setdefault(key, {})
                inner[path[-1]] = value

    def _parse_roles(self, value: object) -> frozenset[Role]:
        if not isinstance(value, str | list | None):
            raise Unauthenticated("The token's roles must be a list, or text.")
        texts = _SEPARATORS.split(value) if isinstance(value, str) else value or ()
        names = {text for text in texts if isinstance(text, str)}
        if self._groups is None:
            return frozenset(role for role in Role if role in names)
        return frozenset(role for group, role in self._groups.items() if group in names)

    def _verified(self, claims: dict[str, Any]) -> list[bool | str]:
        """The values of `email_verified`, next to the email claim or at the top level. Cognito may send text."""
        said = (claims.get("email_verified"), _claim(claims, (*self._email[:-1], "email_verified")))
        return [value for value in said if isinstance(value, bool | str)]

    def _group_names(self, roles: Iterable[Role]) -> list[str]:
        if self._groups is None:
            return sorted(roles)
        groups = {role: group for group, role in self._groups.items()}
        if missing := [role for role in roles if role not in groups and role is not Role.MEMBER]:
            raise ValueError(f"RINGSIDE_JWT_ROLES gives no group the role {missing[0].value}.")
        return sorted(groups[role] for role in roles if role in groups)


def _claim(claims: dict[str, Any], path: Iterable[str]) -> Any:
    """The value at a path, or None if there is none."""
    value: Any = claims
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _name(name: str | None, user: str) -> str | None:
    """The name to show, if any: neither the id, nor an address, which only the member and admins may see."""
    # Replaced, not refused: members cannot change what their provider says of them.
    shown = CONTROL_CHARACTERS.sub(" ", name or "").strip()
    return None if shown == user or is_email_address(shown) else shown[:MAX_NAME_LENGTH] or None


def _parse_user_id(sub: str) -> str:
    try:
        key_text(sub)
    except BadKey:
        raise Unauthenticated("The token's sub is empty, or holds a # or a control character.") from None
    if len(sub) > MAX_ID_LENGTH:
        raise Unauthenticated(f"The token's sub has more than {MAX_ID_LENGTH} characters.")
    for prefix, others in RESERVED.items():
        if sub.lower().startswith(prefix):
            raise Unauthenticated(f"The token's sub must not begin with {prefix}, which names {others}.")
    return sub


# ── tokens ──

MAX_TOKEN_LENGTH = 8192
CLOCK_SKEW_SECONDS = 30.0
LATEST_SECONDS = 253_402_300_799
"""The end of the year 9999, after which there are no times; a larger `exp` is a mistake, and may have 400 digits."""

MAX_CACHED = 2048
CACHED_SECONDS = 60.0
"""A valid token is cached for a minute: 2 µs instead of 30 for HS256 or 50 for RS256. A key that the provider has
withdrawn stays valid that long."""

log = structlog.get_logger("ringside.tokens")


class _Cached(NamedTuple):
    viewer: Viewer
    expires_at: float
    since: float
    until: float


class Tokens:
    """Authenticates the bearer of a token, and caches valid tokens for a minute."""

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._verifier: JWTVerifier | None = None
        self._member_claims = MemberClaims(settings)
        if settings.has_provider and not settings.jwt_audience and not settings.jwt_client_ids:
            log.warning("RINGSIDE_JWT_AUDIENCE is not set: the provider's tokens for other services are accepted too")
        self._clock = clock
        self._cached: BoundedDict[bytes, _Cached] = BoundedDict(MAX_CACHED)

    async def member(self, token: str) -> tuple[Viewer, float]:
        """The member who a token names, and when it expires; or Unauthenticated, or Unverifiable."""
        if len(token) > MAX_TOKEN_LENGTH:
            raise Unauthenticated(f"The token has more than {MAX_TOKEN_LENGTH} characters.")
        digest = sha256(token.encode("utf-8", "surrogatepass")).digest()
        now = self._clock()
        cached = self._cached.get(digest)
        if cached and cached.since <= now < cached.until:  # nor before: the clock may have been corrected
            return cached.viewer, cached.expires_at
        claims = await self._verified_claims(token)
        viewer, expires_at = self._member_claims.parse_member(claims), _parse_expiry(claims, now)
        self._cached[digest] = _Cached(viewer, expires_at, now, min(expires_at, now + CACHED_SECONDS))
        return viewer, expires_at

    async def close(self) -> None:
        """Close the connection to the identity provider."""
        if self._verifier:
            await self._verifier.close()

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
    if settings.has_provider:
        raise ValueError("An OIDC provider is set: get a token from it, others are refused.")
    now = int(time.time())
    claims = {
        "iss": settings.token_issuer or "ringside",
        "aud": settings.jwt_audience,
        "sub": user,
        "iat": now,
        "exp": now + int(lifetime.total_seconds()),
    }
    claims = {claim: value for claim, value in claims.items() if value is not None}
    member_claims = MemberClaims(settings)
    member_claims.write(claims, name, email, roles)
    try:
        member_claims.parse_member(claims)
    except Unauthenticated as error:
        raise ValueError(error.detail) from None
    import jwt  # noqa: PLC0415 - see Tokens

    return jwt.encode(claims, settings.secrets[0].get_secret_value().encode(), algorithm="HS256")


def _parse_expiry(claims: dict[str, Any], now: float) -> float:
    exp, nbf = _parse_time(claims, "exp"), _parse_time(claims, "nbf")
    if exp <= now:
        raise Unauthenticated("The token has expired: get a new one.")
    if nbf > now + CLOCK_SKEW_SECONDS:
        raise Unauthenticated("The token is not valid yet.")
    return exp


def _parse_time(claims: dict[str, Any], claim: str) -> float:
    seconds: Any = claims.get(claim, 0)
    if type(seconds) not in (int, float) or not -LATEST_SECONDS <= seconds <= LATEST_SECONDS:
        raise Unauthenticated(f"The token's {claim} must be a number of seconds before the year 10000.")
    return cast("float", seconds)
