"""What is generated and committed: the SDL, the table's templates, tables in the texts; and what they say."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import yaml
from graphql import GraphQLEnumType, GraphQLInputObjectType, GraphQLInterfaceType, GraphQLObjectType

from datastore.dynamo.declaration import TTL, cloudformation, definition, terraform
from schema import schema
from tests.generated import FILES, ROOT, entities


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


class _Template(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
    """YAML with CloudFormation's short functions, read as their names."""


_Template.add_multi_constructor("!", lambda _, suffix, node: f"!{suffix} {node.value}")


def test_cloudformation_makes_the_declared_table() -> None:
    """Key for key what `ringside table create` makes, with what protects it besides."""
    made = yaml.load(cloudformation(), _Template)["Resources"]["Table"]
    properties = dict(made["Properties"])
    assert made["DeletionPolicy"] == made["UpdateReplacePolicy"] == "Retain"
    assert properties.pop("DeletionProtectionEnabled") is True
    assert properties.pop("PointInTimeRecoverySpecification") == {"PointInTimeRecoveryEnabled": True}
    assert properties.pop("SSESpecification") == {"SSEEnabled": True}
    assert properties.pop("TimeToLiveSpecification") == {"AttributeName": TTL, "Enabled": True}
    assert properties == definition("!Ref TableName")


def test_terraform_makes_the_declared_table() -> None:
    """Keys, attributes and indexes as declared; the time to live on its attribute."""
    text = terraform()
    wanted = definition("ringside")
    assert re.findall(r'attribute \{\n\s+name = "(\w+)"\n\s+type = "S"', text) == [
        attribute["AttributeName"] for attribute in wanted["AttributeDefinitions"]
    ]
    indexes = re.findall(
        r'global_secondary_index \{\s+name\s+= "(\w+)"\s+hash_key\s+= "(\w+)"\s+range_key\s+= "(\w+)"\s+'
        r'projection_type = "ALL"',
        text,
    )
    assert indexes == [
        (index["IndexName"], *(key["AttributeName"] for key in index["KeySchema"]))
        for index in wanted["GlobalSecondaryIndexes"]
    ]
    assert re.search(r'\n  hash_key\s+= "pk"\n  range_key\s+= "sk"\n', text)
    assert f'attribute_name = "{TTL}"' in text


def test_no_record_is_taken_for_another() -> None:
    """A written key is recognised by the entity that wrote it and by no other."""
    for entity in entities():
        key = entity.key
        pk, sk = (re.sub(r"\{.*?\}", "1", template.text) for template in (key.partition, key.sort))
        assert [other.record.__name__ for other in entities() if other.recognises(pk, sk)] == [entity.record.__name__]
