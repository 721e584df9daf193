"""What every operation goes through, whether it comes by POST, GET, Server-Sent Events or WebSocket.

request read ─ viewer identified ─ document found ─ cost checked ─ executed ─ response
    4xx              401                400             400        deadline
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import structlog
from graphql import GraphQLError

from datastore.dynamo import Spent, deadline, metered
from resolvers.context import Context, Services
from resolvers.viewer import Role, Viewer
from server.auth.identification import Identification, RawHeaders
from server.execution.answers import Answer, format_error, run, subscribe
from server.execution.documents import Documents, Operation
from server.settings import Introspection, Settings
from server.telemetry import Metrics, Outcome, Traces

_log = structlog.get_logger("ringside.graphql")


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The objects of a process that answer operations, and how they do."""

    documents: Documents
    services: Services
    identification: Identification
    settings: Settings
    metrics: Metrics
    traces: Traces | None
    closing: asyncio.Event
    """Set when the service shuts down: streams and sockets end then."""

    def may_introspect(self, viewer: Viewer) -> bool:
        setting = self.settings.introspection
        return setting == Introspection.ON or (setting == Introspection.ROLE and viewer.may(Role.EDITOR))

    def may_see_plans(self, viewer: Viewer) -> bool:
        """Whether answers may tell how they were made: to editors, and to everyone where introspection is `on`."""
        return self.settings.introspection == Introspection.ON or viewer.may(Role.EDITOR)

    async def execute(
        self,
        operation: Operation,
        variables: Mapping[str, Any],
        ctx: Context,
        *,
        suggestions: bool,
        headers: RawHeaders = (),
    ) -> Answer:
        """The answer of a query or mutation, within its deadline, traced, counted and logged."""
        began = time.perf_counter()
        span = self.traces and self.traces.operation(operation.kind, operation.name, operation.hash, headers)
        limit = deadline(self.settings.request_timeout)
        with span or nullcontext() as set_outcome, limit as ends, metered() as spent:
            try:
                # A little later than the deadline of engine calls, whose own error says more.
                async with asyncio.timeout_at(ends + 0.5):
                    fell_back = self.metrics.fell_back
                    answer = await run(operation, variables, ctx, suggestions=suggestions, fell_back=fell_back)
            except TimeoutError:
                answer = Answer(errors=[format_error(GraphQLError(_OUT_OF_TIME, extensions=_UNAVAILABLE))])
            outcome = _outcome(answer) if answer.errors else Outcome.OK
            if set_outcome:
                set_outcome(outcome)
        self._record(operation, outcome, time.perf_counter() - began, spent)
        return answer

    async def subscribe(
        self, operation: Operation, variables: Mapping[str, Any], ctx: Context, *, suggestions: bool
    ) -> Answer | AsyncIterator[Answer]:
        """The events of a subscription, counted while it is open, or the answer that says why there are none."""
        fell_back = self.metrics.fell_back
        answers = await subscribe(operation, variables, ctx, suggestions=suggestions, fell_back=fell_back)
        return answers if isinstance(answers, Answer) else self._counted(answers)

    async def _counted(self, answers: AsyncGenerator[Answer, None]) -> AsyncIterator[Answer]:
        self.metrics.subscriptions.inc()
        try:
            async for answer in answers:
                yield answer
        finally:
            self.metrics.subscriptions.dec()
            await answers.aclose()

    def _record(self, operation: Operation, outcome: Outcome, seconds: float, spent: Spent) -> None:
        self.metrics.finished(
            operation.name,
            outcome,
            seconds,
            read_units=spent.read_units,
            write_units=spent.write_units,
            engine_calls=spent.calls,
        )
        _log.info(
            "answered",
            operation=operation.name,
            kind=operation.kind.value,
            hash=operation.hash[:16],
            outcome=outcome.value,
            milliseconds=round(seconds * 1000, 2),
            calls=spent.calls,
            read_units=spent.read_units,
            write_units=spent.write_units,
        )


_OUT_OF_TIME = "The time for this request is used up."
_UNAVAILABLE = {"code": "UNAVAILABLE", "retryAfterSeconds": 1.0}


def _outcome(answer: Answer) -> Outcome:
    """The worst of the errors decides."""
    codes = {error.get("extensions", {}).get("code") for error in answer.errors}
    if "INTERNAL" in codes:
        return Outcome.FAILED
    if "UNAVAILABLE" in codes:
        return Outcome.UNAVAILABLE
    return Outcome.ERRORS if answer.executed else Outcome.INVALID
