"""Another site than the service's, and browsers that block its cookies as those of a third party.

The site is another origin, by its port, and another site, by its host name: the service is at 127.0.0.1, the page at
localhost.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from datastore.dynamo import iso
from resolvers.requests.context import utc_now
from tests.browser.pages import FLAGS, LONGEST_WAIT, PATIENT, RECORD_VIOLATIONS, VIEWPORT, BrowserPage, new_context
from tests.command import ROOT
from tests.http_server import Answering, serving_http
from tests.queries import UPDATE_BOARD
from tests.service import Service, running_service
from tests.waiting import LONGEST, until

ALLOWED: Mapping[str, object] = {"cookie_controls_mode": 0}
BLOCKED: Mapping[str, object] = {"cookie_controls_mode": 1}
ALL_BLOCKED: Mapping[str, object] = {"default_content_setting_values": {"cookies": 2}}
"""Preferences of Chromium for third-party cookies, and for all, with which storage is blocked, too."""

EXAMPLES = ROOT / "examples"
PLACE_OF_SERVICE = "https://api.example.com"
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css"}
PAGE = """<!doctype html>
<html lang="{language}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>A page of another site</title>
<script type="module" src="https://api.example.com/elements.js"></script>
{body}
</html>"""


@dataclass
class Site:
    """A site whose pages are given by the test, or are files of a folder. They name the service's address."""

    address: str = ""
    api: str = ""
    folder: Path = EXAMPLES
    pages: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    """Sent with each page."""

    def show(self, body: str, language: str = "en", **headers: str) -> str:
        """Make a page of these elements, and return its address."""
        path = f"/made/{len(self.pages)}"
        self.pages[path] = PAGE.format(body=body, language=language)
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.address + path


class _Handler(Answering):
    def __init__(self, site: Site, *arguments: object) -> None:
        self.site = site
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/cookie":
            self._cookie()
            return
        file = self.site.folder / path.strip("/")
        file = file / "index.html" if file.is_dir() else file
        text = self.site.pages.get(path) or (file.read_text(encoding="utf-8") if file.is_file() else None)
        if path == "/favicon.ico":
            text = ""
        if text is None:
            self.send_error(404)
            return
        kind = TYPES.get(file.suffix, TYPES[".html"])
        body = text.replace(PLACE_OF_SERVICE, self.site.api).encode()
        self.answer(200, body, {"content-type": kind, **self.site.headers})

    def _cookie(self) -> None:
        """Says which cookie it was sent, and sets the one that other sites' pages may send."""
        self.answer(
            200,
            self.headers.get("cookie", "none").encode(),
            {
                "content-type": "text/plain",
                "set-cookie": "third=party; SameSite=None; Secure; Path=/",
                "access-control-allow-origin": self.headers.get("origin", ""),
                "access-control-allow-credentials": "true",
            },
        )


@contextmanager
def running_site() -> Iterator[Site]:
    site = Site()
    with serving_http(ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, site))) as server:
        site.address = f"http://localhost:{server.server_port}"
        yield site


@asynccontextmanager
async def browser_with(chromium: str, profile: Path, cookies: Mapping[str, object]) -> AsyncIterator[BrowserContext]:
    """A browser with a profile of its own, in which cookies are ALLOWED, BLOCKED or ALL_BLOCKED."""
    preferences = profile / "Default" / "Preferences"
    preferences.parent.mkdir()
    preferences.write_text(json.dumps({"profile": cookies}))
    async with async_playwright() as playwright:
        context = await playwright.chromium.launch_persistent_context(
            profile,
            executable_path=chromium,
            args=FLAGS,
            viewport=VIEWPORT,
            locale="en-GB",
            timezone_id="UTC",
            timeout=LONGEST_WAIT,
        )
        context.set_default_timeout(LONGEST_WAIT)
        yield context
        await context.close()


# ── visits ──

END_SESSION = """async (address) => {
  const { session } = await import(address);
  const { member } = session;
  session.keep({ member: { ...member, token: member.token + 'x' } });
  return member;
}"""
"""With the address of the service's script on a page: the member's token counts no more. Returns what the page had."""
SIGN_OUT_HERE = "async (address) => (await import(address)).session.use(null)"


