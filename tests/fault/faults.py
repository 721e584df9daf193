"""The failures that DynamoDB may answer with, in the format of its protocol.

Pure functions: from a fault, an operation and its body to an answer, or to the rest of a request.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Any, Final

import orjson

Body = dict[str, Any]

JSON: Final = {"Content-Type": "application/x-amz-json-1.0"}
NAMESPACE: Final = "com.amazonaws.dynamodb.v20120810#"
BATCHES: Final = {"BatchWriteItem": "UnprocessedItems", "BatchGetItem": "UnprocessedKeys"}
TRANSACTIONS: Final = ("TransactWriteItems", "TransactGetItems")
WRITES: Final = ("PutItem", "UpdateItem", "DeleteItem")
MESSAGES: Final = {
    "ConditionalCheckFailed": "The conditional request failed",
    "ThrottlingError": "Throughput exceeds the current capacity for one or more global secondary indexes.",
    "TransactionConflict": "Transaction is ongoing for the item",
}
# DynamoDB cuts a page at 1 MB. Tests write less, so shorter pages stand for that.
LONGEST_SHORT_PAGE: Final = 10


class Fault(StrEnum):
    """The kinds of failure; the values are for reports."""

    THROTTLED = "throttled"
    FAILED_BEFORE = "status 500 without applying the request"
    FAILED_AFTER = "status 500 after applying the request"
    RESET_BEFORE = "connection reset without applying the request"
    RESET_AFTER = "connection reset after applying the request"
    CONFLICT = "transaction conflict"
    MIXED_CONFLICT = "transaction conflict together with a failed condition"
    SHORT = "partial batch or page"
    SLOW = "delayed"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the engine, real or injected."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)


def fits(fault: Fault, operation: str, body: Body) -> bool:
    """Whether DynamoDB could answer this operation in this way."""
    match fault:
        case Fault.CONFLICT:
            return operation == "TransactWriteItems"
        case Fault.MIXED_CONFLICT:
            actions = list(_actions(body)) if operation == "TransactWriteItems" else []
            return len(actions) > 1 and any("ConditionExpression" in action for action in actions)
        case Fault.SHORT if operation in BATCHES:
            return sum(1 for _ in _entries(operation, body)) > 1
        case Fault.SHORT:
            return operation in ("Query", "Scan") and body.get("Limit") != 1
        case _:
            return True


def throttled(operation: str, body: Body, random: Random) -> Answer:
    """Throttle a transaction as a whole, or one of its items."""
    if operation == "TransactWriteItems" and random.random() < 0.5:
        actions = list(_actions(body))
        return cancelled(_reasons(len(actions), {random.randrange(len(actions)): "ThrottlingError"}))
    return refused("ProvisionedThroughputExceededException", "The level of configured throughput was exceeded.")


def failed(*_: object) -> Answer:
    """Return a server error."""
    return refused("InternalServerError", "Internal server error", status=500)


def conflicted(_: str, body: Body, random: Random) -> Answer:
    """Cancel the transaction because of one of its items."""
    actions = list(_actions(body))
    return cancelled(_reasons(len(actions), {random.randrange(len(actions)): "TransactionConflict"}))


def conflicted_with_failed_condition(_: str, body: Body, random: Random) -> Answer:
    """Cancel it because of one item's conflict and another item's condition."""
    actions = list(_actions(body))
    condition = random.choice([index for index, action in enumerate(actions) if "ConditionExpression" in action])
    conflict = random.choice([index for index in range(len(actions)) if index != condition])
    return cancelled(
        _reasons(len(actions), {condition: "ConditionalCheckFailed", conflict: "TransactionConflict"}),
    )


INSTEAD: Final[Mapping[Fault, Callable[[str, Body, Random], Answer]]] = {
    Fault.THROTTLED: throttled,
    Fault.FAILED_BEFORE: failed,
    Fault.CONFLICT: conflicted,
    Fault.MIXED_CONFLICT: conflicted_with_failed_condition,
}


def conflict(operation: str, locked: Sequence[bool]) -> Answer:
    """Refuse a request some of whose items another transaction has locked."""
    if operation in TRANSACTIONS:
        codes = {index: "TransactionConflict" for index, is_locked in enumerate(locked) if is_locked}
        return cancelled(_reasons(len(locked), codes))
    return refused("TransactionConflictException", "Transaction is ongoing for the item")


def split_request(operation: str, body: Body, random: Random) -> tuple[Body, Body]:
    """Split a request into the part that is carried out and, of a batch, the unprocessed rest."""
    if operation not in BATCHES:
        longest = min(body.get("Limit", LONGEST_SHORT_PAGE + 1) - 1, LONGEST_SHORT_PAGE)
        return {**body, "Limit": random.randint(1, longest)}, {}
    entries = list(_entries(operation, body))
    unprocessed = set(random.sample(range(len(entries)), random.randrange(1, len(entries))))
    done = [entry for index, entry in enumerate(entries) if index not in unprocessed]
    rest = [entry for index, entry in enumerate(entries) if index in unprocessed]
    return {**body, "RequestItems": _request_items(operation, body, done)}, _request_items(operation, body, rest)


def with_unprocessed(operation: str, answer: Answer, rest: Body) -> Answer:
    """Add the unprocessed rest of a batch to the engine's answer, without the checksum that no longer fits."""
    if not rest or answer.status != 200:
        return answer
    body = orjson.loads(answer.body)
    unprocessed = body.setdefault(BATCHES[operation], {})
    for table, entries in rest.items():
        if table not in unprocessed:
            unprocessed[table] = entries
        elif operation == "BatchGetItem":
            unprocessed[table]["Keys"] += entries["Keys"]
        else:
            unprocessed[table] += entries
    return Answer(answer.status, orjson.dumps(body))


