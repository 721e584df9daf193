"""The examples on another site than the service's, in a browser that blocks third-party cookies."""

import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext, expect

from tests.browser.pages import BrowserPage
from tests.browser.sites import ALLOWED, BLOCKED, EXAMPLES, Visited, browser_with, running_site
from tests.command import ROOT

pytestmark = pytest.mark.asyncio(loop_scope="session")

COUNT_COOKIES = """async (address) => {
  for (let asked = 0; asked < 2; asked++) await fetch(address, { credentials: 'include' });
  return (await fetch(address, { credentials: 'include' })).text();
}"""
VITE_CONFIG = """
const packages = "%s/explorer/node_modules";
export default {
  root: "%s/examples/react",
  build: { outDir: "%s", emptyOutDir: true, minify: false },
  resolve: { alias: { react: `${packages}/react`, "react-dom": `${packages}/react-dom` } },
};
"""


@pytest_asyncio.fixture(loop_scope="session")
async def strict_browser(whole_chromium: str, tmp_path: Path) -> AsyncIterator[BrowserContext]:
    async with browser_with(whole_chromium, tmp_path, BLOCKED) as context:
        yield context


async def test_a_page_of_another_site_has_all_parts_with_twelve_lines(
    strict_browser: BrowserContext, visited: Visited
) -> None:
    """A visitor votes there without any cookie, and after a reload goes on as the same visitor."""
    service, site = visited.service, visited.site
    assert len((EXAMPLES / "page.html").read_text(encoding="utf-8").splitlines()) == 12
    page = BrowserPage(await strict_browser.new_page(), site.address)
    await page.page.goto(f"{site.address}/page.html")
    board = page.page.locator("ringside-board")
    vote = board.get_by_role("button", name="Vote for").first
    await expect(vote).to_be_enabled()
    await vote.click()
    await expect(board.locator(".progress")).to_contain_text("Pairs seen: 1 of 276")
    await expect(board.locator(".live")).to_have_text("live")
    await expect(page.page.locator("ringside-comments article")).to_have_count(10)
    await expect(page.page.locator("ringside-event").get_by_role("heading")).to_have_text("Winter Crown")
    await expect(page.page.locator("ringside-word .term").first).to_be_visible()
    await expect(page.page.locator("ringside-sign-in")).to_contain_text("You are not signed in.")
    await page.page.reload()
    await expect(board.locator(".progress")).to_contain_text("Pairs seen: 1 of 276")
    assert any(url.startswith(service.url) for url in page.requests)
    assert await strict_browser.cookies() == []
    assert page.errors == []


async def test_a_page_in_react_hands_on_attributes_and_hears_events(
    strict_browser: BrowserContext, visited: Visited, tmp_path: Path
) -> None:
    """React 19 needs no wrapper: another board is shown once the attribute changes."""
    site = visited.site
    built, config = tmp_path / "react", tmp_path / "vite.config.mjs"
    config.write_text(VITE_CONFIG % (ROOT, ROOT, built))
    node, vite = Path(sys.executable).with_name("node"), ROOT / "explorer" / "node_modules" / "vite" / "bin" / "vite.js"
    if not vite.exists():
        pytest.skip("vite is not here: make pages")
    command: list[str | Path] = [node, vite, "build", "--config", config, "--logLevel", "error"]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT / "explorer")
    site.folder = built
    try:
        page = BrowserPage(await strict_browser.new_page(), site.address)
        await page.page.goto(f"{site.address}/")
        await page.page.get_by_role("button", name="Vote for").first.click()
        await expect(page.page.locator("#last")).to_have_text("Your last verdict: LEFT")
        # Without a stream the socket is closed, which the console tells of one that still connects.
        await expect(page.page.locator("ringside-board .live")).to_have_text("live")
        await page.page.get_by_label("Vote on").select_option("finishers")
        await expect(page.page.locator("ringside-board")).to_contain_text("There is no vote called “finishers” here.")
        assert page.errors == []
    finally:
        site.folder = EXAMPLES


async def test_a_page_of_a_static_site_has_comments(
    strict_browser: BrowserContext, visited: Visited, tmp_path: Path
) -> None:
    """An element stands in Markdown as it stands in HTML."""
    site = visited.site
    source = tmp_path / "source"
    (source / "docs").mkdir(parents=True)
    for name in ("zensical.toml", "docs/index.md"):
        (source / name).write_text((EXAMPLES / "static-site" / name).read_text(encoding="utf-8"))
    subprocess.run([Path(sys.executable).with_name("zensical"), "build"], check=True, capture_output=True, cwd=source)
    site.folder = source / "site"
    try:
        page = await strict_browser.new_page()
        await page.goto(f"{site.address}/")
        await expect(page.locator("ringside-comments article")).to_have_count(10)
    finally:
        site.folder = EXAMPLES


@pytest.mark.parametrize(("setting", "sent"), [(ALLOWED, "third=party"), (BLOCKED, "none")])
async def test_the_browser_does_block_cookies_of_other_sites(
    whole_chromium: str, tmp_path: Path, setting: Mapping[str, object], sent: str
) -> None:
    """Even those meant for other sites, `SameSite=None; Secure`; with the other setting they are sent."""
    with running_site() as site:
        async with browser_with(whole_chromium, tmp_path, setting) as browser:
            page = await browser.new_page()
            await page.goto(site.show("nothing"))
            own = f"{site.address}/cookie"
            assert await page.evaluate(COUNT_COOKIES, own) == "third=party"
            assert await page.evaluate(COUNT_COOKIES, own.replace("localhost", "127.0.0.1")) == sent


async def test_a_page_of_a_site_that_is_not_listed_is_told_what_may_be_missing(
    strict_browser: BrowserContext, visited: Visited
) -> None:
    """Its browser refuses to hand over the answer. The page says that it tries again, the console why that may be."""
    with running_site() as site:
        site.api = visited.service.url
        page = BrowserPage(await strict_browser.new_page(), site.address)
        await page.page.goto(site.show("<ringside-board></ringside-board>"))
        await expect(page.page.locator("ringside-board .note")).to_contain_text("The service cannot be reached.")
        (hint,) = [error for error in page.errors if "RINGSIDE_CORS_ORIGINS" in error]
        assert site.address in hint
        await expect(page.page.locator("ringside-board button.corner").first).to_be_disabled()
