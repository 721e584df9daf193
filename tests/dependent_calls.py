"""Counts how many engine calls a request waits for, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from datastore.dynamo import Table
from datastore.dynamo.budgets import NOBODY, current
from tests.intercepted import Send, intercepted

T = TypeVar("T")
CALLS = ("get_item", "batch_get_item", "query", "put_item", "update_item", "transact_write_items")
TURNS = 50
"""After so many turns of the event loop without another call, the request waits for those that it has made."""


async def dependent_calls(table: Table, request: Awaitable[T]) -> tuple[T, int]:
    """The request's answer, and the number of its rounds of calls: the calls of a round are made at the same time."""
    made, beside, go_on, rounds = 0, 0, asyncio.Event(), 0

    async def call(_: str, send: Send) -> Any:
        nonlocal made, beside
        if current().spent is not NOBODY.spent:
            made += 1
            await go_on.wait()
            return await send()
        # The service makes it beside requests; this one may join it before it makes its own calls.
        beside += 1
        try:
            return await send()
        finally:
            beside -= 1

    with intercepted(table, CALLS, call):
        running = asyncio.ensure_future(request)
        while not running.done():
            before, turns = made, 0
            while turns < TURNS and not running.done():
                turns, before = (turns + 1, before) if made == before and not beside else (0, made)
                await asyncio.sleep(0)
            if made:
                made, rounds = 0, rounds + 1
                go_on.set()
                go_on = asyncio.Event()
            await asyncio.sleep(0.001)
        return await running, rounds
