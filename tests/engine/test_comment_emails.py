"""Emails about comments: replies to one's own, for those who want them, and what waits, for moderators."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from datastore.comments.notices import REPLY_MAIL, REPLY_NOTICE, authors_to_tell
from datastore.jobs.leases import Held, Turn
from datastore.people.profiles import PROFILE, proven
from resolvers.people.confirmations import Confirmations
from resolvers.requests.context import Role, Services
from server.mail.message import Email, Letterhead
from server.mail.runs import DigestSchedule, ReplyRun, email_schedules
from server.mail.sending import (
    DeliveryUnknown,
    EmailRejected,
    Emails,
    FailedForNow,
    RejectedForNow,
    ServerUnreachable,
)
from server.settings import Settings
from server.settings.values import Digest
from tests.client import Client, serving
from tests.comments import post
from tests.killed import Killed, killed_at
from tests.mail_server import Mailbox, Outbox, body_of, mail_server
from tests.queries import DELETE_COMMENT, MODERATE_COMMENT, REPORT_COMMENT, UPDATE_PROFILE, mutation
from tests.waiting import LONGEST

HOUR = timedelta(hours=1)
WISH = "{ viewer { replyEmails } }"


@pytest.fixture
def outbox() -> Outbox:
    return Outbox()


async def wants_replies(client: Client, user: str, *, confirmed: bool = True, wish: bool = True) -> Client:
    """A member who wants to be told of replies, and whose address is known to be theirs."""
    services, member = client.services, client.member(user, email=f"{user}@example.org")

    async def send(_link: Any, _values: dict[str, Any]) -> None:
        return

    services.get(Confirmations).start(send)
    await member.ask(UPDATE_PROFILE, input={"replyEmails": wish})
    if confirmed:
        values = proven(f"{user}@example.org", services.clock())
        await services.table.write(PROFILE.update(PROFILE.at(user=user), values=values))
        services.profiles.forget(user)
    return member


async def reply(member: Client, to: dict[str, Any], body: str = "I agree.") -> dict[str, Any]:
    return await post(member, rating=None, inReplyTo=to["id"], body=body)


async def look(client: Client, outbox: Outbox, later: timedelta = timedelta()) -> int:
    """One look for replies to be told, at a time; how many emails were sent."""
    await client.caught_up("the index shows every notice")
    now: datetime = client.services.clock() + later
    services = Services(client.services.table, client.services.seal, clock=lambda: now)
    letterhead = Letterhead("Forum <forum@example.org>", "https://forum.example.org", services.seal)
    return (await ReplyRun(Emails(services, letterhead, outbox, 4)).run()).sent


async def notices(client: Client) -> int:
    return len([one async for one in client.services.table.scan(REPLY_NOTICE, consistent=True)])


# ── replies ──


ANSWER = mutation("answerComment", "CommentAnswered", "comment { id }", refused="code")


async def test_the_site_s_answer_counts_as_a_reply(client: Client, outbox: Outbox) -> None:
    """In the site's name; a second one replaces it, and one that is gone is not told."""
    ada, editor = await wants_replies(client, "ada"), client.member("ed", Role.EDITOR)
    comment, other = await post(ada), await post(ada)
    for body in ("Thank you.", "Thank you very much."):
        await editor.ask(ANSWER, input={"comment": comment["id"], "body": body})
    for body in ("Too early.", ""):
        await editor.ask(ANSWER, input={"comment": other["id"], "body": body})
    assert await look(client, outbox) == 1
    text = outbox.emails[0].text
    assert "forum.example.org" in text
    assert text.count("Thank you very much.") == 1
    assert "Thank you.\n" not in text
    assert "Too early." not in text
    assert await look(client, outbox, HOUR) == 0


