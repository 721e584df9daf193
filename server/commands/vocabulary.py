"""Commands for words: the daily run, the import of words, the migration of the old layout."""

from __future__ import annotations

import csv
from contextlib import AsyncExitStack
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from datastore.dynamo import BadKey, key_text, open_table
from datastore.refusals import InvalidInput
from datastore.vocabulary.mail import CLAIM
from resolvers.context import Services
from resolvers.node_ids import key_of
from server.commands import Failed, err, out, with_house
from server.commands.word_csv import Imported, import_words
from server.legacy import Legacy, Migration, Moved
from server.mail.daily_run import LongPast, Pace, Run, Summary
from server.mail.message import Stationery
from server.mail.smtp import AT_ONCE, Unreachable, outbox_of, sender_of
from server.settings import AWS, Settings
from server.telemetry import configure_logging


def daily(
    on: Annotated[str | None, typer.Option(metavar="DATE", help="The date, yyyy-mm-dd; today in UTC if none.")] = None,
    at_once: Annotated[int, typer.Option(min=1, max=64, help="Letters on their way at the same time.")] = AT_ONCE,
    held_for: Annotated[
        float, typer.Option(min=1, help="Seconds for which a letter that another run has begun is left to it.")
    ] = CLAIM.total_seconds(),
) -> None:
    """Draws every list's word of a date and mails it to every subscriber, once however often it runs.

    Without RINGSIDE_SMTP_URL the letters go to the log. Exit code 1 if any letter or list failed: run it again.
    """
    day = day_from(on)
    settings = Settings.load()
    configure_logging(settings.log)
    stationery = Stationery(sender_of(settings), settings.public_url, settings.seal(), day)

    async def carried_out(services: Services) -> Summary:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        async with outbox_of(settings, at_once) as outbox:
            with Progress(*columns, console=err, transient=True) as bar:
                task = bar.add_task(f"Words of {day}", total=None)

                def progress(so_far: Summary) -> None:
                    bar.update(
                        task, description=f"Words of {day}: {so_far.readers:,} subscribers, {so_far.sent:,} sent"
                    )

                run = Run(services, stationery, outbox, Pace(at_once, timedelta(seconds=held_for)), progress)
                try:
                    return await run.carry_out()
                except Unreachable as error:
                    tell(run.summary)
                    message = f"{error}. Nothing is lost: run it again when the server answers."
                    raise Failed(message) from None
                except LongPast as error:
                    message = f"{error}. Nothing was sent."
                    raise Failed(message) from None

    summary = with_house(carried_out)
    tell(summary)
    if not summary.complete:
        message = "Not everything was sent. Run it again: those who have their letter get no second one."
        raise Failed(message)


def tell(summary: Summary) -> None:
    out.print(f"Words of {summary.on}:")
    for line in summary.lines():
        out.print(line, markup=False)


def day_from(text: str | None) -> date:
    """The date of a run: one that has begun."""
    today = datetime.now(UTC).date()
    if text is None:
        return today
    try:
        day = date.fromisoformat(text)
    except ValueError:
        message = f"--on takes a date as yyyy-mm-dd, such as {today}."
        raise Failed(message) from None
    if day > today:
        message = f"{day} has not begun: words are drawn on their day. Today is {today} in UTC."
        raise Failed(message)
    return day


def words(
    file: Annotated[
        Path, typer.Argument(help="CSV with the columns simplified, definition and, if any, traditional, pinyin.")
    ],
    name: Annotated[str | None, typer.Option("--list", help="The public list; the file's name unless given.")] = None,
    level: Annotated[int | None, typer.Option(min=0, max=100, help="The level of a list that is made.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write the rows that were not taken here, as CSV.")] = None,
) -> None:
    """Adds the words of a CSV file to a public list, which is made if there is none of that name.

    Words that the list has are passed over, so a second run adds nothing. Exit code 1 if rows were not taken.
    """
    if not file.is_file():
        message = f"There is no file {file}."
        raise Failed(message)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())

    async def imported(services: Services) -> Imported:
        with Progress(*columns, console=err, transient=True) as bar:
            task = bar.add_task(f"Words of {file.name}", total=None)
            return await import_words(
                services,
                file,
                name or file.stem,
                level,
                lambda rows, all_rows: bar.update(task, completed=rows, total=all_rows),
            )

    done = with_house(imported)
    out.print(f"{done.added:,} words added to {done.name}, {done.known:,} were there.", markup=False)
    if not done.bad:
        return
    if report is not None:
        done.write_report(report)
    for row in done.bad[:20]:
        err.print(f"line {row.line}: {row.reason}", style="red", markup=False)
    where = f"; all of them are in {report}" if report else ", the first 20 are shown; --report FILE writes all of them"
    message = f"{len(done.bad):,} rows were not taken{where}."
    raise Failed(message)


