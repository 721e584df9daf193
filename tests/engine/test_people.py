"""Members, over HTTP on every engine."""

from __future__ import annotations

from asyncio import gather

from tests.client import Client
from tests.queries import UPDATE_PROFILE


async def test_a_visitor_is_not_a_member(client: Client) -> None:
    """`viewer` is null without a token, and writing is refused."""
    assert await client.ask("{ viewer { id } }") is None
    assert await client.code(UPDATE_PROFILE, input={"name": "Ada"}) == "NOT_SIGNED_IN"


async def test_a_member_changes_the_profile(client: Client) -> None:
    """What was given changes, what was not stays, null clears."""
    ada = client.member("ada", name="Ada")
    changed = await ada.ask(
        UPDATE_PROFILE, input={"name": " Ada  L. ", "email": "ada@example.org", "timeZone": "Europe/Vienna"}
    )
    assert (changed["user"]["name"], changed["user"]["email"]) == ("Ada L.", "ada@example.org")
    again = await ada.ask(UPDATE_PROFILE, input={"email": None})
    assert again["user"] == {**changed["user"], "email": None}


async def test_an_email_is_shown_to_its_owner_only(client: Client) -> None:
    """Others see the name and no address."""
    ada = client.member("ada")
    user = (await ada.ask(UPDATE_PROFILE, input={"email": "ada@example.org"}))["user"]
    seen = await client.member("bob").ask("query ($id: ID!) { user(id: $id) { name email } }", id=user["id"])
    assert seen == {"name": "Ada", "email": None}


async def test_an_idempotency_key_is_carried_out_once(client: Client) -> None:
    """Ten at once with one key: one is carried out, all get the same answer; another input is refused."""
    ada = client.member("ada")
    given = {"name": "Ada L.", "idempotencyKey": "one"}
    answers = await gather(*(ada.ask(UPDATE_PROFILE, input=given) for _ in range(10)))
    assert all(answer == answers[0] for answer in answers)
    assert await ada.code(UPDATE_PROFILE, input={**given, "name": "Other"}) == "IDEMPOTENCY_MISMATCH"
    assert (await ada.ask("{ viewer { name } }"))["name"] == "Ada L."
