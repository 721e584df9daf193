"""`ringside import contenders`: folders, CSV in every encoding, repeated, killed, and with every kind of mistake."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from resolvers.requests.context import Services
from resolvers.transfer.readers import Unreadable
from server.settings import Settings
from tests.client import Client
from tests.command import on_table, ringside
from tests.killed import Killed, killed_at
from tests.queries import ADD_CONTENDER, CREATE_BOARD, RETIRE_CONTENDER, UPDATE_CONTENDER
from tests.transfers import import_contenders
from tests.voting import assert_consistent, editor

SQUARE = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><rect width="1" height="1"/></svg>'
CONTENDERS = "{ contenders(first: 100) { nodes { id name description link imageUrl svg retired } } }"
TABLE = "name,description,link\nŽofie née,Erste Zeile,https://example.com/z\n李 小龍,,\n"


def variables(settings: Settings, **more: str) -> Mapping[str, str]:
    return on_table(settings.dynamodb_url, settings.table, **more)


async def _added(services: Services, source: Path) -> tuple[int, int]:
    """How many contenders were added, and how many existed."""
    imported = await import_contenders(services, source)
    assert imported.problems == []
    return imported.added, imported.existing


async def contenders(client: Client) -> dict[str, dict[str, Any]]:
    await client.caught_up("every contender is in the list")
    return {node["name"]: node for node in (await client.ask(CONTENDERS))["nodes"]}


async def test_a_folder_becomes_contenders(one_client: Client, settings: Settings, tmp_path: Path) -> None:
    """Named as the files, with their pictures, whatever encoding they declare; other and hidden files are left out."""
    (tmp_path / "Ada.svg").write_text(SQUARE)
    (tmp_path / "Z\u030cofie.SVG").write_bytes(b"\xef\xbb\xbf" + SQUARE.encode())
    latin = SQUARE.replace("<rect", "<text>née</text><rect")
    (tmp_path / "Née.svg").write_bytes(f'<?xml version="1.0" encoding="ISO-8859-1"?>{latin}'.encode("latin-1"))
    (tmp_path / "Wide.svg").write_bytes(latin.encode("utf-16"))
    (tmp_path / ".hidden.svg").write_text("no picture")
    (tmp_path / "readme.txt").write_text("no picture")
    for number in range(2):
        done = ringside("import", "contenders", str(tmp_path), **variables(settings))
        assert done.returncode == 0, done.stderr
        assert done.stdout == (
            "4 contenders added to main, 0 existed already.\n"
            if number == 0
            else "0 contenders added to main, 4 existed already.\n"
        )
    found = await contenders(one_client)
    assert list(found) == ["Ada", "Née", "Wide", "Žofie"]
    assert all("<rect" in each["svg"] for each in found.values())
    assert "née" in found["Née"]["svg"]
    assert "née" in found["Wide"]["svg"]
    await assert_consistent(one_client)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
async def test_a_csv_file_is_read_rightly_or_refused(
    one_client: Client, tmp_path: Path, encoding: str, delimiter: str, newline: str
) -> None:
    """Every delimiter and line end; UTF-8 and UTF-16 with a mark are read, anything else is refused."""
    text = TABLE.replace(",", delimiter).replace("\n", newline)
    text = text.replace("李 小龍", "Lee") if encoding == "latin-1" else text
    text = text.replace("Ž", "Z") if encoding == "latin-1" else text
    file = tmp_path / "contenders.csv"
    file.write_bytes(text.encode(encoding))
    services = one_client.services
    if encoding in ("utf-16-le", "utf-16-be", "latin-1"):  # without a mark
        with pytest.raises(Exception, match="not text in UTF-8") as refused:
            await _added(services, file)
        assert "Save the file as UTF-8" in str(refused.value)
        assert (await contenders(one_client)) == {}
        return
    assert await _added(services, file) == (2, 0)
    found = await contenders(one_client)
    assert (found["Žofie née"]["description"], found["Žofie née"]["link"]) == ("Erste Zeile", "https://example.com/z")
    assert found["李 小龍"]["description"] is None


async def test_all_columns_are_read(one_client: Client, settings: Settings, tmp_path: Path) -> None:
    """In any order and case, with underscores or without; texts in quotes may span lines; blank lines are skipped."""
    (tmp_path / "ada.svg").write_text(SQUARE)
    file = tmp_path / "contenders.csv"
    file.write_text(
        'SVG,Image_URL,Description,NAME\nada.svg,,"Two lines,\nno more",Ada\n\n,https://images.example.com/b.png,,Bea\n'
    )
    hosts = {"RINGSIDE_IMAGE_HOSTS": "images.example.com"}
    done = ringside("import", "contenders", str(file), "--board", "main", **variables(settings, **hosts))
    assert done.returncode == 0, done.stderr
    found = await contenders(one_client)
    assert (found["Ada"]["description"], found["Ada"]["imageUrl"]) == ("Two lines,\nno more", None)
    assert "<rect" in found["Ada"]["svg"]
    assert (found["Bea"]["svg"], found["Bea"]["imageUrl"]) == (None, "https://images.example.com/b.png")


async def test_empty_columns_at_the_end_are_left_out(one_client: Client, tmp_path: Path) -> None:
    """Spreadsheets write those where something stood once."""
    file = tmp_path / "contenders.csv"
    file.write_text("name,description,, \nAda,fast,,\nBea\n")
    assert await _added(one_client.services, file) == (2, 0)
    assert (await contenders(one_client))["Ada"]["description"] == "fast"


async def test_edits_made_meanwhile_stay(one_client: Client, tmp_path: Path) -> None:
    """Renamed, described, retired: a second import adds nothing and changes nothing. Only what is new is added."""
    file = tmp_path / "contenders.csv"
    file.write_text("name,description\nAda,old\nBea,old\nCat,old\n")
    assert await _added(one_client.services, file) == (3, 0)
    found = await contenders(one_client)
    one = editor(one_client)
    await one.ask(UPDATE_CONTENDER, input={"contender": found["Ada"]["id"], "name": "Adele"})
    await one.ask(RETIRE_CONTENDER, input={"contender": found["Bea"]["id"]})
    update = "mutation ($input: UpdateContenderInput!) { updateContender(input: $input) { __typename } }"
    await one.ask(update, input={"contender": found["Cat"]["id"], "description": "new"})
    file.write_text("name,description\nADA,old\nBea,old\nCat,old\nDog,old\n")
    assert await _added(one_client.services, file) == (1, 3)
    again = await contenders(one_client)
    assert list(again) == ["Adele", "Bea", "Cat", "Dog"]
    assert again["Bea"]["retired"]
    await assert_consistent(one_client)


async def test_a_killed_import_is_run_again(one_client: Client, tmp_path: Path) -> None:
    """Killed at each of its writes; the next run adds what is missing, and nothing twice."""
    names = [f"Contender {number}" for number in range(6)]
    file = tmp_path / "contenders.csv"
    file.write_text("name,description\n" + "".join(f"{name},{name}\n" for name in names))
    services = one_client.services
    for write in (0, 1, 2):
        with pytest.raises(Killed), killed_at(services.table, write):
            await _added(services, file)
    added, existing = await _added(services, file)
    assert added + existing == 6
    found = await contenders(one_client)
    assert list(found) == names
    assert all(each["description"] == name for name, each in found.items())
    await assert_consistent(one_client)


async def test_two_imports_at_once_add_everything_once(one_client: Client, tmp_path: Path) -> None:
    """A contender that an editor adds at the same time is added by one of the three as well."""
    file = tmp_path / "contenders.csv"
    file.write_text("name\n" + "".join(f"c{number}\n" for number in range(12)))
    services = one_client.services
    first, second, added = await asyncio.gather(
        _added(services, file),
        _added(services, file),
        editor(one_client).ask(ADD_CONTENDER, input={"name": "c11", "board": "main"}),
    )
    assert "contender" in added or added["code"] == "CONFLICT"
    assert first[0] + second[0] + ("contender" in added) == 12
    assert sorted(await contenders(one_client)) == sorted(f"c{number}" for number in range(12))
    await assert_consistent(one_client)


MISTAKES = {
    "": "has no column name",
    "\n": "has no column name",
    "title\nAda\n": "has no column name",
    "name,descripton\nAda,x\n": "an unknown column 'descripton'",
    "name,Name\nAda,x\n": "has the column name twice",
    "name,description\nAda,one, two\n": "line 2: It has 3 cells for 2 columns",
    "name,description,\nAda,one, two\n": "line 2: It has 3 cells for 2 columns",
    "name,,description\nAda,,x\n": "an unknown column ''",
    'name,description\nAda,"open\n': "cannot be read as CSV: line 2",
    'name\n"Ada"x\n': "cannot be read as CSV: line 2",
    "name,description\nAda,x\n,y\n": "line 3: name: A name has 1 to 80 characters",
    "name,description\n\n\nAda,x\nada,y\n": "line 5: ada is already the name at line 4.",
    f"name\n{'x' * 81}\n": "line 2: name: A name has 1 to 80 characters",
    f"name,description\nAda,{'x' * 501}\n": "line 2: description: A description has 1 to 500",
    "name,link\nAda,http://example.com/\n": "line 2: link: An address starts with https://",
    "name,imageUrl\nAda,https://example.com/a.png\n": "line 2: imageUrl: Pictures by address are off",
    "name,svg\nAda,none.svg\n": "line 2: svg: none.svg cannot be read: No such file",
    "name,svg\nAda,photo.svg\n": "line 2: svg: This picture would be invisible: <image> is removed",
    "name,svg\nAda,large.svg\n": "line 2: svg: large.svg is larger than 96 KB",
    "name,svg\nAda,wrong.svg\n": "line 2: svg: wrong.svg is not text in the encoding klingon",
    "name,svg\nAda,latin.svg\n": "line 2: ",
    "name,svg\nAda,half.svg\n": "line 2: svg: half.svg is not text in the encoding utf-7",
    "name,svg\nAda,undefined.svg\n": "line 2: svg: undefined.svg is not text in the encoding undefined",
    "name\nGar\ufffdon\n": "line 2: name: A letter was lost",
}


@pytest.mark.parametrize("text", MISTAKES)
async def test_a_mistake_is_named_with_its_line(one_client: Client, tmp_path: Path, text: str) -> None:
    """And nothing is imported, not even the rows without a mistake."""
    (tmp_path / "photo.svg").write_text(SQUARE.replace("rect", "image"))
    (tmp_path / "large.svg").write_text(SQUARE + " " * 200_000)
    (tmp_path / "wrong.svg").write_text(f'<?xml version="1.0" encoding="klingon"?>{SQUARE}')
    (tmp_path / "half.svg").write_text(f'<?xml version="1.0" encoding="utf-7"?>{SQUARE.replace("<rect", "+2AA-<rect")}')
    (tmp_path / "undefined.svg").write_text(f'<?xml version="1.0" encoding="undefined"?>{SQUARE}')
    (tmp_path / "latin.svg").write_bytes(SQUARE.replace("<rect", "<text>née</text><rect").encode("latin-1"))
    file = tmp_path / "contenders.csv"
    file.write_text(text)
    try:
        [problem] = map(str, (await import_contenders(one_client.services, file)).problems)
    except Unreadable as unreadable:
        problem = unreadable.message
    assert MISTAKES[text] in problem
    assert (await contenders(one_client)) == {}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../secret.svg", "is not in"),
        ("{outside}/secret.svg", "is not in"),
        ("link.svg", "it is a link"),
        ("linked/secret.svg", "it is a link, or behind one"),
        ("pipe.svg", "it is not a file"),
        ("folder.svg", "it is not a file"),
    ],
)
async def test_an_import_reads_no_file_outside_its_folder_and_waits_for_no_pipe(
    one_client: Client, tmp_path: Path, name: str, reason: str
) -> None:
    """Whether a table names it or the folder holds it; a file below the folder is read."""
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    (folder / "below").mkdir(parents=True)
    outside.mkdir()
    for file in (outside / "secret.svg", tmp_path / "secret.svg", folder / "below" / "good.svg"):
        file.write_text(SQUARE)
    (folder / "link.svg").symlink_to(outside / "secret.svg")
    (folder / "linked").symlink_to(outside)
    os.mkfifo(folder / "pipe.svg")
    (folder / "folder.svg").mkdir()
    table = folder / "table.csv"
    table.write_text(f"name,svg\nAda,{name.format(outside=outside)}\nBob,below/good.svg\n")
    [problem] = (await import_contenders(one_client.services, table)).problems
    assert problem.row.number == 2
    assert reason in problem.message
    assert len((await import_contenders(one_client.services, folder)).problems) == 3


@pytest.mark.parametrize("command", ["words", "events", "comments", "contenders", "all"])
async def test_a_pipe_s_name_is_refused_at_once(one_client: Client, tmp_path: Path, command: str) -> None:
    """Nobody may ever write to it; the message says how to read from one."""
    os.mkfifo(tmp_path / "pipe")
    refused = await asyncio.to_thread(
        ringside, "import", command, str(tmp_path / "pipe"), **variables(one_client.settings, COLUMNS="1000")
    )
    assert refused.returncode == 1
    assert "is not a file. To read from a pipe, pass -" in refused.stderr


async def test_the_command_says_what_is_wrong(one_client: Client, settings: Settings, tmp_path: Path) -> None:
    """Every mistake with its place, the number of them, and exit code 1; no stack trace."""
    file = tmp_path / "contenders.csv"
    file.write_text("name\n" + "Ada\n" * 30)
    done = ringside("import", "contenders", str(file), **variables(settings))
    assert done.returncode == 1
    assert done.stderr.count("Ada is already the name at line 2.") == 20
    assert "Not valid: 29 contenders, the first 20 are shown. Nothing was imported." in done.stderr
    (tmp_path / "empty").mkdir()
    for arguments, reason in (
        ((str(tmp_path / "none.csv"),), "No such file"),
        ((str(tmp_path / "empty"),), "has no SVG files"),
    ):
        refused = ringside("import", "contenders", *arguments, **variables(settings))
        assert refused.returncode == 1
        assert reason in refused.stderr
        assert "Traceback" not in refused.stderr
    file.write_text("name\nAda\n")
    for board in ("none", "No such!"):
        refused = ringside("import", "contenders", str(file), "--board", board, **variables(settings))
        assert refused.returncode == 1
        assert f"There is no board called {board}." in refused.stderr
    await editor(one_client).ask(CREATE_BOARD, input={"slug": "pets", "title": "Pets"})
    done = ringside("import", "contenders", str(file), "--board", "pets", **variables(settings))
    assert done.stdout == "1 contenders added to pets, 0 existed already.\n"
