"""Quizzes that the service asks and grades, over HTTP."""

import contextlib
from asyncio import gather, sleep
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Literal

import orjson
import pytest
from botocore.exceptions import ClientError

from datastore.dynamo import Rates, Table, iso, parse_rate
from datastore.values.folding import in_form
from datastore.vocabulary.learning import QUIZ
from datastore.vocabulary.quizzes import CARD, OPEN_QUIZ
from resolvers.requests.context import Role
from resolvers.vocabulary import quizzes
from resolvers.vocabulary.quizzes import START_RATE
from resolvers.whole.exporting import file_lines
from tests.audits import breaches_in
from tests.client import Client, serving
from tests.conftest import settings_for
from tests.dependent_calls import dependent_calls
from tests.engines import RunningEngine
from tests.intercepted import Send, intercepted, is_of_request
from tests.killed import Killed, killed_at
from tests.queries import ADD_WORDS, CREATE_LIST, DELETE_LIST, RECORD_QUIZ, REMOVE_WORD
from tests.vocabulary import (
    ANSWER_QUIZ,
    QUIZ_LEADERBOARD,
    START_QUIZ,
    known_list,
    private_list,
    right_answers,
    word_ids,
)


@pytest.fixture
def now() -> list[datetime]:
    """The time, which the test moves."""
    return [datetime.now(UTC).replace(microsecond=0)]


def with_clock(client: Client, now: list[datetime]) -> None:
    client.services.clock = lambda: now[0]


# ── on every engine ──


@pytest.mark.lagging
async def test_a_quiz_is_asked_graded_and_counted(client: Client, now: list[datetime]) -> None:
    """Each word once, each right answer among its choices; the result is proven, and the words return when due."""
    with_clock(client, now)
    list_id = await known_list(client, words=8)
    ada = client.member("ada")
    quiz = await ada.ask(START_QUIZ, input={"list": list_id, "size": 5, "kind": "MEANING"})
    assert [question["number"] for question in quiz["questions"]] == [1, 2, 3, 4, 5]
    assert len({question["prompt"] for question in quiz["questions"]}) == 5
    right = right_answers(quiz)
    for question, answer in zip(quiz["questions"], right, strict=True):
        assert answer in question["choices"]
        assert len(set(question["choices"])) == 4
    now[0] += timedelta(seconds=5)
    graded = await ada.ask(ANSWER_QUIZ, input={"token": quiz["token"], "answers": ["wrong", *right[1:]]})
    result = graded["result"]
    assert (result["correct"], result["total"], result["proven"], result["list"]["id"]) == (4, 5, True, list_id)
    assert [answer["right"] for answer in graded["answers"]] == [False, True, True, True, True]
    assert [answer["word"]["definition"] for answer in graded["answers"]] == right
    assert graded["streak"] == {"current": 1}
    now[0] += timedelta(minutes=2)
    (due,) = (await ada.ask("{ viewer { due { nodes { word { term } } } } }"))["due"]["nodes"]
    assert due["word"]["term"] == quiz["questions"][0]["prompt"]
    now[0] += timedelta(minutes=10)
    assert await ada.ask("{ viewer { dueCount } }") == {"dueCount": 5}
    board = await ada.ask(QUIZ_LEADERBOARD, on=result["date"], list=list_id)
    assert board["nodes"] == [{"rank": 1, "user": {"name": "Ada"}, "correct": 4, "total": 5, "quizzes": 1}]
    await client.caught_up("the index shows the result")
    assert await breaches_in(client.services) == []


