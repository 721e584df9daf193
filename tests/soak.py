"""`make soak`: what takes long or depends on the machine's speed, with one seed and one summary at the end.

    python -m tests.soak [--short] [--seed 7] [stage …]

    tests         on moto, DynamoDB Local and the engine that lags, what `make test` runs on the embedded one alone;
                  and what kills processes again and again, or runs a whole deployment
    properties    the laws and the hostile bytes with forty times as many examples
    differential  compiled execution beside graphql-core's, on 40,000 operations
    faults        rounds of injected faults and kills, all parts at once: bench/faults.py
    attacks       ten minutes of attacks with honest load beside: bench/attacks.py

`--short` runs the kills and deployments on the embedded engine alone (stage `kills`), one round of faults, and half a
minute of attacks; `.ci/run` runs the first two. A seed that failed, given again, tries the same examples and faults.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PYTEST: Final = (
    sys.executable, "-m", "pytest", "-q", "--show-capture=no", "--tb=short",
    "-n", f"{(os.cpu_count() or 1) + 1}", "--dist", "worksteal",
)  # fmt: skip
INVARIANTS: Final = ("tests/property", "tests/attack/test_raw_http.py", "tests/attack/test_websocket_frames.py")


@dataclass(frozen=True)
class Stage:
    """A command, and variables of its environment."""

    name: str
    command: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)


def stages(seed: int, *, short: bool) -> list[Stage]:
    """Return the stages in their order."""
    seeded = f"--hypothesis-seed={seed}"
    one_engine = {"RINGSIDE_TEST_ENGINES": "dynoxide"}
    python = (sys.executable, "-m")
    if short:
        return [
            Stage("kills", (*PYTEST, "-m", "soak", seeded), one_engine),
            Stage("faults", (*python, "bench.faults", "--first", f"{seed}", "--seeds", "1", "--actions", "1200")),
            Stage("attacks", (*python, "bench.attacks", "--seconds", "30", "--waves", "2")),
        ]
    return [
        Stage("tests", (*PYTEST, "-m", "soak", seeded)),
        Stage("properties", (*PYTEST, seeded, *INVARIANTS), {"RINGSIDE_TEST_EXAMPLES": "40", **one_engine}),
        Stage("differential", (sys.executable, "-W", "ignore", "-m", "tests.property.test_compiled", "200", f"{seed}")),
        Stage("faults", (*python, "bench.faults", "--first", f"{seed}")),
        Stage("attacks", (*python, "bench.attacks")),
    ]


def run(stage: Stage) -> tuple[bool, float]:
    """Run a stage; return whether it passed, and its seconds."""
    print(f"\n── {stage.name}: {' '.join(stage.command[1:])}", flush=True)
    began = time.monotonic()
    done = subprocess.run(stage.command, cwd=ROOT, env={**os.environ, **stage.variables}, check=False)
    return done.returncode == 0, time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="kills, one round of faults, half a minute of attacks")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000, help="by default another one each time")
    parser.add_argument("stages", nargs="*", help="by default all")
    options = parser.parse_args()
    chosen = stages(options.seed, short=options.short)
    if unknown := set(options.stages) - {stage.name for stage in chosen}:
        parser.error(f"there is no stage {', '.join(sorted(unknown))}")
    results = {stage.name: run(stage) for stage in chosen if not options.stages or stage.name in options.stages}
    print(f"\n── Summary of seed {options.seed}")
    for name, (passed, seconds) in results.items():
        print(f"{name:13} {'passed' if passed else 'FAILED'} after {seconds:.0f} s")
    sys.exit(not all(passed for passed, _ in results.values()))


if __name__ == "__main__":
    main()
