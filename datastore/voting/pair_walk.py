"""A walk through all pairs of a growing crowd: random order, no pair twice, none missed, in a few bytes of state.

Law: while a cycle lasts, `Walk.draw` names pairs of the crowd as it is, each at most once, and it names none only
when no pair of two who are still there is left. It answers the same until the walk `after` it is taken up. Members
join (ordinals only grow) and retire (for good) at any time.

The pair of i < j is number j(j-1)/2 + i, so a pair keeps its number when others join. A stretch is a range of
ordinals: all pairs whose later member is in it. Each stretch is walked in the order of a keyed permutation of its
numbers (a Feistel network of 6 rounds; numbers beyond the range are walked over, fewer than one in two), so its state
is one position. Those who join open a new stretch; which of the open ones is drawn from is chosen by lot, weighted by
what is left in each, so newcomers are met at once. Pairs of somebody retired are passed over.

Cost: at 2,000 members about 25 µs a draw. With almost everybody retired, no more than √(pairs) steps: see `_ahead`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from math import isqrt

from datastore.permutation import Permutation

MAX_RANGES = 12
"""Open at a time. Beyond, those who join wait until the shortest open stretch has been walked to its end."""


def pairs_of(members: int) -> int:
    """How many pairs so many members make."""
    return members * (members - 1) // 2


def number_of(low: int, high: int) -> int:
    return pairs_of(high) + low


def pair_at(number: int) -> tuple[int, int]:
    high = (1 + isqrt(1 + 8 * number)) // 2
    return number - pairs_of(high), high


@dataclass(frozen=True, slots=True)
class EligibleContenders:
    """Who could be drawn: ordinals below `size` whose bit in `retired` is not set."""

    size: int
    retired: int = 0

    def has(self, ordinal: int) -> bool:
        return not self.retired >> ordinal & 1

    def __len__(self) -> int:
        return self.size - self.retired.bit_count()

    @property
    def departures(self) -> int:
        """Nobody comes back, so this number stands for the whole set of those who retired."""
        return self.retired.bit_count()

    def pairs(self, start: int, end: int) -> int:
        """Pairs of two who are there whose later member has an ordinal from `start` to `end - 1`."""
        return pairs_of(self._below(end)) - pairs_of(self._below(start))

    def _below(self, ordinal: int) -> int:
        return ordinal - (self.retired & ((1 << ordinal) - 1)).bit_count()


_keyed = lru_cache(maxsize=10_000)(Permutation.keyed)


@dataclass(frozen=True, slots=True)
class PairRange:
    """Pairs whose later member has an ordinal from `start` to `end - 1`, walked up to `position`.

    `shown` of those walked were pairs of two who are still there.
    """

    start: int
    end: int
    position: int = 0
    shown: int = 0

    @property
    def first(self) -> int:
        return pairs_of(self.start)

    @property
    def length(self) -> int:
        return pairs_of(self.end) - self.first

    @property
    def unwalked(self) -> int:
        return self.length - self.position


@dataclass(frozen=True, slots=True)
class Step:
    """One drawn pair: who, which of them stands left, and the walk that goes on behind it."""

    low: int
    high: int
    low_is_left: bool
    cycle: int
    seen: int
    remaining: int
    after: Walk


@dataclass(frozen=True, slots=True)
class Walk:
    """Where somebody stands on their way through the pairs: `seen` in this cycle, and the open stretches.

    `known` ordinals have a stretch or are walked; `departures` says for which crowd the stretches' `shown` counts.
    """

    cycle: int = 1
    seen: int = 0
    known: int = 0
    departures: int = 0
    stretches: tuple[PairRange, ...] = ()

    def draw(self, seed: bytes, crowd: EligibleContenders) -> Step | None:
        """The next pair, or None if there are not two to draw from. `seed` is the walker's own, the same every time."""
        if len(crowd) < 2:  # noqa: PLR2004 - a pair
            return None
        walk = self.counted(seed, crowd)
        if not any(_left(stretch, crowd) for stretch in walk.stretches):
            walk = walk.opened(crowd)
        if not any(_left(stretch, crowd) for stretch in walk.stretches):
            walk = Walk(cycle=self.cycle + 1, departures=crowd.departures).opened(crowd)
        return walk.step(seed, crowd)

    def remaining(self, crowd: EligibleContenders) -> int:
        """Pairs of two who are there that are left in this cycle; the walk must be `counted` for the crowd."""
        return sum(_left(stretch, crowd) for stretch in self.stretches) + crowd.pairs(self.known, crowd.size)

    def counted(self, seed: bytes, crowd: EligibleContenders) -> Walk:
        """The same walk with `shown` as of this crowd: counted anew only when somebody retired since."""
        if self.departures == crowd.departures:
            return self
        recounted = tuple(
            replace(stretch, shown=sum(1 for _ in self._walked(seed, stretch, crowd))) for stretch in self.stretches
        )
        return replace(self, departures=crowd.departures, stretches=recounted)

    def _walked(self, seed: bytes, stretch: PairRange, crowd: EligibleContenders) -> Iterator[int]:
        order = self._order(seed, stretch)
        for position in range(stretch.position):
            low, high = pair_at(stretch.first + order.at(position))
            if crowd.has(low) and crowd.has(high):
                yield position

    def opened(self, crowd: EligibleContenders) -> Walk:
        """With a stretch for those who joined since, if there is room for one more."""
        if self.known >= crowd.size or len(self.stretches) >= MAX_RANGES:
            return self
        start = 0 if self.known < 2 else self.known  # noqa: PLR2004 - one member alone makes no pair
        return replace(self, known=crowd.size, stretches=(*self.stretches, PairRange(start, crowd.size)))

    def step(self, seed: bytes, crowd: EligibleContenders) -> Step:
        """The next pair of the open stretches; one of them has some left."""
        lot = int.from_bytes(blake2b(b"%d.%d" % (self.cycle, self.seen), key=seed[:64], digest_size=8).digest())
        place = self._chosen(lot >> 1, crowd)
        stretch = self.stretches[place]
        position, number = self._ahead(seed, stretch, crowd)
        low, high = pair_at(stretch.first + number)
        moved = replace(stretch, position=position + 1, shown=stretch.shown + 1)
        others = (*self.stretches[:place], moved, *self.stretches[place + 1 :])
        onward = tuple(other for other in others if _left(other, crowd))
        after = replace(self, seen=self.seen + 1, stretches=onward).opened(crowd)
        return Step(low, high, bool(lot & 1), self.cycle, self.seen, self.remaining(crowd), after)

    def _chosen(self, lot: int, crowd: EligibleContenders) -> int:
        """The place of the stretch to draw from."""
        open_places = [place for place, stretch in enumerate(self.stretches) if _left(stretch, crowd)]
        if len(self.stretches) >= MAX_RANGES:
            return min(open_places, key=lambda place: self.stretches[place].unwalked)
        lot %= sum(self.stretches[place].unwalked for place in open_places)
        for place in open_places:
            lot -= self.stretches[place].unwalked
            if lot < 0:
                break
        return place

    def _ahead(self, seed: bytes, stretch: PairRange, crowd: EligibleContenders) -> tuple[int, int]:
        """Position and number of the stretch's next pair of two who are there; there is one.

        Where those pairs are rarer than one in the square root of all, it is quicker to look where each of them
        stands in the order than to walk until one comes.
        """
        order = self._order(seed, stretch)
        if crowd.pairs(stretch.start, stretch.end) ** 2 < stretch.length:
            return min(
                (position, number)
                for number in _numbers(stretch, crowd)
                if (position := order.position_of(number)) >= stretch.position
            )
        position = stretch.position
        while True:
            number = order.at(position)
            low, high = pair_at(stretch.first + number)
            if crowd.has(low) and crowd.has(high):
                return position, number
            position += 1

    def _order(self, seed: bytes, stretch: PairRange) -> Permutation:
        return _keyed(b"%b.%d.%d" % (seed, self.cycle, stretch.start), stretch.length)

    # ── as bytes ──

    def packed(self) -> bytes:
        """Whole numbers of seven bits a byte: some 20 bytes for one stretch at 2,000 members."""
        numbers = [self.cycle, self.seen, self.known, self.departures]
        for stretch in self.stretches:
            numbers += (stretch.start, stretch.end, stretch.position, stretch.shown)
        return b"".join(map(_packed, numbers))

    @classmethod
    def unpacked(cls, data: bytes) -> Walk:
        numbers = list(_unpacked(data))
        stretches = tuple(PairRange(*numbers[place : place + 4]) for place in range(4, len(numbers), 4))
        cycle, seen, known, departures = numbers[:4]
        return cls(cycle, seen, known, departures, stretches)


def _left(stretch: PairRange, crowd: EligibleContenders) -> int:
    return crowd.pairs(stretch.start, stretch.end) - stretch.shown


def _numbers(stretch: PairRange, crowd: EligibleContenders) -> Iterator[int]:
    """Of all pairs of two who are there, the number within the stretch."""
    there = [ordinal for ordinal in range(stretch.end) if crowd.has(ordinal)]
    for place, high in enumerate(there):
        if high >= stretch.start:
            for low in there[:place]:
                yield number_of(low, high) - stretch.first


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
