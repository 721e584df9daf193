"""A season's cards as a JSON file, in and out.

    {"events": [{"name": "Revolution", "season": "2026", "startsAt": "2026-03-08T00:00:00Z", "matches": [
        {"name": "Singles", "points": 25, "preshow": false, "championships": ["World"],
         "teams": [{"members": ["A"], "champion": true}, {"name": "The Bs", "members": ["B", "C"]}],
         "result": {"outcome": "WON", "winner": 0}}]}]}

An event without an `id` gets one made of its season, name and start, and a match one made of that and its place: so the
same file can be read again, after a crash or an addition, and what is there is left alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ulid import ULID

from datastore.dynamo import iso
from datastore.ids import is_ulid
from datastore.pickem import Event, Match, MatchOutcome, Result
from datastore.refusals import InvalidInput
from resolvers.pickem import rules


class BadSeasonFile(ValueError):
    """A season file that says something no event can be; the message names the place."""


@dataclass(frozen=True, slots=True)
class Card:
    """An event and its matches."""

    event: Event
    matches: tuple[Match, ...]


def cards_from(document: Any, now: datetime) -> list[Card]:
    """The cards a file holds, all of them checked before any is written. Those of the past are locked."""
    events = document.get("events") if isinstance(document, Mapping) else None
    if not isinstance(events, list):
        message = 'A season file is an object with a list of "events".'
        raise BadSeasonFile(message)
    return [_at(f"events.{place}", _card, event, now) for place, event in enumerate(events)]


def season_document(cards: Iterable[Card]) -> dict[str, Any]:
    """The file that holds these cards."""
    return {"events": [_event_out(card) for card in cards]}


def _at(place: str, read: Any, *given: Any) -> Any:
    """Names the place of what cannot be read."""
    try:
        return read(*given)
    except BadSeasonFile as bad:
        message = f"{place}.{bad}"
        raise BadSeasonFile(message) from None
    except InvalidInput as refused:
        message = f"{'.'.join((place, *refused.path[1:]))}: {refused.message}"
        raise BadSeasonFile(message) from None
    except (KeyError, TypeError, AttributeError, ValueError) as wrong:
        message = f"{place}: {type(wrong).__name__}: {wrong}"
        raise BadSeasonFile(message) from None


def _card(given: Mapping[str, Any], now: datetime) -> Card:
    starts_at = rules.validate_start(_moment(given["startsAt"]))
    name, season = rules.validate_name(given["name"], "input", "name"), rules.validate_season(given["season"])
    id_ = _id(given, starts_at, season, name, iso(starts_at))
    listed: Sequence[Any] = given.get("matches", [])
    if len(listed) > rules.MOST_MATCHES:
        message = f"a card has at most {rules.MOST_MATCHES} matches"
        raise ValueError(message)
    read = [_at(f"matches.{place}", _match, match, id_, starts_at, place) for place, match in enumerate(listed)]
    matches = tuple(match for match, _ in read)
    results = {match.id: result for match, result in read if result is not None}
    if results and starts_at > now:
        message = "results of an event that has not begun"
        raise ValueError(message)
    event = Event(
        id=id_,
        name=name,
        season=season,
        starts_at=starts_at,
        created_at=now,
        card=rules.in_order([match.id for match in matches], (match.id for match in matches if match.preshow)),
        results=results,
    )
    return Card(event.locked(now) if event.is_due(now) else event, matches)


def _match(given: Mapping[str, Any], event: str, starts_at: datetime, place: int) -> tuple[Match, Result | None]:
    teams = [
        rules.TeamGiven(
            name=team.get("name"), members=list(team["members"]), champion=bool(team.get("champion", False))
        )
        for team in given["teams"]
    ]
    match = Match(
        event=event,
        id=_id(given, starts_at, event, str(place)),
        name=rules.validate_name(given["name"], "input", "name"),
        points=rules.validate_points(int(given["points"])),
        teams=rules.parse_teams(teams),
        championships=rules.validate_championships(given.get("championships", [])),
        preshow=bool(given.get("preshow", False)),
    )
    said = given.get("result")
    if said is None:
        return match, None
    return match, rules.parse_result(match, MatchOutcome(said["outcome"]), said.get("winner"))


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        message = "startsAt has no zone; write it as 2026-11-20T20:00:00Z"
        raise ValueError(message)
    return moment


def _id(given: Mapping[str, Any], starts_at: datetime, *words: str) -> str:
    if "id" in given:
        if not is_ulid(given["id"]):
            message = "id is not a ULID; leave it out to have one made"
            raise ValueError(message)
        return str(given["id"])
    return derived_id(starts_at, *words)


def derived_id(moment: datetime, *words: str) -> str:
    """The same id for the same words, sorted by the moment like any other."""
    milliseconds = max(0, int(moment.timestamp() * 1000))
    return str(ULID(milliseconds.to_bytes(6, "big") + hashlib.sha256("\x00".join(words).encode()).digest()[:10]))


def _event_out(card: Card) -> dict[str, Any]:
    event, by_id = card.event, {match.id: match for match in card.matches}
    return {
        "id": event.id,
        "name": event.name,
        "season": event.season,
        "startsAt": iso(event.starts_at),
        "state": event.state.value,
        "matches": [_match_out(by_id[match], event.results.get(match)) for match in event.card if match in by_id],
    }


def _match_out(match: Match, result: Result | None) -> dict[str, Any]:
    out: dict[str, Any] = {
        "id": match.id,
        "name": match.name,
        "points": match.points,
        "preshow": match.preshow,
        "championships": list(match.championships),
        "teams": [
            {"name": team.name, "members": list(team.members), "champion": team.champion} for team in match.teams
        ],
    }
    if result is not None:
        out["result"] = {"outcome": result.outcome.value, "winner": result.winner}
    return out
