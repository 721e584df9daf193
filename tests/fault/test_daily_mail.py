"""`ringside daily`, killed repeatedly: every subscriber gets an email, and only interrupted ones can come twice."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from datastore import vocabulary as vocabulary_store
from datastore.dynamo import Table
from datastore.people import PROFILE, Profile
from datastore.receipts import Once
from datastore.seal import Seal
from datastore.vocabulary import CharacterSet, Subscription, Word, WordBatch, WordList
from resolvers.context import Services
from tests.engines import RunningEngine
from tests.mail_server import Mailbox, mail_server
from tests.service import ROOT, environment

SECRET = "a secret that is long enough to be one in tests"
SUBSCRIBERS = 150
AT_ONCE = 4
NOW = datetime(2026, 11, 20, tzinfo=UTC)


async def create_subscribers(table: Table) -> list[str]:
    """Subscribers of one list; returns their addresses."""
    services = Services(table, Seal([SECRET]))
    once = Once("test", None, "", NOW)
    new = WordList(services.ids.next(NOW), "First", public=True, created_at=NOW)
    await vocabulary_store.create_list(table, new, once)
    words = (Word(new.list, 0, "好", "good"),)
    await vocabulary_store.add_words(table, new.list, WordBatch("batch", words, 10), once)
    users = [f"subscriber{number}" for number in range(SUBSCRIBERS)]
    await table.write_many(PROFILE.put(Profile(user, user, NOW, email=f"{user}@example.org")) for user in users)
    for user in users:
        subscription = Subscription(user, new.list, CharacterSet.SIMPLIFIED, active=True, since=NOW)
        await vocabulary_store.subscribe(table, subscription, once)
    return sorted(f"{user}@example.org" for user in users)


async def daily(**variables: str) -> asyncio.subprocess.Process:
    command = (sys.executable, "-m", "server", "daily", "--at-once", str(AT_ONCE), "--held-for", "2")
    return await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env=environment(**variables),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_the_next_run_completes_a_killed_one(
    one_table: Table, default_engine: RunningEngine, tmp_path: Path
) -> None:
    """Three kills while emails are sent: every subscriber gets one; only emails being sent at a kill can come twice."""
    addresses = await create_subscribers(one_table)
    mailbox = Mailbox()
    async with mail_server(mailbox, tmp_path) as url:
        variables = {
            "RINGSIDE_DYNAMODB_URL": default_engine.url,
            "RINGSIDE_TABLE": one_table.name,
            "RINGSIDE_SECRETS": SECRET,
            "RINGSIDE_SMTP_URL": url,
            "RINGSIDE_LOG": "warning",
        }
        for kill in range(1, 4):
            process = await daily(**variables)
            while len(mailbox.emails) < 30 * kill and process.returncode is None:
                await asyncio.sleep(0.01)
            assert process.returncode is None, "the run ended before it could be killed"
            process.kill()
            await process.communicate()
        last = await daily(**variables)
        output = (await last.communicate())[0].decode()
        assert last.returncode == 0, output
        again = await daily(**variables)
        assert f"{SUBSCRIBERS} sent before" in (await again.communicate())[0].decode()
    counts = Counter(mailbox.recipients)
    assert sorted(counts) == addresses
    twice = [address for address, count in counts.items() if count > 1]
    assert len(twice) <= 3 * AT_ONCE
    assert max(counts.values()) <= 4
    ids = {(recipient, email["Message-ID"]) for recipient, email in mailbox.emails}
    assert len(ids) == SUBSCRIBERS, "a second email has another Message-ID than the first"
