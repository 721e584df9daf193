"""Ids that sort by time."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID

from datastore.values.ids import CLOCK_SKEW, Ids, creation_time, first_id

MOMENTS = st.datetimes(datetime(1970, 1, 2), datetime(2500, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(MOMENTS)
def test_an_id_tells_its_moment_as_the_library_reads_it(moment: datetime) -> None:
    """To the millisecond, whatever the moment."""
    made = Ids().next(moment)
    assert creation_time(made) == ULID.from_str(made).datetime
    # A float holds the seconds of the year 2243 to the microsecond, and no better.
    assert timedelta(microseconds=-2) <= moment - creation_time(made) < timedelta(milliseconds=1.1)


def test_every_id_is_later_than_a_moment_before_1970() -> None:
    """A client that means everything may name the first moment that a DateTime has."""
    assert first_id(datetime.min.replace(tzinfo=UTC)) == first_id(datetime.fromtimestamp(0, UTC)) == "0" * 26


@given(MOMENTS)
def test_ids_of_one_process_rise(moment: datetime) -> None:
    """Also when the clock stands still or steps back by as much as clocks may differ."""
    ids = Ids()
    made = [ids.next(moment), ids.next(moment), ids.next(moment - CLOCK_SKEW), ids.next(moment)]
    assert made == sorted(set(made))
    assert first_id(moment) <= made[0]


@given(MOMENTS, st.timedeltas(timedelta(seconds=6), timedelta(days=400)))
def test_ids_follow_a_clock_that_was_ahead(moment: datetime, ahead: timedelta) -> None:
    """Otherwise everything would be of the wrong time until the clock is there again."""
    ids = Ids()
    before, *after = ids.next(moment + ahead), ids.next(moment), ids.next(moment)
    assert first_id(moment) <= after[0] < after[1] < first_id(moment + timedelta(milliseconds=1)) <= before
