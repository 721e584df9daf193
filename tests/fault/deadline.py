"""Many members at a deadline, on several servers, on a bad day; and what must be true of it afterwards.

Every try has picks of its own, so what is stored says which try it was. A member's tries follow each other; each is
acknowledged, refused as LOCKED, or in doubt (UNAVAILABLE, or no answer at all). Afterwards:

- late: acknowledged, though it began after some server had shown the event locked
- missing: what is stored is neither the member's last acknowledged try nor a later one in doubt
- revealed early: the picks shown after the lock are not those that are stored in the end
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import httpx

from resolvers.viewer import Role
from tests.client import Client
from tests.queries import SUBMIT_PREDICTION, mutation
from tests.season import prediction_input

WATCH = "query ($id: ID!) { event(id: $id) { state } }"
ALL = """
query ($id: ID!, $after: String) { predictions(event: $id, first: 100, after: $after) {
  nodes { user { name } picks { match team } } pageInfo { hasNextPage endCursor } } }
"""
MOVE = mutation("updateEvent", "EventUpdated", "event { state }")
TEAMS = 10


@dataclass
class Try:
    """One submission, as its sender knows it."""

    member: str
    number: int
    began: float
    ended: float = 0.0
    said: str = "in doubt"


@dataclass
class Race:
    """What happened."""

    tries: list[Try] = field(default_factory=list)
    seen_locked: float = float("inf")
    shown: dict[str, int | None] = field(default_factory=dict)
    stored: dict[str, int | None] = field(default_factory=dict)

    @property
    def accepted(self) -> int:
        return sum(one.said == "accepted" for one in self.tries)

    @property
    def late(self) -> list[Try]:
        return [one for one in self.tries if one.said == "accepted" and one.began > self.seen_locked]

    @property
    def missing(self) -> list[str]:
        return [member for member in {one.member for one in self.tries} if not self._explained(member)]

    @property
    def revealed_early(self) -> list[str]:
        return [member for member in self.stored if self.stored[member] != self.shown.get(member)]

    def _explained(self, member: str) -> bool:
        stored = self.stored.get(member)
        for one in sorted((one for one in self.tries if one.member == member), key=lambda one: -one.began):
            if one.said == "locked":
                if stored == one.number:
                    return False
                continue
            if stored == one.number:
                return True
            if one.said == "accepted":
                return False
        return stored is None


async def race(
    servers: Sequence[Client],
    event: str,
    matches: Sequence[str],
    names: Sequence[str],
    *,
    accepted: int,
    seed: int,
    seconds: float = 120.0,
) -> Race:
    """Members submit without pause until the lock and a little longer.

    When so many tries were accepted the start is moved to the next second; `seconds` bounds it all.
    """
    outcome = Race()
    random = Random(seed)
    members = {name: [server.member(name, name=name) for server in servers] for name in names}
    ends = time.monotonic() + seconds

    async def member(name: str, clients: Sequence[Client]) -> None:
        number = refused = 0
        while refused < 3 and time.monotonic() < ends:
            number += 1
            one = Try(name, number, time.monotonic())
            outcome.tries.append(one)
            one.said = await _submit(random.choice(clients), event, matches, number)
            one.ended = time.monotonic()
            refused += one.said == "locked"

    async def watcher(server: Client) -> None:
        while time.monotonic() < ends:
            answer = await _answer(server, WATCH, id=event)
            if answer and (answer.get("event") or {}).get("state") == "LOCKED":
                outcome.seen_locked = min(outcome.seen_locked, time.monotonic())
                return
            await asyncio.sleep(0.02)

    moving = asyncio.create_task(_move(servers[0], event, outcome, accepted, ends))
    watching = [asyncio.create_task(watcher(server)) for server in servers]
    running = [asyncio.create_task(member(name, clients)) for name, clients in members.items()]
    await asyncio.wait(watching, return_when=asyncio.FIRST_COMPLETED)
    outcome.shown = await _picks(servers[0], event, matches)
    await asyncio.gather(moving, *watching, *running)
    outcome.stored = await _picks(servers[-1], event, matches)
    for clients in members.values():
        for client in clients:
            await client.http.aclose()
    return outcome


async def _move(server: Client, event: str, outcome: Race, accepted: int, ends: float) -> None:
    """Waits for so many accepted tries, then lets the event start in a second."""
    editor = server.member("editor", Role.EDITOR)
    while outcome.accepted < accepted and time.monotonic() < ends:
        await asyncio.sleep(0.02)
    while time.monotonic() < ends:
        starts = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
        answer = await _answer(editor, MOVE, input={"event": event, "startsAt": starts})
        if "event" in ((answer or {}).get("updateEvent") or {}):
            return


async def _submit(client: Client, event: str, matches: Sequence[str], number: int) -> str:
    digits = [(match, number // TEAMS**place % TEAMS) for place, match in enumerate(matches)]
    answer = await _answer(client, SUBMIT_PREDICTION, input=prediction_input(event, digits))
    said = (answer or {}).get("submitPrediction") or {}
    if "prediction" in said:
        return "accepted"
    return "locked" if said.get("code") == "LOCKED" else "in doubt"


async def _picks(server: Client, event: str, matches: Sequence[str]) -> dict[str, int | None]:
    """The number of each member's stored try, asked for until the answer is whole."""
    found: dict[str, int | None] = {}
    after = None
    while True:
        answer = await _answer(server, ALL, id=event, after=after)
        if not answer:
            continue
        page = answer["predictions"]
        for node in page["nodes"]:
            picks = node["picks"]
            teams = None if picks is None else {pick["match"]: pick["team"] for pick in picks}
            found[node["user"]["name"]] = (
                None if teams is None else sum(teams[match] * TEAMS**place for place, match in enumerate(matches))
            )
        after = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            return found


async def _answer(client: Client, query: str, **variables: Any) -> dict[str, Any] | None:
    """The data of an answer without errors."""
    try:
        body = (await client.post(query, **variables)).json()
    except (httpx.HTTPError, ValueError):
        return None
    return None if "errors" in body else body["data"]  # type: ignore[no-any-return]
