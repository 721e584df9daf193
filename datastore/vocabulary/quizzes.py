"""Members' cards, which say when each word is due, and quizzes that the service sets.

**Cards.** A card is stored twice, in one transaction: in the queue, ordered by the time at which it is due, and under
its word, where a review finds it. So the queue is read consistently in its order, without an index, and a page costs
what it shows.

A quiz may review more cards than one transaction can move in the queue. It then stores the cards, and with them one
item that says which places are to change. That item lies before all places, so that a reader of the queue finds it in
the same call, and changes the places first. So a queue read from its start lacks no review, whenever a process was
killed. A reader who continues from a cursor sees the places as they are.

**Quizzes.** A quiz's item holds its answers, and the token only names it. Answering is one transaction: the quiz is
marked as answered, which it can be once, and the result, the active day and the cards are written with it. It fails if
the member answered another quiz since the active days were read, so the time between two quizzes can be relied on.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import ConditionFailed, DynamoError, Page, Table, Window, chunks, optimistic, optimistic_from
from datastore.dynamo.attributes import iso
from datastore.dynamo.entity import HIGHEST, Entity, Key, Partition, Slice
from datastore.dynamo.writes import Write, absent, present, where
from datastore.people.profiles import PROFILE, Profile
from datastore.refusals import Conflict, Refusal
from datastore.vocabulary.learning import ACTIVE_DAYS, QUIZ, ActiveDays, QuizResult, day_write, occurrence_of
from datastore.vocabulary.lists import LIST, WordList
from datastore.vocabulary.words import WORD, Word

# ── cards ──

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
    return await table.find_many(keys, consistent=True)


def _due(user: str, now: datetime) -> Partition[Card]:
    return QUEUED_CARD.on(user=user).between(None, f"CARD#{iso(now)}#{HIGHEST}")


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
    """Move the cards to their places. Safe to repeat, and while the same cards are reviewed again."""
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
    """Delete cards whose words are gone. Their places come last: until then a reader of the queue finds them again."""
    for kind in (CARD, QUEUED_CARD):
        await table.write_many(kind.delete(kind.item_key(card)) for card in cards)


# ── quizzes ──

_MOST_CARD_WRITES = 82
"""A transaction has at most 100 writes: the quiz, its result, the days, a receipt, and the journal with ten webhooks
take up to 15."""


class QuizUnknown(Refusal):
    code: ClassVar[str] = "TOKEN_UNKNOWN"
    explanation = "This is no quiz of yours. Start a new one."


class QuizExpired(Refusal):
    code: ClassVar[str] = "TOKEN_EXPIRED"
    explanation = "This quiz was started more than an hour ago. Start a new one."


class QuizAnswered(Refusal):
    code: ClassVar[str] = "TOKEN_SPENT"
    explanation = "This quiz was answered before. Start a new one."


@dataclass(frozen=True, slots=True)
class AskedWord:
    """A question's word and its right answer."""

    ordinal: int
    answer: str


@dataclass(frozen=True, slots=True)
class OpenQuiz:
    """A quiz that a member was asked, with the cards that the member had of its words."""

    id: str
    user: str
    list: str
    asked_at: datetime
    expires: datetime
    remove_at: datetime
    words: tuple[AskedWord, ...]
    cards: tuple[Card, ...] = ()
    answered_at: datetime | None = None


OPEN_QUIZ = Entity(OpenQuiz, Key("USER#{user}", "ASKED#{id}"), ttl="remove_at")


async def read_list_and_words(
    table: Table, user: str, list_id: str, ordinals: Sequence[int], *, consistent: bool = False
) -> tuple[WordList | None, list[Word], list[Card]]:
    """A list, those of its words that have these ordinals, and the member's cards of them; in one step."""
    words: list[Any] = [WORD.at(list=list_id, ordinal=ordinal) for ordinal in ordinals]
    cards: list[Any] = [CARD.at(user=user, list=list_id, ordinal=ordinal) for ordinal in ordinals]
    wanted = [LIST.at(list=list_id), *words]
    (word_list, *found), found_cards = await asyncio.gather(
        table.get_many(wanted, consistent=consistent), table.find_many(cards, consistent=consistent)
    )
    return word_list, [word for word in found if word is not None], found_cards


