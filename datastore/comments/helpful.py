"""Which comments members found helpful: their marks, the number of them, and the order by it.

| wanted                           | read or write                                                     | requests    |
|----------------------------------|-------------------------------------------------------------------|-------------|
| mark a comment, or take it back  | HELPFUL and the mark, each after a consistent GetItem             | 2, and 1    |
| a page of the most helpful ones  | gsi1 HELPFUL#<p>, best first                                      | 1           |
| the page after them              | as in `pages`; BatchGetItem of the numbers of marked comments     | 2           |
| how many found comments helpful  | BatchGetItem HELPFUL#<p> COMMENT#<ulid>, of marked ones           | 1 for 100   |
| whether a member did             | the same, and BatchGetItem USER#<u> HELPFUL#<ulid>#<p>            | 2 for 100   |

A comment is marked itself at the first member's mark: so one that nobody has marked costs nothing, and a page knows
which numbers to read. HELPFUL repeats its comment, as long as that is published: so a page of the most helpful ones is
one query. A change of the comment changes it in the same transaction, and deleting the comment deletes it. Members'
marks stay, and are worth nothing without the number that they say they belong to (`since`): a comment that an import
brings back has none.

The number of one comment is one item, and each mark names the number that it has read: one comment takes about twenty
marks a second.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from datastore.changes.unit_of_work import UnitOfWork
from datastore.comments.pages import CommentPage, ReadReport, read_page
from datastore.comments.planner import CommentCounts, Filter, plans
from datastore.comments.records import COMMENT, ChangedComment, Comment
from datastore.comments.verified import entry_updates
from datastore.dynamo import PageRequest, Table, optimistic
from datastore.dynamo.entity import Entity, Key
from datastore.dynamo.writes import Write, absent, present, where

# ── records ──


@dataclass(frozen=True, slots=True)
class Helpful:
    """How many members found a top-level comment helpful."""

    product: str
    ulid: str
    since: datetime
    """When it was first marked."""
    language: str
    rating: int | None = None
    number: int = 0
    verified: bool | None = None
    comment: Comment | None = None
    """The comment as it is, if it is published."""

    @classmethod
    def of(cls, comment: Comment, since: datetime) -> Helpful:
        return cls(comment.product, comment.ulid, since, number=1, **_repeated(comment))


def _repeated(comment: Comment) -> dict[str, Any]:
    """What is stored of a comment beside its number."""
    return {
        "language": comment.language,
        "rating": comment.rating,
        "verified": None if comment.verified_at is None else True,
        "comment": comment if comment.held is None else None,
    }


@dataclass(frozen=True, slots=True)
class Mark:
    """That a member found a comment helpful."""

    user: str
    product: str
    ulid: str
    since: datetime
    """That of the number in which it is counted."""
    at: datetime


HELPFUL = Entity(
    Helpful,
    Key("HELPFUL#{product}", "COMMENT#{ulid}"),
    gsi1=Key("HELPFUL#{product}", "{number:best_first}#{ulid}", when="number"),
)
MARK = Entity(Mark, Key("USER#{user}", "HELPFUL#{ulid}#{product}"))


# ── marks ──


async def mark_helpful(table: Table, unit: UnitOfWork, comment: Comment, user: str, *, helpful: bool) -> Comment:
    """The published comment with a member's mark, or without it. ConditionFailed if others do so at once."""
    place, answer = {"product": comment.product, "ulid": comment.ulid}, ChangedComment.as_stored(comment)
    number = await table.get(HELPFUL.at(**place), consistent=True) if comment.marked else None
    mark = await table.get(MARK.at(user=user, **place), consistent=True)
    if is_counted(mark, number) is helpful:
        await unit.store_receipt(table, answer)
        return comment
    own = Mark(user, comment.product, comment.ulid, unit.now if number is None else number.since, unit.now)
    if number is None:
        await unit.transact(table, answer, *_first_mark(comment, own, mark))
    else:
        seen = COMMENT.check(COMMENT.item_key(comment), present() & where(removed=None))
        await unit.transact(table, answer, *_marked(number, own, mark, helpful=helpful), seen)
    return replace(comment, marked=True)


def is_counted(mark: Mark | None, number: Helpful | None) -> bool:
    """Whether a mark is one of those that were counted."""
    return mark is not None and number is not None and mark.since == number.since


def _first_mark(comment: Comment, own: Mark, mark: Mark | None) -> list[Write]:
    """The comment must be as it was read, since it is repeated."""
    marked = replace(comment, marked=True)
    as_read = present() & where(revision=comment.revision, threaded=comment.threaded, removed=None, marked=None)
    return [
        HELPFUL.put(Helpful.of(marked, own.since), when=absent()),
        _put_mark(own, mark),
        COMMENT.update(COMMENT.item_key(comment), values={"marked": True}, when=as_read),
        *entry_updates(comment, marked=True),
    ]


def _marked(number: Helpful, own: Mark, mark: Mark | None, *, helpful: bool) -> list[Write]:
    changed = replace(number, number=number.number + (1 if helpful else -1))
    unchanged = present() & where(since=number.since, number=number.number)
    return [
        HELPFUL.update_with_indexes(changed, "number", when=unchanged),
        _put_mark(own, mark) if helpful else MARK.delete(MARK.item_key(own), when=where(since=own.since)),
    ]


