"""Ids that sort by time: ULIDs, strictly increasing within a process."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

from ulid import ULID

_RANDOM_BITS = 80
_MOMENT = 10
"""The letters of an id that tell its millisecond."""
_DIGITS = str.maketrans("0123456789ABCDEFGHJKMNPQRSTVWXYZ", "0123456789abcdefghijklmnopqrstuv")
"""From Crockford's letters to those that Python takes for the same numbers."""


class Ids:
    """A source of ids. A clock that steps back does not make an id step back."""

    def __init__(self) -> None:
        self._milliseconds = 0
        self._random = 0

    def next(self, now: datetime) -> str:
        """A new id, greater than every earlier one of this process."""
        milliseconds = max(self._milliseconds, int(now.timestamp() * 1000))
        if milliseconds > self._milliseconds:
            # One bit less than there is, so that increments within a millisecond never overflow.
            self._random = secrets.randbits(_RANDOM_BITS - 1)
        else:
            self._random += 1
        self._milliseconds = milliseconds
        return str(ULID((milliseconds << _RANDOM_BITS | self._random).to_bytes(16, "big")))


def moment_of(ulid: str) -> datetime:
    """When an id was made, to the millisecond. Every comment shown asks it; the library takes fifteen times as long."""
    return datetime.fromtimestamp(int(ulid[:_MOMENT].translate(_DIGITS), 32) / 1000, UTC)


def is_ulid(text: str) -> bool:
    """Whether a text is an id of this kind, in its one canonical spelling."""
    try:
        return str(ULID.from_str(text)) == text
    except ValueError:
        return False


def first_id_of(moment: datetime) -> str:
    """The lowest id of a moment: all that were made before it are below."""
    return str(ULID((int(moment.timestamp() * 1000) << _RANDOM_BITS).to_bytes(16, "big")))
