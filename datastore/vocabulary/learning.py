"""What members do with their words: quiz results, practice sentences, and the days on which they did.

The day is the member's own when it is written, part of the key, and never computed again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from datastore.dynamo import ConditionFailed, Page
from datastore.dynamo.conditions import absent, present, where
from datastore.dynamo.entity import Entity, Partition
from datastore.dynamo.keys import Key
from datastore.people import PROFILE, SHARDS, Profile, shard_of
from datastore.refusals import Conflict, NotFound
from datastore.vocabulary.subscriptions import SUBSCRIPTION, Subscription

if TYPE_CHECKING:
    from collections.abc import Callable

    from datastore.dynamo import PageRequest, Table, Window
    from datastore.dynamo.writes import Update
    from datastore.receipts import Once

R = TypeVar("R", "QuizResult", "Sentence")

_ATTEMPTS = 20
COLLECTION = 1000
"""Items of one profile screen; a member with more in a week is read connection by connection."""


@dataclass(frozen=True, slots=True)
class QuizResult:
    """One quiz. `private` says that its list is its owner's alone; that never changes."""

    user: str
    date: date
    id: str
    list: str
    correct: int
    total: int
    submitted_at: datetime
    private: bool = False

    @property
    def node_key(self) -> str:
        return f"{self.date}.{self.id}.{self.user}"

    @property
    def shard(self) -> int:
        return shard_of(self.user)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One practice sentence, with the word it practises if it names one."""

    user: str
    date: date
    id: str
    text: str
    created_at: datetime
    list: str | None = None
    ordinal: int | None = None

    @property
    def node_key(self) -> str:
        return f"{self.date}.{self.id}.{self.user}"

    @property
    def shard(self) -> int:
        return shard_of(self.user)


_DAY = Key("DAY#{date}#{shard:02d}", "USER#{user}#{id}")
QUIZ = Entity(QuizResult, Key("USER#{user}", "DAY#{date}#QUIZ#{id}"), gsi1=_DAY)
SENTENCE = Entity(Sentence, Key("USER#{user}", "DAY#{date}#SENTENCE#{id}"), gsi1=_DAY)


@dataclass(frozen=True, slots=True)
class Days:
    """The days on which a member was active: bit n of `bits` is the day `since` + n. Ten years are 457 bytes."""

    user: str
    since: date
    bits: bytes
    version: int = 0

    def __contains__(self, day: date) -> bool:
        place = (day - self.since).days
        return place >= 0 and bool(int.from_bytes(self.bits, "big") >> place & 1)

    def with_day(self, day: date) -> Days:
        """The same days and one more."""
        since, number = self.since, int.from_bytes(self.bits, "big")
        if day < since:
            number <<= (since - day).days
            since = day
        number |= 1 << (day - since).days
        return Days(self.user, since, number.to_bytes((number.bit_length() + 7) // 8, "big"), self.version + 1)

    def all(self) -> list[date]:
        """Every active day, in order."""
        number = int.from_bytes(self.bits, "big")
        return [self.since + timedelta(days=place) for place in range(number.bit_length()) if number >> place & 1]


DAYS = Entity(Days, Key("USER#{user}", "DAYS"))


@dataclass(frozen=True, slots=True)
class Span:
    """The days from one to another, both included; None is no bound."""

    since: date | None = None
    until: date | None = None

    def __str__(self) -> str:
        return f"{self.since or ''}/{self.until or ''}"

    def __contains__(self, day: date) -> bool:
        return (self.since is None or day >= self.since) and (self.until is None or day <= self.until)

    def of(self, partition: Partition[R]) -> Partition[R]:
        low = f"DAY#{self.since}" if self.since else "DAY#"
        return partition.between(low, f"DAY#{self.until or ''}#\U0010ffff" if self.until else "DAY#\U0010ffff")


# ── writing ──


async def profile_and_days(table: Table, user: str) -> tuple[Profile | None, Days | None]:
    """What a new result depends on: the member's zone and the days so far."""
    keys: list[Any] = [PROFILE.at(user=user), DAYS.at(user=user)]
    profile, days = await table.get_many(keys, consistent=True)
    return profile, days


async def record(
    table: Table, result: QuizResult | Sentence, days: Days | None, answer: Callable[[Days], Any], once: Once
) -> Any:
    """A result, and its day among the member's active ones. Answers with what `answer` makes of the days after it."""
    entity: Entity[Any] = QUIZ if isinstance(result, QuizResult) else SENTENCE
    written = entity.put(result, when=absent())
    for _ in range(_ATTEMPTS):
        # A day once active stays so: only a member's first result of a day touches the calendar.
        known = days is not None and result.date in days
        after = days if known and days is not None else _begun(result, days)
        answered = answer(after)
        try:
            await once.transact(table, answered, written, *(() if known else (_marked(days, after),)))
        except ConditionFailed as failed:
            if failed.at(0):  # the id is new: an attempt of ours whose answer was lost has written it
                return answered
            days = await table.get(DAYS.at(user=result.user), consistent=True)
            continue
        return answered
    raise Conflict(retry_after=1.0)


