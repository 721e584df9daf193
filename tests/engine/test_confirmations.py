"""Emails with a link that confirms an address, over HTTP with a real mail server: who gets one, and what it changes."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Table, shared_context
from datastore.people import confirmations as confirmation_store
from datastore.people.confirmations import CONFIRMATION
from datastore.people.profiles import PROFILE, expect_email, read_profile
from datastore.vocabulary import subscriptions
from datastore.vocabulary.subscriptions import SUBSCRIPTION, CharacterSet, Subscription
from resolvers.people.confirmations import Confirmations
from resolvers.requests.context import Role
from resolvers.values.node_ids import node_id
from resolvers.vocabulary.cache import VocabularyCache
from tests.audits import breaches_in
from tests.client import Client
from tests.confirmations import (
    ADA,
    REQUEST_SUBSCRIPTION,
    MailingService,
    active_subscriptions,
    list_key,
    mailing,
    migrated,
    subscriber_count,
    subscriptions_of,
)
from tests.conftest import SECRET, settings_for
from tests.engines import RunningEngine
from tests.erasing import bury
from tests.intercepted import WRITES, Send, intercepted, is_of_request
from tests.mail_server import Mailbox
from tests.queries import SUBSCRIBE, UPDATE_PROFILE
from tests.sign_in import signed_in
from tests.vocabulary import known_list, private_list
from tests.voting import read_keys
from tests.waiting import LONGEST, until


async def stored_text(client: Client) -> str:
    """Everything in the table, as text, but for what the service reports of its use by itself."""
    pages = client.services.table.client.get_paginator("scan").paginate(
        TableName=client.services.table.name, ConsistentRead=True
    )
    items = [item async for page in pages for item in page["Items"]]
    stored = [item for item in items if not item["pk"]["S"].startswith(("ACTIVITY", "OPERATIONS#"))]
    return "\n".join(sorted(str(sorted(item.items())) for item in stored))


@contextmanager
def consumed(table: Table) -> Iterator[list[tuple[str, str]]]:
    """The calls that requests make meanwhile, or begin, and what each consumes."""
    calls: list[tuple[str, str]] = []

    async def note(name: str, send: Send) -> Any:
        answer = await send()
        if is_of_request():
            calls.append((name, str(answer.get("ConsumedCapacity"))))
        return answer

    with intercepted(table, ("get_item", "batch_get_item", "query", *WRITES), note):
        yield calls


# ── an address subscribes ──


@pytest.mark.quick
@pytest.mark.lagging
async def test_an_address_subscribes_by_its_link(mail: MailingService) -> None:
    """Nothing but a keyed hash is stored before the link's button; then the address is a subscriber, once."""
    words = await known_list(mail.client)
    assert await mail.ask(ADA, words) == {"email": ADA}
    assert "ada@" not in (await stored_text(mail.client)).lower()
    [link] = mail.links(ADA)
    page = await mail.client.http.get(link)
    assert page.status_code == 200
    assert "form-action 'self'" in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store"
    assert ADA in page.text
    assert await active_subscriptions(mail.client) == []
    pressed = await mail.press(link)
    assert pressed.status_code == 200, pressed.text
    record = await mail.profile(ADA)
    assert record is not None
    assert [(each.user, each.character_set) for each in await active_subscriptions(mail.client)] == [
        (record.user, CharacterSet.SIMPLIFIED)
    ]
    assert await subscriber_count(mail.client, words) == 1
    await mail.client.caught_up("the audit counts every subscription")
    assert await breaches_in(mail.client.services) == []


