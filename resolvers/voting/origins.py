"""Where votes come from: each vote has a tag for its network address, which is known for a week and then forgotten."""

from __future__ import annotations

from datetime import date
from math import inf
from typing import NamedTuple

from datastore import voting as voting_store
from resolvers.requests.context import Context, Services
from resolvers.requests.rate_limits import address_hash

_MOST = 50_000
"""Voters whose tags are cached, some 15 MB; one more write is the price of forgetting one."""


class _Origin(NamedTuple):
    voter: str
    board: str
    address: str
    day: date


class Origins:
    """The tags that this process gave, by voter, board, address and day."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._tags = services.cache.each("origins", self._remember, age=inf, most=_MOST)

    async def tag(self, ctx: Context, board: str) -> str | None:
        """The tag for the viewer's votes on a board from their address; None if the server does not know one."""
        if not ctx.address:
            return None
        address = address_hash(self._services.seal, ctx.address)
        return await self._tags.load(_Origin(ctx.viewer.id, board, address, ctx.now().date()))

    async def _remember(self, origin: _Origin) -> str:
        return await voting_store.remember_origin(self._services.table, *origin, self._services.unit())
