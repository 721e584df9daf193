"""Word lists, daily words, subscriptions, quizzes and sentences, over HTTP."""

from asyncio import gather
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Any

import pytest

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import Table
from datastore.vocabulary.daily import DAILY, draw_daily_word
from datastore.vocabulary.learning import SENTENCE
from datastore.vocabulary.lists import delete_list, read_list
from datastore.vocabulary.subscriptions import (
    SUBSCRIBER_COUNT,
    SUBSCRIPTION,
    CharacterSet,
    SubscriberCount,
    Subscription,
    delete_ended,
    read_subscriptions,
    subscribe,
    unsubscribe,
)
from datastore.vocabulary.words import all_words
from resolvers.requests.context import Role
from resolvers.values.node_ids import node_id, parse_node_key
from tests.audits import breaches_in
from tests.client import Client, pages, serving
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.intercepted import Send, beforehand, intercepted, is_of_request
from tests.killed import Killed, killed_at
from tests.overtaken import overtaken
from tests.queries import (
    ADD_WORDS,
    CREATE_LIST,
    DELETE_LIST,
    RECORD_QUIZ,
    SUBSCRIBE,
    UNSUBSCRIBE,
    UPDATE_LIST,
    WRITE_SENTENCE,
)
from tests.vocabulary import START_QUIZ, known_list, private_list, public_list, some_words, today, word_ids

ZONE = """
mutation ($zone: String!) {
  updateProfile(input: { timeZone: $zone }) { ... on ProfileUpdated { user { id } } ... on Refused { code } }
}
"""


# ── on every engine ──


@pytest.mark.quick
async def test_lists_and_their_words(client: Client) -> None:
    """Editors create public lists, members private ones; words are listed in their order, page by page."""
    list_id = await public_list(client)
    ada = client.member("ada")
    assert await ada.code(CREATE_LIST, input={"name": "For all", "public": True}) == "NOT_ALLOWED"
    assert await client.code(CREATE_LIST, input={"name": "Nobody's"}) == "NOT_SIGNED_IN"
    assert await ada.code(ADD_WORDS, input={"list": list_id, "words": some_words(1)}) == "NOT_ALLOWED"
    query = """query ($id: ID!, $first: Int, $after: String) {
      wordList(id: $id) {
        words(first: $first, after: $after) { nodes { simplified } pageInfo { hasNextPage endCursor } }
      }
    }"""
    words = await pages(client, query, id=list_id)
    assert [word["simplified"] for word in words] == [f"词{number}" for number in range(5)]


async def test_a_list_made_by_another_process_is_found_while_reads_are_stale(
    default_engine: RunningEngine, one_table: Table
) -> None:
    """So are its words: a record that an eventually consistent read misses is read again."""
    settings = settings_for(default_engine, one_table.name)
    async with serving(settings) as first, serving(settings) as second:
        table = second.services.table
        read = table.client.batch_get_item

        async def stale(**parameters: Any) -> Any:
            answer = await read(**parameters)
            if not parameters["RequestItems"][table.name]["ConsistentRead"]:
                answer["Responses"][table.name] = []
            return answer

        table.client.batch_get_item = stale
        list_id = await public_list(first)
        words = "query ($id: ID!) { wordList(id: $id) { words { nodes { id } } } }"
        word = (await first.ask(words, id=list_id))["words"]["nodes"][0]["id"]
        ada = second.member("ada")
        assert (await ada.ask(SUBSCRIBE, input={"list": list_id}))["subscription"]["active"]
        assert await ada.ask("query ($id: ID!) { node(id: $id) { id } }", id=word) == {"id": word}
        assert (await ada.ask(WRITE_SENTENCE, input={"word": word, "text": "你好"}))["sentence"]["word"]["id"] == word


@pytest.mark.lagging
async def test_only_its_owner_sees_a_private_list(client: Client) -> None:
    """Others find neither the list nor its words or daily words, by any query; not even an admin does."""
    ada = client.member("ada")
    list_id = await private_list(ada)
    word = (await ada.ask("query ($id: ID!) { wordList(id: $id) { words { nodes { id } } } }", id=list_id))["words"]
    word_id = word["nodes"][0]["id"]
    quiz = (await ada.ask(RECORD_QUIZ, input={"list": list_id, "correct": 1, "total": 2}))["result"]["id"]
    await ada.ask(SUBSCRIBE, input={"list": list_id})
    await ada.ask(WRITE_SENTENCE, input={"word": word_id, "text": "你好"})
    await client.caught_up("the daily words have the words of all lists")
    assert len(await ada.ask("{ dailyWords { word { id } } }")) == 1
    me = (await ada.ask("{ viewer { id } }"))["id"]
    query = """query ($list: ID!, $word: ID!, $quiz: ID!, $user: ID!, $day: Date!) {
      wordList(id: $list) { id }
      nodes(ids: [$list, $word, $quiz]) { id }
      wordLists { nodes { id } }
      dailyWords { word { id } }
      user(id: $user) {
        subscriptions { since }
        quizResults { nodes { id } }
        recent: quizResults(from: $day) { nodes { id } }
        sentences { nodes { word { id } } }
      }
      quizLeaderboard(on: $day, list: $list) { nodes { rank } }
    }"""
    hidden: dict[str, Any] = {
        "wordList": None,
        "nodes": [None, None, None],
        "wordLists": {"nodes": []},
        "dailyWords": [],
        "user": {
            "subscriptions": [],
            "quizResults": {"nodes": []},
            "recent": {"nodes": []},
            "sentences": {"nodes": [{"word": None}]},
        },
        "quizLeaderboard": {"nodes": []},
    }
    variables = {"list": list_id, "word": word_id, "quiz": quiz, "user": me, "day": str(today())}
    for other in (client, client.member("bob"), client.member("root", Role.ADMIN)):
        assert await other.ask(query, **variables) == hidden
        if other is not client:
            for mutation, given in (
                (ADD_WORDS, {"words": some_words(1)}),
                (SUBSCRIBE, {}),
                (UNSUBSCRIBE, {}),
                (RECORD_QUIZ, {"correct": 1, "total": 1}),
            ):
                assert await other.code(mutation, input={"list": list_id, **given}) == "NOT_FOUND"
            assert await other.code(WRITE_SENTENCE, input={"word": word_id, "text": "x"}) == "NOT_FOUND"
    own = await ada.ask(query, **variables)
    assert own["wordList"]["id"] == list_id
    assert len(own["user"]["subscriptions"]) == len(own["user"]["quizResults"]["nodes"]) == 1
    assert own["user"]["sentences"]["nodes"][0]["word"]["id"] == word_id
    assert own["quizLeaderboard"]["nodes"] == [{"rank": 1}]


