"""Quiz results, practice sentences and streaks: one function per field."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Annotated

from datastore.dynamo import Page, Window
from datastore.people.profiles import Profile
from datastore.refusals import InvalidInput, NotAllowed
from datastore.values.ids import is_ulid
from datastore.vocabulary import learning, quizzes
from datastore.vocabulary.learning import DateRange, QuizResult, Sentence
from datastore.vocabulary.quizzes import Card
from datastore.vocabulary.words import Word
from resolvers.loading import batched
from resolvers.people.visibility import ShownProfile, authors
from resolvers.requests.context import UNSET, Context, NodeOf, Role, Unset
from resolvers.values.node_ids import node_id
from resolvers.values.texts import LINE, is_line, single_spaced
from resolvers.vocabulary import visibility
from resolvers.vocabulary.cache import VocabularyCache, load_screen, profile_screens
from resolvers.vocabulary.lists import ListId, WordId, require_word
from resolvers.vocabulary.quiz_leaderboard import QuizLeaderboards
from resolvers.vocabulary.schedules import Grade, Streak, compute_streak, local_day, reviewed, time_zone

# ── cards ──


async def review_word(ctx: Context, /, *, word: WordId, grade: Grade) -> Card:
    """The word's card with the time at which it is due next; the first review makes it."""
    member = ctx.member()
    reviewing = await require_word(ctx, word)
    word_key = (reviewing.list, reviewing.ordinal)
    ctx.count_change("reviews")
    now = ctx.now()
    return await quizzes.review_card(
        ctx.table, member.id, *word_key, lambda before: reviewed(before, member.id, word_key, grade, now), ctx.unit
    )


@batched
async def card_words(ctx: Context, cards: Sequence[visibility.ShownCard], /) -> list[visibility.ShownWord]:
    """The words. Cards of deleted words or lists leave the queue, and are shown for the last time."""
    keys, cache = [(card.list, card.ordinal) for card in cards], ctx.services.get(VocabularyCache)
    words, lists = await asyncio.gather(cache.words.load_many(keys), cache.lists.load_many([key[0] for key in keys]))
    # Words of a long list are still there for some time after it was deleted.
    left = [word if visibility.show_list(ctx, each) else None for word, each in zip(words, lists, strict=True)]
    await quizzes.drop_cards(ctx.table, [card for card, word in zip(cards, left, strict=True) if word is None])
    return [visibility.show_own_word(key, word) for key, word in zip(keys, left, strict=True)]


# ── answers ──

SentenceId = Annotated[str, NodeOf("Sentence")]

LONGEST_QUIZ = 1000
LONGEST_SENTENCE = 2000
MAX_AGE = timedelta(days=31)
"""How far back a quiz or sentence may be dated: long enough for a phone that was offline on a journey."""


@dataclass(frozen=True, slots=True)
class QuizRecorded:
    """A result, and the member's streak with it."""

    result: visibility.ShownQuizResult
    streak: Streak


# ── writing ──


async def record_quiz(
    ctx: Context,
    /,
    *,
    list: ListId,  # noqa: A002 - the argument's public name
    correct: int,
    total: int,
    on: date | None = None,
) -> QuizRecorded:
    member = ctx.member()
    if not 1 <= total <= LONGEST_QUIZ:
        raise InvalidInput(f"A quiz has 1 to {LONGEST_QUIZ} questions.", path=("input", "total"))
    if not 0 <= correct <= total:
        raise InvalidInput(f"Of {total} questions, 0 to {total} can be answered correctly.", path=("input", "correct"))
    ctx.count_change("quizzes")
    word_list, (profile, days) = await asyncio.gather(
        visibility.require_input_list(ctx, list), learning.read_profile_and_days(ctx.table, member.id)
    )
    result = QuizResult(
        user=member.id,
        date=_validated_day(ctx, profile, on),
        id=ctx.new_id(),
        list=word_list.list,
        correct=correct,
        total=total,
        submitted_at=ctx.now(),
        private=not word_list.public,
    )
    today = member_today(ctx, profile)
    answer: QuizRecorded = await learning.record_result(
        ctx.table,
        result,
        days,
        lambda after: QuizRecorded(visibility.show_own_result(result), compute_streak(after.dates(), today)),
        ctx.unit,
    )
    ctx.services.get(QuizLeaderboards).add_written(result)
    ctx.services.activity["quizzes"] += 1
    return answer


async def write_sentence(
    ctx: Context,
    /,
    *,
    sentence: SentenceId | None = None,
    word: WordId | Unset | None = UNSET,
    text: str,
    on: date | None = None,
) -> Sentence:
    """A new sentence, or a change of the member's own one, which keeps its day whatever `on` says."""
    member = ctx.member()
    parsed_text = _parse_sentence(text)
    ctx.count_change("sentences")
    if sentence is not None:
        practised = await _load_practised(ctx, word)
        return await _amend(ctx, sentence, practised if word is not UNSET else UNSET, parsed_text)
    practised, (profile, days) = await asyncio.gather(
        _load_practised(ctx, word), learning.read_profile_and_days(ctx.table, member.id)
    )
    new = Sentence(
        user=member.id,
        date=_validated_day(ctx, profile, on),
        id=ctx.new_id(),
        text=parsed_text,
        created_at=ctx.now(),
        list=practised.list if practised else None,
        ordinal=practised.ordinal if practised else None,
    )
    await learning.record_result(ctx.table, new, days, lambda _: new, ctx.unit)
    ctx.services.get(QuizLeaderboards).add_written(new)
    return new


