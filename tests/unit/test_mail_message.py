"""Letters: nothing from outside can add a header or markup."""

from __future__ import annotations

from datetime import date
from email import message_from_bytes
from email.policy import default

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datastore.refusals import InvalidInput
from datastore.seal import Forged, Seal
from datastore.vocabulary import CharacterSet, Word
from server.mail.message import Ending, Portion, Stationery, message_id

SEAL = Seal(["a secret that is long enough to be one"])
STATIONERY = Stationery("Words <words@example.org>", "https://api.example.org/", SEAL, date(2026, 11, 20))
HEADERS = {
    "From", "To", "Subject", "Date", "Message-ID", "List-Unsubscribe", "List-Unsubscribe-Post", "Auto-Submitted",
    "MIME-Version", "Content-Type",
}  # fmt: skip
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
NASTY = "x\r\nBcc: all@example.org\r\n\r\n<script>alert(1)</script>"


@settings(deadline=None, max_examples=60)
@given(texts=st.tuples(TEXTS, TEXTS, TEXTS, TEXTS))
def test_any_text_leaves_the_headers_as_they_are(texts: tuple[str, str, str, str]) -> None:
    """Also line ends and what is not printable, in every place where a list's text goes."""
    word = Word("list", 0, texts[0], texts[1], None, texts[2])
    portion = Portion("list", texts[3], CharacterSet.TRADITIONAL, word)
    sent = STATIONERY.letter("ada", "ada@example.org", [portion, portion]).as_bytes()
    read = message_from_bytes(sent, policy=default)
    assert set(read.keys()) == HEADERS
    assert read["To"] == "ada@example.org"


def test_markup_is_shown_and_not_run() -> None:
    """A script in a word is text in the letter."""
    portion = Portion("list", NASTY, CharacterSet.SIMPLIFIED, Word("list", 0, NASTY, NASTY, NASTY, NASTY))
    letter = STATIONERY.letter("ada", "ada@example.org", [portion])
    html = letter.get_body(("html",)).get_content()  # type: ignore[union-attr]
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert letter["Bcc"] is None


@pytest.mark.parametrize(
    "address",
    ["ada@example.org\nBcc: b@example.org", "a@b@example.org", "ada", "<ada@example.org>", "a@e.org, b@e.org"],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    """An address of a token's claim was never checked before."""
    portion = Portion("list", "List", CharacterSet.SIMPLIFIED, Word("list", 0, "好", "good"))
    with pytest.raises(InvalidInput):
        STATIONERY.letter("ada", address, [portion])


def test_a_letters_id_is_of_its_member_and_date() -> None:
    """The same whenever it is made, another for another member or date."""
    ids = {message_id(user, date(2026, 11, day), "example.org") for user in ("ada", "bob") for day in (1, 2)}
    assert len(ids) == 4
    assert message_id("ada", date(2026, 11, 1), "example.org") in ids


def test_an_ending_is_opened_as_it_was_signed() -> None:
    """For ids with any characters; other secrets' are refused."""
    for ending in (Ending("ada"), Ending('a"b|c', "list", CharacterSet.TRADITIONAL)):
        assert Ending.opened(SEAL, ending.token(SEAL)) == ending
        with pytest.raises(Forged):
            Ending.opened(Seal(["another secret, also long enough"]), ending.token(SEAL))
    with pytest.raises(Forged):
        Ending.opened(SEAL, SEAL.sign_text("unsubscribe", b"[1]"))