async def test_a_subscription_counts_its_member_once(client: Client) -> None:
    """The count is exact, even if members subscribe repeatedly, concurrently or with both character sets."""
    list_id = await public_list(client)
    count = "query ($id: ID!) { wordList(id: $id) { subscriberCount } }"
    members = [client.member(f"m{number}") for number in range(4)]
    answers = await gather(*(member.ask(SUBSCRIBE, input={"list": list_id}) for member in members for _ in range(3)))
    assert all(answer["subscription"]["active"] for answer in answers)
    await members[0].ask(SUBSCRIBE, input={"list": list_id, "characterSet": "TRADITIONAL"})
    assert await client.ask(count, id=list_id) == {"subscriberCount": 4}
    await gather(*(members[0].ask(UNSUBSCRIBE, input={"list": list_id}) for _ in range(3)))
    assert await client.ask(count, id=list_id) == {"subscriberCount": 4}
    ended = await members[0].ask(UNSUBSCRIBE, input={"list": list_id, "characterSet": "TRADITIONAL"})
    assert ended["subscription"]["active"] is False
    assert await client.ask(count, id=list_id) == {"subscriberCount": 3}
    own = await members[0].ask("{ viewer { subscriptions { active characterSet list { id } } } }")
    assert [(each["characterSet"], each["active"]) for each in own["subscriptions"]] == [
        ("SIMPLIFIED", False),
        ("TRADITIONAL", False),
    ]
    assert await client.member("zoe").code(UNSUBSCRIBE, input={"list": list_id}) == "NOT_FOUND"


async def test_of_subscriptions_only_active_ones_are_limited(one_client: Client) -> None:
    """The oldest ended one makes room; without one, 200 lists are all. Counts and the audit stay right."""
    table, list_id = one_client.services.table, await known_list(one_client)
    ada, first = one_client.member("ada"), await known_list(one_client, "First")
    for change in (SUBSCRIBE, UNSUBSCRIBE):  # which the journal records
        await ada.ask(change, input={"list": first})
    since, names = datetime(2026, 1, 1, tzinfo=UTC), (f"list{number}" for number in range(1, 200))
    old = [
        Subscription("ada", name, CharacterSet.SIMPLIFIED, active=False, since=since + timedelta(number % 7))
        for number, name in enumerate([parse_node_key("WordList", first), *names])
    ]
    await table.write_many(map(SUBSCRIPTION.put, old))
    assert (await ada.ask(SUBSCRIBE, input={"list": list_id}))["subscription"]["active"] is True
    stored = {each.list: each for each in await read_subscriptions(table, "ada")}
    assert len(stored) == 200
    assert {each.list for each in old} - stored.keys() == {parse_node_key("WordList", first)}
    assert await breaches_in(one_client.services) == []
    await table.write_many(SUBSCRIPTION.put(replace(each, active=True)) for each in stored.values())
    other = await known_list(one_client, "Others")
    assert await ada.code(SUBSCRIBE, input={"list": other}) == "CONFLICT"
    assert "subscription" in await ada.ask(SUBSCRIBE, input={"list": list_id, "characterSet": "TRADITIONAL"})
    assert len(await read_subscriptions(table, "ada")) == 201


async def test_subscriptions_to_deleted_lists_leave_room_and_end(one_client: Client) -> None:
    """Of 201 active ones, two to deleted lists: their member can end one, and subscribe to yet another list."""
    table, ada, ed = one_client.services.table, one_client.member("ada"), one_client.member("ed", Role.EDITOR)
    gone, also_gone, other = [await known_list(one_client, name) for name in ("Gone", "Also gone", "Other")]
    for list_id in (gone, also_gone):
        await ada.ask(SUBSCRIBE, input={"list": list_id})
        await ed.ask(DELETE_LIST, input={"list": list_id})
    since = datetime(2026, 1, 1, tzinfo=UTC)
    old = [Subscription("ada", f"list{n}", CharacterSet.SIMPLIFIED, active=True, since=since) for n in range(199)]
    await table.write_many(map(SUBSCRIPTION.put, old))
    await table.write_many(SUBSCRIBER_COUNT.put(SubscriberCount(each.list, each.shard, 1)) for each in old)
    for _ in range(2):
        assert (await ada.ask(UNSUBSCRIBE, input={"list": gone}))["subscription"]["active"] is False
    assert (await ada.ask(SUBSCRIBE, input={"list": other}))["subscription"]["active"] is True
    assert await ada.code(SUBSCRIBE, input={"list": await known_list(one_client, "Too many")}) == "CONFLICT"
    assert await breaches_in(one_client.services) == []


