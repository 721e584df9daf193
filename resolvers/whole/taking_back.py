"""Taking back what a member contributed, as one job: every total and rank is as if it had never been there.

Each part takes back one contribution in one transaction with everything that it counted towards. Votes are voided,
comments rejected, predictions, quiz results and sentences removed. A job that is interrupted starts over and passes
over what is gone.
"""

from __future__ import annotations

from datetime import datetime

from datastore.changes.kinds import Kind
from datastore.jobs.jobs import Job
from datastore.refusals import InvalidInput
from resolvers.jobs.running import JobRun, begin_job_once, new_job
from resolvers.members.suspensions import refuse_admin
from resolvers.people.member_data import Part, TakingBack
from resolvers.people.visibility import load_member
from resolvers.requests.context import Context, Services, UserId
from resolvers.requests.viewer import Role
from resolvers.whole.parts import PARTS

TAKE_BACK = "TAKE_BACK"
CONTRIBUTIONS = tuple(part for part in Part if any(part in one.contributions for one in PARTS))
"""The parts that others see or that count towards something."""


async def take_back(ctx: Context, /, *, user: UserId, since: datetime | None = None, parts: list[Part]) -> Job:
    """Begin to take back what a member contributed since a time."""
    ctx.with_role(Role.MODERATOR)
    if not parts or set(parts) - set(CONTRIBUTIONS):
        raise InvalidInput(f"`parts` names one or more of {', '.join(CONTRIBUTIONS)}.", path=("input", "parts"))
    if since is not None and since > ctx.now():
        raise InvalidInput("Name a time in the past.", path=("input", "since"))
    member = await load_member(ctx, user)
    if not ctx.viewer.may(Role.ADMIN):
        await refuse_admin(ctx, member, "Only an admin can take back an admin's contributions.")
    wanted = TakingBack(member.user, since, frozenset(parts), ctx.unit.actor)
    occurred = ctx.unit.occurred(Kind.MEMBER_TAKEN_BACK, f"User:{member.user}", about=member.user)
    job = new_job(ctx, TAKE_BACK, wanted.as_input())
    await begin_job_once(ctx, job, job, *occurred)
    return job


async def take_back_job(services: Services, run: JobRun) -> str:
    wanted = TakingBack.of_input(run.input)
    unit = services.unit(wanted.actor)
    for part in PARTS:
        if wanted.parts & part.contributions:
            await part.take_back(services, run, wanted, unit)
    return f"Contributions taken back: {run.done:,}."
