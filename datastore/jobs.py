"""Jobs: work that continues beside requests and across restarts.

| wanted                       | read or write                                              | requests |
|------------------------------|------------------------------------------------------------|----------|
| one job                      | GetItem JOB#<id> JOB, consistent                           | 1        |
| all jobs, newest first       | gsi1 JOBS                                                  | 1 a page |
| jobs that are not finished   | gsi2 JOBS#RUNNING, oldest first                            | 1        |
| begin a job                  | PutItem if absent, or part of another transaction          | 1        |
| claim, report, finish        | UpdateItem, if nobody else has changed the job since       | 1        |

A job belongs to the process that wrote its `revision` last, and that writes it again every few seconds. Another one
takes the job once it has seen the same revision for longer than that by its own clock: no two clocks are compared. A
process that was taken for dead notices at its next report. Until then two may work on one job: the work of every kind
is idempotent, so that costs time and nothing else.

A finished job keeps no `input`, which may name a member, and is removed after 30 days.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from datastore.dynamo import ConditionFailed, Table
from datastore.dynamo.conditions import absent, where
from datastore.dynamo.entity import Entity
from datastore.dynamo.keys import Key
from datastore.dynamo.writes import Put, Write
from datastore.ids import Ids
from datastore.receipts import Once

LIFETIME = timedelta(days=30)
_UNFINISHED_AT_ONCE = 100


class JobState(StrEnum):
    """How a job stands."""

    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work. `place` is where its kind goes on after an interruption, and means something to it alone.

    `starter` is a keyed hash of the member or key that began it, since a job may outlive them.
    """

    id: str
    kind: str
    starter: str
    started_at: datetime
    expires: datetime
    input: dict[str, str] = field(default_factory=dict)
    state: JobState = JobState.RUNNING
    done: int = 0
    total: int | None = None
    finished_at: datetime | None = None
    message: str | None = None
    place: str | None = None
    about: str | None = None
    """A keyed hash of the member that it is about, if it leaves something that erasing them must delete."""
    claim: str | None = None
    """The process that works on it; None before the first, and after one that stopped in an orderly way."""
    revision: int = 1
    due_at: datetime | None = None
    """When it may be worked on; None for at once. The id of one that waits is of that time: it is listed last."""

    @property
    def node_key(self) -> str:
        return self.id

    @property
    def is_running(self) -> bool:
        return self.state is JobState.RUNNING

    def is_due(self, now: datetime) -> bool:
        return self.due_at is None or self.due_at <= now


JOB = Entity(
    Job,
    Key("JOB#{id}", "JOB"),
    ttl="expires",
    gsi1=Key("JOBS", "{id}"),
    gsi2=Key("JOBS#RUNNING", "{id}", when="is_running"),
)


class JobLost(Exception):
    """Another process has taken the job, or it was finished."""


def new_job(
    id_: str, kind: str, starter: str, now: datetime, input_: Mapping[str, str], about: str | None = None
) -> Job:
    return Job(id_, kind, starter, now, now + LIFETIME, dict(input_), about=about)


def later_job(job: Job, kind: str, due_at: datetime, message: str) -> Job:
    """A job that follows another one, with the same input; `message` says what it waits for."""
    id_ = Ids().next(due_at)  # not the process's own: its next ids would be of that time too
    return replace(new_job(id_, kind, job.starter, due_at, job.input), due_at=due_at, message=message)


def job_put(job: Job) -> Put:
    """The write that begins a job, for a transaction with what it depends on."""
    return JOB.put(job, when=absent())


async def begin_job(table: Table, job: Job) -> Job:
    """Begin a job unless one with its id exists; the stored one."""
    try:
        await table.write(job_put(job))
    except ConditionFailed as failed:
        return failed.stored(JOB) or job
    return job


async def begin_job_once(table: Table, job: Job, answer: Any, once: Once, *writes: Write) -> None:
    """Begin a new job together with other writes and the request's receipt."""
    try:
        await once.transact(table, answer, job_put(job), *writes)
    except ConditionFailed as failed:
        if not (failed.doubtful and failed.at(0)):  # an attempt whose answer was lost has begun it
            raise


async def read_job(table: Table, id_: str) -> Job | None:
    return await table.get(JOB.at(id=id_), consistent=True)


def all_jobs(table: Table) -> AsyncIterator[Job]:
    """Newest first, as the index shows them."""
    return table.iterate(JOB.on("gsi1").newest_first())


async def read_unfinished_jobs(table: Table) -> tuple[Job, ...]:
    """The oldest unfinished jobs, as the index shows them: it may be behind, so claiming one may fail."""
    return (await table.query(JOB.on("gsi2"), limit=_UNFINISHED_AT_ONCE)).records


async def claim_job(table: Table, seen: Job, process: str) -> Job | None:
    """The job, now this process's; None if it has changed since it was seen."""
    try:
        return await _change(table, seen, claim=process)
    except JobLost:
        return None


async def report_job(table: Table, job: Job, **changes: Any) -> Job:
    """Store progress, which also says that the job's process is alive. JobLost if another one has the job."""
    return await _change(table, job, **changes)


async def release_job(table: Table, job: Job, **changes: Any) -> None:
    """Leave a job to any other process, at once."""
    await _change(table, job, claim=None, **changes)


async def finish_job(table: Table, job: Job, state: JobState, now: datetime, message: str | None = None) -> Job:
    """End a job and forget its input."""
    ended = replace(job, state=state, finished_at=now, message=message, claim=None, place=None, input={})
    names = ("state", "finished_at", "message", "claim", "place", "input", "done", "total")
    return await _write(table, job, ended, *names)


async def end_jobs_naming(
    table: Table, member: str, own_job: str, now: datetime, before_ending: Callable[[Job], Awaitable[None]]
) -> int:
    """End the unfinished jobs whose input names a member, except the caller's own; return how many the index shows.

    `before_ending` is called with each of them first, as it is when it ends.
    """
    found, names = 0, {member, f"User:{member}"}
    async for listed in table.iterate(JOB.on("gsi2")):
        if listed.id == own_job or not names & set(listed.input.values()):
            continue
        found += 1
        current = await read_job(table, listed.id)
        if current is not None and current.is_running:
            await before_ending(current)
            with suppress(JobLost):  # reported or ended meanwhile: found again, or not
                await finish_job(table, current, JobState.FAILED, now, "A member whom it named was erased.")
    return found


async def _change(table: Table, job: Job, **changes: Any) -> Job:
    return await _write(table, job, replace(job, **changes), *changes)


async def _write(table: Table, before: Job, after: Job, *names: str) -> Job:
    after = replace(after, revision=before.revision + 1)
    unchanged = where(revision=before.revision, state=JobState.RUNNING)
    try:
        await table.write(JOB.shift(after, *names, "revision", when=unchanged))
    except ConditionFailed as failed:
        if failed.was_written(JOB, after):
            return after
        raise JobLost from None
    return after
