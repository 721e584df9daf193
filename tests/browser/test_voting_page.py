"""The voting page in a real browser, on the running service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.conftest import VIEWPORT
from tests.browser.pages import VotingPage, new_context
from tests.service import Service

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def voting_page(browser: Browser, service: Service) -> AsyncIterator[VotingPage]:
    """The voting page, opened by a new visitor."""
    context = await new_context(browser, viewport=VIEWPORT, color_scheme="light", locale="en-GB")
    page = VotingPage(await context.new_page(), service.url)
    await page.open()
    yield page
    await context.close()


def first_number(text: str) -> int:
    """The first number of `43 – 11`."""
    return int(text.split(maxsplit=1)[0])


async def test_a_click_votes_and_updates_the_leaderboard(voting_page: VotingPage, screenshots: Path | None) -> None:
    """The winner is named, the pair counts as seen, and its row shows one more win without a reload."""
    name = await voting_page.name(voting_page.left)
    wins = voting_page.row_of(name).locator("td").nth(2)
    before = first_number(await wins.inner_text())
    await voting_page.left.click()
    await expect(voting_page.status).to_have_text(f"A vote for {name}.")
    await expect(voting_page.seen).to_have_text("1 of 276 pairs seen")
    await expect(voting_page.left).to_be_enabled()
    await expect(wins).to_contain_text(f"{before + 1} –")
    await expect(voting_page.page.locator("#live")).to_have_class("live on")
    assert voting_page.errors == []
    if screenshots is not None:
        await voting_page.page.wait_for_timeout(2000)
        await voting_page.page.screenshot(path=screenshots / "voting.png")


async def test_arrow_keys_vote(voting_page: VotingPage) -> None:
    """Right, up and down are a win, a tie and a skip; each is followed by another pair."""
    right = await voting_page.name(voting_page.right)
    for number, (key, message) in enumerate(
        (("Right", f"A vote for {right}."), ("Up", "tie."), ("Down", "Skipped.")), 1
    ):
        await voting_page.page.keyboard.press(f"Arrow{key}")
        await expect(voting_page.status).to_contain_text(message)
        await expect(voting_page.seen).to_have_text(f"{number} of 276 pairs seen")
        await expect(voting_page.left).to_be_enabled()


async def test_a_reload_shows_the_same_pair(voting_page: VotingPage) -> None:
    """Until it is voted on."""
    pair = await voting_page.name(voting_page.left), await voting_page.name(voting_page.right)
    await voting_page.page.reload()
    await expect(voting_page.left).to_be_enabled()
    assert (await voting_page.name(voting_page.left), await voting_page.name(voting_page.right)) == pair


async def test_the_page_works_with_a_keyboard_and_a_screen_reader(voting_page: VotingPage) -> None:
    """Every control has a name and takes the focus; results are announced; the table has headings."""
    name = await voting_page.name(voting_page.left)
    await expect(voting_page.page.get_by_role("button", name=f"Vote for {name}")).to_be_enabled()
    await expect(voting_page.page.get_by_role("button", name="Skip")).to_be_enabled()
    await voting_page.left.focus()
    await voting_page.page.keyboard.press("Enter")
    await expect(voting_page.status).to_have_text(f"A vote for {name}.")
    await expect(voting_page.left).to_be_focused()
    assert await voting_page.page.get_by_role("columnheader").count() == 5
    assert await voting_page.page.locator("html").get_attribute("lang") == "en"


async def test_the_content_security_policy_blocks_nothing_of_the_page(voting_page: VotingPage) -> None:
    """It loads files of its own origin only and has no inline scripts; voting and the event stream work."""
    await voting_page.right.click()
    await expect(voting_page.status).to_contain_text("A vote for")
    response = await voting_page.page.request.get(f"{voting_page.origin}/")
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert [url for url in voting_page.requests if not url.startswith((f"{voting_page.origin}/", "data:"))] == []
    assert await voting_page.violations() == []
    assert voting_page.errors == []


async def test_a_missing_board_is_explained(browser: Browser, service: Service) -> None:
    """In words, with a way out, and without an empty ring."""
    context = await new_context(browser, viewport=VIEWPORT)
    page = await context.new_page()
    await page.goto(f"{service.url}/?board=no-such-board")
    await expect(page.locator("#question")).to_have_text("There is no such vote")
    await expect(page.locator("#status")).to_contain_text("Nothing is called “no-such-board” here.")
    await expect(page.locator("#pair")).to_be_hidden()
    await page.get_by_role("link", name="See what there is to vote on").click()
    await expect(page.locator("#left")).to_be_enabled()
    await context.close()


async def test_an_address_that_no_board_can_have_is_explained_once(browser: Browser, service: Service) -> None:
    """Nothing is asked again that the service refuses as wrong."""
    context = await new_context(browser, viewport=VIEWPORT)
    page = VotingPage(await context.new_page(), service.url)
    async with page.page.expect_response(lambda response: "query Board" in (response.request.post_data or "")):
        await page.page.goto(f"{service.url}/?board=%00")
    await expect(page.page.locator("#question")).to_have_text("There is no such vote")
    await page.page.wait_for_timeout(1500)  # twice as long as the pause before something is sent again
    await expect(page.status).to_contain_text("See what there is to vote on")
    assert len([url for url in page.requests if url == f"{service.url}/graphql"]) == 2
    await context.close()


async def test_a_service_that_cannot_be_reached_is_asked_again(voting_page: VotingPage) -> None:
    """The page says so in words, and the vote counts once the service is back."""
    name = await voting_page.name(voting_page.left)
    await voting_page.page.context.set_offline(True)
    await voting_page.left.click()
    await expect(voting_page.status).to_have_text("The service cannot be reached. Trying again.")
    await voting_page.page.context.set_offline(False)
    await expect(voting_page.status).to_have_text(f"A vote for {name}.")
    await expect(voting_page.seen).to_have_text("1 of 276 pairs seen")
    assert not [error for error in voting_page.errors if "RINGSIDE_CORS_ORIGINS" in error]


async def test_a_phone_shows_no_keys_and_keeps_words_whole(browser: Browser, service: Service) -> None:
    """Nothing stays highlighted after a touch, and no name is broken within a word or wider than the screen."""
    context = await new_context(
        browser, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True, locale="en-GB"
    )
    page = VotingPage(await context.new_page(), service.url)
    await page.open()
    assert await page.page.locator("kbd:visible").count() == 0
    before = await page.left.evaluate("button => getComputedStyle(button).borderColor")
    await page.left.tap()
    await expect(page.seen).to_contain_text("1 of")
    await expect(page.left).to_be_enabled()
    await page.page.wait_for_timeout(500)  # the transition of the border
    assert await page.left.evaluate("button => getComputedStyle(button).borderColor") == before
    assert await page.page.evaluate("document.documentElement.scrollWidth") <= 360
    await context.close()


async def test_strengths_have_an_axis(voting_page: VotingPage) -> None:
    """With zero on it, the average contender."""
    await expect(voting_page.page.locator("#axis text", has_text="0").first).to_be_visible()
    labels = await voting_page.page.locator("#axis text").all_text_contents()
    assert "0" in labels
    assert len(labels) >= 2
