"""An independent checker: what members were told, and what they find, as plain facts that can be counted.

A ledger holds what was acknowledged. `told` works out from it, in a few lines of its own, every number that the
service must show; `found` reads all of them over HTTP. What is in one only is lost or doubled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tests.client import Asks, pages

SEASON: Final = "2026"
Fact = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Opinion:
    """A comment as its author last heard of it."""

    product: str
    author: str
    language: str
    rating: int
    body: str
    status: str = "PUBLISHED"


@dataclass(slots=True)
class Show:
    """An event as its editor last heard of it."""

    points: dict[str, int]
    state: str = "UPCOMING"
    winners: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A vote that was counted: a pair, and the winner if it was no tie."""

    voter: str
    pair: tuple[str, str]
    winner: str | None


@dataclass
class Ledger:
    """Everything acknowledged so far. Who writes into a part of it is the only one who changes that in the service."""

    names: dict[str, str] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    shows: dict[str, Show] = field(default_factory=dict)
    picks: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    comments: dict[str, Opinion] = field(default_factory=dict)
    reports: dict[str, list[str]] = field(default_factory=dict)
    lists: dict[str, str] = field(default_factory=dict)
    private: dict[str, list[str]] = field(default_factory=dict)
    words: list[tuple[str, str]] = field(default_factory=list)
    quizzes: list[tuple[str, str, int, int]] = field(default_factory=list)
    sentences: dict[str, tuple[str, str]] = field(default_factory=dict)
    subscriptions: dict[tuple[str, str], bool] = field(default_factory=dict)
    acts: int = 0

    def void(self, voter: str) -> None:
        self.verdicts = [one for one in self.verdicts if one.voter != voter]

    def moderate(self, comment: str, status: str) -> None:
        self.comments[comment] = replace(self.comments[comment], status=status)
        self.reports.pop(comment, None)

    def forget(self, comment: str) -> None:
        del self.comments[comment]
        self.reports.pop(comment, None)

    # ── what the service must show ──

    def told(self) -> Counter[Fact]:
        facts: Counter[Fact] = Counter()
        for part in (self._people(), self._votes(), self._predictions(), self._comments(), self._vocabulary()):
            facts.update(part)
        return facts

    def kinds(self) -> Counter[str]:
        """How many facts there are of each kind."""
        kinds: Counter[str] = Counter()
        for fact, number in self.told().items():
            kinds[str(fact[0])] += number
        return kinds

    def _people(self) -> Iterator[Fact]:
        yield from (("name", user, name) for user, name in self.names.items())

    def _votes(self) -> Iterator[Fact]:
        for one in self.verdicts:
            yield ("vote",)
            yield ("pair", *one.pair, one.winner)
            for name in one.pair:
                yield ("tie" if one.winner is None else "win" if one.winner == name else "loss", name)

    def _predictions(self) -> Iterator[Fact]:
        for event, show in self.shows.items():
            yield ("event", event, show.state)
            yield from (("winner", match, team) for match, team in show.winners.items())
        sums: dict[str, Counter[str]] = {}
        for (event, user), picks in self.picks.items():
            show = self.shows[event]
            right = [show.points[match] for match, team in picks.items() if show.winners.get(match) == team]
            worth = (sum(right), len(right)) if show.state == "SCORED" else (None, None)
            yield ("prediction", event, user, *sorted(picks.items()), *worth)
            if show.state == "SCORED":
                sums.setdefault(user, Counter()).update(points=sum(right), correct=len(right), played=1)
        for user, sum_ in sums.items():
            yield ("standing", user, sum_["points"], sum_["correct"], sum_["played"])

    def _comments(self) -> Iterator[Fact]:
        for key, one in self.comments.items():
            reasons = self.reports.get(key, []) if one.status == "PUBLISHED" else []
            yield ("comment", key, *_shown(one), *sorted(reasons))
            if one.status == "PUBLISHED":
                yield ("stars", one.product, one.rating)

    def _vocabulary(self) -> Iterator[Fact]:
        yield from (("list", key, name) for key, name in self.lists.items())
        yield from (("private list", user, name) for user, names in self.private.items() for name in names)
        yield from (("word", *one) for one in self.words)
        yield from (("counted word", key) for key, _ in self.words)
        yield from (("quiz", *one) for one in self.quizzes)
        yield from (("sentence", key, *one) for key, one in self.sentences.items())
        for (user, key), active in self.subscriptions.items():
            yield ("subscription", user, key, active)
            if active:
                yield ("subscriber", key)


def _shown(one: Opinion) -> Fact:
    return one.product, one.author, one.language, one.rating, one.body, one.status


# ── what it shows ──

LEADERBOARD = """query ($first: Int, $after: String) { leaderboard(first: $first, after: $after) {
  nodes { wins losses ties contender { name } } pageInfo { hasNextPage endCursor } } }"""
MATCHUPS = """query ($first: Int, $after: String) { matchups(first: $first, after: $after) {
  nodes { left { name } right { name } leftWins rightWins ties } pageInfo { hasNextPage endCursor } } }"""
EVENTS = """query ($first: Int, $after: String) { events(first: $first, after: $after) {
  nodes { id state matches { id result { winner } } } pageInfo { hasNextPage endCursor } } }"""
STANDINGS = """query ($first: Int, $after: String) { standings(season: "%s", first: $first, after: $after) {
  nodes { user { id } points correct eventsPlayed } pageInfo { hasNextPage endCursor } } }"""
