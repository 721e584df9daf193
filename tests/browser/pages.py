"""Page objects: the controls of a page, and the requests and errors of the browser."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    Route,
    ViewportSize,
    expect,
)

from tests.generated import ROOT
from tests.waiting import LONGEST

# Violations by the document are events; violations by a worker are errors on the console.
RECORD_VIOLATIONS = """
globalThis.violations = [];
addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
  violations.push(`${violatedDirective}: ${blockedURI}`));
"""

DRAWN = "new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(go))))"
"""What was changed before is on the screen, and its shifts of the layout are told."""

RECORD_SHIFTS = f"""{DRAWN}.then(() => {{ globalThis.shifts = [];
new PerformanceObserver((list) => list.getEntries().forEach(({{ value, sources, startTime }}) =>
  shifts.push([value, startTime, ...sources.map(({{ previousRect: {{ x, y }}, currentRect: now }}) =>
    `${{x}},${{y}} ${{now.width}}x${{now.height}} to ${{now.x}},${{now.y}}`)])))
  .observe({{ type: 'layout-shift' }}); }})"""
"""What moves on the page from now on without its user's doing."""

# Headless, and without requests of the browser's own.
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

VIEWPORT: ViewportSize = {"width": 1280, "height": 800}

TOO_SMALL = """[document, ...document.querySelectorAll('*')].flatMap((one) => {
  const root = one === document ? one : one.shadowRoot;
  return root ? [...root.querySelectorAll('a, button, summary, select, textarea, input')] : [];
}).map((one) => (/radio|checkbox/.test(one.type) && one.closest('label')) || one).filter((one) => {
  const { width, height } = one.getBoundingClientRect();
  return one.checkVisibility() && Math.min(width, height) < 44;
}).map((one) => one.outerHTML)"""
"""What a finger is to press, on the page and in its elements, and is smaller than 44 pixels."""

FOCUS_IS_SEEN = """() => {
  let root = document;
  while (root.activeElement.shadowRoot) root = root.activeElement.shadowRoot;
  const { x, y, width, height } = root.activeElement.getBoundingClientRect();
  return root.activeElement.contains(root.elementFromPoint(x + width / 2, y + height / 2));
}"""
"""Whether nothing stands before what has the focus, on the page or in an element."""

AXE = ROOT / "tests" / "node" / "node_modules" / "axe-core" / "axe.min.js"
"""What finds barriers in a page."""

BARRIERS = """async ([rules, beside]) => {
  const about = beside ? { exclude: [beside] } : document;
  const { violations } = await axe.run(about, { rules, resultTypes: ["violations"] });
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0].target}`);
}"""

LONGEST_WAIT = LONGEST * 1000
"""Milliseconds: enough for a busy machine on which a browser starts for the first time."""

PATIENT: Mapping[str, str] = {"RINGSIDE_REQUEST_TIMEOUT": "60", "RINGSIDE_HEADER_TIMEOUT": "60"}
"""Settings of a service whose requests outlast a stall of a busy machine, as those of tests without a browser."""


async def new_context(browser: Browser, **options: Any) -> BrowserContext:
    """Return a context of its own, without cookies and history, whose pages wait long enough for a busy machine.

    Its user wants no motion, so that no colour is half way to another when a page is looked at. A route is there from
    the start: what a page asks for in the moment in which its first one comes may pass it by.
    """
    context = await browser.new_context(reduced_motion="reduce", **options)
    context.set_default_timeout(LONGEST_WAIT)
    await context.route("https://nobody.invalid/", lambda route: route.abort())
    return context


