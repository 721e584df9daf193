"""Response paths: where a value belongs in an answer.

A path is a chain of tuples (parent path, response key or list index, name of the object type), cheap to make for every
item of a list. None is the answer itself. graphql-core's `Path` has the same three fields; `core_path` converts.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from graphql.pyutils import Path

ResponsePath: TypeAlias = tuple[Any, str | int, str | None] | None


def ancestry(path: ResponsePath) -> list[Any]:
    """The paths from the root's field down to this one."""
    links = []
    while path is not None:
        links.append(path)
        path = path[0]
    return links[::-1]


def is_within(path: ResponsePath, ancestor: ResponsePath) -> bool:
    """Whether a path is the other one or lies below it."""
    if ancestor is None:
        return True
    while path is not None:
        if path == ancestor:
            return True
        path = path[0]
    return False


def core_path(path: ResponsePath) -> Path:
    """graphql-core's form of a path."""
    converted: Path | None = None
    for _, key, type_name in ancestry(path):
        converted = Path(converted, key, type_name)
    return converted  # type: ignore[return-value]  # only the answer itself has none
