"""The fields of a row that was JSON: of their kinds, or InvalidInput with their names. Null is like nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar

from datastore.refusals import InvalidInput

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)
Fields: TypeAlias = Mapping[str, Any]


def parse_kind(fields: Fields, name: str, kind: type[T], default: T | None = None) -> T:
    """A value of this kind, which may be left out if there is a default. A text is no list of its letters."""
    value = fields.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, kind):
        raise InvalidInput(f"write {'a list' if kind is list else 'true or false'}", path=(name,))
    return value


def parse_text(fields: Fields, name: str) -> str:
    """A text, which is required. A number is none."""
    value = fields.get(name)
    if not isinstance(value, str) or "\x00" in value:
        raise InvalidInput("write a text, in quotation marks", path=(name,))
    return value


def parse_optional_text(fields: Fields, name: str) -> str | None:
    return None if fields.get(name) is None else parse_text(fields, name)


def parse_texts(fields: Fields, name: str, default: list[str] | None = None) -> list[str]:
    """A list of texts."""
    texts: list[Any] = parse_kind(fields, name, list, default)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidInput("write a text, in quotation marks", path=(name, f"{index}"))
    return texts


def parse_choice(fields: Fields, name: str, kind: type[E]) -> E:
    """A member of an enumeration, by its value."""
    by_value = {member.value: member for member in kind}
    value = fields.get(name)
    if not isinstance(value, str) or value not in by_value:
        raise InvalidInput(f"write one of {', '.join(by_value)}", path=(name,))
    return by_value[value]


def parse_whole(fields: Fields, name: str) -> int:
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 != 0:  # infinity % 1 is NaN
        raise InvalidInput("write a whole number, without quotation marks", path=(name,))
    return int(value)


def parse_moment(fields: Fields, name: str) -> datetime:
    """A moment in UTC."""
    try:
        moment = datetime.fromisoformat(parse_text(fields, name))
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise InvalidInput("write a date, a time and a zone, as in 2026-11-20T20:00:00Z", path=(name,))