async def test_a_quiz_is_answered_once(client: Client, now: list[datetime]) -> None:
    """Of ten concurrent answers one counts; a repeated request with its key gets the same answer again."""
    with_clock(client, now)
    list_id = await known_list(client, words=6)
    ada = client.member("ada")
    quiz = await ada.ask(START_QUIZ, input={"list": list_id, "size": 3, "kind": "MEANING"})
    now[0] += timedelta(seconds=10)
    given = {"token": quiz["token"], "answers": right_answers(quiz)}
    keyed = {**given, "idempotencyKey": "mine"}
    answers = await gather(*(ada.ask(ANSWER_QUIZ, input=keyed if number % 2 else given) for number in range(10)))
    codes = [answer.get("code", "graded") for answer in answers]
    assert set(codes) <= {"graded", "TOKEN_SPENT"}
    assert "graded" in codes
    assert await ada.code(ANSWER_QUIZ, input=given) == "TOKEN_SPENT"
    assert await ada.code(ANSWER_QUIZ, input={**given, "answers": ["", "", ""]}) == "TOKEN_SPENT"
    results = [result async for result in client.services.table.scan(QUIZ, consistent=True)]
    assert len(results) == 1
    now[0] += timedelta(days=1)
    assert await ada.code(ANSWER_QUIZ, input=given) in {"TOKEN_SPENT", "TOKEN_EXPIRED"}


async def test_concurrent_repeats_with_one_key_get_one_answer(client: Client, now: list[datetime]) -> None:
    """Also one that reads the quiz when the other has answered it: none is told that the token is spent."""
    with_clock(client, now)
    list_id = await known_list(client, words=6)
    ada = client.member("ada")
    for number in range(5):
        quiz = await ada.ask(START_QUIZ, input={"list": list_id, "size": 3, "kind": "MEANING"})
        now[0] += timedelta(seconds=10)
        keyed = {"token": quiz["token"], "answers": right_answers(quiz), "idempotencyKey": f"{number}"}
        answers = await gather(*(ada.ask(ANSWER_QUIZ, input=keyed) for _ in range(10)))
        assert [answer.get("code", "graded") for answer in answers] == ["graded"] * 10


# ── on the default engine ──


async def test_a_quizs_token_is_given_back_with_its_own_type(one_client: Client, now: list[datetime]) -> None:
    """As the ID that it was shown as; a number, which an ID may be, is an unknown token, and a null is none."""
    with_clock(one_client, now)
    list_id = await known_list(one_client, words=6)
    ada = one_client.member("ada")
    quiz = await ada.ask(START_QUIZ, input={"list": list_id, "size": 3, "kind": "MEANING"})
    now[0] += timedelta(seconds=3)
    right = right_answers(quiz)
    for texts in ("[String]!", "[String!]!"):
        answering = f"""
            mutation ($token: ID!, $answers: {texts}, $key: String) {{
              answerQuiz(input: {{ token: $token, answers: $answers, idempotencyKey: $key }}) {{
                ... on QuizGraded {{ result {{ correct }} }}
                ... on Refused {{ code path }}
              }}
            }}
        """
        for unknown in ("no token", 7):
            refused = await ada.ask(answering, token=unknown, answers=right)
            assert refused == {"code": "TOKEN_UNKNOWN", "path": ["input", "token"]}
        [mistaken] = (await ada.answer(answering, token=None, answers=right))["errors"]
        assert "$token" in mistaken["message"]
        graded = await ada.ask(answering, token=quiz["token"], answers=right, key="the same for both")
        assert graded == {"result": {"correct": 3}}


async def test_a_question_that_is_skipped_is_wrong(one_client: Client, now: list[datetime]) -> None:
    """A null is, as an empty text: it has its place among the answers, and the word returns soon."""
    with_clock(one_client, now)
    list_id = await known_list(one_client, words=6)
    ada = one_client.member("ada")
    quiz = await ada.ask(START_QUIZ, input={"list": list_id, "size": 4, "kind": "MEANING"})
    now[0] += timedelta(seconds=4)
    _, _, *right = right_answers(quiz)
    skipping = {"token": quiz["token"], "answers": [None, "", *right], "idempotencyKey": "skipping"}
    assert await ada.code(ANSWER_QUIZ, input={**skipping, "answers": [None] * 3}) == "INVALID_INPUT"
    assert await ada.code(ANSWER_QUIZ, input={**skipping, "answers": [None] * 51}) == "INVALID_INPUT"
    for _ in range(2):
        graded = await ada.ask(ANSWER_QUIZ, input=skipping)
        assert graded["result"]["correct"] == 2
        assert [answer["given"] for answer in graded["answers"]] == ["", "", *right]
        assert [answer["right"] for answer in graded["answers"]] == [False, False, True, True]
    now[0] += timedelta(minutes=2)
    assert await ada.ask("{ viewer { dueCount } }") == {"dueCount": 2}


