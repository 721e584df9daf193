"""The objects that an operation names in lists: at most a hundred, however they are written and spread over it."""

from typing import Any

import pytest
from graphql import GraphQLError, GraphQLInterfaceType, GraphQLObjectType, get_nullable_type, is_list_type

from schema import schema
from schema.framework.arguments import MOST_NAMED, names_objects
from server.execution.documents import Documents, GraphQLRequest
from server.execution.limits import InvalidOperation, Limits

SCHEMA = schema._schema
FILTERS = {"Query.comments.languages", "Query.comments.ratings", "Query.previewHoldRules.rules"}
"""Lists that name nothing to be read. Each has a limit of its own."""
DOCUMENTS = Documents(SCHEMA, Limits(complexity=20_000))


def refusal(text: str, **variables: Any) -> GraphQLError | None:
    try:
        DOCUMENTS.operation(GraphQLRequest(text, variables=variables), introspection=True)
    except InvalidOperation as invalid:
        [error] = invalid.errors
        return error
    return None


def ids(count: int, prefix: str = "i") -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def literal(values: list[str]) -> str:
    return "[" + " ".join(f'"{value}"' for value in values) + "]"


def test_each_list_of_a_field_names_objects_or_is_a_known_filter() -> None:
    """A new list is a list of ids, or is added to the filters here once it has a limit of its own."""
    lists = {
        f"{type_.name}.{name}.{argument}": names_objects(declared)
        for type_ in SCHEMA.type_map.values()
        if isinstance(type_, GraphQLObjectType | GraphQLInterfaceType) and not type_.name.startswith("__")
        for name, field in type_.fields.items()
        for argument, declared in field.args.items()
        if is_list_type(get_nullable_type(declared.type))
    }
    naming = {place for place, names in lists.items() if names}
    assert naming == {"Query.nodes.ids", "Query.commentStatisticsOf.products"}
    assert lists.keys() - naming == FILTERS


HALF = MOST_NAMED // 2
REST = MOST_NAMED - HALF
FRAGMENTS = """query ($a: [ID!]!) { ...f } fragment f on Query { a: nodes(ids: $a) { id } ...g }
  fragment g on Query { ... { b: nodes(ids: LITERAL) { id } } }"""
SKIPPED = """query ($a: [ID!]!, $no: Boolean = false) {
  a: nodes(ids: $a) { id } b: nodes(ids: LITERAL) @include(if: $no) { id } }"""


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("query ($a: [ID!]!, $b: [ID!]!) { a: nodes(ids: $a) { id } b: nodes(ids: $b) { id } }", {}),
        ("query ($a: [ID!]!, $b: [ID!]!) { nodes(ids: $a) { id } commentStatisticsOf(products: $b) { total } }", {}),
        ("query ($a: [ID!]!) { a: nodes(ids: $a) { id } b: nodes(ids: LITERAL) { id } }", {}),
        ("query ($a: [ID!]!, $b: [ID!]! = LITERAL) { a: nodes(ids: $a) { id } b: nodes(ids: $b) { id } }", {"b": ...}),
        (FRAGMENTS, {}),
        (SKIPPED, {}),
    ],
)
def test_a_hundred_objects_may_be_named_in_all(text: str, variables: dict[str, Any], more: int) -> None:
    """By variables, defaults and literals, in aliases, fragments and different fields."""
    given = {"a": ids(HALF, "a"), "b": ids(REST + more, "b"), **variables}
    given = {name: value for name, value in given.items() if value is not ... and f"${name}" in text}
    error = refusal(text.replace("LITERAL", literal(ids(REST + more, "b"))), **given)
    if not more:
        assert error is None
        return
    assert error is not None
    assert error.extensions == {"code": "BAD_USER_INPUT"}
    assert f"of the whole operation: {MOST_NAMED + 1}. At most {MOST_NAMED} are accepted" in error.message
    assert "nodes(ids:)" in error.message
    assert ("commentStatisticsOf(products:)" in error.message) is ("commentStatisticsOf" in text)


def test_an_id_that_is_named_again_counts_once() -> None:
    """In the same list, and in another alias of the field; as a number and as its text."""
    fields = " ".join(f"{list_[-1]}: nodes(ids: {list_}) {{ id }}" for list_ in ("$a", "$b"))
    text = f"query ($a: [ID!]!, $b: [ID!]!) {{ {fields} c: nodes(ids: [1, 2]) {{ id }} }}"
    numbers = list(range(1, MOST_NAMED + 1))
    assert refusal(text, a=numbers * 2, b=[str(number) for number in numbers]) is None
    assert refusal(text, a=numbers, b=["one more"]) is not None


def test_the_same_text_in_two_fields_names_two_objects() -> None:
    """A product and a node that have the same id are read separately."""
    text = "query ($a: [ID!]!) { nodes(ids: $a) { id } commentStatisticsOf(products: $a) { total } }"
    assert refusal(text, a=ids(HALF)) is None
    assert refusal(text, a=ids(HALF + 1)) is not None


def test_an_entry_of_a_list_may_be_a_variable() -> None:
    """Each is one object; one that is left out has its default."""
    names = ids(MOST_NAMED - 1)
    more = f"more: nodes(ids: {literal(names)}) {{ id }}"
    text = f'query ($a: ID!, $b: ID! = "b") {{ nodes(ids: [$a, $b]) {{ id }} {more} }}'
    assert refusal(text, a="i0") is None
    assert refusal(text, a="b") is None
    assert refusal(text, a="a") is not None


def test_only_the_operation_that_runs_counts() -> None:
    """Other operations of its document are not executed."""
    text = f"query A {{ nodes(ids: {literal(ids(MOST_NAMED, 'a'))}) {{ id }} }} "
    text += f"query B {{ nodes(ids: {literal(ids(MOST_NAMED, 'b'))}) {{ id }} }}"
    for name in "AB":
        request = GraphQLRequest(text, name)
        assert DOCUMENTS.operation(request, introspection=True).name == name


@pytest.mark.parametrize("wrong", [[None], [{}], [[["x"]]], {"a": 1}, 5, None, [True], [10**18] * 200])
def test_what_is_no_list_of_ids_is_left_to_the_field_to_refuse(wrong: Any) -> None:
    """Counting it raises nothing."""
    assert refusal("query ($a: [ID!]!) { nodes(ids: $a) { id } }", a=wrong) is None


def test_filters_and_inputs_of_mutations_are_not_counted() -> None:
    """They have limits of their own."""
    text = 'query ($l: [String!]) { comments(product: "1", languages: $l) { totalCount } }'
    assert refusal(text, l=ids(MOST_NAMED + 1)) is None
    text = "mutation ($i: ReorderMatchesInput!) { reorderMatches(input: $i) { __typename } }"
    assert refusal(text, i={"event": "e", "matches": ids(MOST_NAMED + 1)}) is None
