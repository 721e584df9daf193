"""The area of words at /admin, in Chromium, by keyboard alone where it says so."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, expect

from tests.browser.admin import NODES, Keys, ask, assert_clean, double_click, opened, printed
from tests.browser.pages import BrowserPage, held_back
from tests.browser.sites import Visited
from tests.queries import mutation
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

CREATE = mutation("createWordList", "WordListCreated", "list { id }", refused="code")
ADD = mutation("addWords", "WordsAdded", "words { id term }", refused="code")
UPDATE = """mutation ($input: UpdateWordListInput!) {
  updateWordList(input: $input) { __typename ... on Refused { code } }
}"""
CHANGE = "mutation ($input: UpdateWordInput!) { updateWord(input: $input) { __typename ... on Refused { code } } }"
IMPORT = "mutation ($input: ImportWordsInput!) { importWords(input: $input) { __typename ... on Refused { code } } }"
DELETE = """mutation ($input: DeleteWordListInput!) {
  deleteWordList(input: $input) { __typename ... on Refused { code } }
}"""
HOSTILE = "<img src=x onerror=alert(1)>"
WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 780}


def word_list(visited: Visited, name: str, *words: dict[str, str]) -> tuple[str, dict[str, str]]:
    """A public list; the ids of its words by their terms."""
    made = str(visited.edit(CREATE, name=name, public=True)["list"]["id"])
    added = visited.edit(ADD, list=made, words=words)["words"] if words else []
    return made, {word["term"]: word["id"] for word in added}


def german(count: int) -> list[dict[str, str]]:
    return [{"term": f"Wort{number}", "definition": f"word {number}"} for number in range(count)]


async def chosen(visited: Visited, browser: Browser, name: str, **options: Any) -> BrowserPage:
    """The page with a list of this name."""
    page = await opened(visited, browser, "editor", "#/words", **options)
    await page.page.get_by_role("button", name=name, exact=True).click()
    await expect(page.page.get_by_role("heading", name=name, exact=True)).to_be_focused()
    return page


async def led_to_paste(page: BrowserPage) -> Locator:
    """The field for many words of the chosen list, once all lists are read, for which there is room above it."""
    await page.page.get_by_role("button", name="Add many").click()
    text = page.page.get_by_role("textbox", name="Paste a list, or a table")
    await expect(text).to_be_focused()
    return text


async def test_a_list_of_twenty_words_is_made_from_nothing(
    visited: Visited, browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    """By keyboard alone: the list, its words a line each, mended after a check; then the days ahead show them."""
    page = await opened(visited, browser, "editor", "#/words", viewport=WIDE)
    keys = Keys(page)
    await keys.to("button", "A new list")
    await keys.press("Enter")
    await expect(page.page.get_by_role("textbox", name="Name of a new list")).to_be_focused()
    await keys.paste("Twenty words")
    await keys.press("Enter")
    await expect(page.page.get_by_role("heading", name="Twenty words")).to_be_focused()
    await keys.to("button", "Add many")
    await keys.press("Enter")
    await expect(page.page.get_by_role("textbox", name="Paste a list, or a table")).to_be_focused()
    lines = [f"Wort {number} = word, {number}" for number in range(20)]
    await keys.paste("\n".join([lines[0], "", "Unwort", *lines[1:]]))
    await keys.to("button", "Check")
    await keys.press("Enter")
    await expect(page.page.locator("section").get_by_text("20 would be added.")).to_be_visible()
    await expect(page.page.get_by_text("Line 3:")).to_be_visible()
    await assert_clean(page)
    await keys.press("Shift+Tab", 2)
    await keys.press("ControlOrMeta+A")
    await keys.paste("\n".join(lines))
    await keys.to("button", "Add")
    await keys.press("Enter")
    await expect(page.page.locator("section").get_by_text("20 were added.")).to_be_visible()
    printed(capsys, "A list of twenty words, from nothing", keys)
    assert keys.pressed <= 40
    await page.page.get_by_role("link", name="Words").click()
    await expect(page.page.get_by_text("Words: 20.")).to_be_visible()
    await expect(page.page.locator("[id^='day-']")).to_have_count(14)
    await expect(page.page.locator("[id^='word-']")).to_have_count(20)
    await expect(page.page.get_by_text("Wort 7 · word, 7").first).to_be_visible()
    await assert_clean(page)


async def test_lines_and_tables_of_words_are_told_apart(visited: Visited, browser: Browser) -> None:
    """By a first line that names columns; a refusal of the whole text stands at it; lines count as they were typed.

    A check shows where a line's word ends, since there may be commas on both sides, and which columns a table has.
    """
    list_id, _ = word_list(visited, "Lines and tables")
    page = await chosen(visited, browser, "Lines and tables")
    text = await led_to_paste(page)
    add = page.page.get_by_role("button", name="Add", exact=True)
    lines = ["Semester, term", 'Zitat; a "quotation", of others', "Unwort", "Haus\thouse", "to run, to hurry = laufen"]
    await text.fill("\n".join([*lines, "نعم، شكرًا; yes, thanks", "بيت، house", "U-Bahn - underground, tube"]))
    await page.page.get_by_role("button", name="Check").click()
    await expect(page.page.get_by_role("listitem").filter(has_text="to run, to hurry · laufen")).to_be_visible()
    await add.click()
    await expect(page.page.get_by_text("7 were added.").last).to_be_visible()
    await expect(page.page.get_by_text("Line 3:")).to_be_visible()
    await text.fill('definition;term\n"a tree; a plant";Baum\n\n;Leer')
    await page.page.get_by_role("button", name="Check").click()
    await expect(page.page.get_by_role("listitem").filter(has_text="Baum · a tree; a plant")).to_be_visible()
    await add.click()
    await expect(page.page.get_by_text("1 was added.").last).to_be_visible()
    await expect(page.page.get_by_text("Line 4:")).to_be_visible()
    await text.fill("term,reading\nWort,vort")
    await add.click()
    await expect(page.page.locator("#import-text-refused")).to_contain_text("has no column definition")
    await expect(text).to_be_focused()
    await assert_clean(page)
    words = ask(visited, f'{{ wordList(id: "{list_id}") {{ words {{ nodes {{ term definition }} }} }} }}')
    assert {word["term"]: word["definition"] for word in words["wordList"]["words"]["nodes"]} == {
        "Semester": "term",
        "Zitat": 'a "quotation", of others',
        "Haus": "house",
        "to run, to hurry": "laufen",
        "نعم، شكرًا": "yes, thanks",
        "بيت": "house",
        "U-Bahn": "underground, tube",
        "Baum": "a tree; a plant",
    }


async def test_a_word_is_corrected_and_another_removed_and_added_again(
    visited: Visited, browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    """By keyboard alone, and the focus stays where the work is."""
    list_id, _ = word_list(visited, "Corrected words", *german(5))
    page = await chosen(visited, browser, "Corrected words", viewport=WIDE)
    keys = Keys(page)
    await page.page.get_by_role("button", name="Edit Wort1", exact=True).focus()
    await keys.press("Enter")
    await expect(page.page.locator("#word-edit-term")).to_be_focused()
    await keys.press("ControlOrMeta+A")
    await keys.paste("Verbessert")
    await keys.press("Enter")
    await expect(page.page.get_by_role("button", name="Edit Verbessert", exact=True)).to_be_focused()
    await expect(page.page.get_by_role("status")).to_have_text("Saved.")
    await keys.press("Tab")
    await keys.press("Enter")
    await expect(page.page.get_by_role("status")).to_have_text("Verbessert was removed.")
    await expect(page.page.get_by_role("button", name="Edit Wort2", exact=True)).to_be_focused()
    printed(capsys, "A word corrected, and one removed", keys)
    assert keys.pressed <= 8
    words = f'{{ wordList(id: "{list_id}") {{ words {{ nodes {{ term definition }} }} }} }}'
    assert [word["term"] for word in ask(visited, words)["wordList"]["words"]["nodes"]] == [
        "Wort0", "Wort2", "Wort3", "Wort4"
    ]  # fmt: skip
    await page.page.get_by_role("button", name="Add it again").click()
    await expect(page.page.get_by_role("button", name="Edit Verbessert", exact=True)).to_be_visible()
    again = ask(visited, words)["wordList"]["words"]["nodes"]
    assert again[-1] == {"term": "Verbessert", "definition": "word 1"}


async def test_a_japanese_word_that_was_pasted_gets_a_reading(visited: Visited, browser: Browser) -> None:
    """Its Han characters make it no Chinese word, also when it was removed and is added again."""
    list_id, _ = word_list(visited, "Japanese words")
    page = await chosen(visited, browser, "Japanese words")
    await (await led_to_paste(page)).fill("猫 = cat")
    await page.page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.page.get_by_text("1 was added.").last).to_be_visible()
    await page.page.get_by_role("link", name="Words", exact=True).click()
    await expect(page.page.locator("[id^='day-']")).to_have_count(14)  # above what is pressed next
    await page.page.get_by_role("button", name="Remove 猫", exact=True).click()
    await page.page.get_by_role("button", name="Add it again").click()
    await page.page.get_by_role("button", name="Edit 猫", exact=True).click()
    await page.page.locator("#word-edit-reading").fill("ねこ")
    await page.page.get_by_role("button", name="Save", exact=True).last.click()
    await expect(page.page.get_by_role("status")).to_have_text("Saved.")
    words = f'{{ wordList(id: "{list_id}") {{ words {{ nodes {{ term chinese reading }} }} }} }}'
    assert ask(visited, words)["wordList"]["words"]["nodes"] == [{"term": "猫", "chinese": False, "reading": "ねこ"}]


async def test_a_double_click_removes_one_word(visited: Visited, browser: Browser) -> None:
    """Not the next one, too, whose button stands there by then."""
    list_id, _ = word_list(visited, "Hasty words", *german(5))
    page = await chosen(visited, browser, "Hasty words", viewport={"width": 1280, "height": 2400})
    status = page.page.get_by_role("status")
    remove = {n: page.page.get_by_role("button", name=f"Remove Wort{n}", exact=True) for n in range(5)}
    await remove[0].click()  # then the line about a removed word is there, and what follows keeps its place
    await expect(status).to_have_text("Wort0 was removed.")
    await double_click(page.page, remove[1], lambda: expect(remove[1]).to_have_count(0))
    await remove[4].press("Enter")
    await expect(status).to_have_text("Wort4 was removed.")
    words = ask(visited, f'{{ wordList(id: "{list_id}") {{ words {{ nodes {{ term }} }} }} }}')["wordList"]["words"]
    assert [word["term"] for word in words["nodes"]] == ["Wort2", "Wort3"]


async def test_a_word_that_is_removed_while_it_is_changed_is_in_nobody_s_way(
    visited: Visited, browser: Browser
) -> None:
    """It is changed in its row of a day, and removed in that of the list."""
    word_list(visited, "Removed in between", *german(2))
    page = await chosen(visited, browser, "Removed in between", viewport=WIDE)
    await page.page.locator("[id^=day-]").first.click()
    definition, term = page.page.locator("#word-edit-definition"), page.page.locator("#word-edit-term")
    await definition.fill("changed")
    gone = await term.input_value()
    await page.page.get_by_role("button", name=f"Remove {gone}", exact=True).click()
    await expect(page.page.get_by_role("status")).to_have_text(f"{gone} was removed.")
    await expect(definition).to_have_count(0)
    await page.page.locator("#word-0").click()
    await expect(term).to_be_focused()


async def test_a_removed_word_is_not_offered_to_another_list(visited: Visited, browser: Browser) -> None:
    """Which was chosen before the answer came: to add it again there would be a mistake that is easily made."""
    word_list(visited, "Removed from", *german(2))
    word_list(visited, "Chosen meanwhile", {"term": "palabra", "definition": "word"})
    page = await chosen(visited, browser, "Removed from", viewport=WIDE)
    async with held_back(page.page, "idempotencyKey"):
        await page.page.get_by_role("button", name="Remove Wort1", exact=True).click()
        await page.page.get_by_role("button", name="Chosen meanwhile", exact=True).click()
        await expect(page.page.get_by_role("heading", name="Chosen meanwhile", exact=True)).to_be_focused()
    await expect(page.page.get_by_role("status")).to_have_text("Wort1 was removed.")
    await expect(page.page.get_by_role("button", name="Edit palabra", exact=True)).to_be_visible()
    assert await page.page.get_by_role("button", name="Add it again").count() == 0


async def test_the_days_ahead_show_what_comes_and_follow_the_list(visited: Visited, browser: Browser) -> None:
    """Today's word is drawn; of two that come, one is corrected before its day, and one gives way to the next."""
    list_id, _ = word_list(visited, "Words ahead", *german(6))
    drawn = ask(visited, f'{{ wordList(id: "{list_id}") {{ dailyWord {{ word {{ term }} }} }} }}')
    page = await chosen(visited, browser, "Words ahead")
    rows = page.page.locator("li", has=page.page.locator("[id^='day-']"))
    await expect(rows.first).to_contain_text(drawn["wordList"]["dailyWord"]["word"]["term"])
    terms = [text.split(" · ")[1] for text in (await rows.all_inner_texts())[:6]]
    assert len(set(terms)) == 6
    second = page.page.locator(f"#day-{datetime.now(UTC).date() + timedelta(days=1)}")
    await second.click()
    await page.page.get_by_label("Meaning", exact=True).last.fill("a better meaning")
    await page.page.keyboard.press("Enter")
    await expect(rows.nth(1)).to_contain_text("a better meaning")
    await expect(second).to_be_focused()
    await rows.nth(2).get_by_role("button", name="Remove").click()
    await expect(rows.nth(2)).to_contain_text(terms[3])
    await assert_clean(page)


