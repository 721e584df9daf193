"""Visits: pages of other sites draw and vote with a token that counts with their origin alone."""

from __future__ import annotations

import asyncio
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import pairwise
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from datastore.changes.unit_of_work import VISITOR_PREFIX
from datastore.dynamo import Table
from datastore.values.seal import Forged, Seal
from resolvers.requests.context import utc_now
from resolvers.voting.visits import VALID_DAYS, open_visit, sign_visit
from server.auth.cookies import COOKIE
from server.settings import Settings
from tests.attack.serving import Served, serving_on_a_socket
from tests.client import Client, serving
from tests.command import ROOT
from tests.conftest import SECRET, settings_for
from tests.engines import RunningEngine
from tests.queries import CAST_VOTE, DRAW_MATCHUP, mutation
from tests.voting import add_contenders, pair_names
from tests.waiting import until
from tests.websockets import PROTOCOL, closing, receive, send

SHOP, BLOG = "https://shop.example.com", "http://blog.example.org:8080"
ORIGINS = {"cors_origins": (SHOP, BLOG)}
START = mutation("startVisit", "Visit", "token expiresAt", refused="code message retryAfterSeconds")
DRAW = "mutation { drawMatchup(input: {}) { ... on Ballot { token voter } ... on Refused { code } } }"
WATCH = "subscription { leaderboardChanged { rank } }"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@pytest.fixture
async def api(table: Table, engine: RunningEngine) -> AsyncIterator[Client]:
    """A service that two other sites use, on each of the engines."""
    async with serving(settings_for(engine, table.name, **ORIGINS)) as visitor:
        await add_contenders(visitor, "Ann", "Ben", "Cat")
        yield visitor


@pytest.fixture
async def one_api(one_table: Table, default_engine: RunningEngine) -> AsyncIterator[Client]:
    """The same on one engine."""
    async with serving(settings_for(default_engine, one_table.name, **ORIGINS)) as visitor:
        await add_contenders(visitor, "Ann", "Ben", "Cat")
        yield visitor


class Page:
    """A page of another site. Its browser keeps no cookie for it."""

    def __init__(self, client: Client, origin: str | None = SHOP, token: str | None = None) -> None:
        self.client = client
        self.headers = {} if origin is None else {"origin": origin}
        if token is not None:
            self.headers["authorization"] = f"Visitor {token}"

    async def post(self, query: str, **variables: Any) -> httpx.Response:
        transport = httpx.ASGITransport(self.client.served)
        async with httpx.AsyncClient(transport=transport, base_url="http://ringside.test", timeout=30) as http:
            return await http.post("/graphql", json={"query": query, "variables": variables}, headers=self.headers)

    async def ask(self, query: str, **variables: Any) -> Any:
        answer = (await self.post(query, **variables)).json()
        assert "errors" not in answer, answer
        return next(iter(answer["data"].values()))

    async def started(self) -> Page:
        """The same page with the token of a visit."""
        return Page(self.client, self.headers["origin"], (await self.ask(START, input={}))["token"])

    @property
    def token(self) -> str:
        return self.headers["authorization"].removeprefix("Visitor ")


async def refusal(page: Page) -> str:
    """Why the page is not served."""
    answer = await page.post(DRAW)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith('Visitor error="invalid_token"')
    [error] = answer.json()["errors"]
    assert error["extensions"]["code"] == "UNAUTHENTICATED"
    return str(error["message"])


# ── voting ──


async def test_a_page_of_another_site_draws_and_votes(api: Client) -> None:
    """The token stands for one visitor from request to request, without any cookie."""
    page = await Page(api).started()
    ballots = [await page.ask(DRAW_MATCHUP) for _ in range(3)]
    assert len({ballot["voter"] for ballot in ballots}) == 1
    assert all(pair_names(ballot) == pair_names(ballots[0]) for ballot in ballots)
    vote = {"token": ballots[0]["token"], "verdict": "LEFT"}
    cast = await page.ask(CAST_VOTE, **vote)
    assert cast["winner"] == ballots[0]["left"]
    assert (await page.ask(CAST_VOTE, **vote))["winner"] == cast["winner"]
    assert pair_names(await page.ask(DRAW_MATCHUP)) != pair_names(ballots[0])
    assert (await (await Page(api).started()).ask(CAST_VOTE, **vote))["code"] == "TOKEN_UNKNOWN"


