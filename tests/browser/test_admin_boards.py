"""The area of boards at /admin, in Chromium, by keyboard alone where it says so."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, FilePayload, Locator, Page, expect

from datastore.dynamo import iso, open_table
from datastore.dynamo.declaration import create
from datastore.voting.suspects import LIFETIME, PSEUDONYM, SEARCH, SUSPECT, Suspect, SuspectSearch
from datastore.whole.layout import ensure_layout
from resolvers.requests.context import utc_now
from server.engine import run_engine_async
from tests.browser.admin import Keys, ask, assert_clean, opened, printed
from tests.browser.pages import PATIENT, answered_last, held_back
from tests.browser.sites import Site, Visited
from tests.queries import CAST_VOTE, DRAW_MATCHUP, mutation
from tests.service import running_service
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

CREATE = "mutation ($input: CreateBoardInput!) { createBoard(input: $input) { __typename ...on Refused { code } } }"
UPDATE = "mutation ($input: UpdateBoardInput!) { updateBoard(input: $input) { __typename ...on Refused { code } } }"
TYPE = "(field, text) => { field.value = text; field.dispatchEvent(new Event('input')) }"
IMPORT = "mutation ($input: ImportContendersInput!) { importContenders(input: $input) { ... on Refused { code } } }"
ADD = "mutation ($input: AddContenderInput!) { addContender(input: $input) { __typename ...on Refused { code } } }"
CHANGE = mutation("updateContender", "ContenderUpdated", "contender { id }")


async def test_a_board_of_twenty_contenders_is_made_from_nothing(
    visited: Visited, browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By keyboard alone but for the files: the board, then its contenders from a pasted list, with their pictures."""
    await board(visited, "earlier")
    page = await opened(visited, browser, "editor", "#/boards", viewport={"width": 1280, "height": 900})
    names = [f"Hero {number}" for number in range(20)]
    for name in names:
        (tmp_path / f"{name}.svg").write_text('<svg viewBox="0 0 9 9"><path d="M0 0h9v9z"/></svg>', encoding="utf-8")
    keys = Keys(page)
    await page.page.get_by_role("button", name="Board earlier").wait_for()
    await keys.to("textbox", "Title of a new board")
    await keys.paste("Heroes of 2027")
    await keys.press("Enter")
    await expect(page.page.get_by_role("heading", name="Heroes of 2027")).to_be_focused()
    await keys.to("button", "Add many")
    await keys.press("Enter")
    await expect(page.page.get_by_role("combobox", name="Where")).to_have_value("heroes-of-2027")
    await expect(page.page.get_by_role("textbox", name="Paste a list, or a table")).to_be_focused()
    await page.page.get_by_label("Or choose files").set_input_files(sorted(tmp_path.glob("*.svg")))
    await expect(page.page.get_by_text("20 pictures")).to_be_visible()
    await keys.to("textbox", "Paste a list, or a table")
    await keys.paste("\n".join(names))
    await keys.to("button", "Add")
    await keys.press("Enter")
    await expect(page.page.locator("section").get_by_text("20 were added.")).to_be_visible()
    printed(capsys, "A board of twenty contenders, from nothing", keys)
    assert keys.pressed <= 25
    await page.page.get_by_role("link", name="Boards").click()
    await page.page.get_by_role("button", name="Heroes of 2027").click()
    await expect(page.page.get_by_role("row")).to_have_count(21)
    await assert_clean(page)


@pytest.mark.parametrize(("locale", "scheme"), [("en-GB", "dark"), ("ar", "light")])
async def test_the_area_is_readable_by_everybody(visited: Visited, browser: Browser, locale: str, scheme: str) -> None:
    await board(visited, scheme)
    visited.edit(ADD, board=scheme, name="Comet")
    page = await opened(visited, browser, "editor", "#/boards", locale=locale, color_scheme=scheme)
    await page.page.get_by_role("button", name=f"Board {scheme}").click()
    await expect(page.page.get_by_role("table")).to_be_visible()
    await assert_clean(page)


