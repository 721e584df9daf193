"""Tokens of a provider, whose keys are fetched from a real server, seldom and patiently."""

import asyncio
import hmac
import json
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http.server import ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.warnings import InsecureKeyLengthWarning
from pydantic import SecretStr
from structlog.testing import capture_logs

from server.auth.jwt_verification import COOLDOWN, FRESH_SECONDS, JWKS, MAX_BYTES, STALE_SECONDS
from server.auth.tokens import Tokens, mint
from server.auth.verification import Unauthenticated, Unverifiable
from server.settings import Settings
from tests.http_server import Answering, serving_http
from tests.waiting import LONGEST

SECRET = "the secret of the service, not the provider"
RSA = rsa.generate_private_key(65537, 2048)
SHORT_RSA = rsa.generate_private_key(65537, 1024)
EC = ec.generate_private_key(ec.SECP256R1())
P384 = ec.generate_private_key(ec.SECP384R1())
ED = ed25519.Ed25519PrivateKey.generate()

Private = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


def public(key: Private, kid: str | None, **more: object) -> dict[str, Any]:
    if isinstance(key, rsa.RSAPrivateKey):
        jwk = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    elif isinstance(key, ec.EllipticCurvePrivateKey):
        jwk = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    else:
        jwk = OKPAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {**jwk, **({"kid": kid} if kid else {}), **more}


def signed(key: Private | str, algorithm: str, kid: str | None = None, **claims: object) -> str:
    whole = {"sub": "auth0|ann", "exp": int(time.time()) + 86_400, "aud": "ringside", "iss": "https://login/"} | claims
    return jwt.encode(whole, key, algorithm=algorithm, headers={"kid": kid} if kid else None)


with pytest.warns(InsecureKeyLengthWarning):
    SHORT = signed(SHORT_RSA, "RS256", "short")


def confused(key: rsa.RSAPrivateKey) -> str:
    """Sign with the public key as if it were a secret: the old attack on verifiers that trust the header's `alg`."""
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    _, payload, _ = signed(key, "RS256").split(".")
    signing = _text(b'{"alg":"HS256","kid":"one"}') + f".{payload}"
    return f"{signing}.{_text(hmac.digest(pem, signing.encode(), 'sha256'))}"


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


class Provider(ThreadingHTTPServer):
    """A provider's key address: what it answers can be changed, and its visits are counted."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.body = b""
        self.status = 200
        self.visits = 0
        self.answering = threading.Event()
        self.answering.set()
        self.asked = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/jwks"

    def publish(self, *keys: Any) -> None:
        self.body = json.dumps({"keys": keys}).encode()


class Answer(Answering):
    server: Provider
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.visits += 1
        self.server.asked.set()
        self.server.answering.wait(LONGEST)
        self.answer(self.server.status, self.server.body, {"location": "/elsewhere"})


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving_http(Provider()) as server:
        server.publish(public(RSA, "one"), public(EC, "two"), public(ED, "three"))
        yield server
        server.answering.set()


def deployment(url: str, **more: Any) -> Settings:
    return Settings(
        jwks_url=url, secrets=(SecretStr(SECRET),), jwt_audience="ringside", jwt_issuer="https://login/", **more
    )


@asynccontextmanager
async def judge(provider: Provider) -> AsyncIterator[Tokens]:
    tokens = Tokens(deployment(provider.url))
    try:
        yield tokens
    finally:
        await tokens.close()


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def keys_of(provider: Provider) -> AsyncIterator[tuple[JWKS, Clock]]:
    clock = Clock()
    keys = JWKS(provider.url, clock=clock)
    try:
        yield keys, clock
    finally:
        await keys.close()


@pytest.mark.parametrize(
    ("key", "algorithm", "kid"), [(RSA, "RS256", "one"), (EC, "ES256", "two"), (ED, "EdDSA", "three")]
)
async def test_the_pinned_algorithms_are_taken(provider: Provider, key: Private, algorithm: str, kid: str) -> None:
    """With the key's name, and without it when only one key fits."""
    async with judge(provider) as tokens:
        assert (proven := (await tokens.member(signed(key, algorithm, kid)))[0].proven)
        assert proven.subject == "auth0|ann"
        assert (proven := (await tokens.member(signed(key, algorithm)))[0].proven)
        assert proven.subject == "auth0|ann"
    assert provider.visits == 1


