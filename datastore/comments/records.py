"""The records of comments: comments and replies, what members reported about them, late arrivals; and pointers.

A reply is a comment that answers another one. It belongs to the thread of a top-level comment, its `root`, also when it
answers a reply there. A stub stands where a top-level comment was that is not to be seen any more but has replies: it
has nothing of the comment but its place.

A pointer lies in its member's own item collection, and in an index of the site's latest comments.

| wanted                            | read or write                                              | requests   |
|-----------------------------------|------------------------------------------------------------|------------|
| a member's comments, newest first | USER#<author> COMMENT#<ulid>, then BatchGetItem            | 2 a page   |
| how many comments a member has    | the same pointers, counted                                 | 1 a 1,000  |
| the site's latest comments        | gsi1 LATEST#<shard>, 8 shards merged, then BatchGetItem    | 9 a page   |
| who has an id                     | gsi1 LATEST#<shard>, one sort key                          | 1          |
| the latest held ones              | gsi1 MODERATION#<status>#<shard>, 8 shards merged          | 8 a page   |

A pointer is written, changed and deleted in the transaction of its comment, for 2 write units and one of the index. It
changes when a moderator holds or publishes the comment, not when somebody edits it. 2,000 comments a second add 250
entries a second to each key of the index, and as many to those of held comments if all of them are held.

Between the read of the pointers and that of the comments a comment may be deleted or held: it is left out, so a page
may be short. Its cursors lie around everything that was read for it.
"""

import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Self

from datastore.dynamo import Table, Window
from datastore.dynamo.attributes import item_size
from datastore.dynamo.entity import Entity, ItemKey, Key, Partition, shard_of
from datastore.dynamo.paging import Page, shard_limit
from datastore.dynamo.writes import Condition, Delete, Put, absent, where
from datastore.values.ids import creation_time

# ── comments ──

SHARDS = 8
"""Keys of the list of the site's latest comments, and of each list of held ones."""
_ARRIVAL_LIFETIME = timedelta(days=30)


class Status(StrEnum):
    """Whether a comment may be seen."""

    PUBLISHED = "PUBLISHED"
    PENDING = "PENDING"
    REJECTED = "REJECTED"


@dataclass(frozen=True, slots=True)
class Answer:
    """The site's own answer to a comment."""

    body: str
    at: datetime
    by: str | None = None
    """The editor; None for an API key."""


@dataclass(frozen=True, slots=True)
class Comment:
    """A member's comment on a product. Values of None are not stored, since each item is stored four times."""

    product: str
    ulid: str
    language: str
    rating: int | None
    body: str
    author: str
    title: str | None = None
    edited_at: datetime | None = None
    held: Status | None = None
    note: str | None = None
    arrived: str | None = None
    """The position of its late arrival, if it was published after it had been held."""
    revision: int | None = None
    reply_to: str | None = None
    """The id of the comment that a reply answers."""
    root: str | None = None
    """The id of the top-level comment in whose thread a reply stands."""
    threaded: bool | None = None
    """Whether there is a thread of replies to it."""
    removed: bool | None = None
    """Whether this is a stub."""
    held_by: str | None = None
    """The name of the rule that holds it, or held it before it was rejected."""
    answer: Answer | None = None
    placed: bool | None = None
    """Whether it has its author's place for a review of the product."""
    marked: bool | None = None
    """Whether a member has found it helpful."""
    verified_at: datetime | None = None
    """When its author showed a shop's proof of purchase."""
    proof: str | None = None
    """The digest of the proof."""

    @property
    def status(self) -> Status:
        return self.held or Status.PUBLISHED

    @property
    def shard(self) -> int:
        return shard_of(self.ulid, SHARDS)

    @property
    def created_at(self) -> datetime:
        return creation_time(self.ulid)

    @property
    def arrived_at(self) -> datetime | None:
        return None if self.arrived is None else creation_time(self.arrived)

    @property
    def node_key(self) -> str:
        return f"{self.product}#{self.ulid}"

    @property
    def size(self) -> int:
        """Bytes of its item, in the table and in each index, without what marks it as answered or helpful."""
        has_marks = self.threaded or self.marked
        return item_size(COMMENT.item(replace(self, threaded=None, marked=None) if has_marks else self))


