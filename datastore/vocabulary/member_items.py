"""What vocabulary keeps of a member; removing results with the days that only they made active; reads for the audit.

| wanted                     | read or write                                              | requests              |
|----------------------------|------------------------------------------------------------|-----------------------|
| the member's own partition | read once for all parts (`datastore.people.member_items`)  | 0 more                |
| private lists              | gsi1 LISTS#OF-<id>, LISTS#DELETED, LISTS#CLEARED-OF-<id>;  | 3, and 4 a list       |
|                            | Query LIST#<id>, consistent                                |                       |
| a member's results         | Query USER#<user> DAY#…, consistent                        | 1 a 200               |
| remove some of a day       | a transaction: results, quizzes, active days if changed    | 1 for up to 90 writes |
| the last ones of a day     | GetItem of the active days, the day's results, the same    | 3                     |

The result of a quiz that was set here is removed with the quiz itself, which holds the answers for another day. The
member's cards stay: they say when to ask the member again, and count towards nothing that others see.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import date
from itertools import groupby
from typing import Any, TypeAlias

from datastore.changes.occurrences import Kind
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import ConditionFailed, Stale, Table, optimistic_from
from datastore.dynamo.entity import Entity, Partition
from datastore.dynamo.writes import Write, present
from datastore.people.member_items import PERSONAL, RESULT, MemberItems, Records, in_file, left_out, of_nobody
from datastore.vocabulary import learning, lists, subscriptions
from datastore.vocabulary.daily import DAILY, DailyWord, clear_deleted_list
from datastore.vocabulary.quizzes import CARD, OPEN_QUIZ, QUEUE_CHANGE, QUEUED_CARD, Card, QueueChange
from datastore.vocabulary.words import REMOVED_WORD, WORD

# ── erasing ──

_CLEARED_AT_ONCE = 200


async def end_subscriptions(table: Table, user: str, unit: UnitOfWork) -> None:
    """End a member's subscriptions, so that they are not counted. Safe to repeat."""
    for subscription in await subscriptions.read_subscriptions(table, user):
        if subscription.active:
            await subscriptions.unsubscribe(table, user, subscription.list, subscription.character_set, unit)


async def delete_private_lists(table: Table, user: str, unit: UnitOfWork) -> None:
    """Delete a member's private lists that the index shows, those too that they deleted."""
    for word_list in [word_list async for word_list in lists.lists_including_deleted(table, user)]:
        await _delete(table, word_list, unit)


async def _delete(table: Table, word_list: lists.WordList, unit: UnitOfWork) -> None:
    """The list itself comes last: until then a repeat finds it. One that its owner has published is nobody's."""
    current = await table.get(lists.LIST.item_key(word_list), consistent=True)
    if current is None or current.owner is None:
        return
    await lists.delete_list(table, word_list.list, "", unit)
    deleted = await table.get(lists.LIST.item_key(word_list), consistent=True)
    while deleted is not None and not await clear_deleted_list(table, deleted, _CLEARED_AT_ONCE):
        pass
    await table.clear(subscriptions.SUBSCRIBER_COUNT.on(list=word_list.list))
    await table.write(lists.LIST.delete(lists.LIST.item_key(word_list)))


# ── removal ──

Result: TypeAlias = learning.QuizResult | learning.Sentence
_MOST_WRITES = 90
"""In one transaction, besides those of the active days: it has at most 100."""


async def remove_results(
    table: Table, user: str, is_wanted: Callable[[Result], bool], unit: UnitOfWork
) -> AsyncIterator[Result]:
    """Remove a member's results that are wanted, and yield each. An interrupted removal can be repeated."""
    results = await _read(table, learning.QUIZ.on(user=user))
    for day, of_day in groupby(results, key=lambda one: one.date):
        for removed in await _remove_of_day(table, user, day, list(of_day), is_wanted, unit):
            yield removed


async def _read(table: Table, collection: Partition[Any]) -> list[Result]:
    return [one async for one in table.iterate(collection, learning.QUIZ, learning.SENTENCE, consistent=True)]


async def _read_day(table: Table, user: str, day: date) -> list[Result]:
    return await _read(table, learning.DateRange(day, day).narrow(learning.QUIZ.on(user=user)))


async def _remove_of_day(
    table: Table, user: str, day: date, of_day: list[Result], is_wanted: Callable[[Result], bool], unit: UnitOfWork
) -> list[Result]:
    removed: dict[str, Result] = {}

    async def remove_some(of_day: list[Result]) -> list[Result]:
        """What is left of the day after one more transaction."""
        wanted = [one for one in of_day if is_wanted(one)]
        if not wanted:
            return of_day
        group, writes = _first_group(wanted, unit)
        if len(group) == len(of_day):
            writes += await _without_day(table, user, day)
            # Read after the days: a result that is written from now on fails this transaction, as it changes the days.
            if {one.id for one in await _read_day(table, user, day)} != {one.id for one in of_day}:
                raise Stale
        try:
            await unit.apply(table, *writes)
        except ConditionFailed as failed:  # another process was faster, or a result was written
            if failed.doubtful:
                removed.update((one.id, one) for one in group)
            raise
        removed.update((one.id, one) for one in group)
        return [one for one in of_day if one.id not in removed]

    while any(map(is_wanted, of_day)):
        of_day = await optimistic_from(of_day, lambda: _read_day(table, user, day), remove_some, idempotent=True)
    return list(removed.values())