async def test_everything_else_is_refused(provider: Provider) -> None:
    """Other algorithms or keys under a known name, the public key as an HMAC secret, our own tokens, none at all."""
    impostor = rsa.generate_private_key(65537, 2048)
    foreign = [
        signed(RSA, "RS512", "one"),
        signed(RSA, "PS256", "one"),
        signed(impostor, "RS256", "one"),
        signed(EC, "ES256", "one"),
        confused(RSA),
        signed(SECRET, "HS256"),
        mint(Settings(secrets=(SecretStr(SECRET),), jwt_audience="ringside", jwt_issuer="https://login/"), "ann"),
        signed("", "none"),
        "nonsense",
    ]
    async with judge(provider) as tokens:
        for token in foreign:
            with pytest.raises(Unauthenticated):
                await tokens.member(token)


async def test_audience_issuer_and_expiry_are_checked(provider: Provider) -> None:
    """A good signature is not enough."""
    async with judge(provider) as tokens:
        for claims in ({"aud": "other"}, {"iss": "https://evil/"}, {"exp": 1}, {"sub": ""}):
            with pytest.raises(Unauthenticated):
                await tokens.member(signed(RSA, "RS256", "one", **claims))


@pytest.mark.parametrize(
    "key",
    [
        public(SHORT_RSA, "short"),
        public(P384, "short"),
        public(RSA, "short", use="enc"),
        public(RSA, "short", alg="RS512"),
        {"kty": "oct", "k": "c2VjcmV0", "kid": "short", "alg": "HS256"},
        {"kty": "oct", "k": "c2VjcmV0", "kid": "short", "alg": "RS256"},
    ],
)
async def test_weak_and_foreign_keys_are_not_used(provider: Provider, key: dict[str, Any]) -> None:
    """Whatever the provider publishes, only strong public signing keys count."""
    provider.publish(public(EC, "two"), key)
    async with judge(provider) as tokens:
        for token in (SHORT, signed(RSA, "RS256", "short"), signed(P384, "ES384", "short")):
            with pytest.raises(Unauthenticated):
                await tokens.member(token)


async def test_keys_of_unknown_kinds_are_skipped(provider: Provider) -> None:
    """One odd entry does not cost the others."""
    provider.publish({}, [], 7, None, {"kty": "RSA"}, {"kty": "LMS", "kid": "x"}, public(RSA, "one"))
    async with judge(provider) as tokens:
        assert (proven := (await tokens.member(signed(RSA, "RS256", "one")))[0].proven)
        assert proven.subject == "auth0|ann"


async def test_a_token_without_a_key_id_is_not_tried_against_every_key(provider: Provider) -> None:
    """Two keys fit, so it has to say which."""
    provider.publish(public(RSA, "one"), public(rsa.generate_private_key(65537, 2048), "other"))
    async with judge(provider) as tokens:
        with pytest.raises(Unauthenticated):
            await tokens.member(signed(RSA, "RS256"))


async def test_a_new_key_is_found_when_it_is_first_used(provider: Provider) -> None:
    """Rotation at the provider: the unknown name leads to one fetch, and the token is good."""
    async with keys_of(provider) as (keys, clock):
        assert await keys.find("one", "RS256")
        provider.publish(public(EC, "next"))
        clock.now += COOLDOWN
        assert await keys.find("next", "ES256")
        assert await keys.find("one", "RS256") is None
    assert provider.visits == 2


async def test_many_unknown_key_ids_cause_one_fetch(provider: Provider) -> None:
    """A thousand invented names at once and in a row: the provider is asked once in ten seconds."""
    async with keys_of(provider) as (keys, clock):
        await keys.find("one", "RS256")
        clock.now += COOLDOWN
        found = await asyncio.gather(*(keys.find(f"invented-{n}", "RS256") for n in range(500)))
        found += [await keys.find(f"invented-{n}", "RS256") for n in range(500)]
        assert not any(found)
        assert provider.visits == 2
        clock.now += COOLDOWN
        await keys.find("invented", "RS256")
    assert provider.visits == 3


