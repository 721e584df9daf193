"""The examples that the explorer opens, held to the schema that people will send them to."""

from pathlib import Path

import pytest
from graphql import OperationDefinitionNode, build_schema, parse, validate

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.graphql"))
TABS = (ROOT / "explorer" / "src" / "examples.js").read_text(encoding="utf-8")

# What fits beside the explorer's buttons on a laptop.
WIDTH = 50


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_every_example_is_valid(example: Path) -> None:
    """Valid, every operation named, one tab for each file, and nothing cut off at the side."""
    text = example.read_text(encoding="utf-8")
    document = parse(text)
    assert validate(build_schema((ROOT / "schema" / "schema.graphql").read_text(encoding="utf-8")), document) == []
    operations = [one for one in document.definitions if isinstance(one, OperationDefinitionNode)]
    assert all(operation.name for operation in operations)
    assert f"'{example.stem}'" in TABS
    assert max(map(len, text.splitlines())) <= WIDTH
