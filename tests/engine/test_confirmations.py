"""Emails with a link that confirms an address, over HTTP with a real mail server: who gets one, and what it changes."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import jwt
import pytest
from pydantic import SecretStr

from datastore import vocabulary as vocabulary_store
from datastore.confirmations import CLAIM_LIFETIME, CONFIRMATION
from datastore.dynamo import Table, metered
from datastore.people import PROFILE, Profile, member_shard
from datastore.receipts import Once
from datastore.vocabulary import ADDRESS_CLAIM, SUBSCRIPTION, CharacterSet, Subscription, WordList
from resolvers.node_ids import node_id, parse_node_key
from resolvers.viewer import Role
from resolvers.vocabulary.address_subscriptions import record_id
from resolvers.vocabulary.cache import VocabularyCache
from server import audit
from server.mail.daily_run import DailyRun
from server.mail.delivery import RunLimits
from server.mail.message import Email, EmailTemplate, Unsubscription
from server.mail.smtp import LogTransport
from server.settings import Settings
from tests.client import Client
from tests.confirmations import CLAIM_SUBSCRIPTIONS, REQUEST_SUBSCRIPTION, MailingService, mailing
from tests.conftest import SECRET, settings_for
from tests.engines import RunningEngine
from tests.erasing import bury
from tests.killed import Killed, killed_at
from tests.queries import SUBSCRIBE, UPDATE_PROFILE
from tests.vocabulary import known_list, private_list

ADA = "ada@example.org"
ISSUER = "https://login.example.org/"


@pytest.fixture
async def mail(table: Table, engine: RunningEngine, tmp_path: Path) -> AsyncIterator[MailingService]:
    """The service with a mail server, on each of the engines."""
    async with mailing(settings_for(engine, table.name), tmp_path) as service:
        yield service


@pytest.fixture
async def one_mail(one_table: Table, default_engine: RunningEngine, tmp_path: Path) -> AsyncIterator[MailingService]:
    """The same on one engine, the default one."""
    async with mailing(settings_for(default_engine, one_table.name), tmp_path) as service:
        yield service


async def stored_text(client: Client) -> str:
    """Everything in the table, as text."""
    pages = client.services.table.client.get_paginator("scan").paginate(
        TableName=client.services.table.name, ConsistentRead=True
    )
    items = [item async for page in pages for item in page["Items"]]
    return "\n".join(sorted(str(sorted(item.items())) for item in items))


async def subscriptions_of(client: Client, user: str) -> list[tuple[str, bool]]:
    stored = await vocabulary_store.read_subscriptions(client.services.table, user)
    return [(each.list, each.active) for each in stored]


async def active_subscriptions(client: Client) -> list[Subscription]:
    return [each async for each in client.services.table.consistent().scan(SUBSCRIPTION) if each.active]


async def subscriber_count(client: Client, list_id: str) -> int:
    query = "query ($id: ID!) { wordList(id: $id) { subscriberCount } }"
    return int((await client.ask(query, id=list_id))["subscriberCount"])


# ── an address subscribes ──


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
    assert [breach async for breach in audit.breaches(mail.client.services)] == []


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
        services, spent = mail.client.services, []
        for address in ("subscriber@example.org", "member@example.org", "nobody@example.org"):
            # So that none of them finds what another one has read a moment ago.
            services.get(VocabularyCache).lists.forget(key(words))
            services.journal.know((), time.monotonic())
            with metered() as meter:
                assert await mail.ask(address, words) == {"email": address}
            spent.append((meter.calls, meter.read_units))
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
    once = Once.unkeyed(mail.clock())
    table = mail.client.services.table
    await vocabulary_store.unsubscribe(table, subscription.user, subscription.list, CharacterSet.SIMPLIFIED, once)
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
    """By their ASCII form, which only the email has. Other names are refused for good, and nothing is stored."""
    async with mailing(settings_for(default_engine, one_table.name), tmp_path, utf8=False) as mail:
        words, ada = await known_list(mail.client), mail.client.member("ada")
        assert await mail.ask("ada@bücher.example", words) == {"email": "ada@bücher.example"}
        [link] = mail.links("ada@xn--bcher-kva.example")
        assert [email["To"] for _, email in mail.mailbox.emails] == ["ada@xn--bcher-kva.example"]
        assert "ada@bücher.example" in unescape((await mail.client.http.get(link)).text)
        assert (await mail.press(link)).status_code == 200
        assert await mail.profile("ada@bücher.example") is not None
        for refused in (
            await mail.ask("jörg@bücher.example", words),
            await mail.ask("jörg@bücher.example", words),
            await ada.ask(UPDATE_PROFILE, input={"email": "jörg@example.org", "name": "Other"}),
        ):
            assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "email"])
            assert ("ASCII" in refused["message"], refused.get("retryAfterSeconds")) == (True, None)
        assert await ada.ask("{ viewer { name email } }") == {"name": "Ada", "email": None}
        assert len([each async for each in mail.client.services.table.consistent().scan(CONFIRMATION)]) == 1
        assert len(mail.mailbox.emails) == 1


async def test_without_a_mail_server_nobody_is_promised_an_email(client: Client) -> None:
    """Both mutations say what is missing, and change nothing."""
    words = await known_list(client)
    refused = await client.ask(REQUEST_SUBSCRIPTION, input={"email": ADA, "list": words})
    assert (refused["code"], "RINGSIDE_SMTP_URL" in refused["message"]) == ("NOT_ALLOWED", True)
    ada = client.member("ada")
    refused = await ada.ask(UPDATE_PROFILE, input={"email": ADA, "name": "Other"})
    assert (refused["code"], "RINGSIDE_SMTP_URL" in refused["message"]) == ("NOT_ALLOWED", True)
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
    """The refusal says that nothing was sent, and the day's email is not spent."""
    words = await known_list(mail.client)
    mail.mailbox.answer_recipient = lambda _: "550 no such mailbox"
    refused = await mail.ask(ADA, words)
    assert (refused["code"], "was not sent" in refused["message"]) == ("UNAVAILABLE", True)
    assert [each async for each in mail.client.services.table.consistent().scan(CONFIRMATION)] == []
    mail.mailbox.answer_recipient = lambda _: None
    assert await mail.ask(ADA, words) == {"email": ADA}
    assert mail.mailbox.recipients == [ADA]


