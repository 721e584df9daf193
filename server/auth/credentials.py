"""The credentials of a socket or a stream, which stays open for longer than they may be valid.

Tokens and API keys are checked again every half minute. So a socket or stream ends soon after its API key was revoked
or the provider has withdrawn the key of its token, and at the moment when the credentials expire.
Those of a member who was erased end with the next check, too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from datastore.dynamo import DynamoError, deadline
from server.auth.errors import Unauthenticated, Unverifiable
from server.auth.identification import Identification, Identified

CHECK_SECONDS = 30.0
"""The time between two checks: with what checks may remember, an API key is revoked everywhere within a minute."""

EXPIRED = "token expired"
CHANGED = "the token's rights have changed"


class Credentials:
    """What a client was identified by when it connected; `identify` does so again."""

    def __init__(
        self, identification: Identification, identified: Identified, identify: Callable[[], Awaitable[Identified]]
    ) -> None:
        self._identification = identification
        self._identified = identified
        self._identify = identify

    async def lapse(self) -> str:
        """Wait until the credentials are no longer valid, and say why. A visitor's stay valid."""
        expires_at = self._identified.expires_at
        if expires_at is None:
            await asyncio.Event().wait()
        while (left := (expires_at or 0) - time.time()) > 0:
            await asyncio.sleep(min(left, CHECK_SECONDS))
            if reason := await self._refused():
                return reason
        return EXPIRED

    async def _refused(self) -> str | None:
        try:
            identified = await self._identify()
            with deadline(CHECK_SECONDS):
                await self._identification.refuse_erased(identified.viewer)
        except (Unverifiable, DynamoError):
            return None  # the next check may tell
        except Unauthenticated as error:
            expired = time.time() >= (self._identified.expires_at or 0)
            return EXPIRED if expired else error.detail
        return None if identified.viewer == self._identified.viewer else CHANGED