async def test_an_ended_subscription_that_is_started_again_is_not_deleted(one_table: Table) -> None:
    """It had ended when the member's oldest ones were read to make room; now it counts."""
    began = datetime(2026, 5, 5, tzinfo=UTC)
    ended = Subscription("ada", "hsk", CharacterSet.SIMPLIFIED, active=False, since=began)
    started = replace(ended, active=True, since=began + timedelta(days=1))
    await one_table.write(SUBSCRIPTION.put(ended))
    await subscribe(one_table, started, UnitOfWork.unkeyed(began))
    await delete_ended(one_table, [ended])
    assert await read_subscriptions(one_table, "ada") == [started]
    await unsubscribe(one_table, "ada", "hsk", CharacterSet.SIMPLIFIED, UnitOfWork.unkeyed(began))
    await delete_ended(one_table, [ended])
    assert await read_subscriptions(one_table, "ada") == []


async def test_a_list_that_is_deleted_while_its_word_is_drawn_gets_none(one_client: Client) -> None:
    """What was left of the list may be deleted already, and nobody would delete this word."""
    list_key, table = parse_node_key("WordList", await public_list(one_client)), one_client.services.table
    with beforehand(table, lambda: delete_list(table, list_key, "", one_client.services.unit())) as deleted:
        assert await draw_daily_word(table, list_key, today()) is None
    assert deleted
    assert [daily_word async for daily_word in table.scan(DAILY, consistent=True)] == []


@pytest.mark.lagging
async def test_the_daily_word_is_the_same_for_everyone(client: Client) -> None:
    """Ten concurrent requests of a visitor and members get one word, as do `dailyWords` and the review."""
    list_id = await public_list(client)
    await client.caught_up("the list has its words")
    query = "query ($id: ID!) { wordList(id: $id) { dailyWord { date list { id } word { id } } } }"
    viewers = [client, *(client.member(f"m{number}") for number in range(4))]
    answers = await gather(*(viewer.ask(query, id=list_id) for viewer in viewers for _ in range(2)))
    assert all(answer == answers[0] for answer in answers)
    word = answers[0]["dailyWord"]
    assert word["date"] == str(today())
    await client.caught_up("the daily words have every list's word")
    assert await client.ask("{ dailyWords { date list { id } word { id } } }") == [word]
    review = "query ($id: ID!) { wordList(id: $id) { review { nodes { date list { id } word { id } } } } }"
    assert (await client.ask(review, id=list_id))["review"]["nodes"] == [word]


@pytest.mark.quick
async def test_a_quiz_counts_once(client: Client) -> None:
    """One idempotency key gives one result, even if it is sent repeatedly and concurrently."""
    list_id = await public_list(client)
    ada = client.member("ada")
    given = {"list": list_id, "correct": 3, "total": 4, "idempotencyKey": "one"}
    answers = await gather(*(ada.ask(RECORD_QUIZ, input=given) for _ in range(8)))
    assert all(answer == answers[0] for answer in answers)
    assert answers[0]["streak"] == {"current": 1, "longest": 1, "lastActiveOn": str(today())}
    board = "query ($on: Date!) { quizLeaderboard(on: $on) { nodes { rank correct total quizzes sentences } } }"
    assert (await client.ask(board, on=str(today())))["nodes"] == [
        {"rank": 1, "correct": 3, "total": 4, "quizzes": 1, "sentences": 0}
    ]
    assert await ada.code(RECORD_QUIZ, input={**given, "correct": 4}) == "IDEMPOTENCY_MISMATCH"


async def test_an_amended_sentence_keeps_its_id_and_day(client: Client) -> None:
    """And its creation time, whatever `on` says; another member's sentence cannot be changed."""
    ada, yesterday = client.member("ada"), today() - timedelta(days=1)
    first = (await ada.ask(WRITE_SENTENCE, input={"text": "一", "on": str(yesterday)}))["sentence"]
    again = (await ada.ask(WRITE_SENTENCE, input={"sentence": first["id"], "text": "二", "on": str(today())}))[
        "sentence"
    ]
    assert again == {**first, "text": "二"}
    query = "query ($id: ID!) { node(id: $id) { ... on Sentence { text date } } }"
    assert await client.ask(query, id=first["id"]) == {"text": "二", "date": str(yesterday)}
    bob = client.member("bob")
    assert await bob.code(WRITE_SENTENCE, input={"sentence": first["id"], "text": "三"}) == "NOT_ALLOWED"
    sentences = (await ada.ask("{ viewer { sentences { nodes { text } } } }"))["sentences"]["nodes"]
    assert sentences == [{"text": "二"}]


# ── on the default engine ──


async def test_an_amended_text_leaves_the_sentence_the_word_it_has(one_client: Client) -> None:
    """Also a word that it was given, or lost, after it was read."""
    ada, list_id = one_client.member("ada"), await public_list(one_client, words=2)
    before, after = await word_ids(one_client, list_id)
    for given, left in ((after, 1), (None, None)):
        sentence = (await ada.ask(WRITE_SENTENCE, input={"word": before, "text": "一"}))["sentence"]["id"]
        other = partial(ada.ask, WRITE_SENTENCE, input={"sentence": sentence, "word": given, "text": "二"})
        with overtaken(one_client.services.table, 0, other):
            await ada.ask(WRITE_SENTENCE, input={"sentence": sentence, "text": "三"})
        stored = [each async for each in one_client.services.table.scan(SENTENCE, consistent=True)]
        ordinals = [each.ordinal for each in stored if node_id("Sentence", each.node_key) == sentence]
        assert ordinals == [left]
    assert [each.text for each in stored] == ["三", "三"]


