"""Language tags as BCP 47 spells them: one spelling for each, and none that nobody knows."""

from __future__ import annotations

from functools import lru_cache

from langcodes import Language, standardize_tag, tag_is_valid

from datastore.refusals import InvalidInput

LONGEST_TAG = 35
_NOBODYS = frozenset({"und", "mul", "zxx", "mis"})


def language_tag(text: str, path: tuple[str, ...]) -> str:
    """The canonical spelling: `EN-us` is `en-US`, `iw` is `he`. InvalidInput for what names no language."""
    tag = _canonical(text) if len(text) <= LONGEST_TAG else None
    if tag is None:
        message = "A language is a BCP 47 tag of a language, with a script or region if need be: en, pt-BR, zh-Hant."
        raise InvalidInput(message, path=path)
    return tag


@lru_cache(4096)
def _canonical(text: str) -> str | None:
    if not text.isascii() or not tag_is_valid(text):
        return None
    tag = standardize_tag(text)
    parts = Language.get(tag, normalize=False)
    if not parts.language or parts.language in _NOBODYS or parts.extensions or "-x-" in f"-{tag}":
        return None
    return str(tag)
