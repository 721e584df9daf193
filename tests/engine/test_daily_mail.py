"""The daily run against a real mail server: who gets which letter, once, and how it ends."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, date, datetime, timedelta
from email.message import EmailMessage
from pathlib import Path

import pytest

from datastore import vocabulary
from datastore.dynamo import Table
from datastore.people import PROFILE, Profile
from datastore.receipts import Once
from datastore.seal import Seal
from datastore.vocabulary import LIST, MAIL, Batch, CharacterSet, Mail, Subscription, Word, WordList
from datastore.vocabulary.mail import MAILING, Mailing
from resolvers.context import Services
from server.mail.daily_run import LongPast, Pace, Run, Summary
from server.mail.message import Ending, Stationery, message_id
from server.mail.smtp import Doubtful, OverSmtp, Refused, ToTheLog, Unreachable, must_encrypt
from tests.client import Client
from tests.conftest import SECRET
from tests.mail_server import Mailbox, mail_server, trusted

ON = date(2026, 11, 20)
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
SENDER = "Words <words@example.org>"


def house_of(table: Table) -> Services:
    return Services(table, Seal([SECRET]))


async def listed(services: Services, name: str, words: int = 3, owner: str | None = None) -> str:
    once = Once("test", None, "", NOW)
    made = WordList(services.ids.next(NOW), name, public=owner is None, created_at=NOW, owner=owner)
    await vocabulary.create_list(services.table, made, once)
    if words:
        given = tuple(Word(made.list, 0, f"简{n}", f"<b>meaning</b> {n}", f"繁{n}", f"pīn {n}") for n in range(words))
        await vocabulary.add_words(services.table, made.list, Batch(services.ids.next(NOW), given, 500), once)
    return made.list


async def reader(services: Services, user: str, *lists: str, email: str | None = "", traditional: bool = False) -> None:
    address = f"{user}@example.org" if email == "" else email
    await services.table.write(PROFILE.put(Profile(user, user.title(), NOW, email=address)))
    characters = CharacterSet.TRADITIONAL if traditional else CharacterSet.SIMPLIFIED
    for one in lists:
        wanted = Subscription(user, one, characters, active=True, since=NOW)
        await vocabulary.subscribe(services.table, wanted, Once(user, None, "", NOW))


def stationery(services: Services) -> Stationery:
    return Stationery(SENDER, "https://api.example.org", services.seal, ON)


async def run(services: Services, url: str, held_for: float = 600) -> Summary:
    outbox = OverSmtp(url, "words@example.org", pause=0.01)
    try:
        return await Run(services, stationery(services), outbox, Pace(4, timedelta(seconds=held_for))).carry_out()
    finally:
        await outbox.close()


async def test_every_subscriber_gets_one_letter(table: Table, tmp_path: Path) -> None:
    """In their character set, with all of their lists; a second run sends nothing."""
    services, mailbox = house_of(table), Mailbox()
    first, second = await listed(services, "First"), await listed(services, "Second")
    await reader(services, "ada", first, second)
    await reader(services, "bob", first, traditional=True)
    await reader(services, "cleo", first, email=None)
    await reader(services, "dan")
    await vocabulary.unsubscribe(services.table, "ada", second, CharacterSet.SIMPLIFIED, Once("ada", None, "", NOW))
    await reader(services, "ada", second)
    async with mail_server(mailbox, tmp_path) as url:
        done = await run(services, url)
        again = await run(services, url)
    assert mailbox.recipients == ["ada@example.org", "bob@example.org"]
    assert (done.lists, done.sent, done.without_address, done.complete) == (2, 2, 1, True)
    assert (again.sent, again.already, again.complete) == (0, 2, True)
    texts = {to: letter.get_body(("plain",)).get_content() for to, letter in mailbox.letters}  # type: ignore[union-attr]
    assert "from First" in texts["ada@example.org"]
    assert "from Second" in texts["ada@example.org"]
    assert "简" in texts["ada@example.org"]
    assert "繁" in texts["bob@example.org"]
    assert "简" not in texts["bob@example.org"]


async def test_a_letter_is_fit_to_be_sent(one_table: Table, tmp_path: Path) -> None:
    """Text and HTML, a lasting Message-ID, one click to unsubscribe, and nothing from outside as markup."""
    services, mailbox = house_of(one_table), Mailbox()
    await reader(services, "ada", await listed(services, "A <i>list</i>", words=1))
    async with mail_server(mailbox, tmp_path) as url:
        await run(services, url)
    letter = mailbox.letters[0][1]
    assert letter["Message-ID"] == message_id("ada", ON, "example.org")
    assert letter["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert letter["From"] == SENDER
    assert "简0 (pīn 0)" in letter["Subject"]
    html = letter.get_body(("html",)).get_content()  # type: ignore[union-attr]
    assert "&lt;b&gt;meaning&lt;/b&gt;" in html
    assert "A &lt;i&gt;list&lt;/i&gt;" in html
    assert 'lang="zh-Hans"' in html


# CPython 3.11 leaves the server's end of a refused TLS handshake to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("starttls", "tls"), [(True, False), (False, True)])
async def test_tls_and_login(
    one_table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, starttls: bool, tls: bool
) -> None:
    """Both ways of TLS, with a password; a server whose certificate is not trusted gets neither."""
    services, mailbox = house_of(one_table), Mailbox()
    await reader(services, "ada", await listed(services, "First"))
    async with mail_server(mailbox, tmp_path, starttls=starttls, tls=tls, login=True) as url:
        with pytest.raises(Unreachable, match="certificate"):
            await run(services, url)
        with trusted(monkeypatch, mailbox):
            with pytest.raises(Unreachable, match="535"):
                await run(services, url.replace("pass", "miss"))
            done = await run(services, url)
    assert (done.sent, mailbox.recipients, mailbox.encrypted) == (1, ["ada@example.org"], [True])


async def test_a_login_without_tls_stays_on_this_machine(one_table: Table, tmp_path: Path) -> None:
    """A local relay may do without; to a neighbour no password goes in the open, to the world nothing at all."""
    services, mailbox = house_of(one_table), Mailbox()
    await reader(services, "ada", await listed(services, "First"))
    async with mail_server(mailbox, tmp_path, login=True) as url:
        assert (await run(services, url)).sent == 1
    assert mailbox.encrypted == [False]
    hosts = ("127.0.0.1", "localhost", "::1", "10.0.0.7", "mailhog", "mail.example.org", "8.8.8.8")
    assert [must_encrypt(host, login=False) for host in hosts] == [False, False, False, False, False, True, True]
    assert [must_encrypt(host, login=True) for host in hosts] == [False, False, False, True, True, True, True]


async def test_one_failing_address_stops_nobody_else(one_table: Table, tmp_path: Path) -> None:
    """Refused ones are counted and tried again by the next run; a busy server is asked again at once."""
    services, mailbox = house_of(one_table), Mailbox()
    first = await listed(services, "First")
    for user in ("ada", "bob", "cleo", "dan"):
        await reader(services, user, first)
    await reader(services, "eve", first, email="evil@example.org\r\nBcc: all@example.org")
    busy = ["450 later", "450 later"]

    def says(address: str) -> str | None:
        if address.startswith("bob"):
            return "550 no such mailbox"
        return busy.pop() if address.startswith("dan") and busy else None

    mailbox.says = says
    async with mail_server(mailbox, tmp_path) as url:
        done = await run(services, url)
        assert mailbox.recipients == ["ada@example.org", "cleo@example.org", "dan@example.org"]
        assert (done.sent, done.failed, done.complete) == (3, 2, False)
        assert any("550" in reason for reason in done.reasons)
        mailbox.says = lambda _: None
        again = await run(services, url)
    assert (again.sent, again.failed, again.already) == (1, 1, 3)


async def test_one_failing_list_stops_nobody_else(one_table: Table, tmp_path: Path) -> None:
    """A list whose words are gone is named; the other lists' words go out."""
    services, mailbox = house_of(one_table), Mailbox()
    good, broken = await listed(services, "Good"), await listed(services, "Broken", words=0)
    empty = await listed(services, "Empty", words=0)
    await services.table.write(LIST.change(LIST.at(list=broken), values={"word_count": 5}))
    await reader(services, "ada", good, broken)
    await reader(services, "bob", broken)
    await reader(services, "cleo", empty)
    async with mail_server(mailbox, tmp_path) as url:
        done = await run(services, url)
    assert mailbox.recipients == ["ada@example.org"]
    assert list(done.lists_failed) == [broken]
    assert (done.without_words, done.complete) == (2, False)


