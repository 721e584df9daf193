"""Leagues: members of a season who are ranked among themselves.

| wanted                            | read or write                                                     | requests |
|-----------------------------------|-------------------------------------------------------------------|----------|
| a league, and the viewer's place  | BatchGetItem LEAGUE#<id> LEAGUE, MEMBER#<user>, consistent        | 1        |
| a league with all its members     | Query LEAGUE#<id>, consistent                                     | 1        |
| a page of its members             | Query LEAGUE#<id> MEMBER#, consistent                             | 1        |
| the league of a code              | GetItem LEAGUECODE#<code> CODE, consistent                        | 1        |
| a member's leagues                | GetItem LEAGUES#<user> LEAGUES, consistent; BatchGetItem          | 2        |
| join                              | transaction: league (room, code), member, the member's leagues    | 1        |
| admit, leave, remove, a new code  | transaction: league, the members concerned, the captain's place   | 1        |
| delete                            | transaction: league, code; Query; members by 25; captains, league | 2, n, 1  |

The league's item counts its members, so the transaction that adds one is refused above the limit. It is written by
each join and by nothing else that happens often: a join takes 2 of its key's 1,000 write units for each of two items.
A member's leagues are one item too, which holds the limit per member.

A league holds no points: its standings are those of the season, for the members that it has.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from datastore.changes.occurrences import Kind
from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import ConditionFailed, Page, Stale, Table, Window
from datastore.dynamo.entity import Entity, ItemKey, Key
from datastore.dynamo.writes import ALWAYS, Condition, Write, absent, among, less, more, present, where
from datastore.pickem.standings import SEASON, Season
from datastore.refusals import Conflict, NotAllowed, NotFound

# ── records ──


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
MEMBER_LEAGUES = Entity(MemberLeagues, Key("LEAGUES#{user}", "LEAGUES"))


# ── leagues ──

MOST_MEMBERS = 1000
MOST_CAPTAINS = 20
"""So that a league and its captains can be deleted in one transaction."""
MOST_WAITING = 1000
MOST_LEAGUES = 50
_ONLY_CAPTAINS = "Only a captain of the league may do this."


# ── reading ──


async def read_leagues(
    table: Table, wanted: Sequence[tuple[str, str | None]], seasons: Sequence[str] = ()
) -> tuple[list[tuple[League, LeagueMember | None] | None], Mapping[str, Season]]:
    """Leagues that exist, each with a user's place in it, and seasons, in one consistent batch."""
    keys: list[ItemKey[Any]] = [LEAGUE.at(id=league) for league, _ in wanted]
    keys += [LEAGUE_MEMBER.at(league=league, user=user) for league, user in wanted if user is not None]
    keys += [SEASON.at(season=season) for season in seasons]
    records = iter(await table.get_many(keys, consistent=True))
    leagues = [next(records) for _ in wanted]
    places = [next(records) if user is not None else None for _, user in wanted]
    found = [
        (league, place) if league is not None and league.deleted_at is None else None
        for league, place in zip(leagues, places, strict=True)
    ]
    return found, {season.season: season for season in records if season is not None}


async def read_league(table: Table, league: str) -> League | None:
    """Also one that is being deleted."""
    return await table.get(LEAGUE.at(id=league), consistent=True)


async def read_place(table: Table, league: str, user: str) -> LeagueMember | None:
    return await table.get(LEAGUE_MEMBER.at(league=league, user=user), consistent=True)


async def read_whole_league(table: Table, league: str) -> tuple[League, list[LeagueMember]] | None:
    """A league and all its members, waiting ones too, in one consistent Query."""
    whole, at_once = LEAGUE.collection(id=league), MOST_MEMBERS + MOST_WAITING + 1
    records = table.iterate(whole, LEAGUE, LEAGUE_MEMBER, consistent=True, at_once=at_once)
    match [record async for record in records]:
        case [League(deleted_at=None) as found, *members]:
            return found, members
    return None


async def read_members(table: Table, league: str, window: Window, *, with_waiting: bool) -> Page[LeagueMember]:
    """In the order of the members' ids."""
    shown = ALWAYS if with_waiting else among("membership", Membership.CAPTAIN, Membership.MEMBER)
    members = LEAGUE_MEMBER.on(league=league).where(shown)
    return await table.page([members], window.open(f"members:{league}:{with_waiting}"), consistent=True)


async def read_league_of_code(table: Table, code: str) -> str | None:
    found = await table.get(LEAGUE_CODE.at(code=code), consistent=True)
    return found.league if found else None


async def read_member_leagues(table: Table, user: str) -> MemberLeagues:
    return await table.get(MEMBER_LEAGUES.at(user=user), consistent=True) or MemberLeagues(user)


