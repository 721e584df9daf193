"""2,400 comments in eight languages on the twelve products of a fan shop.

They are generated from a fixed seed and written by the import's own batches: seeding again after an interruption
writes the same comments and counts each of them once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from datastore.changes.unit_of_work import UnitOfWork
from datastore.comments.records import Comment, Status
from datastore.comments.transfer import AT_ONCE, import_comments, settle_products
from datastore.dynamo import chunks
from datastore.values.ids import derived_id
from resolvers.requests.context import Services
from server.demo.people import MEMBERS, read_json

NUMBER = 2_400
PENDING = 12
_RATINGS = {1: 10, 2: 5, 3: 10, 4: 20, 5: 55}
_MOODS = {1: "poor", 2: "poor", 3: "mixed", 4: "good", 5: "good"}
_LATEST = datetime(2026, 11, 19, 20, 0, tzinfo=UTC)
_MINUTES_BETWEEN = 120
_TITLED = 0.4


@dataclass(frozen=True, slots=True)
class Phrases:
    """The sentences of one language: an opening and a title by mood, details that follow any opening."""

    weight: int
    openings: Mapping[str, Sequence[str]]
    details: Sequence[str]
    titles: Mapping[str, Sequence[str]]
    separator: str


_TEXTS = read_json("comments.json")
PRODUCTS: tuple[str, ...] = tuple(_TEXTS["products"])
LANGUAGES: Mapping[str, Phrases] = {language: Phrases(**texts) for language, texts in _TEXTS["languages"].items()}


def generate() -> Iterator[Comment]:
    """The comments, oldest first; a few of the newest are pending."""
    random = Random(20261120)
    popularity = [1 / (index + 1) for index in range(len(PRODUCTS))]
    for number in range(NUMBER):
        (product,) = random.choices(PRODUCTS, popularity)
        (language,) = random.choices(list(LANGUAGES), [phrases.weight for phrases in LANGUAGES.values()])
        (rating,) = random.choices(list(_RATINGS), list(_RATINGS.values()))
        written_at = _LATEST - timedelta(minutes=(NUMBER - number) * _MINUTES_BETWEEN - random.uniform(0, 90))
        title, body = _write(LANGUAGES[language], _MOODS[rating], random)
        yield Comment(
            product=product,
            ulid=derived_id(written_at, f"demo comment {number}".encode()),
            language=language,
            rating=rating,
            body=body,
            author=random.choice(MEMBERS)[0],
            title=title,
            held=Status.PENDING if number >= NUMBER - PENDING else None,
        )


def _write(phrases: Phrases, mood: str, random: Random) -> tuple[str | None, str]:
    """A title, which most comments lack, and a body."""
    opening = random.choice(phrases.openings[mood])
    details = random.sample(phrases.details, random.choice((0, 1, 1, 2, 3)))
    title = random.choice(phrases.titles[mood]) if random.random() < _TITLED else None
    return title, phrases.separator.join((opening, *details))


async def seed(services: Services) -> str:
    now = services.clock()
    unit = UnitOfWork.unkeyed(now)
    for some in chunks(generate(), AT_ONCE):
        await import_comments(services.table, some, now + timedelta(days=1), unit)
    await settle_products(services.table)
    return f"{NUMBER:,} comments in {len(LANGUAGES)} languages on {len(PRODUCTS)} products"
