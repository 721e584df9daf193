"""What tables of access patterns say that a pattern costs, where it reads something before it writes."""

from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from typing import Any

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Table
from datastore.dynamo.budgets import metered
from datastore.pickem import member_items as of_pickem
from datastore.pickem.events import Event, create_event, read_events, read_matches
from datastore.pickem.predictions import Prediction, Share, Submission, submit_prediction
from datastore.pickem.standings import Credit, credit

NOW = datetime(2026, 5, 5, 12, tzinfo=UTC)
UNIT = UnitOfWork.unkeyed(NOW)


async def calls(work: Awaitable[Any]) -> int:
    """How many calls of the engine something takes."""
    with metered() as spent:
        await work
    return spent.calls


async def _scored(table: Table, *seasons: str) -> list[Event]:
    """An event of each season, with the points of one member."""
    for season in seasons:
        event = Event(f"E{season}", "Event", season, NOW + timedelta(hours=1), NOW)
        await create_event(table, event, [], UNIT)
        prediction = Prediction(event.id, "ada", {}, NOW, NOW, event.starts_at, season)
        submission = Submission(prediction, None, event, await read_matches(table, event.id))
        await submit_prediction(table, submission, lambda: NOW, UNIT, None)
        await credit(table, season, [Credit(prediction, Share(1, 10, 1), event.starts_at)])
    return list((await read_events(table, [f"E{season}" for season in seasons])).values())


async def test_a_members_standings_of_all_seasons_are_one_batch(one_table: Table) -> None:
    """A file of three seasons takes as many calls as of one."""

    async def read() -> int:
        found: list[Any] = []

        async def records() -> None:
            found.extend([record async for _, record in of_pickem.MEMBER_ITEMS.read(one_table, "ada")])

        count = await calls(records())
        assert len(found) == 2 * len(seasons)
        return count

    seasons = ["2024"]
    await _scored(one_table, *seasons)
    of_one = await read()
    await _scored(one_table, "2025", "2026")
    seasons += ["2025", "2026"]
    assert await read() == of_one
