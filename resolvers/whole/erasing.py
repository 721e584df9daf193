"""Erasing a member: their tombstone first, and then, as one job, everything that names them.

With REMOVE every total and rank is as if the member had never been there; with ANONYMISE they stay, and what others see
belongs to a former member whose id says nothing. Either way nothing of the member's own is left: no profile, address,
subscription, card, list, league or receipt, and no id in the journal.

The tombstone and the job are stored in one transaction. From then on no transaction of the member's is committed, and
none about them, so what the job reads consistently is all there is. Indexes are behind for a moment: what only they
show is erased once they are expected to show it. An hour later another job erases the member once more, for what an
index showed later than that. Each step may be repeated, so a job that was interrupted starts over.

A suspension names the member, so it is deleted; the tombstone stays at least until it would have ended.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from datastore.changes.occurrences import Kind
from datastore.changes.unit_of_work import LIFETIME, Tombstone
from datastore.dynamo import key_text, optimistic
from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import Job, JobState, later_job
from datastore.members import suspensions as suspension_store
from datastore.members.member_items import clear_member, delete_profile
from datastore.people.profiles import FORMER_PREFIX, member_shard
from datastore.pickem.gates import gate_number
from datastore.refusals import InvalidInput, NotAllowed
from datastore.whole import layout
from resolvers.comments import member_data as comments
from resolvers.jobs.running import JobRun, JobRunner, begin_job_once, new_job
from resolvers.journal import occurrences as journal
from resolvers.members import suspensions as members
from resolvers.members.suspensions import LONGEST, refuse_admin
from resolvers.people.member_data import (
    ERASE_MEMBER,
    ERASE_MEMBER_AGAIN,
    Contributions,
    Erasure,
    MemberData,
    Part,
    TakingBack,
)
from resolvers.people.visibility import load_member
from resolvers.pickem import member_data as pickem
from resolvers.requests.context import Context, Role, Services, UserId
from resolvers.vocabulary import member_data as vocabulary
from resolvers.voting import voiding as voting

PARTS: Sequence[MemberData] = (
    pickem.MEMBER_DATA,
    voting.MEMBER_DATA,
    comments.MEMBER_DATA,
    vocabulary.MEMBER_DATA,
    members.MEMBER_DATA,
    journal.MEMBER_DATA,
    MemberData(layout.MEMBER_ITEMS),
)


# ── taking back ──
# Taking back what a member contributed, as one job: every total and rank is as if it had never been there.
#
# Each part takes back one contribution in one transaction with everything that it counted towards. Votes are voided,
# comments rejected, predictions, quiz results and sentences removed. A job that is interrupted starts over and passes
# over what is gone.

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


# ── erasing ──

INDEX_SECONDS = 10.0
"""For how long an index is expected to be behind the tombstone's transaction at most."""
LATEST_INDEX = LIFETIME
"""For how long it may be: boards and events that no index shows are found for as long."""


async def erase_member(ctx: Context, /, *, user: UserId, contributions: Contributions) -> Job:
    """Begin to erase a member; for themselves and admins. Erasing again answers with the same job."""
    viewer = ctx.signed_in()
    themselves = viewer.is_user(user)
    if not (viewer.may(Role.ADMIN) or themselves):
        raise NotAllowed("Only an admin can erase another member.", path=("input", "user"))

    async def begin(earlier: Tombstone | None) -> Job:
        job = None if earlier is None else await job_store.read_job(ctx.table, earlier.job)
        if job is not None and job.state is not JobState.FAILED:
            return job
        if earlier is None:
            member = await load_member(ctx, user)
            if not themselves:
                await refuse_admin(ctx, member, "Admins can be erased only by themselves.")
        return await _begin(ctx, user, contributions, earlier)

    read = partial(ctx.services.tombstones.read, ctx.table, key_text(user), ctx.now())
    return await optimistic(read, begin, idempotent=True)


async def _begin(ctx: Context, user: str, contributions: Contributions, earlier: Tombstone | None) -> Job:
    job = new_job(ctx, ERASE_MEMBER, {"user": user, "contributions": contributions.value, "alias": new_alias(user)})
    until = await _refused_until(ctx, user, earlier)
    tombstones = ctx.services.tombstones.puts(user, until, job.id, ctx.now(), earlier)
    # A transaction names each item once, so it cannot check the tombstone that it writes.
    unchecked = replace(ctx.unit, tombstones=None)
    occurred = unchecked.occurred(Kind.MEMBER_ERASED, f"User:{user}", about=user)
    if ctx.viewer.is_user(user):
        ctx.unit = unchecked
    # The receipt is another's, and nothing finds it to erase it: it does not name the member.
    await begin_job_once(ctx, job, replace(job, input={}), *tombstones, *occurred)
    ctx.services.profiles.forget(user)
    return job


async def _refused_until(ctx: Context, user: str, earlier: Tombstone | None) -> datetime:
    """When every token has expired, and a suspension would have ended, of which an earlier erasure may know alone."""
    now = ctx.now()
    ends = [now + timedelta(days=ctx.services.policy.erased_days)]
    if earlier is not None:
        ends.append(earlier.expires)
    suspended = (await suspension_store.read_suspensions(ctx.table, [user])).get(user)
    if suspended is not None:
        ends.append(suspended.until or now + LONGEST)
    return max(ends)


def new_alias(user: str) -> str:
    """An id for what a former member contributed, in their shards, so that counters stay where they are."""
    while True:
        alias = f"{FORMER_PREFIX}{secrets.token_hex(8)}"
        if (member_shard(alias), gate_number(alias)) == (member_shard(user), gate_number(user)):
            return alias


# ── the job ──


async def erase_member_job(services: Services, run: JobRun) -> str:
    erasure = Erasure(services, run)
    run.done = 0
    await delete_profile(services.table, erasure.user)
    services.profiles.forget(erasure.user)
    for part in PARTS:
        await part.erase(erasure)
    shown_at = run.job.started_at + timedelta(seconds=INDEX_SECONDS)
    await asyncio.sleep(min((shown_at - services.clock()).total_seconds(), INDEX_SECONDS))  # the clock may be corrected
    for part in PARTS:
        await part.erase_listed(erasure)
    await clear_member(services.table, erasure.user)
    if run.job.kind == ERASE_MEMBER:
        await _begin_again(services, run.job)
    outcome = "removed" if erasure.alias is None else "made anonymous"
    return f"The member is erased; contributions {outcome}: {run.done:,}."


async def _begin_again(services: Services, job: Job) -> None:
    message = "Waits until every index shows what was written before a member was erased."
    again = later_job(job, ERASE_MEMBER_AGAIN, job.started_at + LATEST_INDEX, message)
    services.get(JobRunner).work_soon(await job_store.begin_job(services.table, again))
