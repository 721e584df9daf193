"""`<ringside-comments>` on another site's page: reading, threads, writing, marks, answers, and what can go wrong."""

import asyncio
import gzip
import json
import re
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import httpx
import jwt
import pytest
from playwright.async_api import Browser, Locator, Route, WebSocket, expect

from resolvers.requests.context import utc_now
from tests.browser.pages import DRAWN, LONGEST_WAIT, RECORD_SHIFTS, BrowserPage, answered_last, held_back
from tests.browser.sites import END_SESSION, Visited, visited_demo
from tests.queries import (
    ANSWER_COMMENT,
    DELETE_COMMENT,
    EDIT_COMMENT,
    MODERATE_COMMENT,
    POST_COMMENT,
    SUSPEND,
    mutation,
)
from tests.waiting import LONGEST, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

UNREACHABLE = "The service cannot be reached. Trying again."
HELPFUL = re.compile("^Helpful.*: the comment by")
COMMENTS = '<ringside-comments product="%s"></ringside-comments>'
# A page of this test has elements only, without landmarks or a heading of its own.
OF_WHOLE_PAGES = ("region", "page-has-heading-one", "landmark-one-main")
SHOPS_KEY = "the key of a shop, at least 32 letters"
MARK_HELPFUL = mutation("markHelpful", "CommentMarked", "comment { id helpful }")


def say(visited: Visited, product: str, body: str, *, user: str = "ada-abara", **more: Any) -> str:
    """The id of a comment that somebody posted elsewhere."""
    given = {"product": product, "language": "en", "body": body, **more}
    comment: dict[str, Any] = visited.edit(POST_COMMENT, by=user, role="member", **given)["comment"]
    return str(comment["id"])


def element(page: BrowserPage) -> Locator:
    return page.page.locator("ringside-comments")


def button(page: BrowserPage, name: str | re.Pattern[str]) -> Locator:
    return element(page).get_by_role("button", name=name)


def thread(page: BrowserPage) -> Locator:
    return element(page).locator(".thread > li")


async def barriers(page: BrowserPage) -> list[str]:
    return await page.barriers(*OF_WHOLE_PAGES)


# ── reading ──


async def test_a_first_paint_is_one_request_with_the_first_replies(visited: Visited, browser: Browser) -> None:
    """A GET by the document's id, without a header of its own; what writing needs is not loaded."""
    root = say(visited, "painted", "Who was there?")
    for number in range(5):
        say(visited, "painted", f"Reply {number}", user="bo-abara", inReplyTo=root)
    async with visited.page(browser, COMMENTS % "painted") as page:
        await expect(thread(page)).to_have_text([re.compile(f"Reply {number}") for number in range(3)])
        asked = [url for url in page.requests if "/graphql" in url and not url.startswith("ws")]
        assert len(asked) == 1
        assert "documentId=" in asked[0]
        assert not any("writing" in url or "challenge" in url for url in page.requests)
        await button(page, "Show 2 more replies").click()
        await expect(thread(page)).to_have_count(5)
        await expect(thread(page).nth(3)).to_be_focused()
        assert await barriers(page) == []
        assert page.errors == []


async def test_replies_that_are_replayed_to_the_page_are_counted_once(visited: Visited, browser: Browser) -> None:
    """The stream begins a moment before the page was read, so it may repeat replies that the page has counted."""
    root = say(visited, "replayed", "Who was there?")
    for number in range(5):
        say(visited, "replayed", f"Reply {number}", user="bo-abara", inReplyTo=root)
    async with visited.page(browser, COMMENTS % "replayed") as page:
        await expect(button(page, "Show 2 more replies")).to_be_visible()
        say(visited, "replayed", "This comes after what is repeated.")
        await expect(button(page, "Show 1 new comment")).to_be_visible()
        await button(page, "Show 2 more replies").click()
        await expect(thread(page)).to_have_count(5)


async def test_what_a_page_was_read_after_is_not_sent_to_it_again(visited: Visited, browser: Browser) -> None:
    """Neither the replies since the newest comment nor what was published late, which is no new one to this reader."""
    late, *_, newest = [say(visited, "settled", f"Comment {number}.") for number in range(12)]
    decide = {"by": "mod-abara", "role": "moderator", "comment": late}
    visited.edit(MODERATE_COMMENT, **decide, status="REJECTED")
    visited.edit(MODERATE_COMMENT, **decide, status="PUBLISHED")
    say(visited, "settled", "I was there.", user="bo-abara", inReplyTo=newest)
    settled, frames = utc_now() + timedelta(seconds=3), list[str]()
    await until(lambda: utc_now() > settled, "all of it is older than a page that begins")
    async with visited.page(browser, "") as page:
        page.page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: frames.append(str(frame))))
        await page.page.goto(visited.site.show(COMMENTS % "settled"))
        await expect(thread(page)).to_contain_text(["I was there."])
        say(visited, "settled", "This is new.")
        await expect(button(page, "Show 1 new comment")).to_be_visible()
        told = [frame for frame in frames if "commentPosted" in frame]
        assert [frame for frame in told if "This is new." not in frame] == []


async def test_its_scripts_stay_small(visited: Visited, browser: Browser) -> None:
    """What a page with comments loads, with the shared base, and what it loads with the first use of a form."""
    async with visited.page(browser, COMMENTS % "small") as page:
        await expect(element(page)).to_contain_text("Nobody has written yet.")
        read = {url for url in page.requests if re.search(r"/elements/(part|comments)\.", url)}
        await button(page, "Write a comment").click()
        await expect(element(page).get_by_label("Your comment")).to_be_focused()
        written = {url for url in page.requests if "/elements/" in url} - read
        async with httpx.AsyncClient(timeout=LONGEST) as client:
            size = {url: len(gzip.compress((await client.get(url)).content, 9)) for url in read | written}
    assert len(read) == 2
    assert sum(size[url] for url in read) <= 10_000
    assert sum(size[url] for url in written if "writing" in url) <= 5_120


async def test_the_most_helpful_come_first_if_a_reader_or_the_page_wants_it(visited: Visited, browser: Browser) -> None:
    best = say(visited, "ordered", "The helpful one", rating=4)
    say(visited, "ordered", "The newest one", rating=2)
    visited.edit(MARK_HELPFUL, by="bo-abara", role="member", comment=best, helpful=True)
    both = [re.compile("The newest one"), re.compile("The helpful one")]
    async with visited.page(browser, COMMENTS % "ordered") as page:
        await expect(element(page).locator("article")).to_have_text(both)
        await element(page).get_by_label("Order").select_option("Most helpful first")
        await expect(element(page).locator("article")).to_have_text(both[::-1])
    async with visited.page(
        browser, '<ringside-comments product="ordered" order="helpful"></ringside-comments>'
    ) as page:
        await expect(element(page).locator("article")).to_have_text(both[::-1])
        await expect(button(page, HELPFUL).last).to_contain_text("Helpful")
    async with visited.page(browser, COMMENTS % "ordered") as page:
        await expect(element(page).locator("article")).to_have_text(both)
        async with answered_last(page.page, "HELPFUL"):
            await element(page).get_by_label("Order").select_option("Most helpful first")
            async with page.page.expect_response("**NEWEST**"):
                await element(page).get_by_label("Order").select_option("Newest first")
        await expect(element(page).locator("article")).to_have_text(both)


