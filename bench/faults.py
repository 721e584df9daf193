"""Twenty fault-injection runs: faults, conflicts and kill -9 while members use all four parts; and a naive control.

    python -m bench.faults [--seeds 20] [--first 1] [--kills 10] [--actions 5200] [--members 20] [--at-once 2] [--write]

tests/fault/all_parts.py describes a run and what is checked. Two runs go on at once, since each waits half a minute at
its end for what killed processes have left. The benchmark fails if anything is lost or doubled, if
`ringside audit` finds a violation, or if the checker misses the naive design's errors.
"""

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.engines import EnginePair, running_pair
from tests.fault.all_parts import FaultReport, run_with_faults
from tests.fault.naive_design import run_naive_design

RESULTS = Path(__file__).parent / "results" / "faults.md"
HEAD = """# Fault injection

    python -m bench.faults --write

Each row is one run of two service processes on one table, on an engine that behaves like DynamoDB (tests/lagging, two
embedded engines): indexes and a third of the plain reads lag by 0.15 s in the mean and up to 5 s, partition keys are
bounded. A fifth of all engine calls are throttled, answered with 500, reset before or after they were applied,
cancelled by another transaction, cut short or delayed. Transactions lock their items and conflict with each other. The
processes are killed in turn with SIGKILL, and both at the end. Twenty-four members and an editor use all four parts and
leagues, and repeat unanswered requests with the same key. One member is suspended for a moment. In the middle all that
this member contributed is taken back, and two others are erased: the contributions of one are removed, those of the
other become a former member's. A webhook for every kind of occurrence refuses a tenth of its messages. Then a new
process is queried over HTTP, and its answers are compared with the acknowledged writes and what follows from them
(tests/fault/ledger.py): totals, ranks in the season and in each league, the order of each event's predictions by points
and by how near their guesses were, one occurrence in the journal for each acknowledged change. The webhook has received
each occurrence; nothing in the table names an erased member; `ringside audit` finds no
violation. The control writes votes and comments with separate updates under the same faults, and is checked the same
way; without faults it passes.

| seed | acknowledged | facts compared | faults | client retries | kills | lost | doubled | audit | control: wrong |
|---|---|---|---|---|---|---|---|---|---|
"""


def row(seed: str, report: FaultReport, control: int) -> str:
    audit = "clean" if not report.breaches else "BREACHES"
    return (
        f"| {seed} | {report.actions:,} | {report.facts.total():,} | {sum(report.faults.values()):,} "
        f"| {report.retries:,} | {report.kills} | {report.lost.total()} | {report.duplicated.total()} "
        f"| {audit} | {control} |"
    )


def total(reports: list[FaultReport]) -> FaultReport:
    return FaultReport(
        sum(report.actions for report in reports),
        sum((report.facts for report in reports), Counter()),
        sum((report.lost for report in reports), Counter()),
        sum((report.duplicated for report in reports), Counter()),
        "\n".join(report.breaches for report in reports if report.breaches),
        sum(report.kills for report in reports),
        sum(report.retries for report in reports),
        sum((Counter(report.faults) for report in reports), Counter()),
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1, help="the first seed, to repeat a run")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--actions", type=int, default=5200, help="acknowledged operations of a run")
    parser.add_argument("--members", type=int, default=20)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    print(HEAD, end="")
    slots = asyncio.Semaphore(options.at_once)

    async def run(engines: EnginePair, seed: int) -> tuple[FaultReport, int]:
        async with slots:
            report = await run_with_faults(engines, seed, options.kills, options.actions, options.members)
            control = await run_naive_design(engines, seed)
        errors = [*report.differences, *([report.breaches] if report.breaches else [])]
        print(row(f"{seed}", report, len(control.differences)), *errors, sep="\n", flush=True)
        return report, len(control.differences)

    seeds = range(options.first, options.first + options.seeds)
    with tempfile.TemporaryDirectory() as folder, running_pair(Path(folder)) as engines:
        found = await asyncio.gather(*(run(engines, seed) for seed in seeds))
    reports, controls = [report for report, _ in found], [control for _, control in found]
    rows = [row(f"{seed}", *each) for seed, each in zip(seeds, found, strict=True)]
    all_runs = total(reports)
    rows.append(row("all", all_runs, sum(controls)))
    print(rows[-1])
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in sorted(all_runs.facts.items()))
    faults = ", ".join(f"{number:,} {fault.value}" for fault, number in all_runs.faults.items())
    if options.write:
        text = HEAD + "\n".join(rows) + f"\n\nFacts by kind: {kinds}.\n\nFaults by kind: {faults}.\n"
        RESULTS.write_text(text, encoding="utf-8")
    if all_runs.differences or all_runs.breaches or not all(controls):
        sys.exit("Something was lost or doubled, or the checker missed the control's errors.")


if __name__ == "__main__":
    asyncio.run(main())
