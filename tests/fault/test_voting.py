"""Votes on bad days: whatever is lost on the way, retried or killed, each acknowledged vote counts, once."""

import asyncio
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from random import Random

import pytest

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Table, open_table
from datastore.dynamo.entity import shard_of
from datastore.values.seal import Seal
from datastore.voting import boards
from datastore.voting.boards import shard_count
from datastore.voting.contenders import CONTENDER
from datastore.voting.votes import TALLY, VOTE, PairVerdict, Vote, cast, counter_updates
from resolvers.requests.context import Services, utc_now
from server.audit import find_suspects
from server.auth.tokens import mint
from server.settings import Settings
from tests.client import serving
from tests.command import on_table
from tests.conftest import SECRET, settings_for
from tests.engines import EnginePair, RunningEngine
from tests.fault.faults import Fault
from tests.fault.proxy import Proxy
from tests.fault.retrying_client import RetryingClient
from tests.lagging.tables import lagging_table
from tests.members import introduce
from tests.queries import CAST_VOTE, DRAW_MATCHUP, RESTORE_CONTENDER, RETIRE_CONTENDER
from tests.service import start_service
from tests.voting import add_contenders, editor
from tests.waiting import until

VERDICTS = ("LEFT", "RIGHT", "TIE", "SKIP")


@dataclass(frozen=True)
class Acknowledged:
    """What a voter was told is counted."""

    voter: str
    pair: frozenset[str]
    winner: str | None


class Voter(RetryingClient):
    """A member who votes and remembers what was acknowledged."""

    def __init__(self, name: str, token: str, urls: list[str], random: Random) -> None:
        super().__init__(name, token, urls, random)
        self.acknowledged: list[Acknowledged] = []

    async def votes(self, times: int) -> None:
        async with self:
            for _ in range(times):
                ballot = await self.ask(DRAW_MATCHUP)
                verdict = self.random.choice(VERDICTS)
                answer = await self.ask(CAST_VOTE, token=ballot["token"], verdict=verdict)
                assert "code" not in answer, answer
                if verdict != "SKIP":
                    pair = frozenset((ballot["left"]["name"], ballot["right"]["name"]))
                    winner = answer["winner"] and answer["winner"]["name"]
                    self.acknowledged.append(Acknowledged(self.name, pair, winner))


async def counted(table: Table) -> Counter[Acknowledged]:
    """The votes in the table, by the names of their contenders."""
    names = {row.ordinal: row.name async for row in table.scan(CONTENDER)}
    found: Counter[Acknowledged] = Counter()
    async for vote in table.scan(VOTE):
        if vote.counts:
            winner = {PairVerdict.LOW_WINS: names[vote.low], PairVerdict.HIGH_WINS: names[vote.high]}.get(vote.verdict)
            found[Acknowledged(vote.voter, frozenset((names[vote.low], names[vote.high])), winner)] += 1
    return found


async def breaches_of(table: Table, looks: int = 60) -> list[str]:
    """What is still broken once a reader could have settled: two seconds after somebody else did."""
    for _ in range(looks):
        services = Services(table, Seal([SECRET]))
        found = await find_suspects(services, "voting")
        await services.close()
        if not found:
            break
        await asyncio.sleep(0.5)
    return found


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2])
async def test_faults_lose_and_duplicate_no_vote(engine_pair: EnginePair, table_name: str, seed: int) -> None:
    """A fifth of all requests throttled, failed or reset, before and after they were applied; transactions conflict."""
    async with (
        lagging_table(engine_pair, table_name, seed=seed, max_delay=0.02) as (proxy, shaky, table),
        serving(settings_for(RunningEngine("proxy", proxy.url), table_name)) as client,
    ):
        await add_contenders(client, "a", "b", "c", "d", "e")
        proxy.fault_rate = 0.2
        chance, told = Random(seed), list[Acknowledged]()

        async def voter(number: int) -> None:
            member = client.member(f"v{number}")
            for _ in range(5):
                ballot = await member.ask(DRAW_MATCHUP)
                verdict = chance.choice(VERDICTS[:3])
                answers = await asyncio.gather(
                    *(member.ask(CAST_VOTE, token=ballot["token"], verdict=verdict) for _ in range(2))
                )
                assert answers[0]["winner"] == answers[1]["winner"]
                pair = frozenset((ballot["left"]["name"], ballot["right"]["name"]))
                winner = answers[0]["winner"] and answers[0]["winner"]["name"]
                told.append(Acknowledged(f"v{number}", pair, winner))

        await asyncio.gather(*(voter(number) for number in range(8)))
        assert sum(proxy.faults.values()) > 20
        proxy.fault_rate = 0
        assert await counted(table) == Counter(told)
        assert await breaches_of(shaky) == []


