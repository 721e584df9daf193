"""Vocabulary on an engine that is behind or far away: nothing acknowledged is refused, and no call waits needlessly."""

from contextlib import AsyncExitStack
from pathlib import Path

from datastore.dynamo import Table
from datastore.values.seal import Seal
from datastore.vocabulary.lists import LIST
from resolvers.requests.context import Role, Services
from tests.client import serving
from tests.conftest import settings_for
from tests.dependent_calls import dependent_calls
from tests.engines import RunningEngine
from tests.lagging import Lag
from tests.lagging.tables import lagging
from tests.queries import ADD_WORDS, CREATE_LIST, RECORD_QUIZ, SUBSCRIBE, UPDATE_PROFILE, WRITE_SENTENCE
from tests.transfers import import_words
from tests.vocabulary import START_QUIZ

DAILY_WORDS = "{ dailyWords { date list { name } word { simplified } } }"
NEVER = Lag(mean=1e6, longest=1e6, stale=1.0)
OWN_PAGE = """{ viewer { name streak { current } subscriptions { list { name } active }
  quizResults(from: "2026-01-01", first: 10) { nodes { correct } } } }"""


async def test_what_another_process_has_just_written_is_found(tmp_path: Path) -> None:
    """Lists and words of a moment ago, though every read that may be stale is: nothing is refused."""
    async with lagging(tmp_path, lag=NEVER) as (engine, table), AsyncExitStack() as stack:
        settings = settings_for(RunningEngine("lagging", engine.url), table.name)
        here, there = [
            (await stack.enter_async_context(serving(settings))).member("ada", Role.EDITOR) for _ in range(2)
        ]
        for number in range(3):
            created = await here.ask(CREATE_LIST, input={"name": f"List {number}", "public": number == 0})
            given = {"list": created["list"]["id"]}
            assert (await there.ask(SUBSCRIBE, input=given))["subscription"]["active"]
            recorded = await there.ask(RECORD_QUIZ, input={**given, "correct": 1, "total": 2})
            result = recorded["result"]["id"]
            assert await here.ask("query ($id: ID!) { node(id: $id) { id } }", id=result) == {"id": result}
            for writer, reader in ((there, here), (here, there)):
                words = [{"simplified": "好", "definition": "good"}]
                added = await writer.ask(ADD_WORDS, input={**given, "words": words})
                word = added["words"][0]["id"]
                assert (await reader.ask(WRITE_SENTENCE, input={"text": "好。", "word": word}))["sentence"]["word"]
                assert await reader.ask("query ($id: ID!) { node(id: $id) { id } }", id=word) == {"id": word}


async def test_a_quiz_asks_about_words_of_a_moment_ago(tmp_path: Path) -> None:
    """It is not refused as if the list had none."""
    async with lagging(tmp_path, lag=NEVER) as (engine, table):
        settings = settings_for(RunningEngine("lagging", engine.url), table.name)
        async with serving(settings) as client:
            ada = client.member("ada")
            words = {"list": (await ada.ask(CREATE_LIST, input={"name": "Mine"}))["list"]["id"]}
            await engine.catch_up()
            signs = [{"simplified": sign, "definition": f"number {sign}"} for sign in "一二三"]
            await ada.ask(ADD_WORDS, input={**words, "words": signs})
            asked = await ada.ask(START_QUIZ, input={**words, "size": 3})
            assert len(asked["questions"]) == 3


async def test_an_index_does_not_undo_what_the_process_has_written(tmp_path: Path) -> None:
    """Lists read from an index that is behind are not remembered in place of newer ones."""
    async with lagging(tmp_path, lag=Lag(mean=1e6, longest=1e6, stale=0.0)) as (engine, table):
        settings = settings_for(RunningEngine("lagging", engine.url), table.name)
        async with serving(settings) as client:
            ada = client.member("ada")
            given = {"list": (await ada.ask(CREATE_LIST, input={"name": "Mine"}))["list"]["id"]}
            await engine.catch_up()
            await ada.ask(ADD_WORDS, input={**given, "words": [{"simplified": "好", "definition": "good"}]})
            listed = await ada.ask("{ wordLists { nodes { wordCount } } }")
            assert listed["nodes"] == [{"wordCount": 0}], "the index is not behind"
            subscribed = await ada.ask(SUBSCRIBE.replace("list { id }", "list { wordCount }"), input=given)
            assert subscribed["subscription"]["list"]["wordCount"] == 1


async def test_an_import_that_is_run_again_finds_its_list_and_words(tmp_path: Path) -> None:
    """The index lacks the list at first, and later shows an old number of words: nothing is added twice."""
    file = tmp_path / "words.csv"
    async with lagging(tmp_path, lag=NEVER) as (engine, table):
        services = Services(table, Seal(["a secret that is long enough to be one"]))
        added = []
        for words in (3, 3, 5, 5):
            file.write_text("simplified,definition\n" + "".join(f"词{n},word {n}\n" for n in range(words)))
            added.append((await import_words(services, file, "Mine")).added)
            if len(added) == 2:
                await engine.catch_up()
        assert added == [3, 0, 2, 0]
        assert [word_list.word_count async for word_list in table.scan(LIST, consistent=True)] == [5]


async def test_calls_that_do_not_need_each_other_are_sent_together(
    one_table: Table, default_engine: RunningEngine
) -> None:
    """The number of engine calls that wait for an earlier one, with the caches of a new process."""
    settings = settings_for(default_engine, one_table.name)
    async with serving(settings) as client:
        ada = client.member("ada", Role.EDITOR)
        given: dict[str, object] = {}
        for name in ("Ours", "Mine"):
            created = await ada.ask(CREATE_LIST, input={"name": name, "public": name == "Ours"})
            given = {"list": created["list"]["id"]}
            await ada.ask(ADD_WORDS, input={**given, "words": [{"simplified": "好", "definition": "good"}]})
            await ada.ask(SUBSCRIBE, input=given)
        await ada.ask(DAILY_WORDS)
    waited = {}
    for operation, query, variables in (
        ("dailyWords", DAILY_WORDS, {}),
        ("viewer's own page", OWN_PAGE, {}),
        ("recordQuiz", RECORD_QUIZ.replace(" user { name }", ""), {"input": {**given, "correct": 1, "total": 2}}),
        ("updateProfile", UPDATE_PROFILE, {"input": {"name": "Ada L.", "idempotencyKey": "1"}}),
    ):
        async with serving(settings) as client:
            asked = client.member("ada").ask(query, **variables)
            _, waited[operation] = await dependent_calls(client.services.table, asked)
    # In a new process a member's first request also looks for whose identity it is.
    assert waited == {"dailyWords": 2, "viewer's own page": 3, "recordQuiz": 2, "updateProfile": 3}