async def board(visited: Visited, slug: str) -> None:
    visited.edit(CREATE, slug=slug, title=f"Board {slug}")


async def test_two_editors_of_one_board_see_each_other_s_changes(visited: Visited, browser: Browser) -> None:
    """Nothing is overwritten unseen: what the other wrote stands at its field, and what was typed stays."""
    visited.edit(CREATE, slug="shared", title="Board shared", opensAt="2031-01-01T00:00:00Z")
    page = await opened(visited, browser, "editor", "#/boards")
    await page.page.get_by_role("button", name="Board shared").click()
    title = page.page.get_by_label("Title", exact=True)
    await title.fill("Mine")
    await page.page.get_by_label("Results are shown").select_option("AFTER_VOTING")
    await page.page.get_by_label("Opens at").fill("2031-01-02T10:00")
    await page.page.get_by_label("Closes at").fill("2031-06-01T19:00")
    visited.edit(
        UPDATE,
        slug="shared",
        title="Theirs",
        opensAt=None,
        closesAt="2031-07-01T19:00:00Z",
        electorate="MEMBERS",
        resultsVisible="AFTER_CLOSE",
    )
    save = page.page.get_by_role("button", name="Save")
    await save.click()
    await expect(page.page.get_by_text("Somebody else wrote: Theirs")).to_be_visible()
    await expect(page.page.get_by_text("Somebody else wrote: when it has closed")).to_be_visible()
    theirs = page.page.get_by_text(re.compile("Somebody else wrote: (—|1 Jul 2031, 19:00)$"))
    await expect(theirs).to_have_count(2)
    await expect(title).to_have_value("Mine")
    await expect(page.page.get_by_label("Who may vote")).to_have_value("MEMBERS")
    await assert_clean(page)
    await save.click()
    await expect(page.page.get_by_role("status")).to_contain_text("Saved.")
    await expect(page.page.get_by_role("button", name="Mine")).to_be_visible()


async def test_a_change_of_somebody_else_is_seen_after_something_else_was_done(
    visited: Visited, browser: Browser
) -> None:
    """A contender that was added reads the board again: their title is marked, not overwritten by the next saving."""
    await board(visited, "busy")
    page = await opened(visited, browser, "editor", "#/boards")
    await page.page.get_by_role("button", name="Board busy").click()
    title = page.page.get_by_label("Title", exact=True)
    await title.fill("Mine")
    visited.edit(UPDATE, slug="busy", title="Theirs", electorate="MEMBERS")
    await page.page.locator("#contender-name").fill("Comet")
    await page.page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.page.get_by_role("rowheader", name="Comet")).to_be_visible()
    await expect(page.page.get_by_text("Contenders: 1. Votes: 0.")).to_be_visible()
    await expect(page.page.get_by_text("Somebody else wrote: Theirs")).to_be_visible()
    await expect(title).to_have_value("Mine")
    await expect(page.page.get_by_label("Who may vote")).to_have_value("MEMBERS")


async def test_the_day_by_which_voters_joined_is_shown_and_changed(visited: Visited, browser: Browser) -> None:
    """What else is saved leaves it as it was. It goes with the electorate that it is about, and that is seen."""
    visited.edit(CREATE, slug="old", title="Board old", electorate="MEMBERS", membersSince="2030-01-01T10:30:15Z")
    page = await opened(visited, browser, "editor", "#/boards")
    await page.page.get_by_role("button", name="Board old").click()
    since, voters = page.page.get_by_label("Only those who joined by"), page.page.get_by_label("Who may vote")
    await expect(since).to_have_value("2030-01-01T10:30")

    async def saved() -> str | None:
        await page.page.get_by_role("status").evaluate("(status) => { status.textContent = ''; }")
        await page.page.get_by_role("button", name="Save").click()
        await expect(page.page.get_by_role("status")).to_have_text("Saved.")
        found: dict[str, str | None] = ask(visited, '{ board(slug: "old") { membersSince } }')["board"]
        return found["membersSince"]

    assert await saved() == "2030-01-01T10:30:15.000Z"
    await since.fill("2029-06-01T08:00")
    await assert_clean(page)
    assert await saved() == "2029-06-01T08:00:00.000Z"
    await voters.select_option("EVERYBODY")
    await expect(since).to_have_count(0)
    assert await saved() is None
    await voters.select_option("MEMBERS")
    await expect(since).to_have_value("")


