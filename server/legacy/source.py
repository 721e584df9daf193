"""Reading the old layout: every row, parsed or with the reason why it cannot be migrated."""

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
from resolvers.people import validate_email_address
from server.failures import Failed

_ENDED_STATUSES = frozenset({"unsubscribed", "inactive", "ended", "cancelled", "false"})
_ACTIVE_STATUSES = frozenset({"subscribed", "active", "confirmed", "true", ""})


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a row cannot be migrated."""

    reason: str


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
class SourceRow:
    """A row of the source, as the report names it."""

    kind: str
    list: str
    key: str


@dataclass(frozen=True, slots=True)
class LegacySource:
    """The two tables and the file."""

    subscriptions: Table
    past_words: Table
    words: Path

    def read_words(self) -> Iterator[tuple[SourceRow, OldWord | Rejection]]:
        for number, texts in _read_csv(self.words):
            row = SourceRow("word", texts.get("listid", ""), f"line {number}: {texts.get('simplified', '')}")
            yield row, _parse_word(texts)

    async def read_days(self) -> AsyncIterator[tuple[SourceRow, OldDay | Rejection]]:
        async for item in foreign_rows(self.past_words):
            row = SourceRow("past word", str(item.get("ListId", "")), str(item.get("Date", "")))
            yield row, _parse_day(item)

    async def read_subscriptions(self) -> AsyncIterator[tuple[SourceRow, OldSubscription | Rejection]]:
        async for item in foreign_rows(self.subscriptions):
            row = SourceRow("subscription", str(item.get("ListId", "")), str(item.get("SubscriberEmail", "")))
            yield row, _parse_subscription(item)


def _read_csv(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            names = {name: (name or "").replace(" ", "").lower() for name in reader.fieldnames or ()}
            if missing := {"listid", "simplified", "definition"} - set(names.values()):
                columns = ", ".join(sorted(missing))
                raise Failed(f"{path} has no column {columns}; see `ringside migrate legacy --help`.")
            for row in reader:
                yield (
                    reader.line_num,
                    {names[name]: (text or "").strip() for name, text in row.items() if name in names},
                )
    except (UnicodeDecodeError, csv.Error) as error:
        raise Failed(f"{path} cannot be read as CSV in UTF-8: {error}.") from None


def _parse_word(texts: Mapping[str, str]) -> OldWord | Rejection:
    if not texts["listid"]:
        return Rejection("it does not name a list")
    level = texts.get("level") or texts["listid"]
    valid = level.isascii() and level.isdecimal() and len(level) <= 3 and int(level) <= 100  # noqa: PLR2004
    return OldWord(texts["listid"], texts.get("listname") or None, int(level) if valid else None, texts)


def _parse_day(item: Mapping[str, Any]) -> OldDay | Rejection:
    word = item.get("Word", item.get("Simplified"))
    simplified = word.get("Simplified") if isinstance(word, dict) else word
    if not simplified:
        return Rejection("it does not name a word")
    try:
        day = date.fromisoformat(str(item.get("Date", ""))[:10])
    except ValueError:
        return Rejection("its date is not yyyy-mm-dd")
    return OldDay(str(item.get("ListId", "")), day, str(simplified).strip())


def _parse_subscription(item: Mapping[str, Any]) -> OldSubscription | Rejection:
    try:
        email = validate_email_address(str(item.get("SubscriberEmail", "")).strip())
        characters = CharacterSet(str(item.get("CharacterSet") or "SIMPLIFIED").upper())
    except Refusal as refused:
        return Rejection(refused.message)
    except ValueError:
        return Rejection(f"there is no character set {item.get('CharacterSet')!r}")
    status = str(item.get("Status", "")).lower()
    if status not in _ENDED_STATUSES | _ACTIVE_STATUSES:
        return Rejection(f"its status {item.get('Status')!r} is unknown")
    since = _parse_moment(str(item.get("DateSubscribed", "")))
    if since is None:
        return Rejection("DateSubscribed is not a date")
    return OldSubscription(str(item.get("ListId", "")), email, characters, status not in _ENDED_STATUSES, since)


def _parse_moment(text: str) -> datetime | None:
    try:
        if len(text) == len("2020-01-01"):
            return datetime.combine(date.fromisoformat(text), time(), UTC)
        moment = datetime.fromisoformat(text)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # in UTC it is outside the years 1 to 9999
        return None
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
