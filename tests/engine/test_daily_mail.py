"""The daily run against a real mail server: who gets which email, once, and how it fails."""

import asyncio
import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from datastore.changes.occurrences import OCCURRENCE, Kind
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import StorageFailed, Table, Throttled, metered
from datastore.people import profiles as profile_store
from datastore.people.profiles import PROFILE, Profile
from datastore.values.seal import Seal
from datastore.vocabulary import daily
from datastore.vocabulary import lists as list_store
from datastore.vocabulary.daily import DailyWord
from datastore.vocabulary.lists import LIST, WordList
from datastore.vocabulary.subscriptions import (
    DAILY_EMAILS,
    DAILY_MAILING,
    MAIL,
    SENT_NOTE,
    CharacterSet,
    DailyMailing,
    Mail,
    Subscription,
    read_subscriber_count,
    read_subscriptions,
    subscribe,
    unsubscribe,
)
from datastore.vocabulary.words import Word, WordBatch, add_words, remove_word
from resolvers.requests.context import Services
from server.mail.daily_run import DailyRun, MailingExpired, RunSummary
from server.mail.message import Email, Letterhead, OtherEmails, Unsubscription, message_id
from server.mail.sending import (
    DeliveryUnknown,
    EmailRejected,
    Emails,
    LogTransport,
    RejectedForNow,
    ServerUnreachable,
    SmtpTransport,
    must_encrypt,
)
from tests.client import Client
from tests.conftest import SECRET
from tests.engines import RunningEngine
from tests.erasing import bury
from tests.intercepted import beforehand
from tests.mail_server import Mailbox, Outbox, body_of, mail_server, trusted
from tests.waiting import caught_up

ON = date(2026, 11, 20)
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
SENDER = "Words <words@example.org>"


def services_for(table: Table) -> Services:
    return Services(table, Seal([SECRET]))


async def create_list(services: Services, name: str, words: int = 3, owner: str | None = None) -> str:
    unit = UnitOfWork("test", None, "", NOW)
    new = WordList(services.ids.next(NOW), name, public=owner is None, created_at=NOW, owner=owner)
    await list_store.create_list(services.table, new, unit)
    if words:
        texts = tuple(Word(new.list, 0, f"简{n}", f"<b>meaning</b> {n}", f"繁{n}", f"pīn {n}") for n in range(words))
        await add_words(services.table, new.list, WordBatch(services.ids.next(NOW), texts, 500), unit)
    return new.list


async def subscriber(
    services: Services, user: str, *lists: str, email: str | None = "", traditional: bool = False
) -> None:
    address = f"{user}@example.org" if email == "" else email
    await services.table.write(PROFILE.put(Profile(user, user.title(), NOW, email=address)))
    characters = CharacterSet.TRADITIONAL if traditional else CharacterSet.SIMPLIFIED
    for list_id in lists:
        subscription = Subscription(user, list_id, characters, active=True, since=NOW)
        await subscribe(services.table, subscription, UnitOfWork(user, None, "", NOW))


def letterhead(services: Services) -> Letterhead:
    return Letterhead(SENDER, "https://api.example.org", services.seal)


async def run(services: Services, url: str, on: date = ON, timeout: float | None = None) -> RunSummary:
    transport = SmtpTransport(url, "words@example.org", pause=0.01)
    transport.timeout = timeout or transport.timeout
    try:
        return await DailyRun(Emails(services, letterhead(services), transport, 4), on=on).run()
    finally:
        await transport.close()


@pytest.mark.lagging
async def test_every_subscriber_gets_one_email(table: Table, engine: RunningEngine, tmp_path: Path) -> None:
    """In their character set, with all of their lists; a second run sends nothing."""
    services, mailbox = services_for(table), Mailbox()
    first, second = await create_list(services, "First"), await create_list(services, "Second")
    await subscriber(services, "ada", first, second)
    await subscriber(services, "bob", first, traditional=True)
    await subscriber(services, "cleo", first, email=None)
    await subscriber(services, "dan")
    await unsubscribe(services.table, "ada", second, CharacterSet.SIMPLIFIED, UnitOfWork("ada", None, "", NOW))
    await subscriber(services, "ada", second)
    await caught_up(engine.url, "a run finds every subscriber")
    async with mail_server(mailbox, tmp_path) as url:
        done = await run(services, url)
        again = await run(services, url)
    assert mailbox.recipients == ["ada@example.org", "bob@example.org"]
    assert (done.lists, done.sent, done.without_address, done.complete) == (2, 2, 1, True)
    assert (again.sent, again.already_sent, again.complete) == (0, 2, True)
    texts = {to: body_of(email) for to, email in mailbox.emails}
    assert "from First" in texts["ada@example.org"]
    assert "from Second" in texts["ada@example.org"]
    assert "简" in texts["ada@example.org"]
    assert "繁" in texts["bob@example.org"]
    assert "简" not in texts["bob@example.org"]


