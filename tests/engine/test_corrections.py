"""Correcting and removing words, lists and sentences, over HTTP: what changes, and what stays."""

from asyncio import gather
from contextlib import suppress
from datetime import timedelta
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from datastore.dynamo.entity import Partition
from datastore.vocabulary import daily as daily_store
from datastore.vocabulary.daily import DailyWord
from datastore.vocabulary.lists import LIST, WordList, deleted_lists, read_list
from datastore.vocabulary.subscriptions import all_subscribers
from datastore.vocabulary.words import WORD
from resolvers.requests.context import Role, Services
from resolvers.values.node_ids import parse_node_key
from resolvers.vocabulary import lists as list_resolvers
from server.mail.daily_run import DailyRun, RunSummary
from server.mail.message import Letterhead
from server.mail.sending import Emails
from tests.audits import breaches_in
from tests.client import Client
from tests.killed import Killed, killed_at
from tests.mail_server import Outbox
from tests.overtaken import overtaken
from tests.queries import (
    ADD_WORDS,
    CREATE_LIST,
    DELETE_LIST,
    DELETE_SENTENCE,
    RECORD_QUIZ,
    REMOVE_WORD,
    SUBSCRIBE,
    UPDATE_LIST,
    UPDATE_WORD,
    WRITE_SENTENCE,
)
from tests.transfers import import_words
from tests.vocabulary import private_list, public_list, some_words, today, word_ids

DAILY = "query ($id: ID!, $on: Date) { wordList(id: $id) { dailyWord(on: $on) { word { id simplified } } } }"
REVIEW = "query ($id: ID!) { wordList(id: $id) { wordCount review { nodes { word { id simplified } } } } }"


async def stored_list(client: Client, list_id: str) -> WordList:
    key = LIST.at(list=parse_node_key("WordList", list_id))
    found = await client.services.table.get(key, consistent=True)
    assert found is not None
    return found


async def hidden_daily_words(client: Client, list_id: str) -> int:
    """How many of the list's daily words are in its owner's part of the index."""
    words: Partition[DailyWord] = daily_store.DAILY.on(None, list=parse_node_key("WordList", list_id))
    return len([word async for word in client.services.table.iterate(words) if word.owner_scope != "PUBLIC"])


async def run_daily(services: Services, outbox: Outbox) -> RunSummary:
    letterhead = Letterhead("words@example.org", "https://ringside.example", services.seal)
    return await DailyRun(Emails(services, letterhead, outbox), on=today()).run()


# ── on every engine ──


@pytest.mark.lagging
async def test_a_corrected_word_shows_its_new_texts_everywhere(client: Client) -> None:
    """In its list, the daily words of the past, sentences and the next email; other texts stay as they were."""
    list_id = await public_list(client, words=1)
    editor, ada = client.member("eve", Role.EDITOR), client.member("ada", email="ada@example.org")
    (word,) = await word_ids(client, list_id)
    await ada.ask(DAILY, id=list_id)
    sentence = (await ada.ask(WRITE_SENTENCE, input={"word": word, "text": "你好"}))["sentence"]["id"]
    await ada.ask(SUBSCRIBE, input={"list": list_id})
    changed = (await editor.ask(UPDATE_WORD, input={"word": word, "simplified": "词语", "pinyin": "cíyǔ"}))["word"]
    assert (changed["simplified"], changed["pinyin"], changed["definition"]) == ("词语", "cíyǔ", "word 0")
    await client.caught_up("all reads show the changed word")
    review = await client.ask(REVIEW, id=list_id)
    assert review == {"wordCount": 1, "review": {"nodes": [{"word": {"id": word, "simplified": "词语"}}]}}
    assert (await client.ask("{ dailyWords { word { simplified } } }"))[0]["word"]["simplified"] == "词语"
    node = "query ($id: ID!) { node(id: $id) { ... on Sentence { word { simplified } } } }"
    assert await client.ask(node, id=sentence) == {"word": {"simplified": "词语"}}
    outbox = Outbox()
    await run_daily(client.services, outbox)
    assert ["词语" in email.text for email in outbox.emails] == [True]
    cleared = (await editor.ask(UPDATE_WORD, input={"word": word, "pinyin": None}))["word"]
    assert (cleared["pinyin"], cleared["simplified"]) == (None, "词语")


