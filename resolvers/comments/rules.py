"""Validation of what clients send about comments. Everything is bounded before the table is read."""

import unicodedata

from datastore.comments.planner import MAX_VALUES, RATINGS, Filter
from datastore.dynamo import BadKey, key_text
from datastore.refusals import InvalidInput
from resolvers.values.languages import parse_language
from resolvers.values.texts import FILLERS

LONGEST_PRODUCT = 128
LONGEST_BODY = 10_000
"""Characters: at most 40 KB, a tenth of what an item may hold."""
LONGEST_TITLE = 200
LONGEST_REASON = 500
_INVISIBLE = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf"})


def validate_product(text: str, path: tuple[str, ...]) -> str:
    """A product's id in the shop."""
    try:
        product = key_text(text)
    except BadKey:
        product = ""
    if not product.strip() or len(product) > LONGEST_PRODUCT:
        raise InvalidInput(
            f"A product's id has 1 to {LONGEST_PRODUCT} characters, none of them '#' or a control character.", path=path
        )
    return product


def parse_filter(
    product: str, languages: list[str] | None, ratings: list[int] | None, *, verified: bool | None = None
) -> Filter:
    """The filter of a page. An empty list is the same as none: a reader who ticks nothing wants everything."""
    if languages is not None and len(languages) > MAX_VALUES:
        raise InvalidInput(f"At most {MAX_VALUES} languages at once.", path=("languages",))
    if ratings is not None and len(ratings) > MAX_VALUES:
        raise InvalidInput(f"Ratings are {RATINGS[0]} to {RATINGS[-1]}, each at most once.", path=("ratings",))
    return Filter.of(
        validate_product(product, ("product",)),
        [parse_language(text, ("languages", str(index))) for index, text in enumerate(languages or ())],
        [validate_rating(number, ("ratings", str(index))) for index, number in enumerate(ratings or ())],
        verified=verified,
    )


def validate_rating(number: int, path: tuple[str, ...]) -> int:
    if type(number) is not int or number not in RATINGS:
        raise InvalidInput(f"A rating is a whole number from {RATINGS[0]} to {RATINGS[-1]}.", path=path)
    return number


def validate_body(text: str) -> str:
    validate_text(text, "body", LONGEST_BODY)
    return text


def validate_title(text: str | None) -> str | None:
    if text is None or (len(text) <= LONGEST_TITLE and _blank(text)):
        return None
    return validate_text(text, "title", LONGEST_TITLE)


def validate_text(text: str, name: str, longest: int) -> str:
    if len(text) > longest or _blank(text):
        raise InvalidInput(f"A {name} has 1 to {longest:,} characters, and not only blanks.", path=("input", name))
    return text.strip()


def _blank(text: str) -> bool:
    """Whether a text has no visible character: only spaces, controls, format characters, and fillers."""
    return all(unicodedata.category(character) in _INVISIBLE or character in FILLERS for character in text)
