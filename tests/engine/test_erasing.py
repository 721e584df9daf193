"""Erasing a member: nothing in the table names them, and counts are those of a site without them, or stay."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from pydantic import SecretStr

from datastore.changes.occurrences import Kind
from datastore.changes.unit_of_work import TOMBSTONE
from datastore.dynamo import Table, Window, read_cache
from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import JOB, JobState
from datastore.people.member_items import ErasurePolicy
from datastore.people.profiles import SHARDS
from datastore.vocabulary.member_items import move_results
from resolvers.jobs.running import JobRunner
from resolvers.people.member_data import ERASE_MEMBER_AGAIN, Contributions
from resolvers.requests.context import Role, Services
from resolvers.values.node_ids import node_id
from resolvers.vocabulary import quiz_leaderboard
from resolvers.vocabulary.quiz_leaderboard import QuizLeaderboards, Selection
from resolvers.whole import erasing
from resolvers.whole.erasing import PARTS
from server.audit import breaches
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
)
from tests.generated import entities
from tests.intercepted import Send, intercepted
from tests.jobs import ended, run_of, work_on
from tests.leagues import ADMIT, JOIN_LEAGUE, LEAGUE, create
from tests.queries import (
    CREATE_LIST,
    EDIT_COMMENT,
    MODERATE_COMMENT,
    POST_COMMENT,
    RECORD_QUIZ,
    REPORT_COMMENT,
    SUBSCRIBE,
    UPDATE_PROFILE,
    WRITE_SENTENCE,
)
from tests.two_worlds import Site
from tests.vocabulary import QUIZ_LEADERBOARD, known_list

OTHERS = ("ada", "bob", "cleo")


@pytest.fixture(autouse=True)
def _short_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test engine's indexes are behind by a tenth of a second, and in a few cases by some."""
    monkeypatch.setattr(erasing, "INDEX_SECONDS", 2.0)
    monkeypatch.setattr(erasing, "LATEST_INDEX", timedelta())


def today() -> str:
    return datetime.now(UTC).date().isoformat()


async def erase(client: Client, contributions: str = "REMOVE", **more: Any) -> dict[str, Any]:
    """The job, once it and the one that looks again have ended."""
    answer = await admin(client).ask(ERASE, input={"user": NODE, "contributions": contributions, **more})
    assert "job" in answer, answer
    looks = 0
    async with asyncio.timeout(60):
        while [one async for one in client.services.table.scan(JOB, consistent=True) if one.is_running]:
            await asyncio.sleep(0.05)
            looks += 1
            if looks > 60:  # the job goes on until the indexes show nothing, which may be long after
                await client.caught_up("what is deleted is shown no more")
    job = await ended(admin(client), answer["job"]["id"])
    assert job["state"] == "DONE", job
    return job


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
    assert await items_naming(table, MEMBER, "Zoltán", "Zoltanic", "z@example.org", "Secret", "a secret word") == []
    async with twin(engine, table.name) as other:
        await live(other, with_member=False)
        assert await site.counts(today()) == await other.counts(today())
        assert await site.ranks(OTHERS) == await other.ranks(OTHERS)
    assert await client.ask(f'{{ user(id: "{NODE}") {{ name }} }}') is None
    assert [breach async for breach in breaches(client.services)] == []


async def test_made_anonymous_every_count_stays(client: Client, table: Table) -> None:
    """Their rows belong to a former member; nothing names them but texts that they wrote."""
    site = Site(client)
    await live(site, with_member=True)
    before, ranks = await site.counts(today()), await site.ranks((MEMBER, *OTHERS))
    await leave_traces(site)
    await erase(client, "ANONYMISE")
    assert await items_naming(table, MEMBER, "Zoltán", "z@example.org", "Secret", but=("body", "text")) == []
    after = await site.counts(today())
    alias = next(row["user"]["id"] for row in after["standings"]["nodes"] if row["user"]["id"] not in _nodes(before))
    renamed = orjson.loads(orjson.dumps(before).decode().replace(NODE, alias))
    assert _unordered(_without_sentences(after)) == _unordered(_without_sentences(renamed))
    assert await site.ranks(OTHERS) == {user: ranks[user] for user in OTHERS}
    comment = (await client.ask('{ comments(product: "tee") { nodes { body author { id name } } } }'))["nodes"]
    author = {"id": alias, "name": "Former member"}
    assert {"body": f"{MEMBER} on tee", "author": author} in comment
    assert [breach async for breach in breaches(client.services)] == []


