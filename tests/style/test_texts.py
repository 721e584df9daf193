"""What fans read, in the elements, on the page for signing in and in emails: in one tone. Staff read another one.

What elements and admin pages have in common addresses nobody.
"""

import ast
import importlib
import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import datastore
import resolvers
from datastore.refusals import Refusal
from resolvers.values.languages import PAGE_LANGUAGES, page_direction
from tests.command import ROOT

FORMAL = {
    "de": r"\bIhr(e[mnrs]?)?\b|\bIhnen\b|[^.:!] Sie\b|^(Bitte )?\w+en Sie\b|\(Sie\)",
    "es": r"\busted(es)?\b|\bsuy?os\b",
}
INFORMAL = {
    "de": r"(?i)\b(du|dich|dir|dein(e[mnrs]?)?|melde|warte|lade|sieh)\b",
    "es": r"(?i)\b(tú|tus?|ti|espera un|vuelve a|inicia sesión|iníciala|añádel[oa]s?)\b",
}
FOR_STAFF = ("moderation-digest",)
OF_FANS = ("NOT_ALLOWED guest", "NOT_FOUND code")
"""Refusals that staff do not meet: of guests, and of a league's code."""
TRANSLATED = PAGE_LANGUAGES[1:]
FOLDERS = (
    "elements/texts",
    "elements/refusals",
    "elements/comments/texts",
    "server/http/pages/texts",
    "server/mail/texts",
)

FOR_PROGRAMS = r"`|RINGSIDE_|returnTo"
MISUSE = {
    "datastore.dynamo.paging", "datastore.whole.table", "resolvers.comments.pages",
    "resolvers.comments.transfer", "resolvers.comments.writing", "resolvers.journal.usage",
    "resolvers.members.sign_in_codes", "resolvers.vocabulary.lists", "resolvers.vocabulary.texts",
    "resolvers.voting.voiding", "resolvers.whole.erasing", "resolvers.whole.trials",
}  # fmt: skip
"""Each refuses what no page of ours sends, a line of a file or a command, in the words of a program."""


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


@pytest.mark.parametrize("language", PAGE_LANGUAGES)
@pytest.mark.parametrize("folder", ["server/http/pages/texts", "server/mail/texts"])
def test_every_text_of_pages_and_emails_is_in_every_language(folder: str, language: str) -> None:
    """With the same values in it: one that is missing fails only when somebody reads it in that language."""
    texts, english = (json.loads((ROOT / folder / f"{each}.json").read_text("utf-8")) for each in (language, "en"))
    assert _values(texts) == _values(english)


@pytest.mark.parametrize("language", TRANSLATED[1:])
def test_every_refusal_that_an_element_translates_is_in_every_language(language: str) -> None:
    """In English it is the service's own message."""
    texts, german = (
        json.loads((ROOT / "elements/refusals" / f"{each}.json").read_text("utf-8")) for each in (language, "de")
    )
    assert _values(texts) == _values(german)


@pytest.mark.parametrize("language", TRANSLATED)
@pytest.mark.parametrize("folder", [*FOLDERS, "elements/admin/texts"])
def test_a_language_of_pages_is_that_of_elements_and_emails_too(folder: str, language: str) -> None:
    """Each folder of texts has it."""
    assert (ROOT / folder / f"{language}.json").exists()


@pytest.mark.parametrize("file", ["elements/elements.ts", "elements/refusals.ts", "elements/admin/admin.tsx"])
def test_scripts_load_the_texts_of_every_language(file: str) -> None:
    """A language that a script does not know is shown in English, without a word about it."""
    loaders = (ROOT / file).read_text(encoding="utf-8").partition("const TEXTS: ")[2].partition("\n};\n")[0]
    assert sorted({"en", *re.findall(r"^  (\w+): ", loaders, re.MULTILINE)}) == sorted(PAGE_LANGUAGES)


def test_the_page_for_signing_in_knows_every_language() -> None:
    """In the order in which a reader's own is looked for."""
    script = (ROOT / "server/http/pages/sign-in/sign-in.js").read_text(encoding="utf-8")
    (known,) = re.findall(r"^const LANGUAGES = \[(.*)\];$", script, re.MULTILINE)
    assert tuple(re.findall(r"'(\w+)'", known)) == PAGE_LANGUAGES


@pytest.mark.parametrize("file", ["elements/base/part.ts", "server/http/pages/sign-in/sign-in.js"])
def test_scripts_know_which_languages_are_written_from_right_to_left(file: str) -> None:
    """Those of which the service's own pages are."""
    script = (ROOT / file).read_text(encoding="utf-8")
    named = re.findall(r"\w+ === '(\w+)' \? 'rtl' : 'ltr'", script)
    assert named == [language for language in PAGE_LANGUAGES if page_direction(language) == "rtl"]


def test_the_page_for_signing_in_has_the_texts_that_it_says() -> None:
    """It would say a name of this program in place of one that is missing."""
    folder = ROOT / "server/http/pages"
    page = "".join(path.read_text("utf-8") for path in (folder / "sign-in").iterdir())
    said = set(re.findall(r"""data-text="(\w+)"|say\('(\w+)'|(?:[A-Z_]+): '(\w+)'""", page))
    names = {name for found in said for name in found if name}
    names |= {name for key in re.findall(r"button\('(\w+)'", page) for name in (key, f"{key}This")}
    assert names - set(json.loads((folder / "texts/en.json").read_text("utf-8"))) == set()
    assert {"signIn", "account", "lastIdentity", "unsubscribeThis"} <= names


def _values(texts: Any) -> Any:
    """The values that texts show, in place of each text."""
    if isinstance(texts, str):
        return sorted(re.findall(r"\{\w+\}", texts))
    return {name: _values(each) for name, each in texts.items()}


@pytest.mark.parametrize("language", INFORMAL)
def test_staff_are_not_addressed_as_fans_are(language: str) -> None:
    """Neither by the texts of the admin pages nor by those that they share with the elements."""
    own, shared, refusals = (
        json.loads((ROOT / folder / f"{language}.json").read_text(encoding="utf-8"))
        for folder in ("elements/admin/texts", "elements/texts", "elements/refusals")
    )
    refused = [text for name, text in refusals.items() if name not in OF_FANS]
    texts = [*_texts(own), *_texts(shared["common"]), *refused]
    assert [text for text in texts if re.search(INFORMAL[language], text)] == []


def test_refusals_are_written_for_people() -> None:
    """Who reads one has typed something or pressed a button. What a program does about its code is in the guide."""
    modules = [
        importlib.import_module(module.name)
        for room in (datastore, resolvers)
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")
    ]
    for_programs = {
        module.__name__
        for module in modules
        if any(
            re.search(FOR_PROGRAMS, text)
            for text in _refusals(ast.parse(Path(str(module.__file__)).read_text("utf-8")))
        )
    }
    assert for_programs == MISUSE


def _refusals(module: ast.Module) -> Iterator[str]:
    """The texts given to refusals, and those that their classes have."""
    names = {each.__name__ for each in _kinds(Refusal)}
    for node in ast.walk(module):
        given: list[ast.AST] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            given = [*node.args]
        elif isinstance(node, ast.ClassDef) and node.name in names:
            given = [each for each in node.body if isinstance(each, ast.Assign | ast.AnnAssign)]
        for each in given:
            found = (inner.value for inner in ast.walk(each) if isinstance(inner, ast.Constant))
            yield from (value for value in found if isinstance(value, str))


def _kinds(refusal: type[Refusal]) -> Iterator[type[Refusal]]:
    for each in refusal.__subclasses__():
        yield each
        yield from _kinds(each)
