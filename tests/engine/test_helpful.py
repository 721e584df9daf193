"""What members find helpful, and the order by it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from datastore.dynamo import iso
from resolvers.requests.context import Role, utc_now
from server.audit import find_suspects
from tests.client import Client, next_cursor
from tests.comments import post
from tests.erasing import ERASE
from tests.jobs import ended
from tests.queries import DELETE_COMMENT, EDIT_COMMENT, MARK_HELPFUL, MODERATE_COMMENT, TAKE_BACK
from tests.waiting import LONGEST

ONE = "query ($id: ID!) { comment(id: $id) { helpful viewerFoundHelpful } }"
PAGE = """query ($first: Int, $after: String, $last: Int, $before: String, $languages: [String!], $ratings: [Int!]) {
  comments(product: "42", order: HELPFUL, first: $first, after: $after, last: $last, before: $before,
           languages: $languages, ratings: $ratings) {
    totalCount edges { cursor node { body } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }"""


async def mark(member: Client, comment: dict[str, Any], *, helpful: bool = True) -> dict[str, Any]:
    answer: dict[str, Any] = await member.ask(MARK_HELPFUL, input={"comment": comment["id"], "helpful": helpful})
    return answer


async def number(client: Client, comment: dict[str, Any]) -> tuple[int, bool]:
    found = await client.ask(ONE, id=comment["id"])
    return found["helpful"], found["viewerFoundHelpful"]


async def traversed(client: Client, size: int, **filters: Any) -> list[str]:
    bodies: list[str] = []
    after = None
    while True:
        page = await client.ask(PAGE, first=size, after=after, **filters)
        bodies += [edge["node"]["body"] for edge in page["edges"]]
        after = next_cursor(page, after)
        if after is None:
            return bodies


async def until(is_true: Callable[[], Awaitable[bool]]) -> None:
    """The order is up to two seconds old."""
    async with asyncio.timeout(LONGEST):
        while not await is_true():
            await asyncio.sleep(0.1)


async def test_a_member_counts_once(client: Client) -> None:
    """However often and however many at once they say so."""
    comment = await post(client.member("ada"))
    bob, cleo = client.member("bob"), client.member("cleo")
    answers = await asyncio.gather(*(mark(bob, comment) for _ in range(5)))
    assert {answer["comment"]["helpful"] for answer in answers} == {1}
    assert (await mark(cleo, comment))["comment"] == {"helpful": 2, "viewerFoundHelpful": True}
    assert await number(bob, comment) == (2, True)
    assert await number(client, comment) == (2, False)
    for _ in range(2):
        assert (await mark(bob, comment, helpful=False))["comment"] == {"helpful": 1, "viewerFoundHelpful": False}
    assert await find_suspects(client.services, "comments") == []


async def test_what_cannot_be_marked_is_refused(client: Client) -> None:
    ada, bob = client.member("ada"), client.member("bob")
    comment = await post(ada)
    reply = await post(bob, rating=None, inReplyTo=comment["id"])
    assert (await mark(ada, comment))["code"] == "NOT_ALLOWED"
    assert (await mark(ada, reply))["code"] == "INVALID_INPUT"
    assert (await mark(client, comment))["code"] == "NOT_SIGNED_IN"
    moderator = client.member("mod", Role.MODERATOR)
    await moderator.ask(MODERATE_COMMENT, input={"comment": comment["id"], "status": "PENDING"})
    assert (await mark(moderator, comment))["code"] == "CONFLICT"
    assert (await mark(bob, comment))["code"] == "NOT_FOUND"
    assert await number(moderator, comment) == (0, False)


async def test_the_most_helpful_come_first_and_then_the_newest(client: Client) -> None:
    """On pages of any size, with and without a filter; one that is edited or hidden is where it belongs."""
    ada = client.member("ada")
    posted = [await post(ada, rating=place % 5 + 1, language="en", body=f"{place}") for place in range(9)]
    for voter, places in (("bob", (1, 4, 6)), ("cleo", (4, 6)), ("dan", (4,))):
        for place in places:
            await mark(client.member(voter), posted[place])
    expected = ["4", "6", "1", "8", "7", "5", "3", "2", "0"]

    async def is_shown(bodies: list[str], **filters: Any) -> bool:
        return await traversed(client, 2, **filters) == bodies

    await until(lambda: is_shown(expected))
    for size in (1, 3, 4, 20):
        assert await traversed(client, size) == expected
    await ada.ask(EDIT_COMMENT, input={"comment": posted[6]["id"], "rating": 5})
    await until(lambda: is_shown(["4", "6"], ratings=[5]))
    moderator = client.member("mod", Role.MODERATOR)
    for status, first in (("REJECTED", "6"), ("PUBLISHED", "4")):
        await moderator.ask(MODERATE_COMMENT, input={"comment": posted[4]["id"], "status": status})
        assert (await traversed(client, 3))[0] == first
    await ada.ask(DELETE_COMMENT, input={"comment": posted[4]["id"]})
    await until(lambda: is_shown([body for body in expected if body != "4"]))
    assert await find_suspects(client.services, "comments") == []


async def test_the_most_helpful_are_read_forwards_only(client: Client) -> None:
    comment = await post(client.member("ada"))
    await mark(client.member("bob"), comment)
    cursor = (await client.ask(PAGE, first=1))["pageInfo"]["endCursor"]
    for window in ({"last": 2}, {"before": cursor, "last": 1}):
        assert await client.code(PAGE, **window) == "BAD_USER_INPUT"


async def test_marks_are_taken_back_since_a_time(one_client: Client) -> None:
    """When the member made them counts, not when the comment was first marked."""
    bob, cleo, mod = one_client.member("bob"), one_client.member("cleo"), one_client.member("mod", Role.MODERATOR)
    before, after = [await post(one_client.member("ada")) for _ in range(2)]
    await mark(cleo, after)
    await mark(bob, before)
    await asyncio.sleep(0.01)
    since = iso(utc_now())
    await mark(bob, after)
    user = (await bob.ask("{ viewer { id } }"))["id"]
    job = await mod.ask(TAKE_BACK, input={"user": user, "parts": ["COMMENTS"], "since": since})
    assert (await ended(mod, job["job"]["id"]))["done"] == 1
    assert [await number(bob, comment) for comment in (before, after)] == [(1, True), (1, False)]


async def test_erasing_a_member_takes_their_marks_back(client: Client) -> None:
    comment = await post(client.member("ada"))
    bob = client.member("bob")
    await mark(bob, comment)
    await mark(client.member("cleo"), comment)
    user = (await bob.ask("{ viewer { id } }"))["id"]
    admin = client.member("root", Role.ADMIN)
    job = await admin.ask(ERASE, input={"user": user, "contributions": "REMOVE"})
    await ended(admin, job["job"]["id"])
    assert await number(client, comment) == (1, False)
    assert await find_suspects(client.services, "comments") == []
