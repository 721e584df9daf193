"""Taking back what a member contributed: every count equals that of a site on which they never were."""

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from datastore.changes.occurrences import DELIVERY, Kind, Webhook
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import StorageFailed, Table, Window, iso
from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import Job, JobState
from datastore.journal.webhooks import add_webhook
from datastore.people.member_items import read_member
from datastore.vocabulary.learning import ACTIVE_DAYS, QUIZ, ActiveDays, QuizResult, record_result
from datastore.vocabulary.quizzes import CARD, OPEN_QUIZ
from resolvers.jobs.running import JobRunner
from resolvers.people.member_data import Part, TakingBack
from resolvers.pickem.scoring import SCORE_EVENT, UNSCORE_EVENT, begin_unscoring, event_job
from resolvers.requests.context import Role, Services, utc_now
from resolvers.values.node_ids import node_id, parse_node_key
from resolvers.vocabulary.quiz_leaderboard import QuizLeaderboards, Selection
from resolvers.whole.erasing import PARTS
from resolvers.whole.erasing import TAKE_BACK as TAKING_BACK_JOB
from tests.audits import breaches_in
from tests.client import Client, serving
from tests.command import ROOT, environment, on_table
from tests.comments import post
from tests.conftest import create_table, settings_for
from tests.engines import RunningEngine
from tests.fault.proxy import Proxy
from tests.intercepted import Send, beforehand, intercepted
from tests.jobs import SECRET, WRITES, completed, ended, work_on
from tests.lagging import Lag
from tests.lagging.service import lagging_services
from tests.queries import (
    CREATE_BOARD,
    DELETE_COMMENT,
    EVENT_BY_ID,
    MODERATE_COMMENT,
    TAKE_BACK,
    UPDATE_PROFILE,
    WRITE_SENTENCE,
    mutation,
)
from tests.season import EventEditor, submit
from tests.two_worlds import Site
from tests.vocabulary import ANSWER_QUIZ, QUIZ_LEADERBOARD, START_QUIZ, known_list, right_answers
from tests.voting import add_contenders, assert_consistent, vote

VOID_VOTERS = mutation("voidVoters", "VotersVoided", "job { id }")
RESTORE_VOTERS = mutation("restoreVoters", "VotersRestored", "job { id }")
ALL = ["VOTES", "PREDICTIONS", "COMMENTS", "QUIZZES", "SENTENCES"]
OTHERS = ("ada", "bob", "cleo")
EVE = node_id("User", "eve")


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def moderator(client: Client) -> Client:
    return client.member("mia", Role.MODERATOR)


async def take_back(client: Client, **more: Any) -> dict[str, Any]:
    """The job, once it has ended."""
    answer = await moderator(client).ask(TAKE_BACK, input={"user": EVE, "parts": ALL, **more})
    job = await ended(moderator(client), answer["job"]["id"])
    assert job["state"] == "DONE", job
    return job


@asynccontextmanager
async def twin(engine: RunningEngine, name: str) -> AsyncIterator[Site]:
    """Another site on the same engine."""
    async with create_table(f"{name}-twin", engine.url), serving(settings_for(engine, f"{name}-twin")) as client:
        yield Site(client)


async def live_without_eve(site: Site) -> None:
    await site.prepare()
    for taste, user in enumerate(OTHERS):
        await site.contribute(user, taste)
    await site.score()


async def live_with_eve(site: Site) -> None:
    await site.prepare()
    await site.contribute("ada", 0)
    await site.contribute("eve", 4)
    for taste, user in enumerate(OTHERS[1:], start=1):
        await site.contribute(user, taste)
    await site.score()


async def test_every_count_is_as_if_the_member_had_never_been_there(
    client: Client, table: Table, engine: RunningEngine
) -> None:
    """Votes, predictions, comments, quizzes and sentences, while another member writes; then nothing of it is left."""
    site = Site(client)
    await live_with_eve(site)
    job, _ = await asyncio.gather(take_back(client), site.client.member("dan").ask(UPDATE_PROFILE, input={"name": "D"}))
    assert job["done"] == 3 + 2 + 5 + 3
    async with twin(engine, table.name) as other:
        await live_without_eve(other)
        assert await site.counts(today()) == await other.counts(today())
        assert await site.ranks(OTHERS) == await other.ranks(OTHERS)
        never = (await other.ranks(["eve"]))["eve"]
    gone = (await site.ranks(["eve"]))["eve"]
    assert gone == never
    assert await breaches_in(client.services) == []
    assert (await take_back(client))["done"] == 0


