"""Erasing a member: what is theirs is gone, nobody signs in as them, and counts are those without them, or stay."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

import pytest

from datastore.changes.occurrences import Kind
from datastore.dynamo import Table
from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import JOB
from datastore.members.suspensions import without_rights
from datastore.people.identities import IDENTITY, IMPORT_ISSUER, SignInMethod, add_identity, of_address, of_issuer
from datastore.people.imported import become
from datastore.people.member_items import ErasurePolicy
from datastore.pickem.leagues import Entry
from datastore.voting.boards import MAIN
from datastore.voting.member_items import clear_voter
from datastore.voting.voiding import void_votes
from datastore.voting.votes import read_latest_vote
from resolvers.jobs.running import JobRunner
from resolvers.people.identities import Members
from resolvers.people.member_data import Contributions
from resolvers.pickem.leagues import create_league, join_league
from resolvers.requests.context import Context, Role, Viewer, utc_now
from resolvers.requests.context import Kind as ViewerKind
from resolvers.values.node_ids import node_id, parse_node_key
from resolvers.vocabulary.quiz_leaderboard import QuizLeaderboards
from resolvers.whole.erasing import AGAIN_AFTER, PARTS
from tests.audits import breaches_in
from tests.authorisation.world import machine_of
from tests.client import Client, serving
from tests.conftest import create_table, settings_for
from tests.engines import RunningEngine
from tests.erasing import (
    ERASE,
    EXPORT,
    MEMBER,
    NODE,
    admin,
    begin_erasure,
    carried_out,
    items_naming,
    leave_traces,
    owners,
)
from tests.generated import entities
from tests.intercepted import beforehand
from tests.jobs import ended, work_on
from tests.leagues import ADMIT, JOIN_LEAGUE, LEAGUE, create
from tests.queries import CAST_VOTE, DRAW_MATCHUP, RECORD_QUIZ, SUBSCRIBE, UPDATE_LIST, UPDATE_PROFILE, mutation
from tests.two_worlds import Site
from tests.vocabulary import QUIZ_LEADERBOARD, known_list, private_list
from tests.voting import add_contenders, settle_votes, vote
from tests.waiting import until

OTHERS = ("ada", "bob", "cleo")
SUSPEND = mutation("suspendMember", "MemberSuspended", "user { id }", refused="code message")


PERSONAL = ("Zoltán", "z@example.org", "Secret", "a secret word")


def today() -> str:
    return datetime.now(UTC).date().isoformat()


async def erase(client: Client, contributions: str = "REMOVE", **more: Any) -> dict[str, Any]:
    """The job, once it and the one that follows it have ended."""
    answer = await admin(client).ask(ERASE, input={"user": NODE, "contributions": contributions, **more})
    assert "job" in answer, answer
    job = await ended(admin(client), answer["job"]["id"])
    assert job["state"] == "DONE", job
    await look_again(client)
    return job


async def look_again(client: Client) -> None:
    """What happens two minutes after the answer."""
    await client.caught_up("lists and reports are listed")
    services = client.services
    clock = services.clock
    services.clock = lambda: clock() + AGAIN_AFTER

    async def all_have_ended() -> bool:
        await services.get(JobRunner).take_up()
        return not [one async for one in services.table.scan(JOB, consistent=True) if one.is_running]

    await until(all_have_ended, "every job has ended", pause=0.05)
    services.clock = clock


async def live(site: Site, *, with_member: bool) -> None:
    """What happens on a site, to its end."""
    await site.prepare()
    await site.contribute("ada", 0)
    if with_member:
        await site.contribute(MEMBER, 4)
    for taste, user in enumerate(OTHERS[1:], start=1):
        await site.contribute(user, taste)
    await site.score()
    await site.client.caught_up("comments are listed, which members then report")


@asynccontextmanager
async def twin(engine: RunningEngine, name: str) -> AsyncIterator[Site]:
    """Another site on the same engine."""
    async with create_table(f"{name}-twin", engine.url), serving(settings_for(engine, f"{name}-twin")) as client:
        yield Site(client)


async def test_removed_they_had_never_been_there(client: Client, table: Table, engine: RunningEngine) -> None:
    """Every count equals that of a site without them, and no item of the table names them."""
    site = Site(client)
    await live(site, with_member=True)
    await leave_traces(site)
    job, _ = await asyncio.gather(
        erase(client, idempotencyKey="erase"), client.member("dan").ask(UPDATE_PROFILE, input={"name": "D"})
    )
    assert job["done"] == 3 + 2 + 4 + 4
    assert await items_naming(table, *PERSONAL, "Zoltanic") == []
    assert await owners(table) & {MEMBER} == set()
    async with twin(engine, table.name) as other:
        await live(other, with_member=False)
        assert await site.counts(today()) == await other.counts(today())
        assert await site.ranks(OTHERS) == await other.ranks(OTHERS)
    assert await client.ask(f'{{ user(id: "{NODE}") {{ name }} }}') is None
    assert await breaches_in(client.services) == []


async def test_made_anonymous_every_count_stays(client: Client, table: Table) -> None:
    """Their rows belong to a former member, and nothing has their name or address."""
    site = Site(client)
    await live(site, with_member=True)
    before, ranks = await site.counts(today()), await site.ranks((MEMBER, *OTHERS))
    await leave_traces(site)
    await erase(client, "ANONYMISE")
    assert await items_naming(table, *PERSONAL) == []
    assert _without_sentences(await site.counts(today())) == _without_sentences(before)
    assert await site.ranks(OTHERS) == {user: ranks[user] for user in OTHERS}
    comment = (await client.ask('{ comments(product: "tee") { nodes { body author { id name } } } }'))["nodes"]
    assert {"body": f"{MEMBER} on tee", "author": {"id": NODE, "name": "Former member"}} in comment
    assert await client.ask(f'{{ user(id: "{NODE}") {{ name }} }}') is None
    assert await breaches_in(client.services) == []


@pytest.mark.parametrize("contributions", list(Contributions))
async def test_a_leaderboard_in_memory_names_them_no_more(one_client: Client, contributions: Contributions) -> None:
    """From the end of the job on, although the leaderboard of the day was built before."""
    one_client.services.get(QuizLeaderboards).days.age = 600.0
    word_list = await known_list(one_client)
    for correct, user in enumerate(("ada", MEMBER), start=1):
        await one_client.member(user).ask(RECORD_QUIZ, input={"list": word_list, "correct": correct, "total": 2})

    async def shown() -> list[tuple[int, str]]:
        rows = (await one_client.ask(QUIZ_LEADERBOARD, on=today()))["nodes"]
        return [(row["correct"], row["user"]["name"]) for row in rows]

    assert [correct for correct, _ in await shown()] == [2, 1]
    await erase(one_client, contributions)
    left = await shown()
    if contributions is Contributions.REMOVE:
        assert [correct for correct, _ in left] == [1]
    else:
        assert (left[0], left[1][0]) == ((2, "Former member"), 1)


def _without_sentences(counts: dict[str, Any]) -> dict[str, Any]:
    """Without the number of sentences: one more was written after the counts."""
    for row in counts["quizLeaderboard"]["nodes"]:
        row.pop("sentences", None)
    return counts


@pytest.mark.parametrize("contributions", list(Contributions))
async def test_killed_at_every_write_it_is_completed(
    one_client: Client, one_table: Table, default_engine: RunningEngine, contributions: Contributions
) -> None:
    """After its first write, again after two, and so on until one run completes it."""
    site, services = Site(one_client), one_client.services
    await live(site, with_member=True)
    before = await site.counts(today())
    await leave_traces(site)
    job, write = await begin_erasure(services, contributions), -1
    while not await carried_out(services, job, write := write + 1):
        pass
    assert write > 3
    services.cache.clock = lambda: monotonic() + 3600.0  # no answer from before counts any more
    assert await items_naming(one_table, *PERSONAL) == []
    if contributions is Contributions.REMOVE:
        assert await owners(one_table) & {MEMBER} == set()
        async with twin(default_engine, one_table.name) as without:
            await live(without, with_member=False)
            assert await site.counts(today()) == await without.counts(today())
    else:
        after = await site.counts(today())
        for name in ("leaderboard", "board", "belt", "mug", "topProducts"):
            assert after[name] == before[name]
        points = [(row["rank"], row["points"]) for row in after["standings"]["nodes"]]
        assert points == [(row["rank"], row["points"]) for row in before["standings"]["nodes"]]
    assert await breaches_in(services) == []


@pytest.mark.parametrize("contributions", list(Contributions))
async def test_what_they_write_meanwhile_is_erased_two_minutes_later(
    client: Client, table: Table, contributions: Contributions
) -> None:
    """By a request that another process began while it still knew them; others write too, and are counted."""
    site = Site(client)
    await site.prepare()
    await site.contribute(MEMBER, 4)
    writing = asyncio.create_task(site.contribute(MEMBER, 4))
    wanted = {"user": NODE, "contributions": contributions.value}
    answer, *_ = await asyncio.gather(
        admin(client).ask(ERASE, input=wanted), *(site.contribute(user, 1) for user in OTHERS)
    )
    assert (await ended(admin(client), answer["job"]["id"]))["state"] == "DONE"
    await asyncio.gather(writing, return_exceptions=True)  # what comes later is refused
    assert (await client.member(MEMBER).post("{ viewer { id } }")).status_code == 401
    await look_again(client)
    if contributions is Contributions.REMOVE:
        assert await owners(table) & {MEMBER} == set()
    await site.score()
    await settle_votes(client)
    assert await breaches_in(client.services) == []


async def test_a_vote_accepted_while_votes_are_deleted_is_voided_before_it_is_deleted(
    one_client: Client, one_table: Table, default_engine: RunningEngine
) -> None:
    """By a process that knows the member still, once the others are void: the job's second run finds it."""
    await add_contenders(one_client, "Ann", "Bea", "Cid")
    await vote(one_client.member(MEMBER))
    async with serving(settings_for(default_engine, one_table.name)) as other:
        ballot = await other.member(MEMBER).ask(DRAW_MATCHUP)
        other.keep_what_it_read()

        async def meanwhile() -> None:
            cast = await other.member(MEMBER).ask(CAST_VOTE, token=ballot["token"], verdict="LEFT")
            assert "message" not in cast

        with beforehand(one_table, meanwhile, "batch_write_item", about=f"VOTER#{MEMBER}#main") as begun:
            assert (await erase(one_client))["done"] == 1
        assert begun
    await settle_votes(one_client)
    assert await owners(one_table) & {MEMBER} == set()
    assert await breaches_in(one_client.services) == []


