"""Words, subscriptions, quizzes and sentences under fault injection: nothing is lost or stored twice."""

import asyncio
from collections import Counter
from functools import partial
from random import Random

import pytest

from datastore.changes.occurrences import OCCURRENCE
from datastore.dynamo import Table
from datastore.vocabulary.daily import DAILY
from datastore.vocabulary.learning import QUIZ, SENTENCE
from datastore.vocabulary.lists import LIST
from datastore.vocabulary.subscriptions import SUBSCRIPTION
from datastore.vocabulary.words import WORD, all_words
from resolvers.requests.context import Role, Services
from resolvers.values.node_ids import parse_node_key
from server.settings import Settings
from tests.audits import breaches_in
from tests.client import Client, serving
from tests.conftest import settings_for
from tests.engines import EnginePair, RunningEngine
from tests.lagging.tables import lagging_table
from tests.lost_answers import ask_without_answer
from tests.queries import (
    ADD_WORDS,
    CREATE_LIST,
    RECORD_QUIZ,
    REMOVE_WORD,
    SUBSCRIBE,
    UNSUBSCRIBE,
    UPDATE_LIST,
    UPDATE_WORD,
    WRITE_SENTENCE,
)
from tests.vocabulary import public_list, some_words, word_ids

MEMBERS, STEPS = 5, 24


class Learner:
    """A member who sends random mutations, each with a unique text, and remembers the acknowledged ones."""

    def __init__(self, name: str, client: Client, lists: list[str], seed: int) -> None:
        self.client = client
        self.name = name
        self.lists = lists
        self.random = Random(f"{seed} {name}")
        self.acknowledged: set[str] = set()
        self.quizzes = self.quizzes_acknowledged = 0
        self.active: dict[str, bool] = {}
        self.doubtful: set[str] = set()

    async def act(self) -> None:
        for step in range(STEPS):
            await self.random.choice((self.quiz, self.sentence, self.words, self.subscription, self.read))(
                f"{self.name}-{step}"
            )

    async def acknowledge(self, mutation: str, given: dict[str, object], key: str) -> bool:
        """Whether the mutation was acknowledged. One that is refused for now is repeated with its key."""
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
        self.quizzes_acknowledged += await self.acknowledge(RECORD_QUIZ, given, text)

    async def sentence(self, text: str) -> None:
        if await self.acknowledge(WRITE_SENTENCE, {"text": text}, text):
            self.acknowledged.add(text)

    async def words(self, text: str) -> None:
        count = self.random.choice((2, 120))
        batch = [{"simplified": f"{text}-{number}", "definition": "x"} for number in range(count)]
        if await self.acknowledge(ADD_WORDS, {"list": self.random.choice(self.lists), "words": batch}, text):
            self.acknowledged.add(f"{text}-{count - 1}")

    async def subscription(self, text: str) -> None:
        list_id, ends = self.random.choice(self.lists), self.random.random() < 0.4
        if ends and list_id not in self.active:
            return
        self.doubtful.add(list_id)
        if await self.acknowledge(UNSUBSCRIBE if ends else SUBSCRIBE, {"list": list_id}, text):
            self.doubtful.discard(list_id)
            self.active[list_id] = not ends

    async def read(self, _: str) -> None:
        await self.client.answer(
            "{ dailyWords { word { id } } viewer { streak { current } subscriptions { active } } }"
        )


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
async def test_faults_lose_nothing_and_double_nothing(engine_pair: EnginePair, table_name: str, seed: int) -> None:
    """A fifth of all requests fails, before or after it is applied; acknowledged writes are stored once."""
    async with lagging_table(engine_pair, table_name, seed=seed, conflict_seconds=0.005) as (proxy, _, table):
        settings = settings_for(RunningEngine("proxy", proxy.url), table_name)
        async with serving(settings) as client:
            editor = client.member("eve", Role.EDITOR)
            created = [
                await editor.ask(CREATE_LIST, input={"name": f"L{number}", "public": True}) for number in range(2)
            ]
            lists = [answer["list"]["id"] for answer in created]
            learners = [
                Learner(f"m{number}", client.member(f"m{number}", Role.EDITOR), lists, seed)
                for number in range(MEMBERS)
            ]
            proxy.fault_rate = 0.2
            await asyncio.gather(*(learner.act() for learner in learners))
            proxy.fault_rate = 0
            assert proxy.faults.total() > 50
        services = Services(table, client.services.seal)
        assert await breaches_in(services) == []
        words = Counter(
            [word.simplified async for word_list in table.scan(LIST) async for word in all_words(table, word_list)]
        )
        texts = Counter([sentence.text async for sentence in table.scan(SENTENCE)])
        quizzes = Counter([quiz.user async for quiz in table.scan(QUIZ)])
        assert max(words.values(), default=1) == max(texts.values(), default=1) == 1
        for learner in learners:
            for text in learner.acknowledged:
                assert texts[text] == 1 or words[text] == 1, f"{text} is lost"
            assert learner.quizzes_acknowledged <= quizzes[learner.name] <= learner.quizzes
        subscribed = {(each.user, each.list): each.active async for each in table.scan(SUBSCRIPTION)}
        for learner in learners:
            for list_id, active in learner.active.items():
                assert (
                    list_id in learner.doubtful
                    or subscribed[learner.name, parse_node_key("WordList", list_id)] == active
                )
        days = Counter([(daily.list, daily.date) async for daily in table.scan(DAILY)])
        assert max(days.values(), default=1) == 1