COMMENT = Entity(
    Comment,
    Key("PRODUCT#{product}", "COMMENT#{ulid}"),
    gsi1=Key("PRODUCT#{product}#{language}", "{ulid}", unless="removed"),
    gsi2=Key("PRODUCT#{product}#~#{rating}", "{ulid}", when="rating"),
    gsi3=Key("PRODUCT#{product}#{language}#{rating}", "{ulid}", when="rating"),
)
REPLY = Entity(Comment, Key("PRODUCT#{product}", "REPLY#{ulid}"), gsi1=Key("THREAD#{product}#{root}", "{ulid}"))
HELD = Entity(Comment, Key("PRODUCT#{product}", "HELD#{ulid}"), gsi1=Key("MODERATION#{status}#{shard}", "{ulid}"))


def held_partitions(status: Status) -> list[Partition[Comment]]:
    """The held comments of a status, to be merged in the order of their ids."""
    return [HELD.on("gsi1", status=status, shard=shard) for shard in range(SHARDS)]


def entity_for(comment: Comment) -> Entity[Comment]:
    if comment.held is not None:
        return HELD
    return COMMENT if comment.root is None else REPLY


_NO_LANGUAGE = "und"
"""The language of a stub: no filter can ask for it."""


def stub_in_place_of(product: str, ulid: str) -> Comment:
    """The stub of a comment. Its author is nobody, and always the same nobody."""
    nobody = f"former-{hashlib.sha256(f'{product}#{ulid}'.encode()).hexdigest()[:16]}"
    return Comment(product, ulid, _NO_LANGUAGE, None, "", nobody, threaded=True, removed=True)


@dataclass(frozen=True, slots=True)
class ChangedComment:
    """What a mutation answers: the comment as it left it. Receipts keep its place alone, so they outlive no text."""

    product: str
    ulid: str
    comment: Comment | None = None

    @classmethod
    def to(cls, comment: Comment) -> Self:
        return cls(comment.product, comment.ulid, comment)

    @classmethod
    def as_stored(cls, comment: Comment) -> Self:
        return cls(comment.product, comment.ulid)


@dataclass(frozen=True, slots=True)
class Reports:
    """Members' reports of one published comment: a reason for each reporter."""

    product: str
    ulid: str
    reasons: dict[str, str]
    revision: int = 1
    reply: bool | None = None
    """Whether the comment is a reply."""

    @property
    def unchanged(self) -> Condition:
        """Also the reasons: reports that start over after a decision have revision 1 again."""
        return where(revision=self.revision, reasons=self.reasons)


REPORTS = Entity(Reports, Key("PRODUCT#{product}", "REPORTS#{ulid}"), gsi1=Key("MODERATION#PUBLISHED", "{ulid}"))


@dataclass(frozen=True, slots=True)
class LateArrival:
    """A comment that was held and published later. Feeds show it at `position`, which is its `arrived`."""

    product: str
    position: str
    comment: str
    reply: bool | None = None
    """Whether the comment is a reply."""

    @property
    def expires(self) -> datetime:
        return creation_time(self.position) + _ARRIVAL_LIFETIME


LATE_ARRIVAL = Entity(LateArrival, Key("PRODUCT#{product}", "ARRIVAL#{position}"), ttl="expires")


def is_reply(comment: Comment) -> bool | None:
    """Whether a comment is a reply, as records say that name one."""
    return None if comment.root is None else True


def published_place(product: str, ulid: str, *, reply: bool | None) -> ItemKey[Comment]:
    """Where a comment is as long as it is published."""
    return (REPLY if reply else COMMENT).at(product=product, ulid=ulid)


# ── pointers ──


@dataclass(frozen=True, slots=True)
class Pointer:
    """Where one comment of a member is, and whether it is held."""

    author: str
    ulid: str
    product: str
    held: Status | None = None
    reply: bool | None = None

    @property
    def shard(self) -> int:
        return shard_of(self.ulid, SHARDS)


POINTER = Entity(
    Pointer,
    Key("USER#{author}", "COMMENT#{ulid}"),
    gsi1=Key("LATEST#{shard}", "{ulid}"),
    gsi2=Key("WAITING#{held}#{shard}", "{ulid}", when="held"),
)