async def test_an_address_gets_one_email_a_day(mail: MailingService) -> None:
    """Also when it is asked for at once, in other spellings and for other lists; the next day another one."""
    words = await known_list(mail.client)
    other = await known_list(mail.client, "Others")
    spellings = [ADA, "Ada@Example.ORG", ADA]
    answers = await asyncio.gather(*(mail.ask(address, words) for address in spellings))
    assert answers == [{"email": address} for address in spellings]
    assert await mail.ask(ADA, other) == {"email": ADA}
    assert len(mail.mailbox.emails) == 1
    mail.clock.now += timedelta(days=1)
    assert await mail.ask(ADA, other) == {"email": ADA}
    assert mail.mailbox.recipients == [ADA, ADA]
    first, second = (email["Message-ID"] for _, email in mail.mailbox.emails)
    assert first != second


@pytest.mark.lagging
async def test_known_and_unknown_addresses_are_treated_alike(
    table: Table, engine: RunningEngine, tmp_path: Path
) -> None:
    """The same answer and the same calls of the table, for a subscriber, a member and nobody's address."""
    async with mailing(settings_for(engine, table.name, emails_per_address="0"), tmp_path) as mail:
        words = await known_list(mail.client)
        await mail.ask("subscriber@example.org", words)
        await mail.press(mail.links("subscriber@example.org")[0])
        await mail.client.member("bob", email="member@example.org").ask(SUBSCRIBE, input={"list": words})
        await mail.client.caught_up("every read shows both")
        mail.clock.now += timedelta(days=1)
        services, spent = mail.client.services, list[list[tuple[str, str]]]()
        services.leases.lasting = LONGEST  # a renewal while an email is sent would be a call more
        for address in ("subscriber@example.org", "member@example.org", "nobody@example.org"):
            # So that none of them finds what another one has read a moment ago.
            services.get(VocabularyCache).lists.forget(list_key(words))
            services.journal.know((), time.monotonic())
            with consumed(services.table) as calls:
                assert await mail.ask(address, words) == {"email": address}
            spent.append(calls)
    assert spent == [spent[0]] * 3


async def test_opening_a_link_changes_nothing(mail: MailingService) -> None:
    """Mail scanners send GET and HEAD, as often as they like; the button works after them."""
    words = await known_list(mail.client)
    await mail.ask(ADA, words)
    [link] = mail.links(ADA)
    before = await stored_text(mail.client)
    for _ in range(3):
        assert (await mail.client.http.get(link)).status_code == 200
        assert (await mail.client.http.head(link)).status_code == 200
    assert (await mail.client.http.put(link)).status_code == 405
    assert await stored_text(mail.client) == before
    assert (await mail.press(link)).status_code == 200


async def test_a_link_is_good_once(mail: MailingService) -> None:
    """Pressed ten times at once it subscribes once; after the end of the subscription it does not begin it again."""
    words = await known_list(mail.client)
    await mail.ask(ADA, words)
    [link] = mail.links(ADA)
    codes = [answer.status_code for answer in await asyncio.gather(*(mail.press(link) for _ in range(10)))]
    assert set(codes) <= {200, 410}
    assert 200 in codes
    [subscription] = await active_subscriptions(mail.client)
    unit = UnitOfWork.unkeyed(mail.clock())
    table = mail.client.services.table
    await subscriptions.unsubscribe(table, subscription.user, subscription.list, CharacterSet.SIMPLIFIED, unit)
    again = await mail.press(link)
    assert (again.status_code, "already used" in again.text) == (410, True)
    assert await active_subscriptions(mail.client) == []
    assert await subscriber_count(mail.client, words) == 0


async def test_altered_and_expired_links_are_refused(one_mail: MailingService) -> None:
    """On opening and on pressing alike, and nothing changes."""
    words = await known_list(one_mail.client)
    await one_mail.ask(ADA, words)
    [link] = one_mail.links(ADA)
    altered = [link[:-1], link + "A", link[:40] + ("A" if link[40] != "A" else "B") + link[41:], "/confirm?token=",
               "/confirm", "/confirm?token=%00", "/confirm?token=" + "A" * 5000]  # fmt: skip
    for other in altered:
        for method in ("GET", "POST"):
            answer = await one_mail.client.http.request(method, other)
            assert (answer.status_code, "not complete" in answer.text) == (400, True), (method, other)
    one_mail.clock.now += timedelta(hours=24)
    for method in ("GET", "POST"):
        answer = await one_mail.client.http.request(method, link)
        assert (answer.status_code, "expired" in answer.text) == (410, True)
    assert await active_subscriptions(one_mail.client) == []
    assert await one_mail.profile(ADA) is None


