"""What goes wrong while somebody works at /admin: a role that is taken away, a network that drops, impatience."""

import asyncio
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from playwright.async_api import APIResponse, Browser, Locator, Route, expect

from datastore.dynamo import iso
from resolvers.requests.context import utc_now
from tests.browser.admin import NODES, ask, assert_clean, create_event, opened, searched
from tests.browser.pages import BrowserPage, answered_last
from tests.browser.sites import Visited
from tests.queries import CREATE_EVENT, UPDATE_PROFILE, mutation
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

CREATE_LIST = mutation("createWordList", "WordListCreated", "list { id }", refused="code")
ADD_WEBHOOK = mutation("addWebhook", "WebhookAdded", "webhook { id }")
CREATE_BOARD = """mutation ($input: CreateBoardInput!) {
  createBoard(input: $input) { __typename ... on Refused { code } }
}"""
REQUESTS = "**/graphql"
JOB_GONE = "How this ends can no longer be seen here."
GONE = "Your role does not allow this"
UNREACHABLE = "The service cannot be reached. Trying again."


async def opened_list(visited: Visited, browser: Browser, name: str) -> tuple[str, BrowserPage]:
    """A new list, and the page where an editor has chosen it."""
    made = visited.edit(CREATE_LIST, name=name, public=True)["list"]["id"]
    page = await opened(visited, browser, "editor", "#/words")
    await page.page.get_by_role("button", name=name).click()
    await expect(page.page.get_by_role("heading", name=name)).to_be_focused()
    return str(made), page


async def write_word(page: BrowserPage, term: str) -> None:
    await page.page.locator("#new-word-term").fill(term)
    await page.page.locator("#new-word-definition").fill("meaning")


def terms(visited: Visited, list_id: str) -> list[str]:
    found = ask(visited, f'{{ wordList(id: "{list_id}") {{ words {{ nodes {{ term }} }} }} }}')
    return [word["term"] for word in found["wordList"]["words"]["nodes"]]


async def take_role_away(visited: Visited, page: BrowserPage) -> None:
    """From now on the service knows the same member without a role."""
    token = visited.service.token("mira")

    async def send(route: Route) -> None:
        await route.continue_(headers={**route.request.headers, "authorization": f"Bearer {token}"})

    await page.page.route(REQUESTS, send)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_a_role_that_is_taken_away_is_said_and_nothing_typed_is_lost(
    visited: Visited, browser: Browser, scheme: Any
) -> None:
    """In the area where it is noticed, and in those that are opened then; with the role again, all goes on."""
    list_id, page = await opened_list(visited, browser, f"Roles {scheme}")
    await page.page.emulate_media(color_scheme=scheme)
    await take_role_away(visited, page)
    await write_word(page, "Wort")
    await page.page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.page.get_by_role("status")).to_contain_text(GONE)
    await page.page.locator("#list-name").fill("Another name")
    await page.page.get_by_role("button", name="Save").click()
    await expect(page.page.get_by_role("status")).to_contain_text(GONE)
    await assert_clean(page)
    for area in ("Boards", "Add many", "Words"):
        await page.page.get_by_role("link", name=area).click()
        await expect(page.page.get_by_role("heading", name=area).first).to_be_visible()
    await expect(page.page.locator("#new-word-term")).to_have_value("Wort")
    await expect(page.page.locator("#list-name")).to_have_value("Another name")
    await page.page.unroute(REQUESTS)
    await page.page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.page.get_by_role("status")).to_have_text("Wort was added.")
    await expect(page.page.locator("#list-name")).to_have_value("Another name")
    assert terms(visited, list_id) == ["Wort"]


