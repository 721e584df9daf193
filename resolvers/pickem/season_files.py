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

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from datastore.dynamo import Table, iso
from datastore.pickem import events as event_store
from datastore.refusals import InvalidInput
from datastore.values import ids
from datastore.values.ids import is_ulid
from resolvers.pickem import rules
from resolvers.pickem.rules import TieBreakInput, parse_number, parse_tie_break
from resolvers.requests.context import Services
from resolvers.transfer import readers
from resolvers.transfer.loop import Added, PreviewedStore

T = TypeVar("T")
_DETAILS = ("description", "place", "imageUrl")


@dataclass(frozen=True, slots=True)
class EventAndMatches:
    """An event and its matches."""

    event: event_store.Event
    matches: tuple[event_store.Match, ...]


def season_rows(document: Any) -> Iterator[readers.Row]:
    """The events of a file."""
    events = document.get("events") if isinstance(document, Mapping) else None
    if not isinstance(events, list):
        raise readers.Unreadable('A season file is an object with a list of "events".')
    for index, fields in enumerate(events):
        problem = None if isinstance(fields, Mapping) else "write an object, in braces"
        yield readers.Row(index + 1, fields, name=f"events.{index}", problem=problem)


class SeasonStore(PreviewedStore[EventAndMatches]):
    """Adds events with their cards. Existing ones are left alone."""

    def __init__(self, services: Services, actor: str | None = None) -> None:
        self._services = services
        self._actor = actor
        self._now = services.clock()
        self._places: dict[str, str] = {}

    def parse(self, row: readers.Row) -> EventAndMatches:
        """An event that has begun is locked unless it is cancelled."""
        card = _parse_card(row.fields, self._now, self._services.policy.image_hosts)
        _refuse_repeated(self._places, card.event.id, row.place)
        return card

    async def are_missing(self, records: Sequence[EventAndMatches]) -> Sequence[bool]:
        existing = await event_store.read_events(self._services.table, [card.event.id for card in records])
        return [card.event.id not in existing for card in records]

    async def add(self, cards: Sequence[EventAndMatches]) -> Added:
        [card] = cards
        try:
            await event_store.create_event(
                self._services.table, card.event, card.matches, self._services.unit(self._actor)
            )
        except event_store.EventChanged:
            return Added(0)
        return Added(1)


async def read_season_events(table: Table, season: str | None) -> list[EventAndMatches]:
    """Oldest first, as the table has them: an index may lack an event of a moment ago, or its latest results."""
    events = sorted(await event_store.every_event(table), key=lambda event: (event.starts_at, event.id))
    return [
        EventAndMatches(event, tuple((await event_store.read_matches(table, event.id)).values()))
        for event in events
        if season in (None, event.season)
    ]


def season_document(cards: Iterable[EventAndMatches]) -> dict[str, Any]:
    """The content of a season file with these cards."""
    return {"events": [_event_document(card) for card in cards]}


def _parse_at(place: tuple[str, ...], parse: Callable[..., T], given: Any, *more: Any) -> T:
    """Add to every refusal its place in the event."""
    if not isinstance(given, Mapping):
        raise InvalidInput("write an object, in braces", path=place)
    try:
        return parse(given, *more)
    except InvalidInput as refused:
        path = refused.path[1:] if refused.path[:1] == ("input",) else refused.path
        raise InvalidInput(refused.message, path=(*place, *path)) from None


def _parse_card(given: readers.Fields, now: datetime, image_hosts: Collection[str]) -> EventAndMatches:
    starts_at = rules.validate_start(readers.parse_moment(given, "startsAt"))
    name = rules.validate_name(readers.parse_text(given, "name"), "input", "name")
    season = rules.validate_season(readers.parse_text(given, "season"), "season")
    event_id = _parse_id(given, starts_at, season, name, iso(starts_at))
    given_matches: list[Any] = readers.parse_kind(given, "matches", list, [])
    if len(given_matches) > rules.MOST_MATCHES:
        raise InvalidInput(f"a card has at most {rules.MOST_MATCHES} matches", path=("matches",))
    places: dict[str, str] = {}
    parsed = [
        _parse_at(("matches", f"{index}"), _parse_match, match, event_id, starts_at, index, places)
        for index, match in enumerate(given_matches)
    ]
    matches = tuple(match for match, _ in parsed)
    results = {match.id: result for match, result in parsed if result is not None}
    event = event_store.Event(
        id=event_id,
        name=name,
        season=season,
        starts_at=starts_at,
        created_at=now,
        card=rules.preshow_first([match.id for match in matches], (match.id for match in matches if match.preshow)),
        results=results,
        tie_break=_parse_tie_break(given),
        **rules.parse_details(image_hosts, *(readers.parse_optional_text(given, key) for key in _DETAILS)),
    )
    state = None if given.get("state") is None else readers.parse_choice(given, "state", event_store.EventState)
    return EventAndMatches(_in_state(event, state, now), matches)