async def delete_member_leagues(table: Table, own: MemberLeagues) -> None:
    """Delete an empty list; Stale if the member has joined a league since: only the list leads to it."""
    if own.version and not await table.try_write(
        MEMBER_LEAGUES.delete(MEMBER_LEAGUES.item_key(own), when=where(version=own.version))
    ):
        raise Stale


def all_leagues(table: Table) -> AsyncIterator[League | LeagueMember | LeagueCode | MemberLeagues]:
    """Every league, member, code and member's list of leagues, in the order of the table; for audits."""
    return table.scan(LEAGUE, LEAGUE_MEMBER, LEAGUE_CODE, MEMBER_LEAGUES, consistent=True)


# ── joining ──


async def create_league(
    table: Table, league: League, captain: LeagueMember, own: MemberLeagues, unit: UnitOfWork, answer: Any
) -> None:
    """Create a league with its first captain. Stale if the captain's leagues have changed, or its code is taken."""
    code = [] if league.code is None else [_code(league)]
    writes: list[Write] = [LEAGUE.put(league, when=absent()), LEAGUE_MEMBER.put(captain), _with_league(own, league)]
    try:
        await unit.transact(table, answer, *writes, *code, *_occurred(unit, Kind.LEAGUE_CREATED, league.id))
    except ConditionFailed as failed:
        if not failed.at(0):  # applied by an earlier attempt whose answer was lost: the id is new
            raise Stale from None


def _occurred(unit: UnitOfWork, kind: Kind, league: str) -> tuple[Write, ...]:
    return unit.occurred(kind, f"League:{league}")


def _code(league: League) -> Write:
    return LEAGUE_CODE.put(LeagueCode(league.code or "", league.id), when=absent())


def _with_league(own: MemberLeagues, league: League) -> Write:
    return _put_leagues(own, {**own.leagues, league.id: league.season})


def _without_league(own: MemberLeagues, gone: str) -> Write:
    return _put_leagues(own, {league: season for league, season in own.leagues.items() if league != gone})


def _put_leagues(own: MemberLeagues, leagues: dict[str, str]) -> Write:
    after = replace(own, leagues=leagues, version=own.version + 1)
    return MEMBER_LEAGUES.put(after, when=where(version=own.version) if own.version else absent())


async def join_league(
    table: Table, league: League, member: LeagueMember, own: MemberLeagues, unit: UnitOfWork, answer: Any
) -> None:
    """Add a member, or let them wait. Refused above the limits, for members, and with a code that has just changed."""
    counter = _counter(member)
    most = MOST_WAITING if counter == "waiting" else MOST_MEMBERS
    admits = _exists() & less(counter, most) & where(code=league.code)
    writes: list[Write] = [
        LEAGUE.update(LEAGUE.at(id=league.id), add=_counts(member, 1), when=admits),
        LEAGUE_MEMBER.put(member, when=absent()),
        _with_league(own, league),
    ]
    try:
        await unit.transact(table, answer, *writes, *_occurred(unit, Kind.LEAGUE_JOINED, league.id))
    except ConditionFailed as failed:
        if failed.at(1):
            _refuse_second_join(failed, member)
        elif failed.at(0):
            raise _no_admission(failed) from None
        else:
            raise Stale from None


def _counter(place: LeagueMember) -> str:
    return "waiting" if place.membership is Membership.WAITING else "members"


def _counts(place: LeagueMember, change: int) -> dict[str, int]:
    """How a league changes with one place more or less. Somebody who waits is no member, so the revision stays."""
    counter = _counter(place)
    return {counter: change} if counter == "waiting" else {counter: change, "revision": 1}


def _exists() -> Condition:
    return present() & absent("deleted_at")


def _refuse_second_join(failed: ConditionFailed, member: LeagueMember) -> None:
    place = failed.stored(LEAGUE_MEMBER, 1)
    if place is not None and place.token == member.token:
        return  # applied by an earlier attempt whose answer was lost
    if place is not None and place.membership is Membership.WAITING:
        raise Conflict("You have already asked to join this league; a captain decides.") from None
    raise Conflict("You are already a member of this league.") from None


def _no_admission(failed: ConditionFailed) -> Conflict | NotFound:
    league = failed.stored(LEAGUE)
    if league is None or league.deleted_at is not None:
        return NotFound("There is no such league any more.")
    if league.members >= MOST_MEMBERS:
        return Conflict(f"This league is full: it has {MOST_MEMBERS:,} members.")
    if league.waiting >= MOST_WAITING:
        return Conflict(f"{MOST_WAITING:,} members are already waiting for this league. Try again later.")
    return NotFound("The code of this league has just changed. Ask a captain for the new one.")


