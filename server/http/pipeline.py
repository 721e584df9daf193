"""What every operation goes through, whether it comes by POST, GET, Server-Sent Events or WebSocket.

request read ─ viewer identified ─ document found ─ cost checked ─ executed ─ response
    4xx              401                400             400        deadline
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import ExitStack, aclosing, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice, zip_longest
from typing import Any, Final, NamedTuple

import structlog
from graphql import GraphQLError

from datastore.dynamo import Budget, CallQueue, RateLimit, request_budget
from datastore.refusals import Overloaded
from resolvers.requests.context import Context, Kind, Role, Services, Viewer
from resolvers.values.network_addresses import network
from server.auth.identification import Identification, RawHeaders
from server.execution.answers import LARGEST_ANSWER, Answer, OutOfTime, format_error, run, subscribe
from server.execution.documents import Documents, GraphQLRequest, Operation, Turns
from server.execution.limits import LimitExceeded
from server.settings import Introspection, Settings
from server.telemetry import Metrics, Outcome, Traces

# ── quotas ──

_told = RateLimit(1, 60.0)
_log = structlog.get_logger("ringside.limits")


def tell_full(limit: str, total: int, of_address: int) -> None:
    """Name a limit that refuses requests in the log, once a minute: clients could fill that."""
    if not _told.hit(limit, time.monotonic()):
        _log.warning("a limit is reached, and what comes is refused", limit=limit, total=total, of_address=of_address)


class Quota:
    """How many of a kind may be open at once; of an IPv6 client, its /64 counts."""

    def __init__(self, kind: str, total: int, per_address: int) -> None:
        self.open = 0
        self._kind = kind
        self._total = total
        self._per_address = per_address
        self._of_address: dict[str, int] = {}

    def is_full(self, address: str) -> bool:
        """Whether one more of this address would be refused."""
        of_address = self._of_address.get(network(address), 0)
        is_full = self.open >= self._total or of_address >= self._per_address
        if is_full:
            tell_full(self._kind, self.open, of_address)
        return is_full

    @contextmanager
    def held(self, address: str) -> Iterator[None]:
        """Count one more during the block; Overloaded if there are enough."""
        if self.is_full(address):
            raise Overloaded(retry_after=1.0)
        client = network(address)
        self.open += 1
        self._of_address[client] = self._of_address.get(client, 0) + 1
        try:
            yield
        finally:
            self.open -= 1
            self._of_address[client] -= 1
            if not self._of_address[client]:
                del self._of_address[client]


LARGEST_SUBSCRIPTION = 16_384
"""Bytes of its request, as many as a GET may have. One address may have hundreds of subscriptions."""
BODY_PIECES = 1024
BODY_PIECES_OF_ADDRESS = 256
"""How many whole pieces of 64 KiB may have come of bodies whose clients have not sent the end.

A container of 512 MiB has room for them. A request counts as in flight when it is complete, so until then nothing else
bounds its memory: 500 connections of one client held 500 MB for half a minute.
"""


# ── request turns ──
# The order in which requests begin: a few in each iteration of the event loop, and clients take turns.
#
# What a request does before it first waits for something can take milliseconds. When two hundred connections send one
# at the same moment and all of them begin in one iteration, new connections are accepted, and `/livez` is answered, a
# second or two later, and again after the next such iteration. So requests begin for some milliseconds only, and then
# the event loop looks for what else has come. However many a client has sent, another one's request begins in this
# iteration or the next. The requests that are the first on their connections take turns with the other ones of their
# client.

SLICE_SECONDS = 0.01
LONGEST_SLICE_SECONDS = 0.05
"""The shortest and longest time for which requests begin in one iteration of the event loop: in between, as long as the
rest of the last iteration took, since refusing takes time too and must leave some for answers. One always begins."""

MAX_CALLED = 64
"""How many requests are woken for an iteration. Those for which there is no time are woken again for the next."""


class Client(NamedTuple):
    """Whose turn it is."""

    network: str
    is_first: bool = False
    """Whether nothing has been answered on the request's connection."""