def _put_mark(own: Mark, old: Mark | None) -> Write:
    return MARK.put(own, when=absent() if old is None else where(since=old.since))


def number_writes(old: Comment | None, new: Comment | None) -> Iterator[Write]:
    """What a change of a comment does to its number."""
    if old is None or not old.marked:
        return
    key = HELPFUL.at(product=old.product, ulid=old.ulid)
    yield HELPFUL.delete(key) if new is None else HELPFUL.update(key, values=_repeated(new), when=present())


async def read_numbers(table: Table, keys: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], Helpful]:
    """How many members found comments helpful, by product and id; consistent, since a mark's answer shows it."""
    wanted = [HELPFUL.at(product=product, ulid=ulid) for product, ulid in keys]
    return {(one.product, one.ulid): one for one in await table.find_many(wanted, consistent=True)}


async def read_marks(table: Table, keys: Sequence[tuple[str, str, str]]) -> Mapping[tuple[str, str, str], Mark]:
    """Members' marks, by member, product and id; consistent."""
    wanted = [MARK.at(user=user, product=product, ulid=ulid) for user, product, ulid in keys]
    return {(one.user, one.product, one.ulid): one for one in await table.find_many(wanted, consistent=True)}


# ── erasing and taking back ──


def member_marks(table: Table, user: str) -> AsyncIterator[Mark]:
    return table.iterate(MARK.on(user=user), consistent=True)


async def delete_mark(table: Table, mark: Mark) -> None:
    """Remove a member's mark, and count it no more."""
    key = HELPFUL.at(product=mark.product, ulid=mark.ulid)

    async def delete(number: Helpful | None) -> None:
        if number is None or not is_counted(mark, number):
            await table.write(MARK.delete(MARK.item_key(mark)))
        elif await table.get(MARK.item_key(mark), consistent=True) is not None:
            await table.transact(*_marked(number, mark, mark, helpful=False))

    await optimistic(lambda: table.get(key, consistent=True), delete, idempotent=True)


# ── the order ──

MOST_RANKED = 500
_AT_ONCE = 100
_TAIL = "t"
_ALL = "~"
"""After every place in the order."""


async def read_helpful_page(table: Table, wanted: Filter, counts: CommentCounts, request: PageRequest) -> CommentPage:
    """The most helpful comments that a filter matches, then the newest without them. Stubs are left out.

    A position is how many of the first were passed and the last one's place among them; of the others it is the place
    at which the first ended, and the id.
    """
    plan = plans(wanted, counts, request.wanted)
    report = ReadReport(plan, plan[0])
    kind, _, place = (request.position or "0#").partition("#")
    if kind == _TAIL:
        edge, _, position = place.rpartition("#")
        read: list[tuple[str, Comment]] = []
    else:
        read, edge = await _read_ranked(table, wanted, int(kind), place, request.wanted)
        position = None
    missing = request.wanted - len(read)
    while missing > 0:
        page = await read_page(table, wanted, counts, replace(request, size=missing, position=position or None))
        others = await _without_ranked(table, page.nodes, edge)
        read += [(f"{_TAIL}#{edge}#{one.ulid}", one) for one in others]
        report, position = page.report, page.last
        if not page.has_next_page:
            break
        if len(page.items) < missing:  # short, as those that nobody verified may be
            return CommentPage.cut(read, request, end=f"{_TAIL}#{edge}#{position}", filter=wanted, report=report)
        missing = 2 * missing if len(read) < request.wanted else 0
    return CommentPage.cut(read, request, filter=wanted, report=report)


async def _read_ranked(
    table: Table, wanted: Filter, passed: int, place: str, number: int
) -> tuple[list[tuple[str, Comment]], str]:
    """`number` comments after a place in the order, with their positions; and the place where the order ends."""
    read: list[tuple[str, Comment]] = []
    rest = HELPFUL.on("gsi1", product=wanted.product).past(place or None)
    # A filter passes over some.
    least = 1 if (wanted.languages, wanted.ratings, wanted.verified) == (None, None, None) else _AT_ONCE
    while len(read) < number:
        if passed >= MOST_RANKED:
            return read, place
        some = await table.query(rest, limit=min(MOST_RANKED - passed, max(number - len(read), least)))
        for sort, one in some.items:
            passed, place = passed + 1, sort
            shown = one.comment
            if shown is not None and wanted.matches(one.language, one.rating, verified=bool(one.verified)):
                read.append((f"{passed}#{sort}", shown))
        if some.last is None:
            return read, _ALL
        rest = rest.past(some.last)
    return read, place


async def _without_ranked(table: Table, comments: Sequence[Comment], edge: str) -> list[Comment]:
    """Those that are not among the most helpful ones, whose order ends at a place."""
    marked = [(one.product, one.ulid) for one in comments if one.marked]
    numbers = await read_numbers(table, marked) if marked else {}

    def is_ranked(one: Comment) -> bool:
        number = numbers.get((one.product, one.ulid))
        return number is not None and number.number > 0 and HELPFUL.sort_key(number, "gsi1") <= edge

    return [one for one in comments if not one.removed and not is_ranked(one)]


# ── auditing ──


def all_marks(table: Table) -> AsyncIterator[Helpful | Mark]:
    return table.scan(HELPFUL, MARK)
