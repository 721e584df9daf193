"""Taking back what a member contributed, as one job: every total and rank is as if it had never been there.

Each part takes back one contribution in one transaction with everything that it counted towards. Votes are voided,
comments rejected, predictions, quiz results and sentences removed. Then events that had given points are scored again.
A job that is interrupted starts over and passes over what is gone; only which events to count again is remembered, and
that before the first of their predictions is removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import orjson

from datastore import vocabulary as vocabulary_store
from datastore.dynamo import iso
from datastore.jobs import Job
from datastore.journal import Kind
from datastore.receipts import Once
from datastore.refusals import InvalidInput
from datastore.tombstones import MemberErased
from datastore.vocabulary import QuizResult, Sentence
from resolvers.comments.withdrawing import withdraw_comments
from resolvers.context import Context, UserId
from resolvers.jobs.running import JobRun, begin_job_once, new_job
from resolvers.members.suspensions import refuse_admin
from resolvers.members.visibility import load_member
from resolvers.pickem.removing import count_again, remove_predictions
from resolvers.viewer import Role
from resolvers.vocabulary.quiz_leaderboard import QuizLeaderboards
from resolvers.voting.voiding import void_votes_since

if TYPE_CHECKING:
    from resolvers.context import Services

TAKE_BACK = "TAKE_BACK"


class Part(StrEnum):
    """A part of what is stored about a member."""

    VOTES = "VOTES"
    PREDICTIONS = "PREDICTIONS"
    COMMENTS = "COMMENTS"
    QUIZZES = "QUIZZES"
    SENTENCES = "SENTENCES"
    SUBSCRIPTIONS = "SUBSCRIPTIONS"
    PROFILE = "PROFILE"


CONTRIBUTIONS = (Part.VOTES, Part.PREDICTIONS, Part.COMMENTS, Part.QUIZZES, Part.SENTENCES)
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
    wanted = TakingBack(member.user, since, frozenset(parts), ctx.once.actor)
    occurred = ctx.once.occurred(Kind.MEMBER_TAKEN_BACK, f"User:{member.user}", about=member.user)
    job = new_job(ctx, TAKE_BACK, wanted.as_input())
    await begin_job_once(ctx, job, job, *occurred)
    return job


@dataclass(frozen=True, slots=True)
class TakingBack:
    """What to take back of whom, and who wants it."""

    user: str
    since: datetime | None
    parts: frozenset[Part]
    actor: str | None

    def as_input(self) -> dict[str, str]:
        since = "" if self.since is None else iso(self.since)
        return {"user": self.user, "since": since, "parts": " ".join(sorted(self.parts)), "actor": self.actor or ""}

    @classmethod
    def of_input(cls, stored: Mapping[str, str]) -> TakingBack:
        since = datetime.fromisoformat(stored["since"]) if stored["since"] else None
        return cls(stored["user"], since, frozenset(map(Part, stored["parts"].split())), stored["actor"] or None)

    def is_recent(self, moment: datetime) -> bool:
        return self.since is None or moment >= self.since


async def take_back_job(services: Services, run: JobRun) -> str:
    wanted = TakingBack.of_input(run.input)
    once = services.once(wanted.actor)
    try:
        await _take_back_parts(services, run, wanted, once)
        await _count_events_again(services, run.job, once)
    except MemberErased:  # the member, or who wanted it: what was removed until then counts no more all the same
        await _count_events_again(services, run.job, services.once(None))
        raise
    return f"Contributions taken back: {run.done:,}."


async def _take_back_parts(services: Services, run: JobRun, wanted: TakingBack, once: Once) -> None:
    async def announce(affected: list[str]) -> None:
        run.place = orjson.dumps(sorted({*events_to_count_again(run.job), *affected})).decode()
        await run.report()

    if Part.VOTES in wanted.parts:
        run.done += await void_votes_since(services, wanted.user, wanted.since, once)
    if Part.COMMENTS in wanted.parts:
        run.done += await withdraw_comments(services, wanted.user, wanted.since, once)
    if wanted.parts & {Part.QUIZZES, Part.SENTENCES}:
        await _remove_results(services, run, wanted, once)
    if Part.PREDICTIONS in wanted.parts:
        run.done += await remove_predictions(services, wanted.user, wanted.since, once, announce)


def events_to_count_again(job: Job) -> list[str]:
    """The events of which a job may have removed predictions; none if it is another kind of job."""
    events: list[str] = orjson.loads(job.place) if job.kind == TAKE_BACK and job.place else []
    return events


async def _count_events_again(services: Services, job: Job, once: Once) -> None:
    for event in events_to_count_again(job):
        await count_again(services, event, once)


async def _remove_results(services: Services, run: JobRun, wanted: TakingBack, once: Once) -> None:
    def is_wanted(result: QuizResult | Sentence) -> bool:
        if isinstance(result, QuizResult):
            return Part.QUIZZES in wanted.parts and wanted.is_recent(result.submitted_at)
        return Part.SENTENCES in wanted.parts and wanted.is_recent(result.created_at)

    async for removed in vocabulary_store.remove_results(services.table, wanted.user, is_wanted, once):
        services.get(QuizLeaderboards).discard(removed)
        run.done += 1
