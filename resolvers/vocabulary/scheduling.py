"""When to ask for a word again: FSRS, as the package `fsrs` computes it with its default parameters.

Intervals are not made fuzzy, so that the same reviews give the same dates.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum

import fsrs

from datastore.vocabulary import Card

_SCHEDULER = fsrs.Scheduler(enable_fuzzing=False)


class Grade(Enum):
    """How well a member knew a word."""

    AGAIN = "AGAIN"
    HARD = "HARD"
    GOOD = "GOOD"
    EASY = "EASY"


_RATINGS = {grade: fsrs.Rating[grade.value.capitalize()] for grade in Grade}


def reviewed(before: Card | None, user: str, word: tuple[str, int], grade: Grade, now: datetime) -> Card:
    """The card after a review, its first one if there was none before."""
    state = fsrs.Card(card_id=0, due=now) if before is None else _fsrs_card(before)
    after, _ = _SCHEDULER.review_card(state, _RATINGS[grade], now)
    list_id, ordinal = word
    return Card(
        user=user,
        list=list_id,
        ordinal=ordinal,
        due=_to_milliseconds(after.due),
        stability=after.stability or 0.0,
        difficulty=after.difficulty or 0.0,
        state=after.state.value,
        reviewed_at=now,
        reviews=(before.reviews if before else 0) + 1,
        step=after.step,
    )


def _fsrs_card(card: Card) -> fsrs.Card:
    return fsrs.Card(
        card_id=0,
        state=fsrs.State(card.state),
        step=card.step,
        stability=card.stability,
        difficulty=card.difficulty,
        due=card.due,
        last_review=card.reviewed_at,
    )


def _to_milliseconds(moment: datetime) -> datetime:
    """Stored times have three decimals."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
