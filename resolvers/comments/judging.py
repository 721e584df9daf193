"""What a comment's text has that a hold rule asks for: words and links, in one pass over the text.

Words are compared as people read them: without case, accents, invisible characters, forms of width and what only
stretches a word, and with a to z in place of letters of other scripts that look like them. A whole word has to match,
except in scripts that put no spaces between words. There is one look-up for each word of the text, so neither the
number of words in the rules nor the text can make it slow.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import Final
from unicodedata import category, combining

from datastore.comments.hold_rules import Asked, History, HoldRule, HoldRules
from datastore.comments.records import Comment
from datastore.values.folding import as_seen, in_form, is_stream_safe
from resolvers.values.texts import FILLERS

# ── words ──

_LEFT_OUT: Final = FILLERS.union("'\u2019\u0640\u07fa")
"""Also apostrophes, and the strokes that stretch words of Arabic and N'Ko, which Unicode counts as letters."""
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, Japanese and Chinese letters."""
_PHRASES: Final = {0xFDFA: " ", 0xFDFB: " "}
"""Signs for whole sentences, which no rule's word is: each would become up to 18 letters."""
_LINK = re.compile(r"://|(?<![\w.@/-])www\.(?=\w)|(?<![\w.@/:-])[\w-]++(?:\.[\w-]++)++(?<=[^\W\d_])/", re.IGNORECASE)
"""An address with its scheme, one that begins with www., or a host and a slash. No place is looked at twice."""


def _decomposed(text: str) -> str:
    """Letters and their marks apart, and without forms of width. Marks in too long a row are not sorted."""
    if text.isascii():
        return text
    text = text.translate(_PHRASES)
    return in_form("NFKD", text) if is_stream_safe(text) else "".join(in_form("NFKD", letter) for letter in text)


@lru_cache(8_192)
def _in_word(letter: str) -> str:
    """A character as a part of a word: nothing for what is not seen or is a mark, a blank for what divides words."""
    kind = category(letter)
    if combining(letter) or kind in ("Cf", "Me") or letter in _LEFT_OUT:
        return ""
    return letter if kind[0] in "LMN" else " "


def _forms(text: str) -> Iterator[str]:
    """A text in the forms in which its words are looked up: letters are taken for others before and after folding."""
    bare = "".join(map(_in_word, _decomposed(text)))
    folded, seen = bare.casefold(), as_seen(bare)
    yield as_seen(folded)
    if seen is not bare and seen.casefold() != folded:
        yield as_seen(seen.casefold())


def word_form(text: str) -> str | None:
    """The form in which a word of a rule is compared; None if it is not one word.

    Nor is one with signs around it: without them "a$$" would be the word "a".
    """
    form = next(_forms(text.strip()))
    return None if not form or " " in form else form


def count_links(text: str) -> int:
    """Count without regard to marks: the pattern takes none for a letter, and some are never seen."""
    shown = "".join(letter for letter in _decomposed(text) if category(letter) not in ("Cf", "Mn", "Mc", "Me"))
    return sum(1 for _ in _LINK.finditer(shown))


# ── rules ──


class Judge:
    """A revision of the rules, ready to judge comments."""

    def __init__(self, rules: HoldRules) -> None:
        self.revision = rules.revision
        self._rules = rules.rules
        self._words: defaultdict[str, set[int]] = defaultdict(set)
        self._inside: defaultdict[int, defaultdict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        """Words of scripts without spaces, by their lengths."""
        self._starts: set[str] = set()
        """What these begin with."""
        for place, rule in enumerate(rules.rules):
            for form in filter(None, map(word_form, rule.words)):
                inside = _UNSPACED.search(form)
                table = self._inside[len(form)] if inside else self._words
                table[form].add(place)
                self._starts.update(form[0] if inside else ())

    @property
    def asks_for_guests(self) -> bool:
        return any(rule.guests for rule in self._rules)

    @property
    def asks_for_the_hour(self) -> bool:
        return any(rule.per_hour is not None for rule in self._rules)

    def suspects(self, comment: Comment, *, is_guest: bool) -> list[HoldRule]:
        """The rules, in their order, that hold a comment if its author's history is as they ask."""
        if not self._rules:
            return []
        text = comment.body if comment.title is None else f"{comment.title}\n{comment.body}"
        found = self._places_of_words(text)
        links = count_links(text) if any(rule.links is not None for rule in self._rules) else 0
        return [
            rule
            for place, rule in enumerate(self._rules)
            if rule.language in (None, comment.language)
            and (is_guest or not rule.guests)
            and (place in found or not rule.words)
            and (rule.links is None or links > rule.links)
        ]

    def _places_of_words(self, text: str) -> set[int]:
        found: set[int] = set()
        if not self._words and not self._inside:
            return found
        for form in _forms(text):
            for word in set(form.split()):
                found |= self._words.get(word, set())
            if self._inside and _UNSPACED.search(form):
                found |= self._places_inside(form)
        return found

    def _places_inside(self, form: str) -> set[int]:
        found: set[int] = set()
        starts = [place for place, letter in enumerate(form) if letter in self._starts]
        for length, words in self._inside.items():
            parts = {form[start : start + length] for start in starts}
            found = found.union(*(words[part] for part in words.keys() & parts))
        return found


def asked_by(rules: list[HoldRule]) -> Asked:
    """What these rules ask about the author."""
    return Asked(
        max((rule.first_comments for rule in rules if rule.first_comments is not None), default=None),
        max((rule.per_hour + 1 for rule in rules if rule.per_hour is not None), default=None),
    )


def holds(rule: HoldRule, history: History) -> bool:
    """Whether the author's history is as a rule asks."""
    is_new = rule.first_comments is None or history.published < rule.first_comments
    return is_new and (rule.per_hour is None or history.of_the_hour > rule.per_hour)
