"""The first start: what is there, what `/` answers, and how an operator learns of an origin that is not listed."""

from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from datastore.dynamo import Rates, Table
from resolvers.requests.context import Role
from server.settings import Introspection, Settings
from tests.client import Client, serving
from tests.queries import DRAW_MATCHUP, UPDATE_BOARD

LISTED = ("https://www.example.com", "http://localhost:5500")


@pytest.fixture
async def listing(settings: Settings, one_table: Table) -> AsyncIterator[Client]:
    assert one_table.name == settings.table
    async with serving(settings.model_copy(update={"cors_origins": LISTED})) as visitor:
        yield visitor


async def logged(client: Client, *sent: str) -> list[dict[str, str]]:
    """What is logged of requests from these origins, each with its preflight."""
    with capture_logs() as entries:
        for origin in sent:
            headers = {"origin": origin, "access-control-request-method": "POST"}
            await client.http.options("/graphql", headers=headers)
            await client.http.post("/graphql", headers=headers, json={"query": "{ __typename }"})
    found = [entry for entry in entries if "RINGSIDE_CORS_ORIGINS" in entry["event"]]
    return [{key: entry[key] for key in ("origin", "similar") if key in entry} for entry in found]


async def test_an_origin_that_is_not_listed_is_logged_once_a_minute(listing: Client) -> None:
    """With the listed origin that it nearly is. Listed ones and the service's own are not logged."""
    assert await logged(
        listing, *LISTED, "http://ringside.test", "http://127.0.0.1:5500", "https://shop.example.net"
    ) == [
        {"origin": "http://127.0.0.1:5500", "similar": "http://localhost:5500"},
        {"origin": "https://shop.example.net"},
    ]
    near = {"http://www.example.com": LISTED[0], "https://example.com:8443": LISTED[0], "http://[::1]": LISTED[1]}
    for origin, similar in near.items():
        assert {"origin": origin, "similar": similar} in await logged(listing, origin)


async def test_origins_cannot_write_into_the_log_or_fill_it(listing: Client) -> None:
    """Markup and control characters are not repeated, and of very many origins a few are logged."""
    listing.services.rates = Rates(lambda: 0.0)
    bad = ("https://<script>alert(1)</script>", "https://a\x1b[31m", "null", "[red]", "https://" + "a" * 5000)
    assert await logged(listing, *bad) == [{"origin": "(no origin)"}, {"origin": "null"}]
    many = await logged(listing, *(f"https://{number}.example.net" for number in range(200)))
    assert len(many) == 8


async def test_two_first_starts_at_once_make_the_board_main(settings: Settings, one_table: Table) -> None:
    """One board, empty and open, which a service finds at every later start as it is."""
    assert one_table.name == settings.table
    async with serving(settings) as one, serving(settings) as other:
        for client in (one, other):
            assert await client.ask("{ board { slug contenderCount closed } }") == {
                "slug": "main",
                "contenderCount": 0,
                "closed": False,
            }
            assert await client.code(DRAW_MATCHUP) == "EXHAUSTED"
        editor = one.member("ed", Role.EDITOR)
        await editor.ask(UPDATE_BOARD, input={"slug": "main", "title": "Who wins?"})
    async with serving(settings) as later:
        assert await later.ask("{ board { title } }") == {"title": "Who wins?"}


async def test_the_address_of_the_service_says_what_it_is(settings: Settings, one_client: Client) -> None:
    """A page for a person, which leads to the explorer if there is one, and JSON for a program."""
    browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    page = await one_client.http.get("/", headers=browser)
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "<h1>Ringside</h1>" in page.text
    assert 'href="/graphql"' in page.text
    answer = await one_client.http.get("/")
    assert answer.json() == {"service": "Ringside", "graphql": "/graphql", "health": "/readyz"}
    assert page.headers["vary"] == answer.headers["vary"] == "Accept"
    async with serving(settings.model_copy(update={"introspection": Introspection.OFF})) as client:
        assert "/graphql" not in (await client.http.get("/", headers=browser)).text
