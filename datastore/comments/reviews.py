"""One rated comment of each member on a product, where the site wants that.

| wanted                          | read or write                                                        | requests |
|---------------------------------|----------------------------------------------------------------------|----------|
| take the place of a review      | PutItem USER#<author> REVIEW#<product>, in the comment's transaction | 0 more   |
| free it                         | DeleteItem of it, in the comment's transaction                       | 0 more   |
| who has it, if one is to be had | GetItem of it; without one, the author's pointers and their comments | 1-4      |

A rated comment takes the place when it is posted, rated, claimed or brought back, and says so itself (`placed`). So it
frees the place when it is deleted, rejected, claimed or loses its stars, also after the setting was switched off, and
nothing is written for others. What was rated before the setting was switched on has no place: it is found by its
author's pointers.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from datastore.comments.pages import read_comment
from datastore.comments.records import POINTER, Comment, Status, comments_of
from datastore.dynamo import Table, batches
from datastore.dynamo.entity import Entity, Key
from datastore.dynamo.writes import Write, absent, where

_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class ReviewPlace:
    """The place of a member's review of a product, and the comment that has it."""

    author: str
    product: str
    ulid: str


REVIEW_PLACE = Entity(ReviewPlace, Key("USER#{author}", "REVIEW#{product}"))


def is_review(comment: Comment | None) -> bool:
    """Whether a comment needs a place: it is rated, and not rejected. One that waits for a moderator has it already."""
    return comment is not None and comment.rating is not None and comment.held is not Status.REJECTED


async def find_review(table: Table, comment: Comment) -> Comment | None:
    """Another review of its author on its product; consistent."""
    place = await table.get(REVIEW_PLACE.at(author=comment.author, product=comment.product), consistent=True)
    if place is not None:
        found = await read_comment(table, place.product, place.ulid)
        return found if is_review(found) and place.ulid != comment.ulid else None
    pointers = POINTER.on(author=comment.author).newest_first().where(where(product=comment.product, reply=None))
    async for some in batches(table.iterate(pointers, consistent=True), _AT_ONCE):
        for found in await comments_of(table, some, with_held=True):
            if found is not None and found.ulid != comment.ulid and is_review(found):
                return found
    return None


def place_writes(old: Comment | None, new: Comment | None) -> Iterator[Write]:
    """What a change of a comment does to the place that it has or takes."""
    had, has = old is not None and old.placed, new is not None and new.placed
    if old is not None and new is not None and had and has and old.author == new.author:
        return
    if old is not None and had:
        yield REVIEW_PLACE.delete(REVIEW_PLACE.at(author=old.author, product=old.product), when=where(ulid=old.ulid))
    if new is not None and has:
        yield REVIEW_PLACE.put(ReviewPlace(new.author, new.product, new.ulid), when=absent())
