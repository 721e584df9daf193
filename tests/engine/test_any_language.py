"""Words of any language, over HTTP, in files and in emails; Chinese ones are as they were."""

import asyncio
from dataclasses import replace
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from datastore.dynamo import Table
from datastore.values.seal import Seal
from datastore.vocabulary import lists
from datastore.vocabulary.subscriptions import CharacterSet
from datastore.vocabulary.words import Word, all_words
from resolvers.requests.context import Role
from resolvers.values.node_ids import parse_node_key
from server.mail.daily_run import email_of_words
from server.mail.message import Letterhead, Section, Unsubscription
from server.settings import Settings
from tests.client import Client, serving
from tests.leagues import CREATE_LEAGUE
from tests.queries import (
    ADD_CONTENDER,
    ADD_WORDS,
    CREATE_EVENT,
    CREATE_LIST,
    SUBSCRIBE,
    UPDATE_PROFILE,
    UPDATE_WORD,
    WRITE_SENTENCE,
)
from tests.season import in_hours
from tests.transfers import import_contenders, import_words
from tests.vocabulary import ANSWER_QUIZ, START_QUIZ, public_list, right_answers, today

PERSIAN, SINHALA, WOMAN_IN_SPACE = "می\u200cخواهم", "ශ්\u200dරී", "👩\u200d🚀"
"""Spelt with a joiner, which shows nothing itself."""
ARABIC = {
    "term": "كتاب",
    "reading": "kitāb",
    "definition": "book",
    "example": "هذا كتاب جديد.",
    "audioUrl": "https://example.org/kitab.mp3",
}


async def test_a_word_of_any_language_has_a_reading_an_example_and_a_sound(client: Client) -> None:
    """Old fields answer too: `simplified` with the term; character sets make no difference."""
    list_id = await public_list(client, words=0)
    editor, ada = client.member("eve", Role.EDITOR), client.member("ada")
    chinese = {"simplified": "书", "traditional": "書", "pinyin": "shū", "definition": "book"}
    words = [ARABIC, {"term": "el libro", "definition": "book"}, chinese]
    added = (await editor.ask(ADD_WORDS, input={"list": list_id, "words": words}))["words"]
    texts = [{name: text for name, text in word.items() if name != "id"} for word in added]
    assert texts[0] == {**ARABIC, "simplified": "كتاب", "traditional": None, "pinyin": None}
    empty = {"reading": None, "example": None, "audioUrl": None}
    assert texts[1] == {
        **empty, "term": "el libro", "simplified": "el libro", "traditional": None, "pinyin": None,
        "definition": "book",
    }  # fmt: skip
    assert texts[2] == {**empty, **chinese, "term": "书", "reading": "shū"}
    assert (await ada.ask(SUBSCRIBE, input={"list": list_id, "characterSet": "TRADITIONAL"}))["subscription"]["active"]
    changed = await editor.ask(UPDATE_WORD, input={"word": added[1]["id"], "term": "la revista", "example": "¡Olé!"})
    assert (changed["word"]["simplified"], changed["word"]["example"]) == ("la revista", "¡Olé!")


@pytest.mark.parametrize(
    ("texts", "path"),
    [
        ({"definition": "x"}, "term"),
        ({"term": "a", "simplified": "b", "definition": "x"}, "term"),
        ({"term": " ", "definition": "x"}, "term"),
        ({"term": "x" * 101, "definition": "x"}, "term"),
        ({"term": "a", "traditional": "b", "definition": "x"}, "traditional"),
        ({"term": "a", "pinyin": "b", "definition": "x"}, "pinyin"),
        ({"term": "a", "reading": "x" * 201, "definition": "x"}, "reading"),
        ({"term": "a", "example": "x\x07", "definition": "x"}, "example"),
        ({"term": "a", "audioUrl": "http://example.org/a.mp3", "definition": "x"}, "audioUrl"),
        ({"term": "a", "audioUrl": "javascript:alert(1)", "definition": "x"}, "audioUrl"),
        ({"term": "a\u202eb", "definition": "x"}, "term"),
        ({"term": "\u200c", "definition": "x"}, "term"),
        ({"term": "a\U0010ffff", "definition": "x"}, "term"),
        ({"term": "a", "definition": "\u200b"}, "definition"),
    ],
)
async def test_a_word_that_is_none_is_refused(one_client: Client, texts: dict[str, str], path: str) -> None:
    """With the path of the text at fault."""
    list_id = await public_list(one_client, words=0)
    editor = one_client.member("eve", Role.EDITOR)
    refused = await editor.ask(ADD_WORDS, input={"list": list_id, "words": [texts]})
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "words", "0", path])


