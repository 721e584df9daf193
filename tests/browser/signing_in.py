"""A service that signs people in, with its mailbox, its provider and a site that it lists; and each way to do so."""

import asyncio
import json
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.async_api import Page, expect

from tests.browser.pages import PATIENT
from tests.http_server import Answering, serving_http
from tests.mail_server import Mailbox, mail_server_beside
from tests.oidc_provider import CLIENT, SECRET, OidcProvider, oidc_provider
from tests.service import Service, running_service
from tests.sign_in import digits_in
from tests.waiting import until

ADA = "ada@example.org"
SITE_SECRET = "a secret that the site and the service share"
SITE_PAGE = """<!doctype html><title>Site</title><button id="open">Sign in</button><p id="who">nobody</p>
<script>
const service = '{service}', bearer = new URLSearchParams(location.search).get('token');
const tell = async token => {{
  const answer = await fetch(`${{service}}/graphql`, {{ method: 'POST',
    headers: {{ 'content-type': 'application/json', authorization: `Bearer ${{token}}` }},
    body: JSON.stringify({{ query: '{{ viewer {{ name }} }}' }}) }});
  document.getElementById('who').textContent = (await answer.json()).data?.viewer?.name ?? 'refused';
}};
let opened = null;
const back = `&returnTo=${{encodeURIComponent(location.origin + location.pathname)}}`;
document.getElementById('open').onclick = () => {{
  opened = open(`${{service}}/sign-in?origin=${{location.origin}}&state=mine${{back}}`, 'sign-in', 'width=400');
}};
addEventListener('message', ({{ origin, source, data }}) => {{
  if (origin === service && source === opened && data.state === 'mine') tell(data.token);
}});
const code = new URLSearchParams(location.hash.slice(1)).get('ringside-code');
if (bearer) tell(bearer);
const query = 'mutation ($input: SignInInput!) {{ signIn(input: $input) {{ ... on SignedIn {{ token }} }} }}';
if (code) fetch(`${{service}}/graphql`, {{ method: 'POST', headers: {{ 'content-type': 'application/json' }},
  body: JSON.stringify({{ query, variables: {{ input: {{ token: code }} }} }}) }})
  .then(answer => answer.json()).then(({{ data }}) => tell(data.signIn.token));
</script>
"""


class _Site(Answering):
    """A page that signs people in by the service's window; /severed cuts the tie to windows that it opens."""

    service = ""

    def do_GET(self) -> None:
        body = SITE_PAGE.format(service=self.service).encode()
        if self.path.startswith("/framing"):
            body = f'<!doctype html><iframe src="{self.service}/sign-in"></iframe>'.encode()
        headers = {"content-type": "text/html; charset=utf-8"}
        if self.path.startswith("/severed"):
            headers["cross-origin-opener-policy"] = "same-origin"
        self.answer(200, body, headers)


@contextmanager
def site(service: str) -> Iterator[str]:
    """A site whose pages use this service; its origin."""
    handler = type("Site", (_Site,), {"service": service})
    with serving_http(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as server:
        yield f"http://localhost:{server.server_port}"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class World:
    """The service, which can be started again; its mailbox; its provider; a site that it lists."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.mailbox = Mailbox()
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.provider: OidcProvider = stack.enter_context(oidc_provider())
        self.site = stack.enter_context(site(self.url))
        self.variables = {
            **PATIENT,
            "RINGSIDE_DATA": str(folder / "data"),
            "RINGSIDE_PUBLIC_URL": self.url,
            "RINGSIDE_SMTP_URL": stack.enter_context(mail_server_beside(self.mailbox, folder)),
            "RINGSIDE_CORS_ORIGINS": self.site,
            "RINGSIDE_GUESTS": "comments",
            "RINGSIDE_EMAILS_PER_ADDRESS": "0",
            "RINGSIDE_OIDC_ISSUER": self.provider.issuer,
            "RINGSIDE_OIDC_CLIENT_ID": CLIENT,
            "RINGSIDE_OIDC_CLIENT_SECRET": SECRET,
            "RINGSIDE_JWT_AUDIENCE": "ringside",
            "RINGSIDE_SITE_KEYS": json.dumps([{"issuer": "shop", "hs256": SITE_SECRET}]),
        }
        self._running = ExitStack()
        self.start()

    def start(self) -> None:
        arguments = ["--port", str(self.port), "--workers", "2"]
        self.service: Service = self._running.enter_context(running_service(self.variables, arguments))

    def stop(self) -> None:
        self._running.close()

    async def restart(self) -> None:
        await asyncio.to_thread(self.stop)
        await asyncio.to_thread(self.start)

    async def email(self, address: str, sent: int) -> Any:
        """The email that came to an address after so many."""

        def found() -> list[Any]:
            return [email for to, email in self.mailbox.emails[sent:] if to == address]

        return (await until(found, f"an email has come to {address}", pause=0.05))[0]


async def by_email(
    world: World, page: Page, address: str = ADA, between: Callable[[], Any] | None = None, *, is_new: bool = True
) -> None:
    """By a code. Who is new has no name yet, and gives none."""
    await give_code(world, page, address, between)
    if is_new:
        await page.get_by_role("button", name="Not now").click()


async def give_code(world: World, page: Page, address: str, between: Callable[[], Any] | None = None) -> None:
    """Ask for a code, and give its digits. Both as some programs copy them from a text that is read from the right."""
    sent = len(world.mailbox.emails)
    await page.get_by_label("Email address").fill(f"\u202a{address}\u202c")
    await page.get_by_role("button", name="Send me a code").click()
    await expect(page.get_by_text(f"We sent a code to \u2068{address}\u2069")).to_be_visible()
    digits = digits_in(await world.email(address, sent))
    if between is not None:
        await between()
    await expect(page.get_by_label("Code from the email")).to_be_focused()
    await page.get_by_label("Code from the email").fill(f"\u202a{digits[:3]} {digits[3:]}\u202c")
    await page.keyboard.press("Enter")


async def as_guest(_: World, page: Page, between: Callable[[], Any] | None = None) -> None:
    await page.get_by_label("Your name").fill("Ann")
    if between is not None:
        await between()
    await page.get_by_role("button", name="Go on as a guest").click()


async def by_provider(_: World, page: Page, between: Callable[[], Any] | None = None) -> None:
    await page.get_by_role("button", name=re.compile("Go on with 127.0.0.1")).click()
    await expect(page.get_by_role("button", name="Yes, it is me")).to_be_visible()
    if between is not None:
        await between()
    await page.get_by_role("button", name="Yes, it is me").click()


METHODS: Mapping[str, Any] = {"email": by_email, "guest": as_guest, "provider": by_provider}


async def violations(page: Page) -> list[str]:
    found: list[str] = await page.evaluate("violations")
    return found
