"""How much is done: what this process reports of it once a minute, and the fields that sum all processes' reports.

What a process has counted since its last report counts for the day and hour of the next one, and is lost if the process
is killed.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

import structlog

from datastore.journal import usage as usage_store
from datastore.journal.usage import OTHER, Activity, OperationFigures, Operations
from datastore.refusals import InvalidInput
from resolvers.live.background import Repeated, uneven, unless_failed
from resolvers.requests.context import Context, Role, Services

REPORT_SECONDS = 60.0
MOST_NAMES = 1_000
"""Operations that a process reports in an hour under their own names, since an item has 400 KB."""
MOST_DAYS_OF_ACTIVITY = 92
MOST_OF_OPERATIONS = timedelta(days=31)
READ_DOLLARS, WRITE_DOLLARS = 0.125, 0.625
"""For a million units with on-demand capacity in us-east-1, as of November 2024; see docs/cost.md."""

_NOTHING = OperationFigures()
_FAILED = "usage was not reported"
_log = structlog.get_logger("ringside.usage")


# ── reports ──


class UsageReports(Repeated):
    """Reports what this process has counted, as long as it runs and a last time when it stops.

    `take_figures` returns what each operation has taken since it was last called.
    """

    def __init__(self, services: Services, take_figures: Callable[[], Mapping[str, OperationFigures]]) -> None:
        super().__init__(self.report, lambda: uneven(REPORT_SECONDS), _FAILED, _log)
        self._services = services
        self._take_figures = take_figures
        self._activity = self._reported_activity = Activity(date.min, services.leases.holder)
        self._operations = self._reported_operations = Operations(date.min, 0, services.leases.holder)

    async def report(self) -> None:
        """Store the figures of this day and hour, unless nothing was added to them."""
        await self._store()  # what an attempt that failed has left, whose hour may be over
        now = self._services.clock()
        self._add_activity(now.date())
        self._add_operations(now)
        await self._store()

    async def _store(self) -> None:
        if self._activity != self._reported_activity:
            await usage_store.report_activity(self._services.table, self._activity)
            self._reported_activity = self._activity
        if self._operations != self._reported_operations:
            await usage_store.report_operations(self._services.table, self._operations)
            self._reported_operations = self._operations

    def _add_activity(self, day: date) -> None:
        counts, self._services.activity = self._services.activity, Counter()
        if counts:
            before = self._activity if self._activity.day == day else Activity(day, self._activity.process)
            more = {name: getattr(before, name) + number for name, number in counts.items()}
            self._activity = replace(before, **more)

    def _add_operations(self, now: datetime) -> None:
        figures = self._take_figures()
        if figures:
            hour = Operations(now.date(), now.hour, self._operations.process)
            before = self._operations if self._operations.begins_at == hour.begins_at else hour
            sums = dict(before.figures)
            for name, more in figures.items():
                counts_as = name if name in sums or len(sums) < MOST_NAMES else OTHER
                sums[counts_as] = sums.get(counts_as, _NOTHING) + more
            self._operations = replace(before, figures=sums)

    async def close(self) -> None:
        await super().close()
        await unless_failed(self.report(), _FAILED, _log)


# ── fields ──


@dataclass(frozen=True, slots=True)
class Operation:
    """What an operation has taken in all processes. `units` are read and write units; `dollars` is what they cost."""

    name: str
    requests: int
    refusals: int
    units: float
    dollars: float


async def activity(ctx: Context, /, *, from_: date, to: date) -> list[Activity]:
    """One entry for each day, the first one first: what all processes have counted."""
    ctx.with_role(Role.EDITOR)
    days = (to - from_).days + 1
    if not 1 <= days <= MOST_DAYS_OF_ACTIVITY:
        raise InvalidInput(f"Ask for 1 to {MOST_DAYS_OF_ACTIVITY} days.", path=("to",))
    counts: dict[date, Counter[str]] = {from_ + timedelta(days=number): Counter() for number in range(days)}
    async for report in usage_store.activity_reports(ctx.table, from_, to):
        counts[report.day].update({name: getattr(report, name) for name in usage_store.COUNTED})
    return [replace(Activity(day, process=""), **dict[str, Any](counted)) for day, counted in counts.items()]


async def operations(ctx: Context, /, *, from_: datetime, to: datetime) -> list[Operation]:
    """The dearest one first, of all hours that begin at or after `from_` and before `to`."""
    ctx.with_role(Role.ADMIN)
    if not timedelta(0) < to - from_ <= MOST_OF_OPERATIONS:
        raise InvalidInput(f"`to` must be after `from`, by at most {MOST_OF_OPERATIONS.days} days.", path=("to",))
    sums: defaultdict[str, OperationFigures] = defaultdict(OperationFigures)
    async for report in usage_store.operation_reports(ctx.table, from_, to):
        for name, figures in report.figures.items():
            sums[name] += figures
    shown = [_operation(name, figures) for name, figures in sums.items()]
    return sorted(shown, key=lambda one: (-one.dollars, one.name))


def _operation(name: str, figures: OperationFigures) -> Operation:
    dollars = (figures.read_units * READ_DOLLARS + figures.write_units * WRITE_DOLLARS) / 1e6
    units = figures.read_units + figures.write_units
    return Operation(name, figures.requests, figures.refusals, round(units, 1), round(dollars, 6))
