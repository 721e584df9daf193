"""The credentials of a socket or a stream, which stays open for longer than they may be valid.

Tokens and API keys are checked again every half minute. So a socket or stream ends soon after its API key was revoked
or the provider has withdrawn the key of its token, and at the moment when the credentials expire.
Those of a member who was erased end with the next check, too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

from datastore.dynamo import DynamoError, deadline
from server.auth.errors import Unauthenticated, Unverifiable
from server.auth.identification import Identification, Identified, RawHeaders

CHECK_SECONDS = 30.0
"""The time between two checks: with what checks may remember, an API key is revoked everywhere within a minute."""

EXPIRED = "token expired"
CHANGED = "the token's rights have changed"


class Credentials:
    """What a client was identified by when it connected."""

    def __init__(
        self,
        identification: Identification,
        identified: Identified,
        headers: RawHeaders,
        *,
        secure: bool,
        address: str = "",
        params: Mapping[str, object] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._identification = identification
        self._identified = identified
        self._headers = headers
        self._secure = secure
        self._address = address
        self._params = params
        self._clock = clock

    async def lapse(self) -> str:
        """Wait until the credentials are no longer valid, and say why. A visitor's stay valid."""
        expires_at = self._identified.expires_at
        if expires_at is None:
            await asyncio.Event().wait()
        while (left := (expires_at or 0) - self._clock()) > 0:
            await asyncio.sleep(min(left, CHECK_SECONDS))
            if reason := await self._refused():
                return reason
        return EXPIRED

    async def _refused(self) -> str | None:
        try:
            identified = await self._identification.identify(
                self._headers, secure=self._secure, address=self._address, params=self._params
            )
            with deadline(CHECK_SECONDS):
                await self._identification.refuse_erased(identified.viewer)
        except (Unverifiable, DynamoError):
            return None  # the next check may tell
        except Unauthenticated as error:
            expired = self._clock() >= (self._identified.expires_at or 0)
            return EXPIRED if expired else error.detail
        return None if identified.viewer == self._identified.viewer else CHANGED
