"""A walk through all pairs of a board's contenders: random order, no repeats, no omissions, a few bytes of state.

Law: within a cycle, `PairWalk.draw` returns each pair of eligible contenders at most once, and starts a new cycle only
when no such pair is left. It returns the same pair until the walk continues from `DrawnPair.after`. Contenders may
join (ordinals only grow) and retire (for good) at any time.

The pair of ordinals i < j has the number j(j-1)/2 + i, so a pair keeps its number when others join. A `PairRange`
holds all pairs whose higher ordinal lies in a range. Each range is walked in the order of a keyed permutation of its
numbers (see `datastore.permutation`), so its state is one position. Newcomers open a new range. Each draw picks one of
the open ranges at random, weighted by what is left in each, so newcomers appear at once. Pairs with a retired contender
are skipped.

Cost: about 25 µs a draw at 2,000 contenders. With nearly all retired, at most √(pairs) steps: see `_next_shown`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from math import isqrt

from datastore.permutation import Permutation

MAX_RANGES = 12
"""Open at a time. Further newcomers wait until the shortest open range is finished."""


def pair_count(contenders: int) -> int:
    return contenders * (contenders - 1) // 2


def pair_number(low: int, high: int) -> int:
    return pair_count(high) + low


def pair_with_number(number: int) -> tuple[int, int]:
    high = (1 + isqrt(1 + 8 * number)) // 2
    return number - pair_count(high), high


@dataclass(frozen=True, slots=True)
class EligibleContenders:
    """The contenders that can be drawn: ordinals below `size` whose bit in `retired` is not set."""

    size: int
    retired: int = 0

    def has(self, ordinal: int) -> bool:
        return not self.retired >> ordinal & 1

    def __len__(self) -> int:
        return self.size - self.retired.bit_count()

    @property
    def retired_count(self) -> int:
        """Retirement is final, so the number identifies the set of retired contenders."""
        return self.retired.bit_count()

    def pairs(self, start: int, end: int) -> int:
        """The number of eligible pairs whose higher ordinal is from `start` to `end - 1`."""
        return pair_count(self._below(end)) - pair_count(self._below(start))

    def _below(self, ordinal: int) -> int:
        return ordinal - (self.retired & ((1 << ordinal) - 1)).bit_count()


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

    Ordinals below `covered` belong to an open or a finished range. `retired_count` identifies the eligible contenders
    for which `PairRange.shown` was counted.
    """

    cycle: int = 1
    seen: int = 0
    covered: int = 0
    retired_count: int = 0
    ranges: tuple[PairRange, ...] = ()

    def draw(self, seed: bytes, eligible: EligibleContenders) -> DrawnPair | None:
        """The next pair, or None with fewer than two contenders. `seed` is constant for each voter and board."""
        if len(eligible) < 2:  # noqa: PLR2004 - a pair
            return None
        walk = self.recounted(seed, eligible)
        if not any(_left_in(pair_range, eligible) for pair_range in walk.ranges):
            walk = walk.with_newcomers(eligible)
        if not any(_left_in(pair_range, eligible) for pair_range in walk.ranges):
            walk = PairWalk(cycle=self.cycle + 1, retired_count=eligible.retired_count).with_newcomers(eligible)
        return walk.next_pair(seed, eligible)

    def remaining(self, eligible: EligibleContenders) -> int:
        """The eligible pairs left in this cycle. The walk must be `recounted` for these contenders."""
        left = sum(_left_in(pair_range, eligible) for pair_range in self.ranges)
        return left + eligible.pairs(self.covered, eligible.size)

    def recounted(self, seed: bytes, eligible: EligibleContenders) -> PairWalk:
        """The same walk with `shown` counted for these contenders; it is counted again only after a retirement."""
        if self.retired_count == eligible.retired_count:
            return self
        recounted = tuple(
            replace(pair_range, shown=sum(1 for _ in self._shown_positions(seed, pair_range, eligible)))
            for pair_range in self.ranges
        )
        return replace(self, retired_count=eligible.retired_count, ranges=recounted)

    def _shown_positions(self, seed: bytes, pair_range: PairRange, eligible: EligibleContenders) -> Iterator[int]:
        order = self._order(seed, pair_range)
        for position in range(pair_range.position):
            low, high = pair_with_number(pair_range.first + order.at(position))
            if eligible.has(low) and eligible.has(high):
                yield position

    def with_newcomers(self, eligible: EligibleContenders) -> PairWalk:
        """The walk with a range for new contenders, if another one may be opened."""
        if self.covered >= eligible.size or len(self.ranges) >= MAX_RANGES:
            return self
        start = 0 if self.covered < 2 else self.covered  # noqa: PLR2004 - one contender makes no pair
        return replace(self, covered=eligible.size, ranges=(*self.ranges, PairRange(start, eligible.size)))

    def next_pair(self, seed: bytes, eligible: EligibleContenders) -> DrawnPair:
        """The next pair of the open ranges, at least one of which has some left."""
        random_number = int.from_bytes(
            blake2b(b"%d.%d" % (self.cycle, self.seen), key=seed[:64], digest_size=8).digest()
        )
        index = self._chosen_range(random_number >> 1, eligible)
        pair_range = self.ranges[index]
        position, number = self._next_shown(seed, pair_range, eligible)
        low, high = pair_with_number(pair_range.first + number)
        moved = replace(pair_range, position=position + 1, shown=pair_range.shown + 1)
        others = (*self.ranges[:index], moved, *self.ranges[index + 1 :])
        unfinished = tuple(other for other in others if _left_in(other, eligible))
        after = replace(self, seen=self.seen + 1, ranges=unfinished).with_newcomers(eligible)
        return DrawnPair(low, high, bool(random_number & 1), self.cycle, self.seen, self.remaining(eligible), after)

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

    # ── encoding ──

    def packed(self) -> bytes:
        """Variable-length integers, seven bits a byte: about 20 bytes for one range at 2,000 contenders."""
        numbers = [self.cycle, self.seen, self.covered, self.retired_count]
        for pair_range in self.ranges:
            numbers += (pair_range.start, pair_range.end, pair_range.position, pair_range.shown)
        return b"".join(map(_packed, numbers))

    @classmethod
    def unpacked(cls, data: bytes) -> PairWalk:
        numbers = list(_unpacked(data))
        ranges = tuple(PairRange(*numbers[index : index + 4]) for index in range(4, len(numbers), 4))
        cycle, seen, covered, retired_count = numbers[:4]
        return cls(cycle, seen, covered, retired_count, ranges)


def _left_in(pair_range: PairRange, eligible: EligibleContenders) -> int:
    return eligible.pairs(pair_range.start, pair_range.end) - pair_range.shown


def _pair_numbers(pair_range: PairRange, eligible: EligibleContenders) -> Iterator[int]:
    """The numbers, within the range, of all eligible pairs."""
    ordinals = [ordinal for ordinal in range(pair_range.end) if eligible.has(ordinal)]
    for index, high in enumerate(ordinals):
        if high >= pair_range.start:
            for low in ordinals[:index]:
                yield pair_number(low, high) - pair_range.first


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