async def test_the_page_of_a_link_is_in_the_readers_language(one_mail: MailingService) -> None:
    """With its direction, when it asks and when it refuses."""
    await one_mail.ask(ADA, await known_list(one_mail.client, "Words (new)"))
    [link] = one_mail.links(ADA)
    page = (await one_mail.client.http.get(link, headers={"Accept-Language": "ar"})).text
    assert '<html lang="ar" dir="rtl">' in page
    assert "<h1>هل تتلقى كلمات اليوم من \u2068Words (new)\u2069؟</h1>" in page
    assert f"تُرسل إلى \u2068{ADA}\u2069 حتى تلغي الاشتراك." in page
    await one_mail.press(link)
    again = await one_mail.client.http.post(link, headers={"Accept-Language": "de-AT"})
    assert (again.status_code, "<h1>Dieser Link wurde schon benutzt</h1>" in again.text) == (410, True)


async def test_a_list_that_was_deleted_meanwhile_is_not_confirmed(mail: MailingService) -> None:
    """On opening and on pressing alike; the link is not used up by it."""
    words = await known_list(mail.client)
    await mail.ask(ADA, words)
    [link] = mail.links(ADA)
    delete = "mutation ($input: DeleteWordListInput!) { deleteWordList(input: $input) { __typename } }"
    assert (await mail.client.member("eve", Role.EDITOR).ask(delete, input={"list": words}))["__typename"] != "Refused"
    for method in ("GET", "POST"):
        answer = await mail.client.http.request(method, link)
        assert (answer.status_code, "deleted" in answer.text) == (404, True)
    assert await mail.profile(ADA) is None
    assert [each.used async for each in mail.client.services.table.consistent().scan(CONFIRMATION)] == [None]
    assert (await mail.ask("bob@example.org", words))["code"] == "NOT_FOUND"


@pytest.mark.lagging
async def test_private_lists_are_refused_before_anything_is_sent(mail: MailingService) -> None:
    """Another member's is not found; one's own is for its owner only, who has an account."""
    owner = mail.client.member("ada")
    mine = await private_list(owner)
    await mail.client.caught_up("the new list is known everywhere")
    assert (await mail.ask(ADA, mine))["code"] == "NOT_FOUND"
    refused = await owner.ask(REQUEST_SUBSCRIPTION, input={"email": ADA, "list": mine})
    assert (refused["code"], refused["path"]) == ("NOT_ALLOWED", ["input", "list"])
    assert (await mail.ask(ADA, node_id("WordList", "nothing")))["code"] == "NOT_FOUND"
    assert mail.mailbox.emails == []
    assert [each async for each in mail.client.services.table.consistent().scan(CONFIRMATION)] == []


@pytest.mark.parametrize(
    "address",
    ["", "ada", "@example.org", "ada@", "ada@localhost", "a@b..example", "-oQ/tmp@b.example", "ada@[127.0.0.1]",
     '"ada b"@example.org', "ada@example.org\r\nBcc: eve@example.org", "ada@example.org\x00", "Ada <ada@example.org>",
     "ada@example.org,eve@example.org", f"{'a' * 65}@example.org", f"a@{'b' * 250}.org", "=?utf-8?q?a?=@example.org",
     "ada@\u202eexample.org", "ada @example.org"],
)  # fmt: skip
async def test_what_is_no_address_is_refused(one_mail: MailingService, address: str) -> None:
    """With the argument's path, and nothing is sent or stored."""
    words = await known_list(one_mail.client)
    before = await stored_text(one_mail.client)
    body = await one_mail.client.answer(REQUEST_SUBSCRIPTION, input={"email": address, "list": words})
    refused = body["data"]["requestSubscription"] if "data" in body else body["errors"][0]
    assert refused.get("code", "INVALID_INPUT") == "INVALID_INPUT"
    assert one_mail.mailbox.emails == []
    assert await stored_text(one_mail.client) == before