async def test_votes_that_were_taken_back_are_not_restored_with_those_of_others(client: Client) -> None:
    """An editor who restores what a job has voided before brings back the votes of the other voters alone."""
    site, editor = Site(client), client.member("editor", Role.EDITOR)
    await site.prepare()
    for name in ("ada", "eve"):
        await vote(client.member(name))
    named = {"board": "main", "voters": ["ada", "eve"]}
    job = (await editor.ask(VOID_VOTERS, input=named))["job"]["id"]
    assert (await ended(editor, job))["message"] == "Votes voided: 2."
    await take_back(client)
    restoring = (await editor.ask(RESTORE_VOTERS, input={"job": job}))["job"]["id"]
    assert (await ended(editor, restoring))["message"] == "Votes restored: 1."
    await assert_consistent(client)
    assert (await client.ask("{ board { votes } }"))["votes"] == 1


async def test_members_who_write_meanwhile_are_counted(client: Client, table: Table, engine: RunningEngine) -> None:
    """Others vote, predict and comment while the job runs."""
    site = Site(client)
    await site.prepare()
    await site.contribute("eve", 4)
    await asyncio.gather(take_back(client), *(site.contribute(user, taste) for taste, user in enumerate(OTHERS)))
    await site.score()
    async with twin(engine, table.name) as other:
        await live_without_eve(other)
        assert without_order(await site.counts(today())) == without_order(await other.counts(today()))
    assert await breaches_in(client.services) == []


async def test_nothing_is_missed_where_the_indexes_are_behind(
    default_engine: RunningEngine, table_name: str, tmp_path: Path
) -> None:
    """Boards and events of a moment ago, which no index shows yet, are in a member's file and are taken back."""
    lag = Lag(mean=1000.0, longest=10_000.0, stale=1.0)
    async with lagging_services(default_engine, tmp_path, table_name, lag=lag) as (_, [client]):
        site = Site(client)
        await site.prepare()
        await client.member("root", Role.ADMIN).ask(CREATE_BOARD, input={"slug": "second", "title": "Second"})
        await add_contenders(client, "Dee", "Eli", board="second")
        await site.contribute("eve", 4)
        await vote(client.member("eve"), board="second")
        items = [part.items for part in PARTS]
        kinds = Counter([kept.kind async for kept, _ in read_member(client.services.table, "eve", items)])
        assert (kinds["vote"], kinds["prediction"]) == (4, 2)
        assert (await take_back(client))["done"] == 4 + 2 + 5 + 3


def without_order(counts: Any) -> Any:
    """Members who write at the same time are listed in any order."""
    if isinstance(counts, dict):
        return {name: without_order(value) for name, value in counts.items()}
    if isinstance(counts, list):
        return sorted((without_order(value) for value in counts), key=orjson.dumps)
    return counts


async def test_only_what_is_wanted_is_taken_back(one_client: Client) -> None:
    """Nothing from before `since`, and no other part."""
    site = Site(one_client)
    await site.prepare()
    await site.contribute("eve", 1)
    await asyncio.sleep(0.01)
    since = iso(utc_now())
    before = (await site.ranks(["eve"]))["eve"]
    assert (await take_back(one_client, since=since))["done"] == 0
    await site.client.member("eve").ask(WRITE_SENTENCE, input={"text": "One more."})
    assert (await take_back(one_client, since=since, parts=["QUIZZES", "VOTES"]))["done"] == 0
    assert (await take_back(one_client, since=since, parts=["SENTENCES"]))["done"] == 1
    assert (await site.ranks(["eve"]))["eve"] == before
    assert (await take_back(one_client, parts=["QUIZZES"]))["done"] == 2
    days = [days async for days in one_client.services.table.scan(ACTIVE_DAYS)]
    assert len(days) == 1  # a sentence of that day is left
    assert (await take_back(one_client, parts=["SENTENCES"]))["done"] == 1
    assert [days async for days in one_client.services.table.scan(ACTIVE_DAYS)] == []


