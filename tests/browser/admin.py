"""The admin pages in Chromium: opening them with a role, and a keyboard that counts."""

import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Frame, Locator, Page, expect

from tests.browser.pages import RECORD_VIOLATIONS, BrowserPage, new_context
from tests.browser.sites import Visited
from tests.waiting import LONGEST

AREAS = {
    "overview": "figure >> rect",
    "comments/latest": "article.current",
    "boards": "ul >> button",
    "events": "ul >> button",
    "words": "ul >> button",
    "imports": "#import-text",
    "rules": "#add-rule",
    "members": "ul >> button",
    "journal": "ul >> li",
    "webhooks": "#webhook-url",
    "service": "table",
}
"""Each area, and what is there once it has been read. A button is pressed, to see what it leads to."""
NODES = "document.querySelector('ringside-admin').shadowRoot.querySelectorAll('*').length"
"""How many nodes the page has."""


async def opened(visited: Visited, browser: Browser, role: str | None, path: str = "", **options: Any) -> BrowserPage:
    """The page of a member with this role, or of a visitor."""
    context = await new_context(browser, **{"locale": "en-GB", "viewport": {"width": 390, "height": 844}, **options})
    page = BrowserPage(await context.new_page(), visited.service.url)
    await page.page.add_init_script(RECORD_VIOLATIONS)
    if role:
        token = visited.service.token("mira", "--role", role)
        stored = json.dumps(json.dumps({"member": {"token": token, "expiresAt": "2100-01-01"}}))
        await page.page.add_init_script(f"localStorage.setItem('ringside {visited.service.url}/', {stored})")
    await page.page.goto(f"{visited.service.url}/admin{path}")
    return page


async def assert_clean(page: BrowserPage) -> None:
    """Axe finds nothing, nothing is wider than the page, and the policy blocks nothing."""
    assert await page.barriers() == []
    wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert not await page.page.evaluate(wide)
    assert await page.violations() == []
    assert page.errors == []


async def double_click(page: Page, button: Locator, between: Callable[[], Awaitable[None]]) -> None:
    """Slowly: the second click comes after what is waited for between."""
    box = await button.bounding_box()
    assert box is not None
    place = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    await page.mouse.click(*place)
    await between()
    await page.mouse.down(click_count=2)
    await page.mouse.up(click_count=2)


class Keys:
    """A keyboard that counts what is pressed, and the pages that are opened; text that is pasted counts as one key."""

    def __init__(self, page: BrowserPage) -> None:
        self.page = page
        self.pressed = 0
        self.pages = 1
        page.page.on("framenavigated", self._open)

    def _open(self, _frame: Frame) -> None:
        self.pages += 1

    async def press(self, key: str, times: int = 1) -> None:
        for _ in range(times):
            await self.page.page.keyboard.press(key)
        self.pressed += times

    async def paste(self, text: str) -> None:
        await self.page.page.keyboard.insert_text(text)
        self.pressed += 1

    async def to(self, role: Any, name: str) -> None:
        """Tab until the control has the focus."""
        control = self.page.page.get_by_role(role, name=name, exact=True)
        await control.wait_for()
        while not await control.evaluate("(node) => node.getRootNode().activeElement === node"):
            await self.press("Tab")
            assert self.pressed < 200, name


async def entered(page: BrowserPage, area: str) -> Locator:
    """What an area shows, once it is there in place of the one before."""
    await page.page.evaluate(f"location.hash = '#/{area}'")
    await expect(page.page.locator(f"nav a[href='#/{area}']")).to_have_attribute("aria-current", "page")
    return page.page.locator("ringside-admin main")


async def searched(page: Page, name: str) -> Locator:
    """The button with the name of a member who was looked for."""
    search = page.get_by_label("Name, id or address")
    await search.fill(name)
    await search.press("Enter")
    return await _only(page, name)


async def _only(page: Page, name: str) -> Locator:
    """The button with this name, once nobody else is listed: until then it may move while it is pressed."""
    await expect(page.locator("ringside-admin li button").filter(has_not_text=name)).to_have_count(0)
    return page.get_by_role("button", name=name)


async def create_event(page: Page, name: str, starts_at: str, matches: str = "") -> None:
    """Send the form for a new event, once the list above it is there: until then its button moves."""
    await expect(page.locator("#event-0")).to_be_visible()
    await page.locator("#new-event-name").fill(name)
    await page.locator("#new-event-startsAt").fill(starts_at)
    await page.locator("#new-event-matches").fill(matches)
    await page.get_by_role("button", name="Create").click()


async def found(page: BrowserPage, name: str, by: str | None = None) -> Keys:
    """A keyboard that has looked for a member, by name or address, and chosen them."""
    keys = Keys(page)
    await keys.to("searchbox", "Name, id or address")
    await keys.paste(by or name)
    await keys.press("Enter")
    await (await _only(page.page, name)).wait_for()
    await keys.to("button", name)
    await keys.press("Enter")
    await expect(page.page.get_by_role("heading", name=name)).to_be_focused()
    return keys


def printed(capsys: pytest.CaptureFixture[str], chore: str, keys: Keys) -> None:
    """Print how many keystrokes and pages a chore took, to compare it with other runs."""
    with capsys.disabled():
        sys.stdout.write(f"\n{chore}: {keys.pressed} keystrokes, pages: {keys.pages}.\n")


def ask(visited: Visited, query: str) -> Any:
    """What a visitor is answered."""
    return httpx.post(f"{visited.service.url}/graphql", json={"query": query}, timeout=LONGEST).json()["data"]
