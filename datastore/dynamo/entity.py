"""Entities: one declaration per kind of record, with its keys, its indexes and its attributes.

A record is a frozen dataclass. Fields that the primary key contains are not stored again: they are read from the key.
Every other field is an attribute.

Keys are templates, such as `Key("LEADERBOARD#{board}", "{score:best_first}#{ordinal:06d}")`. A template contains fields
of the record, each with a format. The formats keep text in the order of the values:

| format        | of        | written                                                                       |
|---------------|-----------|-------------------------------------------------------------------------------|
| (none)        | text      | as it is; `#`, control characters, lone surrogates and U+10FFFF are refused   |
| (none)        | datetime, date, enum | ISO 8601 in UTC; ISO 8601; the enum's value                        |
| `06d`         | whole number | padded; negative numbers and those that outgrow the padding are refused    |
| `best_first`  | whole number | `9999999999 - (n + 5000000000)`, ten digits: ascending text is descending n |
"""

from __future__ import annotations

import dataclasses
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import Enum
from functools import cached_property
from string import Formatter
from typing import Any, Generic, TypeVar, get_type_hints

from datastore.dynamo.attributes import Attribute, Codec, Item, encoded, fields_decoder, iso, record_fields
from datastore.dynamo.writes import ALWAYS, Check, Condition, Delete, Put, Update

# ── invalidation ──


def first_word(partition: str) -> str:
    """The first word of a partition key or of its template."""
    return partition.partition("#")[0]


class Invalidation:
    """The partitions that change when items under a partition key are written. Every entity adds its keys."""

    def __init__(self) -> None:
        self._words: dict[str, set[str]] = {}

    def add(self, primary: str, *indexes: str) -> None:
        """Declare that items under this primary key are also found under these index keys."""
        word = first_word(primary)
        self._words.setdefault(word, {word}).update(map(first_word, indexes))

    def words(self, word: str) -> set[str] | None:
        """The words of all partitions that a write under this word can change; None if that may be any."""
        words = self._words.get(word)
        # A template that begins with a placeholder may begin with any word.
        return None if words is None or any("{" in each for each in words) else words


INVALIDATION = Invalidation()


def written_partitions(parameters: Mapping[str, Any]) -> Iterator[str]:
    """The partition keys of the items that a call writes."""
    if "Key" in parameters or "Item" in parameters:
        yield _partition(parameters)
    for action in parameters.get("TransactItems", ()):
        for kind, operation in action.items():
            if kind != "ConditionCheck":
                yield _partition(operation)
    for requests in parameters.get("RequestItems", {}).values():
        for request in requests:
            for operation in request.values():
                yield _partition(operation)


def _partition(operation: Mapping[str, Any]) -> str:
    partition: str = (operation.get("Key") or operation["Item"])["pk"]["S"]
    return partition


# ── keys ──

HIGHEST = "\U0010ffff"
"""The last code point, which is not a character: with it end bounds, and no identifier has it."""
_BEST_FIRST_RANGE = 5_000_000_000
_UNSAFE = re.compile(rf"[#\x00-\x1f\x7f-\x9f\ud800-\udfff{HIGHEST}]")
_PADDED = re.compile(r"0(\d+)d")


class BadKey(ValueError):
    """A value that is not allowed in a key."""


def key_text(value: Any) -> str:
    """The text of an identifier in a key; BadKey for texts with a `#`, which could forge a key."""
    if type(value) is str and value.isalnum():  # most identifiers, ten times as fast
        return value
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, date):
        return value.isoformat()
    text = str(value.value if isinstance(value, Enum) else value)
    if not text or _UNSAFE.search(text):
        raise BadKey("an identifier in a key is not empty and has no '#', control character, surrogate or U+10FFFF")
    return text


def best_first(number: int) -> str:
    """Ten digits that sort the highest number first."""
    if not -_BEST_FIRST_RANGE <= number < _BEST_FIRST_RANGE:
        raise BadKey(f"{number} is outside of what a best-first key can order")
    return f"{9_999_999_999 - (number + _BEST_FIRST_RANGE):010d}"


def from_best_first(text: str) -> int:
    """The number that `best_first` wrote."""
    return 9_999_999_999 - int(text) - _BEST_FIRST_RANGE


def _padded(width: int) -> Callable[[Any], str]:
    def text(number: Any) -> str:
        digits = f"{int(number):0{width}d}"
        if len(digits) > width or digits[0] == "-":
            raise BadKey(f"{number} does not fit a key of {width} digits")
        return digits

    return text


