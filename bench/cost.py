"""The capacity units of each operation, which are what DynamoDB bills.

    python -m bench.cost [--write]

Each row carries out 300 operations on the test engine (tests/lagging) within some seconds and divides the ledger's
units by their number. So it includes what follows from them: settled results, statistics, the entries of indexes. What
caches save is saved here too, for a page that many visitors ask for. A process that has nothing to do is observed for
a minute, and for another one with a webhook and an API key. `--write` also writes deploy/cost/units.json, which
deploy/cost/calculator.py reads.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.heat import SECRET, Site, add_board, new_site
from datastore.people.profiles import PROFILE, Profile
from datastore.vocabulary.lists import LIST, WordList
from datastore.vocabulary.subscriptions import SUBSCRIPTION, CharacterSet, Subscription
from datastore.vocabulary.words import WORD, Word
from resolvers.live.watch import LOOK_SECONDS
from resolvers.requests.context import Role, utc_now
from tests.client import Client
from tests.command import environment
from tests.comments import post
from tests.engines import EnginePair, running_pair
from tests.mail_server import Mailbox, mail_server
from tests.queries import CAST_VOTE, DRAW_MATCHUP
from tests.season import EventEditor, submit

ROOT: Final = Path(__file__).parents[1]
RESULTS: Final = Path(__file__).parent / "results" / "cost.md"
UNITS: Final = ROOT / "deploy" / "cost" / "units.json"
OPERATIONS: Final = 300
SETTLED_SECONDS: Final = 3
"""By then everything has been settled that operations leave to a clock."""
BODY: Final = "x" * 230
WRITE_PRICE, READ_PRICE = 0.625, 0.125
"""Dollars for a million units on demand in us-east-1, as of November 2024."""
HEAD: Final = f"""# Units and dollars

    python -m bench.cost --write

Units of an operation in the mean, from the test engine's ledger, and dollars for a million of them with on-demand
capacity in us-east-1 (November 2024: ${WRITE_PRICE} for a million write units, ${READ_PRICE} for a million read units).
A comment has 300 bytes, the event has 10 matches, the board has 100 contenders.

"""
IDLE_HEAD: Final = """
Units a second of a process that has nothing else to do, and dollars for a month of it.

"""
IDLE_SECONDS: Final = 60
MONTH_SECONDS: Final = 365 * 24 * 3600 / 12
COUNTING: Final = "counting which operations are asked for, a minute each"
PURPOSES: Final = {
    "JOBS": "jobs to take over",
    "WEBHOOKS": "webhooks",
    "DELIVERIES": "webhooks",
    "REVISIONS": "what others have changed",
    "APIKEY": "API keys",
    "APIKEYS": "API keys",
    "OPERATIONS": COUNTING,
}
"""What a process reads or writes a partition key for, by the key's beginning."""
PAGE: Final = """query ($product: ID!) { comments(product: $product, first: 20) {
  totalCount nodes { rating title body createdAt author { name } } } }"""
ADD_WEBHOOK: Final = """mutation {
  addWebhook(input: { url: "https://8.8.8.8/", kinds: ["comment.posted"] }) { ... on WebhookAdded { webhook { id } } }
}"""
CREATE_API_KEY: Final = """mutation {
  createApiKey(input: { name: "Robot", roles: ["editor"] }) { ... on ApiKeyCreated { apiKey { id } secret } }
}"""
LEADERBOARD: Final = '{ leaderboard(board: "b", first: 20) { nodes { rank score contender { name } } } }'
SCREEN: Final = """query ($event: ID!) { event(id: $event) {
  name state matches { name pickCounts } viewerPrediction { submittedAt } } }"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Units of one operation in the mean."""

    reads: float
    writes: float


def costs_table(units: Mapping[str, Mapping[str, float]]) -> str:
    rows = (
        f"| {name} | {of['reads']:.1f} | {of['writes']:.1f} | "
        f"{of['reads'] * READ_PRICE + of['writes'] * WRITE_PRICE:.2f} |"
        for name, of in units.items()
    )
    return "\n".join(["| operation | read units | write units | dollars a million |", "|---|---|---|---|", *rows])


def idle_table(units: Mapping[str, Mapping[str, float]]) -> str:
    rows = (
        f"| {name} | {of['reads']:.2f} | {of['writes']:.2f} | "
        f"{(of['reads'] * READ_PRICE + of['writes'] * WRITE_PRICE) * MONTH_SECONDS / 1e6:.2f} |"
        for name, of in units.items()
    )
    head = ["| | read units a second | write units a second | dollars a month |", "|---|---|---|---|"]
    return "\n".join([*head, *rows])


