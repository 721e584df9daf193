"""Folding a language tag twice is folding it once, whatever the tag."""

from hypothesis import given
from hypothesis import strategies as st
from langcodes.data_dicts import ALL_SCRIPTS, LANGUAGE_REPLACEMENTS, LIKELY_SUBTAGS

from datastore.refusals import InvalidInput
from resolvers.values.languages import parse_language

SUBTAGS = sorted({subtag for tag in LIKELY_SUBTAGS for subtag in tag.split("-")})
LANGUAGES = sorted({tag.split("-")[0] for tag in LIKELY_SUBTAGS} | set(LANGUAGE_REPLACEMENTS))
ENDINGS = ["", "1996", "valencia", "u-co-phonebk", "t-de", "x-mine"]


def folded(tag: str) -> str | None:
    try:
        return parse_language(tag, ())
    except InvalidInput:
        return None


@given(
    st.sampled_from(LANGUAGES),
    st.lists(st.sampled_from([*SUBTAGS, *ALL_SCRIPTS]), max_size=3),
    st.sampled_from(ENDINGS),
)
def test_folding_a_folded_tag_changes_nothing(language: str, subtags: list[str], ending: str) -> None:
    """And case and underscores make no difference, for whatever tags there are."""
    tag = "-".join(filter(None, [language, *subtags, ending]))
    once = folded(tag)
    assert once is None or folded(once) == once
    assert folded(tag.upper().replace("-", "_")) == once


def test_folding_holds_for_every_tag_of_the_data() -> None:
    """Each language, script and region that CLDR names together."""
    for tag in [*LIKELY_SUBTAGS, *LANGUAGE_REPLACEMENTS]:
        once = folded(tag)
        assert once is None or folded(once) == once, tag