async def test_an_abandoned_email_is_sent_when_it_is_asked_for_again(mail: MailingService) -> None:
    """While another process may be sending it, a request is told so; ten minutes later it sends the same email."""
    words = await known_list(mail.client)
    await mail.ask(ADA, words)
    [stored] = [each async for each in mail.client.services.table.consistent().scan(CONFIRMATION)]
    table = mail.client.services.table
    await table.write(CONFIRMATION.change(CONFIRMATION.item_key(stored), values={"sent": None}))
    waiting = await mail.ask(ADA, words)
    assert (waiting["code"], waiting["retryAfterSeconds"]) == ("UNAVAILABLE", 600)
    mail.clock.now += CLAIM_LIFETIME
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


async def test_an_erased_member_s_token_sends_no_email(mail: MailingService) -> None:
    """It is refused before the email, and stores no claim; the address stays free for another member."""
    eve, services = mail.client.member("eve"), mail.client.services
    await bury(services, "eve")
    given = {"email": "somebody@example.org"}
    assert await eve.code(UPDATE_PROFILE, input=given) == "NOT_ALLOWED"
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
    """A repeat sends nothing, and the link that was sent stays good; another member is told to wait."""
    ada = mail.client.member("ada")
    for _ in range(2):
        assert "user" in await ada.ask(UPDATE_PROFILE, input={"email": ADA})
    assert await mail.client.member("eve").code(UPDATE_PROFILE, input={"email": ADA}) == "CONFLICT"
    [link] = mail.links(ADA)
    assert (await mail.press(link)).status_code == 200
    assert await ada.ask("{ viewer { email } }") == {"email": ADA}


