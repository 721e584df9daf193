"""Sanitised pictures inside a page of a real browser: nothing acts, nothing is loaded, and the page stays as it is."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from datastore.refusals import InvalidInput
from resolvers.voting.svg import sanitize
from tests.browser.inlined import look_at, new_page
from tests.pictures import MARK, ORDINARY, SVG, TRICKS

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser) -> AsyncIterator[Page]:
    async with new_page(browser) as page:
        yield page


async def test_nothing_that_is_left_of_a_trick_acts_on_the_page(page: Page) -> None:
    """All of them in one page, and each one that was accepted; the page looks as it does without them."""
    survivors = []
    for trick in TRICKS.values():
        try:
            survivors.append(sanitize(SVG % (trick + MARK)))
        except InvalidInput:
            continue
    assert len(survivors) > len(TRICKS) / 2
    expected, _ = await look_at(page, "")
    look, addresses = await look_at(page, "".join(f'<div style="height:5px">{picture}</div>' for picture in survivors))
    assert addresses == []
    assert look == expected


async def test_the_page_would_notice_a_trick(page: Page) -> None:
    """The same page with the tricks themselves: a script runs, something is loaded, the page is covered."""
    expected, _ = await look_at(page, "")
    tricks = [*TRICKS.values(), '<image href="x" onerror="alert(1)"/>', "<style>#canary { color: red }</style>"]
    look, addresses = await look_at(page, "".join(SVG % trick for trick in tricks))
    assert look != expected
    assert addresses


@pytest.mark.parametrize("name", ORDINARY)
async def test_an_ordinary_picture_looks_the_same_afterwards(page: Page, name: str) -> None:
    """Pixel by pixel."""
    before = await _screenshot(page, ORDINARY[name])
    assert await _screenshot(page, "") != before
    assert await _screenshot(page, sanitize(ORDINARY[name])) == before


async def _screenshot(page: Page, picture: str) -> bytes:
    await page.unroute_all()
    await page.set_content(f"<body style='margin:0;width:100px;height:100px'>{picture}</body>")
    return await page.screenshot(clip={"x": 0, "y": 0, "width": 100, "height": 100})
