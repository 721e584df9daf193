"""Signing in by the elements of another site's page that has no window of the service, or loses it."""

import re

import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.browser.pages import BrowserPage
from tests.browser.sites import Visited, sign_in_by_email
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

BODY = "<ringside-sign-in></ringside-sign-in><ringside-board></ringside-board>"
GO_ON = re.compile("Go on as .* on ")

HAND_OVER = """async (returnTo) => {
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch('/sign-in/done', { method: 'POST', headers, body: JSON.stringify({ returnTo }) });
  return (await answer.json()).location;
}"""


STORED_MEMBER = """() => {
  const [key] = Object.keys(localStorage).filter((each) => each.startsWith('ringside http'));
  return JSON.parse(localStorage.getItem(key))?.member;
}"""


async def is_signed_in(page: Page) -> None:
    await expect(page.locator("ringside-sign-in")).to_contain_text("Signed in as")
    await expect(page.locator("ringside-sign-in").get_by_role("button", name="Sign out")).to_be_visible()


async def test_a_page_whose_policy_cuts_the_tie_to_its_window_is_signed_in_by_a_code(
    visited: Visited, browser: Browser
) -> None:
    """The window is led back to the page it came from, and the page itself follows."""
    async with visited.page(browser, "") as page:
        address = visited.site.show(BODY, cross_origin_opener_policy="same-origin")
        await page.page.goto(f"{address}?in=a|b")
        async with page.page.context.expect_page() as opening:
            await page.page.locator("ringside-sign-in").get_by_role("button", name="Sign in").click()
        window = await opening.value
        await sign_in_by_email(visited, window, "severed@example.org")
        await window.get_by_role("button", name=GO_ON).click()
        await is_signed_in(window)
        assert window.url == f"{address}?in=a%7Cb"
        await is_signed_in(page.page)
        assert page.errors == []


async def test_a_page_that_can_open_no_window_is_left_and_led_back_to(visited: Visited, browser: Browser) -> None:
    """As within other programs, also where its links lead to another site. What was begun as a visitor goes on."""
    async with visited.page(browser, "") as page:
        await page.page.add_init_script("window.open = () => null")
        address = visited.site.show(f'<base href="https://www.example.com/">{BODY}')
        await page.page.goto(address)
        await page.page.locator("ringside-board").get_by_role("button", name="Vote for").first.click()
        progress = page.page.locator("ringside-board .progress")
        await expect(progress).to_contain_text("Pairs seen: 1 of 276")
        await page.page.locator("ringside-sign-in").get_by_role("button", name="Sign in").click()
        await sign_in_by_email(visited, page.page, "within@example.org")
        await page.page.get_by_role("button", name=GO_ON).click()
        await is_signed_in(page.page)
        await expect(progress).to_contain_text("Pairs seen: 1 of 276")
        assert page.page.url == address


async def test_a_code_is_taken_although_its_request_is_lost_once(visited: Visited, browser: Browser) -> None:
    """It counts for a minute, and nobody would be told why they are not signed in."""
    async with visited.page(browser, "") as page:
        await page.page.add_init_script("window.open = () => null")
        await page.page.goto(visited.site.show(BODY))
        await page.page.locator("ringside-sign-in").get_by_role("button", name="Sign in").click()
        await sign_in_by_email(visited, page.page, "lost@example.org")
        lost = await lose_first(page.page, r'"variables":\{"token":"[^"]+"\}')
        await page.page.get_by_role("button", name=GO_ON).click()
        await is_signed_in(page.page)
        assert lost == [None]


async def test_what_a_visitor_voted_goes_on_although_its_request_is_lost_once(
    visited: Visited, browser: Browser
) -> None:
    """Every pair would come again. No page of the site acts as the member before that is done."""
    async with visited.page(browser, BODY) as page:
        await page.page.locator("ringside-board").get_by_role("button", name="Vote for").first.click()
        progress = page.page.locator("ringside-board .progress")
        await expect(progress).to_contain_text("Pairs seen: 1 of 276")
        lost = await lose_first(page.page, r'"variables":\{"visit":')
        async with page.page.context.expect_page() as opening:
            await page.page.locator("ringside-sign-in").get_by_role("button", name="Sign in").click()
        window = await opening.value
        await sign_in_by_email(visited, window, "window@example.org")
        await window.get_by_role("button", name=GO_ON).click()
        await is_signed_in(page.page)
        await expect(progress).to_contain_text("Pairs seen: 1 of 276")
        assert lost == [None]


