"""How long sessions last, how many there are, where they count, and where a sign-in leads back to."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from datastore.dynamo import Rates, Table, parse_rate
from datastore.dynamo.table import BATCH_WRITE
from datastore.members.sessions import MOST_SESSIONS, new_session, read_sessions_of
from datastore.people.identities import SignInMethod
from resolvers.members.sessions import Sessions
from resolvers.members.signing_in import begin_for_page
from resolvers.requests.context import Role
from resolvers.values.node_ids import node_id
from server.http.sign_in import PER_MEMBER
from server.settings import Settings
from tests.api_keys import CREATE_API_KEY
from tests.client import Client, serving
from tests.confirmations import MailingService, mailing
from tests.intercepted import beforehand, intercepted
from tests.killed import Killed, killed_at
from tests.members import introduce
from tests.queries import mutation
from tests.sign_in import (
    REQUEST_SIGN_IN,
    SIGN_IN,
    SIGN_OUT,
    VIEWER,
    asked,
    in_session,
    on_page,
    signed_in,
    with_session,
)
from tests.waiting import until

ADA = "ada@example.org"
SHOP = "https://shop.example.com"
ADD = mutation("addIdentity", "IdentityAdded", "user { id }", refused="code message")
ADD_WEBHOOK = mutation("addWebhook", "WebhookAdded", "webhook { id }")
SET_ROLES = mutation("setRoles", "RolesSet", "user { id }")
ERASE = """mutation ($user: ID!) { eraseMember(input: { user: $user, contributions: ANONYMISE }) {
  ... on MemberErasure { job { id } } ... on Refused { code message } } }"""


@pytest.fixture
async def mail(one_table: Table, settings: Settings, tmp_path: Path) -> AsyncIterator[MailingService]:
    assert one_table.name == settings.table
    sites = settings.model_copy(update={"cors_origins": (SHOP,), "emails_per_address": "0"})
    async with mailing(sites, tmp_path) as mail:
        yield mail


def bearer(mail: MailingService, token: str) -> Client:
    return Client(mail.client.served, mail.client.settings, token)


async def written(mail: MailingService) -> None:
    """Wait until nothing about sessions is written in the background."""
    writes = mail.client.services.get(Sessions)._writes
    await until(lambda: not list(writes), "what is known of sessions is stored")


async def status_at(mail: MailingService, token: str, moment: datetime) -> int:
    """What a program's request with this session is answered at a moment, by a process that remembers nothing."""
    mail.clock.now = moment
    mail.client.services.get(Sessions)._sessions.forget_all()
    status = (await bearer(mail, token).post(VIEWER)).status_code
    await written(mail)
    return status


async def test_a_session_ends_thirty_days_after_its_last_day_of_use(mail: MailingService) -> None:
    """And so it does where the clock has jumped back in between."""
    began = mail.clock.now
    token = (await signed_in(mail, ADA))["token"]
    assert await status_at(mail, token, began + timedelta(days=29)) == 200
    assert await status_at(mail, token, began - timedelta(days=400)) == 200
    assert await status_at(mail, token, began + timedelta(days=29 + 29)) == 200
    assert await status_at(mail, token, began + timedelta(days=29 + 29 + 31)) == 401


async def test_the_first_use_of_a_day_makes_a_session_last_longer_at_once(mail: MailingService) -> None:
    """A socket that is opened by it stays open for as long."""
    token = (await signed_in(mail, ADA))["token"]
    mail.clock.now += timedelta(days=29)
    session, _ = await mail.client.services.get(Sessions).find(token, "")
    await written(mail)
    assert session.expires > mail.clock.now + timedelta(days=29)


async def test_a_session_ends_after_180_days_however_often_it_is_used(mail: MailingService) -> None:
    began = mail.clock.now
    token = (await signed_in(mail, ADA))["token"]
    statuses = [await status_at(mail, token, began + timedelta(days=day)) for day in (*range(20, 180, 20), 179, 181)]
    assert statuses == [200] * 9 + [401]


async def test_a_browser_keeps_the_cookie_for_as_long_as_the_session_may_last(mail: MailingService) -> None:
    """It is set once, and each day of use prolongs the session."""
    page = on_page(mail.client)
    await signed_in(mail, ADA, page)
    (cookie,) = [each for each in page.http.cookies.jar if "session" in each.name]
    assert cookie.expires is not None
    assert timedelta(seconds=cookie.expires - time.time()) > timedelta(days=179)