async def test_a_comment_that_is_deleted_meanwhile_keeps_nobody_else_s_from_being_taken_back(
    one_client: Client,
) -> None:
    """It has replies, so that a stub stands in its place, which is nobody's. The note of an earlier decision goes."""
    eve, bob = one_client.member("eve"), one_client.member("bob")
    first, second = [(await post(eve, product=product))["id"] for product in ("mug", "tee")]
    thanks = {"comment": first, "status": "PUBLISHED", "note": "Thank you."}
    await moderator(one_client).ask(MODERATE_COMMENT, input=thanks)
    await post(bob, product="tee", rating=None, inReplyTo=second)
    ulid = parse_node_key("Comment", second).rpartition("#")[2]

    async def delete() -> None:
        await moderator(one_client).ask(DELETE_COMMENT, input={"comment": second})

    with beforehand(one_client.services.table, delete, "get_item", about=f"COMMENT#{ulid}") as deleted:
        assert (await take_back(one_client, parts=["COMMENTS"]))["done"] == 1
    assert deleted
    statuses = "query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Comment { status removed moderationNote } } }"
    assert await moderator(one_client).ask(statuses, ids=[first, second]) == [
        {"status": "REJECTED", "removed": False, "moderationNote": None},
        {"status": "PUBLISHED", "removed": True, "moderationNote": None},
    ]


async def test_a_proven_result_goes_with_its_quiz_and_leaves_the_cards(one_client: Client, one_table: Table) -> None:
    """The cards are the member's own; a day that was bridged before stays so."""
    moment = datetime.now(UTC)
    one_client.services.clock = lambda: moment
    eve, list_id = one_client.member("eve"), await known_list(one_client)
    quiz = await eve.ask(START_QUIZ, input={"list": list_id, "size": 3})
    moment += timedelta(seconds=10)
    answered = await eve.ask(ANSWER_QUIZ, input={"token": quiz["token"], "answers": right_answers(quiz)})
    assert answered["result"]["proven"]
    cards = [card async for card in one_table.scan(CARD)]
    assert len(cards) == 3
    assert (await take_back(one_client, parts=["QUIZZES"]))["done"] == 1
    assert [quiz async for quiz in one_table.scan(OPEN_QUIZ)] == []
    assert [card async for card in one_table.scan(CARD)] == cards
    leaderboard = await one_client.ask(QUIZ_LEADERBOARD, on=today(), proven=True)
    assert leaderboard["nodes"] == []
    again = {"token": quiz["token"], "answers": right_answers(quiz)}
    assert await eve.code(ANSWER_QUIZ, input=again) == "TOKEN_EXPIRED"


async def test_the_days_that_are_left_keep_their_freezes(one_client: Client, one_table: Table) -> None:
    """As if the results that were taken back had never been: freezes bridge what they bridged before."""
    eve, list_id = one_client.member("eve"), await known_list(one_client)
    await eve.ask(WRITE_SENTENCE, input={"text": "One day."})
    [before] = [days async for days in one_table.scan(ACTIVE_DAYS)]
    day = before.since - timedelta(days=3)
    result = QuizResult("eve", day, one_client.services.ids.next(utc_now()), list_id, 1, 2, utc_now())
    await one_table.transact(QUIZ.put(result), ACTIVE_DAYS.put(before.with_day(day)))
    assert (await take_back(one_client, parts=["QUIZZES"]))["done"] == 1
    [after] = [days async for days in one_table.scan(ACTIVE_DAYS)]
    assert after.dates() == before.dates()


async def test_any_number_of_results_and_webhooks_fit(one_client: Client, one_table: Table) -> None:
    """A day with more results, each told to ten webhooks, than one transaction takes."""
    services, day = one_client.services, utc_now().date()
    await one_client.member("eve").ask(UPDATE_PROFILE, input={"name": "Eve"})
    for number in range(10):
        hook = Webhook(f"h{number}", "https://receiver.invalid/", ("quiz.removed",), utc_now(), "secret")
        await add_webhook(one_table, hook, UnitOfWork.unkeyed(utc_now()))
    await services.journal.learn(one_table)
    results = [QuizResult("eve", day, services.ids.next(utc_now()), "list", 1, 2, utc_now()) for _ in range(60)]
    days = ActiveDays("eve", day, b"").with_day(day)
    await one_table.write_many([*map(QUIZ.put, results), ACTIVE_DAYS.put(days)])
    assert (await take_back(one_client, parts=["QUIZZES"]))["done"] == 60
    assert len([one async for one in one_table.scan(DELIVERY)]) == 600
    assert [one async for one in one_table.scan(ACTIVE_DAYS)] == []


