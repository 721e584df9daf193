"""Where something stands in an answer: a chain of tuples, cheap to make for every item of every list.

(before, key, object type) is just what graphql-core's `Path` is, so `path_of` makes one of it where one is needed.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from graphql.pyutils import Path

Chain: TypeAlias = tuple[Any, str | int, str | None] | None


def parts_of(chain: Chain) -> list[Any]:
    parts = []
    while chain is not None:
        parts.append(chain)
        chain = chain[0]
    return parts[::-1]


def is_beneath(chain: Chain, place: Chain) -> bool:
    if place is None:
        return True
    while chain is not None:
        if chain == place:
            return True
        chain = chain[0]
    return False


def path_of(chain: Chain) -> Path:
    """graphql-core's own form of a path."""
    path: Path | None = None
    for _, key, name in parts_of(chain):
        path = Path(path, key, name)
    return path  # type: ignore[return-value]
