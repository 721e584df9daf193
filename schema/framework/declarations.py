"""What the parts declare types, fields, connections, subscriptions and mutations with; the codes of errors.

A field is an attribute of a record, or what a resolver answers; an argument of it is made in `arguments`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from typing import Annotated, Any, Final, TypeVar, Union

import strawberry
from graphql import GraphQLError, GraphQLField, StringValueNode, ValueNode
from strawberry.types import Info
from strawberry.types.nodes import SelectedField
from strawberry.types.scalar import scalar

from datastore.dynamo import iso
from datastore.refusals import Refusal
from resolvers.loading import is_batched
from resolvers.requests.context import RECENT, Context
from resolvers.values.node_ids import node_id
from resolvers.whole.mutations import FOR_MEMBERS, Terms, check_terms, run_mutation
from schema.framework.arguments import Argument, Input, Parameters, make_input

# ── fields ──

COMPLEXITY = "complexity"
"""What a field counts without what is selected inside it."""
COMPLEXITY_OF_EACH = "complexity_of_each"
"""What each object of a field counts without what is selected of it."""
MOST_OBJECTS = "most_objects"
"""How many objects a field's list has at most."""
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
    """Whether it takes many records and answers for each, see `resolvers.loading`."""

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


def described(description: str, *, most_objects: int | None = None) -> Any:
    """A field that shows the record's attribute of the same name; `most_objects` is how many a list has at most."""
    return strawberry.field(description=description, metadata={MOST_OBJECTS: most_objects} if most_objects else {})


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
    metadata = {COMPLEXITY: complexity, COMPLEXITY_OF_EACH: complexity_of_each}
    if most_objects is not None:
        metadata[MOST_OBJECTS] = most_objects
    return strawberry.field(resolver=with_resolution(chosen, resolution), description=description, metadata=metadata)


def declared_of(definition: GraphQLField, name: str, default: int) -> int:
    """What a field declares under one of these names."""
    declared = definition.extensions.get("strawberry-definition")
    return default if declared is None else int(declared.metadata.get(name, default))


def with_resolution(function: Callable[..., Any], resolution: Resolution | ResolutionByType) -> Callable[..., Any]:
    """The function that Strawberry calls, with what an executor may do instead."""
    function.resolution = resolution  # type: ignore[attr-defined]  # a note on the function
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
    function.__signature__ = inspect.Signature([*reserved, *named])  # type: ignore[attr-defined]  # inspect reads it
    function.__annotations__ = {"info": Info, **{parameter.name: parameter.annotation for parameter in named}}


# ── scalars ──

T = TypeVar("T")

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


# The parsers raise GraphQLError alone: any other exception would be answered as a fault of this program.


