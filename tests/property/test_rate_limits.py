"""Rate limits keep their invariant for any sequence of hits."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore.dynamo import RateLimit, Rates, parse_rate
from datastore.dynamo.budgets import MAX_KEYS
from datastore.refusals import RateLimited

PAUSES = st.lists(st.one_of(st.just(0.0), st.floats(0, 0.4), st.floats(0, 3)), min_size=1, max_size=80)


def excess(admitted: list[float], now: float, limit: int) -> float:
    """By how much one more hit at this moment would exceed what the invariant allows, for a period of a second."""
    since = (len(admitted) - place + 1 - limit * (1 + now - time) for place, time in enumerate(admitted))
    return max(since, default=0.0 - limit)


@given(st.integers(1, 6), PAUSES, st.floats(0, 100))
def test_hits_are_admitted_by_the_law(limit: int, pauses: list[float], start: float) -> None:
    """As if all admitted hits were remembered; the wait that a refusal names is enough, and no less is."""
    rate_limit, admitted = RateLimit(limit, 1), list[float]()
    for now in accumulate(pauses, initial=start):
        over = excess(admitted, now, limit)
        wait = rate_limit.hit(("a",), now)
        if abs(over) > 1e-4:
            assert (wait == 0.0) == (over < 0)
        if wait == 0.0:
            admitted.append(now)
        else:
            assert wait <= 1.0 + 1e-9
            assert excess(admitted, now + wait, limit) == pytest.approx(0, abs=1e-4)


@given(st.integers(1, 5), st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 1)), max_size=60))
def test_keys_are_counted_on_their_own(limit: int, hits: list[tuple[str, float]]) -> None:
    """Whatever others do, a key is admitted as if it were alone."""
    together, alone, now = RateLimit(limit, 1), {key: RateLimit(limit, 1) for key in "abc"}, 0.0
    for key, pause in hits:
        now += pause
        assert together.hit((key,), now) == alone[key].hit((key,), now)


def test_the_memory_of_a_limit_is_bounded() -> None:
    """Of a flood of keys the latest are kept, and once the flood is over they are forgotten two by two."""
    rate_limit = RateLimit(1, 60)
    for number in range(MAX_KEYS + 900):
        assert rate_limit.hit((str(number),), 1.0) == 0.0
    assert len(rate_limit._whole_at) == MAX_KEYS
    assert rate_limit.hit((str(MAX_KEYS + 899),), 1.0) > 0.0
    for number in range(MAX_KEYS // 2 + 10):
        rate_limit.hit(("one",), 100.0 + 100 * number)
    assert len(rate_limit._whole_at) == 1


def test_a_refusal_names_the_time_to_wait() -> None:
    """Rounded up, so that a client that waits that long is admitted. A check says the same, and counts as no hit."""
    now = 1000.03
    rates = Rates(lambda: now)
    for _ in range(3):
        rates.check("3/second", "vote", "ada")
        rates.hit("3/second", "vote", "ada")
    rates.hit("3/second", "vote", "bob")
    for ask in (rates.check, rates.hit):
        with pytest.raises(RateLimited) as refused:
            ask("3/second", "vote", "ada")
    assert refused.value.retry_after is not None
    now += refused.value.retry_after
    rates.hit("3/second", "vote", "ada")


@pytest.mark.parametrize("text", ["", "0/minute", "3/fortnight", "-1/hour", "1.5/hour", "3 per minute", "99999999/day"])
def test_other_texts_are_no_rates(text: str) -> None:
    """They are refused when the service starts."""
    with pytest.raises(ValueError, match="is not a number per"):
        parse_rate(text)
    assert parse_rate("3000/minute") == (3000, 60)
