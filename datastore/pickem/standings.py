"""Standings: the points of a member in a season, one item for each member with a share for each event.

A standing is always the sum of its shares. A share belongs to a generation of results, and a later generation replaces
it. So crediting a prediction twice, by two scorers or after a kill, changes nothing.

Ranks come from a histogram that is counted again at the end of each scoring. Each count takes a ticket first, and
replaces a published histogram only if that has a lower ticket. So the published histogram is always of the count that
began last, after every scoring that had ended by then.
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
from datastore.dynamo.merge import shard_limit
from datastore.people import member_shard
from datastore.pickem.histograms import Histogram, delete_older_histograms, read_histogram, store_histogram
from datastore.pickem.predictions import PREDICTION, RANKING_SHARDS, Prediction

_USUAL_SEASONS = 16


@dataclass(frozen=True, slots=True)
class Share:
    """The points of one event."""

    generation: int
    points: int
    correct: int


@dataclass(frozen=True, slots=True)
class Standing:
    """A member's points in one season, and the shares by event that they are the sum of."""

    user: str
    season: str
    joined_at: datetime
    shares: dict[str, Share] = field(default_factory=dict)
    points: int = 0
    correct: int = 0
    version: int = 0

    @property
    def ranking_shard(self) -> int:
        return member_shard(self.user) % RANKING_SHARDS

    @property
    def events_played(self) -> int:
        return len(self.shares)

    def credited(self, event: str, share: Share) -> Standing:
        shares = {**self.shares, event: share}
        return replace(
            self,
            shares=shares,
            points=sum(part.points for part in shares.values()),
            correct=sum(part.correct for part in shares.values()),
            version=self.version + 1,
        )


@dataclass(frozen=True, slots=True)
class Season:
    """A season's standings as a whole. `published` is the revision of the histogram that counts."""

    season: str
    tickets: int = 0
    published: int = 0
    members: int = 0


STANDING = Entity(
    Standing,
    Key("USER#{user}", "STANDING#{season}"),
    gsi1=Key("USER#{user}", "STANDING#{season}"),
    gsi2=Key("STANDINGS#{season}#{ranking_shard}", "{points:best_first}#{correct:best_first}#{joined_at}#{user}"),
)
SEASON = Entity(Season, Key("STANDINGS#{season}", "SEASON"))


# ── reading ──


async def read_standings_page(table: Table, season: str, window: Window) -> Page[Standing]:
    """By points, then by correct picks, then by time of joining."""
    shards = [STANDING.on("gsi2", season=season, ranking_shard=shard) for shard in range(RANKING_SHARDS)]
    request = window.open(f"standings:{season}")
    return await table.page(shards, request, limit=shard_limit(request.wanted, RANKING_SHARDS))


async def read_standing(table: Table, user: str, season: str) -> Standing | None:
    return await table.get(STANDING.at(user=user, season=season), consistent=True)


async def read_standings(table: Table, season: str, users: Sequence[str]) -> Mapping[str, Standing]:
    standings = await table.get_many([STANDING.at(user=user, season=season) for user in users], consistent=True)
    return {standing.user: standing for standing in standings if standing is not None}


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
    rest: Partition[Any] = STANDING.on("gsi1", user=user).newest_first()
    rest = replace(rest, low=PREDICTION.indexes["gsi1"].sort.fill({}, partly=True), high=f"STANDING#{HIGHEST}")
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
    seasons = await table.get_many([SEASON.at(season=name) for name in names], consistent=True)
    return {season.season: season for season in seasons if season is not None}


# ── crediting ──


async def credit_standing(table: Table, current: Standing | None, scored: Prediction, season: str) -> None:
    """The first step of scoring a prediction: its points are added to the standing."""
    share = Share(scored.generation, scored.points or 0, scored.correct or 0)
    while True:
        before = current or Standing(scored.user, season, scored.joined_at)
        credited = before.shares.get(scored.event)
        if credited is not None and credited.generation >= share.generation:
            return
        try:
            unchanged = where(version=before.version) if current else absent()
            await table.write(STANDING.put(before.credited(scored.event, share), when=unchanged))
        except ConditionFailed:
            current = await read_standing(table, scored.user, season)
        else:
            return


async def finish_prediction(table: Table, scored: Prediction) -> None:
    """The second step, which shows that both are done: the prediction gets its points and its generation."""
    names = ("points", "correct", "generation", "starts_at")
    try:
        await table.write(PREDICTION.shift(scored, *names, when=less("generation", scored.generation)))
    except ConditionFailed:
        return  # finished by another scorer, maybe with a later generation


# ── counting ──


def _scope(season: str) -> str:
    return f"SEASON:{season}"


async def recount_season(table: Table, season: str) -> Histogram:
    """Count a season's standings and publish the histogram, unless a count that began later is published already."""
    key = SEASON.at(season=season)
    ticket = (await table.write_back(SEASON.change(key, add={"tickets": 1}), SEASON)).tickets
    counts: Counter[int] = Counter()
    for shard in range(RANKING_SHARDS):
        async for sort in table.sort_keys(STANDING.on("gsi2", season=season, ranking_shard=shard)):
            counts[from_best_first(sort[:10])] += 1
    histogram = Histogram.of(counts)
    await store_histogram(table, _scope(season), ticket, histogram)
    published = {"published": ticket, "members": histogram.total}
    older = less("published", ticket) | absent("published")
    try:
        await table.write(SEASON.change(key, values=published, when=older))
    except ConditionFailed as failed:
        if not failed.doubtful:
            return histogram
    await delete_older_histograms(table, _scope(season), ticket)
    return histogram


async def read_season_histogram(table: Table, season: str, revision: int) -> Histogram | None:
    return await read_histogram(table, _scope(season), revision)
