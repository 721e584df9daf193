"""Quiz results, practice sentences, and the days on which members were active.

A record's day is the member's own when it is written. It is part of the key and never computed again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, TypeVar

from datastore.changes.occurrences import Kind
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import ConditionFailed, Page, PageRequest, Table, optimistic_from
from datastore.dynamo.entity import HIGHEST, Entity, Key, Partition
from datastore.dynamo.writes import Condition, Update, Write, absent, present, where
from datastore.people.profiles import PROFILE, SHARDS, OfMember, Profile
from datastore.refusals import NotFound
from datastore.vocabulary.subscriptions import SUBSCRIPTION, Subscription

# ── records ──

R = TypeVar("R", "QuizResult", "Sentence")

_MAX_ITEMS = 1000
"""Items of one profile screen. The connections of a member with more items are read one by one."""


@dataclass(frozen=True, slots=True)
class _OfDay(OfMember):
    """What a member has done on a day."""

    user: str
    date: date
    id: str

    @property
    def node_key(self) -> str:
        return f"{self.date}.{self.id}.{self.user}"


@dataclass(frozen=True, slots=True)
class QuizResult(_OfDay):
    """One quiz. `private` is whether its list is private, which never changes."""

    list: str
    correct: int
    total: int
    submitted_at: datetime
    private: bool = False
    asked_here: bool | None = None

    @property
    def proven(self) -> bool:
        """Whether the service asked and graded it, about a list that is not the member's own."""
        return bool(self.asked_here) and not self.private


@dataclass(frozen=True, slots=True)
class Sentence(_OfDay):
    """One practice sentence, with the word it practises if it names one."""

    text: str
    created_at: datetime
    list: str | None = None
    ordinal: int | None = None


_DAY = Key("DAY#{date}#{shard:02d}", "USER#{user}#{id}")
QUIZ = Entity(QuizResult, Key("USER#{user}", "DAY#{date}#QUIZ#{id}"), gsi1=_DAY)
SENTENCE = Entity(Sentence, Key("USER#{user}", "DAY#{date}#SENTENCE#{id}"), gsi1=_DAY)


