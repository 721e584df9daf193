"""The units per second of the hottest partition key at the promised rates; DynamoDB allows 1,000 (reads: 3,000) a key.

    python -m bench.heat [--write]

Each row carries out one second's operations of a promise, however long they take here, and adds up the units of every
partition key of the table and its indexes, as tests/lagging counts them (transactional writes twice, a moved index
entry as a delete and a put). Where a share of the operations is carried out, the units are scaled. A board's contenders
and results are read and settled by the clock, so for their keys the busiest second counts: as it is for writes, since
one process settles for all, and for reads once for each process.
"""

import argparse
import asyncio
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from datastore.dynamo import Table
from datastore.voting.boards import Board
from datastore.voting.contenders import Contender
from datastore.voting.editing import Shown, seed_board
from resolvers.requests.context import utc_now
from server.settings import Level, Log, Settings
from tests.client import Client, serving
from tests.comments import post
from tests.conftest import create_table
from tests.engines import EnginePair, running_pair
from tests.lagging import Lag, LaggingEngine, Ledger
from tests.lagging.capacity import PartitionKey
from tests.queries import CAST_VOTE, COMMENTS_PAGE, DRAW_MATCHUP, SCORE_EVENT
from tests.season import EventEditor, submit

RESULTS: Final = Path(__file__).parent / "results" / "heat.md"
HEAD: Final = """# Hottest partition keys

    python -m bench.heat --write

Units per second of the hottest partition key at the promised rate (goal: 700 of DynamoDB's 1,000; reads: 2,100 of
3,000), from the test engine's ledger. A board's contenders and results are read by 8 processes.

| promise | units | key |
|---|---|---|
"""
SECRET: Final = "a secret that is long enough for a benchmark"
BY_THE_CLOCK: Final = ("CONTENDERS#", "RESULTS#")
AT_ONCE: Final = 32
PROCESSES: Final = 8
PAGE: Final = 20
HOT_SECONDS: Final = 5
BODY: Final = "x" * 230
"""With its attributes' names and keys, a comment of some 300 bytes."""


@dataclass(frozen=True, slots=True)
class Site:
    """A service in this process, its table, and the engine that counts."""

    engine: LaggingEngine
    table: Table
    client: Client

    async def count(self, operations: Iterable[Callable[[], Awaitable[Any]]]) -> None:
        """Carry out operations, some at once, and count the units from the first on."""
        self.engine.ledger.writes.clear()
        self.engine.ledger.reads.clear()
        waiting = iter(operations)

        async def work() -> None:
            for operation in waiting:
                await operation()

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))

    def row(self, promise: str, scale: float = 1.0, *, reads: bool = False) -> str:
        key, units = hottest(self.engine.ledger, scale, reads=reads)
        name = f"{key.index_name}: {key.value}" if key.index_name else key.value
        return f"| {promise} | {units:,.0f} | `{name}` |"


def hottest(ledger: Ledger, scale: float = 1.0, *, reads: bool = False) -> tuple[PartitionKey, float]:
    """The partition key with the most units of all seconds together; of what goes by the clock, in its busiest one."""
    units: dict[PartitionKey, float] = defaultdict(float)
    processes = PROCESSES if reads else 1
    for (key, _), number in (ledger.reads if reads else ledger.writes).items():
        if key.value.startswith(BY_THE_CLOCK):
            units[key] = max(units[key], number * processes)
        else:
            units[key] += number * scale
    return max(units.items(), key=lambda entry: entry[1])


@asynccontextmanager
async def new_site(engines: EnginePair, **settings: Any) -> AsyncIterator[Site]:
    """A service with an empty table of its own."""
    proxy = LaggingEngine(engines.leader.url, engines.follower.url, lag=Lag(mean=0.0, stale=0.0))
    async with proxy as engine, create_table(f"ringside-{uuid4().hex[:8]}", engine.url) as table:
        served = Settings(
            dynamodb_url=engine.url, table=table.name, secrets=(SECRET,), log=Log(Level.ERROR), **settings
        )
        async with serving(served) as client:
            yield Site(engine, table, client)


# ── voting ──


async def add_board(site: Site, slug: str, contenders: int, rate: int | None = None) -> None:
    now = utc_now()
    board = Board(slug, slug, now, size=contenders, contender_changes=contenders)
    if rate is not None:
        board = replace(board, rate=rate)
    rows = {Contender(slug, ordinal, f"c{ordinal}", now): Shown("", "") for ordinal in range(contenders)}
    await seed_board(site.table, board, rows, (), now)