async def test_what_was_typed_to_an_author_is_not_sent_by_whom_another_tab_signs_in(
    visited: Visited, browser: Browser
) -> None:
    """The page names them, also if it could not ask at once. It stays when the same member has a further role."""
    page = (await opened(visited, browser, None, "#/comments/latest")).page
    tab = await page.context.new_page()
    await tab.goto(f"{visited.service.url}/admin")
    note, me = page.get_by_label("A note to the author, if you reject"), page.locator("header p")
    chosen = page.locator("article.current").get_by_label("Choose")

    async def sign_in(user: str, *role: str) -> None:
        stored = json.dumps({"member": {"token": visited.service.token(user, *role), "expiresAt": "2100-01-01"}})
        entry = [f"ringside {visited.service.url}/", stored]
        await tab.evaluate("(entry) => localStorage.setItem(...entry)", entry)

    await sign_in("mira")
    await expect(page.get_by_text("who has no role here")).to_be_visible()
    await sign_in("mira", "--role", "moderator")
    await chosen.check()
    await page.evaluate("dispatchEvent(new Event('online'))")  # whoever has no role is looked for again at once
    await note.fill("From me.")
    await page.locator("article").nth(1).focus()
    await expect(page.get_by_role("heading", name="wrote")).to_be_visible()
    await expect(page.get_by_label("Choose").first).to_be_checked()

    await sign_in("mira", "--role", "admin")
    await expect(page.get_by_role("link", name="Webhooks")).to_be_visible()
    await expect(note).to_have_value("From me.")
    await expect(page.get_by_role("heading", name="wrote")).to_be_visible()  # then nothing more takes the focus
    await page.locator("article.current").get_by_role("button", name="Answer for the site").click()
    await page.locator("#answer-body").fill("From me, too.")
    name = await me.inner_text()
    await page.context.set_offline(True)
    async with page.expect_event("requestfailed"):
        await sign_in("boss", "--role", "admin")
    await page.context.set_offline(False)
    await page.evaluate("dispatchEvent(new Event('focus'))")
    await expect(me).not_to_have_text(name, use_inner_text=True)
    await expect(note).to_have_value("")
    await expect(page.locator("#answer-body")).to_have_count(0)


async def test_an_area_whose_reading_is_refused_does_not_go_on_waiting(visited: Visited, browser: Browser) -> None:
    """Nor does it show that nothing happened."""
    page = await opened(visited, browser, "admin", "#/comments/held")
    await expect(page.page.get_by_role("heading", name="Held and reported")).to_be_visible()
    await take_role_away(visited, page)
    for area in ("Journal", "Latest", "Overview", "Rules", "Webhooks", "Service"):
        await page.page.get_by_role("link", name=area).click()
        await expect(page.page.get_by_role("heading", name=area)).to_be_visible()
        await expect(page.page.get_by_role("status")).to_contain_text(GONE)
        await expect(page.page.get_by_text("Loading…")).to_have_count(0)
        await expect(page.page.get_by_text("in 30 days")).to_have_count(0)


async def test_a_refusal_is_in_the_language_of_the_page(visited: Visited, browser: Browser) -> None:
    """In English stands behind it what exactly is wrong."""
    visited.edit(CREATE_LIST, name="Taken already", public=True)
    page = await opened(visited, browser, "editor", "#/words", locale="de-DE")
    await page.page.locator("#new-list-name").fill("Taken already")
    await page.page.locator("#new-list-name").press("Enter")
    refusal = re.compile(r"^Das geht gerade nicht\. .*already a public list")
    await expect(page.page.locator("#new-list-name-refused")).to_have_text(refusal)
    await expect(page.page.get_by_role("status")).to_have_text(refusal)


async def test_a_network_that_drops_in_a_saving_loses_nothing(visited: Visited, browser: Browser) -> None:
    """It is said, and once the network is back the saving goes on by itself; pressing again adds nothing twice."""
    list_id, page = await opened_list(visited, browser, "Dropped")
    await write_word(page, "Einmal")
    await page.page.context.set_offline(True)
    add = page.page.get_by_role("button", name="Add", exact=True)
    await add.click()
    await expect(page.page.get_by_role("status")).to_have_text(UNREACHABLE)
    await expect(page.page.locator("#new-word-term")).to_have_value("Einmal")
    await add.click()
    await page.page.context.set_offline(False)
    await expect(page.page.get_by_role("status")).to_have_text("Einmal was added.")
    await write_word(page, "Zweimal")
    await page.page.locator("#new-word-term").press("Enter")
    await expect(page.page.get_by_role("status")).to_have_text("Zweimal was added.")
    assert terms(visited, list_id) == ["Einmal", "Zweimal"]