@pytest.mark.parametrize(
    ("locale", "options"),
    [
        ("de-DE", {"color_scheme": "dark", "viewport": PHONE}),
        ("es", {"viewport": WIDE}),
    ],
)
async def test_the_area_is_readable_by_everybody(
    visited: Visited, browser: Browser, locale: str, options: dict[str, Any]
) -> None:
    """A list of the demo, while a word is changed."""
    page = await opened(visited, browser, "editor", "#/words", locale=locale, **options)
    await page.page.get_by_role("button", name="At the match").click()
    await page.page.locator("#word-1").click()
    await expect(page.page.locator("#word-edit-pinyin")).to_be_visible()
    await assert_clean(page)


async def test_a_word_has_room_on_a_small_phone(visited: Visited, browser: Browser) -> None:
    """Beside its buttons it stood in a few letters a line, where the names of these are long."""
    page = await opened(visited, browser, "editor", "#/words", locale="de-DE", viewport={"width": 320, "height": 640})
    await page.page.get_by_role("button", name="At the match").click()
    await expect(page.page.locator("#word-1")).to_be_visible()
    widths = await page.page.locator("li.word > p").evaluate_all("(texts) => texts.map((text) => text.clientWidth)")
    assert min(widths) > 200
    await assert_clean(page)


async def test_two_editors_of_one_list_see_each_other_s_changes(visited: Visited, browser: Browser) -> None:
    """Nothing is overwritten unseen, also not after something else was done: what was typed stays, theirs is marked."""
    list_id, ids = word_list(visited, "Shared words", *german(3))
    page = await chosen(visited, browser, "Shared words")
    name = page.page.locator("#list-name")
    await name.fill("My words")
    visited.edit(UPDATE, list=list_id, name="Their words", level=7)
    save = page.page.get_by_role("button", name="Save")
    await save.click()
    await expect(page.page.get_by_text("Somebody else wrote: Their words")).to_be_visible()
    await expect(name).to_have_value("My words")
    await expect(page.page.locator("#list-level")).to_have_value("7")
    await assert_clean(page)
    visited.edit(UPDATE, list=list_id, name="Their other words")
    await page.page.get_by_role("button", name="Remove Wort2", exact=True).click()
    await expect(page.page.get_by_text("Somebody else wrote: Their other words")).to_be_visible()
    await expect(name).to_have_value("My words")
    await save.click()
    await expect(page.page.get_by_role("status")).to_have_text("Saved.")
    await expect(page.page.get_by_role("button", name="My words")).to_be_visible()

    await page.page.get_by_role("button", name="Edit Wort0", exact=True).click()
    meaning = page.page.locator("#word-edit-definition")
    await meaning.fill("mine")
    visited.edit(CHANGE, word=ids["Wort0"], definition="theirs", example="Ein Wort.")
    await page.page.get_by_role("button", name="Save").last.click()
    await expect(page.page.get_by_text("Somebody else wrote: theirs")).to_be_visible()
    await expect(meaning).to_have_value("mine")
    await expect(page.page.locator("#word-edit-example")).to_have_value("Ein Wort.")
    await page.page.get_by_role("button", name="My words", exact=True).click()
    await expect(page.page.get_by_role("status")).to_contain_text("First save what you changed in Wort0")
    await page.page.get_by_role("button", name="Edit Wort1", exact=True).click()
    await expect(page.page.locator("#word-edit-term")).to_be_focused()
    await page.page.get_by_role("button", name="Save").last.click()
    await expect(page.page.get_by_text("Wort0 · mine").last).to_be_visible()


