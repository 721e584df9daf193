"""Profile screens: what several fields of one member ask for, read in one query.

Fields that are asked for in the same turn of the event loop share one read of the member's item collection, which
reaches back as far as the most curious of them. Nothing is kept: the next request reads again.
"""

from __future__ import annotations

import asyncio
import contextvars
from datetime import date
from typing import TYPE_CHECKING

from datastore import vocabulary
from datastore.dynamo.budgets import unhurried
from datastore.vocabulary import Screen

if TYPE_CHECKING:
    from resolvers.context import Services


class Screens:
    """The screens that are being read."""

    def __init__(self, services: Services) -> None:
        self._house = services
        self._gathered: dict[str, tuple[date, asyncio.Future[Screen | None]]] = {}
        self._reads: set[asyncio.Task[None]] = set()

    async def load(self, user: str, since: date = date.max) -> Screen | None:
        """A member's screen back to a day; None if it is too large to be read at once."""
        loop = asyncio.get_running_loop()
        known = self._gathered.get(user)
        if known is None:
            future: asyncio.Future[Screen | None] = loop.create_future()
            loop.call_soon(self._begin, user, contextvars.copy_context())
        else:
            since, future = min(since, known[0]), known[1]
        self._gathered[user] = (since, future)
        return await asyncio.shield(future)

    def _begin(self, user: str, context: contextvars.Context) -> None:
        task = asyncio.get_running_loop().create_task(self._read(user, *self._gathered.pop(user)), context=context)
        self._reads.add(task)
        task.add_done_callback(self._reads.discard)

    async def _read(self, user: str, since: date, future: asyncio.Future[Screen | None]) -> None:
        try:
            with unhurried():
                future.set_result(await vocabulary.screen(self._house.table, user, since))
        except Exception as error:  # noqa: BLE001 - it belongs to those who wait
            future.set_exception(error)
            future.exception()  # nobody may be left to ask for it