async def test_a_refused_address_leaves_the_profile_as_it_is(mail: MailingService) -> None:
    """When the mail server takes no email, and when another value of the request is not valid: nothing is sent then."""
    ada = mail.client.member("ada")
    assert await ada.code(UPDATE_PROFILE, input={"email": ADA, "timeZone": "Nowhere"}) == "INVALID_INPUT"
    mail.mailbox.answer_recipient = lambda _: "550 no such mailbox"
    assert await ada.code(UPDATE_PROFILE, input={"email": ADA, "name": "Other"}) == "UNAVAILABLE"
    assert mail.mailbox.emails == []
    assert await ada.ask("{ viewer { name email } }") == {"name": "Ada", "email": None}


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
    assert lists == {key(words), *(each.list for each in old[1:])}
    await table.write_many(SUBSCRIPTION.put(replace(each, active=True)) for each in old[1:])
    one_mail.clock.now += timedelta(days=1)
    await one_mail.ask(ADA, await known_list(one_mail.client, "Others"))
    assert (await one_mail.press(one_mail.links(ADA)[1])).status_code == 409
    assert len(await subscriptions_of(one_mail.client, record)) == 200


# ── claiming ──


async def migrated(mail: MailingService, address: str, *lists: str) -> str:
    """A record as `ringside migrate legacy` makes it; its id."""
    services = mail.client.services
    user = record_id(services.seal, address)
    await services.table.write(PROFILE.put(Profile(user, "Reader", mail.clock(), email=address)))
    for list_id in lists:
        old = Subscription(user, list_id, CharacterSet.SIMPLIFIED, active=True, since=mail.clock())
        await vocabulary_store.import_subscription(services.table, old, Once.unkeyed(mail.clock()))
    return user


def key(list_id: str) -> str:
    return parse_node_key("WordList", list_id)


async def test_a_migrated_record_is_claimed_after_the_link(mail: MailingService) -> None:
    """Its subscriptions move to the member, with their beginnings; a repeat answers the same."""
    words = await known_list(mail.client)
    other = await known_list(mail.client, "Others")
    record = await migrated(mail, ADA, key(words), key(other))
    ada = mail.client.member("ada")
    await ada.ask(SUBSCRIBE, input={"list": other})
    await ada.ask(UPDATE_PROFILE, input={"email": ADA})
    assert await ada.code(CLAIM_SUBSCRIPTIONS, input={}) == "NOT_ALLOWED"
    await mail.press(mail.links(ADA)[0])
    claimed = await ada.ask(CLAIM_SUBSCRIPTIONS, input={})
    assert {each["list"]["id"] for each in claimed["subscriptions"]} == {words, other}
    assert all(each["active"] for each in claimed["subscriptions"])
    assert await ada.ask(CLAIM_SUBSCRIPTIONS, input={}) == claimed
    assert {active for _, active in await subscriptions_of(mail.client, record)} == {False}
    assert [await subscriber_count(mail.client, each) for each in (words, other)] == [1, 1]
    stored = await mail.client.services.table.get(PROFILE.at(user=record), consistent=True)
    assert stored is not None
    assert stored.email is None
    await mail.client.caught_up("the audit counts every subscription")
    assert [breach async for breach in audit.breaches(mail.client.services)] == []


async def test_an_address_that_a_process_of_the_first_release_sets_is_not_proven(one_mail: MailingService) -> None:
    """It changes nothing but the address, also of a profile whose earlier address was confirmed here."""
    ada, table = one_mail.client.member("ada"), one_mail.client.services.table
    await migrated(one_mail, ADA, key(await known_list(one_mail.client)))
    await ada.ask(UPDATE_PROFILE, input={"email": "ada@example.net"})
    await one_mail.press(one_mail.links("ada@example.net")[-1])
    assert (await ada.ask(CLAIM_SUBSCRIPTIONS, input={}))["subscriptions"] == []
    await table.write(PROFILE.change(PROFILE.at(user="ada"), values={"email": ADA}))
    assert await ada.code(CLAIM_SUBSCRIPTIONS, input={}) == "NOT_ALLOWED"
    await ada.ask(UPDATE_PROFILE, input={"email": ADA})
    await one_mail.press(one_mail.links(ADA)[-1])
    assert len((await ada.ask(CLAIM_SUBSCRIPTIONS, input={}))["subscriptions"]) == 1


