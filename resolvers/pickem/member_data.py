"""Taking back and erasing a member's predictions, and erasing their places in leagues.

Events that had given points for a removed prediction are scored again. The job remembers them before the first
prediction is removed, so it counts them again after an interruption too.
"""

import orjson

from datastore.changes.unit_of_work import UnitOfWork
from datastore.pickem.events import every_event
from datastore.pickem.member_items import MEMBER_ITEMS, clear_standing, leave_every_league, predictions_in, take_out
from resolvers.jobs.running import JobRun
from resolvers.people.member_data import Erasure, MemberData, Part, TakingBack
from resolvers.pickem.scoring import count_again
from resolvers.requests.context import Services


async def _take_back(services: Services, run: JobRun, wanted: TakingBack, unit: UnitOfWork) -> None:
    """Remove the predictions that were submitted since then."""
    affected: list[str] = orjson.loads(run.place or "[]")
    every = await every_event(services.table)
    found = [
        event
        async for event, prediction in predictions_in(services.table, wanted.user, every)
        if wanted.is_recent(prediction.submitted_at)
    ]
    affected.extend(event.id for event in found if event.id not in affected)
    run.place = orjson.dumps(affected).decode()
    await run.report()
    run.done += sum([await take_out(services.table, wanted.user, event, unit) for event in found])
    for event_id in affected:
        await count_again(services, event_id, unit)


async def _erase(erasure: Erasure) -> None:
    user = erasure.user
    if not erasure.anonymise:
        wanted = TakingBack(user, None, frozenset({Part.PREDICTIONS}), None)
        await _take_back(erasure.services, erasure.run, wanted, erasure.unit)
        for season in {event.season for event in await every_event(erasure.table)}:
            await clear_standing(erasure.table, user, season)
    await leave_every_league(erasure.table, user, erasure.unit)


MEMBER_DATA = MemberData(MEMBER_ITEMS, frozenset({Part.PREDICTIONS}), _take_back, _erase)