def _refuse_repeated(places: dict[str, str], id_: str, place: str) -> None:
    """Ids may repeat, whether they were given or derived from equal events."""
    if (first := places.setdefault(id_, place)) != place:
        raise InvalidInput(f"{first} has the same id; give one of them another", path=("id",))


def _in_state(event: event_store.Event, state: event_store.EventState | None, now: datetime) -> event_store.Event:
    """The event in the state that the file has, if any. One that was scored is locked: points are not in the file."""
    has_ended = bool(event.results) or (event.tie_break is not None and event.tie_break.thousandths is not None)
    if state is event_store.EventState.CANCELLED:
        return (event.locked().reveal(now) if has_ended else event).changed(state=state)
    if event.is_due(now) or state in (event_store.EventState.LOCKED, event_store.EventState.SCORED):
        return event.locked().reveal(now)
    if has_ended:
        raise InvalidInput(
            'this event has results but has not begun; write "LOCKED" as its state, or leave the results out',
            path=("startsAt",),
        )
    return event


def _parse_tie_break(given: readers.Fields) -> event_store.TieBreak | None:
    """The question, and the answer if it is known."""
    if given.get("tieBreak") is None:
        return None
    asked, answer = _parse_at(("tieBreak",), _read_tie_break, given["tieBreak"])
    parsed = parse_tie_break(asked)
    return parsed if answer is None else replace(parsed, thousandths=parse_number(answer, "tieBreak", "answer"))


def _read_tie_break(given: readers.Fields) -> tuple[TieBreakInput, float | None]:
    asked = TieBreakInput(
        question=readers.parse_text(given, "question"), unit=readers.parse_optional_text(given, "unit")
    )
    answer = given.get("answer")
    if answer is not None and (isinstance(answer, bool) or not isinstance(answer, int | float)):
        raise InvalidInput("write a number", path=("answer",))
    return asked, answer


def _parse_match(
    given: readers.Fields, event: str, starts_at: datetime, index: int, places: dict[str, str]
) -> tuple[event_store.Match, event_store.Result | None]:
    given_teams: list[Any] = readers.parse_kind(given, "teams", list)
    teams = [_parse_at(("teams", f"{place}"), _parse_team, team) for place, team in enumerate(given_teams)]
    match = event_store.Match(
        event=event,
        id=_parse_id(given, starts_at, event, str(index)),
        name=rules.validate_name(readers.parse_text(given, "name"), "input", "name"),
        points=rules.validate_points(readers.parse_whole(given, "points")),
        teams=rules.parse_teams(teams),
        championships=rules.validate_championships(readers.parse_texts(given, "championships", [])),
        preshow=readers.parse_kind(given, "preshow", bool, False),
    )
    _refuse_repeated(places, match.id, f"matches.{index}")
    result = given.get("result")
    return match, None if result is None else _parse_at(("result",), _parse_result, result, match)


def _parse_result(given: readers.Fields, match: event_store.Match) -> event_store.Result:
    winner = None if given.get("winner") is None else readers.parse_whole(given, "winner")
    return rules.parse_result(match, readers.parse_choice(given, "outcome", event_store.MatchOutcome), winner)


def _parse_team(given: readers.Fields) -> rules.TeamInput:
    members, champion = readers.parse_texts(given, "members"), readers.parse_kind(given, "champion", bool, False)
    return rules.TeamInput(name=readers.parse_optional_text(given, "name"), members=members, champion=champion)


def _parse_id(given: readers.Fields, starts_at: datetime, *words: str) -> str:
    if given.get("id") is None:
        return derived_id(starts_at, *words)
    if not is_ulid(readers.parse_text(given, "id")):
        raise InvalidInput("this is not a ULID; leave it out to have one made", path=("id",))
    return str(given["id"])


def derived_id(moment: datetime, *words: str) -> str:
    """The same id for the same words."""
    return ids.derived_id(moment, "\x00".join(words).encode())


def _event_document(card: EventAndMatches) -> dict[str, Any]:
    event, by_id, asked = card.event, {match.id: match for match in card.matches}, card.event.tie_break
    details: dict[str, Any] = dict(zip(_DETAILS, (event.description, event.place, event.image_url), strict=True))
    if asked is not None:
        details["tieBreak"] = _without_none(question=asked.question, unit=asked.unit, answer=asked.answer)
    return {
        "id": event.id,
        "name": event.name,
        "season": event.season,
        "startsAt": iso(event.starts_at),
        "state": event.state.value,
        **_without_none(**details),
        "matches": [_match_document(by_id[match], event.results.get(match)) for match in event.card if match in by_id],
    }


def _without_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _match_document(match: event_store.Match, result: event_store.Result | None) -> dict[str, Any]:
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
