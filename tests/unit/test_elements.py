"""The elements as they are built: how much a page loads, and the tags that load them."""

import base64
import gzip
import hashlib
import re
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from resolvers.values.languages import PAGE_LANGUAGES
from server.http.browser_pages import ELEMENTS_FOLDER, Elements
from tests.command import ringside
from tests.elements import DEFINED

KIB = 1024
SHARED = ("part", "streams")
"""What every element loads beside its own script."""
LANGUAGES = PAGE_LANGUAGES[1:]
REFUSALS = "refusals"
"""What shows a refusal in one of them."""
SOLVER = "challenge"
LIMITS = dict.fromkeys(DEFINED, 10 * KIB) | {"comments": 13 * KIB}


@pytest.fixture(scope="module")
def sizes() -> dict[str, int]:
    """Of each script, by its name without the hash: bytes after `gzip -9`. Files of one name are added up."""
    if Elements().script is None:
        pytest.skip("the elements are not here: make pages")
    found: dict[str, int] = {}
    for file in ELEMENTS_FOLDER.rglob("*.js"):
        name = file.name.partition(".")[0]
        found[name] = found.get(name, 0) + len(gzip.compress(file.read_bytes(), 9))
    return found


def test_the_script_of_the_page_is_small(sizes: dict[str, int]) -> None:
    """It is loaded by every page, whatever elements it has."""
    assert sizes["elements"] <= 2.5 * KIB


@pytest.mark.parametrize("element", DEFINED)
def test_a_page_with_one_element_loads_little_beyond_it(sizes: dict[str, int], element: str) -> None:
    """With what elements share, and the stream of what is live."""
    assert sum(sizes[name] for name in (element, *SHARED)) <= LIMITS[element]


def test_all_elements_together_are_small(sizes: dict[str, int]) -> None:
    """With what is loaded only when it is needed, such as the window for signing in."""
    assert set(DEFINED) <= set(sizes)
    assert sum(size for name, size in sizes.items() if name not in {*LANGUAGES, REFUSALS, SOLVER}) <= 36 * KIB


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_texts_of_a_language_are_small(language: str) -> None:
    """A page loads those of one language, and English stands in the parts."""
    files = list(ELEMENTS_FOLDER.rglob(f"{language}.*.js"))
    if not files:
        pytest.skip("the elements are not here: make pages")
    assert max(len(gzip.compress(file.read_bytes(), 9)) for file in files) <= 3 * KIB


def test_the_solver_of_challenges_is_small(sizes: dict[str, int]) -> None:
    """It is loaded once a comment was refused without it."""
    assert sizes[SOLVER] <= 8 * KIB


def test_the_documents_of_the_release_before_are_known(tmp_path: Path) -> None:
    """A page that was open during an upgrade goes on. Of a name that both have, the present text counts."""
    (tmp_path / "documents.json").write_text('{"b": "query B { now }", "c": "query C { now }"}', encoding="utf-8")
    assert set(Elements(tmp_path).documents()) == {"b", "c"}
    (tmp_path / "previous.json").write_text('{"a": "query A { now }", "b": "{ now }"}', encoding="utf-8")
    assert Elements(tmp_path).documents() == {
        "a": "query A { now }",
        "b": "query B { now }",
        "c": "query C { now }",
    }


async def test_both_tags_load_the_same_script_and_one_pins_it(tmp_path: Path) -> None:
    """By its digest. A browser may take them from any site, and keeps the pinned one."""
    tags = _printed(tmp_path)
    current, pinned = tags
    addresses = re.findall(r'src="([^"]+)"', "".join(tags))
    app = Starlette(routes=Elements().routes())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as http:
        scripts = [await http.get(address) for address in addresses]
    assert addresses[0] == "https://api.example.com/elements.js"
    assert scripts[0].content == scripts[1].content
    digest = base64.b64encode(hashlib.sha384(scripts[1].content).digest()).decode()
    assert f' integrity="sha384-{digest}" crossorigin>' in pinned
    assert "integrity" not in current
    assert [script.headers["cache-control"] for script in scripts] == [
        "no-cache", "public, max-age=31536000, immutable",
    ]  # fmt: skip
    for script in scripts:
        assert script.headers["access-control-allow-origin"] == "*"
        assert script.headers["cross-origin-resource-policy"] == "cross-origin"


def _printed(folder: Path) -> list[str]:
    """What `ringside elements` prints."""
    if Elements().script is None:
        pytest.skip("the elements are not here: make pages")
    variables = {"RINGSIDE_DATA": str(folder), "RINGSIDE_PUBLIC_URL": "https://api.example.com"}
    return ringside("elements", **variables).stdout.splitlines()
