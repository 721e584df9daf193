"""Jobs: work that continues in the background; and how far it is behind."""

from datetime import datetime

import strawberry

from datastore.jobs import jobs as job_store
from resolvers.jobs import running
from resolvers.whole import lag
from schema.framework.declarations import Node, connection, described, enum, field, record_type

JobState = job_store.JobState

enum(
    JobState,
    "The state of a job.",
    RUNNING="It has not ended. A process works on it, or one soon will.",
    DONE="All of it was done.",
    FAILED="It ended early; `message` says why.",
)


@record_type(
    job_store.Job,
    "Work that continues in the background and across restarts. It is kept until 30 days after it has ended.",
)
class Job(Node):
    kind: str = described("What it does.")
    state: JobState = described("Its state.")
    done: int = described("How many things it has done; a few seconds old while it runs.")
    total: int | None = described("How many there are to do, if that is known.")
    started_at: datetime = described("When it started; ahead if it waits for its time.")
    finished_at: datetime | None = described("When it ended.")
    message: str | None = described("Its result, or why it failed, for people.")


JobConnection = connection(Job, "A page of jobs, newest first.", edge="A job in a list.")


@record_type(lag.Lag, "How far the service is behind.")
class Lag:
    settling_seconds: float = described("For how long the oldest vote that is not in the results yet has waited.")
    oldest_job_seconds: float = described("For how long the oldest unfinished job has been due.")


@strawberry.type
class JobsQuery:
    job: Job | None = field(
        running.job,
        "A job, for the member who began it and for admins. Jobs of scoring and unscoring, of finding, voiding and "
        "restoring voters, and of imports are for editors too, those of taking back for moderators.",
        id="The job's id.",
    )
    jobs: JobConnection = field(
        running.jobs, "Jobs, newest first. The newest may be missing for a moment. For admins.", state="Only these."
    )
    lag: Lag = field(lag.lag, "How far the service is behind. For admins.")
