"""What a group of voters pushes: the evidence holds on honest boards, finds groups, and nobody makes one alone."""

from collections.abc import Sequence
from itertools import chain, combinations, count, islice, product
from math import exp
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvers.voting.kept_votes import SKIP, TIE, Honest, KeptVotes, SeenVote, chance, once
from resolvers.voting.pushes import Pushes, find_pushes, ratio
from resolvers.voting.suspicion import Detector, PushedRank, pushed_ranks

CONTENDERS = 20
TARGET = 7
PAIRS = list(combinations(range(CONTENDERS), 2))
SEEN = st.lists(st.tuples(st.integers(0, 9), st.integers(10, 19), st.sampled_from((0.0, TIE, 1.0, SKIP))), max_size=30)


def votes(random: Random, number: int, *, pusher: bool = False, taste: float = 0.4) -> list[SeenVote]:
    """By equal strengths and an own taste; a pusher's for the target, whenever it is there. Pairs come in cycles."""
    own = [random.gauss(0, taste) for _ in range(CONTENDERS)]
    cast = []
    cycles = chain.from_iterable(random.sample(PAIRS, len(PAIRS)) for _ in count())
    for place, (low, high) in enumerate(islice(cycles, number)):
        won = float(random.random() < chance(own[low] - own[high]))
        if pusher and TARGET in (low, high):
            won = float(low == TARGET)
        cast.append(SeenVote(low, high, random.random() < 0.5, won, 5.0 * exp(random.gauss(0, 1)) + 60.0 * place))
    return cast


def board(seed: int, honest: int, pushers: int, *, each: int = 50) -> tuple[KeptVotes, Pushes]:
    random, kept = Random(seed), KeptVotes()
    for voter in range(honest + pushers):
        kept.add(str(voter), 0, votes(random, each, pusher=voter >= honest))
    return kept, find_pushes(kept, CONTENDERS)


@pytest.mark.slow
def test_a_group_is_found_and_who_belongs_to_it() -> None:
    """The contender and the way; of its voters those whose votes honest ones rarely cast."""
    _, found = board(1, 400, 40)
    assert [(push.contender, push.up) for push in found.pushed] == [(TARGET, True)]
    listed = {each.voter for each in found.pushers if each.chance <= 0.01}
    assert sum(voter >= 400 for voter in listed) >= 10
    assert sum(voter < 400 for voter in listed) <= 4


@pytest.mark.parametrize("seed", range(3))
def test_an_honest_board_has_no_group(seed: int) -> None:
    assert not board(seed, 200, 0)[1].pushed


def test_one_voter_is_no_group() -> None:
    """However many votes they cast."""
    random, kept = Random(4), KeptVotes()
    for voter in range(200):
        kept.add(str(voter), 0, votes(random, 20))
    kept.add("fan", 0, votes(random, 2_000, pusher=True))
    assert not find_pushes(kept, CONTENDERS).pushed


def test_who_votes_for_one_of_very_many_and_skips_the_others_ends_no_search() -> None:
    """However improbable that is: a bot has seen all pairs of a board of 360 within half an hour."""
    detector, others = Detector({}, 360), [(low, low + 1) for low in range(1, 40)]
    for voter in range(10):
        votes = [SeenVote(*pair, low_is_left=True, won=float(sum(pair, voter) % 4 < 2), at=0.0) for pair in others]
        detector.see(f"fan {voter}", votes)
    for bot in range(3):
        skipped = [SeenVote(*pair, low_is_left=True, won=SKIP, at=0.0) for pair in others]
        loyal = [SeenVote(0, other, low_is_left=bool(other % 2), won=1.0, at=0.0) for other in range(1, 360)]
        detector.see(f"bot {bot}", skipped + loyal)
    detector.look()
    assert {f"bot {bot}" for bot in range(3)} <= {each.voter for each in detector.suspects()}
    assert detector.pushed_scores() == {0: 3 * 359, **dict.fromkeys(range(1, 360), -3)}


def test_tastes_that_go_both_ways_are_no_push() -> None:
    """As many are for it as against it."""
    random, kept = Random(5), KeptVotes()
    for voter in range(300):
        cast = votes(random, 50, pusher=voter < 30)
        if 30 <= voter < 60:
            cast = [vote._replace(won=float(vote.low != TARGET)) if TARGET in vote[:2] else vote for vote in cast]
        kept.add(str(voter), 0, cast)
    assert not find_pushes(kept, CONTENDERS).pushed


@pytest.mark.slow
def test_the_rank_without_a_group_is_the_honest_one() -> None:
    """Also where few of its voters can be listed."""
    random, detector = Random(7), Detector({}, CONTENDERS)
    scores, honest = dict.fromkeys(range(CONTENDERS), 0), dict.fromkeys(range(CONTENDERS), 0)
    for voter in range(440):
        cast = votes(random, 50, pusher=voter >= 400)
        detector.see(str(voter), cast)
        for vote in cast:
            for contender, change in ((vote.low, 2 * vote.won - 1), (vote.high, 1 - 2 * vote.won)):
                scores[contender] += int(change)
                honest[contender] += int(change) if voter < 400 else 0
    detector.look()
    added = detector.pushed_scores()
    assert abs(added[TARGET] - (scores[TARGET] - honest[TARGET])) < 0.4 * (scores[TARGET] - honest[TARGET])
    [told] = pushed_ranks(scores, added, detector.pushes)
    assert told == PushedRank(TARGET, up=True, rank=1, without=told.without)
    assert told.without > 1


@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(0.3, 1)), min_size=1, max_size=7), st.floats(0.1, 1.15))
def test_a_ratio_has_a_mean_of_one_for_honest_voters(pairs: Sequence[tuple[float, float]], share: float) -> None:
    """By the tastes that it allows for: so is the mean of any product of them, and Markov's inequality holds."""
    weights = {step * 0.2: exp(-((step / 2) ** 2) / 2) for step in range(-6, 7)}
    mean = 0.0
    for taste, weight in weights.items():
        for ways in product((True, False), repeat=len(pairs)):
            honest = 1.0
            for (lead, decided), way in zip(pairs, ways, strict=True):
                goes = min(1.0, share * decided) * chance(lead + taste)
                honest *= goes if way else 1 - goes
            judged = [(lead, decided, way) for (lead, decided), way in zip(pairs, ways, strict=True)]
            mean += weight / sum(weights.values()) * honest * ratio(judged, share)
    assert mean == pytest.approx(1.0)


@given(st.lists(SEEN, max_size=8), st.sets(st.integers(0, 7)))
def test_tallies_without_voters_are_those_of_a_board_without_them(
    cast: Sequence[Sequence[tuple[int, int, float]]], out: set[int]
) -> None:
    """And what is kept of each voter is what was added, each pair once."""
    kept, others = KeptVotes(), KeptVotes()
    gone = [voter for voter in out if voter < len(cast)]
    for voter, each in enumerate(cast):
        seen = [SeenVote(low, high, low_is_left=True, won=won, at=0.0) for low, high, won in each]
        assert kept.add(f"voter {voter}", voter + 5, seen) == voter
        if voter not in out:
            others.add(f"voter {voter}", voter + 5, seen)
        assert list(kept.of(voter)) == [(vote.low, vote.high, vote.winner) for vote in once(seen)]
        assert (kept.name(voter), kept.last_vote(voter)) == (f"voter {voter}", voter + 5)
    left = {pair: tally for pair, tally in kept.tallies(gone).items() if any(tally)}
    assert left == others.tallies()
    assert Honest.of(kept.tallies(gone)).strengths == pytest.approx(Honest.of(others.tallies()).strengths, abs=1e-3)
