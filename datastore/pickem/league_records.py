"""The records of leagues: a league, its members, its code, and the leagues of a member."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key


class Entry(StrEnum):
    OPEN = "OPEN"
    CODE = "CODE"
    APPROVAL = "APPROVAL"


class Membership(StrEnum):
    CAPTAIN = "CAPTAIN"
    MEMBER = "MEMBER"
    WAITING = "WAITING"


@dataclass(frozen=True, slots=True)
class League:
    """`members` counts captains too, and not those who are waiting. `revision` counts the changes of its members."""

    id: str
    name: str
    season: str
    entry: Entry
    created_at: datetime
    code: str | None = None
    members: int = 0
    captains: int = 0
    waiting: int = 0
    revision: int = 0
    deleted_at: datetime | None = None

    @property
    def node_key(self) -> str:
        return self.id

    @property
    def is_private(self) -> bool:
        return self.entry is not Entry.OPEN


@dataclass(frozen=True, slots=True)
class LeagueMember:
    """A member's place in a league. `token` names the request that wrote it."""

    league: str
    user: str
    membership: Membership
    since: datetime
    token: str


@dataclass(frozen=True, slots=True)
class LeagueCode:
    """The code that admits to a league; it is gone as soon as the league has another one."""

    code: str
    league: str


@dataclass(frozen=True, slots=True)
class MemberLeagues:
    """The leagues of a member with their seasons, also those where they are waiting. Deleted ones may remain."""

    user: str
    leagues: dict[str, str] = field(default_factory=dict)
    version: int = 0


LEAGUE = Entity(League, Key("LEAGUE#{id}", "LEAGUE"))
LEAGUE_MEMBER = Entity(LeagueMember, Key("LEAGUE#{league}", "MEMBER#{user}"))
LEAGUE_CODE = Entity(LeagueCode, Key("LEAGUECODE#{code}", "CODE"))
MEMBER_LEAGUES = Entity(MemberLeagues, Key("USER#{user}", "LEAGUES"))
