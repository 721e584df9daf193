"""Which contenders a group of voters pushes up or down, and which voters vote as such a group does.

One voter says little: on a board of 50, 50 votes have two pairs with a given contender. A group says more, since its
voters do the same. For each contender and way (up, down), a voter's ratio compares two chances of the verdicts on its
pairs: by a pusher, who goes this way in 19 of 20, and by an honest voter, who goes by the strengths, a taste of
N(0, 0.4), and decides as often as on other pairs. If a share of the voters pushes, the product of
1 + share * (ratio - 1) over all voters is large; the evidence is its mean over five shares.

Invariant of the group: on an honest board each ratio has a mean of at most 1, hence so has the evidence; by Markov's
inequality it reaches 2 * contenders / `FALSE` for any of them with a chance of at most `FALSE`. A ratio counts at most
`MOST_RATIO`, so no single voter makes a push. What goes both ways is taste: evidence against counts off.

Invariant of a voter: the ratio over all pushes, now with a taste of N(0, 0.8), is compared with those of honest voters
who are simulated on the very same pairs. So at most the stated share of honest voters gets it.

Pushers hide themselves in the strengths they push. So those who are more probably pushers than not are taken out of the
fit, until nothing changes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import exp, log, log1p, prod
from random import Random
from typing import NamedTuple, TypeAlias

from resolvers.voting.kept_votes import Honest, KeptVotes, chance

FALSE = 0.05
MOST_RATIO = 400.0
_LARGEST = 1e300
"""Whoever votes for a contender on hundreds of its pairs and skips all others has larger ratios than a float can be."""
_LOYAL = 0.95
_LEAST_LOYAL = 0.75
_LEAST_SEEN = 2
_SHARES = (0.003, 0.01, 0.03, 0.1, 0.3)
_GROUP_TASTE, _TASTE = 0.4, 0.8
_MARGIN = 0.15
"""How much more often somebody may decide the pairs of a favourite."""
_ROUNDS = 5
_SIMULATED, _MOST_TIMES = 100_000, 1_000

Judged: TypeAlias = tuple[float, float, bool]
"""By how much the pushed way leads, how often such a pair is decided, and whether the verdict went this way."""


class Push(NamedTuple):
    """A contender that a group votes for (`up`) or against, and what part of the voters the group is."""

    contender: int
    up: bool
    share: float


@dataclass(frozen=True, slots=True)
class Pusher:
    """A voter on pushed contenders' pairs."""

    voter: int
    chance: float
    """That an honest voter's verdicts look as much like a push."""
    pusher: float
    """The probability that this is one, by the size of the group."""
    went: int
    pairs: int
    """With those that the voter skipped."""
    up: bool | None
    """The way of all that is pushed there; None if it goes both ways."""


@dataclass(frozen=True, slots=True)
class Pushes:
    """What a board's votes show of groups."""

    pushed: Sequence[Push]
    pushers: Sequence[Pusher]


NOTHING_PUSHED = Pushes((), ())


def find_pushes(kept: KeptVotes, contenders: int, known: Collection[int] = ()) -> Pushes:
    """The pushes of a board, and everybody who voted on what is pushed. Known suspects are not taken for honest."""
    out = set(known)
    honest = Honest.of(kept.tallies(out))
    found = NOTHING_PUSHED
    for _ in range(_ROUNDS):
        pushed = _pushed(kept, honest, contenders)
        found = Pushes(pushed, _pushers(kept, honest, pushed) if pushed else ())
        probable = {each.voter for each in found.pushers if each.pusher > 1 / 2}.union(known)
        if probable == out:
            break
        out = probable
        honest = Honest.of(kept.tallies(out), honest.strengths)
    return found


# ── ratios ──


def _tastes(deviation: float) -> Sequence[tuple[float, float]]:
    """What each taste multiplies the odds against by, and how frequent it is."""
    steps = [step / 2 for step in range(-6, 7)]
    weights = [exp(-step * step / 2) for step in steps]
    return [(exp(-deviation * step), weight / sum(weights)) for step, weight in zip(steps, weights, strict=True)]


_GROUP_TASTES, _TASTES = _tastes(_GROUP_TASTE), _tastes(_TASTE)


def ratio(judged: Sequence[Judged], share: float, tastes: Sequence[tuple[float, float]] = _GROUP_TASTES) -> float:
    """How many times more probable verdicts on one contender's pairs are by a pusher than by an honest voter."""
    odds = [(exp(-lead), min(1.0, share * decided), way) for lead, decided, way in judged]
    by_honest = 0.0  # for each time by a pusher
    for against, weight in tastes:
        product = weight
        for own, decides, way in odds:
            goes = decides / (1 + own * against)
            product *= goes / _LOYAL if way else (1 - goes) / (1 - _LOYAL)
        by_honest += product
    return 1 / max(by_honest, 1 / _LARGEST)


def _loyal(judged: Iterable[Judged]) -> bool:
    """Others' ratio is taken as 0, which is less and spares the work."""
    ways = [way for *_, way in judged]
    return sum(ways) >= _LEAST_LOYAL * len(ways)


def _share(decided: int, expected: float) -> float:
    """How often a voter decides pairs, of those that others decide; a favourite's may be decided more often."""
    return min(1.0, decided / expected) + _MARGIN if expected > 0 else 1.0


# ── groups ──


_Seen: TypeAlias = list[tuple[float, float, int | None]]
"""A voter's pairs with one contender: its leads, how often such are decided, and 1 for a win, 0 for a loss."""


