"""How much is done: votes, comments and more by day, and what each operation costs by hour.

| wanted                              | read or write                                               | requests      |
|-------------------------------------|-------------------------------------------------------------|---------------|
| report the day's activity           | PutItem ACTIVITY <date>#<process>                           | 1 a minute    |
| report the hour's operations        | PutItem OPERATIONS#<date> <hour>#<process>                  | 1 a minute    |
| the activity of some days           | Query of ACTIVITY, of the days asked for                    | 1, 1 round    |
| the operations of some hours        | Query of OPERATIONS#<date>, of the hours asked for          | 1 a day       |

Each process replaces its own figures of the day and of the hour, and readers sum those of all processes. So a report
that is repeated changes nothing, and none is read before it is written. A process with nothing to add writes nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, date, datetime, time, timedelta

from datastore.dynamo import Table
from datastore.dynamo.entity import HIGHEST, Entity, Key

COUNTED = ("votes", "comments", "predictions", "quizzes", "new_members")
"""What is counted of a day."""
ACTIVITY_KEPT = timedelta(days=400)
OPERATIONS_KEPT = timedelta(days=40)
OTHER = "other"
"""The name of all operations that do not count under their own."""


@dataclass(frozen=True, slots=True)
class Activity:
    """What a process has counted on one day."""

    day: date
    process: str
    votes: int = 0
    comments: int = 0
    predictions: int = 0
    quizzes: int = 0
    new_members: int = 0
    expires: datetime | None = None


@dataclass(frozen=True, slots=True)
class OperationFigures:
    """What one operation has taken. Units are DynamoDB's."""

    requests: int = 0
    refusals: int = 0
    read_units: float = 0.0
    write_units: float = 0.0

    def __add__(self, other: OperationFigures) -> OperationFigures:
        return OperationFigures(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


@dataclass(frozen=True, slots=True)
class Operations:
    """What a process has counted in one hour, by the operations' names."""

    day: date
    hour: int
    process: str
    figures: dict[str, OperationFigures] = field(default_factory=dict)
    expires: datetime | None = None

    @property
    def begins_at(self) -> datetime:
        return datetime.combine(self.day, time(self.hour), UTC)


ACTIVITY = Entity(Activity, Key("ACTIVITY", "{day}#{process}"), ttl="expires")
OPERATIONS = Entity(Operations, Key("OPERATIONS#{day}", "{hour:02d}#{process}"), ttl="expires")


async def report_activity(table: Table, activity: Activity) -> None:
    """Replace what the process has reported of this day."""
    expires = datetime.combine(activity.day, time(), UTC) + ACTIVITY_KEPT
    await table.write(ACTIVITY.put(replace(activity, expires=expires)))


async def report_operations(table: Table, operations: Operations) -> None:
    """Replace what the process has reported of this hour."""
    await table.write(OPERATIONS.put(replace(operations, expires=operations.begins_at + OPERATIONS_KEPT)))


def activity_reports(table: Table, first: date, last: date) -> AsyncIterator[Activity]:
    """What each process has reported of the days from `first` to `last`, in their order."""
    return table.iterate(ACTIVITY.on(None).between(first.isoformat(), f"{last.isoformat()}#{HIGHEST}"))


async def operation_reports(table: Table, since: datetime, until: datetime) -> AsyncIterator[Operations]:
    """What each process has reported of the hours that begin at or after `since` and before `until`."""
    for number in range((until.date() - since.date()).days + 1):
        async for report in table.iterate(OPERATIONS.on(day=since.date() + timedelta(days=number))):
            if since <= report.begins_at < until:
                yield report