async def test_the_name_leads_to_the_account_and_follows_what_is_changed_there(
    visited: Visited, browser: Browser
) -> None:
    """In a window like the one for signing in, in the element's language; as often as they come back."""
    async with visited.page(browser, "<ringside-sign-in></ringside-sign-in>") as page:
        element = page.page.locator("ringside-sign-in")
        async with page.page.context.expect_page() as opening:
            await element.get_by_role("button", name="Sign in").click()
        window = await opening.value
        await sign_in_by_email(visited, window, "renamed@example.org")
        await window.get_by_role("button", name=GO_ON).click()
        await is_signed_in(page.page)
        async with page.page.context.expect_page() as opening:
            await element.get_by_role("link", name=re.compile("^Member")).click()
        window = await opening.value
        for name in ("Rena", "Renate"):
            await window.get_by_role("textbox", name="Name", exact=True).fill(name)
            await window.keyboard.press("Enter")
            await expect(window.get_by_role("heading", level=1)).to_contain_text(name)
            if name == "Renate":
                await window.close()
            await page.page.evaluate("dispatchEvent(new Event('focus'))")
            await expect(element.get_by_role("link", name=name, exact=True)).to_be_visible()
        assert await page.barriers("landmark-one-main", "page-has-heading-one", "region") == []


async def test_the_name_of_whom_the_site_itself_has_signed_in_leads_nowhere(visited: Visited, browser: Browser) -> None:
    """The service's page knows nothing of them: who they are there would be somebody else, or nobody."""
    async with visited.page(browser, "<ringside-sign-in></ringside-sign-in>", member="bo-abara") as page:
        element = page.page.locator("ringside-sign-in")
        await expect(element).to_contain_text("Signed in as Bo Abara")
        await expect(element.get_by_role("link")).to_have_count(0)


async def lose_first(page: Page, pattern: str) -> list[str | None]:
    """Of the requests that have this, the first is lost. Returns which member other pages knew of at that moment."""
    lost: list[str | None] = []

    async def lose(route: Route) -> None:
        if lost or not re.search(pattern, route.request.post_data or ""):
            await route.fallback()
            return
        lost.append(await page.evaluate(STORED_MEMBER))
        await route.abort()

    await page.route("**/graphql", lose)
    return lost


async def test_no_empty_window_stays_open_where_nobody_can_sign_in(visited: Visited, browser: Browser) -> None:
    """Without a connection. With one, the same button opens it again."""
    async with visited.page(browser, "<ringside-sign-in></ringside-sign-in>") as page:
        button = page.page.locator("ringside-sign-in").get_by_role("button", name="Sign in")
        await button.wait_for()
        for is_offline in (True, False):
            await page.page.context.set_offline(is_offline)
            async with page.page.context.expect_page() as opening:
                await button.click()
            window = await opening.value
            if is_offline:
                await until(window.is_closed, "the window is closed")
            else:
                await expect(window.get_by_label("Email address")).to_be_visible()


async def test_the_window_speaks_the_language_of_the_element_whose_button_opened_it(
    visited: Visited, browser: Browser
) -> None:
    """Whatever the browser prefers."""
    async with visited.page(browser, f'{BODY}<ringside-sign-in lang="es"></ringside-sign-in>', language="de") as page:
        for button, heading in (("Anmelden", "Auf "), ("Iniciar sesión", "Iniciar sesión en ")):
            async with page.page.context.expect_page() as opening:
                await page.page.locator("ringside-sign-in").get_by_role("button", name=button).click()
            await expect((await opening.value).get_by_role("heading")).to_have_text(re.compile(f"^{heading}"))


async def test_a_code_that_nobody_has_asked_for_signs_nobody_in(visited: Visited, browser: Browser) -> None:
    """Somebody who leads people here with their own code would have them act in their name."""
    async with visited.page(browser, "") as page:
        address = visited.site.show(BODY)
        await page.page.goto(f"{address}#ringside-code={await a_code(visited, browser)}")
        await page.page.wait_for_url(address)
        await expect(page.page.locator("ringside-sign-in")).to_contain_text("You are not signed in.")


async def a_code(visited: Visited, browser: Browser) -> str:
    """A code with which a page of the site signs somebody in."""
    async with visited.page(browser, "") as page:
        own = BrowserPage(page.page, visited.service.url)
        await own.page.goto(f"{visited.service.url}/sign-in")
        await sign_in_by_email(visited, own.page, "other@example.org")
        location: str = await own.page.evaluate(HAND_OVER, f"{visited.site.address}/")
        return location.partition("=")[2]
