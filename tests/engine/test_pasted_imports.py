"""What editors paste: contenders, a season, words. A job adds it; a dry run says what that would do."""

import asyncio
import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from datastore.dynamo import Table
from datastore.jobs.jobs import JOB, TEXT_PIECE, Job, JobState, read_text, store_text
from datastore.vocabulary.lists import LIST
from datastore.vocabulary.words import LONGEST_LIST
from datastore.voting.boards import BOARD, MAIN
from datastore.voting.editing import MAX_CONTENDERS
from resolvers.jobs.running import JobRunner
from resolvers.requests.context import Role, Services, utc_now
from resolvers.values.node_ids import parse_node_key
from resolvers.whole.importing import IMPORT_TEXT, LONGEST_TEXT, MOST_PROBLEMS
from resolvers.whole.jobs import JOB_KINDS
from server.settings import Settings
from tests.client import Client, serving
from tests.jobs import JOB_QUERY, ended, run_of, work_on
from tests.killed import killed_at
from tests.queries import CREATE_BOARD, CREATE_LIST

ANSWER = """{ __typename ... on Imported { added problems { line message } job { id state } }
  ... on Refused { code message path } }"""
CONTENDERS = f"mutation ($input: ImportContendersInput!) {{ importContenders(input: $input) {ANSWER} }}"
EVENTS = f"mutation ($input: ImportEventsInput!) {{ importEvents(input: $input) {ANSWER} }}"
WORDS = f"mutation ($input: ImportWordsInput!) {{ importWords(input: $input) {ANSWER} }}"
NAMES = '{ contenders(board: "main", first: 100) { totalCount nodes { name svg } } }'
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><circle r="1"/></svg>'
SEASON = {
    "events": [
        {"name": "Opening night", "season": "2035", "startsAt": "2035-01-08T19:00:00Z", "matches": [
            {"name": "Singles", "points": 10, "teams": [{"members": ["A"]}, {"members": ["B"]}]}]},
        {"name": "Finals", "season": "2035", "startsAt": "2035-05-08T19:00:00Z"},
    ]
}  # fmt: skip


def editor(client: Client) -> Client:
    return client.member("ed", Role.EDITOR)


def added(number: int, *problems: dict[str, Any]) -> dict[str, Any]:
    return {"__typename": "Imported", "added": number, "problems": [*problems], "job": None}


async def test_contenders_are_added_once_by_the_editor(one_client: Client) -> None:
    """Also if the text is sent again, longer; the journal names the editor."""
    ed = editor(one_client)
    picture = SVG.replace('"', '""')
    text = f'name,svg\nComet,"{picture}"\n"Tide, high",\n'
    assert await ed.ask(CONTENDERS, input={"text": text, "dryRun": True}) == added(2)
    assert (await ed.ask(NAMES))["totalCount"] == 0
    assert await ed.ask(CONTENDERS, input={"text": text}) == added(2)
    shown = (await ed.ask(NAMES))["nodes"]
    assert {node["name"]: node["svg"] is not None for node in shown} == {"Comet": True, "Tide, high": False}
    more = f"{text}Moss,\n"
    assert await ed.ask(CONTENDERS, input={"text": more, "dryRun": True}) == added(1)
    assert await ed.ask(CONTENDERS, input={"text": more}) == added(1)
    journal = await one_client.member("max", Role.MODERATOR).ask("{ journal(first: 9) { nodes { kind source } } }")
    kinds = [node for node in journal["nodes"] if node["kind"] == "contender.added"]
    assert kinds == [{"kind": "contender.added", "source": "MEMBER"}] * 3


async def test_a_text_with_a_mistake_adds_nothing(one_client: Client) -> None:
    """Each mistake is told with its line."""
    ed = editor(one_client)
    text = "name,link\nComet,https://example.com\nTide,ftp://example.com\ncomet,\n"
    for dry in (True, False):
        answer = await ed.ask(CONTENDERS, input={"text": text, "dryRun": dry})
        assert (answer["added"], [problem["line"] for problem in answer["problems"]]) == (0, [3, 4])
        assert answer["problems"][1]["message"] == "comet is already the name at line 2."
    assert (await ed.ask(NAMES))["totalCount"] == 0


