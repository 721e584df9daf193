"""FSRS as this service uses it: the vectors that its authors publish with the package (tests/test_basic.py)."""

from datetime import UTC, datetime, timedelta

import pytest

from datastore.vocabulary.quizzes import Card
from resolvers.vocabulary.schedules import Grade, reviewed

START = datetime(2022, 11, 29, 12, 30, tzinfo=UTC)
WORD = ("list", 7)


def test_the_published_intervals_hold() -> None:
    """Each review at the moment at which the card is due."""
    grades = [Grade.GOOD] * 6 + [Grade.AGAIN] * 2 + [Grade.GOOD] * 5
    card: Card | None = None
    now, days = START, []
    for grade in grades:
        card = reviewed(card, "ada", WORD, grade, now)
        days.append((card.due - card.reviewed_at).days)
        now = card.due
    assert days == [0, 2, 11, 46, 163, 498, 0, 0, 2, 4, 7, 12, 21]
    assert card is not None
    assert (card.user, card.list, card.ordinal, card.reviews) == ("ada", "list", 7, 13)


def test_the_published_memory_state_holds() -> None:
    """Reviews at given days."""
    card: Card | None = None
    now = START
    for grade, days in zip([Grade.AGAIN] + [Grade.GOOD] * 5, [0, 0, 1, 3, 8, 21], strict=True):
        now += timedelta(days=days)
        card = reviewed(card, "ada", WORD, grade, now)
    assert card is not None
    assert card.stability == pytest.approx(53.62691, abs=1e-4)
    assert card.difficulty == pytest.approx(6.3574867, abs=1e-4)


def test_easy_reviews_reach_the_least_difficulty() -> None:
    """Ten within ten milliseconds."""
    card: Card | None = None
    for number in range(10):
        card = reviewed(card, "ada", WORD, Grade.EASY, START + timedelta(milliseconds=number))
    assert card is not None
    assert card.difficulty == 1.0