def _format(specification: str) -> Callable[[Any], str]:
    if not specification:
        return key_text
    if specification == "best_first":
        return best_first
    if padded := _PADDED.fullmatch(specification):
        return _padded(int(padded[1]))
    raise TypeError(f"a key knows no format {specification!r}")


class Template:
    """The text of one key attribute, with placeholders for a record's attributes.

    Values of the `readable` placeholders can be read back from a key.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._parts: list[tuple[str, str, Callable[[Any], str]]] = []
        """Each placeholder with the literal before it."""
        self._end, readable, pattern = "", [], ""
        for literal, name, specification, _ in Formatter().parse(text):
            pattern += re.escape(literal)
            if name is None:
                self._end = literal
                continue
            self._parts.append((literal, name, _format(specification or "")))
            pattern += f"(?P<{name}>[^#]+)"
            if specification != "best_first":
                readable.append(name)
        self.names = tuple(name for _, name, _ in self._parts)
        self.readable = tuple(readable)
        self.pattern = re.compile(pattern)

    def fill_from(self, record: Any) -> str:
        """The text for a record."""
        text = ""
        for literal, name, render in self._parts:
            text += literal + render(getattr(record, name))
        return text + self._end

    def fill(self, values: Mapping[str, Any], *, partly: bool = False) -> str:
        """The text for given values. A missing value is an error, or ends the text if `partly` is set."""
        text = ""
        for literal, name, render in self._parts:
            text += literal
            if name not in values:
                if partly:
                    return text
                raise TypeError(f"the key needs a value for {name!r}")
            text += render(values[name])
        return text + self._end


class Key:
    """The two templates of one index. A secondary index has only items whose `when` is true and `unless` false."""

    def __init__(self, partition: str, sort: str, *, when: str | None = None, unless: str | None = None) -> None:
        self.partition = Template(partition)
        self.sort = Template(sort)
        self.when = when
        self.unless = unless

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.partition.names, *self.sort.names, *filter(None, (self.when, self.unless)))

    def holds(self, record: Any) -> bool:
        return (self.when is None or bool(getattr(record, self.when))) and (
            self.unless is None or not getattr(record, self.unless)
        )


def shard_of(text: str, shards: int) -> int:
    """The shard of what has this id or name: one of several items or partitions that its writes go to.

    Keys in the table contain it, so it never changes.
    """
    return zlib.crc32(text.encode()) % shards


def just_above(text: str) -> str:
    """The least bound above a key. No valid key lies between, since keys contain no control characters."""
    return text + "\x00"


def just_below(text: str) -> str:
    """The greatest bound below a key. No valid key lies between, since keys do not contain U+10FFFF."""
    last = ord(text[-1]) - 1
    if 0xD800 <= last <= 0xDFFF:  # noqa: PLR2004 - surrogates are not characters
        last = 0xD7FF
    return text[:-1] + chr(last) + HIGHEST


# ── decoders ──
# Reads an item as a record: attributes by their codecs, the rest from the item's key.

R = TypeVar("R")


def record_decoder(
    record: type[R], key: Key, stored: Mapping[str, Codec], from_key: Mapping[str, Callable[[str], Any]]
) -> Callable[[Item], R]:
    """A function that reads an entity's items. A required field that an item lacks raises TypeError."""
    read_fields = fields_decoder(record, stored)
    key_parts = tuple(
        (attribute, template.pattern.fullmatch, tuple((name, from_key[name]) for name in names))
        for attribute, template in (("pk", key.partition), ("sk", key.sort))
        if (names := [name for name in template.names if name in from_key])
    )

    def read(item: Item) -> R:
        arguments = read_fields(item)
        for attribute, match, fields in key_parts:
            if (found := match(item[attribute]["S"])) is not None:
                for name, parse in fields:
                    arguments[name] = parse(found[name])
        return record(**arguments)

    return read


# ── entity ──

R_co = TypeVar("R_co", covariant=True)

INDEXES = ("gsi1", "gsi2", "gsi3")
TTL = "ttl"


@dataclass(frozen=True, slots=True)
class ItemKey(Generic[R_co]):
    """The primary key of a record."""

    entity: Entity[Any]
    pk: str
    sk: str

    @property
    def attributes(self) -> dict[str, Attribute]:
        return {"pk": {"S": self.pk}, "sk": {"S": self.sk}}


