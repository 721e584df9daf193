"""Importing words from a CSV file into a list: every row is validated, existing words and invalid rows are skipped."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from itertools import chain, count
from pathlib import Path

from ulid import ULID

from datastore import vocabulary as vocabulary_store
from datastore.refusals import InvalidInput, Refusal
from datastore.vocabulary import LONGEST_LIST, ListGrown, Word, WordBatch, WordContent, WordList
from resolvers.context import Services
from resolvers.vocabulary.texts import NewWord, parse_list_name, parse_word
from server.commands.files import read_text, write_text
from server.failures import Failed

BATCH = 80
"""Words added at once: with the deliveries to ten webhooks they fit into one transaction."""
COLUMNS = ("term", "reading", "example", "audioUrl", "simplified", "traditional", "pinyin", "definition")
_WRITTEN = {"term", "simplified"}
"""A word of any language, and a Chinese one: a file has one of these columns, or both for different rows."""
_SURPLUS = "\x00"
"""Where a row has the cells beyond the last column. No column has this name."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that was skipped."""

    line: int
    reason: str
    row: dict[str, str]


@dataclass(slots=True)
class ImportSummary:
    """Which words of a file were added to the list, existed there, or are invalid."""

    name: str
    added: int = 0
    existing: int = 0
    bad: list[BadRow] = field(default_factory=list)

    def write_report(self, path: Path) -> None:
        report = StringIO(newline="")
        writer = csv.writer(report)
        writer.writerow(["line", "reason", *COLUMNS])
        for bad in self.bad:
            writer.writerow([bad.line, bad.reason, *(bad.row.get(column.lower(), "") for column in COLUMNS)])
        write_text(path, report.getvalue())


async def import_words(
    services: Services, path: Path, name: str, level: int | None, progress: Callable[[int, int], None]
) -> ImportSummary:
    """Add a file's words to the public list of this name; report rows done and rows in all to `progress`."""
    rows = list(_read_rows(path))
    total = len(rows)
    target = _Target(services, await _ensure_list(services, name, level))
    await target.read_contents()
    summary = ImportSummary(target.word_list.name)
    batch: dict[WordContent, Word] = {}
    for completed, (number, row) in enumerate(rows, 1):
        try:
            word = _parse_word(target.word_list.list, row)
        except Refusal as refused:
            summary.bad.append(BadRow(number, refused.message, row))
            continue
        if word.content in target.contents or word.content in batch:
            summary.existing += 1
            continue
        batch[word.content] = word
        if len(batch) == BATCH:
            await target.add(batch, summary)
            batch = {}
            progress(completed, total)
    await target.add(batch, summary)
    progress(total, total)
    return summary


def _read_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """The line where each row begins, and its texts. The first row names the columns, in any order and case."""
    reader = csv.reader(StringIO(read_text(path), newline=""), strict=True)
    line = 1
    try:
        names = [name.strip().lower().replace("_", "") for name in next(reader, [])]
        _validate_columns(path, names)
        line = reader.line_num + 1
        for cells in reader:
            if cells:
                yield line, {**dict(zip(names, cells, strict=False)), _SURPLUS: "".join(cells[len(names) :])}
            line = reader.line_num + 1
    except csv.Error as error:
        raise Failed(f"{path} cannot be read as CSV: line {line}: {error}. Nothing was imported.") from None


def _validate_columns(path: Path, names: Sequence[str]) -> None:
    missing = ["definition"] if "definition" not in names else []
    missing += [] if _WRITTEN & set(names) else ["term"]
    if missing:
        raise Failed(f"{path} has no column {' and '.join(missing)}: the first line must name the columns.")
    if twice := [column for column in COLUMNS if names.count(column.lower()) > 1]:
        raise Failed(f"{path} has the column {twice[0]} twice.")


def _parse_word(list_id: str, row: dict[str, str]) -> Word:
    """InvalidInput if the row is not a word."""
    if row[_SURPLUS].strip():
        raise InvalidInput("It has more cells than columns. Put texts that contain a comma in quotation marks.")
    new = NewWord(
        simplified=row.get("simplified", "").strip() or None,
        traditional=row.get("traditional"),
        pinyin=row.get("pinyin"),
        definition=row.get("definition", ""),
        term=row.get("term", "").strip() or None,
        reading=row.get("reading"),
        example=row.get("example"),
        audio_url=row.get("audiourl", "").strip() or None,
    )
    return parse_word(list_id, new, ("row",))


@dataclass(slots=True)
class _Target:
    """A list, and the contents of the words that it had when it was last read, removed ones included."""

    services: Services
    word_list: WordList
    contents: set[WordContent] = field(default_factory=set)

    async def read_contents(self, start: int = 0) -> None:
        """Those of the words from an ordinal on. A removed word moves behind the others, so it is not missed."""
        table, word_list = self.services.table, self.word_list
        words = vocabulary_store.all_words(table, word_list, start=start, consistent=True)
        removed = vocabulary_store.removed_words(table, word_list.list)
        self.contents |= {word.content for group in (words, removed) async for word in group}

    async def add(self, words: Mapping[WordContent, Word], summary: ImportSummary) -> None:
        """Add those that the list lacks, even if somebody else adds words at the same time."""
        while missing := [word for content, word in words.items() if content not in self.contents]:
            try:
                self.word_list = await self._add(missing)
            except ListGrown as grown:
                start, self.word_list = self.word_list.next_ordinal, grown.word_list
                await self.read_contents(start)
                continue
            self.contents |= words.keys()
            break
        summary.added += len(missing)
        summary.existing += len(words) - len(missing)

    async def _add(self, words: Sequence[Word]) -> WordList:
        services, current = self.services, self.word_list
        batch = WordBatch(services.ids.next(services.clock()), words, LONGEST_LIST, current.next_ordinal)
        return (await vocabulary_store.add_words(services.table, current.list, batch, services.once())).list


async def _ensure_list(services: Services, name: str, level: int | None) -> WordList:
    """The public list of this name, created if there is none.

    The index of names may lack a list that was created a moment ago. So the id of a created list is derived from its
    name: an import that is run again, or twice at once, finds it in the table.
    """
    name = parse_list_name(name, ("list",))
    ids = {each.list async for each in vocabulary_store.lists_by_name(services.table, None) if each.name == name}
    if len(ids) > 1:
        raise Failed(f"{len(ids)} public lists are called {name}. Choose a name that no list has.")
    for list_id in chain(ids, _derived_ids(name)):
        existing = await vocabulary_store.read_list(services.table, list_id, consistent=True)
        if existing is None:
            break
        if existing.deleted_at is None and existing.name == name:
            return existing
    now = services.clock()
    new = WordList(list_id, name, public=True, created_at=now, level=level)
    await vocabulary_store.create_list(services.table, new, services.once())
    return await vocabulary_store.read_list(services.table, list_id, consistent=True) or new


def _derived_ids(name: str) -> Iterator[str]:
    """The ids for a list of this name: the first, and others in case that list was deleted or has another name now."""
    for number in count():
        text = f"imported list\x00{name}" + (f"\x00{number}" if number else "")
        yield str(ULID(hashlib.sha256(text.encode()).digest()[:16]))
