"""The control: votes and comments as they are often written, one update after the other, without receipts.

Each write is repeated by the data path as ours are, and each act by its member, who got no answer. What comes of it on
a bad day must be seen by the checker, every time, or the checker proves nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

from datastore.comments import COMMENT, Comment
from datastore.comments.counts import counted
from datastore.dynamo import DynamoError, Table, open_table
from datastore.ids import Ids
from datastore.voting import VOTE, PairVerdict, Vote
from datastore.voting.votes import counter_updates
from resolvers.context import utc_now
from resolvers.node_ids import node_id
from tests.client import serving
from tests.engines import Running
from tests.fault.all_parts import MEMBERS, SHARE, Aftermath, bad_day, differences
from tests.fault.ledger import Ledger, Opinion, Verdict
from tests.fault.members import CONTENDERS, PRODUCTS
from tests.voting import add_contenders, settle_votes

ACTS = 25
WALK = b"\x01\x01\x02\x00"


class NaiveMember:
    """Votes and comments, straight into the table."""

    def __init__(self, name: str, table: Table, ledger: Ledger, chance: Random) -> None:
        self.name = name
        self.table = table
        self.ledger = ledger
        self.chance = chance
        self.ids = Ids()
        self.votes = 0

    async def live(self) -> None:
        for number in range(ACTS):
            await self.patiently(self.vote if number % 2 else self.post)

    async def patiently(self, act: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await act()
            except DynamoError:
                await asyncio.sleep(self.chance.uniform(0.02, 0.2))
            else:
                self.ledger.acts += 1
                return

    async def vote(self) -> None:
        low, high = sorted(self.chance.sample(range(len(CONTENDERS)), 2))
        number = self.votes + 1
        vote = Vote(self.name, "main", number, low, high, PairVerdict.LOW_WINS, utc_now(), WALK)
        await self.table.write(VOTE.put(vote))
        for update in counter_updates(vote):
            await self.table.write(update)
        self.votes = number
        self.ledger.verdicts.append(Verdict(self.name, (CONTENDERS[low], CONTENDERS[high]), CONTENDERS[low]))

    async def post(self) -> None:
        product, rating = self.chance.choice(PRODUCTS), self.chance.randint(1, 5)
        comment = Comment(product, self.ids.next(utc_now()), "en", rating, "Well made.", self.name)
        await self.table.write(COMMENT.put(comment))
        for update in counted(None, comment):
            await self.table.write(update)
        words = Opinion(product, node_id("User", self.name), "en", rating, "Well made.")
        self.ledger.comments[node_id("Comment", comment.node_key)] = words


async def naively(engine: Running, seed: int, share: float = SHARE) -> Aftermath:
    """A bad day of the naive design, without a single kill, and what the checker says of it."""
    ledger = Ledger()
    async with bad_day(engine, seed) as day, serving(day.settings) as client:
        await add_contenders(client, *CONTENDERS)
        async with open_table(day.settings.table, url=day.proxy.url) as table:
            day.proxy.share = share
            async with asyncio.TaskGroup() as busy:
                for number in range(MEMBERS):
                    chance = Random(f"{day.chance.random()}")
                    busy.create_task(NaiveMember(f"m{number}", table, ledger, chance).live())
        await settle_votes(client)
        lost, doubled = await differences(day, ledger, [], looks=1)
    return Aftermath(ledger.acts, ledger.kinds(), lost, doubled)
