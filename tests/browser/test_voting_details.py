"""The voting page with descriptions, links, pictures by address, and hours, in a real browser."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Route, expect

from datastore.dynamo import iso
from resolvers.requests.context import utc_now
from tests.browser.conftest import VIEWPORT
from tests.browser.pages import RECORD_VIOLATIONS, VotingPage, new_context
from tests.queries import ADD_CONTENDER, CREATE_BOARD, UPDATE_BOARD
from tests.service import Service, running_service

pytestmark = pytest.mark.asyncio(loop_scope="session")

IMAGE = "https://images.example.com/ada.svg"
HOSTILE = "<img src=x onerror=alert(1)>\n</p><script>alert(2)</script> \"quoted\" & 'so'"
PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9"/></svg>'


@pytest.fixture(scope="module")
def own_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that shows pictures of one host; its boards belong to this module."""
    variables = {
        "RINGSIDE_DATA": str(tmp_path_factory.mktemp("details")),
        "RINGSIDE_IMAGE_HOSTS": "images.example.com",
        "RINGSIDE_DEMO": "true",
    }
    with running_service(variables) as service:
        yield service


@pytest_asyncio.fixture(loop_scope="session")
async def context(browser: Browser) -> AsyncIterator[BrowserContext]:
    """A new visitor, for whom the host of pictures answers; every other host is out of reach."""
    context = await new_context(browser, viewport=VIEWPORT, color_scheme="light", locale="en-GB", timezone_id="UTC")

    async def answer(route: Route) -> None:
        await route.fulfill(body=PICTURE, content_type="image/svg+xml")

    await context.route("https://images.example.com/**", answer)
    yield context
    await context.close()


@pytest.fixture(scope="module")
def editor(own_service: Service) -> Iterator[httpx.Client]:
    """An editor's client."""
    headers = {"authorization": f"Bearer {own_service.token('editor', '--role', 'editor')}"}
    with httpx.Client(headers=headers, base_url=own_service.url) as http:
        yield http


def edit(editor: httpx.Client, query: str, **given: Any) -> None:
    answer = editor.post("/graphql", json={"query": query, "variables": {"input": given}}).json()
    assert "code" not in next(iter(answer["data"].values())), answer


async def open_board(context: BrowserContext, service: Service, board: str) -> VotingPage:
    page = VotingPage(await context.new_page(), service.url)
    await page.page.add_init_script(RECORD_VIOLATIONS)
    await page.page.goto(f"{service.url}/?board={board}")
    return page


async def test_texts_are_shown_as_texts_and_links_open_safely(
    own_service: Service, editor: httpx.Client, context: BrowserContext
) -> None:
    """Markup in a description stays text; a link tells the other page nothing; a picture comes from its host."""
    ada = {"name": "Ada", "description": HOSTILE, "link": "https://example.com/ada?x=%22", "imageUrl": IMAGE}
    edit(editor, CREATE_BOARD, slug="details", title="Details")
    edit(editor, ADD_CONTENDER, board="details", **ada)
    edit(editor, ADD_CONTENDER, board="details", name="Bea", svg=PICTURE)
    page = await open_board(context, own_service, "details")
    await expect(page.left).to_be_enabled()
    ada_is_left = await page.name(page.left) == "Ada"
    corner = page.left if ada_is_left else page.right
    contender = page.page.locator(".contender").filter(has=corner)
    assert await contender.locator(".description").inner_text() == HOSTILE
    assert await contender.locator(".description *").count() == 0
    link = contender.get_by_role("link", name="More about Ada")
    assert await link.get_attribute("href") == ada["link"]
    assert set((await link.get_attribute("rel") or "").split()) >= {"noopener", "noreferrer"}
    assert await link.get_attribute("target") == "_blank"
    assert await corner.locator("img").get_attribute("src") == IMAGE
    assert await corner.locator("img").evaluate("async (img) => { await img.decode(); return img.naturalWidth }") == 9
    await expect(corner).to_have_attribute("aria-describedby", f"{'left' if ada_is_left else 'right'}-description")
    other = page.page.locator(".contender").filter(has=page.right if ada_is_left else page.left)
    await expect(other.locator(".description")).to_be_hidden()
    await expect(other.locator(".more")).to_be_hidden()
    await page.left.click()
    await expect(page.status).to_contain_text("You have seen every pair.")
    assert await page.violations() == []
    assert page.errors == []


