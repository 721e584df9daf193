"""The page that the link in an email opens, in a real browser, on a service with a mail server."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Browser, expect

from tests.browser.pages import PATIENT, RECORD_VIOLATIONS, VIEWPORT, BrowserPage, new_context
from tests.confirmations import REQUEST_SUBSCRIPTION, link_in
from tests.mail_server import Mailbox, mail_server_beside
from tests.service import Service, running_service
from tests.waiting import LONGEST, until

pytestmark = pytest.mark.asyncio(loop_scope="session")
LISTS = "{ wordLists(first: 100) { nodes { id name } } }"


@pytest.fixture(scope="module")
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture(scope="module")
def mailing_service(
    demo_data: Callable[[], str], tmp_path_factory: pytest.TempPathFactory, mailbox: Mailbox
) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("mailing")
    with mail_server_beside(mailbox, folder) as url:
        variables = {"RINGSIDE_DATA": demo_data(), "RINGSIDE_SMTP_URL": url, **PATIENT}
        with running_service(variables, ["--demo"]) as service:
            yield service


async def test_the_button_of_the_link_s_page_confirms(
    browser: Browser, mailing_service: Service, mailbox: Mailbox, screenshots: Path | None
) -> None:
    """Its policy allows the button and blocks nothing that the page needs; pressed again, it says that it was used."""
    async with httpx.AsyncClient(base_url=mailing_service.url, timeout=LONGEST) as http:
        lists = (await http.post("/graphql", json={"query": LISTS})).json()["data"]["wordLists"]["nodes"]
        given = {"email": "ada@example.org", "list": lists[0]["id"]}
        await http.post("/graphql", json={"query": REQUEST_SUBSCRIPTION, "variables": {"input": given}})
    await until(lambda: mailbox.emails, "the email is there, which is sent after the answer")
    [(_, email)] = mailbox.emails
    context = await new_context(browser, viewport=VIEWPORT, color_scheme="light", locale="en-GB")
    page = BrowserPage(await context.new_page(), mailing_service.url)
    await page.page.add_init_script(RECORD_VIOLATIONS)
    await page.page.goto(mailing_service.url + link_in(email))
    await expect(page.page.get_by_role("heading")).to_contain_text(lists[0]["name"])
    if screenshots is not None:
        await page.page.screenshot(path=screenshots / "confirm.png")
    button = page.page.get_by_role("button", name="Yes, send them")
    await button.focus()
    await page.page.keyboard.press("Enter")
    await expect(page.page.get_by_role("heading")).to_have_text("Done")
    await expect(page.page.get_by_text("ada@example.org")).to_be_visible()
    assert await page.violations() == []
    await page.page.goto(mailing_service.url + link_in(email))
    await button.click()
    await expect(page.page.get_by_role("heading")).to_have_text("This link was already used")
    if screenshots is not None:
        await page.page.screenshot(path=screenshots / "confirm-used.png")
    assert await page.violations() == []
    assert [error for error in page.errors if "410" not in error] == []
    # Its form names the origin null, by the page's Referrer-Policy. That is no page of another site.
    assert [line for line in mailing_service.lines if "CORS_ORIGINS" in line] == []
