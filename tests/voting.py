"""Helpers for the tests of voting: contenders, votes, and the consistency of a board."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from math import inf
from typing import Any

from datastore.dynamo import Table
from datastore.voting.boards import BoardWithMarks, read_board_with_marks
from resolvers.requests.context import Role
from resolvers.voting.settling import BoardCache
from server.audit import find_suspects
from tests.client import Client
from tests.intercepted import intercepted
from tests.queries import ADD_CONTENDER, CAST_VOTE, DRAW_MATCHUP, LEADERBOARD
from tests.waiting import until


def editor(client: Client) -> Client:
    return client.member("editor", Role.EDITOR)


async def add_contenders(client: Client, *names: str, board: str = "main") -> list[str]:
    """Adds contenders one after the other; returns their ids."""
    answers = [await editor(client).ask(ADD_CONTENDER, input={"name": name, "board": board}) for name in names]
    return [answer["contender"]["id"] for answer in answers]


async def settle_votes(client: Client, board: str = "main") -> None:
    """Settles at once instead of within two seconds."""
    await client.services.get(BoardCache).settler(board).settle_anew()


def let_settle_nothing(client: Client) -> None:
    """Its votes stay as if the process were killed after them: what it would do by itself, it waits for ever to do."""
    client.services.get(BoardCache).settler("main")._loop.begin("main", partial(asyncio.sleep, inf))


async def board_now(table: Table) -> BoardWithMarks:
    current = await read_board_with_marks(table, "main")
    assert current is not None
    return current


async def quiet(table: Table) -> BoardWithMarks:
    """The board once nothing is left to settle; nobody asks for it meanwhile."""

    async def clean() -> BoardWithMarks | None:
        return None if (current := await board_now(table)).is_dirty else current

    board: BoardWithMarks = await until(clean, "nothing is left to settle")
    return board


async def know_the_settled_board(client: Client) -> None:
    """Wait until everything is settled, and let the process read it: results of a later settling would be read anew."""
    await quiet(client.services.table)
    let_cached_reads_expire(client)
    await client.visitor().ask(LEADERBOARD)


def let_cached_reads_expire(client: Client) -> None:
    """The process reads each board anew, but no results, as six seconds later; then its cache's clock stands still."""
    cache = client.services.cache
    now = cache.clock() + 6.0
    cache.clock = lambda: now


async def assert_consistent(client: Client, board: str = "main") -> None:
    await settle_votes(client, board)
    await client.caught_up("the leaderboard shows the settled counts")
    assert await find_suspects(client.services, "voting") == []


async def vote(client: Client, verdict: str = "LEFT", board: str = "main") -> dict[str, Any]:
    """Draws a pair and votes on it; returns the answer with the ballot."""
    ballot = await client.ask(DRAW_MATCHUP, board=board)
    answer: dict[str, Any] = await client.ask(CAST_VOTE, token=ballot["token"], verdict=verdict)
    return {**answer, "ballot": ballot}


def pair_names(ballot: dict[str, Any]) -> frozenset[str]:
    return frozenset((ballot["left"]["name"], ballot["right"]["name"]))


@contextmanager
def read_keys(table: Table) -> Iterator[list[str]]:
    """The keys of what is read meanwhile, as text."""
    keys: list[str] = []

    async def note(_: str, send: Any) -> Any:
        keys.append(str(send.keywords))
        return await send()

    with intercepted(table, ("get_item", "batch_get_item", "query"), note):
        yield keys