async def test_a_job_is_watched_to_its_end_although_the_session_ended(visited: Visited, browser: Browser) -> None:
    """A visitor is told of no job: the page asks for a sign-in, and says so if the job is hidden from them as well."""
    page = await opened(visited, browser, "moderator", "#/members")
    await choose_new_member(visited, page, "watched")
    take_back = page.page.get_by_role("button", name="Take back", exact=True)
    await press_without_session(page, take_back, '"variables":{"id":', JOB_GONE, back=False)
    await press_without_session(page, take_back, '"variables":{"id":', "was taken back", back=True)


async def test_roles_are_set_as_they_were_ticked_although_the_session_ended(visited: Visited, browser: Browser) -> None:
    """A visitor is told of no roles, which are not those that somebody else has taken away meanwhile."""
    page = await opened(visited, browser, "admin", "#/members")
    await choose_new_member(visited, page, "ticked-late")
    moderator = page.page.get_by_label("moderator", exact=True)
    await moderator.check()
    set_roles = page.page.get_by_role("button", name="Set roles")
    await press_without_session(page, set_roles, '"variables":{"user":', GONE, back=False)
    await expect(moderator).to_be_checked()
    async with page.page.expect_request(lambda one: '"roles":["moderator"]' in (one.post_data or "")):
        await press_without_session(page, set_roles, '"variables":{"user":', "", back=True)


async def test_messages_to_a_webhook_are_not_missing_although_the_session_ended(
    visited: Visited, browser: Browser
) -> None:
    """Nor is a list that stays empty for the role that was taken away."""
    url = "https://late.example.com/"
    visited.edit(ADD_WEBHOOK, by="boss", role="admin", url=url, kinds=["suspects.sought"])
    page = await opened(visited, browser, "admin", "#/webhooks")
    webhook = page.page.get_by_role("button", name=url, exact=True)
    await press_without_session(page, webhook, '"variables":{"webhook":', GONE, back=False)
    await press_without_session(page, webhook, '"variables":{"webhook":', "", back=True)
    await expect(page.page.get_by_text("It has been told nothing yet.")).to_be_visible()


async def choose_new_member(visited: Visited, page: BrowserPage, user: str) -> None:
    visited.edit(UPDATE_PROFILE, by=user, role="member", name=f"Member {user}")
    await (await searched(page.page, f"Member {user}")).click()


async def press_without_session(page: BrowserPage, button: Locator, text: str, said: str, *, back: bool) -> None:
    """Requests with this text are a visitor's until the dialog goes on, and afterwards, too, unless they are back."""
    ended = True

    async def send(route: Route) -> None:
        headers = route.request.headers
        if ended and text in (route.request.post_data or ""):
            headers = {name: value for name, value in headers.items() if name != "authorization"}
        await route.continue_(headers=headers)

    await page.page.route(REQUESTS, send)  # it stays: when a page's last route goes, requests may be lost
    await button.click()
    await expect(page.page.get_by_role("heading", name="Please sign in again")).to_be_visible()
    ended = not back
    await page.page.get_by_role("button", name="Go on").click()
    await expect(page.page.get_by_role("status")).to_contain_text(said)


async def test_impatience_adds_nothing_twice(visited: Visited, browser: Browser) -> None:
    """The matches of a card, and a word that is added again, while the network is away."""
    page = await opened(visited, browser, "editor", "#/events")
    await create_event(page.page, "Impatient night", "2031-05-01T19:00")
    await expect(page.page.get_by_role("heading", name="Impatient night")).to_be_visible()
    await page.page.locator("#card-matches").fill("Ada v Bo\nCy v Dee")
    await press_twice_offline(page, "Add")
    await expect(page.page.locator("li.match")).to_have_count(2)
    await page.page.locator("#card-matches").fill("Eve v Flo")
    await page.page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.page.locator("li.match")).to_have_count(3)

    list_id, page = await opened_list(visited, browser, "Impatient")
    await write_word(page, "Wort")
    await page.page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.page.get_by_role("status")).to_have_text("Wort was added.")  # by then the days above it are read
    await page.page.get_by_role("button", name="Remove Wort", exact=True).click()
    await press_twice_offline(page, "Add it again")
    await expect(page.page.get_by_role("status")).to_have_text("Wort was added.")
    assert terms(visited, list_id) == ["Wort"]


