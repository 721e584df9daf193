"""Documents as large as the service accepts: grown in one direction after the other, until its own checks refuse them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from graphql import GraphQLSchema

from server.execution.documents import Documents, GraphQLRequest, InvalidOperation
from server.execution.limits import Limits
from tests.dearest.documents import LARGEST, Document, Sizes, Template

ORDERS: Sequence[Sequence[str]] = (
    # Many objects, for each of them the field; then as many aliases as fit.
    ("entries", "outer", "aliases", "roots", "lists", "page", "beneath", "inner"),
    # Many pages, as large as they may be.
    ("entries", "page", "aliases", "outer", "roots", "lists", "inner", "beneath"),
    # Many fields beneath, of many objects.
    ("beneath", "entries", "outer", "page", "aliases", "roots", "lists", "inner"),
    # The way back to the field, again and again; small pages outside, or inside.
    ("cycles", "outer", "entries", "inner", "page", "roots", "aliases", "lists"),
    ("cycles", "page", "inner", "entries", "outer", "aliases", "roots", "lists"),
)
"""The directions in which documents grow."""

SMALL = Limits(tokens=400, fields=80, same_name=8, aliases=8, complexity=2_000, values=400)
"""Limits of a tenth: what is dear within them is dear within the service's own."""


class _Drafts(Documents):
    """Checks what makes a document too large, and not whether it is valid: that takes half of the time."""

    def _validate(self, *_: Any, **__: Any) -> None:
        return


class Growing:
    """Grows documents within limits, which are the service's own unless others are given."""

    def __init__(self, schema: GraphQLSchema, limits: Limits | None = None) -> None:
        self._documents = _Drafts(schema, limits)

    def accepts(self, document: Document) -> bool:
        request = GraphQLRequest(document.text, variables=document.variables)
        try:
            checked = self._documents.check(request, introspection=False)
            self._documents.operation(request, introspection=False, checked=checked)
        except InvalidOperation:
            return False
        return True

    def sizes(self, template: Template) -> Iterator[Sizes]:
        """The largest sizes in which the documents of a template are accepted, in each order of growing."""
        seen: set[tuple[Any, ...]] = set()
        for order in ORDERS:
            if order[0] != "cycles" or template.back:
                grown = self.grown(template, order)
                key = template.document(grown, draft=True).key
                if key not in seen:
                    seen.add(key)
                    yield grown

    def grown(self, template: Template, order: Sequence[str]) -> Sizes:
        sizes = Sizes()
        for direction in order:
            sizes = self._largest(template, sizes, direction)
        return sizes

    def _largest(self, template: Template, sizes: Sizes, direction: str) -> Sizes:
        """The largest accepted in one direction, the others as they are; short of it by an eighth at most."""
        low = getattr(sizes, direction)
        most = max(sizes.roots, sizes.aliases) if direction == "lists" else getattr(LARGEST, direction)

        def draft(number: int) -> Document:
            return template.document(sizes._replace(**{direction: number}), draft=True)

        largest = draft(most)
        if largest.key == draft(low).key:
            return sizes  # nothing grows in this direction
        if self.accepts(largest):
            return sizes._replace(**{direction: most})
        high = most
        while high - low > 1 + low // 8:
            middle = (low + high) // 2
            low, high = (middle, high) if self.accepts(draft(middle)) else (low, middle)
        return sizes._replace(**{direction: low})