async def test_a_list_that_an_editor_published_meanwhile_stays_everybody_s(one_client: Client) -> None:
    """By a process that knows the editor still, once the job has found the list among their private ones."""
    editor = one_client.member(MEMBER, Role.EDITOR)
    words = await private_list(editor, "Kept verbs")
    one_client.keep_what_it_read()

    async def publish() -> None:
        published = await editor.ask(UPDATE_LIST, input={"list": words, "public": True})
        assert published["list"]["public"]
        await one_client.member("ada").ask(SUBSCRIBE, input={"list": words})

    key = parse_node_key("WordList", words)
    job = await begin_erasure(one_client.services, Contributions.REMOVE)
    with beforehand(one_client.services.table, publish, "get_item", about=f"LIST#{key}") as begun:
        assert (await work_on(one_client.services, job)).state == "DONE"
    assert begun
    shown = await one_client.ask("query ($id: ID!) { wordList(id: $id) { wordCount subscriberCount } }", id=words)
    assert shown == {"wordCount": 3, "subscriberCount": 1}
    assert await breaches_in(one_client.services) == []


async def test_who_may_erase_whom(one_client: Client) -> None:
    """Oneself and an admin, be it a machine; an admin only themselves. Nothing is half done."""
    wanted = {"user": NODE, "contributions": "REMOVE"}
    assert await admin(one_client).code(ERASE, input=wanted) == "NOT_FOUND"
    member, other = one_client.member(MEMBER), one_client.member("second", Role.ADMIN)
    for somebody in (member, admin(one_client), other):
        await somebody.ask(UPDATE_PROFILE, input={"name": "Name"})
    assert await one_client.member("mia", Role.MODERATOR, Role.EDITOR).code(ERASE, input=wanted) == "NOT_ALLOWED"
    assert await one_client.member("bob").code(ERASE, input=wanted) == "NOT_ALLOWED"
    assert await one_client.code(ERASE, input=wanted) == "NOT_SIGNED_IN"
    editing, machine = [await machine_of(admin(one_client), role) for role in (Role.EDITOR, Role.ADMIN)]
    assert await editing.code(ERASE, input=wanted) == "NOT_ALLOWED"
    second = {"user": node_id("User", "second"), "contributions": "REMOVE"}
    for somebody in (admin(one_client), machine):
        refused = await somebody.ask(ERASE, input=second)
        assert refused["message"] == "Admins can be erased only by themselves."
    unknown = await admin(one_client).answer(ERASE, input={"user": NODE, "contributions": "FORGET"})
    assert "FORGET" in unknown["errors"][0]["message"]
    assert [job async for job in job_store.all_jobs(one_client.services.table)] == []
    assert await one_client.ask(f'{{ user(id: "{NODE}") {{ name }} }}') == {"name": "Name"}
    assert "job" in await other.ask(ERASE, input=second)
    assert "job" in await machine.ask(ERASE, input=wanted)


