"""Fixtures: a browser, and a page of the service opened in it.

The browser is the machine's own Chromium: RINGSIDE_CHROMIUM, or its headless shell, in which a page takes a third of
the CPU, or the first of NAMES on PATH. Without a browser these tests are skipped; with CI=true they fail.
"""

import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, async_playwright, expect

from tests.browser.pages import FLAGS, LONGEST_WAIT, RECORD_VIOLATIONS, VIEWPORT, ExplorerPage, new_context
from tests.browser.signing_in import World
from tests.browser.sites import Visited, visited_demo
from tests.service import Service

SHELL = "chromium-headless-shell"
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

expect.set_options(timeout=LONGEST_WAIT)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the browser."""
    return _first_of(SHELL, *NAMES)


@pytest.fixture(scope="session")
def whole_chromium() -> str:
    """The path of a browser that reads its user's settings, as the shell does not."""
    return _first_of(*NAMES)


def _first_of(*names: str) -> str:
    path = os.environ.get("RINGSIDE_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        missing = f"No browser: `apt install {names[0]}`, or name a Chromium in RINGSIDE_CHROMIUM."
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return path


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def one_browser(chromium: str) -> AsyncIterator[Browser]:
    """One browser for all tests."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=FLAGS, timeout=LONGEST_WAIT)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def browser(one_browser: Browser) -> AsyncIterator[Browser]:
    """The one browser; what a test opened in it is closed after the test, also if that failed."""
    yield one_browser
    for context in one_browser.contexts:
        await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def explorer(browser: Browser, service: Service) -> ExplorerPage:
    """The explorer, opened without cookies and without history."""
    context = await new_context(browser, viewport=VIEWPORT, color_scheme="light", locale="en-GB")
    page = ExplorerPage(await context.new_page(), service.url)
    await page.open()
    return page


@pytest.fixture
def screenshots() -> Path | None:
    """The folder for the screenshots of the README, if RINGSIDE_SCREENSHOTS names one."""
    folder = os.environ.get("RINGSIDE_SCREENSHOTS")
    return Path(folder) if folder else None


@pytest.fixture(scope="session")
def visited(demo_data: Callable[[], str]) -> Iterator[Visited]:
    """A service with demo data, and another site whose pages it allows; one for all tests of elements."""
    with visited_demo(
        demo_data(),
        RINGSIDE_IMAGE_HOSTS="images.example.com",
        RINGSIDE_QUIZ_SECONDS_PER_QUESTION="0.4",
        RINGSIDE_NEW_VISITORS_PER_ADDRESS="0",
    ) as visited:
        yield visited


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Two processes behind one address."""
    with ExitStack() as stack:
        world = World(tmp_path_factory.mktemp("signing-in"), stack)
        stack.callback(world.stop)
        yield world


@pytest_asyncio.fixture(loop_scope="session")
async def context(browser: Browser) -> BrowserContext:
    """A phone's."""
    context = await new_context(browser, viewport={"width": 390, "height": 780}, locale="en-GB")
    await context.add_init_script(RECORD_VIOLATIONS)
    return context
