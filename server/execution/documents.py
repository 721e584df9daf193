"""Turns a request's text into an operation that may run: parsed, limited, validated, and cached for the next request.

Only documents that passed every check are cached, so invalid ones cannot fill the cache. It is bounded by their number
and size. With a manifest of trusted documents, no other document is ever parsed.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from graphql import (
    DocumentNode,
    FragmentDefinitionNode,
    GraphQLError,
    GraphQLSchema,
    NoSchemaIntrospectionCustomRule,
    OperationDefinitionNode,
    OperationType,
    parse,
    specified_rules,
    validate,
)

from server.compiler import CompiledOperation
from server.execution.limits import Cost, Limits, check_counts, check_depth, check_nesting

MAX_DOCUMENTS = 500
"""A cached document of a page takes about 46 KB and its compiled operation 25 KB, so all of them stay below 40 MB."""
MAX_CHARACTERS = 8_000_000
MAX_ERRORS = 10


@dataclass(slots=True, eq=False)
class GraphQLRequest:
    """The parameters of a request, whichever protocol it came by."""

    query: str | None
    operation_name: str | None = None
    variables: Mapping[str, Any] = field(default_factory=dict)
    document_id: str | None = None
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
    compiled: CompiledOperation = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class _Document:
    operations: Mapping[str | None, Operation]
    default: Operation | None
    """The only operation of the document, which a request need not name."""
    size: int


class Documents:
    """The documents that this process may run, and its cache of those that it has checked."""

    def __init__(
        self, schema: GraphQLSchema, limits: Limits | None = None, *, manifest: Mapping[str, str] | None = None
    ) -> None:
        self._schema = schema
        self._limits = limits or Limits()
        self._cached: OrderedDict[tuple[str | None, bool], _Document] = OrderedDict()
        self._cached_characters = 0
        self._trusted: dict[str, _Document] | None = None
        if manifest is not None:
            self._trusted = {key: self._check(text, key, introspection=True) for key, text in manifest.items()}
            for document in self._trusted.values():
                for operation in document.operations.values():
                    operation.compiled.compile_ahead()

    @property
    def trusted_names(self) -> set[str]:
        """The names of the manifest's operations."""
        documents = (self._trusted or {}).values()
        return {name for document in documents for name in document.operations if name is not None}

    def operation(self, request: GraphQLRequest, *, introspection: bool) -> Operation:
        """The operation that a request asks for, within the limits with its variables; otherwise InvalidOperation."""
        key = (request.query, introspection)
        document = self._cached.get(key)
        if document is None:
            document = self._find(request, introspection=introspection)
        else:
            self._cached.move_to_end(key)
        name = request.operation_name
        operation = document.default if name is None else document.operations.get(name)
        if operation is None:
            raise _bad_input(_unknown_operation(document, name))
        cost = operation.cost(request.variables)
        if cost > self._limits.complexity:
            raise _bad_input(
                f"This operation asks for up to {cost} fields; at most {self._limits.complexity} are answered at once. "
                "Ask for smaller pages (`first`), or for less inside of them."
            )
        return operation

    def _find(self, request: GraphQLRequest, *, introspection: bool) -> _Document:
        """A document of the manifest, or one that is checked now and cached."""
        if self._trusted is not None:
            trusted = self._trusted.get(request.document_id or hash_of(request.query or ""))
            if trusted is None:
                raise _bad_input("Only the documents of this deployment's manifest are run, and this is none of them.")
            return trusted
        text = request.query
        if text is None:
            raise _bad_input("There is no `query` in the request.")
        document = self._check(text, hash_of(text), introspection=introspection)
        self._cached[text, introspection] = document
        self._cached_characters += document.size
        while len(self._cached) > MAX_DOCUMENTS or self._cached_characters > MAX_CHARACTERS:
            _, oldest = self._cached.popitem(last=False)
            self._cached_characters -= oldest.size
        return document

    def _check(self, text: str, key: str, *, introspection: bool) -> _Document:
        document = self._parse(text)
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
                cost = Cost(definition, fragments)
                operations[name] = Operation(self._schema, document, key, name, definition.operation, cost, compiled)
        default = next(iter(operations.values())) if len(operations) == 1 else None
        return _Document(operations, default, len(text))

    def _parse(self, text: str) -> DocumentNode:
        try:
            check_nesting(text, self._limits)
            return parse(text, max_tokens=self._limits.tokens, no_location=False)
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


def _unknown_operation(document: _Document, name: str | None) -> str:
    if name is not None:
        return f"There is no operation called {name!r} in the document."
    if document.operations:
        return "The document has several operations: say which with `operationName`."
    return "The document has no operation."


def _bad_input(message: str) -> InvalidOperation:
    return InvalidOperation(GraphQLError(message, extensions={"code": "BAD_USER_INPUT"}))


def _with_code(error: GraphQLError, code: str) -> GraphQLError:
    if not error.extensions:
        error.extensions = {"code": code}
    return error


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class BadManifest(Exception):
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
