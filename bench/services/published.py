"""What published detectors of suspicious voters would find, told again from their descriptions.

- **Outliers**: `outlier_detect` of FastChat (fastchat/serve/monitor/elo_analysis.py), which Chatbot Arena describes. Of
  each of a voter's first 100 votes it takes the share of everybody's decided verdicts on that pair that are not higher,
  and not lower; the products of 1/(2 * share) are compared with 1/0.05 after each vote. Voters with 5 votes or more.
- **Likelihood**: the test of Min et al., "Improving your model ranking on Chatbot Arena by vote rigging" (ICML 2025).
  A voter's log-likelihood by everybody's wins, losses and ties on each pair is compared with those of 100 simulated
  voters on the same pairs; fewer than 1 % of them may be less probable. Their published program does not reset a
  counter between voters; this does. Pairs on which one verdict never occurred are left out, as there; without ties on a
  board, only wins and losses have to occur.

And the bound: by Neyman and Pearson no test of a voter finds more, at the same number of honest voters listed, than one
that knows the attacked contender, the attackers' model, the honest one and all strengths.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from math import exp, inf, log
from random import Random

from bench.services.voters import RIVALS, TARGET, TARGETED, SimulatedVote, Simulation

ByVoter = Mapping[int, Sequence[SimulatedVote]]
_LEAST, _MOST = 5, 100
_ALPHA = 0.05
_SIMULATED, _LESS_LIKELY = 100, 0.01


def _counts(by_voter: ByVoter) -> Mapping[tuple[int, int], Mapping[float, int]]:
    """How often each verdict was given on each pair."""
    counts: dict[tuple[int, int], dict[float, int]] = defaultdict(lambda: {0.0: 0, 0.5: 0, 1.0: 0})
    for votes in by_voter.values():
        for vote in votes:
            if vote.won >= 0:
                counts[vote.low, vote.high][vote.won] += 1
    return counts


def outliers(by_voter: ByVoter) -> set[int]:
    """By FastChat's test."""
    counts = _counts(by_voter)
    return {voter for voter, votes in by_voter.items() if _is_outlier(votes, counts)}


def _is_outlier(votes: Sequence[SimulatedVote], counts: Mapping[tuple[int, int], Mapping[float, int]]) -> bool:
    counted = [vote for vote in votes if vote.won >= 0]
    if len(counted) < _LEAST:
        return False
    high = low = 1.0
    for vote in counted[:_MOST]:
        of_pair = counts[vote.low, vote.high]
        decided = {won: of_pair[won] for won in (0.0, 1.0)}
        number = sum(decided.values())
        not_higher = sum(times for won, times in decided.items() if won <= vote.won) / number if number else 1.0
        not_lower = sum(times for won, times in decided.items() if won >= vote.won) / number if number else 1.0
        high = high / (2 * not_higher) if not_higher else inf
        low = low / (2 * not_lower) if not_lower else inf
        if max(high, low) > 1 / _ALPHA:
            return True
    return False


def unlikely(by_voter: ByVoter, seed: int) -> set[int]:
    """By the test of Min et al."""
    counts, random = _counts(by_voter), Random(seed)
    ties = any(each[0.5] for each in counts.values())
    usual = (0.0, 0.5, 1.0) if ties else (0.0, 1.0)
    chances = {
        pair: {won: each[won] / sum(each.values()) for won in usual}
        for pair, each in counts.items()
        if all(each[won] for won in usual)
    }
    return {voter for voter, votes in by_voter.items() if _is_unlikely(votes, chances, random)}


def _is_unlikely(
    votes: Sequence[SimulatedVote], chances: Mapping[tuple[int, int], Mapping[float, float]], random: Random
) -> bool:
    pairs = [(vote.won, chances[vote.low, vote.high]) for vote in votes if vote.won >= 0 and vote[1:3] in chances]
    own = sum(log(each[won]) for won, each in pairs)
    less = 0
    for _ in range(_SIMULATED):
        likelihood = 0.0
        for _, each in pairs:
            likelihood += log(each[_drawn(each, random)])
        less += likelihood < own
        if less >= _LESS_LIKELY * _SIMULATED:
            return False
    return bool(pairs)


def _drawn(chances: Mapping[float, float], random: Random) -> float:
    point = random.random()
    for won, chance in chances.items():
        point -= chance
        if point < 0:
            return won
    return 1.0


# ── the bound ──


def bound(simulation: Simulation, by_voter: ByVoter, attackers: str, honest: int) -> set[int]:
    """Whom the best test lists that lists at most so many honest voters."""
    told = _teller(simulation, attackers)
    ratios = {voter: sum(map(told, votes)) for voter, votes in by_voter.items()}
    listed: set[int] = set()
    for voter in sorted(ratios, key=lambda each: -ratios[each]):
        if simulation.kinds[voter] != attackers:
            if not honest:
                break
            honest -= 1
        listed.add(voter)
    return listed


def _teller(simulation: Simulation, attackers: str) -> Callable[[SimulatedVote], float]:
    """By how much a vote speaks for an attacker: a logarithm."""
    order = sorted(range(len(simulation.strengths)), key=lambda each: -simulation.strengths[each])
    rivals = frozenset(order[TARGET - RIVALS : TARGET]) if attackers == TARGETED else frozenset[int]()
    sure = 0.9 if attackers != TARGETED else 1.0
    counted = [vote for vote in simulation.votes if vote.won >= 0]
    ties = sum(vote.won == 0.5 for vote in counted) / len(counted)
    pairs = [(low, high) for high in range(len(order)) for low in range(high)]
    lead = {(low, high): simulation.strengths[low] - simulation.strengths[high] for low, high in pairs}
    scale = ties / (sum(exp(-abs(each)) for each in lead.values()) / len(lead))

    def told(vote: SimulatedVote) -> float:
        pair, against = {vote.low, vote.high}, {vote.low, vote.high} & rivals
        if simulation.target in pair:
            wanted, chance = float(vote.low == simulation.target), sure
        elif len(against) == 1:
            wanted, chance = float(vote.low not in against), 1.0
        else:
            return 0.0
        tie = scale * exp(-abs(lead[vote.low, vote.high]))
        low = (1 - tie) / (1 + exp(-lead[vote.low, vote.high]))
        skip = 0.06
        honest = {1.0: (1 - skip) * low, 0.5: (1 - skip) * tie, 0.0: (1 - skip) * (1 - tie - low), -1.0: skip}
        by_attacker = chance if vote.won == wanted else 1 - chance if vote.won == 1 - wanted else 0.0
        return log(by_attacker / honest[vote.won]) if by_attacker and honest[vote.won] else -inf

    return told
