"""Elements on pages that give them a hard time: policies, frames, styles, wrong clocks, full storage, odd values."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from playwright.async_api import Browser, Page, Route, expect

from datastore.dynamo import iso
from resolvers.requests.context import utc_now
from tests.browser.pages import RECORD_SHIFTS, BrowserPage
from tests.browser.sites import Visited
from tests.command import ROOT
from tests.queries import (
    ADD_CONTENDER,
    ADD_WORDS,
    CREATE_BOARD,
    CREATE_EVENT,
    CREATE_LIST,
    MODERATE_COMMENT,
    POST_COMMENT,
)
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAMES = ("sign-in", "board", "event", "standings", "word", "comments")
OF = {"comments": " product=ringside-tee", "standings": " season=2026"}  # other tests make later seasons
EVERYTHING = "".join(f"<ringside-{name}{OF.get(name, '')}></ringside-{name}>" for name in NAMES)
PACKAGES = ROOT / "tests" / "node" / "node_modules"
FRAMEWORKS = (PACKAGES / "bootstrap" / "dist" / "css" / "bootstrap.css", PACKAGES / "bulma" / "css" / "bulma.css")
STRICT = (
    "default-src 'none'; script-src {api}; connect-src {api} {socket}; img-src data:; base-uri 'none'; "
    "form-action 'none'; require-trusted-types-for 'script'"
)
RED = "rgb(255, 0, 0)"
LOOKS = """() => {
  const hosts = [...document.querySelectorAll('#held *')];
  const inside = hosts.flatMap(({ shadowRoot }) => [...shadowRoot.querySelectorAll('*')]);
  return inside.map((one) => {
    const style = getComputedStyle(one);
    const names = [...style].filter((name) => !name.startsWith('--'));
    return names.map((name) => `${one.localName}.${one.className} ${name}: ${style.getPropertyValue(name)}`);
  });
}"""


async def shown(page: BrowserPage, *names: str) -> None:
    """Wait until elements have what they asked for."""
    marks = {
        "board": "button.corner:not([aria-disabled])", "event": "fieldset", "standings": "tbody td:nth-child(4)",
        "word": ".term", "comments": "article", "sign-in": "button",
    }  # fmt: skip
    for name in names or NAMES:
        await expect(page.page.locator(f"ringside-{name}").locator(marks[name]).first).to_be_visible()


@asynccontextmanager
async def under(visited: Visited, browser: Browser, body: str, policy: str) -> AsyncIterator[BrowserPage]:
    """A page whose content security policy is this one."""
    async with visited.page(browser, "") as page:
        await page.page.goto(visited.site.show(body, content_security_policy=policy))
        yield page


async def test_a_strict_policy_that_names_the_service_is_enough(visited: Visited, browser: Browser) -> None:
    """Nothing inline, nothing from elsewhere, trusted types: every element works, and nothing was blocked."""
    api = visited.service.url
    policy = STRICT.format(api=api, socket=api.replace("http", "ws"))
    async with under(visited, browser, EVERYTHING, policy=policy) as page:
        await shown(page)
        await page.page.locator("ringside-board button.corner").first.click()
        await expect(page.page.locator("ringside-board .progress span")).to_have_text("Pairs seen: 1 of 276")
        await expect(page.page.locator("ringside-board .live")).to_have_text("live")
        assert await page.violations() == []
        assert page.errors == []


async def test_without_connect_src_the_element_says_that_it_cannot_reach_the_service(
    visited: Visited, browser: Browser
) -> None:
    """The browser's console names the directive."""
    api = visited.service.url
    policy = f"default-src 'none'; script-src {api}"
    async with under(visited, browser, EVERYTHING, policy=policy) as page:
        for name in ("board", "event", "word"):
            note = page.page.locator(f"ringside-{name} .note")
            await expect(note).to_have_text("The service cannot be reached. Trying again.")
        assert any("connect-src" in error for error in page.errors)


async def test_without_script_src_the_page_shows_what_stands_between_the_tags(
    visited: Visited, browser: Browser
) -> None:
    body = "<ringside-board>Vote on our other page.</ringside-board>"
    async with under(visited, browser, body, policy="default-src 'none'") as page:
        await expect(page.page.get_by_text("Vote on our other page.")).to_be_visible()
        assert any("script-src" in violated for violated in await page.violations())


