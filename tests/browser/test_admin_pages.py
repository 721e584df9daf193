"""The pages at /admin, in Chromium, by keyboard alone."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, BrowserContext, Locator, Page, Request, expect

from tests.browser.admin import Keys, ask, assert_clean, found, opened, printed, searched
from tests.browser.pages import FOCUS_IS_SEEN, VIEWPORT, BrowserPage, ExplorerPage, held_back, new_context
from tests.browser.sites import Visited, sign_in_by_email
from tests.command import ringside_process
from tests.queries import ANSWER_COMMENT, DELETE_COMMENT, EDIT_COMMENT, REPORT_COMMENT, UPDATE_PROFILE
from tests.waiting import LONGEST, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

POST = "mutation ($input: PostCommentInput!) { postComment(input: $input) { ... on CommentPosted { comment { id } } } }"
HOLD = (
    "mutation ($input: ModerateCommentsInput!) { moderateComments(input: $input) "
    "{ ... on CommentsModerated { comments { id } } } }"
)


async def test_a_visitor_learns_who_may_use_the_pages(visited: Visited, browser: Browser) -> None:
    page = await opened(visited, browser, None)
    await expect(page.page.get_by_text("These pages are for moderators")).to_be_visible()
    await assert_clean(page)
    await page.page.get_by_role("button", name="Sign in", exact=True).click()
    await page.page.wait_for_url("**/sign-in?returnTo=*admin*")


async def test_a_part_of_the_pages_that_is_lost_leaves_them_usable(visited: Visited, browser: Browser) -> None:
    """Without the texts of its language they are in English. What a later release no longer has is said."""
    page = (await opened(visited, browser, "moderator", "#/members", locale="de-DE")).page
    await expect(page.get_by_role("heading", name="Mitglieder")).to_be_visible()
    await page.route(re.compile(r"/admin/(de|_documents_admin)\."), lambda route: route.abort())
    await page.reload()
    await expect(page.get_by_role("heading", name="Members")).to_be_visible()
    await (await searched(page, writer(visited, "lost"))).click()
    await page.get_by_label("Reason, which the member sees").fill("Too loud.")
    await page.get_by_role("button", name="Suspend", exact=True).click()
    await expect(page.get_by_role("status")).to_contain_text("is suspended.")
    await page.get_by_text("Show the document that was sent").click()
    await expect(page.get_by_role("status")).to_have_text("This page is out of date. Please load it again.")


@pytest.mark.parametrize(("locale", "scheme"), [("en-GB", "light"), ("de-DE", "dark"), ("ar", "light")])
async def test_an_editor_sees_what_happened(visited: Visited, browser: Browser, locale: str, scheme: str) -> None:
    """In both colour schemes and writing directions, at a phone's width; each day's figures by keyboard, too."""
    page = await opened(visited, browser, "editor", locale=locale, color_scheme=scheme)
    await expect(page.page.get_by_role("img")).to_have_count(5)
    await page.page.locator("summary").press("Enter")
    await expect(page.page.get_by_role("table").get_by_role("row")).to_have_count(31)
    await expect(page.page.get_by_role("row").last.get_by_role("cell")).to_have_count(5)
    await assert_clean(page)


async def test_a_moderator_decides_fifty_held_comments_with_a_key_each(
    visited: Visited, browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    """By keyboard alone, from the moment that the page is there; the rest at once."""
    ids = [visited.edit(POST, by=f"writer-{n}", role="member", product="shelf", language="en", body=f"No {n}.")
           ["comment"]["id"] for n in range(50)]  # fmt: skip
    visited.edit(HOLD, by="mo", role="moderator", comments=ids, status="PENDING")
    page = await opened(visited, browser, "moderator", "#/comments/held")
    articles = page.page.locator("ringside-admin article")
    await expect(articles.nth(49)).to_be_visible()
    before = await articles.count()
    await assert_clean(page)
    await articles.nth(49).focus()
    await expect(page.page.get_by_role("button", name="Publish")).to_be_in_viewport()
    await expect(articles.nth(49).get_by_role("heading", name="wrote")).to_be_in_viewport()
    await page.page.set_viewport_size(VIEWPORT)
    await expect(page.page.get_by_role("heading", name="wrote")).to_be_in_viewport()
    await page.page.reload()
    await expect(articles.first).to_have_class("current")
    keys = Keys(page)
    for n in range(50):
        await keys.press("1" if n % 2 else "a")
        await expect(articles).to_have_count(before - n - 1)
    printed(capsys, "Fifty held comments", keys)
    assert keys.pressed <= 55
    await keys.press("u")
    await expect(articles).to_have_count(before - 49)
    keys = Keys(page)
    await keys.to("button", "Choose all")
    await keys.press("Enter")
    await keys.press("a")
    await expect(page.page.get_by_role("status")).to_have_text(re.compile(r"^\d+ comments? decided\."))
    printed(capsys, "All that wait at once", keys)


async def test_a_moderator_decides_about_reported_comments_too(visited: Visited, browser: Browser) -> None:
    """They stand among the held ones, the oldest first, with the reasons; a decision clears these. Two are replies."""
    given: dict[str, Any] = {"by": "reported", "role": "member", "product": "told", "language": "en"}
    asked = visited.edit(POST, **given, body="Is it any good?")["comment"]["id"]
    reported = visited.edit(POST, **given, body="Buy this.", inReplyTo=asked)["comment"]["id"]
    gone = visited.edit(POST, **given, body="Never mind.")["comment"]["id"]
    visited.edit(POST, **given, body="It stays in its place for this reply.", inReplyTo=gone)
    waits = visited.edit(POST, **given, body="This waits.", inReplyTo=gone)["comment"]["id"]
    visited.edit(DELETE_COMMENT, by="reported", role="member", comment=gone)
    visited.edit(HOLD, by="mo", role="moderator", comments=[waits], status="PENDING")
    for reader in ("ida", "ole"):
        visited.edit(REPORT_COMMENT, by=reader, role="member", comment=reported, reason=f"{reader} saw an advert")
    page = await opened(visited, browser, "moderator", "#/comments/held")
    articles = page.page.locator("ringside-admin article")
    both = articles.filter(has_text=re.compile("Buy this|This waits"))
    await expect(both).to_have_text([re.compile("Buy this"), re.compile("This waits")])
    for reader in ("ida", "ole"):
        await expect(both.first).to_contain_text(f"{reader} saw an advert")
    await expect(both.first).to_contain_text(re.compile("Reply to .*: Is it any good?"))
    await expect(both.last).to_contain_text("Reply to what is gone")
    await history_read(page)
    await both.first.click()
    await page.page.keyboard.press("a")
    await expect(both).to_have_text([re.compile("This waits")])
    await page.page.reload()
    await expect(both).to_have_text([re.compile("This waits")])
    note = page.page.get_by_label("A note to the author, if you reject")
    await note.fill("Not here, please.")
    await history_read(page)
    await both.first.click()
    await page.page.keyboard.press("1")
    await expect(both).to_have_count(0)
    await expect(note).to_have_value("")
    query = f'{{ node(id: "{waits}") {{ ... on Comment {{ moderationNote }} }} }}'
    assert ask_admin(visited, query) == {"node": {"moderationNote": "Not here, please."}}


async def test_an_admin_sees_a_review_s_stars_and_answers_it(visited: Visited, browser: Browser) -> None:
    """In the site's name, without a decision about it; an empty answer takes it away. It is in no decision's way."""
    given: dict[str, Any] = {"by": "rater", "role": "member", "product": "rated", "language": "de"}
    review = visited.edit(POST, **given, body="Ganz gut.", rating=4)["comment"]["id"]
    page = await opened(visited, browser, "admin", "#/comments/latest")
    mine = page.page.locator("ringside-admin article").filter(has_text="Ganz gut.")
    await expect(mine).to_contain_text(re.compile(r"rated · ★★★★☆4 stars · German · .* · published"))
    await expect(mine.locator("p.body").first).to_have_attribute("lang", "de")  # for the voice that reads it
    query = f'{{ node(id: "{review}") {{ ... on Comment {{ answer {{ body }} }} }} }}'
    for text in ("Thank you.", ""):
        await mine.get_by_role("button", name="Answer for the site").click()
        await mine.get_by_label("The site’s answer").fill(text)
        await assert_clean(page)
        await mine.get_by_role("button", name="Save").click()
        await expect(page.page.get_by_role("status")).to_have_text("Saved.")
        await expect(mine.get_by_text("The site’s answer: Thank you.")).to_have_count(int(text != ""))
        await expect(mine.get_by_label("The site’s answer")).to_have_count(0)  # "Saved." may be of the answer before
        assert ask_admin(visited, query) == {"node": {"answer": {"body": text} if text else None}}
    await mine.get_by_text("Ganz gut.").first.click()
    await page.page.keyboard.press("1")
    await expect(told(mine)).to_contain_text("rejected")
    await mine.get_by_role("button", name="Answer for the site").click()
    await mine.get_by_label("The site’s answer").fill("Why?")
    await mine.get_by_role("button", name="Save").click()
    await expect(page.page.get_by_role("status")).to_have_text("Saved.")
    await page.page.get_by_role("button", name="Undo").click()
    await expect(page.page.get_by_role("status")).to_have_text("Taken back.")


async def test_two_editors_of_one_answer_see_each_other_s(visited: Visited, browser: Browser) -> None:
    given: dict[str, Any] = {"by": "asker", "role": "member", "product": "both", "language": "en"}
    comment = visited.edit(POST, **given, body="Does it fit?")["comment"]["id"]
    page = await opened(visited, browser, "admin", "#/comments/latest")
    mine = page.page.locator("ringside-admin article").filter(has_text="Does it fit?")
    await mine.get_by_role("button", name="Answer for the site").click()
    await mine.get_by_label("The site’s answer").fill("It does.")
    visited.edit(ANSWER_COMMENT, comment=comment, body="Alas, no.")
    await mine.get_by_role("button", name="Save").click()
    await expect(mine.get_by_text("Somebody else wrote: Alas, no.")).to_be_visible()
    await mine.get_by_role("button", name="Save").click()
    await expect(mine.get_by_text("The site’s answer: It does.")).to_be_visible()


async def test_an_answer_that_is_typed_is_not_lost_by_a_decision(visited: Visited, browser: Browser) -> None:
    """Neither by the button nor by its key. Both come after it."""
    given: dict[str, Any] = {"by": "waiter", "role": "member", "product": "asked", "language": "en"}
    held = visited.edit(POST, **given, body="When will it be back?")["comment"]["id"]
    visited.edit(HOLD, by="mo", role="moderator", comments=[held], status="PENDING")
    page = await opened(visited, browser, "admin", "#/comments/held")
    mine = page.page.locator("ringside-admin article").filter(has_text="When will it be back?")
    await history_read(page)
    await mine.get_by_role("button", name="Answer for the site").click()
    answer = mine.get_by_label("The site’s answer")
    await answer.fill("In May.")
    await page.page.get_by_role("button", name="Publish").click()
    for _ in range(2):
        await expect(page.page.get_by_role("status")).to_contain_text("First save what you changed in Member")
        await expect(answer).to_be_focused()
        await expect(answer).to_have_value("In May.")
        await mine.focus()
        await page.page.keyboard.press("1")
    await mine.get_by_role("button", name="Save").click()
    await expect(page.page.get_by_role("status")).to_have_text("Saved.")


@pytest.mark.parametrize("area", ["held", "latest"])
async def test_a_decision_about_a_reported_comment_is_taken_back_without_its_reports(
    visited: Visited, browser: Browser, area: str
) -> None:
    """Any decision deletes them, so it would wait no longer: the page says so, and shows it to be decided about now."""
    reported = visited.edit(POST, by="sold", role="member", product=f"sold-{area}", language="en", body="Buy that.")
    visited.edit(REPORT_COMMENT, by="ida", role="member", comment=reported["comment"]["id"], reason="An advert.")
    page = await opened(visited, browser, "moderator", f"#/comments/{area}")
    mine = page.page.locator("ringside-admin article").filter(has_text=f"sold-{area}")
    await history_read(page)
    await mine.click()
    await page.page.keyboard.press("1")
    await expect(page.page.get_by_role("status")).to_contain_text("1 comment decided.")
    await page.page.keyboard.press("u")
    await expect(page.page.get_by_role("status")).to_have_text(
        "Taken back, but the reports are gone: every decision deletes them. Please decide now."
    )
    await expect(mine).to_have_class("current")
    await expect(told(mine)).to_contain_text("published")
    counted = page.page.get_by_text(re.compile(r"^-?\d+ comments? waits?\.$"))
    waiting = await counted.all_inner_texts()
    await page.page.keyboard.press("2")
    await (expect(mine).to_have_count(0) if area == "held" else expect(told(mine)).to_contain_text("rejected"))
    assert await counted.all_inner_texts() in (waiting, [])  # an empty queue has no number
    assert status_of(visited, reported["comment"]["id"]) == "REJECTED"


async def test_a_moderator_publishes_only_what_they_have_read(visited: Visited, browser: Browser) -> None:
    """What its author has changed meanwhile is shown as it is now, and waits for a decision of its own."""
    comment = visited.edit(POST, by="sly", role="member", product="swap", language="en", body="Lovely.")["comment"][
        "id"
    ]
    visited.edit(HOLD, by="mo", role="moderator", comments=[comment], status="PENDING")
    page = await opened(visited, browser, "moderator", "#/comments/held")
    mine = page.page.locator("ringside-admin article").filter(has_text="swap")
    await expect(mine).to_contain_text("Lovely.")
    await history_read(page)
    await mine.click()
    visited.edit(EDIT_COMMENT, by="sly", role="member", comment=comment, body="Buy at evil.example")
    await page.page.keyboard.press("a")
    await expect(mine).to_contain_text("Buy at evil.example")
    await expect(page.page.get_by_role("status")).to_contain_text("Look at it again")
    await mine.click()
    await page.page.keyboard.press("1")
    await expect(mine).to_have_count(0)
    await page.page.keyboard.press("u")
    await expect(mine).to_have_count(1)
    await expect(page.page.get_by_role("status")).to_contain_text("Taken back.")
    await expect(page.page.locator("article.current")).to_be_focused()
    await mine.click()
    await page.page.keyboard.press("u")  # when there is nothing any more, neither says so nor keeps a key from counting
    await page.page.keyboard.press("1")
    await expect(mine).to_have_count(0)


async def test_a_note_stays_while_nothing_was_rejected(visited: Visited, browser: Browser) -> None:
    """Of several comments that were changed meanwhile it is said once. Each is chosen with one press on a phone."""
    ids = [visited.edit(POST, by=f"sly-{n}", role="member", product="swapped", language="en", body="Lovely. " * 40)
           ["comment"]["id"] for n in range(2)]  # fmt: skip
    visited.edit(HOLD, by="mo", role="moderator", comments=ids, status="PENDING")
    page = await opened(visited, browser, "moderator", "#/comments/held")
    mine = page.page.locator("ringside-admin article").filter(has_text="swapped")
    note = page.page.get_by_label("A note to the author, if you reject")
    await note.fill("Not here.")
    await history_read(page)
    for n, comment in enumerate(ids):
        await mine.nth(n).get_by_role("checkbox").click()
        await expect(mine.nth(n).get_by_role("checkbox")).to_be_checked()
        await expect(mine.nth(n).get_by_role("heading", name="wrote")).to_be_visible()
        visited.edit(EDIT_COMMENT, by=f"sly-{n}", role="member", comment=comment, body="Buy this.")
    await page.page.keyboard.press("1")
    await expect(page.page.get_by_role("status")).to_have_text(re.compile("^0 comments decided.*Look at it again"))
    assert (await page.page.get_by_role("status").inner_text()).count("Look at it again") == 1
    await expect(note).to_have_value("Not here.")
    await mine.first.click()
    await page.page.keyboard.press("1")
    await expect(mine).to_have_count(1)
    await expect(note).to_have_value("")


async def test_all_comments_can_be_reached_and_decided_about(visited: Visited, browser: Browser) -> None:
    """A hundred more with each press. The first of them is then the one that the keys are about.

    Also after a decision about it was taken back: it is still the one that was read.
    """
    page = await opened(visited, browser, "moderator", "#/comments/latest")
    decided = decided_about(page.page)
    articles, current = page.page.locator("ringside-admin article"), page.page.locator("ringside-admin article.current")
    await expect(articles).to_have_count(100)
    await page.page.get_by_role("button", name="More").press("Enter")
    await expect(articles).to_have_count(200)
    await expect(articles.nth(100)).to_be_focused()
    await expect(articles.nth(100)).to_have_attribute("aria-current", "true")
    await page.page.emulate_media(forced_colors="active")
    border = "(article) => getComputedStyle(article).border"
    assert await articles.nth(100).evaluate(border) != await articles.nth(99).evaluate(border)
    await page.page.emulate_media(forced_colors="none")
    await expect(current).to_have_count(1)
    await page.page.keyboard.press("7")
    await expect(told(current)).to_contain_text("rejected")
    await page.page.keyboard.press("u")
    await expect(page.page.get_by_role("status")).to_have_text("Taken back.")
    await assert_clean(page)
    await page.page.keyboard.press("1")
    await expect(told(articles.nth(100))).to_contain_text("rejected")
    assert (len(decided), len(set(decided))) == (3, 1)
    assert status_of(visited, decided[0]) == "REJECTED"
    name = await articles.nth(3).get_by_role("strong").first.text_content()
    await articles.nth(3).get_by_role("checkbox", name=f"Choose {name}", exact=True).focus()
    await expect(articles.nth(3)).to_have_class("current")


async def test_a_comment_that_was_taken_back_is_decided_about_next(visited: Visited, browser: Browser) -> None:
    """Not one that moved to its place, since others were posted while the list was read."""
    page = await opened(visited, browser, "moderator", "#/comments/latest")
    articles, decided = page.page.locator("ringside-admin article"), decided_about(page.page)
    await history_read(page)
    await articles.nth(10).click()
    await page.page.keyboard.press("7")
    await expect(told(articles.nth(10))).to_contain_text("rejected")
    for number in range(3):
        visited.edit(POST, by=f"late-{number}", role="member", product="since-decided", language="en", body="Just in.")
    await page.page.keyboard.press("u")
    await expect(page.page.get_by_role("status")).to_have_text("Taken back.")
    await page.page.keyboard.press("1")
    await expect(told(page.page.locator("ringside-admin article.current"))).to_contain_text("rejected")
    assert (len(decided), len(set(decided))) == (3, 1)
    assert status_of(visited, decided[0]) == "REJECTED"


async def test_no_comment_is_decided_about_in_place_of_one_that_is_not_shown(
    visited: Visited, browser: Browser
) -> None:
    """One that was changed meanwhile is to be looked at again: if it is not among those that are shown, none is."""
    page = await opened(visited, browser, "moderator", "#/comments/latest")
    articles, decided = page.page.locator("ringside-admin article"), decided_about(page.page)
    await expect(articles).to_have_count(100)
    await page.page.get_by_role("button", name="More").press("Enter")
    await expect(articles.nth(100)).to_be_focused()
    async with held_back(page.page, '"status"') as held:
        await page.page.keyboard.press("7")
        await until(lambda: held, "the decision is on its way")
        visited.edit(HOLD, by="mo", role="moderator", comments=decided, status="PENDING")
    await expect(page.page.get_by_role("status")).to_contain_text("Look at it again")
    await expect(articles).to_have_count(100)
    await page.page.keyboard.press("1")
    await page.page.get_by_role("button", name="More").click()
    await expect(articles.nth(100)).to_have_class("current")
    await expect(told(articles.nth(100))).to_contain_text("waiting")
    assert len(decided) == 1
    await page.page.keyboard.press("1")
    await expect(told(articles.nth(100))).to_contain_text("rejected")
    assert (len(decided), len(set(decided))) == (2, 1)


async def test_a_comment_that_moves_while_it_is_pressed_is_the_one_that_the_keys_are_about(
    visited: Visited, browser: Browser
) -> None:
    """What the author of the one above wrote before comes in between, and the press ends elsewhere."""
    hold(visited, 3)
    page = (await opened(visited, browser, "moderator", "#/journal")).page
    articles = page.locator("ringside-admin article")
    async with held_back(page, '"variables":{"user":'):
        await page.get_by_role("link", name="Held and reported").click()
        box = await articles.nth(1).bounding_box()
        assert box is not None
        await page.mouse.move(box["x"] + box["width"] - 30, box["y"] + 12)
        await page.mouse.down()
        await expect(articles.nth(1)).to_be_focused()
    await expect(page.get_by_role("heading", name="wrote")).to_be_visible()
    await page.mouse.up()
    await expect(articles.nth(1)).to_have_class("current")


async def history_read(page: BrowserPage) -> None:
    """Wait for what the author of the first comment wrote before: on a phone it moves the comments below."""
    await expect(page.page.get_by_role("heading", name="wrote")).to_be_visible()


def told(article: Locator) -> Locator:
    """What is told of a comment: its state, too. What its author wrote before has states of its own."""
    return article.locator("p:has(> strong) > .soft")


def decided_about(page: Page) -> list[str]:
    """The comments that the page sends decisions about, in their order."""
    decided: list[str] = []

    def note(request: Request) -> None:
        if '"status"' in (request.post_data or ""):
            decided.extend(json.loads(request.post_data or "")["variables"]["input"]["comments"])

    page.on("request", note)
    return decided


def status_of(visited: Visited, comment: str) -> str:
    """The state of a comment, as moderators see it."""
    with visited.client("mo", "moderator") as client:
        query = "query ($id: ID!) { node(id: $id) { ... on Comment { status } } }"
        answer = client.post("/graphql", json={"query": query, "variables": {"id": comment}}).json()
    return str(answer["data"]["node"]["status"])


def hold(visited: Visited, count: int) -> None:
    """So many comments wait."""
    ids = [visited.edit(POST, by=f"quick-{n}", role="member", product="quick", language="en", body=f"Quick {n}.")
           ["comment"]["id"] for n in range(count)]  # fmt: skip
    visited.edit(HOLD, by="mo", role="moderator", comments=ids, status="PENDING")


async def test_a_double_click_and_a_button_that_is_held_down_decide_once(visited: Visited, browser: Browser) -> None:
    """Not about the next comment, too, which nobody has read."""
    hold(visited, 5)
    page = await opened(visited, browser, "moderator", "#/comments/held", viewport=VIEWPORT)
    articles, publish = page.page.locator("ringside-admin article"), page.page.get_by_role("button", name="Publish")
    await expect(articles.first).to_have_class("current")
    decided: list[str] = []
    page.page.on("request", lambda one: decided.extend(re.findall(r'"status":"(\w+)"', one.post_data or "")))
    for is_held in (False, True):
        waiting = await articles.count()
        decided.clear()
        await (_held_down(publish) if is_held else publish.dblclick())
        await page.page.keyboard.press("7")
        await expect(articles).to_have_count(waiting - 2)
        assert decided == ["PUBLISHED", "REJECTED"]


async def _held_down(button: Locator) -> None:
    await button.focus()
    for _ in range(3):
        await button.page.keyboard.down("Enter")
    await button.page.keyboard.up("Enter")


async def test_keys_that_are_pressed_quickly_are_about_one_comment_each(visited: Visited, browser: Browser) -> None:
    """The first ones, although the area before was looked through. What is taken back is the decision before."""
    hold(visited, 3)
    page = await opened(visited, browser, "moderator", "#/comments/latest")
    articles = page.page.locator("ringside-admin article")
    await expect(articles).to_have_count(100)
    await page.page.keyboard.press("ArrowDown")
    await expect(articles.nth(1)).to_have_class("current")
    await page.page.get_by_role("link", name="Held and reported").click()
    await expect(articles.first).to_have_class("current")
    waiting, decided = await articles.count(), list[tuple[str, str]]()

    def note(request: Request) -> None:
        if '"status"' in (request.post_data or ""):
            given = json.loads(request.post_data or "")["variables"]["input"]
            decided.extend((comment, given["status"]) for comment in given["comments"])

    page.page.on("request", note)
    for first, second in (("a", "1"), ("2", "u")):
        async with held_back(page.page, '"status"'):
            async with page.page.expect_request(lambda one: '"status"' in (one.post_data or "")):
                await page.page.keyboard.press(first)
            await page.page.keyboard.press(second)
        await expect(articles).to_have_count(waiting - 2)
    await expect(page.page.get_by_role("status")).to_have_text("Taken back.")
    (one, is_published), (other, is_rejected), (third, _), (back, _) = decided
    assert (is_published, is_rejected) == ("PUBLISHED", "REJECTED")
    assert (one != other, third == back) == (True, True)


async def test_the_keys_are_those_of_their_places_on_a_keyboard_of_another_script(
    visited: Visited, browser: Browser
) -> None:
    """The pages come in Arabic: where `a` stands, such a keyboard has another letter, and digits of its own."""
    posted = visited.edit(POST, by="latin", role="member", product="keys", language="en", body="Which key?")
    visited.edit(HOLD, by="mo", role="moderator", comments=[posted["comment"]["id"]], status="PENDING")
    page = await opened(visited, browser, "moderator", "#/comments/latest", locale="ar")
    article = page.page.locator("ringside-admin article").filter(has_text="Which key?")
    await article.click()
    keyboard = await page.page.context.new_cdp_session(page.page)
    for key, code, state in (("\u0634", "KeyA", "منشور"), ("\u0661", "Digit1", "مرفوض")):
        await keyboard.send("Input.dispatchKeyEvent", {"type": "keyDown", "key": key, "code": code, "text": key})
        await keyboard.send("Input.dispatchKeyEvent", {"type": "keyUp", "key": key, "code": code})
        await expect(article).to_contain_text(state)


async def test_what_the_keyboard_goes_back_to_is_not_behind_the_buttons(visited: Visited, browser: Browser) -> None:
    """They stay at the top of the page while a long list is scrolled."""
    page = await opened(visited, browser, "moderator", "#/comments/latest", viewport={"width": 1280, "height": 800})
    await page.page.locator("article.current").wait_for()
    await page.page.locator("article").nth(25).get_by_role("checkbox").focus()
    for _ in range(30):
        await page.page.keyboard.press("Shift+Tab")
        assert await page.page.evaluate(FOCUS_IS_SEEN)


async def test_arrow_keys_scroll_what_an_author_wrote_before(visited: Visited, browser: Browser) -> None:
    """Where the keyboard is in it; elsewhere they move to another comment."""
    for number in range(8):
        body = "\n".join(f"{number}: line {line}" for line in range(20))
        visited.edit(POST, by="chatty", role="member", product="scrolled", language="en", body=body)
    page = await opened(visited, browser, "moderator", "#/comments/latest", viewport=VIEWPORT)
    await page.page.locator("ringside-admin article").filter(has_text="7: line 19").click()
    before, current = page.page.locator(".beside"), page.page.locator("ringside-admin article.current")
    await expect(before).to_contain_text("0: line 19")
    await before.press("ArrowDown")
    await until(lambda: before.evaluate("(section) => section.scrollTop > 0"), "it is scrolled")
    await expect(current).to_contain_text("7: line 19")


async def test_a_moderator_reads_on_while_decisions_take_their_time(visited: Visited, browser: Browser) -> None:
    """The chosen comment is in sight, and the one that was moved to stays chosen. A key that is held down decides once.

    How many wait is said. When all of a page are decided, or more are asked for, the rest is shown: "nothing waits" is
    said only where that is so.
    """
    ids = [visited.edit(POST, by=f"waiter-{n}", role="member", product="queue", language="en", body=f"Waits {n}.")
           ["comment"]["id"] for n in range(104)]  # fmt: skip
    for some in (ids[:100], ids[100:]):
        visited.edit(HOLD, by="mo", role="moderator", comments=some, status="PENDING")
    page = await opened(visited, browser, "moderator", "#/comments/held")
    articles, current = page.page.locator("ringside-admin article"), page.page.locator("ringside-admin article.current")
    await expect(articles).to_have_count(100)
    counted = page.page.get_by_text(re.compile(r"^\d+ comments wait\.$"))
    queued = int((await counted.inner_text()).split()[0])
    assert queued >= 104
    for n in range(1, 9):
        await page.page.keyboard.press("ArrowDown")
        await expect(articles.nth(n)).to_have_class("current")
    await expect(current).to_be_in_viewport()
    await expect(current).to_be_focused()
    text = await articles.nth(9).locator("> .body").inner_text()
    async with held_back(page.page, '"status"'):
        async with page.page.expect_request(lambda one: '"status"' in (one.post_data or "")):
            await page.page.keyboard.press("a")
        await page.page.keyboard.press("ArrowDown")
    await expect(articles).to_have_count(99)
    await expect(counted).to_have_text(f"{queued - 1} comments wait.")
    await expect(current.locator("> .body")).to_have_text(text, use_inner_text=True)
    await page.page.keyboard.down("a")
    await expect(articles).to_have_count(98)
    async with held_back(page.page, '"status"') as held:
        await page.page.keyboard.down("a")
    await page.page.keyboard.up("a")
    assert held == []
    await expect(current).to_be_focused()
    for shown in range(198, queued - 2 + 100, 100):
        await page.page.get_by_role("button", name="More").click()
        await expect(articles).to_have_count(min(shown, queued - 2))
    visited.edit(HOLD, by="mo", role="moderator", comments=ids[-1:], status="PUBLISHED")
    await page.page.get_by_role("link", name="Held and reported").click()
    await expect(counted).to_have_text(f"{queued - 3} comments wait.")
    await expect(articles).to_have_count(100)
    await page.page.get_by_role("button", name="Choose all").click()
    await page.page.get_by_role("button", name="Publish", exact=True).click()
    left = queued - 103
    await expect(page.page.get_by_text(re.compile(rf"^{left} comments? waits?\.$"))).to_be_visible()
    await expect(articles).to_have_count(min(left, 100))


def writer(visited: Visited, user: str) -> str:
    """The name of a new member who has posted a comment. Two of whom the site names may get the same one."""
    visited.edit(POST, by=user, role="member", product="shelf", language="en", body="Buy mine.")
    return str(visited.edit(UPDATE_PROFILE, by=user, role="member", name=f"Writer {user}")["user"]["name"])


async def test_an_editor_pastes_twenty_contenders_with_their_pictures(
    visited: Visited, browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By keyboard alone but for the files; what is wrong is named with its line before anything is added."""
    create = (
        "mutation ($input: CreateBoardInput!) { createBoard(input: $input) { ... on BoardCreated { board { slug } } } }"
    )
    visited.edit(create, slug="twenty", title="Twenty")
    page = await opened(visited, browser, "editor", "#/imports", viewport={"width": 1280, "height": 900})
    await page.page.get_by_role("combobox", name="Where").select_option("twenty")
    names = [f"Fan {number}" for number in range(20)]
    for name in names:
        (tmp_path / f"{name}.svg").write_text('<svg viewBox="0 0 9 9"><path d="M0 0h9v9z"/></svg>', encoding="utf-8")
    await page.page.get_by_label("Or choose files").set_input_files(sorted(tmp_path.glob("*.svg")))
    await expect(page.page.get_by_text("20 pictures")).to_be_visible()
    keys = Keys(page)
    await keys.to("textbox", "Paste a list, or a table")
    await keys.paste("\n".join([*names, names[0]]))
    await keys.to("button", "Check")
    await keys.press("Enter")
    await expect(page.page.get_by_text("Line 21:")).to_be_visible()
    await assert_clean(page)
    await keys.press("Shift+Tab", 3)
    await keys.press("ControlOrMeta+A")
    await keys.paste("\n".join(names))
    await keys.to("button", "Add")
    await keys.press("Enter")
    await expect(page.page.locator("section").get_by_text("20 were added.")).to_be_visible()
    printed(capsys, "A board of twenty contenders", keys)
    assert keys.pressed <= 25
    board = ask(visited, '{ board(slug: "twenty") { contenderCount contenders(first: 1) { nodes { svg } } } }')["board"]
    assert board["contenderCount"] == 20
    assert "<path" in board["contenders"]["nodes"][0]["svg"]


