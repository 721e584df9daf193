"""Records kept for some seconds in the process, loaded together and never twice at a time.

Law: `load(key)` answers with what `read` answered for that key at most `seconds` ago, or with what `put` said since.
Keys asked for within one turn of the event loop, by any request, are read as one batch; a key being read is waited
for, not read again; at most `most` entries are kept, the oldest leave first. Why: a batch read of 20 profiles costs
9-10 read units, more than the page of comments they belong to.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

from datastore.dynamo import DynamoError
from datastore.dynamo.deadline import unhurried

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

K = TypeVar("K")
V = TypeVar("V")


class Kept(Generic[K, V]):
    """A bounded cache in front of a batch read. What is not there is remembered as None for as long."""

    def __init__(
        self,
        read: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]],
        *,
        seconds: float,
        most: int = 10_000,
    ) -> None:
        self._read = read
        self._seconds = seconds
        self._most = most
        self._known: OrderedDict[K, tuple[float, V | None]] = OrderedDict()
        self._under_way: dict[K, asyncio.Future[V | None]] = {}
        self._gathered: list[K] = []
        self._reads: set[asyncio.Task[None]] = set()

    async def load(self, key: K) -> V | None:
        """The record of a key, or None if there is none."""
        known = self.at_hand(key)
        if known is not None:
            return known[0]
        return await asyncio.shield(self._awaited(key))

    async def load_many(self, keys: Sequence[K]) -> list[V | None]:
        return list(await asyncio.gather(*(self.load(key) for key in keys)))

    def at_hand(self, key: K) -> tuple[V | None] | None:
        """What is kept for a key, in a tuple; None when it must be read first."""
        entry = self._known.get(key)
        if entry is None or entry[0] < asyncio.get_running_loop().time():
            return None
        return (entry[1],)

    def put(self, key: K, value: V | None) -> None:
        """What this process has just written, so that its own readers see it at once."""
        self._known.pop(key, None)
        self._known[key] = (asyncio.get_running_loop().time() + self._seconds, value)
        if len(self._known) > self._most:
            self._known.popitem(last=False)

    def forget(self, key: K) -> None:
        """The next to ask reads anew: what is being read at this moment may be from before the change."""
        self._known.pop(key, None)
        if key not in self._gathered:
            self._under_way.pop(key, None)

    def _awaited(self, key: K) -> asyncio.Future[V | None]:
        future = self._under_way.get(key)
        if future is None:
            loop = asyncio.get_running_loop()
            future = self._under_way[key] = loop.create_future()
            if not self._gathered:
                # The batch is paid for by the request that began it, but must not end with that request's deadline.
                loop.call_soon(self._begin, contextvars.copy_context())
            self._gathered.append(key)
        return future

    def _begin(self, context: contextvars.Context) -> None:
        keys, self._gathered = self._gathered, []
        futures = [self._under_way[key] for key in keys]
        task = asyncio.get_running_loop().create_task(self._settle(keys, futures), context=context)
        self._reads.add(task)
        task.add_done_callback(self._reads.discard)

    async def _settle(self, keys: Sequence[K], futures: Sequence[asyncio.Future[V | None]]) -> None:
        try:
            with unhurried():
                found = await self._read(keys)
        except DynamoError as error:
            for key, future in zip(keys, futures, strict=True):
                self._read_up(key, future)
                future.set_exception(error)
                future.exception()  # nobody may be left to ask for it
            return
        for key, future in zip(keys, futures, strict=True):
            current = self._read_up(key, future)
            value = found.get(key)
            if (newer := self.at_hand(key)) is not None:  # written by us while the read was under way
                value = newer[0]
            elif current:
                self.put(key, value)
            future.set_result(value)

    def _read_up(self, key: K, future: asyncio.Future[V | None]) -> bool:
        """Whether this was still the read that counts for its key; it is over now."""
        current = self._under_way.get(key) is future
        if current:
            del self._under_way[key]
        return current
