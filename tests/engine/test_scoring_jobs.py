"""Scoring and unscoring as jobs: answered in time, visible to editors, completed by any process, one at a time."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import pytest

from datastore.changes.occurrences import OCCURRENCE, Kind
from datastore.dynamo import Table, open_table
from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import Job, JobState
from datastore.jobs.leases import Leases
from datastore.pickem import standings
from datastore.pickem.events import EVENT, read_events
from datastore.refusals import Unavailable
from resolvers.jobs.running import JobRunner, Work
from resolvers.pickem.cache import PickemCache
from resolvers.pickem.scoring import SCORE_EVENT, UNSCORE_EVENT, begin_scoring, begin_unscoring, event_job
from resolvers.requests.context import Role, Services
from resolvers.values.node_ids import node_id, parse_node_key
from server.audit import find_suspects
from tests.client import Client, serving
from tests.command import ROOT, environment, on_table
from tests.fault.faults import Fault
from tests.fault.proxy import Proxy
from tests.intercepted import Send, intercepted
from tests.jobs import JOB_QUERY, SECRET, WRITES, completed, ended, work_on
from tests.leagues import STANDINGS as LEAGUE_STANDINGS
from tests.leagues import create as create_league
from tests.queries import EVENT_BY_ID, UPDATE_EVENT
from tests.queries import SCORE_EVENT as SCORE
from tests.queries import UNSCORE_EVENT as UNSCORE
from tests.season import EventEditor, submit
from tests.waiting import until, until_refused

MEMBERS = 30


async def decided_event(client: Client, members: int = MEMBERS) -> tuple[EventEditor, str, str]:
    """An editor, a locked event of which everybody has picked the winner, and its match."""
    editor = EventEditor(client)
    event, [match] = await editor.card(10)
    await asyncio.gather(*(submit(client.member(f"m{number}"), event, [(match, 0)]) for number in range(members)))
    await editor.lock(event)
    await editor.result(match, 0)
    return editor, event, match


@asynccontextmanager
async def held_up(client: Client, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Jobs stop before their last steps until the block ends; an answer's time ends when its job has stopped."""
    runner, is_held, go_on = client.services.get(JobRunner), asyncio.Event(), asyncio.Event()
    recount, finish = standings.recount_season, runner.finish

    async def hold(*given: Any) -> Any:
        is_held.set()
        await go_on.wait()
        return await recount(*given)

    async def finish_or_hold(job: Job, work: Work) -> Job:
        ended = finish(job, work)
        while not ended.done():
            if is_held.is_set():
                ended.cancel()
                raise TimeoutError
            await asyncio.sleep(0.01)
        return await ended

    with monkeypatch.context() as patched:
        patched.setattr("datastore.pickem.standings.recount_season", hold)
        patched.setattr(runner, "finish", finish_or_hold)
        yield
        go_on.set()


async def points(client: Client) -> list[int]:
    await client.caught_up("the standings list every member")
    return [row["points"] for row in (await EventEditor(client).standings(first=100))["nodes"]]


