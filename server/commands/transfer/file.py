"""The form of an export: JSON lines in gzip, so that `zcat` shows it.

    {"format":1,"layout":3,"ringside":"0.1.0"}
    {"bio":{"S":"…"},"pk":{"S":"USER#ada"},"sk":{"S":"PROFILE"}}        an item per line, sorted by its keys' bytes
    {"items":1,"changed":0,"sha256":"…"}                                the checksum of all the lines above

The file depends on the items alone, not on their engine or on the time: equal tables have equal files. `changed` is how
many items were written between the two last passes over the table: with 0 the file is the table of one moment.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any, BinaryIO, Final

import orjson

from datastore.layout import CURRENT_LAYOUT
from datastore.whole_table import BadLine, Row, parse_row, read_row
from server.failures import Failed

FORMAT: Final = 1
_LEVEL: Final = 6
_GZIP: Final = 31
"""zlib's code for gzip with the largest window."""
_BLOCK: Final = 2**18
_LONGEST_LINE: Final = 8 * 2**20
"""An item has 400 KB, and a character at most six bytes in JSON."""
_END: Final = re.compile(rb'\{"items":\d')


class BadExport(Failed):
    """The file is damaged, incomplete, or of another version; the message says where and what to do."""


@dataclass(frozen=True, slots=True)
class End:
    """The last line."""

    items: int
    changed: int
    sha256: str


def write_export(target: BinaryIO, rows: Iterable[Row], changed: int, advance: Callable[[int], None]) -> End:
    """Write an export of sorted rows; `advance` is told how many are written."""
    compress, checksum, items = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP), hashlib.sha256(), 0
    header = {"format": FORMAT, "layout": CURRENT_LAYOUT, "ringside": version("ringside")}
    block = bytearray(orjson.dumps(header) + b"\n")
    for row in rows:
        block += row.line + b"\n"
        items += 1
        if len(block) >= _BLOCK:
            checksum.update(block)
            target.write(compress.compress(block))
            block.clear()
            advance(items)
    checksum.update(block)
    end = End(items, changed, checksum.hexdigest())
    target.write(compress.compress(bytes(block) + orjson.dumps(asdict(end)) + b"\n"))
    target.write(compress.flush())
    advance(items)
    return end


def is_export(beginning: bytes) -> bool:
    """Whether a file may be an export, by its first bytes."""
    try:
        return zlib.decompressobj(_GZIP).decompress(beginning, 20).startswith(b'{"format":')
    except zlib.error:
        return False


class ExportReader:
    """Reads an export and checks all of it: BadExport names the place. After its rows, `end` is its last line.

    With `checked`, for a file that was read before, the items' own form is not checked again.
    """

    def __init__(self, source: BinaryIO, name: str, *, checked: bool = False) -> None:
        self._source = source
        self._name = name
        self._parse = read_row if checked else parse_row
        self._items = 0
        self.position = 0
        """In the file, in bytes."""
        self.end: End | None = None
        self._whole = False

    def rows(self) -> Iterator[Row]:
        lines, checksum = self._lines(), hashlib.sha256()
        header = next(lines, b"")
        self._check_header(header)
        checksum.update(header + b"\n")
        last: tuple[bytes, bytes] | None = None
        for line in lines:
            if _END.match(line):
                self._check_end(line, checksum.hexdigest())
                if next(lines, None) is not None:
                    raise self._damaged("something follows its end")
                if not self._whole:
                    break
                return
            row = self._row(line, last)
            last = row.pk, row.sk
            checksum.update(line + b"\n")
            self._items += 1
            yield row
        raise BadExport(
            f"{self._name} ends after {self._items:,} items, at byte {self.position:,}, before its end: it is "
            "incomplete. Run the export again, or copy its file again."
        )

    def _lines(self) -> Iterator[bytes]:
        """The lines without their breaks. Neither a block nor a line can fill the memory."""
        decompress, rest = zlib.decompressobj(_GZIP), b""
        while not decompress.eof and (compressed := self._source.read(_BLOCK)):
            self.position += len(compressed)
            while compressed and not decompress.eof:
                try:
                    rest += decompress.decompress(compressed, _BLOCK)
                except zlib.error as error:
                    raise self._damaged(f"it cannot be decompressed ({error})") from None
                compressed = decompress.unconsumed_tail
                *lines, rest = rest.split(b"\n")
                if len(rest) > _LONGEST_LINE:
                    raise self._damaged("a line is too long for an item")
                yield from lines
        self._whole = decompress.eof
        if self._whole and (rest or decompress.unused_data or self._source.read(1)):
            yield rest or b"after the end"

    def _row(self, line: bytes, last: tuple[bytes, bytes] | None) -> Row:
        try:
            row = self._parse(line)
        except BadLine as error:
            raise self._damaged(str(error)) from None
        if last is not None and (row.pk, row.sk) <= last:
            raise self._damaged("its items are not in order")
        return row

    def _check_header(self, line: bytes) -> None:
        if not line:
            raise BadExport(f"{self._name} is empty. Run the export again, or copy its file again.")
        header = _object(line)
        if not isinstance(header.get("format"), int):
            raise BadExport(f"{self._name} is not an export of `ringside export all`.")
        release = str(header.get("ringside", "unknown"))[:40]
        if header["format"] != FORMAT:
            raise BadExport(
                f"{self._name} has format {header['format']}, of Ringside {release}; this release reads format "
                f"{FORMAT}. Import it with that release."
            )
        if header.get("layout") != CURRENT_LAYOUT:
            raise BadExport(
                f"{self._name} holds a table of layout {header.get('layout')}, of Ringside {release}; this release has "
                f"layout {CURRENT_LAYOUT}. Import it with that release."
            )

    def _check_end(self, line: bytes, checksum: str) -> None:
        end = _object(line)
        try:
            self.end = End(int(end["items"]), int(end["changed"]), str(end["sha256"]))
        except (KeyError, TypeError, ValueError):
            raise self._damaged("its last line is not valid") from None
        if self.end.items != self._items:
            raise self._damaged(f"it has {self._items:,} items, and should have {self.end.items:,}")
        if self.end.sha256 != checksum:
            raise self._damaged("its checksum differs: items were changed")

    def _damaged(self, reason: str) -> BadExport:
        if not self._items:
            return BadExport(f"{self._name} is not an export of `ringside export all`, or is damaged: {reason}.")
        return BadExport(
            f"{self._name} is damaged after {self._items:,} items, before byte {self.position:,}: {reason}. Use "
            "another copy of it, or run the export again."
        )


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