async def test_a_sandboxed_frame_is_told_that_its_origin_is_not_listed(visited: Visited, browser: Browser) -> None:
    """Its origin is `null` and its storage closed. With `allow-same-origin` everything works."""
    inner = visited.site.show("<ringside-board></ringside-board>").removeprefix(visited.site.address)
    for sandbox, works in (("allow-scripts", False), ("allow-scripts allow-same-origin", True)):
        frame = f'<iframe sandbox="{sandbox}" src="{inner}" width="900" height="700"></iframe>'
        async with visited.page(browser, frame) as page:
            board = page.page.frame_locator("iframe").locator("ringside-board")
            if works:
                await expect(board.locator("button.corner").first).to_be_enabled()
            else:
                await expect(board.locator(".note")).to_have_text("The service cannot be reached. Trying again.")
                assert any("RINGSIDE_CORS_ORIGINS" in error for error in page.errors)


async def test_unknown_attributes_change_nothing(visited: Visited, browser: Browser) -> None:
    """Nor do those of HTML, or values that are empty."""
    odd = 'sort="best" onvote="x()" class="a" style="color: red" title="t" tabindex="0" data-id hidden-results'
    body = f'<ringside-board board {odd}></ringside-board><ringside-event event="" season {odd}></ringside-event>'
    async with visited.page(browser, body) as page:
        await shown(page, "board", "event")
        assert page.errors == []


async def test_ids_that_do_not_exist_are_explained_and_a_changed_attribute_begins_anew(
    visited: Visited, browser: Browser
) -> None:
    """However they are spelt."""
    wrong = ("no-such", "", "%00", "é" * 300, "&lt;script&gt;", "../../etc", "ＭＡＩＮ")
    attributes = {"board": "board", "event": "event", "standings": "season", "word": "list", "comments": "product"}
    for text in wrong:
        body = "".join(f'<ringside-{name} {of}="{text}"></ringside-{name}>' for name, of in attributes.items())
        body += f'<ringside-standings id="league" season="2026" league="{text}"></ringside-standings>'
        async with visited.page(browser, body) as page:
            for name in attributes:
                element = page.page.locator(f"ringside-{name}").first
                await expect(element.locator("p, h2, td").filter(has_text=re.compile(r"\w{3}")).first).to_be_visible()
                await expect(element.locator(".wait:visible")).to_have_count(0)
            await page.page.evaluate("document.querySelector('ringside-board').setAttribute('board', 'main')")
            await shown(page, "board")
            assert not [error for error in page.errors if "Error" in error]


@pytest.mark.parametrize("name", NAMES)
async def test_two_of_a_kind_work_beside_each_other_and_survive_moves(
    visited: Visited, browser: Browser, name: str
) -> None:
    """Moved, removed, added again, and made by a script."""
    one = re.search(f"<ringside-{name}.*?</ringside-{name}>", EVERYTHING)
    assert one
    async with visited.page(browser, f"<main></main>{one[0]}{one[0]}") as page:
        elements = page.page.locator(f"ringside-{name}")
        for number in range(2):
            await expect(elements.nth(number).locator("button, td").last).to_be_visible()
        # Then the other one keeps the socket open, also while it connects.
        await expect(page.page.locator(".wait:visible")).to_have_count(0)
        await page.page.evaluate(f"""async () => {{
          const one = document.querySelector('ringside-{name}'), main = document.querySelector('main');
          main.append(one);
          one.remove();
          for (let turn = 0; turn < 20; turn++) {{
            main.append(one);
            if (turn % 3) await new Promise((go) => setTimeout(go, turn));
            one.remove();
          }}
          main.append(one, one.cloneNode(), document.createElement('ringside-{name}'));
        }}""")
        await expect(elements).to_have_count(4)
        for number in range(3):  # the one without attributes may show a season in which nobody predicts
            await expect(elements.nth(number).locator("button, td, .notice").last).to_be_visible()
        await expect(page.page.locator(".wait:visible")).to_have_count(0)
        assert page.errors == []