async def test_an_import_with_a_key_is_made_once(one_client: Client) -> None:
    ed = editor(one_client)
    given = {"text": "name\nComet\n", "idempotencyKey": "1"}
    assert await ed.ask(CONTENDERS, input=given) == added(1)
    assert await ed.ask(CONTENDERS, input=given) == added(1)
    assert await ed.ask(CONTENDERS, input={"text": "name\nComet\n"}) == added(0)


async def test_an_import_with_a_key_that_added_nothing_adds_nothing_when_it_is_repeated(one_client: Client) -> None:
    """Its text may have become valid meanwhile. A dry run with a key is made again."""
    ed, services = editor(one_client), one_client.services
    text = "name,imageUrl\nComet,https://images.example.com/comet.png\n"
    given, dry = ({"text": text, "dryRun": dry, "idempotencyKey": f"{dry}"} for dry in (False, True))
    first = await ed.ask(CONTENDERS, input=given)
    assert first == await ed.ask(CONTENDERS, input=dry) == added(0, *first["problems"])
    services.policy = replace(services.policy, image_hosts=("images.example.com",))
    assert await ed.ask(CONTENDERS, input=given) == first
    assert await ed.ask(CONTENDERS, input=dry) == added(1)


async def test_a_text_that_begins_with_a_byte_order_mark_is_read_like_a_file(one_client: Client) -> None:
    """A program that has read a spreadsheet's file may send the mark on."""
    ed = editor(one_client)
    made = (await ed.ask(CREATE_LIST, input={"name": "Holds", "public": True}))["list"]
    for document, given in (
        (CONTENDERS, {"text": "name\nComet\n"}),
        (WORDS, {"list": made["id"], "text": "term,definition\nlock,a grip\n"}),
        (EVENTS, {"text": json.dumps(SEASON)}),
    ):
        marked = {**given, "text": f"\ufeff{given['text']}"}
        answer = await ed.ask(document, input=marked)
        assert (answer["__typename"], answer.get("problems")) == ("Imported", []), answer
        assert (await ed.ask(document, input=given))["added"] == 0


async def test_two_imports_of_the_same_at_once_add_each_contender_once(one_client: Client) -> None:
    ed = editor(one_client)
    text = "\n".join(["name", *(f"Mask {number}" for number in range(40))])
    answers = await asyncio.gather(*(ed.ask(CONTENDERS, input={"text": text}) for _ in range(4)))
    assert all(answer["problems"] == [] for answer in answers)
    assert (await ed.ask(NAMES))["totalCount"] == 40


async def test_a_season_is_added_with_its_cards(one_client: Client) -> None:
    ed = editor(one_client)
    text = json.dumps(SEASON)
    assert await ed.ask(EVENTS, input={"text": text, "dryRun": True}) == added(2)
    assert await ed.ask(EVENTS, input={"text": text}) == added(2)
    assert await ed.ask(EVENTS, input={"text": text}) == added(0)
    shown = await ed.ask("{ events(first: 9) { nodes { name matches { name } } } }")
    assert shown["nodes"] == [
        {"name": "Finals", "matches": []},
        {"name": "Opening night", "matches": [{"name": "Singles"}]},
    ]
    broken = json.dumps({"events": [*SEASON["events"], {"name": "No start", "season": "2035"}]})
    answer = await ed.ask(EVENTS, input={"text": broken})
    assert (answer["added"], answer["problems"][0]["line"]) == (0, 3)
    assert answer["problems"][0]["message"].startswith("startsAt: ")


async def test_words_are_added_without_those_that_are_not_valid(one_client: Client) -> None:
    ed = editor(one_client)
    made = (await ed.ask(CREATE_LIST, input={"name": "Holds", "public": True}))["list"]
    text = "term,definition\nsuplex,a throw\nlock,\nhold,a grip\nsuplex,a throw\n"
    problem = {"line": 3, "message": "definition: A definition has 1 to 500 characters."}
    for dry in (True, False):
        answer = await ed.ask(WORDS, input={"list": made["id"], "text": text, "dryRun": dry})
        assert (answer["added"], [one["line"] for one in answer["problems"]]) == (2, [problem["line"]])
    shown = await ed.ask("query ($id: ID!) { wordList(id: $id) { wordCount } }", id=made["id"])
    assert shown["wordCount"] == 2


