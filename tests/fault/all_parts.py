"""The whole service on its worst day: faults between it and a real engine, kill -9, all four parts at once.

Two processes serve one table. A fifth of their engine calls go wrong, transactions that meet hold each other up, and
one process after the other is killed at a random moment and started anew. Members vote, predict, comment and learn
through both, each repeating what got no answer with the same key. At the end both are killed; a new process, which
remembers nothing, is asked for everything there is, and `ringside audit` looks at the table.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from uuid import uuid4

from datastore.dynamo import open_table
from datastore.dynamo.declaration import create
from resolvers.viewer import Role
from server.auth.tokens import mint
from server.settings import Level, Log, Settings
from tests.engines import Running
from tests.fault.faults import Fault
from tests.fault.ledger import Fact, Inquiry, Ledger
from tests.fault.members import PRODUCTS, TROLL, Editor, Member, Town
from tests.fault.proxy import Proxy
from tests.fault.retrying_client import Patient
from tests.service import ringside, started

SECRET = "a secret that is long enough for the worst of days"
MEMBERS = 6
PROCESSES = 2
SHARE = 0.2
SETTLED = 15
"""Looks, half a second apart, until what was lost must count as lost: leaderboards are two seconds behind."""


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What the checker and the audit say, and how bad the day was."""

    acts: int
    facts: Counter[str]
    lost: Counter[Fact]
    doubled: Counter[Fact]
    breaches: str = ""
    kills: int = 0
    repeats: int = 0
    faults: Mapping[Fault, int] = field(default_factory=dict)

    @property
    def wrong(self) -> list[str]:
        """What is not as it was acknowledged; empty, or the day was lost."""
        return [
            *(f"lost, {number} times: {fact}" for fact, number in self.lost.items()),
            *(f"doubled, {number} times: {fact}" for fact, number in self.doubled.items()),
        ]


@dataclass(frozen=True, slots=True)
class Day:
    """A table behind a proxy, and what a process needs to serve it."""

    proxy: Proxy
    engine: Running
    settings: Settings
    chance: Random

    def variables(self, url: str) -> dict[str, str]:
        return {
            "RINGSIDE_DYNAMODB_URL": url,
            "RINGSIDE_TABLE": self.settings.table,
            "RINGSIDE_SECRETS": SECRET,
        }

    def token(self, name: str, *roles: Role) -> str:
        return mint(self.settings, name, name=name, roles=roles)

    def member(self, name: str, urls: list[str], town: Town) -> Member:
        return Member(name, self.token(name), urls, Random(f"{self.chance.random()}"), town)


@asynccontextmanager
async def bad_day(engine: Running, seed: int) -> AsyncIterator[Day]:
    """An empty table whose engine is going to fail."""
    name = f"ringside-{uuid4().hex[:16]}"
    settings = Settings(dynamodb_url=engine.url, table=name, secrets=(SECRET,), log=Log(Level.ERROR))
    async with (
        open_table(name, url=engine.url) as table,
        Proxy(engine.url, seed=seed, slowness=0.05, hold=0.005) as proxy,
    ):
        await create(table)
        yield Day(proxy, engine, settings, Random(seed))
        await table.client.delete_table(TableName=name)


async def everything(engine: Running, seed: int, kills: int) -> Aftermath:
    """A day with so many kills, and its outcome."""
    town, urls = Town(), list[str]()
    async with bad_day(engine, seed) as day, AsyncExitStack() as people:
        editor = Editor("editor", day.token("editor", Role.EDITOR, Role.MODERATOR), urls, Random(seed), town)
        members = [day.member(name, urls, town) for name in (*(f"m{number}" for number in range(MEMBERS)), TROLL)]
        for one in (editor, *members):
            await people.enter_async_context(one)
        with ExitStack() as running:
            variables = day.variables(day.proxy.url)
            services = await asyncio.gather(*(started(variables, running) for _ in range(PROCESSES)))
            urls += [service.url for service in services]
            await editor.prepare()
            day.proxy.share = SHARE
            async with asyncio.TaskGroup() as busy:
                for life in (editor.work(), *(member.live() for member in members)):
                    busy.create_task(life)
                for number in range(kills):
                    await asyncio.sleep(day.chance.uniform(0.2, 1.0))
                    place = number % PROCESSES
                    await asyncio.to_thread(services[place].stop, signal.SIGKILL)
                    services[place] = await started(variables, running)
                    urls[place] = services[place].url
                town.storm_is_over = True
            await editor.void(TROLL)
            for service in services:
                await asyncio.to_thread(service.stop, signal.SIGKILL)
        repeats = sum(one.repeats for one in (editor, *members))
        faults = Counter(day.proxy.faults)
        lost, doubled = await differences(day, town.ledger, [member.name for member in members])
        audited = await asyncio.to_thread(lambda: ringside("audit", **day.variables(engine.url)))
        breaches = "" if audited.returncode == 0 else audited.stdout + audited.stderr
    return Aftermath(town.ledger.acts, town.ledger.kinds(), lost, doubled, breaches, kills + PROCESSES, repeats, faults)


async def differences(
    day: Day, ledger: Ledger, members: list[str], looks: int = SETTLED
) -> tuple[Counter[Fact], Counter[Fact]]:
    """What is lost and what is doubled, by what a new process shows on a fine day."""
    async with AsyncExitStack() as stack:
        processes = stack.enter_context(ExitStack())
        urls = [(await started(day.variables(day.engine.url), processes)).url]
        ctx = {name: Patient(name, day.token(name), urls, day.chance) for name in members}
        moderator = Patient("reader", day.token("reader", Role.MODERATOR), urls, day.chance)
        for one in (moderator, *ctx.values()):
            await stack.enter_async_context(one)
        told, inquiry = ledger.told(), Inquiry(moderator, ctx, PRODUCTS)
        for look in range(looks):
            if look:
                await asyncio.sleep(0.5)
            found = await inquiry.found()
            if told == found:
                break
        return told - found, found - told
