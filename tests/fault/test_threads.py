"""Threads in trouble: more replies at once than one takes, ten thousand of them, and indexes that are behind."""

import asyncio
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from datastore.comments.records import COMMENT, REPLY, Comment
from datastore.comments.threads import THREAD, Thread
from datastore.dynamo import TransactionConflict
from resolvers.requests.context import Role
from resolvers.values.node_ids import node_id, parse_node_key
from server.audit import find_suspects
from tests.client import Client, pages, serving
from tests.comments import post
from tests.engines import RunningEngine
from tests.intercepted import Send, intercepted
from tests.lagging import Lag
from tests.lagging.service import lagging_services
from tests.queries import DELETE_COMMENT, EDIT_COMMENT, MODERATE_COMMENT, MODERATE_COMMENTS, mutation
from tests.waiting import until

REPLY_TO = mutation("postComment", "CommentPosted", "comment { id }", refused="code retryAfterSeconds")
THREADS = """query ($first: Int, $after: String) { comments(product: "42", first: 1) { nodes {
  replyCount replies(first: $first, after: $after) { nodes { id body } pageInfo { hasNextPage endCursor } } } } }"""
REPLIES = """query ($id: ID!, $first: Int, $after: String) { comment(id: $id) {
  replies(first: $first, after: $after) { nodes { id body } pageInfo { hasNextPage endCursor } } } }"""
OWN_THREADS = """{ comments(product: "42", first: 2) { nodes { body replies(first: 1) { nodes { id } } } } }"""
COUNT = "query ($id: ID!) { comment(id: $id) { replyCount } }"
HELD_SECONDS = 0.05
"""For so long a transaction keeps others from its items: twenty a second can change one item."""


class OneAtATime:
    """An engine that refuses a transaction of a thread while another one changes that thread, as DynamoDB does."""

    def __init__(self) -> None:
        self.is_held = False
        self.conflicts = 0

    async def __call__(self, _: str, send: Send) -> Any:
        if "'THREAD'" not in str(send.keywords["TransactItems"]):  # type: ignore[attr-defined]
            return await send()
        if self.is_held:
            self.conflicts += 1
            raise TransactionConflict("TransactionConflict")
        self.is_held = True
        try:
            await asyncio.sleep(HELD_SECONDS)
            return await send()
        finally:
            self.is_held = False


async def test_more_replies_than_a_thread_takes_are_told_to_come_back_and_none_is_lost(
    one_client: Client,
) -> None:
    """The rest is UNAVAILABLE with a time; a repeat with the same key posts it once."""
    hurried = one_client.settings.model_copy(update={"request_timeout": 1.0})
    async with serving(hurried) as client:
        patient, hasty, engine = one_client.member("ada"), client.member("ada"), OneAtATime()
        root = (await post(patient))["id"]
        await post(patient, rating=None, inReplyTo=root)

        async def try_to_reply(member: Client, number: int) -> dict[str, Any]:
            given = {"product": "42", "language": "en", "body": f"{number}", "inReplyTo": root}
            answer = await member.answer(REPLY_TO, input={**given, "idempotencyKey": f"{number}"})
            if "errors" in answer:  # on a busy machine the request's time ends before the thread's turns do
                return dict(answer["errors"][0]["extensions"])
            return dict(answer["data"]["postComment"])

        answers: list[dict[str, Any]] = []

        async def have_met_and_been_refused() -> list[dict[str, Any]] | None:
            answers.extend(await asyncio.gather(*(try_to_reply(hasty, number) for number in range(60))))
            return [answer for answer in answers if "comment" not in answer] if engine.conflicts else None

        with intercepted(client.services.table, ("transact_write_items",), engine):
            refused = await until(have_met_and_been_refused, "some have met in the engine, and some were refused")
        assert all(answer["code"] == "UNAVAILABLE" and answer["retryAfterSeconds"] > 0 for answer in refused)
        repeated = [await try_to_reply(patient, number) for number in range(60)]
        posted = {answer["comment"]["id"] for answer in repeated}
        assert len(posted) == 60
        assert {answer["comment"]["id"] for answer in answers if "comment" in answer} <= posted
        assert (await patient.ask(COUNT, id=root))["replyCount"] == 61
        await client.services.close()
        assert await find_suspects(client.services, "comments") == []


