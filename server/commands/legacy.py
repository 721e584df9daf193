"""Migration of the layout that preceded this one: two tables and a file.

| source              | key                     | attributes                                              |
|---------------------|-------------------------|---------------------------------------------------------|
| subscriptions table | ListId, SubscriberEmail | CharacterSet, Status, DateSubscribed                    |
| past words table    | ListId, Date            | Word: a text, or a map with the text in Simplified      |
| words file (CSV)    |                         | ListId, Simplified, Definition and, optionally,         |
|                     |                         | ListName, Level, Traditional, Pinyin                    |

Lists and words come first, then past daily words, then subscriptions; each record is verified. The source is only read.
New ids are derived from it, so a second run, or one after a crash, finds the records of the first. A decision made in
the new table, such as a word drawn or a subscription ended, is never overwritten; and who was erased lately is not
migrated again.
"""

import csv
from codecs import getwriter
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import typer

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import BadKey, Table, chunks, foreign_rows, gather_or_cancel, key_text, open_table
from datastore.people import profiles as profile_store
from datastore.people.identities import comparable_address, of_address, read_identities
from datastore.people.profiles import Profile
from datastore.refusals import Conflict, InvalidInput, Refusal
from datastore.values.folding import folded
from datastore.values.ids import derived_id
from datastore.vocabulary import daily
from datastore.vocabulary import words as word_store
from datastore.vocabulary.daily import DailyWord
from datastore.vocabulary.lists import ListNameTaken, WordList, create_list, read_list, read_public_list_id
from datastore.vocabulary.subscriptions import CharacterSet, Subscription, import_subscription, read_same_subscriptions
from resolvers.people.profile import validate_email_address
from resolvers.requests.context import Services
from resolvers.values.node_ids import parse_node_key
from resolvers.vocabulary.subscriptions import new_record
from resolvers.vocabulary.texts import HIGHEST_LEVEL, NewWord, parse_list_name, parse_word
from server import Failed
from server.commands import out
from server.commands.files import open_output, progress_bar, read_text
from server.commands.running import run_with_services
from server.settings import AWS, Settings
from server.settings.values import EMBEDDED, parse_engine

R = TypeVar("R")

_BATCH = 100
_WRITES_AT_ONCE = 32

_ENDED_STATUSES = frozenset({"unsubscribed", "inactive", "ended", "cancelled", "false"})
_ACTIVE_STATUSES = frozenset({"subscribed", "active", "confirmed", "true", ""})
_NOT_STORED = "it is not stored where it was written"
_MORE_CELLS = "it has more cells than there are columns: put a text with commas in quotation marks"


class SourceRow(NamedTuple):
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


@dataclass(slots=True)
class MigrationSummary:
    """Numbers for each kind of record: list, word, past word, member and subscription."""

    rows: Counter[str] = field(default_factory=Counter)
    written: Counter[str] = field(default_factory=Counter)
    existing: Counter[str] = field(default_factory=Counter)
    verified: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)

    @property
    def complete(self) -> bool:
        return not any(self.rejected.values())

    def lines(self) -> list[str]:
        """A line for each kind, to be printed."""
        return [
            f"{kind}s: {self.rows[kind]:,} rows, {self.written[kind]:,} written, "
            f"{self.existing[kind]:,} existed already, {self.verified[kind]:,} verified, "
            f"{self.rejected[kind]:,} rejected"
            for kind in dict.fromkeys([*self.rows, *self.written])
        ]


@dataclass(frozen=True, slots=True)
class MigrationOptions:
    """`users` maps addresses to ids of members as the API shows them, `lists` old lists to keys of existing ones."""

    users: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False
    create_members: bool = True


@dataclass(slots=True)
class _OldList:
    """The list that an old one becomes, with its words and the rows that they come from."""

    new: WordList
    words: list[tuple[SourceRow, word_store.Word]] = field(default_factory=list)
    by_term: dict[str, word_store.Word] = field(default_factory=dict)
    """The first word that is written like this."""


