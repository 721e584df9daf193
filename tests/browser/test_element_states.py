"""The states of elements, brought about for real: a stopped service, an ended session, a suspension, empty data."""

import asyncio
import json
import re
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any

import httpx
import psutil
import pytest
from playwright.async_api import Browser, Locator, Page, Route, WebSocket, WebSocketRoute, expect

from datastore.dynamo import iso
from resolvers.requests.context import utc_now
from tests.browser.admin import opened
from tests.browser.pages import (
    LONGEST_WAIT,
    PATIENT,
    RECORD_SHIFTS,
    VIEWPORT,
    BrowserPage,
    answered_last,
    held_back,
    new_context,
)
from tests.browser.sites import END_SESSION, SIGN_OUT_HERE, Site, Visited, running_site, visited_demo
from tests.leagues import CREATE_LEAGUE
from tests.mail_server import Mailbox, mail_server_beside
from tests.queries import (
    ADD_CONTENDER,
    ADD_MATCH,
    ADD_WORDS,
    CREATE_BOARD,
    CREATE_EVENT,
    CREATE_LIST,
    DELETE_LIST,
    LOCK_EVENT,
    POST_COMMENT,
    RECORD_RESULT,
    SCORE_EVENT,
    SUBMIT_PREDICTION,
    SUSPEND,
    UPDATE_EVENT,
    UPDATE_MATCH,
    mutation,
)
from tests.service import running_service
from tests.waiting import LONGEST, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

UNREACHABLE = "The service cannot be reached. Trying again."
SLOW = "The service is slow to answer. Trying again."
IMPORT_EVENTS = mutation("importEvents", "Imported", "added")
GUEST = (
    """mutation { signInAsGuest(input: { name: "Ann" }) { ... on SignedIn { token } ... on Refused { message } } }"""
)
SIGN_OUT = "mutation { signOut(input: {}) { __typename } }"
MEANING = re.compile("^meaning [ab]$")
STANDINGS = '<ringside-standings season="2026"></ringside-standings>'
EVERY_ELEMENT = (
    f"<ringside-board></ringside-board><ringside-event></ringside-event><ringside-word></ringside-word>{STANDINGS}"
    '<ringside-comments product="ringside-tee"></ringside-comments>'
)
DUE_COUNT = "{ viewer { dueCount } }"
REVIEW_WORD = mutation("reviewWord", "WordReviewed", "card { due }")

DRAW = "mutation { drawMatchup(input: {}) { __typename } }"
SHOW_BOARD = "document.querySelector('main').innerHTML = '<ringside-board></ringside-board>'"
AS_GUEST_HERE = """(query) => fetch('/graphql', {
  method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ query }),
})"""
LISTEN = """async (address) => {
  const ringside = await import(address);
  [globalThis.live, globalThis.heard] = [[], new Set()];
  const document = 'subscription { leaderboardChanged(first: 1) { rank } }';
  for (let n = 0; n < 33; n++) ringside.live(document, {}, () => heard.add(n), (isLive) => (live[n] = isLive));
}"""
LISTEN_ONCE = """async (address) => {
  const { live } = await import(address);
  live('subscription { leaderboardChanged(first: 1) { rank } }', {}, () => (globalThis.heard = true));
}"""
REMOVE_LIVE_BOARD = """() => [...document.querySelectorAll('ringside-board')]
  .find((board) => board.shadowRoot.querySelector('.live.on')).remove()"""
UNAVAILABLE = {"message": "Try again.", "extensions": {"code": "UNAVAILABLE", "retryAfterSeconds": 1.0}}
SHOW = "(body) => document.querySelector('main').innerHTML = body"
IS_SOMEBODY_ELSE = "async ([address, token]) => (await import(address)).session.member?.token === token"
COUNT_CHANGES = """async (address) => {
  globalThis.changes = 0;
  (await import(address)).session.addEventListener('change', () => changes++);
}"""
IS_MEMBER = "async (address) => (await import(address)).session.member !== null"


class Restartable(Visited):
    """A service that can be stopped and started again at the same address, and where guests may take part.

    It sends emails.
    """

    def __init__(self, data: str, site: Site, mail_server: str) -> None:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self._port = str(found.getsockname()[1])
        self._variables = {
            **PATIENT,
            "RINGSIDE_DATA": data,
            "RINGSIDE_CORS_ORIGINS": site.address,
            "RINGSIDE_GUESTS": "comments,predictions,quizzes",
            "RINGSIDE_NEW_VISITORS_PER_ADDRESS": "0",
            "RINGSIDE_NEW_GUESTS_PER_ADDRESS": "0",
            "RINGSIDE_SMTP_URL": mail_server,
        }
        self._running = ExitStack()
        self.site = site
        self.start()
        site.api = self.service.url

    def start(self) -> None:
        self.service = self._running.enter_context(running_service(self._variables, ["--demo", "--port", self._port]))

    def stop(self) -> None:
        self._running.close()

    @asynccontextmanager
    async def stopped(self) -> AsyncIterator[None]:
        await asyncio.to_thread(self.stop)
        try:
            yield
        finally:
            await asyncio.to_thread(self.start)

    @contextmanager
    def new_session(self) -> Iterator[httpx.Client]:
        """A guest's session on the site, used outside of any browser."""
        with httpx.Client(base_url=self.service.url, headers={"origin": self.site.address}, timeout=LONGEST) as client:
            token = client.post("/graphql", json={"query": GUEST}).json()["data"]["signInAsGuest"]["token"]
            client.headers["authorization"] = f"Bearer {token}"
            yield client


@pytest.fixture(scope="module")
def restartable(demo_data: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restartable]:
    folder = tmp_path_factory.mktemp("restartable")
    with running_site() as site, mail_server_beside(Mailbox(), folder) as mail_server:
        restartable = Restartable(demo_data(), site, mail_server)
        yield restartable
        restartable.stop()


async def pick_all(page: BrowserPage) -> None:
    await expect(page.page.locator("ringside-event").get_by_role("group").first).to_be_visible()
    for match in await page.page.locator("ringside-event").get_by_role("group").all():
        await match.get_by_role("radio").first.check()


def new_event(visited: Visited, name: str, *, starts: timedelta, season: str | None = None) -> tuple[str, list[str]]:
    """An event with two matches; its id and theirs."""
    at = iso(utc_now() + starts)
    event = visited.edit(CREATE_EVENT, name=name, season=season or f"Season of {name}", startsAt=at)["event"]["id"]
    teams = [{"members": ["Ada"]}, {"members": ["Bea"]}]
    matches = [
        visited.edit(ADD_MATCH, event=event, name=name, teams=teams, points=1)["match"]["id"]
        for name in ("First", "Second")
    ]
    return event, matches


# ── the service ──


async def test_a_service_that_is_stopped_is_asked_again_by_every_element(
    restartable: Restartable, browser: Browser
) -> None:
    """What was pressed meanwhile counts once it is back, and streams go on."""
    further = re.compile("^Show more( of|$)")
    async with restartable.page(browser, "<main></main>") as page:
        board, event, word, standings, comments = (
            page.page.locator(f"ringside-{name}") for name in ("board", "event", "word", "standings", "comments")
        )
        with restartable.new_session() as session:
            await restartable.sign_in(page, token=session.headers["authorization"].removeprefix("Bearer "))
        await page.page.evaluate(SHOW, EVERY_ELEMENT)  # now, else an answer to the visitor might be taken for theirs
        await expect(event.get_by_role("button", name="Save picks")).to_be_visible()
        await expect(board.locator("button.corner:not([aria-disabled])").first).to_be_visible()
        await expect(board.locator(".live")).to_have_text("live")
        await expect(word.get_by_role("button", name="Take a quiz")).to_be_visible()
        for element in (standings, comments):
            await expect(element.get_by_role("button", name=further)).to_be_visible()
        await pick_all(page)
        async with restartable.stopped():
            await expect(board.locator(".live")).to_have_text("not live")
            await board.locator("button.corner").first.click()
            await event.get_by_role("button", name="Save picks").click()
            await word.get_by_role("button", name="Take a quiz").click()
            for element in (standings, comments):
                await element.get_by_role("button", name=further).click()
            for element in (board, event, word, standings, comments):
                await expect(element.locator(".note")).to_have_text(UNREACHABLE)
            assert await page.barriers("region", "page-has-heading-one", "landmark-one-main") == []
        await expect(board.locator(".note")).to_contain_text("A vote for")
        await expect(event.locator(".note")).to_contain_text("Your picks are saved.")
        await expect(word.locator("#question")).to_be_visible()
        await expect(standings.locator("tbody tr:not(.own)")).to_have_count(20)
        await expect(comments.locator("article").nth(19)).to_be_visible()
        await expect(board.locator(".live")).to_have_text("live")


async def test_a_board_whose_stream_is_refused_says_so_and_is_live_once_there_is_room(
    demo_data: Callable[[], str], browser: Browser
) -> None:
    """At the limit of subscriptions, which a network address shares."""
    with visited_demo(demo_data(), RINGSIDE_SUBSCRIPTIONS_PER_ADDRESS="1") as visited:
        boards = "<ringside-board></ringside-board>" * 2
        async with visited.page(browser, boards, settable_clock=True) as page:
            live, paused = page.page.locator(".live.on"), page.page.get_by_text("not live")
            await expect(paused).to_have_count(1)
            await expect(live).to_have_count(1)
            await page.page.evaluate(REMOVE_LIVE_BOARD)
            await page.page.clock.fast_forward("01:00")
            await expect(live).to_have_count(1)


@contextmanager
def halted(engine: psutil.Process) -> Iterator[None]:
    """An engine that does not answer during the block, as one whose disk is slow."""
    engine.suspend()
    try:
        yield
    finally:
        engine.resume()


async def test_a_board_draws_and_votes_once_the_table_answers_again(
    demo_data: Callable[[], str], browser: Browser
) -> None:
    """The service answers at once that it cannot be done now: that it is tried again, as the board says, is true."""
    with visited_demo(demo_data(), RINGSIDE_REQUEST_TIMEOUT="2") as visited:
        service = psutil.Process(visited.service.process.pid)
        [engine] = [each for each in service.children() if "dynoxide" in each.name()]
        async with visited.page(browser, "<main></main>") as page:
            board = page.page.locator("ringside-board")
            left, note = board.locator("button.corner:not([aria-disabled])").first, board.locator(".note")
            with halted(engine):
                await page.page.evaluate(SHOW_BOARD)
                await expect(board.locator(".note, .notice")).to_have_text(SLOW)
            await expect(left).to_be_visible()
            name = await left.locator(".name").inner_text()
            with halted(engine):
                await left.click()
                await expect(note).to_have_text(SLOW)
            await expect(note).to_have_text(f"A vote for {name}.")
            await expect(board.get_by_text("Pairs seen: 1 of 276")).to_be_visible()


