"""The daily email: text from outside cannot add a header or markup."""

import base64
import quopri
from dataclasses import replace
from datetime import date
from email import message_from_bytes
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.policy import default

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from datastore.refusals import InvalidInput
from datastore.values.seal import Forged, Seal
from datastore.vocabulary.subscriptions import CharacterSet
from datastore.vocabulary.words import Word
from server.mail.daily_run import email_of_words
from server.mail.message import (
    Email,
    Letterhead,
    OtherEmails,
    Section,
    UnsafeEmail,
    Unsubscription,
    message_id,
    serialize,
)
from server.settings.values import parse_sender
from tests.examples import examples
from tests.mail_server import body_of

SEAL = Seal(["a secret that is long enough to be one"])
SENDER = f"{'Bücher «' * 20} <words@example.org>"
LETTERHEAD = Letterhead(parse_sender(SENDER), "https://api.example.org", SEAL)
ON = date(2026, 11, 20)
HEADERS = {
    "From", "To", "Subject", "Date", "Message-ID", "List-Unsubscribe", "List-Unsubscribe-Post", "Auto-Submitted",
    "MIME-Version", "Content-Type",
}  # fmt: skip
PART_HEADERS = {"Content-Type", "Content-Transfer-Encoding", "MIME-Version"}
MALICIOUS = "x\r\nBcc: all@example.org\r\n\r\n<script>alert(1)</script>"
CHARSETS = ["utf-8", "us-ascii", "iso-8859-1", "utf-16", "utf-7", "gb18030", "hz", "iso-2022-jp", "unknown-8bit", ""]


def encoded_word(charset: str, encoding: str, text: str) -> str:
    """An RFC 2047 word, which a mail library may decode; its content is hostile."""
    raw = text.encode("utf-8", "surrogatepass")
    content = base64.b64encode(raw) if encoding in "bB" else quopri.encodestring(raw, header=True)
    return f"=?{charset}?{encoding}?{content.decode()}?="


FRAGMENTS = st.one_of(
    st.text(min_size=1, max_size=60),
    st.sampled_from(
        ["\r\n", "\n", "\r", "\x00", "\u2028", "\u202e", "\ud800", "=?", "?=", MALICIOUS, ".\r\n", "长" * 900]
    ),
    st.builds(
        encoded_word, st.sampled_from(CHARSETS), st.sampled_from("bBqQ"), st.sampled_from([MALICIOUS, "\r\nX: 1"])
    ),
)
TEXTS = st.lists(FRAGMENTS, min_size=1, max_size=4).map("".join)
WORD_IN_UTF8 = encoded_word("utf-8", "b", MALICIOUS)


def parsed(email: Email) -> EmailMessage:
    message = message_from_bytes(email.content, policy=default)
    assert isinstance(message, EmailMessage)
    return message


def email_of(*texts: str, sections: int = 1) -> Email:
    """An email that shows these texts of a list and its word: simplified, traditional, pinyin, definition, name."""
    simplified, traditional, pinyin, definition, name = texts
    word = Word("list", 0, simplified, definition, traditional, pinyin)
    section = Section("list", name, CharacterSet.TRADITIONAL, word)
    return email_of_words(LETTERHEAD, "ada", "ada@example.org", [section] * sections, ON)


@settings(max_examples=examples(150))
@given(texts=st.tuples(TEXTS, TEXTS, TEXTS, TEXTS, TEXTS))
@example(texts=(WORD_IN_UTF8,) * 5)
@example(texts=("=?utf-8?q?=0D=0AX:_1?=",) * 5)
def test_any_text_leaves_headers_and_parts_as_they_are(texts: tuple[str, str, str, str, str]) -> None:
    """Line ends, words that a mail library decodes, unprintable and very long texts, wherever a list's text is used."""
    email = email_of(*texts, sections=2)
    message = parsed(email)
    assert sorted(message.keys()) == sorted(HEADERS)
    assert str(message["To"]) == "ada@example.org"
    assert str(make_header(decode_header(message_from_bytes(email.content)["From"]))) == SENDER
    head = email.content.partition(b"\r\n\r\n")[0]
    assert head.isascii()
    assert all(len(line) <= 76 for line in head.split(b"\r\n") if b"=?utf-8?" in line)
    assert [part.get_content_type() for part in message.walk()] == ["multipart/alternative", "text/plain", "text/html"]
    assert {header for part in message.iter_parts() for header in part.keys()} <= PART_HEADERS  # noqa: SIM118
    assert all(len(line) <= 998 for line in email_of(*texts).content.split(b"\r\n"))
    assert b"\n" not in email_of(*texts).content.replace(b"\r\n", b"")


