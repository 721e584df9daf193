"""Guests: what they may do by name, and nothing else; and what becomes of them once they have an address."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLScalarType,
    get_nullable_type,
    is_required_input_field,
)

from datastore.dynamo import Table, iso
from datastore.members.sessions import LONGEST
from datastore.people.identities import SignInMethod, of_address
from datastore.people.profiles import read_profile
from resolvers.members.signing_in import begin_for_page
from resolvers.people.identities import Members
from resolvers.requests.context import PROFILE_AGE, Role
from resolvers.values.node_ids import node_id, parse_node_key
from schema import schema
from server.settings import Settings
from tests.client import Client, serving
from tests.command import on_table, ringside
from tests.confirmations import ADA, MailingService, mailing
from tests.erasing import EXPORT
from tests.intercepted import Send, intercepted
from tests.killed import Killed
from tests.queries import CAST_VOTE, DRAW_MATCHUP, POST_COMMENT, SUSPEND, UPDATE_BOARD, UPDATE_PROFILE, mutation
from tests.season import EventEditor, submit
from tests.sign_in import SIGN_IN, SIGN_OUT, VIEWER, asked, signed_in
from tests.voting import add_contenders, editor

AS_GUEST = mutation(
    "signInAsGuest", "SignedIn", "user { id name isGuest } token", refused="code message path retryAfterSeconds"
)
ADD = mutation("addIdentity", "IdentityAdded", "user { id isGuest email }", refused="code message")
ERASE = """
mutation ($user: ID!) { eraseMember(input: { user: $user, contributions: REMOVE }) {
  ... on MemberErasure { job { id } } ... on Refused { code message } } }
"""
ALWAYS = {
    "drawMatchup", "castVote", "requestSubscription", "updateProfile", "editComment", "deleteComment",
    "exportMember", "eraseMember", "requestSignIn", "signIn", "signOut", "addIdentity",
    "continueVisit",
}  # fmt: skip
IF_LISTED = {
    "comments": {"postComment"},
    "predictions": {"submitPrediction"},
    "quizzes": {"startQuiz", "answerQuiz", "reviewWord", "recordQuiz"},
}
GUESTS_MAY_NOT = "Sign in with an address to do this: guests may not."


@pytest.fixture
async def mail(one_table: Table, settings: Settings, tmp_path: Path) -> AsyncIterator[MailingService]:
    """The service with a mail server, where guests may comment."""
    assert one_table.name == settings.table
    async with mailing(settings.model_copy(update={"guests": ("comments",)}), tmp_path) as mail:
        yield mail


async def a_guest(mail: MailingService, name: str = "Ann") -> Client:
    answer = await mail.client.visitor().ask(AS_GUEST, input={"name": name})
    assert answer["user"]["isGuest"] is True, answer
    return with_token(mail, answer)


def with_token(mail: MailingService, signed_in: dict[str, Any]) -> Client:
    return Client(mail.client.served, mail.client.settings, signed_in["token"])


def any_value(kind: Any) -> Any:
    """A value of an input's type, whatever it means."""
    match get_nullable_type(kind):
        case GraphQLInputObjectType(fields=fields):
            return {name: any_value(each.type) for name, each in fields.items() if is_required_input_field(each)}
        case GraphQLList(of_type=inner):
            return [any_value(inner)]
        case GraphQLEnumType(values=values):
            return next(iter(values))
        case GraphQLScalarType(name=name):
            return {"Int": 1, "Boolean": True, "Float": 1.0, "DateTime": "2026-11-20T20:00:00Z"}.get(name, "x")
        case GraphQLNonNull(of_type=inner):
            return any_value(inner)
    raise AssertionError(kind)


