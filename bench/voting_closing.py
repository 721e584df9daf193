"""A board that closes while votes come at the highest rate: is any counted that came late?

    python -m bench.voting_closing [--votes 10000]

As `bench/voting_votes.py`: 16 clients, a new voter for each vote, a proxy that locks a transaction's items for 8 ms.
The rate is measured first. Then everybody draws a ballot, and `updateBoard` sets the closing in the middle of the time
that their votes take at that rate. Late is a vote that counts although its request was sent after the closing, by the
same clock, or whose stored time is not before it.
"""

import argparse
import asyncio
import time
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import aiohttp

from bench.voting_votes import CAST, CONFLICT_SECONDS, DRAW, SECRET, create_board, run_concurrently
from datastore.dynamo import Table
from datastore.voting.votes import VOTE
from tests.conftest import create_table
from tests.engines import running_engine
from tests.fault.proxy import Proxy
from tests.service import Service, start_service

CONTENDERS = 100
FIRST = 1_500
LEAST_AHEAD = 11
"""Seconds; a closing may not be nearer."""
CLOSE = """mutation ($at: DateTime!) { updateBoard(input: {slug: "main", closesAt: $at}) {
  __typename ... on Refused { message } } }"""


class _Ballot(NamedTuple):
    cookie: str
    token: str


class Voters:
    """Visitors of one service, each with a cookie and a ballot of its own."""

    def __init__(self, service: Service, session: aiohttp.ClientSession) -> None:
        self._url = f"{service.url}/graphql"
        self._session = session
        self.ballots: list[_Ballot] = []
        self.answered: Counter[str] = Counter()
        self.sent_when_counted: list[datetime] = []

    async def ask(self, query: str, headers: dict[str, str], **variables: Any) -> tuple[dict[str, Any], str]:
        body = {"query": query, "variables": variables}
        async with self._session.post(self._url, json=body, headers=headers) as response:
            cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in response.cookies.items())
            return (await response.json())["data"], cookies

    async def draw(self, _: int) -> None:
        answer, cookie = await self.ask(DRAW, {})
        self.ballots.append(_Ballot(cookie, answer["drawMatchup"]["token"]))

    async def cast(self, number: int) -> None:
        ballot, sent = self.ballots[number], datetime.now(UTC)
        answer, _ = await self.ask(CAST, {"Cookie": ballot.cookie}, token=ballot.token)
        code = answer["castVote"].get("code", "counted")
        self.answered[code] += 1
        if code == "counted":
            self.sent_when_counted.append(sent)


async def measure(table: Table, service: Service, votes: int) -> None:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        warm = Voters(service, session)
        await run_concurrently(FIRST, warm.draw)
        rate = FIRST / await run_concurrently(FIRST, warm.cast)
        voters = Voters(service, session)
        await run_concurrently(votes, voters.draw)
        closes = datetime.now(UTC) + timedelta(seconds=max(LEAST_AHEAD, votes / rate / 2))
        editor = {"Authorization": f"Bearer {await asyncio.to_thread(service.token, 'editor', '--role', 'editor')}"}
        answer, _ = await voters.ask(CLOSE, editor, at=closes.isoformat())
        began = time.perf_counter()
        await run_concurrently(votes, voters.cast)
        seconds = time.perf_counter() - began
    if answer["updateBoard"]["__typename"] == "Refused":
        raise RuntimeError(answer["updateBoard"]["message"])
    stored = [vote.at async for vote in table.scan(VOTE) if vote.counts]
    late = sum(at >= closes for at in stored) + sum(sent >= closes for sent in voters.sent_when_counted)
    print(f"{rate:.0f} votes/s before, then {votes} in {seconds:.1f} s\n")
    print("| votes/s | answers | stored | latest before the closing, ms | late |\n|---|---|---|---|---|")
    last = (closes - max(stored)).total_seconds() * 1000
    print(f"| {rate:.0f} | {dict(voters.answered)} | {len(stored) - FIRST} | {last:.1f} | {late} |")


async def main(votes: int) -> None:
    with TemporaryDirectory() as folder, running_engine("dynoxide", Path(folder)) as engine, ExitStack() as stack:
        proxied = Proxy(engine.url, conflict_seconds=CONFLICT_SECONDS)
        async with create_table("bench", engine.url) as table, proxied as proxy:
            await create_board(table, CONTENDERS)
            variables = {"RINGSIDE_DYNAMODB_URL": proxy.url, "RINGSIDE_TABLE": "bench", "RINGSIDE_SECRETS": SECRET}
            variables |= {"RINGSIDE_VOTES_PER_ADDRESS": "0", "RINGSIDE_NEW_VISITORS_PER_ADDRESS": "0"}
            service = await start_service(variables, stack)
            await asyncio.sleep(1)
            await measure(table, service, votes)
            await asyncio.to_thread(stack.close)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--votes", type=int, default=10_000)
    asyncio.run(main(parser.parse_args().votes))