async def test_every_mutation_is_carried_out_once(one_client: Client) -> None:
    """Of five concurrent requests with one key one is carried out, and all get its answer; another input is refused."""
    ada = one_client.member("ada")
    list_id = await private_list(ada)
    asked: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
        (CREATE_LIST, {"name": "Once"}, {"name": "Twice"}),
        (ADD_WORDS, {"list": list_id, "words": some_words(2)}, {"list": list_id, "words": some_words(3)}),
        (SUBSCRIBE, {"list": list_id}, {"list": list_id, "characterSet": "TRADITIONAL"}),
        (WRITE_SENTENCE, {"text": "好"}, {"text": "不好"}),
        (UNSUBSCRIBE, {"list": list_id}, {"list": list_id, "characterSet": "TRADITIONAL"}),
    )
    for number, (mutation, given, other) in enumerate(asked):
        key = {"idempotencyKey": f"key {number}"}
        answers = await gather(*(ada.ask(mutation, input={**given, **key}) for _ in range(5)))
        assert all(answer == answers[0] for answer in answers)
        assert "code" not in answers[0]
        assert await ada.code(mutation, input={**other, **key}) == "IDEMPOTENCY_MISMATCH"
    # A key's first answer is repeated, even after later changes.
    again = await ada.ask(SUBSCRIBE, input={"list": list_id, "idempotencyKey": "key 2"})
    assert again["subscription"]["active"] is True
    found = await ada.ask("""{
      wordLists { nodes { name wordCount subscriberCount } }
      viewer { sentences { nodes { text } } subscriptions { active } }
    }""")
    assert [(node["name"], node["wordCount"], node["subscriberCount"]) for node in found["wordLists"]["nodes"]] == [
        ("Mine", 5, 0),
        ("Once", 0, 0),
    ]
    assert found["viewer"] == {"sentences": {"nodes": [{"text": "好"}]}, "subscriptions": [{"active": False}]}


async def test_a_member_has_ten_lists(one_client: Client) -> None:
    """Of fourteen concurrent requests ten succeed; public lists do not count."""
    ada = one_client.member("ada", Role.EDITOR)
    await ada.ask(CREATE_LIST, input={"name": "For all", "public": True})
    answers = await gather(*(ada.ask(CREATE_LIST, input={"name": f"Mine {number}"}) for number in range(14)))
    assert sorted(answer.get("code", "made") for answer in answers) == ["CONFLICT"] * 4 + ["made"] * 10
    mine = await ada.ask("{ wordLists(first: 50) { nodes { name public owner { name } } } }")
    assert len(mine["nodes"]) == 11
    assert [node["owner"] for node in mine["nodes"] if node["public"]] == [None]


async def test_a_public_list_s_name_is_its_own(client: Client) -> None:
    """In any case and width: another is refused, made at the same moment or renamed; a private one may have it."""
    ed, ada = client.member("ed", Role.EDITOR), client.member("ada")
    both = [{"name": name, "public": True} for name in ("Holds", "ＨＯＬＤＳ")]
    made = await gather(*(ed.ask(CREATE_LIST, input=each) for each in both))
    assert sorted(answer.get("code", "made") for answer in made) == ["CONFLICT", "made"]
    [first] = [answer["list"]["id"] for answer in made if "list" in answer]
    second = (await ed.ask(CREATE_LIST, input={"name": "hOLDS #1", "public": True}))["list"]["id"]
    refused = await ed.ask(UPDATE_LIST, input={"list": second, "name": "holds"})
    assert (refused["code"], refused["path"]) == ("CONFLICT", ["input", "name"])
    assert "list" in await ada.ask(CREATE_LIST, input={"name": "Holds"})
    await ed.ask(UPDATE_LIST, input={"list": first, "name": "Throws"})  # which frees the other name
    assert "list" in await ed.ask(UPDATE_LIST, input={"list": second, "name": "holds"})
    assert await ed.code(CREATE_LIST, input={"name": "throws", "public": True}) == "CONFLICT"
    await ed.ask(DELETE_LIST, input={"list": first})
    assert (await ed.ask(CREATE_LIST, input={"name": "THROWS", "public": True}))["list"]["public"]
    await client.caught_up("lists are complete")
    assert await breaches_in(client.services) == []


async def test_a_private_list_has_five_hundred_words(one_client: Client) -> None:
    """A call adds all of its words or none, up to 500 in the list."""
    ada = one_client.member("ada")
    list_id = await private_list(ada, words=0)
    given = {"list": list_id, "words": some_words(450), "idempotencyKey": "many"}
    first, again = await ada.ask(ADD_WORDS, input=given), await ada.ask(ADD_WORDS, input=given)
    assert first == again
    assert (first["list"]["wordCount"], len(first["words"]), first["words"][449]["simplified"]) == (450, 450, "词449")
    assert await ada.code(ADD_WORDS, input={"list": list_id, "words": some_words(51)}) == "CONFLICT"
    assert await ada.code(ADD_WORDS, input={"list": list_id, "words": some_words(501)}) == "INVALID_INPUT"
    assert await ada.code(ADD_WORDS, input={"list": list_id, "words": []}) == "INVALID_INPUT"
    answers = await gather(
        *(ada.ask(ADD_WORDS, input={"list": list_id, "words": some_words(20, 1000 * turn)}) for turn in range(1, 5))
    )
    assert sorted(answer.get("code", "added") for answer in answers) == ["CONFLICT", "CONFLICT", "added", "added"]
    query = "query ($id: ID!) { wordList(id: $id) { wordCount } }"
    assert await ada.ask(query, id=list_id) == {"wordCount": 490}


