"""What is a member's own, on the page for signing in: name, emails, ways to sign in, the file, and erasing."""

import asyncio
import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Locator, Page, Route, expect

from tests.browser.pages import FOCUS_IS_SEEN, RECORD_VIOLATIONS, BrowserPage, new_context
from tests.browser.signing_in import World, as_guest, by_email, by_provider, give_code, violations
from tests.browser.sites import Visited, sign_in_by_email
from tests.command import ROOT, ringside_process
from tests.queries import POST_COMMENT, SUBSCRIBE
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

SIGNED_IN = re.compile("You are signed in as")
SHOWN = "#methods, #signed-in"
"""What the page shows once it knows who is signed in. Its heading says "Sign in" from the start."""
ASK = """async ([query, variables]) => (await (await fetch('/graphql', { method: 'POST',
  headers: { 'content-type': 'application/json' }, body: JSON.stringify({ query, variables }) })).json()).data"""
SUSPEND = "mutation ($input: SuspendMemberInput!) { suspendMember(input: $input) { __typename } }"
JOIN = "mutation ($input: JoinLeagueInput!) { joinLeague(input: $input) { __typename } }"
LISTS = "{ wordLists(first: 1) { nodes { id name } } }"
AUTHOR = "query ($id: ID!) { node(id: $id) { ... on Comment { author { name } } } }"


async def ask(page: Page, query: str, **variables: Any) -> Any:
    """Over the API, with the page's session."""
    return await page.evaluate(ASK, [query, variables])


async def until_answered(page: Page, query: str, expected: Any, **variables: Any) -> None:
    """A process may show a profile of ten seconds ago."""

    async def is_it() -> bool:
        return bool(await ask(page, query, **variables) == expected)

    await until(is_it, f"the answer is {expected}", pause=0.5)


async def comment(page: Page, **given: Any) -> str:
    """The id of a new comment."""
    posted = await ask(page, POST_COMMENT, input={"product": "page", "language": "en", "body": "Well done.", **given})
    return str(posted["postComment"]["comment"]["id"])


async def viewer(page: Page) -> str:
    return str((await ask(page, "{ viewer { id } }"))["viewer"]["id"])


async def reload_until(page: Page, shown: Any) -> None:
    """Processes may show an old profile, or an ended session, for some seconds."""
    for _ in range(60):
        await page.reload()
        await expect(page.locator(SHOWN).locator("visible=true")).to_have_count(1)
        if await shown():
            return
        await page.wait_for_timeout(1000)
    pytest.fail("the page does not show it")


async def test_who_signs_in_by_email_for_the_first_time_chooses_a_name(world: World, context: BrowserContext) -> None:
    """The service makes one up otherwise, which others see."""
    page = await context.new_page()
    await page.goto(f"{world.url}/sign-in?language=en")
    await give_code(world, page, "nora@example.org")
    await expect(page.get_by_role("heading", name="Choose a name")).to_be_visible()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_have_text("Write a name of 1 to 80 characters.")
    await page.get_by_role("textbox", name="Name", exact=True).fill("Nora")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="You are signed in as \u2068Nora\u2069")).to_be_visible()
    posted = await comment(page)
    await until_answered(page, AUTHOR, {"node": {"author": {"name": "Nora"}}}, id=posted)
    assert await violations(page) == []