async def test_settings_that_are_saved_twice_are_not_taken_for_those_of_somebody_else(
    visited: Visited, browser: Browser
) -> None:
    """Pressed again before the page has read what was saved."""
    await board(visited, "hasty")
    page = await opened(visited, browser, "editor", "#/boards")
    await page.page.get_by_role("button", name="Board hasty").click()
    await page.page.get_by_label("Title", exact=True).fill("Pressed twice")
    save, sent = page.page.get_by_role("button", name="Save"), list[str]()
    async with held_back(page.page, '"board":"hasty"') as held:
        await save.click()
        await until(lambda: len(held) == 1, "the page reads what was saved")
        page.page.on("request", lambda request: sent.append(request.post_data or ""))
        await save.click()
    await expect(page.page.get_by_role("status")).to_contain_text("Saved.")
    assert [text for text in sent if "Pressed twice" in text] == []


async def test_a_board_that_has_not_opened_is_not_said_to_be_closed(visited: Visited, browser: Browser) -> None:
    """The list says when it opens."""
    visited.edit(CREATE, slug="early", title="Board early", opensAt=iso(utc_now() + timedelta(days=400)))
    page = await opened(visited, browser, "editor", "#/boards")
    await expect(page.page.get_by_role("button", name=re.compile("^Board early · Opens at .*:"))).to_be_visible()


@pytest.mark.parametrize(
    ("title", "slug"),
    [("منافسات الأبطال", "board-[a-z0-9]+"), ("Größte Helden", "grosste-helden"), ("Hero " * 20, "(hero-)*he?r?o?")],
)
async def test_a_board_has_a_name_in_addresses_whatever_its_title(
    visited: Visited, browser: Browser, title: str, slug: str
) -> None:
    page = await opened(visited, browser, "editor", "#/boards")
    await page.page.get_by_label("Title of a new board").fill(title)
    await page.page.get_by_role("button", name="Create").click()
    await expect(page.page.get_by_role("heading", name=title.strip())).to_be_focused()
    boards = ask(visited, "{ boards(first: 100) { nodes { slug title } } }")["boards"]["nodes"]
    [found] = [each["slug"] for each in boards if each["title"] == title.strip()]
    assert re.fullmatch(slug, found)


async def test_what_is_refused_stands_at_its_field(visited: Visited, browser: Browser) -> None:
    """A name that is taken, a closing time that has passed, a picture with a script, and texts that break nothing."""
    page = await opened(visited, browser, "editor", "#/boards")
    await page.page.get_by_label("Title of a new board").fill("<img src=x onerror=alert(1)>")
    await page.page.get_by_label("Name in addresses").fill("main")
    await page.page.get_by_role("button", name="Create").click()
    await expect(page.page.locator("#new-board-slug-refused")).to_be_visible()
    await page.page.get_by_label("Name in addresses").fill("hostile")
    await page.page.get_by_role("button", name="Create").click()
    await expect(page.page.get_by_role("heading", name="<img src=x onerror=alert(1)>")).to_be_visible()
    opens = page.page.get_by_label("Opens at")
    await opens.evaluate(TYPE, "20277-01-01T10:30")
    await page.page.get_by_role("button", name="Save").click()
    assert await opens.evaluate("(field) => field.validity.rangeOverflow")
    await opens.fill("")
    await page.page.get_by_label("Closes at").fill("2020-01-01T10:00")
    await page.page.get_by_role("button", name="Save").click()
    await expect(page.page.locator("#board-closesAt-refused")).to_be_visible()
    svg = '<svg viewBox="0 0 9 9"><script>alert(1)</script><path d="M0 0h9v9z" onload="alert(1)"/></svg>'
    await page.page.get_by_label("Picture (SVG)").set_input_files(
        {"name": "Evil.svg", "mimeType": "image/svg+xml", "buffer": svg.encode()}
    )
    await expect(page.page.get_by_alt_text("Preview of the picture")).to_be_visible()
    await expect(page.page.get_by_text("Not allowed and removed")).to_contain_text("script")
    await assert_clean(page)
    await page.page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.page.get_by_role("rowheader", name="Evil")).to_be_visible()
    await page.page.get_by_role("button", name="Retire Evil").click()
    await expect(page.page.get_by_role("button", name="Bring back Evil")).to_be_visible()


