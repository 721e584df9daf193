"""How many attackers' votes a search for suspects finds, and how many honest voters it lists.

python -m bench.suspects            # the final seeds
python -m bench.suspects --build    # those that the detector was built with

The first table has a row for each run. The second, for attackers who vote honestly on most pairs, has means over the
seeds, beside both published detectors and the bound (`bench/services/published.py`). It is given the same number of
honest voters that ours lists, and then 1 % of them.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from statistics import mean
from typing import NamedTuple

from bench.services.published import ByVoter, bound, outliers, unlikely
from bench.services.voters import (
    ATTACKERS,
    FIRST_FINAL,
    HONEST,
    PATIENT,
    SEEDS,
    TARGETED,
    VOTES_EACH,
    SimulatedVote,
    Simulation,
    simulate,
)
from resolvers.voting.bradley_terry import Meeting, Strength, fit
from resolvers.voting.kept_votes import SeenVote
from resolvers.voting.suspicion import Detector

AT_MOST = 0.01
TIES = (0.0, 0.2, 0.3, 0.2)
MOST_HONEST = 0.01


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--only", choices=("attackers", "votes"))
    arguments = parser.parse_args()
    seeds = range(FIRST_FINAL) if arguments.build else range(FIRST_FINAL, SEEDS)
    if arguments.only != "votes":
        _each_run(seeds)
    if arguments.only != "attackers":
        _by_votes(seeds)


def _each_run(seeds: Sequence[int]) -> None:
    print("| seed | ties | attackers | honest listed | worst kind | their votes found | rank off | strength within |")
    print("|---|---|---|---|---|---|---|---|")
    for attackers in (None, *ATTACKERS):
        for seed in seeds:
            ties = TIES[seed % len(TIES)]
            run = _Run.of(simulate(seed, ties, attackers))
            row = [f"{seed} | {ties} | {attackers or 'none'}", *run.listing(run.suspects(), attackers).cells]
            row += run.after_voiding(run.suspects()) if attackers else ["", ""]
            print("| " + " | ".join(row) + " |", flush=True)


def _by_votes(seeds: Sequence[int]) -> None:
    print()
    print(
        "| attackers | votes each | ours: found, honest, worst | FastChat | Min et al. | the bound, as many honest "
        "| the bound, 1 % | contender told | rank off, without the list | strength within |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for attackers in (PATIENT, TARGETED):
        for each in VOTES_EACH:
            runs = [_Run.of(simulate(seed, TIES[seed % len(TIES)], attackers, each)) for seed in seeds]
            print(_mean_row(attackers, each, runs), flush=True)


def _mean_row(attackers: str, each: int, runs: Sequence[_Run]) -> str:
    found: dict[str, list[_Listing]] = defaultdict(list)
    for seed, run in enumerate(runs):
        ours = run.suspects()
        honest = sum(run.simulation.kinds[voter] in HONEST for voter in ours)
        most = round(MOST_HONEST * sum(kind in HONEST for kind in run.simulation.kinds))
        for name, listed in (
            ("ours", ours),
            ("outliers", outliers(run.by_voter)),
            ("unlikely", unlikely(run.by_voter, seed)),
            ("bound", bound(run.simulation, run.by_voter, attackers, honest)),
            ("bound at 1 %", bound(run.simulation, run.by_voter, attackers, most)),
        ):
            found[name].append(run.listing(listed, attackers))
    cells = [
        f"{mean(one.found for one in listings):.1%}, {mean(one.honest for one in listings):.2%}, "
        f"{max(one.worst for one in listings):.2%}"
        for listings in found.values()
    ]
    told = sum(any(push.contender == run.simulation.target for push in run.detector.pushes.pushed) for run in runs)
    offs = [run.after_voiding(run.suspects()) for run in runs]
    before = [run.after_voiding(())[0] for run in runs]
    within = sum(strength == "yes" for _, strength in offs)
    ranks = f"{', '.join(off for off, _ in offs)}; without voiding {', '.join(before)}"
    return f"| {attackers} | {each} | {' | '.join(cells)} | {told} of {len(runs)} | {ranks} | {within} of {len(runs)} |"


class _Listing(NamedTuple):
    """What part of the attackers' votes, of the honest voters, and of the kind with the most is listed."""

    found: float
    honest: float
    worst: float
    attacked: bool

    @property
    def cells(self) -> list[str]:
        return [f"{self.honest:.2%}", f"{self.worst:.2%}", f"{self.found:.1%}" if self.attacked else ""]


class _Run(NamedTuple):
    """A simulation that our detector has seen."""

    simulation: Simulation
    by_voter: ByVoter
    detector: Detector

    @classmethod
    def of(cls, simulation: Simulation) -> _Run:
        by_voter: dict[int, list[SimulatedVote]] = defaultdict(list)
        for vote in simulation.votes:
            by_voter[vote.voter].append(vote)
        detector = Detector({one: strength.value for one, strength in _fitted(simulation).items()}, 50)
        for voter, votes in by_voter.items():
            seen = [SeenVote(one.low, one.high, one.low_is_left, one.won, one.at, str(one.network)) for one in votes]
            detector.see(str(voter), seen)
        detector.look()
        return cls(simulation, by_voter, detector)

    def suspects(self) -> set[int]:
        return {int(each.voter) for each in self.detector.suspects() if each.probability <= AT_MOST}

    def listing(self, listed: Collection[int], attackers: str | None) -> _Listing:
        of_kind = Counter(self.simulation.kinds)
        kinds = Counter(self.simulation.kinds[voter] for voter in listed)
        honest = sum(kinds[kind] for kind in HONEST) / sum(of_kind[kind] for kind in HONEST)
        worst = max(kinds[kind] / of_kind[kind] for kind in HONEST)
        theirs = [vote.voter for vote in self.simulation.votes if self._is_of(vote, attackers)]
        found = sum(voter in listed for voter in theirs) / max(1, len(theirs))
        return _Listing(found, honest, worst, attackers is not None)

    def _is_of(self, vote: SimulatedVote, attackers: str | None) -> bool:
        return vote.won >= 0 and self.simulation.kinds[vote.voter] == attackers

    def after_voiding(self, voided: Collection[int]) -> list[str]:
        """How far the target's rank is from its honest one, and whether its strength lies in the honest interval."""
        simulation, target = self.simulation, self.simulation.target
        honest_voters = {voter for voter, kind in enumerate(simulation.kinds) if kind in HONEST}
        standing = set(range(len(simulation.kinds))).difference(voided)
        honest, now = _fitted(simulation, honest_voters)[target], _fitted(simulation, standing)[target]
        ranks = [_rank(simulation, voters) for voters in (honest_voters, standing)]
        return [str(abs(ranks[0] - ranks[1])), "yes" if honest.low <= now.value <= honest.high else "no"]


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
