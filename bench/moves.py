"""The whole table moved: `make bench BENCH=moves`.

A table of 200,000 items of about 600 bytes, with an entry in one index, is exported, imported, copied to another data
folder, backed up and restored, each by its command in a process of its own. Items per second are of the whole command,
with its start, its checks and, where it makes one, its audit, which finds nothing of the service's to check. Memory is
the largest resident set of the command's process; the engine's is its own. A full run writes bench/results/moves.md.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.services.measurement import repository_root
from datastore.dynamo import open_table
from datastore.dynamo.bulk import item_line
from datastore.dynamo.declaration import create
from datastore.whole import table as whole_table
from datastore.whole.layout import ensure_layout
from server.engine import run_engine_async, table_file

ITEMS = 200_000
CHUNK = 4_000
RESULTS = repository_root() / "bench" / "results"
WORDS = ("scene", "mask", "finale", "ring", "crowd", "story", "book", "champion", "night", "page")


@dataclass(frozen=True, slots=True)
class Measured:
    """One command: its seconds, those of CPU with the engine's, and its largest resident set."""

    name: str
    seconds: float
    cpu: float
    megabytes: float


async def fill(data: Path, items: int) -> None:
    """Create a table of so many items."""
    chance = random.Random(7)
    async with run_engine_async(data) as engine, open_table("ringside", url=engine.url) as table:
        await create(table)
        await ensure_layout(table)
        for start in range(0, items, CHUNK):
            lines = [_line(number, chance) for number in range(start, min(start + CHUNK, items))]
            await whole_table.write_lines(table, lines, as_transactions=True)


def _line(number: int, chance: random.Random) -> bytes:
    text = " ".join(chance.choices(WORDS, k=70))
    return item_line(
        {
            "pk": {"S": f"BENCH#{number % 2_000:04d}"},
            "sk": {"S": f"ITEM#{number:09d}"},
            "gsi1pk": {"S": f"BENCH#{number % 500:04d}"},
            "gsi1sk": {"S": f"{number:09d}"},
            "text": {"S": text},
            "number": {"N": str(number)},
        }
    )


def run(name: str, arguments: Sequence[str], data: Path, module: str = "server") -> Measured:
    """Run a command of `ringside`, or another module, and measure it."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RINGSIDE_")}
    environment = {**inherited, "RINGSIDE_DATA": str(data), "PYTHONPATH": str(repository_root())}
    began = time.perf_counter()
    pid = os.posix_spawn(sys.executable, [sys.executable, "-m", module, *arguments], environment)
    _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - began
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"`{module} {' '.join(arguments)}` failed")
    return Measured(name, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6)


def measure(folder: Path, items: int) -> tuple[list[Measured], str]:
    data, other, third = (folder / name for name in ("data", "other", "third"))
    asyncio.run(fill(data, items))
    export, again, backup = (folder / name for name in ("table.export", "again.export", "table.backup"))
    measured = [
        run("export", ("export", "all", str(export)), data),
        run("import", ("import", "all", str(export)), other),
        run("copy", ("copy", "--from", f"embedded:{data}", "--to", f"embedded:{third}"), folder / "state"),
        run("backup", ("backup", str(backup)), data),
        run("restore", ("restore", str(backup)), other),
    ]
    run("", ("export", "all", str(again)), third)
    if export.read_bytes() != again.read_bytes():
        raise SystemExit("the copied table is not equal to the first one")
    sizes = [file.stat().st_size / 1e6 for file in (table_file(data), export, backup)]
    return measured, "The table's file has {:.0f} MB, the export {:.0f} MB, the backup {:.0f} MB.".format(*sizes)


def report(measured: Sequence[Measured], items: int, sizes: str) -> str:
    rows = "\n".join(
        f"| {each.name} | {each.seconds:.1f} | {each.cpu:.1f} | {items / each.seconds:,.0f} | {each.megabytes:.0f} |"
        for each in measured
    )
    return f"""# The whole table moved

    make bench BENCH=moves

{items:,} items of about 600 bytes with an entry in one index; embedded engine, {os.cpu_count()} CPUs.
{sizes}

Each row is a whole command in a process of its own, with its start, its checks and its audit, which finds nothing of
the service's to check. CPU seconds include the engine's; seconds depend on what else the machine does. Memory is the
largest resident set of that process, without the engine's; the commands' modules take 108 MB of it.

| command | seconds | CPU seconds | items/s | MB |
|---|---:|---:|---:|---:|
{rows}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=ITEMS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ringside-moves-") as folder:
        measured, sizes = measure(Path(folder), given.items)
    text = report(measured, given.items, sizes)
    print(text)
    if given.items >= ITEMS:
        (RESULTS / "moves.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
