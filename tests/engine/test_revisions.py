"""Two editors of one thing: a change names the revision that its editor saw, and is refused if there is another one."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from datastore.dynamo import Table
from resolvers.requests.context import Role
from tests.client import Client, serving
from tests.conftest import settings_for
from tests.engines import RunningEngine
from tests.pictures import ORDINARY
from tests.vocabulary import public_list, word_ids
from tests.waiting import until

TEAMS = [{"members": ["A"]}, {"members": ["B"]}]


def statement(name: str, payload: str, selected: str) -> str:
    type_name = name[0].upper() + name[1:]
    return (
        f"mutation ($input: {type_name}Input!) {{ {name}(input: $input) "
        f"{{ ... on {payload} {{ {selected} }} ... on Refused {{ code message path }} }} }}"
    )


CREATE_EVENT = statement("createEvent", "EventCreated", "event { id revision }")
UPDATE_EVENT = statement("updateEvent", "EventUpdated", "event { id name revision }")
ADD_MATCH = statement("addMatch", "MatchAdded", "match { id revision } event { revision }")
UPDATE_MATCH = statement("updateMatch", "MatchUpdated", "match { id name revision }")
REORDER = statement("reorderMatches", "MatchesReordered", "event { revision }")
LOCK = statement("lockEvent", "EventLocked", "event { revision }")
RECORD = statement("recordResult", "ResultRecorded", "match { revision result { winner } }")
CREATE_LIST = statement("createWordList", "WordListCreated", "list { id revision }")
UPDATE_LIST = statement("updateWordList", "WordListUpdated", "list { id name revision }")
ADD_WORDS = statement("addWords", "WordsAdded", "words { id revision }")
UPDATE_WORD = statement("updateWord", "WordUpdated", "word { term revision }")
CREATE_BOARD = statement("createBoard", "BoardCreated", "board { slug revision }")
UPDATE_BOARD = statement("updateBoard", "BoardUpdated", "board { title revision }")
ADD_CONTENDER = statement("addContender", "ContenderAdded", "contender { id revision }")
UPDATE_CONTENDER = statement("updateContender", "ContenderUpdated", "contender { name revision }")


@pytest.fixture
def editor(one_client: Client) -> Client:
    return one_client.member("ed", Role.EDITOR)


async def an_event(editor: Client) -> dict[str, Any]:
    starts_at = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    created = await editor.ask(CREATE_EVENT, input={"name": "Show", "season": "2026", "startsAt": starts_at})
    return dict(created["event"])


async def a_match(editor: Client, event: str) -> dict[str, Any]:
    added = await editor.ask(ADD_MATCH, input={"event": event, "name": "Singles", "points": 5, "teams": TEAMS})
    return dict(added["match"])


async def race(editor: Client, query: str, fields: dict[str, Any], values: list[dict[str, Any]]) -> None:
    """Of changes made at once from one revision, one is carried out; the others say that somebody was faster."""
    answers = await asyncio.gather(*(editor.ask(query, input={**fields, **value}) for value in values))
    refused = [answer for answer in answers if "code" in answer]
    assert len(refused) == len(values) - 1, answers
    assert all((each["code"], each["path"]) == ("CONFLICT", ["input", "revision"]) for each in refused)


async def test_one_of_several_editors_of_an_event_is_not_told_of_a_conflict(editor: Client) -> None:
    event = await an_event(editor)
    names = [{"name": f"Show {number}"} for number in range(4)]
    await race(editor, UPDATE_EVENT, {"event": event["id"], "revision": event["revision"]}, names)
    without = await editor.ask(UPDATE_EVENT, input={"event": event["id"], "name": "Last"})
    assert without["event"]["name"] == "Last"


async def test_an_event_has_another_revision_after_each_change_of_its_card(editor: Client) -> None:
    event = await an_event(editor)
    one, two = await a_match(editor, event["id"]), await a_match(editor, event["id"])
    order = {"event": event["id"], "matches": [two["id"], one["id"]]}
    stale = await editor.ask(REORDER, input={**order, "revision": event["revision"]})
    assert stale["code"] == "CONFLICT"
    changed = await editor.ask(UPDATE_EVENT, input={"event": event["id"], "place": "Here"})
    seen = changed["event"]["revision"]
    assert seen > event["revision"]
    reordered = await editor.ask(REORDER, input={**order, "revision": seen})
    assert reordered["event"]["revision"] > seen
    assert await editor.ask(REORDER, input=order) == reordered, "the order that it has is no change"


async def test_a_match_has_a_revision_of_its_own_that_its_result_changes_too(editor: Client) -> None:
    event = await an_event(editor)
    match, other = await a_match(editor, event["id"]), await a_match(editor, event["id"])
    names = [{"name": f"Match {number}"} for number in range(3)]
    await race(editor, UPDATE_MATCH, {"match": match["id"], "revision": match["revision"]}, names)
    renamed = await editor.ask(UPDATE_MATCH, input={"match": other["id"], "name": "B", "revision": other["revision"]})
    assert renamed["match"]["revision"] > other["revision"]
    await editor.ask(LOCK, input={"event": event["id"]})
    result = {"match": other["id"], "outcome": "WON", "winner": 0}
    stale = await editor.ask(RECORD, input={**result, "revision": other["revision"]})
    assert stale["code"] == "CONFLICT"
    recorded = await editor.ask(RECORD, input={**result, "revision": renamed["match"]["revision"]})
    again = await editor.ask(RECORD, input={**result, "revision": recorded["match"]["revision"]})
    assert again == recorded  # the same result changes nothing
    await race(
        editor,
        RECORD,
        {"match": other["id"], "outcome": "WON", "revision": recorded["match"]["revision"]},
        [{"winner": 1}, {"outcome": "DRAWN"}, {"outcome": "NO_CONTEST"}],
    )


async def test_one_of_several_editors_of_a_word_list_is_not_told_of_a_conflict(editor: Client) -> None:
    created = await editor.ask(CREATE_LIST, input={"name": "Holds", "public": True})
    fields = {"list": created["list"]["id"], "revision": created["list"]["revision"]}
    await race(editor, UPDATE_LIST, fields, [{"name": f"Holds {number}"} for number in range(4)])


async def test_one_of_several_editors_of_a_word_is_not_told_of_a_conflict(editor: Client) -> None:
    """The first change of a word too, which is at revision 0 until then."""
    created = await editor.ask(CREATE_LIST, input={"name": "Throws", "public": True})
    words = [{"term": "suplex", "definition": "a throw"}]
    (word,) = (await editor.ask(ADD_WORDS, input={"list": created["list"]["id"], "words": words}))["words"]
    assert word["revision"] == 0
    for _ in range(2):
        await race(editor, UPDATE_WORD, {"word": word["id"], "revision": word["revision"]}, [
            {"term": f"suplex {number}"} for number in range(4)
        ])  # fmt: skip
        word = {**word, "revision": word["revision"] + 1}
    without = await editor.ask(UPDATE_WORD, input={"word": word["id"], "term": "last"})
    assert without["word"] == {"term": "last", "revision": 3}


async def test_after_a_conflict_a_word_is_shown_as_another_process_has_written_it(
    default_engine: RunningEngine, one_table: Table
) -> None:
    """At once, though a process remembers words for some seconds: the editor's next change names that revision."""
    settings = settings_for(default_engine, one_table.name)
    async with serving(settings) as first, serving(settings) as second:
        (word,) = await word_ids(first, await public_list(first, words=1))
        shown = "query ($id: ID!) { node(id: $id) { ... on Word { definition revision } } }"
        assert await second.ask(shown, id=word) == {"definition": "word 0", "revision": 0}
        here, there = (each.member("ed", Role.EDITOR) for each in (first, second))
        await here.ask(UPDATE_WORD, input={"word": word, "definition": "theirs", "revision": 0})
        mine = {"word": word, "definition": "mine"}
        assert await there.code(UPDATE_WORD, input={**mine, "revision": 0}) == "CONFLICT"
        assert await second.ask(shown, id=word) == {"definition": "theirs", "revision": 1}
        assert (await there.ask(UPDATE_WORD, input={**mine, "revision": 1}))["word"]["revision"] == 2


