"""What search engines read of a product's ratings, at /products/<id>.jsonld."""

import asyncio
import json
from collections.abc import Awaitable

import pytest

from datastore.dynamo import Table
from datastore.dynamo.budgets import CALLS_AT_ONCE
from datastore.dynamo.transport.connections import SERVICE, Callers
from datastore.people.profiles import PROFILE
from server.settings import Settings
from tests.client import Client, serving
from tests.comments import post
from tests.waiting import until


async def test_search_engines_read_a_product_s_ratings(one_client: Client) -> None:
    """The average of all, the ten newest rated ones, nothing of others; safe between script tags; with an ETag."""
    ada = one_client.member("ada", name="</script><b>Ada")
    for number in range(12):
        await post(ada, "a/b c", rating=1 + number % 5, body=f"{number} </script>&", title="Good")
    await post(ada, "a/b c", rating=None, body="No stars.")
    found = await one_client.http.get("/products/a%2Fb%20c.jsonld")
    assert (found.status_code, found.headers["content-type"]) == (200, "application/ld+json")
    assert (found.headers["access-control-allow-origin"], found.headers["x-content-type-options"]) == ("*", "nosniff")
    assert not {"<", ">", "&"} & set(found.text)
    assert "set-cookie" not in found.headers
    data = json.loads(found.text)
    rating = data["aggregateRating"]
    assert (data["productID"], rating["ratingValue"], rating["ratingCount"]) == ("a/b c", 2.75, 12)
    assert [review["reviewBody"] for review in data["review"]] == [f"{n} </script>&" for n in range(11, 1, -1)]
    assert data["review"][0]["author"]["name"] == "</script><b>Ada"
    again = await one_client.http.get("/products/a/b%20c.jsonld", headers={"If-None-Match": found.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    await post(ada, "a/b c", rating=5)
    changed = await one_client.http.get("/products/a%2Fb%20c.jsonld", headers={"If-None-Match": found.headers["etag"]})
    assert changed.status_code == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [("nothing.jsonld", 404), ("a%23b.jsonld", 400), ("%20.jsonld", 400), (f"{'x' * 129}.jsonld", 400)],
)
async def test_a_product_that_nobody_rated_or_that_cannot_be_has_no_data(
    one_client: Client, path: str, status: int
) -> None:
    answered = await one_client.http.get(f"/products/{path}")
    assert (answered.status_code, answered.text.endswith(".\n")) == (status, True)


async def test_no_cache_keeps_that_the_service_is_busy(one_table: Table, settings: Settings) -> None:
    """Everybody behind a shared cache would be told so for a minute, although the next request might be answered.

    What it says of the product itself is the same for everybody, and may be kept.
    """
    async with serving(settings.model_copy(update={"max_in_flight": 1}), one_table) as client:
        with client.served.state["pipeline"].in_flight("192.0.2.1"):
            busy = await client.http.get("/products/p.jsonld")
        assert (busy.status_code, busy.headers["retry-after"], busy.headers["cache-control"]) == (503, "1", "no-store")
        unrated = await client.http.get("/products/p.jsonld")
        assert (unrated.status_code, unrated.headers["cache-control"]) == (404, "public, max-age=60")


async def test_ratings_take_turns_at_the_table_as_their_network_and_hold_up_nothing_of_the_service(
    one_client: Client,
) -> None:
    """However many of them wait, the service's own call is sent at one of the next turns."""
    queue, ended = one_client.services.table.client._queue, list[str]()
    busy = [await queue.take_turn(Callers(SERVICE)) for _ in range(CALLS_AT_ONCE)]

    async def noted(name: str, work: Awaitable[object]) -> None:
        await work
        ended.append(name)

    gets = [noted("get", one_client.http.get(f"/products/p{number}.jsonld")) for number in range(20)]
    tasks = [asyncio.create_task(get) for get in gets]
    await until(lambda: queue._entries >= len(gets), "all of them wait")
    own = one_client.services.table.get(PROFILE.at(user="ada"))
    tasks.append(asyncio.create_task(noted("own", own)))
    await asyncio.sleep(0)
    queue.end_turn(busy.pop())
    await asyncio.gather(*tasks)
    for caller in busy:
        queue.end_turn(caller)
    assert ended.index("own") < len(gets) // 2
