"""Standings: the points of a member in a season, one item for each member; and the histograms that ranks are read from.

Invariant: a standing is the sum of the shares that the member's predictions hold. Both change in one transaction, on
the condition that neither has changed since it was read, so crediting a prediction twice, by two scorers or after a
kill, changes nothing. A share belongs to a generation of results, and a later generation replaces it.

Code that changes a share reads the prediction first and then the standing (`read_counted`), which contains the share
unless the prediction has changed since. A standing that was read before could lack it. Then the points of a share that
is taken away would stay, because a standing that is missing is taken for one to which nothing was added.

A standing has no version: its numbers are all that it is, so one with the same numbers is the same, also if it was
deleted and made again meanwhile.

The standings of a season are spread over 16 partitions of the table, so they can be counted by consistent reads. Ranks
come from a histogram that is counted again at the end of each scoring. Each count takes a ticket first, and replaces a
published histogram only if that has a lower ticket. So the published histogram is always of the count that began last,
after every scoring that had ended by then.
"""

from __future__ import annotations

import asyncio
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate, pairwise

import orjson

from datastore.dynamo import ConditionFailed, Page, Table, Window, chunks, gather_or_cancel, iso, optimistic
from datastore.dynamo.entity import HIGHEST, Entity, ItemKey, Key, from_best_first
from datastore.dynamo.paging import shard_limit
from datastore.dynamo.retries import PIECE_BYTES, pieces
from datastore.dynamo.writes import Delete, Put, Write, absent, less, where
from datastore.people.profiles import SHARDS, OfMember, member_shard
from datastore.pickem.predictions import (
    PREDICTION,
    RANKING_SHARDS,
    Prediction,
    Share,
    as_read,
    closeness_key,
    read_at_once,
    read_prediction,
)

# ── histograms ──


@dataclass(frozen=True, slots=True)
class Histogram:
    """Scores, lowest first, and how many members have at most each of them."""

    scores: tuple[int, ...] = ()
    up_to: tuple[int, ...] = ()

    @classmethod
    def of(cls, counts: Mapping[int, int]) -> Histogram:
        scores = tuple(sorted(counts))
        return cls(scores, tuple(accumulate(counts[score] for score in scores)))

    @property
    def total(self) -> int:
        return self.up_to[-1] if self.up_to else 0

    def rank(self, score: int) -> int:
        """One more than the number of members with a higher score."""
        index = bisect_left(self.scores, score + 1)
        return 1 + self.total - (self.up_to[index - 1] if index else 0)

    def pack(self) -> bytes:
        """Differences are small numbers, which compress well."""
        return zlib.compress(orjson.dumps([_differences(self.scores), _differences(self.up_to)]))

    @classmethod
    def unpack(cls, packed: bytes) -> Histogram:
        scores, up_to = orjson.loads(zlib.decompress(packed))
        return cls(tuple(accumulate(scores)), tuple(accumulate(up_to)))


def _differences(numbers: tuple[int, ...]) -> list[int]:
    return [*numbers[:1], *(later - earlier for earlier, later in pairwise(numbers))]


@dataclass(frozen=True, slots=True)
class HistogramPart:
    """A piece of one revision of a histogram."""

    scope: str
    revision: int
    number: int
    part_count: int
    data: bytes


HISTOGRAM_PART = Entity(HistogramPart, Key("HISTOGRAM#{scope}", "{revision:010d}#{number:03d}"))


def event_scope(event: str) -> str:
    """The histograms of an event's predictions. Their revisions are generations of its results."""
    return f"EVENT:{event}"


def season_scope(season: str) -> str:
    """The histograms of a season's standings."""
    return f"STANDINGS:{season}"


async def store_histogram(table: Table, scope: str, revision: int, histogram: Histogram) -> None:
    parts = pieces(histogram.pack(), PIECE_BYTES)
    for number, part in enumerate(parts):
        await table.write(HISTOGRAM_PART.put(HistogramPart(scope, revision, number, len(parts), part)))


async def read_histogram(table: Table, scope: str, revision: int) -> Histogram | None:
    """A revision, or None if it was deleted after a newer one was published."""
    parts = [part async for part in table.iterate(HISTOGRAM_PART.on(scope=scope, revision=revision), consistent=True)]
    if not parts or len(parts) != parts[0].part_count:
        return None
    return Histogram.unpack(b"".join(part.data for part in parts))


async def delete_older_histograms(table: Table, scope: str, revision: int) -> None:
    """Delete the revisions before this one."""
    await table.clear(HISTOGRAM_PART.on(scope=scope).between(None, f"{revision:010d}"))


# ── standings ──

CREDITS_AT_ONCE = 25
"""In one transaction, two items each; DynamoDB takes 100."""
_USUAL_SEASONS = 16
_NO_SHARE = Share.taken_back(0)


