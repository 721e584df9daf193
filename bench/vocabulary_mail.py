"""The daily words of 100,000 members that became due within an hour, killed three times: memory, coverage, duplicates.

Each has chosen one of the minutes of the last hour, and has two and a half subscriptions on average.

    python -m bench.vocabulary_mail [MEMBERS]

It uses the embedded engine in a temporary folder. Emails are rendered in full and passed to an outbox that appends a
line to a file in place of the mail server's acceptance, so each email is counted exactly. The run is a separate
process, killed by SIGKILL while emails are in flight, at a quarter, a half and three quarters. A last run finds nothing
due.
"""

import asyncio
import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import bulk
from datastore.dynamo import metered, open_table
from datastore.dynamo.writes import Put
from datastore.people.profiles import PROFILE, Profile
from datastore.values.seal import Seal
from datastore.vocabulary.lists import LIST, WordList
from datastore.vocabulary.subscriptions import SUBSCRIPTION, CharacterSet, Subscription, all_subscribers
from datastore.vocabulary.words import WORD, Word
from resolvers.requests.context import Services
from server.engine import run_engine
from server.mail.daily_run import DailyRun
from server.mail.message import Email, Letterhead
from server.mail.sending import Emails

NOW = datetime(2026, 11, 20, tzinfo=UTC)
SEAL = Seal(["a secret that is long enough to be one"])
LISTS, AT_ONCE = 10, 16


def peak_memory() -> int:
    """Return this process's peak memory in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def cpu_seconds() -> float:
    """Return the seconds of CPU time this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class FileTransport:
    """Accepts an email by writing a line to a file."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def send(self, email: Email) -> None:
        os.write(self._file, f"{email.recipient}\n".encode())
        await asyncio.sleep(0)


def generate_members(number_of_members: int, lists: list[str]) -> Iterator[Put]:
    """Yield members with one to four subscriptions each, two and a half on average."""
    began = datetime.now(UTC)
    for number in range(number_of_members):
        user = f"member-{number}"
        due = began - timedelta(minutes=number % 60)
        profile = Profile(user, f"Member {number}", NOW, email=f"{user}@example.org", daily_word_at=f"{due:%H:%M}")
        yield PROFILE.put(profile)
        for index in range(1 + number % 4):
            list_id = lists[(number + index) % LISTS]
            yield SUBSCRIPTION.put(Subscription(user, list_id, CharacterSet.SIMPLIFIED, active=True, since=NOW))


def all_items(members: int) -> Iterator[Put]:
    lists = [f"{number:026d}" for number in range(LISTS)]
    for index, list_id in enumerate(lists):
        yield LIST.put(WordList(list_id, f"List {index}", public=True, created_at=NOW, next_ordinal=50))
        yield from (WORD.put(Word(list_id, ordinal, f"词{ordinal}", f"meaning {ordinal}")) for ordinal in range(50))
    yield from generate_members(members, lists)


async def read(url: str) -> None:
    """Do the reads of the daily run and nothing else."""
    async with open_table("bench", url=url) as table:
        before, began, users, subscriptions = peak_memory(), time.perf_counter(), Counter[str](), 0
        with metered() as spent:
            async for reader in all_subscribers(table):
                users[reader.user] += 1
                subscriptions += len(reader.subscriptions)
        print(
            f"reading: {len(users):,} members, each {max(users.values())} time, {subscriptions:,} subscriptions, "
            f"{spent.calls:,} requests, {spent.read_units:,.0f} read units, "
            f"{time.perf_counter() - began:.0f} s, {cpu_seconds():.0f} s of CPU; "
            f"peak {peak_memory()} MB, of which {before} MB before it began and the list of members for this check"
        )


async def run(url: str, path: Path) -> None:
    async with open_table("bench", url=url) as table:
        services = Services(table, SEAL)
        began = time.perf_counter()
        letterhead = Letterhead("words@example.org", "https://api.example.org", SEAL)
        emails = Emails(services, letterhead, FileTransport(path), AT_ONCE)
        with metered() as spent:
            summary = await DailyRun(emails).run()
        print(
            f"{summary.sent:,} sent, {summary.already_sent:,} sent before, {summary.failed} failed, "
            f"{time.perf_counter() - began:.0f} s, {cpu_seconds():.0f} s of CPU; peak {peak_memory()} MB; "
            f"{spent.calls:,} requests, {spent.read_units:,.0f} read units, {spent.write_units:,.0f} write units",
            flush=True,
        )


def count_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def main() -> None:
    members = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        bulk.load(Path(folder), "bench", all_items(members))
        engine = stack.enter_context(run_engine(Path(folder)))
        subprocess.run([sys.executable, "-m", "bench.vocabulary_mail", "read", engine.url], check=True)
        sent = Path(folder) / "sent"
        command = [sys.executable, "-m", "bench.vocabulary_mail", "run", engine.url, str(sent)]
        for quarter in (1, 2, 3):
            process = subprocess.Popen(command)
            while count_lines(sent) < members * quarter // 4 and process.poll() is None:
                time.sleep(0.05)
            process.send_signal(signal.SIGKILL)
            process.wait()
            print(f"killed after {count_lines(sent):,} emails", flush=True)
        print("the last run:", flush=True)
        subprocess.run(command, check=True)
        print("a run with nothing due:", flush=True)
        subprocess.run(command, check=True)
        counts = Counter(sent.read_text().split())
        print(
            f"emails: {counts.total():,} to {len(counts):,} members; twice: "
            f"{sum(count > 1 for count in counts.values())}, of at most {3 * AT_ONCE} in flight at the three kills"
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["read"]:
        asyncio.run(read(sys.argv[2]))
    elif sys.argv[1:2] == ["run"]:
        asyncio.run(run(sys.argv[2], Path(sys.argv[3])))
    else:
        main()
