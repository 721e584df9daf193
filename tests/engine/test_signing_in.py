"""Signing in by email: digits and links, each once; the session that begins, where it counts, and how it ends."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from datastore.dynamo import Table
from datastore.people.identities import of_address
from resolvers.members.sign_in_codes import SignInCodes
from resolvers.people.identities import Members
from resolvers.requests.context import Role
from resolvers.values.node_ids import parse_node_key
from server.settings import Settings
from tests.api_keys import CREATE_API_KEY
from tests.client import Client, serving
from tests.confirmations import ADA, MailingService, list_key, mailing, migrated, subscriber_count, subscriptions_of
from tests.lost_answers import ask_without_answer
from tests.queries import SUSPEND, UPDATE_PROFILE, mutation
from tests.sign_in import (
    REQUEST_SIGN_IN,
    SIGN_IN,
    SIGN_OUT,
    VIEWER,
    asked,
    digits_in,
    in_session,
    on_page,
    signed_in,
    with_session,
)
from tests.vocabulary import known_list

SHOP = "https://shop.example"
EXPORT = """mutation ($user: ID!) { exportMember(input: { user: $user }) {
  ... on MemberExport { url } ... on Refused { code message } } }"""
ERASE = """mutation ($user: ID!) { eraseMember(input: { user: $user, contributions: ANONYMISE }) {
  ... on MemberErasure { job { id } } ... on Refused { code message } } }"""

ADD = """mutation ($input: AddIdentityInput!) { addIdentity(input: $input) {
  ... on IdentityAdded { user { id } } ... on Refused { code message } } }"""
CLAIM = mutation("claimComments", "CommentsClaimed", "job { id }")
REMOVE = """mutation ($label: String!, $method: SignInMethod! = EMAIL) {
  removeIdentity(input: { method: $method, label: $label }) {
  ... on IdentityRemoved { user { id } } ... on Refused { code message } } }"""


@pytest.fixture
async def mail(one_table: Table, settings: Settings, tmp_path: Path) -> AsyncIterator[MailingService]:
    """The service with a mail server, and a site whose pages may use it."""
    assert one_table.name == settings.table
    listed = settings.model_copy(update={"cors_origins": (SHOP,), "public_url": "https://ringside.test"})
    async with mailing(listed, tmp_path) as mail:
        yield mail


def bearer(mail: MailingService, token: str) -> Client:
    """A program with a token."""
    return Client(mail.client.served, mail.client.settings, token)


async def test_a_code_signs_in_and_a_stranger_becomes_a_member(mail: MailingService) -> None:
    """A program gets a token, which says who it is; the same address is the same member again."""
    first = await signed_in(mail, ADA)
    assert first["token"].startswith("rst_")
    viewer = await bearer(mail, first["token"]).ask(VIEWER)
    assert viewer == {"id": first["user"]["id"], "name": first["user"]["name"], "email": ADA}
    again = await signed_in(mail, "ADA@Example.ORG")
    assert again["user"]["id"] == first["user"]["id"]
    assert again["token"] != first["token"]


async def test_the_link_signs_in_once_and_uses_the_digits_up(mail: MailingService) -> None:
    """Whichever comes first counts."""
    code = await asked(mail, ADA)
    page = on_page(mail.client)
    assert (await page.ask(SIGN_IN, input={"token": code["link"]}))["user"]["email"] == ADA
    digits = {"request": code["request"], "code": code["code"]}
    assert await page.code(SIGN_IN, input=digits) == "TOKEN_SPENT"
    assert await page.code(SIGN_IN, input={"token": code["link"]}) == "TOKEN_SPENT"


async def test_a_link_that_was_used_changes_nothing(mail: MailingService) -> None:
    """Neither the address that a member has chosen since, nor whose the old one is: it makes no member."""
    old, new = await asked(mail, ADA), "ada@new.example"
    ada = bearer(mail, (await mail.client.ask(SIGN_IN, input={"token": old["link"]}))["token"])
    code = await asked(mail, new, ada)
    await ada.ask(ADD, input={"request": code["request"], "code": code["code"]})
    assert await mail.client.code(SIGN_IN, input={"token": old["link"]}) == "TOKEN_SPENT"
    assert (await ada.ask(VIEWER))["email"] == new
    await ada.ask(REMOVE, label=ADA)
    assert await mail.client.code(SIGN_IN, input={"token": old["link"]}) == "TOKEN_SPENT"
    assert await mail.client.services.get(Members).find(of_address(ADA)) is None


async def test_a_code_that_adds_one_s_own_address_is_used_up(mail: MailingService) -> None:
    """Whoever sees the email afterwards signs in by neither the digits nor the link."""
    ada = bearer(mail, (await signed_in(mail, ADA))["token"])
    code = await asked(mail, ADA, ada)
    digits = {"request": code["request"], "code": code["code"]}
    assert "user" in await ada.ask(ADD, input=digits)
    assert await mail.client.code(SIGN_IN, input=digits) == "TOKEN_SPENT"
    assert await mail.client.code(SIGN_IN, input={"token": code["link"]}) == "TOKEN_SPENT"


async def test_a_removed_address_begins_no_session_on_any_process(mail: MailingService) -> None:
    """Also where it was just used, and its removal is not known: who has the mailbox would be the member for months."""
    ada = bearer(mail, (await signed_in(mail, ADA))["token"])
    code = await asked(mail, "ada@new.example", ada)
    await ada.ask(ADD, input={"request": code["request"], "code": code["code"]})
    async with serving(mail.client.settings) as other:
        other.services.clock = mail.clock
        known, late = await asked(mail, ADA), await asked(mail, ADA)
        first = await other.ask(SIGN_IN, input={"token": known["link"]})
        await ada.ask(REMOVE, label=ADA)
        again = await other.ask(SIGN_IN, input={"token": late["link"]})
        assert first["user"]["id"] == (await ada.ask(VIEWER))["id"] != again["user"]["id"]


async def test_a_removed_address_gets_no_emails_of_the_member(mail: MailingService) -> None:
    """They go to another one by which the member signs in; an address that was chosen in its place stays."""
    addresses = ADA, "second@example.org", "third@example.org"
    ada = bearer(mail, (await signed_in(mail, ADA))["token"])
    for address in addresses[1:]:
        code = await asked(mail, address, ada)
        await ada.ask(ADD, input={"request": code["request"], "code": code["code"]})
    shown = []
    for address in (addresses[2], ADA):
        await ada.ask(REMOVE, label=address)
        shown.append((await ada.ask(VIEWER))["email"])
    assert shown == [addresses[1]] * 2
    site = mail.client.member("ada")
    code = await asked(mail, "ada@new.example", site)
    await site.ask(ADD, input={"request": code["request"], "code": code["code"]})
    await site.ask(REMOVE, label="ada@new.example")
    assert (await site.ask(VIEWER))["email"] is None


async def test_a_token_that_signs_a_member_in_no_more_leaves_nothing_that_does(mail: MailingService) -> None:
    """Also where that is not known yet: neither another address nor an API key."""
    ada = mail.client.member("ada", Role.ADMIN)
    own, more = await asked(mail, ADA), await asked(mail, "mallory@example.org")
    await ada.ask(ADD, input={"request": own["request"], "code": own["code"]})
    async with serving(mail.client.settings) as other:
        other.services.clock = mail.clock
        other.keep_what_it_read()
        theirs = Client(other.served, other.settings, ada.http.headers["authorization"].split()[1])
        assert (await theirs.ask(VIEWER))["email"] == ADA
        await ada.ask(REMOVE, label="ringside token", method="SITE")
        assert await theirs.code(ADD, input={"request": more["request"], "code": more["code"]}) == "NOT_SIGNED_IN"
        assert await theirs.code(CREATE_API_KEY, input={"name": "Robot", "roles": ["admin"]}) == "NOT_SIGNED_IN"


@pytest.mark.parametrize("keyed", [False, True])
async def test_a_sign_in_whose_answers_are_lost_gets_its_email_and_its_token(
    mail: MailingService, *, keyed: bool
) -> None:
    """Asking for the code and giving it are answered as done by the requests that did so, with a key and without."""
    await signed_in(mail, ADA)
    sent = len(mail.mailbox.emails)
    units: list[dict[str, Any]] = [{"idempotencyKey": key} if keyed else {} for key in "12"]
    request = (await ask_without_answer(mail.client, REQUEST_SIGN_IN, email=ADA, **units[0]))["request"]
    await mail.client.services.get(SignInCodes).all_sent()
    ((_, email),) = mail.mailbox.emails[sent:]
    code = {"request": request, "code": digits_in(email)}
    answer = await ask_without_answer(mail.client, SIGN_IN, **{**code, **units[1]})
    assert (await bearer(mail, answer["token"]).ask(VIEWER))["email"] == ADA


async def test_a_sign_in_is_answered_again_to_whoever_is_signed_in_by_then(mail: MailingService) -> None:
    """The cookie came with the answer's head, and the rest was lost: the browser repeats it as the member."""
    page, code = on_page(mail.client), await asked(mail, ADA)
    signing_in = {"request": code["request"], "code": code["code"], "idempotencyKey": "once"}
    first = await page.ask(SIGN_IN, input=signing_in)
    assert (await page.ask(VIEWER))["email"] == ADA
    assert (await page.ask(SIGN_IN, input=signing_in))["user"] == first["user"]


