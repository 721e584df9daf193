"""The fields that show a job, and the runner that works on jobs in the background.

Each kind of job has a function, of which the runner is told at the start (`resolvers.whole.jobs`). It gets the services
and a `JobRun`. It may be stopped at any of its writes, and is then called again, by this process or another: it must be
idempotent, and may go on from the place that it last reported. A failure of the table does not end a job: it goes on
when the table answers again.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, TypeAlias

import structlog

from datastore.dynamo import BadKey, DynamoError, Page, Rejected, SingleFlight, Window, remaining, shared_context
from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import Job, JobState
from datastore.jobs.leases import Held, LeaseLost
from datastore.refusals import Conflict, Refusal
from resolvers.live.background import Repeated, uneven
from resolvers.requests.context import Context, NodeOf, Role, Services

# ── runs ──

JobId = Annotated[str, NodeOf("Job")]

CHECK_SECONDS = 5.0
"""How often a process looks for jobs that nobody works on."""
MOST_AT_ONCE = 2
"""Jobs that one process works on at a time: each is many writes, and requests come first."""
_PAUSE = 0.2
"""Seconds between two reads of a job that somebody waits for and another process works on."""

_log = structlog.get_logger("ringside.jobs")


class JobRun:
    """A job that this process works on. Its kind counts what it has done, and may leave a place to go on from.

    Both are stored when the lease is renewed, or at once with `report`.
    """

    def __init__(self, lease: Held[Job]) -> None:
        self.lease = lease

    @property
    def job(self) -> Job:
        return self.lease.record

    @property
    def input(self) -> Mapping[str, str]:
        return self.job.input

    @property
    def done(self) -> int:
        return self.job.done

    @done.setter
    def done(self, done: int) -> None:
        self.lease.note(done=done)

    @property
    def total(self) -> int | None:
        return self.job.total

    @total.setter
    def total(self, total: int | None) -> None:
        self.lease.note(total=total)

    @property
    def place(self) -> str | None:
        return self.job.place

    @place.setter
    def place(self, place: str | None) -> None:
        self.lease.note(place=place)

    async def report(self) -> None:
        """Store how far it is. LeaseLost if another process has the job."""
        await self.lease.save()


Work: TypeAlias = "Callable[[Services, JobRun], Coroutine[Any, Any, str | None]]"
"""What a kind of job does; returns a message for people. A Refusal that it raises ends the job as FAILED."""


# ── fields ──


async def job(ctx: Context, /, *, id: JobId) -> Job | None:  # noqa: A002 - the argument's public name
    """A job, for the viewer who began it, those with its role, and admins."""
    if not ctx.viewer.is_signed_in:
        return None
    try:
        found = await job_store.read_job(ctx.table, id)
    except BadKey:
        return None
    if found is None or not (_may_see(ctx, found) or found.starter in _starters(ctx)):
        return None
    return found


async def jobs(ctx: Context, /, *, state: JobState | None = None, window: Window) -> Page[Job]:
    """Newest first."""
    ctx.with_role(Role.ADMIN)
    return await job_store.read_jobs_page(ctx.table, state, window)


def _may_see(ctx: Context, found: Job) -> bool:
    return ctx.viewer.may(Role(found.role) if found.role else Role.ADMIN)


def _starters(ctx: Context) -> list[str]:
    """The viewer as a job remembers them, by each secret, in their order: a job may be from before a rotation."""
    return [hashed.hex() for hashed in ctx.services.seal.keyed_hashes("job starter", ctx.viewer.id.encode())]


def starter_of(ctx: Context) -> str:
    """The viewer, as a job that they begin remembers them."""
    return _starters(ctx)[0]


def new_job(
    ctx: Context, kind: str, input_: Mapping[str, str], *, about: str | None = None, role: Role | None = None
) -> Job:
    """A job of the viewer's, not stored yet. Once it is, `work_soon` begins it here."""
    return Job(ctx.new_id(), kind, starter_of(ctx), ctx.now(), input=dict(input_), about=about, role=role)


def shown_job(job: Job) -> Job:
    """A job for an answer and its receipt: without its input, which is nobody's who repeats the request."""
    return replace(job, input={})


async def found_job(ctx: Context, found: Job) -> Job:
    """A job that was begun before, as the answer to this request and to its repeats."""
    shown = shown_job(found)
    await ctx.unit.store_receipt(ctx.table, shown)
    return shown


async def begin_job(ctx: Context, new: Job, *writes: Any) -> Job:
    """Store a new job with the request's receipt and other writes, all or none, and work on it in the background."""
    shown = shown_job(new)
    await job_store.begin_job(ctx.table, new, shown, ctx.unit, *writes)
    ctx.services.get(JobRunner).work_soon(new)
    return shown


async def job_soon(ctx: Context, begun: Job, work: Work) -> Job:
    """A job once it has ended, or after `answer_seconds` as far as it is: then it goes on without the request.

    Conflict if it has failed: then a repeat of the request begins another.
    """
    runner = ctx.services.get(JobRunner)
    try:
        async with asyncio.timeout(min(runner.answer_seconds, max(0.1, remaining() - 1.0))):
            ended = await runner.finish(begun, work)
    except TimeoutError:
        ended = await runner.current(begun)
    if ended.state is JobState.FAILED:
        await ctx.unit.delete_receipt(ctx.table)
    return shown_job(refuse_failed(ended))


