"""Counts how many engine calls a request waits for, one after the other."""

import asyncio
from collections.abc import Awaitable
from contextvars import ContextVar
from typing import Any, TypeVar

from datastore.dynamo import Table
from tests.intercepted import Send, intercepted, is_of_request

T = TypeVar("T")
CALLS = ("get_item", "batch_get_item", "query", "put_item", "update_item", "transact_write_items")
_asking: ContextVar[object] = ContextVar("asking")
"""Which measurement a call belongs to: what an earlier request has begun may go on beside it."""
TURNS = 50
"""After so many turns of the event loop without another call, the request waits for those that it has made."""


async def dependent_calls(table: Table, request: Awaitable[T]) -> tuple[T, int]:
    """The request's answer, and the number of its rounds of calls: the calls of a round are made at the same time."""
    made, sent, go_on, rounds, asking = 0, 0, asyncio.Event(), 0, object()

    async def call(_: str, send: Send) -> Any:
        nonlocal made, sent
        if is_of_request() and _asking.get(None) is asking:
            made += 1
            await go_on.wait()
        # Also what the service sends beside requests: this one may join it before it makes its own calls.
        sent += 1
        try:
            return await send()
        finally:
            sent -= 1

    with intercepted(table, CALLS, call):
        _asking.set(asking)
        running = asyncio.ensure_future(request)
        while not running.done():
            before, turns = made, 0
            while turns < TURNS and not running.done():
                turns, before = (turns + 1, before) if made == before and not sent else (0, made)
                await asyncio.sleep(0)
            if made:
                made, rounds = 0, rounds + 1
                go_on.set()
                go_on = asyncio.Event()
            await asyncio.sleep(0.001)
        return await running, rounds
