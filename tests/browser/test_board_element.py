"""`<ringside-board>` on another site's page: voting, the leaderboard, hours, and what can go wrong."""

import asyncio
import re
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Route, expect

from datastore.dynamo import iso
from resolvers.requests.context import utc_now
from tests.browser.admin import ask
from tests.browser.pages import BrowserPage, held_back
from tests.browser.sites import SIGN_OUT_HERE, Visited
from tests.queries import ADD_CONTENDER, CREATE_BOARD, RETIRE_CONTENDER, SUSPEND, mutation
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

# A page of this test has elements only, without landmarks or a heading of its own.
OF_WHOLE_PAGES = ("region", "page-has-heading-one", "landmark-one-main")
BOARD = '<ringside-board board="%s"></ringside-board>'
HOSTILE = "<img src=x onerror=alert(1)>\n</p><script>alert(2)</script> \"quoted\" & 'so'"
PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9"/></svg>'


PLACES = """['h2', '.pair', '.verdicts', 'progress', 'table'].map((name) => {
  const shown = document.querySelector('ringside-board').shadowRoot.querySelector(name);
  const { top, left, width } = shown.getBoundingClientRect();
  return [top, left, width].map(Math.round);
})"""

SECOND_CLICK = """() => {
  const shown = document.querySelector('ringside-board').shadowRoot;
  window.clicks = 0;
  new MutationObserver((_, observer) => {
    observer.disconnect();
    window.clicks += 1;
    shown.querySelector('button.corner').dispatchEvent(new MouseEvent('click', { detail: 2 }));
  }).observe(shown.querySelector('.progress span'), { characterData: true, subtree: true });
}"""
"""Click for the second time of a double click as soon as the next pair is shown."""


HEAR = """() => {
  const status = document.querySelector('ringside-board').shadowRoot.querySelector('[role=status]');
  window.heard = [];
  new MutationObserver(() => heard.push(status.textContent)).observe(status, { childList: true });
}"""
COUNT_LISTENERS = """() => {
  window.listeners = 0;
  for (const [name, change] of [['addEventListener', 1], ['removeEventListener', -1]]) {
    const changed = window[name].bind(window);
    window[name] = (type, ...more) => {
      if (type === 'online') window.listeners += change;
      changed(type, ...more);
    };
  }
}"""
"""How many more wait for a connection than before."""
SPOIL_VISIT = """() => {
  const [[key, stored]] = Object.entries(localStorage);
  localStorage[key] = JSON.stringify({ visit: { ...JSON.parse(stored).visit, token: 'altered' } });
}"""
GO_ON_AND_OUT = """async ([address, visit]) => {
  const { ask, session } = await import(address);
  await ask('mutation($visit: String!) { continueVisit(input: { visit: $visit }) { __typename } }', { visit });
  session.use(null);
}"""
"""A member goes on with a visit, and signs out."""


def corners(page: BrowserPage) -> Locator:
    return page.page.locator("ringside-board button.corner")


def note(page: BrowserPage) -> Locator:
    return page.page.locator("ringside-board .note")


DRAW = mutation("drawMatchup", "Ballot", "token left { name }")
CAST = mutation("castVote", "VoteCast", "winner { name }")
COUNTS = '{ leaderboard(board: "plot", first: 2) { nodes { wins losses } } }'
STRENGTHS = '{ leaderboard(board: "plot", first: 2) { nodes { strength { value low high } } } }'


def progress(page: BrowserPage) -> Locator:
    return page.page.locator("ringside-board .progress span")


async def voted(page: BrowserPage) -> str:
    """The name of the left contender, who was voted for."""
    await expect(corners(page).first).to_be_enabled()
    name = await corners(page).first.locator(".name").inner_text()
    await corners(page).first.click()
    await expect(note(page)).to_have_text(f"A vote for {name}.")
    return name


async def board(
    visited: Visited, slug: str, *names: str, title: str = "Who wins?", svg: str | None = None, **more: Any
) -> None:
    visited.edit(CREATE_BOARD, slug=slug, title=title, **more)
    for name in names:
        visited.edit(ADD_CONTENDER, board=slug, name=name, svg=svg)


