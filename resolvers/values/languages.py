"""Languages of texts: one tag for each, so that a browser's `navigator.language`, a filter and an import agree.

A tag keeps its language, and its script where that is not the language's usual one: `en-US` becomes `en`, `zh-TW`
becomes `zh-Hant`. CLDR's likely subtags, which langcodes brings, say which script is usual, and which one a region
writes.
"""

import re
from functools import lru_cache
from typing import Final

from langcodes import Language, standardize_tag, tag_is_valid
from langcodes.data_dicts import LIKELY_SUBTAGS, NORMALIZED_MACROLANGUAGES

from datastore.refusals import InvalidInput

LONGEST_TAG = 35
_NO_LANGUAGE = re.compile(r"(?:und|mul|mis|zxx|q[a-t][a-z])\b.*|(?:.*-)?x-.*")
"""Several languages or none, and private parts, whose meaning only their maker knows."""
_NO_SCRIPT = re.compile(r"Q...|Z(?:inh|xxx|yyy|zzz)")


def parse_language(text: str, path: tuple[str, ...]) -> str:
    tag = _folded(text) if len(text) <= LONGEST_TAG else None
    if tag is None:
        raise InvalidInput(
            "This language is not known. A language is a BCP 47 tag, such as en, pt-BR or zh-Hant.", path=path
        )
    return tag


@lru_cache(4096)
def _folded(text: str) -> str | None:
    if not text.isascii() or not tag_is_valid(text):
        return None
    tag = standardize_tag(text)
    parts = Language.get(tag, normalize=False)
    if parts.language in NORMALIZED_MACROLANGUAGES:  # cmn is zh and arb ar, as browsers have them
        parts = parts.update_dict({"language": NORMALIZED_MACROLANGUAGES[parts.language]})
    if not parts.language or _NO_LANGUAGE.fullmatch(tag):
        return None
    script = _script(parts)
    usual = script in (None, _script(Language.make(language=parts.language)))
    return str(parts.language if usual else f"{parts.language}-{script}")


def _script(parts: Language) -> str | None:
    """The tag's script, or the likely one; None for a language that CLDR says nothing about."""
    if parts.script and not _NO_SCRIPT.fullmatch(parts.script):
        return str(parts.script)
    place = Language.make(language=parts.language, territory=parts.territory)
    is_known = not LIKELY_SUBTAGS.keys().isdisjoint(tag for tag in place.broader_tags() if not tag.startswith("und"))
    return str(place.maximize().script) if is_known else None


# ── page languages ──
# The languages of the service's own pages and of the emails that belong to them.

PAGE_LANGUAGES: Final = ("en", "de", "es", "ar")
"""The first is that of everybody else. `tests/style/test_texts.py` names the files that each of the others needs."""
_RIGHT_TO_LEFT = frozenset({"ar"})
_MOST_RANGES = 20


def page_language(*wanted: str) -> str:
    """The first of these languages that pages have: tags such as `de-AT`, or the value of an Accept-Language."""
    for text in wanted:
        ranges = [_preference(part) for part in text.split(",")[:_MOST_RANGES]]
        for _, tag in sorted(ranges, key=lambda each: -each[0]):
            primary = tag.partition("-")[0]
            if primary in PAGE_LANGUAGES:
                return primary
    return PAGE_LANGUAGES[0]


def page_direction(language: str) -> str:
    """That of a page's language, for HTML's `dir`."""
    return "rtl" if language in _RIGHT_TO_LEFT else "ltr"


def _preference(text: str) -> tuple[float, str]:
    tag, _, parameter = text.strip().lower().partition(";")
    name, _, value = parameter.strip().partition("=")
    try:
        quality = float(value) if name == "q" else 1.0
    except ValueError:
        quality = 1.0
    return (quality if quality > 0 else -1.0), tag.strip() if quality > 0 else ""
