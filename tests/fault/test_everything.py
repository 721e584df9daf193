"""All four parts on the worst of days, in processes that are killed: 0 lost, 0 doubled, and a control that is caught.

`make bench-faults` lives through twenty such days; `RINGSIDE_FAULT_SEEDS=4,5,6` names others for one run.
"""

from __future__ import annotations

import os

import pytest

from tests.engines import Running
from tests.fault.all_parts import everything
from tests.fault.naive import naively

SEEDS = [int(seed) for seed in os.environ.get("RINGSIDE_FAULT_SEEDS", "1").split(",")]


@pytest.mark.parametrize("seed", SEEDS)
async def test_the_worst_day_loses_and_doubles_nothing(default_engine: Running, seed: int) -> None:
    """What members were told, and all numbers that follow from it, is what a new process shows; the audit agrees."""
    outcome = await everything(default_engine, seed, kills=2)
    assert outcome.wrong == []
    assert outcome.breaches == ""
    assert outcome.facts.keys() >= {"name", "vote", "standing", "comment", "word", "quiz", "sentence", "subscriber"}
    assert sum(outcome.faults.values()) > 100
    assert outcome.repeats > 0


@pytest.mark.parametrize("seed", SEEDS)
async def test_separate_updates_are_caught(default_engine: Running, seed: int) -> None:
    """The control: a naive design in the same weather, found out by the same checker; on a fine day it is right."""
    assert (await naively(default_engine, seed)).wrong
    assert not (await naively(default_engine, seed, share=0.0)).wrong
