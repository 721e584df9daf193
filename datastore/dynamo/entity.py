"""One declaration per kind of record: its keys, its place in each index, its attributes.

A record is a frozen dataclass. What its primary key spells out is not stored a second time: it is read back from
the key. Everything else is one attribute per field.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_type_hints

from datastore.dynamo.attributes import Attribute, Field, Item, decoded, encoded, fields_of, moment_from
from datastore.dynamo.conditions import ALWAYS, Condition
from datastore.dynamo.decoders import decoder
from datastore.dynamo.invalidation import INVALIDATION
from datastore.dynamo.keys import HIGHEST, Key, just_above, just_below
from datastore.dynamo.writes import Check, Delete, Put, Update

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

INDEXES = ("gsi1", "gsi2", "gsi3")


@dataclass(frozen=True, slots=True)
class ItemKey(Generic[R_co]):
    """Where one record of an entity is, or would be."""

    entity: Entity[Any]
    pk: str
    sk: str

    @property
    def attributes(self) -> dict[str, Attribute]:
        return {"pk": {"S": self.pk}, "sk": {"S": self.sk}}


@dataclass(frozen=True, slots=True)
class Partition(Generic[R_co]):
    """A run of records under one partition key, in the order of their sort keys. Bounds are inclusive."""

    entity: Entity[Any]
    index: str | None
    pk: str
    low: str | None = None
    high: str | None = None
    descending: bool = False
    only: Condition = ALWAYS

    def newest_first(self) -> Partition[R_co]:
        return replace(self, descending=True)

    def turned(self) -> Partition[R_co]:
        return replace(self, descending=not self.descending)

    def past(self, sort: str | None) -> Partition[R_co]:
        """What comes after a sort key, in this partition's own direction. The key's item need not exist."""
        if sort is None:
            return self
        if self.descending:
            bound = just_below(sort)
            return replace(self, high=bound if self.high is None else min(self.high, bound))
        bound = just_above(sort)
        return replace(self, low=bound if self.low is None else max(self.low, bound))

    def between(self, low: str | None, high: str | None) -> Partition[R_co]:
        """Only sort keys from `low` to `high`, both included."""
        lows = [bound for bound in (self.low, low) if bound is not None]
        highs = [bound for bound in (self.high, high) if bound is not None]
        return replace(self, low=max(lows, default=None), high=min(highs, default=None))

    def where(self, condition: Condition) -> Partition[R_co]:
        """Only records for which a condition holds. The others are read, and paid for, all the same."""
        return replace(self, only=condition)

    @property
    def sort_attribute(self) -> str:
        """The attribute that holds the sort key here."""
        return f"{self.index or ''}sk"


class Entity(Generic[R]):
    """How one kind of record lies in the table.

    `ttl` names a datetime field after which the engine may remove the item. Key templates that name an unknown
    attribute of the record are refused when the entity is declared.
    """

    def __init__(self, record: type[R], key: Key, *, ttl: str | None = None, **indexes: Key) -> None:
        self.record = record
        self.key = key
        self.indexes = indexes
        self.ttl = ttl
        self._refuse_unknown_names()
        fields = fields_of(record)
        named = (*key.partition.holes, *key.sort.holes)
        self._from_key = {
            hole.name: _reader(get_type_hints(record)[hole.name])
            for hole in named
            if hole.name in fields and hole.readable
        }
        self.fields: Mapping[str, Field] = {name: field for name, field in fields.items() if name not in self._from_key}
        """What is stored under an attribute of its own."""
        self._in_index_keys = frozenset(name for index in indexes.values() for name in index.names)
        INVALIDATION.add(key.partition.text, *(index.partition.text for index in indexes.values()))

    def _refuse_unknown_names(self) -> None:
        known = {field.name for field in dataclasses.fields(self.record)} | set(dir(self.record))  # type: ignore[arg-type]
        if unknown_indexes := set(self.indexes) - set(INDEXES):
            message = f"{self.record.__name__}: no index is called {sorted(unknown_indexes)}"
            raise TypeError(message)
        for key in (self.key, *self.indexes.values()):
            if unknown := set(key.names) - known:
                message = f"{self.record.__name__} has no attribute {sorted(unknown)} that its key names"
                raise TypeError(message)

    # ── where records are ──

    def at(self, **values: Any) -> ItemKey[R]:
        """The place of one record, by the attributes its key names."""
        return ItemKey(self, self.key.partition.fill(values), self.key.sort.fill(values))

    def place_of(self, record: R) -> ItemKey[R]:
        return ItemKey(self, self.key.partition.of(record), self.key.sort.of(record))

    def on(self, index: str | None = None, /, **values: Any) -> Partition[R]:
        """The records under a partition key; values for the sort key narrow it from the left."""
        key = self.key if index is None else self.indexes[index]
        pk, start = key.partition.fill(values), key.sort.fill(values, partly=True)
        return Partition(self, index, pk, low=start or None, high=start + HIGHEST if start else None)

    def sort_of(self, record: R, index: str | None = None) -> str:
        key = self.key if index is None else self.indexes[index]
        return key.sort.of(record)

    # ── items ──

    def item(self, record: R) -> dict[str, Attribute]:
        """The whole item of a record, index keys included."""
        item = self.place_of(record).attributes
        item.update(self.index_attributes(record))
        item.update(encoded(self.fields, record))
        if self.ttl is not None and (expires := getattr(record, self.ttl)) is not None:
            item["ttl"] = {"N": str(int(expires.timestamp()))}
        return item

    def index_attributes(self, record: R) -> dict[str, Attribute]:
        attributes: dict[str, Attribute] = {}
        for name, key in self.indexes.items():
            if key.holds(record):
                attributes[f"{name}pk"] = {"S": key.partition.of(record)}
                attributes[f"{name}sk"] = {"S": key.sort.of(record)}
        return attributes

    @cached_property
    def read(self) -> Callable[[Item], R]:
        """The record of an item."""
        return decoder(self.record, self.key, self.fields, self._from_key, self.plain_read)

    def plain_read(self, item: Item) -> R:
        """The record of an item, field by field: what `read` must give."""
        values = decoded(self.fields, item)
        for template, stored in ((self.key.partition, item["pk"]), (self.key.sort, item["sk"])):
            for name, text in (template.read(stored["S"]) or {}).items():
                if name in self._from_key:
                    values[name] = self._from_key[name](text)
        return self.record(**values)

    def recognises(self, pk: str, sk: str) -> bool:
        """Whether a primary key is of this entity."""
        return self.key.partition.read(pk) is not None and self.key.sort.read(sk) is not None

    def stored_name(self, name: str) -> str:
        """The attribute that an update means by the name of a field."""
        return self.fields[name].stored_name

    def _assigned(self, values: Mapping[str, Any]) -> dict[str, Attribute]:
        return {
            self.stored_name(name): self.fields[name].codec.encode(value)
            for name, value in values.items()
            if value is not None
        }

    def _removed(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(self.stored_name(name) for name, value in values.items() if value is None)

    def _added(self, numbers: Mapping[str, int]) -> dict[str, Attribute]:
        return {self.stored_name(name): {"N": str(number)} for name, number in numbers.items()}

    # ── writes ──

    def put(self, record: R, *, when: Condition = ALWAYS) -> Put:
        return Put(self.place_of(record), self.item(record), when)

    def change(
        self,
        key: ItemKey[R],
        *,
        values: Mapping[str, Any] | None = None,
        add: Mapping[str, int] | None = None,
        when: Condition = ALWAYS,
    ) -> Update:
        """Some fields of an item: `values` are assigned, None removes, `add` is added.

        TypeError for a field that decides where the item stands in an index: `shift` changes those.
        """
        values, add = values or {}, add or {}
        if in_keys := self._in_index_keys & (values.keys() | add.keys()):
            raise TypeError(f"{self.record.__name__}: an index key names {sorted(in_keys)}; use shift")
        return Update(key, self._assigned(values), self._added(add), self._removed(values), when)

    def shift(self, record: R, *names: str, add: Mapping[str, int] | None = None, when: Condition = ALWAYS) -> Update:
        """The named fields as the record has them, and with them the record's place in every index."""
        index_attributes = self.index_attributes(record)
        every = {f"{name}{part}" for name in self.indexes for part in ("pk", "sk")}
        values = {name: getattr(record, name) for name in names}
        assigned = {**self._assigned(values), **index_attributes}
        removed = (*self._removed(values), *sorted(every - index_attributes.keys()))
        return Update(self.place_of(record), assigned, self._added(add or {}), removed, when)

    def delete(self, key: ItemKey[R], *, when: Condition = ALWAYS) -> Delete:
        return Delete(key, when)

    def check(self, key: ItemKey[R], when: Condition) -> Check:
        return Check(key, when)


def _reader(declared: Any) -> Callable[[str], Any]:
    """How a field of this type is read back from the text of a key."""
    declared = getattr(declared, "__supertype__", declared)
    if declared is date:
        return date.fromisoformat
    if declared is datetime:
        return moment_from
    if declared in (str, int) or (isinstance(declared, type) and issubclass(declared, Enum)):
        return declared  # type: ignore[no-any-return]
    message = f"a field of type {declared!r} cannot be read back from a key"
    raise TypeError(message)
