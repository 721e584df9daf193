"""The complexity of an operation: what it counts, and that counting it is never the problem."""

from __future__ import annotations

from typing import Any

import pytest
from graphql import FragmentDefinitionNode, OperationDefinitionNode, parse

from server.execution.limits import Cost


def cost(text: str, **variables: Any) -> int:
    definitions = parse(text).definitions
    fragments = {one.name.value: one for one in definitions if isinstance(one, FragmentDefinitionNode)}
    (operation,) = [one for one in definitions if isinstance(one, OperationDefinitionNode)]
    return Cost(operation, fragments)(variables)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("{ a }", 1),
        ("{ a b { c d } }", 4),
        ("{ a(first: 5) { b c } }", 11),
        ("{ a(last: 5) { b(first: 3) { c } } }", 21),
        ("{ a { nodes { b } } }", 41),
        ("{ a { edges { node { b } } pageInfo { c } } }", 101),
        ("{ a(first: 0) { b } }", 2),
        ("{ a(first: null) { b } }", 21),
        ('{ a(ids: ["x", "y", "z"]) { b } }', 4),
        ("{ a(ids: []) { b } }", 2),
        ("{ ... on Query { a } ...f ...f } fragment f on Query { b { c } }", 5),
    ],
)
def test_every_field_counts_once_for_each_object_around_it(text: str, fields: int) -> None:
    """`first`, `last` and `ids` say how many objects; a page without them has twenty."""
    assert cost(text) == fields


@pytest.mark.parametrize(
    ("variables", "fields"),
    [
        ({"n": 5, "ids": ["x", "y"]}, 1 + 5 * 2 + 1 + 2 * (1 + 5)),
        ({"n": 0, "ids": []}, 1 + 1 * 2 + 1 + 1 * (1 + 1)),
        ({"ids": "x"}, 1 + 20 * 2 + 1 + 1 * (1 + 20)),
        ({"n": None, "ids": None}, 1 + 20 * 2 + 1 + 1 * (1 + 20)),
        ({"n": "many"}, 1 + 20 * 2 + 1 + 1 * (1 + 20)),
        ({"n": 10**30}, 1 + 10**30 * 2 + 1 + 1 * (1 + 10**30)),
    ],
)
def test_sizes_come_from_the_variables_of_each_request(variables: dict[str, Any], fields: int) -> None:
    """What is no size counts as the default, since the field refuses it anyway."""
    text = (
        "query ($n: Int, $ids: [ID!]!) { a(first: $n) { b c } d(ids: $ids) { ...page } } "
        "fragment page on X { e(last: $n) { f } }"
    )
    assert cost(text, **variables) == fields


def test_a_chain_of_fragments_is_added_up_in_no_time() -> None:
    """Each spreads the next one twice, so the last one's field counts 2^200 times what the variable says."""
    chain = " ".join(f"fragment f{n} on X {{ ...f{n + 1} ...f{n + 1} }}" for n in range(200))
    text = f"query ($n: Int) {{ ...f0 }} {chain} fragment f200 on X {{ a(first: $n) {{ b }} }}"
    assert cost(text, n=3) == 2**200 * 4
