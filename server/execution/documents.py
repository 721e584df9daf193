"""Turns a request's text into an operation that may run: parsed, limited, validated, and cached for later requests.

Only documents that passed every check are cached, so invalid ones cannot fill the cache. A document is cached, and its
operations are compiled, when it is used for the second time: graphql-core executes the first use, unless that would
take longer than compiling. With a manifest of trusted documents, no other document is ever parsed, except those of the
service's own pages: these are known by their hashes in any case, and then treated like any other text.

The cache is bounded in bytes, those of compiled operations included, and a flood of new documents evicts none that are
in frequent use.

    first use ── remembered ── second use ── newcomers ── used again ── frequent

Of a document that is used for the first time, only a hash is remembered, so what clients send once takes no space and
gives the garbage collector nothing to look through. From its second use on, it is kept. It joins the newcomers, which
have a quarter of the space for all of them and give up the least recently used one. One that is used again moves to the
frequent ones if these have room, or if it was used more often than those that make room for it: the least recently used
ones, which become newcomers again. So clients that send each document a few times evict each other's only. All counts
are halved every 10,000 uses, or yesterday's frequent documents would stay. Threads may use the same cache.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import re
import sys
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

import graphql
import orjson
from graphql.language.parser import Parser
from msgspec import Raw

from datastore.dynamo import Caller, Callers, CallQueue, SingleFlight, shared_context
from schema import schema as ringside_schema
from server import Failed
from server.compiler import CompiledOperation, encode_json
from server.execution.lexer import LINE_END_BYTES, DocumentLexer, DocumentSource, count_line_ends, suggest_for_any_name
from server.execution.limits import (
    MAX_NAME,
    Cost,
    InvalidOperation,
    LimitExceeded,
    Limits,
    NamedObjects,
    check_counts,
    check_depth,
    check_introspection,
    check_text,
    count_values,
)
from server.settings import Settings

# ── document cache ──

HALVE_AFTER = 10_000
NEWCOMERS = 4
"""Newcomers have one part in four."""
REMEMBERED = 20_000
"""So many first uses are remembered, at 100 bytes each."""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass(slots=True, eq=False)
class _Entry(Generic[Value]):
    value: Value
    size: int
    uses: int = 1


@dataclass(slots=True, eq=False)
class _Segment(Generic[Key, Value]):
    max_bytes: int
    bytes: int = 0
    entries: OrderedDict[Key, _Entry[Value]] = field(default_factory=OrderedDict)
    """The least recently used first."""

    def add(self, key: Key, entry: _Entry[Value]) -> None:
        self.entries[key] = entry
        self.bytes += entry.size

    def remove(self, key: Key) -> _Entry[Value]:
        entry = self.entries.pop(key)
        self.bytes -= entry.size
        return entry


class DocumentCache(Generic[Key, Value]):
    """Values by key, with the bytes that each occupies."""

    def __init__(self, max_bytes: int) -> None:
        self._newcomers: _Segment[Key, Value] = _Segment(max_bytes // NEWCOMERS)
        self._frequent: _Segment[Key, Value] = _Segment(max_bytes - max_bytes // NEWCOMERS)
        self._remembered: OrderedDict[int, None] = OrderedDict()
        """Hashes of keys, the longest remembered first."""
        self._uses = 0
        self._lock = Lock()

    def __contains__(self, key: Key) -> bool:
        return key in self._newcomers.entries or key in self._frequent.entries

    @property
    def bytes(self) -> int:
        return self._newcomers.bytes + self._frequent.bytes

    def get(self, key: Key) -> Value | None:
        """The value, which counts as used."""
        with self._lock:
            entry = self._frequent.entries.get(key)
            if entry is not None:
                self._frequent.entries.move_to_end(key)
                entry.uses += 1
            else:
                entry = self._newcomers.entries.get(key)
                if entry is None:
                    return None
                entry.uses += 1
                self._promote(key, entry)
            self._uses += 1
            if self._uses >= HALVE_AFTER:
                self._halve()
            return entry.value

    def remember(self, key: Key) -> bool:
        """Remember that the key was used; whether that was remembered already."""
        with self._lock:
            hash_ = hash(key)
            if hash_ in self._remembered:
                return True
            self._remembered[hash_] = None
            if len(self._remembered) > REMEMBERED:
                self._remembered.popitem(last=False)
            return False

    def put(self, key: Key, value: Value, size: int) -> None:
        """Add a value that is not there."""
        with self._lock:
            self._newcomers.add(key, _Entry(value, size))
            self._trim()

    def grow(self, key: Key, size: int) -> None:
        """A value occupies more bytes than before."""
        with self._lock:
            for segment in (self._frequent, self._newcomers):
                entry = segment.entries.get(key)
                if entry is not None:
                    entry.size += size
                    segment.bytes += size
            self._trim()

    def _promote(self, key: Key, entry: _Entry[Value]) -> None:
        """Move a newcomer to the frequent entries, if none there that is used as often would have to go."""
        self._newcomers.entries.move_to_end(key)
        while self._frequent.bytes + entry.size > self._frequent.max_bytes:
            oldest_key, oldest = next(iter(self._frequent.entries.items()), (key, entry))
            if oldest.uses >= entry.uses:
                return
            self._newcomers.add(oldest_key, self._frequent.remove(oldest_key))
        self._frequent.add(key, self._newcomers.remove(key))
        self._trim()

    def _trim(self) -> None:
        while self._frequent.bytes > self._frequent.max_bytes:
            key = next(iter(self._frequent.entries))
            self._newcomers.add(key, self._frequent.remove(key))
        while self._newcomers.bytes > self._newcomers.max_bytes:
            self._newcomers.remove(next(iter(self._newcomers.entries)))

    def _halve(self) -> None:
        self._uses = 0
        for segment in (self._frequent, self._newcomers):
            for entry in segment.entries.values():
                entry.uses //= 2


# ── introspection ──
# Remembers the answers of operations that ask for nothing but the schema, which is the same as long as a process runs.
#
# Executing one takes milliseconds, and graphql-core executes them all. What is remembered belongs to the operation, as
# its compiled code does: it is kept and dropped with the document, counts in the cache's bytes, and was asked for by
# somebody who may introspect.

_FIELDS = frozenset({"__schema", "__type", "__typename"})
_INTROSPECTS = re.compile(r"__(?:schema|type)\b")


@dataclass(slots=True, eq=False)
class Introspection:
    """The data of the answer of one operation, once it is known, as JSON."""

    data: Raw | None = None
    on_remembered: Callable[[int], None] = lambda _: None
    """Called with the bytes that the data occupies."""

    @classmethod
    def of(cls, operation: graphql.OperationDefinitionNode) -> Introspection | None:
        """If no variable, and no field but the schema's own, decides what this operation's answer is."""
        selections = operation.selection_set.selections
        is_pure = all(isinstance(node, graphql.FieldNode) and node.name.value in _FIELDS for node in selections)
        is_query = operation.operation is graphql.OperationType.QUERY
        return cls() if is_query and is_pure and not operation.variable_definitions else None

    def remember(self, data: dict[str, Any]) -> None:
        """Keep the data of an answer without errors."""
        if self.data is None:
            self.data = Raw(encode_json(data))
            self.on_remembered(len(self.data))


# ── turns ──
# Turns for work that would block the event loop: checking and compiling documents takes up to 50 ms each.
#
# The work of a turn runs in a thread, where Python lets the event loop interrupt it (server/http/process.py). One turn
# follows the other, with a pause as long as the turn between them: such work takes at most half of a process, however
# many new documents a client sends. Requests for the same document wait for the same turn. Otherwise clients take turns
# too, so that nobody waits for all that another one has sent.

Result = TypeVar("Result")


class Turns:
    """Which work may run next: of each client what came first."""

    def __init__(self) -> None:
        self.waiting_of: Counter[Hashable] = Counter()
        """The pieces of work of each client that wait for their turn, or for the end of it."""
        self._work: SingleFlight[Hashable, Any] = SingleFlight(shared_context)
        self._queue = CallQueue(1, most_of_request=1)
        self._next_at = 0.0

    @property
    def waiting(self) -> int:
        return self.waiting_of.total()

    def __contains__(self, key: Hashable) -> bool:
        """Whether this work waits for its turn already."""
        return key in self._work

    async def take(self, key: Hashable, work: Callable[[], Result], client: Hashable = "") -> Result:
        """The result of this key's work, done in a turn of its own, once for all who ask meanwhile."""
        result: Result = await self._work.run(key, partial(self._carry_out, work, client))
        return result

    async def _carry_out(self, work: Callable[[], Result], client: Hashable) -> Result:
        self.waiting_of[client] += 1
        try:
            caller = await self._queue.take_turn(Callers(Caller(client, None)))
            try:
                await asyncio.sleep(max(0.0, self._next_at - time.perf_counter()))
                began = time.perf_counter()
                try:
                    return await asyncio.to_thread(_without_collector, work)
                finally:
                    ended = time.perf_counter()
                    self._next_at = ended + (ended - began)
            finally:
                self._queue.end_turn(caller)
        finally:
            self.waiting_of -= Counter([client])