async def test_an_answer_to_a_comment_that_waits_is_told_once_it_is_published(client: Client, outbox: Outbox) -> None:
    """Of a reply that has an answer then, the reply is told, or the answer if nobody wants to be told of the reply."""
    client.services.policy = replace(client.services.policy, premoderation=True)
    ada, bob, root = await wants_replies(client, "ada"), client.member("bob"), client.member("root", Role.ADMIN)
    waiting, first = await post(ada), await post(root)
    second = await reply(ada, first)
    for comment in (waiting, second):
        await root.ask(ANSWER, input={"comment": comment["id"], "body": "Thank you."})
    assert await look(client, outbox) == 0
    for number, comment in enumerate((waiting, second), 1):
        await root.ask(MODERATE_COMMENT, input={"comment": comment["id"], "status": "PUBLISHED"})
        assert await look(client, outbox, number * HOUR) == 1
        assert "Thank you." in outbox.emails[-1].text
    await root.ask(MODERATE_COMMENT, input={"comment": waiting["id"], "status": "PUBLISHED"})
    third = await reply(bob, waiting)
    await root.ask(ANSWER, input={"comment": third["id"], "body": "Thank you, Bob."})
    await root.ask(MODERATE_COMMENT, input={"comment": third["id"], "status": "PUBLISHED"})
    assert await look(client, outbox, 3 * HOUR) == 1
    assert "I agree." in outbox.emails[-1].text


async def test_an_answer_is_not_told_again_because_its_comment_was_held_meanwhile(
    client: Client, outbox: Outbox
) -> None:
    """A moderator rejects the comment by mistake, and takes it back."""
    ada, root = await wants_replies(client, "ada"), client.member("root", Role.ADMIN)
    comment = await post(ada)
    await root.ask(ANSWER, input={"comment": comment["id"], "body": "Thank you."})
    assert await look(client, outbox) == 1
    for status in ("REJECTED", "PUBLISHED"):
        await root.ask(MODERATE_COMMENT, input={"comment": comment["id"], "status": status})
    assert await look(client, outbox, HOUR) == 0


async def test_the_first_reply_is_told_at_once_and_further_ones_together(client: Client, outbox: Outbox) -> None:
    """Those of the quarter of an hour after an email are in the next one; each is told once."""
    ada, bob = await wants_replies(client, "ada"), client.member("bob", name="Bob {0} <b>")
    root = await post(ada)
    await reply(bob, root, "First\r\nBcc: everybody@example.org " + "x" * 300)
    assert await look(client, outbox) == 1
    for number in range(2, 25):
        await reply(bob, root, f"Number {number}.")
    assert await look(client, outbox, timedelta(minutes=14)) == 0
    assert await look(client, outbox, timedelta(minutes=16)) == 1
    assert await look(client, outbox, timedelta(minutes=40)) == 0
    first, second = outbox.emails
    assert (first.recipient, first.subject) == ("ada@example.org", "New replies to your comments on forum.example.org")
    assert "Bob {0} <b> (42):" in first.text
    assert re.search("First Bcc: everybody@example.org x{150,190}…", first.text)
    assert b"\r\nBcc:" not in first.content.partition(b"\r\n\r\n")[0]
    assert b"Bob {0} &lt;b&gt;" in first.content
    assert [f"Number {number}." in second.text for number in (2, 21, 22)] == [True, True, False]
    assert "And 3 more." in second.text
    assert "First" not in second.text
    assert await notices(client) == 0


async def test_replies_are_told_although_a_clock_was_ahead(one_client: Client, outbox: Outbox) -> None:
    """An email that seems to be sent tomorrow holds back none; those that were sent since do, for their time."""
    ada, bob = await wants_replies(one_client, "ada"), one_client.member("bob")
    root = await post(ada)
    for number, (later, sent) in enumerate((
        (timedelta(days=1), 1), (timedelta(), 1), (timedelta(minutes=1), 0), (timedelta(minutes=16), 1),
    )):  # fmt: skip
        await reply(bob, root, f"Number {number}.")
        assert await look(one_client, outbox, later) == sent
    assert [f"Number {number}." in outbox.emails[-1].text for number in (0, 1, 2, 3)] == [False, False, True, True]


async def test_a_reply_of_days_ago_is_not_told_any_more(one_client: Client, outbox: Outbox) -> None:
    """Where no email could be sent for so long; also while the engine has not removed what waits."""
    ada = await wants_replies(one_client, "ada")
    await reply(one_client.member("bob"), await post(ada))
    assert await look(one_client, outbox, timedelta(days=3)) == 0
    assert await notices(one_client) == 0