async def test_the_first_requests_share_one_fetch(provider: Provider) -> None:
    """And one who gives up does not take it from the others."""
    provider.answering.clear()
    async with keys_of(provider) as (keys, _):
        impatient, *others = [asyncio.create_task(keys.find("one", "RS256")) for _ in range(20)]
        await asyncio.to_thread(provider.asked.wait, LONGEST)
        impatient.cancel()
        provider.answering.set()
        assert all(await asyncio.gather(*others))
    assert provider.visits == 1


async def test_old_keys_are_refreshed_in_the_background(provider: Provider) -> None:
    """The request that notices does not wait; a key withdrawn by the provider is gone afterwards."""
    async with keys_of(provider) as (keys, clock):
        await keys.find("one", "RS256")
        provider.publish(public(EC, "next"))
        provider.answering.clear()
        clock.now += FRESH_SECONDS + 1
        assert await keys.find("one", "RS256")
        provider.answering.set()
        assert await keys.find("next", "ES256")
        assert await keys.find("one", "RS256") is None
    assert provider.visits == 2


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b"{}"),
        (302, b"{}"),
        (200, b"<html>"),
        (200, b"[]"),
        (200, b'{"keys": 7}'),
        (200, b'{"keys": []}'),
        (200, json.dumps({"keys": [public(RSA, "unknown")]}).encode().ljust(MAX_BYTES + 1)),
        (200, b"\xff"),
    ],
)
async def test_the_last_keys_are_used_while_the_provider_fails(provider: Provider, status: int, body: bytes) -> None:
    """Errors, redirections, nonsense, emptiness, floods: said in the log, and otherwise without effect."""
    async with keys_of(provider) as (keys, clock):
        await keys.find("one", "RS256")
        provider.status, provider.body = status, body
        clock.now += COOLDOWN
        with capture_logs() as logs:
            assert await keys.find("unknown", "RS256") is None
        assert [entry["event"] for entry in logs] == ["oidc keys not fetched"]
        assert await keys.find("one", "RS256")
    assert provider.visits == 2


async def test_keys_that_could_not_be_refreshed_for_a_day_are_rejected(provider: Provider) -> None:
    """By then one may have been withdrawn for a reason."""
    async with keys_of(provider) as (keys, clock):
        await keys.find("one", "RS256")
        provider.status = 500
        clock.now += STALE_SECONDS
        with pytest.raises(Unverifiable):
            await keys.find("one", "RS256")


async def test_a_provider_that_was_never_reached_is_a_server_error(provider: Provider) -> None:
    """Not a forged token: come back later. It is asked again after the cooldown, and then all is well."""
    provider.status = 503
    async with keys_of(provider) as (keys, clock):
        for _ in range(5):
            with pytest.raises(Unverifiable) as unavailable:
                await keys.find("one", "RS256")
        assert unavailable.value.headers == {"Retry-After": f"{COOLDOWN:.0f}"}
        assert provider.visits == 1
        provider.status = 200
        clock.now += COOLDOWN
        assert await keys.find("one", "RS256")


async def test_a_refused_connection_to_the_provider_is_a_server_error() -> None:
    """A connection refused is no exception that reaches the caller."""
    with Provider() as gone:
        url = gone.url
    keys = JWKS(url)
    with pytest.raises(Unverifiable):
        await keys.find("one", "RS256")
    await keys.close()


@pytest.mark.slow
async def test_a_provider_that_never_answers_times_out(provider: Provider) -> None:
    """FETCH_SECONDS bounds the whole fetch."""
    provider.answering.clear()
    async with keys_of(provider) as (keys, _):
        with pytest.raises(Unverifiable):
            await keys.find("one", "RS256")


async def test_closing_cancels_a_fetch_in_flight(provider: Provider) -> None:
    """The service stops without waiting for a stranger."""
    provider.answering.clear()
    keys = JWKS(provider.url)
    waiting = asyncio.create_task(keys.find("one", "RS256"))
    await asyncio.to_thread(provider.asked.wait, LONGEST)
    await keys.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting


def test_a_provider_without_an_audience_is_logged_as_a_warning() -> None:
    """Its tokens for other services would pass."""
    with capture_logs() as logs:
        Tokens(
            Settings(
                jwks_url="https://login.example.com/jwks", jwt_issuer="https://login/", secrets=(SecretStr(SECRET),)
            )
        )
    assert "RINGSIDE_JWT_AUDIENCE is not set" in logs[0]["event"]
