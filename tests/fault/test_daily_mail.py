"""`ringside daily`, killed again and again: nobody is left out, and only a letter on its way can come twice."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from datastore import vocabulary
from datastore.dynamo import Table
from datastore.people import PROFILE, Profile
from datastore.receipts import Once
from datastore.seal import Seal
from datastore.vocabulary import Batch, CharacterSet, Subscription, Word, WordList
from resolvers.context import Services
from tests.engines import Running
from tests.mail_server import Mailbox, mail_server
from tests.service import ROOT, environment

SECRET = "a secret that is long enough to be one in tests"
READERS = 150
AT_ONCE = 4
NOW = datetime(2026, 11, 20, tzinfo=UTC)


async def planted(table: Table) -> list[str]:
    """Readers of one list; their addresses."""
    services = Services(table, Seal([SECRET]))
    once = Once("test", None, "", NOW)
    made = WordList(services.ids.next(NOW), "First", public=True, created_at=NOW)
    await vocabulary.create_list(table, made, once)
    words = (Word(made.list, 0, "好", "good"),)
    await vocabulary.add_words(table, made.list, Batch("batch", words, 10), once)
    users = [f"reader{number}" for number in range(READERS)]
    await table.write_many(PROFILE.put(Profile(user, user, NOW, email=f"{user}@example.org")) for user in users)
    for user in users:
        wanted = Subscription(user, made.list, CharacterSet.SIMPLIFIED, active=True, since=NOW)
        await vocabulary.subscribe(table, wanted, once)
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


async def test_a_killed_run_is_taken_up_by_the_next(one_table: Table, default_engine: Running, tmp_path: Path) -> None:
    """Three kills in the midst of the letters: everybody has one, and at most the letters on their way two."""
    everybody = await planted(one_table)
    mailbox = Mailbox()
    async with mail_server(mailbox, tmp_path) as url:
        variables = {
            "RINGSIDE_DYNAMODB_URL": default_engine.url,
            "RINGSIDE_TABLE": one_table.name,
            "RINGSIDE_SECRETS": SECRET,
            "RINGSIDE_SMTP_URL": url,
            "RINGSIDE_LOG": "warning",
        }
        for turn in range(1, 4):
            process = await daily(**variables)
            while len(mailbox.letters) < 30 * turn and process.returncode is None:
                await asyncio.sleep(0.01)
            assert process.returncode is None, "the run ended before it could be killed"
            process.kill()
            await process.communicate()
        last = await daily(**variables)
        told = (await last.communicate())[0].decode()
        assert last.returncode == 0, told
        again = await daily(**variables)
        assert f"{READERS} had theirs before" in (await again.communicate())[0].decode()
    counts = Counter(mailbox.recipients)
    assert sorted(counts) == everybody
    twice = [address for address, count in counts.items() if count > 1]
    assert len(twice) <= 3 * AT_ONCE
    assert max(counts.values()) <= 4
    ids = {(recipient, letter["Message-ID"]) for recipient, letter in mailbox.letters}
    assert len(ids) == READERS, "a second letter has another Message-ID than the first"
