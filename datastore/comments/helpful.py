"""Which comments members found helpful: their marks, the number of them, and the order by it.

| wanted                           | read or write                                                     | requests    |
|----------------------------------|-------------------------------------------------------------------|-------------|
| mark a comment, or take it back  | HELPFUL and the mark, each after a consistent GetItem             | 2, and 1    |
| a product's most helpful ones    | gsi1 HELPFUL#<p>, best first; a process keeps them for 2 s        | 1           |
| a page of these                  | BatchGetItem COMMENT#<ulid>                                       | 1           |
| the page after them              | as in `pages`, without those that were shown                      | 1-25        |
| how many found comments helpful  | BatchGetItem HELPFUL#<p> COMMENT#<ulid>, of marked ones           | 1 for 100   |
| whether a member did             | the same, and BatchGetItem USER#<u> HELPFUL#<ulid>#<p>            | 2 for 100   |

A comment is marked itself at the first member's mark: so one that nobody has marked costs nothing, and a page knows
which numbers to read. HELPFUL repeats the language and rating of its comment, by which the order is filtered; a change
of the comment changes it in the same transaction, and deleting the comment deletes it. Members' marks stay, and are
worth nothing without the number that they say they belong to (`since`): a comment that an import brings back has none.

The number of one comment is one item, and each mark names the number that it has read: one comment takes about twenty
marks a second.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from datastore.changes.unit_of_work import UnitOfWork
from datastore.comments.pages import CommentPage, ReadReport, read_page
from datastore.comments.planner import CommentCounts, Filter, plans
from datastore.comments.records import COMMENT, Comment
from datastore.comments.verified import mark_writes
from datastore.dynamo import PageRequest, Table, chunks, optimistic
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


@dataclass(frozen=True, slots=True)
class Mark:
    """That a member found a comment helpful."""

    user: str
    product: str
    ulid: str
    since: datetime
    """That of the number in which it is counted."""


HELPFUL = Entity(
    Helpful,
    Key("HELPFUL#{product}", "COMMENT#{ulid}"),
    gsi1=Key("HELPFUL#{product}", "{number:best_first}#{ulid}", when="number"),
)
MARK = Entity(Mark, Key("USER#{user}", "HELPFUL#{ulid}#{product}"))


# ── marks ──


async def mark_helpful(table: Table, unit: UnitOfWork, comment: Comment, user: str, *, helpful: bool) -> Comment:
    """The published comment with a member's mark, or without it. ConditionFailed if others do so at once."""
    place = {"product": comment.product, "ulid": comment.ulid}
    number = await table.get(HELPFUL.at(**place), consistent=True) if comment.marked else None
    mark = await table.get(MARK.at(user=user, **place), consistent=True)
    if counts(mark, number) is helpful:
        await unit.store_receipt(table, comment)
        return comment
    answer = replace(comment, marked=True)
    if number is None:
        await unit.transact(table, answer, *_first_mark(comment, user, mark, unit.now))
    else:
        seen = COMMENT.check(COMMENT.item_key(comment), present() & where(removed=None))
        await unit.transact(table, answer, *_marked(number, user, mark, helpful=helpful), seen)
    return answer


def counts(mark: Mark | None, number: Helpful | None) -> bool:
    """Whether a mark is one of those that were counted."""
    return mark is not None and number is not None and mark.since == number.since


def _first_mark(comment: Comment, user: str, mark: Mark | None, now: datetime) -> list[Write]:
    """A comment that was changed since it was read has perhaps another language: the condition names its revision."""
    verified = None if comment.verified_at is None else True
    number = Helpful(comment.product, comment.ulid, now, comment.language, comment.rating, 1, verified)
    unmarked = present() & where(revision=comment.revision, removed=None, marked=None)
    return [
        HELPFUL.put(number, when=absent()),
        _put_mark(Mark(user, comment.product, comment.ulid, now), mark),
        COMMENT.update(COMMENT.item_key(comment), values={"marked": True}, when=unmarked),
        *mark_writes(comment, marked=True),
    ]


def _marked(number: Helpful, user: str, mark: Mark | None, *, helpful: bool) -> list[Write]:
    own = Mark(user, number.product, number.ulid, number.since)
    changed = replace(number, number=number.number + (1 if helpful else -1))
    unchanged = present() & where(since=number.since, number=number.number)
    return [
        HELPFUL.update_with_indexes(changed, "number", when=unchanged),
        _put_mark(own, mark) if helpful else MARK.delete(MARK.item_key(own), when=where(since=own.since)),
    ]


def _put_mark(own: Mark, old: Mark | None) -> Write:
    return MARK.put(own, when=absent() if old is None else where(since=old.since))


