"""Words, subscriptions, quizzes and sentences on a bad day of the engine: nothing lost, nothing doubled."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

import pytest

from datastore import vocabulary as vocabulary_store
from datastore.dynamo import Table
from datastore.vocabulary import DAILY, LIST, QUIZ, SENTENCE, SUBSCRIPTION
from resolvers.context import Services
from resolvers.node_ids import parse_node_key
from resolvers.viewer import Role
from server.audit import breaches
from tests.client import Client, serving
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.fault.proxy import Proxy
from tests.queries import ADD_WORDS, CREATE_LIST, RECORD_QUIZ, SUBSCRIBE, UNSUBSCRIBE, WRITE_SENTENCE

MEMBERS, STEPS = 5, 24


class Learner:
    """A member who does things at random, each with a text of its own, and remembers what was acknowledged."""

    def __init__(self, name: str, client: Client, lists: list[str], seed: int) -> None:
        self.client = client
        self.name = name
        self.lists = lists
        self.random = Random(f"{seed} {name}")
        self.acknowledged: set[str] = set()
        self.quizzes = self.quizzes_acknowledged = 0
        self.active: dict[str, bool] = {}
        self.doubtful: set[str] = set()

    async def live(self) -> None:
        for step in range(STEPS):
            await self.random.choice((self.quiz, self.sentence, self.words, self.subscription, self.look))(
                f"{self.name}-{step}"
            )

    async def done(self, mutation: str, given: dict[str, object], key: str) -> bool:
        """Whether it was acknowledged; a client that was told to come back does so, with its key."""
        for _ in range(3):
            body = await self.client.answer(mutation, input={**given, "idempotencyKey": key})
            assert "errors" not in body, body
            answer = next(iter(body["data"].values()))
            if "code" not in answer:
                return True
            assert answer["code"] in ("UNAVAILABLE", "CONFLICT"), answer
        return False

    async def quiz(self, text: str) -> None:
        given = {"list": self.random.choice(self.lists), "correct": 1, "total": 2}
        self.quizzes += 1
        self.quizzes_acknowledged += await self.done(RECORD_QUIZ, given, text)

    async def sentence(self, text: str) -> None:
        if await self.done(WRITE_SENTENCE, {"text": text}, text):
            self.acknowledged.add(text)

    async def words(self, text: str) -> None:
        count = self.random.choice((2, 120))
        batch = [{"simplified": f"{text}-{number}", "definition": "x"} for number in range(count)]
        if await self.done(ADD_WORDS, {"list": self.random.choice(self.lists), "words": batch}, text):
            self.acknowledged.add(f"{text}-{count - 1}")

    async def subscription(self, text: str) -> None:
        listed, ends = self.random.choice(self.lists), self.random.random() < 0.4
        if ends and listed not in self.active:
            return
        self.doubtful.add(listed)
        if await self.done(UNSUBSCRIBE if ends else SUBSCRIBE, {"list": listed}, text):
            self.doubtful.discard(listed)
            self.active[listed] = not ends

    async def look(self, _: str) -> None:
        await self.client.answer(
            "{ dailyWords { word { id } } viewer { streak { current } subscriptions { active } } }"
        )


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_bad_day_loses_and_doubles_nothing(one_table: Table, default_engine: RunningEngine, seed: int) -> None:
    """A fifth of all requests fails before or after it is applied; what was acknowledged is there, once."""
    async with Proxy(default_engine.url, seed=seed, conflict_seconds=0.005) as proxy:
        settings = settings_for(RunningEngine("proxy", proxy.url), one_table.name)
        async with serving(settings) as client:
            editor = client.member("eve", Role.EDITOR)
            made = [await editor.ask(CREATE_LIST, input={"name": f"L{number}", "public": True}) for number in range(2)]
            lists = [one["list"]["id"] for one in made]
            learners = [
                Learner(f"m{number}", client.member(f"m{number}", Role.EDITOR), lists, seed)
                for number in range(MEMBERS)
            ]
            proxy.fault_rate = 0.2
            await asyncio.gather(*(learner.live() for learner in learners))
            proxy.fault_rate = 0
            assert proxy.faults.total() > 50
    services = Services(one_table, client.services.seal)
    assert [breach async for breach in breaches(services)] == []
    words = Counter(
        [
            one.simplified
            async for listed in one_table.scan(LIST)
            async for one in vocabulary_store.all_words(one_table, listed)
        ]
    )
    texts = Counter([one.text async for one in one_table.scan(SENTENCE)])
    quizzes = Counter([one.user async for one in one_table.scan(QUIZ)])
    assert max(words.values(), default=1) == max(texts.values(), default=1) == 1
    for learner in learners:
        for text in learner.acknowledged:
            assert texts[text] == 1 or words[text] == 1, f"{text} is lost"
        assert learner.quizzes_acknowledged <= quizzes[learner.name] <= learner.quizzes
    kept = {(one.user, one.list): one.active async for one in one_table.scan(SUBSCRIPTION)}
    for learner in learners:
        for listed, active in learner.active.items():
            assert listed in learner.doubtful or kept[learner.name, parse_node_key("WordList", listed)] == active
    days = Counter([(one.list, one.date) async for one in one_table.scan(DAILY)])
    assert max(days.values(), default=1) == 1