async def test_the_bars_of_stars_choose_what_is_shown(visited: Visited, browser: Browser) -> None:
    """One or several of them; pressed again, all comments are shown from their beginning, and more on demand."""
    for number in range(11):
        say(visited, "bars", f"Comment {number}", user=f"fan-{number}", rating={0: 5, 3: 5, 7: 1}.get(number, 3))
    async with visited.page(browser, COMMENTS % "bars") as page:
        comments, five = element(page).locator("article"), button(page, re.compile("^5 stars: 2"))
        await button(page, "Show more").click()
        await expect(comments).to_have_count(11)
        await five.click()
        await expect(comments).to_have_count(2)
        await button(page, re.compile("^1 star: 1")).click()
        await expect(comments).to_have_count(3)
        await five.click()
        await button(page, re.compile("^1 star: 1")).click()
        await expect(comments).to_have_count(10)


async def test_the_languages_that_a_page_begins_with_are_those_that_a_reader_sees_and_changes(
    visited: Visited, browser: Browser
) -> None:
    """However the page writes them: with a region, several, or one in which nobody has written."""
    for language, body in (("en", "One"), ("de", "Eins"), ("zh-Hant", "\u4e00"), ("es", "Uno")):
        say(visited, "languages", body, language=language)
    for given, chosen, shown in (
        ("en-GB", "English (1)", ["One"]),
        ("en_GB", "English (2)", ["Two", "One"]),
        ("zh-TW, de-AT", "Traditional Chinese, German", ["\u4e00", "Eins"]),
        ("fr", "French", []),
    ):
        body = f'<ringside-comments product="languages" languages="{given}"></ringside-comments>'
        async with visited.page(browser, body) as page:
            await expect(element(page).locator("article")).to_contain_text(shown)
            select = element(page).get_by_label("Language")
            await expect(select.locator("option:checked")).to_have_text(chosen)
            if given == "en-GB":
                say(visited, "languages", "Two", language="en-US", user="bo-abara")
                await expect(button(page, "Show 1 new comment")).to_be_visible()
            await select.select_option("All languages")
            await expect(element(page).locator("article")).to_have_count(5)


async def test_a_removed_comment_leaves_a_stub_until_its_last_reply_is_gone(visited: Visited, browser: Browser) -> None:
    root = say(visited, "stubs", "Regretted")
    say(visited, "stubs", "I saw that", user="bo-abara", inReplyTo=root)
    async with visited.page(browser, COMMENTS % "stubs", member="ada-abara") as page:
        await button(page, "Delete: the comment by").click()
        await element(page).get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(element(page)).to_contain_text("This comment was removed.")
        await expect(element(page)).not_to_contain_text("Regretted")
        await expect(thread(page)).to_contain_text(["I saw that"])
    async with visited.page(browser, COMMENTS % "stubs", member="bo-abara") as page:
        await expect(element(page)).to_contain_text("This comment was removed.")
        assert await barriers(page) == []
        await button(page, "Delete: the comment by").click()
        await element(page).get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(element(page).locator("article")).to_have_count(0)


async def test_what_arrives_is_announced_and_moves_nothing(visited: Visited, browser: Browser) -> None:
    """Comments and replies wait for the reader, who goes on reading at the same place."""
    roots = [say(visited, "lively", f"Comment {number}\nof two lines") for number in range(3)]
    options: dict[str, Any] = {"viewport": {"width": 390, "height": 844}}
    async with visited.page(browser, COMMENTS % "lively", **options) as page:
        await expect(element(page).locator("article")).to_have_count(3)
        await page.page.evaluate(RECORD_SHIFTS)
        say(visited, "lively", "A reply from elsewhere", user="bo-abara", inReplyTo=roots[2])
        await expect(button(page, "Show 1 new reply")).to_be_visible()
        await expect(element(page).locator("[role=status]")).to_contain_text("A new reply by")
        say(visited, "lively", "A comment from elsewhere", user="bo-abara")
        await expect(button(page, "Show 1 new comment")).to_be_visible()
        assert await page.page.evaluate(f"{DRAWN}.then(() => shifts)") == []
        assert await barriers(page) == []
        await button(page, "Show 1 new reply").click()
        await expect(thread(page)).to_contain_text(["A reply from elsewhere"])
        await expect(thread(page).first).to_be_focused()
        await button(page, "Show 1 new comment").click()
        await expect(element(page).locator("article").first).to_contain_text("A comment from elsewhere")


async def test_replies_to_a_comment_that_waits_to_be_shown_are_shown_with_it(
    visited: Visited, browser: Browser
) -> None:
    async with visited.page(browser, COMMENTS % "waiting") as page:
        await expect(element(page)).to_contain_text("Nobody has written yet.")
        root = say(visited, "waiting", "Who was there?")
        await expect(button(page, "Show 1 new comment")).to_be_visible()
        say(visited, "waiting", "I was.", user="bo-abara", inReplyTo=root)
        say(visited, "waiting", "This comes after the reply.")
        await expect(button(page, "Show 2 new comments")).to_be_visible()
        await button(page, "Show 2 new comments").click()
        await expect(thread(page)).to_contain_text(["I was."])


async def test_a_reply_that_arrives_after_what_it_answers_is_gone_stands_in_its_thread(
    visited: Visited, browser: Browser
) -> None:
    """It is announced as a reply, not as a comment."""
    root = say(visited, "orphans", "Who was there?")
    gone = say(visited, "orphans", "I was.", user="bo-abara", inReplyTo=root)
    late = say(visited, "orphans", "So was I.", user="cy-abara", inReplyTo=gone)
    decide = {"by": "mod-abara", "role": "moderator", "comment": late}
    visited.edit(MODERATE_COMMENT, **decide, status="REJECTED")
    visited.edit(DELETE_COMMENT, by="bo-abara", role="member", comment=gone)
    async with visited.page(browser, COMMENTS % "orphans") as page:
        await expect(element(page).locator("article")).to_have_count(1)
        visited.edit(MODERATE_COMMENT, **decide, status="PUBLISHED")
        await expect(element(page).locator(".fresh button")).to_have_text(["Show 1 new reply"])
        await button(page, "Show 1 new reply").click()
        await expect(thread(page)).to_contain_text(["So was I."])


async def test_a_comment_that_is_published_late_is_shown_once(visited: Visited, browser: Browser) -> None:
    """It is announced, until it is on a page that the reader asks for: there it stands in its place."""
    late, *_ = [say(visited, "late", f"Comment {number}.") for number in range(12)]
    decide = {"by": "mod-abara", "role": "moderator", "comment": late}
    visited.edit(MODERATE_COMMENT, **decide, status="REJECTED")
    async with visited.page(browser, COMMENTS % "late") as page:
        await expect(element(page).locator("article")).to_have_count(10)
        visited.edit(MODERATE_COMMENT, **decide, status="PUBLISHED")
        await expect(button(page, "Show 1 new comment")).to_be_visible()
        await button(page, re.compile("^Show more")).click()
        shown = [re.compile(rf"Comment {number}\.") for number in range(11, -1, -1)]
        await expect(element(page).locator("article")).to_have_text(shown)
        await expect(button(page, "Show 1 new comment")).to_have_count(0)