async def test_contenders_beyond_what_a_board_may_have_are_a_mistake(one_client: Client) -> None:
    """So nothing is added. Those that it has already take no room."""
    ed, table = editor(one_client), one_client.services.table
    await ed.ask(CONTENDERS, input={"text": "name\nComet\n"})
    await table.write(BOARD.update(BOARD.at(slug=MAIN), values={"size": MAX_CONTENDERS - 1}))
    for dry in (True, False):
        answer = await ed.ask(CONTENDERS, input={"text": "name\nTide\ncomet\nMoss\nFern\n", "dryRun": dry})
        assert (answer["added"], [problem["line"] for problem in answer["problems"]]) == (0, [4, 5]), answer
        assert answer["problems"][0]["message"].startswith("A board may have 10,000 contenders")
    assert (await ed.ask(NAMES))["totalCount"] == MAX_CONTENDERS - 1
    assert await ed.ask(CONTENDERS, input={"text": "name\nTide\ncomet\n"}) == added(1)


async def test_words_beyond_what_a_list_may_have_are_a_mistake(one_client: Client) -> None:
    """Those that it has, or that the text has twice, take no room."""
    ed, table = editor(one_client), one_client.services.table
    made = (await ed.ask(CREATE_LIST, input={"name": "Holds", "public": True}))["list"]
    key = LIST.at(list=parse_node_key("WordList", made["id"]))
    await table.write(LIST.update(key, values={"next_ordinal": LONGEST_LIST - 1}))
    text = "term,definition\nlock,a grip\nlock,a grip\nhold,a grip\n"
    for dry in (True, False):
        answer = await ed.ask(WORDS, input={"list": made["id"], "text": text, "dryRun": dry})
        assert (answer["added"], [problem["line"] for problem in answer["problems"]]) == (1, [4]), answer
        assert answer["problems"][0]["message"].startswith("A list may have 100,000 words")
    assert await ed.ask(WORDS, input={"list": made["id"], "text": text.removesuffix("hold,a grip\n")}) == added(0)


@pytest.mark.parametrize(
    ("given", "code", "path"),
    [
        ({"text": "Comet\nTide\n"}, "INVALID_INPUT", ["input", "text"]),
        ({"text": 'name\n"Comet\n'}, "INVALID_INPUT", ["input", "text"]),
        ({"text": ""}, "INVALID_INPUT", ["input", "text"]),
        ({"text": "name\n" + "x" * LONGEST_TEXT}, "INVALID_INPUT", ["input", "text"]),
        ({"text": "name\nComet\n", "board": "nowhere"}, "NOT_FOUND", ["input", "board"]),
        ({"text": "name\nComet\n", "board": "#"}, "NOT_FOUND", ["input", "board"]),
    ],
)
async def test_what_is_no_table_is_refused(
    one_client: Client, given: dict[str, Any], code: str, path: list[str]
) -> None:
    answer = await editor(one_client).ask(CONTENDERS, input=given)
    assert (answer["code"], answer["path"]) == (code, path), answer


@pytest.mark.parametrize("text", ["[]", "{", '{"events": 1}', '"\\u0000"'])
async def test_what_is_no_season_is_refused(one_client: Client, text: str) -> None:
    answer = await editor(one_client).ask(EVENTS, input={"text": text})
    assert (answer["code"], answer["path"]) == ("INVALID_INPUT", ["input", "text"])


async def test_a_private_list_takes_no_import(one_client: Client) -> None:
    """Not even its owner's, who is an editor; others do not learn that it exists."""
    ed = editor(one_client)
    own = (await ed.ask(CREATE_LIST, input={"name": "Mine"}))["list"]["id"]
    theirs = (await one_client.member("ada").ask(CREATE_LIST, input={"name": "Hers"}))["list"]["id"]
    text = "term,definition\na,b\n"
    assert (await ed.ask(WORDS, input={"list": own, "text": text}))["code"] == "INVALID_INPUT"
    assert (await ed.ask(WORDS, input={"list": theirs, "text": text}))["code"] == "NOT_FOUND"


