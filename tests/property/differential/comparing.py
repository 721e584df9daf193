"""One operation, executed twice: by compiled code and by graphql-core. What must be equal, and what may differ.

Data must be equal, including the order of keys. Errors must be equal in message, path and locations, in any order.

The specification leaves one freedom: of several errors that would each make the same place null, an executor may report
one and cancel the rest. Then each reported error must be one that graphql-core finds when errors do not propagate, and
the places that became null must be the same.
"""

import json
import types
from collections import Counter
from collections.abc import Iterable
from inspect import isawaitable
from typing import Any

import orjson
from graphql import DocumentNode, ExecutionResult, GraphQLSchema, OperationDefinitionNode, execute, parse, validate

from datastore.values.seal import Seal
from server.compiler import CompiledOperation, Fallback, PreparedOperation, encode_json
from server.compiler.core import AnswerStruct
from tests.property.differential.random_operations import RandomOperation

CONTEXT: Any = types.SimpleNamespace(services=types.SimpleNamespace(seal=Seal(["a secret for tests, long enough"])))
WITHOUT_PROPAGATION = "@experimental_disableErrorPropagation"


async def execute_by_core(schema: GraphQLSchema, document: DocumentNode, variables: dict[str, Any]) -> ExecutionResult:
    name = definition_of(document).name
    result = execute(
        schema,
        document,
        context_value=CONTEXT,
        variable_values=variables,
        operation_name=name.value if name else None,
    )
    return await result if isawaitable(result) else result


async def execute_compiled(
    schema: GraphQLSchema, document: DocumentNode, variables: dict[str, Any]
) -> ExecutionResult | Fallback:
    compiled = CompiledOperation(schema, document, definition_of(document))
    prepared = compiled.prepare(variables, suggestions=True)
    return await prepared.execute(CONTEXT) if isinstance(prepared, PreparedOperation) else prepared


def to_dicts(value: Any) -> Any:
    """The same answer with a dictionary in place of each struct."""
    if isinstance(value, AnswerStruct):
        return {key: to_dicts(value[key]) for key in value.attributes}
    if isinstance(value, dict):
        return {key: to_dicts(inner) for key, inner in value.items()}
    return [to_dicts(inner) for inner in value] if isinstance(value, list) else value


def definition_of(document: DocumentNode) -> OperationDefinitionNode:
    """The operation that is executed: the last one of the document."""
    return next(node for node in reversed(document.definitions) if isinstance(node, OperationDefinitionNode))


async def compare(
    schema: GraphQLSchema,
    operation: RandomOperation,
    outcomes: Counter[str],
    *,
    others: Iterable[RandomOperation] = (),
) -> None:
    """AssertionError, with the operation, unless both executors agree. Counts the outcome.

    The others stand in the same document. They have variables of the same names and of other types.
    """
    document = parse(operation.beside(others))
    # Validation takes longer than all the rest, and shows only that the test writes valid operations.
    if len(operation.text) % 8 == 0 and validate(schema, document):
        outcomes["invalid"] += 1
        return
    expected = await execute_by_core(schema, document, operation.variables)
    result = await execute_compiled(schema, document, operation.variables)
    if isinstance(result, Fallback):
        outcomes[f"fallback: {result.reason}"] += 1
        return
    assert_agree(operation, expected, result, outcomes)
    if _errors(expected) != _errors(result):
        await _assert_possible(schema, operation, result)


async def _assert_possible(schema: GraphQLSchema, operation: RandomOperation, result: ExecutionResult) -> None:
    """Each error is one that graphql-core finds when errors do not propagate."""
    document = parse(operation.with_directive(WITHOUT_PROPAGATION))
    every = await execute_by_core(schema, document, operation.variables)
    possible = {_message_and_path(error) for error in every.errors or ()}
    for error in result.errors or ():
        assert _message_and_path(error) in possible, (operation.text, operation.variables, error)


def assert_agree(
    operation: RandomOperation, expected: ExecutionResult, result: ExecutionResult, outcomes: Counter[str]
) -> None:
    """Data and places of null are equal; errors that differ are counted."""
    about = (operation.text, operation.variables, expected.errors, result.errors)
    data = to_dicts(result.data)
    assert json.dumps(expected.data) == json.dumps(data), (expected.data, data, *about)
    assert orjson.loads(encode_json(result.data)) == expected.data
    outcomes["with errors" if expected.errors else "without errors"] += 1
    if _errors(expected) != _errors(result):
        outcomes["other errors for the same null"] += 1
        assert _null_places(result) == _null_places(expected), about


def _errors(result: ExecutionResult) -> Counter[Any]:
    return Counter((*_message_and_path(error), tuple(error.locations or ())) for error in result.errors or ())


def _message_and_path(error: Any) -> tuple[str, tuple[Any, ...]]:
    return error.message, tuple(error.path or ())


def _null_places(result: ExecutionResult) -> set[tuple[Any, ...]]:
    """The places that are null because of an error."""
    return {_null_above(result.data, tuple(error.path or ())) for error in result.errors or ()}


def _null_above(data: Any, path: tuple[Any, ...]) -> tuple[Any, ...]:
    for length, key in enumerate(path):
        if data is None:
            return path[:length]
        data = data[key]
    return path
