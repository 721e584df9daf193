"""`ringside import comments` and `ringside export comments`: JSON Lines, one comment a line.

    {"product": "42", "language": "en", "rating": 5, "body": "Well made.", "author": "ada",
     "createdAt": "2026-11-20T20:00:00Z"}

`title`, `editedAt` and `status` may follow. `id` is what an export gives; without it, one is made of `createdAt` and
the line's content, so that a file imported twice brings every comment once.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import orjson
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from ulid import ULID

from datastore.comments import Comment, Status
from datastore.comments.counts import settle, unsettled
from datastore.comments.transfer import BATCH, bring, comments_after
from datastore.dynamo import BadKey, key_text
from datastore.dynamo.attributes import iso
from datastore.ids import is_ulid
from datastore.refusals import InvalidInput
from resolvers.comments import rules
from resolvers.comments.languages import language_tag
from resolvers.context import Services
from server.commands import Failed, err, out, with_house

AT_ONCE = 4
REMEMBERED = timedelta(days=30)
LONGEST_LINE = 200_000
_FIELDS = {"id", "product", "language", "rating", "title", "body", "author", "createdAt", "editedAt", "status"}


def import_comments(
    file: Annotated[Path, typer.Argument(help="JSON Lines; - reads from standard input.", allow_dash=True)],
) -> None:
    """Brings comments in. Interrupted, give the same command again: what is there is not counted twice."""
    with _opened(file) as (source, size):
        brought, lines = with_house(lambda services: bring_all(services, source, size))
    out.print(f"{lines:,} lines: {brought:,} comments are new, {lines - brought:,} were there.")


def export_comments(
    file: Annotated[Path, typer.Argument(help="Where to write JSON Lines. Comments that are there are kept.")],
    product: Annotated[str | None, typer.Option(help="Only this product's comments, oldest first.")] = None,
) -> None:
    """Writes comments to a file. Interrupted, give the same command again: it goes on behind the last whole line."""
    number = with_house(lambda services: write_all(services, file, product))
    out.print(f"{number:,} comments written to {file}.")


# ── import ──


@contextmanager
def _opened(file: Path) -> Iterator[tuple[BinaryIO, int | None]]:
    if str(file) == "-":
        with typer.get_binary_stream("stdin") as source:
            yield source, None
        return
    try:
        with file.open("rb") as source:
            yield source, file.stat().st_size
    except OSError as error:
        message = f"{file} cannot be read: {error.strerror}."
        raise Failed(message) from None


async def bring_all(services: Services, source: BinaryIO, size: int | None) -> tuple[int, int]:
    """How many comments were new, and how many lines there were."""
    brought = lines = 0
    until = services.clock() + REMEMBERED
    with _progress("importing", size) as advance:
        for batches in _batches(source, AT_ONCE):
            brought += sum(await asyncio.gather(*(bring(services.table, batch, until) for batch, _ in batches)))
            lines += sum(len(batch) for batch, _ in batches)
            advance(batches[-1][1])
    for product in await unsettled(services.table):
        await settle(services.table, product)
    return brought, lines


def _batches(source: BinaryIO, at_once: int) -> Iterator[list[tuple[list[Comment], int]]]:
    """Some batches to be written side by side, each with how far into the file it goes."""
    group: list[tuple[list[Comment], int]] = []
    batch: list[Comment] = []
    far = 0
    for number, line in enumerate(source, 1):
        far += len(line)
        if line.strip():
            batch.append(comment_of(line, number))
        if len(batch) == BATCH:
            group.append((batch, far))
            batch = []
        if len(group) == at_once:
            yield group
            group = []
    if batch:
        group.append((batch, far))
    if group:
        yield group


def comment_of(line: bytes, number: int) -> Comment:
    """The comment of a line, held to the same rules as one that is posted."""
    try:
        if len(line) > LONGEST_LINE:
            raise InvalidInput(f"it is longer than {LONGEST_LINE:,} bytes")  # noqa: TRY301 - all end in one message
        given = orjson.loads(line)
        if not isinstance(given, dict) or (unknown := sorted(given.keys() - _FIELDS)):
            known = f"it has fields that a comment has not: {', '.join(unknown)}" if isinstance(given, dict) else ""
            raise InvalidInput(known or "it is no JSON object")  # noqa: TRY301
        return _comment(given, line)
    except orjson.JSONDecodeError as error:
        message = f"Line {number} is not JSON: {error.msg}. What stands before it is imported."
        raise Failed(message) from None
    except InvalidInput as refused:
        where = f" ({refused.path[-1]})" if refused.path else ""
        message = f"Line {number} is no comment{where}: {refused.message} What stands before it is imported."
        raise Failed(message) from None


def _comment(given: Mapping[str, Any], line: bytes) -> Comment:
    created = _moment(given, "createdAt")
    ulid = _text(given, "id") if given.get("id") is not None else _made_id(created, line)
    if not is_ulid(ulid):
        raise InvalidInput("an id has 26 characters, as an export gives it.", path=("id",))
    author = _text(given, "author")
    try:
        key_text(author)
    except BadKey:
        author = ""
    if not 1 <= len(author) <= rules.LONGEST_PRODUCT:
        raise InvalidInput("an author is a member's id.", path=("author",))
    status = given.get("status") or Status.PUBLISHED
    if status not in tuple(Status):
        raise InvalidInput(f"a status is one of {', '.join(Status)}.", path=("status",))
    return Comment(
        product=rules.product_id(_text(given, "product"), ("product",)),
        ulid=ulid,
        language=language_tag(_text(given, "language"), ("language",)),
        rating=rules.rating_of(given.get("rating", 0), ("rating",)),
        body=rules.body_of(_text(given, "body")),
        author=author,
        title=rules.title_of(_text(given, "title") if given.get("title") is not None else None),
        edited_at=_moment(given, "editedAt"),
        held=None if status == Status.PUBLISHED else Status(status),
    )


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or "\x00" in value:
        raise InvalidInput("it must be a text.", path=(name,))
    return value


def _moment(given: Mapping[str, Any], name: str) -> datetime | None:
    if given.get(name) is None:
        return None
    try:
        moment = datetime.fromisoformat(_text(given, name))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or not 1971 <= moment.year <= 9000:  # noqa: PLR2004 - what an id can hold
        raise InvalidInput("a moment is written like 2026-11-20T20:00:00Z.", path=(name,))
    return moment.astimezone(UTC)


def _made_id(created: datetime | None, line: bytes) -> str:
    """The same for the same line, so that a second import finds it there."""
    if created is None:
        raise InvalidInput("a comment without an id needs the moment it was written.", path=("createdAt",))
    milliseconds = int(created.timestamp() * 1000).to_bytes(6, "big")
    return str(ULID(milliseconds + hashlib.sha256(line.strip()).digest()[:10]))


# ── export ──


async def write_all(services: Services, file: Path, product: str | None) -> int:
    """How many comments were written; those that the file holds already are kept."""
    if product is not None:
        product = rules.product_id(product, ("product",))
    try:
        last, size = _last_line(file)
        with file.open("ab") as target:
            target.truncate(size)
            return await _written(comments_after(services.table, product, last), target)
    except OSError as error:
        message = f"{file} cannot be written: {error.strerror}."
        raise Failed(message) from None


def _last_line(file: Path) -> tuple[Comment | None, int]:
    """The last comment that an earlier export wrote as a whole, and where it ends."""
    if not file.exists():
        return None, 0
    last, size = b"", 0
    with file.open("rb") as source:
        for line in source:
            if not line.endswith(b"\n"):
                break
            last, size = line, size + len(line)
    return (comment_of(last, 1) if last else None), size


async def _written(comments: AsyncIterator[Comment], target: BinaryIO) -> int:
    number = 0
    with _progress("exporting", None) as advance:
        async for one in comments:
            target.write(orjson.dumps(shown(one), option=orjson.OPT_APPEND_NEWLINE))
            number += 1
            advance(number)
    return number


def shown(one: Comment) -> dict[str, Any]:
    """A comment as a line of an export."""
    return {
        "id": one.ulid,
        "product": one.product,
        "language": one.language,
        "rating": one.rating,
        **({"title": one.title} if one.title is not None else {}),
        "body": one.body,
        "author": one.author,
        "createdAt": iso(one.created_at),
        **({"editedAt": iso(one.edited_at)} if one.edited_at is not None else {}),
        **({"status": one.status} if one.held is not None else {}),
    }


@contextmanager
def _progress(what: str, total: int | None) -> Iterator[Any]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)
