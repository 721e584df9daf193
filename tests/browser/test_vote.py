"""The voting page as a visitor meets it, in a real browser on the real service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect

from tests.browser.conftest import DESK
from tests.browser.visit import LISTEN, Visit
from tests.service import Service

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Booth(Visit):
    """The page at `/`."""

    async def arrive(self) -> None:
        """There when a pair is to be voted on and the leaderboard stands."""
        await self.page.add_init_script(LISTEN)
        await self.page.goto(f"{self.origin}/")
        await expect(self.left).to_be_enabled()
        await expect(self.rows.first).to_be_visible()

    @property
    def left(self) -> Locator:
        return self.page.locator("#left")

    @property
    def right(self) -> Locator:
        return self.page.locator("#right")

    @property
    def rows(self) -> Locator:
        return self.page.locator("#rows tr")

    @property
    def status(self) -> Locator:
        return self.page.get_by_role("status")

    @property
    def seen(self) -> Locator:
        return self.page.locator("#seen")

    def row_of(self, name: str) -> Locator:
        return self.rows.filter(has_text=name)

    async def name(self, corner: Locator) -> str:
        return await corner.locator(".name").inner_text()


@pytest_asyncio.fixture(loop_scope="session")
async def booth(browser: Browser, service: Service) -> AsyncIterator[Booth]:
    """A newcomer's visit."""
    context = await browser.new_context(viewport=DESK, color_scheme="light", locale="en-GB")
    booth = Booth(await context.new_page(), service.url)
    await booth.arrive()
    yield booth
    await context.close()


def won(text: str) -> int:
    """The first number of `43 – 11`."""
    return int(text.split(maxsplit=1)[0])


async def test_a_click_is_a_vote_and_moves_the_leaderboard(booth: Booth, album: Path | None) -> None:
    """The winner is named, the pair counts as seen, and the row shows one win more without a reload."""
    name = await booth.name(booth.left)
    wins = booth.row_of(name).locator("td").nth(2)
    before = won(await wins.inner_text())
    await booth.left.click()
    await expect(booth.status).to_have_text(f"A vote for {name}.")
    await expect(booth.seen).to_have_text("1 of 276 pairs seen")
    await expect(booth.left).to_be_enabled()
    await expect(wins).to_contain_text(f"{before + 1} –")
    await expect(booth.page.locator("#live")).to_have_class("live on")
    assert booth.complaints == []
    if album is not None:
        await booth.page.wait_for_timeout(2000)
        await booth.page.screenshot(path=album / "voting.png")


async def test_arrow_keys_vote(booth: Booth) -> None:
    """Right, up and down: a win, a tie, a skip; another pair comes each time."""
    right = await booth.name(booth.right)
    for number, (key, said) in enumerate((("Right", f"A vote for {right}."), ("Up", "tie."), ("Down", "Skipped.")), 1):
        await booth.page.keyboard.press(f"Arrow{key}")
        await expect(booth.status).to_contain_text(said)
        await expect(booth.seen).to_have_text(f"{number} of 276 pairs seen")
        await expect(booth.left).to_be_enabled()


async def test_a_reload_shows_the_same_pair(booth: Booth) -> None:
    """Until it is voted on."""
    pair = await booth.name(booth.left), await booth.name(booth.right)
    await booth.page.reload()
    await expect(booth.left).to_be_enabled()
    assert (await booth.name(booth.left), await booth.name(booth.right)) == pair


async def test_the_page_can_be_used_without_eyes_and_mouse(booth: Booth) -> None:
    """Every control has a name and can be reached by Tab; what happened is announced; the table has headings."""
    name = await booth.name(booth.left)
    await expect(booth.page.get_by_role("button", name=f"Vote for {name}")).to_be_enabled()
    await expect(booth.page.get_by_role("button", name="Skip")).to_be_enabled()
    await booth.left.focus()
    await booth.page.keyboard.press("Enter")
    await expect(booth.status).to_have_text(f"A vote for {name}.")
    await expect(booth.left).to_be_focused()
    assert await booth.page.get_by_role("columnheader").count() == 5
    assert await booth.page.locator("html").get_attribute("lang") == "en"


async def test_the_page_keeps_to_its_policy(booth: Booth) -> None:
    """Files of its own origin only, nothing inline, no violation; a vote and the stream included."""
    await booth.right.click()
    await expect(booth.status).to_contain_text("A vote for")
    response = await booth.page.request.get(f"{booth.origin}/")
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert [url for url in booth.requests if not url.startswith((f"{booth.origin}/", "data:"))] == []
    assert await booth.violations() == []
    assert booth.complaints == []
