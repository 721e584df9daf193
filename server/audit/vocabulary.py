"""Lists have the words they count and one daily word a date, no word twice in a cycle; subscriber counts are exact."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import TypeVar

from datastore.vocabulary import member_items, subscriptions, words
from datastore.vocabulary.learning import ActiveDays, QuizResult, Sentence
from datastore.vocabulary.lists import PublicName, WordList
from datastore.vocabulary.quizzes import Card, QueueChange
from resolvers.requests.context import Services

R = TypeVar("R", QuizResult | Sentence | ActiveDays, Card | QueueChange)


async def breaches(services: Services) -> AsyncIterator[str]:
    for check in (_list_breaches, _subscription_breaches, _result_breaches, _card_breaches):
        async for breach in check(services):
            yield f"vocabulary: {breach}"


async def _list_breaches(services: Services) -> AsyncIterator[str]:
    """Words without gaps, daily words of the list, the number of each member's private lists, and public names."""
    private: Counter[str | None] = Counter()
    unmatched: set[PublicName] = set()
    async for word_list in member_items.all_lists_and_names(services.table):
        named = word_list if isinstance(word_list, PublicName) else PublicName.of(word_list)
        unmatched ^= {named} if named is not None else set()
        if isinstance(word_list, PublicName) or word_list.deleted_at is not None:
            continue
        if not word_list.public:
            private[word_list.owner] += 1
        ordinals = [word.ordinal async for word in words.all_words(services.table, word_list)]
        removed = [word.ordinal async for word in words.removed_words(services.table, word_list.list)]
        if sorted(ordinals + removed) != list(range(word_list.next_ordinal)) or len(removed) != word_list.removed:
            yield f"the list {word_list.list} counts {word_list.word_count} words and has {len(ordinals)}"
        async for breach in _daily_word_breaches(services, word_list):
            yield breach
    async for quota in member_items.all_quotas(services.table):
        if quota.lists != (actual := private.pop(quota.user, 0)):
            yield f"{quota.user} has {actual} private lists and is counted with {quota.lists}"
    for owner in private:
        yield f"the private lists of {owner} are not counted"
    for name in unmatched:
        yield f"the public list {name.list} and its name {name.hash} do not lead to each other"


async def _daily_word_breaches(services: Services, word_list: WordList) -> AsyncIterator[str]:
    used: set[tuple[int, int]] = set()
    drawn = 0
    async for daily in member_items.all_daily_words(services.table, word_list.list):
        if daily.word.ordinal >= word_list.next_ordinal or daily.word.list != word_list.list:
            yield f"the word of {daily.date} is not a word of the list {word_list.list}"
        if daily.cycle is None:  # imported, not drawn
            continue
        drawn += 1
        if (daily.cycle, daily.word.ordinal) in used:
            yield f"the word of {daily.date} came before in the same cycle of the list {word_list.list}"
        used.add((daily.cycle, daily.word.ordinal))
    if drawn != word_list.drawn:
        yield f"the list {word_list.list} counts {word_list.drawn} daily words and has {drawn}"


async def _subscription_breaches(services: Services) -> AsyncIterator[str]:
    """The index of active subscriptions and the counts of subscribers, shard by shard."""
    listed = 0
    subscribers: Counter[tuple[str, int]] = Counter()
    async for reader in subscriptions.all_subscribers(services.table):
        listed += len(reader.subscriptions)
        lists = {subscription.list for subscription in reader.subscriptions}
        subscribers.update((list_id, reader.index_shard) for list_id in lists)
        if reader.index_shard != reader.shard:
            yield f"{reader.user} is listed in shard {reader.index_shard} instead of {reader.shard}"
    active = 0
    async for record in member_items.all_subscriptions(services.table):
        if isinstance(record, subscriptions.Subscription):
            active += record.active
        elif record.count != (actual := subscribers.pop((record.list, record.shard), 0)):
            yield f"the list {record.list} counts {record.count} subscribers in shard {record.shard} and has {actual}"
    if active != listed:
        yield f"{active} active subscriptions, but {listed} in the index"
    for list_id, shard in subscribers:
        yield f"subscribers of the list {list_id} in shard {shard} are not counted"


async def _by_member(records: AsyncIterator[R]) -> AsyncIterator[list[R]]:
    """The records of each member, which follow one another."""
    own: list[R] = []
    async for record in records:
        if own and own[0].user != record.user:
            yield own
            own = []
        own.append(record)
    if own:
        yield own


async def _result_breaches(services: Services) -> AsyncIterator[str]:
    """The day of every result is one of its member's active days; results are within their bounds."""
    async for records in _by_member(member_items.all_results(services.table)):
        days = next((record for record in records if isinstance(record, ActiveDays)), None)
        if days is None:
            yield f"{records[0].user} has results but no active days"
            continue
        for result in records:
            if isinstance(result, QuizResult) and not 0 <= result.correct <= result.total:
                yield f"a quiz of {result.user} has {result.correct} of {result.total} correct"
            if not isinstance(result, ActiveDays) and result.date not in days:
                yield f"{result.user} has a result on {result.date}, which is not an active day"


async def _card_breaches(services: Services) -> AsyncIterator[str]:
    """Each card stands in its member's queue, and under its word as the same, unless the queue is about to change."""
    async for records in _by_member(member_items.all_cards(services.table)):
        unmatched: set[Card] = set()
        changing: set[tuple[str, int]] = set()
        for record in records:
            if isinstance(record, QueueChange):
                changing |= {(record.list, place.ordinal) for place in record.places}
            else:
                unmatched ^= {record}
        for list_id, ordinal in sorted({(card.list, card.ordinal) for card in unmatched} - changing):
            user = records[0].user
            yield f"the card of {user} for the word {ordinal} of the list {list_id} stands elsewhere in the queue"
