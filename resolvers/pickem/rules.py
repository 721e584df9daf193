"""What clients may send: the rules of events, matches, results, predictions and the codes of leagues.

The functions are pure, but for the one that draws the code of a league.

An event may ask for a number, which predictions guess; `scoring` says what the guesses decide. The question can be
replaced until the lock; guesses for an earlier one then count as missing. A prediction has the number of the question,
so no prediction has to be changed, and a submission under way needs no gate.
"""

import secrets
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from datastore.dynamo import pieces
from datastore.pickem.events import THOUSAND, Event, Match, MatchOutcome, Result, Team, TieBreak
from datastore.refusals import InvalidInput
from datastore.values.folding import in_form, is_stream_safe
from resolvers.requests.context import Unset, parse_given
from resolvers.values.texts import LINE, is_line, parse_image_address, parse_line, parse_lines, single_spaced

# ── codes of leagues ──

_CONSONANTS = "bdfgklmrstvz"
_VOWELS = "aeiou"
_GROUPS, _SYLLABLES = 3, 3
_LEFT_OUT = ("Zs", "Pd", "Cc", "Cf")
"""Spaces, hyphens and dashes, ends of lines, and what is invisible: a code may come out of any other program."""
_LONGEST_TYPED = 200


def new_code() -> str:
    """A random code as it is stored."""
    return "".join(secrets.choice(_CONSONANTS) + secrets.choice(_VOWELS) for _ in range(_GROUPS * _SYLLABLES))


def spelled(code: str) -> str:
    """A stored code as it is shown: in groups."""
    return "-".join(pieces(code, 2 * _SYLLABLES))


def parse_code(text: str) -> str | None:
    """A code as somebody typed it; None if there is no such code."""
    if len(text) > _LONGEST_TYPED:
        return None
    code = "".join(letter for letter in text.lower() if unicodedata.category(letter) not in _LEFT_OUT)
    is_code = len(code) == 2 * _GROUPS * _SYLLABLES and set(code[::2]) <= set(_CONSONANTS)
    return code if is_code and set(code[1::2]) <= set(_VOWELS) else None


# ── tie breaks ──

LONGEST_QUESTION = 200
LONGEST_UNIT = 40
LARGEST = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TieBreakInput:
    """A tie-break as a client sends it."""

    question: str
    unit: str | None = None


def parse_tie_break(given: TieBreakInput) -> TieBreak:
    path = ("input", "tieBreak")
    question = parse_line(given.question, LONGEST_QUESTION, "A tie-break's question", (*path, "question"))
    if given.unit is None:
        return TieBreak(question)
    return TieBreak(question, parse_line(given.unit, LONGEST_UNIT, "A tie-break's unit", (*path, "unit")))


def with_question(event: Event, asked: TieBreak | None) -> Event:
    """The event with another tie-break. The same question keeps its answer and its number."""
    earlier = event.tie_break
    if asked is None:
        return replace(event, tie_break=None)
    if earlier is not None and (asked.question, asked.unit) == (earlier.question, earlier.unit):
        return event
    return replace(event, tie_break=replace(asked, number=event.version))


def parse_number(number: float, *path: str) -> int:
    """The number in thousandths, rounded. `path` names the field of the input that has it."""
    if not abs(number) <= LARGEST:  # NaN neither
        raise InvalidInput(f"This is a number from -{LARGEST:,} to {LARGEST:,}.", path=("input", *path))
    return round(number * THOUSAND)


def parse_guess(event: Event, guess: float | None) -> int | None:
    if guess is None:
        return None
    if event.tie_break is None:
        raise InvalidInput("This event asks for no number.", path=("input", "guess"))
    return parse_number(guess, "guess")


# ── teams ──

LONGEST_NAME = 200
LONGEST_SEASON = 40
LONGEST_DESCRIPTION = 2000
LONGEST_PLACE = 200
MOST_MATCHES = 40
MOST_TEAMS = 40
MOST_MEMBERS = 40
MOST_CHAMPIONSHIPS = 10
MOST_NAME_BYTES = 65_536
"""For all names in a match together: the bounds above would allow 1.3 MB, and an item holds 400 KB at most."""
MOST_POINTS = 1000
_FIRST_YEAR, _LAST_YEAR = 1900, 2999


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamInput:
    """A team as a client sends it."""

    name: str | None = None
    members: list[str]
    champion: bool = False


# ── results ──


def is_correct(event: Event, match: str, team: int) -> bool | None:
    """Whether a pick was right; None while there is no result."""
    result = event.results.get(match)
    return None if result is None else result.winner == team


# ── cards ──


def preshow_first(card: Sequence[str], preshow: Iterable[str]) -> tuple[str, ...]:
    """The card with the pre-show moved to its beginning."""
    early = set(preshow)
    return (*(match for match in card if match in early), *(match for match in card if match not in early))


