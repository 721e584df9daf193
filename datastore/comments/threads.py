"""Threads: how many replies a top-level comment has, and what becomes of its place while it is not to be seen.

| wanted                           | read or write                                                     | requests   |
|----------------------------------|-------------------------------------------------------------------|------------|
| replies, oldest first            | gsi1 THREAD#<p>#<root>                                            | 1 a page   |
| a member's held replies          | USER#<author> COMMENT#, the latest hundred, then BatchGetItem     | 1-2        |
| how many replies comments have   | BatchGetItem THREAD#<p>#<root> THREAD                             | 1 for 100  |
| what a reply answers             | BatchGetItem COMMENT#<ulid>, REPLY#<ulid>                         | 1 for 100  |
| post, publish or remove a reply  | ADD to THREAD in the reply's transaction, after a GetItem         | 1 more     |
| the first reply                  | the same, and a mark on its comment                               | 2 more     |
| hide or show a comment           | THREAD in its transaction, after a GetItem, if there is a thread  | 0-1 more   |

A thread begins with the first reply, which also marks the comment: so a comment without replies costs nothing, and a
page knows whose threads to read. Invariants, which `ringside audit` checks:

- A comment, published or held, is marked if and only if it has a THREAD item. The item counts the published replies.
- A stub stands in a comment's place if and only if the comment is held or gone and has published replies.

A reply to a comment that is to be seen only adds to the count, so replies do not wait for each other; a key takes
twenty of their transactions a second. Whatever hides or shows the comment, or may end the thread, names the count that
it has read, and is made again if that has changed.

Nothing checks that the answered reply is still there when the answer is written: it is as if it had been removed
afterwards.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from datastore.comments.helpful import number_writes
from datastore.comments.records import (
    COMMENT,
    HELD,
    POINTER,
    REPLY,
    Comment,
    entity_for,
    published_place,
    stub_in_place_of,
)
from datastore.comments.verified import entry_updates
from datastore.dynamo import Page, PageRequest, Stale, Table
from datastore.dynamo.entity import Entity, Key
from datastore.dynamo.writes import Condition, Write, absent, present, where

# ── records ──


class Hidden(StrEnum):
    """Why a comment with a thread is not to be seen."""

    HELD = "HELD"
    GONE = "GONE"


@dataclass(frozen=True, slots=True)
class Thread:
    """The number of published replies in the thread of a top-level comment."""

    product: str
    root: str
    replies: int = 0
    hidden: Hidden | None = None

    @property
    def unchanged(self) -> Condition:
        return where(replies=self.replies, hidden=self.hidden)

    @property
    def has_stub(self) -> bool:
        return self.hidden is not None and self.replies > 0


THREAD = Entity(Thread, Key("THREAD#{product}#{root}", "THREAD"))


# ── reading ──


async def read_replies(table: Table, comment: Comment, request: PageRequest) -> Page[Comment]:
    """The published replies in a comment's thread, oldest first."""
    return await table.page([REPLY.on("gsi1", product=comment.product, root=comment.ulid)], request)


_LATEST = 100


async def read_own_held(table: Table, author: str) -> list[Comment]:
    """The held replies among a member's latest hundred comments, oldest first; consistent."""
    pointers = await table.query(POINTER.on(author=author).newest_first(), limit=_LATEST, consistent=True)
    waiting = [one for one in reversed(pointers.records) if one.reply and one.held is not None]
    places = [HELD.at(product=one.product, ulid=one.ulid) for one in waiting]
    return await table.find_many(places, consistent=True)


async def read_threads(table: Table, keys: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], Thread]:
    """The threads of comments, by product and id."""
    threads = await table.find_many([THREAD.at(product=product, root=ulid) for product, ulid in keys])
    return {(thread.product, thread.root): thread for thread in threads}


async def read_answered(table: Table, keys: Sequence[tuple[str, str, bool]]) -> Mapping[tuple[str, str, bool], Comment]:
    """What replies answer, by product, id and whether it is a reply itself: published comments, and stubs."""
    places = [published_place(product, ulid, reply=reply) for product, ulid, reply in keys]
    found = zip(keys, await table.get_many(places), strict=True)
    return {key: comment for key, comment in found if comment is not None}


async def read_held(table: Table, stubs: Sequence[Comment]) -> list[Comment | None]:
    """The held comment in whose place each stub stands, consistent; None if it is gone."""
    places = [HELD.at(product=stub.product, ulid=stub.ulid) for stub in stubs]
    held = await table.get_many(places, consistent=True)
    return [None if comment is None else replace(comment, threaded=True) for comment in held]


# ── writing ──

_IS_SEEN = present() & absent("hidden")