async def test_guests_are_refused_wherever_they_are_not_allowed_by_name(mail: MailingService) -> None:
    """Every mutation of the schema is tried: with its least input, which may be wrong in any other way."""
    guest = await a_guest(mail)
    allowed = ALWAYS | IF_LISTED["comments"]
    mutations = schema._schema.mutation_type
    assert mutations is not None
    refused = set()
    for name, field in mutations.fields.items():
        if name in ("eraseMember", "signOut"):
            continue
        kind = field.args["input"].type
        document = f"mutation ($input: {kind}) {{ {name}(input: $input) {{ ... on Refused {{ message }} }} }}"
        answer = await guest.answer(document, input=any_value(kind))
        if ((answer.get("data") or {}).get(name) or {}).get("message") == GUESTS_MAY_NOT:
            refused.add(name)
    assert refused == mutations.fields.keys() - allowed


async def test_a_guest_who_gives_an_address_keeps_what_they_are(mail: MailingService) -> None:
    """By adding one, or by signing in by one from the guest's session; the name alone then signs in nobody."""
    for address, add in ((ADA, True), ("bob@example.org", False)):
        guest = await a_guest(mail)
        viewer = await guest.ask(VIEWER)
        code = await asked(mail, address, guest)
        digits = {"request": code["request"], "code": code["code"]}
        answer = await guest.ask(ADD if add else SIGN_IN, input=digits)
        assert answer["user"]["id"] == viewer["id"]
        member = guest if add else with_token(mail, answer)
        assert await member.ask("{ viewer { isGuest name email } }") == {
            "isGuest": False,
            "name": "Ann",
            "email": address,
        }
        assert (await signed_in(mail, address))["user"]["id"] == viewer["id"]


async def test_no_earlier_session_of_a_guest_is_the_member_s(mail: MailingService) -> None:
    """Someone left a guest signed in on a shared browser and kept a session. Another person gives an address there."""
    for address, add in ((ADA, True), ("bob@example.org", False)):
        guest = await a_guest(mail)
        user = parse_node_key("User", (await guest.ask(VIEWER))["id"])
        profile = await read_profile(mail.client.services.table, user)
        assert profile is not None
        _, kept = await begin_for_page(mail.client.services, profile, SignInMethod.GUEST)
        code = await asked(mail, address, guest)
        answer = await guest.ask(ADD if add else SIGN_IN, input={"request": code["request"], "code": code["code"]})
        statuses = [(await one.post(VIEWER)).status_code for one in (with_token(mail, {"token": kept}), guest)]
        assert statuses == [401, 200 if add else 401]
        assert add or (await with_token(mail, answer).ask(VIEWER))["email"] == address


async def test_an_earlier_session_of_a_guest_ends_with_their_being_one(mail: MailingService) -> None:
    """In one transaction: nobody who kept the session is the member, even if the process is killed right after it."""
    table = mail.client.services.table
    for address, add in ((ADA, True), ("bob@example.org", False)):
        guest = await a_guest(mail)
        profile = await read_profile(table, parse_node_key("User", (await guest.ask(VIEWER))["id"]))
        assert profile is not None
        _, kept = await begin_for_page(mail.client.services, profile, SignInMethod.GUEST)
        code = await asked(mail, address, guest)
        given = {"request": code["request"], "code": code["code"], "idempotencyKey": f"{add}"}
        with suppress(Killed), intercepted(table, ("batch_write_item",), killed):
            await guest.ask(ADD if add else SIGN_IN, input=given)
        assert (await with_token(mail, {"token": kept}).post(VIEWER)).status_code == 401
        assert (await guest.ask(ADD if add else SIGN_IN, input=given))["user"]["id"] == node_id("User", profile.user)


async def killed(_: str, __: Send) -> None:
    raise Killed


