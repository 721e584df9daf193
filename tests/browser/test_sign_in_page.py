"""Signing in with Chromium: each method, on the service's own page and from a page of another site.

The service is two processes behind one address, which are stopped and started again between the code and the sign-in.
The other site is another origin and another site: the service is at 127.0.0.1, its pages at localhost.
"""

import re
import time
from collections.abc import Callable
from pathlib import Path

import jwt
import pytest
from playwright.async_api import Browser, BrowserContext, Route, expect

from server.execution.documents import write_manifest
from tests.browser.pages import PATIENT, VIEWPORT, ExplorerPage, new_context
from tests.browser.signing_in import ADA, METHODS, SITE_SECRET, World, as_guest, by_email, by_provider, site, violations
from tests.browser.sites import ALL_BLOCKED, Visited, browser_with, running_site, sign_in_by_email
from tests.service import running_service
from tests.sign_in import digits_in, link_in

pytestmark = pytest.mark.asyncio(loop_scope="session")

ERASE = """async () => {
  const ask = async (query, variables) => (await (await fetch('/graphql', { method: 'POST',
    headers: { 'content-type': 'application/json' }, body: JSON.stringify({ query, variables }) })).json()).data;
  const { viewer } = await ask('{ viewer { id } }');
  return (await ask(`mutation ($user: ID!) { eraseMember(input: { user: $user, contributions: REMOVE }) {
    __typename } }`, { user: viewer.id })).eraseMember.__typename;
}"""
OWN_LOGIN = """async ([address, token]) => {
  const { session } = await import(address);
  addEventListener('ringside-sign-in', (event) => {
    event.preventDefault();
    session.use({ token, expiresAt: '2100-01-01T00:00:00Z' });
  });
  document.body.innerHTML = '<ringside-comments product="shop"></ringside-comments>';
}"""


@pytest.mark.parametrize("method", METHODS)
async def test_each_method_signs_in_on_the_service_s_own_page(
    world: World, context: BrowserContext, method: str
) -> None:
    """And leads back to where one came from; the session survives a reload, and ends with a press of a button."""
    page = await context.new_page()
    await page.goto(f"{world.url}/sign-in?returnTo=/sign-in%3Flanguage=en")
    await METHODS[method](world, page)
    await expect(page.get_by_role("heading", name=re.compile("You are signed in as"))).to_be_visible()
    await page.reload()
    await expect(page.get_by_role("heading", name=re.compile("You are signed in as"))).to_be_visible()
    (cookie,) = [each for each in await context.cookies() if each["name"] == "ringside_session"]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Lax")
    await page.get_by_role("button", name="Sign out", exact=True).click()
    await expect(page.get_by_role("status")).to_have_text("You are signed out.")
    assert not [each for each in await context.cookies() if each["name"] == "ringside_session"]
    assert await violations(page) == []


@pytest.mark.parametrize("method", ["guest", "provider"])
async def test_the_service_may_be_started_again_before_the_last_press(
    world: World, context: BrowserContext, method: str
) -> None:
    """While the provider's page is open, or the form with a guest's name."""
    page = await context.new_page()
    await page.goto(f"{world.url}/sign-in?language=en")
    await METHODS[method](world, page, between=world.restart)
    await expect(page.get_by_role("heading", name=re.compile("You are signed in as"))).to_be_visible()


async def test_the_service_may_be_started_again_between_code_and_sign_in(world: World, context: BrowserContext) -> None:
    """Nothing that a process remembers is needed; nor does a reload of the page lose the request."""
    page = await context.new_page()
    await page.goto(f"{world.url}/sign-in?language=en")

    async def between() -> None:
        await world.restart()
        await page.reload()

    await by_email(world, page, "restarted@example.org", between)
    await expect(page.get_by_role("heading", name=re.compile("You are signed in as"))).to_be_visible()


async def test_digits_that_are_not_six_are_no_guess(world: World, context: BrowserContext) -> None:
    """Five wrong guesses end a code: Enter in a field that is empty, or not filled yet, is none of them."""
    page = await context.new_page()
    await page.goto(f"{world.url}/sign-in?language=en")

    async def between() -> None:
        for typed in ("", "1", "12345", "1234567", "12345a"):
            await page.get_by_label("Code from the email").fill(typed)
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("alert")).to_have_text(re.compile("This is not the code"))
            await expect(page.get_by_role("status")).to_have_text("")

    await by_email(world, page, "hasty@example.org", between)
    await expect(page.get_by_role("heading", name=re.compile("You are signed in as"))).to_be_visible()


