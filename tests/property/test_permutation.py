"""The invariant of the keyed permutation, for any key and size."""

from hypothesis import given, settings
from hypothesis import strategies as st

from datastore.values.permutation import Permutation
from tests.examples import examples

KEYS = st.binary(max_size=64)


@settings(max_examples=examples(60))
@given(key=KEYS, size=st.integers(1, 300))
def test_every_number_has_one_position(key: bytes, size: int) -> None:
    """An order of n numbers holds each of them once, and finds each where it stands."""
    order = Permutation.keyed(key, size)
    numbers = [order.at(position) for position in range(size)]
    assert sorted(numbers) == list(range(size))
    assert [order.position_of(number) for number in numbers] == list(range(size))


@settings(max_examples=examples(60))
@given(key=KEYS, size=st.integers(1, 10**12), data=st.data())
def test_a_large_permutation_stays_within_its_range(key: bytes, size: int, data: st.DataObject) -> None:
    """Any position of any size has a number of that size, and two positions have two numbers."""
    one, other = (data.draw(st.integers(0, size - 1)) for _ in range(2))
    order = Permutation.keyed(key, size)
    found = order.at(one), order.at(other)
    assert all(0 <= number < size for number in found)
    assert (found[0] == found[1]) == (one == other)


def test_another_key_gives_another_order() -> None:
    """Of a hundred keys no two order twenty numbers alike."""
    orders = {tuple(map(Permutation.keyed(bytes([key]), 20).at, range(20))) for key in range(100)}
    assert len(orders) == 100
