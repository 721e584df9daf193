"""The daily email: text from outside cannot add a header or markup."""

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
from server.mail.message import EmailTemplate, Section, Unsubscription, message_id

SEAL = Seal(["a secret that is long enough to be one"])
TEMPLATE = EmailTemplate("Words <words@example.org>", "https://api.example.org/", SEAL, date(2026, 11, 20))
HEADERS = {
    "From", "To", "Subject", "Date", "Message-ID", "List-Unsubscribe", "List-Unsubscribe-Post", "Auto-Submitted",
    "MIME-Version", "Content-Type",
}  # fmt: skip
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
MALICIOUS = "x\r\nBcc: all@example.org\r\n\r\n<script>alert(1)</script>"


@settings(deadline=None, max_examples=60)
@given(texts=st.tuples(TEXTS, TEXTS, TEXTS, TEXTS))
def test_any_text_leaves_the_headers_as_they_are(texts: tuple[str, str, str, str]) -> None:
    """Line ends and unprintable characters too, wherever a text of a list is used."""
    word = Word("list", 0, texts[0], texts[1], None, texts[2])
    section = Section("list", texts[3], CharacterSet.TRADITIONAL, word)
    email = TEMPLATE.render("ada", "ada@example.org", [section, section]).as_bytes()
    parsed = message_from_bytes(email, policy=default)
    assert set(parsed.keys()) == HEADERS
    assert parsed["To"] == "ada@example.org"


def test_markup_in_a_word_is_escaped() -> None:
    """A script is shown as text."""
    section = Section(
        "list", MALICIOUS, CharacterSet.SIMPLIFIED, Word("list", 0, MALICIOUS, MALICIOUS, MALICIOUS, MALICIOUS)
    )
    email = TEMPLATE.render("ada", "ada@example.org", [section])
    html = email.get_body(("html",)).get_content()  # type: ignore[union-attr]
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert email["Bcc"] is None


@pytest.mark.parametrize(
    "address",
    ["ada@example.org\nBcc: b@example.org", "a@b@example.org", "ada", "<ada@example.org>", "a@e.org, b@e.org"],
)
def test_an_invalid_address_is_refused(address: str) -> None:
    """Addresses in the claims of a token have not been validated before."""
    section = Section("list", "List", CharacterSet.SIMPLIFIED, Word("list", 0, "好", "good"))
    with pytest.raises(InvalidInput):
        TEMPLATE.render("ada", address, [section])


def test_a_message_id_belongs_to_a_member_and_a_date() -> None:
    """It is repeatable, and different for another member or date."""
    ids = {message_id(user, date(2026, 11, day), "example.org") for user in ("ada", "bob") for day in (1, 2)}
    assert len(ids) == 4
    assert message_id("ada", date(2026, 11, 1), "example.org") in ids


def test_an_unsubscription_survives_its_token() -> None:
    """For ids with any characters; a token signed with another secret is refused."""
    for unsubscription in (Unsubscription("ada"), Unsubscription('a"b|c', "list", CharacterSet.TRADITIONAL)):
        token = unsubscription.token(SEAL)
        assert Unsubscription.parse(SEAL, token) == unsubscription
        with pytest.raises(Forged):
            Unsubscription.parse(Seal(["another secret, also long enough"]), token)
    with pytest.raises(Forged):
        Unsubscription.parse(SEAL, SEAL.sign_text("unsubscribe", b"[1]"))