@pytest.mark.parametrize("contributions", list(Contributions))
async def test_a_leaderboard_in_memory_names_them_no_more(
    one_client: Client, contributions: Contributions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the end of the job on, although the leaderboard of the day was built before."""
    monkeypatch.setattr(erasing, "INDEX_SECONDS", 0.0)
    monkeypatch.setattr(quiz_leaderboard, "SECONDS", 600.0)
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


async def test_a_leaderboard_that_is_built_meanwhile_names_them_no_more(one_client: Client) -> None:
    """Its reads have found the results under their old name."""
    word_list = await known_list(one_client)
    await one_client.member(MEMBER).ask(RECORD_QUIZ, input={"list": word_list, "correct": 2, "total": 2})
    services = one_client.services
    leaderboards, read, may_end = services.get(QuizLeaderboards), asyncio.Semaphore(0), asyncio.Event()

    async def hold(_name: str, send: Send) -> Any:
        answer = await send()
        read.release()
        await may_end.wait()
        return answer

    with intercepted(services.table, ("query",), hold):
        building = asyncio.create_task(leaderboards.load(datetime.now(UTC).date()))
        for _ in range(SHARDS):
            await read.acquire()
    async for old, new in move_results(services.table, MEMBER, "former-1"):
        leaderboards.move(old, new)
    may_end.set()
    page = (await building).page(Selection(), Window(20, services.seal).open("board"))
    assert [(row.user, row.correct) for row in page.nodes] == [("former-1", 2)]


def _nodes(counts: Any) -> str:
    return orjson.dumps(counts).decode()


def _without_sentences(counts: dict[str, Any]) -> dict[str, Any]:
    """Without the number of sentences: one more was written after the counts."""
    for row in counts["quizLeaderboard"]["nodes"]:
        row.pop("sentences", None)
    return counts


def _unordered(counts: Any) -> Any:
    """Equals are listed by their ids, and one has another."""
    if isinstance(counts, dict):
        return {name: _unordered(value) for name, value in counts.items()}
    if isinstance(counts, list):
        return sorted((_unordered(value) for value in counts), key=orjson.dumps)
    return counts


@pytest.mark.parametrize("contributions", list(Contributions))
async def test_killed_at_every_write_it_is_completed(
    one_client: Client,
    one_table: Table,
    default_engine: RunningEngine,
    contributions: Contributions,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After its first write, again after two, and so on until one run completes it."""
    monkeypatch.setattr(erasing, "INDEX_SECONDS", 0.0)
    for name in ("_OVERLAY_SECONDS", "SECONDS"):  # other processes remove what this one wrote and shows
        monkeypatch.setattr(quiz_leaderboard, name, 0.0)
    monkeypatch.setattr(read_cache, "_REST", 0.0)
    site, services = Site(one_client), one_client.services
    await live(site, with_member=True)
    before = await site.counts(today())
    await leave_traces(site)
    services.get(JobRunner)._kinds = {}  # this process works on none
    job, write = await begin_erasure(services, contributions), -1
    while not await carried_out(services, job, write := write + 1):
        pass
    assert write > 5
    await _look_again(services)
    assert await items_naming(one_table, "Zoltán", "z@example.org", "Secret") == []
    naming = await items_naming(one_table, MEMBER, but=("body", "text"))
    assert [item for item in naming if job.id not in item] == []
    if contributions is Contributions.REMOVE:
        async with twin(default_engine, one_table.name) as without:
            await live(without, with_member=False)
            assert await site.counts(today()) == await without.counts(today())
    else:
        after = await site.counts(today())
        for name in ("leaderboard", "board", "belt", "mug", "topProducts"):
            assert after[name] == before[name]
        points = [(row["rank"], row["points"]) for row in after["standings"]["nodes"]]
        assert points == [(row["rank"], row["points"]) for row in before["standings"]["nodes"]]
    assert [breach async for breach in breaches(services)] == []


async def _look_again(services: Services) -> None:
    for one in [one async for one in services.table.scan(JOB) if one.kind == ERASE_MEMBER_AGAIN]:
        assert not (await work_on(services, one)).is_running


@pytest.mark.parametrize("contributions", list(Contributions))
async def test_what_they_write_meanwhile_is_erased_or_refused(
    client: Client, table: Table, contributions: Contributions
) -> None:
    """Everything at the same time as the erasure; others write too, and are counted."""
    site = Site(client)
    await site.prepare()
    await site.contribute(MEMBER, 4)
    writing = [asyncio.create_task(_write_on(site)) for _ in range(2)]
    await asyncio.gather(erase(client, contributions.value), *(site.contribute(user, 1) for user in OTHERS))
    refused = await asyncio.gather(*writing)
    assert set(refused) == {"NOT_ALLOWED"}
    await client.caught_up("every index shows what was written")
    assert await items_naming(table, MEMBER, but=("body", "text")) == []
    await site.score()
    assert [breach async for breach in breaches(client.services)] == []


async def _write_on(site: Site) -> str:
    """Writes until the first refusal; its code."""
    member = site.client.member(MEMBER)
    for number in range(10_000):
        answer = await member.ask(WRITE_SENTENCE, input={"text": f"Sentence {number}.", "idempotencyKey": str(number)})
        if "code" in answer:
            return str(answer["code"])
        await member.ask(CREATE_LIST, input={"name": f"List {number}"})
        await member.ask(SUBSCRIBE, input={"list": site.list})
    raise AssertionError("nothing was refused")


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
    assert [tombstone async for tombstone in one_client.services.table.scan(TOMBSTONE)] == []
    assert "job" in await other.ask(ERASE, input=second)
    assert "job" in await machine.ask(ERASE, input=wanted)


async def test_erasing_again_answers_the_same(one_client: Client) -> None:
    """At the same time, later, by others, by themselves, and with another way."""
    await one_client.member(MEMBER).ask(UPDATE_PROFILE, input={"name": "Name"})
    wanted = {"user": NODE, "contributions": "REMOVE", "idempotencyKey": "once"}
    member = one_client.member(MEMBER)
    askers = (member, admin(one_client), member)
    answers = list(await asyncio.gather(*(asker.ask(ERASE, input=wanted) for asker in askers)))
    assert (await ended(admin(one_client), answers[0]["job"]["id"]))["state"] == "DONE"
    answers += [await asker.ask(ERASE, input=wanted) for asker in (member, admin(one_client))]
    answers.append(await admin(one_client).ask(ERASE, input={"user": NODE, "contributions": "ANONYMISE"}))
    assert answers == [answers[0]] * len(answers)
    assert (await ended(member, answers[0]["job"]["id"]))["state"] == "DONE"


async def test_an_admin_who_erased_themselves_gets_the_same_answer_in_another_process(
    one_table: Table, default_engine: RunningEngine
) -> None:
    """That process has not noted them as an admin yet, and nothing more is written for them."""
    settings = settings_for(default_engine, one_table.name)
    async with serving(settings) as one, serving(settings) as other:
        await admin(one).ask(UPDATE_PROFILE, input={"name": "Root"})
        given = {"user": node_id("User", "root"), "contributions": "ANONYMISE", "idempotencyKey": "once"}
        first = await admin(one).ask(ERASE, input=given)
        assert "job" in first
        assert await admin(other).ask(ERASE, input=given) == first
        assert await admin(other).code(UPDATE_PROFILE, input={"name": "Root again"}) == "NOT_ALLOWED"


async def test_an_erasure_that_failed_can_be_begun_again(one_client: Client) -> None:
    """Its job has forgotten whom it erases; the tombstone names the next one then."""
    services, member = one_client.services, one_client.member(MEMBER)
    await member.ask(WRITE_SENTENCE, input={"text": "A sentence."})
    kinds, services.get(JobRunner)._kinds = services.get(JobRunner)._kinds, {}
    first = await member.ask(ERASE, input={"user": NODE, "contributions": "REMOVE"})
    running = next(iter(await job_store.read_unfinished_jobs(services.table)))
    await job_store.finish_job((await run_of(services, running)).lease, JobState.FAILED, services.clock())
    services.get(JobRunner)._kinds = kinds
    assert (await erase(one_client))["id"] != first["job"]["id"]
    assert await items_naming(services.table, MEMBER) == []


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
    assert await items_naming(one_client.services.table, MEMBER) == []


async def test_answers_that_changed_nothing_name_them_no_more(one_client: Client) -> None:
    """A moderator's edit without a change, a report of what was rejected, a captain's second admission."""
    member, mia = one_client.member(MEMBER), one_client.member("mia", Role.MODERATOR)
    review = {"product": "mug", "language": "en", "rating": 4, "body": "Good."}
    comment = {"comment": (await member.ask(POST_COMMENT, input=review))["comment"]["id"]}
    assert "comment" in await mia.ask(EDIT_COMMENT, input={**comment, "idempotencyKey": "edit"})
    await mia.ask(MODERATE_COMMENT, input={**comment, "status": "REJECTED"})
    assert "comment" in await mia.ask(REPORT_COMMENT, input={**comment, "reason": "Spam.", "idempotencyKey": "report"})
    league = await create(mia)
    await member.ask(JOIN_LEAGUE, input={"league": league["id"]})
    admission = {"league": league["id"], "user": NODE, "idempotencyKey": "admission"}
    assert "member" in await mia.ask(ADMIT, input=admission)
    await erase(one_client)
    assert await items_naming(one_client.services.table, MEMBER) == []


async def test_a_file_from_before_a_rotation_of_secrets_is_deleted_too(
    one_table: Table, default_engine: RunningEngine
) -> None:
    """The job that wrote it names the member by the older secret; the member still sees that job."""
    old = settings_for(default_engine, one_table.name)
    async with serving(old) as client:
        member = client.member(MEMBER)
        await member.ask(UPDATE_PROFILE, input={"name": "Eve"})
        export = await member.ask(EXPORT, input={"user": NODE})
        assert (await ended(member, export["job"]["id"]))["state"] == "DONE"
    rotated = old.model_copy(update={"secrets": (SecretStr("n" * 40), *old.secrets)})
    async with serving(rotated) as client:
        assert (await ended(client.member(MEMBER), export["job"]["id"]))["state"] == "DONE"
        await erase(client)
        assert (await client.http.get(export["url"])).status_code == 410


async def test_the_journal_says_that_somebody_was_erased(one_client: Client) -> None:
    """By whom, and not who; the comments that are gone are named."""
    site = Site(one_client)
    await live(site, with_member=True)
    await erase(one_client)
    query = "{ journal(first: 100) { nodes { kind actor object note } } }"
    await one_client.caught_up("the journal lists every occurrence")
    nodes = (await one_client.member("mia", Role.MODERATOR).ask(query))["nodes"]
    erased = [node for node in nodes if node["kind"] == Kind.MEMBER_ERASED]
    root = node_id("User", "root")
    assert erased == [{"kind": "member.erased", "actor": root, "object": None, "note": None}]
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
    """Of each that names the member: none is left, or as many go on under another id."""
    site = Site(one_client)
    await live(site, with_member=True)
    await leave_traces(site)
    table = one_client.services.table
    before = await _naming(table, MEMBER)
    await erase(one_client, contributions.value)
    assert await _naming(table, MEMBER) == {}
    after = await _naming(table, "former-")
    kept = {entity: one.policies for part in PARTS for entity, one in part.items.kept.items()}
    for entity, number in before.items():
        policies = kept[entity]
        policy = policies.removed if contributions is Contributions.REMOVE else policies.anonymised
        assert after.get(entity, 0) == (number if policy is ErasurePolicy.MOVED else 0), entity.key.partition.text
        assert policy is not ErasurePolicy.NOT_APPLICABLE, entity.key.partition.text


async def _naming(table: Table, text: str) -> dict[Any, int]:
    """How many items of each entity have a text in them, besides in what members wrote."""
    counted: dict[Any, int] = {}
    async for item in table.scan_items(consistent=True):
        seen = {name: value for name, value in item.items() if name not in ("body", "text")}
        if text in orjson.dumps(seen, default=repr).decode():
            pk, sk = item["pk"]["S"], item["sk"]["S"]
            entity = next(entity for entity in entities() if entity.recognises(pk, sk))
            counted[entity] = counted.get(entity, 0) + 1
    return counted