async def press_twice_offline(page: BrowserPage, name: str) -> None:
    """While the network is away, which it is told of; then the network is back."""
    button = page.page.get_by_role("button", name=name, exact=True)
    await button.wait_for()  # what leads to it has been answered
    await page.page.context.set_offline(True)
    await button.click()
    await expect(page.page.get_by_role("status")).to_have_text(UNREACHABLE)
    if await button.count():
        await button.click()
    await page.page.context.set_offline(False)


async def test_a_saving_whose_answer_is_lost_counts_once(visited: Visited, browser: Browser) -> None:
    list_id, page = await opened_list(visited, browser, "Lost answer")
    lost: list[APIResponse] = []

    async def lose(route: Route) -> None:
        if lost or "Verloren" not in (route.request.post_data or ""):
            await route.fallback()
            return
        lost.append(await route.fetch())
        await route.abort()

    await page.page.route(REQUESTS, lose)
    await write_word(page, "Verloren")
    await page.page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.page.get_by_role("status")).to_have_text("Verloren was added.")
    assert (len(lost), terms(visited, list_id)) == (1, ["Verloren"])


async def test_what_is_typed_while_a_saving_is_on_its_way_is_not_taken_for_saved(
    visited: Visited, browser: Browser
) -> None:
    """The letters that came after it stay, and are saved with the next press; so are those of the next word."""
    _, page = await opened_list(visited, browser, "Typed on")
    name = page.page.locator("#list-name")
    await name.fill("Typed on 1")
    await page.page.context.set_offline(True)
    await page.page.get_by_role("button", name="Save").click()
    await expect(page.page.get_by_role("status")).to_have_text(UNREACHABLE)
    await name.fill("Typed on 12")
    await page.page.context.set_offline(False)
    await expect(page.page.get_by_role("status")).to_have_text("Saved.")
    await expect(page.page.get_by_role("heading", name="Typed on 1", exact=True)).to_be_visible()
    await expect(name).to_have_value("Typed on 12")
    await page.page.get_by_role("button", name="Save").click()
    await expect(page.page.get_by_role("heading", name="Typed on 12", exact=True)).to_be_visible()
    await expect(page.page.get_by_role("button", name="Typed on 12", exact=True)).to_be_visible()  # all is read again
    await write_word(page, "Eins")
    await page.page.context.set_offline(True)
    await page.page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.page.get_by_role("status")).to_have_text(UNREACHABLE)
    await page.page.locator("#new-word-term").fill("Zwei")
    await page.page.context.set_offline(False)
    await expect(page.page.get_by_role("status")).to_have_text("Eins was added.")
    await expect(page.page.locator("#new-word-term")).to_have_value("Zwei")
    await expect(page.page.locator("#new-word-definition")).to_have_value("")


async def test_matches_that_are_typed_while_others_are_added_stay(visited: Visited, browser: Browser) -> None:
    """And only they: what was added is taken out of the lines, so that it cannot be added again."""
    page = await opened(visited, browser, "editor", "#/events")
    answers, held = asyncio.Event(), list[str]()

    async def hold(route: Route) -> None:
        held.append(route.request.post_data or "")
        await answers.wait()
        await route.fallback()

    lines = page.page.locator("#card-matches")
    await create_event(page.page, "Typed on the card", "2031-05-01T19:00")
    await expect(page.page.get_by_role("heading", name="Typed on the card")).to_be_visible()
    await lines.fill("Ada v Bo")
    await expect(page.page.get_by_role("status")).to_contain_text("Typed on the card")
    await expect(lines).to_have_value("Ada v Bo")
    await page.page.route(REQUESTS, hold)
    await page.page.get_by_role("button", name="Add", exact=True).click()
    await until(lambda: held, "the match is on its way")
    await lines.fill("Ada v Bo\nCy v Dee")
    answers.set()
    await expect(page.page.locator("li.match")).to_have_count(1)
    await expect(lines).to_have_value("Cy v Dee")
    await page.page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.page.locator("li.match")).to_have_count(2)
    await expect(lines).to_have_value("")


