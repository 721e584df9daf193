"""Migrating the old layout: lists and words, then past daily words, then subscriptions; each record is verified.

New ids are derived from the source, so a second run, or one after a crash, finds the records of the first. A decision
made in the new table, such as a word drawn or a subscription ended, is never overwritten.
"""

from __future__ import annotations

import asyncio
import csv
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any, Generic, TextIO, TypeVar

from ulid import ULID

from datastore import people as people_store
from datastore import vocabulary as vocabulary_store
from datastore.people import Profile
from datastore.receipts import Once
from datastore.refusals import Refusal
from datastore.vocabulary import LONGEST_LIST, DailyWord, ListGrown, Subscription, Word, WordBatch, WordList
from resolvers.context import Services
from resolvers.vocabulary.address_subscriptions import record_id
from resolvers.vocabulary.texts import NewWord, parse_list_name, parse_word
from server.commands.files import owner_only
from server.failures import Failed
from server.legacy.mappings import Content, MappedList, open_mappings
from server.legacy.source import LegacySource, OldDay, OldSubscription, OldWord, Rejection, SourceRow

T = TypeVar("T")
R = TypeVar("R")

_BATCH = 100
_WORDS_AT_ONCE = 90
_WRITES_AT_ONCE = 32
_NOT_STORED = Rejection("it is not stored where it was written")


@dataclass(slots=True)
class MigrationSummary:
    """Numbers for each kind of record: list, word, past word, member and subscription."""

    rows: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    existing: dict[str, int] = field(default_factory=dict)
    verified: dict[str, int] = field(default_factory=dict)
    rejected: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def add(numbers: dict[str, int], kind: str, number: int = 1) -> None:
        numbers[kind] = numbers.get(kind, 0) + number

    @property
    def complete(self) -> bool:
        return not any(self.rejected.values())

    def lines(self) -> list[str]:
        """A line for each kind, to be printed."""
        kinds = dict.fromkeys([*self.rows, *self.written])
        return [
            f"{kind}s: {self.rows.get(kind, 0):,} rows, {self.written.get(kind, 0):,} written, "
            f"{self.existing.get(kind, 0):,} existed already, {self.verified.get(kind, 0):,} verified, "
            f"{self.rejected.get(kind, 0):,} rejected"
            for kind in kinds
        ]


@dataclass(frozen=True, slots=True)
class MigrationOptions:
    """`users` maps addresses to ids of members, `lists` maps old lists to ids of existing ones."""

    users: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False
    create_members: bool = True


@dataclass(frozen=True, slots=True)
class _Store(Generic[R]):
    """Reads and writes records of one kind; `difference` says why an existing record is not the wanted one."""

    read: Callable[[Sequence[R]], Awaitable[Sequence[R | None]]]
    write: Callable[[R], Awaitable[None]]
    difference: Callable[[R, R], str | None]


