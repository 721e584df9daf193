"""The engine behind the datastore, as the other layers see it: tables, pages, deadlines and errors.

| module       | contents                                                                         |
|--------------|----------------------------------------------------------------------------------|
| table        | all reads and writes; simultaneous reads made once                               |
| entity       | a kind of record: its keys, its indexes, its attributes                          |
| attributes   | values as they are stored                                                        |
| writes       | conditions, and writes as values                                                 |
| paging       | windows, cursors, pages; partitions merged into one order                        |
| errors       | what can go wrong                                                                |
| retries      | calls repeated until the deadline; `optimistic` changes; work in batches         |
| budgets      | a request's deadline, its meter, what it may ask of the engine; rates            |
| read_cache   | all reads that requests share; work done once for all; dictionaries with a bound |
| bulk         | the whole table, item by item                                                    |
| declaration  | the declaration of the table: created and checked                                |
| transport    | the client: data calls sent directly, over connections of our own                |

Entities, keys, conditions and writes are for the datastore alone, which imports them from their modules.
"""

from datastore.dynamo.attributes import iso, to_the_millisecond
from datastore.dynamo.budgets import (
    OFF,
    Budget,
    Rate,
    RateLimit,
    Rates,
    deadline,
    metered,
    parse_rate,
    request_budget,
    shared_context,
    unlimited,
)
from datastore.dynamo.bulk import BadLine, foreign_rows, parse_line
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
from datastore.dynamo.paging import LARGEST_PAGE, PAGE_SIZE, Page, PageRequest, Window, page_of, page_size
from datastore.dynamo.read_cache import BoundedDict, ReadCache, Reads, SingleFlight, read_each
from datastore.dynamo.retries import (
    PIECE_BYTES,
    Again,
    Stale,
    batches,
    check_before_each_attempt,
    chunks,
    gather_or_cancel,
    optimistic,
    optimistic_from,
    pieces,
    remaining,
    repeated,
    within_deadline,
)
from datastore.dynamo.table import Table, TableAddress, open_table
from datastore.dynamo.transport.connections import Caller, Callers, CallQueue
