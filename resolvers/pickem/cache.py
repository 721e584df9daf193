"""What a process remembers of pick'em, and the locking of due events.

Events, seasons and members are read for every request. The rest cannot change: a card belongs to a version of its
event, pick counts are final once the event is locked, and a histogram belongs to a revision. Only a card is read again
after a minute: its first read may see the event's new version and not yet the match that was changed with it, while
that transaction ends. A stream then sends the event again.

An event whose start has passed is shown as locked at once, since its gates refuse predictions by the clock. The lock is
stored in the background, and the event's picks are shown only after that. So an event that cannot be locked at the
moment neither fails nor delays anything else.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeAlias, TypeVar

import structlog

from datastore.dynamo import (
    BadKey,
    BoundedDict,
    DynamoError,
    Page,
    Reads,
    SingleFlight,
    Stale,
    key_text,
    optimistic,
    optimistic_from,
    read_each,
    shared_context,
    within_deadline,
)
from datastore.pickem import events, standings
from datastore.pickem.events import Event, EventState, Match, PickCounts, SeasonEntry, read_entries
from datastore.pickem.leagues import League, LeagueMember, Membership, read_leagues, read_whole_league
from datastore.pickem.predictions import Prediction
from datastore.pickem.standings import Histogram, MemberPage, Season, Standing
from datastore.refusals import Conflict, Refusal, Unavailable
from datastore.values.ids import is_ulid
from resolvers.requests.context import Context, Services

# ── pickem cache ──

_MINUTE, _HOUR = 60.0, 3600.0
_MOST = 200
"""How many cards, counts and histograms are kept of each kind, and of how many lists the first page's members."""

_log = structlog.get_logger("ringside.pickem")


T = TypeVar("T")
Listed = TypeVar("Listed", Prediction, Standing)


@dataclass(frozen=True, slots=True)
class Entries:
    """The members of a league who have a prediction for an event, best first once it is scored."""

    positions: tuple[str, ...] = ()
    users: tuple[str, ...] = ()


