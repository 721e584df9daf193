"""What no key and no item can hold is refused in words, before the engine is asked; what gets past is our fault."""

from collections.abc import AsyncIterator

import pytest

from datastore.dynamo import Table
from datastore.members.api_keys import new_secret
from datastore.members.sessions import new_session
from resolvers.requests.context import Role
from server.auth.tokens import mint
from tests import season
from tests.client import Client, serving
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.fault.proxy import Proxy
from tests.queries import ADD_CONTENDER, ADD_MATCH, CREATE_EVENT, UPDATE_MATCH, UPDATE_PROFILE
from tests.voting import add_contenders

LIGATURE = "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}"
"""One character; 18 of them, in 33 bytes, once it is made comparable."""


@pytest.mark.every_engine
async def test_a_name_that_outgrows_its_key_is_refused(client: Client) -> None:
    """Eighty ligatures are within the bounds of a name; compared, they would be 2.6 KB of a key that holds one."""
    ids = await add_contenders(client, "a", LIGATURE * 20)
    editor = client.member("editor", Role.EDITOR)
    assert len(ids) == 2
    answer = await editor.ask(ADD_CONTENDER, input={"name": LIGATURE * 80})
    assert (answer["code"], answer["path"]) == ("INVALID_INPUT", ["input", "name"])


@pytest.mark.every_engine
async def test_a_cast_that_outgrows_its_item_is_refused(client: Client) -> None:
    """Forty teams of forty long names are within each bound, and beyond what an item holds."""
    editor = season.EventEditor(client)
    event, [match] = await editor.card(10)
    crowd = [{"members": ["\N{GRINNING FACE}" * 100] * 40} for _ in range(40)]
    added = {"event": event, "name": "Battle royal", "points": 10, "teams": crowd}
    for mutation, given in ((ADD_MATCH, added), (UPDATE_MATCH, {"match": match, "teams": crowd})):
        answer = await editor.client.ask(mutation, input=given)
        assert (answer["code"], answer["path"]) == ("INVALID_INPUT", ["input", "teams"])


@pytest.mark.parametrize(
    "moment",
    [
        "tomorrow",
        "2026-13-01T00:00:00Z",
        "2026-12-31T23:59:60Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "2026-01-01T00:00:00+99:99",
        "２026-01-01T00:00:00Z",
        5,
    ],
)
async def test_an_invalid_time_is_the_caller_s_mistake(one_client: Client, moment: object) -> None:
    """Malformed, of no calendar, or beyond it in UTC; as a variable and as a literal, whose place the error names."""
    editor = one_client.member("editor", Role.EDITOR)
    given = {"name": "Show", "season": "2026", "startsAt": moment}
    literal = f'"{moment}"' if isinstance(moment, str) else f"{moment}"
    written = (
        f'mutation {{ createEvent(input: {{name: "Show", season: "2026", startsAt: {literal}}}) {{ __typename }} }}'
    )
    [mistaken] = (await editor.answer(CREATE_EVENT, input=given))["errors"]
    [invalid] = (await editor.answer(written))["errors"]
    assert mistaken["extensions"]["code"] == "BAD_USER_INPUT"
    assert invalid["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"
    assert "RFC 3339" in mistaken["message"]
    assert "RFC 3339" in invalid["message"]
    assert invalid["locations"] == [{"line": 1, "column": written.index(f"{literal}}}") + 1}]


@pytest.mark.parametrize("day", ["tomorrow", "2026-02-30", "0000-01-01", "２026-01-01", 5])
async def test_an_invalid_date_is_the_caller_s_mistake(one_client: Client, day: object) -> None:
    """The same of dates."""
    asked = "query ($day: Date!) { quizLeaderboard(on: $day) { nodes { rank } } }"
    [error] = (await one_client.answer(asked, day=day))["errors"]
    assert error["extensions"]["code"] == "BAD_USER_INPUT"
    assert "yyyy-mm-dd" in error["message"]
    literal = f'"{day}"' if isinstance(day, str) else f"{day}"
    written = f"{{ quizLeaderboard(on: {literal}) {{ nodes {{ rank }} }} }}"
    [invalid] = (await one_client.answer(written))["errors"]
    assert invalid["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"
    assert "yyyy-mm-dd" in invalid["message"]
    assert invalid["locations"] == [{"line": 1, "column": written.index(literal) + 1}]


@pytest.fixture
async def picky(one_table: Table, default_engine: RunningEngine) -> AsyncIterator[Client]:
    """A member of a service whose engine accepts nothing once it knows them."""
    async with (
        Proxy(default_engine.url) as proxy,
        serving(settings_for(RunningEngine("proxy", proxy.url), one_table.name)) as visitor,
    ):
        ada = visitor.member("ada")
        assert await ada.ask("{ viewer { name } }") == {"name": "Ada"}
        proxy.error = "ValidationException"
        yield ada


async def test_a_request_that_the_engine_rejects_is_an_internal_error(picky: Client) -> None:
    """INTERNAL, not UNAVAILABLE: no repeat would help, and an operator must see it."""
    assert await picky.code(UPDATE_PROFILE, input={"name": "Ada L."}) == "INTERNAL"
    assert await picky.code("{ boards { nodes { slug } } }") == "INTERNAL"


async def test_whoever_the_engine_does_not_let_the_service_know_meets_an_internal_error(picky: Client) -> None:
    """By a provider's token, a session's and an API key: it is no limit that one could wait for."""
    session = new_session("A" * 26, "EMAIL", None, picky.services.clock())[1]
    for credential in (mint(picky.settings, "bob"), session, new_secret()):
        answer = await Client(picky.served, picky.settings, credential).post("{ boards { nodes { slug } } }")
        assert (answer.status_code, answer.json()["errors"][0]["extensions"]["code"]) == (500, "INTERNAL")
