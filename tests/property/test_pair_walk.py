"""The walk through all pairs, held to its law by random lives of a board."""

from __future__ import annotations

import random
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from datastore.voting.pair_walk import DrawnPair, EligibleContenders, PairWalk, pair_number, pair_with_number

DRAWS = 16_000


class Life:
    """One voter on one board whose members come and go; remembers every pair of the cycle."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.seed = b"voter %d" % seed
        self.eligible = EligibleContenders(self.chance.choice((2, 3, 5, 12, 30)))
        self.walk = PairWalk()
        self.met: set[tuple[int, int]] = set()
        self.cycle = 0
        self.draws = self.repeats = self.missed = 0

    def happen(self) -> None:
        """Somebody may join or retire."""
        what = self.chance.random()
        if what < 0.02:
            self.eligible = EligibleContenders(self.eligible.size + self.chance.randint(1, 4), self.eligible.retired)
        elif what < 0.03:
            self.eligible = EligibleContenders(
                self.eligible.size, self.eligible.retired | 1 << self.chance.randrange(self.eligible.size)
            )

    def left(self) -> set[tuple[int, int]]:
        there = [ordinal for ordinal in range(self.eligible.size) if self.eligible.has(ordinal)]
        return set(combinations(there, 2)) - self.met

    def draw(self) -> DrawnPair | None:
        step = self.walk.draw(self.seed, self.eligible)
        assert step == self.walk.draw(self.seed, self.eligible)
        if step is None:
            assert len(self.eligible) < 2
            return None
        if step.cycle != self.cycle:
            self.missed += len(self.left()) if self.cycle else 0
            self.met, self.cycle = set(), step.cycle
        pair = (step.low, step.high)
        self.draws += 1
        self.repeats += pair in self.met
        assert step.low < step.high < self.eligible.size
        assert self.eligible.has(step.low)
        assert self.eligible.has(step.high)
        assert (step.seen, step.remaining) == (len(self.met), len(self.left()))
        self.met.add(pair)
        self.walk = PairWalk.unpacked(step.after.packed())
        assert self.walk == step.after
        return step


def test_no_pair_comes_twice_and_none_is_left_out() -> None:
    """16,000 draws while members join and retire: 0 repeats, 0 missed, and the count of what is left is exact."""
    draws = repeats = missed = longest = 0
    for seed in range(1000):
        life = Life(seed)
        for _ in range(200):
            life.happen()
            life.draw()
        longest = max(longest, len(life.walk.packed()))
        draws, repeats, missed = draws + life.draws, repeats + life.repeats, missed + life.missed
        if draws >= DRAWS:
            break
    assert draws >= DRAWS
    assert (repeats, missed) == (0, 0)
    assert longest < 250


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 14), st.sets(st.integers(0, 13)), st.binary(min_size=1, max_size=20))
def test_a_cycle_has_every_pair_once(size: int, retired: set[int], seed: bytes) -> None:
    """From the first ballot to the last, then it starts again with another order."""
    eligible = EligibleContenders(size, sum(1 << ordinal for ordinal in retired if ordinal < size))
    there = [ordinal for ordinal in range(size) if eligible.has(ordinal)]
    walk, met = PairWalk(), []
    for _ in combinations(there, 2):
        step = walk.draw(seed, eligible)
        assert step is not None
        assert step.cycle == 1
        met.append((step.low, step.high))
        walk = step.after
    assert sorted(met) == sorted(combinations(there, 2), key=lambda pair: pair)
    again = walk.draw(seed, eligible)
    assert again is None if len(there) < 2 else again is not None and (again.cycle, again.seen) == (2, 0)


@given(st.integers(0, 10**12))
def test_a_number_stands_for_one_pair(number: int) -> None:
    """And the pair its number."""
    low, high = pair_with_number(number)
    assert 0 <= low < high
    assert pair_number(low, high) == number


def test_first_pairs_are_spread_evenly() -> None:
    """Of 6,600 voters on a board of 12, every pair comes first for about a hundred; each stands left half the time."""
    eligible, counts, left = EligibleContenders(12), dict.fromkeys(combinations(range(12), 2), 0), 0
    for voter in range(6600):
        step = PairWalk().draw(b"voter %d" % voter, eligible)
        assert step is not None
        counts[step.low, step.high] += 1
        left += step.low_is_left
    assert min(counts.values()) > 60
    assert max(counts.values()) < 145
    assert 3100 < left < 3500


def test_a_new_contender_does_not_change_the_outstanding_pair() -> None:
    """Who has voted once keeps the drawn pair whatever number of members join."""
    first = PairWalk().draw(b"v", EligibleContenders(5))
    assert first is not None
    before, after = (first.after.draw(b"v", EligibleContenders(size)) for size in (5, 50))
    assert before is not None
    assert after is not None
    assert (before.low, before.high) == (after.low, after.high)


def test_the_next_pair_is_found_quickly_when_few_contenders_are_left() -> None:
    """Three of 2,000 are left among 1,999,000 pairs: their pairs are found, each once."""
    there = (7, 900, 1999)
    eligible = EligibleContenders(2000, ((1 << 2000) - 1) ^ sum(1 << ordinal for ordinal in there))
    walk, met = PairWalk(), set()
    for _ in range(3):
        step = walk.draw(b"v", eligible)
        assert step is not None
        assert step.cycle == 1
        met.add((step.low, step.high))
        walk = step.after
    assert met == set(combinations(there, 2))