def square(colour: str) -> str:
    return f'<svg viewBox="0 0 9 9"><path fill="{colour}" d="M0 0h9v9z"/></svg>'


def drawn(colour: str) -> FilePayload:
    return {"name": f"{colour}.svg", "mimeType": "image/svg+xml", "buffer": square(colour).encode()}


def contenders_of(visited: Visited, slug: str) -> dict[str, Any]:
    """A board's contenders by name."""
    fields = "id name description link svg wins losses"
    board = ask(visited, f'{{ board(slug: "{slug}") {{ contenders(first: 9) {{ nodes {{ {fields} }} }} }} }}')["board"]
    return {one["name"]: one for one in board["contenders"]["nodes"]}


async def test_a_contender_is_corrected_and_keeps_its_votes(visited: Visited, browser: Browser) -> None:
    """Its name, its picture and a description of several lines; the keyboard stays where the work is."""
    await board(visited, "spelled")
    visited.edit(ADD, board="spelled", name="Comit", svg=square("red"), description="One line.\nAnother.")
    visited.edit(ADD, board="spelled", name="Tide")
    vote_left(visited, "spelled", 1)
    page = await opened(visited, browser, "editor", "#/boards")
    await page.page.get_by_role("button", name="Board spelled").click()
    await page.page.get_by_role("button", name="Edit Comit").click()
    name, form = page.page.locator("#contender-edit-name"), page.page.get_by_role("row").locator("form")
    await expect(name).to_be_focused()
    await expect(form.get_by_role("img")).to_have_attribute("src", re.compile("red"))
    await name.fill("Comet")
    await form.get_by_label("Picture (SVG)").set_input_files(drawn("blue"))
    await expect(form.get_by_role("img")).to_have_attribute("src", re.compile("blue"))
    await assert_clean(page)
    await page.page.get_by_role("button", name="Board spelled").click()
    await expect(page.page.get_by_role("status")).to_contain_text("First save what you changed in Comit")
    await page.page.get_by_role("button", name="Edit Tide").click()
    await form.get_by_role("button", name="Save").click()
    await expect(page.page.get_by_role("button", name="Edit Comet")).to_be_focused()
    await expect(page.page.get_by_role("status")).to_have_text("Saved.")
    await until(lambda: is_counted(contenders_of(visited, "spelled")["Comet"]), "its vote counts")
    found = contenders_of(visited, "spelled")["Comet"]
    assert "blue" in found["svg"]
    assert found["description"] == "One line.\nAnother."


def is_counted(contender: dict[str, Any]) -> bool:
    return bool(contender["wins"] + contender["losses"] == 1)


