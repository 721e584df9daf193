"""Jobs: begun by a request, worked on by one process, taken up by another, and kept for 30 days after they ended."""

import asyncio
import subprocess
import sys
from datetime import timedelta

import pytest

from datastore.changes.unit_of_work import RECEIPT
from datastore.dynamo import EngineUnavailable, Rejected, Table, iso
from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import Job, JobState
from datastore.jobs.leases import LeaseLost, Leases
from datastore.refusals import Conflict
from resolvers.jobs.running import JobRun, JobRunner
from resolvers.requests.context import Role, Services
from resolvers.values.node_ids import node_id
from resolvers.voting.settling import BoardCache
from tests.client import Client, pages
from tests.command import ROOT, environment, on_table, ringside_process
from tests.fault.proxy import Proxy
from tests.jobs import JOB_QUERY, SECRET, WRITES, completed, ended, work_on
from tests.queries import BOARD_COUNTS, VOID_VOTER
from tests.voting import add_contenders, assert_consistent, editor, vote
from tests.waiting import LONGEST, until

VOID_AS_JOB = VOID_VOTER.replace("votesRemoved", "votesRemoved job { id }")


async def begun(services: Services, kind: str = "TEST", **given: str) -> Job:
    now = services.clock()
    return await services.table.put_once(job_store.JOB, Job(services.ids.next(now), kind, "somebody", now, input=given))


def runner_of(services: Services) -> tuple[JobRunner, Services]:
    """A runner as of another process."""
    other = Services(services.table, services.seal, services.policy, clock=services.clock)
    other.leases.lasting = LONGEST
    return other.get(JobRunner), other


async def test_voiding_for_which_a_request_has_no_time_goes_on(client: Client) -> None:
    """The answer counts what is voided so far and names the job; a repeat answers the same."""
    await add_contenders(client, "a", "b", "c", "d")
    ada = client.member("ada")
    for _ in range(6):
        await vote(ada)
    runner, admin = client.services.get(JobRunner), editor(client)
    runner.answer_seconds, usual = 0.0, runner.answer_seconds
    wanted = {"voter": "ada", "idempotencyKey": "once"}
    answer = await admin.ask(VOID_AS_JOB, input=wanted)
    job = await ended(admin, answer["job"]["id"])
    assert (job["kind"], job["state"], job["done"]) == ("VOID_VOTER", "DONE", 6)
    runner.answer_seconds = usual
    assert (await client.ask(BOARD_COUNTS))["votes"] == 0
    assert await admin.ask(VOID_AS_JOB, input=wanted) == answer
    receipts = [receipt async for receipt in client.services.table.scan(RECEIPT, consistent=True)]
    assert ["ada" in receipt.answer for receipt in receipts] == [False]  # it would outlive the erasure of the voter
    assert await admin.ask(VOID_AS_JOB, input={"voter": "ada"}) == {"votesRemoved": 0, "job": None}
    await assert_consistent(client)


async def test_a_job_is_shown_to_who_began_it_to_editors_and_to_admins(client: Client) -> None:
    """Others see nothing, and neither does anybody for the id of a job that is not in this table."""
    await add_contenders(client, "a", "b")
    await vote(client.member("ada"))
    starter = client.member("eve", Role.EDITOR)
    runner = client.services.get(JobRunner)
    runner.answer_seconds, usual = 0.0, runner.answer_seconds
    job = (await starter.ask(VOID_AS_JOB, input={"voter": "ada"}))["job"]
    for viewer, sees in (
        (starter, True),
        (client.member("root", Role.ADMIN), True),
        (client.member("other", Role.EDITOR), True),
        (client.member("mod", Role.MODERATOR), False),
        (client, False),
    ):
        assert (await viewer.ask(JOB_QUERY, id=job["id"]) is not None) is sees
    foreign = node_id("Job", "01JD0000000000000000000000")
    for strange in (foreign, node_id("Job", "a#b")):
        assert await starter.ask(JOB_QUERY, id=strange) is None
    assert await starter.code(JOB_QUERY, id=node_id("Board", "main")) == "BAD_USER_INPUT"
    await ended(starter, job["id"])
    runner.answer_seconds = usual


async def test_a_job_may_be_the_first_to_use_a_part_while_its_process_ends(one_client: Client) -> None:
    """Another part still does what it has promised; then the job is left to other processes at once."""
    closing, used = asyncio.Event(), asyncio.Event()

    class Promising:
        def __init__(self, _: Services) -> None:
            """It needs none."""

        async def close(self) -> None:
            closing.set()
            await used.wait()

    async def work(own: Services, _: JobRun) -> str:
        await closing.wait()
        own.get(BoardCache)
        used.set()
        await asyncio.Event().wait()
        return "never"

    shared = one_client.services
    job, ending = await begun(shared), Services(shared.table, shared.seal)
    ending.get(Promising)
    ending.get(JobRunner).start({"TEST": work})
    await until(lambda: _holder(shared, job), "the job is worked on")
    await ending.close()
    assert await _holder(shared, job) is None


