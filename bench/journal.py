"""What the journal and webhooks cost: write units of a comment, a vote and a prediction, and the hottest key.

    python -m bench.journal [--write]

Units are those of the table and its indexes, as tests/lagging counts them (transactional writes twice). The last rows
record a thousand occurrences of one actor with a webhook that wants them, and then mark all of them as delivered: the
units that a key would have in each of those seconds.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.heat import BODY, add_board, new_site, vote
from datastore.changes.occurrences import DELIVERY_SHARDS, Journal, Kind, Source, Webhook
from datastore.journal import webhooks
from datastore.values.ids import Ids
from resolvers.requests.context import utc_now
from tests.comments import post
from tests.engines import EnginePair, running_pair
from tests.season import EventEditor, submit

RESULTS: Final = Path(__file__).parent / "results" / "journal.md"
HEAD: Final = """# The journal and webhooks

    python -m bench.journal --write

Write units of one operation, from the test engine's ledger: all of its items, in the table and in the indexes. With a
webhook, the delivery that waits is included, and deleting it and keeping its record is not. What a process writes
beside the operations varies by half a unit.

| operation | journal off | journal on | off, one webhook | on, one webhook |
|---|---|---|---|---|
"""
OCCURRENCES: Final = 1000
OPERATIONS: Final = 40


async def measured(engines: EnginePair, days: int, *, hooked: bool) -> dict[str, float]:
    """Units by operation, with the journal kept for some days, with and without a webhook."""
    async with new_site(engines, journal_days=days) as site:
        client = site.client
        await add_board(site, "board", 100)
        editor = EventEditor(client)
        event, (match,) = await editor.card(10)
        for number in range(OPERATIONS):  # profiles and boards are written before anything is counted
            await post(client.member(f"m{number}"), product="before")
        if hooked:
            client.services.journal.know([_webhook()], float("inf"))
        units = {}
        operations: dict[str, Callable[[int], Awaitable[Any]]] = {
            "comment of 300 B": lambda n: post(client.member(f"m{n}"), body=BODY),
            "vote": lambda _: vote(site, "board"),
            "prediction": lambda n: submit(client.member(f"m{n}"), event, [(match, 0)]),
        }
        for name, operation in operations.items():
            await site.count(partial(operation, n) for n in range(OPERATIONS))
            written = [(key, number) for (key, _), number in site.engine.ledger.writes.items()]
            units[name] = sum(number for key, number in written if not key.value.startswith(BESIDE))
            if name.startswith("comment"):
                units["its pointer, of these"] = sum(n for key, n in written if key.value.startswith(POINTERS))
        return {name: number / OPERATIONS for name, number in units.items()}


POINTERS: Final = ("USER#", "LATEST#")
"""A pointer lies in its author's collection and in the index of the latest comments; nothing else of a comment does."""
BESIDE: Final = ("RESULTS#", "CONTENDERS#", "BOARD#", "ADDRESS#", "VOTER#new", "LEADERS#", "WEBHOOKS")
"""Written for many operations at once, or by the clock."""


def _webhook() -> Webhook:
    kinds = tuple(kind.value for kind in Kind)
    return Webhook("01M80000000000000000000000", "https://8.8.8.8/", kinds, utc_now(), "whsec_AAAA")


async def heat(engines: EnginePair) -> list[str]:
    """The hottest keys while a thousand occurrences are recorded, and while they are marked as delivered."""
    ids = Ids()
    journal, webhook = Journal(90, lambda: ids.next(utc_now())), _webhook()
    journal.know([webhook], float("inf"))
    async with new_site(engines) as site:

        async def occur(n: int) -> None:
            name, source = f"Comment:42#{n}", Source.API_KEY
            await site.table.transact(*journal.occurrence(Kind.COMMENT_POSTED, "ApiKey:one", name, source=source))

        await site.count(partial(occur, n) for n in range(OCCURRENCES))
        rows = [site.row(f"{OCCURRENCES:,} occurrences/s of one actor, wanted by a webhook")]
        waiting = [
            one
            for shard in range(DELIVERY_SHARDS)
            for one in await webhooks.read_waiting(site.table, webhook.id, shard, OCCURRENCES)
        ]
        await site.count(partial(webhooks.mark_delivered, site.table, one, 200, utc_now()) for one in waiting)
        return [*rows, site.row(f"{len(waiting):,} deliveries/s marked as delivered")]


async def run(engines: EnginePair) -> list[str]:
    columns = [
        await measured(engines, 0, hooked=False),
        await measured(engines, 90, hooked=False),
        await measured(engines, 0, hooked=True),
        await measured(engines, 90, hooked=True),
    ]
    rows = [f"| {name} | {' | '.join(f'{column[name]:.1f}' for column in columns)} |" for name in columns[0]]
    return [*rows, "", "| one second of | hottest key: units | key |", "|---|---|---|", *await heat(engines)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_pair(Path(folder)) as engines:
        rows = asyncio.run(run(engines))
    print("\n".join(rows))
    if options.write:
        RESULTS.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
