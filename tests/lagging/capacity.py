"""Capacity as DynamoDB counts it: units of each partition key of the table and of its indexes, bounded per second.

A bucket holds one second's units. A request passes while its buckets are not empty and may overdraw them once, as
DynamoDB allows a burst; the debt is paid before the next request passes.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

from datastore.dynamo.attributes import Item, item_size

INDEXES = ("gsi1", "gsi2", "gsi3")
WRITE_BYTES = 1024
READ_BYTES = 4096


class PartitionKey(NamedTuple):
    """One partition key of the table (`index_name` is empty) or of an index."""

    index_name: str
    value: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Units per second of one partition key."""

    write_units: float = 1000.0
    read_units: float = 3000.0


class Ledger:
    """The units of every partition key, second by second."""

    def __init__(self) -> None:
        self.writes: dict[tuple[PartitionKey, int], float] = defaultdict(float)
        self.reads: dict[tuple[PartitionKey, int], float] = defaultdict(float)

    def hottest_write(self) -> tuple[PartitionKey, float]:
        """The partition key with the most write units in one second."""
        (key, _), most = max(self.writes.items(), key=lambda entry: entry[1], default=((PartitionKey("", ""), 0), 0.0))
        return key, most


@dataclass(slots=True)
class Bucket:
    """A token bucket that starts full."""

    rate: float
    tokens: float = field(init=False)
    filled_at: float = float("-inf")

    def __post_init__(self) -> None:
        self.tokens = self.rate

    def is_empty(self, now: float) -> bool:
        if self.filled_at == float("-inf"):
            self.filled_at = now
        self.tokens = min(self.rate, self.tokens + (now - self.filled_at) * self.rate)
        self.filled_at = now
        return self.tokens <= 0

    def take(self, units: float) -> None:
        self.tokens -= units


class Capacity:
    """The buckets and the ledger of one table."""

    def __init__(self, limits: Limits | None) -> None:
        self.ledger = Ledger()
        self._limits = limits
        self._write_buckets: dict[PartitionKey, Bucket] = {}
        self._read_buckets: dict[PartitionKey, Bucket] = {}

    def admit_write(self, keys: Iterable[PartitionKey], now: float) -> bool:
        """Whether every bucket has room. Each gives one unit at once, so that requests in flight count."""
        if self._limits is None:
            return True
        rate = self._limits.write_units
        return _admit([self._write_buckets.setdefault(key, Bucket(rate)) for key in keys], now)

    def admit_read(self, key: PartitionKey, now: float) -> bool:
        """The same for a read."""
        if self._limits is None:
            return True
        return _admit([self._read_buckets.setdefault(key, Bucket(self._limits.read_units))], now)

    def count_writes(self, units: Mapping[PartitionKey, float], now: float) -> None:
        """What admitted writes really cost."""
        for key, number in units.items():
            self.ledger.writes[key, int(now)] += number
            if key in self._write_buckets:
                self._write_buckets[key].take(number - 1)

    def count_read(self, key: PartitionKey, units: float, now: float) -> None:
        """What an admitted read really cost."""
        self.ledger.reads[key, int(now)] += units
        if key in self._read_buckets:
            self._read_buckets[key].take(units - 1)


def _admit(buckets: list[Bucket], now: float) -> bool:
    if any(bucket.is_empty(now) for bucket in buckets):
        return False
    for bucket in buckets:
        bucket.take(1)
    return True


def partition_keys(item: Item | None) -> Iterator[PartitionKey]:
    """The partition keys that hold an item: the table's and those of the indexes that it appears in."""
    for index in ("", *INDEXES):
        value = (item or {}).get(f"{index}pk")
        if value is not None:
            yield PartitionKey(index, value["S"])


def write_units(pk: str, before: Item | None, after: Item | None, *, factor: int = 1) -> dict[PartitionKey, float]:
    """What a write costs each partition key: the larger image in the table, twice in a transaction; in an index one
    write for a change in place, and a delete and a put where its key changes. To check or delete an item that does not
    exist costs as much as for the smallest item."""
    units: dict[PartitionKey, float] = {PartitionKey("", pk): factor * max(_writes(before), _writes(after), 1)}
    for index in INDEXES:
        old, new = _index_key(before, index), _index_key(after, index)
        if old is not None and new is not None and old == new:
            if before != after:
                _add(units, PartitionKey(index, new[0]), max(_writes(before), _writes(after)))
            continue
        if old is not None:
            _add(units, PartitionKey(index, old[0]), _writes(before))
        if new is not None:
            _add(units, PartitionKey(index, new[0]), _writes(after))
    return units


def read_units(item: Item | None, *, consistent: bool, factor: float = 1.0) -> float:
    """What reading one item by its key costs."""
    pages = max(1, ceil(item_size(item) / READ_BYTES)) if item else 1
    return pages * (1.0 if consistent else 0.5) * factor


def _writes(item: Item | None) -> int:
    return ceil(item_size(item) / WRITE_BYTES) if item else 0


def _index_key(item: Item | None, index: str) -> tuple[str, str] | None:
    if item is None or f"{index}pk" not in item:
        return None
    return item[f"{index}pk"]["S"], item[f"{index}sk"]["S"]


def _add(units: dict[PartitionKey, float], key: PartitionKey, number: float) -> None:
    units[key] = units.get(key, 0.0) + number
