"""Live topics: one poll for all listeners, each change once, the end with the last listener."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from datastore.dynamo import EngineUnavailable
from datastore.refusals import Overloaded
from resolvers.live.topics import MAX_TOPICS, Live


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
    board, live = Board(), Live()

    async def listen() -> list[int]:
        heard: list[int] = []
        async with aclosing(live.changes("board", board.look, seconds=0.01)) as changes:
            async for value in changes:
                heard.append(value)
                if value == 2:
                    break
        return heard

    listeners = [asyncio.create_task(listen()) for _ in range(5)]
    await asyncio.sleep(0.05)
    looked = board.looks
    board.value = 1
    await asyncio.sleep(0.05)
    board.value = 2
    assert await asyncio.gather(*listeners) == [[0, 1, 2]] * 5
    assert looked < 20
    ended = board.looks
    await asyncio.sleep(0.05)
    assert board.looks == ended


async def test_a_failed_poll_is_repeated() -> None:
    """An engine that is away for a moment does not end a subscription."""
    board, live = Board(), Live()
    async with aclosing(live.changes("board", board.look, seconds=0.01)) as changes:
        assert await anext(changes) == 0
        board.broken = True
        await asyncio.sleep(0.03)
        board.broken, board.value = False, 7
        assert await anext(changes) == 7


async def test_a_new_listener_gets_the_current_value_at_once() -> None:
    board, live = Board(), Live()
    async with aclosing(live.changes("board", board.look, seconds=60)) as first:
        assert await anext(first) == 0
        async with aclosing(live.changes("board", board.look, seconds=60)) as second:
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
    ranking, live = Ranking(), Live()
    async with aclosing(live.rows("ranking", ranking.look, 3, seconds=0.01)) as few:
        assert await anext(few) == [0, 1, 2]
        async with aclosing(live.rows("ranking", ranking.look, 20, seconds=0.01)) as many:
            assert len(await anext(many)) == 20
            assert len(live._lists) == 1
            next_few = asyncio.create_task(anext(few))
            ranking.rows[10] = -1
            assert (await anext(many))[10] == -1
            assert not next_few.done()
            ranking.rows[0] = -2
            assert await next_few == [-2, 1, 2]
        ranking.asked.clear()
        await asyncio.sleep(0.05)
        assert set(ranking.asked) == {3}
    assert not live._lists


async def test_a_listener_of_more_rows_does_not_wait_for_the_next_poll() -> None:
    """Its rows are read at once, also if they turn out to be no more than before."""
    ranking, live = Ranking(), Live()
    ranking.rows = [1, 2]
    async with aclosing(live.rows("ranking", ranking.look, 3, seconds=60)) as few:
        assert await anext(few) == [1, 2]
        async with aclosing(live.rows("ranking", ranking.look, 30, seconds=60)) as many:
            assert await anext(many) == [1, 2]
    assert ranking.asked == [3, 30]


async def test_the_number_of_topics_is_bounded() -> None:
    """Each costs reads for as long as somebody listens."""
    ranking, live = Ranking(), Live()
    listeners = [live.rows(number, ranking.look, 1, seconds=60) for number in range(MAX_TOPICS)]
    listeners += [live.changes(number, Board().look, seconds=60) for number in range(MAX_TOPICS)]  # type: ignore[misc]
    await asyncio.gather(*(anext(listener) for listener in listeners))
    with pytest.raises(Overloaded):
        await anext(live.rows("more", ranking.look, 1))
    with pytest.raises(Overloaded):
        await anext(live.changes("more", Board().look))
    async with aclosing(live.rows(0, ranking.look, 1, seconds=60)) as known:
        assert len(await anext(known)) == 1
    for listener in listeners:
        await listener.aclose()  # type: ignore[attr-defined]
