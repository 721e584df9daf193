"""What an operator does with boards: shards for a rush of votes, and the votes themselves as a file."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import orjson
import typer
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from datastore import voting
from datastore.dynamo import Table
from datastore.dynamo.attributes import iso
from datastore.refusals import NotFound
from datastore.voting import MAIN, Outcome, Vote
from resolvers.context import Services
from server.commands import Failed, err, out, with_house

boards = typer.Typer(help="Boards: how their votes are counted.", no_args_is_help=True)


@boards.command()
def reshard(
    slug: Annotated[str, typer.Argument(help="The board.")] = MAIN,
    votes_per_second: Annotated[
        int, typer.Option(min=1, max=100_000, help="What the board should bear.")
    ] = voting.USUAL_RATE,
) -> None:
    """Spreads a board's counters for a rate of votes. It may be done at any time, while people vote."""

    async def work(services: Services) -> int:
        now = await voting.board_now(services.table, slug, consistent=True)
        if now is None:
            message = f"There is no board called {slug}."
            raise Failed(message)
        try:
            return await voting.reshard(services.table, now.board, votes_per_second)
        except NotFound as gone:
            raise Failed(gone.message) from None

    shards = with_house(work)
    out.print(f"Votes on {slug} are counted in {shards} shard{'s' if shards > 1 else ''} from now on.")


def export_votes(
    board: Annotated[str | None, typer.Option(help="Only this board's.")] = None,
    to: Annotated[Path | None, typer.Option(help="A file; without it they are printed.")] = None,
) -> None:
    """Every vote as one line of JSON: who, on which board and pair, what, when, and whether it was voided."""

    async def work(services: Services) -> int:
        with ExitStack() as stack:
            file: BinaryIO = stack.enter_context(to.open("wb")) if to else sys.stdout.buffer
            bar = stack.enter_context(
                Progress(SpinnerColumn(), TextColumn("votes"), MofNCompleteColumn(), console=err, transient=True)
            )
            task = bar.add_task("votes", total=None)
            count = 0
            async for line in _lines(services.table, board):
                file.write(orjson.dumps(line) + b"\n")
                count += 1
                bar.update(task, completed=count)
            return count

    try:
        count = with_house(work)
    except OSError as error:
        message = f"{to} cannot be written: {error.strerror}."
        raise Failed(message) from None
    err.print(f"{count} votes.")


async def _lines(table: Table, only: str | None) -> AsyncIterator[dict[str, Any]]:
    names = {
        (row.board, row.ordinal): row.name
        async for board in voting.all_boards(table)
        async for row in voting.roster(table, board.slug)
    }
    async for vote in voting.all_votes(table):
        if only in (None, vote.board):
            yield _line(vote, names)


def _line(vote: Vote, names: dict[tuple[str, int], str]) -> dict[str, Any]:
    low, high = names.get((vote.board, vote.low)), names.get((vote.board, vote.high))
    winner = {Outcome.LOW: low, Outcome.HIGH: high}.get(vote.verdict)
    verdict = {Outcome.TIE: "tie", Outcome.SKIP: "skip"}.get(vote.verdict, "win")
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
