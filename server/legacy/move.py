"""Moving the old layout in: lists and words, then their past days, then subscriptions; each is looked up afterwards.

The maps from old names to new ids are kept in a file of their own while it runs, so memory does not grow with the
source. Ids are derived from the source, so a second run, or one after a crash, finds what is there. Nothing that was
decided in the new table, a word drawn or a subscription ended, is overwritten.
"""

from __future__ import annotations

import asyncio
import csv
import hashlib
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, TypeVar

from ulid import ULID

from datastore import people, vocabulary
from datastore.people import Profile
from datastore.receipts import Once
from datastore.refusals import Refusal
from datastore.vocabulary import DAILY, LONGEST_LIST, SUBSCRIPTION, Batch, DailyWord, Subscription, Word, WordList
from resolvers.context import Services
from resolvers.vocabulary.daily_words import LONGEST_NAME, NewWord, checked
from resolvers.vocabulary.visibility import line
from server.legacy.source import Legacy, OldDay, OldSubscription, OldWord, Row, Unreadable

T = TypeVar("T")
R = TypeVar("R")

_BATCH = 100
_WORDS_AT_ONCE = 90
_WRITES_AT_ONCE = 32

_MAPS = """
CREATE TABLE lists (old TEXT PRIMARY KEY, new TEXT, name TEXT, level INTEGER);
CREATE TABLE words (old TEXT, place INTEGER, ordinal INTEGER, simplified TEXT, traditional TEXT, pinyin TEXT,
                    definition TEXT, source TEXT);
CREATE INDEX words_by_text ON words (old, simplified);
CREATE TABLE members (email TEXT, user TEXT, PRIMARY KEY (email, user));
"""


@dataclass(slots=True)
class Moved:
    """What came of each kind of row."""

    rows: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    there: dict[str, int] = field(default_factory=dict)
    verified: dict[str, int] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)

    def count(self, tally: dict[str, int], kind: str, by: int = 1) -> None:
        tally[kind] = tally.get(kind, 0) + by

    @property
    def complete(self) -> bool:
        return not any(self.left.values())

    def lines(self) -> list[str]:
        """For people: one line a kind."""
        kinds = [*dict.fromkeys([*self.rows, *self.written])]
        return [
            f"{kind}s: {self.rows.get(kind, 0):,} rows, {self.written.get(kind, 0):,} written, "
            f"{self.there.get(kind, 0):,} were there, {self.verified.get(kind, 0):,} verified, "
            f"{self.left.get(kind, 0):,} left"
            for kind in kinds
        ]


@dataclass(frozen=True, slots=True)
class Store(Generic[R]):
    """How records of a kind are written, and what is wrong with one that was there."""

    write: Callable[[R], Awaitable[None]]
    difference: Callable[[R, R], str | None]


