"""Live topics: one poll for all listeners, each change once, the end with the last listener."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from datastore.dynamo import EngineUnavailable
from resolvers.live.topics import Live


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
