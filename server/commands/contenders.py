"""`ringside import contenders`: many contenders at once, from a folder of SVG files or a CSV file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from datastore import voting as voting_store
from datastore.refusals import Conflict
from datastore.voting import MAIN, ContenderChange
from resolvers.context import Services
from server.commands import err, out
from server.commands.contender_files import NewContender, read_contenders
from server.commands.running import run_with_services
from server.failures import Failed

_PROBLEMS_SHOWN = 20


def import_contenders(
    source: Annotated[
        Path,
        typer.Argument(
            allow_dash=True,
            metavar="FOLDER|CSV",
            help="A folder of SVG files, or CSV with the columns name and, optionally, description, link, imageUrl, "
            "svg (a file beside it); - reads CSV from stdin.",
        ),
    ],
    board: Annotated[str, typer.Option(help="The board to add them to.")] = MAIN,
) -> None:
    """Adds many contenders to a board. Safe to run again: existing ones, even renamed, are left as they are."""
    added, existing = run_with_services(lambda services: _import(services, source, board))
    out.print(f"{added:,} contenders added to {board}, {existing:,} existed already.")


async def _import(services: Services, source: Path, board: str) -> tuple[int, int]:
    """How many were added, and how many existed."""
    contenders, problems = read_contenders(source, services.policy.image_hosts)
    if problems:
        for problem in problems[:_PROBLEMS_SHOWN]:
            err.print(problem, style="red")
        more = f", the first {_PROBLEMS_SHOWN} are shown" if len(problems) > _PROBLEMS_SHOWN else ""
        raise Failed(f"{len(problems):,} contenders are not valid{more}. Nothing was imported.")
    if not voting_store.is_slug(board):
        raise Failed(f"There is no board called {board}.")
    known = await voting_store.read_known_names(services.table, board)
    new = [contender for contender in contenders if contender.folded not in known]
    added = 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        for contender in bar.track(new, description="contenders"):
            added += await _add(services, board, contender)
    return added, len(contenders) - added


async def _add(services: Services, board: str, contender: NewContender) -> bool:
    """Whether the contender is new. Its name may have been taken since the names were read."""
    now = services.clock()
    change = ContenderChange(
        services.ids.next(now), contender.name, contender.svg, details=contender.details, imported=True
    )
    try:
        await voting_store.add_contender(services.table, board, change, now, services.once())
    except Conflict as conflict:
        if conflict.path[-1:] != ("name",):
            raise
        return False
    return True
