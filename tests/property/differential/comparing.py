"""One operation, executed twice: by its plan and by graphql-core. What must be equal, and what need not be.

Data must be equal, the order of its keys included. Errors must be equal in message, path and locations, up to order.
There is one freedom: when several errors would each make the same place null, an executor may report one of them and
cancel what would have brought the others. Then each error must still be one that graphql-core finds when errors do not
move up at all, and the places that became null must be the same.
"""

from __future__ import annotations

import json
import types
from collections import Counter
from inspect import isawaitable
from typing import Any

import orjson
from graphql import DocumentNode, ExecutionResult, GraphQLSchema, OperationDefinitionNode, execute, parse, validate

from datastore.seal import Seal
from server.compiler import CompiledOperation, Fallback, PreparedOperation, encode_json, to_dicts
from tests.property.differential.operations import Operation

ASKING: Any = types.SimpleNamespace(services=types.SimpleNamespace(seal=Seal(["a secret for tests, long enough"])))
UNBOUND = "@experimental_disableErrorPropagation"


async def by_core(schema: GraphQLSchema, document: DocumentNode, variables: dict[str, Any]) -> ExecutionResult:
    result = execute(schema, document, context_value=ASKING, variable_values=variables)
    return await result if isawaitable(result) else result  # type: ignore[return-value]


async def by_plan(
    schema: GraphQLSchema, document: DocumentNode, variables: dict[str, Any]
) -> ExecutionResult | Fallback:
    compiled = CompiledOperation(schema, document, definition_of(document))
    prepared = compiled.prepare(variables, suggestions=True)
    return await prepared.execute(ASKING) if isinstance(prepared, PreparedOperation) else prepared


def definition_of(document: DocumentNode) -> OperationDefinitionNode:
    return next(one for one in document.definitions if isinstance(one, OperationDefinitionNode))


async def compared(schema: GraphQLSchema, operation: Operation, seen: Counter[str]) -> None:
    """AssertionError, with the operation, unless both executors agree."""
    document = parse(operation.text)
    # Validating takes longer than all the rest, and only shows that the test writes what is valid.
    if len(operation.text) % 8 == 0 and validate(schema, document):
        seen["invalid"] += 1
        return
    expected = await by_core(schema, document, operation.variables)
    found = await by_plan(schema, document, operation.variables)
    if isinstance(found, Fallback):
        seen[f"left: {found.reason}"] += 1
        return
    agree(operation, expected, found, seen)
    if Counter(map(told, expected.errors or ())) != Counter(map(told, found.errors or ())):
        unbound = parse(operation.with_directive(UNBOUND))
        every = {
            message_and_path(error) for error in (await by_core(schema, unbound, operation.variables)).errors or ()
        }
        for error in found.errors or ():
            assert message_and_path(error) in every, (operation.text, operation.variables, error)


def agree(operation: Operation, expected: ExecutionResult, found: ExecutionResult, seen: Counter[str]) -> None:
    about = (operation.text, operation.variables, expected.errors, found.errors)
    data = to_dicts(found.data)
    assert json.dumps(expected.data) == json.dumps(data), (expected.data, data, *about)
    assert orjson.loads(encode_json(found.data)) == expected.data
    ours, theirs = Counter(map(told, found.errors or ())), Counter(map(told, expected.errors or ()))
    seen["with errors" if theirs else "without errors"] += 1
    if ours == theirs:
        return
    seen["agreed by freedom"] += 1
    assert places(found) == places(expected), about


def told(error: Any) -> tuple[Any, ...]:
    return (*message_and_path(error), tuple(error.locations or ()))


def message_and_path(error: Any) -> tuple[str, tuple[Any, ...]]:
    return error.message, tuple(error.path or ())


def places(result: ExecutionResult) -> set[tuple[Any, ...]]:
    """Where the answer is null because of an error."""
    return {_null_above(result.data, tuple(error.path or ())) for error in result.errors or ()}


def _null_above(data: Any, path: tuple[Any, ...]) -> tuple[Any, ...]:
    for length, key in enumerate(path):
        if data is None:
            return path[:length]
        data = data[key]
    return path