async def test_a_contender_s_texts_are_as_new_as_the_revision_that_is_shown_with_them(
    default_engine: RunningEngine, one_table: Table
) -> None:
    """Though a process remembers them for some seconds: else an editor would overwrite, naming the revision that they
    saw, what another one has written on another process, without having seen it."""
    settings = settings_for(default_engine, one_table.name)
    async with serving(settings) as first, serving(settings) as second:
        here, there = (each.member("ed", Role.EDITOR) for each in (first, second))
        contender = (await here.ask(ADD_CONTENDER, input={"name": "A"}))["contender"]["id"]
        shown = "query ($id: ID!) { contender(id: $id) { revision description svg } }"
        assert await second.ask(shown, id=contender) == {"revision": 0, "description": None, "svg": None}
        theirs = {"contender": contender, "description": "theirs", "svg": ORDINARY["gradients"], "revision": 0}
        await here.ask(UPDATE_CONTENDER, input=theirs)
        mine = {"contender": contender, "description": "mine"}
        assert await there.code(UPDATE_CONTENDER, input={**mine, "revision": 0}) == "CONFLICT"

        async def is_changed() -> dict[str, Any] | None:
            seen: dict[str, Any] = await second.ask(shown, id=contender)
            return seen if seen["revision"] else None

        seen = await until(is_changed, "the other process shows the new revision")
        assert (seen["revision"], seen["description"]) == (1, "theirs")
        assert seen["svg"] is not None
        assert (await there.ask(UPDATE_CONTENDER, input={**mine, "revision": 1}))["contender"]["revision"] == 2


async def test_one_of_several_editors_of_a_board_is_not_told_of_a_conflict(editor: Client) -> None:
    """A contender that somebody adds is no change of the board's settings."""
    created = await editor.ask(CREATE_BOARD, input={"slug": "cups", "title": "Cups"})
    await editor.ask(ADD_CONTENDER, input={"board": "cups", "name": "A"})
    fields = {"slug": "cups", "revision": created["board"]["revision"]}
    await race(editor, UPDATE_BOARD, fields, [{"title": f"Cups {number}"} for number in range(4)])


async def test_one_of_several_editors_of_a_contender_is_not_told_of_a_conflict(editor: Client) -> None:
    added = await editor.ask(ADD_CONTENDER, input={"name": "A"})
    fields = {"contender": added["contender"]["id"], "revision": added["contender"]["revision"]}
    await race(editor, UPDATE_CONTENDER, fields, [{"description": f"Number {number}"} for number in range(4)])


async def test_a_repeat_with_its_idempotency_key_is_answered_as_before(editor: Client) -> None:
    event = await an_event(editor)
    wanted = {"event": event["id"], "name": "Once", "revision": event["revision"], "idempotencyKey": "once"}
    first = await editor.ask(UPDATE_EVENT, input=wanted)
    assert await editor.ask(UPDATE_EVENT, input=wanted) == first
