"""`ringside board reshard` and `ringside export votes`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from datastore import voting as voting_store
from datastore.dynamo import Table, iso
from datastore.voting import MAIN, Board, PairVerdict, Vote
from server.commands import err, out
from server.commands.files import STANDARD, open_output
from server.commands.running import run_with_services
from server.failures import Failed

app = typer.Typer()
boards = typer.Typer(help="Boards: how they count votes.", no_args_is_help=True)
app.add_typer(boards, name="board")


@boards.command()
def reshard(
    slug: Annotated[str, typer.Argument(help="The board.")] = MAIN,
    votes_per_second: Annotated[
        int, typer.Option(min=1, max=100_000, help="The rate of votes to prepare for.")
    ] = voting_store.DEFAULT_RATE,
) -> None:
    """Sets the number of shards of a board's counters for a rate of votes. Safe while people vote."""
    shards = run_with_services(lambda services: _reshard(services.table, slug, votes_per_second))
    out.print(f"Votes on {slug} are counted in {shards} shard{'s' if shards > 1 else ''} from now on.")


async def _reshard(table: Table, slug: str, rate: int) -> int:
    return await voting_store.reshard(table, await _read_board(table, slug), rate)


async def _read_board(table: Table, slug: str) -> Board:
    marked = await voting_store.read_board_with_marks(table, slug)
    if marked is None:
        raise Failed(f"There is no board called {slug}.")
    return marked.board


def export_votes(
    file: Annotated[Path, typer.Argument(help="The file to write; - prints.", allow_dash=True)] = STANDARD,
    board: Annotated[str | None, typer.Option(help="Only the votes on this board.")] = None,
) -> None:
    """Exports every vote as a line of JSON: voter, board, pair, verdict, time, and whether it was voided."""
    count = run_with_services(lambda services: _export(services.table, board, file))
    err.print(f"{count} votes.")


async def _export(table: Table, board: str | None, file: Path) -> int:
    """The number of votes written."""
    if board not in (None, MAIN):  # which is created with its first contender
        await _read_board(table, board)
    with ExitStack() as stack:
        target = stack.enter_context(open_output(file))
        columns = (SpinnerColumn(), TextColumn("votes"), MofNCompleteColumn())
        bar = stack.enter_context(Progress(*columns, console=err, transient=True))
        task = bar.add_task("votes", total=None)
        count = 0
        async for line in _lines(table, board):
            target.write(orjson.dumps(line) + b"\n")
            count += 1
            bar.update(task, completed=count)
        return count


async def _lines(table: Table, only: str | None) -> AsyncIterator[dict[str, Any]]:
    names: dict[tuple[str, int], str] = {}
    for slug in await voting_store.every_slug(table):
        current = await voting_store.read_board_with_marks(table, slug)
        contenders = await voting_store.all_contenders(table, current.board) if current is not None else {}
        names |= {(slug, ordinal): contender.name for ordinal, contender in contenders.items()}
    async for vote in voting_store.all_votes(table):
        if only in (None, vote.board):
            yield _fields(vote, names)


def _fields(vote: Vote, names: Mapping[tuple[str, int], str]) -> dict[str, Any]:
    """A vote as a line of the export."""
    low, high = names.get((vote.board, vote.low)), names.get((vote.board, vote.high))
    winner = {PairVerdict.LOW_WINS: low, PairVerdict.HIGH_WINS: high}.get(vote.verdict)
    verdict = {PairVerdict.TIE: "tie", PairVerdict.SKIP: "skip"}.get(vote.verdict, "win")
    return {
        "board": vote.board,
        "voter": vote.voter,
        "number": vote.number,
        "pair": [low, high],
        "verdict": verdict,
        "winner": winner,
        "at": iso(vote.at),
        "void": vote.void,
    }
