"""Erasing a member while events are scored and points are taken back: no total is wrong afterwards."""

from __future__ import annotations

import pytest

from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import Job, JobState
from datastore.people.profiles import member_shard
from datastore.pickem.predictions import PREDICTION, Prediction
from datastore.pickem.standings import Histogram, read_seasons, store_histogram
from resolvers.jobs.running import JobRunner
from resolvers.people.member_data import Contributions, Part, TakingBack
from resolvers.pickem import member_data, scoring
from resolvers.requests.context import Services
from resolvers.whole import erasing
from resolvers.whole.erasing import TAKE_BACK
from resolvers.whole.jobs import JOB_KINDS
from server.audit import breaches
from tests.client import Client
from tests.erasing import (
    MEMBER,
    begin_erasure,
    bury,
    carried_out,
)
from tests.jobs import run_of, work_on
from tests.killed import Killed
from tests.season import EventEditor, submit

OTHERS = ("ada", "bob", "cleo")
EVENT_RANKS = "query ($id: ID!) { event(id: $id) { predictions(first: 100) { nodes { rank points } } } }"


async def test_a_correction_waits_for_its_scoring_when_a_member_is_made_anonymous(
    one_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No total changes: the corrected result takes effect when an editor scores the event again."""
    monkeypatch.setattr(erasing, "INDEX_SECONDS", 0.0)
    editor, services = EventEditor(one_client), one_client.services
    event, [match] = await editor.card(10)
    for user in (MEMBER, *OTHERS):
        await submit(one_client.member(user), event, [(match, 0)])
    await editor.lock(event)
    await editor.result(match, 0)
    await editor.score(event)
    await editor.result(match, 1)
    services.get(JobRunner)._kinds = {}  # this process works on none
    assert await carried_out(services, await begin_erasure(services, Contributions.ANONYMISE), write=10_000)
    assert [row["points"] for row in (await editor.standings())["nodes"]] == [10, 10, 10, 10]
    await editor.score(event)
    assert [row["points"] for row in (await editor.standings())["nodes"]] == [0, 0, 0, 0]
    assert [breach async for breach in breaches(services)] == []


async def test_made_anonymous_while_a_corrected_event_is_scored_again(
    one_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scorer has read their prediction under their name; what it became has the new points all the same."""
    monkeypatch.setattr(erasing, "INDEX_SECONDS", 0.0)
    editor, services = EventEditor(one_client), one_client.services
    event, [match] = await editor.card(10)
    for user in (MEMBER, *OTHERS):
        await submit(one_client.member(user), event, [(match, 0)])
    await editor.lock(event)
    await editor.result(match, 0)
    await editor.score(event)
    await editor.result(match, 1)
    services.get(JobRunner)._kinds = {}  # this process works on none
    job = await begin_erasure(services, Contributions.ANONYMISE)
    transact, erased = services.table.client.transact_write_items, list[str]()

    async def erase_first(**request: object) -> object:
        if not erased and f"USER#{MEMBER}" in str(request):
            erased.append(MEMBER)
            assert await carried_out(services, job, write=10_000)
        return await transact(**request)

    monkeypatch.setattr(services.table.client, "transact_write_items", erase_first)
    await editor.score(event)
    assert erased
    assert [row["points"] for row in (await editor.standings())["nodes"]] == [0, 0, 0, 0]
    assert [breach async for breach in breaches(services)] == []


@pytest.mark.parametrize("is_unscored", [False, True])
async def test_made_anonymous_while_a_scored_event_is_passed_over_again(
    one_client: Client, monkeypatch: pytest.MonkeyPatch, *, is_unscored: bool
) -> None:
    """The pass has read past where their prediction goes and not come to where it was; it notices what it missed."""
    monkeypatch.setattr(erasing, "INDEX_SECONDS", 0.0)
    monkeypatch.setattr(scoring, "PREDICTIONS_AT_ONCE", 4)  # one of each shard
    editor, services = EventEditor(one_client), one_client.services
    event, [match] = await editor.card(10)
    neighbour = _of_same_shard("neighbour")
    for user in (MEMBER, neighbour, *OTHERS):
        await submit(one_client.member(user), event, [(match, 0)])
    await editor.lock(event)
    await editor.result(match, 0)
    await editor.score(event)
    services.get(JobRunner)._kinds = {}  # this process works on none
    job = await begin_erasure(services, Contributions.ANONYMISE)
    query, erased = services.table.client.query, list[str]()

    async def erase_after(**request: object) -> object:
        answer = await query(**request)
        if not erased and neighbour in str(answer) and "EVENT#" in str(request):
            erased.append(MEMBER)
            await _move_and_be_killed(services, job)
        return answer

    monkeypatch.setattr(services.table.client, "query", erase_after)
    await (editor.unscore(event) if is_unscored else editor.score(event))
    assert erased
    assert await carried_out(services, job, write=10_000)
    standings = (await editor.standings())["nodes"]
    assert [row["points"] for row in standings] == ([] if is_unscored else [10] * 5)
    assert [breach async for breach in breaches(services)] == []


@pytest.mark.parametrize("is_unscored", [False, True])
async def test_two_made_anonymous_beside_one_pass_do_not_cancel_out(
    one_client: Client, monkeypatch: pytest.MonkeyPatch, *, is_unscored: bool
) -> None:
    """The pass sees one's prediction twice and misses the other's: it has seen as many as there are, but not all."""
    monkeypatch.setattr(erasing, "INDEX_SECONDS", 0.0)
    monkeypatch.setattr(scoring, "PREDICTIONS_AT_ONCE", 4)  # one of each shard
    editor, services = EventEditor(one_client), one_client.services
    event, [match] = await editor.card(10)
    first, neighbour = (_of_same_shard(name) for name in ("ada", "neighbour"))  # before and after `former-...`
    for user in (first, neighbour, MEMBER):
        await submit(one_client.member(user), event, [(match, 1 if user == first else 0)])
    await editor.lock(event)
    await editor.result(match, 0)
    await editor.score(event)
    services.get(JobRunner)._kinds = {}  # this process works on none
    moving = {first: (first, await begin_erasure(services, Contributions.ANONYMISE, first))}
    moving[neighbour] = MEMBER, await begin_erasure(services, Contributions.ANONYMISE)
    jobs, query = [job for _, job in moving.values()], services.table.client.query

    async def move_before(**request: object) -> object:
        """Once the pass goes on after a prediction, with which it is done."""
        for last in [name for name in moving if f"USER#{name}" in str(request) and "EVENT#" in str(request)]:
            member, job = moving.pop(last)
            await _move_and_be_killed(services, job, member)
        return await query(**request)

    monkeypatch.setattr(services.table.client, "query", move_before)
    await (editor.unscore(event) if is_unscored else editor.score(event))
    assert not moving
    assert all([await carried_out(services, job, write=10_000) for job in jobs])
    standings = (await editor.standings())["nodes"]
    assert [row["points"] for row in standings] == ([] if is_unscored else [10, 10, 0])
    assert [breach async for breach in breaches(services)] == []


def _of_same_shard(name: str) -> str:
    """A member in the same shard as the erased one."""
    return next(one for number in range(200) if member_shard(one := f"{name}-{number}") == member_shard(MEMBER))


async def test_made_anonymous_while_their_points_are_taken_back(
    one_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pass has read their prediction and does not find it where it was: it looks where it is now."""
    monkeypatch.setattr(erasing, "INDEX_SECONDS", 0.0)
    editor, services = EventEditor(one_client), one_client.services
    event = await _scored_event(editor, one_client)
    services.get(JobRunner)._kinds = {}  # this process works on none
    job = await begin_erasure(services, Contributions.ANONYMISE)
    transact, moved = services.table.client.transact_write_items, list[str]()

    async def move_first(**request: object) -> object:
        if not moved and f"USER#{MEMBER}" in str(request):
            moved.append(MEMBER)
            await _move_and_be_killed(services, job)
        return await transact(**request)

    monkeypatch.setattr(services.table.client, "transact_write_items", move_first)
    await editor.unscore(event)
    assert moved
    assert await carried_out(services, job, write=10_000)
    assert (await editor.standings())["nodes"] == []
    assert [breach async for breach in breaches(services)] == []


async def _move_and_be_killed(services: Services, job: Job, member: str = MEMBER) -> None:
    """Works on the erasure until the member's predictions have moved, and no further."""

    async def predictions() -> list[Prediction]:
        return [one async for one in services.table.scan(PREDICTION, consistent=True) if one.user == member]

    stored, write = await predictions(), 0
    while stored == await predictions():
        assert not await carried_out(services, job, write := write + 1)


async def test_a_count_that_saw_them_twice_is_not_the_last(one_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A season that was counted while their standing moved is counted again."""
    monkeypatch.setattr(erasing, "INDEX_SECONDS", 0.0)
    editor, services = EventEditor(one_client), one_client.services
    event, [match] = await editor.card(10)
    await submit(one_client.member(MEMBER), event, [(match, 0)])
    await editor.lock(event)
    await editor.result(match, 0)
    await editor.score(event)
    season = (await read_seasons(services.table, ["2026"]))["2026"]
    await store_histogram(services.table, "STANDINGS:2026", season.published, Histogram.of({10: 2}))
    services.get(JobRunner)._kinds = {}  # this process works on none
    assert await carried_out(services, await begin_erasure(services, Contributions.ANONYMISE), write=10_000)
    assert [breach async for breach in breaches(services)] == []


@pytest.mark.parametrize("contributions", list(Contributions))
@pytest.mark.parametrize("erased", [MEMBER, "mia"])
async def test_erased_while_a_moderator_takes_back_their_predictions(
    one_client: Client, contributions: Contributions, erased: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job ends with the member or the moderator, and the event counts its predictions again all the same."""
    monkeypatch.setattr(erasing, "INDEX_SECONDS", 0.0)
    editor, services = EventEditor(one_client), one_client.services
    event = await _scored_event(editor, one_client)
    services.get(JobRunner)._kinds = {}  # this process works on none
    now = services.clock()
    wanted = TakingBack(MEMBER, None, frozenset({Part.PREDICTIONS}), "User:mia").as_input()
    interrupted = job_store.new_job(services.ids.next(now), TAKE_BACK, "somebody", now, wanted)
    run = await run_of(services, await job_store.begin_job(services.table, interrupted))
    with monkeypatch.context() as patch:
        patch.setattr(member_data, "count_again", _killed)
        with pytest.raises(Killed):
            await JOB_KINDS[TAKE_BACK](services, run)
    job = await begin_erasure(services, contributions, erased)
    assert await carried_out(services, job, write=10_000)
    assert await _ranks(one_client, event) == [(1, 10)] * 3
    assert [breach async for breach in breaches(services)] == []


@pytest.mark.parametrize("erased", [MEMBER, "mia"])
async def test_taking_back_counts_again_whoever_is_erased_meanwhile(
    one_client: Client, erased: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it is refused before the erasure finds the job."""
    editor, services = EventEditor(one_client), one_client.services
    event = await _scored_event(editor, one_client)
    second = await _scored_event(editor, one_client)
    services.get(JobRunner)._kinds = {}  # this process works on none
    now = services.clock()
    wanted = TakingBack(MEMBER, None, frozenset({Part.PREDICTIONS}), "User:mia").as_input()
    job = job_store.new_job(services.ids.next(now), TAKE_BACK, "somebody", now, wanted)
    transact, removed = services.table.client.transact_write_items, list[str]()

    async def bury_after(**request: object) -> object:
        answer = await transact(**request)
        if not removed and f"USER#{MEMBER}" in str(request):
            removed.append(MEMBER)
            await bury(services, erased)
        return answer

    monkeypatch.setattr(services.table.client, "transact_write_items", bury_after)
    job = await job_store.begin_job(services.table, job)
    ended_job = await work_on(services, job)
    assert ended_job.state is JobState.FAILED
    assert removed
    assert sorted([await _ranks(one_client, one) for one in (event, second)]) == [[(1, 10)] * 3, [(1, 10)] * 4]
    assert [breach async for breach in breaches(services)] == []


async def _scored_event(editor: EventEditor, client: Client) -> str:
    """With 10 points for everyone."""
    event, [match] = await editor.card(10)
    for user in (MEMBER, *OTHERS):
        await submit(client.member(user), event, [(match, 0)])
    await editor.lock(event)
    await editor.result(match, 0)
    await editor.score(event)
    return event


async def _ranks(client: Client, event: str) -> list[tuple[int, int]]:
    found = await client.ask(EVENT_RANKS, id=event)
    return [(row["rank"], row["points"]) for row in found["predictions"]["nodes"]]


async def _killed(*_: object) -> None:
    raise Killed