async def test_a_vote_is_one_request_and_shows_in_the_leaderboard(visited: Visited, browser: Browser) -> None:
    """The next pair comes with the answer; the winner's row shows one more win without a reload; nothing jumps."""
    async with visited.page(browser, BOARD % "main") as page:
        await expect(page.page.locator("ringside-board .live")).to_have_text("live")
        await expect(corners(page).first).to_be_enabled()
        name = await corners(page).first.locator(".name").inner_text()
        await page.page.get_by_role("button", name="Show 24 contenders").click()
        row = page.page.locator("ringside-board tbody tr").filter(has=page.page.get_by_text(name, exact=True))
        wins = int((await row.locator("td").nth(2).inner_text()).split()[0])
        page.requests.clear()
        before = await page.page.evaluate(PLACES)
        await voted(page)
        await expect(row.locator("td").nth(2)).to_contain_text(f"{wins + 1} –")
        await expect(progress(page)).to_have_text("Pairs seen: 1 of 276")
        assert len([url for url in page.requests if url.endswith("/graphql")]) == 1
        assert await page.page.evaluate(PLACES) == before
        assert page.errors == []


async def test_a_double_click_votes_once(visited: Visited, browser: Browser) -> None:
    """Its second click meets the next pair, which nobody has seen yet."""
    await board(visited, "double", "Ann", "Ben", "Cid")
    async with visited.page(browser, BOARD % "double") as page:
        await expect(corners(page).first).to_be_enabled()
        await page.page.evaluate(SECOND_CLICK)
        await voted(page)
        await expect(progress(page)).to_have_text("Pairs seen: 1 of 3")
        assert await page.page.evaluate("window.clicks") == 1
        await voted(page)
        await expect(progress(page)).to_have_text("Pairs seen: 2 of 3")


async def test_a_leaderboard_shows_as_many_contenders_as_its_button_says(visited: Visited, browser: Browser) -> None:
    """Of a board with more than a hundred, a hundred: it does not promise all."""
    visited.edit(CREATE_BOARD, slug="long", title="Which of many?")
    with visited.client("editor", "editor") as client:
        for number in range(103):
            given = {"board": "long", "name": f"Number {number}"}
            client.post("/graphql", json={"query": ADD_CONTENDER, "variables": {"input": given}}).raise_for_status()
    async with visited.page(browser, BOARD % "long") as page:
        await page.page.get_by_role("button", name="contenders").click()
        rows = page.page.locator("ringside-board tbody tr")
        await expect(rows).to_have_count(100)
        await expect(rows.nth(10)).to_be_focused()
    async with visited.page(browser, BOARD % "long") as page:
        await expect(page.page.get_by_role("button", name="Show 100 contenders")).to_be_visible()


async def test_who_comes_up_has_a_picture_as_the_others(visited: Visited, browser: Browser) -> None:
    """Of a contender who was not among those that are shown, the page has none at first."""
    names = [f"Mask {letter}" for letter in "ABCDEFGHIJK"]
    await board(visited, "pictured", *names, svg=PICTURE)
    async with visited.page(browser, BOARD % "pictured") as page:
        rows = page.page.locator("ringside-board tbody tr")
        await expect(rows.locator("img")).to_have_count(10)
        await expect(page.page.locator("ringside-board .live")).to_have_text("live")
        shown = await rows.locator("td.who").all_inner_texts()
        [last] = {*names} - {*shown}
        rows_now = ask(visited, '{ leaderboard(board: "pictured", first: 1) { nodes { contender { id } } } }')
        visited.edit(RETIRE_CONTENDER, contender=rows_now["leaderboard"]["nodes"][0]["contender"]["id"])
        await expect(rows.filter(has_text=last)).to_have_count(1)
        await expect(rows.locator("img")).to_have_count(10)


