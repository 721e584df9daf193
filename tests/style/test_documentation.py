"""The texts for people, held to what they speak of: queries fit, links lead somewhere, targets exist."""

import re
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from graphql import parse, validate

from datastore.refusals import InvalidInput
from resolvers.comments import transfer
from resolvers.comments.transfer import parse_line
from resolvers.values.texts import camel_case
from schema import schema
from server.execution.limits import Limits, check_counts
from tests.generated import ROOT

GUIDE = sorted((ROOT / "docs").rglob("*.md"))
TEXTS = sorted([*ROOT.glob("*.md"), *GUIDE, *(ROOT / "bench").glob("*.md"), *(ROOT / "bench" / "results").glob("*.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")
SETTINGS = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
OF_TESTS = ("RINGSIDE_TEST_", "RINGSIDE_ATTACK_", "RINGSIDE_ORACLE_")
"""What variables begin with that only the tests read."""
LIST_ITEM = re.compile(r"\s*(?:[-*]|\d+\.) ")
QUERIES = re.findall(r"```graphql\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: " ".join(query.split())[:40])
def test_a_query_of_the_readme_runs(query: str) -> None:
    """It fits the schema and the limits as it stands there."""
    document = parse(query)
    assert validate(schema._schema, document) == []
    check_counts(document, Limits())


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_within_the_repository_exist(text: Path) -> None:
    """Those within the repository."""
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)[^)]*\)", text.read_text(encoding="utf-8"))
    assert [link for link in links if not (text.parent / link).exists()] == []


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_make_targets_exist(text: Path) -> None:
    """`make something` is a line of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z-]+)\b", text.read_text(encoding="utf-8"), re.MULTILINE))
    assert named <= targets


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_settings_exist(text: Path) -> None:
    """Every setting that is named has a row in the guide's table."""
    settings = set(re.findall(r"^\| `(RINGSIDE_[A-Z_]+)`", SETTINGS, re.MULTILINE))
    assert len(settings) > 30
    named = set(re.findall(r"`(RINGSIDE_[A-Z_]+)", text.read_text(encoding="utf-8")))
    assert {name for name in named if not name.startswith(OF_TESTS)} <= settings


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_lists_and_code_are_shown_as_such(text: Path) -> None:
    """The guide shows a list only after an empty line or another item; code has a language."""
    previous, inside, wrong = "", False, []
    for line in text.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            wrong += [line] if line == "```" and not inside else []
            inside = not inside
        elif not inside and LIST_ITEM.match(line) and previous.strip():
            wrong += [] if LIST_ITEM.match(previous) or previous.startswith(" ") else [line]
        previous = line
    assert wrong == []


def test_the_readme_is_short_and_has_both_commands() -> None:
    """Its reader decides within a minute; everything else is in the guide."""
    assert len(README.encode()) <= 8_192
    commands = re.search(r"```sh\n(.*?)```", README, re.DOTALL)
    assert commands
    assert [line.split("#")[0].strip() for line in commands[1].splitlines()] == ["make run", "make test"]


def test_every_page_of_the_guide_is_in_its_menu() -> None:
    """Nobody finds the others."""
    config = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f'"{page.name}"' not in config] == []


def test_the_accents_of_the_guide_can_be_read_in_both_colour_schemes() -> None:
    """On the theme's backgrounds, and on a tenth of its own accent above them, as in the menu: WCAG asks for 4.5."""
    grounds, tint = {"default": "ffffff", "slate": "0b0c0f"}, _parts("526cfe")
    css = (ROOT / "docs" / "stylesheets" / "guide.css").read_text(encoding="utf-8")
    accents = dict(re.findall(r'scheme="(\w+)"\] \{ --md-accent-fg-color: #(\w{6}); \}', css))
    assert accents.keys() == grounds.keys()
    for scheme, accent in accents.items():
        ground = _parts(grounds[scheme])
        menu = [0.9 * below + 0.1 * above for below, above in zip(ground, tint, strict=True)]
        assert min(_contrast(_parts(accent), ground), _contrast(_parts(accent), menu)) >= 4.5, scheme


def _parts(colour: str) -> list[float]:
    return [part / 255 for part in bytes.fromhex(colour)]


def _contrast(*colours: list[float]) -> float:
    """The ratio of two colours' luminances, as WCAG defines it."""
    linear = [[p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in colour] for colour in colours]
    dark, light = sorted(0.2126 * red + 0.7152 * green + 0.0722 * blue for red, green, blue in linear)
    return (light + 0.05) / (dark + 0.05)


def test_the_guide_names_every_field_of_an_imported_comment() -> None:
    """An export has them, and any other is refused. Which of them a line needs is what the import asks for."""
    text = (ROOT / "docs" / "imports.md").read_text(encoding="utf-8")
    section = text[text.index("## Comments\n") : text.index("## Comments of another system")]
    named = dict(re.findall(r"^\| `(\w+)` \| (required: )?", section, re.MULTILINE))
    assert named.keys() == transfer._FIELDS
    given = {"language": "en", "product": "42", "body": "Fine.", "author": "0" * 26, "createdAt": "2026-01-01T00:00Z"}
    assert parse_line(orjson.dumps(given)).rating is None
    for name in (name for name, required in named.items() if required):
        with pytest.raises(InvalidInput):
            parse_line(orjson.dumps({key: value for key, value in given.items() if key != name}))
    assert {name for name, required in named.items() if required} == given.keys() - {"createdAt"}


def test_the_costs_that_are_advertised_are_the_calculator_s() -> None:
    """To the cent. A sum of rounded lines is another one."""
    votes, pages = monthly_cost("--votes", "1e6"), monthly_cost("--pages", "1e6")
    idle = monthly_cost("--processes", "1")
    sentences = " ".join(README.split())
    assert f"a million votes cost ${votes}, a million pages of comments ${pages}." in sentences
    assert f"${idle} a month for its polling" in sentences
    assert f"${idle} a month together" in (ROOT / "docs" / "cost.md").read_text(encoding="utf-8")


def monthly_cost(*options: str) -> str:
    """The calculator's last number."""
    calculator = [sys.executable, "deploy/cost/calculator.py", *options]
    printed = subprocess.run(calculator, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return printed.split()[-2]


def test_the_page_about_security_names_every_signed_value() -> None:
    """A module signs one kind of value, or two that stand in one row."""
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .+ \| \d+ bytes \|", page, re.MULTILINE)
    modules = [file for part in ("datastore", "resolvers", "server") for file in (ROOT / part).rglob("*.py")]
    signing = [file.name for file in modules if "seal.sign_text(" in file.read_text(encoding="utf-8")]
    assert len(rows) == len(signing), signing


def test_the_guide_names_all_that_suspended_members_may_send() -> None:
    """Each mutation that is declared so."""
    text = (ROOT / "docs" / "members.md").read_text(encoding="utf-8")
    section = text[text.index("## Suspending") : text.index("## Taking back")]
    declared = (ROOT / "schema" / "members.py").read_text(encoding="utf-8")
    mutations = re.findall(r"^    (\w+) = mutation\((.*?)^    \)$", declared, re.MULTILINE | re.DOTALL)
    allowed = {camel_case(name) for name, body in mutations if re.search("while_suspended=True|_OF_EVERYBODY", body)}
    assert len(allowed) > 5
    assert allowed <= set(re.findall(r"`(\w+)`", section))