async def _amend(ctx: Context, key: str, word: Word | Unset | None, text: str) -> Sentence:
    existing = await _require_sentence(ctx, key)
    if not ctx.viewer.is_user(existing.user):
        raise NotAllowed("Only its author may change a sentence.", path=("input", "sentence"))
    values: dict[str, str | int | None] = {"text": text}
    if not isinstance(word, Unset):
        values |= {"list": word.list if word else None, "ordinal": word.ordinal if word else None}
    return await learning.amend_sentence(ctx.table, existing, values, ctx.unit)


async def delete_sentence(ctx: Context, /, *, sentence: SentenceId) -> str:
    """The id of the deleted sentence. Its day stays one on which its author was active."""
    viewer = ctx.signed_in()
    existing = await _require_sentence(ctx, sentence)
    if not viewer.is_user(existing.user) and not viewer.may(Role.MODERATOR):
        raise NotAllowed("Only its author or a moderator may delete a sentence.", path=("input", "sentence"))
    deleted_id = node_id("Sentence", sentence)
    await learning.delete_sentence(ctx.table, existing, deleted_id, ctx.unit)
    ctx.services.get(QuizLeaderboards).discard(existing)
    return deleted_id


async def _require_sentence(ctx: Context, key: str) -> Sentence:
    """The sentence that an input names."""
    return visibility.named_by_input(await sentence_node(ctx, key), "sentence")


async def _load_practised(ctx: Context, key: str | Unset | None) -> Word | None:
    return None if key is None or isinstance(key, Unset) else await require_word(ctx, key)


def _parse_sentence(text: str) -> str:
    sentence = text.strip()
    lines = single_spaced(sentence, LONGEST_SENTENCE)  # line ends and tabs may be in it
    if len(sentence) > LONGEST_SENTENCE or not is_line(lines, LONGEST_SENTENCE):
        raise InvalidInput(f"A sentence has 1 to {LONGEST_SENTENCE} characters, {LINE}.", path=("input", "text"))
    return sentence


def member_today(ctx: Context, profile: Profile | None) -> date:
    """Today by the member's time zone and the hour at which days begin."""
    zone = time_zone(profile.time_zone if profile else None)
    return local_day(ctx.now(), zone, ctx.services.policy.day_begins_at)


def _validated_day(ctx: Context, profile: Profile | None, on: date | None) -> date:
    """The day of a result, by default the member's today. It must have begun for them, at most `MAX_AGE` ago."""
    if on is None:
        return member_today(ctx, profile)
    zone = time_zone(profile.time_zone if profile else None)
    today = local_day(ctx.now(), zone)
    if not today - MAX_AGE <= on <= today:
        raise InvalidInput(
            f"The day is {today - MAX_AGE} to {today}, which is today in your time zone.", path=("input", "on")
        )
    return on


# ── a member's page ──


async def sentences(
    ctx: Context, profile: Profile, /, *, from_: date | None = None, to: date | None = None, window: Window
) -> Page[Sentence]:
    """Newest day first."""
    dates = DateRange(from_, to)
    request = window.open(f"sentences {profile.user} {dates}")
    screen = await load_screen(ctx, profile.user, dates, request)
    return await learning.read_sentence_page(ctx.table, profile.user, dates, request, screen)


async def streak(ctx: Context, profile: Profile, /) -> Streak:
    screen = await ctx.services.get(profile_screens).load((profile.user, date.max))
    days = screen.days if screen else await learning.read_active_days(ctx.table, profile.user)
    today = member_today(ctx, profile)
    return compute_streak(days.dates(), today) if days else compute_streak((), today)


@batched
async def users(
    ctx: Context, records: Sequence[visibility.ShownQuizResult | Sentence | visibility.ShownQuizStanding], /
) -> list[ShownProfile]:
    return await authors(ctx, [record.user for record in records])


async def sentence_word(ctx: Context, sentence: Sentence, /) -> visibility.ShownWord | None:
    """None without a word, and for other viewers if the word is in a private list."""
    if sentence.list is None or sentence.ordinal is None:
        return None
    return await visibility.load_word(ctx, sentence.list, sentence.ordinal)


# ── nodes ──


async def quiz_node(ctx: Context, key: str) -> visibility.ShownQuizResult | None:
    result_key = _split_key(key)
    result = await learning.read_quiz_result(ctx.table, *result_key) if result_key else None
    return visibility.show_quiz_result(ctx, result)


async def sentence_node(ctx: Context, key: str) -> Sentence | None:
    sentence_key = _split_key(key)
    return await learning.read_sentence(ctx.table, *sentence_key) if sentence_key else None


def _split_key(key: str) -> tuple[str, date, str] | None:
    """Member, day and id in the key of a result or sentence; None if it is not such a key."""
    day_text, _, rest = key.partition(".")
    result_id, _, user = rest.partition(".")
    try:
        day = date.fromisoformat(day_text)
    except ValueError:
        return None
    return (user, day, result_id) if str(day) == day_text and is_ulid(result_id) and user else None
