"""Erasing a member while indexes are far behind: what they do not show is erased by a later job."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import JOB, Job, JobState
from resolvers.jobs.running import JobRunner
from resolvers.people.member_data import ERASE_MEMBER_AGAIN, Contributions
from resolvers.requests.context import utc_now
from resolvers.whole import erasing
from tests.engines import RunningEngine
from tests.erasing import ERASE, MEMBER, NODE, admin, items_naming, leave_traces
from tests.jobs import ended
from tests.lagging import Lag
from tests.lagging.service import lagging_services
from tests.two_worlds import Site

NEVER = Lag(mean=1e6, longest=1e6, stale=0.0)


@pytest.mark.parametrize("contributions", list(Contributions))
async def test_what_no_index_showed_is_erased_by_a_later_job(
    default_engine: RunningEngine,
    table_name: str,
    tmp_path: Path,
    contributions: Contributions,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Reports, lists, receipts and occurrences; any process does it once it is due, and then forgets the member."""
    monkeypatch.setattr(erasing, "INDEX_SECONDS", 0.0)
    async with lagging_services(default_engine, tmp_path, table_name, lag=NEVER) as (_, [client]):
        site, services = Site(client), client.services
        await site.prepare()
        await client.caught_up("the comments' list is shown")
        await site.contribute("ada", 0)
        await site.contribute(MEMBER, 4)
        await leave_traces(site)
        job = (await admin(client).ask(ERASE, input={"user": NODE, "contributions": contributions}))["job"]
        assert (await ended(admin(client), job["id"]))["state"] == "DONE"
        [again] = [one async for one in services.table.scan(JOB, consistent=True) if one.is_running]
        assert again.kind == ERASE_MEMBER_AGAIN
        assert [text for text in await items_naming(services.table, MEMBER, "a secret word") if again.id not in text]

        async def read_again() -> Job:
            job = await job_store.read_job(services.table, again.id)
            assert job is not None
            return job

        await client.caught_up("every index shows what was written before")
        runner = services.get(JobRunner)
        await runner.take_up()
        assert await read_again() == again
        services.clock = lambda: utc_now() + timedelta(hours=2)
        await runner.take_up()
        async with asyncio.timeout(60):
            while (await read_again()).is_running:  # it looks until the indexes show nothing
                await client.caught_up("what is deleted is shown no more")
                await asyncio.sleep(0.05)
        assert (await read_again()).state is JobState.DONE
        found = await items_naming(services.table, MEMBER, "a secret word", but=("body", "text"))
        assert found == []
