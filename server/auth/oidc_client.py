"""Signing in at the OIDC provider by the service's own page: the authorization code flow, with PKCE.

    /sign-in ── POST ──► provider ── code and state ──► /sign-in/callback ── code and verifier ──► provider
                                                                          ◄── an ID token with our nonce ──

What belongs together is in a cookie of this flow: the state that comes back, the nonce that the ID token repeats, and
the verifier without which the code is worth nothing. It is sealed and lasts ten minutes. The ID token is checked as a
bearer token is, but its audience is our client.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from hmac import compare_digest
from math import inf
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import httpx
import orjson

from datastore.dynamo import ReadCache, Reads
from datastore.members.sessions import LONGEST
from datastore.values.seal import Seal
from resolvers.requests.context import Viewer
from server.auth.jwt_verification import FETCH_SECONDS, FRESH_SECONDS, MAX_BYTES, JWTVerifier, log, parse_endpoint
from server.auth.tokens import LATEST_SECONDS, MemberClaims, parse_expiry
from server.auth.verification import Unauthenticated, Unverifiable
from server.settings import Settings

FLOW_SECONDS = 600
SCOPE = "openid email profile"
_PURPOSE = "sign-in at the provider"


class NotSignedInThere(Exception):
    """The provider signed nobody in, or not by this flow; the message says why, for the log."""


class OfAnotherFlow(NotSignedInThere):
    """The answer is that of another sign-in, in another tab say, and this one still waits for its own."""


class Endpoints(NamedTuple):
    """Where the provider is asked, from its discovery document."""

    authorization: str
    token: str


@dataclass(frozen=True, slots=True)
class Flow:
    """One sign-in at the provider."""

    state: str
    nonce: str
    verifier: str
    expires: float
    asked: str
    """The query of the page that it leads back to."""
    adds_to: str | None = None
    """The member to whom the provider's identity is added; None to sign in."""

    def sealed(self, seal: Seal) -> str:
        fields = [self.state, self.nonce, self.verifier, self.expires, self.asked, self.adds_to]
        return seal.sign_text(_PURPOSE, orjson.dumps(fields))

    @classmethod
    def begin(cls, now: float, asked: str, adds_to: str | None) -> Flow:
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        return cls(state, nonce, verifier, now + FLOW_SECONDS, asked, adds_to)

    @classmethod
    def open(cls, seal: Seal, text: str) -> Flow:
        """Forged unless this service began it. It may have expired."""
        return cls(*orjson.loads(seal.open_text(_PURPOSE, text)))

    @property
    def challenge(self) -> str:
        return urlsafe_b64encode(sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()


class OidcClient:
    """The provider's client that the settings describe."""

    def __init__(self, settings: Settings, redirect: str, cache: ReadCache) -> None:
        self._settings, self._redirect = settings, redirect
        self.issuer = settings.oidc_issuer or ""
        self._client = settings.oidc_client_id or ""
        self._verifier = JWTVerifier(
            settings.model_copy(update={"jwt_audience": self._client, "jwt_client_ids": (), "site_keys": ()})
        )
        self._claims = MemberClaims.of(settings)
        self._http = httpx.AsyncClient(timeout=FETCH_SECONDS, follow_redirects=False)
        self._endpoints: Reads[str, Endpoints] = cache.each(
            "oidc_endpoints", self._read_endpoints, age=FRESH_SECONDS, kept=inf
        )

    async def close(self) -> None:
        await self._verifier.close()
        await self._http.aclose()

    async def address(self, flow: Flow) -> str:
        """Where the browser goes to sign in; NotSignedInThere if the provider does not answer."""
        endpoint = (await self._discovered()).authorization
        again = "again=1" in flow.asked.lstrip("?").split("&")
        query = {
            "response_type": "code",
            "client_id": self._client,
            "redirect_uri": self._redirect,
            "scope": SCOPE,
            "state": flow.state,
            "nonce": flow.nonce,
            "code_challenge": flow.challenge,
            "code_challenge_method": "S256",
            # With `max_age` the ID token says when they gave their password. Only `again` makes it ask for one.
            "max_age": "0" if again else str(int(LONGEST.total_seconds())),
            **({"prompt": "login"} if again else {}),
        }
        return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(query)}"

    async def member(self, flow: Flow, answer: Mapping[str, str]) -> tuple[Viewer, datetime | None]:
        """Whom the provider's answer names, and when they signed in there, if it says so; or NotSignedInThere."""
        if not compare_digest(answer.get("state", "").encode(), flow.state.encode()):
            raise OfAnotherFlow("the answer belongs to another sign-in")
        if flow.expires <= time.time():
            raise NotSignedInThere("the sign-in took too long")
        if answer.get("iss", self.issuer) != self.issuer:  # RFC 9207
            raise NotSignedInThere("the answer comes from another issuer")
        if "code" not in answer:
            raise NotSignedInThere(f"the provider refused: {answer.get('error', 'without a reason')[:80]}")
        token = await self._id_token(answer["code"], flow)
        try:
            verified = await self._verifier.verify(token)
            viewer = self._claims.parse_member(verified.claims, verified.source)
            parse_expiry(verified.claims, time.time())
        except (Unauthenticated, Unverifiable) as refused:
            raise NotSignedInThere(refused.detail) from None
        _validate_flow(verified.claims, flow, self._client)
        return viewer, _signed_in_at(verified.claims)

    async def _id_token(self, code: str, flow: Flow) -> str:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect,
            "code_verifier": flow.verifier,
            "client_id": self._client,
        }
        secret = self._settings.oidc_client_secret
        if secret is not None:
            form["client_secret"] = secret.get_secret_value()
        answer = await self._asked("POST", (await self._discovered()).token, form)
        token = answer.get("id_token") if isinstance(answer, dict) else None
        if not isinstance(token, str):
            raise NotSignedInThere("the provider gave no ID token")
        return token

    async def _discovered(self) -> Endpoints:
        endpoints = await self._endpoints.load(self.issuer)
        assert endpoints is not None  # noqa: S101 - a read that finds none raises
        return endpoints

    async def _read_endpoints(self, issuer: str) -> Endpoints:
        """What the discovery document says; what it said before, if it cannot be read again."""
        try:
            document = await self._asked("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
            return _parse_endpoints(document, issuer)
        except NotSignedInThere as failed:
            known = self._endpoints.known(issuer, inf)
            if known is None:
                raise
            log.warning("oidc endpoints not read again", reason=str(failed))
            return known

    async def _asked(self, method: str, url: str, form: Mapping[str, str] | None = None) -> Any:
        body = bytearray()
        try:
            async with (
                asyncio.timeout(FETCH_SECONDS),
                self._http.stream(method, url, data=form, headers={"accept": "application/json"}) as response,
            ):
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MAX_BYTES:
                        raise NotSignedInThere(f"the provider sent more than {MAX_BYTES} bytes")
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, TimeoutError) as error:  # ValueError: an impossible host
            raise NotSignedInThere(f"the provider did not answer: {type(error).__name__}: {error}"[:300]) from None
        try:
            answer = orjson.loads(body)
        except ValueError:
            answer = None
        if answer is None or not response.is_success:
            reason = answer.get("error") if isinstance(answer, dict) else "without a reason in JSON"
            raise NotSignedInThere(f"{url} answered {response.status_code}: {reason}"[:300])
        return answer


def _parse_endpoints(document: Any, issuer: str) -> Endpoints:
    names = (f"{name}_endpoint" for name in Endpoints._fields)
    try:
        return Endpoints(*(parse_endpoint(name, document, issuer) for name in names))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise NotSignedInThere(f"its discovery document is wrong: {reason}"[:300]) from None


def _validate_flow(claims: Mapping[str, Any], flow: Flow, client: str) -> None:
    """NotSignedInThere unless the ID token was issued for this flow and this client."""
    nonce = claims.get("nonce")
    if not isinstance(nonce, str) or not compare_digest(nonce.encode(), flow.nonce.encode()):
        raise NotSignedInThere("the ID token has another nonce")
    several = isinstance(claims.get("aud"), list) and len(claims["aud"]) > 1
    if claims.get("azp", None if several else client) != client:
        raise NotSignedInThere("the ID token was issued to another client")


def _signed_in_at(claims: Mapping[str, Any]) -> datetime | None:
    """When the provider asked the person who they are: before that, its own session has answered for them."""
    at: Any = claims.get("auth_time")
    is_time = type(at) in (int, float) and 0 <= at <= LATEST_SECONDS
    return datetime.fromtimestamp(at, UTC) if is_time else None