async def test_a_board_that_was_drawn_from_too_often_draws_again_by_itself(
    demo_data: Callable[[], str], browser: Browser
) -> None:
    """Once the service admits it: it says when."""
    with visited_demo(demo_data(), RINGSIDE_VOTES_PER_VISITOR="6/minute") as visited:
        async with visited.page(browser, "<ringside-board></ringside-board>") as page:
            board = page.page.locator("ringside-board")
            ready = board.locator("button.corner:not([aria-disabled])")
            await expect(ready).to_have_count(2)
            visit = await page.page.evaluate("JSON.parse(Object.values(localStorage)[0]).visit.token")
            headers = {"origin": visited.site.address, "authorization": f"Visitor {visit}"}
            for _ in range(6):  # one more than there is room for
                httpx.post(f"{visited.service.url}/graphql", json={"query": DRAW}, headers=headers, timeout=LONGEST)
            await ready.first.click()
            await expect(board.get_by_text("Pairs seen: 1 of 276")).to_be_visible()
            await expect(ready).to_have_count(2)


async def test_streams_begin_although_their_script_was_dropped_on_its_way(visited: Visited, browser: Browser) -> None:
    """As while a phone changes its network. It is asked for again, or the page would have no streams any more."""
    asked: list[str] = []

    async def drop(route: Route) -> None:
        asked.append(route.request.url)
        await (route.abort() if len(asked) == 1 else route.continue_())

    async with visited.page(browser, "<main></main>", settable_clock=True) as page:
        await page.page.route("**/elements/streams.*.js", drop)
        async with page.page.expect_event("requestfailed"):
            await page.page.evaluate(LISTEN_ONCE, f"{visited.service.url}/elements.js")
        await page.page.clock.fast_forward("00:11")
        await page.page.wait_for_function("globalThis.heard")
        await page.page.evaluate(SHOW_BOARD)
        await expect(page.page.locator(".live.on")).to_be_visible()


async def test_a_page_with_more_streams_than_a_socket_takes_keeps_its_socket(
    visited: Visited, browser: Browser
) -> None:
    """Those for which there is no room are not live. The others are, and nobody connects again and again."""
    sockets: list[WebSocket] = []
    streams: Counter[WebSocket] = Counter()

    def note(socket: WebSocket) -> None:
        sockets.append(socket)
        socket.on("framesent", lambda frame: streams.update([socket] if '"subscribe"' in str(frame) else []))

    async with visited.page(browser, "<main></main>") as page:
        page.page.on("websocket", note)
        await page.page.evaluate(LISTEN, f"{visited.service.url}/elements.js")
        await page.page.wait_for_function("heard.size === 32 && live.filter(Boolean).length === 32")
        number = len(sockets)  # more than one if the service was too slow for the first
        await page.page.wait_for_timeout(3000)
        assert len(sockets) == number
        assert not sockets[-1].is_closed()
        assert set(streams.values()) <= {*range(1, 33)}


async def test_a_page_finds_out_how_many_streams_a_socket_takes_of_a_service_that_takes_fewer(
    demo_data: Callable[[], str], browser: Browser
) -> None:
    """Its operator says so. A page with more live elements would connect again every second, and none would be live."""
    sockets: list[WebSocket] = []

    def note(socket: WebSocket) -> None:
        sockets.append(socket)

    with visited_demo(demo_data(), RINGSIDE_OPERATIONS_PER_SOCKET="4") as visited:
        async with visited.page(browser, "<main></main>") as page:
            page.page.on("websocket", note)
            await page.page.evaluate(LISTEN, f"{visited.service.url}/elements.js")
            await page.page.wait_for_function("live.filter(Boolean).length === 4")
            closed = [socket.is_closed() for socket in sockets]
            assert closed == [True] * (len(closed) - 1) + [False]
            assert 4 <= len(closed) < 8  # more than four if the service was too slow for one


async def test_what_is_answered_once_an_element_has_left_begins_no_stream(visited: Visited, browser: Browser) -> None:
    """Nobody would end it, and it takes the place of another one on the page's socket."""
    streams: list[str] = []

    def note(frame: str | bytes) -> None:
        if '"subscribe"' in str(frame):
            streams.append(str(frame))

    async with visited.page(browser, "<main></main>") as page:
        page.page.on("websocket", lambda socket: socket.on("framesent", note))
        await page.page.evaluate("document.body.append(document.createElement('ringside-board'))")
        await expect(page.page.locator(".live.on")).to_be_visible()
        main = page.page.locator("main")
        async with held_back(page.page, '"first":100') as held:
            await main.evaluate("(main) => { main.innerHTML = '<ringside-board />' }")
            await main.get_by_role("button", name=re.compile("Show .* contenders")).click()
            await until(lambda: held, "it asks for more")
            await main.evaluate("(main) => main.replaceChildren()")
        assert len(streams) == 2, streams  # of the board that stays, and of the other one until it left


async def test_a_page_that_is_opened_while_the_service_is_stopped_shows_what_stands_between_the_tags(
    restartable: Restartable, browser: Browser
) -> None:
    body = "<ringside-board>The vote opens on Friday.</ringside-board>"
    async with restartable.stopped(), restartable.page(browser, body) as page:
        await expect(page.page.get_by_text("The vote opens on Friday.")).to_be_visible()


async def test_an_element_that_begins_while_the_service_is_stopped_appears_once_it_is_back(
    restartable: Restartable, browser: Browser
) -> None:
    """And is live. A service that restarts is no network that comes back: no browser tells of it."""
    async with restartable.page(browser, "<main></main>") as page:
        async with restartable.stopped():
            await page.page.evaluate(SHOW_BOARD)
            await until(lambda: page.errors, "its part could not be loaded")
        await expect(page.page.locator("ringside-board .live.on")).to_be_visible()


# ── the session ──


async def test_picks_and_quizzes_outlive_the_end_of_the_session(restartable: Restartable, browser: Browser) -> None:
    """It is ended elsewhere while somebody chooses. The element says so, and the next session saves the same picks."""
    body = "<ringside-event></ringside-event><ringside-word></ringside-word>"
    async with restartable.page(browser, body) as page:
        event, word = page.page.locator("ringside-event"), page.page.locator("ringside-word")
        with restartable.new_session() as session:
            await restartable.sign_in(page, token=session.headers["authorization"].removeprefix("Bearer "))
            await expect(event.get_by_role("button", name="Save picks")).to_be_visible()
            await expect(word.get_by_role("button", name="Take a quiz")).to_be_visible()
            await pick_all(page)
            async with held_back(page.page, '"picks"') as held:  # the page may notice the end before it is pressed
                await event.get_by_role("button", name="Save picks").click()
                await until(lambda: held, "the picks are on their way")
                session.post("/graphql", json={"query": SIGN_OUT}).raise_for_status()
        await expect(event.locator(".note")).to_contain_text("Your sign-in has ended.")
        await expect(event.get_by_role("button", name="Sign in")).to_be_visible()
        await expect(word.get_by_role("button", name="Sign in")).to_be_visible()
        await expect(event.get_by_role("radio", checked=True)).not_to_have_count(0)
        with restartable.new_session() as session:
            await restartable.sign_in(page, token=session.headers["authorization"].removeprefix("Bearer "))
        await expect(event.locator(".note")).to_have_text("")
        await event.get_by_role("button", name="Save picks").click()
        await expect(event.locator(".note")).to_contain_text("Your picks are saved.")


async def test_answers_to_a_quiz_outlive_the_end_of_the_session(visited: Visited, browser: Browser) -> None:
    """And the page, which may be left to sign in: they are handed in then. Whom the quiz did not ask is told so."""
    async with visited.page(browser, "<ringside-word></ringside-word>", member="hal-abara") as page:
        element = page.page.locator("ringside-word")
        for member, outcome in (("", "of 5 right"), ("ida-abara", "This quiz asked somebody else.")):
            await element.get_by_role("button", name=re.compile("quiz")).click()
            for number in range(1, 6):
                await expect(element.get_by_text(f"Question {number} of 5")).to_be_visible()
                if number == 3:
                    ended = await page.page.evaluate(END_SESSION, f"{visited.service.url}/elements.js")
                await element.locator(".choices button").first.click()
            await expect(element.locator(".note")).to_contain_text("Your sign-in has ended.")
            await element.get_by_role("button", name="Sign in").wait_for()
            await page.page.reload()
            await element.get_by_role("button", name="Sign in").wait_for()
            await visited.sign_in(page, member=member, token=None if member else ended["token"])
            await expect(element.locator("#result").or_(element.locator(".note"))).to_contain_text([outcome])


async def test_answers_to_a_quiz_outlive_a_cookie_that_is_gone(restartable: Restartable, browser: Browser) -> None:
    """On the service's own page, which is left to sign in."""
    context, url = await new_context(browser, locale="en-GB"), restartable.service.url
    page = await context.new_page()
    await page.goto(url)
    await page.evaluate(AS_GUEST_HERE, GUEST)
    await page.reload()
    element = page.locator("ringside-word")
    await element.get_by_role("button", name="Take a quiz").click()
    for number in range(1, 6):
        await expect(element.get_by_text(f"Question {number} of 5")).to_be_visible()
        if number == 5:
            cookies: Any = await context.cookies()
            await context.clear_cookies()
        await element.locator(".choices button").first.click()
    await expect(element.locator(".note")).to_have_text("Sign in to go on. What you typed is kept.")
    await expect(element.get_by_role("button", name="Sign in")).to_be_visible()
    await context.add_cookies(cookies)
    await page.reload()
    await expect(element.locator("#result")).to_contain_text("of 5 right")


END_QUIZ = """for (const key of Object.keys(sessionStorage))
  sessionStorage[key] = sessionStorage[key].replace('"expiresAt":"20', '"expiresAt":"19')"""


async def test_a_quiz_that_was_left_or_is_over_does_not_come_back(visited: Visited, browser: Browser) -> None:
    """It comes back where all is answered, and while it can still be handed in."""
    async with visited.page(browser, "<ringside-word></ringside-word>", member="kim-abara") as page:
        element = page.page.locator("ringside-word")
        await element.get_by_role("button", name="Take a quiz").click()
        await element.locator(".choices button").first.click()
        await expect(element.get_by_text("Question 2 of 5")).to_be_visible()
        await page.page.reload()
        await element.get_by_role("button", name="Take a quiz").click()
        for number in range(1, 6):
            await expect(element.get_by_text(f"Question {number} of 5")).to_be_visible()
            await page.page.context.set_offline(number == 5)
            await element.locator(".choices button").first.click()
        await page.page.evaluate(END_QUIZ)
        await page.page.context.set_offline(False)
        await page.page.reload()
        await expect(element.get_by_role("button", name="Take a quiz")).to_be_visible()


