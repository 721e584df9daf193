"""Bearer tokens: which are valid, which member they name, how development tokens are minted; and shops' proofs.

The `iss` of a token says whose it is. It counts only if that issuer's own key signed it, with an algorithm of that key:

| token of        | `iss`                                     | signed with          | accepted                        |
|-----------------|-------------------------------------------|----------------------|---------------------------------|
| the provider    | RINGSIDE_OIDC_ISSUER, RINGSIDE_JWT_ISSUER | RS256, ES256, EdDSA  | with a provider                 |
| a site          | an issuer in RINGSIDE_SITE_KEYS           | HS256, or as above   | with keys of sites              |
| `ringside token`| any, or RINGSIDE_JWT_ISSUER               | HS256, our secrets   | with neither of these           |

| claim            | rule                                                                                       |
|------------------|--------------------------------------------------------------------------------------------|
| `sub`            | required; what the issuer calls the member, 1 to 255 characters                            |
| `exp`            | required, in the future, before the year 10000; of a site's token at most a day and half   |
|                  | a minute ahead, because clocks differ                                                      |
| `nbf`            | not more than half a minute ahead, for the same reason                                     |
| `aud`            | of a site's token RINGSIDE_PUBLIC_URL; otherwise checked if RINGSIDE_JWT_AUDIENCE,         |
|                  | RINGSIDE_JWT_CLIENT_IDS or RINGSIDE_OIDC_CLIENT_ID is set                                  |
| `name`, `email`  | text, ignored if it lies elsewhere; an address with `email_verified: false` is ignored,    |
|                  | and a site's without `email_verified: true`                                                |
| `roles`          | a list, or text split at spaces and commas; unknown roles and other values are ignored,    |
|                  | and those of a site's token without `"roles": true` in its key                             |

RINGSIDE_JWT_NAME_CLAIM, RINGSIDE_JWT_EMAIL_CLAIM and RINGSIDE_JWT_ROLES_CLAIM name other claims for the last three, but
not in a site's token.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import structlog

from datastore.dynamo import BoundedDict
from datastore.people.identities import SignInMethod, of_issuer
from datastore.refusals import Unavailable
from resolvers.comments.proofs import refused
from resolvers.requests.context import NEW_PREFIX, Kind, Role, Viewer
from resolvers.values.texts import CONTROL_CHARACTERS, is_email_address
from server.auth.verification import Source, Unauthenticated, Unverifiable, Verified
from server.settings import Settings

if TYPE_CHECKING:
    from server.auth.jwt_verification import JWTVerifier, ProofVerifier

# ── claims ──

MAX_SUB_LENGTH = 255
MAX_NAME_LENGTH = 100
_SEPARATORS = re.compile(r"[\s,]+")


@dataclass(frozen=True, slots=True)
class MemberClaims:
    """Reads and writes the claims about members, each at its path."""

    name: tuple[str, ...] = ("name",)
    email: tuple[str, ...] = ("email",)
    roles: tuple[str, ...] = ("roles",)
    groups: Mapping[str, Role] | None = None
    """The roles of groups; None if a group is a role that is called like it."""
    proves_email: bool = True
    """Whether `email_verified` is believed."""
    takes_unproven: bool = False
    """Whether an address counts of which nothing is said."""

    @classmethod
    def of(cls, settings: Settings) -> MemberClaims:
        """Those of the provider's tokens, and of our own."""
        return cls(
            settings.jwt_name_claim,
            settings.jwt_email_claim,
            settings.jwt_roles_claim,
            settings.jwt_roles,
            proves_email=settings.token_issuer is not None,
            takes_unproven=True,
        )

    def parse_member(self, claims: dict[str, Any], source: Source) -> Viewer:
        """Whom verified claims name, not looked for yet; or Unauthenticated."""
        sub = _parse_sub(claims["sub"])
        issuer = "" if source is Source.OWN else claims["iss"]
        proven = of_issuer(SignInMethod.PROVIDER if source is Source.PROVIDER else SignInMethod.SITE, issuer, sub)
        name, email = _claim(claims, self.name), _claim(claims, self.email)
        if not isinstance(name, str | None) or not isinstance(email, str | None):
            raise Unauthenticated("The token's name and email must be text.")
        said = self._verified(claims)
        is_proven = self.proves_email and any(value in (True, "true") for value in said)
        is_denied = any(value in (False, "false") for value in said)
        if not email or not is_email_address(email) or is_denied or not (is_proven or self.takes_unproven):
            email = None
        return Viewer(
            id=NEW_PREFIX + proven.key.hash,
            kind=Kind.MEMBER,
            name=_name(name, sub),
            email=email,
            roles=self._parse_roles(_claim(claims, self.roles)) | {Role.MEMBER},
            verified_email=email if is_proven else None,
            proven=proven,
        )

    def write(self, claims: dict[str, Any], name: str | None, email: str | None, roles: Iterable[Role]) -> None:
        """Add the claims that `parse_member` reads. ValueError for a role that no group has."""
        for path, value in ((self.name, name), (self.email, email), (self.roles, self._group_names(roles))):
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
        if self.groups is None:
            return frozenset(role for role in Role if role in names)
        return frozenset(role for group, role in self.groups.items() if group in names)

    def _verified(self, claims: dict[str, Any]) -> list[bool | str]:
        """The values of `email_verified`, next to the email claim or at the top level. Cognito may send text."""
        said = (claims.get("email_verified"), _claim(claims, (*self.email[:-1], "email_verified")))
        return [value for value in said if isinstance(value, bool | str)]

    def _group_names(self, roles: Iterable[Role]) -> list[str]:
        if self.groups is None:
            return sorted(roles)
        groups = {role: group for group, role in self.groups.items()}
        if missing := [role for role in roles if role not in groups and role is not Role.MEMBER]:
            raise ValueError(f"RINGSIDE_JWT_ROLES gives no group the role {missing[0].value}.")
        return sorted(groups[role] for role in roles if role in groups)


