"""Strategies for DynamoDB's attributes."""

from typing import Any, TypeAlias

from hypothesis import strategies as some

TEXT = some.text(some.characters(exclude_categories=["Cs"]), max_size=20)
Attributes: TypeAlias = some.SearchStrategy[dict[str, Any]]


def nested(flat: Attributes, names: some.SearchStrategy[str]) -> Attributes:
    """These attributes, and lists and maps of them, two levels deep."""
    inner = flat
    for _ in range(2):
        lists = some.lists(inner, max_size=3).map(lambda values: {"L": values})
        maps = some.dictionaries(names, inner, max_size=3).map(lambda values: {"M": values})
        inner = some.one_of(flat, lists, maps)
    return inner
