"""The form of an export, and the tables that exports read and imports fill.

An export is JSON lines in gzip, so that `zcat` shows it.

    {"format":1,"layout":1,"ringside":"0.1.0"}
    {"bio":{"S":"…"},"pk":{"S":"USER#ada"},"sk":{"S":"PROFILE"}}        an item per line, sorted by its keys' bytes
    {"items":1,"changed":0,"sha256":"…"}                                the checksum of all the lines above

The file depends on the items alone, not on their engine or on the time: equal tables have equal files. `changed` is how
many items were written between the two last passes over the table: with 0 the file is the table of one moment.

The embedded engine's table is read from a copy of one moment, by an engine of its own, so no transaction is half in an
export. Other engines have no such copy; `whole_table` says what that means.

| URL of `ringside copy`              | table                                                                  |
|-------------------------------------|------------------------------------------------------------------------|
| `embedded`, `embedded:FOLDER`       | the embedded engine's, in RINGSIDE_DATA or another folder              |
| `aws`                               | DynamoDB's, in the region of the settings                              |
| `http://127.0.0.1:8001`             | another engine's                                                       |
| any of them with `#NAME` at its end | of that name, not of RINGSIDE_TABLE                                    |
"""

import gzip
import hashlib
import io
import re
import shutil
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from gzip import GzipFile
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import orjson

from datastore.dynamo import BadLine, Table, declaration, parse_line
from datastore.whole.layout import CURRENT_LAYOUT
from resolvers.transfer.loop import Advance
from resolvers.transfer.readers import Row, Unreadable, json_lines
from server import Failed
from server.engine import EngineInUse, copy_file, required_binary, run_engine_async, table_file
from server.engine.folder import check_file, has_table
from server.engine.table import open_checked_table, open_unchecked_table, read_layout, validate_table
from server.settings import Settings
from server.settings.values import EMBEDDED, parse_engine

# ── tables ──

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{3,255}")


def at_place(settings: Settings, url: str) -> Settings:
    """The settings for the table that a URL of `ringside copy` names."""
    engine, _, name = url.partition("#")
    if "#" in url and not _NAME.fullmatch(name):
        raise Failed(
            f"{url} does not name a table: after # come 3 to 255 letters, digits, dots, dashes or underscores."
        )
    changes: dict[str, object] = {"table": name} if name else {}
    kind, _, folder = engine.partition(":")
    if kind.lower() == EMBEDDED and folder:
        changes |= {"dynamodb_url": EMBEDDED, "data": Path(folder)}
    else:
        try:
            changes["dynamodb_url"] = parse_engine(engine)
        except ValueError as error:
            raise Failed(
                f"{url} is not the URL of a table: {error}. Write embedded, embedded:FOLDER, aws, or an address such "
                "as http://127.0.0.1:8001, and #NAME after it for a table of another name."
            ) from None
    return settings.model_copy(update=changes)


def identity(settings: Settings) -> str:
    """The same text for the same table."""
    engine = f"{EMBEDDED}:{settings.data.resolve()}" if settings.embedded else settings.dynamodb_url
    return f"{engine}#{settings.table}"


@asynccontextmanager
async def table_to_read(settings: Settings, folder: Path) -> AsyncIterator[Table]:
    """A table to export; the embedded engine's as a copy in `folder`."""
    if not settings.embedded:
        async with open_checked_table(settings) as table:
            yield table
        return
    if not has_table(settings.data):
        raise Failed(
            f"There is no table in {settings.data}. Name the embedded engine's data folder, with RINGSIDE_DATA or in a "
            "copy's URL."
        )
    binary = required_binary(settings.data, settings.engine_binary)
    _copy(settings.data, folder)
    async with _embedded(settings, folder, binary) as table:
        await validate_table(table)
        yield table


def _copy(data: Path, folder: Path) -> None:
    """Copy the table of a data folder to another one, of which nothing else is kept."""
    check_file(table_file(data))  # or the copy would be said to be damaged
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    copy_file(table_file(data), table_file(folder))


@asynccontextmanager
async def _embedded(settings: Settings, folder: Path, binary: Path | None) -> AsyncIterator[Table]:
    """The table in a folder, by an engine of its own."""
    async with (
        run_engine_async(folder, binary) as engine,
        open_unchecked_table(settings.model_copy(update={"dynamodb_url": engine.url})) as table,
    ):
        yield table


@asynccontextmanager
async def table_to_fill(settings: Settings) -> AsyncIterator[Table]:
    """A table to import into. The embedded engine's is created; the service must not run on it."""
    if not settings.embedded:
        async with open_unchecked_table(settings) as table:
            await read_layout(table)
            yield table
        return
    try:
        async with _embedded(settings, settings.data, settings.engine_binary) as table:
            await declaration.create(table)
            await read_layout(table)
            yield table
    except EngineInUse as in_use:
        raise Failed(
            f"The table cannot be filled while process {in_use.pid} serves it. Stop that process first."
        ) from None


# ── file ──

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
