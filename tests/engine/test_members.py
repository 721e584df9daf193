"""Members under ids of their own: who they are, made once however often and wherever they come at once, their roles."""

import asyncio
import json
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from datastore.dynamo import Table
from datastore.members import suspensions as suspension_store
from datastore.members.sessions import begin_session, new_session
from datastore.members.suspensions import MemberRoles
from datastore.people.identities import (
    IDENTITY,
    SignInMethod,
    add_identity,
    comparable_address,
    of_address,
    of_issuer,
    read_identities,
)
from datastore.people.profiles import PROFILE, read_profile
from datastore.refusals import Conflict
from datastore.values.ids import is_ulid
from resolvers.jobs.running import JobRunner
from resolvers.members.suspensions import Suspensions
from resolvers.people.identities import Members
from resolvers.requests.context import Role, utc_now
from resolvers.values.node_ids import node_id, parse_node_key
from server.__main__ import app
from server.auth.tokens import mint
from server.settings import Settings
from tests.authorisation.world import machine_of
from tests.client import Client, serving
from tests.command import on_table
from tests.erasing import ERASE, items_naming
from tests.intercepted import Send, intercepted
from tests.members import introduce
from tests.queries import POST_COMMENT, UPDATE_PROFILE, mutation
from tests.service import running_service
from tests.sign_in import in_session, with_session
from tests.vocabulary import public_list
from tests.waiting import LONGEST

ME = "{ viewer { id name joinedAt isGuest roles identities { method label since lastUsedAt } } }"
SET_ROLES = mutation("setRoles", "RolesSet", "user { id roles }")
REMOVE = mutation("removeIdentity", "IdentityRemoved", "user { identities { method label } }")
OTHERS = {"eve": "bob", "bob": "eve"}
SECRET = "a secret of at least 32 characters"
REVIEW = {"product": "mug", "language": "en", "rating": 5, "body": "Good."}
AS_GUEST = mutation("signInAsGuest", "SignedIn", "token")
POST_AS = mutation("postComment", "CommentPosted", "comment { author { name } }")
TOKENS = SignInMethod.SITE, "ringside token"


def stranger(client: Client, user: str, **claims: Any) -> Client:
    """The bearer of a token whom nobody has introduced."""
    return Client(client.served, client.settings, mint(client.settings, user, **claims))


# ── who they are ──


async def test_a_stranger_who_only_reads_writes_nothing(client: Client, table: Table) -> None:
    """With a token, on any process; what they read is what a new member would read."""
    reader = stranger(client, "auth0|7f", name="Ada")
    await client.caught_up("nothing is left to write")
    before = [item async for item in table.scan_items(consistent=True)]
    assert await reader.ask('{ comments(product: "mug") { nodes { id } } myLeagues: boards { nodes { slug } } }')
    assert [item async for item in table.scan_items(consistent=True)] == before


async def test_a_stranger_who_reads_the_days_of_a_list_is_nobody(one_client: Client, one_table: Table) -> None:
    """Which days have begun depends on a member's time zone; strangers have UTC, as members who have set none."""
    words, later = await public_list(one_client), datetime.now(UTC).date() + timedelta(days=2)
    reader, before = stranger(one_client, "auth0|7f", name="Ada"), [each async for each in one_table.scan(PROFILE)]
    drawn = await reader.ask("query ($list: ID!) { wordList(id: $list) { dailyWord { date } } }", list=words)
    past = await reader.ask("query ($list: ID!) { wordList(id: $list) { review { nodes { date } } } }", list=words)
    assert past["review"]["nodes"] == [drawn["dailyWord"]]
    ahead = "query ($on: Date!) { dailyWords(on: $on) { date } }"
    assert await reader.code(ahead, on=str(later)) == "BAD_USER_INPUT"
    assert [each async for each in one_table.scan(PROFILE)] == before