async def test_what_arrives_while_another_choice_is_read_is_announced(visited: Visited, browser: Browser) -> None:
    """A comment and a reply that are posted after the service has read the page, and before the page has it."""
    root, _ = (say(visited, "busy", body) for body in ("Who was there?", "I was not."))
    is_read, released, frames = asyncio.Event(), asyncio.Event(), list[str]()

    async def hold(route: Route) -> None:
        response = await route.fetch(timeout=LONGEST_WAIT)
        is_read.set()
        await released.wait()
        await route.fulfill(response=response)

    def note(socket: WebSocket) -> None:
        socket.on("framereceived", lambda frame: frames.append(str(frame)))

    async with visited.page(browser, COMMENTS % "busy") as page:
        page.page.on("websocket", note)
        await page.page.reload()
        await expect(element(page).locator("article")).to_have_count(2)
        await page.page.route("**/graphql?documentId=**", hold)
        await element(page).get_by_label("Order").select_option("Most helpful first")
        await is_read.wait()
        say(visited, "busy", "It was loud.", user="bo-abara")
        say(visited, "busy", "I was.", user="bo-abara", inReplyTo=root)
        heard = {"It was loud.", "I was."}
        await until(lambda: heard <= {body for body in heard if any(body in frame for frame in frames)}, "both came")
        released.set()
        await expect(element(page).locator("section[aria-busy]")).to_have_count(0)
        await expect(button(page, "Show 1 new comment")).to_be_visible()
        await expect(button(page, "Show 1 new reply")).to_be_visible()


HIDE = """(hidden) => {
  Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
}"""


def _note_subscribing(is_listening: asyncio.Event, socket: WebSocket) -> None:
    def note(frame: str | bytes) -> None:
        if "subscribe" in str(frame):
            is_listening.set()

    socket.on("framesent", note)


async def test_what_is_posted_while_the_page_is_hidden_is_announced_when_it_is_seen_again(
    visited: Visited, browser: Browser
) -> None:
    """Also where no comment says since when: on an empty page, and on one with a filter or another order."""
    old = say(visited, "left", "Old", language="de")
    visited.edit(MARK_HELPFUL, by="bo-abara", role="member", comment=old, helpful=True)
    for product, attributes, language in (
        ("left-empty", "", "en"), ("left", 'languages="de"', "de"), ("left", 'order="helpful"', "en"),
    ):  # fmt: skip
        body = f'<ringside-comments product="{product}" {attributes}></ringside-comments>'
        async with visited.page(browser, body) as page:
            is_listening, address = asyncio.Event(), page.page.url
            await page.page.goto("about:blank")  # it has no socket
            page.page.on("websocket", partial(_note_subscribing, is_listening))
            async with page.page.expect_websocket() as opened:
                await page.page.goto(address)
            await is_listening.wait()
            async with (await opened.value).expect_event("close"):
                await page.page.evaluate(HIDE, arg=True)
            say(visited, product, "New", language=language, user="cy-abara")
            await page.page.evaluate(HIDE, arg=False)
            await expect(button(page, "Show 1 new comment")).to_be_visible()


# ── writing ──


async def test_what_is_typed_while_a_comment_is_sent_becomes_a_change_of_it(visited: Visited, browser: Browser) -> None:
    """It is sent once, and the button keeps the focus meanwhile."""
    async with visited.page(browser, COMMENTS % "typed-on", member="bo-abara") as page:
        await button(page, "Write a comment").click()
        field = element(page).get_by_label("Your comment")
        await field.fill("Sizes run small.")
        async with held_back(page.page, '"body"') as held:
            async with page.page.expect_request(lambda one: '"body"' in (one.post_data or "")):
                await button(page, "Post").press("Enter")
            await button(page, "Post").press("Enter")
            await expect(button(page, "Post")).to_be_focused()
            await field.fill("Sizes run small. Take a larger one.")
        assert len(held) == 1
        await expect(field).to_have_value("Sizes run small. Take a larger one.")
        await expect(field).to_be_focused()
        await button(page, "Save").click()
        await expect(element(page).locator("article")).to_have_text([re.compile("Take a larger one")])


async def test_who_writes_another_text_while_a_comment_is_sent_stays_in_it(visited: Visited, browser: Browser) -> None:
    """The answer takes the keyboard out of no other form; nor do further comments."""
    root = say(visited, "elsewhere", "Yes or no?")
    for number in range(4):
        say(visited, "elsewhere", f"Reply {number}", inReplyTo=root)
    async with visited.page(browser, COMMENTS % "elsewhere", member="bo-abara") as page:
        await button(page, "Reply: ").first.click()
        reply = element(page).get_by_label("Your reply to")
        await button(page, "Write a comment").click()
        await element(page).get_by_label("Your comment").fill("I am back.")
        async with held_back(page.page, "idempotencyKey"):
            await button(page, "Post").click()
            await reply.press("Y")
        await expect(element(page).locator("article")).to_have_count(5)
        await page.page.keyboard.type("es and ")
        async with held_back(page.page, '"after"'):
            await button(page, "Show 1 more reply").click()
            await reply.press("n")
        await expect(element(page).locator("article")).to_have_count(6)
        await page.page.keyboard.type("o")
        await expect(reply).to_have_value("Yes and no")


async def test_the_overview_counts_what_is_posted_changed_and_deleted(visited: Visited, browser: Browser) -> None:
    say(visited, "averaged", "Splendid", rating=5)
    async with visited.page(browser, COMMENTS % "averaged", member="bo-abara") as page:
        average, dialog = element(page).locator(".average"), element(page).get_by_role("dialog")
        await button(page, "Write a comment").click()
        await element(page).get_by_role("radio", name="1 star", exact=True).check()
        await element(page).get_by_label("Your comment").fill("Broken")
        page.requests.clear()
        await button(page, "Post").click()
        await expect(average).to_contain_text("3.0")
        await expect(average).to_contain_text("2 ")
        assert [url for url in page.requests if "/graphql" in url] == [f"{visited.service.url}/graphql"] * 2
        await button(page, "Edit: the comment by").click()
        await element(page).get_by_role("radio", name="2 stars").check()
        await button(page, "Save").click()
        await expect(average).to_contain_text("3.5")
        await button(page, "Edit: the comment by").click()
        await element(page).get_by_role("radio", name="No stars").check()
        await button(page, "Save").click()
        await expect(average).to_contain_text("5.0")
        await expect(element(page).locator("article .rating")).to_have_count(1)
        await button(page, "Delete: the comment by").click()
        await dialog.get_by_role("button", name="Delete").click()
        await expect(average).to_contain_text("1 comment")


async def test_a_comment_is_in_the_pages_language(visited: Visited, browser: Browser) -> None:
    """Also where the element has no texts in it, or a program wrote it its own way; else in that of the texts."""
    for language, kept in (("fr-CA", "fr"), ("x-none", "en"), ("es-MX", "es"), ("fr_FR.UTF-8", "fr")):
        async with visited.page(browser, COMMENTS % f"in-{language}", member="bo-abara", language=language) as page:
            await element(page).locator("button.primary").click()
            await element(page).locator("textarea").fill("Bonjour")
            await element(page).locator("button[type=submit]").click()
            await expect(element(page).locator("article .body")).to_have_attribute("lang", kept)