def refuse_failed(ended: Job) -> Job:
    """The job; Conflict if it has failed."""
    if ended.state is JobState.FAILED:
        raise Conflict(ended.message)
    return ended


# ── running ──


def _may_pass(error: Exception) -> bool:
    """Whether a job can go on later: a call that the table rejects is a fault, unless no policy allows it yet."""
    return isinstance(error, DynamoError) and (not isinstance(error, Rejected) or error.is_denied)


class JobRunner:
    """Works on jobs: on those begun in this process at once, and on others that have lost their process."""

    def __init__(self, services: Services) -> None:
        self.answer_seconds = 5.0
        """How long a request waits for a job that it has begun. Its answer needs a second of the request's time."""
        self._services = services
        self._kinds: Mapping[str, Work] = {}
        self._checks = Repeated(self.take_up, lambda: uneven(CHECK_SECONDS), "unfinished jobs could not be read", _log)
        self._running: SingleFlight[str, None] = SingleFlight(shared_context)
        self._awaited: SingleFlight[str, Job] = SingleFlight(shared_context)
        self._runs: dict[str, JobRun] = {}
        self._turns = asyncio.Semaphore(MOST_AT_ONCE)

    def start(self, kinds: Mapping[str, Work]) -> None:
        """Work on jobs of these kinds from now on. Without this, jobs wait for another process."""
        self._kinds = kinds
        self._checks.start()

    def work_soon(self, begun: Job) -> None:
        """Work on a job that was just begun or seen, unless this process does so already or it is not due."""
        if begun.kind in self._kinds and begun.is_running and begun.is_due(self._services.clock()):
            self._running.begin(begun.id, partial(self._work, begun))

    async def take_up(self) -> None:
        """Take up the jobs that nobody has written for some time, or that were left in an orderly way."""
        for one in await job_store.read_unfinished_jobs(self._services.table):
            if self._services.leases.is_free(one):
                self.work_soon(one)

    def finish(self, job: Job, work: Work) -> asyncio.Future[Job]:
        """`ended`, which goes on if nobody waits for it any more."""
        return self._awaited.run(job.id, partial(self.ended, job, work))

    async def ended(self, job: Job, work: Work) -> Job:
        """A job once it has ended. This process works on it at once, or waits for the one that does.

        It takes no turn: of two jobs that wait for a third, neither would ever give it theirs.
        """
        while job.is_running:
            if self._services.leases.is_free(job):
                await self._work_now(job, work)
            seen = await job_store.read_job(self._services.table, job.id)
            if seen is None:
                break
            if seen.is_running:
                await asyncio.sleep(_PAUSE)
            job = seen
        return job

    async def current(self, job: Job) -> Job:
        """A job as far as it is now; if another process works on it, as far as that has reported."""
        run = self._runs.get(job.id)
        return run.job if run else await job_store.read_job(self._services.table, job.id) or job

    async def _work(self, seen: Job) -> None:
        async with self._turns:
            await self._work_now(seen, self._kinds[seen.kind])

    async def _work_now(self, seen: Job, work: Work) -> None:
        lease = await self._acquire(seen)
        if lease is None:
            return
        run = self._runs[seen.id] = JobRun(lease)
        try:
            await self._carry_out(run, work)
        except LeaseLost:
            _log.info("another process has taken a job", job=seen.id, kind=seen.kind)
        except asyncio.CancelledError:
            await run.lease.leave()
            raise
        finally:
            self._runs.pop(seen.id, None)

    async def _acquire(self, seen: Job) -> Held[Job] | None:
        try:
            return await self._services.leases.acquire(seen)
        except DynamoError as error:
            _log.info("a job could not be taken up", job=seen.id, reason=str(error))
            return None

    async def _carry_out(self, run: JobRun, work: Work) -> None:
        state, message = JobState.DONE, None
        try:
            message = await run.lease.renewed_during(work(self._services, run))
        except LeaseLost:
            raise
        except Refusal as refusal:
            state, message = JobState.FAILED, refusal.message
        except Exception as error:  # noqa: BLE001 - a fault of this program: repeating it would not help
            if _may_pass(error):
                _log.warning("a job was interrupted", job=run.job.id, kind=run.job.kind, reason=str(error))
                await run.lease.leave()
                return
            _log.exception("a job failed", job=run.job.id, kind=run.job.kind)
            state, message = JobState.FAILED, "An internal error, which the log describes."
        with suppress(DynamoError):  # its work is repeated then, which changes nothing
            now = self._services.clock()
            await job_store.finish_job(run.lease, state, now, message)
        _log.info("a job has ended", job=run.job.id, kind=run.job.kind, state=state, done=run.done)

    async def close(self) -> None:
        """Leave the jobs to other processes, at once."""
        await self._checks.close()
        await self._running.close()
        await self._awaited.close()