async def test_answers_that_cannot_count_are_refused(one_client: Client, now: list[datetime]) -> None:
    """By someone else, altered, too fast, too few, too many, too long, late: nothing is stored, and the quiz stays."""
    with_clock(one_client, now)
    list_id = await known_list(one_client, words=6)
    ada, bob = one_client.member("ada"), one_client.member("bob")
    quiz = await ada.ask(START_QUIZ, input={"list": list_id, "size": 4, "kind": "MEANING"})
    token, right = quiz["token"], right_answers(quiz)
    assert quiz["earliestAnswerAt"] == iso(now[0] + timedelta(seconds=4))
    now[0] += timedelta(seconds=1)
    refused = await ada.ask(ANSWER_QUIZ, input={"token": token, "answers": right})
    assert (refused["code"], refused["retryAfterSeconds"]) == ("RATE_LIMITED", 3.0)
    now[0] += timedelta(seconds=3)
    assert await bob.code(ANSWER_QUIZ, input={"token": token, "answers": right}) == "TOKEN_UNKNOWN"
    assert await one_client.code(ANSWER_QUIZ, input={"token": token, "answers": right}) == "NOT_SIGNED_IN"
    for wrong in ("", "none", token[:-1], token + "A", ("B" if token[0] == "A" else "A") + token[1:], "x" * 5000):
        assert await ada.code(ANSWER_QUIZ, input={"token": wrong, "answers": right}) == "TOKEN_UNKNOWN"
    for answers in ([], right[1:], [*right, "more"], [""] * 4_000, ["x" * 1001, *right[1:]]):
        refused = await ada.ask(ANSWER_QUIZ, input={"token": token, "answers": answers})
        assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "answers"])
    assert [result async for result in one_client.services.table.scan(QUIZ)] == []
    assert (await ada.ask(ANSWER_QUIZ, input={"token": token, "answers": right}))["result"]["correct"] == 4
    late = await ada.ask(START_QUIZ, input={"list": list_id, "size": 4, "kind": "MEANING"})
    now[0] += timedelta(hours=1)
    assert (
        await ada.code(ANSWER_QUIZ, input={"token": late["token"], "answers": right_answers(late)}) == "TOKEN_EXPIRED"
    )


async def test_a_quiz_of_a_deleted_list_is_not_graded(one_client: Client, now: list[datetime]) -> None:
    """A word that was removed meanwhile is."""
    with_clock(one_client, now)
    list_id, other = await known_list(one_client, words=6), await known_list(one_client, "Other", words=3)
    ada, editor = one_client.member("ada"), one_client.member("eve", Role.EDITOR)
    quiz = await ada.ask(START_QUIZ, input={"list": list_id, "size": 3, "kind": "MEANING"})
    second = await ada.ask(START_QUIZ, input={"list": other, "size": 3, "kind": "MEANING"})
    await editor.ask(DELETE_LIST, input={"list": list_id})
    await editor.ask(REMOVE_WORD, input={"word": (await word_ids(editor, other))[0]})
    now[0] += timedelta(seconds=10)
    assert await ada.code(ANSWER_QUIZ, input={"token": quiz["token"], "answers": right_answers(quiz)}) == "NOT_FOUND"
    graded = await ada.ask(ANSWER_QUIZ, input={"token": second["token"], "answers": right_answers(second)})
    assert graded["result"]["correct"] == 3
    assert len({answer["word"]["id"] for answer in graded["answers"]}) == 3


