"""Altered tokens, cookies, ballots and cursors are refused, before the engine is asked."""

import hmac
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from math import inf
from typing import Any

import httpx
import jwt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from structlog.testing import capture_logs
from websockets.exceptions import ConnectionClosed

from datastore.dynamo import Table
from resolvers.requests.context import Role
from tests.attack.conftest import PRODUCTION
from tests.client import Client, serving
from tests.comments import post
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.examples import examples
from tests.queries import CAST_VOTE, DRAW_MATCHUP
from tests.service import Service
from tests.voting import add_contenders
from tests.websockets import open_socket, receive, send

SECRET = PRODUCTION["RINGSIDE_SECRETS"]
CLAIMS: Mapping[str, Any] = {"sub": "mallory", "roles": ["admin"], "name": "Mallory", "exp": 2**33}
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
ASK = "query Asked { viewer { id } }"


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _token(header: Mapping[str, Any], secret: str = SECRET, digest: str = "sha256", **claims: Any) -> str:
    """A token whose header says what it likes, signed all the same."""
    signing = f"{_text(json.dumps(header).encode())}.{_text(json.dumps({**CLAIMS, **claims}).encode())}"
    return f"{signing}.{_text(hmac.digest(secret.encode(), signing.encode(), digest))}"


def _forged_tokens() -> dict[str, str]:
    good = _token({"alg": "HS256", "typ": "JWT"})
    header, payload, signature = good.split(".")
    now = int(time.time())
    return {
        "alg none": _token({"alg": "none"}).rsplit(".", 1)[0] + ".",
        "alg None": _token({"alg": "None"}).rsplit(".", 1)[0] + ".",
        "alg nOnE, signed": _token({"alg": "nOnE"}),
        "no alg": _token({"typ": "JWT"}),
        "alg null": _token({"alg": None}),
        "alg of a list": _token({"alg": ["HS256"]}),
        "alg in lower case": _token({"alg": "hs256"}),
        "HS384": _token({"alg": "HS384"}, digest="sha384"),
        "HS512": _token({"alg": "HS512"}, digest="sha512"),
        "HS256 called RS256": _token({"alg": "RS256"}),
        "HS256 called ES256": _token({"alg": "ES256"}),
        "HS256 called EdDSA": _token({"alg": "EdDSA"}),
        "no secret": _token({"alg": "HS256"}, secret=""),
        "a key id for a secret": _token({"alg": "HS256", "kid": "../../../../dev/null"}, secret=""),
        "a key id that is a query": _token({"alg": "HS256", "kid": "x' UNION SELECT 'secret"}, secret="secret"),
        "a key in the header": _token({"alg": "HS256", "jwk": {"kty": "oct", "k": _text(b"k")}}, secret="k"),
        "a key elsewhere": _token({"alg": "HS256", "jku": "https://evil.example/jwks"}, secret="k"),
        "a certificate": _token({"alg": "HS256", "x5c": ["MII"], "x5u": "https://evil.example/"}, secret="k"),
        "a critical header": _token({"alg": "HS256", "crit": ["exp"], "exp": 1}),
        "a payload that is not encoded": _token({"alg": "HS256", "crit": ["b64"], "b64": False}),
        "a critical header that is empty": _token({"alg": "HS256", "crit": []}),
        "expired": _token({"alg": "HS256"}, exp=now - 1),
        "expired long ago": _token({"alg": "HS256"}, exp=-(10**15)),
        "an expiry beyond all time": _token({"alg": "HS256"}, exp=10**400),
        "an expiry that is infinite": _token({"alg": "HS256"}, exp=float("inf")),
        "an expiry that is text": _token({"alg": "HS256"}, exp="2999-01-01"),
        "an expiry that is true": _token({"alg": "HS256"}, exp=True),
        "no expiry": _token({"alg": "HS256"}, exp=None),
        "not valid yet": _token({"alg": "HS256"}, nbf=now + 86_400),
        "issued in the future": _token({"alg": "HS256"}, iat=now + 86_400, nbf=now + 86_400),
        "a number for a member": _token({"alg": "HS256"}, sub=1),
        "a list for a member": _token({"alg": "HS256"}, sub=["ada"]),
        "roles of an object": _token({"alg": "HS256"}, roles={"admin": True}),
        "another payload": f"{header}.{_text(json.dumps({**CLAIMS, 'sub': 'ada'}).encode())}.{signature}",
        "no signature": f"{header}.{payload}.",
        "half a signature": f"{header}.{payload}.{signature[:20]}",
        "a signature of zeros": f"{header}.{payload}.{_text(bytes(32))}",
        "a fourth part": f"{good}.{signature}",
        "two parts": f"{header}.{payload}",
        "a part twice": f"{header}.{header}.{payload}.{signature}",
        "JSON inside": f"{{{good}}}",
        "nested": _token({"alg": "HS256", "cty": "JWT"}, secret="k"),
        "an encrypted one": ".".join([_text(b'{"alg":"dir","enc":"A128GCM"}'), "", payload, payload, signature]),
        "compressed": _token({"alg": "HS256", "zip": "DEF"}, secret="k"),
        "a header of brackets": f"{_text(b'[' * 3000)}.{payload}.{signature}",
        "too long": good + "x" * 9_000,
    }


