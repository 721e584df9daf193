"""All four parts under faults, in processes that are killed: nothing lost or duplicated, and a control that fails.

`make soak` makes twenty such runs; `RINGSIDE_FAULT_SEEDS=4,5,6` chooses other seeds for the tests.
"""

import os

import pytest

from tests.engines import EnginePair
from tests.fault.all_parts import run_with_faults
from tests.fault.naive_design import run_naive_design

pytestmark = pytest.mark.soak

SEEDS = [int(seed) for seed in os.environ.get("RINGSIDE_FAULT_SEEDS", "1").split(",")]


@pytest.mark.parametrize("seed", SEEDS)
async def test_faults_lose_and_duplicate_nothing(engine_pair: EnginePair, seed: int) -> None:
    """A new process shows all that was acknowledged, and the totals that follow from it; the audit finds nothing."""
    report = await run_with_faults(engine_pair, seed, kills=2)
    assert report.differences == []
    assert report.breaches == ""
    assert report.facts.keys() >= {"name", "vote", "standing", "comment", "word", "quiz", "sentence", "subscriber"}
    assert report.facts.keys() >= {"league", "place", "league standing", "occurrence", "listed", "tie-break"}
    assert sum(report.faults.values()) > 100
    assert report.retries > 0


@pytest.mark.parametrize("seed", SEEDS)
async def test_the_checker_finds_the_errors_of_separate_updates(engine_pair: EnginePair, seed: int) -> None:
    """The control: a naive design with the same faults fails the same check, and passes it without faults."""
    assert (await run_naive_design(engine_pair, seed)).differences
    assert not (await run_naive_design(engine_pair, seed, fault_rate=0.0)).differences
