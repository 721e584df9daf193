"""Which reads a write invalidates.

Partitions are told apart by the first word of their keys, such as `LEADERBOARD` of `LEADERBOARD#cats`. A write of an
item invalidates reads of its own word, and of the words of all index keys of the entities that share it. A word that no
entity declares invalidates everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def first_word(partition: str) -> str:
    """The kind of a partition, by its key or its key's template."""
    return partition.partition("#")[0]


class Invalidation:
    """Which partitions change when items under a partition key are written. Every entity adds its keys."""

    def __init__(self) -> None:
        self._words: dict[str, set[str]] = {}

    def add(self, primary: str, *indexes: str) -> None:
        """Items under this primary key are also found under these keys of indexes."""
        word = first_word(primary)
        self._words.setdefault(word, {word}).update(map(first_word, indexes))

    def words(self, word: str) -> set[str] | None:
        """The words of everything that a write under this word can change; None: of anything."""
        words = self._words.get(word)
        # A template may begin with a hole, and then with any word.
        return None if words is None or any("{" in one for one in words) else words


INVALIDATION = Invalidation()


def written_partitions(parameters: Mapping[str, Any]) -> Iterator[str]:
    """The partition keys of the items that a call writes."""
    if "Key" in parameters or "Item" in parameters:
        yield _partition(parameters)
    for action in parameters.get("TransactItems", ()):
        for operation, one in action.items():
            if operation != "ConditionCheck":
                yield _partition(one)
    for requests in parameters.get("RequestItems", {}).values():
        for request in requests:
            for one in request.values():
                yield _partition(one)


def _partition(operation: Mapping[str, Any]) -> str:
    partition: str = (operation.get("Key") or operation["Item"])["pk"]["S"]
    return partition
