"""Reads for `ringside audit`: every record of lists, subscriptions and learning."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from datastore.dynamo.entity import Entity
from datastore.vocabulary.cards import CARD, QUEUE_CHANGE, QUEUED_CARD, Card, QueueChange
from datastore.vocabulary.daily import DAILY, DailyWord
from datastore.vocabulary.learning import ACTIVE_DAYS, QUIZ, SENTENCE, ActiveDays, QuizResult, Sentence
from datastore.vocabulary.lists import LIST, QUOTA, Quota, WordList
from datastore.vocabulary.subscriptions import SUBSCRIBER_COUNT, SUBSCRIPTION, SubscriberCount, Subscription

if TYPE_CHECKING:
    from datastore.dynamo import Table


def all_cards(table: Table) -> AsyncIterator[Card | QueueChange]:
    """Every card twice: as it stands in the queue, and under its word; and the changes of the queue that are to come.

    Those of a member follow one another.
    """
    kinds: tuple[Entity[Any], ...] = (QUEUED_CARD, CARD, QUEUE_CHANGE)
    return table.scan(*kinds)


def all_lists(table: Table) -> AsyncIterator[WordList]:
    return table.scan(LIST)


def all_quotas(table: Table) -> AsyncIterator[Quota]:
    return table.scan(QUOTA)


def all_daily_words(table: Table, list_id: str) -> AsyncIterator[DailyWord]:
    """The daily words of a list, oldest first."""
    return table.iterate(DAILY.on(None, list=list_id))


def all_subscriptions(table: Table) -> AsyncIterator[Subscription]:
    return table.scan(SUBSCRIPTION)


def all_subscriber_counts(table: Table) -> AsyncIterator[SubscriberCount]:
    return table.scan(SUBSCRIBER_COUNT)


def all_results(table: Table) -> AsyncIterator[QuizResult | Sentence | ActiveDays]:
    """Each member's quizzes and sentences, followed by the member's active days."""
    kinds: tuple[Entity[Any], ...] = (QUIZ, SENTENCE, ACTIVE_DAYS)
    return table.scan(*kinds)
