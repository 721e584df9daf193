"""Standings: what a member has won in a season, one item a member, its events inside.

A standing is always the sum of its shares. A share is of a generation, and a later one replaces it: so crediting a
prediction twice, by two scorers or after a kill, changes nothing.

Ranks come from a histogram that is counted anew at the end of each scoring. Who begins to count takes a ticket first;
a histogram is published only over one with a lower ticket. So the one that counts is always the one that began last,
after every scoring that had ended by then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from datastore.dynamo import ConditionFailed, Page, Table, Window
from datastore.dynamo.conditions import absent, less, where
from datastore.dynamo.entity import Entity, Partition
from datastore.dynamo.keys import HIGHEST, Key, from_best_first
from datastore.dynamo.merge import share_of
from datastore.people import shard_of
from datastore.pickem import histograms
from datastore.pickem.histograms import Histogram
from datastore.pickem.predictions import PREDICTION, RANKING_SHARDS, Prediction

SEASONS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Share:
    """What one event brought."""

    generation: int
    points: int
    correct: int


@dataclass(frozen=True, slots=True)
class Standing:
    """A member's sums of one season, and the shares they are sums of, by event."""

    user: str
    season: str
    joined_at: datetime
    shares: dict[str, Share] = field(default_factory=dict)
    points: int = 0
    correct: int = 0
    version: int = 0

    @property
    def lane(self) -> int:
        return shard_of(self.user) % RANKING_SHARDS

    @property
    def events_played(self) -> int:
        return len(self.shares)

    def credited(self, event: str, share: Share) -> Standing:
        shares = {**self.shares, event: share}
        return replace(
            self,
            shares=shares,
            points=sum(one.points for one in shares.values()),
            correct=sum(one.correct for one in shares.values()),
            version=self.version + 1,
        )


@dataclass(frozen=True, slots=True)
class Season:
    """What is known of a season's standings as a whole. `published` is the histogram that counts."""

    season: str
    tickets: int = 0
    published: int = 0
    members: int = 0


STANDING = Entity(
    Standing,
    Key("USER#{user}", "STANDING#{season}"),
    gsi1=Key("USER#{user}", "STANDING#{season}"),
    gsi2=Key("STANDINGS#{season}#{lane}", "{points:best_first}#{correct:best_first}#{joined_at}#{user}"),
)
SEASON = Entity(Season, Key("STANDINGS#{season}", "SEASON"))


# ── reading ──


async def standings_page(table: Table, season: str, window: Window) -> Page[Standing]:
    """By points, then by correct picks, then who joined first."""
    shards = [STANDING.on("gsi2", season=season, lane=lane) for lane in range(RANKING_SHARDS)]
    request = window.open(f"standings:{season}")
    return await table.page(shards, request, limit=share_of(request.wanted, RANKING_SHARDS))


async def standing(table: Table, user: str, season: str) -> Standing | None:
    return await table.get(STANDING.at(user=user, season=season), consistent=True)


async def standings_by_user(table: Table, season: str, users: Sequence[str]) -> Mapping[str, Standing]:
    found = await table.get_many([STANDING.at(user=user, season=season) for user in users], consistent=True)
    return {one.user: one for one in found if one is not None}


async def standings_of_user(table: Table, user: str) -> list[Standing]:
    """All seasons, the last by name first."""
    return [one async for one in table.iterate(STANDING.on("gsi1", user=user).newest_first())]


@dataclass(frozen=True, slots=True)
class MemberPage:
    """A member's standings, and the newest predictions with their positions."""

    standings: Sequence[Standing]
    predictions: Sequence[tuple[str, Prediction]]


async def member_page(table: Table, user: str, size: int) -> MemberPage:
    """A member's standings and newest predictions, up to `size`, in one read of their item collection."""
    whole: Partition[Any] = STANDING.on("gsi1", user=user).newest_first()
    whole = replace(whole, low=PREDICTION.indexes["gsi1"].sort.start({}), high=f"STANDING#{HIGHEST}")
    standings: list[Standing] = []
    predictions: list[tuple[str, Prediction]] = []
    while True:
        found = await table.query(whole, STANDING, PREDICTION, limit=size + SEASONS_AT_ONCE)
        standings += [record for record in found.records if isinstance(record, Standing)]
        predictions += [item for item in found.items if isinstance(item[1], Prediction)]
        if found.last is None or len(predictions) >= size:
            return MemberPage(standings, predictions[:size])
        whole = whole.past(found.last)


async def seasons_by_name(table: Table, names: Sequence[str]) -> Mapping[str, Season]:
    found = await table.get_many([SEASON.at(season=name) for name in names], consistent=True)
    return {season.season: season for season in found if season is not None}


# ── crediting ──


async def credit(table: Table, known: Standing | None, scored: Prediction, season: str) -> None:
    """The first step of scoring a prediction: its points are in the standing."""
    share = Share(scored.generation, scored.points or 0, scored.correct or 0)
    while True:
        before = known or Standing(scored.user, season, scored.joined_at)
        there = before.shares.get(scored.event)
        if there is not None and there.generation >= share.generation:
            return
        try:
            unchanged = where(version=before.version) if known else absent()
            await table.write(STANDING.put(before.credited(scored.event, share), when=unchanged))
        except ConditionFailed:
            known = await standing(table, scored.user, season)
        else:
            return


async def mark(table: Table, scored: Prediction) -> None:
    """The second step, and the mark that both are done: the prediction shows its points."""
    names = ("points", "correct", "generation", "starts_at")
    try:
        await table.write(PREDICTION.shift(scored, *names, when=less("generation", scored.generation)))
    except ConditionFailed:
        return  # another scorer was faster, or scores a later generation


# ── counting ──


def _scope(season: str) -> str:
    return f"SEASON:{season}"


async def recount(table: Table, season: str) -> Histogram:
    """Counts a season's standings and publishes the histogram, unless one that began later is published already."""
    key = SEASON.at(season=season)
    ticket = (await table.write_back(SEASON.change(key, add={"tickets": 1}), SEASON)).tickets
    counts: Counter[int] = Counter()
    for lane in range(RANKING_SHARDS):
        async for sort in table.sort_keys(STANDING.on("gsi2", season=season, lane=lane)):
            counts[from_best_first(sort[:10])] += 1
    histogram = Histogram.of(counts)
    await histograms.store(table, _scope(season), ticket, histogram)
    published = {"published": ticket, "members": histogram.total}
    older = less("published", ticket) | absent("published")
    try:
        await table.write(SEASON.change(key, values=published, when=older))
    except ConditionFailed as failed:
        if not failed.doubtful:
            return histogram
    await histograms.drop(table, _scope(season), ticket)
    return histogram


async def histogram_of_season(table: Table, season: str, revision: int) -> Histogram | None:
    return await histograms.stored(table, _scope(season), revision)
