"""An independent checker: the acknowledged changes and the data that the service shows, as facts that can be counted.

A ledger holds what was acknowledged. `expected` derives from it, independently of the service's code, every number that
the service must show; `FactReader` reads all of them over HTTP. A fact that is only expected is lost; one that is only
read is duplicated.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from datastore.changes.occurrences import Kind
from resolvers.values.node_ids import parse_node_id
from tests.client import Asks, pages
from tests.leagues import LEAGUE, OWN_LEAGUES

SEASON: Final = "2026"
UNCOUNTED: Final = Kind.EVENT_SCORED.value
"""An erased member's events are scored again, by the job or by a request that is repeated at that moment."""
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

    @property
    def is_published(self) -> bool:
        return self.status == "PUBLISHED"


@dataclass(slots=True)
class ExpectedEvent:
    """An event as acknowledged to its editor."""

    points: dict[str, int]
    state: str = "UPCOMING"
    winners: dict[str, int] = field(default_factory=dict)
    answer: int | None = None
    """Of its tie-break."""


@dataclass(frozen=True, slots=True)
class ExpectedPrediction:
    """A prediction as acknowledged: by match, the team; and the guess."""

    picks: dict[str, int]
    guess: int | None

    def score(self, event: ExpectedEvent) -> tuple[int, int] | None:
        """Points and correct picks; None before the event is scored."""
        if event.state != "SCORED":
            return None
        correct = [event.points[match] for match, team in self.picks.items() if event.winners.get(match) == team]
        return sum(correct), len(correct)


@dataclass(frozen=True, slots=True)
class ExpectedVote:
    """An acknowledged vote: a pair, and the winner unless it was a tie."""

    voter: str
    pair: tuple[str, str]
    winner: str | None


@dataclass(slots=True)
class ExpectedLeague:
    """A league as acknowledged: by name, what each member is in it."""

    name: str
    entry: str
    places: dict[str, str]
    code: str | None = None

    @property
    def members(self) -> list[str]:
        return [user for user, membership in self.places.items() if membership != "WAITING"]