async def test_two_editors_of_one_contender_see_each_other_s_changes(visited: Visited, browser: Browser) -> None:
    """Also of the picture. What only the other changed is taken over."""
    await board(visited, "twice")
    visited.edit(ADD, board="twice", name="Before")
    page = await opened(visited, browser, "editor", "#/boards")
    await page.page.get_by_role("button", name="Board twice").click()
    await page.page.get_by_role("button", name="Edit Before").click()
    form = page.page.get_by_role("row").locator("form")
    await form.get_by_label("Name").fill("Mine")
    await form.get_by_label("Picture (SVG)").set_input_files(drawn("blue"))
    await expect(form.get_by_role("img")).to_have_count(1)
    link = "https://example.com/theirs"
    contender = contenders_of(visited, "twice")["Before"]["id"]
    visited.edit(CHANGE, contender=contender, name="Theirs", svg=square("red"), link=link)
    await form.get_by_role("button", name="Save").click()
    await expect(form.get_by_text("Somebody else wrote: Theirs")).to_be_visible()
    await expect(form.get_by_role("img").last).to_have_attribute("src", re.compile("red"))
    await expect(form.get_by_label("Link")).to_have_value(link)
    await assert_clean(page)
    await form.get_by_label("Name").fill("Both")
    await form.get_by_role("button", name="Remove Picture").click()
    await form.get_by_role("button", name="Save").click()
    await expect(page.page.get_by_role("button", name="Edit Both")).to_be_focused()
    found = contenders_of(visited, "twice")["Both"]
    assert (found["svg"], found["link"]) == (None, link)


async def test_a_contender_that_joins_a_board_of_which_all_is_shown_is_shown_too(
    visited: Visited, browser: Browser
) -> None:
    """Once, at the end, where the order of joining has it; there is no further page that would show it."""
    await board(visited, "full")
    visited.edit(IMPORT, board="full", text="\n".join(["name", *(f"Fan {number:03}" for number in range(101))]))
    count = '{ board(slug: "full") { contenderCount } }'
    await until(lambda: ask(visited, count)["board"]["contenderCount"] == 101, "all are there", pause=0.2)
    page = await opened(visited, browser, "editor", "#/boards")
    await page.page.get_by_role("button", name="Board full").click()
    rows = page.page.get_by_role("row")
    await expect(rows).to_have_count(101)
    await page.page.get_by_role("button", name="More").click()
    await expect(rows).to_have_count(102)
    for number, name in enumerate(("Late", "Later"), 103):
        await page.page.locator("#contender-name").fill(name)
        await page.page.get_by_role("button", name="Add", exact=True).click()
        await expect(page.page.get_by_role("status")).to_have_text(f"{name} was added.")
        await expect(rows).to_have_count(number)
        await expect(rows.last.get_by_role("rowheader")).to_have_text(name)
    await rows.last.get_by_role("button", name="Retire").click()
    await expect(rows.last.get_by_role("button", name="Bring back")).to_be_visible()
    await expect(rows).to_have_count(104)


async def test_the_picture_that_was_chosen_last_is_shown(visited: Visited, browser: Browser) -> None:
    """It is the one that would be added, although the answer for the one before comes last.

    The field names none that was removed or refused.
    """
    await board(visited, "painted")
    page = await opened(visited, browser, "editor", "#/boards")
    await page.page.get_by_role("button", name="Board painted").click()
    field = page.page.get_by_label("Picture (SVG)")
    preview = page.page.get_by_alt_text("Preview of the picture")
    async with answered_last(page.page, "red"):
        async with page.page.expect_request(lambda one: "red" in f"{one.url} {one.post_data}"):
            await field.set_input_files(drawn("red"))
        await field.set_input_files(drawn("blue"))
        await expect(preview).to_have_attribute("src", re.compile("blue"))
    await expect(preview).to_have_attribute("src", re.compile("blue"))
    await page.page.get_by_role("button", name="Remove Picture").click()
    await expect(preview).to_have_count(0)
    await expect(field).to_have_value("")
    await field.set_input_files({"name": "torn.svg", "mimeType": "image/svg+xml", "buffer": b"<svg"})
    await expect(page.page.get_by_role("status")).not_to_have_text("")
    await expect(field).to_have_value("")
    await page.page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.page.get_by_role("rowheader", name="blue")).to_be_visible()
    added = ask(visited, '{ board(slug: "painted") { contenders(first: 2) { nodes { name svg } } } }')
    assert added["board"]["contenders"]["nodes"] == [{"name": "blue", "svg": None}]


