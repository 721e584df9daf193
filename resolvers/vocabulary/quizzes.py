"""Quizzes that the service sets and grades: one function per field.

Starting and answering take two dependent calls each: one reads all it needs, the other writes. To read a list with
random words in one call, it chooses among as many as the list had when this process last read it; at first it asks
about the list's first ones. If too few of the random words can be asked about, it looks through the list, or a part of
a very long one.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from itertools import accumulate
from math import inf
from random import Random, SystemRandom
from typing import Final, TypeAlias

import orjson

from datastore.dynamo import key_text
from datastore.refusals import InvalidInput, NotFound, RateLimited
from datastore.values.folding import MOST_MARKS, in_form, is_stream_safe
from datastore.values.ids import CLOCK_SKEW
from datastore.values.seal import Forged
from datastore.vocabulary import quizzes
from datastore.vocabulary.learning import ActiveDays, QuizResult
from datastore.vocabulary.quizzes import AskedWord, Card, OpenQuiz, QuizAnswered, QuizExpired, QuizSheet, QuizUnknown
from datastore.vocabulary.words import Word, find_words
from resolvers.loading import batched
from resolvers.requests.context import AnyId, Context
from resolvers.vocabulary.cache import VocabularyCache
from resolvers.vocabulary.learning import member_today
from resolvers.vocabulary.lists import ListId
from resolvers.vocabulary.quiz_leaderboard import QuizLeaderboards
from resolvers.vocabulary.schedules import Grade, Streak, compute_streak, reviewed
from resolvers.vocabulary.visibility import ShownQuizResult, ShownWord, load_own_words, show_own_result

# ── questions ──

CHOICES = 4
MOST_BYTES = 300_000
"""Of a quiz's texts: the receipt for an idempotency key holds them all, as JSON in an item of 400 KB at most."""


class QuizKind(Enum):
    """What is asked about a word."""

    MEANING = "MEANING"
    READING = "READING"
    CHARACTERS = "CHARACTERS"


@dataclass(frozen=True, slots=True)
class QuizQuestion:
    """A question as it is asked; its answer is kept elsewhere."""

    number: int
    prompt: str
    choices: tuple[str, ...]


def prompt_and_answer(word: Word, kind: QuizKind) -> tuple[str, str] | None:
    """What is asked about a word and what is right; None for a word that cannot be asked about."""
    if kind is QuizKind.MEANING:
        return word.term, word.definition
    if kind is QuizKind.READING:
        return (word.term, word.reading) if word.reading else None
    return (word.definition, word.term) if word.chinese else None


def compared(text: str) -> str:
    """The form in which a text is compared with others."""
    return in_form("NFD", in_form("NFD", " ".join(text.split())).casefold())


def ask(
    words: Sequence[Word], size: int, kind: QuizKind, random: Random, fold: Callable[[str], str]
) -> list[tuple[Word, QuizQuestion]]:
    """Up to `size` questions about different words, each with two choices at least.

    `fold` is `compared`, cached by the caller: texts may be long, and a quiz may be tried with more and more words.
    """
    usable = [(word, pair) for word in words if (pair := prompt_and_answer(word, kind)) is not None]
    answers = {fold(answer): answer for _, (_, answer) in usable}
    right: defaultdict[str, set[str]] = defaultdict(set)
    for _, (prompt, answer) in usable:
        right[fold(prompt)].add(fold(answer))
    asked: list[tuple[Word, QuizQuestion]] = []
    for word, (prompt, answer) in random.sample(usable, len(usable)):
        if len(asked) == size:
            break
        of_prompt = right[fold(prompt)]
        if len(of_prompt) < len(answers):
            wrong = [text for folded, text in answers.items() if folded not in of_prompt]
            choices = [answer, *random.sample(wrong, min(len(wrong), CHOICES - 1))]
            random.shuffle(choices)
            asked.append((word, QuizQuestion(len(asked) + 1, prompt, tuple(choices))))
    return asked