def legacy(  # noqa: PLR0913 - the options of one command
    subscriptions: Annotated[str, typer.Option(metavar="TABLE", help="The old table of subscriptions.")],
    past_words: Annotated[str, typer.Option(metavar="TABLE", help="The old table of past words.")],
    words_file: Annotated[Path, typer.Option("--words", metavar="FILE", help="The old words, as CSV.")],
    source_url: Annotated[
        str | None, typer.Option(help="The engine of the old tables; the service's own unless given, `aws` for AWS.")
    ] = None,
    users: Annotated[
        Path | None, typer.Option(help="CSV with the columns email, user: whose address is whose, where it is known.")
    ] = None,
    lists: Annotated[
        Path | None,
        typer.Option(help="CSV with the columns list, id: old lists that are continued in lists that exist."),
    ] = None,
    strangers: Annotated[  # noqa: FBT002 - Typer's flags are parameters
        bool, typer.Option("--strangers/--known-only", help="Make members of addresses that nobody has yet.")
    ] = True,
    dry_run: Annotated[  # noqa: FBT002
        bool, typer.Option("--dry-run", help="Only say what would be written, and report.")
    ] = False,
    report: Annotated[Path, typer.Option(help="Where rows that have no place are reported, as CSV.")] = Path(
        "migration-report.csv"
    ),
) -> None:
    """Moves the old layout in: tables by ListId and SubscriberEmail, and by ListId and Date, and the CSV of words.

    The CSV has the columns ListId, Simplified, Definition and, if any, ListName, Level, Traditional, Pinyin. The old
    tables are only read. Run it as often as you like: what is there is verified and left alone. Exit code 1 if any
    row has no place; the report says why.
    """
    if not words_file.is_file():
        message = f"There is no file {words_file}."
        raise Failed(message)
    settings = Settings.load()
    members = _map_of(users, "email", "user") if users else {}
    known = {email.casefold(): user for email, user in members.items()}
    continued = {old: _list_key(new) for old, new in _map_of(lists, "list", "id").items()} if lists else {}

    async def migrated(services: Services) -> Moved:
        url = source_url or (None if settings.dynamodb_url == AWS else services.table.client.meta.endpoint_url)
        async with AsyncExitStack() as stack:
            tables = [
                await stack.enter_async_context(
                    open_table(name, url=None if url == AWS else url, region=settings.aws_region)
                )
                for name in (subscriptions, past_words)
            ]
            columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
            with Progress(*columns, console=err, transient=True) as bar:
                task = bar.add_task("Migration", total=None)
                migration = Migration(
                    services,
                    Legacy(tables[0], tables[1], words_file),
                    report,
                    users=known,
                    lists=continued,
                    dry=dry_run,
                    strangers=strangers,
                    progress=lambda stage, rows: bar.update(task, description=f"{stage}: {rows:,} rows"),
                )
                return await migration.carry_out()

    moved = with_house(migrated)
    if dry_run:
        out.print("Nothing was written; this is what would be:")
    for line in moved.lines():
        out.print(line, markup=False)
    if not moved.complete:
        message = f"Some rows have no place in the new table. {report} says which and why."
        raise Failed(message)


def _map_of(path: Path, left: str, right: str) -> dict[str, str]:
    """Two columns of an operator's own file."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [{(name or "").strip().lower(): text for name, text in row.items()} for row in csv.DictReader(file)]
        return {row[left].strip(): key_text(row[right].strip()) for row in rows}
    except (OSError, UnicodeDecodeError, csv.Error, KeyError, AttributeError, BadKey):
        message = f"{path} cannot be read: it is a CSV file in UTF-8 with the columns {left} and {right}, both filled."
        raise Failed(message) from None


def _list_key(node: str) -> str:
    """The key in a list's id as the API shows it."""
    try:
        return key_of("WordList", node)
    except InvalidInput:
        message = f"{node} is not the id of a list. Take it from `{{ wordLists {{ nodes {{ id name }} }} }}`."
        raise Failed(message) from None
