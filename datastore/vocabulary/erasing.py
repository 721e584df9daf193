"""Erasing a member from vocabulary: subscriptions, private lists, and results under a name that is nobody's.

| wanted                    | read or write                                                       | requests        |
|---------------------------|---------------------------------------------------------------------|-----------------|
| end subscriptions         | see `subscriptions`                                                 | 2 for each      |
| delete private lists      | gsi1 LISTS#OF-<user>, #DELETED and #CLEARED-OF-<user>; see `lists`  | 3, and by 25    |
| move results              | a transaction of both items of each                                 | 1 for 5         |
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from datastore.dynamo import chunks
from datastore.dynamo.bulk import clear_partition
from datastore.dynamo.entity import Entity, Partition
from datastore.vocabulary.daily import clear_deleted_list
from datastore.vocabulary.learning import ACTIVE_DAYS, QUIZ, SENTENCE, QuizResult
from datastore.vocabulary.lists import LIST, WordList, delete_list, lists_including_deleted
from datastore.vocabulary.subscriptions import SUBSCRIBER_COUNT, read_subscriptions, unsubscribe

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from datastore.changes.unit_of_work import UnitOfWork
    from datastore.dynamo import Table
    from datastore.dynamo.writes import Write
    from datastore.vocabulary.removal import Result

_AT_ONCE = 5
"""Few, because the embedded engine lets others wait for a transaction."""
_CLEARED_AT_ONCE = 200


async def end_subscriptions(table: Table, user: str, unit: UnitOfWork) -> None:
    """End a member's subscriptions, so that they are not counted. Safe to repeat."""
    for subscription in await read_subscriptions(table, user):
        if subscription.active:
            await unsubscribe(table, user, subscription.list, subscription.character_set, unit)


async def delete_private_lists(table: Table, user: str, unit: UnitOfWork) -> None:
    """Delete a member's private lists that the index shows, those too that they deleted."""
    for word_list in [word_list async for word_list in lists_including_deleted(table, user)]:
        await _delete(table, word_list, unit)


async def _delete(table: Table, word_list: WordList, unit: UnitOfWork) -> None:
    """The list itself comes last: until then a repeat finds it."""
    current = await table.get(LIST.item_key(word_list), consistent=True)
    if current is None:
        return
    await delete_list(table, word_list.list, "", unit)
    deleted = await table.get(LIST.item_key(word_list), consistent=True)
    while deleted is not None and not await clear_deleted_list(table, deleted, _CLEARED_AT_ONCE):
        pass
    await clear_partition(table, SUBSCRIBER_COUNT.on(None, list=word_list.list))
    await table.write(LIST.delete(LIST.item_key(word_list)))


async def move_results(table: Table, user: str, alias: str) -> AsyncIterator[tuple[Result, Result]]:
    """Let a member's quiz results, sentences and active days be those of another name. Safe to repeat.

    Yields each result as it was and as it is now.
    """
    collection: Partition[Any] = QUIZ.on(None, user=user)
    results = [result async for result in table.iterate(collection, QUIZ, SENTENCE, consistent=True)]
    for some in chunks([(result, replace(result, user=alias)) for result in results], _AT_ONCE):
        await table.transact(*(write for pair in some for write in _move(*pair)))
        for pair in some:
            yield pair
    days = await table.get(ACTIVE_DAYS.at(user=user), consistent=True)
    if days is not None:
        moved = ACTIVE_DAYS.put(replace(days, user=alias))
        await table.transact(ACTIVE_DAYS.delete(ACTIVE_DAYS.item_key(days)), moved)


def _move(old: Result, new: Result) -> Iterator[Write]:
    entity: Entity[Any] = QUIZ if isinstance(old, QuizResult) else SENTENCE
    yield entity.delete(entity.item_key(old))
    yield entity.put(new)