@dataclass
class Visited:
    """A service, and the site whose pages have its elements."""

    service: Service
    site: Site

    def client(self, user: str, *roles: str) -> httpx.Client:
        """A member's client, outside of any browser."""
        headers = {"authorization": f"Bearer {self._token(user, *roles)}"}
        return httpx.Client(base_url=self.service.url, headers=headers, timeout=LONGEST)

    def _token(self, user: str, *roles: str) -> str:
        return self.service.token(user, *(part for role in roles for part in ("--role", role)))

    def edit(self, query: str, *, by: str = "editor", role: str = "editor", **given: Any) -> dict[str, Any]:
        """The payload of a mutation by an editor, or by somebody else; it is not refused."""
        payload = self.send(query, by=by, role=role, **given)
        assert "code" not in payload, payload
        return payload

    def send(self, query: str, *, by: str = "editor", role: str = "editor", **given: Any) -> dict[str, Any]:
        """The payload of a mutation, or its refusal."""
        with self.client(by, role) as client:
            answer = client.post("/graphql", json={"query": query, "variables": {"input": given}}).json()
        assert "errors" not in answer, answer["errors"]
        (payload,) = answer["data"].values()
        return dict(payload)

    async def change_hours(self, board: str, name: str) -> None:
        """To a moment that is past when this returns: a change is to be known everywhere before it counts.

        A busy machine may take so long to send it that it is refused as too near.
        """

        def next_moment() -> datetime | None:
            moment = utc_now() + timedelta(seconds=20)
            refused = "code" in self.send(UPDATE_BOARD, slug=board, **{name: iso(moment)})
            return None if refused else moment

        moment = await until(next_moment, f"{name} is changed")
        await until(lambda: utc_now() > moment, "the moment is past")

    async def sign_in(self, page: BrowserPage, *, member: str = "", token: str | None = None) -> None:
        """On a page that is shown already, as after a sign-in in the window."""
        kept = {"token": token or self._token(member), "expiresAt": "2100-01-01"}
        script = "async ([address, kept]) => (await import(address)).session.use(kept)"
        await page.page.evaluate(script, [f"{self.service.url}/elements.js", kept])

    @asynccontextmanager
    async def page(
        self,
        browser: Browser,
        body: str,
        *,
        member: str | None = None,
        roles: Sequence[str] = (),
        language: str = "en",
        settable_clock: bool = False,
        **options: Any,
    ) -> AsyncIterator[BrowserPage]:
        """A page of the site with these elements, for a new visitor or for a member.

        `page.clock` can move a settable clock forward, and what the page waits for with it.
        """
        context = await new_context(
            browser, **{"viewport": VIEWPORT, "locale": "en-GB", "timezone_id": "UTC", **options}
        )
        page = BrowserPage(await context.new_page(), self.site.address)
        await page.page.add_init_script(RECORD_VIOLATIONS)
        if settable_clock:
            await page.page.clock.install()
        if member:
            minted = self._token(member, *roles)
            token = json.dumps({"member": {"token": minted, "expiresAt": "2100-01-01"}})
            stored = f"localStorage.getItem(key) ?? localStorage.setItem(key, {json.dumps(token)})"
            await page.page.add_init_script(f"const key = 'ringside {self.service.url}/'; {stored}")
        await page.page.goto(self.site.show(body, language))
        yield page
        await context.close()


@contextmanager
def visited_demo(data: str, **settings: str) -> Iterator[Visited]:
    """A service with a folder of demo data and these settings, and a site whose pages may use it."""
    with running_site() as site:
        variables = {"RINGSIDE_DATA": data, "RINGSIDE_CORS_ORIGINS": site.address, **PATIENT, **settings}
        with running_service(variables, ["--demo"]) as service:
            site.api = service.url
            yield Visited(service, site)


def _emails_to(visited: Visited, address: str) -> list[str]:
    """The texts that the demo shows of what was sent to an address."""
    emails = httpx.get(f"{visited.service.url}/sign-in/emails", timeout=LONGEST).json()
    return [email["text"] for email in emails if email["to"] == address]


async def sign_in_by_email(visited: Visited, page: Page, address: str) -> None:
    """On the service's own page, with the email that its demo shows; who has no name yet gives none."""
    before = _emails_to(visited, address)
    await page.get_by_label("Email address").fill(address)
    await page.get_by_role("button", name="Send me a code").click()
    await expect(page.get_by_label("Code from the email")).to_be_focused()
    await until(lambda: _emails_to(visited, address) != before, "the email is there", pause=0.1)
    (email,) = (text for text in _emails_to(visited, address) if text not in before)
    digits = re.search(r"^\d{6}$", email, re.MULTILINE)
    assert digits is not None
    await page.get_by_label("Code from the email").fill(digits[0])
    await page.keyboard.press("Enter")
    signed_in = page.get_by_role("heading", name=re.compile("You are signed in|Administration"))
    not_now = page.get_by_role("button", name="Not now")
    await expect(signed_in.or_(not_now)).to_be_visible()
    if await not_now.is_visible():
        await not_now.click()
    await expect(signed_in).to_be_visible()