async def test_a_page_whose_texts_do_not_arrive_says_so(world: World, context: BrowserContext) -> None:
    """It has no others, and would stay empty."""
    page = await context.new_page()
    await page.route("**/sign-in/texts/*", lambda route: route.abort())
    await page.goto(f"{world.url}/sign-in")
    await expect(page.get_by_role("status")).to_have_text("This page did not load. Please load it again.")
    await page.unroute("**/sign-in/texts/*")
    await page.reload()
    await expect(page.get_by_label("Email address")).to_be_focused()


async def test_a_browser_that_blocks_cookies_is_told_so_by_digits_and_by_link(
    world: World, whole_chromium: str, tmp_path: Path
) -> None:
    """It blocks storage, too, without which the page signs nobody in but still says why."""
    async with browser_with(whole_chromium, tmp_path, ALL_BLOCKED) as context:
        page = await context.new_page()
        await page.goto(f"{world.url}/sign-in?language=en")
        await by_email(world, page, "blocking@example.org", is_new=False)
        await expect(page.locator("#number-error")).to_have_text(re.compile("your browser kept no cookie"))
        sent = len(world.mailbox.emails)
        await page.get_by_role("button", name="Use another address").click()
        await page.get_by_label("Email address").fill("blocking@example.org")
        await page.keyboard.press("Enter")
        email = await world.email("blocking@example.org", sent)
        await page.goto(f"{world.url}/sign-in?link={link_in(email)}")
        await page.get_by_role("button", name=re.compile("Sign in as")).click()
        await expect(page.get_by_role("status")).to_have_text(re.compile("your browser kept no cookie"))
        await expect(page.get_by_label("Email address")).to_be_visible()


async def test_people_sign_in_where_only_trusted_documents_run(
    demo_data: Callable[[], str], tmp_path: Path, context: BrowserContext
) -> None:
    """By each method of the page itself, with a proof of work, and out again: the service knows its own documents."""
    manifest = tmp_path / "manifest.json"
    manifest.write_text(write_manifest([]), encoding="utf-8")
    variables = {
        **PATIENT,
        "RINGSIDE_DATA": demo_data(),
        "RINGSIDE_TRUSTED_DOCUMENTS": str(manifest),
        "RINGSIDE_GUESTS": "comments",
        "RINGSIDE_CHALLENGE": "guests",
    }
    with running_service(variables, ["--demo"]) as service, running_site() as other:
        page = await context.new_page()
        await page.goto(f"{service.url}/sign-in?language=en")
        await page.get_by_label("Your name").fill("Ann")
        await page.get_by_role("button", name="Go on as a guest").click()
        await expect(page.get_by_role("heading", name="You are signed in as \u2068Ann\u2069")).to_be_visible()
        await page.get_by_role("button", name="Sign out", exact=True).click()
        await sign_in_by_email(Visited(service, other), page, ADA)
        await expect(page.get_by_role("heading", name="Leagues")).to_be_visible()
    assert await violations(page) == []


async def test_the_link_signs_in_the_browser_that_opens_it_and_the_digits_do_not_any_more(
    world: World, context: BrowserContext, browser: Browser
) -> None:
    """Its page names the address and waits for a press, since mail scanners open links too."""
    page = await context.new_page()
    await page.goto(f"{world.url}/sign-in?language=en")
    sent = len(world.mailbox.emails)
    await page.get_by_label("Email address").fill("linked@example.org")
    await page.keyboard.press("Enter")
    email = await world.email("linked@example.org", sent)
    other = await new_context(browser, locale="en-GB")
    link = await other.new_page()
    for _ in range(3):  # by scanners
        await link.goto(f"{world.url}/sign-in?link={link_in(email)}")
        await expect(link.get_by_role("button", name="Sign in as \u2068linked@example.org\u2069")).to_be_visible()
    assert link.url == f"{world.url}/sign-in"
    await link.get_by_role("button", name=re.compile("Sign in as")).click()
    await link.get_by_role("button", name="Not now").click()
    await expect(link.get_by_role("heading", name=re.compile("You are signed in as"))).to_be_visible()
    await page.get_by_label("Code from the email").fill(digits_in(email))
    await page.keyboard.press("Enter")
    await expect(page.locator("#number-error")).to_have_text(re.compile("used already"))
    await other.close()