@pytest.mark.parametrize("place", ["held", "held.attachShadow({ mode: 'open' })"])
async def test_an_answer_that_comes_late_takes_the_keyboard_from_nothing_else(
    visited: Visited, browser: Browser, place: str
) -> None:
    """As from the page's own field, in which a reader types while the answers of a quiz wait to be handed in.

    Also where the element stands in a shadow root of the site's own, and the field does not.
    """
    async with visited.page(browser, '<input id="search"><p id="held"></p>', member="jo-abara") as page:
        await page.page.evaluate(f"{place}.append(document.createElement('ringside-word'))")
        element, search = page.page.locator("ringside-word"), page.page.locator("#search")
        await element.get_by_role("button", name="Take a quiz").click()
        async with held_back(page.page, '"answers"'):
            for number in range(1, 6):
                await expect(element.get_by_text(f"Question {number} of 5")).to_be_visible()
                await element.locator(".choices button").first.click()
            await expect(element.locator("#title")).to_be_focused()
            await search.press("a")
            await expect(element.get_by_text("Looking at your answers…")).to_be_visible()
        await expect(element.locator("#result")).to_contain_text("of 5 right")
        await expect(search).to_be_focused()


async def test_picks_that_are_changed_while_others_are_saved_stay(visited: Visited, browser: Browser) -> None:
    """They are not saved yet, and the button that saves them keeps the focus."""
    event, _ = new_event(visited, "Changing", starts=timedelta(days=400))
    async with visited.page(browser, f'<ringside-event event="{event}"></ringside-event>', member="cy-abara") as page:
        element = page.page.locator("ringside-event")
        await expect(element.get_by_text("Locks in")).to_be_visible()
        await pick_all(page)
        save = element.get_by_role("button", name="Save picks")
        second = element.get_by_role("group").first.get_by_role("radio").nth(1)
        async with held_back(page.page, '"picks"') as held:
            async with page.page.expect_request(lambda one: '"picks"' in (one.post_data or "")):
                await save.press("Enter")
            await save.press("Enter")
            await expect(save).to_be_focused()
            await second.check()
        assert len(held) == 1
        await expect(second).to_be_checked()
        await expect(element.locator(".note")).to_have_text("Not saved yet.")
        await save.click()
        await expect(element.locator(".note")).to_contain_text("Your picks are saved.")
        await page.page.reload()
        await expect(second).to_be_checked()


async def test_picks_that_come_after_the_lock_are_refused_in_a_sentence(visited: Visited, browser: Browser) -> None:
    """They were on their way when an editor locked the event: the word for its state says nothing about them."""
    event, _ = new_event(visited, "Too late", starts=timedelta(days=400))
    async with visited.page(browser, f'<ringside-event event="{event}"></ringside-event>', member="di-abara") as page:
        element = page.page.locator("ringside-event")
        await pick_all(page)
        async with held_back(page.page, '"picks"'):
            async with page.page.expect_request(lambda one: '"picks"' in (one.post_data or "")):
                await element.get_by_role("button", name="Save picks").click()
            visited.edit(LOCK_EVENT, event=event)
            await expect(element.locator(".state")).to_have_text("Locked")
        await expect(element.locator(".note")).to_have_text("Too late: only what was saved before the lock counts.")
        await expect(element.get_by_role("radio", checked=True)).to_have_count(0)


COUNT_DATES = """() => {
  const { DateTimeFormat } = Intl;
  globalThis.written = 0;
  Intl.DateTimeFormat = function (...given) { written += 1; return new DateTimeFormat(...given); };
}"""
"""Each time that the card is drawn it writes when the event begins."""


