"""Quiz results, practice sentences, streaks and the day's leaderboard: one function per field.

Who sees what: results and sentences are public, as the leaderboard is, except those that name a private list. Such a
result is shown to its owner alone, and such a sentence to others without its word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Annotated

from datastore import vocabulary as vocabulary_store
from datastore.dynamo import Page, PageRequest, Window
from datastore.ids import is_ulid
from datastore.people import Profile
from datastore.refusals import InvalidInput, NotAllowed, NotFound
from datastore.vocabulary import QuizResult, Screen, Sentence, Span, Word, WordList
from resolvers import people
from resolvers.context import UNSET, Context, NodeOf, Unset
from resolvers.loading.batched import batched
from resolvers.vocabulary.daily_words import ListId, word_place
from resolvers.vocabulary.profile_screen import profile_screens
from resolvers.vocabulary.quiz_leaderboard import QuizDays, QuizStanding
from resolvers.vocabulary.streaks import Streak, compute_streak, local_day, time_zone
from resolvers.vocabulary.visibility import load_list, named_list, reader, visible_list, visible_word

LONGEST_QUIZ = 1000
LONGEST_SENTENCE = 2000
WRITTEN = "600/minute"
LOOK_BACK = timedelta(days=31)
"""How long ago a quiz or sentence may be dated: long enough for a phone that was offline on a journey."""
SCREEN = timedelta(days=31)
"""How far back a profile screen reaches; older days are read connection by connection."""


@dataclass(frozen=True, slots=True)
class QuizRecorded:
    """A result and what it did to the member's streak."""

    result: QuizResult
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
    found = await named_list(ctx, list)
    if not 1 <= total <= LONGEST_QUIZ:
        message = f"A quiz has 1 to {LONGEST_QUIZ} questions."
        raise InvalidInput(message, path=("input", "total"))
    if not 0 <= correct <= total:
        message = f"Of {total} questions, 0 to {total} can be answered correctly."
        raise InvalidInput(message, path=("input", "correct"))
    await ctx.services.rates.hit(WRITTEN, "quizzes", member.id)
    profile, days = await vocabulary_store.profile_and_days(ctx.table, member.id)
    result = QuizResult(
        user=member.id,
        date=_day(ctx, profile, on),
        id=ctx.new_id(),
        list=found.list,
        correct=correct,
        total=total,
        submitted_at=ctx.now(),
        private=not found.public,
    )
    today = _today(ctx, profile)
    answer: QuizRecorded = await vocabulary_store.record(
        ctx.table, result, days, lambda after: QuizRecorded(result, compute_streak(after.all(), today)), ctx.once
    )
    ctx.services.get(QuizDays).note(result)
    return answer


async def write_sentence(
    ctx: Context,
    /,
    *,
    sentence: Annotated[str, NodeOf("Sentence")] | None = None,
    word: Annotated[str, NodeOf("Word")] | Unset | None = UNSET,
    text: str,
    on: date | None = None,
) -> Sentence:
    """A new sentence, or another text for one's own. An amended one stays on its day, whatever `on` says."""
    member = ctx.member()
    practised = await _practised(ctx, word)
    written = _sentence_text(text)
    await ctx.services.rates.hit(WRITTEN, "sentences", member.id)
    if sentence is not None:
        return await _amended(ctx, sentence, practised if word is not UNSET else UNSET, written)
    profile, days = await vocabulary_store.profile_and_days(ctx.table, member.id)
    new = Sentence(
        user=member.id,
        date=_day(ctx, profile, on),
        id=ctx.new_id(),
        text=written,
        created_at=ctx.now(),
        list=practised.list if practised else None,
        ordinal=practised.ordinal if practised else None,
    )
    await vocabulary_store.record(ctx.table, new, days, lambda _: new, ctx.once)
    ctx.services.get(QuizDays).note(new)
    return new


async def _amended(ctx: Context, key: str, word: Word | Unset | None, text: str) -> Sentence:
    place = _parsed(key)
    found = await vocabulary_store.sentence(ctx.table, place[2], *place[:2]) if place else None
    if found is None:
        message = "There is no sentence with this id."
        raise NotFound(message, path=("input", "sentence"))
    if found.user != ctx.viewer.id:
        message = "Only its author may change a sentence."
        raise NotAllowed(message, path=("input", "sentence"))
    changed = replace(found, text=text)
    if not isinstance(word, Unset):
        changed = replace(
            changed, list=word.list if word is not None else None, ordinal=word.ordinal if word is not None else None
        )
    await vocabulary_store.amend(ctx.table, changed, ctx.once)
    return changed


async def _practised(ctx: Context, key: str | Unset | None) -> Word | None:
    if key is None or isinstance(key, Unset):
        return None
    place = word_place(key)
    found = await visible_word(ctx, *place) if place else None
    if found is None:
        message = "There is no word with this id."
        raise NotFound(message, path=("input", "word"))
    return found