async def test_suspects_are_sought_voided_and_restored(visited: Visited, browser: Browser) -> None:
    """One whose every vote is for the left side, within seconds. Also after another board, or the page anew."""
    for slug in ("gamed", "fair"):
        await board(visited, slug)
    for number in range(12):
        visited.edit(ADD, board="gamed", name=f"Star {number}")
    vote_left(visited, "gamed", 60)
    page = await opened(visited, browser, "editor", "#/boards")
    await page.page.get_by_role("button", name="Board gamed").click()
    await page.page.get_by_role("button", name="Look for suspects").click()
    await expect(page.page.get_by_role("status")).to_contain_text("Votes seen")
    await expect(page.page.get_by_text("Voter 1")).to_be_visible()
    await assert_clean(page)
    await page.page.get_by_role("button", name="Choose all").click()
    await page.page.get_by_role("button", name="Void their votes").click()
    restore = page.page.get_by_role("button", name="Restore what was voided")
    await expect(restore).to_be_visible()
    await page.page.get_by_role("button", name="Board fair").click()
    await expect(page.page.get_by_role("heading", name="Board fair")).to_be_visible()
    await expect(restore).to_have_count(0)
    await page.page.reload()
    await page.page.get_by_role("button", name="Board gamed").click()
    await restore.click()
    await expect(page.page.get_by_role("status")).to_contain_text("Votes restored")
    await expect(restore).to_have_count(0)
    buttons = page.page.locator(".row", has=page.page.get_by_role("button", name="Look for suspects"))
    await expect(buttons).to_have_text("Look for suspectsShow the last search")


async def test_a_voter_whom_no_search_has_found_is_voided_by_their_id(visited: Visited, browser: Browser) -> None:
    """With all votes from the same address. What is no id is refused at its field."""
    await board(visited, "known")
    for name in ("Ada", "Bo", "Cy"):
        visited.edit(ADD, board="known", name=name)
    vote_left(visited, "known", 2)
    vote_left(visited, "known", 1, "neighbour")
    with visited.client("sinister", "member") as client:
        voter = client.post("/graphql", json={"query": "{ viewer { id } }"}).json()["data"]["viewer"]["id"]
    page = (await opened(visited, browser, "editor", "#/boards")).page
    await page.get_by_role("button", name="Board known").click()
    typed, status = page.get_by_label("A voter's id"), page.get_by_role("status")
    await typed.fill("#")
    await page.get_by_role("button", name="Void this voter's votes").click()
    await expect(page.locator("#void-voter-refused")).not_to_be_empty()
    await typed.fill(voter)
    await page.get_by_label("Also the votes of the last seven days").check()
    await page.get_by_role("button", name="Void this voter's votes").click()
    await expect(status).to_have_text("Votes voided: 3.")
    await expect(typed).to_have_value("")
    assert ask(visited, '{ board(slug: "known") { votes } }')["board"] == {"votes": 0}


