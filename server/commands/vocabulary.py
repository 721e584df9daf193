"""`ringside daily` and `ringside import words`."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from datastore.vocabulary.mail import CLAIM_LIFETIME
from resolvers.context import Services
from server.commands import Failed, err, out, run_with_services
from server.commands.files import STANDARD
from server.commands.word_csv import ImportSummary, import_words
from server.mail.daily_run import INDEX_LAG, DailyRun, MailingExpired, RunLimits, RunSummary
from server.mail.message import EmailTemplate
from server.mail.rendering import EmailTemplates
from server.mail.smtp import AT_ONCE, ServerUnreachable, open_transport, sender_address
from server.settings import AWS, Settings
from server.telemetry import configure_logging

_BAD_ROWS_SHOWN = 20


def daily(
    on: Annotated[str | None, typer.Option(metavar="DATE", help="The date, yyyy-mm-dd; today in UTC if none.")] = None,
    at_once: Annotated[int, typer.Option(min=1, max=64, help="Emails to send at the same time.")] = AT_ONCE,
    held_for: Annotated[
        float, typer.Option(min=1, help="Seconds after which another run's unfinished email is sent by this one.")
    ] = CLAIM_LIFETIME.total_seconds(),
) -> None:
    """Draws every list's daily word and emails it to each subscriber. Safe to run again.

    Without RINGSIDE_SMTP_URL the emails go to the log. Exit code 1 if an email or a list failed: run it again.
    """
    day = _parse_day(on)
    settings = Settings.load()
    configure_logging(settings.log)
    index_lag = INDEX_LAG if settings.dynamodb_url == AWS else timedelta()  # local engines' indexes are never behind
    limits = RunLimits(at_once, timedelta(seconds=held_for), index_lag)
    summary = run_with_services(lambda services: _run(services, settings, day, limits))
    if not summary.complete:
        raise Failed("Not everything was sent. Run it again: nobody gets a second email.")


async def _run(services: Services, settings: Settings, day: date, limits: RunLimits) -> RunSummary:
    """Prints the summary, also of a run that was cut short."""
    templates = EmailTemplates(settings.email_templates)
    template = EmailTemplate(sender_address(settings), settings.public_url, settings.seal(), day, templates)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    async with open_transport(settings, limits.at_once) as transport:
        with Progress(*columns, console=err, transient=True) as bar:
            task = bar.add_task(f"Words of {day}", total=None)

            def show(summary: RunSummary) -> None:
                counts = f"{summary.subscribers:,} subscribers, {summary.sent:,} sent"
                bar.update(task, description=f"Words of {day}: {counts}")

            run = DailyRun(services, template, transport, limits, show)
            try:
                await run.run()
            except ServerUnreachable as error:
                _print(run.summary)
                raise Failed(f"{error}. Nothing is lost: run it again when the server answers.") from None
            except MailingExpired as error:
                raise Failed(f"{error}. Nothing was sent.") from None
    _print(run.summary)
    return run.summary


def _print(summary: RunSummary) -> None:
    out.print(f"Words of {summary.on}:")
    for line in summary.lines():
        out.print(line, markup=False)


def _parse_day(text: str | None) -> date:
    """A date that has begun; today if none is given."""
    today = datetime.now(UTC).date()
    if text is None:
        return today
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise Failed(f"--on takes a date as yyyy-mm-dd, such as {today}.") from None
    if day > today:
        raise Failed(f"{day} has not begun: words are drawn on their day. Today is {today} in UTC.")
    return day


def words(
    file: Annotated[
        Path,
        typer.Argument(
            allow_dash=True,
            help="CSV with the columns definition and term or simplified; - reads stdin.",
        ),
    ],
    name: Annotated[str | None, typer.Option("--list", help="The public list; by default the file's name.")] = None,
    level: Annotated[int | None, typer.Option(min=0, max=100, help="The level of a list that is created.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write the rows that were skipped to this CSV file.")] = None,
) -> None:
    """Adds the words of a CSV file to a public list, which is created if it does not exist.

    A word of any language has the column term and may have reading, example, audioUrl; a Chinese one may have
    simplified, traditional, pinyin in their place. The first line names the columns.

    Words that the list has already, or that were removed from it, are not added again. Exit code 1 if invalid rows were
    skipped.
    """
    if file == STANDARD and name is None:
        raise Failed("Name the list with --list: standard input has no name.")
    summary = run_with_services(lambda services: _import(services, file, name or file.stem, level))
    out.print(f"{summary.added:,} words added to {summary.name}, {summary.existing:,} existed already.", markup=False)
    if not summary.bad:
        return
    if report is not None:
        summary.write_report(report)
    for row in summary.bad[:_BAD_ROWS_SHOWN]:
        err.print(f"line {row.line}: {row.reason}", style="red", markup=False)
    more = f"; {report} has all of them" if report else f", the first {_BAD_ROWS_SHOWN} are shown; see --report"
    raise Failed(f"{len(summary.bad):,} rows were skipped{more}.")


async def _import(services: Services, file: Path, name: str, level: int | None) -> ImportSummary:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(f"Words of {file.name}", total=None)

        def show(completed: int, total: int) -> None:
            bar.update(task, completed=completed, total=total)

        return await import_words(services, file, name, level, show)