@pytest.mark.lagging
async def test_a_removed_word_is_not_drawn_again_and_stays_where_it_was_used(client: Client) -> None:
    """The list counts and shows one word less; its daily word, sentences and its own id still show it."""
    list_id = await public_list(client, words=3)
    editor, ada = client.member("eve", Role.EDITOR), client.member("ada")
    first = (await ada.ask(DAILY, id=list_id))["dailyWord"]["word"]
    sentence = (await ada.ask(WRITE_SENTENCE, input={"word": first["id"], "text": "你好"}))["sentence"]["id"]
    for _ in range(2):  # removing it again changes nothing
        left = (await editor.ask(REMOVE_WORD, input={"word": first["id"]}))["list"]
        assert left["wordCount"] == 2
        assert first["id"] not in [node["id"] for node in left["words"]["nodes"]]
    await client.caught_up("all reads show the list without the word")
    assert (await client.ask(REVIEW, id=list_id)) == {"wordCount": 2, "review": {"nodes": [{"word": first}]}}
    shown = """query ($word: ID!, $sentence: ID!) {
      word: node(id: $word) { ... on Word { id simplified } }
      sentence: node(id: $sentence) { ... on Sentence { word { id simplified } } }
    }"""
    assert await client.ask(shown, word=first["id"], sentence=sentence) == {"word": first, "sentence": {"word": first}}
    drawn = [
        await daily_store.draw_daily_word(
            client.services.table, parse_node_key("WordList", list_id), today() + timedelta(n)
        )
        for n in range(1, 9)
    ]
    assert first["simplified"] not in [daily.word.simplified for daily in drawn if daily is not None]
    assert len({daily.word.ordinal for daily in drawn if daily is not None}) == 2
    assert await editor.code(UPDATE_WORD, input={"word": first["id"], "definition": "x"}) == "NOT_FOUND"
    added = await editor.ask(ADD_WORDS, input={"list": list_id, "words": some_words(1, 7)})
    assert added["list"]["wordCount"] == 3
    assert added["words"][0]["id"] not in [word["id"] for word in left["words"]["nodes"]]
    assert await breaches_in(client.services) == []


@pytest.mark.lagging
async def test_a_deleted_list_is_gone_and_what_members_did_with_it_stays(client: Client) -> None:
    """Its quizzes keep their score and its name; its subscriptions have ended; its sentences lose their word."""
    list_id = await public_list(client, "Old words")
    editor, ada = client.member("eve", Role.EDITOR), client.member("ada", email="ada@example.org")
    (word, *_) = await word_ids(client, list_id)
    await ada.ask(DAILY, id=list_id)
    await ada.ask(SUBSCRIBE, input={"list": list_id})
    await ada.ask(RECORD_QUIZ, input={"list": list_id, "correct": 3, "total": 4})
    await ada.ask(WRITE_SENTENCE, input={"word": word, "text": "你好"})
    for _ in range(2):
        assert await editor.ask(DELETE_LIST, input={"list": list_id}) == {"deletedId": list_id}
    await client.caught_up("no index shows the list")
    query = """query ($list: ID!, $word: ID!, $day: Date!) {
      wordList(id: $list) { id }
      nodes(ids: [$list, $word]) { id }
      wordLists { nodes { id } }
      dailyWords { date }
      quizLeaderboard(on: $day) { nodes { correct total sentences } }
      viewer {
        streak { current }
        subscriptions { active list { name wordCount words { nodes { id } } dailyWord { date } } }
        quizResults { nodes { correct list { name wordCount } } }
        sentences { nodes { text word { id } } }
      }
    }"""
    seen = await ada.ask(query, list=list_id, word=word, day=str(today()))
    empty = {"name": "Old words", "wordCount": 0}
    assert seen == {
        "wordList": None,
        "nodes": [None, None],
        "wordLists": {"nodes": []},
        "dailyWords": [],
        "quizLeaderboard": {"nodes": [{"correct": 3, "total": 4, "sentences": 1}]},
        "viewer": {
            "streak": {"current": 1},
            "subscriptions": [
                {"active": False, "list": {**empty, "words": {"nodes": []}, "dailyWord": None}},
            ],
            "quizResults": {"nodes": [{"correct": 3, "list": empty}]},
            "sentences": {"nodes": [{"text": "你好", "word": None}]},
        },
    }
    for mutation, given in (
        (SUBSCRIBE, {}),
        (RECORD_QUIZ, {"correct": 1, "total": 1}),
        (ADD_WORDS, {"words": some_words(1)}),
        (UPDATE_LIST, {"name": "Back"}),
    ):
        assert await editor.code(mutation, input={"list": list_id, **given}) == "NOT_FOUND"
    assert await editor.code(REMOVE_WORD, input={"word": word}) == "NOT_FOUND"
    assert [word async for word in client.services.table.scan(WORD, consistent=True)] == []
    assert await breaches_in(client.services) == []