async def test_an_ended_session_of_a_guest_gives_them_no_address(mail: MailingService) -> None:
    """Nor on a process that has yet to hear of its end: whoever took it would be who they were for good."""
    guest = await a_guest(mail)
    async with serving(mail.client.settings) as other:
        other.services.clock = mail.clock
        other.keep_what_it_read()
        stolen = Client(other.served, other.settings)
        stolen.http.headers["authorization"] = guest.http.headers["authorization"]
        assert (await stolen.ask(VIEWER))["name"] == "Ann"
        code = await asked(mail, ADA)
        await guest.ask(SIGN_OUT, input={})
        given = {"request": code["request"], "code": code["code"]}
        assert await stolen.code(SIGN_IN, input=given) == "NOT_SIGNED_IN"
    answer = await mail.client.visitor().ask(SIGN_IN, input=given)
    assert answer["user"]["name"] != "Ann"


async def test_a_guest_has_a_name_alone(mail: MailingService) -> None:
    """Which they may change; settings of emails are nothing without an address."""
    guest = await a_guest(mail)
    update = mutation("updateProfile", "ProfileUpdated", "user { name }", refused="code")
    assert await guest.ask(update, input={"name": "Anna"}) == {"user": {"name": "Anna"}}
    for settings in ({"email": ADA}, {"timeZone": "Europe/Vienna"}, {"lockReminderHours": 3}):
        assert await guest.code(update, input=settings) == "NOT_ALLOWED"


async def test_a_guest_does_not_vote_on_a_board_for_members(mail: MailingService) -> None:
    """Whose names anybody makes: not by a ballot from before either; once they have an address, they may."""
    await add_contenders(mail.client, "a", "b", "c")
    guest, update = await a_guest(mail), mutation("updateBoard", "BoardUpdated", "board { electorate }")
    drawn = (await guest.ask(DRAW_MATCHUP))["token"]
    await editor(mail.client).ask(update, input={"slug": "main", "electorate": "MEMBERS"})
    assert await guest.code(CAST_VOTE, token=drawn, verdict="LEFT") == "NOT_SIGNED_IN"
    assert await guest.code(DRAW_MATCHUP) == "NOT_SIGNED_IN"
    member = with_token(mail, await signed_in(mail, ADA, guest))
    assert (await member.ask(CAST_VOTE, token=drawn, verdict="LEFT"))["progress"]["seen"] == 1


async def test_no_command_gives_a_guest_a_role(mail: MailingService, one_table: Table, settings: Settings) -> None:
    guest = await a_guest(mail)
    viewer = (await guest.ask("{ viewer { id } }"))["id"]
    variables = on_table(settings.dynamodb_url, one_table.name)
    given = await asyncio.to_thread(ringside, "member", "role", viewer, "--role", "editor", **variables)
    assert (given.returncode, "sign in with an address first" in given.stderr) == (1, True)


async def test_a_guest_who_writes_nothing_ends_and_one_who_writes_stays(mail: MailingService) -> None:
    """By the table's time to live, which profile and identity have until the first word or address."""
    table = mail.client.services.table
    writes: list[Callable[[Client], Awaitable[Any]] | None] = [
        None,
        lambda guest: guest.ask(POST_COMMENT, input={"product": "mug", "language": "en", "body": "Good."}),
        lambda guest: signed_in(mail, "carl@example.org", guest),
    ]
    for write in writes:
        guest = await a_guest(mail)
        user = parse_node_key("User", (await guest.ask(VIEWER))["id"])
        last = (mail.clock() + LONGEST).timestamp()
        assert await times_to_live(table, user) == {"IDENTITY": int(last), "PROFILE": int(last)}
        await guest.ask('mutation { createWordList(input: { name: "Mine" }) { __typename } }')
        await guest.ask("mutation { drawMatchup(input: {}) { __typename } }")  # as the board's element does by itself
        assert len(await times_to_live(table, user)) == 2
        if write is not None:
            answer = await write(guest)
            assert await times_to_live(table, user) == {}
            still = with_token(mail, answer) if "token" in answer else guest
            assert await still.ask("{ viewer { name } }") == {"name": "Ann"}