async def test_a_quiz_needs_words_to_ask_about(one_client: Client) -> None:
    """Lists that are too short, hidden, or lack what the kind asks about are refused with the reason."""
    ada = one_client.member("ada")
    list_id = await known_list(one_client, words=4)
    own = await private_list(one_client.member("bob"))
    for size in (0, 2, 51, -1):
        refused = await ada.ask(START_QUIZ, input={"list": list_id, "size": size, "kind": "MEANING"})
        assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "size"])
    refused = await ada.ask(START_QUIZ, input={"list": list_id, "size": 5, "kind": "MEANING"})
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "size"])
    assert "4 questions" in refused["message"]
    refused = await ada.ask(START_QUIZ, input={"list": list_id, "size": 3, "kind": "READING"})
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "kind"])
    assert await ada.code(START_QUIZ, input={"list": own, "size": 3, "kind": "MEANING"}) == "NOT_FOUND"
    assert await one_client.code(START_QUIZ, input={"list": list_id, "size": 3, "kind": "MEANING"}) == "NOT_SIGNED_IN"
    mine = await private_list(ada, words=0)
    refused = await ada.ask(START_QUIZ, input={"list": mine, "size": 3, "kind": "MEANING"})
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "list"])
    spanish = [{"term": text, "definition": text.upper(), "reading": f"[{text}]"} for text in ("uno", "dos", "tres")]
    await ada.ask(ADD_WORDS, input={"list": mine, "words": spanish})
    refused = await ada.ask(START_QUIZ, input={"list": mine, "size": 3, "kind": "CHARACTERS"})
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "kind"])
    quiz = await ada.ask(START_QUIZ, input={"list": mine, "size": 3, "kind": "READING"})
    assert all(f"[{question['prompt']}]" in question["choices"] for question in quiz["questions"])


async def test_a_quiz_is_found_among_many_removed_words(one_client: Client) -> None:
    """Also if hardly a random word is left."""
    list_id = await known_list(one_client, words=90)
    editor = one_client.member("eve", Role.EDITOR)
    await gather(*(editor.ask(REMOVE_WORD, input={"word": word}) for word in (await word_ids(editor, list_id))[:80]))
    ada = one_client.member("ada")
    for _ in range(3):
        quiz = await ada.ask(START_QUIZ, input={"list": list_id, "size": 10, "kind": "MEANING"})
        assert len(quiz["questions"]) == 10


@pytest.mark.parametrize("first", [0, 650, 1290])
async def test_a_quiz_finds_the_few_words_that_it_may_ask_about(
    one_client: Client, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """Wherever they are in a long list, and wherever it begins to look; it is refused only if there are too few."""
    editor, ada = one_client.member("eve", Role.EDITOR), one_client.member("ada")
    list_id = (await editor.ask(CREATE_LIST, input={"name": "Mixed", "public": True}))["list"]["id"]
    words: list[dict[str, str]] = [{"term": f"w{number}", "definition": f"d{number}"} for number in range(1300)]
    for word in words[first : first + 10]:
        word["reading"] = f"[{word['term']}]"
    for start in range(0, 1300, 500):
        await editor.ask(ADD_WORDS, input={"list": list_id, "words": words[start : start + 500]})
    wanted = {"list": list_id, "size": 10, "kind": "READING"}
    for _ in range(6):
        quiz = await ada.ask(START_QUIZ, input=wanted)
        assert len(quiz["questions"]) == 10
    refused = await ada.ask(START_QUIZ, input={**wanted, "size": 11})
    assert refused["message"] == "This list has words for 10 questions of this kind. Ask for no more."
    refused = await ada.ask(START_QUIZ, input={**wanted, "kind": "CHARACTERS"})
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "kind"])
    monkeypatch.setattr("datastore.vocabulary.words._READS", (300, 300))
    refused = await ada.ask(START_QUIZ, input={**wanted, "kind": "CHARACTERS"})
    assert refused["message"] == (
        "Only a part of this list was searched, and it has words for 0 questions of this kind. Choose another kind."
    )


async def test_proven_results_have_a_leaderboard_of_their_own(one_client: Client, now: list[datetime]) -> None:
    """Beside those that members report themselves."""
    with_clock(one_client, now)
    list_id = await known_list(one_client, words=6)
    ada, bob = one_client.member("ada"), one_client.member("bob")
    quiz = await ada.ask(START_QUIZ, input={"list": list_id, "size": 3, "kind": "MEANING"})
    now[0] += timedelta(seconds=3)
    graded = await ada.ask(ANSWER_QUIZ, input={"token": quiz["token"], "answers": right_answers(quiz)})
    await bob.ask(RECORD_QUIZ, input={"list": list_id, "correct": 999, "total": 1000})
    on = graded["result"]["date"]
    names = {
        proven: [row["user"]["name"] for row in (await ada.ask(QUIZ_LEADERBOARD, on=on, proven=proven))["nodes"]]
        for proven in (None, True, False)
    }
    assert names == {None: ["Bob", "Ada"], True: ["Ada"], False: ["Bob"]}
    proven = await bob.ask("{ viewer { quizResults { nodes { proven } } } }")
    assert proven == {"quizResults": {"nodes": [{"proven": False}]}}


