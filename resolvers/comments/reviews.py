"""One rated comment of each member on a product, where RINGSIDE_ONE_REVIEW_PER_PRODUCT asks for it."""

from __future__ import annotations

from dataclasses import replace

from datastore.comments.changes import CommentChange
from datastore.comments.reviews import find_review, is_review
from datastore.refusals import Conflict
from resolvers.requests.context import Services
from resolvers.values.node_ids import node_id


async def with_place(services: Services, change: CommentChange) -> CommentChange:
    """The change, by which the comment takes or frees its author's place; Conflict if another comment has it."""
    old, new = change.old, change.new
    if new is None:
        return change
    if old is not None and old.placed and is_review(new) and new.author == old.author:
        return change
    takes = services.policy.one_review and is_review(new) and not is_review(old)
    if takes and (existing := await find_review(services.table, new)) is not None:
        message = "There is a rated comment of the same member on this product already. Edit that one instead."
        path = ("input", "product" if old is None else "comment")
        raise Conflict(message, path=path, existing=node_id("Comment", existing.node_key))
    placed = True if takes else None
    return change if new.placed is placed else replace(change, new=replace(new, placed=placed))