async def test_a_member_replies_and_a_draft_outlives_a_reload(visited: Visited, browser: Browser) -> None:
    """Also to a reply, with the keyboard alone; then changes and deletes what they wrote."""
    say(visited, "threads", "Who came?")
    root = say(visited, "threads", "Who wins?")
    say(visited, "threads", "Not me", user="bo-abara", inReplyTo=root)
    async with visited.page(browser, COMMENTS % "threads", member="cy-abara") as page:
        await thread(page).get_by_role("button", name="Reply: ").press("Enter")
        field = element(page).get_by_label("Your reply to")
        await expect(field).to_be_focused()
        await page.page.keyboard.type("Why not?")
        await page.page.reload()
        await expect(field).to_have_value("Why not?")
        await button(page, "Cancel").click()
        await element(page).get_by_label("Order").select_option("Most helpful first")
        await expect(element(page).locator("section[aria-busy]")).to_have_count(0)
        await expect(field).to_have_count(0)
        await thread(page).first.get_by_role("button", name="Reply: ").click()
        await expect(field).to_have_value("Why not?")
        await element(page).locator("form button[type=submit]").click()
        await expect(thread(page).nth(1)).to_contain_text("Why not?")
        await expect(thread(page).nth(1)).to_be_focused()
        name = await thread(page).first.locator("strong").inner_text()
        await expect(thread(page).get_by_text(f"to {name}", exact=True)).to_have_count(1)
        await page.page.reload()
        await expect(thread(page).nth(1)).to_contain_text("Why not?")
        await expect(element(page).locator("form")).to_have_count(0)
        await thread(page).nth(1).get_by_role("button", name="Edit").click()
        await element(page).get_by_label("Your comment").fill("Why not, Bo?")
        assert await barriers(page) == []
        await button(page, "Save").click()
        await expect(thread(page).nth(1)).to_contain_text("Why not, Bo?")
        await thread(page).nth(1).get_by_role("button", name="Delete").click()
        await element(page).get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(thread(page)).to_have_count(1)
        assert page.errors == []


async def test_an_own_reply_that_waits_is_there_after_a_reload(visited: Visited, browser: Browser) -> None:
    waits = say(visited, "waits", "Not me", user="bo-abara", inReplyTo=say(visited, "waits", "Who wins?"))
    visited.edit(MODERATE_COMMENT, by="mo", role="moderator", comment=waits, status="PENDING")
    for member, number in (("bo-abara", 1), (None, 0)):
        async with visited.page(browser, COMMENTS % "waits", member=member) as page:
            await expect(element(page).locator("article")).to_have_count(1 + number)
            await expect(thread(page).get_by_text("A moderator will look at it")).to_have_count(number)


async def test_a_member_finds_a_comment_helpful_once_and_never_their_own(visited: Visited, browser: Browser) -> None:
    say(visited, "helpful", "Sizes run small.", rating=4)
    async with visited.page(browser, COMMENTS % "helpful", member="bo-abara") as page:
        mark = button(page, HELPFUL)
        await mark.click()
        await expect(mark).to_have_attribute("aria-pressed", "true")
        await expect(mark).to_have_text("Helpful (1)")
        await page.page.reload()
        await expect(mark).to_have_attribute("aria-pressed", "true")
        assert await barriers(page) == []
        await mark.click()
        await expect(mark).to_have_text("Helpful")
        await mark.click()
        await expect(mark).to_have_text("Helpful (1)")
    async with visited.page(browser, COMMENTS % "helpful", member="ada-abara") as page:
        await expect(element(page)).to_contain_text("1 member found this helpful")
        await expect(button(page, HELPFUL)).to_have_count(0)


async def test_a_comment_that_was_deleted_elsewhere_cannot_be_marked(visited: Visited, browser: Browser) -> None:
    """The refusal stands at the comment."""
    gone = say(visited, "gone", "Soon gone")
    async with visited.page(browser, COMMENTS % "gone", member="bo-abara") as page:
        await expect(element(page).locator("article")).to_have_count(1)
        visited.edit(DELETE_COMMENT, by="ada-abara", role="member", comment=gone)
        await button(page, HELPFUL).click()
        await expect(element(page).locator("li .error")).to_contain_text("There is no such comment, or it was deleted.")
        assert await barriers(page) == []


async def test_the_sites_answer_is_shown_and_editors_write_it(visited: Visited, browser: Browser) -> None:
    """A member of an origin with roles; other members read it."""
    comment = say(visited, "answered", "It came late.", rating=2)
    async with visited.page(browser, COMMENTS % "answered", member="bo-abara") as page:
        await expect(element(page).locator("article")).to_have_count(1)
        await expect(button(page, "for the site")).to_have_count(0)
        visited.edit(ANSWER_COMMENT, comment=comment, body="We are sorry.")
        await page.page.reload()
        await expect(element(page).locator(".answer")).to_contain_text("We are sorry.")
        reply = say(visited, "answered", "Still waiting.", inReplyTo=comment)
        visited.edit(ANSWER_COMMENT, comment=reply, body="One more day.")
        await page.page.reload()
        await expect(thread(page).locator(".answer")).to_contain_text("One more day.")
        visited.edit(DELETE_COMMENT, by="ada-abara", role="member", comment=reply)
    async with visited.page(browser, COMMENTS % "answered", member="editor", roles=["editor"]) as page:
        await button(page, "for the site").click()
        field = element(page).get_by_label("The site’s answer to")
        await expect(field).to_have_value("We are sorry.")
        await field.fill("We are sorry, and sent another.")
        assert await barriers(page) == []
        await button(page, "Save").click()
        await expect(element(page).locator(".answer")).to_contain_text("and sent another")
        await button(page, "for the site").click()
        await field.fill("")
        await button(page, "Save").click()
        await expect(element(page).locator(".answer")).to_have_count(0)
        assert page.errors == []


async def test_stars_are_asked_for_as_the_page_says(visited: Visited, browser: Browser) -> None:
    asked = '<ringside-comments product="stars" rated="yes"></ringside-comments>'
    async with visited.page(browser, asked, member="bo-abara") as page:
        await button(page, "Write a comment").click()
        await element(page).get_by_label("Your comment").fill("Good.")
        await button(page, "Post").click()
        await expect(element(page)).to_contain_text("Choose one to five stars.")
        assert await barriers(page) == []
        await expect(element(page).get_by_role("radio", name="1 star")).to_be_focused()
        await element(page).get_by_role("radio", name="3 stars").press("Space")
        await page.page.keyboard.press("ArrowRight")
        await expect(element(page).get_by_role("radio", name="4 stars")).to_be_checked()
        await button(page, "Post").click()
        await expect(element(page).locator("article .rating")).to_contain_text("4 stars")
    async with visited.page(browser, asked.replace("yes", "no"), member="cy-abara") as page:
        await button(page, "Write a comment").click()
        await expect(element(page).get_by_role("radio")).to_have_count(0)
        await expect(element(page).locator(".histogram")).to_have_count(0)


async def test_ratings_and_marks_are_seen_in_the_colours_that_a_reader_forces(
    visited: Visited, browser: Browser
) -> None:
    """Windows' contrast themes leave a page two or three colours: what differs by a shade there is the same."""
    say(visited, "forced", "Three of five.", rating=3)
    body = f'{COMMENTS % "forced"}<p id="chosen" style="background: Highlight"></p>'
    async with visited.page(browser, body, member="bo-abara", forced_colors="active") as page:
        await expect(element(page).locator("article .rating")).to_contain_text("★★★☆☆")
        pressed = element(page).locator(".histogram button")
        await pressed.nth(2).click()
        await expect(pressed.nth(2)).to_have_attribute("aria-pressed", "true")
        chosen = await page.page.locator("#chosen").evaluate("(one) => getComputedStyle(one).backgroundColor")
        await expect(pressed.nth(2)).to_have_css("background-color", chosen)
        await button(page, "Write a comment").click()
        await element(page).get_by_role("radio", name="2 stars").press("Space")
        inks = "(all) => all.map((one) => getComputedStyle(one).color)"
        _, one, two, *others = await element(page).locator(".stars label").evaluate_all(inks)
        assert one == two not in others


