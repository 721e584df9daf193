"""A list's daily words over time, while words are added."""

from time import process_time

from hypothesis import given, settings
from hypothesis import strategies as st

from datastore.vocabulary.lists import WordOrder, next_word

EVENTS = st.lists(st.one_of(st.just("day"), st.integers(-20, 5)), min_size=1, max_size=120)
"""A day, some words more (1 to 5), or one word less (the word that many places from the last one)."""


@settings(deadline=None)
@given(first=st.integers(1, 12), events=EVENTS)
def test_no_word_comes_twice_in_a_cycle_and_none_is_left_out(first: int, events: list[str | int]) -> None:
    """Days, additions and removals in any order."""
    state: WordOrder | None = None
    words, removed, seen, cycle, last = first, set[int](), set[int](), 0, None
    for event in events:
        if isinstance(event, int) and event > 0:
            words += event
            continue
        if isinstance(event, int):
            removed |= {words - 1 + event} & set(range(words))
            continue
        drawn = next_word("list", state, words, removed)
        if drawn is None:
            assert len(removed) == words
            continue
        if drawn.cycle != cycle:
            assert seen >= set(range(words)) - removed, "the cycle ended before all words had come"
            assert drawn.ordinal != last or words - len(removed) == 1
            seen, cycle = set(), drawn.cycle
        assert drawn.ordinal not in seen
        assert drawn.ordinal not in removed
        assert drawn.ordinal < words
        seen.add(drawn.ordinal)
        state, last = drawn.after, drawn.ordinal


def test_a_list_with_one_word_left_takes_about_as_long_as_a_whole_one() -> None:
    """Its words were removed one by one: a draw looked at the place of each of them."""
    removed = set(range(4_500)) - {7}
    assert min(_processor_seconds(removed) for _ in range(3)) < 200 * _processor_seconds(set())


def _processor_seconds(removed: set[int]) -> float:
    began, state = process_time(), None
    for _ in range(31):
        drawn = next_word("list", state, 4_500, removed)
        assert drawn is not None
        state = drawn.after
    return process_time() - began


def test_two_lists_have_two_orders() -> None:
    """Fifty words of two lists do not come on the same days."""
    orders = []
    for listed in ("one", "two"):
        state, order = None, []
        for _ in range(50):
            drawn = next_word(listed, state, 50)
            assert drawn is not None
            state = drawn.after
            order.append(drawn.ordinal)
        orders.append(order)
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(50))