def count_fitting(questions: Iterable[QuizQuestion]) -> int:
    """How many of these questions, from the first one on, a quiz may have."""
    sizes = accumulate(len(orjson.dumps([question.prompt, *question.choices])) for question in questions)
    return sum(size <= MOST_BYTES for size in sizes)


# ── quizzes ──

SHORTEST, LONGEST = 3, 50
START_RATE: Final = "60/minute"
"""Quizzes that one member may start in each process: starting one reads and compares up to thousands of words."""
LIFETIME = timedelta(hours=1)
_KEPT: Final = timedelta(days=1)
"""How long a quiz is kept after that, so that late answers are told that they are late."""
_SPARE_WORDS = 12
_MOST_WORDS = 300
"""Among which a quiz looks for wrong answers."""
_LONGEST_ANSWER = 1000
_PURPOSE = "quiz"
_random: Random = SystemRandom()


@dataclass(frozen=True, slots=True)
class QuizView:
    """A quiz as it is asked."""

    token: str
    list: str
    questions: tuple[QuizQuestion, ...]
    earliest_answer_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class GradedAnswer:
    """An answer, and whether it is right."""

    number: int
    right: bool
    list: str
    ordinal: int
    given: str
    """Empty for a question that was skipped."""


@dataclass(frozen=True, slots=True)
class QuizGraded:
    """A quiz's result."""

    result: ShownQuizResult
    answers: tuple[GradedAnswer, ...]
    streak: Streak


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What a quiz may ask about, and the member's cards of it; `complete` if the list has no other such words."""

    words: Sequence[Word]
    cards: Sequence[Card]
    list_has_words: bool
    complete: bool = True


_Asked: TypeAlias = list[tuple[Word, QuizQuestion]]
_Attempt: TypeAlias = Callable[[Sequence[Word]], _Asked]
"""Makes the questions of a quiz of these words, as many as possible."""


# ── asking ──


async def start_quiz(
    ctx: Context,
    /,
    *,
    list: ListId,  # noqa: A002 - the argument's public name
    size: int = 10,
    kind: QuizKind = QuizKind.MEANING,
) -> QuizView:
    member = ctx.member()
    if not SHORTEST <= size <= LONGEST:
        raise InvalidInput(f"A quiz has {SHORTEST} to {LONGEST} questions.", path=("input", "size"))
    ctx.services.rates.hit(START_RATE, "quizzes:start", member.id)
    fold = cache(compared)

    def attempt(words: Sequence[Word]) -> _Asked:
        return ask(words, size, kind, _random, fold)

    found = await _load_words(ctx, list, size, kind, attempt)
    asked = attempt(found.words)
    if len(asked) < size:
        _refuse(len(asked), kind, found)
    if (fitting := count_fitting(question for _, question in asked)) < size:
        raise InvalidInput(
            f"The texts of {size} questions about this list are too long for one quiz. Ask for {fitting} or fewer.",
            path=("input", "size"),
        )
    now, quiz_id = ctx.now(), ctx.new_id()
    expires = now + LIFETIME
    ordinals = {word.ordinal for word, _ in asked}
    quiz = OpenQuiz(
        id=quiz_id,
        user=member.id,
        list=list,
        asked_at=now,
        expires=expires,
        remove_at=expires + _KEPT,
        words=tuple(AskedWord(word.ordinal, _answer(word, kind)) for word, _ in asked),
        cards=tuple(card for card in found.cards if card.ordinal in ordinals),
    )
    token = ctx.services.seal.sign_text(_PURPOSE, orjson.dumps([member.id, list, quiz_id]))
    view = QuizView(token, list, tuple(question for _, question in asked), now + _least_time(ctx, size), expires)
    await quizzes.ask_quiz(ctx.table, quiz, view, ctx.unit)
    return view


