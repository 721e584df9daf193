"""The recipes of docs/sign-in.md, each with tokens of its provider's documented shape, signed by a local provider.

The provider serves discovery and keys over HTTP. What a recipe writes is what the test sets, but for the addresses.
"""

import json
import re
import subprocess
import sysconfig
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given, settings
from hypothesis import strategies as st
from jwt.algorithms import RSAAlgorithm
from structlog.testing import capture_logs

from resolvers.requests.context import Role, Viewer
from server.auth.jwt_verification import COOLDOWN, JWKS, MAX_BYTES, parse_endpoint
from server.auth.tokens import Tokens, mint
from server.auth.verification import Unauthenticated, Unverifiable
from server.settings import Settings
from tests.examples import examples
from tests.generated import ROOT
from tests.http_server import Answering, serving_http

KEY = rsa.generate_private_key(65537, 2048)
RECIPES = (ROOT / "docs" / "sign-in.md").read_text(encoding="utf-8")
NODE = Path(sysconfig.get_path("scripts")) / "node"
RUN = """
const endpoint = '/graphql', session = { token: 'old' };
let answerLate;
const late = new Promise((resolve) => (answerLate = resolve));
globalThis.fetch = async (_, { headers, body }) => {
  const { Authorization = 'nobody' } = headers;
  if (body.includes('late') && Authorization === 'Bearer old') await late;
  return { status: Authorization === 'Bearer old' ? 401 : 200, json: () => Authorization };
};
const shown = await Promise.all([ask('one'), ask('another')]);
session.token = 'old';
const pending = ask('late');
session.token = 'new';
answerLate();
console.log(JSON.stringify([...shown, await pending, session.token]));
"""
MEMBER = frozenset({Role.MEMBER})
EDITOR = frozenset({Role.MEMBER, Role.EDITOR})


class Provider(ThreadingHTTPServer):
    """An OIDC provider: its documents by path, and the paths that were asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.documents: dict[str, Any] = {}
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def publish(self, issuer: str, **more: object) -> None:
        """Discovery for an issuer, with keys as Entra publishes them, which have no `alg`."""
        path = issuer.removeprefix(self.url).rstrip("/")
        self.documents[f"{path}/.well-known/openid-configuration"] = {
            "issuer": issuer,
            "jwks_uri": f"{self.url}/keys",
            "id_token_signing_alg_values_supported": ["RS256"],
        } | more
        self.documents["/keys"] = {"keys": [public_key("one")]}


class _Answer(Answering):
    server: Provider
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        document = self.server.documents.get(self.path)
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.answer(404 if document is None else 200, body)


def public_key(kid: str) -> dict[str, Any]:
    return {**RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True), "kid": kid, "use": "sig", "key_ops": ["verify"]}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with serving_http(Provider()) as server:
        yield server


def signed(claims: dict[str, Any]) -> str:
    now = int(time.time())
    return _encoded({"iat": now, "exp": now + 3600} | claims, KEY, "RS256")


def _encoded(claims: dict[str, Any], key: rsa.RSAPrivateKey | str, algorithm: str) -> str:
    """A token of any claims, also those that a library refuses to sign."""
    return jwt.PyJWS().encode(json.dumps(claims).encode(), key, algorithm=algorithm, headers={"kid": "one"})


@dataclass(frozen=True)
class Recipe:
    """A provider's issuer, and the claims of a token that the recipe accepts; both name the local provider as URL."""

    heading: str
    issuer: str
    claims: dict[str, Any]
    name: str | None
    email: str | None
    refused: dict[str, Any] = field(default_factory=dict)
    """Changes that make it a token for somebody else."""


