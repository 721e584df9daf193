"""The list of error codes names exactly those that the code uses; ids in payloads are objects' own."""

import re
from collections.abc import Iterator

from graphql import GraphQLObjectType, GraphQLUnionType, build_schema

from datastore.refusals import Refusal
from schema import schema
from schema.framework.declarations import ERROR_CODES, refusal_codes
from tests.generated import ROOT

LITERAL = re.compile(
    r'(?:"code"\s*:|_CODES\.get\([^)]*,|_refused?\(.*,|_refusal\(.*?,|_with_code\(.*,|\b\d{3}:)\s*"([A-Z_]+)"'
)


def test_every_code_is_listed_once_and_every_listed_one_is_used() -> None:
    """Refusals of all parts, and the literals in the server."""
    refusals = {refusal.code for refusal in _refusals(Refusal) if hasattr(refusal, "code")}
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "server").rglob("*.py")]
    literals = {code for text in texts for code in LITERAL.findall(text)}
    assert set(refusal_codes()) & set(ERROR_CODES) == set()
    assert set(refusal_codes()) | set(ERROR_CODES) == refusals | literals
    assert {"BAD_REQUEST", "PERSISTED_QUERY_NOT_FOUND", "GRAPHQL_PARSE_FAILED", "UNAUTHENTICATED"} <= literals


def test_the_schema_describes_every_code() -> None:
    """As printed, so that clients' tools show it."""
    printed = build_schema(schema.as_str()).description or ""
    for code in {**refusal_codes(), **ERROR_CODES}:
        assert f"- {code}: " in printed
    assert schema._schema.description == printed


def test_an_id_is_an_objects_own() -> None:
    """Clients' caches key objects by `id`: a payload that repeats another object's would overwrite it.

    A comment that was refused is none, or gone.
    """
    node = schema._schema.type_map["Node"]
    for type_ in schema._schema.type_map.values():
        if isinstance(type_, GraphQLObjectType) and "id" in type_.fields and type_.name != "RefusedComment":
            assert node in type_.interfaces, type_
    results = [type_ for type_ in schema._schema.type_map.values() if isinstance(type_, GraphQLUnionType)]
    assert any("deletedId" in payload.fields for union in results for payload in union.types)


def _refusals(kind: type[Refusal]) -> Iterator[type[Refusal]]:
    for below in kind.__subclasses__():
        yield below
        yield from _refusals(below)
