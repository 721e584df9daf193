"""How a record becomes a GraphQL type, and a resolver a field.

A type is a plain Strawberry type whose values are records: `@shape(Record)` says which. Plain fields show attributes
of the record; `field(resolver, ...)` asks a resolver. `mutation(resolver, ...)` answers with the declared union: the
payload, or `Refused` for every refusal. There is nothing else: no bodies in this floor.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Generic, TypeVar, Union, cast

import orjson
import strawberry
from strawberry.types import Info

from datastore.dynamo import BadKey, DynamoError, Rejected, key_text
from datastore.receipts import LONGEST_KEY, AlreadyAnswered, Once
from datastore.refusals import InvalidInput, Refusal, Unavailable
from resolvers.context import Context
from resolvers.loading.batched import is_together
from resolvers.node_ids import node_id
from resolvers.people import Guestbook
from schema.arguments import Parameters, camel

T = TypeVar("T")
E = TypeVar("E")
N = TypeVar("N")


# ── types ──


def _node_id(root: Any, info: Info) -> strawberry.ID:
    return strawberry.ID(node_id(info._raw_info.parent_type.name, root.node_key))  # noqa: SLF001 - the object type, which Info hides


def _ids_of(name: str) -> Callable[[Any], str]:
    """For executors: the ids of one type, from the record alone."""
    return lambda record: node_id(name, record.node_key)


_node_id.of_type = _ids_of  # type: ignore[attr-defined]


@strawberry.interface(description="An object with an id that can be asked for again with `node`.")
class Node:
    id: strawberry.ID = strawberry.field(description="Opaque and lasting. Use it as it is given.", resolver=_node_id)


def shape(record: type, description: str, *, name: str | None = None) -> Callable[[type[T]], type[T]]:
    """A GraphQL object type whose values are records of this kind."""

    def made(cls: type[T]) -> type[T]:
        kinds = (cls, record)

        def is_type_of(_: type, value: Any, __: Any) -> bool:
            return isinstance(value, kinds)

        is_type_of.kinds = kinds  # type: ignore[attr-defined]  # for executors
        cls.is_type_of = classmethod(is_type_of)  # type: ignore[attr-defined]
        return strawberry.type(cls, name=name, description=description)

    return made


def enum(kind: type[Enum], description: str, *, name: str | None = None, **values: str) -> None:
    """A GraphQL enum from an enum of the datastore, each of its values described."""
    strawberry.enum(kind, name=name, description=description)
    definition = kind.__strawberry_definition__  # type: ignore[attr-defined]
    for value in definition.values:
        value.description = values[value.name]


def described(text: str) -> Any:
    """A field that shows the record's attribute of the same name."""
    return strawberry.field(description=text)


def unset(text: str) -> Any:
    """A field of an input that may be left out."""
    return strawberry.field(description=text, default=strawberry.UNSET)


IDEMPOTENCY_KEY = (
    "Choose one per request. A repeat with the same key and input answers as the first did and changes nothing."
)


@strawberry.type(description="Where a page stands in its list.")
class PageInfo:
    has_next_page: bool = described(
        "Whether something follows this page. Paging backwards: whether `before` was given."
    )
    has_previous_page: bool = described("Paging forwards: whether `after` was given. Paging backwards: exact.")
    start_cursor: str | None = described("The cursor of the page's first edge.")
    end_cursor: str | None = described("The cursor of the page's last edge.")


@strawberry.type
class Edge(Generic[N]):
    cursor: str = described("This edge's position, for `after` or `before`. It outlives the object itself.")
    node: N = described("What stands here.")


@strawberry.type
class Connection(Generic[E, N]):
    edges: list[E] = described("The page's objects with their cursors.")
    nodes: list[N] = described("The page's objects alone.")
    page_info: PageInfo = described("Whether more follows, and the cursors to go on from.")


@strawberry.type
class CountedConnection(Connection[E, N], Generic[E, N]):
    total_count: int = described("How many there are in the whole list.")


class RefusalCode(Enum):
    """Why a mutation was refused."""

    INVALID_INPUT = "INVALID_INPUT"
    NOT_FOUND = "NOT_FOUND"
    NOT_SIGNED_IN = "NOT_SIGNED_IN"
    NOT_ALLOWED = "NOT_ALLOWED"
    CONFLICT = "CONFLICT"
    LOCKED = "LOCKED"
    TOKEN_UNKNOWN = "TOKEN_UNKNOWN"  # noqa: S105 - a code, not a secret
    TOKEN_EXPIRED = "TOKEN_EXPIRED"  # noqa: S105
    TOKEN_SPENT = "TOKEN_SPENT"  # noqa: S105
    EXHAUSTED = "EXHAUSTED"
    IDEMPOTENCY_MISMATCH = "IDEMPOTENCY_MISMATCH"
    RATE_LIMITED = "RATE_LIMITED"
    UNAVAILABLE = "UNAVAILABLE"