async def test_what_is_refused_stands_at_its_field(visited: Visited, browser: Browser) -> None:
    """A name that is taken, a level and texts that are too much, no sound's address; and texts that break nothing."""
    word_list(visited, "Taken words")
    page = await opened(visited, browser, "editor", "#/words", color_scheme="dark")
    await expect(page.page.get_by_role("button", name="Taken words")).to_be_visible()  # above the form
    name = page.page.get_by_label("Name of a new list")
    await name.fill("taken WORDS")
    await page.page.get_by_role("button", name="Create").click()
    await expect(page.page.locator("#new-list-name-refused")).to_contain_text("already a public list")
    await expect(name).to_be_focused()
    await assert_clean(page)
    await name.fill(HOSTILE)
    await page.page.get_by_role("button", name="Create").click()
    await expect(page.page.get_by_role("heading", name=HOSTILE)).to_be_focused()
    await page.page.locator("#list-name").fill("Taken words")
    await page.page.get_by_role("button", name="Save").click()
    await expect(page.page.locator("#list-name-refused")).to_be_visible()
    await page.page.locator("#new-word-term").fill("<b>Wort</b>\u202e")
    await page.page.locator("#new-word-definition").fill("w" * 1001)
    add = page.page.get_by_role("button", name="Add", exact=True)
    await add.click()
    refused = page.page.locator("[id^='new-word-'][id$='-refused']")
    await expect(refused).to_have_count(1)
    await page.page.locator("#new-word-term").fill("<b>Wort</b>")
    await add.click()
    await expect(page.page.locator("#new-word-definition-refused")).to_be_visible()
    await page.page.locator("#new-word-definition").fill(HOSTILE)
    await page.page.locator("#new-word-audioUrl").fill("http://example.com/a.mp3")
    await add.click()
    await expect(page.page.locator("#new-word-audioUrl-refused")).to_be_visible()
    await page.page.locator("#new-word-audioUrl").fill("")
    await add.click()
    await expect(page.page.get_by_text(f"<b>Wort</b> · {HOSTILE}").last).to_be_visible()
    await expect(page.page.locator("#new-word-term")).to_be_focused()
    await assert_clean(page)
    await page.page.get_by_label("To delete the list, type its name").fill("Another")
    await page.page.get_by_role("button", name="Delete the list").click()
    await expect(page.page.get_by_role("status")).to_contain_text("Type the list's name exactly")
    await page.page.get_by_label("To delete the list, type its name").fill(HOSTILE)
    await page.page.get_by_role("button", name="Delete the list").click()
    await expect(page.page.get_by_role("heading", name=HOSTILE)).to_have_count(0)
    await expect(page.page.get_by_role("button", name=HOSTILE)).to_have_count(0)