async def test_a_code_of_a_megabyte_is_not_looked_at(mail: MailingService) -> None:
    """Letter by letter that held up everybody for a fifth of a second. Nobody writes a code so; it counts as none."""
    code = await asked(mail, ADA)
    for _ in range(7):
        long = {"request": code["request"], "code": code["code"] + " " * 1_000_000}
        assert await mail.client.code(SIGN_IN, input=long) == "TOKEN_UNKNOWN"
    spaced = {"request": code["request"], "code": " ".join(code["code"])}
    assert (await mail.client.ask(SIGN_IN, input=spaced))["user"]["email"] == ADA


async def test_five_wrong_digits_end_a_code_and_no_other(mail: MailingService) -> None:
    """Not the link beside them, and not the code that somebody else asked for the same address."""
    mine, stranger_s = await asked(mail, ADA), await asked(mail, ADA)
    wrong = "000000" if stranger_s["code"] != "000000" else "000001"
    guess = {"request": stranger_s["request"], "code": wrong}
    codes = [await mail.client.code(SIGN_IN, input=guess) for _ in range(7)]
    assert codes == ["TOKEN_UNKNOWN"] * 5 + ["TOKEN_SPENT"] * 2
    assert await mail.client.code(SIGN_IN, input={**guess, "code": stranger_s["code"]}) == "TOKEN_SPENT"
    assert await mail.client.code(SIGN_IN, input={**guess, "code": mine["code"]}) == "TOKEN_SPENT"
    answer = await mail.client.ask(SIGN_IN, input={"request": mine["request"], "code": mine["code"]})
    assert answer["user"]["email"] == ADA