async def test_a_vote_that_a_job_can_restore_is_not_deleted(one_client: Client) -> None:
    """It may count again before its deletion arrives: the second run voids it for good first."""
    services = one_client.services
    await add_contenders(one_client, "Ann", "Bea", "Cid")
    await vote(one_client.member(MEMBER))
    assert [voided async for voided in void_votes(services.table, MEMBER, MAIN, services.unit(), job="a job")] == [1]
    await clear_voter(services.table, MEMBER, MAIN)
    assert await read_latest_vote(services.table, MEMBER, MAIN) is not None


async def test_who_has_more_identities_than_a_transaction_holds_is_erased(one_client: Client) -> None:
    """By the second attempt too, if the first one's process ends: until then they sign in, and can ask again."""
    services, member, wanted = one_client.services, one_client.member(MEMBER), {"user": NODE, "contributions": "REMOVE"}
    members, shown = services.get(Members), of_address("own@example.org")
    await member.ask(UPDATE_PROFILE, input={"name": "Name"})
    for site in range(120):
        writer = of_issuer(SignInMethod.SITE, f"{IMPORT_ISSUER}wordpress", f"{site}")
        author = await members.introduce_author(writer, name=None, email="z@example.org")
        await become(services.table, author, MEMBER, services.unit(), without_rights)
    await add_identity(services.table, MEMBER, shown, services.unit())

    async def end() -> None:
        raise RuntimeError

    with beforehand(services.table, end, about="PROFILE"):
        assert "errors" in await member.answer(ERASE, input=wanted)
    assert await members.make(shown) == MEMBER
    assert "job" in await member.ask(ERASE, input=wanted)
    left = [one.user async for one in services.table.scan(IDENTITY, consistent=True)]
    assert left == [None] * 123


