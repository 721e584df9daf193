"""Many members submit predictions at a deadline, on several servers and with faults; and what must hold afterwards.

Each attempt has picks of its own, so the stored picks tell which attempt they are from. A member's attempts follow one
another; each is accepted, refused as LOCKED, or unknown (UNAVAILABLE, or no answer). The errors are:

- late: accepted, although it began after a server had shown the event as locked
- missing: the stored picks are neither of the member's last accepted attempt nor of a later unknown one
- revealed early: the picks shown after the lock are not the ones that are stored in the end
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import httpx

from resolvers.requests.context import Role
from tests.client import Client
from tests.queries import SUBMIT_PREDICTION, mutation
from tests.season import prediction_input
from tests.waiting import LONGEST

STATE = "query ($id: ID!) { event(id: $id) { state } }"
ALL_PICKS = """
query ($id: ID!, $after: String) { predictions(event: $id, first: 100, after: $after) {
  nodes { user { name } picks { match team } } pageInfo { hasNextPage endCursor } } }
"""
MOVE_START = mutation("updateEvent", "EventUpdated", "event { state }")
TEAMS = 10


@dataclass
class Attempt:
    """One submission, as its sender knows it."""

    member: str
    number: int
    began: float
    ended: float = 0.0
    outcome: str = "unknown"


@dataclass
class Race:
    """All attempts, and the number of each member's attempt that was shown after the lock and is stored."""

    attempts: list[Attempt] = field(default_factory=list)
    first_seen_locked: float = float("inf")
    shown: dict[str, int] = field(default_factory=dict)
    stored: dict[str, int] = field(default_factory=dict)

    @property
    def accepted(self) -> int:
        return sum(attempt.outcome == "accepted" for attempt in self.attempts)

    @property
    def late(self) -> list[Attempt]:
        accepted = [attempt for attempt in self.attempts if attempt.outcome == "accepted"]
        return [attempt for attempt in accepted if attempt.began > self.first_seen_locked]

    @property
    def missing(self) -> list[str]:
        members = {attempt.member for attempt in self.attempts}
        return [member for member in members if not self._is_explained(member)]

    @property
    def revealed_early(self) -> list[str]:
        return [member for member in self.stored if self.stored[member] != self.shown.get(member)]

    def _is_explained(self, member: str) -> bool:
        stored = self.stored.get(member)
        attempts = [attempt for attempt in self.attempts if attempt.member == member]
        for attempt in sorted(attempts, key=lambda attempt: -attempt.began):
            if attempt.outcome == "locked":
                if stored == attempt.number:
                    return False
                continue
            if stored == attempt.number:
                return True
            if attempt.outcome == "accepted":
                return False
        return stored is None


async def run_race(
    servers: Sequence[Client],
    event: str,
    matches: Sequence[str],
    names: Sequence[str],
    *,
    accepted: int,
    seed: int,
    seconds: float = LONGEST,
) -> Race:
    """Members submit without pause until shortly after the lock.

    After this many accepted attempts the event's start is moved to the next second; `seconds` limits the whole race.
    """
    race = Race()
    random = Random(seed)
    members = {name: [server.member(f"id-{name}", name=name) for server in servers] for name in names}
    ends = time.monotonic() + seconds

    async def member(name: str, clients: Sequence[Client]) -> None:
        number = refused = 0
        while refused < 3 and time.monotonic() < ends:
            number += 1
            attempt = Attempt(name, number, time.monotonic())
            race.attempts.append(attempt)
            attempt.outcome = await _submit(random.choice(clients), event, matches, number)
            attempt.ended = time.monotonic()
            refused += attempt.outcome == "locked"

    async def watcher(server: Client) -> None:
        while time.monotonic() < ends:
            answer = await _answer(server, STATE, id=event)
            if answer and (answer.get("event") or {}).get("state") == "LOCKED":
                race.first_seen_locked = min(race.first_seen_locked, time.monotonic())
                return
            await asyncio.sleep(0.02)

    moving = asyncio.create_task(_move(servers[0], event, race, accepted, ends))
    watching = [asyncio.create_task(watcher(server)) for server in servers]
    running = [asyncio.create_task(member(name, clients)) for name, clients in members.items()]
    await asyncio.wait(watching, return_when=asyncio.FIRST_COMPLETED)
    race.shown = await _picks(servers[0], event, matches)
    await asyncio.gather(moving, *watching, *running)
    race.stored = await _picks(servers[-1], event, matches)
    for clients in members.values():
        for client in clients:
            await client.http.aclose()
    return race


async def _move(server: Client, event: str, race: Race, accepted: int, ends: float) -> None:
    """Waits for this many accepted attempts, then lets the event start in a second."""
    editor = server.member("editor", Role.EDITOR)
    while race.accepted < accepted and time.monotonic() < ends:
        await asyncio.sleep(0.02)
    while time.monotonic() < ends:
        starts = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
        answer = await _answer(editor, MOVE_START, input={"event": event, "startsAt": starts})
        if "event" in ((answer or {}).get("updateEvent") or {}):
            return


async def _submit(client: Client, event: str, matches: Sequence[str], number: int) -> str:
    digits = [(match, number // TEAMS**index % TEAMS) for index, match in enumerate(matches)]
    answer = await _answer(client, SUBMIT_PREDICTION, input=prediction_input(event, digits))
    result = (answer or {}).get("submitPrediction") or {}
    if "prediction" in result:
        return "accepted"
    return "locked" if result.get("code") == "LOCKED" else "unknown"


async def _picks(server: Client, event: str, matches: Sequence[str]) -> dict[str, int]:
    """The number of each member's attempt whose picks are shown; waits while a read that is behind still hides them."""
    while (numbers := await _shown_picks(server, event, matches)) is None:
        await asyncio.sleep(0.02)
    return numbers


async def _shown_picks(server: Client, event: str, matches: Sequence[str]) -> dict[str, int] | None:
    """The same of one reading of all pages; None if some page is not answered or hides its picks."""
    numbers: dict[str, int] = {}
    after = None
    while answer := await _answer(server, ALL_PICKS, id=event, after=after):
        page = answer["predictions"]
        for node in page["nodes"]:
            if node["picks"] is None:
                return None
            teams = {pick["match"]: pick["team"] for pick in node["picks"]}
            numbers[node["user"]["name"]] = sum(teams[match] * TEAMS**index for index, match in enumerate(matches))
        after = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            return numbers
    return None


async def _answer(client: Client, query: str, **variables: Any) -> dict[str, Any] | None:
    """The data of an answer without errors."""
    try:
        body = (await client.post(query, **variables)).json()
    except (httpx.HTTPError, ValueError):
        return None
    return None if "errors" in body else body["data"]
