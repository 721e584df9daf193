"""Comments on partitions that fill up: what a comment costs the hottest keys, and what happens beyond their limit."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from datastore.comments.counts import LEADER_SHARDS, MARK_SHARDS, settle_product
from datastore.people import profiles as profile_store
from resolvers.comments.counts import SETTLE_SECONDS
from server.audit import find_suspects
from tests.client import Client
from tests.comments import post, settle_nothing
from tests.engines import RunningEngine
from tests.lagging import Lag, LaggingEngine, Limits
from tests.lagging.capacity import PartitionKey
from tests.lagging.service import lagging_services
from tests.queries import COMMENT_STATISTICS, mutation

COMMENTS = 96
LAG = Lag(mean=0.03, longest=0.5)
PROCESSES = 8
SHARDS = {"UNSETTLED": MARK_SHARDS, "LEADERS": LEADER_SHARDS, "USERS": profile_store.SHARDS}
BODY = "x" * 300
POST = mutation("postComment", "CommentPosted", "comment { id }", refused="code retryAfterSeconds")
LIMIT = 700
"""Units per second that a key may take: DynamoDB allows 1,000."""


def units(engine: LaggingEngine) -> Counter[PartitionKey]:
    """The write units of each partition key so far; those of keys that differ in their shard are spread evenly."""
    spent = Counter[PartitionKey]()
    for (key, _), number in engine.ledger.writes.items():
        name = key.value.partition("#")[0]
        whole = PartitionKey(key.index_name, name) if name in SHARDS else key
        spent[whole] += number / SHARDS.get(name, 1)  # type: ignore[assignment]  # also fractions of a unit
    return spent


async def post_all(client: Client, products: list[str]) -> None:
    members = [client.member(f"member-{number}") for number in range(16)]
    for start in range(0, len(products), len(members)):
        some = products[start : start + len(members)]
        await asyncio.gather(
            *(post(member, product, body=BODY) for member, product in zip(members, some, strict=False))
        )


async def test_300_comments_a_second_on_one_product_leave_every_key_room(
    default_engine: RunningEngine, tmp_path: Path, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most 700 units, together with eight processes that settle the product every two seconds."""
    async with lagging_services(default_engine, tmp_path, table_name, lag=LAG) as (engine, [client]):
        settle_nothing(client, monkeypatch)
        await post_all(client, ["one"] * COMMENTS)
        posting = units(engine)
        await settle_product(client.services.table, "one")
        settling = units(engine) - posting
        for key, number in posting.items():
            assert number / COMMENTS * 300 + settling[key] * PROCESSES / SETTLE_SECONDS <= LIMIT, key


@pytest.mark.soak
@pytest.mark.parametrize("premoderation", [False, True])
async def test_2000_comments_a_second_on_as_many_products_leave_every_key_room(
    default_engine: RunningEngine, tmp_path: Path, table_name: str, *, premoderation: bool
) -> None:
    """At most 700 units a second, though each of them moves its product in the ranking, or waits for a moderator."""
    async with lagging_services(default_engine, tmp_path, table_name, lag=LAG, premoderation=premoderation) as (
        engine,
        [client],
    ):
        await post_all(client, [f"p{number}" for number in range(COMMENTS)])
        before = units(engine)
        await post_all(client, [f"p{number}" for number in range(COMMENTS)])
        await client.services.close()
        key, most = (units(engine) - before).most_common(1)[0]
        assert most / COMMENTS * 2000 <= LIMIT, key


async def test_beyond_the_limit_members_are_told_to_come_back_and_nothing_is_lost(
    default_engine: RunningEngine, tmp_path: Path, table_name: str
) -> None:
    """Far more than a key takes: the rest is UNAVAILABLE with a time; a repeat with the same key posts it once."""
    limited = {"limits": Limits(2, 300)}
    async with lagging_services(
        default_engine, tmp_path, table_name, lag=LAG, engine=limited, request_timeout=10.0
    ) as (
        engine,
        [client],
    ):
        member = client.member("ada")

        async def try_to_post(number: int) -> dict[str, Any]:
            given = {"product": "hot", "rating": 5, "language": "en", "body": BODY, "idempotencyKey": f"{number}"}
            answer = await member.answer(POST, input=given)
            if "errors" in answer:
                return dict(answer["errors"][0]["extensions"])
            return dict(answer["data"]["postComment"])

        answers = await asyncio.gather(*(try_to_post(number) for number in range(40)))
        refusals = [answer for answer in answers if "comment" not in answer]
        assert engine.throttled
        assert refusals
        assert all(one["code"] == "UNAVAILABLE" and one["retryAfterSeconds"] > 0 for one in refusals)
        engine._capacity._limits = None
        for number in range(40):
            while "comment" not in await try_to_post(number):
                pass
        assert (await client.ask(COMMENT_STATISTICS, product="hot"))["total"] == 40
        await client.services.close()
        await engine.catch_up()
        assert await find_suspects(client.services, "comments") == []
