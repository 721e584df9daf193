"""Leagues: who belongs to one.

A mutation's answer has only what everybody sees, and is read again before it shows more. So an old receipt shows
nothing to somebody who has left.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, TypeVar

from datastore.dynamo import Page, Rate, Window, optimistic
from datastore.people.address_use import AddressUse, reserve
from datastore.people.profiles import Profile
from datastore.pickem import leagues
from datastore.pickem.leagues import Entry, League, LeagueMember, MemberLeagues, Membership
from datastore.refusals import Conflict, InvalidInput, NotAllowed, NotFound, RateLimited
from resolvers.loading import batched
from resolvers.people.visibility import ShownProfile, authors
from resolvers.pickem import rules, visibility
from resolvers.pickem.cache import is_league_id, league_cache, league_id
from resolvers.pickem.rules import new_code, parse_code
from resolvers.requests.address_limits import address_hash
from resolvers.requests.context import Context, NodeOf, UserId
from resolvers.values.node_ids import node_id
from resolvers.values.texts import parse_line

# ── answers ──

A = TypeVar("A")
LeagueId = Annotated[str, NodeOf("League")]
LONGEST_NAME = 80
_KIND = "CODES"
PER_MEMBER = Rate(30, 3600)
PER_ADDRESS = Rate(1000, 3600)
TRIES = "60/minute"
"""By a member, those that are refused included, per process: a refusal takes a call to the table, too."""


@dataclass(frozen=True, slots=True)
class Joined:
    """The answer to joining a league."""

    league: visibility.ShownLeague
    membership: Membership


@dataclass(frozen=True, slots=True)
class Admitted:
    """The answer to admitting a member."""

    league: visibility.ShownLeague
    member: visibility.ShownLeagueMember


# ── reading ──


async def league(
    ctx: Context,
    /,
    *,
    id: LeagueId | None = None,  # noqa: A002 - the argument's public name
    code: str | None = None,
) -> visibility.LeagueView | None:
    if (id is None) == (code is None):
        raise InvalidInput("Ask for a league by its id or by its code.", path=("id",))
    if code is None:
        return None if id is None else await visibility.load_league(ctx, id)
    ctx.member()
    return await _league_of_code(ctx, code)


async def _league_of_code(ctx: Context, text: str) -> visibility.LeagueView | None:
    """The league of a code; each call counts as an attempt. An old code of the league finds nothing."""
    await admit_attempt(ctx)
    code = parse_code(text)
    coded = await leagues.read_league_of_code(ctx.table, code) if code else None
    found = await visibility.load_league(ctx, coded) if coded else None
    return found if found is not None and found.code == code else None


async def admit_attempt(ctx: Context) -> None:
    """Count the use of a code; RateLimited if the member or their network address has used too many.

    In this order: what a member is refused does not count for the address, which others have too.
    """
    seal, member = ctx.services.seal, ctx.member()
    ctx.services.rates.hit(TRIES, "league codes", member.id)
    subjects = [(seal.keyed_hash("member's codes", member.id.encode()).hex(), PER_MEMBER)]
    if ctx.address:
        subjects.append((address_hash(seal, ctx.address), PER_ADDRESS))
    for subject, rate in subjects:
        await _admit(ctx, subject, rate)


async def _admit(ctx: Context, subject: str, rate: Rate) -> None:
    period, elapsed = divmod(ctx.now().timestamp(), rate.seconds)
    expires = datetime.fromtimestamp((int(period) + 2) * rate.seconds, UTC)
    use = AddressUse(subject, _KIND, int(period), expires=expires)
    admitted, _ = await reserve(ctx.table, use, 1, rate.limit)
    if not admitted:
        raise RateLimited(
            "Too many codes were tried. Ask a captain of the league for its code, and try again later.",
            retry_after=float(rate.seconds - int(elapsed)),
        )


@batched
async def league_member_users(ctx: Context, members: Sequence[visibility.ShownLeagueMember], /) -> list[ShownProfile]:
    return await authors(ctx, [member.user for member in members])


async def user_leagues(
    ctx: Context, profile: Profile, /, *, season: str | None = None, window: Window
) -> Page[visibility.LeagueView]:
    """The member's own leagues, newest first; none for others."""
    season = None if season is None else rules.validate_season(season, "season")
    request = window.open(f"leagues:{profile.user}:{season}")
    ids: list[str] = []
    if ctx.viewer.is_user(profile.user):
        own = await leagues.read_member_leagues(ctx.table, profile.user)
        ids = sorted((league for league, of in own.leagues.items() if season in (None, of)), reverse=True)
    records = await league_cache(ctx).leagues.load_many([(each, profile.user) for each in ids])
    found = [(each.league.id, visibility.show_league(each)) for each in records if each is not None]
    rest = [item for item in found if request.position is None or item[0] < request.position]
    page: Page[visibility.LeagueView] = Page.cut(rest[: request.wanted], request)
    return page


