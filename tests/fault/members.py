"""What people do all at once: profiles, votes, predictions, comments, words; and what an editor does meanwhile.

Each writes down what was acknowledged. Nobody else touches what a member writes about, except where a ledger can
follow: a report on a comment that its author may be deleting, a prediction on an event that is being locked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

from resolvers.node_ids import node_id
from tests import season
from tests.fault.ledger import SEASON, Ledger, Opinion, Show, Verdict
from tests.fault.retrying_client import Patient
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
    UNSUBSCRIBE,
    UPDATE_PROFILE,
    VOID_VOTER,
    WRITE_SENTENCE,
)

PRODUCTS: Final = ("p1", "p2")
LANGUAGES: Final = ("en", "de")
CONTENDERS: Final = ("a", "b", "c", "d", "e", "f")
TROLL: Final = "troll"
MOST_PRIVATE: Final = 10


@dataclass
class Town:
    """What all have in common."""

    ledger: Ledger = field(default_factory=Ledger)
    lists: list[str] = field(default_factory=list)
    open_event: tuple[str, Sequence[str]] | None = None
    handed_over: list[str] = field(default_factory=list)
    storm_is_over: bool = False


class Member(Patient):
    """Does things at random, one after the other, until the storm is over."""

    def __init__(self, name: str, token: str, urls: Sequence[str], chance: Random, town: Town) -> None:
        super().__init__(name, token, urls, chance)
        self.town = town
        self.ledger = town.ledger
        self.own: list[str] = []
        self.reported: set[str] = set()
        self.written: list[str] = []
        self.private = 0
        self.steps = 0

    async def live(self) -> None:
        acts: Sequence[Callable[[str], Awaitable[None]]] = (
            self.profile, self.vote, self.vote, self.predict, self.predict, self.post, self.post, self.edit,
            self.delete, self.report, self.quiz, self.sentence, self.subscription, self.private_list,
        )  # fmt: skip
        await self.act(self.profile)
        while not self.town.storm_is_over:
            await self.act(self.vote if self.name == TROLL else self.chance.choice(acts))

    async def act(self, act: Callable[[str], Awaitable[None]]) -> None:
        self.steps += 1
        await act(f"{self.name} {self.steps}")
        self.ledger.acts += 1

    async def profile(self, text: str) -> None:
        if await self.done(UPDATE_PROFILE, name=text):
            self.ledger.names[self.name] = text

    async def vote(self, _: str) -> None:
        ballot = await self.ask(DRAW_MATCHUP)
        verdict = self.chance.choice(("LEFT", "RIGHT", "TIE", "SKIP"))
        answer = await self.ask(CAST_VOTE, token=ballot["token"], verdict=verdict)
        assert "code" not in answer, answer
        if verdict != "SKIP":
            left, right = sorted((ballot["left"]["name"], ballot["right"]["name"]))
            winner = answer["winner"] and answer["winner"]["name"]
            self.ledger.verdicts.append(Verdict(self.name, (left, right), winner))

    async def predict(self, _: str) -> None:
        if self.town.open_event is None:
            return
        event, matches = self.town.open_event
        picks = {match: self.chance.randrange(2) for match in matches}
        if await self.done(SUBMIT_PREDICTION, "LOCKED", **season.prediction_input(event, list(picks.items()))):
            self.ledger.picks[event, self.name] = picks

    async def post(self, text: str) -> None:
        product, language = self.chance.choice(PRODUCTS), self.chance.choice(LANGUAGES)
        words = Opinion(product, self.name, language, self.chance.randint(1, 5), text)
        given = {"product": product, "language": language, "rating": words.rating, "body": text}
        answer = await self.done(POST_COMMENT, **given)
        assert answer is not None
        key = answer["comment"]["id"]
        self.ledger.comments[key] = words
        (self.own if self.chance.random() < 0.7 else self.town.handed_over).append(key)

    async def edit(self, text: str) -> None:
        if not self.own:
            return
        key, rating, language = self.chance.choice(self.own), self.chance.randint(1, 5), self.chance.choice(LANGUAGES)
        if await self.done(EDIT_COMMENT, "CONFLICT", comment=key, rating=rating, language=language, body=text):
            before = self.ledger.comments[key]
            self.ledger.comments[key] = replace(before, rating=rating, language=language, body=text)

    async def delete(self, _: str) -> None:
        if not self.own:
            return
        key = self.own.pop(self.chance.randrange(len(self.own)))
        if await self.done(DELETE_COMMENT, "CONFLICT", comment=key):
            self.ledger.forget(key)

    async def report(self, text: str) -> None:
        unknown = [key for key in self.ledger.comments if key not in self.reported and key not in self.town.handed_over]
        if not unknown:
            return
        key = self.chance.choice(unknown)
        self.reported.add(key)
        if await self.done(REPORT_COMMENT, "NOT_FOUND", "CONFLICT", comment=key, reason=text):
            self.ledger.reports.setdefault(key, []).append(text)

    async def quiz(self, _: str) -> None:
        listed, total = self.chance.choice(self.town.lists), self.chance.randint(1, 20)
        correct = self.chance.randint(0, total)
        if await self.done(RECORD_QUIZ, "CONFLICT", list=listed, correct=correct, total=total):
            self.ledger.quizzes.append((self.name, listed, correct, total))

    async def sentence(self, text: str) -> None:
        """A new one, or another text for an old one."""
        amended = {"sentence": self.chance.choice(self.written)} if self.written and self.chance.random() < 0.4 else {}
        if answer := await self.done(WRITE_SENTENCE, "CONFLICT", text=text, **amended):
            key = answer["sentence"]["id"]
            assert amended.get("sentence", key) == key
            self.ledger.sentences[key] = (self.name, text)
            self.written = [*{*self.written, key}]

    async def subscription(self, _: str) -> None:
        place = self.name, self.chance.choice(self.town.lists)
        ends = self.ledger.subscriptions.get(place, False)
        if await self.done(UNSUBSCRIBE if ends else SUBSCRIBE, "CONFLICT", list=place[1]):
            self.ledger.subscriptions[place] = not ends

    async def private_list(self, text: str) -> None:
        if self.private < MOST_PRIVATE and await self.done(CREATE_LIST, name=text):
            self.private += 1
            self.ledger.private.setdefault(self.name, []).append(text)


class Editor(Patient):
    """Who runs the events, the lists and the board, and decides about comments."""

    def __init__(self, name: str, token: str, urls: Sequence[str], chance: Random, town: Town) -> None:
        super().__init__(name, token, urls, chance)
        self.town = town
        self.ledger = town.ledger
        self.number = 0

    async def prepare(self) -> None:
        """What members need before they can do anything."""
        for name in CONTENDERS:
            await self.required(ADD_CONTENDER, name=name)
        for name in ("first", "second"):
            made = (await self.required(CREATE_LIST, name=name, public=True))["list"]["id"]
            self.ledger.lists[made] = name
            self.town.lists.append(made)

    async def required(self, mutation: str, **given: Any) -> dict[str, Any]:
        answer = await self.done(mutation, **given)
        assert answer is not None
        return answer

    async def work(self) -> None:
        while not self.town.storm_is_over:
            await self.event()
            await self.words()
            await self.moderation()

    async def event(self) -> None:
        """An event from its creation to its points; now and then a result was wrong at first."""
        self.number += 1
        made = await self.required(
            CREATE_EVENT, name=f"Show {self.number}", season=SEASON, startsAt=season.in_hours(24)
        )
        event, points = made["event"]["id"], {}
        for worth in (10, 25):
            added = await self.required(
                ADD_MATCH, event=event, name="Singles", points=worth, teams=season.teams("A", "B")
            )
            points[added["match"]["id"]] = worth
        show = self.ledger.shows[event] = Show(points)
        self.town.open_event = event, list(points)
        await asyncio.sleep(self.chance.uniform(0.5, 1.5))
        await self.required(LOCK_EVENT, event=event)
        show.state = "LOCKED"
        for _ in range(self.chance.choice((1, 2))):
            for match in points:
                winner = self.chance.randrange(2)
                await self.required(RECORD_RESULT, match=match, outcome="WON", winner=winner)
                show.winners[match] = winner
            while not await self.done(SCORE_EVENT, "CONFLICT", event=event):
                pass
            show.state = "SCORED"

    async def words(self) -> None:
        """A few at once, or more than one transaction can take."""
        self.number += 1
        listed, count = self.chance.choice(self.town.lists), self.chance.choice((3, 120))
        texts = [f"{self.number}-{place}" for place in range(count)]
        batch = [{"simplified": text, "definition": "a word"} for text in texts]
        if await self.done(ADD_WORDS, "CONFLICT", list=listed, words=batch):
            self.ledger.words += [(listed, text) for text in texts]

    async def moderation(self) -> None:
        for key in self.town.handed_over[-3:]:
            status = self.chance.choice(("PUBLISHED", "REJECTED"))
            if await self.done(MODERATE_COMMENT, "CONFLICT", comment=key, status=status):
                self.ledger.moderate(key, status)

    async def void(self, voter: str) -> None:
        """Takes back all votes of one voter."""
        await self.required(VOID_VOTER, voter=node_id("User", voter))
        self.ledger.void(voter)