@dataclass(frozen=True, slots=True)
class Partition(Generic[R_co]):
    """Records under one partition key, in the order of their sort keys. Bounds are inclusive."""

    entity: Entity[Any]
    index: str | None
    pk: str
    low: str | None = None
    high: str | None = None
    descending: bool = False
    filter: Condition = ALWAYS

    def newest_first(self) -> Partition[R_co]:
        return replace(self, descending=True)

    def reversed(self) -> Partition[R_co]:
        return replace(self, descending=not self.descending)

    def past(self, sort: str | None) -> Partition[R_co]:
        """Only records after a sort key, in this partition's direction. The key's item need not exist."""
        if sort is None:
            return self
        return self.between(None, just_below(sort)) if self.descending else self.between(just_above(sort), None)

    def between(self, low: str | None, high: str | None) -> Partition[R_co]:
        """Only sort keys from `low` to `high`, both included."""
        if low is None or (self.low is not None and self.low > low):
            low = self.low
        if high is None or (self.high is not None and self.high < high):
            high = self.high
        return replace(self, low=low, high=high)

    def where(self, condition: Condition) -> Partition[R_co]:
        """Only records for which a condition holds. The others are still read and paid for."""
        return replace(self, filter=condition)

    @property
    def sort_attribute(self) -> str:
        """The attribute that holds the sort key here."""
        return f"{self.index or ''}sk"


@dataclass(frozen=True, slots=True)
class Slice(Generic[R]):
    """Consecutive sort keys and records of a partition.

    `last` is the last sort key that was read, or None if nothing follows. `read` counts filtered records too.
    """

    items: tuple[tuple[str, R], ...]
    last: str | None
    read: int

    @property
    def records(self) -> tuple[R, ...]:
        return tuple(record for _, record in self.items)


