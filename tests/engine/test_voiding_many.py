"""Voiding several voters as a job, and restoring what it voided."""

import asyncio
from datetime import timedelta

import pytest

from datastore.dynamo import Table
from resolvers.jobs.running import JobRunner
from resolvers.requests.context import Role, utc_now
from resolvers.values.node_ids import node_id
from resolvers.whole.jobs import JOB_KINDS
from tests.client import Client, serving
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.erasing import ERASE, admin
from tests.intercepted import beforehand
from tests.jobs import ended
from tests.queries import LEADERBOARD, VOID_VOTER, mutation
from tests.voting import add_contenders, assert_consistent, editor, settle_votes, vote

VOID = mutation("voidVoters", "VotersVoided", "job { id }")
RESTORE = mutation("restoreVoters", "VotersRestored", "job { id }")
BOARD = """{ board { votes } leaderboard { nodes { rank wins losses ties contender { name } } }
  matchups { nodes { left { name } right { name } leftWins rightWins ties } } }"""
JOURNAL = "{ journal(first: 100) { nodes { kind actor object } } }"


async def void(client: Client, *voters: str) -> str:
    answer = await editor(client).ask(VOID, input={"board": "main", "voters": list(voters)})
    return str(answer["job"]["id"])


async def restore(client: Client, job: str) -> str:
    return str((await editor(client).ask(RESTORE, input={"job": job}))["job"]["id"])


async def voted(client: Client) -> None:
    """A board on which four voters have voted, each of them four times."""
    await add_contenders(client, "a", "b", "c", "d")
    for name in ("ada", "bob", "cleo", "eve"):
        for verdict in ("LEFT", "TIE", "RIGHT", "SKIP"):
            await vote(client.member(name), verdict)
    await settle_votes(client)


async def test_restored_votes_count_as_before(client: Client) -> None:
    """Every total, rank and record; the job's editor stands in the journal, for both."""
    await voted(client)
    before = await client.ask(BOARD)
    job = await void(client, "bob", node_id("User", "eve"), "nobody")
    assert (await ended(editor(client), job))["message"] == "Votes voided: 6."
    await settle_votes(client)
    assert (await client.ask(BOARD))["board"]["votes"] == before["board"]["votes"] - 6
    await assert_consistent(client)
    again = await restore(client, job)
    assert (await ended(editor(client), again))["message"] == "Votes restored: 6."
    await settle_votes(client)
    assert await client.ask(BOARD) == before
    await assert_consistent(client)
    await client.caught_up("the journal lists what was done")
    told = (await client.member("mod", Role.MODERATOR).ask(JOURNAL))["nodes"]
    kinds = [(each["kind"], each["actor"]) for each in told if each["kind"].startswith("voters.")]
    assert kinds == [("voters.restored", node_id("User", "editor")), ("voters.voided", node_id("User", "editor"))]


async def test_a_second_call_gets_the_same_job(client: Client) -> None:
    """At once or later, in whichever order the voters are named; once one has voted again, there is a new job."""
    await voted(client)
    jobs = await asyncio.gather(*(void(client, *voters) for voters in (("ada", "bob"), ("bob", "ada")) * 3))
    assert len(set(jobs)) == 1
    await ended(editor(client), jobs[0])
    assert await void(client, "ada", "bob") == jobs[0]
    alone = await void(client, "ada")
    assert alone != jobs[0]
    await ended(editor(client), alone)  # it would void what is cast while it goes on
    await vote(client.member("ada"))
    later = await void(client, "bob", "ada")
    assert later != jobs[0]
    assert (await ended(editor(client), later))["message"] == "Votes voided: 1."
    restorings = await asyncio.gather(*(restore(client, jobs[0]) for _ in range(4)))
    assert len(set(restorings)) == 1
    assert (await ended(editor(client), restorings[0]))["message"] == "Votes restored: 6."
    assert await restore(client, jobs[0]) == restorings[0]
    await ended(editor(client), await restore(client, later))
    after = await void(client, "ada", "bob")
    assert after not in (jobs[0], later)
    assert (await ended(editor(client), after))["message"] == "Votes voided: 7."
    await assert_consistent(client)