async def test_all_suspects_can_be_reached_and_voided_at_once(browser: Browser, tmp_path: Path) -> None:
    """A hundred more with each press, and as many are chosen as are shown. The service takes a hundred at a time.

    What was voided at once is restored at once.
    """
    await write_suspects(tmp_path, "crowded", 101)
    with running_service({"RINGSIDE_DATA": str(tmp_path), **PATIENT}) as service:
        visited = Visited(service, Site())
        await board(visited, "crowded")
        page = await opened(visited, browser, "editor", "#/boards")
        await page.page.get_by_role("button", name="Board crowded").click()
        await page.page.get_by_role("button", name="Show the last search").click()
        suspects = page.page.get_by_role("checkbox", name="Voter")
        await expect(suspects).to_have_count(100)
        await expect(page.page.get_by_text("Of all that were found, 7.5 are honest on average.")).to_be_visible()
        await expect(page.page.get_by_text(re.compile(r"Last searched: \d+ \w+ \d{4}, \d\d:\d\d"))).to_be_visible()
        await expect(page.page.get_by_text("votes like this: at most 0.1%.")).to_have_count(100)
        most = page.page.get_by_label("Show probabilities up to")
        await most.select_option("0.01%")
        await expect(page.page.get_by_text("Among 9,000 votes there is nobody.")).to_be_visible()
        await most.select_option("0.1%")
        await expect(suspects).to_have_count(100)
        await page.page.get_by_role("button", name="More").press("Enter")
        await expect(page.page.get_by_role("checkbox", name="Voter 101, 9 votes")).to_be_focused()
        await page.page.get_by_role("button", name="Choose all").click()
        await expect(page.page.get_by_role("checkbox", checked=True)).to_have_count(101)
        sent: list[str] = []
        page.page.on("request", lambda request: sent.append(request.post_data or ""))
        await page.page.get_by_role("button", name="Void their votes").click()
        restore = page.page.get_by_role("button", name="Restore what was voided")
        await expect(restore).to_be_visible()
        assert [text.count('"suspect.') for text in sent if '"voters"' in text] == [100, 1]
        await assert_clean(page)
        await restore.click()
        await expect(restore).to_have_count(0)
        assert len({job for text in sent for job in re.findall(r'"job":"([^"]+)","idem', text)}) == 2


async def write_suspects(data: Path, board: str, count: int) -> None:
    """What the last search on a board has found, in a folder that no service uses yet."""
    now = utc_now()
    async with run_engine_async(data) as engine, open_table("ringside", url=engine.url) as table:
        await create(table)
        await ensure_layout(table)
        await table.write(SEARCH.put(SuspectSearch(board, "seen", 1, "seen", now, votes=9_000, voters=750)))
        await table.write_many(
            SUSPECT.put(
                Suspect(
                    board, "seen", place, f"voter-{place}", f"{PSEUDONYM}{place}", 1, 9, 0.001, ("Fast.",), (),
                    now + LIFETIME,
                )
            )
            for place in range(count)
        )  # fmt: skip


async def test_suspects_are_shown_with_their_own_board_only(visited: Visited, browser: Browser) -> None:
    """Although the answer comes after another board was chosen."""
    for slug in ("slow", "quick"):
        await board(visited, slug)
    page = await opened(visited, browser, "editor", "#/boards")
    await page.page.get_by_role("button", name="Board slow").click()
    await page.page.get_by_role("button", name="Show the last search").click()
    found = page.page.get_by_text("No search for suspects has ended in the last 30 days.")
    await expect(found).to_be_visible()
    async with answered_last(page.page, '"board":"slow"'):
        await page.page.get_by_role("button", name="Show the last search").click()
        await page.page.get_by_role("button", name="Board quick").click()
        await expect(page.page.get_by_role("heading", name="Board quick")).to_be_visible()
    await expect(found).to_have_count(0)


async def test_the_end_of_a_search_leaves_the_board_that_was_chosen_meanwhile(
    visited: Visited, browser: Browser
) -> None:
    """It is said; nothing is shown of a search on another board, and the keys stay where they are."""
    for slug in ("searched", "looked-at"):
        await board(visited, slug)
    page = (await opened(visited, browser, "editor", "#/boards")).page
    await page.get_by_role("button", name="Board searched").click()
    other = page.get_by_role("heading", name="Board looked-at")
    sent: list[str] = []
    async with held_back(page, "idempotencyKey"):
        await page.get_by_role("button", name="Look for suspects").click()
        await page.get_by_role("button", name="Board looked-at").click()
        await expect(other).to_be_visible()
        page.on("request", lambda request: sent.append(request.post_data or ""))
    await expect(page.get_by_role("status")).to_contain_text("Votes seen")
    await page.get_by_role("button", name="Board searched").click()
    await expect(other).to_have_count(0)
    assert not [text for text in sent if "atMost" in text]