async def test_concurrent_batches_of_any_size_lose_nothing(one_client: Client) -> None:
    """Calls never overwrite each other's words, even if they need more than one transaction."""
    editor = one_client.member("eve", Role.EDITOR)
    list_id = await public_list(one_client, words=0)
    sizes = [200, 3, 120, 7, 95, 1]
    batches = [some_words(size, 1000 * turn) for turn, size in enumerate(sizes)]
    answers = await gather(*(editor.ask(ADD_WORDS, input={"list": list_id, "words": batch}) for batch in batches))
    assert [len(answer["words"]) for answer in answers] == sizes
    query = """query ($id: ID!, $after: String) {
      wordList(id: $id) { words(first: 100, after: $after) { nodes { simplified } pageInfo { hasNextPage endCursor } } }
    }"""
    found, after = [], None
    for _ in range(5):
        page = (await one_client.ask(query, id=list_id, after=after))["words"]
        found += [word["simplified"] for word in page["nodes"]]
        after = page["pageInfo"]["endCursor"]
    assert not page["pageInfo"]["hasNextPage"]
    assert sorted(found) == sorted(word["simplified"] for batch in batches for word in batch)


@pytest.mark.parametrize("write", range(4))
async def test_many_words_that_were_interrupted_are_in_nobodys_way(one_client: Client, write: int) -> None:
    """Whichever write was the last: none is seen, and another call and a repeat of this one add theirs."""
    editor = one_client.member("eve", Role.EDITOR)
    list_id = await public_list(one_client, words=0)
    given = {"list": list_id, "words": some_words(200), "idempotencyKey": "many"}
    with killed_at(one_client.services.table, write), pytest.raises(Killed):
        await editor.ask(ADD_WORDS, input=given)
    query = "query ($id: ID!) { wordList(id: $id) { wordCount words(first: 3) { nodes { simplified } } } }"
    assert await one_client.ask(query, id=list_id) == {"wordCount": 0, "words": {"nodes": []}}
    other = await editor.ask(ADD_WORDS, input={"list": list_id, "words": some_words(100, 1000)})
    assert other["list"]["wordCount"] == 100
    added = await editor.ask(ADD_WORDS, input=given)
    assert (added["list"]["wordCount"], added["words"][0]["simplified"]) == (300, "词0")


async def test_many_words_that_another_call_overtakes_are_added_after_its_own(one_client: Client) -> None:
    """A call that stalls between two of its transactions writes none of its words over those of others."""
    editor, table = one_client.member("eve", Role.EDITOR), one_client.services.table
    list_id = await public_list(one_client, words=0)
    sent = 0

    async def stall(_: str, send: Send) -> Any:
        nonlocal sent
        sent += 1
        if sent == 2:
            await editor.ask(ADD_WORDS, input={"list": list_id, "words": some_words(150, 1000)})
        return await send()

    with intercepted(table, ("transact_write_items",), stall):
        added = await editor.ask(ADD_WORDS, input={"list": list_id, "words": some_words(200)})
    assert added["list"]["wordCount"] == 350
    word_list = await read_list(table, parse_node_key("WordList", list_id), consistent=True)
    assert word_list is not None
    words = [word.term async for word in all_words(table, word_list, consistent=True)]
    assert words == [f"词{number}" for number in (*range(1000, 1150), *range(200))]


async def test_texts_are_validated(one_client: Client) -> None:
    """An invalid text is refused with its path in the input."""
    ada = one_client.member("ada")
    list_id = await private_list(ada, words=0)
    words = [{"simplified": "好", "definition": "good"}, {"simplified": " ", "definition": "blank"}]
    refused = await ada.ask(ADD_WORDS, input={"list": list_id, "words": words})
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "words", "1", "simplified"])
    for bad in ({"name": ""}, {"name": "x" * 101}, {"name": "a\x07b"}, {"name": "x", "level": 101}):
        assert await ada.code(CREATE_LIST, input=bad) == "INVALID_INPUT"
    assert await ada.code(WRITE_SENTENCE, input={"text": " "}) == "INVALID_INPUT"
    assert await ada.code(WRITE_SENTENCE, input={"text": "x" * 2001}) == "INVALID_INPUT"


async def test_public_and_own_lists_are_merged_by_name(one_client: Client) -> None:
    """Page by page, each list once."""
    for name in ("delta", "Bravo", "foxtrot #1"):
        await public_list(one_client, name, words=0)
    ada = one_client.member("ada")
    for name in ("Alpha", "charlie", "Echo"):
        await private_list(ada, name, words=0)
    query = """query ($first: Int, $after: String) {
      wordLists(first: $first, after: $after) { nodes { name } pageInfo { hasNextPage endCursor } }
    }"""
    assert [node["name"] for node in await pages(ada, query)] == [
        "Alpha", "Bravo", "charlie", "delta", "Echo", "foxtrot #1",
    ]  # fmt: skip
    assert [node["name"] for node in await pages(one_client, query)] == ["Bravo", "delta", "foxtrot #1"]