async def test_the_document_that_is_shown_is_the_last_one_sent(visited: Visited, browser: Browser) -> None:
    """And does the same when it is sent again."""
    name = writer(visited, "twice")
    page = (await opened(visited, browser, "moderator", "#/members")).page
    await (await searched(page, name)).click()
    reason = page.get_by_label("Reason, which the member sees")
    await reason.fill("Much too loud.")
    await page.get_by_role("button", name="Suspend", exact=True).click()
    await expect(page.get_by_text("Suspended: Much too loud.")).to_be_visible()  # above what is pressed next
    await page.get_by_text("Show the document that was sent").click()
    await expect(page.get_by_label("Document", exact=True)).to_contain_text("mutation SuspendMember(")
    document, variables = [await page.get_by_label(name, exact=True).inner_text() for name in ("Document", "Variables")]
    await page.get_by_role("button", name="End the suspension").click()
    await expect(reason).to_be_visible()
    await expect(page.get_by_label("Document", exact=True)).to_contain_text("mutation ReinstateMember(")
    with visited.client("mira", "moderator") as client:
        client.post("/graphql", json={"query": document, "variables": json.loads(variables)})
    found = ask_admin(visited, f'{{ members(search: "{name}") {{ nodes {{ suspension {{ reason }} }} }} }}')["members"]
    assert found["nodes"] == [{"suspension": {"reason": "Much too loud."}}]