@dataclass(frozen=True, slots=True)
class Standing(OfMember):
    """A member's points in one season."""

    user: str
    season: str
    joined_at: datetime
    """The latest that a prediction had when it was credited: a former guest's is the same in any order of scoring."""
    points: int = 0
    correct: int = 0
    events_played: int = 0
    closeness: int = 0
    """The sum over the events. Ordering by it is ordering by the sum of distances, where a missing guess, or a missing
    prediction, counts as the worst distance of its event."""

    @property
    def ranking_shard(self) -> int:
        return self.shard % RANKING_SHARDS

    @property
    def listed_from(self) -> str:
        """After points and correct picks in the ranking: the smallest sum of distances, then the first to join."""
        return f"{closeness_key(self.closeness)}{iso(self.joined_at)}"

    def credited(self, old: Share | None, new: Share) -> Standing:
        """The standing with a share in place of an older one."""
        before = old or _NO_SHARE
        return replace(
            self,
            points=self.points + new.points - before.points,
            correct=self.correct + new.correct - before.correct,
            events_played=self.events_played + new.counts - before.counts,
            closeness=self.closeness + new.closeness - before.closeness,
        )


@dataclass(frozen=True, slots=True)
class Season:
    """A season's standings as a whole. `published` is the revision of the histogram that counts.

    `tickets` cannot go: two counts that are under way at the same time must not store their parts under one revision.
    """

    season: str
    tickets: int = 0
    published: int = 0
    members: int = 0


STANDING = Entity(
    Standing,
    Key("STANDINGS#{season}#{shard:02d}", "USER#{user}"),
    gsi1=Key("USER#{user}", "SEASON#{season}"),
    gsi2=Key("RANKING#{season}#{ranking_shard}", "{points:best_first}#{correct:best_first}#{listed_from}#{user}"),
)
SEASON = Entity(Season, Key("STANDINGS#{season}", "RANKS"))


def standing_write(before: Standing | None, after: Standing) -> Put | Delete:
    """The write of a standing that is as it was read, and which is deleted once no event adds to it."""
    when = absent()
    if before is not None:
        when = where(**{name: getattr(before, name) for name in ("points", "correct", "events_played", "closeness")})
    if after.events_played:
        return STANDING.put(after, when=when)
    return STANDING.delete(STANDING.item_key(after), when=when)


# ── reading ──


async def read_standings_page(table: Table, season: str, window: Window) -> Page[Standing]:
    """By points, then by correct picks, then by nearer guesses, then by time of joining."""
    shards = [STANDING.on("gsi2", season=season, ranking_shard=shard) for shard in range(RANKING_SHARDS)]
    request = window.open(f"standings:{season}")
    return await table.page(shards, request, limit=shard_limit(request.wanted, RANKING_SHARDS))


async def read_standing(table: Table, user: str, season: str) -> Standing | None:
    return await table.get(_key(user, season), consistent=True)


def _key(user: str, season: str) -> ItemKey[Standing]:
    return STANDING.at(season=season, shard=member_shard(user), user=user)


async def read_counted(table: Table, event: str, user: str, season: str) -> tuple[Prediction | None, Standing | None]:
    """A prediction and its member's standing, which is read after it (the module says why)."""
    prediction = await read_prediction(table, event, user)
    return prediction, None if prediction is None else await read_standing(table, user, season)


async def read_standings(table: Table, season: str, users: Sequence[str]) -> Mapping[str, Standing]:
    standings = await read_at_once(table, [_key(user, season) for user in users])
    return {standing.user: standing for standing in standings}


async def read_standings_of(table: Table, user: str, seasons: Sequence[str]) -> list[Standing]:
    """A member's standings in these seasons, as the table has them."""
    return await table.find_many([_key(user, season) for season in seasons], consistent=True)


def standing_position(standing: Standing) -> str:
    """A standing's place in the order of standings."""
    return STANDING.sort_key(standing, "gsi2")


async def read_member_standings(table: Table, user: str) -> list[Standing]:
    """All seasons, in descending order of their names."""
    return [standing async for standing in table.iterate(STANDING.on("gsi1", user=user).newest_first())]


@dataclass(frozen=True, slots=True)
class MemberPage:
    """A member's standings, and the newest predictions with their positions."""

    standings: Sequence[Standing]
    predictions: Sequence[tuple[str, Prediction]]


async def read_member_page(table: Table, user: str, size: int) -> MemberPage:
    """A member's standings and newest predictions, up to `size`, in one read of their item collection."""
    rest = STANDING.collection("gsi1", user=user).between("PREDICTION#", f"SEASON#{HIGHEST}").newest_first()
    standings: list[Standing] = []
    predictions: list[tuple[str, Prediction]] = []
    while True:
        answer = await table.query(rest, STANDING, PREDICTION, limit=size + _USUAL_SEASONS)
        standings += [record for record in answer.records if isinstance(record, Standing)]
        predictions += [item for item in answer.items if isinstance(item[1], Prediction)]
        if answer.last is None or len(predictions) >= size:
            return MemberPage(standings, predictions[:size])
        rest = rest.past(answer.last)