@dataclass(frozen=True, slots=True)
class ThreadState:
    """A thread and, if it has yet to begin, its comment: None if that is gone."""

    product: str
    ulid: str
    thread: Thread | None
    root: Comment | None = None

    @property
    def is_hidden(self) -> bool:
        return not is_visible(self.root) if self.thread is None else self.thread.hidden is not None

    def counted(self, step: int) -> Iterator[Write]:
        """What adds to the number of replies, or takes from it."""
        if self.thread is None:
            yield from self._begun(step)
        elif self.thread.hidden is None:
            yield THREAD.update(THREAD.item_key(self.thread), add={"replies": step}, when=_IS_SEEN)
        else:
            yield from self._counted_under_stub(self.thread, step)

    def _begun(self, replies: int) -> Iterator[Write]:
        """A thread with its first replies, and the mark on its comment, or a stub in the place of one that is gone."""
        if replies < 1:
            raise Stale  # the thread ended meanwhile
        root, hidden = self.root, None if is_visible(self.root) else Hidden.GONE
        if root is not None:
            when = present() & where(revision=root.revision, threaded=None, marked=root.marked)
            yield entity_for(root).update(entity_for(root).item_key(root), values={"threaded": True}, when=when)
            yield from entry_updates(root, threaded=True)
            yield from number_writes(root, replace(root, threaded=True))
            hidden = None if is_visible(root) else Hidden.HELD
        yield THREAD.put(Thread(self.product, self.ulid, replies, hidden), when=absent())
        if hidden is not None:
            yield COMMENT.put(stub_in_place_of(self.product, self.ulid), when=absent())

    def _counted_under_stub(self, thread: Thread, step: int) -> Iterator[Write]:
        """In the thread of a hidden comment the stub comes with the first reply and goes with the last."""
        key, after = THREAD.item_key(thread), replace(thread, replies=thread.replies + step)
        if not after.has_stub and thread.hidden is Hidden.GONE:
            yield THREAD.delete(key, when=thread.unchanged)
        else:
            yield THREAD.update(key, add={"replies": step}, when=present() & thread.unchanged)
        stub = stub_in_place_of(thread.product, thread.root)
        if after.has_stub and not thread.has_stub:
            yield COMMENT.put(stub, when=absent())
        if thread.has_stub and not after.has_stub:
            yield COMMENT.delete(COMMENT.item_key(stub), when=where(removed=True))


@dataclass(frozen=True, slots=True)
class ThreadChange:
    """What a change of one comment does to its own thread, or to the one that it stands in."""

    old: Comment | None
    new: Comment | None
    state: ThreadState

    @property
    def _own(self) -> Thread | None:
        """The thread of a top-level comment."""
        comment = self.new or self.old
        return self.state.thread if comment is not None and comment.root is None else None

    @property
    def leaves_stub(self) -> bool:
        """Whether a comment with replies is hidden, or gone, so that its stub takes its place."""
        return self._own is not None and self._own.replies > 0 and is_visible(self.old)

    @property
    def replaces_stub(self) -> bool:
        """Whether a comment with replies comes back to where its stub stands."""
        return self._own is not None and self._own.has_stub and is_visible(self.new)

    def writes(self) -> Iterator[Write]:
        """Stale if a comment was hidden since it was answered. A held reply is published under a stub all the same."""
        comment = self.new or self.old
        if comment is None or comment.root is None:
            if self._own is not None:
                yield self._kept(self._own)
            return
        if self.old is None and comment.root == comment.reply_to and self.state.is_hidden:
            raise Stale
        yield from self.state.counted(1 if is_visible(self.new) else -1)

    def _kept(self, thread: Thread) -> Write:
        """The thread of a comment that is hidden, shown or deleted."""
        key = THREAD.item_key(thread)
        if self.new is None and thread.replies == 0:
            return THREAD.delete(key, when=thread.unchanged)
        hidden = Hidden.GONE if self.new is None else None if is_visible(self.new) else Hidden.HELD
        return THREAD.update(key, values={"hidden": hidden}, when=present() & thread.unchanged)


async def read_thread_change(table: Table, old: Comment | None, new: Comment | None) -> ThreadChange | None:
    """What a change does to a thread; None if it touches none. The reads are consistent."""
    comment = new or old
    if comment is None or not _touches_thread(old, new):
        return None
    root = comment.root or comment.ulid
    thread = await table.get(THREAD.at(product=comment.product, root=root), consistent=True)
    if thread is not None or comment.root is None or new is None:
        return ThreadChange(old, new, ThreadState(comment.product, root, thread))
    (state,) = await _read_roots(table, [(comment.product, root)], [None])
    return ThreadChange(old, new, state)


async def read_thread_states(table: Table, keys: Sequence[tuple[str, str]]) -> list[ThreadState]:
    """Threads and their comments, by product and id; consistent. Stale if one begins or ends meanwhile."""
    threads = await table.get_many([THREAD.at(product=product, root=ulid) for product, ulid in keys], consistent=True)
    return await _read_roots(table, keys, threads)


async def _read_roots(
    table: Table, keys: Sequence[tuple[str, str]], threads: Sequence[Thread | None]
) -> list[ThreadState]:
    """Threads that were just read, with their comments."""
    places = [entity.at(product=product, ulid=ulid) for entity in (COMMENT, HELD) for product, ulid in keys]
    found = await table.get_many(places, consistent=True)
    states = []
    for (product, ulid), thread, *roots in zip(keys, threads, found[: len(keys)], found[len(keys) :], strict=True):
        root = next((comment for comment in roots if comment is not None and not comment.removed), None)
        if thread is None and any(roots) and root is None:
            raise Stale
        states.append(ThreadState(product, ulid, thread, root))
    return states


def _touches_thread(old: Comment | None, new: Comment | None) -> bool:
    comment = new or old
    if comment is not None and comment.root is not None:
        return is_visible(old) != is_visible(new)
    return old is not None and bool(old.threaded) and (new is None or is_visible(old) != is_visible(new))


def is_visible(comment: Comment | None) -> bool:
    return comment is not None and comment.held is None
