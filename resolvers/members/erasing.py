"""Erasing a member: their tombstone first, and then, as one job, everything that names them.

With REMOVE every total and rank is as if the member had never been there; with ANONYMISE they stay, and what others see
belongs to a former member whose id says nothing. Either way nothing of the member's own is left: no profile, address,
subscription, card, list, league or receipt, and no id in the journal.

The tombstone and the job are stored in one transaction. From then on no transaction of the member's is committed, and
none about them, so what the job reads consistently is all there is. Indexes are behind for a moment: what only they
show is looked for again until that moment has passed and nothing is found. An hour later another job erases the member
once more, for what an index showed later than that. Each step may be repeated, so a job that was interrupted starts
over; it remembers only which events to count again.

A suspension names the member, so it is deleted; the tombstone stays at least until it would have ended.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

import orjson

from datastore import comments as comments_store
from datastore import erasing as erasing_store
from datastore import jobs as jobs_store
from datastore import journal as journal_store
from datastore import pickem as pickem_store
from datastore import suspensions as suspensions_store
from datastore import vocabulary as vocabulary_store
from datastore import voting as voting_store
from datastore.comments import Comment, CommentChange
from datastore.comments.erasing import forget_reporter
from datastore.comments.pointers import Pointer, member_pointers
from datastore.created import LIFETIME
from datastore.dynamo import key_text, optimistic
from datastore.jobs import Job, JobState, later_job
from datastore.journal import Kind
from datastore.people import member_shard
from datastore.pickem.erasing import clear_standing, leave_every_league, move_predictions
from datastore.pickem.gates import gate_number
from datastore.pickem.removal import predictions_in
from datastore.pickem.standings import recount_season
from datastore.receipts import Once, delete_receipts
from datastore.refusals import NotAllowed
from datastore.vocabulary.erasing import delete_private_lists, end_subscriptions, move_results
from datastore.voting.erasing import clear_voter, move_votes
from resolvers.comments.writing import revised, store_change
from resolvers.context import Context, UserId
from resolvers.jobs.running import JobRun, JobRunner, begin_job_once, hashes_about, new_job
from resolvers.members.suspensions import LONGEST, refuse_admin
from resolvers.members.taking_back import events_to_count_again
from resolvers.members.visibility import load_member
from resolvers.pickem.removing import count_again, remove_predictions
from resolvers.viewer import FORMER_PREFIX, Role
from resolvers.vocabulary.quiz_leaderboard import QuizLeaderboards
from resolvers.voting.voiding import void_votes_since

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from datastore.pickem import Event
    from datastore.tombstones import Tombstone
    from resolvers.context import Services

ERASE_MEMBER = "ERASE_MEMBER"
ERASE_MEMBER_AGAIN = "ERASE_MEMBER_AGAIN"
INDEX_SECONDS = 10.0
"""For how long an index is expected to be behind the tombstone's transaction at most."""
LATEST_INDEX = LIFETIME
"""For how long it may be: boards and events that no index shows are found for as long."""
_PAUSE = 0.2


class Contributions(StrEnum):
    """What becomes of what a member contributed."""

    REMOVE = "REMOVE"
    ANONYMISE = "ANONYMISE"


async def erase_member(ctx: Context, /, *, user: UserId, contributions: Contributions) -> Job:
    """Begin to erase a member; for themselves and admins. Erasing again answers with the same job."""
    viewer = ctx.signed_in()
    themselves = viewer.is_user(user)
    if not (viewer.may(Role.ADMIN) or themselves):
        raise NotAllowed("Only an admin can erase another member.", path=("input", "user"))

    async def begin(earlier: Tombstone | None) -> Job:
        job = None if earlier is None else await jobs_store.read_job(ctx.table, earlier.job)
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
    unchecked = replace(ctx.once, tombstones=None)
    occurred = unchecked.occurred(Kind.MEMBER_ERASED, f"User:{user}", about=user)
    if ctx.viewer.is_user(user):
        ctx.once = unchecked
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
    suspended = (await suspensions_store.read_suspensions(ctx.table, [user])).get(user)
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
    await _erase(services, run, run.job.started_at + timedelta(seconds=INDEX_SECONDS))
    again = later_job(
        run.job,
        ERASE_MEMBER_AGAIN,
        run.job.started_at + LATEST_INDEX,
        "Waits until every index shows what was written before a member was erased.",
    )
    services.get(JobRunner).work_soon(await jobs_store.begin_job(services.table, again))
    return f"The member is erased; {_contributions(run)}."


async def erase_member_again_job(services: Services, run: JobRun) -> str:
    await _erase(services, run, run.job.started_at)
    return f"Looked for what indexes had not shown; {_contributions(run)}."


def _contributions(run: JobRun) -> str:
    is_removed = run.input["contributions"] == Contributions.REMOVE
    return f"contributions {'removed' if is_removed else 'made anonymous'}: {run.done:,}"


async def _erase(services: Services, run: JobRun, shown_at: datetime) -> None:
    """Erase everything. What only indexes show is looked for until a time, and until nothing is found."""
    member = _Member(services, run)
    run.done = 0
    await erasing_store.delete_profile(services.table, member.user)
    services.profiles.forget(member.user)
    await member.erase_votes()
    await member.erase_comments()
    await member.erase_results()
    await member.erase_predictions()
    await leave_every_league(services.table, member.user, member.told)
    await end_subscriptions(services.table, member.user, member.silent)
    await member.erase_what_indexes_show(shown_at)
    await erasing_store.clear_member(services.table, member.user)