# ── joining ──


async def create_league(ctx: Context, /, *, name: str, season: str, entry: Entry) -> visibility.ShownLeague:
    """A new league, with the viewer as its first captain."""
    member, now = ctx.member(), ctx.now()
    ctx.count_change("leagues")
    valid_season = rules.validate_season(season, "input", "season")
    empty = League(
        id=league_id(ctx.new_id(), valid_season),
        name=parse_line(name, LONGEST_NAME, "A league's name", ("input", "name")),
        season=valid_season,
        entry=entry,
        created_at=now,
        members=1,
        captains=1,
    )
    captain = LeagueMember(empty.id, member.id, Membership.CAPTAIN, now, empty.id)

    async def create(own: MemberLeagues) -> visibility.ShownLeague:
        new = replace(empty, code=new_code() if entry is Entry.CODE else None)
        await leagues.create_league(ctx.table, new, captain, own, ctx.unit, visibility.show_to_everybody(new))
        return visibility.show_to_everybody(new)

    return await _with_own_leagues(ctx, create)


async def _with_own_leagues(ctx: Context, change: Callable[[MemberLeagues], Awaitable[A]]) -> A:
    """Give the viewer one more league; tried again when their leagues change meanwhile."""

    async def with_room(own: MemberLeagues) -> A:
        return await change(await _with_room(ctx, own))

    return await optimistic(lambda: leagues.read_member_leagues(ctx.table, ctx.viewer.id), with_room)


async def _with_room(ctx: Context, own: MemberLeagues) -> MemberLeagues:
    """The member's leagues, fewer than the limit; deleted ones are dropped first."""
    most = leagues.MOST_LEAGUES
    if len(own.leagues) < most:
        return own
    ids = sorted(own.leagues)
    found, _ = await leagues.read_leagues(ctx.table, [(each, None) for each in ids])
    gone = [each for each, league in zip(ids, found, strict=True) if league is None]
    if not gone:
        raise Conflict(f"You are already in {most} leagues, which is the limit. Leave one first.")
    for each in gone:  # else nothing would lead to what is left of it
        await leagues.end_deletion(ctx.table, each, ctx.services.unit())
    return await leagues.drop_leagues(ctx.table, own, gone)


async def join_league(ctx: Context, /, *, league: LeagueId | None = None, code: str | None = None) -> Joined:
    """An OPEN league admits at once, a CODE league with its code; in an APPROVAL league one waits for a captain."""
    member, token = ctx.member(), ctx.new_id()
    ctx.count_change("leagues")
    if (league is None) == (code is None):
        raise InvalidInput("Join a league by its id or by its code.", path=("input", "league"))
    by_code = None if code is None else await _league_of_code(ctx, code)

    async def join(own: MemberLeagues) -> Joined:
        found = await _load_to_join(ctx, league) if league is not None else by_code
        if found is None:
            raise NotFound(
                "No league has this code. Ask a captain of the league for its current code.", path=("input", "code")
            )
        membership = Membership.WAITING if found.entry is Entry.APPROVAL else Membership.MEMBER
        place = LeagueMember(found.id, member.id, membership, ctx.now(), token)
        answer = Joined(visibility.show_to_everybody(found), membership)
        async with ctx.services.turn("league", found.id):
            await leagues.join_league(ctx.table, found, place, own, ctx.unit, answer)
        return answer

    return await _with_own_leagues(ctx, join)


async def load_for_change(ctx: Context, league_id: str) -> visibility.LeagueView:
    league = await visibility.load_league(ctx, league_id)
    if league is None:
        raise NotFound(path=("input", "league"))
    return league


async def _load_to_join(ctx: Context, key: str) -> visibility.LeagueView:
    found = await load_for_change(ctx, key)
    if found.entry is Entry.CODE and not found.is_member:
        raise NotAllowed("This league takes members by its code. Ask one of its captains for it.")
    return found


# ── members ──


