"""Members, over HTTP on every engine."""

import re
from asyncio import gather
from datetime import UTC, datetime, timedelta

import pytest

from datastore.changes.unit_of_work import RECEIPT_LIFETIME
from datastore.people import profiles as profile_store
from datastore.people.profiles import PROFILE, Profile
from resolvers.people import visibility
from resolvers.requests.context import Context, Kind, Role, Viewer, utc_now
from resolvers.values.node_ids import parse_node_key
from server.auth.tokens import mint
from tests.client import Client
from tests.queries import UPDATE_PROFILE


async def test_a_visitor_is_not_a_member(client: Client) -> None:
    """`viewer` is null without a token, and writing is refused."""
    assert await client.ask("{ viewer { id } }") is None
    assert await client.code(UPDATE_PROFILE, input={"name": "Ada"}) == "NOT_SIGNED_IN"


@pytest.mark.quick
async def test_a_member_changes_the_profile(client: Client) -> None:
    """What was given changes, what was not stays, null clears."""
    ada = client.member("ada", name="Ada", email="ada@example.org")
    changed = await ada.ask(UPDATE_PROFILE, input={"name": " Ada  L. ", "timeZone": "Europe/Vienna"})
    assert (changed["user"]["name"], changed["user"]["email"]) == ("Ada L.", "ada@example.org")
    again = await ada.ask(UPDATE_PROFILE, input={"email": None})
    assert again["user"] == {**changed["user"], "email": None}


@pytest.mark.lagging
@pytest.mark.parametrize("nothing", [{}, {"name": None}])
async def test_an_update_that_changes_nothing_answers_with_the_profile(
    client: Client, nothing: dict[str, None]
) -> None:
    """It leaves no occurrence in the journal, and with a key the receipt that refuses another input."""
    ada, moderator = client.member("ada", name="Ada"), client.member("mo", Role.MODERATOR)
    for keyed in ({}, {"idempotencyKey": "nothing"}, {"idempotencyKey": "nothing"}):
        answered = (await ada.ask(UPDATE_PROFILE, input={**nothing, **keyed}))["user"]
        assert answered["name"] == "Ada"
    assert await ada.code(UPDATE_PROFILE, input={"name": "A", "idempotencyKey": "nothing"}) == "IDEMPOTENCY_MISMATCH"
    journal = "query ($user: ID!) { journal(object: $user) { nodes { kind } } }"
    await client.caught_up("the journal shows a change")
    assert await moderator.ask(journal, user=answered["id"]) == {"nodes": []}


async def test_an_idempotency_key_is_free_again_after_a_week(one_client: Client) -> None:
    """Although nothing has removed the expired receipt: another input is carried out, and has a receipt of its own."""
    ada, now = one_client.member("ada"), utc_now()
    first, second = ({"name": name, "idempotencyKey": "k"} for name in ("First", "Second"))
    one_client.services.clock = lambda: now
    assert (await ada.ask(UPDATE_PROFILE, input=first))["user"]["name"] == "First"
    one_client.services.clock = lambda: now + RECEIPT_LIFETIME - timedelta(minutes=1)
    assert await ada.code(UPDATE_PROFILE, input=second) == "IDEMPOTENCY_MISMATCH"
    one_client.services.clock = lambda: now + RECEIPT_LIFETIME + timedelta(minutes=1)
    for _ in range(2):
        assert (await ada.ask(UPDATE_PROFILE, input=second))["user"]["name"] == "Second"
    assert await ada.code(UPDATE_PROFILE, input=first) == "IDEMPOTENCY_MISMATCH"


async def test_a_malformed_email_address_is_refused(one_client: Client) -> None:
    """With the argument's path, and nothing is changed."""
    ada = one_client.member("ada")
    for address in ("a@b..example", "-oQ/tmp@b.example", "a@-x.example"):
        refused = await ada.ask(UPDATE_PROFILE, input={"email": address})
        assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "email"])
    assert await ada.ask("{ viewer { email } }") == {"email": None}


@pytest.mark.parametrize(
    "name", ["Ada\x1b[2J", "Ada\x00", "Ada\x9b31m", "Ada \u202ednuof", "\u2066Ada", "\u200b", "\u3164", "\ufe0f \u180b"]
)
async def test_a_name_that_would_disturb_other_texts_is_refused(one_client: Client, name: str) -> None:
    """Control characters, marks that turn the writing, nothing to see; joiners, which some writings need, are kept."""
    ada = one_client.member("ada")
    refused = await ada.ask(UPDATE_PROFILE, input={"name": name})
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "name"])
    kept = "نمی\u200cدانم 👩\u200d🚀 ❤\ufe0f"
    assert (await ada.ask(UPDATE_PROFILE, input={"name": kept}))["user"]["name"] == kept


