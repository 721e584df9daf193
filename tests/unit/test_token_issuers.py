"""A token counts by the key of its issuer alone: the provider's, a site's, or where nobody else signs our secret."""

import hmac
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http.server import ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import RSAAlgorithm

from resolvers.requests.context import Role
from server.auth.tokens import LONGEST_OF_SITES, Tokens, mint
from server.auth.verification import Unauthenticated
from server.settings import Settings
from tests.http_server import Answering, serving_http

OURS = "the secret of this service, which signs cookies"
SHOP = "the secret that the shop and this service share"
FORUM = "another secret, which the forum alone has got"
PUBLIC = "https://api.example.com"
PROVIDER, BLOG = (rsa.generate_private_key(65537, 2048) for _ in range(2))
KEYS = {"/provider": PROVIDER, "/blog": BLOG}


class _Keys(Answering):
    def do_GET(self) -> None:
        jwk = RSAAlgorithm.to_jwk(KEYS[self.path].public_key(), as_dict=True) | {"kid": "one"}
        self.answer(200, json.dumps({"keys": [jwk]}).encode())


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the provider and the blog publish their keys."""
    with serving_http(ThreadingHTTPServer(("127.0.0.1", 0), _Keys)) as server:
        yield f"http://127.0.0.1:{server.server_port}"


@asynccontextmanager
async def accepting(address: str, *, provider: bool = True, sites: bool = True) -> AsyncIterator[Tokens]:
    """A service with a provider, and with the keys of three sites."""
    given: dict[str, Any] = {}
    if provider:
        given |= {"jwks_url": f"{address}/provider", "jwt_issuer": "https://login/", "jwt_audience": "ringside"}
    if sites:
        shop, forum = {"issuer": "shop", "hs256": SHOP}, {"issuer": "forum", "hs256": FORUM, "roles": True}
        given["site_keys"] = json.dumps([shop, forum, {"issuer": "blog", "jwks": f"{address}/blog"}])
    tokens = Tokens(Settings.model_validate({"secrets": (OURS,), "public_url": PUBLIC, **given}))
    try:
        yield tokens
    finally:
        await tokens.close()


def claims(issuer: str, **more: object) -> dict[str, Any]:
    audience = "ringside" if issuer == "https://login/" else PUBLIC
    whole = {"iss": issuer, "aud": audience, "sub": "ann", "exp": int(time.time()) + 600} | more
    return {name: value for name, value in whole.items() if value is not None}


def signed(issuer: str, key: str | rsa.RSAPrivateKey, **more: object) -> str:
    algorithm = "HS256" if isinstance(key, str) else "RS256"
    return jwt.encode(claims(issuer, **more), key, algorithm=algorithm, headers={"kid": "one"})


async def refusal(tokens: Tokens, token: str) -> str:
    with pytest.raises(Unauthenticated) as refused:
        await tokens.member(token)
    return refused.value.detail


@pytest.mark.parametrize(
    ("issuer", "key"), [("https://login/", PROVIDER), ("shop", SHOP), ("forum", FORUM), ("blog", BLOG)]
)
async def test_each_issuer_s_own_key_signs_its_members_in(address: str, issuer: str, key: Any) -> None:
    """And no key of another: not the provider's, not another site's, not ours."""
    async with accepting(address) as tokens:
        viewer, _ = await tokens.member(signed(issuer, key))
        assert viewer.is_member
        for other in (PROVIDER, BLOG, SHOP, FORUM, OURS):
            if other is not key:
                reason = await refusal(tokens, signed(issuer, other))
                assert "not signed by a key known here" in reason or "algorithm is not accepted" in reason


async def test_public_keys_are_no_secrets(address: str) -> None:
    """HS256 with the PEM of a public key as its secret, the old attack on verifiers that trust the header; and none."""
    async with accepting(address) as tokens:
        for issuer, key in (("https://login/", PROVIDER), ("blog", BLOG), ("shop", BLOG)):
            pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
            signing = ".".join(_part(part) for part in ({"alg": "HS256", "kid": "one"}, claims(issuer)))
            forged = f"{signing}.{_text(hmac.digest(pem, signing.encode(), 'sha256'))}"
            assert "not accepted" in (reason := await refusal(tokens, forged)) or "not signed" in reason
            unsigned = ".".join(_part(part) for part in ({"alg": "none"}, claims(issuer))) + "."
            assert "algorithm is not accepted" in await refusal(tokens, unsigned)


def _part(value: dict[str, Any]) -> str:
    return _text(json.dumps(value).encode())


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


@pytest.mark.parametrize(("provider", "sites"), [(True, False), (False, True), (True, True)])
async def test_our_own_secret_signs_nobody_in_beside_a_provider_or_sites(
    address: str,
    provider: bool,  # noqa: FBT001 - a case
    sites: bool,  # noqa: FBT001 - a case
) -> None:
    """Whatever issuer such a token names; one without is refused too, and `ringside token` says why."""
    async with accepting(address, provider=provider, sites=sites) as tokens:
        for issuer in ("ringside", "https://login/", "shop", "", None, ["shop"], 7):
            assert await refusal(tokens, _ours(claims("x") | {"iss": issuer}))
        assert await refusal(tokens, _ours({"sub": "ann", "exp": 2**35}))
        with pytest.raises(ValueError, match=r"provider is set|RINGSIDE_SITE_KEYS is set"):
            mint(tokens._settings, "ann")
    async with accepting(address, provider=False, sites=False) as tokens:
        assert (await tokens.member(_ours({"sub": "ann", "exp": 2**35})))[0].is_member


def _ours(token: dict[str, Any]) -> str:
    """A token of any claims, also those that PyJWT does not write."""
    return jwt.PyJWS().encode(json.dumps(token).encode(), OURS, algorithm="HS256")


async def test_a_site_s_token_is_for_this_service_and_for_a_day(address: str) -> None:
    """Its audience is the public address, and it expires within 24 hours."""
    async with accepting(address) as tokens:
        assert "has no aud" in await refusal(tokens, signed("shop", SHOP, aud=None))
        audiences: tuple[object, ...] = ("ringside", "https://www.example.com", [], f"{PUBLIC}/x")
        for audience in audiences:
            assert "another audience" in await refusal(tokens, signed("shop", SHOP, aud=audience))
        late = int(time.time() + LONGEST_OF_SITES) + 60
        assert "more than 24 hours ahead" in await refusal(tokens, signed("shop", SHOP, exp=late))
        assert (await tokens.member(signed("shop", SHOP, aud=["x", PUBLIC], exp=late - 120)))[0].is_member


async def test_a_site_whose_clock_is_ahead_signs_tokens_for_a_whole_day(address: str) -> None:
    """By up to half a minute: otherwise those who have just logged in there would be refused for as long."""
    async with accepting(address) as tokens:
        ahead = time.time() + LONGEST_OF_SITES + 25
        assert (await tokens.member(signed("shop", SHOP, exp=ahead)))[0].is_member


async def test_a_site_s_token_gives_roles_only_if_its_key_says_so(address: str) -> None:
    """A shop's `roles` claim may mean anything."""
    async with accepting(address) as tokens:
        shop, _ = await tokens.member(signed("shop", SHOP, roles=["admin"]))
        forum, _ = await tokens.member(signed("forum", FORUM, roles=["editor"]))
        assert (shop.roles, forum.roles) == (frozenset({Role.MEMBER}), frozenset({Role.MEMBER, Role.EDITOR}))


@pytest.mark.parametrize(("verified", "email"), [(True, "ann@example.com"), (False, None), (None, None), (1, None)])
async def test_a_site_s_address_counts_only_if_it_was_verified(
    address: str, verified: object, email: str | None
) -> None:
    """An address that somebody typed into a shop's form is nobody's yet."""
    async with accepting(address) as tokens:
        token = signed("shop", SHOP, email="ann@example.com", email_verified=verified)
        viewer, _ = await tokens.member(token)
        assert (viewer.email, viewer.verified_email) == (email, email)
