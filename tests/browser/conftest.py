"""A browser, and a visit to the explorer in it.

Chromium is the machine's own: RINGSIDE_CHROMIUM, or the first of NAMES on PATH. Without one these tests are skipped;
where CI is set, they fail.
"""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, ViewportSize, async_playwright, expect

from tests.browser.visit import Visit
from tests.service import Service

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

# Headless, and quiet by itself: every request is the page's own.
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

# What a laptop does in a moment may take a busy machine longer; nothing here waits longer than it must.
expect.set_options(timeout=20_000)

DESK: ViewportSize = {"width": 1280, "height": 800}


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser's path."""
    path = os.environ.get("RINGSIDE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        missing = "No browser: install Chromium (`apt install chromium`), or name one in RINGSIDE_CHROMIUM."
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return path


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(chromium: str) -> AsyncIterator[Browser]:
    """One browser for all visits."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def visit(browser: Browser, service: Service) -> AsyncIterator[Visit]:
    """A newcomer's visit: no cookies, nothing remembered."""
    context = await browser.new_context(viewport=DESK, color_scheme="light", locale="en-GB")
    visit = Visit(await context.new_page(), service.url)
    await visit.arrive()
    yield visit
    await context.close()


@pytest.fixture
def album() -> Path | None:
    """The folder in which to keep pictures for the README, when somebody asks for them."""
    folder = os.environ.get("RINGSIDE_SCREENSHOTS")
    return Path(folder) if folder else None
