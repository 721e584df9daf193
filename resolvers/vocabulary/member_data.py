"""Taking back and erasing a member's results; erasing their subscriptions and private lists."""

from datastore.changes.unit_of_work import UnitOfWork
from datastore.vocabulary import member_items
from datastore.vocabulary.learning import QuizResult, Sentence
from datastore.vocabulary.member_items import MEMBER_ITEMS, delete_private_lists, end_subscriptions
from resolvers.jobs.running import JobRun
from resolvers.people.member_data import Erasure, MemberData, Part, TakingBack
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
    table, user, unit = erasure.table, erasure.user, erasure.unit
    if not erasure.anonymise:
        async for removed in member_items.remove_results(table, user, lambda _: True, unit):
            erasure.services.get(QuizLeaderboards).discard(removed)
            erasure.run.done += 1
    await end_subscriptions(table, user, unit)
    await delete_private_lists(table, user, unit)


MEMBER_DATA = MemberData(MEMBER_ITEMS, frozenset({Part.QUIZZES, Part.SENTENCES}), _take_back, _erase)