@dataclass(frozen=True, slots=True)
class ActiveDays:
    """The days on which a member was active: bit n of `bits` is the day `since` + n. Ten years take 457 bytes."""

    user: str
    since: date
    bits: bytes
    version: int = 0
    last_answered: datetime | None = None
    """When the member last answered a quiz that the service asked."""

    def __contains__(self, day: date) -> bool:
        index = (day - self.since).days
        return index >= 0 and bool(int.from_bytes(self.bits, "big") >> index & 1)

    def with_day(self, day: date) -> ActiveDays:
        """The same days and one more."""
        since, bits = self.since, int.from_bytes(self.bits, "big")
        if day < since:
            bits <<= (since - day).days
            since = day
        return self._with_bits(since, bits | 1 << (day - since).days)

    def without_day(self, day: date) -> ActiveDays:
        """The same days and one less."""
        return self._with_bits(self.since, int.from_bytes(self.bits, "big") & ~(1 << (day - self.since).days))

    def _with_bits(self, since: date, bits: int) -> ActiveDays:
        stored = bits.to_bytes((bits.bit_length() + 7) // 8, "big")
        return replace(self, since=since, bits=stored, version=self.version + 1)

    def dates(self) -> list[date]:
        """Every active day, in order."""
        bits = int.from_bytes(self.bits, "big")
        return [self.since + timedelta(days=index) for index in range(bits.bit_length()) if bits >> index & 1]


ACTIVE_DAYS = Entity(ActiveDays, Key("USER#{user}", "DAYS"))


@dataclass(frozen=True, slots=True)
class DateRange:
    """The dates from `since` to `until`, both included; None is no bound."""

    since: date | None = None
    until: date | None = None

    def __str__(self) -> str:
        return f"{self.since or ''}/{self.until or ''}"

    def __contains__(self, day: date) -> bool:
        return (self.since is None or day >= self.since) and (self.until is None or day <= self.until)

    def narrow(self, partition: Partition[R]) -> Partition[R]:
        low = f"DAY#{self.since or ''}"
        return partition.between(low, f"DAY#{self.until}#{HIGHEST}" if self.until else f"DAY#{HIGHEST}")


# ── writing ──


async def read_profile_and_days(table: Table, user: str) -> tuple[Profile | None, ActiveDays | None]:
    """The member's profile, which has the time zone, and the active days so far."""
    keys: list[Any] = [PROFILE.at(user=user), ACTIVE_DAYS.at(user=user)]
    profile, days = await table.get_many(keys, consistent=True)
    return profile, days


async def record_result(
    table: Table,
    result: QuizResult | Sentence,
    days: ActiveDays | None,
    answer: Callable[[ActiveDays], Any],
    unit: UnitOfWork,
) -> Any:
    """Store a result and its day among the member's active ones. Return what `answer` makes of the active days."""
    entity: Entity[Any] = QUIZ if isinstance(result, QuizResult) else SENTENCE
    put_result = entity.put(result, when=absent())

    async def record(days: ActiveDays | None) -> Any:
        after, day_change = day_write(days, result)
        answered = answer(after)
        try:
            await unit.transact(table, answered, put_result, day_change, *occurrence_of(unit, result))
        except ConditionFailed as failed:
            if not failed.at(0):  # the id is new, so an earlier attempt whose answer was lost has written it
                raise
        return answered

    key = ACTIVE_DAYS.at(user=result.user)
    return await optimistic_from(days, lambda: table.get(key, consistent=True), record, idempotent=True)


def occurrence_of(unit: UnitOfWork, result: QuizResult | Sentence, kind: Kind | None = None) -> tuple[Write, ...]:
    """The journal's writes for a result: by default that it was recorded or written."""
    if isinstance(result, QuizResult):
        return unit.occurred(kind or Kind.QUIZ_RECORDED, f"QuizResult:{result.node_key}")
    return unit.occurred(kind or Kind.SENTENCE_WRITTEN, f"Sentence:{result.node_key}")


def day_write(days: ActiveDays | None, result: QuizResult | Sentence) -> tuple[ActiveDays, Write]:
    """The active days with that of a result, and the write that makes them so, which fails if they have changed.

    They are written too where the day is active already: else its last result could be taken back at the same time, and
    the day with it. The answers to a quiz also fail if another one was answered meanwhile.
    """
    after = (days or ActiveDays(result.user, result.date, b"")).with_day(result.date)
    if isinstance(result, QuizResult) and result.asked_here:
        after = replace(after, last_answered=result.submitted_at)
    return after, ACTIVE_DAYS.put(after, when=absent() if days is None else as_read(days))


def as_read(days: ActiveDays) -> Condition:
    """The condition that nobody has written the days since. The version alone does not tell: a new item restarts it."""
    return where(version=days.version, since=days.since, bits=days.bits)


async def amend_sentence(table: Table, sentence: Sentence, values: Mapping[str, Any], unit: UnitOfWork) -> Sentence:
    """Set these values of a sentence, and return it with them. NotFound if it does not exist.

    The others are not written: they may have been changed since the sentence was read.
    """
    changed = replace(sentence, **values)
    update: Update = SENTENCE.update(SENTENCE.item_key(sentence), values=values, when=present())
    try:
        await unit.transact(table, changed, update, *occurrence_of(unit, changed, Kind.SENTENCE_CHANGED))
    except ConditionFailed:
        raise NotFound from None
    return changed


async def delete_sentence(table: Table, sentence: Sentence, answer: str, unit: UnitOfWork) -> None:
    """Delete a sentence; its day stays an active one. A sentence that is gone already stays gone."""
    occurrence = occurrence_of(unit, sentence, Kind.SENTENCE_REMOVED)
    await unit.transact(table, answer, SENTENCE.delete(SENTENCE.item_key(sentence)), *occurrence)


# ── reading ──


async def read_quiz_result(table: Table, user: str, day: date, result: str) -> QuizResult | None:
    return await table.get(QUIZ.at(user=user, date=day, id=result), consistent=True)


async def read_sentence(table: Table, user: str, day: date, sentence_id: str) -> Sentence | None:
    return await table.get(SENTENCE.at(user=user, date=day, id=sentence_id), consistent=True)


async def read_active_days(table: Table, user: str) -> ActiveDays | None:
    return await table.get(ACTIVE_DAYS.at(user=user), consistent=True)


@dataclass(frozen=True, slots=True)
class ProfileScreen:
    """What several fields show of a member, with the quizzes and sentences since a day."""

    subscriptions: tuple[Subscription, ...]
    quizzes: tuple[QuizResult, ...]
    sentences: tuple[Sentence, ...]
    days: ActiveDays | None


async def read_profile_screen(table: Table, user: str, since: date) -> ProfileScreen | None:
    """Subscriptions, active days, and quizzes and sentences since a day, in one query.

    It reads the member's item collection from `DAY#<since>` to the last subscription. The profile, sessions, marks of
    helpful comments, a month of mail records and a week of receipts lie in between. None if that is more than one
    screen may read, or than one answer of the engine holds: a receipt may have 300 KB.
    """
    collection = PROFILE.collection(user=user).between(f"DAY#{since}", f"SUBSCRIPTION#{HIGHEST}")
    kinds = (QUIZ, SENTENCE, ACTIVE_DAYS, SUBSCRIPTION)
    answer = await table.query(collection, *kinds, limit=_MAX_ITEMS, consistent=True, answers=1)
    if answer.last is not None:
        return None
    records = answer.records
    return ProfileScreen(
        subscriptions=tuple(record for record in records if isinstance(record, Subscription)),
        quizzes=tuple(record for record in records if isinstance(record, QuizResult)),
        sentences=tuple(record for record in records if isinstance(record, Sentence)),
        days=next((record for record in records if isinstance(record, ActiveDays)), None),
    )


async def read_quiz_page(
    table: Table, user: str, dates: DateRange, request: PageRequest, screen: ProfileScreen | None, *, all_lists: bool
) -> Page[QuizResult]:
    """A member's results, newest day first; without those of private lists unless `all_lists`.

    A screen is one that contains the page.
    """
    if screen is not None:
        return _cut(QUIZ, [quiz for quiz in screen.quizzes if all_lists or not quiz.private], dates, request)
    only = present("correct") if all_lists else present("correct") & where(private=False)
    return await _read_page(table, dates.narrow(QUIZ.on(user=user).where(only)), request)


async def read_sentence_page(
    table: Table, user: str, dates: DateRange, request: PageRequest, screen: ProfileScreen | None
) -> Page[Sentence]:
    """A member's sentences, newest day first. A screen is one that contains the page."""
    if screen is not None:
        return _cut(SENTENCE, screen.sentences, dates, request)
    return await _read_page(table, dates.narrow(SENTENCE.on(user=user).where(present("text"))), request)


def _cut(entity: Entity[R], oldest_first: Sequence[R], dates: DateRange, request: PageRequest) -> Page[R]:
    newest_first = [(entity.sort_key(one), one) for one in reversed(oldest_first) if one.date in dates]
    return Page.cut(newest_first[: request.wanted], request)


async def _read_page(table: Table, partition: Partition[R], request: PageRequest) -> Page[R]:
    """A page of one kind of record. Two kinds lie under the same days, so twice as many are read."""
    return await table.page([partition.newest_first()], request, limit=2 * request.wanted, consistent=True)


async def read_results_of_day(table: Table, day: date, add: Callable[[QuizResult | Sentence], None]) -> None:
    """Add every member's results and sentences of a day, in any order."""

    async def read_shard(shard: int) -> None:
        of_day = QUIZ.collection("gsi1", date=day, shard=shard)
        async for record in table.iterate(of_day, QUIZ, SENTENCE, at_once=1000):
            add(record)

    await asyncio.gather(*(read_shard(shard) for shard in range(SHARDS)))


async def read_results(
    table: Table, results: Sequence[QuizResult | Sentence]
) -> Sequence[QuizResult | Sentence | None]:
    """These results and sentences as they are stored now; None for those that are not. Consistent."""
    keys = [QUIZ.item_key(one) if isinstance(one, QuizResult) else SENTENCE.item_key(one) for one in results]
    return await table.get_many(keys, consistent=True)
