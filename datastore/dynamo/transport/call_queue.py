"""The order in which calls are sent to the engine: clients take turns, and within a client its requests.

Guarantees, however many calls a client has begun:

- At most `most` calls are under way, of one request at most `most_of_request`.
- Whenever a call ends, the next one is that of the client who has waited longest for its turn. So a client's first call
  waits for one call of each other client at most, besides one that is under way.
- Work that several requests wait for stands in the queue of each of them, and is sent at the first of their turns.
- So many calls wait that memory allows, of one client and of all; QueueFull for others. The service's own calls, which
  belong to no request, take turns like a client's, but are never refused.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

QueueFull = asyncio.QueueFull


class Caller(NamedTuple):
    """For whom a call is made: a client, and one of its requests; for the service itself, no request."""

    client: Hashable
    request: Hashable | None


SERVICE = Caller("", None)


class Callers:
    """Those for whom a piece of work is done. Others may join while its calls wait for their turn."""

    __slots__ = ("all", "entries")

    def __init__(self, first: Caller) -> None:
        self.all = [first]
        self.entries: list[_Entry] = []
        """The work's calls that wait."""

    def add(self, caller: Caller) -> None:
        if caller not in self.all:
            self.all.append(caller)
            for entry in self.entries:
                entry.queue.stand_in(entry, caller)


class _Entry(asyncio.Future[Caller]):
    """A call that waits; its result is the caller whose turn it takes."""

    queue: CallQueue


class CallQueue:
    """The calls to one engine that are under way, and those that wait."""

    def __init__(self, most: int, *, most_of_request: int, most_waiting: int, most_waiting_of_client: int) -> None:
        self._most = most
        self._most_of_request = most_of_request
        self._most_waiting = most_waiting
        self._most_waiting_of_client = most_waiting_of_client
        self._under_way = 0
        self._of_request: Counter[Hashable] = Counter()
        """How many calls of each request are under way."""
        self._waiting: dict[Hashable, dict[Hashable, dict[_Entry, None]]] = {}
        """By client and request, those whose turn comes next first."""
        self._of_client: Counter[Hashable] = Counter()
        """How many calls of each client wait."""
        self._entries = 0

    async def take_turn(self, callers: Callers) -> Caller:
        """Wait for a turn of one of the callers, which `end_turn` ends."""
        for caller in callers.all:
            if self._under_way < self._most and self._has_room(caller.request):
                self._begin(caller)
                return caller
        entry = self._enter(callers.all)
        callers.entries.append(entry)
        try:
            return await entry
        except asyncio.CancelledError:
            if entry.done() and not entry.cancelled():  # its turn came at the moment when it was cancelled
                self.end_turn(entry.result())
            raise
        finally:
            callers.entries.remove(entry)
            self._entries -= 1
            for caller in callers.all:
                self._remove(entry, caller)

    def end_turn(self, caller: Caller) -> None:
        self._under_way -= 1
        if caller.request is not None:
            self._of_request[caller.request] -= 1
            if not self._of_request[caller.request]:
                del self._of_request[caller.request]
        while self._under_way < self._most and (waiting := self._next()) is not None:
            caller, entry = waiting
            self._begin(caller)
            entry.set_result(caller)
            self._remove(entry, caller)

    def stand_in(self, entry: _Entry, caller: Caller) -> None:
        """Let a call that waits be sent at a turn of this caller too."""
        if not entry.done():
            self._waiting.setdefault(caller.client, {}).setdefault(caller.request, {})[entry] = None
            self._of_client[caller.client] += 1

    def _begin(self, caller: Caller) -> None:
        self._under_way += 1
        if caller.request is not None:
            self._of_request[caller.request] += 1

    def _has_room(self, request: Hashable | None) -> bool:
        return request is None or self._of_request[request] < self._most_of_request

    def _enter(self, callers: Sequence[Caller]) -> _Entry:
        if not any(self._admits(caller) for caller in callers):
            raise QueueFull
        entry = _Entry()
        entry.queue = self
        self._entries += 1
        for caller in callers:
            self.stand_in(entry, caller)
        return entry

    def _admits(self, caller: Caller) -> bool:
        return caller.request is None or (
            self._entries < self._most_waiting and self._of_client[caller.client] < self._most_waiting_of_client
        )

    def _remove(self, entry: _Entry, caller: Caller) -> None:
        requests = self._waiting.get(caller.client, {})
        entries = requests.get(caller.request, {})
        if entry not in entries:
            return
        del entries[entry]
        self._of_client[caller.client] -= 1
        if not entries:
            del requests[caller.request]
        if not requests:
            del self._waiting[caller.client]
            del self._of_client[caller.client]

    def _next(self) -> tuple[Caller, _Entry] | None:
        """The call whose turn is next. Its client and its request go to the end of their rows."""
        for client, requests in self._waiting.items():
            for request, entries in requests.items():
                if not self._has_room(request):
                    continue
                entry = next((entry for entry in entries if not entry.done()), None)
                if entry is None:
                    continue
                requests[request] = requests.pop(request)
                self._waiting[client] = self._waiting.pop(client)
                return Caller(client, request), entry
        return None