async def test_who_may_take_back_what(client: Client) -> None:
    """Contributions until now of a member who exists; an admin's only by an admin. Nothing is half done."""
    admin, mia = client.member("root", Role.ADMIN), moderator(client)
    await admin.ask(UPDATE_PROFILE, input={"name": "Root"})
    root = node_id("User", "root")
    assert await mia.code(TAKE_BACK, input={"user": root, "parts": ["VOTES"]}) == "NOT_ALLOWED"
    assert await mia.code(TAKE_BACK, input={"user": EVE, "parts": ["VOTES"]}) == "NOT_FOUND"
    await client.member("eve").ask(UPDATE_PROFILE, input={"name": "Eve"})
    for parts in ([], ["PROFILE"], ["VOTES", "SUBSCRIPTIONS"]):
        assert await mia.code(TAKE_BACK, input={"user": EVE, "parts": parts}) == "INVALID_INPUT"
    ahead = {"user": EVE, "parts": ["VOTES"], "since": iso(utc_now() + timedelta(hours=1))}
    refused = await mia.ask(TAKE_BACK, input=ahead)
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "since"])
    unknown = await mia.answer(TAKE_BACK, input={"user": EVE, "parts": ["EVERYTHING"]})
    assert "EVERYTHING" in unknown["errors"][0]["message"]
    assert await client.member("bob").code(TAKE_BACK, input={"user": EVE, "parts": ["VOTES"]}) == "NOT_ALLOWED"
    assert [job async for job in job_store.all_jobs(client.services.table)] == []
    taken = await admin.ask(TAKE_BACK, input={"user": root, "parts": ["VOTES"], "idempotencyKey": "once"})
    assert (await ended(admin, taken["job"]["id"]))["message"] == "Contributions taken back: 0."
    assert await admin.ask(TAKE_BACK, input={"user": root, "parts": ["VOTES"], "idempotencyKey": "once"}) == taken


async def test_the_journal_says_who_took_back_what(one_client: Client) -> None:
    """The mutation, and each contribution."""
    site = Site(one_client)
    await live_with_eve(site)
    await take_back(one_client)
    query = """query ($actor: ID!) { journal(actor: $actor, first: 100) { nodes { kind ground } } }"""
    await one_client.caught_up("the journal lists every occurrence")
    nodes = (await moderator(one_client).ask(query, actor=node_id("User", "mia")))["nodes"]
    kinds = [node["kind"] for node in nodes]
    assert kinds.count(Kind.MEMBER_TAKEN_BACK) == 1
    assert kinds.count(Kind.VOTE_VOIDED) == 3
    assert kinds.count(Kind.PREDICTION_VOIDED) == 2
    assert kinds.count(Kind.QUIZ_REMOVED) == 2
    assert kinds.count(Kind.SENTENCE_REMOVED) == 1
    grounds = [node["ground"] for node in nodes if node["kind"] == Kind.COMMENT_MODERATED]
    assert grounds == ["FRAUD"] * 4


async def _job(services: Services, parts: frozenset[Part]) -> job_store.Job:
    now = services.clock()
    wanted = TakingBack("eve", None, parts, None).as_input()
    job = job_store.Job(services.ids.next(now), TAKING_BACK_JOB, "somebody", now, input=wanted)
    return await services.table.put_once(job_store.JOB, job)


@pytest.mark.soak
async def test_a_job_that_is_killed_again_and_again_is_completed(
    one_client: Client, one_table: Table, default_engine: RunningEngine
) -> None:
    """A process that works on it is killed after ever more writes; the counts are those of the other site."""
    site, services = Site(one_client), one_client.services
    await live_with_eve(site)
    services.get(JobRunner).start({})  # this process works on none
    job, kills = await _job(services, frozenset(map(Part, ALL))), 0
    async with Proxy(default_engine.url) as proxy:
        for writes in (2, 4, 7, 12, 20):
            kills += await _killed_after(writes, proxy, services)
            await _release(services, job)  # so that nobody waits for a sign of life
    assert kills >= 3
    other = Services(services.table, services.seal, services.policy, clock=services.clock)
    assert (await completed(other, job)).state is JobState.DONE
    await other.close()
    async with twin(default_engine, one_table.name) as without:
        await live_without_eve(without)
        assert await site.counts(today()) == await without.counts(today())
    assert await breaches_in(services) == []