@pytest.mark.parametrize(
    "text",
    [
        "short\n",
        ".\n..\nFrom me\n",
        "x" * 2000 + "\n",
        "é" * 300 + " \n\tend \t\n",
        "--=_alternative--\n你好\n\n\n",
        "\n",
    ],
    ids=["short", "dots", "long", "spaces", "boundary", "empty"],
)
def test_a_body_arrives_as_it_was_written(text: str) -> None:
    """Both forms, in lines that every mail server takes."""
    content = serialize({"From": "a@example.org"}, text, f"<p>{text}</p>\n")
    message = message_from_bytes(content, policy=default)
    assert isinstance(message, EmailMessage)
    plain, html = (message.get_body((form,)) for form in ("plain", "html"))
    assert plain is not None
    assert html is not None
    assert plain.get_content().replace("\r\n", "\n") == text
    assert html.get_content().replace("\r\n", "\n") == f"<p>{text}</p>\n"
    assert [part.defects for part in message.walk()] == [[], [], []]
    assert all(len(line) <= 76 for line in content.split(b"\r\n"))


def test_a_word_that_looks_encoded_is_shown_as_it_is() -> None:
    """The mail program decodes our encoding of it, and nothing inside."""
    email = email_of(*[WORD_IN_UTF8] * 5)
    subject = str(parsed(email)["Subject"])
    assert subject.startswith(WORD_IN_UTF8)
    assert subject == email.subject


@pytest.mark.parametrize(
    ("host", "site"),
    [
        ("xn--mnchen-3ya.example:8443", "münchen.example:8443"), ("api_1.example", "api_1.example"),
        ("[::1]:8000", "[::1]:8000"), ("127.0.0.1:8000", "127.0.0.1:8000"),
    ],
)  # fmt: skip
def test_an_email_names_the_site_as_people_write_it(host: str, site: str) -> None:
    """Its links have the host in ASCII."""
    assert replace(LETTERHEAD, public_url=f"https://{host}/api").site == site


@pytest.mark.parametrize(
    "value", ["x\r\nBcc: all@example.org", "x\r\n\r\nbody", "x\nBcc: y", "x\ry", "x\0y", "x" * 1000]
)
def test_an_email_with_other_headers_than_intended_is_never_made(value: str) -> None:
    """Whatever a fault elsewhere lets through."""
    with pytest.raises(UnsafeEmail):
        serialize({"From": "a@example.org", "Subject": value}, "text", "<p>text")


def test_markup_in_a_word_is_escaped() -> None:
    """A script is shown as text."""
    section = Section(
        "list", MALICIOUS, CharacterSet.SIMPLIFIED, Word("list", 0, MALICIOUS, MALICIOUS, MALICIOUS, MALICIOUS)
    )
    email = email_of_words(LETTERHEAD, "ada", "ada@example.org", [section], ON)
    html = body_of(parsed(email), "html")
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


@pytest.mark.parametrize(
    "address",
    ["ada@example.org\nBcc: b@example.org", "a@b@example.org", "ada", "<ada@example.org>", "a@e.org, b@e.org"],
)
def test_an_invalid_address_is_refused(address: str) -> None:
    """Addresses in the claims of a token have not been validated before."""
    section = Section("list", "List", CharacterSet.SIMPLIFIED, Word("list", 0, "好", "good"))
    with pytest.raises(InvalidInput):
        email_of_words(LETTERHEAD, "ada", address, [section], ON)


def test_a_message_id_belongs_to_a_member_and_a_date() -> None:
    """It is repeatable, and different for another member or date."""
    sender = "Words <words@example.org>"
    ids = {message_id("daily", sender, user, date(2026, 11, day)) for user in ("ada", "bob") for day in (1, 2)}
    assert len(ids) == 4
    assert message_id("daily", sender, "ada", date(2026, 11, 1)) in ids


def test_an_unsubscription_survives_its_token() -> None:
    """For ids with any characters; a token signed with another secret is refused."""
    for unsubscription in (
        Unsubscription("ada"),
        Unsubscription("ada", other=OtherEmails.REMINDERS),
        Unsubscription('a"b|c', "list"),
    ):
        token = unsubscription.token(SEAL)
        assert Unsubscription.parse(SEAL, token) == unsubscription
        with pytest.raises(Forged):
            Unsubscription.parse(Seal(["another secret, also long enough"]), token)
    with pytest.raises(Forged):
        Unsubscription.parse(SEAL, SEAL.sign_text("unsubscribe", b"[1]"))
