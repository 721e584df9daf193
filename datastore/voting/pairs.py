"""Pairs of contenders, their numbers, and the contenders that can be drawn.

The pair of ordinals i < j has the number j(j-1)/2 + i, so a pair keeps its number when others join.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt


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
        """The eligible contenders among those restored since there were so many restorations."""
        number = self.restorations - restorations
        latest = self.latest_restored[-number:] if number > 0 else ()
        return frozenset(ordinal for ordinal in latest if self.has(ordinal))

    def pairs(self, start: int, end: int) -> int:
        """The number of eligible pairs whose higher ordinal is from `start` to `end - 1`."""
        return pair_count(self._below(end)) - pair_count(self._below(start))

    def _below(self, ordinal: int) -> int:
        return ordinal - (self.retired & ((1 << ordinal) - 1)).bit_count()