def _parse_moment(value: Any) -> datetime:
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        try:
            parsed = datetime.fromisoformat(value.upper()).astimezone(UTC)
        except (ValueError, OverflowError):  # the 13th month; a moment of the year 0 or 10,000 in UTC
            pass
        else:
            return parsed.replace(microsecond=parsed.microsecond // 1000 * 1000)
    raise GraphQLError("A DateTime is a moment as RFC 3339 writes it, with its zone: 2026-11-20T20:00:00Z.")


def _parse_day(value: Any) -> date:
    if isinstance(value, str) and _DAY.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise GraphQLError("A Date is a day of the calendar, written as yyyy-mm-dd.")


def _literals(parse: Callable[[Any], T]) -> Callable[[ValueNode, Mapping[str, Any] | None], T]:
    """The parser of a scalar's literals. Its errors name their place in the document."""

    def parse_literal(node: ValueNode, _: Mapping[str, Any] | None = None) -> T:
        try:
            return parse(node.value if isinstance(node, StringValueNode) else None)
        except GraphQLError as error:
            raise GraphQLError(error.message, node) from None

    return parse_literal


SCALARS: dict[object, Any] = {
    datetime: scalar(
        name="DateTime",
        description="A time in RFC 3339 format, in UTC, to the millisecond: 2026-11-20T20:00:00.000Z.",
        serialize=iso,
        parse_value=_parse_moment,
        parse_literal=_literals(_parse_moment),
        specified_by_url="https://www.rfc-editor.org/rfc/rfc3339",
    ),
    date: scalar(
        name="Date",
        description="A calendar day: yyyy-mm-dd.",
        serialize=date.isoformat,
        parse_value=_parse_day,
        parse_literal=_literals(_parse_day),
    ),
}


# ── types ──


@dataclass(frozen=True, slots=True)
class IsInstance:
    """The check whether a value is of an object type. An executor may read the classes and check them itself."""

    kinds: tuple[type, ...]

    def __call__(self, value: object, _: object) -> bool:
        return isinstance(value, self.kinds)


def record_type(record: type, description: str) -> Callable[[type[T]], type[T]]:
    """An object type whose values are records of this class."""

    def decorate(cls: type[T]) -> type[T]:
        cls.is_type_of = IsInstance((cls, record))  # type: ignore[attr-defined]  # Strawberry reads it
        return strawberry.type(cls, description=description)

    return decorate


def object_type(name: str, description: str, /, **fields: tuple[Any, Any]) -> Any:
    """An object type without a record: of each field the type, and its description or the field itself."""
    members = {field: described(of) if isinstance(of, str) else of for field, (_, of) in fields.items()}
    annotations = {field: annotation for field, (annotation, _) in fields.items()}
    return strawberry.type(type(name, (), {**members, "__annotations__": annotations}), description=description)


def enum(members: type[Enum], description: str, *, name: str | None = None, **values: str) -> None:
    """Show an enum of the resolvers or the datastore in the schema. `values` describe its members."""
    strawberry.enum(members, name=name, description=description)
    definition = members.__strawberry_definition__  # type: ignore[attr-defined]  # strawberry.enum has set it
    for value in definition.values:
        value.description = values[value.name]


# ── nodes ──


def _resolve_id(root: Any, info: Info) -> strawberry.ID:
    object_type = info._raw_info.parent_type.name  # noqa: SLF001 - Info does not show the object type
    return strawberry.ID(node_id(object_type, root.node_key))


def _ids_of(object_type: str) -> Callable[[Any], str]:
    return lambda record: node_id(object_type, record.node_key)


@strawberry.interface(description="An object with an id, by which `node` finds it.")
class Node:
    id: strawberry.ID = strawberry.field(
        description="Opaque and permanent. Use it exactly as returned.",
        resolver=with_resolution(_resolve_id, ResolutionByType(_ids_of)),
    )


# ── connections ──


@strawberry.type(description="A page's position in its list.")
class PageInfo:
    has_next_page: bool = described(
        "Whether items follow this page. When paging backwards: whether `before` was given."
    )
    has_previous_page: bool = described(
        "Whether items precede this page. When paging forwards: whether `after` was given."
    )
    start_cursor: str | None = described("The cursor of the page's first edge.")
    end_cursor: str | None = described("The cursor of the page's last edge.")


def connection(
    node: type,
    description: str,
    *,
    edge: str,
    name: str | None = None,
    **more: tuple[Any, Any],
) -> Any:
    """The connection type of a list; `edge` describes its edges.

    Both types are named after the type of the nodes unless a `name` is given. `more` are fields of the page's own, as
    `object_type` takes them: `total_count` if the list is counted.
    """
    name = name or node.__name__
    edge_type = object_type(
        f"{name}Edge",
        edge,
        cursor=(str, "This edge's position, for `after` or `before`. It stays valid if the object is deleted."),
        node=(node, "The object itself."),
    )
    return object_type(
        f"{name}Connection",
        description,
        edges=(list[edge_type], "The page's objects with their cursors."),
        nodes=(list[node], "The page's objects without cursors."),
        page_info=(PageInfo, "Whether there are more items, and the cursors for the next page."),
        **more,
    )


COUNTED: Final = (int, "The number of items in the whole list.")
"""The total count of a list whose pages hold it."""


# ── subscriptions ──


def subscription(resolver: Callable[..., Any], description: str, /, **arguments: str) -> Any:
    """A subscription field: the resolver is an async generator of records."""
    parameters = Parameters.of(resolver)

    async def subscribe(info: Info, **given: Any) -> AsyncGenerator[Any]:
        ctx: Context = info.context
        async with aclosing(resolver(ctx, **parameters.parse(given, ctx))) as records:
            async for record in records:
                yield record

    declare_signature(subscribe, resolver.__name__, parameters.arguments(arguments), root=False)
    return strawberry.subscription(resolver=subscribe, description=description)


class Schema(strawberry.Schema):
    """Strawberry's schema with a description, whose subscriptions may also take an argument called `event`.

    Strawberry prints no description. It resolves each record of a stream with `lambda event, *_, **arguments: event`,
    which fails there.
    """

    def __init__(self, *, description: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._schema.description = description
        streams = self._schema.subscription_type
        for stream in streams.fields.values() if streams else ():
            stream.resolve = _record

    def as_str(self) -> str:
        roots = "schema {\n  query: Query\n  mutation: Mutation\n  subscription: Subscription\n}"
        return f'"""\n{self._schema.description}\n"""\n{roots}\n\n{super().as_str()}'


def _record(record: object, _: object, /, **__: object) -> object:
    return record


# ── refusals ──

_LATELY: Final = f"the last {RECENT // timedelta(minutes=1)} minutes"


def _code(name: str, description: str) -> Any:
    return strawberry.enum_value(name, description=description)


@strawberry.enum(description="Why a mutation was refused.")
class RefusalCode(Enum):
    INVALID_INPUT = _code("INVALID_INPUT", "A value is not acceptable; `path` shows which.")
    NOT_FOUND = _code("NOT_FOUND", "An object in the input does not exist, or the viewer may not see it.")
    NOT_SIGNED_IN = _code(
        "NOT_SIGNED_IN", f"This needs a signed-in member, or, with a session, one who signed in within {_LATELY}."
    )
    NOT_ALLOWED = _code("NOT_ALLOWED", "The viewer lacks the role, or the object belongs to another member.")
    CONFLICT = _code("CONFLICT", "The current state does not allow it. Read it again before you decide.")
    LOCKED = _code("LOCKED", "It is closed: its deadline has passed, it was cancelled, or it has not opened yet.")
    TOKEN_UNKNOWN = _code(
        "TOKEN_UNKNOWN", "The token was not issued to this visitor, was altered, or is not the code that was sent."
    )
    TOKEN_EXPIRED = _code("TOKEN_EXPIRED", "The token is too old, or the viewer has taken over a visitor's walk since.")
    TOKEN_SPENT = _code("TOKEN_SPENT", "The token was already used, or a code was guessed wrongly five times.")
    EXHAUSTED = _code("EXHAUSTED", "There is nothing left to draw.")
    IDEMPOTENCY_MISMATCH = _code("IDEMPOTENCY_MISMATCH", "The idempotency key was used before with another input.")
    CHALLENGE_NEEDED = _code("CHALLENGE_NEEDED", "A proof of work is needed: solve a `challenge` first.")
    RATE_LIMITED = _code("RATE_LIMITED", "Too many of these in a short time.")
    UNAVAILABLE = _code(
        "UNAVAILABLE", "The table, or what checks tokens, did not answer in time; nothing is lost, try again."
    )


@strawberry.type(
    description="Why a mutation was not carried out. Nothing was changed; only with UNAVAILABLE it may have been "
    "carried out, wholly or in part, and with CONFLICT a job that failed may have done a part."
)
class Refused:
    code: RefusalCode = described("The reason, for programs.")
    message: str = described("The reason, for people: what is wrong and what to do.")
    path: list[str] | None = described(
        "The path of the input field at fault; `viewer`, `suspension` if the viewer is suspended."
    )
    retry_after_seconds: float | None = described("Seconds after which a retry may succeed.")
    existing: strawberry.ID | None = described("The id of the object that is in the way.")


def refused(refusal: Refusal) -> Refused:
    code = RefusalCode.INVALID_INPUT if refusal.code == "INVALID_CURSOR" else RefusalCode[refusal.code]
    return Refused(
        code=code,
        message=refusal.message,
        path=list(refusal.path) or None,
        retry_after_seconds=refusal.retry_after,
        existing=None if refusal.existing is None else strawberry.ID(refusal.existing),
    )


# ── mutations ──

_IDEMPOTENCY_KEY = Argument(
    "idempotency_key",
    str | None,
    strawberry.UNSET,
    "Choose one per request, of at most 128 characters, none of them `#`. A repeat with the same key and input within "
    "7 days returns the first result and changes nothing. An empty key counts as none.",
)


def mutation(  # noqa: PLR0913 - most have defaults
    resolver: Callable[..., Awaitable[Any]],
    description: str,
    payload: type,
    /,
    *,
    input_description: str,
    result_description: str = "",
    show: Callable[[Context, Any], Awaitable[Any]] | None = None,
    takes_key: bool = True,
    terms: Terms = FOR_MEMBERS,
    complexity: int = 1,
    result: Any = None,
    **descriptions: str,
) -> Any:
    """A mutation that a resolver carries out.

    The fields of its input are the resolver's parameters and, unless repeats are harmless anyway, an idempotency key.
    Its result is the payload or `Refused`: a union of its own, or the `result` that several share. `terms` say whether
    suspended members and guests are refused; if they ask for a recent sign-in, the description says so. `complexity` is
    what it counts itself. The input and the union are named after the resolver; `descriptions` are those of the
    parameters. `show` makes of the resolver's answer what the viewer sees, also when a receipt answers.
    """
    name = resolver.__name__.title().replace("_", "")
    parameters = Parameters.of(resolver)
    arguments = [*parameters.arguments(descriptions), *([_IDEMPOTENCY_KEY] if takes_key else [])]
    input_type = make_input(f"{name}Input", input_description, arguments)
    result = result or result_of(name, payload, result_description)
    make_payload = _payload_maker(payload)
    if terms.recent:
        description += f" With a session, this asks for a sign-in of {_LATELY}, also when it is repeated."

    async def resolve(info: Info, input: Any) -> Any:  # noqa: A002 - the argument's public name
        ctx: Context = info.context
        ctx.selected = lambda: frozenset(_names(info.selected_fields[0].selections))
        try:
            check_terms(ctx, terms)
            answer = await run_mutation(ctx, resolver, *_read_input(parameters, input), terms)
            return make_payload(answer if show is None else await show(ctx, answer))
        except Refusal as refusal:
            ctx.refused = True
            return refused(refusal)

    resolve.__name__ = resolver.__name__
    resolve.__annotations__ = {
        "info": Info,
        "input": Annotated[input_type, strawberry.argument(description="The mutation's input.")],
        "return": result,
    }
    return strawberry.mutation(resolver=resolve, description=description, metadata={COMPLEXITY: complexity})


def _read_input(parameters: Parameters, given: Input) -> tuple[dict[str, Any], dict[str, Any], str | None]:
    """The resolver's values, what the receipt's hash is made of, and the idempotency key."""
    fields = dict(vars(given))
    key = fields.pop("idempotency_key", None) or None
    return parameters.parse_values(fields, path=("input",)), parameters.hashed(fields), key


def result_of(name: str, payload: type, description: str) -> Any:
    """The union of a payload and `Refused`."""
    return Annotated[Union[payload, Refused], strawberry.union(f"{name}Result", description=description)]  # noqa: UP007


def _names(selections: Iterable[Any]) -> Iterator[str]:
    """The names of the selected fields, in whichever fragment."""
    for selection in selections:
        if isinstance(selection, SelectedField):
            yield selection.name
        else:
            yield from _names(selection.selections)


def _payload_maker(payload: type) -> Callable[[Any], Any]:
    """A function from a resolver's answer to the payload.

    The answer is the payload if that is the type of a record. If not, it is the payload's only field, or has the
    payload's fields as attributes.
    """
    if hasattr(payload, "is_type_of"):
        return lambda answer: answer
    names = list(inspect.get_annotations(payload))
    if len(names) == 1:
        return lambda answer: payload(**{names[0]: answer})
    return lambda answer: payload(**{name: getattr(answer, name) for name in names})


# ── error codes ──
# All codes that a client may meet, as the schema's description lists them.

ERROR_CODES: Final = {
    "BAD_REQUEST": "The request is not a GraphQL request that this address answers; the status says more.",
    "UNAUTHENTICATED": "The credentials are invalid or have expired. Status 401.",
    "OVERLOADED": "The process is at a limit. Try again after `retryAfterSeconds` or the header `Retry-After`.",
    "GRAPHQL_PARSE_FAILED": "The document is not GraphQL.",
    "GRAPHQL_VALIDATION_FAILED": "The document does not fit the schema.",
    "PERSISTED_QUERY_NOT_FOUND": "The manifest of trusted documents has no document with this hash.",
    "PERSISTED_QUERY_NOT_SUPPORTED": "There is no manifest, so a hash alone names no document: send the text.",
    "BAD_USER_INPUT": "A value is not acceptable, the document is too large or costly, or is not a trusted one. "
    "In a mutation's result this is INVALID_INPUT.",
    "INVALID_CURSOR": "The cursor does not belong to this list and its filters. Start again without one.",
    "INTERNAL": "A fault of the service. Its log has the details.",
}
"""Codes of errors alone, in `extensions.code`. A query or subscription may also have those of RefusalCode."""


def refusal_codes() -> dict[str, str]:
    """The codes of `Refused`, with their descriptions."""
    values = RefusalCode.__strawberry_definition__.values  # type: ignore[attr-defined]  # set by enum()
    return {value.name: value.description for value in values}


def schema_description() -> str:
    """The description of the schema."""
    lines = (f"- {code}: {meaning}" for code, meaning in {**refusal_codes(), **ERROR_CODES}.items())
    return "\n".join(
        (
            "Votes, predictions, comments and words. A mutation returns its payload or `Refused` with a code. Every",
            "other refusal is an error with its code in `extensions.code`; `retryAfterSeconds` says when to try again.",
            "",
            "The codes:",
            *lines,
        )
    )
