"""The cost of pages of comments: `python -m bench.comments_pages [--comments 100000]`.

On the embedded engine, in this process, without GraphQL: read units and rounds over all sets of ratings; a page at
depth 50,000 compared with the first; a product of 100,000 comments compared with one of 1,000; write units of a post.
Times are medians of interleaved runs, given as ratios only.
"""

import argparse
import asyncio
import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from datastore.changes.unit_of_work import UnitOfWork
from datastore.comments.changes import CommentChange, change_comment
from datastore.comments.pages import CommentPage, read_page
from datastore.comments.planner import RATINGS, CommentCounts, Filter
from datastore.comments.records import COMMENT, Comment
from datastore.dynamo import Table, Window, metered
from datastore.values.ids import Ids
from datastore.values.seal import Seal
from server.engine import run_engine
from tests.conftest import create_table

SEAL = Seal(["a secret that benchmarks sign cursors with"])
J_SHAPED = (10, 5, 10, 20, 55)
SETS = [chosen for size in range(1, 6) for chosen in itertools.combinations(RATINGS, size)]


def generate_comments(product: str, number: int, body: int | None, whole: int | None = None) -> Iterator[Comment]:
    """Yield comments whose bodies (or whole items, with `whole`) have this many bytes, give or take half."""
    chance, ids = random.Random(7), Ids()
    for _ in range(number):
        (rating,) = chance.choices(RATINGS, J_SHAPED)
        factor = chance.uniform(0.5, 1.5)
        bare = Comment(product, ids.next(datetime.now(UTC)), "en", rating, "", f"user-{chance.randrange(999):03d}")
        length = int(body * factor) if body is not None else int((whole or 0) * factor) - bare.size
        yield Comment(product, bare.ulid, "en", rating, "x" * max(1, length), bare.author)


async def load(table: Table, comments: Iterator[Comment]) -> CommentCounts:
    counts, size = [0] * 6, 0
    stored = list(comments)
    for comment in stored:
        counts[comment.rating or 0] += 1
        size += comment.size
    parts = [stored[start::8] for start in range(8)]
    await asyncio.gather(*(table.write_many(map(COMMENT.put, part)) for part in parts))
    return CommentCounts({"en": tuple(counts)}, {"en": size})


async def read_pages(
    table: Table, wanted: Filter, counts: CommentCounts, pages: int, size: int = 20
) -> list[CommentPage]:
    read, cursor = [], None
    for _ in range(pages):
        page = await read_page(table, wanted, counts, Window(size, SEAL, cursor=cursor).open(wanted.scope))
        read.append(page)
        if not page.has_next_page:
            break
        cursor = page.edges[-1].cursor
    return read


async def mean_costs(table: Table, product: str, counts: CommentCounts, pages: int = 8) -> tuple[float, float, float]:
    """Return the mean read units, rounds and queries of a page of 20, over all 31 sets of ratings."""
    costs, rounds, queries = [], [], []
    for ratings in SETS:
        with metered() as spent:
            measured = await read_pages(table, Filter.of(product, None, ratings), counts, pages)
        costs.append(spent.read_units / len(measured))
        rounds += [page.report.rounds for page in measured]
        queries += [page.report.queries for page in measured]
    return statistics.mean(costs), statistics.mean(rounds), statistics.mean(queries)


async def naive_cost(table: Table, product: str) -> float:
    """Return the read units of querying every rating's partition for a full page."""
    costs = []
    for ratings in SETS:
        partitions = [COMMENT.on("gsi2", product=product, rating=rating).newest_first() for rating in ratings]
        with metered() as spent:
            await asyncio.gather(*(table.query(partition, limit=21) for partition in partitions))
        costs.append(spent.read_units)
    return statistics.mean(costs)


async def time_page(table: Table, wanted: Filter, counts: CommentCounts, cursor: str | None) -> float:
    began = time.perf_counter()
    await read_page(table, wanted, counts, Window(20, SEAL, cursor=cursor).open(wanted.scope))
    return time.perf_counter() - began


async def ratio(
    table: Table,
    one: tuple[Filter, CommentCounts, str | None],
    other: tuple[Filter, CommentCounts, str | None],
    runs: int = 400,
) -> float:
    """Return the second's time divided by the first's, as medians of interleaved runs."""
    first, second = [], []
    for _ in range(runs):
        first.append(await time_page(table, *one))
        second.append(await time_page(table, *other))
    return statistics.median(second) / statistics.median(first)


async def measure(table: Table, number: int) -> None:
    print("| comments of | read units | rounds | queries | full page per partition |")
    print("|---|---|---|---|---|")
    for name, body, whole in (("300 B, keys included", None, 300), ("300 B of text", 300, None), ("3 KB", None, 3072)):
        product = f"of {name}"
        counts = await load(table, generate_comments(product, 4_000, body, whole))
        cost, rounds, queries = await mean_costs(table, product, counts)
        print(f"| {name} | {cost:.2f} | {rounds:.3f} | {queries:.2f} | {await naive_cost(table, product):.2f} |")

    small = await load(table, generate_comments("small", 1_000, 300))
    large = await load(table, generate_comments("large", number, 300))
    print(f"\n| a page of 20 out of {number:,} comments | unfiltered | ratings 1 and 5 | ratings 1 to 4 |")
    print("|---|---|---|---|")
    depth = min(50_000, number // 2)
    rows: dict[str, list[float]] = {f"at depth {depth:,} : the first": [], "100 times more comments": []}
    for ratings in (None, (1, 5), (1, 2, 3, 4)):
        wanted = Filter.of("large", None, ratings)
        deep = await cursor_at(table, wanted, large, depth if ratings is None else depth // 2)
        rows[f"at depth {depth:,} : the first"].append(await ratio(table, (wanted, large, None), (wanted, large, deep)))
        rows["100 times more comments"].append(
            await ratio(table, (Filter.of("small", None, ratings), small, None), (wanted, large, None))
        )
    for name, figures in rows.items():
        print(f"| {name} | {' | '.join(f'{figure:.2f}' for figure in figures)} |")
    await print_write_units(table)


async def cursor_at(table: Table, wanted: Filter, counts: CommentCounts, depth: int) -> str:
    """Return the cursor after this many comments."""
    cursor, passed = None, 0
    while passed < depth:
        page = await read_page(table, wanted, counts, Window(100, SEAL, cursor=cursor).open(wanted.scope))
        passed += len(page.nodes)
        cursor = page.edges[-1].cursor
        if not page.has_next_page:
            break
    assert cursor is not None
    return cursor


async def print_write_units(table: Table) -> None:
    first, second = generate_comments("written", 2, None, 300)
    with metered() as alone:
        await table.write(COMMENT.put(first))
    unit = UnitOfWork("user-1", None, "", datetime.now(UTC))
    with metered() as whole:
        await change_comment(table, unit, second, CommentChange(None, second))
    print(f"\nWrite units: the comment with its index entries {alone.write_units:.0f}, "
          f"posted in a transaction with its counts {whole.write_units:.0f}.")  # fmt: skip


async def main(number: int) -> None:
    with tempfile.TemporaryDirectory() as folder, run_engine(Path(folder)) as engine:
        async with create_table("bench", engine.url) as table:
            await measure(table, number)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comments", type=int, default=100_000)
    asyncio.run(main(parser.parse_args().comments))
