"""The guide's reference of the schema, written by `make generated`: every field with its arguments and an example."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from graphql import (
    FieldNode,
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLSchema,
    GraphQLType,
    GraphQLUnionType,
    OperationDefinitionNode,
    get_named_type,
    parse,
    print_ast,
    specified_scalar_types,
)

HEAD = """# Schema reference

Written from the schema. The explorer shows the same, searchable, next to your query.

"""
KINDS = {
    GraphQLObjectType: "object",
    GraphQLInputObjectType: "input",
    GraphQLEnumType: "enum",
    GraphQLUnionType: "union",
    GraphQLInterfaceType: "interface",
    GraphQLScalarType: "scalar",
}
ROOTS = ("Query", "Mutation", "Subscription")


def reference(schema: GraphQLSchema, examples: Path) -> str:
    shown = _examples(examples)
    parts = [HEAD]
    for root, title in zip(ROOTS, ("Queries", "Mutations", "Subscriptions"), strict=True):
        parts.append(f"## {title}\n\n")
        type_ = schema.type_map[root]
        assert isinstance(type_, GraphQLObjectType)
        fields = sorted(type_.fields.items())
        parts += [_root_field(name, field, shown.get((root.lower(), name))) for name, field in fields]
    parts.append("## Types\n\n")
    types = (named for name, named in sorted(schema.type_map.items()) if not name.startswith("__"))
    parts += [_type(named) for named in types if named.name not in ROOTS and not _is_built_in(named)]
    return "".join(parts)


def _is_built_in(named: GraphQLNamedType) -> bool:
    return named.name in specified_scalar_types


def _examples(folder: Path) -> Mapping[tuple[str, str], str]:
    """An operation of examples/ for each root field, the shortest one."""
    found: dict[tuple[str, str], str] = {}
    for file in sorted(folder.glob("*.graphql")):
        for operation in parse(file.read_text(encoding="utf-8")).definitions:
            if isinstance(operation, OperationDefinitionNode):
                text = print_ast(operation)
                for field in operation.selection_set.selections:
                    if isinstance(field, FieldNode):
                        key = (operation.operation.value, field.name.value)
                        found[key] = min(text, found.get(key, text), key=len)
    return found


def _root_field(name: str, field: GraphQLField, example: str | None) -> str:
    lines = [f"### {name}", "", _text(field.description), "", f"Answers {_linked(field.type)}.", ""]
    if field.args:
        lines += _table("argument", field.args)
    if example:
        lines += ["```graphql", example, "```", ""]
    return "\n".join(lines) + "\n"


def _type(named: GraphQLNamedType) -> str:
    lines = [f"### {named.name} ({KINDS[type(named)]})", ""]
    lines += [_text(named.description), ""] if named.description else []
    if isinstance(named, GraphQLObjectType | GraphQLInterfaceType | GraphQLInputObjectType):
        lines += _table("field", named.fields)
    elif isinstance(named, GraphQLEnumType):
        rows = (f"| `{name}` | {_cell(value.description)} |" for name, value in named.values.items())
        lines += ["| value | meaning |", "|---|---|", *rows, ""]
    elif isinstance(named, GraphQLUnionType):
        lines += ["One of " + ", ".join(_linked(each) for each in named.types) + ".", ""]
    return "\n".join(lines) + "\n"


def _table(title: str, fields: Mapping[str, GraphQLField | GraphQLArgument | GraphQLInputField]) -> list[str]:
    return [f"| {title} | type | meaning |", "|---|---|---|", *_rows(fields), ""]


def _rows(fields: Mapping[str, GraphQLField | GraphQLArgument | GraphQLInputField]) -> Iterator[str]:
    for name, field in fields.items():
        taken = isinstance(field, GraphQLField) and field.args
        inside = f"({', '.join(field.args)})" if isinstance(field, GraphQLField) and taken else ""
        yield f"| `{name}{inside}` | {_linked(field.type)}{_default(field)} | {_cell(field.description)} |"


def _default(field: GraphQLField | GraphQLArgument | GraphQLInputField) -> str:
    """What counts if the argument is left out."""
    if isinstance(field, GraphQLField) or field.ast_node is None or field.ast_node.default_value is None:
        return ""
    return f" = `{print_ast(field.ast_node.default_value)}`"


def _linked(of: GraphQLType) -> str:
    """A type as GraphQL writes it, its name a link to its place on the page."""
    named = get_named_type(of)
    if _is_built_in(named):
        return f"`{of}`"
    before, after = str(of).split(named.name)
    anchor = f"{named.name.lower()}-{KINDS[type(named)]}"
    return f"{before}[{named.name}](#{anchor}){after}".replace("[[", "\\[[")


def _text(description: str | None) -> str:
    return (description or "").replace("<", "&lt;")


def _cell(description: str | None) -> str:
    return _text(" ".join((description or "").split())).replace("|", "\\|")
