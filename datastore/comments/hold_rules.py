"""Hold rules: which comments wait for a moderator before others see them; and what they ask about a comment's author.

| wanted                                | read or write                                     | requests               |
|---------------------------------------|---------------------------------------------------|------------------------|
| the rules                             | Query HOLDRULES, consistent                       | 1, a process a change  |
| set them                              | one transaction: an item a rule, and the revision | 2                      |
| how many of a member's are published  | Query USER#<author> COMMENT#, newest first        | 1-3                    |
| how many of a member's are of an hour | the same                                          | 1                      |

Each rule has an item, since all of them do not fit into one. Every item has the revision that it was written with, so
whoever reads them while they are replaced notices, and reads again.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from datastore.changes.occurrences import Kind
from datastore.changes.revisions import changed
from datastore.changes.unit_of_work import UnitOfWork
from datastore.comments.records import POINTER, Comment, Pointer
from datastore.dynamo import Stale, Table, optimistic
from datastore.dynamo.entity import Entity, Key, Partition
from datastore.dynamo.writes import Write, absent, where
from datastore.refusals import require_revision
from datastore.values.ids import creation_time, first_id

# ── the rules ──


@dataclass(frozen=True, slots=True)
class HoldRule:
    """A comment that meets all conditions of a rule waits for a moderator. None and empty are no conditions."""

    name: str
    language: str | None = None
    words: tuple[str, ...] = ()
    links: int | None = None
    """More than this many."""
    first_comments: int | None = None
    """Until this many of the member's are published."""
    per_hour: int | None = None
    """More than this many of the member within an hour."""
    guests: bool = False

    @property
    def has_condition(self) -> bool:
        counts = (self.language, self.links, self.first_comments, self.per_hour)
        return bool(self.words) or self.guests or any(count is not None for count in counts)


@dataclass(frozen=True, slots=True)
class HoldRules:
    """The site's rules, in the order in which they are tried."""

    rules: tuple[HoldRule, ...] = ()
    revision: int = 0


@dataclass(frozen=True, slots=True)
class RulesRevision:
    """How often the rules were set, and how many there are."""

    revision: int
    count: int


@dataclass(frozen=True, slots=True)
class PlacedRule:
    """A rule, its place among the others, and the revision that it was written with."""

    place: int
    revision: int
    rule: HoldRule


RULES_REVISION = Entity(RulesRevision, Key("HOLDRULES", "REVISION"))
PLACED_RULE = Entity(PlacedRule, Key("HOLDRULES", "RULE#{place:02d}"))


async def read_hold_rules(table: Table) -> HoldRules:
    """The rules as they were set last."""

    async def read() -> list[RulesRevision | PlacedRule]:
        every = RULES_REVISION.collection()
        return [item async for item in table.iterate(every, RULES_REVISION, PLACED_RULE, consistent=True)]

    async def checked(items: list[RulesRevision | PlacedRule]) -> HoldRules:
        if not items:
            return HoldRules()
        revision = next((item for item in items if isinstance(item, RulesRevision)), None)
        rules = [item for item in items if isinstance(item, PlacedRule)]
        if revision is None or len(rules) != revision.count or {item.revision for item in items} != {revision.revision}:
            raise Stale
        return HoldRules(tuple(item.rule for item in rules), revision.revision)

    return await optimistic(read, checked)


async def write_hold_rules(table: Table, unit: UnitOfWork, rules: tuple[HoldRule, ...], seen: int) -> int:
    """Replace the rules of a revision, or Conflict; return the new revision."""

    async def write(old: HoldRules) -> int:
        require_revision(old.revision, seen)
        revision = old.revision + 1
        occurred = unit.occurred(Kind.HOLD_RULES_SET, None)
        await unit.transact(table, revision, *_replacing(old, rules), changed("hold_rules"), *occurred)
        return revision

    return await optimistic(lambda: read_hold_rules(table), write)


def _replacing(old: HoldRules, rules: tuple[HoldRule, ...]) -> Iterator[Write]:
    revision = old.revision + 1
    unchanged = where(revision=old.revision) if old.revision else absent()
    yield RULES_REVISION.put(RulesRevision(revision, len(rules)), when=unchanged)
    for place, rule in enumerate(rules):
        yield PLACED_RULE.put(PlacedRule(place, revision, rule))
    for place in range(len(rules), len(old.rules)):
        yield PLACED_RULE.delete(PLACED_RULE.at(place=place))


# ── what a member has posted ──

_HOUR = timedelta(hours=1)
_SPARE = 20
"""Pointers of held comments that are read besides, so that one query is nearly always enough."""
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Asked:
    """How far the comments of an author are to be counted; None for not at all."""

    published: int | None = None
    of_the_hour: int | None = None


@dataclass(frozen=True, slots=True)
class History:
    """How many comments the author of a comment has at a moment: no more than was asked."""

    published: int = 0
    """Without the comment itself."""
    of_the_hour: int = 0
    """With the comment itself, if it was posted within the hour: an edit may come later."""


async def read_history(table: Table, comment: Comment, before: str, asked: Asked) -> History:
    """What an author had posted when an id was made. The reads are consistent."""
    posted = POINTER.on(author=comment.author).between(None, f"COMMENT#{before}").newest_first()
    since = first_id(creation_time(before) - _HOUR)
    of_the_hour = posted.between(f"COMMENT#{since}", None)
    own = int(comment.ulid >= since)
    published, others = await asyncio.gather(
        _count(table, posted.where(absent("held")), comment.ulid, asked.published, _SPARE),
        _count(table, of_the_hour, comment.ulid, asked.of_the_hour and asked.of_the_hour - own, 1),
    )
    return History(published, others + own)


async def has_published(table: Table, author: str) -> bool:
    """Whether one of a member's comments is published."""
    return await _count(table, POINTER.on(author=author).newest_first().where(absent("held")), "", 1, _SPARE) == 1


async def _count(table: Table, rest: Partition[Pointer], besides: str, most: int | None, spare: int) -> int:
    """If the newest ones are nearly all held, the older ones do not count."""
    count, most = 0, most or 0
    for _ in range(_ROUNDS if most else 0):
        some = await table.query(rest, limit=most + spare, consistent=True)
        count += sum(pointer.ulid != besides for pointer in some.records)
        if count >= most or some.last is None:
            break
        rest = rest.past(some.last)
    return min(count, most)