@pytest.mark.parametrize("means", ["code", "link"])
async def test_who_was_signed_in_by_a_press_whose_last_answer_was_lost_presses_again(
    world: World, context: BrowserContext, means: str
) -> None:
    """A code and a link count once: the second press asks only who is signed in."""
    page = await context.new_page()
    await page.goto(f"{world.url}/sign-in?language=en")
    sent, address = len(world.mailbox.emails), f"lost-{means}@example.org"
    await page.get_by_label("Email address").fill(address)
    await page.keyboard.press("Enter")
    email = await world.email(address, sent)
    press = page.get_by_role("button", name="Sign in", exact=means == "code")
    if means == "link":
        await page.goto(f"{world.url}/sign-in?link={link_in(email)}")
    else:
        await page.get_by_label("Code from the email").fill(digits_in(email))

    async def lose(route: Route) -> None:
        await (route.abort() if "query Viewer" in str(route.request.post_data) else route.continue_())

    await page.route("**/graphql", lose)
    await press.click()
    await expect(page.get_by_text("That did not work")).to_be_visible()
    await page.unroute("**/graphql")
    await press.click()
    await expect(page.get_by_role("button", name="Not now")).to_be_visible()


async def test_a_page_that_cannot_ask_who_is_signed_in_says_so(world: World, context: BrowserContext) -> None:
    """A member would take the ways to sign in for being signed out."""
    page = await context.new_page()
    await page.route("**/graphql", lambda route: route.abort())
    await page.goto(f"{world.url}/sign-in?language=en")
    await expect(page.get_by_label("Email address")).to_be_visible()
    await expect(page.get_by_role("status")).to_contain_text("That did not work")


async def test_who_has_to_confirm_a_sign_in_is_asked_although_there_is_a_session(
    world: World, context: BrowserContext
) -> None:
    """For what asks for a sign-in of the last minutes, and is led back there."""
    page = await context.new_page()
    await page.goto(f"{world.url}/sign-in?language=en")
    await by_email(world, page, "again@example.org")
    await expect(page.get_by_role("heading", name=re.compile("You are signed in as"))).to_be_visible()
    await page.goto(f"{world.url}/sign-in?again=1&language=en&returnTo=/sign-in%3Flanguage=en")
    await expect(page.get_by_role("status")).to_have_text("Please confirm that it is you: sign in again.")
    await by_email(world, page, "again@example.org", is_new=False)
    await expect(page.get_by_role("heading", name=re.compile("You are signed in as"))).to_be_visible()


async def test_who_was_erased_is_told_so(world: World, context: BrowserContext) -> None:
    """And not to try again in a moment, which would not help."""
    page = await context.new_page()
    await page.goto(f"{world.url}/sign-in?language=en")
    await by_email(world, page, "erased@example.org")
    await expect(page.get_by_role("heading", name=re.compile("You are signed in as"))).to_be_visible()
    assert await page.evaluate(ERASE) == "MemberErasure"
    await context.clear_cookies()
    await page.goto(f"{world.url}/sign-in?language=en")
    await by_email(world, page, "erased@example.org", is_new=False)
    await expect(page.locator("#number-error")).to_have_text(re.compile("This account was erased"))


async def test_who_signs_in_on_a_page_that_may_sign_nobody_in_is_not_told_of_an_erasure(
    world: World, context: BrowserContext
) -> None:
    """Behind a proxy that is not trusted, the service takes its own page for another's, and its owner can mend it."""
    page = await context.new_page()

    async def over_tls(route: Route) -> None:
        headers = {**await route.request.all_headers(), "origin": world.url.replace("http", "https")}
        await route.fulfill(response=await route.fetch(headers=headers))

    await page.route("**/graphql", over_tls)
    await page.goto(f"{world.url}/sign-in?language=en")
    await by_email(world, page, "newcomer@example.org", is_new=False)
    await expect(page.locator("#number-error")).to_have_text(re.compile("This page may not sign anybody in"))


async def test_a_member_goes_on_as_a_guest(world: World, context: BrowserContext) -> None:
    """As somebody else, so they are signed out."""
    page = await context.new_page()
    await page.goto(f"{world.url}/sign-in?language=en")
    await by_email(world, page, "carl@example.org")
    await page.get_by_role("button", name="Sign in as somebody else").click()
    await as_guest(world, page)
    await expect(page.get_by_role("heading", name="You are signed in as \u2068Ann\u2069")).to_be_visible()