async def test_a_day_that_has_begun_nowhere_is_not_looked_for(one_client: Client, now: list[datetime]) -> None:
    """Else a stranger could have the service read ten thousand years."""
    with_clock(one_client, now)
    read: list[str] = []

    async def note(operation: str, send: Send) -> object:
        if is_of_request():
            read.append(operation)
        return await send()

    with intercepted(one_client.services.table, ("query",), note):
        for days in (2, 100_000):
            on = (now[0] + timedelta(days=days)).date().isoformat()
            assert (await one_client.ask(QUIZ_LEADERBOARD, on=on))["nodes"] == []
        assert read == []
        await one_client.ask(QUIZ_LEADERBOARD, on=(now[0] + timedelta(hours=14)).date().isoformat())
    assert read


async def test_several_quizzes_at_once_take_as_long_as_in_turn(one_client: Client, now: list[datetime]) -> None:
    """The time counts from the quiz that the member answered before, if that was later than the start."""
    with_clock(one_client, now)
    list_id = await known_list(one_client, words=6)
    ada, bob = one_client.member("ada"), one_client.member("bob")
    wanted = {"list": list_id, "size": 3, "kind": "MEANING"}
    given = []
    for _ in range(4):
        quiz = await ada.ask(START_QUIZ, input=wanted)
        given.append({"token": quiz["token"], "answers": right_answers(quiz)})
    bobs = await bob.ask(START_QUIZ, input=wanted)
    now[0] += timedelta(seconds=30)
    for number in range(1, 5):
        answers = await gather(*(ada.ask(ANSWER_QUIZ, input=each) for each in given))
        codes = sorted(answer.get("code", "graded") for answer in answers)
        assert codes == ["RATE_LIMITED"] * (4 - number) + ["TOKEN_SPENT"] * (number - 1) + ["graded"]
        assert {answer.get("retryAfterSeconds") for answer in answers} <= {None, 3.0}
        now[0] += timedelta(seconds=2)
        assert "graded" not in [await ada.code(ANSWER_QUIZ, input=each) for each in given]
        now[0] += timedelta(seconds=1)
    graded = await bob.ask(ANSWER_QUIZ, input={"token": bobs["token"], "answers": right_answers(bobs)})
    assert graded["result"]["correct"] == 3


async def test_waiting_for_a_turn_gains_no_time(one_client: Client, now: list[datetime]) -> None:
    """An answer counts as given when it is graded, not when it was sent."""
    with_clock(one_client, now)
    list_id, ada = await known_list(one_client, words=6), one_client.member("ada")
    given = []
    for _ in range(3):
        quiz = await ada.ask(START_QUIZ, input={"list": list_id, "size": 3, "kind": "MEANING"})
        given.append({"token": quiz["token"], "answers": right_answers(quiz)})
    now[0] += timedelta(seconds=30)
    turn = one_client.services.turn("quizzes", "ada")
    async with turn:
        sent = gather(*(ada.ask(ANSWER_QUIZ, input=each) for each in given))
        while len(turn._waiters or ()) < 3:
            await sleep(0)
        now[0] += timedelta(seconds=5)
    codes = [answer.get("code", "graded") for answer in await sent]
    assert sorted(codes) == ["RATE_LIMITED", "RATE_LIMITED", "graded"]