async def test_of_two_members_in_one_shard_too_a_subscription_moves_whole(mail: MailingService) -> None:
    """The record's count and the member's are then one item, which a transaction may change only once."""
    words = await known_list(mail.client)
    record = await migrated(mail, ADA, key(words))
    shard = member_shard(record)
    user = next(f"ada{number}" for number in range(1000) if member_shard(f"ada{number}") == shard)
    ada = mail.client.member(user)
    await ada.ask(UPDATE_PROFILE, input={"email": ADA})
    await mail.press(mail.links(ADA)[0])
    assert len((await ada.ask(CLAIM_SUBSCRIPTIONS, input={}))["subscriptions"]) == 1
    assert await subscriber_count(mail.client, words) == 1
    assert await subscriptions_of(mail.client, user) == [(key(words), True)]
    await mail.client.caught_up("the audit counts every subscription")
    assert [breach async for breach in audit.breaches(mail.client.services)] == []


async def test_a_claim_that_is_killed_anywhere_is_completed_by_the_next(one_mail: MailingService) -> None:
    """After each of its writes every subscription is the record's or the member's, counted once."""
    lists = [await known_list(one_mail.client, f"List {number}") for number in range(2)]
    services = one_mail.client.services
    for write in range(6):
        address = f"ada{write}@example.org"
        record = await migrated(one_mail, address, *map(key, lists))
        ada = one_mail.client.member(f"ada{write}")
        await ada.ask(UPDATE_PROFILE, input={"email": address})
        await one_mail.press(one_mail.links(address)[0])
        with killed_at(services.table, write), suppress(Killed):
            await ada.ask(CLAIM_SUBSCRIPTIONS, input={})
        both = [
            *await subscriptions_of(one_mail.client, record),
            *await subscriptions_of(one_mail.client, f"ada{write}"),
        ]
        assert sorted(list_id for list_id, active in both if active) == sorted(map(key, lists))
        assert len((await ada.ask(CLAIM_SUBSCRIPTIONS, input={}))["subscriptions"]) == 2
        assert [await subscriber_count(one_mail.client, each) for each in lists] == [write + 1, write + 1]


async def sent_by_a_run(mail: MailingService) -> list[tuple[str, list[str]]]:
    """The recipients of the daily words that a run sends now, each with the names of the lists."""
    services, sent = mail.client.services, list[tuple[str, list[str]]]()

    class Keeps(LogTransport):
        async def send(self, email: Email) -> None:
            sent.append((email.recipient, re.findall(r"from (List \d)", email.text)))

    template = EmailTemplate("words@example.org", "https://api.example.org", services.seal)
    await mail.client.caught_up("a run finds every subscriber")
    assert (await DailyRun(services, template, Keeps(), RunLimits()).run()).complete
    return sent


@pytest.mark.parametrize("killed_after", [None, 0, 1, 2, 3])
async def test_a_mailbox_is_not_sent_the_words_of_a_date_again_after_a_claim(
    one_mail: MailingService, killed_after: int | None
) -> None:
    """Also if the claim is killed after one of its first writes and repeated; the next date is sent."""
    await migrated(one_mail, ADA, *[key(await known_list(one_mail.client, f"List {number}")) for number in range(2)])
    assert await sent_by_a_run(one_mail) == [(ADA, ["List 0", "List 1"])]
    ada = one_mail.client.member("ada")
    await ada.ask(UPDATE_PROFILE, input={"email": ADA})
    await one_mail.press(one_mail.links(ADA)[0])
    if killed_after is not None:
        with killed_at(one_mail.client.services.table, killed_after), suppress(Killed):
            await ada.ask(CLAIM_SUBSCRIPTIONS, input={})
        assert ADA not in {recipient for recipient, _ in await sent_by_a_run(one_mail)}
    assert len((await ada.ask(CLAIM_SUBSCRIPTIONS, input={}))["subscriptions"]) == 2
    assert await sent_by_a_run(one_mail) == []
    one_mail.clock.now += timedelta(days=1)
    assert await sent_by_a_run(one_mail) == [(ADA, ["List 0", "List 1"])]