enum(
    RefusalCode,
    "Why a mutation was refused.",
    INVALID_INPUT="A value cannot be accepted; `path` says which.",
    NOT_FOUND="What the input names does not exist, or not for the viewer.",
    NOT_SIGNED_IN="This needs a signed-in member.",
    NOT_ALLOWED="The viewer's roles, or another one's ownership, forbid it.",
    CONFLICT="The present state does not allow it; read again and decide anew.",
    LOCKED="The time for this is over.",
    TOKEN_UNKNOWN="No such token was ever given to this visitor, or it was altered.",  # noqa: S106
    TOKEN_EXPIRED="The token is too old.",  # noqa: S106
    TOKEN_SPENT="The token was used before, for something else.",  # noqa: S106
    EXHAUSTED="There is nothing left to draw from.",
    IDEMPOTENCY_MISMATCH="The idempotency key was used before with another input.",
    RATE_LIMITED="Too many of these in a short time.",
    UNAVAILABLE="The table did not answer in time; nothing is lost, try again.",
)


@strawberry.type(description="Why a mutation was not carried out. Nothing was changed.")
class Refused:
    code: RefusalCode = described("The reason, for programs.")
    message: str = described("The reason, for people: what is wrong and what to do.")
    path: list[str] | None = described("The place in the input that is at fault.")
    retry_after_seconds: float | None = described("When a repeat may succeed.")


# ── fields ──


@dataclass(frozen=True, slots=True)
class Resolution:
    """What stands behind a field: the resolver itself and how its arguments are read. For executors."""

    resolver: Callable[..., Any]
    parameters: Parameters
    of_record: bool
    is_async: bool
    is_together: bool = False
    """It takes many records and answers for each, see `resolvers.batches`."""


def field(resolver: Callable[..., Any], description: str, /, **arguments: str) -> Any:
    """A field that a resolver answers. `arguments` describe the resolver's parameters."""
    positional = [p for p in inspect.signature(resolver).parameters.values() if p.kind is p.POSITIONAL_ONLY]
    of_record = len(positional) > 1
    parameters = Parameters.of(resolver)
    is_async = inspect.iscoroutinefunction(resolver)
    many = is_together(resolver)

    def call(root: Any, info: Info, **given: Any) -> Any:
        ctx: Context = info.context
        values = parameters.read(given, ctx.services.seal)
        return resolver(ctx, root, **values) if of_record else resolver(ctx, **values)

    async def awaited(root: Any, info: Info, **given: Any) -> Any:
        return (await call((root,), info, **given))[0] if many else await call(root, info, **given)

    answer: Any = awaited if is_async else call
    _sign(answer, resolver.__name__, list(parameters.declared(arguments)))
    answer.resolution = Resolution(resolver, parameters, of_record, is_async, many)
    return strawberry.field(resolver=answer, description=description)


def subscription(resolver: Callable[..., Any], description: str, /, **arguments: str) -> Any:
    """A subscription field: the resolver is an async generator of records."""
    parameters = Parameters.of(resolver)

    async def events(info: Info, **given: Any) -> Any:
        ctx: Context = info.context
        async with aclosing(resolver(ctx, **parameters.read(given, ctx.services.seal))) as records:
            async for record in records:
                yield record

    _sign(events, resolver.__name__, list(parameters.declared(arguments)), root=False)
    return strawberry.subscription(resolver=events, description=description)


