"""The public keys of an OIDC provider (JWKS): fetched without blocking, cached, and refetched with a cooldown.

Old keys are refreshed in the background. A token that names an unknown key causes a fetch at once, but at most one in
COOLDOWN seconds, whatever clients send. While the provider does not answer, the last keys stay in use.

The keys' address is a setting, or the provider's discovery document says it, which is then read with each fetch of the
keys.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx
import orjson
import structlog
from jwt import PyJWK, PyJWTError

from datastore.dynamo import SingleFlight, shared_context
from server.auth.errors import Unverifiable
from server.settings.values import parse_jwks_address

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
        return parse_keys_address(orjson.loads(await self._download(self._url)), self._issuer)

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


def parse_keys_address(document: Any, issuer: str) -> str:
    """The address of the keys in a discovery document, which must be of this very issuer."""
    if document["issuer"] != issuer:
        raise ValueError(f"RINGSIDE_OIDC_ISSUER is not the provider's issuer, {str(document['issuer'])[:200]!r}")
    address = parse_jwks_address(document["jwks_uri"])
    if issuer.startswith("https:") and not address.startswith("https:"):
        raise ValueError("jwks_uri does not start with https://")
    return address


def _signing_keys(document: Any) -> list[PyJWK]:
    """The public signing keys of the accepted algorithms, without those that cannot be parsed."""
    keys = []
    for entry in document["keys"]:
        with suppress(PyJWTError, ValueError, TypeError, KeyError, AttributeError):
            if entry.get("use", "sig") == "sig" and (key := PyJWK(entry)).algorithm_name in ALGORITHMS:
                keys.append(key)
    return keys
