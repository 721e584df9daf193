"""Helpers for the tests of jobs: working on one, waiting for one, and the settings of a process that works on them."""

from collections.abc import Mapping

from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import Job
from datastore.jobs.leases import Leases
from resolvers.jobs.running import JobRun, JobRunner, Work
from resolvers.requests.context import Services
from resolvers.whole.jobs import JOB_KINDS
from tests.client import Client
from tests.waiting import until

JOB_QUERY = "query ($id: ID!) { job(id: $id) { id kind state done total startedAt finishedAt message } }"
SECRET = "a secret that is long enough to be one in tests"
WRITES = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem")


async def work_on(services: Services, unfinished: Job, kinds: Mapping[str, Work] = JOB_KINDS) -> Job:
    """The job, as it is after this process has worked on it to its end."""
    current = await job_store.read_job(services.table, unfinished.id)
    assert current is not None
    await services.get(JobRunner)._work_now(current, kinds[current.kind])
    job = await job_store.read_job(services.table, unfinished.id)
    assert job is not None
    return job


async def completed(services: Services, unfinished: Job) -> Job:
    """The job once it has ended. This process works on it, as soon as no other one does.

    A killed process may still acquire it: the engine may have its last write yet to apply.
    """

    async def ended_job() -> Job | None:
        job = await work_on(services, unfinished)
        return None if job.is_running else job

    job: Job = await until(ended_job, "the job has ended")
    return job


async def run_of(services: Services, unfinished: Job) -> JobRun:
    """The job as another process works on it, which may be killed."""
    lease = await Leases(services.table).acquire(unfinished)
    assert lease is not None
    return JobRun(lease)


async def ended(client: Client, id_: str) -> dict[str, object]:
    """The job, once it has ended."""

    async def job() -> dict[str, object] | None:
        shown: dict[str, object] = await client.ask(JOB_QUERY, id=id_)
        return None if shown["state"] == "RUNNING" else shown

    return dict(await until(job, "the job has ended"))
