"""The form of an export: JSON lines in gzip, so that `zcat` shows it.

    {"format":1,"layout":3,"ringside":"0.1.0"}
    {"bio":{"S":"…"},"pk":{"S":"USER#ada"},"sk":{"S":"PROFILE"}}        an item per line, sorted by its keys' bytes
    {"items":1,"changed":0,"sha256":"…"}                                the checksum of all the lines above

The file depends on the items alone, not on their engine or on the time: equal tables have equal files. `changed` is how
many items were written between the two last passes over the table: with 0 the file is the table of one moment.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from gzip import GzipFile
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import orjson

from datastore.whole.layout import CURRENT_LAYOUT
from datastore.whole.table import BadLine, parse_line
from resolvers.transfer.loop import Advance
from resolvers.transfer.readers import Row, json_lines
from resolvers.transfer.sources import Unreadable

FORMAT: Final = 1
_LEVEL: Final = 6
_BLOCK: Final = 2**18
_TOLD: Final = 1_000
_LONGEST_LINE: Final = 8 * 2**20
"""An item has 400 KB, and a character at most six bytes in JSON."""
_END: Final = {"items", "changed", "sha256"}


@dataclass(frozen=True, slots=True)
class End:
    """The last line."""

    items: int
    changed: int
    sha256: str


def write_export(target: BinaryIO, lines: Iterable[bytes], changed: int, advance: Advance) -> End:
    """Write an export of sorted items; `advance` is told how many are written."""
    header = {"format": FORMAT, "layout": CURRENT_LAYOUT, "ringside": version("ringside")}
    line, items = orjson.dumps(header) + b"\n", 0
    checksum = hashlib.sha256(line)
    zipped = cast("io.RawIOBase", GzipFile("", "wb", _LEVEL, target, mtime=0))
    with io.BufferedWriter(zipped, _BLOCK) as out:
        out.write(line)
        for items, item in enumerate(lines, 1):
            line = item + b"\n"
            checksum.update(line)
            out.write(line)
            if items % _TOLD == 0:
                advance(items, title="writing the file")
        end = End(items, changed, checksum.hexdigest())
        out.write(orjson.dumps(asdict(end)) + b"\n")
    return end


def is_export(source: Path | BinaryIO) -> bool:
    """Whether a file may be an export, by its first bytes."""
    try:
        with gzip.open(source) as lines:
            return lines.read(10) == b'{"format":'
    except (OSError, EOFError, zlib.error):
        return False


class ExportReader:
    """Reads an export and checks all of it: Unreadable names the place. After its rows, `end` is its last line.

    With `checked`, for a file that was read before, the items' own form is not checked again.
    """

    def __init__(self, source: BinaryIO, name: str, *, checked: bool = False) -> None:
        source.seek(0)
        self._source = source
        self._name = name
        self._checked = checked
        self._line = 0
        self.end: End | None = None

    def rows(self) -> Iterator[Row]:
        lines = self._lines()
        header = next(lines, None)
        if header is None:
            raise Unreadable(f"{self._name} is empty, or not an export of `ringside export all`.")
        self._check_header(header.fields)
        checksum = hashlib.sha256(header.raw + b"\n")
        for row in lines:
            if row.fields.keys() == _END:
                self._check_end(row.fields, checksum.hexdigest())
                break
            self._check_item(row.raw)
            checksum.update(row.raw + b"\n")
            yield row
        else:
            raise self._incomplete()
        if next(lines, None) is not None:
            raise self._damaged("something follows its end")

    def _lines(self) -> Iterator[Row]:
        """As far as they can be decompressed and are JSON. Neither a block nor a line can fill the memory."""
        try:
            for row in json_lines(cast("BinaryIO", GzipFile(fileobj=self._source)), _LONGEST_LINE):
                self._line = row.number
                if row.problem is not None:
                    raise self._damaged(row.problem)
                yield row
        except EOFError:
            raise self._incomplete() from None
        except (OSError, zlib.error) as error:
            raise self._damaged(f"it cannot be decompressed ({error})") from None

    def _check_item(self, line: bytes) -> None:
        try:
            if not self._checked:
                parse_line(line)
        except BadLine as error:
            raise self._damaged(str(error)) from None

    def _check_header(self, header: Mapping[str, Any]) -> None:
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

    def _check_end(self, end: Mapping[str, Any], checksum: str) -> None:
        items = self._line - 2
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
            f"{self._name} is not an export of `ringside export all`, or is damaged at line {self._line}: "
            f"{reason.rstrip('.')}. Use another copy of it, or run the export again."
        )

    def _incomplete(self) -> Unreadable:
        return Unreadable(
            f"{self._name} ends at line {self._line}, before its end: it is incomplete. Run the export again, or copy "
            "its file again."
        )
