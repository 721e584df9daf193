"""Twenty fault-injection runs: faults, conflicts and kill -9 while members use all four parts; and a naive control.

    python -m bench.faults [--seeds 20] [--kills 4] [--write]

tests/fault/all_parts.py describes a run and what is checked. The benchmark fails if anything is lost or doubled, if
`ringside audit` finds a violation, or if the checker misses the naive design's errors.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.engines import running
from tests.fault.all_parts import Aftermath, everything
from tests.fault.naive import naively

RESULTS = Path(__file__).parent / "results" / "faults.md"
HEAD = """# Fault injection

    make bench-faults ARGS=--write

Each row is one run of two service processes on one table (the embedded engine). A fifth of all engine calls are
throttled, answered with 500, reset before or after they were applied, cancelled by another transaction, cut short or
delayed. Transactions lock their items and conflict with each other. The processes are killed in turn with SIGKILL, and
both at the end. Seven members and an editor use all four parts, and repeat unanswered requests with the same key.
Then a new process is queried over HTTP, and its answers are compared with the acknowledged writes and the totals that
follow from them (tests/fault/ledger.py); `ringside audit` checks the table. The control writes votes and comments with
separate updates under the same faults, and is checked the same way; without faults it passes.

| seed | acknowledged | facts compared | faults | client retries | kills | lost | doubled | audit | control: wrong |
|---|---|---|---|---|---|---|---|---|---|
"""


def row(seed: str, day: Aftermath, control: int) -> str:
    audit = "clean" if not day.breaches else "BREACHES"
    return (
        f"| {seed} | {day.acts:,} | {day.facts.total():,} | {sum(day.faults.values()):,} | {day.repeats:,} "
        f"| {day.kills} | {day.lost.total()} | {day.doubled.total()} | {audit} | {control} |"
    )


def summed(days: list[Aftermath]) -> Aftermath:
    return Aftermath(
        sum(day.acts for day in days),
        sum((day.facts for day in days), Counter()),
        sum((day.lost for day in days), Counter()),
        sum((day.doubled for day in days), Counter()),
        "\n".join(day.breaches for day in days if day.breaches),
        sum(day.kills for day in days),
        sum(day.repeats for day in days),
        sum((Counter(day.faults) for day in days), Counter()),
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    print(HEAD, end="")
    days, controls, rows = list[Aftermath](), list[int](), list[str]()
    with tempfile.TemporaryDirectory() as folder, running("dynoxide", Path(folder)) as engine:
        for seed in range(1, given.seeds + 1):
            day, control = await everything(engine, seed, given.kills), await naively(engine, seed)
            days.append(day)
            controls.append(len(control.wrong))
            rows.append(row(f"{seed}", day, controls[-1]))
            print(rows[-1], *day.wrong, day.breaches, sep="\n" if day.wrong or day.breaches else "", flush=True)
    whole = summed(days)
    rows.append(row("all", whole, sum(controls)))
    print(rows[-1])
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in sorted(whole.facts.items()))
    faults = ", ".join(f"{number:,} {fault.value}" for fault, number in whole.faults.items())
    if given.write:
        text = HEAD + "\n".join(rows) + f"\n\nFacts by kind: {kinds}.\n\nFaults by kind: {faults}.\n"
        RESULTS.write_text(text, encoding="utf-8")
    if whole.wrong or whole.breaches or not all(controls):
        sys.exit("Something was lost or doubled, or the checker missed the control's errors.")


if __name__ == "__main__":
    asyncio.run(main())
