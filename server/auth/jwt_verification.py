"""Verifies a token's signature, by the key of its issuer alone. tokens.py has the rules of claims."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple

import httpx
import jwt
import orjson
import structlog
from jwt import PyJWK, PyJWTError
from jwt.exceptions import InvalidSubjectError

from datastore.dynamo import SingleFlight, shared_context
from server.auth.verification import Source, Unauthenticated, Unverifiable, Verified
from server.settings import Settings
from server.settings.values import TokenKey, parse_jwks_address

# ── keys ──

ALGORITHMS = ("RS256", "ES256", "EdDSA")

FRESH_SECONDS = 300.0
"""After these, keys are refreshed in the background."""

STALE_SECONDS = 86_400.0
"""After these, keys that could not be refreshed are no longer used."""

COOLDOWN = 10.0
"""Seconds, at least, between two fetches. A key that the provider has just made waits no longer than this."""

FETCH_SECONDS = 5.0
"""For one fetch, discovery included, from the connection to the last byte."""

MAX_BYTES = 262_144
"""Some hundred keys; a provider has two or three. A discovery document has some kilobytes."""

log = structlog.get_logger("ringside.oidc")


class JWKS:
    """The signing keys at a provider's address, or with `issuer` those that its discovery document names."""

    def __init__(
        self, url: str | None = None, *, issuer: str | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._url = url or f"{(issuer or '').rstrip('/')}/.well-known/openid-configuration"
        self._issuer = None if url else issuer
        self._clock = clock
        self._keys: list[PyJWK] = []
        self._fetched_at = 0.0
        self._next_fetch_at = float("-inf")
        self._fetches: SingleFlight[str, None] = SingleFlight(shared_context)
        self._http: httpx.AsyncClient | None = None

    async def find(self, kid: str | None, algorithm: str) -> PyJWK | None:
        """The key with an id; without an id, the only key of the algorithm. Unverifiable if there are none yet."""
        if not self._usable():
            await self._refreshed()
            if not self._usable():
                raise Unverifiable(
                    "Tokens cannot be checked right now, since the provider of their keys does not answer.", COOLDOWN
                )
        elif self._age() > FRESH_SECONDS and self._may_fetch():
            self._fetches.begin(self._url, self._fetch)
        key = self._pick(kid, algorithm)
        if key is None and await self._refreshed():
            key = self._pick(kid, algorithm)
        return key

    async def close(self) -> None:
        """Cancel a fetch under way and close its connection."""
        await self._fetches.close()
        if self._http:
            await self._http.aclose()

    def _age(self) -> float:
        return self._clock() - self._fetched_at

    def _usable(self) -> bool:
        return bool(self._keys) and self._age() < STALE_SECONDS

    def _pick(self, kid: str | None, algorithm: str) -> PyJWK | None:
        matching = [key for key in self._keys if key.algorithm_name == algorithm and kid in (None, key.key_id)]
        return matching[0] if len(matching) == 1 or (matching and kid is not None) else None

    async def _refreshed(self) -> bool:
        """Wait for a fetch, if one is due or under way."""
        if not self._may_fetch():
            return False
        await self._fetches.run(self._url, self._fetch)
        return True

    def _may_fetch(self) -> bool:
        return self._url in self._fetches or self._clock() >= self._next_fetch_at

    async def _fetch(self) -> None:
        self._next_fetch_at = self._clock() + COOLDOWN
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                keys = _signing_keys(orjson.loads(await self._download(await self._keys_address())))
        except Exception as error:  # noqa: BLE001 - whatever goes wrong at the provider, the last keys stay in use
            log.warning("oidc keys not fetched", url=self._url, error=type(error).__name__, reason=str(error))
            return
        if not keys:
            log.warning("oidc keys not fetched", url=self._url, reason=f"no signing key for {', '.join(ALGORITHMS)}")
            return
        self._keys, self._fetched_at = keys, self._clock()

    async def _keys_address(self) -> str:
        if self._issuer is None:
            return self._url
        return parse_endpoint("jwks_uri", orjson.loads(await self._download(self._url)), self._issuer)

    async def _download(self, url: str) -> bytes:
        self._http = self._http or httpx.AsyncClient(timeout=FETCH_SECONDS, follow_redirects=False)
        body = bytearray()
        async with self._http.stream("GET", url, headers={"accept": "application/json"}) as response:
            response.raise_for_status()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_BYTES:
                    raise ValueError(f"more than {MAX_BYTES} bytes")
        return bytes(body)


def parse_endpoint(name: str, document: Any, issuer: str) -> str:
    """An address in a discovery document, which must be of this very issuer."""
    if document["issuer"] != issuer:
        raise ValueError(f"RINGSIDE_OIDC_ISSUER is not the provider's issuer, {str(document['issuer'])[:200]!r}")
    address = parse_jwks_address(document[name])
    if issuer.startswith("https:") and not address.startswith("https:"):
        raise ValueError(f"{name} does not start with https://")
    return address


def _signing_keys(document: Any) -> list[PyJWK]:
    """The public signing keys of the accepted algorithms, without those that cannot be parsed."""
    keys = []
    for entry in document["keys"]:
        with suppress(PyJWTError, ValueError, TypeError, KeyError, AttributeError):
            if entry.get("use", "sig") == "sig" and (key := PyJWK(entry)).algorithm_name in ALGORITHMS:
                keys.append(key)
    return keys


# ── jwt verification ──

PROOF_AUDIENCE = "ringside-proof"

_REASONS: dict[type[Exception], str] = {
    jwt.InvalidSignatureError: "The token was not signed by a key known here, or was altered.",
    jwt.InvalidAlgorithmError: "The token's algorithm is not accepted here.",
    jwt.InvalidAudienceError: "The token is meant for another audience.",
    jwt.InvalidIssuerError: "The token comes from another issuer.",
    InvalidSubjectError: "The token's sub must be text.",
}


class _Issuer(NamedTuple):
    """An issuer whose tokens are accepted, by its own key alone."""

    source: Source
    keys: JWKS | list[bytes]
    audience: str | None = None
    client_ids: tuple[str, ...] = ()
    name: str | None = None
    """Its `iss`; None if any will do."""
    gives_roles: bool = True


class JWTVerifier:
    """Verifies the tokens that these settings accept: the `iss` of a token says which key, and so which algorithm."""

    required: ClassVar = ("sub", "exp")

    def __init__(self, settings: Settings) -> None:
        self._issuers = {key.issuer: _site(key, settings.public_url) for key in settings.site_keys}
        if settings.has_provider:
            keys = JWKS(settings.jwks_url, issuer=settings.oidc_issuer)
            name, audience, clients = settings.token_issuer, settings.token_audience, settings.jwt_client_ids
            self._issuers[name or ""] = _Issuer(Source.PROVIDER, keys, audience, clients, name)
        self._own = None if settings.has_provider or settings.site_keys else _own(settings)

    async def close(self) -> None:
        """Close the connections to those whose keys are fetched."""
        for issuer in self._issuers.values():
            if isinstance(issuer.keys, JWKS):
                await issuer.keys.close()

    async def verify(self, token: str) -> Verified:
        """The verified claims, or Unauthenticated, or Unverifiable when the keys cannot be fetched."""
        try:
            issuer = self._issuer(token)
            claims = await self._verify(token, issuer)
            _validate_audience(claims, issuer)
        except jwt.MissingRequiredClaimError as error:
            raise Unauthenticated(f"The token has no {error.claim}.") from None
        except jwt.PyJWTError as error:
            raise Unauthenticated(_REASONS.get(type(error), "The token is not a JSON Web Token.")) from None
        except (ValueError, RecursionError):  # lone surrogates, numbers of thousands of digits, deep nesting
            raise Unauthenticated("The token is not a JSON Web Token.") from None
        return Verified(claims, issuer.source, issuer.gives_roles)

    def _issuer(self, token: str) -> _Issuer:
        """The issuer that a token names, which nothing has verified yet."""
        if self._own is not None:
            return self._own
        name = jwt.decode(token, options={"verify_signature": False}).get("iss")
        if name is None:
            raise jwt.MissingRequiredClaimError("iss")
        issuer = self._issuers.get(name) if isinstance(name, str) else None
        if issuer is None:
            raise jwt.InvalidIssuerError
        return issuer

    async def _verify(self, token: str, issuer: _Issuer) -> dict[str, Any]:
        if not isinstance(issuer.keys, JWKS):
            for secret in issuer.keys[:-1]:
                with suppress(jwt.InvalidSignatureError):
                    return self._decode(token, secret, ("HS256",), issuer.name)
            return self._decode(token, issuer.keys[-1], ("HS256",), issuer.name)
        header = jwt.get_unverified_header(token)
        if header.get("alg") not in ALGORITHMS:
            raise jwt.InvalidAlgorithmError
        key = await issuer.keys.find(header.get("kid"), header["alg"])
        if key is None:
            raise jwt.InvalidSignatureError
        return self._decode(token, key, ALGORITHMS, issuer.name)

    def _decode(
        self, token: str, key: bytes | PyJWK, algorithms: tuple[str, ...], issuer: str | None
    ) -> dict[str, Any]:
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=algorithms,
            issuer=issuer,
            options={
                "require": list(self.required),
                "verify_aud": False,  # see _validate_audience
                "verify_iss": issuer is not None,
                # tokens.py checks times, against a clock that tests can move. An iat in the future is accepted.
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
                "enforce_minimum_key_length": True,
            },
        )
        return claims


