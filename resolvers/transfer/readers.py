"""Readers: they yield rows, each with the place where it was found.

A row that cannot be read has a `problem` in place of fields; the loop decides what becomes of it. If a source as a
whole is at fault, a reader raises Unreadable.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from datastore.refusals import InvalidInput
from datastore.values.folding import in_form
from resolvers.transfer.sources import Unreadable

LONGEST_LINE = 200_000
_DELIMITERS = ",;\t"


@dataclass(frozen=True, slots=True)
class Row:
    """A record as a source has it."""

    number: int
    """The line where it begins, or its position among others, from 1."""
    fields: Any
    raw: bytes = b""
    """What it was read from, if it is kept."""
    name: str = ""
    problem: str | None = None

    @property
    def place(self) -> str:
        return self.name or f"line {self.number}"

    def require_read(self) -> None:
        """InvalidInput if it could not be read."""
        if self.problem is not None:
            raise InvalidInput(self.problem)


def json_lines(source: BinaryIO, longest: int = LONGEST_LINE) -> Iterator[Row]:
    """A JSON object on each line, one line at a time. Blank lines are left out."""
    number = 0
    while line := source.readline(longest + 1):
        number += 1
        text = (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).strip()
        if text:
            too_long = f"It is longer than {longest:,} bytes." if len(line) > longest else None
            yield Row(number, {}, problem=too_long) if too_long else _json_row(number, text)
        while len(line) > longest and not line.endswith(b"\n"):  # the rest of the same line
            line = source.readline(longest + 1)


def _json_row(number: int, text: bytes) -> Row:
    try:
        fields = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return Row(number, {}, problem=f"It is not JSON: {error.msg}.")
    return Row(number, fields, text, problem=None if isinstance(fields, dict) else "It is not a JSON object.")


def csv_rows(
    text: str, name: str, columns: Sequence[str], required: Sequence[Sequence[str]], *, others: bool
) -> Iterator[Row]:
    """The rows of a table, by column, without blank cells; blank rows are left out.

    The first line names the columns, in any order and case, and shows the delimiter. `required` has groups of columns,
    of each of which there must be one. With `others` there may be columns of other names, which are ignored.
    """
    header = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=header.count)
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        known = _parse_header(next(reader, []), name, columns, required, others=others)
        line = reader.line_num + 1
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield _csv_row(line, known, cells)
            line = reader.line_num + 1
    except csv.Error as error:
        raise Unreadable(f"{name} cannot be read as CSV: line {line}: {error}. Nothing was imported.") from None


def _parse_header(
    cells: Sequence[str], name: str, columns: Sequence[str], required: Sequence[Sequence[str]], *, others: bool
) -> list[str]:
    """The columns as the part calls them; empty for one that is ignored."""
    by_name = {column.lower(): column for column in columns}
    known = [by_name.get(cell.strip().lower().replace("_", ""), "") for cell in cells]
    rule = f"The first line names the columns: {', '.join(columns)}."
    if missing := [group[0] for group in required if not set(group) & set(known)]:
        raise Unreadable(f"{name} has no column {' and '.join(missing)}. {rule}")
    if not others and "" in known:
        raise Unreadable(f"{name} has an unknown column {cells[known.index('')].strip()!r}. {rule}")
    if twice := [column for column in columns if known.count(column) > 1]:
        raise Unreadable(f"{name} has the column {twice[0]} twice. {rule}")
    return known


def _csv_row(line: int, columns: Sequence[str], cells: Sequence[str]) -> Row:
    fields = {column: cell.strip() for column, cell in zip(columns, cells, strict=False) if column and cell.strip()}
    problem = None
    if any(cell.strip() for cell in cells[len(columns) :]):
        problem = (
            f"It has {len(cells)} cells for {len(columns)} columns. Put texts that contain the delimiter in quotation "
            "marks."
        )
    elif lost := [column for column, cell in fields.items() if "\ufffd" in cell]:
        problem = f"{lost[0]}: A letter was lost when this file was converted. Export it again."
    return Row(line, fields, problem=problem)


def svg_folder(folder: Path) -> Iterator[Row]:
    """A row for each SVG file, in the order of their names. Hidden files and other kinds are left out."""
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() == ".svg" and not file.name.startswith("."))
    if not files:
        raise Unreadable(f"{folder} has no SVG files: their names must end with .svg.")
    for number, file in enumerate(files, 1):
        try:
            name, problem = in_form("NFC", file.stem), None  # some file systems take accents apart
        except InvalidInput as refused:
            name, problem = "", refused.message
        yield Row(number, {"name": name, "svg": file.name}, name=file.name, problem=problem)


def listed(document: Any, key: str, name: str) -> Iterator[Row]:
    """The objects of a list in a JSON document."""
    objects = document.get(key) if isinstance(document, Mapping) else None
    if not isinstance(objects, list):
        raise Unreadable(f'{name} is an object with a list of "{key}".')
    for index, fields in enumerate(objects):
        problem = None if isinstance(fields, Mapping) else "write an object, in braces"
        yield Row(index + 1, fields, name=f"{key}.{index}", problem=problem)