def vote_left(visited: Visited, slug: str, votes: int, user: str = "sinister") -> None:
    """A member's votes, all for the left side."""
    with visited.client(user, "member") as client:

        def ask(query: str, **variables: str) -> Any:
            answer = client.post("/graphql", json={"query": query, "variables": variables}).json()
            return next(iter(answer["data"].values()))

        for _ in range(votes):
            ask(CAST_VOTE, token=ask(DRAW_MATCHUP, board=slug)["token"], verdict="LEFT")


@pytest.mark.parametrize("way", ["chosen", "dropped", "dropped-on-the-list"])
async def test_a_folder_of_pictures_becomes_contenders(
    visited: Visited, browser: Browser, tmp_path: Path, way: str
) -> None:
    """Also those in a folder of it; each picture goes to the contender of its name, however accents are stored.

    A text in it does not take the place of the list. However many files are left out, the page can be seen.
    """
    slug = f"folder-{way}"
    visited.edit(CREATE, slug=slug, title=slug)
    (tmp_path / "masks" / "more").mkdir(parents=True)
    picture = '<svg viewBox="0 0 9 9"><path d="M0 0h9v9z"/></svg>'
    for name in ("masks/Comet", "masks/more/Tide", "masks/Ete\u0301"):
        (tmp_path / f"{name}.svg").write_text(picture, encoding="utf-8")
    (tmp_path / "masks" / "README.md").write_text("Drawn by hand.", encoding="utf-8")
    page = await opened(visited, browser, "editor", "#/imports")
    await page.page.get_by_role("combobox", name="Where").select_option(slug)
    names = page.page.get_by_role("textbox", name="Paste a list, or a table")
    await names.fill("Comet\nTide\nNobody\nEt\u00e9")
    folder = page.page.get_by_label("Or choose a folder of pictures")
    if way == "chosen":
        await folder.set_input_files(tmp_path / "masks")
    else:
        await drop(page.page, folder if way == "dropped" else names, tmp_path / "masks")
    await expect(page.page.get_by_text("3 pictures")).to_be_visible()
    await expect(page.page.get_by_role("status")).to_have_text("Only the pictures were taken. Left out: README.md.")
    await expect(names).to_have_value("Comet\nTide\nNobody\nEt\u00e9")
    await page.page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.page.locator("section").get_by_text("4 were added.")).to_be_visible()
    board = ask(visited, f'{{ board(slug: "{slug}") {{ contenders(first: 9) {{ nodes {{ name svg }} }} }} }}')["board"]
    drawn = {each["name"]: bool(each["svg"]) for each in board["contenders"]["nodes"]}
    assert drawn == {"Comet": True, "Tide": True, "Nobody": False, "Et\u00e9": True}
    left_out: list[FilePayload] = [
        {"name": f"mask {number}.png", "mimeType": "image/png", "buffer": b"\x89PNG"} for number in range(200)
    ]
    await page.page.get_by_label("Or choose files").set_input_files(left_out)
    note = page.page.locator(".note span")
    await expect(note).to_contain_text("mask 199.png")
    assert await note.evaluate("(note) => note.offsetHeight") < 300  # of 844
    await assert_clean(page)


async def drop(page: Page, target: Locator, folder: Path) -> None:
    """Drag a folder from the desktop to a control, as Chromium tells a page."""
    box = await target.bounding_box()
    assert box is not None
    session = await page.context.new_cdp_session(page)
    place = {
        "x": box["x"] + 5,
        "y": box["y"] - 5,
        "data": {"items": [], "files": [str(folder)], "dragOperationsMask": 1},
    }
    for kind in ("dragEnter", "dragOver", "drop"):
        await session.send("Input.dispatchDragEvent", {"type": kind, **place})
