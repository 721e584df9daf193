"""A walk through all pairs of a board's contenders: random order, no repeats, no omissions, a few bytes of state.

Invariant: within a cycle, `PairWalk.draw` returns each pair of eligible contenders at most once, and starts a new cycle
only when no such pair is left. It returns the same pair until the walk continues from `DrawnPair.after`. Contenders may
join (ordinals only grow), retire and be restored at any time.

The pair of ordinals i < j has the number j(j-1)/2 + i, so a pair keeps its number when others join. A `PairRange`
holds all pairs whose higher ordinal lies in a range. Each range is walked in the order of a keyed permutation of its
numbers (see `datastore.values.permutation`), so its state is one position. Newcomers open a new range. Each draw picks
one of the open ranges at random, weighted by what is left in each, so newcomers appear at once. Pairs with a retired
contender are skipped.

When a contender is restored, the walk has passed some of its pairs without showing them. They are found by comparing
with the pairs of this cycle's votes, and stored in the walk as `missed` until they are drawn: see `recounting`. Those
beyond `MAX_MISSED_BYTES` come in the next cycle.

Cost: about 25 µs a draw at 2,000 contenders, and up to 2 ms while there are missed pairs. With nearly all retired, at
most √(pairs) steps: see `_next_shown`.
The first draw after a retirement or a restoration counts what was shown, about 7 µs a pair looked at.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate
from math import isqrt
from typing import NamedTuple

from datastore.values.permutation import Permutation

# ── pairs ──


def pair_count(contenders: int) -> int:
    return contenders * (contenders - 1) // 2


def pair_number(low: int, high: int) -> int:
    return pair_count(high) + low


def pair_with_number(number: int) -> tuple[int, int]:
    high = (1 + isqrt(1 + 8 * number)) // 2
    return number - pair_count(high), high


@dataclass(frozen=True, slots=True)
class EligibleContenders:
    """The contenders that can be drawn: ordinals below `size` whose bit in `retired` is not set.

    `restorations` counts how often one came back from retirement; `latest_restored` has the ordinals of the latest.
    """

    size: int
    retired: int = 0
    restorations: int = 0
    latest_restored: tuple[int, ...] = ()

    def has(self, ordinal: int) -> bool:
        return not self.retired >> ordinal & 1

    def __len__(self) -> int:
        return self.size - self.retired.bit_count()

    @property
    def version(self) -> int:
        """The number of retirements and restorations so far. It identifies the set of retired contenders."""
        return self.retired.bit_count() + 2 * self.restorations

    def restored_since(self, restorations: int) -> frozenset[int]:
        """The eligible contenders among those restored after a number of restorations."""
        number = self.restorations - restorations
        latest = self.latest_restored[-number:] if number > 0 else ()
        return frozenset(ordinal for ordinal in latest if self.has(ordinal))

    def pairs(self, start: int, end: int) -> int:
        """The number of eligible pairs whose higher ordinal is from `start` to `end - 1`."""
        return pair_count(self._below(end)) - pair_count(self._below(start))

    def _below(self, ordinal: int) -> int:
        return ordinal - (self.retired & ((1 << ordinal) - 1)).bit_count()


# ── walks ──

MAX_RANGES = 12
"""Open at a time. Further newcomers wait until the shortest open range is finished."""

MAX_MISSED_BYTES = 768
"""For the missed pairs of a packed walk. Near pairs take a byte each, so those of 39 contenders have room whatever
happens; of 2,000 contenders, at least 256 pairs."""

RECOUNT_SLICE = 200
"""Pairs looked at without a pause, in about 1.5 ms."""


_keyed = lru_cache(maxsize=10_000)(Permutation.keyed)


@dataclass(frozen=True, slots=True)
class PairRange:
    """The pairs whose higher ordinal is from `start` to `end - 1`, walked up to `position`.

    `shown` counts the walked pairs whose two contenders are still eligible.
    """

    start: int
    end: int
    position: int = 0
    shown: int = 0

    @property
    def first(self) -> int:
        return pair_count(self.start)

    @property
    def length(self) -> int:
        return pair_count(self.end) - self.first

    @property
    def unwalked(self) -> int:
        return self.length - self.position


@dataclass(frozen=True, slots=True)
class DrawnPair:
    """A pair, its sides, and the walk that continues after it."""

    low: int
    high: int
    low_is_left: bool
    cycle: int
    seen: int
    remaining: int
    after: PairWalk

    @property
    def left(self) -> int:
        return self.low if self.low_is_left else self.high

    @property
    def right(self) -> int:
        return self.high if self.low_is_left else self.low


@dataclass(frozen=True, slots=True)
class PairWalk:
    """A voter's state: the pairs `seen` in this cycle and the open ranges.

    Ordinals below `covered` belong to an open or a finished range. `version` identifies the eligible contenders for
    which `PairRange.shown` was counted. `missed` has the numbers of pairs that were passed while a contender was
    retired, for the first so many `restorations`.
    """

    cycle: int = 1
    seen: int = 0
    covered: int = 0
    version: int = 0
    ranges: tuple[PairRange, ...] = ()
    restorations: int = 0
    missed: tuple[int, ...] = ()

    def draw(self, seed: bytes, eligible: EligibleContenders) -> DrawnPair | None:
        """The next pair, or None with fewer than two contenders. `seed` is constant for each voter and board.

        A walk that `needs_seen` must be `recounted` first.
        """
        if len(eligible) < 2:  # noqa: PLR2004 - a pair
            return None
        walk = self.recounted(seed, eligible)
        if not any(_left_in(pair_range, eligible) for pair_range in walk.ranges):
            # All open ranges are finished. After retirements they may still take every place.
            walk = replace(walk, ranges=()).with_newcomers(eligible)
        if not any(_left_in(pair_range, eligible) for pair_range in walk.ranges) and not walk.missed_now(eligible):
            new_cycle = PairWalk(self.cycle + 1, version=eligible.version, restorations=eligible.restorations)
            walk = new_cycle.with_newcomers(eligible)
        return walk.next_pair(seed, eligible)

    def remaining(self, eligible: EligibleContenders) -> int:
        """The eligible pairs left in this cycle. The walk must be `recounted` for these contenders."""
        left = sum(_left_in(pair_range, eligible) for pair_range in self.ranges) + len(self.missed_now(eligible))
        return left + eligible.pairs(self.covered, eligible.size)

    # ── retired and restored contenders ──

    def needs_seen(self, eligible: EligibleContenders) -> bool:
        """Whether recounting must know the pairs that were seen in this cycle."""
        return bool(self.seen and eligible.restored_since(self.restorations))

    def recounted(
        self, seed: bytes, eligible: EligibleContenders, seen: Collection[tuple[int, int]] | None = None
    ) -> PairWalk:
        """The same walk with `shown` and `missed` for these contenders; see `recounting`."""
        counting = self.recounting(seed, eligible, seen)
        while True:
            try:
                next(counting)
            except StopIteration as counted:
                walk: PairWalk = counted.value
                return walk

    def recounting(
        self, seed: bytes, eligible: EligibleContenders, seen: Collection[tuple[int, int]] | None = None
    ) -> Generator[None, None, PairWalk]:
        """Recount in slices: yield after every `RECOUNT_SLICE` pairs, and return what `recounted` returns.

        `seen` are the pairs of this cycle, as lower and higher ordinal. If they are unknown (None), the missed pairs of
        restored contenders come in the next cycle.

        Looks at `recount_cost` pairs: in each range at those walked, those eligible or those retired, whichever are
        fewest, and at all pairs of contenders restored since.
        """
        if self.version == eligible.version:
            return self
        missed = yield from self._found_missed(seed, eligible, seen)
        ranges, looked_at = [], 0
        for pair_range in self.ranges:
            shown, terms = self._shown_terms(seed, pair_range, eligible)
            for term in terms:
                shown += term
                looked_at += 1
                if looked_at % RECOUNT_SLICE == 0:
                    yield
            ranges.append(replace(pair_range, shown=shown))
        return replace(
            self,
            version=eligible.version,
            ranges=tuple(ranges),
            restorations=eligible.restorations,
            missed=_fitting(missed),
        )

    def recount_cost(self, eligible: EligibleContenders) -> int:
        """The number of pairs that `recounting` looks at."""
        if self.version == eligible.version:
            return 0
        restored = len(eligible.restored_since(self.restorations)) * self.covered if self.seen else 0
        return restored + sum(min(_recount_costs(pair_range, eligible)) for pair_range in self.ranges)

    def _found_missed(
        self, seed: bytes, eligible: EligibleContenders, seen: Collection[tuple[int, int]] | None
    ) -> Generator[None, None, set[int]]:
        """The missed pairs, with those of contenders restored since."""
        missed = set(self.missed)
        if seen is None or not self.seen:
            return missed
        looked_at = 0
        for restored in eligible.restored_since(self.restorations):
            for other in range(self.covered):
                looked_at += 1
                if looked_at % RECOUNT_SLICE == 0:
                    yield
                low, high = min(restored, other), max(restored, other)
                is_unseen = low < high < self.covered and eligible.has(other) and (low, high) not in seen
                if is_unseen and self._has_passed(seed, low, high):
                    missed.add(pair_number(low, high))
        return missed

    def _has_passed(self, seed: bytes, low: int, high: int) -> bool:
        """Whether the walk is beyond a pair below `covered`, which it has not necessarily shown."""
        pair_range = next((each for each in self.ranges if each.start <= high < each.end), None)
        if pair_range is None:
            return True
        number = pair_number(low, high) - pair_range.first
        return self._order(seed, pair_range).position_of(number) < pair_range.position

    def missed_now(self, eligible: EligibleContenders) -> list[int]:
        """The numbers of the missed pairs that can be drawn."""
        pairs = ((number, *pair_with_number(number)) for number in self.missed)
        return [number for number, low, high in pairs if eligible.has(low) and eligible.has(high)]

    def _shown_terms(
        self, seed: bytes, pair_range: PairRange, eligible: EligibleContenders
    ) -> tuple[int, Iterator[int]]:
        """A number and terms to add to it; their sum is the number of walked pairs that are eligible."""
        order, position = self._order(seed, pair_range), pair_range.position
        costs = _recount_costs(pair_range, eligible)
        if costs.walked == min(costs):
            walked = (pair_with_number(pair_range.first + order.at(index)) for index in range(position))
            return 0, (int(eligible.has(low) and eligible.has(high)) for low, high in walked)
        if costs.eligible == min(costs):
            numbers = _pair_numbers(pair_range, eligible)
            return 0, (int(order.position_of(number) < position) for number in numbers)
        retired = _retired_pair_numbers(pair_range, eligible)
        return position, (-int(order.position_of(number) < position) for number in retired)

    def with_newcomers(self, eligible: EligibleContenders) -> PairWalk:
        """The walk with a range for new contenders, if another one may be opened."""
        if self.covered >= eligible.size or len(self.ranges) >= MAX_RANGES:
            return self
        start = 0 if self.covered < 2 else self.covered  # noqa: PLR2004 - one contender makes no pair
        return replace(self, covered=eligible.size, ranges=(*self.ranges, PairRange(start, eligible.size)))

    def next_pair(self, seed: bytes, eligible: EligibleContenders) -> DrawnPair:
        """The next pair of the open ranges and the missed pairs, at least one of which has some left."""
        random_number = _random_number(seed, self.cycle, self.seen)
        missed = self.missed_now(eligible)
        unwalked = sum(each.unwalked for each in self.ranges if _left_in(each, eligible))
        if missed and (random_number >> 1) % (unwalked + len(missed)) < len(missed):
            pair, after = self._after_missed(missed[(random_number >> 1) % len(missed)])
        else:
            pair, after = self._after_next(self._chosen_range(random_number >> 1, eligible), seed, eligible)
        after = replace(after, seen=self.seen + 1).with_newcomers(eligible)
        return DrawnPair(*pair, _low_is_left(random_number), self.cycle, self.seen, self.remaining(eligible), after)

    def _after_missed(self, number: int) -> tuple[tuple[int, int], PairWalk]:
        """A missed pair, and the walk without it."""
        return pair_with_number(number), replace(self, missed=tuple(each for each in self.missed if each != number))

    def _after_next(self, index: int, seed: bytes, eligible: EligibleContenders) -> tuple[tuple[int, int], PairWalk]:
        """The next pair of a range, and the walk after it."""
        pair_range = self.ranges[index]
        position, number = self._next_shown(seed, pair_range, eligible)
        moved = replace(pair_range, position=position + 1, shown=pair_range.shown + 1)
        others = (*self.ranges[:index], moved, *self.ranges[index + 1 :])
        unfinished = tuple(other for other in others if _left_in(other, eligible))
        return pair_with_number(pair_range.first + number), replace(self, ranges=unfinished)

    def _chosen_range(self, random_number: int, eligible: EligibleContenders) -> int:
        """The index of the range to draw from."""
        open_indexes = [index for index, pair_range in enumerate(self.ranges) if _left_in(pair_range, eligible)]
        if len(self.ranges) >= MAX_RANGES:
            return min(open_indexes, key=lambda index: self.ranges[index].unwalked)
        offset = random_number % sum(self.ranges[index].unwalked for index in open_indexes)
        for index in open_indexes:
            offset -= self.ranges[index].unwalked
            if offset < 0:
                break
        return index

    def _next_shown(self, seed: bytes, pair_range: PairRange, eligible: EligibleContenders) -> tuple[int, int]:
        """The position and number of the range's next eligible pair, which exists.

        If fewer than √(pairs) of the range are eligible, looking up the position of each is faster than walking.
        """
        order = self._order(seed, pair_range)
        if eligible.pairs(pair_range.start, pair_range.end) ** 2 < pair_range.length:
            return min(
                (position, number)
                for number in _pair_numbers(pair_range, eligible)
                if (position := order.position_of(number)) >= pair_range.position
            )
        position = pair_range.position
        while True:
            number = order.at(position)
            low, high = pair_with_number(pair_range.first + number)
            if eligible.has(low) and eligible.has(high):
                return position, number
            position += 1

    def _order(self, seed: bytes, pair_range: PairRange) -> Permutation:
        return _keyed(b"%b.%d.%d" % (seed, self.cycle, pair_range.start), pair_range.length)

    def low_was_left(self, seed: bytes) -> bool:
        """Whether the lower ordinal stood on the left in the pair after which the walk is this."""
        return _low_is_left(_random_number(seed, self.cycle, self.seen - 1))

    # ── encoding ──

    def packed(self) -> bytes:
        """Variable-length integers, seven bits a byte: about 20 bytes for one range at 2,000 contenders."""
        numbers = [self.cycle, self.seen, self.covered, self.version, self.restorations, len(self.missed)]
        numbers += _distances(self.missed)
        for pair_range in self.ranges:
            numbers += (pair_range.start, pair_range.end, pair_range.position, pair_range.shown)
        return b"".join(map(_packed, numbers))

    @classmethod
    def unpacked(cls, data: bytes) -> PairWalk:
        cycle, seen, covered, version, restorations, count, *numbers = _unpacked(data)
        missed, numbers = tuple(accumulate(numbers[:count])), numbers[count:]
        ranges = tuple(PairRange(*numbers[index : index + 4]) for index in range(0, len(numbers), 4))
        return cls(cycle, seen, covered, version, ranges, restorations, missed)


def _random_number(seed: bytes, cycle: int, seen: int) -> int:
    """What decides on the next pair and its sides."""
    return int.from_bytes(blake2b(b"%d.%d" % (cycle, seen), key=seed[:64], digest_size=8).digest())


def _low_is_left(random_number: int) -> bool:
    return bool(random_number & 1)


def _left_in(pair_range: PairRange, eligible: EligibleContenders) -> int:
    return eligible.pairs(pair_range.start, pair_range.end) - pair_range.shown


class _RecountCosts(NamedTuple):
    """The pairs to look at for each way of counting those shown."""

    walked: int
    eligible: int
    retired: int


def _recount_costs(pair_range: PairRange, eligible: EligibleContenders) -> _RecountCosts:
    eligible_pairs = eligible.pairs(pair_range.start, pair_range.end)
    return _RecountCosts(pair_range.position, eligible_pairs, pair_range.length - eligible_pairs)


def _pair_numbers(pair_range: PairRange, eligible: EligibleContenders) -> Iterator[int]:
    """The numbers, within the range, of all eligible pairs."""
    ordinals = [ordinal for ordinal in range(pair_range.end) if eligible.has(ordinal)]
    for index, high in enumerate(ordinals):
        if high >= pair_range.start:
            for low in ordinals[:index]:
                yield pair_number(low, high) - pair_range.first


def _retired_pair_numbers(pair_range: PairRange, eligible: EligibleContenders) -> Iterator[int]:
    """The numbers, within the range, of all pairs with a retired contender."""
    retired = [ordinal for ordinal in range(pair_range.end) if not eligible.has(ordinal)]
    for high in range(pair_range.start, pair_range.end):
        lows = retired[: bisect_left(retired, high)] if eligible.has(high) else range(high)
        for low in lows:
            yield pair_number(low, high) - pair_range.first


def _fitting(missed: Collection[int]) -> tuple[int, ...]:
    """The lowest of the missed pairs' numbers, as many as a walk has room for."""
    lowest = sorted(missed)[:MAX_MISSED_BYTES]
    sizes = accumulate(len(_packed(distance)) for distance in _distances(lowest))
    return tuple(number for number, size in zip(lowest, sizes, strict=True) if size <= MAX_MISSED_BYTES)


def _distances(ascending: Sequence[int]) -> list[int]:
    return [number - before for number, before in zip(ascending, (0, *ascending), strict=False)]


def _packed(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits a byte
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _unpacked(data: bytes) -> Iterator[int]:
    number, shift = 0, 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004
            yield number
            number, shift = 0, 0
