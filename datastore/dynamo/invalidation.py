"""The reads that a write invalidates.

Partitions are distinguished by the first word of their keys, such as `LEADERBOARD` in `LEADERBOARD#cats`. A write
invalidates reads under the first word of its item's key, and under the first words of all index keys of the entities
with that word. A word that no entity declares invalidates all reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def first_word(partition: str) -> str:
    """The first word of a partition key or of its template."""
    return partition.partition("#")[0]


class Invalidation:
    """The partitions that change when items under a partition key are written. Every entity adds its keys."""

    def __init__(self) -> None:
        self._words: dict[str, set[str]] = {}

    def add(self, primary: str, *indexes: str) -> None:
        """Declare that items under this primary key are also found under these index keys."""
        word = first_word(primary)
        self._words.setdefault(word, {word}).update(map(first_word, indexes))

    def words(self, word: str) -> set[str] | None:
        """The words of all partitions that a write under this word can change; None if that may be any."""
        words = self._words.get(word)
        # A template that begins with a placeholder may begin with any word.
        return None if words is None or any("{" in each for each in words) else words


INVALIDATION = Invalidation()


def written_partitions(parameters: Mapping[str, Any]) -> Iterator[str]:
    """The partition keys of the items that a call writes."""
    if "Key" in parameters or "Item" in parameters:
        yield _partition(parameters)
    for action in parameters.get("TransactItems", ()):
        for kind, operation in action.items():
            if kind != "ConditionCheck":
                yield _partition(operation)
    for requests in parameters.get("RequestItems", {}).values():
        for request in requests:
            for operation in request.values():
                yield _partition(operation)


def _partition(operation: Mapping[str, Any]) -> str:
    partition: str = (operation.get("Key") or operation["Item"])["pk"]["S"]
    return partition