# ── what can go wrong ──


async def test_the_focus_stays_near_what_was_deleted_or_refused(visited: Visited, browser: Browser) -> None:
    """So that a keyboard need not begin at the top of the page."""
    root = say(visited, "focus", "Who wins?", user="cy-abara")
    say(visited, "focus", "Not me", inReplyTo=root)
    async with visited.page(browser, COMMENTS % "focus", member="ada-abara") as page:
        await thread(page).get_by_role("button", name="Delete").press("Enter")
        await element(page).get_by_role("dialog").get_by_role("button", name="Delete").press("Enter")
        await expect(element(page).locator(".list > li").first).to_be_focused()
        await button(page, "Reply: ").click()
        await element(page).get_by_label("Your reply to").fill("Too late")
        visited.edit(DELETE_COMMENT, by="cy-abara", role="member", comment=root)
        submit = element(page).locator("button[type=submit]")
        await submit.press("Enter")
        await expect(element(page).locator("form .error")).to_be_visible()
        await expect(submit).to_be_focused()


async def test_the_key_that_asks_for_a_deletion_does_not_confirm_it(visited: Visited, browser: Browser) -> None:
    """Pressed once more, or held down: nobody brings a comment back that was deleted."""
    say(visited, "twice", "It stays", user="bo-abara")
    async with visited.page(browser, COMMENTS % "twice", member="bo-abara") as page:
        await element(page).get_by_role("button", name="Delete").press("Enter")
        await expect(element(page).get_by_role("dialog").get_by_role("button", name="Cancel")).to_be_focused()
        await page.page.keyboard.press("Enter")
        await expect(element(page).get_by_role("dialog")).to_have_count(0)
        await expect(element(page).get_by_role("button", name="Delete")).to_be_focused()
        await expect(element(page).get_by_role("article")).to_contain_text("It stays")


async def test_what_could_not_be_found_is_not_said_to_be_found(visited: Visited, browser: Browser) -> None:
    """A page that is out of date asks to be loaded again, and is heard."""
    say(visited, "outdated", "One", rating=3)

    async def alter(route: Route) -> None:
        await route.continue_(url=re.sub(r"documentId=\w+", "documentId=0123456789", route.request.url))

    async with visited.page(browser, COMMENTS % "outdated") as page:
        await expect(element(page).locator("article")).to_have_count(1)
        await page.page.route("**/graphql?documentId=**", alter)
        async with page.page.expect_response("**/graphql?documentId=**"):
            await element(page).get_by_label("Order").select_option("Most helpful first")
        await expect(element(page).locator("section[aria-busy]")).to_have_count(0)
        await expect(element(page).locator("[role=status]")).to_have_text(
            "This page is out of date. Please load it again."
        )


HEAR = """(status) => {
  globalThis.heard = [];
  new MutationObserver(() => heard.push(status.textContent)).observe(status, { childList: true });
}"""


async def test_of_two_choices_the_latest_alone_is_said_to_be_found(visited: Visited, browser: Browser) -> None:
    """The answer to the first one comes when the second is asked already: what it found is not shown."""
    for language in ("de", "en", "en"):
        say(visited, "chosen", "Well made.", language=language)
    released = {order: asyncio.Event() for order in ("NEWEST", "HELPFUL")}

    async def hold(route: Route) -> None:
        await released["HELPFUL" if "HELPFUL" in route.request.url else "NEWEST"].wait()
        await route.continue_()

    async with visited.page(browser, COMMENTS % "chosen") as page:
        await expect(element(page).locator("article")).to_have_count(3)
        await element(page).locator("[role=status]").evaluate(HEAR)
        await page.page.route("**/graphql?documentId=**", hold)
        async with page.page.expect_response(lambda response: "NEWEST" in response.url) as first:
            await element(page).get_by_label("Language").select_option("de")
            async with page.page.expect_request(lambda request: "HELPFUL" in request.url):
                await element(page).get_by_label("Order").select_option("Most helpful first")
            released["NEWEST"].set()
        await (await first.value).finished()
        released["HELPFUL"].set()
        await expect(element(page).locator("article")).to_have_count(1)
        assert await page.page.evaluate("heard") == ["1 comment found"]


async def test_a_dialog_says_what_becomes_of_its_request(visited: Visited, browser: Browser) -> None:
    """The rest of the page is out of reach meanwhile. Signed in again, the reader sends the same."""
    say(visited, "dialog", "Rude words")
    async with visited.page(browser, COMMENTS % "dialog", member="bo-abara") as page:
        await button(page, "Report: the comment").click()
        dialog = element(page).get_by_role("dialog")
        await dialog.get_by_label("A word for the moderators").fill("See for yourself.")
        member = await page.page.evaluate(END_SESSION, f"{visited.service.url}/elements.js")
        await dialog.get_by_role("button", name="Report").click()
        await expect(dialog.get_by_role("alert")).to_contain_text("Your sign-in has ended.")
        await expect(dialog.get_by_role("button", name="Sign in")).to_be_visible()
        await visited.sign_in(page, token=member["token"])
        await expect(dialog.get_by_label("A word for the moderators")).to_have_value("See for yourself.")
        await page.page.reload()  # as where it is left to sign in
        await button(page, "Report: the comment").click()
        await expect(dialog.get_by_label("A word for the moderators")).to_have_value("See for yourself.")
        await page.page.context.set_offline(True)
        await dialog.get_by_role("button", name="Report").click()
        await expect(dialog.get_by_role("alert")).to_have_text(UNREACHABLE)
        assert await barriers(page) == []
        await page.page.context.set_offline(False)
        await expect(dialog).to_have_count(0)
        await expect(element(page).locator(".note")).to_have_text("Thank you. A moderator will look at it.")
        await button(page, "Report: the comment").click()
        await expect(dialog.get_by_label("A word for the moderators")).to_have_value("")
        await dialog.get_by_label("A word for the moderators").fill("And again.")
        async with held_back(page.page, '"reason"') as held:
            await dialog.get_by_role("button", name="Report").click()
            await until(lambda: held, "it is sent")
            await dialog.get_by_role("button", name="Cancel").click()
        await button(page, "Report: the comment").click()
        await expect(dialog.get_by_label("A word for the moderators")).to_have_value("")


async def test_what_was_typed_outlives_the_end_of_the_session(visited: Visited, browser: Browser) -> None:
    """In both forms. Signing in again, the member sends it."""
    say(visited, "ended", "Still there?")
    async with visited.page(browser, COMMENTS % "ended", member="bo-abara") as page:
        await button(page, "Reply: ").click()
        reply = element(page).get_by_label("Your reply to")
        await reply.fill("A long reply")
        member = await page.page.evaluate(END_SESSION, f"{visited.service.url}/elements.js")
        await element(page).locator("form button[type=submit]").click()
        await expect(element(page).locator(".note")).to_contain_text("Your sign-in has ended.")
        await expect(reply).to_have_value("A long reply")
        await expect(element(page).locator("form").get_by_role("button", name="Sign in")).to_be_visible()
        assert await barriers(page) == []
        await visited.sign_in(page, token=member["token"])
        await expect(element(page).locator(".note")).to_have_text("")
        await element(page).locator("form button[type=submit]").click()
        await expect(thread(page)).to_contain_text(["A long reply"])


