"""Which of the serving processes sends the emails that are due: the one whose write of EMAILRUN#emails succeeds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from datastore.dynamo import ConditionFailed
from datastore.dynamo.conditions import absent, outside
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key

if TYPE_CHECKING:
    from datastore.dynamo import Table


@dataclass(frozen=True, slots=True)
class EmailRun:
    """The last run that a serving process began; `name` is the same for all of them."""

    name: str
    next_at: datetime


EMAIL_RUN = Entity(EmailRun, Key("EMAILRUN#{name}", "RUN"))
_NAME = "emails"
_CLOCK_SKEW = timedelta(minutes=1)


async def take_turn(table: Table, now: datetime, next_at: datetime) -> bool:
    """Whether a run is due; if so it is this process's, and the next one is not before `next_at`.

    A turn that is later than that was taken by a clock that was ahead, and counts as none.
    """
    run = EmailRun(_NAME, next_at)
    try:
        await table.write(EMAIL_RUN.put(run, when=absent() | outside("next_at", now, next_at + _CLOCK_SKEW)))
    except ConditionFailed as failed:
        return failed.was_written(EMAIL_RUN, run)
    return True