async def test_a_private_list_goes_to_its_owner_alone(one_table: Table, tmp_path: Path) -> None:
    """A subscription to somebody else's private list, however it came to be, brings nothing."""
    services, mailbox = house_of(one_table), Mailbox()
    mine = await listed(services, "Mine", owner="ada")
    await reader(services, "ada", mine)
    await reader(services, "bob", mine)
    async with mail_server(mailbox, tmp_path) as url:
        done = await run(services, url)
    assert mailbox.recipients == ["ada@example.org"]
    assert done.without_words == 1


async def test_three_runs_at_once_send_each_letter_once(one_table: Table, tmp_path: Path) -> None:
    """Each subscriber is one run's alone."""
    services, mailbox = house_of(one_table), Mailbox()
    first = await listed(services, "First")
    users = [f"m{number:02d}" for number in range(40)]
    for user in users:
        await reader(services, user, first)
    async with mail_server(mailbox, tmp_path) as url:
        summaries = await asyncio.gather(*(run(services, url) for _ in range(3)))
    assert mailbox.recipients == [f"{user}@example.org" for user in users]
    assert sum(done.sent for done in summaries) == 40
    assert all(done.sent + done.already == 40 for done in summaries)


async def test_a_claim_of_a_run_that_died_lapses(one_table: Table, tmp_path: Path) -> None:
    """Another run waits until then, and then sends."""
    services, mailbox = house_of(one_table), Mailbox()
    await reader(services, "ada", await listed(services, "First"))
    now = services.clock()
    left_behind = Mail("ada", ON, "a run that was killed", now, now + timedelta(days=1))
    assert await vocabulary.claim(services.table, left_behind) is None
    async with mail_server(mailbox, tmp_path) as url:
        done = await run(services, url, held_for=1)
    assert (done.sent, done.complete, len(mailbox.letters)) == (1, True, 1)
    mark = await services.table.get(MAIL.at(user="ada", date=ON), consistent=True)
    assert mark is not None
    assert mark.sent is not None


