"""The order in which a list's words have their days: a rule without a table.

Law: within a cycle no word comes twice, and a cycle does not end before every word that was there at its last step has
come. Words added meanwhile come in the same cycle, behind those that were there. The first word of a cycle is not the
last one of the cycle before, unless the list has only one.
"""

from __future__ import annotations

from dataclasses import dataclass

from datastore.permutation import Permutation


@dataclass(frozen=True, slots=True)
class Walk:
    """Where a list stands: the next step takes `position` of the permuted words `start` … `end` - 1."""

    cycle: int = 0
    start: int = 0
    end: int = 0
    position: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """The word of one day, the cycle it belongs to, and where the list stands afterwards."""

    ordinal: int
    cycle: int
    after: Walk


def next_step(list_id: str, walk: Walk | None, words: int) -> Step:
    """The next word of a list of so many words, of which there is at least one."""
    if walk is None:
        return _step(list_id, Walk(0, 0, words, 0))
    if walk.position < walk.end - walk.start:
        return _step(list_id, walk)
    if words > walk.end:
        return _step(list_id, Walk(walk.cycle, walk.end, words, 0))
    last = _ordinal(list_id, Walk(walk.cycle, walk.start, walk.end, walk.position - 1))
    fresh = Walk(walk.cycle + 1, 0, words, 0)
    while words > 1 and _ordinal(list_id, fresh) == last:
        fresh = Walk(fresh.cycle + 1, 0, words, 0)
    return _step(list_id, fresh)


def _step(list_id: str, walk: Walk) -> Step:
    after = Walk(walk.cycle, walk.start, walk.end, walk.position + 1)
    return Step(_ordinal(list_id, walk), walk.cycle, after)


def _ordinal(list_id: str, walk: Walk) -> int:
    key = f"{list_id} {walk.cycle} {walk.start}".encode()
    return walk.start + Permutation.keyed(key, walk.end - walk.start).at(walk.position)
