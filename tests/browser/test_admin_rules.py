"""The areas of rules and webhooks at /admin, in Chromium."""

import re
from datetime import timedelta
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from datastore.dynamo import iso
from resolvers.requests.context import utc_now
from tests.browser.admin import Keys, assert_clean, double_click, opened, printed
from tests.browser.pages import answered_last, held_back
from tests.browser.sites import Visited
from tests.queries import POST_COMMENT, mutation
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

ADD_WEBHOOK = mutation("addWebhook", "WebhookAdded", "webhook { id }")
REMOVE_WEBHOOK = mutation("removeWebhook", "WebhookRemoved", "deletedId")
SET_RULES = mutation("setHoldRules", "HoldRulesSet", "rules { revision }")


async def test_rules_are_tried_on_the_latest_comments_and_then_saved(
    visited: Visited, browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    """By keyboard alone. One without a condition is refused at its field; what is held afterwards names the rule."""
    save_rules(visited)
    say(visited, "Resale tickets here.")
    page = await opened(visited, browser, "admin", "#/rules")
    keys = Keys(page)
    await keys.to("button", "Add a rule")
    await keys.press("Enter")
    name = page.page.get_by_label("Name", exact=True)
    await expect(name).to_be_focused()
    await keys.paste("<b>Tickets</b>")
    await keys.to("button", "Save the rules")
    await keys.press("Enter")
    await expect(page.page.locator("p.error")).to_be_visible()
    await expect(name).to_be_focused()
    await assert_clean(page)
    await keys.to("textbox", "Has one of these words")
    await keys.paste("resale, scalping")
    await keys.to("button", "Try on the latest comments")
    await keys.press("Enter")
    await expect(page.page.get_by_role("heading", name="of the latest 500 comments would wait")).to_be_visible()
    await expect(page.page.locator("article")).to_contain_text(["Resale tickets here."])
    await assert_clean(page)
    await keys.to("button", "Save the rules")
    await keys.press("Enter")
    await expect(page.page.get_by_role("status")).to_contain_text("Saved.")
    printed(capsys, "Rules mended, tried and saved", keys)
    say(visited, "More resale.")
    await page.page.get_by_role("link", name="Held and reported").click()
    held = page.page.locator("article").filter(has_text="More resale.")
    await expect(held).to_contain_text("Held by <b>Tickets</b>")


async def test_rules_that_are_saved_twice_are_not_taken_for_those_of_somebody_else(
    visited: Visited, browser: Browser
) -> None:
    """Pressed again before the answer came. What is typed until then stays, and is saved with the next press."""
    page = await opened(visited, browser, "admin", "#/rules")
    await page.page.locator("#add-rule").click()
    await page.page.locator("[name=name]").last.fill("Twice")
    links, save = page.page.locator("[name=links]").last, page.page.get_by_role("button", name="Save the rules")
    await links.fill("3")
    async with held_back(page.page, "idempotencyKey") as held:
        await save.click()
        await until(lambda: held, "the rules are on their way")
        await save.click()
        await links.fill("4")
    await expect(page.page.get_by_role("status")).to_have_text("Saved.")
    assert len(held) == 1
    await expect(links).to_have_value("4")
    async with page.page.expect_response(lambda one: "idempotencyKey" in (one.request.post_data or "")):
        await save.click()
    await page.page.reload()
    await expect(links).to_have_value("4")


async def test_a_rule_is_moved_by_the_keyboard_which_keeps_its_place(visited: Visited, browser: Browser) -> None:
    """On the button that was pressed, so that the rule can be moved on."""
    page = await opened(visited, browser, "moderator", "#/rules")
    names = page.page.locator("[name=name]")
    for name in ("Last", "Moved"):
        await page.page.locator("#add-rule").click()
        await expect(names.last).to_be_focused()
        await names.last.fill(name)
    for direction, placed in (("Up", ["Moved", "Last"]), ("Down", ["Last", "Moved"])):
        button = page.page.get_by_role("button", name=f"{direction} Moved")
        await button.press("Enter")
        await expect(button).to_be_focused()
        values = await names.evaluate_all("(inputs) => inputs.map(({ value }) => value)")
        assert values[-2:] == placed


async def test_a_double_click_removes_one_rule(visited: Visited, browser: Browser) -> None:
    """Not the next one, too, whose button stands there by then. The second click of one on "Up" moves no other rule."""
    page = await opened(visited, browser, "moderator", "#/rules", viewport={"width": 1280, "height": 4000})
    names = page.page.locator("[name=name]")
    add = page.page.locator("#add-rule")
    await add.click()
    await expect(names.last).to_be_focused()
    before = await names.count() - 1
    await names.last.fill("First")
    for name in ("Second", "Third"):
        await add.click()
        await expect(names.last).to_be_focused()
        await names.last.fill(name)

    async def last_are(*expected: str) -> None:
        async def they_are() -> bool:
            last = "(inputs, before) => inputs.slice(before).map(({ value }) => value)"
            return bool(await names.evaluate_all(last, before) == [*expected])

        await until(they_are, f"the rules are {expected}")

    remove, up = (page.page.get_by_role("button", name=name) for name in ("Remove First", "Up Third"))
    await double_click(page.page, up, lambda: last_are("First", "Third", "Second"))
    await last_are("First", "Third", "Second")
    await double_click(page.page, remove, lambda: last_are("Third", "Second"))
    await add.click()
    await last_are("Third", "Second", "")


async def test_rules_are_saved_by_the_keyboard_which_keeps_its_place(visited: Visited, browser: Browser) -> None:
    """In the field in which Enter was pressed, though all rules are shown as the service has them now."""
    page = await opened(visited, browser, "admin", "#/rules")
    await page.page.locator("#add-rule").click()
    name, language = (page.page.locator(f"[name={field}]").last for field in ("name", "language"))
    await name.fill("Kept")
    await page.page.locator("[name=links]").last.fill("5")
    await language.fill("DE")
    await language.press("Enter")
    await expect(page.page.get_by_role("status")).to_contain_text("Saved.")
    await expect(language).to_have_value("de")
    await expect(language).to_be_focused()


@pytest.mark.parametrize(("locale", "scheme"), [("de-DE", "dark"), ("ar", "light")])
async def test_rules_of_somebody_else_are_shown_before_they_are_replaced(
    visited: Visited, browser: Browser, locale: str, scheme: str
) -> None:
    """What was typed stays; taking theirs is one press."""
    page = await opened(visited, browser, "admin", "#/rules", locale=locale, color_scheme=scheme)
    await page.page.locator("#add-rule").click()
    mine = page.page.locator("fieldset").last
    await mine.locator("[name=name]").fill("Mine")
    await mine.locator("[name=links]").fill("2")
    save_rules(visited, {"name": "Theirs", "links": 5})
    await page.page.locator("button[type=submit]").click()
    theirs = page.page.get_by_role("button").filter(has_text=re.compile("Mit diesen weitermachen|المتابعة من هذه"))
    await expect(theirs).to_be_visible()
    await expect(mine.locator("[name=name]")).to_have_value("Mine")
    await assert_clean(page)
    await theirs.click()
    await expect(page.page.locator("fieldset [name=name]")).to_have_value("Theirs")


async def test_words_of_a_rule_are_parted_by_the_commas_of_any_keyboard(visited: Visited, browser: Browser) -> None:
    page = await opened(visited, browser, "admin", "#/rules", locale="ar")
    await page.page.locator("#add-rule").click()
    await page.page.locator("[name=name]").last.fill("Commas")
    words = page.page.locator("[name=words]").last
    await words.fill("تذاكر، حجز,resale，代购、微信")
    await page.page.locator("button[type=submit]").click()
    await expect(words).to_have_value("تذاكر, حجز, resale, 代购, 微信")


async def test_a_moderator_tries_rules_and_does_not_save_them(visited: Visited, browser: Browser) -> None:
    page = await opened(visited, browser, "moderator", "#/rules")
    await expect(page.page.get_by_text("Admins save them.")).to_be_visible()
    await expect(page.page.get_by_role("button", name="Save the rules")).to_have_count(0)


async def test_what_is_wrong_with_a_rule_that_is_tried_is_said_in_every_language(
    visited: Visited, browser: Browser
) -> None:
    page = await opened(visited, browser, "moderator", "#/rules", locale="de-DE")
    await page.page.locator("#add-rule").click()
    await page.page.locator("[name=name]").last.fill("Leer")
    await page.page.get_by_role("button", name="An den neuesten Kommentaren ausprobieren").click()
    refusal = re.compile(r"^Das kann so nicht angenommen werden\. .*condition")
    await expect(page.page.get_by_role("status")).to_have_text(refusal)


async def test_a_webhook_is_added_told_again_and_removed(
    visited: Visited, browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    """By keyboard alone. Its secret is shown once; an address that may not be told anything is refused at its field."""
    page = await opened(visited, browser, "admin", "#/webhooks")
    keys = Keys(page)
    await keys.to("textbox", "Address")
    await keys.paste("https://127.0.0.1/")
    await keys.press("Enter")
    url = page.page.get_by_label("Address")
    await expect(url).to_have_attribute("aria-invalid", "true")
    await expect(url).to_be_focused()
    await keys.press("ControlOrMeta+A")
    await keys.paste("https://hooks.example.com/ringside")
    await keys.to("textbox", "Kinds")
    await keys.paste("comment.posted")
    await keys.press("Enter")
    await expect(page.page.get_by_label("Secret", exact=True)).to_have_text(re.compile("^whsec_"))
    first = await page.page.get_by_label("Secret", exact=True).inner_text()
    await assert_clean(page)
    await keys.to("button", "Give it a new secret")
    await keys.press("Enter")
    await expect(page.page.get_by_label("Secret", exact=True)).not_to_have_text(first)
    say(visited, "Tell them.")
    since = iso(utc_now() - timedelta(hours=2))[:16]
    await page.page.get_by_label("What happened since").fill(since)
    keys.pressed += 12  # the order in which its parts are typed is the machine's
    await keys.to("button", "Tell it again")
    await keys.press("Enter")
    await expect(page.page.locator("section li").filter(has_text="comment.posted").first).to_contain_text("attempt")
    await assert_clean(page)
    await keys.to("button", "Remove https://hooks.example.com/ringside")
    await keys.press("Enter")
    await expect(page.page.get_by_role("status")).to_contain_text("is told nothing any more")
    printed(capsys, "A webhook added, told again and removed", keys)
    await expect(page.page.get_by_role("heading", name="Webhooks")).to_be_focused()
    await expect(page.page.get_by_role("button", name="hooks.example.com")).to_have_count(0)


async def test_a_secret_is_shown_with_its_own_webhook(visited: Visited, browser: Browser) -> None:
    """Although another one was chosen before the answer came. The same holds for what is said of a removed one.

    A double click makes one secret: of two, the first would be shown for a moment only.
    """
    for name in "ab":
        url = f"https://{name}.example.com/ringside"
        visited.edit(ADD_WEBHOOK, by="boss", role="admin", url=url, kinds=["comment.posted"])
    page = await opened(visited, browser, "admin", "#/webhooks")
    a, b = (page.page.get_by_role("button", name=f"https://{name}.example.com/ringside", exact=True) for name in "ab")
    await a.click()
    async with held_back(page.page, "idempotencyKey") as rotations:
        await page.page.get_by_role("button", name="Give it a new secret").dblclick()
        await b.click()
        await expect(page.page.locator("#chosen-webhook")).to_contain_text("b.example.com")
    assert len(rotations) == 1
    await expect(page.page.get_by_label("Secret", exact=True)).to_be_visible()
    await expect(page.page.locator("#chosen-webhook")).to_contain_text("a.example.com")
    async with held_back(page.page, "idempotencyKey"):
        await page.page.get_by_role("button", name="Remove").click()
        await b.click()
        await expect(page.page.locator("#chosen-webhook")).to_contain_text("b.example.com")
    await expect(page.page.get_by_role("status")).to_contain_text("https://a.example.com/ringside")
    await expect(page.page.locator("#chosen-webhook")).to_contain_text("b.example.com")


async def test_a_webhook_that_another_admin_has_removed_is_said_to_be_gone(visited: Visited, browser: Browser) -> None:
    """Nobody is asked to sign in again for it, or told of a role that was taken away."""
    url = "https://removed.example.com/ringside"
    given = {"url": url, "kinds": ["suspects.sought"]}
    webhook = visited.edit(ADD_WEBHOOK, by="boss", role="admin", **given)["webhook"]["id"]
    page = await opened(visited, browser, "admin", "#/webhooks")
    button = page.page.get_by_role("button", name=url, exact=True)
    await expect(button).to_be_visible()
    visited.edit(REMOVE_WEBHOOK, by="boss", role="admin", webhook=webhook)
    node = {"query": f'{{ node(id: "{webhook}") {{ id }} }}'}
    with visited.client("boss", "admin") as client:
        await until(lambda: client.post("/graphql", json=node).json()["data"]["node"] is None, "its item is deleted")
    await button.click()
    await expect(page.page.get_by_role("status")).to_have_text(f"{url} is told nothing any more.")
    await expect(button).to_have_count(0)
    await expect(page.page.get_by_role("heading", name="Webhooks")).to_be_focused()


async def test_a_press_selects_what_a_page_over_plain_http_may_not_copy(visited: Visited, browser: Browser) -> None:
    """Such a page has no clipboard. A key copies what is selected."""
    url = "https://plain.example.com/ringside"
    visited.edit(ADD_WEBHOOK, by="boss", role="admin", url=url, kinds=["comment.posted"])
    page = await opened(visited, browser, "admin", "#/webhooks")
    await page.page.evaluate("delete Navigator.prototype.clipboard")
    await page.page.get_by_role("button", name=url, exact=True).click()
    await page.page.get_by_role("button", name="Give it a new secret").click()
    await expect(page.page.get_by_label("Secret", exact=True)).to_be_visible()  # above what is pressed next
    await page.page.get_by_text("Show the document that was sent").click()
    for name in ("Secret", "Document", "Variables"):
        await page.page.get_by_role("button", name=f"Copy the {name.lower()}").click()
        shown = await page.page.get_by_label(name, exact=True).inner_text()
        await page.page.wait_for_function("text => String(getSelection()) === text", arg=shown)
        await expect(page.page.get_by_role("status")).to_have_text("Selected: copy it now.")
    assert page.errors == []


async def test_messages_are_listed_under_their_own_webhook_only(visited: Visited, browser: Browser) -> None:
    """Although another one was chosen before, whose answer comes last, or whose messages stood there."""
    ids = []
    for name, kind in (("told", "comment.posted"), ("silent", "suspects.sought")):
        added = visited.edit(ADD_WEBHOOK, by="boss", role="admin", url=f"https://{name}.example.com/", kinds=[kind])
        ids.append(added["webhook"]["id"])
    say(visited, "Tell one of them.")
    page = await opened(visited, browser, "admin", "#/webhooks")
    told, silent = (page.page.get_by_role("button", name=f"https://{name}.example.com/") for name in ("told", "silent"))
    heading, messages = page.page.locator("#chosen-webhook"), page.page.locator("section li")
    async with answered_last(page.page, ids[0]):
        await told.first.click()
        await silent.first.click()
        await expect(heading).to_contain_text("silent")
    await expect(heading).to_contain_text("silent")
    await expect(messages).to_have_count(0)
    await told.first.click()
    await expect(messages.filter(has_text="comment.posted")).to_have_count(1)
    await page.page.route("**/graphql*", lambda route: route.abort())
    await silent.first.click()
    await expect(heading).to_contain_text("silent")
    await expect(messages).to_have_count(0)


def save_rules(visited: Visited, *rules: dict[str, Any]) -> None:
    """As another administrator: these are all that there are."""
    with visited.client("boss", "admin") as client:
        found = client.post("/graphql", json={"query": "{ holdRules { revision } }"}).json()["data"]["holdRules"]
    visited.edit(SET_RULES, by="boss", role="admin", rules=[*rules], revision=found["revision"])


def say(visited: Visited, body: str) -> None:
    visited.edit(POST_COMMENT, by="talker", role="member", product="rules", language="en", body=body)