async def test_the_plot_tells_each_strength_with_its_interval(visited: Visited, browser: Browser) -> None:
    """As the service has them, to two digits; on a phone, too."""
    await board(visited, "plot", "Ann", "Ben")
    for user in ("ada-abara", "bo-abara"):
        ballot = visited.edit(DRAW, by=user, role="member", board="plot")
        verdict = "LEFT" if ballot["left"]["name"] == "Ann" else "RIGHT"
        visited.edit(CAST, by=user, role="member", token=ballot["token"], verdict=verdict)
    with visited.client("ada-abara") as client:

        def rows(query: str) -> list[dict[str, Any]]:
            return list(client.post("/graphql", json={"query": query}).json()["data"]["leaderboard"]["nodes"])

        def strengths() -> list[dict[str, float]]:
            found = [row["strength"] for row in rows(STRENGTHS)]
            return found if all(found) else []

        # Strengths are asked for then alone: those of before are shown while new ones take long.
        await until(lambda: all({row["wins"], row["losses"]} == {0, 2} for row in rows(COUNTS)), "both votes count")
        found = await until(strengths, "there are strengths")
        labels = ["{value:.2f}, from {low:.2f} to {high:.2f}".format_map(each) for each in found]
    async with visited.page(browser, BOARD % "plot", viewport={"width": 390, "height": 844}) as page:
        plots = page.page.locator("ringside-board tbody .strength").get_by_role("img")
        for number, label in enumerate(labels):
            await expect(plots.nth(number)).to_have_attribute("aria-label", label)
            await expect(plots.nth(number)).to_be_visible()


async def test_the_first_paint_takes_one_request_before_the_ballot(visited: Visited, browser: Browser) -> None:
    """A GET by the document's id, without a header of its own; then the visit and the pair in one answer."""
    async with visited.page(browser, BOARD % "main") as page:
        await expect(corners(page).first).to_be_enabled()
        to_service = [url.removeprefix(visited.service.url) for url in page.requests if "/graphql" in url]
        assert len(to_service) == 2
        assert to_service[0].startswith("/graphql?documentId=")
        assert to_service[1] == "/graphql"
        assert await page.page.evaluate("JSON.parse(Object.values(localStorage)[0]).visit.token")


async def test_a_button_that_is_held_down_votes_once(visited: Visited, browser: Browser) -> None:
    """The next pair has not been seen yet."""
    async with visited.page(browser, BOARD % "main") as page:
        verdicts: list[str] = []
        page.page.on("request", lambda one: verdicts.extend(re.findall(r'"verdict":"(\w+)"', one.post_data or "")))
        await corners(page).first.focus()
        for _ in range(3):
            await expect(corners(page).first).to_be_enabled()
            await page.page.keyboard.down("Enter")
            await expect(progress(page)).not_to_contain_text("0 of")
        await expect(corners(page).first).to_be_enabled()
        await page.page.keyboard.up("Enter")
        await page.page.keyboard.press("ArrowDown")
        await expect(note(page)).to_have_text("Skipped.")
        assert verdicts == ["LEFT", "SKIP"]


async def test_arrow_keys_vote_only_inside_the_element(visited: Visited, browser: Browser) -> None:
    """On the rest of the page they scroll. Right, up and down are a win, a tie and a skip."""
    async with visited.page(browser, f"<button id=outside>Outside</button>{BOARD % 'main'}") as page:
        await expect(corners(page).nth(1)).to_be_enabled()
        await page.page.locator("#outside").focus()
        await page.page.keyboard.press("ArrowRight")
        await corners(page).nth(1).focus()
        for number, (key, message) in enumerate((("Right", "A vote for"), ("Up", "tie."), ("Down", "Skipped.")), 1):
            await page.page.keyboard.press(f"Arrow{key}")
            await expect(note(page)).to_contain_text(message)
            await expect(progress(page)).to_have_text(f"Pairs seen: {number} of 276")
            await expect(corners(page).nth(1)).to_be_focused()


async def test_the_left_arrow_key_votes_for_the_left_one_in_a_language_that_is_read_from_the_right(
    visited: Visited, browser: Browser
) -> None:
    """An Arabic page has the left contender on the left, too, so that a key means what its arrow shows."""
    async with visited.page(browser, BOARD % "main", language="ar") as page:
        await expect(page.page.get_by_text("276")).to_be_visible()
        places = [(await corner.bounding_box() or {"x": 0.0})["x"] for corner in await corners(page).all()]
        left = corners(page).nth(places.index(min(places)))
        name = await left.locator(".name").inner_text()
        await left.focus()
        await page.page.keyboard.press("ArrowLeft")
        await expect(note(page)).to_contain_text(name)