@pytest.mark.lagging
async def test_a_new_member_has_their_name_at_once(client: Client) -> None:
    """In all that they read and write first, although plain reads are behind; and on another process."""
    ada = stranger(client, "ada", name="Ada")
    assert (await ada.ask(ME))["name"] == "Ada"
    async with serving(client.settings) as elsewhere:
        assert (await stranger(elsewhere, "ada").ask(ME))["name"] == "Ada"
    guests, methods = frozenset({"comments"}), frozenset({"GUEST"})
    client.services.policy = replace(client.services.policy, guests=guests, sign_in_methods=methods)
    token = (await client.visitor().ask(AS_GUEST, input={"name": "Gus"}))["token"]
    gus = Client(client.served, client.settings, token)
    for member, name in ((stranger(client, "bob", name="Bob"), "Bob"), (gus, "Gus")):
        posted = await member.ask(POST_AS, input=REVIEW)
        assert posted["comment"]["author"]["name"] == name


async def test_a_member_has_an_id_that_says_nothing_about_them(client: Client, table: Table) -> None:
    """What their issuer calls them is in one item, which leads to them, and in no answer to anybody else."""
    ada = stranger(client, "auth0|7f#secret", name="Ada", email="ada@example.com")
    me = await ada.ask(ME)
    assert is_ulid(parse_node_key("User", me["id"]))
    assert (me["name"], me["isGuest"], me["roles"]) == ("Ada", False, ["member"])
    assert [(one["method"], one["label"]) for one in me["identities"]] == [("SITE", "ringside token")]
    await ada.ask(POST_COMMENT, input=REVIEW)
    comments = (await client.ask('{ comments(product: "mug") { nodes { author { id } } } }'))["nodes"]
    assert [comment["author"]["id"] for comment in comments] == [me["id"]]
    assert (await ada.ask(ME))["id"] == me["id"]
    naming = await items_naming(table, "7f#secret")
    assert [json.loads(item)["pk"]["S"].startswith("IDENTITY#SITE#") for item in naming] == [True]
    shown = await client.ask(
        "query ($id: ID!) { user(id: $id) { name isGuest roles identities { label } } }", id=me["id"]
    )
    assert shown == {"name": "Ada", "isGuest": False, "roles": None, "identities": None}


async def test_two_hundred_first_requests_on_two_processes_make_one_member(
    one_table: Table, settings: Settings
) -> None:
    """Mutations and questions who they are, all at once."""
    settings = settings.model_copy(update={"secrets": (SecretStr(SECRET),)})
    patient = {"RINGSIDE_SECRETS": SECRET, "RINGSIDE_REQUEST_TIMEOUT": f"{LONGEST:.0f}"}
    variables = on_table(settings.dynamodb_url, settings.table, **patient)
    headers = {"authorization": f"Bearer {mint(settings, 'everywhere', name='Ada')}"}
    with ExitStack() as stack:
        urls = [stack.enter_context(running_service(variables)).url for _ in range(2)]
        async with httpx.AsyncClient(headers=headers, timeout=LONGEST) as http:

            async def first(number: int) -> str:
                document: dict[str, Any] = {"query": ME}
                if number % 2:
                    document = {"query": UPDATE_PROFILE, "variables": {"input": {"timeZone": "Europe/Vienna"}}}
                answer = (await http.post(f"{urls[number % 2]}/graphql", json=document)).json()
                found = answer["data"].get("viewer") or answer["data"]["updateProfile"]["user"]
                return str(found["id"])

            ids = set(await asyncio.gather(*map(first, range(200))))
    assert len(ids) == 1
    assert [profile.name async for profile in one_table.scan(PROFILE, consistent=True)] == ["Ada"]
    assert len([one async for one in one_table.scan(IDENTITY, consistent=True)]) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ada@Example.COM", "ada@example.com"),
        ("ada@bücher.example", "ada@xn--bcher-kva.example"),
        ("ada@BÜCHER.example", "ada@bücher.example"),
    ],
)
def test_spellings_of_one_address_are_one_identity(one: str, other: str) -> None:
    assert of_address(one).key == of_address(other).key
    assert of_address(one).label == one


def test_ss_is_another_domain_than_sharp_s() -> None:
    assert comparable_address("a@weiß.example") != comparable_address("a@weiss.example")


