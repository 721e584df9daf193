"""Words that are due for review, over HTTP."""

from asyncio import gather
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from datastore.dynamo import Table
from datastore.vocabulary.lists import delete_list
from datastore.vocabulary.quizzes import CARD, QUEUED_CARD, Card
from resolvers.requests.context import Role
from resolvers.values.node_ids import node_id, parse_node_key
from resolvers.vocabulary.cache import VocabularyCache
from tests.audits import breaches_in
from tests.client import Client
from tests.intercepted import is_of_request
from tests.killed import Killed, killed_at
from tests.queries import ADD_WORDS, DELETE_LIST, REMOVE_WORD, mutation
from tests.vocabulary import known_list, private_list, word_ids

REVIEW_WORD = mutation(
    "reviewWord", "WordReviewed", "card { due stability difficulty reviews word { id } list { id } }"
)
DUE = """
query ($first: Int, $after: String) { viewer {
  due(first: $first, after: $after) { nodes { word { id term } due } pageInfo { hasNextPage endCursor } }
} }
"""
COUNT = "{ viewer { dueCount } }"


def stop_clock(client: Client) -> list[datetime]:
    """A clock that the test moves: the list's one element is the time."""
    now = [datetime(2026, 11, 22, 12, tzinfo=UTC)]
    client.services.clock = lambda: now[0]
    return now


async def due(member: Client) -> list[str]:
    return [node["word"]["id"] for node in (await member.ask(DUE, first=100))["due"]["nodes"]]


# ── on every engine ──


async def test_a_reviewed_word_returns_when_it_is_due(client: Client) -> None:
    """At once after AGAIN (a minute), later after GOOD (ten), in days after EASY; the longest overdue comes first."""
    now = stop_clock(client)
    list_id = await known_list(client, words=3)
    ada, bob = client.member("ada"), client.member("bob")
    words = await word_ids(client, list_id)
    for word, grade in zip(words, ("GOOD", "EASY", "AGAIN"), strict=True):
        card = (await ada.ask(REVIEW_WORD, input={"word": word, "grade": grade}))["card"]
        assert (card["reviews"], card["word"]["id"], card["list"]["id"]) == (1, word, list_id)
    assert await due(ada) == []
    now[0] += timedelta(minutes=1)
    assert await due(ada) == [words[2]]
    now[0] += timedelta(minutes=9)
    assert await due(ada) == [words[2], words[0]]
    assert await ada.ask(COUNT) == {"dueCount": 2}
    await ada.ask(REVIEW_WORD, input={"word": words[2], "grade": "GOOD"})
    assert await due(ada) == [words[0]]
    now[0] += timedelta(days=30)
    assert sorted(await due(ada)) == sorted(words)
    assert await bob.ask(COUNT) == {"dueCount": 0}
    me = (await ada.ask("{ viewer { id } }"))["id"]
    others = "query ($id: ID!) { user(id: $id) { dueCount due { nodes { due } } } }"
    assert await bob.ask(others, id=me) == {"dueCount": 0, "due": {"nodes": []}}
    assert await client.ask(others, id=me) == {"dueCount": 0, "due": {"nodes": []}}


async def test_the_queue_stays_stable_while_it_is_answered(client: Client) -> None:
    """Page by page, each card once, although each is reviewed as soon as it was read."""
    now = stop_clock(client)
    list_id = await known_list(client, words=7)
    ada = client.member("ada")
    words = await word_ids(client, list_id)
    for word in words:
        await ada.ask(REVIEW_WORD, input={"word": word, "grade": "AGAIN"})
        now[0] += timedelta(seconds=1)
    now[0] += timedelta(minutes=5)
    seen, after = [], None
    while True:
        page = (await ada.ask(DUE, first=2, after=after))["due"]
        for node in page["nodes"]:
            seen.append(node["word"]["id"])
            await ada.ask(REVIEW_WORD, input={"word": node["word"]["id"], "grade": "GOOD"})
        if not page["pageInfo"]["hasNextPage"]:
            break
        after = page["pageInfo"]["endCursor"]
    assert seen == words
    assert await due(ada) == []


# ── on the default engine ──


async def test_concurrent_reviews_of_a_word_are_one_after_the_other(one_client: Client) -> None:
    """Each counts once, a repeated one not again; the card has one place in the queue."""
    list_id = await known_list(one_client, words=1)
    ada = one_client.member("ada")
    (word,) = await word_ids(one_client, list_id)
    reviews = [{"word": word, "grade": "HARD", "idempotencyKey": str(number)} for number in range(4) for _ in range(2)]
    await gather(*(ada.ask(REVIEW_WORD, input=review) for review in reviews))
    last = await ada.ask(REVIEW_WORD, input={"word": word, "grade": "GOOD"})
    assert last["card"]["reviews"] == 5
    table = one_client.services.table
    (card,) = [card async for card in table.scan(CARD)]
    assert [queued async for queued in table.scan(QUEUED_CARD)] == [card]
    assert await breaches_in(one_client.services) == []


async def test_words_that_a_member_cannot_see_are_not_reviewed(one_client: Client) -> None:
    """Nor are ids of something else; a visitor has to sign in."""
    ada, bob = one_client.member("ada"), one_client.member("bob")
    (word, *_) = await word_ids(ada, await private_list(ada))
    for wrong in (word, node_id("Word", "none"), node_id("Word", "none.1")):
        assert await bob.code(REVIEW_WORD, input={"word": wrong, "grade": "GOOD"}) == "NOT_FOUND"
    me = (await ada.ask("{ viewer { id } }"))["id"]
    assert await ada.code(REVIEW_WORD, input={"word": me, "grade": "GOOD"}) == "INVALID_INPUT"
    assert await ada.code(REVIEW_WORD, input={"word": word, "grade": "PERFECT"}) == "BAD_USER_INPUT"
    assert await one_client.code(REVIEW_WORD, input={"word": word, "grade": "GOOD"}) == "NOT_SIGNED_IN"
    page = (await ada.ask("{ viewer { due(first: 1) { pageInfo { endCursor } } } }"))["due"]
    assert page == {"pageInfo": {"endCursor": None}}


