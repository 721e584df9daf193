"""GraphQL over HTTP: what the address answers to all kinds of requests, good and bad."""

import asyncio
import gzip
import json
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import pytest
from graphql import get_introspection_query
from structlog.testing import capture_logs

from datastore.dynamo import Table, metered
from datastore.dynamo.budgets import HELD_UNITS
from datastore.values.ids import Ids
from resolvers.people.confirmations import Link, Purpose
from resolvers.requests.context import Role, utc_now
from resolvers.values.node_ids import node_id
from resolvers.whole.exporting import PURPOSE
from server.execution.documents import Turns, hash_of
from server.execution.limits import MOST_VALUES, count_values
from server.http import pipeline
from server.http.browser_pages import Elements
from server.mail.message import Unsubscription
from server.settings import Settings
from server.telemetry import Outcome
from tests.client import Client, serving
from tests.command import ROOT
from tests.intercepted import intercepted
from tests.npm import FOLDER, node_with
from tests.queries import CAST_VOTE, DRAW_MATCHUP, POST_COMMENT, RECORD_QUIZ
from tests.query_bombs import QUERY_BOMBS
from tests.season import EventEditor, prediction_input
from tests.service import Service, running_service
from tests.sign_in import in_session
from tests.vocabulary import known_list
from tests.voting import add_contenders
from tests.waiting import LONGEST, until

MODERN = "application/graphql-response+json"


def test_the_public_audit_passes_in_full(service: Service) -> None:
    """All 61 checks of graphql-http's auditServer are ok; none is a warning."""
    command = [node_with("graphql-http"), "audit.mjs", f"{service.url}/graphql"]
    printed = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=True)
    results = [json.loads(line) for line in printed.stdout.splitlines()]
    assert [result for result in results if result["status"] != "ok"] == []
    assert len(results) == 61


async def test_a_document_error_is_400_unless_the_client_asks_for_plain_json(one_client: Client) -> None:
    """Only an explicit `application/json` gets the 200 that older clients expect."""
    statuses = {}
    for accept in ("*/*", MODERN, "application/json"):
        response = await one_client.http.post("/graphql", json={"query": "{ nothing }"}, headers={"accept": accept})
        statuses[accept] = response.status_code
        assert "data" not in response.json()
    assert statuses == {"*/*": 400, MODERN: 400, "application/json": 200}


async def test_several_accept_lines_are_one_list(one_client: Client) -> None:
    """As HTTP has it for every header that is a list."""
    del one_client.http.headers["accept"]
    lines = [("accept", "text/html"), ("accept", "application/json")]
    response = await one_client.http.post("/graphql", json={"query": "{ __typename }"}, headers=lines)
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json; charset=utf-8")


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        (f"application/json, {MODERN}", MODERN),
        (f"*/*, {MODERN}", MODERN),
        (f"application/json, {MODERN};q=0.9", "application/json"),
        (f"application/json, {MODERN};q=nan", "application/json"),
        (f"application/json;q=0.1, {MODERN};q=0.5, application/json", "application/json"),
    ],
)
async def test_the_newer_type_wins_if_it_is_preferred_as_much(one_client: Client, accept: str, media_type: str) -> None:
    """A client that names both can read either, and so gets the status that tells a refusal."""
    response = await one_client.http.post("/graphql", json={"query": "{ nothing }"}, headers={"accept": accept})
    assert response.headers["content-type"] == f"{media_type}; charset=utf-8"
    assert response.status_code == (400 if media_type == MODERN else 200)


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("text/html, text/*;q=0.9, */*;q=0.8", "application/json; charset=utf-8"),
        ("text/*, application/json;q=0.9", "application/json; charset=utf-8"),
        (f"text/*, {MODERN};q=0", "text/event-stream"),
    ],
)
async def test_a_client_that_accepts_other_texts_too_is_answered_in_json(
    one_client: Client, accept: str, media_type: str
) -> None:
    """If it accepts that: it hardly means an event stream of one event."""
    response = await one_client.http.post("/graphql", json={"query": "{ __typename }"}, headers={"accept": accept})
    assert (response.status_code, response.headers["content-type"]) == (200, media_type)


ENDS_AT_ONCE = "subscription { leaderboardChanged(first: 0) { rank } }"


@pytest.mark.parametrize(
    "accept",
    [
        "text/event-stream",
        "application/json, text/event-stream",
        f"{MODERN}, application/json;q=0.9, text/event-stream;q=0.1",
        "text/*",
    ],
)
async def test_a_subscription_streams_to_whoever_accepts_a_stream(one_client: Client, accept: str) -> None:
    """However little it is preferred: there is no other way to answer."""
    headers = {"accept": accept}
    response = await one_client.http.post("/graphql", json={"query": ENDS_AT_ONCE}, headers=headers)
    assert (response.status_code, response.headers["content-type"]) == (200, "text/event-stream")


@pytest.mark.parametrize(
    "accept", ["application/json", MODERN, "*/*", "", "text/event-stream;q=0, */*", "application/*, text/*;q=0"]
)
async def test_a_subscription_is_refused_where_a_stream_is_not_accepted(one_client: Client, accept: str) -> None:
    """Who accepts anything may wait for the answer's end."""
    headers = {"accept": accept}
    response = await one_client.http.post("/graphql", json={"query": ENDS_AT_ONCE}, headers=headers)
    assert response.status_code == 406
    assert "WebSocket" in response.json()["errors"][0]["message"]


@pytest.mark.parametrize(
    "query",
    [
        "query ($n: Int!) { boards(first: $n) { nodes { id } } }",
        "subscription ($n: Int!) { leaderboardChanged(first: $n) { rank } }",
    ],
)
async def test_variables_that_do_not_fit_are_400_where_a_stream_is_accepted(one_client: Client, query: str) -> None:
    """As a document that does not fit: a stream would begin with 200."""
    headers = {"accept": "text/event-stream"}
    before = await one_client.counted(Outcome.INVALID)
    with capture_logs() as logs:
        response = await one_client.http.post("/graphql", json={"query": query}, headers=headers)
    assert (response.status_code, response.headers["content-type"]) == (400, "application/json; charset=utf-8")
    assert "data" not in response.json()
    assert await one_client.counted(Outcome.INVALID) == before + 1
    assert [line["outcome"] for line in logs if line["event"] in ("answered", "refused")] == ["invalid"]