async def times_to_live(table: Table, user: str) -> dict[str, int]:
    """Of a member's profile and identity, by their sort keys; of those that have one."""
    items = [item async for item in table.scan_items(consistent=True) if user in str(item) and "ttl" in item]
    return {item["sk"]["S"]: int(item["ttl"]["N"]) for item in items if item["sk"]["S"] in ("IDENTITY", "PROFILE")}


async def test_a_guest_who_signs_in_by_a_member_s_address_is_that_member(mail: MailingService) -> None:
    """What the guest wrote stays the guest's; adding the address is a conflict."""
    ada = (await signed_in(mail, ADA))["user"]["id"]
    guest = await a_guest(mail)
    code = await asked(mail, ADA, guest)
    digits = {"request": code["request"], "code": code["code"]}
    assert await guest.code(ADD, input=digits) == "CONFLICT"
    assert (await guest.ask(SIGN_IN, input=digits))["user"]["id"] == ada
    assert (await guest.ask("{ viewer { isGuest } }")) == {"isGuest": True}


async def test_a_guest_who_signs_in_by_the_address_of_a_member_yet_to_join_is_that_member(mail: MailingService) -> None:
    """Whom a command made, the first admin say, or an import."""
    admin = await mail.client.services.get(Members).introduce(of_address(ADA))
    guest = await a_guest(mail)
    code = await asked(mail, ADA, guest)
    answer = await guest.ask(SIGN_IN, input={"request": code["request"], "code": code["code"]})
    assert parse_node_key("User", answer["user"]["id"]) == admin
    assert await guest.ask("{ viewer { isGuest } }") == {"isGuest": True}


async def test_a_guest_erases_themselves_at_any_time(mail: MailingService) -> None:
    """They cannot sign in again: a name is no proof, and a new one is another guest."""
    guest = await a_guest(mail)
    user = (await guest.ask(VIEWER))["id"]
    mail.clock.now += timedelta(days=1)
    assert "job" in await guest.ask(ERASE, user=user)


async def test_a_suspended_guest_still_takes_their_data_and_leaves(mail: MailingService) -> None:
    """In the session that they have, since they cannot begin another one; on another process too."""
    guest = await a_guest(mail)
    user = (await guest.ask(VIEWER))["id"]
    await mail.client.member("mia", Role.MODERATOR).ask(SUSPEND, input={"user": user, "reason": "Spam"})
    async with serving(mail.client.settings) as elsewhere:
        theirs = Client(elsewhere.served, elsewhere.settings, guest.http.headers["authorization"].split()[1])
        assert await theirs.code(POST_COMMENT, input={"product": "mug", "language": "en", "body": "Bad."}) == (
            "NOT_ALLOWED"
        )
        assert "url" in await theirs.ask(EXPORT, input={"user": user})
        assert "job" in await theirs.ask(ERASE, user=user)


async def test_a_guest_who_gives_an_address_on_another_process_is_not_taken_for_erased(mail: MailingService) -> None:
    """By a process that still knows them as a guest who has written nothing."""
    guest = await a_guest(mail)
    async with serving(mail.client.settings) as elsewhere:
        theirs = Client(elsewhere.served, elsewhere.settings, guest.http.headers["authorization"].split()[1])
        assert await theirs.ask("{ viewer { isGuest name } }") == {"isGuest": True, "name": "Ann"}
        code = await asked(mail, ADA, guest)
        await guest.ask(ADD, input={"request": code["request"], "code": code["code"]})
        assert (await theirs.ask(UPDATE_PROFILE, input={"name": "Anna"}))["user"]["name"] == "Anna"


