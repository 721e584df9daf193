"""`ringside import`: readers, and the stores that they fill. docs/imports.md describes the formats."""

from collections.abc import Callable, Iterable, Sequence
from csv import writer
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from datastore.voting.boards import MAIN
from resolvers.comments.other_systems.files import READERS
from resolvers.comments.other_systems.store import OtherSystemStore, Product
from resolvers.comments.other_systems.threads import in_threads
from resolvers.comments.transfer import CommentStore
from resolvers.pickem.season_files import SeasonStore, season_rows
from resolvers.requests.context import Services
from resolvers.transfer.loop import Imported, OnProblem, Problem, Store, import_records
from resolvers.transfer.readers import Row, csv_rows, json_lines, svg_folder
from resolvers.values.languages import parse_language
from resolvers.vocabulary import transfer as vocabulary
from resolvers.voting import transfer as voting
from server import Failed
from server.commands import err, out
from server.commands.files import STANDARD, named_input, open_input, progress_bar, read_text, write_text
from server.commands.running import run_with_services
from server.commands.whole_table import import_all

_PROBLEMS_SHOWN = 20
_NOTHING = "Nothing was imported."
app = typer.Typer()
imports = typer.Typer(help="Import data from files. Existing data is left alone.", no_args_is_help=True)
app.add_typer(imports, name="import")
imports.command("all")(import_all)


@imports.command()
def events(
    file: Annotated[
        Path,
        typer.Argument(
            allow_dash=True, help="A season file, as `ringside export events` writes it; - reads standard input."
        ),
    ],
) -> None:
    """Imports a season's cards. Existing events are left alone, so the same file can be imported again."""
    try:
        document = orjson.loads(read_text(file))
    except orjson.JSONDecodeError as error:
        raise Failed(f"{file} is not JSON: {error}.") from None
    imported = _import("events", list(season_rows(document)), SeasonStore, OnProblem.REFUSE)
    _require_valid(imported.problems, "events", _NOTHING)
    out.print(f"{imported.added} events were created, {imported.existing} existed already.")


@imports.command()
def words(
    file: Annotated[
        Path,
        typer.Argument(
            allow_dash=True,
            help="CSV with the columns definition and term or simplified; - reads stdin.",
        ),
    ],
    name: Annotated[str | None, typer.Option("--list", help="The public list; by default the file's name.")] = None,
    level: Annotated[int | None, typer.Option(min=0, max=100, help="The level of a list that is created.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write the rows that were skipped to this CSV file.")] = None,
) -> None:
    """Adds the words of a CSV file to a public list, which is created if it does not exist.

    A word of any language has the column term and may have reading, example, audioUrl; a Chinese one may have
    simplified, traditional, pinyin in their place. The first line names the columns.

    Words that the list already has, or that were removed from it, are not added again. Exit code 1 if invalid rows were
    skipped.
    """
    if file == STANDARD and name is None:
        raise Failed("Name the list with --list: standard input has no name.")
    target = name or file.stem
    open_store = partial(vocabulary.WordStore, find_list=partial(vocabulary.ensure_list, name=target, level=level))
    imported = _import("words", read_words(file), open_store, OnProblem.SKIP)
    out.print(f"{imported.added:,} words added to {target}, {imported.existing:,} existed already.")
    if imported.problems and report is not None:
        _write_report(report, imported.problems)
    consequence = f"{report} has them all." if report else "See --report."
    _require_valid(imported.problems, "rows", f"They were skipped. {consequence}")


def read_words(file: Path) -> list[Row]:
    return list(csv_rows(read_text(file), f"{file}", vocabulary.COLUMNS, vocabulary.REQUIRED, others=True))


def _write_report(path: Path, problems: Sequence[Problem]) -> None:
    report = StringIO(newline="")
    rows = writer(report)
    rows.writerow(["line", "reason", *vocabulary.COLUMNS])
    for row, message in problems:
        rows.writerow([row.number, message, *(row.fields.get(column, "") for column in vocabulary.COLUMNS)])
    write_text(path, report.getvalue())


