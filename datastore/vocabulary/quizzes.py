"""Quizzes that the service sets: a quiz's item holds its answers, and the token only names it.

Answering is one transaction: the quiz is marked as answered, which it can be once, and the result, the active day and
the cards are written with it. It fails if the member answered another quiz since the active days were read, so the time
between two quizzes can be relied on. With many cards, their places in the queue follow (see `cards`).
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from datastore.dynamo import ConditionFailed, DynamoError, optimistic_from
from datastore.dynamo.conditions import absent, present
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.people.profiles import PROFILE, Profile
from datastore.refusals import Conflict, Refusal
from datastore.vocabulary.cards import CARD, Card, QueueChange, change_queue, quiz_writes, read_cards
from datastore.vocabulary.learning import ACTIVE_DAYS, QUIZ, ActiveDays, QuizResult, day_write, occurrence_of
from datastore.vocabulary.lists import LIST, WordList
from datastore.vocabulary.words import WORD, Word

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datastore.changes.unit_of_work import UnitOfWork
    from datastore.dynamo import Table
    from datastore.dynamo.writes import Write

_MOST_CARD_WRITES = 82
"""A transaction has at most 100 writes: the quiz, its result, the days, a receipt, the journal with ten webhooks, and
the checks of tombstones take up to 18."""


class QuizUnknown(Refusal):
    code: ClassVar[str] = "TOKEN_UNKNOWN"
    explanation = "This token is not for a quiz of yours. Start a new one."


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
        table.get_many(wanted, consistent=consistent), table.get_many(cards, consistent=consistent)
    )
    return word_list, [word for word in found if word is not None], [card for card in found_cards if card is not None]


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
    quiz, word_list, profile, days = await table.get_many(keys, consistent=True)
    return QuizSheet(quiz, word_list, profile, days)


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