async def test_a_member_whose_try_as_a_guest_is_refused_is_not_led_back_to_an_account_that_they_left(
    world: World, context: BrowserContext
) -> None:
    """They are signed out by then, unless that was lost. The next try makes them a guest."""
    page = await context.new_page()
    await page.goto(f"{world.url}/sign-in?language=en")
    await by_email(world, page, "dora@example.org")
    await page.get_by_role("button", name="Sign in as somebody else").click()
    await expect(page.get_by_role("button", name="Back")).to_be_visible()

    async def lose(route: Route) -> None:
        await (route.abort() if "mutation SignOut" in str(route.request.post_data) else route.continue_())

    async def refuse(route: Route) -> None:
        refused = {"__typename": "Refused", "code": "RATE_LIMITED"}
        is_it = "mutation AsGuest" in str(route.request.post_data)
        await (route.fulfill(json={"data": {"signInAsGuest": refused}}) if is_it else route.continue_())

    await page.route("**/graphql", lose)
    await as_guest(world, page)
    await expect(page.get_by_role("alert")).to_contain_text("That did not work")
    await page.unroute("**/graphql")
    await page.route("**/graphql", refuse)
    await as_guest(world, page)
    await expect(page.get_by_role("alert")).to_contain_text("Too many tries")
    await expect(page.get_by_role("button", name="Back")).to_be_hidden()
    await page.unroute("**/graphql")
    await as_guest(world, page)
    await expect(page.get_by_role("heading", name="You are signed in as \u2068Ann\u2069")).to_be_visible()


async def test_a_guest_is_not_offered_to_become_another_guest(world: World, context: BrowserContext) -> None:
    """Which would sign them out first, and nobody signs in as a guest again: what they wrote would be nobody's."""
    page = await context.new_page()
    await page.goto(f"{world.url}/sign-in?language=en")
    await as_guest(world, page)
    await page.get_by_role("button", name="Sign in with an address").click()
    await expect(page.get_by_label("Email address")).to_be_focused()
    await expect(page.get_by_role("button", name=re.compile("Go on with 127.0.0.1"))).to_be_visible()
    await expect(page.get_by_role("button", name="Go on as a guest")).to_be_hidden()


async def test_a_guest_is_led_nowhere_where_all_are_guests(
    demo_data: Callable[[], str], context: BrowserContext
) -> None:
    """The page would be empty. They may sign out."""
    with running_service({"RINGSIDE_DATA": demo_data(), "RINGSIDE_GUESTS": "comments", **PATIENT}, []) as service:
        page = await context.new_page()
        await page.goto(f"{service.url}/sign-in?language=en")
        await page.get_by_label("Your name").fill("Ann")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("button", name="Sign out", exact=True)).to_be_visible()
        await expect(page.get_by_role("button", name="Sign in as somebody else")).to_be_hidden()


async def test_a_guest_signs_in_with_an_address_and_stays_who_they_are(world: World, context: BrowserContext) -> None:
    """Where they may do more is no question of being somebody else; nor does a reload of the page lose the request."""
    page = await context.new_page()
    await page.goto(f"{world.url}/sign-in?language=en")
    await as_guest(world, page)
    await page.get_by_role("button", name="Sign in with an address").click()
    await by_email(world, page, "ann@example.org", page.reload, is_new=False)
    await expect(page.get_by_role("heading", name="You are signed in as \u2068Ann\u2069")).to_be_visible()
    await expect(page.get_by_role("button", name="Sign in as somebody else")).to_be_visible()


async def test_a_site_gets_no_session_of_somebody_else_than_its_button_names(
    world: World, context: BrowserContext
) -> None:
    """Who signs in in another tab meanwhile has pressed nothing: the page names them first."""
    page = await context.new_page()
    await page.goto(f"{world.site}/")
    async with page.expect_popup() as opening:
        await page.get_by_role("button", name="Sign in").click()
    window = await opening.value
    await as_guest(world, window)
    await expect(window.get_by_role("button", name="Go on as \u2068Ann\u2069 on")).to_be_visible()
    tab = await context.new_page()
    await tab.goto(f"{world.url}/sign-in?language=en")
    await tab.get_by_role("button", name="Sign in with an address").click()
    await by_provider(world, tab)
    await expect(tab.get_by_role("heading", name="You are signed in as \u2068Ada\u2069")).to_be_visible()
    await window.get_by_role("button", name="Go on as \u2068Ann\u2069 on").click()
    await expect(window.get_by_role("status")).to_contain_text("look who is signed in now")
    await expect(page.locator("#who")).to_have_text("nobody")
    await window.get_by_role("button", name="Go on as \u2068Ada\u2069 on").click()
    await expect(page.locator("#who")).to_have_text("Ada")


