"""Lists have the words they count, one daily word a date and none twice in a cycle; subscribers are counted right."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from datastore import vocabulary
from datastore.dynamo import Entity
from datastore.people import SHARDS, shard_of
from datastore.vocabulary import DAILY, DAYS, LIST, QUIZ, QUOTA, SENTENCE, SUBSCRIBERS, SUBSCRIPTION, WordList
from resolvers.context import Services


async def breaches(services: Services) -> AsyncIterator[str]:
    async for breach in _lists(services):
        yield breach
    async for breach in _subscribers(services):
        yield breach
    async for breach in _days(services):
        yield breach


async def _lists(services: Services) -> AsyncIterator[str]:
    """Words without gaps, daily words of the list, no word twice in a cycle, private lists as many as counted."""
    private: Counter[str] = Counter()
    async for found in services.table.scan(LIST):
        if not found.public:
            private[found.owner] += 1
        ordinals = [word.ordinal async for word in vocabulary.words(services.table, found)]
        if ordinals != list(range(found.word_count)):
            yield f"vocabulary: the list {found.list} counts {found.word_count} words and has {len(ordinals)}"
        async for breach in _daily_words(services, found):
            yield breach
    async for quota in services.table.scan(QUOTA):
        if quota.lists != private.pop(quota.user, 0):
            yield f"vocabulary: {quota.user} does not have the {quota.lists} private lists that are counted"
    for owner in private:
        yield f"vocabulary: the private lists of {owner} are not counted"


async def _daily_words(services: Services, found: WordList) -> AsyncIterator[str]:
    seen: set[tuple[int, int]] = set()
    drawn = 0
    async for daily in services.table.iterate(DAILY.on(None, list=found.list)):
        if daily.word.ordinal >= found.word_count or daily.word.list != found.list:
            yield f"vocabulary: the word of {daily.date} is none of the list {found.list}"
        if daily.cycle is None:  # moved in from elsewhere
            continue
        drawn += 1
        if (daily.cycle, daily.word.ordinal) in seen:
            yield f"vocabulary: the word of {daily.date} came before in the same cycle of the list {found.list}"
        seen.add((daily.cycle, daily.word.ordinal))
    if drawn != found.drawn:
        yield f"vocabulary: the list {found.list} has taken {found.drawn} steps and has {drawn} daily words"


async def _subscribers(services: Services) -> AsyncIterator[str]:
    """Members with an active subscription, shard by shard, against the counts and the index."""
    listed = 0
    active: Counter[tuple[str, int]] = Counter()
    for shard in range(SHARDS):
        async for reader in vocabulary.readers(services.table, shard):
            listed += len(reader.subscriptions)
            active.update((one, shard) for one in {subscription.list for subscription in reader.subscriptions})
            if shard_of(reader.user) != shard:
                yield f"vocabulary: {reader.user} is listed in shard {shard} and belongs into {shard_of(reader.user)}"
    stored = 0
    async for subscription in services.table.scan(SUBSCRIPTION):
        stored += subscription.active
    if stored != listed:
        yield f"vocabulary: {stored} active subscriptions, but {listed} in the index"
    async for part in services.table.scan(SUBSCRIBERS):
        if part.count != active.pop((part.list, part.shard), 0):
            yield f"vocabulary: the list {part.list} counts {part.count} subscribers in shard {part.shard}, wrongly"
    for found, _ in active:
        yield f"vocabulary: subscribers of the list {found} are not counted"


async def _days(services: Services) -> AsyncIterator[str]:
    """Every result's day is among its member's active days; results are within their bounds."""
    # A member's items come together in a scan, in the order of their keys: the days last.
    results: list[Any] = []
    kinds: tuple[Entity[Any], ...] = (QUIZ, SENTENCE, DAYS)
    async for found in services.table.scan(*kinds):
        if results and results[0].user != found.user:
            yield f"vocabulary: {results[0].user} has results and no active days"
            results = []
        if not isinstance(found, vocabulary.Days):
            results.append(found)
            if isinstance(found, vocabulary.QuizResult) and not 0 <= found.correct <= found.total:
                yield f"vocabulary: a quiz of {found.user} has {found.correct} of {found.total} correct"
            continue
        for result in results:
            if result.date not in found:
                yield f"vocabulary: {result.user} has a result on {result.date}, which is no active day"
        results = []
    if results:
        yield f"vocabulary: {results[0].user} has results and no active days"
