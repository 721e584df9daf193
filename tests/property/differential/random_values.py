"""Values for any type of a schema, drawn from a seed: right ones mostly, and every kind of wrong one.

Both executors must meet the same value whenever and however often they read a field of a record. So nothing is stored:
a record is a seed, and the value of its field is a function of the seed and the field.
"""

import asyncio
import random
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

from graphql import (
    GraphQLEnumType,
    GraphQLObjectType,
    GraphQLSchema,
    is_abstract_type,
    is_leaf_type,
    is_list_type,
    is_non_null_type,
)

from server.compiler.plan import record_classes

MAX_ITEMS = 2


class ResolverFailed(Exception):
    """A resolver's own failure."""


class RandomValues:
    """The values of one schema's fields."""

    def __init__(self, schema: GraphQLSchema, faults: float) -> None:
        self.schema = schema
        self.faults = faults
        self._classes: dict[str, type] = {}

    def draw(self, type_: Any, *seed: Any) -> Any:
        """A value for a type; raises where a resolver would."""
        rng = random.Random(repr(seed))
        if rng.random() < self.faults:
            return self._fault(type_, rng, seed)
        if is_non_null_type(type_):
            return self._right(type_.of_type, rng, seed)
        return None if rng.random() < 0.1 else self._right(type_, rng, seed)

    def _right(self, type_: Any, rng: random.Random, seed: Any) -> Any:
        if is_list_type(type_):
            items = [self._item(type_.of_type, *seed, index) for index in range(rng.randint(0, MAX_ITEMS))]
            return tuple(items) if rng.random() < 0.3 else items
        if is_leaf_type(type_):
            return self._leaf(type_, rng)
        if is_abstract_type(type_):
            type_ = rng.choice(self.schema.get_possible_types(type_))
        return self._record(type_, *seed)

    def _item(self, type_: Any, *seed: Any) -> Any:
        try:
            return self.draw(type_, *seed)
        except ResolverFailed as failure:
            return failure  # an exception among the items of a list

    def _leaf(self, type_: Any, rng: random.Random) -> Any:
        if isinstance(type_, GraphQLEnumType):
            return rng.choice(list(type_.wrapped_cls))  # type: ignore[attr-defined]  # Strawberry's enum
        leaves: dict[str, Callable[[], Any]] = {
            "Int": lambda: rng.randint(-5, 5),
            "Float": lambda: rng.choice([0.5, -1.25, 2, 1e300]),
            "Boolean": lambda: rng.random() < 0.5,
            "DateTime": lambda: datetime(2026, 11, rng.randint(1, 28), tzinfo=UTC),
            "Date": lambda: date(2026, 11, rng.randint(1, 28)),
        }
        return leaves.get(type_.name, lambda: f"text {rng.randint(0, 99)}")()

    def _fault(self, type_: Any, rng: random.Random, seed: Any) -> Any:
        kind = rng.randint(0, 7)
        if kind <= 1:
            raise ResolverFailed(f"refused {rng.randint(0, 99)}")
        if kind == 2:
            return ResolverFailed("an exception as a value")
        if kind == 3:
            return None
        if kind == 4:
            return rng.choice([float("nan"), 2**40, object, "a text", 7, {"a": 1}, b"bytes", b""])
        if kind == 5 and is_list_type(getattr(type_, "of_type", type_)):
            return rng.choice([7, "no list", {"a": 1}, _generated(("x", None, 3))])
        if kind == 6 and is_list_type(type_):
            return [Awaitable(self._later, type_.of_type, rng, (*seed, index)) for index in range(3)]
        return Awaitable(self._later, type_, rng, seed)

    async def _later(self, type_: Any, rng: random.Random, seed: Any) -> Any:
        for _ in range(rng.randint(0, 2)):
            await asyncio.sleep(0)
        if rng.random() < 0.3:
            raise ResolverFailed("refused later")
        return self._right(type_.of_type if is_non_null_type(type_) else type_, rng, seed)

    def _record(self, type_: GraphQLObjectType, *seed: Any) -> Any:
        """A record of an object type; now and then of no type."""
        if random.Random(repr((seed, "class"))).random() < self.faults / 4:
            return UnknownRecord()
        class_ = self._classes.get(type_.name) or self._class(type_)
        record: Any = object.__new__(class_)
        object.__setattr__(record, "seed", (type_.name, hash_of(seed)))
        return record

    def _class(self, type_: GraphQLObjectType) -> type:
        classes = record_classes(type_)
        definition = type_.extensions["strawberry-definition"]
        has_check = type_.is_type_of is not None
        base = classes[-1] if classes else (definition.origin if has_check else object)
        fields = {
            field.extensions["strawberry-definition"].python_name: (name, field.type)
            for name, field in type_.fields.items()
        }

        def read(record: Any, name: str) -> Any:
            if name in fields:
                return self.draw(fields[name][1], object.__getattribute__(record, "seed"), fields[name][0])
            return object.__getattribute__(record, name)

        members = {"__getattribute__": read, "__repr__": lambda record: f"<{record.seed}>", "__slots__": ("seed",)}
        if classes is not None and not getattr(base, "__dataclass_fields__", None):
            members.pop("__slots__")
        if not hasattr(base, "__slots__"):
            members.pop("__slots__", None)
        class_ = self._classes[type_.name] = type(f"{type_.name}Record", (base,), members)
        return class_


class Awaitable:
    """A value that has to be awaited, or never is: an attribute may be read twice."""

    def __init__(self, call: Any, *arguments: Any) -> None:
        self._call = call
        self._arguments = arguments

    def __repr__(self) -> str:
        return "<awaitable>"

    def __await__(self) -> Any:
        return self._call(*self._arguments).__await__()


class UnknownRecord:
    """A value of no type in the schema."""

    def __repr__(self) -> str:
        return "<unknown record>"


def hash_of(seed: Any) -> int:
    return random.Random(repr(seed)).randint(0, 2**32)


def _generated(items: Any) -> Any:
    return (item for item in items)
