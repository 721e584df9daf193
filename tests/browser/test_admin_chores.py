"""Chores at /admin by keyboard alone, in Chromium: their keystrokes are counted and printed."""

import json
import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, FilePayload, Page, expect

from tests.browser.admin import Keys, ask, assert_clean, found, opened, printed
from tests.browser.sites import Visited
from tests.queries import CREATE_BOARD, CREATE_LIST, POST_COMMENT

pytestmark = pytest.mark.asyncio(loop_scope="session")

WIDE = {"width": 1280, "height": 900}
SEASON = """Opening night | 2031 | 2031-03-01 19:00
Ada v Bo
Main: Cy & Dee v Eve | 2

Second night | 2031 | {second}
Fay v Gil
{third}
"""


async def test_a_season_is_imported_and_its_errors_mended(
    visited: Visited, browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    """A check names the lines that are wrong, as they were typed; mended, the whole season is there."""
    page = await opened(visited, browser, "editor", "#/imports", viewport=WIDE)
    keys = Keys(page)
    await keys.to("combobox", "What")
    await keys.press("e")
    await keys.to("textbox", "Paste a list, or a table")
    await keys.paste(SEASON.format(second="in spring", third="Nobody at all"))
    await keys.to("button", "Check")
    await keys.press("Enter")
    await expect(page.page.get_by_text("Line 5:")).to_be_visible()
    await assert_clean(page)
    await keys.press("Shift+Tab", 2)
    await keys.press("ControlOrMeta+A")
    await keys.paste(SEASON.format(second="2031-04-01 19:00", third="Nobody at all"))
    await keys.to("button", "Check")
    await keys.press("Enter")
    await expect(page.page.get_by_text("Line 7:")).to_be_visible()
    await keys.press("Shift+Tab", 2)
    await keys.press("ControlOrMeta+A")
    await keys.paste(SEASON.format(second="2031-04-01 19:00", third="Hal v Ida"))
    await keys.to("button", "Add")
    await keys.press("Enter")
    await expect(page.page.locator("section").get_by_text("2 were added.")).to_be_visible()
    printed(capsys, "A season imported with its errors mended", keys)
    events = ask(visited, "{ events(first: 100) { nodes { name matches { name points } } } }")["events"]
    cards = {event["name"]: event["matches"] for event in events["nodes"]}
    assert cards["Opening night"] == [{"name": "Ada v Bo", "points": 1}, {"name": "Main", "points": 2}]
    assert [match["name"] for match in cards["Second night"]] == ["Fay v Gil", "Hal v Ida"]


async def test_what_is_wrong_in_a_season_file_is_named_by_its_event(visited: Visited, browser: Browser) -> None:
    """Of which it has many lines."""
    starts = ["2031-03-01T19:00:00Z", "2031-04-01T19:00:00Z", "in spring"]
    events = [{"name": f"Night {at}", "season": "2031", "startsAt": at, "matches": []} for at in starts]
    page = await opened(visited, browser, "editor", "#/imports", viewport=WIDE)
    await page.page.get_by_role("combobox", name="What").select_option("events")
    await page.page.get_by_label("Paste a list, or a table").fill(json.dumps({"events": events}, indent=2))
    await page.page.get_by_role("button", name="Check").click()
    await expect(page.page.locator("section").get_by_role("listitem")).to_contain_text(["Event 3:"])


async def test_a_beginning_that_is_no_whole_local_time_is_refused_with_its_line(
    visited: Visited, browser: Browser
) -> None:
    """No day, year or number is taken for another moment than was meant, and no day or hour that does not exist.

    What is one is a time where the editor is.
    """
    wrong = ["2031-03-01", "1.3.2031", "2031", "5", "2031-02-30 19:00", "2031-03-09 02:30", "March 1 2031 19:00"]
    text = "\n\n".join(f"Night {place} | 2031 | {begins}" for place, begins in enumerate(wrong))
    page = await opened(visited, browser, "editor", "#/imports", viewport=WIDE, timezone_id="America/New_York")
    await page.page.get_by_role("combobox", name="What").select_option("events")
    box = page.page.get_by_role("textbox", name="Paste a list, or a table")
    await box.fill(text)
    await page.page.get_by_role("button", name="Check").click()
    for place in range(len(wrong)):
        await expect(page.page.get_by_text(f"Line {1 + 2 * place}:")).to_be_visible()
    await box.fill("Local night | 2031 | 2031-03-01 19:00")
    await page.page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.page.locator("section").get_by_text("1 was added.")).to_be_visible()
    events = ask(visited, "{ events(first: 100) { nodes { name startsAt } } }")["events"]["nodes"]
    assert {"name": "Local night", "startsAt": "2031-03-02T00:00:00.000Z"} in events