async def test_each_text_has_its_own_direction(
    own_service: Service, editor: httpx.Client, context: BrowserContext
) -> None:
    """An Arabic name with a number, or a Hebrew sentence with its full stop, reads from right to left."""
    edit(editor, CREATE_BOARD, slug="directions", title="מי ינצח?")
    edit(
        editor,
        ADD_CONTENDER,
        board="directions",
        name="مرحبا 123 (C++)",
        description="שלום.",
        link="https://example.com/",
    )
    edit(editor, ADD_CONTENDER, board="directions", name="Ada 123", description="Hello.")
    page = await open_board(context, own_service, "directions")
    await expect(page.left).to_be_enabled()
    await expect(page.page.locator("#rows tr")).to_have_count(2)

    async def directions(selector: str) -> dict[str, str]:
        texts = "(all) => all.map((one) => [one.textContent, getComputedStyle(one).direction])"
        return dict(await page.page.locator(selector).evaluate_all(texts))

    names = {"مرحبا 123 (C++)": "rtl", "Ada 123": "ltr"}
    assert await directions(".corner .name") == names
    assert await directions(".description") == {"שלום.": "rtl", "Hello.": "ltr"}
    assert await directions("#question") == {"מי ינצח?": "rtl"}
    assert await directions("#rows .who span span") == names
    assert await directions(".more bdi") == {"مرحبا 123 (C++)": "rtl"}


async def test_the_policy_allows_exactly_the_operator_s_hosts(own_service: Service, context: BrowserContext) -> None:
    """A picture of another host is blocked by the browser, no matter how its address got into the page."""
    page = VotingPage(await context.new_page(), own_service.url)
    await page.open()
    response = await page.page.request.get(f"{own_service.url}/")
    assert "img-src 'self' data: https://images.example.com;" in response.headers["content-security-policy"]
    for url, blocked in ((IMAGE, []), ("https://evil.example/x.png", ["img-src: https://evil.example/x.png"])):
        await page.page.evaluate(
            "(url) => new Promise((go) => { const img = new Image(); img.onload = img.onerror = go; img.src = url; })",
            url,
        )
        assert await page.violations() == blocked


async def test_the_page_tells_when_voting_opens_and_that_it_ended(
    own_service: Service, editor: httpx.Client, context: BrowserContext
) -> None:
    """Before: when it opens, and it is ready then. After: that it ended, and the leaderboard stays."""
    edit(editor, CREATE_BOARD, slug="hours", title="Hours")
    for name in ("Cat", "Dog"):
        edit(editor, ADD_CONTENDER, board="hours", name=name)
    opens = utc_now() + timedelta(seconds=14)
    closes = opens + timedelta(seconds=6)
    edit(editor, UPDATE_BOARD, slug="hours", opensAt=iso(opens), closesAt=iso(closes))
    page = await open_board(context, own_service, "hours")
    await expect(page.status).to_contain_text(f"Voting opens on {opens:%A}")
    await expect(page.left).to_be_disabled()
    await expect(page.rows).to_have_count(2)
    await expect(page.left).to_be_enabled()
    await expect(page.status).to_have_text("")
    await page.page.wait_for_timeout(max(0, (closes - utc_now()).total_seconds() * 1000) + 100)
    await page.left.click()
    await expect(page.status).to_contain_text(f"Voting ended on {closes:%A}")
    await expect(page.left).to_be_disabled()
    assert page.errors == []
    await page.page.reload()
    await expect(page.status).to_contain_text("Voting ended on")
    await expect(page.rows).to_have_count(2)


WORD = "Donaudampfschifffahrtsgesellschaftskapitän"


@pytest.mark.parametrize("width", [360, 1280])
async def test_a_board_without_pictures_shows_names_and_no_gaps(
    own_service: Service, editor: httpx.Client, context: BrowserContext, width: int
) -> None:
    """A word that is wider than its place is broken; nothing is cut off or wider than the screen."""
    edit(editor, CREATE_BOARD, slug=f"names-{width}", title="The best finishing move of the year")
    for name in (WORD, f"{WORD} II"):
        edit(editor, ADD_CONTENDER, board=f"names-{width}", name=name)
    page = await open_board(context, own_service, f"names-{width}")
    await page.page.set_viewport_size({"width": width, "height": 800})
    await expect(page.left).to_be_enabled()
    await expect(page.rows).to_have_count(2)
    assert await page.page.locator("#pair img:visible").count() == 0
    assert await page.page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = page.page.locator(".corner, .corner .name, .board, td.who")
    assert await boxes.evaluate_all("all => all.filter((one) => one.scrollWidth > one.clientWidth).length") == 0


async def test_a_board_without_contenders_shows_no_empty_ring(
    own_service: Service, editor: httpx.Client, context: BrowserContext
) -> None:
    """Nor buttons that do nothing; the ring comes back with the contenders."""
    edit(editor, CREATE_BOARD, slug="empty", title="Nothing yet")
    page = await open_board(context, own_service, "empty")
    await expect(page.status).to_contain_text("There is nothing to vote on yet")
    await expect(page.page.locator("#pair")).to_be_hidden()
    await expect(page.page.locator("#tie")).to_be_hidden()
    for name in ("Cat", "Dog"):
        edit(editor, ADD_CONTENDER, board="empty", name=name)
    await page.page.reload()
    await expect(page.left).to_be_visible()
