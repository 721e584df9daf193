"""The order of a list's daily words, computed without storing it.

Invariant: within a cycle no word appears twice, and a cycle does not end before every word present at its last draw has
appeared. Words added during a cycle appear in that cycle, after the others; removed words are passed over. A cycle
never starts with the last word of the previous cycle, unless the list has only one word.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from datastore.values.permutation import Permutation


@dataclass(frozen=True, slots=True)
class WordOrder:
    """The state of a list's order: the next draw takes `position` of the permuted words `start` … `end` - 1."""

    cycle: int = 0
    start: int = 0
    end: int = 0
    position: int = 0


@dataclass(frozen=True, slots=True)
class DrawnWord:
    """One day's word, its cycle, and the list's order after the draw."""

    ordinal: int
    cycle: int
    after: WordOrder


def next_word(
    list_id: str, order: WordOrder | None, words: int, removed: Collection[int] = frozenset()
) -> DrawnWord | None:
    """The next word of a list whose ordinals are 0 … `words` - 1; None if all of them are removed."""
    if words <= len(removed):
        return None
    order = order or WordOrder(0, 0, words, 0)
    parts = [order, WordOrder(order.cycle, order.end, words, 0)]
    for part in parts:
        if (drawn := _first_present(list_id, part, removed)) is not None:
            return drawn
    last = _ordinal(list_id, WordOrder(order.cycle, order.start, order.end, order.position - 1))
    cycle = order.cycle
    while True:
        cycle += 1
        drawn = _first_present(list_id, WordOrder(cycle, 0, words, 0), removed)
        if drawn is not None and (drawn.ordinal != last or words - len(removed) == 1):
            return drawn


def _first_present(list_id: str, order: WordOrder, removed: Collection[int]) -> DrawnWord | None:
    for position in range(order.position, order.end - order.start):
        drawn = _drawn(list_id, WordOrder(order.cycle, order.start, order.end, position))
        if drawn.ordinal not in removed:
            return drawn
    return None


def _drawn(list_id: str, order: WordOrder) -> DrawnWord:
    after = WordOrder(order.cycle, order.start, order.end, order.position + 1)
    return DrawnWord(_ordinal(list_id, order), order.cycle, after)


def _ordinal(list_id: str, order: WordOrder) -> int:
    key = f"{list_id} {order.cycle} {order.start}".encode()
    return order.start + Permutation.keyed(key, order.end - order.start).at(order.position)