# ── changing ──


async def admit(
    table: Table, captain: LeagueMember, before: LeagueMember, after: LeagueMember, unit: UnitOfWork, answer: Any
) -> None:
    """As a captain, change a member's place in a league. Conflict if the place of either has changed."""
    counts, room = {"revision": 1}, _exists()
    if before.membership is Membership.WAITING:
        counts |= {"members": 1, "waiting": -1}
        room &= less("members", MOST_MEMBERS)
    if after.membership is Membership.CAPTAIN:
        counts["captains"] = 1
        room &= less("captains", MOST_CAPTAINS)
    changes = {"membership": after.membership, "since": after.since, "token": after.token}
    writes: list[Write] = [
        LEAGUE.update(LEAGUE.at(id=before.league), add=counts, when=room),
        LEAGUE_MEMBER.update(LEAGUE_MEMBER.item_key(before), values=changes, when=where(membership=before.membership)),
        _as_captain(captain),
    ]
    try:
        await unit.transact(table, answer, *writes, *_occurred(unit, Kind.LEAGUE_ADMITTED, before.league))
    except ConditionFailed as failed:
        if (stored := failed.stored(LEAGUE_MEMBER, 1)) is not None and stored.token == after.token:
            return  # applied by an earlier attempt whose answer was lost
        raise _not_admitted(failed) from None


def _as_captain(captain: LeagueMember) -> Write:
    return LEAGUE_MEMBER.check(LEAGUE_MEMBER.item_key(captain), where(membership=Membership.CAPTAIN))


def _not_admitted(failed: ConditionFailed) -> Conflict | NotAllowed:
    if failed.at(2):
        return NotAllowed(_ONLY_CAPTAINS)
    league = None if failed.at(1) else failed.stored(LEAGUE)
    if league is not None and league.members >= MOST_MEMBERS:
        return Conflict(f"This league is full: it has {MOST_MEMBERS:,} members.")
    if league is not None and league.captains >= MOST_CAPTAINS:
        return Conflict(f"A league has at most {MOST_CAPTAINS} captains.")
    return Conflict()


async def leave(
    table: Table, place: LeagueMember, successor: str | None, own: MemberLeagues, unit: UnitOfWork, answer: Any
) -> None:
    """Take a member out of a league; a successor becomes captain in the same transaction, or is one already."""
    counts = _counts(place, -1)
    if place.membership is Membership.CAPTAIN and successor is None:
        counts["captains"] = -1
    stays = _exists() & more("captains", 1) if "captains" in counts else _exists()
    writes: list[Write] = [
        LEAGUE.update(LEAGUE.at(id=place.league), add=counts, when=stays),
        LEAGUE_MEMBER.delete(LEAGUE_MEMBER.item_key(place), when=where(membership=place.membership)),
        _without_league(own, place.league),
    ]
    if successor is not None:
        key = LEAGUE_MEMBER.at(league=place.league, user=successor)
        promoted = {"membership": Membership.CAPTAIN}
        writes.append(LEAGUE_MEMBER.update(key, values=promoted, when=where(membership=Membership.MEMBER)))
    try:
        await unit.transact(table, answer, *writes, *_occurred(unit, Kind.LEAGUE_LEFT, place.league))
    except ConditionFailed as failed:
        if failed.doubtful and failed.at(1) and failed.stored(LEAGUE_MEMBER, 1) is None:
            return  # applied by an earlier attempt whose answer was lost
        heir = failed.stored(LEAGUE_MEMBER, 3)
        if successor is None or heir is None or heir.membership is not Membership.CAPTAIN:
            raise _not_left(failed) from None
        await leave(table, place, None, own, unit, answer)  # as one captain of several


def _not_left(failed: ConditionFailed) -> Conflict | NotFound | Stale:
    if failed.at(1) or failed.at(2):
        return Stale()
    if failed.at(3):
        return Conflict("The successor is not a member of this league.", path=("input", "successor"))
    if (league := failed.stored(LEAGUE)) is None or league.deleted_at is not None:
        return NotFound(path=("input", "league"))
    return Conflict(
        "You are the league's last captain: name a successor among its members, or delete the league.",
        path=("input", "successor"),
    )