def _claim(claims: dict[str, Any], path: Iterable[str]) -> Any:
    """The value at a path, or None if there is none."""
    value: Any = claims
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _name(name: str | None, sub: str) -> str | None:
    """The name to show, if any: neither the `sub` nor an address, which only the member and admins may see."""
    # Replaced, not refused: members cannot change what their provider says of them.
    shown = " ".join(CONTROL_CHARACTERS.sub(" ", name or "").split())
    return None if shown == sub or is_email_address(shown) else shown[:MAX_NAME_LENGTH] or None


def _parse_sub(sub: str) -> str:
    try:
        size = len(sub.encode())
    except UnicodeEncodeError:
        size = 0
    if not 0 < size <= MAX_SUB_LENGTH:
        raise Unauthenticated(f"The token's sub is not text of 1 to {MAX_SUB_LENGTH} bytes.")
    return sub


# ── tokens ──

MAX_TOKEN_LENGTH = 8192
CLOCK_SKEW_SECONDS = 30.0
LONGEST_OF_SITES = 86_400.0
"""Seconds for which a site's token may be valid."""
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
        self._claims, self._claims_of_sites = MemberClaims.of(settings), MemberClaims()
        if settings.has_provider and not settings.token_audience and not settings.jwt_client_ids:
            log.warning("RINGSIDE_JWT_AUDIENCE is not set: the provider's tokens for other services are accepted too")
        self._clock = clock
        self._cached: BoundedDict[bytes, _Cached] = BoundedDict(MAX_CACHED)

    async def member(self, token: str) -> tuple[Viewer, float]:
        """Whom a token names, not looked for yet, and when it expires; or Unauthenticated, or Unverifiable."""
        if len(token) > MAX_TOKEN_LENGTH:
            raise Unauthenticated(f"The token has more than {MAX_TOKEN_LENGTH} characters.")
        digest = sha256(token.encode("utf-8", "surrogatepass")).digest()
        now = self._clock()
        cached = self._cached.get(digest)
        if cached and cached.since <= now < cached.until:  # nor before: the clock may have been corrected
            return cached.viewer, cached.expires_at
        verified = await self._verified(token)
        viewer, expires_at = self._member(verified), parse_expiry(verified.claims, now)
        if verified.source is Source.SITE and expires_at > now + LONGEST_OF_SITES + CLOCK_SKEW_SECONDS:
            raise Unauthenticated("The token's exp is more than 24 hours ahead: sites sign members in for a day.")
        self._cached[digest] = _Cached(viewer, expires_at, now, min(expires_at, now + CACHED_SECONDS))
        return viewer, expires_at

    async def close(self) -> None:
        """Close the connection to the identity provider."""
        if self._verifier:
            await self._verifier.close()

    def _member(self, verified: Verified) -> Viewer:
        claims = self._claims_of_sites if verified.source is Source.SITE else self._claims
        viewer = claims.parse_member(verified.claims, verified.source)
        roles = viewer.roles if verified.gives_roles else frozenset({Role.MEMBER})
        return replace(viewer, roles=roles, token_roles=roles)

    async def _verified(self, token: str) -> Verified:
        if self._verifier is None:
            # Importing cryptography takes 9 MB and 60 ms, which a service without members does not need.
            module = await asyncio.to_thread(import_module, "server.auth.jwt_verification")
            self._verifier = self._verifier or module.JWTVerifier(self._settings)
        return await self._verifier.verify(token)


