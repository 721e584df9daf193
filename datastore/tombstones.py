"""Tombstones: the ids of erased members, for which and about which nothing is written any more.

| wanted                          | read or write                                            | requests |
|---------------------------------|----------------------------------------------------------|----------|
| erase a member                  | PutItem ERASED#<hash>, with the job that erases          | 0 more   |
| write for or about a member     | a check of the same item in the write's own transaction  | 0 more   |

A tombstone names its member by a keyed hash, so it does not contain the id. It stays until every token of the member
has expired: a token is a valid signature, whatever happened to its member. The check costs 2 write units. Writes of
visitors and API keys have none.

After a rotation of secrets some processes know only the old ones. So a tombstone is written under the hash by each
secret, and a transaction checks each hash.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from datastore.dynamo.conditions import absent, less
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.dynamo.writes import Check, Put, Write
from datastore.refusals import NotAllowed

if TYPE_CHECKING:
    from datastore.dynamo import Table
    from datastore.seal import Seal

VISITOR_PREFIX = "visitor-"
"""What the ids of visitors begin with, and those of members do not."""
_PURPOSE = "erased member"


class MemberErased(NotAllowed):
    explanation = "This account is erased: nothing can be written for it or about it any more."


@dataclass(frozen=True, slots=True)
class Tombstone:
    """An erased member."""

    member_hash: str
    expires: datetime


TOMBSTONE = Entity(Tombstone, Key("ERASED#{member_hash}", "ERASED"), ttl="expires")


class Tombstones:
    """The keys of tombstones, which depend on the service's secrets."""

    def __init__(self, seal: Seal) -> None:
        self._seal = seal

    def _hashes(self, member: str) -> list[str]:
        return [hashed.hex() for hashed in self._seal.keyed_hashes(_PURPOSE, member.encode())]

    def puts(self, member: str, expires: datetime) -> list[Put]:
        """The writes that begin a member's erasure."""
        return [TOMBSTONE.put(Tombstone(hashed, expires)) for hashed in self._hashes(member)]

    def checks(self, member: str, now: datetime) -> list[Check]:
        """What a transaction for or about a member must hold. There are none for a visitor."""
        if member.startswith(VISITOR_PREFIX):
            return []
        # The engine removes expired items late.
        not_erased = absent() | less("expires", now)
        return [TOMBSTONE.check(TOMBSTONE.at(member_hash=hashed), not_erased) for hashed in self._hashes(member)]

    async def is_erased(self, table: Table, member: str, now: datetime) -> bool:
        keys = [TOMBSTONE.at(member_hash=hashed) for hashed in self._hashes(member)]
        found = await table.get_many(keys, consistent=True)
        return any(tombstone is not None and now < tombstone.expires for tombstone in found)


def is_tombstone_check(write: Write) -> bool:
    return isinstance(write, Check) and write.fields is TOMBSTONE.fields
