"""The law of the keyed permutation, for any key and size."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datastore.permutation import permuted

KEYS = st.binary(min_size=1, max_size=64)


@settings(deadline=None, max_examples=60)
@given(key=KEYS, size=st.integers(1, 300))
def test_every_number_stands_at_one_position(key: bytes, size: int) -> None:
    """An order of n numbers holds each of them once."""
    assert sorted(permuted(key, size, position) for position in range(size)) == list(range(size))


@settings(deadline=None, max_examples=60)
@given(key=KEYS, size=st.integers(1, 10**12), data=st.data())
def test_a_large_order_stays_within_itself(key: bytes, size: int, data: st.DataObject) -> None:
    """Any position of any size has a number of that size, and two positions have two numbers."""
    one, other = (data.draw(st.integers(0, size - 1)) for _ in range(2))
    found = permuted(key, size, one), permuted(key, size, other)
    assert all(0 <= number < size for number in found)
    assert (found[0] == found[1]) == (one == other)


def test_another_key_is_another_order() -> None:
    """Of a hundred keys no two order twenty numbers alike."""
    orders = {tuple(permuted(bytes([key]), 20, position) for position in range(20)) for key in range(100)}
    assert len(orders) == 100


def test_a_position_outside_of_the_order_is_refused() -> None:
    """There is no number at -1, nor at the size itself."""
    for position in (-1, 5):
        with pytest.raises(ValueError, match="is not within"):
            permuted(b"k", 5, position)