async def test_what_was_typed_further_down_outlives_the_end_of_the_session(visited: Visited, browser: Browser) -> None:
    """It stays in sight with what it is about, of which the page is read anew from its beginning."""
    say(visited, "further", "Mine, of long ago", user="bo-abara")
    for number in range(10):
        latest = say(visited, "further", f"Comment {number}", user=f"fan-{number}")
    for number in range(4):
        say(visited, "further", f"Reply {number}", inReplyTo=latest)
    async with visited.page(browser, COMMENTS % "further", member="bo-abara") as page:
        await button(page, "Show more").click()
        await button(page, "Edit: the comment").click()
        edited, reply = (element(page).get_by_label(label) for label in ("Your comment", "Your reply to"))
        await edited.fill("Mine, of today")
        await button(page, "Show 1 more reply").click()
        await thread(page).nth(3).get_by_role("button", name="Reply: ").click()
        await reply.fill("Now I know")
        member = await page.page.evaluate(END_SESSION, f"{visited.service.url}/elements.js")
        await element(page).locator("form button[type=submit]").last.click()
        await expect(element(page).locator(".note")).to_contain_text("Your sign-in has ended.")
        await expect(element(page).locator("form").get_by_role("button", name="Sign in")).to_have_count(2)
        await expect(edited).to_have_value("Mine, of today")
        await expect(reply).to_have_value("Now I know")
        await visited.sign_in(page, token=member["token"])
        await button(page, "Save").click()
        await expect(element(page)).to_contain_text("Mine, of today")
        await button(page, "Reply").and_(element(page).locator("[type=submit]")).click()
        await expect(thread(page).last).to_contain_text("Now I know")


async def test_a_change_and_the_site_s_answer_outlive_a_page_that_is_left_to_sign_in(
    visited: Visited, browser: Browser
) -> None:
    """They are shown to who may send them. What is put aside is begun anew from what is there."""
    say(visited, "led-away", "Fine", user="editor")
    async with visited.page(browser, COMMENTS % "led-away", member="editor", roles=["editor"]) as page:
        edited, answer = (element(page).get_by_label(label) for label in ("Your comment", "The site’s answer to"))
        await button(page, "for the site").click()
        await answer.fill("Thank you")
        await button(page, "Edit: the comment").click()
        await edited.fill("Fine, but late")
        member = await page.page.evaluate(END_SESSION, f"{visited.service.url}/elements.js")
        await page.page.reload()
        await expect(element(page).locator("article")).to_have_text([re.compile("Fine")])
        await button(page, "Write a comment").click()  # it comes when what was begun before has been looked through
        await expect(edited).to_be_focused()
        await expect(element(page).locator("form")).to_have_count(1)
        await button(page, "Cancel").click()
        await visited.sign_in(page, token=member["token"])
        await expect(answer).to_have_value("Thank you")
        await expect(edited).to_have_value("Fine, but late")
        await button(page, "Cancel").first.click()
        await button(page, "Edit: the comment").click()
        await expect(edited).to_have_value("Fine")
        await page.page.reload()
        await expect(answer).to_have_value("Thank you")
        await expect(edited).to_have_count(0)


async def test_a_draft_of_a_change_gives_way_to_what_was_written_since(visited: Visited, browser: Browser) -> None:
    """As does one of the site's answer; one of a reply stays."""
    comment = say(visited, "rewritten", "First", user="editor")
    visited.edit(ANSWER_COMMENT, comment=comment, body="Thanks")
    async with visited.page(browser, COMMENTS % "rewritten", member="editor", roles=["editor"]) as page:
        labels = "Your comment", "The site’s answer to", "Your reply to"
        edited, answer, reply = (element(page).get_by_label(label) for label in labels)
        for name, field in (("for the site", answer), ("Reply: ", reply), ("Edit: the comment", edited)):
            await button(page, name).click()
            await field.fill("Begun here")
        visited.edit(EDIT_COMMENT, by="editor", role="member", comment=comment, body="Second")
        visited.edit(ANSWER_COMMENT, comment=comment, body="Thanks again")
        await page.page.reload()
        await expect(reply).to_have_value("Begun here")
        await expect(element(page).locator("form")).to_have_count(1)
        for name, field, text in (("for the site", answer, "Thanks again"), ("Edit: the comment", edited, "Second")):
            await button(page, name).click()
            await expect(field).to_have_value(text)


async def test_a_reply_is_sent_once_the_service_can_be_reached(visited: Visited, browser: Browser) -> None:
    say(visited, "offline", "Hello?")
    async with visited.page(browser, COMMENTS % "offline", member="bo-abara") as page:
        await button(page, "Reply: ").click()
        await element(page).get_by_label("Your reply to").fill("Here")
        await page.page.context.set_offline(True)
        await element(page).locator("form button[type=submit]").click()
        await expect(element(page).locator(".note")).to_have_text(UNREACHABLE)
        await page.page.context.set_offline(False)
        await expect(thread(page)).to_contain_text(["Here"])


async def test_what_is_cancelled_without_a_connection_is_sent_only_if_it_is_asked_for_again(
    visited: Visited, browser: Browser
) -> None:
    """A comment that is posted again counts once."""
    say(visited, "cancelled", "To stay", user="bo-abara")
    async with visited.page(browser, COMMENTS % "cancelled", member="bo-abara") as page:
        articles, dialog = element(page).locator("article"), element(page).get_by_role("dialog")
        await button(page, "Write a comment").click()
        await element(page).get_by_label("Your comment").fill("To be posted")
        await page.page.context.set_offline(True)
        await button(page, "Post").click()
        await expect(element(page).locator(".note")).to_have_text(UNREACHABLE)
        await button(page, "Cancel").click()
        await button(page, "Delete: the comment by").click()
        await dialog.get_by_role("button", name="Delete").click()
        await expect(dialog.get_by_role("alert")).to_have_text(UNREACHABLE)
        await dialog.get_by_role("button", name="Cancel").click()
        await button(page, "Write a comment").click()
        await button(page, "Post").click()
        await page.page.context.set_offline(False)
        await expect(element(page).locator("form")).to_have_count(0)
        await page.page.reload()
        await expect(articles).to_have_text([re.compile("To be posted"), re.compile("To stay")])


async def test_a_refusal_stands_at_its_field(visited: Visited, browser: Browser) -> None:
    """Nothing typed is lost."""
    async with visited.page(browser, COMMENTS % "refused", member="bo-abara") as page:
        await button(page, "Write a comment").click()
        field = element(page).get_by_label("Your comment")
        await button(page, "Post").click()
        await expect(element(page).locator("#" + (await described(field)))).to_have_text("Write something first.")
        for text in ("🥊" * 10_001, "x" * 1_100_000):  # the longer one is more than a request may have
            await field.fill(text)
            await button(page, "Post").click()
            await expect(element(page).locator(".error")).to_contain_text("10,000")
            await expect(field).to_be_focused()
            await expect(field).to_have_attribute("aria-invalid", "true")
        assert await barriers(page) == []
        await field.fill("🥊" * 10_000)
        await button(page, "Post").click()
        await expect(element(page).locator("article")).to_have_count(1)