@pytest.mark.parametrize(
    "address", ["http://a.example/x", "https:///x", "https://a.example/\x1b[2J", "https://a/\u202eb"]
)
async def test_an_avatar_that_would_disturb_other_texts_is_refused(one_client: Client, address: str) -> None:
    """As a name would be; an address in any writing is kept."""
    ada = one_client.member("ada")
    refused = await ada.ask(UPDATE_PROFILE, input={"avatarUrl": address})
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "avatarUrl"])
    kept = "https://bücher.example/bild?größe=1"
    assert (await ada.ask(UPDATE_PROFILE, input={"avatarUrl": kept}))["user"]["avatarUrl"] == kept


@pytest.mark.parametrize(
    "zone", ["Nowhere", "Europe/__init__/Vienna", "__init__/x", "../UTC", "zone.tab", "é/é", "a" * 300]
)
async def test_a_time_zone_that_does_not_exist_is_refused(one_client: Client, zone: str) -> None:
    """Also one that names a part of the package with the zones; all that exist are kept, old names too."""
    ada = one_client.member("ada")
    refused = await ada.ask(UPDATE_PROFILE, input={"timeZone": zone})
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "timeZone"])
    for kept in ("US/Eastern", "Etc/GMT+5", "UTC"):
        assert (await ada.ask(UPDATE_PROFILE, input={"timeZone": kept}))["user"]["timeZone"] == kept


@pytest.mark.parametrize("zone", ["localtime", "Factory", "posixrules", "posix/UTC", "right/UTC", "europe/vienna"])
async def test_a_file_beside_the_time_zones_is_none_of_them(one_client: Client, zone: str) -> None:
    """The server's own zone, templates, and copies with other seconds; a profile from before works and can change."""
    ada = one_client.member("ada")
    refused = await ada.ask(UPDATE_PROFILE, input={"timeZone": zone})
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "timeZone"])
    assert refused["message"] == "A time zone is an IANA name such as Europe/Vienna."
    profile = Profile("bob", "Bob", datetime.now(UTC), time_zone=zone)
    await one_client.services.table.write(PROFILE.put(profile))
    bob = one_client.member("bob")
    assert (await bob.ask(UPDATE_PROFILE, input={"name": "Robert"}))["user"]["timeZone"] == zone
    assert await bob.ask("{ viewer { streak { current } } }") == {"streak": {"current": 0}}


async def test_an_email_is_shown_to_its_owner_only(client: Client) -> None:
    """Others see the name and no address."""
    ada = client.member("ada", email="ada@example.org")
    user = (await ada.ask(UPDATE_PROFILE, input={"timeZone": "Europe/Vienna"}))["user"]
    assert user["email"] == "ada@example.org"
    seen = await client.member("bob").ask("query ($id: ID!) { user(id: $id) { name email } }", id=user["id"])
    assert seen == {"name": "Ada", "email": None}


@pytest.mark.every_engine
async def test_an_idempotency_key_is_carried_out_once(client: Client) -> None:
    """Ten at once with one key: one is carried out, all get the same answer; another input is refused."""
    ada = client.member("ada")
    given = {"name": "Ada L.", "idempotencyKey": "one"}
    answers = await gather(*(ada.ask(UPDATE_PROFILE, input=given) for _ in range(10)))
    assert all(answer == answers[0] for answer in answers)
    assert await ada.code(UPDATE_PROFILE, input={**given, "name": "Other"}) == "IDEMPOTENCY_MISMATCH"
    assert (await ada.ask("{ viewer { name } }"))["name"] == "Ada L."


async def test_a_member_without_a_name_is_never_shown_by_their_sub(one_client: Client) -> None:
    """Nor by their id: before and after the first write, as the author of records, and by stored profiles."""
    sub = "auth0|6507-secret"
    nameless = Client(one_client.served, one_client.settings, mint(one_client.settings, sub))
    repeated = Client(one_client.served, one_client.settings, mint(one_client.settings, sub, name=sub))
    ctx = Context(one_client.services, Viewer("visitor-x", Kind.VISITOR))
    user = parse_node_key("User", (await nameless.ask("{ viewer { id } }"))["id"])
    shown = [
        (await nameless.ask("{ viewer { name } }"))["name"],
        (await repeated.ask("{ viewer { name } }"))["name"],
        (await visibility.author(ctx, user)).name,
        (await visibility.authors(ctx, [user]))[0].name,
        (await nameless.ask(UPDATE_PROFILE, input={"timeZone": "Europe/Vienna"}))["user"]["name"],
    ]
    stored = await profile_store.read_profile(one_client.services.table, user)
    assert stored is not None
    assert {*shown, stored.name} == {shown[0]}
    assert re.fullmatch("Member [a-z]{4}", shown[0])
