"""Proofs of work: who is asked for one, and that a solution counts once, for whom it was asked, for ten minutes."""

import asyncio
import hashlib
from dataclasses import replace
from datetime import timedelta
from typing import Any

from datastore.dynamo import StorageFailed
from resolvers.people.challenges import MOST
from resolvers.requests.context import Role
from tests.client import Client
from tests.intercepted import beforehand
from tests.queries import MODERATE_COMMENT, POST_COMMENT, mutation

CHALLENGE = "{ challenge { token salt target expiresAt } }"
GUEST = mutation("signInAsGuest", "SignedIn", "token user { id isGuest }")
COMMENT = {"product": "42", "language": "en", "body": "Good."}


async def test_who_is_asked_for_a_solution_uses_up_no_guest_of_the_network(one_client: Client) -> None:
    """A page learns by a refusal that one is asked for: so half of the network's guests would be refusals."""
    asks(one_client, "guests")
    one_client.services.policy = replace(one_client.services.policy, new_guests_per_address="2/hour")
    for name in ("Ann", "Ben"):
        visitor = one_client.visitor()
        assert await visitor.code(GUEST, input={"name": name}) == "CHALLENGE_NEEDED"
        solution = solved(await visitor.ask(CHALLENGE))
        assert (await visitor.ask(GUEST, input={"name": name, "solution": solution}))["token"]


def asks(client: Client, *of: str) -> None:
    client.services.policy = replace(
        client.services.policy,
        challenge=frozenset(of),
        guests=frozenset({"comments"}),
        sign_in_methods=frozenset({"GUEST"}),
    )


def solved(challenge: dict[str, str]) -> str:
    """As a page solves it: the salt and the number give the target."""
    salt, target = challenge["salt"], challenge["target"]
    number = next(n for n in range(MOST) if hashlib.sha256(f"{salt}{n}".encode()).hexdigest() == target)
    return f"{challenge['token']}:{number}"


async def comment(client: Client, solution: str | None = None, **more: Any) -> Any:
    return await client.ask(POST_COMMENT, input={**COMMENT, "solution": solution, **more})


async def test_nothing_is_asked_by_default(one_client: Client) -> None:
    """Of nobody, and nothing more is read."""
    ada = one_client.member("ada")
    assert [await client.ask(CHALLENGE) for client in (one_client, ada)] == [None, None]
    assert "comment" in await comment(ada)


async def test_members_solve_one_until_a_comment_of_theirs_is_published(client: Client) -> None:
    """Moderators never. One that waits for a moderator does not count."""
    asks(client, "first")
    client.services.policy = replace(client.services.policy, premoderation=True)
    ada, mod = client.member("ada"), client.member("mod", Role.MODERATOR)
    refused = await comment(ada)
    assert (refused["code"], refused["path"]) == ("CHALLENGE_NEEDED", ["input", "solution"])
    posted = await comment(ada, solved(await ada.ask(CHALLENGE)))
    assert (await comment(ada))["code"] == "CHALLENGE_NEEDED"
    await mod.ask(MODERATE_COMMENT, input={"comment": posted["comment"]["id"], "status": "PUBLISHED"})
    assert await ada.ask(CHALLENGE) is None
    assert "comment" in await comment(ada)
    assert await mod.ask(CHALLENGE) is None
    assert "comment" in await comment(mod)
    assert await client.ask(CHALLENGE) is None


async def test_a_solution_counts_once(client: Client) -> None:
    """Also if it is sent many times at once; with an idempotency key a repeat is the same comment."""
    asks(client, "first")
    client.services.policy = replace(client.services.policy, premoderation=True)  # one that is published frees the rest
    ada = client.member("ada")
    one = solved(await ada.ask(CHALLENGE))
    answers = await asyncio.gather(*(comment(ada, one, body=f"{number}") for number in range(5)))
    assert sum("comment" in answer for answer in answers) == 1
    assert {answer["code"] for answer in answers if "code" in answer} == {"CHALLENGE_NEEDED"}
    bob = client.member("bob")
    solution = solved(await bob.ask(CHALLENGE))
    first = await comment(bob, solution, idempotencyKey="k")
    assert await comment(bob, solution, idempotencyKey="k") == first


async def test_a_solution_counts_for_the_repeat_of_a_request_that_could_not_be_carried_out(one_client: Client) -> None:
    """Its refusal asks for the same again, with the same key. For anything else the solution is spent."""
    asks(one_client, "first", "guests")
    ada, bob = one_client.member("ada"), one_client.member("bob")
    solution = solved(await one_client.visitor().ask(CHALLENGE))  # for everybody of the network

    async def fail() -> None:
        raise StorageFailed("the disk is full")

    with beforehand(one_client.services.table, fail, about="COMMENT#") as failed:
        assert (await comment(ada, solution, idempotencyKey="k"))["code"] == "UNAVAILABLE"
    assert failed
    for member, key in ((ada, None), (ada, "another"), (bob, "k")):
        assert (await comment(member, solution, idempotencyKey=key))["code"] == "CHALLENGE_NEEDED"
    assert (await comment(ada, solution, idempotencyKey="k", body="Bad."))["code"] == "CHALLENGE_NEEDED"
    assert "comment" in await comment(ada, solution, idempotencyKey="k")


async def test_a_solution_of_something_else_is_none(one_client: Client) -> None:
    """Altered, of another member on another network, too old, or with another number."""
    asks(one_client, "first")
    ada, bob = one_client.member("ada"), one_client.member("bob")
    challenge = await ada.ask(CHALLENGE)
    token, _, number = solved(challenge).rpartition(":")
    numbers = [str(int(number) + 1), f"0{number}", "9" * 1000, ""]
    for solution in ("x", ":", f"{token[:-4]}AAAA:{number}", *(f"{token}:{wrong}" for wrong in numbers)):
        assert (await comment(ada, solution))["code"] == "CHALLENGE_NEEDED", solution
    assert (await comment(bob, f"{token}:{number}"))["message"].startswith("Your browser's puzzle was somebody else's")
    later = one_client.services.clock() + timedelta(minutes=10)
    clock, one_client.services.clock = one_client.services.clock, lambda: later
    assert "too old" in (await comment(ada, f"{token}:{number}"))["message"]
    one_client.services.clock = clock
    assert "comment" in await comment(ada, f"{token}:{number}")


async def test_guests_solve_one_to_sign_in_and_for_each_comment(one_client: Client) -> None:
    """A visitor is told so by `challenge`; members are not asked."""
    asks(one_client, "guests")
    visitor = one_client.visitor()
    refused = await visitor.ask(GUEST, input={"name": "Gus"})
    assert (refused["code"], refused["path"]) == ("CHALLENGE_NEEDED", ["input", "solution"])
    solution = solved(await visitor.ask(CHALLENGE))
    given = {"name": "Gus", "solution": solution}
    signed_in = await visitor.ask(GUEST, input=given)
    assert signed_in["user"]["isGuest"]
    assert (await one_client.visitor().ask(GUEST, input=given))["code"] == "CHALLENGE_NEEDED"
    guest = one_client.visitor()
    guest.http.headers["authorization"] = f"Bearer {signed_in['token']}"
    for _ in range(2):
        assert (await comment(guest))["code"] == "CHALLENGE_NEEDED"
        assert "comment" in await comment(guest, solved(await guest.ask(CHALLENGE)))
    assert "comment" in await comment(one_client.member("ada"))
