"""Turns a request's text into an operation that may run: parsed, limited, validated, and cached for later requests.

Only documents that passed every check are cached, so invalid ones cannot fill the cache. It is bounded in bytes, those
of compiled operations included. A document is cached, and its operations are compiled, when it is used for the second
time: graphql-core executes the first use, unless that would take longer than compiling. With a manifest of trusted
documents, no other document is ever parsed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from graphql import (
    DocumentNode,
    FragmentDefinitionNode,
    GraphQLError,
    GraphQLSchema,
    Location,
    NoSchemaIntrospectionCustomRule,
    OperationDefinitionNode,
    OperationType,
    Token,
    specified_rules,
    validate,
)
from graphql.language.parser import Parser

from server import Failed
from server.compiler import CompiledOperation
from server.execution.cost import Cost
from server.execution.document_cache import DocumentCache
from server.execution.document_source import LINE_END_BYTES, DocumentSource, count_line_ends
from server.execution.introspection import Introspection
from server.execution.lexer import DocumentLexer
from server.execution.limits import MAX_NAME, LimitExceeded, Limits, check_counts, check_depth, check_text, count_values
from server.execution.named_objects import NamedObjects
from server.execution.suggestions import suggest_for_any_name

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
    wants_plan: bool = False
    """Whether the client asks how the answer was made: `"extensions": {"plan": true}`."""


class InvalidOperation(Exception):
    """An operation that must not run, with the errors to answer."""

    def __init__(self, *errors: GraphQLError) -> None:
        super().__init__("; ".join(error.message for error in errors))
        self.errors = errors


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a document, ready to run."""

    schema: GraphQLSchema = field(compare=False, repr=False)
    document: DocumentNode
    hash: str
    name: str | None
    kind: OperationType
    cost: Cost = field(compare=False, repr=False)
    fixed_cost: int | None
    """The complexity if no variable changes it."""
    named: NamedObjects | None = field(compare=False, repr=False)
    """What its lists name to be read, if it has such lists."""
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
        schema: GraphQLSchema,
        limits: Limits | None = None,
        *,
        manifest: Mapping[str, str] | None = None,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        suggest_for_any_name()
        self._schema = schema
        self._limits = limits or Limits()
        self._cache: DocumentCache[tuple[str, bool], CheckedDocument] = DocumentCache(cache_bytes)
        self._trusted: dict[str, CheckedDocument] | None = None
        if manifest is not None:
            self._trusted = {key: self._check(text, introspection=True) for key, text in manifest.items()}
            for document in self._trusted.values():
                for operation in document.operations.values():
                    operation.compiled.compile_ahead()

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
        if operation.named is not None:
            self._check_named(operation.named, request.variables)
        cost = operation.cost(request.variables) if operation.fixed_cost is None else operation.fixed_cost
        if cost > self._limits.complexity:
            raise _bad_input(
                f"This operation asks for up to {cost} fields; at most {self._limits.complexity} are answered at once. "
                "Ask for smaller pages (`first`), or for less inside them."
            )
        is_subscription = operation.kind is OperationType.SUBSCRIPTION  # executed for each event
        if operation.compiled.is_postponed and (is_subscription or cost >= WORTH_COMPILING):
            operation.compiled.is_postponed = False
        return operation

    def _check_named(self, named: NamedObjects, variables: Mapping[str, Any]) -> None:
        most = self._limits.named
        if (count := named.count(variables, most)) > most:
            lists = " and ".join(named.lists)
            raise InvalidOperation(LimitExceeded(f"distinct ids in {lists} of the whole operation", count, most))

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

    def _check(self, text: str, *, introspection: bool) -> CheckedDocument:
        document, key = self._parse(text), hash_of(text)
        self._validate(document, introspection=introspection)
        fragments = {
            definition.name.value: definition
            for definition in document.definitions
            if isinstance(definition, FragmentDefinitionNode)
        }
        operations: dict[str | None, Operation] = {}
        for definition in document.definitions:
            if isinstance(definition, OperationDefinitionNode):
                name = definition.name.value if definition.name else None
                try:
                    check_depth(definition, fragments, self._limits)
                except GraphQLError as error:
                    raise InvalidOperation(error) from None
                compiled = CompiledOperation(self._schema, document, definition)
                cost = Cost(self._schema, definition, fragments)
                named = cost.named if cost.named.lists else None
                operations[name] = Operation(
                    self._schema,
                    document,
                    key,
                    name,
                    definition.operation,
                    cost,
                    cost.fixed,
                    named,
                    compiled,
                    Introspection.of(definition),
                )
        default = next(iter(operations.values())) if len(operations) == 1 else None
        size = DOCUMENT_BYTES + len(text) + LINE_END_BYTES * count_line_ends(text)
        return CheckedDocument(operations, default, size + TOKEN_BYTES * (document.token_count or 0))

    def _parse(self, text: str) -> DocumentNode:
        try:
            check_text(text, self._limits)
            source = DocumentSource(text)
            return _Parser(source, max_tokens=self._limits.tokens, lexer=DocumentLexer(source)).parse_document()
        except GraphQLError as error:
            raise InvalidOperation(_with_code(error, "GRAPHQL_PARSE_FAILED")) from None

    def _validate(self, document: DocumentNode, *, introspection: bool) -> None:
        try:
            check_counts(document, self._limits)
        except GraphQLError as error:
            raise InvalidOperation(error) from None
        rules = specified_rules if introspection else (*specified_rules, NoSchemaIntrospectionCustomRule)
        errors = validate(self._schema, document, rules, max_errors=MAX_ERRORS, hide_suggestions=not introspection)
        if errors:
            raise InvalidOperation(*(_with_code(error, "GRAPHQL_VALIDATION_FAILED") for error in errors))


class _Parser(Parser):
    """graphql-core's parser. Its nodes do not keep the tokens they were read from, a third of a document's memory."""

    def loc(self, start_token: Token) -> Location | None:
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
    return InvalidOperation(GraphQLError(message, extensions={"code": code}))


def _with_code(error: GraphQLError, code: str) -> GraphQLError:
    if not error.extensions:
        error.extensions = {"code": code}
    return error


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class BadManifest(Failed):
    """The manifest of trusted documents cannot be used; the message says why."""


def read_manifest(path: Path) -> Mapping[str, str]:
    """The trusted documents of a file: a JSON object from the SHA-256 of each text to the text."""
    try:
        manifest = orjson.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BadManifest(f"The manifest {path} cannot be read as JSON: {error}") from None
    if not isinstance(manifest, dict) or not all(isinstance(text, str) for text in manifest.values()):
        raise BadManifest(f"The manifest {path} is not an object from hashes to documents.")
    trusted = {}
    for key, text in manifest.items():
        bare = key.removeprefix("sha256:")
        if bare != hash_of(text):
            raise BadManifest(f"The manifest {path} has a document under {key}, but its SHA-256 is {hash_of(text)}.")
        trusted[bare] = text
    return trusted


def write_manifest(texts: Iterable[str]) -> str:
    """A manifest of these documents that `read_manifest` reads."""
    manifest = {f"sha256:{hash_of(text)}": text for text in texts}
    return orjson.dumps(manifest, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()
