"""What DynamoDB may answer to a request that deserved better, as it is said on the wire.

Pure: a fault, an operation and its body go in; the answer, or what is left of the request, comes out.
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
# A page ends after 1 MB, wherever that is. Nobody wants to write megabytes in a test.
LONGEST_SHORT_PAGE: Final = 10


class Fault(StrEnum):
    """What goes wrong."""

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
    """An answer of the engine, or in its name."""

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
    """Transactions are throttled as a whole, or for the sake of one of their items."""
    if operation == "TransactWriteItems" and random.random() < 0.5:
        actions = list(_actions(body))
        return cancelled(_reasons(len(actions), {random.randrange(len(actions)): "ThrottlingError"}))
    return refused("ProvisionedThroughputExceededException", "The level of configured throughput was exceeded.")


def failed(*_: object) -> Answer:
    """Return the answer of a server that stumbled."""
    return refused("InternalServerError", "Internal server error", status=500)


def conflicted(_: str, body: Body, random: Random) -> Answer:
    """Cancel for one of the items."""
    actions = list(_actions(body))
    return cancelled(_reasons(len(actions), {random.randrange(len(actions)): "TransactionConflict"}))


def conflicted_beside_a_condition(_: str, body: Body, random: Random) -> Answer:
    """Cancel for one item's conflict and another one's condition."""
    actions = list(_actions(body))
    condition = random.choice([place for place, action in enumerate(actions) if "ConditionExpression" in action])
    conflict = random.choice([place for place in range(len(actions)) if place != condition])
    return cancelled(
        _reasons(len(actions), {condition: "ConditionalCheckFailed", conflict: "TransactionConflict"}),
    )


INSTEAD: Final[Mapping[Fault, Callable[[str, Body, Random], Answer]]] = {
    Fault.THROTTLED: throttled,
    Fault.FAILED_BEFORE: failed,
    Fault.CONFLICT: conflicted,
    Fault.MIXED_CONFLICT: conflicted_beside_a_condition,
}


def in_the_way(operation: str, taken: Sequence[bool]) -> Answer:
    """Refuse a request some of whose items another transaction holds."""
    if operation in TRANSACTIONS:
        held = {place: "TransactionConflict" for place, is_taken in enumerate(taken) if is_taken}
        return cancelled(_reasons(len(taken), held))
    return refused("TransactionConflictException", "Transaction is ongoing for the item")


def shortened(operation: str, body: Body, random: Random) -> tuple[Body, Body]:
    """Return the part of the request that is done, and of a batch the part that is left, in the same shape."""
    if operation not in BATCHES:
        longest = min(body.get("Limit", LONGEST_SHORT_PAGE + 1) - 1, LONGEST_SHORT_PAGE)
        return {**body, "Limit": random.randint(1, longest)}, {}
    entries = list(_entries(operation, body))
    left = set(random.sample(range(len(entries)), random.randrange(1, len(entries))))
    done = [entry for place, entry in enumerate(entries) if place not in left]
    undone = [entry for place, entry in enumerate(entries) if place in left]
    return {**body, "RequestItems": _gathered(operation, body, done)}, _gathered(operation, body, undone)


def with_the_rest(operation: str, answer: Answer, left: Body) -> Answer:
    """Add to the engine's answer what was kept from it. Its checksum would be wrong now."""
    if not left or answer.status != 200:
        return answer
    said = orjson.loads(answer.body)
    rest = said.setdefault(BATCHES[operation], {})
    for table, entries in left.items():
        if table not in rest:
            rest[table] = entries
        elif operation == "BatchGetItem":
            rest[table]["Keys"] += entries["Keys"]
        else:
            rest[table] += entries
    return Answer(answer.status, orjson.dumps(said))


def items(operation: str, body: Body, key: Sequence[str]) -> list[str]:
    """Name the items that a request writes, or that a transaction reads, in the order of the request."""
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
    given = (codes.get(place) for place in range(size))
    return [{"Code": code, "Message": MESSAGES[code]} if code else {"Code": "None"} for code in given]


def _actions(body: Body) -> Iterator[Body]:
    """Each item of a transaction is wrapped in the name of what is done with it."""
    for item in body["TransactItems"]:
        yield from item.values()


def _entries(operation: str, body: Body) -> Iterator[tuple[str, Body]]:
    for table, entries in body["RequestItems"].items():
        for entry in entries["Keys"] if operation == "BatchGetItem" else entries:
            yield table, entry


def _gathered(operation: str, body: Body, entries: Sequence[tuple[str, Body]]) -> Body:
    tables: dict[str, list[Body]] = {}
    for table, entry in entries:
        tables.setdefault(table, []).append(entry)
    if operation == "BatchGetItem":
        return {table: {**body["RequestItems"][table], "Keys": keys} for table, keys in tables.items()}
    return dict(tables)


def _name(table: str, attributes: Body, key: Sequence[str]) -> str:
    return orjson.dumps([table, *(attributes.get(name) for name in key)]).decode()
