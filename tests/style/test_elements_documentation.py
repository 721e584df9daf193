"""The guide's pages about elements: what they name exists, and the page that they show is the one that is tested."""

import json
import re

import pytest

from tests.browser.admin import AREAS
from tests.elements import DEFINED
from tests.generated import ROOT

DOCS = ROOT / "docs"
READ_LATER = "proof"
"""An attribute that begins nothing anew."""


@pytest.mark.parametrize(("page", "least"), [("elements-states.md", 40), ("admin.md", 25)])
def test_each_function_and_state_of_the_pages_has_a_test_in_chromium(page: str, least: int) -> None:
    """By the names in the guide's table of elements, and in that of the admin pages."""
    named = set(re.findall(r"`(test_\w+)`", (DOCS / page).read_text(encoding="utf-8")))
    tests = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "tests" / "browser").glob("test_*.py"))
    assert len(named) > least
    assert sorted(named - set(re.findall(r"^(?:async )?def (test_\w+)", tests, re.MULTILINE))) == []


def test_the_table_of_the_admin_pages_has_every_area_and_no_empty_cell() -> None:
    """What is done there, with how many keystrokes, and which test does it."""
    rows = re.findall(r"^\| (?!task)(.+) \|$", (DOCS / "admin.md").read_text(encoding="utf-8"), re.MULTILINE)
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    assert [row for row in cells if len(row) != 4 or not all(row)] == []
    texts = json.loads((ROOT / "elements" / "admin" / "texts" / "en.json").read_text(encoding="utf-8"))
    named = {area for _, areas, _, _ in cells for area in re.split(", (?:then )?", areas)}
    assert {texts[area.split("/")[-1]] for area in AREAS} <= named


def test_the_guide_shows_the_page_of_the_examples_in_twelve_lines() -> None:
    """All parts, signed in."""
    page = (ROOT / "examples" / "page.html").read_text(encoding="utf-8")
    (shown,) = re.findall(
        r"```html\n(<!doctype html>\n.*?)```", (DOCS / "elements.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert shown == page
    assert len(shown.splitlines()) == 12
    assert set(re.findall(r"<ringside-([\w-]+)", shown)) == {"sign-in", "board", "event", "comments", "word"}


def test_every_element_has_a_page_of_the_guide() -> None:
    """With its attributes, events, looks, parts, requests and policy, of which the page on embedding tells all."""
    embedding = (DOCS / "other-sites.md").read_text(encoding="utf-8")
    for name in DEFINED.keys() - {"comments"}:  # whose page has sections for these
        page = (DOCS / f"elements-{name}.md").read_text(encoding="utf-8")
        for part in ("| event | `detail` |", "**Parts**", "**Requests**", "**Content security policy**"):
            assert part in page, (name, part)
        assert "`theme`" in page, name
        assert "elements.md#looks" in page, name
        assert set(re.findall(r"`\w+-src`", page)) <= set(re.findall(r"`\w+-src`", embedding)), name


def test_the_elements_can_be_tried_with_each_attribute_and_tell_each_event() -> None:
    """Those of the guide's tables, which has every element and attribute."""
    defined = {**DEFINED, "comments": [*DEFINED["comments"], READ_LATER]}
    tried = (DOCS / "javascripts" / "try.js").read_text(encoding="utf-8")
    elements, events = (
        (DOCS / "elements.md").read_text(encoding="utf-8").partition("\n## Looks")[0].split("\n## Events")
    )
    attributes: dict[str, list[str]] = {"sign-in": []}
    for element, named in re.findall(r"^\| (?:`ringside-([\w-]+)` )?\| (`[^|]*`) \|", elements, re.MULTILINE):
        attributes.setdefault(element or list(attributes)[-1], []).extend(re.findall(r"`(\w+)`", named))
    shown = re.findall(r"^  '?([\w-]+)'?: \{(.*)\},$", tried, re.MULTILINE)
    assert {element: re.findall(r"(\w+):", given) for element, given in shown} == attributes
    assert attributes == defined
    told = tried.partition("EVENTS = [")[2].partition("]")[0]
    assert sorted(re.findall(r"'([\w-]+)'", told)) == sorted(re.findall(r"`ringside-([\w-]+)`", events))