async def test_a_page_of_the_service_gets_a_cookie_and_no_token(mail: MailingService) -> None:
    """It counts on that page, and until it is signed out; then the cookie goes too."""
    page = on_page(mail.client)
    answer = await signed_in(mail, ADA, page)
    assert answer["token"] is None
    (cookie,) = [each for each in page.http.cookies.jar if "session" in each.name]
    assert (cookie.name, cookie.secure, cookie.path, cookie.domain_specified) == (
        "__Host-ringside_session", True, "/", False,
    )  # fmt: skip
    assert cookie.has_nonstandard_attr("HttpOnly")
    assert (await page.ask(VIEWER))["email"] == ADA
    assert await page.ask(SIGN_OUT, input={}) == {"signedOut": True}
    assert await page.ask(VIEWER) is None
    assert not [each for each in page.http.cookies.jar if "session" in each.name]


async def test_a_page_of_another_origin_gets_a_token_for_itself_alone(mail: MailingService) -> None:
    """Elsewhere, and without an Origin, it is refused: a token that leaks to another site is worth nothing there."""
    page = on_page(mail.client, SHOP)
    token = (await signed_in(mail, ADA, page))["token"]
    assert not [each for each in page.http.cookies.jar if "session" in each.name]
    assert (await on_page(mail.client, SHOP, token).ask(VIEWER))["email"] == ADA
    for other in (on_page(mail.client, "https://evil.example", token), bearer(mail, token)):
        assert (await other.post(VIEWER)).status_code == 401
    unlisted = on_page(mail.client, "https://evil.example")
    code = await asked(mail, "bob@example.org")
    digits = {"request": code["request"], "code": code["code"]}
    assert await unlisted.code(SIGN_IN, input=digits) == "NOT_ALLOWED"
    assert (await mail.client.ask(SIGN_IN, input=digits))["token"]


