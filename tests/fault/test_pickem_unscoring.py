"""Taking points back when processes are killed, and beside scorers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Table
from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import Job, JobState, read_unfinished_jobs
from datastore.pickem import events
from datastore.pickem.member_items import take_out
from datastore.pickem.predictions import Share, read_prediction, seed_event
from datastore.pickem.standings import Credit, all_predictions, all_standings, credit
from datastore.refusals import Conflict
from resolvers.jobs.running import JobRun, JobRunner
from resolvers.pickem.scoring import (
    SCORE_EVENT,
    UNSCORE_EVENT,
    begin_scoring,
    begin_unscoring,
    count_again,
    event_job,
    score,
    unscore_event_job,
)
from resolvers.requests.context import Services
from server.audit import find_suspects
from server.settings import Settings
from tests import bulk_predictions
from tests.intercepted import Send
from tests.jobs import work_on
from tests.killed import Killed, killed_at

MEMBERS = 6


async def sums(services: Services) -> dict[str, tuple[int, int, int]]:
    standings = all_standings(services.table)
    return {one.user: (one.points, one.correct, one.events_played) async for one in standings}


async def seed(table: Table, name: str) -> events.Event:
    event, matches = bulk_predictions.locked_event("2026", name)
    await seed_event(table, event, matches, bulk_predictions.generate_predictions(event, MEMBERS))
    return event


async def unscore(services: Services, event: str) -> Job:
    """The job of taking points back, once it has ended."""
    begun = await begin_unscoring(services, event_job(services, UNSCORE_EVENT, event, actor=None))
    return await services.get(JobRunner).ended(begun, unscore_event_job)


async def read(services: Services, event: str) -> events.Event:
    return (await events.read_events(services.table, [event]))[event]


@pytest.mark.soak
async def test_an_unscoring_may_be_killed_at_every_write(one_table: Table, settings: Settings) -> None:
    """Another process completes it: all is as before, and scored again, all is as after one scoring."""
    services = Services(one_table, settings.seal())
    services.leases.patience = 0.0
    event = await seed(one_table, "Killed")
    other = await seed(one_table, "Other")
    await score(services, other.id)
    before = await sums(services)
    await score(services, event.id)
    after = await sums(services)
    for write in range(100):
        killed = False
        with killed_at(one_table, write):
            try:
                await unscore(services, event.id)
            except Killed:
                killed = True
        resumed = Services(one_table, settings.seal())
        resumed.leases.patience = 0.0
        for job in await read_unfinished_jobs(one_table):
            assert (await work_on(resumed, job)).state is JobState.DONE
        # Its last write may have been the one that was applied: then a repeat finds nothing left to do.
        assert (await unscore(resumed, event.id)).state is JobState.DONE
        stored = await read(services, event.id)
        assert (stored.state, stored.may_have_points) == ("LOCKED", False)
        assert await sums(services) == before
        assert await find_suspects(services, "pickem") == []
        assert (await score(services, event.id)).done == MEMBERS
        assert await sums(services) == after
        await resumed.close()
        if not killed:
            break
    assert write >= 7
    assert await find_suspects(services, "pickem") == []


async def test_a_scorer_that_was_held_up_adds_nothing_afterwards(one_table: Table, settings: Settings) -> None:
    """It read the predictions before they lost their points, or reads them again: its generation is older."""
    services = Services(one_table, settings.seal())
    event = await seed(one_table, "Held up")
    stored = [prediction async for prediction in all_predictions(one_table, event.id)]
    await score(services, event.id)
    await unscore(services, event.id)
    late = [Credit(prediction, Share(event.generation, 50, 3), event.starts_at) for prediction in stored]
    await credit(one_table, event.season, late)
    assert await sums(services) == {}
    assert await find_suspects(services, "pickem") == []


async def begun(services: Services, name: str) -> events.Event:
    """An event that another process scores."""
    event = await seed(services.table, name)
    scoring = event.changed(job="of-another-process")
    await events.change_event(services.table, event, scoring, UnitOfWork.unkeyed(services.clock()), scoring)
    return scoring


async def give_points(table: Table, event: events.Event, user: str) -> None:
    prediction = await read_prediction(table, event.id, user)
    assert prediction is not None
    await credit(table, event.season, [Credit(prediction, Share(event.generation, 50, 3), event.starts_at)])


@contextmanager
def given_points_between_reads(table: Table, event: events.Event, user: str) -> Iterator[None]:
    """A scorer gives a member points just before their prediction is read, and after all reads that began with it."""
    others, given = 0, False

    async def scored_before(request: dict[str, Any], send: Send) -> Any:
        nonlocal others, given
        if given or f"EVENT#{event.id}#" not in str(request):
            others += 1
            answer = await send()
            others -= 1
            return answer
        given = True
        await asyncio.sleep(0)  # reads that were begun together with this one are under way then
        while others:
            await asyncio.sleep(0.001)
        await give_points(table, event, user)
        return await send()

    client = table.client
    originals = {name: getattr(client, name) for name in ("get_item", "batch_get_item")}
    for name, original in originals.items():
        setattr(client, name, lambda original=original, **request: scored_before(request, partial(original, **request)))
    yield
    for name, original in originals.items():
        setattr(client, name, original)
    assert given


async def test_a_share_that_a_scorer_adds_meanwhile_is_taken_back(one_table: Table, settings: Settings) -> None:
    """The prediction shows the share, so the standing must be one that has it already."""
    services = Services(one_table, settings.seal())
    event = await begun(services, "Scored meanwhile")
    first, second = [prediction async for prediction in all_predictions(one_table, event.id)][:2]
    unscoring = event.unscoring("of-another-process")
    nothing = Share.taken_back(unscoring.taken_back)
    await give_points(one_table, event, second.user)  # so the transaction of both fails
    with given_points_between_reads(one_table, event, first.user):
        credits_ = [Credit(prediction, nothing, event.starts_at) for prediction in (first, second)]
        await credit(one_table, event.season, credits_)
    assert await sums(services) == {}


async def test_a_removed_prediction_takes_the_points_that_a_scorer_adds_meanwhile(
    one_table: Table, settings: Settings
) -> None:
    """They are in the standing that it is taken out of."""
    services = Services(one_table, settings.seal())
    event = await begun(services, "Removed meanwhile")
    [member, *_] = [prediction.user async for prediction in all_predictions(one_table, event.id)]
    with given_points_between_reads(one_table, event, member):
        await take_out(one_table, member, event, UnitOfWork.unkeyed(services.clock()))
    assert await sums(services) == {}


async def test_a_standing_that_was_made_again_is_not_taken_for_the_old_one(
    one_table: Table, settings: Settings
) -> None:
    """While one event is scored, another loses its points and a third gives some: only what counts is added up."""
    services, client = Services(one_table, settings.seal()), one_table.client
    scored, unscored, third = [await seed(one_table, name) for name in ("Scored", "Unscored", "Third")]
    [user, *_] = [prediction.user async for prediction in all_predictions(one_table, scored.id)]
    original = client.transact_write_items

    async def give(event: events.Event, share: Share) -> None:
        prediction = await read_prediction(one_table, event.id, user)
        assert prediction is not None
        await credit(one_table, "2026", [Credit(prediction, share, event.starts_at)])

    async def made_again_first(**request: object) -> object:
        client.transact_write_items = original
        await give(unscored, Share(unscored.generation + 1, 0, 0, counts=False))
        assert await sums(services) == {}
        await give(third, Share(third.generation, 20, 2))
        return await original(**request)

    await give(unscored, Share(unscored.generation, 50, 3))
    client.transact_write_items = made_again_first
    await give(scored, Share(scored.generation, 7, 1))
    assert await sums(services) == {user: (27, 3, 2)}


@contextmanager
def between(services: Services, change: Callable[[], Awaitable[object]]) -> Iterator[None]:
    """Something happens before the first transaction that gives points or takes them back."""
    client = services.table.client
    original, changed = client.transact_write_items, False

    async def change_first(**request: object) -> object:
        nonlocal changed
        if not changed and "STANDINGS#" in str(request):
            changed = True
            await change()
        return await original(**request)

    client.transact_write_items = change_first
    yield
    client.transact_write_items = original
    assert changed


async def test_one_job_at_a_time_works_on_an_event(one_table: Table, settings: Settings) -> None:
    """While it is scored it is not unscored, nor the other way around; asking for the same again finds the job."""
    services = Services(one_table, settings.seal())
    event = await seed(one_table, "Under way")

    async def ask_for_both() -> None:
        current = await read(services, event.id)
        assert current.job is not None
        for kind, begin in ((SCORE_EVENT, begin_again), (UNSCORE_EVENT, begin_unscoring)):
            under_way = await job_store.read_job(one_table, current.job)
            assert under_way is not None
            if under_way.kind == kind:
                assert (await begin(services, event_job(services, kind, event.id, actor=None))).id == current.job
                continue
            with pytest.raises(Conflict, match="when that is done"):
                await begin(services, event_job(services, kind, event.id, actor=None))
        assert await read(services, event.id) == current

    with between(services, ask_for_both):
        await score(services, event.id)
    with between(services, ask_for_both):
        await unscore(services, event.id)
    assert await sums(services) == {}
    assert await find_suspects(services, "pickem") == []


async def begin_again(services: Services, new: Job) -> Job:
    return await begin_scoring(services, new, confirm_missing=True)


@pytest.mark.parametrize("is_unscored", [False, True])
async def test_counting_again_beside_a_job_changes_what_it_reads(
    one_table: Table, settings: Settings, *, is_unscored: bool
) -> None:
    """A prediction is removed while points are given or taken back: the job that does it starts again."""
    services = Services(one_table, settings.seal())
    event = await seed(one_table, "Counted again")
    [member, *_] = [prediction.user async for prediction in all_predictions(one_table, event.id)]
    counting = list[asyncio.Task[None]]()
    await score(services, event.id)

    async def remove() -> None:
        await take_out(one_table, member, event, UnitOfWork.unkeyed(services.clock()))
        counting.append(asyncio.create_task(count_again(services, event.id, services.unit())))
        version = (await read(services, event.id)).version
        while (await read(services, event.id)).version == version:
            await asyncio.sleep(0.001)

    if is_unscored:
        with between(services, remove):
            await unscore(services, event.id)
    else:
        stored = await read(services, event.id)
        corrected = stored.changed(generation=stored.generation + 1)  # otherwise no points would change
        await events.change_event(one_table, stored, corrected, services.unit(), corrected)
        with between(services, remove):
            assert (await score(services, event.id)).done == MEMBERS - 1
    await asyncio.gather(*counting)
    assert member not in await sums(services)
    assert len(await sums(services)) == (0 if is_unscored else MEMBERS - 1)
    assert (await read(services, event.id)).state == ("LOCKED" if is_unscored else "SCORED")
    assert await find_suspects(services, "pickem") == []


@pytest.mark.parametrize(
    ("kind", "end", "state"),
    [(SCORE_EVENT, "failed", "LOCKED"), (UNSCORE_EVENT, "forgotten", "SCORED"), (SCORE_EVENT, "killed", "SCORED")],
)
async def test_counting_again_gives_points_that_are_being_given_and_no_others(
    one_table: Table, settings: Settings, kind: str, end: str, state: str
) -> None:
    """A job that failed, also one that was forgotten since, is for an editor to begin again."""
    services = Services(one_table, settings.seal())
    event = await seed(one_table, "Failed")
    if kind == UNSCORE_EVENT:
        await score(services, event.id)
    begin = begin_again if kind == SCORE_EVENT else begin_unscoring
    job = await begin(services, event_job(services, kind, event.id, actor=None))
    if end != "killed":
        assert (await work_on(services, job, {kind: fail})).state is JobState.FAILED
    if end == "forgotten":
        await one_table.write(job_store.JOB.delete(job_store.JOB.item_key(job)))
    await count_again(services, event.id, services.unit())
    stored = await read(services, event.id)
    assert (stored.state, bool(stored.scored)) == (state, end == "killed")
    assert len(await sums(services)) == (0 if end == "failed" else MEMBERS)


async def fail(_: Services, __: JobRun) -> str:
    raise Conflict