def _begun(result: QuizResult | Sentence, days: Days | None) -> Days:
    return (days or Days(result.user, result.date, b"")).with_day(result.date)


def _marked(before: Days | None, after: Days) -> Any:
    return DAYS.put(after, when=absent() if before is None else where(version=before.version))


async def amend(table: Table, changed: Sentence, once: Once) -> None:
    """Another text, and maybe another word, on the same item."""
    values = {"text": changed.text, "list": changed.list, "ordinal": changed.ordinal}
    update: Update = SENTENCE.change(SENTENCE.place_of(changed), values=values, when=present())
    try:
        await once.transact(table, changed, update)
    except ConditionFailed:
        raise NotFound from None


# ── reading ──

_RESULTS = present("correct")
_PUBLIC_RESULTS = _RESULTS & where(private=False)
_SENTENCES = present("text")


async def quiz_result(table: Table, user: str, day: date, result: str) -> QuizResult | None:
    return await table.get(QUIZ.at(user=user, date=day, id=result))


async def sentence(table: Table, user: str, day: date, sentence_id: str) -> Sentence | None:
    return await table.get(SENTENCE.at(user=user, date=day, id=sentence_id), consistent=True)


async def days_of(table: Table, user: str) -> Days | None:
    return await table.get(DAYS.at(user=user))


def quiz_request(user: str, span: Span, window: Window, *, all_lists: bool) -> PageRequest:
    return window.open(f"quizzes {user} {span} {all_lists}")


async def quiz_page(table: Table, user: str, span: Span, request: PageRequest, *, all_lists: bool) -> Page[QuizResult]:
    """A member's results, newest day first; without those of private lists unless `all_lists`."""
    only = _RESULTS if all_lists else _PUBLIC_RESULTS
    partition: Partition[QuizResult] = QUIZ.on(None, user=user)
    return await _page(table, span.of(partition.where(only)), request)


def sentence_request(user: str, span: Span, window: Window) -> PageRequest:
    return window.open(f"sentences {user} {span}")


async def sentence_page(table: Table, user: str, span: Span, request: PageRequest) -> Page[Sentence]:
    """A member's sentences, newest day first."""
    partition: Partition[Sentence] = SENTENCE.on(None, user=user)
    return await _page(table, span.of(partition.where(_SENTENCES)), request)


async def _page(table: Table, partition: Partition[R], request: PageRequest) -> Page[R]:
    """A page of one of two kinds that share the days, so twice as much is read."""
    return await table.page([partition.newest_first()], request, limit=2 * request.wanted, consistent=True)


@dataclass(frozen=True, slots=True)
class Screen:
    """A member's profile screen. Days, quizzes and sentences reach back to the day that was asked for."""

    profile: Profile | None
    subscriptions: tuple[Subscription, ...]
    quizzes: tuple[QuizResult, ...]
    sentences: tuple[Sentence, ...]
    days: Days | None

    def quiz_page(self, span: Span, request: PageRequest, *, all_lists: bool) -> Page[QuizResult]:
        """What `quiz_page` reads, of the days that are here."""
        shown = (one for one in reversed(self.quizzes) if one.date in span and (all_lists or not one.private))
        return Page.cut([(QUIZ.sort_of(one), one) for one in islice(shown, request.wanted)], request)

    def sentence_page(self, span: Span, request: PageRequest) -> Page[Sentence]:
        """What `sentence_page` reads, of the days that are here."""
        shown = (one for one in reversed(self.sentences) if one.date in span)
        return Page.cut([(SENTENCE.sort_of(one), one) for one in islice(shown, request.wanted)], request)


async def screen(table: Table, user: str, since: date) -> Screen | None:
    """Profile, subscriptions, active days and what was done since a day, in one query of one item collection.

    From `DAY#<since>` to the last subscription; in between lie the profile and a month of mail marks. None when there
    is more of it than one screen holds.
    """
    span: Partition[Any] = Partition(
        PROFILE, None, PROFILE.at(user=user).pk, low=f"DAY#{since}", high="SUBSCRIPTION#\U0010ffff"
    )
    kinds = (QUIZ, SENTENCE, DAYS, PROFILE, SUBSCRIPTION)
    found = await table.query(span, *kinds, limit=COLLECTION, consistent=True)
    if found.last is not None:
        return None
    records = found.records
    return Screen(
        next((one for one in records if isinstance(one, Profile)), None),
        tuple(one for one in records if isinstance(one, Subscription)),
        tuple(one for one in records if isinstance(one, QuizResult)),
        tuple(one for one in records if isinstance(one, Sentence)),
        next((one for one in records if isinstance(one, Days)), None),
    )


async def read_day(table: Table, day: date, add: Callable[[QuizResult | Sentence], None]) -> None:
    """Adds all results and sentences of a day, in no order."""

    async def read(shard: int) -> None:
        partition: Partition[Any] = QUIZ.on("gsi1", date=day, shard=shard)
        async for record in table.iterate(partition, QUIZ, SENTENCE, at_once=1000):
            add(record)

    await asyncio.gather(*(read(shard) for shard in range(SHARDS)))
