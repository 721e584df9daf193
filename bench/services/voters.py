"""Simulated voters of a board: honest ones of several kinds, and five kinds of attackers who want one contender up.

A board of 50 contenders with strengths from N(0, 1), and 200,000 counted votes. Attackers cast 5 % of them. The target
is the contender of the middle rank. Each voter walks through the pairs in a random order without repeats, as the
service draws them, and each pair's sides are a coin's toss.

| honest kind   | of voters | how they vote                                                                         |
|---------------|-----------|---------------------------------------------------------------------------------------|
| plain         | 70 %      | by the common strengths and an own taste with a standard deviation of 0.3             |
| strong tastes | 10 %      | their own taste has one of 1.5                                                        |
| left-handers  | 10 %      | as plain ones, but 24 % of their verdicts are for the left side, whoever stands there |
| school        | 8 %       | as plain ones, all for one hero (+1), in three networks, 8 votes each, within 3 hours |
| power voters  | 2 %       | as plain ones, 200 to 800 votes each                                                  |

Others cast 20 votes on average (geometric). All skip 6 % of their pairs; a tenth of them knows half of the contenders
and also skips pairs of two that they do not know. A given share of the verdicts are ties, more of them on even pairs.
Four seconds lie between two votes (median, log-normal, 0.7), with breaks of an hour on average after 3 % of the votes.
Two of five share a network with up to four others.

| attackers | how they vote                                                                                     |
|-----------|---------------------------------------------------------------------------------------------------|
| scripted  | a program in four networks draws until a pair has the target, votes for it, and drops its cookie  |
| eager     | 200 people, 50 votes each: they skip eight of ten pairs without the target, always vote for it    |
| patient   | people who vote honestly on other pairs, and nine times out of ten for the target on its own      |
| targeted  | people who always vote for the target, against the three ranked just above it, and else honestly  |
| slow bots | 40 programs, 250 votes each, every half minute (± 5 %): for the target, else for the left side    |

People among the attackers vote like plain ones otherwise. A simulation depends on its seed alone. Seeds below
`FIRST_FINAL` serve to build a detector; the others, for the published figures only.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from math import exp
from random import Random
from typing import NamedTuple

CONTENDERS = 50
VOTES = 200_000
ATTACK = 0.05
SEEDS = 8
FIRST_FINAL = 4

TARGET = CONTENDERS // 2
"""The target's rank among the strengths, from 0."""
RIVALS = 3

PLAIN, STRONG, LEFT_HANDED, SCHOOL, POWER = "plain", "strong tastes", "left-handers", "school", "power voters"
HONEST = (PLAIN, STRONG, LEFT_HANDED, SCHOOL, POWER)
_SHARES = (0.70, 0.10, 0.10, 0.08, 0.02)
_TASTE, _STRONG_TASTE, _HERO = 0.3, 1.5, 1.0
_SKIPPED, _CHOOSY = 0.06, 0.1
_LEFT_HANDED = 0.24
_WEEK = 7 * 86_400.0
_PAIRS = [(low, high) for high in range(CONTENDERS) for low in range(high)]


class SimulatedVote(NamedTuple):
    """`won` is 1 if the lower ordinal won, 0 if the higher did, 0.5 for a tie and -1 for a skip."""

    voter: int
    low: int
    high: int
    low_is_left: bool
    won: float
    at: float
    network: int


@dataclass
class Simulation:
    """The votes on one board, and who is what."""

    votes: list[SimulatedVote]
    kinds: list[str]
    """By voter; the attackers' is their name."""
    target: int
    strengths: list[float]
    """The true ones."""


@dataclass
class _Voter:
    """How somebody judges a pair: by strengths of their own."""

    strengths: list[float]
    known: frozenset[int] | None = None
    left: float = 0.0
    """The share of verdicts for the left side, whoever stands there."""


