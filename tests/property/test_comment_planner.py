"""The planner's law: whatever the counts say, a plan reads every comment that its filter takes, exactly once."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from datastore.comments.planner import LARGEST_READ, MAX_PARTITIONS, RATINGS, CommentCounts, Filter, Plan, plans
from tests.comments import matches

LANGUAGES = ("de", "en", "es", "fr", "it", "ja", "pt-BR", "zh-Hant")

numbers = st.integers(-1_000, 10**9)
comment_counts = st.builds(
    CommentCounts,
    st.dictionaries(st.sampled_from(LANGUAGES), st.tuples(numbers, numbers, numbers, numbers, numbers)),
    st.dictionaries(st.sampled_from(LANGUAGES), numbers),
)
filters = st.builds(
    Filter.of,
    st.just("42"),
    st.none() | st.lists(st.sampled_from(LANGUAGES)),
    st.none() | st.lists(st.sampled_from(RATINGS)),
)


def readers(plan: Plan, language: str, rating: int) -> int:
    """How many of the plan's partitions hold such a comment."""
    return sum(one.language in (None, language) and one.rating in (None, rating) for one in plan.reads)


@given(filters, comment_counts, st.integers(1, 101))
def test_every_plan_reads_what_its_filter_takes_exactly_once(
    wanted: Filter, counts: CommentCounts, number: int
) -> None:
    """True of all plans, so true of the cheapest: an index that is not read can hide nothing."""
    possible = plans(wanted, counts, number)
    assert list(possible) == sorted(possible, key=lambda plan: plan.cost)
    for plan in possible:
        assert len(plan.reads) <= MAX_PARTITIONS
        assert all(1 <= one.limit <= LARGEST_READ for one in plan.reads)
        for language, rating in product(LANGUAGES, RATINGS):
            found = readers(plan, language, rating)
            assert found == 1 if matches(wanted, language, rating) else found <= 1
            if plan.exact and not matches(wanted, language, rating):
                assert found == 0


@given(filters, comment_counts)
def test_an_exact_plan_exists_unless_it_has_too_many_sources(wanted: Filter, counts: CommentCounts) -> None:
    """So a filtering plan that falls short can be continued without another filter."""
    exact = [plan for plan in plans(wanted, counts, 21) if plan.exact]
    cells = len(wanted.languages or (None,)) * len(wanted.ratings or (None,))
    assert bool(exact) == (cells <= MAX_PARTITIONS or not (wanted.languages and wanted.ratings))


@given(filters, filters)
def test_filters_have_one_scope_if_they_take_the_same(one: Filter, other: Filter) -> None:
    """A cursor goes on where the same comments were asked for in other words, and nowhere else."""
    same = all(
        matches(one, language, rating) == matches(other, language, rating)
        for language, rating in product((*LANGUAGES, "xx"), RATINGS)
    )
    assert (one.scope == other.scope) == same
