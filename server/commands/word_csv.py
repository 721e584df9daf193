"""Importing words from a CSV file into a list: every row is validated, existing words and invalid rows are skipped."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from datastore import vocabulary as vocabulary_store
from datastore.receipts import Once
from datastore.refusals import Refusal
from datastore.vocabulary import LONGEST_LIST, Word, WordBatch, WordList
from resolvers.context import Services
from resolvers.vocabulary.lists import NewWord, parse_list_name, parse_word
from server.commands import Failed

BATCH = 90
"""Words added at once: they fit into one transaction."""
COLUMNS = ("simplified", "traditional", "pinyin", "definition")
REQUIRED = {"simplified", "definition"}


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
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["line", "reason", *COLUMNS])
            for bad in self.bad:
                writer.writerow([bad.line, bad.reason, *(bad.row.get(column, "") for column in COLUMNS)])


async def import_words(
    services: Services, path: Path, name: str, level: int | None, progress: Callable[[int, int], None]
) -> ImportSummary:
    """Adds a file's words to the public list of this name; reports rows done and rows in all to `progress`."""
    total = sum(1 for _ in _read_rows(path))
    word_list = await _ensure_list(services, name, level)
    contents = {word.content async for word in vocabulary_store.all_words(services.table, word_list)}
    summary = ImportSummary(word_list.name)
    batch: list[Word] = []
    for completed, (number, row) in enumerate(_read_rows(path), 1):
        try:
            word = _parse_word(word_list.list, row)
        except Refusal as refused:
            summary.bad.append(BadRow(number, refused.message, row))
            continue
        if word.content in contents:
            summary.existing += 1
            continue
        contents.add(word.content)
        batch.append(word)
        if len(batch) == BATCH:
            summary.added += await _add(services, word_list.list, batch)
            batch = []
            progress(completed, total)
    summary.added += await _add(services, word_list.list, batch)
    progress(total, total)
    return summary


def _read_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and texts of each row. The first row names the columns, in any order and case."""
    try:
        # Spreadsheets write a byte order mark before UTF-8.
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            names = {name: (name or "").strip().lower() for name in reader.fieldnames or ()}
            if missing := REQUIRED - set(names.values()):
                columns = " or ".join(sorted(missing))
                raise Failed(f"{path} has no column {columns}: the first line must name the columns.")
            for row in reader:
                yield reader.line_num, {names[name]: text or "" for name, text in row.items() if name in names}
    except (UnicodeDecodeError, csv.Error) as error:
        raise Failed(f"{path} cannot be read as CSV in UTF-8: {error}.") from None


def _parse_word(list_id: str, row: dict[str, str]) -> Word:
    """InvalidInput if the row is not a word."""
    new = NewWord(
        simplified=row.get("simplified", ""),
        traditional=row.get("traditional"),
        pinyin=row.get("pinyin"),
        definition=row.get("definition", ""),
    )
    return parse_word(list_id, new, ("row",))


async def _add(services: Services, list_id: str, words: list[Word]) -> int:
    if words:
        now = services.clock()
        batch = WordBatch(services.ids.next(now), tuple(words), LONGEST_LIST)
        await vocabulary_store.add_words(services.table, list_id, batch, Once("import", None, "", now))
    return len(words)


async def _ensure_list(services: Services, name: str, level: int | None) -> WordList:
    """The public list of this name, created if there is none."""
    name = parse_list_name(name, ("list",))
    lists = [each async for each in vocabulary_store.lists_by_name(services.table, None) if each.name == name]
    if len(lists) > 1:
        raise Failed(f"{len(lists)} public lists are called {name}. Choose a name that no list has.")
    if lists:
        return lists[0]
    now = services.clock()
    new = WordList(services.ids.next(now), name, public=True, created_at=now, level=level)
    await vocabulary_store.create_list(services.table, new, Once("import", None, "", now))
    return new
