"""Reads for `ringside audit`: every record about lists, subscriptions and what members learned."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from datastore.dynamo.entity import Entity
from datastore.vocabulary.daily import DAILY, DailyWord
from datastore.vocabulary.learning import DAYS, QUIZ, SENTENCE, Days, QuizResult, Sentence
from datastore.vocabulary.lists import LIST, QUOTA, Quota, WordList
from datastore.vocabulary.subscriptions import SUBSCRIBERS, SUBSCRIPTION, Subscribers, Subscription

if TYPE_CHECKING:
    from datastore.dynamo import Table


def all_lists(table: Table) -> AsyncIterator[WordList]:
    return table.scan(LIST)


def all_quotas(table: Table) -> AsyncIterator[Quota]:
    return table.scan(QUOTA)


def all_days(table: Table, list_id: str) -> AsyncIterator[DailyWord]:
    """The daily words of a list, oldest first."""
    return table.iterate(DAILY.on(None, list=list_id))


def all_subscriptions(table: Table) -> AsyncIterator[Subscription]:
    return table.scan(SUBSCRIPTION)


def all_subscriber_counts(table: Table) -> AsyncIterator[Subscribers]:
    return table.scan(SUBSCRIBERS)


def all_results(table: Table) -> AsyncIterator[QuizResult | Sentence | Days]:
    """Each member's quizzes and sentences, and after them the member's active days."""
    kinds: tuple[Entity[Any], ...] = (QUIZ, SENTENCE, DAYS)
    return table.scan(*kinds)