@dataclass
class Ledger:
    """Everything acknowledged so far. Each entry has one writer, the only one to change it in the service too."""

    names: dict[str, str] = field(default_factory=dict)
    votes: list[ExpectedVote] = field(default_factory=list)
    events: dict[str, ExpectedEvent] = field(default_factory=dict)
    predictions: dict[tuple[str, str], ExpectedPrediction] = field(default_factory=dict)
    comments: dict[str, ExpectedComment] = field(default_factory=dict)
    reports: dict[str, dict[str, str]] = field(default_factory=dict)
    """By comment and by who reported it: the reason."""
    lists: dict[str, str] = field(default_factory=dict)
    private: dict[str, list[str]] = field(default_factory=dict)
    former: set[str] = field(default_factory=set)
    """Members who were erased."""
    words: list[tuple[str, str]] = field(default_factory=list)
    quizzes: list[tuple[str, str, int, int]] = field(default_factory=list)
    sentences: dict[str, tuple[str, str]] = field(default_factory=dict)
    subscriptions: dict[tuple[str, str], bool] = field(default_factory=dict)
    leagues: dict[str, ExpectedLeague] = field(default_factory=dict)
    occurrences: Counter[tuple[str, str | None]] = field(default_factory=Counter)
    """How often something was done: its kind, and who did it."""
    actions: int = 0

    def occurred(self, kind: Kind, actor: str | None, number: int = 1) -> None:
        if kind != UNCOUNTED:
            self.occurrences[kind.value, actor] += number

    def void(self, voter: str) -> int:
        """The number of votes that are voided."""
        before = len(self.votes)
        self.votes = [vote for vote in self.votes if vote.voter != voter]
        return before - len(self.votes)

    def moderate(self, comment: str, status: str) -> None:
        if comment in self.comments:  # its author may have been erased meanwhile
            self.comments[comment] = replace(self.comments[comment], status=status)
            self.reports.pop(comment, None)

    def forget(self, comment: str) -> None:
        del self.comments[comment]
        self.reports.pop(comment, None)

    def erase(self, user: str, *, is_removed: bool) -> None:
        """A member's own data is gone; what they contributed is too, or is a former member's, who can read no more."""
        if is_removed:
            self._remove(user)
        self.former.add(user)
        for league in self.leagues.values():
            self.occurred(Kind.LEAGUE_LEFT, None, int(league.places.pop(user, None) is not None))
        active = [key for key, is_active in self.subscriptions.items() if key[0] == user and is_active]
        self.occurred(Kind.SUBSCRIPTION_ENDED, None, len(active))
        self.occurred(Kind.WORD_LIST_DELETED, None, len(self.private.get(user, ())))
        self.names.pop(user, None)
        self.private.pop(user, None)
        self.quizzes = [quiz for quiz in self.quizzes if quiz[0] != user]
        self.sentences = {key: sentence for key, sentence in self.sentences.items() if sentence[0] != user}
        self.subscriptions = {key: active for key, active in self.subscriptions.items() if key[0] != user}

    def _remove(self, user: str) -> None:
        own = [key for key, comment in self.comments.items() if comment.author == user]
        predictions = [key for key in self.predictions if key[1] == user]
        self.occurred(Kind.VOTE_VOIDED, None, self.void(user))
        self.occurred(Kind.COMMENT_DELETED, None, len(own))
        self.occurred(Kind.PREDICTION_VOIDED, None, len(predictions))
        self.occurred(Kind.QUIZ_REMOVED, None, len([quiz for quiz in self.quizzes if quiz[0] == user]))
        self.occurred(Kind.SENTENCE_REMOVED, None, len([one for one in self.sentences.values() if one[0] == user]))
        for key in own:
            self.forget(key)
        for reasons in self.reports.values():
            reasons.pop(user, None)
        for place in predictions:
            del self.predictions[place]

    def take_back(self, user: str, moderator: str) -> None:
        """All that a member contributed counts no more; the moderator is said to have undone each."""
        published = [key for key, comment in self.comments.items() if comment.author == user and comment.is_published]
        predictions = [key for key in self.predictions if key[1] == user]
        quizzes = [quiz for quiz in self.quizzes if quiz[0] == user]
        sentences = [key for key, sentence in self.sentences.items() if sentence[0] == user]
        self.occurred(Kind.VOTE_VOIDED, moderator, self.void(user))
        self.occurred(Kind.COMMENT_MODERATED, moderator, len(published))
        self.occurred(Kind.PREDICTION_VOIDED, moderator, len(predictions))
        self.occurred(Kind.QUIZ_REMOVED, moderator, len(quizzes))
        self.occurred(Kind.SENTENCE_REMOVED, moderator, len(sentences))
        for key in published:
            self.moderate(key, "REJECTED")
        for place in predictions:
            del self.predictions[place]
        for key in sentences:
            del self.sentences[key]
        self.quizzes = [quiz for quiz in self.quizzes if quiz[0] != user]

    # ── what the service must show ──

    def expected(self) -> Counter[Fact]:
        facts: Counter[Fact] = Counter()
        parts = (self._people(), self._votes(), self._predictions(), self._comments(), self._vocabulary())
        for part in (*parts, self._leagues()):
            facts.update(part)
        facts.update({("occurrence", *key): number for key, number in self.occurrences.items()})
        return +facts

    def deliveries(self) -> Counter[Fact]:
        """What a webhook for every kind must have been told."""
        told: Counter[Fact] = Counter()
        for (kind, _), number in self.occurrences.items():
            told["delivered", kind] += number
        return +told

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
            yield ("tie-break", event_id, event.answer)
            yield ("in order", event_id)
        for (event_id, user), prediction in self.predictions.items():
            points, correct = prediction.score(self.events[event_id]) or (None, None)
            yield ("listed", event_id, user, points, prediction.guess)
            if user not in self.former:  # nobody reads their own list
                yield ("prediction", event_id, user, *sorted(prediction.picks.items()), points, correct)
        for row in ranked(self._totals()):
            yield ("standing", *row)

    def _totals(self) -> dict[str, Counter[str]]:
        totals: dict[str, Counter[str]] = {}
        for (event_id, user), prediction in self.predictions.items():
            if score := prediction.score(self.events[event_id]):
                totals.setdefault(user, Counter()).update(points=score[0], correct=score[1], played=1)
        return totals

    def _leagues(self) -> Iterator[Fact]:
        totals = self._totals()
        for key, league in self.leagues.items():
            yield ("league", key, league.name, league.code, len(league.members))
            for user, membership in league.places.items():
                yield ("place", key, user, membership)
                yield ("own league", key, user, membership)
            for row in ranked({user: totals[user] for user in league.members if user in totals}):
                yield ("league standing", key, *row)

    def _comments(self) -> Iterator[Fact]:
        for key, comment in self.comments.items():
            reasons = self.reports.get(key, {}) if comment.is_published else {}
            yield ("comment", key, *_comment_fields(comment), *sorted(reasons.values()))
            if comment.is_published:
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


def ranked(totals: Mapping[str, Counter[str]]) -> Iterator[Fact]:
    """Standings: a rank is one more than the number of those with more points."""
    for user, total in totals.items():
        rank = 1 + sum(other["points"] > total["points"] for other in totals.values())
        yield (user, rank, total["points"], total["correct"], total["played"])


def _comment_fields(comment: ExpectedComment) -> Fact:
    return comment.product, comment.author, comment.language, comment.rating, comment.body, comment.status


# ── what the service shows ──

LEADERBOARD = """query ($first: Int, $after: String) { leaderboard(first: $first, after: $after) {
  nodes { wins losses ties contender { name } } pageInfo { hasNextPage endCursor } } }"""
