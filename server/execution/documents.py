"""From a text to an operation that may run: parsed, limited and validated once, then kept.

Only what passed every check is kept, so nobody can fill the cache with rubbish; it is bounded by number and by size.
With trusted documents (a manifest), nothing else is ever parsed on behalf of a client.
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
from server.execution.limits import Cost, Limits, check_depth, check_names, check_nesting, cost_of

MOST_DOCUMENTS = 500
"""A document of a page keeps about 46 KB and its compiled operation 25 KB, so all of them stay below 40 MB."""
MOST_CHARACTERS = 8_000_000
MOST_ERRORS = 10


class Faulty(Exception):
    """A document that does not run, with the errors to answer with."""

    def __init__(self, *errors: GraphQLError) -> None:
        super().__init__("; ".join(error.message for error in errors))
        self.errors = errors


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a document, ready to run."""

    document: DocumentNode
    hash: str
    name: str | None
    kind: OperationType
    cost: Cost
    trusted: bool
    compiled: CompiledOperation = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class _Document:
    operations: Mapping[str | None, Operation]
    size: int


class Documents:
    """The documents this process has met and may run."""

    def __init__(
        self, schema: GraphQLSchema, limits: Limits | None = None, *, manifest: Mapping[str, str] | None = None
    ) -> None:
        self._schema = schema
        self._limits = limits or Limits()
        self._kept: OrderedDict[tuple[str, bool], _Document] = OrderedDict()
        self._characters = 0
        self._trusted: dict[str, _Document] | None = None
        if manifest is not None:
            self._trusted = {
                key: self._checked(text, key, introspection=True, trusted=True) for key, text in manifest.items()
            }
            for document in self._trusted.values():
                for operation in document.operations.values():
                    operation.compiled.compile_ahead()

    @property
    def only_trusted(self) -> bool:
        return self._trusted is not None

    @property
    def trusted_names(self) -> list[str]:
        """The operations of the manifest, by name."""
        documents = (self._trusted or {}).values()
        return [name for document in documents for name in document.operations if name is not None]

    def operation(
        self, text: str | None, name: str | None, *, key: str | None = None, introspection: bool
    ) -> Operation:
        """The operation a request asks for, or Faulty."""
        return _chosen(self._document(text, key, introspection=introspection), name)

    def _document(self, text: str | None, key: str | None, *, introspection: bool) -> _Document:
        if self._trusted is not None:
            found = self._trusted.get(key or hash_of(text or ""))
            if found is None:
                raise Faulty(
                    _fault("Only the documents of this deployment's manifest are run, and this is none of them.")
                )
            return found
        if text is None:
            raise Faulty(_fault("There is no `query` in the request."))
        place = (text, introspection)
        kept = self._kept.get(place)
        if kept is not None:
            self._kept.move_to_end(place)
            return kept
        document = self._checked(text, hash_of(text), introspection=introspection, trusted=False)
        self._keep(place, document)
        return document

    def _keep(self, place: tuple[str, bool], document: _Document) -> None:
        self._kept[place] = document
        self._characters += document.size
        while len(self._kept) > MOST_DOCUMENTS or self._characters > MOST_CHARACTERS:
            _, oldest = self._kept.popitem(last=False)
            self._characters -= oldest.size

    def _checked(self, text: str, key: str, *, introspection: bool, trusted: bool) -> _Document:
        document = self._parsed(text)
        try:
            check_names(document, self._limits)
        except GraphQLError as error:
            raise Faulty(error) from None
        rules = specified_rules if introspection else (*specified_rules, NoSchemaIntrospectionCustomRule)
        errors = validate(self._schema, document, rules, max_errors=MOST_ERRORS, hide_suggestions=not introspection)
        if errors:
            raise Faulty(*(_coded(error, "GRAPHQL_VALIDATION_FAILED") for error in errors))
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
                    raise Faulty(error) from None
                compiled = CompiledOperation(self._schema, document, definition)
                cost = cost_of(definition, fragments)
                operations[name] = Operation(document, key, name, definition.operation, cost, trusted, compiled)
        return _Document(operations, len(text))

    def _parsed(self, text: str) -> DocumentNode:
        try:
            check_nesting(text, self._limits)
            return parse(text, max_tokens=self._limits.tokens, no_location=False)
        except GraphQLError as error:
            raise Faulty(_coded(error, "GRAPHQL_PARSE_FAILED")) from None

    def check_cost(self, operation: Operation, variables: Mapping[str, Any]) -> None:
        """Per request: complexity depends on the page sizes in the variables."""
        most = self._limits.complexity
        cost = operation.cost(variables)
        if cost > most:
            message = (
                f"This operation asks for up to {cost} fields; at most {most} are answered at once. "
                "Ask for smaller pages (`first`), or for less inside of them."
            )
            raise Faulty(_fault(message))


def _chosen(document: _Document, name: str | None) -> Operation:
    operations = document.operations
    if name is not None:
        if name not in operations:
            raise Faulty(_fault(f"There is no operation called {name!r} in the document."))
        return operations[name]
    if len(operations) != 1:
        many = "several operations: say which with `operationName`" if operations else "no operation"
        raise Faulty(_fault(f"The document has {many}."))
    return next(iter(operations.values()))


def _fault(message: str) -> GraphQLError:
    return GraphQLError(message, extensions={"code": "BAD_USER_INPUT"})


def _coded(error: GraphQLError, code: str) -> GraphQLError:
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
        message = f"The manifest {path} cannot be read as JSON: {error}"
        raise BadManifest(message) from None
    if not isinstance(manifest, dict) or not all(isinstance(text, str) for text in manifest.values()):
        message = f"The manifest {path} is not an object from hashes to documents."
        raise BadManifest(message)
    trusted = {}
    for key, text in manifest.items():
        bare = key.removeprefix("sha256:")
        if bare != hash_of(text):
            message = f"The manifest {path} has a document under {key}, but its SHA-256 is {hash_of(text)}."
            raise BadManifest(message)
        trusted[bare] = text
    return trusted


def write_manifest(texts: Iterable[str]) -> str:
    """The manifest of these documents, as `read_manifest` takes it."""
    manifest = {f"sha256:{hash_of(text)}": text for text in texts}
    return orjson.dumps(manifest, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()
