"""Migrating 1,000 lists with their history and 100,000 subscriptions: time, memory, and the writes of a second run.

    python -m bench.vocabulary_migration [LISTS [DAYS [SUBSCRIPTIONS]]]

The old tables and the new one are in one embedded engine, in a temporary folder. Each run is a separate process.
"""

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.vocabulary_mail import SEAL, cpu_seconds, peak_memory
from datastore.dynamo import declaration, metered, open_table
from resolvers.requests.context import Services
from server.commands.legacy import LegacySource, Migration
from server.engine import run_engine
from tests.legacy_sample import Sample

OLD_TABLES = ("old-subscriptions", "old-words")


async def seed(url: str, sample: Sample, words: Path) -> None:
    async with open_table(OLD_TABLES[0], url=url) as subscriptions, open_table(OLD_TABLES[1], url=url) as past_words:
        await sample.write(subscriptions, past_words, words)
    async with open_table("bench", url=url) as table:
        await declaration.create(table)


async def migrate(url: str, words: Path) -> None:
    async with (
        open_table("bench", url=url) as table,
        open_table(OLD_TABLES[0], url=url) as subscriptions,
        open_table(OLD_TABLES[1], url=url) as past_words,
    ):
        before, began = peak_memory(), time.perf_counter()
        source = LegacySource(subscriptions, past_words, words)
        with metered() as spent:
            summary = await Migration(Services(table, SEAL), source, words.with_suffix(".report")).run()
        print(
            f"{time.perf_counter() - began:.0f} s, {cpu_seconds():.0f} s of CPU, "
            f"peak {peak_memory()} MB ({before} MB before it began), "
            f"{spent.calls:,} requests, {spent.write_units:,.0f} write units"
        )
        print("\n".join(f"  {line}" for line in summary.lines()), flush=True)


def main() -> None:
    lists, days, subscriptions = [*map(int, sys.argv[1:]), *(1000, 100, 100_000)[len(sys.argv) - 1 :]]
    with TemporaryDirectory() as folder, run_engine(Path(folder)) as engine:
        words = Path(folder) / "words.csv"
        sample = Sample(lists=lists, words=50, days=days, subscriptions=subscriptions)
        asyncio.run(seed(engine.url, sample, words))
        for turn in ("first", "second"):
            print(f"{turn} run: ", end="", flush=True)
            subprocess.run(
                [sys.executable, "-m", "bench.vocabulary_migration", "run", engine.url, str(words)], check=True
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        asyncio.run(migrate(sys.argv[2], Path(sys.argv[3])))
    else:
        main()
