"""The area of events at /admin, in Chromium, by keyboard alone where it says so."""

import asyncio
import re
from datetime import timedelta
from typing import Any

import pytest
from playwright.async_api import Browser, Route, expect

from datastore.dynamo import iso
from resolvers.requests.context import utc_now
from tests.browser.admin import Keys, ask, assert_clean, create_event, double_click, opened, printed
from tests.browser.pages import held_back
from tests.browser.sites import Visited
from tests.queries import (
    ADD_MATCH,
    CREATE_EVENT,
    LOCK_EVENT,
    RECORD_TIE_BREAK,
    REMOVE_MATCH,
    SUBMIT_PREDICTION,
    UPDATE_MATCH,
)
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

UPDATE = "mutation ($input: UpdateEventInput!) { updateEvent(input: $input) { ... on EventUpdated { event { id } } } }"
CARD = "\n".join(f"Fan {place} v Foe {place}" for place in range(10))


async def test_an_event_of_ten_matches_is_made_locked_and_scored(
    visited: Visited, browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its card by keyboard alone; then the order, the results, and the scoring, which is taken back."""
    new_event(visited, "Earlier night")
    page = await opened(visited, browser, "editor", "#/events", viewport={"width": 1280, "height": 900})
    keys = Keys(page)
    await page.page.get_by_role("button", name="Earlier night").wait_for()
    await keys.to("button", "A new event")
    await keys.press("Enter")
    await expect(page.page.get_by_role("textbox", name="Name")).to_be_focused()
    await keys.paste("Grand finals")
    await keys.press("Tab", 2)
    await page.page.keyboard.type("010520311900")  # the parts of a date go to the next by themselves
    keys.pressed += 12
    await keys.to("textbox", "Matches, a line each")
    await keys.paste(CARD)
    await keys.to("button", "Create")
    await keys.press("Enter")
    await expect(page.page.get_by_role("status")).to_contain_text("Grand finals is there, with 10 matches.")
    printed(capsys, "An event of ten matches", keys)
    assert keys.pressed <= 40
    await assert_clean(page)
    matches = page.page.locator("li.match")
    await page.page.get_by_role("button", name="Up Fan 3 v Foe 3").focus()
    await page.page.keyboard.press("Enter")
    await expect(matches.nth(2)).to_contain_text("Fan 3 v Foe 3")
    await page.page.get_by_role("button", name="Lock now").click()
    await expect(page.page.get_by_role("status")).to_contain_text("No predictions are taken")
    await page.page.get_by_label("Result of Fan 0 v Foe 0").select_option(label="Foe 0 won")
    await expect(page.page.get_by_role("status")).to_contain_text("Saved.")
    await page.page.get_by_role("button", name="Score", exact=True).click()
    await expect(page.page.get_by_role("status")).to_contain_text("Matches without a result: 9 of 10")
    for place in range(1, 10):
        await page.page.get_by_label(f"Result of Fan {place} v Foe {place}").select_option(label="a draw")
    await until(lambda: undecided(visited, "Grand finals") == 0, "the service has all results")
    await page.page.get_by_role("button", name="Score", exact=True).click()
    await expect(page.page.get_by_role("button", name="Take the scoring back")).to_be_visible()
    await page.page.get_by_role("button", name="Take the scoring back").click()
    await expect(page.page.get_by_role("button", name="Score", exact=True)).to_be_visible()
    await assert_clean(page)


def undecided(visited: Visited, name: str) -> int:
    """How many matches of this event have no result."""
    events = ask(visited, "{ events(first: 50) { nodes { name matches { result { outcome } } } } }")["events"]["nodes"]
    return sum(match["result"] is None for event in events if event["name"] == name for match in event["matches"])


async def test_a_line_that_is_no_match_stays_and_says_why(visited: Visited, browser: Browser) -> None:
    """Lines before it are added; names that try to break the page are names."""
    page = await opened(visited, browser, "editor", "#/events", locale="ar", color_scheme="dark")
    await page.page.locator("#new-event-name").fill("<script>alert(1)</script>")
    await page.page.locator("#new-event-startsAt").fill("2031-05-01T19:00")
    await page.page.locator("#new-event-matches").fill("Ada v <b>Bo</b>\nNobody at all\nCy v Dee")
    await page.page.locator("#new-event-matches").press("Tab")
    await page.page.keyboard.press("Enter")
    await expect(page.page.locator("#card-matches-refused")).to_contain_text("Nobody at all")
    await expect(page.page.locator("#card-matches")).to_have_value("Nobody at all\nCy v Dee")
    await expect(page.page.locator("li.match")).to_have_count(1)
    await expect(page.page.get_by_role("heading", name="<script>alert(1)</script>")).to_be_visible()
    await assert_clean(page)


async def test_a_beginning_that_the_clock_leaps_over_is_refused_at_its_field(
    visited: Visited, browser: Browser
) -> None:
    """In place of another hour, of which nobody would be told."""
    page = (await opened(visited, browser, "editor", "#/events", timezone_id="Europe/Berlin")).page
    await page.locator("#new-event-name").fill("Leapt over")
    begins = page.locator("#new-event-startsAt")
    await begins.fill("2027-03-28T02:30")
    await begins.press("Enter")
    await expect(page.locator("#new-event-startsAt-refused")).to_contain_text("There is no such time on that day")
    await expect(begins).to_have_attribute("aria-invalid", "true")
    await begins.fill("2027-03-28T03:30")
    await begins.press("Enter")
    await expect(page.get_by_role("status")).to_contain_text("Leapt over")


async def test_points_that_are_no_number_are_refused_with_their_line(visited: Visited, browser: Browser) -> None:
    """A match is not silently worth one point. A line without points is."""
    page = await opened(visited, browser, "editor", "#/events")
    lines = "Ada v Bo | 3\nHal v Ina\nCy v Dee | two\nEd v Fay | 2.5"
    await create_event(page.page, "Worthy night", "2031-05-02T19:00", lines)
    refused = page.page.locator("#card-matches-refused")
    await expect(refused).to_have_text("Cy v Dee | two: A match is worth 1 to 1000 points.")
    matches = page.page.locator("li.match").locator("p")
    await expect(matches).to_have_text(["Ada v Bo · 3 points", "Hal v Ina · 1 point"])
    await page.page.locator("#card-matches").fill("Ed v Fay | 2.5")
    await page.page.get_by_role("button", name="Add", exact=True).click()
    await expect(refused).to_have_text("Ed v Fay | 2.5: A match is worth 1 to 1000 points.")


def new_event(visited: Visited, name: str, *matches: str) -> str:
    """An upcoming event; its id."""
    starts = iso(utc_now() + timedelta(days=400))
    event: str = visited.edit(CREATE_EVENT, name=name, season="2031", startsAt=starts)["event"]["id"]
    for match in matches:
        visited.edit(ADD_MATCH, event=event, name=match, teams=[{"members": ["Ada"]}, {"members": ["Bo"]}], points=1)
    return event


async def test_the_second_click_of_a_double_one_undoes_nothing_and_removes_nothing_else(
    visited: Visited, browser: Browser
) -> None:
    """Where another button stands by then: the one that removes the next match, or that takes the scoring back."""
    event = new_event(visited, "Hasty night", "First", "Second", "Third")
    page = await opened(visited, browser, "editor", "#/events", viewport={"width": 1280, "height": 2000})
    await page.page.get_by_role("button", name="Hasty night").click()
    matches, status = page.page.locator("li.match"), page.page.get_by_role("status")
    remove = page.page.get_by_role("button", name="Remove First")
    await double_click(page.page, remove, lambda: expect(matches).to_have_count(2))
    await page.page.get_by_role("button", name="Lock now").click()
    await expect(status).to_contain_text("No predictions are taken")
    await expect(matches).to_have_count(2)
    for name in ("Second", "Third"):
        await page.page.get_by_label(f"Result of {name}").select_option(label="a draw")
    await until(lambda: undecided(visited, "Hasty night") == 0, "the service has all results")
    unscore = page.page.get_by_role("button", name="Take the scoring back")
    score = page.page.get_by_role("button", name="Score", exact=True)
    await double_click(page.page, score, lambda: expect(unscore).to_be_visible())
    await page.page.get_by_label("Place").fill("Here")
    await page.page.get_by_role("button", name="Save").click()
    await expect(status).to_contain_text("Saved.")
    await expect(unscore).to_be_visible()
    assert ask(visited, f'{{ event(id: "{event}") {{ state }} }}')["event"] == {"state": "SCORED"}


async def test_a_match_is_removed_by_the_keyboard_which_keeps_its_place(visited: Visited, browser: Browser) -> None:
    """The next match then stands there; after the last one, the event's name is next."""
    new_event(visited, "Quiet night", "First", "Second")
    page = await opened(visited, browser, "editor", "#/events")
    await page.page.get_by_role("button", name="Quiet night").click()
    await page.page.get_by_role("button", name="Remove First").press("Enter")
    await expect(page.page.get_by_role("button", name="Up Second")).to_be_focused()
    await page.page.get_by_role("button", name="Remove Second").press("Enter")
    await expect(page.page.get_by_role("heading", name="Quiet night")).to_be_focused()


async def test_a_match_moves_on_by_the_button_that_was_pressed(visited: Visited, browser: Browser) -> None:
    """The keyboard stays at it. Pressed again before the answer, it is nobody else's change of the card."""
    new_event(visited, "Shuffled night", "First", "Second", "Third")
    page = (await opened(visited, browser, "editor", "#/events")).page
    await page.get_by_role("button", name="Shuffled night").click()
    down, matches = page.get_by_role("button", name="Down First"), page.locator("li.match strong")
    for place in (2, 3):
        await down.press("Enter")
        await expect(page.get_by_role("status")).to_have_text(f"First is number {place} now.")
        await expect(down).to_be_focused()
    async with held_back(page, '"matches":[') as requests:
        for _ in range(2):
            await page.get_by_role("button", name="Up First").click()
        await until(lambda: bool(requests), "the first press is sent")
    await expect(page.get_by_role("status")).to_have_text("First is number 2 now.")
    await expect(matches).to_have_text(["Second", "First", "Third"])
    assert len(requests) == 1


async def test_a_match_stays_on_its_side_of_the_pre_show_s_end(visited: Visited, browser: Browser) -> None:
    """Its buttons lead no further, and the page says where it stands if it was dragged beyond."""
    event = new_event(visited, "Edged night", "First", "Second")
    sides = [{"members": ["Ada"]}, {"members": ["Bo"]}]
    visited.edit(ADD_MATCH, event=event, name="Early", teams=sides, points=1, preshow=True)
    page = (await opened(visited, browser, "editor", "#/events", viewport={"width": 1280, "height": 2000})).page
    await page.get_by_role("button", name="Edged night").click()
    for name in ("Up Early", "Down Early", "Up First", "Down Second"):
        await expect(page.get_by_role("button", name=name)).to_be_disabled()
    matches = page.locator("li.match")
    await matches.nth(2).locator("p").drag_to(matches.nth(0).locator("p"))
    await expect(page.get_by_role("status")).to_have_text("Second is number 2 now.")
    up = page.get_by_role("button", name="Up Second")
    await expect(up).to_be_focused()
    await up.press("Enter")
    await expect(matches.locator("strong")).to_have_text(["Early", "Second", "First"])


async def test_a_match_is_corrected_beside_somebody_else_and_keeps_its_picks(
    visited: Visited, browser: Browser
) -> None:
    """A side whose line stays as it was keeps its names, although they have a sign that parts names."""
    event = new_event(visited, "Misprinted night")
    sides = [{"members": ["Salt & Pepper"], "champion": True}, {"members": ["Boo"]}]
    match = visited.edit(ADD_MATCH, event=event, name="Mian", teams=sides, points=1)["match"]["id"]
    picks = [{"match": match, "team": 1}]
    visited.edit(SUBMIT_PREDICTION, by="fan", role="member", event=event, picks=picks)
    page = await opened(visited, browser, "editor", "#/events")
    await page.page.get_by_role("button", name="Misprinted night").click()
    await page.page.get_by_role("button", name="Edit Mian").click()
    form = page.page.locator("li.match form")
    await expect(form.get_by_label("Name")).to_be_focused()
    await form.get_by_label("Name").fill("Main")
    await form.get_by_label("Points for a correct pick").fill("5")
    await expect(form.get_by_label("Sides")).to_have_value("Salt & Pepper (c)\nBoo")
    await form.get_by_label("Sides").fill("Salt & Pepper (c)\nThe Bs: Bo & Bea (c)")
    visited.edit(UPDATE_MATCH, match=match, points=3, championships=["World"])
    await form.get_by_role("button", name="Save").click()
    await expect(form.get_by_text("Somebody else wrote: 3")).to_be_visible()
    await expect(form.get_by_label("Titles at stake")).to_have_value("World")
    await assert_clean(page)
    await form.get_by_role("button", name="Save").click()
    await expect(page.page.get_by_role("button", name="Edit Main")).to_be_focused()
    lost = page.page.get_by_role("button", name="Remove Main")
    await expect(lost).to_have_accessible_description(re.compile("its predictions are lost"))
    query = f"""{{ event(id: "{event}") {{
      matches {{ name points championships teams {{ name members champion }} }}
      viewerPrediction {{ picks {{ match team }} }}
    }} }}"""
    with visited.client("fan", "member") as client:
        found = client.post("/graphql", json={"query": query}).json()["data"]["event"]
    assert found["viewerPrediction"] == {"picks": picks}
    assert found["matches"] == [
        {
            "name": "Main",
            "points": 5,
            "championships": ["World"],
            "teams": [
                {"name": None, "members": ["Salt & Pepper"], "champion": True},
                {"name": "The Bs", "members": ["Bo", "Bea"], "champion": True},
            ],
        }
    ]


async def test_what_is_typed_about_a_match_is_not_lost_without_a_word(visited: Visited, browser: Browser) -> None:
    """Neither when another event is chosen, nor when somebody else removes the match, which is then said."""
    new_event(visited, "Other night", "Later")
    sides = [{"members": ["Ada"]}, {"members": ["Bo"]}]
    given: dict[str, Any] = {"event": new_event(visited, "Typed night"), "name": "Main", "teams": sides, "points": 1}
    match = visited.edit(ADD_MATCH, **given)["match"]["id"]
    page = (await opened(visited, browser, "editor", "#/events")).page
    await page.get_by_role("button", name="Typed night").click()
    await page.get_by_role("button", name="Edit Main").click()
    typed = page.locator("#match-edit-name")
    await typed.fill("Mine")
    await page.get_by_role("button", name="Other night").click()
    await expect(page.get_by_role("status")).to_contain_text("First save what you changed in Main,")
    await expect(typed).to_be_focused()
    visited.edit(REMOVE_MATCH, match=match)
    await page.locator("li.match form").get_by_role("button", name="Save").click()
    await expect(page.get_by_role("alert")).to_contain_text("Somebody has removed Main meanwhile")
    await expect(page.get_by_role("alert")).to_be_focused()
    await expect(typed).to_have_count(0)
    await page.get_by_role("button", name="Other night").click()
    await page.get_by_role("button", name="Edit Later").click()
    await expect(typed).to_have_value("Later")


async def test_a_result_that_is_recorded_cannot_be_shown_as_missing(visited: Visited, browser: Browser) -> None:
    """It can be corrected, and not taken away: a choice that does nothing would look as if it had."""
    event = new_event(visited, "Decided night", "Main")
    visited.edit(LOCK_EVENT, event=event)
    page = await opened(visited, browser, "editor", "#/events")
    await page.page.get_by_role("button", name="Decided night").click()
    result = page.page.get_by_label("Result of Main")
    await expect(result.locator("option:checked")).to_have_text("none yet")
    await result.select_option(label="Bo won")
    await expect(page.page.get_by_role("status")).to_contain_text("Saved.")
    await expect(result.locator("option:checked")).to_have_text("Bo won")
    await expect(result.locator("option")).to_have_text(["Ada won", "Bo won", "a draw", "no contest", "cancelled"])


async def test_a_result_that_the_keyboard_passes_by_is_not_recorded(visited: Visited, browser: Browser) -> None:
    """The arrow keys choose one after the other: the last one counts with Enter, or once the keyboard is elsewhere.

    With Escape none does.
    """
    new_event(visited, "Keyed night", "First", "Second")
    page = await opened(visited, browser, "editor", "#/events")
    await page.page.get_by_role("button", name="Keyed night").click()
    await page.page.get_by_role("button", name="Lock now").click()
    await expect(page.page.get_by_role("status")).to_contain_text("No predictions are taken")
    recorded: list[str] = []
    page.page.on("request", lambda one: recorded.extend(re.findall(r'"outcome":"(\w+)"', one.post_data or "")))
    await page.page.get_by_label("Result of First").focus()
    for key in ("ArrowDown", "ArrowDown", "Escape", "Tab"):
        await page.page.keyboard.press(key)
    await expect(page.page.get_by_label("Result of First").locator("option:checked")).to_have_text("none yet")
    for name, last in (("First", "Enter"), ("Second", "Tab")):
        await page.page.get_by_label(f"Result of {name}").focus()
        for key in ("ArrowDown", "ArrowDown", "ArrowDown", last):
            await page.page.keyboard.press(key)
        await expect(page.page.get_by_role("status")).to_contain_text("Saved.")
        await page.page.get_by_role("status").evaluate("(status) => { status.textContent = ''; }")
    assert recorded == ["DRAWN", "DRAWN"]


async def test_an_event_is_scored_without_a_result_that_nobody_knows(visited: Visited, browser: Browser) -> None:
    """The editor is told which one is missing, and confirms it: to record another outcome would say what is not so."""
    new_event(visited, "Unfinished night", "First", "Second")
    page = await opened(visited, browser, "editor", "#/events")
    status = page.page.get_by_role("status")
    await page.page.get_by_role("button", name="Unfinished night").click()
    await page.page.get_by_role("button", name="Lock now").click()
    await expect(status).to_contain_text("No predictions are taken")
    await page.page.get_by_label("Result of First").select_option(label="Ada won")
    await expect(status).to_have_text("Saved.")
    await page.page.get_by_role("button", name="Score", exact=True).click()
    await expect(status).to_contain_text("Matches without a result: 1 of 2 (2. Second)")
    without = page.page.get_by_role("button", name="Score without them")
    await without.click()
    await expect(status).to_have_text("Scored.")
    await expect(without).to_have_count(0)
    await assert_clean(page)


async def test_a_result_that_the_keyboard_chose_stays_when_the_answer_about_another_match_arrives(
    visited: Visited, browser: Browser
) -> None:
    """It is recorded once the keyboard is elsewhere, as if nothing had come in between."""
    event = new_event(visited, "Rapid night", "First", "Second")
    visited.edit(LOCK_EVENT, event=event)
    page = await opened(visited, browser, "editor", "#/events")
    await page.page.get_by_role("button", name="Rapid night").click()
    second = page.page.get_by_label("Result of Second").locator("option:checked")
    async with held_back(page.page, "idempotencyKey") as held:
        await page.page.get_by_label("Result of First").focus()
        for key in ("ArrowDown", "Enter"):
            await page.page.keyboard.press(key)
        await until(lambda: held, "the first result is on its way")
        await page.page.get_by_label("Result of Second").focus()
        for key in ("ArrowDown", "ArrowDown"):
            await page.page.keyboard.press(key)
    await expect(page.page.get_by_role("status")).to_contain_text("Saved.")
    await expect(second).to_have_text("Bo won")
    await page.page.keyboard.press("Tab")
    await until(lambda: undecided(visited, "Rapid night") == 0, "the service has both results")
    await expect(second).to_have_text("Bo won")


async def test_a_keyboard_that_went_back_to_no_result_records_no_other_one(visited: Visited, browser: Browser) -> None:
    """Once the first one is recorded "none yet" is no choice any more."""
    event = new_event(visited, "Wavering night", "Main")
    visited.edit(LOCK_EVENT, event=event)
    page = await opened(visited, browser, "editor", "#/events")
    await page.page.get_by_role("button", name="Wavering night").click()
    async with held_back(page.page, "idempotencyKey") as held:
        await page.page.get_by_label("Result of Main").focus()
        for key in ("ArrowDown", "ArrowDown", "Enter"):
            await page.page.keyboard.press(key)
        await until(lambda: held, "the result is on its way")
        for key in ("ArrowUp", "ArrowUp"):
            await page.page.keyboard.press(key)
    await expect(page.page.get_by_role("status")).to_contain_text("Saved.")
    async with held_back(page.page, "idempotencyKey") as more:
        await page.page.keyboard.press("Tab")
    await expect(page.page.get_by_label("Result of Main").locator("option:checked")).to_have_text("Bo won")
    assert not more


async def test_a_result_that_is_corrected_after_scoring_counts_once_it_is_scored_again(
    visited: Visited, browser: Browser
) -> None:
    """The page says so, and has the button. The list of events says of each what its card says."""
    new_event(visited, "Mended night", "Main")
    page = await opened(visited, browser, "editor", "#/events", locale="de-DE")
    status, main = page.page.get_by_role("status"), page.page.get_by_label("Ergebnis von Main")
    score = page.page.get_by_role("button", name="Werten", exact=True)
    await page.page.get_by_role("button", name="Mended night · bevorstehend").click()
    await page.page.get_by_role("button", name="Jetzt schließen").click()
    await expect(page.page.get_by_role("button", name="Mended night · geschlossen")).to_be_visible()
    await main.select_option(label="Ada gewinnt")
    await expect(status).to_have_text("Gespeichert.")
    await score.click()
    await expect(status).to_have_text("Gewertet.")
    await expect(page.page.get_by_role("button", name="Mended night · gewertet")).to_be_visible()
    await main.select_option(label="Bo gewinnt")
    await expect(status).to_have_text("Gespeichert. Die Punkte folgen, sobald Sie neu werten.")
    await score.click()
    await expect(status).to_have_text("Gewertet.")
    unscore = page.page.get_by_role("button", name="Wertung zurücknehmen")
    await unscore.press("Enter")
    await expect(unscore).to_have_count(0)
    await expect(page.page.get_by_role("heading", name="Mended night")).to_be_focused()


async def test_what_a_locked_event_refuses_is_said_in_a_sentence(visited: Visited, browser: Browser) -> None:
    """Not by the word for its state alone."""
    event = new_event(visited, "Shut night", "Main")
    visited.edit(LOCK_EVENT, event=event)
    page = await opened(visited, browser, "editor", "#/events")
    await page.page.get_by_role("button", name="Shut night").click()
    await expect(page.page.get_by_role("button", name="Edit Main")).to_have_count(0)
    await page.page.get_by_role("button", name="Remove Main").click()
    await expect(page.page.get_by_role("status")).to_contain_text("This event is locked: predictions and its card can")


async def test_two_editors_of_one_event_see_each_other_s_changes(visited: Visited, browser: Browser) -> None:
    page = await opened(visited, browser, "editor", "#/events")
    await create_event(page.page, "Shared night", "2031-06-01T19:00")
    await expect(page.page.get_by_role("heading", name="Shared night")).to_be_visible()
    events = ask(visited, "{ events(first: 50) { nodes { id name } } }")["events"]["nodes"]
    (event,) = [each["id"] for each in events if each["name"] == "Shared night"]
    await page.page.locator("#event-name").fill("My night")
    visited.edit(UPDATE, event=event, name="Their night")
    await page.page.get_by_role("button", name="Save").click()
    await expect(page.page.get_by_text("Somebody else wrote: Their night")).to_be_visible()
    theirs = re.compile("Somebody else wrote: Their night")
    await expect(page.page.locator("#event-name")).to_have_accessible_description(theirs)
    await expect(page.page.locator("#event-name")).to_have_value("My night")


async def test_an_event_is_changed_although_its_picture_s_host_is_no_longer_allowed(
    visited: Visited, browser: Browser
) -> None:
    event = new_event(visited, "Pictured night", "Main")
    visited.edit(UPDATE, event=event, imageUrl="https://images.example.com/1.png")
    page = await opened(visited, browser, "editor", "#/events")

    async def answer(route: Route) -> None:
        answered = await route.fetch()
        await route.fulfill(response=answered, body=(await answered.text()).replace("images.example", "old.example"))

    await page.page.route("**/graphql*", answer)
    await page.page.get_by_role("button", name="Pictured night").click()
    await expect(page.page.locator("#event-imageUrl")).to_have_value("https://old.example.com/1.png")
    await page.page.locator("#event-place").fill("Bremen")
    await page.page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.page.get_by_role("status")).to_have_text("Saved.")


