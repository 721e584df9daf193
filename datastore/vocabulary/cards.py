"""Members' cards: when each word that a member learns is due, in the member's own collection.

A card is stored twice, in one transaction: in the queue, ordered by the time at which it is due, and under its word,
where a review finds it. So the queue is read consistently in its order, without an index, and a page costs what it
shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from datastore.dynamo import ConditionFailed
from datastore.dynamo.attributes import iso
from datastore.dynamo.conditions import absent, present, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import HIGHEST, Key
from datastore.refusals import Conflict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datastore.dynamo import Page, Table, Window
    from datastore.dynamo.entity import Partition
    from datastore.dynamo.writes import Write
    from datastore.receipts import Once

MOST_COUNTED = 1_000
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Card:
    """What a member's reviews of a word say about when to ask for it again; the numbers are those of FSRS."""

    user: str
    list: str
    ordinal: int
    due: datetime
    stability: float
    difficulty: float
    state: int
    reviewed_at: datetime
    reviews: int
    step: int | None = None


QUEUED_CARD = Entity(Card, Key("USER#{user}", "CARD#{due}#{list}#{ordinal:06d}"))
CARD = Entity(Card, Key("USER#{user}", "CARDOF#{list}#{ordinal:06d}"))


async def read_cards(table: Table, user: str, list_id: str, ordinals: Sequence[int]) -> list[Card]:
    """The member's cards of these words, as far as there are some."""
    keys = [CARD.at(user=user, list=list_id, ordinal=ordinal) for ordinal in ordinals]
    return [card for card in await table.get_many(keys, consistent=True) if card is not None]


def _due(user: str, now: datetime) -> Partition[Card]:
    partition: Partition[Card] = QUEUED_CARD.on(None, user=user)
    return partition.between(None, f"CARD#{iso(now)}#{HIGHEST}")


async def read_due_page(table: Table, user: str, now: datetime, window: Window) -> Page[Card]:
    """The cards that are due, those that have waited longest first."""
    return await table.page([_due(user, now)], window.open(f"due {user}"), consistent=True)


async def count_due(table: Table, user: str, now: datetime) -> int:
    """How many cards are due, up to `MOST_COUNTED`."""
    return (await table.query(_due(user, now), limit=MOST_COUNTED, consistent=True)).read


def card_writes(before: Card | None, after: Card) -> list[Write]:
    """The writes of one review. They fail if the card is not `before` any more."""
    unchanged = absent() if before is None else present() & where(reviews=before.reviews)
    writes: list[Write] = [CARD.put(after, when=unchanged), QUEUED_CARD.put(after)]
    if before is not None and before.due != after.due:
        writes.append(QUEUED_CARD.delete(QUEUED_CARD.item_key(before)))
    return writes


async def review_card(
    table: Table, user: str, list_id: str, ordinal: int, review: Callable[[Card | None], Card], once: Once
) -> Card:
    """Review one word. `review` is made again from the current card if another review comes first."""
    for _ in range(_ATTEMPTS):
        before = await table.get(CARD.at(user=user, list=list_id, ordinal=ordinal), consistent=True)
        after = review(before)
        try:
            await once.transact(table, after, *card_writes(before, after))
        except ConditionFailed as failed:
            item = failed.failures.get(0)
            if failed.doubtful and item and CARD.read(item) == after:
                return after
            continue
        return after
    raise Conflict(retry_after=1.0)


async def drop_cards(table: Table, cards: Sequence[Card]) -> None:
    """Delete cards whose words are gone."""
    kinds = (QUEUED_CARD, CARD)
    await table.write_many(kind.delete(kind.item_key(card)) for card in cards for kind in kinds)