async def _load_words(ctx: Context, list_id: str, size: int, kind: QuizKind, attempt: _Attempt) -> _Loaded:
    """Random words of a list, enough for a quiz if it has as many, and the member's cards of them."""
    lists, user = ctx.services.get(VocabularyCache).lists, ctx.viewer.id
    last, wanted = lists.known(list_id, inf), size + _SPARE_WORDS
    lists.prefetch(key_text(list_id))  # for the answer, and for the next quiz
    known = last.next_ordinal if last else 0
    ordinals = range(wanted) if known <= wanted else _random.sample(range(known), wanted)
    for consistent in (False, True):  # a plain read may lack what was written a moment ago
        word_list, words, cards = await quizzes.read_list_and_words(
            ctx.table, user, list_id, ordinals, consistent=consistent
        )
        words = [word for word in words if word_list is not None and word.ordinal < word_list.next_ordinal]
        if len(attempt(words)) == size:
            break
    if word_list is None or not word_list.visible_to(ctx.viewer.member_id):
        raise NotFound("There is no such list.", path=("input", "list"))
    if len(attempt(words)) == size or word_list.next_ordinal <= len(ordinals):
        return _Loaded(words, cards, list_has_words=bool(words))
    # Many words were removed or cannot be asked about: look at more of them, from a random one on.
    found = await find_words(
        ctx.table,
        word_list,
        _random.randrange(word_list.next_ordinal),
        lambda word: prompt_and_answer(word, kind) is not None,
        lambda some: len(some) >= _MOST_WORDS or len(attempt(some)) == size,
    )
    words = [*found.words][:_MOST_WORDS]
    complete = found.complete and len(found.words) <= _MOST_WORDS
    cards = await quizzes.read_cards(ctx.table, user, list_id, [word.ordinal for word in words])
    return _Loaded(words, cards, list_has_words=word_list.word_count > 0, complete=complete)


def _refuse(possible: int, kind: QuizKind, found: _Loaded) -> None:
    if not found.complete:
        advice = f"Ask for {possible}, or choose another kind." if possible >= SHORTEST else "Choose another kind."
        raise InvalidInput(
            f"Only a part of this list was searched, and it has words for {possible} questions of this kind. {advice}",
            path=("input", "size"),
        )
    lacking = {QuizKind.READING: "readings", QuizKind.CHARACTERS: "Chinese characters"}.get(kind)
    if possible < SHORTEST and lacking and found.list_has_words:
        raise InvalidInput(f"This list has too few words with {lacking}. Choose another kind.", path=("input", "kind"))
    if possible < SHORTEST:
        raise InvalidInput(f"This list has too few different words for a quiz of {SHORTEST}.", path=("input", "list"))
    raise InvalidInput(
        f"This list has words for {possible} questions of this kind. Ask for no more.", path=("input", "size")
    )


def _answer(word: Word, kind: QuizKind) -> str:
    pair = prompt_and_answer(word, kind)
    return pair[1] if pair is not None else ""


# ── answering ──


async def answer_quiz(ctx: Context, /, *, token: AnyId, answers: Sequence[str | None]) -> QuizGraded:
    """Grade a quiz of the viewer, once, within an hour and not faster than a person can read."""
    member = ctx.member()
    texts = [answer or "" for answer in answers]
    if len(texts) > LONGEST or any(len(text) > _LONGEST_ANSWER for text in texts):
        raise InvalidInput(
            f"A quiz has at most {LONGEST} answers of {_LONGEST_ANSWER} characters.", path=("input", "answers")
        )
    if not all(map(is_stream_safe, texts)):
        raise InvalidInput(
            f"An answer has no more than {MOST_MARKS} accents or other marks in a row.", path=("input", "answers")
        )
    list_id, quiz_id = _parse_token(ctx, token)
    ctx.count_change("quizzes")
    async with ctx.services.turn("quizzes", member.id):  # they write the same days and cards
        sheet = await quizzes.read_quiz_sheet(ctx.table, member.id, list_id, quiz_id)
        return await _grade(ctx, sheet, texts)