async def test_a_future_day_has_no_word(one_client: Client) -> None:
    """A day that has not begun for the viewer is refused; a past day without a word does not get one."""
    list_id = await public_list(one_client)
    daily = "query ($id: ID!, $on: Date) { wordList(id: $id) { dailyWord(on: $on) { word { id } } } }"
    future = str(today() + timedelta(days=2))
    assert await one_client.code(daily, id=list_id, on=future) == "BAD_USER_INPUT"
    assert await one_client.code("query ($on: Date) { dailyWords(on: $on) { date } }", on=future) == "BAD_USER_INPUT"
    past = str(today() - timedelta(days=1))
    assert await one_client.ask(daily, id=list_id, on=past) == {"dailyWord": None}
    assert await one_client.ask("query ($on: Date) { dailyWords(on: $on) { date } }", on=past) == []


async def test_past_daily_words_end_with_the_viewer_s_day(one_client: Client) -> None:
    """The next date's word is shown to those for whom it has begun, and to all once it has begun in UTC."""
    tomorrow = today() + timedelta(days=1)
    now = [datetime.combine(today(), time(12), UTC)]
    one_client.services.clock = lambda: now[0]
    list_id = await public_list(one_client)
    ada, east = one_client.member("ada"), one_client.member("east")
    await east.ask(ZONE, zone="Pacific/Kiritimati")
    daily = "query ($id: ID!, $on: Date) { wordList(id: $id) { dailyWord(on: $on) { date } } }"
    review = """query ($id: ID!, $from: Date, $to: Date, $after: String) {
      wordList(id: $id) { review(first: 1, from: $from, to: $to, after: $after) { edges { cursor node { date } } } }
    }"""

    async def newest(viewer: Client, **bounds: object) -> list[str]:
        found = await viewer.ask(review, id=list_id, **bounds)
        return [edge["node"]["date"] for edge in found["review"]["edges"]]

    for day in (today(), tomorrow):
        assert await east.ask(daily, id=list_id, on=str(day)) == {"dailyWord": {"date": str(day)}}
    assert await newest(east) == [str(tomorrow)]
    for viewer in (one_client, ada):
        assert await newest(viewer) == [str(today())]
        assert await newest(viewer, to=str(tomorrow)) == [str(today())]
        assert await newest(viewer, **{"from": str(tomorrow)}) == []
    cursor = (await ada.ask(review, id=list_id))["review"]["edges"][0]["cursor"]
    now[0] += timedelta(days=1)
    assert await newest(ada) == [str(tomorrow)]
    assert await newest(ada, after=cursor) == []


async def test_an_empty_list_gets_a_daily_word_with_its_first_words(one_client: Client) -> None:
    """No words, no daily word; as soon as there are some, there is one."""
    list_id = await public_list(one_client, words=0)
    assert await one_client.ask("{ dailyWords { date } }") == []
    await one_client.member("eve", Role.EDITOR).ask(ADD_WORDS, input={"list": list_id, "words": some_words(1)})
    assert await one_client.ask("{ dailyWords { word { simplified } } }") == [{"word": {"simplified": "词0"}}]


async def test_a_quiz_is_within_its_bounds(one_client: Client) -> None:
    """0 ≤ correct ≤ total ≤ 1000, total at least 1, and a day of the last month that has begun."""
    list_id = await public_list(one_client)
    ada = one_client.member("ada")
    for correct, total in ((-1, 3), (4, 3), (0, 0), (1, 1001), (0, -1)):
        assert (
            await ada.code(RECORD_QUIZ, input={"list": list_id, "correct": correct, "total": total}) == "INVALID_INPUT"
        )
    for days in (-2, 33, 20_000):
        on = str(today() - timedelta(days=days))
        assert (
            await ada.code(RECORD_QUIZ, input={"list": list_id, "correct": 1, "total": 1, "on": on}) == "INVALID_INPUT"
        )
    assert await one_client.code(RECORD_QUIZ, input={"list": list_id, "correct": 1, "total": 1}) == "NOT_SIGNED_IN"
    good = await ada.ask(RECORD_QUIZ, input={"list": list_id, "correct": 0, "total": 1000})
    assert good["result"]["total"] == 1000


async def test_the_members_zone_decides_the_day(one_client: Client) -> None:
    """Two members 25 hours apart record on different days; a later change of the time zone changes no result."""
    list_id = await public_list(one_client)
    east, west = one_client.member("east"), one_client.member("west")
    await east.ask(ZONE, zone="Pacific/Kiritimati")
    await west.ask(ZONE, zone="Pacific/Midway")
    given = {"list": list_id, "correct": 1, "total": 1}
    first, second = [(await member.ask(RECORD_QUIZ, input=given))["result"] for member in (east, west)]
    assert date.fromisoformat(first["date"]) > date.fromisoformat(second["date"])
    await east.ask(ZONE, zone="Pacific/Midway")
    stored = await one_client.ask("query ($id: ID!) { node(id: $id) { ... on QuizResult { date } } }", id=first["id"])
    assert stored["date"] == first["date"]


async def test_a_streak_is_the_days_in_a_row(one_client: Client) -> None:
    """Results may be recorded in any order; a gap ends the current streak, but not the longest one."""
    list_id = await public_list(one_client)
    ada = one_client.member("ada")
    for days in (9, 6, 8, 7, 1):
        on = str(today() - timedelta(days=days))
        streak = (await ada.ask(RECORD_QUIZ, input={"list": list_id, "correct": 1, "total": 1, "on": on}))["streak"]
    assert (streak["current"], streak["longest"]) == (1, 4)
    await ada.ask(WRITE_SENTENCE, input={"text": "今天"})
    found = await ada.ask("{ viewer { streak { current longest lastActiveOn } } }")
    assert found["streak"] == {"current": 2, "longest": 4, "lastActiveOn": str(today())}


