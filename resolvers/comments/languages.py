"""Language tags of BCP 47, each in its canonical spelling."""

from __future__ import annotations

from functools import lru_cache

from langcodes import Language, standardize_tag, tag_is_valid

from datastore.refusals import InvalidInput

LONGEST_TAG = 35
_NO_LANGUAGES = frozenset({"und", "mul", "zxx", "mis"})


def parse_language(text: str, path: tuple[str, ...]) -> str:
    """The tag in its canonical spelling: `EN-us` becomes `en-US`, `iw` becomes `he`."""
    tag = _canonical(text) if len(text) <= LONGEST_TAG else None
    if tag is None:
        raise InvalidInput(
            "A language is a BCP 47 language tag, with a script or region if need be: en, pt-BR, zh-Hant.",
            path=path,
        )
    return tag


@lru_cache(4096)
def _canonical(text: str) -> str | None:
    if not text.isascii() or not tag_is_valid(text):
        return None
    tag = standardize_tag(text)
    parts = Language.get(tag, normalize=False)
    if not parts.language or parts.language in _NO_LANGUAGES or parts.extensions or "-x-" in f"-{tag}":
        return None
    return str(tag)
