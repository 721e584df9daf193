"""When a board must be settled, as one process observes it by its own monotonic clock.

The clocks of other processes are only hints: they decide at a process's first look at a board, and whenever it has not
looked for a while. A wrong clock makes a settling too early, or late once, but never prevents one.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datastore.voting import BoardWithMarks, DirtyMark

SETTLING_INTERVAL = 1.5
"""Seconds from one settling to the next, of all processes together. Others notice one a quarter of a second late."""

STALENESS = 2.0
"""Seconds after which an acknowledged vote is shown."""

_DEAD_AFTER = 20.0
"""Seconds after which a dirty mark that does not change is one of a process that has gone: four times its renewal."""

_FORGOTTEN_AFTER = timedelta(hours=12)
"""A mark is kept for a day. A board that nobody has settled for half of it is settled once more."""


@dataclass(slots=True)
class Sighting:
    """When something got its present value: not before `not_before`, and at the latest at `seen`."""

    value: int = -1
    not_before: float = float("-inf")
    seen: float = float("-inf")
    looked: float = float("-inf")

    def look(self, value: int, began: float) -> None:
        """Note a value that was read by a look that began at this time. Older values are of older looks."""
        if value > self.value:
            self.value, self.not_before, self.seen = value, self.looked, asyncio.get_running_loop().time()
        if value == self.value:
            self.looked = max(self.looked, began)

    def is_older(self, seconds: float, *, by_clock: bool) -> bool:
        """Whether it got its value more than so many seconds ago; where this cannot be known, the clocks decide."""
        now = asyncio.get_running_loop().time()
        if now - self.not_before < seconds:
            return False
        return by_clock or now - self.seen >= seconds


class SettlingPace:
    """What this process has observed of one board's settlings and dirty marks."""

    def __init__(self, process: str) -> None:
        self._process = process
        self._claims = Sighting()
        self._completed = Sighting()
        self._dirty = Sighting()
        """Its value counts how often the board turned dirty or clean."""
        self._marks: dict[str, tuple[datetime, float]] = {}

    def observe(self, current: BoardWithMarks, began: float) -> None:
        """Note a board that was read by a look that began at this time."""
        self._claims.look(current.board.claims, began)
        self._completed.look(current.board.completed, began)
        turns = max(self._dirty.value, 0)
        self._dirty.look(turns + (turns % 2 != current.is_dirty), began)
        now = asyncio.get_running_loop().time()
        known = self._marks
        self._marks = {}
        for mark in current.marks:
            until, seen = known.get(mark.process, (mark.until, now))
            self._marks[mark.process] = (mark.until, seen if until == mark.until else now)

    def observe_claim(self, claims: int, began: float) -> None:
        """Note a claim that this process has just made."""
        self._claims.look(claims, began)

    def observe_completion(self, completed: int, began: float) -> None:
        """Note a settling that this process has just completed, and when it began."""
        self._completed.look(completed, began)

    @property
    def completed(self) -> int:
        """The latest settling that is known to have completed."""
        return self._completed.value

    def is_due(self, current: BoardWithMarks, now: datetime) -> bool:
        """Whether the next settling may begin."""
        return self._claims.is_older(
            SETTLING_INTERVAL, by_clock=_is_past(current.board.claimed_at, now, SETTLING_INTERVAL)
        )

    def is_overdue(self, current: BoardWithMarks, now: datetime) -> bool:
        """Whether a dirty board may lack a vote that was acknowledged two seconds ago."""
        dirty_long = any(_is_past(mark.since, now, STALENESS) for mark in current.marks)
        settled_long_ago = _is_past(current.board.claimed_at, now, STALENESS)
        return self._dirty.is_older(STALENESS, by_clock=dirty_long) and self._completed.is_older(
            STALENESS, by_clock=settled_long_ago
        )

    def is_forgotten(self, current: BoardWithMarks, now: datetime) -> bool:
        """Whether the dirty mark of a killed process may have expired before anybody settled its votes."""
        return (current.board.claimed_at or current.board.created_at) < now - _FORGOTTEN_AFTER

    def dead_marks(self, current: BoardWithMarks) -> Iterator[DirtyMark]:
        """Dirty marks of processes that have gone."""
        now = asyncio.get_running_loop().time()
        for mark in current.marks:
            until, seen = self._marks.get(mark.process, (mark.until, now))
            if mark.process != self._process and until == mark.until and now - seen >= _DEAD_AFTER:
                yield mark


def _is_past(moment: datetime | None, now: datetime, seconds: float) -> bool:
    return moment is None or moment < now - timedelta(seconds=seconds)