class Meter:
    """Carries out operations and says what one of them costs, with all that follows from it."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.members = [site.client.member(f"m{number}") for number in range(OPERATIONS)]
        self.visitors = [site.client.visitor() for _ in range(OPERATIONS)]

    async def each(self, operation: Callable[[Client, int], Awaitable[Any]], clients: Sequence[Client]) -> Cost:
        await self.site.count(partial(operation, client, number) for number, client in enumerate(clients))
        await asyncio.sleep(SETTLED_SECONDS)
        return self.cost()

    def cost(self) -> Cost:
        ledger = self.site.engine.ledger
        return Cost(sum(ledger.reads.values()) / OPERATIONS, sum(ledger.writes.values()) / OPERATIONS)


async def voting(meter: Meter) -> dict[str, Cost]:
    await add_board(meter.site, "b", 100)

    async def draw(client: Client, _: int = 0) -> Any:
        return await client.ask(DRAW_MATCHUP, board="b")

    drawn = await meter.each(draw, meter.visitors)
    tokens = [(await draw(visitor))["token"] for visitor in meter.visitors]
    return {
        "draw": drawn,
        "vote": await meter.each(lambda c, n: c.ask(CAST_VOTE, token=tokens[n], verdict="LEFT"), meter.visitors),
        "leaderboard": await meter.each(lambda c, _: c.ask(LEADERBOARD), meter.visitors),
    }


async def comments(meter: Meter) -> dict[str, Cost]:
    return {
        "comment": await meter.each(lambda c, n: post(c, product=f"p{n % 10}", body=BODY), meter.members),
        "page of comments": await meter.each(lambda c, n: c.ask(PAGE, product=f"p{n % 10}"), meter.visitors),
    }


async def pickem(meter: Meter) -> dict[str, Cost]:
    editor = EventEditor(meter.site.client)
    event = (await editor.event())["id"]
    picks = [((await editor.match(event, "A", "B"))["id"], 1) for _ in range(10)]
    return {
        "prediction": await meter.each(lambda c, _: submit(c, event, picks), meter.members),
        "screen of an event": await meter.each(lambda c, _: c.ask(SCREEN, event=event), meter.members),
    }


async def emails(meter: Meter, folder: Path) -> dict[str, Cost]:
    """The daily words of members with one subscription each."""
    table, now, mailbox = meter.site.table, utc_now(), Mailbox()
    words = WordList("0" * 26, "List", public=True, created_at=now, next_ordinal=1)
    await table.write_many([LIST.put(words), WORD.put(Word(words.list, 0, "word", "meaning"))])
    for number in range(OPERATIONS):
        user = f"reader-{number}"
        subscription = Subscription(user, words.list, CharacterSet.SIMPLIFIED, active=True, since=now)
        profile = Profile(user, f"Reader {number}", now, email=f"{user}@example.org")
        await table.write_many([PROFILE.put(profile), SUBSCRIPTION.put(subscription)])
    await meter.site.count([])
    async with mail_server(mailbox, folder) as address:
        variables = {
            "RINGSIDE_DYNAMODB_URL": meter.site.engine.url,
            "RINGSIDE_TABLE": table.name,
            "RINGSIDE_SECRETS": SECRET,
            "RINGSIDE_SMTP_URL": address,
        }
        daily = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "server", "emails", env=environment(**variables), cwd=ROOT
        )
        assert await daily.wait() == 0
    assert len(mailbox.emails) == OPERATIONS
    return {"email with daily words": meter.cost()}


async def observed(site: Site, client: Client) -> dict[str, Cost]:
    """Units a second, by what they are for. The client asks something every second that reads nothing itself."""
    await asyncio.sleep(3 * LOOK_SECONDS)  # until what was new has been read
    await site.count([])
    for _ in range(IDLE_SECONDS):
        await client.ask("{ __typename }")
        await asyncio.sleep(1)
    reads: dict[str, float] = defaultdict(float)
    writes: dict[str, float] = defaultdict(float)
    for counted, units in ((reads, site.engine.ledger.reads), (writes, site.engine.ledger.writes)):
        for (key, _), number in units.items():
            counted[PURPOSES.get(key.value.partition("#")[0], "other things")] += number / IDLE_SECONDS
    return {name: Cost(reads[name], writes[name]) for name in sorted({*reads, *writes})}


async def idle(site: Site) -> dict[str, Cost]:
    bare = await observed(site, site.client.visitor())
    admin = site.client.member("root", Role.ADMIN)
    await admin.ask(ADD_WEBHOOK)
    key = (await admin.ask(CREATE_API_KEY))["secret"]
    busy = await observed(site, Client(site.client.served, site.client.settings, key))
    hooks = busy["webhooks"]
    return {
        **{name if name == COUNTING else f"looking for {name}": cost for name, cost in bare.items()},
        "each webhook, with nothing to deliver": hooks,
        "each API key in use": busy["API keys"],
    }


async def run(engines: EnginePair, folder: Path) -> dict[str, dict[str, Cost]]:
    async with new_site(engines) as site:
        unused = await idle(site)
    async with new_site(engines) as site:
        meter = Meter(site)
        parts = [await part(meter) for part in (voting, comments, pickem)]
        parts.append(await emails(meter, folder))
    return {"operations": {name: cost for part in parts for name, cost in part.items()}, "idle": unused}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_pair(Path(folder)) as engines:
        costs = asyncio.run(run(engines, Path(folder)))
    units = {
        kind: {name: {"reads": round(c.reads, 2), "writes": round(c.writes, 2)} for name, c in of.items()}
        for kind, of in costs.items()
    }
    text = f"{HEAD}{costs_table(units['operations'])}\n{IDLE_HEAD}{idle_table(units['idle'])}\n"
    print(text)
    if options.write:
        RESULTS.write_text(text, encoding="utf-8")
        UNITS.write_text(json.dumps(units, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