async def test_a_provider_is_added_to_nobody_who_is_signed_out(world: World, context: BrowserContext) -> None:
    """It would sign in as somebody new, to whom what it says would then belong."""
    page, tab = await context.new_page(), await context.new_page()
    await page.goto(f"{world.url}/sign-in?language=en")
    await as_guest(world, page)
    await expect(page.get_by_role("button", name="Add 127.0.0.1 to \u2068Ann\u2069")).to_be_visible()
    await tab.goto(f"{world.url}/sign-in?language=en")
    await tab.get_by_role("button", name="Sign out", exact=True).click()
    await expect(tab.get_by_role("status")).to_have_text("You are signed out.")
    await page.get_by_role("button", name="Add 127.0.0.1 to \u2068Ann\u2069").click()
    await expect(page.get_by_role("status")).to_contain_text("look who is signed in now")
    await expect(page.get_by_role("button", name="Go on as a guest")).to_be_visible()


async def test_a_tab_shows_who_is_signed_in_when_a_guest_is_not_wanted_any_more(
    world: World, context: BrowserContext
) -> None:
    """Because somebody has signed in in another tab: a guest must not take their place unseen."""
    page, tab = await context.new_page(), await context.new_page()
    await page.goto(f"{world.url}/sign-in?language=en")
    await expect(page.get_by_label("Your name")).to_be_visible()
    await tab.goto(f"{world.url}/sign-in?language=en")
    await by_provider(world, tab)
    await expect(tab.get_by_role("heading", name="You are signed in as \u2068Ada\u2069")).to_be_visible()
    await as_guest(world, page)
    await expect(page.get_by_role("heading", name="You are signed in as \u2068Ada\u2069")).to_be_visible()


@pytest.mark.parametrize("method", METHODS)
async def test_each_method_signs_in_on_a_page_of_another_site(
    world: World, context: BrowserContext, method: str
) -> None:
    """In a window of the service's, which names the site and hands its token over only after a press.

    The service is started again while the window waits.
    """
    page = await context.new_page()
    await page.goto(f"{world.site}/")
    async with page.expect_popup() as opening:
        await page.get_by_role("button", name="Sign in").click()
    window = await opening.value
    await METHODS[method](world, window, between=world.restart)
    go_on = window.get_by_role("button", name=re.compile(rf"Go on as .* on {world.site.removeprefix('http://')}"))
    await expect(go_on).to_be_visible()
    await expect(page.locator("#who")).to_have_text("nobody")
    await go_on.click()
    await expect(page.locator("#who")).to_have_text(re.compile("^(Ada|Ann|Member .*)$"))


async def test_a_site_s_own_token_signs_in_on_its_pages(world: World, context: BrowserContext) -> None:
    """Without any window: the site's server has signed it."""
    claims = {"iss": "shop", "aud": world.url, "sub": "7", "name": "Ada of the shop", "exp": int(time.time()) + 600}
    page = await context.new_page()
    await page.goto(f"{world.site}/?token={jwt.encode(claims, SITE_SECRET, algorithm='HS256')}")
    await expect(page.locator("#who")).to_have_text("Ada of the shop")


async def test_a_page_with_its_own_accounts_signs_its_members_in_by_its_own_login(
    world: World, context: BrowserContext
) -> None:
    """It hears an element's button, keeps the service's window closed, and hands the elements its server's token."""
    claims = {"iss": "shop", "aud": world.url, "sub": "8", "name": "Bea of the shop", "exp": int(time.time()) + 600}
    page = await context.new_page()
    await page.goto(f"{world.site}/")
    await page.evaluate(OWN_LOGIN, [f"{world.url}/elements.js", jwt.encode(claims, SITE_SECRET, algorithm="HS256")])
    comments = page.locator("ringside-comments")
    await comments.get_by_role("button", name="Write a comment").click()
    await comments.get_by_label("Your comment").fill("From the shop")
    await comments.get_by_role("button", name="Sign in").click()
    await comments.get_by_role("button", name="Post").click()
    await expect(comments.locator("article")).to_contain_text(["Bea of the shop"])
    assert context.pages == [page]