async def test_a_claim_does_not_cost_a_member_the_words_of_their_own_lists(one_mail: MailingService) -> None:
    """The address was sent its words of the date, and the member was not sent theirs yet: they come together."""
    lists = [await known_list(one_mail.client, f"List {number}") for number in range(2)]
    await migrated(one_mail, ADA, key(lists[0]))
    assert await sent_by_a_run(one_mail) == [(ADA, ["List 0"])]
    ada = one_mail.client.member("ada")
    await ada.ask(UPDATE_PROFILE, input={"email": ADA})
    await one_mail.press(one_mail.links(ADA)[0])
    await ada.ask(SUBSCRIBE, input={"list": lists[1]})
    await ada.ask(CLAIM_SUBSCRIPTIONS, input={})
    assert await sent_by_a_run(one_mail) == [(ADA, ["List 0", "List 1"])]


async def claimed(mail: MailingService, user: str) -> None:
    """A member proves the address and claims it."""
    member = mail.client.member(user)
    await member.ask(UPDATE_PROFILE, input={"email": ADA})
    assert (await mail.press(mail.links(ADA)[-1])).status_code == 200
    assert (await member.ask(CLAIM_SUBSCRIPTIONS, input={}))["subscriptions"]


def unsubscribing(mail: MailingService, *what: Any) -> str:
    """The link to unsubscribe in an email to the address's record."""
    seal = mail.client.services.seal
    return Unsubscription(record_id(seal, ADA), *what).link(seal, "")


@pytest.mark.parametrize("names_the_list", [False, True])
async def test_a_link_to_unsubscribe_from_before_a_claim_ends_what_the_member_has(
    mail: MailingService, *, names_the_list: bool
) -> None:
    """The one list that it names, or all; pressed again it answers the same. The audit finds nothing."""
    words, other = await known_list(mail.client), await known_list(mail.client, "Others")
    await migrated(mail, ADA, key(words), key(other))
    await claimed(mail, "ada")
    await mail.client.caught_up("an index shows who claimed the address")
    link = unsubscribing(mail, *((key(words), CharacterSet.SIMPLIFIED) if names_the_list else ()))
    for _ in range(2):
        answer = await mail.press(link)
        assert (answer.status_code, "<h1>Done</h1>" in answer.text) == (200, True)
        left = {each.list for each in await active_subscriptions(mail.client)}
        assert left == ({key(other)} if names_the_list else set())
    await mail.client.caught_up("the audit counts every subscription")
    assert [breach async for breach in audit.breaches(mail.client.services)] == []


async def test_a_link_of_an_address_that_subscribed_again_ends_that_subscription(one_mail: MailingService) -> None:
    """Whoever has the mailbox by then must not end what the member who claimed it before has."""
    words, own = await known_list(one_mail.client), await known_list(one_mail.client, "Own")
    record = await migrated(one_mail, ADA, key(words))
    await claimed(one_mail, "ada")
    await one_mail.client.member("ada").ask(SUBSCRIBE, input={"list": own})
    one_mail.clock.now += timedelta(days=1)
    await one_mail.ask(ADA, words)
    await one_mail.press(one_mail.links(ADA)[-1])
    assert record in {each.user for each in await active_subscriptions(one_mail.client)}
    for _ in range(2):
        answer = await one_mail.press(unsubscribing(one_mail))
        assert (answer.status_code, "<h1>Done</h1>" in answer.text) == (200, True)
        assert [each.user for each in await active_subscriptions(one_mail.client)] == ["ada", "ada"]


