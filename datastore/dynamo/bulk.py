"""The whole table, item by item as it is stored: scanned, and written in batches."""

from base64 import b64decode, b64encode
from binascii import Error as BadBase64
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any

import orjson

from datastore.dynamo.attributes import Item
from datastore.dynamo.budgets import deadline
from datastore.dynamo.retries import retry
from datastore.dynamo.table import Table

# ── lines ──

_EXACT = Context(prec=60)
_LONGEST_PLAIN = 40
"""Places before or after the point in plain notation; longer numbers, such as 1E+100, keep their exponent."""


class BadLine(ValueError):
    """The line is not an item's."""


def item_line(item: Mapping[str, Any]) -> bytes:
    """The line of an item, without a line break."""
    canonical = {name: _canonical(attribute) for name, attribute in item.items()}
    return orjson.dumps(canonical, option=orjson.OPT_SORT_KEYS)


def _canonical(attribute: Mapping[str, Any]) -> dict[str, Any]:
    ((kind, value),) = attribute.items()
    match kind:
        case "N":
            value = canonical_number(value)
        case "B":
            value = b64encode(value).decode()
        case "M":
            value = {name: _canonical(inner) for name, inner in value.items()}
        case "L":
            value = [_canonical(inner) for inner in value]
        case "SS":
            value = sorted(value)
        case "NS":
            value = sorted(map(canonical_number, value), key=Decimal)
        case "BS":
            value = [b64encode(part).decode() for part in sorted(value)]
    return {kind: value}


def canonical_number(text: str) -> str:
    """One notation for all that mean the same number: 1.50, 15E-1 and 1.5 are 1.5."""
    number = Decimal(text).normalize(_EXACT)
    if not number:
        return "0"
    small = abs(number.adjusted()) < _LONGEST_PLAIN and -int(number.as_tuple().exponent) < _LONGEST_PLAIN
    return format(number, "f") if small else str(number)


def read_line(line: bytes) -> Item:
    """The item of a line that was parsed before: nothing is checked, in half the time."""
    return {name: _parsed(attribute) for name, attribute in orjson.loads(line).items()}


def parse_line(line: bytes) -> Item:
    """The item of a line, as a request takes it; BadLine if it is none, or not in the one form."""
    try:
        item = read_line(line)
        written_again = item_line(item)
        has_keys = all(isinstance(item[key]["S"], str) for key in ("pk", "sk"))
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadLine(f"it is not an item ({error})") from None
    if written_again != line or not has_keys:
        raise BadLine("it is not an item in the form of an export")
    return item


def _parsed(attribute: Mapping[str, Any]) -> dict[str, Any]:
    ((kind, value),) = attribute.items()
    match kind:
        case "S" | "N" | "BOOL" | "NULL" | "SS" | "NS":
            return {kind: value}
        case "B":
            return {kind: _decode(value)}
        case "BS":
            return {kind: [_decode(part) for part in value]}
        case "M":
            return {kind: {name: _parsed(inner) for name, inner in value.items()}}
        case "L":
            return {kind: [_parsed(inner) for inner in value]}
    raise BadLine(f"an attribute has the unknown type {kind}")


def _decode(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except BadBase64 as error:
        raise BadLine(f"a binary value is not base64 ({error})") from None


# ── scans and batches ──

PATIENCE = 300.0
"""Seconds for which a throttled call, or one to an engine that is away, is repeated: nobody waits for an answer."""


async def scan_pages(table: Table, limit: int, start: Item | None) -> AsyncIterator[tuple[Sequence[Item], Item | None]]:
    """The pages of a consistent scan, each with the key that the next one starts after."""
    request: dict[str, Any] = {"TableName": table.name, "ConsistentRead": True, "Limit": limit}
    while True:
        more = {"ExclusiveStartKey": start} if start else {}
        answer = await _patiently(table.client.scan, **request, **more)
        start = answer.get("LastEvaluatedKey")
        yield answer["Items"], start
        if start is None:
            return


async def put_items(table: Table, items: Sequence[Item]) -> None:
    """Write a batch of up to 25 items."""
    with deadline(PATIENCE):
        await table.write_batch([{"PutRequest": {"Item": item}} for item in items])


async def put_as_transaction(table: Table, items: Sequence[Item]) -> None:
    """Write up to 100 items, of 4 MB in all, in one transaction."""
    puts = [{"Put": {"TableName": table.name, "Item": item}} for item in items]
    await _patiently(table.client.transact_write_items, TransactItems=puts)


async def _patiently(call: Callable[..., Awaitable[Any]], **parameters: Any) -> Any:
    with deadline(PATIENCE):
        return await retry(call, **parameters)


# ── other layouts ──
# Tables of other layouts, read as plain values.


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