def validate_name(text: str, *path: str) -> str:
    return parse_line(text, LONGEST_NAME, "A name here", path)


def parse_details(
    image_hosts: Collection[str],
    description: str | Unset | None,
    place: str | Unset | None,
    image_url: str | Unset | None,
) -> dict[str, Any]:
    """Those of an event's fields of these names that are given, parsed; null stays None."""
    return parse_given(
        description=(description, parse_description),
        place=(place, _validate_place),
        image_url=(image_url, lambda text: parse_image_address(text, image_hosts, ("input", "imageUrl"))),
    )


def parse_description(text: str) -> str:
    return parse_lines(text, LONGEST_DESCRIPTION, "A description", ("input", "description"))


def _validate_place(text: str) -> str:
    place = single_spaced(text, LONGEST_PLACE)
    if not is_line(place, LONGEST_PLACE):
        raise InvalidInput(
            f"A place has 1 to {LONGEST_PLACE} characters, {LINE}; null for none.", path=("input", "place")
        )
    return place


def validate_season(text: str, *path: str) -> str:
    season = single_spaced(text, LONGEST_SEASON)
    if is_stream_safe(season):
        season = in_form("NFC", season)  # some devices type an accent apart from its letter
    if not is_line(season, LONGEST_SEASON) or "#" in season:
        raise InvalidInput(
            f"A season's name has 1 to {LONGEST_SEASON} characters, none of them '#', {LINE}.", path=path
        )
    return season


def validate_start(moment: datetime) -> datetime:
    if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        raise InvalidInput(
            f"An event starts between the years {_FIRST_YEAR} and {_LAST_YEAR}.", path=("input", "startsAt")
        )
    return moment


def validate_points(points: int) -> int:
    if not 1 <= points <= MOST_POINTS:
        raise InvalidInput(f"A match is worth 1 to {MOST_POINTS} points.", path=("input", "points"))
    return points


def validate_championships(names: Sequence[str]) -> tuple[str, ...]:
    if len(names) > MOST_CHAMPIONSHIPS:
        raise InvalidInput(f"At most {MOST_CHAMPIONSHIPS} championships in one match.", path=("input", "championships"))
    return tuple(validate_name(name, "input", "championships", str(index)) for index, name in enumerate(names))


def parse_teams(given: Sequence[TeamInput]) -> tuple[Team, ...]:
    """Two or more teams of one or more members each."""
    if not 2 <= len(given) <= MOST_TEAMS:  # noqa: PLR2004 - the smallest match
        raise InvalidInput(f"A match has 2 to {MOST_TEAMS} teams.", path=("input", "teams"))
    teams = tuple(_parse_team(team, ("input", "teams", str(index))) for index, team in enumerate(given))
    if sum(len(name.encode()) for team in teams for name in (*team.members, team.name or "")) > MOST_NAME_BYTES:
        raise InvalidInput(
            f"The names of a match's teams and members have at most {MOST_NAME_BYTES} bytes together; shorten them.",
            path=("input", "teams"),
        )
    return teams


def _parse_team(given: TeamInput, path: tuple[str, ...]) -> Team:
    if not 1 <= len(given.members) <= MOST_MEMBERS:
        raise InvalidInput(f"A team has 1 to {MOST_MEMBERS} members.", path=(*path, "members"))
    members = tuple(validate_name(member, *path, "members", str(index)) for index, member in enumerate(given.members))
    name = validate_name(given.name, *path, "name") if given.name else None
    return Team(members, name, bool(given.champion))


def parse_result(match: Match, outcome: MatchOutcome, winner: int | None) -> Result:
    """A result that names a winner if and only if a team won."""
    if outcome is not MatchOutcome.WON:
        if winner is not None:
            raise InvalidInput(f"A match that ended as {outcome.value} has no winner.", path=("input", "winner"))
        return Result(outcome)
    if winner is None or not 0 <= winner < len(match.teams):
        raise InvalidInput(
            f"The winner is the position of a team in the match, 0 to {len(match.teams) - 1}.", path=("input", "winner")
        )
    return Result(outcome, winner)


def parse_picks(given: Iterable[tuple[str, int]], card: Sequence[str], matches: Mapping[str, Match]) -> dict[str, int]:
    """The picked team by match. Each match must be on the card, be picked once, and have the team."""
    picks: dict[str, int] = {}
    for index, (match, team) in enumerate(given):
        path = ("input", "picks", str(index))
        if match not in card or match not in matches:
            raise InvalidInput("This match is not on the event's card.", path=(*path, "match"))
        if match in picks:
            raise InvalidInput("This match was already picked; pick one team per match.", path=(*path, "match"))
        teams = len(matches[match].teams)
        if not 0 <= team < teams:
            raise InvalidInput(
                f"A pick is the position of a team in the match, 0 to {teams - 1}.", path=(*path, "team")
            )
        picks[match] = team
    return picks