async def _grade(ctx: Context, sheet: QuizSheet, texts: Sequence[str]) -> QuizGraded:
    quiz = _validated(ctx, sheet, texts)
    graded = tuple(
        GradedAnswer(number, compared(given) == compared(word.answer), quiz.list, word.ordinal, given)
        for number, (word, given) in enumerate(zip(quiz.words, texts, strict=True), 1)
    )
    today, now = member_today(ctx, sheet.profile), ctx.now()
    result = QuizResult(
        user=quiz.user,
        date=today,
        id=quiz.id,
        list=quiz.list,
        correct=sum(answer.right for answer in graded),
        total=len(graded),
        submitted_at=now,
        private=sheet.list is not None and not sheet.list.public,
        asked_here=True,
    )
    grades = {answer.ordinal: Grade.GOOD if answer.right else Grade.AGAIN for answer in graded}

    def review(before: Card | None, ordinal: int) -> Card:
        return reviewed(before, quiz.user, (quiz.list, ordinal), grades[ordinal], now)

    for word in quiz.words:  # the answer shows them
        ctx.services.get(VocabularyCache).words.prefetch((quiz.list, word.ordinal))
    answer: QuizGraded = await quizzes.record_answers(
        ctx.table,
        sheet,
        result,
        lambda days: _refuse_early(ctx, quiz, days, now),
        review,
        lambda days: QuizGraded(show_own_result(result), graded, compute_streak(days.dates(), today)),
        ctx.unit,
    )
    ctx.services.get(QuizLeaderboards).add_written(result)
    ctx.services.activity["quizzes"] += 1
    return answer


def _parse_token(ctx: Context, token: str) -> tuple[str, str]:
    """List and id of the quiz that a token names, which must be the viewer's."""
    try:
        user, list_id, quiz_id = orjson.loads(ctx.services.seal.open_text(_PURPOSE, token))
    except (Forged, ValueError):
        raise QuizUnknown(path=("input", "token")) from None
    if user != ctx.viewer.id:
        raise QuizUnknown(path=("input", "token"))
    return list_id, quiz_id


def _validated(ctx: Context, sheet: QuizSheet, answers: Sequence[str]) -> OpenQuiz:
    """The quiz, if these answers may be graded now."""
    quiz, now = sheet.quiz, ctx.now()
    if quiz is None or now >= quiz.expires:
        raise QuizExpired(path=("input", "token"))
    if quiz.answered_at is not None:
        raise QuizAnswered(path=("input", "token"))
    if sheet.list is None or not sheet.list.visible_to(ctx.viewer.id):
        raise NotFound("The list of this quiz was deleted.", path=("input", "token"))
    if len(answers) != len(quiz.words):
        raise InvalidInput(
            f"The quiz has {len(quiz.words)} questions, but there are {len(answers)} answers.",
            path=("input", "answers"),
        )
    return quiz


def _refuse_early(ctx: Context, quiz: OpenQuiz, days: ActiveDays | None, now: datetime) -> None:
    """The time counts from the quiz that the member answered before, too: several at once take as long as in turn.

    Unless that seems to be yet to come: then the clock was ahead and was corrected.
    """
    before = days.last_answered if days else None
    begun = max(quiz.asked_at, before) if before and before <= now + CLOCK_SKEW else quiz.asked_at
    least = _least_time(ctx, len(quiz.words))
    if least and (left := (begun + least - now).total_seconds()) > 0:  # without a least time, clocks may differ
        raise RateLimited(
            f"{len(quiz.words)} questions take at least {least.total_seconds():g} seconds to answer, counted from when "
            "you started this quiz or answered another.",
            retry_after=left,
        )


def _least_time(ctx: Context, questions: int) -> timedelta:
    return timedelta(seconds=ctx.services.policy.quiz_seconds_per_question * questions)


# ── what is shown of them ──


@batched
async def answered_words(ctx: Context, answers: Sequence[GradedAnswer], /) -> list[ShownWord]:
    return await load_own_words(ctx, [(answer.list, answer.ordinal) for answer in answers])
