"""Fields: an attribute of a record, or what a resolver answers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import strawberry
from graphql import GraphQLField
from strawberry.types import Info

from resolvers.loading.batched import is_batched
from resolvers.requests.context import Context
from schema.framework.arguments import Argument, Parameters

_COMPLEXITY = "complexity"
_COMPLEXITY_OF_EACH = "complexity_of_each"
_MOST_OBJECTS = "most_objects"
READ = 40
"""What a call to the table counts in the complexity: it takes as much of the processor as answering so many fields."""
AWAITED = 5
"""What a field counts that each object waits for, batched or kept in memory: waiting takes longer than a field does. A
batch may be of one object."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """How a field's value is obtained without Strawberry; an executor finds it on Strawberry's resolver."""

    resolver: Callable[..., Any]
    parameters: Parameters
    of_record: bool
    is_async: bool
    is_batched: bool
    """Whether it takes many records and answers for each, see `resolvers.loading.batched`."""

    @classmethod
    def of(cls, resolver: Callable[..., Any]) -> Resolution:
        positional = [p for p in inspect.signature(resolver).parameters.values() if p.kind is p.POSITIONAL_ONLY]
        return cls(
            resolver,
            Parameters.of(resolver),
            of_record=len(positional) > 1,
            is_async=inspect.iscoroutinefunction(resolver),
            is_batched=is_batched(resolver),
        )


@dataclass(frozen=True, slots=True)
class ResolutionByType:
    """How a field of an interface is obtained: by a function of the record, one for each object type."""

    of_type: Callable[[str], Callable[[Any], Any]]


def described(description: str) -> Any:
    """A field that shows the record's attribute of the same name."""
    return strawberry.field(description=description)


def objects(most: int, description: str) -> Any:
    """The same for a list of so many objects at most."""
    return strawberry.field(description=description, metadata={_MOST_OBJECTS: most})


def field(
    resolver: Callable[..., Any],
    description: str,
    /,
    *,
    complexity: int | None = None,
    complexity_of_each: int = 0,
    most_objects: int | None = None,
    **arguments: str,
) -> Any:
    """A field that a resolver answers; `arguments` describe the resolver's parameters.

    `complexity` is what it counts itself, 1 unless it is awaited for each object; `complexity_of_each` what each object
    of its page or list counts besides; `most_objects` how many a list has at most.
    """
    resolution = Resolution.of(resolver)

    def resolve(root: Any, info: Info, **given: Any) -> Any:
        ctx: Context = info.context
        values = resolution.parameters.parse(given, ctx)
        return resolver(ctx, root, **values) if resolution.of_record else resolver(ctx, **values)

    async def resolve_async(root: Any, info: Info, **given: Any) -> Any:
        return await resolve(root, info, **given)

    async def resolve_one(root: Any, info: Info, **given: Any) -> Any:
        return (await resolve((root,), info, **given))[0]

    chosen = resolve_one if resolution.is_batched else resolve_async if resolution.is_async else resolve
    declare_signature(chosen, resolver.__name__, resolution.parameters.arguments(arguments))
    if complexity is None:
        is_awaited = resolution.is_batched or (resolution.is_async and resolution.of_record)
        complexity = AWAITED if is_awaited else 1
    metadata = {_COMPLEXITY: complexity, _COMPLEXITY_OF_EACH: complexity_of_each}
    if most_objects is not None:
        metadata[_MOST_OBJECTS] = most_objects
    return strawberry.field(resolver=with_resolution(chosen, resolution), description=description, metadata=metadata)


def counting(complexity: int) -> dict[str, int]:
    """The metadata of a field that counts so much itself."""
    return {_COMPLEXITY: complexity}


def own_complexity(definition: GraphQLField) -> int:
    """What a field counts without what is selected inside it."""
    return _declared(definition, _COMPLEXITY, 1)


def complexity_of_each(definition: GraphQLField) -> int:
    """What each object of a field counts without what is selected of it."""
    return _declared(definition, _COMPLEXITY_OF_EACH, 0)


def most_objects(definition: GraphQLField, default: int) -> int:
    """How many objects a field's list has at most, where it says so."""
    return _declared(definition, _MOST_OBJECTS, default)


def _declared(definition: GraphQLField, name: str, default: int) -> int:
    declared = definition.extensions.get("strawberry-definition")
    return default if declared is None else int(declared.metadata.get(name, default))


def with_resolution(function: Callable[..., Any], resolution: Resolution | ResolutionByType) -> Callable[..., Any]:
    """The function that Strawberry calls, with what an executor may do instead."""
    function.resolution = resolution  # type: ignore[attr-defined]
    return function


def declare_signature(
    function: Callable[..., Any], name: str, arguments: Iterable[Argument], *, root: bool = True
) -> None:
    """Give a function of `**given` the signature from which Strawberry reads its arguments."""
    by_position, by_name = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    reserved = [inspect.Parameter("root", by_position)] if root else []
    reserved.append(inspect.Parameter("info", by_position, annotation=Info))
    named = [
        inspect.Parameter(argument.name, by_name, annotation=argument.annotated, default=argument.default)
        for argument in arguments
    ]
    function.__name__ = name
    function.__signature__ = inspect.Signature([*reserved, *named])  # type: ignore[attr-defined]
    function.__annotations__ = {"info": Info, **{parameter.name: parameter.annotation for parameter in named}}