async def vote(site: Site, board: str) -> None:
    visitor = site.client.visitor()
    ballot = await visitor.ask(DRAW_MATCHUP, board=board)
    answer = await visitor.ask(CAST_VOTE, token=ballot["token"], verdict="LEFT")
    assert "code" not in answer, answer


async def votes(site: Site, contenders: int, rate: int, *, resharded: bool = False) -> str:
    slug = f"b{contenders}-{rate}"
    await add_board(site, slug, contenders, rate if resharded else None)
    await site.count((lambda: vote(site, slug)) for _ in range(rate))
    after = " after `reshard`" if resharded else ""
    return site.row(f"{rate:,} votes/s on a board of {contenders:,}{after}")


async def draws(site: Site) -> str:
    await add_board(site, "drawn", 100)
    visitors = [site.client.visitor() for _ in range(500)]
    await site.count(partial(visitor.ask, DRAW_MATCHUP, board="drawn") for visitor in visitors * 2)
    return site.row("5,000 draws/s on a board, reads", 5, reads=True)


# ── pick'em ──


async def submissions(site: Site) -> str:
    editor = EventEditor(site.client)
    event = (await editor.event())["id"]
    matches = [await editor.match(event, "A", "B", "C", "D") for _ in range(20)]
    picks = [(match["id"], 1) for match in matches]
    members = [site.client.member(f"m{number}") for number in range(2000)]
    await site.count(partial(submit, member, event, picks) for member in members)
    return site.row("2,000 submissions/s to an event of 20 matches of 4")


async def scoring(site: Site, predictions: int = 2000) -> str:
    editor = EventEditor(site.client, season="scored")
    event, (match,) = await editor.card(10)
    for number in range(predictions):
        await submit(site.client.member(f"m{number}"), event, [(match, number % 2)])
    await editor.lock(event)
    await editor.result(match, 0)
    await site.count([lambda: score(editor, event)])
    key, units = hottest(site.engine.ledger)
    each = units / predictions
    minutes = each * 1e6 / 1000 / 60
    promise = f"scoring a million predictions, {minutes:.0f} min at full use of the key: units per prediction"
    return f"| {promise} | {each:.2f} | `{key.index_name}: {key.value}` |"


async def score(editor: EventEditor, event: str) -> None:
    while (answer := await editor.client.ask(SCORE_EVENT, input={"event": event})).get("code") == "UNAVAILABLE":
        pass  # the request's time was used up: the next one goes on
    assert "code" not in answer, answer


# ── comments ──


async def comments(site: Site, number: int, products: int, promise: str) -> str:
    members = [site.client.member(f"m{index}") for index in range(number)]
    await site.count(
        partial(post, member, product=f"{promise[:1]}{index % products}", body=BODY)
        for index, member in enumerate(members)
    )
    return site.row(promise)


async def hot_page(site: Site) -> str:
    """The busiest page is read as often as the clients can ask for it."""
    author, now = site.client.member("author"), asyncio.get_running_loop().time
    for _ in range(PAGE + 1):
        await post(author, product="hot", body="x" * 2_800)

    async def read(until: float) -> None:
        while now() < until:
            await site.client.ask(COMMENTS_PAGE, product="hot", first=PAGE)

    await site.count([partial(read, now() + HOT_SECONDS)] * AT_ONCE)
    promise = f"any number of requests to {PROCESSES} processes for a page of {PAGE} comments of 3 KB, reads"
    return site.row(promise, PROCESSES / HOT_SECONDS, reads=True)


async def run(engines: EnginePair) -> list[str]:
    rows = []
    unlimited = {"comment_rate": None, "new_visitors_per_address": "0", "votes_per_address": "0"}
    async with new_site(engines, **unlimited) as site:
        for measured in (
            votes(site, 2, 600),
            votes(site, 100, 600),
            votes(site, 2000, 600),
            votes(site, 100, 5000, resharded=True),
            draws(site),
            submissions(site),
            scoring(site),
            comments(site, 2000, 200, "2,000 comments/s over 200 products"),
            comments(site, 300, 1, "300 comments/s on one product"),
            hot_page(site),
        ):
            rows.append(await measured)
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_pair(Path(folder)) as engines:
        rows = asyncio.run(run(engines))
    if options.write:
        RESULTS.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