async def test_a_season_is_typed_with_the_signs_and_digits_of_an_arabic_keyboard(
    visited: Visited, browser: Browser
) -> None:
    page = await opened(visited, browser, "editor", "#/imports", viewport=WIDE, locale="ar", timezone_id="UTC")
    await page.page.locator("[name=kind]").select_option("events")
    await page.page.locator("#import-text").fill("ليلة | موسم | ٢٠٣١-٠٣-٠٢ ١٩:٠٠\nعلي، عمر ضد سامي | ٢")
    await page.page.locator("[value=add]").click()
    await expect(page.page.locator("section p")).to_be_visible()
    card = "name startsAt matches { points teams { members } }"
    night = ask(visited, f'{{ nextEvent(season: "موسم") {{ {card} }} }}')["nextEvent"]
    assert night == {
        "name": "ليلة",
        "startsAt": "2031-03-02T19:00:00.000Z",
        "matches": [{"points": 2, "teams": [{"members": ["علي", "عمر"]}, {"members": ["سامي"]}]}],
    }


def file(name: str, content: bytes) -> FilePayload:
    return {"name": name, "mimeType": "", "buffer": content}


async def test_files_that_are_no_text_are_left_out_and_change_nothing(visited: Visited, browser: Browser) -> None:
    """A spreadsheet's own encoding would spoil each accent; what a system adds to a folder would replace the list."""
    page = await opened(visited, browser, "editor", "#/imports", viewport=WIDE)
    paste, files = (
        page.page.get_by_role("textbox", name="Paste a list, or a table"),
        page.page.get_by_label("choose files"),
    )
    await paste.fill("Comet")
    system, old = file(".DS_Store", b"\0\0\0\1Bud1 plain"), file("old.csv", "name\nMüller".encode("cp1252"))
    await files.set_input_files([system, old])
    await expect(page.page.get_by_role("status")).to_contain_text("Left out: old.csv.")
    await expect(paste).to_have_value("Comet")
    await files.set_input_files(file("new.csv", "name\nMüller".encode("utf-16")))
    await expect(paste).to_have_value("name\nMüller")
    await expect(page.page.get_by_role("status")).to_have_text("")


@pytest.mark.parametrize("between", [",", ";"])
async def test_pictures_beside_a_table_go_to_those_whom_it_names(
    visited: Visited, browser: Browser, between: str
) -> None:
    """As they do beside a list: the table needs no column for them. A row may be shorter, or a cell have lines.

    Its first line names the columns in any order and case.
    """
    slug = {",": "tabled-commas", ";": "tabled-semicolons"}[between]
    visited.edit(CREATE_BOARD, slug=slug, title=slug)
    lines = ["Link,NAME,description", 'https://example.com/comet,"Comet, ""the"" first","Unbeaten,', '"",or so."', ""]
    table = "\r\n".join([*lines, ",Tide", ",Nobody,Of no looks.", ",Tide"]).replace(",", between)
    picture = '<svg viewBox="0 0 9 9">\n<path d="M0 0h9v9z"/>\n</svg>'
    files = {"names.csv": table, f'Comet{between} "the" first.svg': picture, "Tide.svg": picture}
    page = await opened(visited, browser, "editor", "#/imports")
    await page.page.get_by_role("combobox", name="Where").select_option(slug)
    chosen, section = page.page.get_by_label("Or choose files"), page.page.locator("section")
    await chosen.set_input_files([file(name, text.encode()) for name, text in files.items()])
    await expect(page.page.get_by_text("2 pictures")).to_be_visible()
    await page.page.get_by_role("button", name="Check", exact=True).click()
    await expect(section.get_by_role("listitem")).to_contain_text(["Line 7:"])
    await chosen.set_input_files(file("names.csv", table.removesuffix(f"{between}Tide").encode()))
    await page.page.get_by_role("button", name="Add", exact=True).click()
    await expect(section.get_by_text("3 were added.")).to_be_visible()
    shown = "contenders(first: 9) { nodes { name description link svg } }"
    added = ask(visited, f'{{ board(slug: "{slug}") {{ {shown} }} }}')["board"]["contenders"]["nodes"]
    described = f'Unbeaten{between}\n"{between}or so.'
    assert [(each["name"], each["description"], each["link"], bool(each["svg"])) for each in added] == [
        (f'Comet{between} "the" first', described, "https://example.com/comet", True),
        ("Tide", None, None, True),
        ("Nobody", "Of no looks.", None, False),
    ]


