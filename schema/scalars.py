"""Moments and days as texts that every client can read."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Any

from strawberry.types.scalar import scalar

from datastore.dynamo.attributes import iso

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def _moment(value: Any) -> datetime:
    if not isinstance(value, str) or not _MOMENT.fullmatch(value):
        message = "A DateTime is written as in RFC 3339, with its zone: 2026-11-20T20:00:00Z."
        raise ValueError(message)
    parsed = datetime.fromisoformat(value.upper()).astimezone(UTC)
    return parsed.replace(microsecond=parsed.microsecond // 1000 * 1000)


def _day(value: Any) -> date:
    if not isinstance(value, str) or not _DAY.fullmatch(value):
        message = "A Date is written as yyyy-mm-dd."
        raise ValueError(message)
    return date.fromisoformat(value)


SCALARS: dict[object, Any] = {
    datetime: scalar(
        name="DateTime",
        description="A moment as RFC 3339 writes it, in UTC, to the millisecond: 2026-11-20T20:00:00.000Z.",
        serialize=iso,
        parse_value=_moment,
        specified_by_url="https://www.rfc-editor.org/rfc/rfc3339",
    ),
    date: scalar(
        name="Date",
        description="A calendar day: yyyy-mm-dd.",
        serialize=date.isoformat,
        parse_value=_day,
    ),
}
