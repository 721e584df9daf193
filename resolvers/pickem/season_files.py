"""A season's cards as a JSON file, in and out.

    {"events": [{"name": "Revolution", "season": "2026", "startsAt": "2026-03-08T00:00:00Z", "state": "LOCKED",
        "description": "The first evening of the year.", "place": "Crypto.com Arena, Los Angeles",
        "imageUrl": "https://images.example.com/revolution.png",
        "tieBreak": {"question": "Minutes of the main event", "unit": "minutes", "answer": 21.5}, "matches": [
        {"name": "Singles", "points": 25, "preshow": false, "championships": ["World"],
         "teams": [{"members": ["A"], "champion": true}, {"name": "The Bs", "members": ["B", "C"]}],
         "result": {"outcome": "WON", "winner": 0}}]}]}

An event without an `id` gets one derived from its season, name and start, and a match one derived from its event and
its index. So the same file can be imported again, after a crash or an addition, and existing events are left alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from ulid import ULID

from datastore.dynamo import iso
from datastore.ids import is_ulid
from datastore.pickem import Event, EventState, Match, MatchOutcome, Result, TieBreak
from datastore.refusals import InvalidInput
from resolvers.pickem import rules
from resolvers.pickem.tie_breaks import TieBreakInput, parse_number, parse_tie_break
from resolvers.texts import parse_image_address

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)


class InvalidSeasonFile(ValueError):
    """A season file with an invalid event. The message says where it is in the file."""


@dataclass(frozen=True, slots=True)
class Card:
    """An event and its matches."""

    event: Event
    matches: tuple[Match, ...]


def parse_season(document: Any, now: datetime, image_hosts: Collection[str] = ()) -> list[Card]:
    """The cards of a file, with pictures of these hosts. Those that have begun are locked unless cancelled."""
    events = document.get("events") if isinstance(document, Mapping) else None
    if not isinstance(events, list):
        raise InvalidSeasonFile('A season file is an object with a list of "events".')
    cards = [_parse_at(f"events.{index}", _parse_card, event, now, image_hosts) for index, event in enumerate(events)]
    _validate_ids("events", [card.event for card in cards])
    return cards


def season_document(cards: Iterable[Card]) -> dict[str, Any]:
    """The content of a season file with these cards."""
    return {"events": [_event_document(card) for card in cards]}


def _parse_at(path: str, parse: Any, *arguments: Any) -> Any:
    """Add to every error where in the file it is. The first argument is what is parsed there."""
    if not isinstance(arguments[0], Mapping):
        raise InvalidSeasonFile(f"{path}: write an object, in braces")
    try:
        return parse(*arguments)
    except InvalidSeasonFile as error:
        raise InvalidSeasonFile(f"{path}.{error}") from None
    except InvalidInput as refused:
        raise InvalidSeasonFile(f"{'.'.join((path, *refused.path[1:]))}: {refused.message}") from None


def _parse_card(given: Mapping[str, Any], now: datetime, image_hosts: Collection[str]) -> Card:
    starts_at = rules.validate_start(_parse_moment(given, "startsAt"))
    name = rules.validate_name(_parse_text(given, "name"), "input", "name")
    season = rules.validate_season(_parse_text(given, "season"))
    event_id = _parse_id(given, starts_at, season, name, iso(starts_at))
    listed = _parse_kind(given, "matches", list, [])
    if len(listed) > rules.MOST_MATCHES:
        raise InvalidSeasonFile(f"matches: a card has at most {rules.MOST_MATCHES} matches")
    parsed = [
        _parse_at(f"matches.{index}", _parse_match, match, event_id, starts_at, index)
        for index, match in enumerate(listed)
    ]
    matches = tuple(match for match, _ in parsed)
    _validate_ids("matches", matches)
    results = {match.id: result for match, result in parsed if result is not None}
    event = Event(
        id=event_id,
        name=name,
        season=season,
        starts_at=starts_at,
        created_at=now,
        card=rules.preshow_first([match.id for match in matches], (match.id for match in matches if match.preshow)),
        results=results,
        tie_break=_parse_tie_break(given.get("tieBreak")),
        **_parse_details(given, image_hosts),
    )
    state = None if given.get("state") is None else _parse_choice(given, "state", EventState)
    return Card(_in_state(event, state, now), matches)


def _validate_ids(name: str, listed: Sequence[Event | Match]) -> None:
    """Refuse a repeated id: two given ones, a given one and a derived one, or two derived from equal events."""
    places: dict[str, int] = {}
    for index, one in enumerate(listed):
        if (first := places.setdefault(one.id, index)) != index:
            raise InvalidSeasonFile(f"{name}.{index}.id: {name}.{first} has the same id; give one of them another")


def _in_state(event: Event, state: EventState | None, now: datetime) -> Event:
    """The event in the state that the file has, if any. One that was scored is locked: points are not in the file."""
    has_ended = bool(event.results) or (event.tie_break is not None and event.tie_break.thousandths is not None)
    if state is EventState.CANCELLED:
        return (event.locked(now) if has_ended else event).changed(state=state)
    if event.is_due(now) or state in (EventState.LOCKED, EventState.SCORED):
        return event.locked(now)
    if has_ended:
        raise InvalidSeasonFile(
            'startsAt: this event has results but has not begun; write "LOCKED" as its state, or leave the results out'
        )
    return event


def _parse_details(given: Mapping[str, Any], image_hosts: Collection[str]) -> dict[str, Any]:
    """Description, place and picture: those that the file has."""
    path = ("input", "imageUrl")
    parsers: Mapping[str, tuple[str, Callable[[str], str]]] = {
        "description": ("description", rules.validate_description),
        "place": ("place", rules.validate_place),
        "imageUrl": ("image_url", lambda text: parse_image_address(text, image_hosts, path)),
    }
    texts = {key: _parse_text(given, key) for key in parsers if given.get(key) is not None}
    return {parsers[key][0]: parsers[key][1](text) for key, text in texts.items()}


def _parse_tie_break(given: Mapping[str, Any] | None) -> TieBreak | None:
    """The question, and the answer if it is known."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise InvalidSeasonFile("tieBreak: write an object, in braces")
    unit = None if given.get("unit") is None else _parse_text(given, "unit", "tieBreak.")
    asked = parse_tie_break(TieBreakInput(question=_parse_text(given, "question", "tieBreak."), unit=unit))
    answer = given.get("answer")
    if answer is None:
        return asked
    if isinstance(answer, bool) or not isinstance(answer, int | float):
        raise InvalidSeasonFile("tieBreak.answer: write a number")
    return replace(asked, thousandths=parse_number(answer, "tieBreak", "answer"))


