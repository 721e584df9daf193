"""The words and links that hold rules find in a text, however it is disguised."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore.comments.hold_rules import HoldRule, HoldRules
from datastore.comments.records import Comment
from datastore.values.folding import LOOK_ALIKES
from resolvers.comments.judging import Judge, count_links, word_form

WORDS = Judge(HoldRules((HoldRule("Words", words=("viagra", "don't", "казино", "赌博", "हिन्दी", "straße", "تذاكر")),)))


def is_found(body: str) -> bool:
    comment = Comment("p", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "en", None, body, "ada")
    return bool(WORDS.suspects(comment, is_guest=False))


@pytest.mark.parametrize(
    "text",
    [
        "VIAGRA",
        "buy viagra!",
        "viagra-viagra",
        "_viagra_",
        "v\u200bi\u00ada\u2060g\u2065ra",
        "ｖｉａｇｒａ",
        "𝓿𝓲𝓪𝓰𝓻𝓪",
        "vïägrà",
        "v\u0336i\u0336a\u0336g\u0336r\u0336a\u0336",
        "vіаgrа",
        "VІАGRА",
        "ᴠiagra",
        "ⓥⓘⓐⓖⓡⓐ",
        "dont",
        "DON’T",
        "Казино",
        "кaзинo",
        "我喜欢赌博吗",
        "हिन्दी",
        "STRASSE",
        "تَذاكِر",
        "تـذاكـــر",
    ],
)
def test_a_word_is_found_as_people_read_it(text: str) -> None:
    """Without case, accents, invisible characters and forms of width, Arabic ones too; look-alikes are its letters."""
    assert is_found(text)


@pytest.mark.parametrize("text", ["viagras", "aviagra", "v i a g r a", "viagra2", "via gra", "don", "казин", "赌", ""])
def test_a_part_of_a_word_is_not_found(text: str) -> None:
    """A name that contains a word of a rule is another word."""
    assert not is_found(text)


def test_a_cyrillic_word_is_not_taken_for_a_latin_one() -> None:
    """нет has the capitals НЕТ, which spell the Dutch word het."""
    cyrillic = Judge(HoldRules((HoldRule("No", words=("нет",)),)))
    comment = Comment("p", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "en", None, "het HET", "ada")
    assert cyrillic.suspects(comment, is_guest=False) == []


DISGUISES = {letter: [letter, letter.upper(), *LOOK_ALIKES.get(letter, "")] for letter in "abcdefghijklmnopqrstuvwxyz"}
NOISE = st.text(st.sampled_from("\u200b\u00ad\u0301\u0336\ufe0f\u2060"), max_size=3)


@given(st.data(), st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), min_size=1, max_size=12))
def test_every_disguise_of_a_word_has_its_form(data: st.DataObject, word: str) -> None:
    """Look-alikes and invisible characters in any mixture."""
    judge = Judge(HoldRules((HoldRule("It", words=(word,)),)))
    text = "".join(data.draw(st.sampled_from(DISGUISES[letter])) + data.draw(NOISE) for letter in word)
    comment = Comment("p", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "en", None, f"Well, {text}!", "ada")
    assert judge.suspects(comment, is_guest=False)


@given(st.text())
def test_any_text_can_be_judged(text: str) -> None:
    """Even one of marks alone, and one that has a word's form is found by it."""
    form = word_form(text)
    if form is not None:
        comment = Comment("p", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "en", None, text, "ada")
        assert Judge(HoldRules((HoldRule("It", words=(text,)),))).suspects(comment, is_guest=False)
    assert count_links(text) >= 0


def test_marks_in_any_number_are_judged() -> None:
    """Even those that only a decomposition shows."""
    assert is_found("viagra" + "\u0f73" * 5_000)
    assert is_found("\u0301" * 5_000 + "viagra")


def test_a_sign_for_a_sentence_is_none_of_its_words() -> None:
    """A comment of 10,000 of them would be one of 180,000 letters, and nobody is answered while it is judged."""
    judge = Judge(HoldRules((HoldRule("It", words=("الله", "جلاله")),)))
    comment = Comment("p", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "ar", None, "\ufdfa \ufdfb", "ada")
    assert judge.suspects(comment, is_guest=False) == []


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("https://a.example/b?c=d#e", 1),
        ("HTTP://A.EXAMPLE", 1),
        ("see www.example.org", 1),
        ("example.org/path", 1),
        ("https://a.example,https://b.example", 2),
        ("www.a.example www.b.example c.example/d", 3),
        ("ｈｔｔｐｓ：／／a.example", 1),
        ("h\u200bttps:\u2060//a.example", 1),
        ("купи.сайт/акция", 1),
        ("उदाहरण.भारत/x", 1),
        ("例.グーグル/x", 1),
        ("example.vermögensberatung/x", 1),
        ("www\ufe0f.evil.example", 1),
        ("https:\u034f//evil.example", 1),
        ("3.5/5 stars and/or more", 0),
        ("e.g. this", 0),
        ("ada@example.org", 0),
        ("", 0),
    ],
)
def test_links_are_counted(text: str, links: int) -> None:
    """Each once, however it is written."""
    assert count_links(text) == links


def test_the_table_has_letters_of_other_scripts_only() -> None:
    """Each is one letter that nothing else takes apart, and looks like one."""
    letters = "".join(LOOK_ALIKES.values())
    assert len(set(letters)) == len(letters)
    assert all(unicodedata.category(letter)[0] == "L" and not letter.isascii() for letter in letters)
    assert all(len(unicodedata.decomposition(letter)) == 0 for letter in letters)
