"""Comments on bad days: every acknowledged change is there, counted once, whatever the engine answered."""

import asyncio
import io
import random
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import orjson
import pytest

from datastore.changes.occurrences import OCCURRENCE, Kind
from datastore.comments.records import REPORTS
from datastore.dynamo import Table
from resolvers.requests.context import Role
from server.audit import find_suspects
from server.settings import Settings
from tests.client import Client, serving
from tests.comments import post
from tests.conftest import settings_for
from tests.engines import EnginePair, RunningEngine
from tests.fault.faults import Fault
from tests.lagging import LaggingEngine
from tests.lagging.tables import LaggingTable, lagging_table
from tests.lost_answers import ask_without_answer
from tests.queries import (
    COMMENT_BY_ID,
    COMMENT_STATISTICS,
    COMMENTS_PAGE,
    DELETE_COMMENT,
    EDIT_COMMENT,
    MODERATE_COMMENT,
    POST_COMMENT,
    REPORT_COMMENT,
)
from tests.transfers import import_lines

LOST = (Fault.FAILED_AFTER, Fault.RESET_AFTER, Fault.FAILED_BEFORE, Fault.RESET_BEFORE, Fault.CONFLICT)


@pytest.fixture
async def lagged(engine_pair: EnginePair, table_name: str) -> AsyncIterator[LaggingTable]:
    async with lagging_table(engine_pair, table_name, seed=5) as one:
        yield one


@pytest.fixture
def proxy(lagged: LaggingTable) -> LaggingEngine:
    return lagged.engine


@pytest.fixture
async def visitor(lagged: LaggingTable) -> AsyncIterator[Client]:
    """A visitor of a service whose engine lags and fails."""
    async with serving(settings_for(RunningEngine("proxy", lagged.engine.url), lagged.table.name)) as one:
        yield one
        lagged.engine.fault_rate = 0


async def recounted(client: Client) -> list[str]:
    await client.caught_up("the counts of all comments are settled")
    return await find_suspects(client.services, "comments")


