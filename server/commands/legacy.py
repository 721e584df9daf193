"""Migration of the layout that preceded this one: two tables and a file.

| source              | key                     | attributes                                              |
|---------------------|-------------------------|---------------------------------------------------------|
| subscriptions table | ListId, SubscriberEmail | CharacterSet, Status, DateSubscribed                    |
| past words table    | ListId, Date            | Word: a text, or a map with the text in Simplified      |
| words file (CSV)    |                         | ListId, Simplified, Definition and, optionally,         |
|                     |                         | ListName, Level, Traditional, Pinyin                    |

Lists and words come first, then past daily words, then subscriptions; each record is verified. The source is only read.
New ids are derived from it, so a second run, or one after a crash, finds the records of the first. A decision made in
the new table, such as a word drawn or a subscription ended, is never overwritten.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, Generic, TextIO, TypeAlias, TypeVar

from ulid import ULID

from datastore import vocabulary as vocabulary_store
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Table, batches, chunks, foreign_rows, gather_or_cancel
from datastore.people import profiles as people_store
from datastore.people.profiles import Profile
from datastore.refusals import Refusal
from datastore.vocabulary import (
    LONGEST_LIST,
    WORDS_AT_ONCE,
    CharacterSet,
    DailyWord,
    ListGrown,
    Subscription,
    Word,
    WordBatch,
    WordList,
)
from resolvers.people.profile import validate_email_address
from resolvers.requests.context import Services
from resolvers.vocabulary.address_subscriptions import record_id
from resolvers.vocabulary.texts import NewWord, parse_list_name, parse_word
from server import Failed
from server.commands.files import owner_only

T = TypeVar("T")
R = TypeVar("R")

_BATCH = 100
_WRITES_AT_ONCE = 32

_ENDED_STATUSES = frozenset({"unsubscribed", "inactive", "ended", "cancelled", "false"})
_ACTIVE_STATUSES = frozenset({"subscribed", "active", "confirmed", "true", ""})


# ── the source ──


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a row cannot be migrated."""

    reason: str


@dataclass(frozen=True, slots=True)
class OldWord:
    """A row of the words file."""

    list: str
    list_name: str | None
    level: int | None
    texts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class OldDay:
    """A row of the past words table."""

    list: str
    date: date
    simplified: str