async def test_a_letter_in_doubt_is_not_sent_again_by_the_run(one_table: Table) -> None:
    """The connection was lost after the letter was handed over: its claim stays, and it counts as failed."""
    services = house_of(one_table)
    first = await listed(services, "First")
    await reader(services, "ada", first)
    await reader(services, "bob", first)

    class Flaky(ToTheLog):
        async def send(self, letter: EmailMessage, recipient: str) -> None:
            if recipient.startswith("ada"):
                raise Doubtful("the connection was lost")
            await super().send(letter, recipient)

    done = await Run(services, stationery(services), Flaky()).carry_out()
    assert (done.sent, done.failed) == (1, 1)
    mark = await services.table.get(MAIL.at(user="ada", date=ON), consistent=True)
    assert mark is not None
    assert mark.sent is None


async def test_letters_of_long_ago_are_not_sent_again(one_table: Table) -> None:
    """When the marks of who had one may be gone, a run refuses; a date's first run may be late."""
    services = house_of(one_table)
    await reader(services, "ada", await listed(services, "First"))
    done = await Run(services, stationery(services), ToTheLog()).carry_out()
    assert done.sent == 1
    await services.table.write(MAILING.put(Mailing(ON, services.clock() - timedelta(days=32))))
    with pytest.raises(LongPast, match="2026-11-20"):
        await Run(services, stationery(services), ToTheLog()).carry_out()


async def test_no_server_ends_the_run_with_nothing_claimed(one_table: Table) -> None:
    """Unreachable stops the run; what it had claimed is given back."""
    services = house_of(one_table)
    await reader(services, "ada", await listed(services, "First"))
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1 cannot be used"):
        await run(services, "smtp://127.0.0.1:1")
    assert await services.table.get(MAIL.at(user="ada", date=ON), consistent=True) is None


async def test_a_server_that_refuses_everything_is_said(tmp_path: Path) -> None:
    """One refusal for good is Refused; one that lasts beyond three attempts too."""
    mailbox = Mailbox()
    letter = EmailMessage()
    async with mail_server(mailbox, tmp_path) as url:
        outbox = OverSmtp(url, "words@example.org", pause=0.01)
        for answer in ("550 never", "450 later"):
            mailbox.says = lambda _, answer=answer: answer  # type: ignore[misc]
            with pytest.raises(Refused, match=answer):
                await outbox.send(letter, "ada@example.org")
        await outbox.close()


# ── the link in the letter ──


async def test_the_link_works_without_a_login(one_client: Client, tmp_path: Path) -> None:
    """A visit asks and changes nothing; the click ends one subscription, or all of them, however often."""
    services, mailbox = one_client.services, Mailbox()
    first, second = await listed(services, "First & <last>"), await listed(services, "Second")
    await reader(services, "ada", first, second)
    async with mail_server(mailbox, tmp_path) as url:
        await run(services, url)
    letter = mailbox.letters[0][1]
    text = letter.get_body(("plain",)).get_content()  # type: ignore[union-attr]
    one = re.findall(r"https://api\.example\.org(/unsubscribe\?token=[\w-]+)", text)[0]
    every = str(letter["List-Unsubscribe"]).removeprefix("<https://api.example.org").removesuffix(">")

    async def active() -> list[str]:
        return sorted(one.list for one in await vocabulary.subscriptions(services.table, "ada") if one.active)

    page = await one_client.http.get(one)
    assert page.status_code == 200
    assert "First &amp; &lt;last&gt;" in page.text
    assert "script-src" not in page.headers["content-security-policy"]
    assert await active() == sorted([first, second])
    for _ in range(2):
        assert (await one_client.http.post(one)).status_code == 200
        assert await active() == [second]
    clicked = await one_client.http.post(every, data={"List-Unsubscribe": "One-Click"})
    assert clicked.status_code == 200
    assert await active() == []
    assert await vocabulary.subscriber_count(services.table, second) == 0


async def test_a_forged_link_is_refused(one_client: Client) -> None:
    """Altered by one character, signed for another purpose or by another secret, or no token at all."""
    services = one_client.services
    first = await listed(services, "First")
    await reader(services, "ada", first)
    token = Ending("ada").token(services.seal)
    strangers = Ending("ada").token(Seal(["another secret that is long enough"]))
    other_purpose = services.seal.sign_text("cursor", b'["ada",null,null]')
    altered = [
        token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :] for place in range(len(token))
    ]
    for forged in ("", "x", strangers, other_purpose, token[:-1], token + "A", *altered):
        for answer in (
            await one_client.http.get("/unsubscribe", params={"token": forged}),
            await one_client.http.post("/unsubscribe", params={"token": forged}),
        ):
            assert answer.status_code == 400
    assert (await vocabulary.subscriptions(services.table, "ada"))[0].active
