"""Every area of the pages at /admin with the demo's data: accessible in both directions, colour schemes and widths.

The tests of single areas look at them in the other languages.
"""

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.admin import AREAS, assert_clean, entered, opened
from tests.browser.pages import PATIENT
from tests.browser.sites import Site, Visited
from tests.service import running_service

pytestmark = pytest.mark.asyncio(loop_scope="session")

PHONE, WIDE = {"width": 360, "height": 780}, {"width": 1280, "height": 900}


@pytest.mark.parametrize(
    ("locale", "scheme", "size"),
    [pytest.param("en-GB", "light", WIDE, marks=pytest.mark.soak), ("ar", "dark", PHONE)],
)
async def test_each_area_is_accessible_with_what_it_leads_to(
    visited: Visited, browser: Browser, screenshots: Path | None, locale: str, scheme: str, size: dict[str, int]
) -> None:
    """Axe finds nothing, nothing is wider than the page, and the policy blocks nothing."""
    page = await opened(visited, browser, "admin", locale=locale, color_scheme=scheme, viewport=size)
    for area, mark in AREAS.items():
        found = (await entered(page, area)).locator(mark).first
        await expect(found).to_be_attached()
        if mark == "ul >> button":
            await found.click()
            await expect(page.page.locator("ringside-admin section").get_by_role("heading").first).to_be_visible()
        await assert_clean(page)
        if screenshots is not None and (locale, scheme) == ("en-GB", "light"):
            await page.page.screenshot(path=screenshots / f"admin-{area.split('/')[0]}.png")
    links = page.page.locator("ringside-admin nav a")
    assert {*await links.evaluate_all("(all) => all.map(({ hash }) => hash.slice(2))")} == {*AREAS, "comments/held"}


async def test_lists_without_entries_say_so(browser: Browser, tmp_path: Path) -> None:
    """On the first day, and where no journal is kept."""
    with running_service({"RINGSIDE_DATA": str(tmp_path), "RINGSIDE_JOURNAL_DAYS": "0", **PATIENT}) as service:
        page = await opened(Visited(service, Site()), browser, "admin", "#/journal")
        for area in ("journal", "comments/held", "comments/latest", "service"):
            main = await entered(page, area)
            await expect(main.get_by_text("There is nothing here.")).to_be_visible()
        await entered(page, "imports")
        await page.page.get_by_label("What").select_option("words")
        await expect(page.page.get_by_text("There is no public list yet: make one under “Words”.")).to_be_visible()
        await expect(page.page.get_by_role("button", name="Check")).to_have_count(0)
        await assert_clean(page)
