"""How many attackers' votes a search for suspects finds, and how many honest voters it lists.

python -m bench.suspects            # the final seeds
python -m bench.suspects --build    # those that the detector was built with
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from bench.services.voters import ATTACKERS, FIRST_FINAL, HONEST, SEEDS, Simulation, simulate
from resolvers.voting.bradley_terry import Meeting, Strength, fit
from resolvers.voting.kept_votes import SeenVote
from resolvers.voting.suspicion import Detector, Suspicion

AT_MOST = 0.01
TIES = (0.0, 0.2, 0.3, 0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", action="store_true")
    seeds = range(FIRST_FINAL) if parser.parse_args().build else range(FIRST_FINAL, SEEDS)
    print("| seed | ties | attackers | honest listed | worst kind | their votes found | rank off | strength within |")
    print("|---|---|---|---|---|---|---|---|")
    for attackers in (None, *ATTACKERS):
        for seed in seeds:
            ties = TIES[seed % len(TIES)]
            print(_row(seed, ties, attackers, simulate(seed, ties, attackers)), flush=True)


def _row(seed: int, ties: float, attackers: str | None, simulation: Simulation) -> str:
    detector = Detector({one: strength.value for one, strength in _fitted(simulation).items()}, 50)
    by_voter: dict[int, list[SeenVote]] = defaultdict(list)
    for vote in simulation.votes:
        seen = SeenVote(vote.low, vote.high, vote.low_is_left, vote.won, vote.at, str(vote.network))
        by_voter[vote.voter].append(seen)
    for voter, votes in by_voter.items():
        detector.see(str(voter), votes)
    suspects = [each for each in detector.suspects() if each.probability <= AT_MOST]
    return " | ".join((f"| {seed} | {ties}", attackers or "none", *_figures(simulation, suspects, attackers))) + " |"


def _figures(simulation: Simulation, suspects: Sequence[Suspicion], attackers: str | None) -> list[str]:
    kinds = Counter(simulation.kinds)
    listed = Counter(simulation.kinds[int(each.voter)] for each in suspects)
    honest = sum(listed[kind] for kind in HONEST) / sum(kinds[kind] for kind in HONEST)
    worst = max(listed[kind] / kinds[kind] for kind in HONEST)
    if attackers is None:
        return [f"{honest:.2%}", f"{worst:.2%}", "", "", ""]
    found = sum(each.votes for each in suspects if simulation.kinds[int(each.voter)] == attackers)
    cast = sum(vote.won >= 0 for vote in simulation.votes if simulation.kinds[vote.voter] == attackers)
    off, within = _after_voiding(simulation, {int(each.voter) for each in suspects})
    return [f"{honest:.2%}", f"{worst:.2%}", f"{found / cast:.1%}", str(off), "yes" if within else "no"]


def _after_voiding(simulation: Simulation, voided: set[int]) -> tuple[int, bool]:
    """How far the target's rank is from its honest one, and whether its strength lies in the honest interval."""
    honest_voters = {voter for voter, kind in enumerate(simulation.kinds) if kind in HONEST}
    standing = set(range(len(simulation.kinds))) - voided
    target = simulation.target
    honest, now = _fitted(simulation, honest_voters)[target], _fitted(simulation, standing)[target]
    ranks = [_rank(simulation, voters) for voters in (honest_voters, standing)]
    return abs(ranks[0] - ranks[1]), honest.low <= now.value <= honest.high


def _rank(simulation: Simulation, voters: set[int]) -> int:
    scores: Counter[int] = Counter()
    for vote in simulation.votes:
        if vote.voter in voters and vote.won in (0.0, 1.0):
            scores[vote.low if vote.won else vote.high] += 1
            scores[vote.high if vote.won else vote.low] -= 1
    return 1 + sum(score > scores[simulation.target] for score in scores.values())


def _fitted(simulation: Simulation, voters: set[int] | None = None) -> Mapping[int, Strength]:
    """Strengths by the votes of some voters, or of all."""
    wins: dict[tuple[int, int], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for vote in simulation.votes:
        if vote.won >= 0 and (voters is None or vote.voter in voters):
            wins[vote.low, vote.high][0] += vote.won
            wins[vote.low, vote.high][1] += 1 - vote.won
    return fit([Meeting(low, high, won, lost) for (low, high), (won, lost) in wins.items()])


if __name__ == "__main__":
    main()
