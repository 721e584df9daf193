"""Language tags: one for each language and script, and none that nobody knows."""

import pytest

from datastore.refusals import InvalidInput
from resolvers.values.languages import parse_language


@pytest.mark.parametrize(
    ("given_tag", "tag"),
    [
        ("en", "en"),
        ("en-US", "en"),
        ("EN_us", "en"),
        ("eng", "en"),
        ("en-Latn", "en"),
        ("es-419", "es"),
        ("pt_BR", "pt"),
        ("iw", "he"),
        ("zh", "zh"),
        ("zh-CN", "zh"),
        ("zh-Hans", "zh"),
        ("zh-cmn", "zh"),
        ("cmn", "zh"),
        ("cmn-TW", "zh-Hant"),
        ("arb", "ar"),
        ("swh-KE", "sw"),
        ("nb", "nb"),
        ("yue", "yue"),
        ("zh-cmn-hans-cn", "zh"),
        ("zh-TW", "zh-Hant"),
        ("zh-HK", "zh-Hant"),
        ("zh-hant-hk", "zh-Hant"),
        ("zh-Latn-pinyin", "zh-Latn"),
        ("yue-HK", "yue"),
        ("yue-CN", "yue-Hans"),
        ("sr-latn", "sr-Latn"),
        ("sr-ME", "sr-Latn"),
        ("sh-Cyrl", "sr"),
        ("uz-AF", "uz-Arab"),
        ("hyw-AM", "hyw"),
        ("i-klingon", "tlh"),
        ("de-DE-1996", "de"),
        ("de-DE-u-co-phonebk", "de"),
        ("en-Zzzz-GB", "en"),
        ("ja-Qaaa", "ja"),
    ],
)
def test_a_language_has_one_tag(given_tag: str, tag: str) -> None:
    """So that everybody's German is counted together, and traditional Chinese apart from simplified."""
    assert parse_language(given_tag, ()) == tag


@pytest.mark.parametrize(
    "tag",
    ["", "e", "xx", "english", "~", "en-", "en#", "en US", "und", "und-TW", "mul", "root", "x-mine", "en-x-mine",
     "i-default", "qaa", "qtz-Latn", "en-US-US", "en_US.UTF-8", "ＥＮ", "en\x00", "a" * 100, "en-" + "a-" * 5_000],
)  # fmt: skip
def test_an_unknown_tag_is_refused(tag: str) -> None:
    """In words, with the place it stands in."""
    with pytest.raises(InvalidInput, match="BCP 47") as refused:
        parse_language(tag, ("input", "language"))
    assert refused.value.path == ("input", "language")