async def test_a_session_in_use_is_looked_up_though_its_address_asks_for_unknown_ones(mail: MailingService) -> None:
    """It goes on, and is refused once it was ended: what keeps unknown sessions out keeps no look for it out."""
    services, now = mail.client.services, time.monotonic()
    services.rates = Rates(lambda: now)
    known = bearer(mail, (await signed_in(mail, ADA))["token"])
    assert (await known.post(VIEWER)).status_code == 200
    began = mail.clock.now
    unknown = [new_session(services.ids.next(began), "EMAIL", None, began)[1] for _ in range(100)]
    assert {(await bearer(mail, token).post(VIEWER)).status_code for token in unknown} == {401, 503}
    services.cache.clock = lambda: now + 3600.0
    assert (await known.post(VIEWER)).status_code == 200
    await known.ask("mutation { signOut(input: {}) { __typename } }")
    assert (await known.post(VIEWER)).status_code == 401


async def test_a_process_that_has_just_started_knows_every_member_of_one_network(mail: MailingService) -> None:
    """However many come from there at the same moment: only sessions that do not exist are limited."""
    tokens = []
    for number in range(100):
        [member] = await introduce(mail.client.services.table, with_session(f"pupil{number:03}"))
        tokens.append((await begin_for_page(mail.client.services, member, SignInMethod.EMAIL))[1])
    async with serving(mail.client.settings) as started:
        pupils = [Client(started.served, started.settings, token) for token in tokens]
        answers = await asyncio.gather(*(pupil.post(VIEWER) for pupil in pupils))
        assert {answer.status_code for answer in answers} == {200}


async def test_a_session_that_is_used_often_is_written_once_a_day(mail: MailingService) -> None:
    """By a process that does not read it again in between."""
    known, written_on = bearer(mail, (await signed_in(mail, ADA))["token"]), list[object]()

    async def write(_: str, send: Any) -> Any:
        written_on.append(mail.clock.now.date())
        return await send()

    await written(mail)
    days = [mail.clock.now.date() + timedelta(days=day) for day in (1, 2)]
    with intercepted(mail.client.services.table, ("put_item",), write):
        for _ in days:
            mail.clock.now += timedelta(days=1)
            for _ in range(5):
                assert (await known.post(VIEWER)).status_code == 200
                await written(mail)
    assert written_on == days


async def test_with_one_session_too_many_the_oldest_ends(mail: MailingService) -> None:
    """Each of them on its own machine; the newest fifty stay."""
    sessions = []
    for _ in range(MOST_SESSIONS + 1):
        sessions.append(await in_session(mail.client, "ada"))
        mail.clock.now += timedelta(minutes=1)
        await written(mail)
    mail.client.services.get(Sessions)._sessions.forget_all()
    statuses = [(await session.post(VIEWER)).status_code for session in sessions]
    assert statuses == [401] + [200] * MOST_SESSIONS


async def test_of_many_sessions_that_begin_at_once_no_more_stay(mail: MailingService) -> None:
    """Those that begin while the earlier ones are read are counted, too."""
    services, stored = mail.client.services, asyncio.Event()
    [member] = await introduce(services.table, with_session("ada"))

    async def slowly(_: str, send: Any) -> Any:
        answer = await send()
        await stored.wait()
        return answer

    with intercepted(services.table, ("query",), slowly):
        for _ in range(MOST_SESSIONS + 3):
            await begin_for_page(services, member, SignInMethod.EMAIL)
        stored.set()
        await written(mail)
    assert len(await read_sessions_of(services.table, member.user)) == MOST_SESSIONS


async def test_pages_of_other_sites_get_no_more_than_so_many_sessions_of_a_member(mail: MailingService) -> None:
    """Each is stored, and ends an older one."""
    mail.client.services.rates = Rates(lambda: 0.0)
    page = on_page(mail.client)
    await signed_in(mail, ADA, page)
    for _ in range(parse_rate(PER_MEMBER).limit):
        assert (await page.http.post("/sign-in/done", json={"returnTo": f"{SHOP}/"})).status_code == 200
    refused = await page.http.post("/sign-in/done", json={"origin": SHOP})
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")


async def test_two_tabs_that_sign_in_and_out_have_one_cookie(mail: MailingService) -> None:
    """The last sign-in counts in both; what one tab ends is ended in the other, whose next answer is a visitor's."""
    first = on_page(mail.client)
    second = on_page(mail.client)
    second.http._cookies = first.http.cookies  # one browser
    await signed_in(mail, ADA, first)
    await signed_in(mail, "bob@example.org", second)
    assert (await first.ask(VIEWER))["email"] == "bob@example.org"
    await first.ask("mutation { signOut(input: {}) { __typename } }")
    assert await second.ask(VIEWER) is None


