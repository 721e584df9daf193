"""Fixtures: a browser, and a page of the service opened in it.

The browser is the machine's own Chromium: RINGSIDE_CHROMIUM, or the first of NAMES on PATH. Without one these tests are
skipped; with CI=true they fail.
"""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, ViewportSize, async_playwright, expect

from tests.browser.pages import LONGEST_WAIT, ExplorerPage, new_context
from tests.service import Service

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

# Headless, and without requests of the browser's own.
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

expect.set_options(timeout=LONGEST_WAIT)

VIEWPORT: ViewportSize = {"width": 1280, "height": 800}


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the browser."""
    path = os.environ.get("RINGSIDE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        missing = "No browser: install Chromium (`apt install chromium`), or name one in RINGSIDE_CHROMIUM."
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return path


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(chromium: str) -> AsyncIterator[Browser]:
    """One browser for all tests."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=FLAGS, timeout=LONGEST_WAIT)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def explorer(browser: Browser, service: Service) -> AsyncIterator[ExplorerPage]:
    """The explorer, opened without cookies and without history."""
    context = await new_context(browser, viewport=VIEWPORT, color_scheme="light", locale="en-GB")
    page = ExplorerPage(await context.new_page(), service.url)
    await page.open()
    yield page
    await context.close()


@pytest.fixture
def screenshots() -> Path | None:
    """The folder for the screenshots of the README, if RINGSIDE_SCREENSHOTS names one."""
    folder = os.environ.get("RINGSIDE_SCREENSHOTS")
    return Path(folder) if folder else None