@pytest.mark.parametrize(
    "word",
    [
        Word("", 0, "la escuela", "school", any_language=True),
        Word("", 0, "你好", "hello", pinyin="nǐ hǎo"),
        Word("", 0, "你好", "hello", traditional="你好", pinyin="nǐ hǎo"),
    ],
)
async def test_a_word_of_one_spelling_comes_once_and_its_link_ends_it(
    one_client: Client, tmp_path: Path, word: Word
) -> None:
    """To a member who subscribed in both character sets, maybe once by an address: only some Chinese words differ."""
    services, mailbox = one_client.services, Mailbox()
    words = await create_list(services, "Palabras", words=0)
    batch = WordBatch(services.ids.next(NOW), [replace(word, list=words)], 500)
    await add_words(services.table, words, batch, UnitOfWork("test", None, "", NOW))
    for traditional in (False, True):
        await subscriber(services, "ada", words, traditional=traditional)
    async with mail_server(mailbox, tmp_path) as url:
        await run(services, url)
    [(_, email)] = mailbox.emails
    assert body_of(email).count(word.term) == 1
    link = re.search(r"unsubscribe from this list: https://api\.example\.org(\S+)\)", body_of(email))
    assert link is not None
    await one_client.http.post(link[1])
    assert [each.active for each in await read_subscriptions(services.table, "ada")] == [False, False]


async def test_an_email_has_what_mail_programs_need(one_table: Table, tmp_path: Path) -> None:
    """Text and HTML, a repeatable Message-ID, one click to unsubscribe, and no markup from outside."""
    services, mailbox = services_for(one_table), Mailbox()
    await subscriber(services, "ada", await create_list(services, "A <i>list</i>", words=1))
    async with mail_server(mailbox, tmp_path) as url:
        await run(services, url)
    email = mailbox.emails[0][1]
    assert email["Message-ID"] == message_id("daily.20261120", SENDER, "ada", ON)
    assert email["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert email["From"] == SENDER
    assert "简0 (pīn 0)" in email["Subject"]
    html = body_of(email, "html")
    assert "&lt;b&gt;meaning&lt;/b&gt;" in html
    assert "A &lt;i&gt;list&lt;/i&gt;" in html
    assert 'lang="zh-Hans"' in html


# CPython 3.11 leaves the server's end of a refused TLS handshake to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("starttls", "tls"), [(True, False), (False, True)])
async def test_tls_and_login(
    one_table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, starttls: bool, tls: bool
) -> None:
    """STARTTLS and implicit TLS, with a password; a server with an untrusted certificate gets no email."""
    services, mailbox = services_for(one_table), Mailbox()
    await subscriber(services, "ada", await create_list(services, "First"))
    async with mail_server(mailbox, tmp_path, starttls=starttls, tls=tls, login=True) as url:
        with pytest.raises(ServerUnreachable, match="certificate"):
            await run(services, url)
        with trusted(monkeypatch, mailbox):
            with pytest.raises(ServerUnreachable, match="535"):
                await run(services, url.replace("pass", "miss"))
            done = await run(services, url)
    assert (done.sent, mailbox.recipients, mailbox.encrypted) == (1, ["ada@example.org"], [True])


@pytest.mark.parametrize(
    ("starttls", "tls", "login"),
    [(True, False, False), (False, True, False), (True, False, True), (False, False, False)],
)
async def test_an_address_beyond_ascii_is_accepted_with_and_without_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, starttls: bool, tls: bool, login: bool
) -> None:
    """What the server offers is asked after TLS began, also where no login asks for it."""
    mailbox = Mailbox()
    async with mail_server(mailbox, tmp_path, starttls=starttls, tls=tls, login=login) as url:
        with trusted(monkeypatch, mailbox):
            transport = SmtpTransport(url, "words@example.org", pause=0.01)
            await transport.send(Email("jörg@bücher.example", "", "", b"Subject: x\r\n\r\n"))
            await transport.close()
    assert mailbox.recipients == ["jörg@bücher.example"]