async def test_a_card_that_has_slept_over_its_lock_is_locked(visited: Visited, browser: Browser) -> None:
    """Behind a closed lid no second passes, and the stream that tells of the lock may be gone.

    From then on nothing is left to count.
    """
    event, _ = new_event(visited, "Asleep", starts=timedelta(days=400))
    body = f'<ringside-event event="{event}"></ringside-event>'
    async with visited.page(browser, body, settable_clock=True) as page:
        element = page.page.locator("ringside-event")
        await expect(element.get_by_text("Locks in")).to_be_visible()
        await page.page.clock.fast_forward(timedelta(days=400, minutes=10) // timedelta(milliseconds=1))
        await expect(element.locator(".state")).to_have_text("Locked")
        await expect(element.get_by_text("Locks in")).to_be_hidden()
        await page.page.evaluate(COUNT_DATES)

        async def rests() -> bool:
            await page.page.evaluate("globalThis.written = 0")
            await page.page.clock.run_for(5000)
            return bool(await page.page.evaluate("written === 0"))

        await until(rests, "nothing is drawn any more")  # the stream, which begins again, may bring the event once more


async def test_a_guess_is_saved_before_there_are_matches(visited: Visited, browser: Browser) -> None:
    """The question may be asked before the card is known. A visitor who presses Enter is told to sign in, and stays who
    they are: no other element of the page begins anew.
    """
    at = iso(utc_now() + timedelta(days=400))
    question = {"question": "How many minutes?"}
    made = visited.edit(CREATE_EVENT, name="Bare", season="Bare", startsAt=at, tieBreak=question)
    event = made["event"]["id"]
    async with visited.page(browser, f'<ringside-event event="{event}"></ringside-event>') as page:
        element = page.page.locator("ringside-event")
        guess = element.get_by_label("How many minutes?")
        await guess.fill("21.5")
        await page.page.evaluate(COUNT_CHANGES, f"{visited.service.url}/elements.js")
        await guess.press("Enter")
        await expect(element.locator(".note")).to_have_text("Sign in to go on. What you typed is kept.")
        assert await page.page.evaluate("changes") == 0
        await visited.sign_in(page, member="cy-abara")
        await element.get_by_role("button", name="Save picks").click()
        await expect(element.locator(".note")).to_contain_text("Your picks are saved.")
        await page.page.reload()
        await expect(guess).to_have_value("21.5")


async def test_while_no_event_is_to_come_the_last_one_is_shown(visited: Visited, browser: Browser) -> None:
    """People come back to see how it goes: a page that asks for the next event alone would be empty all evening."""
    for name, starts in (("Earlier", timedelta(days=2000)), ("Later", timedelta(days=2001))):
        event, _ = new_event(visited, name, starts=starts, season="Season of the last one")
        visited.edit(LOCK_EVENT, event=event)
    cancelled, _ = new_event(visited, "Rained off", starts=timedelta(days=2002), season="Season of the last one")
    visited.edit(UPDATE_EVENT, event=cancelled, cancelled=True)
    tag = '<ringside-event event="next" season="Season of {}"></ringside-event>'
    both = tag.format("the  last one") + tag.format("nothing at all")
    async with visited.page(browser, both, member="di-abara") as page:
        element, empty = (page.page.locator("ringside-event").nth(place) for place in (0, 1))
        await expect(element.get_by_role("heading")).to_have_text("Later")
        await expect(element.locator(".state")).to_have_text("Locked")
        await expect(empty.locator(".notice")).to_have_text("No event is coming up. Look in again soon.")


async def test_the_last_event_of_a_season_is_shown_however_many_came_after_it(
    visited: Visited, browser: Browser
) -> None:
    """The page of an old season stays on the site for years."""
    oldest = {"name": "The oldest", "season": "An old season", "startsAt": "2001-01-01T20:00:00Z"}
    newer = {"season": "The one after it", "startsAt": "2002-01-01T20:00:00Z"}
    events = [oldest, *({"name": f"Newer {number}", **newer} for number in range(101))]
    visited.edit(IMPORT_EVENTS, text=json.dumps({"events": events}))
    tag = '<ringside-event event="next" season="An old season"></ringside-event>'
    async with visited.page(browser, tag, member="di-abara") as page:
        element = page.page.locator("ringside-event")
        await expect(element.get_by_role("heading")).to_have_text("The oldest")


async def test_no_word_is_broken_where_three_stand_beside_one_another(visited: Visited, browser: Browser) -> None:
    """Who has the title to lose has room for the word that says so, which is longer in other languages."""
    event, _ = new_event(visited, "Three at once", starts=timedelta(days=9))
    teams = [{"members": [name], "champion": name == "Ada"} for name in ("Ada", "Bea", "Cleo")]
    visited.edit(ADD_MATCH, event=event, name="Threat", teams=teams, points=1)
    body = f'<ringside-event event="{event}"></ringside-event>'
    async with visited.page(browser, body, language="de") as page:
        champion = page.page.get_by_text("Titelträger")
        await expect(champion).to_be_visible()
        heights = set()
        for width in range(600, 1000, 20):
            await page.page.set_viewport_size({"width": width, "height": 800})
            heights.add(await champion.evaluate("(mark) => mark.offsetHeight"))
        assert len(heights) == 1


async def test_a_guess_that_is_not_saved_is_for_the_question_that_was_asked(visited: Visited, browser: Browser) -> None:
    """An editor asks another one, and then none: picks can be saved, and nobody answers what they did not read."""
    event, _ = new_event(visited, "Asking", starts=timedelta(days=400))
    visited.edit(UPDATE_EVENT, event=event, tieBreak={"question": "How many minutes?"})
    async with visited.page(browser, f'<ringside-event event="{event}"></ringside-event>', member="cy-abara") as page:
        element = page.page.locator("ringside-event")
        await pick_all(page)
        await element.get_by_label("How many minutes?").fill("21.5")
        visited.edit(UPDATE_EVENT, event=event, tieBreak={"question": "How many chairs?"})
        chairs = element.get_by_label("How many chairs?")
        await expect(chairs).to_have_value("")
        await chairs.fill("3")
        visited.edit(UPDATE_EVENT, event=event, tieBreak=None)
        await expect(chairs).to_have_count(0)
        await expect(element.get_by_role("radio", checked=True)).to_have_count(2)
        await element.get_by_role("button", name="Save picks").click()
        await expect(element.locator(".note")).to_contain_text("Your picks are saved.")


async def test_a_pick_that_is_not_saved_of_a_team_that_is_gone_keeps_nobody_from_saving(
    visited: Visited, browser: Browser
) -> None:
    """An editor took it off the card, where nobody had saved a pick of it: its match is without a pick again."""
    event, [first, _] = new_event(visited, "Shrinking", starts=timedelta(days=400))
    two = [{"members": ["Ada"]}, {"members": ["Bea"]}]
    visited.edit(UPDATE_MATCH, match=first, teams=[*two, {"members": ["Cleo"]}])
    async with visited.page(browser, f'<ringside-event event="{event}"></ringside-event>', member="cy-abara") as page:
        element = page.page.locator("ringside-event")
        await pick_all(page)
        await element.get_by_role("radio", name="Cleo").check()
        visited.edit(UPDATE_MATCH, match=first, teams=two)
        await expect(element.get_by_role("radio", name="Cleo")).to_have_count(0)
        await expect(element.get_by_text("1 match without a pick")).to_be_visible()
        await element.get_by_role("button", name="Save picks").click()
        await expect(element.locator(".note")).to_contain_text("Your picks are saved.")


async def test_picks_that_are_not_saved_outlive_a_cancellation_that_is_taken_back(
    visited: Visited, browser: Browser
) -> None:
    event, _ = new_event(visited, "Cancelling", starts=timedelta(days=400))
    async with visited.page(browser, f'<ringside-event event="{event}"></ringside-event>', member="cy-abara") as page:
        element = page.page.locator("ringside-event")
        await pick_all(page)
        visited.edit(UPDATE_EVENT, event=event, cancelled=True)
        await expect(element.get_by_text("Called off", exact=True)).to_be_visible()
        visited.edit(UPDATE_EVENT, event=event, cancelled=False)
        await expect(element.get_by_text("Not saved yet.")).to_be_visible()
        await expect(element.get_by_role("radio", checked=True)).to_have_count(2)
        await element.get_by_role("button", name="Save picks").click()
        await expect(element.locator(".note")).to_contain_text("Your picks are saved.")


async def test_a_locked_event_shows_the_guess_that_counts(visited: Visited, browser: Browser) -> None:
    """Not the one that was typed and never saved."""
    event, _ = new_event(visited, "Guessing", starts=timedelta(days=400))
    visited.edit(UPDATE_EVENT, event=event, tieBreak={"question": "How many minutes?"})
    async with visited.page(browser, f'<ringside-event event="{event}"></ringside-event>', member="cy-abara") as page:
        element = page.page.locator("ringside-event")
        guess = element.get_by_label("How many minutes?")
        await pick_all(page)
        await guess.fill("21.5")
        await element.get_by_role("button", name="Save picks").click()
        await expect(element.locator(".note")).to_contain_text("Your picks are saved.")
        await guess.fill("99")
        visited.edit(LOCK_EVENT, event=event)
        await expect(element.locator(".note")).to_contain_text("The event is locked now.")
        await expect(guess).to_have_value("21.5")


async def test_who_signs_in_before_the_first_answer_is_known_by_the_latest(visited: Visited, browser: Browser) -> None:
    """The answer to the visitor that they were comes last, and counts no more."""
    elements = ("event", "word", "sign-in", "standings", 'standings season="2026"')
    body = "".join(f"<ringside-{element}></ringside-{element.split()[0]}>" for element in elements)
    async with visited.page(browser, "<main></main>") as page:
        async with held_back(page.page, "documentId=") as held:
            await page.page.evaluate(SHOW, body)
            await until(lambda: len(held) == len(elements), "each element has asked")
            await expect(page.page.locator("ringside-standings tr.wait")).to_have_count(20)
            await visited.sign_in(page, member="bo-abara")
            await expect(page.page.locator("ringside-sign-in")).to_contain_text("Signed in as")
            await expect(page.page.get_by_role("button", name="Join a league")).to_have_count(2)
        await expect(page.page.locator("ringside-sign-in")).to_contain_text("Signed in as")
        await expect(page.page.get_by_role("button", name="Join a league")).to_have_count(2)
        await expect(page.page.locator("ringside-event").get_by_role("button", name="Save picks")).to_be_visible()
        await expect(page.page.locator("ringside-word").get_by_role("button", name="Take a quiz")).to_be_visible()


async def test_who_signs_in_before_there_is_a_season_is_not_asked_to_again(visited: Visited, browser: Browser) -> None:
    async def answer_without_seasons(route: Route) -> None:
        response = await route.fetch(timeout=LONGEST_WAIT)
        answer = await response.json()
        answer["data"].get("seasons", {})["nodes"] = []
        await route.fulfill(response=response, json=answer)

    async with visited.page(browser, "<main></main>") as page:
        await page.page.route("**/graphql*", answer_without_seasons)
        await page.page.evaluate(SHOW, "<ringside-standings></ringside-standings>")
        await expect(page.page.get_by_role("button", name="Sign in")).to_be_visible()
        await visited.sign_in(page, member="bo-abara")
        await expect(page.page.get_by_role("button", name="Sign in")).to_have_count(0)


STORE = "([key, kept]) => localStorage.setItem(key, JSON.stringify(kept))"


async def test_a_page_that_has_not_heard_of_a_sign_in_does_not_undo_it(visited: Visited, browser: Browser) -> None:
    """As one that the browser's button brings back while its visit begins, after another page has signed in."""
    async with visited.page(browser, "<main></main>") as page:
        async with held_back(page.page, '"board":"main"') as held:
            await page.page.evaluate("document.querySelector('main').innerHTML = '<ringside-board></ringside-board>'")
            await until(lambda: held, "a visit begins")
            token = visited.client("bo-abara").headers["authorization"].removeprefix("Bearer ")
            kept = {"member": {"token": token, "expiresAt": "2100-01-01"}}
            await page.page.evaluate(STORE, [f"ringside {visited.service.url}/", kept])
        await expect(page.page.locator("ringside-board button.corner:not([aria-disabled])").first).to_be_visible()
        await page.page.reload()
        assert await page.page.evaluate(IS_MEMBER, f"{visited.service.url}/elements.js")


async def test_a_page_that_is_gone_back_to_shows_who_has_signed_in_meanwhile(
    visited: Visited, browser: Browser
) -> None:
    """A browser may have kept it as it was, and have told it nothing of what other pages stored."""
    async with visited.page(browser, "<ringside-sign-in></ringside-sign-in>") as page:
        await expect(page.page.locator("ringside-sign-in")).to_contain_text("You are not signed in.")
        token = visited.client("bo-abara").headers["authorization"].removeprefix("Bearer ")
        kept = {"member": {"token": token, "expiresAt": "2100-01-01"}}
        await page.page.evaluate(STORE, [f"ringside {visited.service.url}/", kept])
        await page.page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
        await expect(page.page.locator("ringside-sign-in")).to_contain_text("Signed in as Bo Abara")


async def test_a_page_whose_session_is_refused_keeps_the_one_that_another_page_has_begun(
    visited: Visited, browser: Browser
) -> None:
    async with visited.page(browser, "<main></main>", member="bo-abara") as page:
        member = await page.page.evaluate(END_SESSION, f"{visited.service.url}/elements.js")
        await page.page.evaluate(STORE, [f"ringside {visited.service.url}/", {"member": member}])
        await page.page.evaluate("document.querySelector('main').innerHTML = '<ringside-sign-in></ringside-sign-in>'")
        await expect(page.page.get_by_role("button", name="Sign out")).to_be_visible()
        assert await page.page.evaluate(IS_MEMBER, f"{visited.service.url}/elements.js")


async def test_what_is_sent_again_is_sent_by_nobody_else(visited: Visited, browser: Browser) -> None:
    """In another page somebody else signs in while there is no connection: the comment does not bear their name."""
    body = '<ringside-comments product="shared"></ringside-comments><ringside-sign-in></ringside-sign-in>'
    async with visited.page(browser, body, member="ada-abara") as page:
        comments, sign_in = page.page.locator("ringside-comments"), page.page.locator("ringside-sign-in")
        other = await page.page.context.new_page()
        await other.goto(visited.site.show(""))
        await comments.get_by_role("button", name="Write a comment").click()
        await comments.get_by_label("Your comment").fill("By Ada.")
        await expect(sign_in.get_by_role("button", name="Sign out")).to_be_visible()
        await page.page.context.set_offline(True)
        await comments.locator("form button[type=submit]").click()
        await sign_in.get_by_role("button", name="Sign out").click()
        for element in (comments, sign_in):
            await expect(element.locator(".note")).to_have_text(UNREACHABLE)
        token = visited.client("bo-abara").headers["authorization"].removeprefix("Bearer ")
        kept = {"member": {"token": token, "expiresAt": "2100-01-01"}}
        await other.evaluate(STORE, [f"ringside {visited.service.url}/", kept])
        await page.page.wait_for_function(IS_SOMEBODY_ELSE, arg=[f"{visited.service.url}/elements.js", token])
        await page.page.context.set_offline(False)
        await expect(comments.get_by_label("Your comment")).to_have_value("By Ada.")
        await expect(comments.locator("form button[type=submit]:not([aria-disabled])")).to_be_visible()
        await expect(comments.locator("article")).to_have_count(0)
        await expect(sign_in).to_contain_text("Signed in as Bo Abara")
        await comments.locator("form button[type=submit]").click()
        await expect(comments.locator("article")).to_contain_text("Bo Abara")


async def test_the_keyboard_stays_where_it_was_when_somebody_signs_in_or_out(
    visited: Visited, browser: Browser
) -> None:
    """At the button that led to the sign-in, which then does what it was for."""
    buttons = {"word": "Take a quiz", "standings": "Join a league"}
    async with visited.page(browser, f"<ringside-word></ringside-word>{STANDINGS}") as page:
        for element, name in buttons.items():
            within = page.page.locator(f"ringside-{element}")
            await within.get_by_role("button", name="Sign in").focus()
            await visited.sign_in(page, member="cy-abara")
            await expect(within.get_by_role("button", name=name)).to_be_focused()
            await page.page.evaluate(SIGN_OUT_HERE, f"{visited.service.url}/elements.js")
            await expect(within.get_by_role("button", name="Sign in")).to_be_focused()


async def test_a_page_of_which_another_forgets_everything_is_signed_out(visited: Visited, browser: Browser) -> None:
    """As sites do when somebody signs out of them."""
    async with visited.page(browser, "<ringside-sign-in></ringside-sign-in>") as page:
        await visited.sign_in(page, member="bo-abara")
        await expect(page.page.get_by_role("button", name="Sign out")).to_be_visible()
        other = await page.page.context.new_page()
        await other.goto(visited.site.show(""))
        await other.evaluate("localStorage.clear()")
        await expect(page.page.locator("ringside-sign-in")).to_contain_text("You are not signed in.")


async def test_who_signs_out_without_a_connection_is_told(visited: Visited, browser: Browser) -> None:
    """Nobody leaves believing that they are signed out. It is done when it can be."""
    async with visited.page(browser, "<ringside-sign-in></ringside-sign-in>", member="bo-abara") as page:
        element = page.page.locator("ringside-sign-in")
        out = element.get_by_role("button", name="Sign out")
        await expect(out).to_be_visible()
        await page.page.context.set_offline(True)
        await out.click()
        await expect(element.locator(".note")).to_have_text(UNREACHABLE)
        await page.page.context.set_offline(False)
        await expect(element).to_contain_text("You are not signed in.")
        await expect(element.locator(".note")).to_have_count(0)


async def test_the_sign_in_element_shows_who_is_signed_in_and_signs_out(
    restartable: Restartable, browser: Browser
) -> None:
    """By itself and where something else of the page did it; the session itself ends."""
    async with restartable.page(browser, "<ringside-sign-in></ringside-sign-in>") as page:
        element = page.page.locator("ringside-sign-in")
        await expect(element).to_contain_text("You are not signed in.")
        await page.page.evaluate(
            "heard = []; addEventListener('ringside-signed-in', ({ detail }) => heard.push(detail))"
        )
        with restartable.new_session() as session:
            await restartable.sign_in(page, token=session.headers["authorization"].removeprefix("Bearer "))
            await expect(element).to_contain_text("Signed in as Ann")
            await element.get_by_role("button", name="Sign out").click()
            await expect(element).to_contain_text("You are not signed in.")
            assert session.post("/graphql", json={"query": "{ viewer { id } }"}).status_code == 401
        assert [each["user"] and each["user"]["name"] for each in await page.page.evaluate("heard")] == ["Ann", None]


SECOND_CLICK = """() => {
  const shown = document.querySelector('ringside-sign-in').shadowRoot;
  [globalThis.opened, globalThis.open] = [0, () => ((opened += 1), {})];
  new MutationObserver((_, observer) => {
    const button = shown.querySelector('button');
    if (button.textContent !== 'Sign in') return;
    observer.disconnect();
    for (const detail of [2, 1]) button.dispatchEvent(new MouseEvent('click', { detail }));
  }).observe(shown, { childList: true, characterData: true, subtree: true });
}"""


async def test_a_double_click_signs_out_and_begins_no_sign_in(visited: Visited, browser: Browser) -> None:
    """Its second click meets the other button, in the same place. A third one is meant."""
    async with visited.page(browser, "<ringside-sign-in></ringside-sign-in>", member="bo-abara") as page:
        out = page.page.get_by_role("button", name="Sign out")
        await expect(out).to_be_visible()
        await page.page.evaluate(SECOND_CLICK)
        await out.click()
        await page.page.wait_for_function("opened > 0")
        assert await page.page.evaluate("opened") == 1


class Sockets:
    """The sockets of a page, on which the test can act in the service's place: it looks at rights twice a minute."""

    def __init__(self) -> None:
        self.acknowledged = 0
        self.spoilt = 0
        self.spoil: Callable[[Any], object] | None = None
        """Takes from the next event what the table did not answer."""
        self._latest: WebSocketRoute | None = None

    def open(self, socket: WebSocketRoute) -> None:
        self._latest, server = socket, socket.connect_to_server()
        server.on_message(lambda message: self._hand_on(message, socket))

    def _hand_on(self, message: str | bytes, socket: WebSocketRoute) -> None:
        parsed = json.loads(message)
        if self.spoil and parsed["type"] == "next":
            self.spoil(parsed["payload"])
            parsed["payload"]["errors"] = [UNAVAILABLE]
            self.spoil, self.spoilt = None, self.spoilt + 1
        socket.send(json.dumps(parsed))
        self.acknowledged += "connection_ack" in str(message)

    async def end_for_changed_rights(self) -> None:
        assert self._latest is not None
        await self._latest.close(code=4403, reason="Forbidden: the token's rights have changed")


async def test_the_service_s_own_page_notices_that_its_session_has_ended(
    restartable: Restartable, browser: Browser
) -> None:
    """Answers delete its cookie, and sockets do not: the streams go on, and somebody can sign in again."""
    sockets, url = Sockets(), restartable.service.url
    context = await new_context(browser, viewport=VIEWPORT, locale="en-GB", timezone_id="UTC")
    page = BrowserPage(await context.new_page(), url)
    await page.page.route_web_socket("**/graphql", sockets.open)
    await page.page.goto(url)
    event, board = page.page.locator("ringside-event"), page.page.locator("ringside-board")
    for ends in (sockets.end_for_changed_rights, event.get_by_role("button", name="Save picks").click):
        await page.page.evaluate(AS_GUEST_HERE, GUEST)
        await page.page.reload()
        await expect(event.get_by_role("button", name="Save picks")).to_be_visible()
        await expect(board.locator(".live.on")).to_be_visible()
        await pick_all(page)
        [cookie] = [each for each in await context.cookies() if "session" in each["name"]]
        headers = {"cookie": f"{cookie['name']}={cookie['value']}", "origin": url}
        httpx.post(f"{url}/graphql", json={"query": SIGN_OUT}, headers=headers, timeout=LONGEST).raise_for_status()
        await ends()
        await expect(event.get_by_role("button", name="Sign in")).to_be_visible()
        await expect(page.page.locator("ringside-sign-in")).to_contain_text("You are not signed in.")
        await expect(board.locator(".live.on")).to_be_visible()
        await expect(event.get_by_role("radio", checked=True)).not_to_have_count(0)
        # An answer that comes later would delete the cookie of the next session.
        await expect(page.page.get_by_role("button", name="Sign in", exact=True)).to_have_count(4)
        await expect(page.page.locator("ringside-comments section[aria-busy]")).to_have_count(0)


async def test_every_tab_of_the_service_itself_follows_who_is_signed_in(
    restartable: Restartable, browser: Browser
) -> None:
    """Whatever one writes keeps its form, and none is posted in another's name. A cookie that is gone is noticed."""
    context, url = await new_context(browser, locale="en-GB", has_touch=True, is_mobile=True), restartable.service.url
    page, other = await context.new_page(), await context.new_page()
    await page.goto(url)
    shown, comments = page.locator("ringside-sign-in"), page.locator("ringside-comments")
    await page.evaluate(AS_GUEST_HERE, GUEST)
    for tab in (page, other):
        await tab.goto(url)
        await expect(tab.locator("ringside-sign-in")).to_contain_text("Signed in as Ann")
    await comments.get_by_role("button", name="Write a comment").click()
    await comments.get_by_label("Your comment").fill("By Ann.")
    await other.locator("ringside-sign-in").get_by_role("button", name="Sign out").click()
    await expect(shown).to_contain_text("You are not signed in.")
    await expect(comments.get_by_role("button", name="Sign in")).to_be_visible()
    await other.goto(f"{url}/sign-in")
    await other.get_by_label("Your name").fill("Bo")
    await other.get_by_role("button", name="Go on as a guest").click()
    await expect(shown).to_contain_text("Signed in as Bo")
    await other.get_by_role("textbox", name="Name", exact=True).fill("Bo Bell")
    await other.keyboard.press("Enter")
    await expect(shown).to_contain_text("Signed in as Bo Bell")
    await expect(page.get_by_role("button", name="Sign in", exact=True)).to_have_count(0)  # then nothing moves
    assert await BrowserPage(page, url).too_small() == []
    await context.clear_cookies()
    await comments.get_by_role("button", name="Post").click()
    await expect(shown).to_contain_text("You are not signed in.")
    await expect(comments.get_by_role("button", name="Sign in")).to_be_visible()
    await expect(comments.get_by_label("Your comment")).to_have_value("By Ann.")


async def test_a_member_whose_rights_have_changed_stays_signed_in(restartable: Restartable, browser: Browser) -> None:
    """A guest, say, who has added an address: the socket that ends for it opens again, by the same session.

    One that is refused then has ended.
    """
    sockets = Sockets()
    async with restartable.page(browser, "<main></main>") as page:
        await page.page.route_web_socket("**/graphql", sockets.open)
        with restartable.new_session() as session:
            await restartable.sign_in(page, token=session.headers["authorization"].removeprefix("Bearer "))
            body = "<ringside-board></ringside-board><ringside-sign-in></ringside-sign-in>"
            await page.page.evaluate(SHOW, body)
            element = page.page.locator("ringside-sign-in")
            await expect(element).to_contain_text("Signed in as Ann")
            await until(lambda: sockets.acknowledged == 1, "the socket is open")
            await sockets.end_for_changed_rights()
            await until(lambda: sockets.acknowledged == 2, "the socket is open again")
            assert await page.page.evaluate(IS_MEMBER, f"{restartable.service.url}/elements.js")
            session.post("/graphql", json={"query": SIGN_OUT}).raise_for_status()
            await sockets.end_for_changed_rights()
            await expect(element).to_contain_text("You are not signed in.")


async def test_an_event_that_is_not_whole_takes_no_saved_picks_off_the_card(visited: Visited, browser: Browser) -> None:
    """The service could not read them at that moment. The next save would replace what is not shown."""
    event, _ = new_event(visited, "Half", starts=timedelta(days=400))
    sockets = Sockets()
    async with visited.page(browser, "<main></main>", member="cy-abara") as page:
        await page.page.route_web_socket("**/graphql", sockets.open)
        await page.page.evaluate(SHOW, f'<ringside-event event="{event}"></ringside-event>')
        element = page.page.locator("ringside-event")
        await pick_all(page)
        await element.get_by_role("button", name="Save picks").click()
        await expect(element.locator(".note")).to_contain_text("Your picks are saved.")
        sockets.spoil = lambda payload: payload["data"]["eventChanged"].update(viewerPrediction=None)
        visited.edit(UPDATE_EVENT, event=event, place="Elsewhere")
        await expect(element.get_by_text("Elsewhere")).to_be_visible()
        assert sockets.spoilt == 1
        assert await element.get_by_role("radio", checked=True).count() == 2


async def test_an_event_without_its_data_is_asked_for_again(visited: Visited, browser: Browser) -> None:
    """A stream that went on behind it would never tell of the comment."""
    sockets = Sockets()
    async with visited.page(browser, "<main></main>") as page:
        await page.page.route_web_socket("**/graphql", sockets.open)
        sockets.spoil = lambda payload: payload.update(data=None)
        await page.page.evaluate(SHOW, '<ringside-comments product="spoilt"></ringside-comments>')
        element = page.page.locator("ringside-comments")
        await expect(element).to_contain_text("Nobody has written yet.")
        given = {"product": "spoilt", "language": "en", "body": "Hello?"}
        visited.edit(POST_COMMENT, by="ada-abara", role="member", **given)
        await expect(element.get_by_role("button", name="Show 1 new comment")).to_be_visible()
        assert sockets.spoilt == 1


async def test_a_suspended_member_is_told_by_each_element(visited: Visited, browser: Browser) -> None:
    """With the reason. Reading goes on."""
    with visited.client("sus-pended") as client:
        viewer = client.post("/graphql", json={"query": 'mutation { updateProfile(input: { name: "Sue" }) { ... on ProfileUpdated { user { id } } } }'})  # fmt: skip  # noqa: E501
        user = viewer.json()["data"]["updateProfile"]["user"]["id"]
    visited.edit(SUSPEND, role="moderator", user=user, reason="A test")
    body = "<ringside-board></ringside-board><ringside-event></ringside-event><ringside-word></ringside-word>"
    async with visited.page(browser, body, member="sus-pended") as page:
        await expect(page.page.locator("ringside-event")).to_contain_text("You cannot take part at present. A test")
        await expect(page.page.locator("ringside-board .notice")).to_contain_text(re.compile("suspended"))
        await page.page.locator("ringside-word").get_by_role("button", name="Take a quiz").click()
        await expect(page.page.locator("ringside-word .note")).to_contain_text(re.compile("suspended"))
    refused = "Dieses Konto ist gesperrt und kann nur lesen."
    async with visited.page(browser, body, member="sus-pended", language="de") as page:
        await expect(page.page.locator("ringside-board .notice")).to_have_text(refused)
        await page.page.locator("ringside-word").get_by_role("button", name="Quiz").click()
        await expect(page.page.locator("ringside-word .note")).to_have_text(f"{refused} \u2068A test\u2069")


async def test_a_guest_who_may_neither_pick_nor_take_a_quiz_is_led_to_sign_in(
    demo_data: Callable[[], str], browser: Browser
) -> None:
    """Where guests may do other things. What they picked stays."""
    with visited_demo(demo_data(), RINGSIDE_GUESTS="comments") as visited:
        await _led_to_sign_in(visited, browser)


async def _led_to_sign_in(visited: Visited, browser: Browser) -> None:
    answer = httpx.post(f"{visited.service.url}/graphql", json={"query": GUEST}, timeout=LONGEST).json()
    async with visited.page(browser, "<ringside-event></ringside-event><ringside-word></ringside-word>") as page:
        await visited.sign_in(page, token=answer["data"]["signInAsGuest"]["token"])
        event, word = page.page.locator("ringside-event"), page.page.locator("ringside-word")
        await pick_all(page)
        await event.get_by_role("button", name="Save picks").click()
        await expect(event.locator(".note")).to_contain_text("Sign in with an address to do this")
        await expect(event.get_by_role("button", name="Sign in")).to_be_visible()
        await expect(event.get_by_role("radio", checked=True).first).to_be_visible()
        await word.get_by_role("button", name="Take a quiz").click()
        await expect(word.locator(".note")).to_contain_text("Sign in with an address to do this")
        await expect(word.get_by_role("button", name="Sign in")).to_be_visible()
        assert await page.barriers("region", "page-has-heading-one", "landmark-one-main") == []


# ── data ──


async def test_what_is_empty_says_so(visited: Visited, browser: Browser) -> None:
    """A board without contenders, a list without words, a season without points, a card without matches."""
    visited.edit(CREATE_BOARD, slug="bare", title="Bare")
    words = visited.edit(CREATE_LIST, name="Bare", public=True, level=1)["list"]["id"]
    starts = iso(utc_now() + timedelta(days=30))
    event = visited.edit(CREATE_EVENT, name="Bare", season="1999", startsAt=starts)["event"]["id"]
    body = (
        f'<ringside-board board="bare"></ringside-board><ringside-event event="{event}"></ringside-event>'
        f'<ringside-word list="{words}"></ringside-word><ringside-standings season="1999"></ringside-standings>'
        '<ringside-event season="1900" id="never"></ringside-event>'
    )
    async with visited.page(browser, body) as page:
        for name, text in {
            "ringside-board .notice": "There is nothing to vote on yet",
            f'ringside-event[event="{event}"] .notice': "The card is still empty.",
            "ringside-word": "There is no word today.",
            "ringside-standings": "Nobody has points yet.",
            "#never": "No event is coming up.",
        }.items():
            await expect(page.page.locator(name)).to_contain_text(text)
        assert await page.barriers("region", "page-has-heading-one", "landmark-one-main") == []


async def test_a_board_that_closes_while_it_is_looked_at_says_so(visited: Visited, browser: Browser) -> None:
    """The ballot that was drawn before is refused in words, and the leaderboard stays.

    The page does not name the time that it was told, which is still ahead.
    """
    visited.edit(CREATE_BOARD, slug="soon-closed", title="Soon closed", closesAt=iso(utc_now() + timedelta(days=1)))
    for name in ("Ada", "Bea", "Cleo"):
        visited.edit(ADD_CONTENDER, board="soon-closed", name=name)
    async with visited.page(browser, '<ringside-board board="soon-closed"></ringside-board>') as page:
        corner = page.page.locator("ringside-board button.corner:not([aria-disabled])").first
        await corner.click()
        await expect(page.page.locator("ringside-board .note")).to_contain_text("A vote for")
        await visited.change_hours("soon-closed", "closesAt")
        await corner.click()
        await expect(page.page.locator("ringside-board .notice")).to_contain_text("Voting has ended.")
        await page.page.reload()
        await expect(page.page.locator("ringside-board .notice")).to_contain_text("Voting ended on")
        await expect(page.page.locator("ringside-board tbody tr").first).to_be_visible()


async def test_an_event_locks_by_the_services_clock_and_shows_results_and_points_as_they_come(
    visited: Visited, browser: Browser
) -> None:
    """Without a reload: the lock, the winner, how many picked whom, and the member's own points. Nothing moves."""
    event, matches = new_event(visited, "Locking", starts=timedelta(days=400))
    async with visited.page(browser, f'<ringside-event event="{event}"></ringside-event>', member="di-abara") as page:
        element = page.page.locator("ringside-event")
        await expect(element.locator(".count")).to_contain_text("Locks in")
        await pick_all(page)
        await element.get_by_role("button", name="Save picks").click()
        await expect(element.locator(".note")).to_contain_text("Your picks are saved.")
        await page.page.evaluate(RECORD_SHIFTS)
        visited.edit(UPDATE_EVENT, event=event, startsAt=iso(utc_now() + timedelta(seconds=2)))
        await expect(element.locator(".state")).to_have_text("Locked")
        await expect(element.get_by_role("radio").first).to_be_disabled()
        await expect(element.locator(".note")).to_contain_text("The event is locked now.")
        visited.edit(RECORD_RESULT, match=matches[0], outcome="CANCELLED")
        await expect(element.locator("li").first).to_contain_text("Called off")
        await expect(element.get_by_text("Not this time.")).to_have_count(0)  # nobody lost
        for match in matches:
            visited.edit(RECORD_RESULT, match=match, winner=0, outcome="WON")
        await expect(element.get_by_text("Winner", exact=True)).to_have_count(2)
        visited.edit(SCORE_EVENT, event=event)
        await expect(element.locator(".points")).to_contain_text("2 points")
        await expect(element.get_by_text("You were right.")).to_have_count(2)
        await expect(element.locator(".end").first).to_contain_text("100%")
        # The state's own word stands in the middle of its place.
        assert await page.page.evaluate("shifts.filter(([value]) => value > 1e-4)") == []
        assert await page.barriers("region", "page-has-heading-one", "landmark-one-main") == []


async def test_a_quiz_counts_down_and_its_words_come_back_for_review(visited: Visited, browser: Browser) -> None:
    """Answers that are given too soon are handed in when they may be. A double click answers no question unread."""
    words = visited.edit(CREATE_LIST, name="Colours", public=True, level=1)["list"]["id"]
    terms = [{"term": f"word {letter}", "definition": f"meaning {letter}", "reading": f"[{letter}]"} for letter in "abcdefgh"]  # noqa: E501  # fmt: skip
    visited.edit(ADD_WORDS, list=words, words=terms)
    async with visited.page(browser, f'<ringside-word list="{words}"></ringside-word>', member="ed-abara") as page:
        element = page.page.locator("ringside-word")
        await expect(element.locator(".reading")).to_be_visible()
        await element.get_by_role("button", name="Take a quiz").click()
        for number in range(1, 6):
            await expect(element.get_by_text(f"Question {number} of 5")).to_be_visible()
            await element.locator(".choices button").first.dblclick()
        await expect(element.locator("#result")).to_contain_text("of 5 right")
        await expect(element.locator(".answers li")).to_have_count(5)
        assert await page.barriers("region", "page-has-heading-one", "landmark-one-main") == []


async def test_a_quiz_asks_no_more_than_its_list_has(visited: Visited, browser: Browser) -> None:
    """And is not offered for a list that has fewer words than the shortest quiz."""
    body, terms = "", [{"term": f"one {letter}", "definition": f"meaning {letter}"} for letter in "abcd"]
    for count in (4, 2):  # named so that it comes after the lists of other tests
        words = visited.edit(CREATE_LIST, name=f"Your {count} words", public=True, level=1)["list"]["id"]
        visited.edit(ADD_WORDS, list=words, words=terms[:count])
        body += f'<ringside-word list="{words}"></ringside-word>'
    async with visited.page(browser, body, member="ed-abara") as page:
        four, two = (page.page.locator("ringside-word").nth(number) for number in range(2))
        await expect(two).to_contain_text("Your 2 words")
        await expect(two.get_by_role("button", name="Take a quiz")).to_have_count(0)
        await four.get_by_role("button", name="Take a quiz").click()
        await expect(four.get_by_text("Question 1 of 4")).to_be_visible()


async def test_the_standings_that_were_chosen_last_are_shown(visited: Visited, browser: Browser) -> None:
    """Although the answer for a league, which was chosen before, comes after theirs."""
    async with visited.page(browser, STANDINGS, member="ada-abara") as page:
        element = page.page.locator("ringside-standings")
        await expect(element.locator("tbody tr.own")).to_be_visible()
        async with answered_last(page.page, '"league":"'):
            await element.get_by_label("League").select_option(label="Ringside Regulars")
            async with page.page.expect_response(lambda one: '"season":"' in f"{one.request.post_data}"):
                await element.get_by_label("League").select_option(label="Everybody")
        await expect(element.get_by_role("heading")).to_have_text("Standings 2026")


async def test_a_further_page_of_standings_is_shown_once(visited: Visited, browser: Browser) -> None:
    """However often it is asked for while the answer takes its time, and whatever is typed meanwhile."""
    async with visited.page(browser, STANDINGS, member="ida-abara") as page:
        element = page.page.locator("ringside-standings")
        await element.get_by_role("button", name="Join a league").click()
        async with held_back(page.page, '"after":"'):
            await element.get_by_role("button", name="Show more").dblclick()
            await element.get_by_label("Code").press("A")
        await expect(element.locator("tbody tr:not(.own)")).to_have_count(20)
        await page.page.keyboard.type("B")
        await expect(element.get_by_label("Code")).to_have_value("AB")


async def test_further_rows_come_after_the_first_ones_that_are_read_for_a_member(
    restartable: Restartable, browser: Browser
) -> None:
    """Their own row is asked for once the latest season is known; the first ten come with it once more."""
    async with restartable.page(browser, "<main></main>", member="ida-abara") as page:
        element = page.page.locator("ringside-standings")
        async with held_back(page.page, '"season":"') as held:
            await page.page.evaluate(SHOW, "<ringside-standings></ringside-standings>")
            await element.get_by_role("button", name="Show more").click()
            await until(lambda: held, "their own row is asked for")
            await page.page.evaluate("new Promise(requestAnimationFrame)")
            assert len(held) == 1
        await expect(element.locator("tbody tr:not(.own)")).to_have_count(20)


async def test_standings_that_change_while_they_are_shown_are_shown_with_what_belongs_to_them(
    visited: Visited, browser: Browser
) -> None:
    """The first points of a season bring the reader's own row and the way to further rows; later ones, those rows.

    Also if they come, and the first rows are read again, once or twice, while the further ones are on their way,
    whichever is answered last. All rows stay live.
    """
    events = [new_event(visited, "Season", starts=timedelta(days=400)) for _ in range(4)]
    for member in range(24):
        for event, (match, _) in events:
            picks = [{"match": match, "team": int(member == OWN and event != events[2][0])}]
            visited.edit(SUBMIT_PREDICTION, by=f"rank-{member}", role="member", event=event, picks=picks)
    async with visited.page(
        browser, '<ringside-standings season="Season of Season"></ringside-standings>', member=f"rank-{OWN}"
    ) as page:
        element = page.page.locator("ringside-standings")
        rows, more = element.locator("tbody tr"), element.get_by_role("button", name="Show more of 24")
        await expect(element).to_contain_text("Nobody has points yet.")
        await score(visited, *events[0])
        await expect(rows).to_have_count(11)
        await expect(element.locator("tr.own").get_by_role("cell").first).to_have_text("24")
        await expect(more).to_be_visible()
        async with held_back(page.page, '"after":"') as held:
            await more.click()
            await until(lambda: held, "further rows are asked for")
            async with held_back(page.page, '"first":10') as again:  # none is answered while some have their points
                await score(visited, *events[1])
                await until(lambda: again, "the first rows are asked for again")
            await expect(rows.first.get_by_role("cell").last).to_have_text("2")
        await expect(rows).to_have_count(21)
        async with AsyncExitStack() as last:
            async with held_back(page.page, '"after":"') as held:
                await more.click()
                await until(lambda: held, "the last rows are asked for")  # after first ones that were still to be read
                again = await last.enter_async_context(held_back(page.page, '"first":20'))
                await score(visited, *events[2])
                await until(lambda: again, "the first rows are asked for again")
            before = len(again)
            await score(visited, *events[3])
            await until(lambda: len(again) > before, "the first rows are asked for once more")
        await expect(rows).to_have_count(24)
        for row, points in ((22, "4"), (23, "1")):
            await expect(rows.nth(row).get_by_role("cell").last).to_have_text(points)


OWN = 3
"""Of those who predict, the one who is wrong twice."""


async def score(visited: Visited, event: str, matches: list[str]) -> None:
    """Until all have their points."""
    visited.edit(LOCK_EVENT, event=event)
    for match in matches:
        visited.edit(RECORD_RESULT, match=match, winner=0, outcome="WON")
    visited.edit(SCORE_EVENT, event=event)
    asked = {"query": "query ($id: ID!) { event(id: $id) { state } }", "variables": {"id": event}}
    with visited.client("editor") as client:
        await until(
            lambda: client.post("/graphql", json=asked).json()["data"]["event"]["state"] == "SCORED",
            "all have their points",
            pause=0.1,
        )


async def is_sent_once(page: Page, button: Locator, text: str) -> None:
    """A request with this text, however quickly the button is pressed again."""
    async with (
        held_back(page, text) as held,
        page.expect_request(lambda one: text in (one.post_data or "")),
    ):
        await button.dblclick()
    assert len(held) == 1


async def test_words_that_are_due_are_reviewed_and_a_sound_that_fails_says_so(
    visited: Visited, browser: Browser
) -> None:
    """The meaning is shown when it is asked for; the next word follows each grade, and the last one ends the review.

    A grade that is pressed twice counts once. A review that is pressed twice begins once: a second answer, which may
    come late, would ask again for what was graded meanwhile. Where the session has ended, nothing was reviewed, and
    what was due is shown to nobody else. A word whose list is deleted meanwhile is passed over.
    """
    gone = visited.edit(CREATE_LIST, name="Smells", public=True, level=1)["list"]["id"]
    [smell] = visited.edit(ADD_WORDS, list=gone, words=[{"term": "smell", "definition": "soon gone"}])["words"]
    visited.edit(REVIEW_WORD, by="flo-abara", role="member", word=smell["id"], grade="AGAIN")
    words = visited.edit(CREATE_LIST, name="Tastes", public=True, level=1)["list"]["id"]
    terms = [
        {"term": f"taste {n}", "definition": f"meaning {n}", "audioUrl": "https://127.0.0.1:9/a.mp3"} for n in "ab"
    ]
    for each in visited.edit(ADD_WORDS, list=words, words=terms)["words"]:
        visited.edit(REVIEW_WORD, by="flo-abara", role="member", word=each["id"], grade="AGAIN")
    with visited.client("flo-abara") as client:
        await until(
            lambda: client.post("/graphql", json={"query": DUE_COUNT}).json()["data"]["viewer"]["dueCount"] == 3,
            "all words are due, after a minute",
            pause=1.0,
        )
    bare = f'<ringside-word list="{words}" quiz="no"></ringside-word>'
    async with visited.page(browser, bare, member="flo-abara") as page:
        await page.page.get_by_role("button", name="Review 3 words").click()
        await page.page.get_by_role("button", name="Back").click()
        await expect(page.page.get_by_role("heading", name="Word of the day")).to_be_focused()
        await page.page.evaluate(END_SESSION, f"{visited.service.url}/elements.js")
        await page.page.get_by_role("button", name="Review 3 words").click()
        await expect(page.page.get_by_role("button", name="Sign in")).to_be_visible()
    async with visited.page(browser, f'<ringside-word list="{words}"></ringside-word>', member="flo-abara") as page:
        element = page.page.locator("ringside-word")
        await element.get_by_role("button", name="Listen").click()
        await expect(element.locator(".note")).to_have_text("The sound cannot be played.")
        review = element.get_by_role("button", name="Review 3 words")
        member = await page.page.evaluate(END_SESSION, f"{visited.service.url}/elements.js")
        await review.click()
        await expect(element.locator(".note")).to_contain_text("Your sign-in has ended.")
        await expect(element.get_by_role("button", name="Sign in")).to_be_visible()
        await visited.sign_in(page, token=member["token"])
        await is_sent_once(page.page, review, '"variables":{}')
        await element.get_by_role("button", name="Show the meaning").click()
        await expect(element.get_by_text("soon gone")).to_be_visible()
        await page.page.evaluate(END_SESSION, f"{visited.service.url}/elements.js")
        await element.get_by_role("button", name="Good").click()
        await expect(element.get_by_role("button", name="Sign in")).to_be_visible()
        await expect(element.get_by_text("soon gone")).to_have_count(0)
        await expect(element.get_by_role("heading")).to_be_focused()
        await visited.sign_in(page, token=member["token"])
        await review.click()
        await element.get_by_role("button", name="Show the meaning").click()
        visited.edit(DELETE_LIST, list=gone)
        await element.get_by_role("button", name="Good").click()
        for _ in range(2):
            await expect(element.get_by_text(MEANING)).to_have_count(0)
            await element.get_by_role("button", name="Show the meaning").click()
            await expect(element.get_by_text(MEANING)).to_be_visible()
            assert await page.barriers("region", "page-has-heading-one", "landmark-one-main") == []
            await is_sent_once(page.page, element.get_by_role("button", name="Good"), '"grade"')
        await expect(element.locator(".note")).to_have_text("All reviewed. Well done.")
        await expect(element.get_by_role("heading")).to_be_focused()
        await expect(element.get_by_role("button", name=re.compile("^Review"))).to_have_count(0)


async def test_a_chinese_word_is_marked_as_one(visited: Visited, browser: Browser) -> None:
    """Otherwise it is read aloud, and its characters are drawn, as those of another language."""
    words = visited.edit(CREATE_LIST, name="Marked signs", public=True)["list"]["id"]
    word = {"simplified": "马", "traditional": "馬", "definition": "horse", "example": "马来了。"}
    visited.edit(ADD_WORDS, list=words, words=[word])
    marks = {"马": "zh-Hans", "馬": "zh-Hant", "马来了。": "zh-Hans"}
    async with visited.page(browser, f'<ringside-word list="{words}"></ringside-word>') as page:
        for text, language in marks.items():
            await expect(page.page.get_by_text(text, exact=True)).to_have_attribute("lang", language)
        assert await page.page.get_by_text("horse", exact=True).get_attribute("lang") is None
    admin = (await opened(visited, browser, "editor", "#/words")).page
    await admin.get_by_role("button", name="Marked signs", exact=True).click()
    row = admin.locator("li", has=admin.locator("#word-0"))
    for text in ("马", "馬"):
        await expect(row.locator("bdi", has_text=text)).to_have_attribute("lang", marks[text])


async def test_the_chosen_list_stays_chosen_when_a_private_one_comes_or_goes(
    visited: Visited, browser: Browser
) -> None:
    """Whose session ends sees the words of the public lists, and their own list again once they have signed in."""
    for name in ("Aardvarks", "Zebras"):
        made = visited.edit(CREATE_LIST, by="gus-abara", role="member", name=name)["list"]["id"]
        words = [{"term": f"{name}{more}", "definition": f"own{more}"} for more in ("", " 2", " 3")]
        visited.edit(ADD_WORDS, by="gus-abara", role="member", list=made, words=words)
    async with visited.page(browser, "<ringside-word></ringside-word>", member="gus-abara") as page:
        element = page.page.locator("ringside-word")
        chooser, term = element.get_by_label("List"), element.locator(".term").first
        await chooser.select_option(label="Zebras")
        await expect(term).to_have_text(re.compile("^Zebras"))
        member = await page.page.evaluate(END_SESSION, f"{visited.service.url}/elements.js")
        await element.get_by_role("button", name="Take a quiz").click()
        await expect(element.get_by_role("button", name="Sign in")).to_be_visible()
        await expect(term).to_be_visible()
        await expect(chooser.get_by_role("option", name="Zebras")).to_have_count(0)
        await visited.sign_in(page, token=member["token"])
        await expect(term).to_have_text(re.compile("^Zebras"))
        await chooser.select_option(label="At the table")
        shown = await term.inner_text()
        await page.page.evaluate(END_SESSION, f"{visited.service.url}/elements.js")
        await element.get_by_role("button", name="Take a quiz").click()
        await expect(element.get_by_role("button", name="Sign in")).to_be_visible()
        await expect(term).to_have_text(shown)


async def test_a_guest_s_name_is_marked_as_one(restartable: Restartable, browser: Browser) -> None:
    """Anybody may have chosen it."""
    given = {"product": "ringside-tee", "language": "en", "rating": 4, "body": "By a guest."}
    above = await write_as_guest(restartable, **given)
    for body in ("A reply.", "A reply to it."):
        above = await write_as_guest(restartable, product="ringside-tee", language="en", body=body, inReplyTo=above)
    async with restartable.page(browser, '<ringside-comments product="ringside-tee"></ringside-comments>') as page:
        reply = page.page.locator("ringside-comments article").filter(has_text="A reply to it.")
        await expect(reply).to_contain_text("to Ann guest")
        written = page.page.locator("ringside-comments article").filter(has_text="By a guest.")
        await expect(written.get_by_text("guest", exact=True)).to_be_visible()
        others = page.page.locator("ringside-comments article").filter(has_not_text=re.compile(r"By a guest\.|A reply"))
        await expect(others.first).to_be_visible()
        await expect(others.get_by_text("guest", exact=True)).to_have_count(0)


async def test_moderators_see_everywhere_that_a_name_is_a_guest_s(restartable: Restartable, browser: Browser) -> None:
    """In the journal, above a reply, among what a rule would hold, and above what they wrote before."""
    asked = await write_as_guest(restartable, product="marked", language="en", body="Who am I?")
    await write_as_guest(restartable, product="marked", language="en", body="Nobody.", inReplyTo=asked)
    page = (await opened(restartable, browser, "moderator", "#/comments/latest")).page
    reply = page.locator("article").filter(has_text="Nobody.")
    await expect(reply).to_contain_text("Reply to Ann (guest): Who am I?")
    await expect(reply.get_by_role("heading")).to_have_text("What Ann (guest) wrote")
    await page.get_by_role("link", name="Journal").click()
    await expect(page.get_by_role("listitem").filter(has_text="comment.posted Nobody.")).to_contain_text("· Ann guest")
    await page.get_by_role("link", name="Rules").click()
    await page.get_by_role("button", name="Add a rule").click()
    await page.get_by_label("Written by a guest").check()
    await page.get_by_label("Name", exact=True).fill("Guests")
    await page.get_by_role("button", name="Try on the latest comments").click()
    await expect(page.locator("article").filter(has_text="Nobody.")).to_contain_text("Ann guest ·")


async def write_as_guest(restartable: Restartable, **given: Any) -> str:
    """By another guest each time; the comment's id."""
    with restartable.new_session() as session:
        answer = session.post("/graphql", json={"query": POST_COMMENT, "variables": {"input": given}}).json()
    return str(answer["data"]["postComment"]["comment"]["id"])


async def test_a_subscription_is_asked_for_and_a_wrong_address_refused_at_its_field(
    restartable: Restartable, visited: Visited, browser: Browser
) -> None:
    """The element says that a link is on its way, unless it is cancelled. Where no emails are sent, it offers none.

    The keyboard then has its focus where it was before.
    """
    async with visited.page(browser, "<ringside-word></ringside-word>") as page:
        await expect(page.page.locator("ringside-word .entry")).to_be_visible()
        await expect(page.page.get_by_role("button", name="One a day by email")).to_have_count(0)
    async with restartable.page(browser, "<ringside-word></ringside-word>") as page:
        element = page.page.locator("ringside-word")
        ask = element.get_by_role("button", name="One a day by email")
        await ask.click()
        await element.get_by_role("button", name="Cancel").click()
        await expect(ask).to_be_focused()
        await ask.click()
        field = element.get_by_label("Your address")
        await field.fill("nobody@example.org")
        await page.page.context.set_offline(True)
        await element.get_by_role("button", name="Send me the link").click()
        await expect(element.locator(".note")).to_have_text(UNREACHABLE)
        await element.get_by_role("button", name="Cancel").click()
        await ask.click()
        await field.fill("ada@localhost")
        await element.get_by_role("button", name="Send me the link").click()
        await page.page.context.set_offline(False)
        await expect(element.get_by_role("alert")).to_be_visible()
        await expect(field).to_have_attribute("aria-invalid", "true")
        await field.fill("ada@example.org")
        await element.get_by_role("button", name="Send me the link").click()
        await expect(element.locator(".note")).to_have_text("A link is on its way to ada@example.org.")
        await expect(ask).to_be_focused()
    own = restartable.edit(CREATE_LIST, by="ada-abara", role="member", name="Mine")["list"]["id"]
    words = [{"term": "Haus", "definition": "house"}]
    restartable.edit(ADD_WORDS, by="ada-abara", role="member", list=own, words=words)
    async with restartable.page(browser, "<ringside-word></ringside-word>", member="ada-abara") as page:
        element = page.page.locator("ringside-word")
        await element.get_by_role("button", name="One a day by email").click()
        await element.get_by_label("List").select_option(label="Mine")
        await expect(element.locator(".term").first).to_have_text("Haus")
        await expect(element.get_by_label("Your address")).to_have_count(0)


async def test_a_league_is_joined_once_however_often_the_button_is_pressed(visited: Visited, browser: Browser) -> None:
    """Nobody who has just joined is told that they are a member already; each attempt counts. The league is shown then,
    however many blanks the page has in the name of the season.
    """
    made = visited.edit(CREATE_LEAGUE, by="captain", role="member", name="Twice", season="2026", entry="CODE")["league"]
    async with visited.page(browser, STANDINGS.replace("2026", " 2026 "), member="bo-abara") as page:
        element = page.page.locator("ringside-standings")
        await element.get_by_role("button", name="Join a league").click()
        await element.get_by_label("Code of the league").fill(made["code"])
        async with held_back(page.page, '"code":"') as held:
            await element.get_by_role("button", name="Join", exact=True).dblclick()
            await until(lambda: held, "it is sent")
        assert len(held) == 1
        await expect(element.locator(".note")).to_have_text("You are in Twice.")
        await expect(element.get_by_role("heading")).to_have_text("Twice")
        await element.get_by_role("button", name="Join a league").click()
        await expect(element.locator("#problem")).to_have_count(0)


async def test_who_signs_out_of_a_league_sees_the_standings_of_everybody(visited: Visited, browser: Browser) -> None:
    """Not that the league is closed to them, with no other choice."""
    async with visited.page(browser, STANDINGS, member="ada-abara") as page:
        element = page.page.locator("ringside-standings")
        await element.get_by_label("League").select_option(label="Ringside Regulars")
        await expect(element.get_by_role("heading")).to_have_text("Ringside Regulars")
        await page.page.evaluate(SIGN_OUT_HERE, f"{visited.service.url}/elements.js")
        await expect(element.get_by_role("heading")).to_have_text("Standings 2026")
        await expect(element.locator("tbody tr:not(.wait)")).to_have_count(10)


@pytest.mark.parametrize(
    ("entry", "said"), [("OPEN", "You are in The {}."), ("APPROVAL", "The {} knows of you: a captain decides.")]
)
async def test_a_league_that_needs_no_code_is_joined_where_it_is_shown(
    visited: Visited, browser: Browser, entry: str, said: str
) -> None:
    """By a page that names it. Its name stands in the choice of the reader's own leagues, too."""
    given = {"name": f"The {entry}", "season": "2026", "entry": entry}
    league = visited.edit(CREATE_LEAGUE, by="captain", role="member", **given)["league"]["id"]
    body = f'<ringside-standings season="2026" league="{league}"></ringside-standings>'
    async with visited.page(browser, body, member="ada-abara") as page:
        element = page.page.locator("ringside-standings")
        await expect(element.locator("option:checked")).to_have_text(f"The {entry}")
        assert await page.barriers("region", "page-has-heading-one", "landmark-one-main") == []
        join = element.get_by_role("button", name=f"Join The {entry}")
        await join.click()
        await expect(element.locator(".note")).to_have_text(said.format(entry))
        await expect(join).to_have_count(0)
        await expect(element.get_by_role("button", name="Join a league")).to_be_focused()


async def test_why_a_league_was_not_joined_is_not_said_of_the_code_of_another(
    restartable: Restartable, browser: Browser
) -> None:
    """In whose field nothing has been typed yet."""
    given = {"name": "Members", "season": "2026", "entry": "OPEN"}
    league = restartable.edit(CREATE_LEAGUE, by="captain", role="member", **given)["league"]["id"]
    body = f'<ringside-standings season="2026" league="{league}"></ringside-standings>'
    async with restartable.page(browser, body) as page:
        element = page.page.locator("ringside-standings")
        with restartable.new_session() as guest:
            await restartable.sign_in(page, token=guest.headers["authorization"].removeprefix("Bearer "))
            await element.get_by_role("button", name="Join Members").click()
            await expect(element.locator(".note")).to_contain_text("Sign in with an address")
            await expect(element.get_by_role("button", name="Sign in")).to_be_focused()
        await element.get_by_role("button", name="Join a league").click()
        await expect(element.get_by_label("Code of the league")).to_be_focused()
        await expect(element.get_by_label("Code of the league")).not_to_have_attribute("aria-invalid", "true")
        await restartable.sign_in(page, member="ada-abara")
        await expect(element.get_by_role("button", name="Join", exact=True)).to_be_visible()
        await expect(element.get_by_role("button", name="Sign in")).to_have_count(0)
        await expect(element.locator(".note")).to_have_text("")


async def test_a_visitor_of_a_private_league_is_led_to_sign_in(visited: Visited, browser: Browser) -> None:
    """Whose members alone see its standings."""
    given = {"name": "Private", "season": "2026", "entry": "CODE"}
    league = visited.edit(CREATE_LEAGUE, by="captain", role="member", **given)["league"]["id"]
    body = f'<ringside-standings season="2026" league="{league}"></ringside-standings>'
    async with visited.page(browser, body) as page:
        element = page.page.locator("ringside-standings")
        await expect(element.get_by_text("Only members of this league see its standings.")).to_be_visible()
        await expect(element.get_by_role("button", name="Sign in")).to_be_visible()
        await visited.sign_in(page, member="captain")
        await expect(element.get_by_role("heading")).to_have_text("Private")
        await expect(element.get_by_role("button", name="Sign in")).to_have_count(0)


async def test_a_code_that_no_league_has_is_refused_in_the_language_of_the_page(
    visited: Visited, browser: Browser
) -> None:
    """To a member. A visitor is led to sign in first. What was typed outlives a page that is left to sign in."""
    async with visited.page(browser, STANDINGS, language="de") as page:
        element = page.page.locator("ringside-standings")
        await expect(element.get_by_role("button", name="Anmelden")).to_be_visible()
        await visited.sign_in(page, member="ada-abara")
        await element.get_by_role("button", name="Einer Liga beitreten").click()
        await element.get_by_label("Code der Liga").fill("nobody's")
        ended = await page.page.evaluate(END_SESSION, f"{visited.service.url}/elements.js")
        await element.get_by_label("Code der Liga").press("Enter")
        await expect(element.locator(".note")).to_contain_text("Die Anmeldung ist abgelaufen.")
        assert not [url for url in page.requests if "refusals" in url]  # of what the element says in its own words
        await visited.sign_in(page, token=ended["token"])
        await element.get_by_label("Code der Liga").press("Enter")
        await expect(element.get_by_role("alert")).to_have_text(re.compile("^Keine Liga hat diesen Code"))
        ended = await page.page.evaluate(END_SESSION, f"{visited.service.url}/elements.js")
        await page.page.reload()  # as where it is left to sign in
        await element.get_by_role("button", name="Anmelden").wait_for()
        await visited.sign_in(page, token=ended["token"])
        await expect(element.get_by_label("Code der Liga")).to_have_value("nobody's")


async def test_a_league_is_joined_and_its_standings_chosen(visited: Visited, browser: Browser) -> None:
    """A code that is nobody's is refused at its field."""
    async with visited.page(browser, STANDINGS, member="ada-abara") as page:
        element = page.page.locator("ringside-standings")
        await expect(element.locator("tbody tr.own")).to_be_visible()
        await element.get_by_label("League").select_option(label="Ringside Regulars")
        await expect(element.get_by_role("heading")).to_have_text("Ringside Regulars")
        await element.get_by_role("button", name="Join a league").click()
        await element.get_by_label("Code of the league").fill("nobody's")
        await element.get_by_label("Code of the league").press("Enter")
        await expect(element.get_by_role("alert")).to_be_visible()
        assert await page.barriers("region", "page-has-heading-one", "landmark-one-main") == []
        await element.get_by_role("button", name="Cancel").press("Enter")
        await expect(element.get_by_role("button", name="Join a league")).to_be_focused()
        given = {"name": "Newcomers", "season": "2026", "entry": "CODE"}
        league = visited.edit(
            mutation("createLeague", "LeagueCreated", "league { code }"), by="bo-abara", role="member", **given
        )["league"]
        await page.page.keyboard.press("Enter")
        await page.page.keyboard.insert_text(league["code"])
        await page.page.keyboard.press("Enter")
        await expect(element.get_by_role("status")).to_have_text("You are in Newcomers.")
        await expect(element.get_by_role("heading")).to_have_text("Newcomers")
        await expect(element.get_by_role("button", name="Join a league")).to_be_focused()
