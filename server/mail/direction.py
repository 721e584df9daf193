"""The direction of writing: Arabic and Hebrew words in lines that are otherwise written from left to right."""

from __future__ import annotations

from unicodedata import bidirectional, name

ISOLATES = "\u2068\u2069"
"""FIRST STRONG ISOLATE and POP DIRECTIONAL ISOLATE."""
_RIGHT_TO_LEFT = {"R", "AL"}


def direction(text: str) -> str:
    """`rtl` or `ltr`, as the first letter with a direction says; for HTML's `dir`."""
    strong = (kind for kind in map(bidirectional, text) if kind in {"L", *_RIGHT_TO_LEFT})
    return "rtl" if next(strong, "L") in _RIGHT_TO_LEFT else "ltr"


def isolate(text: str) -> str:
    """The text for a plain line: one from right to left keeps the rest of the line in its order."""
    if any(bidirectional(character) in _RIGHT_TO_LEFT for character in text):
        return text.join(ISOLATES)
    return text


def script_tag(text: str) -> str:
    """`und-Arab` or `und-Hebr`: a language that is not known, in the script of the first letter with a direction.

    It lets programs choose a font. Empty for all other scripts.
    """
    first = next((name(character, "") for character in text if bidirectional(character) in {"L", *_RIGHT_TO_LEFT}), "")
    return {"ARABIC": "und-Arab", "HEBREW": "und-Hebr"}.get(first.partition(" ")[0], "")
