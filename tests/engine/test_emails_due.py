"""The emails that are due: words at each member's hour, reminders before the lock, their opt-outs, bounces."""

import asyncio
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from datastore.jobs.leases import LeaseLost
from datastore.people.profiles import PROFILE, Profile, read_profile
from datastore.pickem.predictions import REMINDERS, Reminder
from datastore.vocabulary.daily import draw_daily_word
from resolvers.requests.context import Role, Services, utc_now
from resolvers.values.node_ids import node_id, parse_node_key
from server.mail.daily_run import DailyRun
from server.mail.message import Email, Letterhead, OtherEmails, Unsubscription
from server.mail.runs import EmailSchedule, ReminderRun, turn
from server.mail.sending import (
    EmailRejected,
    Emails,
    FailedForNow,
    LeasedTransport,
    RejectedForNow,
    ServerUnreachable,
)
from server.settings import Settings
from tests.audits import breaches_in
from tests.client import Client
from tests.command import on_table, ringside
from tests.engines import RunningEngine
from tests.killed import Killed, killed_at
from tests.lagging import Lag
from tests.lagging.service import lagging_services
from tests.mail_server import Outbox
from tests.queries import REINSTATE, SUBSCRIBE, SUSPEND, UPDATE_EVENT, UPDATE_PROFILE
from tests.season import EventEditor, in_hours, submit
from tests.vocabulary import public_list
from tests.waiting import LONGEST, turns, until

HOURS = "{ viewer { dailyWordAt lockReminderHours } }"
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
AT_ONCE = 4


def emails(client: Client, outbox: Outbox, now: datetime | None = None) -> Emails:
    services = client.services
    if now is not None:
        services = Services(services.table, services.seal, clock=lambda: now)
    return Emails(services, Letterhead("words@example.org", "https://api.example.org", services.seal), outbox, AT_ONCE)


async def wants(client: Client, user: str, **settings: Any) -> Client:
    member = client.member(user, email=f"{user}@example.org")
    await member.ask(UPDATE_PROFILE, input=settings)
    return member


@pytest.fixture
def variables(settings: Settings) -> dict[str, str]:
    """The environment of a command on the same table."""
    return on_table(settings.dynamodb_url, settings.table)


# ── the hour ──


@pytest.mark.lagging
async def test_words_are_sent_at_each_members_hour(client: Client) -> None:
    """In their zone; before it nothing, after it once, whatever runs; the date of UTC+14 is drawn too."""
    list_id = await public_list(client)
    outbox = Outbox()
    for user, zone in (("ada", "Europe/Vienna"), ("kiri", "Pacific/Kiritimati"), ("hono", "Pacific/Honolulu")):
        member = await wants(client, user, timeZone=zone, dailyWordAt="07:00")
        await member.ask(SUBSCRIBE, input={"list": list_id})
    await client.caught_up("a run finds every subscriber")
    since = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=2)
    expected = {0: [], 6: ["ada"], 17: ["hono", "kiri"], 24: []}
    for hour, users in expected.items():
        for again in (False, True):
            before = outbox.recipients
            done = await DailyRun(emails(client, outbox, since + timedelta(hours=hour))).run()
            if hour == 0:
                outbox.emails.clear()  # what was due the day before
            elif again:
                assert outbox.recipients == before
                assert done.already_sent == 3
            else:
                assert sorted(set(outbox.recipients) - set(before)) == [f"{user}@example.org" for user in users]
    assert len(outbox.emails) == 3
    newest = (since + timedelta(hours=24 + 14)).date()
    table = client.services.table
    drawn = await draw_daily_word(table, parse_node_key("WordList", list_id), newest)
    assert drawn is not None


async def test_a_list_counts_once_though_two_dates_have_begun(one_client: Client) -> None:
    """At noon in UTC the next date has begun at UTC+14, so each list draws two words."""
    await public_list(one_client)
    done = await DailyRun(emails(one_client, Outbox(), NOW)).run()
    assert done.lists == 1