async def test_erasing_again_finds_nobody(one_client: Client) -> None:
    """At the same time one request begins it; a repeat with its key has the same answer."""
    await one_client.member(MEMBER).ask(UPDATE_PROFILE, input={"name": "Name"})
    wanted = {"user": NODE, "contributions": "REMOVE"}
    once = {**wanted, "idempotencyKey": "once"}
    answers = await asyncio.gather(*(admin(one_client).ask(ERASE, input=given) for given in (wanted, once, once)))
    assert {answer.get("code", "NOT_FOUND") for answer in answers} == {"NOT_FOUND"}
    jobs = {one["job"]["id"] for one in answers if "job" in one}
    assert len(jobs) == 1
    if "job" in answers[1]:
        assert await admin(one_client).ask(ERASE, input=once) == answers[1]


@pytest.mark.parametrize("contributions", list(Contributions))
async def test_nobody_signs_in_as_them_until_their_tokens_have_expired(
    client: Client, contributions: Contributions
) -> None:
    """By a token that is still valid; after the days that the operator sets it makes another member."""
    member, services = client.member(MEMBER), client.services
    await member.ask(UPDATE_PROFILE, input={"name": "Name"})
    await erase(client, contributions.value)
    for query in ("{ viewer { id } }", "{ topProducts { nodes { product } } }"):
        refused = await member.post(query)
        assert (refused.status_code, refused.json()["errors"][0]["message"]) == (401, "This account was erased.")
    services.clock = lambda: utc_now() + timedelta(days=services.policy.erased_days, seconds=1)
    assert (await member.ask("{ viewer { id } }"))["id"] not in (NODE, None)


