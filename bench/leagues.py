"""Leagues: engine calls and CPU of a page of 1,000 members, and 300 members who join at once.

    python -m bench.leagues [--write]

On the embedded engine. Calls and steps are of a service that has just started, in this process. CPU is that of a
service in a process of its own, which the kernel counts: rounds of league pages and season pages take turns. The joins
go over HTTP to two processes.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import httpx

from datastore.dynamo import metered
from datastore.pickem.leagues import LEAGUE
from resolvers.values.node_ids import parse_node_key
from server.audit import pickem as audit
from server.auth.tokens import mint
from server.settings import Level, Log, Settings
from tests.client import Client, serving
from tests.conftest import create_table
from tests.dependent_calls import dependent_calls
from tests.engines import running_engine
from tests.leagues import JOIN_LEAGUE, create, seed_members, seed_scored_league
from tests.service import Service, start_service

RESULTS: Final = Path(__file__).parent / "results" / "leagues.md"
SECRET: Final = "a secret that benchmarks sign with and is long enough to be one"
TABLE: Final = "ringside-bench"
MEMBERS: Final = 1000
JOINING: Final = 300
ROUNDS, PAGES = 15, 100
ROWS: Final = "{ totalCount nodes { rank points correct eventsPlayed user { name } } }"
LEAGUE_PAGE: Final = f"query ($id: ID) {{ league(id: $id) {{ standings(first: 20) {ROWS} }} }}"
SEASON_PAGE: Final = f'{{ standings(season: "2026", first: 20) {ROWS} }}'


class Process:
    """A service in a process of its own, and a member who asks it."""

    def __init__(self, service: Service, settings: Settings) -> None:
        self._pid = service.process.pid
        self._settings = settings
        self.http = httpx.AsyncClient(base_url=service.url, timeout=120, limits=httpx.Limits(max_connections=None))

    async def ask(self, user: str, query: str, **variables: Any) -> Any:
        headers = {"authorization": f"Bearer {mint(self._settings, user)}"}
        answer = await self.http.post("/graphql", json={"query": query, "variables": variables}, headers=headers)
        data = answer.json()["data"]
        return next(iter(data.values()))

    def cpu(self) -> float:
        """Milliseconds of its main thread."""
        return int(Path(f"/proc/{self._pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e6


async def page_calls(settings: Settings, league: str, user: str) -> list[str]:
    """Engine calls and dependent steps of a new service's first page and second page."""
    rows = []
    async with serving(settings) as new:
        for name in ("a new service's first page", "the next one"):
            with metered() as spent:
                request = new.member(user).ask(LEAGUE_PAGE, id=league)
                _, steps = await dependent_calls(new.services.table, request)
            rows.append(f"| {name} | {spent.calls} | {steps} | {spent.read_units:,.0f} |")
    return rows


async def page_cpu(process: Process, client: Client, league: str, user: str) -> list[str]:
    """The median over the rounds of a page's mean CPU: of the league, of the season, and after a change."""
    key = LEAGUE.at(id=parse_node_key("League", league))
    taken: dict[str, list[float]] = {"league": [], "season": [], "changed": []}
    for number in range(ROUNDS + 1):
        for name, query, given in (("league", LEAGUE_PAGE, {"id": league}), ("season", SEASON_PAGE, {})):
            before = process.cpu()
            for _ in range(PAGES):
                await process.ask(user, query, **given)
            taken[name] += [(process.cpu() - before) / PAGES] if number else []
        await client.services.table.write(LEAGUE.update(key, add={"revision": 1}))
        before = process.cpu()
        await process.ask(user, LEAGUE_PAGE, id=league)
        taken["changed"] += [process.cpu() - before] if number else []
    middle = {name: statistics.median(values) for name, values in taken.items()}
    return [
        f"| a page | {middle['league'] / middle['season']:.2f} |",
        f"| the first page of a process after a change of its members | {middle['changed'] / middle['season']:.0f} |",
    ]


async def joins(processes: list[Process], client: Client, before: int) -> str:
    """300 join at once with one code, twenty of them twice, a league that has some members already."""
    captain = client.member("captain")
    league = await create(captain, "CODE")
    await seed_members(
        client.services.table, league["id"], [f"early-{before}-{number}" for number in range(before - 1)]
    )
    users = [f"late-{before}-{number % JOINING}" for number in range(JOINING + 20)]
    began = time.monotonic()
    answers = await asyncio.gather(
        *(processes[n % 2].ask(user, JOIN_LEAGUE, input={"code": league["code"]}) for n, user in enumerate(users))
    )
    seconds = time.monotonic() - began
    refused = Counter(answer["message"] for answer in answers if "message" in answer)
    stored = await client.services.table.get(LEAGUE.at(id=parse_node_key("League", league["id"])), consistent=True)
    assert stored is not None
    breaches = [breach async for breach in audit.league_breaches(client.services)]
    told = ", ".join(f'{number} "{message}"' for message, number in sorted(refused.items()))
    joined = sum("membership" in answer for answer in answers)
    return f"| {before} | {joined} | {told} | {stored.members:,} | {len(breaches)} | {seconds:.1f} |"


async def measure(url: str) -> str:
    settings = Settings(dynamodb_url=url, table=TABLE, secrets=(SECRET,), log=Log(Level.ERROR), max_in_flight=1000)
    variables = {
        "RINGSIDE_DYNAMODB_URL": url,
        "RINGSIDE_TABLE": TABLE,
        "RINGSIDE_SECRETS": SECRET,
        "RINGSIDE_MAX_IN_FLIGHT": "1000",
        "RINGSIDE_REQUEST_TIMEOUT": "60",
    }
    with ExitStack() as stack:
        async with create_table(TABLE, url), serving(settings) as client:
            league, users = await seed_scored_league(client, MEMBERS)
            calls = await page_calls(settings, league, users[7])
            processes = [Process(await start_service(variables, stack), settings) for _ in range(2)]
            cpu = await page_cpu(processes[0], client, league, users[7])
            joined = [await joins(processes, client, before) for before in (1, 900)]
            for process in processes:
                await process.http.aclose()
    return report(calls, cpu, joined)


def report(calls: list[str], cpu: list[str], joined: list[str]) -> str:
    return "\n".join([
        "# Leagues",
        "",
        "    python -m bench.leagues --write",
        "",
        f"A page has 20 of {MEMBERS:,} members, with names, ranks and the total.",
        "",
        "| page | calls | dependent steps | read units |",
        "|---|---|---|---|",
        *calls,
        "",
        "CPU of the whole request, as a ratio to a page of the season's standings with the same fields; the two",
        f"take turns. The median of {ROUNDS} rounds of {PAGES} pages each.",
        "",
        "| page | ratio |",
        "|---|---|",
        *cpu,
        "",
        f"{JOINING} members join at once with one code, 20 of them twice, at two processes:",
        "",
        "| members before | joined | refused | members after | violations found by the audit | seconds |",
        "|---|---|---|---|---|---|",
        *joined,
        "",
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_engine("dynoxide", Path(folder)) as engine:
        text = asyncio.run(measure(engine.url))
    print(text)
    if options.write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
