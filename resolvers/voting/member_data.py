"""Taking back and erasing a member's votes."""

from datastore.changes.unit_of_work import UnitOfWork
from datastore.voting import boards
from datastore.voting.member_items import MEMBER_ITEMS, clear_addresses, clear_voter
from resolvers.jobs.running import JobRun
from resolvers.people.member_data import Erasure, MemberData, Part, TakingBack
from resolvers.requests.context import Services
from resolvers.voting.voiding import void_votes_since


async def _take_back(services: Services, run: JobRun, wanted: TakingBack, unit: UnitOfWork) -> None:
    run.done += await void_votes_since(services, wanted.user, wanted.since, unit)


async def _erase(erasure: Erasure) -> None:
    table, user = erasure.table, erasure.user
    if not erasure.anonymise:
        erasure.run.done += await void_votes_since(erasure.services, user, None, erasure.unit)
    clear = clear_addresses if erasure.anonymise else clear_voter
    for board in await boards.every_slug(table):
        await clear(table, user, board)


MEMBER_DATA = MemberData(MEMBER_ITEMS, frozenset({Part.VOTES}), _take_back, _erase)
