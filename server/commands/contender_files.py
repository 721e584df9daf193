"""The files that `ringside import contenders` reads: a folder of SVG files, or a table as CSV.

Everything is read and checked before anything is written. docs/imports.md describes the formats.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from datastore import voting as voting_store
from datastore.folding import in_form
from datastore.refusals import InvalidInput
from resolvers.voting.editing import parse_details
from resolvers.voting.svg import LARGEST, parse_picture
from resolvers.voting.texts import parse_name
from server.commands.files import STANDARD, decode, open_inside, read_text
from server.failures import Failed

COLUMNS = ("name", "description", "link", "imageUrl", "svg")
_COLUMN_NAMES = {column.lower(): column for column in COLUMNS}
_DELIMITERS = ",;\t"
_DECLARED_ENCODING = re.compile(rb"\s*<\?xml[^>]*\bencoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
_LOST_LETTER = "\ufffd"


@dataclass(frozen=True, slots=True)
class NewContender:
    """A contender to add, and where it was found: `line 3`, or a file's name."""

    place: str
    name: str
    svg: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folded(self) -> str:
        return voting_store.folded(self.name)


def read_contenders(source: Path, image_hosts: tuple[str, ...]) -> tuple[list[NewContender], list[str]]:
    """The contenders of a folder or a CSV file, and what is wrong with the others."""
    rows = _read_folder(source) if source.is_dir() else _read_table(source)
    contenders: dict[str, NewContender] = {}
    problems: list[str] = []
    for place, row in rows:
        try:
            contender = _parse(place, row, source, image_hosts)
        except InvalidInput as refused:
            where = f"{refused.path[-1]}: " if refused.path else ""
            problems.append(f"{place}: {where}{refused.message}")
            continue
        except Failed as failed:
            problems.append(f"{place}: {failed}")
            continue
        first = contenders.setdefault(contender.folded, contender)
        if first is not contender:
            problems.append(f"{place}: {contender.name} is already the name at {first.place}.")
    return list(contenders.values()), problems


def _read_folder(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """A row for each SVG file, in the order of their names. Hidden files and other kinds are left out."""
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() == ".svg" and not file.name.startswith("."))
    if not files:
        raise Failed(f"{folder} has no SVG files: their names must end with .svg.")
    for file in files:
        yield file.name, {"name": file.stem, "svg": file.name}


def _read_table(file: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The rows of a CSV file. The first line names the columns and shows the delimiter."""
    text = read_text(file)
    header = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=header.count)
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        columns = _parse_header(file, next(reader, []))
        line = reader.line_num + 1
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield f"line {line}", _row(line, columns, cells)
            line = reader.line_num + 1
    except csv.Error as error:
        raise Failed(f"{file} cannot be read as CSV: line {line}: {error}. Nothing was imported.") from None


def _parse_header(file: Path, cells: list[str]) -> list[str]:
    names = [cell.strip().lower().replace("_", "") for cell in cells]
    unknown = [cell for cell, name in zip(cells, names, strict=True) if name not in _COLUMN_NAMES]
    known = f"The first line names the columns: {', '.join(COLUMNS)}."
    if "name" not in names:
        raise Failed(f"{file} has no column name. {known}")
    if unknown:
        raise Failed(f"{file} has an unknown column {unknown[0].strip()!r}. {known}")
    if len(set(names)) < len(names):
        raise Failed(f"{file} has a column twice. {known}")
    return [_COLUMN_NAMES[name] for name in names]


def _row(line: int, columns: list[str], cells: list[str]) -> dict[str, str]:
    if len(cells) > len(columns):
        raise Failed(
            f"line {line}: it has {len(cells)} cells for {len(columns)} columns. Put texts that contain the delimiter "
            "in quotation marks. Nothing was imported."
        )
    return {column: cell.strip() for column, cell in zip(columns, cells, strict=False) if cell.strip()}


def _parse(place: str, row: Mapping[str, str], source: Path, image_hosts: tuple[str, ...]) -> NewContender:
    for column, text in row.items():
        if _LOST_LETTER in text or "\x00" in text:
            raise InvalidInput("A letter was lost when this file was converted. Export it again.", path=(column,))
    name = row.get("name", "")
    if source.is_dir():
        name = in_form("NFC", name)  # some file systems take accents apart
    details = parse_details(image_hosts, row.get("description"), row.get("link"), row.get("imageUrl"))
    svg = parse_picture(_read_svg(source, row["svg"])) if "svg" in row else None
    return NewContender(place, parse_name(name), svg, details)


def _read_svg(source: Path, name: str) -> str:
    """The text of an SVG file in the folder, or beside the CSV file or below: no other may be read by naming it."""
    folder = source if source.is_dir() else Path() if source == STANDARD else source.parent
    file = folder / name
    try:
        picture = open_inside(folder, name)
    except Failed as failed:
        raise Failed(f"svg: {failed}") from None
    with picture:
        data = picture.read(2 * LARGEST + 1)  # UTF-16 takes twice the bytes
    if len(data) > 2 * LARGEST:
        raise InvalidInput(f"{name} is larger than {LARGEST // 1024} KB.", path=("svg",))
    declared = _DECLARED_ENCODING.match(data)
    if declared is None:
        return decode(data, file)
    try:
        text = data.decode(codecs.lookup(declared[1].decode()).name)
        text.encode()  # UTF-7 and Python's own escapes can write half a character
    except (LookupError, UnicodeError):
        raise Failed(f"svg: {name} is not text in the encoding {declared[1].decode()}, which it declares.") from None
    return text
