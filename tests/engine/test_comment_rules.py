"""Settings for comments, the plan of a page, and the stream of new comments; on the default engine."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, aclosing
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import httpx
import pytest
from starlette.types import Message, Receive, Scope
from starlette.types import Send as SendMessage

from datastore.comments import changes, counts
from datastore.comments.counts import LEADER, Leader, read_tallies, read_unsettled_products
from datastore.comments.member_items import delete_reports
from datastore.comments.pages import read_comment
from datastore.comments.records import COMMENT, REPORTS, Comment, Reports
from datastore.dynamo import Rates, Rejected, Table, deadline
from datastore.refusals import InvalidInput
from resolvers.comments.counts import CountsCache, LeaderSettler
from resolvers.comments.pages import comment_posted
from resolvers.live.feed import MOST_NAMED, ResumePoint
from resolvers.requests.context import Context, Kind, Role, Viewer
from resolvers.values.node_ids import parse_node_key
from server.settings import Settings
from tests.client import Client, pages, serving
from tests.comments import post, settle_nothing
from tests.intercepted import Send, beforehand, intercepted, is_of_request
from tests.queries import (
    COMMENT_BY_ID,
    COMMENTS_PAGE,
    DELETE_COMMENT,
    EDIT_COMMENT,
    MODERATE_COMMENT,
    MODERATION_QUEUE,
    POST_COMMENT,
    REPORT_COMMENT,
)
from tests.waiting import until

VISITOR = Viewer("v", Kind.VISITOR)


async def test_posting_too_often_is_refused(one_client: Client) -> None:
    """The third comment in a minute is RATE_LIMITED and says when to try again; other members can still post."""
    one_client.services.policy = replace(one_client.services.policy, comment_rate="2/minute")
    one_client.services.rates = Rates(lambda: 0.0)
    ada = one_client.member("ada")
    await post(ada)
    await post(ada)
    given = {"product": "42", "rating": 5, "language": "en", "body": "Again."}
    refused = await ada.ask(POST_COMMENT, input=given)
    assert refused["code"] == "RATE_LIMITED"
    assert 0 < refused["retryAfterSeconds"] <= 60
    await post(one_client.member("bob"))


async def test_editors_can_request_the_plan_of_a_page(settings: Settings, one_table: Table) -> None:
    """The paths considered, the one chosen, and its cost; only on request, and for others if everyone introspects."""
    assert one_table.name == settings.table
    async with serving(settings.model_copy(update={"introspection": "role"})) as visitor:
        ada, editor = visitor.member("ada"), visitor.member("eve", Role.EDITOR)
        for place in range(12):
            await post(ada, rating=place % 5 + 1, language=("en", "de")[place % 2])

        async def extensions(client: Client, **request: Any) -> dict[str, Any]:
            variables = {"product": "42", "languages": ["en", "de"], "ratings": [1, 2]}
            response = await client.http.post(
                "/graphql", json={"query": COMMENTS_PAGE, "variables": variables, **request}
            )
            return dict(response.json().get("extensions", {}))

        assert await extensions(editor) == {}
        assert await extensions(visitor, extensions={"plan": True}) == {}
        assert await extensions(ada, extensions={"plan": True}) == {}
        (plan,) = (await extensions(editor, extensions={"plan": True}))["plan"]
        assert {one["path"] for one in plan["considered"]} == {"product", "language", "rating", "language and rating"}
        assert plan["chosen"] in {one["path"] for one in plan["considered"]}
        assert plan["queries"] >= 1
        assert 1 <= plan["rounds"] <= 2
        assert plan["itemsRead"] >= 6
        assert plan["readUnits"] > 0
        assert plan["engineMilliseconds"] > 0
        assert await extensions(editor, query="{ __typename }", variables={}, extensions={"plan": True}) == {}
    async with serving(settings.model_copy(update={"introspection": "on"})) as visitor:
        assert len((await extensions(visitor, extensions={"plan": True}))["plan"]) == 1


async def test_a_page_costs_one_read_of_authors(one_client: Client) -> None:
    """Twenty authors are read in one batch; the next page within seconds reads none of them."""
    for place in range(20):
        await post(one_client.member(f"member-{place}"), product="7")
        one_client.services.profiles.forget(f"member-{place}")
    await one_client.services.get(LeaderSettler).close()  # it would settle the product again, two seconds later
    one_client.keep_what_it_read()
    query = "{ comments(product: 7) { nodes { author { name } } } }"
    made: list[str] = []

    async def noted(name: str, send: Send) -> Any:
        made.extend([name] if is_of_request() else [])
        return await send()

    with intercepted(one_client.services.table, ("query", "batch_get_item", "get_item"), noted):
        assert len((await one_client.ask(query))["nodes"]) == 20
        assert made == ["query", "batch_get_item"]
        made.clear()
        await one_client.ask(query)
        assert made == ["query"]


async def test_wrong_counts_change_no_page(one_client: Client) -> None:
    """With lost, doubled or negative counts the pages show the same comments; only the total is wrong."""
    ada = one_client.member("ada")
    for place in range(30):
        await post(ada, rating=place % 5 + 1, language=("en", "de", "fr")[place % 3], body=f"{place}")
    right = {}
    for ratings in ([5], [1, 5], [2, 3, 4]):
        page = await one_client.ask(COMMENTS_PAGE, product="42", ratings=ratings, languages=["en", "fr"], first=3)
        right[tuple(ratings)] = [edge["node"]["body"] for edge in page["edges"]]
    table = one_client.services.table
    items = (await table.client.scan(TableName=table.name))["Items"]
    for wrong in ("0", "-7", "100000"):
        for item in items:
            if item["sk"]["S"].startswith("COUNTS#"):
                wronged = {**item, **{f"r{rating}": {"N": wrong} for rating in (1, 2, 5)}, "bytes": {"N": wrong}}
                await table.client.put_item(TableName=table.name, Item=wronged)
        del one_client.services._parts[CountsCache]
        for chosen, bodies in right.items():
            page = await one_client.ask(
                COMMENTS_PAGE, product="42", ratings=list(chosen), languages=["en", "fr"], first=3
            )
            assert [edge["node"]["body"] for edge in page["edges"]] == bodies


@pytest.fixture
def patient_readers(one_client: Client) -> None:
    """Readers of the ranking wait until what they found unsettled is settled, however busy the machine is."""
    one_client.services.get(LeaderSettler).patience = 60.0


@pytest.mark.usefixtures("patient_readers")
async def test_a_product_that_cannot_be_settled_does_not_stop_the_others(
    one_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are settled and shown; its mark stays until it can be settled."""
    ada = one_client.member("ada")
    settle_nothing(one_client, monkeypatch)

    async def refusing(_: str, send: Any) -> Any:
        if "LEADER" in str(send.keywords) and "STATISTICS#41" in str(send.keywords):
            raise Rejected("not this product")
        return await send()

    for product in ("41", "42"):
        await post(ada, product=product)
    with intercepted(one_client.services.table, ("put_item",), refusing):
        top = await one_client.ask("{ topProducts { nodes { product } } }")
        assert top["nodes"] == [{"product": "42"}]
    await one_client.services.close()
    del one_client.services._parts[LeaderSettler]
    one_client.services.get(LeaderSettler).patience = 60.0
    top = await one_client.ask("{ topProducts { nodes { product } } }")
    assert top["nodes"] == [{"product": "41"}, {"product": "42"}]


