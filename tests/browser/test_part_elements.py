"""The elements of the other parts, on a page of another site, as a visitor and as a member use them."""

import re
from datetime import timedelta
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from datastore.dynamo import iso
from resolvers.requests.context import utc_now
from tests.browser.admin import ask
from tests.browser.pages import BrowserPage
from tests.browser.sites import Visited
from tests.leagues import CREATE_LEAGUE
from tests.queries import CREATE_EVENT, LOCK_EVENT

pytestmark = pytest.mark.asyncio(loop_scope="session")

EVERYTHING = (
    "<ringside-sign-in></ringside-sign-in><ringside-board></ringside-board><ringside-event></ringside-event>"
    "<ringside-standings season=2026></ringside-standings><ringside-word></ringside-word>"
    '<ringside-comments product="ringside-tee"></ringside-comments>'
)


# A page of this test has elements only, without landmarks or a heading of its own.
OF_WHOLE_PAGES = ("region", "page-has-heading-one", "landmark-one-main")


async def findings(page: BrowserPage) -> list[str]:
    return await page.barriers(*OF_WHOLE_PAGES)


@pytest.mark.parametrize(("language", "countdown"), [("de", r"Noch \d+ Tage?\b.* offen"), ("ar", "الوقت المتبقي: .+")])
async def test_a_countdown_is_a_sentence_in_its_language(
    visited: Visited, browser: Browser, language: str, countdown: str
) -> None:
    """The browser gives durations as they stand alone: „2 Tage“, which does not go on after „in“."""
    async with visited.page(browser, "<ringside-event></ringside-event>", language=language) as page:
        await expect(page.page.locator("ringside-event .count")).to_have_text(re.compile(countdown))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "ar"])
async def test_all_elements_of_a_visitor_are_accessible(
    visited: Visited, browser: Browser, scheme: str, language: str
) -> None:
    """In both colour schemes and writing directions, at a phone's width."""
    options: dict[str, Any] = {"color_scheme": scheme, "viewport": {"width": 390, "height": 844}}
    async with visited.page(browser, EVERYTHING, language=language, **options) as page:
        await expect(page.page.locator("ringside-word .term").first).to_be_visible()
        await expect(page.page.locator("ringside-comments article").first).to_be_visible()
        await expect(page.page.locator("ringside-board button.corner").first).to_be_enabled()
        assert await findings(page) == []
        wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert not await page.page.evaluate(wide)
        assert page.errors == []


async def test_a_theme_custom_properties_and_parts_reach_inside(visited: Visited, browser: Browser) -> None:
    """And nothing else: a page's own rule for headings changes none of the element's."""
    style = """<style>
      h2 { font-style: italic }
      ringside-board { --ringside-radius: 5px; --ringside-font: monospace }
      ringside-board::part(title) { letter-spacing: 7px }
    </style>"""
    body = f'{style}<ringside-board theme="dark"></ringside-board><ringside-standings></ringside-standings>'
    async with visited.page(browser, body, color_scheme="light") as page:
        title, root = page.page.locator("ringside-board h2").first, page.page.locator("ringside-board .root")
        await expect(title).to_have_css("letter-spacing", "7px")
        await expect(title).to_have_css("font-style", "normal")
        await expect(root).to_have_css("font-family", "monospace")
        await expect(root).to_have_css("border-radius", "9px")
        await expect(root).to_have_css("background-color", "rgb(33, 32, 39)")
        await expect(page.page.locator("ringside-standings .root")).to_have_css(
            "background-color", "rgb(255, 255, 255)"
        )