COMMENTS = """query ($product: ID!, $first: Int, $after: String) {
  comments(product: $product, first: $first, after: $after) {
    nodes { id product language rating body status author { id } reportReasons }
    pageInfo { hasNextPage endCursor } } }"""
HELD = """query ($status: CommentStatus, $first: Int, $after: String) {
  moderationQueue(status: $status, first: $first, after: $after) {
    nodes { id product language rating body status author { id } } pageInfo { hasNextPage endCursor } } }"""
STATISTICS = """query ($product: ID!) {
  commentStatistics(product: $product) { histogram { rating count } } }"""
LISTS = """query ($first: Int, $after: String) { wordLists(first: $first, after: $after) {
  nodes { id name public wordCount subscriberCount } pageInfo { hasNextPage endCursor } } }"""
WORDS = """query ($id: ID!, $first: Int, $after: String) { wordList(id: $id) { words(first: $first, after: $after) {
  nodes { simplified } pageInfo { hasNextPage endCursor } } } }"""
OWN = """{ viewer { id name subscriptions { active list { id } } } }"""
PREDICTIONS = """query ($first: Int, $after: String) { viewer { predictions(first: $first, after: $after) {
  nodes { event { id } points correct picks { match team } } pageInfo { hasNextPage endCursor } } } }"""
QUIZZES = """query ($first: Int, $after: String) { viewer { quizResults(first: $first, after: $after) {
  nodes { list { id } correct total } pageInfo { hasNextPage endCursor } } } }"""
SENTENCES = """query ($first: Int, $after: String) { viewer { sentences(first: $first, after: $after) {
  nodes { id text } pageInfo { hasNextPage endCursor } } } }"""
SIZE: Final = 100


class Inquiry:
    """Everything that can be found out: by members about themselves, by a moderator about the rest."""

    def __init__(self, moderator: Asks, members: Mapping[str, Asks], products: Sequence[str]) -> None:
        self._moderator = moderator
        self._members = members
        self._products = products
        self._users: dict[str, str] = {}

    async def found(self) -> Counter[Fact]:
        facts: Counter[Fact] = Counter()
        for user, member in self._members.items():
            facts.update([fact async for fact in self._own(user, member)])
        for part in (self._votes(), self._predictions(), self._comments(), self._vocabulary()):
            async for fact, number in part:
                facts[fact] += number
        return +facts

    async def _whole(self, query: str, asker: Asks | None = None, **variables: Any) -> list[Any]:
        return await pages(asker or self._moderator, query, size=SIZE, **variables)

    async def _own(self, user: str, member: Asks) -> Any:
        viewer = await member.ask(OWN)
        self._users[viewer["id"]] = user
        yield ("name", user, viewer["name"])
        for one in viewer["subscriptions"]:
            yield ("subscription", user, one["list"]["id"], one["active"])
        for one in await self._whole(PREDICTIONS, member):
            picks = sorted((pick["match"], pick["team"]) for pick in one["picks"])
            yield ("prediction", one["event"]["id"], user, *picks, one["points"], one["correct"])
        for one in await self._whole(QUIZZES, member):
            yield ("quiz", user, one["list"]["id"], one["correct"], one["total"])
        for one in await self._whole(SENTENCES, member):
            yield ("sentence", one["id"], user, one["text"])
        for one in await self._whole(LISTS, member):
            if not one["public"]:
                yield ("private list", user, one["name"])

    async def _votes(self) -> Any:
        yield ("vote",), ((await self._moderator.ask("{ board { votes } }")) or {"votes": 0})["votes"]
        for row in await self._whole(LEADERBOARD):
            for kind, name in (("win", "wins"), ("loss", "losses"), ("tie", "ties")):
                yield (kind, row["contender"]["name"]), row[name]
        for one in await self._whole(MATCHUPS):
            left, right = one["left"]["name"], one["right"]["name"]
            pair = sorted((left, right))
            for winner, name in ((left, "leftWins"), (right, "rightWins"), (None, "ties")):
                yield ("pair", *pair, winner), one[name]

    async def _predictions(self) -> Any:
        for event in await self._whole(EVENTS):
            yield ("event", event["id"], event["state"]), 1
            for match in event["matches"]:
                if match["result"]:
                    yield ("winner", match["id"], match["result"]["winner"]), 1
        for row in await self._whole(STANDINGS % SEASON):
            user = self._users[row["user"]["id"]]
            yield ("standing", user, row["points"], row["correct"], row["eventsPlayed"]), 1

    async def _comments(self) -> Any:
        for product in self._products:
            for one in await self._whole(COMMENTS, product=product):
                yield ("comment", one["id"], *self._shown(one), *sorted(one["reportReasons"])), 1
            for bar in (await self._moderator.ask(STATISTICS, product=product))["histogram"]:
                yield ("stars", product, bar["rating"]), bar["count"]
        for status in ("PENDING", "REJECTED"):
            for one in await self._whole(HELD, status=status):
                yield ("comment", one["id"], *self._shown(one)), 1

    def _shown(self, one: dict[str, Any]) -> Fact:
        author = one["author"]["id"]
        words = Opinion(
            one["product"], self._users.get(author, author), one["language"], one["rating"], one["body"], one["status"]
        )
        return _shown(words)

    async def _vocabulary(self) -> Any:
        for one in await self._whole(LISTS):
            yield ("list", one["id"], one["name"]), 1
            yield ("counted word", one["id"]), one["wordCount"]
            yield ("subscriber", one["id"]), one["subscriberCount"]
            for word in await self._whole(WORDS, id=one["id"]):
                yield ("word", one["id"], word["simplified"]), 1
