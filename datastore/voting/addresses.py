"""Network addresses: who voted from each in the last week. How much of its limits it has used is in `address_use`.

| wanted                        | read or write                                                   | requests |
|-------------------------------|-----------------------------------------------------------------|----------|
| remember a voter's address    | Put both of the following                                       | 1        |
| a voter's addresses           | Query VOTER#<voter>#<board>, ORIGIN#<tag>, consistent           | 1        |
| an address's voters           | Query ADDRESS#<address>#<board>#<shard>, VOTER#<voter>, consistent | 16    |

Addresses stand in the table as keyed hashes only, in items that expire. A vote has a random tag in place of the hash,
and an item names the address of the tag for a week: after that the tag means nothing. A process writes the two items
before a voter's first vote of a day from an address on a board: 2 write units, and 6 for a member. Even if all votes
that an address may cast by default (100 a second) were first votes, each of its 16 shards would take 13 units a second.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.values.shards import shard_of

if TYPE_CHECKING:
    from datastore.changes.unit_of_work import UnitOfWork
    from datastore.dynamo import Table

LOOKBACK = timedelta(days=7)
"""For how long votes from one address can be found."""

ADDRESS_SHARDS = 16


@dataclass(frozen=True, slots=True)
class Origin:
    """The address from which a voter cast those votes on a board that have this tag."""

    voter: str
    board: str
    tag: str
    address: str
    expires: datetime


@dataclass(frozen=True, slots=True)
class AddressVoter:
    """A voter who has voted on a board from an address."""

    address: str
    board: str
    shard: int
    voter: str
    expires: datetime


ORIGIN = Entity(Origin, Key("VOTER#{voter}#{board}", "ORIGIN#{tag}"), ttl="expires")
ADDRESS_VOTER = Entity(AddressVoter, Key("ADDRESS#{address}#{board}#{shard:02d}", "VOTER#{voter}"), ttl="expires")


async def remember_origin(table: Table, voter: str, board: str, address: str, day: date, unit: UnitOfWork) -> str:
    """Remember that a voter casts votes from an address on a day. Return the tag for these votes."""
    tag = secrets.token_hex(6)
    expires = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1) + LOOKBACK
    shard = shard_of(voter, ADDRESS_SHARDS)
    writes = (
        ORIGIN.put(Origin(voter, board, tag, address, expires)),
        ADDRESS_VOTER.put(AddressVoter(address, board, shard, voter, expires)),
    )
    if not_erased := unit.not_erased(voter):
        await unit.apply(table, *writes, *not_erased)
    else:
        await table.write_many(writes)
    return tag