@pytest.mark.parametrize("accept", [MODERN, "application/json"])
async def test_a_refusal_has_the_media_type_that_was_asked_for(one_client: Client, accept: str) -> None:
    """Also when nothing was parsed (400) and nobody identified (401)."""
    for status, headers, content in (
        (400, {}, b"{"),
        (401, {"authorization": "Bearer x"}, b'{"query": "{ __typename }"}'),
    ):
        sent = {"accept": accept, "content-type": "application/json", **headers}
        response = await one_client.http.post("/graphql", content=content, headers=sent)
        assert (response.status_code, response.headers["content-type"]) == (status, f"{accept}; charset=utf-8")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ({"method": "PUT", "json": {"query": "{ __typename }"}}, 405),
        ({"method": "GET", "params": {"query": "mutation { updateProfile(input: {}) { __typename } }"}}, 405),
        ({"method": "GET", "params": {"query": "{ __typename }", "variables": "[1"}}, 400),
        ({"method": "GET", "params": {"query": "{ a" + " a" * 9000 + "}"}}, 414),
        ({"method": "GET", "url": "/graphql?query={__typename}&variables={%22product%22:%22caf%E9%22}"}, 400),
        ({"method": "POST", "content": "{}", "headers": {"content-type": "text/plain"}}, 415),
        ({"method": "POST", "content": b"{}", "headers": {"content-type": "application/json; charset=latin-1"}}, 415),
        ({"method": "POST", "data": {"query": "{ __typename }"}}, 415),
        ({"method": "POST", "content": b'{"query": "\xff"}', "headers": {"content-type": "application/json"}}, 400),
        ({"method": "POST", "content": b'{"query": "\\ud800"}', "headers": {"content-type": "application/json"}}, 400),
        ({"method": "POST", "content": b"[" * 5000, "headers": {"content-type": "application/json"}}, 400),
        ({"method": "POST", "json": [{"query": "{ __typename }"}]}, 400),
        ({"method": "POST", "json": {"query": 1}}, 400),
        ({"method": "POST", "json": {"query": "{ __typename }", "variables": []}}, 400),
        ({"method": "POST", "json": {"query": "{ __typename }", "operationName": 3}}, 400),
        ({"method": "POST", "json": {"query": "{ __typename }"}, "headers": {"accept": "image/png"}}, 406),
        ({"method": "POST", "content": b" " * 3_000_000, "headers": {"content-type": "application/json"}}, 413),
    ],
)
async def test_an_invalid_request_gets_a_readable_error(
    one_client: Client, request_: dict[str, Any], status: int
) -> None:
    """A 4xx with one readable error in GraphQL's shape, and the service goes on."""
    response = await one_client.http.request(**{"url": "/graphql", **request_})
    assert response.status_code == status, response.text
    assert len(response.json()["errors"][0]["message"]) > 10
    assert await one_client.ask("{ __typename }") == "Query"


async def test_a_compressed_body_is_refused_by_name(one_client: Client) -> None:
    """With how to send it. A body that names itself uncompressed is read."""
    body, json = b'{"query": "{ __typename }"}', {"content-type": "application/json"}
    for encoding in ("gzip", "br", "identity, gzip"):
        sent = {**json, "content-encoding": encoding}
        refused = await one_client.http.post("/graphql", content=gzip.compress(body), headers=sent)
        assert (refused.status_code, refused.headers["accept-encoding"]) == (415, "identity")
        assert refused.json()["errors"][0]["message"] == "Send the body uncompressed."
    plain = await one_client.http.post("/graphql", content=body, headers={**json, "content-encoding": "Identity"})
    assert plain.json() == {"data": {"__typename": "Query"}}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("POST", "/graphql/", 404), ("GET", "/graphql/", 404), ("GET", "/nowhere", 404), ("POST", "/livez", 405)],
)
async def test_an_address_without_an_answer_says_so_in_the_shape_of_graphql(
    one_client: Client, method: str, path: str, status: int
) -> None:
    """As every status does, and names the address of GraphQL."""
    response = await one_client.http.request(method, path)
    assert response.status_code == status
    [error] = response.json()["errors"]
    assert error["extensions"] == {"code": "BAD_REQUEST"}
    assert status != 404 or "/graphql" in error["message"]


async def test_an_address_that_a_setting_turns_on_names_the_setting(one_client: Client) -> None:
    """An operator who has set up the provider, but not the service, learns what is missing."""
    response = await one_client.http.get("/sign-in/callback")
    assert response.status_code == 404
    assert "RINGSIDE_OIDC_CLIENT_ID" in response.json()["errors"][0]["message"]


@pytest.mark.parametrize("bomb", QUERY_BOMBS.values(), ids=QUERY_BOMBS.keys())
async def test_a_query_bomb_is_refused(one_client: Client, bomb: str) -> None:
    """With a readable error, and the service goes on."""
    response = await one_client.post(bomb)
    body = response.json()
    assert response.status_code == 400
    assert body["errors"][0]["message"]
    assert "INTERNAL" not in response.text
    assert "Traceback" not in response.text
    assert await one_client.ask("{ __typename }") == "Query"


@pytest.mark.parametrize("text", ["a\x00b", "\x00"])
async def test_nul_is_refused_in_arguments_and_inputs(one_client: Client, text: str) -> None:
    """Whatever the field: nothing with NUL reaches the table."""
    ada = one_client.member("ada")
    update = "mutation ($n: String) { updateProfile(input: {name: $n}) { ... on Refused { code path } } }"
    assert await ada.ask(update, n=text) == {"code": "INVALID_INPUT", "path": ["input", "name"]}
    assert await ada.code("query ($i: ID!) { node(id: $i) { id } }", i=text) == "BAD_USER_INPUT"


async def test_an_id_of_another_type_or_altered_is_refused(one_client: Client) -> None:
    """One character makes the difference, in any place."""
    ada = one_client.member("ada")
    given = (await ada.ask("{ viewer { id } }"))["id"]
    for place in range(len(given)):
        altered = given[:place] + ("A" if given[place] != "A" else "B") + given[place + 1 :]
        assert await ada.code("query ($i: ID!) { user(id: $i) { id } }", i=altered) == "BAD_USER_INPUT"