def _sign(answer: Any, name: str, arguments: list[tuple[str, Any, Any]], *, root: bool = True) -> None:
    """Gives a function the signature that Strawberry reads arguments from."""
    reserved = [inspect.Parameter("root", inspect.Parameter.POSITIONAL_OR_KEYWORD)] if root else []
    reserved.append(inspect.Parameter("info", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Info))
    given = [
        inspect.Parameter(argument, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for argument, kind, default in arguments
    ]
    answer.__name__ = name
    answer.__signature__ = inspect.Signature([*reserved, *given])
    answer.__annotations__ = {"info": Info, **{argument: kind for argument, kind, _ in arguments}}


# ── mutations ──


def mutation(resolver: Callable[..., Awaitable[Any]], accepts: type, payload: type, description: str) -> Any:
    """A mutation: its input's fields are the resolver's parameters, its answer the payload or `Refused`.

    The payload is the record itself where its type shows one, else its fields are the answer's attributes; the
    single field of a payload is the answer as a whole.
    """
    parameters = Parameters.of(resolver)
    answer_type = _answer_type(resolver)
    pay = _payment(payload)
    expected = set(parameters.plain) | {"idempotency_key"}
    if not set(parameters.plain) <= set(accepts.__annotations__) <= expected:
        message = f"{accepts.__name__} and {resolver.__name__} differ: {set(accepts.__annotations__) ^ expected}"
        raise TypeError(message)

    async def answer(info: Info, input: Any) -> Any:  # noqa: A002 - the contract's name
        ctx: Context = info.context
        try:
            given = dict(vars(input))
            key = given.pop("idempotency_key", None) or None
            values = parameters.read(given, ctx.services.seal, ("input",))
            ctx.once = _claim(ctx, key, resolver.__name__, given)
            return pay(await _carried_out(ctx, resolver, values, answer_type))
        except Refusal as refused:
            return _refused(refused)
        except BadKey as bad:
            return _refused(InvalidInput(str(bad), path=("input",)))
        except Rejected:
            raise  # what the engine does not even try is a fault of this program; no repeat of it will help
        except DynamoError:
            return _refused(Unavailable(retry_after=1.0))

    described_input = Annotated[accepts, strawberry.argument(description="What to do, and with what.")]
    answer.__annotations__ = {"info": Info, "input": described_input}
    answer.__name__ = resolver.__name__
    return strawberry.mutation(resolver=answer, description=description)


async def _carried_out(
    ctx: Context, resolver: Callable[..., Awaitable[Any]], values: dict[str, Any], answer_type: type
) -> Any:
    stored = await ctx.once.answer(ctx.table, answer_type)
    if stored is not None:
        return stored
    await ctx.services.get(Guestbook).sign(ctx)
    try:
        return await resolver(ctx, **values)
    except AlreadyAnswered:
        stored = await ctx.once.answer(ctx.table, answer_type)
        if stored is None:
            raise Unavailable(retry_after=1.0) from None
        return stored


def _claim(ctx: Context, key: str | None, name: str, given: dict[str, Any]) -> Once:
    if key is not None:
        try:
            key_text(key)
        except BadKey:
            key = ""
        if not 1 <= len(key) <= LONGEST_KEY:
            message = f"An idempotencyKey has 1 to {LONGEST_KEY} characters, none of them '#' or a control character."
            raise InvalidInput(message, path=("input", "idempotencyKey"))
    asked = orjson.dumps([name, given], default=_plain, option=orjson.OPT_SORT_KEYS) if key else b""
    return Once(ctx.viewer.id, key, hashlib.sha256(asked).hexdigest(), ctx.now())


def _plain(value: Any) -> Any:
    if value is strawberry.UNSET:
        return "\x00unset"  # no text that passed the checks is equal to it
    return vars(value) if hasattr(value, "__dict__") else str(value)


def _answer_type(resolver: Callable[..., Any]) -> type:
    declared = inspect.signature(resolver).return_annotation
    if isinstance(declared, str):
        declared = eval(declared, vars(sys.modules[resolver.__module__]))  # noqa: S307 - an annotation of our own code
    return cast("type", declared)


def _payment(payload: type) -> Callable[[Any], Any]:
    if hasattr(payload, "is_type_of"):
        return lambda record: record
    names = list(payload.__annotations__)
    if len(names) == 1:
        return lambda record: payload(**{names[0]: record})
    return lambda answer: payload(**{name: getattr(answer, name) for name in names})


def _refused(refusal: Refusal) -> Refused:
    code = RefusalCode.INVALID_INPUT if refusal.code == "INVALID_CURSOR" else RefusalCode[refusal.code]
    return Refused(
        code=code,
        message=refusal.message,
        path=list(refusal.path) or None,
        retry_after_seconds=refusal.retry_after,
    )


def answers(name: str, payload: type, description: str) -> Any:
    """The union a mutation answers with."""
    return Annotated[Union[payload, Refused], strawberry.union(name, description=description)]  # noqa: UP007


__all__ = [
    "IDEMPOTENCY_KEY",
    "Connection",
    "CountedConnection",
    "Edge",
    "Node",
    "PageInfo",
    "Refused",
    "Resolution",
    "answers",
    "camel",
    "described",
    "enum",
    "field",
    "mutation",
    "shape",
    "subscription",
    "unset",
]
