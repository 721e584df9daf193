"""The complexity of an operation: what it counts, and that counting it is never the problem."""

import re
from typing import Any

import pytest
from graphql import (
    FragmentDefinitionNode,
    OperationDefinitionNode,
    build_schema,
    get_introspection_query,
    parse,
    validate,
)

from schema import schema
from schema.framework.declarations import AWAITED, READ
from server.execution.documents import Documents, GraphQLRequest
from server.execution.limits import Cost, InvalidOperation
from server.http.browser_pages import Elements
from server.settings import settings_table
from tests.command import ROOT

SCHEMA = build_schema(
    """
    type Query { one: Thing  things(first: Int, last: Int): ThingConnection!  top(first: Int): [Thing!]!
                 some(ids: [ID!]!): [Thing]!  all: [Thing!]!  names: [String!]! }
    type Thing { name: String  one: Thing  things(first: Int): ThingConnection! }
    type ThingConnection { edges: [ThingEdge!]!  nodes: [Thing!]!  total: Int! }
    type ThingEdge { node: Thing }
    """
)


def cost(text: str, **variables: Any) -> int:
    document = parse(text)
    assert validate(SCHEMA, document) == []
    fragments = {one.name.value: one for one in document.definitions if isinstance(one, FragmentDefinitionNode)}
    (operation,) = [one for one in document.definitions if isinstance(one, OperationDefinitionNode)]
    return Cost(SCHEMA, operation, fragments)(variables)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("{ names }", 1),
        ("{ names one { name one { name } } }", 5),
        ("{ things(first: 5) { total nodes { name } } }", 12),
        ("{ things(last: 5) { nodes { things(first: 3) { total } } } }", 1 + 5 * (1 + 1 + 3 + 1)),
        ("{ things { nodes { name } } }", 41),
        ("{ things { edges { node { name } } } }", 61),
        ("{ things(first: 5) { total edges { node { name } } nodes { name } } }", 1 + 1 + 5 * 5),
        ("{ things(first: 5) { total ...f ... { nodes { name } } } } fragment f on ThingConnection { total }", 13),
        ("{ things(first: 0) { total } }", 3),
        ("{ things(first: null) { total } }", 22),
        ("{ things(first: null, last: 100) { total } }", 102),
        ("{ top { name } }", 21),
        ("{ top(first: 7) { name } }", 8),
        ('{ some(ids: ["x", "y", "z"]) { name } }', 4),
        ("{ some(ids: []) { name } }", 2),
        ("{ all { name } }", 11),
        ("{ ... on Query { names } ...f ...f } fragment f on Query { one { name } }", 5),
        ("{ __schema { types { name fields { name } } } }", 5),
    ],
)
def test_every_field_counts_once_for_each_object_around_it(text: str, fields: int) -> None:
    """`first`, `last` and lists of ids say how many objects; a page without a size has twenty, another list ten.

    The objects of a page are read even if only its `total` is asked for, which counts once.
    """
    assert cost(text) == fields


@pytest.mark.parametrize(
    "wrapped",
    [
        "{ things { ... { nodes { name } } } }",
        "{ things { ... on ThingConnection { nodes { name } } } }",
        "{ things { ...page } } fragment page on ThingConnection { nodes { name } }",
        "{ ...all } fragment all on Query { things { ...page } } fragment page on ThingConnection { nodes { name } }",
    ],
)
def test_a_fragment_changes_no_complexity(wrapped: str) -> None:
    """A page is known by its type, not by what is selected directly inside it."""
    assert cost(wrapped) == cost("{ things { nodes { name } } }") == 41


@pytest.mark.parametrize(
    ("variables", "fields"),
    [
        ({"n": 5, "ids": ["x", "y"]}, 1 + 5 * 2 + 1 + 2 * (1 + 5 + 1)),
        ({"n": 0, "ids": []}, 1 + 1 * 2 + 1 + 1 * (1 + 1 + 1)),
        ({"n": 100.0, "ids": ["x"]}, 1 + 100 * 2 + 1 + 1 * (1 + 100 + 1)),
        ({"n": None, "ids": ["x"]}, 1 + 20 * 2 + 1 + 1 * (1 + 20 + 1)),
        ({"ids": ["x"]}, 1 + 20 * 2 + 1 + 1 * (1 + 20 + 1)),
        ({"n": "many", "ids": {}}, 1 + 100 * 2 + 1 + 100 * (1 + 100 + 1)),
        ({"n": True, "ids": 1.5}, 1 + 100 * 2 + 1 + 100 * (1 + 100 + 1)),
        ({"n": float("inf"), "ids": "x"}, 1 + 100 * 2 + 1 + 100 * (1 + 100 + 1)),
        ({"n": 10**30, "ids": ["x"]}, 1 + 10**30 * 2 + 1 + 1 * (1 + 10**30 + 1)),
    ],
)
def test_sizes_come_from_the_variables_of_each_request(variables: dict[str, Any], fields: int) -> None:
    """What is no size counts as the largest page, although the field will refuse it."""
    text = (
        "query ($n: Int, $ids: [ID!]!) { things(first: $n) { nodes { name } } some(ids: $ids) { ...inner } } "
        "fragment inner on Thing { things(first: $n) { total } }"
    )
    assert cost(text, **variables) == fields


