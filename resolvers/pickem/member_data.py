"""Taking back and erasing a member's predictions, and erasing their places in leagues.

Events that had given points for a removed prediction are scored again. The job remembers them before the first
prediction is removed, so it counts them again after an interruption too, and if it ends because somebody was erased.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from datastore.changes.unit_of_work import MemberErased, UnitOfWork
from datastore.pickem.events import Event, every_event, read_events
from datastore.pickem.member_items import MEMBER_ITEMS, clear_standing, leave_every_league, predictions_in, take_out
from datastore.pickem.standings import recount_season
from resolvers.jobs.running import JobRun
from resolvers.people.member_data import (
    Erasure,
    MemberData,
    Part,
    TakingBack,
)
from resolvers.pickem.scoring import count_again, remove_predictions
from resolvers.requests.context import Services

# ── member data ──


async def _take_back(services: Services, run: JobRun, wanted: TakingBack, unit: UnitOfWork) -> None:
    async def announce(affected: list[str]) -> None:
        await _announce(run, dict.fromkeys(affected))

    try:
        run.done += await remove_predictions(services, wanted.user, wanted.since, unit, announce)
        await _count_again(services, run, unit)
    except MemberErased:  # the member, or who wanted it: what was removed until then counts no more all the same
        await _count_again(services, run, services.unit())
        raise


async def _erase(erasure: Erasure) -> None:
    services, user = erasure.services, erasure.user
    events = await every_event(erasure.table)

    async def announce(affected: list[str]) -> None:
        await _announce(erasure.run, dict.fromkeys(affected))

    if erasure.alias is None:
        erasure.run.done += await remove_predictions(services, user, None, erasure.silent, announce)
    else:
        await _move_predictions(erasure, events, erasure.alias)
    await _count_again(services, erasure.run, erasure.silent)
    for season in {event.season for event in events}:
        await clear_standing(erasure.table, user, season)
    await leave_every_league(erasure.table, user, erasure.told)


MEMBER_DATA = MemberData(MEMBER_ITEMS, frozenset({Part.PREDICTIONS}), _take_back, _erase)


async def _move_predictions(erasure: Erasure, events: Sequence[Event], alias: str) -> None:
    table, run, user = erasure.table, erasure.run, erasure.user
    await _announce(run, {event.id: event.scored or 0 async for event, _ in predictions_in(table, user, events)})
    affected = [event for event in events if event.id in _announced(run)]
    for season in sorted({event.season for event in affected}):
        of_season = [event for event in affected if event.season == season]
        run.done += await take_out(table, user, of_season, erasure.silent, alias)
        await recount_season(table, season)  # a count that began before may have seen the standing twice


# ── the events to count again ──


def _announced(run: JobRun) -> dict[str, int | None]:
    """By event. One whose prediction was moved has a generation, and is counted again only if it was scored since."""
    announced: dict[str, int | None] = orjson.loads(run.place or "{}")
    return announced


async def _announce(run: JobRun, events: Mapping[str, int | None]) -> None:
    run.place = orjson.dumps({**events, **_announced(run)}).decode()
    await run.report()


async def _count_again(services: Services, run: JobRun, unit: UnitOfWork) -> None:
    for event_id, generation in _announced(run).items():
        if generation is None or await _was_scored(services, event_id, generation):
            await count_again(services, event_id, unit)


async def _was_scored(services: Services, event_id: str, generation: int) -> bool:
    """Whether a scoring ended while the event's prediction was moved, and so saw it twice or not at all.

    One that is under way notices by itself. A corrected result that nobody has scored yet waits for its scoring.
    """
    event = (await read_events(services.table, [event_id])).get(event_id)
    return event is not None and event.scored == event.generation != generation