async def test_attributes_that_change_while_an_element_loads_or_is_away_count(
    visited: Visited, browser: Browser
) -> None:
    """It never shows what the old ones asked for. Set again to what it is, an attribute begins nothing anew."""
    for product in ("before", "after"):
        given = {"product": product, "language": "en", "body": f"About {product}"}
        visited.edit(POST_COMMENT, by="ada-abara", role="member", **given)
    released = asyncio.Event()

    async def hold(route: Route) -> None:
        await released.wait()
        await route.continue_()

    async with visited.page(browser, "<main></main>", member="bo-abara") as page:
        await page.page.route("**/elements/comments.*", hold)
        async with page.page.expect_request("**/elements/comments.*"):
            await page.page.evaluate(
                "document.querySelector('main').innerHTML = '<ringside-comments product=before></ringside-comments>'"
            )
        await page.page.evaluate("document.querySelector('ringside-comments').setAttribute('product', 'after')")
        released.set()
        element = page.page.locator("ringside-comments")
        await expect(element.locator("article")).to_contain_text(["About after"])
        await element.get_by_role("button", name="Write a comment").click()
        await page.page.evaluate("document.querySelector('ringside-comments').setAttribute('product', 'after')")
        await expect(element.locator("textarea")).to_be_focused()
        await page.page.evaluate("""() => {
          const one = document.querySelector('ringside-comments');
          one.remove();
          one.setAttribute('product', 'before');
          document.querySelector('main').append(one);
        }""")
        await expect(element.locator("article")).to_contain_text(["About before"])


async def test_long_and_strange_texts_stay_in_their_places(visited: Visited, browser: Browser) -> None:
    """Words without spaces, combining marks, right-to-left, one letter: a phone does not scroll sideways."""
    visited.edit(CREATE_BOARD, slug="strange", title="W" * 100)
    zalgo = "Z\u0335\u0321\u0321\u0301\u0302" * 12
    for label in ("N" * 80, zalgo, "مرحبا بالعالم " * 4, "x", "👩👧" * 9):
        visited.edit(ADD_CONTENDER, board="strange", name=label[:80], description=label * 3)
    async with visited.page(
        browser, '<ringside-board board="strange"></ringside-board>', viewport={"width": 320, "height": 640}
    ) as page:
        await shown(page, "board")
        for _ in range(15):
            await page.page.locator("ringside-board button.corner").first.click()
            await expect(page.page.locator("ringside-board button.corner").first).to_be_enabled()
        assert await page.page.evaluate("document.documentElement.scrollWidth") == 320
        assert page.errors == []


@pytest.mark.parametrize("language", ["de", "es", "ar"])
async def test_standings_stay_within_a_sidebar(visited: Visited, browser: Browser, language: str) -> None:
    """Or within a small phone's page that has edges: the points, which are last, do not stick out."""
    body = '<div style="width: 260px"><ringside-standings season="2026"></ringside-standings></div>'
    async with visited.page(browser, body, language=language) as page:
        root = page.page.locator("ringside-standings .root")
        await expect(root.locator("tbody strong").nth(9)).to_be_visible()
        assert await root.evaluate("(root) => root.scrollWidth <= root.clientWidth")


IN_ORDER = """(paragraph, [first, then]) => {
  const walk = document.createTreeWalker(paragraph, NodeFilter.SHOW_TEXT);
  const left = (letters) => {
    walk.currentNode = paragraph;
    while (walk.nextNode()) {
      const place = walk.currentNode.data.search(letters);
      const range = document.createRange();
      if (place < 0) continue;
      range.setStart(walk.currentNode, place);
      range.setEnd(walk.currentNode, place + 1);
      return range.getBoundingClientRect().left;
    }
  };
  return left(first) < left(then) ? 'ltr' : 'rtl';
}"""
"""In which direction two letters follow each other on the screen."""


