"""Ids that sort by time: ULIDs, increasing within a process whose clock does not step back by seconds."""

import hashlib
import secrets
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from ulid import ULID

CLOCK_SKEW = timedelta(seconds=5)
"""How far the clocks of processes may differ."""
_RANDOM_BITS = 80
_EPOCH = datetime.fromtimestamp(0, UTC)
_MILLISECOND = timedelta(milliseconds=1)
_TIME_LETTERS = 10
"""The first letters of an id, which encode its millisecond."""
_DIGITS = str.maketrans("0123456789ABCDEFGHJKMNPQRSTVWXYZ", "0123456789abcdefghijklmnopqrstuv")
"""Crockford's digits and the ones that Python's `int` takes for the same values."""


class Ids:
    """A source of ids. They increase even if the clock steps back a little.

    If it steps back by more than `CLOCK_SKEW`, it was ahead and was corrected: the ids follow it.
    """

    def __init__(self) -> None:
        self._milliseconds = 0
        self._random = 0

    def next(self, now: datetime) -> str:
        """A new id, greater than every earlier one of this process unless the clock was corrected since."""
        milliseconds = _milliseconds(now)
        if milliseconds >= self._milliseconds - CLOCK_SKEW // _MILLISECOND:
            milliseconds = max(self._milliseconds, milliseconds)
        if milliseconds != self._milliseconds:
            # One bit less than available, so that increments within a millisecond never overflow.
            self._random = secrets.randbits(_RANDOM_BITS - 1)
        else:
            self._random += 1
        self._milliseconds = milliseconds
        return str(ULID((milliseconds << _RANDOM_BITS | self._random).to_bytes(16, "big")))


@lru_cache(maxsize=4_096)  # the same comments are shown again and again
def creation_time(ulid: str) -> datetime:
    """The millisecond of an id. The library takes fifteen times as long."""
    return datetime.fromtimestamp(int(ulid[:_TIME_LETTERS].translate(_DIGITS), 32) / 1000, UTC)


def is_ulid(text: str) -> bool:
    """Whether a text is a ULID in its canonical spelling."""
    try:
        return str(ULID.from_str(text)) == text
    except ValueError:
        return False


def first_id(moment: datetime) -> str:
    """The lowest id of a moment: all earlier ids are lower. There are none from before 1970."""
    milliseconds = max(0, _milliseconds(moment))
    return str(ULID((milliseconds << _RANDOM_BITS).to_bytes(16, "big")))


def derived_id(moment: datetime, content: bytes) -> str:
    """The same id for the same content. It sorts by the moment, like every id."""
    time = max(0, _milliseconds(moment)).to_bytes(6, "big")
    return str(ULID(time + hashlib.sha256(content).digest()[:10]))


def _milliseconds(moment: datetime) -> int:
    """Since 1970. `timestamp` would round: a float holds no microseconds of the year 2249."""
    return (moment - _EPOCH) // _MILLISECOND