class _Member:
    """A member who is being erased."""

    def __init__(self, services: Services, run: JobRun) -> None:
        self._services = services
        self._table = services.table
        self._run = run
        self.user = run.input["user"]
        self.alias = run.input["alias"] if run.input["contributions"] == Contributions.ANONYMISE else None
        # Neither checks tombstones. Objects with the member's id are not recorded, since nothing may name them.
        self.silent = Once.unkeyed(services.clock())
        self.told = Once.unkeyed(services.clock(), services.journal)

    # ── votes ──

    async def erase_votes(self) -> None:
        if self.alias is None:
            self._run.done += await void_votes_since(self._services, self.user, None, self.silent)
        for board in await voting_store.every_slug(self._table):
            if self.alias is not None:
                self._run.done += await move_votes(self._table, self.user, board, self.alias)
            await clear_voter(self._table, self.user, board)

    # ── comments ──

    async def erase_comments(self) -> None:
        async for pointer in member_pointers(self._table, self.user):
            self._run.done += await self._erase_comment(pointer)

    async def _erase_comment(self, pointer: Pointer) -> bool:
        """Whether this call did it."""

        async def erase(old: Comment | None) -> bool:
            if old is None or old.author != self.user:
                return False
            change = CommentChange(old, None if self.alias is None else revised(old, author=self.alias))
            once = self.told if self.alias is None else self.silent
            await store_change(self._services, once, None, change)
            return True

        read = partial(comments_store.read_comment, self._table, pointer.product, pointer.ulid)
        return await optimistic(read, erase, idempotent=True)

    # ── results ──

    async def erase_results(self) -> None:
        leaderboards = self._services.get(QuizLeaderboards)
        if self.alias is not None:
            async for old, new in move_results(self._table, self.user, self.alias):
                leaderboards.move(old, new)
                self._run.done += 1
            return
        async for removed in vocabulary_store.remove_results(self._table, self.user, lambda _: True, self.silent):
            leaderboards.discard(removed)
            self._run.done += 1

    # ── predictions ──

    async def erase_predictions(self) -> None:
        events = await pickem_store.every_event(self._table)
        await self._finish_changes(events)
        scored = {event.id: event.scored or 0 for event in events}

        async def announce(affected: list[str]) -> None:
            await self._announce({event: scored[event] for event in affected} | self._announced)

        if self.alias is None:
            removed = await remove_predictions(self._services, self.user, None, self.silent, announce)
            self._run.done += removed
        else:
            await self._move_predictions(events, announce, self.alias)
        for event_id, generation in self._announced.items():
            if self.alias is None or generation is None or await self._was_scored(event_id, generation):
                await count_again(self._services, event_id, self.silent)
        for season in {event.season for event in events}:
            await clear_standing(self._table, self.user, season)

    async def _finish_changes(self, events: Sequence[Event]) -> None:
        """An event says who began a change of it, until the change is finished."""
        for event in events:
            if event.narrowing is not None and event.narrowing.actor == f"User:{self.user}":
                with suppress(pickem_store.VersionConflict):  # somebody else has finished it
                    await pickem_store.finish_narrowing(self._table, event, self._services.once())

    @property
    def _announced(self) -> dict[str, int | None]:
        """The events to count again. One with a generation, whose prediction was moved: only if scored since that."""
        announced: dict[str, int | None] = orjson.loads(self._run.place or "{}")
        return announced

    async def _announce(self, events: Mapping[str, int | None]) -> None:
        self._run.place = orjson.dumps(events).decode()
        await self._run.report()

    async def _move_predictions(
        self, events: Sequence[Event], announce: Callable[[list[str]], Awaitable[None]], alias: str
    ) -> None:
        await announce([event.id async for event, _ in predictions_in(self._table, self.user, events)])
        affected = [event for event in events if event.id in self._announced]
        for season in sorted({event.season for event in affected}):
            of_season = [event for event in affected if event.season == season]
            self._run.done += await move_predictions(self._table, self.user, season, of_season, alias)
            await recount_season(self._table, season)  # a count that began before may have seen the standing twice

    async def _was_scored(self, event_id: str, generation: int) -> bool:
        """Whether a scoring ended while the event's prediction was moved, and so saw it twice or not at all.

        One that is under way notices by itself. A corrected result that nobody has scored yet waits for its scoring.
        """
        event = (await pickem_store.read_events(self._table, [event_id])).get(event_id)
        return event is not None and event.scored == event.generation != generation

    # ── what is found by indexes ──

    async def erase_what_indexes_show(self, shown_at: datetime) -> None:
        """Repeat until a pass finds nothing and the indexes show what was committed before the tombstone."""
        loop, left = asyncio.get_running_loop(), (shown_at - self._services.clock()).total_seconds()
        until = loop.time() + min(left, INDEX_SECONDS)  # not longer if the clock is corrected
        while True:
            found = await self._erase_shown()
            wait = until - loop.time()
            if not found and wait <= 0:
                return
            await asyncio.sleep(wait if wait > 0 else _PAUSE)

    async def _erase_shown(self) -> int:
        services, table, user = self._services, self._table, self.user
        await erasing_store.delete_exports(table, hashes_about(services, user), services.clock())
        return (
            await forget_reporter(table, user, self.alias)
            + await delete_private_lists(table, user, self.silent)
            + await delete_receipts(table, user, services.tombstones.hashes(user))
            + await self._end_jobs()
            + await journal_store.forget_member(table, user)
        )

    async def _end_jobs(self) -> int:
        """End the jobs that name the member, and count the events from which one has removed predictions."""
        left: set[str] = set()

        async def before_ending(job: Job) -> None:
            if events := events_to_count_again(job):
                left.update(events)
                await self._announce({**self._announced, **dict.fromkeys(events)})

        now = self._services.clock()
        found = await jobs_store.end_jobs_naming(
            self._table, self._services.leases, self.user, self._run.job.id, now, before_ending
        )
        for event in sorted(left):
            await count_again(self._services, event, self.silent)
        return found
