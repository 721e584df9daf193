"""Readers: they yield rows, each with the place where it was found.

A row that cannot be read has a `problem` in place of fields; the loop decides what becomes of it. If a source as a
whole is at fault, a reader raises Unreadable.
"""

import codecs
import csv
import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from io import StringIO
from pathlib import Path, PurePath
from typing import Any, BinaryIO, TypeAlias, TypeVar

import orjson

from datastore.refusals import InvalidInput
from datastore.values.folding import in_form

# ── files ──

_DECLARED_ENCODING = re.compile(rb"\s*<\?xml[^>]*\bencoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")


class Unreadable(InvalidInput):
    """A source as a whole cannot be read, so nothing of it is imported; the message says where and what to do."""


def decode(data: bytes, name: str) -> str:
    """A text in UTF-8, with or without a byte order mark, or in UTF-16 with one, as spreadsheets write it.

    Anything else is refused instead of guessed: a wrong guess would store wrong letters.
    """
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"{name} cannot be read: line {line} is not text in UTF-8. Save the file as UTF-8.") from None
    if "\x00" in text:
        raise Unreadable(
            f"{name} cannot be read: it is not text in UTF-8, but has NUL characters. Save the file as UTF-8."
        )
    return text


def decode_xml(data: bytes, name: str) -> str:
    """A text in the encoding that it declares, if it does."""
    declared = _DECLARED_ENCODING.match(data)
    if declared is None:
        return decode(data, name)
    encoding = declared[1].decode()
    try:
        text = data.decode(codecs.lookup(encoding).name)
        text.encode()  # UTF-7 and Python's own escapes can write half a character
    except (LookupError, UnicodeError):
        raise Unreadable(f"{name} is not text in the encoding {encoding}, which it declares.") from None
    return text


class NotRegular(OSError):
    """A pipe, a socket, a device or a folder. A pipe may have no writer and a device no end, so they are not read."""

    def __init__(self) -> None:
        super().__init__(errno.EINVAL, "it is not a file")


def open_regular(name: Path | str, flags: int = 0, folder: int | None = None) -> BinaryIO:
    """A file to read; OSError if there is none."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | flags, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegular
    return os.fdopen(descriptor, "rb")


def read_inside(folder: Path, name: str, most: int) -> bytes:
    """A file of up to so many bytes that another file names: in a folder or below it, and reached by no link."""
    path = PurePath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise Unreadable(f"{name} is not in {folder}: only files in this folder and below it are read.")
    try:
        with _open_inside(folder, path) as source:
            data = source.read(most + 1)
    except OSError as error:
        # A folder that is a link is reported as no folder.
        behind_link = error.errno == errno.ENOTDIR and any((folder / parent).is_symlink() for parent in path.parents)
        linked = error.errno in {errno.ELOOP, errno.EMLINK} or behind_link
        reason = "it is a link, or behind one" if linked else error.strerror
        raise Unreadable(f"{name} cannot be read: {reason}.") from None
    if len(data) > most:
        raise Unreadable(f"{name} is larger than {most // 1024} KB.")
    return data


def _open_inside(folder: Path, path: PurePath) -> BinaryIO:
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in path.parts[:-1]:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
            os.close(place)
            place = inner
        return open_regular(path.name, os.O_NOFOLLOW, place)
    finally:
        os.close(place)


# ── readers ──

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


def json_lines(source: BinaryIO, longest: int = LONGEST_LINE, number: int = 0) -> Iterator[Row]:
    """A JSON object on each line, one line at a time, after so many lines. Blank lines are left out."""
    at_once = longest + 2  # with its line end
    while line := source.readline(at_once):
        number += 1
        text = (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).strip()
        if text:
            is_whole = len(line.removesuffix(b"\n").removesuffix(b"\r")) <= longest
            problem = f"It is longer than {longest:,} bytes."
            yield _json_row(number, text) if is_whole else Row(number, {}, problem=problem)
        while len(line) == at_once and not line.endswith(b"\n"):  # the rest of the same line
            line = source.readline(at_once)


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
    header = text.partition("\n")[0].partition("\r")[0]
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
    if not others:  # spreadsheets write columns in which something stood once; now rows may have nothing there
        cells = cells[: max((place for place, cell in enumerate(cells, 1) if cell.strip()), default=0)]
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


# ── fields ──
# The fields of a row that was JSON: of their kinds, or InvalidInput with their names. Null is like nothing.

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)
Fields: TypeAlias = Mapping[str, Any]


def parse_kind(fields: Fields, name: str, kind: type[T], default: T | None = None) -> T:
    """A value of this kind, which may be left out if there is a default. A text is no list of its letters."""
    value = fields.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, kind):
        raise InvalidInput(f"write {'a list' if kind is list else 'true or false'}", path=(name,))
    return value


def parse_text(fields: Fields, name: str) -> str:
    """A text, which is required. A number is none."""
    value = fields.get(name)
    if not isinstance(value, str) or "\x00" in value:
        raise InvalidInput("write a text, in quotation marks", path=(name,))
    return value


def parse_optional_text(fields: Fields, name: str) -> str | None:
    return None if fields.get(name) is None else parse_text(fields, name)


def parse_texts(fields: Fields, name: str, default: list[str] | None = None) -> list[str]:
    """A list of texts."""
    texts: list[Any] = parse_kind(fields, name, list, default)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidInput("write a text, in quotation marks", path=(name, f"{index}"))
    return texts


def parse_choice(fields: Fields, name: str, kind: type[E]) -> E:
    """A member of an enumeration, by its value."""
    by_value = {member.value: member for member in kind}
    value = fields.get(name)
    if not isinstance(value, str) or value not in by_value:
        raise InvalidInput(f"write one of {', '.join(by_value)}", path=(name,))
    return by_value[value]


def parse_whole(fields: Fields, name: str) -> int:
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 != 0:  # infinity % 1 is NaN
        raise InvalidInput("write a whole number, without quotation marks", path=(name,))
    return int(value)


def parse_moment(fields: Fields, name: str) -> datetime:
    """A moment in UTC."""
    try:
        moment = datetime.fromisoformat(parse_text(fields, name))
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise InvalidInput("write a date, a time and a zone, as in 2026-11-20T20:00:00Z", path=(name,))