@pytest.mark.parametrize("address", ["o'hara+words@example.org", "ünï@exämple.org", "a.b@sub.example.museum"])
async def test_unusual_addresses_subscribe(one_mail: MailingService, address: str) -> None:
    """Tags, quotes and letters of other alphabets, escaped on the page."""
    words = await known_list(one_mail.client, "A <b>list</b>")
    assert await one_mail.ask(address, words) == {"email": address}
    [link] = one_mail.links(address)
    page = await one_mail.client.http.get(link)
    assert address in unescape(page.text)
    assert "<b>" not in page.text
    assert (await one_mail.press(link)).status_code == 200
    assert await one_mail.profile(address) is not None


async def test_a_mail_server_for_ascii_only_reaches_domains_of_every_writing(
    one_table: Table, default_engine: RunningEngine, tmp_path: Path
) -> None:
    """By their ASCII form, which only the email has. Others get none, a member is told why, and nothing is stored."""
    async with mailing(settings_for(default_engine, one_table.name), tmp_path, utf8=False) as mail:
        words, ada = await known_list(mail.client), mail.client.member("ada")
        assert await mail.ask("ada@bücher.example", words) == {"email": "ada@bücher.example"}
        [link] = mail.links("ada@xn--bcher-kva.example")
        assert [email["To"] for _, email in mail.mailbox.emails] == ["ada@xn--bcher-kva.example"]
        assert "ada@bücher.example" in unescape((await mail.client.http.get(link)).text)
        assert (await mail.press(link)).status_code == 200
        assert await mail.profile("ada@bücher.example") is not None
        assert await mail.ask("jörg@bücher.example", words) == {"email": "jörg@bücher.example"}
        refused = await ada.ask(UPDATE_PROFILE, input={"email": "jörg@example.org", "name": "Other"})
        assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "email"])
        assert ("ASCII" in refused["message"], refused.get("retryAfterSeconds")) == (True, None)
        assert await ada.ask("{ viewer { name email } }") == {"name": "Ada", "email": None}
        assert len([each async for each in mail.client.services.table.consistent().scan(CONFIRMATION)]) == 1
        assert len(mail.mailbox.emails) == 1


async def test_without_a_mail_server_nobody_is_promised_an_email(client: Client) -> None:
    """Both mutations say what is missing, and change nothing."""
    words = await known_list(client)
    refused = await client.ask(REQUEST_SUBSCRIPTION, input={"email": ADA, "list": words})
    assert (refused["code"], "sends no emails" in refused["message"]) == ("NOT_ALLOWED", True)
    ada = client.member("ada")
    refused = await ada.ask(UPDATE_PROFILE, input={"email": ADA, "name": "Other"})
    assert (refused["code"], "sends no emails" in refused["message"]) == ("NOT_ALLOWED", True)
    assert await ada.ask("{ viewer { name email } }") == {"name": "Ada", "email": None}


async def test_a_network_address_may_ask_for_so_many_emails(
    one_table: Table, default_engine: RunningEngine, tmp_path: Path
) -> None:
    """Beyond that it is told to wait, and nothing is sent."""
    settings = settings_for(default_engine, one_table.name, emails_per_address="2/day")
    async with mailing(settings, tmp_path) as mail:
        words = await known_list(mail.client)
        answers = [await mail.ask(f"{number}@example.org", words) for number in range(3)]
    assert [answer.get("code") for answer in answers] == [None, None, "RATE_LIMITED"]
    assert len(mail.mailbox.emails) == 2


