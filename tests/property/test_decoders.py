"""The function made for an entity and the plain reading of its items, held together."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import IntEnum, StrEnum
from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key


class Mood(StrEnum):
    GLAD = "GLAD"
    NONE = ""


class Rank(IntEnum):
    ZERO = 0
    ONE = 1


@dataclass(frozen=True, slots=True)
class Corner:
    name: str
    reach: int | None = None


@dataclass(frozen=True, slots=True)
class Fight:
    """Every kind of field there is."""

    arena: str
    number: int
    on: date
    mood: Mood
    title: str
    rounds: int
    share: float
    open: bool
    data: bytes
    at: datetime
    rank: Rank
    corners: tuple[Corner, ...] = ()
    seats: dict[str, int] = field(default_factory=dict)
    later: date | None = None
    note: str | None = "unsaid"
    score: int = 0
    other: Mood | None = None

    @property
    def shard(self) -> int:
        return self.number % 4


FIGHT = Entity(
    Fight,
    Key("ARENA#{arena}#{shard}", "FIGHT#{number:06d}#{on}#{mood}"),
    gsi1=Key("FIGHTS", "{score:best_first}#{number:06d}"),
)
FIGHTS = some.builds(
    Fight,
    arena=some.sampled_from(["a", "ü", "O2"]),
    number=some.integers(0, 999_999),
    on=some.dates(),
    mood=some.just(Mood.GLAD),
    title=some.text(),
    at=some.datetimes(timezones=some.just(UTC)).map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)),
    share=some.floats(allow_nan=False, allow_infinity=False),
    corners=some.lists(some.builds(Corner, name=some.text())).map(tuple),
    seats=some.dictionaries(some.text(), some.integers(), max_size=2),
    rounds=some.integers(),
    score=some.integers(-9, 9),
)


@given(
    FIGHTS, some.sets(some.sampled_from([*Fight.__slots__, "pk", "sk", "gsi1pk"])), some.sampled_from([None, "BOUT#1"])
)
def test_a_generated_decoder_reads_what_the_generic_one_reads(
    fight: Fight, missing: set[str], sort: str | None
) -> None:
    """Of whole items; of items in which anything is missing, the same record or the same complaint."""
    item = FIGHT.item(fight)
    assert FIGHT.read(item) == FIGHT.plain_read(item) == fight
    bare = {name: stored for name, stored in item.items() if name not in missing}
    if sort:
        bare["sk"] = {"S": sort}
    assert outcome(FIGHT.read, bare) == outcome(FIGHT.plain_read, bare)


def outcome(read: Any, item: Any) -> Any:
    try:
        return read(item)
    except (TypeError, KeyError) as error:
        return str(error)
