"""Rules for what editors write about boards and contenders. All of them raise InvalidInput."""

from __future__ import annotations

import re

from datastore import voting as voting_store
from datastore.refusals import InvalidInput
from datastore.values.folding import MOST_MARKS
from resolvers.values.texts import is_line

LONGEST_NAME = 80
LONGEST_FOLDED = 800
"""Bytes of a normalised name, which is part of a key of at most 1,024: one Arabic ligature becomes 18 letters."""
LONGEST_TITLE = 120
LONGEST_DESCRIPTION = 500
_CHARACTERS = f"no invisible ones, and no more than {MOST_MARKS} accents or other marks in a row"
_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u2060-\u2065\ufeff]")
"""What would make two names look the same."""


def parse_title(text: str) -> str:
    return _parse_line(text, "title", LONGEST_TITLE)


def parse_name(text: str) -> str:
    name = _parse_line(text, "name", LONGEST_NAME)
    if len(voting_store.folded(name).encode()) > LONGEST_FOLDED:
        raise InvalidInput(
            "This name is too long once its ligatures are spelled out. Choose a shorter one.", path=("input", "name")
        )
    return name


def parse_description(text: str) -> str:
    """Plain text of a few lines."""
    description = "\n".join(line.rstrip() for line in re.split(r"\r\n?|\n", text.strip()))
    if not _is_visible(description.replace("\n", " ").replace("\t", " "), LONGEST_DESCRIPTION):
        raise InvalidInput(
            f"A description has 1 to {LONGEST_DESCRIPTION} characters, {_CHARACTERS}. Null removes it.",
            path=("input", "description"),
        )
    return description


def _parse_line(text: str, name: str, longest: int) -> str:
    """One line of visible text, its white space folded."""
    line = " ".join(text.split())
    if not _is_visible(line, longest):
        raise InvalidInput(f"A {name} has 1 to {longest} characters, {_CHARACTERS}.", path=("input", name))
    return line


def _is_visible(text: str, longest: int) -> bool:
    return is_line(text, longest) and not _INVISIBLE.search(text)
