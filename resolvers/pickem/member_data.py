"""Taking back and erasing a member's predictions, and erasing their places in leagues.

Events that had given points for a removed prediction are scored again. The job remembers them before the first
prediction is removed, so it counts them again after an interruption too.
"""

from datetime import datetime

import orjson

from datastore.changes.unit_of_work import UnitOfWork
from datastore.pickem.events import every_event
from datastore.pickem.member_items import MEMBER_ITEMS, clear_standing, leave_every_league
from resolvers.jobs.running import JobRun
from resolvers.people.member_data import Erasure, MemberData, Part, TakingBack
from resolvers.pickem.scoring import count_again, remove_predictions
from resolvers.requests.context import Services

# ── member data ──


async def _take_back(services: Services, run: JobRun, wanted: TakingBack, unit: UnitOfWork) -> None:
    await _remove(services, run, wanted.user, wanted.since, unit)


async def _erase(erasure: Erasure) -> None:
    services, user = erasure.services, erasure.user
    if not erasure.anonymise:
        await _remove(services, erasure.run, user, None, erasure.unit)
        for season in {event.season for event in await every_event(erasure.table)}:
            await clear_standing(erasure.table, user, season)
    await leave_every_league(erasure.table, user, erasure.unit)


MEMBER_DATA = MemberData(MEMBER_ITEMS, frozenset({Part.PREDICTIONS}), _take_back, _erase)


async def _remove(services: Services, run: JobRun, user: str, since: datetime | None, unit: UnitOfWork) -> None:
    affected: list[str] = orjson.loads(run.place or "[]")

    async def announce(events: list[str]) -> None:
        affected.extend(event for event in events if event not in affected)
        run.place = orjson.dumps(affected).decode()
        await run.report()

    run.done += await remove_predictions(services, user, since, unit, announce)
    for event_id in affected:
        await count_again(services, event_id, unit)
