"""Values for any type of a schema, drawn from a seed: right ones mostly, and every kind of wrong one.

Both executors ask for the same record's same field and must meet the same value, whenever and however often they ask.
So nothing is stored: a record is a seed, and what it answers is a function of that seed and the question.
"""

from __future__ import annotations

import asyncio
import random
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

from server.compiler.fields import record_classes

LONGEST_LIST = 2


class Refusing(Exception):
    """A resolver's own failure."""


class Values:
    """What the fields of one schema answer."""

    def __init__(self, schema: GraphQLSchema, faults: float) -> None:
        self.schema = schema
        self.faults = faults
        self._classes: dict[str, type] = {}

    def of(self, type_: Any, *seed: Any) -> Any:
        """A value for a type; raises where a resolver would."""
        drawn = random.Random(repr(seed))
        if drawn.random() < self.faults:
            return self._fault(type_, drawn, seed)
        if is_non_null_type(type_):
            return self._right(type_.of_type, drawn, seed)
        return None if drawn.random() < 0.1 else self._right(type_, drawn, seed)

    def _right(self, type_: Any, drawn: random.Random, seed: Any) -> Any:
        if is_list_type(type_):
            items = [self._item(type_.of_type, *seed, place) for place in range(drawn.randint(0, LONGEST_LIST))]
            return tuple(items) if drawn.random() < 0.3 else items
        if is_leaf_type(type_):
            return self._leaf(type_, drawn)
        if is_abstract_type(type_):
            type_ = drawn.choice(self.schema.get_possible_types(type_))
        return self.record(type_, *seed)

    def _item(self, type_: Any, *seed: Any) -> Any:
        try:
            return self.of(type_, *seed)
        except Refusing as refused:
            return refused  # an exception among the items of a list

    def _leaf(self, type_: Any, drawn: random.Random) -> Any:
        if isinstance(type_, GraphQLEnumType):
            return drawn.choice(list(type_.wrapped_cls))  # type: ignore[attr-defined]
        return {
            "Int": lambda: drawn.randint(-5, 5),
            "Float": lambda: drawn.choice([0.5, -1.25, 2, 1e300]),
            "Boolean": lambda: drawn.random() < 0.5,
            "DateTime": lambda: datetime(2026, 11, drawn.randint(1, 28), tzinfo=UTC),
            "Date": lambda: date(2026, 11, drawn.randint(1, 28)),
        }.get(type_.name, lambda: f"text {drawn.randint(0, 99)}")()

    def _fault(self, type_: Any, drawn: random.Random, seed: Any) -> Any:
        kind = drawn.randint(0, 7)
        if kind <= 1:
            raise Refusing(f"refused {drawn.randint(0, 99)}")
        if kind == 2:
            return Refusing("an exception as a value")
        if kind == 3:
            return None
        if kind == 4:
            return drawn.choice([float("nan"), 2**40, object, "a text", 7, {"a": 1}, b"bytes", b""])
        if kind == 5 and is_list_type(getattr(type_, "of_type", type_)):
            return drawn.choice([7, "no list", {"a": 1}, _generated(("x", None, 3))])
        if kind == 6 and is_list_type(type_):
            return [Late(self._later, type_.of_type, drawn, (*seed, place)) for place in range(3)]
        return Late(self._later, type_, drawn, seed)

    async def _later(self, type_: Any, drawn: random.Random, seed: Any) -> Any:
        for _ in range(drawn.randint(0, 2)):
            await asyncio.sleep(0)
        if drawn.random() < 0.3:
            raise Refusing("refused later")
        return self._right(type_.of_type if is_non_null_type(type_) else type_, drawn, seed)

    def record(self, type_: GraphQLObjectType, *seed: Any) -> Any:
        """A record of an object type; now and then of none."""
        if random.Random(repr((seed, "class"))).random() < self.faults / 4:
            return Stranger()
        cls = self._classes.get(type_.name) or self._class(type_)
        record = object.__new__(cls)
        object.__setattr__(record, "seed", (type_.name, hash_of(seed)))
        return record

    def _class(self, type_: GraphQLObjectType) -> type:
        kinds = record_classes(type_)
        definition = type_.extensions["strawberry-definition"]
        checked = type_.is_type_of is not None
        base = kinds[-1] if kinds else (definition.origin if checked else object)
        fields = {
            field.extensions["strawberry-definition"].python_name: (name, field.type)
            for name, field in type_.fields.items()
        }

        def answered(record: Any, name: str) -> Any:
            if name in fields:
                return self.of(fields[name][1], object.__getattribute__(record, "seed"), fields[name][0])
            return object.__getattribute__(record, name)

        members = {"__getattribute__": answered, "__repr__": lambda record: f"<{record.seed}>", "__slots__": ("seed",)}
        if kinds is not None and not getattr(base, "__dataclass_fields__", None):
            members.pop("__slots__")
        if not hasattr(base, "__slots__"):
            members.pop("__slots__", None)
        cls = self._classes[type_.name] = type(f"{type_.name}Record", (base,), members)
        return cls


class Late:
    """To be waited for, and no harm done if nobody does: the same attribute may be read twice."""

    def __init__(self, call: Any, *arguments: Any) -> None:
        self._call = call
        self._arguments = arguments

    def __repr__(self) -> str:
        return "<late>"

    def __await__(self) -> Any:
        return self._call(*self._arguments).__await__()


class Stranger:
    """A value of no type in the schema."""

    def __repr__(self) -> str:
        return "<a stranger>"


def hash_of(seed: Any) -> int:
    return random.Random(repr(seed)).randint(0, 2**32)


def _generated(items: Any) -> Any:
    return (item for item in items)
