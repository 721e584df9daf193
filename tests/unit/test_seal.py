"""What strangers carry for us comes back as it went, or not at all."""

from base64 import urlsafe_b64encode
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore.values.seal import LONGEST, Forged, Seal

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
OLD = "an old secret of thirty-two letters"
NEW = "a new secret, of thirty-two letters"

payloads = st.binary(max_size=200)
sizes = st.sampled_from([8, 16, 32])


def key_id(secret: str) -> bytes:
    return Seal([secret]).sign("any", b"")[:1]


@given(payloads, sizes)
def test_a_sealed_text_opens(payload: bytes, size: int) -> None:
    """Bytes and text, with every size of MAC."""
    seal = Seal([NEW])
    assert seal.open("cursor", seal.sign("cursor", payload, size=size), size=size) == payload
    assert seal.open_text("cursor", seal.sign_text("cursor", payload, size=size), size=size) == payload


@given(payloads, sizes, st.data())
def test_any_changed_character_is_refused(payload: bytes, size: int, data: st.DataObject) -> None:
    """Whichever character becomes whichever other one, the loose bits of the last included."""
    seal = Seal([NEW])
    text = seal.sign_text("ballot", payload, size=size)
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from(ALPHABET + "+/= \x00é\ud800").filter(lambda letter: letter != text[at]))
    with pytest.raises(Forged):
        seal.open_text("ballot", text[:at] + other + text[at + 1 :], size=size)


def test_no_seal_with_one_other_character_opens() -> None:
    """Exhaustively for one seal: all 63 other letters at every place."""
    seal = Seal([NEW])
    text = seal.sign_text("visitor", b"0123456789abcdef")
    for at, letter in enumerate(text):
        for other in ALPHABET:
            if other != letter:
                with pytest.raises(Forged):
                    seal.open_text("visitor", text[:at] + other + text[at + 1 :])


@given(payloads, st.text(max_size=8), sizes)
def test_nothing_may_be_added_or_cut(payload: bytes, extra: str, size: int) -> None:
    """Longer, shorter, padded, empty: all refused."""
    seal = Seal([NEW])
    text = seal.sign_text("cursor", payload, size=size)
    altered = [text[:-1], text[1:], "", text + "=", text + "\n", " " + text, *([extra + text] if extra else [])]
    for candidate in altered:
        with pytest.raises(Forged):
            seal.open_text("cursor", candidate, size=size)


@given(st.text(max_size=100))
def test_nonsense_is_refused_as_forged(text: str) -> None:
    """No other exception gets out, whatever the letters."""
    with pytest.raises(Forged):
        Seal([NEW]).open_text("cursor", text)


@given(st.binary(max_size=100), sizes)
def test_foreign_bytes_are_refused_as_forged(sealed: bytes, size: int) -> None:
    """Also when they are shorter than a MAC."""
    with pytest.raises(Forged):
        Seal([NEW]).open("cursor", sealed, size=size)


@given(payloads)
def test_a_seal_for_one_purpose_opens_no_other(payload: bytes) -> None:
    """A ballot is worth nothing as a cookie, though the secret is the same."""
    seal = Seal([NEW])
    with pytest.raises(Forged):
        seal.open("visitor", seal.sign("ballot", payload))


@given(st.binary(min_size=40, max_size=100))
def test_a_shorter_mac_is_not_a_prefix_of_a_longer_one(payload: bytes) -> None:
    """Sizes have keys of their own, so nobody can trade a strong seal for a weak one."""
    seal = Seal([NEW])
    assert seal.sign("cursor", payload, size=16)[:-8] != seal.sign("cursor", payload, size=8)


@given(payloads)
def test_old_seals_stay_valid_until_their_secret_is_removed(payload: bytes) -> None:
    """The newest secret signs, all open, and a dropped one is forgotten."""
    old, both, new = Seal([OLD]), Seal([NEW, OLD]), Seal([NEW])
    assert both.open("cursor", old.sign("cursor", payload)) == payload
    assert both.sign("cursor", payload) == new.sign("cursor", payload)
    with pytest.raises(Forged):
        new.open("cursor", old.sign("cursor", payload))


def test_two_secrets_may_share_a_key_id() -> None:
    """One pair in 256 does, and both go on opening."""
    twin = next(secret for n in count() if key_id(secret := f"twin {n}") == key_id(NEW))
    both = Seal([NEW, twin])
    for secret in (NEW, twin):
        assert both.open("cursor", Seal([secret]).sign("cursor", b"here")) == b"here"


def test_a_seal_too_long_is_neither_made_nor_opened() -> None:
    """The longest one fits both ways; one byte more fits neither."""
    seal = Seal([NEW])
    longest = b"x" * (LONGEST - 17)
    assert seal.open_text("cursor", seal.sign_text("cursor", longest)) == longest
    with pytest.raises(ValueError, match="at most 3055"):
        seal.sign("cursor", longest + b"x")
    with pytest.raises(Forged):
        seal.open("cursor", b"x" * (LONGEST + 1))
    with pytest.raises(Forged):
        seal.open_text("cursor", urlsafe_b64encode(b"x" * (LONGEST + 2)).decode())


def test_the_key_of_a_purpose_is_derived_once() -> None:
    """The same bytes each time, from the derived key that was kept."""
    seal = Seal([NEW])
    assert seal.sign("cursor", b"here") == seal.sign("cursor", b"here") == Seal([NEW]).sign("cursor", b"here")


@pytest.mark.parametrize("secrets", [[], [""], [NEW, ""]])
def test_a_seal_without_a_secret_is_refused(secrets: list[str]) -> None:
    """An empty key would let everybody sign."""
    with pytest.raises(ValueError, match="at least one secret"):
        Seal(secrets)


@pytest.mark.parametrize("size", [0, 7, 33])
def test_a_mac_too_short_to_protect_is_refused(size: int) -> None:
    """Eight bytes are the least, thirty-two all there is."""
    with pytest.raises(ValueError, match="choose 8 to 32"):
        Seal([NEW]).sign("cursor", b"here", size=size)