async def test_who_was_a_guest_in_time_and_gave_an_address_later_has_joined_later(mail: MailingService) -> None:
    """Names are made at will: they are no accounts to be kept for a vote that has begun."""
    await add_contenders(mail.client, "a", "b", "c")
    guest = await a_guest(mail)
    board = {"slug": "main", "electorate": "MEMBERS", "membersSince": iso(mail.clock())}
    await editor(mail.client).ask(UPDATE_BOARD, input=board)
    assert await guest.code(DRAW_MATCHUP) == "NOT_SIGNED_IN"
    code = await asked(mail, ADA, guest)
    await guest.ask(ADD, input={"request": code["request"], "code": code["code"]})
    assert await guest.code(DRAW_MATCHUP) == "NOT_ALLOWED"
    assert (await guest.ask("{ viewer { joinedAt } }"))["joinedAt"] > board["membersSince"]


async def test_a_former_guest_stands_after_who_joined_before_they_did_in_any_order_of_scoring(
    mail: MailingService,
) -> None:
    """Among equals. A prediction that they submit again is of when they have joined."""
    mail.client.services.policy = replace(mail.client.services.policy, guests=frozenset({"predictions"}))
    editor, bob = EventEditor(mail.client), await a_guest(mail, "Bob")
    first, again, later = [await editor.card(10) for _ in range(3)]
    for event, [match] in (first, again):
        await submit(bob, event, [(match, 0)])
    mail.clock.now += timedelta(minutes=30)
    ann = with_token(mail, await signed_in(mail, "ann@example.org"))
    await ann.ask(UPDATE_PROFILE, input={"name": "Ann"})
    mail.clock.now += timedelta(minutes=30)
    code = await asked(mail, ADA, bob)
    await bob.ask(ADD, input={"request": code["request"], "code": code["code"]})
    for member, predicted in ((ann, (first, again, later)), (bob, (again, later))):
        for event, [match] in predicted:
            await submit(member, event, [(match, 0)])
    for event, [match] in (first, again, later):
        await editor.lock(event)
        await editor.result(match, 0)
    for order in ((again,), (first, later), (later, first)):
        for event, _ in order:
            await editor.score(event)
        for event, _ in order:  # also while the event that made it known is unscored
            assert [row["user"]["name"] for row in (await editor.standings())["nodes"]] == ["Ann", "Bob"]
            await editor.unscore(event)


async def test_a_guest_s_first_comment_brings_back_no_name_that_they_have_changed(mail: MailingService) -> None:
    """Elsewhere, since this process knew them by it: what it has kept for so long is not new."""
    guest = await a_guest(mail)
    async with serving(mail.client.settings) as elsewhere:
        theirs = Client(elsewhere.served, elsewhere.settings, guest.http.headers["authorization"].split()[1])
        assert await theirs.ask("{ viewer { name } }") == {"name": "Ann"}
        await guest.ask(UPDATE_PROFILE, input={"name": "Anna"})
        known_at = elsewhere.services.cache.clock()
        elsewhere.services.cache.clock = lambda: known_at + PROFILE_AGE
        await theirs.ask(POST_COMMENT, input={"product": "mug", "language": "en", "body": "Mine."})
        assert await theirs.ask("{ viewer { name } }") == {"name": "Anna"}


async def test_new_guests_of_a_network_are_limited_and_their_keys_are_long(
    one_table: Table, settings: Settings, tmp_path: Path
) -> None:
    """A receipt of a guest's sign-in is whoever knows its key's."""
    assert one_table.name == settings.table
    few = settings.model_copy(update={"guests": ("comments",), "new_guests_per_address": "2/hour"})
    async with mailing(few, tmp_path) as mail:
        short = {"name": "Ann", "idempotencyKey": "short"}
        assert await mail.client.code(AS_GUEST, input=short) == "INVALID_INPUT"
        keyed = {"name": "Ann", "idempotencyKey": "k" * 22}
        first, again = [await mail.client.visitor().ask(AS_GUEST, input=keyed) for _ in range(2)]
        assert (first["user"], again["token"]) == (again["user"], None)
        assert (await mail.client.visitor().ask(AS_GUEST, input={"name": "Ben"}))["token"]
        assert await mail.client.visitor().code(AS_GUEST, input={"name": "Cleo"}) == "RATE_LIMITED"