MARKS = "b" + "\u0345\u0334" * 16
"""One mark more than a letter may have in a row, and then one more."""


@pytest.mark.parametrize(
    ("mutation", "texts"),
    [
        (CREATE_LIST, {"name": MARKS}),
        (WRITE_SENTENCE, {"text": f"A {MARKS}"}),
        (UPDATE_PROFILE, {"name": MARKS}),
        (UPDATE_PROFILE, {"email": f"{MARKS}@example.org"}),
        (ADD_CONTENDER, {"name": MARKS, "board": "main"}),
        (ADD_CONTENDER, {"name": "Ada", "description": MARKS, "board": "main"}),
        (CREATE_EVENT, {"name": MARKS, "season": "2026", "startsAt": in_hours(24)}),
        (CREATE_EVENT, {"name": "Revolution", "season": MARKS, "startsAt": in_hours(24)}),
        (CREATE_LEAGUE, {"name": MARKS, "season": "2026", "entry": "OPEN"}),
    ],
)
async def test_a_text_with_too_many_marks_in_a_row_is_refused(
    one_client: Client, mutation: str, texts: dict[str, str]
) -> None:
    """Wherever texts are compared: it would take time by the square of their number."""
    assert await one_client.member("eve", Role.EDITOR).code(mutation, input=texts) == "INVALID_INPUT"


@pytest.mark.parametrize("name", ["term", "reading", "example", "definition"])
async def test_a_word_with_too_many_marks_in_a_row_is_refused(one_client: Client, tmp_path: Path, name: str) -> None:
    """Also from a file. Thirty of them are kept."""
    list_id = await public_list(one_client, "Marks", words=0)
    editor, texts = one_client.member("eve", Role.EDITOR), {"term": "a", "definition": "x"}
    refused = await editor.ask(ADD_WORDS, input={"list": list_id, "words": [{**texts, name: MARKS}]})
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "words", "0", name])
    added = await editor.ask(ADD_WORDS, input={"list": list_id, "words": [{**texts, name: MARKS[:31]}]})
    assert added["words"][0][name] == MARKS[:31]
    columns = {"term": "c", "reading": "c", "example": "c", "definition": "x", name: MARKS}
    file = tmp_path / "words.csv"
    file.write_text(f"{','.join(columns)}\n{','.join(columns.values())}\n", encoding="utf-8")
    summary = await import_words(one_client.services, file, "Marks")
    assert (summary.added, [problem.row.number for problem in summary.problems]) == (0, [2])


async def test_a_contender_s_file_with_too_many_marks_in_a_row_is_named_as_a_problem(
    one_client: Client, tmp_path: Path
) -> None:
    """In a folder, where its name is brought into one form, and in a table."""
    picture = '<svg xmlns="http://www.w3.org/2000/svg"><rect width="1" height="1"/></svg>'
    for name in (MARKS, "Ada"):
        (tmp_path / f"{name}.svg").write_text(picture)
    [problem] = (await import_contenders(one_client.services, tmp_path)).problems
    assert f"{problem}".startswith(f"{MARKS}.svg: ")
    table = tmp_path / "names.csv"
    table.write_text(f"name\n{MARKS}\nAda\n", encoding="utf-8")
    [problem] = (await import_contenders(one_client.services, table)).problems
    assert f"{problem}".startswith("line 2: ")


