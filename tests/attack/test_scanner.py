"""What GraphQL scanners look for, graphql-cop's list and more, in a service with the settings of production."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.query_bombs import LARGEST_DOCUMENTS, QUERY_BOMBS
from tests.service import Service

VOTE = 'mutation { castVote(input: { token: "x", verdict: LEFT }) { __typename } }'
INTROSPECTION = "{ __schema { types { name fields { name type { name } } } } }"
CIRCULAR = "{ __schema { types { fields { type { fields { type { fields { type { fields { name } } } } } } } } } }"

REFUSED_DOCUMENTS = {
    "alias overloading": "{" + " ".join(f"alias{n}: __typename" for n in range(101)) + "}",
    "directive overloading": "{ __typename " + "@aa" * 10 + " }",
    "directive overloading, known": "{ __typename " + "@skip(if: false) " * 50 + " }",
    "field duplication": "{ " + "__typename " * 500 + "}",
    "circular introspection": CIRCULAR,
    "introspection": INTROSPECTION,
    "introspection of a type": '{ __type(name: "User") { name fields { name } } }',
    "introspection in a fragment": "{ ...f } fragment f on Query { __schema { queryType { name } } }",
    "introspection by an alias": "{ innocent: __schema { queryType { name } } }",
    "introspection after a line break": "{ __schema\n, { queryType\r{ name } } }",
    "field suggestions": "{ vewer { id } }",
    "suggestions for arguments": "{ comments(prodct: 1) { totalCount } }",
    "suggestions for types": "fragment f on Contenderr { id } { ...f }",
    "suggestions for values": "mutation { castVote(input: { token: 1, verdict: LEFTT }) { __typename } }",
    "suggestions for inputs": 'mutation { castVote(input: { tokn: "x", verdict: LEFT }) { __typename } }',
    "an unhandled error": "qwerty { abc }",
    "an unknown directive": "query @abc { __typename }",
    "a subscription by POST": 'subscription { commentPosted(product: "p") { id } }',
    "a document of types": "type Query { a: Int }",
    "an empty document": "#",
    **QUERY_BOMBS,
}


@pytest.fixture
async def http(attacked: Service) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=attacked.url, timeout=30) as client:
        yield client


def _assert_tells_nothing(response: httpx.Response) -> None:
    """Neither names of the schema that were not asked for, nor anything of the program."""
    for clue in ("did you mean", "traceback", 'file "', ".py", "graphql.error", "stacktrace", "exception", "tracing"):
        assert clue not in response.text.lower()


@pytest.mark.parametrize("name", REFUSED_DOCUMENTS)
async def test_a_document_that_scanners_try_is_refused(http: httpx.AsyncClient, name: str) -> None:
    """Before it is executed, without a hint."""
    response = await http.post("/graphql", json={"query": REFUSED_DOCUMENTS[name]})
    assert response.status_code in (400, 406)
    assert "data" not in response.json()
    _assert_tells_nothing(response)


BATCHES: dict[str, Any] = {
    "of queries": [{"query": "{ __typename }"}] * 10,
    "of one": [{"query": "{ __typename }"}],
    "of none": [],
    "of mutations": [{"query": VOTE}] * 100,
    "in an object": {"0": {"query": "{ __typename }"}, "1": {"query": "{ __typename }"}},
    "in the query": {"query": ["{ __typename }", "{ __typename }"]},
    "of variables": {"query": "{ __typename }", "variables": [{}, {}]},
}


@pytest.mark.parametrize("name", BATCHES)
async def test_a_batch_is_refused(http: httpx.AsyncClient, name: str) -> None:
    """One request would be as many attempts as its sender likes."""
    response = await http.post("/graphql", json=BATCHES[name])
    assert response.status_code == 400
    _assert_tells_nothing(response)


FORMS: dict[str, dict[str, Any]] = {
    "urlencoded": {"data": {"query": VOTE}},
    "a query, urlencoded": {"data": {"query": "{ __typename }"}},
    "multipart": {"files": {"query": (None, VOTE)}},
    "an upload": {"files": {"operations": (None, json.dumps({"query": VOTE})), "map": (None, "{}")}},
    "plain text": {"content": json.dumps({"query": VOTE}), "headers": {"content-type": "text/plain"}},
    "no type": {"content": json.dumps({"query": VOTE})},
    "a document": {"content": VOTE, "headers": {"content-type": "application/graphql"}},
    "two types": {"content": "{}", "headers": {"content-type": "text/plain, application/json"}},
    "a type in a parameter": {"content": "{}", "headers": {"content-type": "text/plain; a=application/json"}},
    "urlencoded JSON": {
        "content": json.dumps({"query": VOTE}) + "=",
        "headers": {"content-type": "application/x-www-form-urlencoded"},
    },
}


@pytest.mark.parametrize("name", FORMS)
async def test_what_a_form_of_another_site_can_send_is_refused(http: httpx.AsyncClient, name: str) -> None:
    """Browsers send these with the visitor's cookie, and without asking first."""
    assert (await http.post("/graphql", **FORMS[name])).status_code == 415


@pytest.mark.parametrize("query", [VOTE, f"query Q {{ __typename }} {VOTE.replace('mutation', 'mutation M')}"])
async def test_a_link_of_another_site_changes_nothing(http: httpx.AsyncClient, query: str) -> None:
    """GET runs queries only, whichever operation of the document is named."""
    assert (await http.get("/graphql", params={"query": query, "operationName": "M"} if "M {" in query else
                           {"query": query})).status_code == 405  # fmt: skip
    assert (await http.get("/graphql", params={"query": "{ __typename }"})).status_code == 200


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "QUERY"])
async def test_other_methods_are_not_allowed(http: httpx.AsyncClient, method: str) -> None:
    """Not even with a valid body."""
    response = await http.request(method, "/graphql", json={"query": "{ __typename }"})
    assert response.status_code == 405
    assert "host" not in response.text.lower()


async def test_answers_tell_nothing_of_their_making(http: httpx.AsyncClient) -> None:
    """No tracing, no plan, no versions, however a visitor asks."""
    asked = {"query": "{ __typename }", "extensions": {"plan": True, "tracing": True}}
    response = await http.post("/graphql", json=asked, headers={"x-apollo-tracing": "1", "apollo-tracing": "true"})
    assert response.json() == {"data": {"__typename": "Query"}}
    assert not {"server", "x-powered-by", "x-process-time"} & set(response.headers)
    persisted = {"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "0" * 64}}}
    assert (await http.post("/graphql", json=persisted)).status_code == 400


@pytest.mark.parametrize("path", ["/graphql", "/explorer", "/graphiql", "/playground", "/console", "/docs", "/redoc",
                                  "/openapi.json", "/graphql/console", "/altair", "/.git/config", "/.env"])  # fmt: skip
async def test_there_is_no_page_to_explore_with(http: httpx.AsyncClient, path: str) -> None:
    """Where no one may introspect, a browser is not shown the explorer either."""
    response = await http.get(path, headers={"accept": "text/html"})
    assert response.status_code in (404, 405, 406)
    assert "graphiql" not in response.text.lower()


@pytest.mark.parametrize("name", LARGEST_DOCUMENTS)
async def test_the_largest_legal_documents_are_answered(http: httpx.AsyncClient, name: str) -> None:
    """Also when they come again, compiled."""
    asked = {"query": LARGEST_DOCUMENTS[name], "operationName": "Q0" if name == "operations" else None}
    for _ in range(3):
        assert (await http.post("/graphql", json=asked)).status_code in (200, 400)
