"""Null propagation after an await: an error nulls the nearest nullable position."""

from __future__ import annotations

from typing import Any

from graphql import get_nullable_type, is_non_null_type

from server.compiler.paths import ResponsePath, ancestry
from server.compiler.plan import FieldPlan, SelectionPlan


def nullable_ancestor(root: SelectionPlan, path: ResponsePath) -> ResponsePath:
    """The nearest nullable position above this one; None is the answer itself."""
    selection, nearest = root, None
    field: FieldPlan | None = None
    type_: Any = None
    for ancestor in ancestry(path)[:-1]:
        _, key, type_name = ancestor
        if isinstance(key, str):
            if field is not None:
                selection = field.selections[type_name]
            field = selection.fields[key]
            type_ = field.type
        else:
            type_ = get_nullable_type(type_).of_type
        if not is_non_null_type(type_):
            nearest = ancestor
    return nearest


def set_null(answer: Any, path: ResponsePath) -> bool:
    """Set a position to null; False if an object or list above it has become null already."""
    *ancestors, (_, key, _) = ancestry(path)
    holder = answer
    for _, ancestor_key, _ in ancestors:
        if holder is None:
            return False
        holder = holder[ancestor_key]
    if holder is None:
        return False
    holder[key] = None
    return True
