"""Which operations have rows of their own in the metrics, of the names that clients choose."""

from __future__ import annotations

from collections.abc import Callable, Iterable

ANONYMOUS = "anonymous"
OTHER = "other"
MAX_NAMES = 200
LONGEST_NAME = 100
MAX_WAITING = 1_000
"""Names without a row whose uses are counted."""

USES = 16
"""The uses after which a name without a row is compared with those that have one."""

AGED_AFTER = 10_000
"""Uses after which all counts are halved, so that names that nobody uses any more lose their rows."""


class OperationNames:
    """The names with rows: known ones; of others, some that members use and some that visitors use."""

    def __init__(self, known: Iterable[str], drop: Callable[[str], None] | None) -> None:
        """`drop` removes the row of a name; None if rows stay."""
        self._known = frozenset(known) | {ANONYMOUS, OTHER}
        self._drop = drop
        self._by_members: set[str] = set()
        self._by_visitors: dict[str, int] = {}
        self._waiting: dict[str, int] = {}
        self._uses = 0

    def count(self, name: str, *, succeeded: bool, by_member: bool) -> bool:
        """Count a use of a name; return whether the name has a row."""
        if name in self._known or name in self._by_members:
            return True
        if name in self._by_visitors:
            self._count_visit(name)
            return True
        if not succeeded or len(name) > LONGEST_NAME:
            return False
        if by_member and len(self._by_members) < MAX_NAMES:
            self._by_members.add(name)
        elif len(self._by_visitors) < MAX_NAMES:
            self._by_visitors[name] = 1
        else:
            return self._replaces(name)
        return True

    def _count_visit(self, name: str) -> None:
        self._by_visitors[name] += 1
        self._uses += 1
        if self._uses % AGED_AFTER == 0:
            self._by_visitors = {name: uses // 2 for name, uses in self._by_visitors.items()}

    def _replaces(self, name: str) -> bool:
        """Whether a name of a visitor, now used often enough, has taken the row of the one used least."""
        if self._drop is None:
            return False
        uses = self._waiting[name] = self._waiting.get(name, 0) + 1
        if len(self._waiting) > MAX_WAITING:
            self._waiting = {name: uses // 2 for name, uses in self._waiting.items() if uses > 1}
        if uses % USES:
            return False
        least = min(self._by_visitors, key=self._by_visitors.__getitem__)
        if self._by_visitors[least] >= uses:
            return False
        self._drop(least)
        del self._by_visitors[least], self._waiting[name]
        self._by_visitors[name] = uses
        return True