def _sentence_text(text: str) -> str:
    written = text.strip()
    legible = all(character.isprintable() or character in "\n\t" or character.isspace() for character in written)
    if not 1 <= len(written) <= LONGEST_SENTENCE or not legible:
        message = f"A sentence has 1 to {LONGEST_SENTENCE} characters, none of them a control character."
        raise InvalidInput(message, path=("input", "text"))
    return written


def _today(ctx: Context, profile: Profile | None) -> date:
    """The member's own day."""
    zone = time_zone(profile.time_zone if profile else None)
    return local_day(ctx.now(), zone, ctx.services.policy.day_begins_at)


def _day(ctx: Context, profile: Profile | None, on: date | None) -> date:
    """The day a result is for: the member's own, or one given that has begun for them and is not long over."""
    if on is None:
        return _today(ctx, profile)
    zone = time_zone(profile.time_zone if profile else None)
    today = local_day(ctx.now(), zone)
    if not today - LOOK_BACK <= on <= today:
        message = f"`on` is {today - LOOK_BACK} to {today}, which is today in your time zone."
        raise InvalidInput(message, path=("input", "on"))
    return on


# ── a member's page ──


async def quiz_results(
    ctx: Context, profile: Profile, /, *, from_: date | None = None, to: date | None = None, window: Window
) -> Page[QuizResult]:
    """Newest day first; results of private lists are for their owner."""
    span, own = Span(from_, to), reader(ctx) == profile.user
    request = vocabulary_store.quiz_request(profile.user, span, window, all_lists=own)
    screen = await _screen(ctx, profile, span, request)
    if screen is None:
        return await vocabulary_store.quiz_page(ctx.table, profile.user, span, request, all_lists=own)
    return screen.quiz_page(span, request, all_lists=own)


async def sentences(
    ctx: Context, profile: Profile, /, *, from_: date | None = None, to: date | None = None, window: Window
) -> Page[Sentence]:
    """Newest day first."""
    span = Span(from_, to)
    request = vocabulary_store.sentence_request(profile.user, span, window)
    screen = await _screen(ctx, profile, span, request)
    if screen is None:
        return await vocabulary_store.sentence_page(ctx.table, profile.user, span, request)
    return screen.sentence_page(span, request)


async def _screen(ctx: Context, profile: Profile, span: Span, request: PageRequest) -> Screen | None:
    """The profile screen for a first page of recent days, which it reads with everything else."""
    if span.since is None or request.position is not None or span.since < ctx.now().date() - SCREEN:
        return None
    return await ctx.services.get(profile_screens).load((profile.user, span.since))


async def streak(ctx: Context, profile: Profile, /) -> Streak:
    screen = await ctx.services.get(profile_screens).load((profile.user, date.max))
    days = screen.days if screen else await vocabulary_store.days_of(ctx.table, profile.user)
    return compute_streak(days.all() if days else (), _today(ctx, profile))


@batched
async def quiz_result_users(ctx: Context, results: Sequence[QuizResult], /) -> list[Profile]:
    return await people.authors(ctx, [result.user for result in results])


async def quiz_result_list(ctx: Context, result: QuizResult, /) -> WordList:
    return await load_list(ctx, result.list)


@batched
async def sentence_users(ctx: Context, sentences: Sequence[Sentence], /) -> list[Profile]:
    return await people.authors(ctx, [one.user for one in sentences])


async def sentence_word(ctx: Context, found: Sentence, /) -> Word | None:
    """Null without a word, and to others when the word is of a private list."""
    if found.list is None or found.ordinal is None:
        return None
    return await visible_word(ctx, found.list, found.ordinal)


# ── the leaderboard ──


async def quiz_leaderboard(
    ctx: Context,
    /,
    *,
    on: date,
    list: ListId | None = None,  # noqa: A002 - the argument's public name
    window: Window,
) -> Page[QuizStanding]:
    """A day's members, best first. A list that the viewer may not see looks like one without quizzes."""
    request = window.open(f"quiz leaderboard {on} {list or ''}")
    if list is not None and await visible_list(ctx, list) is None:
        return Page.cut((), request)
    day = await ctx.services.get(QuizDays).day(on)
    return day.page(list, request)


@batched
async def quiz_standing_users(ctx: Context, standings: Sequence[QuizStanding], /) -> list[Profile]:
    return await people.authors(ctx, [standing.user for standing in standings])


# ── nodes ──


async def quiz_node(ctx: Context, key: str) -> QuizResult | None:
    place = _parsed(key)
    found = await vocabulary_store.quiz_result(ctx.table, place[2], *place[:2]) if place else None
    return found if found is not None and (not found.private or reader(ctx) == found.user) else None


async def sentence_node(ctx: Context, key: str) -> Sentence | None:
    place = _parsed(key)
    return await vocabulary_store.sentence(ctx.table, place[2], *place[:2]) if place else None


def _parsed(key: str) -> tuple[date, str, str] | None:
    """Day, id and member in the key of a result or sentence; None for what is no such key."""
    day, _, rest = key.partition(".")
    result, _, user = rest.partition(".")
    try:
        parsed = date.fromisoformat(day)
    except ValueError:
        return None
    return (parsed, result, user) if str(parsed) == day and is_ulid(result) and user else None
