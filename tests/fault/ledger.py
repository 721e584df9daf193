"""An independent checker: the acknowledged changes and the data that the service shows, as facts that can be counted.

A ledger holds what was acknowledged. `expected` derives from it, independently of the service's code, every number that
the service must show; `FactReader` reads all of them over HTTP. A fact that is only expected is lost; one that is only
read is duplicated.
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
class ExpectedComment:
    """A comment as acknowledged to its author."""

    product: str
    author: str
    language: str
    rating: int
    body: str
    status: str = "PUBLISHED"


@dataclass(slots=True)
class ExpectedEvent:
    """An event as acknowledged to its editor."""

    points: dict[str, int]
    state: str = "UPCOMING"
    winners: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExpectedVote:
    """An acknowledged vote: a pair, and the winner unless it was a tie."""

    voter: str
    pair: tuple[str, str]
    winner: str | None


@dataclass
class Ledger:
    """Everything acknowledged so far. Each entry has one writer, the only one to change it in the service too."""

    names: dict[str, str] = field(default_factory=dict)
    votes: list[ExpectedVote] = field(default_factory=list)
    events: dict[str, ExpectedEvent] = field(default_factory=dict)
    picks: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    comments: dict[str, ExpectedComment] = field(default_factory=dict)
    reports: dict[str, list[str]] = field(default_factory=dict)
    lists: dict[str, str] = field(default_factory=dict)
    private: dict[str, list[str]] = field(default_factory=dict)
    words: list[tuple[str, str]] = field(default_factory=list)
    quizzes: list[tuple[str, str, int, int]] = field(default_factory=list)
    sentences: dict[str, tuple[str, str]] = field(default_factory=dict)
    subscriptions: dict[tuple[str, str], bool] = field(default_factory=dict)
    actions: int = 0

    def void(self, voter: str) -> None:
        self.votes = [vote for vote in self.votes if vote.voter != voter]

    def moderate(self, comment: str, status: str) -> None:
        self.comments[comment] = replace(self.comments[comment], status=status)
        self.reports.pop(comment, None)

    def forget(self, comment: str) -> None:
        del self.comments[comment]
        self.reports.pop(comment, None)

    # ── what the service must show ──

    def expected(self) -> Counter[Fact]:
        facts: Counter[Fact] = Counter()
        for part in (self._people(), self._votes(), self._predictions(), self._comments(), self._vocabulary()):
            facts.update(part)
        return facts

    def kinds(self) -> Counter[str]:
        """The number of facts of each kind."""
        kinds: Counter[str] = Counter()
        for fact, number in self.expected().items():
            kinds[str(fact[0])] += number
        return kinds

    def _people(self) -> Iterator[Fact]:
        yield from (("name", user, name) for user, name in self.names.items())

    def _votes(self) -> Iterator[Fact]:
        for vote in self.votes:
            yield ("vote",)
            yield ("pair", *vote.pair, vote.winner)
            for name in vote.pair:
                yield ("tie" if vote.winner is None else "win" if vote.winner == name else "loss", name)

    def _predictions(self) -> Iterator[Fact]:
        for event_id, event in self.events.items():
            yield ("event", event_id, event.state)
            yield from (("winner", match, team) for match, team in event.winners.items())
        totals: dict[str, Counter[str]] = {}
        for (event_id, user), picks in self.picks.items():
            event = self.events[event_id]
            correct = [event.points[match] for match, team in picks.items() if event.winners.get(match) == team]
            score = (sum(correct), len(correct)) if event.state == "SCORED" else (None, None)
            yield ("prediction", event_id, user, *sorted(picks.items()), *score)
            if event.state == "SCORED":
                totals.setdefault(user, Counter()).update(points=sum(correct), correct=len(correct), played=1)
        all_points = [total["points"] for total in totals.values()]
        for user, total in totals.items():
            rank = 1 + sum(points > total["points"] for points in all_points)
            yield ("standing", user, rank, total["points"], total["correct"], total["played"])

    def _comments(self) -> Iterator[Fact]:
        for key, comment in self.comments.items():
            reasons = self.reports.get(key, []) if comment.status == "PUBLISHED" else []
            yield ("comment", key, *_comment_fields(comment), *sorted(reasons))
            if comment.status == "PUBLISHED":
                yield ("stars", comment.product, comment.rating)

    def _vocabulary(self) -> Iterator[Fact]:
        yield from (("list", key, name) for key, name in self.lists.items())
        yield from (("private list", user, name) for user, names in self.private.items() for name in names)
        yield from (("word", *word) for word in self.words)
        yield from (("counted word", key) for key, _ in self.words)
        yield from (("quiz", *quiz) for quiz in self.quizzes)
        yield from (("sentence", key, *sentence) for key, sentence in self.sentences.items())
        for (user, key), active in self.subscriptions.items():
            yield ("subscription", user, key, active)
            if active:
                yield ("subscriber", key)


def _comment_fields(comment: ExpectedComment) -> Fact:
    return comment.product, comment.author, comment.language, comment.rating, comment.body, comment.status


# ── what the service shows ──

LEADERBOARD = """query ($first: Int, $after: String) { leaderboard(first: $first, after: $after) {
  nodes { wins losses ties contender { name } } pageInfo { hasNextPage endCursor } } }"""
MATCHUPS = """query ($first: Int, $after: String) { matchups(first: $first, after: $after) {
  nodes { left { name } right { name } leftWins rightWins ties } pageInfo { hasNextPage endCursor } } }"""
EVENTS = """query ($first: Int, $after: String) { events(first: $first, after: $after) {
  nodes { id state matches { id result { winner } } } pageInfo { hasNextPage endCursor } } }"""
STANDINGS = """query ($first: Int, $after: String) { standings(season: "%s", first: $first, after: $after) {
  nodes { user { id } rank points correct eventsPlayed } pageInfo { hasNextPage endCursor } } }"""
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


class FactReader:
    """Reads all data: members read their own, a moderator reads the rest."""

    def __init__(self, moderator: Asks, members: Mapping[str, Asks], products: Sequence[str]) -> None:
        self._moderator = moderator
        self._members = members
        self._products = products
        self._users: dict[str, str] = {}

    async def read(self) -> Counter[Fact]:
        facts: Counter[Fact] = Counter()
        for user, member in self._members.items():
            facts.update([fact async for fact in self._own(user, member)])
        for part in (self._votes(), self._predictions(), self._comments(), self._vocabulary()):
            async for fact, number in part:
                facts[fact] += number
        return +facts

    async def _all_nodes(self, query: str, client: Asks | None = None, **variables: Any) -> list[Any]:
        return await pages(client or self._moderator, query, size=SIZE, **variables)

    async def _own(self, user: str, member: Asks) -> Any:
        viewer = await member.ask(OWN)
        self._users[viewer["id"]] = user
        yield ("name", user, viewer["name"])
        for subscription in viewer["subscriptions"]:
            yield ("subscription", user, subscription["list"]["id"], subscription["active"])
        for prediction in await self._all_nodes(PREDICTIONS, member):
            picks = sorted((pick["match"], pick["team"]) for pick in prediction["picks"])
            yield ("prediction", prediction["event"]["id"], user, *picks, prediction["points"], prediction["correct"])
        for quiz in await self._all_nodes(QUIZZES, member):
            yield ("quiz", user, quiz["list"]["id"], quiz["correct"], quiz["total"])
        for sentence in await self._all_nodes(SENTENCES, member):
            yield ("sentence", sentence["id"], user, sentence["text"])
        for word_list in await self._all_nodes(LISTS, member):
            if not word_list["public"]:
                yield ("private list", user, word_list["name"])

    async def _votes(self) -> Any:
        yield ("vote",), ((await self._moderator.ask("{ board { votes } }")) or {"votes": 0})["votes"]
        for row in await self._all_nodes(LEADERBOARD):
            for kind, name in (("win", "wins"), ("loss", "losses"), ("tie", "ties")):
                yield (kind, row["contender"]["name"]), row[name]
        for matchup in await self._all_nodes(MATCHUPS):
            left, right = matchup["left"]["name"], matchup["right"]["name"]
            pair = sorted((left, right))
            for winner, count in ((left, "leftWins"), (right, "rightWins"), (None, "ties")):
                yield ("pair", *pair, winner), matchup[count]

    async def _predictions(self) -> Any:
        for event in await self._all_nodes(EVENTS):
            yield ("event", event["id"], event["state"]), 1
            for match in event["matches"]:
                if match["result"]:
                    yield ("winner", match["id"], match["result"]["winner"]), 1
        for row in await self._all_nodes(STANDINGS % SEASON):
            user = self._users[row["user"]["id"]]
            yield ("standing", user, row["rank"], row["points"], row["correct"], row["eventsPlayed"]), 1

    async def _comments(self) -> Any:
        for product in self._products:
            for node in await self._all_nodes(COMMENTS, product=product):
                yield ("comment", node["id"], *self._comment_fields(node), *sorted(node["reportReasons"])), 1
            for bar in (await self._moderator.ask(STATISTICS, product=product))["histogram"]:
                yield ("stars", product, bar["rating"]), bar["count"]
        for status in ("PENDING", "REJECTED"):
            for node in await self._all_nodes(HELD, status=status):
                yield ("comment", node["id"], *self._comment_fields(node)), 1

    def _comment_fields(self, node: dict[str, Any]) -> Fact:
        author = node["author"]["id"]
        values = (node[name] for name in ("language", "rating", "body", "status"))
        return _comment_fields(ExpectedComment(node["product"], self._users.get(author, author), *values))

    async def _vocabulary(self) -> Any:
        for word_list in await self._all_nodes(LISTS):
            list_id = word_list["id"]
            yield ("list", list_id, word_list["name"]), 1
            yield ("counted word", list_id), word_list["wordCount"]
            yield ("subscriber", list_id), word_list["subscriberCount"]
            for word in await self._all_nodes(WORDS, id=list_id):
                yield ("word", list_id, word["simplified"]), 1