async def test_a_tie_break_is_asked_and_answered(visited: Visited, browser: Browser) -> None:
    """Its question is part of the event's settings, as what it is about is; the answer follows once it is locked."""
    page = await opened(visited, browser, "editor", "#/events")
    await create_event(page.page, "Close night", "2031-07-01T19:00", "Ada v Bo")
    await expect(page.page.get_by_role("status")).to_contain_text("Close night is there")
    question = page.page.get_by_label("Question for a tie")
    await question.fill("Minutes of the main event")
    await expect(question).to_have_accessible_description(re.compile("stands first; they share their rank"))
    await page.page.get_by_label("Unit").fill("minutes")
    await page.page.get_by_label("Description").fill("The last one")
    await page.page.get_by_label("Address of a picture").fill("https://images.example.com/close.png")
    await page.page.get_by_role("button", name="Save").click()
    await expect(page.page.get_by_role("status")).to_contain_text("Saved.")
    await page.page.get_by_role("button", name="Lock now").click()
    await page.page.get_by_label("The answer: Minutes of the main event").fill("21.5")
    await assert_clean(page)
    await page.page.get_by_role("button", name="Record the answer").click()
    await expect(page.page.get_by_role("status")).to_contain_text("Saved.")
    query = "{ events(first: 100) { nodes { name tieBreak { answer unit } description imageUrl } } }"
    events = ask(visited, query)["events"]["nodes"]
    assert [event for event in events if event["name"] == "Close night"] == [
        {
            "name": "Close night",
            "tieBreak": {"answer": 21.5, "unit": "minutes"},
            "description": "The last one",
            "imageUrl": "https://images.example.com/close.png",
        }
    ]