MATCHUPS = """query ($first: Int, $after: String) { matchups(first: $first, after: $after) {
  nodes { left { name } right { name } leftWins rightWins ties } pageInfo { hasNextPage endCursor } } }"""
EVENTS = """query ($first: Int, $after: String) { events(first: $first, after: $after) {
  nodes { id state tieBreak { answer } matches { id result { winner } } } pageInfo { hasNextPage endCursor } } }"""
LISTED = """query ($id: ID!, $first: Int, $after: String) { event(id: $id) {
  predictions(first: $first, after: $after) {
    nodes { user { id } points guess } pageInfo { hasNextPage endCursor } } } }"""
STANDINGS = """query ($first: Int, $after: String) { standings(season: "%s", first: $first, after: $after) {
  nodes { user { id } rank points correct eventsPlayed } pageInfo { hasNextPage endCursor } } }"""
LEAGUE_STANDINGS = """query ($id: ID, $first: Int, $after: String) { league(id: $id) {
  standings(first: $first, after: $after) {
    nodes { user { id } rank points correct eventsPlayed } pageInfo { hasNextPage endCursor } } } }"""
JOURNAL = """query ($first: Int, $after: String) { journal(first: $first, after: $after) {
  nodes { kind actor } pageInfo { hasNextPage endCursor } } }"""
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

    async def read(self) -> Counter[Fact]:
        facts: Counter[Fact] = Counter()
        for user, member in self._members.items():
            facts.update([fact async for fact in self._own(user, member)])
        for part in (self._votes(), self._predictions(), self._comments(), self._vocabulary(), self._journal()):
            async for fact, number in part:
                facts[fact] += number
        return +facts

    async def _all_nodes(self, query: str, client: Asks | None = None, **variables: Any) -> list[Any]:
        return await pages(client or self._moderator, query, size=SIZE, **variables)

    async def _own(self, user: str, member: Asks) -> Any:
        viewer = await member.ask(OWN)
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
        for league in await self._all_nodes(OWN_LEAGUES, member):
            yield ("own league", league["id"], user, league["viewerMembership"])
            if league["viewerMembership"] == "CAPTAIN":
                for fact in await self._league(member, league["id"]):
                    yield fact

    async def _league(self, captain: Asks, key: str) -> list[Fact]:
        """What only members see of a league, and who is waiting."""
        league = await captain.ask(LEAGUE, id=key)
        places, rows = league["members"]["nodes"], await self._all_nodes(LEAGUE_STANDINGS, captain, id=key)
        return [
            ("league", key, league["name"], league["code"], league["memberCount"]),
            *(("place", key, name_of(place["user"]["id"]), place["membership"]) for place in places),
            *(("league standing", key, *_standing_fields(row)) for row in rows),
        ]

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
            answer, rows = event["tieBreak"]["answer"], await self._all_nodes(LISTED, id=event["id"])
            yield ("tie-break", event["id"], answer), 1
            for row in rows:
                yield ("listed", event["id"], name_of(row["user"]["id"]), row["points"], row["guess"]), 1
            if event["state"] != "SCORED" or is_in_order(rows, answer):
                yield ("in order", event["id"]), 1
        for row in await self._all_nodes(STANDINGS % SEASON):
            yield ("standing", *_standing_fields(row)), 1

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
        values = (node[name] for name in ("language", "rating", "body", "status"))
        return _comment_fields(ExpectedComment(node["product"], name_of(node["author"]["id"]), *values))

    async def _vocabulary(self) -> Any:
        for word_list in await self._all_nodes(LISTS):
            list_id = word_list["id"]
            yield ("list", list_id, word_list["name"]), 1
            yield ("counted word", list_id), word_list["wordCount"]
            yield ("subscriber", list_id), word_list["subscriberCount"]
            for word in await self._all_nodes(WORDS, id=list_id):
                yield ("word", list_id, word["simplified"]), 1

    async def _journal(self) -> Any:
        for occurrence in await self._all_nodes(JOURNAL):
            kind, actor = occurrence["kind"], occurrence["actor"]
            if kind != UNCOUNTED:
                yield ("occurrence", kind, actor and name_of(actor)), 1


def is_in_order(rows: Sequence[Mapping[str, Any]], answer: float) -> bool:
    """By points, then by the distance of the guess from the answer; a missing guess is as far as the worst one."""
    distances = [None if row["guess"] is None else abs(row["guess"] - answer) for row in rows]
    worst = max((distance for distance in distances if distance is not None), default=0.0)
    places = [
        (-row["points"], worst if distance is None else distance) for row, distance in zip(rows, distances, strict=True)
    ]
    return places == sorted(places)


def name_of(user_id: str) -> str:
    """The members' ids are their names."""
    return parse_node_id(user_id)[1]


def _standing_fields(row: dict[str, Any]) -> Fact:
    return name_of(row["user"]["id"]), row["rank"], row["points"], row["correct"], row["eventsPlayed"]
