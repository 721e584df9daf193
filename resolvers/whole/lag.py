"""How far the service is behind: with settling votes, and with its jobs."""

from dataclasses import dataclass
from datetime import datetime

from datastore.dynamo import gather_or_cancel
from datastore.jobs import jobs as job_store
from datastore.voting import boards as board_store
from resolvers.requests.context import Context, Role

_BOARDS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Lag:
    """For how long the oldest unsettled vote and the oldest job that is due have waited; 0 if none waits."""

    settling_seconds: float
    oldest_job_seconds: float


async def lag(ctx: Context, /) -> Lag:
    """As the table tells it; a vote that was settled a moment ago may still count."""
    ctx.with_role(Role.ADMIN)
    now = ctx.now()
    slugs = [board.slug async for board in board_store.all_boards(ctx.table)]
    since = await gather_or_cancel((_unsettled_since(ctx, slug) for slug in slugs), _BOARDS_AT_ONCE)
    jobs = await job_store.read_unfinished_jobs(ctx.table)
    due = [job.due_at or job.started_at for job in jobs if job.is_due(now)]
    return Lag(_seconds(now, [moment for moment in since if moment]), _seconds(now, due))


async def _unsettled_since(ctx: Context, slug: str) -> datetime | None:
    """The moment from which a board may have unsettled votes; None if it has none."""
    found = await board_store.read_board_with_marks(ctx.table, slug)
    if found is None or not found.marks:
        return None
    first = min(mark.since for mark in found.marks)
    return max(first, found.board.settled_at or first)


def _seconds(now: datetime, moments: list[datetime]) -> float:
    return max([0.0, *((now - moment).total_seconds() for moment in moments)])
