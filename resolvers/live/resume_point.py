"""What the listener of a feed was told, in a text that it keeps: the id of an event, and where to resume after it.

    01K9ZD3Q7W…  .  XcWq0g9Zt1I…
    settled         names of the positions told since, 4 bytes each, as base64url

Positions up to `settled` are closed: each record there is committed, and was told or is not wanted. After it a record
may still be committed late, so every position told there is named. A listener that returns is told all other records
after `settled`. The names are checksums: one late record in 16 million is taken for a told one, at worst.

A text names the latest 256 positions told, so it has at most 1,400 characters. With more, `settled` moves to the last
position that is not named. The text is not sealed. A client that changes it only changes what it is told, and may
begin at any position anyway.
"""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from zlib import crc32

from datastore.values.ids import is_ulid

MAX_NAMED = 256
_NAME_BYTES = 4


@dataclass(slots=True)
class ResumePoint:
    """Where a stream resumes: all up to `settled` was told, and some positions after it."""

    settled: str
    up_to: str = ""
    """If it begins at one record: what is committed up to its position when its listener returns counts as told."""
    _named: set[bytes] = field(default_factory=set)
    """Names from a listener's text whose positions are not known yet."""
    _latest: dict[str, bytes] = field(default_factory=dict)
    """Positions in the order in which they were told, with their names."""

    @classmethod
    def parse(cls, text: str) -> ResumePoint:
        """What a text says; ValueError if it is not one."""
        settled, dot, names = text.partition(".")
        if not is_ulid(settled) or not dot:
            raise ValueError("A position is missing.")
        named = b64decode(names + "=" * (-len(names) % 4), altchars=b"-_", validate=True)
        if len(named) % _NAME_BYTES or len(named) > MAX_NAMED * _NAME_BYTES:
            raise ValueError("The names are incomplete or too many.")
        return cls(settled, _named={named[at : at + _NAME_BYTES] for at in range(0, len(named), _NAME_BYTES)})

    @classmethod
    def after(cls, position: str) -> ResumePoint:
        """Where a listener resumes of whom only the position of one record is known."""
        return cls(position, up_to=position)

    @property
    def text(self) -> str:
        names = b"".join([*self._latest.values(), *sorted(self._named)])
        return f"{self.settled}.{urlsafe_b64encode(names).rstrip(b'=').decode()}"

    def includes(self, position: str) -> bool:
        return position <= max(self.settled, self.up_to) or position in self._latest or _name(position) in self._named

    def add(self, position: str, settled: str) -> None:
        """Add a position that was told, when all up to `settled` had been told."""
        name = self._latest[position] = _name(position)
        self._named.discard(name)
        self.settled = max(self.settled, settled)
        while self._latest:
            oldest = next(iter(self._latest))
            if oldest > self.settled and len(self._latest) + len(self._named) <= MAX_NAMED:
                break
            del self._latest[oldest]
            self.settled = max(self.settled, oldest)

    def reopen(self, horizon: str) -> None:
        """One record's position does not say what is settled: only what is before the horizon."""
        if self.up_to:
            self.settled = min(self.settled, horizon)

    def step_back(self, position: str) -> None:
        """Lower `settled` to before this position; the positions that are named stay delivered."""
        self.settled = min(self.settled, position)

    def forget_unknown(self) -> None:
        """Drop the names that no record has: their records were deleted."""
        self._named.clear()


def _name(position: str) -> bytes:
    return crc32(position.encode()).to_bytes(_NAME_BYTES, "big")