@pytest.mark.lagging
async def test_hours_are_the_members_own_and_checked(client: Client) -> None:
    """They are stored, cleared by null, shown to nobody else, and refused with the field's name if they are wrong."""
    ada = await wants(client, "ada", dailyWordAt="07:30", lockReminderHours=24)
    assert await ada.ask(HOURS) == {"dailyWordAt": "07:30", "lockReminderHours": 24}
    own = await ada.ask("{ viewer { id } }")
    others = "query ($id: ID!) { user(id: $id) { dailyWordAt lockReminderHours } }"
    await client.caught_up("plain reads show the profile")
    assert await client.member("bob").ask(others, id=own["id"]) == {"dailyWordAt": None, "lockReminderHours": None}
    wrong = (("dailyWordAt", "7:30"), ("dailyWordAt", "24:00"), ("dailyWordAt", "07:30:00"), ("dailyWordAt", "٠٧:٣٠"))
    for name, value in (*wrong, ("lockReminderHours", 169), ("lockReminderHours", -1)):
        refused = await ada.ask(UPDATE_PROFILE, input={name: value})
        assert refused["code"] == "INVALID_INPUT", (name, value)
        assert refused["path"] == ["input", name]
    await ada.ask(UPDATE_PROFILE, input={"dailyWordAt": None, "lockReminderHours": 0})
    assert await ada.ask(HOURS) == {"dailyWordAt": None, "lockReminderHours": None}


# ── reminders ──


@pytest.mark.lagging
async def test_only_members_without_a_prediction_are_reminded_and_once(client: Client) -> None:
    """Those whose hours have come; not of an event that was locked, and not again if it is postponed."""
    outbox, editor = Outbox(), EventEditor(client)
    event, [match] = await editor.card(10, starts=in_hours(20), name="Full Circle")
    locked, _ = await editor.card(10, starts=in_hours(10), name="Locked")
    await editor.lock(locked)
    await wants(client, "ada", lockReminderHours=24, timeZone="Europe/Vienna")
    bob = await wants(client, "bob", lockReminderHours=24)
    await submit(bob, event, [(match, 0)])
    await wants(client, "cleo", lockReminderHours=12)
    await wants(client, "dan", name="Dan")
    await client.caught_up("a run finds the event and the members")
    done = await ReminderRun(emails(client, outbox)).run()
    again = await ReminderRun(emails(client, outbox)).run()
    assert outbox.recipients == ["ada@example.org"]
    assert (done.sent, done.passed_over, done.complete) == (1, 1, True)
    assert (again.sent, again.passed_over, again.complete) == (0, 2, True)
    assert outbox.emails[0].subject == "Full Circle: your picks are missing"
    assert "(Europe/Vienna)" in outbox.emails[0].text
    changed = await editor.client.ask(UPDATE_EVENT, input={"event": event, "startsAt": in_hours(11)})
    assert "event" in changed, changed
    await client.caught_up("a run finds the new start")
    await ReminderRun(emails(client, outbox)).run()
    assert outbox.recipients == ["ada@example.org", "cleo@example.org"]


async def test_nobody_is_reminded_after_the_lock_because_the_emails_before_took_long(one_client: Client) -> None:
    """Whether somebody is to be reminded is looked at just before their email is sent."""
    outbox, editor, now = Outbox(), EventEditor(one_client), [utc_now()]

    def take_two_hours(_: str) -> None:
        now[0] += timedelta(hours=2)

    await editor.card(10, starts=in_hours(1), name="Full Circle")
    for user in ("ada", "bob"):
        await wants(one_client, user, lockReminderHours=24)
    outbox.fails = take_two_hours
    services = Services(one_client.services.table, one_client.services.seal, clock=lambda: now[0])
    letterhead = Letterhead("words@example.org", "https://api.example.org", services.seal)
    assert (await ReminderRun(Emails(services, letterhead, outbox, 1)).run()).sent == 1


async def test_a_suspended_member_is_reminded_once_they_may_predict_again(one_client: Client) -> None:
    """Until then their picks would be refused."""
    outbox, moderator = Outbox(), one_client.member("mia", Role.MODERATOR)
    await EventEditor(one_client).card(10, starts=in_hours(20))
    for user in ("ada", "bob"):
        await wants(one_client, user, lockReminderHours=24)
    ada = {"user": node_id("User", "ada")}
    assert "user" in await moderator.ask(SUSPEND, input={**ada, "reason": "Insults.", "until": in_hours(48)})
    await ReminderRun(emails(one_client, outbox)).run()
    assert outbox.recipients == ["bob@example.org"]
    assert "user" in await moderator.ask(REINSTATE, input=ada)
    await ReminderRun(emails(one_client, outbox)).run()
    assert outbox.recipients == ["ada@example.org", "bob@example.org"]