def pointer_to(comment: Comment) -> Pointer:
    return Pointer(comment.author, comment.ulid, comment.product, comment.held, is_reply(comment))


def pointer_writes(old: Comment | None, new: Comment | None) -> list[Put | Delete]:
    """What a change of one comment does to its pointer. An edit does nothing."""
    if new is None:
        return [] if old is None else [POINTER.delete(POINTER.at(author=old.author, ulid=old.ulid))]
    if old is None:  # an attempt whose answer was lost may have posted it, and a moderator held it since
        return [POINTER.put(pointer_to(new), when=absent())]
    if old.author == new.author:
        return [] if old.held is new.held else [POINTER.put(pointer_to(new))]
    return [POINTER.delete(POINTER.at(author=old.author, ulid=old.ulid)), POINTER.put(pointer_to(new))]


@dataclass(frozen=True, slots=True)
class MemberComments(Page[Comment]):
    """A page of one member's comments: of all, or of the published ones."""

    author: str = ""
    with_held: bool = False


async def read_member_comments(table: Table, author: str, window: Window, *, with_held: bool) -> MemberComments:
    """Newest first."""
    request = window.open(f"comments of:{author}:{with_held}")
    page = await table.page([_of_member(author, with_held=with_held)], request, consistent=True)
    comments = await comments_of(table, page.nodes, with_held=with_held)
    return MemberComments.of(page, comments, author=author, with_held=with_held)


async def count_member_comments(table: Table, author: str, *, with_held: bool) -> int:
    pointers = table.iterate(_of_member(author, with_held=with_held), consistent=True, at_once=1000)
    return len([None async for _ in pointers])


async def find_pointers(table: Table, ulid: str) -> tuple[Pointer, ...]:
    """Every pointer to a comment with this id, as far as the index shows it."""
    with_id = POINTER.on("gsi1", shard=shard_of(ulid, SHARDS), ulid=ulid)
    return (await table.query(with_id, limit=10)).records


def member_pointers(table: Table, author: str) -> AsyncIterator[Pointer]:
    """Every pointer of a member, newest first; consistent."""
    return table.iterate(POINTER.on(author=author).newest_first(), consistent=True)


def _of_member(author: str, *, with_held: bool) -> Partition[Pointer]:
    pointers = POINTER.on(author=author).newest_first()
    return pointers if with_held else pointers.where(absent("held"))


async def read_latest_comments(table: Table, status: Status | None, window: Window) -> Page[Comment]:
    """All comments, or those of a status, newest first."""
    request = window.open(f"latest:{status}")
    limit = shard_limit(request.wanted, SHARDS)
    if status in (Status.PENDING, Status.REJECTED):
        return await table.page([shard.newest_first() for shard in held_partitions(status)], request, limit=limit)
    shards = [POINTER.on("gsi1", shard=shard).newest_first() for shard in range(SHARDS)]
    if status is Status.PUBLISHED:
        shards = [shard.where(absent("held")) for shard in shards]
    page = await table.page(shards, request, limit=limit)
    return page.map(await comments_of(table, page.nodes, with_held=status is None))


async def comments_of(table: Table, pointers: Sequence[Pointer], *, with_held: bool) -> list[Comment | None]:
    """The comment of each pointer, consistent; None if it was deleted, or is held and those are not wanted."""
    comments = await table.get_many([_place(pointer) for pointer in pointers], consistent=True)
    if with_held:  # a moderator may have moved some since the pointers were read
        missing = [place for place, comment in enumerate(comments) if comment is None or comment.removed]
        moved = await table.get_many([_place(pointers[place], moved=True) for place in missing], consistent=True)
        for place, comment in zip(missing, moved, strict=True):
            comments[place] = comment
    return [None if comment is None or comment.removed else comment for comment in comments]


def _place(pointer: Pointer, *, moved: bool = False) -> ItemKey[Comment]:
    if (pointer.held is None) is moved:
        return HELD.at(product=pointer.product, ulid=pointer.ulid)
    return published_place(pointer.product, pointer.ulid, reply=pointer.reply)