async def test_a_deletion_without_an_answer_is_repeated_where_a_moderator_moved_the_comment(one_client: Client) -> None:
    """The first attempt was not applied: that the comment is not where it was does not say that it was deleted."""
    one_client.services.policy = replace(one_client.services.policy, premoderation=True)
    ada, moderator = one_client.member("ada"), one_client.member("mod", Role.MODERATOR)
    posted = await post(ada)
    engine = one_client.services.table.client
    transact, calls = engine.transact_write_items, 0

    async def publish_first(**request: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 1:
            return await transact(**request)
        await moderator.ask(MODERATE_COMMENT, input={"comment": posted["id"], "status": "PUBLISHED"})
        raise TimeoutError

    engine.transact_write_items = publish_first
    try:
        assert (await ada.ask(DELETE_COMMENT, input={"comment": posted["id"]}))["deletedId"] == posted["id"]
    finally:
        engine.transact_write_items = transact
    assert (await one_client.ask(COMMENT_STATISTICS, product="42"))["total"] == 0
    assert await recounted(one_client) == []


async def test_a_repeated_report_of_what_is_gone_differs_from_one_that_came_too_late(one_client: Client) -> None:
    """The clients of the fault runs tell by it whether what they did is recorded."""
    ada, bob = one_client.member("ada"), one_client.member("bob")
    posted = await post(ada)
    report = {"comment": posted["id"], "reason": "Advertising", "idempotencyKey": "once"}
    await bob.ask(REPORT_COMMENT, input=report)
    await ada.ask(DELETE_COMMENT, input={"comment": posted["id"]})
    repeated = await bob.ask(REPORT_COMMENT, input=report)
    assert (repeated["code"], repeated["path"]) == ("NOT_FOUND", None)
    too_late = await bob.ask(REPORT_COMMENT, input={**report, "idempotencyKey": "another"})
    assert (too_late["code"], too_late["path"]) == ("NOT_FOUND", ["input", "comment"])
    assert (await _occurrences(one_client))[Kind.COMMENT_REPORTED] == 1


async def test_a_lost_answer_does_not_post_a_second_comment(visitor: Client, proxy: LaggingEngine) -> None:
    """Post, edit and delete, each with its answer lost once, with a key and without: done once, and answered so."""
    ada = visitor.member("ada")
    for product, (fault, keys) in enumerate((fault, keys) for fault in LOST for keys in (False, True)):
        given = {name: {"idempotencyKey": f"{product}-{name}"} if keys else {} for name in ("post", "edit", "delete")}
        await post(ada, f"p{product}", rating=1)
        proxy.inject(fault, "TransactWriteItems")
        posted = await post(ada, f"p{product}", rating=5, **given["post"])
        assert (await visitor.ask(COMMENT_STATISTICS, product=f"p{product}"))["total"] == 2
        proxy.inject(fault, "TransactWriteItems")
        change = {"comment": posted["id"], "rating": 2, "language": "de", **given["edit"]}
        assert (await ada.ask(EDIT_COMMENT, input=change))["comment"]["rating"] == 2
        proxy.inject(fault, "TransactWriteItems")
        assert await ada.ask(DELETE_COMMENT, input={"comment": posted["id"], **given["delete"]}) == {
            "deletedId": posted["id"]
        }
        statistics = await visitor.ask(COMMENT_STATISTICS, product=f"p{product}")
        assert [row["count"] for row in statistics["histogram"]] == [0, 0, 0, 0, 1]
    await visitor.services.close()
    assert await recounted(visitor) == []


async def _occurrences(client: Client) -> Counter[str]:
    return Counter([occurrence.kind async for occurrence in client.services.table.scan(OCCURRENCE, consistent=True)])


async def _known(client: Client, name: str) -> Client:
    """A member who has a profile, so that their next transaction is that of the comment."""
    member = client.member(name)
    await post(member, "41")
    return member


@pytest.mark.parametrize("journal_days", [90, 0])
async def test_a_report_whose_answer_is_lost_is_made_once(
    one_table: Table, settings: Settings, journal_days: int
) -> None:
    """Without a key too: the journal has it once, or none, and the reports are not written a second time."""
    async with serving(settings.model_copy(update={"journal_days": journal_days})) as client:
        posted = await post(client.member("ada"))
        for name in ("bob", "cyd"):
            member = await _known(client, name)
            await ask_without_answer(member, REPORT_COMMENT, comment=posted["id"], reason="Rude.")
        assert (await _occurrences(client))["comment.reported"] == (2 if journal_days else 0)
    [reports] = [reports async for reports in one_table.scan(REPORTS, consistent=True)]
    assert (set(reports.reasons), reports.revision) == ({"bob", "cyd"}, 2)


@pytest.mark.parametrize("others", [[], ["cyd"]])
async def test_a_report_that_was_decided_while_its_answer_was_lost_is_not_made_again(
    one_client: Client, others: list[str]
) -> None:
    """Whether it was the first one or not: the comment does not come back into the moderators' queue."""
    moderator, posted = one_client.member("mod", Role.MODERATOR), await post(one_client.member("ada"))
    for name in others:
        await one_client.member(name).ask(REPORT_COMMENT, input={"comment": posted["id"], "reason": "Rude."})
    decision = {"comment": posted["id"], "status": "PUBLISHED"}
    await ask_without_answer(
        await _known(one_client, "bob"),
        REPORT_COMMENT,
        meanwhile=lambda: moderator.ask(MODERATE_COMMENT, input=decision),
        comment=posted["id"],
        reason="Rude.",
    )
    assert [reports async for reports in one_client.services.table.scan(REPORTS, consistent=True)] == []
    assert (await _occurrences(one_client))["comment.reported"] == 1 + len(others)


@pytest.mark.parametrize("journal_days", [90, 0])
@pytest.mark.usefixtures("one_table")
async def test_a_comment_that_was_rejected_while_its_answer_was_lost_is_not_posted_again(
    settings: Settings, journal_days: int
) -> None:
    """As a program that moderates by webhooks does: it stays rejected, and counted nowhere."""
    async with serving(settings.model_copy(update={"journal_days": journal_days})) as client:
        moderator = client.member("mod", Role.MODERATOR)

        async def reject() -> None:
            [edge] = (await client.ask(COMMENTS_PAGE, product="42"))["edges"]
            await moderator.ask(MODERATE_COMMENT, input={"comment": edge["node"]["id"], "status": "REJECTED"})

        given = {"product": "42", "language": "en", "rating": 5, "body": "Spam."}
        await ask_without_answer(await _known(client, "ada"), POST_COMMENT, meanwhile=reject, **given)
        assert (await client.ask(COMMENTS_PAGE, product="42"))["totalCount"] == 0
        await client.services.close()
        assert await recounted(client) == []


async def test_a_comment_that_was_deleted_while_its_answer_was_lost_is_not_posted_again(one_client: Client) -> None:
    """The journal tells that it was posted."""
    moderator = one_client.member("mod", Role.MODERATOR)

    async def delete() -> None:
        [edge] = (await one_client.ask(COMMENTS_PAGE, product="42"))["edges"]
        await moderator.ask(DELETE_COMMENT, input={"comment": edge["node"]["id"]})

    given = {"product": "42", "language": "en", "rating": 5, "body": "Spam."}
    await ask_without_answer(await _known(one_client, "ada"), POST_COMMENT, meanwhile=delete, **given)
    assert (await one_client.ask(COMMENTS_PAGE, product="42"))["totalCount"] == 0
    await one_client.services.close()
    assert await recounted(one_client) == []


async def test_a_change_whose_answer_is_lost_does_not_replace_a_later_one(one_client: Client) -> None:
    """Neither an edit nor a decision is made a second time, on top of what somebody else did in between."""
    ada, moderator = one_client.member("ada"), one_client.member("mod", Role.MODERATOR)
    id_ = (await post(ada))["id"]
    later = {"comment": id_, "body": "Later."}
    await ask_without_answer(
        ada, EDIT_COMMENT, meanwhile=lambda: ada.ask(EDIT_COMMENT, input=later), comment=id_, body="Earlier."
    )
    assert (await ada.ask(COMMENT_BY_ID, id=id_))["body"] == "Later."
    rejection = {"comment": id_, "status": "REJECTED"}
    await post(moderator, "41")
    await ask_without_answer(
        moderator,
        MODERATE_COMMENT,
        meanwhile=lambda: moderator.ask(MODERATE_COMMENT, input=rejection),
        comment=id_,
        status="PUBLISHED",
    )
    assert (await moderator.ask(COMMENT_BY_ID, id=id_))["status"] == "REJECTED"
    assert await _occurrences(one_client) == {"comment.posted": 2, "comment.edited": 2, "comment.moderated": 2}


async def test_faults_lose_and_duplicate_no_comment(visitor: Client, proxy: LaggingEngine) -> None:
    """A fifth of all engine calls fail while members post, edit and delete: what was acknowledged is what is there."""
    members = [visitor.member(f"member-{place}") for place in range(6)]
    await asyncio.gather(*(post(member) for member in members))
    proxy.fault_rate = 0.2
    acknowledged: dict[str, int] = {}
    unsure: set[str] = set()

    async def write(member: Client, seed: int) -> None:
        source, own = random.Random(seed), list[str]()
        for turn in range(12):
            what = source.random()
            if what < 0.5 or not own:
                body = f"{seed}-{turn}"
                given: dict[str, Any] = {"product": "9", "language": "en", "rating": source.randint(1, 5), "body": body}
                answer = await member.ask(POST_COMMENT, input={**given, "idempotencyKey": body})
                if "comment" in answer:
                    own.append(answer["comment"]["id"])
                    acknowledged[own[-1]] = given["rating"]
                else:
                    assert answer["code"] == "UNAVAILABLE"
            elif what < 0.8:
                id_, rating = source.choice(own), source.randint(1, 5)
                answer = await member.ask(EDIT_COMMENT, input={"comment": id_, "rating": rating})
                if "comment" in answer:
                    acknowledged[id_] = rating
                else:
                    unsure.add(id_)
            else:
                id_ = own.pop(source.randrange(len(own)))
                if "deletedId" in await member.ask(DELETE_COMMENT, input={"comment": id_}):
                    acknowledged.pop(id_, None)
                else:
                    unsure.add(id_)

    await asyncio.gather(*(write(member, seed) for seed, member in enumerate(members)))
    assert sum(proxy.faults.values()) > 20
    proxy.fault_rate = 0
    await visitor.caught_up("the page shows every acknowledged comment as it was left")
    page = await visitor.ask(COMMENTS_PAGE, product="9", first=100)
    there = {edge["node"]["id"]: edge["node"]["rating"] for edge in page["edges"]}
    for id_, rating in acknowledged.items():
        assert id_ in unsure or there.get(id_) == rating
    assert page["totalCount"] == len(there)
    await visitor.services.close()
    assert await recounted(visitor) == []


async def test_repeating_an_interrupted_import_gives_exact_counts(visitor: Client, proxy: LaggingEngine) -> None:
    """Cut off again and again, and run to its end at last: every line is there, and counted once."""
    author = {"name": "Ada", "email": "ada@example.com"}
    lines = b"".join(
        orjson.dumps({
            "product": f"p{place % 3}", "language": ("en", "de")[place % 2], "rating": place % 5 + 1,
            "body": f"Number {place}.", "author": author, "createdAt": f"2026-01-01T00:00:00.{place:03d}Z",
        }) + b"\n"
        for place in range(400)
    )  # fmt: skip
    proxy.fault_rate = 0.15
    for cut in (5, 9, 14):
        run = asyncio.create_task(import_lines(visitor.services, io.BytesIO(lines)))
        while proxy.faults.total() < cut and not run.done():
            await asyncio.sleep(0.005)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
    proxy.fault_rate = 0
    imported = await import_lines(visitor.services, io.BytesIO(lines))
    assert imported[0] == 400
    assert await recounted(visitor) == []
    assert await import_lines(visitor.services, io.BytesIO(lines)) == (400, 0, 0)
    totals = [(await visitor.ask(COMMENT_STATISTICS, product=f"p{place}"))["total"] for place in range(3)]
    assert sum(totals) == 400
    assert imported[1] <= 400
    page: dict[str, Any] = await visitor.ask(COMMENTS_PAGE, product="p0", ratings=[5], languages=["en"], first=100)
    assert page["totalCount"] == len(page["edges"])
