"""Which voters are suspicious: the null holds, each kind of cheating is seen, and nobody else is named."""

from math import exp
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore.voting.suspects import RankChange
from resolvers.voting.kept_votes import SKIP, SeenVote
from resolvers.voting.suspicion import LEAST_OF_NETWORK, Detector, Suspicion, binomial_tail, mixed_tail, rank_changes

CONTENDERS = 20
ORDERS = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
STRENGTHS = {contender: (contender - 10) / 5 for contender in range(CONTENDERS)}


def honest(random: Random, number: int, network: str | None = None) -> list[SeenVote]:
    """Votes by the strengths, at a person's pace."""
    at, votes = 0.0, []
    for _ in range(number):
        low, high = sorted(random.sample(range(CONTENDERS), 2))
        at += 4 * exp(random.gauss(0, 0.7))
        won = float(random.random() < 1 / (1 + exp(STRENGTHS[high] - STRENGTHS[low])))
        skips = random.random() < 0.06
        votes.append(SeenVote(low, high, random.random() < 0.5, SKIP if skips else won, at, network))
    return votes


def looked(detector: Detector) -> list[Suspicion]:
    detector.look()
    return detector.suspects()


def probability(votes: list[SeenVote]) -> float:
    detector = Detector(STRENGTHS, CONTENDERS)
    detector.see("v", votes)
    return min((each.probability for each in looked(detector)), default=1.0)


def test_at_most_the_stated_share_of_honest_voters_is_listed() -> None:
    """For each probability that an editor may ask for."""
    random, detector = Random(1), Detector(STRENGTHS, CONTENDERS)
    for voter in range(1_000):
        detector.see(str(voter), honest(random, random.choice((1, 5, 20, 60))))
    listed = [each.probability for each in looked(detector)]
    assert all(sum(each <= at_most for each in listed) <= at_most * 1_000 for at_most in (0.01, 0.05, 0.1))


def test_each_way_of_cheating_is_seen() -> None:
    """One side, both in turn, at one rhythm, without looking, or for one contender while other pairs are skipped."""
    votes = honest(Random(2), 100)
    in_turn = [vote._replace(won=float(vote.low_is_left == bool(number % 2))) for number, vote in enumerate(votes)]
    assert probability(in_turn) < 0.01
    assert probability([vote._replace(won=float(vote.low_is_left)) for vote in votes]) < 0.01
    assert probability([vote._replace(at=30.0 * number) for number, vote in enumerate(votes)]) < 0.01
    assert probability([vote._replace(at=0.3 * number**1.01) for number, vote in enumerate(votes)]) < 0.01
    loyal = [vote._replace(won=float(vote.low == 5)) if 5 in vote[:2] else vote._replace(won=SKIP) for vote in votes]
    assert probability(loyal) < 0.01


def test_who_skips_quickly_and_votes_thoughtfully_is_nobody() -> None:
    """A skip changes nothing, and no reason tells of more votes than were cast."""
    votes = honest(Random(2), 30)
    quick = [vote._replace(won=SKIP, at=0.5 * number) for number, vote in enumerate(votes[:20])]
    slow = [vote._replace(won=0.0, at=10 + 4.0 * 1.2**number) for number, vote in enumerate(votes[20:])]
    assert probability(quick + slow) > 0.01


@pytest.mark.parametrize(("up", "told"), [((), "against were votes against it."), ((4,), "for or against were votes")])
def test_a_group_s_voter_is_told_which_way_it_goes(up: tuple[int, ...], told: str) -> None:
    """Not that it votes for a contender, where it votes against one."""
    random, detector = Random(3), Detector(STRENGTHS, CONTENDERS)
    for voter in range(60):
        detector.see(str(voter), honest(random, 30))
    for voter in range(5):
        walked = [vote for vote in honest(random, 100) if {14, *up}.intersection(vote[:2])]
        pushing = [vote._replace(won=float(vote.low in up or vote.high == 14)) for vote in walked]
        detector.see(f"group {voter}", pushing)
    reasons = {each.voter: each.reasons for each in looked(detector)}
    assert any(told in reason for reason in reasons["group 1"])


def test_a_burst_is_a_reason_from_twenty_voters_on() -> None:
    """And then for those who chose the same contender, of all that they were shown, not for others of the network."""
    for number in (LEAST_OF_NETWORK - 2, 60):
        detector = Detector(STRENGTHS, CONTENDERS)
        for voter in range(number):
            other = 6 + voter % (CONTENDERS - 6)
            detector.see(f"bot {voter}", [SeenVote(5, other, low_is_left=True, won=1.0, at=0.0, network="n")])
        detector.see("guest", [SeenVote(7, 9, low_is_left=True, won=1.0, at=0.0, network="n")])
        found = {each.voter for each in looked(detector)}
        assert found == (set() if number < LEAST_OF_NETWORK - 1 else {f"bot {voter}" for voter in range(number)})


def test_in_a_final_a_favourite_is_no_burst() -> None:
    """Of 64 contenders, two are left: each pair has the one that a school prefers. Some came before, when all were."""
    detector = Detector({}, 64)
    for voter in range(30):
        pair = SeenVote(2 + voter, 33 + voter, low_is_left=True, won=1.0, at=0.0, network="school")
        detector.see(f"early {voter}", [pair])
    for voter in range(300):
        won = float(voter < 255)
        detector.see(str(voter), [SeenVote(0, 1, low_is_left=bool(voter % 2), won=won, at=0.0, network="school")])
    assert looked(detector) == []


def test_who_judges_the_same_pairs_again_says_nothing_new() -> None:
    """On a board of three, everybody begins the next cycle at once: fans of one contender are no group."""
    random, detector = Random(1), Detector({}, 3)
    orders = [order for order, fans in zip(ORDERS, (7, 7, 4, 4, 4, 4), strict=True) for _ in range(fans)]
    for voter, order in enumerate(orders):
        at, votes = 0.0, []
        for _ in range(10):
            for low, high in random.sample(((0, 1), (0, 2), (1, 2)), 3):
                at += 4 * exp(random.gauss(0, 0.7))
                won = float(order.index(low) < order.index(high))
                votes.append(SeenVote(low, high, random.random() < 0.5, won, at))
        detector.see(str(voter), votes)
    assert [each for each in looked(detector) if each.probability <= 0.01] == []
    assert not detector.pushes.pushed


def test_a_voter_without_counted_votes_is_nobody() -> None:
    detector = Detector(STRENGTHS, CONTENDERS)
    detector.see("v", [SeenVote(0, 1, low_is_left=True, won=SKIP, at=0.0)] * 50)
    assert (detector.voters, looked(detector)) == (0, [])


@given(st.integers(0, 30), st.integers(1, 30), st.floats(0.01, 0.99))
def test_both_tails_agree_where_all_chances_are_equal(found: int, number: int, chance: float) -> None:
    """The chance of at least so many; the binomial one is 1 below the mean, which is kinder still."""
    if found > number * chance and found <= number:
        assert binomial_tail(found, number, chance) == pytest.approx(
            mixed_tail(found, [chance] * number), rel=1e-6, abs=1e-12
        )


def test_ranks_change_for_those_who_pass_each_other() -> None:
    """Equal scores share a rank."""
    assert rank_changes({0: 5, 1: 4, 2: 1}, {0: 1}) == [RankChange(1, 2, 1)]
    assert rank_changes({0: 5, 1: 4}, {}) == []