async def test_a_rejected_email_may_be_asked_for_again(mail: MailingService) -> None:
    """A member is told that nothing was sent, a visitor is not; the day's email is not spent."""
    words = await known_list(mail.client)
    mail.mailbox.answer_recipient = lambda _: "550 no such mailbox"
    assert await mail.ask(ADA, words) == {"email": ADA}
    refused = await mail.client.member("ada").ask(UPDATE_PROFILE, input={"email": ADA})
    assert (refused["code"], "was not sent" in refused["message"]) == ("UNAVAILABLE", True)
    assert [each async for each in mail.client.services.table.consistent().scan(CONFIRMATION)] == []
    mail.mailbox.answer_recipient = lambda _: None
    assert await mail.ask(ADA, words) == {"email": ADA}
    assert mail.mailbox.recipients == [ADA]


async def test_the_log_says_why_an_email_was_rejected_and_not_to_whom(mail: MailingService) -> None:
    """Many mail servers repeat the address that they reject."""
    words = await known_list(mail.client)
    mail.mailbox.answer_recipient = lambda address: f"550 5.1.1 <{address.title()}>: no such mailbox"
    with capture_logs() as logs:
        await mail.ask(ADA, words)
        assert await mail.client.member("ada").code(UPDATE_PROFILE, input={"email": ADA}) == "UNAVAILABLE"
    reasons = [log["reason"] for log in logs if log["event"] == "a confirmation email was not sent"]
    assert reasons == ["550 5.1.1 <the recipient>: no such mailbox"] * 2


async def test_an_abandoned_email_is_sent_when_it_is_asked_for_again(mail: MailingService) -> None:
    """While another process may be sending it, a request sends nothing; once its lease has lapsed, the same email."""
    words = await known_list(mail.client)
    await mail.ask(ADA, words)
    [stored] = [each async for each in mail.client.services.table.consistent().scan(CONFIRMATION)]
    table = mail.client.services.table
    await table.write(CONFIRMATION.update(CONFIRMATION.item_key(stored), values={"sent": None, "holder": "killed"}))
    assert await mail.ask(ADA, words) == {"email": ADA}
    assert len(mail.mailbox.emails) == 1
    mail.client.services.leases.patience = 0.0
    assert await mail.ask(ADA, words) == {"email": ADA}
    first, second = (email["Message-ID"] for _, email in mail.mailbox.emails)
    assert first == second


# ── a member's address ──


async def test_a_member_s_address_counts_once_it_is_confirmed(mail: MailingService) -> None:
    """Until then the profile keeps the old one; other changes of the same request count at once."""
    ada = mail.client.member("ada", email="old@example.org")
    changed = await ada.ask(UPDATE_PROFILE, input={"email": ADA, "name": "Ada L."})
    assert (changed["user"]["name"], changed["user"]["email"]) == ("Ada L.", "old@example.org")
    assert "ada@" not in await stored_text(mail.client)
    [link] = mail.links(ADA)
    assert (await mail.client.http.get(link)).status_code == 200
    assert await ada.ask("{ viewer { email } }") == {"email": "old@example.org"}
    assert (await mail.press(link)).status_code == 200
    assert await ada.ask("{ viewer { email name } }") == {"email": ADA, "name": "Ada L."}
    assert (await mail.press(link)).status_code == 410
    assert mail.links("old@example.org") == []


async def test_a_sign_in_leaves_the_address_that_a_member_has_confirmed(one_mail: MailingService) -> None:
    """Their emails go on where they want them, whichever address they sign in by, in whatever spelling."""
    ada = (await signed_in(one_mail, ADA))["token"]
    client, work = Client(one_mail.client.served, one_mail.client.settings, ada), "ada@work.example"
    await client.ask(UPDATE_PROFILE, input={"email": work})
    [link] = one_mail.links(work)
    assert (await one_mail.press(link)).status_code == 200
    for address in (ADA, ADA.upper()):
        assert (await signed_in(one_mail, address))["user"]["email"] == work
    assert await client.ask("{ viewer { email } }") == {"email": work}


