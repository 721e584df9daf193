"""What each call to the engine goes through: it waits for its turn, is paid for, and is metered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from datastore.dynamo.budgets import current
from datastore.dynamo.errors import TooManyWaiting
from datastore.dynamo.transport.call_queue import Caller, Callers, CallQueue, QueueFull

CALLS_AT_ONCE = 64
CALLS_OF_REQUEST = 16
"""Of one request under way."""
CALLS_WAITING = 8_000
"""A call that waits takes some 5 kB with the task it belongs to."""
CALLS_WAITING_OF_CLIENT = 4_000
"""Twice as many as one query may make."""

_READS = ("get_item", "batch_get_item", "query", "scan")
_WRITES = ("put_item", "update_item", "delete_item", "transact_write_items", "batch_write_item")


class Calls:
    """A low-level client whose data calls are ordered, paid for and metered. Everything else is the client's own."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._queue = CallQueue(
            CALLS_AT_ONCE,
            most_of_request=CALLS_OF_REQUEST,
            most_waiting=CALLS_WAITING,
            most_waiting_of_client=CALLS_WAITING_OF_CLIENT,
        )
        for method in _READS:
            setattr(self, method, partial(self._read, getattr(client, method)))
        for method in _WRITES:
            setattr(self, method, partial(self._write, getattr(client, method)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    async def _take_turn(self, callers: Callers) -> Caller:
        try:
            return await self._queue.take_turn(callers)
        except QueueFull:
            raise TooManyWaiting from None

    async def _read(self, method: Callable[..., Awaitable[Any]], /, **parameters: Any) -> Any:
        budget = current()
        caller = await self._take_turn(budget.callers)
        try:
            payer = None if budget.payer is None else budget.payer.pay()
            units = 0.0
            try:
                answer = await method(**parameters, ReturnConsumedCapacity="TOTAL")
                units = _units(answer)
            finally:
                if payer is not None:
                    payer.give_back(units)
        finally:
            self._queue.end_turn(caller)
        budget.spent.calls += 1
        budget.spent.read_units += units
        return answer

    async def _write(self, method: Callable[..., Awaitable[Any]], /, **parameters: Any) -> Any:
        budget = current()
        caller = await self._take_turn(budget.callers)
        try:
            answer = await method(**parameters, ReturnConsumedCapacity="TOTAL")
        finally:
            self._queue.end_turn(caller)
        budget.spent.calls += 1
        budget.spent.write_units += _units(answer)
        return answer


def _units(answer: Mapping[str, Any]) -> float:
    consumed = answer.get("ConsumedCapacity") or ()
    parts = consumed if isinstance(consumed, list) else [consumed]
    return float(sum(part.get("CapacityUnits", 0.0) for part in parts if part))
