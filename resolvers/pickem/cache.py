"""What a process keeps of pick'em, and the locks it is at.

Everything here is either read anew each time or cannot change: a card is kept by its event's version, the counts of
picks once the event is locked, a histogram by its revision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

from datastore import pickem as pickem_store
from datastore.dynamo import SingleFlight, shared_context
from datastore.ids import is_ulid
from datastore.pickem import Event, Histogram, Match, MemberPage, Season, VersionConflict
from datastore.receipts import Once
from datastore.refusals import Unavailable
from resolvers.context import Context, Services
from resolvers.loading.loader import Loader, read_each

_AN_HOUR = 3600.0
_CARDS = 200
_HISTOGRAMS = 200
_PUBLICATIONS = 5
"""How many histograms may be published between two reads before somebody is told to come back."""


class Pickem:
    """What one process remembers of pick'em, or reads once for all requests."""

    def __init__(self, services: Services) -> None:
        self._house = services
        self._locks: SingleFlight[str, Event | None] = SingleFlight(shared_context)
        add = services.loaders.add
        events: Loader[str, Event] = Loader(self._read_events, fresh=True)
        seasons: Loader[str, Season] = Loader(self._read_seasons, fresh=True)
        members: Loader[tuple[str, int | None], MemberPage] = Loader(self._read_member_pages, fresh=True)
        cards: Loader[tuple[str, int], Mapping[str, Match]] = Loader(self._read_cards, ttl=_AN_HOUR, size=_CARDS)
        picked: Loader[str, Mapping[str, int]] = Loader(self._read_picked, ttl=_AN_HOUR, size=_CARDS)
        self.events, self.seasons, self.members = (
            add("events", events),
            add("seasons", seasons),
            add("members", members),
        )
        self.cards, self.picked = add("cards", cards), add("picked", picked)
        ranks_of_events: Loader[tuple[str, int], Histogram] = Loader(
            self._read_event_histograms, ttl=_AN_HOUR, size=_HISTOGRAMS
        )
        ranks_of_seasons: Loader[tuple[str, int], Histogram] = Loader(
            self._read_season_histograms, ttl=_AN_HOUR, size=_HISTOGRAMS
        )
        self._ranks_of_events = add("event_ranks", ranks_of_events)
        self._ranks_of_seasons = add("season_ranks", ranks_of_seasons)

    # ── events, as they are at this moment ──

    async def _read_events(self, ids: Sequence[str]) -> Mapping[str, Event | Exception]:
        return await self.locked(
            await pickem_store.read_events(self._house.table, [id_ for id_ in ids if is_ulid(id_)])
        )

    async def locked(self, events: Mapping[str, Event]) -> Mapping[str, Event | Exception]:
        """The same events, the due ones locked: nobody is shown a lock that the gates do not know."""
        now = self._house.clock()
        due = [id_ for id_, event in events.items() if event.is_due(now)]
        if not due:
            return events
        return {**events, **await read_each(due, lambda id_: self._locks.run(id_, partial(self._lock, events[id_])))}

    async def _lock(self, event: Event) -> Event | None:
        current: Event | None = event
        while current is not None and current.is_due(now := self._house.clock()):
            try:
                after = current.locked(now)
                await pickem_store.change_event(self._house.table, current, after, unasked(now), after)
            except VersionConflict:
                current = (await pickem_store.read_events(self._house.table, [event.id])).get(event.id)
            else:
                return after
        return current

    async def close(self) -> None:
        await self._locks.close()

    # ── what does not change ──

    async def card(self, event: Event) -> Mapping[str, Match]:
        """The matches of an event's card by id."""
        return await self.cards.load((event.id, event.version)) or {}

    async def _read_cards(
        self, keys: Sequence[tuple[str, int]]
    ) -> Mapping[tuple[str, int], Mapping[str, Match] | Exception]:
        return await read_each(keys, lambda key: pickem_store.read_matches(self._house.table, key[0]))

    async def _read_picked(self, events: Sequence[str]) -> Mapping[str, Mapping[str, int] | Exception]:
        return await read_each(events, self._read_pick_counts)

    async def _read_pick_counts(self, event: str) -> Mapping[str, int]:
        sums: dict[str, int] = {}
        for gate in await pickem_store.read_gates(self._house.table, event):
            for name, number in gate.picked.items():
                sums[name] = sums.get(name, 0) + number
        return sums

    # ── ranks ──

    async def event_ranks(self, event: Event) -> Histogram | None:
        """The event's points, of the generation that was scored last."""
        return None if event.scored is None else await self._ranks_of_events.load((event.id, event.scored))

    async def season_ranks(self, name: str) -> tuple[Season, Histogram]:
        """A season and the histogram that counts: asked for each time, read when it is another."""
        for _ in range(_PUBLICATIONS):
            season = await self.seasons.load(name) or Season(name)
            if not season.published:
                return season, Histogram()
            key = (name, season.published)
            histogram = await self._ranks_of_seasons.load(key)
            if histogram is not None:  # or else a newer one was published meanwhile, and this one removed
                return season, histogram
        raise Unavailable(retry_after=1.0)

    async def _read_seasons(self, names: Sequence[str]) -> Mapping[str, Season]:
        return await pickem_store.read_seasons(self._house.table, names)

    async def _read_event_histograms(
        self, keys: Sequence[tuple[str, int]]
    ) -> Mapping[tuple[str, int], Histogram | Exception]:
        table = self._house.table
        return await read_each(keys, lambda key: pickem_store.read_histogram(table, event_scope(key[0]), key[1]))

    async def _read_season_histograms(
        self, keys: Sequence[tuple[str, int]]
    ) -> Mapping[tuple[str, int], Histogram | Exception]:
        return await read_each(keys, lambda key: pickem_store.read_season_histogram(self._house.table, *key))

    # ── members ──

    async def _read_member_pages(
        self, keys: Sequence[tuple[str, int | None]]
    ) -> Mapping[tuple[str, int | None], MemberPage | Exception]:
        """Standings (None) and first pages of predictions (how many) of members, one read a member."""
        sizes: dict[str, list[int]] = {}
        for user, size in keys:
            sizes.setdefault(user, []).extend([] if size is None else [size])
        pages = await read_each(list(sizes), lambda user: self._read_member_page(user, sizes[user]))
        return {(user, size): pages[user] for user, size in keys}

    async def _read_member_page(self, user: str, sizes: Sequence[int]) -> MemberPage:
        if not sizes:
            return MemberPage(await pickem_store.read_member_standings(self._house.table, user), ())
        return await pickem_store.read_member_page(self._house.table, user, max(sizes))


def event_scope(event: str) -> str:
    return f"EVENT:{event}"


def unasked(now: datetime) -> Once:
    """A change that nobody asked for with a key: a lock, the end of a scoring."""
    return Once("", None, "", now)


def pickem_cache(ctx: Context) -> Pickem:
    return ctx.services.get(Pickem)


async def load_event(ctx: Context, id_: str) -> Event | None:
    """An event as it is now, locked if its time has come."""
    return await pickem_cache(ctx).events.load(id_)
