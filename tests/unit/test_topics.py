"""Live topics: one poll for all listeners, each change once, the end with the last listener."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Any

import pytest

from datastore.dynamo import EngineUnavailable
from datastore.refusals import Overloaded
from resolvers.live.topics import MOST_TOPICS, TOPICS_PER_ADDRESS, Live
from tests.waiting import turns, until

HERE = "192.0.2.1"


class Board:
    def __init__(self) -> None:
        self.value = 0
        self.looks = 0
        self.broken = False

    async def look(self) -> int:
        self.looks += 1
        if self.broken:
            raise EngineUnavailable
        return self.value


async def test_all_listeners_share_one_poll_and_get_each_change_once() -> None:
    board, live = Board(), Live(0.01)

    async def listen(heard: list[int]) -> None:
        async with aclosing(live.changes("board", board.look, HERE)) as changes:
            async for value in changes:
                heard.append(value)
                if value == 2:
                    break

    heard: list[list[int]] = [[] for _ in range(5)]
    listeners = [asyncio.create_task(listen(each)) for each in heard]
    await until(lambda: heard == [[0]] * 5, "each has the value")
    assert board.looks < 5
    for board.value in (1, 2):
        await until(lambda: all(each[-1] == board.value for each in heard), "each has the change")
    await asyncio.gather(*listeners)
    assert heard == [[0, 1, 2]] * 5
    ended = board.looks
    await asyncio.sleep(0.05)
    assert board.looks == ended


async def test_a_failed_poll_is_repeated() -> None:
    """An engine that is away for a moment does not end a subscription."""
    board, live = Board(), Live(0.01)
    async with aclosing(live.changes("board", board.look, HERE)) as changes:
        assert await anext(changes) == 0
        board.broken, looks = True, board.looks
        await until(lambda: board.looks > looks, "a poll has failed")
        board.broken, board.value = False, 7
        assert await anext(changes) == 7


async def test_a_new_listener_gets_the_current_value_at_once() -> None:
    board, live = Board(), Live(60)
    async with aclosing(live.changes("board", board.look, HERE)) as first:
        assert await anext(first) == 0
        async with aclosing(live.changes("board", board.look, HERE)) as second:
            assert await anext(second) == 0
    assert board.looks == 1


class Ranking:
    """A list whose looks tell how many rows they were asked for."""

    def __init__(self) -> None:
        self.rows = list(range(50))
        self.asked: list[int] = []

    async def look(self, number: int) -> list[int]:
        self.asked.append(number)
        return self.rows[:number]


async def test_one_poll_serves_listeners_of_different_numbers_of_rows() -> None:
    """It reads as many rows as the largest wants, and each hears of changes among its own rows only."""
    ranking, live = Ranking(), Live(0.01)
    async with aclosing(live.rows("ranking", ranking.look, 3, HERE)) as few:
        assert await anext(few) == [0, 1, 2]
        async with aclosing(live.rows("ranking", ranking.look, 20, HERE)) as many:
            assert len(await anext(many)) == 20
            assert len(live._lists.by_name) == 1
            next_few = asyncio.create_task(anext(few))
            ranking.rows[10] = -1
            assert (await anext(many))[10] == -1
            assert not next_few.done()
            ranking.rows[0] = -2
            assert await next_few == [-2, 1, 2]
        ranking.asked.clear()
        await until(lambda: ranking.asked, "it is read again")
        assert set(ranking.asked) == {3}
    assert not live._lists.by_name


async def test_a_listener_of_more_rows_does_not_wait_for_the_next_poll() -> None:
    """Its rows are read at once, also if they turn out to be no more than before."""
    ranking, live = Ranking(), Live(60)
    ranking.rows = [1, 2]
    async with aclosing(live.rows("ranking", ranking.look, 3, HERE)) as few:
        assert await anext(few) == [1, 2]
        async with aclosing(live.rows("ranking", ranking.look, 30, HERE)) as many:
            assert await anext(many) == [1, 2]
    assert ranking.asked == [3, 30]


async def test_nor_does_one_who_comes_during_the_first_read() -> None:
    """As two boards of one page do, of which one shows more."""
    ranking, live, goes_on = Ranking(), Live(60), asyncio.Event()

    async def slow(number: int) -> list[int]:
        rows = await ranking.look(number)
        await goes_on.wait()
        return rows

    few, many = live.rows("ranking", slow, 3, HERE), live.rows("ranking", slow, 30, HERE)
    async with aclosing(few), aclosing(many):
        first = asyncio.create_task(anext(few))
        await until(lambda: ranking.asked, "the first read is under way")
        second = asyncio.create_task(anext(many))
        await turns()
        goes_on.set()
        assert [len(rows) for rows in await asyncio.wait_for(asyncio.gather(first, second), 30)] == [3, 30]
    assert ranking.asked == [3, 30]


def opened_from(live: Live, numbers: range, address: str) -> list[AsyncGenerator[Any]]:
    """A listener of each of these topics, of both kinds."""
    listeners = [live.rows(number, Ranking().look, 1, address) for number in numbers]
    return [*listeners, *(live.changes(number, Board().look, address) for number in numbers)]


async def hear_all(listeners: Iterable[AsyncGenerator[Any]]) -> None:
    await asyncio.gather(*(anext(listener) for listener in listeners))


async def leave_all(listeners: Iterable[AsyncGenerator[Any]]) -> None:
    for listener in listeners:
        await listener.aclose()


async def test_the_number_of_topics_is_bounded() -> None:
    """Each costs reads for as long as somebody listens."""
    live, listeners = Live(60), list[AsyncGenerator[Any]]()
    for first in range(0, MOST_TOPICS, TOPICS_PER_ADDRESS):
        listeners += opened_from(live, range(first, first + TOPICS_PER_ADDRESS), f"192.0.2.{first}")
    await hear_all(listeners)
    for more in opened_from(live, range(MOST_TOPICS, MOST_TOPICS + 1), HERE):
        with pytest.raises(Overloaded):
            await anext(more)
    known = opened_from(live, range(1), HERE)
    await hear_all(known)
    await leave_all([*listeners, *known])


async def test_one_address_listens_to_a_share_of_the_topics() -> None:
    """So it cannot take them all: not by leaving what it opened to a second listener of its own, nor by joining what
    others open, nor from the other addresses of its IPv6 network. Others are served meanwhile.
    """
    live, enough = Live(60), range(TOPICS_PER_ADDRESS)
    opened = opened_from(live, enough, "2001:db8::1")
    await hear_all(opened)
    again = opened_from(live, enough, "2001:db8::2")
    await hear_all(again)
    await leave_all(opened)
    elsewhere = opened_from(live, range(MOST_TOPICS - 1, MOST_TOPICS), HERE)
    await hear_all(elsewhere)
    for more in (TOPICS_PER_ADDRESS, MOST_TOPICS - 1):
        for refused in opened_from(live, range(more, more + 1), "2001:db8::3"):
            with pytest.raises(Overloaded) as overloaded:
                await anext(refused)
            assert overloaded.value.retry_after
    await leave_all(again[:1] + again[TOPICS_PER_ADDRESS : TOPICS_PER_ADDRESS + 1])
    instead = opened_from(live, range(TOPICS_PER_ADDRESS, TOPICS_PER_ADDRESS + 1), "2001:db8::3")
    await hear_all(instead)
    await leave_all([*again, *elsewhere, *instead])