async def test_a_link_for_a_claimed_list_means_the_member_whatever_else_the_address_subscribed_to(
    one_mail: MailingService,
) -> None:
    """A later subscription says nothing about a list that it is not for; of all lists, the link means its own."""
    words, other = await known_list(one_mail.client), await known_list(one_mail.client, "Others")
    record = await migrated(one_mail, ADA, key(words))
    await claimed(one_mail, "ada")
    one_mail.clock.now += timedelta(days=1)
    await one_mail.ask(ADA, other)
    await one_mail.press(one_mail.links(ADA)[-1])
    for what, left in (([key(words)], {(record, key(other))}), ([], set())):
        answer = await one_mail.press(unsubscribing(one_mail, *what))
        assert (answer.status_code, "<h1>Done</h1>" in answer.text) == (200, True)
        assert {(each.user, each.list) for each in await active_subscriptions(one_mail.client)} == left


@pytest.mark.parametrize("writes", range(6))
async def test_no_link_says_done_while_the_emails_go_on(one_mail: MailingService, writes: int) -> None:
    """After a claim that was killed anywhere: the subscription is the record's or the member's by then."""
    words = await known_list(one_mail.client)
    await migrated(one_mail, ADA, key(words))
    ada = one_mail.client.member("ada")
    await ada.ask(UPDATE_PROFILE, input={"email": ADA})
    await one_mail.press(one_mail.links(ADA)[-1])
    with killed_at(one_mail.client.services.table, writes), suppress(Killed):
        await ada.ask(CLAIM_SUBSCRIPTIONS, input={})
    answer = await one_mail.press(unsubscribing(one_mail))
    assert ("<h1>Done</h1>" in answer.text, await active_subscriptions(one_mail.client)) == (True, [])


async def test_a_link_of_an_address_that_bounced_ends_its_subscription(one_mail: MailingService) -> None:
    words = await known_list(one_mail.client)
    record = await migrated(one_mail, ADA, key(words))
    await vocabulary_store.drop_address(one_mail.client.services.table, record, ADA)
    answer = await one_mail.press(unsubscribing(one_mail))
    assert (answer.status_code, await active_subscriptions(one_mail.client)) == (200, [])


async def test_a_claim_of_nothing_leaves_the_links_to_whoever_claimed_before(one_mail: MailingService) -> None:
    words = await known_list(one_mail.client)
    await migrated(one_mail, ADA, key(words))
    await claimed(one_mail, "ada")
    one_mail.clock.now += timedelta(days=1)
    bob = one_mail.client.member("bob")
    await bob.ask(UPDATE_PROFILE, input={"email": ADA})
    await one_mail.press(one_mail.links(ADA)[-1])
    assert (await bob.ask(CLAIM_SUBSCRIPTIONS, input={}))["subscriptions"] == []
    answer = await one_mail.press(unsubscribing(one_mail))
    assert (answer.status_code, await active_subscriptions(one_mail.client)) == (200, [])


async def test_a_link_to_unsubscribe_that_means_nobody_for_certain_says_so(one_mail: MailingService) -> None:
    """Two members claimed the address one after the other; or a release did that kept no note of it."""
    table, words = one_mail.client.services.table, await known_list(one_mail.client)
    await migrated(one_mail, ADA, key(words))
    await claimed(one_mail, "ada")
    one_mail.clock.now += timedelta(days=1)
    await one_mail.ask(ADA, words)
    await one_mail.press(one_mail.links(ADA)[-1])
    one_mail.clock.now += timedelta(days=1)
    await claimed(one_mail, "bob")
    for _ in range(2):
        answer = await one_mail.press(unsubscribing(one_mail))
        assert (answer.status_code, "out of date" in answer.text) == (410, True)
        assert {each.user for each in await active_subscriptions(one_mail.client)} == {"ada", "bob"}
        await table.write_many(
            [ADDRESS_CLAIM.delete(ADDRESS_CLAIM.item_key(each)) async for each in table.scan(ADDRESS_CLAIM)]
        )


