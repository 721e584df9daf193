"""The verdicts of many voters, in five bytes each, and how often each pair was decided.

Invariant: the tallies without some voters are those of a board on which these have not voted.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp
from typing import NamedTuple

from resolvers.voting.bradley_terry import Meeting, fit

# ── votes ──

SKIP = -1.0
TIE = 0.5


class SeenVote(NamedTuple):
    """A verdict of a voter on a pair. `won` is 1 if the lower ordinal won, 0 if the higher did, or `TIE` or `SKIP`."""

    low: int
    high: int
    low_is_left: bool
    won: float
    at: float
    """In seconds."""
    network: str | None = None

    @property
    def winner(self) -> int | None:
        return {1.0: self.low, 0.0: self.high}.get(self.won)


def once(votes: Iterable[SeenVote]) -> Sequence[SeenVote]:
    """Each pair as the voter first judged it, or one skip. To judge it again, by the same taste, says nothing new."""
    first: dict[tuple[int, int], SeenVote] = {}
    for vote in votes:
        pair = vote.low, vote.high
        if pair not in first or first[pair].won == SKIP:
            first[pair] = vote
    return list(first.values())


_HIGH_WON, _TIED, _LOW_WON, _SKIPPED = 0, 1, 2, 3
_CODES = {0.0: _HIGH_WON, TIE: _TIED, 1.0: _LOW_WON, SKIP: _SKIPPED}
_COUNTED = 3


@dataclass
class KeptVotes:
    """Voters are numbered in the order in which they were added. None of them takes an object."""

    _names: bytearray = field(default_factory=bytearray)
    _name_ends: array[int] = field(default_factory=lambda: array("Q", [0]))
    _last_votes: array[int] = field(default_factory=lambda: array("Q"))
    _lows: array[int] = field(default_factory=lambda: array("H"))
    _highs: array[int] = field(default_factory=lambda: array("H"))
    _won: array[int] = field(default_factory=lambda: array("B"))
    _ends: array[int] = field(default_factory=lambda: array("Q", [0]))
    _tallies: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """By pair: how often the higher one won, they tied, and the lower one won."""

    def __len__(self) -> int:
        return len(self._last_votes)

    def add(self, voter: str, last_vote: int, votes: Sequence[SeenVote]) -> int:
        """The new voter's number."""
        for vote in votes:
            code = _CODES[vote.won]
            if code < _COUNTED:
                self._tallies.setdefault((vote.low, vote.high), [0] * _COUNTED)[code] += 1
            self._lows.append(vote.low)
            self._highs.append(vote.high)
            self._won.append(code)
        self._names += voter.encode()
        self._name_ends.append(len(self._names))
        self._last_votes.append(last_vote)
        self._ends.append(len(self._lows))
        return len(self) - 1

    def name(self, voter: int) -> str:
        return self._names[self._name_ends[voter] : self._name_ends[voter + 1]].decode()

    def last_vote(self, voter: int) -> int:
        return self._last_votes[voter]

    def number_of_votes(self, voter: int) -> int:
        """With skips."""
        return self._ends[voter + 1] - self._ends[voter]

    def of(self, voter: int) -> Iterator[tuple[int, int, int | None]]:
        """The two contenders of each pair, once, and the winner, if one of them won when it was first judged."""
        first: dict[tuple[int, int], int] = {}
        for low, high, code in self._stored(voter):
            if first.get((low, high), _SKIPPED) == _SKIPPED:
                first[low, high] = code
        for (low, high), code in first.items():
            yield low, high, (high, None, low, None)[code]

    def scores(self, voter: int) -> tuple[int, dict[int, int]]:
        """How many votes count, and what they add to scores."""
        counted, scores = 0, dict[int, int]()
        for low, high, code in self._stored(voter):
            counted += code < _COUNTED
            if code in (_LOW_WON, _HIGH_WON):
                change = 1 if code == _LOW_WON else -1
                scores[low] = scores.get(low, 0) + change
                scores[high] = scores.get(high, 0) - change
        return counted, scores

    def tallies(self, without: Collection[int] = ()) -> Mapping[tuple[int, int], Sequence[int]]:
        """How often the higher one won, they tied, and the lower one won."""
        left = {pair: list(tally) for pair, tally in self._tallies.items()}
        for voter in without:
            for low, high, code in self._stored(voter):
                if code < _COUNTED:
                    left[low, high][code] -= 1
        return left

    def _stored(self, voter: int) -> Iterator[tuple[int, int, int]]:
        part = slice(self._ends[voter], self._ends[voter + 1])
        return zip(self._lows[part], self._highs[part], self._won[part], strict=True)


# ── the honest model ──

_STEPS, _PER_LEAD = 13, 4


@dataclass(frozen=True, slots=True)
class Honest:
    """How the voters of a board judge: the strengths by the decided votes, and how often a pair is decided at all.

    An even pair ties more often, so the share of the decided depends on the lead.
    """

    strengths: Mapping[int, float]
    decided: Sequence[float]

    @classmethod
    def of(cls, tallies: Mapping[tuple[int, int], Sequence[int]], start: Mapping[int, float] | None = None) -> Honest:
        won = [
            Meeting(low, high, tally[_LOW_WON], tally[_HIGH_WON])
            for (low, high), tally in tallies.items()
            if tally[_LOW_WON] or tally[_HIGH_WON]
        ]
        strengths = {one: strength.value for one, strength in fit(won, start).items()}
        # One imaginary decided vote each keeps them above 0.
        sums = [[1, 1] for _ in range(_STEPS)]
        for (low, high), tally in tallies.items():
            step = sums[_step(strengths.get(low, 0.0) - strengths.get(high, 0.0))]
            step[0] += tally[_LOW_WON] + tally[_HIGH_WON]
            step[1] += sum(tally)
        return cls(strengths, [decided / votes for decided, votes in sums])

    def pair(self, low: int, high: int) -> tuple[float, float]:
        """The lead of the lower one, and how often such a pair is decided."""
        lead = self.strengths.get(low, 0.0) - self.strengths.get(high, 0.0)
        return lead, self.decided[_step(lead)]


def _step(lead: float) -> int:
    return min(_STEPS - 1, int(abs(lead) * _PER_LEAD))


def chance(lead: float) -> float:
    """Of a decided vote for the one that leads by so much."""
    return 1 / (1 + exp(-lead))
