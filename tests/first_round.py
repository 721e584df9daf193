"""The table that the first round's commit e795371 wrote, as `tests/fixtures/first_round` keeps it."""

from __future__ import annotations

import gzip
from asyncio import gather
from base64 import b64decode
from typing import Any

import orjson

from datastore.dynamo import Table
from datastore.layout import LAYOUT
from tests.generated import ROOT

FIXTURE_FOLDER = ROOT / "tests" / "fixtures" / "first_round"


def _item(line: bytes) -> dict[str, dict[str, Any]]:
    return {name: _with_bytes(attribute) for name, attribute in orjson.loads(line).items()}


def _with_bytes(attribute: dict[str, Any]) -> dict[str, Any]:
    """An attribute as the client hands it over; the fixture holds bytes as base64."""
    ((kind, value),) = attribute.items()
    if kind == "B":
        return {kind: b64decode(value)}
    if kind == "M":
        return {kind: {name: _with_bytes(inner) for name, inner in value.items()}}
    return {kind: [_with_bytes(inner) for inner in value]} if kind == "L" else attribute


ITEMS = [_item(line) for line in gzip.decompress((FIXTURE_FOLDER / "items.jsonl.gz").read_bytes()).splitlines()]
FIXTURE = orjson.loads(gzip.decompress((FIXTURE_FOLDER / "answers.json.gz").read_bytes()))


async def write_items(table: Table) -> None:
    """Writes the first round's items into a new table, which then has layout 1."""
    await table.write(LAYOUT.delete(LAYOUT.at()))
    requests = [{"PutRequest": {"Item": item}} for item in ITEMS]
    batches = [requests[start : start + 25] for start in range(0, len(requests), 25)]
    await gather(*(table.client.batch_write_item(RequestItems={table.name: batch}) for batch in batches))


async def items_of(table: Table) -> list[Any]:
    """Every item of a table, ordered by key."""
    items = [item async for item in table.scan_items(consistent=True)]
    return sorted(items, key=lambda item: (item["pk"]["S"], item["sk"]["S"]))
