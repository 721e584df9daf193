"""The upgrade from layout 1 to layout 2.

| layout 1                                           | layout 2                                          |
|----------------------------------------------------|---------------------------------------------------|
| event `EVENT#<id>`, `EVENT`                        | `EVENT#<id>`, `STATE`                             |
| 16 gates `EVENT#<id>`, `GATE#<number>`             | 48 gates `EVENT#<id>#GATE#<number>`, `GATE`       |
| standing `USER#<user>`, `STANDING#<season>`, which | `STANDINGS#<season>#<shard>`, `USER#<user>`; each |
| holds a share for each event                       | prediction holds its share                        |
| `STANDINGS#<season>`, `SEASON`                     | `STANDINGS#<season>`, `RANKS`                     |

Events first: each one's old gates are closed, then one transaction moves the event and its gates. In the event's old
place stays a mark that a process of the first release cannot read or replace, so its submissions, locks, changes and
imports of this event fail. What it still has to write of a scoring goes to old standings, which nobody reads, and to
predictions. So an event whose scoring had begun and not ended gets another generation of results: scoring it again
replaces whatever the old process leaves.

Then the standings are made from the predictions: each scored one gets its share, which is added to the new standing in
the same transaction. Last the seasons are counted, and what is left of layout 1 is deleted. Every step may be repeated,
so the upgrade may be killed and begun again. Events that a process of the first release creates later are moved when
the upgrade is run again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from datastore.dynamo import ConditionFailed, Table
from datastore.dynamo.conditions import absent, present, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.dynamo.writes import Put, Write
from datastore.people import member_shard
from datastore.pickem.event_records import EVENT, MATCH, Event, Match
from datastore.pickem.events import gate_state, number_matches, read_matches
from datastore.pickem.gates import GATE, Gate, GateEntity, GateState, pick_counter
from datastore.pickem.histograms import delete_older_histograms
from datastore.pickem.predictions import RANKING_SHARDS, Prediction, Share, predictions_to_score
from datastore.pickem.standings import (
    Credit,
    count_season,
    credit,
    read_season_histogram,
    read_seasons,
    recount_season,
)

_OLD_GATES = 16
_AT_ONCE = 100
_NEWEST = 9_999_999_999
_MOVED = "moved"
"""The one attribute of the mark."""


class _OldGateEntity(GateEntity):
    counter_prefix = "picked_"


@dataclass(frozen=True, slots=True)
class OldStanding:
    """A standing with its shares."""

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


@dataclass(frozen=True, slots=True)
class OldSeason:
    season: str
    tickets: int = 0
    published: int = 0
    members: int = 0


OLD_EVENT = Entity(
    Event,
    Key("EVENT#{id}", "EVENT"),
    gsi1=Key("EVENTS", "{starts_at}#{id}"),
    gsi2=Key("EVENTS#{state}", "{starts_at}#{id}"),
)
OLD_GATE = _OldGateEntity(Gate, Key("EVENT#{event}", "GATE#{number:02d}"))
OLD_STANDING = Entity(
    OldStanding,
    Key("USER#{user}", "STANDING#{season}"),
    gsi1=Key("USER#{user}", "STANDING#{season}"),
    gsi2=Key("STANDINGS#{season}#{ranking_shard}", "{points:best_first}#{correct:best_first}#{joined_at}#{user}"),
)
OLD_SEASON = Entity(OldSeason, Key("STANDINGS#{season}", "SEASON"))


async def upgrade(table: Table, advance: Callable[[int], None]) -> None:
    """Move this part's items of layout 1 to layout 2: resumable, idempotent, safe beside running processes."""
    async for item in table.scan_items(consistent=True):
        if OLD_EVENT.recognises(item["pk"]["S"], item["sk"]["S"]) and _MOVED not in item:
            await _move_event(table, OLD_EVENT.read(item))
            advance(1)
    seasons = set()
    async for event in table.scan(EVENT, consistent=True):
        if event.begun is not None:
            advance(await _share_predictions(table, event))
            seasons.add(event.season)
    for season in sorted(seasons):
        await _publish_ranks(table, season)
    async for old in table.scan(OLD_STANDING, OLD_SEASON, consistent=True):
        await _delete_old(table, old)
        advance(1)


