"""Settling by several processes: one at a time for all of them, whatever their clocks say and whichever is killed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Table, open_table
from datastore.dynamo.errors import EngineUnavailable
from datastore.jobs.leases import LeaseLost, Leases
from datastore.voting import boards, contenders
from datastore.voting.boards import Board
from datastore.voting.settling import settle
from datastore.voting.votes import read_contender_sums
from resolvers.requests.context import utc_now
from resolvers.voting.settling import SETTLING_INTERVAL, BoardCache, BoardSettler
from tests.client import Client, serving
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.fault.faults import Fault
from tests.fault.proxy import Proxy
from tests.intercepted import beforehand
from tests.queries import LEADERBOARD, RETIRE_CONTENDER, VOID_VOTER
from tests.voting import add_contenders, assert_consistent, board_now, editor, let_settle_nothing, quiet, vote
from tests.waiting import LONGEST


def settler_of(client: Client) -> BoardSettler:
    return client.services.get(BoardCache).settler("main")


async def results_equal_tallies(table: Table) -> bool:
    board = (await board_now(table)).board
    sums = await read_contender_sums(table, board)
    blocks = await contenders.read_results_blocks(table, [(board.slug, block) for block in range(board.blocks)])
    return [*blocks.values()] == [contenders.ResultsBlock.of(*key, sums) for key in blocks]


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
    async with settler.voting():  # while this one is cast, the mark stays
        async with settler.voting():
            pass  # it is acknowledged once the mark is written
        current = await board_now(one_table)
    assert [mark.holder for mark in current.marks] == [one_client.services.leases.holder]


async def test_a_mark_that_was_written_again_is_not_deleted(one_table: Table) -> None:
    """Its process only seemed to be dead: votes that it has counted since are not settled yet."""
    now, slow = utc_now(), Leases(one_table)
    await boards.create_board(one_table, Board("main", "Main", now), UnitOfWork.unkeyed(now))
    mark = await slow.begin(boards.DirtyMark("main", slow.holder, 1, utc_now()))
    seen = mark.record
    await mark.save()
    await boards.delete_mark(one_table, seen)
    assert (await board_now(one_table)).is_dirty
    await boards.delete_mark(one_table, mark.record)
    assert not (await board_now(one_table)).is_dirty
    with pytest.raises(LeaseLost):
        await mark.save()


async def test_a_process_that_was_taken_for_dead_marks_the_board_again(one_client: Client, one_table: Table) -> None:
    """It was halted for a while, and its mark deleted: its next vote is acknowledged once there is a new one."""
    await add_contenders(one_client, "a", "b")
    let_settle_nothing(one_client)
    await vote(one_client.visitor())
    (mark,) = (await board_now(one_table)).marks
    await boards.delete_mark(one_table, mark)
    held = settler_of(one_client)._mark
    assert held is not None
    held._safe_until = 0.0
    await vote(one_client.visitor())
    (again,) = (await board_now(one_table)).marks
    assert again.holder == mark.holder
    assert again.term > mark.term


async def test_more_marks_than_are_read_are_deleted(one_client: Client, one_table: Table) -> None:
    """Marks of a hundred crashed processes: a board read has a bound, and settling takes them away."""
    one_client.services.leases.patience = 0.0
    await add_contenders(one_client, "a", "b")
    marks = [boards.DirtyMark("main", f"process-{number:03d}", 1, utc_now()) for number in range(150)]
    await asyncio.gather(*(Leases(one_table).begin(mark) for mark in marks))
    assert len((await board_now(one_table)).marks) < 70
    for _ in range(3):
        await settler_of(one_client).settle_anew()
    assert not (await board_now(one_table)).is_dirty


async def test_a_dead_mark_is_deleted_once_its_votes_are_settled(
    default_engine: RunningEngine, one_table: Table
) -> None:
    """A process is killed after its vote was acknowledged: others settle it, and stop when its mark stays as it is."""
    async with processes(default_engine, one_table, 2) as (killed, other):
        other.services.leases.patience = 1.0
        await add_contenders(killed, "a", "b")
        let_settle_nothing(killed)
        await vote(killed.visitor())
        assert (await board_now(one_table)).is_dirty
        async with asyncio.timeout(120):
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
        let_settle_nothing(killed)
        await vote(killed.visitor())
        async with asyncio.timeout(120):
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
        await settler_of(second)._loop.close()
        let_settle_nothing(second)
        await vote(second.visitor())
        async with asyncio.timeout(120):
            while (await first.ask("{ board { votes } }")) != {"votes": 3}:
                await asyncio.sleep(0.1)
        await assert_consistent(first)


# ── one for all ──


async def test_processes_settle_one_at_a_time_for_all_of_them(default_engine: RunningEngine, one_table: Table) -> None:
    """Four processes with votes all the time begin about as many settlings as one would."""
    async with processes(default_engine, one_table, 4) as clients:
        await add_contenders(clients[0], "a", "b", "c")
        ends = asyncio.get_running_loop().time() + 4.0
        before = (await board_now(one_table)).board.term

        async def settlings() -> int:
            return (await board_now(one_table)).board.term - before

        async def votes(client: Client, number: int) -> int:
            cast = 0
            while asyncio.get_running_loop().time() < ends or await settlings() < 2:
                await vote(client.member(f"v{number}-{cast}"))
                cast += 1
                await asyncio.sleep(0.05)
            return cast

        async with asyncio.timeout(LONGEST):
            cast = sum(await asyncio.gather(*(votes(client, number) for number, client in enumerate(clients))))
        begun = await settlings()
        elapsed = asyncio.get_running_loop().time() - ends + 4.0
        assert begun <= elapsed / SETTLING_INTERVAL + 2
        current = await quiet(one_table)
        assert current.board.votes == cast
        await assert_consistent(clients[0])


async def begun(table: Table) -> Any:
    """A settling as of another process, which nobody carries out yet."""
    lease = await Leases(table).acquire((await board_now(table)).board)
    assert lease is not None
    return lease


async def test_a_settling_whose_process_was_killed_blocks_nobody(
    default_engine: RunningEngine, one_table: Table
) -> None:
    """It has begun and done nothing; the next one follows in its time."""
    async with processes(default_engine, one_table, 1) as (client,):
        await add_contenders(client, "a", "b")
        let_settle_nothing(client)
        await vote(client.visitor())
        await begun(one_table)
        await begun(one_table)
        await settler_of(client)._loop.close()
        settler_of(client).begin()
        current = await quiet(one_table)
        assert (current.board.votes, current.board.settled) == (1, current.board.term)


async def test_a_settling_that_ends_late_takes_nothing_back(default_engine: RunningEngine, one_table: Table) -> None:
    """Two settlings overlap, and the earlier one would complete last: it changes nothing any more."""
    async with processes(default_engine, one_table, 1) as (client,):
        await add_contenders(client, "a", "b")
        let_settle_nothing(client)
        await vote(client.visitor())
        early = await begun(one_table)
        await vote(client.visitor())
        later = await begun(one_table)
        await settle(one_table, later, utc_now())
        with pytest.raises(LeaseLost):
            await settle(one_table, early, utc_now())
        board = (await board_now(one_table)).board
        assert (board.votes, board.settled, board.holder) == (2, later.record.term, None)
        await assert_consistent(client)


@pytest.mark.parametrize("is_settled", [False, True])
async def test_a_settling_beside_a_voiding_brings_no_vote_back(
    default_engine: RunningEngine, one_table: Table, *, is_settled: bool
) -> None:
    """A process sums a vote. Another voids it and settles, and may find nothing to write. Then the first one writes."""
    async with processes(default_engine, one_table, 2) as (counting, other):
        await add_contenders(counting, "a", "b")
        let_settle_nothing(counting)
        voter = (await vote(counting.visitor()))["ballot"]["voter"]
        if is_settled:
            await settler_of(counting).settle_anew()
        late = await begun(one_table)

        async def void() -> None:
            await editor(other).ask(VOID_VOTER, input={"voter": voter})

        writes = ("transact_write_items", "update_item")  # the latter if it finds nothing to write
        with beforehand(one_table, void, *writes) as summed, pytest.raises(LeaseLost):
            await settle(one_table, late, utc_now())
        assert summed
        assert await results_equal_tallies(one_table)


async def test_an_editor_changes_a_contender_while_its_results_are_settled(
    one_client: Client, one_table: Table
) -> None:
    """A contender retires between the summing of its votes and the writing of its results: both are stored."""
    ids = await add_contenders(one_client, "a", "b")
    let_settle_nothing(one_client)
    await vote(one_client.visitor())

    async def retire() -> None:
        await editor(one_client).ask(RETIRE_CONTENDER, input={"contender": ids[0]})

    with beforehand(one_table, retire):
        await settle(one_table, await begun(one_table), utc_now())
    assert await results_equal_tallies(one_table)
    board = (await board_now(one_table)).board
    assert (board.votes, board.contender_count) == (1, 1)


async def test_a_result_whose_answer_is_lost_is_written_once(
    default_engine: RunningEngine, one_client: Client, one_table: Table
) -> None:
    """The transaction is repeated, finds its own results, and the settling completes."""
    await add_contenders(one_client, "a", "b")
    let_settle_nothing(one_client)
    await vote(one_client.visitor())
    async with Proxy(default_engine.url) as proxy, open_table(one_table.name, url=proxy.url) as table:
        lease = await begun(table)
        proxy.inject(Fault.RESET_AFTER, "TransactWriteItems")
        await settle(table, lease, utc_now())
        assert proxy.faults[Fault.RESET_AFTER] == 1
    assert await results_equal_tallies(one_table)
    assert (await board_now(one_table)).board.settled == lease.record.term


async def test_a_settling_that_failed_writes_nothing_later(
    default_engine: RunningEngine, one_client: Client, one_table: Table
) -> None:
    """Its write hangs in the network until the vote was voided and the board settled: it is refused then."""
    await add_contenders(one_client, "a", "b")
    let_settle_nothing(one_client)
    voter = (await vote(one_client.visitor()))["ballot"]["voter"]
    async with (
        Proxy(default_engine.url) as proxy,
        open_table(one_table.name, url=proxy.url) as table,
        AsyncExitStack() as hung,
    ):
        silent = asyncio.Event()

        async def hang() -> None:
            await hung.enter_async_context(proxy.silent())
            silent.set()

        hung.enter_context(beforehand(table, hang))
        late = asyncio.create_task(settle(table, await begun(table), utc_now()))
        await silent.wait()
        await editor(one_client).ask(VOID_VOTER, input={"voter": voter})
        await hung.aclose()
        with pytest.raises(LeaseLost):
            await late
    assert await results_equal_tallies(one_table)