async def test_two_boards_and_a_moved_one_have_one_visitor(visited: Visited, browser: Browser) -> None:
    """Only one visit is started. An element that is moved keeps what it shows; one that is added again starts anew."""
    await board(visited, "second", "Ada", "Bea")
    async with visited.page(browser, f"<main></main>{BOARD % 'main'}{BOARD % 'second'}") as page:
        boards = page.page.locator("ringside-board")
        for number in range(2):
            await expect(boards.nth(number).locator("button.corner").first).to_be_enabled()
        started = await page.page.evaluate("JSON.parse(Object.values(localStorage)[0]).visit.token")
        await boards.first.locator("button.corner").first.click()
        await expect(boards.first.locator(".note")).to_contain_text("A vote for")
        await page.page.evaluate("document.querySelector('main').append(document.querySelector('ringside-board'))")
        moved = page.page.locator("main ringside-board")
        await expect(moved.locator(".note")).to_contain_text("A vote for")
        await page.page.evaluate("""() => {
          const board = document.querySelector('main ringside-board');
          board.remove();
          return new Promise((go) => setTimeout(() => { document.querySelector('main').append(board); go(); }, 50));
        }""")
        await expect(moved.locator(".progress span")).to_have_text("Pairs seen: 1 of 276")
        assert await page.page.evaluate("JSON.parse(Object.values(localStorage)[0]).visit.token") == started


async def test_several_boards_have_one_visitor_although_the_first_request_is_lost(
    visited: Visited, browser: Browser
) -> None:
    """A pair that was drawn for one visitor takes no vote of another."""
    begun: list[Route] = []

    async def lose_first(route: Route) -> None:
        if route.request.method == "POST" and "authorization" not in route.request.headers:
            begun.append(route)
        await (route.abort() if begun == [route] else route.continue_())

    for slug in ("beside", "below"):
        await board(visited, slug, "Ada", "Bea", "Cleo")
    async with visited.page(browser, "") as page:
        await page.page.route("**/graphql*", lose_first)
        await page.page.goto(visited.site.show("".join(BOARD % slug for slug in ("main", "beside", "below"))))
        for one in await page.page.locator("ringside-board").all():
            await expect(one.locator("button.corner").first).to_be_enabled()
        for one in await page.page.locator("ringside-board").all():
            await one.locator("button.corner").first.click()
            await expect(one.locator(".note")).to_contain_text("A vote for")
        assert len(begun) == 2


async def test_several_boards_of_a_page_of_the_service_have_one_visitor(visited: Visited, browser: Browser) -> None:
    """The first answer sets the cookie: a draw beside it would be another visitor's, and its pair take no vote.

    The first draw waits for the second one for a second, which is therefore sent beside it if it ever is.
    """
    for slug in ("hall", "yard"):
        await board(visited, slug, "Ada", "Bea", "Cleo")
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(f"{visited.service.url}/sign-in", wait_until="networkidle")
    await context.clear_cookies()  # what the page itself asked for has begun a visit
    draws, beside = list[Route](), asyncio.Event()

    async def hold(route: Route) -> None:
        if route.request.method == "POST":
            draws.append(route)
            if len(draws) == 1:
                with suppress(TimeoutError):
                    await asyncio.wait_for(beside.wait(), 1)
                beside.set()
            elif not beside.is_set():
                await context.clear_cookies()
                beside.set()
        await route.continue_()

    await page.route("**/graphql*", hold)
    await page.evaluate("""async () => {
      await import('/elements.js');
      for (const board of ['hall', 'yard']) {
        const element = document.createElement('ringside-board');
        element.setAttribute('board', board);
        document.body.append(element);
      }
    }""")
    for one in await page.locator("ringside-board").all():
        await expect(one.locator("button.corner").first).to_be_enabled()
    for one in await page.locator("ringside-board").all():
        await one.locator("button.corner").first.click()
        await expect(one.locator(".note")).to_contain_text("A vote for")
    await context.close()


