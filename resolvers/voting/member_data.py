"""Taking back and erasing a member's votes."""

from __future__ import annotations

from datastore import voting as voting_store
from datastore.changes.unit_of_work import UnitOfWork
from datastore.voting.erasing import clear_voter, move_votes
from datastore.voting.member_items import MEMBER_ITEMS
from resolvers.jobs.running import JobRun
from resolvers.people.member_data import (
    Erasure,
    MemberData,
    Part,
    TakingBack,
)
from resolvers.requests.context import Services
from resolvers.voting.voiding import void_votes_since


async def _take_back(services: Services, run: JobRun, wanted: TakingBack, unit: UnitOfWork) -> None:
    run.done += await void_votes_since(services, wanted.user, wanted.since, unit)


async def _erase(erasure: Erasure) -> None:
    table, run, user, alias = erasure.table, erasure.run, erasure.user, erasure.alias
    if alias is None:
        run.done += await void_votes_since(erasure.services, user, None, erasure.silent)
    for board in await voting_store.every_slug(table):
        if alias is not None:
            run.done += await move_votes(table, user, board, alias)
        await clear_voter(table, user, board)


MEMBER_DATA = MemberData(MEMBER_ITEMS, frozenset({Part.VOTES}), _take_back, _erase)
