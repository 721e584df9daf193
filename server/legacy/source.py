"""Reading the old layout: every row as a record of ours, or with the reason why it cannot be one."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

from datastore.dynamo import Table, foreign_rows
from datastore.refusals import Refusal
from datastore.vocabulary import CharacterSet
from resolvers.people import email_address
from server.commands import Failed

_ENDED = frozenset({"unsubscribed", "inactive", "ended", "cancelled", "false"})
_GOES_ON = frozenset({"subscribed", "active", "confirmed", "true", ""})


class Unreadable(Exception):
    """A row that has no place in the new table; the message says why."""


@dataclass(frozen=True, slots=True)
class OldWord:
    """A row of the words file."""

    list: str
    list_name: str | None
    level: int | None
    texts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class OldDay:
    """A row of the past words table."""

    list: str
    date: date
    simplified: str


@dataclass(frozen=True, slots=True)
class OldSubscription:
    """A row of the subscriptions table."""

    list: str
    email: str
    character_set: CharacterSet
    active: bool
    since: datetime


@dataclass(frozen=True, slots=True)
class Row:
    """What a report calls a row of the source."""

    kind: str
    list: str
    key: str


@dataclass(frozen=True, slots=True)
class Legacy:
    """The two tables and the file."""

    subscriptions: Table
    past_words: Table
    words: Path

    def old_words(self) -> Iterator[tuple[Row, OldWord | Unreadable]]:
        for number, texts in _csv(self.words):
            row = Row("word", texts.get("listid", ""), f"line {number}: {texts.get('simplified', '')}")
            yield row, _word(texts)

    async def old_days(self) -> AsyncIterator[tuple[Row, OldDay | Unreadable]]:
        async for item in foreign_rows(self.past_words):
            row = Row("past word", str(item.get("ListId", "")), str(item.get("Date", "")))
            yield row, _day(item)

    async def old_subscriptions(self) -> AsyncIterator[tuple[Row, OldSubscription | Unreadable]]:
        async for item in foreign_rows(self.subscriptions):
            row = Row("subscription", str(item.get("ListId", "")), str(item.get("SubscriberEmail", "")))
            yield row, _subscription(item)


def _csv(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            names = {name: (name or "").replace(" ", "").lower() for name in reader.fieldnames or ()}
            if missing := {"listid", "simplified", "definition"} - set(names.values()):
                message = f"{path} has no column {', '.join(sorted(missing))}; see `ringside migrate legacy --help`."
                raise Failed(message)
            for row in reader:
                yield (
                    reader.line_num,
                    {names[name]: (text or "").strip() for name, text in row.items() if name in names},
                )
    except (UnicodeDecodeError, csv.Error) as error:
        message = f"{path} cannot be read as CSV in UTF-8: {error}."
        raise Failed(message) from None


def _word(texts: Mapping[str, str]) -> OldWord | Unreadable:
    if not texts["listid"]:
        return Unreadable("it names no list")
    level = texts.get("level") or texts["listid"]
    known = level.isascii() and level.isdecimal() and len(level) <= 3 and int(level) <= 100  # noqa: PLR2004
    return OldWord(texts["listid"], texts.get("listname") or None, int(level) if known else None, texts)


def _day(item: Mapping[str, Any]) -> OldDay | Unreadable:
    word = item.get("Word", item.get("Simplified"))
    simplified = word.get("Simplified") if isinstance(word, dict) else word
    if not simplified:
        return Unreadable("it names no word")
    try:
        day = date.fromisoformat(str(item.get("Date", ""))[:10])
    except ValueError:
        return Unreadable("its date is not yyyy-mm-dd")
    return OldDay(str(item.get("ListId", "")), day, str(simplified).strip())


def _subscription(item: Mapping[str, Any]) -> OldSubscription | Unreadable:
    try:
        email = email_address(str(item.get("SubscriberEmail", "")).strip())
        characters = CharacterSet(str(item.get("CharacterSet") or "SIMPLIFIED").upper())
    except Refusal as refused:
        return Unreadable(refused.message)
    except ValueError:
        return Unreadable(f"there is no character set {item.get('CharacterSet')!r}")
    status = str(item.get("Status", "")).lower()
    if status not in _ENDED | _GOES_ON:
        return Unreadable(f"its status {item.get('Status')!r} is not known")
    since = _moment(str(item.get("DateSubscribed", "")))
    if since is None:
        return Unreadable("DateSubscribed is no date")
    return OldSubscription(str(item.get("ListId", "")), email, characters, status not in _ENDED, since)


def _moment(text: str) -> datetime | None:
    try:
        if len(text) == len("2020-01-01"):
            return datetime.combine(date.fromisoformat(text), time(), UTC)
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    found = found if found.tzinfo else found.replace(tzinfo=UTC)
    return found.replace(microsecond=found.microsecond // 1000 * 1000)