async def test_an_identity_is_of_one_member_and_the_last_one_stays(client: Client, table: Table) -> None:
    """Another member's is refused; added at once by two members it is one's; a member never loses all."""
    ada, bob = client.member("ada"), client.member("bob")
    for member in (ada, bob):
        await member.ask(UPDATE_PROFILE, input={"name": "Name"})
    shown, unit = of_address("ada@example.com"), client.services.unit()
    added = await asyncio.gather(
        *(add_identity(table, user, shown, unit) for user in ("ada", "bob")), return_exceptions=True
    )
    assert [type(one) for one in added if isinstance(one, BaseException)] == [Conflict]
    owner, other = (ada, bob) if not isinstance(added[0], BaseException) else (bob, ada)
    method, label = TOKENS
    only = {"method": method, "label": label}
    assert (await other.ask(REMOVE, input=only))["code"] == "CONFLICT"
    both = [only, {"method": "EMAIL", "label": "ada@example.com"}]
    answers = await asyncio.gather(*(owner.answer(REMOVE, input=each) for each in both))
    profile = await read_profile(table, "ada" if owner is ada else "bob")
    assert profile is not None
    assert len(profile.identities) == 1
    assert len(answers) == 2  # the token may not sign in any more by the time of the second
    left = await read_identities(table, [shown.key, of_issuer(method, "", profile.user).key])
    assert [str(one.key) for one in left.values()] == list(profile.identities)


async def test_an_introduced_member_joins_at_the_first_sign_in(client: Client) -> None:
    """As an import or `ringside member role` makes them; once, also on two processes."""
    shown, services = of_issuer(SignInMethod.SITE, "", "later"), client.services
    user = await services.get(Members).introduce(shown, name="Later")
    assert user == await services.get(Members).introduce(shown, name="Another name")
    before = await read_profile(services.table, user)
    services.clock = lambda: utc_now() + timedelta(days=3)
    other = Members(services)  # as another process has
    await asyncio.gather(services.get(Members).make(shown), other.make(shown))
    me = await stranger(client, "later").ask(ME)
    assert (parse_node_key("User", me["id"]), me["name"]) == (user, "Later")
    assert before is not None
    assert me["joinedAt"] > before.joined_at.isoformat()
    assert services.activity["new_members"] == 1
    await other.close()


@pytest.mark.parametrize("introduced", [True, False])
async def test_who_joins_is_counted_although_the_answer_was_lost(client: Client, *, introduced: bool) -> None:
    shown, services = of_issuer(SignInMethod.SITE, "", "late"), client.services
    if introduced:
        await services.get(Members).introduce(shown, name="Late")
    sent: list[str] = []

    async def call(name: str, send: Send) -> Any:
        answer = await send()
        sent.append(name)
        if len(sent) == 1:
            raise TimeoutError
        return answer

    with intercepted(services.table, ("transact_write_items",), call):
        await services.get(Members).make(shown)
    assert services.activity["new_members"] == 1


@pytest.mark.parametrize("name", ["\u200b", "\u3164\u2800", "a" + "\u0301" * 60])
async def test_a_name_from_elsewhere_that_cannot_be_shown_is_none(client: Client, name: str) -> None:
    """Nobody may choose such a one here: it is invisible, or covers the lines around it."""
    me = await stranger(client, "shy", name=name).ask(ME)
    assert me["name"].startswith("Member ")


# ── roles ──


async def test_roles_are_given_and_end(client: Client) -> None:
    """Besides those that a token gives; on open connections they end at the next check."""
    root, eve = await in_session(client, "root", Role.ADMIN), client.member("eve")
    me = (await eve.ask(ME))["id"]
    assert (await root.ask(SET_ROLES, input={"user": me, "roles": ["editor", "moderator", "member"]}))["user"] == {
        "id": me,
        "roles": ["member", "moderator", "editor"],
    }
    assert (await eve.ask("{ journal(first: 1) { nodes { kind note } } }"))["nodes"] == [
        {"kind": "member.rolesSet", "note": "moderator, editor"}
    ]
    await root.ask(SET_ROLES, input={"user": me, "roles": []})
    assert await eve.code("{ journal(first: 1) { nodes { kind } } }") == "NOT_ALLOWED"
    for somebody in (eve, client.member("mia", Role.MODERATOR, Role.EDITOR)):
        assert await somebody.code(SET_ROLES, input={"user": me, "roles": ["admin"]}) == "NOT_ALLOWED"
    assert await root.code(SET_ROLES, input={"user": me, "roles": ["king"]}) == "INVALID_INPUT"
    assert await root.code(SET_ROLES, input={"user": me[:-4], "roles": []}) in ("NOT_FOUND", "INVALID_INPUT")