async def test_faults_leave_no_restoration_half_done(engine_pair: EnginePair, table_name: str) -> None:
    """Contenders come and go while members vote and requests are lost: no pair twice in a cycle, every count exact."""
    async with (
        lagging_table(engine_pair, table_name, seed=3, max_delay=0.02) as (proxy, shaky, table),
        serving(settings_for(RunningEngine("proxy", proxy.url), table_name)) as client,
    ):
        ids = await add_contenders(client, "a", "b", "c", "d", "e")
        proxy.fault_rate = 0.2
        told, done = list[Acknowledged](), asyncio.Event()

        async def voter(number: int) -> None:
            member = client.member(f"v{number}")
            for _ in range(8):
                ballot = await member.ask(DRAW_MATCHUP)
                answer = await member.ask(CAST_VOTE, token=ballot["token"], verdict="LEFT")
                pair = frozenset((ballot["left"]["name"], ballot["right"]["name"]))
                told.append(Acknowledged(f"v{number}", pair, answer["winner"]["name"]))

        async def come_and_go(contender: str) -> None:
            while not done.is_set():
                for query in (RETIRE_CONTENDER, RESTORE_CONTENDER):
                    answer = await editor(client).ask(query, input={"contender": contender})
                    assert "contender" in answer, answer

        coming_and_going = asyncio.gather(*map(come_and_go, ids[:2]))
        await asyncio.gather(*(voter(number) for number in range(5)))
        done.set()
        await coming_and_going
        assert sum(proxy.faults.values()) > 20
        proxy.fault_rate = 0
        assert await counted(table) == Counter(told)
        assert await breaches_of(shaky) == []
        assert {row.name async for row in table.scan(CONTENDER) if row.retired} == set()


@pytest.mark.soak
async def test_killed_processes_lose_no_vote(engine_pair: EnginePair, table_name: str, tmp_path: Path) -> None:
    """Two processes on one table, killed with SIGKILL in turn while eight members vote through both."""
    async with lagging_table(engine_pair, table_name) as (engine, shaky, table):
        variables = on_table(engine.url, table_name, RINGSIDE_DATA=str(tmp_path))
        async with serving(settings_for(RunningEngine("lagging", engine.url), table_name)) as client:
            await add_contenders(client, "a", "b", "c", "d", "e", "f")
        await introduce(table, *(f"v{number}" for number in range(8)))
        settings = Settings(dynamodb_url=engine.url, secrets=(variables["RINGSIDE_SECRETS"],))
        with ExitStack() as stack:
            services = [await start_service(variables, stack) for _ in range(2)]
            urls = [service.url for service in services]
            voters = [Voter(f"v{number}", mint(settings, f"v{number}"), urls, Random(number)) for number in range(8)]
            busy = asyncio.gather(*(voter.votes(8) for voter in voters))
            for place in (0, 1):
                await asyncio.sleep(1)
                await asyncio.to_thread(services[place].stop, signal.SIGKILL)
                services[place] = await start_service(variables, stack)
                urls[place] = services[place].url
            await busy
            for service in services:
                await asyncio.to_thread(service.stop, signal.SIGKILL)
        told = Counter(one for voter in voters for one in voter.acknowledged)
        assert await counted(table) == told
        assert await breaches_of(shaky) == []


