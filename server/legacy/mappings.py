"""Maps from old names to new ids, in a temporary SQLite file: memory does not grow with the source."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeAlias

from datastore.vocabulary import Word

Content: TypeAlias = tuple[str, str | None, str | None, str]
"""Simplified, traditional, pinyin and definition; two words with the same content are the same word."""

_TABLES = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE lists (old TEXT PRIMARY KEY, new TEXT, name TEXT, level INTEGER);
CREATE TABLE words (old TEXT, position INTEGER, ordinal INTEGER, simplified TEXT, traditional TEXT, pinyin TEXT,
                    definition TEXT, source TEXT);
CREATE INDEX words_by_text ON words (old, simplified);
CREATE TABLE members (email TEXT, user TEXT, PRIMARY KEY (email, user));
"""


class MappedList(NamedTuple):
    """An old list and the list that it becomes."""

    old: str
    new: str
    name: str
    level: int | None


class MappedWord(NamedTuple):
    """A row of the words file; `ordinal` is the word's place in the new list."""

    position: int
    source: str
    ordinal: int | None
    content: Content


class Mappings:
    """Lists, words and members of one run."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.executescript(_TABLES)
        connection.execute("BEGIN")

    def add_list(self, mapped: MappedList) -> None:
        """Keep the first name and level of a list."""
        self._connection.execute("INSERT OR IGNORE INTO lists VALUES (?, ?, ?, ?)", mapped)

    def lists(self) -> list[MappedList]:
        return [MappedList(*row) for row in self._connection.execute("SELECT * FROM lists ORDER BY old").fetchall()]

    def drop_list(self, old: str) -> None:
        """Forget a list and its words, so that nothing else is migrated into it."""
        self._connection.execute("DELETE FROM lists WHERE old = ?", (old,))
        self._connection.execute("DELETE FROM words WHERE old = ?", (old,))

    def new_list(self, old: str) -> str | None:
        """The id of the list that an old one becomes."""
        row = self._connection.execute("SELECT new FROM lists WHERE old = ?", (old,)).fetchone()
        return None if row is None else str(row[0])

    def add_word(self, old: str, position: int, content: Content, source: str) -> None:
        row = (old, position, *content, source)
        self._connection.execute("INSERT INTO words VALUES (?, ?, NULL, ?, ?, ?, ?, ?)", row)

    def words(self, old: str) -> list[MappedWord]:
        """The words of an old list, in the order of the file."""
        rows = self._connection.execute(
            "SELECT position, source, ordinal, simplified, traditional, pinyin, definition"
            " FROM words WHERE old = ? ORDER BY position",
            (old,),
        ).fetchall()
        return [MappedWord(position, source, ordinal, tuple(content)) for position, source, ordinal, *content in rows]

    def place_word(self, old: str, position: int, ordinal: int) -> None:
        self._connection.execute(
            "UPDATE words SET ordinal = ? WHERE old = ? AND position = ?", (ordinal, old, position)
        )

    def find_word(self, old: str, simplified: str) -> Word | None:
        """The first word of an old list that is written like this."""
        row = self._connection.execute(
            "SELECT new, ordinal, simplified, definition, traditional, pinyin FROM words JOIN lists USING (old)"
            " WHERE old = ? AND simplified = ? ORDER BY position LIMIT 1",
            (old, simplified),
        ).fetchone()
        return None if row is None else Word(*row)

    def add_member(self, email: str, user: str) -> None:
        # Not by casefold(), which makes one address of weiß@… and weiss@….
        self._connection.execute("INSERT OR IGNORE INTO members VALUES (?, ?)", (email.lower(), user))

    def members(self, email: str) -> list[str]:
        """At most two of the members that have an address."""
        rows = self._connection.execute("SELECT user FROM members WHERE email = ? LIMIT 2", (email.lower(),))
        return [user for (user,) in rows]


@contextmanager
def open_mappings() -> Iterator[Mappings]:
    with TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "mappings.sqlite", isolation_level=None)
        try:
            yield Mappings(connection)
        finally:
            connection.close()