def mint(
    settings: Settings,
    user: str,
    *,
    name: str | None = None,
    email: str | None = None,
    roles: Iterable[Role] = (),
    lifetime: timedelta = timedelta(days=7),
) -> str:
    """A development token, signed with the first secret. ValueError if it would be refused, with the reason."""
    if settings.has_provider:
        raise ValueError("An OIDC provider is set: get a token from it, others are refused.")
    if settings.site_keys:
        raise ValueError("RINGSIDE_SITE_KEYS is set: sign a token with one of its keys, others are refused.")
    now = int(time.time())
    claims = {
        "iss": settings.token_issuer or "ringside",
        "aud": settings.jwt_audience,
        "sub": user,
        "iat": now,
        "exp": now + int(lifetime.total_seconds()),
    }
    claims = {claim: value for claim, value in claims.items() if value is not None}
    member_claims = MemberClaims.of(settings)
    member_claims.write(claims, name, email, roles)
    try:
        member_claims.parse_member(claims, Source.OWN)
    except Unauthenticated as error:
        raise ValueError(error.detail) from None
    import jwt  # noqa: PLC0415 - see Tokens

    return jwt.encode(claims, settings.secrets[0].get_secret_value().encode(), algorithm="HS256")


def parse_expiry(claims: dict[str, Any], now: float) -> float:
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


# ── proofs of purchase ──


class ProofReader:
    """Knows the shops of the settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._verifier: ProofVerifier | None = None

    async def read(self, proof: str) -> Mapping[str, Any]:
        """The claims of a proof; InvalidInput if no shop of the settings signed it for this purpose."""
        if self._verifier is None:  # loaded only when it is needed, as by server.auth.tokens
            module = await asyncio.to_thread(import_module, "server.auth.jwt_verification")
            self._verifier = self._verifier or module.ProofVerifier(self._settings)
        try:
            return (await self._verifier.verify(proof)).claims
        except Unauthenticated as error:
            raise refused(f"This proof does not hold. {error.detail}") from None
        except Unverifiable:
            raise Unavailable("Proofs cannot be checked right now: the shop's keys cannot be fetched.") from None

    async def close(self) -> None:
        """Close the connections to shops."""
        if self._verifier is not None:
            await self._verifier.close()