def token(settings: Settings, user: str, **claims: object) -> str:
    """A token of the configured issuer."""
    named = {"iss": settings.token_issuer or "ringside", "sub": user, "exp": int(time.time()) + 600, **claims}
    return jwt.encode(named, SECRET.encode(), algorithm="HS256")


@pytest.mark.parametrize(
    ("issuer", "verified", "code"),
    [(ISSUER, True, None), (ISSUER, "true", None), (ISSUER, False, "NOT_ALLOWED"), (ISSUER, None, "NOT_ALLOWED"),
     (ISSUER, 1, "NOT_ALLOWED"), (ISSUER, "yes", "NOT_ALLOWED"), (None, True, "NOT_ALLOWED")],
)  # fmt: skip
async def test_only_a_token_that_says_so_proves_an_address(
    one_table: Table, default_engine: RunningEngine, tmp_path: Path, issuer: str | None, verified: object, code: str
) -> None:
    """`email_verified: true`, of the configured issuer; anything else proves nothing, and moves nothing."""
    settings = settings_for(default_engine, one_table.name, **({"jwt_issuer": issuer} if issuer else {}))
    async with mailing(settings, tmp_path) as mail:
        services = mail.client.services
        word_list = WordList("01HZZZZZZZZZZZZZZZZZZZZZZZ", "Words", public=True, created_at=mail.clock())
        await vocabulary_store.create_list(services.table, word_list, Once.unkeyed(mail.clock()))
        record = await migrated(mail, ADA, word_list.list)
        claims = {"email": ADA, "name": "Ada"} | ({} if verified is None else {"email_verified": verified})
        ada = Client(mail.client.served, settings, token(settings, "ada", **claims))
        answer = await ada.ask(CLAIM_SUBSCRIPTIONS, input={})
        assert answer.get("code") == code
        owner = "ada" if code is None else record
        assert [each.user for each in await active_subscriptions(mail.client)] == [owner]


async def test_a_verified_address_needs_no_link(
    one_table: Table, default_engine: RunningEngine, tmp_path: Path
) -> None:
    """The provider has proven it: `updateProfile` takes it at once, and sends nothing."""
    settings = settings_for(default_engine, one_table.name, jwt_issuer=ISSUER)
    async with mailing(settings, tmp_path) as mail:
        claims = {"email": ADA, "email_verified": True, "name": "Ada"}
        ada = Client(mail.client.served, settings, token(settings, "ada", **claims))
        await ada.ask(UPDATE_PROFILE, input={"email": None})
        changed = await ada.ask(UPDATE_PROFILE, input={"email": ADA})
    assert changed["user"]["email"] == ADA
    assert mail.mailbox.emails == []


async def test_a_claimed_address_subscribes_again(mail: MailingService) -> None:
    """What is confirmed after a claim belongs to the address again, until the member claims that too."""
    words = await known_list(mail.client)
    other = await known_list(mail.client, "Others")
    await mail.ask(ADA, words)
    await mail.press(mail.links(ADA)[0])
    ada = mail.client.member("ada")
    await ada.ask(UPDATE_PROFILE, input={"email": ADA})
    await mail.press(mail.links(ADA)[1])
    assert len((await ada.ask(CLAIM_SUBSCRIPTIONS, input={}))["subscriptions"]) == 1
    mail.clock.now += timedelta(days=1)
    await mail.ask(ADA, other)
    assert (await mail.press(mail.links(ADA)[2])).status_code == 200
    active = {each.list: each.user for each in await active_subscriptions(mail.client)}
    assert active == {key(words): "ada", key(other): record_id(mail.client.services.seal, ADA)}
    assert len((await ada.ask(CLAIM_SUBSCRIPTIONS, input={}))["subscriptions"]) == 2
    assert {each.user for each in await active_subscriptions(mail.client)} == {"ada"}


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
