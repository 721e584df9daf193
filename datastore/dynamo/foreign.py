"""Tables of other layouts, read as plain values."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from datastore.dynamo.table import Table


async def foreign_rows(table: Table) -> AsyncIterator[Mapping[str, Any]]:
    """Every item of a table with any keys, as plain values; in constant memory."""
    async for item in table.scan_items():
        yield {name: _plain(attribute) for name, attribute in item.items()}


def _plain(attribute: Mapping[str, Any]) -> Any:
    kind, value = next(iter(attribute.items()))
    if kind == "M":
        return {name: _plain(inner) for name, inner in value.items()}
    if kind == "L":
        return [_plain(inner) for inner in value]
    return None if kind == "NULL" else value