async def test_a_page_that_has_lost_its_window_is_led_back_with_a_code(world: World, context: BrowserContext) -> None:
    """Cross-Origin-Opener-Policy cuts the tie, and nothing tells either side so."""
    page = await context.new_page()
    await page.goto(f"{world.site}/severed")
    async with context.expect_page() as opening:
        await page.get_by_role("button", name="Sign in").click()
    window = await opening.value
    await as_guest(world, window)
    await window.get_by_role("button", name=re.compile("Go on as .* on ")).click()
    await expect(window.locator("#who")).to_have_text("Ann")
    assert window.url.startswith(f"{world.site}/severed#")


async def test_a_site_that_is_not_listed_gets_nothing(world: World, context: BrowserContext) -> None:
    """Neither by a window, nor in a frame, nor by leading people back to itself."""
    with site(world.url) as evil:
        page = await context.new_page()
        await page.goto(f"{evil}/")
        async with page.expect_popup() as opening:
            await page.get_by_role("button", name="Sign in").click()
        window = await opening.value
        await expect(window.get_by_role("status")).to_have_text(re.compile("may not sign anybody in"))
        await expect(window.get_by_role("button")).to_have_count(0)
        await window.goto(f"{world.url}/sign-in?returnTo={evil}/")
        await expect(window.get_by_role("status")).to_have_text(re.compile("may not sign anybody in"))
        await page.goto(f"{evil}/framing")
        await expect(page.frame_locator("iframe").locator("main")).to_have_count(0)


async def test_an_opener_that_names_another_site_hears_nothing(world: World, context: BrowserContext) -> None:
    """The window says which site it signs in for, and posts to that one alone, whoever has opened it."""
    with site(world.url) as evil:
        page = await context.new_page()
        await page.goto(f"{evil}/")
        await page.evaluate("heard = []; addEventListener('message', ({ data }) => heard.push(data));")
        async with page.expect_popup() as opening:
            await page.evaluate(f"void open('{world.url}/sign-in?origin={world.site}&state=theirs')")
        window = await opening.value
        await as_guest(world, window)
        async with window.expect_event("close"):
            await window.get_by_role("button", name=re.compile("Go on as .* on ")).click()
        await page.evaluate("new Promise(resolve => { onmessage = resolve; postMessage('the last one', '*'); })")
        assert await page.evaluate("heard") == ["the last one"]


@pytest.mark.parametrize(("locale", "direction", "label"), [
    ("de-AT", "ltr", "E-Mail-Adresse"), ("es", "ltr", "Correo electrónico"), ("ar", "rtl", "البريد الإلكتروني"),
    ("fr", "ltr", "Email address"),
])  # fmt: skip
async def test_the_page_speaks_the_visitor_s_language(
    world: World, browser: Browser, locale: str, direction: str, label: str
) -> None:
    """Or English; Arabic from right to left, on a phone without scrolling sideways."""
    context = await new_context(browser, locale=locale, viewport={"width": 320, "height": 640}, color_scheme="dark")
    page = await context.new_page()
    await page.goto(f"{world.url}/sign-in")
    await expect(page.get_by_label(label)).to_be_focused()
    assert await page.evaluate("document.documentElement.dir") == direction
    assert await page.evaluate("document.documentElement.scrollWidth") == 320


async def test_the_explorer_is_signed_in_by_the_session_and_out_by_a_button(
    world: World, context: BrowserContext
) -> None:
    """Its button leads to the page, and the page leads back. It names whom another tab signs in.

    A pasted token counts before the session.
    """
    explorer = ExplorerPage(await context.new_page(), world.url)
    await explorer.page.set_viewport_size(VIEWPORT)
    await explorer.open()
    await explorer.page.get_by_role("link", name="Sign in").click()
    await by_email(world, explorer.page)
    await explorer.page.wait_for_url(f"{world.url}/graphql")
    await expect(explorer.page.get_by_text("Signed in as")).to_be_visible()
    await explorer.know_language()
    await explorer.write(explorer.query, "{ viewer { email")
    await explorer.run()
    await expect(explorer.answer).to_contain_text(f'"email": "{ADA}"')
    await explorer.write(explorer.headers, '{ "Authorization": "Bearer forged')
    await explorer.run()
    await expect(explorer.answer).to_contain_text("UNAUTHENTICATED")
    tab = await context.new_page()
    await tab.goto(f"{world.url}/sign-in")
    await tab.get_by_role("button", name="Sign in as somebody else").click()
    await by_provider(world, tab)
    await expect(explorer.page.get_by_text("Signed in as Ada")).to_be_visible()
    await explorer.page.get_by_role("button", name="Sign out", exact=True).click()
    await expect(explorer.page.get_by_role("link", name="Sign in")).to_be_visible()
    assert await explorer.violations() == []
