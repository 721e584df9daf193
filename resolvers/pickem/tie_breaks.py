"""Tie-breaks: an event asks for a number, predictions guess it, and the nearest guess is listed first among equals.

Ranks stay shared; only the listed order changes. Within an event: points, nearest guess (over or under alike), correct
picks, who joined first. Within a season: points, correct picks, sum of distances, who joined first. A missing guess
counts as the worst distance given in that event, so not guessing never pays; an event without an answer counts for
nobody. What is stored is the closeness: the worst distance less one's own, which orders in the same way and is 0 for a
missing guess.

The question can be replaced until the lock; guesses for an earlier one then count as missing. A prediction has the
number of the question, so no prediction has to be changed, and a submission under way needs no gate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from datastore.dynamo import Table
from datastore.pickem import THOUSAND, Event, Prediction, TieBreak, predictions_to_score
from datastore.refusals import InvalidInput
from resolvers.values.texts import parse_line

LONGEST_QUESTION = 200
LONGEST_UNIT = 40
LARGEST = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TieBreakInput:
    """A tie-break as a client sends it."""

    question: str
    unit: str | None = None


def parse_tie_break(given: TieBreakInput) -> TieBreak:
    path = ("input", "tieBreak")
    question = parse_line(given.question, LONGEST_QUESTION, "A tie-break's question", (*path, "question"))
    if given.unit is None:
        return TieBreak(question)
    return TieBreak(question, parse_line(given.unit, LONGEST_UNIT, "A tie-break's unit", (*path, "unit")))


def with_question(event: Event, asked: TieBreak | None) -> Event:
    """A changed event with a tie-break in place of its own. The same question keeps its answer and its number."""
    earlier = event.tie_break
    if asked is None:
        return replace(event, tie_break=None)
    if earlier is not None and (asked.question, asked.unit) == (earlier.question, earlier.unit):
        return event
    return replace(event, tie_break=replace(asked, number=event.version))


def parse_number(number: float, *path: str) -> int:
    """In thousandths, to which it is rounded. The path names the field of the input that has it."""
    if not abs(number) <= LARGEST:  # NaN neither
        raise InvalidInput(f"`{path[-1]}` is a number from -{LARGEST:,} to {LARGEST:,}.", path=("input", *path))
    return round(number * THOUSAND)


def parse_guess(event: Event, guess: float | None) -> int | None:
    if guess is None:
        return None
    if event.tie_break is None:
        raise InvalidInput("This event asks for no number; leave `guess` out.", path=("input", "guess"))
    return parse_number(guess, "guess")


def guess_of(event: Event, prediction: Prediction) -> int | None:
    """The guess for the question that the event asks, in thousandths; a guess for an earlier question is none."""
    is_asked = event.tie_break is not None and event.tie_break.number == prediction.question
    return prediction.guess if is_asked else None


def _distance(event: Event, prediction: Prediction) -> int | None:
    """Between the guess and the answer; None if one of them is missing."""
    answer, guess = event.tie_break.thousandths if event.tie_break else None, guess_of(event, prediction)
    return None if answer is None or guess is None else abs(guess - answer)


def closeness(event: Event, worst: int, prediction: Prediction) -> int:
    """How much nearer the guess is than the worst one."""
    distance = _distance(event, prediction)
    return 0 if distance is None else worst - distance


async def worst_distance(table: Table, event: Event, at_once: int) -> int:
    """The distance of the worst guess of a locked event: one pass over its predictions if there is an answer."""
    worst = 0
    if event.tie_break is not None and event.tie_break.thousandths is not None:
        async for predictions in predictions_to_score(table, event.id, at_once):
            worst = max(worst, *(_distance(event, prediction) or 0 for prediction in predictions))
    return worst
