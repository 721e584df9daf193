"""Strengths, beside an independent implementation and by what must hold."""

import warnings
from itertools import combinations
from math import exp, isfinite, log, sqrt
from random import Random

import pytest

from resolvers.voting.bradley_terry import EXACT, Meeting, Strength, fit

# Home and away games of the Eastern division of the American League, 1987: wins of the row over the column.
# Milwaukee, Detroit, Toronto, New York, Boston, Cleveland, Baltimore: A. Agresti, Categorical Data Analysis, 10.10.
WINS = (
    (0, 7, 9, 7, 7, 9, 11),
    (6, 0, 7, 5, 11, 9, 9),
    (4, 6, 0, 7, 7, 8, 12),
    (6, 8, 6, 0, 6, 7, 10),
    (6, 2, 6, 7, 0, 7, 12),
    (4, 4, 5, 6, 6, 0, 6),
    (2, 4, 1, 3, 1, 7, 0),
)
# The book's estimates, with Baltimore at 0.
PUBLISHED = (1.58, 1.44, 1.29, 1.25, 1.11, 0.68, 0.0)


def games(times: int = 1) -> list[Meeting]:
    return [Meeting(i, j, times * WINS[i][j], times * WINS[j][i]) for i, j in combinations(range(7), 2)]


def test_the_published_example() -> None:
    """Within what one imaginary game of each team, half won and half lost, pulls towards the middle."""
    found = fit(games())
    for one, published in enumerate(PUBLISHED):
        assert found[one].value - found[6].value == pytest.approx(published, abs=0.12)
    # With a thousand times the games the one imaginary game counts for nothing.
    found = fit(games(1000))
    for one, published in enumerate(PUBLISHED):
        assert found[one].value - found[6].value == pytest.approx(published, abs=0.006)


@pytest.mark.slow
def test_an_independent_implementation_agrees() -> None:
    """evalica's Bradley-Terry on the same games, the imaginary ones included, to five digits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evalica = pytest.importorskip("evalica", reason="evalica is a development dependency")
    lefts, rights, winners, weights = [], [], [], []
    pairs = [(str(game.one), str(game.other), game.won, game.lost) for game in games()]
    pairs += [(str(one), "imaginary", 0.5, 0.5) for one in range(7)]
    for left, right, won, lost in pairs:
        for winner, weight in ((evalica.Winner.X, won), (evalica.Winner.Y, lost)):
            lefts.append(left)
            rights.append(right)
            winners.append(winner)
            weights.append(float(weight))
    result = evalica.bradley_terry(lefts, rights, winners, weights=weights, tolerance=1e-12, limit=100_000)
    theirs = {one: log(result.scores[str(one)]) for one in range(7)}
    mean = sum(theirs.values()) / 7
    ours = fit(games())
    for one in range(7):
        assert ours[one].value == pytest.approx(theirs[one] - mean, abs=1e-5)


def test_strengths_are_finite() -> None:
    """One who won everything, and one who lost everything, on parts of a board that never met."""
    found = fit([Meeting(1, 2, 50, 0), Meeting(3, 4, 0, 50)])
    assert all(isfinite(number) for one in found.values() for number in (one.value, one.low, one.high))
    assert found[1].value > found[2].value
    assert found[4].value > found[3].value
    assert all(one.low < one.value < one.high for one in found.values())
    assert fit([]) == {}


@pytest.mark.parametrize(("strong", "weak"), [(2, 1), (1, 2), (3, 2), (10, 5)])
@pytest.mark.slow
def test_strengths_are_finite_however_long_some_lose_every_vote(strong: int, weak: int) -> None:
    """As votes come in, each fit begins with the strengths of the one before."""
    start, votes = None, 100.0
    while votes < 1e6:
        pairs = [(one, other, one < strong <= other) for other in range(strong + weak) for one in range(other)]
        meetings = [Meeting(one, other, *((votes, 0) if unequal else (votes, votes))) for one, other, unequal in pairs]
        start = {one: strength.value for one, strength in fit(meetings, start).items()}
        assert all(isfinite(value) for value in start.values())
        assert start[0] > start[strong]
        votes *= 1.1


def test_the_order_of_votes_does_not_matter() -> None:
    """Nor is who is called first."""
    turned = [Meeting(game.other, game.one, game.lost, game.won) for game in reversed(games())]
    for one, strength in fit(games()).items():
        assert fit(turned)[one].value == pytest.approx(strength.value, abs=1e-4)


def simulated(chance: Random, contenders: int, votes: int) -> tuple[list[float], dict[int, Strength]]:
    """True strengths with a mean of 0, and what was found from votes that follow them."""
    true = [chance.gauss(0, 1) for _ in range(contenders)]
    mean = sum(true) / contenders
    true = [value - mean for value in true]
    meetings = []
    for _ in range(votes):
        one, other = chance.sample(range(contenders), 2)
        won = chance.random() < 1 / (1 + exp(true[other] - true[one]))
        meetings.append(Meeting(one, other, float(won), float(not won)))
    return true, fit(meetings)


@pytest.mark.slow
def test_intervals_contain_the_true_strength_as_often_as_they_say() -> None:
    """Of 1,200 true strengths, 93 to 97.5 % lie in their interval: with the exact inverse, and with its series."""
    chance, inside, total = Random(7), 0, 0
    for _ in range(60):
        true, found = simulated(chance, 20, 1000)
        inside += sum(found[one].low <= value <= found[one].high for one, value in enumerate(true))
        total += len(true)
    assert 0.93 < inside / total < 0.975
    true, found = simulated(chance, EXACT + 50, 20_000)
    within = sum(found[one].low <= value <= found[one].high for one, value in enumerate(true)) / len(true)
    assert 0.9 < within < 0.985


def test_more_votes_narrow_the_interval() -> None:
    """Four times the votes, half the width."""
    few, many = fit(games(10)), fit(games(40))
    ratio = (few[0].high - few[0].low) / (many[0].high - many[0].low)
    assert ratio == pytest.approx(sqrt(4), rel=0.02)
