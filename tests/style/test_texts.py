"""What fans read, in the elements, on the page for signing in and in emails: in one tone. Staff read another one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from tests.command import ROOT

FORMAL = {
    "de": r"\bIhr(e[mnrs]?)?\b|\bIhnen\b|[^.:!] Sie\b|^(Bitte )?\w+en Sie\b|\(Sie\)",
    "es": r"\busted(es)?\b|\bsuy?os\b",
}
FOR_STAFF = ("moderation-digest",)
FOLDERS = ("elements/texts", "elements/comments/texts", "server/http/pages/texts", "server/mail/texts")


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            if name not in FOR_STAFF:
                yield from _texts(each)


@pytest.mark.parametrize("language", FORMAL)
@pytest.mark.parametrize("folder", FOLDERS)
def test_fans_are_addressed_in_one_way_wherever_they_are(folder: str, language: str) -> None:
    """An element leads to the window for signing in, and that to an email: neither suddenly becomes formal."""
    texts = json.loads((ROOT / folder / f"{language}.json").read_text(encoding="utf-8"))
    assert [text for text in _texts(texts) if re.search(FORMAL[language], text)] == []