HALF = """(field) => {
  field.value = 'Half a glove: \\ud83e';
  field.dispatchEvent(new Event('input', { bubbles: true }));
}"""


async def test_half_a_character_is_sent_as_one_that_is_missing(visited: Visited, browser: Browser) -> None:
    """Programs that cut texts leave it, and it is pasted with them."""
    async with visited.page(browser, COMMENTS % "halves", member="bo-abara") as page:
        await button(page, "Write a comment").click()
        await element(page).get_by_label("Your comment").evaluate(HALF)
        await button(page, "Post").click()
        await expect(element(page).locator("article .body")).to_have_text("Half a glove: \ufffd")


async def test_a_request_that_is_at_fault_is_not_sent_again(visited: Visited, browser: Browser) -> None:
    """The page says what was wrong, and the form takes something else."""

    async def cut(route: Route) -> None:
        await route.continue_(post_data=(route.request.post_data or "")[:-1])

    async with visited.page(browser, COMMENTS % "faulty", member="bo-abara") as page:
        await button(page, "Write a comment").click()
        await element(page).get_by_label("Your comment").fill("Well made.")
        await page.page.route("**/graphql", cut)
        await button(page, "Post").click()
        await expect(element(page).locator("[role=status]")).to_contain_text("The body is not JSON")
        await expect(button(page, "Post")).not_to_have_attribute("aria-disabled", "true")
        await page.page.unroute("**/graphql")
        await button(page, "Post").click()
        await expect(element(page).locator("article")).to_contain_text("Well made.")


async def described(field: Locator) -> str:
    await expect(field).to_have_attribute("aria-describedby", re.compile("."))
    return str(await field.get_attribute("aria-describedby"))


async def test_a_suspended_member_reads_and_is_told(visited: Visited, browser: Browser) -> None:
    say(visited, "suspended", "Anybody?")
    say(visited, "suspended", "Me.", user="dee-abara")
    with visited.client("dee-abara") as client:
        answer = client.post("/graphql", json={"query": "{ viewer { id } }"}).json()
    given = {"input": {"user": answer["data"]["viewer"]["id"], "reason": "Rude."}}
    with visited.client("mo", "moderator") as client:
        answer = client.post("/graphql", json={"query": SUSPEND, "variables": given}).json()
    assert answer["data"]["suspendMember"]["user"]
    async with visited.page(browser, COMMENTS % "suspended", member="dee-abara") as page:
        await expect(element(page)).to_contain_text("You cannot write here at present. Rude.")
        await expect(button(page, "Reply: ")).to_have_count(0)
        await expect(button(page, "Write a comment")).to_have_count(0)
        assert await barriers(page) == []


@pytest.mark.parametrize(("language", "scheme"), [("en", "light"), ("de", "dark"), ("es", "light"), ("ar", "dark")])
async def test_a_thread_with_its_forms_is_accessible_in_every_language(
    visited: Visited, browser: Browser, language: str, scheme: str
) -> None:
    """At a phone's width, with a mark, an answer and a held comment; what is pressed is large enough for a thumb."""
    product = f"accessible-{language}-{scheme}"
    root = say(visited, product, "Does it run small?", rating=4, title="A question")
    say(visited, product, "قليلا", user="bo-abara", language="ar", inReplyTo=root)
    visited.edit(ANSWER_COMMENT, comment=root, body="A little.")
    visited.edit(MARK_HELPFUL, by="bo-abara", role="member", comment=root, helpful=True)
    options: dict[str, Any] = {
        "color_scheme": scheme, "viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True,
    }  # fmt: skip
    shown = COMMENTS % product
    async with visited.page(browser, shown, member="editor", roles=["editor"], language=language, **options) as page:
        await expect(thread(page)).to_have_count(1)
        actions = await element(page).locator(".actions button:not([aria-pressed])").all()
        reply, report, answer, other_reply, *_ = actions
        await report.click()
        await expect(element(page).get_by_role("dialog")).to_be_visible()
        assert await barriers(page) == []
        await page.page.keyboard.press("Escape")
        await expect(element(page).get_by_role("dialog")).to_have_count(0)
        for opens in (reply, answer, other_reply, element(page).locator("button.primary").first):
            await opens.click()
        await expect(element(page).locator("form")).to_have_count(4)
        assert await barriers(page) == []
        assert await page.too_small() == []
        wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert not await page.page.evaluate(wide)
        assert page.errors == []


# ── a site that asks for more ──


@pytest.fixture(scope="module")
def guarded(demo_data: Callable[[], str]) -> Iterator[Visited]:
    """A service with guests, one review for each member and product, and proofs of work."""
    with visited_demo(
        demo_data(),
        RINGSIDE_ONE_REVIEW_PER_PRODUCT="true",
        RINGSIDE_CHALLENGE="first",
        RINGSIDE_GUESTS="predictions",
        RINGSIDE_PROOF_KEYS=json.dumps([{"issuer": "shop", "hs256": SHOPS_KEY}]),
    ) as visited:
        yield visited


async def test_a_first_comment_brings_a_proof_of_work_and_a_second_none(guarded: Visited, browser: Browser) -> None:
    """The solver is loaded when the service asks for it. A reader notices nothing but a moment."""
    async with guarded.page(browser, COMMENTS % "worked", member="newcomer") as page:
        await button(page, "Write a comment").click()
        await element(page).get_by_label("Your comment").fill("My first one")
        assert not any("challenge" in url for url in page.requests)
        await button(page, "Post").click()
        await expect(element(page).locator("article")).to_contain_text("My first one")
        assert any("challenge" in url for url in page.requests)
        await page.page.reload()
        page.requests.clear()
        await button(page, "Reply: ").click()
        await element(page).get_by_label("Your reply to").fill("And a second one")
        await element(page).locator("form button[type=submit]").click()
        await expect(thread(page)).to_contain_text(["And a second one"])
        assert not any("challenge" in url for url in page.requests)
        assert page.errors == []


async def test_a_comment_whose_answer_was_lost_is_posted_once_from_a_page_that_is_loaded_again(
    guarded: Visited, browser: Browser
) -> None:
    """Also with its proof of work, on a page that is in another language by now."""
    async with guarded.page(browser, COMMENTS % "lost", member="unlucky") as page:
        lost, is_back = asyncio.Event(), asyncio.Event()

        async def lose(route: Route) -> None:
            if '"body"' not in str(route.request.post_data):
                await route.fallback()
                return
            answer = await route.fetch(timeout=LONGEST_WAIT)
            if is_back.is_set() or "CHALLENGE_NEEDED" in await answer.text():
                await route.fulfill(response=answer)
            else:
                await route.abort()
                lost.set()

        await page.page.route("**/graphql", lose)
        await button(page, "Write a comment").click()
        await element(page).get_by_label("Your comment").fill("Once")
        await button(page, "Post").click()
        await lost.wait()
        await page.page.reload()
        await expect(element(page).get_by_label("Your comment")).to_have_value("Once")
        await page.page.evaluate("document.documentElement.lang = 'fr'")
        is_back.set()
        await button(page, "Post").click()
        await expect(element(page).locator("form")).to_have_count(0)
        await expect(element(page).locator("article")).to_have_text([re.compile("Once")])