async def test_a_member_writes_changes_and_deletes_a_comment(visited: Visited, browser: Browser) -> None:
    """With or without stars."""
    body = '<ringside-comments product="quiet"></ringside-comments>'
    async with visited.page(browser, body, member="bo-abara") as page:
        element = page.page.locator("ringside-comments")
        await element.get_by_role("button", name="Write a comment").click()
        await element.get_by_label("Your comment").fill("Well made.")
        await element.get_by_role("button", name="Post").click()
        await expect(element.locator("article")).to_contain_text("Well made.")
        await expect(element.locator("article .rating")).to_have_count(0)
        await element.get_by_role("button", name="Edit").click()
        await element.get_by_label("Your comment").fill("Very well made.")
        await element.get_by_role("button", name="Save").click()
        await expect(element.locator("article")).to_contain_text("Very well made.")
        assert await findings(page) == []
        await page.page.reload()
        await expect(element.locator("article")).to_contain_text("Very well made.")


async def test_a_member_picks_winners_and_finds_them_again(visited: Visited, browser: Browser) -> None:
    async with visited.page(browser, "<ringside-event></ringside-event>", member="cy-abara") as page:
        element = page.page.locator("ringside-event")
        await expect(element.get_by_role("heading").first).to_be_visible()
        for match in await element.get_by_role("group").all():
            await match.get_by_role("radio").first.check()
        await element.locator("input[type=number]").fill("21.5")
        await element.locator("button[type=submit]").click()
        await expect(element.locator(".note")).to_contain_text(re.compile(r"\w{3}"))
        assert await findings(page) == []
        await page.page.reload()
        await expect(element.get_by_role("radio").first).to_be_checked()
        await expect(element.locator("input[type=number]")).to_have_value("21.5")


async def test_the_standings_are_those_of_the_latest_season(visited: Visited, browser: Browser) -> None:
    """Unless the page names another one."""
    latest = ask(visited, "{ seasons(first: 1) { nodes { name } } }")["seasons"]["nodes"][0]["name"]
    body = '<ringside-standings></ringside-standings><ringside-standings season="1999"></ringside-standings>'
    async with visited.page(browser, body) as page:
        headings = page.page.get_by_role("heading", name="Standings")
        await expect(headings).to_have_text([f"Standings {latest}", "Standings 1999"])


async def test_a_visitor_s_first_paint_needs_no_preflight(visited: Visited, browser: Browser) -> None:
    """Each request is a simple one: the latest season brings its standings; a league and the last event come next."""
    given = {"name": "Open", "season": "2026", "entry": "OPEN"}
    league = visited.edit(CREATE_LEAGUE, by="captain", role="member", **given)["league"]["id"]
    # Among the last hundred, however many other tests have made.
    over = {"name": "Over", "season": "Over", "startsAt": iso(utc_now() + timedelta(days=1000))}
    visited.edit(LOCK_EVENT, event=visited.edit(CREATE_EVENT, **over)["event"]["id"])
    for body, shown, requests in (
        ("<ringside-standings></ringside-standings>", ":is(tr:not(.wait) td, .notice) >> nth=0", 1),
        (f'<ringside-standings league="{league}"></ringside-standings>', "text=Nobody has points yet", 2),
        ('<ringside-event season="Over"></ringside-event>', "text=Locked", 3),
    ):
        async with visited.page(browser, body) as page:
            await expect(page.page.locator(shown)).to_be_visible()
            asked = [url.removeprefix(visited.service.url) for url in page.requests if "/graphql" in url]
            assert [url.split("=")[0] for url in asked] == ["/graphql?documentId"] * requests, body


async def test_what_does_not_exist_is_said(visited: Visited, browser: Browser) -> None:
    """Each element says so by itself, and the others work on."""
    body = (
        '<ringside-event event="nothing"></ringside-event><ringside-standings season="1900"></ringside-standings>'
        "<ringside-comments></ringside-comments><ringside-board></ringside-board><ringside-nothing></ringside-nothing>"
    )
    async with visited.page(browser, body) as page:
        await expect(page.page.locator("ringside-board button.corner").first).to_be_enabled()
        for name in ("event", "standings", "comments"):
            await expect(page.page.locator(f"ringside-{name}")).to_contain_text(re.compile(r"\w{3}"))
        assert await findings(page) == []
