"""What a process remembers of pick'em, and the locking of due events.

Events, seasons and members are read for every request. The rest cannot change: a card belongs to a version of its
event, pick counts are final once the event is locked, and a histogram belongs to a revision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from datastore import pickem as pickem_store
from datastore.dynamo import SingleFlight, shared_context
from datastore.ids import is_ulid
from datastore.pickem import Event, Histogram, Match, MemberPage, PickCounts, Season, VersionConflict
from datastore.receipts import Once
from datastore.refusals import Unavailable
from resolvers.context import Context, Services
from resolvers.loading.loader import Loader, read_each

_HOUR = 3600.0
_CARDS = 200
_HISTOGRAMS = 200
_PUBLICATIONS = 5
"""How many histograms may be published between two reads before the request is refused as UNAVAILABLE."""


class PickemCache:
    """Pick'em's loaders, and the locks under way in this process."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._locks: SingleFlight[str, Event | None] = SingleFlight(shared_context)
        add = services.loaders.add
        events: Loader[str, Event] = Loader(self._read_events, fresh=True)
        seasons: Loader[str, Season] = Loader(self._read_seasons, fresh=True)
        members: Loader[tuple[str, int | None], MemberPage] = Loader(self._read_member_pages, fresh=True)
        cards: Loader[tuple[str, int], Mapping[str, Match]] = Loader(self._read_cards, ttl=_HOUR, size=_CARDS)
        pick_counts: Loader[str, PickCounts] = Loader(self._read_pick_counts, ttl=_HOUR, size=_CARDS)
        event_ranks: Loader[tuple[str, int], Histogram] = Loader(
            self._read_event_histograms, ttl=_HOUR, size=_HISTOGRAMS
        )
        season_ranks: Loader[tuple[str, int], Histogram] = Loader(
            self._read_season_histograms, ttl=_HOUR, size=_HISTOGRAMS
        )
        self.events = add("events", events)
        self.seasons = add("seasons", seasons)
        self.members = add("members", members)
        self.cards = add("cards", cards)
        self.pick_counts = add("picked", pick_counts)
        self._event_ranks = add("event_ranks", event_ranks)
        self._season_ranks = add("season_ranks", season_ranks)

    # ── events ──

    async def _read_events(self, ids: Sequence[str]) -> Mapping[str, Event | Exception]:
        ulids = [event_id for event_id in ids if is_ulid(event_id)]
        return await self.lock_due(await pickem_store.read_events(self._services.table, ulids))

    async def lock_due(self, events: Mapping[str, Event]) -> Mapping[str, Event | Exception]:
        """The same events, with those that have begun locked: no event is shown as locked while a gate is open."""
        now = self._services.clock()
        due = [event_id for event_id, event in events.items() if event.is_due(now)]
        if not due:
            return events

        async def lock(event_id: str) -> Event | None:
            return await self._locks.run(event_id, partial(self._lock, events[event_id]))

        return {**events, **await read_each(due, lock)}

    async def _lock(self, event: Event) -> Event | None:
        table = self._services.table
        current: Event | None = event
        while current is not None and current.is_due(now := self._services.clock()):
            locked = current.locked(now)
            try:
                await pickem_store.change_event(table, current, locked, Once.unkeyed(now), locked)
            except VersionConflict:
                current = (await pickem_store.read_events(table, [event.id])).get(event.id)
            else:
                return locked
        return current

    async def close(self) -> None:
        await self._locks.close()

    # ── what cannot change ──

    async def card(self, event: Event) -> Mapping[str, Match]:
        """The matches of an event's card by id."""
        return await self.cards.load((event.id, event.version)) or {}

    async def _read_cards(
        self, keys: Sequence[tuple[str, int]]
    ) -> Mapping[tuple[str, int], Mapping[str, Match] | Exception]:
        return await read_each(keys, lambda key: pickem_store.read_matches(self._services.table, key[0]))

    async def _read_pick_counts(self, events: Sequence[str]) -> Mapping[str, PickCounts | Exception]:
        return await read_each(events, partial(pickem_store.read_pick_counts, self._services.table))

    # ── ranks ──

    async def event_ranks(self, event: Event) -> Histogram | None:
        """The points of an event's predictions, from its last scoring."""
        return None if event.scored is None else await self._event_ranks.load((event.id, event.scored))

    async def season_ranks(self, name: str) -> tuple[Season, Histogram]:
        """A season and its published histogram. The season is read each time, the histogram once for each revision."""
        for _ in range(_PUBLICATIONS):
            season = await self.seasons.load(name) or Season(name)
            if not season.published:
                return season, Histogram()
            histogram = await self._season_ranks.load((name, season.published))
            if histogram is not None:  # None: deleted, since a newer one was published meanwhile
                return season, histogram
        raise Unavailable(retry_after=1.0)

    async def _read_seasons(self, names: Sequence[str]) -> Mapping[str, Season]:
        return await pickem_store.read_seasons(self._services.table, names)

    async def _read_event_histograms(
        self, keys: Sequence[tuple[str, int]]
    ) -> Mapping[tuple[str, int], Histogram | Exception]:
        return await read_each(keys, lambda key: pickem_store.read_event_histogram(self._services.table, *key))

    async def _read_season_histograms(
        self, keys: Sequence[tuple[str, int]]
    ) -> Mapping[tuple[str, int], Histogram | Exception]:
        return await read_each(keys, lambda key: pickem_store.read_season_histogram(self._services.table, *key))

    # ── members ──

    async def _read_member_pages(
        self, keys: Sequence[tuple[str, int | None]]
    ) -> Mapping[tuple[str, int | None], MemberPage | Exception]:
        """By member and number of predictions; None for the standings alone. Each member is read once."""
        sizes: dict[str, list[int]] = {}
        for user, size in keys:
            sizes.setdefault(user, []).extend([] if size is None else [size])
        pages = await read_each(list(sizes), lambda user: self._read_member_page(user, sizes[user]))
        return {(user, size): pages[user] for user, size in keys}

    async def _read_member_page(self, user: str, sizes: Sequence[int]) -> MemberPage:
        if not sizes:
            return MemberPage(await pickem_store.read_member_standings(self._services.table, user), ())
        return await pickem_store.read_member_page(self._services.table, user, max(sizes))


def pickem_cache(ctx: Context) -> PickemCache:
    return ctx.services.get(PickemCache)


async def load_event(ctx: Context, event_id: str) -> Event | None:
    """The current event, locked if it has begun."""
    return await pickem_cache(ctx).events.load(event_id)