@dataclass(frozen=True, slots=True)
class _Kind(Generic[R]):
    """Records of one kind; `difference` says why an existing record is not the wanted one."""

    name: str
    parse: Callable[[Mapping[str, Any]], R]
    """A Refusal says why a row cannot be migrated."""
    read: Callable[[Table, Sequence[R]], Coroutine[Any, Any, Sequence[R | None]]]
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
        self._once = UnitOfWork.unkeyed(services.clock())
        self._lists: dict[str, _OldList] = {}
        self._names: set[str] = set()
        """Of the lists that this run created."""
        self._members: dict[str, list[str]] = {}
        """The members that have an address, by its spelling for comparison."""
        self._new_members: list[Profile] = []
        self._erased: set[str] = set()
        """Those of them who are not created."""
        self._subscribed: set[tuple[str, str, CharacterSet]] = set()
        self.summary = MigrationSummary()

    async def run(self) -> MigrationSummary:
        table = self._table
        days = _Kind(
            "past word",
            self._parse_day,
            daily.read_same_daily_words,
            lambda day: daily.import_daily_word(table, day),
            _day_difference,
        )
        subscriptions = _Kind(
            "subscription",
            self._parse_subscription,
            read_same_subscriptions,
            lambda subscription: import_subscription(table, subscription),
            _subscription_difference,
        )
        with open_output(self._report_path) as report:
            self._report = csv.writer(getwriter("utf-8")(report))
            self._report.writerow([*SourceRow._fields, "reason"])
            self._read_words()
            for old in sorted(self._lists):
                await self._migrate_list(old, self._lists[old])
            await self._migrate_rows(days, self._source.past_words, "Date")
            await self._map_members()
            await self._migrate_rows(subscriptions, self._source.subscriptions, "SubscriberEmail")
        return self.summary

    def _reject(self, row: SourceRow, reason: str) -> None:
        self.summary.rejected[row.kind] += 1
        self._report.writerow([_as_text(cell) for cell in (*row, reason)])

    @contextmanager
    def _counted(self, row: SourceRow) -> Iterator[None]:
        """Count a row; a refusal rejects it."""
        self.summary.rows[row.kind] += 1
        try:
            yield
        except Refusal as refused:
            self._reject(row, refused.message)

    # ── lists and words ──

    def _read_words(self) -> None:
        """Map the rows of the words file, which may come in any order."""
        for number, texts, is_whole in _read_csv(self._source.words):
            row = SourceRow("word", texts["listid"], f"line {number}: {texts['simplified']}")
            with self._counted(row):
                if not is_whole:
                    raise InvalidInput(_MORE_CELLS)
                self._map_word(row, texts)
            if number % _BATCH == 0:
                self._progress("reading words", number)

    def _map_word(self, row: SourceRow, texts: Mapping[str, str]) -> None:
        if not row.list:
            raise InvalidInput("it does not name a list")
        new = NewWord(
            simplified=texts["simplified"],
            traditional=texts.get("traditional"),
            pinyin=texts.get("pinyin"),
            definition=texts["definition"],
        )
        key = self._options.lists.get(row.list) or list_id(row.list)
        word, name = parse_word(key, new, ("row",)), parse_list_name(texts.get("listname") or row.list, ("ListName",))
        if row.list not in self._lists:
            level = _parse_level(texts.get("level") or row.list)
            word_list = WordList(key, name, public=True, created_at=self._services.clock(), level=level)
            self._lists[row.list] = _OldList(word_list)
        self._lists[row.list].words.append((row, word))
        self._lists[row.list].by_term.setdefault(word.term, word)

    async def _migrate_list(self, old: str, mapped: _OldList) -> None:
        """A list, then the words it lacks, in the order of the file."""
        try:
            word_list = await self._ensure_list(mapped.new)
        except Conflict as refused:
            for row, _ in mapped.words:
                self._reject(row, refused.message)
            del self._lists[old]  # so that nothing else is migrated into it
            return
        ordinals = await self._ordinals(word_list)
        missing = {word.content: word for _, word in mapped.words if word.content not in ordinals}
        self.summary.written["word"] += len(missing)
        self.summary.existing["word"] += len(mapped.words) - len(missing)
        if not self._options.dry_run:
            if missing:
                ordinals = await self._ordinals(await self._add_words(word_list, list(missing.values())))
            for row, word in mapped.words:
                if word.content in ordinals:
                    self.summary.verified["word"] += 1
                else:
                    self._reject(row, _NOT_STORED)
        mapped.by_term = {
            term: replace(word, ordinal=ordinals.get(word.content, 0)) for term, word in mapped.by_term.items()
        }
        self._progress(f"words of {mapped.new.name}", self.summary.rows["word"])

    async def _ensure_list(self, new: WordList) -> WordList:
        """The list, created if it does not exist; Conflict if nothing can be migrated into it."""
        existing = await read_list(self._table, new.list, consistent=True)
        if existing is not None:
            if existing.deleted_at is not None:
                raise Conflict("the list was deleted here")
            if not existing.public:
                raise Conflict("the list is private, and is sent to its owner alone: publish it first")
            self.summary.existing["list"] += 1
            return existing
        await self._take_name(new)
        self.summary.written["list"] += 1
        return new

    async def _take_name(self, new: WordList) -> None:
        """Create the list; in a dry run only note its name."""
        taken = Conflict(f"another list has the name {new.name}: choose another ListName, or name that list in --lists")
        named = await read_public_list_id(self._table, new.name)
        if folded(new.name) in self._names or named not in {None, new.list}:
            raise taken
        self._names.add(folded(new.name))
        if not self._options.dry_run:
            try:
                await create_list(self._table, new, self._once)
            except ListNameTaken:  # a moment ago
                raise taken from None

    async def _ordinals(self, word_list: WordList) -> dict[word_store.WordContent, int]:
        """The ordinal of each of a list's words, also of those that were removed here."""
        words = word_store.all_words(self._table, word_list, consistent=True)
        removed = word_store.removed_words(self._table, word_list.list)
        return {word.content: word.ordinal for group in (words, removed) async for word in group}

    async def _add_words(self, word_list: WordList, words: Sequence[word_store.Word]) -> WordList:
        for some in chunks(words, word_store.WORDS_AT_ONCE):
            batch_id = self._services.ids.next(self._services.clock())
            batch = word_store.WordBatch(batch_id, some, word_store.LONGEST_LIST, word_list.next_ordinal)
            try:
                word_list = (await word_store.add_words(self._table, word_list.list, batch, self._once)).list
            except word_store.ListGrown:
                raise Failed(f"Somebody else has added words to {word_list.name} meanwhile. Run this again.") from None
        return word_list

    # ── rows of a table ──

    async def _migrate_rows(self, kind: _Kind[R], source: Table, key: str) -> None:
        """All rows of a kind, a hundred at a time."""
        wanted: list[tuple[SourceRow, R]] = []
        async for item in foreign_rows(source):
            row = SourceRow(kind.name, str(item.get("ListId", "")), str(item.get(key, "")))
            with self._counted(row):
                wanted.append((row, kind.parse(item)))
            if len(wanted) == _BATCH:
                await self._store(kind, wanted)
                wanted = []
                self._progress(f"{kind.name}s", self.summary.rows[kind.name])
        await self._store(kind, wanted)

    async def _store(self, kind: _Kind[R], wanted: Sequence[tuple[SourceRow, R]]) -> None:
        """Write the missing records, then read all of them again and compare."""
        await self._create_members()
        wanted = [(row, record) for row, record in wanted if not self._rejects_erased(row, record)]
        records = [record for _, record in wanted]
        stored = await kind.read(self._table, records)
        missing = [record for record, existing in zip(records, stored, strict=True) if existing is None]
        self.summary.written[kind.name] += len(missing)
        self.summary.existing[kind.name] += len(wanted) - len(missing)
        if not self._options.dry_run:
            await gather_or_cancel(map(kind.write, missing), _WRITES_AT_ONCE)
            stored = await kind.read(self._table, records)
        for (row, record), existing in zip(wanted, stored, strict=True):
            reason = _NOT_STORED if existing is None else kind.difference(record, existing)
            if reason is not None and (existing is not None or not self._options.dry_run):
                self._reject(row, reason)
            elif not self._options.dry_run:
                self.summary.verified[kind.name] += 1

    # ── past daily words ──

    def _parse_day(self, item: Mapping[str, Any]) -> DailyWord:
        given = item.get("Word", item.get("Simplified"))
        term = given.get("Simplified") if isinstance(given, dict) else given
        if not term:
            raise InvalidInput("it does not name a word")
        try:
            day = date.fromisoformat(str(item.get("Date", ""))[:10])
        except ValueError:
            raise InvalidInput("its date is not yyyy-mm-dd") from None
        mapped = self._lists.get(str(item.get("ListId", "")))
        spaced = " ".join(str(term).split())  # as the term of a word has its spaces
        word = mapped.by_term.get(spaced) if mapped is not None else None
        if word is None:
            raise InvalidInput("the words file has no such list, or no such word in it")
        if day > self._services.clock().astimezone(UTC).date():
            raise InvalidInput("this day has not begun")
        return daily.imported_daily_word(word, day)

    # ── subscriptions ──

    async def _map_members(self) -> None:
        """Map addresses to members: as the operator's file says, otherwise as the profiles do."""
        users = {comparable_address(email): _parse_user(node) for email, node in self._options.users.items()}
        wanted = [user for user in set(users.values()) if user is not None]
        known = await profile_store.read_profiles(self._table, wanted, consistent=True)
        for email, user in users.items():
            self._members[email] = [] if user is None or user not in known else [user]
        async for _, profile in profile_store.listed_profiles(self._table):
            if profile.email and comparable_address(profile.email) not in users:
                self._add_member(profile.email, profile.user)

    def _add_member(self, email: str, user: str) -> None:
        members = self._members.setdefault(comparable_address(email), [])
        if user not in members:
            members.append(user)

    def _parse_subscription(self, item: Mapping[str, Any]) -> Subscription:
        email = validate_email_address(str(item.get("SubscriberEmail", "")).strip())
        try:
            characters = CharacterSet(str(item.get("CharacterSet") or "SIMPLIFIED").upper())
        except ValueError:
            raise InvalidInput(f"there is no character set {item.get('CharacterSet')!r}") from None
        status = str(item.get("Status", "")).lower()
        if status not in _ENDED_STATUSES | _ACTIVE_STATUSES:
            raise InvalidInput(f"its status {item.get('Status')!r} is unknown")
        since = _parse_moment(str(item.get("DateSubscribed", "")))
        mapped = self._lists.get(str(item.get("ListId", "")))
        if mapped is None:
            raise InvalidInput("the words file has no such list")
        user = self._find_member(email, since)
        key = (user, mapped.new.list, characters)
        if key in self._subscribed:
            raise InvalidInput("the same member has this subscription twice, under two spellings of an address")
        self._subscribed.add(key)
        return Subscription(*key, active=status not in _ENDED_STATUSES, since=since)

    def _find_member(self, email: str, since: datetime) -> str:
        """The member with an address; a new one is added to `_new_members`."""
        address = comparable_address(email)
        members = self._members.get(address, [])
        if len(members) > 1:
            raise InvalidInput("several members have this email address; name the right one in the users file")
        if members:
            return members[0]
        if address in self._members:
            raise InvalidInput("the users file has an id for this address that no member has: write the `id` of a User")
        if not self._options.create_members:
            raise InvalidInput("no member has this email address")
        profile = new_record(self._services.seal, email, since)
        self._new_members.append(profile)
        self._add_member(email, profile.user)
        return profile.user

    async def _create_members(self) -> None:
        """Those of the addresses so far, unless they were erased lately."""
        keys = {profile.user: of_address(profile.email or "").key for profile in self._new_members}
        found = await read_identities(self._table, list(keys.values()))
        now = self._services.clock()
        for user, key in keys.items():
            if key in found and found[key].user is None and not found[key].is_free_at(now):
                self._erased.add(user)
        new, self._new_members = [each for each in self._new_members if each.user not in self._erased], []
        self.summary.written["member"] += len(new)
        if not self._options.dry_run:
            writes = (profile_store.create_profile(self._table, profile) for profile in new)
            await gather_or_cancel(writes, _WRITES_AT_ONCE)

    def _rejects_erased(self, row: SourceRow, record: object) -> bool:
        """Whether a row is a subscription of somebody who was erased, which is reported."""
        is_erased = isinstance(record, Subscription) and record.user in self._erased
        if is_erased:
            self._reject(row, "the member with this address was erased")
        return is_erased