async def test_an_email_is_in_the_language_of_the_conversation(client: Client, outbox: Outbox) -> None:
    """In English where there are no texts."""
    ada, bob = await wants_replies(client, "ada"), client.member("bob")
    for number, language in enumerate(("de", "ar", "fi")):
        await post(bob, rating=None, language=language, inReplyTo=(await post(ada))["id"], body="…")
        assert await look(client, outbox, timedelta(hours=number)) == 1
    german, arabic, finnish = outbox.emails
    assert german.subject == "Neue Antworten auf deine Kommentare auf forum.example.org"
    assert b'lang=3D"ar" dir=3D"rtl"' in arabic.content
    assert finnish.subject.startswith("New replies")


async def test_only_those_who_want_it_and_have_an_address_are_told(client: Client, outbox: Outbox) -> None:
    """Nothing is written for others, nor for one's own replies. A wish that ends meanwhile counts."""
    bob = client.member("bob")
    for user, settings in (("ada", {"wish": False}), ("eve", {"confirmed": False}), ("cleo", {})):
        member = await wants_replies(client, user, **settings)
        root = await post(member)
        await reply(bob if user != "cleo" else member, root)
    await reply(bob, await post(client.member("dan")))
    assert await notices(client) == 0
    cleo = await wants_replies(client, "cleo")
    await reply(bob, await post(cleo))
    assert await notices(client) == 1
    await cleo.ask(UPDATE_PROFILE, input={"replyEmails": False})
    assert await look(client, outbox) == 0
    assert await notices(client) == 0


async def test_without_a_mail_server_nothing_is_kept_to_be_told(one_client: Client) -> None:
    """It would wait for ever."""
    ada = await wants_replies(one_client, "ada")
    one_client.services.get(Confirmations)._send = None
    await reply(one_client.member("bob"), await post(ada))
    assert await notices(one_client) == 0


async def test_a_held_reply_is_told_once_it_is_published_and_a_deleted_one_never(
    client: Client, outbox: Outbox
) -> None:
    """And one that is held again before it was told is not told either."""
    ada, bob, mod = await wants_replies(client, "ada"), client.member("bob"), client.member("mod", Role.MODERATOR)
    root = await post(ada)
    client.services.policy = replace(client.services.policy, premoderation=True)
    held, gone = await reply(bob, root, "Held."), await reply(bob, root, "Gone.")
    assert await notices(client) == 0
    for comment in (held, gone):
        await mod.ask(MODERATE_COMMENT, input={"comment": comment["id"], "status": "PUBLISHED"})
    await bob.ask(DELETE_COMMENT, input={"comment": gone["id"]})
    assert await look(client, outbox) == 1
    assert "Held." in outbox.emails[0].text
    assert "Gone." not in outbox.emails[0].text
    await mod.ask(MODERATE_COMMENT, input={"comment": held["id"], "status": "REJECTED"})
    assert await look(client, outbox, timedelta(hours=1)) == 0


async def test_a_reply_that_is_held_while_others_are_told_is_told_later(client: Client, outbox: Outbox) -> None:
    """Once it is published; none is told a second time, whichever email told it."""
    ada, bob, mod = await wants_replies(client, "ada"), client.member("bob"), client.member("mod", Role.MODERATOR)
    root = await post(ada)
    first, second = await reply(bob, root, "First."), await reply(bob, root, "Second.")
    for number, (held, statuses, sent) in enumerate((
        (second, ["REJECTED"], 1),
        (second, ["PUBLISHED"], 1),
        (first, ["REJECTED", "PUBLISHED"], 0),
    )):  # fmt: skip
        for status in statuses:
            await mod.ask(MODERATE_COMMENT, input={"comment": held["id"], "status": status})
        assert await look(client, outbox, number * HOUR) == sent
    told = [[f"{word}." in email.text for word in ("First", "Second")] for email in outbox.emails]
    assert told == [[True, False], [False, True]]