class RequestTurns:
    """The requests of a process that wait for their turn. Its owner bounds their number."""

    def __init__(self) -> None:
        self.longest_slice = LONGEST_SLICE_SECONDS
        """Requests begin in an iteration for so long at most, and one of them always does."""
        self._ends_at: float | None = None
        """Until when requests begin in this iteration; None if the next one that begins decides."""
        self._rests_from = 0.0
        self._is_running = False
        """Whether `_iterate` is called in the next iteration."""
        self._waiting: OrderedDict[Client, deque[asyncio.Event]] = OrderedDict()
        """Each client's waiting requests, oldest first; the client whose latest turn is the longest ago comes first."""

    async def take(self, client: Client) -> None:
        """Wait until the client's turn has come: not at all, if nobody waits and there is time."""
        if not self._waiting and self._has_time():
            return
        if not self._is_running:
            self._is_running = True
            self._rests_from = time.perf_counter()
            asyncio.get_running_loop().call_soon(self._iterate)
        called = asyncio.Event()
        self._waiting.setdefault(client, deque()).append(called)
        try:
            while True:
                await called.wait()
                if self._has_time():
                    self._waiting.move_to_end(client)
                    return
                called.clear()
        finally:
            requests = self._waiting[client]
            requests.remove(called)
            if not requests:
                del self._waiting[client]

    def _has_time(self) -> bool:
        now = time.perf_counter()
        if self._ends_at is None:
            self._ends_at = now + min(max(SLICE_SECONDS, now - self._rests_from), self.longest_slice)
            return True
        return now < self._ends_at

    def _iterate(self) -> None:
        """After this, those who were called have begun or will be called again."""
        self._is_running = bool(self._waiting)
        if not self._is_running:
            return
        self._ends_at = None
        in_turn = chain.from_iterable(zip_longest(*self._waiting.values()))
        for called in islice(filter(None, in_turn), MAX_CALLED):
            called.set()
        self._rests_from = time.perf_counter()
        asyncio.get_running_loop().call_soon(self._iterate)


# ── pipeline ──

MAX_CALLS = 2_000
MAX_READ_UNITS = 5_000
"""What a query may ask of the engine. The complexity bounds only its answer, for which some fields read much more."""

DEAR = 1_000
"""The complexity from which on answers are made in turns: half a megabyte is used while the dearest are made."""
DEAR_AT_ONCE = 8
"""So many are made at the same moment, or the memory of a process would depend on how many requests arrive together."""

LEAST_OF_ADDRESS = 16
"""An address may always have as many requests in flight, and as many of its new documents may wait to be checked."""


