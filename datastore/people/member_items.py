"""What a part keeps of members: for a member's file, and for the jobs that erase them or take something back.

Every entity of the table says here, through its part's `MEMBER_ITEMS`, whether it is a kind of the file, and what
becomes of its items. Tests compare this with what the datastore declares and with what erasing leaves.

A member's file is read consistently where there is no index: the member's own partition once for all parts, then what
each part keeps elsewhere. Nothing is read by a scan, and a few hundred records are in memory at a time. What an index
does not show yet is missing; a later file has it.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

from datastore.dynamo import Table
from datastore.dynamo.entity import Entity
from datastore.people.profiles import PROFILE


class ErasurePolicy(Enum):
    """What becomes of the items of an entity that name a member."""

    DELETED = "deleted, and uncounted where they counted"
    REJECTED = "kept, and uncounted"
    KEPT = "kept, under an id that leads to nobody once the member is erased"
    NOT_APPLICABLE = "no item names a member"


@dataclass(frozen=True, slots=True)
class Policies:
    """What becomes of an entity's items when a member is erased, made anonymous, or taken back."""

    removed: ErasurePolicy
    anonymised: ErasurePolicy
    taken_back: ErasurePolicy


PERSONAL = Policies(ErasurePolicy.DELETED, ErasurePolicy.DELETED, ErasurePolicy.KEPT)
KEPT = Policies(*[ErasurePolicy.KEPT] * 3)
RESULT = Policies(ErasurePolicy.DELETED, ErasurePolicy.KEPT, ErasurePolicy.DELETED)
COUNTED = Policies(ErasurePolicy.DELETED, ErasurePolicy.KEPT, ErasurePolicy.REJECTED)
STAYS = Policies(ErasurePolicy.DELETED, ErasurePolicy.KEPT, ErasurePolicy.KEPT)
_NONE = Policies(*[ErasurePolicy.NOT_APPLICABLE] * 3)


@dataclass(frozen=True, slots=True)
class Kept:
    """What the items of an entity say of a member."""

    kind: str | None
    """The kind's name in a member's file; None if the file leaves it out."""
    note: str
    """The words that explain the kind, or why it is left out."""
    policies: Policies
    without: Mapping[str, str] = field(default_factory=dict)
    """The fields that the file leaves out, and why."""
    times_in_id: tuple[str, ...] = ()
    """The times that a record has only inside an id: properties, which the file has next to the fields."""


def in_file(
    kind: str,
    note: str,
    policies: Policies = PERSONAL,
    *,
    without: Mapping[str, str] | None = None,
    times_in_id: tuple[str, ...] = (),
) -> Kept:
    return Kept(kind, note, policies, without or {}, times_in_id)


def left_out(note: str, policies: Policies = _NONE) -> Kept:
    return Kept(None, note, policies)


def of_nobody(*entities: Entity[Any]) -> dict[Entity[Any], Kept]:
    return dict.fromkeys(entities, left_out("Says nothing about a member."))


Records: TypeAlias = "AsyncIterator[tuple[Entity[Any], Any]]"


async def _nothing(_: Table, __: str) -> Records:
    return
    yield


@dataclass(frozen=True, slots=True)
class MemberItems:
    """A part's entities, and what it keeps of a member outside the member's own partition."""

    kept: Mapping[Entity[Any], Kept]
    read: Callable[[Table, str], Records] = _nothing


async def clear_member(table: Table, user: str, parts: Iterable[MemberItems], *, anonymised: bool) -> None:
    """Delete what is left in a member's own partition; of one made anonymous, what counts towards nothing.

    What it counts towards was uncounted before. Safe to repeat.
    """
    kept = {entity: one.policies for part in parts for entity, one in part.kept.items()}
    gone = [
        entity
        for entity, policies in kept.items()
        if (policies.anonymised if anonymised else policies.removed) is ErasurePolicy.DELETED
    ]
    await table.clear(PROFILE.collection(user=user), *gone)


async def read_member(table: Table, user: str, parts: Iterable[MemberItems]) -> AsyncIterator[tuple[Kept, Any]]:
    """Every record about a member that belongs into their file."""
    parts = tuple(parts)
    kept = {entity: one for part in parts for entity, one in part.kept.items()}
    place = PROFILE.key.partition.text
    own = [entity for entity, one in kept.items() if one.kind and entity.key.partition.text == place]
    async for record in table.iterate(PROFILE.collection(user=user), *own, consistent=True):
        yield next(kept[entity] for entity in own if isinstance(record, entity.record)), record
    for part in parts:
        async for entity, record in part.read(table, user):
            yield kept[entity], record
