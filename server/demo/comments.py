"""Some two thousand comments in eight languages on a dozen products of a fan shop.

Drawn once and for all from a fixed seed and written by the import's own batches: planted again after an interruption,
they are the same comments, counted once.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random

from ulid import ULID

from datastore.comments import Comment, Status
from datastore.comments.counts import settle, unsettled
from datastore.comments.transfer import BATCH, bring
from resolvers.context import Services
from server.demo.comment_texts import VOICES, Voice
from server.demo.people import MEMBERS

PRODUCTS = (
    "ringside-tee", "championship-belt", "event-poster", "foam-finger", "enamel-pins", "black-hoodie", "corner-mug",
    "knit-cap", "hsk-flash-cards", "ticket-frame", "supporters-scarf", "walkout-vinyl",
)  # fmt: skip
NUMBER = 2_400
WAITING = 12
_SPEAKERS = {"en": 40, "de": 14, "fr": 10, "es": 12, "it": 6, "pt-BR": 7, "ja": 6, "zh-Hans": 5}
_RATINGS = {1: 10, 2: 5, 3: 10, 4: 20, 5: 55}
_LAST = datetime(2026, 11, 19, 20, 0, tzinfo=UTC)
_MINUTES_BETWEEN = 120


def drawn() -> Iterator[Comment]:
    """The comments, oldest first; a few of the newest wait for a moderator."""
    source = Random(20261120)
    popularity = [1 / (place + 1) for place in range(len(PRODUCTS))]
    for number in range(NUMBER):
        (product,) = source.choices(PRODUCTS, popularity)
        (language,) = source.choices(list(_SPEAKERS), list(_SPEAKERS.values()))
        (rating,) = source.choices(list(_RATINGS), list(_RATINGS.values()))
        written = _LAST - timedelta(minutes=(NUMBER - number) * _MINUTES_BETWEEN - source.uniform(0, 90))
        title, body = _said(VOICES[language], rating, source)
        yield Comment(
            product=product,
            ulid=_id(written, number),
            language=language,
            rating=rating,
            body=body,
            author=source.choice(MEMBERS)[0],
            title=title,
            held=Status.PENDING if number >= NUMBER - WAITING else None,
        )


def _said(voice: Voice, rating: int, source: Random) -> tuple[str | None, str]:
    mood = {1: 2, 2: 2, 3: 1}.get(rating, 0)
    opening = source.choice((voice.good, voice.mixed, voice.poor)[mood])
    details = source.sample(voice.details, source.choice((0, 1, 1, 2, 3)))
    title = source.choice(voice.titles[mood]) if source.random() < 0.4 else None  # noqa: PLR2004 - two of five
    return title, voice.gap.join((opening, *details))


def _id(written: datetime, number: int) -> str:
    milliseconds = int(written.timestamp() * 1000).to_bytes(6, "big")
    return str(ULID(milliseconds + hashlib.sha256(f"demo comment {number}".encode()).digest()[:10]))


async def plant(services: Services) -> str:
    comments = list(drawn())
    until = services.clock() + timedelta(days=1)
    batches = [comments[start : start + BATCH] for start in range(0, len(comments), BATCH)]
    for start in range(0, len(batches), 4):
        await asyncio.gather(*(bring(services.table, batch, until) for batch in batches[start : start + 4]))
    for product in await unsettled(services.table):
        await settle(services.table, product)
    return f"{NUMBER:,} comments in {len(VOICES)} languages on {len(PRODUCTS)} products"
