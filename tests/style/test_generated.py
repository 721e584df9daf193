"""What is generated and committed: the SDL and tables in the texts; and what they say."""

import re
from collections.abc import Iterator

import pytest
from graphql import GraphQLEnumType, GraphQLInputObjectType, GraphQLInterfaceType, GraphQLObjectType

from schema import schema
from server.__main__ import load_command
from tests.generated import FILES, ROOT, commands_table, entities


@pytest.mark.parametrize("name", FILES)
def test_a_generated_file_says_what_the_code_says(name: str) -> None:
    """Otherwise `make generated` writes it anew."""
    assert (ROOT / name).read_text(encoding="utf-8") == FILES[name]()


def test_everything_in_the_schema_is_described() -> None:
    """Types, fields, arguments, enum values and input fields: the explorer explains each of them."""
    assert [place for place, description in _described() if not (description or "").strip()] == []


def _described() -> Iterator[tuple[str, str | None]]:
    for name, kind in schema._schema.type_map.items():
        if name.startswith("__") or name in {"String", "Int", "Float", "Boolean", "ID"}:
            continue
        yield name, kind.description
        match kind:
            case GraphQLObjectType() | GraphQLInterfaceType():
                for field_name, field in kind.fields.items():
                    yield f"{name}.{field_name}", field.description
                    for argument_name, argument in field.args.items():
                        yield f"{name}.{field_name}({argument_name})", argument.description
            case GraphQLInputObjectType():
                for field_name, input_field in kind.fields.items():
                    yield f"{name}.{field_name}", input_field.description
            case GraphQLEnumType():
                for value_name, value in kind.values.items():
                    yield f"{name}.{value_name}", value.description


def test_no_record_is_taken_for_another() -> None:
    """A written key is recognised by the entity that wrote it and by no other."""
    for entity in entities():
        key = entity.key
        pk, sk = (re.sub(r"\{.*?\}", "1", template.text) for template in (key.partition, key.sort))
        assert [other.record.__name__ for other in entities() if other.recognises(pk, sk)] == [entity.record.__name__]


@pytest.mark.parametrize("name", re.findall(r"`ringside ([a-z ]+)`", commands_table()))
def test_the_guide_lists_no_group_of_commands_as_a_command(name: str) -> None:
    """Each line of the table runs something, and does not only print help."""
    first, *inner = name.split()
    command = load_command(first)
    for each in inner:
        command = command.commands[each]
    assert command.invoke_without_command if hasattr(command, "commands") else command.callback
