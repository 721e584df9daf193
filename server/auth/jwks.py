"""The public keys of an OIDC provider: fetched without blocking, kept, and asked for again only so often.

Keys are refreshed in the background when they are old, and at once when a token names one that is not there, but
never more than once in COOLDOWN seconds, whatever strangers send. While the provider is away the last keys stand.
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
from server.auth.tokens import KeysUnavailable

ALGORITHMS = ("RS256", "ES256", "EdDSA")

FRESH = 300.0
"""Seconds after which keys are refreshed in the background."""

STALE = 86_400.0
"""Seconds after which keys that could not be refreshed are no longer believed."""

COOLDOWN = KeysUnavailable.retry_after
"""Seconds between two fetches at the least; a key that the provider has just made waits no longer than this."""

PATIENCE = 5.0
"""Seconds for one fetch, from the connection to the last byte."""

LARGEST = 262_144
"""Bytes: some hundred keys, where a provider has two or three."""

log = structlog.get_logger("ringside.oidc")


class KeySet:
    """What is known of the provider's keys."""

    def __init__(self, url: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._clock = clock
        self._keys: list[PyJWK] = []
        self._fetched_at = 0.0
        self._not_before = float("-inf")
        self._fetches: SingleFlight[str, None] = SingleFlight(shared_context)
        self._http: httpx.AsyncClient | None = None

    async def find(self, kid: str | None, algorithm: str) -> PyJWK | None:
        """Return the key that a token names; without a name, the only one that fits its algorithm."""
        if not self._known():
            await self._refreshed()
            if not self._known():
                raise KeysUnavailable
        elif self._age() > FRESH and self._may_fetch():
            self._fetches.begin(self._url, self._fetch)
        key = self._pick(kid, algorithm)
        if key is None and await self._refreshed():
            key = self._pick(kid, algorithm)
        return key

    async def close(self) -> None:
        """End a fetch under way and the connection behind it."""
        await self._fetches.close()
        if self._http:
            await self._http.aclose()

    def _age(self) -> float:
        return self._clock() - self._fetched_at

    def _known(self) -> bool:
        return bool(self._keys) and self._age() < STALE

    def _pick(self, kid: str | None, algorithm: str) -> PyJWK | None:
        fitting = [key for key in self._keys if key.algorithm_name == algorithm and kid in (None, key.key_id)]
        return fitting[0] if len(fitting) == 1 or (fitting and kid is not None) else None

    async def _refreshed(self) -> bool:
        """Wait for a fetch, if one is due or under way."""
        if not self._may_fetch():
            return False
        await self._fetches.run(self._url, self._fetch)
        return True

    def _may_fetch(self) -> bool:
        return self._url in self._fetches or self._clock() >= self._not_before

    async def _fetch(self) -> None:
        self._not_before = self._clock() + COOLDOWN
        try:
            async with asyncio.timeout(PATIENCE):
                keys = _usable(orjson.loads(await self._download()))
        except Exception as error:  # noqa: BLE001 - whatever a foreign server does, the keys at hand stand
            log.warning("oidc keys not fetched", url=self._url, error=type(error).__name__, reason=str(error))
            return
        if not keys:
            log.warning("oidc keys not fetched", url=self._url, reason=f"no signing key for {', '.join(ALGORITHMS)}")
            return
        self._keys, self._fetched_at = keys, self._clock()

    async def _download(self) -> bytes:
        self._http = self._http or httpx.AsyncClient(timeout=PATIENCE, follow_redirects=False)
        body = bytearray()
        async with self._http.stream("GET", self._url, headers={"accept": "application/json"}) as answer:
            answer.raise_for_status()
            async for piece in answer.aiter_bytes():
                body += piece
                if len(body) > LARGEST:
                    message = f"more than {LARGEST} bytes of keys"
                    raise ValueError(message)
        return bytes(body)


def _usable(document: Any) -> list[PyJWK]:
    """Return the public signing keys of the pinned algorithms; what is not understood is left out."""
    keys = []
    for key in document["keys"]:
        with suppress(PyJWTError, ValueError, TypeError, KeyError, AttributeError):
            if key.get("use", "sig") == "sig" and (usable := PyJWK(key)).algorithm_name in ALGORITHMS:
                keys.append(usable)
    return keys
