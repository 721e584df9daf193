"""The order of a list's daily words, computed without storing it.

Law: within a cycle no word appears twice, and a cycle does not end before every word present at its last draw has
appeared. Words added during a cycle appear in that cycle, after the others. A cycle never starts with the last word of
the previous cycle, unless the list has only one word.
"""

from __future__ import annotations

from dataclasses import dataclass

from datastore.permutation import Permutation


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


def next_word(list_id: str, order: WordOrder | None, words: int) -> DrawnWord:
    """The next word of a list with at least one word."""
    if order is None:
        return _drawn(list_id, WordOrder(0, 0, words, 0))
    if order.position < order.end - order.start:
        return _drawn(list_id, order)
    if words > order.end:
        return _drawn(list_id, WordOrder(order.cycle, order.end, words, 0))
    last = _ordinal(list_id, WordOrder(order.cycle, order.start, order.end, order.position - 1))
    new_cycle = WordOrder(order.cycle + 1, 0, words, 0)
    while words > 1 and _ordinal(list_id, new_cycle) == last:
        new_cycle = WordOrder(new_cycle.cycle + 1, 0, words, 0)
    return _drawn(list_id, new_cycle)


def _drawn(list_id: str, order: WordOrder) -> DrawnWord:
    after = WordOrder(order.cycle, order.start, order.end, order.position + 1)
    return DrawnWord(_ordinal(list_id, order), order.cycle, after)


def _ordinal(list_id: str, order: WordOrder) -> int:
    key = f"{list_id} {order.cycle} {order.start}".encode()
    return order.start + Permutation.keyed(key, order.end - order.start).at(order.position)