@pytest.mark.lagging
async def test_members_are_reminded_once_there_is_something_to_predict(client: Client) -> None:
    """An event without matches and tie-break reminds nobody and spends no reminder; either one makes it remind."""
    outbox, editor = Outbox(), EventEditor(client)
    empty = (await editor.event("Empty card", starts=in_hours(20)))["id"]
    await wants(client, "ada", lockReminderHours=24)
    await client.caught_up("a run finds the event and the member")
    done = await ReminderRun(emails(client, outbox)).run()
    assert (done.events, done.sent, done.passed_over, done.complete) == (1, 0, 0, True)
    await editor.match(empty)
    await editor.event("Only a number", starts=in_hours(20), tieBreak={"question": "Attendance"})
    await client.caught_up("a run finds the match and the other event")
    done = await ReminderRun(emails(client, outbox)).run()
    assert (done.events, done.sent, done.passed_over) == (2, 2, 0)
    subjects = {"Empty card: your picks are missing", "Only a number: your picks are missing"}
    assert {email.subject for email in outbox.emails} == subjects
    again = await ReminderRun(emails(client, outbox)).run()
    assert (again.sent, again.passed_over) == (0, 2)


async def test_reminders_go_by_what_was_acknowledged_though_indexes_show_it_late(
    default_engine: RunningEngine, table_name: str, tmp_path: Path
) -> None:
    """None to who has predicted, wants none any more, or was reminded; none to an old address."""
    lag = Lag(mean=1e6, longest=1e6, stale=1.0)
    async with lagging_services(default_engine, tmp_path, table_name, lag=lag) as (engine, [client]):
        outbox, editor = Outbox(), EventEditor(client)
        event, [match] = await editor.card(10, starts=in_hours(20))
        cancelled, _ = await editor.card(10, starts=in_hours(20))
        predicted, ended, *_ = [
            await wants(client, user, lockReminderHours=24) for user in ("predicted", "ended", "moved", "waiting")
        ]
        await engine.catch_up()
        await submit(predicted, event, [(match, 0)])
        await ended.ask(UPDATE_PROFILE, input={"lockReminderHours": 0})
        profile = await read_profile(client.services.table, "moved")
        assert profile is not None
        await client.services.table.write(PROFILE.put(replace(profile, email="moved@new.example.org")))
        await editor.client.ask(UPDATE_EVENT, input={"event": cancelled, "cancelled": True})
        done = [await ReminderRun(emails(client, outbox)).run() for _ in range(2)]
        assert outbox.recipients == ["moved@new.example.org", "waiting@example.org"]
        assert [summary.sent for summary in done] == [2, 0]


async def test_a_reminder_that_was_begun_or_rejected_is_sent_by_the_next_run(one_client: Client) -> None:
    """The first by a run that was killed."""
    outbox, editor = Outbox(), EventEditor(one_client)
    event, _ = await editor.card(10, starts=in_hours(20))
    for user in ("ada", "bob"):
        await wants(one_client, user, lockReminderHours=24)
    begun = Reminder("ada", parse_node_key("Event", event), one_client.services.clock() + timedelta(days=1))
    assert await REMINDERS.begin(one_client.services.table, begun)
    outbox.fails = lambda address: EmailRejected("550 no such mailbox") if address.startswith("bob") else None
    first = await ReminderRun(emails(one_client, outbox)).run()
    assert (first.sent, first.failed, first.complete) == (1, 1, False)
    outbox.fails = lambda _: None
    later = await ReminderRun(emails(one_client, outbox)).run()
    assert (later.sent, later.passed_over, outbox.recipients) == (1, 1, ["ada@example.org", "bob@example.org"])


async def test_nobody_is_reminded_of_an_event_that_is_being_locked(one_client: Client) -> None:
    """The lock was begun but never finished; the next reader finishes it."""
    outbox, editor = Outbox(), EventEditor(one_client)
    event, _ = await editor.card(10, starts=in_hours(20))
    await wants(one_client, "ada", lockReminderHours=24)
    with killed_at(one_client.services.table, 0), pytest.raises(Killed):
        await editor.lock(event)
    done = await ReminderRun(emails(one_client, outbox)).run()
    assert (done.sent, outbox.recipients) == (0, [])


async def test_one_click_ends_only_the_reminders(one_client: Client) -> None:
    """The page changes nothing; the button does; the daily words go on."""
    outbox, editor = Outbox(), EventEditor(one_client)
    await editor.card(10, starts=in_hours(20))
    ada = await wants(one_client, "ada", lockReminderHours=24)
    list_id = await public_list(one_client)
    await ada.ask(SUBSCRIBE, input={"list": list_id})
    await ReminderRun(emails(one_client, outbox)).run()
    content = outbox.emails[0].content
    assert b"List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n" in content
    link = re.findall(rb"List-Unsubscribe: <https://api\.example\.org(/unsubscribe\?token=[\w.-]+)>", content)[
        0
    ].decode()
    page = await one_client.http.get(link)
    assert "No more reminders" in page.text
    assert (await ada.ask(HOURS))["lockReminderHours"] == 24
    posted = await one_client.http.post(link, content=b"List-Unsubscribe=One-Click")
    assert posted.status_code == 200
    assert (await ada.ask(HOURS))["lockReminderHours"] is None
    subscribed = await ada.ask("{ viewer { subscriptions { active } } }")
    assert subscribed["subscriptions"] == [{"active": True}]
    nobody = Unsubscription("nobody", other=OtherEmails.REMINDERS).token(one_client.services.seal)
    assert (await one_client.http.post("/unsubscribe", params={"token": nobody})).status_code == 200


