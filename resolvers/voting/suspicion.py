"""Which voters of a board behave as honest ones rarely do; a pure function of their votes.

The service draws pairs and sides itself, so it knows how often an honest voter would vote for one side or one contender
by chance. Each test allows more than chance, since people differ: a null with these margins is too kind to attackers
rather than to itself. What is tested against a taste counts a pair once, however often the voter judged it.

| test    | counts                                                   | an honest chance of each                        |
|---------|----------------------------------------------------------|-------------------------------------------------|
| side    | verdicts for one side                                    | 65 %                                            |
|         | verdicts for the side opposite to the one before, or for | 65 %                                            |
|         | the same side                                            |                                                 |
| rhythm  | pauses before votes within a tenth of the voter's middle | 30 %                                            |
|         | one                                                      |                                                 |
| speed   | votes within a second of the verdict before              | 15 %                                            |
| loyalty | votes for one contender, of its pairs that the voter saw | by its strength and a taste of N(0, 0.8), times |
|         |                                                          | the share of other pairs judged, and 15 % more  |
| push    | verdicts for what a group votes for, and against what it | that of honest voters who are simulated on the  |
|         | votes against                                            | same pairs (`pushes`)                           |
| burst   | new voters of one network whose first vote was for one   | its share of the pairs of those contenders that |
|         | contender, if there are 20 or more                       | these voters were shown, of which it wins 85 %  |

A voter's probability is the least of the tests' (for loyalty, times the contenders; for sides, times four), times the
number of tests: by Bonferroni no greater than the chance that an honest voter gets it. A burst is a test of a group: a
voter in it gets the share of those who may be honest, once the group itself could not be.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from math import exp, lgamma, log, log1p
from statistics import median
from typing import Final, NamedTuple

from datastore.voting.suspects import RankChange
from resolvers.voting.kept_votes import SKIP, KeptVotes, SeenVote, once
from resolvers.voting.pushes import NOTHING_PUSHED, Pushes, find_pushes

# ── findings ──


class Finding(NamedTuple):
    """What one test found: the chance of it, and a sentence with numbers of this voter only."""

    chance: float
    reason: str


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A voter, the chance that an honest one behaves like this, why, and what their votes add to scores."""

    voter: str
    last_vote: int
    votes: int
    probability: float
    reasons: tuple[str, ...]
    scores: Mapping[int, int]


# ── chances ──

_TESTS = 5
_BESIDE_PUSH = 1.25
"""The push's test has the rest of the allowance once all others together have a fifth."""
_KNOWN = 0.01
"""The votes of those who are less probably honest are not taken for honest ones by the test of groups."""
LEAST_PROBABLE = 1e-12
"""Smaller ones say nothing more."""
MOST_PROBABLE = 0.1
"""Voters with a greater one are not remembered."""


def binomial_tail(found: int, number: int, chance: float) -> float:
    """The chance of `found` or more of a number of events, each of which has a chance."""
    if found <= number * chance:
        return 1.0
    if chance >= 1:
        return 1.0
    total = 0.0
    for each in range(found, number + 1):
        ways = lgamma(number + 1) - lgamma(each + 1) - lgamma(number - each + 1)
        term = exp(ways + each * log(chance) + (number - each) * log1p(-chance))
        total += term
        if term < total * 1e-12:
            break
    return min(1.0, total)


def mixed_tail(found: int, chances: Sequence[float]) -> float:
    """The chance of `found` or more of events that have a chance each."""
    exactly = [1.0] + [0.0] * found  # the last one: so many or more
    for chance in chances:
        exactly[found] += exactly[found - 1] * chance
        for number in range(found - 1, 0, -1):
            exactly[number] += (exactly[number - 1] - exactly[number]) * chance
        exactly[0] *= 1 - chance
    return exactly[found]


# ── tests of one voter ──

_SIDE = 0.65
_SIDES = 4
"""Two tests share an allowance, and what is frequent may be either side, or either changing or staying."""
_EVEN, _EVEN_WITHIN = 0.30, 0.1
_FAST, _FAST_SECONDS = 0.15, 1.0
_CHOOSY = 0.15
_LEAST_LOYAL, _LEAST_SEEN = 0.75, 3
_TASTE = 0.8
_TASTES = tuple((_TASTE * step / 2, exp(-((step / 2) ** 2) / 2)) for step in range(-6, 9))
"""Tastes, and how frequent each is."""
_TASTE_SUM = sum(weight for _, weight in _TASTES)


def _sides(votes: Sequence[SeenVote]) -> tuple[Finding, Finding]:
    """How often the voter chose one side, and how often they changed sides or stayed."""
    left = [vote.low_is_left == (vote.won == 1) for vote in votes if vote.winner is not None]
    turned = [now != before for before, now in pairwise(left)]
    return (
        _more_frequent(left, "for the left side", "for the right side"),
        _more_frequent(turned, "for the side opposite to the vote before", "for the same side as the vote before"),
    )


