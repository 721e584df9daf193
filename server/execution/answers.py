"""Runs operations, and formats their errors for the client.

A refusal becomes a GraphQL error with its code; a table that does not answer becomes UNAVAILABLE. Any other exception,
such as a call that the table rejects, is a fault of the service: it is logged in full, and the client gets INTERNAL.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any, Self

import structlog
from graphql import (
    ExecutionResult,
    GraphQLError,
    create_source_event_stream,
    execute,
    map_source_to_response_event,
)
from graphql.execution import Executor

from datastore.dynamo import BadKey, DynamoError, Rejected
from datastore.refusals import Refusal
from resolvers.context import Context
from server.compiler import Fallback, PreparedOperation
from server.execution.documents import Operation

_log = structlog.get_logger("ringside.graphql")

_QUERY_CODES = {"INVALID_INPUT": "BAD_USER_INPUT"}


@dataclass(slots=True)
class Answer:
    """The response to an operation."""

    data: dict[str, Any] | None = None
    errors: list[dict[str, Any]] = field(default_factory=list)
    extensions: dict[str, Any] = field(default_factory=dict)
    executed: bool = True
    """False if execution never began: the body then has no `data` at all."""
    event_id: str | None = None
    """The position in a stream, which a client that reconnects sends back."""

    @classmethod
    def from_result(cls, result: Any, ctx: Context) -> Self:
        if result.errors is None:
            return cls(result.data, [], ctx.notes, event_id=ctx.event_id)
        errors = [format_error(error) for error in result.errors]
        # If coercing the variables failed, no error has a path, and data is absent rather than null.
        executed = result.data is not None or any("path" in error for error in errors)
        return cls(result.data, errors, ctx.notes, executed, ctx.event_id)

    @classmethod
    def not_executed(cls, *errors: GraphQLError) -> Self:
        return cls(errors=[format_error(error) for error in errors], executed=False)

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
    *,
    suggestions: bool,
    fell_back: Callable[[str], None] = lambda _: None,
) -> Answer:
    """The answer of a query or mutation, by its compiled code, or by graphql-core if it cannot be compiled."""
    prepared = operation.compiled.prepare(variables, suggestions=suggestions)
    if isinstance(prepared, PreparedOperation):
        return Answer.from_result(await prepared.execute(ctx), ctx)
    if isinstance(prepared, ExecutionResult):
        return Answer.from_result(prepared, ctx)
    fell_back(prepared.reason)
    result = execute(
        operation.schema,
        operation.document,
        context_value=ctx,
        variable_values=dict(variables),
        operation_name=operation.name,
        hide_suggestions=not suggestions,
    )
    if isawaitable(result):
        result = await result
    return Answer.from_result(result, ctx)


async def subscribe(
    operation: Operation,
    variables: Mapping[str, Any],
    ctx: Context,
    *,
    suggestions: bool,
    fell_back: Callable[[str], None] = lambda _: None,
) -> Answer | AsyncGenerator[Answer, None]:
    """The events of a subscription, or the answer that says why there are none."""
    prepared = operation.compiled.prepare(variables, suggestions=suggestions)
    executor = Executor.build(
        operation.schema,
        operation.document,
        None,
        ctx,
        dict(variables),
        operation.name,
        hide_suggestions=not suggestions,
    )
    if isinstance(executor, list):
        return Answer.from_result(ExecutionResult(None, executor), ctx)
    source = create_source_event_stream(executor)
    if isawaitable(source):
        source = await source
    if isinstance(source, ExecutionResult):
        return Answer.from_result(source, ctx)
    if isinstance(prepared, Fallback):
        fell_back(prepared.reason)
    if isinstance(prepared, PreparedOperation):
        return _answers(map_source_to_response_event(executor, source, prepared.execute_event), ctx)
    return _answers(map_source_to_response_event(executor, source), ctx)


async def _answers(results: Any, ctx: Context) -> AsyncGenerator[Answer, None]:
    try:
        async for result in results:
            yield Answer.from_result(result, ctx)
    except (Refusal, BadKey, DynamoError) as error:
        # Raised by the stream itself, not by a field of one event: it is the client's last event.
        yield Answer.not_executed(GraphQLError("The stream ended.", original_error=error))
    finally:
        await results.aclose()


def format_error(error: GraphQLError) -> dict[str, Any]:
    """An error as the client sees it."""
    cause = error.original_error
    while isinstance(cause, GraphQLError) and cause.original_error is not None:
        cause = cause.original_error
    formatted = dict(error.formatted)
    if cause is None or isinstance(cause, GraphQLError):
        formatted["extensions"] = {"code": "BAD_USER_INPUT", **(error.extensions or {})}
        return formatted
    formatted["message"], formatted["extensions"] = _describe(cause)
    return formatted


def _describe(cause: BaseException) -> tuple[str, dict[str, Any]]:
    """The message and extensions for an exception of a resolver; unexpected ones are logged."""
    if isinstance(cause, Refusal):
        extensions: dict[str, Any] = {"code": _QUERY_CODES.get(cause.code, cause.code)}
        if cause.retry_after is not None:
            extensions["retryAfterSeconds"] = cause.retry_after
        if cause.path:
            extensions["argument"] = ".".join(cause.path)
        return cause.message, extensions
    if isinstance(cause, BadKey):
        return str(cause), {"code": "BAD_USER_INPUT"}
    if isinstance(cause, DynamoError | asyncio.TimeoutError) and not isinstance(cause, Rejected):
        return "The table did not answer in time; try again shortly.", {"code": "UNAVAILABLE", "retryAfterSeconds": 1.0}
    _log.error("a resolver failed", exc_info=cause)
    return "Something went wrong on our side. The log has the details under this request's id.", {"code": "INTERNAL"}