async def test_texts_are_shown_as_texts_and_each_has_its_direction(visited: Visited, browser: Browser) -> None:
    """Markup stays text; an Arabic name reads from right to left; a link tells the other page nothing."""
    visited.edit(CREATE_BOARD, slug="texts", title="מי ינצח?")
    link = "https://example.com/ada?x=%22"
    visited.edit(ADD_CONTENDER, board="texts", name="مرحبا 123 (C++)", description=HOSTILE, link=link, svg=PICTURE)
    visited.edit(ADD_CONTENDER, board="texts", name="Ada 123", description="שלום.")
    async with visited.page(browser, BOARD % "texts") as page:
        await expect(corners(page).first).to_be_enabled()
        texts = "(all) => all.map((one) => [one.textContent, getComputedStyle(one).direction])"
        assert dict(await page.page.locator("ringside-board .name").evaluate_all(texts)) == {
            "مرحبا 123 (C++)": "rtl",
            "Ada 123": "ltr",
        }
        assert await page.page.locator("ringside-board .about *").count() == 0
        assert HOSTILE in await page.page.locator("ringside-board .about").all_text_contents()
        more = page.page.get_by_role("link", name="More about")
        assert await more.get_attribute("href") == link
        assert set((await more.get_attribute("rel") or "").split()) >= {"noopener", "noreferrer"}
        assert await page.too_small() == []
        assert page.errors == []


async def test_a_board_that_is_not_there_is_explained(visited: Visited, browser: Browser) -> None:
    """In words. Nothing is asked again that the service refuses as wrong."""
    async with visited.page(browser, BOARD % "no-such-board") as page:
        await expect(page.page.locator("ringside-board")).to_contain_text(
            "There is no vote called “no-such-board” here."
        )


async def test_a_service_that_cannot_be_reached_is_asked_again(visited: Visited, browser: Browser) -> None:
    """The element says so, once, and the vote counts once the service is back."""
    async with visited.page(browser, BOARD % "main") as page:
        await expect(corners(page).first).to_be_enabled()
        name = await corners(page).first.locator(".name").inner_text()
        await page.page.evaluate(HEAR)
        await page.page.evaluate(COUNT_LISTENERS)
        await page.page.context.set_offline(True)
        await corners(page).first.click()
        await expect(note(page)).to_have_text("The service cannot be reached. Trying again.")
        await until(lambda: str(page.errors).count("/graphql: ") > 2, "it was asked again twice")
        assert await page.page.evaluate("heard") == ["The service cannot be reached. Trying again."]
        assert await page.page.evaluate("listeners") <= 1
        await page.page.context.set_offline(False)
        await expect(note(page)).to_have_text(f"A vote for {name}.")
        await expect(progress(page)).to_have_text("Pairs seen: 1 of 276")


async def test_it_says_when_voting_opens_and_draws_then(visited: Visited, browser: Browser) -> None:
    """Also when it opens earlier than the page was told."""
    await board(visited, "opening", "Ada", "Bea", opensAt=iso(utc_now() + timedelta(days=1)))
    async with visited.page(browser, BOARD % "opening", settable_clock=True) as page:
        await expect(page.page.locator("ringside-board .notice")).to_contain_text("Voting opens on")
        await visited.change_hours("opening", "opensAt")
        await page.page.clock.fast_forward("01:01")
        await expect(corners(page).first).to_be_enabled()


async def test_results_that_are_hidden_appear_with_the_first_vote(visited: Visited, browser: Browser) -> None:
    """To the one who voted, and live from then on; after a reload too."""
    await board(visited, "hidden", "Ada", "Bea", "Cleo", resultsVisible="AFTER_VOTING")
    async with visited.page(browser, BOARD % "hidden") as page:
        await expect(page.page.locator("ringside-board")).to_contain_text("Vote first: then you see how it stands.")
        await voted(page)
        await expect(page.page.locator("ringside-board tbody tr")).to_have_count(3)
        await page.page.reload()
        await expect(page.page.locator("ringside-board tbody tr")).to_have_count(3)


PARTED = """(cells) => cells.flatMap(({ firstChild: text }) => {
    if (text?.nodeType !== Node.TEXT_NODE) return [];
    return [...text.data.matchAll(/\\S+/g)].filter((word) => {
        const range = new Range();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        return range.getClientRects().length > 1;
    }).map(([word]) => word);
})"""
"""The words that have parts in several lines."""
HEIGHTS = "(rows) => rows.map((row) => row.getBoundingClientRect().height)"


