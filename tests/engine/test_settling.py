"""Settling by several processes: one at a time for all of them, whatever their clocks say and whichever is killed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from datastore import voting
from datastore.dynamo import Table, retries
from datastore.dynamo.declaration import TTL
from datastore.dynamo.errors import EngineUnavailable, Throttled
from datastore.receipts import Once
from datastore.voting import Board, BoardWithMarks, settling
from datastore.voting.tallies import read_contender_sums
from resolvers.context import utc_now
from resolvers.voting import settling_pace
from resolvers.voting.board_cache import BoardCache
from resolvers.voting.board_settler import BoardSettler
from tests.client import Client, serving
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.queries import LEADERBOARD, VOID_VOTER
from tests.voting import add_contenders, assert_consistent, editor, vote


async def board_now(table: Table) -> BoardWithMarks:
    current = await voting.read_board_with_marks(table, "main")
    assert current is not None
    return current


def settler_of(client: Client) -> BoardSettler:
    return client.services.get(BoardCache).settler("main")


async def quiet(table: Table) -> BoardWithMarks:
    """The board once nothing is left to settle; nobody asks for it meanwhile."""
    async with asyncio.timeout(20):
        while (current := await board_now(table)).is_dirty:
            await asyncio.sleep(0.1)
    return current


async def results_equal_tallies(table: Table) -> bool:
    board = (await board_now(table)).board
    sums = await read_contender_sums(table, board)
    results = (await voting.read_board_results(table, board)).results
    return all(result.counts == sums.get(ordinal, (0, 0, 0)) for ordinal, result in results.items())


@asynccontextmanager
async def processes(engine: RunningEngine, table: Table, number: int) -> AsyncIterator[list[Client]]:
    settings = settings_for(engine, table.name)
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(serving(settings)) for _ in range(number)]


# ── marks ──


async def test_failed_votes_leave_one_mark(one_client: Client, one_table: Table) -> None:
    """Hundreds of votes that fail, and hundreds that are cancelled: one item, and every board read stays small."""
    await add_contenders(one_client, "a", "b")
    settler = settler_of(one_client)

    async def failing() -> None:
        async with settler.voting():
            raise EngineUnavailable("the engine gave no answer")

    async def hanging() -> None:
        async with settler.voting():
            await asyncio.sleep(60)

    for _ in range(10):
        assert all(await asyncio.gather(*(failing() for _ in range(30)), return_exceptions=True))
        votes = [asyncio.create_task(hanging()) for _ in range(30)]
        await asyncio.sleep(0)
        for each in votes:
            each.cancel()
        await asyncio.gather(*votes, return_exceptions=True)
    current = await board_now(one_table)
    assert [mark.process for mark in current.marks] == [settler.mark.process]


async def test_the_mark_of_a_killed_process_expires(one_client: Client, one_table: Table) -> None:
    """Nobody may look at its board again: DynamoDB removes the mark a day after its process last renewed it."""
    await add_contenders(one_client, "a", "b")
    await vote(one_client.visitor())
    (mark,) = (await board_now(one_table)).marks
    stored = [item async for item in one_table.scan_items(consistent=True) if "DIRTY" in item["sk"]["S"]]
    assert [int(item[TTL]["N"]) for item in stored] == [int((mark.until + timedelta(days=1)).timestamp())]


async def test_a_mark_that_was_written_again_is_not_deleted(one_table: Table) -> None:
    """Its process only seemed to be dead: votes that it has counted since are not settled yet."""
    now = utc_now()
    await voting.create_board(one_table, Board("main", "Main", now), Once.unkeyed(now))
    seen = voting.DirtyMark("main", "slow", now + timedelta(seconds=5), now)
    for until, is_dirty in ((seen.until + timedelta(seconds=5), True), (seen.until, False)):
        await voting.write_mark(one_table, replace(seen, until=until))
        await voting.delete_mark(one_table, seen)
        assert (await board_now(one_table)).is_dirty is is_dirty


async def test_more_marks_than_are_read_are_deleted(
    one_client: Client, one_table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Marks of a hundred crashed processes: a board read has a bound, and settling takes them away."""
    monkeypatch.setattr(settling_pace, "_DEAD_AFTER", 0.0)
    await add_contenders(one_client, "a", "b")
    until = utc_now()
    marks = [voting.DirtyMark("main", f"process-{number:03d}", until, until) for number in range(150)]
    await asyncio.gather(*(voting.write_mark(one_table, mark) for mark in marks))
    assert len((await board_now(one_table)).marks) < 70
    for _ in range(3):
        await settler_of(one_client).settle_anew()
    assert not (await board_now(one_table)).is_dirty


