"""Documents as large as the service accepts: grown in one direction after the other, until its checks refuse them."""

from collections.abc import Hashable, Sequence
from typing import Any

from graphql import DocumentNode, GraphQLSchema

from server.execution.documents import Documents, GraphQLRequest
from server.execution.limits import InvalidOperation, Limits, check_counts
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

SMALL = Limits(tokens=200, fields=40, same_name=6, aliases=6, complexity=600, values=150)
"""Limits of a thirtieth or so: what is dearest within them is expected to be within the service's own."""
_SMALL_SIZES = Sizes(roots=6, aliases=6, lists=6, entries=60, beneath=20, cycles=2, outer=60, page=60, inner=60)


class _Drafts(Documents):
    """Checks what makes a document too large, and not whether it is valid, which takes half of the time."""

    def _validate(self, document: DocumentNode, **_: Any) -> None:
        check_counts(document, self._limits)


class Growing:
    """Grows documents within the service's limits, or to a thirtieth of that."""

    def __init__(self, schema: GraphQLSchema, *, small: bool = False) -> None:
        self._documents = _Drafts(schema, SMALL if small else None)
        self._parts = 2 if small else 8
        self._largest_sizes = _SMALL_SIZES if small else LARGEST
        self._grown: dict[Hashable, Sizes] = {}

    def accepts(self, document: Document) -> bool:
        request = GraphQLRequest(document.text, variables=document.variables)
        try:
            checked = self._documents.check(request, introspection=False)
            self._documents.select(checked, request)
        except InvalidOperation:
            return False
        return True

    def grown(self, template: Template, order: Sequence[str]) -> Sizes:
        """The largest sizes in which the template's documents are accepted. Which objects they name changes nothing."""
        key = (template.shape, order)
        if key not in self._grown:
            sizes = Sizes()
            for direction in order:
                sizes = self._largest(template, sizes, direction)
            self._grown[key] = sizes
        return self._grown[key]

    def _largest(self, template: Template, sizes: Sizes, direction: str) -> Sizes:
        """The largest accepted in one direction, the others as they are; short of it by an eighth at most, or half."""
        low = getattr(sizes, direction)
        most = max(sizes.roots, sizes.aliases) if direction == "lists" else getattr(self._largest_sizes, direction)

        def draft(number: int) -> Document:
            return template.document(sizes._replace(**{direction: number}), draft=True)

        largest = draft(most)
        if largest.key == draft(low).key:
            return sizes  # nothing grows in this direction
        if self.accepts(largest):
            return sizes._replace(**{direction: most})
        high = most
        while high - low > 1 + low // self._parts:
            middle = (low + high) // 2
            low, high = (middle, high) if self.accepts(draft(middle)) else (low, middle)
        return sizes._replace(**{direction: low})