_ID_TIME = datetime(2026, 1, 1, tzinfo=UTC)


def list_id(old: str) -> str:
    """The new id of an old list, the same in every run."""
    return derived_id(_ID_TIME, f"legacy list\x00{old}".encode())


def _read_csv(path: Path) -> Iterator[tuple[int, dict[str, str], bool]]:
    """The line and the texts of each row, by the columns' names in lower case, and whether these are all its texts."""
    try:
        reader = csv.DictReader(StringIO(read_text(path), newline=""), strict=True)
        names = {name: (name or "").replace(" ", "").lower() for name in reader.fieldnames or ()}
        if missing := {"listid", "simplified", "definition"} - set(names.values()):
            columns = ", ".join(sorted(missing))
            raise Failed(f"{path} has no column {columns}; see `ringside migrate legacy --help`.")
        for row in reader:
            texts = {names[name]: (text or "").strip() for name, text in row.items() if name in names}
            yield reader.line_num, texts, None not in row
    except csv.Error as error:
        raise Failed(f"{path} cannot be read as CSV: {error}.") from None


def _as_text(cell: str) -> str:
    """What a spreadsheet shows and does not compute: anybody may have written it, such as an address."""
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def _parse_level(text: str) -> int | None:
    try:
        level = int(text)
    except ValueError:
        return None
    return level if 0 <= level <= HIGHEST_LEVEL else None


