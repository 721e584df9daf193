"""What reviews and threads cost: `python -m bench.reviews [--comments 100000]`.

On the embedded engine, in this process: read units and CPU of a page of 20, as it was before and with each filter and
order, among comments of which one is verified, and all; of a thread beside a page; write units of a post with each
feature. CPU is the median of interleaved runs, as a ratio to the newest page of the same run.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.comments_pages import SEAL, generate_comments
from datastore.changes.unit_of_work import UnitOfWork
from datastore.comments.changes import CommentChange, change_comment
from datastore.comments.helpful import HELPFUL, Helpful, mark_helpful, read_helpful_page
from datastore.comments.pages import read_page
from datastore.comments.planner import CommentCounts, Filter
from datastore.comments.records import COMMENT, REPLY, Comment
from datastore.comments.threads import THREAD, Thread, read_replies
from datastore.comments.verified import ShownProof, entry_writes
from datastore.dynamo import Table, Window, metered
from datastore.values.ids import Ids
from server.engine import run_engine
from tests.conftest import create_table

BODY = 300
PAGE = 20
RUNS = 200
NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def load(table: Table, comments: Iterable[Comment]) -> CommentCounts:
    """Write comments with their second entries, and as many numbers as the order by helpfulness shows."""
    counts, verified, size = [0] * 6, [0] * 6, 0
    writes: list[Any] = []
    for place, comment in enumerate(comments):
        one = replace(comment, marked=True) if place % 3 == 0 and place < 1800 else comment
        counts[one.rating or 0] += 1
        verified[one.rating or 0] += one.verified_at is not None
        size += one.size
        writes += [COMMENT.put(one), *entry_writes(None, one)]
        if one.marked:
            writes.append(HELPFUL.put(replace(Helpful.of(one, NOW), number=1 + place % 50)))
    await asyncio.gather(*(table.write_many(writes[start::8]) for start in range(8)))
    return CommentCounts({"en": tuple(counts)}, {"en": size}, verified={"en": tuple(verified)})


async def measure(reads: dict[str, Callable[[], Awaitable[Any]]]) -> dict[str, tuple[float, float]]:
    """Of each kind of page: read units, and the median CPU time in seconds."""
    units, times = {}, {name: list[float]() for name in reads}
    for name, read in reads.items():
        with metered() as spent:
            await read()
        units[name] = spent.read_units
    for _ in range(RUNS):
        for name, read in reads.items():
            began = time.process_time()
            await read()
            times[name].append(time.process_time() - began)
    return {name: (units[name], statistics.median(times[name])) for name in reads}


def page_of(table: Table, product: str, counts: CommentCounts, **wanted: Any) -> Callable[[], Awaitable[Any]]:
    chosen = Filter.of(product, wanted.get("languages"), wanted.get("ratings"), verified=wanted.get("verified"))
    return lambda: read_page(table, chosen, counts, Window(PAGE, SEAL).open(chosen.scope))


async def reading(table: Table, number: int) -> None:
    few = [replace(one, verified_at=NOW if place == number // 2 else None)
           for place, one in enumerate(generate_comments("few", number, BODY))]  # fmt: skip
    every = [replace(one, verified_at=NOW) for one in generate_comments("all", number, BODY)]
    none = list(generate_comments("none", number, BODY))
    counts = {name: await load(table, some) for name, some in (("few", few), ("all", every), ("none", none))}
    helpful = Filter.of("none")
    root = none[-1]
    replies = [Comment("none", Ids().next(NOW), "en", None, "x" * BODY, "ann", reply_to=root.ulid, root=root.ulid)
               for _ in range(8)]  # fmt: skip
    await table.write_many([*map(REPLY.put, replies), THREAD.put(Thread("none", root.ulid, len(replies)))])
    threaded = replace(root, threaded=True)
    found = await measure({
        "newest": page_of(table, "none", counts["none"]),
        "ratings 1 and 5": page_of(table, "none", counts["none"], ratings=[1, 5]),
        "verified, all are": page_of(table, "all", counts["all"], verified=True),
        "verified, one of all is": page_of(table, "few", counts["few"], verified=True),
        "verified, ratings 1 and 5": page_of(table, "all", counts["all"], verified=True, ratings=[1, 5]),
        "most helpful": lambda: read_helpful_page(table, helpful, counts["none"], Window(PAGE, SEAL).open("h")),
        "three replies of a thread": lambda: read_replies(table, threaded, Window(3, SEAL).open("r")),
    })  # fmt: skip
    newest = found["newest"]
    print(f"| page of {PAGE} of {number:,} | read units | units, ratio to newest | CPU, ratio to newest |")
    print("|---|---|---|---|")
    for name, (units, seconds) in found.items():
        print(f"| {name} | {units:.1f} | {units / newest[0]:.2f} | {seconds / newest[1]:.2f} |")


async def posting(table: Table) -> None:
    ids = Ids()

    async def units(change: CommentChange) -> float:
        with metered() as spent:
            await change_comment(table, UnitOfWork.unkeyed(NOW), None, change)
        return spent.write_units

    def new(**more: Any) -> Comment:
        return Comment("posts", ids.next(datetime.now(UTC)), "en", 5, "x" * BODY, "ann", **more)

    plain = new()
    rows: list[tuple[str, float]] = [("a rated comment", await units(CommentChange(None, plain)))]
    placed = new(placed=True)
    rows.append(("with one review each", await units(CommentChange(None, placed))))
    proven = new(verified_at=NOW, proof="0" * 32)
    shown = ShownProof("0" * 32, "posts", proven.ulid, NOW)
    rows.append(("with a proof", await units(CommentChange(None, proven, proof=shown))))
    first = Comment(
        "posts", ids.next(datetime.now(UTC)), "en", None, "x" * BODY, "bob", reply_to=plain.ulid, root=plain.ulid
    )
    rows.append(("the first reply of a thread", await units(CommentChange(None, first))))
    second = replace(first, ulid=ids.next(datetime.now(UTC)))
    rows.append(("another reply", await units(CommentChange(None, second))))
    for user, name in (("cy", "the first helpful mark"), ("di", "another helpful mark")):
        stored = await table.get(COMMENT.at(product="posts", ulid=placed.ulid), consistent=True)
        assert stored is not None
        with metered() as spent:
            await mark_helpful(table, UnitOfWork.unkeyed(NOW), stored, user, helpful=True)
        rows.append((name, spent.write_units))
    print("\n| write | units, without the journal |\n|---|---|")
    for what, spent_units in rows:
        print(f"| {what} | {spent_units:.0f} |")


async def run(url: str, number: int) -> None:
    async with create_table("bench", url) as table:
        await reading(table, number)
        await posting(table)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comments", type=int, default=100_000)
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, run_engine(Path(folder)) as engine:
        asyncio.run(run(engine.url, chosen.comments))


if __name__ == "__main__":
    main()