async def _holder(services: Services, job: Job) -> str | None:
    """The process that works on a job."""
    stored = await job_store.read_job(services.table, job.id)
    assert stored is not None
    return stored.holder


async def test_a_job_whose_process_is_gone_is_taken_up(one_client: Client) -> None:
    """By a process that has seen no sign of life for some time by its own clock, and not before."""
    services = one_client.services
    lost = await Leases(services.table).acquire(await begun(services))
    assert lost is not None
    ran = asyncio.Event()

    async def work(_: Services, run: JobRun) -> str:
        run.done += 1
        ran.set()
        return "done"

    runner, other = runner_of(services)
    other.leases.patience = 0.3
    runner._kinds = {"TEST": work}
    await runner.take_up()
    assert not ran.is_set()
    await asyncio.sleep(0.4)
    await lost.save(done=7)  # it is alive after all
    await runner.take_up()
    assert not ran.is_set()
    await asyncio.sleep(0.4)
    await runner.take_up()
    await ran.wait()
    await until(lambda: _is(services.table, lost.record.id, JobState.DONE), "it is done")
    job = await job_store.read_job(services.table, lost.record.id)
    assert job is not None
    assert (job.done, job.message, job.holder, job.input) == (8, "done", None, {})
    with pytest.raises(LeaseLost):
        await lost.save(done=9)
    await other.close()


async def _is(table: Table, id_: str, state: JobState) -> bool:
    job = await job_store.read_job(table, id_)
    return job is not None and job.state is state


async def test_a_process_that_stops_leaves_its_jobs_to_others(one_client: Client) -> None:
    """With its place, and at once: the next process that looks goes on there."""
    services, places = one_client.services, list[str | None]()

    async def endless(_: Services, run: JobRun) -> str:
        places.append(run.place)
        run.place, run.done = "half", 5
        await asyncio.sleep(0 if len(places) > 1 else 1000)
        return "done"

    job = await begun(services)
    (first, services_1), (second, services_2) = runner_of(services), runner_of(services)
    first._kinds = second._kinds = {"TEST": endless}
    await first.take_up()
    await until(lambda: places, "it has begun")
    await services_1.close()
    await second.take_up()
    await until(lambda: _is(services.table, job.id, JobState.DONE), "it is done")
    assert places == [None, "half"]
    await services_2.close()


async def test_one_process_works_on_a_job_at_a_time(one_client: Client) -> None:
    """Ten that find it at the same moment: one acquires it."""
    services, runs = one_client.services, list[str]()

    async def work(_: Services, run: JobRun) -> str:
        runs.append(run.job.id)
        await asyncio.sleep(0.2)
        return "done"

    job = await begun(services)
    others = [runner_of(services) for _ in range(10)]
    for runner, _ in others:
        runner._kinds = {"TEST": work}
    await asyncio.gather(*(runner.take_up() for runner, _ in others))
    await until(lambda: _is(services.table, job.id, JobState.DONE), "it is done")
    assert runs == [job.id]
    for _, other in others:
        await other.close()


@pytest.mark.parametrize(
    ("failure", "state", "message"),
    [
        (Conflict("There is nothing to take back."), JobState.FAILED, "There is nothing to take back."),
        (ZeroDivisionError(), JobState.FAILED, "An internal error, which the log describes."),
        (Rejected("too large"), JobState.FAILED, "An internal error, which the log describes."),
        (Rejected("not allowed", "AccessDeniedException"), JobState.RUNNING, None),
        (EngineUnavailable("gone"), JobState.RUNNING, None),
    ],
)
async def test_a_job_ends_as_its_work_does(
    one_client: Client, failure: Exception, state: JobState, message: str | None
) -> None:
    """A failure of the table leaves it to be taken up again, with what it has done, however long that takes."""
    services = one_client.services

    async def work(_: Services, run: JobRun) -> str:
        run.done = 3
        raise failure

    _, other = runner_of(services)
    job = await work_on(other, await begun(services, secret="ada"), {"TEST": work})
    assert (job.state, job.message, job.done, job.holder) == (state, message, 3, None)
    assert bool(job.input) == (state is JobState.RUNNING)
    assert job.expires == (None if job.finished_at is None else job.finished_at + timedelta(days=30))
    stored = [item async for item in services.table.scan_items() if item["pk"]["S"] == f"JOB#{job.id}"]
    assert ["ttl" in item for item in stored] == [state is not JobState.RUNNING]
    await other.close()