@pytest.mark.lagging
async def test_the_daily_run_meets_a_deleted_list(client: Client) -> None:
    """It sends the words of the other lists, ends the subscriptions and fails nothing."""
    gone, kept = await public_list(client, "Gone"), await public_list(client, "Kept")
    ada, bob = client.member("ada", email="ada@example.org"), client.member("bob", email="bob@example.org")
    for member, lists in ((ada, (gone, kept)), (bob, (gone,))):
        for list_id in lists:
            await member.ask(SUBSCRIBE, input={"list": list_id})
    await client.member("eve", Role.EDITOR).ask(DELETE_LIST, input={"list": gone})
    await client.caught_up("the index has all subscribers")
    outbox = Outbox()
    summary = await run_daily(client.services, outbox)
    assert summary.complete
    assert [(email.recipient, "from Kept" in email.text) for email in outbox.emails] == [("ada@example.org", True)]
    assert "Gone" not in outbox.emails[0].text
    await client.caught_up("the index lacks the ended subscriptions")
    assert await breaches_in(client.services) == []
    subscriptions = [each async for each in all_subscribers(client.services.table)]
    assert [(each.user, len(each.subscriptions)) for each in subscriptions] == [("ada", 1)]


# ── on the default engine ──


async def test_draws_beside_removals_never_show_a_removed_word(one_client: Client) -> None:
    """Each day's word was in the list when it was drawn; counts are exact, and no word comes twice in a cycle."""
    list_id = await public_list(one_client, words=12)
    editor, table = one_client.member("eve", Role.EDITOR), one_client.services.table
    key = parse_node_key("WordList", list_id)
    words = await word_ids(one_client, list_id)
    removals = [editor.ask(REMOVE_WORD, input={"word": word, "idempotencyKey": word[-8:]}) for word in words[:6] * 2]
    draws = [daily_store.draw_daily_word(table, key, today() + timedelta(n)) for n in range(10)]
    answers = await gather(*removals, *draws)
    assert all("code" not in answer for answer in answers[:12])
    assert (await one_client.ask(REVIEW, id=list_id))["wordCount"] == 6
    late = [await daily_store.draw_daily_word(table, key, today() + timedelta(n)) for n in range(20, 40)]
    assert {daily.word.ordinal for daily in late if daily is not None} == set(range(6, 12))
    assert await breaches_in(one_client.services) == []


async def test_a_list_without_words_left_has_no_daily_word(one_client: Client) -> None:
    """Neither has one whose only word was removed, until it gets another."""
    ada = one_client.member("ada")
    list_id = await private_list(ada, words=1)
    (word,) = await word_ids(ada, list_id)
    assert (await ada.ask(REMOVE_WORD, input={"word": word}))["list"]["wordCount"] == 0
    assert await ada.ask(DAILY, id=list_id) == {"dailyWord": None}
    await ada.ask(ADD_WORDS, input={"list": list_id, "words": some_words(1, 5)})
    assert (await ada.ask(DAILY, id=list_id))["dailyWord"]["word"]["simplified"] == "词5"


async def test_room_of_removed_words_is_free_again(one_client: Client) -> None:
    """A private list of 500 words takes another one after a removal."""
    ada = one_client.member("ada")
    list_id = await private_list(ada, words=500)
    assert await ada.code(ADD_WORDS, input={"list": list_id, "words": some_words(1, 900)}) == "CONFLICT"
    await ada.ask(REMOVE_WORD, input={"word": (await word_ids(ada, list_id))[0]})
    added = await ada.ask(ADD_WORDS, input={"list": list_id, "words": some_words(1, 900)})
    assert added["list"]["wordCount"] == 500


async def test_concurrent_corrections_lose_nothing(one_client: Client) -> None:
    """Of two at once, each changes its own text."""
    list_id = await public_list(one_client, words=1)
    editor = one_client.member("eve", Role.EDITOR)
    (word,) = await word_ids(one_client, list_id)
    texts = ({"simplified": "好"}, {"traditional": "好"}, {"pinyin": "hǎo"}, {"definition": "good"})
    await gather(*(editor.ask(UPDATE_WORD, input={"word": word, **text}) for text in texts))
    changed = (await editor.ask(UPDATE_WORD, input={"word": word}))["word"]
    assert [changed[name] for name in ("simplified", "traditional", "pinyin", "definition")] == [
        "好",
        "好",
        "hǎo",
        "good",
    ]
    refused = await editor.ask(UPDATE_WORD, input={"word": word, "definition": " "})
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "definition"])


