"""`ringside import comments` and `ringside export comments`: JSON Lines, one comment a line.

    {"product": "42", "language": "en", "rating": 5, "body": "Well made.", "author": "ada",
     "createdAt": "2026-11-20T20:00:00Z"}

`title`, `editedAt` and `status` are optional. An export also writes `id`; without it, the import derives one from
`createdAt` and the line's content, so importing a file twice adds every comment once.
"""

from __future__ import annotations

import codecs
import hashlib
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import orjson
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from ulid import ULID

from datastore.comments import Comment, Status, transfer
from datastore.dynamo import BadKey, iso, key_text
from datastore.ids import first_id, is_ulid
from datastore.refusals import InvalidInput
from resolvers.comments import rules
from resolvers.comments.languages import parse_language
from resolvers.context import Services
from server.commands import err, out
from server.commands.files import STANDARD, open_input, open_output, owner_only
from server.commands.running import run_with_services
from server.engine.folder import refuse_own_file
from server.failures import Failed

BATCH_LIFETIME = timedelta(days=30)
LONGEST_LINE = 200_000
_FIELDS = {"id", "product", "language", "rating", "title", "body", "author", "createdAt", "editedAt", "status"}
_LINE_START = b'{"id":"'
"""How each line of an export begins."""
_YEARS = range(1971, 9001)
"""Years whose moments fit into an id, in UTC."""
_FIRST_ID = first_id(datetime(_YEARS.start, 1, 1, tzinfo=UTC))
_END_OF_IDS = first_id(datetime(_YEARS.stop, 1, 1, tzinfo=UTC))


def import_comments(
    file: Annotated[Path, typer.Argument(help="JSON Lines; - reads standard input.", allow_dash=True)],
) -> None:
    """Imports comments. Safe to run again after an interruption: no comment is counted twice."""
    with open_input(file) as (source, size):
        imported = run_with_services(lambda services: import_lines(services, source, size))
    existing = imported.read - imported.new - imported.left_out
    out.print(f"{imported.read:,} comments read: {imported.new:,} are new, {existing:,} existed already.")
    if imported.left_out:
        out.print(f"{imported.left_out:,} were written by erased members and left out.")


def export_comments(
    file: Annotated[
        Path, typer.Argument(help="The file to write, JSON Lines, or an export to continue; - prints.", allow_dash=True)
    ] = STANDARD,
    product: Annotated[str | None, typer.Option(help="Only the comments on this product, oldest first.")] = None,
) -> None:
    """Exports comments to a file. If run again after an interruption, it continues after the last complete line."""
    number = run_with_services(lambda services: export_lines(services, file, product))
    err.print(f"{number:,} comments written.")


# ── import ──


async def import_lines(services: Services, source: BinaryIO, size: int | None) -> transfer.Imported:
    """Import the comments up to the first invalid line, which then fails the command."""
    reader = _Reader(source)
    expires = services.clock() + BATCH_LIFETIME
    with _progress_bar("importing", size) as advance:
        once = services.once()
        try:
            imported = await transfer.import_comments(
                services.table, reader.comments(), expires, once, lambda: advance(reader.position)
            )
        except transfer.IdTaken as taken:
            raise _invalid(
                reader.line_of(taken.comment),
                "`id`: A comment on another product has it. Leave `id` out, and one is derived from `createdAt`.",
            ) from None
    if reader.error is not None:
        raise reader.error
    return imported