# ── events ──


async def _move_event(table: Table, event: Event) -> None:
    """Move an event with its gates. It begins again if a process of the first release changes the event meanwhile."""
    while True:
        closed = await asyncio.gather(*(_close(table, event.id, number) for number in range(_OLD_GATES)))
        gates = [gate for gate in closed if gate is not None]
        numbered, matches = _numbered(event, await read_matches(table, event.id))
        try:
            await table.transact(*_move(_with_new_generation(numbered), matches, gates))
        except ConditionFailed as failed:
            stored = failed.failures.get(0)
            if stored is None or _MOVED in stored:  # by another upgrade, or by an attempt whose answer was lost
                return
            event = OLD_EVENT.read(stored)
        else:
            return


async def _close(table: Table, event_id: str, number: int) -> Gate | None:
    """Close an old gate; what it counted is final as long as the event does not change."""
    closed = OLD_GATE.change(
        OLD_GATE.at(event=event_id, number=number), values={"state": GateState.CLOSED}, when=present()
    )
    try:
        return await table.write_back(closed, OLD_GATE)
    except ConditionFailed:
        return None


def _numbered(event: Event, by_id: Mapping[str, Match]) -> tuple[Event, list[Match]]:
    on_card = [by_id[match] for match in event.card if match in by_id]
    return number_matches(event, on_card)


def _with_new_generation(event: Event) -> Event:
    """An old scorer may still be at work if the scoring had begun and not ended: its generation is over."""
    unfinished = event.begun is not None and event.scored != event.generation
    return replace(event, generation=event.generation + 1) if unfinished else event


def _move(event: Event, matches: Sequence[Match], gates: Sequence[Gate]) -> list[Write]:
    numbers, unchanged = {match.id: match.number for match in matches}, where(version=event.version)
    return [
        Put(OLD_EVENT.fields, {**OLD_EVENT.item_key(event).attributes, _MOVED: {"S": "layout 2"}}, unchanged),
        EVENT.put(event, when=absent()),
        *map(MATCH.put, matches),
        *(OLD_GATE.delete(OLD_GATE.item_key(gate)) for gate in gates),
        *(GATE.put(_new_gate(event, gate, numbers)) for gate in gates),
    ]


def _new_gate(event: Event, old: Gate, numbers: Mapping[str, int]) -> Gate:
    """The first gates begin with what the old ones counted. Only the sums over all gates are ever read."""
    picked = {}
    for name, count in old.picked.items():
        match, _, team = name.removeprefix(_OldGateEntity.counter_prefix).rpartition("_")
        if match in numbers:
            picked[pick_counter(numbers[match], int(team))] = count
    return replace(old, state=gate_state(event), lock_at=event.starts_at, revision=event.version, picked=picked)


# ── standings ──


async def _share_predictions(table: Table, event: Event) -> int:
    """Give every scored prediction its share, and the shares to the standings."""
    number = 0
    async for predictions in predictions_to_score(table, event.id, _AT_ONCE):
        credits_ = [_credit(prediction) for prediction in predictions if prediction.is_scored and not prediction.share]
        await credit(table, event.season, credits_)
        number += len(credits_)
    return number


def _credit(prediction: Prediction) -> Credit:
    share = Share(prediction.generation, prediction.points or 0, prediction.correct or 0)
    return Credit(prediction, share, prediction.starts_at)


async def _publish_ranks(table: Table, season: str) -> None:
    """Unless they are published already."""
    stored = (await read_seasons(table, [season])).get(season)
    if stored is not None:
        published = await read_season_histogram(table, season, stored.published)
        if published == await count_season(table, season):
            return
    await recount_season(table, season)


async def _delete_old(table: Table, old: OldStanding | OldSeason) -> None:
    if isinstance(old, OldStanding):
        await table.write(OLD_STANDING.delete(OLD_STANDING.item_key(old)))
        return
    await delete_older_histograms(table, f"SEASON:{old.season}", _NEWEST)
    await table.write(OLD_SEASON.delete(OLD_SEASON.item_key(old)))
