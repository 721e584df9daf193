"""The `ringside` command: its help, its version, and the way to the commands.

Importing all that the service consists of takes two seconds, so a command is imported once it is chosen, and its module
imports only what it needs. Until then the commands' names and summaries are those listed here.
"""

import sys
from collections.abc import Sequence
from errno import EACCES, ENAMETOOLONG, ENOSPC
from importlib import import_module
from importlib.metadata import version
from io import TextIOWrapper
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from server import Failed

COMMANDS: Final = {
    "serve": ("serve", "Starts the service. Without settings it runs an embedded engine, with its data in .ringside/."),
    "token": ("members", "Prints a bearer token signed with this deployment's secret: Authorization: Bearer <token>."),
    "demo": ("table", "Adds the demo data, except for parts that are already there."),
    "elements": (
        "elements",
        "Prints two script tags for RINGSIDE_PUBLIC_URL: the current elements, and this build of them by its digest.",
    ),
    "schema": ("execution", "Prints the schema in GraphQL's schema definition language."),
    "manifest": (
        "execution",
        "Prints the manifest of trusted documents for these files, all of which must fit the schema and the limits.",
    ),
    "explain": (
        "execution",
        "Prints the Python code that an operation is compiled to, or why graphql-core executes it.",
    ),
    "audit": ("upkeep", "Checks the invariants of the stored data; exit code 1 if one is broken."),
    "score": (
        "upkeep",
        "Scores the predictions of an event. Safe to interrupt, to repeat and to run several times at once.",
    ),
    "emails": ("emails", "Sends the emails that are due: daily words and reminders. Safe to run again."),
    "jobs": ("upkeep", "Lists the jobs of the last 30 days, newest first. A serving process works on them by itself."),
    "backup": (
        "backup",
        "Backs up the embedded engine's table, even while the service runs: the file is the table at one moment.",
    ),
    "restore": ("backup", "Replaces the embedded engine's table with a backup. The service must be stopped."),
    "copy": (
        "whole_table",
        "Copies the whole table to another engine, like an export and an import. It continues if run again.",
    ),
    "table": ("table", "Create and check the table."),
    "import": ("imports", "Import data from files. Existing data is left alone."),
    "export": ("exports", "Export data to files."),
    "migrate": ("legacy", "Migrate data from another layout."),
    "comments": ("comments", "Comments: which ones wait for a moderator."),
    "board": ("upkeep", "Boards: how they count votes."),
    "member": ("members", "Members: the first admin, and another issuer of those who sign in by a provider."),
    "apikey": ("members", "API keys, by which machines sign in."),
    "webhooks": ("upkeep", "Webhooks: deliver what waits for them."),
}
"""Each command's module in `server.commands`, and its summary."""


class _Commands(TyperGroup):
    """Lists commands by their summaries, and imports the module of the one to run."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        return name, load_command(name or ""), rest


def load_command(name: str) -> Any:
    """The command, or the group of commands, as the `app` of its module declares it."""
    module, _ = COMMANDS[name]
    return typer.main.get_group(import_module(f"server.commands.{module}").app).commands[name]


app = typer.Typer(
    name="ringside",
    cls=_Commands,
    help="A GraphQL backend for fan and reader communities: votes, predictions, comments, a word a day.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="rich",
)
for _name, (_, _summary) in COMMANDS.items():
    app.command(_name, help=_summary)(lambda: None)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"ringside {version('ringside')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
    member: Annotated[
        str | None, typer.Option("--as", metavar="ID", help="The id of the member whom the journal names for a change.")
    ] = None,
) -> None:
    """Take the options that stand before a command."""
    if member is not None:
        from server.commands import operator

        operator.set(member)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command, by default the process's. An expected failure prints one readable message; the exit code is 1."""
    if isinstance(sys.stdout, TextIOWrapper):  # a terminal's encoding may lack letters, as standard error expects
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app(arguments)
    except Exception as failure:
        message = _file_message(failure) or _expected_message(failure)
        if message is None:
            raise
        from server.commands import err

        err.print(message, style="red")
        sys.exit(1)


def _expected_message(failure: Exception) -> str | None:
    """What to tell the operator about a failure; None if it is a bug."""
    if isinstance(failure, Failed):
        return str(failure)
    # Whatever raises one of these has imported them already.
    from datastore.dynamo import DynamoError
    from datastore.refusals import Refusal

    if isinstance(failure, Refusal):
        return failure.message
    if isinstance(failure, DynamoError):
        return f"The table could not be used: {failure}"
    return None


def _file_message(failure: Exception) -> str | None:
    """What to tell of a file that cannot be looked for, or if its disk, or that of standard output, is full."""
    if not isinstance(failure, OSError):
        return None
    if failure.errno in {EACCES, ENAMETOOLONG} and failure.filename:
        return f"{failure.filename} cannot be used: {failure.strerror}."
    if failure.errno != ENOSPC:
        return None
    from server.commands.files import STANDARD, discard_standard_output

    discard_standard_output()
    return f"{failure.filename or STANDARD} cannot be written: {failure.strerror}."


if __name__ == "__main__":
    main()
