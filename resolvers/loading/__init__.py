"""Work that several requests share: `Loader` for records by key, `SingleFlight` for anything else, `Poller` for topics.

One rule holds for all three:

- **Context.** Shared work runs in a task and a context of its own: `shared_context`, or `charged_context` for a
  `Loader`, whose read units are also taken from the allowance of the request that began it. All units are metered for
  that request. The work does not end with the request's deadline: each of its calls to the engine is retried for
  `retries.DEFAULT_SECONDS` instead.
- **Waiting.** Each request waits until its own deadline (`within_deadline`). It may be cancelled at any time, which
  affects neither the work nor the other requests.
- **Errors.** An error concerns certain keys. A read may return an exception in place of a record, which is raised for
  that key alone; an exception raised by a read fails all keys of that read. Errors are not cached.
- **End.** When the process ends, all shared work and all waiting for it end.

A `BoundedDict` holds what a process remembers between requests without such a read.

`SingleFlight` is in `datastore.dynamo.transport`, since the table shares its reads by it too; `Poller` is in
`resolvers.live`. A property test holds each of them to the rule.
"""
