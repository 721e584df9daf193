"""Where votes come from: each vote has a tag for its network address, which is known for a week and then forgotten."""

from __future__ import annotations

from datetime import date

from datastore import voting as voting_store
from resolvers.loading.bounded_dict import BoundedDict
from resolvers.requests.context import Context, Services
from resolvers.requests.rate_limits import address_hash

_MOST = 50_000
"""Voters whose tags are cached, some 15 MB; one more write is the price of forgetting one."""


class Origins:
    """The tags that this process gave today, by voter, board and address."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._tags: BoundedDict[tuple[str, str, str], tuple[date, str]] = BoundedDict(_MOST)

    async def tag(self, ctx: Context, board: str) -> str | None:
        """The tag for the viewer's votes on a board from their address; None if the server does not know one."""
        if not ctx.address:
            return None
        key = (ctx.viewer.id, board, address_hash(self._services.seal, ctx.address))
        day, tag = self._tags.get(key, (None, None))
        today = ctx.now().date()
        if day != today or tag is None:
            tag = await voting_store.remember_origin(self._services.table, *key, today, ctx.unit)
            self._tags[key] = (today, tag)
        return tag
