"""The whole service under faults: an unreliable connection to a lagging engine, kill -9, all four parts at once.

Two processes serve one table on an engine whose indexes and plain reads lag (tests/lagging). A fifth of their engine
calls fail, transactions on the same items conflict, and the processes are killed in turn at random moments and started
again. Members vote, predict, comment, learn and join leagues through both, and repeat unanswered requests with the same
key. One is suspended for a moment; in the middle two are erased, and one's contributions are taken back. A webhook for
every kind of occurrence refuses a tenth of what it is told. At the end both processes are killed; all data is read from
a new process and compared with what was acknowledged, the table is searched for the erased members, and
`ringside audit` checks it.
"""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from uuid import uuid4

from datastore.changes.occurrences import DELIVERY_SHARDS, Kind, Webhook
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Table, open_table
from datastore.dynamo.declaration import create
from datastore.jobs.jobs import read_unfinished_jobs
from datastore.journal.webhooks import add_webhook, read_waiting
from datastore.whole.layout import ensure_layout
from resolvers.requests.context import Role, utc_now
from server.auth.tokens import mint
from server.settings import Level, Log, Settings
from tests.command import on_table, ringside_process
from tests.engines import EnginePair, RunningEngine
from tests.erasing import owners
from tests.fault.editor import Editor
from tests.fault.faults import Fault
from tests.fault.ledger import UNCOUNTED, Fact, FactReader, Ledger
from tests.fault.members import Member, Spammer
from tests.fault.recording import LEAVERS, PRODUCTS, SPAMMER, TROLL, SharedState
from tests.fault.retrying_client import RetryingClient
from tests.lagging import LaggingEngine, Limits
from tests.members import introduce
from tests.receiver import Receiver, receiving
from tests.service import Service, start_service

SECRET = "a secret that is long enough for these tests"
MEMBERS = 6
PROCESSES = 2
FAULT_RATE = 0.2
REFUSED_RATE = 0.1
"""The share of messages that the webhook's receiver refuses at first."""
WEBHOOK = "every-kind"
"""How the kinds begin of what several people may do to one object at the same time."""
SETTLING_SECONDS = 300.0
"""What killed processes were doing is taken up after 20 s; then it is given time until it counts as lost."""
ATTEMPTS = 15
"""Reads, half a second apart, until a missing fact counts as lost: leaderboards are up to two seconds behind."""


@dataclass(frozen=True, slots=True)
class FaultReport:
    """The findings of the checker and the audit, and how much happened."""

    actions: int
    facts: Counter[str]
    lost: Counter[Fact]
    duplicated: Counter[Fact]
    breaches: str = ""
    kills: int = 0
    retries: int = 0
    faults: Mapping[Fault, int] = field(default_factory=dict)

    @property
    def differences(self) -> list[str]:
        """The facts that are not as acknowledged, as sentences."""
        return [
            *(f"lost, {number} times: {fact}" for fact, number in self.lost.items()),
            *(f"duplicated, {number} times: {fact}" for fact, number in self.duplicated.items()),
        ]


@dataclass(frozen=True, slots=True)
class FaultyTable:
    """A table behind a proxy, and the settings of a process that serves it."""

    proxy: LaggingEngine
    engine: RunningEngine
    table: Table
    """Without faults."""
    settings: Settings
    random: Random

    def variables(self, url: str) -> dict[str, str]:
        return on_table(url, self.settings.table, RINGSIDE_SECRETS=SECRET, RINGSIDE_WEBHOOK_NETWORKS="127.0.0.0/8")

    def token(self, name: str, *roles: Role) -> str:
        return mint(self.settings, name, name=name, roles=roles)

    def member(self, name: str, urls: list[str], shared: SharedState) -> Member:
        kind = Spammer if name == SPAMMER else Member
        return kind(name, self.token(name), urls, Random(f"{self.random.random()}"), shared)

    def client(self, name: str, urls: list[str], *roles: Role) -> RetryingClient:
        return RetryingClient(name, self.token(name, *roles), urls, self.random)


@asynccontextmanager
async def faulty_table(engines: EnginePair, seed: int) -> AsyncIterator[FaultyTable]:
    """An empty table behind a lagging proxy that injects no faults yet."""
    engine = engines.leader
    name = f"ringside-{uuid4().hex[:16]}"
    settings = Settings(dynamodb_url=engine.url, table=name, secrets=(SECRET,), log=Log(Level.ERROR))
    async with (
        open_table(name, url=engine.url) as table,
        LaggingEngine(
            engine.url, engines.follower.url, seed=seed, limits=Limits(), max_delay=0.05, conflict_seconds=0.005
        ) as proxy,
    ):
        await create(table)
        await ensure_layout(table)
        yield FaultyTable(proxy, engine, table, settings, Random(seed))
        await table.client.delete_table(TableName=name)


