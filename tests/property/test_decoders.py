"""Items that are read as records."""

from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from enum import IntEnum, StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from datastore.dynamo.entity import Entity, Key


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


REQUIRED = {"title", "rounds", "share", "open", "data", "at", "rank"}
DEFAULTS: dict[str, Any] = {"corners": (), "seats": {}, "score": 0, "later": None, "note": None, "other": None}


@given(FIGHTS)
def test_an_item_is_read_as_the_record_it_was_made_of(fight: Fight) -> None:
    """Every kind of field, from attributes and from the key."""
    assert FIGHT.read(FIGHT.item(fight)) == fight


@given(FIGHTS, some.sets(some.sampled_from([*Fight.__slots__, "gsi1pk"])))
def test_what_an_item_lacks_is_none_or_the_default(fight: Fight, missing: set[str]) -> None:
    """None is not stored, so an optional field that is absent is None whatever its default; others must be there."""
    item = {name: stored for name, stored in FIGHT.item(fight).items() if name not in missing}
    if missing & REQUIRED:
        with pytest.raises(TypeError, match="missing"):
            FIGHT.read(item)
    else:
        lacking = {name: value for name, value in DEFAULTS.items() if name in missing}
        assert FIGHT.read(item) == replace(fight, **lacking)


@given(FIGHTS)
def test_a_key_of_another_template_is_not_read(fight: Fight) -> None:
    with pytest.raises(TypeError, match="missing"):
        FIGHT.read({**FIGHT.item(fight), "sk": {"S": "BOUT#1"}})
