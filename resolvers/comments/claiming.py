"""Claiming what was imported under an address that a member has confirmed: its authors become the member."""

from typing import Final

from datastore.changes.unit_of_work import UnitOfWork
from datastore.comments.changes import CommentChange
from datastore.comments.helpful import delete_mark, read_marks
from datastore.comments.records import Comment, member_pointers
from datastore.jobs.jobs import Job
from datastore.people.identities import identities_of
from datastore.people.imported import WithoutRights, authors_with, become
from datastore.people.profiles import read_profile
from datastore.refusals import Conflict
from resolvers.comments.writing import change_at, revised
from resolvers.jobs.running import JobRun, begin_job, new_job
from resolvers.people.identities import Members
from resolvers.requests.context import Context, Services

CLAIM_COMMENTS: Final = "CLAIM_COMMENTS"
_RATE: Final = "6/hour"
"""Claims that one member may begin in each process: jobs of others wait for each."""


async def claim_comments(ctx: Context, /) -> Job:
    """Begin to give the viewer what was imported under an address of theirs."""
    member = ctx.member()
    profile = await read_profile(ctx.table, member.id)
    if profile is None or not await ctx.services.get(Members).addresses_of(profile):
        raise Conflict("You have confirmed no address: sign in by email, or confirm the one in your profile, first.")
    ctx.services.rates.hit(_RATE, "comments:claim", member.id)
    job = new_job(ctx, CLAIM_COMMENTS, {"user": member.id}, about=member.id)
    return await begin_job(ctx, job)


async def claim_comments_job(services: Services, run: JobRun, *, without_rights: WithoutRights) -> str:
    """It starts over after an interruption, and passes over what is the member's already.

    Authors with rights of their own stay who they are: what moderators or an admin decided about them goes to nobody.
    """
    user = run.input["user"]
    profile = await read_profile(services.table, user)
    unit = services.unit(f"User:{user}")
    for address in [] if profile is None else sorted(await services.get(Members).addresses_of(profile)):
        for author in await authors_with(services.table, address.hash):
            if author != user and await without_rights(services.table, author, unit.now) is not None:
                await _give_comments(services, run, author, user, unit)
                services.get(Members).forget(await become(services.table, author, user, unit, without_rights))
                services.profiles.forget(author)
                services.profiles.forget(user)
    return f"Comments claimed: {run.done:,}."


async def _give_comments(services: Services, run: JobRun, author: str, user: str, unit: UnitOfWork) -> None:
    """Nothing of an author who has joined: a member who has shown that the address was theirs, and stays one.

    One who joins meanwhile stays one too, without the comments that were given by then. A member who is erased
    meanwhile gets nothing more: a long claim may still run when the erasure has looked for the last time.
    """
    profile = await read_profile(services.table, author)
    if profile is None or any(each.last_used_at for each in await identities_of(services.table, profile)):
        return

    def given(old: Comment) -> CommentChange | None:
        return CommentChange(old, revised(old, author=user)) if old.author == author else None

    async for pointer in member_pointers(services.table, author):
        if await read_profile(services.table, user) is None:
            return
        for mark in (await read_marks(services.table, [(user, pointer.product, pointer.ulid)])).values():
            await delete_mark(services.table, mark)  # nobody marks their own
        run.done += await change_at(services, pointer, unit, given)