async def test_a_visit_that_is_started_again_goes_on_as_the_same_visitor(one_api: Client) -> None:
    """With the old token; on the same day even the token is the same. Without it, somebody new begins."""
    page = await Page(one_api).started()
    repeated = await page.started()
    assert repeated.token == page.token
    begun = one_api.services.clock()
    one_api.services.clock = lambda: begun + timedelta(days=2)
    later = await page.started()
    assert later.token != page.token
    assert (await later.ask(DRAW))["voter"] == (await page.ask(DRAW))["voter"]
    assert (await (await Page(one_api).started()).ask(DRAW))["voter"] != (await page.ask(DRAW))["voter"]


async def test_a_visit_on_the_services_own_site_is_the_visitor_of_its_cookie(one_api: Client) -> None:
    """A site on a subdomain gets the cookie and may start visits too: one person is one voter."""
    voter = (await one_api.ask(DRAW))["voter"]
    one_api.http.headers["origin"] = "http://ringside.test"
    token = (await one_api.ask(START, input={}))["token"]
    assert (await Page(one_api, "http://ringside.test", token).ask(DRAW))["voter"] == voter


async def test_a_new_visit_counts_as_a_new_visitor(one_table: Table, default_engine: RunningEngine) -> None:
    """Against the limit of the address, once: drawing afterwards does not count again."""
    settings = settings_for(default_engine, one_table.name, new_visitors_per_address="3/day", **ORIGINS)
    async with serving(settings) as client:
        await add_contenders(client, "Ann", "Ben", "Cat")
        visits = []
        for _ in range(3):
            visits.append(await Page(client).started())
            await asyncio.sleep(0)
        refused = await Page(client).ask(START, input={})
        assert (refused["code"], refused["retryAfterSeconds"] > 0) == ("RATE_LIMITED", True)
        for page in visits:
            assert "token" in await page.ask(DRAW)
            assert (await page.started()).token == page.token
        assert await client.code(DRAW) == "RATE_LIMITED"


async def test_the_limits_of_a_visitor_hold_for_a_visit(one_table: Table, default_engine: RunningEngine) -> None:
    """However often the visit is started again."""
    settings = settings_for(default_engine, one_table.name, votes_per_visitor="2/day", **ORIGINS)
    async with serving(settings) as client:
        await add_contenders(client, "Ann", "Ben", "Cat")
        page = await Page(client).started()
        codes = [(await (await page.started()).ask(DRAW)).get("code") for _ in range(3)]
        assert codes == [None, None, "RATE_LIMITED"]
        assert "token" in await (await Page(client).started()).ask(DRAW)


# ── who may start one ──


@pytest.mark.parametrize(
    ("origin", "reason"),
    [
        (None, "names no Origin"),
        ("https://evil.example.com", "its site"),
        ("null", "its site"),
        ("https://ringside.test", "its site"),
        ("http://shop.example.com", "its site"),
        (f"{SHOP}.evil.example", "its site"),
        (f"{SHOP}:8443", "its site"),
    ],
)
async def test_other_pages_start_no_visit(one_api: Client, origin: str | None, reason: str) -> None:
    """Only those of the service's own origin, scheme included, and of RINGSIDE_CORS_ORIGINS."""
    refused = await Page(one_api, origin).ask(START, input={})
    assert refused["code"] == "NOT_ALLOWED"
    assert reason in refused["message"]


async def test_a_member_needs_no_visit(one_api: Client) -> None:
    """Their own token works on every site."""
    ada = one_api.member("ada")
    ada.http.headers["origin"] = SHOP
    assert await ada.code(START, input={}) == "NOT_ALLOWED"


async def test_a_preflight_permits_the_header_for_listed_origins_only(one_api: Client) -> None:
    """What a browser asks before it sends Authorization from another site."""
    asked = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
    allowed = await one_api.http.options("/graphql", headers={"origin": SHOP, **asked})
    assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, SHOP)
    assert "authorization" in allowed.headers["access-control-allow-headers"].lower()
    refused = await one_api.http.options("/graphql", headers={"origin": "https://evil.example.com", **asked})
    assert refused.status_code == 400
    assert "access-control-allow-origin" not in refused.headers


# ── tokens that are refused ──


async def test_a_token_counts_with_its_own_origin_only(one_api: Client) -> None:
    """Not with another allowed one, not with the service's own, not with none."""
    token = (await Page(one_api).started()).token
    for origin in (BLOG, "http://ringside.test", "null", SHOP.upper() + ".example"):
        assert "comes from another" in await refusal(Page(one_api, origin, token))
    assert "names none" in await refusal(Page(one_api, None, token))