def _parse_moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # in UTC it is outside the years 1 to 9999
        raise InvalidInput("DateSubscribed is not a date") from None
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _day_difference(wanted: DailyWord, existing: DailyWord) -> str | None:
    same = wanted.word.content == existing.word.content
    return None if same else f"the new table has another word for this day: {existing.word.term}"


def _subscription_difference(wanted: Subscription, existing: Subscription) -> str | None:
    # The member's own later decision, to end it or to start it again, prevails.
    later = existing.since > wanted.since or (wanted.active and not existing.active)
    return None if later or existing == wanted else "the new table has this subscription with another start"


# ── command ──

app = typer.Typer()
migrations = typer.Typer(help="Migrate data from another layout.", no_args_is_help=True)
app.add_typer(migrations, name="migrate")


@migrations.callback()
def _group() -> None:
    """Keeps `legacy` a command of its own."""


@migrations.command()
def legacy(
    subscriptions: Annotated[str, typer.Option(metavar="TABLE", help="The old table of subscriptions.")],
    past_words: Annotated[str, typer.Option(metavar="TABLE", help="The old table of past words.")],
    words_file: Annotated[Path, typer.Option("--words", metavar="FILE", help="The old words, as CSV.")],
    source_url: Annotated[
        str | None, typer.Option(help="The engine of the old tables, or `aws`; by default the service's own.")
    ] = None,
    users: Annotated[
        Path | None,
        typer.Option(help="CSV with the columns email, user: the members of old addresses, by the `id` of a User."),
    ] = None,
    lists: Annotated[
        Path | None, typer.Option(help="CSV with the columns list, id: existing lists that continue old ones.")
    ] = None,
    create_members: Annotated[
        bool, typer.Option("--create-members/--known-only", help="Create members for addresses that no member has.")
    ] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write nothing but the report; print what would be written.")
    ] = False,
    report: Annotated[Path, typer.Option(help="The CSV file for rows that cannot be migrated.")] = Path(
        "migration-report.csv"
    ),
) -> None:
    """Migrates the old layout: tables by ListId and SubscriberEmail, and by ListId and Date, and the CSV of words.

    The CSV has the columns ListId, Simplified, Definition and, optionally, ListName, Level, Traditional, Pinyin. The
    old tables are only read. Safe to repeat: existing records are verified and left alone. Exit code 1 if a row cannot
    be migrated; the report says why.
    """
    if not words_file.is_file():
        raise Failed(f"There is no file {words_file}.")
    options = MigrationOptions(
        users=_read_map(users, "email", "user") if users else {},
        lists={old: _parse_list_id(new) for old, new in _read_map(lists, "list", "id").items()} if lists else {},
        dry_run=dry_run,
        create_members=create_members,
    )
    tables, source = (subscriptions, past_words), None if source_url is None else _parse_source(source_url)
    summary = run_with_services(
        lambda services: _migrate(services, tables, words_file, source, report, options), begins_table=True
    )
    if dry_run:
        out.print("Nothing was written. A run without --dry-run would do this:")
    for line in summary.lines():
        out.print(line)
    if not summary.complete:
        raise Failed(f"Some rows cannot be migrated. {report} says which and why.")


