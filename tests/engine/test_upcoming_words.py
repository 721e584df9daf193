"""The words of the days ahead, as editors see them: what is drawn later, without drawing it."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest

from datastore.vocabulary.daily import read_daily_word
from datastore.vocabulary.lists import read_list
from resolvers.requests.context import Role
from resolvers.values.node_ids import parse_node_key
from tests.client import Client
from tests.intercepted import Send, intercepted
from tests.queries import ADD_WORDS, REMOVE_WORD, UPDATE_WORD
from tests.vocabulary import private_list, public_list, some_words, today

UPCOMING = "query ($list: ID!, $days: Int) { upcomingWords(list: $list, days: $days) { date word { id simplified } } }"
DAILY = "query ($list: ID!, $on: Date) { wordList(id: $list) { dailyWord(on: $on) { date word { id simplified } } } }"


def at_noon(client: Client) -> list[datetime]:
    """The time, which the test moves on."""
    now = [datetime.combine(today(), time(12), UTC)]
    client.services.clock = lambda: now[0]
    return now


async def drawn(client: Client, list_id: str, now: list[datetime], days: int) -> list[Any]:
    """The words of these days, each drawn on its own."""
    words = []
    for _ in range(days):
        words.append((await client.ask(DAILY, list=list_id))["dailyWord"])
        now[0] += timedelta(days=1)
    return words


@pytest.mark.quick
async def test_the_words_ahead_are_those_that_are_drawn_when_their_days_come(one_client: Client) -> None:
    """Across the end of the list, after which its words come in another order, and with some of them removed."""
    now, list_id = at_noon(one_client), await public_list(one_client, words=7)
    editor = one_client.member("eve", Role.EDITOR)
    await one_client.ask(DAILY, list=list_id)
    ahead = await editor.ask(UPCOMING, list=list_id, days=20)
    assert [each["date"] for each in ahead] == [str(now[0].date() + timedelta(days=day)) for day in range(20)]
    await editor.ask(REMOVE_WORD, input={"word": ahead[2]["word"]["id"]})
    ahead = await editor.ask(UPCOMING, list=list_id, days=20)
    assert await drawn(one_client, list_id, now, 20) == ahead


async def test_looking_ahead_draws_nothing(one_client: Client) -> None:
    list_id = await public_list(one_client)
    editor = one_client.member("eve", Role.EDITOR)
    key, table = parse_node_key("WordList", list_id), one_client.services.table
    before = await read_list(table, key, consistent=True)
    ahead = await editor.ask(UPCOMING, list=list_id)
    assert len(ahead) == 14
    assert await read_list(table, key, consistent=True) == before
    assert not any([await read_daily_word(table, key, date.fromisoformat(each["date"])) for each in ahead])


async def test_a_word_that_is_removed_or_corrected_before_its_day_is_not_shown_as_it_was(one_client: Client) -> None:
    """The next one comes a day earlier; words that are added come after those that the list had."""
    list_id = await public_list(one_client)
    editor = one_client.member("eve", Role.EDITOR)
    await one_client.ask(DAILY, list=list_id)
    _, second, third, fourth, _ = await editor.ask(UPCOMING, list=list_id, days=5)
    await editor.ask(REMOVE_WORD, input={"word": second["word"]["id"]})
    await editor.ask(UPDATE_WORD, input={"word": third["word"]["id"], "simplified": "更好"})
    await editor.ask(ADD_WORDS, input={"list": list_id, "words": some_words(3, start=90)})
    terms = [each["word"]["simplified"] for each in await editor.ask(UPCOMING, list=list_id, days=7)]
    assert terms[1:3] == ["更好", fourth["word"]["simplified"]]
    assert {*terms[4:]} == {"词90", "词91", "词92"}


async def test_a_word_that_is_drawn_meanwhile_is_not_shown_twice(one_client: Client) -> None:
    """Somebody draws today's word between the reads of the list and of its daily words."""
    list_id = await public_list(one_client)
    editor, drawings = one_client.member("eve", Role.EDITOR), iter([one_client.ask(DAILY, list=list_id)])

    async def draw_first(_: str, send: Send) -> Any:
        for drawing in drawings:
            await drawing
        return await send()

    with intercepted(one_client.services.table, ("query",), draw_first):
        ahead = await editor.ask(UPCOMING, list=list_id, days=5)
    assert len({each["word"]["id"] for each in ahead}) == 5
    assert await editor.ask(UPCOMING, list=list_id, days=5) == ahead


async def test_a_day_that_has_begun_in_the_east_keeps_its_word(one_client: Client) -> None:
    """Tomorrow's word, drawn before today's for somebody whose day it is, stays where it is, even once removed."""
    at_noon(one_client)
    list_id = await public_list(one_client)
    east, editor = one_client.member("east"), one_client.member("eve", Role.EDITOR)
    zone = 'mutation { updateProfile(input: { timeZone: "Pacific/Kiritimati" }) { __typename } }'
    await east.ask(zone)
    tomorrow = (await east.ask(DAILY, list=list_id, on=str(today() + timedelta(days=1))))["dailyWord"]
    ahead = await editor.ask(UPCOMING, list=list_id, days=5)
    assert ahead[1] == tomorrow
    assert len({each["word"]["id"] for each in ahead}) == 5
    await editor.ask(REMOVE_WORD, input={"word": tomorrow["word"]["id"]})
    assert (await editor.ask(UPCOMING, list=list_id, days=5))[:2] == ahead[:2]


async def test_only_those_who_may_change_a_list_look_ahead(one_client: Client) -> None:
    """Editors in public lists, a member in their own; an empty list has nothing ahead."""
    ada, editor = one_client.member("ada"), one_client.member("eve", Role.EDITOR)
    public, own, empty = await public_list(one_client), await private_list(ada), await public_list(one_client, "E", 0)
    assert await ada.code(UPCOMING, list=public) == "NOT_ALLOWED"
    assert await one_client.code(UPCOMING, list=public) == "NOT_SIGNED_IN"
    assert await editor.code(UPCOMING, list=own) == "NOT_FOUND"
    assert len(await ada.ask(UPCOMING, list=own, days=2)) == 2
    assert await editor.ask(UPCOMING, list=empty) == []
    for days in (0, 32):
        assert await editor.code(UPCOMING, list=public, days=days) == "BAD_USER_INPUT"
