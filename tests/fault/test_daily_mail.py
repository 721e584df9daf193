"""Runs of emails that are killed, or meet a late index: who must get an email gets one, and nobody else."""

import asyncio
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Table
from datastore.people.profiles import PROFILE, Profile
from datastore.values.seal import Seal
from datastore.vocabulary import lists, subscriptions
from datastore.vocabulary.lists import WordList
from datastore.vocabulary.subscriptions import CharacterSet, Subscription
from datastore.vocabulary.words import Word, WordBatch, add_words
from resolvers.requests.context import Services, utc_now
from server.mail.daily_run import DailyRun, RunSummary
from server.mail.message import Letterhead
from server.mail.sending import Emails, SmtpTransport
from tests.client import serving
from tests.command import ROOT, environment, on_table
from tests.conftest import settings_for
from tests.engines import EnginePair, ReachableEngine
from tests.lagging import Lag
from tests.lagging.tables import lagging, lagging_table
from tests.mail_server import Mailbox, body_of, mail_server
from tests.season import EventEditor, in_hours, submit

SECRET = "a secret that is long enough to be one in tests"
SUBSCRIBERS = 150
AT_ONCE = 4
NOW = datetime(2026, 11, 20, tzinfo=UTC)


ONCE = UnitOfWork("test", None, "", NOW)


async def create_list(table: Table, name: str = "First") -> str:
    new = WordList(Services(table, Seal([SECRET])).ids.next(NOW), name, public=True, created_at=NOW)
    await lists.create_list(table, new, ONCE)
    words = (Word(new.list, 0, "好", "good"),)
    await add_words(table, new.list, WordBatch("batch", words, 10), ONCE)
    return new.list


async def subscribe(table: Table, user: str, list_id: str, since: datetime = NOW) -> None:
    subscription = Subscription(user, list_id, CharacterSet.SIMPLIFIED, active=True, since=since)
    await subscriptions.subscribe(table, subscription, ONCE)


async def create_subscribers(table: Table) -> list[str]:
    """Subscribers of one list; returns their addresses."""
    list_id = await create_list(table)
    users = [f"subscriber{number}" for number in range(SUBSCRIBERS)]
    await table.write_many(PROFILE.put(Profile(user, user, NOW, email=f"{user}@example.org")) for user in users)
    for user in users:
        await subscribe(table, user, list_id)
    return sorted(f"{user}@example.org" for user in users)


async def start_run(**variables: str) -> asyncio.subprocess.Process:
    command = (sys.executable, "-m", "server", "emails", "--at-once", str(AT_ONCE))
    return await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env=environment(**variables),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def run_with_kills(mailbox: Mailbox, **variables: str) -> str:
    """Three runs that are killed while they send, one that completes them, and one more: what the last one says.

    Each waits until the lease of the one before has lapsed.
    """
    for kill in range(1, 4):
        process = await start_run(**variables)
        while len(mailbox.emails) < 30 * kill and process.returncode is None:
            await asyncio.sleep(0.01)
        assert process.returncode is None, (await process.communicate())[1].decode()
        process.kill()
        await process.communicate()
    last = await start_run(**variables)
    output = (await last.communicate())[0].decode()
    assert last.returncode == 0, output
    again = await start_run(**variables)
    return (await again.communicate())[0].decode()


def assert_each_once(mailbox: Mailbox, addresses: list[str]) -> None:
    """Only emails that were being sent at a kill came twice, as copies that mail programs recognise."""
    counts = Counter(mailbox.recipients)
    assert sorted(counts) == addresses
    twice = [address for address, count in counts.items() if count > 1]
    assert len(twice) <= 3 * AT_ONCE
    assert max(counts.values()) <= 4
    ids = {(recipient, email["Message-ID"]) for recipient, email in mailbox.emails}
    assert len(ids) == len(addresses), "a second email has another Message-ID than the first"


def variables_of(engine: ReachableEngine, table_name: str, smtp_url: str) -> dict[str, str]:
    return on_table(engine.url, table_name, RINGSIDE_SECRETS=SECRET, RINGSIDE_SMTP_URL=smtp_url, RINGSIDE_LOG="warning")


