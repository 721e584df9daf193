"""A keyed permutation: an order that looks drawn, needs no memory, and can be asked for at any position.

Law: for one key and size, `permuted(key, size, 0) … permuted(key, size, size - 1)` are the numbers 0 … size - 1, each
once. Another key gives another order.

A Feistel network of six rounds permutes the least square power of two that holds `size` numbers; a result outside of
them is sent through again until it is inside (cycle walking), at most four times on average.
"""

from __future__ import annotations

from hashlib import blake2b

_ROUNDS = 6
LONGEST_KEY = 64


def permuted(key: bytes, size: int, position: int) -> int:
    """The number at a position of the order that the key gives to 0 … size - 1. Keys have 1 to 64 bytes."""
    if not 0 <= position < size:
        message = f"position {position} is not within an order of {size}"
        raise ValueError(message)
    half = max(1, ((size - 1).bit_length() + 1) // 2)
    value = position
    while True:
        value = _network(key, half, value)
        if value < size:
            return value


def _network(key: bytes, half: int, value: int) -> int:
    mask = (1 << half) - 1
    left, right = value >> half, value & mask
    for turn in range(_ROUNDS):
        drawn = blake2b(bytes([turn]) + right.to_bytes(16, "big"), key=key, digest_size=16).digest()
        left, right = right, left ^ (int.from_bytes(drawn, "big") & mask)
    return left << half | right
