"""What every operation goes through, whether it comes by POST, GET, Server-Sent Events or WebSocket.

request read ─ viewer identified ─ document found ─ cost checked ─ executed ─ response
    4xx              401                400             400        deadline
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, aclosing, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import structlog
from graphql import GraphQLError

from datastore.dynamo import request_budget
from datastore.refusals import Overloaded
from resolvers.requests.context import Context, Services
from resolvers.requests.viewer import Kind, Role, Viewer
from resolvers.values.network_addresses import network
from server.auth.identification import Identification, RawHeaders
from server.execution.answers import Answer, OutOfTime, format_error, run, subscribe
from server.execution.documents import Documents, GraphQLRequest, Operation
from server.execution.turns import Turns
from server.http.quotas import Quota
from server.http.request_turns import Client, RequestTurns
from server.settings import Introspection, Settings
from server.telemetry import Metrics, Outcome, Traces

MAX_CALLS = 2_000
MAX_READ_UNITS = 5_000
"""What a query may ask of the engine. The complexity bounds only its answer, for which some fields read much more."""

MIN_SHARE = 16
"""One address may have so many requests in flight, and so many new documents may wait to be checked, however few
requests may be in flight."""


def share(max_in_flight: int) -> int:
    """How many of the requests in flight may be one address's, or wait for documents to be checked."""
    return max(MIN_SHARE, max_in_flight // 2)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The objects of a process that answer operations, and how they do."""

    documents: Documents
    services: Services
    identification: Identification
    settings: Settings
    metrics: Metrics
    traces: Traces | None
    requests: Quota
    """Those in flight. They count while they wait for their turn, too."""
    streams: Quota
    """Connections that stay open: WebSockets and event streams."""
    subscriptions: Quota
    closing: asyncio.Event
    """Set when the service shuts down: streams and sockets end then."""
    turns: Turns = field(default_factory=Turns)
    """Of checking and compiling documents."""
    request_turns: RequestTurns = field(default_factory=RequestTurns)
    log: Any = field(default_factory=lambda: structlog.get_logger("ringside.graphql").bind(), init=False, repr=False)
    """Bound once: `structlog.get_logger` configures a new logger for each line."""

    @property
    def has_explorer(self) -> bool:
        """Whether a browser is shown the explorer: it can do nothing where no one may introspect."""
        return self.settings.introspection != Introspection.OFF

    def may_introspect(self, viewer: Viewer) -> bool:
        setting = self.settings.introspection
        return setting == Introspection.ON or (setting == Introspection.ROLE and viewer.may(Role.EDITOR))

    def may_see_plans(self, viewer: Viewer) -> bool:
        """Whether answers may tell how they were made: to editors, and to everyone where introspection is `on`."""
        return self.settings.introspection == Introspection.ON or viewer.may(Role.EDITOR)

    @contextmanager
    def in_flight(self, address: str) -> Iterator[None]:
        """Count a request during the block; Overloaded if there are enough, of this address or of all together."""
        self.requests.begin(address)
        self.metrics.count_in_flight(1)
        try:
            yield
        finally:
            self.requests.end(address)
            self.metrics.count_in_flight(-1)

    async def operation(self, request: GraphQLRequest, client: Client, *, introspection: bool) -> Operation:
        """The operation that a request asks for; Overloaded if too many new documents wait to be checked."""
        document = self.documents.find(request, introspection=introspection)
        if document is None:
            key = (request.query, introspection)
            if key not in self.turns and self.turns.waiting >= share(self.settings.max_in_flight):
                raise Overloaded
            document = await self.turns.take(key, partial(self.documents.check, request, introspection=introspection))
            await self.request_turns.take(client)  # again, as in `_begin_again`
        return self.documents.select(document, request)

    async def _begin_again(self, ctx: Context) -> None:
        """Wait for another turn: all requests that waited for the same document go on at the same moment."""
        await self.request_turns.take(Client(network(ctx.address)))

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
        budget = request_budget(self.settings.request_timeout, MAX_CALLS, MAX_READ_UNITS, ctx.client)
        with span or nullcontext() as set_outcome, budget:
            try:
                # A little later than the deadline of engine calls, whose own error says more.
                async with asyncio.timeout_at(budget.ends + 0.5):
                    fell_back = self.metrics.fell_back
                    answer = await run(
                        operation,
                        variables,
                        ctx,
                        self.turns,
                        suggestions=suggestions,
                        fell_back=fell_back,
                        begin_again=self._begin_again,
                    )
            except TimeoutError:
                answer = Answer(errors=[format_error(OutOfTime())])
            outcome = _outcome(answer) if answer.errors else Outcome.OK
            if set_outcome:
                set_outcome(outcome)
        seconds, spent = time.perf_counter() - began, budget.spent
        units = {"read_units": spent.read_units, "write_units": spent.write_units}
        by_member = ctx.viewer.kind is not Kind.VISITOR
        self.metrics.finished(operation.name, outcome, seconds, engine_calls=spent.calls, by_member=by_member, **units)
        self.log.info(
            "answered",
            operation=operation.name,
            kind=operation.kind.value,
            hash=operation.hash[:16],
            outcome=outcome.value,
            milliseconds=round(seconds * 1000, 2),
            calls=spent.calls,
            **units,
        )
        return answer

    async def subscribe(
        self, operation: Operation, variables: Mapping[str, Any], ctx: Context, *, suggestions: bool
    ) -> Answer | AsyncIterator[Answer]:
        """The events of a subscription, counted while it is open, or the answer that says why there are none."""
        fell_back = self.metrics.fell_back
        new_budget = partial(request_budget, self.settings.request_timeout, MAX_CALLS, MAX_READ_UNITS, ctx.client)
        answers = await subscribe(
            operation, variables, ctx, new_budget, self.turns, suggestions=suggestions, fell_back=fell_back
        )
        return answers if isinstance(answers, Answer) else self._counted(answers, ctx.address)

    async def _counted(self, answers: AsyncGenerator[Answer, None], address: str) -> AsyncIterator[Answer]:
        async with aclosing(answers):
            with ExitStack() as stack:
                try:
                    stack.enter_context(self.subscriptions.held(address))
                except Overloaded as full:
                    yield Answer.not_executed(GraphQLError(full.message, original_error=full))
                    return
                self.metrics.subscriptions.inc()
                stack.callback(self.metrics.subscriptions.dec)
                async for answer in answers:
                    yield answer


def _outcome(answer: Answer) -> Outcome:
    """The worst of the errors decides."""
    codes = {error.get("extensions", {}).get("code") for error in answer.errors}
    if "INTERNAL" in codes:
        return Outcome.FAILED
    if "OVERLOADED" in codes:
        return Outcome.OVERLOADED
    if "UNAVAILABLE" in codes:
        return Outcome.UNAVAILABLE
    return Outcome.ERRORS if answer.executed else Outcome.INVALID
