"""Helpers for the tests of erasing: a member who leaves traces everywhere, the job, and what still names them."""

import asyncio
from datetime import timedelta

import orjson

from datastore.dynamo import Table
from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import Job
from datastore.people.identities import IdentityKey, erase_profile
from datastore.people.profiles import read_profile
from datastore.vocabulary.subscriptions import AddressClaim, note_claim
from datastore.voting.suspects import SUSPECT, Suspect
from resolvers.jobs.running import JobRunner
from resolvers.people.identities import Members
from resolvers.people.member_data import Contributions
from resolvers.requests.context import Role, Services
from resolvers.values.node_ids import node_id
from resolvers.whole.erasing import ERASE_MEMBER
from resolvers.whole.jobs import JOB_KINDS
from tests.client import Client
from tests.jobs import ended, run_of
from tests.killed import Killed, killed_at
from tests.members import introduce
from tests.queries import (
    ADD_WORDS,
    CREATE_LIST,
    DELETE_LIST,
    MODERATE_COMMENT,
    REPORT_COMMENT,
    SUBSCRIBE,
    UPDATE_PROFILE,
    WRITE_SENTENCE,
    mutation,
)
from tests.two_worlds import Site

ERASE = mutation("eraseMember", "MemberErasure", "job { id }")
EXPORT = mutation("exportMember", "MemberExport", "job { id } url")
REVIEW = """mutation ($input: ReviewWordInput!) { reviewWord(input: $input) { __typename } }"""
QUIZ = """mutation ($input: StartQuizInput!) { startQuiz(input: $input) { __typename ... on Refused { message } } }"""
WORDS = "query ($id: ID!) { wordList(id: $id) { words { nodes { id } } } }"
MEMBER = "zoltan-q"
NODE = node_id("User", MEMBER)


def admin(client: Client) -> Client:
    return client.member("root", Role.ADMIN)


async def bury(services: Services, member: str, lasts: timedelta = timedelta(days=1)) -> None:
    """Erase a member's profile and ways to sign in, and nothing else, as the first step of an erasure does."""
    await introduce(services.table, member)
    now, profile = services.clock(), await read_profile(services.table, member)
    assert profile is not None
    await services.table.transact(*erase_profile(profile, now, now + lasts))
    services.get(Members).forget(map(IdentityKey.parse, profile.identities))


async def items_naming(table: Table, *texts: str, but: tuple[str, ...] = ()) -> list[str]:
    """Every item that contains one of the texts, besides in some attributes."""
    found = []
    async for item in table.scan_items(consistent=True):
        seen = {name: value for name, value in item.items() if name not in but}
        stored = orjson.dumps(seen, default=repr, option=orjson.OPT_SORT_KEYS).decode()
        found += [stored for text in texts if text in stored][:1]
    return found


async def owners(table: Table) -> set[str]:
    """Whose items there are, by the partitions of members and their parts."""
    keys = [item["pk"]["S"].split("#") async for item in table.scan_items(consistent=True)]
    return {key[1] for key in keys if key[0] in ("USER", "VOTER")}


async def leave_traces(site: Site) -> None:
    """Everything else that is stored about a member, by themselves and others."""
    client, member = site.client, site.client.member(MEMBER)
    profile = {"name": "Zoltán the Great", "email": "z@example.org", "timeZone": "Europe/Vienna"}
    await member.ask(UPDATE_PROFILE, input={**profile, "idempotencyKey": "profile"})
    for name in ("Secret verbs", "Secret nouns"):
        made = await member.ask(CREATE_LIST, input={"name": name})
        words = [{"simplified": sign, "definition": f"a secret word {sign}"} for sign in "一二三四五六"]
        await member.ask(ADD_WORDS, input={"list": made["list"]["id"], "words": words})
    assert "message" not in await member.ask(QUIZ, input={"list": made["list"]["id"], "size": 3})
    await member.ask(DELETE_LIST, input={"list": made["list"]["id"]})
    await member.ask(SUBSCRIBE, input={"list": site.list})
    claim = AddressClaim(MEMBER, "m-of-an-address", client.services.clock())
    await note_claim(client.services.table, claim)
    words = await member.ask(WORDS, id=site.list)
    await member.ask(REVIEW, input={"word": words["words"]["nodes"][0]["id"], "grade": "GOOD"})
    await member.ask(WRITE_SENTENCE, input={"text": "With a key.", "idempotencyKey": "sentence"})
    page = (await client.ask('{ comments(product: "mug") { nodes { id body } } }'))["nodes"]
    theirs = next(comment["id"] for comment in page if comment["body"].startswith(MEMBER))
    other = next(comment["id"] for comment in page if comment["body"].startswith("ada"))
    await member.ask(REPORT_COMMENT, input={"comment": other, "reason": "Zoltanic."})
    await client.member("bob").ask(
        REPORT_COMMENT, input={"comment": theirs, "reason": "Off topic.", "idempotencyKey": "report"}
    )
    await client.member("mia", Role.MODERATOR).ask(
        MODERATE_COMMENT, input={"comment": theirs, "status": "PUBLISHED", "idempotencyKey": "decision"}
    )
    exported = await admin(client).ask(EXPORT, input={"user": NODE, "idempotencyKey": "export"})
    assert (await ended(admin(client), exported["job"]["id"]))["state"] == "DONE"
    lasts = client.services.clock() + timedelta(days=1)
    suspect = Suspect("main", "a-job", 0, MEMBER, "suspect.z", 1, 1, 1e-6, ("1 of 1.",), (), lasts)
    await client.services.table.write(SUSPECT.put(suspect))


async def begin_erasure(services: Services, contributions: Contributions, member: str = MEMBER) -> Job:
    """The job of an erasure whose answer was sent; nobody works on it, nor does this process on jobs from now on."""
    services.get(JobRunner).start({})
    now, profile = services.clock(), await read_profile(services.table, member)
    assert profile is not None
    await services.table.transact(*erase_profile(profile, now, now + timedelta(days=1)))
    wanted = {"user": member, "contributions": contributions.value}
    new = Job(services.ids.next(now), ERASE_MEMBER, "somebody", now, input=wanted)
    return await services.table.put_once(job_store.JOB, new)


async def carried_out(services: Services, job: Job, write: int) -> bool:
    """Works on the job up to a write, in a process of its own; whether that was its last."""
    process = Services(services.table, services.seal, services.policy, clock=services.clock)
    current = await job_store.read_job(services.table, job.id)
    assert current is not None
    process.leases.patience = 0.1  # the process that worked on it before is dead
    process.get(JobRunner)._kinds = JOB_KINDS
    run = await run_of(process, current)
    try:
        with killed_at(services.table, write):
            await JOB_KINDS[ERASE_MEMBER](process, run)
    except (Killed, asyncio.CancelledError):  # the latter: in a settling, which cancels those who wait for it
        return False
    finally:
        await process.close()
    return True