async def test_the_link_in_the_email_ends_them(client: Client, outbox: Outbox) -> None:
    """Opening it asks, pressing its button ends them; nobody has to sign in."""
    ada, bob = await wants_replies(client, "ada"), client.member("bob")
    root = await post(ada)
    await reply(bob, root)
    assert await look(client, outbox) == 1
    found = re.search(r"https://forum\.example\.org(/unsubscribe\?token=\S+)", outbox.emails[0].text)
    assert found is not None
    assert b"List-Unsubscribe-Post" in outbox.emails[0].content
    assert "No more emails about replies" in (await client.http.get(found[1])).text
    assert (await ada.ask(WISH))["replyEmails"] is True
    assert (await client.http.post(found[1])).status_code == 200
    assert (await ada.ask(WISH))["replyEmails"] is False
    await reply(bob, root)
    assert await notices(client) == 0


async def test_an_email_that_fails_is_tried_again_with_all_that_waits(client: Client, outbox: Outbox) -> None:
    """After the quarter of an hour; nobody else's email waits for it."""
    ada, bob = await wants_replies(client, "ada"), client.member("bob")
    root = await post(ada)
    await reply(bob, root, "First.")
    outbox.fails = lambda _: EmailRejected("450 mailbox busy")
    assert await look(client, outbox) == 0
    outbox.fails = lambda _: None
    await reply(bob, root, "Second.")
    assert await look(client, outbox) == 0
    assert await look(client, outbox, timedelta(minutes=16)) == 1
    assert "First." in outbox.emails[0].text
    assert "Second." in outbox.emails[0].text
    outbox.fails = lambda _: ServerUnreachable("no server")
    await reply(bob, root)
    with pytest.raises(ServerUnreachable):
        await look(client, outbox, timedelta(hours=1))
    assert [user async for user in authors_to_tell(client.services.table)] == ["ada"]


async def test_an_email_that_may_have_arrived_is_the_same_email_only_while_it_tells_the_same(client: Client) -> None:
    """A mail program drops the second of two with one id, and with it a reply that only the second tells."""
    outbox, lost = Doubtful(), DeliveryUnknown("the connection was lost")
    outbox.fails = lambda _: lost
    ada, bob = await wants_replies(client, "ada"), client.member("bob")
    root = await post(ada)
    await reply(bob, root, "First.")
    for minutes in (0, 16):
        assert await look(client, outbox, timedelta(minutes=minutes)) == 0
    first, again = outbox.last_ids()
    assert first == again
    await reply(bob, root, "Second.")
    outbox.fails = lambda _: None
    assert await look(client, outbox, timedelta(minutes=32)) == 1
    again, other = outbox.last_ids()
    assert again != other


async def test_a_look_that_is_killed_tells_nothing_twice(client: Client, outbox: Outbox) -> None:
    """Not even if it is killed between the email and the deletion of what it told."""
    ada, bob = await wants_replies(client, "ada"), client.member("bob")
    root = await post(ada)
    await reply(bob, root, "Told.")
    with pytest.raises(Killed), killed_at(client.services.table, 1):
        await look(client, outbox)
    assert await notices(client) == 1
    await reply(bob, root, "New.")
    assert await look(client, outbox, timedelta(minutes=16)) == 1
    assert "Told." not in outbox.emails[1].text
    assert len([one async for one in client.services.table.scan(REPLY_MAIL, consistent=True) if one.sent]) == 2


# ── digests ──


@pytest.fixture
async def mailed(settings: Settings, tmp_path: Path) -> AsyncIterator[tuple[Settings, Mailbox]]:
    """Settings with a mail server, and what that received."""
    mailbox = Mailbox()
    async with mail_server(mailbox, tmp_path) as address:
        given = {
            "smtp_url": SecretStr(address),
            "mail_from": "Forum <f@example.org>",
            "public_url": "https://f.example",
        }
        yield settings.model_copy(update=given), mailbox


