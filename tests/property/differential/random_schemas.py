"""Random schemas, made as the real one is: types of Strawberry, `record_type`, `field`, resolvers of every kind."""

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
from graphql import GraphQLInterfaceType, GraphQLObjectType
from strawberry.schema.config import StrawberryConfig

from resolvers.loading import batched
from schema.framework.arguments import Argument
from schema.framework.declarations import SCALARS, declare_signature, field, record_type
from tests.property.differential.random_values import RandomValues, hash_of

LEAVES = ["str", "int", "float", "bool", "ID", "Kind", "datetime", "Odd"]
ARGUMENTS = ["int", "str | None", "bool", "Kind", "list[int] | None", "Filter", "Filter | None", "int | None"]
RESOLVER_KINDS = ["attribute", "attribute", "attribute", "sync", "async", "batched", "strawberry", "strawberry async"]


class RandomSchema:
    """One random schema, and the values of its fields."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._module: Any = ModuleType(f"random_schema_{seed}")
        sys.modules[self._module.__name__] = self._module
        self.values: RandomValues
        self._leaf_types()
        count = self._rng.randint(2, 5)
        self._object_types = [f"T{number}" for number in range(count)]
        self._abstract_types = ["I0", "U0"]
        self._interface()
        types = [self._type(name, number) for number, name in enumerate(self._object_types)]
        self._union(tuple(types[: max(1, count - 1)]))
        self.strawberry = strawberry.Schema(
            query=strawberry.type(self._class("Query", (), 6, root=True)),
            mutation=strawberry.type(self._class("Mutation", (), 4, root=True)),
            subscription=strawberry.type(self._subscription()),
            types=types,
            config=StrawberryConfig(scalar_map={**SCALARS, self._module.Odd: _ODD}),
        )
        self.schema = self.strawberry._schema
        self.values = RandomValues(self.schema, 0.0)

    def _leaf_types(self) -> None:
        module = self._module
        new_enum: Any = enum.Enum  # called with members, it makes a class
        module.Kind = strawberry.enum(new_enum("Kind", {"PLAIN": "plain", "FANCY": "fancy"}, module=module.__name__))
        module.datetime, module.ID = datetime, strawberry.ID
        module.Odd = type("Odd", (), {})
        module.Filter = strawberry.input(
            type(
                "Filter",
                (),
                {
                    "__annotations__": {"text": "str | None", "least": "int", "kinds": "list[Kind] | None"},
                    "__module__": module.__name__,
                    "text": strawberry.UNSET,
                    "least": 3,
                    "kinds": None,
                },
            )
        )

    def _interface(self) -> None:
        self._module.I0 = strawberry.interface(self._class("I0", (), 2))

    def _union(self, members: tuple[type, ...]) -> None:
        self._module.U0 = Annotated[Union[members], strawberry.union("U0")]  # noqa: UP007 - of a tuple

    def _type(self, name: str, number: int) -> type:
        implements = (self._module.I0,) if number == 0 or self._rng.random() < 0.5 else ()
        cls = self._class(name, implements, self._rng.randint(2, 5))
        # The union asks its members' own checks, so only types with none of their own may go without one.
        if number < len(self._object_types) - 1 or self._rng.random() < 0.5:
            record = type(f"{name}Kind", (), {})
            made: type = record_type(record, "A type.")(cls)
        else:
            made = strawberry.type(cls)
        setattr(self._module, name, made)
        return made

    def _class(self, name: str, bases: tuple[type, ...], count: int, *, root: bool = False) -> type:
        members: dict[str, Any] = {"__module__": self._module.__name__, "__annotations__": {}}
        for number in range(count):
            field_name = f"{name.lower()}_f{number}"
            members["__annotations__"][field_name] = self._annotation()
            kind = self._rng.choice(RESOLVER_KINDS[3:] if root else RESOLVER_KINDS)
            if kind != "attribute":
                members[field_name] = self._resolver_field(name, field_name, kind, root=root)
        return type(name, bases, members)

    def _annotation(self) -> str:
        inner = self._rng.choice(LEAVES if self._rng.random() < 0.45 else [*self._object_types, *self._abstract_types])
        for _ in range(self._rng.choice([0, 0, 0, 1, 1, 2])):
            inner = f"list[{inner}{self._rng.choice(['', '', ' | None'])}]"
        return inner + self._rng.choice(["", " | None", " | None"])

    def _resolver_field(self, owner: str, field_name: str, kind: str, *, root: bool) -> Any:
        names = ["one", "two"][: self._rng.choice([0, 0, 1, 2])]
        annotations = [(name, eval(self._rng.choice(ARGUMENTS), vars(self._module))) for name in names]
        parameters = [
            (name, annotation, None if "None" in str(annotation) else inspect.Parameter.empty)
            for name, annotation in annotations
        ]
        if root and kind == "batched":
            kind = "async"
        if kind.startswith("strawberry"):
            return strawberry.field(
                resolver=self._strawberry_resolver(owner, field_name, parameters, is_async="async" in kind)
            )
        resolver: Any = self._direct_resolver(owner, field_name, kind, root=root)
        positional = [inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_ONLY)]
        if not root:
            positional.append(inspect.Parameter("record", inspect.Parameter.POSITIONAL_ONLY))
        keywords = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
            for name, annotation, default in parameters
        ]
        resolver.__signature__ = inspect.Signature([*positional, *keywords])
        resolver.__annotations__ = dict(annotations)
        resolver.__name__ = field_name
        described: dict[str, Any] = dict.fromkeys(names, "An argument.")
        return field(resolver, "A field.", **described)

    def _field_type(self, owner: str, field_name: str) -> Any:
        type_ = self.schema.type_map[owner]
        assert isinstance(type_, GraphQLObjectType | GraphQLInterfaceType)
        return type_.fields[field_name].type

    def _answer(self, owner: str, field_name: str, seed: Any, given: dict[str, Any]) -> Any:
        """What a resolver answers: a function of its record, its field and its arguments."""
        type_ = self._field_type(owner, _camel(field_name))
        arguments = sorted((name, _text(value)) for name, value in given.items())
        return self.values.draw(type_, seed, field_name, arguments)

    def _direct_resolver(self, owner: str, field_name: str, kind: str, *, root: bool) -> Callable[..., Any]:
        def seed_of(record: tuple[Any, ...]) -> Any:
            return _seed(record[0]) if record else "root"

        if kind == "sync":

            def sync(_: Any, /, *record: Any, **given: Any) -> Any:
                return self._answer(owner, field_name, seed_of(record), given)

            return sync

        if kind == "batched" and not root:

            async def batch(_: Any, /, records: Any, **given: Any) -> list[Any]:
                await asyncio.sleep(0)
                return [self._answer_or_error(owner, field_name, _seed(record), given) for record in records]

            return batched(batch)

        async def async_(_: Any, /, *record: Any, **given: Any) -> Any:
            for _ in range(hash_of((seed_of(record), field_name)) % 4):
                await asyncio.sleep(0)
            return self._answer(owner, field_name, seed_of(record), given)

        return async_

    def _answer_or_error(self, owner: str, field_name: str, seed: Any, given: dict[str, Any]) -> Any:
        try:
            return self._answer(owner, field_name, seed, given)
        except Exception as error:  # noqa: BLE001 - it is the answer
            return error

    def _strawberry_resolver(
        self, owner: str, field_name: str, parameters: list[tuple[str, Any, Any]], *, is_async: bool
    ) -> Any:
        def seed_of(root: Any) -> Any:
            return "root" if root is None else _seed(root)

        def resolve(root: Any, info: Any, **given: Any) -> Any:  # noqa: ARG001 - Strawberry's signature
            return self._answer(owner, field_name, seed_of(root), given)

        async def resolve_async(root: Any, info: Any, **given: Any) -> Any:  # noqa: ARG001
            await asyncio.sleep(0)
            return self._answer(owner, field_name, seed_of(root), given)

        resolver = resolve_async if is_async else resolve
        declare_signature(resolver, field_name, [Argument(*parameter, "An argument.") for parameter in parameters])
        return resolver

    def _subscription(self) -> type:
        async def events(info: Any) -> Any:  # noqa: ARG001
            for number in range(3):
                yield self.values.draw(self._field_type("Subscription", "events"), "event", number)

        declare_signature(events, "events", [], root=False)
        members = {
            "__module__": self._module.__name__,
            "__annotations__": {"events": self._rng.choice(["T0", "T0 | None", "list[T0 | None] | None", "I0"])},
            "events": strawberry.subscription(resolver=events),
        }
        return type("Subscription", (), members)


def _serialize(value: Any) -> Any:
    if value.endswith("3"):
        raise ValueError("no number may end with 3")
    return None if value.endswith("4") else {"odd": value}


_ODD = strawberry.scalar(name="Odd", serialize=_serialize, parse_value=lambda value: value)


def _seed(record: Any) -> Any:
    return record.seed if hasattr(record, "seed") else repr(record)


def _text(value: Any) -> str:
    if not isinstance(value, enum.Enum) and hasattr(value, "__strawberry_definition__") and hasattr(value, "__dict__"):
        return repr(sorted((name, _text(inner)) for name, inner in vars(value).items()))
    return repr(value)


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)