async def test_without_introspection_there_are_no_hints(settings: Settings, one_table: Table) -> None:
    """With `role`, strangers see neither the schema nor suggestions; editors see both."""
    assert one_table.name == settings.table
    async with serving(settings.model_copy(update={"introspection": "role"})) as visitor:
        answers = [await one.answer("{ vewer { id } }") for one in (visitor, visitor.member("ed", Role.EDITOR))]
        assert ["Did you mean" in answer["errors"][0]["message"] for answer in answers] == [False, True]
        refused = await visitor.answer("{ __schema { types { name } } }")
        assert "introspection" in refused["errors"][0]["message"].lower()
        wrong_name = "mutation { updateProfile(input: {nme: 1}) { __typename } }"
        assert "Did you mean" not in json.dumps(await visitor.answer(wrong_name))
        assert (await visitor.member("ed", Role.EDITOR).ask("{ __schema { queryType { name } } }"))["queryType"]


async def test_an_equal_introspection_is_answered_from_memory(settings: Settings, one_table: Table) -> None:
    """From its third use on graphql-core executes it no more: the same answer, to those who may introspect."""
    assert one_table.name == settings.table
    everything = get_introspection_query()
    of_variable = "query ($n: String!) { __type(name: $n) { name } }"
    mixed = "{ __schema { queryType { name } } viewer { name } }"

    async def executed(of: Client) -> int:
        figures = (await of.http.get("/metrics")).text
        return sum(int(float(count)) for count in re.findall(r"ringside_fallbacks_total{[^}]*} (\S+)", figures))

    async with serving(settings.model_copy(update={"introspection": "role"})) as visitor:
        editor = visitor.member("ed", Role.EDITOR)
        answers = [await editor.answer(everything) for _ in range(2)]
        before = await executed(visitor)
        answers += [await editor.answer(everything) for _ in range(3)]
        assert await executed(visitor) == before
        assert all(answer == answers[0] for answer in answers)
        assert len(answers[0]["data"]["__schema"]["types"]) > 100
        assert "introspection" in (await visitor.answer(everything))["errors"][0]["message"].lower()
        for name in ("User", "Board", "User", "Nothing", "Board"):
            answer = await editor.ask(of_variable, n=name)
            assert answer == (None if name == "Nothing" else {"name": name})
        for member in ("ada", "bob", "ada", "bob"):
            one = visitor.member(member, Role.EDITOR)
            assert (await one.answer(mixed))["data"]["viewer"] == {"name": member.title()}


VOTE = "mutation ($input: CastVoteInput!) { castVote(input: $input) { __typename } }"
WRONG_NAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "a value of an enum": (VOTE, {"input": {"token": "x", "verdict": "İ"}}),
    "a field of an input": (VOTE, {"input": {"token": "x", "verdict": "LEFT", "tokenİ": "x", "İİİ": "x"}}),
    "in the document": ('mutation { castVote(input: { token: "x", verdict: "İİ" }) { __typename } }', {}),
    "escaped": (r'query ($state: EventState = "\u0130\u{130}") { events(state: $state) { nodes { id } } }', {}),
}


@pytest.mark.parametrize("name", WRONG_NAMES)
async def test_a_wrong_name_in_any_writing_is_explained(one_client: Client, name: str) -> None:
    """Where it is compared with the right ones, to suggest one: `İ` is longer in lower case."""
    query, variables = WRONG_NAMES[name]
    for _ in range(3):  # executed by graphql-core, compiled, from the cache
        response = await one_client.post(query, **variables)
        assert response.status_code in (200, 400)
        assert response.json()["errors"][0]["extensions"]["code"] in ("BAD_USER_INPUT", "GRAPHQL_VALIDATION_FAILED")


async def test_a_visitor_gets_a_cookie_once_and_a_forged_one_is_401(one_client: Client) -> None:
    """The cookie is HttpOnly and SameSite; an altered one is refused and deleted."""
    first = await one_client.post("{ __typename }")
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    again = await one_client.post("{ __typename }")
    assert "set-cookie" not in again.headers
    forged = await one_client.visitor().http.post(
        "/graphql", json={"query": "{ __typename }"}, headers={"cookie": cookie.split(";")[0] + "x"}
    )
    assert forged.status_code == 401
    assert forged.headers["www-authenticate"].startswith("Bearer")
    assert "Max-Age=0" in forged.headers["set-cookie"]


async def test_who_has_both_cookies_of_a_secret_that_was_dropped_asks_again_once(one_client: Client) -> None:
    """Who has voted has the reader's cookie too, and a page asks again once; one that still holds stays."""
    kept = (await one_client.post("{ __typename }")).headers["set-cookie"].partition(";")[0]

    async def deleted(cookie: str) -> set[str]:
        answer = await one_client.visitor().http.post("/graphql", json={"query": "{ now }"}, headers={"cookie": cookie})
        assert answer.status_code == 401
        return {each.partition("=")[0] for each in answer.headers.get_list("set-cookie") if "Max-Age=0" in each}

    assert await deleted("ringside_visitor=old; ringside_reader=old") == {"ringside_visitor", "ringside_reader"}
    assert await deleted(f"ringside_visitor=old; {kept}") == {"ringside_visitor"}


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_what_a_page_reads_while_it_draws_does_not_replace_its_visitor(one_client: Client, accept: str) -> None:
    """A new visitor's page sends everything at once, and its ballot stays theirs, whatever is answered last."""
    await add_contenders(one_client, "Rey", "Kane")
    one_client.http.headers["accept"] = accept
    page = one_client.visitor()
    page.http.headers["accept"] = accept
    others = ("{ __typename }", "{ nothing }", "{")
    drawn, *read = await asyncio.gather(page.post(DRAW_MATCHUP), *(one_client.post(text) for text in others))
    page.http.headers["accept"] = "application/json"
    for answer in read:
        assert answer.cookies
        page.http.cookies.update(answer.cookies)
    token = re.search(r'"token":"([^"]+)"', drawn.text)
    assert token is not None
    assert "winner" in await page.ask(CAST_VOTE, token=token[1], verdict="LEFT")