def _without_collector(work: Callable[[], Result]) -> Result:
    """The work's result. The garbage collector rests meanwhile, for a moment.

    What the work uses is needed until its end. The collector would only move it to where it looks least often, so that
    it stayed in memory long after.
    """
    gc.disable()
    try:
        return work()
    finally:
        gc.enable()


# ── documents ──

CACHE_BYTES = 64 * 2**20
DOCUMENT_BYTES = 10_000
TOKEN_BYTES = 400
"""A checked document occupies 10 KB and 400 bytes a token (measured in docs/decisions/compiled-execution.md)."""
WORTH_COMPILING = 1_000
"""An operation of this cost is compiled at its first use: graphql-core would take some 10 ms for it."""
MAX_ERRORS = 10


@dataclass(slots=True, eq=False)
class GraphQLRequest:
    """The parameters of a request, whichever protocol it came by."""

    query: str | None
    operation_name: str | None = None
    variables: Mapping[str, Any] = field(default_factory=dict)
    document_id: str | None = None
    persisted_hash: str | None = None
    """The hash in `extensions.persistedQuery`, with or without the query's text."""
    size: int = 0
    """How many bytes it was read from."""
    wants_plan: bool = False
    """Whether the client asks how the answer was made: `"extensions": {"plan": true}`."""
    complexity: int = 0
    """Of the operation that it asks for, once that is selected."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a document, ready to run."""

    schema: graphql.GraphQLSchema = field(compare=False, repr=False)
    document: graphql.DocumentNode
    hash: str
    name: str | None
    kind: graphql.OperationType
    cost: Cost = field(compare=False, repr=False)
    compiled: CompiledOperation = field(compare=False, repr=False)
    introspection: Introspection | None = field(compare=False, repr=False)
    """Where its answer is remembered, if it asks for nothing but the schema."""


