"""Variables read with and without graphql-core."""

from typing import Any

from graphql import GraphQLError, OperationDefinitionNode, build_schema, get_variable_values, parse
from graphql.execution import VariableValues
from hypothesis import given
from hypothesis import strategies as st

from server.compiler.plan import VariableReader

SCHEMA = build_schema("enum Colour { RED GREEN } input Size { width: Int! } type Query { a: Int }")
TYPES = ["Int", "String", "ID", "Boolean", "Float", "Colour", "Size", "[Int!]", "[String!]", "[Int]", "[[Int!]!]"]
DEFAULTS = {"Int": "7", "String": '"text"', "ID": "5", "[Int!]": "[1, 2]"}

scalars = st.none() | st.booleans() | st.integers(-(2**33), 2**33) | st.floats() | st.sampled_from(["", "1", "RED"])
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.just({"width": 1}), max_leaves=6)


@st.composite
def definitions(draw: st.DrawFn) -> str:
    type_ = draw(st.sampled_from(TYPES))
    required = draw(st.sampled_from(["", "!"]))
    default = f" = {DEFAULTS[type_]}" if type_ in DEFAULTS and draw(st.booleans()) else ""
    return f"{type_}{required}{default}"


@given(st.lists(definitions(), min_size=1, max_size=3), st.data())
def test_variables_are_read_as_graphql_core_coerces_them(declared: list[str], data: st.DataObject) -> None:
    """Values or errors, with and without defaults, absent variables and nulls."""
    names = [f"v{index}" for index in range(len(declared))]
    head = ", ".join(f"${name}: {definition}" for name, definition in zip(names, declared, strict=True))
    operation = parse(f"query Q({head}) {{ a }}").definitions[0]
    assert isinstance(operation, OperationDefinitionNode)
    given_values = {name: data.draw(values, name) for name in names if data.draw(st.integers(0, 4))}
    read = VariableReader(SCHEMA, operation).read(given_values, suggestions=True)
    expected = get_variable_values(SCHEMA, operation.variable_definitions or (), given_values)
    if isinstance(expected, VariableValues):
        assert read == expected.coerced
        assert [type(value) for value in read.values()] == [type(value) for value in expected.coerced.values()]
    else:
        assert _messages(read) == _messages(expected)


def _messages(errors: Any) -> list[str]:
    return [error.message for error in errors if isinstance(error, GraphQLError)]