async def test_a_server_for_ascii_only_is_given_the_ascii_form_of_a_domain(one_table: Table, tmp_path: Path) -> None:
    """ß keeps its own domain. A name beyond ASCII fails, and goes out once the server takes it."""
    services, mailbox = services_for(one_table), Mailbox()
    first = await create_list(services, "First")
    for user, address in (("ada", "ada@bücher.example"), ("bob", "bob@straße.example"), ("jo", "jörg@bücher.example")):
        await subscriber(services, user, first, email=address)
    async with mail_server(mailbox, tmp_path, utf8=False) as url:
        done = await run(services, url)
    sent = ["ada@xn--bcher-kva.example", "bob@xn--strae-oqa.example"]
    assert mailbox.recipients == sorted(email["To"] for _, email in mailbox.emails) == sent
    assert (done.sent, done.failed, done.complete) == (2, 1, False)
    assert "only ASCII addresses" in done.reasons[0]
    async with mail_server(mailbox, tmp_path) as url:
        again = await run(services, url)
    assert (again.sent, again.already_sent, mailbox.recipients[2:]) == (1, 2, ["jörg@bücher.example"])


async def test_a_login_without_tls_is_for_this_machine_only(one_table: Table, tmp_path: Path) -> None:
    """A local relay may lack TLS; in a private network no password is sent without it, beyond that nothing is."""
    services, mailbox = services_for(one_table), Mailbox()
    await subscriber(services, "ada", await create_list(services, "First"))
    async with mail_server(mailbox, tmp_path, login=True) as url:
        assert (await run(services, url)).sent == 1
    assert mailbox.encrypted == [False]
    hosts = ("127.0.0.1", "localhost", "::1", "10.0.0.7", "mailhog", "mail.example.org", "8.8.8.8")
    assert [must_encrypt(host, login=False) for host in hosts] == [False, False, False, False, False, True, True]
    assert [must_encrypt(host, login=True) for host in hosts] == [False, False, False, True, True, True, True]


@pytest.mark.lagging
async def test_a_run_with_nothing_due_does_not_read_every_record(
    table: Table, engine: RunningEngine, tmp_path: Path
) -> None:
    """It reads whom earlier runs have noted; the emails of a run that left no notes are not sent again either."""
    services, members, mailbox = services_for(table), 120, Mailbox()
    first = await create_list(services, "First")
    users = [f"user{number}" for number in range(members)]
    await asyncio.gather(*(subscriber(services, user, first) for user in users))
    await caught_up(engine.url, "a run finds every subscriber")
    async with mail_server(mailbox, tmp_path) as url:
        assert (await run(services, url)).sent == members
        await caught_up(engine.url, "a run finds every note")
        with metered() as spent:
            again = await run(services, url)
        assert (again.sent, again.already_sent) == (0, members)
        assert spent.read_units < members
        async for note in table.scan(SENT_NOTE, consistent=True):
            await table.write(SENT_NOTE.delete(SENT_NOTE.item_key(note)))
        await caught_up(engine.url, "a run finds no note")
        assert (await run(services, url)).already_sent == members
        notes = [note async for note in table.scan(SENT_NOTE, consistent=True)]
    assert sum(len(note.members) for note in notes) == 8 * members
    assert mailbox.recipients == sorted(f"{user}@example.org" for user in users)


async def test_a_note_of_one_date_says_nothing_about_another(one_table: Table, tmp_path: Path) -> None:
    """The next date's email is sent, and so is an earlier one by the command's `--on`."""
    services, mailbox = services_for(one_table), Mailbox()
    await subscriber(services, "ada", await create_list(services, "First"))
    async with mail_server(mailbox, tmp_path) as url:
        for on in (ON, ON + timedelta(days=1), ON - timedelta(days=1)):
            assert (await run(services, url, on=on)).sent == 1
    assert mailbox.recipients == ["ada@example.org"] * 3


