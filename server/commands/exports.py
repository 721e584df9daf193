"""`ringside export`."""

import fcntl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, BinaryIO

import orjson
import typer

from datastore.comments.records import Comment
from datastore.dynamo import BadKey, key_text
from datastore.refusals import InvalidInput
from resolvers.comments import transfer as comment_transfer
from resolvers.comments.rules import validate_product
from resolvers.pickem.rules import validate_season
from resolvers.pickem.season_files import read_season_events, season_document
from resolvers.requests.context import Services
from resolvers.transfer.loop import export_records
from resolvers.values.node_ids import parse_node_key
from resolvers.voting.transfer import open_votes
from resolvers.whole.exporting import file_lines
from server import Failed
from server.commands import err
from server.commands.files import STANDARD, open_output, owner_only, progress_bar, write_text
from server.commands.running import run_with_services
from server.commands.whole_table import export_all
from server.engine.folder import refuse_own_file

app = typer.Typer()
exports = typer.Typer(help="Export data to files.", no_args_is_help=True)
app.add_typer(exports, name="export")
exports.command("all")(export_all)
File = Annotated[Path, typer.Argument(help="The file to write; - prints.", allow_dash=True)]


@exports.command()
def member(
    user: Annotated[str, typer.Argument(help="Their `id` as the API shows it, or as other exports do.")],
    file: File = STANDARD,
) -> None:
    """Exports everything that is stored about a member as lines of JSON; the first explains the others."""
    key = _parse_member(user)

    async def lines(services: Services) -> AsyncIterator[bytes]:
        found = file_lines(services.table, key, services.clock().isoformat())
        header, first = await anext(found), await anext(found, None)
        if first is None:
            raise Failed(f"Nothing is stored about {user[:80]!r}: nobody has this id, or the member was erased.")
        return _with_first([header, first], found)

    err.print(f"{_write(file, lines):,} lines.")


def _parse_member(text: str) -> str:
    with suppress(InvalidInput):
        return parse_node_key("User", text)
    try:
        return key_text(text)
    except BadKey:
        raise Failed(f"{text!r} is not a member's id: it is empty, or holds a # or a control character.") from None


async def _with_first(first: Iterable[bytes], rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    for line in first:
        yield line
    async for line in rest:
        yield line


@exports.command()
def events(
    file: File = STANDARD,
    season: Annotated[str | None, typer.Option(help="Only the events of this season.")] = None,
) -> None:
    """Exports cards and results as a season file, oldest event first."""
    name = None if season is None else validate_season(season)
    cards = run_with_services(lambda services: read_season_events(services.table, name))
    if name is not None and not cards:
        raise Failed(f"There is no event of the season {season}.")
    indented = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    write_text(file, orjson.dumps(season_document(cards), option=indented).decode())


@exports.command()
def votes(
    file: File = STANDARD,
    board: Annotated[str | None, typer.Option(help="Only the votes on this board.")] = None,
) -> None:
    """Exports every vote as a line of JSON: voter, board, pair, verdict, time, and whether it was voided."""
    count = _write(file, lambda services: open_votes(services.table, board))
    err.print(f"{count} votes.")


@exports.command()
def comments(
    file: Annotated[
        Path, typer.Argument(help="The file to write, JSON Lines, or an export to continue; - prints.", allow_dash=True)
    ] = STANDARD,
    product: Annotated[str | None, typer.Option(help="Only the comments on this product, oldest first.")] = None,
) -> None:
    """Exports comments to a file. If run again after an interruption, it continues after the last complete line."""
    number = run_with_services(lambda services: write_comments(services, file, product))
    err.print(f"{number:,} comments written.")


def _write(file: Path, open_lines: Callable[[Services], Awaitable[AsyncIterator[bytes]]]) -> int:
    """Write lines, and return their number. If what is wanted does not exist, the file stays as it is."""

    async def write(services: Services) -> int:
        lines = await open_lines(services)
        with open_output(file) as target:
            return await _write_lines(lines, target)

    return run_with_services(write)


async def _write_lines(lines: AsyncIterator[bytes], target: BinaryIO) -> int:
    with progress_bar("lines") as advance:
        return await export_records(lines, target, advance)


async def write_comments(services: Services, file: Path, product: str | None) -> int:
    """Append the comments that the file does not have yet; return their number."""
    if product is not None:
        product = validate_product(product, ("product",))
    if file != STANDARD:
        refuse_own_file(file)
    if _is_stream(file):
        with open_output(file) as target:
            return await _write_lines(comment_transfer.comment_lines(services.table, product, None), target)
    try:
        with _open_alone(file) as target:
            ends, size = _read_ends(file, target)
            if ends is not None and not await comment_transfer.is_same_export(services.table, product, *ends):
                raise Failed(f"{file} is an export of other comments, or may be one. Export to another file.")
            target.truncate(size)
            target.seek(size)
            last = None if ends is None else ends[1]
            return await _write_lines(comment_transfer.comment_lines(services.table, product, last), target)
    except OSError as error:
        raise Failed(f"{file} cannot be written: {error.strerror}.") from None


def _is_stream(file: Path) -> bool:
    """Whether it is standard output, a pipe or a device, which hold no earlier export."""
    return file == STANDARD or (file.exists() and not file.is_file())


@contextmanager
def _open_alone(file: Path) -> Iterator[BinaryIO]:
    """The file, to write at its end. Failed if another export does: what it has written of a line is no remnant."""
    with open(file, "a+b", opener=owner_only) as target:
        try:
            fcntl.flock(target, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failed(f"Another export is writing {file}. Wait for it, or choose another file.") from None
        yield target


def _read_ends(file: Path, source: BinaryIO) -> tuple[tuple[Comment, Comment] | None, int]:
    """The first and last comment that an earlier export wrote completely, and the position where its lines end.

    Some network file systems let nobody read what is locked but by its lock's own descriptor, which is `source`.
    """
    first, last, rest, size = b"", b"", b"", 0
    source.seek(0)
    for line in source:
        if not line.endswith(b"\n"):
            rest = line
            break
        first, last, size = first or line, line, size + len(line)
    no_export = Failed(f"{file} does not begin and end with exported comments. Export to another file.")
    if not rest.startswith(comment_transfer.LINE_START[: len(rest)]):
        raise no_export
    try:
        return (comment_transfer.parse_line(first), comment_transfer.parse_line(last)) if last else None, size
    except InvalidInput:
        raise no_export from None