async def test_a_cookie_counts_on_the_service_s_own_pages_alone(mail: MailingService) -> None:
    """A listed origin that sends it along is a visitor; so is a request that another site's page causes.

    Of several Host headers the first counts, as everywhere.
    """
    page = on_page(mail.client)
    await signed_in(mail, ADA, page)
    for headers in ({"origin": SHOP}, {"origin": "null"}, {"origin": ""}):
        page.http.headers.update(headers)
        assert await page.ask(VIEWER) is None
    del page.http.headers["origin"]
    for site, is_ada in (("cross-site", False), ("same-site", False), ("same-origin", True), ("none", True)):
        page.http.headers["sec-fetch-site"] = site
        assert (await page.ask(VIEWER) is not None) is is_ada, site
    cookie = "; ".join(f"{each.name}={each.value}" for each in page.http.cookies.jar)
    twice = [("cookie", cookie), ("origin", "https://ringside.test"), ("host", "ringside.test"), ("host", "other.test")]
    assert (await page.http.post("/graphql", json={"query": VIEWER}, headers=twice)).json()["data"]["viewer"]


async def test_no_session_begins_by_one_that_was_ended(mail: MailingService) -> None:
    """Neither by a code from before, nor on a process that has yet to hear of it: who took it goes on nowhere."""
    page = on_page(mail.client)
    await signed_in(mail, ADA, page)
    back = (await page.http.post("/sign-in/done", json={"returnTo": f"{SHOP}/"})).json()["location"]
    async with serving(mail.client.settings) as other:
        stolen = on_page(other)
        stolen.http.cookies.update(page.http.cookies)
        assert await stolen.ask(VIEWER)
        await page.ask(SIGN_OUT, input={"everywhere": True})
        answer = await stolen.http.post("/sign-in/done", json={"origin": SHOP})
        assert (answer.status_code, "token" in answer.json()) == (401, False)
        assert (await stolen.post(VIEWER)).status_code == 401
    code = {"token": back.partition("=")[2]}
    assert await on_page(mail.client, SHOP).code(SIGN_IN, input=code) == "TOKEN_SPENT"


async def test_an_ended_session_adds_no_way_to_sign_in(mail: MailingService) -> None:
    """Nor on a process that has yet to hear of its end: a thief's address would sign in as the member for good."""
    page = on_page(mail.client)
    await signed_in(mail, ADA, page)
    async with serving(mail.client.settings) as other:
        other.services.clock = mail.clock
        stolen = on_page(other)
        stolen.http.cookies.update(page.http.cookies)
        assert await stolen.ask(VIEWER)
        code = await asked(mail, "mallory@example.org")
        await page.ask(SIGN_OUT, input={"everywhere": True})
        given = {"request": code["request"], "code": code["code"]}
        assert await stolen.code(ADD, input=given) == "NOT_SIGNED_IN"
        assert (await stolen.post(VIEWER)).status_code == 401
    assert (await signed_in(mail, "mallory@example.org"))["user"]["email"] == "mallory@example.org"


async def test_an_ended_session_of_an_admin_makes_nothing_that_lasts(mail: MailingService) -> None:
    """Nor on a process that has yet to hear of its end: roles, keys and webhooks would outlast it."""
    attempts = {
        "eve": (SET_ROLES, {"user": node_id("User", with_session("eve")), "roles": ["admin", "editor"]}),
        "ines": (CREATE_API_KEY, {"name": "Robot", "roles": ["admin"]}),
        "mia": (ADD_WEBHOOK, {"url": "https://8.8.8.8/", "kinds": ["comment.posted"]}),
    }
    admins = {name: await in_session(mail.client, name, Role.ADMIN) for name in attempts}
    async with serving(mail.client.settings) as other:
        other.services.clock = mail.clock
        for name, (attempt, given) in attempts.items():
            stolen = Client(other.served, other.settings, admins[name].http.headers["authorization"].split()[1])
            assert await stolen.ask(VIEWER)
            await admins[name].ask(SIGN_OUT, input={"everywhere": True})
            assert await stolen.code(attempt, input=given) == "NOT_SIGNED_IN"
            assert (await stolen.post(VIEWER)).status_code == 401


async def test_a_session_that_begins_while_all_of_them_end_ends_too(mail: MailingService) -> None:
    """Or a thief of a cookie who asks for a page's token again and again would stay signed in."""
    page, tokens = on_page(mail.client), list[str]()
    await signed_in(mail, ADA, page)

    async def hand_over() -> None:
        tokens.append((await page.http.post("/sign-in/done", json={"origin": SHOP})).json()["token"])

    with beforehand(mail.client.services.table, hand_over, "batch_write_item", about="SESSION#"):
        assert await page.ask(SIGN_OUT, input={"everywhere": True}) == {"signedOut": True}
    [token] = tokens
    assert (await on_page(mail.client, SHOP, token).post(VIEWER)).status_code == 401


