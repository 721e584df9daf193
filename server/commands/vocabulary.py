"""`ringside import words`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from resolvers.context import Services
from server.commands import err, out
from server.commands.files import STANDARD
from server.commands.running import run_with_services
from server.commands.word_csv import ImportSummary, import_words
from server.failures import Failed

_BAD_ROWS_SHOWN = 20


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
    summary = run_with_services(lambda services: _import(services, file, name or file.stem, level))
    out.print(f"{summary.added:,} words added to {summary.name}, {summary.existing:,} existed already.")
    if not summary.bad:
        return
    if report is not None:
        summary.write_report(report)
    for row in summary.bad[:_BAD_ROWS_SHOWN]:
        err.print(f"line {row.line}: {row.reason}", style="red")
    more = f"; {report} has all of them" if report else f", the first {_BAD_ROWS_SHOWN} are shown; see --report"
    raise Failed(f"{len(summary.bad):,} rows were skipped{more}.")


async def _import(services: Services, file: Path, name: str, level: int | None) -> ImportSummary:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(f"Words of {file.name}", total=None)

        def show(completed: int, total: int) -> None:
            bar.update(task, completed=completed, total=total)

        return await import_words(services, file, name, level, show)