async def test_the_latest_of_many_voidings_is_the_one_that_is_found(client: Client) -> None:
    """However often the same voters were voided and restored before: a repeat begins no further job."""
    await voted(client)
    jobs: list[str] = []
    for _ in range(5):
        jobs.append(await void(client, "ada", "bob"))
        await ended(editor(client), jobs[-1])
        await ended(editor(client), await restore(client, jobs[-1]))
    latest = await void(client, "ada", "bob")
    assert latest not in jobs
    assert {await void(client, "bob", "ada") for _ in range(6)} == {latest}
    assert (await ended(editor(client), latest))["message"] == "Votes voided: 6."
    assert {await void(client, "bob", "ada") for _ in range(6)} == {latest}


async def test_only_what_the_job_has_voided_is_restored(client: Client) -> None:
    """Votes that an editor had voided before stay void; another voter's too."""
    await voted(client)
    await editor(client).ask(VOID_VOTER, input={"voter": "ada"})
    await vote(client.member("ada"))
    job = await void(client, "ada")
    assert (await ended(editor(client), job))["message"] == "Votes voided: 1."
    await editor(client).ask(VOID_VOTER, input={"voter": "bob"})
    assert (await ended(editor(client), await restore(client, job)))["message"] == "Votes restored: 1."
    await settle_votes(client)
    assert (await client.ask(BOARD))["board"]["votes"] == 7
    await assert_consistent(client)


async def test_who_is_voided_alone_afterwards_is_not_restored_with_the_others(client: Client) -> None:
    """Nor by a job that restores at the same time."""
    await voted(client)
    job = await void(client, "ada", "bob")
    await ended(editor(client), job)
    assert (await editor(client).ask(VOID_VOTER, input={"voter": "bob"}))["votesRemoved"] == 0
    assert (await ended(editor(client), await restore(client, job)))["message"] == "Votes restored: 3."
    again = await void(client, "ada")
    await ended(editor(client), again)
    restoring, _ = await asyncio.gather(restore(client, again), editor(client).ask(VOID_VOTER, input={"voter": "ada"}))
    await ended(editor(client), restoring)
    await settle_votes(client)
    assert (await client.ask(BOARD))["board"]["votes"] == 6
    await assert_consistent(client)


async def test_a_job_that_voids_the_same_votes_at_the_same_time_cannot_bring_them_back(client: Client) -> None:
    """A job voids them after an editor's request has read them, and before it voids them itself."""
    await voted(client)
    jobs: list[str] = []

    async def void_by_a_job() -> None:
        jobs.append(await void(client, "bob"))
        await ended(editor(client), jobs[0])

    with beforehand(client.services.table, void_by_a_job, about="VOTER#bob#main") as begun:
        await editor(client).ask(VOID_VOTER, input={"voter": "bob"})
    assert begun
    assert (await ended(editor(client), await restore(client, jobs[0])))["message"] == "Votes restored: 0."
    await assert_consistent(client)
    assert (await client.ask(BOARD))["board"]["votes"] == 9


@pytest.mark.parametrize(("voidings", "others"), [(1, []), (2, []), (1, ["bob"])])
async def test_what_is_being_restored_is_not_voided_at_the_same_time(
    client: Client, voidings: int, others: list[str]
) -> None:
    """The voiding would pass over what is void still, and the restoring would bring it back afterwards."""
    await voted(client)
    job = await void(client, "ada")
    await ended(editor(client), job)
    for _ in range(voidings - 1):
        await vote(client.member("ada"))
        await ended(editor(client), await void(client, "ada"))
    client.services.get(JobRunner).start({})  # nobody works on what begins now
    restoring = await restore(client, job)
    refused = await editor(client).ask(VOID, input={"board": "main", "voters": ["ada", *others]})
    assert (refused["code"], refused["path"]) == ("CONFLICT", ["input", "voters"])
    client.services.get(JobRunner).start(JOB_KINDS)
    await ended(editor(client), restoring)
    voided = f"Votes voided: {3 * (1 + len(others))}."
    assert (await ended(editor(client), await void(client, "ada", *others)))["message"] == voided