async def test_who_signs_out_everywhere_on_a_process_that_is_killed_can_repeat_it(mail: MailingService) -> None:
    """Their own session ends last: without it they could end none of the others, such as that of a lost phone."""
    services = mail.client.services
    [member] = await introduce(services.table, with_session("ada"))
    begun = [await begin_for_page(services, member, SignInMethod.EMAIL) for _ in range(BATCH_WRITE + 2)]
    await written(mail)
    _, token = min(begun, key=lambda one: one[0].token_hash)  # of the session that is read first
    with pytest.raises(Killed), killed_at(services.table, 0):
        await bearer(mail, token).ask(SIGN_OUT, input={"everywhere": True})
    mail.client.services.get(Sessions)._sessions.forget_all()
    assert await bearer(mail, token).ask(SIGN_OUT, input={"everywhere": True}) == {"signedOut": True}
    assert await read_sessions_of(services.table, member.user) == []


async def test_signing_out_everywhere_again_by_the_same_key_ends_no_newer_session(one_client: Client) -> None:
    """The repeat of who has no session that ended with it gets the first answer."""
    shop = one_client.member(with_session("ada"))
    earlier = await in_session(one_client, "ada")
    once = {"everywhere": True, "idempotencyKey": "once"}
    assert await shop.ask(SIGN_OUT, input=once) == {"signedOut": True}
    assert (await earlier.post(VIEWER)).status_code == 401
    newer = await in_session(one_client, "ada")
    assert await shop.ask(SIGN_OUT, input=once) == {"signedOut": True}
    assert await newer.ask(VIEWER)


@pytest.mark.parametrize("blank", [b"\xa0", b"\x85"])
async def test_who_sets_cookies_for_the_whole_domain_puts_no_session_into_a_browser(
    mail: MailingService, blank: bytes
) -> None:
    """Browsers let a neighbour set a name with such a byte before `__Host-`, and send it first for a longer path."""
    attacker_s = (await signed_in(mail, "mallory@example.org"))["token"]
    page = on_page(mail.client)
    await signed_in(mail, ADA, page)
    [ada_s] = [each.value for each in page.http.cookies.jar if "session" in each.name]
    for own, email in ((b"; __Host-ringside_session=" + str(ada_s).encode(), ADA), (b"", None)):
        cookie = blank + b"__Host-ringside_session=" + attacker_s.encode() + own
        stranger = on_page(mail.client)
        stranger.http.headers = httpx.Headers([*stranger.http.headers.raw, (b"cookie", cookie)])
        assert ((await stranger.ask(VIEWER)) or {}).get("email") == email


@pytest.mark.parametrize(
    "address",
    [
        "//evil.example", "/\\evil.example", "\\/evil.example", "https:evil.example", "https://evil.example/",
        f"{SHOP}.evil.example/", f"{SHOP}@evil.example/", f"https://evil.example\\@{SHOP[8:]}/", "javascript:alert(1)",
        "data:text/html,x", " //evil.example", "\t//evil.example", "/\n/evil.example", "evil.example", "",
        "/" + "x" * 2000,
        f"http://{SHOP[8:]}/", f"{SHOP}:444/", "/é", "//", "https://", "//[", f"{SHOP[:8]}user@{SHOP[8:]}/",
    ],
)  # fmt: skip
async def test_a_sign_in_leads_back_to_nobody_else(mail: MailingService, address: str) -> None:
    """By no spelling: neither in the email's link nor on the page."""
    visitor = mail.client.visitor()
    asked_for: dict[str, Any] = {"email": ADA, "returnTo": address}
    assert await visitor.code(REQUEST_SIGN_IN, input=asked_for) == "INVALID_INPUT"
    page = (await visitor.http.get("/sign-in", params={"returnTo": address})).text
    assert "evil.example" not in page
    assert not mail.mailbox.emails


async def test_who_is_erased_between_code_and_sign_in_is_refused(mail: MailingService) -> None:
    """Their address makes no new member until the erasure is forgotten."""
    ada = bearer(mail, (await signed_in(mail, ADA))["token"])
    code = await asked(mail, ADA)
    user = (await ada.ask(VIEWER))["id"]
    assert "job" in await ada.ask(ERASE, user=user)
    refused = await mail.client.visitor().answer(SIGN_IN, input={"request": code["request"], "code": code["code"]})
    assert "token" not in str(refused), refused

    async def is_refused() -> bool:
        mail.client.services.get(Sessions)._sessions.forget_all()
        return (await ada.post(VIEWER)).status_code == 401

    await until(is_refused, "the erased member's session has ended")
