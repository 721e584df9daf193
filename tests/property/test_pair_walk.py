"""The walk through all pairs, held to its invariant by random lives of a board."""

import random
from dataclasses import replace
from itertools import combinations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from datastore.voting.pair_walk import (
    MAX_MISSED_BYTES,
    MAX_RANGES,
    DrawnPair,
    EligibleContenders,
    PairRange,
    PairWalk,
    pair_number,
    pair_with_number,
)
from tests.examples import examples

DRAWS = 16_000


def restored(eligible: EligibleContenders, ordinal: int) -> EligibleContenders:
    return EligibleContenders(
        eligible.size,
        eligible.retired & ~(1 << ordinal),
        eligible.restorations + 1,
        (*eligible.latest_restored, ordinal)[-64:],
    )


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
        """Somebody may join, retire or be restored."""
        what, ordinal = self.chance.random(), self.chance.randrange(self.eligible.size)
        if what < 0.02:
            self.eligible = replace(self.eligible, size=self.eligible.size + self.chance.randint(1, 4))
        elif what < 0.03:
            self.eligible = replace(self.eligible, retired=self.eligible.retired | 1 << ordinal)
        elif what < 0.05 and not self.eligible.has(ordinal):
            self.eligible = restored(self.eligible, ordinal)

    def left(self) -> set[tuple[int, int]]:
        there = [ordinal for ordinal in range(self.eligible.size) if self.eligible.has(ordinal)]
        return set(combinations(there, 2)) - self.met

    def draw(self) -> DrawnPair | None:
        assert self.walk.needs_seen(self.eligible) <= bool(self.met)
        self.walk = self.walk.recounted(self.seed, self.eligible, self.met)
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
    assert longest < 400


@settings(max_examples=examples(60))
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


def joined_one_by_one(seed: bytes, first: int) -> tuple[PairWalk, set[tuple[int, int]], EligibleContenders]:
    """A walk with every range open, one for each newcomer, and the pairs it has shown."""
    eligible, walk, shown = EligibleContenders(first), PairWalk(), set()
    while len(walk.ranges) < MAX_RANGES:
        step = walk.draw(seed, eligible)
        assert step is not None
        shown.add((step.low, step.high))
        eligible = EligibleContenders(eligible.size + 1)
        walk = step.after.with_newcomers(eligible)
    return walk, shown, eligible


@settings(max_examples=examples(40))
@given(st.binary(min_size=1, max_size=8), st.integers(4, 12), st.integers(2, 8), st.integers(0, 3))
@example(b"v", 6, 6, 0)
def test_a_cycle_goes_on_with_newcomers_when_every_range_is_finished_at_once(
    seed: bytes, first: int, newcomers: int, survivors: int
) -> None:
    """All who stood in the twelve open ranges retire: the newcomers' pairs come next, and the cycle ends after them."""
    walk, shown, eligible = joined_one_by_one(seed, first)
    retired = (1 << eligible.size) - 1 - ((1 << survivors) - 1)
    eligible = EligibleContenders(eligible.size + newcomers, retired)
    there = [ordinal for ordinal in range(eligible.size) if eligible.has(ordinal)]
    possible = set(combinations(there, 2)) - shown
    met = set()
    for left in range(len(possible), 0, -1):
        step = walk.draw(seed, eligible)
        assert step is not None
        assert (step.cycle, step.remaining) == (1, left)
        met.add((step.low, step.high))
        walk = step.after
    assert met == possible
    last = walk.draw(seed, eligible)
    assert last is None if len(there) < 2 else last is not None and last.cycle == 2


@given(st.binary(min_size=1, max_size=8), st.integers(2, 6))
def test_a_walk_has_twelve_open_ranges_at_most(seed: bytes, first: int) -> None:
    """However many join one by one, a ballot stays small; those who wait for a place come in the same cycle."""
    eligible, walk, shown = EligibleContenders(first), PairWalk(), set()
    while True:
        step = walk.draw(seed, eligible)
        assert step is not None
        if step.cycle > 1:
            break
        shown.add((step.low, step.high))
        eligible = EligibleContenders(min(eligible.size + 1, first + 2 * MAX_RANGES))
        walk = step.after.with_newcomers(eligible)
        assert len(walk.ranges) <= MAX_RANGES
    assert shown == set(combinations(range(eligible.size), 2))


def shown_by_plain_count(seed: bytes, walk: PairWalk, eligible: EligibleContenders) -> list[int]:
    """For each range, its walked pairs whose contenders are both eligible, found by walking it from the start."""
    counts = []
    for pair_range in walk.ranges:
        order = walk._order(seed, pair_range)
        pairs = [pair_with_number(pair_range.first + order.at(index)) for index in range(pair_range.position)]
        counts.append(sum(eligible.has(low) and eligible.has(high) for low, high in pairs))
    return counts