async def test_one_failing_address_does_not_stop_the_others(one_table: Table, tmp_path: Path) -> None:
    """A rejected email is counted, and the next run tries again; a busy server is asked again at once."""
    services, mailbox = services_for(one_table), Mailbox()
    first = await create_list(services, "First")
    for user in ("ada", "bob", "cleo", "dan"):
        await subscriber(services, user, first)
    await subscriber(services, "eve", first, email="evil@example.org\r\nBcc: all@example.org")
    busy = ["450 later", "450 later"]

    def answer(address: str) -> str | None:
        if address.startswith("bob"):
            return "550 no such mailbox"
        return busy.pop() if address.startswith("dan") and busy else None

    mailbox.answer_recipient = answer
    async with mail_server(mailbox, tmp_path) as url:
        done = await run(services, url)
        assert mailbox.recipients == ["ada@example.org", "cleo@example.org", "dan@example.org"]
        assert (done.sent, done.failed, done.complete) == (3, 2, False)
        assert any("550" in reason for reason in done.reasons)
        mailbox.answer_recipient = lambda _: None
        again = await run(services, url)
    assert (again.sent, again.failed, again.already_sent) == (1, 1, 3)


async def test_one_failing_list_does_not_stop_the_others(one_table: Table, tmp_path: Path) -> None:
    """A list whose words are missing, or miscounted, is reported; the words of other lists are sent."""
    services, mailbox = services_for(one_table), Mailbox()
    good, broken = await create_list(services, "Good"), await create_list(services, "Broken", words=0)
    empty = await create_list(services, "Empty", words=0)
    await services.table.write(LIST.update(LIST.at(list=broken), values={"next_ordinal": 5}))
    miscounted = await create_list(services, "Miscounted", words=1)
    await remove_word(services.table, miscounted, 0, UnitOfWork("test", None, "", NOW))
    await services.table.write(LIST.update(LIST.at(list=miscounted), values={"removed": 2}))
    await subscriber(services, "ada", good, broken, miscounted)
    await subscriber(services, "bob", broken)
    await subscriber(services, "cleo", empty)
    async with mail_server(mailbox, tmp_path) as url:
        done = await run(services, url)
    assert mailbox.recipients == ["ada@example.org"]
    assert sorted(done.failed_lists) == sorted([broken, miscounted])
    assert (done.without_words, done.complete, done.failed_for_now) == (2, False, False)