def _parse_match(given: Mapping[str, Any], event: str, starts_at: datetime, index: int) -> tuple[Match, Result | None]:
    listed = _parse_kind(given, "teams", list)
    teams = [_parse_at(f"teams.{place}", _parse_team, team) for place, team in enumerate(listed)]
    match = Match(
        event=event,
        id=_parse_id(given, starts_at, event, str(index)),
        name=rules.validate_name(_parse_text(given, "name"), "input", "name"),
        points=rules.validate_points(_parse_whole(given, "points")),
        teams=rules.parse_teams(teams),
        championships=rules.validate_championships(_parse_texts(given, "championships", [])),
        preshow=_parse_kind(given, "preshow", bool, False),
    )
    result = given.get("result")
    return match, None if result is None else _parse_at("result", _parse_result, result, match)


def _parse_result(given: Mapping[str, Any], match: Match) -> Result:
    winner = None if given.get("winner") is None else _parse_whole(given, "winner")
    return rules.parse_result(match, _parse_choice(given, "outcome", MatchOutcome), winner)


def _parse_team(given: Mapping[str, Any]) -> rules.TeamInput:
    members, champion = _parse_texts(given, "members"), _parse_kind(given, "champion", bool, False)
    name = None if given.get("name") is None else _parse_text(given, "name")
    return rules.TeamInput(name=name, members=members, champion=champion)


def _parse_kind(given: Mapping[str, Any], name: str, kind: type[T], default: T | None = None) -> T:
    """A value of this kind, which may be left out if there is a default. A text is no list of its letters."""
    value = given.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, kind):
        raise InvalidSeasonFile(f"{name}: write {'a list' if kind is list else 'true or false'}")
    return value


def _parse_text(given: Mapping[str, Any], name: str, place: str = "") -> str:
    """A text, which is required. A season is no number."""
    value = given.get(name)
    if not isinstance(value, str):
        raise InvalidSeasonFile(f"{place}{name}: write a text, in quotation marks")
    return value


def _parse_texts(given: Mapping[str, Any], name: str, default: list[str] | None = None) -> list[str]:
    """A list of texts."""
    listed: list[Any] = _parse_kind(given, name, list, default)
    return [_parse_text({f"{index}": each}, f"{index}", f"{name}.") for index, each in enumerate(listed)]


def _parse_choice(given: Mapping[str, Any], name: str, kind: type[E]) -> E:
    """A member of an enumeration, by its value."""
    by_value = {member.value: member for member in kind}
    value = given.get(name)
    if not isinstance(value, str) or value not in by_value:
        raise InvalidSeasonFile(f"{name}: write one of {', '.join(by_value)}")
    return by_value[value]


def _parse_whole(given: Mapping[str, Any], name: str) -> int:
    value = given.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 != 0:  # infinity % 1 is NaN
        raise InvalidSeasonFile(f"{name}: write a whole number, without quotation marks")
    return int(value)


def _parse_moment(given: Mapping[str, Any], name: str) -> datetime:
    text = _parse_text(given, name)
    with suppress(ValueError):
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment
    raise InvalidSeasonFile(f"{name}: write a date, a time and a zone, as in 2026-11-20T20:00:00Z")


def _parse_id(given: Mapping[str, Any], starts_at: datetime, *words: str) -> str:
    if given.get("id") is None:
        return derived_id(starts_at, *words)
    if not is_ulid(_parse_text(given, "id")):
        raise InvalidSeasonFile("id: this is not a ULID; leave it out to have one made")
    return str(given["id"])


def derived_id(moment: datetime, *words: str) -> str:
    """The same id for the same words. It sorts by the moment, like every id."""
    milliseconds = max(0, int(moment.timestamp() * 1000))
    return str(ULID(milliseconds.to_bytes(6, "big") + hashlib.sha256("\x00".join(words).encode()).digest()[:10]))


def _event_document(card: Card) -> dict[str, Any]:
    event, by_id = card.event, {match.id: match for match in card.matches}
    return {
        "id": event.id,
        "name": event.name,
        "season": event.season,
        "startsAt": iso(event.starts_at),
        "state": event.state.value,
        **_details(event),
        "matches": [_match_document(by_id[match], event.results.get(match)) for match in event.card if match in by_id],
    }


def _details(event: Event) -> dict[str, Any]:
    asked = event.tie_break
    details = {
        "description": event.description,
        "place": event.place,
        "imageUrl": event.image_url,
        "tieBreak": None
        if asked is None
        else _without_none(question=asked.question, unit=asked.unit, answer=asked.answer),
    }
    return _without_none(**details)


def _without_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _match_document(match: Match, result: Result | None) -> dict[str, Any]:
    document: dict[str, Any] = {
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
        document["result"] = {"outcome": result.outcome.value, "winner": result.winner}
    return document
