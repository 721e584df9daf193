"""Claiming what an address subscribed to: who may, what moves, and whom links from before it mean."""

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import jwt
import pytest
from pydantic import SecretStr

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Table
from datastore.people.profiles import PROFILE, member_shard
from datastore.vocabulary import subscriptions
from datastore.vocabulary.lists import WordList, create_list
from datastore.vocabulary.subscriptions import ADDRESS_CLAIM
from resolvers.values.node_ids import parse_node_id
from resolvers.vocabulary.subscriptions import record_id
from server.commands.emails import remove_addresses
from server.mail.daily_run import DailyRun
from server.mail.message import Letterhead, Unsubscription
from server.mail.sending import Emails
from server.settings import Settings
from server.settings.values import TokenKey
from tests.audits import breaches_in
from tests.client import Client
from tests.confirmations import (
    ADA,
    CLAIM_SUBSCRIPTIONS,
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
from tests.killed import Killed, killed_at
from tests.mail_server import Outbox
from tests.queries import SUBSCRIBE, UNSUBSCRIBE, UPDATE_PROFILE
from tests.vocabulary import known_list
from tests.waiting import until

ISSUER = "https://login.example.org/"
_UNICODE, _ASCII = "ada@bücher.example", "ada@xn--bcher-kva.example"


@pytest.mark.lagging
async def test_a_migrated_record_is_claimed_after_the_link(mail: MailingService) -> None:
    """Its subscriptions move to the member, with their beginnings; a repeat answers the same."""
    words = await known_list(mail.client)
    other = await known_list(mail.client, "Others")
    record = await migrated(mail, ADA, list_key(words), list_key(other))
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
    assert await breaches_in(mail.client.services) == []


@pytest.mark.parametrize(("asked", "entered"), [(_UNICODE, _ASCII), (_ASCII, _UNICODE)])
async def test_an_address_is_claimed_whichever_way_its_domain_is_spelt(
    one_mail: MailingService, asked: str, entered: str
) -> None:
    """Browsers send the ASCII form of a domain from a field for addresses, and people write the other one."""
    words = await known_list(one_mail.client)
    await one_mail.ask(asked, words)
    await one_mail.press(one_mail.links(_ASCII)[0])
    ada = one_mail.client.member("ada")
    await ada.ask(UPDATE_PROFILE, input={"email": entered})
    await one_mail.press(one_mail.links(_ASCII)[1])
    claimed = await ada.ask(CLAIM_SUBSCRIPTIONS, input={})
    assert [each["list"]["id"] for each in claimed["subscriptions"]] == [words]
    assert [each.user for each in await active_subscriptions(one_mail.client)] == ["ada"]


async def test_an_address_has_one_record_whichever_way_its_domain_is_spelt(one_mail: MailingService) -> None:
    """It would get an email a day for each, and an email's link would end the subscriptions of one."""
    for name, address in (("First", _UNICODE), ("Second", _ASCII)):
        await one_mail.ask(address, await known_list(one_mail.client, name))
        await one_mail.press(one_mail.links(_ASCII)[-1])
        one_mail.clock.now += timedelta(days=1)
    owners = [each.user for each in await active_subscriptions(one_mail.client)]
    assert len(owners) == 2
    assert len(set(owners)) == 1


@pytest.mark.lagging
async def test_of_two_members_in_one_shard_too_a_subscription_moves_whole(mail: MailingService) -> None:
    """The record's count and the member's are then one item, which a transaction may change only once."""
    words = await known_list(mail.client)
    record = await migrated(mail, ADA, list_key(words))
    shard = member_shard(record)
    user = next(f"ada{number}" for number in range(1000) if member_shard(f"ada{number}") == shard)
    ada = mail.client.member(user)
    await ada.ask(UPDATE_PROFILE, input={"email": ADA})
    await mail.press(mail.links(ADA)[0])
    assert len((await ada.ask(CLAIM_SUBSCRIPTIONS, input={}))["subscriptions"]) == 1
    assert await subscriber_count(mail.client, words) == 1
    assert await subscriptions_of(mail.client, user) == [(list_key(words), True)]
    await mail.client.caught_up("the audit counts every subscription")
    assert await breaches_in(mail.client.services) == []


async def test_a_claim_that_is_killed_anywhere_is_completed_by_the_next(one_mail: MailingService) -> None:
    """After each of its writes every subscription is the record's or the member's, counted once."""
    lists = [await known_list(one_mail.client, f"List {number}") for number in range(2)]
    services, once = one_mail.client.services, {"idempotencyKey": "once"}
    for write in range(6):
        address = f"ada{write}@example.org"
        record = await migrated(one_mail, address, *map(list_key, lists))
        ada = one_mail.client.member(f"ada{write}")
        await ada.ask(UPDATE_PROFILE, input={"email": address})
        await one_mail.press(one_mail.links(address)[0])
        with killed_at(services.table, write), suppress(Killed):
            await ada.ask(CLAIM_SUBSCRIPTIONS, input=once)
        # The engine may apply between two reads what was on its way beside the last write.
        each_has = partial(_are_had_once, one_mail.client, lists, record, f"ada{write}")
        await until(each_has, "every subscription is the record's or the member's")
        assert len((await ada.ask(CLAIM_SUBSCRIPTIONS, input=once))["subscriptions"]) == 2
        assert [await subscriber_count(one_mail.client, each) for each in lists] == [write + 1, write + 1]


async def _are_had_once(client: Client, lists: Sequence[str], *users: str) -> bool:
    """Whether of the users one each is subscribed to each list."""
    found = [each for user in users for each in await subscriptions_of(client, user)]
    return sorted(list_id for list_id, active in found if active) == sorted(map(list_key, lists))


async def sent_by_a_run(mail: MailingService) -> list[tuple[str, list[str]]]:
    """The recipients of the daily words that a run sends now, each with the names of the lists."""
    services, outbox = mail.client.services, Outbox()
    letterhead = Letterhead("words@example.org", "https://api.example.org", services.seal)
    await mail.client.caught_up("a run finds every subscriber")
    assert (await DailyRun(Emails(services, letterhead, outbox)).run()).complete
    return [(email.recipient, re.findall(r"from (List \d)", email.text)) for email in outbox.emails]


@pytest.mark.parametrize("killed_after", [None, 0, 1, 2, 3])
async def test_a_mailbox_is_not_sent_the_words_of_a_date_again_after_a_claim(
    one_mail: MailingService, killed_after: int | None
) -> None:
    """Also if the claim is killed after one of its first writes and repeated; the next date is sent."""
    await migrated(
        one_mail, ADA, *[list_key(await known_list(one_mail.client, f"List {number}")) for number in range(2)]
    )
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


async def test_a_mailbox_is_not_sent_the_words_of_the_day_before_yesterday_again(one_mail: MailingService) -> None:
    """Where it is evening in the west, two dates have begun in UTC since the one that is due there."""
    await migrated(one_mail, ADA, list_key(await known_list(one_mail.client, "List 0")))
    one_mail.clock.now = one_mail.clock.now.replace(hour=12)
    for later in (timedelta(), timedelta(hours=13), timedelta(hours=24)):  # 12:00, and 1:00 of the next two days
        one_mail.clock.now += later
        assert await sent_by_a_run(one_mail) == [(ADA, ["List 0"])]
    ada = one_mail.client.member("ada")
    await ada.ask(UPDATE_PROFILE, input={"timeZone": "America/Los_Angeles", "dailyWordAt": "20:00", "email": ADA})
    await one_mail.press(one_mail.links(ADA)[0])
    assert len((await ada.ask(CLAIM_SUBSCRIPTIONS, input={}))["subscriptions"]) == 1
    assert await sent_by_a_run(one_mail) == []


async def test_a_claim_does_not_cost_a_member_the_words_of_their_own_lists(one_mail: MailingService) -> None:
    """The address was sent its words of the date, and the member was not sent theirs yet: they come together."""
    lists = [await known_list(one_mail.client, f"List {number}") for number in range(2)]
    await migrated(one_mail, ADA, list_key(lists[0]))
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


@pytest.mark.lagging
@pytest.mark.parametrize("names_the_list", [False, True])
async def test_a_link_to_unsubscribe_from_before_a_claim_ends_what_the_member_has(
    mail: MailingService, *, names_the_list: bool
) -> None:
    """The one list that it names, or all; pressed again it answers the same. The audit finds nothing."""
    words, other = await known_list(mail.client), await known_list(mail.client, "Others")
    await migrated(mail, ADA, list_key(words), list_key(other))
    await claimed(mail, "ada")
    await mail.client.caught_up("an index shows who claimed the address")
    link = unsubscribing(mail, *([list_key(words)] if names_the_list else []))
    for _ in range(2):
        answer = await mail.press(link)
        assert (answer.status_code, "<h1>Done</h1>" in answer.text) == (200, True)
        left = {each.list for each in await active_subscriptions(mail.client)}
        assert left == ({list_key(other)} if names_the_list else set())
    await mail.client.caught_up("the audit counts every subscription")
    assert await breaches_in(mail.client.services) == []


async def test_a_link_of_an_address_that_subscribed_again_ends_that_subscription(one_mail: MailingService) -> None:
    """Whoever has the mailbox by then must not end what the member who claimed it before has."""
    words, own = await known_list(one_mail.client), await known_list(one_mail.client, "Own")
    record = await migrated(one_mail, ADA, list_key(words))
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
    record = await migrated(one_mail, ADA, list_key(words))
    await claimed(one_mail, "ada")
    one_mail.clock.now += timedelta(days=1)
    await one_mail.ask(ADA, other)
    await one_mail.press(one_mail.links(ADA)[-1])
    for what, left in (([list_key(words)], {(record, list_key(other))}), ([], set())):
        answer = await one_mail.press(unsubscribing(one_mail, *what))
        assert (answer.status_code, "<h1>Done</h1>" in answer.text) == (200, True)
        assert {(each.user, each.list) for each in await active_subscriptions(one_mail.client)} == left


@pytest.mark.parametrize("writes", range(6))
async def test_no_link_says_done_while_the_emails_go_on(one_mail: MailingService, writes: int) -> None:
    """After a claim that was killed anywhere: the subscription is the record's or the member's by then."""
    words = await known_list(one_mail.client)
    await migrated(one_mail, ADA, list_key(words))
    ada = one_mail.client.member("ada")
    await ada.ask(UPDATE_PROFILE, input={"email": ADA})
    await one_mail.press(one_mail.links(ADA)[-1])
    with killed_at(one_mail.client.services.table, writes), suppress(Killed):
        await ada.ask(CLAIM_SUBSCRIPTIONS, input={})
    answer = await one_mail.press(unsubscribing(one_mail))
    assert ("<h1>Done</h1>" in answer.text, await active_subscriptions(one_mail.client)) == (True, [])


async def test_a_link_of_an_address_that_bounced_ends_its_subscription(one_mail: MailingService) -> None:
    words = await known_list(one_mail.client)
    record = await migrated(one_mail, ADA, list_key(words))
    await subscriptions.drop_address(one_mail.client.services.table, record, ADA)
    answer = await one_mail.press(unsubscribing(one_mail))
    assert (answer.status_code, await active_subscriptions(one_mail.client)) == (200, [])


async def test_a_claim_of_nothing_leaves_the_links_to_whoever_claimed_before(one_mail: MailingService) -> None:
    words = await known_list(one_mail.client)
    await migrated(one_mail, ADA, list_key(words))
    await claimed(one_mail, "ada")
    one_mail.clock.now += timedelta(days=1)
    bob = one_mail.client.member("bob")
    await bob.ask(UPDATE_PROFILE, input={"email": ADA})
    await one_mail.press(one_mail.links(ADA)[-1])
    assert (await bob.ask(CLAIM_SUBSCRIPTIONS, input={}))["subscriptions"] == []
    answer = await one_mail.press(unsubscribing(one_mail))
    assert (answer.status_code, await active_subscriptions(one_mail.client)) == (200, [])


async def test_a_link_to_unsubscribe_that_means_nobody_for_certain_says_so(one_mail: MailingService) -> None:
    """Two members claimed the address one after the other; or the notes of it are gone, as with erased members."""
    table, words = one_mail.client.services.table, await known_list(one_mail.client)
    await migrated(one_mail, ADA, list_key(words))
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
        await create_list(services.table, word_list, UnitOfWork.unkeyed(mail.clock()))
        record = await migrated(mail, ADA, word_list.list)
        claims = {"email": ADA, "name": "Ada"} | ({} if verified is None else {"email_verified": verified})
        ada = Client(mail.client.served, settings, token(settings, "ada", **claims))
        answer = await ada.ask(CLAIM_SUBSCRIPTIONS, input={})
        assert answer.get("code") == code
        _, member = parse_node_id((await ada.ask("{ viewer { id } }"))["id"])
        owner = member if code is None else record
        assert [each.user for each in await active_subscriptions(mail.client)] == [owner]


@pytest.mark.parametrize("trusted", [{"jwt_issuer": ISSUER}, {"site_keys": (TokenKey(ISSUER, SecretStr(SECRET)),)}])
async def test_a_verified_address_needs_no_link(
    one_table: Table, default_engine: RunningEngine, tmp_path: Path, trusted: Mapping[str, Any]
) -> None:
    """The provider or the site has proven it: `updateProfile` takes it at once, and sends nothing.

    So it does with one that has bounced, which a claim does not give back.
    """
    settings = settings_for(default_engine, one_table.name, **trusted)
    async with mailing(settings, tmp_path) as mail:
        claims = {"iss": ISSUER, "aud": settings.public_url, "email": ADA, "email_verified": True, "name": "Ada"}
        ada = Client(mail.client.served, settings, token(settings, "ada", **claims))
        await ada.ask(UPDATE_PROFILE, input={"email": None})
        for _ in range(2):
            changed = await ada.ask(UPDATE_PROFILE, input={"email": ADA})
            assert changed["user"]["email"] == ADA
            await remove_addresses(mail.client.services, {ADA})
            assert "code" not in await ada.ask(CLAIM_SUBSCRIPTIONS, input={})
            assert await mail.profile(ADA) is None
    assert mail.mailbox.emails == []


async def test_a_claim_with_a_key_is_made_once(one_table: Table, default_engine: RunningEngine, tmp_path: Path) -> None:
    """What the member ends and removes after it stays so when the request is repeated."""
    settings = settings_for(default_engine, one_table.name, jwt_issuer=ISSUER)
    async with mailing(settings, tmp_path) as mail:
        words = await known_list(mail.client)
        await migrated(mail, ADA, list_key(words))
        claims = {"email": ADA, "email_verified": True, "name": "Ada"}
        ada = Client(mail.client.served, settings, token(settings, "ada", **claims))
        first = await ada.ask(CLAIM_SUBSCRIPTIONS, input={"idempotencyKey": "k"})
        assert [each["list"]["id"] for each in first["subscriptions"]] == [words]
        await ada.ask(UNSUBSCRIBE, input={"list": words})
        await ada.ask(UPDATE_PROFILE, input={"email": None})
        assert await ada.ask(CLAIM_SUBSCRIPTIONS, input={"idempotencyKey": "k"}) == first
        assert await active_subscriptions(mail.client) == []
        assert await ada.ask("{ viewer { email } }") == {"email": None}


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
    assert active == {list_key(words): "ada", list_key(other): record_id(mail.client.services.seal, ADA)}
    assert len((await ada.ask(CLAIM_SUBSCRIPTIONS, input={}))["subscriptions"]) == 2
    assert {each.user for each in await active_subscriptions(mail.client)} == {"ada"}
