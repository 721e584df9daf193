"""The journal: who did what. And webhooks, which tell other systems.

| wanted                            | read or write                                                     | requests    |
|-----------------------------------|-------------------------------------------------------------------|-------------|
| record an occurrence              | one Put in the change's transaction, and one for each webhook     | 0 more      |
| the journal, newest first         | JOURNAL#<shard>, 16 shards merged                                 | 16, 1 round |
| occurrences of an actor           | gsi1 ACTOR#<actor>#<shard>, 4 shards merged                       | 4           |
| occurrences with an object        | gsi2 OBJECT#<object>                                              | 1           |
| what a member's file has          | gsi1 ACTOR#User:<id>#<shard>, gsi2 OBJECT#User:<id>               | 5           |
| audit the journal                 | Scan, consistent                                                  | all         |
| all webhooks, with their leases   | WEBHOOKS WEBHOOK#<id>; consistent                                 | 1           |
| add a webhook                     | GetItem REVISIONS, all webhooks; a transaction of both            | 3           |
| what waits for a webhook          | DELIVERIES#<id>#WAITING#<shard>, oldest first, consistent         | 8           |
| it was delivered, or given up     | BatchWrite or a transaction: Put in the new state, Delete         | 1           |
| it failed                         | UpdateItem                                                        | 1           |
| it is queued again                | a transaction: Put if absent or failed, Delete in other states    | 1           |
| a webhook's deliveries            | DELIVERIES#<id>#<state>#<shard>, merged                           | 8 to 24     |

| module   | contents                                                     |
|----------|--------------------------------------------------------------|
| reading  | pages of the journal; auditing                             |
| usage    | how much is done, by day and by operation                    |
| webhooks | webhooks, their leases, and what waits for them              |

`datastore.changes.occurrences` has the writes of an occurrence. An occurrence is kept for as many days as its process
was told; then the engine removes it. Nothing else changes or deletes one.
"""