async def test_who_wants_to_be_told_of_replies_gets_an_email(
    world: World, context: BrowserContext, browser: Browser
) -> None:
    """The wishes are there after a reload, and keep what another page has changed meanwhile."""
    page = await context.new_page()
    await page.goto(f"{world.url}/sign-in?language=en")
    await by_email(world, page, "rita@example.org")
    await expect(page.get_by_text("They go to \u2068rita@example.org\u2069.")).to_be_visible()
    await expect(page.get_by_text("until then, your days are counted in UTC")).to_be_visible()
    await page.get_by_label("Tell me when somebody replies").check()
    await page.get_by_label("Remind me before an event locks").select_option("24 hours before")
    await page.get_by_label("When the daily word comes").fill("07:30")
    await page.locator("#emails").get_by_role("button", name="Save").click()
    await expect(page.get_by_role("status")).to_have_text("Saved.")
    shown = await page.get_by_label("Time zone").input_value()
    await until_answered(page, "{ viewer { timeZone } }", {"viewer": {"timeZone": shown}})
    await expect(page.get_by_text("It decides when your day begins.", exact=True)).to_be_visible()
    sent, posted = len(world.mailbox.emails), await comment(page)
    other = await (await new_context(browser)).new_page()
    await other.goto(f"{world.url}/sign-in?language=en")
    await as_guest(world, other)
    await expect(other.get_by_role("heading", name=SIGNED_IN)).to_be_visible()
    await reload_until(page, page.get_by_label("Tell me when somebody replies").is_checked)
    await expect(page.get_by_label("When the daily word comes")).to_have_value("07:30")
    await expect(page.get_by_label("Remind me before an event locks")).to_have_value("24")
    await page.get_by_role("textbox", name="Name", exact=True).fill("Rita")
    await page.get_by_label("Time zone").select_option("Asia/Tokyo")
    await page.locator("#profile").get_by_role("button", name="Save").click()
    await expect(page.get_by_role("heading", name="You are signed in as \u2068Rita\u2069")).to_be_visible()
    stored = {"name": "Rita", "timeZone": "Asia/Tokyo", "replyEmails": True, "lockReminderHours": 24}
    await until_answered(page, "{ viewer { name timeZone replyEmails lockReminderHours } }", {"viewer": stored})
    told = asyncio.create_task(world.email("rita@example.org", sent))
    while not told.done():  # a process may know a profile of ten seconds ago, by which nobody is to be told
        await comment(other, inReplyTo=posted)
        await asyncio.wait({told}, timeout=8)
    await told


