"""Erasing a member: their profile and their ways to sign in first, and then, as a job, what else is theirs.

With REMOVE every total and rank is as if the member had never been there; with ANONYMISE they stay, and what others see
belongs to a former member, whose id leads to nobody. Either way nothing else of the member's is left: no address,
session, subscription, card, list or league.

Profile, identities and roles are erased in the transaction of the answer. Processes know identities and sessions for
half a minute, and look at open sockets every half minute, so each refuses the member within a minute. What they have
written until then is erased two minutes after the answer, when the job is done once more; so is what an index showed
late. Each step may be repeated, so a job that was interrupted starts over.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from datastore.changes.occurrences import Kind
from datastore.dynamo import optimistic
from datastore.jobs import jobs as job_store
from datastore.jobs.jobs import Job, later_job
from datastore.members import suspensions as suspension_store
from datastore.people.identities import IdentityKey, address_of_nobody, erase_profile, erase_surplus
from datastore.people.member_items import clear_member
from datastore.people.profiles import Profile
from datastore.refusals import InvalidInput, NotAllowed
from datastore.whole import layout
from resolvers.comments import member_data as comments
from resolvers.jobs.running import JobRun, begin_job, new_job
from resolvers.journal import occurrences as journal
from resolvers.members import suspensions as members
from resolvers.members.suspensions import LONGEST, refuse_admin
from resolvers.people.identities import Members
from resolvers.people.member_data import Contributions, Erasure, MemberData, Part, TakingBack
from resolvers.people.visibility import load_member
from resolvers.pickem import member_data as pickem
from resolvers.requests.context import Context, Role, Services, UserId
from resolvers.vocabulary import member_data as vocabulary
from resolvers.voting import member_data as voting

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
    occurred = ctx.unit.occurred(Kind.MEMBER_TAKEN_BACK, f"User:{member.user}")
    return await begin_job(ctx, new_job(ctx, TAKE_BACK, wanted.as_input(), role=Role.MODERATOR), *occurred)


async def take_back_job(services: Services, run: JobRun) -> str:
    wanted = TakingBack.of_input(run.input)
    unit = services.unit(wanted.actor)
    for part in PARTS:
        if wanted.parts & part.contributions:
            await part.take_back(services, run, wanted, unit)
    return f"Contributions taken back: {run.done:,}."


# ── erasing ──

ERASE_MEMBER = "ERASE_MEMBER"
AGAIN_AFTER = timedelta(minutes=2)
"""A process refuses an erased member within a minute, and a request of theirs ends within another."""


async def erase_member(ctx: Context, /, *, user: UserId, contributions: Contributions) -> Job:
    """Begin to erase a member; for themselves and admins."""
    viewer = ctx.signed_in()
    themselves = viewer.is_user(user)
    if not (viewer.may(Role.ADMIN) or themselves):
        raise NotAllowed("Only an admin can erase another member.", path=("input", "user"))

    async def begin(member: Profile) -> Job:
        if not themselves:
            await refuse_admin(ctx, member, "Admins can be erased only by themselves.")
        return await _begin(ctx, member, contributions)

    return await optimistic(lambda: load_member(ctx, user), begin)


async def _begin(ctx: Context, member: Profile, contributions: Contributions) -> Job:
    job = new_job(ctx, ERASE_MEMBER, {"user": member.user, "contributions": contributions.value})
    again = later_job(job, ERASE_MEMBER, job.started_at + AGAIN_AFTER, "Waits until every process refuses the member.")
    now, refused_until = ctx.now(), await _refused_until(ctx, member.user)
    surplus = await erase_surplus(ctx.table, member, now, refused_until)
    address = await address_of_nobody(ctx.table, member, now)
    erased = erase_profile(member, now, refused_until, address, surplus)
    occurred = ctx.unit.occurred(Kind.MEMBER_ERASED, f"User:{member.user}")
    roles = suspension_store.no_roles(member.user)
    answer = await begin_job(ctx, job, job_store.job_put(again), *erased, roles, *occurred)
    ctx.services.get(Members).forget(map(IdentityKey.parse, member.identities))
    ctx.services.profiles.forget(member.user)
    return answer


async def _refused_until(ctx: Context, user: str) -> datetime:
    """When every token has expired, and a suspension would have ended."""
    now = ctx.now()
    ends = now + timedelta(days=ctx.services.policy.erased_days)
    suspended = (await suspension_store.read_suspensions(ctx.table, [user])).get(user)
    return ends if suspended is None else max(ends, suspended.until or now + LONGEST)


# ── the job ──


async def erase_member_job(services: Services, run: JobRun) -> str:
    erasure = Erasure(services, run)
    run.done = 0
    for part in PARTS:
        await part.erase(erasure)
    await clear_member(services.table, erasure.user, [part.items for part in PARTS], anonymised=erasure.anonymise)
    outcome = "made anonymous" if erasure.anonymise else f"removed: {run.done:,}"
    return f"The member is erased; contributions {outcome}."