async def test_a_second_review_leads_to_the_first(guarded: Visited, browser: Browser) -> None:
    """With what was written now; the first stays as it is until that is saved. Cancelled, it is a comment again.

    So it is if the first was changed before.
    """
    async with guarded.page(browser, COMMENTS % "reviewed", member="reviewer") as page:
        for body in ("It is good.", "It fell apart."):
            await button(page, "Write a comment").click()
            await element(page).get_by_role("radio", name="3 stars").check()
            await element(page).get_by_label("Your comment").fill(body)
            await button(page, "Post").click()
            await expect(element(page).locator("article, .error").first).to_be_visible()
        await expect(element(page)).to_contain_text("You have reviewed this already.")
        assert await barriers(page) == []
        await button(page, "Change my review").click()
        await expect(element(page).get_by_label("Your comment")).to_have_value("It fell apart.")
        await page.page.context.set_offline(True)
        await button(page, "Save").click()
        await expect(element(page).locator(".note")).to_have_text(UNREACHABLE)
        await button(page, "Cancel").click()
        await button(page, "Write a comment").click()
        await page.page.context.set_offline(False)
        await button(page, "Post").click()
        await button(page, "Change my review").click()
        await button(page, "Save").click()
        await expect(element(page).locator("article")).to_have_count(1)
        await expect(element(page).locator("article")).to_contain_text("It fell apart.")
        await page.page.reload()
        await expect(element(page).locator("article")).to_contain_text("It fell apart.")
        await expect(element(page).locator("form")).to_have_count(0)
        await button(page, "Write a comment").click()
        await element(page).get_by_role("radio", name="3 stars").check()
        await element(page).get_by_label("Your comment").fill("It was mended.")
        await button(page, "Post").click()
        await button(page, "Change my review").click()
        await button(page, "Cancel").click()
        await button(page, "Write a comment").click()
        await expect(element(page).get_by_label("Your comment")).to_have_value("It was mended.")


async def test_a_first_review_that_is_further_down_is_shown_once(guarded: Visited, browser: Browser) -> None:
    """However often the button that leads to it is pressed while the answer takes its time."""
    german = '<ringside-comments product="further" languages="de"></ringside-comments>'
    async with guarded.page(browser, german, member="further-reviewer") as page:
        article = element(page).locator("article")
        for body in ("It is good.", "It fell apart."):
            await button(page, "Write a comment").click()
            await element(page).get_by_role("radio", name="3 stars").check()
            await element(page).get_by_label("Your comment").fill(body)
            await button(page, "Post").click()
            if body == "It is good.":
                await expect(article).to_contain_text(body)
                await page.page.reload()
                await expect(element(page)).to_contain_text("No comment fits")
        async with held_back(page.page, '"variables":{"comment":"') as held:
            await button(page, "Change my review").dblclick()
            await until(lambda: held, "the review is asked for")
        await expect(element(page).get_by_label("Your comment")).to_have_value("It fell apart.")
        await button(page, "Save").click()
        await expect(article).to_contain_text("It fell apart.")
        await expect(element(page).locator("ol.list > li")).to_have_count(1)


async def test_a_guest_who_may_not_comment_is_led_to_sign_in(guarded: Visited, browser: Browser) -> None:
    """With the text kept. So is one who finds a comment helpful, or reports it. A member was refused nothing."""
    async with guarded.page(browser, COMMENTS % "ringside-tee") as page:
        await page.page.evaluate(
            """async (address) => {
          const { ask, session } = await import(address);
          const guest = '... on SignedIn { token expiresAt }';
          const answer = await ask(`mutation { signInAsGuest(input: { name: "Gast" }) { ${guest} } }`);
          session.use(answer.signInAsGuest);
        }""",
            f"{guarded.service.url}/elements.js",
        )
        await button(page, "Write a comment").click()
        await element(page).get_by_label("Your comment").fill("May I?")
        await button(page, "Post").click()
        form = element(page).locator("form")
        await expect(form.get_by_role("alert")).to_contain_text("Sign in with an address")
        await expect(form.get_by_role("button", name="Sign in")).to_be_visible()
        await expect(element(page).get_by_label("Your comment")).to_have_value("May I?")
        assert await barriers(page) == []
        await button(page, HELPFUL).first.click()
        await expect(element(page).locator("li .error")).to_contain_text("Sign in with an address")
        await expect(element(page).locator("li .error").get_by_role("button", name="Sign in")).to_be_visible()
        await element(page).get_by_role("button", name="Report").first.click()
        dialog = element(page).get_by_role("dialog")
        await dialog.get_by_role("textbox").fill("Look at this")
        await dialog.get_by_role("button", name="Report").click()
        await expect(dialog.get_by_role("alert")).to_contain_text("Sign in with an address")
        await expect(dialog.get_by_role("button", name="Sign in")).to_be_visible()
        assert await barriers(page) == []
        await guarded.sign_in(page, member="bo-abara")
        await expect(dialog.get_by_role("button", name="Report")).to_be_visible()
        await dialog.get_by_role("button", name="Cancel").click()
        await expect(element(page).locator(".error")).to_have_count(0)
        await expect(form.get_by_role("button")).to_have_text(["Post", "Cancel"])
        await expect(element(page).get_by_label("Your comment")).to_have_value("May I?")


async def test_a_buyer_is_marked_by_the_pages_proof_and_readers_can_see_buyers_only(
    guarded: Visited, browser: Browser
) -> None:
    """A proof that does not hold, or was used, is said; the comment can go without it, or with a newer one."""
    with guarded.client("buyer") as client:
        buyer = client.post("/graphql", json={"query": "{ viewer { id } }"}).json()["data"]["viewer"]["id"]
    now = int(time.time())
    claims = {"iss": "shop", "aud": "ringside-proof", "iat": now, "exp": now + 3600, "product": "bought", "sub": buyer}
    proven = jwt.encode(claims, SHOPS_KEY, algorithm="HS256")
    shown = '<ringside-comments product="bought" proof="too old"></ringside-comments>'
    async with guarded.page(browser, shown, member="buyer") as page:
        await button(page, "Write a comment").click()
        await element(page).get_by_label("Your comment").fill("I have it.")
        async with held_back(page.page, "too old"):
            await button(page, "Post").click()
            await element(page).evaluate("(one, proof) => one.setAttribute('proof', proof)", proven)
        await expect(element(page).locator("form .error")).to_be_visible()
        await button(page, "Post").click()
        await expect(element(page).locator("article .verified")).to_have_text("✓ Verified buyer")
        await button(page, "Write a comment").click()
        await element(page).get_by_role("radio", name="2 stars").check()
        await element(page).get_by_label("Your comment").fill("Still fine.")
        await button(page, "Post").click()
        await expect(element(page).locator("form .error")).to_have_text(
            "The proof of purchase was not accepted. Post again to publish this without the mark."
        )
        assert await barriers(page) == []
        await button(page, "Post").click()
        await expect(element(page).locator("article")).to_have_count(2)
        await expect(element(page).locator(".verified")).to_have_count(1)
    async with guarded.page(browser, COMMENTS % "bought") as page:
        await expect(element(page).locator("article")).to_have_count(2)
        await expect(button(page, "2 stars: 1 comment")).to_be_visible()
        await element(page).get_by_label("Verified buyers only (1)").check()
        await expect(button(page, "2 stars: 0 comments")).to_be_visible()
        await expect(element(page).locator("article")).to_have_count(1)
        await expect(element(page).locator("article")).to_contain_text("I have it.")
        assert await barriers(page) == []