async def test_signing_in_claims_what_the_address_subscribed_to(mail: MailingService) -> None:
    """Before there was a member. Nothing is asked for."""
    words = await known_list(mail.client)
    await migrated(mail, ADA, list_key(words))
    answer = await signed_in(mail, ADA)
    user = parse_node_key("User", answer["user"]["id"])
    assert await subscriptions_of(mail.client, user) == [(list_key(words), True)]
    assert await subscriber_count(mail.client, words) == 1


async def test_who_is_suspended_between_code_and_sign_in_may_take_their_data_and_leave(mail: MailingService) -> None:
    """And nothing else: the session says nothing about what they may do."""
    user = (await signed_in(mail, ADA))["user"]["id"]
    code = await asked(mail, ADA)
    moderator = await in_session(mail.client, "mia", Role.MODERATOR)
    await moderator.ask(SUSPEND, input={"user": user, "reason": "Insults"})
    answer = await mail.client.ask(SIGN_IN, input={"request": code["request"], "code": code["code"]})
    ada = bearer(mail, answer["token"])
    assert await ada.code(UPDATE_PROFILE, input={"name": "Ada"}) == "NOT_ALLOWED"
    assert "url" in await ada.ask(EXPORT, user=user)
    assert "job" in await ada.ask(ERASE, user=user)


async def test_no_token_lets_its_finder_sign_in_as_somebody_with_roles(mail: MailingService) -> None:
    """On another site's pages it acts as a member's. An address of the finder's would make it all that its owner is."""
    ada, name = await in_session(mail.client, "ada", Role.ADMIN), with_session("ada")
    page = on_page(mail.client, token=ada.http.headers["authorization"].split()[1])
    shop_s = (await page.http.post("/sign-in/done", json={"origin": SHOP})).json()["token"]
    code = await asked(mail, "mallory@example.org")
    digits = {"request": code["request"], "code": code["code"]}
    for finder in (on_page(mail.client, SHOP, shop_s), mail.client.member(name)):
        assert await finder.code(ADD, input=digits) == "NOT_ALLOWED"
    mail.clock.now += timedelta(minutes=16)
    late = await asked(mail, "mallory@example.org")
    assert await page.code(ADD, input={"request": late["request"], "code": late["code"]}) == "NOT_SIGNED_IN"
    ada = await in_session(mail.client, "ada")
    own = await asked(mail, "ada@example.com")
    assert "user" in await ada.ask(ADD, input={"request": own["request"], "code": own["code"]})


async def test_an_old_session_neither_adds_nor_removes_what_its_member_signs_in_by(mail: MailingService) -> None:
    """Else who finds it open signs in by an address of their own, and may erase the member then."""
    page = on_page(mail.client)
    await signed_in(mail, ADA, page)
    mail.clock.now += timedelta(minutes=16)
    code = await asked(mail, "mallory@example.org")
    digits = {"request": code["request"], "code": code["code"]}
    assert await page.code(ADD, input=digits) == "NOT_SIGNED_IN"
    assert await page.code(REMOVE, label=ADA) == "NOT_SIGNED_IN"
    assert await page.code(CLAIM, input={}) == "NOT_SIGNED_IN"  # an address that comments were imported under
    await signed_in(mail, ADA, page)
    assert "job" in await page.ask(CLAIM, input={})
    assert "user" in await page.ask(ADD, input=digits)
    assert "user" in await page.ask(REMOVE, label=ADA)
