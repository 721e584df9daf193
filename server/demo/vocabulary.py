"""Three public lists with two weeks of daily words, and members who have been learning them."""

from __future__ import annotations

import random
from datetime import UTC, timedelta
from hashlib import sha256

from ulid import ULID

from datastore import vocabulary
from datastore.receipts import Once
from datastore.vocabulary import Batch, CharacterSet, QuizResult, Subscription, Word, WordList
from resolvers.context import Services
from server.demo.people import MEMBERS
from server.demo.words import AT_THE_MATCH, AT_THE_TABLE, FIRST_WORDS

LISTS = (("First words", 1, FIRST_WORDS), ("At the table", 2, AT_THE_TABLE), ("At the match", 3, AT_THE_MATCH))
LEARNERS = 40
DAYS = 14
MOST_DAYS = 0.7


def words_of(list_id: str, text: str) -> list[Word]:
    rows = [row.split("|") for row in text.strip().splitlines()]
    return [
        Word(list_id, 0, simplified, meaning, traditional or None, pinyin)
        for simplified, traditional, pinyin, meaning in rows
    ]


def lasting_id(*named: object) -> str:
    """The same id whenever this is planted: a part that was interrupted is planted again."""
    return str(ULID(sha256(f"demo {named}".encode()).digest()[:16]))


async def plant(services: Services) -> str:
    planted = 0
    for name, level, text in LISTS:
        listed = await _list(services, name, level, text)
        planted += listed.word_count
        today = services.clock().astimezone(UTC).date()
        for back in reversed(range(DAYS)):
            await vocabulary.draw(services.table, listed.list, today - timedelta(days=back))
        await _learners(services, listed, level)
    return f"{len(LISTS)} word lists of {planted} words, learned by {LEARNERS} members"


async def _list(services: Services, name: str, level: int, text: str) -> WordList:
    now = services.clock()
    once = Once("demo", None, "", now)
    listed = WordList(lasting_id(name), name, public=True, created_at=now - timedelta(days=DAYS), level=level)
    if await vocabulary.word_list(services.table, listed.list, consistent=True) is None:
        await vocabulary.create_list(services.table, listed, once)
    words = words_of(listed.list, text)
    found = await vocabulary.word_list(services.table, listed.list, consistent=True) or listed
    if found.word_count == 0:
        found = (
            await vocabulary.add_words(services.table, listed.list, Batch(lasting_id("words", name), words, 1000), once)
        ).list
    return found


async def _learners(services: Services, listed: WordList, level: int) -> None:
    """Subscriptions, and a quiz of most of the last days."""
    drawn = random.Random(level)
    now = services.clock()
    once = Once("demo", None, "", now)
    for user, _ in MEMBERS[:LEARNERS]:
        characters = drawn.choice(tuple(CharacterSet))
        wanted = Subscription(
            user, listed.list, characters, active=True, since=now - timedelta(days=drawn.randrange(90))
        )
        await vocabulary.subscribe(services.table, wanted, once)
        for back in range(DAYS // 2):
            total = drawn.choice((5, 10, 20))
            correct = drawn.randint(total // 2, total)
            if drawn.random() < MOST_DAYS:
                moment = now - timedelta(days=back)
                result = QuizResult(
                    user, moment.date(), lasting_id(user, level, back), listed.list, correct, total, moment
                )
                days = await vocabulary.days_of(services.table, user)
                await vocabulary.record(services.table, result, days, lambda _: None, once)
