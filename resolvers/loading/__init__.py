"""Work that several requests share: `Loader` for records by key, `SingleFlight` for anything else, `Poller` for topics.

One rule holds for all three:

- **Context.** Shared work runs in a task and a context of its own: `charged_context` for a `Loader`, whose reads are
  paid for by those who wait for them (see `datastore.dynamo.budgets`), `shared_context` for the service's own work. All
  units are metered for the request that began it. What a `Loader` reads has the latest deadline of those who wait for
  it, and ends when nobody waits any more; other work goes on, and each of its calls is retried for
  `retries.DEFAULT_SECONDS`.
- **Waiting.** Each request waits until its own deadline (`within_deadline`). It may be cancelled at any time, which
  affects neither the work nor the other requests.
- **Errors.** An error concerns certain keys. A read may return an exception in place of a record, which is raised for
  that key alone; an exception raised by a read fails all keys of that read. Errors are not cached.
- **End.** When the process ends, all shared work and all waiting for it end.

A `BoundedDict` holds what a process remembers between requests without such a read.

`SingleFlight` is in `datastore.dynamo.transport`, since the table shares its reads by it too; `Poller` is in
`resolvers.live`. A property test holds each of them to the rule.
"""