def _ways(seen: _Seen, *, up: bool) -> list[Judged]:
    wanted, sign = (1, 1.0) if up else (0, -1.0)
    return [(sign * lead, decided, won == wanted) for lead, decided, won in seen]


def _pushed(kept: KeptVotes, honest: Honest, contenders: int) -> Sequence[Push]:
    """The contenders whose evidence is enough, one way each."""
    ratios: dict[tuple[int, bool], array[float]] = defaultdict(lambda: array("d"))
    for voter in range(len(kept)):
        if kept.number_of_votes(voter) >= _LEAST_SEEN:
            _add_ratios(ratios, kept, honest, voter)
    evidence = {key: _evidence(each) for key, each in ratios.items()}
    enough = log(2 * max(1, contenders) / FALSE)
    found = []
    for (contender, up), (weight, share) in evidence.items():
        against = evidence.get((contender, not up), (0.0, 0.0))[0]
        if weight - max(0.0, against) >= enough:
            found.append(Push(contender, up, share))
    return sorted(found)


def _add_ratios(ratios: dict[tuple[int, bool], array[float]], kept: KeptVotes, honest: Honest, voter: int) -> None:
    seen: defaultdict[int, _Seen] = defaultdict(list)
    decided, expected = 0, 0.0
    for low, high, winner in kept.of(voter):
        lead, decides = honest.pair(low, high)
        decided += winner is not None
        expected += decides
        for one, own, won in ((low, lead, low), (high, -lead, high)):
            seen[one].append((own, decides, None if winner is None else int(winner == won)))
    for contender, each in seen.items():
        if len(each) < _LEAST_SEEN:
            continue
        here = sum(won is not None for *_, won in each)
        share = _share(decided - here, expected - sum(decides for _, decides, _ in each))
        for up in (True, False):
            judged = _ways(each, up=up)
            ratios[contender, up].append(min(MOST_RATIO, ratio(judged, share)) if _loyal(judged) else 0.0)


def _evidence(ratios: Collection[float]) -> tuple[float, float]:
    """The logarithm of the mean of the products, and the share with the largest one."""
    without = sum(not each for each in ratios)
    telling = [each - 1 for each in ratios if each]
    products = [without * log1p(-share) + sum(log1p(share * more) for more in telling) for share in _SHARES]
    most = max(products)
    mean = sum(exp(each - most) for each in products) / len(products)
    return most + log(mean), _SHARES[products.index(most)]


# ── voters ──


class _Stand(NamedTuple):
    """How a voter judged the pairs of pushed contenders, by contender, and their share of decided other pairs."""

    judged: Sequence[Sequence[Judged]]
    share: float
    ways: frozenset[bool]
    """Of the pushes."""

    @property
    def ratio(self) -> float:
        if not _loyal(chain.from_iterable(self.judged)):
            return 0.0
        return min(_LARGEST, prod(ratio(each, self.share, _TASTES) for each in self.judged))

    def simulated(self, random: Random) -> _Stand:
        """An honest voter's verdicts on the same pairs."""
        judged = []
        for each in self.judged:
            taste = random.gauss(0, _TASTE)
            judged.append(
                [
                    (lead, decided, random.random() < min(1.0, self.share * decided) * chance(lead + taste))
                    for lead, decided, _ in each
                ]
            )
        return self._replace(judged=judged)


def _pushers(kept: KeptVotes, honest: Honest, pushed: Iterable[Push]) -> Sequence[Pusher]:
    ways = {push.contender: push.up for push in pushed}
    share = max(push.share for push in pushed)
    stands = {voter: stand for voter in range(len(kept)) if (stand := _stand(kept, honest, ways, voter)) is not None}
    times = max(1, min(_MOST_TIMES, _SIMULATED // max(1, len(stands))))
    random = Random(len(stands))  # noqa: S311 - a simulation, the same each time
    null = sorted(stand.simulated(random).ratio for stand in stands.values() for _ in range(times))
    everybody = times * len(kept)
    return [_pusher(voter, stand, null, everybody, share) for voter, stand in stands.items()]


def _stand(kept: KeptVotes, honest: Honest, ways: Mapping[int, bool], voter: int) -> _Stand | None:
    """A pair of two that are pushed opposite ways counts once, and one of two that are pushed one way says nothing."""
    judged: dict[int, list[Judged]] = defaultdict(list)
    others, expected, seen = 0, 0.0, set[bool]()
    for low, high, winner in kept.of(voter):
        low_up, high_up = ways.get(low), ways.get(high)
        lead, decides = honest.pair(low, high)
        if low_up == high_up:
            others += winner is not None
            expected += decides
            continue
        seen.update(up for up in (low_up, high_up) if up is not None)
        low_wanted = low_up if low_up is not None else not high_up
        wanted, ahead = (low, lead) if low_wanted else (high, -lead)
        judged[low if low_up is not None else high].append((ahead, decides, winner == wanted))
    return _Stand(list(judged.values()), _share(others, expected), frozenset(seen)) if judged else None


def _pusher(voter: int, stand: _Stand, null: Sequence[float], everybody: int, share: float) -> Pusher:
    own = stand.ratio
    as_much = len(null) - bisect_left(null, own) if own else everybody
    pairs = sum(map(len, stand.judged))
    went = sum(way for each in stand.judged for *_, way in each)
    probable = share * own / (1 - share + share * own)
    up = None if len(stand.ways) > 1 else True in stand.ways
    return Pusher(voter, (1 + as_much) / (1 + everybody), probable, went, pairs, up)
