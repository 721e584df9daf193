"""How much of a limit a network address, a member or an email address has used up in a period, over all processes.

| wanted                       | read or write                                                  | requests |
|------------------------------|----------------------------------------------------------------|----------|
| a part of a limit            | Update ADDRESS#<address> USED#<kind>#<period>, if less is used | 1        |
| what another period has used | Get of the same, consistent                                    | 1        |

Addresses and members stand in the table as keyed hashes only, in items that expire.
"""

from dataclasses import dataclass
from datetime import datetime

from datastore.dynamo import ConditionFailed, Table
from datastore.dynamo.entity import Entity, Key
from datastore.dynamo.writes import absent, less


@dataclass(frozen=True, slots=True)
class AddressUse:
    """How many hits of a kind the processes have reserved for one of them in a period. `address` is its keyed hash."""

    address: str
    kind: str
    period: int
    used: int = 0
    expires: datetime | None = None


ADDRESS_USE = Entity(AddressUse, Key("ADDRESS#{address}", "USED#{kind}#{period:012d}"), ttl="expires")


async def reserve(table: Table, use: AddressUse, part: int, allowed: int) -> tuple[int, int]:
    """Reserve a part of what is allowed in a period. Return how much of it may be spent, and the new `used`.

    Lost answers lose parts and never add any: an attempt that is repeated reserves again.
    """
    key = ADDRESS_USE.at(address=use.address, kind=use.kind, period=use.period)
    has_more = absent("used") | less("used", allowed)
    change = ADDRESS_USE.update(key, values={"expires": use.expires}, add={"used": part}, when=has_more)
    try:
        after = await table.write_back(change, ADDRESS_USE)
    except ConditionFailed as failed:
        stored = failed.stored(ADDRESS_USE)
        return 0, allowed if stored is None else stored.used
    return min(part, allowed - (after.used - part)), after.used


async def read_used(table: Table, address: str, kind: str, period: int) -> int:
    stored = await table.get(ADDRESS_USE.at(address=address, kind=kind, period=period), consistent=True)
    return stored.used if stored else 0
