"""Changes whose transaction is applied, while the engine's answer is lost: they are made and recorded once."""

from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from datastore.changes.occurrences import OCCURRENCE, Kind
from datastore.dynamo import Table
from datastore.people.profiles import PROFILE
from datastore.pickem.events import EVENT
from datastore.vocabulary.learning import SENTENCE
from datastore.vocabulary.lists import LIST
from datastore.voting.boards import BOARD
from datastore.voting.contenders import CONTENDER
from resolvers.requests.context import Role
from tests.client import Client
from tests.intercepted import Send, intercepted
from tests.lost_answers import ask_without_answer
from tests.queries import (
    ADD_WORDS,
    CREATE_BOARD,
    UPDATE_BOARD,
    UPDATE_CONTENDER,
    UPDATE_EVENT,
    UPDATE_PROFILE,
    WRITE_SENTENCE,
)
from tests.season import EventEditor
from tests.vocabulary import public_list, some_words
from tests.voting import add_contenders


async def _board(client: Client) -> dict[str, str]:
    await client.member("eve", Role.EDITOR).ask(CREATE_BOARD, input={"slug": "shows", "title": "Shows"})
    return {"slug": "shows"}


async def _contender(client: Client) -> dict[str, str]:
    [contender] = await add_contenders(client, "Ada")
    return {"contender": contender}


async def _event(client: Client) -> dict[str, str]:
    return {"event": (await EventEditor(client).event())["id"]}


async def _sentence(client: Client) -> dict[str, str]:
    written = await client.member("eve", Role.EDITOR).ask(WRITE_SENTENCE, input={"text": "first"})
    return {"sentence": written["sentence"]["id"]}


async def _profile(_: Client) -> dict[str, str]:
    return {}


@pytest.mark.parametrize(
    ("prepare", "mutation", "text", "entity", "attribute", "kind"),
    [
        (_profile, UPDATE_PROFILE, "name", PROFILE, "name", Kind.PROFILE_CHANGED),
        (_board, UPDATE_BOARD, "title", BOARD, "title", Kind.BOARD_CHANGED),
        (_contender, UPDATE_CONTENDER, "name", CONTENDER, "name", Kind.CONTENDER_CHANGED),
        (_event, UPDATE_EVENT, "name", EVENT, "name", Kind.EVENT_CHANGED),
        (_sentence, WRITE_SENTENCE, "text", SENTENCE, "text", Kind.SENTENCE_CHANGED),
    ],
)
async def test_a_change_whose_answer_is_lost_does_not_replace_a_later_one(
    one_client: Client,
    prepare: Callable[[Client], Awaitable[dict[str, str]]],
    mutation: str,
    text: str,
    entity: Any,
    attribute: str,
    kind: Kind,
) -> None:
    """It is answered as done, although somebody else has changed the same thing before it is tried again."""
    editor, table = one_client.member("eve", Role.EDITOR), one_client.services.table
    await editor.ask(UPDATE_PROFILE, input={"name": "Eve"})  # so that the change's transaction is the first one
    changed, before = await prepare(one_client), await _recorded(table)
    later = partial(editor.ask, mutation, input={**changed, text: "later"})
    answer = await ask_without_answer(editor, mutation, meanwhile=later, **changed, **{text: "earlier"})
    assert "code" not in answer
    stored = [getattr(found, attribute) async for found in table.scan(entity, consistent=True)]
    assert "later" in stored
    assert "earlier" not in stored
    assert await _recorded(table) - before == {kind: 2}


async def test_a_change_that_never_reached_the_engine_is_not_taken_for_a_rival_s(one_client: Client) -> None:
    """Two editors add the same words; the first attempt of one is lost before it arrives. Her key finds her own."""
    list_id, table = await public_list(one_client, words=0), one_client.services.table
    eve, bob = one_client.member("eve", Role.EDITOR), one_client.member("bob", Role.EDITOR)
    await eve.ask(UPDATE_PROFILE, input={"name": "Eve"})  # so that the words' transaction is the first one
    added = {"list": list_id, "words": some_words(3)}
    arrived = False

    async def lose_one_request(_: str, send: Send) -> Any:
        nonlocal arrived
        if not arrived:
            arrived = True
            await bob.ask(ADD_WORDS, input=added)
            raise TimeoutError
        return await send()

    with intercepted(table, ("transact_write_items",), lose_one_request):
        answers = [await eve.ask(ADD_WORDS, input={**added, "idempotencyKey": "k"}) for _ in range(2)]
    assert answers[0] == answers[1]
    assert [word_list.next_ordinal async for word_list in table.scan(LIST, consistent=True)] == [6]
    assert (await _recorded(table))[Kind.WORDS_ADDED] == 2


async def _recorded(table: Table) -> Counter[str]:
    return Counter([occurrence.kind async for occurrence in table.scan(OCCURRENCE, consistent=True)])