async def test_an_answer_with_too_many_marks_in_a_row_is_refused(one_client: Client) -> None:
    """It was never a word's, and would be compared with one. The quiz stays open."""
    one_client.services.policy = replace(one_client.services.policy, quiz_seconds_per_question=0)
    list_id, ada = await public_list(one_client), one_client.member("ada")
    quiz = await ada.ask(START_QUIZ, input={"list": list_id, "size": 3, "kind": "MEANING"})
    right = right_answers(quiz)
    refused = await ada.ask(ANSWER_QUIZ, input={"token": quiz["token"], "answers": [*right[1:], MARKS]})
    assert (refused["code"], refused["path"]) == ("INVALID_INPUT", ["input", "answers"])
    graded = await ada.ask(ANSWER_QUIZ, input={"token": quiz["token"], "answers": right})
    assert graded["result"]["correct"] == 3


async def test_an_answer_is_right_however_its_accents_are_stored(one_client: Client) -> None:
    """A list from a file with accents apart, and a client that composes them."""
    one_client.services.policy = replace(one_client.services.policy, quiz_seconds_per_question=0)
    list_id = await public_list(one_client, words=0)
    words = [{"term": text, "definition": normalize("NFD", f"Ä{text} Ø 한{text}")} for text in "abcd"]
    eve, ada = one_client.member("eve", Role.EDITOR), one_client.member("ada")
    assert "code" not in await eve.ask(ADD_WORDS, input={"list": list_id, "words": words})
    quiz = await ada.ask(START_QUIZ, input={"list": list_id, "size": 4, "kind": "MEANING"})
    answers = [normalize("NFC", f"Ä{question['prompt']}  Ø 한{question['prompt']}") for question in quiz["questions"]]
    graded = await ada.ask(ANSWER_QUIZ, input={"token": quiz["token"], "answers": answers})
    assert graded["result"]["correct"] == 4


async def test_words_that_are_spelt_with_joiners_are_kept_as_they_are(one_client: Client, tmp_path: Path) -> None:
    """In a list's name, all texts of a word, a sentence and a file; a text of nothing else is refused."""
    list_id = await public_list(one_client, f"Persian {PERSIAN}", words=0)
    editor, ada = one_client.member("eve", Role.EDITOR), one_client.member("ada")
    texts = {"term": PERSIAN, "reading": SINHALA, "example": f"{PERSIAN}.", "definition": WOMAN_IN_SPACE}
    added = await editor.ask(ADD_WORDS, input={"list": list_id, "words": [texts]})
    assert {name: added["words"][0][name] for name in texts} == texts
    written = await ada.ask(WRITE_SENTENCE, input={"text": f"{PERSIAN}\r\n\t{SINHALA}"})
    assert written["sentence"]["text"] == f"{PERSIAN}\r\n\t{SINHALA}"
    for bad in ("\u200c\n\u200d", f"{PERSIAN}\x1b", f"{PERSIAN}\u202e"):
        assert await ada.code(WRITE_SENTENCE, input={"text": bad}) == "INVALID_INPUT"
    file = tmp_path / "words.csv"
    file.write_text(f"term,definition\n{PERSIAN},{WOMAN_IN_SPACE}\n{SINHALA},Sri\n\u200d,none\n", encoding="utf-8")
    summary = await import_words(one_client.services, file, f"Persian {PERSIAN}")
    assert (summary.added, [problem.row.number for problem in summary.problems]) == (2, [4])