def items(operation: str, body: Body, key: Sequence[str]) -> list[str]:
    """Return names of the items that a request writes, or a transaction reads, in the order of the request."""
    actions = list(_actions(body)) if operation in TRANSACTIONS else [body] if operation in WRITES else []
    return [_name(action["TableName"], action.get("Key") or action["Item"], key) for action in actions]


def refused(error: str, message: str, status: int = 400) -> Answer:
    """Return an error as the engine writes it."""
    return Answer(status, orjson.dumps({"__type": NAMESPACE + error, "message": message}))


def cancelled(reasons: Sequence[Mapping[str, str]]) -> Answer:
    """Return the end of a transaction, with a reason for each of its items."""
    codes = ", ".join(reason["Code"] for reason in reasons)
    message = f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"
    error = NAMESPACE + "TransactionCanceledException"
    return Answer(400, orjson.dumps({"__type": error, "Message": message, "CancellationReasons": reasons}))


def _reasons(size: int, codes: Mapping[int, str]) -> list[dict[str, str]]:
    codes_in_order = (codes.get(index) for index in range(size))
    return [{"Code": code, "Message": MESSAGES[code]} if code else {"Code": "None"} for code in codes_in_order]


def _actions(body: Body) -> Iterator[Body]:
    """Unwrap the items of a transaction from the names of their operations."""
    for item in body["TransactItems"]:
        yield from item.values()


def _entries(operation: str, body: Body) -> Iterator[tuple[str, Body]]:
    for table, entries in body["RequestItems"].items():
        for entry in entries["Keys"] if operation == "BatchGetItem" else entries:
            yield table, entry


def _request_items(operation: str, body: Body, entries: Sequence[tuple[str, Body]]) -> Body:
    tables: dict[str, list[Body]] = {}
    for table, entry in entries:
        tables.setdefault(table, []).append(entry)
    if operation == "BatchGetItem":
        return {table: {**body["RequestItems"][table], "Keys": keys} for table, keys in tables.items()}
    return dict(tables)


def _name(table: str, attributes: Body, key: Sequence[str]) -> str:
    return orjson.dumps([table, *(attributes.get(name) for name in key)]).decode()