@pytest.mark.parametrize("ends", [True, False])
async def test_an_event_that_is_unscored_meanwhile_is_not_scored_again(one_client: Client, *, ends: bool) -> None:
    """The job is done all the same, whether taking the points back has ended or goes on, and counts the other event."""
    services, editor = one_client.services, EventEditor(one_client)
    events = [await editor.card(10, name=name) for name in ("First", "Second")]
    for event, [match] in events:
        for name in (*OTHERS, "eve"):
            await submit(one_client.member(name), event, [(match, 0)])
        await editor.lock(event)
        await editor.result(match, 0)
        await editor.score(event)
    first, second = (event for event, _ in events)
    unscoring = event_job(services, UNSCORE_EVENT, parse_node_key("Event", first), None)

    async def unscore() -> None:
        await begin_unscoring(services, unscoring)
        if ends:
            await completed(services, unscoring)

    with beforehand(services.table, unscore, about=SCORE_EVENT) as begun:
        assert (await take_back(one_client))["done"] == 2
    assert begun
    if not ends:
        await completed(services, unscoring)
    states = [(await one_client.ask(EVENT_BY_ID, id=event))["state"] for event in (first, second)]
    assert states == ["LOCKED", "SCORED"]
    assert await breaches_in(services) == []


async def test_what_an_interrupted_job_took_back_is_counted_and_shown_no_more(one_client: Client) -> None:
    """On the first day; the engine fails before the second."""
    one_client.services.get(QuizLeaderboards).days.age = 3600.0
    services, table, now = one_client.services, one_client.services.table, utc_now()
    days = [now.date() - timedelta(days=1), now.date()]
    for day in days:
        result = QuizResult("eve", day, services.ids.next(now), "list", 1, 2, now)
        await record_result(table, result, None, lambda _: None, UnitOfWork.unkeyed(now))
    leaderboards = services.get(QuizLeaderboards)

    async def listed() -> list[list[str]]:
        request = Window(20, services.seal).open("leaderboard")
        pages = [(await leaderboards.load(day)).page(Selection(), request) for day in days]
        return [[row.user for row in page.nodes] for page in pages]

    removed = 0

    async def fail_second(_name: str, send: Send) -> Any:
        nonlocal removed
        removed += 1
        if removed > 1:
            raise StorageFailed("the disk is full")
        return await send()

    assert await listed() == [["eve"], ["eve"]]
    services.get(JobRunner).start({})  # this process works on none by itself
    job = await _job(services, frozenset({Part.QUIZZES}))
    with intercepted(table, ("transact_write_items",), fail_second):
        assert (await work_on(services, job)).done == 1
    assert await listed() == [[], ["eve"]]
    left = await job_store.read_job(table, job.id)
    assert left is not None
    assert (await work_on(services, left)).done == 2
    assert await listed() == [[], []]


async def _release(services: Services, job: Job) -> None:
    """Releases the job of a process that was killed, once the proxy has passed on its last write."""
    while True:
        left = await job_store.read_job(services.table, job.id)
        assert left is not None
        if left.state is not JobState.RUNNING:
            return
        if taken := await services.leases.acquire(left):
            await taken.release()
            return


async def _killed_after(writes: int, proxy: Proxy, services: Services) -> bool:
    """Runs `ringside jobs --resume` until it has made so many writes; whether it had to be killed."""
    variables = environment(**on_table(proxy.url, services.table.name, RINGSIDE_SECRETS=SECRET))
    proxy.reset_counts()
    process = subprocess.Popen([sys.executable, "-m", "server", "jobs", "--resume"], cwd=ROOT, env=variables)
    while process.poll() is None and sum(proxy.requests[operation] for operation in WRITES) < writes:
        await asyncio.sleep(0.001)
    is_alive = process.poll() is None
    process.kill()
    await asyncio.to_thread(process.wait)
    return is_alive