def change_writes(old: Comment | None, new: Comment | None) -> Iterator[Write]:
    """What a change of a comment does to its number."""
    if old is None or not old.marked:
        return
    key = HELPFUL.at(product=old.product, ulid=old.ulid)
    if new is None:
        yield HELPFUL.delete(key)
    elif (new.language, new.rating) != (old.language, old.rating):
        yield HELPFUL.update(key, values={"language": new.language, "rating": new.rating}, when=present())


async def read_numbers(table: Table, keys: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], Helpful]:
    """How many members found comments helpful, by product and id; consistent, since a mark's answer shows it."""
    wanted = [HELPFUL.at(product=product, ulid=ulid) for product, ulid in keys]
    found = await table.get_many(wanted, consistent=True)
    return {(one.product, one.ulid): one for one in found if one is not None}


async def read_marks(table: Table, keys: Sequence[tuple[str, str, str]]) -> Mapping[tuple[str, str, str], Mark]:
    """Members' marks, by member, product and id; consistent."""
    wanted = [MARK.at(user=user, product=product, ulid=ulid) for user, product, ulid in keys]
    found = await table.get_many(wanted, consistent=True)
    return {(one.user, one.product, one.ulid): one for one in found if one is not None}


# ── erasing ──


def member_marks(table: Table, user: str) -> AsyncIterator[Mark]:
    return table.iterate(MARK.on(user=user), consistent=True)


async def delete_mark(table: Table, mark: Mark) -> None:
    """Remove a member's mark, and count it no more."""
    key = HELPFUL.at(product=mark.product, ulid=mark.ulid)

    async def delete(number: Helpful | None) -> None:
        if number is None or not counts(mark, number):
            await table.write(MARK.delete(MARK.item_key(mark)))
        elif await table.get(MARK.item_key(mark), consistent=True) is not None:
            await table.transact(*_marked(number, mark.user, mark, helpful=False))

    await optimistic(lambda: table.get(key, consistent=True), delete, idempotent=True)


# ── the order ──

MOST_RANKED = 500


async def read_most_helpful(table: Table, product: str) -> tuple[Helpful, ...]:
    """A product's most helpful comments, best first, of equal ones the newest first."""
    found = await table.query(HELPFUL.on("gsi1", product=product), limit=MOST_RANKED)
    return tuple(sorted(found.records, key=_place, reverse=True))


def _place(number: Helpful) -> tuple[int, str]:
    return number.number, number.ulid


async def read_helpful_page(
    table: Table, wanted: Filter, counts: CommentCounts, request: PageRequest, ranked: Sequence[Helpful]
) -> CommentPage:
    """The most helpful comments that a filter matches, then the newest without them. Stubs are left out.

    A position is the number and the id among the first, the id alone among the others.
    """
    plan = plans(wanted, counts, request.wanted)
    report = ReadReport(plan, plan[0])
    read: list[tuple[str, Comment]] = []
    position = request.position
    if position is None or "#" in position:
        matching = [one for one in ranked if wanted.matches(one.language, one.rating, verified=bool(one.verified))]
        read = await _read_ranked(table, _after(matching, position), request)
        position = None
    shown = {one.ulid for one in ranked}
    missing = request.wanted - len(read)
    while missing > 0:
        page = await read_page(table, wanted, counts, replace(request, size=missing, position=position))
        read += [(place, one) for place, one in page.items if not one.removed and place not in shown]
        report, position = page.report, page.last
        if not page.has_next_page:
            break
        if len(page.items) < missing:  # short, as those that nobody verified may be
            return CommentPage.cut(read, request, end=position, filter=wanted, report=report)
        missing = 2 * missing if len(read) < request.wanted else 0
    return CommentPage.cut(read, request, filter=wanted, report=report)


def _after(ranked: list[Helpful], position: str | None) -> list[Helpful]:
    if position is None:
        return ranked
    number, _, ulid = position.partition("#")
    return [one for one in ranked if _place(one) < (int(number), ulid)]


async def _read_ranked(table: Table, ranked: list[Helpful], request: PageRequest) -> list[tuple[str, Comment]]:
    """Their comments; one that was held or deleted since is passed over."""
    read: list[tuple[str, Comment]] = []
    for some in chunks(ranked, request.wanted):
        places = [COMMENT.at(product=one.product, ulid=one.ulid) for one in some]
        for one, comment in zip(some, await table.get_many(places), strict=True):
            if comment is not None and not comment.removed:
                read.append((f"{one.number}#{one.ulid}", comment))
        if len(read) >= request.wanted:
            break
    return read


# ── auditing ──


def all_marks(table: Table) -> AsyncIterator[Helpful | Mark]:
    return table.scan(HELPFUL, MARK)