async def admit_to_league(ctx: Context, /, *, league: LeagueId, user: UserId, captain: bool = False) -> Admitted:
    """Admit somebody who is waiting, or make a member a captain."""
    ctx.count_change("leagues")
    current, own_place = await _load_as_captain(ctx, league)
    before = await leagues.read_place(ctx.table, league, user)
    if before is None:
        raise NotFound("This member has not asked to join the league.", path=("input", "user"))
    wanted = Membership.CAPTAIN if captain else Membership.MEMBER
    answer = Admitted(visibility.show_to_everybody(current), visibility.show_to_captain(before))
    if before.membership in (Membership.CAPTAIN, wanted) or user == own_place.user:  # they are that already
        await ctx.unit.store_receipt(ctx.table, answer)
        return answer
    since = ctx.now() if before.membership is Membership.WAITING else before.since
    after = replace(before, membership=wanted, since=since, token=ctx.new_id())
    answer = replace(answer, member=visibility.show_to_captain(after))
    await leagues.admit(ctx.table, own_place, before, after, ctx.unit, answer)
    return answer


async def remove_from_league(ctx: Context, /, *, league: LeagueId, user: UserId) -> visibility.ShownLeague:
    """Turn away somebody who is waiting, or take a member out. Captains stay until they leave."""
    ctx.count_change("leagues")

    async def remove(found: tuple[visibility.LeagueView, LeagueMember]) -> visibility.ShownLeague:
        current, captain = found
        place = await leagues.read_place(ctx.table, league, user)
        if place is None:
            raise NotFound("They are neither in this league nor waiting for it.", path=("input", "user"))
        if place.membership is Membership.CAPTAIN:
            raise Conflict("Captains cannot be removed. They may leave the league themselves.", path=("input", "user"))
        own = await leagues.read_member_leagues(ctx.table, user)
        answer = visibility.show_to_everybody(current)
        await leagues.remove(ctx.table, captain, place, own, ctx.unit, answer)
        return answer

    return await optimistic(lambda: _load_as_captain(ctx, league), remove)


async def leave_league(ctx: Context, /, *, league: LeagueId, successor: UserId | None = None) -> visibility.ShownLeague:
    """Leave, or stop waiting. The last captain names a successor."""
    ctx.member()
    ctx.count_change("leagues")

    async def leave(current: visibility.LeagueView) -> visibility.ShownLeague:
        if current.place is None:
            raise Conflict("You are not a member of this league.", path=("input", "league"))
        if successor is not None:
            _validate_successor(current, successor)
        own = await leagues.read_member_leagues(ctx.table, ctx.viewer.id)
        answer = visibility.show_to_everybody(current)
        await leagues.leave(ctx.table, current.place, successor, own, ctx.unit, answer)
        return answer

    return await optimistic(lambda: load_for_change(ctx, league), leave)


def _validate_successor(league: visibility.LeagueView, successor: str) -> None:
    if not league.is_captain:
        raise InvalidInput("Only a captain names a successor.", path=("input", "successor"))
    if league.place is not None and successor == league.place.user:
        raise InvalidInput("A successor must be another member of the league.", path=("input", "successor"))


# ── captains ──


async def _load_as_captain(ctx: Context, key: str) -> tuple[visibility.LeagueView, LeagueMember]:
    ctx.member()
    current = await load_for_change(ctx, key)
    if current.place is None or not current.is_captain:
        raise NotAllowed("Only a captain of the league may do this.")
    return current, current.place


async def rotate_league_code(ctx: Context, /, *, league: LeagueId) -> visibility.ShownLeague:
    """Give the league another code. The old one admits nobody from then on."""
    ctx.count_change("leagues")

    async def rotate(found: tuple[visibility.LeagueView, LeagueMember]) -> visibility.ShownLeague:
        current, captain = found
        if current.entry is not Entry.CODE:
            raise Conflict("This league has no code: people join it without one.", path=("input", "league"))
        after = replace(current, code=new_code())
        await leagues.rotate_code(ctx.table, captain, current, after, ctx.unit, visibility.show_to_everybody(current))
        return visibility.show_to_everybody(current)

    return await optimistic(lambda: _load_as_captain(ctx, league), rotate)


async def delete_league(ctx: Context, /, *, league: LeagueId) -> str:
    """Delete a league with its members. Nobody sees it from the first write on; a repeat completes it."""
    member = ctx.member()
    ctx.count_change("leagues")
    if not is_league_id(league):
        raise NotFound(path=("input", "league"))
    stored, place = await asyncio.gather(
        leagues.read_league(ctx.table, league), leagues.read_place(ctx.table, league, member.id)
    )
    if stored is None or (stored.deleted_at is not None and place is None):
        raise NotFound(path=("input", "league"))
    if place is None or place.membership is not Membership.CAPTAIN:
        raise NotAllowed("Only a captain of the league may do this.")
    answer = node_id("League", league)
    await leagues.delete_league(ctx.table, place, stored, ctx.unit, answer)
    return answer