async def test_what_is_being_voided_with_others_is_not_restored_at_the_same_time(client: Client) -> None:
    """The restoring of one voter would bring back what the voiding of two has passed over."""
    await voted(client)
    job = await void(client, "ada")
    await ended(editor(client), job)
    client.services.get(JobRunner).start({})  # nobody works on what begins now
    voiding = await void(client, "ada", "bob")
    refused = await editor(client).ask(RESTORE, input={"job": job})
    assert (refused["code"], refused["path"]) == ("CONFLICT", ["input", "job"])
    client.services.get(JobRunner).start(JOB_KINDS)
    await ended(editor(client), voiding)
    assert (await ended(editor(client), await restore(client, job)))["message"] == "Votes restored: 3."


async def test_a_repeat_that_was_answered_with_an_earlier_job_voids_nothing_cast_since(client: Client) -> None:
    """The key's receipt names the job that was found, although this request began none."""
    await voted(client)
    job = await void(client, "ada")
    await ended(editor(client), job)
    given = {"board": "main", "voters": ["ada"], "idempotencyKey": "once"}
    assert (await editor(client).ask(VOID, input=given))["job"]["id"] == job
    await vote(client.member("ada"))
    assert (await editor(client).ask(VOID, input=given))["job"]["id"] == job
    other = await editor(client).ask(VOID, input={**given, "voters": ["bob"]})
    assert other["code"] == "IDEMPOTENCY_MISMATCH"


async def test_a_voiding_is_restorable_for_a_day(client: Client) -> None:
    """Then it is as unknown as a job of another kind."""
    await voted(client)
    job = await void(client, "ada")
    await ended(editor(client), job)
    client.services.clock = lambda: utc_now() + timedelta(days=1)
    assert await editor(client).code(RESTORE, input={"job": job}) == "NOT_FOUND"
    client.services.clock = utc_now
    restoring = await restore(client, job)
    await ended(editor(client), restoring)
    for wrong in (restoring, node_id("Job", "01K9ZD3Q7W0000000000000000")):
        assert await editor(client).code(RESTORE, input={"job": wrong}) == "NOT_FOUND"


async def test_wrong_voters_are_refused(client: Client) -> None:
    """None, too many, and what is no voter's id; the job is for editors."""
    await voted(client)
    for voters, at in (([], []), ([f"v{number}" for number in range(101)], []), (["a", "a#b"], ["1"])):
        refused = await editor(client).ask(VOID, input={"board": "main", "voters": voters})
        assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "voters", *at])
    assert await editor(client).code(VOID, input={"board": "none", "voters": ["ada"]}) == "NOT_FOUND"
    assert await client.code(VOID, input={"board": "main", "voters": ["ada"]}) == "NOT_SIGNED_IN"
    assert await client.member("ada").code(VOID, input={"board": "main", "voters": ["ada"]}) == "NOT_ALLOWED"
    job = await void(client, "ada")
    other = client.member("another", Role.EDITOR)
    assert (await ended(other, job))["state"] == "DONE"
    assert await client.member("mod", Role.MODERATOR).ask("query ($id: ID!) { job(id: $id) { id } }", id=job) is None


async def test_the_votes_of_an_erased_voter_stay_gone(client: Client) -> None:
    """Their votes are gone; the others' are restored."""
    await voted(client)
    job = await void(client, "ada", "bob")
    await ended(editor(client), job)
    erased = await admin(client).ask(ERASE, input={"user": node_id("User", "ada"), "contributions": "REMOVE"})
    await ended(admin(client), erased["job"]["id"])
    assert (await ended(editor(client), await restore(client, job)))["message"] == "Votes restored: 3."
    await assert_consistent(client)


async def test_voiding_and_restoring_of_two_processes_leave_exact_counts(
    default_engine: RunningEngine, one_table: Table
) -> None:
    """While others vote; whoever comes last decides what counts."""
    settings = settings_for(default_engine, one_table.name)
    async with serving(settings) as first, serving(settings) as second:
        await voted(first)
        jobs = await asyncio.gather(void(first, "ada", "bob"), void(second, "bob", "cleo"), vote(first.member("eve")))
        await asyncio.gather(*(ended(editor(first), job) for job in jobs[:2]))
        restoring = await asyncio.gather(restore(second, jobs[0]), restore(first, jobs[1]), vote(second.member("dan")))
        await asyncio.gather(*(ended(editor(first), job) for job in restoring[:2]))
        await settle_votes(first)
        assert (await first.ask(BOARD))["board"]["votes"] == 14
        assert (await first.ask(LEADERBOARD))["totalCount"] == 4
        await assert_consistent(first)