@pytest.mark.parametrize(
    ("language", "name", "end_of_name", "direction"), [("en", "كلمات", "ت", "ltr"), ("ar", "HSK 9", "9", "rtl")]
)
async def test_texts_of_both_directions_stand_in_the_order_in_which_they_are_read(
    visited: Visited, browser: Browser, language: str, name: str, end_of_name: str, direction: str
) -> None:
    """Each paragraph of a comment by itself, as it was typed, and its moderator's note; the date behind a list's name,
    and the place behind an event's date.
    """
    body = "Hello there, all!\nمرحبا يا عالم!"
    said = {"product": f"both-{language}", "language": "en", "body": body}
    comment = visited.edit(POST_COMMENT, by="ada-abara", role="member", **said)["comment"]["id"]
    reply = visited.edit(POST_COMMENT, by="ada-abara", role="member", **said, inReplyTo=comment)["comment"]["id"]
    rejected = {"comment": reply, "status": "REJECTED", "note": f"{name}!"}
    visited.edit(MODERATE_COMMENT, by="mo", role="moderator", **rejected)
    at = iso(utc_now() + timedelta(days=400))
    event = visited.edit(CREATE_EVENT, name=name, season="Both", startsAt=at, place=name)["event"]["id"]
    words = visited.edit(CREATE_LIST, name=name, public=True)["list"]["id"]
    visited.edit(ADD_WORDS, list=words, words=[{"term": "word", "definition": "meaning"}])
    comments = f'<ringside-comments product="both-{language}"></ringside-comments>'
    word = f'<ringside-word list="{words}"></ringside-word><ringside-event event="{event}"></ringside-event>'
    locale = {"en": "en-GB", "ar": "ar-AE"}[language]
    async with visited.page(browser, comments + word, language=language, locale=locale, member="ada-abara") as page:
        comment, of = page.page.locator("ringside-comments .body").first, page.page.locator("ringside-word .soft").first
        assert await comment.evaluate(IN_ORDER, ["l!", "!"]) == "ltr"
        assert await comment.evaluate(IN_ORDER, ["م!", "!$"]) == "rtl"
        assert await of.evaluate(IN_ORDER, [end_of_name, r"\d\d? \S+ \d{4}"]) == direction
        place, note = page.page.locator("ringside-event .soft").first, page.page.locator("ringside-comments .held")
        assert await place.evaluate(IN_ORDER, ["·", name[0]]) == direction
        assert await note.evaluate(IN_ORDER, [name[0], "!"]) != direction


@pytest.mark.parametrize(
    ("language", "text"),
    [("de_DE", "offen"), ("de-", "offen"), ("ES-es_tradnl", "Cierra en"), ("de-AT-1996", "offen"), ("xx_", "Locks in")],
)
async def test_a_page_s_language_is_understood_as_programs_write_it(
    visited: Visited, browser: Browser, language: str, text: str
) -> None:
    """As a locale, or with what no browser reads behind it; also around a shadow root that the element is in."""
    async with visited.page(browser, '<div id="held"></div>', language=language) as page:
        inside = "held.attachShadow({ mode: 'open' }).innerHTML = '<ringside-event></ringside-event>'"
        await page.page.evaluate(f"{inside}; document.body.append(document.createElement('ringside-event'))")
        for number in range(2):
            count = page.page.locator("ringside-event .count").nth(number)
            await expect(count).to_contain_text(text)
        assert page.errors == []


async def test_capitals_in_a_page_s_language_change_nothing(visited: Visited, browser: Browser) -> None:
    """Neither its direction nor the texts of what is loaded when somebody writes."""
    async with visited.page(browser, "<ringside-comments product=ringside-tee>", language="AR", member="bo") as page:
        await page.page.locator("ringside-comments button.primary").click()
        await expect(page.page.get_by_label("العنوان (اختياري)")).to_be_visible()
        await expect(page.page.locator("ringside-comments .root")).to_have_css("direction", "rtl")


async def test_the_nearest_language_counts_with_its_region_and_around_a_shadow_root(
    visited: Visited, browser: Browser
) -> None:
    """Not that of the page or of the reader's browser, which writes the day before the month."""
    body = '<p lang="en-US"><ringside-event></ringside-event></p><p lang="es"><span id="held"></span></p>'
    async with visited.page(browser, body) as page:
        await page.page.evaluate("held.attachShadow({ mode: 'open' }).innerHTML = '<ringside-event></ringside-event>'")
        times = page.page.locator("ringside-event time")
        await expect(times.first).to_have_text(re.compile(r"\w+ \d+, \d{4}"))
        await expect(times.last).to_have_text(re.compile(r"\d+ de \w+ de \d{4}"))


