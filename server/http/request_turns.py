"""The order in which requests begin: a few in each iteration of the event loop, and clients take turns.

What a request does before it first waits for something can take milliseconds. When two hundred connections send one at
the same moment and all of them begin in one iteration, new connections are accepted, and `/livez` is answered, a second
or two later, and again after the next such iteration. So requests begin for some milliseconds only, and then the event
loop looks for what else has come. However many a client has sent, another one's request begins in this iteration or the
next. The requests that are the first on their connections take turns with the other ones of their client.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from itertools import chain, islice, zip_longest
from typing import NamedTuple

SLICE_SECONDS = 0.01
LONGEST_SLICE_SECONDS = 0.05
"""For so long requests begin before the loop goes round, between these two for as long as the rest of it took the last
time: refusing takes time as well, and would leave none for answers. One begins in any case."""

MAX_CALLED = 64
"""So many requests are woken for an iteration. Those for which there was no time are woken again for the next."""


class Client(NamedTuple):
    """Whose turn it is."""

    network: str
    is_first: bool = False
    """Whether nothing has been answered on the request's connection."""


class _Waiting:
    """A request that waits."""

    __slots__ = ("called",)

    called: asyncio.Future[None]


class RequestTurns:
    """The requests of a process that wait for their turn. Its owner bounds their number."""

    def __init__(self) -> None:
        self._ends_at: float | None = None
        """Until when requests begin; None if the next one that begins decides that. After it the loop goes round."""
        self._rests_from = 0.0
        self._is_running = False
        """Whether `_iterate` is called in the next iteration."""
        self._waiting: OrderedDict[Client, deque[_Waiting]] = OrderedDict()
        """Of each client, the longest waiting first; of the clients, the one whose latest turn is the longest ago."""

    async def take(self, client: Client) -> None:
        """Wait until the client's turn has come: not at all, if nobody waits and there is time."""
        if not self._waiting and self._has_time():
            return
        loop = asyncio.get_running_loop()
        if not self._is_running:
            self._is_running = True
            self._rests_from = time.perf_counter()
            loop.call_soon(self._iterate)
        request = _Waiting()
        self._waiting.setdefault(client, deque()).append(request)
        try:
            while True:
                request.called = loop.create_future()
                await request.called
                if self._has_time():
                    self._waiting.move_to_end(client)
                    return
        finally:
            requests = self._waiting[client]
            requests.remove(request)
            if not requests:
                del self._waiting[client]

    def _has_time(self) -> bool:
        now = time.perf_counter()
        if self._ends_at is None:
            self._ends_at = now + min(max(SLICE_SECONDS, now - self._rests_from), LONGEST_SLICE_SECONDS)
            return True
        return now < self._ends_at

    def _iterate(self) -> None:
        """Those who were called have begun, or will be called again."""
        self._is_running = bool(self._waiting)
        if not self._is_running:
            return
        self._ends_at = None
        in_turn = chain.from_iterable(zip_longest(*self._waiting.values()))
        for request in islice(filter(None, in_turn), MAX_CALLED):
            if not request.called.done():
                request.called.set_result(None)
        self._rests_from = time.perf_counter()
        asyncio.get_running_loop().call_soon(self._iterate)
