"""The examples that the explorer opens, held to the schema that people will send them to."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from graphql import (
    FieldNode,
    GraphQLArgument,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLObjectType,
    GraphQLSchema,
    OperationDefinitionNode,
    build_schema,
    parse,
    print_ast,
    validate,
)

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.graphql"))
SDL = (ROOT / "schema" / "schema.graphql").read_text(encoding="utf-8")
TABS = (ROOT / "explorer" / "src" / "examples.js").read_text(encoding="utf-8")

# What fits beside the explorer's buttons on a laptop.
WIDTH = 50


def operations(example: Path) -> list[OperationDefinitionNode]:
    definitions = parse(example.read_text(encoding="utf-8")).definitions
    return [each for each in definitions if isinstance(each, OperationDefinitionNode)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_every_example_is_valid(example: Path) -> None:
    """Valid, every operation named, one tab for each file, and nothing cut off at the side."""
    text = example.read_text(encoding="utf-8")
    document = parse(text)
    assert validate(build_schema(SDL), document) == []
    assert all(operation.name for operation in operations(example))
    assert f"'{example.stem}'" in TABS
    assert max(map(len, text.splitlines())) <= WIDTH


def test_every_field_and_mutation_of_the_reference_has_an_example() -> None:
    """So nobody has to write one by hand; the reference shows the shortest."""
    schema = build_schema(SDL)
    shown = {(root.name, field) for example in EXAMPLES for root, field in root_fields(schema, example)}
    roots = filter(None, (schema.query_type, schema.mutation_type, schema.subscription_type))
    assert shown == {(root.name, field) for root in roots for field in root.fields}


def root_fields(schema: GraphQLSchema, example: Path) -> Iterator[tuple[GraphQLObjectType, str]]:
    for operation in operations(example):
        root = schema.get_root_type(operation.operation)
        assert root is not None
        for field in operation.selection_set.selections:
            assert isinstance(field, FieldNode)
            yield root, field.name.value


def test_no_two_operations_have_the_same_name() -> None:
    """Code generators and manifests take all examples at once."""
    names = Counter(operation.name.value for each in EXAMPLES for operation in operations(each) if operation.name)
    assert [name for name, number in names.items() if number > 1] == []


def test_the_reference_shows_every_default() -> None:
    """Of arguments and of the fields of inputs, as the schema has them, each in the row of its own section."""
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    chapters = {part.partition("\n")[0]: part for part in re.split(r"^## ", text, flags=re.MULTILINE)}
    shown = {
        (title, section.partition("\n")[0], name, default)
        for title, chapter in chapters.items()
        for section in chapter.split("\n### ")[1:]
        for name, default in re.findall(r"^\| `(\w+)` \| .*? = `(.*?)` \|", section, re.MULTILINE)
    }
    expected = set(defaults(build_schema(SDL)))
    assert shown == expected
    assert len(expected) >= 30
    assert '\n| `slug` | `String!` = `"main"` | The board\'s slug. |\n' in chapters["Queries"]


def defaults(schema: GraphQLSchema) -> Iterator[tuple[str, str, str, str]]:
    chapters = {
        schema.query_type: "Queries",
        schema.mutation_type: "Mutations",
        schema.subscription_type: "Subscriptions",
    }
    for named in schema.type_map.values():
        if isinstance(named, GraphQLInputObjectType):
            yield from (("Types", f"{named.name} (input)", *each) for each in with_default(named.fields))
        elif isinstance(named, GraphQLObjectType) and named in chapters:
            for name, field in named.fields.items():
                yield from ((chapters[named], name, *each) for each in with_default(field.args))


def with_default(fields: Mapping[str, GraphQLInputField | GraphQLArgument]) -> Iterator[tuple[str, str]]:
    for name, field in fields.items():
        assert field.ast_node is not None
        if field.ast_node.default_value is not None:
            yield name, print_ast(field.ast_node.default_value)


def test_the_first_day_shows_the_documents_of_the_explorer_s_tabs() -> None:
    """Word for word, so what is read there can be pressed here."""
    page = (ROOT / "docs" / "first-day.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```graphql\n(.*?)```", page, re.DOTALL)
    shown = {print_ast(definition) for block in blocks for definition in parse(block).definitions}
    assert shown <= {print_ast(operation) for example in EXAMPLES for operation in operations(example)}