class Migration:
    """One run. Rows that cannot be migrated are written to the report."""

    def __init__(
        self,
        services: Services,
        source: LegacySource,
        report: Path,
        options: MigrationOptions = MigrationOptions(),
        progress: Callable[[str, int], None] = lambda _stage, _rows: None,
    ) -> None:
        self._services = services
        self._table = services.table
        self._source = source
        self._report_path = report
        self._options = options
        self._progress = progress
        self._once = Once("migration", None, "", services.clock())
        self.summary = MigrationSummary()

    async def run(self) -> MigrationSummary:
        with open_mappings() as self._mappings, _open_report(self._report_path) as report:
            self._report = csv.writer(report)
            self._report.writerow(["kind", "list", "key", "reason"])
            self._read_words()
            for mapped in self._mappings.lists():
                await self._migrate_list(mapped)
            await self._migrate_rows(self._source.read_days(), "past word", self._migrate_days)
            await self._map_members()
            await self._migrate_rows(self._source.read_subscriptions(), "subscription", self._migrate_subscriptions)
        return self.summary

    def _reject(self, row: SourceRow, rejection: Rejection) -> None:
        self.summary.add(self.summary.rejected, row.kind)
        self._report.writerow([row.kind, row.list, row.key, rejection.reason])

    # ── lists and words ──

    def _read_words(self) -> None:
        """Map the rows of the words file, which may come in any order."""
        for position, (row, old) in enumerate(self._source.read_words()):
            self.summary.add(self.summary.rows, "word")
            if isinstance(old, Rejection):
                self._reject(row, old)
                continue
            try:
                word = _parse_word(old)
                name = parse_list_name(old.list_name or old.list, ("ListName",))
            except Refusal as refused:
                self._reject(row, Rejection(refused.message))
                continue
            new = self._options.lists.get(old.list) or list_id(old.list)
            self._mappings.add_list(MappedList(old.list, new, name, old.level))
            self._mappings.add_word(old.list, position, word.content, row.key)
            if position % _BATCH == 0:
                self._progress("reading words", position)

    async def _migrate_list(self, mapped: MappedList) -> None:
        """A list, then the words it lacks, in the order of the file."""
        word_list = await self._ensure_list(mapped)
        if word_list.deleted_at is not None:
            for word in self._mappings.words(mapped.old):
                self._reject(SourceRow("word", mapped.old, word.source), Rejection("the list was deleted here"))
            self._mappings.drop_list(mapped.old)
            return
        ordinals = await self._ordinals(word_list)
        missing = self._place_words(mapped.old, word_list, ordinals)
        for start in range(0, len(missing), _WORDS_AT_ONCE):
            await self._add_words(word_list, start, missing[start : start + _WORDS_AT_ONCE])
        if not self._options.dry_run:
            if missing:
                extended = await vocabulary_store.read_list(self._table, mapped.new, consistent=True)
                ordinals = await self._ordinals(extended or word_list)
            self._verify_words(mapped.old, ordinals)
        self._progress(f"words of {mapped.name}", self.summary.rows["word"])

    async def _ensure_list(self, mapped: MappedList) -> WordList:
        existing = await vocabulary_store.read_list(self._table, mapped.new, consistent=True)
        if existing is not None:
            self.summary.add(self.summary.existing, "list")
            return existing
        now = self._services.clock()
        new = WordList(mapped.new, mapped.name, public=True, created_at=now, level=mapped.level)
        self.summary.add(self.summary.written, "list")
        if not self._options.dry_run:
            await vocabulary_store.create_list(self._table, new, self._once)
        return new

    async def _ordinals(self, word_list: WordList) -> dict[Content, int]:
        """The ordinal of each of a list's words, also of those that were removed here."""
        words = vocabulary_store.all_words(self._table, word_list, consistent=True)
        removed = vocabulary_store.removed_words(self._table, word_list.list)
        return {word.content: word.ordinal for group in (words, removed) async for word in group}

    def _place_words(self, old: str, word_list: WordList, ordinals: Mapping[Content, int]) -> list[Word]:
        """The words that the list lacks. Every mapped word gets the ordinal that it has or will have."""
        placed = dict(ordinals)
        missing: list[Word] = []
        for mapped in self._mappings.words(old):
            if mapped.content in placed:
                self.summary.add(self.summary.existing, "word")
            else:
                placed[mapped.content] = word_list.next_ordinal + len(missing)
                simplified, traditional, pinyin, definition = mapped.content
                missing.append(Word(word_list.list, 0, simplified, definition, traditional, pinyin))
            self._mappings.place_word(old, mapped.position, placed[mapped.content])
        return missing

    async def _add_words(self, word_list: WordList, start: int, words: Sequence[Word]) -> None:
        """Add missing words, of which `start` are added already, at the ordinals that they were given."""
        self.summary.add(self.summary.written, "word", len(words))
        if self._options.dry_run:
            return
        ids, now, ordinal = self._services.ids, self._services.clock(), word_list.next_ordinal + start
        batch = WordBatch(ids.next(now), words, LONGEST_LIST, ordinal)
        try:
            await vocabulary_store.add_words(self._table, word_list.list, batch, self._once)
        except ListGrown:
            raise Failed(f"Somebody else has added words to {word_list.name} meanwhile. Run this again.") from None

    def _verify_words(self, old: str, ordinals: Mapping[Content, int]) -> None:
        for mapped in self._mappings.words(old):
            if ordinals.get(mapped.content) == mapped.ordinal:
                self.summary.add(self.summary.verified, "word")
            else:
                self._reject(SourceRow("word", old, f"{mapped.source} ({mapped.position})"), _NOT_STORED)

    # ── rows in batches ──

    async def _migrate_rows(
        self,
        rows: AsyncIterator[tuple[SourceRow, T | Rejection]],
        kind: str,
        migrate: Callable[[list[tuple[SourceRow, T]]], Awaitable[None]],
    ) -> None:
        """All rows of a kind, a hundred at a time."""
        batch: list[tuple[SourceRow, T]] = []
        async for row, old in rows:
            self.summary.add(self.summary.rows, kind)
            if isinstance(old, Rejection):
                self._reject(row, old)
                continue
            batch.append((row, old))
            if len(batch) == _BATCH:
                await migrate(batch)
                batch = []
                self._progress(f"{kind}s", self.summary.rows[kind])
        await migrate(batch)

    async def _store_records(self, kind: str, wanted: Sequence[tuple[SourceRow, R]], store: _Store[R]) -> None:
        """Write the missing records, then read all of them again and compare."""
        records = [record for _, record in wanted]
        stored = await store.read(records)
        missing = [record for record, existing in zip(records, stored, strict=True) if existing is None]
        self.summary.add(self.summary.written, kind, len(missing))
        self.summary.add(self.summary.existing, kind, len(wanted) - len(missing))
        if not self._options.dry_run:
            await _at_most(_WRITES_AT_ONCE, (store.write(record) for record in missing))
            stored = await store.read(records)
        for (row, record), existing in zip(wanted, stored, strict=True):
            if existing is None:
                if not self._options.dry_run:
                    self._reject(row, _NOT_STORED)
            elif (reason := store.difference(record, existing)) is not None:
                self._reject(row, Rejection(reason))
            elif not self._options.dry_run:
                self.summary.add(self.summary.verified, kind)

    # ── past daily words ──

    async def _migrate_days(self, batch: list[tuple[SourceRow, OldDay]]) -> None:
        wanted: list[tuple[SourceRow, DailyWord]] = []
        for row, old in batch:
            day = self._find_day(old)
            if isinstance(day, Rejection):
                self._reject(row, day)
            else:
                wanted.append((row, day))

        def difference(wanted: DailyWord, existing: DailyWord) -> str | None:
            same = wanted.word.content == existing.word.content
            return None if same else f"the new table has another word for this day: {existing.word.simplified}"

        store = _Store(
            read=lambda days: vocabulary_store.read_same_daily_words(self._table, days),
            write=lambda day: vocabulary_store.import_daily_word(self._table, day),
            difference=difference,
        )
        await self._store_records("past word", wanted, store)

    def _find_day(self, old: OldDay) -> DailyWord | Rejection:
        word = self._mappings.find_word(old.list, old.simplified)
        if word is None:
            return Rejection("the words file has no such list, or no such word in it")
        if old.date > self._services.clock().astimezone(UTC).date():
            return Rejection("this day has not begun")
        return vocabulary_store.imported_daily_word(word, old.date)

    # ── subscriptions ──

    async def _map_members(self) -> None:
        """Map addresses to members: as the operator's file says, otherwise as the profiles do."""
        users = {email.lower(): user for email, user in self._options.users.items()}
        for email, user in users.items():
            self._mappings.add_member(email, user)
        async for _, profile in people_store.listed_profiles(self._table):
            if profile.email and profile.email.lower() not in users:
                self._mappings.add_member(profile.email, profile.user)

    async def _migrate_subscriptions(self, batch: list[tuple[SourceRow, OldSubscription]]) -> None:
        wanted: dict[tuple[str, str, str], tuple[SourceRow, Subscription]] = {}
        new_members: dict[str, Profile] = {}
        for row, old in batch:
            subscription = self._find_subscription(old, new_members)
            if isinstance(subscription, Rejection):
                self._reject(row, subscription)
                continue
            key = (subscription.user, subscription.list, subscription.character_set.value)
            if key in wanted:
                reason = "the same member has this subscription twice, under two spellings of an address"
                self._reject(row, Rejection(reason))
                continue
            wanted[key] = (row, subscription)
        await self._create_members(new_members)
        store = _Store(
            read=lambda subscriptions: vocabulary_store.read_same_subscriptions(self._table, subscriptions),
            write=lambda subscription: vocabulary_store.import_subscription(self._table, subscription, self._once),
            difference=_subscription_difference,
        )
        await self._store_records("subscription", list(wanted.values()), store)

    def _find_subscription(self, old: OldSubscription, new_members: dict[str, Profile]) -> Subscription | Rejection:
        new_list = self._mappings.new_list(old.list)
        if new_list is None:
            return Rejection("the words file has no such list")
        user = self._find_member(old, new_members)
        if isinstance(user, Rejection):
            return user
        return Subscription(user, new_list, old.character_set, old.active, old.since)

    def _find_member(self, old: OldSubscription, new_members: dict[str, Profile]) -> str | Rejection:
        """The member with an address; a new one is added to `new_members`."""
        members = self._mappings.members(old.email)
        if len(members) > 1:
            return Rejection("several members have this email address; name the right one in the users file")
        if members:
            return members[0]
        if not self._options.create_members:
            return Rejection("no member has this email address")
        user = record_id(self._services.seal, old.email)
        new_members[user] = Profile(user, f"Reader {user[2:8]}", joined_at=old.since, email=old.email)
        self._mappings.add_member(old.email, user)
        return user

    async def _create_members(self, profiles: Mapping[str, Profile]) -> None:
        self.summary.add(self.summary.written, "member", len(profiles))
        if not self._options.dry_run:
            writes = (people_store.create_profile(self._table, profile, self._once) for profile in profiles.values())
            await _at_most(_WRITES_AT_ONCE, writes)


