"""Language tags: one spelling for each, and none that nobody knows."""

import pytest

from datastore.refusals import InvalidInput
from resolvers.comments.rules import parse_language


@pytest.mark.parametrize(
    ("given", "tag"),
    [
        ("en", "en"),
        ("EN-us", "en-US"),
        ("eng", "en"),
        ("iw", "he"),
        ("pt_BR", "pt-BR"),
        ("en-Latn", "en"),
        ("sr-latn", "sr-Latn"),
        ("zh-cmn-hans-cn", "zh-Hans-CN"),
        ("i-klingon", "tlh"),
        ("de-DE-1996", "de-DE-1996"),
    ],
)
def test_a_tag_has_one_spelling(given: str, tag: str) -> None:
    """So that everybody's German is counted together; spelt so already, it stays."""
    assert parse_language(given, ()) == tag
    assert parse_language(tag, ()) == tag


@pytest.mark.parametrize(
    "given",
    ["", "e", "xx", "english", "~", "en-", "en#", "en US", "und", "mul", "x-mine", "en-x-mine", "en-u-ca-gregory",
     "en-US-US", "ＥＮ", "en\x00", "a" * 36, "en-" + "a-" * 5_000],
)  # fmt: skip
def test_an_unknown_tag_is_refused(given: str) -> None:
    """In words, with the place it stands in."""
    with pytest.raises(InvalidInput, match="BCP 47") as refused:
        parse_language(given, ("input", "language"))
    assert refused.value.path == ("input", "language")