async def test_an_erased_member_s_token_sends_no_email(mail: MailingService) -> None:
    """It is refused before the email, and stores nothing; the address stays free for another member."""
    eve, services = mail.client.member("eve"), mail.client.services
    await bury(services, "eve")
    given = {"email": "somebody@example.org"}
    assert (await eve.post(UPDATE_PROFILE, input=given)).status_code == 401
    assert mail.mailbox.emails == []
    assert [item async for item in services.table.scan(CONFIRMATION, consistent=True)] == []
    assert "user" in await mail.client.member("bob").ask(UPDATE_PROFILE, input=given)
    assert len(mail.links("somebody@example.org")) == 1


async def test_a_later_address_makes_earlier_links_void(mail: MailingService) -> None:
    """The owner of a mailbox that was named by mistake cannot confirm it later."""
    ada = mail.client.member("ada")
    await ada.ask(UPDATE_PROFILE, input={"email": "typo@example.org"})
    await ada.ask(UPDATE_PROFILE, input={"email": ADA})
    [mistyped], [link] = mail.links("typo@example.org"), mail.links(ADA)
    assert (await mail.press(mistyped)).status_code == 410
    assert (await mail.press(link)).status_code == 200
    assert (await mail.press(mistyped)).status_code == 410
    assert await ada.ask("{ viewer { email } }") == {"email": ADA}
    await ada.ask(UPDATE_PROFILE, input={"email": None})
    assert (await mail.press(link)).status_code == 410
    assert await ada.ask("{ viewer { email } }") == {"email": None}


async def test_an_address_that_was_asked_for_twice_has_one_link(mail: MailingService) -> None:
    """A repeat sends nothing, and the link that was sent stays good."""
    ada = mail.client.member("ada")
    for _ in range(2):
        assert "user" in await ada.ask(UPDATE_PROFILE, input={"email": ADA})
    [link] = mail.links(ADA)
    assert (await mail.press(link)).status_code == 200
    assert await ada.ask("{ viewer { email } }") == {"email": ADA}


async def test_no_member_keeps_another_from_confirming_their_address(mail: MailingService) -> None:
    """Each gets an email of their own, up to five a day for one address; each link is good for its member."""
    eves = [mail.client.member(f"eve-{number}") for number in range(4)]
    for eve in eves:
        for _ in range(3):
            assert "user" in await eve.ask(UPDATE_PROFILE, input={"email": ADA})
    ada = mail.client.member("ada")
    assert "user" in await ada.ask(UPDATE_PROFILE, input={"email": ADA})
    assert await mail.client.member("bob").code(UPDATE_PROFILE, input={"email": ADA}) == "CONFLICT"
    assert "user" in await ada.ask(UPDATE_PROFILE, input={"email": ADA})
    links = mail.links(ADA)
    assert len(links) == len({str(email["Message-ID"]) for _, email in mail.mailbox.emails}) == 5
    assert (await mail.press(links[4])).status_code == 200
    assert await ada.ask("{ viewer { email } }") == {"email": ADA}
    assert await eves[0].ask("{ viewer { email } }") == {"email": None}


async def test_a_member_whose_email_was_sent_gets_no_other_because_a_place_is_free_again(
    one_mail: MailingService,
) -> None:
    """The email of a member who asked before was not sent in the end; its place is for a member who has none."""
    table, bob = one_mail.client.services.table, one_mail.client.member("bob")
    for member in (one_mail.client.member("eve"), bob):
        assert "user" in await member.ask(UPDATE_PROFILE, input={"email": ADA})
    [first] = [each async for each in table.scan(CONFIRMATION) if each.slot == 0]
    await table.write(CONFIRMATION.delete(CONFIRMATION.item_key(first)))
    assert "user" in await bob.ask(UPDATE_PROFILE, input={"email": ADA})
    assert len(one_mail.mailbox.emails) == 2
    assert "user" in await one_mail.client.member("ada").ask(UPDATE_PROFILE, input={"email": ADA})
    assert sorted([each.slot async for each in table.scan(CONFIRMATION)]) == [0, 1]


