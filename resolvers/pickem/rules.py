"""The rules of the game, free of any table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from datastore.pickem import Event, Match, MatchOutcome, Result, Team
from datastore.refusals import InvalidInput

LONGEST_NAME = 200
LONGEST_SEASON = 40
MOST_MATCHES = 40
MOST_TEAMS = 40
MOST_MEMBERS = 40
MOST_CHAMPIONSHIPS = 10
LONGEST_CAST = 65_536
"""Bytes of all names in a match together. The bounds above would allow 1.3 MB, and an item holds 400 KB."""
MOST_POINTS = 1000
_FIRST_YEAR, _LAST_YEAR = 1900, 2999


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamGiven:
    """A team as a client gives it."""

    name: str | None = None
    members: list[str]
    champion: bool = False


@dataclass(frozen=True, slots=True)
class Score:
    """What a prediction is worth."""

    points: int
    correct: int


# ── scoring ──


def winners(event: Event, matches: Mapping[str, Match]) -> Mapping[str, tuple[int, int]]:
    """The winning team and the points of every match of the card that somebody won; no other match pays."""
    return {
        match: (result.winner, matches[match].points)
        for match, result in event.results.items()
        if match in event.card and match in matches and result.winner is not None
    }


def score(picks: Mapping[str, int], won: Mapping[str, tuple[int, int]]) -> Score:
    """The first team is a winner like any other: its place is 0."""
    right = [points for match, (winner, points) in won.items() if picks.get(match) == winner]
    return Score(sum(right), len(right))


def is_correct(event: Event, match: str, team: int) -> bool | None:
    """Whether a pick was right; None while there is no result."""
    result = event.results.get(match)
    return None if result is None else result.winner == team


# ── cards ──


def in_order(card: Sequence[str], preshow: Iterable[str]) -> tuple[str, ...]:
    """A card in the same order, its pre-show first."""
    early = set(preshow)
    return (*(match for match in card if match in early), *(match for match in card if match not in early))


def validate_name(text: str, *path: str, longest: int = LONGEST_NAME) -> str:
    name = " ".join(text.split())
    if not name or len(name) > longest:
        message = f"A name here has 1 to {longest} characters."
        raise InvalidInput(message, path=path)
    return name


def validate_season(text: str) -> str:
    season = " ".join(text.split())
    if not season or len(season) > LONGEST_SEASON or "#" in season or not season.isprintable():
        message = f"A season is named with 1 to {LONGEST_SEASON} characters, none of them '#' or a control character."
        raise InvalidInput(message, path=("input", "season"))
    return season


def validate_start(moment: datetime) -> datetime:
    if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        message = f"An event starts between the years {_FIRST_YEAR} and {_LAST_YEAR}."
        raise InvalidInput(message, path=("input", "startsAt"))
    return moment


def validate_points(points: int) -> int:
    if not 1 <= points <= MOST_POINTS:
        message = f"A match is worth 1 to {MOST_POINTS} points."
        raise InvalidInput(message, path=("input", "points"))
    return points


def validate_championships(names: Sequence[str]) -> tuple[str, ...]:
    if len(names) > MOST_CHAMPIONSHIPS:
        message = f"At most {MOST_CHAMPIONSHIPS} championships in one match."
        raise InvalidInput(message, path=("input", "championships"))
    return tuple(validate_name(name, "input", "championships", str(place)) for place, name in enumerate(names))


def parse_teams(given: Sequence[TeamGiven]) -> tuple[Team, ...]:
    """Two or more teams of one or more members each."""
    if not 2 <= len(given) <= MOST_TEAMS:  # noqa: PLR2004 - one cannot fight alone
        message = f"A match has 2 to {MOST_TEAMS} teams."
        raise InvalidInput(message, path=("input", "teams"))
    teams = tuple(_team(team, ("input", "teams", str(place))) for place, team in enumerate(given))
    if sum(len(name.encode()) for team in teams for name in (*team.members, team.name or "")) > LONGEST_CAST:
        message = f"The names of a match's teams and members have at most {LONGEST_CAST} bytes together; shorten them."
        raise InvalidInput(message, path=("input", "teams"))
    return teams


def _team(given: TeamGiven, path: tuple[str, ...]) -> Team:
    if not 1 <= len(given.members) <= MOST_MEMBERS:
        message = f"A team has 1 to {MOST_MEMBERS} members."
        raise InvalidInput(message, path=(*path, "members"))
    members = tuple(validate_name(member, *path, "members", str(place)) for place, member in enumerate(given.members))
    name = validate_name(given.name, *path, "name") if given.name else None
    return Team(members, name, bool(given.champion))


def parse_result(match: Match, outcome: MatchOutcome, winner: int | None) -> Result:
    """A winner where somebody won, and only there."""
    if outcome is not MatchOutcome.WON:
        if winner is not None:
            message = f"A match that ended as {outcome.value} has no winner; leave `winner` out."
            raise InvalidInput(message, path=("input", "winner"))
        return Result(outcome)
    if winner is None or not 0 <= winner < len(match.teams):
        message = f"`winner` is the place of the winning team, 0 to {len(match.teams) - 1}."
        raise InvalidInput(message, path=("input", "winner"))
    return Result(outcome, winner)


def parse_picks(given: Iterable[tuple[str, int]], card: Sequence[str], matches: Mapping[str, Match]) -> dict[str, int]:
    """The picks of a submission: of matches on the card, of teams in them, one a match."""
    picks: dict[str, int] = {}
    for place, (match, team) in enumerate(given):
        path = ("input", "picks", str(place))
        if match not in card or match not in matches:
            message = "This match is not on the event's card."
            raise InvalidInput(message, path=(*path, "match"))
        if match in picks:
            message = "This match was picked already; pick one team a match."
            raise InvalidInput(message, path=(*path, "match"))
        teams = len(matches[match].teams)
        if not 0 <= team < teams:
            message = f"`team` is the place of a team in the match, 0 to {teams - 1}."
            raise InvalidInput(message, path=(*path, "team"))
        picks[match] = team
    return picks