@pytest.mark.parametrize("hours", [-30, 9])
async def test_a_clock_that_is_wrong_by_hours_changes_no_countdown(
    visited: Visited, browser: Browser, hours: int
) -> None:
    """The service's clock counts: an event locks when it does, a quiz is handed in when it may be."""
    body = "<ringside-event></ringside-event><ringside-word></ringside-word><ringside-board></ringside-board>"
    async with visited.page(browser, body) as right:
        await shown(right, "event", "board")

        async def countdown(of: BrowserPage) -> str:
            return (await of.page.locator("ringside-event .count").inner_text())[:20]

        before = await countdown(right)
        when = datetime.now(UTC) + timedelta(hours=hours)
        async with visited.page(browser, "", member="bo-abara") as page:
            await page.page.clock.set_system_time(when)
            await page.page.goto(visited.site.show(body))
            await shown(page, "event", "board")
            counted = await countdown(page)
            assert counted in {before, await countdown(right)}  # an hour may have passed between two of them
            word = page.page.locator("ringside-word")
            await word.get_by_role("button", name="Take a quiz").click()
            for _ in range(5):
                await word.locator(".choices button").first.click()
            await expect(word.locator("#result")).to_be_visible()
            assert page.errors == []


NOTE_ANSWER = """const { json } = Response.prototype;
Response.prototype.json = async function () {
  const answer = await json.call(this);
  setTimeout(() => (globalThis.isAnswered = true)); // when the page has it, too
  return answer;
};"""


async def test_a_script_that_comes_late_makes_no_countdown_late(visited: Visited, browser: Browser) -> None:
    """The service's clock is that of its answer, which may have been there for a while."""
    given = {"name": "Late", "season": "Late", "startsAt": iso(utc_now() + timedelta(days=400))}
    event = visited.edit(CREATE_EVENT, **given)["event"]["id"]
    released = asyncio.Event()

    async def hold(route: Route) -> None:
        await released.wait()
        await route.continue_()

    async with visited.page(browser, "", settable_clock=True) as page:
        await page.page.add_init_script(NOTE_ANSWER)
        await page.page.route("**/elements/event.*.js", hold)
        await page.page.goto(visited.site.show(f'<ringside-event event="{event}"></ringside-event>'))
        await page.page.wait_for_function("globalThis.isAnswered")
        await page.page.clock.fast_forward("10:00:00")
        released.set()
        await expect(page.page.locator("ringside-event .count")).to_have_text("Locks in 399 days 13 hours")


BLOCKED_STORAGE = """Object.defineProperty(window, 'localStorage', {
  get() { throw new DOMException('The document is sandboxed', 'SecurityError'); } });"""
FULL_STORAGE = """try { for (let size = 2 ** 22, n = 0; size >= 1; n++) {
  try { localStorage.setItem(`full ${n}`, 'x'.repeat(size)); } catch { size /= 2; } } } catch {}"""


@pytest.mark.parametrize("storage", [BLOCKED_STORAGE, FULL_STORAGE], ids=["blocked", "full"])
async def test_storage_that_is_blocked_or_full_costs_only_what_it_would_keep(
    visited: Visited, browser: Browser, storage: str
) -> None:
    """A visitor votes on, as the same one until the page is closed."""
    async with visited.page(browser, "") as page:
        await page.page.add_init_script(storage)
        await page.page.goto(visited.site.show(EVERYTHING))
        await shown(page)
        for seen in (1, 2):
            await page.page.locator("ringside-board button.corner").first.click()
            await expect(page.page.locator("ringside-board .progress span")).to_have_text(f"Pairs seen: {seen} of 276")
        await page.page.locator("ringside-event input[type=radio]").first.check()
        await expect(page.page.locator("ringside-event .team.chosen").first).to_be_visible()
        assert page.errors == []


async def test_a_slow_service_is_waited_for(visited: Visited, browser: Browser) -> None:
    """What is known is shown, and the buttons wait."""
    async with visited.page(browser, "") as page:
        waiting: list[Route] = []
        released = asyncio.Event()

        async def hold(route: Route) -> None:
            waiting.append(route)
            await released.wait()
            await route.continue_()

        await page.page.route(f"{visited.service.url}/graphql**", hold)
        await page.page.goto(visited.site.show("<ringside-board></ringside-board>"))
        corner = page.page.locator("ringside-board button.corner").first
        await expect(corner).to_have_attribute("aria-disabled", "true")
        await until(lambda: len(waiting) == 2, "both requests are under way")
        released.set()
        await shown(page, "board")