async def test_a_list_changes_its_name_and_level(one_client: Client) -> None:
    """Lists are in the order of their new names; null clears the level; bad values change nothing."""
    ada = one_client.member("ada")
    first, second = await private_list(ada, "Alpha"), await private_list(ada, "Bravo")
    changed = (await ada.ask(UPDATE_LIST, input={"list": first, "name": "Zulu", "level": 7}))["list"]
    assert (changed["name"], changed["level"], changed["wordCount"]) == ("Zulu", 7, 3)
    names = "{ wordLists { nodes { name level } } }"
    assert [node["name"] for node in (await ada.ask(names))["nodes"]] == ["Bravo", "Zulu"]
    for bad in ({"name": ""}, {"level": 101}, {"name": "a\x07"}):
        assert await ada.code(UPDATE_LIST, input={"list": second, **bad}) == "INVALID_INPUT"
    assert (await ada.ask(UPDATE_LIST, input={"list": first, "level": None}))["list"]["level"] is None
    await gather(*(ada.ask(UPDATE_LIST, input={"list": second, **one}) for one in ({"name": "Echo"}, {"level": 3})))
    assert {"name": "Echo", "level": 3} in (await ada.ask(names))["nodes"]
    assert await breaches_in(one_client.services) == []


async def test_an_editor_publishes_a_private_list(one_client: Client) -> None:
    """Everyone sees it, with its past daily words; it no longer counts as one of ten. A public one stays public."""
    eve, bob = one_client.member("eve", Role.EDITOR), one_client.member("bob")
    list_id = await private_list(eve)
    for number in range(9):
        await private_list(eve, f"More {number}", words=0)
    assert await eve.code(CREATE_LIST, input={"name": "Too many"}) == "CONFLICT"
    await eve.ask(DAILY, id=list_id)
    published = (await eve.ask(UPDATE_LIST, input={"list": list_id, "public": True}))["list"]
    assert (published["public"], published["owner"]) == (True, None)
    assert len(await bob.ask("query ($on: Date) { dailyWords(on: $on) { word { id } } }", on=str(today()))) == 1
    assert "code" not in await eve.ask(CREATE_LIST, input={"name": "Room again"})
    refused = await eve.ask(UPDATE_LIST, input={"list": list_id, "public": False})
    assert (refused["code"], refused["path"]) == ("CONFLICT", ["input", "public"])
    own = await private_list(bob)
    assert await bob.code(UPDATE_LIST, input={"list": own, "public": True}) == "NOT_ALLOWED"
    assert await breaches_in(one_client.services) == []


@pytest.mark.parametrize("rival", ["removeWord", "addWords", "dailyWord"])
async def test_a_list_that_changes_while_it_is_deleted_is_empty(one_client: Client, rival: str) -> None:
    """And its subscribers get the words of their other lists."""
    words = 0 if rival == "addWords" else 3
    gone, kept = await public_list(one_client, "Gone", words), await public_list(one_client, "Kept")
    editor, ada = one_client.member("eve", Role.EDITOR), one_client.member("ada", email="ada@example.org")
    for list_id in (gone, kept):
        await ada.ask(SUBSCRIBE, input={"list": list_id})
    ids = await word_ids(one_client, gone)

    async def change() -> None:
        if rival == "removeWord":
            await editor.ask(REMOVE_WORD, input={"word": ids[0]})
        elif rival == "addWords":
            await editor.ask(ADD_WORDS, input={"list": gone, "words": some_words(3)})
        else:
            await ada.ask(DAILY, id=gone)

    with overtaken(one_client.services.table, 0, change):
        assert await editor.ask(DELETE_LIST, input={"list": gone}) == {"deletedId": gone}
    left = await stored_list(one_client, gone)
    assert (left.next_ordinal, left.removed, left.order, left.word_count) == (0, 0, None, 0)
    outbox = Outbox()
    assert (await run_daily(one_client.services, outbox)).complete
    assert ["from Kept" in email.text for email in outbox.emails] == [True]