async def test_nobody_is_first_while_the_first_event_of_a_season_is_scored(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no rank before everybody was counted: neither on the season's page nor on a member's or a league's."""
    editor, event, _ = await decided_event(client, 3)
    mine = '{ viewer { standing(season: "2026") { rank } standings { rank } } }'
    league = (await create_league(client.member("m0")))["id"]
    async with held_up(client, monkeypatch):
        await editor.client.ask(SCORE, input={"event": event})
        await client.caught_up("the standings list every member")
        shown = await editor.standings()
        assert (shown["nodes"], shown["totalCount"]) == ([], 0)
        assert await client.member("m0").ask(mine) == {"standing": None, "standings": []}
        rows = (await client.member("m0").ask(LEAGUE_STANDINGS, id=league))["standings"]
        assert (rows["nodes"], rows["totalCount"]) == ([], 0)
    await until(partial(_has_rank, client, mine), "the scoring has ended")
    assert len((await client.member("m0").ask(LEAGUE_STANDINGS, id=league))["standings"]["nodes"]) == 1


async def test_ranks_of_an_event_that_is_scored_again_during_a_read_are_the_newer_ones(one_client: Client) -> None:
    """However often: each scoring deletes the ranks of the one before."""
    editor, event, match = await decided_event(one_client, 2)
    await editor.score(event)
    services, key = one_client.services, parse_node_key("Event", event)
    before = (await read_events(services.table, [key]))[key]
    winners, queries = iter((1, 0)), count()

    async def score_again() -> None:
        await editor.result(match, next(winners))
        await editor.score(event)

    async def scored_before_the_second(_: str, send: Send) -> Any:
        if next(queries) == 1:
            await score_again()
        return await send()

    await score_again()
    async with open_table(services.table.name, url=one_client.settings.dynamodb_url) as table:
        reading = Services(table, services.seal, services.policy)
        with intercepted(table, ("query",), scored_before_the_second):
            ranks = await reading.get(PickemCache).event_ranks(before)
        assert ranks is not None
        assert next(queries) == 3
        await reading.close()


async def test_ranks_that_are_gone_at_each_read_are_unavailable_with_a_time_to_ask_again(one_client: Client) -> None:
    """Be it of a season or of an event."""
    services, cache = one_client.services, one_client.services.get(PickemCache)
    _, event, _ = await decided_event(one_client, 0)
    [locked] = (await read_events(services.table, [parse_node_key("Event", event)])).values()
    scored = replace(locked, scored=7)
    await services.table.write(EVENT.put(scored))
    await services.table.write(standings.SEASON.put(standings.Season("2026", published=7)))
    for read in (partial(cache.season_ranks, "2026"), partial(cache.event_ranks, scored)):
        refused = await until_refused(Unavailable, read)
        assert refused.retry_after == 1.0


async def _has_rank(client: Client, query: str) -> bool:
    viewer = await client.member("m0").ask(query)
    return bool(viewer["standing"] == {"rank": 1} and viewer["standings"] == [{"rank": 1}])


async def assert_sound(client: Client) -> None:
    await client.caught_up("standings and ranks are those of the stored predictions")
    assert await find_suspects(client.services, "pickem") == []


async def recorded(table: Table, kind: Kind) -> int:
    return len([one async for one in table.scan(OCCURRENCE, consistent=True) if one.kind == kind])


async def test_an_answer_comes_while_the_job_goes_on(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the number so far; the event keeps its state until the job is done, and whoever asks again finds the job."""
    editor, event, _ = await decided_event(client)
    for mutation, before, after, given in (
        (SCORE, "LOCKED", "SCORED", [10] * MEMBERS),
        (SCORE, "SCORED", "SCORED", [10] * MEMBERS),
        (UNSCORE, "SCORED", "LOCKED", []),
    ):
        async with held_up(client, monkeypatch):
            first = await editor.client.ask(mutation, input={"event": event, "idempotencyKey": after + before})
            assert first["event"]["state"] == before
            assert first.get("predictionsScored", MEMBERS) == MEMBERS
            second = await client.member("other", Role.EDITOR).ask(mutation, input={"event": event})
            assert second["job"] == first["job"]
            contrary = UNSCORE if mutation == SCORE else SCORE
            refused = await editor.client.ask(contrary, input={"event": event})
            assert refused["code"] == "CONFLICT"
            assert refused["message"].endswith("when that is done.")
            cancelled = await editor.client.ask(UPDATE_EVENT, input={"event": event, "cancelled": True})
            assert cancelled["code"] == "CONFLICT"
            shown = await client.ask(EVENT_BY_ID, id=event)
            assert shown["state"] == before
            if (mutation, before) != (SCORE, "SCORED"):
                assert {row["points"] for row in shown["predictions"]["nodes"]} == {None}
            assert (await editor.client.ask(JOB_QUERY, id=first["job"]["id"]))["state"] == "RUNNING"
        job = await ended(editor.client, first["job"]["id"])
        assert (job["state"], job["done"], job["total"]) == ("DONE", MEMBERS, MEMBERS)
        assert (await client.ask(EVENT_BY_ID, id=event))["state"] == after
        assert await points(client) == given
        again = await editor.client.ask(mutation, input={"event": event, "idempotencyKey": after + before})
        assert again == first
        await assert_sound(client)
    assert [await recorded(client.services.table, kind) for kind in (Kind.EVENT_SCORED, Kind.EVENT_UNSCORED)] == [1, 1]


async def test_a_scoring_is_shown_to_editors(one_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Besides who began it and admins; moderators, members and visitors see nothing."""
    editor, event, _ = await decided_event(one_client, 1)
    async with held_up(one_client, monkeypatch):
        job = (await editor.client.ask(SCORE, input={"event": event}))["job"]
        for viewer, sees in (
            (editor.client, True),
            (one_client.member("other", Role.EDITOR), True),
            (one_client.member("root", Role.ADMIN), True),
            (one_client.member("mia", Role.MODERATOR), False),
            (one_client.member("m0"), False),
            (one_client, False),
        ):
            assert (await viewer.ask(JOB_QUERY, id=job["id"]) is not None) is sees
    await ended(editor.client, job["id"])


async def test_a_correction_is_scored_by_the_job_that_was_begun_before_it(one_client: Client) -> None:
    """Its process is gone: scoring again finds the job, and completes it with the corrected result."""
    one_client.services.leases.patience = 0.5
    editor, event, match = await decided_event(one_client, 3)
    services = one_client.services
    services.get(JobRunner).start({})  # this process goes on with none by itself
    key = parse_node_key("Event", event)
    begun = await begin_scoring(services, event_job(services, SCORE_EVENT, key, actor=None), confirm_missing=False)
    assert await Leases(services.table).acquire(begun)
    await editor.result(match, 1)
    runner = services.get(JobRunner)
    runner.answer_seconds, usual = 0.0, runner.answer_seconds
    answer = await editor.client.ask(SCORE, input={"event": event})
    runner.answer_seconds = usual
    assert (answer["job"]["id"], answer["event"]["state"]) == (node_id("Job", begun.id), "LOCKED")
    assert (await ended(editor.client, answer["job"]["id"]))["state"] == "DONE"
    assert await points(one_client) == [0] * 3
    await assert_sound(one_client)


@pytest.mark.parametrize("lost", ["TransactWriteItems", "UpdateItem"])
async def test_an_unclear_answer_begins_one_job(one_client: Client, lost: str) -> None:
    """The engine's answers to the first writes are lost: what they did is found, and recorded once."""
    editor, event, _ = await decided_event(one_client, 3)
    async with Proxy(one_client.settings.dynamodb_url) as proxy:
        settings = one_client.settings.model_copy(update={"dynamodb_url": proxy.url})
        async with serving(settings) as unlucky:
            asks = EventEditor(unlucky)
            for mutation in (SCORE, UNSCORE):
                proxy.inject(Fault.RESET_AFTER, lost)
                answer = await asks.client.ask(mutation, input={"event": event})
                assert answer["job"] is None
    assert (await one_client.ask(EVENT_BY_ID, id=event))["state"] == "LOCKED"
    table = one_client.services.table
    assert sorted([one.kind async for one in job_store.all_jobs(table)]) == [SCORE_EVENT, UNSCORE_EVENT]
    assert [await recorded(table, kind) for kind in (Kind.EVENT_SCORED, Kind.EVENT_UNSCORED)] == [1, 1]
    assert await editor.score(event) == 3
    await assert_sound(one_client)


@pytest.mark.parametrize("kind", [SCORE_EVENT, UNSCORE_EVENT])
@pytest.mark.parametrize("writes", [3, *(pytest.param(writes, marks=pytest.mark.soak) for writes in (1, 6))])
async def test_a_job_that_is_killed_is_completed_by_another_process(one_client: Client, kind: str, writes: int) -> None:
    """`ringside jobs --resume` is killed after so many writes; the end is that of a job that ran once."""
    editor, event, _ = await decided_event(one_client, 60)
    services, settings = one_client.services, one_client.settings
    if kind == UNSCORE_EVENT:
        await editor.score(event)
    services.get(JobRunner).start({})  # this process works on none
    job = await begun_as(services, kind, parse_node_key("Event", event))
    async with Proxy(settings.dynamodb_url) as proxy:
        variables = environment(**on_table(proxy.url, settings.table, RINGSIDE_SECRETS=SECRET))
        process = subprocess.Popen([sys.executable, "-m", "server", "jobs", "--resume"], cwd=ROOT, env=variables)
        while process.poll() is None and sum(proxy.requests[operation] for operation in WRITES) < writes:
            await asyncio.sleep(0.001)
        assert process.poll() is None
        process.kill()
        await asyncio.to_thread(process.wait)
    other = Services(services.table, services.seal, services.policy, clock=services.clock)
    ended_job = await completed(other, job)
    await other.close()
    assert (ended_job.state, ended_job.done) == (JobState.DONE, 60)
    is_scored = kind == SCORE_EVENT
    assert await points(one_client) == ([10] * 60 if is_scored else [])
    assert (await one_client.ask(EVENT_BY_ID, id=event))["state"] == ("SCORED" if is_scored else "LOCKED")
    assert await recorded(services.table, Kind.EVENT_SCORED if is_scored else Kind.EVENT_UNSCORED) == 1
    await assert_sound(one_client)


async def test_a_request_that_is_repeated_after_its_process_has_ended_takes_no_points_back_twice(
    one_client: Client,
) -> None:
    """Its job has ended and the event is scored again by then. The repeat is told of the first job."""
    editor, event, _ = await decided_event(one_client, 3)
    await editor.score(event)
    runner, given = one_client.services.get(JobRunner), {"event": event, "idempotencyKey": "once"}
    runner.start({})  # nobody but the request works on its job
    finish = runner.finish
    is_begun, never = asyncio.Event(), asyncio.get_running_loop().create_future()

    def begin_only() -> asyncio.Future[Job]:
        is_begun.set()
        return never

    runner.finish = lambda *_: begin_only()  # type: ignore[method-assign] # the process ends as soon as the job is stored
    asking = asyncio.ensure_future(editor.client.ask(UNSCORE, input=given))
    await is_begun.wait()
    asking.cancel()
    runner.finish = finish  # type: ignore[method-assign]
    [unscoring] = [one async for one in job_store.all_jobs(one_client.services.table) if one.is_running]
    other = Services(one_client.services.table, one_client.services.seal, one_client.services.policy)
    assert (await work_on(other, unscoring)).state == JobState.DONE
    await other.close()
    assert await editor.score(event) == 3
    again = await editor.client.ask(UNSCORE, input=given)
    assert again["job"]["id"] == node_id("Job", unscoring.id)
    assert (await one_client.ask(EVENT_BY_ID, id=event))["state"] == "SCORED"
    assert await points(one_client) == [10] * 3
    await assert_sound(one_client)


async def begun_as(services: Services, kind: str, event: str) -> Job:
    new = event_job(services, kind, event, actor=None)
    if kind == SCORE_EVENT:
        return await begin_scoring(services, new, confirm_missing=False)
    return await begin_unscoring(services, new)