async def test_another_process_learns_of_roles(client: Client) -> None:
    """By what every process reads again and again."""
    root, rights = await in_session(client, "root", Role.ADMIN), client.services.get(Suspensions)
    me = (await client.member("eve").ask(ME))["id"]
    await root.ask(SET_ROLES, input={"user": me, "roles": ["admin"]})
    other = Suspensions(client.services)
    await other.refresh()
    assert other.roles_of("eve") == rights.roles_of("eve") == {Role.ADMIN}


async def test_there_is_always_an_admin_left(client: Client) -> None:
    """Two who take their own away at once: one of them stays."""
    admins = {user: await in_session(client, user, Role.ADMIN) for user in ("eve", "bob")}
    ids = {user: (await member.ask(ME))["id"] for user, member in admins.items()}
    codes = await asyncio.gather(
        *(member.answer(SET_ROLES, input={"user": ids[user], "roles": []}) for user, member in admins.items())
    )
    outcomes = sorted(answer["data"]["setRoles"].get("code", "SET") for answer in codes)
    assert outcomes == ["CONFLICT", "SET"]


async def test_an_erased_admin_is_not_the_one_who_is_left(one_client: Client) -> None:
    """From the answer on, although nobody has worked on the job yet."""
    one_client.services.get(JobRunner).start({})  # this process works on none
    eve, bob = [await in_session(one_client, user, Role.ADMIN) for user in ("eve", "bob")]
    ids = [(await each.ask(ME))["id"] for each in (eve, bob)]
    assert "job" in await bob.ask(ERASE, input={"user": ids[1], "contributions": "REMOVE"})
    assert await eve.code(SET_ROLES, input={"user": ids[0], "roles": []}) == "CONFLICT"


async def test_of_two_admins_who_take_the_other_s_role_away_at_once_one_stays(client: Client) -> None:
    admins = {user: await in_session(client, user, Role.ADMIN) for user in ("eve", "bob")}
    ids = {user: (await member.ask(ME))["id"] for user, member in admins.items()}
    answers = await asyncio.gather(
        *(admins[user].answer(SET_ROLES, input={"user": ids[other], "roles": []}) for user, other in OTHERS.items())
    )
    outcomes = sorted(answer["data"]["setRoles"].get("code", "SET") for answer in answers)
    assert outcomes == ["NOT_ALLOWED", "SET"]


async def test_an_admin_no_more_gives_no_roles_where_that_is_not_known_yet(client: Client) -> None:
    """Nor takes their own back: another process has taken it away a moment ago."""
    root, eve = await in_session(client, "root", Role.ADMIN), await in_session(client, "eve", Role.ADMIN)
    ids = [(await each.ask(ME))["id"] for each in (root, eve)]
    services, roles = client.services, MemberRoles(with_session("eve"), ())
    await suspension_store.set_roles(services.table, services.unit(), None, roles)
    for user, given in ((ids[1], ["admin"]), (ids[1], []), (ids[0], [])):
        assert await eve.code(SET_ROLES, input={"user": user, "roles": given}) == "NOT_ALLOWED"