@dataclass(frozen=True, slots=True)
class OldSubscription:
    """A row of the subscriptions table."""

    list: str
    email: str
    character_set: CharacterSet
    active: bool
    since: datetime


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A row of the source, as the report names it."""

    kind: str
    list: str
    key: str


@dataclass(frozen=True, slots=True)
class LegacySource:
    """The two tables and the file."""

    subscriptions: Table
    past_words: Table
    words: Path

    def read_words(self) -> Iterator[tuple[SourceRow, OldWord | Rejection]]:
        for number, texts in _read_csv(self.words):
            row = SourceRow("word", texts.get("listid", ""), f"line {number}: {texts.get('simplified', '')}")
            yield row, _old_word(texts)

    async def read_days(self) -> AsyncIterator[tuple[SourceRow, OldDay | Rejection]]:
        async for item in foreign_rows(self.past_words):
            row = SourceRow("past word", str(item.get("ListId", "")), str(item.get("Date", "")))
            yield row, _old_day(item)

    async def read_subscriptions(self) -> AsyncIterator[tuple[SourceRow, OldSubscription | Rejection]]:
        async for item in foreign_rows(self.subscriptions):
            row = SourceRow("subscription", str(item.get("ListId", "")), str(item.get("SubscriberEmail", "")))
            yield row, _old_subscription(item)


def _read_csv(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            names = {name: (name or "").replace(" ", "").lower() for name in reader.fieldnames or ()}
            if missing := {"listid", "simplified", "definition"} - set(names.values()):
                columns = ", ".join(sorted(missing))
                raise Failed(f"{path} has no column {columns}; see `ringside migrate legacy --help`.")
            for row in reader:
                yield (
                    reader.line_num,
                    {names[name]: (text or "").strip() for name, text in row.items() if name in names},
                )
    except (UnicodeDecodeError, csv.Error) as error:
        raise Failed(f"{path} cannot be read as CSV in UTF-8: {error}.") from None


def _old_word(texts: Mapping[str, str]) -> OldWord | Rejection:
    if not texts["listid"]:
        return Rejection("it does not name a list")
    level = texts.get("level") or texts["listid"]
    valid = level.isascii() and level.isdecimal() and len(level) <= 3 and int(level) <= 100  # noqa: PLR2004
    return OldWord(texts["listid"], texts.get("listname") or None, int(level) if valid else None, texts)


def _old_day(item: Mapping[str, Any]) -> OldDay | Rejection:
    word = item.get("Word", item.get("Simplified"))
    simplified = word.get("Simplified") if isinstance(word, dict) else word
    if not simplified:
        return Rejection("it does not name a word")
    try:
        day = date.fromisoformat(str(item.get("Date", ""))[:10])
    except ValueError:
        return Rejection("its date is not yyyy-mm-dd")
    return OldDay(str(item.get("ListId", "")), day, str(simplified).strip())


def _old_subscription(item: Mapping[str, Any]) -> OldSubscription | Rejection:
    try:
        email = validate_email_address(str(item.get("SubscriberEmail", "")).strip())
        characters = CharacterSet(str(item.get("CharacterSet") or "SIMPLIFIED").upper())
    except Refusal as refused:
        return Rejection(refused.message)
    except ValueError:
        return Rejection(f"there is no character set {item.get('CharacterSet')!r}")
    status = str(item.get("Status", "")).lower()
    if status not in _ENDED_STATUSES | _ACTIVE_STATUSES:
        return Rejection(f"its status {item.get('Status')!r} is unknown")
    since = _parse_moment(str(item.get("DateSubscribed", "")))
    if since is None:
        return Rejection("DateSubscribed is not a date")
    return OldSubscription(str(item.get("ListId", "")), email, characters, status not in _ENDED_STATUSES, since)


def _parse_moment(text: str) -> datetime | None:
    try:
        if len(text) == len("2020-01-01"):
            return datetime.combine(date.fromisoformat(text), time(), UTC)
        moment = datetime.fromisoformat(text)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # in UTC it is outside the years 1 to 9999
        return None
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


# ── the migration ──

_NOT_STORED = Rejection("it is not stored where it was written")


Content: TypeAlias = tuple[str, str | None, str | None, str]
"""Simplified, traditional, pinyin and definition; two words with the same content are the same word."""


@dataclass(slots=True)
class _MappedWord:
    """A row of the words file; `ordinal` is the word's place in the new list."""

    source: str
    content: Content
    ordinal: int | None = None