async def test_cards_of_removed_words_stay_and_those_of_deleted_lists_go(one_client: Client) -> None:
    """The queue answers in between. Of a long list, words are left for some time after it was deleted."""
    now = stop_clock(one_client)
    kept, gone, long = [await known_list(one_client, name, words=1) for name in ("Kept", "Gone", "Long")]
    ada, editor = one_client.member("ada"), one_client.member("eve", Role.EDITOR)
    (first,), (second,), (third,) = [await word_ids(one_client, each) for each in (kept, gone, long)]
    for word in (first, second, third):
        await ada.ask(REVIEW_WORD, input={"word": word, "grade": "AGAIN"})
    await editor.ask(REMOVE_WORD, input={"word": first})
    await editor.ask(DELETE_LIST, input={"list": gone})
    await delete_list(ada.services.table, parse_node_key("WordList", long), long, ada.services.unit())
    now[0] += timedelta(minutes=2)
    list_id, _, ordinal = parse_node_key("Word", second).rpartition(".")
    cache = ada.services.get(VocabularyCache)  # as after two seconds
    cache.words.forget((list_id, int(ordinal)))
    cache.lists.forget(parse_node_key("WordList", long))
    assert sorted(await due(ada)) == sorted([first, second, third])
    assert await due(ada) == [first]
    for word in (second, third):
        assert await ada.code(REVIEW_WORD, input={"word": word, "grade": "GOOD"}) == "NOT_FOUND"
    assert "code" not in await ada.ask(REVIEW_WORD, input={"word": first, "grade": "GOOD"})


async def test_cards_that_were_dropped_in_part_are_dropped_whole_by_the_next_reader(one_client: Client) -> None:
    """Twenty cards are more than one batch of deletions: nothing stays behind of them that nobody finds any more."""
    now = stop_clock(one_client)
    ada, editor = one_client.member("ada"), one_client.member("eve", Role.EDITOR)
    gone = await known_list(one_client, words=20)
    for word in await word_ids(one_client, gone):
        await ada.ask(REVIEW_WORD, input={"word": word, "grade": "AGAIN"})
    await editor.ask(DELETE_LIST, input={"list": gone})
    for _ in range(2):
        assert await due(ada) == []  # from now on the operation is compiled, and all cards are looked at together
    now[0] += timedelta(minutes=2)
    with killed_at(one_client.services.table, 0), suppress(Killed):
        await due(ada)
    await due(ada)
    assert [card async for card in one_client.services.table.scan(CARD, QUEUED_CARD)] == []
    assert await breaches_in(one_client.services) == []


async def test_a_word_that_is_defined_like_a_deleted_one_stays_due(one_client: Client) -> None:
    """The table says which words are gone, not the text that stands for them."""
    now = stop_clock(one_client)
    ada = one_client.member("ada")
    mine = await private_list(ada, words=0)
    given = {"term": "x", "definition": "This word was deleted with its list."}
    await ada.ask(ADD_WORDS, input={"list": mine, "words": [given]})
    (word,) = await word_ids(ada, mine)
    await ada.ask(REVIEW_WORD, input={"word": word, "grade": "AGAIN"})
    now[0] += timedelta(minutes=2)
    assert await due(ada) == [word]
    assert await due(ada) == [word]


async def test_a_page_of_twenty_thousand_cards_costs_what_it_shows(one_client: Client) -> None:
    """One call of at most four units; counting stops at a thousand."""
    ada = one_client.member("ada")
    now = datetime.now(UTC).replace(microsecond=0)
    table = one_client.services.table
    await write_cards(table, "ada", now, 20_000)
    await ada.ask("{ viewer { name } }")
    calls = counted_calls(table)
    page = (await ada.ask("{ viewer { due { nodes { due stability reviews } } } }"))["due"]["nodes"]
    assert len(page) == 20
    queries = [units for name, units in calls if name == "query"]
    assert len(queries) == 1
    assert queries[0] <= 4
    assert [node["due"] for node in page] == sorted(node["due"] for node in page)
    assert await ada.ask(COUNT) == {"dueCount": 1000}


async def write_cards(table: Table, user: str, now: datetime, count: int) -> None:
    cards = [
        Card(
            user, "l" * 26, number, now - timedelta(seconds=count - number), 2.30651234567891, 5.12345678901, 2, now, 3
        )
        for number in range(count)
    ]
    await table.write_many(QUEUED_CARD.put(card) for card in cards)


def counted_calls(table: Table) -> list[tuple[str, float]]:
    """Every read from now on, with its units."""
    client, calls = table.client, list[tuple[str, float]]()

    class Counting:
        def __getattr__(self, name: str) -> Any:
            async def call(**parameters: Any) -> Any:
                answer = await getattr(client, name)(**parameters)
                used = answer.get("ConsumedCapacity", ())
                used = used if isinstance(used, list | tuple) else [used]
                if used and is_of_request():
                    calls.append((name, sum(one["CapacityUnits"] for one in used)))
                return answer

            return call

    table.client = Counting()
    return calls
