"""Jobs: work that continues in the background and across restarts.

| wanted                       | read or write                                              | requests |
|------------------------------|------------------------------------------------------------|----------|
| one job                      | GetItem JOB#<id> JOB, consistent                           | 1        |
| jobs, newest first           | gsi1 JOBS, gsi2 JOBS#RUNNING for those that run            | 1 a page |
| jobs that are not finished   | gsi2 JOBS#RUNNING, oldest first                            | 1        |
| begin a job                  | PutItem if absent, or part of another transaction          | 1        |
| acquire, report, finish      | UpdateItem of its lease (`datastore.jobs.leases`)          | 1        |
| store its text               | BatchWriteItem JOB#<id> TEXT#<number>                      | 1 for 25 |
| read it; delete it           | Query JOB#<id> TEXT#, consistent; BatchWriteItem of these  | 1 a MB   |

A job's item is its lease: one process works on it, and stores progress and outcome there. The work of every kind is
idempotent, so a process that was taken for dead and goes on for a moment costs time and nothing else.

A finished job keeps no `input`, which may name a member, and is removed after 30 days. One that is not finished stays,
however long no process runs: what it has promised is still to be done.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from datastore.changes.unit_of_work import UnitOfWork
from datastore.dynamo import PIECE_BYTES, ConditionFailed, Page, Table, Window, pieces
from datastore.dynamo.entity import Entity, Key
from datastore.dynamo.writes import Put, Write, absent, where
from datastore.jobs.leases import Held, leased
from datastore.values.ids import Ids

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
    expires: datetime | None = None
    """When the engine may remove it; None before it has ended."""
    input: dict[str, str] = field(default_factory=dict)
    state: JobState = JobState.RUNNING
    done: int = 0
    total: int | None = None
    finished_at: datetime | None = None
    message: str | None = None
    place: str | None = None
    about: str | None = None
    """The member that it is about, if it leaves something that erasing them must delete."""
    holder: str | None = None
    """The process that works on it; None before the first, and after one that stopped in an orderly way."""
    term: int = 0
    beat: int = 0
    role: str | None = None
    """The role of those who see it, apart from its starter and admins: the one that its mutation asks for."""
    due_at: datetime | None = None
    """When work on it may begin; None for at once. The id of a job that waits is of that time, so it is listed last."""

    @property
    def node_key(self) -> str:
        return self.id

    @property
    def is_running(self) -> bool:
        return self.state is JobState.RUNNING

    def is_due(self, now: datetime) -> bool:
        return self.due_at is None or self.due_at <= now


JOB = leased(
    Entity(
        Job,
        Key("JOB#{id}", "JOB"),
        ttl="expires",
        gsi1=Key("JOBS", "{id}"),
        gsi2=Key("JOBS#RUNNING", "{id}", when="is_running"),
    )
)


def later_job(job: Job, kind: str, due_at: datetime, message: str) -> Job:
    """A job that follows another one, with the same input; `message` says what it waits for."""
    id_ = Ids().next(due_at)  # not the process's own: its next ids would be of that time too
    return Job(id_, kind, job.starter, due_at, input=job.input, message=message, due_at=due_at)


def job_put(job: Job) -> Put:
    """The write that begins a job, for a transaction with what it depends on."""
    return JOB.put(job, when=absent())


async def begin_job(table: Table, job: Job, answer: Any, unit: UnitOfWork, *writes: Write) -> None:
    """Begin a new job together with other writes and the request's receipt."""
    try:
        await unit.transact(table, answer, job_put(job), *writes)
    except ConditionFailed as failed:
        if not (failed.doubtful and failed.at(0)):  # an attempt whose answer was lost has begun it
            raise


async def read_job(table: Table, id_: str) -> Job | None:
    return await table.get(JOB.at(id=id_), consistent=True)


async def read_jobs_page(table: Table, state: JobState | None, window: Window) -> Page[Job]:
    """Newest first, of one state or of any, as the index shows them."""
    jobs = JOB.on("gsi1").newest_first()
    if state is JobState.RUNNING:
        jobs = JOB.on("gsi2").newest_first()
    elif state is not None:
        jobs = jobs.where(where(state=state))
    return await table.page([jobs], window.open(f"jobs\n{state or ''}"))


def all_jobs(table: Table) -> AsyncIterator[Job]:
    """Newest first, as the index shows them."""
    return table.iterate(JOB.on("gsi1").newest_first())


async def read_unfinished_jobs(table: Table) -> tuple[Job, ...]:
    """The oldest unfinished jobs, as the index shows them: it may be behind, so acquiring one may fail."""
    return (await table.query(JOB.on("gsi2"), limit=_UNFINISHED_AT_ONCE)).records


async def finish_job(job: Held[Job], state: JobState, now: datetime, message: str | None) -> None:
    """End a job and forget its input."""
    ended = {"finished_at": now, "expires": now + LIFETIME}
    await job.release(state=state, message=message, place=None, input={}, **ended)


# ── texts ──
# Texts that jobs work on: in pieces, until the job has ended.
#
# A text is stored before its job begins. That of a job that never began expires.


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A part of a text. It may end within a letter."""

    job: str
    number: int
    data: bytes
    expires: datetime


TEXT_PIECE = Entity(TextPiece, Key("JOB#{job}", "TEXT#{number:03d}"), ttl="expires")


async def store_text(table: Table, job: str, text: str, expires: datetime) -> None:
    parts = enumerate(pieces(text.encode(), PIECE_BYTES))
    await table.write_many(TEXT_PIECE.put(TextPiece(job, number, part, expires)) for number, part in parts)


async def read_text(table: Table, job: str) -> str:
    parts = [part.data async for part in table.iterate(TEXT_PIECE.on(job=job), consistent=True)]
    return b"".join(parts).decode()


async def delete_text(table: Table, job: str) -> None:
    await table.clear(TEXT_PIECE.on(job=job))
