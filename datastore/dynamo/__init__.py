"""Everything that knows DynamoDB, and the only place that imports aioboto3."""

from datastore.dynamo.attributes import StoredAs
from datastore.dynamo.budgets import Spent, budget, deadline, metered, shared_context
from datastore.dynamo.conditions import Condition, absent, among, less, more, present, where
from datastore.dynamo.entity import Entity, ItemKey, Partition
from datastore.dynamo.errors import (
    ConditionFailed,
    DeadlineExceeded,
    DynamoError,
    EngineUnavailable,
    Rejected,
    Throttled,
    TransactionConflict,
)
from datastore.dynamo.foreign import foreign_rows
from datastore.dynamo.keys import HIGHEST, BadKey, Key, best_first, from_best_first, key_text
from datastore.dynamo.merge import Merged, merge, share_of
from datastore.dynamo.paging import Page, PageRequest, Window
from datastore.dynamo.retries import persist, remaining, within_deadline
from datastore.dynamo.table import BATCH_READ, Slice, Table, open_table
from datastore.dynamo.transport.single_flight import SingleFlight
from datastore.dynamo.transport.timeouts import Alarm, timeout_at
from datastore.dynamo.writes import Check, Delete, Put, Update, Write

__all__ = [
    "BATCH_READ",
    "HIGHEST",
    "Alarm",
    "BadKey",
    "Check",
    "Condition",
    "ConditionFailed",
    "DeadlineExceeded",
    "Delete",
    "DynamoError",
    "EngineUnavailable",
    "Entity",
    "ItemKey",
    "Key",
    "Merged",
    "Page",
    "PageRequest",
    "Partition",
    "Put",
    "Rejected",
    "SingleFlight",
    "Slice",
    "Spent",
    "StoredAs",
    "Table",
    "Throttled",
    "TransactionConflict",
    "Update",
    "Window",
    "Write",
    "absent",
    "among",
    "best_first",
    "budget",
    "deadline",
    "foreign_rows",
    "from_best_first",
    "key_text",
    "less",
    "merge",
    "metered",
    "more",
    "open_table",
    "persist",
    "present",
    "remaining",
    "share_of",
    "shared_context",
    "timeout_at",
    "where",
    "within_deadline",
]
