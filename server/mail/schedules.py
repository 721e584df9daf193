"""Work on emails that is due every so often, by one process at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any

import structlog

from datastore.dynamo import DynamoError
from datastore.jobs.leases import Held, LeaseLost, Turn
from resolvers.live.background import Repeated
from resolvers.requests.context import Services
from server.mail.smtp import ServerUnreachable

_LOOK_AGAIN = 20.0
"""Seconds until the next attempt, if another process has the turn or a run has just ended."""
_CLOCK_SKEW = timedelta(minutes=1)
_log = structlog.get_logger("ringside.emails")


async def _always() -> bool:
    return True


class TurnSchedule(Repeated):
    """Sends when it is due, with the lease of a turn.

    The place of the lease is when the next run is due. It is set when a run has ended: so if the process is killed or
    stops, another one finds that a run is still due, and goes on, since what was sent is marked.
    """

    def __init__(
        self,
        services: Services,
        name: str,
        period: timedelta,
        send: Callable[[Held[Turn]], Coroutine[Any, Any, None]],
        has_work: Callable[[], Awaitable[bool]] = _always,
    ) -> None:
        self._turns = services
        self._name = name
        self._period = period
        self._send_in_turn = send
        self._has_work = has_work
        self._until_next = _LOOK_AGAIN
        problem = "sending emails failed; the next run goes on"
        super().__init__(self.run_if_due, lambda: self._until_next, problem, _log, ServerUnreachable)

    async def run_if_due(self) -> bool:
        """Whether a run was due, and no other process has it."""
        self._until_next = _LOOK_AGAIN
        lease = await self._turns.leases.take_turn(self._name) if await self._has_work() else None
        if lease is None:
            return False
        now = self._turns.clock()
        next_at = datetime.fromisoformat(lease.record.place) if lease.record.place else now
        # A time that is later than it can be was set by a clock that was ahead.
        is_due = not now < next_at <= now + self._period + _CLOCK_SKEW
        try:
            if is_due:
                next_at = now + self._period
                await lease.renewed_during(self._send_in_turn(lease))
            else:
                self._until_next = (next_at - now).total_seconds()
        except asyncio.CancelledError:
            next_at = now
            raise
        finally:
            with contextlib.suppress(LeaseLost, DynamoError):
                await lease.release(place=next_at.isoformat())
        return is_due