async def test_a_list_is_deleted_whose_accents_are_stored_apart_from_their_letters(
    visited: Visited, browser: Browser
) -> None:
    """As a file's name gives them to an import, say; a keyboard writes them together."""
    word_list(visited, "Tie\u0302\u0301ng Vie\u0323\u0302t")
    page = await opened(visited, browser, "editor", "#/words")
    lists = page.page.get_by_role("button", name="Vie\u0323\u0302t")
    await lists.click()
    await page.page.get_by_label("To delete the list, type its name").fill("Ti\u1ebfng Vi\u1ec7t")
    await page.page.get_by_role("button", name="Delete the list").click()
    await expect(page.page.get_by_role("status")).to_contain_text("is deleted")
    await expect(lists).to_have_count(0)


async def test_a_private_list_is_filled_and_then_published(
    visited: Visited, browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    """By keyboard alone, with a Chinese word, whose spellings and pinyin are corrected later."""
    page = await opened(visited, browser, "editor", "#/words")
    keys = Keys(page)
    await keys.to("textbox", "Name of a new list")
    await keys.paste("Drafted words")
    await keys.to("checkbox", "Everybody may read it")
    await keys.press("Space")
    await keys.to("button", "Create")
    await keys.press("Enter")
    await expect(page.page.get_by_text("Only you see it.")).to_be_visible()
    await keys.to("checkbox", "Chinese, with pinyin")
    await keys.press("Space")
    for name, text in (("Simplified characters", "词"), ("Pinyin", "ci"), ("Meaning", "word")):
        await keys.to("textbox", name)
        await keys.paste(text)
    await keys.press("Enter")
    await expect(page.page.get_by_role("status")).to_have_text("词 was added.")  # and the first field has the focus
    await keys.to("button", "Edit 词")
    await keys.press("Enter")
    await expect(page.page.locator("#word-edit-simplified")).to_be_focused()
    for text in ("詞", "cí"):
        await keys.press("Tab")
        await keys.press("ControlOrMeta+A")
        await keys.paste(text)
    await keys.press("Enter")
    await expect(page.page.get_by_text("词 · 詞 · cí · word").last).to_be_visible()
    await assert_clean(page)
    await keys.to("checkbox", "Publish it: everybody may read it then")
    await keys.press("Space")
    await keys.to("button", "Save")
    await keys.press("Enter")
    await expect(page.page.get_by_role("button", name="Add many")).to_be_visible()
    printed(capsys, "A private list filled and published", keys)
    lists = ask(visited, "{ wordLists(first: 100) { nodes { id name } } }")["wordLists"]["nodes"]
    (drafted,) = [each["id"] for each in lists if each["name"] == "Drafted words"]
    words = ask(visited, f'{{ wordList(id: "{drafted}") {{ words {{ nodes {{ pinyin traditional }} }} }} }}')
    assert words["wordList"]["words"]["nodes"] == [{"pinyin": "cí", "traditional": "詞"}]


async def test_a_list_of_three_thousand_words_is_shown_a_page_at_a_time(visited: Visited, browser: Browser) -> None:
    """Each press asks once and adds no more nodes than the first page has; the focus is on the first new word."""
    list_id, _ = word_list(visited, "Many words")
    lines = [f"Wort{number},word {number}" for number in range(3_000)]
    visited.edit(IMPORT, list=list_id, text="\n".join(["term,definition", *lines]))
    count = f'{{ wordList(id: "{list_id}") {{ wordCount }} }}'
    await until(lambda: ask(visited, count)["wordList"]["wordCount"] == 3_000, "all words are there")
    page = await chosen(visited, browser, "Many words")
    words = page.page.locator("[id^='word-']")
    await expect(words).to_have_count(100)
    nodes = first = await page.page.evaluate(NODES)
    for pages in range(2, 5):
        page.requests.clear()
        await page.page.get_by_role("button", name="More").focus()
        await page.page.keyboard.press("Enter")
        await expect(page.page.locator(f"#word-{pages * 100 - 100}")).to_be_focused()
        await expect(words).to_have_count(pages * 100)
        now = await page.page.evaluate(NODES)
        assert (len(page.requests), now - nodes <= first) == (1, True)
        nodes = now
    await page.page.get_by_role("button", name="Remove Wort250", exact=True).click()
    await expect(words).to_have_count(399)
    await expect(page.page.get_by_text("Words: 2,999.")).to_be_visible()


async def test_more_lists_than_a_page_has_can_be_reached(visited: Visited, browser: Browser) -> None:
    """And words added to the last of them."""
    with visited.client("editor", "editor") as client:

        def do(query: str, **given: Any) -> Any:
            answer = client.post("/graphql", json={"query": query, "variables": {"input": given}}).json()
            return next(iter(answer["data"].values()))

        made = [do(CREATE, name=f"zz list {number:03}", public=True)["list"]["id"] for number in range(105)]
        page = await opened(visited, browser, "editor", "#/imports")
        await page.page.get_by_role("combobox", name="What").select_option("words")
        where = page.page.get_by_role("combobox", name="Where")
        await expect(where.get_by_role("option")).to_have_count(100)
        await page.page.get_by_role("button", name="More").press("Enter")
        await expect(where).to_be_focused()
        await where.select_option("zz list 104")
        await page.page.get_by_role("textbox", name="Paste a list, or a table").fill("Anfang\tbeginning")
        await page.page.get_by_role("button", name="Add", exact=True).click()
        await expect(page.page.locator("section").get_by_text("1 was added.")).to_be_visible()
        await page.page.close()
        page = await opened(visited, browser, "editor", "#/words")
        await expect(page.page.locator("li button")).to_have_count(100)
        await page.page.get_by_role("button", name="More").click()
        await page.page.get_by_role("button", name="zz list 104").click()
        await (await led_to_paste(page)).fill("Ende\tend")
        await page.page.get_by_role("button", name="Add", exact=True).click()
        await expect(page.page.locator("section").get_by_text("1 was added.")).to_be_visible()
        assert ask(visited, f'{{ wordList(id: "{made[-1]}") {{ wordCount }} }}') == {"wordList": {"wordCount": 2}}
        for each in made:
            do(DELETE, list=each)