async def remove(
    table: Table, captain: LeagueMember, place: LeagueMember, own: MemberLeagues, unit: UnitOfWork, answer: Any
) -> None:
    """As a captain, take somebody who is no captain out of a league. Stale if their place has changed."""
    writes: list[Write] = [
        LEAGUE.update(LEAGUE.at(id=place.league), add=_counts(place, -1), when=_exists()),
        LEAGUE_MEMBER.delete(LEAGUE_MEMBER.item_key(place), when=where(membership=place.membership)),
        _without_league(own, place.league),
        _as_captain(captain),
    ]
    occurred = _occurred(unit, Kind.LEAGUE_MEMBER_REMOVED, place.league)
    try:
        await unit.transact(table, answer, *writes, *occurred)
    except ConditionFailed as failed:
        if failed.doubtful and failed.at(1) and failed.stored(LEAGUE_MEMBER, 1) is None:
            return  # applied by an earlier attempt whose answer was lost
        if failed.at(3):
            raise NotAllowed(_ONLY_CAPTAINS) from None
        raise Stale from None


async def rotate_code(
    table: Table, captain: LeagueMember, before: League, after: League, unit: UnitOfWork, answer: Any
) -> None:
    """Give a league another code; the old one admits nobody any more. Stale if the code belongs to another league."""
    writes = [
        LEAGUE.update(LEAGUE.at(id=after.id), values={"code": after.code}, when=_exists() & where(code=before.code)),
        _as_captain(captain),
        LEAGUE_CODE.delete(LEAGUE_CODE.at(code=before.code)),
        _code(after),
    ]
    try:
        await unit.transact(table, answer, *writes, *_occurred(unit, Kind.LEAGUE_CODE_CHANGED, after.id))
    except ConditionFailed as failed:
        if (stored := failed.stored(LEAGUE)) is not None and stored.code == after.code:
            return  # applied by an earlier attempt whose answer was lost
        if failed.at(0) or failed.at(1):
            raise _not_changed(failed) from None
        raise Stale from None


def _not_changed(failed: ConditionFailed) -> Conflict | NotAllowed:
    """Why a change failed: at the second write, the check of the captain, or at the first."""
    return NotAllowed(_ONLY_CAPTAINS) if failed.at(1) else Conflict()


# ── deleting ──


async def delete_league(table: Table, captain: LeagueMember, league: League, unit: UnitOfWork, answer: Any) -> None:
    """Delete a league and its members. From the first write on it is gone for everybody; a repeat does the rest.

    The lists of its members' leagues keep its id; nobody sees that. A list that forgets it ends the deletion first.
    """
    if league.deleted_at is None:
        same_code = _exists() & where(code=league.code)
        gone = LEAGUE.update(LEAGUE.at(id=league.id), values={"deleted_at": unit.now, "code": None}, when=same_code)
        code = [] if league.code is None else [LEAGUE_CODE.delete(LEAGUE_CODE.at(code=league.code))]
        occurred = _occurred(unit, Kind.LEAGUE_DELETED, league.id)
        await _delete_first(table, unit, gone, _as_captain(captain), *code, *occurred)
    await _delete_rest(table, league.id, unit, answer)


async def end_deletion(table: Table, league: str, unit: UnitOfWork) -> None:
    """Delete what is left of a league whose deletion was begun, perhaps by a process that was killed."""
    left = await read_league(table, league)
    if left is None or left.deleted_at is not None:
        await _delete_rest(table, league, unit, None)


async def _delete_rest(table: Table, league: str, unit: UnitOfWork, answer: Any) -> None:
    everybody = [member async for member in table.iterate(LEAGUE_MEMBER.on(league=league), consistent=True)]
    keys = {member.user: LEAGUE_MEMBER.item_key(member) for member in everybody}
    captains = [member.user for member in everybody if member.membership is Membership.CAPTAIN]
    await table.write_many(LEAGUE_MEMBER.delete(keys[user]) for user in keys.keys() - set(captains))
    ends = [LEAGUE_MEMBER.delete(keys[user]) for user in captains]
    await unit.transact(table, answer, LEAGUE.delete(LEAGUE.at(id=league)), *ends)


async def _delete_first(table: Table, unit: UnitOfWork, *writes: Write) -> None:
    try:
        await unit.apply(table, *writes)
    except ConditionFailed as failed:
        stored = failed.stored(LEAGUE)
        if failed.doubtful and stored is not None and stored.deleted_at is not None:
            return  # applied by an earlier attempt whose answer was lost
        raise _not_changed(failed) from None


async def drop_leagues(table: Table, own: MemberLeagues, gone: Collection[str]) -> MemberLeagues:
    """A member's leagues without those that were deleted."""
    rest = {league: season for league, season in own.leagues.items() if league not in gone}
    try:
        await table.transact(_put_leagues(own, rest))
    except ConditionFailed:
        raise Stale from None
    return replace(own, leagues=rest, version=own.version + 1)