async def test_matches_that_are_typed_for_one_event_are_added_to_no_other(visited: Visited, browser: Browser) -> None:
    """They wait with their own card, also while another event is made."""
    starts = iso(utc_now() + timedelta(days=20))
    for name in ("Typed lines", "Lines elsewhere"):
        visited.edit(CREATE_EVENT, name=name, season="2026", startsAt=starts)
    page = await opened(visited, browser, "editor", "#/events")
    lines, description = page.page.locator("#card-matches"), page.page.locator("#event-description")
    await page.page.get_by_role("button", name="Typed lines").click()
    await lines.fill("Ada v Bo")
    await description.fill("A night of lines.")
    await page.page.get_by_role("button", name="Lines elsewhere").click()
    await expect(page.page.get_by_role("heading", name="Lines elsewhere")).to_be_focused()
    await expect(lines).to_have_value("")
    await expect(description).to_have_value("")
    await create_event(page.page, "Made night", "2031-05-01T19:00")
    await expect(page.page.get_by_role("status")).to_contain_text("Made night")
    await page.page.get_by_role("button", name="Typed lines").click()
    await expect(lines).to_have_value("Ada v Bo")
    await expect(description).to_have_value("A night of lines.")


async def test_what_is_typed_about_one_entry_stays_while_another_is_looked_at(
    visited: Visited, browser: Browser
) -> None:
    """With its own board, list or member; also if the button of what is shown is pressed again."""
    for name in ("Kept one", "Kept two"):
        visited.edit(CREATE_BOARD, slug=name.lower().replace(" ", "-"), title=name)
        visited.edit(CREATE_LIST, name=name, public=True)
    page = (await opened(visited, browser, "admin", "#/boards")).page
    kept, other = (page.get_by_role("button", name=name) for name in ("Kept one", "Kept two"))
    members = (page.locator("#member-0"), page.locator("#member-1"))
    for area, (one, two), fields in (
        ("Boards", (kept, other), ("#board-title", "#contender-name")),
        ("Words", (kept, other), ("#list-name", "#new-word-term")),
        ("Members", members, ("#suspend-reason",)),
    ):
        await page.get_by_role("link", name=area).click()
        await one.click()
        for field in fields:
            await page.locator(field).fill("Typed")
        for button, shown in ((one, "Typed"), (two, re.compile("^(?!Typed)")), (one, "Typed")):
            await button.click()
            await expect(button).to_have_attribute("aria-pressed", "true")
            await expect(page.locator("h2[tabindex='-1']:focus")).to_be_visible()
            for field in fields:
                await expect(page.locator(field)).to_have_value(shown)


@pytest.mark.parametrize(("kind", "typed"), [("board", "title"), ("event", "name")])
async def test_what_was_chosen_last_is_shown(visited: Visited, browser: Browser, kind: str, typed: str) -> None:
    """Although the answer for what was chosen before comes last, which also leaves the focus where it is."""
    starts = iso(utc_now() + timedelta(days=20))
    asked = []
    for name in ("slow", "quick"):
        if kind == "board":
            visited.edit(CREATE_BOARD, slug=f"{name}-answer", title=f"{name} board")
            asked.append(f"{name}-answer")
        else:
            event = visited.edit(CREATE_EVENT, name=f"{name} event", season="2026", startsAt=starts)
            asked.append(event["event"]["id"])
    page = await opened(visited, browser, "editor", f"#/{kind}s")
    async with answered_last(page.page, asked[0]):
        await page.page.get_by_role("button", name=f"slow {kind}").first.click()
        await page.page.get_by_role("button", name=f"quick {kind}").first.click()
        await expect(page.page.get_by_role("heading", name=f"quick {kind}")).to_be_focused()
        await page.page.locator(f"#{kind}-{typed}").focus()
    await expect(page.page.get_by_role("heading", name=f"quick {kind}")).to_be_visible()
    await expect(page.page.locator(f"#{kind}-{typed}")).to_be_focused()


async def test_the_members_that_were_searched_last_are_listed(visited: Visited, browser: Browser) -> None:
    """Although the answer to an earlier search comes last."""
    page = await opened(visited, browser, "moderator", "#/members")
    search = page.page.get_by_label("Name, id or address")
    async with answered_last(page.page, '"search":"Ada"'):
        for name in ("Ada", "Bo"):
            await search.fill(name)
            await search.press("Enter")
        await expect(page.page.get_by_role("button", name="Bo Abara")).to_be_visible()
        await expect(page.page.get_by_role("button", name="Ada Abara")).to_have_count(0)
    await expect(page.page.get_by_role("button", name="Ada Abara")).to_have_count(0)