class PickemCache:
    """Pick'em's reads, and the locks under way in this process."""

    def __init__(self, services: Services) -> None:
        self.patience = 0.25
        """How long a request waits for a due event to be locked; then it shows the event without its picks."""
        self._services = services
        self._locks: SingleFlight[str, Event | None] = SingleFlight(shared_context)
        self._last_members: BoundedDict[str, tuple[str, ...]] = BoundedDict(_MOST)
        cache, table = services.cache, services.table
        self.events = cache.batches("events", self._read_events)
        self.seasons: Reads[str, Season] = cache.batches("seasons", partial(standings.read_seasons, table))
        self.season_entries: Reads[str | None, Sequence[SeasonEntry]] = cache.each(
            "season_entries", partial(read_entries, table)
        )
        self.members = cache.batches("members", self._read_member_pages)
        self.cards: Reads[tuple[str, int], Mapping[str, Match]] = cache.each(
            "cards", lambda key: events.read_matches(table, key[0]), age=_MINUTE, most=_MOST
        )
        # By event and version, since removing a prediction gives the event another version too.
        self.pick_counts: Reads[tuple[str, int], PickCounts] = cache.each(
            "pick_counts", lambda key: events.read_pick_counts(table, key[0]), age=_HOUR, most=_MOST
        )
        self._event_ranks = cache.each("event_ranks", self._read_event_histogram, age=_HOUR, most=_MOST)
        self._season_ranks = cache.each("season_ranks", self._read_season_histogram, age=_HOUR, most=_MOST)

    # ── events ──

    async def _read_events(self, ids: Sequence[str]) -> Mapping[str, Event]:
        ulids = [event_id for event_id in ids if is_ulid(event_id)]
        return await events.read_events(self._services.table, ulids)

    async def shown(self, event: Event) -> Event:
        """The event as fields show it: locked from its start on, even while the lock is still being stored."""
        if not event.is_due(self._services.clock()) and not event.is_locking:
            return event
        try:
            async with asyncio.timeout(self.patience):
                return await self._locks.run(event.id, partial(self._lock, event)) or event
        except TimeoutError:
            pass
        except (DynamoError, Refusal) as error:
            _log.warning("a due event is not locked yet", pickem_event=event.id, reason=str(error))
        return replace(event, state=EventState.LOCKED)

    async def locked_if_due(self, event: Event) -> Event | None:
        """The event after the changes that are due or under way; only then may it be changed."""
        if not event.is_locking and not event.is_due(self._services.clock()):
            return event
        return await within_deadline(self._locks.run(event.id, partial(self._lock, event)))

    async def _lock(self, event: Event) -> Event | None:
        table = self._services.table

        async def read() -> Event | None:
            return (await events.read_events(table, [event.id])).get(event.id)

        async def lock(current: Event | None) -> Event | None:
            clock = self._services.clock
            if current is not None and current.is_due(clock()):
                return await events.lock_event(table, current, self._services.unit(), clock)
            if current is not None and current.is_locking:
                return await events.finish_lock(table, current, clock)
            return current

        known: Event | None = event
        return await optimistic_from(known, read, lock)

    async def close(self) -> None:
        await self._locks.close()

    # ── what cannot change ──

    async def card(self, event: Event) -> Mapping[str, Match]:
        """The matches of an event's card by id."""
        return await self.cards.load((event.id, event.version)) or {}

    # ── ranks ──

    async def event_ranks(self, event: Event) -> Histogram | None:
        """The points of an event's predictions, from its last scoring."""

        async def ranks(event: Event | None) -> Histogram | None:
            if event is None or not event.scored:
                return None
            return _not_replaced(await self._event_ranks.load((event.id, event.scored)))

        known: Event | None = event
        return await _read_again(optimistic_from(known, lambda: self.events.load(event.id), ranks, idempotent=True))

    async def season_ranks(self, name: str) -> tuple[Season, Histogram]:
        """A season and its published histogram. The season is read each time, the histogram once for each revision."""

        async def ranks(season: Season | None) -> tuple[Season, Histogram]:
            if season is None or not season.published:
                return season or Season(name), Histogram()
            return season, _not_replaced(await self._season_ranks.load((name, season.published)))

        return await _read_again(optimistic(lambda: self.seasons.load(name), ranks, idempotent=True))

    async def _read_event_histogram(self, key: tuple[str, int]) -> Histogram | None:
        return await standings.read_histogram(self._services.table, standings.event_scope(key[0]), key[1])

    async def _read_season_histogram(self, key: tuple[str, int]) -> Histogram | None:
        return await standings.read_histogram(self._services.table, standings.season_scope(key[0]), key[1])

    # ── members ──

    async def with_prefetched_profiles(self, list_name: str, reading: Awaitable[Page[Listed]]) -> Page[Listed]:
        """A list's first page. The profiles of those who were on it last time are read with it, not after it.

        Those of others are read beside what else the page waits for, such as the ranks.
        """
        profiles = self._services.profiles
        page, _ = await asyncio.gather(reading, profiles.load_many(self._last_members.pop(list_name, ())))
        users = self._last_members[list_name] = tuple(record.user for record in page.nodes)
        await profiles.load_many(users)
        return page

    async def _read_member_pages(
        self, keys: Sequence[tuple[str, int | None]]
    ) -> Mapping[tuple[str, int | None], MemberPage | Exception]:
        """Pages by member and number of predictions; None for the standings alone. Each member is read once."""
        sizes: dict[str, list[int]] = {}
        for user, size in keys:
            sizes.setdefault(user, []).extend([] if size is None else [size])
        pages = await read_each(list(sizes), lambda user: self._read_member_page(user, sizes[user]))
        return {(user, size): pages[user] for user, size in keys}

    async def _read_member_page(self, user: str, sizes: Sequence[int]) -> MemberPage:
        if not sizes:
            return MemberPage(await standings.read_member_standings(self._services.table, user), ())
        return await standings.read_member_page(self._services.table, user, max(sizes))


def _not_replaced(histogram: Histogram | None) -> Histogram:
    """Stale if it was deleted, since a newer one was published after its number was read."""
    if histogram is None:
        raise Stale
    return histogram


async def _read_again(ranks: Awaitable[T]) -> T:
    """Ranks that are always replaced before they are read are UNAVAILABLE: who reads them has changed nothing."""
    try:
        return await ranks
    except Conflict as refused:
        raise Unavailable(retry_after=refused.retry_after) from None


def pickem_cache(ctx: Context) -> PickemCache:
    return ctx.services.get(PickemCache)