async def test_a_member_adds_an_address_and_removes_the_provider(world: World, context: BrowserContext) -> None:
    """They sign in by the address as the same member, and no longer by the provider. The last way stays."""
    page = await context.new_page()
    await page.goto(f"{world.url}/sign-in?language=en")
    await by_email(world, page, "taken@example.org")
    await page.get_by_role("button", name="Sign out", exact=True).click()
    await by_provider(world, page)
    await expect(page.get_by_role("heading", name=SIGNED_IN)).to_be_visible()
    before = await viewer(page)
    await expect(page.get_by_text("If none arrive, add this address")).to_be_visible()
    await page.get_by_role("button", name="Add an address").click()
    await give_code(world, page, "second@example.org", page.reload)
    await expect(page.get_by_role("status")).to_have_text(
        "You can sign in with this address, too. Emails go to it from now on."
    )
    await expect(page.get_by_text("They go to \u2068second@example.org\u2069.", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Sign out", exact=True).click()
    await by_email(world, page, "second@example.org", is_new=False)
    await expect(page.get_by_role("heading", name=SIGNED_IN)).to_be_visible()
    assert await viewer(page) == before
    remove = page.get_by_role("button", name=re.compile("^Remove"))
    provider = page.get_by_role("listitem").filter(has_not_text="second@example.org")
    await provider.get_by_role("button").click()
    await expect(page.get_by_role("status")).to_have_text(re.compile("does not sign you in any more"))
    await expect(page.get_by_role("heading", name="How you sign in")).to_be_focused()
    await expect(page.get_by_role("listitem")).to_have_text(["\u2068second@example.org\u2069"])
    await expect(remove).to_have_count(0)
    await page.get_by_role("button", name="Add an address").click()
    await by_email(world, page, "taken@example.org", is_new=False)
    await expect(page.locator("#number-error")).to_have_text("This belongs to another account already.")


async def test_signing_out_everywhere_signs_other_browsers_out(
    world: World, context: BrowserContext, browser: Browser
) -> None:
    """Within a minute."""
    page, other = await context.new_page(), await (await new_context(browser)).new_page()
    for each in (page, other):
        await each.goto(f"{world.url}/sign-in?language=en")
        await by_email(world, each, "everywhere@example.org")
        await expect(each.get_by_role("heading", name=SIGNED_IN)).to_be_visible()
    await page.get_by_role("button", name="Sign out everywhere").click()
    await expect(page.get_by_role("status")).to_have_text(re.compile("within a minute everywhere else"))
    await reload_until(other, other.get_by_label("Email address").is_visible)


async def test_a_member_downloads_what_is_stored_and_claims_earlier_comments(
    world: World, context: BrowserContext
) -> None:
    """Those of another system that came after their first sign-in; the page stays where it is.

    Pressed again after an answer was lost, the button leads to the file that is being written already. What was typed
    and is not saved stays.
    """
    page = await context.new_page()
    await page.goto(f"{world.url}/sign-in?language=en")
    await by_email(world, page, "ann@example.com")
    asked: list[str] = []

    async def lose(route: Route) -> None:
        asked.append(str(json.loads(route.request.post_data or "{}")["query"]))
        is_first = [each for each in asked if "query Job" in each] == asked[-1:]
        await (route.abort() if is_first else route.fallback())

    await page.route("**/graphql", lose)
    await page.get_by_role("button", name="Download what is stored").click()
    await expect(page.get_by_role("status")).to_have_text("That did not work. Try again in a moment.")
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Download what is stored").click()
    assert sum("mutation ExportMember" in each for each in asked) == 1
    await page.unroute("**/graphql", lose)
    lines = [json.loads(line) for line in (await (await download.value).path()).read_text("utf-8").splitlines()]
    assert "ann@example.com" in {line.get("record", {}).get("email") for line in lines}
    await page.get_by_role("button", name="Claim my earlier comments").click()
    await expect(page.get_by_role("status")).to_have_text("There are no earlier comments with your address.")
    file = str(ROOT / "tests" / "samples" / "disqus.xml")
    imported = await asyncio.to_thread(
        ringside_process, "import", "disqus", file, "--product", "{path}", **world.service.variables
    )
    assert "The others were imported" in imported.stderr
    replies, name = page.locator("#replies"), page.get_by_role("textbox", name="Name", exact=True)
    await replies.check()
    await name.fill("Ann, soon")
    await page.get_by_role("button", name="Claim my earlier comments").click()
    await expect(page.get_by_role("status")).to_have_text(re.compile(r"^Comments that are yours now: [1-9]\.$"))
    await page.get_by_role("button", name="Delete my account").click()
    await page.get_by_role("button", name="Back").click()
    await expect(page.get_by_role("heading", name=SIGNED_IN)).to_be_focused()
    await expect(replies).to_be_checked()
    await expect(name).to_have_value("Ann, soon")


async def second_click(page: Page, button: Locator) -> None:
    """Of a double one, whose first click has brought this button to where it was: it does nothing."""
    await button.hover()
    await page.mouse.down(click_count=2)
    await page.mouse.up(click_count=2)
    await expect(page.get_by_role("status")).to_be_empty()


async def test_a_member_deletes_their_account_after_signing_in_again(world: World, context: BrowserContext) -> None:
    """A session that is older than a quarter of an hour is not enough, and what was chosen is kept meanwhile.

    Nobody deletes it by a double click.
    """
    page = await context.new_page()
    await page.goto(f"{world.url}/sign-in?language=en")
    await by_email(world, page, "leaving@example.org")

    refused: list[str] = []

    async def refuse(route: Route) -> None:
        if refused or "mutation EraseMember" not in (route.request.post_data or ""):
            return await route.fallback()
        refused.append("once")
        return await route.fulfill(json={"data": {"eraseMember": {"code": "NOT_SIGNED_IN"}}})

    await page.route("**/graphql", refuse)
    await page.get_by_role("button", name="Delete my account").click()
    await second_click(page, page.get_by_role("button", name="Delete for good"))
    await page.get_by_label("are deleted, too").check()
    await page.get_by_role("button", name="Delete for good").click()
    await expect(page.get_by_text("Please confirm that it is you: sign in again.")).to_be_visible()
    await by_email(world, page, "leaving@example.org", is_new=False)
    await expect(page.get_by_role("heading", name=re.compile("Delete the account of"))).to_be_visible()
    await expect(page.get_by_label("are deleted, too")).to_be_checked()
    await page.get_by_role("button", name="Delete for good").click()
    await expect(page.get_by_role("status")).to_have_text("Your account is deleted.")
    await page.reload()
    await expect(page.get_by_label("Email address")).to_be_focused()
    await by_email(world, page, "leaving@example.org", is_new=False)
    await expect(page.locator("#number-error")).to_have_text(re.compile("This account was erased"))


async def test_a_suspended_member_signs_in_to_download_and_delete(
    world: World, context: BrowserContext, browser: Browser
) -> None:
    """And reads why, and until when; what the suspension refuses is not offered."""
    given = await asyncio.to_thread(
        ringside_process, "member", "role", "mod@example.org", "--role", "moderator", **world.service.variables
    )
    assert given.returncode == 0, given.stderr
    page, moderating = await context.new_page(), await (await new_context(browser)).new_page()
    for each, address in ((page, "loud@example.org"), (moderating, "mod@example.org")):
        await each.goto(f"{world.url}/sign-in?language=en")
        await by_email(world, each, address)
        await expect(each.get_by_role("heading", name=SIGNED_IN)).to_be_visible()
    year = datetime.now(UTC).year + 1
    loud = {"user": await viewer(page), "reason": "Much too loud.", "until": f"{year}-08-01T12:00:00Z"}

    async def is_suspended() -> bool:
        answer = await ask(moderating, SUSPEND, input=loud)
        return bool(answer["suspendMember"]["__typename"] == "MemberSuspended")

    await until(is_suspended, "every process knows of the role", pause=1.0)
    await context.clear_cookies()
    await page.goto(f"{world.url}/sign-in?language=en")
    await by_email(world, page, "loud@example.org", is_new=False)
    await expect(page.get_by_role("heading", name=SIGNED_IN)).to_be_visible()
    await reload_until(page, page.get_by_text("The reason: \u2068Much too loud.\u2069").is_visible)
    await expect(page.get_by_text(f"The suspension ends on August 1, {year} at ")).to_be_visible()
    await expect(page.get_by_role("button", name="Delete my account")).to_be_visible()
    await expect(page.get_by_role("button", name="Download what is stored")).to_be_visible()
    await expect(page.get_by_role("button", name="Save")).to_have_count(0)
    await expect(page.get_by_role("button", name="Claim")).to_have_count(0)


@pytest.mark.parametrize("pressed", ["Save", "Sign out everywhere"])
async def test_nothing_is_changed_of_whom_another_tab_has_signed_in(
    world: World, context: BrowserContext, pressed: str
) -> None:
    """The page says who is signed in now, and what was typed was for somebody else."""
    page, tab = await context.new_page(), await context.new_page()
    await page.goto(f"{world.url}/sign-in?language=en")
    await by_email(world, page, f"{pressed[:4]}@example.org")
    await tab.goto(f"{world.url}/sign-in?language=en")
    await tab.get_by_role("button", name="Sign in as somebody else").click()
    await by_provider(world, tab)
    await expect(tab.get_by_role("heading", name="You are signed in as \u2068Ada\u2069")).to_be_visible()
    await page.get_by_role("textbox", name="Name", exact=True).fill("Fritz")
    await page.get_by_role("button", name=pressed).first.click()
    await expect(page.get_by_role("status")).to_contain_text("look who is signed in now")
    await expect(page.get_by_role("heading", name="You are signed in as \u2068Ada\u2069")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_everybody_can_use_the_account(world: World, browser: Browser, scheme: Any) -> None:
    """In both colour schemes, by each view; on a phone without scrolling sideways."""
    context = await new_context(browser, viewport={"width": 320, "height": 640}, color_scheme=scheme, locale="en-GB")
    page = await context.new_page()
    await page.goto(f"{world.url}/sign-in")
    await give_code(world, page, f"{scheme}@example.org")
    await expect(page.get_by_role("textbox", name="Name", exact=True)).to_be_focused()
    assert await BrowserPage(page, world.url).barriers() == []
    await page.get_by_role("button", name="Not now").click()
    for view in ("Your account", "Add an address", "Delete my account"):
        if view != "Your account":
            await page.get_by_role("button", name=view).click()
        assert await BrowserPage(page, world.url).barriers() == []
        assert await page.evaluate("document.documentElement.scrollWidth") == 320
        if view != "Your account":
            await page.get_by_role("button", name="Back").click()


async def signed_in(visited: Visited, browser: Browser, address: str, **options: Any) -> Page:
    """Their account, on a page of their own."""
    page = await (await new_context(browser, locale="en-GB", **options)).new_page()
    await page.add_init_script(RECORD_VIOLATIONS)
    await page.goto(f"{visited.service.url}/sign-in")
    await sign_in_by_email(visited, page, address)
    return page


async def new_league(page: Page, name: str, entry: str) -> str:
    """The code of a new league, or its id if it needs none."""
    await page.get_by_label("Name of the league").fill(name)
    await page.get_by_label("Who can join").select_option(entry)
    await page.get_by_role("button", name="Create the league").click()
    await expect(page.get_by_role("status")).to_have_text(f"You are the captain of \u2068{name}\u2069 now.")
    return str(await page.locator(".league", has_text=name).locator("code").text_content())


async def test_what_the_keyboard_goes_back_to_is_not_behind_what_is_said(visited: Visited, browser: Browser) -> None:
    """It stays at the top of the page while the account is scrolled, on a phone in several lines."""
    page = await signed_in(visited, browser, "keyboard@example.org", viewport={"width": 320, "height": 400})
    await page.get_by_role("button", name="Claim my earlier comments").click()
    await expect(page.get_by_role("status")).to_have_text("There are no earlier comments with your address.")
    for _ in range(15):
        await page.keyboard.press("Shift+Tab")
        assert await page.evaluate(FOCUS_IS_SEEN)


async def test_members_create_leagues_admit_others_and_leave(visited: Visited, browser: Browser) -> None:
    """By a code, and after waiting; the last captain stays until the league is deleted."""
    captain = await signed_in(visited, browser, "captain@example.org", viewport={"width": 320, "height": 640})
    member = await signed_in(visited, browser, "joining@example.org")
    await captain.get_by_role("button", name="Create the league").click()
    await expect(captain.get_by_role("alert")).to_have_text("Write a name of 1 to 80 characters.")
    code = await new_league(captain, "Coded", "Whoever has its code")
    await captain.get_by_role("button", name="New code: \u2068Coded").click()
    await expect(captain.get_by_role("status")).to_have_text("The old code admits nobody any more.")
    newer = await captain.locator(".league", has_text="Coded").locator("code").text_content()
    assert newer != code
    assert (await ask(member, JOIN, input={"code": newer}))["joinLeague"]["__typename"] == "LeagueJoined"
    waited_for = await new_league(captain, "Admitting", "Whoever a captain admits")
    assert (await ask(member, JOIN, input={"league": waited_for}))["joinLeague"]["__typename"] == "LeagueJoined"
    await member.reload()
    leagues = member.get_by_role("region", name="Leagues").get_by_role("listitem")
    await expect(leagues).to_contain_text([re.compile("Admitting.* waiting"), "Coded"])

    admitting = captain.locator(".league", has_text="Admitting")
    admit = admitting.get_by_role("button", name=re.compile("^Admit "))

    async def is_waiting() -> bool:
        await admitting.get_by_text("\u2068Admitting").click()
        await expect(admit.or_(admitting.get_by_text("Nobody is waiting.")).locator("visible=true")).to_have_count(1)
        return await admit.is_visible()

    await reload_until(captain, is_waiting)
    shown = BrowserPage(captain, visited.service.url)
    assert (await shown.barriers(), await shown.too_small()) == ([], [])
    await captain.emulate_media(color_scheme="dark")
    assert await shown.barriers() == []
    assert await captain.evaluate("document.documentElement.scrollWidth") == 320
    await admit.click()
    await expect(captain.get_by_role("status")).to_have_text(re.compile("is a member now"))
    await admitting.get_by_text("Members: 2").click()
    await expect(admitting.get_by_role("button", name=re.compile("^Remove .*Member"))).to_be_visible()
    await captain.get_by_role("button", name="Leave \u2068Admitting").click()
    await captain.get_by_role("button", name="Leave", exact=True).click()
    await expect(captain.get_by_role("status")).to_contain_text("You are its last captain.")
    assert await shown.barriers() == []
    await captain.get_by_role("button", name="Back").click()
    await captain.get_by_role("button", name="Delete the league: \u2068Admitting").click()
    await captain.get_by_role("button", name="Delete the league", exact=True).click()
    await expect(captain.get_by_role("status")).to_have_text("The league \u2068Admitting\u2069 is deleted.")
    await member.get_by_role("button", name="Leave \u2068Coded").click()
    await member.get_by_role("button", name="Leave", exact=True).click()
    await expect(member.get_by_role("status")).to_have_text("You have left \u2068Coded\u2069.")
    await expect(member.get_by_role("heading", name="Leagues")).to_be_focused()
    assert await violations(captain) == []


async def test_a_league_is_made_once_although_the_answer_was_lost(visited: Visited, browser: Browser) -> None:
    """Who presses again gets the one that was made."""
    page = await signed_in(visited, browser, "twice@example.org")
    asked: list[str] = []

    async def lose(route: Route) -> None:
        asked.extend(["once"] * ("mutation CreateLeague" in (route.request.post_data or "")))
        if asked == ["once"]:
            asked.append("and its answer was lost")
            await route.fetch()
            await route.abort()
        else:
            await route.fallback()

    await page.route("**/graphql", lose)
    await page.get_by_label("Name of the league").fill("Once")
    await page.get_by_role("button", name="Create the league").click()
    await expect(page.get_by_role("alert")).to_have_text("That did not work. Try again in a moment.")
    await page.unroute("**/graphql", lose)
    await new_league(page, "Once", "Whoever has its code")
    owned = (await ask(page, "{ viewer { leagues(first: 5) { nodes { name } } } }"))["viewer"]["leagues"]["nodes"]
    assert owned == [{"name": "Once"}]


async def test_members_end_their_subscriptions(visited: Visited, browser: Browser) -> None:
    """Nothing is said of daily words to who has none, and nothing is asked about them before the account is opened."""
    page = await signed_in(visited, browser, "subscribed@example.org")
    await expect(page.get_by_role("heading", name="Leagues")).to_be_visible()
    await expect(page.get_by_role("heading", name="Daily words")).to_be_hidden()
    (words,) = (await ask(page, LISTS))["wordLists"]["nodes"]
    await ask(page, SUBSCRIBE, input={"list": words["id"], "characterSet": "TRADITIONAL"})
    end = page.get_by_role("button", name="Unsubscribe")

    async def is_shown() -> bool:
        await expect(page.get_by_role("heading", name="Leagues")).to_be_visible()
        return await end.is_visible()

    await reload_until(page, is_shown)
    subscription = page.get_by_role("region", name="Daily words").get_by_role("listitem")
    await expect(subscription).to_contain_text(f"\u2068{words['name']}\u2069 · traditional characters · emails are on")
    await end.click()
    told = f"You have unsubscribed from \u2068{words['name']}\u2069 · traditional characters."
    await expect(page.get_by_role("status")).to_have_text(told)
    await expect(subscription).to_contain_text("emails are off")
    await expect(end).to_have_count(0)
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    await page.goto(f"{visited.service.url}/sign-in?returnTo=/")
    await expect(page.get_by_role("button", name="Go on as")).to_be_visible()
    assert [url for url in loaded if "/account-" in url] == []
    await page.get_by_text("Your account").click()
    await expect(page.get_by_role("heading", name="Leagues")).to_be_visible()