async def test_a_table_below_blank_lines_is_a_table(visited: Visited, browser: Browser) -> None:
    """Its lines count as they were typed."""
    visited.edit(CREATE_BOARD, slug="below-blanks", title="Below blanks")
    page = await opened(visited, browser, "editor", "#/imports", viewport=WIDE)
    await page.page.get_by_role("combobox", name="Where").select_option("below-blanks")
    box, section = page.page.get_by_label("Paste a list, or a table"), page.page.locator("section")
    await box.fill("\n \nname,description\nComet,fast\n,slow")
    await page.page.get_by_role("button", name="Check").click()
    await expect(section.get_by_role("listitem")).to_contain_text(["Line 5:"])
    await box.fill("\n \nname,description\nComet,fast")
    await page.page.get_by_role("button", name="Add", exact=True).click()
    await expect(section.get_by_text("1 was added.")).to_be_visible()
    added = ask(visited, '{ board(slug: "below-blanks") { contenders(first: 9) { nodes { name description } } } }')
    assert added["board"]["contenders"]["nodes"] == [{"name": "Comet", "description": "fast"}]


async def test_a_file_that_was_mended_is_read_again(visited: Visited, browser: Browser, tmp_path: Path) -> None:
    """Though it is the one that was chosen before: browsers tell a page of another choice alone."""
    page = await opened(visited, browser, "editor", "#/imports", viewport=WIDE)
    names, field = tmp_path / "names.txt", page.page.get_by_label("choose files")
    devtools = await page.page.context.new_cdp_session(page.page)
    first = "document.querySelector('ringside-admin').shadowRoot.querySelector('[type=file]')"
    for text in ("Comte", "Comet"):
        names.write_text(text, encoding="utf-8")
        async with page.page.expect_file_chooser():
            await field.click()
        found = await devtools.send("Runtime.evaluate", {"expression": first})
        chosen = {"files": [str(names)], "objectId": found["result"]["objectId"]}  # as the browser's own dialog does
        await devtools.send("DOM.setFileInputFiles", chosen)
        await expect(page.page.get_by_label("Paste a list, or a table")).to_have_value(text)


async def test_what_is_too_much_for_one_request_is_said_once(visited: Visited, browser: Browser) -> None:
    """And what was typed can be sent in parts."""
    page = await opened(visited, browser, "editor", "#/imports", viewport=WIDE)
    paste, check = page.page.get_by_role("textbox", name="Paste a list, or a table"), page.page.get_by_role("button")
    lines = [f"Somebody {number} {'x' * 1000}" for number in range(1100)]
    text = "\n".join(lines)
    await page.page.get_by_label("choose files").set_input_files(file("names.txt", text.encode()))
    await expect(paste).to_have_value(text)
    await expect(page.page.get_by_label("Where").locator("option").first).to_be_attached()
    page.requests.clear()
    await check.filter(has_text="Check").click()
    await expect(page.page.get_by_role("status")).to_contain_text("This is more than the service takes at once.")
    await paste.fill("Somebody")
    await check.filter(has_text="Check").click()
    await expect(page.page.get_by_role("status")).to_contain_text("1 would be added.")
    assert len(page.requests) == 2