# ── inside the service, and bounces ──


def process(client: Client, later: timedelta = timedelta()) -> EmailSchedule:
    """Another process that serves, which sends what is due every 15 minutes."""
    given = client.services
    services = Services(given.table, given.seal, clock=lambda: given.clock() + later)
    services.leases.lasting = LONGEST
    return EmailSchedule(services, Settings(secrets=("x" * 32,)), 15)


async def test_of_several_processes_one_sends_what_is_due(client: Client) -> None:
    """Until the period is over; then one of them again."""
    assert sum(await asyncio.gather(*(process(client).run_if_due() for _ in range(3)))) == 1
    assert not await process(client).run_if_due()
    assert await process(client, timedelta(minutes=16)).run_if_due()


async def test_a_run_that_was_cut_short_is_another_processs_at_once(
    one_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that had begun it stops: it is still due. One that fails is not, until the period is over."""
    begun, stops = asyncio.Event(), process(one_client)

    async def wait(_: ReminderRun) -> Any:
        begun.set()
        await asyncio.Event().wait()

    with monkeypatch.context() as patched:
        patched.setattr(ReminderRun, "run", wait)
        stops.start()
        await begun.wait()
        assert not await process(one_client).run_if_due()
        await stops.close()

    async def fail(_: ReminderRun) -> Any:
        raise ServerUnreachable

    with monkeypatch.context() as patched:
        patched.setattr(ReminderRun, "run", fail)
        with pytest.raises(ServerUnreachable):
            await process(one_client).run_if_due()
    assert not await process(one_client).run_if_due()


async def test_an_email_that_the_server_is_taking_when_a_process_stops_is_sent_once(one_client: Client) -> None:
    """As at each deployment: the process waits for the answer, and the next one finds that it was sent."""
    handed_over, answers = asyncio.Event(), asyncio.Event()

    class Slow(Outbox):
        async def send(self, email: Email) -> None:
            await super().send(email)
            handed_over.set()
            await answers.wait()

    ada, outbox = await wants(one_client, "ada"), Slow()
    await ada.ask(SUBSCRIBE, input={"list": await public_list(one_client)})
    stops = posting(one_client.services, outbox, 15)
    stops.start()
    await handed_over.wait()
    stopping = asyncio.create_task(stops.close())
    await turns()
    answers.set()
    await stopping
    assert await posting(one_client.services, outbox, 15).run_if_due()
    assert outbox.recipients == ["ada@example.org"]


def posting(services: Services, outbox: Outbox, minutes: float) -> EmailSchedule:
    """A process that sends what is due through an outbox."""

    class Posted(EmailSchedule):
        async def send(self, emails: Emails, due_at: str | None) -> None:
            await super().send(replace(emails, transport=outbox, ending=LONGEST), due_at)

    other = Services(services.table, services.seal, clock=services.clock)
    other.leases.lasting = LONGEST
    return Posted(other, Settings(secrets=("x" * 32,)), minutes)


async def test_an_email_that_fails_for_now_is_sent_a_quarter_of_an_hour_later(one_client: Client) -> None:
    """However seldom emails are sent. One that is rejected for good waits until they are."""
    now, outbox = [one_client.services.clock()], Outbox()
    ada = await wants(one_client, "ada")
    await ada.ask(SUBSCRIBE, input={"list": await public_list(one_client)})
    services = Services(one_client.services.table, one_client.services.seal, clock=lambda: now[0])
    schedule = posting(services, outbox, 360)
    outbox.fails = lambda _: RejectedForNow("451 greylisted")
    with pytest.raises(FailedForNow):
        await schedule.run_if_due()
    outbox.fails = lambda _: EmailRejected("550 no such mailbox")
    for minutes, is_due in ((0, False), (15, True), (15, False)):
        now[0] += timedelta(minutes=minutes)
        assert await schedule.run_if_due() is is_due
    outbox.fails = lambda _: None
    now[0] += timedelta(hours=6)
    assert await schedule.run_if_due()
    assert outbox.recipients == ["ada@example.org"]


async def test_a_killed_run_is_resumed_once_its_lease_has_lapsed(one_client: Client) -> None:
    """By a process that has seen nothing of it for that long. If the other was only halted, it sends nothing more."""
    leases = one_client.services.leases
    ada = await wants(one_client, "ada")
    await ada.ask(SUBSCRIBE, input={"list": await public_list(one_client)})
    leases.patience = 0.5
    halted = await turn(one_client.services)
    halted._safe_until = 0.0
    other, outbox = process(one_client), Outbox()
    assert not await other.run_if_due()
    with pytest.raises(LeaseLost):
        await DailyRun(replace(emails(one_client, outbox), transport=LeasedTransport(outbox, halted))).run()
    assert outbox.emails == []
    assert await until(other.run_if_due, "the lease has lapsed")
    assert (await DailyRun(emails(one_client, outbox)).run()).already_sent == 1


async def test_nothing_is_sent_to_an_address_that_bounced(
    one_client: Client, variables: dict[str, str], tmp_path: Path
) -> None:
    """The command names lines that are no addresses, does the others, and can be run again."""
    await wants(one_client, "ada", lockReminderHours=24)
    await wants(one_client, "bob", lockReminderHours=24)
    await EventEditor(one_client).card(10, starts=in_hours(20))
    file = tmp_path / "bounced.txt"
    file.write_text("ADA@example.org\n\nnot an address\nnobody@example.org\n")
    done = await asyncio.to_thread(ringside, "emails", "bounced", str(file), **variables)
    assert done.returncode == 1
    assert "Members without an address now: 1. Addresses that belong to nobody: 1." in done.stdout
    assert "line 3 is not an email address" in done.stderr
    assert await breaches_in(one_client.services) == []
    again = await asyncio.to_thread(ringside, "emails", "bounced", str(file), **variables)
    assert "Members without an address now: 0. Addresses that belong to nobody: 2." in again.stdout
    profile = await read_profile(one_client.services.table, "ada")
    assert profile is not None
    assert profile.email is None
    outbox = Outbox()
    await ReminderRun(emails(one_client, outbox)).run()
    assert outbox.recipients == ["bob@example.org"]


async def test_an_address_bounces_by_the_ascii_form_of_its_domain(
    one_client: Client, variables: dict[str, str], tmp_path: Path
) -> None:
    """That is what the email was sent to; either form means the member."""
    for user in ("ada", "bob", "jörg"):
        profile = Profile(user, user, NOW, email=f"{user}@bücher.example")
        await one_client.services.table.write(PROFILE.put(profile))
    file = tmp_path / "bounced.txt"
    file.write_text("Ada@XN--BCHER-KVA.example\nbob@Bücher.example\njörg@xn--bcher-kva.example\n", encoding="utf-8")
    done = await asyncio.to_thread(ringside, "emails", "bounced", str(file), **variables)
    assert "Members without an address now: 3. Addresses that belong to nobody: 0." in done.stdout


async def _refuse_in_latin_1(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A mail server that knows nobody, and says so in French and in the letters of an old system."""
    writer.write(b"220 mail.test\r\n")
    while command := (await reader.readline())[:4].upper():
        answers = {b"RCPT": b"550 5.1.1 Bo\xeete aux lettres inconnue", b"QUIT": b"221 Au revoir"}
        writer.write(answers.get(command, b"250 OK") + b"\r\n")
    writer.close()


async def test_the_command_reports_a_refusal_in_any_encoding(one_client: Client, variables: dict[str, str]) -> None:
    """What a mail server answers is whatever it likes."""
    ada = await wants(one_client, "ada")
    await ada.ask(SUBSCRIBE, input={"list": await public_list(one_client)})
    async with await asyncio.start_server(_refuse_in_latin_1, "127.0.0.1", 0) as server:
        url = f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        done = await asyncio.to_thread(ringside, "emails", **variables, RINGSIDE_SMTP_URL=url)
    assert "5.1.1 Bo\\udceete aux lettres inconnue" in done.stdout
    assert done.stderr.strip().endswith("Not everything was sent. Run it again: nobody gets a second email.")


async def test_the_command_sends_words_and_reminders(one_client: Client, variables: dict[str, str]) -> None:
    """Without a mail server they go to the log."""
    ada = await wants(one_client, "ada", lockReminderHours=24)
    await ada.ask(SUBSCRIBE, input={"list": await public_list(one_client)})
    await EventEditor(one_client).card(10, starts=in_hours(20), name="Full Circle")
    done = await asyncio.to_thread(ringside, "emails", **variables)
    assert done.returncode == 0, done.stderr
    assert "1 reminders sent" in done.stdout
    assert "1 emails sent" in done.stdout