async def test_a_vote_without_an_answer_leaves_the_dirty_mark(engine_pair: EnginePair, table_name: str) -> None:
    """The engine counts it and its answers are lost; the voter hears UNAVAILABLE, and readers know what to settle."""
    async with lagging_table(engine_pair, table_name) as (proxy, shaky, table):
        settings = settings_for(RunningEngine("proxy", proxy.url), table_name)
        hurried = settings.model_copy(update={"request_timeout": 4.0})
        async with serving(settings) as patient, serving(hurried) as client:
            await add_contenders(patient, "a", "b")
            ballot = await patient.ask(DRAW_MATCHUP)
            client.http.cookies.update(patient.http.cookies)
            for _ in range(1000):
                proxy.inject(Fault.FAILED_AFTER, "TransactWriteItems")
            # On a busy machine the first may end before it writes.
            while not [vote async for vote in table.scan(VOTE, consistent=True)]:
                assert await client.code(CAST_VOTE, token=ballot["token"], verdict="LEFT") == "UNAVAILABLE"
            now = await boards.read_board_with_marks(table, "main")
            assert now is not None
            assert len(now.marks) == 1
            proxy.clear_injected()
            async with asyncio.timeout(120):
                while (await patient.answer("{ board { votes } }"))["data"] != {"board": {"votes": 1}}:
                    await asyncio.sleep(0.2)
            assert (await patient.ask(CAST_VOTE, token=ballot["token"], verdict="LEFT"))["winner"] == ballot["left"]
        assert sum((await counted(table)).values()) == 1
        assert await breaches_of(shaky) == []


async def test_conflicts_are_rare_with_the_computed_number_of_shards(
    one_table: Table, default_engine: RunningEngine
) -> None:
    """Two contenders, sixteen votes at a time, each holding its items for 8 ms: all are counted."""
    async with (
        Proxy(default_engine.url, conflict_seconds=0.008) as proxy,
        open_table(one_table.name, url=proxy.url) as shaky,
    ):
        shards, numbers = shard_count(2, boards.DEFAULT_RATE), count()

        async def client(left: Iterator[int]) -> None:
            for number in left:
                shard = shard_of(f"v{number}", shards)
                vote = Vote(f"v{number}", "main", 1, 0, 1, PairVerdict.LOW_WINS, utc_now(), b"", shard)
                assert await cast(shaky, vote, UnitOfWork.unkeyed(vote.at)) == vote

        async def are_rare() -> bool:
            proxy.requests.clear()
            left = islice(numbers, 300)
            await asyncio.gather(*(client(left) for _ in range(16)))
            return proxy.requests["TransactWriteItems"] <= 1.5 * 300  # some 330; with one shard 560 to 600

        await until(are_rare, "no transaction holds its items for much longer")
        wins = [tally.wins async for tally in one_table.scan(TALLY) if tally.ordinal == 0]
        assert sum(wins) == next(numbers)


async def test_the_audit_finds_the_errors_of_a_naive_design(engine_pair: EnginePair, table_name: str) -> None:
    """The control: a vote and its counters written one by one, with the same faults; the audit sees the difference."""
    kinds = [Fault.FAILED_AFTER, Fault.RESET_AFTER]
    async with lagging_table(engine_pair, table_name, seed=3, kinds=kinds) as (proxy, shaky, table):
        async with serving(settings_for(RunningEngine("proxy", proxy.url), table_name)) as client:
            await add_contenders(client, "a", "b")
        proxy.fault_rate = 0.2
        for number in range(20):
            vote = Vote(f"v{number}", "main", 1, 0, 1, PairVerdict.LOW_WINS, utc_now(), b"\x01\x01\x02\x00\x00\x00")
            await shaky.write(VOTE.put(vote))
            for update in counter_updates(vote):
                await shaky.write(update)
        proxy.fault_rate = 0
        assert [breach for breach in await breaches_of(table, looks=1) if "tallied" in breach]