class Migration:
    """One run. `dry` does everything but write; `strangers` says whether unknown e-mail addresses become members.

    `users` and `lists` are the operator's own maps: from an address to a member's id, from an old list to a new one's.
    """

    def __init__(
        self,
        services: Services,
        legacy: Legacy,
        report: Path,
        *,
        users: Mapping[str, str] | None = None,
        lists: Mapping[str, str] | None = None,
        dry: bool = False,
        strangers: bool = True,
        progress: Callable[[str, int], None] = lambda _stage, _rows: None,
    ) -> None:
        self._house = services
        self._legacy = legacy
        self._report_path = report
        self._users = users or {}
        self._lists = lists or {}
        self._dry = dry
        self._strangers = strangers
        self._progress = progress
        self._once = Once("migration", None, "", services.clock())
        self.moved = Moved()

    async def carry_out(self) -> Moved:
        with (
            TemporaryDirectory() as folder,
            self._report_path.open("w", encoding="utf-8", newline="") as report,
        ):
            self._maps = sqlite3.connect(Path(folder) / "maps.sqlite", isolation_level=None)
            self._maps.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + _MAPS)
            self._maps.execute("BEGIN")
            self._report = csv.writer(report)
            self._report.writerow(["kind", "list", "key", "reason"])
            try:
                self._read_words()
                for (old,) in self._maps.execute("SELECT old FROM lists ORDER BY old").fetchall():
                    await self._move_list(old)
                await self._move(self._legacy.old_days(), "past word", self._move_days)
                await self._map_members()
                await self._move(self._legacy.old_subscriptions(), "subscription", self._move_subscriptions)
            finally:
                self._maps.close()
        return self.moved

    def _leave(self, row: Row, reason: object) -> None:
        """A row that is not placed, in the report."""
        self.moved.count(self.moved.left, row.kind)
        self._report.writerow([row.kind, row.list, row.key, str(reason)])

    # ── lists and words ──

    def _read_words(self) -> None:
        """The words file into the maps: its rows may come in any order."""
        for place, (row, found) in enumerate(self._legacy.old_words()):
            self.moved.count(self.moved.rows, "word")
            if isinstance(found, Unreadable):
                self._leave(row, found)
                continue
            try:
                word = _word(found)
                name = line(found.list_name or found.list, LONGEST_NAME, "A list's name", ("ListName",))
            except Refusal as refused:
                self._leave(row, refused.message)
                continue
            self._maps.execute(
                "INSERT OR IGNORE INTO lists VALUES (?, ?, ?, ?)",
                (found.list, self._lists.get(found.list) or list_id(found.list), name, found.level),
            )
            self._maps.execute(
                "INSERT INTO words VALUES (?, ?, NULL, ?, ?, ?, ?, ?)", (found.list, place, *word.content, row.key)
            )
            if place % _BATCH == 0:
                self._progress("reading words", place)

    async def _move_list(self, old: str) -> None:
        """A list, then the words it lacks, in the order of the file."""
        new, name, level = self._maps.execute("SELECT new, name, level FROM lists WHERE old = ?", (old,)).fetchone()
        target = await vocabulary.word_list(self._house.table, new, consistent=True)
        if target is None:
            target = WordList(new, name, public=True, created_at=self._house.clock(), level=level)
            self.moved.count(self.moved.written, "list")
            if not self._dry:
                await vocabulary.create_list(self._house.table, target, self._once)
        else:
            self.moved.count(self.moved.there, "list")
        known = await self._contents(target)
        missing = self._place_words(old, target, known)
        for start in range(0, len(missing), _WORDS_AT_ONCE):
            await self._add(target.list, missing[start : start + _WORDS_AT_ONCE])
        if missing and not self._dry:
            target = await vocabulary.word_list(self._house.table, new, consistent=True) or target
            known = await self._contents(target)
        self._verify_words(old, known)
        self._progress(f"words of {name}", self.moved.rows["word"])

    async def _contents(self, target: WordList) -> dict[tuple[Any, ...], int]:
        """The ordinal of each of a list's words."""
        walked = vocabulary.words(self._house.table, target, consistent=True)
        return {word.content: word.ordinal async for word in walked}

    def _place_words(self, old: str, target: WordList, known: Mapping[tuple[Any, ...], int]) -> list[Word]:
        """The words that the list lacks; every row of the map gets the ordinal it has or will have."""
        placed = dict(known)
        missing: list[Word] = []
        rows = self._maps.execute("SELECT * FROM words WHERE old = ? ORDER BY place", (old,)).fetchall()
        for _, place, _, *content, _ in rows:
            key = tuple(content)
            if key in placed:
                self.moved.count(self.moved.there, "word")
            else:
                placed[key] = target.word_count + len(missing)
                simplified, traditional, pinyin, definition = content
                missing.append(Word(target.list, 0, simplified, definition, traditional, pinyin))
            self._maps.execute("UPDATE words SET ordinal = ? WHERE old = ? AND place = ?", (placed[key], old, place))
        return missing

    async def _add(self, new: str, words: Sequence[Word]) -> None:
        self.moved.count(self.moved.written, "word", len(words))
        if not self._dry:
            batch = Batch(self._house.ids.next(self._house.clock()), words, LONGEST_LIST)
            await vocabulary.add_words(self._house.table, new, batch, self._once)

    def _verify_words(self, old: str, known: Mapping[tuple[Any, ...], int]) -> None:
        if self._dry:
            return
        for _, place, ordinal, *content, source in self._maps.execute("SELECT * FROM words WHERE old = ?", (old,)):
            if known.get(tuple(content)) == ordinal:
                self.moved.count(self.moved.verified, "word")
            else:
                self._leave(Row("word", old, f"{source} ({place})"), "it is not where it was written")

    # ── rows in batches ──

    async def _move(
        self, rows: AsyncIterator[tuple[Row, T | Unreadable]], kind: str, place: Callable[[list[Any]], Awaitable[None]]
    ) -> None:
        """All rows of a kind, a hundred at a time."""
        batch: list[Any] = []
        async for row, found in rows:
            self.moved.count(self.moved.rows, kind)
            if isinstance(found, Unreadable):
                self._leave(row, found)
                continue
            batch.append((row, found))
            if len(batch) == _BATCH:
                await place(batch)
                batch = []
                self._progress(f"{kind}s", self.moved.rows[kind])
        await place(batch)

    async def _settle(self, kind: str, wanted: Sequence[tuple[Row, R]], keys: Sequence[Any], store: Store[R]) -> None:
        """Writes what is not there, then reads everything again and compares."""
        found = await self._house.table.get_many(keys, consistent=True)
        missing = [want for (_, want), there in zip(wanted, found, strict=True) if there is None]
        self.moved.count(self.moved.written, kind, len(missing))
        self.moved.count(self.moved.there, kind, len(wanted) - len(missing))
        if not self._dry:
            room = asyncio.Semaphore(_WRITES_AT_ONCE)
            await asyncio.gather(*(_within(room, store.write(want)) for want in missing))
            found = await self._house.table.get_many(keys, consistent=True)
        for (row, want), there in zip(wanted, found, strict=True):
            if there is None:
                if not self._dry:
                    self._leave(row, "it is not where it was written")
            elif (reason := store.difference(want, there)) is not None:
                self._leave(row, reason)
            elif not self._dry:
                self.moved.count(self.moved.verified, kind)

    # ── past days ──

    async def _move_days(self, batch: list[tuple[Row, OldDay]]) -> None:
        wanted: list[tuple[Row, DailyWord]] = []
        for row, old in batch:
            day = self._day(old)
            if isinstance(day, Unreadable):
                self._leave(row, day)
            else:
                wanted.append((row, day))

        def difference(want: DailyWord, there: DailyWord) -> str | None:
            same = want.word.content == there.word.content
            return None if same else f"the new table has another word for this day: {there.word.simplified}"

        store = Store(lambda day: vocabulary.move_in_day(self._house.table, day), difference)
        keys = [DAILY.at(list=day.list, date=day.date) for _, day in wanted]
        await self._settle("past word", wanted, keys, store)

    def _day(self, old: OldDay) -> DailyWord | Unreadable:
        found = self._maps.execute(
            "SELECT new, ordinal, simplified, traditional, pinyin, definition FROM words JOIN lists USING (old)"
            " WHERE old = ? AND simplified = ? ORDER BY place LIMIT 1",
            (old.list, old.simplified),
        ).fetchone()
        if found is None:
            return Unreadable("the words file has no such list, or no such word in it")
        if old.date > self._house.clock().astimezone(UTC).date():
            return Unreadable("this day has not begun")
        new, ordinal, simplified, traditional, pinyin, definition = found
        word = Word(new, ordinal, simplified, definition, traditional, pinyin)
        return DailyWord(new, old.date, word, vocabulary.owner_scope(None))

    # ── subscriptions ──

    async def _map_members(self) -> None:
        """Whose address is whose: as the operator's file says, else as the profiles do."""
        self._maps.executemany("INSERT OR IGNORE INTO members VALUES (?, ?)", _folded(self._users))
        async for profile in people.all_profiles(self._house.table):
            if profile.email and profile.email.casefold() not in self._users:
                row = (profile.email.casefold(), profile.user)
                self._maps.execute("INSERT OR IGNORE INTO members VALUES (?, ?)", row)

    async def _move_subscriptions(self, batch: list[tuple[Row, OldSubscription]]) -> None:
        wanted: dict[tuple[str, str, str], tuple[Row, Subscription]] = {}
        newcomers: dict[str, Profile] = {}
        for row, old in batch:
            new = self._maps.execute("SELECT new FROM lists WHERE old = ?", (old.list,)).fetchone()
            user = self._member(old, newcomers) if new else Unreadable("the words file has no such list")
            if isinstance(user, Unreadable):
                self._leave(row, user)
                continue
            moved = Subscription(user, new[0], old.character_set, old.active, old.since)
            if (moved.user, moved.list, moved.character_set.value) in wanted:
                self._leave(row, "the same member has this subscription twice, under two spellings of an address")
                continue
            wanted[moved.user, moved.list, moved.character_set.value] = (row, moved)
        await self._welcome(newcomers)

        def difference(want: Subscription, there: Subscription) -> str | None:
            # Ended, or begun anew, here since then: the member's later word counts.
            later = there.since > want.since or (want.active and not there.active)
            return None if later or there == want else "the new table has this subscription with another beginning"

        store = Store(lambda one: vocabulary.move_in(self._house.table, one, self._once), difference)
        keys = [SUBSCRIPTION.place_of(moved) for _, moved in wanted.values()]
        await self._settle("subscription", list(wanted.values()), keys, store)

    def _member(self, old: OldSubscription, newcomers: dict[str, Profile]) -> str | Unreadable:
        email = old.email.casefold()
        found = self._maps.execute("SELECT user FROM members WHERE email = ? LIMIT 2", (email,)).fetchall()
        if len(found) > 1:
            return Unreadable("several members have this e-mail address; name the right one in the file of users")
        if found:
            return str(found[0][0])
        if not self._strangers:
            return Unreadable("no member has this e-mail address")
        user = member_id(self._house, email)
        newcomers[user] = Profile(user, f"Reader {user[2:8]}", joined_at=old.since, email=old.email)
        self._maps.execute("INSERT INTO members VALUES (?, ?)", (email, user))
        return user

    async def _welcome(self, newcomers: Mapping[str, Profile]) -> None:
        self.moved.count(self.moved.written, "member", len(newcomers))
        if not self._dry:
            room = asyncio.Semaphore(_WRITES_AT_ONCE)
            await asyncio.gather(
                *(_within(room, people.welcome(self._house.table, profile)) for profile in newcomers.values())
            )


async def _within(room: asyncio.Semaphore, work: Awaitable[Any]) -> None:
    async with room:
        await work


def _folded(users: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    return ((email.casefold(), user) for email, user in users.items())


def _word(old: OldWord) -> Word:
    texts = old.texts
    new = NewWord(
        simplified=texts["simplified"],
        traditional=texts.get("traditional"),
        pinyin=texts.get("pinyin"),
        definition=texts["definition"],
    )
    return checked(list_id(old.list), new, ("row",))


def list_id(old: str) -> str:
    """The new id of an old list: the same in every run."""
    return str(ULID(hashlib.sha256(f"legacy list\x00{old}".encode()).digest()[:16]))


def member_id(services: Services, email: str) -> str:
    """The id of a member known by an address alone. Keyed, so that nobody can tell from it whose it is."""
    return "m-" + hashlib.sha256(services.seal.sign("legacy member", email.encode())).hexdigest()[:24]
