"""Searching for suspects and voiding them while the process is killed, or voters are erased or suspended."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from signal import SIGKILL, SIGTERM
from typing import Any

import pytest

from datastore.dynamo import Table, iso
from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import Job, JobState
from resolvers.jobs.running import JobRunner
from resolvers.requests.context import Role, utc_now
from resolvers.values.node_ids import node_id, parse_node_id
from resolvers.voting.suspects import FIND_SUSPECTS
from resolvers.whole.erasing import ERASE_MEMBER
from resolvers.whole.jobs import JOB_KINDS
from tests.client import Client
from tests.erasing import ERASE, admin
from tests.intercepted import Send, beforehand, intercepted
from tests.jobs import ended, run_of, work_on
from tests.killed import Killed, killed_at
from tests.queries import BOARD_COUNTS, SUSPEND, VOID_VOTER, mutation
from tests.voting import add_contenders, assert_consistent, editor, vote

FIND = mutation("findSuspects", "SuspectsSought", "job { id }")
SUSPECTS = "{ suspects(atMost: 0.1) { votesSeen nodes { voter votes } } }"
VOID = mutation("voidVoters", "VotersVoided", "job { id }")
RESTORE = mutation("restoreVoters", "VotersRestored", "job { id }")
BOTS = ("x", "y", "z")
CLICKS = 16


async def clicked(client: Client) -> None:
    """A board on which everybody is a bot."""
    await add_contenders(client, *(f"contender {number}" for number in range(9)))
    for name in BOTS:
        for _ in range(CLICKS):
            await vote(client.member(name), "LEFT")


async def found(client: Client) -> dict[str, Any]:
    answer: dict[str, Any] = await editor(client).ask(SUSPECTS)
    return answer


async def erase(client: Client, name: str) -> None:
    erased = await admin(client).ask(ERASE, input={"user": node_id("User", name), "contributions": "REMOVE"})
    assert (await ended(admin(client), erased["job"]["id"]))["state"] == "DONE"


async def waiting(client: Client, operation: str, **given: Any) -> Job:
    """A job that this process does not work on by itself."""
    client.services.get(JobRunner).start({})
    answer = await editor(client).ask(operation, input=given)
    job = await job_store.read_job(client.services.table, parse_node_id(answer["job"]["id"])[1])
    assert job is not None
    return job


@contextmanager
def before_the_first(table: Table, name: str, act: Callable[[], Awaitable[Any]]) -> Iterator[None]:
    """Do something just before the first call of an operation."""
    acted = asyncio.Event()

    async def call(_: str, send: Send) -> Any:
        if not acted.is_set():
            acted.set()
            await act()
        return await send()

    with intercepted(table, (name,), call):
        yield
    assert acted.is_set()


# ── searches ──


@pytest.mark.parametrize("write", [0, 1])
async def test_a_search_that_was_killed_lists_each_suspect_once(one_client: Client, write: int) -> None:
    """At its n-th write; before the next process has repeated it, it shows nothing."""
    await clicked(one_client)
    job = await waiting(one_client, FIND, board="main")
    run = await run_of(one_client.services, job)
    with killed_at(one_client.services.table, write), pytest.raises(Killed):
        await JOB_KINDS[FIND_SUSPECTS](one_client.services, run)
    assert (await work_on(one_client.services, job)).state is JobState.DONE
    answer = await found(one_client)
    assert answer["votesSeen"] == CLICKS * len(BOTS)
    assert [each["votes"] for each in answer["nodes"]] == [CLICKS] * len(BOTS)
    assert len({each["voter"] for each in answer["nodes"]}) == len(BOTS)


async def test_a_search_that_is_repeated_lists_nobody_whom_only_its_first_run_found(one_client: Client) -> None:
    """Somebody's votes are voided between the two."""
    await clicked(one_client)
    job = await waiting(one_client, FIND, board="main")
    run = await run_of(one_client.services, job)
    with killed_at(one_client.services.table, 1), pytest.raises(Killed):
        await JOB_KINDS[FIND_SUSPECTS](one_client.services, run)
    await editor(one_client).ask(VOID_VOTER, input={"voter": BOTS[-1]})
    assert (await work_on(one_client.services, job)).state is JobState.DONE
    assert len((await found(one_client))["nodes"]) == len(BOTS) - 1


