"""`ringside migrate legacy`: words, daily words and subscriptions from another layout of tables."""

from __future__ import annotations

import csv
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Annotated

import typer

from datastore.dynamo import BadKey, key_text, open_table
from datastore.refusals import InvalidInput
from resolvers.requests.context import Services
from resolvers.values.node_ids import parse_node_key
from server import Failed
from server.commands import out
from server.commands.files import progress_bar, read_text
from server.commands.legacy import LegacySource, Migration, MigrationOptions, MigrationSummary
from server.commands.running import run_with_services
from server.settings import AWS, Settings

app = typer.Typer()
migrations = typer.Typer(help="Migrate data from another layout.", no_args_is_help=True)
app.add_typer(migrations, name="migrate")


@migrations.callback()
def _group() -> None:
    """Keeps `legacy` a command of its own."""


@migrations.command()
def legacy(
    subscriptions: Annotated[str, typer.Option(metavar="TABLE", help="The old table of subscriptions.")],
    past_words: Annotated[str, typer.Option(metavar="TABLE", help="The old table of past words.")],
    words_file: Annotated[Path, typer.Option("--words", metavar="FILE", help="The old words, as CSV.")],
    source_url: Annotated[
        str | None, typer.Option(help="The engine of the old tables, or `aws`; by default the service's own.")
    ] = None,
    users: Annotated[
        Path | None,
        typer.Option(help="CSV with the columns email, user: the ids of the members who have old addresses."),
    ] = None,
    lists: Annotated[
        Path | None, typer.Option(help="CSV with the columns list, id: existing lists that continue old ones.")
    ] = None,
    create_members: Annotated[
        bool, typer.Option("--create-members/--known-only", help="Create members for addresses that no member has.")
    ] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write nothing but the report; print what would be written.")
    ] = False,
    report: Annotated[Path, typer.Option(help="The CSV file for rows that cannot be migrated.")] = Path(
        "migration-report.csv"
    ),
) -> None:
    """Migrates the old layout: tables by ListId and SubscriberEmail, and by ListId and Date, and the CSV of words.

    The CSV has the columns ListId, Simplified, Definition and, optionally, ListName, Level, Traditional, Pinyin. The
    old tables are only read. Safe to repeat: existing records are verified and left alone. Exit code 1 if a row cannot
    be migrated; the report says why.
    """
    if not words_file.is_file():
        raise Failed(f"There is no file {words_file}.")
    options = MigrationOptions(
        users=_read_map(users, "email", "user") if users else {},
        lists={old: _parse_list_id(new) for old, new in _read_map(lists, "list", "id").items()} if lists else {},
        dry_run=dry_run,
        create_members=create_members,
    )
    tables = (subscriptions, past_words)
    summary = run_with_services(lambda services: _migrate(services, tables, words_file, source_url, report, options))
    if dry_run:
        out.print("Nothing was written. A run without --dry-run would do this:")
    for line in summary.lines():
        out.print(line)
    if not summary.complete:
        raise Failed(f"Some rows cannot be migrated. {report} says which and why.")


async def _migrate(
    services: Services,
    tables: tuple[str, str],
    words: Path,
    source_url: str | None,
    report: Path,
    options: MigrationOptions,
) -> MigrationSummary:
    settings = Settings.load()
    url = source_url or (AWS if settings.dynamodb_url == AWS else services.table.client.meta.endpoint_url)
    open_old = partial(open_table, url=None if url == AWS else url, region=settings.aws_region)
    with progress_bar("Migration") as bar:
        async with open_old(tables[0]) as subscriptions, open_old(tables[1]) as past_words:
            source = LegacySource(subscriptions, past_words, words)
            return await Migration(services, source, report, options, lambda stage, rows: bar(rows, title=stage)).run()


def _read_map(path: Path, key: str, value: str) -> dict[str, str]:
    """Two columns of an operator's CSV file."""
    try:
        reader = csv.DictReader(StringIO(read_text(path), newline=""))
        rows = [{(name or "").strip().lower(): text for name, text in row.items()} for row in reader]
        return {row[key].strip(): key_text(row[value].strip()) for row in rows}
    except (csv.Error, KeyError, AttributeError, BadKey):
        raise Failed(
            f"{path} cannot be read: it must be a CSV file in UTF-8 with the columns {key} and {value}, both filled."
        ) from None


def _parse_list_id(node_id: str) -> str:
    """The key in a list's id as the API shows it."""
    try:
        return parse_node_key("WordList", node_id)
    except InvalidInput:
        raise Failed(
            f"{node_id} is not the id of a list. Take it from `{{ wordLists {{ nodes {{ id name }} }} }}`."
        ) from None