@dataclass(slots=True)
class _MappedList:
    """An old list with the id, name and level of the list that it becomes."""

    new: str
    name: str
    level: int | None
    words: list[_MappedWord] = field(default_factory=list)
    by_text: dict[str, _MappedWord] = field(default_factory=dict)
    """The first word that is written like this."""

    def add(self, word: _MappedWord) -> None:
        self.words.append(word)
        self.by_text.setdefault(word.content[0], word)


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
    write: Callable[[R], Coroutine[Any, Any, None]]
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
        self._once = UnitOfWork("migration", None, "", services.clock())
        self._lists: dict[str, _MappedList] = {}
        self._members: dict[str, list[str]] = {}
        """The members that have an address, by that in lower case."""
        self.summary = MigrationSummary()

    async def run(self) -> MigrationSummary:
        with _open_report(self._report_path) as report:
            self._report = csv.writer(report)
            self._report.writerow(["kind", "list", "key", "reason"])
            self._read_words()
            for old in sorted(self._lists):
                await self._migrate_list(old)
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
                word = _new_word(old)
                name = parse_list_name(old.list_name or old.list, ("ListName",))
            except Refusal as refused:
                self._reject(row, Rejection(refused.message))
                continue
            new = self._options.lists.get(old.list) or list_id(old.list)
            mapped = self._lists.setdefault(old.list, _MappedList(new, name, old.level))
            mapped.add(_MappedWord(row.key, word.content))
            if position % _BATCH == 0:
                self._progress("reading words", position)

    async def _migrate_list(self, old: str) -> None:
        """A list, then the words it lacks, in the order of the file."""
        mapped = self._lists[old]
        word_list = await self._ensure_list(mapped)
        if word_list.deleted_at is not None:
            for word in mapped.words:
                self._reject(SourceRow("word", old, word.source), Rejection("the list was deleted here"))
            del self._lists[old]  # so that nothing else is migrated into it
            return
        ordinals = await self._ordinals(word_list)
        missing = self._place_words(mapped, word_list, ordinals)
        for some in chunks(missing, WORDS_AT_ONCE):
            await self._add_words(word_list, some)
        if not self._options.dry_run:
            if missing:
                extended = await vocabulary_store.read_list(self._table, mapped.new, consistent=True)
                ordinals = await self._ordinals(extended or word_list)
            self._verify_words(old, mapped, ordinals)
        self._progress(f"words of {mapped.name}", self.summary.rows["word"])

    async def _ensure_list(self, mapped: _MappedList) -> WordList:
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

    def _place_words(self, mapped: _MappedList, word_list: WordList, ordinals: Mapping[Content, int]) -> list[Word]:
        """The words that the list lacks. Every mapped word gets the ordinal that it has or will have."""
        placed = dict(ordinals)
        missing: list[Word] = []
        for word in mapped.words:
            if word.content in placed:
                self.summary.add(self.summary.existing, "word")
            else:
                placed[word.content] = word_list.next_ordinal + len(missing)
                simplified, traditional, pinyin, definition = word.content
                missing.append(Word(word_list.list, placed[word.content], simplified, definition, traditional, pinyin))
            word.ordinal = placed[word.content]
        return missing

    async def _add_words(self, word_list: WordList, words: Sequence[Word]) -> None:
        """Add missing words at the ordinals that they were given."""
        self.summary.add(self.summary.written, "word", len(words))
        if self._options.dry_run:
            return
        batch = WordBatch(self._services.ids.next(self._services.clock()), words, LONGEST_LIST, words[0].ordinal)
        try:
            await vocabulary_store.add_words(self._table, word_list.list, batch, self._once)
        except ListGrown:
            raise Failed(f"Somebody else has added words to {word_list.name} meanwhile. Run this again.") from None

    def _verify_words(self, old: str, mapped: _MappedList, ordinals: Mapping[Content, int]) -> None:
        for word in mapped.words:
            if ordinals.get(word.content) == word.ordinal:
                self.summary.add(self.summary.verified, "word")
            else:
                self._reject(SourceRow("word", old, word.source), _NOT_STORED)

    # ── rows in batches ──

    async def _migrate_rows(
        self,
        rows: AsyncIterator[tuple[SourceRow, T | Rejection]],
        kind: str,
        migrate: Callable[[list[tuple[SourceRow, T]]], Awaitable[None]],
    ) -> None:
        """All rows of a kind, a hundred at a time."""

        async def accepted() -> AsyncIterator[tuple[SourceRow, T]]:
            async for row, old in rows:
                self.summary.add(self.summary.rows, kind)
                if isinstance(old, Rejection):
                    self._reject(row, old)
                else:
                    yield row, old

        async for batch in batches(accepted(), _BATCH):
            await migrate(batch)
            self._progress(f"{kind}s", self.summary.rows[kind])

    async def _store_records(self, kind: str, wanted: Sequence[tuple[SourceRow, R]], store: _Store[R]) -> None:
        """Write the missing records, then read all of them again and compare."""
        records = [record for _, record in wanted]
        stored = await store.read(records)
        missing = [record for record, existing in zip(records, stored, strict=True) if existing is None]
        self.summary.add(self.summary.written, kind, len(missing))
        self.summary.add(self.summary.existing, kind, len(wanted) - len(missing))
        if not self._options.dry_run:
            await gather_or_cancel((store.write(record) for record in missing), _WRITES_AT_ONCE)
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
            return None if same else f"the new table has another word for this day: {existing.word.term}"

        store = _Store(
            read=lambda days: vocabulary_store.read_same_daily_words(self._table, days),
            write=lambda day: vocabulary_store.import_daily_word(self._table, day),
            difference=difference,
        )
        await self._store_records("past word", wanted, store)

    def _find_day(self, old: OldDay) -> DailyWord | Rejection:
        mapped = self._lists.get(old.list)
        found = mapped.by_text.get(old.simplified) if mapped is not None else None
        if mapped is None or found is None:
            return Rejection("the words file has no such list, or no such word in it")
        if old.date > self._services.clock().astimezone(UTC).date():
            return Rejection("this day has not begun")
        simplified, traditional, pinyin, definition = found.content
        word = Word(mapped.new, found.ordinal or 0, simplified, definition, traditional, pinyin)
        return vocabulary_store.imported_daily_word(word, old.date)

    # ── subscriptions ──

    async def _map_members(self) -> None:
        """Map addresses to members: as the operator's file says, otherwise as the profiles do."""
        users = {email.lower(): user for email, user in self._options.users.items()}
        for email, user in users.items():
            self._add_member(email, user)
        async for _, profile in people_store.listed_profiles(self._table):
            if profile.email and profile.email.lower() not in users:
                self._add_member(profile.email, profile.user)

    def _add_member(self, email: str, user: str) -> None:
        # Not by casefold(), which makes one address of weiß@… and weiss@….
        members = self._members.setdefault(email.lower(), [])
        if user not in members:
            members.append(user)

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
        mapped = self._lists.get(old.list)
        if mapped is None:
            return Rejection("the words file has no such list")
        user = self._find_member(old, new_members)
        if isinstance(user, Rejection):
            return user
        return Subscription(user, mapped.new, old.character_set, old.active, old.since)

    def _find_member(self, old: OldSubscription, new_members: dict[str, Profile]) -> str | Rejection:
        """The member with an address; a new one is added to `new_members`."""
        members = self._members.get(old.email.lower(), [])
        if len(members) > 1:
            return Rejection("several members have this email address; name the right one in the users file")
        if members:
            return members[0]
        if not self._options.create_members:
            return Rejection("no member has this email address")
        user = record_id(self._services.seal, old.email)
        new_members[user] = Profile(user, f"Reader {user[2:8]}", joined_at=old.since, email=old.email)
        self._add_member(old.email, user)
        return user

    async def _create_members(self, profiles: Mapping[str, Profile]) -> None:
        self.summary.add(self.summary.written, "member", len(profiles))
        if not self._options.dry_run:
            writes = (people_store.create_profile(self._table, profile, self._once) for profile in profiles.values())
            await gather_or_cancel(writes, _WRITES_AT_ONCE)


def _open_report(path: Path) -> TextIO:
    try:
        return open(path, "w", encoding="utf-8", newline="", opener=owner_only)
    except OSError as error:
        raise Failed(f"{path} cannot be written: {error.strerror}. Choose another file with --report.") from None


def _subscription_difference(wanted: Subscription, existing: Subscription) -> str | None:
    # The member's own later decision, to end it or to start it again, prevails.
    later = existing.since > wanted.since or (wanted.active and not existing.active)
    return None if later or existing == wanted else "the new table has this subscription with another start"


def _new_word(old: OldWord) -> Word:
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