class BrowserPage:
    """A page of the service in a tab of the browser."""

    def __init__(self, page: Page, origin: str) -> None:
        self.page = page
        self.origin = origin
        self.requests: list[str] = []
        self.errors: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("requestfailed", self._note_failure)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._add_message)

    def _add_message(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.errors.append(message.text)

    def _note_failure(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # by the page itself, or by a reload
            self.errors.append(f"{request.url}: {request.failure}")

    async def barriers(self, *without: str, beside: str | None = None) -> list[str]:
        """What axe finds that keeps somebody out, by its rules but for some, beside what a selector names."""
        if not AXE.exists():
            pytest.skip("axe is not here: make test")
        if await self.page.evaluate("typeof axe") == "undefined":
            await self.page.evaluate(AXE.read_text(encoding="utf-8"))
        rules = {name: {"enabled": False} for name in without}
        found: list[str] = await self.page.evaluate(BARRIERS, [rules, beside])
        return found

    async def too_small(self) -> list[str]:
        """What is too small for a finger."""
        found: list[str] = await self.page.evaluate(TOO_SMALL)
        return found

    async def violations(self) -> list[str]:
        """What the content security policy blocked."""
        violations: list[str] = await self.page.evaluate("violations")
        return violations


@asynccontextmanager
async def answered_last(page: Page, text: str) -> AsyncIterator[None]:
    """One request with this text is answered after those that are answered within; then the page has its answer."""
    released = asyncio.Event()

    def is_it(request: Request) -> bool:
        return text in f"{request.url} {request.post_data}"

    async def hold(route: Route) -> None:
        if is_it(route.request):
            await released.wait()
        await route.fallback()

    # It stays, as that of `held_back`.
    await page.route("**/graphql*", hold)
    async with page.expect_response(lambda response: is_it(response.request)) as answer:
        yield
        released.set()
    await (await answer.value).finished()
    # Nothing tells when the page has drawn it. A page that does so later than this passes without being right.
    await page.evaluate("new Promise((resolve) => setTimeout(resolve, 500))")


@asynccontextmanager
async def held_back(page: Page, text: str) -> AsyncIterator[list[Request]]:
    """Requests with this text, which are sent when the block ends; then the page has their answers."""
    released, over = asyncio.Event(), asyncio.Event()
    held: list[Request] = []

    async def hold(route: Route) -> None:
        if not over.is_set() and text in f"{route.request.url} {route.request.post_data}":
            held.append(route.request)
            await released.wait()
        await route.fallback()

    # It stays: when a page's last route goes, the driver seems to lose what the page sends at that moment.
    await page.route("**/graphql*", hold)
    yield held
    released.set()
    for request in held:
        response = await request.response()
        assert response
        await response.finished()
    # Nothing tells when the page has drawn it. A page that does so later than this passes without being right.
    await page.evaluate("new Promise((resolve) => setTimeout(resolve, 500))")
    over.set()


class ExplorerPage(BrowserPage):
    """The explorer at `/graphql`."""

    async def open(self) -> None:
        """Waits for the schema, with which the editor completes and marks mistakes, and for the language."""
        await self.page.add_init_script(RECORD_VIOLATIONS)
        async with self.page.expect_response(lambda response: response.request.method == "POST") as introspection:
            await self.page.goto(f"{self.origin}/graphql")
        answer = await introspection.value
        assert answer.ok
        await answer.finished()
        await self.know_language()

    async def know_language(self, editor: Locator | None = None) -> None:
        """Waits until the editor has its colours: before, it does not close brackets."""
        await expect((editor or self.query).locator("[class^=mtk]:not(.mtk1)").first).to_be_visible()

    @property
    def query(self) -> Locator:
        return self.page.get_by_label("Operation Editor").locator(".view-lines")

    @property
    def headers(self) -> Locator:
        return self.page.get_by_label("Headers").locator(".graphiql-editor:not(.hidden) .view-lines")

    @property
    def answer(self) -> Locator:
        return self.page.get_by_label("Result Window").locator(".view-lines")

    @property
    def suggestions(self) -> Locator:
        return self.page.locator(".suggest-widget.visible .monaco-list-row")

    async def show(self, tab: str) -> None:
        await self.page.get_by_role("tab", name=tab, exact=True).click()

    async def sign_in(self, name: str) -> None:
        await self.page.get_by_label("Signed in as").select_option(label=name)

    async def write(self, editor: Locator, text: str) -> None:
        """Replaces the text of an editor by typing: it closes brackets by itself and shows completions."""
        await self.know_language(editor)
        await editor.click()
        await self.page.keyboard.press("ControlOrMeta+A")
        await self.page.keyboard.type(text)

    async def run(self, operation: str | None = None) -> None:
        """Presses the button, and chooses the operation if the document has several."""
        # Leaving the editor closes its completions, which may cover the button.
        await self.page.get_by_role("heading", name="Ringside", exact=True).click()
        button = self.page.get_by_role("button", name=re.compile("Execute query"))
        # The editor parses the document shortly after a change; until then the button is that of the old operations.
        if operation is None:
            await expect(button).not_to_have_attribute("aria-haspopup", "menu")
            await button.click()
        else:
            await expect(button).to_have_attribute("aria-haspopup", "menu")
            await button.click()
            await self.page.get_by_role("menuitem", name=operation, exact=True).click()

    async def take_screenshot(self, path: Path) -> None:
        """Shows the documentation beside a query and its answer, for the README."""
        await self.page.set_viewport_size({"width": 1440, "height": 810})
        await self.page.get_by_label("Show Documentation Explorer").click()
        await self.page.get_by_role("link", name="Query", exact=True).click()
        await self.headers.click()
        await self.page.keyboard.press("ControlOrMeta+Home")
        await self.page.get_by_role("heading", name="Ringside", exact=True).click()
        # Scroll bars fade out within a second.
        await self.page.wait_for_timeout(2000)
        await self.page.screenshot(path=path)