async def test_a_moderator_finds_and_suspends_a_member(
    visited: Visited, browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    """And lets them write again; the journal has both, with the member's name."""
    name = writer(visited, "noisy")
    page = await opened(visited, browser, "moderator", "#/members")
    keys = await found(page, name)
    await keys.to("textbox", "Reason, which the member sees")
    await keys.paste("Advertising.")
    await keys.press("Tab")
    await page.page.get_by_label("Until, if it is to end by itself").fill("2031-05-01T19:00")
    keys.pressed += 12  # the order in which its parts are typed is the machine's
    await keys.to("button", "Suspend")
    await keys.press("Enter")
    await expect(page.page.get_by_text("Suspended until 1 May 2031, 19:00: Advertising.")).to_be_visible()
    await expect(page.page.get_by_role("heading", name=name)).to_be_focused()  # what was pressed is gone
    await assert_clean(page)
    await keys.to("button", "End the suspension")
    await keys.press("Enter")
    await expect(page.page.get_by_label("Reason, which the member sees")).to_be_visible()
    await expect(page.page.get_by_role("heading", name=name)).to_be_focused()
    printed(capsys, "A member suspended, and let write again", keys)
    await page.page.get_by_role("link", name="Journal").click()
    for kind in ("member.suspended", "member.reinstated"):
        await expect(page.page.get_by_role("listitem").filter(has_text=kind).first).to_contain_text(f"{kind} {name}")
    await assert_clean(page)


async def test_the_journal_says_that_a_command_did_it_for_a_member(visited: Visited, browser: Browser) -> None:
    """`--as` names them, who may not have been on the pages at all."""
    by, given = (visited.edit(UPDATE_PROFILE, by=user, role="member", name=f"The {user}")["user"]["id"]
                 for user in ("operator", "promoted"))  # fmt: skip
    command = ("--as", by, "member", "role", given, "--role", "editor")
    done = await asyncio.to_thread(ringside_process, *command, **visited.service.variables)
    assert done.returncode == 0, done.stderr
    page = await opened(visited, browser, "moderator", "#/journal")
    done_so = page.page.get_by_role("listitem").filter(has_text="member.rolesSet The promoted")
    await expect(done_so).to_contain_text("The operator · a command")


async def test_what_is_ticked_stays_ticked_while_something_else_is_done(visited: Visited, browser: Browser) -> None:
    """Else all of a member would be taken back where a part was chosen, and roles set that nobody chose."""
    name = writer(visited, "ticked")
    page = await opened(visited, browser, "admin", "#/members")
    await (await searched(page.page, name)).click()
    await expect(page.page.get_by_role("heading", name=name)).to_be_focused()
    await page.page.get_by_label("votes", exact=True).uncheck()
    await page.page.get_by_label("moderator", exact=True).check()
    await page.page.get_by_label("Reason, which the member sees").fill("A mistake.")
    await page.page.get_by_role("button", name="Suspend", exact=True).click()
    await page.page.get_by_role("button", name="End the suspension").click()
    await expect(page.page.get_by_label("Reason, which the member sees")).to_be_visible()
    await expect(page.page.get_by_label("moderator", exact=True)).to_be_checked()
    await expect(page.page.get_by_label("votes", exact=True)).not_to_be_checked()
    async with page.page.expect_request(lambda one: '"parts"' in (one.post_data or "")) as sent:
        await page.page.get_by_role("button", name="Take back", exact=True).click()
    given = json.loads((await sent.value).post_data or "")["variables"]["input"]
    assert given["parts"] == ["PREDICTIONS", "COMMENTS", "QUIZZES", "SENTENCES"]
    await expect(page.page.get_by_role("status")).to_contain_text("was taken back")
    await assert_clean(page)


async def test_roles_that_somebody_else_has_changed_are_shown_before_they_are_set(
    visited: Visited, browser: Browser
) -> None:
    """Else a page that was open before would give back a role that another admin has taken away."""
    name = writer(visited, "risen")
    user = ask_admin(visited, f'{{ members(search: "{name}") {{ nodes {{ id }} }} }}')["members"]["nodes"][0]["id"]
    await give_roles(visited, user, "moderator")
    page = await opened(visited, browser, "admin", "#/members")
    await (await searched(page.page, name)).click()
    moderator, editor = (page.page.get_by_label(role, exact=True) for role in ("moderator", "editor"))
    await expect(moderator).to_be_checked()
    await editor.check()
    await give_roles(visited, user)
    sent: list[list[str]] = []

    def note(request: Request) -> None:
        if '"roles"' in (request.post_data or ""):
            sent.append(json.loads(request.post_data or "")["variables"]["input"]["roles"])

    page.page.on("request", note)
    await page.page.get_by_role("button", name="Set roles").click()
    await expect(page.page.get_by_role("status")).to_contain_text("Somebody else has changed these roles meanwhile.")
    await expect(moderator).not_to_be_checked()
    await expect(editor).to_be_checked()
    assert sent == []
    await assert_clean(page)
    await page.page.get_by_role("button", name="Set roles").click()
    await until(lambda: sent == [["editor"]], "they are set as they are shown")


async def test_an_admin_finds_a_member_by_address_and_gives_them_a_role(
    visited: Visited, browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    """By keyboard alone; the page says how the member signs in. Roles are given by who has signed in there."""
    address = "boss@example.com"
    page, name = await signed_in_with_role(visited, browser, address, "admin")
    keys = await found(page, name, by=address)
    await expect(page.page.get_by_text(f": {address}")).to_be_visible()
    await keys.to("checkbox", "editor")
    await keys.press("Space")
    await keys.to("button", "Set roles")
    await keys.press("Enter")
    await expect(page.page.get_by_role("status")).to_have_text(f"The roles of {name} are set.")
    printed(capsys, "A member found by address, and a role given", keys)
    roles = ask_admin(visited, f'{{ members(search: "{address}") {{ nodes {{ roles }} }} }}')["members"]["nodes"]
    assert roles == [{"roles": ["member", "editor", "admin"]}]


async def signed_in_with_role(visited: Visited, browser: Browser, address: str, role: str) -> tuple[BrowserPage, str]:
    """The list of members, for somebody who has signed in by email, and their name."""
    command = ("member", "role", address, "--role", role)
    given = await asyncio.to_thread(ringside_process, *command, **visited.service.variables)
    assert given.returncode == 0, given.stderr
    context = await new_context(browser, locale="en-GB", permissions=["clipboard-read", "clipboard-write"])
    page = await context.new_page()
    await page.goto(f"{visited.service.url}/sign-in")
    await sign_in_by_email(visited, page, address)
    await page.goto(f"{visited.service.url}/admin#/members")
    return BrowserPage(page, visited.service.url), await page.locator("header p span").inner_text()


def ask_admin(visited: Visited, query: str) -> dict[str, Any]:
    with visited.client("root", "admin") as client:
        answer = client.post("/graphql", json={"query": query}).json()
    return dict(answer["data"])


async def give_roles(visited: Visited, user: str, *roles: str) -> None:
    """As an operator does; other processes know within seconds."""
    named = [part for role in roles for part in ("--role", role)]
    given = await asyncio.to_thread(ringside_process, "member", "role", user, *named, **visited.service.variables)
    assert given.returncode == 0, given.stderr
    query = f'{{ user(id: "{user}") {{ roles }} }}'
    await until(
        lambda: {*ask_admin(visited, query)["user"]["roles"]} - {"member"} == {*roles}, "it is known", pause=0.1
    )


async def test_an_admin_sees_what_the_service_does_and_erases_nobody_by_mistake(
    visited: Visited, browser: Browser
) -> None:
    """Requests by operation, what waits, jobs; a member is erased once their name has been typed."""
    name = writer(visited, "leaver")
    page = await opened(visited, browser, "admin", "#/members")
    await (await searched(page.page, name)).click()
    await page.page.get_by_role("button", name="Erase").click()
    await expect(page.page.get_by_role("status")).to_contain_text("Type the name exactly")
    await expect(page.page.locator(".note", has_text="Type the name exactly")).to_be_in_viewport()
    await page.page.get_by_label("To erase them, type their name").fill(name)
    await page.page.get_by_role("button", name="Erase").click()
    await expect(page.page.get_by_role("status")).to_contain_text("was erased")
    await page.page.get_by_role("link", name="Service").click()
    await expect(page.page.get_by_text("ERASE_MEMBER").first).to_be_visible()
    await assert_clean(page)


async def test_a_member_is_erased_whose_accents_are_stored_apart_from_their_letters(
    visited: Visited, browser: Browser
) -> None:
    """As some systems write them; a keyboard writes them together. Nor are marks of the writing's direction typed."""
    writer(visited, "apart")
    visited.edit(UPDATE_PROFILE, by="apart", role="member", name="Zoe\u0308 Apart\u200f")
    page = await opened(visited, browser, "admin", "#/members")
    await (await searched(page.page, "Zoe\u0308 Apart\u200f")).click()
    await page.page.get_by_label("To erase them, type their name").fill("Zo\u00eb Apart")
    await page.page.get_by_role("button", name="Erase").click()
    await expect(page.page.get_by_role("status")).to_contain_text("was erased")


async def test_the_pages_may_not_be_framed_and_load_little(visited: Visited) -> None:
    """They tell people who block scripts what they need."""
    answer = httpx.get(f"{visited.service.url}/admin", timeout=LONGEST)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert '<noscript lang="en" dir="ltr">These pages need JavaScript.</noscript>' in answer.text
    script = answer.text.split('src="')[1].split('"')[0]
    with httpx.stream(
        "GET", f"{visited.service.url}{script}", headers={"accept-encoding": "gzip"}, timeout=LONGEST
    ) as loaded:
        assert sum(map(len, loaded.iter_raw())) < 150_000


async def test_a_demo_signs_in_as_an_editor_with_one_click(visited: Visited, browser: Browser) -> None:
    """Also in the explorer, for the documents that the pages show."""
    page = await opened(visited, browser, None)
    await press_and_load(page.page, "Sign in as Ines Castillo, editor")
    await expect(page.page.get_by_role("img")).to_have_count(5)
    await expect(page.page.get_by_role("button", name="Sign out")).to_be_visible()
    await assert_clean(page)
    await page.page.get_by_role("link", name="Words").click()
    await page.page.get_by_label("Name of a new list").fill("A demo's list")
    await page.page.keyboard.press("Enter")
    await expect(page.page.get_by_role("heading", name="A demo's list")).to_be_focused()  # above what is pressed next
    await page.page.get_by_text("Show the document that was sent").click()
    async with page.page.context.expect_page() as tab:
        await page.page.get_by_role("link", name="open the explorer").click()
    explorer = ExplorerPage(await tab.value, visited.service.url)
    await explorer.know_language()
    await explorer.write(explorer.query, "{ viewer { name")
    await explorer.run()
    await expect(explorer.answer).to_contain_text('"name": "Ines Castillo"')
    await expect(explorer.page.get_by_label("Signed in as").locator("option:checked")).to_have_text("Ines Castillo")
    await page.page.get_by_role("button", name="Sign out").click()
    await expect(page.page.get_by_text("These pages are for moderators")).to_be_visible()
    await explorer.run()
    await expect(explorer.answer).to_contain_text('"viewer": null')


async def press_and_load(page: Page, button: str) -> None:
    """Press a button that loads the page anew, and wait for that: before, the page may show the same."""
    async with page.expect_event("load"):
        await page.get_by_role("button", name=button).click()


async def test_a_page_names_whom_another_tab_has_signed_in(visited: Visited, browser: Browser) -> None:
    """With the areas of their roles. What was typed before stays for whoever may do the same."""
    page = (await opened(visited, browser, None, "#/boards")).page
    await press_and_load(page, "Sign in as Ines Castillo, editor")
    await page.get_by_label("Title of a new board").fill("Half a title")
    tab = await page.context.new_page()
    await tab.goto(f"{visited.service.url}/admin#/boards")
    for name, role, area in (("Emil Berg", "moderator", "Rules"), ("Ines Castillo", "editor", "Words")):
        await press_and_load(tab, "Sign out")
        await press_and_load(tab, f"Sign in as {name}, {role}")
        await expect(page.locator("header p")).to_contain_text(name)
        await expect(page.get_by_role("link", name=area)).to_be_visible()
        await expect(page.get_by_role("link", name="Words")).to_have_count(int(role == "editor"))
    await expect(page.get_by_label("Title of a new board")).to_have_value("Half a title")


async def copied(page: Page, begins: str) -> str:
    """The text that a button has copied, which begins so."""

    async def of_clipboard() -> str | None:
        text = str(await page.evaluate("navigator.clipboard.readText()"))
        return text if text.startswith(begins) else None

    return str(await until(of_clipboard, "the button has copied the text"))


async def test_nothing_typed_is_lost_when_the_session_ends(visited: Visited, browser: Browser) -> None:
    """A dialog leads to another tab; once signed in there, what was sent is sent again, and can be shown.

    Whoever signs in there is whom the page names.
    """
    address = "mod@example.com"
    name = writer(visited, "loud")
    page = (await signed_in_with_role(visited, browser, address, "moderator"))[0].page
    context = page.context
    await (await searched(page, name)).click()
    await page.get_by_label("Reason, which the member sees").fill("Much too loud.")
    await end_everywhere(visited, context)
    await page.get_by_role("button", name="Suspend", exact=True).click()
    await expect(page.get_by_role("heading", name="Please sign in again")).to_be_visible()
    assert await BrowserPage(page, "").barriers() == []
    async with context.expect_page() as tab:
        await page.get_by_role("dialog").get_by_role("link", name="Sign in").click()
    other = await tab.value
    # Also where a session goes on, but was begun too long ago for what was sent.
    await expect(other.get_by_role("status")).to_have_text("Please confirm that it is you: sign in again.")
    await sign_in_by_email(visited, other, address)
    await page.bring_to_front()
    await page.evaluate("dispatchEvent(new Event('focus'))")  # headless tabs have no focus of their own
    await expect(page.get_by_text("Suspended: Much too loud.")).to_be_visible()
    await expect(page.get_by_role("dialog")).to_be_hidden()

    await page.get_by_text("Show the document that was sent").click()
    await page.get_by_role("button", name="Copy the document").click()
    document = await copied(page, "mutation SuspendMember(")
    await page.get_by_role("button", name="Copy the variables").click()
    variables = json.loads(await copied(page, "{"))
    assert variables["input"]["reason"] == "Much too loud."
    again = await page.request.post(
        f"{visited.service.url}/graphql",
        data={"query": document, "variables": variables},
        headers={"origin": visited.service.url},
    )
    assert "data" in await again.json()

    me = await page.locator("header p").inner_text()
    await end_everywhere(visited, context)
    await page.get_by_role("button", name="End the suspension").click()
    async with context.expect_page() as tab:
        await page.get_by_role("dialog").get_by_role("link", name="Sign in").click()
    await sign_in_by_email(visited, await tab.value, "nobody@example.com")
    await page.bring_to_front()
    await page.evaluate("dispatchEvent(new Event('focus'))")
    await expect(page.get_by_role("status")).to_contain_text("Your role does not allow this")
    await expect(page.locator("header p")).not_to_have_text(me, use_inner_text=True)


async def end_everywhere(visited: Visited, context: BrowserContext) -> None:
    """End the session of a browser from another machine."""
    cookies = {each["name"]: each["value"] for each in await context.cookies()}
    out = {"query": "mutation { signOut(input: { everywhere: true }) { __typename } }"}
    url = visited.service.url
    ended = httpx.post(f"{url}/graphql", json=out, cookies=cookies, headers={"origin": url}, timeout=LONGEST)
    assert ended.json()["data"]["signOut"]["__typename"] == "SignedOut"


async def test_a_refusal_stands_at_its_field_until_it_is_changed(visited: Visited, browser: Browser) -> None:
    name = writer(visited, "wordy")
    page = await opened(visited, browser, "moderator", "#/members")
    await (await searched(page.page, name)).click()
    reason = page.page.get_by_label("Reason, which the member sees")
    await reason.fill("<b>long</b> " * 1000)
    await page.page.get_by_role("button", name="Suspend", exact=True).click()
    await expect(reason).to_have_attribute("aria-invalid", "true")
    await expect(reason).to_be_focused()
    await expect(page.page.locator("#suspend-reason-refused")).to_be_visible()
    await assert_clean(page)
    await page.page.get_by_role("link", name="Rules").click()
    await expect(page.page.get_by_role("heading", name="Rules")).to_be_visible()
    await expect(page.page.get_by_role("status")).to_have_text("")  # it is not about the rules
    await page.page.go_back()
    await expect(page.page.locator("main li").nth(1)).to_be_visible()  # all are listed again, above the form
    await expect(page.page.locator("#suspend-reason-refused")).to_be_visible()
    await reason.fill("Long.")
    await expect(page.page.locator("#suspend-reason-refused")).to_have_count(0)
    await page.page.get_by_role("button", name="Suspend", exact=True).click()
    await expect(page.page.get_by_text("Suspended: Long.")).to_be_visible()