async def ask_quiz(table: Table, quiz: OpenQuiz, answer: Any, unit: UnitOfWork) -> None:
    """Store the answers of a quiz that is being asked."""
    try:
        await unit.transact(table, answer, OPEN_QUIZ.put(quiz, when=absent()))
    except ConditionFailed:
        return  # the id is new, so an earlier attempt whose answer was lost has stored it


@dataclass(frozen=True, slots=True)
class QuizSheet:
    """What decides about the answers to a quiz."""

    quiz: OpenQuiz | None
    list: WordList | None
    profile: Profile | None
    days: ActiveDays | None


async def read_quiz_sheet(table: Table, user: str, list_id: str, quiz_id: str) -> QuizSheet:
    keys: list[Any] = [
        OPEN_QUIZ.at(user=user, id=quiz_id),
        LIST.at(list=list_id),
        PROFILE.at(user=user),
        ACTIVE_DAYS.at(user=user),
    ]
    return QuizSheet(*await table.get_many(keys, consistent=True))


async def record_answers(
    table: Table,
    sheet: QuizSheet,
    result: QuizResult,
    permit: Callable[[ActiveDays | None], None],
    review: Callable[[Card | None, int], Card],
    answer: Callable[[ActiveDays], Any],
    unit: UnitOfWork,
) -> Any:
    """Store result, day and cards, once. QuizAnswered if the quiz was answered before.

    `permit` raises a refusal if the active days as they are now do not allow it. `review` gives a word's card after the
    quiz, again from the current card if it was reviewed meanwhile.
    """
    if (quiz := sheet.quiz) is None:
        raise QuizUnknown
    days, mark, noted = sheet.days, _mark_answered(quiz, unit), occurrence_of(unit, result)
    known: Sequence[Card] = quiz.cards
    if days is not None and days.last_answered is not None and days.last_answered > quiz.asked_at:
        ordinals = [word.ordinal for word in quiz.words]  # the quiz answered since may have had these words too
        known = await read_cards(table, result.user, quiz.list, ordinals)

    async def record(state: tuple[ActiveDays | None, Sequence[Card]]) -> tuple[Any, QueueChange | None]:
        days, cards = state[0], {card.ordinal: card for card in state[1]}
        permit(days)
        after, day_change = day_write(days, result)
        pairs = [(before := cards.get(word.ordinal), review(before, word.ordinal)) for word in quiz.words]
        reviewed, queue_change = quiz_writes(result.id, pairs, _MOST_CARD_WRITES)
        answered = answer(after)
        try:
            await unit.transact(table, answered, mark, QUIZ.put(result, when=absent()), day_change, *reviewed, *noted)
        except ConditionFailed as failed:
            _refuse_answered(failed, unit)
            if not (failed.doubtful and failed.at(0)):
                raise
            queue_change = None  # whoever reads the queue next makes it
        return answered, queue_change

    read = partial(_read_again, table, quiz)
    answered, queue_change = await optimistic_from((days, known), read, record, idempotent=True)
    if queue_change is not None:
        with contextlib.suppress(DynamoError, Conflict):  # the next reader of the queue repeats it
            await change_queue(table, queue_change)
    return answered


def _mark_answered(quiz: OpenQuiz, unit: UnitOfWork) -> Write:
    when = present() & absent("answered_at")
    return OPEN_QUIZ.update(OPEN_QUIZ.item_key(quiz), values={"answered_at": unit.now}, when=when)


def _refuse_answered(failed: ConditionFailed, unit: UnitOfWork) -> None:
    if failed.at(0) and not failed.doubtful:
        raise QuizAnswered
    stored = failed.stored(OPEN_QUIZ)
    if stored is not None and stored.answered_at != unit.now:
        raise QuizAnswered


async def _read_again(table: Table, quiz: OpenQuiz) -> tuple[ActiveDays | None, Sequence[Card]]:
    keys: list[Any] = [CARD.at(user=quiz.user, list=quiz.list, ordinal=word.ordinal) for word in quiz.words]
    days, *cards = await table.get_many([ACTIVE_DAYS.at(user=quiz.user), *keys], consistent=True)
    return days, [card for card in cards if card is not None]
