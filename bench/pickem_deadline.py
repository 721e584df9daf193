"""10,000 attempts to submit a prediction around a deadline, on several processes, with a fifth of engine calls failing.

    python -m bench.pickem_deadline [--tries 10000] [--servers 2]

Each round is an event that locks by itself a second after 300 attempts were accepted; tests/fault/deadline_race.py
describes the figures.
"""

import argparse
import asyncio
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import httpx

from resolvers.requests.context import Role, Services
from server.audit import pickem as audit
from server.auth.tokens import mint
from server.engine import run_engine
from server.settings import Settings
from tests.client import Client
from tests.conftest import create_table
from tests.fault.deadline_race import TEAMS, run_race
from tests.fault.proxy import Proxy
from tests.season import EventEditor
from tests.service import start_service

TABLE = "ringside-bench"
SECRET = "b" * 48


class Remote(Client):
    """A client for a service in another process."""

    def __init__(self, url: str, settings: Settings, token: str | None = None) -> None:
        self.url = url
        self.settings = settings
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self.http = httpx.AsyncClient(base_url=url, headers=headers, timeout=30)

    def member(self, user: str, *roles: Role, name: str | None = None, email: str | None = None) -> Client:
        return Remote(self.url, self.settings, mint(self.settings, user, name=name or user, email=email, roles=roles))


async def rounds(servers: list[Remote], proxy: Proxy, attempts: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    while counts["attempts"] < attempts:
        proxy.fault_rate = 0.0
        editor = EventEditor(servers[0], "2026")
        event = (await editor.event())["id"]
        names = [str(number) for number in range(TEAMS)]
        matches = [(await editor.match(event, *names))["id"] for _ in range(3)]
        proxy.fault_rate = 0.2
        members = [f"m{number}" for number in range(16)]
        race = await run_race(servers, event, matches, members, accepted=300, seed=counts["rounds"])
        counts.update(
            rounds=1,
            attempts=len(race.attempts),
            accepted=race.accepted,
            unknown=sum(attempt.outcome == "unknown" for attempt in race.attempts),
            late=len(race.late),
            missing=len(race.missing),
            revealed=len(race.revealed_early),
        )
        print(dict(counts), flush=True)
    proxy.fault_rate = 0.0
    return counts


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", dest="attempts", type=int, default=10_000)
    parser.add_argument("--servers", type=int, default=2)
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, run_engine(Path(folder)) as engine, ExitStack() as stack:
        settings = Settings(dynamodb_url=engine.url, table=TABLE, secrets=(SECRET,))
        async with create_table(TABLE, engine.url) as table, Proxy(engine.url, seed=1, max_delay=0.2) as proxy:
            variables = {
                "RINGSIDE_DYNAMODB_URL": proxy.url,
                "RINGSIDE_TABLE": TABLE,
                "RINGSIDE_SECRETS": SECRET,
            }
            services = [await start_service(variables, stack) for _ in range(options.servers)]
            servers = [Remote(service.url, settings) for service in services]
            counts = await rounds(servers, proxy, options.attempts)
            breaches = [breach async for breach in audit.breaches(Services(table, settings.seal()))]
            faults = {fault.name.lower(): number for fault, number in proxy.faults.items()}
            print(f"faults met: {faults}")
    print(
        f"{counts['attempts']} attempts at {counts['rounds']} deadlines on {options.servers} processes: "
        f"{counts['accepted']} accepted, {counts['unknown']} unknown, {counts['late']} late, "
        f"{counts['missing']} missing, {counts['revealed']} differ from what was shown at the lock; "
        f"audit: {len(breaches)} breaches {breaches[:2]}; "
        f"{(time.monotonic() - began) / 60:.0f} minutes"
    )


if __name__ == "__main__":
    asyncio.run(main())