async def test_two_processes_grade_no_two_quizzes_of_a_member_within_their_time(
    one_table: Table, default_engine: RunningEngine, now: list[datetime]
) -> None:
    """The second finds in the table that the first has graded one, though it has read the days before."""
    settings = settings_for(default_engine, one_table.name)
    async with serving(settings) as client, serving(settings) as other:
        with_clock(client, now)
        with_clock(other, now)
        list_id = await known_list(client, words=6)
        wanted = {"list": list_id, "size": 3, "kind": "MEANING"}
        for round_ in range(5):  # the first of a day, and others
            pairs = []
            for served in (client, other):
                quiz = await served.member("ada").ask(START_QUIZ, input=wanted)
                pairs.append((served, {"token": quiz["token"], "answers": right_answers(quiz)}))
            now[0] += timedelta(seconds=10)
            codes = await gather(*(each.member("ada").ask(ANSWER_QUIZ, input=given) for each, given in pairs))
            assert sorted(answer.get("code", "graded") for answer in codes) == ["RATE_LIMITED", "graded"]
            assert len([result async for result in one_table.scan(QUIZ, consistent=True)]) == round_ + 1


async def test_answers_of_one_member_at_once_are_all_graded(
    one_client: Client, one_table: Table, now: list[datetime]
) -> None:
    """Of quizzes about the same words: each is written once, as nobody else writes meanwhile."""
    with_clock(one_client, now)
    one_client.services.policy = replace(one_client.services.policy, quiz_seconds_per_question=0)
    list_id = await known_list(one_client, words=12)
    ada, given = one_client.member("ada"), []
    for _ in range(40):
        quiz = await ada.ask(START_QUIZ, input={"list": list_id, "size": 10, "kind": "MEANING"})
        given.append({"token": quiz["token"], "answers": right_answers(quiz)})
    now[0] += timedelta(seconds=10)
    refused = 0

    async def counted(_: str, send: Send) -> object:
        nonlocal refused
        try:
            return await send()
        except ClientError:
            refused += 1
            raise

    with intercepted(one_table, ("transact_write_items",), counted):
        answers = await gather(*(ada.ask(ANSWER_QUIZ, input=each) for each in given))
    assert [answer.get("code", "graded") for answer in answers] == ["graded"] * 40
    assert refused == 0
    assert sum([card.reviews async for card in one_table.scan(CARD, consistent=True)]) == 400
    assert await breaches_in(one_client.services) == []


async def test_quizzes_of_a_private_list_are_not_proven(one_client: Client, now: list[datetime]) -> None:
    """Its owner wrote the answers. They count with those that members report themselves."""
    with_clock(one_client, now)
    ada = one_client.member("ada")
    mine = await private_list(ada, words=4)
    quiz = await ada.ask(START_QUIZ, input={"list": mine, "size": 4, "kind": "MEANING"})
    now[0] += timedelta(seconds=4)
    result = (await ada.ask(ANSWER_QUIZ, input={"token": quiz["token"], "answers": right_answers(quiz)}))["result"]
    assert (result["correct"], result["proven"]) == (4, False)
    for list_id in (None, mine):
        rows = {
            proven: (await ada.ask(QUIZ_LEADERBOARD, on=result["date"], list=list_id, proven=proven))["nodes"]
            for proven in (None, True, False)
        }
        assert rows[True] == []
        assert (
            rows[None] == rows[False] == [{"rank": 1, "user": {"name": "Ada"}, "correct": 4, "total": 4, "quizzes": 1}]
        )


async def test_a_member_s_file_tells_no_answers_of_a_quiz(one_client: Client, now: list[datetime]) -> None:
    """It has the quiz, also one about words that the member knows, and says what it leaves out of it."""
    with_clock(one_client, now)
    list_id, ada = await known_list(one_client, words=6), one_client.member("ada")
    first = await ada.ask(START_QUIZ, input={"list": list_id, "size": 6, "kind": "MEANING"})
    now[0] += timedelta(seconds=6)
    assert "result" in await ada.ask(ANSWER_QUIZ, input={"token": first["token"], "answers": right_answers(first)})
    quiz = await ada.ask(START_QUIZ, input={"list": list_id, "size": 3, "kind": "MEANING"})
    lines = [line async for line in file_lines(one_client.services.table, "ada", "now")]
    header, *records = map(orjson.loads, lines)
    quizzes = [record["record"] for record in records if record["kind"] == "openQuiz"]
    assert len(quizzes) == 2
    assert "ordinal" not in str(quizzes)
    assert {"openQuiz.words", "openQuiz.cards"} <= header["leftOut"].keys()
    assert not [answer for answer in right_answers(quiz) if answer.encode() in b"".join(lines)]


