"""Comments whose authors have shown a shop's proof of purchase, and the proofs that were shown.

| wanted                         | read or write                                                       | requests   |
|--------------------------------|---------------------------------------------------------------------|------------|
| a page of verified comments    | as in `planner`, in the partitions VERIFIED#<p>…                    | 1-25       |
| a comment's second entry       | PutItem or DeleteItem VERIFIED#<p> COMMENT#<ulid>, with the comment | 0 more     |
| whether a proof was shown      | GetItem PROOF#<digest>, before the comment is posted                | 1          |
| that it was                    | PutItem of it, in the comment's transaction                         | 0 more     |

A published, verified comment has a second entry with the same keys in indexes of its own, so a page of these costs as
much as any other, however few they are: about 5 write units, and none for other comments. It is written whenever the
comment is.

A proof counts for one comment, and again once that is deleted. Its item ends with the proof.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from datastore.comments.records import Comment
from datastore.dynamo import Table
from datastore.dynamo.entity import Entity, Key
from datastore.dynamo.writes import Write, present

VERIFIED = Entity(
    Comment,
    Key("VERIFIED#{product}", "COMMENT#{ulid}"),
    gsi1=Key("VERIFIED#{product}#{language}", "{ulid}"),
    gsi2=Key("VERIFIED#{product}#~#{rating}", "{ulid}", when="rating"),
    gsi3=Key("VERIFIED#{product}#{language}#{rating}", "{ulid}", when="rating"),
)


@dataclass(frozen=True, slots=True)
class ShownProof:
    """That a proof was shown for a comment."""

    digest: str
    product: str
    ulid: str
    expires: datetime


PROOF = Entity(ShownProof, Key("PROOF#{digest}", "PROOF"), ttl="expires")


async def read_proof(table: Table, digest: str) -> ShownProof | None:
    return await table.get(PROOF.at(digest=digest), consistent=True)


def entry_writes(old: Comment | None, new: Comment | None) -> Iterator[Write]:
    """What a change of a comment does to its second entry and to its proof."""
    if new is not None and _has_entry(new):
        yield VERIFIED.put(new)
    elif old is not None and _has_entry(old):
        yield VERIFIED.delete(VERIFIED.item_key(old))
    if old is not None and new is None and old.proof is not None:
        yield PROOF.delete(PROOF.at(digest=old.proof))


def entry_updates(comment: Comment, **values: Any) -> Iterator[Write]:
    """What sets values of a comment in place, in its second entry."""
    if _has_entry(comment):
        yield VERIFIED.update(VERIFIED.item_key(comment), values=values, when=present())


def _has_entry(comment: Comment) -> bool:
    return comment.verified_at is not None and comment.held is None


def all_entries(table: Table) -> AsyncIterator[Comment]:
    return table.scan(VERIFIED)