async def test_an_erasure_outlasts_a_suspension_of_the_member(client: Client) -> None:
    """Or they would be back before it ends."""
    member, services = client.member(MEMBER), client.services
    await member.ask(UPDATE_PROFILE, input={"name": "Name"})
    end = services.clock() + timedelta(days=400)
    suspended = {"user": NODE, "until": end.isoformat(), "reason": "Insults."}
    await client.member("mia", Role.MODERATOR).ask(SUSPEND, input=suspended)
    await erase(client)
    services.clock = lambda: end - timedelta(minutes=1)
    assert (await member.post("{ viewer { id } }")).status_code == 401
    services.clock = lambda: end + timedelta(minutes=1)
    assert (await member.ask("{ viewer { suspension { reason } } }")) == {"suspension": None}


async def test_their_leagues_go_on_without_them(one_client: Client) -> None:
    """The longest member becomes captain where they were the last one; a league of their own is deleted."""
    member, own, shared = one_client.member(MEMBER), "Alone", "Friends"
    alone, league = await create(member, name=own), await create(member, name=shared)
    joined = await create(one_client.member("ada"), name="Ada's")
    await member.ask(JOIN_LEAGUE, input={"league": joined["id"]})
    for user in ("bob", "ada"):
        await one_client.member(user).ask(JOIN_LEAGUE, input={"league": league["id"]})
    await erase(one_client)
    assert await one_client.ask(LEAGUE, id=alone["id"]) is None
    shown = await one_client.member("bob").ask(LEAGUE, id=league["id"])
    assert (shown["viewerMembership"], shown["memberCount"]) == ("CAPTAIN", 2)
    assert (await one_client.member("ada").ask(LEAGUE, id=joined["id"]))["memberCount"] == 1
    assert "code" in await one_client.member("ada").ask(ADMIT, input={"league": joined["id"], "user": NODE})


@pytest.mark.parametrize("creates", [False, True])
async def test_a_league_that_they_join_while_they_are_erased_is_left_too(client: Client, *, creates: bool) -> None:
    """A process may know them for half a minute. Only their list leads to a league: that must not be lost."""
    services, member = client.services, client.member(MEMBER)
    await create(member, name="Left")
    league = (await create(client.member("ada")))["id"]
    job = await begin_erasure(services, Contributions.REMOVE)

    async def meanwhile() -> None:
        ctx = Context(services, Viewer(MEMBER, ViewerKind.MEMBER))
        ctx.unit = services.unit(f"User:{MEMBER}")
        if creates:
            await create_league(ctx, name="Late", season="2026", entry=Entry.OPEN)
        else:
            await join_league(ctx, league=parse_node_key("League", league))

    with beforehand(services.table, meanwhile, "delete_item", about=f"LEAGUES#{MEMBER}") as begun:
        assert (await work_on(services, job)).state == "DONE"
    assert begun
    assert (await client.member("ada").ask(LEAGUE, id=league))["memberCount"] == 1
    assert await breaches_in(services) == []


