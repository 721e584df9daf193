"""A visit to the explorer: what a person sees and does there, and what the browser did behind the scenes."""

import re
from pathlib import Path

from playwright.async_api import ConsoleMessage, Locator, Page, expect

# The document's own violations are events, from the first element on; a worker's are errors on the console.
LISTEN = """
globalThis.violations = [];
addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
  violations.push(`${violatedDirective}: ${blockedURI}`));
"""


class Visit:
    """One tab of the browser."""

    def __init__(self, page: Page, origin: str) -> None:
        self.page = page
        self.origin = origin
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("requestfailed", lambda request: self.complaints.append(f"{request.url}: {request.failure}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._heard)

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    async def arrive(self) -> None:
        """There when the schema is: from then on the editor completes and marks mistakes."""
        await self.page.add_init_script(LISTEN)
        async with self.page.expect_response(lambda response: response.request.method == "POST") as introspection:
            await self.page.goto(f"{self.origin}/graphql")
        assert (await introspection.value).ok
        await expect(self.query).to_be_visible()

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

    async def write(self, editor: Locator, text: str) -> None:
        """Replaces what is in an editor, as typed by hand: brackets close themselves, completions pop up."""
        await editor.click()
        await self.page.keyboard.press("ControlOrMeta+A")
        await self.page.keyboard.type(text)

    async def run(self, operation: str | None = None) -> None:
        """Presses the button, and picks the operation where a document has several."""
        # Leaving the editor closes its completions, which may lie on the button.
        await self.page.get_by_text("Ringside", exact=True).click()
        button = self.page.get_by_role("button", name=re.compile("Execute query"))
        if operation is None:
            # The editor reads the document a moment after it was changed; until then the old operations are offered.
            await expect(button).not_to_have_attribute("aria-haspopup", "menu")
        await button.click()
        if operation is not None:
            await self.page.get_by_role("menuitem", name=operation, exact=True).click()

    async def picture(self, path: Path) -> None:
        """For the README: the schema's description beside a query and its answer."""
        await self.page.set_viewport_size({"width": 1440, "height": 810})
        await self.page.get_by_label("Show Documentation Explorer").click()
        await self.page.get_by_role("link", name="Query", exact=True).click()
        await self.headers.click()
        await self.page.keyboard.press("ControlOrMeta+Home")
        await self.page.get_by_text("Ringside", exact=True).click()
        # Scroll bars fade out in a second.
        await self.page.wait_for_timeout(2000)
        await self.page.screenshot(path=path)

    async def violations(self) -> list[str]:
        """What the content security policy stopped."""
        found: list[str] = await self.page.evaluate("violations")
        return found