async def test_roles_are_given_in_a_session_of_the_service_alone(client: Client) -> None:
    """What else an admin may hold can leak, or works on another page, where they are told of no role that they lack."""
    me, services = (await client.member("eve").ask(ME))["id"], client.services
    root = await in_session(client, "root", Role.ADMIN)
    user = parse_node_key("User", (await root.ask(ME))["id"])
    elsewhere, token = new_session(user, "EMAIL", "https://fans.example", services.clock())
    await begin_session(services.table, services.unit(), None, elsewhere)
    page = Client(client.served, client.settings, token)
    page.http.headers["origin"] = "https://fans.example"
    assert (await page.ask(ME))["roles"] == ["member"]
    services.policy = replace(services.policy, role_origins=frozenset({"https://fans.example"}))
    assert (await page.ask(ME))["roles"] == ["member", "admin"]
    key = await machine_of(root, Role.ADMIN)
    for admin, code in (
        (page, "NOT_ALLOWED"),
        (client.member("minted", Role.ADMIN), "NOT_ALLOWED"),
        (key, "NOT_SIGNED_IN"),
    ):
        assert await admin.code(SET_ROLES, input={"user": me, "roles": ["editor"]}) == code
    assert (await root.ask(SET_ROLES, input={"user": me, "roles": ["editor"]}))["user"]["roles"] == ["member", "editor"]


# ── the command line ──


@pytest.fixture
def at_table(one_client: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    settings = one_client.settings
    monkeypatch.setenv("RINGSIDE_DYNAMODB_URL", f"{settings.dynamodb_url}")
    monkeypatch.setenv("RINGSIDE_TABLE", settings.table)
    monkeypatch.setenv("RINGSIDE_SECRETS", SECRET)
    return one_client


async def command(*arguments: str) -> str:
    result = await asyncio.to_thread(CliRunner().invoke, app, ["member", *arguments])
    return result.output if result.exception is None else f"{result.exception}"


async def test_the_first_admin_is_made_by_a_command(at_table: Client) -> None:
    """An address that nobody signs in by gets a member."""
    told = await command("role", "ada@example.com", "--role", "admin")
    assert "Nobody has signed in by ada@example.com yet" in told
    assert "has the roles admin" in told
    assert "Nobody has signed in" not in await command("role", "ada@example.com", "--role", "admin")
    table = at_table.services.table
    identity = next(iter((await read_identities(table, [of_address("Ada@example.com").key])).values()))
    await at_table.services.get(Suspensions).refresh()
    assert at_table.services.get(Suspensions).roles_of(identity.user or "") == {Role.ADMIN}
    assert "has no role" in await command("role", node_id("User", identity.user or ""))
    assert "is no member's id" in await command("role", "ada")
    assert "is no member's id" in await command("role", node_id("User", "nobody"))


async def test_a_command_takes_no_roles_from_nobody(at_table: Client) -> None:
    """Of a mistyped address it would say that it has none, while the member keeps theirs; nor does it make a member."""
    await command("role", "ada@example.com", "--role", "admin")
    for roles in ((), ("--role", "member")):  # which every member has, and nobody is given
        assert "Nobody signs in by ada@exmaple.com" in await command("role", "ada@exmaple.com", *roles)
    assert len([profile async for profile in at_table.services.table.scan(PROFILE, consistent=True)]) == 1
    assert "ada@example.com has no role." in await command("role", "ada@example.com")


async def test_members_move_to_another_issuer(at_table: Client) -> None:
    """Once; who has signed in by both keeps both members, and who has two accounts can tell them apart."""
    table, unit = at_table.services.table, at_table.services.unit()
    old, new = "https://old.example/", "https://new.example/"
    members = at_table.services.get(Members)
    users = [await members.make(of_issuer(SignInMethod.PROVIDER, old, sub)) for sub in ("1", "2", "3")]
    taken = await members.make(of_issuer(SignInMethod.PROVIDER, new, "3"))
    await add_identity(table, users[0], of_issuer(SignInMethod.PROVIDER, old, "one more"), unit)
    assert unit.key is None
    assert "1 others do not" in await command("issuer", old, new)
    keys = [of_issuer(SignInMethod.PROVIDER, new, sub).key for sub in ("1", "one more", "2", "3")]
    found = await read_identities(table, keys)
    assert [found[key].user for key in keys] == [users[0], *users[:2], taken]
    assert {found[key].label for key in keys[:2]} == {"new.example", "new.example (2)"}
    assert "0 members sign in" not in await command("issuer", old, "https://third.example/")


async def test_members_of_tests_are_introduced_once(one_client: Client) -> None:
    for _ in range(2):
        await introduce(one_client.services.table, "ada")
    assert (await one_client.member("ada").ask(ME))["name"] == "Ada"
