"""The control: votes and comments written with one update after the other, in no transaction and without receipts.

The data path retries each write, and the member repeats each action that got no answer. The checker must find the
errors of this design in every run with faults; otherwise the checker proves nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

from datastore.changes.occurrences import Kind
from datastore.comments.counts import change_updates
from datastore.comments.records import COMMENT, Comment
from datastore.dynamo import DynamoError, Table, open_table
from datastore.values.ids import Ids
from datastore.voting.votes import VOTE, PairVerdict, Vote, counter_updates
from resolvers.requests.context import utc_now
from resolvers.values.node_ids import node_id
from tests.client import serving
from tests.engines import EnginePair
from tests.fault.all_parts import FAULT_RATE, MEMBERS, FaultReport, faulty_table, find_differences
from tests.fault.ledger import ExpectedComment, ExpectedVote, Ledger
from tests.fault.recording import CONTENDERS, PRODUCTS
from tests.voting import add_contenders, settle_votes

ACTIONS = 25
WALK = b"\x01\x01\x02\x00\x00\x00"


class NaiveMember:
    """Votes and comments by writing directly to the table."""

    def __init__(self, name: str, table: Table, ledger: Ledger, random: Random) -> None:
        self.name = name
        self.table = table
        self.ledger = ledger
        self.random = random
        self.ids = Ids()
        self.votes = 0

    async def run(self) -> None:
        for number in range(ACTIONS):
            await self.retry(self.vote if number % 2 else self.post)

    async def retry(self, action: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await action()
            except DynamoError:
                await asyncio.sleep(self.random.uniform(0.02, 0.2))
            else:
                self.ledger.actions += 1
                return

    async def vote(self) -> None:
        low, high = sorted(self.random.sample(range(len(CONTENDERS)), 2))
        number = self.votes + 1
        vote = Vote(self.name, "main", number, low, high, PairVerdict.LOW_WINS, utc_now(), WALK)
        await self.table.write(VOTE.put(vote))
        for update in counter_updates(vote):
            await self.table.write(update)
        self.votes = number
        pair = (CONTENDERS[low], CONTENDERS[high])
        self.ledger.votes.append(ExpectedVote(self.name, pair, CONTENDERS[low]))

    async def post(self) -> None:
        product, rating = self.random.choice(PRODUCTS), self.random.randint(1, 5)
        comment = Comment(product, self.ids.next(utc_now()), "en", rating, "Well made.", self.name)
        await self.table.write(COMMENT.put(comment))
        for update in change_updates(None, comment):
            await self.table.write(update)
        expected = ExpectedComment(product, self.name, "en", rating, "Well made.")
        self.ledger.comments[node_id("Comment", comment.node_key)] = expected


async def run_naive_design(engines: EnginePair, seed: int, fault_rate: float = FAULT_RATE) -> FaultReport:
    """A run with faults, but without kills."""
    ledger = Ledger()
    async with faulty_table(engines, seed) as faulty, serving(faulty.settings) as client:
        await add_contenders(client, *CONTENDERS)
        ledger.occurred(Kind.CONTENDER_ADDED, "editor", len(CONTENDERS))
        async with open_table(faulty.settings.table, url=faulty.proxy.url) as table:
            faulty.proxy.fault_rate = fault_rate
            async with asyncio.TaskGroup() as tasks:
                for number in range(MEMBERS):
                    member = NaiveMember(f"m{number}", table, ledger, Random(f"{faulty.random.random()}"))
                    tasks.create_task(member.run())
        await settle_votes(client)
        lost, duplicated = await find_differences(faulty, ledger, [], attempts=1)
    return FaultReport(ledger.actions, ledger.kinds(), lost, duplicated)
