"""`ringside board reshard`."""

from __future__ import annotations

from typing import Annotated

import typer

from datastore.dynamo import Table
from datastore.voting import boards as board_store
from datastore.voting.boards import MAIN
from server import Failed
from server.commands import out
from server.commands.running import run_with_services

app = typer.Typer()
boards = typer.Typer(help="Boards: how they count votes.", no_args_is_help=True)
app.add_typer(boards, name="board")


@boards.command()
def reshard(
    slug: Annotated[str, typer.Argument(help="The board.")] = MAIN,
    votes_per_second: Annotated[
        int, typer.Option(min=1, max=100_000, help="The rate of votes to prepare for.")
    ] = board_store.DEFAULT_RATE,
) -> None:
    """Sets the number of shards of a board's counters for a rate of votes. Safe while people vote."""
    shards = run_with_services(lambda services: _reshard(services.table, slug, votes_per_second))
    out.print(f"Votes on {slug} are counted in {shards} shard{'s' if shards > 1 else ''} from now on.")


async def _reshard(table: Table, slug: str, rate: int) -> int:
    marked = await board_store.read_board_with_marks(table, slug)
    if marked is None:
        raise Failed(f"There is no board called {slug}.")
    return await board_store.reshard(table, marked.board, rate)