async def test_a_service_at_its_limit_says_when_to_retry(settings: Settings, one_table: Table) -> None:
    """One request at a time fits; the others get 503 with Retry-After, and later ones are served."""
    assert one_table.name == settings.table
    async with serving(settings.model_copy(update={"max_in_flight": 1})) as visitor:
        ada = visitor.member("ada")
        update = 'mutation { updateProfile(input: {name: "Ada"}) { __typename } }'
        responses = await asyncio.gather(*(ada.post(update) for _ in range(10)))
        turned_away = [response for response in responses if response.status_code == 503]
        assert turned_away
        assert all(float(response.headers["retry-after"]) > 0 for response in turned_away)
        assert (await ada.post(update)).status_code == 200


async def test_requests_are_counted_in_one_thread(one_client: Client) -> None:
    """Whoever reads the metrics too: the event loop and another thread would count some of them twice."""
    threads: list[int] = []

    def loads() -> dict[tuple[str, str], int]:
        threads.append(threading.get_ident())
        return {}

    one_client.served.state["pipeline"].metrics.watch_loads(loads)
    await one_client.http.get("/metrics")
    assert threads == [threading.get_ident()]


async def test_the_log_says_why_a_request_was_refused(one_client: Client) -> None:
    """By a line for each, as for those that are answered; of a document that is not valid only the code."""
    json_body = {"content-type": "application/json"}
    with capture_logs() as logs:
        for content, headers in (
            (b'{"query": "{ now }"}', json_body | {"authorization": "Bearer of.no.use"}),
            (b'{"query": "{ secret }"}', json_body),
            (b"[]", json_body),
            (b"{", {}),
        ):
            await one_client.http.post("/graphql", content=content, headers=headers)
    assert [(line["outcome"], line["reason"]) for line in logs if line["event"] == "refused"] == [
        ("unauthenticated", "The token is not a JSON Web Token."),
        ("invalid", "GRAPHQL_VALIDATION_FAILED"),
        ("invalid", "Send one request at a time: batching is not supported."),
        ("invalid", "Send the request as application/json in UTF-8."),
    ]


async def test_only_trusted_documents_run_when_there_is_a_manifest(
    settings: Settings, one_table: Table, tmp_path: Path
) -> None:
    """By hash or in full; everything else is refused, however harmless."""
    assert one_table.name == settings.table
    text = "query Me { viewer { id } }"
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({hash_of(text): text}))
    async with serving(settings.model_copy(update={"trusted_documents": manifest})) as visitor:
        by_hash = await visitor.http.post("/graphql", json={"documentId": f"sha256:{hash_of(text)}"})
        assert by_hash.json() == {"data": {"viewer": None}}
        assert (await visitor.answer(text)) == {"data": {"viewer": None}}
        assert await visitor.code("{ viewer { id } }") == "BAD_USER_INPUT"
        assert await persisted(visitor, hash_of(text)) == {"data": {"viewer": None}}
        assert await persisted(visitor, hash_of(text), "another text") == {"data": {"viewer": None}}
        assert await persisted(visitor, hash_of("another printer's text"), text) == {"data": {"viewer": None}}
        unknown = "{ viewer { name } }"
        not_found = {"message": "PersistedQueryNotFound", "extensions": {"code": "PERSISTED_QUERY_NOT_FOUND"}}
        assert await persisted(visitor, hash_of(unknown)) == {"errors": [not_found]}
        by_id = await visitor.http.post("/graphql", json={"documentId": f"sha256:{hash_of(unknown)}"})
        assert by_id.json() == {"errors": [not_found]}
        [refused] = (await persisted(visitor, hash_of(unknown), unknown))["errors"]
        assert refused["extensions"] == {"code": "BAD_USER_INPUT"}
        assert "manifest" in refused["message"]


async def test_a_page_waits_for_the_table_as_long_as_a_request_may(one_client: Client) -> None:
    """A table that never answers is waited for as long as RINGSIDE_REQUEST_TIMEOUT says; then the page says so."""

    async def never(*_: Any) -> None:
        await asyncio.Event().wait()

    async with serving(one_client.settings.model_copy(update={"request_timeout": 0.2})) as visitor:
        with intercepted(visitor.services.table, ("get_item", "batch_get_item", "query"), never):
            for path, token in _links(visitor).items():
                answer = await asyncio.wait_for(visitor.http.get(path, params={"token": token}), LONGEST)
                assert answer.status_code == 503, path


def _links(client: Client) -> dict[str, str]:
    """The addresses that links lead to, and what they carry."""
    seal, now = client.services.seal, utc_now()
    link = Link(Purpose.SUBSCRIPTION, "ada@example.org", "", now.date(), ("list", ""), now + timedelta(hours=1))
    return {
        "/member-export": seal.sign_text(PURPOSE, b"job"),
        "/unsubscribe": Unsubscription("ada", "list").token(seal),
        "/confirm": link.token(seal),
    }


async def test_links_and_sign_ins_count_towards_the_requests_of_their_address(one_client: Client) -> None:
    """Above its share they get 503 with Retry-After, and those of another address are answered."""
    shop = "https://shop.example"
    update = {"max_in_flight": pipeline.LEAST_OF_ADDRESS * 2, "cors_origins": (shop,)}
    async with serving(one_client.settings.model_copy(update=update)) as client, AsyncExitStack() as opened:
        ada, own = await in_session(client, "ada"), {"origin": "http://ringside.test"}
        links = _links(client).items()
        own["authorization"] = ada.http.headers["authorization"]
        for _ in range(pipeline.LEAST_OF_ADDRESS):
            opened.enter_context(client.served.state["pipeline"].in_flight("192.0.2.1"))
        for address, expected in (("192.0.2.1", [503] * 4), ("192.0.2.2", [410, 200, 404, 200])):
            transport = httpx.ASGITransport(client.served, client=(address, 1))
            http = await opened.enter_async_context(httpx.AsyncClient(transport=transport, base_url=own["origin"]))
            answers = [await http.head(path, params={"token": token}) for path, token in links]
            answers.append(await http.post("/sign-in/done", json={"origin": shop}, headers=own))
            assert [answer.status_code for answer in answers] == expected
            assert all("retry-after" in answer.headers for answer in answers if answer.status_code == 503)


