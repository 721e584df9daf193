"""Compiled operations compared with graphql-core on random schemas, random operations and every kind of failure.

`differential/comparing.py` says what must be equal. The suite runs some thousands of operations; `python -m
tests.property.test_compiled 200 7` runs 200 operations on each of 200 schemas, drawn with the seed 7.
"""

import asyncio
import gc
import random
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from graphql import create_source_event_stream, map_source_to_response_event, parse
from graphql.execution import Executor
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from schema import schema
from server.compiler import CompiledOperation, PreparedOperation
from tests.examples import examples
from tests.property.differential.comparing import CONTEXT, assert_agree, compare, definition_of
from tests.property.differential.random_operations import RandomOperation
from tests.property.differential.random_schemas import RandomSchema
from tests.property.differential.real_schema import InMemorySchema

SCHEMAS = 24
FAULTS = (0.0, 0.03, 0.1, 0.2)
OPERATIONS = (1, 1, 1, 2, 3)
"""How many operations a document has; one of them is executed."""
KINDS = ("query", "query", "query", "mutation")

# graphql-core leaves coroutines that it cancels before they begin.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


@pytest.fixture(autouse=True)
def _collect_between_examples() -> Iterator[None]:
    """Collects garbage between examples, where such a warning is not taken for an error of the code that runs."""
    gc.disable()
    yield
    gc.enable()
    gc.collect()


@cache
def random_schema(number: int) -> RandomSchema:
    return RandomSchema(number)


async def compare_operations(
    of: RandomSchema | InMemorySchema, seed: int, outcomes: Counter[str], count: int = 10
) -> None:
    rng = random.Random(seed)
    for _ in range(count):
        of.values.faults = rng.choice(FAULTS)
        operation, *others = [
            RandomOperation(of.schema, rng.getrandbits(32), rng.choice(KINDS)) for _ in range(rng.choice(OPERATIONS))
        ]
        await compare(of.schema, operation, outcomes, others=others)


@settings(max_examples=examples(60), suppress_health_check=list(HealthCheck), database=None)
@given(st.integers(0, SCHEMAS - 1), st.integers(0, 2**32 - 1))
def test_a_compiled_operation_answers_what_graphql_core_does(number: int, seed: int) -> None:
    """Ten operations an example: equal data and order of keys, equal errors but for the freedom of propagation."""
    outcomes: Counter[str] = Counter()
    asyncio.run(compare_operations(random_schema(number), seed, outcomes))
    gc.collect(0)
    assert outcomes["invalid"] == 0, "the test writes operations that are not valid"
    assert not [outcome for outcome in outcomes if outcome.startswith("fallback")], outcomes


@settings(max_examples=examples(30), suppress_health_check=list(HealthCheck), database=None)
@given(st.integers(0, 2**32 - 1))
def test_a_compiled_operation_of_the_real_schema_answers_what_graphql_core_does(seed: int) -> None:
    """Its own types, records and connections; the resolvers answer from memory."""
    real, outcomes = InMemorySchema(schema._schema), Counter[str]()
    with real.installed():
        asyncio.run(compare_operations(real, seed, outcomes))
    gc.collect(0)
    assert not [outcome for outcome in outcomes if outcome.startswith("fallback")], outcomes


@settings(max_examples=examples(30), suppress_health_check=list(HealthCheck), database=None)
@given(st.integers(0, SCHEMAS - 1), st.integers(0, 2**32 - 1))
def test_each_event_of_a_subscription_is_answered_as_graphql_core_does(number: int, seed: int) -> None:
    """Three events, each executed by compiled code and by graphql-core."""
    asyncio.run(_compare_events(random_schema(number), seed))


async def _compare_events(of: RandomSchema, seed: int) -> None:
    of.values.faults = random.Random(seed).choice(FAULTS)
    operation = RandomOperation(of.schema, seed, "subscription")
    document = parse(operation.text)
    compiled = CompiledOperation(of.schema, document, definition_of(document))
    prepared = compiled.prepare(operation.variables, suggestions=True)
    assume(isinstance(prepared, PreparedOperation))  # wrong variables end a subscription before its first event
    assert isinstance(prepared, PreparedOperation)
    results = [result async for result in await _events(of, document, operation, prepared.execute_event)]
    expected = [result async for result in await _events(of, document, operation)]
    for result, expected_result in zip(results, expected, strict=True):
        assert_agree(operation, expected_result, result, Counter())


async def _events(of: RandomSchema, document: Any, operation: RandomOperation, *execute: Any) -> Any:
    executor = Executor.build(of.schema, document, None, CONTEXT, operation.variables)
    assert isinstance(executor, Executor)
    source: Any = create_source_event_stream(executor)  # Strawberry makes each source a coroutine
    return map_source_to_response_event(executor, await source, *execute)


async def _compare_many(schemas: int, seed: int) -> None:
    outcomes: Counter[str] = Counter()
    for number in range(schemas):
        await compare_operations(RandomSchema(number + SCHEMAS + seed * schemas), seed + number, outcomes, 200)
        print(f"{number + 1} of {schemas}:", dict(outcomes))  # noqa: T201 - the long run shows its progress


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asyncio.run(_compare_many(*map(int, sys.argv[1:])))
