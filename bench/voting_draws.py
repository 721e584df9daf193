"""CPU time of a draw: the pair walk at 10, 100 and 2,000 contenders, with and without retirements.

python -m bench.voting_draws
"""

import time
from random import Random

from datastore.voting.pair_walk import EligibleContenders, PairWalk

DRAWS = 5000


def microseconds(eligible: EligibleContenders) -> tuple[float, int]:
    """Return the CPU time of a draw, and the bytes of state after the last one."""
    walk, began = PairWalk(), time.process_time()
    for _ in range(DRAWS):
        step = walk.draw(b"a voter", eligible)
        if step is None:
            break
        walk = PairWalk.unpacked(step.after.packed())
    return (time.process_time() - began) / DRAWS * 1e6, len(walk.packed())


def main() -> None:
    print("| contenders | pairs | retired | µs per draw | state, bytes |")
    print("|---|---|---|---|---|")
    chance = Random(1)
    for size in (10, 100, 2000):
        for share in (0, 25, 90):
            retired = chance.sample(range(size), size * share // 100)
            eligible = EligibleContenders(size, sum(1 << ordinal for ordinal in retired))
            cost, state = microseconds(eligible)
            print(f"| {size} | {size * (size - 1) // 2:,} | {share} % | {cost:.0f} | {state} |")


if __name__ == "__main__":
    main()