async def test_moderators_are_told_what_waits(client: Client, mailed: tuple[Settings, Mailbox]) -> None:
    """Nothing while nothing waits; then comments as text and a link to the page for decisions, as often as wanted."""
    settings, mailbox = mailed
    now = [client.services.clock()]
    services = Services(client.services.table, client.services.seal, clock=lambda: now[0])
    processes = [
        DigestSchedule(services, settings, Digest("m@example.org", HOUR, language)) for language in ("en", "de")
    ]

    async def run() -> list[EmailMessage]:
        before = len(mailbox.emails)
        await client.caught_up("the queue is complete")
        await asyncio.gather(*(process.run_if_due() for process in processes))
        return [email for _, email in mailbox.emails[before:]]

    assert await run() == []
    ada, bob = client.member("ada"), client.member("bob")
    await bob.ask(REPORT_COMMENT, input={"comment": (await post(ada, body="Rude <b>"))["id"], "reason": "Rude."})
    client.services.policy = replace(client.services.policy, premoderation=True)
    for number in range(22):
        await post(ada, body=f"{number} https://spam.example {'x' * 300}")
    assert await run() == []
    now[0] += HOUR
    [email] = await run()
    assert email["to"] == "m@example.org"
    assert re.fullmatch(
        r"f\.example: (comments that wait: 22, reported: 1|wartende Kommentare: 22, gemeldete: 1)", email["subject"]
    )
    text = body_of(email)
    assert "https://f.example/admin" in text
    assert "Ada (42):\n0 https://spam.example" in text.replace("\r", "")
    assert "19 https" in text
    assert "20 https" not in text
    assert 'spam.example">' not in body_of(email, "html")
    assert await run() == []
    now[0] += HOUR
    assert len(await run()) == 1


async def test_what_is_new_since_the_last_digest_is_counted_however_long_ago_that_was(
    one_client: Client, mailed: tuple[Settings, Mailbox]
) -> None:
    """Also if no process ran for hours."""
    settings, mailbox = mailed
    now = [one_client.services.clock()]
    services = Services(one_client.services.table, one_client.services.seal, clock=lambda: now[0])
    one_client.services.clock = lambda: now[0]
    one_client.services.policy = replace(one_client.services.policy, premoderation=True)
    digest = DigestSchedule(services, settings, Digest("m@example.org", HOUR, "en"))
    ada = one_client.member("ada")
    for hours in (0, 1):
        await post(ada, body=f"After {hours} hours")
        now[0] += timedelta(seconds=1) + hours * 8 * HOUR
        assert await digest.run_if_due()
        now[0] += timedelta(seconds=1)
    told = [re.search(r"New among them since the last email: (\d+)", body_of(email)) for _, email in mailbox.emails]
    assert [found and found[1] for found in told] == ["1", "1"]


async def test_a_digest_for_which_no_server_answers_is_sent_a_quarter_of_an_hour_later(
    one_client: Client, mailed: tuple[Settings, Mailbox]
) -> None:
    """Not after another week; and all that has come since the last one still counts as new."""
    settings, mailbox = mailed
    now = [one_client.services.clock()]
    services = Services(one_client.services.table, one_client.services.seal, clock=lambda: now[0])
    one_client.services.clock = lambda: now[0]
    one_client.services.policy = replace(one_client.services.policy, premoderation=True)
    without = settings.model_copy(update={"smtp_url": SecretStr("smtp://127.0.0.1:1")})
    week = Digest("m@example.org", 7 * 24 * HOUR, "en")
    answered, unanswered = (DigestSchedule(services, each, week) for each in (settings, without))
    ada = one_client.member("ada")
    for is_due in (True, False):
        await post(ada)
        now[0] += timedelta(seconds=1)
        assert await answered.run_if_due() is is_due
    now[0] += week.period
    with pytest.raises(ServerUnreachable):
        await unanswered.run_if_due()
    assert not await answered.run_if_due()
    now[0] += HOUR / 4
    assert await answered.run_if_due()
    assert ["last email: 1." in body_of(email) for _, email in mailbox.emails] == [True, True]
    assert not await answered.run_if_due()


class Doubtful(Outbox):
    """Keeps what it was asked to send, also where it fails."""

    async def send(self, email: Email) -> None:
        self.emails.append(email)
        if (failure := self.fails(email.recipient)) is not None:
            raise failure

    def last_ids(self) -> tuple[str, str]:
        """Of the last two emails."""
        first, second = (message_from_bytes(email.content)["Message-ID"] for email in self.emails[-2:])
        return first, second