async def test_of_many_mistakes_the_first_are_told(one_client: Client) -> None:
    text = "\n".join(["name,link", *(f"Mask {number},nowhere" for number in range(MOST_PROBLEMS + 50))])
    answer = await editor(one_client).ask(CONTENDERS, input={"text": text})
    assert (answer["added"], len(answer["problems"])) == (0, MOST_PROBLEMS)


async def test_a_long_import_goes_on_as_a_job_after_its_process_has_ended(one_table: Table, settings: Settings) -> None:
    """The next process adds the rest; each contender is there once, the job has counted all, and the text is gone.

    Other editors may see the job, as they see what it adds.
    """
    text = "\n".join(["name", *(f"Mask {number}" for number in range(600))])
    async with serving(settings) as first:
        first.services.get(JobRunner).answer_seconds = 0.3
        ed = editor(first)
        await ed.ask(CREATE_BOARD, input={"slug": "big", "title": "Big"})
        answer = await ed.ask(CONTENDERS, input={"board": "big", "text": text})
        job = answer["job"]
        assert job is not None
        assert job["state"] == "RUNNING"
        others = [first.member("eve", Role.EDITOR), first.member("max", Role.MODERATOR), first.member("bo")]
        assert [await other.ask(JOB_QUERY, id=job["id"]) is not None for other in others] == [True, False, False]
    async with serving(settings) as second:
        await second.services.get(JobRunner).take_up()
        shown = await ended(editor(second), job["id"])
        assert [shown[name] for name in ("state", "done", "total", "message")] == ["DONE", 600, 600, "Added: 600."]
        counted = await second.ask('{ contenders(board: "big", first: 1) { totalCount } }')
        assert counted["totalCount"] == 600
    [stored] = [job async for job in one_table.iterate(JOB.on("gsi1"))]
    assert await read_text(one_table, stored.id) == ""
    assert [piece async for piece in one_table.iterate(TEXT_PIECE.on(job=stored.id))] == []


async def begun(services: Services, now: datetime, text: str) -> Job:
    """A job that adds these contenders, in which its request has seen no mistake."""
    input_ = {"what": "contenders", "into": MAIN, "actor": "", "problems": "0"}
    job = await services.table.put_once(JOB, Job(services.ids.next(now), IMPORT_TEXT, "somebody", now, input=input_))
    await store_text(services.table, job.id, text, now + timedelta(days=1))
    return job


async def test_an_import_says_that_others_have_taken_its_room_meanwhile(one_client: Client) -> None:
    """Between its check and its job, or between two processes that work on it."""
    services = one_client.services
    services.get(JobRunner).start({})
    await editor(one_client).ask(CONTENDERS, input={"text": "name\nComet\n"})
    job = await begun(services, utc_now(), "name\nTide\nMoss\n")
    await services.table.write(BOARD.update(BOARD.at(slug=MAIN), values={"size": MAX_CONTENDERS - 1}))
    done = await work_on(services, job)
    assert (done.state, (done.message or "")[:22]) == (JobState.FAILED, "Others have taken room")


async def test_an_import_that_was_killed_at_any_of_its_writes_ends_as_done(one_client: Client) -> None:
    """Also at its last ones, when its text is gone: it says what it would have said."""
    services, killed, write = one_client.services, True, 0
    services.get(JobRunner).start({})
    while killed:
        now, killed = utc_now(), False
        job = await begun(services, now, f"name\nMask {write}\nBelt {write}\n")
        run = await run_of(services, job)
        with killed_at(services.table, write):
            try:
                await JOB_KINDS[IMPORT_TEXT](services, run)
            except BaseException as error:  # noqa: BLE001 - also a group of them
                assert "Killed" in repr(error)  # noqa: PT017
                killed = True
        done = await work_on(services, job)
        assert (done.state, done.done, done.message) == (JobState.DONE, 2, "Added: 2."), write
        write += 1
    assert write > 4