async def test_a_search_for_members_that_is_refused_is_not_said_to_have_found_any(
    visited: Visited, browser: Browser
) -> None:
    """As one for a pasted text. Those that were listed before are not what it found."""
    page = await opened(visited, browser, "moderator", "#/members")
    await expect(page.page.get_by_role("button", name="More")).to_be_visible()
    await page.page.get_by_label("Name, id or address").fill("Ada " * 100)
    await page.page.keyboard.press("Enter")
    await expect(page.page.get_by_role("status")).to_contain_text("A search has at most 254 characters.")


async def test_all_members_are_listed_when_the_area_is_opened_again(visited: Visited, browser: Browser) -> None:
    """As its empty field for a name says: those of an earlier search would be taken for all."""
    page = await opened(visited, browser, "moderator", "#/members")
    members, search = page.page.locator("ringside-admin li button"), page.page.get_by_label("Name, id or address")
    await search.fill("Bo Abara")
    await search.press("Enter")
    await expect(members).to_have_count(1)
    await page.page.get_by_role("link", name="Journal").click()
    await expect(page.page.get_by_role("heading", name="Journal")).to_be_visible()
    await page.page.go_back()
    await expect(search).to_have_value("")
    await expect(members).to_have_count(100)
    await search.fill("Bo Abara")
    await search.press("Enter")
    await expect(members).to_have_count(1)
    await page.page.get_by_role("link", name="Members").click()
    await expect(members).to_have_count(100)
    await expect(search).to_have_value("")


async def test_the_file_of_a_member_is_fetched_from_nobody_else_s_place(visited: Visited, browser: Browser) -> None:
    """Although somebody else was chosen before it was ready: it would be taken for theirs."""
    page = await opened(visited, browser, "admin", "#/members")
    file = page.page.get_by_role("link", name="Fetch the file")

    async def choose(name: str) -> None:
        await (await searched(page.page, name)).click()
        await expect(page.page.get_by_role("heading", name=name)).to_be_focused()

    await choose("Ada Abara")
    async with answered_last(page.page, "idempotencyKey"):
        await page.page.get_by_role("button", name="Export everything stored").click()
        await choose("Bo Abara")
    await expect(page.page.get_by_role("status")).to_have_text("The file of Ada Abara is ready.")
    await expect(file).to_have_count(0)
    await choose("Ada Abara")
    await expect(file).to_be_visible()


@pytest.mark.parametrize("contenders", [600, pytest.param(3_000, marks=pytest.mark.soak)])
async def test_a_board_of_many_contenders_is_shown_a_page_at_a_time(
    visited: Visited, browser: Browser, contenders: int
) -> None:
    """Each press asks once and adds no more nodes than the first page has; the focus is on the first new contender."""
    slug = f"crowd-{contenders}"
    visited.edit(CREATE_BOARD, slug=slug, title=f"A crowd of {contenders}")
    text = "\n".join(["name", *(f"Fan {number:04}" for number in range(contenders))])
    add = "mutation ($input: ImportContendersInput!) { importContenders(input: $input) { ... on Refused { code } } }"
    visited.edit(add, board=slug, text=text)
    count = f'{{ board(slug: "{slug}") {{ contenderCount }} }}'
    await until(lambda: ask(visited, count)["board"]["contenderCount"] == contenders, "all are there", pause=0.2)
    page = await opened(visited, browser, "editor", "#/boards")
    await page.page.get_by_role("button", name=f"A crowd of {contenders}").click()
    await expect(page.page.get_by_role("row")).to_have_count(101)
    nodes = first = await page.page.evaluate(NODES)
    for pages in range(2, 5):
        page.requests.clear()
        await page.page.get_by_role("button", name="More").focus()
        await page.page.keyboard.press("Enter")
        await expect(page.page.locator(f"#contender-{pages * 100 - 100}")).to_be_focused()
        now = await page.page.evaluate(NODES)
        assert (len(page.requests), now - nodes <= first) == (1, True)
        nodes = now
    retired = page.page.get_by_role("row").nth(250)
    await retired.get_by_role("button", name="Retire").click()
    await expect(retired.get_by_role("button", name="Bring back")).to_be_visible()
    await expect(page.page.get_by_role("row")).to_have_count(401)