async def run_with_faults(
    engines: EnginePair, seed: int, kills: int, actions: int = 0, members: int = MEMBERS
) -> FaultReport:
    """A run of at least this many actions, in which processes are killed this many times."""
    shared, urls = SharedState(), list[str]()
    async with faulty_table(engines, seed) as faulty, AsyncExitStack() as stack:
        editor = Editor("editor", faulty.token("editor", *Role), urls, Random(seed), shared)
        names = [*(f"m{number}" for number in range(members)), TROLL, SPAMMER]
        clients = [faulty.member(name, urls, shared) for name in (*names, *LEAVERS)]
        for client in (editor, *clients):
            await introduce(faulty.table, client.name, name=client.name)
            await stack.enter_async_context(client)
        receiver = await stack.enter_async_context(receiving(lambda _: _accept_most(faulty.random)))
        webhook = Webhook(WEBHOOK, receiver.url, tuple(Kind), utc_now(), "whsec_AAAA")
        await add_webhook(faulty.table, webhook, UnitOfWork.unkeyed(utc_now()))
        await _run_clients(faulty, editor, clients, urls, Length(kills, actions))
        faults = Counter(faulty.proxy.faults)
        lost, duplicated = await find_differences(faulty, shared.ledger, names, receiver=receiver)
        audit = await asyncio.to_thread(lambda: ringside_process("audit", **faulty.variables(engines.leader.url)))
    return FaultReport(
        actions=shared.ledger.actions,
        facts=shared.ledger.kinds(),
        lost=lost,
        duplicated=duplicated,
        breaches="" if audit.returncode == 0 else audit.stdout + audit.stderr,
        kills=kills + PROCESSES,
        retries=sum(client.retries for client in (editor, *clients)),
        faults=faults,
    )


def _accept_most(random: Random) -> int:
    return 500 if random.random() < REFUSED_RATE else 204


@dataclass(frozen=True, slots=True)
class Length:
    """How many kills a run has, and how many actions at least."""

    kills: int
    actions: int

    async def wait(self, ledger: Ledger, kills: int) -> None:
        """Wait for the next kill, or after the last one for the end: all have the same number of actions between."""
        while ledger.actions < self.actions * (kills + 1) / (self.kills + 1):
            await asyncio.sleep(0.05)


async def _run_clients(
    faulty: FaultyTable, editor: Editor, members: list[Member], urls: list[str], length: Length
) -> None:
    """Starts the processes, kills them in turn while the clients work, and kills all of them at the end."""
    with ExitStack() as stack:
        variables = faulty.variables(faulty.proxy.url)
        services = await asyncio.gather(*(start_service(variables, stack) for _ in range(PROCESSES)))
        urls += [service.url for service in services]
        await editor.prepare()
        faulty.proxy.fault_rate = FAULT_RATE
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(editor.run())
            for member in members:
                tasks.create_task(member.run())
                if isinstance(member, Spammer):
                    tasks.create_task(editor.moderate(member))
                elif member.name in LEAVERS:
                    tasks.create_task(editor.erase(member))
            for number in range(length.kills):
                await asyncio.sleep(faulty.random.uniform(0.2, 1.0))
                await length.wait(editor.ledger, number)
                editor.shared.leaving = number >= length.kills // 2
                index = number % PROCESSES
                await _kill(services[index])
                services[index] = await start_service(variables, stack)
                urls[index] = services[index].url
            await length.wait(editor.ledger, length.kills)
            editor.shared.stopped = True
        await editor.void(TROLL)
        for service in services:
            await _kill(service)


async def _kill(service: Service) -> None:
    await asyncio.to_thread(service.stop, signal.SIGKILL)


async def find_differences(
    faulty: FaultyTable,
    ledger: Ledger,
    members: list[str],
    attempts: int = ATTEMPTS,
    receiver: Receiver | None = None,
) -> tuple[Counter[Fact], Counter[Fact]]:
    """The lost and the duplicated facts, read from a new process without faults."""
    async with AsyncExitStack() as stack:
        processes = stack.enter_context(ExitStack())
        urls = [(await start_service(faulty.variables(faulty.engine.url), processes)).url]
        clients = {name: faulty.client(name, urls) for name in members}
        moderator = faulty.client("reader", urls, Role.MODERATOR)
        for client in (moderator, *clients.values()):
            await stack.enter_async_context(client)
        expected, reader = ledger.expected(), FactReader(moderator, clients, PRODUCTS)
        settled: Counter[Fact] = Counter()
        if receiver is not None:
            expected += ledger.deliveries()
            await _until_settled(faulty.table)
            kinds = (message.data["kind"] for message in receiver.without_repeats())
            settled.update(("delivered", kind) for kind in kinds if kind != UNCOUNTED)
            settled.update(await _left_of_erased(faulty.table))
        for attempt in range(attempts):
            if attempt:
                await asyncio.sleep(0.5)
            actual = settled + await reader.read()
            if expected == actual:
                break
        return expected - actual, actual - expected


async def _until_settled(table: Table) -> None:
    """Until every job has ended that is due, and nothing waits for the webhook."""
    with suppress(TimeoutError):
        async with asyncio.timeout(SETTLING_SECONDS):
            while await _is_unsettled(table):
                await asyncio.sleep(0.5)


async def _is_unsettled(table: Table) -> bool:
    if any(job.is_due(utc_now()) for job in await read_unfinished_jobs(table)):
        return True
    waiting = [await read_waiting(table, WEBHOOK, shard, 1) for shard in range(DELIVERY_SHARDS)]
    return any(waiting)


async def _left_of_erased(table: Table) -> list[Fact]:
    """Members who were erased with their contributions, and have items still."""
    removed = {name for name, contributions in LEAVERS.items() if contributions == "REMOVE"}
    return [("left of an erased member", user) for user in await owners(table) & removed]
