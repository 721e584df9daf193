"""A keyed permutation: an order that looks random, needs no memory, and can be read at any position.

Invariant: for one key and size, `at(0) … at(size - 1)` are the numbers 0 … size - 1, each once, and `position_of` is
its inverse. Another key gives another order.

A Feistel network of six rounds permutes the smallest power of two that is not below `size`. A result outside of the
range is permuted again until it is inside (cycle walking), fewer than two times on average.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

_ROUNDS = 6
_WORD = 0xFFFFFFFFFFFFFFFF


@dataclass(frozen=True, slots=True)
class Permutation:
    """An order of 0 … size - 1; the same for the same key."""

    size: int
    low_bits: int
    high_bits: int
    keys: tuple[int, ...]

    @classmethod
    def keyed(cls, seed: bytes, size: int) -> Permutation:
        bits = max(2, (size - 1).bit_length())
        digest = blake2b(seed, digest_size=8 * _ROUNDS).digest()
        keys = tuple(int.from_bytes(digest[start : start + 8]) for start in range(0, 8 * _ROUNDS, 8))
        return cls(size, bits // 2, bits - bits // 2, keys)

    def at(self, position: int) -> int:
        """The number at a position."""
        while True:
            position = self._network(position, self.keys, forward=True)
            if position < self.size:
                return position

    def position_of(self, value: int) -> int:
        """The position of a number."""
        while True:
            value = self._network(value, self.keys[::-1], forward=False)
            if value < self.size:
                return value

    def _network(self, value: int, keys: tuple[int, ...], *, forward: bool) -> int:
        """Six rounds change one half by the other half and a key each; the reverse order of keys undoes them."""
        low_mask, high_mask = (1 << self.low_bits) - 1, (1 << self.high_bits) - 1
        low, high = value & low_mask, value >> self.low_bits
        change_low = forward
        for key in keys:
            if change_low:
                low ^= _mixed(high ^ key) & low_mask
            else:
                high ^= _mixed(low ^ key) & high_mask
            change_low = not change_low
        return high << self.low_bits | low


def _mixed(word: int) -> int:
    """A word whose every bit depends on every bit of the given one (the finaliser of SplitMix64)."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB & _WORD
    return word ^ word >> 31
