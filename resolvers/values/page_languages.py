"""The languages of the service's own pages and of the emails that belong to them."""

from __future__ import annotations

from typing import Final

PAGE_LANGUAGES: Final = ("en", "de", "es", "ar")
"""Each has a file in `server/http/pages/texts`; the first is that of everybody else."""
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


def _preference(text: str) -> tuple[float, str]:
    tag, _, parameter = text.strip().lower().partition(";")
    name, _, value = parameter.strip().partition("=")
    try:
        quality = float(value) if name == "q" else 1.0
    except ValueError:
        quality = 1.0
    return (quality if quality > 0 else -1.0), tag.strip() if quality > 0 else ""
