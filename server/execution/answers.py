"""Running an operation, and wording what went wrong in it.

A refusal becomes a GraphQL error with its code; a table that does not answer becomes UNAVAILABLE; a fault of this
program, such as a call that the table does not take, becomes INTERNAL with the request's id and nothing else, and goes
to the log in full.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any

import structlog
from graphql import (
    ExecutionResult,
    GraphQLError,
    GraphQLSchema,
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

_CODES_OF_QUERIES = {"INVALID_INPUT": "BAD_USER_INPUT"}


@dataclass(slots=True)
class Answer:
    """What is sent back. `started` is False when the operation never ran: `data` is then left out altogether."""

    data: dict[str, Any] | None = None
    errors: list[dict[str, Any]] = field(default_factory=list)
    extensions: dict[str, Any] = field(default_factory=dict)
    started: bool = True
    mark: str | None = None
    """Where a stream stands with this event, for clients that come back."""

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {}
        if self.errors:
            body["errors"] = self.errors
        if self.started:
            body["data"] = self.data
        if self.extensions:
            body["extensions"] = self.extensions
        return body

    @property
    def outcome(self) -> str:
        """For metrics and logs: ok, or the code of the first error."""
        if not self.errors:
            return "ok"
        return str(self.errors[0].get("extensions", {}).get("code", "error")).lower()


async def run(
    schema: GraphQLSchema,
    operation: Operation,
    variables: Mapping[str, Any],
    ctx: Context,
    *,
    suggestions: bool,
    fell_back: Callable[[str], None] = lambda _: None,
) -> Answer:
    """A query or a mutation, executed: by its compiled code, or by graphql-core if it cannot be compiled."""
    prepared = operation.compiled.prepare(variables, suggestions=suggestions)
    if isinstance(prepared, PreparedOperation):
        return answer_of(await prepared.execute(ctx), ctx)
    if isinstance(prepared, ExecutionResult):
        return answer_of(prepared, ctx)
    fell_back(prepared.reason)
    result = execute(
        schema,
        operation.document,
        context_value=ctx,
        variable_values=dict(variables),
        operation_name=operation.name,
        hide_suggestions=not suggestions,
    )
    if isawaitable(result):
        result = await result
    return answer_of(result, ctx)


async def events(
    schema: GraphQLSchema,
    operation: Operation,
    variables: Mapping[str, Any],
    ctx: Context,
    *,
    suggestions: bool,
    fell_back: Callable[[str], None] = lambda _: None,
) -> Answer | AsyncIterator[Answer]:
    """A subscription: its events, or an answer that says why there are none."""
    prepared = operation.compiled.prepare(variables, suggestions=suggestions)
    executor = Executor.build(
        schema,
        operation.document,
        None,
        ctx,
        dict(variables),
        operation.name,
        hide_suggestions=not suggestions,
    )
    if isinstance(executor, list):
        return answer_of(ExecutionResult(None, executor), ctx)
    source = create_source_event_stream(executor)
    if isawaitable(source):
        source = await source
    if isinstance(source, ExecutionResult):
        return answer_of(source, ctx)
    if isinstance(prepared, Fallback):
        fell_back(prepared.reason)
    if isinstance(prepared, PreparedOperation):
        return _each(map_source_to_response_event(executor, source, prepared.execute_event), ctx)
    return _each(map_source_to_response_event(executor, source), ctx)


async def _each(source: Any, ctx: Context) -> AsyncIterator[Answer]:
    try:
        async for result in source:
            yield answer_of(result, ctx)
    except (Refusal, BadKey, DynamoError) as error:
        # Raised by the stream itself, not by a field of one event: the last that the client hears.
        yield refused(GraphQLError("The stream ended.", original_error=error))
    finally:
        await source.aclose()


def answer_of(result: Any, ctx: Context) -> Answer:
    if result.errors is None:
        return Answer(result.data, [], ctx.notes, mark=ctx.mark)
    errors = [worded(error) for error in result.errors]
    # Data is absent, not null, when coercing the variables failed: no error then has a path.
    started = result.data is not None or any("path" in error for error in errors)
    return Answer(result.data, errors, ctx.notes, started=started, mark=ctx.mark)


def refused(*errors: GraphQLError) -> Answer:
    """The answer to an operation that was not begun."""
    return Answer(errors=[worded(error) for error in errors], started=False)


def worded(error: GraphQLError) -> dict[str, Any]:
    """An error as the client sees it."""
    cause = error.original_error
    while isinstance(cause, GraphQLError) and cause.original_error is not None:
        cause = cause.original_error
    formatted = dict(error.formatted)
    if cause is None or isinstance(cause, GraphQLError):
        formatted["extensions"] = {"code": "BAD_USER_INPUT", **(error.extensions or {})}
        return formatted
    formatted["message"], formatted["extensions"] = _explained(cause)
    return formatted


def _explained(cause: BaseException) -> tuple[str, dict[str, Any]]:
    if isinstance(cause, Refusal):
        extensions: dict[str, Any] = {"code": _CODES_OF_QUERIES.get(cause.code, cause.code)}
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
