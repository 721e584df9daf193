"""Which comment stands in whose thread, whatever the order of a file.

What a file has is written to a temporary file first. So a reply may come before what it answers, and a million comments
need no memory but 24 bytes each.
"""

import sqlite3
from array import array
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from tempfile import gettempdir
from typing import Any

import orjson

from datastore.comments.records import Status
from datastore.dynamo import iso, to_the_millisecond
from resolvers.comments.transfer import Author
from resolvers.transfer.readers import Row, Unreadable
from resolvers.transfer.temporary import temporary_folder


@dataclass(frozen=True, slots=True)
class Written:
    """A comment as the other system has it."""

    place: Row
    id: str
    thread: str
    """The address of the page, or what the other system calls it."""
    thread_id: str
    at: datetime | None
    body: str
    author: Author | None
    parent: str | None = None
    edited_at: datetime | None = None
    held: Status | None = None
    rating: int | None = None
    gone: bool = False
    """Deleted, or spam: only its replies are wanted."""


MISSING = "What it answers is not in the file, so it stands at the top."
LOOP = "It answers itself through others, so it stands at the top."
OTHER_PAGE = "What it answers is on another page, so it stands at the top."
TWICE = "The file has another comment with this id."
UNDATED = "It has no time, or one before 1971."
_TABLE = """CREATE TABLE written (
    n INTEGER PRIMARY KEY, id TEXT UNIQUE, parent TEXT, thread TEXT, at REAL, gone INTEGER, data BLOB)"""
_ANSWERED = """SELECT one.n, one.at, one.thread = answered.thread, answered.n, one.parent
    FROM written AS one LEFT JOIN written AS answered ON answered.id = one.parent ORDER BY one.n"""
_EARLIEST = datetime(1971, 1, 2, tzinfo=UTC)


def in_threads(written: Iterable[Written]) -> Iterator[Row]:
    """A row for each comment but for those that are gone: first those at the top, then the replies."""
    try:
        with temporary_folder() as folder, closing(sqlite3.connect(f"{folder}/comments")) as table:
            yield from _in_threads(table, written)
    except sqlite3.Error as error:
        raise Unreadable(
            f"{gettempdir()}, the folder for temporary files, cannot take what the file has: {error}. Make room there, "
            "or name another folder with TMPDIR."
        ) from None


def _in_threads(table: sqlite3.Connection, written: Iterable[Written]) -> Iterator[Row]:
    table.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_TABLE};")
    yield from _spooled(table, written)
    threads = _Threads(table)
    for replies in (False, True):
        for n, data in table.execute("SELECT n, data FROM written WHERE NOT gone ORDER BY n"):
            if bool(threads.parents[n]) is replies:
                yield threads.row(n, data)


def _spooled(table: sqlite3.Connection, written: Iterable[Written]) -> Iterator[Row]:
    """Write all down; a row for each that cannot be."""
    for one in written:
        if one.place.problem is not None:
            yield one.place
        elif one.at is None or one.at < _EARLIEST:
            yield _problem(one, UNDATED)
        else:
            data = orjson.dumps(_stored(one))
            values = (one.id, one.parent, one.thread_id, to_the_millisecond(one.at).timestamp(), one.gone, data)
            added = table.execute("INSERT OR IGNORE INTO written VALUES (NULL, ?, ?, ?, ?, ?, ?)", values)
            if not added.rowcount:
                yield _problem(one, TWICE)


def _problem(one: Written, message: str) -> Row:
    return Row(one.place.number, {}, name=one.place.name, problem=message)


def _stored(one: Written) -> dict[str, Any]:
    # Comentario writes the year 1 where nothing was edited.
    edited_at = None if one.edited_at is None or one.edited_at < _EARLIEST else iso(one.edited_at)
    return {
        "line": one.place.number,
        "name": one.place.name,
        "id": one.id,
        "thread": one.thread,
        "threadId": one.thread_id,
        "at": None if one.at is None else iso(to_the_millisecond(one.at)),
        "body": one.body,
        "author": None if one.author is None else [one.author.key, one.author.name, one.author.email],
        "editedAt": edited_at,
        "held": one.held,
        "rating": one.rating,
    }


class _Threads:
    """By number: what each answers, and the comment at the top of its thread."""

    def __init__(self, table: sqlite3.Connection) -> None:
        self._table = table
        number = table.execute("SELECT COALESCE(MAX(n), 0) FROM written").fetchone()[0] + 1
        self.parents, self.roots = array("q", bytes(8 * number)), array("q", bytes(8 * number))
        self._at = array("d", bytes(8 * number))
        self._notes: dict[int, str] = {}
        for n, at, on_page, answered, parent in table.execute(_ANSWERED):
            self._at[n] = at
            if answered is None and parent is not None:
                self._notes[n] = MISSING
            elif answered is not None and not on_page:
                self._notes[n] = OTHER_PAGE
            else:
                self.parents[n] = answered or 0
        for n in range(1, number):
            self._find_root(n)

    def _find_root(self, n: int) -> None:
        """Go up until a comment whose root is known, or one at the top, or one that was passed already: a loop."""
        path: list[int] = []
        passed: set[int] = set()
        while not self.roots[n] and n not in passed:
            path.append(n)
            passed.add(n)
            if not self.parents[n]:
                self.roots[n] = n
            else:
                n = self.parents[n]
        if not self.roots[n]:
            n = min(path[path.index(n) :], key=self._at.__getitem__)
            self.parents[n], self._notes[n] = 0, LOOP
            self.roots[n] = n
        for one in path:
            self.roots[one] = self.roots[n]

    def row(self, n: int, data: bytes) -> Row:
        fields = orjson.loads(data)
        if self.parents[n]:
            fields |= {"inReplyTo": self._place(self.parents[n]), "root": self._place(self.roots[n])}
        return Row(fields["line"], fields | {"note": self._notes.get(n)}, data, name=fields["name"])

    def _place(self, n: int) -> tuple[str, float]:
        """By what the id of a comment is derived."""
        (id_,) = self._table.execute("SELECT id FROM written WHERE n = ?", (n,)).fetchone()
        return id_, self._at[n]