@pytest.mark.soak
async def test_the_next_run_completes_a_killed_one(engine_pair: EnginePair, table_name: str, tmp_path: Path) -> None:
    """Three kills while daily words are sent: every subscriber gets one."""
    mailbox = Mailbox()
    async with (
        lagging_table(engine_pair, table_name) as (engine, table, _),
        mail_server(mailbox, tmp_path) as url,
    ):
        addresses = await create_subscribers(table)
        said = await run_with_kills(mailbox, **variables_of(engine, table_name, url))
        assert f"{SUBSCRIBERS} sent before" in said
    assert_each_once(mailbox, addresses)


@pytest.mark.soak
async def test_the_next_run_completes_killed_reminders(
    engine_pair: EnginePair, table_name: str, tmp_path: Path
) -> None:
    """Three kills while reminders of a lock are sent: every member without a prediction gets one."""
    mailbox = Mailbox()
    async with (
        lagging_table(engine_pair, table_name) as (engine, table, _),
        mail_server(mailbox, tmp_path) as url,
        serving(settings_for(engine, table_name)) as client,
    ):
        event, [match] = await EventEditor(client).card(10, starts=in_hours(20))
        users = [f"m{number:03d}" for number in range(SUBSCRIBERS)]
        profiles = (
            Profile(user, user, NOW, email=f"{user}@example.org", lock_reminder_hours=24)
            for user in [*users, "predictor"]
        )
        await table.write_many(PROFILE.put(profile) for profile in profiles)
        await submit(client.member("predictor"), event, [(match, 0)])
        said = await run_with_kills(mailbox, **variables_of(engine, table_name, url))
        assert "0 reminders sent" in said
    assert_each_once(mailbox, [f"{user}@example.org" for user in users])


async def run_once(table: Table, url: str, index_lag: float) -> RunSummary:
    services = Services(table, Seal([SECRET]))
    letterhead = Letterhead("words@example.org", "https://api.example.org", services.seal)
    transport = SmtpTransport(url, "words@example.org")
    try:
        emails = Emails(services, letterhead, transport, AT_ONCE, timedelta(seconds=index_lag))
        return await DailyRun(emails, on=NOW.date()).run()
    finally:
        await transport.close()


async def test_what_was_acknowledged_before_the_run_counts_though_the_index_is_late(tmp_path: Path) -> None:
    """None to who unsubscribed, none to an old address, one to who has just subscribed, none twice."""
    lag, members, mailbox = 3.0, 10, Mailbox()
    ending, moving, starting, adding = (
        [f"{kind}{number}" for number in range(members)] for kind in ("ending", "moving", "starting", "adding")
    )
    async with (
        lagging(tmp_path, lag=Lag(mean=1e6, longest=lag, stale=0.5)) as (engine, table),
        mail_server(mailbox, tmp_path) as url,
    ):
        first, second = await create_list(table), await create_list(table, "Second")
        for user in (*ending, *moving, *adding):
            await table.write(PROFILE.put(Profile(user, user, NOW, email=f"{user}@old.example.org")))
            await subscribe(table, user, first)
        await engine.catch_up()

        async def change(place: int) -> None:
            await subscriptions.unsubscribe(table, ending[place], first, CharacterSet.SIMPLIFIED, ONCE)
            moved = Profile(moving[place], "", NOW, email=f"{moving[place]}@new.example.org")
            await table.write(PROFILE.put(moved))
            await table.write(PROFILE.put(Profile(starting[place], "", NOW, email=f"{starting[place]}@example.org")))
            await subscribe(table, starting[place], first, utc_now())
            await subscribe(table, adding[place], second, utc_now())

        await asyncio.gather(*map(change, range(members)))
        done = await run_once(table, url, lag + 12.0)  # an index of a busy machine is behind by more than the lag
        again = await run_once(table, url, 0.0)
    assert mailbox.recipients == sorted(
        [f"{user}@new.example.org" for user in moving]
        + [f"{user}@example.org" for user in starting]
        + [f"{user}@old.example.org" for user in adding]
    )
    # Who unsubscribed is passed over, as far as the index still listed them when the run read it.
    assert (done.sent, done.subscribers - done.unsubscribed, done.without_address) == (30, 30, 0)
    assert (again.sent, again.subscribers, again.already_sent) == (0, 30, 30)
    texts = [body_of(email) for to, email in mailbox.emails if to.startswith("adding")]
    assert all("from First" in text and "from Second" in text for text in texts)