async def test_a_file_has_words_of_any_language(one_client: Client, tmp_path: Path) -> None:
    """Rows with a term and Chinese rows, in one file; a row with both is reported."""
    file = tmp_path / "Mixed.csv"
    file.write_text(
        "term,Reading,example,audioUrl,definition,simplified,pinyin\n"
        'كتاب,kitāb,"هذا كتاب, جديد.",https://example.org/k.mp3,book,,\n'
        ",,,,book,书,shū\n"
        "a,,,,both,b,\n"
        "c,,,ftp://example.org,bad sound,,\n",
        encoding="utf-8",
    )
    summary = await import_words(one_client.services, file, "Mixed")
    assert (summary.added, [problem.row.number for problem in summary.problems]) == (2, [4, 5])
    again = await import_words(one_client.services, file, "Mixed")
    assert (again.added, again.existing) == (0, 2)
    query = "{ wordLists { nodes { words { nodes { term reading example audioUrl pinyin } } } } }"
    (listed,) = (await one_client.ask(query))["nodes"]
    first = {name: text for name, text in ARABIC.items() if name != "definition"}
    assert listed["words"]["nodes"] == [
        {**first, "example": "هذا كتاب, جديد.", "audioUrl": "https://example.org/k.mp3", "pinyin": None},
        {"term": "书", "reading": "shū", "example": None, "audioUrl": None, "pinyin": "shū"},
    ]


async def test_a_word_is_imported_once_however_its_accents_are_stored(one_client: Client, tmp_path: Path) -> None:
    """Systems store é as one character or as two; to people the words are the same."""
    file, text = tmp_path / "Caffè.csv", "term,reading,definition\ncafé,kafé,une boisson corsée\n"
    added = []
    for spelling in (normalize("NFC", text), normalize("NFD", text)):
        file.write_text(spelling, encoding="utf-8")
        added.append((await import_words(one_client.services, file, "Caffè")).added)
    assert added == [1, 0]
    (listed,) = (await one_client.ask("{ wordLists { nodes { wordCount } } }"))["nodes"]
    assert listed["wordCount"] == 1


async def test_a_file_that_is_imported_twice_at_once_adds_each_word_once(
    one_table: Table, settings: Settings, tmp_path: Path
) -> None:
    """Each of two processes reads what the other has added meanwhile; another file's words come between them."""
    file, other = tmp_path / "words.csv", tmp_path / "other.csv"
    file.write_text(
        "term,definition\n" + "".join(f"word {number},meaning\n" for number in range(200)), encoding="utf-8"
    )
    other.write_text("term,definition\n" + "".join(f"word {number},meaning\n" for number in range(150, 350)))
    async with serving(settings) as first, serving(settings) as second:
        imports = [(first, file), (second, file), (second, other)]
        summaries = await asyncio.gather(*(import_words(client.services, path, "Words") for client, path in imports))
    (word_list,) = [each async for each in lists.lists_by_name(one_table, None)]
    words = [word.term async for word in all_words(one_table, word_list, consistent=True)]
    assert sorted(words) == sorted(f"word {number}" for number in range(350))
    assert sum(summary.added for summary in summaries) == 350
    assert [summary.added + summary.existing for summary in summaries] == [200, 200, 200]


# ── in emails ──


def email(word: Word, name: str = "Words") -> EmailMessage:
    seal = Seal(["a secret of 32 characters or more"])
    letterhead = Letterhead("words@example.org", "https://ringside.example", seal)
    message: Any = message_from_bytes(
        email_of_words(
            letterhead, "ada", "ada@example.org", [Section("l", name, CharacterSet.SIMPLIFIED, word)], today()
        ).content,
        policy=default,
    )
    assert isinstance(message, EmailMessage)
    return message


def body(message: EmailMessage, kind: str) -> str:
    part = message.get_body((kind,))
    assert part is not None
    return str(part.get_content()).replace("\r\n", "\n")