@pytest.mark.parametrize(
    ("definition", "field", "value"),
    [
        ("$v: Int = 100", "things(first: $v)", 100),
        ("$v: Int! = 100", "things(first: $v)", 100),
        ("$v: [ID!]! = [1, 2, 3]", "some(ids: $v)", ["1", "2", "3"]),
        ("$v: Int = 100, $u: Int", "things(first: $u, last: $v)", 100),
    ],
)
def test_a_default_counts_as_the_same_value_sent(definition: str, field: str, value: Any) -> None:
    """Whether a variable is sent or left out."""
    text = f"query ({definition}) {{ {field} {{ __typename }} }}"
    objects = value if isinstance(value, int) else len(value)
    assert cost(text) == cost(text, v=value) == 1 + objects + ("things" in field)


def test_null_sent_for_a_variable_replaces_its_default() -> None:
    """As graphql-core coerces it; the page then has its default size."""
    assert cost("query ($v: Int = 100) { things(first: $v) { total } }", v=None) == 22


def test_a_chain_of_fragments_is_added_up_in_no_time() -> None:
    """Each spreads the next one twice, so the last one's field counts 2^200 times what the variable says."""
    chain = " ".join(f"fragment f{n} on Query {{ ...f{n + 1} ...f{n + 1} }}" for n in range(200))
    text = f"query ($n: Int) {{ ...f0 }} {chain} fragment f200 on Query {{ things(first: $n) {{ total }} }}"
    definitions = parse(text).definitions
    fragments = {one.name.value: one for one in definitions if isinstance(one, FragmentDefinitionNode)}
    assert isinstance(definitions[0], OperationDefinitionNode)
    assert Cost(SCHEMA, definitions[0], fragments)({"n": 3}) == 2**200 * 5


@pytest.mark.parametrize(
    ("head", "page"),
    [
        ("query", "contenders { ... { nodes { board { %s } } } }"),
        ("query ($n: Int = 100)", "contenders(first: $n) { nodes { board { %s } } }"),
        ("query ($n: Int)", "contenders(first: $n) { nodes { board { %s } } }"),
    ],
)
def test_the_limit_cannot_be_bypassed(head: str, page: str) -> None:
    """Four pages within each other are refused however their sizes are written."""
    text = "id"
    for _ in range(4):
        text = page % text
    request = GraphQLRequest(f"{head} {{ {text} }}", variables={"n": 100.0} if "$n" in head and "=" not in head else {})
    request.query = request.query and request.query.replace("{ contenders", "{ board { contenders", 1) + "}"
    with pytest.raises(InvalidOperation, match="asks for up to"):
        Documents(schema._schema).operation(request, introspection=True)


def test_a_field_that_may_read_much_for_a_small_answer_counts_what_it_may_read() -> None:
    """A contender's records are looked up one by one; 24 times that is accepted, twice that refused."""
    leaderboard = "query ($n: Int) {{ leaderboard(first: $n) {{ nodes {{ contender {{ {} }} }} }} }}"
    documents, matchups = Documents(schema._schema), "matchups(first: 1) { nodes { votes } }"
    request = GraphQLRequest(leaderboard.format(matchups), variables={"n": 24})
    operation = documents.operation(request, introspection=True)
    assert operation.cost({"n": 24}) == 1 + 24 * (1 + 1 + 400 + 8 + 1 + 1)
    two = GraphQLRequest(leaderboard.format(f"{matchups} more: {matchups}"), variables={"n": 24})
    with pytest.raises(InvalidOperation, match="asks for up to"):
        documents.operation(two, introspection=True)


