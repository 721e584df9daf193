"""Which requests of a process may be under way: `AT_ONCE` in all, and of each webhook its share of them.

A request to a receiver that hangs takes its place for ten seconds. Without shares such requests would soon have every
place, and the messages of all other webhooks would wait behind those of one. The share is `AT_ONCE` divided by the
number of webhooks, which is ten at most. It is taken before one of the places in all, for which nobody then waits
unless a webhook was just added: those under way by the older, larger shares end by themselves.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

AT_ONCE = 64
"""Requests under way in one process."""


class Slots:
    """Places for requests, first come, first served within each webhook."""

    def __init__(self) -> None:
        self.share = AT_ONCE
        self._places = asyncio.Semaphore(AT_ONCE)
        self._webhooks: dict[str, _UnderWay] = {}

    def divide(self, webhooks: Collection[str]) -> None:
        """Give each of the webhooks its share from now on."""
        self.share = AT_ONCE // max(1, len(webhooks))
        self._webhooks = {webhook: self._webhooks.get(webhook) or _UnderWay() for webhook in webhooks}

    @asynccontextmanager
    async def take(self, webhook: str) -> AsyncIterator[None]:
        """Wait for a place, and keep it during the block."""
        under_way = self._webhooks.setdefault(webhook, _UnderWay())
        async with under_way.turn:
            while under_way.number >= self.share:
                under_way.ended.clear()
                await under_way.ended.wait()
            under_way.number += 1
        try:
            async with self._places:
                yield
        finally:
            under_way.number -= 1
            under_way.ended.set()


class _UnderWay:
    """The requests of one webhook. Only the next one in turn waits for one of them to end."""

    def __init__(self) -> None:
        self.number = 0
        self.turn = asyncio.Lock()
        self.ended = asyncio.Event()
