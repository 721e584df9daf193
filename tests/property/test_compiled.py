"""Compiled plans held to graphql-core on random schemas, random operations and every kind of failure.

What must be equal is said in `differential/comparing.py`. The suite runs some thousands of operations; `python -m
tests.property.test_compiled 200` runs as many worlds as it is told.
"""

from __future__ import annotations

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
from tests.property.differential.comparing import ASKING, agree, compared, definition_of
from tests.property.differential.operations import Operation
from tests.property.differential.real import InMemory
from tests.property.differential.worlds import World

WORLDS = 24
FAULTS = (0.0, 0.03, 0.1, 0.2)
KINDS = ("query", "query", "query", "mutation")

# graphql-core leaves coroutines behind that it cancels before they begin.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


@pytest.fixture(autouse=True)
def _swept() -> Iterator[None]:
    """Collects between examples, where such a warning is not taken for an error of whatever runs at the time."""
    gc.disable()
    yield
    gc.enable()
    gc.collect()


@cache
def world(number: int) -> World:
    return World(number)


async def held(place: World | InMemory, seed: int, seen: Counter[str], operations: int = 10) -> None:
    drawn = random.Random(seed)
    for _ in range(operations):
        place.values.faults = drawn.choice(FAULTS)
        await compared(place.schema, Operation(place.schema, drawn.getrandbits(32), drawn.choice(KINDS)), seen)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(st.integers(0, WORLDS - 1), st.integers(0, 2**32 - 1))
def test_a_plan_answers_what_graphql_core_does(number: int, seed: int) -> None:
    """Ten operations an example: data equal to the order of keys, errors equal but for the freedom of null's way up."""
    seen: Counter[str] = Counter()
    asyncio.run(held(world(number), seed, seen))
    gc.collect(0)
    assert seen["invalid"] == 0, "the test writes operations that are not valid"
    assert not [reason for reason in seen if reason.startswith("left")], seen


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(st.integers(0, 2**32 - 1))
def test_a_plan_of_the_real_schema_answers_what_graphql_core_does(seed: int) -> None:
    """Its own types, records and connections; the resolvers answer from memory."""
    real, seen = InMemory(schema._schema), Counter[str]()
    with real.installed():
        asyncio.run(held(real, seed, seen))
    gc.collect(0)
    assert not [reason for reason in seen if reason.startswith("left")], seen


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(st.integers(0, WORLDS - 1), st.integers(0, 2**32 - 1))
def test_a_plan_answers_each_event_of_a_subscription(number: int, seed: int) -> None:
    """Three events, each executed by the plan and by graphql-core."""
    asyncio.run(_each_event(world(number), seed))


async def _each_event(place: World, seed: int) -> None:
    place.values.faults = random.Random(seed).choice(FAULTS)
    operation = Operation(place.schema, seed, "subscription")
    document = parse(operation.text)
    compiled = CompiledOperation(place.schema, document, definition_of(document))
    ready = compiled.prepare(operation.variables, suggestions=True)
    assume(isinstance(ready, PreparedOperation))  # variables that do not fit are no event's affair
    ours = [result async for result in await _events(place, document, operation, ready.execute_event)]
    theirs = [result async for result in await _events(place, document, operation)]
    assert len(ours) == len(theirs)
    for found, expected in zip(ours, theirs, strict=True):
        agree(operation, expected, found, Counter())


async def _events(place: World, document: Any, operation: Operation, *by: Any) -> Any:
    executor = Executor.build(place.schema, document, None, ASKING, operation.variables)
    assert isinstance(executor, Executor)
    source: Any = await create_source_event_stream(executor)  # Strawberry makes each source a coroutine
    return map_source_to_response_event(executor, source, *by)


async def _long(worlds: int) -> None:
    seen: Counter[str] = Counter()
    for number in range(worlds):
        await held(World(number + WORLDS), number, seen, 200)
        print(f"{number + 1} of {worlds}:", dict(seen))  # noqa: T201 - the long run tells how far it is


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asyncio.run(_long(int(sys.argv[1])))
