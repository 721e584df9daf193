"""Values for a document's arguments: ids of every node type that exist, that were invented, altered, and mixed."""

import random
import re
import string
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from itertools import count
from typing import Any

from graphql import GraphQLEnumType, GraphQLField, get_named_type

from datastore.refusals import InvalidInput
from resolvers.values.node_ids import node_id, parse_node_id
from schema.framework.declarations import Resolution

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_KEPT = re.compile(r"\d{4}-\d\d-\d\d|(?<![0-9A-Z])\d{4}(?![0-9A-Z])|(?<![0-9A-Z])01")
"""What an invented key keeps of one that exists: days, seasons, and the beginning of a ULID."""
_EXISTING: Mapping[str, tuple[str, ...]] = {
    "product": ("ringside-tee", "p"),
    "products": ("ringside-tee", "p"),
    "season": ("2026",),
    "slug": ("main",),
    "board": ("main",),
    "language": ("en", "es", "de"),
    "languages": ("en", "es", "de", "fr"),
}
"""What exists, for arguments that are no ids of nodes."""


class Kind(Enum):
    """Which objects a document names."""

    EXISTING = "existing"
    INVENTED = "invented"
    ALTERED = "altered"
    MIXED = "mixed"


class Ids:
    """Node ids by type: those that answers have shown, and others like them."""

    def __init__(self, seed: int = 0) -> None:
        self.existing: dict[str, list[str]] = {}
        self._seen: set[str] = set()
        self._random = random.Random(seed)

    def note(self, answer: Any) -> None:
        """Note every id in an answer."""
        for text in _texts(answer):
            try:
                type_name, _ = parse_node_id(text)
            except InvalidInput:
                continue
            if text not in self._seen:
                self._seen.add(text)
                self.existing.setdefault(type_name, []).append(text)

    def invented(self, type_name: str) -> str:
        """An id with the form of an existing one, of an object that does not exist."""
        known = self.existing.get(type_name)
        key = parse_node_id(self._random.choice(known))[1] if known else ""
        return node_id(type_name, self._scrambled(key) if key else self.ulid())

    def altered(self, type_name: str) -> str:
        """An id with a wrong letter."""
        text = self.invented(type_name)
        return text[:-1] + ("A" if text[-1] != "A" else "Q")

    def ulid(self) -> str:
        return "01" + "".join(self._random.choices(_CROCKFORD, k=24))

    def _scrambled(self, key: str) -> str:
        """The key with other letters and digits in the same places."""
        pieces, end = [], 0
        for kept in _KEPT.finditer(key):
            pieces += [self._other(key[end : kept.start()]), kept[0]]
            end = kept.end()
        return "".join([*pieces, self._other(key[end:])])

    def _other(self, text: str) -> str:
        letters = ((_CROCKFORD, string.ascii_uppercase), (string.digits, string.digits),
                   (string.ascii_lowercase, string.ascii_lowercase))  # fmt: skip
        choice = self._random.choice
        return "".join(next((choice(some) for some, of in letters if letter in of), letter) for letter in text)


class Values:
    """Values for arguments, new ones each time: of one kind, and of one node type where an argument takes any."""

    def __init__(self, ids: Ids, kind: Kind, node_type: str) -> None:
        self._ids = ids
        self._kind = kind
        self._node_type = node_type
        self._numbers = count()

    def of(self, definition: GraphQLField, name: str) -> Any:
        """A value for an argument, or for an entry of it if it is a list."""
        type_ = get_named_type(definition.args[name].type)
        if isinstance(type_, GraphQLEnumType):
            return next(iter(type_.values))
        number = next(self._numbers)
        if type_.name in ("Boolean", "Int", "Float", "Date", "DateTime"):
            day = datetime.now(UTC).date() - timedelta(days=number + (365 if name == "from" else 0))
            of_type = {
                "Boolean": True,
                "Int": number % 5 + 1,
                "Float": 0.05,
                "Date": str(day),
                "DateTime": f"{day}T00:00:00Z",
            }
            return of_type[type_.name]
        if type_.name == "HoldRuleInput":  # what asks for most: how much the author of each comment has posted
            return {"name": f"rule {number}", "firstComments": 100, "perHour": 100}
        kind = list(Kind)[number % 3] if self._kind is Kind.MIXED else self._kind
        node_type = node_type_of(definition, name)
        if node_type is None and (type_.name != "ID" or name in _EXISTING):
            known = _EXISTING.get(name, ())
            return known[number % len(known)] if known and kind is Kind.EXISTING else f"x{self._ids.ulid().lower()}"
        return self._id(node_type or self._node_type or self._any_type(number), kind, number)

    def _any_type(self, number: int) -> str:
        types = sorted(self._ids.existing)
        return types[number % len(types)]

    def _id(self, node_type: str, kind: Kind, number: int) -> str:
        existing = self._ids.existing.get(node_type)
        if kind is Kind.EXISTING and existing:
            return existing[number % len(existing)]
        return self._ids.altered(node_type) if kind is Kind.ALTERED else self._ids.invented(node_type)


def resolution_of(definition: GraphQLField) -> Resolution | None:
    """How a field is answered; None if it shows a record's attribute."""
    declared = definition.extensions.get("strawberry-definition")
    resolver = getattr(declared, "base_resolver", None)
    found = getattr(resolver.wrapped_func, "resolution", None) if resolver is not None else None
    return found if isinstance(found, Resolution) else None


def node_type_of(definition: GraphQLField, name: str) -> str | None:
    """The node type whose ids an argument takes; None if it takes any, or is no id."""
    resolution = resolution_of(definition)
    for parameter in resolution.parameters.by_name.values() if resolution else ():
        if parameter.graphql_name == name:
            return next(iter(getattr(parameter.parse, "args", ())), None)
    return None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