def _first_group(results: Sequence[Result], unit: UnitOfWork) -> tuple[Sequence[Result], list[Write]]:
    """As many results as one transaction removes, and its writes."""
    writes: list[Write] = []
    for number, result in enumerate(results):
        more = _removal(result, unit)
        if writes and len(writes) + len(more) > _MOST_WRITES:
            return results[:number], writes
        writes += more
    return results, writes


def _removal(result: Result, unit: UnitOfWork) -> list[Write]:
    if isinstance(result, learning.Sentence):
        occurred = learning.occurrence_of(unit, result, Kind.SENTENCE_REMOVED)
        return [learning.SENTENCE.delete(learning.SENTENCE.item_key(result), when=present()), *occurred]
    quiz = [OPEN_QUIZ.delete(OPEN_QUIZ.at(user=result.user, id=result.id))] if result.asked_here else []
    occurred = learning.occurrence_of(unit, result, Kind.QUIZ_REMOVED)
    return [learning.QUIZ.delete(learning.QUIZ.item_key(result), when=present()), *quiz, *occurred]


async def _without_day(table: Table, user: str, day: date) -> list[Write]:
    """The write that makes a day inactive, if it is an active one."""
    days: learning.ActiveDays | None = await table.get(learning.ACTIVE_DAYS.at(user=user), consistent=True)
    if days is None or day not in days:
        return []
    after, unchanged = days.without_day(day), learning.as_read(days)
    if not after.dates():
        return [learning.ACTIVE_DAYS.delete(learning.ACTIVE_DAYS.item_key(days), when=unchanged)]
    return [learning.ACTIVE_DAYS.put(after, when=unchanged)]


# ── auditing ──
# Reads for `ringside audit`: every record of lists, subscriptions and learning.


def all_cards(table: Table) -> AsyncIterator[Card | QueueChange]:
    """Every card twice: as it stands in the queue, and under its word; and the changes of the queue that are to come.

    Those of a member follow one another.
    """
    return table.scan(QUEUED_CARD, CARD, QUEUE_CHANGE)


def all_lists_and_names(table: Table) -> AsyncIterator[lists.WordList | lists.PublicName]:
    return table.scan(lists.LIST, lists.PUBLIC_NAME)


def all_quotas(table: Table) -> AsyncIterator[lists.Quota]:
    return table.scan(lists.QUOTA)


def all_daily_words(table: Table, list_id: str) -> AsyncIterator[DailyWord]:
    """The daily words of a list, oldest first."""
    return table.iterate(DAILY.on(list=list_id))


def all_subscriptions(table: Table) -> AsyncIterator[subscriptions.Subscription | subscriptions.SubscriberCount]:
    return table.scan(subscriptions.SUBSCRIPTION, subscriptions.SUBSCRIBER_COUNT)


def all_results(table: Table) -> AsyncIterator[learning.QuizResult | learning.Sentence | learning.ActiveDays]:
    """Each member's quizzes and sentences, followed by the member's active days."""
    return table.scan(learning.QUIZ, learning.SENTENCE, learning.ACTIVE_DAYS)


# ── member items ──

_OF_LIST: tuple[Entity[Any], ...] = (lists.LIST, WORD, REMOVED_WORD, DAILY)


async def _records(table: Table, user: str) -> Records:
    """Those of each kind by themselves: a removed word is the same record as another one."""
    async for word_list in lists.lists_including_deleted(table, user):
        for entity in _OF_LIST:
            async for record in table.iterate(entity.on(list=word_list.list), consistent=True):
                yield entity, record


MEMBER_ITEMS = MemberItems(
    {
        learning.QUIZ: in_file("quiz", "The result of one quiz.", RESULT),
        learning.SENTENCE: in_file("sentence", "One practice sentence.", RESULT),
        OPEN_QUIZ: in_file(
            "openQuiz",
            "For a day: a quiz that you were asked.",
            without={
                "words": "For a day: the right answers of a quiz, which you may still be about to give.",
                "cards": "They are records of their own. Here they would say which words the quiz asks.",
            },
        ),
        CARD: in_file("card", "When you will be asked a word again, and how well you know it."),
        learning.ACTIVE_DAYS: in_file(
            "activeDays",
            "The days on which you were active: bit n is the day `since` + n; and when you last answered a quiz.",
            RESULT,
        ),
        subscriptions.SUBSCRIPTION: in_file(
            "subscription", "A subscription to the daily words of a list, active or ended."
        ),
        subscriptions.ADDRESS_CLAIM: in_file(
            "addressClaim",
            "That you claimed the subscriptions of an address, which is named by a keyed hash.",
        ),
        subscriptions.MAIL: in_file("mail", "That an email was sent to you on a date."),
        lists.QUOTA: in_file("quota", "How many private lists you have."),
        lists.LIST: in_file("list", "One of your private lists, or what is left of one that you deleted."),
        WORD: in_file("word", "One word of your private lists."),
        REMOVED_WORD: in_file("removedWord", "One word that was removed from your private lists."),
        DAILY: in_file("dailyWord", "The word of your private list on a date."),
        QUEUED_CARD: left_out("Repeats what the file has: it is a card's place among those that are due.", PERSONAL),
        QUEUE_CHANGE: left_out(
            "Repeats what the file has: it says which cards of an answered quiz are about to change their places.",
            PERSONAL,
        ),
        subscriptions.SENT_NOTE: left_out(
            "Repeats what the file has, for three days: that an email was sent to a member, whom it names by a keyed "
            "hash."
        ),
        **of_nobody(subscriptions.DAILY_MAILING, lists.PUBLIC_NAME, subscriptions.SUBSCRIBER_COUNT),
    },
    _records,
)