@pytest.mark.parametrize("width", [360, 390])
async def test_a_phone_shows_the_leaderboard_with_whole_words(visited: Visited, browser: Browser, width: int) -> None:
    """In a wide font, too. A row is as high as the one that waited in its place."""
    async with visited.page(browser, "<main></main>", viewport={"width": width, "height": 900}) as page:
        row = page.page.locator("ringside-board tbody tr")
        async with held_back(page.page, "documentId="):
            shown = f'<div style="font-family: sans-serif">{BOARD % "main"}</div>'
            await page.page.evaluate("(body) => document.querySelector('main').innerHTML = body", shown)
            await expect(row).to_have_count(10)
            [waiting, *_] = await row.evaluate_all(HEIGHTS)
        await expect(page.page.locator("ringside-board tbody tr:not(.wait)")).to_have_count(10)
        assert min(await row.evaluate_all(HEIGHTS)) == waiting
        texts = page.page.locator("ringside-board .who [dir=auto], ringside-board th")
        assert await texts.evaluate_all(PARTED) == []


async def test_all_of_a_long_leaderboard_can_be_shown_once_it_appears(visited: Visited, browser: Browser) -> None:
    """Also where the page began without results, and so without their number."""
    names = [f"Number {number}" for number in range(12)]
    await board(visited, "dozen", *names, resultsVisible="AFTER_VOTING")
    async with visited.page(browser, BOARD % "dozen") as page:
        await voted(page)
        await page.page.get_by_role("button", name="Show 12 contenders").click()
        await expect(page.page.locator("ringside-board tbody tr")).to_have_count(12)


async def test_results_that_are_hidden_appear_when_somebody_signs_in_who_has_voted(
    visited: Visited, browser: Browser
) -> None:
    """And disappear when they sign out."""
    await board(visited, "signed", "Ada", "Bea", "Cleo", resultsVisible="AFTER_VOTING")
    async with visited.page(browser, BOARD % "signed", member="ada-abara") as page:
        await voted(page)
    async with visited.page(browser, BOARD % "signed") as page:
        await expect(page.page.locator("ringside-board")).to_contain_text("Vote first: then you see how it stands.")
        await visited.sign_in(page, member="ada-abara")
        await expect(page.page.locator("ringside-board tbody tr")).to_have_count(3)
        await page.page.evaluate(SIGN_OUT_HERE, f"{visited.service.url}/elements.js")
        await expect(page.page.locator("ringside-board")).to_contain_text("Vote first: then you see how it stands.")
        await expect(page.page.locator("ringside-board tbody tr")).to_have_count(0)


async def test_a_members_board_asks_a_visitor_to_sign_in(visited: Visited, browser: Browser) -> None:
    """A member votes there."""
    await board(visited, "members", "Ada", "Bea", "Cleo", electorate="MEMBERS")
    async with visited.page(browser, BOARD % "members") as page:
        await expect(page.page.locator("ringside-board")).to_contain_text("This vote is for members.")
        await expect(page.page.get_by_role("button", name="Sign in")).to_be_visible()
    async with visited.page(browser, BOARD % "members", member="ada-abara") as page:
        await voted(page)


async def test_who_has_signed_out_of_a_board_for_everybody_is_asked_to_sign_in(
    visited: Visited, browser: Browser
) -> None:
    """What they voted as a visitor goes on as the member they became; the board is not for members alone."""
    await board(visited, "everybody", "Ada", "Bea", "Cleo")
    async with visited.page(browser, BOARD % "everybody") as page:
        await voted(page)
        visit = await page.page.evaluate("JSON.parse(Object.values(localStorage)[0]).visit.token")
        await visited.sign_in(page, member="eve-abara")
        await page.page.evaluate(GO_ON_AND_OUT, [f"{visited.service.url}/elements.js", visit])
        notice = page.page.locator("ringside-board .notice")
        await expect(notice).to_contain_text("Sign in to go on.")
        await expect(notice).not_to_contain_text("for members")
        await expect(notice.get_by_role("button", name="Sign in")).to_be_visible()


