"""Runs operations, and formats their errors for the client.

A refusal becomes a GraphQL error with its code; a table that does not answer becomes UNAVAILABLE. Any other exception,
such as a call that the table rejects, is a fault of the service: it is logged in full, and the client gets INTERNAL.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import isawaitable
from math import inf
from typing import Any, Self, TypeAlias

import graphql
import structlog
from graphql.execution import Executor
from msgspec import Raw, Struct
from msgspec.structs import astuple

from datastore.dynamo import BadKey, Budget, DynamoError, Rejected, StorageFailed, TooCostly, TooManyWaiting
from datastore.refusals import Overloaded, Refusal
from resolvers.requests.context import Context
from resolvers.values.network_addresses import network
from server.compiler import Fallback, PreparedOperation
from server.execution.documents import Operation, Turns

_log = structlog.get_logger("ringside.graphql")

_ExecuteEvent: TypeAlias = Callable[[Executor[Any]], Awaitable[graphql.ExecutionResult] | graphql.ExecutionResult]
_QUERY_CODES = {"INVALID_INPUT": "BAD_USER_INPUT"}


LARGEST_ANSWER = 16 * 2**20
"""Letters of all texts in an answer."""


@dataclass(slots=True)
class Answer:
    """The response to an operation."""

    data: dict[str, Any] | Raw | None = None
    """Raw is JSON already."""
    errors: list[dict[str, Any]] = field(default_factory=list)
    extensions: dict[str, Any] = field(default_factory=dict)
    executed: bool = True
    """False if execution never began: the body then has no `data` at all."""
    event_id: str | None = None
    """The position in a stream, which a client that reconnects sends back. An event without data is to come again."""

    @classmethod
    def from_result(cls, result: Any, ctx: Context) -> Self:
        if result.errors is None:
            return cls(result.data, [], ctx.notes, event_id=ctx.event_id)
        errors = [format_error(error) for error in result.errors]
        # If coercing the variables failed, no error has a path, and data is absent rather than null.
        executed = result.data is not None or any("path" in error for error in errors)
        executed = executed or any(isinstance(error, OutOfTime) for error in result.errors)
        event_id = None if result.data is None else ctx.event_id
        return cls(result.data, errors, ctx.notes, executed, event_id)

    @classmethod
    def not_executed(cls, *errors: graphql.GraphQLError) -> Self:
        return cls(errors=[format_error(error) for error in errors], executed=False)

    @property
    def is_overloaded(self) -> bool:
        """Whether a part is missing because too many calls to the table wait."""
        return any(error.get("extensions", {}).get("code") == Overloaded.code for error in self.errors)

    def within(self, most: int) -> "Answer":
        """This answer, or that it has more letters: a text may be selected many times, and is sent each time.

        The answers of dear operations are measured: a cheap one has no room for as many.
        """
        letters, pending = 0, [self.data]
        while pending and letters <= most:
            value: Any = pending.pop()
            if isinstance(value, str | Raw):
                letters += len(value)
            elif isinstance(value, dict):
                pending += value.values()
            elif isinstance(value, Struct):
                pending += astuple(value)
            elif isinstance(value, list):
                pending += value
        if letters <= most:
            return self
        message = f"The answer has more than {most:,} letters, so it is not sent. Ask for less at once."
        return Answer(errors=[format_error(graphql.GraphQLError(message))])

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {}
        if self.errors:
            body["errors"] = self.errors
        if self.executed:
            body["data"] = self.data
        if self.extensions:
            body["extensions"] = self.extensions
        return body


async def run(
    operation: Operation,
    variables: Mapping[str, Any],
    ctx: Context,
    turns: Turns,
    *,
    suggestions: bool,
    begin: Callable[[], Awaitable[None]],
    fell_back: Callable[[str], None] = lambda _: None,
) -> Answer:
    """The answer of a query or mutation, by its compiled code, or by graphql-core if it cannot be compiled.

    `begin` is awaited after the operation was compiled, for which many requests may have waited together.
    """
    prepared = operation.compiled.prepare(variables, suggestions=suggestions, may_compile=False)
    if prepared is None:
        prepared = await _compile(operation, variables, turns, ctx, suggestions=suggestions)
        await begin()
    introspection = operation.introspection
    if introspection is not None and introspection.data is not None:
        return Answer(introspection.data)
    if isinstance(prepared, PreparedOperation):
        return Answer.from_result(await prepared.execute(ctx), ctx)
    if isinstance(prepared, graphql.ExecutionResult):
        return Answer.from_result(prepared, ctx)
    fell_back(prepared.reason)
    result = graphql.execute(
        operation.schema,
        operation.document,
        context_value=ctx,
        variable_values=dict(variables),
        operation_name=operation.name,
        hide_suggestions=not suggestions,
    )
    if isawaitable(result):
        result = await result
    if introspection is not None and result.data is not None and result.errors is None:
        introspection.remember(result.data)
    return Answer.from_result(result, ctx)


async def _compile(
    operation: Operation, variables: Mapping[str, Any], turns: Turns, ctx: Context, *, suggestions: bool
) -> PreparedOperation | graphql.ExecutionResult | Fallback:
    """The operation with its variables, compiled in a turn.

    There is no plan then if this request's directives are wrong, or if it shared a turn with other variables.
    """
    prepare = partial(operation.compiled.prepare, variables, suggestions=suggestions)
    await turns.take(operation.compiled, prepare, network(ctx.address))
    return prepare(may_compile=False) or Fallback("not compiled")


async def subscribe(
    operation: Operation,
    variables: Mapping[str, Any],
    ctx: Context,
    new_budget: Callable[[], Budget],
    turns: Turns,
    *,
    suggestions: bool,
    begin: Callable[[], Awaitable[None]],
    fell_back: Callable[[str], None] = lambda _: None,
) -> Answer | AsyncGenerator[Answer, None]:
    """The events of a subscription, each made within a budget, or the answer that says why there are none.

    `begin` is awaited before each event: who was away for long gets thousands.
    """
    prepared = operation.compiled.prepare(variables, suggestions=suggestions, may_compile=False)
    if prepared is None:
        prepared = await _compile(operation, variables, turns, ctx, suggestions=suggestions)
    executor = operation.compiled.build_executor(ctx, variables, suggestions=suggestions)
    if isinstance(executor, list):
        return Answer.from_result(graphql.ExecutionResult(None, executor), ctx)
    source = graphql.create_source_event_stream(executor)
    if isawaitable(source):
        source = await source
    if isinstance(source, graphql.ExecutionResult):
        return Answer.from_result(source, ctx)
    if isinstance(prepared, Fallback):
        fell_back(prepared.reason)
    execute_event = (
        prepared.execute_event if isinstance(prepared, PreparedOperation) else graphql.execute_subscription_event
    )
    read, within = _read_within(new_budget, source), _within(new_budget, execute_event, begin)
    return _answers(graphql.map_source_to_response_event(executor, read, within), ctx)


async def _read_within(new_budget: Callable[[], Budget], source: Any) -> AsyncGenerator[Any, None]:
    """The source's events. What it reads for each takes the client's turns, as a request's calls do.

    It has no deadline and no allowance: days may pass, and thousands of changes that show nothing new, before the next.
    """
    async with aclosing(source):
        while True:
            with replace(new_budget(), ends=inf, payer=None):
                event = await anext(source, None)
            if event is None:
                return
            yield event


def _within(
    new_budget: Callable[[], Budget], execute_event: _ExecuteEvent, begin: Callable[[], Awaitable[None]]
) -> _ExecuteEvent:
    """Execute an event within a budget, like a request. The next event has a new one."""

    async def execute_in_time(executor: Executor[Any]) -> graphql.ExecutionResult:
        await begin()
        with new_budget() as budget:
            try:
                async with asyncio.timeout_at(budget.ends + 0.5):
                    result = execute_event(executor)
                    return await result if isawaitable(result) else result
            except TimeoutError:
                return graphql.ExecutionResult(None, [OutOfTime()])

    return execute_in_time


class OutOfTime(graphql.GraphQLError):
    """An error of a whole answer: its execution took longer than its deadline."""

    def __init__(self) -> None:
        extensions = {"code": "UNAVAILABLE", "retryAfterSeconds": 1.0}
        super().__init__("The time for this request is used up.", extensions=extensions)


async def _answers(results: Any, ctx: Context) -> AsyncGenerator[Answer, None]:
    try:
        async for result in results:
            yield Answer.from_result(result, ctx)
    except Exception as error:  # noqa: BLE001 - a fault of the service is logged, and told as INTERNAL
        # Raised by the stream itself, not by a field of one event: it is the client's last event.
        yield Answer.not_executed(graphql.GraphQLError("The stream ended.", original_error=error))
    finally:
        await results.aclose()


def format_error(error: graphql.GraphQLError) -> dict[str, Any]:
    """An error as the client sees it."""
    cause = error.original_error
    while isinstance(cause, graphql.GraphQLError) and cause.original_error is not None:
        cause = cause.original_error
    formatted = dict(error.formatted)
    if cause is None or isinstance(cause, graphql.GraphQLError):
        formatted["extensions"] = {"code": "BAD_USER_INPUT", **(error.extensions or {})}
        return formatted
    formatted["message"], formatted["extensions"] = _describe(cause)
    return formatted


def _describe(cause: BaseException) -> tuple[str, dict[str, Any]]:
    """The message and extensions for an exception of a resolver; unexpected ones are logged."""
    if isinstance(cause, TooManyWaiting):
        cause = Overloaded(retry_after=1.0)
    if isinstance(cause, Refusal):
        extensions: dict[str, Any] = {"code": _QUERY_CODES.get(cause.code, cause.code)}
        if cause.retry_after is not None:
            extensions["retryAfterSeconds"] = cause.retry_after
        if cause.path:
            extensions["argument"] = ".".join(cause.path).removeprefix("input.")
        return cause.message, extensions
    if isinstance(cause, TooCostly):
        message = "This operation reads too much at once. Ask for smaller pages, or for less in several requests."
        return message, {"code": "BAD_USER_INPUT"}
    if isinstance(cause, BadKey):
        return str(cause), {"code": "BAD_USER_INPUT"}
    if isinstance(cause, StorageFailed):
        return f"The table cannot be used: {cause}.", {"code": "UNAVAILABLE", "retryAfterSeconds": 1.0}
    if isinstance(cause, DynamoError | asyncio.TimeoutError) and not isinstance(cause, Rejected):
        return "The table did not answer in time; try again shortly.", {"code": "UNAVAILABLE", "retryAfterSeconds": 1.0}
    _log.error("a resolver failed", exc_info=cause)
    return "Something went wrong on our side. The log has the details under this request's id.", {"code": "INTERNAL"}