async def test_a_visitor_is_answered_before_an_email_is_sent(
    one_mail: MailingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the time that it takes says nothing about the address."""
    words = await known_list(one_mail.client)
    released = asyncio.Event()
    acquire = confirmation_store.acquire_confirmation

    async def wait_and_acquire(*given: Any) -> Any:
        await released.wait()
        return await asyncio.create_task(acquire(*given), context=shared_context())  # its ten seconds may be over

    monkeypatch.setattr(confirmation_store, "acquire_confirmation", wait_and_acquire)
    given = {"email": ADA, "list": words}
    for _ in range(2):
        assert await one_mail.client.ask(REQUEST_SUBSCRIPTION, input=given) == {"email": ADA}
    assert one_mail.mailbox.emails == []
    released.set()
    await one_mail.client.services.get(Confirmations).all_ended()
    assert len(one_mail.links(ADA)) == 1


async def test_a_link_that_is_pressed_within_one_millisecond_is_good_once(one_mail: MailingService) -> None:
    """One of many requests is told that it was done."""
    words = await known_list(one_mail.client)
    await one_mail.ask(ADA, words)
    [link] = one_mail.links(ADA)
    moment = one_mail.clock()
    one_mail.client.services.clock = lambda: moment
    pressed = await asyncio.gather(*(one_mail.press(link) for _ in range(20)))
    assert sorted(each.status_code for each in pressed) == [200] + 19 * [410]


async def test_a_refused_address_leaves_the_profile_as_it_is(mail: MailingService) -> None:
    """When the mail server takes no email, and when another value of the request is not valid: nothing is sent then."""
    ada = mail.client.member("ada")
    assert await ada.code(UPDATE_PROFILE, input={"email": ADA, "timeZone": "Nowhere"}) == "INVALID_INPUT"
    mail.mailbox.answer_recipient = lambda _: "550 no such mailbox"
    assert await ada.code(UPDATE_PROFILE, input={"email": ADA, "name": "Other"}) == "UNAVAILABLE"
    assert mail.mailbox.emails == []
    assert await ada.ask("{ viewer { name email } }") == {"name": "Ada", "email": None}


async def test_an_email_that_was_accepted_is_sent_however_slowly_the_server_says_goodbye(
    one_table: Table, default_engine: RunningEngine, tmp_path: Path
) -> None:
    """It has the email, and the member needs to know no more."""

    class Lingers(Mailbox):
        def __init__(self) -> None:
            super().__init__()
            self.ends = asyncio.Event()

        async def handle_QUIT(self, *_: Any) -> str:  # noqa: N802
            await self.ends.wait()
            return "221 Bye"

    mailbox = Lingers()
    async with mailing(settings_for(default_engine, one_table.name), tmp_path, mailbox) as mail:
        assert "user" in await mail.client.member("ada").ask(UPDATE_PROFILE, input={"email": ADA})
        mailbox.ends.set()
    assert mailbox.recipients == [ADA]


async def test_the_link_of_an_email_that_came_late_is_good(mail: MailingService) -> None:
    """The member was told that it may still arrive, and need not ask again if it does."""
    decides = asyncio.Event()

    async def decide(_: object) -> None:
        await decides.wait()

    mail.mailbox.before_accepting = decide
    mail.client.services.get(Confirmations).patience = 0.2  # the mail server is waited for ten seconds
    ada = mail.client.member("ada")
    assert await ada.code(UPDATE_PROFILE, input={"email": ADA, "name": "Other"}) == "UNAVAILABLE"
    decides.set()
    await until(lambda: mail.links(ADA), "the email has come")
    assert (await mail.press(mail.links(ADA)[0])).status_code == 200
    assert await ada.ask("{ viewer { name email } }") == {"name": "Ada", "email": ADA}


async def test_that_an_email_may_arrive_is_stored_without_a_read(one_mail: MailingService) -> None:
    """Unless the member has asked for another address meanwhile."""
    await one_mail.client.member("ada").ask(UPDATE_PROFILE, input={"email": ADA})
    services = one_mail.client.services
    (seen,) = [profile async for profile in services.table.scan(PROFILE, consistent=True)]
    with read_keys(services.table) as read:
        await expect_email(services.table, seen, "first", services.unit())
        await expect_email(services.table, seen, "second", services.unit())
    assert [key for key in read if seen.user in key] == []
    stored = await read_profile(services.table, seen.user)
    assert stored == replace(seen, email_pending="first")


async def test_emails_of_two_purposes_have_ids_of_their_own(one_mail: MailingService) -> None:
    """Both are sent to one address on one day; mail programs drop the second of two with the same Message-ID."""
    await one_mail.ask(ADA, await known_list(one_mail.client))
    await one_mail.client.member("ada").ask(UPDATE_PROFILE, input={"email": ADA})
    ids = [email["Message-ID"] for _, email in one_mail.mailbox.emails]
    assert len(ids) == len(set(ids)) == 2


async def test_subscriptions_that_ended_do_not_keep_an_address_from_another(one_mail: MailingService) -> None:
    """The oldest of them makes room; with 200 active ones the link's page says so, and nothing changes."""
    table, words = one_mail.client.services.table, await known_list(one_mail.client)
    record = await migrated(one_mail, ADA)
    old = [
        Subscription(record, f"list{number}", CharacterSet.SIMPLIFIED, active=False, since=one_mail.clock())
        for number in range(200)
    ]
    await table.write_many(map(SUBSCRIPTION.put, old))
    await one_mail.ask(ADA, words)
    assert (await one_mail.press(one_mail.links(ADA)[0])).status_code == 200
    lists = {list_id for list_id, _ in await subscriptions_of(one_mail.client, record)}
    assert lists == {list_key(words), *(each.list for each in old[1:])}
    await table.write_many(SUBSCRIPTION.put(replace(each, active=True)) for each in old[1:])
    one_mail.clock.now += timedelta(days=1)
    await one_mail.ask(ADA, await known_list(one_mail.client, "Others"))
    assert (await one_mail.press(one_mail.links(ADA)[1])).status_code == 409
    assert len(await subscriptions_of(one_mail.client, record)) == 200


async def test_an_address_is_found_under_an_older_secret(
    one_table: Table, default_engine: RunningEngine, tmp_path: Path
) -> None:
    """Rotating secrets neither loses a record nor makes a second one."""
    words = ""
    newer = "a newer secret that is long enough to be one, too"
    for secrets in ((SECRET,), (newer, SECRET)):
        settings = settings_for(default_engine, one_table.name)
        async with mailing(settings.model_copy(update={"secrets": tuple(map(SecretStr, secrets))}), tmp_path) as mail:
            words = await known_list(mail.client, f"List {len(secrets)}")
            mail.clock.now += timedelta(days=len(secrets))
            await mail.ask(ADA, words)
            assert (await mail.press(mail.links(ADA)[0])).status_code == 200
            owners = {each.user for each in await active_subscriptions(mail.client)}
    assert len(owners) == 1


async def test_a_process_that_sends_many_emails_says_when_to_come_back(one_mail: MailingService) -> None:
    """As a refusal that a page can show. To try again as often as it says uses up none of the day's emails."""
    confirmations, ada = one_mail.client.services.get(Confirmations), one_mail.client.member("ada")
    most, confirmations.most_sending = confirmations.most_sending, 0
    answers = [await ada.answer(UPDATE_PROFILE, input={"email": ADA}) for _ in range(25)]
    assert [answer["data"]["updateProfile"]["code"] for answer in answers] == ["UNAVAILABLE"] * 25, answers
    assert one_mail.mailbox.emails == []
    confirmations.most_sending = most
    assert "code" not in await ada.ask(UPDATE_PROFILE, input={"email": ADA})
    assert len(one_mail.mailbox.emails) == 1