@pytest.mark.parametrize(
    ("killed_by", "at_once", "state"),
    [(SIGTERM, False, JobState.RUNNING), (SIGTERM, True, JobState.RUNNING), (SIGKILL, False, JobState.FAILED)],
    ids=["stopped", "stopped before it is told what to do", "out of memory"],
)
async def test_a_search_whose_own_process_was_killed_can_be_repeated(
    one_client: Client, monkeypatch: pytest.MonkeyPatch, *, killed_by: int, at_once: bool, state: JobState
) -> None:
    """Where the system stops everything, it goes on later; where memory ran out, it would again, so it has failed."""
    await clicked(one_client)
    job = await waiting(one_client, FIND, board="main")
    begin = asyncio.create_subprocess_exec

    async def begin_and_kill(*command: Any, **options: Any) -> asyncio.subprocess.Process:
        process = await begin(*command, **options)
        process.send_signal(killed_by)
        if at_once:
            await process.wait()
        return process

    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "create_subprocess_exec", begin_and_kill)
        assert (await work_on(one_client.services, job)).state is state
    assert (await found(one_client))["nodes"] == []
    again = await waiting(one_client, FIND, board="main")
    assert (again.id == job.id) == (state is JobState.RUNNING)
    assert (await work_on(one_client.services, again)).state is JobState.DONE
    assert len((await found(one_client))["nodes"]) == len(BOTS)


async def test_who_is_erased_while_a_search_stores_is_no_suspect(one_client: Client) -> None:
    """Their votes had been read before."""
    await clicked(one_client)
    with before_the_first(one_client.services.table, "batch_write_item", lambda: erase(one_client, "y")):
        answer = await editor(one_client).ask(FIND, input={"board": "main"})
        await ended(editor(one_client), answer["job"]["id"])
    assert len((await found(one_client))["nodes"]) == len(BOTS) - 1


async def test_who_is_suspended_while_a_search_stores_stays_a_suspect(one_client: Client) -> None:
    """A suspension leaves votes as they are; an editor can void them as anybody's."""
    await clicked(one_client)

    async def suspend() -> None:
        given = {
            "user": node_id("User", "y"),
            "until": iso(utc_now() + timedelta(days=1)),
            "reason": "Votes by script.",
        }
        assert (await one_client.member("mod", Role.MODERATOR).ask(SUSPEND, input=given))["user"]["suspension"]

    with before_the_first(one_client.services.table, "batch_write_item", suspend):
        answer = await editor(one_client).ask(FIND, input={"board": "main"})
        await ended(editor(one_client), answer["job"]["id"])
    voters = [each["voter"] for each in (await found(one_client))["nodes"]]
    assert len(voters) == len(BOTS)
    job = (await editor(one_client).ask(VOID, input={"board": "main", "voters": voters}))["job"]["id"]
    assert (await ended(editor(one_client), job))["message"] == f"Votes voided: {CLICKS * len(BOTS)}."
    await assert_consistent(one_client)


# ── voiding ──


@pytest.mark.parametrize("write", [0, 2])
async def test_a_voiding_and_a_restoring_that_were_killed_leave_exact_counts(one_client: Client, write: int) -> None:
    """Each at its n-th write, and repeated by the next process."""
    await clicked(one_client)
    services = one_client.services

    async def killed_and_repeated(job: Job) -> None:
        run = await run_of(services, job)
        with killed_at(services.table, write), pytest.raises(Killed):
            await JOB_KINDS[job.kind](services, run)
        assert (await work_on(services, job)).state is JobState.DONE
        await assert_consistent(one_client)

    voiding = await waiting(one_client, VOID, board="main", voters=["x", "y"])
    await killed_and_repeated(voiding)
    assert (await one_client.ask(BOARD_COUNTS))["votes"] == CLICKS
    await killed_and_repeated(await waiting(one_client, RESTORE, job=node_id("Job", voiding.id)))
    assert (await one_client.ask(BOARD_COUNTS))["votes"] == CLICKS * len(BOTS)


async def test_who_is_erased_while_a_voiding_runs_leaves_exact_counts(one_client: Client) -> None:
    """A restoring brings nothing of theirs back."""
    await clicked(one_client)
    job = await waiting(one_client, VOID, board="main", voters=["x", "y"])
    one_client.services.get(JobRunner).start({ERASE_MEMBER: JOB_KINDS[ERASE_MEMBER]})  # and voids nothing by itself
    # Not before a write of the settling of what was clicked, for which the erasure would wait.
    with beforehand(one_client.services.table, lambda: erase(one_client, "y"), about="VOTER#x#main") as erased:
        await work_on(one_client.services, job)
    assert erased
    one_client.services.get(JobRunner).start(JOB_KINDS)
    await assert_consistent(one_client)
    restoring = await editor(one_client).ask(RESTORE, input={"job": node_id("Job", job.id)})
    await ended(editor(one_client), restoring["job"]["id"])
    await assert_consistent(one_client)
    assert (await one_client.ask(BOARD_COUNTS))["votes"] == CLICKS * (len(BOTS) - 1)
