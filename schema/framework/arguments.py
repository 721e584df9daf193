"""From GraphQL arguments to a resolver's parameters.

A resolver's keyword-only parameters say what a field takes:

| parameter                       | GraphQL argument           | the resolver receives          |
|---------------------------------|----------------------------|--------------------------------|
| `Annotated[str, NodeOf("X")]`   | ID                         | the key inside an id of an X   |
| `AnyId`                         | ID                         | its text                       |
| `Window`                        | first, after               | the checked window             |
| `BothWaysWindow`                | first, after, last, before | the checked window             |
| a record that has an input type | that type                  | the record                     |
| anything else                   | its own type               | the value; texts without NUL   |

A field's list of ids names objects to read, whose number is limited in a whole operation (`names_objects`); any other
list is a filter with a limit of its own. Values are checked here, before a resolver runs and long before the table is
read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin, get_type_hints

import strawberry
from graphql import GraphQLArgument, GraphQLID, get_named_type, get_nullable_type, is_list_type

from datastore.dynamo import LARGEST_PAGE, PAGE_SIZE, Window, page_size
from datastore.refusals import InvalidInput
from datastore.values.seal import Seal
from resolvers.requests.context import UNSET, BothWays, Context, NodeOf, Unset
from resolvers.values.node_ids import parse_node_key
from resolvers.values.texts import camel_case

# ── windows ──

FORWARD: Mapping[str, tuple[Any, str]] = {
    "first": (int | None, f"The number of items from the start: 1 to {LARGEST_PAGE}, default {PAGE_SIZE}."),
    "after": (str | None, "Return items after this cursor."),
}
BACKWARD: Mapping[str, tuple[Any, str]] = {
    "last": (
        int | None,
        f"The number of items from the end: 1 to {LARGEST_PAGE}. Not together with `first` or `after`.",
    ),
    "before": (str | None, "Return items before this cursor. Not together with `first` or `after`."),
}


def parse_window(given: Mapping[str, Any], seal: Seal) -> Window:
    """The window that first/after or last/before ask for. Nothing is clamped: wrong values are refused."""
    first, after, last, before = (
        None if given.get(name) is strawberry.UNSET else given.get(name)
        for name in ("first", "after", "last", "before")
    )
    backward = last is not None or before is not None
    if backward and (first is not None or after is not None):
        raise InvalidInput(
            "Ask for first and after, or for last and before; not for both directions at once.",
            path=("first" if first is not None else "after",),
        )
    name, size = ("last", last) if backward else ("first", first)
    return Window(page_size(size, name), seal, forward=not backward, cursor=before if backward else after)


# ── arguments ──

MOST_NAMED = 100
"""Objects that an operation names in lists to have them read."""
NAMED_IN_ALL = (
    f"An operation names at most {MOST_NAMED} objects in such lists, all its fields together; repeated ones count once."
)


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a field, or a field of an input type."""

    name: str
    annotation: Any
    default: Any
    description: str

    @property
    def annotated(self) -> Any:
        """The annotation that describes it to Strawberry."""
        # A parameter called `from_` is the argument `from`, which is no name in Python.
        graphql_name = camel_case(self.name) if self.name.endswith("_") else None
        return Annotated[self.annotation, strawberry.argument(description=self.description, name=graphql_name)]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that is an argument of its own, and how its value is parsed."""

    annotation: Any
    default: Any
    graphql_name: str
    parse: Callable[[Any, tuple[str, ...]], Any]
    """Of texts, lists and inputs; other values need none."""

    @classmethod
    def of(cls, name: str, declared: Any, default: Any) -> Parameter:
        node, optional, many = _node_marker(declared)
        if node is None:
            return cls(declared, default, camel_case(name), parse_value)
        identifier: Any = list[strawberry.ID] if many else strawberry.ID
        parse = parse_value if node.type_name is None else partial(_parse_node_ids, node.type_name)
        return cls(identifier | None if optional else identifier, default, camel_case(name), parse)


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a resolver, or the fields of a record."""

    by_name: Mapping[str, Parameter]
    window: str | None
    both_ways: bool

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Parameters:
        by_name: dict[str, Parameter] = {}
        window, both_ways = None, False
        for name, declared, default in _keywords(function):
            bare, markers = _markers(declared)
            if bare is Window:
                window, both_ways = name, any(isinstance(marker, BothWays) for marker in markers)
            else:
                by_name[name] = Parameter.of(name, declared, default)
        return cls(by_name, window, both_ways)

    def arguments(self, descriptions: Mapping[str, str]) -> Iterator[Argument]:
        """The GraphQL arguments, in the order of the parameters; those of a page come last."""
        if descriptions.keys() != self.by_name.keys():
            raise TypeError(f"The parameters are {sorted(self.by_name)}, but {sorted(descriptions)} are described.")
        for name, parameter in self.by_name.items():
            default = parameter.default
            # What is optional for the resolver is left out of the call when the client leaves it out.
            shown = strawberry.UNSET if default is None or default is UNSET else default
            yield Argument(name, _graphql(parameter.annotation), shown, descriptions[name])
        if self.window is not None:
            page = {**FORWARD, **BACKWARD} if self.both_ways else FORWARD
            for name, (declared, description) in page.items():
                yield Argument(name, declared, strawberry.UNSET, description)

    def hashed(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What a receipt's hash is made of: all but parameters that have their default.

        So a parameter that a later release adds does not change the hash of a request that leaves it out.
        """
        defaults = {name: parameter.default for name, parameter in self.by_name.items()}
        return {
            name: as_given(value)
            for name, value in given.items()
            if value not in (strawberry.UNSET, defaults.get(name, strawberry.UNSET))
        }

    def parse(self, given: Mapping[str, Any], ctx: Context) -> dict[str, Any]:
        """The resolver's keyword arguments, or InvalidInput."""
        values = self.parse_values(given)
        if self.window is not None:
            values[self.window] = parse_window(given, ctx.services.seal)
        return values

    def parse_values(self, given: Mapping[str, Any], path: tuple[str, ...] = ()) -> dict[str, Any]:
        """The keyword arguments without the window, or InvalidInput."""
        values = {}
        for name, value in given.items():
            parameter = self.by_name.get(name)
            if parameter is None or value is strawberry.UNSET:
                continue
            if isinstance(value, str | list | Input):
                values[name] = parameter.parse(value, (*path, parameter.graphql_name))
            else:
                values[name] = value
        return values


def _keywords(function: Callable[..., Any]) -> Iterator[tuple[str, Any, Any]]:
    """Name, annotation and default of each keyword-only parameter."""
    annotations = get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            yield parameter.name, annotations[parameter.name], parameter.default


def _markers(declared: Any) -> tuple[Any, tuple[Any, ...]]:
    """An annotation without its markers, and the markers."""
    if get_origin(declared) is not Annotated:
        return declared, ()
    bare, *markers = get_args(declared)
    return bare, tuple(markers)


def _node_marker(declared: Any) -> tuple[NodeOf | None, bool, bool]:
    """The marker of an id in an annotation, whether it may be null, and whether it is a list of ids."""
    optional, many = False, False
    members = get_args(declared)
    if type(None) in members:
        optional = True
        declared = next((member for member in members if get_origin(member) is Annotated), declared)
    if get_origin(declared) in (list, tuple) and get_args(declared):
        many, declared = True, get_args(declared)[0]
    node = next((marker for marker in _markers(declared)[1] if isinstance(marker, NodeOf)), None)
    return node, optional, many


def _graphql(declared: Any) -> Any:
    """The annotation as Strawberry takes it: input types in place of records, and without `Unset`."""
    origin, arguments = get_origin(declared), get_args(declared)
    if origin in (Union, UnionType):
        return reduce(or_, (_graphql(member) for member in arguments if member is not Unset))
    if origin in (list, Sequence):
        item: Any = _graphql(arguments[0])
        return list[item]
    return _INPUT_TYPES.get(declared, declared)


# ── input types ──


class Input:
    """What all input types derive from."""

    record: ClassVar[type]
    """What a resolver receives in place of it."""
    parameters: ClassVar[Parameters]


_INPUT_TYPES: dict[type, type[Input]] = {}
"""By their records."""


def input_type(record: type, name: str, description: str, /, **fields: str) -> None:
    """Make the input type of a record whose fields are given by name. `fields` describe them."""
    parameters = Parameters.of(record)
    made = make_input(name, description, parameters.arguments(fields))
    made.record, made.parameters = record, parameters
    _INPUT_TYPES[record] = made


def make_input(name: str, description: str, arguments: Iterable[Argument]) -> type[Input]:
    """A class that Strawberry shows as an input type."""
    members: dict[str, Any] = {"__annotations__": {}}
    for argument in arguments:
        members["__annotations__"][argument.name] = argument.annotation
        default = {} if argument.default is inspect.Parameter.empty else {"default": argument.default}
        members[argument.name] = strawberry.field(description=argument.description, **default)
    return strawberry.input(type(name, (Input,), members), description=description)


def as_given(value: Any) -> Any:
    """An input as plain dictionaries, lists and leaves."""
    if isinstance(value, list):
        return [as_given(item) for item in value]
    if isinstance(value, Input):
        return value.parameters.hashed(vars(value))
    return value


# ── values ──


def parse_value(value: Any, path: tuple[str, ...]) -> Any:
    """The value with records in place of inputs, every text in it validated."""
    if isinstance(value, str):
        validate_text(value, path)
    elif isinstance(value, list):
        return [parse_value(item, (*path, str(index))) for index, item in enumerate(value)]
    elif isinstance(value, Input):
        return value.record(**value.parameters.parse_values(vars(value), path))
    return value


def validate_text(text: str, path: tuple[str, ...]) -> None:
    """Refuse NUL and lone surrogates, which neither a key nor JSON can hold."""
    is_storable = "\x00" not in text
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            is_storable = False
    if not is_storable:
        raise InvalidInput("A text may not contain NUL or half a character (a lone surrogate).", path=path)


def _parse_node_ids(type_name: str, value: Any, path: tuple[str, ...]) -> Any:
    """The key inside an id, or the keys inside a list of them."""
    try:
        if isinstance(value, list):
            return tuple(parse_node_key(type_name, node_id) for node_id in value)
        return parse_node_key(type_name, value)
    except InvalidInput as refusal:
        raise InvalidInput(refusal.message, path=path) from None


def names_objects(argument: GraphQLArgument) -> bool:
    """Whether a field's argument is a list that names objects to be read, of which an operation may name so many."""
    return is_list_type(get_nullable_type(argument.type)) and get_named_type(argument.type) is GraphQLID
