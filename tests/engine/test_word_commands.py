"""`ringside import words`, `migrate legacy` and `emails`, as an operator runs them."""

import asyncio
import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from datastore.dynamo import Table, open_table
from datastore.people.profiles import PROFILE, Profile
from datastore.vocabulary.lists import lists_by_name
from resolvers.requests.context import utc_now
from resolvers.values.node_ids import node_id
from tests.command import on_table, ringside
from tests.engines import RunningEngine
from tests.legacy_sample import Sample

SECRET = "a secret that is long enough to be one in tests"


@pytest.fixture
def variables(one_table: Table, default_engine: RunningEngine) -> dict[str, str]:
    return on_table(default_engine.url, one_table.name, RINGSIDE_SECRETS=SECRET, RINGSIDE_LOG="error")


async def test_a_file_of_words_is_imported_once(one_table: Table, variables: dict[str, str], tmp_path: Path) -> None:
    """Good rows are added, bad ones reported with their lines; a second run adds nothing."""
    file, report = tmp_path / "Greetings.csv", tmp_path / "bad.csv"
    rows = [["Definition", "SIMPLIFIED", "pinyin"], *([f"meaning {n}", f"词{n}", ""] for n in range(200))]
    rows += [["", "空", ""], ["blank", " ", ""], ["twice", "词7", ""], ["meaning 7", "词7", ""]]
    with file.open("w", encoding="utf-8-sig", newline="") as opened:
        csv.writer(opened).writerows(rows)
    first = await asyncio.to_thread(ringside, "import", "words", str(file), "--report", str(report), **variables)
    assert first.returncode == 1
    assert "201 words added to Greetings, 1 existed already." in first.stdout
    assert "Not valid: 2 rows. They were skipped." in first.stderr
    with report.open(encoding="utf-8") as opened:
        assert [int(row["line"]) for row in csv.DictReader(opened)] == [202, 203]
    again = await asyncio.to_thread(ringside, "import", "words", str(file), "--report", str(tmp_path), **variables)
    assert f"{tmp_path} cannot be written: Is a directory." in again.stderr
    assert "0 words added to Greetings, 202 existed already." in again.stdout
    lists = [word_list async for word_list in lists_by_name(one_table, None)]
    assert [(word_list.name, word_list.word_count) for word_list in lists] == [("Greetings", 201)]


async def test_no_text_of_a_row_is_lost(variables: dict[str, str], tmp_path: Path) -> None:
    """A row whose texts end in other columns, or in none, is skipped and reported where it begins."""
    file, report = tmp_path / "words.csv", tmp_path / "bad.csv"
    file.write_text('term,definition,#\nhola,"hello\n, hi",1\n\nsí,yes, of course,2,\n"no",,3\nadiós,bye,4, ,\n')
    done = await asyncio.to_thread(ringside, "import", "words", str(file), "--report", str(report), **variables)
    assert "2 words added to words" in done.stdout
    assert "line 5: It has 5 cells for 3 columns. Put texts that contain the delimiter in quotation" in done.stderr
    with report.open(encoding="utf-8") as opened:
        assert [int(row["line"]) for row in csv.DictReader(opened)] == [5, 6]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
async def test_the_first_line_alone_shows_the_delimiter(variables: dict[str, str], tmp_path: Path, end: str) -> None:
    """Wherever it ends: a spreadsheet for old Macs ends lines with carriage returns alone."""
    file = tmp_path / "words.csv"
    file.write_bytes(f"term;definition{end}Haus;house, home, flat{end}Hut;hat, cap, lid{end}".encode())
    done = await asyncio.to_thread(ringside, "import", "words", str(file), **variables)
    assert "2 words added to words" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a,b\n1,2\n", "no column definition and term"),
        (b"simplified,definition\n\xff,x\n", "cannot be read"),
        (b'term,definition\none,"first\ntwo,second\n', "line 2: unexpected end of data. Nothing was imported."),
        (b'term,definition\none,1\ntwo,"2" x\n', "line 3: ',' expected after '\"'. Nothing was imported."),
        (b"term,definition,Definition\none,1,2\n", "has the column definition twice"),
    ],
)
async def test_a_file_that_is_not_csv_is_refused(
    content: bytes, said: str, one_table: Table, variables: dict[str, str], tmp_path: Path
) -> None:
    """Missing columns and other encodings end in a message, and no list is made."""
    file = tmp_path / "words.csv"
    file.write_bytes(content)
    refused = await asyncio.to_thread(ringside, "import", "words", str(file), **variables)
    assert (refused.returncode, said in refused.stderr, "Traceback" in refused.stderr) == (1, True, False)
    assert [word_list async for word_list in lists_by_name(one_table, None)] == []