class Posted(DigestSchedule):
    """A digest that goes to an outbox."""

    def __init__(self, services: Services, settings: Settings, digest: Digest, outbox: Outbox) -> None:
        super().__init__(services, settings, digest)
        self._emails = Emails(services, Letterhead("F <f@example.org>", "https://f.example", services.seal), outbox)

    async def _send_in_turn(self, _: Held[Turn], due_at: str | None) -> None:
        await self.send(self._emails, due_at)


@pytest.mark.parametrize("failure", [RejectedForNow("451 greylisted"), DeliveryUnknown("the connection was lost")])
async def test_a_digest_that_may_be_taken_later_is_sent_again_as_the_same_email(
    one_client: Client, failure: Exception
) -> None:
    """The first one, too: nobody would be told for a week. One that is rejected for good waits for the next."""
    now, outbox = [one_client.services.clock()], Doubtful()
    services = Services(one_client.services.table, one_client.services.seal, clock=lambda: now[0])
    digest = Posted(services, one_client.settings, Digest("m@example.org", 7 * 24 * HOUR, "en"), outbox)
    one_client.services.policy = replace(one_client.services.policy, premoderation=True)
    await post(one_client.member("ada"))
    for _ in range(2):
        outbox.fails = lambda _: failure
        with pytest.raises(FailedForNow):
            await digest.run_if_due()
        outbox.fails = lambda _: None
        assert not await digest.run_if_due()
        now[0] += HOUR / 4
        assert await digest.run_if_due()
        first, second = outbox.last_ids()
        assert first == second
        assert not await digest.run_if_due()
        now[0] += timedelta(days=7)
    outbox.fails = lambda _: EmailRejected("550 no such mailbox")
    assert await digest.run_if_due()
    now[0] += HOUR / 4
    assert not await digest.run_if_due()
    assert len(outbox.emails) == 5


async def test_the_service_sends_both_by_itself(one_client: Client, mailed: tuple[Settings, Mailbox]) -> None:
    """Replies, and a digest for each address; without a mail server neither."""
    settings, mailbox = mailed
    digests = (Digest("a@example.org", HOUR, "en"), Digest("b@example.org", HOUR, "es"))
    settings = settings.model_copy(update={"moderation_emails": digests})
    assert email_schedules(one_client.settings, one_client.services) == []
    ada, bob = await wants_replies(one_client, "ada"), one_client.member("bob")
    root = await post(ada)
    await reply(bob, root)
    await bob.ask(REPORT_COMMENT, input={"comment": root["id"], "reason": "Rude."})
    async with serving(settings), asyncio.timeout(LONGEST):
        while len(mailbox.emails) < 3:
            await asyncio.sleep(0.1)
    assert mailbox.recipients == ["a@example.org", "ada@example.org", "b@example.org"]


@pytest.mark.parametrize(
    ("written", "digests"),
    [
        ("mods@example.com=1h", (Digest("mods@example.com", HOUR, "en"),)),
        ("a@b.c=15m, d@e.f=7d/ar", (Digest("a@b.c", HOUR / 4, "en"), Digest("d@e.f", 7 * 24 * HOUR, "ar"))),
        ("", ()),
    ],
)
def test_the_setting_says_who_is_told_how_often(
    written: str, digests: tuple[Digest, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a quarter of an hour to a week."""
    monkeypatch.setenv("RINGSIDE_MODERATION_EMAILS", written)
    assert Settings(secrets=(SecretStr("x" * 32),)).moderation_emails == digests


@pytest.mark.parametrize(
    "written", ["mods@example.com", "mods=1h", "a@b.c=14m", "a@b.c=8d", "a@b.c=1h/xx", "a@b.c=1h,a@b.c=2h", "a@b.c=1w"]
)
def test_a_setting_that_says_something_else_is_refused(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the variable's name."""
    monkeypatch.setenv("RINGSIDE_MODERATION_EMAILS", written)
    with pytest.raises(ValueError, match=r"moderation_emails|MODERATION_EMAILS"):
        Settings(secrets=(SecretStr("x" * 32),))