FORGED_TOKENS = _forged_tokens()


@pytest.mark.parametrize("name", FORGED_TOKENS)
async def test_a_forged_token_is_refused(attacked: Service, name: str) -> None:
    """Over HTTP with 401 and a reason in plain words; it is not served as a visitor's. The log does not have it."""
    token = FORGED_TOKENS[name]
    async with httpx.AsyncClient(base_url=attacked.url, timeout=60) as http:
        asked = {"query": ASK}
        response = await http.post("/graphql", json=asked, headers={"authorization": f"Bearer {token}"})
    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith('Bearer error="invalid_token"')
    assert "set-cookie" not in response.headers
    assert token not in response.text
    assert not [line for line in attacked.lines if token in line]


async def test_a_forged_token_opens_no_socket(attacked: Service) -> None:
    """It is closed before it is acknowledged."""
    for token in FORGED_TOKENS.values():
        async with open_socket(attacked) as connection:
            with suppress(ConnectionClosed):
                await send(connection, {"type": "connection_init", "payload": {"Authorization": f"Bearer {token}"}})
                assert (await receive(connection))["type"] != "connection_ack"
            await connection.wait_closed()
            assert connection.close_code == 4403


async def test_the_control_token_is_accepted(attacked: Service) -> None:
    """The forgeries differ from it in one thing each. Addresses of keys in its header are not visited."""
    token = _token({"alg": "HS256", "typ": "JWT", "jku": "https://evil.example/jwks", "kid": "../x"})
    async with httpx.AsyncClient(base_url=attacked.url, timeout=60) as http:
        response = await http.post("/graphql", json={"query": ASK}, headers={"authorization": f"Bearer {token}"})
    assert response.json()["data"]["viewer"]["id"]
    assert jwt.decode(token, SECRET, algorithms=["HS256"])["sub"] == "mallory"


# ── what the service gave to a client, and gets back altered ──


@pytest.fixture
async def visitor(one_table: Table, default_engine: RunningEngine) -> AsyncIterator[Client]:
    """A visitor of a service with data. Votes are not counted by address, which costs an engine call a second."""
    async with serving(settings_for(default_engine, one_table.name, votes_per_address="0")) as client:
        await add_contenders(client, "a", "b", "c", "d")
        for number in range(3):
            await post(client.member(f"user{number}"), "p")
        client.services.journal.confirm(inf)  # or a mutation would look for new webhooks if nobody did for ten seconds
        yield client


async def _calls(client: Client, query: str, **variables: Any) -> tuple[str, int]:
    """The code of the refusal, and the engine calls that it took."""
    with capture_logs() as logs:
        code = await client.code(query, **variables)
    return code, sum(line["calls"] for line in logs if line["event"] == "answered")