class _Reader:
    """Reads comments from lines. `position` is in bytes; `error` is the invalid line that ended the reading."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self.position = 0
        self.error: Failed | None = None
        self._numbers: deque[tuple[int, str]] = deque(maxlen=transfer.AT_ONCE)
        """The lines that are being imported, and their comments."""

    def comments(self) -> Iterator[Comment]:
        for number, line in enumerate(self._source, 1):
            self.position += len(line)
            text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if text.strip():
                try:
                    comment = parse_comment(text, number)
                except Failed as error:
                    self.error = error
                    return
                self._numbers.append((number, comment.node_key))
                yield comment

    def line_of(self, comment: Comment) -> int:
        return next(number for number, node_key in self._numbers if node_key == comment.node_key)


def parse_comment(line: bytes, number: int) -> Comment:
    """Apply the rules for a comment that a member posts; Failed if the line breaks one."""
    try:
        return _parse_fields(_parse_object(line), line)
    except orjson.JSONDecodeError as error:
        raise Failed(f"Line {number} is not JSON: {error.msg}. Earlier lines were imported.") from None
    except InvalidInput as refused:
        where = f"`{refused.path[-1]}`: " if refused.path else ""
        raise _invalid(number, f"{where}{refused.message}") from None


def _invalid(number: int, reason: str) -> Failed:
    return Failed(f"Line {number} is not a valid comment: {reason} Earlier lines were imported.")


def _parse_object(line: bytes) -> Mapping[str, Any]:
    if len(line) > LONGEST_LINE:
        raise InvalidInput(f"It is longer than {LONGEST_LINE:,} bytes.")
    fields = orjson.loads(line)
    if not isinstance(fields, dict):
        raise InvalidInput("It is not a JSON object.")
    if unknown := sorted(fields.keys() - _FIELDS):
        raise InvalidInput(f"It has unknown fields: {', '.join(unknown)}.")
    return fields


def _parse_fields(fields: Mapping[str, Any], line: bytes) -> Comment:
    created_at = _parse_moment(fields, "createdAt")
    ulid = _parse_text(fields, "id") if fields.get("id") is not None else _derive_id(created_at, line)
    if not is_ulid(ulid):
        raise InvalidInput("An id has 26 characters, as in an export.", path=("id",))
    if not _FIRST_ID <= ulid < _END_OF_IDS:
        raise InvalidInput(
            f"An id begins with its time, which must be in the years {_YEARS[0]} to {_YEARS[-1]}.", path=("id",)
        )
    return Comment(
        product=rules.validate_product(_parse_text(fields, "product"), ("product",)),
        ulid=ulid,
        language=parse_language(_parse_text(fields, "language"), ("language",)),
        rating=rules.validate_rating(fields.get("rating", 0), ("rating",)),
        body=rules.validate_body(_parse_text(fields, "body")),
        author=_parse_author(fields),
        title=rules.validate_title(_parse_text(fields, "title") if fields.get("title") is not None else None),
        edited_at=_parse_moment(fields, "editedAt"),
        held=_parse_held(fields),
    )


def _parse_author(fields: Mapping[str, Any]) -> str:
    author = _parse_text(fields, "author")
    try:
        key_text(author)
    except BadKey:
        author = ""
    if not 1 <= len(author) <= rules.LONGEST_PRODUCT:
        raise InvalidInput("An author is a member's id.", path=("author",))
    return author


def _parse_held(fields: Mapping[str, Any]) -> Status | None:
    status = fields.get("status") or Status.PUBLISHED
    if status not in tuple(Status):
        raise InvalidInput(f"A status is one of {', '.join(Status)}.", path=("status",))
    return None if status == Status.PUBLISHED else Status(status)


def _parse_text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or "\x00" in value:
        raise InvalidInput("It must be text.", path=(name,))
    return value


def _parse_moment(fields: Mapping[str, Any], name: str) -> datetime | None:
    if fields.get(name) is None:
        return None
    try:
        moment = datetime.fromisoformat(_parse_text(fields, name))
        in_utc = moment.astimezone(UTC) if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        in_utc = None
    if in_utc is None or in_utc.year not in _YEARS:
        raise InvalidInput("A time is written like 2026-11-20T20:00:00Z.", path=(name,))
    return in_utc


def _derive_id(created_at: datetime | None, line: bytes) -> str:
    """The same id for the same line, so that a second import finds the comment."""
    if created_at is None:
        raise InvalidInput("A comment without an id needs the time it was written.", path=("createdAt",))
    milliseconds = int(created_at.timestamp() * 1000).to_bytes(6, "big")
    return str(ULID(milliseconds + hashlib.sha256(line.strip()).digest()[:10]))


# ── export ──


async def export_lines(services: Services, file: Path, product: str | None) -> int:
    """Append the comments that the file does not have yet; return their number."""
    if product is not None:
        product = rules.validate_product(product, ("product",))
    if file == STANDARD:
        with open_output(file) as target:
            return await _write_lines(transfer.export_comments(services.table, product, None), target)
    refuse_own_file(file)
    try:
        ends, size = _read_ends(file)
        if ends is not None and not await _is_same_export(services, product, *ends):
            raise Failed(f"{file} is an export of other comments, or may be one. Export to another file.")
        last = None if ends is None else ends[1]
        with _open_end(file, size) as target:
            return await _write_lines(transfer.export_comments(services.table, product, last), target)
    except OSError as error:
        raise Failed(f"{file} cannot be written: {error.strerror}.") from None


async def _is_same_export(services: Services, product: str | None, first: Comment, last: Comment) -> bool:
    """Whether comments from `first` to `last` are how the export begins. If they are not, continuing skips some."""
    if product is not None:
        return first.product == last.product == product
    # Those on one product may be an export of that product.
    return first.product != last.product or await transfer.begins_with(services.table, first.product)


def _read_ends(file: Path) -> tuple[tuple[Comment, Comment] | None, int]:
    """The first and last comment that an earlier export wrote completely, and the position where its lines end."""
    if not file.exists():
        return None, 0
    first, last, rest, size = b"", b"", b"", 0
    with file.open("rb") as source:
        for line in source:
            if not line.endswith(b"\n"):
                rest = line
                break
            first, last, size = first or line, line, size + len(line)
    no_export = Failed(f"{file} does not begin and end with exported comments. Export to another file.")
    if not rest.startswith(_LINE_START[: len(rest)]):
        raise no_export
    if not last:
        return None, 0
    try:
        return (_parse_fields(_parse_object(first), first), _parse_fields(_parse_object(last), last)), size
    except (orjson.JSONDecodeError, InvalidInput):
        raise no_export from None


@contextmanager
def _open_end(file: Path, size: int) -> Iterator[BinaryIO]:
    """The file, to continue it at a position."""
    with open(file, "ab", opener=owner_only) as target:
        target.truncate(size)
        yield target


async def _write_lines(comments: AsyncIterator[Comment], target: BinaryIO) -> int:
    number = 0
    with _progress_bar("exporting", None) as advance:
        async for comment in comments:
            target.write(orjson.dumps(_fields(comment), option=orjson.OPT_APPEND_NEWLINE))
            number += 1
            advance(number)
    return number


def _fields(comment: Comment) -> dict[str, Any]:
    """A comment as a line of an export."""
    return {
        "id": comment.ulid,
        "product": comment.product,
        "language": comment.language,
        "rating": comment.rating,
        **({"title": comment.title} if comment.title is not None else {}),
        "body": comment.body,
        "author": comment.author,
        "createdAt": iso(comment.created_at),
        **({"editedAt": iso(comment.edited_at)} if comment.edited_at is not None else {}),
        **({"status": comment.status} if comment.held is not None else {}),
    }


@contextmanager
def _progress_bar(description: str, total: int | None) -> Iterator[Any]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task(description, total=total)
        yield lambda completed: progress.update(task, completed=completed)