async def load_locked_if_due(services: Services, event_id: str) -> Event | None:
    """The current event, to be changed: locked if it has begun, with no other change under way."""
    cache = services.get(PickemCache)
    event = await cache.events.load(event_id)
    return None if event is None else await cache.locked_if_due(event)


# ── league cache ──
# What a process remembers of leagues.
#
# A league and the viewer's place in it are read for every request, and the season's revision with them: a league's
# id holds its season, so that need not be looked up first. What depends on them is remembered for a revision of the
# league and of the season: the members, and their standings, which are the season's own. So a change is seen at the
# next request; what was read while members came and went is read again after a minute at the latest.

_LEAGUES = 64
"""How many leagues' members are remembered: at most 100 kB each."""
_KNOWN = 10_000
"""How many leagues this process remembers to have read with their members."""


LeagueKey: TypeAlias = tuple[str, str | None]
"""A league's id, and the member who looks at it."""


class RosterKey(NamedTuple):
    """A league and the revision of its members."""

    league: str
    revision: int


class LeagueRecords(NamedTuple):
    """A league, a viewer's place in it, and its season as it was read with it."""

    league: League
    place: LeagueMember | None
    season: Season


class LeagueCache:
    """The leagues' reads."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._known: BoundedDict[str, None] = BoundedDict(_KNOWN)
        self.leagues = services.cache.batches("leagues", self._read_leagues)
        self.rosters = services.cache.each("league_members", self._read_roster, age=_MINUTE, most=_LEAGUES)

    async def _read_leagues(self, keys: Sequence[LeagueKey]) -> Mapping[LeagueKey, LeagueRecords]:
        valid = [key for key in keys if is_league_id(key[0])]
        leagues = {league for league, _ in valid}
        if len(leagues) == 1 and not leagues & self._known.keys():
            return await self._read_new(valid)
        return await self._read_many(valid) if valid else {}

    async def _read_many(self, keys: Sequence[LeagueKey]) -> Mapping[LeagueKey, LeagueRecords]:
        """In one batch: the leagues, the viewers' places in them, and the seasons."""
        seasons = sorted({season_of(league) for league, _ in keys})
        records, revisions = await read_leagues(self._services.table, keys, seasons)
        return {
            key: LeagueRecords(record[0], record[1], revisions.get(record[0].season, Season(record[0].season)))
            for key, record in zip(keys, records, strict=True)
            if record is not None
        }

    async def _read_new(self, keys: Sequence[LeagueKey]) -> Mapping[LeagueKey, LeagueRecords]:
        """A league that this process has not read before, with its members: that saves its first page a round trip."""
        league, season = keys[0][0], season_of(keys[0][0])
        found, seasons = await asyncio.gather(
            self._read_whole(league), standings.read_seasons(self._services.table, [season])
        )
        if found is None:
            return {}
        record, members = found
        return {
            key: LeagueRecords(record, members.get(key[1] or ""), seasons.get(season, Season(season))) for key in keys
        }

    async def _read_whole(self, league_id: str) -> tuple[League, Mapping[str, LeagueMember]] | None:
        found = await read_whole_league(self._services.table, league_id)
        if found is None:
            return None
        league, members = found
        self._known[league.id] = None
        roster = _roster(members)
        if len(roster) == league.members:  # else somebody joined or left during the read
            self.rosters.put(RosterKey(league.id, league.revision), roster)
        return league, {member.user: member for member in members}

    async def _read_roster(self, key: RosterKey) -> Sequence[str]:
        found = await read_whole_league(self._services.table, key.league)
        return _roster(found[1]) if found else ()


def league_id(ulid: str, season: str) -> str:
    """The id of a new league. It names the season, which never changes."""
    return f"{ulid}:{season}"


def season_of(league: str) -> str:
    return league.partition(":")[2]


def is_league_id(text: str) -> bool:
    try:
        key_text(season_of(text))
    except BadKey:
        return False
    return is_ulid(text.partition(":")[0])


def _roster(members: Sequence[LeagueMember]) -> tuple[str, ...]:
    """The ids of those who are members, not of those who are waiting."""
    return tuple(member.user for member in members if member.membership is not Membership.WAITING)


def league_cache(ctx: Context) -> LeagueCache:
    return ctx.services.get(LeagueCache)