def most_of_address(max_in_flight: int) -> int:
    """How many requests in flight one address may have, and how many of its new documents may wait to be checked."""
    return max(LEAST_OF_ADDRESS, max_in_flight // 2)


_NOBODY: Final = Viewer(id="", kind=Kind.VISITOR)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What all operations of a process go through, and the objects that it needs."""

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
    bodies: Quota = field(default_factory=partial(Quota, "unfinished bodies", BODY_PIECES, BODY_PIECES_OF_ADDRESS))
    """Of what has come of them, in pieces."""
    dear: CallQueue = field(default_factory=partial(CallQueue, DEAR_AT_ONCE, most_of_request=1))
    """Of making the answers of dear operations. As many wait as may be in flight."""
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
        with self.requests.held(address):
            self.metrics.count_in_flight(1)
            try:
                yield
            finally:
                self.metrics.count_in_flight(-1)

    @contextmanager
    def kept_open(self, quota: Quota, address: str) -> Iterator[None]:
        """Count a stream or subscription during the block; Overloaded, which the metrics tell, if there are enough."""
        with ExitStack() as stack:
            try:
                stack.enter_context(quota.held(address))
            except Overloaded:
                self.metrics.finished(None, Outcome.OVERLOADED, 0.0)
                raise
            yield

    def budget(self, ctx: Context) -> Budget:
        """A new deadline and allowance, for one request or one event of a stream."""
        return request_budget(self.settings.request_timeout, MAX_CALLS, MAX_READ_UNITS, ctx.client)

    @asynccontextmanager
    async def plain_request(self, address: str) -> AsyncIterator[Context]:
        """The context of a request outside GraphQL, which begins in its turn and is in flight during the block.

        Overloaded if there are enough. Its calls to the table take turns as its network's, within a deadline and an
        allowance of its own.
        """
        ctx = Context(self.services, _NOBODY, address)
        with self.in_flight(address), self.budget(ctx):
            await self.request_turns.take(Client(network(address)))
            yield ctx

    async def operation(self, request: GraphQLRequest, client: Client, *, introspection: bool) -> Operation:
        """The operation that a request asks for; Overloaded if too many new documents wait to be checked."""
        document = self.documents.find(request, introspection=introspection)
        if document is None:
            key, most = (request.query, introspection), most_of_address(self.settings.max_in_flight)
            waiting, of_address = self.turns.waiting, self.turns.waiting_of[client.network]
            if key not in self.turns and (waiting >= 2 * most or of_address >= most):
                tell_full("new documents", waiting, of_address)
                raise Overloaded
            check = partial(self.documents.check, request, introspection=introspection)
            document = await self.turns.take(key, check, client.network)
            await self.request_turns.take(client)  # again, as in `_begin_again`
        return self.documents.select(document, request)

    async def _begin_again(self, ctx: Context) -> None:
        """Wait for another turn: all who waited for the same document, or event, go on at the same moment."""
        await self.request_turns.take(Client(network(ctx.address)))

    async def execute(
        self,
        operation: Operation,
        request: GraphQLRequest,
        ctx: Context,
        *,
        suggestions: bool,
        headers: RawHeaders = (),
    ) -> Answer:
        """The answer of a query or mutation, within its deadline, traced, counted and logged."""
        began = time.perf_counter()
        span = self.traces and self.traces.operation(operation.kind, operation.name, operation.hash, headers)
        budget = self.budget(ctx)
        with span or nullcontext() as set_outcome, budget:
            try:
                # A little later than the deadline of engine calls, whose own error says more.
                async with asyncio.timeout_at(budget.ends + 0.5):
                    answer = await self._run(operation, request, ctx, budget, suggestions=suggestions)
            except TimeoutError:
                answer = Answer(errors=[format_error(OutOfTime())])
            outcome = _outcome(answer, ctx) if answer.errors or ctx.table_failure else Outcome.OK
            if set_outcome:
                set_outcome(outcome)
        seconds, spent = time.perf_counter() - began, budget.spent
        units = {"read_units": spent.read_units, "write_units": spent.write_units}
        by_member = ctx.viewer.kind is not Kind.VISITOR
        self.metrics.finished(
            operation.name,
            outcome,
            seconds,
            engine_calls=spent.calls,
            by_member=by_member,
            refused=ctx.refused,
            **units,
        )
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

    async def _run(
        self, operation: Operation, request: GraphQLRequest, ctx: Context, budget: Budget, *, suggestions: bool
    ) -> Answer:
        """The operation's answer, made in a turn if it is dear."""
        caller = await self.dear.take_turn(budget.callers) if request.complexity >= DEAR else None
        try:
            answer = await run(
                operation,
                request.variables,
                ctx,
                self.turns,
                suggestions=suggestions,
                begin=partial(self._begin_again, ctx),
                fell_back=self.metrics.fell_back,
            )
            return answer.within(LARGEST_ANSWER) if request.complexity >= DEAR else answer
        finally:
            if caller is not None:
                self.dear.end_turn(caller)

    async def subscribe(
        self, operation: Operation, request: GraphQLRequest, ctx: Context, *, suggestions: bool
    ) -> Answer | AsyncGenerator[Answer, None]:
        """The events of a subscription, counted while it is open, or the answer that says why there are none.

        LimitExceeded if the request is large: it is held as long as the subscription.
        """
        if request.size > LARGEST_SUBSCRIPTION:
            raise LimitExceeded("bytes in the request of a subscription", request.size, LARGEST_SUBSCRIPTION)
        answers = await subscribe(
            operation,
            request.variables,
            ctx,
            partial(self.budget, ctx),
            self.turns,
            suggestions=suggestions,
            begin=partial(self._begin_again, ctx),
            fell_back=self.metrics.fell_back,
        )
        if isinstance(answers, Answer):
            self._refused(answers, operation, ctx)
            return answers
        return self._counted(answers, operation, ctx, LARGEST_ANSWER if request.complexity >= DEAR else None)

    async def _counted(
        self, answers: AsyncGenerator[Answer, None], operation: Operation, ctx: Context, most: int | None
    ) -> AsyncGenerator[Answer, None]:
        """The events, while the subscription is counted. An event is no request: only a fault is counted as one."""
        async with aclosing(answers):
            with ExitStack() as stack:
                try:
                    stack.enter_context(self.kept_open(self.subscriptions, ctx.address))
                except Overloaded as full:
                    yield Answer.not_executed(GraphQLError(full.message, original_error=full))
                    return
                self.metrics.subscriptions.inc()
                stack.callback(self.metrics.subscriptions.dec)
                async for answer in answers:
                    if not answer.executed:
                        self._refused(answer, operation, ctx)
                    elif answer.errors and _outcome(answer, ctx) is Outcome.FAILED:
                        self.metrics.finished(operation.name, Outcome.FAILED, 0.0)
                    yield answer if most is None else answer.within(most)

    def _refused(self, answer: Answer, operation: Operation, ctx: Context) -> None:
        """Count and log a subscription that this answer refuses or ends."""
        outcome, reason = _outcome(answer, ctx), answer.errors[0]["extensions"]["code"]
        self.metrics.finished(operation.name, outcome, 0.0)
        kind = operation.kind.value
        self.log.info("refused", operation=operation.name, kind=kind, outcome=outcome.value, reason=reason)


OUTCOMES = {
    "INTERNAL": Outcome.FAILED,
    Overloaded.code: Outcome.OVERLOADED,
    "UNAVAILABLE": Outcome.UNAVAILABLE,
    "UNAUTHENTICATED": Outcome.UNAUTHENTICATED,
}
"""By the codes of errors, from the worst."""


def _outcome(answer: Answer, ctx: Context) -> Outcome:
    """The outcome of an answer: its worst error decides, or that the table failed a mutation, whose refusal is data."""
    codes = {ctx.table_failure, *(error.get("extensions", {}).get("code") for error in answer.errors)}
    otherwise = Outcome.ERRORS if answer.executed else Outcome.INVALID
    return next((outcome for code, outcome in OUTCOMES.items() if code in codes), otherwise)