async def test_an_expired_token_is_refused(one_api: Client) -> None:
    """At the midnight that its answer named."""
    page = Page(one_api)
    visit = await page.ask(START, input={})
    page.headers["authorization"] = f"Visitor {visit['token']}"
    ends = open_visit(one_api.services.seal, visit["token"]).expires_at
    assert VALID_DAYS * 86_400 < ends - utc_now().timestamp() <= (VALID_DAYS + 1) * 86_400
    identification = one_api.served.state["pipeline"].identification
    identification.clock = lambda: ends - 0.01
    assert "token" in await page.ask(DRAW)
    identification.clock = lambda: ends
    assert await refusal(page) == "The visit has expired: start a new one."


async def test_a_token_of_a_dropped_secret_or_another_purpose_is_refused(one_api: Client) -> None:
    """As are a cookie, a bearer token in its place, and the token in the place of a bearer's."""
    token = (await Page(one_api).started()).token
    await one_api.ask(DRAW)
    cookie = one_api.http.cookies[COOKIE]
    assert "altered" in await refusal(Page(one_api, SHOP, cookie))
    ballot = (await one_api.ask(DRAW))["token"]
    assert "altered" in await refusal(Page(one_api, SHOP, ballot))
    foreign = sign_visit(Seal(["another secret, of more than 32 letters"]), "visitor-a", SHOP, utc_now())
    assert "altered" in await refusal(Page(one_api, SHOP, foreign))
    as_bearer = Page(one_api)
    as_bearer.headers["authorization"] = f"Bearer {token}"
    assert (await as_bearer.post(DRAW)).status_code == 401
    empty = Page(one_api)
    empty.headers["authorization"] = "Visitor "
    assert (await empty.post(DRAW)).status_code == 401


@given(place=st.integers(0, 10_000), step=st.integers(1, len(LETTERS) - 1))
def test_an_altered_token_is_forged(place: int, step: int) -> None:
    """Whichever character is changed."""
    seal = Seal([SECRET])
    token = sign_visit(seal, "visitor-abc", SHOP, utc_now())
    place %= len(token)
    letter = LETTERS[(LETTERS.index(token[place]) + step) % len(LETTERS)]
    with pytest.raises(Forged):
        open_visit(seal, token[:place] + letter + token[place + 1 :])


def test_a_token_has_one_spelling() -> None:
    """It opens as it was signed, and with padding it is another text."""
    seal, expires_at = Seal([SECRET]), utc_now()
    token = sign_visit(seal, "visitor-abc", SHOP, expires_at)
    opened = open_visit(seal, token)
    assert (opened.visitor, opened.expires_at) == ("visitor-abc", int(expires_at.timestamp()))
    assert opened.is_of(SHOP)
    assert not opened.is_of(BLOG)
    raw = urlsafe_b64decode(token + "=" * (-len(token) % 4))
    with pytest.raises(Forged):
        open_visit(seal, urlsafe_b64encode(raw + b"\0").decode())


# ── sockets and streams ──


@pytest.fixture
async def served(one_table: Table, default_engine: RunningEngine) -> AsyncIterator[tuple[Served, Settings]]:
    settings = settings_for(default_engine, one_table.name, **ORIGINS)
    async with serving(settings) as visitor:
        await add_contenders(visitor, "Ann", "Ben", "Cat")
    async with serving_on_a_socket(settings) as served:
        yield served, settings


def socket(served: Served, origin: str) -> connect:
    address = served.url.replace("http", "ws") + "/graphql"
    return connect(address, subprotocols=[PROTOCOL], origin=Origin(origin))


async def initialise(connection: ClientConnection, token: str) -> None:
    payload = {"Authorization": f"Visitor {token}"}
    await send(connection, {"type": "connection_init", "payload": payload})


def token_of(settings: Settings, origin: str = SHOP, days: float = 1) -> str:
    visitor = VISITOR_PREFIX + "a" * 26
    return sign_visit(settings.seal(), visitor, origin, utc_now() + timedelta(days=days))