def test_an_arabic_word_is_written_from_right_to_left() -> None:
    """In HTML by `dir`; in plain lines and the subject it is isolated, so that the rest keeps its order."""
    word = Word("l", 0, "كتاب", "book", any_language=True, own_reading="kitāb", example="هذا كتاب جديد.")
    message = email(word, "كلمات أولى")
    html, text = body(message, "html"), body(message, "plain")
    assert '<div lang="und-Arab" dir="rtl" style="font-size:40px;line-height:1.2">كتاب</div>' in html
    assert '<div dir="ltr" style="font-size:18px;padding:6px 0">book</div>' in html
    assert ">هذا كتاب جديد.</div>" in html
    assert "<bdi>كلمات أولى</bdi>" in html
    assert "\u2068كتاب\u2069   kitāb\nbook\n\u2068هذا كتاب جديد.\u2069\nfrom \u2068كلمات أولى\u2069 (" in text
    assert message["Subject"] == "\u2068كتاب\u2069 (kitāb): book"


def test_a_subject_that_is_cut_turns_nothing_behind_it() -> None:
    """What mail programs show behind it, such as the beginning of the text, keeps its order."""
    subject = email(Word("l", 0, "book", "كتاب " * 40, any_language=True))["Subject"]
    assert subject.startswith("book: \u2068كتاب")
    assert (len(subject), subject.count("\u2069")) == (120, 1)


def test_an_email_spells_words_with_their_joiners() -> None:
    """In the subject and both forms of the body; what would disturb the line around it is still left out."""
    message = email(Word("l", 0, f"{PERSIAN}\u202e\u200b", SINHALA, any_language=True), WOMAN_IN_SPACE)
    assert message["Subject"] == f"\u2068{PERSIAN}\u2069: {SINHALA}"
    for form in ("html", "plain"):
        shown = body(message, form)
        assert all(text in shown for text in (PERSIAN, SINHALA, WOMAN_IN_SPACE))
        assert "\u202e" not in shown
        assert "\u200b" not in shown


@pytest.mark.parametrize(
    "text",
    [
        "\U00031350",
        "\U0001fa77\U0001fae9",
        "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
        "١٢\u06dd",
    ],
)
def test_an_email_shows_whatever_is_seen(text: str) -> None:
    """A letter and emoji that are newer than this program's Unicode, a flag that is spelt with tags, an Arabic sign."""
    message = email(Word("l", 0, text, text, any_language=True), text)
    assert message["Subject"].replace("\u2068", "").replace("\u2069", "") == f"{text}: {text}"
    assert all(body(message, form).count(text) == 3 for form in ("html", "plain"))


def test_a_chinese_word_looks_as_before() -> None:
    """With its language, its pinyin and no marks of direction."""
    message = email(Word("l", 0, "书", "book", "書", "shū"))
    assert message["Subject"] == "书 (shū): book"
    assert '<div lang="zh-Hans" dir="ltr" style="font-size:40px;line-height:1.2">书</div>' in body(message, "html")
    assert "书   shū\nbook\nfrom Words (" in body(message, "plain")


async def test_the_page_to_unsubscribe_isolates_a_lists_name(one_client: Client) -> None:
    """An Arabic name in an English sentence."""
    list_id = await public_list(one_client, "كلمات أولى")
    ada = one_client.member("ada", email="ada@example.org")
    await ada.ask(SUBSCRIBE, input={"list": list_id})
    link = Unsubscription("ada", parse_node_key("WordList", list_id))
    page = await one_client.http.get("/unsubscribe", params={"token": link.token(one_client.services.seal)})
    assert "the daily words of \u2068كلمات أولى\u2069?" in page.text


async def test_the_page_to_unsubscribe_is_in_the_readers_language(one_client: Client) -> None:
    """With its direction, and a name that is written in the other one isolated."""
    list_id = await public_list(one_client, "Words (new)")
    link = Unsubscription("ada", parse_node_key("WordList", list_id))
    given = {"token": link.token(one_client.services.seal)}
    page = await one_client.http.get("/unsubscribe", params=given, headers={"Accept-Language": "ar-EG, en;q=0.5"})
    assert '<html lang="ar" dir="rtl">' in page.text
    assert "<h1>هل تلغي الاشتراك في كلمات اليوم من \u2068Words (new)\u2069؟</h1>" in page.text
    assert "نعم، ألغِ الاشتراك</button>" in page.text
