"""The operations of `examples/`, by name."""

from graphql import OperationDefinitionNode, parse, print_ast

from tests.generated import ROOT

EXAMPLES = {
    definition.name.value: print_ast(definition)
    for file in sorted((ROOT / "examples").glob("*.graphql"))
    for definition in parse(file.read_text(encoding="utf-8")).definitions
    if isinstance(definition, OperationDefinitionNode) and definition.name
}
