"""The planner's invariant: whatever the counts say, a plan reads every comment that its filter takes, exactly once."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from datastore.comments.planner import MAX_VALUES, RATINGS, CommentCounts, Filter, Plan, continuation, plans
from datastore.dynamo.paging import LARGEST_READ
from tests.comments import matches

LANGUAGES = ("de", "en", "es", "fr", "it", "ja", "pt", "zh-Hant", *(f"en-{number:03d}" for number in range(18)))

numbers = st.integers(-1_000, 10**9)
comment_counts = st.builds(
    CommentCounts,
    st.dictionaries(st.sampled_from(LANGUAGES), st.tuples(*[numbers] * 6)),
    st.dictionaries(st.sampled_from(LANGUAGES), numbers),
)
some_languages = st.lists(st.sampled_from(LANGUAGES), max_size=MAX_VALUES)
many_languages = st.lists(st.sampled_from(LANGUAGES), min_size=6, max_size=MAX_VALUES, unique=True)
filters = st.builds(
    Filter.of,
    st.just("42"),
    st.none() | some_languages | many_languages,
    st.none() | st.lists(st.sampled_from(RATINGS)),
)


ALL_RATINGS = (None, *RATINGS)


def readers(plan: Plan, language: str, rating: int | None) -> int:
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
        assert len(plan.reads) <= MAX_VALUES * len(RATINGS)
        assert all(1 <= one.limit <= LARGEST_READ for one in plan.reads)
        for language, rating in product(LANGUAGES, ALL_RATINGS):
            found = readers(plan, language, rating)
            assert found == 1 if matches(wanted, language, rating) else found <= 1
            if plan.exact and not matches(wanted, language, rating):
                assert found == 0


@given(filters, comment_counts, st.integers(1, 101), st.integers(1, 101))
def test_a_filtering_plan_is_not_continued_for_long(
    wanted: Filter, counts: CommentCounts, number: int, missing: int
) -> None:
    """There is an exact plan for every filter, and a page comes to it although filtering finds nothing."""
    assert any(plan.exact for plan in plans(wanted, counts, number))
    filtered = [plan for rounds in range(1, 20) if not (plan := continuation(wanted, counts, missing, rounds)).exact]
    exact = next(plan for plan in plans(wanted, counts, missing) if plan.exact)
    assert sum(plan.cost for plan in filtered) < 2 * exact.cost
    assert not filtered or len(exact.reads) > 25


@given(filters, filters)
def test_filters_have_one_scope_if_they_take_the_same(one: Filter, other: Filter) -> None:
    """A cursor goes on where the same comments were asked for in other words, and nowhere else."""
    same = all(
        matches(one, language, rating) == matches(other, language, rating)
        for language, rating in product((*LANGUAGES, "xx"), ALL_RATINGS)
    )
    assert (one.scope == other.scope) == same
