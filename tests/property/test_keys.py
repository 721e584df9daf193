"""Invariants of keys: their text orders as their meaning does, and nobody can forge one."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from datastore.dynamo import BadKey, best_first, key_text
from datastore.dynamo.attributes import iso
from datastore.dynamo.entity import Entity, Key, just_above, just_below

names = some.text(
    some.characters(exclude_categories=("Cs", "Cc"), exclude_characters="#\U0010ffff"), min_size=1, max_size=40
)
moments = some.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2100, 1, 1), timezones=some.just(UTC))  # noqa: DTZ001


@dataclass(frozen=True, slots=True)
class Score:
    game: str
    player: str
    level: int
    points: int
    at: datetime
    note: str | None = None


SCORE = Entity(
    Score,
    Key("GAME#{game}", "PLAYER#{player}#{level:04d}"),
    gsi1=Key("TOP#{game}", "{points:best_first}#{player}", unless="note"),
)

scores = some.builds(
    Score,
    game=names,
    player=names,
    level=some.integers(0, 9999),
    points=some.integers(-10_000, 10_000),
    at=moments.map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)),
    note=some.none() | names,
)


@given(scores)
def test_a_record_comes_back_as_it_was(score: Score) -> None:
    """Whatever its values; what the primary key spells out is stored once."""
    item = SCORE.item(score)
    assert SCORE.read(item) == score
    assert not {"game", "player", "level"} & set(item)
    assert ("gsi1pk" in item) == (score.note is None)


@given(some.integers(-(10**9), 10**9), some.integers(-(10**9), 10**9))
def test_best_first_text_orders_the_highest_first(one: int, other: int) -> None:
    assert (best_first(one) < best_first(other)) == (one > other)


@given(moments, moments)
def test_moments_order_as_text_and_come_back(one: datetime, other: datetime) -> None:
    """To the millisecond."""
    assert abs(datetime.fromisoformat(iso(one)) - one).total_seconds() < 0.001
    if abs(one - other).total_seconds() >= 0.001:
        assert (iso(one) < iso(other)) == (one < other)


@given(some.text(max_size=20))
def test_a_text_is_a_key_or_refused(text: str) -> None:
    """No `#`, no control character, no half a character and no end of a bound ever gets into a key."""
    try:
        assert key_text(text) == text
    except BadKey:
        assert not text or any(
            c in "#\U0010ffff" or ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000 for c in text
        )
    else:
        assert not set("#\U0010ffff") & set(text)


@pytest.mark.parametrize("player", ["\U0010ffff", "\U0010ffffada", "ada\U0010ffffeve"])
def test_a_text_that_could_pass_the_end_of_a_bound_is_refused(player: str) -> None:
    """`on` and `just_below` end with U+10FFFF: an item after that would be missing in its own partition."""
    with pytest.raises(BadKey):
        SCORE.at(game="g", player=player, level=1)


@given(names, names)
def test_bounds_of_a_key_include_every_key_between_them(key: str, other: str) -> None:
    """`just_above` and `just_below` exclude the key itself and nothing else, in the order of bytes."""
    in_bytes = [text.encode() for text in (other, just_above(key), just_below(key), key)]
    place, above, below, itself = in_bytes
    assert below < itself < above
    if place > itself:
        assert place >= above
    if place < itself:
        assert place <= below


def test_a_template_that_names_an_unknown_attribute_is_refused() -> None:
    """When the entity is declared, not when the first item is written."""
    with pytest.raises(TypeError, match="pionts"):
        Entity(Score, Key("GAME#{game}", "{pionts:best_first}"))


@pytest.mark.parametrize("change", [{"values": {"points": 1}}, {"add": {"points": 1}}, {"values": {"note": "late"}}])
def test_a_change_that_would_leave_an_index_behind_is_refused(change: dict[str, Any]) -> None:
    """An index key names the field, or depends on it: only `shift` knows the new place."""
    with pytest.raises(TypeError, match="use update_with_indexes"):
        SCORE.update(SCORE.at(game="g", player="p", level=1), **change)


def test_a_number_that_outgrows_its_padding_is_refused() -> None:
    """It would sort before smaller ones."""
    with pytest.raises(BadKey):
        SCORE.at(game="g", player="p", level=10_000)