class ProofVerifier(JWTVerifier):
    """Verifies the proofs of purchase that shops have signed."""

    required = ("iat", "exp")

    def __init__(self, settings: Settings) -> None:
        self._issuers = {key.issuer: _site(key, PROOF_AUDIENCE) for key in settings.proof_keys}
        self._own = None


def _own(settings: Settings) -> _Issuer:
    secrets = [secret.get_secret_value().encode() for secret in settings.secrets]
    return _Issuer(Source.OWN, secrets, settings.jwt_audience, name=settings.jwt_issuer)


def _site(key: TokenKey, audience: str) -> _Issuer:
    keys = JWKS(key.jwks) if key.hs256 is None else [key.hs256.get_secret_value().encode()]
    return _Issuer(Source.SITE, keys, audience, name=key.issuer, gives_roles=key.roles)


def _validate_audience(claims: dict[str, Any], issuer: _Issuer) -> None:
    """Once an audience or clients are set, a token without `aud` counts only as an access token of such a client.

    Cognito's access tokens have no `aud`. Any `aud`, also null, must be right.
    """
    if issuer.audience is None and not issuer.client_ids:
        return
    if "aud" not in claims:
        if not issuer.client_ids or claims.get("token_use") != "access":
            raise jwt.MissingRequiredClaimError("aud")
        if claims.get("client_id") not in issuer.client_ids:
            raise Unauthenticated("The token was issued to another client.")
        return
    audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    if issuer.audience is None or issuer.audience not in audiences:
        raise jwt.InvalidAudienceError