class Entity(Generic[R]):
    """How one kind of record is stored in the table.

    `ttl` names a datetime field after which the engine may remove the item. Declaring an entity fails if a key template
    names an attribute that the record does not have.
    """

    def __init__(self, record: type[R], key: Key, *, ttl: str | None = None, **indexes: Key) -> None:
        self.record = record
        self.key = key
        self.indexes = indexes
        self.ttl = ttl
        self._refuse_unknown_names()
        fields = record_fields(record)
        hints, readable = get_type_hints(record), (*key.partition.readable, *key.sort.readable)
        self._from_key = {name: _reader(hints[name]) for name in readable if name in fields}
        self.fields: Mapping[str, Codec] = {name: codec for name, codec in fields.items() if name not in self._from_key}
        """The fields that are stored as attributes."""
        self._in_index_keys = frozenset(name for index in indexes.values() for name in index.names)
        INVALIDATION.add(key.partition.text, *(index.partition.text for index in indexes.values()))

    def _refuse_unknown_names(self) -> None:
        names = {field.name for field in dataclasses.fields(self.record)} | set(dir(self.record))  # type: ignore[arg-type]
        if unknown_indexes := set(self.indexes) - set(INDEXES):
            raise TypeError(f"{self.record.__name__}: no index is called {sorted(unknown_indexes)}")
        for key in (self.key, *self.indexes.values()):
            if unknown := set(key.names) - names:
                raise TypeError(f"{self.record.__name__} has no attribute {sorted(unknown)} that its key names")

    # ── keys and partitions ──

    def at(self, **values: Any) -> ItemKey[R]:
        """The primary key of a record, from the attributes that its key template names."""
        return ItemKey(self, self.key.partition.fill(values), self.key.sort.fill(values))

    def item_key(self, record: R) -> ItemKey[R]:
        return ItemKey(self, self.key.partition.fill_from(record), self.key.sort.fill_from(record))

    def on(self, index: str | None = None, /, **values: Any) -> Partition[R]:
        """The records under a partition key; values for the sort key narrow it from the left."""
        key = self.key if index is None else self.indexes[index]
        pk, start = key.partition.fill(values), key.sort.fill(values, partly=True)
        return Partition(self, index, pk, low=start or None, high=start + HIGHEST if start else None)

    def collection(self, index: str | None = None, /, **values: Any) -> Partition[Any]:
        """Everything under a partition key, of whatever entities."""
        key = self.key if index is None else self.indexes[index]
        return Partition(self, index, key.partition.fill(values))

    def sort_key(self, record: R, index: str | None = None) -> str:
        key = self.key if index is None else self.indexes[index]
        return key.sort.fill_from(record)

    # ── items ──

    def item(self, record: R) -> dict[str, Attribute]:
        """The whole item of a record, index keys included."""
        item = self.item_key(record).attributes
        item.update(self.index_attributes(record))
        item.update(encoded(self.fields, record))
        if self.ttl is not None and (expires := getattr(record, self.ttl)) is not None:
            item[TTL] = _seconds(expires)
        return item

    def index_attributes(self, record: R) -> dict[str, Attribute]:
        attributes: dict[str, Attribute] = {}
        for name, key in self.indexes.items():
            if key.holds(record):
                attributes[f"{name}pk"] = {"S": key.partition.fill_from(record)}
                attributes[f"{name}sk"] = {"S": key.sort.fill_from(record)}
        return attributes

    @cached_property
    def read(self) -> Callable[[Item], R]:
        """The record of an item."""
        return record_decoder(self.record, self.key, self.fields, self._from_key)

    def recognises(self, pk: str, sk: str) -> bool:
        """Whether a primary key belongs to this entity."""
        return bool(self.key.partition.pattern.fullmatch(pk) and self.key.sort.pattern.fullmatch(sk))

    def has(self, name: str) -> bool:
        """Whether an update may name this attribute."""
        return name in self.fields

    def _refuse_unknown(self, names: Iterable[str]) -> None:
        if unknown := [name for name in names if not self.has(name)]:
            raise KeyError(f"{self.record.__name__} has no attribute {unknown}")

    def _changes(self, values: Mapping[str, Any]) -> tuple[dict[str, Attribute], tuple[str, ...]]:
        """What an update assigns and removes, the time to live included."""
        assigned = {name: self.fields[name].encode(value) for name, value in values.items() if value is not None}
        removed = tuple(name for name, value in values.items() if value is None)
        if self.ttl is None or self.ttl not in values:
            return assigned, removed
        expires = values[self.ttl]
        return (assigned, (*removed, TTL)) if expires is None else (assigned | {TTL: _seconds(expires)}, removed)

    # ── writes ──

    def put(self, record: R, *, when: Condition = ALWAYS) -> Put:
        return Put(self.fields, self.item(record), when)

    def update(
        self,
        key: ItemKey[R],
        *,
        values: Mapping[str, Any] | None = None,
        add: Mapping[str, int] | None = None,
        when: Condition = ALWAYS,
    ) -> Update:
        """An update of some fields: `values` are assigned (None removes), `add` is added.

        TypeError for a field that an index key contains: `update_with_indexes` changes those.
        """
        values, add = values or {}, add or {}
        if in_keys := self._in_index_keys & (values.keys() | add.keys()):
            raise TypeError(f"{self.record.__name__}: an index key names {sorted(in_keys)}; use update_with_indexes")
        self._refuse_unknown([*values, *add])
        assigned, removed = self._changes(values)
        return Update(self.fields, key.attributes, assigned, _added(add), removed, when)

    def update_with_indexes(
        self, record: R, *names: str, add: Mapping[str, int] | None = None, when: Condition = ALWAYS
    ) -> Update:
        """An update of the named fields to the record's values, and of its keys in every index."""
        index_attributes = self.index_attributes(record)
        every = {f"{name}{part}" for name in self.indexes for part in ("pk", "sk")}
        values = {name: getattr(record, name) for name in names}
        self._refuse_unknown([*values, *(add or {})])
        assigned, removed = self._changes(values)
        assigned, removed = assigned | index_attributes, (*removed, *sorted(every - index_attributes.keys()))
        return Update(self.fields, self.item_key(record).attributes, assigned, _added(add or {}), removed, when)

    def delete(self, key: ItemKey[R], *, when: Condition = ALWAYS) -> Delete:
        return Delete(self.fields, key.attributes, when)

    def check(self, key: ItemKey[R], when: Condition) -> Check:
        return Check(self.fields, key.attributes, when)


def _seconds(moment: Any) -> Attribute:
    return {"N": str(int(moment.timestamp()))}


def _added(numbers: Mapping[str, int]) -> dict[str, Attribute]:
    return {name: {"N": str(number)} for name, number in numbers.items()}


def _reader(declared: Any) -> Callable[[str], Any]:
    """The function that reads a field of this type from the text in a key."""
    declared = getattr(declared, "__supertype__", declared)
    if declared is date:
        return date.fromisoformat
    if declared is datetime:
        return datetime.fromisoformat
    if declared in (str, int) or (isinstance(declared, type) and issubclass(declared, Enum)):
        return declared  # type: ignore[no-any-return]  # a class is its own reader
    raise TypeError(f"a field of type {declared!r} cannot be read back from a key")