async def test_their_exported_file_is_deleted(one_client: Client) -> None:
    member = one_client.member(MEMBER)
    await member.ask(UPDATE_PROFILE, input={"name": "Eve"})
    export = await member.ask(EXPORT, input={"user": NODE})
    assert (await ended(member, export["job"]["id"]))["state"] == "DONE"
    await one_client.caught_up("jobs are listed")
    await erase(one_client)
    assert (await one_client.http.get(export["url"])).status_code == 410


async def test_the_journal_says_that_somebody_was_erased(one_client: Client) -> None:
    """By whom, and under an id that leads to nobody; the comments that are gone are named."""
    site = Site(one_client)
    await live(site, with_member=True)
    await erase(one_client)
    query = "{ journal(first: 100) { nodes { kind actor object note } } }"
    await one_client.caught_up("the journal lists every occurrence")
    nodes = (await one_client.member("mia", Role.MODERATOR).ask(query))["nodes"]
    erased = [node for node in nodes if node["kind"] == Kind.MEMBER_ERASED]
    root = node_id("User", "root")
    assert erased == [{"kind": "member.erased", "actor": root, "object": NODE, "note": None}]
    deleted = [node for node in nodes if node["kind"] == Kind.COMMENT_DELETED]
    assert len(deleted) == 4
    assert all(node["actor"] is None and node["object"] for node in deleted)


def test_every_entity_says_what_becomes_of_it() -> None:
    """A new entity fails this until its part's `member_items` says what it holds, and what becomes of it."""
    kept = Counter(entity for part in PARTS for entity in part.items.kept)
    assert max(kept.values()) == 1
    undeclared = [f"{entity.key.partition.text} {entity.key.sort.text}" for entity in entities()
                  if entity not in kept]  # fmt: skip
    assert undeclared == []
    in_file = [one for part in PARTS for one in part.items.kept.values() if one.kind]
    assert all(one.policies.removed is not ErasurePolicy.NOT_APPLICABLE for one in in_file)
    assert len({one.kind for one in in_file}) == len(in_file)


@pytest.mark.parametrize("contributions", list(Contributions))
async def test_what_is_declared_becomes_of_every_entity(one_client: Client, contributions: Contributions) -> None:
    """Of each that names the member in its key: none is left, or as many as there were."""
    site = Site(one_client)
    await live(site, with_member=True)
    await leave_traces(site)
    table = one_client.services.table
    before = await _naming(table, MEMBER)
    await erase(one_client, contributions.value)
    after = await _naming(table, MEMBER)
    kept = {entity: one.policies for part in PARTS for entity, one in part.items.kept.items()}
    for entity, number in before.items():
        policies = kept[entity]
        policy = policies.removed if contributions is Contributions.REMOVE else policies.anonymised
        assert after.get(entity, 0) == (0 if policy is ErasurePolicy.DELETED else number), entity.key.partition.text
        assert policy is not ErasurePolicy.NOT_APPLICABLE, entity.key.partition.text


async def _naming(table: Table, user: str) -> dict[Any, int]:
    """How many items of each entity have a member's id in their keys; the journal grows by what erasing does."""
    counted: dict[Any, int] = {}
    async for item in table.scan_items(consistent=True):
        pk, sk = item["pk"]["S"], item["sk"]["S"]
        if user in f"{pk}#{sk}".split("#"):
            entity = next(entity for entity in entities() if entity.recognises(pk, sk))
            counted[entity] = counted.get(entity, 0) + 1
    return counted