@pytest.mark.parametrize("writes", [1, 5, *(pytest.param(writes, marks=pytest.mark.soak) for writes in (2, 9))])
async def test_a_job_that_is_killed_is_completed_by_another_process(one_client: Client, writes: int) -> None:
    """`ringside jobs --resume` is killed after so many writes; then the rest is voided, each vote once."""
    await add_contenders(one_client, *"abcdefghi")
    services, settings = one_client.services, one_client.settings
    for _ in range(36):
        await vote(one_client.member("ada"))
    services.get(JobRunner).start({})  # this process works on none
    job = await begun(services, "VOID_VOTER", board="main", voter="ada", same_address="", actor="")
    async with Proxy(settings.dynamodb_url) as proxy:
        variables = environment(**on_table(proxy.url, settings.table, RINGSIDE_SECRETS=SECRET))
        process = subprocess.Popen([sys.executable, "-m", "server", "jobs", "--resume"], cwd=ROOT, env=variables)
        while process.poll() is None and sum(proxy.requests[operation] for operation in WRITES) < writes:
            await asyncio.sleep(0.001)
        assert process.poll() is None
        process.kill()
        await asyncio.to_thread(process.wait)
    _, other = runner_of(services)
    assert (await completed(other, job)).state is JobState.DONE
    assert (await one_client.ask(BOARD_COUNTS))["votes"] == 0
    await assert_consistent(one_client)
    await other.close()


async def test_the_command_lists_jobs_and_finishes_them(one_client: Client) -> None:
    """A line each, which is whole however narrow the terminal. It takes up at once what nobody has claimed."""
    await add_contenders(one_client, "a", "b")
    await vote(one_client.member("ada"))
    one_client.services.get(JobRunner).start({})
    job = await begun(one_client.services, "VOID_VOTER", board="main", voter="ada", same_address="", actor="")
    settings = one_client.settings
    variables = on_table(settings.dynamodb_url, settings.table, RINGSIDE_SECRETS=SECRET, COLUMNS="40")
    listed = await asyncio.to_thread(ringside_process, "jobs", **variables)
    (line,) = listed.stdout.splitlines()
    assert line == f"{node_id('Job', job.id)}  VOID_VOTER  RUNNING  0 done  started {iso(job.started_at)}"
    resumed = await asyncio.to_thread(ringside_process, "jobs", "--resume", **variables)
    assert resumed.returncode == 0, resumed.stderr
    assert "Votes voided: 1." in resumed.stdout
    assert (await one_client.ask(BOARD_COUNTS))["votes"] == 0


async def test_the_command_leaves_a_job_to_the_release_that_knows_its_kind(one_client: Client) -> None:
    """One that a newer release has begun, whose operator has gone back to this one."""
    await begun(one_client.services, "OF_A_NEWER_RELEASE")
    settings = one_client.settings
    variables = on_table(settings.dynamodb_url, settings.table, RINGSIDE_SECRETS=SECRET)
    resumed = await asyncio.to_thread(ringside_process, "jobs", "--resume", **variables)
    assert resumed.returncode == 0, resumed.stderr
    assert "OF_A_NEWER_RELEASE  RUNNING" in resumed.stdout


JOBS = """query ($state: JobState, $first: Int, $after: String) { jobs(state: $state, first: $first, after: $after) {
  nodes { id kind state } pageInfo { hasNextPage endCursor } } }"""


async def test_admins_list_jobs_newest_first_all_or_those_of_a_state(client: Client) -> None:
    services, admin = client.services, client.member("root", Role.ADMIN)
    waiting = [await begun(services, f"TEST_{number}") for number in range(3)]
    done = [await work_on(services, await begun(services, "DONE"), {"DONE": _nothing}) for _ in range(3)]
    await client.caught_up("the index shows all jobs in their states")
    newest_first = [node_id("Job", job.id) for job in reversed([*waiting, *done])]
    assert [job["id"] for job in await pages(admin, JOBS)] == newest_first
    assert [job["kind"] for job in await pages(admin, JOBS, state="RUNNING")] == ["TEST_2", "TEST_1", "TEST_0"]
    assert [job["state"] for job in await pages(admin, JOBS, state="DONE")] == ["DONE"] * 3
    assert await pages(admin, JOBS, state="FAILED") == []
    assert await client.member("ada", Role.EDITOR).code(JOBS) == "NOT_ALLOWED"


async def _nothing(_: Services, __: JobRun) -> None:
    return None
