"""DateTime and Date: moments and days as texts that every client can read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any, TypeVar

from graphql import GraphQLError, StringValueNode, ValueNode
from strawberry.types.scalar import scalar

from datastore.dynamo import iso

T = TypeVar("T")

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


# The parsers raise GraphQLError alone: any other exception would be answered as a fault of this program.


def _parse_moment(value: Any) -> datetime:
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        try:
            parsed = datetime.fromisoformat(value.upper()).astimezone(UTC)
        except (ValueError, OverflowError):  # the 13th month; a moment of the year 0 or 10,000 in UTC
            pass
        else:
            return parsed.replace(microsecond=parsed.microsecond // 1000 * 1000)
    raise GraphQLError("A DateTime is a moment as RFC 3339 writes it, with its zone: 2026-11-20T20:00:00Z.")


def _parse_day(value: Any) -> date:
    if isinstance(value, str) and _DAY.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise GraphQLError("A Date is a day of the calendar, written as yyyy-mm-dd.")


def _literals(parse: Callable[[Any], T]) -> Callable[[ValueNode, Mapping[str, Any] | None], T]:
    """The parser of a scalar's literals. Its errors name their place in the document."""

    def parse_literal(node: ValueNode, _: Mapping[str, Any] | None = None) -> T:
        try:
            return parse(node.value if isinstance(node, StringValueNode) else None)
        except GraphQLError as error:
            raise GraphQLError(error.message, node) from None

    return parse_literal


SCALARS: dict[object, Any] = {
    datetime: scalar(
        name="DateTime",
        description="A time in RFC 3339 format, in UTC, to the millisecond: 2026-11-20T20:00:00.000Z.",
        serialize=iso,
        parse_value=_parse_moment,
        parse_literal=_literals(_parse_moment),
        specified_by_url="https://www.rfc-editor.org/rfc/rfc3339",
    ),
    date: scalar(
        name="Date",
        description="A calendar day: yyyy-mm-dd.",
        serialize=date.isoformat,
        parse_value=_parse_day,
        parse_literal=_literals(_parse_day),
    ),
}
