"""Members who vote, predict, comment, learn and join leagues at the same time, and an editor who works meanwhile.

Each records what was acknowledged, and what the journal must say about it. Nobody else changes what a member writes,
except where the ledger can follow: a report on a comment that its author may be deleting, a prediction on an event that
is being locked. A place in a league is changed by its member and by the league's captain, one after the other.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random
from typing import Any, Final

from datastore.journal import Kind
from resolvers.node_ids import node_id
from tests import season
from tests.erasing import ERASE
from tests.fault.ledger import SEASON, ExpectedComment, ExpectedEvent, ExpectedLeague, ExpectedVote, Ledger
from tests.fault.retrying_client import RetryingClient
from tests.journal_kinds import RECORDED
from tests.leagues import ADMIT, CREATE_LEAGUE, JOIN_LEAGUE, LEAVE_LEAGUE
from tests.queries import (
    ADD_CONTENDER,
    ADD_MATCH,
    ADD_WORDS,
    CAST_VOTE,
    CREATE_EVENT,
    CREATE_LIST,
    DELETE_COMMENT,
    DRAW_MATCHUP,
    EDIT_COMMENT,
    LOCK_EVENT,
    MODERATE_COMMENT,
    POST_COMMENT,
    RECORD_QUIZ,
    RECORD_RESULT,
    REPORT_COMMENT,
    SCORE_EVENT,
    SUBMIT_PREDICTION,
    SUBSCRIBE,
    UNSCORE_EVENT,
    UNSUBSCRIBE,
    UPDATE_PROFILE,
    VOID_VOTER,
    WRITE_SENTENCE,
)

PRODUCTS: Final = ("p1", "p2")
LANGUAGES: Final = ("en", "de")
CONTENDERS: Final = ("a", "b", "c", "d", "e", "f")
TROLL: Final = "troll"
LEAVERS: Final = {"leaver-1": "REMOVE", "leaver-2": "ANONYMISE"}
"""Members who are erased in the middle of a run, and what becomes of their contributions."""
MOST_PRIVATE: Final = 10
MOST_OWN_LEAGUES: Final = 2
UNSCORED: Final = 0.3
"""The share of scorings that are taken back and done again."""


@dataclass
class SharedState:
    """What all clients know."""

    ledger: Ledger = field(default_factory=Ledger)
    lists: list[str] = field(default_factory=list)
    open_event: tuple[str, Sequence[str]] | None = None
    moderated: list[str] = field(default_factory=list)
    """Comments whose authors leave them to the moderator."""
    busy: set[tuple[str, str]] = field(default_factory=set)
    """Places in leagues that somebody is about to change."""
    numbers: Iterator[int] = field(default_factory=count)
    leaving: bool = False
    stopped: bool = False

    @contextmanager
    def changing(self, *places: tuple[str, str]) -> Iterator[None]:
        self.busy |= {*places}
        yield
        self.busy -= {*places}


class RecordingClient(RetryingClient):
    """Records in the ledger what the journal must say about each acknowledged mutation."""

    def __init__(self, name: str, token: str, urls: Sequence[str], random: Random, shared: SharedState) -> None:
        super().__init__(name, token, urls, random)
        self.shared = shared
        self.ledger = shared.ledger

    async def mutate(self, mutation: str, *refusals: str, **fields: Any) -> dict[str, Any] | None:
        answer = await super().mutate(mutation, *refusals, **fields)
        if answer is not None:
            self.ledger.occurred(_kind(mutation, fields), self.name)
        return answer

    async def must(self, mutation: str, **fields: Any) -> dict[str, Any]:
        """The payload of a mutation that must not be refused."""
        answer = await self.mutate(mutation, **fields)
        assert answer is not None
        return answer


def _kind(mutation: str, fields: dict[str, Any]) -> Kind:
    found = re.search(r"(\w+)\(input:", mutation)
    assert found is not None
    return Kind.SENTENCE_CHANGED if "sentence" in fields else RECORDED[found[1]][0]


class Member(RecordingClient):
    """Takes random actions, one after the other, until the run is stopped."""

    def __init__(self, name: str, token: str, urls: Sequence[str], random: Random, shared: SharedState) -> None:
        super().__init__(name, token, urls, random, shared)
        self.own: list[str] = []
        self.reported: set[str] = set()
        self.sentences: list[str] = []
        self.private_lists = 0
        self.own_leagues = 0
        self.has_left = asyncio.Event()

    async def run(self) -> None:
        actions: Sequence[Callable[[str], Awaitable[None]]] = (
            self.profile, self.vote, self.vote, self.predict, self.predict, self.post, self.post, self.edit,
            self.delete, self.report, self.quiz, self.sentence, self.subscription, self.private_list,
            self.league, self.league,
        )  # fmt: skip
        await self.act(self.profile)
        while not (self.shared.stopped or (self.shared.leaving and self.name in LEAVERS)):
            await self.act(self.vote if self.name == TROLL else self.random.choice(actions))
        self.has_left.set()

    async def act(self, action: Callable[[str], Awaitable[None]]) -> None:
        """Texts do not contain the member's name, which must be nowhere once the member is erased."""
        await action(f"text {next(self.shared.numbers)}")
        self.ledger.actions += 1

    async def profile(self, text: str) -> None:
        if await self.mutate(UPDATE_PROFILE, name=text):
            self.ledger.names[self.name] = text

    async def vote(self, _: str) -> None:
        ballot = await self.ask(DRAW_MATCHUP)
        verdict = self.random.choice(("LEFT", "RIGHT", "TIE", "SKIP"))
        answer = await self.ask(CAST_VOTE, token=ballot["token"], verdict=verdict)
        assert "code" not in answer, answer
        self.ledger.occurred(Kind.VOTE_CAST, self.name)
        if verdict != "SKIP":
            left, right = sorted((ballot["left"]["name"], ballot["right"]["name"]))
            winner = answer["winner"] and answer["winner"]["name"]
            self.ledger.votes.append(ExpectedVote(self.name, (left, right), winner))

    async def predict(self, _: str) -> None:
        if self.shared.open_event is None:
            return
        event, matches = self.shared.open_event
        picks = {match: self.random.randrange(2) for match in matches}
        if await self.mutate(SUBMIT_PREDICTION, "LOCKED", **season.prediction_input(event, list(picks.items()))):
            self.ledger.picks[event, self.name] = picks

    async def post(self, text: str) -> None:
        product, language = self.random.choice(PRODUCTS), self.random.choice(LANGUAGES)
        comment = ExpectedComment(product, self.name, language, self.random.randint(1, 5), text)
        fields = {"product": product, "language": language, "rating": comment.rating, "body": text}
        answer = await self.mutate(POST_COMMENT, **fields)
        assert answer is not None
        key = answer["comment"]["id"]
        self.ledger.comments[key] = comment
        (self.own if self.random.random() < 0.7 else self.shared.moderated).append(key)

    async def edit(self, text: str) -> None:
        if not self.own:
            return
        key, rating, language = self.random.choice(self.own), self.random.randint(1, 5), self.random.choice(LANGUAGES)
        if await self.mutate(EDIT_COMMENT, "CONFLICT", comment=key, rating=rating, language=language, body=text):
            before = self.ledger.comments[key]
            self.ledger.comments[key] = replace(before, rating=rating, language=language, body=text)

    async def delete(self, _: str) -> None:
        if not self.own:
            return
        key = self.own.pop(self.random.randrange(len(self.own)))
        if await self.mutate(DELETE_COMMENT, "CONFLICT", comment=key):
            self.ledger.forget(key)

    async def report(self, text: str) -> None:
        unavailable = {*self.reported, *self.shared.moderated}
        reportable = [key for key in self.ledger.comments if key not in unavailable]
        if not reportable:
            return
        key = self.random.choice(reportable)
        self.reported.add(key)
        refusals = ("NOT_FOUND", "CONFLICT", "NOT_ALLOWED")  # the last while its author is being erased
        if await self.mutate(REPORT_COMMENT, *refusals, comment=key, reason=text):
            self.ledger.reports.setdefault(key, {})[self.name] = text

    async def quiz(self, _: str) -> None:
        list_id, total = self.random.choice(self.shared.lists), self.random.randint(1, 20)
        correct = self.random.randint(0, total)
        if await self.mutate(RECORD_QUIZ, "CONFLICT", list=list_id, correct=correct, total=total):
            self.ledger.quizzes.append((self.name, list_id, correct, total))

    async def sentence(self, text: str) -> None:
        """Writes a new sentence, or changes the text of an old one."""
        changed = self.random.choice(self.sentences) if self.sentences and self.random.random() < 0.4 else None
        fields = {"sentence": changed} if changed else {}
        if answer := await self.mutate(WRITE_SENTENCE, "CONFLICT", text=text, **fields):
            key = answer["sentence"]["id"]
            assert changed in (None, key)
            self.ledger.sentences[key] = (self.name, text)
            self.sentences = [*{*self.sentences, key}]

    async def subscription(self, _: str) -> None:
        list_id = self.random.choice(self.shared.lists)
        active = self.ledger.subscriptions.get((self.name, list_id), False)
        if await self.mutate(UNSUBSCRIBE if active else SUBSCRIBE, "CONFLICT", list=list_id):
            self.ledger.subscriptions[self.name, list_id] = not active

    async def private_list(self, text: str) -> None:
        if self.private_lists < MOST_PRIVATE and await self.mutate(CREATE_LIST, name=text):
            self.private_lists += 1
            self.ledger.private.setdefault(self.name, []).append(text)

    # ── leagues ──

    async def league(self, text: str) -> None:
        """Creates a league at first; later joins or leaves one, or admits somebody to one of the own."""
        if self.own_leagues < MOST_OWN_LEAGUES and self.name not in LEAVERS:
            entry = ("OPEN", "APPROVAL")[self.own_leagues]
            self.own_leagues += 1
            answer = await self.must(CREATE_LEAGUE, name=text, season=SEASON, entry=entry)
            league = ExpectedLeague(text, entry, {self.name: "CAPTAIN"})
            self.ledger.leagues[answer["league"]["id"]] = league
        elif waiting := [place for place in self._own_places("WAITING") if place not in self.shared.busy]:
            await self._admit(*self.random.choice(waiting))
        else:
            await self._join_or_leave()

    def _own_places(self, membership: str) -> list[tuple[str, str]]:
        own = [item for item in self.ledger.leagues.items() if item[1].places.get(self.name) == "CAPTAIN"]
        return [(key, user) for key, league in own for user, is_ in league.places.items() if is_ == membership]

    async def _admit(self, key: str, user: str) -> None:
        with self.shared.changing((key, user)):
            answer = await self.mutate(ADMIT, "NOT_ALLOWED", "NOT_FOUND", league=key, user=node_id("User", user))
            if answer and user in self.ledger.leagues[key].places:  # else erased meanwhile
                self.ledger.leagues[key].places[user] = "MEMBER"

    async def _join_or_leave(self) -> None:
        """A captain who leaves names a successor."""
        free = [key for key in self.ledger.leagues if (key, self.name) not in self.shared.busy]
        if not free:
            return
        key = self.random.choice(free)
        league, fields = self.ledger.leagues[key], {}
        changed = [(key, self.name)]
        if league.places.get(self.name) == "CAPTAIN":
            heirs = [user for user, is_ in league.places.items() if is_ == "MEMBER" and user not in LEAVERS]
            free_heirs = [user for user in heirs if (key, user) not in self.shared.busy]
            if not free_heirs:
                return
            heir = self.random.choice(free_heirs)
            fields, changed = {"successor": node_id("User", heir)}, [*changed, (key, heir)]
        with self.shared.changing(*changed):
            if self.name not in league.places:
                await self.must(JOIN_LEAGUE, league=key)
                league.places[self.name] = "WAITING" if league.entry == "APPROVAL" else "MEMBER"
                return
            await self.must(LEAVE_LEAGUE, league=key, **fields)
            del league.places[self.name]
            if fields:
                league.places[heir] = "CAPTAIN"


