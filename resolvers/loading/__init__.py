"""Work that several requests share: `Loader` for records by key, `SingleFlight` for anything else, `Poller` for topics.

One rule holds for all three:

- **Context.** Shared work runs in a task and a context of its own (`shared_context`). Its units are charged to the
  request that began it. It does not end with that request's deadline: each of its calls to the engine has the engine's
  patience (`retries.PATIENCE`) instead.
- **Waiting.** Each request waits until its own deadline (`within_deadline`). It may be cancelled at any time, without
  harm to the work or to others who wait.
- **Errors.** An error belongs to the keys it concerns. A read may answer with an exception in the place of a record,
  which is raised for that key alone; an exception of a whole read fails the keys of that read. No error is remembered.
- **End.** When the process ends, so does everything that is under way, and everything that waits for it.

`SingleFlight` is in `datastore.dynamo.transport`, since the table shares its reads by it too; `Poller` is in
`resolvers.live`. A property test holds each of them to the rule.
"""