@dataclass(frozen=True, slots=True)
class CheckedDocument:
    operations: Mapping[str | None, Operation]
    default: Operation | None
    """The only operation of the document, which a request need not name."""
    size: int
    """The bytes that it occupies, without those of compiled operations."""


class Documents:
    """The documents that this process may run, and its cache of those that it has checked."""

    def __init__(
        self,
        schema: graphql.GraphQLSchema,
        limits: Limits | None = None,
        *,
        manifest: Mapping[str, str] | None = None,
        own: Mapping[str, str] | None = None,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        """`manifest` has the trusted documents, `own` those of the service's pages, both by their hashes."""
        suggest_for_any_name()
        self._schema = schema
        self._own = own or {}
        self._limits = limits or Limits()
        self._cache: DocumentCache[tuple[str, bool], CheckedDocument] = DocumentCache(cache_bytes)
        self._trusted: dict[str, CheckedDocument] | None = None
        if manifest is not None:
            trusted = {**self._own, **manifest}
            self._trusted = {key: self._check_trusted(key, text) for key, text in trusted.items()}
            for document in self._trusted.values():
                for operation in document.operations.values():
                    operation.compiled.compile_ahead()

    @classmethod
    def of(cls, settings: Settings, manifest: Path | None = None, own: Mapping[str, str] | None = None) -> Documents:
        """Those of this service's schema, within the limits of the settings; `manifest` is a file."""
        return cls(
            ringside_schema._schema,  # noqa: SLF001 - Strawberry keeps graphql-core's schema there
            Limits(tokens=settings.max_document_tokens, complexity=settings.max_complexity),
            manifest=None if manifest is None else read_manifest(manifest),
            own=own,
            cache_bytes=settings.document_cache_bytes,
        )

    @property
    def trusted_names(self) -> set[str]:
        """The names of the manifest's operations."""
        documents = (self._trusted or {}).values()
        return {name for document in documents for name in document.operations if name is not None}

    def operation(self, request: GraphQLRequest, *, introspection: bool) -> Operation:
        """The operation that a request asks for, of a document that is known or checked now."""
        document = self.find(request, introspection=introspection)
        return self.select(document or self.check(request, introspection=introspection), request)

    def find(self, request: GraphQLRequest, *, introspection: bool) -> CheckedDocument | None:
        """The document of a request; None if it has to be checked, InvalidOperation if there can be none."""
        if self._trusted is not None:
            return _find_trusted(self._trusted, request)
        request.query = request.query or self._own.get(request.document_id or request.persisted_hash or "")
        if request.query:
            return self._cache.get((request.query, introspection))
        if request.persisted_hash or request.document_id:
            raise _refused("PersistedQueryNotSupported", "PERSISTED_QUERY_NOT_SUPPORTED")
        raise _bad_input("There is no `query` in the request.")

    def select(self, document: CheckedDocument, request: GraphQLRequest) -> Operation:
        """The operation of a document that a request asks for; InvalidOperation unless it is within the limits."""
        name = request.operation_name
        operation = document.default if name is None else document.operations.get(name)
        if operation is None:
            raise _bad_input(_unknown_operation(document, name))
        most = self._limits.values + 1  # with the object that holds them
        if count_values(request.variables, most) > most:
            raise _bad_input(f"The variables hold more than {self._limits.values} values. Send fewer at once.")
        self._check_named(operation.cost.named, request.variables)
        cost = request.complexity = operation.cost(request.variables)
        if cost > self._limits.complexity:
            raise _bad_input(
                f"This operation asks for up to {cost} fields; at most {self._limits.complexity} are answered at once. "
                "Ask for smaller pages (`first`), or for less inside them."
            )
        is_subscription = operation.kind is graphql.OperationType.SUBSCRIPTION  # executed for each event
        if operation.compiled.is_postponed and (is_subscription or cost >= WORTH_COMPILING):
            operation.compiled.is_postponed = False
        return operation

    def _check_named(self, named: NamedObjects, variables: Mapping[str, Any]) -> None:
        most = self._limits.named
        if (count := named.count(variables, most)) > most:
            lists = " and ".join(named.lists)
            raise LimitExceeded(f"distinct ids in {lists} of the whole operation", count, most)

    def check(self, request: GraphQLRequest, *, introspection: bool) -> CheckedDocument:
        """Check the document of a request, and cache it at its second use; InvalidOperation if it is refused."""
        text = request.query or ""
        key = (text, introspection)
        document = self._check(text, introspection=introspection)
        is_second_use = self._cache.remember(key)
        if is_second_use:
            self._cache.put(key, document, document.size)
        for operation in document.operations.values():
            operation.compiled.is_postponed = not is_second_use
            operation.compiled.on_compiled = partial(self._cache.grow, key)
            if operation.introspection is not None:
                operation.introspection.on_remembered = partial(self._cache.grow, key)
        return document

    def check_to_trust(self, text: str) -> None:
        """InvalidOperation for a document that no request could run; one whose variables decide that passes."""
        request = GraphQLRequest(text)
        document = self._check(text, introspection=True)
        for name, operation in document.operations.items():
            if operation.cost.is_fixed:
                request.operation_name = name
                self.select(document, request)

    def _check_trusted(self, key: str, text: str) -> CheckedDocument:
        try:
            return self._check(text, introspection=True)
        except InvalidOperation as invalid:
            raise Failed(
                f"The manifest's document {key} is not valid: {invalid}. `ringside manifest` makes one that is."
            ) from None

    def _check(self, text: str, *, introspection: bool) -> CheckedDocument:
        document, key = self._parse(text), hash_of(text)
        self._validate(document, introspection=introspection)
        fragments = {
            definition.name.value: definition
            for definition in document.definitions
            if isinstance(definition, graphql.FragmentDefinitionNode)
        }
        operations: dict[str | None, Operation] = {}
        for definition in document.definitions:
            if isinstance(definition, graphql.OperationDefinitionNode):
                name = definition.name.value if definition.name else None
                check_depth(definition, fragments, self._limits)
                if _INTROSPECTS.search(text):
                    check_introspection(self._schema, definition, fragments, self._limits)
                operations[name] = Operation(
                    self._schema,
                    document,
                    key,
                    name,
                    definition.operation,
                    Cost(self._schema, definition, fragments),
                    CompiledOperation(self._schema, document, definition),
                    Introspection.of(definition),
                )
        default = next(iter(operations.values())) if len(operations) == 1 else None
        # Its strings are kept, too. One emoji makes each letter of a text take four bytes.
        size = DOCUMENT_BYTES + 2 * sys.getsizeof(text) + LINE_END_BYTES * count_line_ends(text)
        return CheckedDocument(operations, default, size + TOKEN_BYTES * (document.token_count or 0))

    def _parse(self, text: str) -> graphql.DocumentNode:
        check_text(text, self._limits)
        source = DocumentSource(text)
        try:
            return _Parser(source, max_tokens=self._limits.tokens, lexer=DocumentLexer(source)).parse_document()
        except graphql.GraphQLError as error:
            raise InvalidOperation(_with_code(error, "GRAPHQL_PARSE_FAILED")) from None

    def _validate(self, document: graphql.DocumentNode, *, introspection: bool) -> None:
        check_counts(document, self._limits)
        forbidden = () if introspection else (graphql.NoSchemaIntrospectionCustomRule,)
        rules = (*graphql.specified_rules, *forbidden)
        errors = graphql.validate(
            self._schema, document, rules, max_errors=MAX_ERRORS, hide_suggestions=not introspection
        )
        if errors:
            raise InvalidOperation(*(_with_code(error, "GRAPHQL_VALIDATION_FAILED") for error in errors))


class _Parser(Parser):
    """graphql-core's parser. Its nodes do not keep the tokens they were read from, a third of a document's memory."""

    def loc(self, start_token: graphql.Token) -> graphql.Location | None:
        location = super().loc(start_token)
        if location is not None:
            del location.start_token, location.end_token
        return location


def _find_trusted(trusted: Mapping[str, CheckedDocument], request: GraphQLRequest) -> CheckedDocument:
    """The document of the manifest by the id, by the persisted query's hash, or by the text.

    The messages of persisted queries are what clients look for. After PersistedQueryNotFound they send the text, whose
    refusal then says that it is not registered.
    """
    keys = [key for key in (request.document_id, request.persisted_hash) if key]
    if request.query and not request.document_id:
        keys.append(hash_of(request.query))
    for key in keys:
        if document := trusted.get(key):
            return document
    if keys and not request.query:
        raise _refused("PersistedQueryNotFound", "PERSISTED_QUERY_NOT_FOUND")
    raise _bad_input("Only the documents of this deployment's manifest are run, and this is not one of them.")


def _unknown_operation(document: CheckedDocument, name: str | None) -> str:
    if name is not None:
        name = name if len(name) <= MAX_NAME else name[:MAX_NAME] + "…"
        return f"There is no operation called {name!r} in the document."
    if document.operations:
        return "The document has several operations: name the one to run."
    return "The document has no operation."


def _bad_input(message: str) -> InvalidOperation:
    return _refused(message, "BAD_USER_INPUT")


def _refused(message: str, code: str) -> InvalidOperation:
    return InvalidOperation(graphql.GraphQLError(message, extensions={"code": code}))


def _with_code(error: graphql.GraphQLError, code: str) -> graphql.GraphQLError:
    if not error.extensions:
        error.extensions = {"code": code}
    return error


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_manifest(path: Path) -> Mapping[str, str]:
    """The trusted documents of a file, a JSON object from the SHA-256 of each text to the text; or Failed."""
    try:
        manifest = orjson.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise Failed(f"The manifest {path} cannot be read as JSON: {error}") from None
    if not isinstance(manifest, dict) or not all(isinstance(text, str) for text in manifest.values()):
        raise Failed(f"The manifest {path} is not an object from hashes to documents.")
    trusted = {}
    for key, text in manifest.items():
        bare = key.removeprefix("sha256:")
        if bare != hash_of(text):
            raise Failed(f"The manifest {path} has a document under {key}, but its SHA-256 is {hash_of(text)}.")
        trusted[bare] = text
    return trusted


def write_manifest(texts: Iterable[str]) -> str:
    """A manifest of these documents that `read_manifest` reads."""
    manifest = {f"sha256:{hash_of(text)}": text for text in texts}
    return orjson.dumps(manifest, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()