@pytest.mark.parametrize(
    ("text", "complexity"),
    [
        ('{ nodes(ids: ["a", "b"]) { id } }', 1 + 2 * (READ + 1)),
        ('{ commentStatisticsOf(products: ["a", "b"]) { total } }', 1 + 2 * (READ + 1)),
        ('{ nodes(ids: ["a"]) { ... on User { streak { current } } } }', 1 + READ + READ + 1),
        ("{ boards(first: 2) { nodes { progress { seen } } } }", 1 + 2 * (4 + 1 + 2 * READ + 1)),
        ('{ comments(product: "p", first: 100) { totalCount nodes { id } } }', 1 + READ + 100 * 2),
        ('{ comments(product: "p", first: 9) { nodes { author { name } } } }', 1 + 9 * (1 + AWAITED + 1)),
    ],
)
def test_reading_the_table_counts_more_than_answering(text: str, complexity: int) -> None:
    """For each object that a list names, and for each object that such a field is asked of."""
    request = GraphQLRequest(text)
    assert Documents(schema._schema).operation(request, introspection=True).cost({}) == complexity


def test_a_page_of_members_with_many_lists_each_is_refused() -> None:
    """It would make nine calls for each member. Two of the lists are answered."""
    lists = [f"{name}(first: 1)" for name in ("quizResults", "predictions", "comments", "sentences")]
    documents = Documents(schema._schema)

    def page(count: int) -> GraphQLRequest:
        selected = " ".join(f"{one} {{ __typename }}" for one in [*lists, "streak"][:count])
        text = f"query ($ids: [ID!]!) {{ nodes(ids: $ids) {{ ... on User {{ {selected} }} }} }}"
        return GraphQLRequest(text, variables={"ids": [f"u{number}" for number in range(50)]})

    assert documents.operation(page(2), introspection=True)
    with pytest.raises(InvalidOperation, match="asks for up to"):
        documents.operation(page(5), introspection=True)


def test_the_guide_says_which_complexity_the_service_s_own_pages_need() -> None:
    """An operator who allows less has pages that are refused."""
    documents, folder = Elements().documents(), ROOT / "elements" / "documents"
    if not documents:
        pytest.skip("the elements are not here: make pages")
    admin = (folder / "admin.graphql").read_text()
    of_admins = set(re.findall(r"^(?:query|mutation|subscription) (\w+)", admin, re.MULTILINE))
    most = {True: 0, False: 0}
    for text in documents.values():
        document = parse(text)
        fragments = {one.name.value: one for one in document.definitions if isinstance(one, FragmentDefinitionNode)}
        (operation,) = [one for one in document.definitions if isinstance(one, OperationDefinitionNode)]
        is_of_admins = operation.name is not None and operation.name.value in of_admins
        most[is_of_admins] = max(most[is_of_admins], Cost(schema._schema, operation, fragments)({"first": 100}))
    said = re.search(r"elements ask for up to ([0-9,]+), the admin pages for up to ([0-9,]+)", settings_table())
    assert said is not None
    elements, admins = (int(number.replace(",", "")) for number in said.groups())
    assert 0.8 * elements <= most[False] <= elements
    assert 0.8 * admins <= most[True] <= admins


ASKED = (("a", "__schema { ...T }"), ("t", "types { ...G }"))
INTROSPECTION = """{ %s }
fragment T on __Schema { %s }
fragment G on __Type { fields { type { ...F ofType { ...F ofType { ofType { ...F } } } } } }
fragment F on __Type { fields { name description isDeprecated deprecationReason __typename } }"""


def test_an_introspection_that_asks_many_times_is_refused() -> None:
    """Its aliases are few, and its fields count once in the complexity; answering it took most of a minute."""
    schemas, types = (" ".join(f"{name}{n}: {rest}" for n in range(20)) for name, rest in ASKED)
    with pytest.raises(InvalidOperation, match="fields of the introspection: more than 80000"):
        Documents(schema._schema).operation(GraphQLRequest(INTROSPECTION % (schemas, types)), introspection=True)
    whole = get_introspection_query(
        specified_by_url=True, directive_is_repeatable=True, schema_description=True, input_value_deprecation=True
    )
    Documents(schema._schema).operation(GraphQLRequest(whole), introspection=True)


@pytest.mark.parametrize(
    "text",
    [
        "{ viewer { " + "subscriptions { list { owner { " * 3 + "id" + "} " * 11,
        '{ user(id: "x") { standings { user { standings { user { standings { rank } } } } } } }',
    ],
)
def test_lists_that_lead_to_lists_of_their_kind_count_as_long_as_they_may_be(text: str) -> None:
    with pytest.raises(InvalidOperation, match="asks for up to"):
        Documents(schema._schema).operation(GraphQLRequest(text), introspection=False)