async def _occurrences(client: Client) -> Counter[str]:
    return Counter([occurrence.kind async for occurrence in client.services.table.scan(OCCURRENCE, consistent=True)])


@pytest.mark.parametrize("journal_days", [90, 0])
async def test_a_correction_whose_answer_is_lost_is_made_once(
    one_table: Table, settings: Settings, journal_days: int
) -> None:
    """Without a key too: the journal has it once, or none, and the word counts one change."""
    async with serving(settings.model_copy(update={"journal_days": journal_days})) as client:
        list_id = await public_list(client, words=1)
        editor, [word_id] = client.member("eve", Role.EDITOR), await word_ids(client, list_id)
        await ask_without_answer(editor, UPDATE_WORD, word=word_id, definition="new")
        await ask_without_answer(editor, UPDATE_LIST, list=list_id, name="New")
        made = await _occurrences(client)
        assert made["word.changed"] == made["wordList.changed"] == (1 if journal_days else 0)
    [word] = [word async for word in one_table.scan(WORD, consistent=True)]
    [word_list] = [word_list async for word_list in one_table.scan(LIST, consistent=True)]
    assert (word.definition, word.revision, word_list.name) == ("new", 1, "New")


async def test_a_correction_whose_answer_is_lost_does_not_replace_a_later_one(one_client: Client) -> None:
    """Neither of a word nor of a list: it is not made a second time, on top of what somebody else did in between."""
    list_id = await public_list(one_client, words=1)
    editor, [word_id] = one_client.member("eve", Role.EDITOR), await word_ids(one_client, list_id)
    for mutation, text, id_ in (
        (UPDATE_WORD, "definition", {"word": word_id}),
        (UPDATE_LIST, "name", {"list": list_id}),
    ):
        later = partial(editor.ask, mutation, input={**id_, text: "later"})
        await ask_without_answer(editor, mutation, meanwhile=later, **id_, **{text: "earlier"})
    table = one_client.services.table
    assert [word.definition async for word in table.scan(WORD, consistent=True)] == ["later"]
    assert [word_list.name async for word_list in table.scan(LIST, consistent=True)] == ["later"]
    made = await _occurrences(one_client)
    assert made["word.changed"] == made["wordList.changed"] == 2


@pytest.mark.parametrize("rival", ["updateWord", "removeWord"])
async def test_words_whose_addition_loses_its_answer_are_added_once(one_client: Client, rival: str) -> None:
    """Also if somebody corrects or removes one of them before it is tried again."""
    list_id = await public_list(one_client, words=0)
    editor = one_client.member("eve", Role.EDITOR)

    async def change() -> None:
        word_id = (await word_ids(one_client, list_id))[0]
        if rival == "updateWord":
            await editor.ask(UPDATE_WORD, input={"word": word_id, "definition": "corrected"})
        else:
            await editor.ask(REMOVE_WORD, input={"word": word_id})

    added = await ask_without_answer(editor, ADD_WORDS, meanwhile=change, list=list_id, words=some_words(3))
    [word_list] = [found async for found in one_client.services.table.scan(LIST, consistent=True)]
    assert (word_list.next_ordinal, len(added["words"])) == (3, 3 if rival == "updateWord" else 2)
    assert (await _occurrences(one_client))["words.added"] == 1
    assert await breaches_in(one_client.services) == []