async def _migrate(
    services: Services,
    tables: tuple[str, str],
    words: Path,
    source_url: str | None,
    report: Path,
    options: MigrationOptions,
) -> MigrationSummary:
    settings = Settings.load()
    url = source_url or (AWS if settings.dynamodb_url == AWS else services.table.client.meta.endpoint_url)
    open_old = partial(open_table, url=None if url == AWS else url, region=settings.aws_region)
    with progress_bar("Migration") as bar:
        async with open_old(tables[0]) as subscriptions, open_old(tables[1]) as past_words:
            source = LegacySource(subscriptions, past_words, words)
            return await Migration(services, source, report, options, lambda stage, rows: bar(rows, title=stage)).run()


def _parse_source(url: str) -> str:
    """The engine of the old tables."""
    try:
        engine = parse_engine(url)
    except ValueError as error:
        raise Failed(
            f"{url} is not the engine of the old tables: {error}. Write aws, or an address such as "
            "http://127.0.0.1:8001."
        ) from None
    if engine == EMBEDDED:
        raise Failed(
            "An embedded engine cannot be named with --source-url. Leave the option out if the old tables are in the "
            "service's own engine; otherwise write aws, or an address such as http://127.0.0.1:8001."
        )
    return engine


def _read_map(path: Path, key: str, value: str) -> dict[str, str]:
    """Two columns of an operator's CSV file."""
    try:
        reader = csv.DictReader(StringIO(read_text(path), newline=""))
        rows = [{(name or "").strip().lower(): text for name, text in row.items()} for row in reader]
        return {row[key].strip(): key_text(row[value].strip()) for row in rows}
    except (csv.Error, KeyError, AttributeError, BadKey):
        raise Failed(
            f"{path} cannot be read: it must be a CSV file in UTF-8 with the columns {key} and {value}, both filled."
        ) from None


def _parse_user(node_id: str) -> str | None:
    """The key in a member's id as the API shows it; None for another text."""
    with suppress(InvalidInput):
        return parse_node_key("User", node_id)
    return None


def _parse_list_id(node_id: str) -> str:
    """The key in a list's id as the API shows it."""
    try:
        return parse_node_key("WordList", node_id)
    except InvalidInput:
        raise Failed(
            f"{node_id} is not the id of a list. Take it from `{{ wordLists {{ nodes {{ id name }} }} }}`."
        ) from None
