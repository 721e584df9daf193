"""Members are found by moderators: by the beginning of a name, an id, or for admins an address."""

import pytest

from datastore.dynamo import Window, metered
from datastore.people.identities import of_address
from datastore.people.profiles import PROFILE, Profile, read_members_page
from resolvers.people.identities import Members
from resolvers.requests.context import Role
from resolvers.values.node_ids import node_id
from server.auth.tokens import mint
from tests.client import Client, pages
from tests.intercepted import beforehand
from tests.queries import UPDATE_PROFILE

MEMBERS = """query ($search: String, $first: Int, $after: String) {
  members(search: $search, first: $first, after: $after) {
    nodes { name }
    pageInfo { hasNextPage endCursor }
  }
}"""


async def names(client: Client, search: str | None = None) -> list[str]:
    return [node["name"] for node in (await client.ask(MEMBERS, search=search))["nodes"]]


async def join(client: Client, name: str) -> Client:
    """A new member of this name."""
    member = Client(client.served, client.settings, mint(client.settings, f"sub of {name}", name=name))
    await member.ask("{ viewer { id } }")
    return member


async def test_members_are_listed_newest_first_and_found_by_the_beginning_of_their_name(one_client: Client) -> None:
    """In whatever case and form, in the order of their names."""
    mod = one_client.member("max", Role.MODERATOR)
    for name in ("Ada Abara", "ADAM", "Berta", "ａｄａ wide", "#hash", "Straße", "a" * 80):
        await join(one_client, name)
    assert (await names(mod))[-7:][:3] == ["a" * 80, "Straße", "#hash"]
    assert await names(mod, "ada") == ["Ada Abara", "ａｄａ wide", "ADAM"]
    assert await names(mod, " ADA ") == ["Ada Abara", "ａｄａ wide", "ADAM"]
    assert await names(mod, "strass") == ["Straße"]
    assert await names(mod, "#") == ["#hash"]
    assert await names(mod, "a" * 80) == ["a" * 80]
    assert await names(mod, "nobody") == []


async def test_pages_of_a_search_show_each_member_once(one_client: Client) -> None:
    mod = one_client.member("max", Role.MODERATOR)
    for number in range(12):
        await join(one_client, f"Ada {number:02d}")
    shown = [node["name"] for node in await pages(mod, MEMBERS, size=5, search="ada")]
    assert shown == [f"Ada {number:02d}" for number in range(12)]


async def test_a_page_of_members_reads_little_more_than_it_shows(one_client: Client) -> None:
    """Members are spread over sixteen keys by chance, so few of a page's come from each."""
    table, now = one_client.services.table, one_client.services.clock()
    known = ("EMAIL.somebody",)
    members = [Profile(f"m{number:04d}", f"Ada {number:04d}", now, identities=known) for number in range(1_600)]
    await table.write_many(map(PROFILE.put, members))
    await one_client.caught_up("the indexes list everybody")
    for beginning, first in (("", "Ada 1599"), ("ada", "Ada 0000")):
        with metered() as spent:
            page = await read_members_page(table, beginning, Window(100, one_client.services.seal))
        assert (len(page.nodes), page.nodes[0].name) == (100, first)
        assert spent.read_units < 20


async def test_a_changed_name_is_found_and_the_old_one_is_not(one_client: Client) -> None:
    mod, ada = one_client.member("max", Role.MODERATOR), await join(one_client, "Ada")
    await ada.ask(UPDATE_PROFILE, input={"name": "Zoe"})
    assert await names(mod, "zo") == ["Zoe"]
    assert await names(mod, "ada") == []


async def test_a_name_that_is_changed_while_another_setting_is_stored_is_found(one_client: Client) -> None:
    """Both began from the same profile: what does not change the name does not bring the old one back."""
    mod, ada = one_client.member("max", Role.MODERATOR), await join(one_client, "Ada")

    async def rename() -> None:
        await ada.ask(UPDATE_PROFILE, input={"name": "Zoe"})

    with beforehand(one_client.services.table, rename, about="reply_emails") as renamed:
        await ada.ask(UPDATE_PROFILE, input={"replyEmails": True})
    assert renamed
    assert await names(mod, "ada") == []
    assert len(await names(mod, "zo")) == 1


async def test_an_id_finds_its_member_and_an_address_does_for_admins_only(one_client: Client) -> None:
    mod, root = one_client.member("max", Role.MODERATOR), one_client.member("root", Role.ADMIN)
    ada = await join(one_client, "Ada")
    id_ = (await ada.ask("{ viewer { id } }"))["id"]
    assert await names(mod, id_) == ["Ada"]
    assert await names(mod, node_id("User", "nobody")) == []
    services = one_client.services
    await services.get(Members).make(of_address("ada@example.com"), name="Ada by mail")
    assert await names(root, "Ada@Example.com") == ["Ada by mail"]
    assert await names(root, "bob@example.com") == []
    assert await names(mod, "ada@example.com") == []


@pytest.mark.parametrize("search", ["x" * 300, "e" + "\u0301" * 40])
async def test_a_search_that_is_too_much_is_refused_or_finds_nothing(one_client: Client, search: str) -> None:
    answer = await one_client.member("max", Role.MODERATOR).answer(MEMBERS, search=search)
    assert "errors" not in answer or answer["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"


async def test_others_find_nobody(one_client: Client) -> None:
    assert await one_client.member("ada").code(MEMBERS) == "NOT_ALLOWED"
    assert await one_client.code(MEMBERS) == "NOT_SIGNED_IN"