async def test_a_page_of_another_site_votes_over_a_socket(served: tuple[Served, Settings]) -> None:
    """With the token in connectionParams; a visit starts there too, for the socket's origin."""
    server, settings = served
    async with socket(server, SHOP) as connection:
        await initialise(connection, token_of(settings))
        assert (await receive(connection))["type"] == "connection_ack"
        start = {"query": START, "variables": {"input": {}}}
        for number, payload in enumerate(({"query": DRAW}, start)):
            await send(connection, {"id": str(number), "type": "subscribe", "payload": payload})
        answers: dict[str, Any] = {}
        while len(answers) < 2:
            message = await receive(connection)
            if message["type"] == "next":
                answers[message["id"]] = next(iter(message["payload"]["data"].values()))
        assert answers["0"]["voter"] == VISITOR_PREFIX + "a" * 26
        renewed = open_visit(settings.seal(), answers["1"]["token"])
        assert (renewed.visitor, renewed.is_of(SHOP)) == (answers["0"]["voter"], True)


async def test_a_socket_refuses_the_token_of_another_origin_and_ends_with_the_token(
    served: tuple[Served, Settings],
) -> None:
    """With 4403 and the reason, so that the client connects again with another; foreign pages do not get so far."""
    server, settings = served

    async def reason(origin: str, token: str) -> str:
        async with socket(server, origin) as connection:
            await initialise(connection, token)
            closed = await closing(connection)
        assert closed.code == 4403
        return closed.reason.removeprefix("Forbidden: ")

    async def ends_with_its_token() -> bool:
        """On a busy machine the token may have expired before the socket began."""
        given = await reason(SHOP, token_of(settings, days=2 / 86_400))
        assert given.startswith(("token expired", expired))
        return not given.startswith(expired)

    expired = "The visit has expired"
    for origin, token, expected in (
        (BLOG, token_of(settings), "A visit's token is valid only on pages"),
        (SHOP, token_of(settings)[:-1], "The visit's token was altered"),
        (SHOP, token_of(settings, days=-1), expired),
    ):
        assert (await reason(origin, token)).startswith(expected)
    await until(ends_with_its_token, "a socket ends with its token")
    with pytest.raises(InvalidStatus):
        async with socket(server, "https://evil.example.com"):
            pass


async def test_a_stream_serves_the_visitor_until_the_token_ends(served: tuple[Served, Settings]) -> None:
    """Server-Sent Events to another site carry its CORS headers, and refuse another origin."""
    server, settings = served
    headers = {"accept": "text/event-stream", "origin": SHOP}

    async def stream() -> httpx.Response | None:
        """None if the token had expired before the stream began, as on a busy machine."""
        visit = {"authorization": f"Visitor {token_of(settings, days=2 / 86_400)}"}
        response = await http.post("/graphql", json={"query": WATCH}, headers=headers | visit)
        return None if response.status_code == 401 else response

    async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
        response = await until(stream, "a stream ends with its token")
        assert response.headers["access-control-allow-origin"] == SHOP
        [*_, event] = [line for line in response.text.splitlines() if line.startswith("data: ")]
        [error] = json.loads(event.removeprefix("data: "))["errors"]
        assert error["extensions"]["code"] == "NOT_SIGNED_IN"
        fresh = {"authorization": f"Visitor {token_of(settings)}", "origin": BLOG}
        refused = await http.post("/graphql", json={"query": WATCH}, headers=headers | fresh)
        assert refused.status_code == 401


async def test_while_secrets_rotate_every_instance_knows_the_visits_of_the_others(one_api: Client) -> None:
    """In the steps that the guide tells, of which each restarts one instance after the other."""
    guide = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8").partition("## Rotate secrets")[2]
    steps = ["old", *re.findall(r"RINGSIDE_SECRETS=([a-z,]+)", guide), "new"]
    instances = [
        one_api.settings.model_copy(update={"secrets": tuple(SecretStr(name * 20) for name in step.split(","))})
        for step in steps
    ]
    for before, after in pairwise(instances):
        async with serving(before) as one, serving(after) as other:
            assert "token" in await Page(one, SHOP, token_of(after)).ask(DRAW)
            assert "token" in await Page(other, SHOP, token_of(before)).ask(DRAW)


async def test_a_rotated_secret_opens_visits_until_it_is_dropped(
    one_table: Table, default_engine: RunningEngine
) -> None:
    """A new secret in front leaves visits as they are."""
    settings = settings_for(default_engine, one_table.name, **ORIGINS)
    token = token_of(settings)
    rotated = settings.model_copy(update={"secrets": (SecretStr("n" * 40), *settings.secrets)})
    async with serving(rotated) as client:
        await add_contenders(client, "Ann", "Ben", "Cat")
        assert "token" in await Page(client, SHOP, token).ask(DRAW)
