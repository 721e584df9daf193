"""Erasing a member from comments: their reports of other members' comments.

| wanted                     | read or write                                            | requests     |
|----------------------------|----------------------------------------------------------|--------------|
| a member's reports         | gsi1 MODERATION#PUBLISHED                                | 1 a page     |
| forget who made one        | GetItem, then PutItem or DeleteItem if unchanged         | 2            |
"""

from __future__ import annotations

from dataclasses import replace

from datastore.comments.records import REPORTS, Reports
from datastore.dynamo import Table, optimistic


async def forget_reporter(table: Table, user: str, alias: str | None) -> None:
    """Remove a member's reports that the index shows, or let them be those of another name."""
    async for listed in table.iterate(REPORTS.on("gsi1")):
        if user in listed.reasons:
            await _forget(table, listed, user, alias)


async def _forget(table: Table, listed: Reports, user: str, alias: str | None) -> None:
    key = REPORTS.item_key(listed)

    async def forget(current: Reports | None) -> None:
        if current is None or user not in current.reasons:
            return
        reasons = {(alias if name == user else name): reason for name, reason in current.reasons.items()}
        left = {name: reason for name, reason in reasons.items() if name is not None}
        after = replace(current, reasons=left, revision=current.revision + 1)
        when = current.unchanged
        await table.write(REPORTS.put(after, when=when) if left else REPORTS.delete(key, when=when))

    await optimistic(lambda: table.get(key, consistent=True), forget, idempotent=True)
