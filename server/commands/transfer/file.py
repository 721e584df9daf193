"""The form of an export: JSON lines in gzip, so that `zcat` shows it.

    {"format":1,"layout":3,"ringside":"0.1.0"}
    {"bio":{"S":"…"},"pk":{"S":"USER#ada"},"sk":{"S":"PROFILE"}}        an item per line, sorted by its keys' bytes
    {"items":1,"changed":0,"sha256":"…"}                                the checksum of all the lines above

The file depends on the items alone, not on their engine or on the time: equal tables have equal files. `changed` is how
many items were written between the two last passes over the table: with 0 the file is the table of one moment.
"""

from __future__ import annotations

import hashlib
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from gzip import GzipFile
from importlib.metadata import version
from typing import Any, BinaryIO, Final, cast

import orjson

from datastore.whole.layout import CURRENT_LAYOUT
from datastore.whole.table import (
    BadLine,
    TableRow,
    parse_row,
    read_row,
)
from resolvers.transfer.readers import Row
from resolvers.transfer.sources import Unreadable

FORMAT: Final = 1
_LEVEL: Final = 6
_BLOCK: Final = 2**18
_TOLD: Final = 1_000
_LONGEST_LINE: Final = 8 * 2**20
"""An item has 400 KB, and a character at most six bytes in JSON."""
_END: Final = re.compile(rb'\{"items":\d')


@dataclass(frozen=True, slots=True)
class End:
    """The last line."""

    items: int
    changed: int
    sha256: str


def write_export(target: BinaryIO, rows: Iterable[TableRow], changed: int, advance: Callable[[int], None]) -> End:
    """Write an export of sorted rows; `advance` is told how many are written."""
    header = {"format": FORMAT, "layout": CURRENT_LAYOUT, "ringside": version("ringside")}
    line, items = orjson.dumps(header) + b"\n", 0
    checksum = hashlib.sha256(line)
    zipped = cast("io.RawIOBase", GzipFile("", "wb", _LEVEL, target, mtime=0))
    with io.BufferedWriter(zipped, _BLOCK) as out:
        out.write(line)
        for items, row in enumerate(rows, 1):
            line = row.line + b"\n"
            checksum.update(line)
            out.write(line)
            if items % _TOLD == 0:
                advance(items)
        end = End(items, changed, checksum.hexdigest())
        out.write(orjson.dumps(asdict(end)) + b"\n")
    return end


def is_export(source: BinaryIO) -> bool:
    """Whether a file may be an export, by its first bytes."""
    try:
        return GzipFile(fileobj=source).read(10) == b'{"format":'
    except (OSError, EOFError, zlib.error):
        return False


class ExportReader:
    """Reads an export and checks all of it: Unreadable names the place. After its rows, `end` is its last line.

    With `checked`, for a file that was read before, the items' own form is not checked again.
    """

    def __init__(self, source: BinaryIO, name: str, *, checked: bool = False) -> None:
        source.seek(0)
        self._lines = GzipFile(fileobj=source)
        self._name = name
        self._parse = read_row if checked else parse_row
        self._number = 0
        """Of the line."""
        self.end: End | None = None

    def rows(self) -> Iterator[Row]:
        header = self._next_line()
        self._check_header(header)
        checksum, last = hashlib.sha256(header), (b"", b"")
        while not _END.match(line := self._next_line()):
            row = self._row(line, last)
            last = row.pk, row.sk
            checksum.update(line)
            yield Row(self._number, row, row.line)
        self._check_end(line, checksum.hexdigest())
        if self._next_line(at_end=True):
            raise self._damaged("something follows its end")

    def _next_line(self, *, at_end: bool = False) -> bytes:
        """With its break. Neither a block nor a line can fill the memory."""
        self._number += 1
        try:
            line = self._lines.readline(_LONGEST_LINE)
        except EOFError:
            line, at_end = b"", False
        except (OSError, zlib.error) as error:
            raise self._damaged(f"it cannot be decompressed ({error})") from None
        if at_end or line.endswith(b"\n"):
            return line
        if len(line) == _LONGEST_LINE:
            raise self._damaged("a line is too long for an item")
        if self._number == 1:
            raise Unreadable(f"{self._name} is empty, or not an export of `ringside export all`.")
        raise Unreadable(
            f"{self._name} ends at line {self._number}, before its end: it is incomplete. Run the export again, or "
            "copy its file again."
        )

    def _row(self, line: bytes, last: tuple[bytes, bytes]) -> TableRow:
        try:
            row = self._parse(line[:-1])
        except BadLine as error:
            raise self._damaged(str(error)) from None
        if (row.pk, row.sk) <= last:
            raise self._damaged("its items are not in order")
        return row

    def _check_header(self, line: bytes) -> None:
        header = _object(line)
        if not isinstance(header.get("format"), int):
            raise Unreadable(f"{self._name} is not an export of `ringside export all`.")
        release = str(header.get("ringside", "unknown"))[:40]
        for found, own, what in (
            (header["format"], FORMAT, "has format"),
            (header.get("layout"), CURRENT_LAYOUT, "holds a table of layout"),
        ):
            if found != own:
                raise Unreadable(
                    f"{self._name} {what} {found}, of Ringside {release}; this release has {own}. Import it with that "
                    "release."
                )

    def _check_end(self, line: bytes, checksum: str) -> None:
        end, items = _object(line), self._number - 2
        try:
            self.end = End(int(end["items"]), int(end["changed"]), str(end["sha256"]))
        except (KeyError, TypeError, ValueError):
            raise self._damaged("its last line is not valid") from None
        if self.end.items != items:
            raise self._damaged(f"it has {items:,} items, and should have {self.end.items:,}")
        if self.end.sha256 != checksum:
            raise self._damaged("its checksum differs: items were changed")

    def _damaged(self, reason: str) -> Unreadable:
        return Unreadable(
            f"{self._name} is not an export of `ringside export all`, or is damaged at line {self._number}: {reason}. "
            "Use another copy of it, or run the export again."
        )


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