async def test_an_answer_that_another_editor_has_recorded_is_shown_before_it_is_replaced(
    visited: Visited, browser: Browser
) -> None:
    """Its own answer, while that is recorded, is none: pressing again then does nothing."""
    given = {"name": "Corrected night", "season": "2031", "startsAt": "2031-09-01T19:00:00Z"}
    event = visited.edit(CREATE_EVENT, **given, tieBreak={"question": "How long?"})["event"]["id"]
    visited.edit(LOCK_EVENT, event=event)
    visited.edit(RECORD_TIE_BREAK, event=event, answer=21)
    page = await opened(visited, browser, "editor", "#/events")
    await page.page.get_by_role("button", name="Corrected night").click()
    answer, status = page.page.get_by_label("The answer: How long?"), page.page.get_by_role("status")
    await answer.fill("23")
    visited.edit(RECORD_TIE_BREAK, event=event, answer=22)
    record = page.page.get_by_role("button", name="Record the answer")
    await record.click()
    await expect(status).to_contain_text("Somebody else changed this meanwhile.")
    await expect(answer).to_have_accessible_description("Somebody else wrote: 22")
    await expect(answer).to_have_value("23")
    query, released, sent = f'{{ event(id: "{event}") {{ tieBreak {{ answer }} }} }}', asyncio.Event(), list[str]()

    async def answered_late(route: Route) -> None:
        sent.append(route.request.url)
        response = await route.fetch()
        if '"answer":23' in (route.request.post_data or ""):
            await released.wait()
        await route.fulfill(response=response)

    await page.page.route("**/graphql*", answered_late)
    await record.click()
    await until(lambda: ask(visited, query)["event"]["tieBreak"] == {"answer": 23}, "it is recorded")
    await record.click()
    released.set()
    await expect(status).to_have_text("Saved.")
    assert len(sent) == 3  # the event, the answer, and the event again: for no answer of the page's own


async def test_the_answer_to_a_tie_break_stays_when_an_event_that_was_chosen_before_comes_late(
    visited: Visited, browser: Browser
) -> None:
    """The event that was chosen last is shown, and what is typed there is for that one."""
    chosen = {}
    for name in ("Early night", "Late night"):
        given: dict[str, Any] = {"name": name, "season": "2031", "startsAt": "2031-08-01T19:00:00Z"}
        event = visited.edit(CREATE_EVENT, **given, tieBreak={"question": "How long?"})["event"]
        chosen[name] = event["id"]
        visited.edit(LOCK_EVENT, event=chosen[name])
    page = await opened(visited, browser, "editor", "#/events")
    async with held_back(page.page, chosen["Early night"]) as held:
        await page.page.get_by_role("button", name="Early night").click()
        await page.page.get_by_role("button", name="Late night").click()
        await expect(page.page.get_by_role("heading", name="Late night")).to_be_focused()
        await page.page.get_by_label("The answer: How long?").fill("21.5")
        assert held
    await expect(page.page.get_by_label("The answer: How long?")).to_have_value("21.5")
    await expect(page.page.get_by_label("The answer: How long?")).to_be_focused()
