"""Texts are brought into a form of Unicode only if that takes time by their length."""

from itertools import groupby
from unicodedata import combining, normalize

import pytest
from hypothesis import given
from hypothesis import strategies as some

from datastore.pickem.events import slugify
from datastore.refusals import InvalidInput
from datastore.values.folding import MOST_MARKS, in_form, is_stream_safe
from datastore.voting.contenders import folded_for_keys
from resolvers.journal.webhooks import parse_destination
from resolvers.values.texts import is_line, parse_image_address, parse_link, validate_web_address
from resolvers.vocabulary.quizzes import compared

MARKS = "\u0301\u0334\u0345\u0323\u3099\U0001d165"
DECOMPOSED = "\u0344\u0f73\u0f81\uff9e\u0390\u1f82\u01d6가ㅏ각\ufdfaﬁ"
"""Some become two marks, or begin or end with them; a halfwidth mark is none by its own class."""
TEXTS = some.lists(
    some.one_of(
        some.text(max_size=40),
        some.text(alphabet=MARKS + DECOMPOSED + "aA 漢#", max_size=80),
        some.builds(lambda text, times: text * times, some.sampled_from(MARKS + DECOMPOSED), some.integers(1, 70)),
    ),
    max_size=4,
).map("".join)


def longest_run(text: str) -> int:
    """Of marks, by the definition in UAX #15."""
    marks = (bool(combining(character)) for character in normalize("NFKD", text))
    return max((len(list(run)) for is_mark, run in groupby(marks) if is_mark), default=0)


@given(TEXTS)
def test_a_text_is_safe_by_unicode_s_own_definition(text: str) -> None:
    """Wherever the run lies, and whatever its marks come from."""
    assert is_stream_safe(text) == (longest_run(text) <= MOST_MARKS)


@given(TEXTS, some.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_a_text_with_a_longer_run_is_brought_into_no_form(text: str, form: str) -> None:
    """Others are, as by Unicode."""
    if longest_run(text) <= MOST_MARKS:
        assert in_form(form, text) == normalize(form, text)  # type: ignore[arg-type]
    else:
        with pytest.raises(InvalidInput):
            in_form(form, text)  # type: ignore[arg-type]


@given(TEXTS)
def test_a_line_that_is_accepted_can_be_folded_in_every_way(text: str) -> None:
    """No way of folding makes a run longer, so none refuses a text that was accepted."""
    line = " ".join(text.split())
    if is_line(line, len(line)):
        for fold in (compared, folded_for_keys, slugify):
            assert longest_run(fold(line)) <= MOST_MARKS


@pytest.mark.parametrize("marks", [MOST_MARKS, MOST_MARKS + 1])
def test_a_line_has_thirty_marks_in_a_row_at_most(marks: int) -> None:
    """Also many times, and at its end."""
    run = "e" + "\u0301" * marks
    for line in (run, f"{run}, {run}", "漢" * 31 + run):
        assert is_line(line, 1000) == (marks == MOST_MARKS)


@pytest.mark.parametrize(("text", "is_seen"), [("\U0001fa77", True), ("\U00031350", True), ("\u2065\U000e0080", False)])
def test_a_line_may_be_of_what_is_newer_than_the_program(text: str, *, is_seen: bool) -> None:
    """A new emoji, a new letter; but not of what is reserved for invisible ones."""
    assert is_line(text, 10) is is_seen


@pytest.mark.parametrize("marks", [MOST_MARKS + 1, 50_000])
def test_no_address_is_taken_apart_in_time_by_its_square(marks: int) -> None:
    """Python brings a host into a form then: a megabyte of marks kept a process from all else for minutes."""
    address = "https://a" + "\u0301\u0334" * (marks // 2 + 1) + ".example.org/"
    with pytest.raises(InvalidInput):
        validate_web_address(address, ("input", "avatarUrl"), "An avatar")
    with pytest.raises(InvalidInput):
        parse_link(address, ("input", "link"))
    with pytest.raises(InvalidInput):
        parse_image_address(address, ["example.org"], ("input", "imageUrl"))
    with pytest.raises(InvalidInput):
        parse_destination(address, ())