async def test_a_word_that_could_not_be_drawn_for_a_moment_comes_with_the_next_run(
    one_table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The email that it belongs to waits for it; emails without this list are sent."""
    services = services_for(one_table)
    good, busy = await create_list(services, "Good"), await create_list(services, "Busy")
    await subscriber(services, "ada", good, busy)
    await subscriber(services, "bob", good)
    for place in range(20):
        await subscriber(services, f"fan{place}", busy)
    draw, attempts = daily.draw_daily_word, 0

    async def throttled(table: Table, list_id: str, on: date) -> DailyWord | None:
        nonlocal attempts
        if list_id == busy:
            attempts += 1
            raise Throttled("the engine is overloaded")
        return await draw(table, list_id, on)

    outbox = Outbox()
    with monkeypatch.context() as patched:
        patched.setattr("server.mail.daily_run.draw_daily_word", throttled)
        done = await DailyRun(Emails(services, letterhead(services), outbox), on=ON).run()
    assert outbox.recipients == ["bob@example.org"]
    assert (done.sent, done.failed, list(done.failed_lists), done.complete) == (1, 21, [busy], False)
    assert done.failed_for_now
    assert attempts == 1  # each takes half a minute, for which all others would wait too
    again = await DailyRun(Emails(services, letterhead(services), outbox), on=ON).run()
    assert (again.sent, again.already_sent, again.complete) == (21, 1, True)
    [both] = [email for email in outbox.emails if email.recipient == "ada@example.org"]
    assert "from Good" in both.text
    assert "from Busy" in both.text


async def test_a_private_list_is_sent_to_its_owner_alone(one_table: Table, tmp_path: Path) -> None:
    """A subscription to another member's private list, whatever its origin, is not served."""
    services, mailbox = services_for(one_table), Mailbox()
    mine = await create_list(services, "Mine", owner="ada")
    await subscriber(services, "ada", mine)
    await subscriber(services, "bob", mine)
    async with mail_server(mailbox, tmp_path) as url:
        done = await run(services, url)
    assert mailbox.recipients == ["ada@example.org"]
    assert done.without_words == 1


async def test_an_email_that_a_killed_run_had_begun_is_sent_by_the_next(one_table: Table, tmp_path: Path) -> None:
    """At once: only one run is active at a time, so nobody sends it any more."""
    services, mailbox = services_for(one_table), Mailbox()
    await subscriber(services, "ada", await create_list(services, "First"))
    begun = Mail("ada", ON, services.clock() + timedelta(days=1))
    assert await DAILY_EMAILS.begin(services.table, begun)
    async with mail_server(mailbox, tmp_path) as url:
        done = await run(services, url)
    assert (done.sent, done.complete, len(mailbox.emails)) == (1, True, 1)
    mail = await services.table.get(MAIL.at(user="ada", date=ON), consistent=True)
    assert mail is not None
    assert mail.sent is not None


async def test_an_email_that_was_sent_is_not_begun_again(one_table: Table) -> None:
    """Nor does a late mark bring back a record that was deleted."""
    mine = Mail("ada", ON, NOW + timedelta(days=60))
    assert await DAILY_EMAILS.begin(one_table, mine)
    await DAILY_EMAILS.mark_sent(one_table, mine, NOW)
    assert not await DAILY_EMAILS.begin(one_table, mine)
    assert await one_table.get(MAIL.item_key(mine), consistent=True) == replace(mine, sent=NOW)
    await one_table.write(MAIL.delete(MAIL.item_key(mine)))
    await DAILY_EMAILS.mark_sent(one_table, mine, NOW)
    assert await one_table.get(MAIL.item_key(mine), consistent=True) is None


async def test_an_email_of_unknown_delivery_is_not_sent_again_by_the_run(one_table: Table) -> None:
    """The connection was lost after the email was handed over: it counts as failed, and is not marked."""
    services = services_for(one_table)
    first = await create_list(services, "First")
    await subscriber(services, "ada", first)
    await subscriber(services, "bob", first)
    outbox = Outbox()
    outbox.fails = lambda address: DeliveryUnknown("the connection was lost") if address.startswith("ada") else None
    done = await DailyRun(Emails(services, letterhead(services), outbox), on=ON).run()
    assert (done.sent, done.failed) == (1, 1)
    mail = await services.table.get(MAIL.at(user="ada", date=ON), consistent=True)
    assert mail is not None
    assert mail.sent is None


async def test_emails_of_long_ago_are_not_sent_again(one_table: Table) -> None:
    """A run refuses when the records of the emails may have expired; the first run of a date may be late."""
    services = services_for(one_table)
    await subscriber(services, "ada", await create_list(services, "First"))
    done = await DailyRun(Emails(services, letterhead(services), LogTransport()), on=ON).run()
    assert done.sent == 1
    await services.table.write(DAILY_MAILING.put(DailyMailing(ON, services.clock() - timedelta(days=32))))
    with pytest.raises(MailingExpired, match="2026-11-20"):
        await DailyRun(Emails(services, letterhead(services), LogTransport()), on=ON).run()


async def test_a_subscription_that_the_run_ends_is_in_the_journal(one_table: Table, tmp_path: Path) -> None:
    """Its list was deleted; a receiver that keeps who subscribes learns of the end."""
    services = services_for(one_table)
    list_id = await create_list(services, "First")
    await subscriber(services, "ada", list_id)
    await list_store.delete_list(one_table, list_id, "", UnitOfWork("editor", None, "", NOW))
    async with mail_server(Mailbox(), tmp_path) as url:
        await run(services, url)
    ended = [one async for one in one_table.scan(OCCURRENCE, consistent=True) if one.kind == Kind.SUBSCRIPTION_ENDED]
    assert [one.actor for one in ended] == [services.operator]


async def test_an_unreachable_server_ends_the_run(one_table: Table) -> None:
    """And nothing is marked as sent."""
    services = services_for(one_table)
    await subscriber(services, "ada", await create_list(services, "First"))
    with pytest.raises(ServerUnreachable, match=r"127\.0\.0\.1:1 cannot be used"):
        await run(services, "smtp://127.0.0.1:1")
    mail = await services.table.get(MAIL.at(user="ada", date=ON), consistent=True)
    assert mail is not None
    assert mail.sent is None


async def test_a_rejected_email_raises(tmp_path: Path) -> None:
    """After one permanent rejection, or three temporary ones, of which it says so."""
    mailbox = Mailbox()
    email = Email("ada@example.org", "", "", b"Subject: x\r\n\r\n")
    async with mail_server(mailbox, tmp_path) as url:
        transport = SmtpTransport(url, "words@example.org", pause=0.01)
        for answer, raised in (("550 never", EmailRejected), ("450 later", RejectedForNow)):
            mailbox.answer_recipient = {"ada@example.org": answer}.get
            with pytest.raises(EmailRejected, match=answer) as failed:
                await transport.send(email)
            assert failed.type is raised
        await transport.close()


async def test_a_connection_is_not_used_again_in_the_middle_of_an_email(tmp_path: Path) -> None:
    """An email cancelled while the server decides leaves no half of a transaction to the next one."""
    mailbox, decides, handed_over = Mailbox(), asyncio.Event(), asyncio.Event()

    async def decide(_: object) -> None:
        handed_over.set()
        await decides.wait()

    mailbox.before_accepting = decide
    async with mail_server(mailbox, tmp_path) as url:
        transport = SmtpTransport(url, "words@example.org", at_once=1)
        first = asyncio.create_task(transport.send(Email("ada@example.org", "", "", b"Subject: 1\r\n\r\n")))
        await handed_over.wait()
        first.cancel()
        await asyncio.wait([first])
        decides.set()
        await transport.send(Email("bob@example.org", "", "", b"Subject: 2\r\n\r\n"))
        await transport.close()
    assert [(to, email["Subject"]) for to, email in mailbox.emails if to.startswith("bob")] == [
        ("bob@example.org", "2")
    ]


async def test_connections_that_the_server_closed_meanwhile_cost_no_email(tmp_path: Path) -> None:
    """More of them than an email has attempts: servers close what is idle for long."""
    mailbox, arrived, opened = Mailbox(), asyncio.Barrier(4), list[Any]()

    async def arrive_together(server: Any) -> None:
        if len(opened) < 4:
            opened.append(server.transport)
            await arrived.wait()

    mailbox.before_accepting = arrive_together
    async with mail_server(mailbox, tmp_path) as url:
        transport = SmtpTransport(url, "words@example.org", pause=0.01)
        email = Email("ada@example.org", "", "", b"Subject: x\r\n\r\n")
        await asyncio.gather(*(transport.send(email) for _ in range(4)))
        for connection in opened:
            connection.close()
        while any(connection.is_connected for connection in transport._idle):
            await asyncio.sleep(0.01)
        await transport.send(email)
        await transport.close()
    assert len(mailbox.emails) == 5


async def test_a_server_that_takes_few_connections_gets_all_emails_in_one_run(one_table: Table, tmp_path: Path) -> None:
    """Many take two or three at the same time, and answer 421 to more: then those that are open are enough."""
    services, mailbox = services_for(one_table), Mailbox()
    words = await create_list(services, "First")
    for number in range(20):
        await subscriber(services, f"ada{number}", words)
    async with mail_server(mailbox, tmp_path, most=2) as url:
        done = await run(services, url)
    assert (done.sent, done.complete) == (20, True)
    assert len(set(mailbox.recipients)) == len(mailbox.recipients) == 20


async def test_a_login_that_is_refused_for_now_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy server answers 454: that is no wrong password, which is asked for once."""
    mailbox, email = Mailbox(), Email("ada@example.org", "", "", b"Subject: x\r\n\r\n")
    async with mail_server(mailbox, tmp_path, tls=True, login=True) as url:
        with trusted(monkeypatch, mailbox):
            transport = SmtpTransport(url, "words@example.org", pause=0.01)
        answers = iter(["454 4.7.0 Temporary authentication failure"] * 2)  # to both of its methods
        mailbox.answer_login = lambda: next(answers, None)
        await transport.send(email)
        await transport.close()
    assert mailbox.recipients == ["ada@example.org"]


class Hesitates(Mailbox):
    """A server that waits before its first answer to a command; what it has answered goes on as usual."""

    def __init__(self, command: str) -> None:
        super().__init__()
        self.command, self.goes_on, self.asked = command, asyncio.Event(), 0

    async def _hesitate(self, command: str) -> None:
        self.asked += command == self.command
        if command == self.command and self.asked == 1:
            await self.goes_on.wait()

    async def handle_EHLO(  # noqa: N802
        self, _server: Any, session: Any, _envelope: Any, host: str, answers: list[str]
    ) -> list[str]:
        await self._hesitate("EHLO")
        session.host_name = host
        return answers

    async def handle_RCPT(self, *arguments: Any) -> str:  # noqa: N802
        await self._hesitate("RCPT")
        return await super().handle_RCPT(*arguments)

    async def handle_DATA(self, *arguments: Any) -> str:  # noqa: N802
        await self._hesitate("DATA")
        return await super().handle_DATA(*arguments)


@pytest.mark.parametrize(
    ("command", "raised"), [("EHLO", ServerUnreachable), ("RCPT", RejectedForNow), ("DATA", DeliveryUnknown)]
)
async def test_an_email_is_given_up_when_all_of_its_steps_take_too_long(
    tmp_path: Path, command: str, raised: type[Exception]
) -> None:
    """Though no step has reached its own timeout. Only once it was handed over may it have been sent."""
    mailbox = Hesitates(command)
    while not mailbox.asked:  # a busy machine may take all of the time before that step
        async with mail_server(mailbox, tmp_path) as url:
            transport = SmtpTransport(url, "words@example.org", pause=0.01)
            transport.longest = 2.0
            with pytest.raises((ServerUnreachable, EmailRejected, DeliveryUnknown)) as failed:
                await transport.send(Email("ada@example.org", "", "", b"Subject: x\r\n\r\n"))
            await transport.close()
    assert failed.type is raised
    assert (mailbox.asked, mailbox.emails) == (1, [])


class Examines(Mailbox):
    """Has an email, and says so late."""

    async def handle_DATA(self, *arguments: Any) -> str:  # noqa: N802
        answer = await super().handle_DATA(*arguments)
        await asyncio.sleep(1.5)
        return answer


async def test_a_server_may_take_longer_over_an_email_than_over_other_steps(one_table: Table, tmp_path: Path) -> None:
    """Otherwise each run would send it again, since none would learn that it was accepted."""
    services, mailbox = services_for(one_table), Examines()
    await subscriber(services, "ada", await create_list(services, "First"))
    async with mail_server(mailbox, tmp_path) as url:
        done = [await run(services, url, timeout=1.0) for _ in range(2)]
    assert mailbox.recipients == ["ada@example.org"]
    assert [each.sent for each in done] == [1, 0]


# ── the link in the email ──


async def test_the_link_works_without_a_login(one_client: Client, tmp_path: Path) -> None:
    """Opening it changes nothing; the button ends one subscription, or all of them, and can be pressed again."""
    services, mailbox = one_client.services, Mailbox()
    first, second = await create_list(services, "First & <last>"), await create_list(services, "Second")
    await subscriber(services, "ada", first, second)
    async with mail_server(mailbox, tmp_path) as url:
        await run(services, url)
    email = mailbox.emails[0][1]
    text = body_of(email)
    end_first = re.findall(r"https://api\.example\.org(/unsubscribe\?token=[\w-]+)", text)[0]
    end_all = str(email["List-Unsubscribe"]).removeprefix("<https://api.example.org").removesuffix(">")

    async def active() -> list[str]:
        subscriptions = await read_subscriptions(services.table, "ada")
        return sorted(subscription.list for subscription in subscriptions if subscription.active)

    page = await one_client.http.get(end_first)
    assert page.status_code == 200
    assert "First &amp; &lt;last&gt;" in page.text
    assert "script-src" not in page.headers["content-security-policy"]
    assert await active() == sorted([first, second])
    for _ in range(2):
        assert (await one_client.http.post(end_first)).status_code == 200
        assert await active() == [second]
    clicked = await one_client.http.post(end_all, data={"List-Unsubscribe": "One-Click"})
    assert clicked.status_code == 200
    assert await active() == []
    assert await read_subscriber_count(services.table, second) == 0


@pytest.mark.parametrize("switches", [False, True])
async def test_a_lists_link_ends_it_in_every_spelling(one_client: Client, tmp_path: Path, *, switches: bool) -> None:
    """Its page names the list alone and says "Done": also to who has both, or has changed it since the email."""
    services, mailbox = one_client.services, Mailbox()
    words, other = await create_list(services, "First"), await create_list(services, "Second")
    await subscriber(services, "ada", words, other)
    if not switches:
        await subscriber(services, "ada", words, traditional=True)
    async with mail_server(mailbox, tmp_path) as url:
        await run(services, url)
    line = r"from First \(unsubscribe from this list: https://api\.example\.org(\S+)\)"
    link = re.search(line, body_of(mailbox.emails[0][1]))
    assert link is not None
    if switches:
        await subscriber(services, "ada", words, traditional=True)
        await unsubscribe(services.table, "ada", words, CharacterSet.SIMPLIFIED, UnitOfWork("ada", None, "", NOW))
    assert "<h1>Done</h1>" in (await one_client.http.post(link[1])).text
    assert {each.list for each in await read_subscriptions(services.table, "ada") if each.active} == {other}
    assert await read_subscriber_count(services.table, words) == 0


async def test_a_page_does_not_say_that_nothing_ended_when_a_part_has(one_client: Client) -> None:
    """The table failed between two subscriptions: the button ends the rest when it is pressed again."""
    services = one_client.services
    first, second = await create_list(services, "First"), await create_list(services, "Second")
    await subscriber(services, "ada", first, second)
    given = {"token": Unsubscription("ada").token(services.seal)}

    async def fail() -> None:
        raise StorageFailed("the disk is full")

    with beforehand(services.table, fail, about=f"SUBSCRIPTION#{second}"):
        answer = await one_client.http.post("/unsubscribe", params=given)
    assert [each.active for each in await read_subscriptions(services.table, "ada")] == [False, True]
    assert (answer.status_code, "It may be done already, or in part" in answer.text) == (503, True)
    assert "<h1>Done</h1>" in (await one_client.http.post("/unsubscribe", params=given)).text
    assert [each.active for each in await read_subscriptions(services.table, "ada")] == [False, False]


async def test_the_link_works_for_a_member_who_is_being_erased(one_client: Client) -> None:
    """The job has not come to their subscriptions yet, and their profile is gone."""
    services = one_client.services
    await subscriber(services, "ada", await create_list(services, "First"))
    profile = await profile_store.read_profile(services.table, "ada")
    assert profile is not None
    reminded = replace(profile, lock_reminder_hours=24)
    await profile_store.update_profile(services.table, reminded, ["lock_reminder_hours"], UnitOfWork.unkeyed(NOW))
    await bury(services, "ada")
    for unsubscription in (Unsubscription("ada"), Unsubscription("ada", other=OtherEmails.REMINDERS)):
        token = unsubscription.token(services.seal)
        assert (await one_client.http.post("/unsubscribe", params={"token": token})).status_code == 200


async def test_a_forged_link_is_refused(one_client: Client) -> None:
    """Changed in one character, signed for another purpose or with another secret, or without a token."""
    services = one_client.services
    first = await create_list(services, "First")
    await subscriber(services, "ada", first)
    token = Unsubscription("ada").token(services.seal)
    other_secret = Unsubscription("ada").token(Seal(["another secret that is long enough"]))
    other_purpose = services.seal.sign_text("cursor", b'["ada",null,null]')
    altered = [f"{token[:at]}{'B' if token[at] == 'A' else 'A'}{token[at + 1 :]}" for at in range(len(token))]
    for forged in ("", "x", other_secret, other_purpose, token[:-1], token + "A", *altered):
        for answer in (
            await one_client.http.get("/unsubscribe", params={"token": forged}),
            await one_client.http.post("/unsubscribe", params={"token": forged}),
        ):
            assert answer.status_code == 400
    assert (await read_subscriptions(services.table, "ada"))[0].active
