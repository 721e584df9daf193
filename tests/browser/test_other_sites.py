"""The voting page on another site than the service's, in a browser that blocks third-party cookies.

The site is another origin, by its port, and another site, by its host name: the service is at 127.0.0.1, the page at
localhost.
"""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext, async_playwright, expect

from tests.browser.conftest import FLAGS, VIEWPORT
from tests.browser.pages import VotingPage
from tests.service import ROOT, Service, running_service

pytestmark = pytest.mark.asyncio(loop_scope="session")

ALLOWED, BLOCKED = 0, 1
"""Values of Chromium's preference for third-party cookies."""

TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css"}
COUNT_COOKIES = """async (address) => {
  for (let asked = 0; asked < 2; asked++) await fetch(address, { credentials: 'include' });
  return (await fetch(address, { credentials: 'include' })).text();
}"""


class _Site(BaseHTTPRequestHandler):
    """Serves the files of examples/, whose page names the service; and at /cookie says which cookie it was sent."""

    api = ""

    def do_GET(self) -> None:
        if self.path == "/cookie":
            self._cookie()
            return
        path = ROOT / "examples" / (self.path.strip("/").partition("?")[0] or "vote.html")
        if not path.is_file():
            self.send_error(404)
            return
        body = path.read_text(encoding="utf-8")
        body = body.replace('name="ringside-api" content="graphql"', f'name="ringside-api" content="{self.api}"')
        self._send(body.encode(), {"content-type": TYPES[path.suffix]})

    def _cookie(self) -> None:
        """Sets the cookie that other sites' pages may send, if the browser lets them."""
        self._send(
            self.headers.get("cookie", "none").encode(),
            {
                "content-type": "text/plain",
                "set-cookie": "third=party; SameSite=None; Secure; Path=/",
                "access-control-allow-origin": self.headers.get("origin", ""),
                "access-control-allow-credentials": "true",
            },
        )

    def _send(self, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(200)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the test prints what matters."""


@contextmanager
def site() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Site", (_Site,), {}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def other_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, str]]:
    """A service that allows the pages of another site, and that site's address."""
    with site() as server:
        address = f"http://localhost:{server.server_port}"
        variables = {"RINGSIDE_DATA": str(tmp_path_factory.mktemp("visited")), "RINGSIDE_CORS_ORIGINS": address}
        with running_service(variables, ["--demo"]) as service:
            server.RequestHandlerClass.api = f"{service.url}/graphql"  # type: ignore[attr-defined]  # of _Site
            yield service, address


@asynccontextmanager
async def browser_with(chromium: str, profile: Path, third_party_cookies: int) -> AsyncIterator[BrowserContext]:
    """A browser with a profile of its own, in which third-party cookies are ALLOWED or BLOCKED."""
    preferences = profile / "Default" / "Preferences"
    preferences.parent.mkdir()
    preferences.write_text(json.dumps({"profile": {"cookie_controls_mode": third_party_cookies}}))
    async with async_playwright() as playwright:
        context = await playwright.chromium.launch_persistent_context(
            profile, executable_path=chromium, args=FLAGS, viewport=VIEWPORT, locale="en-GB"
        )
        yield context
        await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def strict_browser(chromium: str, tmp_path: Path) -> AsyncIterator[BrowserContext]:
    async with browser_with(chromium, tmp_path, BLOCKED) as context:
        yield context


async def test_a_page_of_another_site_votes_without_any_cookie(
    strict_browser: BrowserContext, other_site: tuple[Service, str]
) -> None:
    """It draws, votes and watches the leaderboard; after a reload it goes on as the same visitor."""
    service, address = other_site
    page = VotingPage(await strict_browser.new_page(), address)
    await page.open()
    name = await page.name(page.left)
    await page.left.click()
    await expect(page.status).to_have_text(f"A vote for {name}.")
    await expect(page.seen).to_have_text("1 of 276 pairs seen")
    await expect(page.page.locator("#live")).to_have_class("live on")
    assert page.errors == []
    await page.page.reload()
    await expect(page.left).to_be_enabled()
    await expect(page.seen).to_have_text("1 of 276 pairs seen")
    assert any(url.startswith(service.url) for url in page.requests)
    assert await strict_browser.cookies() == []


@pytest.mark.parametrize(("setting", "sent"), [(ALLOWED, "third=party"), (BLOCKED, "none")])
async def test_the_browser_does_block_cookies_of_other_sites(
    chromium: str, tmp_path: Path, setting: int, sent: str
) -> None:
    """Even those meant for other sites, `SameSite=None; Secure`; with the other setting they are sent."""
    with site() as server:
        async with browser_with(chromium, tmp_path, setting) as browser:
            await _count_cookies(browser, server.server_port, sent)


async def _count_cookies(browser: BrowserContext, port: int, sent: str) -> None:
    page = await browser.new_page()
    await page.goto(f"http://localhost:{port}/vote.css")
    own, foreign = (f"http://{host}:{port}/cookie" for host in ("localhost", "127.0.0.1"))
    assert await page.evaluate(COUNT_COOKIES, own) == "third=party"
    assert await page.evaluate(COUNT_COOKIES, foreign) == sent


async def test_a_page_of_a_site_that_is_not_listed_cannot_vote(
    strict_browser: BrowserContext, other_site: tuple[Service, str]
) -> None:
    """Its browser refuses to send the request. The page says that it tries again, the console what may be missing."""
    service, _ = other_site
    with site() as server:
        server.RequestHandlerClass.api = f"{service.url}/graphql"  # type: ignore[attr-defined]  # of _Site
        page = VotingPage(await strict_browser.new_page(), f"http://localhost:{server.server_port}")
        await page.page.goto(f"{page.origin}/")
        await expect(page.status).to_have_text("The service cannot be reached. Trying again.")
        (hint,) = [error for error in page.errors if "RINGSIDE_CORS_ORIGINS" in error]
        assert page.origin in hint
        await expect(page.left).to_be_disabled()