@some.composite
def alterations(draw: some.DrawFn) -> Any:
    """A function that makes another text of a text: one letter more, less or other, two exchanged, or both halves."""
    place, step = draw(some.integers(0, 10_000)), draw(some.integers(1, len(LETTERS) - 1))
    kind = draw(some.sampled_from(["other", "other", "other", "more", "less", "swap", "twice", "padding", "case"]))

    def alter(text: str) -> str:
        at = place % len(text)
        other = LETTERS[(LETTERS.find(text[at]) + step) % len(LETTERS)]
        altered = {
            "other": text[:at] + other + text[at + 1 :],
            "more": text[:at] + other + text[at:],
            "less": text[:at] + text[at + 1 :],
            "swap": text[at:] + text[:at],
            "twice": text + text,
            "padding": text + "=" * (step % 3 + 1),
            "case": text.swapcase(),
        }[kind]
        return altered if altered != text else text + "A"

    return alter


CURSORS = {
    "comments": 'query Asked($after: String, $first: Int) { comments(product: "p", first: $first, after: $after) '
    "{ pageInfo { endCursor } } }",
    "contenders": "query Asked($after: String, $first: Int) { contenders(first: $first, after: $after) "
    "{ pageInfo { endCursor } } }",
    "leaderboard": "query Asked($after: String, $first: Int) { leaderboard(first: $first, after: $after) "
    "{ pageInfo { endCursor } } }",
}
SOME = settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))


@given(alter=alterations())
@SOME
async def test_an_altered_cursor_is_refused_before_the_engine_is_asked(visitor: Client, alter: Any) -> None:
    """Whichever byte is another, in every list."""
    for name, query in CURSORS.items():
        cursor = (await visitor.ask(query, first=1))["pageInfo"]["endCursor"]
        assert await _calls(visitor, query, first=1, after=alter(cursor)) == ("INVALID_CURSOR", 0), name


async def test_a_cursor_of_another_list_is_refused_before_the_engine_is_asked(visitor: Client) -> None:
    """Of another field, and of the same field with another filter."""
    cursors = {name: (await visitor.ask(query, first=1))["pageInfo"]["endCursor"] for name, query in CURSORS.items()}
    for name, query in CURSORS.items():
        for other, cursor in cursors.items():
            if other != name:
                assert await _calls(visitor, query, after=cursor) == ("INVALID_CURSOR", 0)
    filtered = CURSORS["comments"].replace('"p"', '"p", ratings: [5]')
    assert await _calls(visitor, filtered, after=cursors["comments"]) == ("INVALID_CURSOR", 0)


@given(alter=alterations())
@SOME
async def test_an_altered_ballot_is_refused_before_the_engine_is_asked(visitor: Client, alter: Any) -> None:
    """It then still counts once as it was."""
    token = (await visitor.ask(DRAW_MATCHUP))["token"]
    assert await _calls(visitor, CAST_VOTE, token=alter(token), verdict="LEFT") == ("TOKEN_UNKNOWN", 0)


async def test_a_ballot_of_someone_else_is_refused_before_the_engine_is_asked(visitor: Client) -> None:
    """Another visitor's. A member's first mutation creates a profile, also if it is refused."""
    token = (await visitor.ask(DRAW_MATCHUP))["token"]
    other, admin = visitor.visitor(), visitor.member("root", Role.ADMIN)
    assert await _calls(other, CAST_VOTE, token=token, verdict="LEFT") == ("TOKEN_UNKNOWN", 0)
    assert await admin.code(CAST_VOTE, token=token, verdict="LEFT") == "TOKEN_UNKNOWN"
    assert await _calls(admin, CAST_VOTE, token=token, verdict="LEFT") == ("TOKEN_UNKNOWN", 0)


@given(alter=alterations())
@SOME
async def test_an_altered_cookie_is_refused_before_the_engine_is_asked(visitor: Client, alter: Any) -> None:
    """With 401, and without reading the document."""
    given_cookie = (await visitor.visitor().post("{ __typename }")).headers["set-cookie"].split(";")[0]
    name, _, value = given_cookie.partition("=")
    with capture_logs() as logs:
        response = await visitor.visitor().http.post(
            "/graphql", json={"query": DRAW_MATCHUP}, headers={"cookie": f"{name}={alter(value)}"}
        )
    assert response.status_code == 401
    assert [line for line in logs if line["event"] == "answered"] == []
