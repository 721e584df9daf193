"""What vocabulary keeps of a member: learning, subscriptions and emails in the member's own partition; private lists.

| wanted        | read                                          | requests     |
|---------------|-----------------------------------------------|--------------|
| private lists | gsi1 LISTS#OF-<id>; Query LIST#<id>, consistent | 1, and lists |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datastore.dynamo.entity import Partition
from datastore.people.member_items import (
    PERSONAL,
    RESULT,
    MemberItems,
    Records,
    in_file,
    left_out,
    of_nobody,
)
from datastore.vocabulary.address_subscriptions import ADDRESS_CLAIM
from datastore.vocabulary.cards import CARD, QUEUE_CHANGE, QUEUED_CARD
from datastore.vocabulary.daily import DAILY
from datastore.vocabulary.learning import ACTIVE_DAYS, QUIZ, SENTENCE
from datastore.vocabulary.lists import LIST, QUOTA, lists_by_name
from datastore.vocabulary.mail import DAILY_MAILING, MAIL, SENT_NOTE
from datastore.vocabulary.quizzes import OPEN_QUIZ
from datastore.vocabulary.subscriptions import SUBSCRIBER_COUNT, SUBSCRIPTION
from datastore.vocabulary.words import REMOVED_WORD, WORD

if TYPE_CHECKING:
    from datastore.dynamo import Table

_OF_LIST = (LIST, WORD, REMOVED_WORD, DAILY)


async def _read(table: Table, user: str) -> Records:
    async for word_list in lists_by_name(table, user):
        collection: Partition[Any] = Partition(LIST, None, LIST.item_key(word_list).pk)
        async for record in table.iterate(collection, *_OF_LIST, consistent=True):
            yield next(entity for entity in _OF_LIST if isinstance(record, entity.record)), record


MEMBER_ITEMS = MemberItems(
    {
        QUIZ: in_file("quiz", "The result of one quiz.", RESULT),
        SENTENCE: in_file("sentence", "One practice sentence.", RESULT),
        OPEN_QUIZ: in_file(
            "openQuiz",
            "For a day: a quiz that you were asked, with your cards of its words.",
            without={
                "words": "For a day: the right answers of a quiz, which you may still be about to give.",
            },
        ),
        CARD: in_file("card", "When you will be asked a word again, and how well you know it."),
        ACTIVE_DAYS: in_file(
            "activeDays",
            "The days on which you were active: bit n is the day `since` + n; and when you last answered a quiz.",
            RESULT,
        ),
        SUBSCRIPTION: in_file("subscription", "A subscription to the daily words of a list, active or ended."),
        ADDRESS_CLAIM: in_file(
            "addressClaim",
            "That you claimed the subscriptions of an address, which is named by a keyed hash.",
        ),
        MAIL: in_file("mail", "That an email was sent to you on a date."),
        QUOTA: in_file("quota", "How many private lists you have."),
        LIST: in_file("list", "One of your private lists."),
        WORD: in_file("word", "One word of your private lists."),
        REMOVED_WORD: in_file("removedWord", "One word that was removed from your private lists."),
        DAILY: in_file("dailyWord", "The word of your private list on a date."),
        QUEUED_CARD: left_out("Repeats what the file has: it is a card's place among those that are due.", PERSONAL),
        QUEUE_CHANGE: left_out(
            "Repeats what the file has: it says which cards of an answered quiz are about to change their places.",
            PERSONAL,
        ),
        SENT_NOTE: left_out(
            "Repeats what the file has, for three days: that an email was sent to a member, whom it names by a keyed "
            "hash."
        ),
        **of_nobody(DAILY_MAILING, SUBSCRIBER_COUNT),
    },
    _read,
)
