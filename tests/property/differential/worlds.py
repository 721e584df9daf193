"""Random schemas, made as the real one is: types of Strawberry, `record_type`, `field`, resolvers of every kind."""

from __future__ import annotations

import asyncio
import enum
import inspect
import random
import sys
from collections.abc import Callable
from datetime import datetime
from types import ModuleType
from typing import Annotated, Any, Union

import strawberry
from strawberry.schema.config import StrawberryConfig

from resolvers.loading.batched import batched
from schema.arguments import Argument
from schema.fields import declare_signature, field
from schema.scalars import SCALARS
from schema.types import record_type
from tests.property.differential.values import Values, hash_of

LEAVES = ["str", "int", "float", "bool", "ID", "Kind", "datetime", "Odd"]
ARGUMENTS = ["int", "str | None", "bool", "Kind", "list[int] | None", "Filter", "Filter | None", "int | None"]
WAYS = ["attribute", "attribute", "attribute", "sync", "async", "batched", "strawberry", "strawberry async"]


class World:
    """One random schema and the values its fields answer with."""

    def __init__(self, seed: int) -> None:
        self._drawn = random.Random(seed)
        self._names = ModuleType(f"world_{seed}")
        sys.modules[self._names.__name__] = self._names
        self.values: Values
        self._leaf_types()
        count = self._drawn.randint(2, 5)
        self._objects = [f"T{number}" for number in range(count)]
        self._abstract = ["I0", "U0"]
        self._interface()
        types = [self._type(name, number) for number, name in enumerate(self._objects)]
        members = tuple(types[: max(1, count - 1)])
        self._names.U0 = Annotated[Union[members], strawberry.union("U0")]  # noqa: UP007 - of a tuple
        self.strawberry = strawberry.Schema(
            query=strawberry.type(self._class("Query", (), 6, root=True)),
            mutation=strawberry.type(self._class("Mutation", (), 4, root=True)),
            subscription=strawberry.type(self._subscription()),
            types=types,
            config=StrawberryConfig(scalar_map={**SCALARS, self._names.Odd: _ODD}),
        )
        self.schema = self.strawberry._schema
        self.values = Values(self.schema, 0.0)

    def _leaf_types(self) -> None:
        names = self._names
        names.Kind = enum.Enum("Kind", {"PLAIN": "plain", "FANCY": "fancy"}, module=names.__name__)
        strawberry.enum(names.Kind)
        names.datetime, names.ID = datetime, strawberry.ID
        names.Odd = type("Odd", (), {})
        names.Filter = strawberry.input(
            type(
                "Filter",
                (),
                {
                    "__annotations__": {"text": "str | None", "least": "int", "kinds": "list[Kind] | None"},
                    "__module__": names.__name__,
                    "text": strawberry.UNSET,
                    "least": 3,
                    "kinds": None,
                },
            )
        )

    def _interface(self) -> None:
        self._names.I0 = strawberry.interface(self._class("I0", (), 2))

    def _type(self, name: str, number: int) -> type:
        implements = (self._names.I0,) if number == 0 or self._drawn.random() < 0.5 else ()
        cls = self._class(name, implements, self._drawn.randint(2, 5))
        # The union asks its members' own checks, so only types with none of their own may go without one.
        if number < len(self._objects) - 1 or self._drawn.random() < 0.5:
            record = type(f"{name}Kind", (), {})
            made: type = record_type(record, "A type.")(cls)
        else:
            made = strawberry.type(cls)
        setattr(self._names, name, made)
        return made

    def _class(self, name: str, bases: tuple[type, ...], count: int, *, root: bool = False) -> type:
        members: dict[str, Any] = {"__module__": self._names.__name__, "__annotations__": {}}
        for number in range(count):
            place = f"{name.lower()}_f{number}"
            members["__annotations__"][place] = self._annotation()
            way = self._drawn.choice(WAYS[3:] if root else WAYS)
            if way != "attribute":
                members[place] = self._resolved(name, place, way, root=root)
        return type(name, bases, members)

    def _annotation(self) -> str:
        inner = self._drawn.choice(LEAVES if self._drawn.random() < 0.45 else [*self._objects, *self._abstract])
        for _ in range(self._drawn.choice([0, 0, 0, 1, 1, 2])):
            inner = f"list[{inner}{self._drawn.choice(['', '', ' | None'])}]"
        return inner + self._drawn.choice(["", " | None", " | None"])

    def _resolved(self, owner: str, place: str, way: str, *, root: bool) -> Any:
        names = ["one", "two"][: self._drawn.choice([0, 0, 1, 2])]
        taken = [
            (name, eval(kind, vars(self._names)), inspect.Parameter.empty)
            for name in names
            for kind in [self._drawn.choice(ARGUMENTS)]
        ]
        taken = [(name, kind, None if "None" in str(kind) else default) for name, kind, default in taken]
        if root and way == "batched":
            way = "async"
        if way.startswith("strawberry"):
            return strawberry.field(resolver=self._of_strawberry(owner, place, taken, later="async" in way))
        resolver = self._of_ours(owner, place, way, root=root)
        positional = [inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_ONLY)]
        if not root:
            positional.append(inspect.Parameter("record", inspect.Parameter.POSITIONAL_ONLY))
        keywords = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
            for name, kind, default in taken
        ]
        resolver.__signature__ = inspect.Signature([*positional, *keywords])
        resolver.__annotations__ = {name: kind for name, kind, _ in taken}
        resolver.__name__ = place
        return field(resolver, "A field.", **dict.fromkeys(names, "An argument."))

    def answer(self, owner: str, place: str, seed: Any, given: dict[str, Any]) -> Any:
        """What a resolver answers: a function of who is asked, and of the values it was given."""
        type_ = self.schema.type_map[owner].fields[_camel(place)].type  # type: ignore[union-attr]
        told = sorted((name, _told(value)) for name, value in given.items())
        return self.values.of(type_, seed, place, told)

    def _of_ours(self, owner: str, place: str, way: str, *, root: bool) -> Callable[..., Any]:
        def voter_seed(record: tuple[Any, ...]) -> Any:
            return _seed(record[0]) if record else "root"

        if way == "sync":

            def sync(_: Any, /, *record: Any, **given: Any) -> Any:
                return self.answer(owner, place, voter_seed(record), given)

            return sync

        if way == "batched" and not root:

            async def many(_: Any, /, records: Any, **given: Any) -> list[Any]:
                await asyncio.sleep(0)
                return [self._caught(owner, place, _seed(record), given) for record in records]

            return batched(many)

        async def later(_: Any, /, *record: Any, **given: Any) -> Any:
            for _ in range(hash_of((voter_seed(record), place)) % 4):
                await asyncio.sleep(0)
            return self.answer(owner, place, voter_seed(record), given)

        return later

    def _caught(self, owner: str, place: str, seed: Any, given: dict[str, Any]) -> Any:
        try:
            return self.answer(owner, place, seed, given)
        except Exception as error:  # noqa: BLE001 - it is the answer
            return error

    def _of_strawberry(self, owner: str, place: str, taken: list[Any], *, later: bool) -> Any:
        def voter_seed(root: Any) -> Any:
            return "root" if root is None else _seed(root)

        def at_once(root: Any, info: Any, **given: Any) -> Any:  # noqa: ARG001 - Strawberry's signature
            return self.answer(owner, place, voter_seed(root), given)

        async def awaited(root: Any, info: Any, **given: Any) -> Any:  # noqa: ARG001
            await asyncio.sleep(0)
            return self.answer(owner, place, voter_seed(root), given)

        answer = awaited if later else at_once
        declare_signature(answer, place, [Argument(*argument, "An argument.") for argument in taken])
        return answer

    def _subscription(self) -> type:
        async def events(info: Any) -> Any:  # noqa: ARG001
            for number in range(3):
                yield self.values.of(self.schema.type_map["Subscription"].fields["events"].type, "event", number)  # type: ignore[union-attr]

        declare_signature(events, "events", [], root=False)
        members = {
            "__module__": self._names.__name__,
            "__annotations__": {"events": self._drawn.choice(["T0", "T0 | None", "list[T0 | None] | None", "I0"])},
            "events": strawberry.subscription(resolver=events),
        }
        return type("Subscription", (), members)


def _serialized(value: Any) -> Any:
    if value.endswith("3"):
        raise ValueError("no number may end with 3")
    return None if value.endswith("4") else {"odd": value}


_ODD = strawberry.scalar(name="Odd", serialize=_serialized, parse_value=lambda value: value)


def _seed(record: Any) -> Any:
    return record.seed if hasattr(record, "seed") else repr(record)


def _told(value: Any) -> str:
    if not isinstance(value, enum.Enum) and hasattr(value, "__strawberry_definition__") and hasattr(value, "__dict__"):
        return repr(sorted((name, _told(inner)) for name, inner in vars(value).items()))
    return repr(value)


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)