COGNITO = Recipe(
    "Amazon Cognito",
    "URL/eu-central-1_Ab12Cd34E",
    {
        "sub": "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
        "cognito:groups": ["site-editors", "admin"],
        "client_id": "1h57kf5cpq17m0eml12EXAMPLE",
        "origin_jti": "aaaa",
        "event_id": "bbbb",
        "token_use": "access",
        "scope": "aws.cognito.signin.user.admin",
        "auth_time": 1_700_000_000,
        "jti": "cccc",
        "username": "ann",
    },
    "ann",
    None,
    {"client_id": "another"},
)
KEYCLOAK = Recipe(
    "Keycloak",
    "URL/realms/example",
    {
        "sub": "f3f1c8ad-2a5c-4f1b-8d52-5c8c1f6c1e11",
        "jti": "onrtac:1",
        "aud": ["ringside", "account"],
        "typ": "Bearer",
        "azp": "website",
        "sid": "c0ffee",
        "acr": "1",
        "allowed-origins": ["https://www.example.com"],
        "realm_access": {"roles": ["offline_access", "site-editors", "admin", "default-roles-example"]},
        "resource_access": {"account": {"roles": ["manage-account", "view-profile"]}},
        "scope": "openid email profile",
        "email_verified": True,
        "name": "Ann Example",
        "preferred_username": "ann",
        "given_name": "Ann",
        "family_name": "Example",
        "email": "ann@example.com",
    },
    "Ann Example",
    "ann@example.com",
    {"aud": "account"},
)
AUTH0 = Recipe(
    "Auth0",
    "URL/",
    {
        "sub": "auth0|507f1f77bcf86cd799439020",
        "aud": ["https://api.example.com", "https://example.eu.auth0.com/userinfo"],
        "azp": "my_client_id",
        "scope": "openid profile email",
        "https://ringside.example.com/roles": ["site-editors", "admin"],
        "https://ringside.example.com/name": "Ann Example",
        "https://ringside.example.com/email": "ann@example.com",
    },
    "Ann Example",
    "ann@example.com",
    {"aud": ["https://another.example.com", "https://example.eu.auth0.com/userinfo"]},
)
ENTRA = Recipe(
    "Microsoft Entra ID",
    "URL/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0",
    {
        "aud": "00001111-aaaa-2222-bbbb-3333cccc4444",
        "nbf": 1_700_000_000,
        "aio": "AXQAi/8IAAAA",
        "azp": "11112222-bbbb-3333-cccc-4444dddd5555",
        "azpacr": "0",
        "name": "Ann Example",
        "oid": "aaaaaaaa-0000-1111-2222-bbbbbbbbbbbb",
        "preferred_username": "ann@example.com",
        "rh": "I",
        "roles": ["Site.Editor", "admin"],
        "groups": ["22223333-cccc-4444-dddd-5555eeee6666"],
        "scp": "access_as_user",
        "sub": "AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ",
        "tid": "aaaabbbb-0000-cccc-1111-dddd2222eeee",
        "uti": "fqiBqXLPj0eQa82S-IYFAA",
        "ver": "2.0",
        "email": "ann@example.com",
    },
    "Ann Example",
    "ann@example.com",
    {"aud": "00000003-0000-0000-c000-000000000000"},
)
FIREBASE = Recipe(
    "Firebase",
    "URL/example-project",
    {
        "sub": "Xk2pQ9eWZ1hYtB7mRr3LsVn0uAa1",
        "user_id": "Xk2pQ9eWZ1hYtB7mRr3LsVn0uAa1",
        "aud": "example-project",
        "auth_time": 1_700_000_000,
        "name": "Ann Example",
        "picture": "https://lh3.googleusercontent.com/a/x",
        "email": "ann@example.com",
        "email_verified": True,
        "roles": ["site-editors", "admin"],
        "firebase": {
            "identities": {"google.com": ["1"], "email": ["ann@example.com"]},
            "sign_in_provider": "google.com",
        },
    },
    "Ann Example",
    "ann@example.com",
    {"aud": "another-project"},
)
ALL = [COGNITO, KEYCLOAK, AUTH0, ENTRA, FIREBASE]


def written(recipe: Recipe) -> dict[str, str]:
    """The variables in a recipe's block, as a shell would set them."""
    block = re.search(rf"## {recipe.heading}\n.*?```sh\n(.*?)```", RECIPES, re.DOTALL)
    assert block is not None
    lines = [line.partition("=") for line in block[1].splitlines()]
    return {name: value.removeprefix("'").removesuffix("'") for name, _, value in lines}