@settings(max_examples=examples(150))
@given(st.integers(0, 10**6), st.integers(0, 120), st.sampled_from((0.02, 0.3, 0.9)))
def test_what_was_shown_is_counted_as_by_walking_again(seed: int, draws: int, retiring: float) -> None:
    """And the counting looks at no more pairs than the cheapest of its three ways, whatever the number walked."""
    life = Life(seed)
    for _ in range(draws):
        life.happen()
        life.draw()
    gone = sum(1 << ordinal for ordinal in range(life.eligible.size) if life.chance.random() < retiring)
    eligible = replace(life.eligible, retired=life.eligible.retired | gone)
    walk = life.walk.recounted(life.seed, eligible)
    assert [pair_range.shown for pair_range in walk.ranges] == shown_by_plain_count(life.seed, life.walk, eligible)
    for pair_range in walk.ranges:
        there = eligible.pairs(pair_range.start, pair_range.end)
        assert pair_range.shown <= min(pair_range.position, there)
    assert life.walk.recount_cost(eligible) <= sum(pair_range.position for pair_range in life.walk.ranges)


def test_one_retirement_costs_its_own_pairs_only() -> None:
    """After 30,000 pairs among 400 contenders, one retirement looks at the 399 pairs of the one who left."""
    walk = PairWalk(seen=30_000, covered=400, ranges=(PairRange(0, 400, 30_000, 30_000),))
    retired = EligibleContenders(400, 1 << 7)
    assert walk.recount_cost(retired) == 399
    counted = walk.recounted(b"v", retired)
    assert [counted.ranges[0].shown] == shown_by_plain_count(b"v", walk, retired)


def test_a_restored_contender_s_pairs_come_in_the_same_cycle() -> None:
    """Contenders retire and come back all the time: still 0 repeats, 0 left out, and what was passed is made up for."""
    repeats = missed = made_up = 0
    for seed in range(60):
        life = Life(seed)
        for _ in range(150):
            retired = [ordinal for ordinal in range(life.eligible.size) if not life.eligible.has(ordinal)]
            what = life.chance.random()
            if what < 0.15:
                gone = 1 << life.chance.randrange(life.eligible.size)
                life.eligible = replace(life.eligible, retired=life.eligible.retired | gone)
            elif what < 0.3 and retired:
                life.eligible = restored(life.eligible, life.chance.choice(retired))
            before = set(life.walk.missed)
            step = life.draw()
            made_up += step is not None and pair_number(step.low, step.high) in before
        repeats, missed = repeats + life.repeats, missed + life.missed
    assert (repeats, missed) == (0, 0)
    assert made_up > 100


def test_every_pair_comes_in_the_cycle_after_half_a_board_has_come_back() -> None:
    """A voter who went on meanwhile has passed 300 pairs and more."""
    for seed in range(8):
        life = Life(seed)
        life.eligible, gone = EligibleContenders(30), life.chance.sample(range(30), 15)
        life.draw()
        life.eligible = replace(life.eligible, retired=sum(1 << ordinal for ordinal in gone))
        for _ in range(99):
            life.draw()
        for ordinal in gone:
            life.eligible = restored(life.eligible, ordinal)
        while life.cycle == 1:
            life.draw()
        assert (life.repeats, life.missed) == (0, 0)


def test_without_the_votes_no_pair_comes_twice() -> None:
    """A walk too long for its votes to be read: what was passed comes in the next cycle, and nothing is repeated."""
    eligible, walk, met = EligibleContenders(8, 1), PairWalk(), set()
    for _ in range(15):
        step = walk.draw(b"v", eligible)
        assert step is not None
        met.add((step.low, step.high))
        walk = step.after
    eligible = restored(eligible, 0)
    assert walk.needs_seen(eligible)
    walk = walk.recounted(b"v", eligible)
    assert walk.missed == ()
    for _ in range(walk.remaining(eligible)):
        step = walk.draw(b"v", eligible)
        assert step is not None
        assert step.cycle == 1
        assert (step.low, step.high) not in met
        walk = step.after
    last = walk.draw(b"v", eligible)
    assert last is not None
    assert last.cycle == 2


@given(st.sets(st.integers(0, 2_000_000), max_size=MAX_MISSED_BYTES // 3), st.integers(1, 10**6))
def test_missed_pairs_are_packed(missed: set[int], restorations: int) -> None:
    """In at most 800 bytes on a board of 2,000."""
    walk = PairWalk(1, 9, 2000, 4, (PairRange(0, 2000, 9, 9),), restorations, tuple(sorted(missed)))
    assert PairWalk.unpacked(walk.packed()) == walk
    assert len(walk.packed()) < 800