@dataclass
class _World:
    """A board's strengths, and what has been simulated so far."""

    random: Random
    ties: float
    strengths: list[float] = field(default_factory=list)
    votes: list[SimulatedVote] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    networks: int = 0
    counted: int = 0

    def __post_init__(self) -> None:
        self.strengths = [self.random.gauss(0, 1) for _ in range(CONTENDERS)]
        mean = sum(exp(-abs(self.strengths[low] - self.strengths[high])) for low, high in _PAIRS) / len(_PAIRS)
        self.tie_scale = self.ties / mean

    def network(self) -> int:
        self.networks += 1
        return self.networks - 1

    def taste(self, deviation: float, hero: int | None = None) -> _Voter:
        own = [strength + self.random.gauss(0, deviation) for strength in self.strengths]
        if hero is not None:
            own[hero] += _HERO
        choosy = self.random.random() < _CHOOSY
        known = frozenset(self.random.sample(range(CONTENDERS), CONTENDERS // 2)) if choosy else None
        return _Voter(own, known)

    def honest_verdict(self, voter: _Voter, low: int, high: int, *, low_is_left: bool) -> float:
        random, lead = self.random.random, voter.strengths[low] - voter.strengths[high]
        if random() < _SKIPPED or (voter.known is not None and not voter.known & {low, high}):
            return -1
        if voter.left and random() < voter.left:
            return float(low_is_left)
        if random() < self.tie_scale * exp(-abs(lead)):
            return 0.5
        return float(random() < 1 / (1 + exp(-lead)))

    def walk(self) -> Iterator[tuple[int, int, bool]]:
        """Pairs without repeats, with the side of the lower one."""
        while True:
            order = self.random.sample(range(len(_PAIRS)), min(len(_PAIRS), 64))
            seen = set(order)
            for number in order:
                yield (*_PAIRS[number], self.random.random() < 0.5)
            rest = [number for number in range(len(_PAIRS)) if number not in seen]
            self.random.shuffle(rest)
            for number in rest:
                yield (*_PAIRS[number], self.random.random() < 0.5)

    def pauses(self) -> Iterator[float]:
        while True:
            long = self.random.expovariate(1 / 3600) if self.random.random() < 0.03 else 0.0
            yield long + 4 * exp(self.random.gauss(0, 0.7))

    def cast(
        self,
        kind: str,
        judge: Callable[[int, int, bool], float],
        wanted: int,
        network: int,
        *,
        begin: float,
        pauses: Iterator[float] | None = None,
    ) -> None:
        """The verdicts of a new voter until so many count."""
        voter, at, pauses, left = len(self.kinds), begin, pauses or self.pauses(), wanted
        self.kinds.append(kind)
        for low, high, low_is_left in islice(self.walk(), 8 * len(_PAIRS)):
            won = judge(low, high, low_is_left)
            at += next(pauses)
            self.votes.append(SimulatedVote(voter, low, high, low_is_left, won, at, network))
            if won >= 0:
                self.counted += 1
                left -= 1
                if not left:
                    return

    def honest(self, kind: str, wanted: int, voter: _Voter, network: int, begin: float) -> None:
        self.cast(
            kind,
            lambda low, high, left: self.honest_verdict(voter, low, high, low_is_left=left),
            wanted,
            network,
            begin=begin,
        )


# ── honest voters ──


def _add_honest(world: _World, votes: int) -> None:
    random = world.random
    schools = [world.network() for _ in range(3)]
    opening = [random.uniform(0, _WEEK) for _ in schools]
    hero = random.randrange(CONTENDERS)
    shared: list[int] = []
    until = world.counted + votes
    while world.counted < until:
        (kind,) = random.choices(HONEST, _SHARES)
        begin, network = random.uniform(0, _WEEK), _network(world, shared)
        wanted = 1 + int(random.expovariate(1 / 19.5))
        voter = world.taste(_STRONG_TASTE if kind == STRONG else _TASTE, hero if kind == SCHOOL else None)
        if kind == LEFT_HANDED:
            voter.left = _LEFT_HANDED
        elif kind == POWER:
            wanted = random.randint(200, 800)
        elif kind == SCHOOL:
            school = random.randrange(len(schools))
            network, begin = schools[school], opening[school] + random.uniform(0, 3 * 3600)
            wanted = 1 + int(random.expovariate(1 / 7.5))
        world.honest(kind, min(wanted, until - world.counted), voter, network, begin)


def _network(world: _World, shared: list[int]) -> int:
    """An own network for three of five; the others share one with up to four."""
    if world.random.random() < 0.6:
        return world.network()
    if not shared:
        shared += [world.network()] * world.random.randint(2, 5)
    return shared.pop()


# ── attackers ──

SCRIPTED, EAGER, PATIENT, TARGETED, SLOW_BOTS = "scripted", "eager", "patient", "targeted", "slow bots"
ATTACKERS = (SCRIPTED, EAGER, PATIENT, TARGETED, SLOW_BOTS)
VOTES_EACH = (5, 20, 50, 100, 200)
"""Of one patient or targeted attacker; fewer votes each mean more attackers."""


def _for(target: int, low: int) -> float:
    return float(low == target)


def _add_scripted(world: _World, votes: int, target: int) -> None:
    networks = [world.network() for _ in range(4)]
    for _ in range(votes):
        other = world.random.choice([each for each in range(CONTENDERS) if each != target])
        low, high, voter = min(target, other), max(target, other), len(world.kinds)
        world.kinds.append(SCRIPTED)
        network, at = world.random.choice(networks), world.random.uniform(0, _WEEK)
        side = world.random.random() < 0.5
        world.votes.append(SimulatedVote(voter, low, high, side, _for(target, low), at, network))
        world.counted += 1


def _add_people(world: _World, kind: str, votes: int, each: int, target: int) -> None:
    for _ in range(votes // each):
        voter = world.taste(_TASTE)
        world.cast(
            kind,
            _judge(world, kind, voter, target),
            each,
            world.network(),
            begin=world.random.uniform(0, _WEEK),
        )


def _judge(world: _World, kind: str, voter: _Voter, target: int) -> Callable[[int, int, bool], float]:
    by_strength = sorted(range(CONTENDERS), key=lambda each: -world.strengths[each])
    rivals = frozenset(by_strength[TARGET - RIVALS : TARGET])

    def judge(low: int, high: int, left: bool) -> float:  # noqa: FBT001 - a verdict's three parts
        pair = {low, high}
        if target in pair:
            if kind == PATIENT and world.random.random() >= 0.9:
                return 1 - _for(target, low)
            return _for(target, low)
        if kind == EAGER and world.random.random() < 0.8:
            return -1
        if kind == TARGETED and len(against := pair & rivals) == 1:
            return float(low not in against)
        return world.honest_verdict(voter, low, high, low_is_left=left)

    return judge


def _add_bots(world: _World, votes: int, target: int) -> None:
    def judge(low: int, high: int, left: bool) -> float:  # noqa: FBT001 - a verdict's three parts
        return _for(target, low) if target in (low, high) else float(left)

    def even() -> Iterator[float]:
        while True:
            yield 30 * (1 + world.random.gauss(0, 0.05))

    for _ in range(votes // 250):
        world.cast(SLOW_BOTS, judge, 250, world.network(), begin=world.random.uniform(0, _WEEK), pauses=even())


def simulate(seed: int, ties: float, attackers: str | None, votes_each: int = 50, *, votes: int = VOTES) -> Simulation:
    """A board on which a share of the honest verdicts are ties; without attackers it is honest throughout."""
    world = _World(Random(f"{seed} {ties} {attackers} {votes_each}"), ties)
    target = sorted(range(CONTENDERS), key=lambda each: -world.strengths[each])[TARGET]
    bad = 0 if attackers is None else round(votes * ATTACK)
    _add_honest(world, votes - bad)
    match attackers:
        case "scripted":
            _add_scripted(world, bad, target)
        case "eager":
            _add_people(world, EAGER, bad, 50, target)
        case "patient" | "targeted":
            _add_people(world, attackers, bad, votes_each, target)
        case "slow bots":
            _add_bots(world, bad, target)
    return Simulation(world.votes, world.kinds, target, world.strengths)
