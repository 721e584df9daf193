"""The `ringside` command: its help, its version, and the way to the commands.

Importing the commands takes two seconds, so they are imported once one is chosen. Until then their names and summaries
are those listed here.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

COMMANDS: Final = {
    "serve": "Starts the service. Without settings it runs an embedded engine, with its data in .ringside/.",
    "token": "Prints a bearer token signed with this deployment's secret: Authorization: Bearer <token>.",
    "demo": "Adds the demo data, except for the parts that are there already.",
    "schema": "Prints the schema in GraphQL's schema definition language.",
    "manifest": "Prints the manifest of trusted documents for these files, all of which must fit the schema and the "
    "limits.",
    "explain": "Prints the Python code that an operation is compiled to, or why graphql-core executes it.",
    "audit": "Checks the invariants of the stored data; exit code 1 if one is broken.",
    "score": "Scores the predictions of an event. Safe to interrupt, to repeat and to run several times at once.",
    "emails": "Sends the emails that are due: daily words and reminders. Safe to run again.",
    "daily": "The older name of `ringside emails`.",
    "jobs": "Lists the jobs of the last 30 days, newest first. A serving process works on them by itself.",
    "backup": "Backs up the embedded engine's table, also while the service runs: the file is the table of one moment.",
    "restore": "Replaces the embedded engine's table by a backup. The service must be stopped.",
    "copy": "Copies the whole table to another engine, as an export and an import do. It continues if run again.",
    "table": "Create, check and upgrade the table.",
    "import": "Import data from files. Existing data is left alone.",
    "export": "Export data to files.",
    "migrate": "Migrate data from another layout.",
    "board": "Boards: how their votes are counted.",
    "apikey": "API keys, by which machines sign in.",
    "webhooks": "Webhooks: delivering what waits for them.",
}


class _Commands(TyperGroup):
    """Lists commands by their summaries, and imports them all to run one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        from server.command_line import app as imported

        return name, typer.main.get_command(imported).commands[name], rest  # type: ignore[attr-defined]


app = typer.Typer(
    name="ringside",
    cls=_Commands,
    help="A GraphQL backend for fan and reader communities: votes, predictions, comments, a word a day.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="rich",
)
for _name, _summary in COMMANDS.items():
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
) -> None:
    """Declares the options that stand before a command."""


def main() -> None:
    """Runs a command. An expected failure prints one readable message and exits with code 1."""
    try:
        app()
    except Exception as failure:
        from server.command_line import expected_failure
        from server.commands import err

        message = expected_failure(failure)
        if message is None:
            raise
        err.print(message, style="red", markup=False)
        sys.exit(1)


if __name__ == "__main__":
    main()