async def test_an_older_or_newer_service_asks_for_a_reload(visited: Visited, browser: Browser) -> None:
    """It does not know the page's documents any more, or not yet."""
    async with visited.page(browser, "") as page:

        async def alter(route: Route) -> None:
            await route.continue_(url=re.sub(r"documentId=\w+", "documentId=0123456789", route.request.url))

        await page.page.route(f"{visited.service.url}/graphql?documentId=**", alter)
        await page.page.goto(visited.site.show("<ringside-event></ringside-event><ringside-word></ringside-word>"))
        for name in ("event", "word"):
            note = page.page.locator(f"ringside-{name} .note")
            await expect(note).to_have_text("This page is out of date. Please load it again.")


async def test_a_page_from_before_an_upgrade_asks_for_a_reload_to_write(visited: Visited, browser: Browser) -> None:
    """The service has the scripts of its own release alone, and was not too busy to be reached."""

    async def alter(route: Route) -> None:
        await route.continue_(url=re.sub(r"writing\.[\w-]+", "writing.of-before", route.request.url))

    async with visited.page(browser, "", member="bo-abara") as page:
        await page.page.route("**/elements/writing.*.js", alter)
        await page.page.goto(visited.site.show('<ringside-comments product="ringside-tee"></ringside-comments>'))
        element = page.page.locator("ringside-comments")
        await element.get_by_role("button", name="Write a comment").click()
        await expect(element.locator(".note")).to_have_text("This page is out of date. Please load it again.")


@pytest.mark.parametrize("dropped", [1, 2])
async def test_a_script_that_was_dropped_on_its_way_keeps_nobody_from_writing(
    visited: Visited, browser: Browser, dropped: int
) -> None:
    """As while a phone changes its network. Once is not noticed; if it happens again, the next press helps."""
    asked: list[str] = []

    async def drop(route: Route) -> None:
        asked.append(route.request.url)
        await (route.abort() if len(asked) <= dropped else route.continue_())

    async with visited.page(browser, "", member="bo-abara") as page:
        await page.page.route("**/elements/writing.*.js", drop)
        await page.page.goto(visited.site.show('<ringside-comments product="ringside-tee"></ringside-comments>'))
        element = page.page.locator("ringside-comments")
        write, note = element.get_by_role("button", name="Write a comment"), element.locator(".note")
        for _ in range(1, dropped):
            await write.click()
            await expect(note).to_have_text("This page is out of date. Please load it again.")
        await write.click()
        await expect(element.get_by_label("Your comment")).to_be_visible()
        await expect(note).to_have_text("")
        assert len(asked) == dropped + 1


NARROW = (
    "display: flex; min-height: 2000px",
    "display: flex; flex-direction: column; align-items: center",
    "display: grid; place-items: center",
    "float: left",
    "display: inline-block",
    "display: table-cell",
    "position: absolute",
)
"""Styles of places that are as wide as what they hold."""


@pytest.mark.parametrize("width", [1280, 320])
async def test_an_element_has_room_where_its_place_is_as_wide_as_what_it_holds(
    visited: Visited, browser: Browser, width: int
) -> None:
    """In a row of flexible boxes, say, as site builders make them; on a phone it takes what there is."""
    places = "".join(f'<div style="{style}"><ringside-word></ringside-word></div>' for style in NARROW)
    bar = '<nav style="display: flex; white-space: nowrap"><b>Logo</b><ringside-sign-in></ringside-sign-in></nav>'
    bar += "<style>* { justify-items: center }</style>"
    async with visited.page(browser, bar + places, viewport={"width": width, "height": 800}) as page:
        for number in range(len(NARROW)):
            await expect(page.page.locator("ringside-word .term").nth(number)).to_be_visible()
        await shown(page, "sign-in")
        words = page.page.locator("ringside-word .root")
        widths = await words.evaluate_all("(roots) => roots.map((one) => one.offsetWidth)")
        assert min(widths) >= min(width - 16, 900)
        heights = await words.evaluate_all("(roots) => roots.map((one) => one.offsetHeight)")
        assert max(heights) < 1000
        assert 240 <= await page.page.evaluate("document.querySelector('ringside-sign-in').offsetWidth") < 400
        assert await page.page.evaluate("document.documentElement.scrollWidth") == width