async def test_a_freeze_bridges_a_missed_day(one_client: Client) -> None:
    """Earned by seven days in a row."""
    list_id, ada = await public_list(one_client), one_client.member("ada")
    shown = "{ viewer { streak { current longest freezes } } }"

    async def active(*days_ago: int) -> None:
        for number in days_ago:
            on = str(today() - timedelta(days=number))
            await ada.ask(RECORD_QUIZ, input={"list": list_id, "correct": 1, "total": 1, "on": on})

    await active(9, 8, 7, 6, 5, 4, 3)
    assert await ada.ask(shown) == {"streak": {"current": 0, "longest": 7, "freezes": 0}}
    await active(1, 0)
    assert await ada.ask(shown) == {"streak": {"current": 9, "longest": 9, "freezes": 0}}


async def test_the_leaderboard_shares_ranks_across_pages(one_client: Client) -> None:
    """More correct answers, then accuracy, then fewer quizzes; equal members share a rank, even on different pages."""
    list_id, other = await public_list(one_client), await public_list(one_client, "Other")
    results = {
        "ada": [(8, 10)],
        "bob": [(8, 10)],
        "cleo": [(4, 5), (4, 5)],
        "dan": [(8, 9)],
        "eli": [(0, 5)],
        "fay": [(0, 50)],
        "gus": [(8, 10)],
    }
    for name, quizzes in results.items():
        for correct, total in quizzes:
            given = {"list": list_id, "correct": correct, "total": total}
            await one_client.member(name).ask(RECORD_QUIZ, input=given)
    await one_client.member("gus").ask(RECORD_QUIZ, input={"list": other, "correct": 0, "total": 1})
    await one_client.member("dan").ask(WRITE_SENTENCE, input={"text": "好"})
    query = """query ($on: Date!, $list: ID, $first: Int, $after: String) {
      quizLeaderboard(on: $on, list: $list, first: $first, after: $after) {
        nodes { rank user { name } correct total quizzes sentences } pageInfo { hasNextPage endCursor }
      }
    }"""
    rows = await pages(one_client, query, on=str(today()))
    assert [(row["rank"], row["user"]["name"]) for row in rows] == [
        (1, "Dan"), (2, "Ada"), (2, "Bob"), (4, "Cleo"), (5, "Gus"), (6, "Eli"), (6, "Fay"),
    ]  # fmt: skip
    assert [row["sentences"] for row in rows] == [1, 0, 0, 0, 0, 0, 0]
    rows = await pages(one_client, query, on=str(today()), list=list_id)
    assert [(row["rank"], row["user"]["name"]) for row in rows][:5] == [
        (1, "Dan"), (2, "Ada"), (2, "Bob"), (2, "Gus"), (5, "Cleo"),
    ]  # fmt: skip
    cursor = (await one_client.ask(query, on=str(today()), first=1))["pageInfo"]["endCursor"]
    assert await one_client.code(query, on=str(today()), list=list_id, after=cursor) == "INVALID_CURSOR"
    await one_client.member("ada").ask(RECORD_QUIZ, input={"list": list_id, "correct": 9, "total": 9})
    assert (await one_client.ask(query, on=str(today()), first=1))["nodes"][0]["user"]["name"] == "Ada"


async def test_a_profile_screen_is_one_query(one_client: Client) -> None:
    """Subscriptions, the week's quizzes and sentences and the streak take one read of the member's item collection."""
    list_id = await public_list(one_client)
    ada = one_client.member("ada")
    await ada.ask(SUBSCRIBE, input={"list": list_id})
    for days in range(10):
        on = str(today() - timedelta(days=days))
        await ada.ask(RECORD_QUIZ, input={"list": list_id, "correct": days, "total": 10, "on": on})
        await ada.ask(WRITE_SENTENCE, input={"text": f"day {days}", "on": on})
    query = """query ($week: Date!, $to: Date) { viewer {
      name subscriptions { active }
      quizResults(from: $week, to: $to) { nodes { correct } edges { cursor } pageInfo { hasNextPage } }
      sentences(from: $week) { nodes { text } }
      streak { current }
    } }"""
    week = str(today() - timedelta(days=6))
    client = ada.services.table.client
    calls: list[str] = []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            if not name.startswith("_") and is_of_request():
                calls.append(name)
            return getattr(client, name)

    ada.services.table.client = Counting()
    profile = await ada.ask(query, week=week)
    ada.services.table.client = client
    assert [call for call in calls if call == "query"] == ["query"]
    assert [quiz["correct"] for quiz in profile["quizResults"]["nodes"]] == list(range(7))
    assert [sentence["text"] for sentence in profile["sentences"]["nodes"]] == [f"day {days}" for days in range(7)]
    assert (profile["streak"]["current"], len(profile["subscriptions"])) == (10, 1)
    # Later pages are read by another query, from the cursor of a page of the screen.
    more = """query ($week: Date!, $after: String) { viewer {
      quizResults(from: $week, first: 3, after: $after) { nodes { correct } pageInfo { hasNextPage endCursor } } } }"""
    first = (await ada.ask(more, week=week))["quizResults"]
    second = (await ada.ask(more, week=week, after=first["pageInfo"]["endCursor"]))["quizResults"]
    third = (await ada.ask(more, week=week, after=second["pageInfo"]["endCursor"]))["quizResults"]
    assert [quiz["correct"] for page in (first, second, third) for quiz in page["nodes"]] == list(range(7))
    assert [page["pageInfo"]["hasNextPage"] for page in (first, second, third)] == [True, True, False]
    until = await ada.ask(query, week=week, to=str(today() - timedelta(days=5)))
    assert [quiz["correct"] for quiz in until["quizResults"]["nodes"]] == [5, 6]


