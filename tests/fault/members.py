"""Members who vote, predict, comment, learn and join leagues at the same time.

Each records what was acknowledged, and what the journal must say about it. Nobody else changes what a member writes,
except where the ledger can follow: a report on a comment that its author may be deleting, a prediction on an event that
is being locked, and what is taken back while its author waits. A place in a league is changed by its member and by the
league's captain, one after the other.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final

from datastore.changes.occurrences import Kind
from resolvers.values.node_ids import node_id
from tests import season
from tests.fault.ledger import SEASON, ExpectedComment, ExpectedLeague, ExpectedPrediction, ExpectedVote
from tests.fault.recording import EVERYBODY, LANGUAGES, LEAVERS, PRODUCTS, SPAMMER, TROLL, RecordingClient, SharedState
from tests.leagues import ADMIT, CREATE_LEAGUE, DELETE_LEAGUE, JOIN_LEAGUE, LEAVE_LEAGUE, REMOVE, ROTATE_CODE
from tests.queries import (
    CAST_VOTE,
    CREATE_LIST,
    DELETE_COMMENT,
    DRAW_MATCHUP,
    EDIT_COMMENT,
    POST_COMMENT,
    RECORD_QUIZ,
    REPORT_COMMENT,
    SUBMIT_PREDICTION,
    SUBSCRIBE,
    UNSUBSCRIBE,
    UPDATE_PROFILE,
    WRITE_SENTENCE,
)
from tests.vocabulary import ANSWER_QUIZ, START_QUIZ

MOST_PRIVATE: Final = 10
MOST_OWN_LEAGUES: Final = 2
SUSPENDED: Final = "Advertising in every thread"
"""Why a member was suspended, which each refusal says."""
QUESTIONS: Final = 3
QUIZ_SECONDS: Final = 3.2
"""Answers that come earlier than a second for each question are refused."""


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
            self.delete, self.report, self.quiz, self.asked_quiz, self.sentence, self.subscription, self.private_list,
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
        guess = self.random.choice((None, *range(30)))
        fields = season.prediction_input(event, list(picks.items()))
        if await self.mutate(SUBMIT_PREDICTION, "LOCKED", guess=guess, **fields):
            self.ledger.predictions[event, self.name] = ExpectedPrediction(picks, guess)

    async def post(self, text: str) -> None:
        product, language = self.random.choice(PRODUCTS), self.random.choice(LANGUAGES)
        comment = ExpectedComment(product, self.name, language, self.random.randint(1, 5), text)
        fields = {"product": product, "language": language, "rating": comment.rating, "body": text}
        answer = await self.mutate(POST_COMMENT, **fields)
        assert answer is not None
        key = answer["comment"]["id"]
        self.ledger.comments[key] = comment
        is_own = self.name == SPAMMER or self.random.random() < 0.7
        (self.own if is_own else self.shared.moderated).append(key)

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
        unavailable, comments = {*self.reported, *self.shared.moderated}, self.ledger.comments.items()
        reportable = [key for key, comment in comments if comment.is_published and key not in unavailable]
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

    async def asked_quiz(self, _: str) -> None:
        list_id = self.random.choice(self.shared.lists)
        if not any(word[0] == list_id for word in self.ledger.words):
            return
        quiz = await self.must(START_QUIZ, list=list_id, size=QUESTIONS)
        right = [definition_of(question["prompt"]) for question in quiz["questions"]]
        answers = [answer if self.random.random() < 0.7 else "" for answer in right]
        correct = QUESTIONS - answers.count("")
        await asyncio.sleep(QUIZ_SECONDS)
        graded = await self.must(ANSWER_QUIZ, token=quiz["token"], answers=answers)
        assert graded["result"]["correct"] == correct
        self.ledger.quizzes.append((self.name, list_id, correct, QUESTIONS))

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
        """Creates a league at first; later joins or leaves one, or changes one of the own."""
        with_code = [key for key in self._captained() if self.ledger.leagues[key].code and self.shared.is_unused(key)]
        if self.own_leagues < MOST_OWN_LEAGUES and self.name not in LEAVERS:
            await self._create_league(text)
        elif waiting := [place for place in self._waiting() if self.shared.is_free(*place)]:
            await self._admit(*self.random.choice(waiting))
        elif (removable := self._removable()) and self.random.random() < 0.2:
            await self._remove(*self.random.choice(removable))
        elif with_code and self.random.random() < 0.3:
            await self.random.choice((self._rotate_code, self._delete_league))(self.random.choice(with_code))
        else:
            await self._join_or_leave()

    async def _create_league(self, name: str) -> None:
        self.own_leagues += 1
        entry = self.random.choice(("OPEN", "APPROVAL", "CODE"))
        league = (await self.must(CREATE_LEAGUE, name=name, season=SEASON, entry=entry))["league"]
        self.ledger.leagues[league["id"]] = ExpectedLeague(name, entry, {self.name: "CAPTAIN"}, league["code"])

    def _captained(self) -> list[str]:
        return [key for key, league in self.ledger.leagues.items() if league.places.get(self.name) == "CAPTAIN"]

    def _places(self) -> list[tuple[str, str, str]]:
        """All places in the own leagues."""
        own = [(key, self.ledger.leagues[key].places.items()) for key in self._captained()]
        return [(key, user, membership) for key, places in own for user, membership in places]

    def _waiting(self) -> list[tuple[str, str]]:
        return [(key, user) for key, user, membership in self._places() if membership == "WAITING"]

    def _removable(self) -> list[tuple[str, str]]:
        """Those who are neither captains, nor being erased, nor changing their place."""
        others = [(key, user) for key, user, membership in self._places() if membership != "CAPTAIN"]
        return [place for place in others if place[1] not in LEAVERS and self.shared.is_free(*place)]

    async def _rotate_code(self, key: str) -> None:
        with self.shared.changing((key, EVERYBODY)):
            answer = await self.must(ROTATE_CODE, league=key)
            self.ledger.leagues[key].code = answer["league"]["code"]

    async def _delete_league(self, key: str) -> None:
        """Deletes a league for good; another one takes its place."""
        del self.ledger.leagues[key]
        await self.must(DELETE_LEAGUE, league=key)
        self.own_leagues -= 1

    async def _admit(self, key: str, user: str) -> None:
        with self.shared.changing((key, user)):
            answer = await self.mutate(ADMIT, "NOT_ALLOWED", "NOT_FOUND", league=key, user=node_id("User", user))
            if answer and user in self.ledger.leagues[key].places:  # else erased meanwhile
                self.ledger.leagues[key].places[user] = "MEMBER"

    async def _remove(self, key: str, user: str) -> None:
        with self.shared.changing((key, user)):
            await self.must(REMOVE, league=key, user=node_id("User", user))
            del self.ledger.leagues[key].places[user]

    async def _join_or_leave(self) -> None:
        """A captain who leaves names a successor."""
        free = [key for key in self.ledger.leagues if self.shared.is_free(key, self.name)]
        if self.name in LEAVERS:  # who have no codes: a league that they are leaving cannot be deleted meanwhile
            free = [key for key in free if not self.ledger.leagues[key].code]
        if not free:
            return
        key = self.random.choice(free)
        league, fields = self.ledger.leagues[key], {}
        changed = [(key, self.name)]
        if league.places.get(self.name) == "CAPTAIN":
            heirs = [user for user, is_ in league.places.items() if is_ == "MEMBER" and user not in LEAVERS]
            free_heirs = [user for user in heirs if self.shared.is_free(key, user)]
            if not free_heirs:
                return
            heir = self.random.choice(free_heirs)
            fields, changed = {"successor": node_id("User", heir)}, [*changed, (key, heir)]
        with self.shared.changing(*changed):
            if self.name not in league.places:
                await self.must(JOIN_LEAGUE, **({"code": league.code} if league.code else {"league": key}))
                league.places[self.name] = "WAITING" if league.entry == "APPROVAL" else "MEMBER"
                return
            await self.must(LEAVE_LEAGUE, league=key, **fields)
            del league.places[self.name]
            if fields:
                league.places[heir] = "CAPTAIN"


def definition_of(word: str) -> str:
    """Of the editor's words."""
    return f"meaning of {word}"


class Spammer(Member):
    """Repeats what is refused during a suspension, and waits while contributions are taken back."""

    def __init__(self, name: str, token: str, urls: Sequence[str], random: Random, shared: SharedState) -> None:
        super().__init__(name, token, urls, random, shared)
        self.was_refused = asyncio.Event()
        self.waits = asyncio.Event()
        self.may_go_on = asyncio.Event()

    async def ask(self, query: str, **variables: Any) -> Any:
        while _is_suspended(answer := await super().ask(query, **variables)):
            self.was_refused.set()
            await asyncio.sleep(self.random.uniform(0.1, 0.3))
        return answer

    async def act(self, action: Callable[[str], Awaitable[None]]) -> None:
        if self.shared.leaving:
            self.waits.set()
            await self.may_go_on.wait()
        await super().act(action)

    def forget(self) -> None:
        """What was taken back cannot be changed any more."""
        self.own.clear()
        self.sentences.clear()


def _is_suspended(answer: Any) -> bool:
    return isinstance(answer, Mapping) and answer.get("code") == "NOT_ALLOWED" and SUSPENDED in answer["message"]