def _open_report(path: Path) -> TextIO:
    try:
        return open(path, "w", encoding="utf-8", newline="", opener=owner_only)
    except OSError as error:
        raise Failed(f"{path} cannot be written: {error.strerror}. Choose another file with --report.") from None


def _subscription_difference(wanted: Subscription, existing: Subscription) -> str | None:
    # The member's own later decision, to end it or to start it again, prevails.
    later = existing.since > wanted.since or (wanted.active and not existing.active)
    return None if later or existing == wanted else "the new table has this subscription with another start"


async def _at_most(number: int, works: Iterable[Awaitable[Any]]) -> None:
    """Run them all, so many at a time."""
    semaphore = asyncio.Semaphore(number)

    async def run(work: Awaitable[Any]) -> None:
        async with semaphore:
            await work

    await asyncio.gather(*map(run, works))


def _parse_word(old: OldWord) -> Word:
    """InvalidInput if the texts are not a word."""
    texts = old.texts
    new = NewWord(
        simplified=texts["simplified"],
        traditional=texts.get("traditional"),
        pinyin=texts.get("pinyin"),
        definition=texts["definition"],
    )
    return parse_word(list_id(old.list), new, ("row",))


def list_id(old: str) -> str:
    """The new id of an old list, the same in every run."""
    return str(ULID(hashlib.sha256(f"legacy list\x00{old}".encode()).digest()[:16]))