@asynccontextmanager
async def deployed(provider: Provider, recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Tokens]:
    """A service with the recipe's settings, whose issuer is the local provider."""
    issuer = recipe.issuer.replace("URL", provider.url)
    provider.publish(issuer)
    variables = written(recipe)
    assert variables["RINGSIDE_OIDC_ISSUER"].startswith("https://")
    assert variables["RINGSIDE_OIDC_ISSUER"].endswith("/") == issuer.endswith("/")
    for name, value in {**variables, "RINGSIDE_OIDC_ISSUER": issuer, "RINGSIDE_SECRETS": "s" * 32}.items():
        monkeypatch.setenv(name, value)
    tokens = Tokens(Settings.load())
    try:
        yield tokens
    finally:
        await tokens.close()


async def member(tokens: Tokens, claims: dict[str, Any]) -> Viewer:
    return (await tokens.member(signed(claims)))[0]


@pytest.mark.parametrize("recipe", ALL, ids=lambda recipe: recipe.heading)
async def test_a_recipe_signs_its_members_in(
    provider: Provider, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With name, address and mapped roles; a company group called `admin` gives nothing; other tokens are refused."""
    async with deployed(provider, recipe, monkeypatch) as tokens:
        issuer = recipe.issuer.replace("URL", provider.url)
        claims = recipe.claims | {"iss": issuer}
        viewer = await member(tokens, claims)
        assert viewer.proven is not None
        assert (viewer.proven.subject, viewer.name, viewer.email) == (claims["sub"], recipe.name, recipe.email)
        assert viewer.roles == EDITOR
        for change in (recipe.refused, {"iss": "https://evil.example/"}, {"iss": issuer + "/x"}, {"iss": [issuer]}):
            with pytest.raises(Unauthenticated):
                await member(tokens, claims | change)


async def test_cognitos_id_tokens_count_by_their_audience_only(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client of an access token is believed where there is no `aud`, and nowhere else."""
    access = COGNITO.claims | {"iss": COGNITO.issuer.replace("URL", provider.url)}
    client = access["client_id"]
    without_client = {name: value for name, value in access.items() if name != "client_id"}
    refused = [
        access | {"token_use": "id"},
        access | {"token_use": ["access"]},
        access | {"aud": None},
        access | {"aud": []},
        access | {"aud": client},
        access | {"client_id": [client]},
        access | {"client_id": {}},
        without_client,
        without_client | {"azp": client},
    ]
    async with deployed(provider, COGNITO, monkeypatch) as tokens:
        for claims in refused:
            with pytest.raises(Unauthenticated):
                await member(tokens, claims)
    monkeypatch.setenv("RINGSIDE_JWT_AUDIENCE", client)
    async with deployed(provider, COGNITO, monkeypatch) as tokens:
        assert await member(tokens, without_client | {"aud": client, "token_use": "id"})
        assert await member(tokens, access)


async def test_a_username_that_is_the_id_is_no_name(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cognito repeats it where people sign in by an address; an address is not shown as a name either."""
    claims = COGNITO.claims | {"iss": COGNITO.issuer.replace("URL", provider.url)}
    async with deployed(provider, COGNITO, monkeypatch) as tokens:
        assert (await member(tokens, claims | {"username": claims["sub"]})).name is None
        assert (await member(tokens, claims | {"username": "ann@example.com"})).name is None


# ── discovery ──


@asynccontextmanager
async def discovered(issuer: str) -> AsyncIterator[tuple[JWKS, list[float]]]:
    """The keys of an issuer, and the time, which can be moved."""
    now = [1000.0]
    keys = JWKS(issuer=issuer, clock=lambda: now[0])
    try:
        yield keys, now
    finally:
        await keys.close()


async def test_keys_are_discovered_once_and_again_after_the_cooldown(provider: Provider) -> None:
    """Unknown keys make the service ask for both documents, at most once in a cooldown; a new address is followed."""
    issuer = f"{provider.url}/cached/"
    provider.publish(issuer)
    provider.asked.clear()
    discovery = "/cached/.well-known/openid-configuration"
    async with discovered(issuer) as (keys, now):
        for _ in range(5):
            assert await keys.find("one", "RS256")
            assert await keys.find("unknown", "RS256") is None
        assert provider.asked == [discovery, "/keys"]
        provider.publish(issuer, jwks_uri=f"{provider.url}/moved")
        provider.documents["/moved"] = {"keys": [public_key("new")]}
        now[0] += COOLDOWN
        assert await keys.find("new", "RS256")
        assert provider.asked == [discovery, "/keys", discovery, "/moved"]


@pytest.mark.parametrize(
    "change",
    [
        {"issuer": "https://evil.example/"},
        {"issuer": "URL/odd"},
        {"issuer": None},
        {"issuer": ["URL/odd/"]},
        {"issuer": "x" * 100_000},
        {"jwks_uri": None},
        {"jwks_uri": 7},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": "http://keys.example.com/"},
        {"jwks_uri": "https://me:password@keys.example.com/"},
        b"not JSON",
        b"[]",
        b"7",
        b"{}",
        b"[" * 100_000,
        b'{"x":"' + b"x" * MAX_BYTES + b'"}',
        None,
    ],
    ids=lambda change: str(change)[:40],
)
async def test_a_wrong_discovery_document_gives_no_keys(provider: Provider, change: Any) -> None:
    """Above all not one of another issuer. The log says why, in a line, and tokens are answered 503."""
    issuer = f"{provider.url}/odd/"
    path = "/odd/.well-known/openid-configuration"
    provider.publish(issuer)
    if isinstance(change, dict):
        provider.documents[path] |= json.loads(json.dumps(change).replace("URL", provider.url))
    else:
        provider.documents[path] = change
    provider.asked.clear()
    async with discovered(issuer) as (keys, _):
        with capture_logs() as logs, pytest.raises(Unverifiable):
            await keys.find("one", "RS256")
    assert [entry["event"] for entry in logs] == ["oidc keys not fetched"]
    assert len(str(logs[0])) < 1000
    assert provider.asked == [path]


def test_keys_of_an_https_issuer_come_over_https() -> None:
    """Even from the service's own network."""
    document = {"issuer": "https://a.example", "jwks_uri": "https://keys.example/"}
    assert parse_endpoint("jwks_uri", document, "https://a.example") == "https://keys.example/"
    with pytest.raises(ValueError, match="does not start with https"):
        parse_endpoint("jwks_uri", document | {"jwks_uri": "http://127.0.0.1/keys"}, "https://a.example")


# ── claims of every shape ──

PATHS = ["roles", "realm_access.roles", r"https://example\.com/roles", "cognito:groups"]


def local(**more: Any) -> Settings:
    """Tokens signed with our own secret, whose claims can lie elsewhere too."""
    return Settings.model_validate({"dynamodb_url": "http://127.0.0.1:1", "secrets": ["s" * 32], **more})


def own(claims: dict[str, Any]) -> str:
    return _encoded({"sub": "ann", "exp": 2**37} | claims, "s" * 32, "HS256")


@pytest.mark.parametrize("path", PATHS)
async def test_minted_tokens_have_their_claims_where_they_are_read(path: str) -> None:
    """`ringside token` follows the same settings; a role that no group has is refused."""
    where = local(jwt_roles_claim=path, jwt_name_claim="who.name", jwt_email_claim="who.email")
    token = mint(where, "ann", name="Ann", email="ann@example.com", roles=[Role.EDITOR])
    viewer, _ = await Tokens(where).member(token)
    assert (viewer.name, viewer.email, viewer.roles) == ("Ann", "ann@example.com", EDITOR)
    mapped = local(jwt_roles_claim=path, jwt_roles='{"site-editors": "editor", "admin": "member"}')
    viewer, _ = await Tokens(mapped).member(mint(mapped, "ann", roles=[Role.EDITOR, Role.MEMBER]))
    assert viewer.roles == EDITOR
    with pytest.raises(ValueError, match="RINGSIDE_JWT_ROLES gives no group the role admin"):
        mint(mapped, "ann", roles=[Role.ADMIN])


@pytest.mark.parametrize(
    ("groups", "roles"),
    [
        ("site-editors", EDITOR),
        ("openid site-editors,other", EDITOR),
        (" ,\tsite-editors\n", EDITOR),
        (["site-editors", 7, None, ["admins"], {"admins": 1}], EDITOR),
        (["admin", "editor", "moderator"], MEMBER),
        ("admin editor", MEMBER),
        (["site-editors admins"], MEMBER),
        ("", MEMBER),
        ([], MEMBER),
        (None, MEMBER),
    ],
)
async def test_groups_give_the_roles_that_they_are_mapped_to(groups: object, roles: set[Role]) -> None:
    """Text is split at spaces and commas, a list is not; a group named as one of our roles gives nothing."""
    mapped = local(jwt_roles_claim="a.b", jwt_roles='{"site-editors": "editor", "admins": "admin"}')
    viewer, _ = await Tokens(mapped).member(own({"a": {"b": groups}}))
    assert viewer.roles == roles


@pytest.mark.parametrize("outer", [None, 7, "admin", ["admin"], {}, {"b": None}, {"c": ["admin"]}])
async def test_a_claim_that_is_not_there_is_ignored(outer: object) -> None:
    """Also where something else lies on the way to it."""
    elsewhere = local(jwt_roles_claim="a.b", jwt_name_claim="a.name", jwt_email_claim="a.email")
    viewer, _ = await Tokens(elsewhere).member(own({"a": outer, "name": ["Ann"], "roles": ["admin"]}))
    assert (viewer.name, viewer.email, viewer.roles) == (None, None, MEMBER)


@pytest.mark.parametrize("groups", [7, True, 1.5, {"admin": True}])
async def test_roles_of_another_shape_are_refused(groups: object) -> None:
    """With a reason."""
    with pytest.raises(Unauthenticated, match="roles must be a list, or text"):
        await Tokens(local()).member(own({"roles": groups}))


async def test_an_unverified_address_is_ignored_beside_its_claim_and_at_the_top() -> None:
    """Also if the provider says so in text."""
    nested = local(jwt_email_claim="who.email")
    for no in (False, "false"):
        both: list[dict[str, Any]] = [{"email_verified": no}, {"who": {"email_verified": no}}]
        for claims in both:
            who = {"email": "ann@example.com"} | claims.get("who", {})
            assert (await Tokens(nested).member(own(claims | {"who": who})))[0].email is None
    assert (await Tokens(nested).member(own({"who": {"email": "ann@example.com"}})))[0].email == "ann@example.com"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=10) | st.sampled_from(["access", "us"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=5,
)
NAMES = ("a", "aud", "iss", "client_id", "token_use", "email_verified", "email", "name")


@settings(max_examples=examples(150))
@given(st.dictionaries(st.sampled_from(NAMES), json_values))
async def test_claims_of_any_shape_sign_in_or_are_refused(claims: dict[str, Any]) -> None:
    """Whatever lies where names, roles and clients are looked for, and never an audience that was not checked."""
    rules = {"jwt_roles_claim": "a.b", "jwt_name_claim": "a.a.a", "jwt_email_claim": "a.c", "jwt_audience": "us"}
    tokens = Tokens(local(**rules, jwt_roles='{"a": "admin"}'))
    try:
        viewer, _ = await tokens.member(own(claims))
    except Unauthenticated:
        return
    assert viewer.proven is not None
    assert viewer.proven.subject == "ann"
    assert claims["aud"] == "us" or "us" in claims["aud"]


@pytest.mark.skipif(not NODE.exists(), reason="node is not here: make test")
def test_the_guide_s_page_drops_an_expired_token_and_no_other() -> None:
    """Every part of the page is asked for again; who signs in before the old token is refused stays signed in."""
    (script,) = re.findall(r"```js\n(async function ask.*?)```", RECIPES, re.DOTALL)
    command = [str(NODE), "--input-type=module", "-e", script + RUN]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert json.loads(ran.stdout) == ["nobody", "nobody", "Bearer new", "new"]
