"""The command line before a command runs: its help and version are light, and all commands treat files alike."""

import io
import os
import subprocess
import sys
from errno import EACCES
from importlib.metadata import version
from pathlib import Path

import orjson
import pytest
from rich.console import Console
from rich.table import Table as Grid
from typer.testing import CliRunner

from resolvers.transfer.readers import Unreadable
from server import Failed
from server import __main__ as entry
from server.commands import err, out
from server.commands.files import STANDARD, open_input, open_output, read_text
from server.commands.serve import own_address, tell_address
from server.execution.documents import hash_of
from tests.generated import ROOT

HEAVY = ("schema", "datastore", "resolvers", "graphql", "pydantic", "fastapi", "aiohttp", "boto3")
SERVICE = ("schema", "strawberry", "graphql", "fastapi", "server.app")
DOCUMENT = "{ viewer { id } }\n"


def test_the_help_lists_every_command_with_its_summary() -> None:
    """It is written down so that no command needs to be imported, and says what the commands say."""
    for name, (_, summary) in entry.COMMANDS.items():
        help_text = entry.load_command(name).help or ""
        assert help_text.split("\n\n")[0].replace("\n", " ") == summary


def test_the_help_of_a_command_that_has_commands_of_its_own_says_all_that_it_has_to_say() -> None:
    """`emails` sends, and has `bounced` besides: what its function says must not be hidden by the group's own line."""
    assert "Without RINGSIDE_SMTP_URL the emails go to the log" in (entry.load_command("emails").help or "")


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy(option: str) -> None:
    """A process that only prints a page starts at once."""
    code = f"import sys, server.__main__ as entry\ntry: entry.app(['{option}'])\nexcept SystemExit: print(*sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert ("serve" if option == "--help" else version("ringside")) in printed
    assert set(HEAVY) & set(printed.splitlines()[-1].split()) == set()


@pytest.mark.slow
def test_only_commands_about_documents_import_the_schema() -> None:
    """The schema, and what it and the application are built with, take half of the time in which a command starts."""
    code = (
        "import sys, server.__main__ as entry\n"
        "for name, (module, _) in entry.COMMANDS.items():\n"
        f"    if module != 'execution': entry.load_command(name); print(name, *{set(SERVICE)} & set(sys.modules))\n"
    )
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert printed.split() == [name for name, (module, _) in entry.COMMANDS.items() if module != "execution"]


def test_a_misspelt_command_is_answered_with_the_nearest_one() -> None:
    assert "Did you mean 'serve'" in CliRunner().invoke(entry.app, ["sevre"]).output


def test_a_dash_is_standard_input_and_output() -> None:
    """So commands can be piped into one another."""
    printed = CliRunner().invoke(entry.app, ["manifest", "-"], input=DOCUMENT)
    assert orjson.loads(printed.stdout) == {f"sha256:{hash_of(DOCUMENT)}": DOCUMENT}
    printed = CliRunner().invoke(entry.app, ["explain", "-"], input=DOCUMENT)
    assert "def " in printed.stdout
    assert CliRunner().invoke(entry.app, ["schema"]).stdout == CliRunner().invoke(entry.app, ["schema", "-"]).stdout


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing, a folder, not text, in a folder that does not exist."""
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    cannot = "cannot be read: .*"
    for name, reason in (
        ("none", f"{cannot}No such file"), (".", "is not a file"), ("latin", f"{cannot}line 1 is not text in UTF-8")
    ):  # fmt: skip
        with pytest.raises((Failed, Unreadable), match=reason):
            read_text(tmp_path / name)
    with pytest.raises(Failed, match="cannot be written: No such file"), open_output(tmp_path / "no" / "file"):
        pass
    with pytest.raises(PermissionError), open_input(tmp_path / "latin"):
        raise PermissionError("of something else than the file, such as the data folder")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
    with pytest.raises(Unreadable, match="- cannot be read: line 1 is not text"):
        read_text(STANDARD)


@pytest.mark.parametrize("command", ["schema", "manifest -", "token --user ada"])
@pytest.mark.slow
def test_a_full_disk_behind_standard_output_is_said_in_a_sentence(command: str) -> None:
    """A small output fails only when it is flushed, and must not fail again when the process ends."""
    with Path("/dev/full").open("wb") as full:
        run = subprocess.run(
            [sys.executable, "-m", "server", *command.split()], env={**os.environ, "RINGSIDE_SECRETS": "s" * 48},
            input=DOCUMENT.encode(), cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
    assert (run.returncode, run.stderr.decode()) == (1, "- cannot be written: No space left on device.\n")


@pytest.mark.slow
def test_a_closed_pipe_ends_a_command_without_a_word() -> None:
    """As with `ringside schema | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        run = subprocess.run(
            [sys.executable, "-m", "server", "schema"], cwd=ROOT, stdout=closed, stderr=subprocess.PIPE, check=False
        )
    assert (run.returncode, run.stderr) == (1, b"")


def test_another_failure_while_standard_output_is_written_is_not_taken_for_one_of_it() -> None:
    """Such as one of the data folder, which the failure names."""
    with pytest.raises(PermissionError), open_output(STANDARD):
        raise PermissionError(EACCES, "Permission denied", "data")


@pytest.mark.parametrize("console", [out, err])
def test_a_command_prints_names_and_paths_as_they_are(console: Console) -> None:
    """Brackets are no markup, words between colons no emoji; in a table of jobs neither."""
    grid = Grid("message")
    grid.add_row(text := "/data [/old] :cat: [red]")
    with console.capture() as printed:
        console.print(text)
        console.print(grid)
    assert printed.get().count(text) == 2


@pytest.mark.parametrize("console", [out, err])
def test_a_text_cannot_control_the_terminal(console: Console) -> None:
    """Sequences that set the title or clear the screen are shown, and so is what turns the writing's direction."""
    with console.capture() as printed:
        console.print("\x1b]0;title\x07\x9b2J\rgone \u202eover", style="red")
        console.print("names\tin:\nשלום, مرحبا, 한국어, 👩‍🚀")
    shown = "\\x1b]0;title\\x07\\x9b2J\\rgone \\u202eover\n" + "names\tin:\nשלום, مرحبا, 한국어, 👩‍🚀\n".expandtabs()
    assert printed.get() == shown


def test_the_address_that_is_printed_can_be_opened_in_a_browser() -> None:
    """An IPv6 address stands in brackets; no browser opens the address that means all of them."""
    assert own_address("127.0.0.1", 8000) == "http://127.0.0.1:8000"
    assert own_address("::1", 8000) == "http://[::1]:8000"
    assert own_address("0.0.0.0", 9000) == "http://127.0.0.1:9000"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "fd00::1"])
def test_the_whole_address_is_printed_at_the_start(host: str) -> None:
    """Also one in brackets that begins with a letter, as markup does."""
    with out.capture() as printed:
        tell_address(own_address(host, 8000))
    assert f"{own_address(host, 8000)}/graphql " in printed.get()
