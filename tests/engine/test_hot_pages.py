"""Pages that everybody asks for, over HTTP."""

import asyncio
from asyncio import gather
from typing import Any

from datastore.dynamo.table import BURST, INTERVAL
from tests.client import Client, serving
from tests.comments import post
from tests.intercepted import intercepted
from tests.queries import DELETE_COMMENT, EDIT_COMMENT

BODIES = """
query ($product: ID!, $ratings: [Int!]) {
  comments(product: $product, ratings: $ratings, first: 20) { nodes { body } } }
"""


async def bodies(client: Client, *ratings: int) -> list[str]:
    page = await client.ask(BODIES, product="42", ratings=ratings or None)
    return [node["body"] for node in page["nodes"]]


async def all_and_best(client: Client) -> list[str]:
    """The unfiltered page, then that of five stars."""
    unfiltered, best = await gather(bodies(client), bodies(client, 5))
    return unfiltered + best


async def test_a_page_that_everybody_asks_for_is_read_a_few_times(one_client: Client) -> None:
    """So all processes together leave its partition room, whatever the number of readers."""
    await post(one_client.member("ada"), body="First")
    assert await bodies(one_client) == ["First"]
    reads = 0

    async def count(_name: str, send: Any) -> Any:
        nonlocal reads
        reads += "PRODUCT#42" in str(send.keywords)
        return await send()

    loop = asyncio.get_running_loop()
    began = loop.time()
    with intercepted(one_client.services.table, ("query",), count):
        for _ in range(40):
            assert await gather(*(bodies(one_client) for _ in range(5))) == [["First"]] * 5
    assert 0 < reads <= BURST + 1 + (loop.time() - began) / INTERVAL


async def test_a_page_that_everybody_asks_for_shows_what_this_process_changed(one_client: Client) -> None:
    """At once: nobody misses their own comment, finds a text that they have replaced, or one that they deleted."""
    ada = one_client.member("ada")
    for number in range(15):
        comment = await post(ada, body=f"New {number}")
        assert await all_and_best(one_client) == [f"New {number}"] * 2
        await ada.ask(EDIT_COMMENT, input={"comment": comment["id"], "body": f"Edited {number}"})
        assert await all_and_best(one_client) == [f"Edited {number}"] * 2
        await ada.ask(DELETE_COMMENT, input={"comment": comment["id"]})
        assert await all_and_best(one_client) == []


async def test_a_page_that_everybody_asks_for_shows_what_another_process_changed(one_client: Client) -> None:
    """While everybody goes on asking."""
    async with serving(one_client.settings) as other:
        for number in range(3):
            await gather(*(bodies(other) for _ in range(10)))
            await post(one_client.member("ada"), body=f"Comment {number}")
            async with asyncio.timeout(120):
                while f"Comment {number}" not in await bodies(other):
                    pass
