"""The loop of imports: interrupted anywhere and run again it ends as if it had run once, and no row is passed over."""

import asyncio
import csv
import io
from collections.abc import Sequence
from contextlib import suppress
from threading import get_ident

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore.refusals import InvalidInput
from resolvers.transfer.loop import (
    Added,
    Imported,
    OnProblem,
    PreviewedStore,
    RecordRefused,
    Store,
    import_records,
    preview_records,
)
from resolvers.transfer.readers import LONGEST_LINE, Row, Unreadable, csv_rows, json_lines

NAMES = st.lists(st.sampled_from(["a", "b", "c", "d", "bad", "taken"]), max_size=30)
CELLS = st.text(st.sampled_from('ab ,;\t"\n\r'), max_size=8)


class Killed(BaseException):
    """The process ends here."""


class Names(Store[tuple[str, int]]):
    """A store that keeps names, and may be killed after some of them."""

    def __init__(self, kept: dict[str, int], at_once: int, lives: int | None = None) -> None:
        self.kept = kept
        self.at_once = at_once
        self.lives = lives

    def parse(self, row: Row) -> tuple[str, int]:
        name = str(row.fields["name"])
        if name == "bad":
            raise InvalidInput("It is bad.", path=("input", "name"))
        return name, row.number

    async def add(self, records: Sequence[tuple[str, int]]) -> Added:
        assert 0 < len(records) <= self.at_once
        new = 0
        for record in records:
            name, line = record
            if name == "taken":
                raise RecordRefused([record], InvalidInput("It is taken."))
            if name not in self.kept:
                if self.lives == 0:
                    raise Killed
                self.lives = None if self.lives is None else self.lives - 1
                self.kept[name] = line
                new += 1
        return Added(new)


class Pasted(Names, PreviewedStore[tuple[str, int]]):
    """One for what editors paste; knows in which threads rows were parsed."""

    def __init__(self) -> None:
        super().__init__({}, 1)
        self.threads: list[int] = []

    def parse(self, row: Row) -> tuple[str, int]:
        self.threads.append(get_ident())
        return super().parse(row)

    async def are_missing(self, records: Sequence[tuple[str, int]]) -> Sequence[bool]:
        return [name not in self.kept for name, _ in records]


def _lines(names: Sequence[str]) -> io.BytesIO:
    return io.BytesIO(b"".join(orjson.dumps({"name": name}) + b"\n" for name in names))


def _run(names: Sequence[str], store: Names, on_problem: OnProblem) -> Imported:
    return asyncio.run(import_records(json_lines(_lines(names)), store, on_problem))


async def test_what_editors_paste_is_parsed_beside_the_event_loop() -> None:
    """When it is looked through and when it is added: a picture takes tens of milliseconds."""
    store, rows = Pasted(), list(json_lines(_lines(["a", "b", "c"])))
    await preview_records(rows, store, OnProblem.REFUSE)
    assert (await import_records(rows, store, OnProblem.STOP)).added == 3
    assert len(store.threads) == 6
    assert get_ident() not in store.threads


@given(NAMES, st.sampled_from(OnProblem), st.integers(1, 5), st.integers(0, 6), st.integers(1, 5))
def test_an_import_that_is_interrupted_at_any_record_and_run_again_is_one_that_ran_once(
    names: list[str], on_problem: OnProblem, at_once: int, lives: int, at_once_again: int
) -> None:
    """Also if the second run is given other numbers of records at once."""
    undisturbed: dict[str, int] = {}
    whole = _run(names, Names(undisturbed, at_once_again), on_problem)
    kept: dict[str, int] = {}
    with suppress(Killed):
        _run(names, Names(kept, at_once, lives), on_problem)
    before = len(kept)
    again = _run(names, Names(kept, at_once_again), on_problem)
    assert kept == undisturbed
    assert [str(problem) for problem in again.problems] == [str(problem) for problem in whole.problems]
    assert again.read == whole.read
    if not any(name == "taken" for name in names):  # what was added beside such a record counts as existing
        assert before + again.added == whole.added == len(kept)