def _more_frequent(which: Sequence[bool], true: str, false: str) -> Finding:
    most, what = max((sum(which), true), (len(which) - sum(which), false))
    chance = min(1.0, _SIDES * binomial_tail(most, len(which), _SIDE))
    return Finding(chance, f"{most} of {len(which)} votes {what}.")


def _rhythm(pauses: Sequence[float]) -> Finding:
    middle = median(pauses) if pauses else 0.0
    # The middle one itself proves nothing.
    even = sum(abs(pause - middle) <= _EVEN_WITHIN * middle for pause in pauses) - 1
    chance = binomial_tail(max(0, even), max(0, len(pauses) - 1), _EVEN)
    return Finding(chance, f"{even + 1} of {len(pauses)} pauses before votes of almost the same length.")


def _speed(pauses: Sequence[float]) -> Finding:
    fast = sum(pause < _FAST_SECONDS for pause in pauses)
    chance = binomial_tail(fast, len(pauses), _FAST)
    return Finding(chance, f"{fast} of {len(pauses)} votes within a second of the verdict before.")


class _Seen(NamedTuple):
    """How often a voter saw a contender, voted on it, and for it."""

    pairs: int
    judged: int
    wins: int


def _seen(votes: Sequence[SeenVote]) -> Iterator[tuple[int, _Seen]]:
    """Of the contenders that won most of what the voter saw of them."""
    pairs: Counter[int] = Counter()
    judged: Counter[int] = Counter()
    wins: Counter[int] = Counter()
    for vote in votes:
        pairs.update((vote.low, vote.high))
        if vote.won != SKIP:
            judged.update((vote.low, vote.high))
        if vote.winner is not None:
            wins[vote.winner] += 1
    for contender, won in wins.items():
        if pairs[contender] >= _LEAST_SEEN and won >= _LEAST_LOYAL * pairs[contender]:
            yield contender, _Seen(pairs[contender], judged[contender], won)


def _loyal_chance(
    contender: int, seen: _Seen, votes: Sequence[SeenVote], judged: int, strengths: Mapping[int, float]
) -> float:
    """The chance of so many votes for a contender."""
    others = len(votes) - seen.pairs
    share = min(1.0, (judged - seen.judged) / others + _CHOOSY) if others else 1.0
    own = strengths.get(contender, 0.0)
    leads = [
        own - strengths.get(vote.high if vote.low == contender else vote.low, 0.0)
        for vote in votes
        if contender in (vote.low, vote.high)
    ]
    tails = (
        weight * mixed_tail(seen.wins, [share / (1 + exp(-lead - taste)) for lead in leads])
        for taste, weight in _TASTES
    )
    return sum(tails) / _TASTE_SUM


# ── all voters ──

_WENT: Final[Mapping[bool | None, str]] = {
    True: "pairs with a contender that a group votes for were votes for it.",
    False: "pairs with a contender that a group votes against were votes against it.",
    None: "pairs with a contender that a group votes for or against were votes like the group's.",
}

LEAST_OF_NETWORK = 20
_NEW = 3
"""Votes of a voter who may have come for them alone."""
_BURST_WINS = 0.85
_BURST = 1e-4