# ── other people's styles, and what moves ──


def framework_styles() -> str:
    """The stylesheets of two frameworks, and what pages write themselves for every element there is."""
    if not all(file.exists() for file in FRAMEWORKS):
        pytest.skip("the frameworks are not here: make test")
    sheets = [file.read_text(encoding="utf-8") for file in FRAMEWORKS]
    assert all(len(sheet.splitlines()) >= 10_000 for sheet in sheets)
    return "".join(sheets)


async def without_and_with(page: Page, styles: str) -> tuple[Any, Any] | None:
    """The looks of all elements before and after a page has these styles; None if they change by themselves, too."""
    before = await page.evaluate(LOOKS)
    added = await page.add_style_tag(content=styles)
    assert await page.evaluate("getComputedStyle(document.querySelector('ringside-word')).color") == RED
    after = await page.evaluate(LOOKS)
    await added.evaluate("style => style.remove()")
    return (before, after) if await page.evaluate(LOOKS) == before else None


async def test_the_styles_of_two_frameworks_change_nothing_but_what_is_inherited_on_purpose(
    visited: Visited, browser: Browser
) -> None:
    """Every computed style of everything inside is the same. Font and colour scheme are the page's.

    So is what is hidden or out of reach, as in a menu that is closed.
    """
    everywhere = "* { color: red; letter-spacing: 3px; text-transform: uppercase; line-height: 4; cursor: help }"
    styles = framework_styles() + everywhere
    body = f'<div id="held" style="width: 900px; font-family: serif; color-scheme: light">{EVERYTHING}</div>'
    async with visited.page(browser, body, member="ada-abara") as page:
        await shown(page)
        await expect(page.page.locator("ringside-board .live")).to_have_text("live")
        before, after = await until(partial(without_and_with, page.page, styles), "nothing else changes meanwhile")
        assert len(before) > 300
        changed = [
            looks for pair in zip(before, after, strict=True) for looks in zip(*pair, strict=True) if len({*looks}) > 1
        ]
        assert changed == []
        await page.page.add_style_tag(content=styles)
        hidden = "visibility: hidden; pointer-events: none"
        await page.page.evaluate(f"held.style = 'font-family: monospace; color-scheme: dark; {hidden}'")
        root = "getComputedStyle(document.querySelector('ringside-word').shadowRoot.querySelector('.root'))"
        assert await page.page.evaluate(f"[{root}.fontFamily, {root}.colorScheme]") == ["monospace", "dark"]
        assert await page.page.evaluate(f"{root}.pointerEvents") == "none"
        await expect(page.page.locator("ringside-word .term").first).to_be_hidden()


async def test_live_updates_move_nothing_that_is_being_read(visited: Visited, browser: Browser) -> None:
    """Votes, results and comments of others arrive, and Chromium reports no shift of the layout."""
    body = EVERYTHING.replace("<ringside-sign-in></ringside-sign-in>", "")
    async with visited.page(browser, body, viewport={"width": 1280, "height": 6000}) as page:
        await shown(page, "board", "event", "standings", "word", "comments")
        await expect(page.page.locator("ringside-board .live")).to_have_text("live")
        await page.page.evaluate(RECORD_SHIFTS)
        votes = await page.page.locator("ringside-board tbody").inner_text()
        async with visited.page(browser, "<ringside-board></ringside-board>") as other:
            for seen in range(1, 6):
                await other.page.locator("ringside-board button.corner").first.click()
                await expect(other.page.locator("ringside-board .progress span")).to_contain_text(f"{seen} of")
        with visited.client("cy-abara") as client:
            given = {"product": "ringside-tee", "language": "en", "rating": 4, "body": "Live and well."}
            client.post("/graphql", json={"query": POST_COMMENT, "variables": {"input": given}}).raise_for_status()
        await expect(page.page.locator("ringside-board tbody")).not_to_have_text(votes, use_inner_text=True)
        await expect(page.page.locator("ringside-comments")).to_contain_text("Show 1 new comment")
        # The marks of the plot's axis move with its scale, and names by a digit, once the tenth shares a rank.
        assert await page.page.evaluate("shifts.filter(([value]) => value > 1e-4)") == []
