"""`ringside emails`, and `ringside emails bounced`."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from datastore.jobs.leases import Held, LeaseLost, Turn
from datastore.people import profiles as profile_store
from datastore.people.identities import comparable_address
from resolvers.people.confirmations import email_hash
from resolvers.requests.context import Services
from resolvers.values.texts import is_email_address
from resolvers.vocabulary.schedules import newest_date
from server import Failed
from server.commands import err, out
from server.commands.files import read_text
from server.commands.running import load_settings, run_with_services
from server.mail.daily_run import DailyRun, MailingExpired, RunSummary
from server.mail.runs import ReminderRun, open_emails, turn
from server.mail.sending import AT_ONCE, Emails, ServerUnreachable
from server.settings import Settings

app = typer.Typer()
emails = typer.Typer()
app.add_typer(emails, name="emails")
_LINES_SHOWN = 20


@emails.callback(invoke_without_command=True)
def send(
    ctx: typer.Context,
    on: Annotated[
        str | None, typer.Option(metavar="DATE", help="Only the words of this date, yyyy-mm-dd, for all, at any hour.")
    ] = None,
    at_once: Annotated[int, typer.Option(min=1, max=64, help="Emails to send at the same time.")] = AT_ONCE,
) -> None:
    """Sends the emails that are due: daily words and reminders. Safe to run again.

    Run it from cron every 15 minutes. Each member gets the words of a date at the hour that they chose, in their time
    zone, or as soon as the date has begun there. Without RINGSIDE_SMTP_URL the emails go to the log. Exit code 1 if an
    email or a list failed: run it again.
    """
    if ctx.invoked_subcommand is not None:
        return
    day = _parse_day(on)
    settings = load_settings()
    complete = run_with_services(lambda services: _send(services, settings, day, at_once))
    if not complete:
        raise Failed("Not everything was sent. Run it again: nobody gets a second email.")


async def _send(services: Services, settings: Settings, day: date | None, at_once: int) -> bool:
    with err.status("Waiting for another process that sends emails"):
        lease = await turn(services)
    try:
        return await lease.renewed_during(_send_in_turn(services, settings, day, at_once, lease))
    except LeaseLost:
        raise Failed("Another process sends the emails now. Nothing is lost: run it again.") from None
    finally:
        await lease.leave()


async def _send_in_turn(
    services: Services, settings: Settings, day: date | None, at_once: int, lease: Held[Turn]
) -> bool:
    async with open_emails(services, settings, lease, at_once) as due:
        try:
            reminded = day is not None or await _send_reminders(due)
            return await _send_words(due, day) and reminded
        except ServerUnreachable as error:
            raise Failed(f"{error}. Nothing is lost: run it again when the server answers.") from None
        except MailingExpired as error:
            raise Failed(f"{error}. Nothing was sent.") from None


async def _send_reminders(due: Emails) -> bool:
    run = ReminderRun(due)
    try:
        await run.run()
    finally:
        _print("Reminders of missing predictions:", run.summary.lines())
    return run.summary.complete


async def _send_words(due: Emails, day: date | None) -> bool:
    """Print the summary, also of a run that was cut short."""
    title = f"Words of {day}:" if day else "Daily words:"
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(title, total=None)

        def show(summary: RunSummary) -> None:
            counts = f"{summary.subscribers:,} subscribers, {summary.sent:,} sent"
            bar.update(task, description=f"{title} {counts}")

        run = DailyRun(due, show, day)
        try:
            await run.run()
        except ServerUnreachable:
            _print(title, run.summary.lines())
            raise
    _print(title, run.summary.lines())
    return run.summary.complete


def _print(title: str, lines: list[str]) -> None:
    out.print(title)
    for line in lines:
        out.print(line)


def _parse_day(text: str | None) -> date | None:
    """A date that has begun anywhere."""
    if text is None:
        return None
    newest = newest_date(datetime.now(UTC))
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise Failed(f"--on takes a date as yyyy-mm-dd, such as {newest}.") from None
    if day > newest:
        raise Failed(f"{day} has not begun: words are drawn on their day. The latest is {newest}, at UTC+14.")
    return day


@emails.command()
def bounced(
    file: Annotated[Path, typer.Argument(help="Addresses, one per line; - reads standard input.", allow_dash=True)],
) -> None:
    """Stops sending to addresses that do not accept emails, until their members confirm an address again.

    Safe to run again. Exit code 1 if a line is not an address; the others are processed anyway.
    """
    addresses, wrong = _parse_addresses(read_text(file))
    found = run_with_services(lambda services: remove_addresses(services, addresses))
    unknown = len(addresses - found.keys())
    out.print(f"Members without an address now: {sum(found.values()):,}. Addresses that belong to nobody: {unknown:,}.")
    for line in wrong[:_LINES_SHOWN]:
        err.print(f"line {line} is not an email address", style="red")
    if wrong:
        more = f"; the first {_LINES_SHOWN} are shown" if len(wrong) > _LINES_SHOWN else ""
        raise Failed(f"{len(wrong):,} lines are not email addresses{more}. Write one address per line.")


def _parse_addresses(text: str) -> tuple[set[str], list[int]]:
    """The addresses, as they are compared, and the numbers of the lines that are none. Empty lines are skipped."""
    addresses, wrong = set(), []
    for number, line in enumerate(text.splitlines(), 1):
        address = line.strip()
        if is_email_address(address):
            addresses.add(comparable_address(address))
        elif address:
            wrong.append(number)
    return addresses, wrong


async def remove_addresses(services: Services, addresses: set[str]) -> dict[str, int]:
    """How many members had each of these addresses."""
    found: dict[str, int] = {}
    unit = services.unit()
    async for _, profile in profile_store.listed_profiles(services.table):
        address = comparable_address(profile.email or "")
        if address not in addresses:
            continue
        hashed = email_hash(services.seal, address)
        if await profile_store.remove_bounced_address(services.table, profile, hashed, unit):
            found[address] = found.get(address, 0) + 1
    return found
