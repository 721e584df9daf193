"""What a process keeps of pick'em, and the locks it is at.

Everything here is either read anew each time or cannot change: a card is kept by its event's version, the counts of
picks once the event is locked, a histogram by its revision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime

from datastore.dynamo.budgets import unhurried
from datastore.ids import is_ulid
from datastore.pickem import events as stored
from datastore.pickem import histograms, standings
from datastore.pickem.events import Event, Match, VersionConflict
from datastore.pickem.histograms import Histogram
from datastore.pickem.standings import MemberPage, Season
from datastore.receipts import Once
from datastore.refusals import Unavailable
from resolvers.context import Context, Services
from resolvers.loading.fresh import Together
from resolvers.loading.loader import Kept

_AN_HOUR = 3600.0
_CARDS = 200
_HISTOGRAMS = 200
_PUBLICATIONS = 5
"""How many histograms may be published between two reads before somebody is told to come back."""


class Pickem:
    """The process's share of pick'em."""

    def __init__(self, services: Services) -> None:
        self._house = services
        self.events: Together[str, Event] = Together(self.events_now)
        self.seasons: Together[str, Season] = Together(self._seasons)
        self.members: Together[tuple[str, int | None], MemberPage] = Together(self._member_pages)
        self.cards: Kept[tuple[str, int], Mapping[str, Match]] = Kept(self._cards, seconds=_AN_HOUR, most=_CARDS)
        self.picked: Kept[str, Mapping[str, int]] = Kept(self._picked, seconds=_AN_HOUR, most=_CARDS)
        self._events_ranks: Kept[tuple[str, int], Histogram] = Kept(
            self._event_histograms, seconds=_AN_HOUR, most=_HISTOGRAMS
        )
        self._season_ranks: Kept[tuple[str, int], Histogram] = Kept(
            self._season_histograms, seconds=_AN_HOUR, most=_HISTOGRAMS
        )
        self._locking: dict[str, asyncio.Task[Event | None]] = {}

    # ── events, as they are at this moment ──

    async def events_now(self, ids: Sequence[str]) -> Mapping[str, Event]:
        found = await stored.events_by_id(self._house.table, [id_ for id_ in ids if is_ulid(id_)])
        return await self.settled(found)

    async def event_now(self, id_: str) -> Event | None:
        return (await self.events_now([id_])).get(id_)

    async def settled(self, found: Mapping[str, Event]) -> Mapping[str, Event]:
        """The same events, those whose time has come locked: nobody is shown a lock that the gates do not know."""
        now = self._house.clock()
        due = [event for event in found.values() if event.is_due(now)]
        if not due:
            return found
        locked = await asyncio.gather(*(self._lock(event) for event in due))
        return {**found, **{event.id: event for event in locked if event is not None}}

    async def _lock(self, event: Event) -> Event | None:
        """Locks an event once per process, however many look at it."""
        task = self._locking.get(event.id)
        if task is None:
            task = self._locking[event.id] = asyncio.get_running_loop().create_task(self._locked(event))
            task.add_done_callback(lambda _: self._locking.pop(event.id, None))
        return await asyncio.shield(task)

    async def _locked(self, event: Event) -> Event | None:
        with unhurried():
            current: Event | None = event
            while current is not None and current.is_due(now := self._house.clock()):
                try:
                    after = current.locked(now)
                    await stored.change_event(self._house.table, current, after, unasked(now), after)
                except VersionConflict:
                    current = (await stored.events_by_id(self._house.table, [event.id])).get(event.id)
                else:
                    return after
            return current

    # ── what does not change ──

    async def card(self, event: Event) -> Mapping[str, Match]:
        """The matches of an event's card by id."""
        return await self.cards.load((event.id, event.version)) or {}

    async def _cards(self, keys: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], Mapping[str, Match]]:
        found = await asyncio.gather(*(stored.matches_of(self._house.table, event) for event, _ in keys))
        return dict(zip(keys, found, strict=True))

    async def _picked(self, events: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
        found = await asyncio.gather(*(self._picked_at(event) for event in events))
        return dict(zip(events, found, strict=True))

    async def _picked_at(self, event: str) -> Mapping[str, int]:
        sums: dict[str, int] = {}
        for gate in await stored.gates_of(self._house.table, event):
            for name, number in gate.picked.items():
                sums[name] = sums.get(name, 0) + number
        return sums

    # ── ranks ──

    async def ranks_of_event(self, event: Event) -> Histogram | None:
        """The event's points, of the generation that was scored last."""
        return None if event.scored is None else await self._events_ranks.load((event.id, event.scored))

    async def ranks_of_season(self, name: str) -> tuple[Season, Histogram]:
        """A season and the histogram that counts: asked for each time, read when it is another."""
        for _ in range(_PUBLICATIONS):
            season = await self.seasons.load(name) or Season(name)
            if not season.published:
                return season, Histogram()
            key = (name, season.published)
            histogram = await self._season_ranks.load(key)
            if histogram is not None:
                return season, histogram
            self._season_ranks.forget(key)  # a newer one was published meanwhile, and this one removed
        raise Unavailable(retry_after=1.0)

    async def _seasons(self, names: Sequence[str]) -> Mapping[str, Season]:
        return await standings.seasons_by_name(self._house.table, names)

    async def _event_histograms(self, keys: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], Histogram]:
        table = self._house.table
        found = await asyncio.gather(*(histograms.stored(table, scope_of_event(event), at) for event, at in keys))
        return {key: one for key, one in zip(keys, found, strict=True) if one is not None}

    async def _season_histograms(self, keys: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], Histogram]:
        table = self._house.table
        found = await asyncio.gather(*(standings.histogram_of_season(table, name, at) for name, at in keys))
        return {key: one for key, one in zip(keys, found, strict=True) if one is not None}

    # ── members ──

    async def _member_pages(
        self, keys: Sequence[tuple[str, int | None]]
    ) -> Mapping[tuple[str, int | None], MemberPage]:
        """Standings (None) and first pages of predictions (how many) of members, one read a member."""
        wanted: dict[str, list[int | None]] = {}
        for user, size in keys:
            wanted.setdefault(user, []).append(size)
        pages = await asyncio.gather(*(self._member_page(user, sizes) for user, sizes in wanted.items()))
        by_user = dict(zip(wanted, pages, strict=True))
        return {(user, size): by_user[user] for user, size in keys}

    async def _member_page(self, user: str, sizes: Sequence[int | None]) -> MemberPage:
        largest = max((size for size in sizes if size is not None), default=None)
        if largest is None:
            return MemberPage(await standings.standings_of_user(self._house.table, user), ())
        return await standings.member_page(self._house.table, user, largest)


def scope_of_event(event: str) -> str:
    return f"EVENT:{event}"


def unasked(now: datetime) -> Once:
    """A change that nobody asked for with a key: a lock, the end of a scoring."""
    return Once("", None, "", now)


def pickem_of(ctx: Context) -> Pickem:
    return ctx.services.get(Pickem)


async def event_of(ctx: Context, id_: str) -> Event | None:
    """An event as it is now, locked if its time has come."""
    return await pickem_of(ctx).events.load(id_)