async def test_a_dead_mark_is_deleted_once_its_votes_are_settled(
    default_engine: RunningEngine, one_table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process is killed after its vote was acknowledged: others settle it, and stop when its mark stays as it is."""
    monkeypatch.setattr(settling_pace, "_DEAD_AFTER", 1.0)
    async with processes(default_engine, one_table, 2) as (killed, other):
        await add_contenders(killed, "a", "b")
        await vote(killed.visitor())
        await settler_of(killed)._loop.close()  # as kill -9 does
        assert (await board_now(one_table)).is_dirty
        async with asyncio.timeout(20):
            while (await board_now(one_table)).is_dirty:
                await other.ask(LEADERBOARD)
                await asyncio.sleep(0.1)
        assert sum(row["wins"] for row in (await other.ask(LEADERBOARD))["nodes"]) == 1


async def test_a_board_is_clean_after_a_voiding(default_engine: RunningEngine, one_table: Table) -> None:
    """The voiding settles the board itself; its mark must not keep readers settling a board on which nobody votes."""
    async with processes(default_engine, one_table, 1) as (client,):
        await add_contenders(client, "a", "b")
        ballot = (await vote(client.visitor()))["ballot"]
        await quiet(one_table)
        await editor(client).ask(VOID_VOTER, input={"voter": ballot["voter"]})
        assert (await quiet(one_table)).board.votes == 0


async def test_a_list_of_boards_shows_what_a_killed_process_counted(
    default_engine: RunningEngine, one_table: Table
) -> None:
    """Whoever asks for the boards' votes or leaderboards, and for nothing else, gets them settled."""
    wanted = "{ boards { nodes { slug votes leaderboard { nodes { wins losses } } } } }"
    async with processes(default_engine, one_table, 2) as (killed, other):
        await add_contenders(killed, "a", "b")
        await vote(killed.visitor())
        await settler_of(killed)._loop.close()  # as kill -9 does
        async with asyncio.timeout(20):
            while (await other.ask(wanted))["nodes"][0]["votes"] != 1:
                await asyncio.sleep(0.1)
        (board,) = (await other.ask(wanted))["nodes"]
        assert sum(row["wins"] for row in board["leaderboard"]["nodes"]) == 1


# ── clocks ──


@pytest.mark.parametrize("ahead", [0.02, -7.0, 3600.0, -3600.0])
async def test_the_last_settling_signs_whatever_the_clocks_say(
    default_engine: RunningEngine, one_table: Table, ahead: float
) -> None:
    """Votes through two processes in turn: all are shown as soon as both are quiet, and those of a killed one."""
    async with processes(default_engine, one_table, 2) as (first, second):
        first.services.clock = lambda: utc_now() + timedelta(seconds=ahead)
        await add_contenders(first, "a", "b")
        for client in (first, second):
            await vote(client.visitor())
            await settler_of(client).settle_anew()
        assert (await board_now(one_table)).board.votes == 2
        await vote(second.visitor())
        await settler_of(second)._loop.close()  # killed
        async with asyncio.timeout(20):
            while (await first.ask("{ board { votes } }")) != {"votes": 3}:
                await asyncio.sleep(0.1)
        await assert_consistent(first)


# ── one for all ──


async def test_processes_settle_one_at_a_time_for_all_of_them(default_engine: RunningEngine, one_table: Table) -> None:
    """Four processes with votes all the time begin about as many settlings as one would."""
    async with processes(default_engine, one_table, 4) as clients:
        await add_contenders(clients[0], "a", "b", "c")
        ends = asyncio.get_running_loop().time() + 4.0
        before = (await board_now(one_table)).board.claims

        async def votes(client: Client, number: int) -> int:
            cast = 0
            while asyncio.get_running_loop().time() < ends:
                await vote(client.member(f"v{number}-{cast}"))
                cast += 1
                await asyncio.sleep(0.05)
            return cast

        cast = sum(await asyncio.gather(*(votes(client, number) for number, client in enumerate(clients))))
        settlings = (await board_now(one_table)).board.claims - before
        assert 2 <= settlings <= 4
        current = await quiet(one_table)
        assert current.board.votes == cast
        await assert_consistent(clients[0])


async def test_a_claim_whose_process_was_killed_blocks_nobody(default_engine: RunningEngine, one_table: Table) -> None:
    """It claimed the settling and did nothing; the next one follows in its time."""
    async with processes(default_engine, one_table, 1) as (client,):
        await add_contenders(client, "a", "b")
        await vote(client.visitor())
        claimed = await voting.claim_settling(one_table, (await board_now(one_table)).board, utc_now())
        assert claimed is not None
        assert await voting.claim_settling(one_table, (await board_now(one_table)).board, utc_now()) is not None
        current = await quiet(one_table)
        assert (current.board.votes, current.board.completed) == (1, current.board.claims)


async def test_a_settling_that_ends_late_takes_nothing_back(default_engine: RunningEngine, one_table: Table) -> None:
    """Two settlings overlap, and the earlier one completes last: the later sums and the later number stay."""
    async with processes(default_engine, one_table, 1) as (client,):
        await add_contenders(client, "a", "b")
        await vote(client.visitor())
        await settler_of(client)._loop.close()
        early = await voting.claim_settling(one_table, (await board_now(one_table)).board, utc_now())
        await vote(client.visitor())
        await settler_of(client)._loop.close()
        later = await voting.claim_settling(one_table, (await board_now(one_table)).board, utc_now())
        assert early is not None
        assert later is not None
        await voting.settle(one_table, later)
        await voting.settle(one_table, early)
        assert ((await board_now(one_table)).board.votes, (await board_now(one_table)).board.completed) == (2, 2)
        await assert_consistent(client)


class SlowSettling:
    """One process's settling, which writes only after another's `voided`, and ends as the `order` says."""

    def __init__(self, slow: Client, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._slow, self._order = slow.services.table, order
        self.summed, self.voided, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._write_results, self._complete = settling._write_results, settling._complete
        monkeypatch.setattr(settling, "_write_results", self._write_late)
        monkeypatch.setattr(settling, "_complete", self._complete_in_order)

    async def _write_late(self, table: Table, results: Any) -> list[bool]:
        if table is self._slow and not self.summed.is_set():
            self.summed.set()
            await self.voided.wait()
        return await self._write_results(table, results)

    async def _complete_in_order(self, table: Table, board: Board) -> Board:
        if table is not self._slow:
            if self._order == "it ends first":
                self.voided.set()
                await self.ended.wait()
            return await self._complete(table, board)
        if self._order == "it fails" and not self.ended.is_set():
            self.ended.set()
            raise EngineUnavailable("the engine gave no answer")
        completed = await self._complete(table, board)
        self.ended.set()
        return completed


@pytest.mark.parametrize("order", ["it ends last", "it ends first", "it fails"])
@pytest.mark.parametrize("is_readers", [False, True])
async def test_a_settling_beside_a_voiding_brings_no_vote_back(
    default_engine: RunningEngine, one_table: Table, monkeypatch: pytest.MonkeyPatch, order: str, *, is_readers: bool
) -> None:
    """A process sums a vote. Another voids it and settles, and finds nothing to write. Then the first one writes."""
    async with processes(default_engine, one_table, 3) as (counting, reading, other):
        settling_late = SlowSettling(reading if is_readers else counting, order, monkeypatch)
        await add_contenders(counting, "a", "b")
        voter = (await vote(counting.visitor()))["ballot"]["voter"]
        if is_readers:
            await settler_of(counting)._loop.close()  # killed
            waiting = asyncio.create_task(settler_of(reading).settle_overdue(0))
        await settling_late.summed.wait()
        await editor(other).ask(VOID_VOTER, input={"voter": voter})
        settling_late.voided.set()
        await settling_late.ended.wait()
        async with asyncio.timeout(20):
            while not await results_equal_tallies(one_table):  # nobody asks for the board meanwhile
                await asyncio.sleep(0.1)
        if is_readers:
            await waiting


async def test_a_settling_that_failed_writes_nothing_later(
    default_engine: RunningEngine, one_table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results are throttled: those that waited for their turn are not written after the vote was voided."""
    monkeypatch.setattr(retries, "DEFAULT_SECONDS", 1.0)
    monkeypatch.setattr(settling, "_RESULTS_AT_ONCE", 1)
    async with processes(default_engine, one_table, 1) as (client,):
        await add_contenders(client, "a", "b")
        voter = (await vote(client.visitor()))["ballot"]["voter"]
        await settler_of(client)._loop.close()
        claimed = await voting.claim_settling(one_table, (await board_now(one_table)).board, utc_now())
        assert claimed is not None
        before = asyncio.all_tasks()
        with monkeypatch.context() as throttling:

            async def throttled(**_: Any) -> None:
                raise Throttled("results are throttled")

            throttling.setattr(one_table.client, "update_item", throttled)
            throttling.setattr(one_table.client, "put_item", throttled)
            with pytest.raises(Throttled):
                await voting.settle(one_table, claimed)
            left = asyncio.all_tasks() - before
            await editor(client).ask(VOID_VOTER, input={"voter": voter})
        await asyncio.gather(*left, return_exceptions=True)
        assert await results_equal_tallies(one_table)