async def test_an_editor_sees_a_long_import_to_its_end(visited: Visited, browser: Browser) -> None:
    """What takes longer than five seconds is a job, which only admins find under "Service"."""
    words = visited.edit(CREATE_LIST, name="Long list", public=True, level=1)["list"]["id"]
    page = await opened(visited, browser, "editor", "#/imports", viewport=WIDE)
    await page.page.get_by_label("What").select_option("words")
    await page.page.get_by_label("Where").select_option(words)
    rows = "\n".join(f"word {number},meaning {number}" for number in range(30_000))
    file: FilePayload = {"name": "words.csv", "mimeType": "text/csv", "buffer": f"term,definition\n{rows}".encode()}
    await page.page.get_by_label("Or choose files").set_input_files(file)
    await expect(page.page.get_by_label("Paste a list, or a table")).to_have_value(re.compile("word 29999"))
    await page.page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.page.locator("section").get_by_text("30,000 were added.")).to_be_visible()
    await expect(page.page.get_by_text("The rest is being added.")).to_have_count(0)
    assert ask(visited, f'{{ wordList(id: "{words}") {{ wordCount }} }}')["wordList"] == {"wordCount": 30_000}


async def test_a_raid_is_taken_back(visited: Visited, browser: Browser, capsys: pytest.CaptureFixture[str]) -> None:
    """All that one member wrote, shown until the job has done it."""
    name = raider(visited, "raider", 12)
    page = await opened(visited, browser, "moderator", "#/members", viewport=WIDE)
    keys = await found(page, name)
    await keys.to("button", "Take back")
    await keys.press("Enter")
    await expect(page.page.get_by_role("status")).to_contain_text("was taken back")
    printed(capsys, "A raid taken back", keys)
    assert ask(visited, '{ comments(product: "raided", first: 20) { totalCount } }') == {"comments": {"totalCount": 0}}
    await assert_clean(page)


async def test_a_list_of_many_members_is_shown_a_page_at_a_time(visited: Visited, browser: Browser) -> None:
    """Everybody can be found by paging: after a raid, say, there are more newcomers than a page has."""
    page = await opened(visited, browser, "moderator", "#/members", viewport=WIDE)
    members = page.page.locator("ringside-admin li button")
    await expect(members).to_have_count(100)
    await page.page.get_by_label("Name, id or address").press("Enter")
    await expect(page.page.get_by_role("status")).to_have_text("100+ members")
    await page.page.get_by_role("button", name="More").click()
    await expect(page.page.locator("#member-100")).to_be_focused()
    await assert_clean(page)
    last = await members.last.locator("span").inner_text()
    await members.last.click()
    await expect(page.page.get_by_role("heading", name=last)).to_be_focused()


async def test_a_member_is_exported_and_erased(
    visited: Visited, browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file has what they wrote; afterwards nobody has the name."""
    name = raider(visited, "farewell", 1)
    page = await opened(visited, browser, "admin", "#/members", viewport=WIDE)
    keys = await found(page, name)
    await keys.to("button", "Export everything stored")
    await keys.press("Enter")
    link = page.page.get_by_role("link", name="Fetch the file")
    await expect(link).to_be_visible()
    file = await fetched(page.page, await link.get_attribute("href") or "")
    assert "Buy mine 0." in file
    json.loads(file.splitlines()[0])
    await keys.to("textbox", "To erase them, type their name")
    await keys.paste(name)
    await keys.to("button", "Erase")
    await keys.press("Enter")
    await expect(page.page.get_by_role("status")).to_contain_text("was erased")
    printed(capsys, "A member exported and erased", keys)
    await expect(page.page.get_by_role("heading", name=name)).to_have_count(0)
    await expect(page.page.get_by_role("searchbox")).to_be_focused()
    comments = ask(visited, '{ comments(product: "raided", first: 20) { nodes { author { name } } } }')["comments"]
    assert name not in {comment["author"]["name"] for comment in comments["nodes"]}


def raider(visited: Visited, user: str, comments: int) -> str:
    """The name of a member who has written so many comments."""
    for number in range(comments):
        given = {"product": "raided", "language": "en", "body": f"Buy mine {number}."}
        posted = visited.edit(POST_COMMENT, by=user, role="member", **given)["comment"]
    return str(
        ask(visited, f'{{ comment(id: "{posted["id"]}") {{ author {{ name }} }} }}')["comment"]["author"]["name"]
    )


async def fetched(page: Page, url: str) -> str:
    """What the page's browser gets from there."""
    return str(await page.evaluate("async (url) => (await fetch(url)).text()", url))