async def test_pages_of_one_kind_skip_records_of_the_other(one_client: Client) -> None:
    """Quizzes and sentences share the days; a page of one kind is full even if records of the other lie between."""
    list_id = await public_list(one_client)
    ada = one_client.member("ada")
    for number in range(30):
        await ada.ask(WRITE_SENTENCE, input={"text": f"s{number}"})
    for number in range(5):
        await ada.ask(RECORD_QUIZ, input={"list": list_id, "correct": number, "total": 10})
    query = """query ($first: Int, $after: String) { viewer {
      sentences(first: $first, after: $after) { nodes { text } pageInfo { hasNextPage endCursor } } } }"""
    assert [sentence["text"] for sentence in await pages(ada, query)] == [
        f"s{number}" for number in reversed(range(30))
    ]
    query = query.replace("sentences", "quizResults").replace("text", "correct")
    assert [quiz["correct"] for quiz in await pages(ada, query)] == [4, 3, 2, 1, 0]


async def test_subscribers_are_counted_in_shards(one_client: Client) -> None:
    """Twenty members subscribe concurrently: several counters add up to them."""
    list_id = await public_list(one_client)
    await gather(*(one_client.member(f"m{number}").ask(SUBSCRIBE, input={"list": list_id}) for number in range(20)))
    parts = [part async for part in one_client.services.table.scan(SUBSCRIBER_COUNT)]
    assert len(parts) > 4
    assert sum(part.count for part in parts) == 20


async def test_invalid_ids_are_refused(one_client: Client) -> None:
    """The id of another type, and a text that is no id."""
    ada = one_client.member("ada")
    me = (await ada.ask("{ viewer { id } }"))["id"]
    assert await ada.code(SUBSCRIBE, input={"list": me}) == "INVALID_INPUT"
    assert await ada.code(SUBSCRIBE, input={"list": "nonsense"}) == "INVALID_INPUT"
    assert await ada.code("query ($id: ID!) { wordList(id: $id) { id } }", id=me) == "BAD_USER_INPUT"


async def test_an_unknown_id_is_null_or_not_found(one_client: Client) -> None:
    """Well-formed ids with unknown or invalid keys: null in a query, a refusal in a mutation."""
    ada = one_client.member("ada")
    ulid = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    keys = (
        ("WordList", "none"),
        ("Word", "none"),
        ("Word", "none.1"),
        ("Word", "none.007"),
        ("Word", "none.9999999"),
        ("QuizResult", "none"),
        ("QuizResult", f"20261120.{ulid}.ada"),
        ("Sentence", f"2026-11-20.{ulid}.ada"),
        ("Sentence", f"2026-11-20.{ulid}."),
        ("Sentence", "2026-11-20.x.ada"),
    )
    for type_name, key in keys:
        found = await ada.ask("query ($id: ID!) { node(id: $id) { id } }", id=node_id(type_name, key))
        assert found is None, (type_name, key)
    for key in ("none", f"2026-11-20.{ulid}.ada"):
        assert await ada.code(WRITE_SENTENCE, input={"sentence": node_id("Sentence", key), "text": "x"}) == "NOT_FOUND"
    for key in ("none", "none.1"):
        assert await ada.code(WRITE_SENTENCE, input={"word": node_id("Word", key), "text": "x"}) == "NOT_FOUND"
    assert await ada.code(SUBSCRIBE, input={"list": node_id("WordList", "none")}) == "NOT_FOUND"
    assert await ada.code(SUBSCRIBE, input={"list": node_id("WordList", "a#b")}) == "INVALID_INPUT"
    forged = "query ($id: ID!) { node(id: $id) { id } }"
    for type_name in ("WordList", "User"):
        assert await ada.code(forged, id=node_id(type_name, "a#b")) == "BAD_USER_INPUT"


async def test_a_forged_id_of_a_list_disturbs_nobody_who_asks_for_another_at_the_same_moment(
    one_client: Client,
) -> None:
    """Lists that are asked for at once are read by one call."""
    ada, known, forged = one_client.member("ada"), await known_list(one_client), node_id("WordList", "a#b")
    query = "query ($id: ID!) { wordList(id: $id) { name } }"
    upcoming = "query ($id: ID!) { upcomingWords(list: $id) { date } }"
    others = (
        one_client.code(query, id=forged),
        ada.code(upcoming, id=forged),
        ada.code(START_QUIZ, input={"list": forged, "size": 3}),
    )
    found, *refused = await gather(one_client.ask(query, id=known), *others)
    assert found == {"name": "First words"}
    assert refused == ["BAD_USER_INPUT", "BAD_USER_INPUT", "INVALID_INPUT"]


async def test_a_day_begins_at_the_operators_hour(one_table: Table, default_engine: RunningEngine) -> None:
    """If days begin at noon, six in the morning is the previous day; the calendar's day can still be given."""
    offset = (6 - datetime.now(UTC).hour + 9) % 24 - 9
    local_day = (datetime.now(UTC) + timedelta(hours=offset)).date()
    async with serving(settings_for(default_engine, one_table.name, day_begins_at=12)) as client:
        ada = client.member("ada")
        list_id = await private_list(ada)
        await ada.ask(ZONE, zone=f"Etc/GMT{-offset:+d}" if offset else "Etc/GMT")
        given = {"list": list_id, "correct": 1, "total": 1}
        assert (await ada.ask(RECORD_QUIZ, input=given))["result"]["date"] == str(local_day - timedelta(days=1))
        named = await ada.ask(RECORD_QUIZ, input={**given, "on": str(local_day)})
        assert (named["result"]["date"], named["streak"]["current"]) == (str(local_day), 2)