@pytest.mark.soak
async def test_a_thread_of_ten_thousand_is_read_page_by_page(one_client: Client) -> None:
    """Each reply once, oldest first; the page that shows the thread reads no more than it shows."""
    services = one_client.services
    root = parse_node_key("Comment", (await post(one_client.member("ada")))["id"]).rpartition("#")[2]
    ids = [services.ids.next(services.clock()) for _ in range(10_000)]
    replies = [Comment("42", id_, "en", None, f"{n}", "bob", reply_to=root, root=root) for n, id_ in enumerate(ids)]
    await services.table.write_many(REPLY.put(reply) for reply in replies)
    await services.table.write(THREAD.put(Thread("42", root, len(replies))))
    await services.table.write(COMMENT.update(COMMENT.at(product="42", ulid=root), values={"threaded": True}))
    found = await pages(one_client, REPLIES, size=100, id=node_id("Comment", f"42#{root}"))
    assert [node["body"] for node in found] == [f"{number}" for number in range(10_000)]
    (shown,) = (await one_client.ask(THREADS, first=3))["nodes"]
    assert (shown["replyCount"], [node["body"] for node in shown["replies"]["nodes"]]) == (10_000, ["0", "1", "2"])


async def converse(client: Client, name: str, root: str, chance: Random) -> None:
    """Replies, deletes own replies, and decides about the comment and its replies, in a random order."""
    member, mod = client.member(name), client.member(f"{name}-mod", Role.MODERATOR)
    own: list[str] = []
    for _ in range(15):
        turn = chance.random()
        if turn < 0.5 or not own:
            given = {"product": "42", "language": "en", "body": name, "inReplyTo": chance.choice([root, *own])}
            answer = await member.ask(REPLY_TO, input=given)
            own += [answer["comment"]["id"]] if "comment" in answer else []
        elif turn < 0.7:
            await member.ask(DELETE_COMMENT, input={"comment": own.pop(chance.randrange(len(own)))})
        elif turn < 0.85:
            given = {"comment": root, "status": chance.choice(["PUBLISHED", "PENDING", "REJECTED"])}
            await mod.ask(MODERATE_COMMENT, input=given)
        else:
            status = chance.choice(["PUBLISHED", "REJECTED"])
            await mod.ask(MODERATE_COMMENTS, input={"comments": own[:5], "status": status})


async def test_members_see_their_held_comments_at_once_through_another_process(
    default_engine: RunningEngine, tmp_path: Path, table_name: str
) -> None:
    """A held reply, and an edit of a held comment whose stub others see, though plain reads show neither yet."""
    lag = Lag(mean=1e6, longest=1e6, stale=1.0)
    async with lagging_services(default_engine, tmp_path, table_name, lag=lag, services=2) as (engine, clients):
        here, there = (client.member("ada") for client in clients)
        mod = clients[0].member("mod", Role.MODERATOR)
        held, answered = [(await post(here))["id"] for _ in range(2)]
        await post(here, rating=None, inReplyTo=held)
        await mod.ask(MODERATE_COMMENT, input={"comment": held, "status": "PENDING"})
        await engine.catch_up()
        await here.ask(EDIT_COMMENT, input={"comment": held, "body": "Edited."})
        clients[0].services.policy = replace(clients[0].services.policy, premoderation=True)
        reply = await post(here, rating=None, inReplyTo=answered)
        first, second = (await there.ask(OWN_THREADS))["nodes"]
        assert first["replies"]["nodes"] == [{"id": reply["id"]}]
        assert second["body"] == "Edited."


async def test_threads_are_exact_where_reads_and_indexes_are_behind(
    default_engine: RunningEngine, tmp_path: Path, table_name: str
) -> None:
    """Two services, several members and moderators at once: at the end all numbers, marks and stubs are right."""
    lag = Lag(mean=0.1, longest=0.8, stale=0.5)
    async with lagging_services(default_engine, tmp_path, table_name, lag=lag, services=2) as (engine, clients):
        root = await post(clients[0].member("ada"))
        talks = (converse(clients[n % 2], f"m{n}", root["id"], Random(n)) for n in range(4))
        await asyncio.gather(*talks)
        mod = clients[0].member("mod", Role.MODERATOR)
        await mod.ask(MODERATE_COMMENT, input={"comment": root["id"], "status": "PUBLISHED"})
        for client in clients:
            await client.services.close()
        await engine.catch_up()
        assert await find_suspects(clients[0].services, "comments") == []
        found = await pages(clients[1], REPLIES, size=3, id=root["id"])
        assert (await clients[0].ask(COUNT, id=root["id"]))["replyCount"] == len(found)
        assert len({node["id"] for node in found}) == len(found)
