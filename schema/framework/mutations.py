"""Mutations: fields whose input is made of a resolver's parameters."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator
from enum import Enum
from typing import Annotated, Any, Union

import strawberry
from strawberry.types import Info
from strawberry.types.nodes import SelectedField

from datastore.refusals import Refusal
from resolvers.requests.context import Context
from resolvers.whole.mutations import FOR_MEMBERS, Terms, check_terms, run_mutation
from schema.framework.arguments import Argument, Input, Parameters, make_input
from schema.framework.fields import counting, described

# ── refusals ──


def _code(name: str, description: str) -> Any:
    return strawberry.enum_value(name, description=description)


@strawberry.enum(description="Why a mutation was refused.")
class RefusalCode(Enum):
    INVALID_INPUT = _code("INVALID_INPUT", "A value is not acceptable; `path` shows which.")
    NOT_FOUND = _code("NOT_FOUND", "An object in the input does not exist, or the viewer may not see it.")
    NOT_SIGNED_IN = _code("NOT_SIGNED_IN", "This needs a signed-in member.")
    NOT_ALLOWED = _code("NOT_ALLOWED", "The viewer lacks the role, or the object belongs to another member.")
    CONFLICT = _code("CONFLICT", "The current state does not allow it. Read it again before you decide.")
    LOCKED = _code("LOCKED", "It is closed: its deadline has passed, or it has not opened yet.")
    TOKEN_UNKNOWN = _code("TOKEN_UNKNOWN", "The token was not issued to this visitor, or was altered.")
    TOKEN_EXPIRED = _code("TOKEN_EXPIRED", "The token is too old.")
    TOKEN_SPENT = _code("TOKEN_SPENT", "The token was already used.")
    EXHAUSTED = _code("EXHAUSTED", "There is nothing left to draw.")
    IDEMPOTENCY_MISMATCH = _code("IDEMPOTENCY_MISMATCH", "The idempotency key was used before with another input.")
    CHALLENGE_NEEDED = _code("CHALLENGE_NEEDED", "A proof of work is needed: solve a `challenge` first.")
    RATE_LIMITED = _code("RATE_LIMITED", "Too many of these in a short time.")
    UNAVAILABLE = _code("UNAVAILABLE", "The table did not answer in time; nothing is lost, try again.")


@strawberry.type(description="Why a mutation was not carried out. Nothing was changed.")
class Refused:
    code: RefusalCode = described("The reason, for programs.")
    message: str = described("The reason, for people: what is wrong and what to do.")
    path: list[str] | None = described("The path of the input field at fault.")
    retry_after_seconds: float | None = described("Seconds after which a retry may succeed.")


def refused(refusal: Refusal) -> Refused:
    code = RefusalCode.INVALID_INPUT if refusal.code == "INVALID_CURSOR" else RefusalCode[refusal.code]
    return Refused(
        code=code, message=refusal.message, path=list(refusal.path) or None, retry_after_seconds=refusal.retry_after
    )


# ── mutations ──

_IDEMPOTENCY_KEY = Argument(
    "idempotency_key",
    str | None,
    strawberry.UNSET,
    "Choose one per request. A repeat with the same key and input returns the first result and changes nothing. An "
    "empty key counts as none.",
)


def mutation(  # noqa: PLR0913 - most have defaults
    resolver: Callable[..., Awaitable[Any]],
    description: str,
    payload: type,
    /,
    *,
    input_description: str,
    result_description: str,
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
    suspended members and guests are refused; `complexity` is what it counts itself. The input and the union are named
    after the resolver; `descriptions` are those of the parameters. `show` makes of the resolver's answer what the
    viewer sees, also when a receipt answers.
    """
    name = resolver.__name__.title().replace("_", "")
    parameters = Parameters.of(resolver)
    arguments = [*parameters.arguments(descriptions), *([_IDEMPOTENCY_KEY] if takes_key else [])]
    input_type = make_input(f"{name}Input", input_description, arguments)
    result = result or result_of(name, payload, result_description)
    make_payload = _payload_maker(payload)

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
    return strawberry.mutation(resolver=resolve, description=description, metadata=counting(complexity))


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
