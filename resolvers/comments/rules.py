"""Rules for what somebody writes or asks about comments: everything is bounded before the table is asked."""

from __future__ import annotations

import unicodedata

from datastore.comments.planner import MOST_SOURCES, RATINGS, Filter
from datastore.dynamo import BadKey, key_text
from datastore.refusals import InvalidInput
from resolvers.comments.languages import language_tag

LONGEST_PRODUCT = 128
LONGEST_BODY = 10_000
"""Characters: at most 40 KB, a tenth of what an item may hold."""
LONGEST_TITLE = 200
LONGEST_REASON = 500
_UNSEEN = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf"})


def product_id(text: str, path: tuple[str, ...]) -> str:
    """A shop's own name for a product."""
    try:
        product = key_text(text)
    except BadKey:
        product = ""
    if not product.strip() or len(product) > LONGEST_PRODUCT:
        message = f"A product's id has 1 to {LONGEST_PRODUCT} characters, none of them '#' or a control character."
        raise InvalidInput(message, path=path)
    return product


def parse_filter(product: str, languages: list[str] | None, ratings: list[int] | None) -> Filter:
    """What to show; an empty list is the same as none: a reader who ticks nothing wants everything."""
    if languages is not None and len(languages) > MOST_SOURCES:
        message = f"At most {MOST_SOURCES} languages at once."
        raise InvalidInput(message, path=("languages",))
    if ratings is not None and len(ratings) > MOST_SOURCES:
        message = f"Ratings are {RATINGS[0]} to {RATINGS[-1]}, each at most once."
        raise InvalidInput(message, path=("ratings",))
    return Filter.of(
        product_id(product, ("product",)),
        [language_tag(text, ("languages", str(place))) for place, text in enumerate(languages or ())],
        [validate_rating(number, ("ratings", str(place))) for place, number in enumerate(ratings or ())],
    )


def validate_rating(number: int, path: tuple[str, ...]) -> int:
    if type(number) is not int or number not in RATINGS:
        message = f"A rating is a whole number from {RATINGS[0]} to {RATINGS[-1]}."
        raise InvalidInput(message, path=path)
    return number


def validate_body(text: str) -> str:
    validate_text(text, "body", LONGEST_BODY)
    return text


def validate_title(text: str | None) -> str | None:
    if text is None or _blank(text):
        return None
    return validate_text(text, "title", LONGEST_TITLE)


def validate_text(text: str, name: str, longest: int) -> str:
    if _blank(text) or len(text) > longest:
        message = f"A {name} has 1 to {longest:,} characters, and not only blank ones."
        raise InvalidInput(message, path=("input", name))
    return text.strip()


def _blank(text: str) -> bool:
    """Whether nobody could see anything of it: spaces, controls, and what only shapes other characters."""
    return all(unicodedata.category(character) in _UNSEEN for character in text)
