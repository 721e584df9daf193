"""Erases a member with many contributions while others write and read: seconds, memory, and the others' latency.

    python -m bench.erasing [--size 10000] [--write]

Half of the contributions are votes, three tenths comments, the rest quiz results and sentences. Others post a comment
and read a page in turns, in the process that erases: for ten seconds before it, and while it erases.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import psutil

from datastore.comments import changes
from datastore.comments.changes import CommentChange
from datastore.comments.records import Comment
from datastore.dynamo import gather_or_cancel
from datastore.vocabulary import learning
from datastore.vocabulary.learning import QuizResult, Sentence
from datastore.voting import boards, votes
from datastore.voting.pair_walk import PairWalk
from datastore.voting.votes import Ballot, Verdict
from resolvers.requests.context import Role, Services
from resolvers.values.node_ids import node_id
from server.engine import run_engine
from server.settings import Level, Log, Settings
from tests.client import Client, serving
from tests.comments import post
from tests.conftest import create_table
from tests.jobs import SECRET
from tests.queries import UPDATE_PROFILE
from tests.voting import add_contenders

RESULTS: Final = Path(__file__).parent / "results" / "erasing.md"
HEAD: Final = """# Erasing a member

    python -m bench.erasing --write

A member with {size:,} contributions (half votes, three tenths comments, then quiz results and sentences) is erased on
the embedded engine, while others post a comment and read a page in turns, in the process that erases. Memory is that of
the process, before and at most.

| contributions | seconds | memory before, most (MB) | others' p99 before, meanwhile (ms) | ratio |
|---|---|---|---|---|
"""
ERASE: Final = """mutation ($input: EraseMemberInput!) { eraseMember(input: $input) {
  ... on MemberErasure { job { id } } ... on Refused { message } } }"""
JOB: Final = "query ($id: ID!) { job(id: $id) { state message } }"
MEMBER: Final = "zoltan-q"
BEFORE_SECONDS: Final = 10.0
AT_ONCE: Final = 8


async def contribute(client: Client, size: int) -> None:
    """The member's contributions, by the functions that the service writes them with."""
    await client.member(MEMBER).ask(UPDATE_PROFILE, input={"name": "Zoltan"})
    services, day = client.services, client.services.clock().date()
    writes: list[Coroutine[Any, Any, object]] = []
    read = await boards.read_board_with_marks(services.table, "main")
    assert read is not None
    for number in range(1, size // 2 + 1):
        ballot = Ballot(MEMBER, "main", number, 0, 1 + number % 9, services.clock(), PairWalk().packed())
        vote = votes.vote_on(ballot, read.board, list(Verdict)[number % 3], services.clock())
        writes.append(votes.cast(services.table, vote, services.unit()))
    for number in range(size * 3 // 10):
        comment = Comment(f"p{number % 50}", _id(services), "en", 1 + number % 5, "Well made. " * 25, MEMBER)
        change = CommentChange(None, comment)
        writes.append(changes.change_comment(services.table, services.unit(), None, change))
    for number in range(size // 5):
        on, id_ = day - timedelta(days=number % 300), _id(services)
        quiz = QuizResult(MEMBER, on, id_, "list", 1, 2, services.clock())
        result = quiz if number % 2 else Sentence(MEMBER, on, id_, "A sentence.", services.clock())
        writes.append(_record(services, result))
    await gather_or_cancel(writes, AT_ONCE)


def _id(services: Services) -> str:
    return services.ids.next(services.clock())


async def _record(services: Services, result: QuizResult | Sentence) -> None:
    days = await learning.read_active_days(services.table, MEMBER)
    await learning.record_result(services.table, result, days, lambda _: None, services.unit())


@dataclass
class Others:
    """Requests of others, one after the other, and the process's memory beside them."""

    client: Client
    milliseconds: list[float] = field(default_factory=list)
    most: float = 0.0

    async def go_on(self) -> None:
        number = 0
        while True:
            member = self.client.member(f"other-{number % 20}")
            await self._timed(post(member, f"q{number % 10}"))
            await self._timed(self.client.ask('{ comments(product: "q1", first: 20) { nodes { body } } }'))
            self.most = max(self.most, memory())
            number += 1
            await asyncio.sleep(0.02)

    async def _timed(self, request: Awaitable[object]) -> None:
        began = time.perf_counter()
        await request
        self.milliseconds.append((time.perf_counter() - began) * 1000)

    @property
    def p99(self) -> float:
        return sorted(self.milliseconds)[int(len(self.milliseconds) * 0.99)]


def memory() -> float:
    return float(psutil.Process().memory_info().rss) / 1e6


async def measured(url: str, contributions: str, size: int) -> str:
    name = f"ringside-{contributions.lower()}"
    settings = Settings(dynamodb_url=url, table=name, secrets=(SECRET,), log=Log(Level.ERROR))
    async with create_table(name, url), serving(settings) as client:
        await add_contenders(client, *"abcdefghij")
        await contribute(client, size)
        before = Others(client)
        await _while_going_on(before, asyncio.sleep(BEFORE_SECONDS))
        at_first, meanwhile, began = memory(), Others(client), time.monotonic()
        await _while_going_on(meanwhile, _erase(client, contributions))
        seconds = time.monotonic() - began
    ratio = meanwhile.p99 / before.p99
    return (
        f"| {contributions} | {seconds:.0f} | {at_first:.0f}, {meanwhile.most:.0f} | "
        f"{before.p99:.0f}, {meanwhile.p99:.0f} | {ratio:.2f} |"
    )


async def _while_going_on(others: Others, work: Awaitable[object]) -> None:
    going_on = asyncio.ensure_future(others.go_on())
    await work
    going_on.cancel()
    await asyncio.wait({going_on})


async def _erase(client: Client, contributions: str) -> None:
    admin = client.member("root", Role.ADMIN)
    answer = await admin.ask(ERASE, input={"user": node_id("User", MEMBER), "contributions": contributions})
    async with asyncio.timeout(1200):
        while True:
            job = await admin.ask(JOB, id=answer["job"]["id"])
            if job["state"] != "RUNNING":
                break
            await asyncio.sleep(0.5)
    assert job["state"] == "DONE", job
    print(job["message"], flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--write", action="store_true", help="Write bench/results/erasing.md.")
    arguments = parser.parse_args()
    rows = []
    for contributions in ("REMOVE", "ANONYMISE"):
        with tempfile.TemporaryDirectory() as folder, run_engine(Path(folder)) as engine:
            rows.append(await measured(engine.url, contributions, arguments.size))
        print(rows[-1], flush=True)
    if arguments.write:
        RESULTS.write_text(HEAD.format(size=arguments.size) + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
