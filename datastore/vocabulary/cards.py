"""Members' cards: when each word that a member learns is due, in the member's own collection.

A card is stored twice, in one transaction: in the queue, ordered by the time at which it is due, and under its word,
where a review finds it. So the queue is read consistently in its order, without an index, and a page costs what it
shows.

A quiz may review more cards than one transaction can move in the queue. It then stores the cards, and with them one
item that says which places are to change. That item lies before all places, so that a reader of the queue finds it in
the same call, and changes the places first. So a queue read from its start lacks no review, whenever a process was
killed. A reader who continues from a cursor sees the places as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from datastore.dynamo import ConditionFailed, Page, chunks, optimistic
from datastore.dynamo.attributes import iso
from datastore.dynamo.conditions import absent, present, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import HIGHEST, Key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from datastore.changes.unit_of_work import UnitOfWork
    from datastore.dynamo import Table, Window
    from datastore.dynamo.entity import Partition, Slice
    from datastore.dynamo.writes import Write

MOST_COUNTED = 1_000
_MOVED_AT_ONCE = 30
"""Cards, each with three writes of a transaction's 100."""


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


@dataclass(frozen=True, slots=True)
class OldPlace:
    """When a word's card was due before; None if it had no place."""

    ordinal: int
    due: datetime | None = None


@dataclass(frozen=True, slots=True)
class QueueChange:
    """Cards of a list that still stand at their old places."""

    user: str
    quiz: str
    list: str
    places: tuple[OldPlace, ...]


QUEUE_CHANGE = Entity(QueueChange, Key("USER#{user}", "CARD#!{quiz}"))
"""An exclamation mark comes before every time."""


async def read_cards(table: Table, user: str, list_id: str, ordinals: Sequence[int]) -> list[Card]:
    """The cards that the member has of these words."""
    keys = [CARD.at(user=user, list=list_id, ordinal=ordinal) for ordinal in ordinals]
    return [card for card in await table.get_many(keys, consistent=True) if card is not None]


def _due(user: str, now: datetime) -> Partition[Card]:
    partition: Partition[Card] = QUEUED_CARD.on(None, user=user)
    return partition.between(None, f"CARD#{iso(now)}#{HIGHEST}")


async def _read_queue(table: Table, queue: Partition[Card], limit: int) -> Slice[Card]:
    """A part of a queue, once the changes that its beginning names were made."""
    while True:
        found: Slice[Any] = await table.query(queue, QUEUED_CARD, QUEUE_CHANGE, limit=limit, consistent=True)
        changes = [record for record in found.records if isinstance(record, QueueChange)]
        if not changes:
            return found
        for change in changes:
            await change_queue(table, change)


async def read_due_page(table: Table, user: str, now: datetime, window: Window) -> Page[Card]:
    """The cards that are due, those that have waited longest first."""
    request = window.open(f"due {user}")
    queue = await _read_queue(table, _due(user, now).past(request.position), request.wanted)
    return Page.cut(queue.items, request)


async def count_due(table: Table, user: str, now: datetime) -> int:
    """How many cards are due, up to `MOST_COUNTED`."""
    return (await _read_queue(table, _due(user, now), MOST_COUNTED)).read


# ── reviews ──


def card_writes(before: Card | None, after: Card) -> list[Write]:
    """The writes of one review. They fail if the card is not `before` any more."""
    writes: list[Write] = [_put(before, after), QUEUED_CARD.put(after)]
    if before is not None and before.due != after.due:
        writes.append(QUEUED_CARD.delete(QUEUED_CARD.item_key(before)))
    return writes


def _put(before: Card | None, after: Card) -> Write:
    return CARD.put(after, when=absent() if before is None else present() & where(reviews=before.reviews))


def quiz_writes(
    quiz: str, reviews: Sequence[tuple[Card | None, Card]], most: int
) -> tuple[list[Write], QueueChange | None]:
    """At most `most` writes of the reviews of one quiz, and the change of the queue if it must follow them."""
    writes = [write for before, after in reviews for write in card_writes(before, after)]
    if len(writes) <= most:
        return writes, None
    places = tuple(OldPlace(after.ordinal, before.due if before else None) for before, after in reviews)
    _, card = reviews[0]
    change = QueueChange(card.user, quiz, card.list, places)
    return [*(_put(before, after) for before, after in reviews), QUEUE_CHANGE.put(change)], change


async def change_queue(table: Table, change: QueueChange) -> None:
    """Move the cards to their places. Safe to repeat, and beside further reviews of the same cards."""
    for places in chunks(change.places, _MOVED_AT_ONCE):
        await _move(table, change, places)
    await table.write(QUEUE_CHANGE.delete(QUEUE_CHANGE.item_key(change)))


async def _move(table: Table, change: QueueChange, places: Sequence[OldPlace]) -> None:
    keys = [CARD.at(user=change.user, list=change.list, ordinal=place.ordinal) for place in places]

    async def move(cards: Sequence[Card | None]) -> None:
        moves = [_place_writes(change, place, card) for place, card in zip(places, cards, strict=True)]
        await table.transact(*(write for writes in moves for write in writes))

    await optimistic(lambda: table.get_many(keys, consistent=True), move, idempotent=True)


def _place_writes(change: QueueChange, old: OldPlace, card: Card | None) -> Iterator[Write]:
    """The card as it is now stands at its place, and not at the old one."""
    key = CARD.at(user=change.user, list=change.list, ordinal=old.ordinal)
    if card is None:
        yield CARD.check(key, absent())
    else:
        yield CARD.check(key, present() & where(reviews=card.reviews))
        yield QUEUED_CARD.put(card)
    if old.due is not None and (card is None or card.due != old.due):
        yield QUEUED_CARD.delete(QUEUED_CARD.at(user=change.user, due=old.due, list=change.list, ordinal=old.ordinal))


async def review_card(
    table: Table, user: str, list_id: str, ordinal: int, review: Callable[[Card | None], Card], unit: UnitOfWork
) -> Card:
    """Review one word. `review` is made again from the current card if another review comes first."""
    key = CARD.at(user=user, list=list_id, ordinal=ordinal)

    async def write(before: Card | None) -> Card:
        after = review(before)
        try:
            await unit.transact(table, after, *card_writes(before, after))
        except ConditionFailed as failed:
            if not failed.was_written(CARD, after):
                raise
        return after

    return await optimistic(lambda: table.get(key, consistent=True), write)


async def drop_cards(table: Table, cards: Sequence[Card]) -> None:
    """Delete cards whose words are gone."""
    kinds = (QUEUED_CARD, CARD)
    await table.write_many(kind.delete(kind.item_key(card)) for card in cards for kind in kinds)
