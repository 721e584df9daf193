"""Taking back and erasing a member's results; erasing their subscriptions and private lists."""

from __future__ import annotations

from datastore.changes.unit_of_work import UnitOfWork
from datastore.vocabulary import member_items
from datastore.vocabulary.learning import QuizResult, Sentence
from datastore.vocabulary.member_items import MEMBER_ITEMS, delete_private_lists, end_subscriptions, move_results
from resolvers.jobs.running import JobRun
from resolvers.people.member_data import (
    Erasure,
    MemberData,
    Part,
    TakingBack,
)
from resolvers.requests.context import Services
from resolvers.vocabulary.quiz_leaderboard import QuizLeaderboards


async def _take_back(services: Services, run: JobRun, wanted: TakingBack, unit: UnitOfWork) -> None:
    def is_wanted(result: QuizResult | Sentence) -> bool:
        if isinstance(result, QuizResult):
            return Part.QUIZZES in wanted.parts and wanted.is_recent(result.submitted_at)
        return Part.SENTENCES in wanted.parts and wanted.is_recent(result.created_at)

    async for removed in member_items.remove_results(services.table, wanted.user, is_wanted, unit):
        services.get(QuizLeaderboards).discard(removed)
        run.done += 1


async def _erase(erasure: Erasure) -> None:
    table, run, user, silent = erasure.table, erasure.run, erasure.user, erasure.silent
    leaderboards = erasure.services.get(QuizLeaderboards)
    if erasure.alias is None:
        async for removed in member_items.remove_results(table, user, lambda _: True, silent):
            leaderboards.discard(removed)
            run.done += 1
    else:
        async for old, new in move_results(table, user, erasure.alias):
            leaderboards.move(old, new)
            run.done += 1
    await end_subscriptions(table, user, silent)


async def _erase_listed(erasure: Erasure) -> None:
    await delete_private_lists(erasure.table, erasure.user, erasure.silent)


MEMBER_DATA = MemberData(MEMBER_ITEMS, frozenset({Part.QUIZZES, Part.SENTENCES}), _take_back, _erase, _erase_listed)