@dataclass
class Detector:
    """Sees the voters of a board one after the other, and then tells which are suspects."""

    strengths: Mapping[int, float]
    contenders: int
    voters: int = 0
    votes: int = 0
    pushes: Pushes = NOTHING_PUSHED
    _kept: KeptVotes = field(default_factory=KeptVotes)
    _found: dict[int, Suspicion] = field(default_factory=dict)
    """By the number of the voter."""
    _newcomers: dict[str, list[tuple[int, SeenVote]]] = field(default_factory=lambda: defaultdict(list))
    """By network: voters with few votes, and the first."""

    def see(self, voter: str, votes: Sequence[SeenVote], last_vote: int = 0) -> None:
        """All verdicts of a voter that are not void, in their order. One without a counted vote is nobody."""
        counted = [vote for vote in votes if vote.won != SKIP]
        if not counted:
            return
        self.voters += 1
        self.votes += len(counted)
        number = self._kept.add(voter, last_vote, votes)
        # Skipping quickly is no sign of anything: a skip changes nothing.
        pauses = [later.at - earlier.at for earlier, later in pairwise(votes) if later.won != SKIP]
        findings = [*_sides(counted), _rhythm(pauses), _speed(pauses), self._loyalty(once(votes))]
        least = min(1.0, _TESTS * min(each.chance for each in findings))
        if least <= MOST_PROBABLE:
            telling = sorted(each for each in findings if _TESTS * each.chance <= MOST_PROBABLE)
            self._found[number] = self._suspicion(number, least, tuple(each.reason for each in telling))
        network = counted[0].network
        if network is not None and len(counted) <= _NEW:
            self._newcomers[network].append((number, counted[0]))

    def _loyalty(self, votes: Sequence[SeenVote]) -> Finding:
        found, judged = Finding(1.0, ""), sum(vote.won != SKIP for vote in votes)
        for contender, seen in _seen(votes):
            chance = self.contenders * _loyal_chance(contender, seen, votes, judged, self.strengths)
            if chance < found.chance:
                found = Finding(chance, f"{seen.wins} of the {seen.pairs} pairs with one contender were votes for it.")
        return found

    def look(self) -> None:
        """Test the groups, once all voters were seen."""
        self._find_bursts()
        self._find_pushes()

    def suspects(self) -> list[Suspicion]:
        """After `look`: the least probable first."""
        return sorted(self._found.values(), key=lambda each: (each.probability, -each.votes, each.voter))

    def pushed_scores(self) -> Mapping[int, int]:
        """What the votes of the groups add to scores, each voter as far as it probably belongs to one."""
        added: defaultdict[int, float] = defaultdict(float)
        for pusher in self.pushes.pushers:
            for contender, score in self._kept.scores(pusher.voter)[1].items():
                added[contender] += pusher.pusher * score
        return {contender: round(score) for contender, score in added.items()}

    def _find_bursts(self) -> None:
        """A newcomer's chance is the share of the honest among those who chose the same, if the group is no chance.

        As many contenders are taken for possible as they were shown: some may have been retired before, or since.
        """
        groups = [group for group in self._newcomers.values() if len(group) >= LEAST_OF_NETWORK]
        for group in groups:
            chosen = Counter(first.winner for _, first in group if first.winner is not None)
            for contender, number in chosen.items():
                pairs = [(first.low, first.high) for _, first in group if first.winner == contender]
                expected = min(0.9, _BURST_WINS * 2 / len({*chain.from_iterable(pairs)}))
                chance = binomial_tail(number, len(group), expected) * self.contenders * len(groups)
                honest = _TESTS * ((len(group) - number) * expected / (1 - expected) + 1) / number
                if chance < _BURST and honest <= MOST_PROBABLE:
                    for voter in (voter for voter, first in group if first.winner == contender):
                        votes, _ = self._kept.scores(voter)
                        self._add(
                            voter, honest, f"{votes} of {votes} votes in a burst of first votes for one contender."
                        )

    def _find_pushes(self) -> None:
        known = [voter for voter, each in self._found.items() if each.probability <= _KNOWN]
        self.pushes = find_pushes(self._kept, self.contenders, known)
        if self.pushes.pushed:
            less = {voter: _TESTS * each.probability for voter, each in self._found.items()}
            self._found = {
                voter: replace(each, probability=less[voter])
                for voter, each in self._found.items()
                if less[voter] <= MOST_PROBABLE
            }
        for pusher in self.pushes.pushers:
            probability = _BESIDE_PUSH * pusher.chance
            if probability <= MOST_PROBABLE:
                self._add(pusher.voter, probability, f"{pusher.went} of the {pusher.pairs} {_WENT[pusher.up]}")

    def _add(self, voter: int, probability: float, reason: str) -> None:
        """What a test of a group found of a voter, beside what is known."""
        known = self._found.get(voter)
        least = min(probability, known.probability if known else 1.0)
        self._found[voter] = self._suspicion(voter, least, (reason, *(known.reasons if known else ())))

    def _suspicion(self, voter: int, probability: float, reasons: tuple[str, ...]) -> Suspicion:
        votes, scores = self._kept.scores(voter)
        name, last_vote = self._kept.name(voter), self._kept.last_vote(voter)
        return Suspicion(name, last_vote, votes, max(LEAST_PROBABLE, probability), reasons, scores)


# ── ranks ──

MOST_CHANGES = 20


def rank_changes(scores: Mapping[int, int], added: Mapping[int, int]) -> list[RankChange]:
    """The contenders, the highest first, whose rank would be another without what was added to scores."""
    before = _ranks(scores)
    after = _ranks({contender: score - added.get(contender, 0) for contender, score in scores.items()})
    changed = (RankChange(each, before[each], after[each]) for each in scores if before[each] != after[each])
    return sorted(changed, key=lambda change: (change.rank, change.contender))[:MOST_CHANGES]


class PushedRank(NamedTuple):
    """A contender that a group votes for (`up`) or against, its rank, and the one without the group's votes."""

    contender: int
    up: bool
    rank: int
    without: int


def pushed_ranks(scores: Mapping[int, int], added: Mapping[int, int], pushes: Pushes) -> list[PushedRank]:
    """Of the pushed contenders that are ranked, by what the groups have added to scores."""
    before = _ranks(scores)
    after = _ranks({contender: score - added.get(contender, 0) for contender, score in scores.items()})
    return [
        PushedRank(one, push.up, before[one], after[one]) for push in pushes.pushed if (one := push.contender) in before
    ]


def _ranks(scores: Mapping[int, int]) -> dict[int, int]:
    """One more than the number of contenders with a higher score."""
    ranks: dict[int, int] = {}
    last_score, last_rank = None, 0
    for place, contender in enumerate(sorted(scores, key=lambda each: -scores[each]), 1):
        if scores[contender] != last_score:
            last_score, last_rank = scores[contender], place
        ranks[contender] = last_rank
    return ranks
