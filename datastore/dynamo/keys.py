"""Key templates as data: `Key("LEADERBOARD#{board}", "{score:best_first}#{ordinal:06d}")`.

A template contains attributes of a record, each with a format. The formats keep text in the order of the values:

| format        | of        | written                                                                       |
|---------------|-----------|-------------------------------------------------------------------------------|
| (none)        | text      | as it is; `#`, control characters, lone surrogates and U+10FFFF are refused   |
| (none)        | datetime, date, enum | ISO 8601 in UTC; ISO 8601; the enum's value                        |
| `06d`         | whole number | padded; negative numbers and those that outgrow the padding are refused    |
| `best_first`  | whole number | `9999999999 - (n + 5000000000)`, ten digits: ascending text is descending n |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from enum import Enum
from string import Formatter
from typing import Any

from datastore.dynamo.attributes import iso

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


def just_above(text: str) -> str:
    """The least bound above a key. No valid key lies between, since keys contain no control characters."""
    return text + "\x00"


def just_below(text: str) -> str:
    """The greatest bound below a key. No valid key lies between, since keys do not contain U+10FFFF."""
    last = ord(text[-1]) - 1
    if 0xD800 <= last <= 0xDFFF:  # noqa: PLR2004 - surrogates are not characters
        last = 0xD7FF
    return text[:-1] + chr(last) + HIGHEST