async def test_a_deleted_list_has_no_words_whatever_its_record_counts(one_client: Client) -> None:
    """Records of lists that lost a word while they were deleted count less than none."""
    gone, kept = await public_list(one_client, "Gone"), await public_list(one_client, "Kept")
    editor, ada = one_client.member("eve", Role.EDITOR), one_client.member("ada", email="ada@example.org")
    for list_id in (gone, kept):
        await ada.ask(SUBSCRIBE, input={"list": list_id})
    await editor.ask(DELETE_LIST, input={"list": gone})
    key = LIST.at(list=parse_node_key("WordList", gone))
    await one_client.services.table.write(LIST.update(key, values={"removed": 1}))
    assert (await stored_list(one_client, gone)).word_count == 0
    outbox = Outbox()
    assert (await run_daily(one_client.services, outbox)).complete
    assert ["from Kept" in email.text for email in outbox.emails] == [True]


async def test_a_publication_that_a_draw_overtakes_shows_every_daily_word(one_client: Client) -> None:
    """Whichever of its writes the draw comes before, of a list with daily words of past days."""
    eve, table = one_client.member("eve", Role.EDITOR), one_client.services.table
    for write in range(4):
        list_id = await private_list(eve, f"List {write}")
        key = parse_node_key("WordList", list_id)
        for days in (2, 1):
            await daily_store.draw_daily_word(table, key, today() - timedelta(days))
        draw = partial(daily_store.draw_daily_word, table, key, today())
        with overtaken(table, write, draw) as writes:
            published = (await eve.ask(UPDATE_LIST, input={"list": list_id, "public": True}))["list"]
        assert published["public"]
        assert await hidden_daily_words(one_client, list_id) == 0
    assert writes == [3]  # the last list's were all made before a draw would have come
    assert await breaches_in(one_client.services) == []


async def test_a_publication_that_is_killed_can_be_repeated(one_client: Client) -> None:
    """At each of its writes, also with a draw before that write; no daily word of a public list is hidden then."""
    eve, table = one_client.member("eve", Role.EDITOR), one_client.services.table
    for drawn_before, write in product(range(4), range(5)):
        list_id = await private_list(eve, f"List {drawn_before} {write}", words=3)
        key = parse_node_key("WordList", list_id)
        await daily_store.draw_daily_word(table, key, today() - timedelta(days=1))
        draw = partial(daily_store.draw_daily_word, table, key, today())
        publish = partial(eve.ask, UPDATE_LIST, input={"list": list_id, "public": True})
        with suppress(Killed), killed_at(table, write), overtaken(table, drawn_before, draw):
            await publish()
        if (await stored_list(one_client, list_id)).public:
            assert await hidden_daily_words(one_client, list_id) == 0
        assert (await publish())["list"]["public"]
        assert await hidden_daily_words(one_client, list_id) == 0
        await eve.ask(DELETE_LIST, input={"list": list_id})
    assert await breaches_in(one_client.services) == []


async def test_a_list_whose_publication_was_killed_has_one_daily_word(one_client: Client) -> None:
    """Its owner sees it once, although the word is among the public ones already and the list is not; others do not."""
    eve, table = one_client.member("eve", Role.EDITOR), one_client.services.table
    list_id = await private_list(eve)
    await daily_store.draw_daily_word(table, parse_node_key("WordList", list_id), today())
    with suppress(Killed), killed_at(table, 0):
        await eve.ask(UPDATE_LIST, input={"list": list_id, "public": True})
    assert await hidden_daily_words(one_client, list_id) == 0
    assert not (await stored_list(one_client, list_id)).public
    assert await eve.ask("{ dailyWords { list { id } } }") == [{"list": {"id": list_id}}]
    assert await one_client.ask("{ dailyWords { list { id } } }") == []


async def test_a_deleted_private_list_makes_room(one_client: Client) -> None:
    """Of ten lists nine are left, however often and however concurrently the deletion is sent."""
    ada = one_client.member("ada")
    lists = [await private_list(ada, f"List {number}", words=2) for number in range(10)]
    await gather(*(ada.ask(DELETE_LIST, input={"list": lists[0]}) for _ in range(5)))
    assert "code" not in await ada.ask(CREATE_LIST, input={"name": "Room"})
    assert await ada.code(CREATE_LIST, input={"name": "No room"}) == "CONFLICT"
    assert await one_client.member("bob").code(DELETE_LIST, input={"list": lists[1]}) == "NOT_FOUND"
    assert await breaches_in(one_client.services) == []