async def test_the_old_layout_is_migrated_and_mailed(
    one_table: Table, default_engine: RunningEngine, variables: dict[str, str], tmp_path: Path
) -> None:
    """A dry run, one that is told of members who are none, a real one, a repetition; the day's emails are sent once."""
    names = [f"{one_table.name}-subscribers", f"{one_table.name}-words"]
    words, report, users = tmp_path / "words.csv", tmp_path / "report.csv", tmp_path / "users.csv"
    arguments = ("migrate", "legacy", "--subscriptions", names[0], "--past-words", names[1], "--words", str(words))
    async with (
        open_table(names[0], url=default_engine.url) as subscriptions,
        open_table(names[1], url=default_engine.url) as past_words,
    ):
        await Sample(words=10, days=5, subscriptions=20, bad=False).write(subscriptions, past_words, words)
        refused = await asyncio.to_thread(ringside, *arguments, "--report", str(tmp_path), **variables)
        assert f"{tmp_path} cannot be written: Is a directory." in refused.stderr
        assert "Traceback" not in refused.stderr
        dry = await asyncio.to_thread(ringside, *arguments, "--report", str(report), "--dry-run", **variables)
        assert (dry.returncode, "Nothing was written" in dry.stdout) == (0, True)
        await one_table.write(PROFILE.put(Profile("zoe", "Zoe", utc_now())))
        ids = ("reader0", node_id("User", "zoe")), ("reader1", node_id("User", "ada")), ("reader2", "zoe")
        users.write_text("\n".join(["email,user", *(f"{name}@example.org,{user}" for name, user in ids)]))
        named = (*arguments, "--report", str(report), "--dry-run", "--users", str(users))
        unknown = await asyncio.to_thread(ringside, *named, **variables)
        assert (unknown.returncode, "16 written, 0 existed already" in unknown.stdout) == (1, True), unknown.stdout
        rows = report.read_text().splitlines()[1:]
        assert sorted(row.split(",")[2] for row in rows) == ["reader1@example.org"] * 2 + ["reader2@example.org"] * 2
        assert all("has an id for this address that no member has" in row for row in rows)
        for written in (20, 0):
            done = await asyncio.to_thread(ringside, *arguments, "--report", str(report), **variables)
            assert done.returncode == 0, done.stderr
            assert (
                f"subscriptions: 20 rows, {written} written, {20 - written} existed already, 20 verified, 0 rejected"
                in done.stdout
            )
        for table in (subscriptions, past_words):
            await table.client.delete_table(TableName=table.name)
    first = await asyncio.to_thread(ringside, "emails", **variables)
    again = await asyncio.to_thread(ringside, "emails", **variables)
    assert (first.returncode, again.returncode) == (0, 0)
    assert "10 emails sent" in first.stdout
    assert "0 emails sent" in again.stdout
    assert (await asyncio.to_thread(ringside, "audit", **variables)).returncode == 0


async def test_a_future_date_is_refused(variables: dict[str, str]) -> None:
    """Words are drawn on their day; a text that is not a date is refused too."""
    later = str(datetime.now(UTC).date() + timedelta(days=2))
    for on, said in ((later, "has not begun"), ("soon", "yyyy-mm-dd")):
        refused = await asyncio.to_thread(ringside, "emails", "--on", on, **variables)
        assert refused.returncode == 1
        assert said in refused.stderr
