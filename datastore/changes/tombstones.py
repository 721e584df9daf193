"""Tombstones: the ids of erased members, for or about whom nothing more is written.

| wanted                          | read or write                                            | requests |
|---------------------------------|----------------------------------------------------------|----------|
| erase a member                  | PutItem ERASED#<hash>, with the job that erases          | 0 more   |
| write for or about a member     | a check of the same item in the write's own transaction  | 0 more   |

A tombstone names its member by a keyed hash, so it does not contain the id. It stays until every token of the member
has expired, since a token's signature is valid whatever happened to its member, and until a suspension of the member
would have ended. The check costs 2 write units. Writes of visitors and API keys have none.

After a rotation of secrets some processes know only the old ones. So a tombstone is written under the hash by each
secret, and a transaction checks each hash.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from datastore.dynamo.conditions import absent, less, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.dynamo.writes import Check, Put, Write
from datastore.refusals import NotAllowed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datastore.dynamo import Table
    from datastore.values.seal import Seal

VISITOR_PREFIX = "visitor-"
"""What the ids of visitors begin with, and those of members do not."""
_PURPOSE = "erased member"
_PREFIX = "ERASED#"


class MemberErased(NotAllowed):
    explanation = "This account is erased: nothing can be written for it or about it any more."


@dataclass(frozen=True, slots=True)
class Tombstone:
    """An erased member, and the job that erases them."""

    member_hash: str
    expires: datetime
    job: str


TOMBSTONE = Entity(Tombstone, Key(f"{_PREFIX}{{member_hash}}", "ERASED"), ttl="expires")


class Tombstones:
    """The keys of tombstones, which depend on the service's secrets."""

    def __init__(self, seal: Seal) -> None:
        self._seal = seal

    def hashes(self, member: str) -> list[str]:
        return [hashed.hex() for hashed in self._seal.keyed_hashes(_PURPOSE, member.encode())]

    def puts(
        self, member: str, expires: datetime, job: str, now: datetime, earlier: Tombstone | None = None
    ) -> list[Put]:
        """The writes that begin a member's erasure, unless another job does it than that of an earlier tombstone."""
        free = absent() | less("expires", now)
        free = free if earlier is None else free | where(job=earlier.job)
        return [TOMBSTONE.put(Tombstone(hashed, expires, job), when=free) for hashed in self.hashes(member)]

    def checks(self, member: str, now: datetime) -> list[Check]:
        """What a transaction for or about a member must hold. There are none for a visitor."""
        if member.startswith(VISITOR_PREFIX):
            return []
        # The engine removes expired items late.
        not_erased = absent() | less("expires", now)
        return [TOMBSTONE.check(TOMBSTONE.at(member_hash=hashed), not_erased) for hashed in self.hashes(member)]

    async def read(self, table: Table, member: str, now: datetime) -> Tombstone | None:
        keys = [TOMBSTONE.at(member_hash=hashed) for hashed in self.hashes(member)]
        found = await table.get_many(keys, consistent=True)
        return next((tombstone for tombstone in found if tombstone is not None and now < tombstone.expires), None)


def is_tombstone_check(write: Write) -> bool:
    return isinstance(write, Check) and write.fields is TOMBSTONE.fields


def checked_members(checks: Iterable[Write]) -> list[str]:
    """The hashes of the members that checks are about; of each member, the one by the newest secret comes first."""
    return [check.key["pk"]["S"].removeprefix(_PREFIX) for check in checks if isinstance(check, Check)]