async def test_the_words_of_a_large_deleted_list_are_deleted_by_the_daily_run(
    one_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request deletes as many as it has time for; the list itself is gone at once."""
    monkeypatch.setattr(list_resolvers, "_CLEARED_AT_ONCE", 40)
    list_id = await public_list(one_client, words=100)
    editor, table = one_client.member("eve", Role.EDITOR), one_client.services.table
    await editor.ask(REMOVE_WORD, input={"word": (await word_ids(one_client, list_id))[0]})
    await editor.ask(DELETE_LIST, input={"list": list_id})
    assert len([word async for word in table.scan(WORD)]) > 0
    assert await one_client.ask("{ wordLists { nodes { id } } }") == {"nodes": []}
    assert await breaches_in(one_client.services) == []
    await run_daily(one_client.services, Outbox())
    left = [item["sk"]["S"] async for item in table.scan_items(consistent=True) if item["pk"]["S"].startswith("LIST#")]
    assert left == ["LIST"]
    assert [each async for each in deleted_lists(table)] == []


async def test_a_deleted_list_that_is_gone_meanwhile_is_passed_over(one_client: Client) -> None:
    """An erased member's list is deleted with its record, and the index of deleted lists shows it for a moment."""
    list_id = await public_list(one_client, words=3)
    await one_client.member("eve", Role.EDITOR).ask(DELETE_LIST, input={"list": list_id})
    table = one_client.services.table
    key = parse_node_key("WordList", list_id)
    listed = await read_list(table, key, consistent=True)
    assert listed is not None
    await table.write(LIST.delete(LIST.item_key(listed)))
    assert await daily_store.clear_deleted_list(table, listed, 10)
    assert await read_list(table, key, consistent=True) is None


async def test_a_deleted_sentence_is_counted_no_more(one_client: Client) -> None:
    """The day's leaderboard and its author's page lack it; the day stays an active one."""
    list_id = await public_list(one_client)
    ada, bob = one_client.member("ada"), one_client.member("bob")
    await ada.ask(RECORD_QUIZ, input={"list": list_id, "correct": 1, "total": 1})
    yesterday = str(today() - timedelta(days=1))
    first, second = [
        (await ada.ask(WRITE_SENTENCE, input={"text": text, "on": on}))["sentence"]["id"]
        for text, on in (("一", str(today())), ("二", yesterday))
    ]
    query = """query ($on: Date!) {
      quizLeaderboard(on: $on) { nodes { sentences } } viewer { streak { current } sentences { nodes { id } } }
    }"""
    assert (await ada.ask(query, on=str(today())))["quizLeaderboard"]["nodes"] == [{"sentences": 1}]
    assert await bob.code(DELETE_SENTENCE, input={"sentence": first}) == "NOT_ALLOWED"
    given: dict[str, Any] = {"sentence": first, "idempotencyKey": "gone"}
    assert [await ada.ask(DELETE_SENTENCE, input=given) for _ in range(2)] == [{"deletedId": first}] * 2
    assert await ada.code(DELETE_SENTENCE, input={"sentence": first}) == "NOT_FOUND"
    moderator = one_client.member("mo", Role.MODERATOR)
    assert await moderator.ask(DELETE_SENTENCE, input={"sentence": second}) == {"deletedId": second}
    assert await ada.ask(query, on=str(today())) == {
        "quizLeaderboard": {"nodes": [{"sentences": 0}]},
        "viewer": {"streak": {"current": 2}, "sentences": {"nodes": []}},
    }
    assert await breaches_in(one_client.services) == []


async def test_importing_again_brings_no_removed_word_back(one_client: Client, tmp_path: Path) -> None:
    """A list that was deleted is made anew by an import of its name."""
    file = tmp_path / "Greetings.csv"
    file.write_text("simplified,definition\n你好,hello\n再见,goodbye\n", encoding="utf-8")
    services, editor = one_client.services, one_client.member("eve", Role.EDITOR)

    async def imported() -> tuple[int, int]:
        summary = await import_words(services, file, "Greetings")
        return summary.added, summary.existing

    assert await imported() == (2, 0)
    (found,) = (await one_client.ask("{ wordLists { nodes { id } } }"))["nodes"]
    await editor.ask(REMOVE_WORD, input={"word": (await word_ids(one_client, found["id"]))[0]})
    assert await imported() == (0, 2)
    await editor.ask(DELETE_LIST, input={"list": found["id"]})
    assert await imported() == (2, 0)
    assert len((await one_client.ask("{ wordLists { nodes { id } } }"))["nodes"]) == 1