async def test_results_that_are_hidden_until_the_board_closes_appear_then(visited: Visited, browser: Browser) -> None:
    """To everybody, without a reload; until then also for those who have voted, and nothing says that it is live."""
    closes = utc_now() + timedelta(hours=1)
    await board(visited, "closing", "Ada", "Bea", "Cleo", resultsVisible="AFTER_CLOSE", closesAt=iso(closes))
    async with visited.page(browser, BOARD % "closing", settable_clock=True) as page:
        element = page.page.locator("ringside-board")
        await voted(page)
        await expect(element).to_contain_text("The result is shown when voting has ended.")
        await expect(element.locator("tbody tr")).to_have_count(0)
        await expect(element.locator(".live")).to_have_count(0)
        assert await page.barriers(*OF_WHOLE_PAGES) == []
        assert len([url for url in page.requests if "/graphql" in url]) == 3  # the board, the pair, the vote
        await visited.change_hours("closing", "closesAt")
        await page.page.clock.fast_forward("01:00:01")
        await expect(element).to_contain_text("Voting ended on")
        await expect(element.locator("tbody tr")).to_have_count(3)
        assert await page.barriers(*OF_WHOLE_PAGES) == []


async def test_results_appear_as_soon_as_they_arrive(visited: Visited, browser: Browser) -> None:
    """The board closes at another moment than the page knows, and nobody has voted on it."""
    closes = iso(utc_now() + timedelta(days=1))
    await board(visited, "moved", "Ada", "Bea", "Cleo", resultsVisible="AFTER_CLOSE", closesAt=closes)
    async with visited.page(browser, BOARD % "moved") as page:
        element = page.page.locator("ringside-board")
        await expect(element).to_contain_text("The result is shown when voting has ended.")
        await expect(corners(page).first).to_be_enabled()
        await visited.change_hours("moved", "closesAt")
        await expect(element.locator("tbody tr")).to_have_count(3)
        await expect(element.locator(".live")).to_have_text("live")


async def test_a_board_for_those_who_were_members_before_it_says_so(visited: Visited, browser: Browser) -> None:
    """To a visitor, with a way to sign in; to a member who joined later; one who joined before votes.

    Who joined before and may not vote because they are suspended is told that.
    """
    with visited.client("early") as client:
        early = client.post("/graphql", json={"query": "{ viewer { id } }"}).json()["data"]["viewer"]["id"]
    await board(visited, "since", "Ada", "Bea", "Cleo", electorate="MEMBERS", membersSince=iso(utc_now()))
    for member in (None, "late"):
        async with visited.page(browser, BOARD % "since", member=member) as page:
            element = page.page.locator("ringside-board")
            await expect(element).to_contain_text("This vote is for those who were members on")
            await expect(element.get_by_role("button", name="Sign in")).to_have_count(0 if member else 1)
            assert await page.barriers(*OF_WHOLE_PAGES) == []
    async with visited.page(browser, BOARD % "since", member="early") as page:
        await voted(page)
    visited.edit(SUSPEND, role="moderator", user=early, reason="A test")
    async with visited.page(browser, BOARD % "since", member="early") as page:
        await expect(page.page.locator("ringside-board .notice")).to_contain_text("You are suspended")


async def test_a_visit_that_is_no_longer_valid_is_started_anew(visited: Visited, browser: Browser) -> None:
    """Nobody has to reload: the pair that had been drawn is replaced by another.

    A visitor who returns with one never signed in, so nothing is said about a sign-in.
    """
    async with visited.page(browser, BOARD % "main") as page:
        await expect(corners(page).first).to_be_enabled()
        await page.page.evaluate(
            """async (address) => {
          const { session } = await import(address);
          session.visit.token = 'altered';
        }""",
            f"{visited.service.url}/elements.js",
        )
        await corners(page).first.click()
        await expect(note(page)).to_have_text("That pair had expired. Here is another one.")
        await expect(corners(page).first).to_be_enabled()
        await voted(page)
        await page.page.evaluate(SPOIL_VISIT)
        await page.page.reload()
        await expect(corners(page).first).to_be_enabled()
        await expect(note(page)).to_have_text("")
        await voted(page)
