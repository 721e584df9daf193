"""Helpers for the tests of pick'em: an editor who runs events, and predictions."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from datastore.dynamo.attributes import iso
from datastore.pickem.events import Event
from resolvers.pickem import predictions
from resolvers.requests.context import Role
from tests.client import Client
from tests.queries import (
    ADD_MATCH,
    CREATE_EVENT,
    LOCK_EVENT,
    RECORD_RESULT,
    SCORE_EVENT,
    STANDINGS,
    SUBMIT_PREDICTION,
    UNSCORE_EVENT,
)


def teams(*names: str) -> list[dict[str, Any]]:
    return [{"members": [name]} for name in names]


def in_hours(hours: float) -> str:
    return iso(datetime.now(UTC) + timedelta(hours=hours))


class EventEditor:
    """An editor who creates events, records results and scores predictions."""

    def __init__(self, client: Client, season: str = "2026") -> None:
        self.client = client.member("editor", Role.EDITOR)
        self.visitor = client
        self.season = season

    async def event(self, name: str = "AEW Revolution", *, starts: str | None = None, **more: Any) -> dict[str, Any]:
        fields = {"name": name, "season": self.season, "startsAt": starts or in_hours(24), **more}
        created: dict[str, Any] = (await self.client.ask(CREATE_EVENT, input=fields))["event"]
        return created

    async def match(self, event: str, *names: str, points: int = 10, **more: Any) -> dict[str, Any]:
        fields = {"event": event, "name": "Singles", "points": points, "teams": teams(*(names or ("A", "B"))), **more}
        added: dict[str, Any] = (await self.client.ask(ADD_MATCH, input=fields))["match"]
        return added

    async def card(
        self, *points: int, starts: str | None = None, name: str = "Show", **more: Any
    ) -> tuple[str, list[str]]:
        """Creates an event with a match for each of these points; returns its id and the ids of the matches."""
        event = (await self.event(name, starts=starts, **more))["id"]
        return event, [(await self.match(event, points=match_points))["id"] for match_points in points]

    async def lock(self, event: str) -> dict[str, Any]:
        locked: dict[str, Any] = (await self.client.ask(LOCK_EVENT, input={"event": event}))["event"]
        return locked

    async def result(self, match: str, winner: int | None = None, outcome: str = "WON") -> dict[str, Any]:
        fields = {"match": match, "outcome": outcome, "winner": winner}
        decided: dict[str, Any] = (await self.client.ask(RECORD_RESULT, input=fields))["match"]
        return decided

    async def score(self, event: str, **more: Any) -> int:
        scored = await self._all(SCORE_EVENT, {"event": event, **more})
        return int(scored["predictionsScored"])

    async def unscore(self, event: str) -> dict[str, Any]:
        unscored: dict[str, Any] = (await self._all(UNSCORE_EVENT, {"event": event}))["event"]
        return unscored

    async def _all(self, mutation: str, given: dict[str, Any]) -> dict[str, Any]:
        """The answer when all is done: on a slow machine after some that name the job that goes on."""
        while (answer := await self.client.ask(mutation, input=given))["job"] is not None:
            pass
        answered: dict[str, Any] = answer
        return answered

    async def standings(self, **page: Any) -> dict[str, Any]:
        standings: dict[str, Any] = await self.visitor.ask(STANDINGS, season=self.season, **page)
        return standings


async def submit(member: Client, event: str, picks: Sequence[tuple[str, int]], **more: Any) -> dict[str, Any]:
    """Submits a member's picks; returns the accepted prediction."""
    answer = await member.ask(SUBMIT_PREDICTION, input={**prediction_input(event, picks), **more})
    assert "prediction" in answer, answer
    prediction: dict[str, Any] = answer["prediction"]
    return prediction


def prediction_input(event: str, picks: Sequence[tuple[str, int]]) -> dict[str, Any]:
    return {"event": event, "picks": [{"match": match, "team": team} for match, team in picks]}


def reading_earlier(monkeypatch: pytest.MonkeyPatch, event: Event) -> None:
    """Let predictions be submitted by requests that have read the event as it is here."""
    load = predictions._load_for_submission

    async def read_earlier(ctx: Any, event_id: str) -> Any:
        _, before, joined_at = await load(ctx, event_id)
        return event, before, joined_at

    monkeypatch.setattr(predictions, "_load_for_submission", read_earlier)
