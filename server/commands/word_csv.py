"""Words from a CSV file into a list: checked row by row, what is known passed over, what is bad reported."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from datastore import vocabulary
from datastore.receipts import Once
from datastore.refusals import Refusal
from datastore.vocabulary import LONGEST_LIST, Batch, Word, WordList
from resolvers.context import Services
from resolvers.vocabulary.daily_words import LONGEST_NAME, NewWord, checked
from resolvers.vocabulary.visibility import line
from server.commands import Failed

AT_ONCE = 90
COLUMNS = ("simplified", "traditional", "pinyin", "definition")
REQUIRED = {"simplified", "definition"}


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that was not taken."""

    line: int
    reason: str
    row: dict[str, str]


@dataclass(slots=True)
class Imported:
    """What came of a file."""

    name: str
    added: int = 0
    known: int = 0
    bad: list[BadRow] = field(default_factory=list)

    def write_report(self, path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["line", "reason", *COLUMNS])
            for bad in self.bad:
                writer.writerow([bad.line, bad.reason, *(bad.row.get(column, "") for column in COLUMNS)])


def rows_of(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and texts of each row. The first row names the columns, in any order and case."""
    try:
        # A byte order mark is what spreadsheets write in front of UTF-8.
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            names = {name: (name or "").strip().lower() for name in reader.fieldnames or ()}
            if missing := REQUIRED - set(names.values()):
                message = f"{path} has no column {' or '.join(sorted(missing))}: the first line names the columns."
                raise Failed(message)
            for row in reader:
                yield reader.line_num, {names[name]: text or "" for name, text in row.items() if name in names}
    except (UnicodeDecodeError, csv.Error) as error:
        message = f"{path} cannot be read as CSV in UTF-8: {error}."
        raise Failed(message) from None


async def import_words(
    services: Services, path: Path, name: str, level: int | None, progress: Callable[[int, int], None]
) -> Imported:
    """Adds a file's words to the public list of this name, ninety at a time."""
    total = sum(1 for _ in rows_of(path))
    listed = await public_list(services, name, level)
    known = {word.content async for word in vocabulary.words(services.table, listed)}
    done = Imported(listed.name)
    batch: list[Word] = []
    for place, (number, row) in enumerate(rows_of(path), 1):
        try:
            word = word_of(listed.list, row)
        except Refusal as refused:
            done.bad.append(BadRow(number, refused.message, row))
            continue
        if word.content in known:
            done.known += 1
            continue
        known.add(word.content)
        batch.append(word)
        if len(batch) == AT_ONCE:
            done.added += await add(services, listed.list, batch)
            batch = []
            progress(place, total)
    done.added += await add(services, listed.list, batch)
    progress(total, total)
    return done


def word_of(list_id: str, row: dict[str, str]) -> Word:
    """A row's word, or InvalidInput."""
    new = NewWord(
        simplified=row.get("simplified", ""),
        traditional=row.get("traditional"),
        pinyin=row.get("pinyin"),
        definition=row.get("definition", ""),
    )
    return checked(list_id, new, ("row",))


async def add(services: Services, list_id: str, words: list[Word]) -> int:
    if words:
        now = services.clock()
        batch = Batch(services.ids.next(now), tuple(words), LONGEST_LIST)
        await vocabulary.add_words(services.table, list_id, batch, Once("import", None, "", now))
    return len(words)


async def public_list(services: Services, name: str, level: int | None) -> WordList:
    """The public list of a name, made if there is none."""
    name = line(name, LONGEST_NAME, "A list's name", ("list",))
    found = [one async for one in vocabulary.lists_by_name(services.table, None) if one.name == name]
    if len(found) > 1:
        message = f"{len(found)} public lists are called {name}. Give the new words a list of another name."
        raise Failed(message)
    if found:
        return found[0]
    now = services.clock()
    made = WordList(services.ids.next(now), name, public=True, created_at=now, level=level)
    await vocabulary.create_list(services.table, made, Once("import", None, "", now))
    return made
