"""Read, change, and write if nobody has changed it meanwhile: otherwise read and change again.

- The first read may be of a cache (`optimistic_from`). Each further one is consistent, or it would find the same again.
- Only a conflict repeats: `Stale`, or a ConditionFailed that the change lets pass. What else a failed condition says, a
  refusal or that it was written after all, is for the change to tell.
- An unclear answer is no conflict: a ConditionFailed that is doubtful is raised, since the change may have been made.
  Only an `idempotent` change is made again: from what is read then, it finds nothing left to do. `UnitOfWork` leaves
  no doubt about a change with a receipt or an occurrence.
- There are `ATTEMPTS` attempts at most, with pauses of full jitter between them, until the request's deadline. Then the
  change is refused, and the refusal says when to ask again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from datastore.dynamo.errors import ConditionFailed
from datastore.dynamo.retries import remaining
from datastore.refusals import Conflict

S = TypeVar("S")
T = TypeVar("T")

ATTEMPTS = 32
"""With all pauses they take some seven seconds."""
_PAUSES = [min(0.02 * 2**attempt, 0.5) for attempt in range(ATTEMPTS)]


class Stale(Exception):
    """Somebody has changed what a change was made from."""


async def optimistic(
    read: Callable[[], Awaitable[S]], change: Callable[[S], Awaitable[T]], *, idempotent: bool = False
) -> T:
    """What a change of something returns that others change too."""
    return await optimistic_from(await read(), read, change, idempotent=idempotent)


async def optimistic_from(
    known: S, read: Callable[[], Awaitable[S]], change: Callable[[S], Awaitable[T]], *, idempotent: bool = False
) -> T:
    """The same, where the first attempt is made from what is known already."""
    state = known
    for pause in _PAUSES:
        try:
            return await change(state)
        except Stale:
            pass
        except ConditionFailed as failed:
            if failed.doubtful and not idempotent:
                raise
        wait = random.uniform(0, pause)  # noqa: S311 - spreads load, hides nothing
        if wait >= remaining():
            break
        await asyncio.sleep(wait)
        state = await read()
    raise Conflict("Others are changing this all the time. Try again in a moment.", retry_after=1.0)