class Editor(RecordingClient):
    """Runs the events, the lists and the board, moderates comments and erases members."""

    def __init__(self, name: str, token: str, urls: Sequence[str], random: Random, shared: SharedState) -> None:
        super().__init__(name, token, urls, random, shared)
        self.number = 0

    async def prepare(self) -> None:
        """Creates what the members need."""
        for name in CONTENDERS:
            await self.must(ADD_CONTENDER, name=name)
        for name in ("first", "second"):
            list_id = (await self.must(CREATE_LIST, name=name, public=True))["list"]["id"]
            self.ledger.lists[list_id] = name
            self.shared.lists.append(list_id)

    async def run(self) -> None:
        while not self.shared.stopped:
            await self.event()
            await self.words()
            await self.moderation()

    async def event(self) -> None:
        """Takes an event from its creation to its points; sometimes the results are corrected."""
        self.number += 1
        starts_at = season.in_hours(24)
        created = await self.must(CREATE_EVENT, name=f"Show {self.number}", season=SEASON, startsAt=starts_at)
        event_id, points = created["event"]["id"], {}
        for worth in (10, 25):
            teams = season.teams("A", "B")
            added = await self.must(ADD_MATCH, event=event_id, name="Singles", points=worth, teams=teams)
            points[added["match"]["id"]] = worth
        event = self.ledger.events[event_id] = ExpectedEvent(points)
        self.shared.open_event = event_id, list(points)
        await asyncio.sleep(self.random.uniform(0.5, 1.5))
        await self.must(LOCK_EVENT, event=event_id)
        event.state = "LOCKED"
        for _ in range(self.random.choice((1, 2))):
            for match in points:
                winner = 1 - event.winners[match] if match in event.winners else self.random.randrange(2)
                await self.must(RECORD_RESULT, match=match, outcome="WON", winner=winner)
                event.winners[match] = winner
            await self.score(event_id)
            if self.random.random() < UNSCORED:
                await self.mutate(UNSCORE_EVENT, "CONFLICT", event=event_id)
                await self.score(event_id)
            event.state = "SCORED"

    async def score(self, event_id: str) -> None:
        while not await self.mutate(SCORE_EVENT, "CONFLICT", event=event_id):
            pass

    async def words(self) -> None:
        """Adds a few words, or more than fit into one transaction."""
        self.number += 1
        list_id, count = self.random.choice(self.shared.lists), self.random.choice((3, 120))
        texts = [f"{self.number}-{index}" for index in range(count)]
        words = [{"simplified": text, "definition": "a word"} for text in texts]
        if await self.mutate(ADD_WORDS, "CONFLICT", list=list_id, words=words):
            self.ledger.words += [(list_id, text) for text in texts]

    async def moderation(self) -> None:
        refusals = ("CONFLICT", "NOT_FOUND", "NOT_ALLOWED")  # the last two once its author is erased
        for key in self.shared.moderated[-3:]:
            status = self.random.choice(("PUBLISHED", "REJECTED"))
            if await self.mutate(MODERATE_COMMENT, *refusals, comment=key, status=status):
                self.ledger.moderate(key, status)

    async def void(self, voter: str) -> None:
        """Takes back all votes of one voter."""
        answer = await super(RecordingClient, self).mutate(VOID_VOTER, voter=node_id("User", voter))
        assert answer is not None
        self.ledger.occurred(Kind.VOTE_VOIDED, self.name, self.ledger.void(voter))

    async def erase(self, member: Member) -> None:
        """Once the member has stopped: nobody writes in their name any more."""
        await member.has_left.wait()
        contributions = LEAVERS[member.name]
        await self.must(ERASE, user=node_id("User", member.name), contributions=contributions)
        self.ledger.erase(member.name, is_removed=contributions == "REMOVE")
