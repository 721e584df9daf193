"""Five public lists, three of them Chinese, with two weeks of daily words, and members who have been learning them."""

from datetime import UTC, datetime, timedelta
from random import Random

from datastore.changes.unit_of_work import UnitOfWork
from datastore.values.ids import derived_id
from datastore.vocabulary import daily, learning, lists, subscriptions
from datastore.vocabulary.learning import QuizResult
from datastore.vocabulary.lists import WordList
from datastore.vocabulary.subscriptions import CharacterSet, Subscription
from datastore.vocabulary.words import WordBatch, add_words
from resolvers.requests.context import Services
from resolvers.vocabulary.texts import NewWord, parse_word
from server.demo.people import MEMBERS, read_rows

LISTS = (
    ("First words", 1, "words/first_words.tsv"),
    ("At the table", 2, "words/at_the_table.tsv"),
    ("At the match", 3, "words/at_the_match.tsv"),
    ("Primeras palabras", 1, "words/primeras_palabras.tsv"),
    ("كلمات أولى", 1, "words/kalimat_ula.tsv"),
)
"""Name, level and file of each."""
LEARNERS = 40
DAYS = 14
_QUIZ_CHANCE = 0.7
_ID_TIME = datetime(2026, 1, 1, tzinfo=UTC)


async def seed(services: Services) -> str:
    count = 0
    for number, (name, level, file) in enumerate(LISTS, 1):
        word_list = await _ensure_list(services, name, level, file)
        count += word_list.word_count
        today = services.clock().astimezone(UTC).date()
        for days_ago in reversed(range(DAYS)):
            await daily.draw_daily_word(services.table, word_list.list, today - timedelta(days=days_ago))
        await _add_learners(services, word_list, number)
    return f"{len(LISTS)} word lists of {count} words, learned by {LEARNERS} members"


async def _ensure_list(services: Services, name: str, level: int, file: str) -> WordList:
    """The list with its words, of which an interrupted seeding may have left a part."""
    now = services.clock()
    unit = UnitOfWork.unkeyed(now)
    new = WordList(_id(name), name, public=True, created_at=now - timedelta(days=DAYS), level=level)
    word_list = await lists.read_list(services.table, new.list, consistent=True)
    word_list = word_list or await lists.read_public_list(services.table, name)
    if word_list is None:
        await lists.create_list(services.table, new, unit)
        word_list = new
    if word_list.word_count:
        return word_list
    words = [parse_word(word_list.list, NewWord(**row), (file,)) for row in read_rows(file)]
    batch = WordBatch(_id("words", name), words, len(words))
    return (await add_words(services.table, word_list.list, batch, unit)).list


async def _add_learners(services: Services, word_list: WordList, seed: int) -> None:
    random = Random(seed)
    now = services.clock()
    unit = UnitOfWork.unkeyed(now)
    for user, _ in MEMBERS[:LEARNERS]:
        characters = random.choice(tuple(CharacterSet))
        since = now - timedelta(days=random.randrange(90))
        subscription = Subscription(user, word_list.list, characters, active=True, since=since)
        await subscriptions.subscribe(services.table, subscription, unit)
        for days_ago in range(DAYS // 2):
            total = random.choice((5, 10, 20))
            correct = random.randint(total // 2, total)
            if random.random() < _QUIZ_CHANCE:
                at = now - timedelta(days=days_ago)
                quiz = _id(user, seed, days_ago)
                result = QuizResult(user, at.date(), quiz, word_list.list, correct, total, at)
                days = await learning.read_active_days(services.table, user)
                await learning.record_result(services.table, result, days, lambda _: None, unit)


def _id(*parts: object) -> str:
    """The same id at every seeding, so that an interrupted one leaves nothing twice."""
    return derived_id(_ID_TIME, f"demo {parts}".encode())