async def test_starting_quizzes_has_a_rate_of_its_own(one_client: Client) -> None:
    """A lower one than that of results, which are written as before."""
    list_id = await known_list(one_client, words=6)
    ada, bob = one_client.member("ada"), one_client.member("bob")
    wanted = {"list": list_id, "size": 3, "kind": "MEANING"}
    one_client.services.rates = Rates(lambda: 0.0)  # a clock that stands still
    for _ in range(parse_rate(START_RATE).limit):
        assert "token" in await ada.ask(START_QUIZ, input=wanted)
    assert await ada.code(START_QUIZ, input=wanted) == "RATE_LIMITED"
    assert "token" in await bob.ask(START_QUIZ, input=wanted)
    assert "result" in await ada.ask(RECORD_QUIZ, input={"list": list_id, "correct": 1, "total": 1})


async def test_a_quiz_folds_each_text_once(one_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it looks through the whole list, and however often it tries."""
    editor, ada = one_client.member("eve", Role.EDITOR), one_client.member("ada")
    list_id = (await editor.ask(CREATE_LIST, input={"name": "Alike", "public": True}))["list"]["id"]
    words = [{"term": f"w{number}", "definition": "the same"} for number in range(400)]
    await editor.ask(ADD_WORDS, input={"list": list_id, "words": words})
    folded: list[str] = []

    def fold(form: Literal["NFD"], text: str) -> str:
        folded.append(text)
        return in_form(form, text)

    monkeypatch.setattr(quizzes, "in_form", fold)
    assert await ada.code(START_QUIZ, input={"list": list_id, "size": 10, "kind": "MEANING"}) == "INVALID_INPUT"
    assert len(folded) == 2 * len(set(folded)) > 600


async def test_starting_and_answering_take_two_dependent_calls(one_client: Client, now: list[datetime]) -> None:
    """A quiz of twenty, also for words whose cards exist already."""
    with_clock(one_client, now)
    list_id = await known_list(one_client, words=60)
    ada, table = one_client.member("ada"), one_client.services.table
    await ada.ask('mutation { updateProfile(input: { name: "Ada" }) { __typename } }')
    for _ in range(3):
        wanted = {"list": list_id, "size": 20, "kind": "MEANING"}
        quiz, calls = await dependent_calls(table, ada.ask(START_QUIZ, input=wanted))
        assert calls <= 2
        now[0] += timedelta(seconds=20)
        given = {"token": quiz["token"], "answers": right_answers(quiz)}
        graded, calls = await dependent_calls(table, ada.ask(ANSWER_QUIZ, input=given))
        assert graded["result"]["correct"] == 20
        assert calls <= 2


async def test_the_largest_quiz_schedules_all_its_words(one_client: Client, now: list[datetime]) -> None:
    """Twice fifty words: the second time each has a card already."""
    with_clock(one_client, now)
    list_id = await known_list(one_client, words=50)
    ada = one_client.member("ada")
    for turn in (1, 2):
        quiz = await ada.ask(START_QUIZ, input={"list": list_id, "size": 50, "kind": "MEANING"})
        now[0] += timedelta(minutes=1)
        given = {"token": quiz["token"], "answers": right_answers(quiz), "idempotencyKey": str(turn)}
        assert (await ada.ask(ANSWER_QUIZ, input=given))["result"]["correct"] == 50
        cards = [card async for card in one_client.services.table.scan(CARD)]
        assert [card.reviews for card in cards] == [turn] * 50
    assert await breaches_in(one_client.services) == []


@pytest.mark.soak
async def test_the_largest_quiz_is_whole_wherever_its_answer_is_killed(
    one_table: Table, default_engine: RunningEngine, now: list[datetime]
) -> None:
    """The next reader sees all fifty cards at their new times, each once."""
    settings, write = settings_for(default_engine, one_table.name), 0
    async with serving(settings) as client:
        with_clock(client, now)
        list_id = await known_list(client, words=50)
    for turn in range(1, 100):
        async with serving(settings) as client:
            with_clock(client, now)
            ada = client.member("ada")
            quiz = await ada.ask(START_QUIZ, input={"list": list_id, "size": 50, "kind": "MEANING"})
            now[0] += timedelta(minutes=1)
            given = {"token": quiz["token"], "answers": ["wrong"] * 50}
            with killed_at(client.services.table, write) as written, contextlib.suppress(Killed):
                await ada.ask(ANSWER_QUIZ, input=given)
        async with serving(settings) as client:
            with_clock(client, now)
            ada = client.member("ada")
            assert await breaches_in(client.services) == []
            assert await ada.ask("{ viewer { dueCount } }") == {"dueCount": 0}
            now[0] += timedelta(days=1)
            nodes = (await ada.ask("{ viewer { due(first: 100) { nodes { reviews word { id } } } } }"))["due"]["nodes"]
            assert [node["reviews"] for node in nodes] == [turn] * 50
            assert len({node["word"]["id"] for node in nodes}) == 50
            assert await breaches_in(client.services) == []
        if written[0] <= write:
            break
        write += 1
    assert write > 1


async def test_a_killed_answer_is_whole_or_never_was(
    one_table: Table, default_engine: RunningEngine, now: list[datetime]
) -> None:
    """After the write the result is there with its day and its cards; the repeat is told that it was answered."""
    settings = settings_for(default_engine, one_table.name)
    async with serving(settings) as client:
        with_clock(client, now)
        list_id = await known_list(client, words=6)
        ada = client.member("ada")
        quiz = await ada.ask(START_QUIZ, input={"list": list_id, "size": 5, "kind": "MEANING"})
        now[0] += timedelta(seconds=5)
        given = {"token": quiz["token"], "answers": right_answers(quiz), "idempotencyKey": "once"}
        with killed_at(client.services.table, 0), pytest.raises(Killed):
            await ada.ask(ANSWER_QUIZ, input=given)
    async with serving(settings) as client:
        with_clock(client, now)
        ada = client.member("ada")
        assert (await ada.ask(ANSWER_QUIZ, input=given))["result"]["correct"] == 5
        assert await ada.code(ANSWER_QUIZ, input={**given, "idempotencyKey": "again"}) == "TOKEN_SPENT"
        assert len([result async for result in one_table.scan(QUIZ)]) == 1
        assert [card.reviews async for card in one_table.scan(CARD)] == [1] * 5
        assert await breaches_in(client.services) == []
        (stored,) = [open_quiz async for open_quiz in one_table.scan(OPEN_QUIZ)]
        assert stored.answered_at == now[0]


@pytest.mark.parametrize("letter", ["a", "д", "漢", "😀", '"'])
async def test_a_quiz_about_long_definitions_is_asked_or_refused_by_its_size(
    one_client: Client, one_table: Table, letter: str
) -> None:
    """What is refused says how many questions are possible; with a key these are asked, and the same again."""
    editor = one_client.member("eve", Role.EDITOR)
    long = (await editor.ask(CREATE_LIST, input={"name": "Long", "public": True}))["list"]["id"]
    words = [{"term": f"t{number}", "definition": f"{number:04d}" + letter * 996} for number in range(60)]
    for start in range(0, 60, 20):
        assert "message" not in await editor.ask(ADD_WORDS, input={"list": long, "words": words[start : start + 20]})
    ada, wanted = one_client.member("ada"), {"list": long, "size": 50, "idempotencyKey": "mine"}
    quiz = await ada.ask(START_QUIZ, input=wanted)
    assert ("token" in quiz) == (letter == "a")
    if letter != "a":
        assert (quiz["code"], quiz["path"]) == ("INVALID_INPUT", ["input", "size"])
        wanted["size"] = int(quiz["message"].split("Ask for ")[1].split()[0])
        assert wanted["size"] >= 15
        quiz = await ada.ask(START_QUIZ, input=wanted)
    assert len(quiz["questions"]) == wanted["size"]
    assert await ada.ask(START_QUIZ, input=wanted) == quiz
    assert len([open_quiz async for open_quiz in one_table.scan(OPEN_QUIZ)]) == 1