async def test_a_process_that_ends_leaves_a_product_that_others_settle_all_the_time(one_client: Client) -> None:
    """It stays marked, and the rest of the process ends in order."""
    revisions = count(1)

    async def overtaken(_: str, send: Any) -> Any:
        is_own = "LEADER" in str(send.keywords)
        if is_own and not rivals:
            rivals.append(Leader("42", 0, next(revisions)))
            await one_client.services.table.write(LEADER.put(rivals[0]))
            rivals.clear()
        return await send()

    rivals: list[Leader] = []
    with intercepted(one_client.services.table, ("put_item",), overtaken):
        await post(one_client.member("ada"))
        with deadline(1.0):
            await one_client.services.get(LeaderSettler).close()
    assert await read_unsettled_products(one_client.services.table) == ["42"]


async def test_a_shard_that_changed_and_changed_back_stays_marked(
    one_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another settling has ranked the product with what was between."""
    table, ada = one_client.services.table, one_client.member("ada")
    settle_nothing(one_client, monkeypatch)
    monkeypatch.setattr(counts, "SHARDS", 1)
    await post(ada)

    async def change_and_change_back() -> None:
        second = await post(ada)
        await counts.settle_product(table, "42")
        await ada.ask(DELETE_COMMENT, input={"comment": second["id"]})

    with beforehand(table, change_and_change_back, "update_item", about="unsettled"):
        await counts.settle_product(table, "42")
    assert [tally.unsettled for tally in await read_tallies(table, "42")] == [True]
    await counts.settle_product(table, "42")
    assert [tally.unsettled for tally in await read_tallies(table, "42")] == [None]
    leader = await table.get(counts.LEADER.at(product="42"), consistent=True)
    assert leader is not None
    assert leader.five_stars == 1


async def test_a_shard_that_was_removed_and_made_again_stays_marked(
    one_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another settling has ranked the product while it had no comment."""
    table, ada = one_client.services.table, one_client.member("ada")
    settle_nothing(one_client, monkeypatch)
    posted = await post(ada)

    async def delete_and_post_again() -> None:
        [tally] = await read_tallies(table, "42")
        await ada.ask(DELETE_COMMENT, input={"comment": posted["id"]})
        await counts.settle_product(table, "42")
        assert await read_tallies(table, "42") == []
        again = Comment("42", "01M8QT5PQK3WD8C1093ZVK02H9", "en", 5, "Well made.", "ada")
        await table.transact(*counts.count_updates([(1, again)], shard=tally.shard))

    with beforehand(table, delete_and_post_again, "update_item", about="unsettled"):
        await counts.settle_product(table, "42")
    assert await read_unsettled_products(table) == ["42"]
    await counts.settle_product(table, "42")
    leader = await table.get(counts.LEADER.at(product="42"), consistent=True)
    assert leader is not None
    assert leader.five_stars == 1


async def test_a_product_s_counts_keep_nothing_of_languages_that_its_comments_have_left(one_client: Client) -> None:
    """Each page reads them: a comment that went through thousands of languages would make them dear for ever."""
    table, ada = one_client.services.table, one_client.member("ada")
    comment = await post(ada)
    for language in ("de", "es", "fr", "nl"):
        await ada.ask(EDIT_COMMENT, input={"comment": comment["id"], "language": language})
    for language in ("it", "pt"):
        deleted = await post(ada, rating=1, language=language)
        await ada.ask(DELETE_COMMENT, input={"comment": deleted["id"]})

    async def is_in_one() -> bool:
        return [(tally.language, tally.r5) for tally in await read_tallies(table, "42")] == [("nl", 1)]

    await until(is_in_one, "what counts nothing is removed")
    counted = await ada.ask('{ commentStatistics(product: "42") { total languages { language count } } }')
    assert counted == {"total": 1, "languages": [{"language": "nl", "count": 1}]}


async def test_a_settling_that_was_held_up_does_not_replace_newer_counts(
    one_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has settled the product since it read them: it reads them again."""
    table, ada = one_client.services.table, one_client.member("ada")
    settle_nothing(one_client, monkeypatch)
    await post(ada)
    await counts.settle_product(table, "42")

    async def settle_newer() -> None:
        await post(ada)
        await counts.settle_product(table, "42")

    await post(ada)
    with beforehand(table, settle_newer, "put_item", about="LEADER"):
        await counts.settle_product(table, "42")
    leader = await table.get(counts.LEADER.at(product="42"), consistent=True)
    assert leader is not None
    assert leader.five_stars == 3


async def test_the_ranking_neither_waits_for_a_slow_product_nor_fails_with_a_broken_one(
    one_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is ranked is shown while a product cannot be settled, and while the marks cannot be read."""
    ada = one_client.member("ada")
    await post(ada, product="42")
    settler, begun, never = one_client.services.get(LeaderSettler), asyncio.Event(), asyncio.Event()
    patience, settler.patience = settler.patience, 60.0
    assert len((await one_client.ask("{ topProducts { nodes { product } } }"))["nodes"]) == 1
    settler.patience = patience

    async def hanging(_: str, send: Any) -> Any:
        if "STATISTICS#41" in str(send.keywords):
            begun.set()
            await never.wait()
        return await send()

    async def broken(_: str, send: Any) -> Any:
        if "UNSETTLED" in str(send.keywords):
            raise Rejected("no marks")
        return await send()

    settle_nothing(one_client, monkeypatch)
    await post(ada, product="41")
    for method, failing in (("get_item", hanging), ("query", broken)):
        settler._swept_at = float("-inf")
        with intercepted(one_client.services.table, (method,), failing):
            top = await asyncio.wait_for(one_client.ask("{ topProducts { nodes { product } } }"), 120)
            await begun.wait()
        assert top["nodes"] == [{"product": "42"}]


# ── what arrives ──


async def watch(client: Client, **headers: str) -> AsyncGenerator[tuple[str, str], None]:
    """Ids and bodies of the events of a stream."""
    ctx = Context(client.services, VISITOR, last_event=headers.get("last_event"))
    async with aclosing(comment_posted(ctx, product="42", after=headers.get("after"))) as comments:
        async for comment in comments:
            yield ctx.event_id or "", comment.body


async def taken(stream: AsyncGenerator[tuple[str, str], None], number: int) -> list[tuple[str, str]]:
    async with asyncio.timeout(120):
        return [await anext(stream) for _ in range(number)]


async def listening(client: Client) -> None:
    """Wait until a stream has begun: it tells of what is posted from then on."""
    await until(lambda: client.services.live._feeds.by_name, "the stream listens")


async def test_comments_arrive_once_and_in_order(one_client: Client) -> None:
    """Two listeners share one poll. Neither earlier comments nor those on other products arrive."""
    ada = one_client.member("ada")
    await post(ada, body="before")
    first, second = watch(one_client), watch(one_client)
    waiting = [asyncio.create_task(taken(stream, 3)) for stream in (first, second)]
    await listening(one_client)
    await post(ada, product="43", body="elsewhere")
    for body in ("a", "b", "c"):
        await post(ada, body=body)
    for arrived in await asyncio.gather(*waiting):
        assert [body for _, body in arrived] == ["a", "b", "c"]
    assert len(one_client.services.live._feeds.by_name) == 1
    await first.aclose()
    await second.aclose()
    assert not one_client.services.live._feeds.by_name


async def test_a_comment_arrives_each_time_it_becomes_visible(one_client: Client) -> None:
    """When it is published, and again after an edit or a rejection held it: a page must learn that it is back."""
    one_client.services.policy = replace(one_client.services.policy, premoderation=True)
    ada, mod = one_client.member("ada"), one_client.member("mod", Role.MODERATOR)
    id_ = (await post(ada, body="a"))["id"]
    stream = watch(one_client)
    waiting = asyncio.create_task(taken(stream, 1))
    await listening(one_client)
    await mod.ask(MODERATE_COMMENT, input={"comment": id_, "status": "PUBLISHED"})
    assert [body for _, body in await waiting] == ["a"]
    await ada.ask(EDIT_COMMENT, input={"comment": id_, "body": "b"})
    await mod.ask(MODERATE_COMMENT, input={"comment": id_, "status": "PUBLISHED"})
    assert [body for _, body in await taken(stream, 1)] == ["b"]
    await mod.ask(MODERATE_COMMENT, input={"comment": id_, "status": "REJECTED"})
    await mod.ask(MODERATE_COMMENT, input={"comment": id_, "status": "PUBLISHED"})
    assert [body for _, body in await taken(stream, 1)] == ["b"]
    await stream.aclose()


async def test_a_resumed_stream_misses_nothing(one_client: Client) -> None:
    """After the last event's id, or its comment's: exactly the comments that were posted or published since."""
    one_client.services.policy = replace(one_client.services.policy, premoderation=True)
    ada, mod = one_client.member("ada"), one_client.member("mod", Role.MODERATOR)
    waits = await post(ada, body="waits")
    stream = watch(one_client)
    waiting = asyncio.create_task(taken(stream, 2))
    await listening(one_client)
    await post(mod, body="a")
    last = await post(mod, body="b")
    (_, (event_id, _)) = await waiting
    await stream.aclose()
    await post(mod, body="c")
    await mod.ask(MODERATE_COMMENT, input={"comment": waits["id"], "status": "PUBLISHED"})
    await post(mod, body="d")
    for resumed in ({"after": event_id}, {"last_event": event_id}, {"after": last["id"]}):
        again = watch(one_client, **resumed)
        assert [body for _, body in await taken(again, 3)] == ["c", "waits", "d"]
        await again.aclose()
    again = watch(one_client, after=waits["id"])
    assert [body for _, body in await taken(again, 1)] == ["d"]
    await again.aclose()


async def test_a_stream_begins_at_the_moment_when_a_page_was_read(one_client: Client) -> None:
    """With what became visible since then; a page may have no comment that says it. It never begins later than now.

    What was being written while the page was read is not on it, although its id is older than the moment.
    """
    ada, services = one_client.member("ada"), one_client.services
    found = await read_comment(services.table, "42", _ulid_of(await post(ada, body="before")))
    assert found is not None
    clock = services.clock
    moment = clock() + timedelta(minutes=1)
    late = services.ids.next(moment)
    services.clock = lambda: moment + timedelta(milliseconds=5)  # a stream begins two seconds before
    now = await one_client.ask("{ now }")
    services.clock = lambda: clock() + timedelta(minutes=1)
    await until(lambda: services.clock() > datetime.fromisoformat(now) + timedelta(milliseconds=1), "later")
    await services.table.write(COMMENT.put(replace(found, ulid=late, body="late")))
    await post(ada, body="since")
    again = watch(one_client, after=now)
    assert [body for _, body in await taken(again, 2)] == ["late", "since"]
    await again.aclose()
    services.clock = lambda: clock() + timedelta(minutes=2)
    stream = watch(one_client, after="9000-01-01T00:00:00Z")
    waiting = asyncio.create_task(taken(stream, 1))
    await listening(one_client)
    await post(ada, body="next")
    assert [body for _, body in await waiting] == ["next"]
    await stream.aclose()
    stream = watch(one_client, after="0001-01-01T00:00:00Z")
    assert [body for _, body in await taken(stream, 2)] == ["before", "late"]
    await stream.aclose()
    for wrong in ("2026-01-01T00:00:00", "now"):
        with pytest.raises(InvalidInput):
            await anext(watch(one_client, after=wrong))


async def test_comments_posted_to_another_process_arrive(one_client: Client, settings: Settings) -> None:
    """Two services on one table."""
    async with serving(settings) as other:
        stream = watch(one_client)
        waiting = asyncio.create_task(taken(stream, 1))
        await listening(one_client)
        await post(other.member("ada"), body="from over there")
        assert [body for _, body in await waiting] == ["from over there"]
        await stream.aclose()


async def test_a_comment_that_is_committed_late_arrives_late(one_client: Client) -> None:
    """A comment whose id is older than that of a sent comment is still sent."""
    ada = one_client.member("ada")
    id_ = one_client.services.ids.next(one_client.services.clock())
    stream = watch(one_client, after=f"{id_}.")
    waiting = asyncio.create_task(taken(stream, 1))
    late = one_client.services.ids.next(one_client.services.clock())
    posted = await post(ada, body="prompt")
    await waiting
    found = await read_comment(one_client.services.table, "42", _ulid_of(posted))
    assert found is not None
    await one_client.services.table.write(COMMENT.put(replace(found, ulid=late, body="late")))
    assert [body for _, body in await taken(stream, 1)] == ["late"]
    await stream.aclose()


async def test_a_comment_that_is_committed_late_while_its_listener_is_away_arrives_once(client: Client) -> None:
    """Its id is older than the last event's. A listener that returns is told of it, and of nothing else again."""
    ada, services = client.member("ada"), client.services
    start, late = (services.ids.next(services.clock()) for _ in range(2))
    stream = watch(client, after=f"{start}.")
    waiting = asyncio.create_task(taken(stream, 2))
    prompt = [await post(ada, body=body) for body in ("a", "b")]
    (_, (event_id, _)) = await waiting
    await stream.aclose()
    found = await read_comment(services.table, "42", _ulid_of(prompt[0]))
    assert found is not None
    await services.table.write(COMMENT.put(replace(found, ulid=late, body="late")))
    again = watch(client, after=event_id)
    ((event_id, body),) = await taken(again, 1)
    assert body == "late"
    await again.aclose()
    await post(ada, body="c")
    for query in ({}, {"after": start}):  # a client that reconnects repeats its query
        last = watch(client, last_event=event_id, **query)
        assert [body for _, body in await taken(last, 1)] == ["c"]
        await last.aclose()


async def test_a_listener_gets_all_it_missed_however_many(one_client: Client) -> None:
    """More than an event's id can name. When it leaves on the way, it gets the rest, and what was committed late."""
    services, many = one_client.services, MOST_NAMED + 50
    start = services.ids.next(services.clock())
    found = await read_comment(services.table, "42", _ulid_of(await post(one_client.member("ada"), body="0")))
    assert found is not None
    late = ""
    for number in range(1, many):
        if number == many - 100:
            late = services.ids.next(services.clock())
        comment = replace(found, ulid=services.ids.next(services.clock()), body=str(number))
        await services.table.write(COMMENT.put(comment))
    await asyncio.sleep(1)  # until nothing is too young to be told
    stream = watch(one_client, after=f"{start}.")
    arrived = await taken(stream, many - 20)
    await stream.aclose()
    await services.table.write(COMMENT.put(replace(found, ulid=late, body="late")))
    again = watch(one_client, after=arrived[-1][0])
    bodies = [body for _, body in arrived + await taken(again, 21)]
    assert bodies == [*map(str, range(many - 20)), "late", *map(str, range(many - 20, many))]
    await again.aclose()


def _ulid_of(posted: dict[str, Any]) -> str:
    return parse_node_key("Comment", posted["id"]).rpartition("#")[2]


async def test_a_stream_of_events_carries_their_ids(one_client: Client) -> None:
    """Over HTTP: the event and its id; an invalid last event id is refused."""
    ada = one_client.member("ada")
    posted = await post(ada, body="first")
    query = {"query": "subscription { commentPosted(product: 42) { body } }"}
    headers = {"accept": "text/event-stream", "last-event-id": "0" * 26 + "."}
    sent = bytearray()

    async def noting(scope: Scope, receive: Receive, send: SendMessage) -> None:
        async def noted(message: Message) -> None:
            sent.extend(message.get("body", b""))
            await send(message)

        await one_client.served(scope, receive, noted)

    async def read() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(noting), base_url="http://ringside.test") as http:
            await http.post("/graphql", json=query, headers=headers)

    bad = await one_client.http.post("/graphql", json=query, headers={**headers, "last-event-id": "nonsense"})
    assert "BAD_USER_INPUT" in bad.text
    assert bad.text.endswith("event: complete\ndata:\n\n")
    reading = asyncio.create_task(read())
    await until(lambda: b'"body":"first"' in sent, "the event is sent")
    one_client.served.state["pipeline"].closing.set()
    async with asyncio.timeout(120):
        await reading
    (text,) = (line.removeprefix("id: ") for line in sent.decode().splitlines() if line.startswith("id: "))
    assert ResumePoint.parse(text).includes(_ulid_of(posted))


# ── reports, and the moderators' queue ──


async def _report(client: Client, comment: str, *members: str) -> None:
    for member in members:
        given = {"comment": comment, "reason": f"By {member}."}
        assert "comment" in await client.member(member).ask(REPORT_COMMENT, input=given)


def _decide_and_report_before(
    client: Client, comment: str, *members: str, method: str = "transact_write_items"
) -> AbstractContextManager[list[str]]:
    """Before the next write of a comment's reports a moderator decides about them, and members begin new ones."""
    moderator = client.member("mod", Role.MODERATOR)

    async def decide_and_report() -> None:
        await moderator.ask(MODERATE_COMMENT, input={"comment": comment, "status": "PUBLISHED"})
        await _report(client, comment, *members)

    return beforehand(client.services.table, decide_and_report, method, about="REPORTS#")


async def _reasons(client: Client, comment: str) -> list[str]:
    read = await client.member("mod", Role.MODERATOR).ask(COMMENT_BY_ID, id=comment)
    return sorted(read["reportReasons"])


async def test_a_report_that_is_late_joins_the_reports_that_were_begun_since(one_client: Client) -> None:
    """Those that it saw were decided, and the new ones have their revision: it neither replaces nor revives any."""
    id_ = (await post(one_client.member("ada")))["id"]
    await _report(one_client, id_, "bob")
    with _decide_and_report_before(one_client, id_, "cyd") as done:
        await _report(one_client, id_, "dan")
    assert done
    assert await _reasons(one_client, id_) == ["By cyd.", "By dan."]


@pytest.mark.parametrize(
    ("method", "others", "new"), [("delete_item", [], ["cyd"]), ("put_item", ["eve"], ["cyd", "dan"])]
)
async def test_forgetting_who_reported_leaves_the_reports_that_were_begun_since(
    one_client: Client, method: str, others: list[str], new: list[str]
) -> None:
    """Whether the member's report is deleted, or taken out of others that were decided meanwhile."""
    id_ = (await post(one_client.member("ada")))["id"]
    await _report(one_client, id_, "bob", *others)
    with _decide_and_report_before(one_client, id_, *new, method=method) as done:
        await delete_reports(one_client.services.table, "bob")
    assert done
    assert await _reasons(one_client, id_) == [f"By {member}." for member in new]


async def test_reports_of_a_deleted_comment_are_deleted_with_it(one_client: Client) -> None:
    """They name who reported it. One that comes at the same time is refused, and leaves none either."""
    ada, table = one_client.member("ada"), one_client.services.table
    id_ = (await post(ada))["id"]
    await _report(one_client, id_, "bob", "cyd")
    await ada.ask(DELETE_COMMENT, input={"comment": id_})
    late, bob = (await post(ada))["id"], one_client.member("bob")
    with beforehand(table, lambda: ada.ask(DELETE_COMMENT, input={"comment": late}), about="REPORTS#") as deleted:
        assert await bob.code(REPORT_COMMENT, input={"comment": late, "reason": "x"}) == "NOT_FOUND"
    assert deleted
    assert [reports async for reports in table.scan(REPORTS, consistent=True)] == []


async def test_a_comment_keeps_the_reasons_of_fifty_members(one_client: Client) -> None:
    """A further report is answered and changes nothing; who is among the fifty may still give another reason."""
    posted = await post(one_client.member("ada"))
    product, ulid = parse_node_key("Comment", posted["id"]).split("#")
    reasons = {f"m{number:02d}": f"By m{number:02d}." for number in range(changes._MAX_REPORTERS - 1)}
    await one_client.services.table.write(REPORTS.put(Reports(product, ulid, reasons)))
    await _report(one_client, posted["id"], "last", "late")
    expected = {*reasons.values(), "By last."}
    assert set(await _reasons(one_client, posted["id"])) == expected
    again = {"comment": posted["id"], "reason": "Spam."}
    assert "comment" in await one_client.member("m00").ask(REPORT_COMMENT, input=again)
    assert set(await _reasons(one_client, posted["id"])) == expected - {"By m00."} | {"Spam."}


async def test_reports_of_comments_that_are_held_hide_no_others(
    one_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page passes over them, and over their stubs; where it gives up, its cursor goes on behind what was read."""
    ada, bob, mod = one_client.member("ada"), one_client.member("bob"), one_client.member("mod", Role.MODERATOR)
    posted = [await post(ada, body=f"{number}") for number in range(7)]
    for comment in posted:
        await bob.ask(REPORT_COMMENT, input={"comment": comment["id"], "reason": "Rude."})
    await post(bob, rating=None, inReplyTo=posted[0]["id"])
    one_client.services.policy = replace(one_client.services.policy, premoderation=True)
    for comment in (*posted[:4], posted[5]):
        await ada.ask(EDIT_COMMENT, input={"comment": comment["id"], "body": "Changed."})
    left = [posted[4]["id"], posted[6]["id"]]

    page = await mod.ask(MODERATION_QUEUE, status="PUBLISHED", first=1)
    assert [one["id"] for one in page["nodes"]] == left[:1]
    assert await pages(mod, MODERATION_QUEUE, size=1, status="PUBLISHED") == await pages(
        mod, MODERATION_QUEUE, size=9, status="PUBLISHED"
    )
    monkeypatch.setattr(changes, "_ROUNDS", 1)
    page = await mod.ask(MODERATION_QUEUE, status="PUBLISHED", first=1)
    assert (page["nodes"], page["pageInfo"]["hasNextPage"]) == ([], True)
    assert page["pageInfo"]["endCursor"]
    assert [one["id"] for one in await pages(mod, MODERATION_QUEUE, size=1, status="PUBLISHED")] == left
