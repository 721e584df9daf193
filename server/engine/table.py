"""The table that the settings name: opened, and checked to fit the service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from datastore.dynamo import DynamoError, Rejected, Table, deadline, declaration, open_table
from datastore.whole.layout import CURRENT_LAYOUT, Layout, ensure_layout
from server import Failed
from server.settings import AWS, Settings

START_SECONDS = 10.0


class UnusableTable(Failed):
    """The engine or its table cannot be used; the message says why and what to do."""


@asynccontextmanager
async def open_unchecked_table(settings: Settings) -> AsyncIterator[Table]:
    """The table that the settings name, not checked yet."""
    url = None if settings.dynamodb_url == AWS else settings.dynamodb_url
    async with open_table(settings.table, url=url, region=settings.aws_region) as table:
        yield table


@asynccontextmanager
async def open_checked_table(settings: Settings, *, create: bool = False) -> AsyncIterator[Table]:
    """The table that the settings name, which fits the service; with `create` it is made first, unless it exists."""
    async with open_unchecked_table(settings) as table:
        if create:
            await declaration.create(table)
        await validate_table(table)
        yield table


async def validate_table(table: Table) -> None:
    """UnusableTable, with the reason, unless the engine and the table fit the service."""
    if reason := _unusable_layout(await read_layout(table)):
        raise UnusableTable(f"The table {table.name} {reason}")


async def read_layout(table: Table) -> Layout | None:
    """The table's layout, whichever it is; UnusableTable unless the engine and the table's keys fit the service."""
    try:
        with deadline(START_SECONDS):
            wrong = declaration.differences(await table.describe())
            if wrong:
                raise UnusableTable(
                    f"The table {table.name} cannot be used: {'; '.join(wrong)}. "
                    "Name another one with RINGSIDE_TABLE; `ringside table create` makes it."
                )
            if reason := await declaration.refuses_transactions(table):
                raise UnusableTable(
                    f"This engine has no transactions, which votes, predictions and counts need: {reason}. "
                    "Use DynamoDB, DynamoDB Local or the embedded engine."
                )
            return await ensure_layout(table)
    except Rejected as error:
        raise UnusableTable(f"The table {table.name} cannot be used: {error}. {_remedy(error)}") from None
    except DynamoError as error:
        raise not_answered(table, error) from None


def _remedy(error: Rejected) -> str:
    if error.is_denied:
        return "Give the role of this process the permissions in deploy/iam: docs/operations.md says what each is for."
    return "`ringside table create` makes it."


def not_answered(table: Table, error: DynamoError) -> UnusableTable:
    return UnusableTable(
        f"The engine at {table.client.meta.endpoint_url} did not answer within {START_SECONDS:.0f} s: {error}. Is the "
        "address right, in RINGSIDE_DYNAMODB_URL or a copy's URL?"
    )


def _unusable_layout(layout: Layout | None) -> str | None:
    """Why a table of this layout cannot be served, and what to do; None if it can."""
    if layout is None:
        return (
            "has items that Ringside did not write. Name another one with RINGSIDE_TABLE; `ringside table create` "
            "makes it."
        )
    if layout.imported_items is not None:
        return (
            "is being filled by `ringside import all` or `ringside copy`, or either was interrupted. Wait for it, or "
            "run it again: it continues where it stopped."
        )
    if layout.version != CURRENT_LAYOUT:
        return (
            f"has layout {layout.version}, and this release knows layout {CURRENT_LAYOUT} only. Run the release that "
            "wrote it."
        )
    return None
