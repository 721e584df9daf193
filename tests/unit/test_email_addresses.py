"""Which texts are email addresses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore.values.seal import Seal
from resolvers.people.confirmations import email_hash
from resolvers.values.texts import LONGEST_EMAIL, is_email_address, with_ascii_domain

LABEL = "b" * 63
MANY_LETTERS = "".join(chr(0x4E00 + 97 * number) for number in range(40))


@pytest.mark.parametrize(
    "address",
    [
        "ada@example.org", "o'hara+words@sub.example.co.uk", "a@b.example", "1@2.example", "a/b=c@x.org",
        "ü@exämple.org", "用户@例子.中国", "a@xn--bcher-kva.example", f"{'a' * 64}@x.org", f"a@{LABEL}.org",
        f"{'a' * 62}@{LABEL}.{LABEL}.{LABEL}", "reader@بيت1.example", "a@בית2.example", "a@ab--ü.example",
    ],
)  # fmt: skip
def test_an_address_is_accepted(address: str) -> None:
    """Names with all characters that mail servers take, domains with letters of any writing, up to their limits."""
    assert is_email_address(address)


@pytest.mark.parametrize(
    "address",
    [
        "", "@", "ada", "a@x", "@x.org", "a@b..example", "a@.example", "a@x.org.", "a@-x.example", "a@x-.example",
        "-oQ/tmp@b.example", ".a@x.org", "a.@x.org", "a..b@x.org", "a@b@x.org", "a b@x.org", " a@x.org", "a@x.org\n",
        "a@1.2.3.4", "a@[1.2.3.4]", "a@x_y.org", '"a"@x.org', "a(b)@x.org", "<a@x.org>", "a@x.org, b@x.org",
        "=?utf-8?b?DQo=?=@x.org", "a\x00@x.org", "a\u202e@x.org", "a@b\u202e.org", "a@☃.org", "\ud800@x.org",
        "u\u0308@x.org", f"{'a' * 65}@x.org", f"{'ü' * 33}@x.org", f"a@{LABEL}b.org", f"a@{MANY_LETTERS}.org",
        f"{'a' * 63}@{LABEL}.{LABEL}.{LABEL}", "a@b.\ufe0f", "a@b.①②", "a@⑴x.example", "a@b⒈.example",
    ],
)  # fmt: skip
def test_another_text_is_refused(address: str) -> None:
    """Empty parts, hyphens at the ends of a label, options, quotes, second addresses, hidden characters, lengths."""
    assert not is_email_address(address)


@pytest.mark.parametrize(
    ("address", "sent_to"),
    [
        ("ada@Example.org", "ada@Example.org"), ("a@xn--bcher-kva.example", "a@xn--bcher-kva.example"),
        ("A.B@bücher.example", "A.B@xn--bcher-kva.example"), ("a@BÜCHER.example", "a@xn--bcher-kva.example"),
        ("a@例子.中国", "a@xn--fsqu00a.xn--fiqs8s"), ("a@straße.example", "a@xn--strae-oqa.example"),
        ("ü@exämple.org", "ü@exämple.org"), ("a@ab--ü.example", "a@ab--ü.example"),
    ],
)  # fmt: skip
def test_an_address_is_sent_to_in_ascii_if_its_name_is(address: str, sent_to: str) -> None:
    """By IDNA 2008, in which ß is a letter of its own; a domain that it does not allow stays as it is."""
    assert is_email_address(address)
    assert with_ascii_domain(address) == sent_to


def test_the_spellings_of_an_address_have_one_hash() -> None:
    """And no two mailboxes do: an email to one would count as sent to the other."""
    seal = Seal(["s" * 32])
    spellings = ["ü@bücher.example", "Ü@BÜCHER.example", "ü@xn--bcher-kva.example", "ü@XN--bcher-kva.example"]
    assert len({email_hash(seal, each) for each in spellings}) == 1
    others = ["x@straße.example", "x@strasse.example", "y@straße.example", "x@ab--ü.example", "x@ab--u.example"]
    assert len({email_hash(seal, each) for each in others}) == len(others)


@given(text=st.one_of(st.text(max_size=40), st.from_regex(r"\A[^@]{0,20}@[^@]{0,20}\Z")))
def test_an_accepted_address_cannot_leave_its_place(text: str) -> None:
    """No white space, control character, quote, bracket or separator, whatever is accepted."""
    if is_email_address(text):
        assert text.isprintable()
        assert not set(text) & set(' ()<>[],;:\\"')
        assert text.count("@") == 1
        assert len(text.encode()) <= LONGEST_EMAIL