@imports.command()
def contenders(
    source: Annotated[
        Path,
        typer.Argument(
            allow_dash=True,
            metavar="FOLDER|CSV",
            help="A folder of SVG files, or CSV with the columns name and, optionally, description, link, imageUrl, "
            "svg (a file next to it); - reads CSV from stdin.",
        ),
    ],
    board: Annotated[str, typer.Option(help="The board to add them to.")] = MAIN,
) -> None:
    """Adds many contenders to a board. Safe to run again: existing ones, even renamed, are left as they are."""
    rows, folder = read_contenders(source)
    open_store = partial(voting.ContenderStore, board=board, folder=folder)
    imported = _import("contenders", rows, open_store, OnProblem.REFUSE)
    _require_valid(imported.problems, "contenders", _NOTHING)
    out.print(f"{imported.added:,} contenders added to {board}, {imported.existing:,} existed already.")


def read_contenders(source: Path) -> tuple[list[Row], Path]:
    """The rows, and the folder in which their pictures are: that of a CSV file, or the present one."""
    if source.is_dir():
        return list(svg_folder(source)), source
    rows = csv_rows(read_text(source), f"{source}", voting.COLUMNS, [("name",)], others=False)
    return list(rows), Path() if source == STANDARD else source.parent


@imports.command()
def comments(
    file: Annotated[Path, typer.Argument(help="JSON Lines; - reads standard input.", allow_dash=True)],
) -> None:
    """Imports comments. Safe to run again after an interruption: no comment is counted twice."""
    with open_input(file) as (source, size):
        place = source.tell if size else None
        imported = _import("comments", json_lines(source), CommentStore, OnProblem.STOP, size, place)
    _tell_of_comments(imported)
    _require_valid(imported.problems, "lines", "Earlier lines were imported.")


def _of_other_system(name: str, what: str) -> None:
    """Add the command that imports what another system has exported."""
    text = f"Imports comments of {what}, in their threads. Safe to run again: a comment that exists is left alone."

    @imports.command(name, help=text)
    def import_from(
        file: Annotated[
            Path,
            typer.Argument(
                allow_dash=True,
                help="What the other system has exported; all but a database may be compressed by gzip; - reads "
                "standard input.",
            ),
        ],
        product: Annotated[
            str,
            typer.Option(
                help="The product of a page: a text with {url}, {path} or {id}, such as {path}, which has no query."
            ),
        ],
        language: Annotated[str, typer.Option(help="The language of the comments, which no file names.")] = "en",
    ) -> None:
        try:
            open_store = partial(
                OtherSystemStore, system=name, product=Product(product), language=parse_language(language, ())
            )
            with named_input(file) as named:
                imported = _import("comments", in_threads(READERS[name](named)), open_store, OnProblem.SKIP)
        except OSError as error:
            raise Failed(f"{file} cannot be read: {error.strerror or error}.") from None
        _tell_of_comments(imported)
        _require_valid(imported.problems, "comments", "The others were imported.")


_SYSTEMS = {
    "disqus": "Disqus, from the XML that it sends",
    "wordpress": "WordPress, from the XML of Tools, Export",
    "remark42": "Remark42, from a backup",
    "isso": "Isso, from its database",
    "cusdis": "Cusdis, from its SQLite database",
    "commento": "Commento or Comentario, from the JSON of an export",
}
for _system in _SYSTEMS.items():
    _of_other_system(*_system)


def _tell_of_comments(imported: Imported) -> None:
    out.print(f"{imported.read:,} comments read: {imported.added:,} are new, {imported.existing:,} existed already.")
    for altered in imported.altered:
        out.print(f"{altered}")
    if imported.left_out:
        out.print(f"{imported.left_out:,} were written by erased members and left out.")


def _import(
    noun: str,
    rows: Iterable[Row],
    open_store: Callable[[Services], Store[Any]],
    on_problem: OnProblem,
    total: int | None = None,
    place: Callable[[], int] | None = None,
) -> Imported:
    """Import rows: all of them are known, or how far the reader has come shows the progress."""

    async def run(services: Services) -> Imported:
        known = len(rows) if isinstance(rows, list) else total
        with progress_bar(noun, known) as advance:
            tell = advance if place is None else lambda _: advance(place())
            return await import_records(rows, open_store(services), on_problem, tell)

    return run_with_services(run, begins_table=True)


def _require_valid(problems: Sequence[Problem], noun: str, consequence: str) -> None:
    """Show the first problems, and fail if there are any."""
    if not problems:
        return
    for problem in problems[:_PROBLEMS_SHOWN]:
        err.print(f"{problem}", style="red")
    more = f", the first {_PROBLEMS_SHOWN} are shown" if len(problems) > _PROBLEMS_SHOWN else ""
    raise Failed(f"Not valid: {len(problems):,} {noun}{more}. {consequence}")
