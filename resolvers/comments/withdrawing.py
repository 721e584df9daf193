"""Withdrawing a member's comments: rejected one by one, and uncounted with it."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from datastore import comments as comments_store
from datastore.comments import Comment, CommentChange, Decision, Status
from datastore.comments.pointers import Pointer, member_pointers
from datastore.dynamo import optimistic
from datastore.ids import creation_time
from datastore.journal import Ground
from datastore.receipts import Once
from resolvers.comments.writing import revised, store_change
from resolvers.context import Services


async def withdraw_comments(services: Services, author: str, since: datetime | None, once: Once) -> int:
    """Reject a member's comments that were posted since a time; return how many were not rejected before."""
    withdrawn = 0
    async for pointer in member_pointers(services.table, author):
        if since is not None and creation_time(pointer.ulid) < since:
            break
        withdrawn += await _withdraw(services, pointer, once)
    return withdrawn


async def _withdraw(services: Services, pointer: Pointer, once: Once) -> bool:
    """Whether this call did it."""

    async def withdraw(comment: Comment | None) -> bool:
        if comment is None or comment.held is Status.REJECTED:
            return False
        change = CommentChange(comment, revised(comment, held=Status.REJECTED), Decision(Ground.FRAUD))
        await store_change(services, once, None, change)
        return True

    read = partial(comments_store.read_comment, services.table, pointer.product, pointer.ulid)
    return await optimistic(read, withdraw, idempotent=True)
