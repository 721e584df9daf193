"""The direction of writing: Arabic and Hebrew words in lines that are otherwise written from left to right."""

from __future__ import annotations

from unicodedata import bidirectional

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
