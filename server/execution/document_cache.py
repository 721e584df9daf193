"""A cache bounded in bytes, in which a flood of new entries evicts none that are in frequent use.

    first use ── remembered ── second use ── newcomers ── used again ── frequent

Of a key that is used for the first time, only a hash is remembered, so what clients send once takes no space and gives
the garbage collector nothing to look through. From its second use on, an entry is kept. It joins the newcomers, which
share a quarter of the space and give up the least recently used one. An entry that is used again moves to the frequent
ones if these have room, or if it was used more often than those that make room for it: the least recently used ones,
which become newcomers again. So clients that send each document a few times evict each other's only. All counts are
halved every 10,000 uses, or yesterday's frequent entries would stay. Threads may share a cache.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

HALVE_AFTER = 10_000
NEWCOMERS = 4
"""Newcomers have one part in four."""
REMEMBERED = 20_000
"""So many first uses are remembered, at 100 bytes each."""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass(slots=True, eq=False)
class _Entry(Generic[Value]):
    value: Value
    size: int
    uses: int = 1


@dataclass(slots=True, eq=False)
class _Segment(Generic[Key, Value]):
    max_bytes: int
    bytes: int = 0
    entries: OrderedDict[Key, _Entry[Value]] = field(default_factory=OrderedDict)
    """The least recently used first."""

    def add(self, key: Key, entry: _Entry[Value]) -> None:
        self.entries[key] = entry
        self.bytes += entry.size

    def remove(self, key: Key) -> _Entry[Value]:
        entry = self.entries.pop(key)
        self.bytes -= entry.size
        return entry


class DocumentCache(Generic[Key, Value]):
    """Values by key, with the bytes that each occupies."""

    def __init__(self, max_bytes: int) -> None:
        self._newcomers: _Segment[Key, Value] = _Segment(max_bytes // NEWCOMERS)
        self._frequent: _Segment[Key, Value] = _Segment(max_bytes - max_bytes // NEWCOMERS)
        self._remembered: OrderedDict[int, None] = OrderedDict()
        """Hashes of keys, the longest remembered first."""
        self._uses = 0
        self._lock = Lock()

    def __contains__(self, key: Key) -> bool:
        return key in self._newcomers.entries or key in self._frequent.entries

    @property
    def bytes(self) -> int:
        return self._newcomers.bytes + self._frequent.bytes

    def get(self, key: Key) -> Value | None:
        """The value, which counts as used."""
        with self._lock:
            entry = self._frequent.entries.get(key)
            if entry is not None:
                self._frequent.entries.move_to_end(key)
                entry.uses += 1
            else:
                entry = self._newcomers.entries.get(key)
                if entry is None:
                    return None
                entry.uses += 1
                self._promote(key, entry)
            self._uses += 1
            if self._uses >= HALVE_AFTER:
                self._halve()
            return entry.value

    def remember(self, key: Key) -> bool:
        """Remember that the key was used; whether that was remembered already."""
        with self._lock:
            hash_ = hash(key)
            if hash_ in self._remembered:
                return True
            self._remembered[hash_] = None
            if len(self._remembered) > REMEMBERED:
                self._remembered.popitem(last=False)
            return False

    def put(self, key: Key, value: Value, size: int) -> None:
        """Add a value that is not there."""
        with self._lock:
            self._newcomers.add(key, _Entry(value, size))
            self._trim()

    def grow(self, key: Key, size: int) -> None:
        """A value occupies more bytes than before."""
        with self._lock:
            for segment in (self._frequent, self._newcomers):
                entry = segment.entries.get(key)
                if entry is not None:
                    entry.size += size
                    segment.bytes += size
            self._trim()

    def _promote(self, key: Key, entry: _Entry[Value]) -> None:
        """Move a newcomer to the frequent entries, if none there that is used as often would have to go."""
        self._newcomers.entries.move_to_end(key)
        while self._frequent.bytes + entry.size > self._frequent.max_bytes:
            oldest_key, oldest = next(iter(self._frequent.entries.items()), (key, entry))
            if oldest.uses >= entry.uses:
                return
            self._newcomers.add(oldest_key, self._frequent.remove(oldest_key))
        self._frequent.add(key, self._newcomers.remove(key))
        self._trim()

    def _trim(self) -> None:
        while self._frequent.bytes > self._frequent.max_bytes:
            key = next(iter(self._frequent.entries))
            self._newcomers.add(key, self._frequent.remove(key))
        while self._newcomers.bytes > self._newcomers.max_bytes:
            self._newcomers.remove(next(iter(self._newcomers.entries)))

    def _halve(self) -> None:
        self._uses = 0
        for segment in (self._frequent, self._newcomers):
            for entry in segment.entries.values():
                entry.uses //= 2
