"""The engine behind the datastore, as the other layers see it: tables, pages, deadlines and errors.

Entities, keys, conditions and writes are for the datastore alone, which imports them from their modules.
"""

from datastore.dynamo.attributes import iso
from datastore.dynamo.budgets import (
    Budget,
    Spent,
    charged_context,
    deadline,
    join_work,
    metered,
    request_budget,
    shared_context,
    unlimited,
)
from datastore.dynamo.bulk import foreign_rows
from datastore.dynamo.entity import BadKey, Slice, best_first, key_text
from datastore.dynamo.errors import (
    ConditionFailed,
    CredentialsRefused,
    DeadlineExceeded,
    DynamoError,
    EngineUnavailable,
    Rejected,
    StorageFailed,
    Throttled,
    TooCostly,
    TooManyWaiting,
    TransactionConflict,
)
from datastore.dynamo.paging import Page, PageRequest, Window
from datastore.dynamo.rate_limit import RateLimit
from datastore.dynamo.read_cache import ReadCache, Reads, read_each
from datastore.dynamo.retries import (
    Stale,
    batches,
    check_before_each_attempt,
    chunks,
    gather_or_cancel,
    optimistic,
    optimistic_from,
    remaining,
    within_deadline,
)
from datastore.dynamo.table import Table, open_table
from datastore.dynamo.transport.connections import CallQueue
from datastore.dynamo.transport.single_flight import SingleFlight