@given(NAMES, st.integers(1, 5))
def test_every_row_is_imported_or_named_with_its_line(names: list[str], at_once: int) -> None:
    """Which rows are imported despite a bad one is the importer's choice."""
    names = [name for name in names if name != "taken"]
    bad = [line for line, name in enumerate(names, 1) if name == "bad"]
    for on_problem in OnProblem:
        kept: dict[str, int] = {}
        done = _run(names, Names(kept, at_once), on_problem)
        told = [problem.row.number for problem in done.problems]
        assert told == (bad[:1] if on_problem is OnProblem.STOP else bad)
        good = names[: bad[0] - 1] if bad and on_problem is OnProblem.STOP else names
        expected = set() if bad and on_problem is OnProblem.REFUSE else set(good) - {"bad"}
        assert set(kept) == expected
        assert all(str(problem) == f"line {problem.row.number}: name: It is bad." for problem in done.problems)


@given(NAMES, st.integers(1, 5))
def test_what_only_the_table_refuses_is_skipped_too(names: list[str], at_once: int) -> None:
    """Each is named, and all others are imported."""
    kept: dict[str, int] = {}
    done = _run(names, Names(kept, at_once), OnProblem.SKIP)
    wrong = [line for line, name in enumerate(names, 1) if name in ("bad", "taken")]
    assert sorted(problem.row.number for problem in done.problems) == wrong
    assert set(kept) == set(names) - {"bad", "taken"}
    assert done.read == len(names) - len(wrong)


@given(st.lists(st.tuples(CELLS, CELLS), max_size=6), st.sampled_from(",;\t"))
def test_a_table_that_was_written_is_read_with_the_line_of_each_row(rows: list[tuple[str, str]], comma: str) -> None:
    """Whatever its texts hold; blank rows are left out."""
    text, expected = io.StringIO(newline=""), []
    writer = csv.writer(text, delimiter=comma, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(["term", "definition"])
    for row in rows:
        line = len(text.getvalue().replace("\r\n", "\n").replace("\r", "\n").splitlines()) + 1
        writer.writerow(row)
        cells = {name: cell.strip() for name, cell in zip(("term", "definition"), row, strict=True) if cell.strip()}
        if cells:
            expected.append((line, cells))
    read = csv_rows(text.getvalue(), "FILE", ("term", "definition"), [("term",)], others=True)
    assert [(row.number, row.fields) for row in read] == expected


@given(st.text())
def test_any_text_is_a_table_or_refused(text: str) -> None:
    with suppress(Unreadable):
        assert all(isinstance(row.fields, dict) for row in csv_rows(text, "FILE", ("a",), [("a",)], others=True))


@given(st.binary())
def test_any_bytes_are_lines_with_their_numbers(content: bytes) -> None:
    """Of an object, or with what is wrong."""
    numbers = [line for line, text in enumerate(content.split(b"\n"), 1) if text.strip() not in {b"", b"\xef\xbb\xbf"}]
    rows = list(json_lines(io.BytesIO(content)))
    assert [row.number for row in rows] == numbers
    assert all(isinstance(row.fields, dict) for row in rows if row.problem is None)


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_line_of_the_longest_length_is_read_whatever_ends_it(end: bytes) -> None:
    """The limit is the line's own: what separates it from the next one does not count."""
    line = b'"'.join([b"{", b"a", b":", b"x" * (LONGEST_LINE - 8), b"}"])
    assert len(line) == LONGEST_LINE
    assert [row.problem for row in json_lines(io.BytesIO(line + end))] == [None]


@pytest.mark.parametrize("length", [LONGEST_LINE + 1, LONGEST_LINE + 2, LONGEST_LINE + 3, 3 * LONGEST_LINE])
def test_a_line_that_is_too_long_is_one_row(length: int) -> None:
    """It is not held in the memory, and the lines after it keep their numbers."""
    rows = list(json_lines(io.BytesIO(b"x" * length + b"\n{}\n")))
    assert [(row.number, row.problem) for row in rows] == [(1, "It is longer than 200,000 bytes."), (2, None)]
