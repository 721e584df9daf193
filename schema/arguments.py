"""From GraphQL arguments to a resolver's parameters.

A resolver's keyword-only parameters say what a field takes:

| parameter                     | GraphQL argument                 | the resolver receives              |
|-------------------------------|----------------------------------|------------------------------------|
| `Annotated[str, NodeOf("X")]` | ID                               | the key inside an id of an X       |
| `AnyId`                       | ID                               | its text                           |
| `Window`                      | first, after                     | the checked window                 |
| `BothWaysWindow`              | first, after, last, before       | the checked window                 |
| anything else                 | its own type                     | the value; texts without NUL       |

Everything is checked here, before a resolver runs and long before the table is asked.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, get_args, get_origin

import strawberry

from datastore.dynamo import Window
from datastore.refusals import InvalidInput
from datastore.seal import Seal
from resolvers.context import BothWays, NodeOf
from resolvers.node_ids import key_of

PAGE_SIZE = 20
LARGEST_PAGE = 100

_PAGE_ARGUMENTS: Mapping[str, tuple[Any, str]] = {
    "first": (int | None, f"How many, from the start: 1 to {LARGEST_PAGE}, {PAGE_SIZE} unless given."),
    "after": (str | None, "Begin behind this cursor."),
    "last": (int | None, f"How many, from the end: 1 to {LARGEST_PAGE}. Not together with `first` or `after`."),
    "before": (str | None, "End in front of this cursor. Not together with `first` or `after`."),
}


@dataclass(frozen=True, slots=True)
class Parameters:
    """The arguments of one resolver, and how they are read."""

    plain: Mapping[str, Any]
    nodes: Mapping[str, tuple[str, bool]]
    window: str | None
    both_ways: bool
    defaults: Mapping[str, Any]

    @classmethod
    def of(cls, resolver: Callable[..., Any]) -> Parameters:
        plain: dict[str, Any] = {}
        nodes: dict[str, tuple[str, bool]] = {}
        defaults: dict[str, Any] = {}
        window, both_ways = None, False
        for name, declared, default in _keywords(resolver):
            marks = get_args(declared)[1:] if get_origin(declared) is Annotated else ()
            bare = get_args(declared)[0] if marks else declared
            if bare is Window:
                window, both_ways = name, any(isinstance(mark, BothWays) for mark in marks)
                continue
            node, optional, many = _node_mark(declared)
            if node is not None:
                identifier: Any = list[strawberry.ID] if many else strawberry.ID
                if node.type_name is not None:
                    nodes[name] = (node.type_name, many)
                plain[name] = identifier | None if optional else identifier
            else:
                plain[name] = declared
            if default is not inspect.Parameter.empty:
                defaults[name] = default
        return cls(plain, nodes, window, both_ways, defaults)

    @property
    def page_arguments(self) -> tuple[str, ...]:
        if self.window is None:
            return ()
        return tuple(_PAGE_ARGUMENTS) if self.both_ways else ("first", "after")

    def declared(self, descriptions: Mapping[str, str]) -> Iterator[tuple[str, Any, Any]]:
        """Name, annotation and default of each GraphQL argument."""
        for name, kind in self.plain.items():
            default = self.defaults.get(name, inspect.Parameter.empty)
            # What is optional for the resolver is left out of the call when the client leaves it out.
            shown = strawberry.UNSET if _absent(default) else default
            # A parameter called `from_` is the argument `from`, which is no name in Python.
            spelled = camel(name) if name.endswith("_") else None
            argument = strawberry.argument(description=descriptions[name], name=spelled)
            yield name, Annotated[_graphql(kind), argument], shown
        for name in self.page_arguments:
            kind, text = _PAGE_ARGUMENTS[name]
            yield name, Annotated[kind, strawberry.argument(description=text)], strawberry.UNSET

    def read(self, given: Mapping[str, Any], seal: Seal, path: tuple[str, ...] = ()) -> dict[str, Any]:
        """The resolver's keyword arguments."""
        values: dict[str, Any] = {}
        page: dict[str, Any] = {}
        for name, value in given.items():
            if value is strawberry.UNSET:
                continue
            if name in self.plain:
                values[name] = self._value(name, value, path)
            else:
                page[name] = value
        if self.window is not None:
            values[self.window] = window_of(page, seal)
        return values

    def _value(self, name: str, value: Any, path: tuple[str, ...]) -> Any:
        if value is None or isinstance(value, int | float):
            return value
        path = (*path, camel(name))
        if name not in self.nodes:
            return clean(value, path)
        type_name, many = self.nodes[name]
        try:
            return tuple(key_of(type_name, one) for one in value) if many else key_of(type_name, value)
        except InvalidInput as refused:
            raise InvalidInput(refused.message, path=path) from None


def _keywords(resolver: Callable[..., Any]) -> Iterator[tuple[str, Any, Any]]:
    names = vars(sys.modules[resolver.__module__])
    for parameter in inspect.signature(resolver).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            declared = parameter.annotation
            if isinstance(declared, str):
                declared = eval(declared, names)  # noqa: S307 - an annotation of our own code
            yield parameter.name, declared, parameter.default


def _node_mark(declared: Any) -> tuple[NodeOf | None, bool, bool]:
    """The mark of an id in an annotation, whether it may be null, and whether it is a list of ids."""
    optional, many = False, False
    arguments = get_args(declared)
    if type(None) in arguments:
        optional = True
        declared = next((argument for argument in arguments if get_origin(argument) is Annotated), declared)
    if get_origin(declared) in (list, tuple) and get_args(declared):
        many, declared = True, get_args(declared)[0]
    marks = get_args(declared)[1:] if get_origin(declared) is Annotated else ()
    node = next((mark for mark in marks if isinstance(mark, NodeOf)), None)
    return node, optional, many


def _absent(default: Any) -> bool:
    return default is None or type(default).__name__ == "Unset"


def _graphql(kind: Any) -> Any:
    """The annotation as Strawberry takes it: without our own mark for `not given`."""
    members = [member for member in get_args(kind) if getattr(member, "__name__", "") != "Unset"]
    if len(members) != len(get_args(kind)):
        united = members[0]
        for member in members[1:]:
            united = united | member
        return united
    return kind


def window_of(page: Mapping[str, Any], seal: Seal) -> Window:
    """The window that first/after or last/before ask for; nothing is clamped, what is wrong is refused."""
    first, after, last, before = (page.get(name) for name in ("first", "after", "last", "before"))
    backward = last is not None or before is not None
    if backward and (first is not None or after is not None):
        message = "Ask for first and after, or for last and before; not for both directions at once."
        raise InvalidInput(message, path=("first" if first is not None else "after",))
    name, size = ("last", last) if backward else ("first", first)
    if size is None:
        size = PAGE_SIZE
    if not 1 <= size <= LARGEST_PAGE:
        message = f"`{name}` is 1 to {LARGEST_PAGE}."
        raise InvalidInput(message, path=(name,))
    return Window(size, seal, forward=not backward, cursor=before if backward else after)


def clean(value: Any, path: tuple[str, ...]) -> Any:
    """The same value, once every text in it is known to be one: no NUL, no lone surrogate."""
    if isinstance(value, str):
        if "\x00" in value or not _encodable(value):
            message = "A text may not contain NUL or half a character (a lone surrogate)."
            raise InvalidInput(message, path=path)
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            clean(inner, (*path, str(place)))
    elif hasattr(value, "__strawberry_definition__") and hasattr(value, "__dict__") and not isinstance(value, Enum):
        for name, inner in vars(value).items():
            clean(inner, (*path, camel(name)))
    return value


def _encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)