@pytest.mark.parametrize(("words", "uses"), [(57_000, 1), (4_000, 1), (1_000, 40)])
async def test_long_lists_in_variables_are_refused_before_they_are_read(
    one_client: Client, words: int, uses: int
) -> None:
    """Each use of a variable takes in all of its values, which holds up all other requests."""
    fields = " ".join(f"a{number}: addWords(input: $i) {{ __typename }}" for number in range(uses))
    large = {"list": node_id("WordList", "01HZZZZZZZZZZZZZZZZZZZZZZZ"), "words": [{"definition": ""}] * words}
    response = await one_client.post(f"mutation ($i: AddWordsInput!) {{ {fields} }}", i=large)
    assert response.status_code == 400
    assert response.json()["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"


async def test_one_address_keeps_nobody_else_s_new_documents_from_being_checked(one_client: Client) -> None:
    """It fills half of the room at most, and others are served in between. Compiling waits in the same way."""
    turns: Turns = one_client.served.state["pipeline"].turns
    most, checked = pipeline.most_of_address(one_client.settings.max_in_flight), threading.Event()
    held = asyncio.create_task(turns.take("held", checked.wait))
    flood, other = ("198.51.100.1", "203.0.113.7")
    many = [
        asyncio.create_task(_asked_from(one_client, flood, f"query Flood{n} {{ __typename }}")) for n in range(most)
    ]
    await until(lambda: turns.waiting_of[flood] == most, "all wait")
    one = asyncio.create_task(_asked_from(one_client, other, "query Other { __typename }"))
    await until(lambda: turns.waiting_of[other] == 1 or one.done(), "another address has asked")
    checked.set()
    assert await one == 200
    assert await held
    assert set(await asyncio.gather(*many)) == {200}
    chosen = "query Chosen($a: Boolean!) { __typename @include(if: $a) }"
    assert {await _asked_from(one_client, flood, chosen, a=True) for _ in range(3)} == {200}
    checked.clear()
    held = asyncio.create_task(turns.take("held again", checked.wait))
    again = asyncio.create_task(_asked_from(one_client, flood, chosen, a=False))
    await until(lambda: turns.waiting_of[flood] == 1, "what is compiled waits as the address's, too")
    checked.set()
    assert await again == 200
    assert await held


async def _asked_from(client: Client, address: str, query: str, **variables: object) -> int:
    """The status that a client of this address is answered."""
    transport = httpx.ASGITransport(client.served, client=(address, 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://ringside.test", timeout=120) as http:
        return (await http.post("/graphql", json={"query": query, "variables": variables})).status_code


@pytest.mark.parametrize("piece", ['{"":[]},', "[],", '"",', "1,", '""', "{"])
async def test_a_body_of_very_many_values_is_refused_before_it_is_parsed(one_client: Client, piece: str) -> None:
    """To make their objects would hold up all other requests. What follows is not even JSON."""
    body = '{"query": "{ __typename }", "variables": {"a": [' + piece * 50_000 + "no JSON"
    response = await one_client.http.post("/graphql", content=body, headers={"content-type": "application/json"})
    assert response.status_code == 400
    error = response.json()["errors"][0]
    assert error["message"].startswith("Too many strings, brackets and commas in the JSON: more than 20000.")
    assert error["extensions"]["code"] == "BAD_USER_INPUT"


@pytest.mark.parametrize("value", [{"k": "x"}, {"k": {}}, [["x"]], r'{"[,\",\\' * 10])
async def test_the_most_values_that_variables_may_have_are_parsed(one_client: Client, value: Any) -> None:
    """Whatever they are: texts may hold brackets, commas and quotes."""
    query = "# " + "{,[," * 10_000 + "\n{ __typename }"
    variables = {"a": [value] * ((MOST_VALUES - 1) // count_values(value, MOST_VALUES))}
    missing = MOST_VALUES - (count_values(variables, 2 * MOST_VALUES) - 1)
    variables["a"] += ["x"] * missing
    body = {"query": query, "variables": variables, "extensions": {}}
    response = await one_client.http.post("/graphql", json=body)
    assert response.json() == {"data": {"__typename": "Query"}}
    variables["a"].append("x")
    error = (await one_client.http.post("/graphql", json=body)).json()["errors"][0]
    assert error["message"] == f"The variables hold more than {MOST_VALUES} values. Send fewer at once."


@pytest.fixture
def allow(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets requests ask for fewer calls or read units."""

    def set_allowance(**most: float) -> None:
        for name, number in most.items():
            monkeypatch.setattr(pipeline, f"MAX_{name.upper()}", number)

    return set_allowance


async def test_a_query_that_asks_the_table_for_too_much_is_refused(
    one_client: Client, allow: Callable[..., None]
) -> None:
    """Its calls may all begin at once; each other query has as many again."""
    event = await EventEditor(one_client).event()
    pages = " ".join(f"p{number}: predictions(first: 1) {{ __typename }}" for number in range(10))
    text = f"query ($id: ID!) {{ event(id: $id) {{ {pages} }} }}"
    assert len(await one_client.ask(text, id=event["id"])) == 10
    allow(calls=50)
    for _ in range(2):
        with metered() as spent:
            errors = (await one_client.post(text, id=event["id"])).json()["errors"]
        assert {error["extensions"]["code"] for error in errors} == {"BAD_USER_INPUT"}
        assert "reads too much" in errors[0]["message"]
        assert spent.calls <= 51


async def test_an_event_of_a_stream_may_ask_for_no_more(one_client: Client, allow: Callable[..., None]) -> None:
    """Each event has an allowance of its own."""
    event = await EventEditor(one_client).event()
    pages = " ".join(f"p{number}: predictions(first: 1) {{ __typename }}" for number in range(10))
    allow(calls=50)
    text = f"subscription ($id: ID!) {{ eventChanged(event: $id) {{ {pages} }} }}"
    for _ in range(2):
        with metered() as spent:
            told = await _first_event(one_client, text, id=event["id"])
        assert {error["extensions"]["code"] for error in told["errors"]} == {"BAD_USER_INPUT"}
        assert spent.calls < 60


async def _first_event(client: Client, query: str, **variables: Any) -> dict[str, Any]:
    """What a stream tells first; then its listener is gone."""
    body, told = json.dumps({"query": query, "variables": variables}).encode(), asyncio.Event()
    requests, sent = iter([{"type": "http.request", "body": body}]), bytearray()
    headers = {"host": "ringside.test", "content-type": "application/json", "accept": "text/event-stream"}

    async def receive() -> MutableMapping[str, Any]:
        if (request := next(requests, None)) is None:
            await told.wait()
        return request or {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.extend(message.get("body", b""))
        if b"data: {" in sent:
            told.set()

    await client.served(_posted("/graphql", headers), receive, send)
    data = next(line for line in sent.decode().splitlines() if line.startswith("data: {"))
    event: dict[str, Any] = json.loads(data.removeprefix("data: "))
    return event


def _posted(path: str, headers: Mapping[str, str]) -> MutableMapping[str, Any]:
    """A request as the server hands it to the application."""
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("ringside.test", 80),
    }


@pytest.mark.parametrize("path", ["/graphql", "/sign-in", "/sign-in/done"])
async def test_a_client_that_leaves_within_its_body_is_no_fault_of_the_service(one_client: Client, path: str) -> None:
    """Nothing is raised, which the server would log as an error: strangers could sound the operator's alarm."""
    begun, statuses = {"type": "http.request", "body": b'{"a"', "more_body": True}, list[int]()
    messages: list[dict[str, Any]] = [{"type": "http.disconnect"}, begun]

    async def receive() -> MutableMapping[str, Any]:
        return messages.pop()

    async def send(message: MutableMapping[str, Any]) -> None:
        statuses.extend([message["status"]] if "status" in message else [])

    headers = {"host": "ringside.test", "origin": "http://ringside.test", "content-type": "application/json"}
    await one_client.served(_posted(path, headers), receive, send)
    assert statuses == [400]


async def test_a_mutation_s_answer_may_ask_for_no_more(one_client: Client, allow: Callable[..., None]) -> None:
    """What a mutation itself does is not refused: half of it would be done."""
    event, [match] = await EventEditor(one_client).card(10)
    pages = " ".join(f"p{number}: predictions(first: 1) {{ __typename }}" for number in range(10))
    text = f"""mutation ($input: SubmitPredictionInput!) {{ submitPrediction(input: $input) {{
      ... on PredictionSubmitted {{ prediction {{ event {{ {pages} }} }} }} }} }}"""
    allow(calls=1)
    with metered() as spent:
        body = await one_client.member("ada").answer(text, input=prediction_input(event, [(match, 0)]))
    assert {error["extensions"]["code"] for error in body["errors"]} == {"BAD_USER_INPUT"}
    assert spent.calls < 30
    allow(calls=2000)
    found = await one_client.ask(
        "query ($id: ID!) { event(id: $id) { predictions { nodes { user { id } } } } }", id=event
    )
    assert len(found["predictions"]["nodes"]) == 1


async def test_what_others_wait_for_too_is_not_taken_from_a_request_s_allowance(
    one_client: Client, allow: Callable[..., None]
) -> None:
    """A day's leaderboard is read whole, whatever is asked of it, by the request that happens to be the first."""
    list_id = await known_list(one_client, words=1)
    for number in range(30):
        recorded = {"list": list_id, "correct": 1, "total": 1}
        await one_client.member(f"m{number}").ask(RECORD_QUIZ, input=recorded)
    on = utc_now().date().isoformat()
    text = """query ($on: Date!) { quizLeaderboard(on: $on, first: 2) { nodes { correct user { quizResults(first: 1) {
      nodes { correct } } } } } }"""
    allow(read_units=2 * HELD_UNITS + 3)
    async with serving(one_client.settings) as another:  # which has not read the day yet
        with metered() as spent:
            assert len((await another.ask(text, on=on))["nodes"]) == 2
    assert spent.read_units > 5


async def test_an_object_that_is_asked_for_twice_is_read_once(one_client: Client) -> None:
    event = (await EventEditor(one_client).event())["id"]
    unknown = node_id("Comment", f"p#{Ids().next(utc_now())}")
    with metered() as spent:
        answer = await one_client.ask("query ($ids: [ID!]!) { nodes(ids: $ids) { id } }", ids=[event, unknown] * 50)
    assert answer == [{"id": event}, None] * 50
    assert spent.calls <= 4


async def test_an_id_that_cannot_be_read_is_the_error_of_its_entry(one_client: Client) -> None:
    """By graphql-core as by the compiled code, which answers from the second use on."""
    event = (await EventEditor(one_client).event())["id"]
    body = {
        "query": "query ($ids: [ID!]!) { viewer { id } nodes(ids: $ids) { id } }",
        "variables": {"ids": [event, "x"]},
    }
    for _ in range(3):
        answer = (await one_client.http.post("/graphql", json=body)).json()
        assert answer["data"] == {"viewer": None, "nodes": [{"id": event}, None]}
        [error] = answer["errors"]
        assert (error["path"], error["extensions"]["code"]) == (["nodes", 1], "BAD_USER_INPUT")


async def test_an_answer_is_not_compressed_for_who_refuses_that(one_client: Client) -> None:
    refuses, query = {"accept-encoding": "gzip;q=0"}, {"query": "{ __schema { types { name } } }"}
    answer = await one_client.http.get("/graphql", params=query, headers=refuses)
    assert (len(answer.content) > 1000, "content-encoding" in answer.headers) == (True, False)


LONG_AGO = "1990-01-01T00:00:00Z"


async def test_an_answer_that_has_one_long_text_many_times_is_refused(service: Service) -> None:
    """A kilobyte asked for hundreds of megabytes: one text under many aliases, of each of many comments."""
    comments = 'comments(product: "long", first: 100) { nodes { %s } }'
    many, refused = comments % " ".join(f"b{n}: body" for n in range(38)), "The answer has more than 16,777,216 letters"
    headers = {"authorization": f"Bearer {service.token('ada')}"}
    async with httpx.AsyncClient(base_url=service.url, timeout=120, headers=headers) as http:

        async def ask(query: str, **variables: Any) -> dict[str, Any]:
            answer: dict[str, Any] = (await http.post("/graphql", json={"query": query, "variables": variables})).json()
            return answer

        posted = {"product": "long", "language": "en", "body": "x" * 10_000}
        for _ in range(45):
            assert "errors" not in await ask(POST_COMMENT, input=posted)
        [error] = (await ask(f"{{ {many} }}"))["errors"]
        assert (error["extensions"]["code"], error["message"].startswith(refused)) == ("BAD_USER_INPUT", True)
        assert len((await ask(f"{{ {comments % 'body'} }}"))["data"]["comments"]["nodes"]) == 45
        theirs = many.replace('product: "long", ', "")
        stream = f'subscription {{ commentPosted(product: "long", after: "{LONG_AGO}") {{ author {{ {theirs} }} }} }}'
        events = {"accept": "text/event-stream"}
        async with http.stream("POST", "/graphql", json={"query": stream}, headers=events) as response:
            told = await anext(line async for line in response.aiter_lines() if line.startswith("data:"))
            assert refused in told


@pytest.mark.parametrize("kind", ["Board", "League"])
async def test_a_hundred_invented_objects_take_a_few_calls(one_client: Client, kind: str) -> None:
    """They are looked for together: each used to take a call of its own, or two."""
    invented = [f"b{n}" if kind == "Board" else f"{Ids().next(utc_now())}:s{n}" for n in range(100)]
    ids = [node_id(kind, key) for key in invented]
    with metered() as spent:
        answer = await one_client.ask("query ($ids: [ID!]!) { nodes(ids: $ids) { id } }", ids=ids)
    assert answer == [None] * 100
    assert spent.calls <= 4


@pytest.mark.parametrize(
    ("field", "argument"),
    [
        ("query ($event: ID!) { predictions(event: $event) { nodes { id } } }", "event"),
        ("subscription ($event: ID!) { eventChanged(event: $event) { id } }", "event"),
        ('subscription { leaderboardChanged(board: "none") { rank } }', "board"),
        ('subscription { standingsChanged(season: "none") { rank } }', "season"),
        ('{ suspects(board: "none") { votesSeen } }', "board"),
    ],
)
async def test_what_a_query_names_and_does_not_exist_is_not_found(
    one_client: Client, field: str, argument: str
) -> None:
    """And no bad input: nothing is wrong with the id or slug of what is gone. The error names the argument."""
    variables = {"event": node_id("Event", Ids().next(utc_now()))}
    sent = {"query": field, "variables": variables if "$event" in field else {}}
    editor = one_client.member("ed", Role.EDITOR)
    response = await editor.http.post("/graphql", json=sent, headers={"accept": f"{MODERN}, text/event-stream"})
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if '"errors"' in line]
    assert json.loads(lines[0])["errors"][0]["extensions"] == {"code": "NOT_FOUND", "argument": argument}


async def persisted(visitor: Client, sha256: str, query: str | None = None) -> Any:
    """The answer to a persisted query as Apollo Client sends it."""
    extensions = {"persistedQuery": {"version": 1, "sha256Hash": sha256}}
    asked = {"extensions": extensions, **({"query": query} if query else {})}
    return (await visitor.http.post("/graphql", json=asked)).json()


async def test_persisted_queries_are_refused_by_name_when_there_is_no_manifest(one_client: Client) -> None:
    """So a client stops asking by hash; with the text the query runs."""
    text = "{ __typename }"
    refused = {"message": "PersistedQueryNotSupported", "extensions": {"code": "PERSISTED_QUERY_NOT_SUPPORTED"}}
    assert await persisted(one_client, hash_of(text)) == {"errors": [refused]}
    by_id = await one_client.http.post("/graphql", json={"documentId": f"sha256:{hash_of(text)}"})
    assert by_id.json() == {"errors": [refused]}
    assert await persisted(one_client, hash_of(text), text) == {"data": {"__typename": "Query"}}
    for wrong in (1, {}, {"version": 2, "sha256Hash": "a"}, {"version": 1, "sha256Hash": None}):
        response = await one_client.http.post("/graphql", json={"query": text, "extensions": {"persistedQuery": wrong}})
        assert response.status_code == 400


async def test_an_answer_comes_as_server_sent_events(one_client: Client) -> None:
    """Server-Sent Events carry a query's answer as `next` and then `complete`."""
    response = await one_client.http.post(
        "/graphql", json={"query": "{ __typename }"}, headers={"accept": "text/event-stream"}
    )
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.text.split("\n\n")[1:3] == [
        'event: next\ndata: {"data":{"__typename":"Query"}}',
        "event: complete\ndata:",
    ]


async def test_what_is_carried_out_while_the_service_closes_is_answered(one_client: Client) -> None:
    """Also as Server-Sent Events: a client that saw `complete` alone would not know what became of its mutation."""
    one_client.served.state["pipeline"].closing.set()
    ada, headers = one_client.member("ada"), {"accept": "text/event-stream"}
    rename = {"query": 'mutation { updateProfile(input: {name: "Ada"}) { __typename } }'}
    response = await ada.http.post("/graphql", json=rename, headers=headers)
    assert 'data: {"data":{"updateProfile":{"__typename":"ProfileUpdated"}}}' in response.text
    assert response.text.endswith("event: complete\ndata:\n\n")


def test_a_stream_that_ends_with_the_service_is_not_complete(tmp_path: Path) -> None:
    """By which clients of the protocol know that they have to connect again, as they do after 1001."""
    watch = {"query": "subscription { commentPosted(product: 1) { id } }"}
    headers = {"accept": "text/event-stream"}
    with running_service({"RINGSIDE_DATA": str(tmp_path)}) as own:
        with httpx.stream("POST", f"{own.url}/graphql", json=watch, headers=headers, timeout=LONGEST) as stream:
            parts = stream.iter_text()
            assert next(parts) == ":\n\n"
            own.process.terminate()
            assert set("".join(parts)) <= set(":\n")  # of the comments that nothing happens for so long
        assert own.stop() == 0


async def test_a_page_of_another_origin_is_refused(service: Service) -> None:
    """Without an allowed origin no answer carries CORS headers, and a preflight is no permission."""
    async with httpx.AsyncClient(base_url=service.url, timeout=60) as http:
        preflight = await http.options(
            "/graphql",
            headers={"origin": "https://evil.example", "access-control-request-method": "POST"},
        )
        assert preflight.status_code == 405
        assert "access-control-allow-origin" not in preflight.headers


ORIGIN = "https://www.example.com"


@pytest.fixture
async def open_to_a_site(settings: Settings, one_table: Table) -> AsyncIterator[Client]:
    """A visitor of a service that pages of one other site may ask."""
    assert one_table.name == settings.table
    async with serving(settings.model_copy(update={"cors_origins": (ORIGIN,)})) as visitor:
        visitor.http.headers["origin"] = ORIGIN
        yield visitor


async def test_a_page_of_an_allowed_origin_is_answered(open_to_a_site: Client) -> None:
    """Answers and refusals of every kind carry the headers that its browser wants; other origins get none."""
    preflight = await open_to_a_site.http.options(
        "/graphql", headers={"access-control-request-method": "POST", "access-control-request-headers": "content-type"}
    )
    bodies: list[dict[str, Any]] = [{"query": "{ __typename }"}, {"query": "{ nothing }"}, {"query": 1}]
    answers = [await open_to_a_site.http.post("/graphql", json=body) for body in bodies]
    assert [answer.status_code for answer in answers] == [200, 400, 400]
    for response in (preflight, *answers):
        assert response.headers["access-control-allow-origin"] == ORIGIN
        assert response.headers["access-control-allow-credentials"] == "true"
    other = await open_to_a_site.http.post(
        "/graphql", json={"query": "{ __typename }"}, headers={"origin": "https://evil.example"}
    )
    assert "access-control-allow-origin" not in other.headers


async def test_what_every_page_may_read_is_the_same_for_a_page_of_an_allowed_origin(open_to_a_site: Client) -> None:
    """A shared cache keeps it, and some give the copy of one site to another, whatever its `Vary` says."""
    addresses = ["/products/p.jsonld"]
    if (script := Elements().script) is not None:
        part = next(script.parent.glob("elements/*.js"))
        addresses += ["/elements.js", f"/{script.name}", f"/elements/{part.name}"]
    for address in addresses:
        answer = await open_to_a_site.http.get(address)
        assert answer.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize("header", ["authorization", "content-type", "last-event-id", "traceparent", "x-request-id"])
async def test_a_page_of_an_allowed_origin_may_send_every_header_that_counts(
    open_to_a_site: Client, header: str
) -> None:
    """Its browser asks first. Without `last-event-id` a stream that broke would miss comments."""
    headers = {"access-control-request-method": "POST", "access-control-request-headers": header}
    preflight = await open_to_a_site.http.options("/graphql", headers=headers)
    assert preflight.status_code == 200
    assert header in preflight.headers["access-control-allow-headers"].lower()


async def test_a_page_of_an_allowed_origin_may_read_how_long_to_wait(open_to_a_site: Client) -> None:
    """And the request's id, to report it."""
    answer = await open_to_a_site.http.post("/graphql", json={"query": "{ __typename }"})
    exposed = answer.headers["access-control-expose-headers"].lower()
    assert {name.strip() for name in exposed.split(",")} == {"retry-after", "x-request-id"}


async def test_a_request_with_an_origin_runs_the_same_code(one_client: Client, open_to_a_site: Client) -> None:
    """The explorer's page sends an Origin, curl does not: what is tried with the one holds for the other."""
    for visitor in (one_client, open_to_a_site) * 2:  # compiled at the second use
        await visitor.post("{ boards { nodes { slug } } }")
    without, with_origin = [
        await _own_functions(visitor.post("{ boards { nodes { slug } } }")) for visitor in (one_client, open_to_a_site)
    ]
    assert without == with_origin
    assert any("endpoint.py" in function for function in without)


async def _own_functions(request: Awaitable[httpx.Response]) -> set[str]:
    """The functions of the service that a request calls.

    But for the turns of requests, which depend on the clock, webhooks, which are looked for beside requests, and the
    header that names the origin.
    """
    called: set[str] = set()

    def record(frame: FrameType, event: str, _: Any) -> None:
        file = Path(frame.f_code.co_filename)
        name = frame.f_code.co_qualname
        of_request = file.name != "webhooks.py" and not name.startswith(("RequestTurns.", "_ListedOrigins."))
        if event == "call" and file.is_relative_to(ROOT / "server") and of_request:
            called.add(f"{file} {name}")

    sys.setprofile(record)
    try:
        assert (await request).status_code == 200
    finally:
        sys.setprofile(None)
    return called


async def test_every_response_has_the_id_of_its_request(open_to_a_site: Client) -> None:
    """True of the endpoint, FastAPI's routes and CORS alike. A client may choose the id."""
    preflight = {"access-control-request-method": "POST"}
    responses = [
        await open_to_a_site.http.post("/graphql", json={"query": "{ __typename }"}, headers={"x-request-id": "mine"}),
        await open_to_a_site.http.get("/graphql", headers={"accept": "text/html", "x-request-id": "mine"}),
        await open_to_a_site.http.get("/nowhere", headers={"x-request-id": "mine"}),
        await open_to_a_site.http.options("/graphql", headers={**preflight, "x-request-id": "mine"}),
    ]
    assert [response.headers["x-request-id"] for response in responses] == ["mine"] * 4
    assert len((await open_to_a_site.post("{ __typename }")).headers["x-request-id"]) == 32


async def _is_ready(http: httpx.AsyncClient) -> bool:
    return bool((await http.get("/readyz")).json() == {"status": "ready"})


async def test_health_and_metrics_are_served(service: Service) -> None:
    """The three addresses that operators ask."""
    async with httpx.AsyncClient(base_url=service.url, timeout=60) as http:
        assert (await http.get("/livez")).json() == {"status": "alive"}
        await until(partial(_is_ready, http), "the service is ready")
        assert "ringside_requests_total" in (await http.get("/metrics")).text


@pytest.mark.parametrize("path", ["/%6Detrics", "/metric%73", "/%72eadyz"])
async def test_what_a_proxy_hides_has_no_other_writing(service: Service, path: str) -> None:
    """A load balancer may compare what a client has sent, in which each letter may be encoded."""
    async with httpx.AsyncClient(base_url=service.url, timeout=60) as http:
        assert (await http.get(path)).status_code == 404