async def read_seasons(table: Table, names: Sequence[str]) -> Mapping[str, Season]:
    seasons = await table.find_many([SEASON.at(season=name) for name in names], consistent=True)
    return {season.season: season for season in seasons}


# ── crediting ──


@dataclass(frozen=True, slots=True)
class Credit:
    """A share for a prediction, which is as it was read."""

    prediction: Prediction
    share: Share
    starts_at: datetime

    @property
    def is_done(self) -> bool:
        """Whether the prediction has this share, or one of a later generation."""
        stored, share = self.prediction, self.share
        if stored.share is not None and stored.share.generation > share.generation:
            return True
        return stored.share == share

    def writes(self, season: str, standing: Standing | None) -> list[Write]:
        stored = self.prediction
        scored = replace(stored, share=self.share, starts_at=self.starts_at)
        change = PREDICTION.update_with_indexes(scored, "share", "starts_at", when=as_read(stored))
        if standing is None and not self.share.counts:  # nothing of it was ever added
            return [change]
        before = standing or Standing(stored.user, season, stored.joined_at)
        after = before.credited(stored.share, self.share)
        return [change, standing_write(standing, replace(after, joined_at=max(before.joined_at, stored.joined_at)))]


async def credit(table: Table, season: str, credits_: Sequence[Credit]) -> None:
    """Give predictions their shares and add these to their members' standings; pass over those that are gone.

    Each `CREDITS_AT_ONCE` are one transaction. If one of their items has changed meanwhile, each is credited alone.
    """
    left = [one for one in credits_ if not one.is_done]
    standings = await read_standings(table, season, [one.prediction.user for one in left])
    groups = chunks(left, CREDITS_AT_ONCE)
    await gather_or_cancel(_credit_together(table, season, group, standings) for group in groups)


async def _credit_together(
    table: Table, season: str, group: Sequence[Credit], standings: Mapping[str, Standing]
) -> None:
    try:
        await table.transact(
            *(write for one in group for write in one.writes(season, standings.get(one.prediction.user)))
        )
    except ConditionFailed:
        for one in group:
            await _credit_alone(table, season, one)


async def _credit_alone(table: Table, season: str, wanted: Credit) -> None:
    """Give one prediction its share, unless it is gone."""

    async def credit_current(counted: tuple[Prediction | None, Standing | None]) -> None:
        prediction, standing = counted
        if prediction is None:
            return
        current = replace(wanted, prediction=prediction)
        if not current.is_done:
            await table.transact(*current.writes(season, standing))

    event, user = wanted.prediction.event, wanted.prediction.user
    await optimistic(lambda: read_counted(table, event, user, season), credit_current, idempotent=True)


# ── counting ──


async def recount_season(table: Table, season: str) -> Histogram:
    """Count a season's standings and publish the histogram, unless a count that began later is published already."""
    key = SEASON.at(season=season)
    ticket = (await table.write_back(SEASON.update(key, add={"tickets": 1}), SEASON)).tickets
    histogram = await count_season(table, season)
    await store_histogram(table, season_scope(season), ticket, histogram)
    published = {"published": ticket, "members": histogram.total}
    older = less("published", ticket) | absent("published")
    try:
        await table.write(SEASON.update(key, values=published, when=older))
    except ConditionFailed as failed:
        if not failed.doubtful:
            return histogram
    await delete_older_histograms(table, season_scope(season), ticket)
    return histogram


async def count_season(table: Table, season: str) -> Histogram:
    counts: Counter[int] = Counter()
    for counted in await asyncio.gather(*(_count_shard(table, season, shard) for shard in range(SHARDS))):
        counts.update(counted)
    return Histogram.of(counts)


async def _count_shard(table: Table, season: str, shard: int) -> Counter[int]:
    """The points of the standings in the table, not in the index, which shows them later."""
    standings = STANDING.on(season=season, shard=shard)
    return Counter([from_best_first(sort[:10]) async for sort in table.sort_keys_in("gsi2", standings)])


# ── auditing ──
# Reads for `ringside audit`: every prediction and standing, and what the indexes list.


async def all_predictions(table: Table, event: str) -> AsyncIterator[Prediction]:
    """The predictions for an event, shard by shard; consistent reads."""
    for shard in range(SHARDS):
        async for prediction in table.iterate(PREDICTION.on(event=event, shard=shard), consistent=True, at_once=500):
            yield prediction


def all_standings(table: Table) -> AsyncIterator[Standing]:
    """Of all seasons, in the order of the table; consistent reads."""
    return table.scan(STANDING, consistent=True)


async def listed_standings(table: Table, season: str) -> AsyncIterator[tuple[int, Standing]]:
    """Every standing in the ranking of a season, with the shard of the ranking that lists it."""
    for shard in range(RANKING_SHARDS):
        async for standing in table.iterate(STANDING.on("gsi2", season=season, ranking_shard=shard), at_once=500):
            yield shard, standing
